/* sweep.h: all runs of some scenarios, as a call of the library.
 *
 * What a results file, or the journal of a sweep that was ended, has already is not done again, and of equal runs one
 * is done. The others are simulated on several threads, in several processes (team.h), or in shards that are merged.
 * What comes out depends on none of that: same scenarios, same rows, same bytes in the file. Without a results file
 * nothing is written to disk. Nothing is printed: what there is to say goes to a sink.
 *
 *     pc_sweep_request request = {.scenarios = &scenario, .scenario_count = 1, .output = "results.h5"};
 *     pc_code code = pc_sweep_run(&request, NULL, &sweep, &error);
 *     for (int64_t i = 0; !code && i < pc_sweep_row_count(sweep); i++) code = pc_sweep_row(sweep, i, &row, &error);
 *     pc_sweep_free(sweep);
 *
 * Several sweeps may run at once, but for what they do with HDF5 files (results/store/store.h): with results files or
 * profiles, one at a time.
 */
#ifndef PC_SWEEP_SWEEP_H
#define PC_SWEEP_SWEEP_H

#include "engine/error.h"
#include "results/row.h"
#include "results/store/store.h"
#include "scenarios/scenario.h"
#include "sweep/team.h"

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What is wanted. All is borrowed, until pc_sweep_free; but of pc_sweep_trace and pc_sweep_free nothing is looked at
 * any more. */
typedef struct pc_sweep_request {
    pc_scenario *const *scenarios; /* their runs in this order are the whole list */
    int scenario_count;
    const char *output; /* the results file; NULL: none */
    bool keeps_traces;  /* without an output, traces that scenarios ask for are kept in memory, else they are not */
    int jobs;           /* threads; 0: pc_team_default_jobs */
    int64_t shard, shard_count; /* of so many equal shares this one, from 1; 0 and 0: all runs */
    bool is_fresh;              /* all runs again, whatever is there */
    pc_team *team;              /* NULL: this process is alone */
} pc_sweep_request;

/* BEGINS: what is there is known, and nothing is begun. RUNS: a run was done. WRITES: all runs are done, or it is
 * stopped. Both ends are said once each, in this order, or neither; between them no function of HDF5 is called. */
typedef enum pc_sweep_phase { PC_SWEEP_BEGINS, PC_SWEEP_RUNS, PC_SWEEP_WRITES } pc_sweep_phase;

typedef struct pc_sweep_progress {
    pc_sweep_phase phase;
    int64_t runs;          /* of this shard: done before, equal to one that is to do, and */
    int64_t to_do;         /* to do, by all ranks */
    int64_t done_before;   /* their results were there */
    int64_t done;          /* of those to do, by this rank */
    const pc_run_row *row; /* of the run that was just done; else NULL */
    const char *journal;   /* the file that keeps what is done; NULL without an output */
} pc_sweep_progress;

/* Who looks on; each may be NULL. Only one is called at a time, but for is_stopped, which any thread may call. */
typedef struct pc_sweep_sink {
    void *context;
    void (*progress)(void *context, const pc_sweep_progress *progress);
    void (*warn)(void *context, const char *text); /* a line about what the user may not expect */
    bool (*is_stopped)(void *context);             /* asked before every run: whether to begin no other */
} pc_sweep_sink;

/* All runs, done, and their rows. */
typedef struct pc_sweep pc_sweep;

/* Does what is to be done, and puts the results file in its place. `sink` may be NULL. With several ranks all must call
 * it, with one request; rows and the file are the first rank's, and the others' sweep has no rows.
 *
 * PC_ERROR_INPUT: a run, a profile or the output is not as it must be; PC_ERROR_STOPPED: the sink said so. What was
 * done until then is in the journal, and the same request goes on. Another file that has come to the output's place
 * stays, the results are beside it and PC_ERROR_INPUT says where: alone in that case there is a *sweep with an error,
 * else it is NULL then. */
pc_code pc_sweep_run(const pc_sweep_request *request, const pc_sweep_sink *sink, pc_sweep **sweep, pc_error *error);

/* Rows 0 .. count-1 of this shard, in the order of the list. */
int64_t pc_sweep_row_count(const pc_sweep *sweep);
pc_code pc_sweep_row(const pc_sweep *sweep, int64_t index, pc_run_row *row, pc_error *error);

/* Its trace, to be freed with pc_trace_record_free; of no devices if none was kept. Of one sweep one at a time. */
pc_code pc_sweep_trace(const pc_sweep *sweep, int64_t index, pc_trace_record *record, pc_error *error);

/* What row `index` is the result of, to be freed with pc_run_spec_free, and its labels. */
pc_code pc_sweep_spec(const pc_sweep *sweep, int64_t index, pc_run_spec *spec, pc_run_labels *labels, pc_error *error);

/* What measured profiles have to say of the answers that they gave, a line each. */
void pc_sweep_warn(const pc_sweep *sweep, void (*warn)(void *context, const char *text), void *context);

/* Removes the journal, where the results file is in its place. NULL is fine. */
void pc_sweep_free(pc_sweep *sweep);

/* Several shards of a sweep into one results file, byte for byte that of the same sweep without shards. A run that is
 * in several must be equal there. Of the sink `warn` alone is called, where runs are in none of them; it may be NULL.
 * PC_ERROR_INPUT if they are not shards of one sweep and of this build. */
typedef struct pc_sweep_merge_request {
    const char *output;
    const char *const *shards; /* paths of results files */
    int shard_count;
} pc_sweep_merge_request;

pc_code pc_sweep_merge(const pc_sweep_merge_request *request, const pc_sweep_sink *sink, pc_error *error);

#ifdef __cplusplus
}
#endif
#endif
