/* A table is columns: of the run rows those of results/columns.h, beside them a plan's own, or those of a list. */
#include "api/handles.h"

#include "engine/alloc.h"
#include "results/columns.h"
#include "storage/text.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- making ---- */

pipecast_results *api_results_create(int64_t row_count) {
    pipecast_results *made = pc_alloc(1, sizeof *made);
    if (made) made->row_count = row_count;
    return made;
}

void api_results_add(pipecast_results *results, const pc_field *fields, int count, const void *rows, size_t row_size) {
    results->group[results->group_count++] = (api_columns){fields, sizeof *fields, count, rows, row_size};
}

void api_results_take_runs(pipecast_results *results, pc_run_row *rows) {
    int count;
    const pc_column *columns = pc_columns(&count);
    results->rows = rows;
    results->runs = rows;
    results->group[results->group_count++] = (api_columns){columns, sizeof *columns, count, rows, sizeof *rows};
}

_Static_assert(offsetof(pc_column, field) == 0, "a column begins with its field");

static pc_code open_results(const char *path, pipecast_results *results, pc_error *error) {
    pc_code code = pc_results_open_part(path, &results->reader, error);
    if (code) return code;
    results->row_count = pc_results_run_count(results->reader);
    pc_run_row *rows = pc_alloc((size_t)results->row_count, sizeof *rows);
    if (!rows) return pc_error_no_memory(error);
    api_results_take_runs(results, rows);
    return pc_results_read_rows(results->reader, 0, results->row_count, rows, error);
}

int pipecast_results_open(const char *path, pipecast_results **results, pipecast_error *error) {
    pc_error why = {0};
    pipecast_results *made = api_results_create(0);
    api_lock();
    pc_code code = made ? open_results(path, made, &why) : pc_error_no_memory(&why);
    api_unlock();
    if (code)
        pipecast_results_free(made);
    else
        *results = made;
    return api_answer(code, &why, error);
}

void pipecast_results_free(pipecast_results *results) {
    if (!results) return;
    api_lock();
    if (results->reader) pc_results_close(results->reader);
    pc_sweep_free(results->sweep);
    api_unlock();
    if (results->plan) api_plan_rows_free(results->more_rows, results->row_count);
    pc_free(results->rows);
    pc_free(results->more_rows);
    pc_free(results->fields);
    pc_free(results->field_texts);
    pc_free(results->score_rows);
    pc_free(results);
}

/* ---- columns ---- */

/* NULL where there is none; *group is the one that it is in. */
static const pc_field *find_field(const pipecast_results *results, int column, const api_columns **group) {
    for (int g = 0; g < results->group_count && column >= 0; g++) {
        *group = &results->group[g];
        if (column < (*group)->count)
            return (const pc_field *)(const void *)((const char *)(*group)->fields + (size_t)column * (*group)->stride);
        column -= (*group)->count;
    }
    return NULL;
}

static const pc_field *field_of(const pipecast_results *results, int column) {
    const api_columns *group;
    return find_field(results, column, &group);
}

/* The struct in which a row has its value of a column, and the field of that; NULL where there is none. */
static const void *find_value(const pipecast_results *results, int64_t row, int column, const pc_field **field) {
    const api_columns *group;
    *field = find_field(results, column, &group);
    if (!*field || row < 0 || row >= results->row_count) return NULL;
    return (const char *)group->rows + (size_t)row * group->row_size;
}

static int type_of(const pc_field *field) {
    if (pc_field_is_text(field)) return PIPECAST_TEXT;
    return pc_field_is_real(field) ? PIPECAST_REAL : PIPECAST_INTEGER;
}

int64_t pipecast_results_row_count(const pipecast_results *results) {
    return results->row_count;
}

int pipecast_results_column_count(const pipecast_results *results) {
    int count = 0;
    for (int g = 0; g < results->group_count; g++) count += results->group[g].count;
    return count;
}

int pipecast_results_find(const pipecast_results *results, const char *name) {
    const pc_field *field;
    for (int column = 0; (field = field_of(results, column)); column++)
        if (strcmp(field->name, name) == 0) return column;
    return -1;
}

const char *pipecast_results_column_name(const pipecast_results *results, int column) {
    const pc_field *field = field_of(results, column);
    return field ? field->name : NULL;
}

int pipecast_results_column_type(const pipecast_results *results, int column) {
    const pc_field *field = field_of(results, column);
    return field ? type_of(field) : -1;
}

const char *pipecast_results_column_unit(const pipecast_results *results, int column) {
    const pc_field *field = field_of(results, column);
    return field ? field->unit : NULL;
}

const char *pipecast_results_column_words(const pipecast_results *results, int column) {
    const pc_field *field = field_of(results, column);
    return field ? field->description : NULL;
}

/* ---- values ---- */

static double real_of(const pc_field *field, const void *row) {
    if (type_of(field) == PIPECAST_TEXT || !pc_field_is_defined(field, row)) return NAN;
    pc_field_value value = pc_field_of(field, row);
    return type_of(field) == PIPECAST_REAL ? value.real : (double)value.integer;
}

