#include "models/training/run.h"

#include "engine/alloc.h"
#include "engine/numbers.h"
#include "models/training/job.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const double BYTES_PER_GIB = 1073741824.0;

pc_run_spec pc_run_spec_default(void) {
    return (pc_run_spec){
        .gpus = -1, .microbatch_size = -1, .seq_len = -1, .gpu_hour_price = NAN, .watts = -1, .tokens = -1};
}

void pc_run_spec_free(pc_run_spec *spec) {
    pc_costs_free(&spec->costs);
    pc_free(spec->memory_limit_bytes);
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

/* ---- what is known before ---- */

static pc_run_result no_result(void) {
    const double none = NAN;
    pc_run_result result = {.iteration_s = none,
                            .standard_error_s = none,
                            .sequences = none,
                            .tflops_per_gpu = none,
                            .hardware_flops = none,
                            .mfu = none,
                            .hfu = none,
                            .bubble_rate_span = none,
                            .bubble_rate_makespan = none,
                            .pass_f_s = none,
                            .pass_b_s = none,
                            .pass_w_s = none,
                            .exposed = pc_exposed_none(),
                            .sent = pc_sent_none(),
                            .link_utilisation_max = none,
                            .activation_bytes = -1,
                            .parameters_bytes = -1,
                            .gradients_bytes = -1,
                            .optimizer_bytes = -1,
                            .buffers_bytes = -1,
                            .memory_bytes = -1,
                            .memory_allocated_bytes = -1,
                            .host_memory_bytes = -1,
                            .memory_peak_s = none,
                            .bad_days = pc_bad_days_none(),
                            .training_s = none,
                            .global_batch = -1,
                            .memory_limit_bytes = -1,
                            .model_parameters = none,
                            .parameters = none,
                            .active_parameters = none};
    for (int kind = 0; kind < PC_MEMORY_KINDS; kind++) result.memory_bytes_of[kind] = -1;
    return result;
}

static int64_t product_if_given(int64_t number, int64_t given) {
    return given < 0 ? -1 : number * given;
}

/* Of the device that has the least room for activations; -1 if none has a limit. */
static int64_t least_limit(const pc_run_spec *spec) {
    int64_t least = PC_NO_LIMIT;
    for (int d = 0; d < spec->devices; d++) least = pc_min(least, pc_memory_limit_of(pc_run_memory_limit(spec), d));
    return least == PC_NO_LIMIT ? -1 : least;
}

/* ---- at given costs ---- */

static double seconds_if_given(pc_time time) {
    return time == PC_TIME_NOT_GIVEN ? NAN : pc_time_to_seconds(time);
}

static void fill_passes(const pc_generator *generator, const pc_time longest_ps[PC_PASS_KINDS], pc_run_result *result) {
    result->pass_f_s = seconds_if_given(longest_ps[PC_PASS_F]);
    result->pass_b_s = seconds_if_given(longest_ps[generator->splits ? PC_PASS_B : PC_PASS_BW]);
    if (generator->splits) result->pass_w_s = seconds_if_given(longest_ps[PC_PASS_W]);
}

/* What did not fit, or what waited first when nothing could run any more. */
static void note_out_of_memory(const pc_schedule *schedule, const pc_out_of_memory *oom, bool waits_for_memory,
                               pc_run_result *result) {
    int64_t missing = oom->requested_bytes - (oom->capacity_bytes - oom->level_bytes);
    result->status = PC_RUN_OUT_OF_MEMORY;
    pc_write_message(
        result->message, sizeof result->message,
        "device %d: %s of microbatch %d, chunk %d at %.6g s %s %.4g GiB and finds %.4g GiB of %.4g GiB free: "
        "%.4g GiB too much (%s)",
        oom->device, pc_pass_kind_name((pc_pass_kind)oom->pass.kind), oom->pass.microbatch, oom->pass.chunk,
        pc_time_to_seconds(oom->time_ps),
        waits_for_memory ? "waits, and nothing else can run: it asks for" : "asks for",
        (double)oom->requested_bytes / BYTES_PER_GIB, (double)(oom->capacity_bytes - oom->level_bytes) / BYTES_PER_GIB,
        (double)oom->capacity_bytes / BYTES_PER_GIB, (double)missing / BYTES_PER_GIB, schedule->name);
}

static pc_code take_replay(const pc_run_spec *spec, const pc_schedule *schedule, const pc_replay *replay,
                           pc_run_result *result, pc_error *error) {
    pc_time iteration_ps;
    result->is_replayed = true;
    result->way = replay->way;
    if (replay->out_of_memory) {
        note_out_of_memory(schedule, &replay->oom, spec->waits_for_memory, result);
        return PC_OK;
    }
    if (!pc_time_add(replay->makespan_ps, spec->overhead_ps, &iteration_ps))
        return pc_error_set(error, PC_ERROR_INPUT, "overhead: runs over; expected an iteration under 106 days");
    result->iteration_s = pc_time_to_seconds(iteration_ps);
    if (result->global_batch >= 0) result->sequences = (double)result->global_batch;
    result->bubble_rate_span = replay->bubble_rate_span;
    result->bubble_rate_makespan = replay->bubble_rate_makespan;
    if (spec->has_activation) result->activation_bytes = replay->peak_bytes;
    result->trace_hash = replay->trace_hash;
    pc_time longest_ps[PC_PASS_KINDS];
    pc_costs_longest(&spec->costs, longest_ps);
    fill_passes(spec->generator, longest_ps, result);
    return PC_OK;
}

static pc_code replay_schedule(const pc_run_spec *spec, const pc_schedule *schedule, pc_run_result *result,
                               pc_run_detail *detail, pc_error *error) {
    const pc_replay_options options = {.with_trace = spec->trace,
                                       .engine = spec->engine,
                                       .waits_for_memory = spec->waits_for_memory,
                                       .memory_limit = pc_run_memory_limit(spec)};
    pc_code code = pc_replay_run(schedule, &spec->costs, &options, &detail->replay, error);
    return code ? code : take_replay(spec, schedule, &detail->replay, result, error);
}

static void note_infeasible(const char *message, pc_run_result *result) {
    result->status = PC_RUN_INFEASIBLE;
    snprintf(result->message, sizeof result->message, "%.*s", (int)sizeof result->message - 1, message);
}

static pc_code run_given(const pc_run_spec *spec, pc_run_result *result, pc_run_detail *detail, pc_error *error) {
    result->global_batch = product_if_given(spec->microbatches, spec->microbatch_size);
    if (spec->has_activation) result->memory_limit_bytes = least_limit(spec);
    if (spec->infeasible[0]) {
        note_infeasible(spec->infeasible, result);
        return PC_OK;
    }
    pc_schedule schedule = {0};
    pc_error why = {0};
    pc_generate_request request = {.devices = spec->devices,
                                   .microbatches = spec->microbatches,
                                   .chunks = spec->chunks,
                                   .slices = spec->slices,
                                   .costs = &spec->costs,
                                   .memory_limit = pc_run_memory_limit(spec),
                                   .threads = 1, /* runs go on beside each other */
                                   .making = spec->making,
                                   .goal = spec->goal,
                                   .memo = spec->memo};
    pc_code code = pc_generate(spec->generator, &request, &schedule, spec->trace ? &detail->block : NULL, &why);
    if (code == PC_ERROR_INPUT) {
        note_infeasible(why.message, result);
        return PC_OK;
    }
    if (code) return pc_error_copy(error, &why);
    code = replay_schedule(spec, &schedule, result, detail, error);
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
    bool has_others = spec->bad_days.other_nodes > 0 && spec->memory_limit_bytes == PC_NO_LIMIT;
    return has_others && others < own ? others : own;
}

static void describe_model(const pc_run_spec *spec, pc_run_result *result) {
    const pc_model *model = &spec->iteration.model;
    pc_parameters whole, padded;
    pc_error unused;
    int tp = spec->iteration.cut.tp > 0 ? spec->iteration.cut.tp : 1;
    if (!pc_model_parameters(model, tp, &padded, &unused)) result->model_parameters = (double)padded.total;
    if (pc_model_parameters(model, 1, &whole, &unused)) return;
    result->parameters = (double)whole.total;
    result->active_parameters = (double)whole.active;
}

static void describe_cluster(const pc_run_spec *spec, pc_run_result *result) {
    result->global_batch = global_batch_of(spec);
    result->memory_limit_bytes = least_room(&spec->iteration);
    describe_model(spec, result);
}

static int64_t larger(int64_t a, int64_t b) {
    return a > b ? a : b;
}

/* The most over stages, each kind for itself. */
static void take_memory(const pc_iteration *iteration, pc_run_result *result) {
    for (int d = 0; iteration->memory && d < iteration->devices; d++) {
        const pc_device_memory *m = &iteration->memory[d];
        result->parameters_bytes = larger(m->parameters, result->parameters_bytes);
        result->gradients_bytes = larger(m->gradients, result->gradients_bytes);
        result->optimizer_bytes = larger(m->optimizer, result->optimizer_bytes);
        result->buffers_bytes = larger(m->buffers, result->buffers_bytes);
        result->memory_allocated_bytes = larger(m->allocated_bytes, result->memory_allocated_bytes);
        result->host_memory_bytes = larger(m->host_bytes, result->host_memory_bytes);
        if (m->peak_bytes <= result->memory_bytes) continue;
        result->memory_bytes = m->peak_bytes;
        result->memory_peak_s = pc_time_to_seconds(m->peak_ps);
    }
}

/* Of the fullest stage, the first of them. */
static void take_kinds(const pc_iteration *iteration, pc_run_result *result) {
    const pc_device_memory *most = iteration->memory;
    for (int d = 1; most && d < iteration->devices; d++)
        if (iteration->memory[d].peak_bytes > most->peak_bytes) most = &iteration->memory[d];
    bool is_known = most && most->kinds[PC_MEMORY_PARAMETERS] > 0; /* not beside copies to the host without a trace */
    for (int kind = 0; is_known && kind < PC_MEMORY_KINDS; kind++) result->memory_bytes_of[kind] = most->kinds[kind];
}

static void take_numbers(const pc_iteration *iteration, pc_run_result *result) {
    result->iteration_s = iteration->iteration_s;
    result->standard_error_s = iteration->standard_error_s;
    result->sequences = iteration->sequences;
    result->tflops_per_gpu = iteration->tflops_per_gpu;
    result->hardware_flops = iteration->hardware_flops;
    result->mfu = iteration->mfu;
    result->hfu = iteration->hfu;
    result->bubble_rate_span = iteration->replay.bubble_rate_span;
    result->bubble_rate_makespan = iteration->replay.bubble_rate_makespan;
    result->exposed = iteration->exposed;
    result->sent = iteration->sent;
    result->link_utilisation_max = iteration->link_utilisation_max;
    result->activation_bytes = iteration->replay.peak_bytes;
    result->trace_hash = iteration->replay.trace_hash;
    result->bad_days = iteration->bad_days;
}

/* What an iteration takes of a long training's time. Goodput is measured at the speed of an undisturbed iteration. */
static double lasting_iteration_s(const pc_run_result *result) {
    const pc_bad_days_result *days = &result->bad_days;
    if (days->goodput_mean >= 0) return days->good_s / days->goodput_mean;
    return days->iteration_mean_s > 0 ? days->iteration_mean_s : result->iteration_s;
}

static void take_training(const pc_run_spec *spec, pc_run_result *result) {
    double tokens_per_iteration = result->sequences * (double)spec->seq_len;
    double seconds = (double)spec->tokens / tokens_per_iteration * lasting_iteration_s(result);
    if (spec->tokens > 0 && isfinite(seconds)) result->training_s = seconds;
}

static void take_iteration(const pc_run_spec *spec, const pc_iteration *iteration, pc_run_result *result) {
    result->status = iteration->status;
    snprintf(result->message, sizeof result->message, "%s", iteration->message);
    result->is_replayed = iteration->replay.devices > 0;
    result->way = iteration->replay.way;
    if (iteration->status != PC_RUN_INFEASIBLE) take_memory(iteration, result);
    if (iteration->status != PC_RUN_OK) return;
    take_numbers(iteration, result);
    take_kinds(iteration, result);
    take_training(spec, result);
    fill_passes(spec->generator, iteration->longest_ps, result);
}

/* Simulates the jobs of an iteration that has samples, where the spec speaks of any. */
static pc_code run_jobs(const pc_run_spec *spec, pc_iteration *iteration, pc_error *error) {
    const pc_bad_days *days = &spec->iteration.bad_days;
    if (iteration->status != PC_RUN_OK || !iteration->sample_ps || !pc_bad_days_of_job(days)) return PC_OK;
    pc_job_spec job = {.bad_days = days,
                       .gpus = spec->gpus,
                       .iteration_ps = iteration->sample_ps,
                       .iterations = iteration->bad_days.samples,
                       .good_s = iteration->bad_days.good_s,
                       .seed = spec->iteration.seed,
                       .threads = spec->iteration.threads};
    return pc_job_run(&job, &iteration->bad_days, error);
}

static pc_code run_cluster(const pc_run_spec *spec, pc_run_result *result, pc_run_detail *detail, pc_error *error) {
    pc_iteration iteration = {.status = PC_RUN_OK};
    describe_cluster(spec, result);
    if (spec->infeasible[0]) {
        note_infeasible(spec->infeasible, result);
        return PC_OK;
    }
    pc_error why = {0};
    pc_code code = pc_iteration_run(&spec->iteration, spec->cost, spec->trace, &iteration, &why);
    if (!code) code = run_jobs(spec, &iteration, &why);
    if (code) pc_iteration_free(&iteration);
    if (code == PC_ERROR_INPUT) { /* of a sweep, the other runs go on */
        note_infeasible(why.message, result);
        return PC_OK;
    }
    if (code) return pc_error_copy(error, &why);
    take_iteration(spec, &iteration, result);
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

pc_code pc_run(const pc_run_spec *spec, pc_run_result *result, pc_run_detail *detail, pc_error *error) {
    pc_run_result made = no_result();
    memset(detail, 0, sizeof *detail);
    pc_code code = spec->is_cluster ? run_cluster(spec, &made, detail, error) : run_given(spec, &made, detail, error);
    if (code)
        pc_run_detail_free(detail);
    else
        *result = made;
    return code;
}
