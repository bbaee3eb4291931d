#include "sweep/sweep.h"

#include "engine/alloc.h"
#include "results/columns.h"
#include "results/store/store.h"
#include "sweep/run_list.h"
#include "sweep/sweep_files.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum { ROWS_MIN = 64, ROWS_MAX = 4096 };

/* A shard as it is read: some rows at a time, in the order of their runs. */
typedef struct shard {
    const char *path;
    pc_results_reader *reader;
    pc_run_row *rows; /* first .. first + count - 1 */
    int64_t first, count, at;
} shard;

typedef struct merge {
    const char *output;
    pc_standing standing; /* at the output, when it began */
    shard *shards;
    int shard_count;
    int64_t room; /* rows of a shard that are held */
    pc_results_writer *writer;
    pc_run_list missing; /* runs that are in no shard */
} merge;

/* ---- rows of a shard ---- */

static const pc_run_row *row_of(const shard *s) {
    return s->at < pc_results_run_count(s->reader) ? &s->rows[s->at - s->first] : NULL;
}

static pc_code fill(const merge *m, shard *s, pc_error *error) {
    int64_t left = pc_results_run_count(s->reader) - s->at;
    if (left <= 0 || (s->rows && s->at < s->first + s->count)) return PC_OK;
    if (!s->rows) s->rows = pc_alloc((size_t)m->room, sizeof *s->rows);
    if (!s->rows) return pc_error_no_memory(error);
    s->first = s->at;
    s->count = left < m->room ? left : m->room;
    return pc_results_read_rows(s->reader, s->first, s->count, s->rows, error);
}

static pc_code step(const merge *m, shard *s, pc_error *error) {
    int64_t run = row_of(s)->run;
    s->at++;
    pc_code code = fill(m, s, error);
    const pc_run_row *next = code ? NULL : row_of(s);
    if (!next || next->run > run) return code;
    return pc_error_set_file(error, PC_ERROR_INPUT, s->path,
                             "run %" PRId64 " stands behind run %" PRId64 "; expected them in order", next->run, run);
}

static bool is_same_file(const char *path, const char *other) {
    struct stat one, two;
    return stat(path, &one) == 0 && stat(other, &two) == 0 && one.st_ino == two.st_ino && one.st_dev == two.st_dev;
}

static pc_code open_shard(const merge *m, shard *s, pc_error *error) {
    if (is_same_file(s->path, m->output))
        return pc_error_set_file(error, PC_ERROR_INPUT, m->output,
                                 "is one of the shards; expected another file for all of them");
    pc_code code = pc_results_open_part(s->path, &s->reader, error);
    if (code) return code;
    if (pc_results_sweep_runs(s->reader) < 0 || !*pc_results_build(s->reader))
        return pc_error_set_file(
            error, PC_ERROR_INPUT, s->path,
            "does not say of how many runs it is a part; expected a file of `pipecast run` of this "
            "version");
    return fill(m, s, error);
}

/* ---- shards of one sweep ---- */

static pc_code refuse_other(const shard *a, const shard *b, const char *what, pc_error *error) {
    return pc_error_set_file(error, PC_ERROR_INPUT, b->path, "is %s than %s; expected shards of one sweep", what,
                             a->path);
}

/* *is_there: whether either has one of this number. */
static pc_code compare_scenario(const shard *a, const shard *b, int64_t number, bool *is_there, pc_error *error) {
    char names[2][PC_COLUMN_TEXT_SIZE], *texts[2] = {NULL, NULL};
    size_t sizes[2] = {0, 0};
    pc_code code = pc_results_scenario_at(a->reader, number, names[0], &texts[0], &sizes[0], error);
    if (!code) code = pc_results_scenario_at(b->reader, number, names[1], &texts[1], &sizes[1], error);
    *is_there = texts[0] || texts[1];
    bool is_same = !texts[0] == !texts[1];
    if (!code && texts[0] && texts[1])
        is_same = strcmp(names[0], names[1]) == 0 && sizes[0] == sizes[1] && memcmp(texts[0], texts[1], sizes[0]) == 0;
    if (!code && !is_same) code = refuse_other(a, b, "of another scenario", error);
    pc_free(texts[0]);
    pc_free(texts[1]);
    return code;
}

static pc_code check_alike(const shard *a, const shard *b, pc_error *error) {
    if (strcmp(pc_results_build(a->reader), pc_results_build(b->reader)) != 0 ||
        strcmp(pc_results_version(a->reader), pc_results_version(b->reader)) != 0)
        return refuse_other(a, b, "of another build of pipecast", error);
    if (pc_results_sweep_runs(a->reader) != pc_results_sweep_runs(b->reader))
        return refuse_other(a, b, "of a sweep of another number of runs", error);
    pc_code code = PC_OK;
    bool is_there = true;
    for (int64_t number = 1; is_there && !code; number++) code = compare_scenario(a, b, number, &is_there, error);
    return code;
}

/* The file says which build wrote it: ours must be that one. */
static pc_code check_build(const shard *s, pc_error *error) {
    if (pc_sweep_files_is_of_this_build(s->reader)) return PC_OK;
    return pc_error_set_file(error, PC_ERROR_INPUT, s->path,
                             "is of another build of pipecast; expected shards of this one, or to be merged by theirs");
}

static pc_code open_shards(merge *m, pc_error *error) {
    pc_code code = pc_sweep_files_check_target(m->output, &m->standing, error);
    for (int i = 0; i < m->shard_count && !code; i++) code = open_shard(m, &m->shards[i], error);
    for (int i = 1; i < m->shard_count && !code; i++) code = check_alike(&m->shards[0], &m->shards[i], error);
    return code ? code : check_build(&m->shards[0], error);
}

