/* row.h: a row of the results table: what a run was asked for, what it came to, and its labels, as plain values. */
#ifndef PC_RESULTS_ROW_H
#define PC_RESULTS_ROW_H

#include "models/training/run.h"
#include "models/workload/layout.h"
#include "scenarios/intervals.h"
#include "scenarios/run_key.h"
#include "scenarios/run_labels.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A row of the results table: plain values, no ownership. Numbers that do not apply are NaN, whole numbers -1, text
 * empty. What each column means, and its unit, stands once, in results/columns.c. */
typedef struct pc_run_row {
    int64_t run;
    char scenario[PC_LABEL_SIZE];
    char name[PC_LABEL_SIZE];
    char model[PC_LABEL_SIZE];
    char machine[PC_LABEL_SIZE];
    int64_t gpus, tp, cp, ep, etp, pp, dp, virtual_pp, sequence_slices;
    char sequence_split[PC_LABEL_SIZE];
    char schedule[PC_LABEL_SIZE];
    int64_t microbatch_size, microbatches, global_batch, seq_len;
    char precision[PC_LABEL_SIZE]; /* of a cluster: bf16, fp16, or the recipe */
    char recompute[PC_LABEL_SIZE];
    char layout[PC_LAYOUT_SIZE];
    pc_run_status status;
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
    double exposed_tp_s, exposed_cp_s, exposed_ep_s, exposed_pp_s, exposed_dp_s, exposed_optimizer_s, exposed_bubble_s;
    double parameters_gib_max, gradients_gib_max, optimizer_gib_max, buffers_gib_max;
    double memory_peak_s;
    double memory_gib_of[PC_MEMORY_KINDS]; /* on the fullest GPU at its peak */
    double standard_error_s;
    int64_t zero, sequence_parallel;
    double published_mfu;
    double published_tflops_per_gpu;
    double published_hardware_tflops_per_gpu;
    double published_activation_gib;
    double sent_tp_gib, sent_cp_gib, sent_ep_gib, sent_pp_gib, sent_dp_gib;
    double link_utilisation_max;
    char profile[PC_LABEL_SIZE]; /* the path as it was written; of one that is too long its end */
    uint64_t profile_hash;
    double pass_f_s, pass_b_s, pass_w_s; /* b: BW's where B and W are one pass */
    double model_parameters;             /* as it is trained: the vocabulary padded for tp ranks */
    double parameters;                   /* of the model, however it is cut */
    double active_parameters;            /* what a token goes through */
    double published_pass_f_s;
    double published_memory_gib;
    double published_best_mfu;
    double memory_limit_gib;
    char making[PC_LABEL_SIZE]; /* pc_making_names, where it decides the order */
    char goal[PC_LABEL_SIZE];   /* pc_goal_names, likewise */
    char key[PC_RUN_KEY_SIZE];  /* run_key.h's, as text; pc_run_row_of leaves it empty, who keeps rows fills it in */
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
    char engine[16]; /* pc_engine_way_name; empty if nothing was run */
    double training_days, training_cost, training_gpu_hours, training_mwh;
    /* Of clusters, where the run has that number: scenarios/intervals.h. */
    double iteration_s_low, iteration_s_high, memory_gib_low, memory_gib_high;
    char kind[PC_KIND_SIZE];
    char iteration_basis[PC_BASIS_SIZE], memory_basis[PC_BASIS_SIZE];
    double host_memory_gib_max, memory_allocated_gib;
    double offload_fraction; /* of `offload: selective` */
} pc_run_row;

/* The row of a run, without labels where those are NULL; its key is left empty. */
void pc_run_row_of(const pc_run_spec *spec, const pc_run_labels *labels, const pc_run_result *result, pc_run_row *row);

/* Runs it, and makes its row: pc_run, whose error it says by the run's number and name. */
pc_code pc_run_row_make(const pc_run_spec *spec, const pc_run_labels *labels, pc_run_row *row, pc_run_detail *detail,
                        pc_error *error);

/* Gives a row that was worked out for another run of the same key the labels and published figures of this one, and
 * its intervals, which depend on the software that is named. */
void pc_run_row_relabel(const pc_run_spec *spec, const pc_run_labels *labels, pc_run_row *row);

/* A hash of the labels: runs of one key and these labels have one row. Not 0. */
uint64_t pc_run_labels_hash(const pc_run_labels *labels);

#ifdef __cplusplus
}
#endif
#endif
