#include "results/score/score_file.h"

#include "engine/alloc.h"
#include "results/score/score_private.h"
#include "storage/fields.h"
#include "storage/sealed.h"

#include <stdio.h>
#include <string.h>

static const pc_sealed_kind score_kind = {"pipecast-score", "a file of scores", PC_SCORE_FILE_VERSION};

enum { CELL_MOST = 4096 /* bytes of a cell, with its zero; what is beyond is cut */, NAME_MOST = 128 };

/* ---- the measured table ---- */

static bool is_taken(char (*names)[NAME_MOST], int count, const char *name) {
    for (int i = 0; i < count; i++)
        if (strcmp(names[i], name) == 0) return true;
    return false;
}

/* A name as HDF5 has them: '/' parts groups there, "." is the group itself, and none is empty. */
static void name_column(const pc_measured *m, int column, char (*names)[NAME_MOST]) {
    char *name = names[column];
    snprintf(name, NAME_MOST, "%s", m->column[column]);
    for (char *c = name; *c; c++)
        if (*c == '/') *c = '_';
    if (name[0] == '\0' || strcmp(name, ".") == 0 || is_taken(names, column, name))
        snprintf(name, NAME_MOST, "column_%d", column + 1);
}

static size_t widest(const pc_score *score, int column) {
    size_t width = 1;
    const pc_measured *m = score->measured;
    for (int64_t i = 0; i < score->count; i++) {
        size_t size = strlen(m->cell[score->rows[i].row * m->column_count + column]) + 1;
        if (size > width) width = size;
    }
    return width < CELL_MOST ? width + 1 : CELL_MOST;
}

static pc_code write_cells(hid_t group, const pc_score *score, int column, const char *name, pc_error *error) {
    const pc_measured *m = score->measured;
    size_t width = widest(score, column);
    char *cells = pc_alloc((size_t)score->count, width);
    if (!cells) return pc_error_no_memory(error);
    for (int64_t i = 0; i < score->count; i++)
        snprintf(cells + (size_t)i * width, width, "%s", m->cell[score->rows[i].row * m->column_count + column]);
    pc_field field = {name, "", m->column[column], PC_FIELD_TEXT, .size = width, .is_optional = true};
    pc_code code = pc_field_write(group, &field, cells, width, score->count, PC_STORED_SMALL, NULL, error);
    pc_free(cells);
    return code;
}

static pc_code write_measured(hid_t file, const pc_score *score, pc_error *error) {
    int count = score->measured->column_count;
    char(*names)[NAME_MOST] = pc_alloc((size_t)count, sizeof *names);
    hid_t group = names ? pc_h5_group_create(file, "measured") : -1;
    pc_code code = !names ? pc_error_no_memory(error) : group < 0 ? pc_fields_fail(error) : PC_OK;
    for (int i = 0; i < count && !code; i++) {
        name_column(score->measured, i, names);
        code = write_cells(group, score, i, names[i], error);
    }
    if (group >= 0) H5Gclose(group);
    pc_free(names);
    return code;
}

/* ---- rows, and what they come to ---- */

static pc_code write_lines(hid_t file, const pc_score *score, pc_error *error) {
    const pc_field line = {"line", "1", "line of the table on which the row begins", PC_FIELD_INT64,
                           .size = sizeof(int64_t)};
    int64_t *lines = pc_alloc((size_t)score->count, sizeof *lines);
    hid_t group = lines ? pc_h5_group_open(file, "rows") : -1;
    pc_code code = !lines ? pc_error_no_memory(error) : group < 0 ? pc_fields_fail(error) : PC_OK;
    for (int64_t i = 0; lines && i < score->count; i++) lines[i] = score->measured->line[score->rows[i].row];
    if (!code) code = pc_field_write(group, &line, lines, sizeof *lines, score->count, PC_STORED_SMALL, NULL, error);
    if (group >= 0) H5Gclose(group);
    pc_free(lines);
    return code;
}

static pc_code write_all(hid_t file, const void *content, pc_error *error) {
    const pc_score *score = content;
    int count;
    const pc_field *fields = pc_score_fields(&count);
    const pc_fields of_rows = {fields, (size_t)count, sizeof(pc_score_row)};
    pc_code code = write_measured(file, score, error);
    if (!code) code = pc_fields_write_group(file, "rows", &of_rows, score->rows, score->count, error);
    if (!code) code = write_lines(file, score, error);
    for (int part = 0; part < PC_SCORE_PARTS && !code; part++) {
        const pc_score_part *of = &pc_score_parts[part];
        const pc_fields of_part = {of->field, (size_t)of->field_count, of->row_size};
        int64_t rows;
        const void *first = pc_score_part_rows(score, part, &rows);
        code = pc_fields_write_group(file, of->name, &of_part, first, rows, error);
    }
    return code;
}

pc_code pc_score_file_write(const pc_score *score, const char *path, pc_error *error) {
    return pc_sealed_write(path, &score_kind, write_all, score, error);
}
