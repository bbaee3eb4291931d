#include "models/schedule/replay.h"

#include "engine/alloc.h"
#include "engine/program.h"
#include "engine/simulation.h"
#include "models/schedule/check.h"
#include "models/schedule/dependencies.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- the schedule as a program: task i is the pass at position i; transfers come after them ---- */

typedef struct lowering {
    const pc_schedule *schedule;
    const pc_costs *costs;
    const pc_pass_index *index;
    pc_program *program;
    int32_t *route; /* 2 a device, to the next and to the one before; -1 until it is needed */
    pc_error *error;
} lowering;

static pc_code check_shape(const pc_schedule *schedule, const pc_costs *costs, pc_error *error) {
    if (schedule->devices == costs->devices && schedule->chunks == costs->chunks) return PC_OK;
    return pc_error_set(error, PC_ERROR_INPUT,
                        "costs: for %d devices and %d chunks; expected the schedule's %d devices and %d chunks",
                        costs->devices, costs->chunks, schedule->devices, schedule->chunks);
}

static pc_code add_resources(lowering *x) {
    int64_t capacity = x->costs->memory_capacity_bytes ? x->costs->memory_capacity_bytes : INT64_MAX;
    for (int d = 0; d < x->schedule->devices; d++) {
        int32_t number;
        pc_code code = pc_program_add_processor(x->program, PC_PROCESSOR_IN_ORDER, &number, x->error);
        if (!code) code = pc_program_add_memory(x->program, capacity, &number, x->error);
        if (code) return code;
        x->route[2 * d] = x->route[2 * d + 1] = -1;
    }
    return PC_OK;
}

static pc_code add_pass(lowering *x, int stage, pc_pass pass) {
    pc_task task = pc_task_default();
    int32_t number;
    task.processor = task.memory = stage;
    task.duration_ps = pc_costs_duration(x->costs, stage, pass.chunk, pass.kind);
    task.take_bytes = pc_costs_taken(x->costs, stage, pass);
    task.give_bytes = pc_costs_given(x->costs, stage, pass);
    if (task.duration_ps == PC_TIME_NOT_GIVEN)
        return pc_error_set(x->error, PC_ERROR_INPUT,
                            "%s: the time of %s of chunk %d on device %d is not given; expected one, for the schedule "
                            "has such passes",
                            x->schedule->name, pc_pass_kind_name((pc_pass_kind)pass.kind), pass.chunk, stage);
    return pc_program_add_task(x->program, &task, &number, x->error);
}

static pc_code add_passes(lowering *x) {
    for (int d = 0; d < x->schedule->devices; d++)
        for (int64_t i = x->schedule->offsets[d]; i < x->schedule->offsets[d + 1]; i++) {
            pc_code code = add_pass(x, d, x->schedule->passes[i]);
            if (code) return code;
        }
    return PC_OK;
}

/* The route from a device to a neighbour: one directed link, made when it is first needed. */
static pc_code route_between(lowering *x, int from, int to, int32_t *route) {
    bool is_next = to == (from + 1) % x->schedule->devices;
    int32_t *known = &x->route[2 * from + !is_next], number;
    pc_link link = {x->costs->transfer.latency_ps, x->costs->transfer.bandwidth_bytes_per_s};
    if (*known < 0) {
        pc_code code = pc_program_add_link(x->program, &link, &number, x->error);
        if (!code) code = pc_program_add_route(x->program, &number, 1, known, x->error);
        if (code) return code;
    }
    *route = *known;
    return PC_OK;
}

static pc_code add_flow(lowering *x, int32_t from, int from_stage, int32_t to, int to_stage) {
    pc_task task = pc_task_default();
    int32_t number;
    task.flow_bytes = x->costs->transfer.size_bytes;
    pc_code code = route_between(x, from_stage, to_stage, &task.route);
    if (!code) code = pc_program_add_task(x->program, &task, &number, x->error);
    if (!code) code = pc_program_add_edge(x->program, from, number, 0, x->error);
    if (!code) code = pc_program_add_edge(x->program, number, to, 0, x->error);
    return code;
}

static pc_code add_dependency(lowering *x, pc_predecessor from, int32_t to, int to_stage) {
    if (from.stage == to_stage) return pc_program_add_edge(x->program, from.position, to, 0, x->error);
    if (x->costs->transfer.mode == PC_TRANSFER_LINK) return add_flow(x, from.position, from.stage, to, to_stage);
    return pc_program_add_edge(x->program, from.position, to, x->costs->transfer.delay_ps, x->error);
}

static pc_code add_dependencies(lowering *x) {
    for (int d = 0; d < x->schedule->devices; d++)
        for (int64_t i = x->schedule->offsets[d]; i < x->schedule->offsets[d + 1]; i++) {
            pc_predecessor predecessors[PC_PREDECESSORS_MAX];
            int count = pc_pass_predecessors(x->index, d, x->schedule->passes[i], predecessors);
            for (int k = 0; k < count; k++) {
                pc_code code = add_dependency(x, predecessors[k], (int32_t)i, d);
                if (code) return code;
            }
        }
    return PC_OK;
}

