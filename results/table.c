#include "results/table.h"

#include "results/columns.h"
#include "results/stream_text.h"
#include "results/table_private.h"
#include "storage/text.h"

#include <inttypes.h>
#include <string.h>

const char *pc_table_column_name(int number) {
    int count;
    const pc_column *columns = pc_columns(&count);
    return number < count ? columns[number].field.name : NULL;
}

static void add_number(pc_text *line, const pc_column *column, const pc_run_row *row) {
    char number[PC_NUMBER_SIZE];
    if (!pc_field_is_real(&column->field)) {
        pc_text_printf(line, "%" PRId64, pc_column_integer(column, row));
        return;
    }
    pc_number_format(pc_column_real(column, row), number);
    pc_text_add(line, number, strlen(number));
}

/* --- CSV --- */

void pc_table_add_csv(pc_text *line, const pc_column *column, const pc_run_row *row) {
    char text[PC_COLUMN_TEXT_SIZE];
    if (!pc_column_defined(column, row)) return;
    if (pc_column_is_number(column)) return add_number(line, column, row);
    pc_column_text(column, row, text, sizeof text);
    pc_text_add_csv(line, text);
}

/* The i-th column that is written; NULL behind the last. */
static const pc_column *column_at(const pc_column_choice *choice, int i) {
    int count;
    const pc_column *columns = pc_columns(&count);
    if (choice) return i < choice->count ? &columns[choice->column[i]] : NULL;
    return i < count ? &columns[i] : NULL;
}

static void add_csv_header(pc_text *line, const pc_column_choice *choice) {
    const pc_column *column;
    for (int i = 0; (column = column_at(choice, i)); i++)
        pc_text_printf(line, "%s%s", i ? "," : "", column->field.name);
    pc_text_add(line, "\n", 1);
}

/* A line with nothing in it would be no row to most readers. */
static void add_csv_row(pc_text *line, const pc_column_choice *choice, const pc_run_row *row) {
    const pc_column *column;
    size_t start = line->size;
    for (int i = 0; (column = column_at(choice, i)); i++) {
        if (i) pc_text_add(line, ",", 1);
        pc_table_add_csv(line, column, row);
    }
    pc_text_printf(line, "%s\n", line->size == start ? "\"\"" : "");
}

/* --- JSON --- */

void pc_table_add_json(pc_text *line, const pc_column *column, const pc_run_row *row) {
    char text[PC_COLUMN_TEXT_SIZE];
    if (!pc_column_defined(column, row)) return pc_text_add(line, "null", 4);
    if (pc_column_is_number(column)) return add_number(line, column, row);
    pc_column_text(column, row, text, sizeof text);
    pc_text_add_json(line, text);
}

static void add_json_row(pc_text *line, const pc_column_choice *choice, const pc_run_row *row, bool first) {
    const pc_column *column;
    pc_text_printf(line, "%s\n  {", first ? "" : ",");
    for (int i = 0; (column = column_at(choice, i)); i++) {
        pc_text_printf(line, "%s\"%s\": ", i ? ", " : "", column->field.name);
        pc_table_add_json(line, column, row);
    }
    pc_text_add(line, "}", 1);
}

/* --- all formats --- */

const pc_run_row *pc_table_row(pc_table_rows *rows, int64_t index) {
    rows->index = index;
    rows->code = rows->source(rows->context, index, &rows->row, rows->error);
    return rows->code ? NULL : &rows->row;
}

static bool write_csv(pc_table_rows *rows, pc_text *line, FILE *stream) {
    add_csv_header(line, rows->look->columns);
    bool going = pc_stream_text_flush(line, stream);
    for (int64_t i = 0; i < rows->count && going; i++) {
        const pc_run_row *row = pc_table_row(rows, i);
        if (!row) return false;
        add_csv_row(line, rows->look->columns, row);
        going = pc_stream_text_flush(line, stream);
    }
    return going;
}

static bool write_json(pc_table_rows *rows, pc_text *line, FILE *stream) {
    pc_text_add(line, "[", 1);
    bool going = pc_stream_text_flush(line, stream);
    for (int64_t i = 0; i < rows->count && going; i++) {
        const pc_run_row *row = pc_table_row(rows, i);
        if (!row) return false;
        add_json_row(line, rows->look->columns, row, i == 0);
        going = pc_stream_text_flush(line, stream);
    }
    pc_text_printf(line, "%s]\n", rows->count > 0 ? "\n" : "");
    return going && pc_stream_text_flush(line, stream);
}

/* All rows in one format. */
typedef struct table_job {
    pc_table_rows rows;
    pc_format format;
} table_job;

static bool write_as(void *context, pc_text *text, FILE *stream) {
    table_job *job = context;
    if (job->format == PC_FORMAT_CSV) return write_csv(&job->rows, text, stream);
    if (job->format == PC_FORMAT_JSON) return write_json(&job->rows, text, stream);
    return pc_table_text_write(&job->rows, text, stream);
}

pc_code pc_table_write_from(pc_table_source *source, void *context, int64_t count, pc_format format,
                            const pc_table_look *look, FILE *stream, pc_error *error) {
    static const pc_table_look plain;
    table_job job = {
        .rows = {.source = source, .context = context, .count = count, .look = look ? look : &plain, .error = error},
        .format = format};
    pc_error why = {0};
    pc_code code = pc_stream_text_write(write_as, &job, "the table", stream, &why);
    if (job.rows.code) return job.rows.code;
    return code ? pc_error_copy(error, &why) : PC_OK;
}

static pc_code copy_row(void *context, int64_t index, pc_run_row *row, pc_error *error) {
    (void)error;
    const pc_run_row *const *rows = context;
    *row = (*rows)[index];
    return PC_OK;
}

pc_code pc_table_write(const pc_run_row *rows, int64_t count, pc_format format, FILE *stream, pc_error *error) {
    return pc_table_write_from(copy_row, &rows, count, format, NULL, stream, error);
}
