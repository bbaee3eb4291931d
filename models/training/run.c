#include "models/training/run.h"

#include "engine/alloc.h"
#include "models/training/run_bad_days.h"
#include "models/training/run_labels.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const double BYTES_PER_GIB = 1073741824.0;

pc_run_spec pc_run_spec_default(void) {
    return (pc_run_spec){
        .gpus = -1,
        .microbatch_size = -1,
        .seq_len = -1,
        .gpu_hour_price = NAN,
        .published_bubble_rate_span = NAN,
        .published_samples_per_s_per_gpu = NAN,
        .published_iteration_s = NAN,
        .published_mfu = NAN,
        .published_tflops_per_gpu = NAN,
        .published_hardware_tflops_per_gpu = NAN,
        .published_activation_gib = NAN,
        .published_pass_f_s = NAN,
        .published_memory_gib = NAN,
        .published_best_mfu = NAN,
    };
}

void pc_run_spec_free(pc_run_spec *spec) {
    pc_costs_free(&spec->costs);
    pc_free(spec->layers_of_part);
    pc_free(spec->recompute_of_part);
    memset(spec, 0, sizeof *spec);
}

void pc_run_detail_free(pc_run_detail *detail) {
    pc_replay_free(&detail->replay);
    pc_block_free(&detail->block);
    pc_free(detail->memory);
    memset(detail, 0, sizeof *detail);
}

const char *pc_run_status_name(pc_run_status status) {
    static const char *const names[] = {"ok", "out_of_memory", "infeasible"};
    return names[status];
}

static void copy_label(char *to, const char *from) {
    snprintf(to, PC_LABEL_SIZE, "%s", from);
}

/* Of a text that is too long the end, from a whole character of it on. */
static void copy_end(char *to, const char *from) {
    size_t length = strlen(from);
    if (length >= PC_LABEL_SIZE) from += length - (PC_LABEL_SIZE - 1);
    while (((unsigned char)*from & 0xc0) == 0x80) from++;
    copy_label(to, from);
}

static int64_t times_if_given(int64_t number, int64_t given) {
    return given < 0 ? -1 : number * given;
}

/* Every number that a run need not have. */
static void clear_numbers(pc_run_row *row) {
    double *const numbers[] = {&row->iteration_s,
                               &row->samples_per_s_per_gpu,
                               &row->tflops_per_gpu,
                               &row->mfu,
                               &row->hfu,
                               &row->bubble_rate_span,
                               &row->bubble_rate_makespan,
                               &row->activation_gib_max,
                               &row->memory_gib_max,
                               &row->tokens_per_s_per_gpu,
                               &row->hardware_tflops_per_gpu,
                               &row->peak_tflops,
                               &row->exposed_tp_s,
                               &row->exposed_pp_s,
                               &row->exposed_dp_s,
                               &row->exposed_optimizer_s,
                               &row->exposed_bubble_s,
                               &row->parameters_gib_max,
                               &row->gradients_gib_max,
                               &row->optimizer_gib_max,
                               &row->buffers_gib_max,
                               &row->memory_peak_s,
                               &row->standard_error_s,
                               &row->sent_tp_gib,
                               &row->sent_pp_gib,
                               &row->sent_dp_gib,
                               &row->link_utilisation_max,
                               &row->memory_limit_gib,
                               &row->pass_f_s,
                               &row->pass_b_s,
                               &row->pass_w_s,
                               &row->model_parameters,
                               &row->parameters,
                               &row->gpu_hours_per_million_tokens,
                               &row->cost_per_million_tokens};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) *numbers[i] = NAN;
    pc_bad_days_result none = pc_bad_days_none();
    pc_run_describe_bad_days(NULL, row);
    pc_run_fill_bad_days(&none, row);
    row->tp = row->dp = row->zero = row->sequence_parallel = -1;
}

static void copy_published(const pc_run_spec *spec, pc_run_row *row) {
    row->published_bubble_rate_span = spec->published_bubble_rate_span;
    row->published_samples_per_s_per_gpu = spec->published_samples_per_s_per_gpu;
    row->published_iteration_s = spec->published_iteration_s;
    row->published_mfu = spec->published_mfu;
    row->published_tflops_per_gpu = spec->published_tflops_per_gpu;
    row->published_hardware_tflops_per_gpu = spec->published_hardware_tflops_per_gpu;
    row->published_activation_gib = spec->published_activation_gib;
    row->published_pass_f_s = spec->published_pass_f_s;
    row->published_memory_gib = spec->published_memory_gib;
    row->published_best_mfu = spec->published_best_mfu;
}