static pc_code lower(const pc_schedule *schedule, const pc_costs *costs, pc_program *program, pc_error *error) {
    lowering x = {.schedule = schedule, .costs = costs, .program = program, .error = error};
    pc_pass_index index;
    pc_code code = pc_pass_index_create(schedule, &index, error);
    if (code) return code;
    x.index = &index;
    x.route = pc_alloc((size_t)schedule->devices * 2, sizeof *x.route);
    if (!x.route) code = pc_error_no_memory(error);
    if (!code) code = pc_schedule_check_complete(&index, error);
    if (!code) code = add_resources(&x);
    if (!code) code = add_passes(&x);
    if (!code) code = add_dependencies(&x);
    if (!code) code = pc_program_seal(program, error);
    pc_free(x.route);
    pc_pass_index_free(&index);
    return code;
}

/* ---- what came of it ---- */

static bool make_arrays(pc_replay *replay, int devices) {
    size_t count = (size_t)devices;
    replay->devices = devices;
    replay->device_start_ps = pc_alloc(count, sizeof *replay->device_start_ps);
    replay->device_end_ps = pc_alloc(count, sizeof *replay->device_end_ps);
    replay->device_busy_ps = pc_alloc(count, sizeof *replay->device_busy_ps);
    replay->device_peak_bytes = pc_alloc(count, sizeof *replay->device_peak_bytes);
    return replay->device_start_ps && replay->device_end_ps && replay->device_busy_ps && replay->device_peak_bytes;
}

static void sum_device(const pc_schedule *schedule, const pc_costs *costs, const pc_simulation_result *result, int d,
                       pc_replay *replay, pc_time *work) {
    *work = 0;
    for (int64_t i = schedule->offsets[d]; i < schedule->offsets[d + 1]; i++) {
        pc_pass pass = schedule->passes[i];
        pc_time duration = pc_costs_duration(costs, d, pass.chunk, pass.kind);
        replay->device_busy_ps[d] += duration;
        if (pass.kind != PC_PASS_R) *work += duration;
    }
    if (schedule->offsets[d] == schedule->offsets[d + 1]) return;
    replay->device_start_ps[d] = result->start_ps[schedule->offsets[d]];
    replay->device_end_ps[d] = result->end_ps[schedule->offsets[d + 1] - 1];
}

static double bubble_rate(pc_time work, pc_time whole) {
    return whole > 0 ? 1.0 - (double)work / (double)whole : 0.0;
}

static void sum_up(const pc_schedule *schedule, const pc_costs *costs, const pc_simulation_result *result,
                   pc_replay *replay) {
    pc_time most_work = 0, work;
    for (int d = 0; d < schedule->devices; d++) {
        sum_device(schedule, costs, result, d, replay, &work);
        pc_time span = replay->device_end_ps[d] - replay->device_start_ps[d];
        if (work > most_work) most_work = work;
        if (span > replay->span_ps) replay->span_ps = span;
        if (replay->device_end_ps[d] > replay->makespan_ps) replay->makespan_ps = replay->device_end_ps[d];
    }
    replay->bubble_rate_span = bubble_rate(most_work, replay->span_ps);
    replay->bubble_rate_makespan = bubble_rate(most_work, replay->makespan_ps);
    replay->trace_hash = result->trace_hash;
}

static void note_peaks(const pc_simulation_result *result, pc_replay *replay) {
    for (int d = 0; d < replay->devices; d++) {
        replay->device_peak_bytes[d] = result->peak_bytes[d];
        if (result->peak_bytes[d] > replay->peak_bytes) replay->peak_bytes = result->peak_bytes[d];
    }
}

static void note_out_of_memory(const pc_schedule *schedule, const pc_costs *costs, const pc_simulation_result *result,
                               pc_replay *replay) {
    int device = pc_stage_of_position(schedule, result->task);
    pc_pass pass = schedule->passes[result->task];
    replay->out_of_memory = true;
    replay->oom = (pc_out_of_memory){device,
                                     pass,
                                     result->time_ps,
                                     pc_costs_taken(costs, device, pass),
                                     result->level_bytes,
                                     costs->memory_capacity_bytes};
}

/* ---- the trace ---- */

static bool make_trace_arrays(pc_replay_trace *trace, int64_t passes, int64_t levels) {
    trace->pass_device = pc_alloc((size_t)passes, sizeof *trace->pass_device);
    trace->pass = pc_alloc((size_t)passes, sizeof *trace->pass);
    trace->pass_start_ps = pc_alloc((size_t)passes, sizeof *trace->pass_start_ps);
    trace->pass_end_ps = pc_alloc((size_t)passes, sizeof *trace->pass_end_ps);
    trace->level_device = pc_alloc((size_t)levels, sizeof *trace->level_device);
    trace->level_time_ps = pc_alloc((size_t)levels, sizeof *trace->level_time_ps);
    trace->level_bytes = pc_alloc((size_t)levels, sizeof *trace->level_bytes);
    trace->pass_count = passes;
    trace->level_count = levels;
    return trace->pass_device && trace->pass && trace->pass_start_ps && trace->pass_end_ps && trace->level_device &&
           trace->level_time_ps && trace->level_bytes;
}

