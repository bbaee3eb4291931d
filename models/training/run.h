/* run.h: one run: a setting made concrete goes in, what it comes to comes out, as plain numbers. Its names, and the
 * row of the results table that is made of all this, are others' (scenarios/run_labels.h, results/row.h).
 *
 * There are two sorts. If costs are given, an iteration is the replay of the schedule plus a constant (optimizer step,
 * gradient norm, data loading). There is no model of the iteration's end then: successive iterations stand behind a
 * barrier, and the replay's makespan counts. Where they follow from a model on a machine (is_cluster), the iteration is
 * iteration.h's.
 */
#ifndef PC_MODELS_TRAINING_RUN_H
#define PC_MODELS_TRAINING_RUN_H

#include "engine/error.h"
#include "models/schedule/block.h"
#include "models/schedule/costs.h"
#include "models/schedule/generate.h"
#include "models/schedule/replay.h"
#include "models/training/iteration.h"

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What files say of the kernels and the host of the machine's GPU, and of that of bad days: it holds where a profile
 * has measured kernels. `said` is the first key by which the scenario says otherwise, which has no place beside such a
 * profile; NULL: none. Static storage. */
typedef struct pc_gpu_kernels {
    double attention_efficiency, unfused, launch_s;
} pc_gpu_kernels;
typedef struct pc_run_kernels {
    pc_gpu_kernels own, other;
    const char *said;
} pc_run_kernels;

/* Everything a run depends on. Owns its costs and lists: pc_run_spec_free. NaN and -1 are "not given". */
typedef struct pc_run_spec {
    const pc_generator *generator;
    int64_t gpus;                /* in all; -1 not known: then p of them count */
    int devices;                 /* p */
    int microbatches;            /* of one pipeline */
    int chunks;                  /* v; with slices all those of a stage's parts */
    int slices;                  /* of a part, where stages have several (pc_generator_has_sliced_parts); else 0 */
    pc_making making;            /* what its order is made for */
    pc_goal goal;                /* what its search minimises */
    int64_t microbatch_size;     /* sequences; -1 not given */
    int64_t seq_len;             /* tokens; -1 not given */
    bool has_activation;         /* whether costs.activation_bytes were given: otherwise memory columns are empty */
    bool trace;                  /* whether the results file keeps every pass and the memory curves */
    pc_time overhead_ps;         /* constant added to every iteration */
    pc_engine_mode engine;       /* of given costs, as the next; on clusters the iteration says it */
    bool waits_for_memory;       /* see pc_replay_options */
    pc_costs costs;              /* empty where is_cluster */
    int64_t *memory_limit_bytes; /* [devices], of given costs: pc_memory_limit's; NULL: none; owned */
    bool is_cluster;
    pc_iteration_spec iteration;   /* where is_cluster; its lists are those below */
    const char *profile_path;      /* where measured costs are to come from, as it counts from where we are; NULL: the
                                    * roofline. Borrowed from the scenario */
    const char *shipped_profile;   /* that of the library which the GPU's file names, if there is no other: who runs
                                    * this opens it. NULL: none. Static storage */
    pc_run_kernels beside_profile; /* where there is a profile_path */
    const pc_cost_model *cost; /* of the kernels, made of that profile by who runs this, and `iteration.machine` with
                                * it; NULL: the roofline. Borrowed */
    uint64_t profile_hash;     /* 0: none */
    int32_t *layers_of_part;   /* or NULL; owned, as the next */
    pc_recomputation *recompute_of_part;
    bool has_kernels;        /* that profile has measured kernels: elsewhere the roofline's standard error stands */
    bool has_tuning;         /* that profile is fitted to whole runs, which takes the library's bias away */
    bool has_profile_jitter; /* passes are to scatter as that profile's kernels do: who opens it fills in
                              * iteration.bad_days.passes */
    double gpu_hour_price;   /* in any currency */
    int64_t watts;           /* that a GPU takes, with its share of all else; -1: its board's power */
    int64_t tokens;          /* of the whole training; -1 not given */
    pc_search_memo *memo;    /* of searches for schedules that other runs had, where costs are given; on clusters the
                              * iteration has it. NULL: none. What comes out does not depend on it. Borrowed */
    char infeasible[256];    /* a rule that the numbers break, known before the run; empty if there is none */
} pc_run_spec;