static double seconds_if_given(pc_time time) {
    return time == PC_TIME_NOT_GIVEN ? NAN : pc_time_to_seconds(time);
}

static void fill_passes(const pc_generator *generator, const pc_time longest_ps[PC_PASS_KINDS], pc_run_row *row) {
    row->pass_f_s = seconds_if_given(longest_ps[PC_PASS_F]);
    row->pass_b_s = seconds_if_given(longest_ps[generator->splits ? PC_PASS_B : PC_PASS_BW]);
    if (generator->splits) row->pass_w_s = seconds_if_given(longest_ps[PC_PASS_W]);
}

/* Of the device that has the least room for activations; NaN where none has a limit. */
static double least_capacity_gib(const pc_costs *costs) {
    int64_t least = 0;
    for (int d = 0; d < costs->devices; d++) {
        int64_t bytes = costs->memory_capacity_bytes[d];
        if (bytes > 0 && (least == 0 || bytes < least)) least = bytes;
    }
    return least ? (double)least / BYTES_PER_GIB : NAN;
}

/* The list has a value a part. Where the run is known to be infeasible it may be of any length. */
static void describe_layout(const pc_run_spec *spec, pc_run_row *row) {
    const pc_cut *cut = &spec->iteration.cut;
    bool is_listed = spec->is_cluster && cut->layout == PC_CUT_LISTED;
    const char *name = spec->is_cluster && !is_listed ? pc_layout_name(cut->layout) : spec->layout;
    snprintf(row->layout, sizeof row->layout, "%s", is_listed ? "" : name);
    if (!is_listed || spec->infeasible[0] || !cut->layers_of_part) return;
    int parts = pc_placement_parts(spec->generator->placement, spec->devices, spec->chunks);
    if (parts >= 1 && parts <= PC_PARTS_MAX) pc_layout_write(cut->layers_of_part, parts, row->layout);
}

void pc_run_row_relabel(const pc_run_spec *spec, pc_run_row *row) {
    row->run = spec->run;
    copy_label(row->scenario, spec->scenario);
    copy_label(row->name, spec->name);
    copy_label(row->model, spec->model);
    copy_label(row->machine, spec->machine);
    describe_layout(spec, row);
    if (spec->is_cluster) copy_end(row->profile, spec->profile_text ? spec->profile_text : "");
    copy_published(spec, row);
}

/* What is known before the replay; all that it would give is "not defined". */
static void start_row(const pc_run_spec *spec, pc_run_row *row) {
    memset(row, 0, sizeof *row);
    pc_run_row_relabel(spec, row);
    copy_label(row->schedule, spec->generator->name);
    copy_label(row->recompute, spec->generator->recomputes ? "full" : "");
    clear_numbers(row);
    row->gpus = spec->gpus > 0 ? spec->gpus : spec->devices;
    row->pp = spec->devices;
    row->virtual_pp = spec->chunks;
    row->microbatch_size = spec->microbatch_size;
    row->microbatches = spec->microbatches;
    row->global_batch = times_if_given(spec->microbatches, spec->microbatch_size);
    row->seq_len = spec->seq_len;
    if (spec->generator->searches) copy_label(row->plan, spec->plans_equal ? "equal" : "costs");
    if (!spec->is_cluster && spec->has_activation) row->memory_limit_gib = least_capacity_gib(&spec->costs);
}

