#include "results/compare_private.h"
#include "results/stream_text.h"
#include "results/table_private.h"

#include <inttypes.h>
#include <math.h>

/* One row: what the two have in a column. Of a run that only one has, the other is a row without values. */
typedef struct compare_row {
    const pc_run_row *a, *b;
    const pc_run_row *named; /* the one of the two that says which run it is */
    const pc_column *column;
} compare_row;

typedef struct row_format {
    void (*add_value)(pc_text *text, const pc_column *column, const pc_run_row *row);
    const char *missing;  /* a value that is not defined */
    const char *field[7]; /* what stands before each of them */
    const char *end;
} row_format;

static const row_format csv = {
    .add_value = pc_table_add_csv,
    .missing = "",
    .field = {"", ",", ",", ",", ",", ",", ","},
    .end = "\n",
};
static const row_format json = {
    .add_value = pc_table_add_json,
    .missing = "null",
    .field = {"\n  {\"scenario\": ", ", \"name\": ", ", \"column\": \"",
              "\", \"a\": ", ", \"b\": ", ", \"difference\": ", ", \"relative\": "},
    .end = "}",
};

static void add_number(pc_text *text, double value, const char *missing) {
    char number[PC_NUMBER_SIZE];
    if (isfinite(value)) pc_number_format(value, number);
    pc_text_printf(text, "%s", isfinite(value) ? number : missing);
}

static bool has_numbers(const compare_row *row) {
    return pc_column_is_number(row->column) && pc_column_defined(row->column, row->a) &&
           pc_column_defined(row->column, row->b);
}

/* b - a; of whole numbers exactly, unless that is too large for one. */
static void add_difference(pc_text *text, const compare_row *row, const char *missing) {
    if (!has_numbers(row)) return pc_text_printf(text, "%s", missing);
    if (pc_field_is_real(&row->column->field))
        return add_number(text, pc_column_real(row->column, row->b) - pc_column_real(row->column, row->a), missing);
    int64_t a = pc_column_integer(row->column, row->a), b = pc_column_integer(row->column, row->b), exact;
    if (__builtin_sub_overflow(b, a, &exact)) return add_number(text, (double)b - (double)a, missing);
    pc_text_printf(text, "%" PRId64, exact);
}

static void add_row(pc_text *text, const row_format *format, const compare_row *row) {
    pc_text_printf(text, "%s", format->field[0]);
    format->add_value(text, pc_column_find("scenario"), row->named);
    pc_text_printf(text, "%s", format->field[1]);
    format->add_value(text, pc_column_find("name"), row->named);
    pc_text_printf(text, "%s%s%s", format->field[2], row->column->field.name, format->field[3]);
    format->add_value(text, row->column, row->a);
    pc_text_printf(text, "%s", format->field[4]);
    format->add_value(text, row->column, row->b);
    pc_text_printf(text, "%s", format->field[5]);
    add_difference(text, row, format->missing);
    pc_text_printf(text, "%s", format->field[6]);
    add_number(text, pc_relative_difference(row->column, row->a, row->b), format->missing);
    pc_text_printf(text, "%s", format->end);
}

typedef struct row_writer {
    const row_format *format;
    pc_text *text;
    FILE *stream;
    int64_t count;
} row_writer;

static bool write_row(row_writer *writer, const compare_row *row) {
    if (writer->format == &json && writer->count > 0) pc_text_add(writer->text, ",", 1);
    add_row(writer->text, writer->format, row);
    writer->count++;
    return pc_stream_text_flush(writer->text, writer->stream);
}

static bool write_differences(const pc_comparison *c, row_writer *writer) {
    int count;
    const pc_column *columns = pc_columns(&count);
    for (pc_difference at = PC_DIFFERENCE_START; pc_difference_next(c, &at);) {
        const pc_run_row *a = &c->a[at.row];
        compare_row row = {.a = a, .b = &c->b[c->b_of_a[at.row]], .named = a, .column = &columns[at.column]};
        if (!write_row(writer, &row)) return false;
    }
    return true;
}

static bool write_lonely(const pc_comparison *c, row_writer *writer) {
    pc_run_row none;
    pc_run_row_clear(&none);
    const pc_column *run = pc_column_find("run");
    for (int64_t i = 0; i < c->a_count; i++) {
        compare_row row = {.a = &c->a[i], .b = &none, .named = &c->a[i], .column = run};
        if (c->b_of_a[i] < 0 && !write_row(writer, &row)) return false;
    }
    for (int64_t i = 0; i < c->b_count; i++) {
        compare_row row = {.a = &none, .b = &c->b[i], .named = &c->b[i], .column = run};
        if (!c->b_is_used[i] && !write_row(writer, &row)) return false;
    }
    return true;
}

bool pc_compare_rows(const pc_comparison *c, pc_text *text, FILE *stream) {
    bool is_json = c->options->format == PC_FORMAT_JSON;
    row_writer writer = {.format = is_json ? &json : &csv, .text = text, .stream = stream};
    pc_text_printf(text, "%s", is_json ? "[" : "scenario,name,column,a,b,difference,relative\n");
    if (!write_differences(c, &writer) || !write_lonely(c, &writer)) return false;
    if (is_json) pc_text_printf(text, "%s]\n", writer.count > 0 ? "\n" : "");
    return pc_stream_text_flush(text, stream);
}