/* Nothing given. */
pc_run_spec pc_run_spec_default(void);
void pc_run_spec_free(pc_run_spec *spec);

/* Of activations, at given costs. */
static inline pc_memory_limit pc_run_memory_limit(const pc_run_spec *spec) {
    pc_memory_limit limit = {spec->memory_limit_bytes};
    return limit;
}

/* What a run comes to: SI units; a number that does not apply is NaN, a whole number -1. */
typedef struct pc_run_result {
    pc_run_status status;
    char message[256];       /* why the status is not OK */
    bool is_replayed;        /* whether its schedule was; then */
    pc_engine_way way;       /* in this way */
    uint64_t trace_hash;     /* pc_replay's; 0 unless the status is OK */
    double iteration_s;      /* this, and all that is not said to be known before, only where the status is OK */
    double standard_error_s; /* of iteration_s */
    double sequences;        /* in an iteration, all replicas */
    double tflops_per_gpu;   /* model FLOPs */
    double hardware_flops;   /* of an iteration, all GPUs, with recomputation */
    double mfu, hfu;
    double bubble_rate_span, bubble_rate_makespan;
    double pass_f_s, pass_b_s, pass_w_s; /* the longest of each; b: BW's where B and W are one pass */
    pc_exposed exposed;
    pc_sent sent;
    double link_utilisation_max;
    /* The most over stages; but for activations also of what does not fit in time. */
    int64_t activation_bytes, parameters_bytes, gradients_bytes, optimizer_bytes, buffers_bytes, memory_bytes;
    int64_t memory_bytes_of[PC_MEMORY_KINDS]; /* on the fullest stage's GPU, where the status is OK */
    int64_t host_memory_bytes;                /* a GPU's share of what is on the host */
    int64_t memory_allocated_bytes;           /* as torch counts them, the most over stages (iteration.h) */
    double memory_peak_s;                     /* when the fullest stage is at its fullest */
    pc_bad_days_result bad_days;
    double training_s; /* all of the spec's tokens: by the goodput where jobs were sampled, by the mean iteration where
                        * iterations were, else by iteration_s. NaN if it would never end */
    /* Known before the run. */
    int64_t global_batch;       /* sequences of all replicas; -1 also where they cannot be counted */
    int64_t memory_limit_bytes; /* of the device that has least: of given times for activations, if any has a limit */
    double model_parameters;    /* as it is trained: the vocabulary padded for tp ranks */
    double parameters;          /* of the model, however it is cut */
    double active_parameters;   /* of these what a token goes through (pc_parameters) */
} pc_run_result;

/* What a run was made of, for figures and results files. Owned: pc_run_detail_free; a zeroed one is fine. */
typedef struct pc_run_detail {
    pc_replay replay; /* with a trace where spec->trace; empty if the run is infeasible */
    int devices;      /* entries of memory; 0 if there are none */
    pc_device_memory *memory;
    pc_block block; /* what the schedule repeats; without devices where that is not known, or no trace was asked for */
} pc_run_detail;

void pc_run_detail_free(pc_run_detail *detail);

/* Generates, replays and sums up. A schedule that cannot exist for this shape, and all that pc_iteration_run refuses,
 * is the result's status INFEASIBLE, what does not fit OUT_OF_MEMORY, both with their reason in `message`. `detail` is
 * the caller's to free. Pure but for memory: runs of different specs may go on in different threads. */
pc_code pc_run(const pc_run_spec *spec, pc_run_result *result, pc_run_detail *detail, pc_error *error);

#ifdef __cplusplus
}
#endif
#endif
