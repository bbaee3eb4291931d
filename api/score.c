/* Measured runs beside their forecasts, as tables that live on their own. */
#include "api/handles.h"

#include "engine/alloc.h"
#include "results/score/score.h"
#include "sweep/score.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

struct pipecast_score {
    pc_measured measured, conditions;
    bool has_conditions, allows_outside;
    api_watcher watcher;
    pc_score score; /* zeroed before it ran */
    bool has_run;
};

/* ---- its table ---- */

/* A row that cannot be read is said when the table is loaded, before anyone can look on. */
static void say_bad(void *context, const pc_error *error) {
    api_watcher_warn(context, error->message);
}

int pipecast_score_load(const char *path, pipecast_warn *warn, void *context, pipecast_score **score,
                        pipecast_error *error) {
    pc_error why = {0};
    pipecast_score *made = pc_alloc(1, sizeof *made);
    if (!made) return api_answer(pc_error_no_memory(&why), &why, error);
    made->watcher = (api_watcher){.warn = warn, .context = context};
    pc_code code = pc_measured_read(path, say_bad, &made->watcher, &made->measured, &why);
    if (code)
        pipecast_score_free(made);
    else
        *score = made;
    return api_answer(code, &why, error);
}

void pipecast_score_free(pipecast_score *score) {
    if (!score) return;
    pc_score_free(&score->score);
    pc_measured_free(&score->measured);
    pc_measured_free(&score->conditions);
    pc_free(score);
}

int pipecast_score_set_conditions(pipecast_score *score, const char *path, pipecast_error *error) {
    pc_error why = {0};
    pc_measured read = {0};
    pc_code code = pc_measured_read(path, say_bad, &score->watcher, &read, &why);
    if (code) {
        pc_measured_free(&read);
        return api_answer(code, &why, error);
    }
    pc_measured_free(&score->conditions);
    score->conditions = read;
    score->has_conditions = true;
    return PIPECAST_OK;
}

void pipecast_score_watch(pipecast_score *score, pipecast_progress *progress, pipecast_stop *stop, pipecast_warn *warn,
                          void *context) {
    score->watcher = (api_watcher){progress, stop, warn, context};
}

/* ---- its runs ---- */

static void look_on(void *context, int64_t done, int64_t to_do) {
    const api_watcher *watcher = context;
    if (watcher->progress) watcher->progress(watcher->context, done, to_do);
}

static pc_code check(const pipecast_score *score, const char *const *by, size_t by_count, size_t set_count, int flags,
                     pc_error *error) {
    pc_code code = PC_OK;
    if (by_count > INT_MAX || set_count > INT_MAX / 2)
        return pc_error_set(error, PC_ERROR_INPUT, "too many columns or overrides; expected at most %d", INT_MAX / 2);
    if (flags & ~PIPECAST_ALLOW_OUTSIDE)
        return pc_error_set(error, PC_ERROR_INPUT, "flags: %d; expected 0 or PIPECAST_ALLOW_OUTSIDE", flags);
    for (size_t i = 0; i < by_count && !code; i++) code = pc_score_check_by(&score->measured, by[i], error);
    return code;
}

/* A profile is read by HDF5: nobody else uses it meanwhile. */
static pc_code run(pipecast_score *score, const pc_score_request *request, const char *const *by, size_t by_count,
                   pc_error *error) {
    const pc_score_sink sink = {.context = &score->watcher,
                                .say = say_bad,
                                .progress = look_on,
                                .warn = api_watcher_warn,
                                .is_stopped = api_watcher_is_stopped};
    pc_score_free(&score->score);
    score->score = (pc_score){.count = 0};
    score->has_run = false;
    api_lock();
    pc_code code = pc_score_run(request, &sink, &score->score, error);
    api_unlock();
    if (code) {
        score->score = (pc_score){.count = 0};
        return code;
    }
    score->has_run = true;
    return pc_score_sum_up(&score->score, by, (int)by_count, error);
}

int pipecast_score_run(pipecast_score *score, const char *const *by, size_t by_count, const char *const *sets,
                       size_t set_count, int flags, int threads, pipecast_error *error) {
    pc_error why = {0};
    const pc_score_request request = {.measured = &score->measured,
                                      .sets = sets,
                                      .set_count = (int)set_count,
                                      .conditions = score->has_conditions ? &score->conditions : NULL,
                                      .allows_outside = (flags & PIPECAST_ALLOW_OUTSIDE) != 0,
                                      .jobs = threads};
    pc_code code = api_check_threads(threads, &why);
    if (!code) code = check(score, by, by_count, set_count, flags, &why);
    if (!code) code = run(score, &request, by, by_count, &why);
    return api_answer(code, &why, error);
}

/* ---- the table's own columns, as texts in structs that are made for them ---- */

enum { CELL_MOST = 512 };

typedef struct own_columns {
    const pc_measured *measured;
    int count;
    int *column;  /* of the measured table */
    size_t *size; /* bytes of its longest cell, with its zero */
    size_t row_size, names_size;
} own_columns;

