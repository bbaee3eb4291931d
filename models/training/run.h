/* run.h: one run: a setting made concrete goes in, a row of the results table comes out.
 *
 * An iteration is the replay of the schedule plus a constant (optimizer step, gradient norm, data loading). With no
 * model of the iteration's end between them, successive iterations stand behind a barrier: the replay's makespan
 * counts.
 */
#ifndef PC_MODELS_TRAINING_RUN_H
#define PC_MODELS_TRAINING_RUN_H

#include "engine/api.h"
#include "engine/error.h"
#include "models/schedule/costs.h"
#include "models/schedule/generate.h"
#include "models/schedule/replay.h"

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { PC_LABEL_SIZE = 128 };

/* Everything a run depends on. Owns its costs: pc_run_spec_free. NaN and -1 are "not given". */
typedef struct pc_run_spec {
    int64_t run;                  /* its number in the whole list, from 1 */
    char scenario[PC_LABEL_SIZE]; /* the scenario's name */
    char name[PC_LABEL_SIZE];     /* the run's own, unique in its scenario: "1.5B-m24.zb-h1" */
    char model[PC_LABEL_SIZE];    /* labels; empty where not given */
    char machine[PC_LABEL_SIZE];
    const pc_generator *generator;
    int devices; /* p */
    int microbatches;
    int chunks;              /* v */
    int64_t microbatch_size; /* sequences; -1 not given */
    int64_t seq_len;         /* tokens; -1 not given */
    bool has_activation;     /* whether costs.activation_bytes were given: otherwise memory columns are empty */
    bool trace;              /* whether the results file keeps every pass and the memory curves */
    pc_time overhead_ps;     /* constant added to every iteration */
    pc_costs costs;
    /* What others measured or published for this run, to stand beside ours; NaN where nobody did. */
    double published_bubble_rate_span;
    double published_samples_per_s_per_gpu;
    double published_iteration_s;
} pc_run_spec;

PC_API void pc_run_spec_free(pc_run_spec *spec);

typedef enum pc_run_status { PC_RUN_OK, PC_RUN_OUT_OF_MEMORY, PC_RUN_INFEASIBLE } pc_run_status;

/* A row of the results table: plain values, no ownership. Numbers that do not apply are NaN, whole numbers -1, text
 * empty. What each column means, and its unit, stands once, in results/columns.c. */
typedef struct pc_run_row {
    int64_t run;
    char scenario[PC_LABEL_SIZE];
    char name[PC_LABEL_SIZE];
    char model[PC_LABEL_SIZE];
    char machine[PC_LABEL_SIZE];
    int64_t gpus, tp, pp, dp, virtual_pp;
    char schedule[PC_LABEL_SIZE];
    int64_t microbatch_size, microbatches, global_batch, seq_len;
    char recompute[PC_LABEL_SIZE];
    int64_t status; /* pc_run_status */
    double iteration_s;
    double samples_per_s_per_gpu;
    double tflops_per_gpu;
    double mfu, hfu;
    double bubble_rate_span, bubble_rate_makespan;
    double activation_gib_max;
    double memory_gib_max;
    double published_bubble_rate_span;
    double published_samples_per_s_per_gpu;
    double published_iteration_s;
    char message[256]; /* why the status is not ok */
    uint64_t trace_hash;
} pc_run_row;

/* "ok", "out_of_memory", "infeasible". */
PC_API const char *pc_run_status_name(pc_run_status status);

/* Generates, replays and sums up. A schedule that cannot exist for this shape is the row's status `infeasible`, one
 * that does not fit `out_of_memory`, both with their reason in `message`. `replay` is the caller's to free
 * (pc_replay_free) and holds a trace where spec->trace; it is empty where the run is infeasible. Pure but for memory:
 * runs of different specs may go on in different threads. */
PC_API pc_code pc_run(const pc_run_spec *spec, pc_run_row *row, pc_replay *replay, pc_error *error);

#ifdef __cplusplus
}
#endif
#endif