/* What did not fit, or what waited first when nothing could run any more. */
static void note_out_of_memory(const pc_schedule *schedule, const pc_out_of_memory *oom, bool waits_for_memory,
                               pc_run_row *row) {
    int64_t missing = oom->requested_bytes - (oom->capacity_bytes - oom->level_bytes);
    row->status = PC_RUN_OUT_OF_MEMORY;
    pc_write_message(
        row->message, sizeof row->message,
        "device %d: %s of microbatch %d, chunk %d at %.6g s %s %.4g GiB and finds %.4g GiB of %.4g GiB free: "
        "%.4g GiB too much (%s)",
        oom->device, pc_pass_kind_name((pc_pass_kind)oom->pass.kind), oom->pass.microbatch, oom->pass.chunk,
        pc_time_to_seconds(oom->time_ps),
        waits_for_memory ? "waits, and nothing else can run: it asks for" : "asks for",
        (double)oom->requested_bytes / BYTES_PER_GIB, (double)(oom->capacity_bytes - oom->level_bytes) / BYTES_PER_GIB,
        (double)oom->capacity_bytes / BYTES_PER_GIB, (double)missing / BYTES_PER_GIB, schedule->name);
}

static pc_code finish_row(const pc_run_spec *spec, const pc_schedule *schedule, const pc_replay *replay,
                          pc_run_row *row, pc_error *error) {
    pc_time iteration_ps;
    snprintf(row->engine, sizeof row->engine, "%s", pc_engine_way_name(replay->way));
    if (replay->out_of_memory) {
        note_out_of_memory(schedule, &replay->oom, spec->waits_for_memory, row);
        return PC_OK;
    }
    if (!pc_time_add(replay->makespan_ps, spec->overhead_ps, &iteration_ps))
        return pc_error_set(error, PC_ERROR_INPUT, "overhead: runs over; expected an iteration under 106 days");
    row->iteration_s = pc_time_to_seconds(iteration_ps);
    if (row->global_batch >= 0 && iteration_ps > 0)
        row->samples_per_s_per_gpu = (double)row->global_batch / row->iteration_s / (double)row->gpus;
    row->bubble_rate_span = replay->bubble_rate_span;
    row->bubble_rate_makespan = replay->bubble_rate_makespan;
    if (spec->has_activation) row->activation_gib_max = (double)replay->peak_bytes / BYTES_PER_GIB;
    row->trace_hash = replay->trace_hash;
    pc_time longest_ps[PC_PASS_KINDS];
    pc_costs_longest(&spec->costs, longest_ps);
    fill_passes(spec->generator, longest_ps, row);
    return PC_OK;
}

static pc_code replay_row(const pc_run_spec *spec, const pc_schedule *schedule, pc_run_row *row, pc_run_detail *detail,
                          pc_error *error) {
    const pc_replay_options options = {
        .with_trace = spec->trace, .engine = spec->engine, .waits_for_memory = spec->waits_for_memory};
    pc_code code = pc_replay_run(schedule, &spec->costs, &options, &detail->replay, error);
    return code ? code : finish_row(spec, schedule, &detail->replay, row, error);
}

static void note_infeasible(const char *message, pc_run_row *row) {
    row->status = PC_RUN_INFEASIBLE;
    snprintf(row->message, sizeof row->message, "%.*s", (int)sizeof row->message - 1, message);
}

static pc_code work_out_row(const pc_run_spec *spec, pc_run_row *row, pc_run_detail *detail, pc_error *error) {
    if (spec->infeasible[0]) {
        note_infeasible(spec->infeasible, row);
        return PC_OK;
    }
    pc_schedule schedule = {0};
    pc_error why = {0};
    pc_generate_request request = {.devices = spec->devices,
                                   .microbatches = spec->microbatches,
                                   .chunks = spec->chunks,
                                   .costs = &spec->costs,
                                   .threads = 1, /* runs go on beside each other */
                                   .plans_equal = spec->plans_equal,
                                   .memo = spec->memo};
    pc_code code = pc_generate(spec->generator, &request, &schedule, spec->trace ? &detail->block : NULL, &why);
    if (code == PC_ERROR_INPUT) {
        note_infeasible(why.message, row);
        return PC_OK;
    }
    if (code) return pc_error_set(error, code, "%s", why.message);
    code = replay_row(spec, &schedule, row, detail, error);
    pc_schedule_free(&schedule);
    return code;
}

/* ---- on a cluster ---- */

/* Of a cut that breaks a rule not all numbers are known. */
static int64_t known(int64_t number) {
    return number > 0 ? number : -1;
}