/* ---- merging ---- */

static pc_code add_scenarios(const merge *m, pc_error *error) {
    const shard *s = &m->shards[0];
    pc_code code = pc_results_set_sweep_runs(m->writer, pc_results_sweep_runs(s->reader), error);
    bool is_there = true;
    for (int64_t number = 1; is_there && !code; number++) {
        char name[PC_COLUMN_TEXT_SIZE], *text = NULL;
        size_t size = 0;
        code = pc_results_scenario_at(s->reader, number, name, &text, &size, error);
        is_there = text != NULL;
        if (!code && text) code = pc_results_add_scenario(m->writer, name, text, size, error);
        pc_free(text);
    }
    return code;
}

static bool is_equal(const pc_run_row *a, const pc_run_row *b) {
    int count;
    const pc_column *columns = pc_columns(&count);
    for (int i = 0; i < count; i++) {
        const pc_field *field = &columns[i].field;
        const char *one = (const char *)a + field->place, *other = (const char *)b + field->place;
        if (field->type == PC_FIELD_TEXT ? strncmp(one, other, field->size) != 0 : memcmp(one, other, field->size) != 0)
            return false;
    }
    return true;
}

/* The shard that has the lowest run of all that are left; NULL if none is. */
static shard *find_next(const merge *m) {
    shard *least = NULL;
    for (int i = 0; i < m->shard_count; i++) {
        const pc_run_row *row = row_of(&m->shards[i]);
        if (row && (!least || row->run < row_of(least)->run)) least = &m->shards[i];
    }
    return least;
}

static pc_code write_run(const merge *m, const shard *s, pc_error *error) {
    const pc_run_row *row = row_of(s);
    if (!pc_results_has_trace(s->reader, row->run)) return pc_results_add_run(m->writer, row, NULL, NULL, error);
    pc_trace_record record;
    pc_code code = pc_results_read_trace(s->reader, row->run, &record, error);
    if (code) return code;
    pc_schedule shape = pc_trace_record_schedule(&record, row->schedule);
    pc_run_detail detail = pc_trace_record_detail(&record);
    code = pc_results_add_run(m->writer, row, &shape, &detail, error);
    pc_trace_record_free(&record);
    return code;
}

/* Moves past the run in all shards that have it; they must say the same of it. */
static pc_code pass(const merge *m, shard *s, pc_error *error) {
    const pc_run_row row = *row_of(s);
    pc_code code = PC_OK;
    for (int i = 0; i < m->shard_count && !code; i++) {
        shard *other = &m->shards[i];
        const pc_run_row *its = row_of(other);
        if (!its || its->run != row.run) continue;
        if (!is_equal(&row, its))
            return pc_error_set_file(error, PC_ERROR_INPUT, other->path,
                                     "run %" PRId64 " is not the same as in %s; expected equal rows", row.run, s->path);
        code = step(m, other, error);
    }
    return code;
}

static pc_code merge_runs(merge *m, pc_error *error) {
    int64_t next = 1, total = pc_results_sweep_runs(m->shards[0].reader);
    pc_code code = PC_OK;
    for (shard *s; !code && (s = find_next(m));) {
        int64_t run = row_of(s)->run;
        pc_run_list_add(&m->missing, next, run - 1);
        next = run + 1;
        code = write_run(m, s, error);
        if (!code) code = pass(m, s, error);
    }
    pc_run_list_add(&m->missing, next, total);
    return code;
}

static pc_code merge_all(merge *m, pc_error *error) {
    pc_code code = open_shards(m, error);
    if (!code) code = pc_results_create(m->output, &m->writer, error);
    if (!code) pc_results_guard(m->writer, &m->standing);
    if (!code) code = add_scenarios(m, error);
    if (!code) code = merge_runs(m, error);
    if (code) return code;
    code = pc_results_commit(m->writer, error);
    m->writer = NULL;
    return code;
}

static void warn_of_missing(const merge *m, const pc_sweep_sink *sink) {
    char text[2 * PATH_MAX], list[PC_RUN_LIST_TEXT];
    const pc_run_list *missing = &m->missing;
    if (missing->count == 0) return;
    snprintf(text, sizeof text, "%s: of %" PRId64 " runs %" PRId64 " %s in no shard:%s", m->output,
             pc_results_sweep_runs(m->shards[0].reader), missing->count, missing->count == 1 ? "is" : "are",
             pc_run_list_text(missing, list));
    pc_error_make_plain(text);
    sink->warn(sink->context, text);
}

static void close_shards(merge *m) {
    for (int i = 0; i < m->shard_count; i++) {
        pc_results_close(m->shards[i].reader);
        pc_free(m->shards[i].rows);
    }
    pc_free(m->shards);
}

pc_code pc_sweep_merge(const pc_sweep_merge_request *request, const pc_sweep_sink *sink, pc_error *error) {
    int count = request->shard_count;
    if (count < 1) return pc_error_set_file(error, PC_ERROR_INPUT, request->output, "no shards; expected one or more");
    merge m = {.output = request->output, .shards = pc_alloc((size_t)count, sizeof *m.shards), .shard_count = count};
    if (!m.shards) return pc_error_no_memory(error);
    for (int i = 0; i < count; i++) m.shards[i].path = request->shards[i];
    m.room = ROWS_MAX / count > ROWS_MIN ? ROWS_MAX / count : ROWS_MIN;
    pc_code code = merge_all(&m, error);
    pc_results_discard(m.writer);
    if (!code && sink && sink->warn) warn_of_missing(&m, sink);
    close_shards(&m);
    return code;
}