static int64_t integer_of(const pc_field *field, const void *row) {
    if (type_of(field) != PIPECAST_INTEGER || !pc_field_is_defined(field, row)) return -1;
    return pc_field_of(field, row).integer;
}

double pipecast_results_real(const pipecast_results *results, int64_t row, int column) {
    const pc_field *field;
    const void *value = find_value(results, row, column, &field);
    return value ? real_of(field, value) : NAN;
}

int64_t pipecast_results_integer(const pipecast_results *results, int64_t row, int column) {
    const pc_field *field;
    const void *value = find_value(results, row, column, &field);
    return value ? integer_of(field, value) : -1;
}

static void write_real(double number, char text[PC_NUMBER_SIZE]) {
    pc_number_scope scope = {0};
    text[0] = '\0';
    if (!pc_number_scope_enter(&scope)) return;
    pc_number_format(number, text);
    pc_number_scope_leave(&scope);
}

size_t pipecast_results_text(const pipecast_results *results, int64_t row, int column, char *text, size_t size) {
    char whole[512] = "";
    const pc_field *field;
    const void *value = find_value(results, row, column, &field);
    bool is_defined = value && pc_field_is_defined(field, value);
    if (is_defined && type_of(field) == PIPECAST_TEXT) pc_field_get_text(field, value, whole, sizeof whole);
    if (is_defined && type_of(field) == PIPECAST_REAL) write_real(pc_field_of(field, value).real, whole);
    if (is_defined && type_of(field) == PIPECAST_INTEGER)
        snprintf(whole, sizeof whole, "%" PRId64, pc_field_of(field, value).integer);
    if (size > 0) snprintf(text, size, "%s", whole);
    return strlen(whole);
}

/* ---- whole columns ---- */

static pc_code refuse_column(int column, const char *what, const pc_field *field, pc_error *error) {
    if (!field) return pc_error_set(error, PC_ERROR_INPUT, "column %d: there is none", column);
    return pc_error_set(error, PC_ERROR_INPUT, "column %s: has no %s", field->name, what);
}

int pipecast_results_reals(const pipecast_results *results, int column, double *values, pipecast_error *error) {
    pc_error why = {0};
    const api_columns *group;
    const pc_field *field = find_field(results, column, &group);
    if (!field || type_of(field) == PIPECAST_TEXT)
        return api_answer(refuse_column(column, "numbers", field, &why), &why, error);
    for (int64_t row = 0; row < results->row_count; row++)
        values[row] = real_of(field, (const char *)group->rows + (size_t)row * group->row_size);
    return PIPECAST_OK;
}

int pipecast_results_integers(const pipecast_results *results, int column, int64_t *values, pipecast_error *error) {
    pc_error why = {0};
    const api_columns *group;
    const pc_field *field = find_field(results, column, &group);
    if (!field || type_of(field) != PIPECAST_INTEGER)
        return api_answer(refuse_column(column, "whole numbers", field, &why), &why, error);
    for (int64_t row = 0; row < results->row_count; row++)
        values[row] = integer_of(field, (const char *)group->rows + (size_t)row * group->row_size);
    return PIPECAST_OK;
}

/* Adds a text with its zero where it fits; counts it in any case. */
static void add_text(const char *added, char *text, size_t size, size_t *used) {
    size_t length = strlen(added) + 1;
    if (*used <= size && length <= size - *used) memcpy(text + *used, added, length);
    *used += length;
}

size_t pipecast_results_texts(const pipecast_results *results, int column, char *text, size_t size) {
    char one[512];
    size_t used = 0;
    if (!field_of(results, column)) return 0;
    for (int64_t row = 0; row < results->row_count; row++) {
        pipecast_results_text(results, row, column, one, sizeof one);
        add_text(one, text, size, &used);
    }
    return used;
}

/* ---- traces ---- */

static pc_code read_trace(const pipecast_results *results, int64_t row, pc_trace_record *record, pc_error *error) {
    const pc_run_row *rows = results->rows;
    pc_code code = PC_OK;
    if (row < 0 || row >= results->row_count)
        return pc_error_set(error, PC_ERROR_INPUT, "row %" PRId64 ": there is none; expected 0 to %" PRId64, row,
                            results->row_count - 1);
    if (results->reader) return pc_results_read_trace(results->reader, rows[row].run, record, error);
    if (results->sweep) code = pc_sweep_trace(results->sweep, row, record, error);
    if (code || record->devices > 0) return code;
    return pc_error_set(error, PC_ERROR_INPUT, "row %" PRId64 " kept no trace; expected a scenario with `trace: true`",
                        row);
}

int pipecast_results_replay(const pipecast_results *results, int64_t row, pipecast_replay **replay,
                            pipecast_error *error) {
    pc_error why = {0};
    pipecast_replay *made = pc_alloc(1, sizeof *made);
    api_lock();
    pc_code code = made ? read_trace(results, row, &made->record, &why) : pc_error_no_memory(&why);
    api_unlock();
    if (code) {
        pc_free(made);
        return api_answer(code, &why, error);
    }
    made->time_unit_ps = 1e12;
    made->memory_unit_bytes = 1.0;
    made->chunks = made->record.chunks;
    made->placement = made->record.placement;
    *replay = made;
    return PIPECAST_OK;
}
