#include "results/score/score_table.h"

#include "results/score/score_private.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { TEXT_MOST = 512 };

bool pc_score_flush(pc_text *text, FILE *stream) {
    bool done = !text->failed && fwrite(text->data ? text->data : "", 1, text->size, stream) == text->size;
    text->size = 0;
    return done;
}

/* ---- cells ---- */

/* A number, or the text of a field of that type; an undefined one is empty. */
static void add_value(pc_text *text, const pc_field *field, const void *row, void (*add)(pc_text *, const char *)) {
    char words[TEXT_MOST];
    if (pc_field_is_text(field)) {
        pc_field_get_text(field, row, words, sizeof words);
        add(text, words);
    } else if (pc_field_is_real(field)) {
        pc_number_format(pc_field_of(field, row).real, words);
        pc_text_printf(text, "%s", words);
    } else {
        pc_text_printf(text, "%" PRId64, pc_field_of(field, row).integer);
    }
}

static void add_json_field(pc_text *text, const pc_field *field, const void *row) {
    pc_text_printf(text, "\"%s\": ", field->name);
    if (pc_field_is_text(field) || pc_field_is_defined(field, row))
        add_value(text, field, row, pc_text_add_json);
    else
        pc_text_printf(text, "null");
}

/* ---- CSV ---- */

static void add_csv_header(const pc_score *score, pc_text *text) {
    int count;
    const pc_measured *m = score->measured;
    const pc_field *fields = pc_score_fields(&count);
    for (int i = 0; i < m->column_count; i++) {
        if (pc_score_is_column(m->column[i])) continue;
        pc_text_add_csv(text, m->column[i]);
        pc_text_add(text, ",", 1);
    }
    for (int i = 0; i < count; i++) pc_text_printf(text, "%s%s", fields[i].name, i + 1 < count ? "," : "\n");
}

static void add_csv_row(const pc_score *score, const pc_score_row *row, pc_text *text) {
    int count;
    const pc_measured *m = score->measured;
    const pc_field *fields = pc_score_fields(&count);
    for (int i = 0; i < m->column_count; i++) {
        if (pc_score_is_column(m->column[i])) continue;
        pc_text_add_csv(text, m->cell[row->row * m->column_count + i]);
        pc_text_add(text, ",", 1);
    }
    for (int i = 0; i < count; i++) {
        if (pc_field_is_defined(&fields[i], row)) add_value(text, &fields[i], row, pc_text_add_csv);
        pc_text_add(text, i + 1 < count ? "," : "\n", 1);
    }
}

static bool write_csv(const pc_score *score, pc_text *text, FILE *stream) {
    add_csv_header(score, text);
    bool going = pc_score_flush(text, stream);
    for (int64_t i = 0; i < score->count && going; i++) {
        add_csv_row(score, &score->rows[i], text);
        going = pc_score_flush(text, stream);
    }
    return going;
}

/* ---- JSON ---- */

static void add_json_row(const pc_score *score, const pc_score_row *row, pc_text *text) {
    int count;
    const pc_measured *m = score->measured;
    const pc_field *fields = pc_score_fields(&count);
    pc_text_printf(text, "{\"line\": %" PRId64, m->line[row->row]);
    for (int i = 0; i < m->column_count; i++) {
        if (pc_score_is_column(m->column[i])) continue;
        pc_text_add(text, ", ", 2);
        pc_text_add_json(text, m->column[i]);
        pc_text_add(text, ": ", 2);
        pc_text_add_json(text, m->cell[row->row * m->column_count + i]);
    }
    for (int i = 0; i < count; i++) {
        pc_text_add(text, ", ", 2);
        add_json_field(text, &fields[i], row);
    }
    pc_text_add(text, "}", 1);
}

static void add_json_part(const pc_score *score, int part, pc_text *text) {
    int64_t count;
    const pc_score_part *of = &pc_score_parts[part];
    const char *rows = pc_score_part_rows(score, part, &count);
    pc_text_printf(text, ",\n  \"%s\": [", of->name);
    for (int64_t i = 0; i < count; i++) {
        pc_text_printf(text, "%s\n    {", i ? "," : "");
        for (int f = 0; f < of->field_count; f++) {
            if (f) pc_text_add(text, ", ", 2);
            add_json_field(text, &of->field[f], rows + (size_t)i * of->row_size);
        }
        pc_text_add(text, "}", 1);
    }
    pc_text_printf(text, "%s]", count ? "\n  " : "");
}

static bool write_json(const pc_score *score, pc_text *text, FILE *stream) {
    pc_text_printf(text, "{\n  \"rows\": [");
    bool going = true;
    for (int64_t i = 0; i < score->count && going; i++) {
        pc_text_printf(text, "%s\n    ", i ? "," : "");
        add_json_row(score, &score->rows[i], text);
        going = pc_score_flush(text, stream);
    }
    pc_text_printf(text, "%s]", score->count ? "\n  " : "");
    for (int part = 0; part < PC_SCORE_PARTS; part++) add_json_part(score, part, text);
    pc_text_printf(text, "\n}\n");
    return going && pc_score_flush(text, stream);
}

/* ---- all formats ---- */

static bool write_as(const pc_score *score, pc_format format, pc_text *text, FILE *stream) {
    if (format == PC_FORMAT_CSV) return write_csv(score, text, stream);
    if (format == PC_FORMAT_JSON) return write_json(score, text, stream);
    return pc_score_text_write(score, text, stream);
}

pc_code pc_score_table_write(const pc_score *score, pc_format format, FILE *stream, pc_error *error) {
    pc_text text = {0};
    pc_number_scope scope = {0};
    if (!pc_number_scope_enter(&scope)) return pc_error_no_memory(error);
    errno = 0;
    bool done = write_as(score, format, &text, stream) && fflush(stream) == 0;
    int cause = errno;
    bool starved = text.failed;
    pc_number_scope_leave(&scope);
    pc_text_free(&text);
    if (done) return PC_OK;
    if (starved) return pc_error_no_memory(error);
    return pc_error_set(error, PC_ERROR_IO, "cannot write the scores: %s", cause ? strerror(cause) : "stream error");
}
