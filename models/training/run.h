/* run.h: one run: a setting made concrete goes in, a row of the results table comes out.
 *
 * There are two sorts. Where costs are given, an iteration is the replay of the schedule plus a constant (optimizer
 * step, gradient norm, data loading): with no model of the iteration's end between them, successive iterations stand
 * behind a barrier, and the replay's makespan counts. Where they follow from a model on a machine (is_cluster), the
 * iteration is iteration.h's.
 */
#ifndef PC_MODELS_TRAINING_RUN_H
#define PC_MODELS_TRAINING_RUN_H

#include "engine/api.h"
#include "engine/error.h"
#include "models/schedule/block.h"
#include "models/schedule/costs.h"
#include "models/schedule/generate.h"
#include "models/schedule/replay.h"
#include "models/training/iteration.h"
#include "models/workload/layout.h"

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { PC_LABEL_SIZE = 128, PC_RUN_KEY_SIZE = 33 };

/* Everything a run depends on. Owns its costs and lists: pc_run_spec_free. NaN and -1 are "not given". */
typedef struct pc_run_spec {
    int64_t run;                  /* its number in the whole list, from 1 */
    char scenario[PC_LABEL_SIZE]; /* the scenario's name */
    char name[PC_LABEL_SIZE];     /* the run's own, unique in its scenario: "1.5B-m24.zb-h1" */
    char model[PC_LABEL_SIZE];    /* labels; empty where not given */
    char machine[PC_LABEL_SIZE];
    const pc_generator *generator;
    char layout[8];          /* a label too: "even" or "ends", by which given times have activations of a model's shape;
                              * on clusters the iteration says it */
    int64_t gpus;            /* in all; -1 not known: then p of them count */
    int devices;             /* p */
    int microbatches;        /* of one pipeline */
    int chunks;              /* v */
    bool plans_equal;        /* pc_generate_request's */
    int64_t microbatch_size; /* sequences; -1 not given */
    int64_t seq_len;         /* tokens; -1 not given */
    bool has_activation;     /* whether costs.activation_bytes were given: otherwise memory columns are empty */
    bool trace;              /* whether the results file keeps every pass and the memory curves */
    pc_time overhead_ps;     /* constant added to every iteration */
    pc_engine_mode engine;   /* of given costs, as the next; on clusters the iteration says it */
    bool waits_for_memory;   /* see pc_replay_options */
    pc_costs costs;          /* empty where is_cluster */
    bool is_cluster;
    pc_iteration_spec iteration; /* where is_cluster; its lists are those below */
    const char *profile_path;    /* where measured costs are to come from, as it counts from where we are; NULL: the
                                  * roofline. Borrowed from the scenario, as the next: the path as it was written */
    const char *profile_text;
    const pc_cost_model *cost; /* of the kernels, made of that profile by who runs this, and `iteration.machine` with
                                * it; NULL: the roofline. Borrowed */
    uint64_t profile_hash;     /* 0: none */
    int32_t *layers_of_part;   /* or NULL; owned, as the next */
    pc_recompute *recompute_of_part;
    bool has_profile_jitter; /* passes are to scatter as that profile's kernels do: who opens it fills in
                              * iteration.bad_days.passes */
    double gpu_hour_price;   /* in any currency */
    pc_search_memo *memo;    /* of searches for schedules that other runs had, where costs are given; on clusters the
                              * iteration has it. NULL: none. What comes out does not depend on it. Borrowed */
    char infeasible[256];    /* a rule that the numbers break, known before the run; empty where there is none */
    /* What others measured or published for this run, to stand beside ours; NaN where nobody did. */
    double published_bubble_rate_span;
    double published_samples_per_s_per_gpu;
    double published_iteration_s;
    double published_mfu;
    double published_tflops_per_gpu;
    double published_hardware_tflops_per_gpu;
    double published_activation_gib;
    double published_pass_f_s;
    double published_memory_gib;
    double published_best_mfu; /* of a sweep of which this run is one */
} pc_run_spec;

