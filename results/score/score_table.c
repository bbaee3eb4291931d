#include "results/score/score_table.h"

#include "results/score/score_private.h"
#include "results/stream_text.h"

#include <inttypes.h>
#include <string.h>

enum { TEXT_MOST = 512 };

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
    bool going = pc_stream_text_flush(text, stream);
    for (int64_t i = 0; i < score->count && going; i++) {
        add_csv_row(score, &score->rows[i], text);
        going = pc_stream_text_flush(text, stream);
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
        going = pc_stream_text_flush(text, stream);
    }
    pc_text_printf(text, "%s]", score->count ? "\n  " : "");
    for (int part = 0; part < PC_SCORE_PARTS; part++) add_json_part(score, part, text);
    pc_text_printf(text, "\n}\n");
    return going && pc_stream_text_flush(text, stream);
}

/* ---- all formats ---- */

/* Scores in one format. */
typedef struct score_job {
    const pc_score *score;
    pc_format format;
} score_job;

static bool write_as(void *context, pc_text *text, FILE *stream) {
    const score_job *job = context;
    if (job->format == PC_FORMAT_CSV) return write_csv(job->score, text, stream);
    if (job->format == PC_FORMAT_JSON) return write_json(job->score, text, stream);
    return pc_score_text_write(job->score, text, stream);
}

pc_code pc_score_table_write(const pc_score *score, pc_format format, FILE *stream, pc_error *error) {
    score_job job = {score, format};
    return pc_stream_text_write(write_as, &job, "the scores", stream, error);
}
