#include "results/row.h"

#include "engine/field.h"
#include "engine/hash.h"
#include "results/columns.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const double BYTES_PER_GIB = 1073741824.0;

static double gib(double bytes) {
    return bytes / BYTES_PER_GIB;
}

static double gib_if_known(int64_t bytes) {
    return bytes < 0 ? NAN : gib((double)bytes);
}

/* Of a cut that breaks a rule not all numbers are known. */
static int64_t known(int64_t number) {
    return number > 0 ? number : -1;
}

static void copy_label(char *to, const char *from) {
    snprintf(to, PC_LABEL_SIZE, "%s", from);
}

/* ---- labels ---- */

/* A label that a row has as it is. */
typedef struct label {
    pc_field field; /* in pc_run_labels */
    size_t place;   /* in pc_run_row */
} label;

#define LABEL(member, kind)                                                                                            \
    { {.name = #member, .type = PC_FIELD_##kind, PC_FIELD_AT(pc_run_labels, member)}, offsetof(pc_run_row, member) }

static const label labels_of_row[] = {
    LABEL(run, INT64),
    LABEL(scenario, TEXT),
    LABEL(name, TEXT),
    LABEL(model, TEXT),
    LABEL(machine, TEXT),
    LABEL(profile, TEXT),
    LABEL(published_bubble_rate_span, ANY),
    LABEL(published_samples_per_s_per_gpu, ANY),
    LABEL(published_iteration_s, ANY),
    LABEL(published_mfu, ANY),
    LABEL(published_tflops_per_gpu, ANY),
    LABEL(published_hardware_tflops_per_gpu, ANY),
    LABEL(published_activation_gib, ANY),
    LABEL(published_pass_f_s, ANY),
    LABEL(published_memory_gib, ANY),
    LABEL(published_best_mfu, ANY),
};

/* Those that decide something else of it. */
static const pc_field other_labels[] = {
    {.name = "layout", .type = PC_FIELD_TEXT, PC_FIELD_AT(pc_run_labels, layout)},
    {.name = "software", .type = PC_FIELD_TEXT, PC_FIELD_AT(pc_run_labels, software)},
};

uint64_t pc_run_labels_hash(const pc_run_labels *labels) {
    pc_hash hash = {1, 1};
    for (size_t i = 0; i < sizeof labels_of_row / sizeof *labels_of_row; i++)
        pc_field_hash(&labels_of_row[i].field, labels, &hash);
    for (size_t i = 0; i < sizeof other_labels / sizeof *other_labels; i++)
        pc_field_hash(&other_labels[i], labels, &hash);
    return hash.low ? hash.low : 1;
}

/* The list has a value a part. Where the run is known to be infeasible it may be of any length. */
static void describe_layout(const pc_run_spec *spec, const pc_run_labels *labels, pc_run_row *row) {
    const pc_cut *cut = &spec->iteration.cut;
    bool is_listed = spec->is_cluster && cut->layout == PC_CUT_LISTED;
    const char *name = spec->is_cluster && !is_listed ? pc_layout_name(cut->layout) : labels->layout;
    snprintf(row->layout, sizeof row->layout, "%s", is_listed ? "" : name);
    if (!is_listed || spec->infeasible[0] || !cut->layers_of_part) return;
    int parts = pc_placement_parts(pc_generator_placement(spec->generator, spec->chunks, spec->slices), spec->devices,
                                   spec->chunks);
    pc_layout_shape shape = {parts, cut->mtp_listed, cut->mtp_ahead};
    if (parts >= 1 && parts <= PC_PARTS_MAX) pc_layout_write(cut->layers_of_part, &shape, row->layout);
}

/* ---- intervals ---- */

/* What the costs of a profile do not know; that of rooflines is in the runs that lines are learned from. */
static double error_of_profile(const pc_run_spec *spec, const pc_run_row *row) {
    bool is_known = spec->has_kernels && row->standard_error_s >= 0.0 && row->iteration_s > 0.0;
    return is_known ? row->standard_error_s / row->iteration_s : 0.0;
}

static void copy_basis(char to[PC_BASIS_SIZE], const char *basis) {
    memset(to, 0, PC_BASIS_SIZE); /* nothing is left of a longer one */
    snprintf(to, PC_BASIS_SIZE, "%s", basis);
}

static void take_intervals(const pc_run_spec *spec, const char *software, pc_run_row *row) {
    pc_interval_kind kind = pc_interval_kind_of(spec, software);
    pc_interval_kind_text(&kind, row->kind);
    if (row->iteration_s > 0.0) {
        const pc_interval_line *line = pc_interval_find(PC_INTERVAL_TIME, &kind);
        pc_interval_line used = spec->has_tuning ? pc_interval_line_tuned(line) : *line;
        pc_interval time = pc_interval_of(&used, row->iteration_s, spec->gpus, error_of_profile(spec, row));
        row->iteration_s_low = time.low, row->iteration_s_high = time.high;
        copy_basis(row->iteration_basis, line->basis);
    }
    if (row->memory_gib_max > 0.0) {
        const pc_interval_line *line = pc_interval_find(PC_INTERVAL_MEMORY, &kind);
        pc_interval memory = pc_interval_of(line, row->memory_gib_max, spec->gpus, 0.0);
        row->memory_gib_low = memory.low, row->memory_gib_high = memory.high;
        copy_basis(row->memory_basis, line->basis);
    }
}

static void describe_labels(const pc_run_spec *spec, const pc_run_labels *labels, pc_run_row *row) {
    for (size_t i = 0; i < sizeof labels_of_row / sizeof *labels_of_row; i++) {
        const label *one = &labels_of_row[i];
        memcpy((char *)row + one->place, (const char *)labels + one->field.place, one->field.size);
    }
    describe_layout(spec, labels, row);
}

void pc_run_row_relabel(const pc_run_spec *spec, const pc_run_labels *labels, pc_run_row *row) {
    describe_labels(spec, labels, row);
    if (spec->is_cluster) take_intervals(spec, labels->software, row);
}

/* ---- what was asked for ---- */

static const char *precision_name(pc_precision precision) {
    return precision == PC_PRECISION_FP16 ? "fp16" : "bf16";
}

static void describe_cluster(const pc_run_spec *spec, pc_run_row *row) {
    char recompute[PC_RECOMPUTATION_SIZE];
    const pc_cut *cut = &spec->iteration.cut;
    row->tp = known(cut->tp);
    row->cp = pc_cut_cp(cut);
    row->ep = pc_cut_ep(cut);
    row->etp = pc_model_has_experts(&spec->iteration.model) ? pc_cut_etp(cut) : 1;
    row->pp = known(cut->pp);
    row->dp = known(cut->dp);
    row->gpus = spec->gpus;
    row->zero = cut->zero;
    row->sequence_parallel = cut->sequence_parallel;
    if (cut->offload.kinds & PC_OFFLOAD_SELECTIVE) row->offload_fraction = cut->offload.fraction;
    row->microbatches = known(spec->microbatches);
    row->peak_tflops = spec->iteration.machine.gpu.matrix_flops_per_s / 1e12;
    row->profile_hash = spec->profile_hash;
    const pc_model *model = &spec->iteration.model;
    copy_label(row->precision, model->low.name[0] ? model->low.name : precision_name(model->precision));
    pc_recomputation_write(pc_cut_recomputation(cut), recompute);
    bool is_by_flops = cut->sequence_split == PC_SEQUENCE_SPLIT_FLOPS;
    if (row->sequence_slices > 1) copy_label(row->sequence_split, is_by_flops ? "flops" : "even");
    bool is_said = !spec->generator->recomputes || cut->recompute > PC_RECOMPUTE_FULL;
    if (is_said) copy_label(row->recompute, cut->recompute_of_part ? "mixed" : recompute);
}

static void describe(const pc_run_spec *spec, pc_run_row *row) {
    copy_label(row->schedule, spec->generator->name);
    copy_label(row->recompute, spec->generator->recomputes ? "full" : "");
    row->gpus = spec->gpus > 0 ? spec->gpus : spec->devices;
    row->pp = spec->devices;
    pc_placement placement = pc_generator_placement(spec->generator, spec->chunks, spec->slices);
    row->sequence_slices = pc_placement_slices(placement, spec->chunks);
    row->virtual_pp = spec->chunks / row->sequence_slices;
    row->microbatch_size = spec->microbatch_size;
    row->microbatches = spec->microbatches;
    row->seq_len = spec->seq_len;
    if (pc_generator_has_making(spec->generator, spec->making)) copy_label(row->making, pc_making_names[spec->making]);
    if (pc_generator_has_goal(spec->generator, spec->making)) copy_label(row->goal, pc_goal_names[spec->goal]);
    if (spec->is_cluster) describe_cluster(spec, row);
}

static double if_positive(double number) {
    return number > 0 ? number : NAN;
}

static void describe_bad_days(const pc_run_spec *spec, pc_run_row *row) {
    const pc_bad_days *days = &spec->iteration.bad_days;
    if (!spec->is_cluster || days->samples <= 0) return;
    row->samples = days->samples;
    row->jitter = days->passes.quantiles ? NAN : spec->iteration.jitter;
    row->gpu_jitter = days->gpu_jitter;
    row->link_jitter = days->link_jitter;
    row->slow_gpus = days->slow_gpus;
    if (days->has_slow_stage) row->slow_stage = days->slow_stage;
    if (days->slow_gpus > 0 || days->has_slow_stage) row->slow_factor = days->slow_factor;
    row->bad_links = days->bad_links;
    if (days->bad_links > 0) row->bad_factor = days->bad_factor;
    row->other_nodes = days->other_nodes;
    if (!pc_bad_days_of_job(days)) return;
    row->mtbf_s = if_positive(days->mtbf_s);
    row->checkpoint_s = days->checkpoint_s;
    if (days->mtbf_s > 0) row->spare_nodes = days->spare_nodes;
}

/* ---- what came of it ---- */

/* The board's power where nobody says more; NaN where that is not known either. */
static double watts_of(const pc_run_spec *spec) {
    double board = spec->iteration.machine.gpu.power_w;
    if (spec->watts > 0) return (double)spec->watts;
    return board > 0.0 ? board : NAN;
}

static void take_times(const pc_run_result *result, pc_run_row *row) {
    row->iteration_s = result->iteration_s;
    row->standard_error_s = result->standard_error_s;
    row->bubble_rate_span = result->bubble_rate_span;
    row->bubble_rate_makespan = result->bubble_rate_makespan;
    row->exposed_tp_s = result->exposed.tp;
    row->exposed_cp_s = result->exposed.cp;
    row->exposed_ep_s = result->exposed.ep;
    row->exposed_pp_s = result->exposed.pp;
    row->exposed_dp_s = result->exposed.dp;
    row->exposed_optimizer_s = result->exposed.optimizer;
    row->exposed_bubble_s = result->exposed.bubble;
    row->pass_f_s = result->pass_f_s;
    row->pass_b_s = result->pass_b_s;
    row->pass_w_s = result->pass_w_s;
}

static void take_rates(const pc_run_spec *spec, const pc_run_result *result, pc_run_row *row) {
    double gpus = (double)row->gpus;
    row->tflops_per_gpu = result->tflops_per_gpu;
    row->mfu = result->mfu;
    row->hfu = result->hfu;
    if (!(result->iteration_s > 0)) return;
    row->samples_per_s_per_gpu = result->sequences / result->iteration_s / gpus;
    if (!spec->is_cluster) return;
    row->hardware_tflops_per_gpu = result->hardware_flops / result->iteration_s / gpus / 1e12;
    row->tokens_per_s_per_gpu = row->samples_per_s_per_gpu * (double)spec->seq_len;
    row->gpu_hours_per_million_tokens = 1e6 / row->tokens_per_s_per_gpu / 3600;
    row->cost_per_million_tokens = row->gpu_hours_per_million_tokens * spec->gpu_hour_price;
    row->training_days = result->training_s / 86400;
    row->training_gpu_hours = row->training_days * 24 * gpus;
    row->training_cost = row->training_gpu_hours * spec->gpu_hour_price;
    row->training_mwh = row->training_gpu_hours * watts_of(spec) / 1e6;
}

static void take_bytes(const pc_run_result *result, pc_run_row *row) {
    row->activation_gib_max = gib_if_known(result->activation_bytes);
    row->parameters_gib_max = gib_if_known(result->parameters_bytes);
    row->gradients_gib_max = gib_if_known(result->gradients_bytes);
    row->optimizer_gib_max = gib_if_known(result->optimizer_bytes);
    row->buffers_gib_max = gib_if_known(result->buffers_bytes);
    row->memory_gib_max = gib_if_known(result->memory_bytes);
    row->host_memory_gib_max = gib_if_known(result->host_memory_bytes);
    row->memory_allocated_gib = gib_if_known(result->memory_allocated_bytes);
    row->memory_peak_s = result->memory_peak_s;
    for (int kind = 0; kind < PC_MEMORY_KINDS; kind++)
        row->memory_gib_of[kind] = gib_if_known(result->memory_bytes_of[kind]);
    row->memory_limit_gib = gib_if_known(result->memory_limit_bytes);
    row->sent_tp_gib = gib(result->sent.tp_bytes);
    row->sent_cp_gib = gib(result->sent.cp_bytes);
    row->sent_ep_gib = gib(result->sent.ep_bytes);
    row->sent_pp_gib = gib(result->sent.pp_bytes);
    row->sent_dp_gib = gib(result->sent.dp_bytes);
    row->link_utilisation_max = result->link_utilisation_max;
}

#define PUT_QUANTILE(from, field, unit)                                                                                \
    (row->field##unit = (from).value, row->field##_low##unit = (from).low, row->field##_high##unit = (from).high)

static void take_bad_days(const pc_bad_days_result *days, pc_run_row *row) {
    row->iteration_good_s = days->good_s;
    row->iteration_mean_s = days->iteration_mean_s;
    row->iteration_mean_error_s = days->iteration_mean_error_s;
    row->slowdown_mean = days->good_s > 0 ? days->iteration_mean_s / days->good_s : NAN;
    PUT_QUANTILE(days->iteration_p05_s, iteration_p05, _s);
    PUT_QUANTILE(days->iteration_p50_s, iteration_p50, _s);
    PUT_QUANTILE(days->iteration_p95_s, iteration_p95, _s);
    PUT_QUANTILE(days->iteration_p99_s, iteration_p99, _s);
    row->goodput_mean = days->goodput_mean;
    row->goodput_mean_error = days->goodput_mean_error;
    PUT_QUANTILE(days->goodput_p05, goodput_p05, );
    PUT_QUANTILE(days->goodput_p50, goodput_p50, );
    PUT_QUANTILE(days->goodput_p95, goodput_p95, );
    row->failures_mean = days->failures_mean;
    row->checkpoint_interval_s = days->interval_s;
}

void pc_run_row_of(const pc_run_spec *spec, const pc_run_labels *labels, const pc_run_result *result, pc_run_row *row) {
    const pc_run_labels none = pc_run_labels_none();
    pc_run_row_clear(row);
    if (!labels) labels = &none;
    describe_labels(spec, labels, row);
    describe(spec, row);
    describe_bad_days(spec, row);
    row->status = result->status;
    snprintf(row->message, sizeof row->message, "%s", result->message);
    if (result->is_replayed) snprintf(row->engine, sizeof row->engine, "%s", pc_engine_way_name(result->way));
    row->trace_hash = result->trace_hash;
    row->global_batch = result->global_batch;
    row->model_parameters = result->model_parameters;
    row->parameters = result->parameters;
    row->active_parameters = result->active_parameters;
    take_times(result, row);
    take_rates(spec, result, row);
    take_bytes(result, row);
    take_bad_days(&result->bad_days, row);
    if (spec->is_cluster) take_intervals(spec, labels->software, row);
}

pc_code pc_run_row_make(const pc_run_spec *spec, const pc_run_labels *labels, pc_run_row *row, pc_run_detail *detail,
                        pc_error *error) {
    pc_run_result result;
    pc_code code = pc_run(spec, &result, detail, error);
    if (!code)
        pc_run_row_of(spec, labels, &result, row);
    else if (labels)
        pc_error_prefix(error, "run %" PRId64 " (%s)", labels->run, labels->name);
    return code;
}