/* Nothing given, nothing published. */
PC_API pc_run_spec pc_run_spec_default(void);
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
    char layout[PC_LAYOUT_SIZE];
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
    /* Of clusters alone. */
    double tokens_per_s_per_gpu;
    double hardware_tflops_per_gpu;
    double peak_tflops;
    double exposed_tp_s, exposed_pp_s, exposed_dp_s, exposed_optimizer_s, exposed_bubble_s;
    double parameters_gib_max, gradients_gib_max, optimizer_gib_max, buffers_gib_max;
    double memory_peak_s;
    double standard_error_s;
    int64_t zero, sequence_parallel;
    double published_mfu;
    double published_tflops_per_gpu;
    double published_hardware_tflops_per_gpu;
    double published_activation_gib;
    double sent_tp_gib, sent_pp_gib, sent_dp_gib;
    double link_utilisation_max;
    char profile[PC_LABEL_SIZE]; /* the path as it was written; of one that is too long its end */
    uint64_t profile_hash;
    double pass_f_s, pass_b_s, pass_w_s; /* b: BW's where B and W are one pass */
    double model_parameters;             /* as it is trained: the vocabulary padded for tp ranks */
    double parameters;                   /* of the model, however it is cut */
    double published_pass_f_s;
    double published_memory_gib;
    double published_best_mfu;
    double memory_limit_gib;
    char plan[PC_LABEL_SIZE];  /* "costs" or "equal", of schedules that search */
    char key[PC_RUN_KEY_SIZE]; /* run_key.h's, as text; pc_run leaves it empty, who keeps rows fills it in */
    double gpu_hours_per_million_tokens, cost_per_million_tokens;
    /* Of samples: bad_days.h. What was asked for, and what came of it. */
    int64_t samples, slow_gpus, slow_stage, bad_links, other_nodes, spare_nodes;
    double jitter, gpu_jitter, link_jitter, slow_factor, bad_factor, mtbf_s, checkpoint_s;
    double iteration_good_s, slowdown_mean;
    double iteration_mean_s, iteration_mean_error_s;
    double iteration_p05_s, iteration_p05_low_s, iteration_p05_high_s;
    double iteration_p50_s, iteration_p50_low_s, iteration_p50_high_s;
    double iteration_p95_s, iteration_p95_low_s, iteration_p95_high_s;
    double iteration_p99_s, iteration_p99_low_s, iteration_p99_high_s;
    double goodput_mean, goodput_mean_error;
    double goodput_p05, goodput_p05_low, goodput_p05_high;
    double goodput_p50, goodput_p50_low, goodput_p50_high;
    double goodput_p95, goodput_p95_low, goodput_p95_high;
    double failures_mean, checkpoint_interval_s;
    char engine[16]; /* pc_engine_way_name; empty where nothing was run */
} pc_run_row;

/* What a run was made of, for figures and results files. Owned: pc_run_detail_free; a zeroed one is fine. */
typedef struct pc_run_detail {
    pc_replay replay; /* with a trace where spec->trace; empty where the run is infeasible */
    int devices;      /* entries of memory; 0 where there are none */
    pc_device_memory *memory;
    pc_block block; /* what the schedule repeats; without devices where that is not known, or no trace was asked for */
} pc_run_detail;

PC_API void pc_run_detail_free(pc_run_detail *detail);

/* "ok", "out_of_memory", "infeasible". */
PC_API const char *pc_run_status_name(pc_run_status status);

/* Generates, replays and sums up. A schedule that cannot exist for this shape, and all that pc_iteration_run refuses,
 * is the row's status `infeasible`, what does not fit `out_of_memory`, both with their reason in `message`. `detail` is
 * the caller's to free. Pure but for memory: runs of different specs may go on in different threads. */
PC_API pc_code pc_run(const pc_run_spec *spec, pc_run_row *row, pc_run_detail *detail, pc_error *error);

#ifdef __cplusplus
}
#endif
#endif