static void copy_passes(const pc_schedule *schedule, const pc_simulation_result *result, pc_replay_trace *trace) {
    size_t passes = (size_t)trace->pass_count;
    for (int d = 0; d < schedule->devices; d++)
        for (int64_t i = schedule->offsets[d]; i < schedule->offsets[d + 1]; i++) trace->pass_device[i] = d;
    memcpy(trace->pass, schedule->passes, passes * sizeof *trace->pass);
    memcpy(trace->pass_start_ps, result->start_ps, passes * sizeof *trace->pass_start_ps);
    memcpy(trace->pass_end_ps, result->end_ps, passes * sizeof *trace->pass_end_ps);
}

/* The engine's rows are in time order over all devices; ours are device by device. */
static bool copy_levels(const pc_level_trace *levels, int devices, pc_replay_trace *trace) {
    int64_t *next = pc_alloc((size_t)devices + 1, sizeof *next);
    if (!next) return false;
    for (int64_t i = 0; i < levels->count; i++) next[levels->memory[i] + 1]++;
    for (int d = 0; d < devices; d++) next[d + 1] += next[d];
    for (int64_t i = 0; i < levels->count; i++) {
        int64_t row = next[levels->memory[i]]++;
        trace->level_device[row] = levels->memory[i];
        trace->level_time_ps[row] = levels->time_ps[i];
        trace->level_bytes[row] = levels->level_bytes[i];
    }
    pc_free(next);
    return true;
}

static pc_code keep_trace(const pc_schedule *schedule, const pc_simulation_result *result, pc_replay_trace *trace,
                          pc_error *error) {
    if (!make_trace_arrays(trace, schedule->offsets[schedule->devices], result->levels.count))
        return pc_error_no_memory(error);
    copy_passes(schedule, result, trace);
    return copy_levels(&result->levels, schedule->devices, trace) ? PC_OK : pc_error_no_memory(error);
}

/* ---- the run ---- */

static pc_code summarize(const pc_schedule *schedule, const pc_costs *costs, const pc_simulation_result *result,
                         bool with_trace, pc_replay *replay, pc_error *error) {
    if (result->outcome == PC_OUTCOME_DEADLOCK) { /* costs cannot lock a valid schedule: the order is at fault */
        pc_code code = pc_schedule_check(schedule, error);
        return code ? code : pc_error_set(error, PC_ERROR_INPUT, "schedule: deadlock");
    }
    if (!make_arrays(replay, schedule->devices)) return pc_error_no_memory(error);
    note_peaks(result, replay);
    if (result->outcome == PC_OUTCOME_OUT_OF_MEMORY) {
        note_out_of_memory(schedule, costs, result, replay);
        return PC_OK;
    }
    sum_up(schedule, costs, result, replay);
    return with_trace ? keep_trace(schedule, result, &replay->trace, error) : PC_OK;
}

static pc_code simulate(const pc_schedule *schedule, const pc_costs *costs, bool with_trace, pc_replay *replay,
                        pc_error *error) {
    pc_program *program = NULL;
    pc_simulation *simulation = NULL;
    pc_simulation_result result;
    pc_code code = pc_program_create(&program, error);
    if (!code) code = pc_simulation_create(&simulation, error);
    if (!code) code = lower(schedule, costs, program, error);
    if (!code) code = pc_simulation_run(simulation, program, with_trace, &result, error);
    if (!code) code = summarize(schedule, costs, &result, with_trace, replay, error);
    pc_simulation_free(simulation);
    pc_program_free(program);
    return code;
}

pc_code pc_replay_run(const pc_schedule *schedule, const pc_costs *costs, bool with_trace, pc_replay *replay,
                      pc_error *error) {
    pc_replay made = {0};
    pc_code code = check_shape(schedule, costs, error);
    if (!code) code = simulate(schedule, costs, with_trace, &made, error);
    if (code)
        pc_replay_free(&made);
    else
        *replay = made;
    return code;
}

void pc_replay_free(pc_replay *replay) {
    pc_replay_trace *trace = &replay->trace;
    void *arrays[] = {replay->device_start_ps, replay->device_end_ps, replay->device_busy_ps, replay->device_peak_bytes,
                      trace->pass_device,      trace->pass,           trace->pass_start_ps,   trace->pass_end_ps,
                      trace->level_device,     trace->level_time_ps,  trace->level_bytes};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) pc_free(arrays[i]);
    memset(replay, 0, sizeof *replay);
}