static size_t longest_cell(const pc_measured *m, int column) {
    size_t longest = 1;
    for (int64_t row = 0; row < m->row_count; row++) {
        size_t size = strlen(m->cell[row * m->column_count + column]) + 1;
        if (size > longest) longest = size;
    }
    return longest < CELL_MOST ? longest : CELL_MOST;
}

/* What is called as one of the score's columns has its place taken. */
static pc_code find_own(const pc_measured *m, own_columns *own, pc_error *error) {
    *own = (own_columns){.measured = m};
    own->column = pc_alloc((size_t)m->column_count, sizeof *own->column);
    own->size = pc_alloc((size_t)m->column_count, sizeof *own->size);
    if (!own->column || !own->size) return pc_error_no_memory(error);
    for (int i = 0; i < m->column_count; i++) {
        if (pc_score_is_column(m->column[i])) continue;
        own->column[own->count] = i;
        own->size[own->count] = longest_cell(m, i);
        own->row_size += own->size[own->count++];
        own->names_size += strlen(m->column[i]) + 1;
    }
    return PC_OK;
}

static void name_own(const own_columns *own, pipecast_results *made) {
    size_t place = 0;
    char *name = made->field_texts;
    for (int i = 0; i < own->count; i++) {
        size_t name_size = strlen(own->measured->column[own->column[i]]) + 1;
        memcpy(name, own->measured->column[own->column[i]], name_size);
        made->fields[i] = (pc_field){.name = name,
                                     .unit = "",
                                     .description = "as the table of measured runs has it",
                                     .type = PC_FIELD_TEXT,
                                     .place = place,
                                     .size = own->size[i],
                                     .is_optional = true};
        place += own->size[i];
        name += name_size;
    }
}

static void copy_own(const own_columns *own, const pc_score *score, char *rows) {
    const pc_measured *m = own->measured;
    for (int64_t r = 0; r < score->count; r++) {
        char *at = rows + (size_t)r * own->row_size;
        for (int i = 0; i < own->count; i++) {
            snprintf(at, own->size[i], "%s", m->cell[score->rows[r].row * m->column_count + own->column[i]]);
            at += own->size[i];
        }
    }
}

static pc_code add_own(const own_columns *own, const pc_score *score, pipecast_results *made, pc_error *error) {
    made->fields = pc_alloc((size_t)own->count, sizeof *made->fields);
    made->field_texts = pc_alloc(own->names_size, 1);
    made->more_rows = pc_alloc((size_t)score->count, own->row_size ? own->row_size : 1);
    if (!made->fields || !made->field_texts || !made->more_rows) return pc_error_no_memory(error);
    name_own(own, made);
    copy_own(own, score, made->more_rows);
    api_results_add(made, made->fields, own->count, made->more_rows, own->row_size);
    return PC_OK;
}

/* ---- tables ---- */

static pc_code copy_rows(const void *rows, size_t row_size, const pc_field *fields, int field_count,
                         pipecast_results *made, pc_error *error) {
    size_t bytes = (size_t)made->row_count * row_size;
    made->score_rows = pc_alloc((size_t)made->row_count, row_size);
    if (!made->score_rows) return pc_error_no_memory(error);
    if (bytes > 0) memcpy(made->score_rows, rows, bytes);
    api_results_add(made, fields, field_count, made->score_rows, row_size);
    return PC_OK;
}

static pc_code make_rows(const pc_score *score, pipecast_results *made, pc_error *error) {
    own_columns own;
    int count;
    const pc_field *fields = pc_score_fields(&count);
    pc_code code = find_own(score->measured, &own, error);
    if (!code) code = add_own(&own, score, made, error);
    if (!code) code = copy_rows(score->rows, sizeof *score->rows, fields, count, made, error);
    pc_free(own.column);
    pc_free(own.size);
    return code;
}

static pc_code make_table(const pipecast_score *score, int part, pipecast_results **results, pc_error *error) {
    pc_score_part_table table = {.row_count = score->score.count};
    if (!score->has_run) return pc_error_set(error, PC_ERROR_INPUT, "the score has not run");
    if (part != PIPECAST_SCORE_ROWS && !pc_score_part_at(&score->score, part - PIPECAST_SCORE_SUMS, &table))
        return pc_error_set(error, PC_ERROR_INPUT, "part %d: there is none; expected 0 to %d", part,
                            PIPECAST_SCORE_GROUPS);
    pipecast_results *made = api_results_create(table.row_count);
    if (!made) return pc_error_no_memory(error);
    pc_code code = part == PIPECAST_SCORE_ROWS
                       ? make_rows(&score->score, made, error)
                       : copy_rows(table.rows, table.row_size, table.fields, table.field_count, made, error);
    if (code)
        pipecast_results_free(made);
    else
        *results = made;
    return code;
}

int pipecast_score_table(const pipecast_score *score, int part, pipecast_results **results, pipecast_error *error) {
    pc_error why = {0};
    return api_answer(make_table(score, part, results, &why), &why, error);
}
