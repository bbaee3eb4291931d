/* handles.h: what stands behind the handles of pipecast.h. Private to api/. */
#ifndef PC_API_HANDLES_H
#define PC_API_HANDLES_H

#include "api/pipecast.h"
#include "engine/error.h"
#include "engine/field.h"
#include "models/schedule/costs.h"
#include "models/schedule/schedule.h"
#include "results/store/store.h"
#include "scenarios/scenario.h"
#include "sweep/sweep.h"

#include <stdbool.h>
#include <stdint.h>

struct pipecast_scenario {
    pc_scenario *scenario;
};

/* Some columns of a table: `count` fields, each at the start of `stride` bytes, and where their rows lie. */
typedef struct api_columns {
    const void *fields;
    size_t stride;
    int count;
    const void *rows; /* the table's row_count of them */
    size_t row_size;
} api_columns;

enum { API_COLUMN_GROUPS = 3 };
struct pipecast_results {
    int64_t row_count;
    api_columns group[API_COLUMN_GROUPS]; /* the first `group_count` of them */
    int group_count;
    void *rows, *more_rows;          /* owned; what the groups point to */
    const pc_run_row *runs;          /* of a table of runs: its rows; else NULL */
    pc_field *fields;                /* owned, likewise: columns that are made for this table alone, */
    char *field_texts;               /* and their names */
    void *score_rows;                /* owned, likewise */
    pc_results_reader *reader;       /* where traces are: a file, */
    pc_sweep *sweep;                 /* or a sweep in memory; both NULL: nowhere */
    const struct plan_row *plan;     /* of plans; more_rows */
    const pipecast_plan *planned_by; /* whose answer that is; it may be gone */
};

/* Who looks on while a sweep or a score runs; each function NULL where nobody does. */
typedef struct api_watcher {
    pipecast_progress *progress;
    pipecast_stop *stop;
    pipecast_warn *warn;
    void *context;
} api_watcher;

/* In sweep.c: tell the watcher, which `watcher` is, and ask it. */
void api_watcher_warn(void *watcher, const char *text);
bool api_watcher_is_stopped(void *watcher);

struct pipecast_schedule {
    pc_schedule schedule;
    struct api_made_schedule *made; /* how it was made by options, which then owns the schedule; else NULL */
};

struct pipecast_replay {
    pc_trace_record record; /* without devices of its own where it is of a schedule: then of it `replay` alone */
    double time_unit_ps, memory_unit_bytes;
    int chunks; /* of a schedule; else the record's */
    pc_placement placement;
};

/* Gives an error to the caller, where it wants one; returns its code. */
int api_answer(pc_code code, const pc_error *why, pipecast_error *error);

/* Schedules made by options (schedule_make.c): freed, NULL is fine; replayed, and bounded, at their own costs. */
void api_made_schedule_free(struct api_made_schedule *made);
pc_code api_made_replay(const struct api_made_schedule *made, pipecast_replay *replay, pc_error *error);
pc_code api_made_bound(const struct api_made_schedule *made, double *bound, pc_error *error);

/* Only one thread at a time is between the two: HDF5 and journals are not made for several. A thread may be so twice.
 */
void api_lock(void);
void api_unlock(void);

/* What a user gives to load a scenario or a plan from, and `load`, which fills in a zeroed handle. */
typedef struct api_source {
    const char *path, *text;
    const char *const *sets;
    size_t set_count;
    int flags;
    pc_code (*load)(const char *path, const pc_scenario_options *options, void *handle, pc_error *error);
} api_source;

/* A handle of `size` bytes, for pc_free; NULL with *code and the error set where it cannot be loaded. */
void *api_load(const api_source *source, size_t size, int *code, pipecast_error *error);

/* PC_ERROR_INPUT unless 0 or as many as a sweep may have. */
pc_code api_check_threads(int threads, pc_error *error);

/* An empty table; NULL where memory is short. Its columns of runs, `rows` of them, which it takes over. */
pipecast_results *api_results_create(int64_t row_count);
void api_results_take_runs(pipecast_results *results, pc_run_row *rows);

/* Columns of `rows`, which somebody else owns. */
void api_results_add(pipecast_results *results, const pc_field *fields, int count, const void *rows, size_t row_size);

void api_plan_rows_free(struct plan_row *rows, int64_t count); /* plan.c; NULL is fine */

#endif