/* Sequences of all replicas; -1 also where they are too many to count, as no run that is done has. */
static int64_t global_batch_of(const pc_run_spec *spec) {
    int64_t sequences;
    if (__builtin_mul_overflow(spec->microbatches * spec->microbatch_size, spec->iteration.cut.dp, &sequences))
        return -1;
    return known(sequences);
}

/* On the GPU that has least; pc_samples_limit_memory gives the same to the stages. */
static int64_t least_room(const pc_iteration_spec *spec) {
    const pc_gpu *other = &spec->bad_days.other_gpu;
    int64_t own = pc_iteration_capacity(spec), others = other->memory_bytes - other->memory_reserved_bytes;
    bool has_others = spec->bad_days.other_nodes > 0 && spec->memory_limit_bytes == 0;
    return has_others && others < own ? others : own;
}

/* With a vocabulary that is padded for `tp` ranks. */
static double parameters_of(const pc_run_spec *spec, int tp) {
    pc_parameters parameters;
    pc_error unused;
    return pc_model_parameters(&spec->iteration.model, tp, &parameters, &unused) ? NAN : (double)parameters.total;
}

/* How the model is cut. */
static void start_cluster_row(const pc_run_spec *spec, pc_run_row *row) {
    static const char *const recompute[] = {"none", "selective", "full"};
    const pc_cut *cut = &spec->iteration.cut;
    row->tp = known(cut->tp);
    row->pp = known(cut->pp);
    row->dp = known(cut->dp);
    row->gpus = spec->gpus;
    row->zero = cut->zero;
    row->sequence_parallel = cut->sequence_parallel;
    row->microbatches = known(spec->microbatches);
    row->global_batch = global_batch_of(spec);
    row->peak_tflops = spec->iteration.machine.gpu.matrix_flops_per_s / 1e12;
    row->model_parameters = parameters_of(spec, cut->tp > 0 ? cut->tp : 1);
    row->parameters = parameters_of(spec, 1);
    row->memory_limit_gib = (double)least_room(&spec->iteration) / BYTES_PER_GIB;
    row->profile_hash = spec->profile_hash;
    pc_run_describe_bad_days(&spec->iteration, row);
    if (!spec->generator->recomputes)
        copy_label(row->recompute, cut->recompute_of_part ? "mixed" : recompute[cut->recompute]);
}

static double gib(int64_t bytes) {
    return (double)bytes / BYTES_PER_GIB;
}

static double larger(double a, double b) {
    return a > b || isnan(b) ? a : b;
}

/* The most over stages, each kind for itself; and when the fullest stage is at its fullest. */
static void fill_memory(const pc_iteration *iteration, pc_run_row *row) {
    int64_t peak = -1;
    for (int d = 0; iteration->memory && d < iteration->devices; d++) {
        const pc_device_memory *m = &iteration->memory[d];
        row->parameters_gib_max = larger(gib(m->parameters), row->parameters_gib_max);
        row->gradients_gib_max = larger(gib(m->gradients), row->gradients_gib_max);
        row->optimizer_gib_max = larger(gib(m->optimizer), row->optimizer_gib_max);
        row->buffers_gib_max = larger(gib(m->buffers), row->buffers_gib_max);
        if (m->peak_bytes <= peak) continue;
        peak = m->peak_bytes;
        row->memory_gib_max = gib(peak);
        row->memory_peak_s = pc_time_to_seconds(m->peak_ps);
    }
}

static void fill_rates(const pc_run_spec *spec, const pc_iteration *iteration, pc_run_row *row) {
    double gpus = (double)spec->gpus;
    row->iteration_s = iteration->iteration_s;
    row->standard_error_s = iteration->standard_error_s;
    row->tflops_per_gpu = iteration->tflops_per_gpu;
    row->mfu = iteration->mfu;
    row->hfu = iteration->hfu;
    if (!(iteration->iteration_s > 0)) return;
    row->hardware_tflops_per_gpu = iteration->hardware_flops / iteration->iteration_s / gpus / 1e12;
    row->samples_per_s_per_gpu = iteration->sequences / iteration->iteration_s / gpus;
    row->tokens_per_s_per_gpu = row->samples_per_s_per_gpu * (double)spec->seq_len;
    row->gpu_hours_per_million_tokens = 1e6 / row->tokens_per_s_per_gpu / 3600;
    row->cost_per_million_tokens = row->gpu_hours_per_million_tokens * spec->gpu_hour_price;
}

