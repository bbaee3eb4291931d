#include "models/training/run.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const double BYTES_PER_GIB = 1073741824.0;

void pc_run_spec_free(pc_run_spec *spec) {
    pc_costs_free(&spec->costs);
    memset(spec, 0, sizeof *spec);
}

const char *pc_run_status_name(pc_run_status status) {
    static const char *const names[] = {"ok", "out_of_memory", "infeasible"};
    return names[status];
}

static void copy_label(char *to, const char *from) {
    snprintf(to, PC_LABEL_SIZE, "%s", from);
}

static int64_t times_if_given(int64_t number, int64_t given) {
    return given < 0 ? -1 : number * given;
}

/* What is known before the replay; all that it would give is "not defined". */
static void start_row(const pc_run_spec *spec, pc_run_row *row) {
    memset(row, 0, sizeof *row);
    row->run = spec->run;
    copy_label(row->scenario, spec->scenario);
    copy_label(row->name, spec->name);
    copy_label(row->model, spec->model);
    copy_label(row->machine, spec->machine);
    copy_label(row->schedule, spec->generator->name);
    copy_label(row->recompute, spec->generator->recomputes ? "full" : "");
    row->gpus = row->pp = spec->devices;
    row->tp = row->dp = -1;
    row->virtual_pp = spec->chunks;
    row->microbatch_size = spec->microbatch_size;
    row->microbatches = spec->microbatches;
    row->global_batch = times_if_given(spec->microbatches, spec->microbatch_size);
    row->seq_len = spec->seq_len;
    row->iteration_s = row->samples_per_s_per_gpu = row->tflops_per_gpu = row->mfu = row->hfu = NAN;
    row->bubble_rate_span = row->bubble_rate_makespan = row->activation_gib_max = row->memory_gib_max = NAN;
    row->published_bubble_rate_span = spec->published_bubble_rate_span;
    row->published_samples_per_s_per_gpu = spec->published_samples_per_s_per_gpu;
    row->published_iteration_s = spec->published_iteration_s;
}

static void note_out_of_memory(const pc_schedule *schedule, const pc_out_of_memory *oom, pc_run_row *row) {
    int64_t missing = oom->requested_bytes - (oom->capacity_bytes - oom->level_bytes);
    row->status = PC_RUN_OUT_OF_MEMORY;
    snprintf(
        row->message, sizeof row->message,
        "device %d: %s of microbatch %d, chunk %d at %.6g s asks for %.4g GiB and finds %.4g GiB of %.4g GiB free: "
        "%.4g GiB too much (%s)",
        oom->device, pc_pass_kind_name((pc_pass_kind)oom->pass.kind), oom->pass.microbatch, oom->pass.chunk,
        pc_time_to_seconds(oom->time_ps), (double)oom->requested_bytes / BYTES_PER_GIB,
        (double)(oom->capacity_bytes - oom->level_bytes) / BYTES_PER_GIB, (double)oom->capacity_bytes / BYTES_PER_GIB,
        (double)missing / BYTES_PER_GIB, schedule->name);
}

static pc_code finish_row(const pc_run_spec *spec, const pc_schedule *schedule, const pc_replay *replay,
                          pc_run_row *row, pc_error *error) {
    pc_time iteration_ps;
    if (replay->out_of_memory) {
        note_out_of_memory(schedule, &replay->oom, row);
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
    return PC_OK;
}

static pc_code replay_row(const pc_run_spec *spec, const pc_schedule *schedule, pc_run_row *row, pc_replay *replay,
                          pc_error *error) {
    pc_code code = pc_replay_run(schedule, &spec->costs, spec->trace, replay, error);
    if (!code) code = finish_row(spec, schedule, replay, row, error);
    if (code) pc_replay_free(replay);
    return code;
}

static pc_code work_out_row(const pc_run_spec *spec, pc_run_row *row, pc_replay *replay, pc_error *error) {
    pc_schedule schedule = {0};
    pc_error why = {0};
    start_row(spec, row);
    pc_generate_request request = {.devices = spec->devices,
                                   .microbatches = spec->microbatches,
                                   .chunks = spec->chunks,
                                   .costs = &spec->costs,
                                   .threads = 1}; /* runs go on beside each other */
    pc_code code = pc_generate(spec->generator, &request, &schedule, NULL, &why);
    if (code == PC_ERROR_INPUT) {
        row->status = PC_RUN_INFEASIBLE;
        snprintf(row->message, sizeof row->message, "%.*s", (int)sizeof row->message - 1, why.message);
        return PC_OK;
    }
    if (code) return pc_error_set(error, code, "%s", why.message);
    code = replay_row(spec, &schedule, row, replay, error);
    pc_schedule_free(&schedule);
    return code;
}

pc_code pc_run(const pc_run_spec *spec, pc_run_row *row, pc_replay *replay, pc_error *error) {
    pc_run_row made;
    memset(replay, 0, sizeof *replay);
    pc_code code = work_out_row(spec, &made, replay, error);
    if (code)
        pc_error_prefix(error, "run %" PRId64 " (%s)", spec->run, spec->name);
    else
        *row = made;
    return code;
}