static void fill_times(const pc_iteration *iteration, pc_run_row *row) {
    row->exposed_tp_s = iteration->exposed.tp;
    row->exposed_pp_s = iteration->exposed.pp;
    row->exposed_dp_s = iteration->exposed.dp;
    row->exposed_optimizer_s = iteration->exposed.optimizer;
    row->exposed_bubble_s = iteration->exposed.bubble;
    row->bubble_rate_span = iteration->replay.bubble_rate_span;
    row->bubble_rate_makespan = iteration->replay.bubble_rate_makespan;
    row->activation_gib_max = gib(iteration->replay.peak_bytes);
    row->trace_hash = iteration->replay.trace_hash;
    row->sent_tp_gib = iteration->sent.tp_bytes / BYTES_PER_GIB;
    row->sent_pp_gib = iteration->sent.pp_bytes / BYTES_PER_GIB;
    row->sent_dp_gib = iteration->sent.dp_bytes / BYTES_PER_GIB;
    row->link_utilisation_max = iteration->link_utilisation_max;
}

static void finish_cluster_row(const pc_run_spec *spec, const pc_iteration *iteration, pc_run_row *row) {
    static const pc_run_status statuses[] = {[PC_ITERATION_OK] = PC_RUN_OK,
                                             [PC_ITERATION_OUT_OF_MEMORY] = PC_RUN_OUT_OF_MEMORY,
                                             [PC_ITERATION_INFEASIBLE] = PC_RUN_INFEASIBLE};
    row->status = statuses[iteration->status];
    snprintf(row->message, sizeof row->message, "%s", iteration->message);
    if (iteration->status != PC_ITERATION_INFEASIBLE) fill_memory(iteration, row);
    if (iteration->replay.devices > 0)
        snprintf(row->engine, sizeof row->engine, "%s", pc_engine_way_name(iteration->replay.way));
    if (iteration->status != PC_ITERATION_OK) return;
    fill_rates(spec, iteration, row);
    fill_times(iteration, row);
    fill_passes(spec->generator, iteration->longest_ps, row);
    pc_run_fill_bad_days(&iteration->bad_days, row);
}

static pc_code work_out_cluster_row(const pc_run_spec *spec, pc_run_row *row, pc_run_detail *detail, pc_error *error) {
    pc_iteration iteration = {.status = PC_ITERATION_OK};
    start_cluster_row(spec, row);
    if (spec->infeasible[0]) {
        note_infeasible(spec->infeasible, row);
        return PC_OK;
    }
    pc_error why = {0};
    pc_code code = pc_iteration_run(&spec->iteration, spec->cost, spec->trace, &iteration, &why);
    if (!code) code = pc_run_jobs(spec, &iteration, &why);
    if (code) pc_iteration_free(&iteration);
    if (code == PC_ERROR_INPUT) { /* of a sweep, the other runs go on */
        note_infeasible(why.message, row);
        return PC_OK;
    }
    if (code) return pc_error_set(error, code, "%s", why.message);
    finish_cluster_row(spec, &iteration, row);
    *detail = (pc_run_detail){.replay = iteration.replay,
                              .devices = iteration.memory ? iteration.devices : 0,
                              .memory = iteration.memory,
                              .block = iteration.block};
    iteration.replay = (pc_replay){.devices = 0}; /* all went to the caller */
    iteration.memory = NULL;
    iteration.block = (pc_block){.devices = 0};
    pc_iteration_free(&iteration);
    return PC_OK;
}

pc_code pc_run(const pc_run_spec *spec, pc_run_row *row, pc_run_detail *detail, pc_error *error) {
    pc_run_row made;
    memset(detail, 0, sizeof *detail);
    start_row(spec, &made);
    pc_code code =
        spec->is_cluster ? work_out_cluster_row(spec, &made, detail, error) : work_out_row(spec, &made, detail, error);
    if (!code) {
        *row = made;
        return PC_OK;
    }
    pc_run_detail_free(detail);
    pc_error_prefix(error, "run %" PRId64 " (%s)", spec->run, spec->name);
    return code;
}
