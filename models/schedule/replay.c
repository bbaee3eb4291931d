#include "models/schedule/replay.h"
#include "models/schedule/copy_levels.h"

#include "engine/alloc.h"
#include "engine/program.h"
#include "engine/simulation.h"
#include "models/schedule/check.h"
#include "models/schedule/dependencies.h"
#include "models/schedule/engine_fill.h"
#include "models/schedule/replay_transfers.h"
#include "models/schedule/timing.h"

#include <inttypes.h>
#include <string.h>

const char *pc_engine_way_name(pc_engine_way way) {
    static const char *const names[] = {"paths", "flows", "events"};
    return names[way];
}

const char *pc_engine_way_words(pc_engine_way way) {
    static const char *const words[] = {
        "longest paths; nothing shares a link or waits for memory, so events would give the same, to the picosecond",
        ("events for flows, which share links; nothing waits for memory, so all between flows follows from the "
         "devices' orders, and events for all would give the same, to the picosecond"),
        "events for everything: passes, transfers, links and memories"};
    return words[way];
}

/* ---- the schedule as a program: task i is the pass at position i; transfers come after them ---- */

typedef struct lowering {
    const pc_schedule *schedule;
    const pc_costs *costs;
    const pc_pass_index *index;
    pc_program *program;
    int32_t *link;     /* 2 a device, to the next and to the one before: a processor; -1 until it is needed */
    pc_time filled_ps; /* for how long a transfer fills its link */
    bool waits_for_memory;
    pc_memory_limit memory_limit;
    pc_error *error;
} lowering;

static pc_code add_resources(lowering *lowered) {
    pc_memory_policy policy = lowered->waits_for_memory ? PC_MEMORY_WAIT : PC_MEMORY_FAIL;
    for (int d = 0; d < lowered->schedule->devices; d++) {
        int32_t number;
        pc_code code = pc_program_add_processor(lowered->program, PC_PROCESSOR_IN_ORDER, &number, lowered->error);
        if (!code)
            code = pc_program_add_memory(lowered->program, pc_memory_limit_of(lowered->memory_limit, d), policy,
                                         &number, lowered->error);
        if (code) return code;
        lowered->link[2 * (size_t)d] = lowered->link[2 * (size_t)d + 1] = -1;
    }
    return PC_OK;
}

/* Whether the costs run as a pair what begins at the position. Its first task is both passes, which waits for all that
 * either waits for; the second is the end of the backward pass, with no time of its own. */
static bool is_first_of_pair(const lowering *lowered, int64_t position) {
    return lowered->costs->pair_ps && pc_schedule_pairs_at(lowered->schedule, position);
}

static pc_code add_pass(lowering *lowered, int stage, int64_t position) {
    pc_pass pass = lowered->schedule->passes[position];
    pc_task task = pc_task_default();
    int32_t number;
    task.processor = task.memory = stage;
    task.duration_ps = pc_costs_busy_ps(lowered->costs, lowered->schedule, stage, position);
    task.take_bytes = pc_costs_taken_at(lowered->costs, lowered->schedule, stage, position,
                                        pc_pass_is_recomputed(lowered->index, stage, pass));
    task.give_bytes = pc_costs_given_at(lowered->costs, lowered->schedule, stage, position);
    return pc_program_add_task(lowered->program, &task, &number, lowered->error);
}

static pc_code add_passes(lowering *lowered) {
    for (int d = 0; d < lowered->schedule->devices; d++)
        for (int64_t i = lowered->schedule->offsets[d]; i < lowered->schedule->offsets[d + 1]; i++) {
            pc_code code = add_pass(lowered, d, i);
            if (code) return code;
        }
    return PC_OK;
}

/* The link from a device to a neighbour: a processor, for it carries one transfer after the other. Made when it is
 * first needed. The order in which passes send is that of the schedule, unless some wait for memory. */
static pc_code link_between(lowering *lowered, int from, int to, int32_t *link) {
    bool is_next = to == (from + 1) % lowered->schedule->devices;
    pc_processor_order order = lowered->waits_for_memory ? PC_PROCESSOR_FIRST_COME : PC_PROCESSOR_IN_ORDER;
    int32_t *known = &lowered->link[2 * from + !is_next];
    pc_code code = *known < 0 ? pc_program_add_processor(lowered->program, order, known, lowered->error) : PC_OK;
    *link = *known;
    return code;
}

static pc_code add_transfer(lowering *lowered, int32_t from, int from_stage, int32_t to, int to_stage) {
    pc_task task = pc_task_default();
    int32_t number;
    task.duration_ps = lowered->filled_ps;
    pc_code code = link_between(lowered, from_stage, to_stage, &task.processor);
    if (!code) code = pc_program_add_task(lowered->program, &task, &number, lowered->error);
    if (!code)
        code = pc_program_add_edge(lowered->program, from, number, lowered->costs->transfer.latency_ps, lowered->error);
    if (!code) code = pc_program_add_edge(lowered->program, number, to, 0, lowered->error);
    if (!code && to > 0 && is_first_of_pair(lowered, to - 1))
        code = pc_program_add_edge(lowered->program, number, to - 1, 0, lowered->error);
    return code;
}

/* By position the pass of another stage that gets what a pass makes; PC_NO_PASS: none does. */
static int32_t *find_receivers(const pc_pass_index *index) {
    const pc_schedule *schedule = index->schedule;
    int64_t passes = schedule->offsets[schedule->devices];
    int32_t *receiver = pc_alloc((size_t)passes, sizeof *receiver);
    pc_predecessor sender;
    for (int64_t i = 0; receiver && i < passes; i++) receiver[i] = PC_NO_PASS;
    for (int d = 0; receiver && d < schedule->devices; d++)
        for (int64_t i = schedule->offsets[d]; i < schedule->offsets[d + 1]; i++)
            if (pc_pass_sender(index, d, schedule->passes[i], &sender)) receiver[sender.position] = (int32_t)i;
    return receiver;
}

/* In the order of those who send, so that links keep it. */
static pc_code add_transfers(lowering *lowered) {
    const pc_transfer *transfer = &lowered->costs->transfer;
    if (transfer->mode != PC_TRANSFER_LINK) return PC_OK;
    if (!pc_time_from_seconds((double)transfer->size_bytes / transfer->bandwidth_bytes_per_s, &lowered->filled_ps))
        return pc_error_set(lowered->error, PC_ERROR_INPUT,
                            "transfer: %g bytes/s for %" PRId64
                            " bytes; expected more than zero, and less than 106 days for them",
                            transfer->bandwidth_bytes_per_s, transfer->size_bytes);
    int32_t *receiver = find_receivers(lowered->index);
    pc_code code = receiver ? PC_OK : pc_error_no_memory(lowered->error);
    for (int d = 0; !code && d < lowered->schedule->devices; d++)
        for (int64_t i = lowered->schedule->offsets[d]; !code && i < lowered->schedule->offsets[d + 1]; i++)
            if (receiver[i] != PC_NO_PASS)
                code = add_transfer(lowered, (int32_t)i, d, receiver[i],
                                    pc_stage_of_position(lowered->schedule, receiver[i]));
    pc_free(receiver);
    return code;
}

static pc_code add_dependency(lowering *lowered, pc_predecessor from, int32_t to, int to_stage) {
    pc_pass before = lowered->schedule->passes[from.position];
    bool is_sent = from.stage != to_stage;
    if (pc_pass_is_of_vocab(before, lowered->schedule->passes[to])) {
        pc_time vocab_ps = pc_costs_vocab_ps(lowered->costs, before, from.stage, to_stage);
        return pc_program_add_edge(lowered->program, from.position, to, vocab_ps, lowered->error);
    }
    if (is_sent && lowered->costs->transfer.mode == PC_TRANSFER_LINK) return PC_OK; /* add_transfers */
    pc_time delay_ps = is_sent ? pc_costs_delay(lowered->costs, from.stage, to_stage) : 0;
    return pc_program_add_edge(lowered->program, from.position, to, delay_ps, lowered->error);
}

static pc_code add_dependencies(lowering *lowered) {
    for (int d = 0; d < lowered->schedule->devices; d++)
        for (int64_t i = lowered->schedule->offsets[d]; i < lowered->schedule->offsets[d + 1]; i++) {
            pc_predecessor predecessors[PC_PREDECESSORS_MAX];
            int count = pc_pass_predecessors(lowered->index, d, lowered->schedule->passes[i], predecessors);
            for (int k = 0; k < count; k++) {
                pc_code code = add_dependency(lowered, predecessors[k], (int32_t)i, d);
                if (!code && i > 0 && is_first_of_pair(lowered, i - 1))
                    code = add_dependency(lowered, predecessors[k], (int32_t)(i - 1), d);
                if (code) return code;
            }
        }
    return PC_OK;
}

/* A task at time zero, from which the F of every chunk that is not ready then are held back. */
static pc_code add_ready_times(lowering *lowered) {
    pc_task start = pc_task_default();
    int32_t number;
    if (!lowered->costs->ready_ps) return PC_OK;
    pc_code code = pc_program_add_task(lowered->program, &start, &number, lowered->error);
    for (int d = 0; !code && d < lowered->schedule->devices; d++)
        for (int64_t i = lowered->schedule->offsets[d]; !code && i < lowered->schedule->offsets[d + 1]; i++) {
            pc_pass pass = lowered->schedule->passes[i];
            pc_time ready = pc_costs_ready(lowered->costs, d, pass.chunk);
            if (pass.kind == PC_PASS_F && ready != 0)
                code = pc_program_add_edge(lowered->program, number, (int32_t)i, ready, lowered->error);
        }
    return code;
}

/* Writes for how long a transfer fills its link. */
static pc_code lower(const pc_schedule *schedule, const pc_costs *costs, const pc_replay_options *how,
                     pc_program *program, pc_time *filled_ps, pc_error *error) {
    lowering x = {.schedule = schedule,
                  .costs = costs,
                  .program = program,
                  .waits_for_memory = how->waits_for_memory,
                  .memory_limit = how->memory_limit,
                  .error = error};
    pc_pass_index index;
    pc_code code = pc_pass_index_create(schedule, &index, error);
    if (code) return code;
    x.index = &index;
    x.link = pc_alloc((size_t)schedule->devices * 2, sizeof *x.link);
    if (!x.link) code = pc_error_no_memory(error);
    if (!code) code = pc_schedule_check_complete(&index, error);
    if (!code) code = add_resources(&x);
    if (!code) code = pc_schedule_check_pairs(schedule, error);
    if (!code) code = pc_timing_check_given(schedule, costs, error);
    if (!code) code = add_passes(&x);
    if (!code) code = add_dependencies(&x);
    if (!code) code = add_transfers(&x);
    if (!code) code = add_ready_times(&x);
    if (!code) code = pc_program_seal(program, error);
    *filled_ps = x.filled_ps;
    pc_free(x.link);
    pc_pass_index_free(&index);
    return code;
}

/* ---- what came of it ---- */

/* Every pass's start and end, whichever way they were found. */
typedef struct outcome {
    const pc_time *start_ps, *end_ps;
    const pc_stage_timing *stages;
    const pc_level_trace *levels; /* the engine's, or with copies; NULL where the orders say them */
    const pc_time *arrival_ps;    /* of what a pass waits for, by position; NULL where the costs say it */
} outcome;

static bool make_arrays(pc_replay *replay, int devices) {
    size_t count = (size_t)devices;
    replay->devices = devices;
    replay->device_start_ps = pc_alloc(count, sizeof *replay->device_start_ps);
    replay->device_end_ps = pc_alloc(count, sizeof *replay->device_end_ps);
    replay->device_busy_ps = pc_alloc(count, sizeof *replay->device_busy_ps);
    replay->device_peak_bytes = pc_alloc(count, sizeof *replay->device_peak_bytes);
    return replay->device_start_ps && replay->device_end_ps && replay->device_busy_ps && replay->device_peak_bytes;
}

static double bubble_rate(pc_time work, pc_time whole) {
    return whole > 0 ? 1.0 - (double)work / (double)whole : 0.0;
}

static void sum_up(const pc_schedule *schedule, const outcome *found, pc_replay *replay) {
    pc_timing_totals totals = pc_timing_sum(found->stages, schedule->devices);
    for (int d = 0; d < schedule->devices; d++) {
        replay->device_start_ps[d] = found->stages[d].start_ps;
        replay->device_end_ps[d] = found->stages[d].end_ps;
        replay->device_busy_ps[d] = found->stages[d].busy_ps;
        replay->device_peak_bytes[d] = found->stages[d].peak_bytes;
    }
    replay->span_ps = totals.span_ps;
    replay->makespan_ps = totals.makespan_ps;
    replay->peak_bytes = totals.peak_bytes;
    replay->bubble_rate_span = bubble_rate(totals.work_ps, totals.span_ps);
    replay->bubble_rate_makespan = bubble_rate(totals.work_ps, totals.makespan_ps);
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

/* Of a pair both passes start with the first. */
static void copy_passes(const pc_schedule *schedule, const pc_costs *costs, const outcome *found,
                        pc_replay_trace *trace) {
    size_t passes = (size_t)trace->pass_count;
    for (int d = 0; d < schedule->devices; d++)
        for (int64_t i = schedule->offsets[d]; i < schedule->offsets[d + 1]; i++) trace->pass_device[i] = d;
    memcpy(trace->pass, schedule->passes, passes * sizeof *trace->pass);
    memcpy(trace->pass_start_ps, found->start_ps, passes * sizeof *trace->pass_start_ps);
    memcpy(trace->pass_end_ps, found->end_ps, passes * sizeof *trace->pass_end_ps);
    for (size_t i = 1; costs->pair_ps && schedule->pairs && i < passes; i++)
        if (schedule->pairs[i - 1]) trace->pass_start_ps[i] = trace->pass_start_ps[i - 1];
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

static int64_t count_level_changes(const pc_schedule *schedule, const pc_pass_index *index, const pc_costs *costs) {
    int64_t count = 0;
    for (int d = 0; d < schedule->devices; d++)
        for (int64_t i = schedule->offsets[d]; i < schedule->offsets[d + 1]; i++) {
            pc_pass pass = schedule->passes[i];
            count += (pc_costs_taken_at(costs, schedule, d, i, pc_pass_is_recomputed(index, d, pass)) > 0) +
                     (pc_costs_given_at(costs, schedule, d, i) > 0);
        }
    return count;
}

/* A stage runs its passes one by one, so that its levels follow from its order. */
static void derive_levels(const pc_schedule *schedule, const pc_pass_index *index, const pc_costs *costs,
                          const outcome *found, pc_replay_trace *trace) {
    int64_t row = 0;
    for (int d = 0; d < schedule->devices; d++) {
        int64_t level = 0;
        for (int64_t i = schedule->offsets[d]; i < schedule->offsets[d + 1]; i++) {
            pc_pass pass = schedule->passes[i];
            const int64_t changes[] = {pc_costs_taken_at(costs, schedule, d, i, pc_pass_is_recomputed(index, d, pass)),
                                       -pc_costs_given_at(costs, schedule, d, i)};
            const pc_time times[] = {found->start_ps[i], found->end_ps[i]};
            for (int k = 0; k < 2; k++) {
                if (changes[k] == 0) continue;
                trace->level_device[row] = d;
                trace->level_time_ps[row] = times[k];
                trace->level_bytes[row++] = level += changes[k];
            }
        }
    }
}

static pc_code keep_trace(const pc_schedule *schedule, const pc_costs *costs, const outcome *found,
                          pc_replay_trace *trace, pc_error *error) {
    pc_pass_index index;
    pc_code code = pc_pass_index_create(schedule, &index, error);
    if (code) return code;
    int64_t levels = found->levels ? found->levels->count : count_level_changes(schedule, &index, costs);
    bool made = make_trace_arrays(trace, schedule->offsets[schedule->devices], levels);
    if (made) copy_passes(schedule, costs, found, trace);
    if (made && found->levels)
        made = copy_levels(found->levels, schedule->devices, trace);
    else if (made)
        derive_levels(schedule, &index, costs, found, trace);
    code = made ? pc_trace_add_transfers(&index, costs, found->arrival_ps, trace, error) : pc_error_no_memory(error);
    pc_pass_index_free(&index);
    return code;
}

static pc_code fill_in(const pc_schedule *schedule, const pc_costs *costs, const outcome *found, bool with_trace,
                       pc_replay *replay, pc_error *error) {
    if (!make_arrays(replay, schedule->devices)) return pc_error_no_memory(error);
    sum_up(schedule, found, replay);
    return with_trace ? keep_trace(schedule, costs, found, &replay->trace, error) : PC_OK;
}

/* ---- on the engine ---- */

/* What the engine made of a schedule. */
typedef struct engine_outcome {
    const pc_schedule *schedule;
    const pc_costs *costs;
    pc_memory_limit memory_limit;
    const pc_simulation_result *result;
    pc_time filled_ps; /* for how long a transfer fills its link */
} engine_outcome;

static pc_code note_out_of_memory(const engine_outcome *ran, pc_replay *replay, pc_error *error) {
    const pc_schedule *schedule = ran->schedule;
    const pc_simulation_result *result = ran->result;
    if (!make_arrays(replay, schedule->devices)) return pc_error_no_memory(error);
    int device = pc_stage_of_position(schedule, result->task);
    pc_pass pass = schedule->passes[result->task];
    for (int d = 0; d < replay->devices; d++) {
        replay->device_peak_bytes[d] = result->peak_bytes[d];
        if (result->peak_bytes[d] > replay->peak_bytes) replay->peak_bytes = result->peak_bytes[d];
    }
    replay->out_of_memory = true;
    int64_t requested =
        pc_costs_taken_at(ran->costs, schedule, device, result->task, pc_schedule_recomputes(schedule, device, pass));
    int64_t capacity = pc_memory_limit_of(ran->memory_limit, device);
    replay->oom = (pc_out_of_memory){device, pass, result->time_ps, requested, result->level_bytes, capacity};
    return PC_OK;
}

static pc_stage_timing sum_stage(const pc_schedule *schedule, const pc_costs *costs, const pc_simulation_result *result,
                                 int d) {
    pc_stage_timing sums = {.peak_bytes = result->peak_bytes[d]};
    for (int64_t i = schedule->offsets[d]; i < schedule->offsets[d + 1]; i++) {
        pc_pass pass = schedule->passes[i];
        pc_time duration = pc_costs_busy_ps(costs, schedule, d, i);
        sums.busy_ps += duration;
        if (pass.kind != PC_PASS_R) sums.work_ps += duration;
    }
    /* Where passes wait for memory, they run in another order than theirs. */
    for (int64_t i = schedule->offsets[d]; i < schedule->offsets[d + 1]; i++) {
        bool is_first = i == schedule->offsets[d];
        if (is_first || result->start_ps[i] < sums.start_ps) sums.start_ps = result->start_ps[i];
        if (is_first || result->end_ps[i] > sums.end_ps) sums.end_ps = result->end_ps[i];
    }
    return sums;
}

/* Over links a transfer is a task, in the order in which add_transfers comes to the passes that send. NULL where memory
 * is short. */
static int32_t *find_transfer_tasks(const pc_pass_index *index) {
    int64_t passes = index->schedule->offsets[index->schedule->devices];
    int32_t *receiver = find_receivers(index), next = (int32_t)passes;
    int32_t *task = receiver ? pc_alloc((size_t)passes, sizeof *task) : NULL;
    for (int64_t i = 0; task && i < passes; i++) task[i] = PC_NO_PASS;
    for (int64_t i = 0; task && i < passes; i++)
        if (receiver[i] != PC_NO_PASS) task[receiver[i]] = next++;
    pc_free(receiver);
    return task;
}

static pc_code trace_over_links(const engine_outcome *ran, const pc_pass_index *index, outcome *found,
                                pc_replay *replay, pc_error *error) {
    int64_t passes = ran->schedule->offsets[ran->schedule->devices];
    int32_t *task = find_transfer_tasks(index);
    pc_time *arrival_ps = task ? pc_alloc((size_t)passes, sizeof *arrival_ps) : NULL;
    pc_code code = arrival_ps ? PC_OK : pc_error_no_memory(error);
    for (int64_t i = 0; !code && i < passes; i++)
        if (task[i] != PC_NO_PASS) arrival_ps[i] = ran->result->end_ps[task[i]];
    found->arrival_ps = arrival_ps;
    pc_replayed_run run = {index, ran->costs, ran->memory_limit, ran->result, task, ran->filled_ps};
    if (!code) code = keep_trace(ran->schedule, ran->costs, found, &replay->trace, error);
    if (!code) code = pc_engine_fill(&run, &replay->trace, &replay->engine, error);
    pc_free(arrival_ps);
    pc_free(task);
    return code;
}

static pc_code trace_over_delays(const engine_outcome *ran, const pc_pass_index *index, const outcome *found,
                                 pc_replay *replay, pc_error *error) {
    pc_replayed_run run = {index, ran->costs, ran->memory_limit, ran->result, NULL, 0};
    pc_code code = keep_trace(ran->schedule, ran->costs, found, &replay->trace, error);
    return code ? code : pc_engine_fill(&run, &replay->trace, &replay->engine, error);
}

static pc_code keep_engine_trace(const engine_outcome *ran, outcome *found, pc_replay *replay, pc_error *error) {
    pc_pass_index index;
    pc_code code = pc_pass_index_create(ran->schedule, &index, error);
    if (code) return code;
    code = ran->costs->transfer.mode == PC_TRANSFER_LINK ? trace_over_links(ran, &index, found, replay, error)
                                                         : trace_over_delays(ran, &index, found, replay, error);
    pc_pass_index_free(&index);
    return code;
}

static pc_code summarize(const engine_outcome *ran, bool with_trace, pc_replay *replay, pc_error *error) {
    const pc_schedule *schedule = ran->schedule;
    const pc_simulation_result *result = ran->result;
    replay->engine.event_count = result->event_count;
    if (result->outcome == PC_OUTCOME_DEADLOCK) { /* costs cannot lock a valid schedule: the order is at fault */
        pc_code code = pc_schedule_check(schedule, error);
        return code ? code : pc_error_set(error, PC_ERROR_INPUT, "schedule: deadlock");
    }
    if (result->outcome == PC_OUTCOME_OUT_OF_MEMORY) return note_out_of_memory(ran, replay, error);
    pc_stage_timing *stages = pc_alloc((size_t)schedule->devices, sizeof *stages);
    pc_code code = stages ? PC_OK : pc_error_no_memory(error);
    for (int d = 0; !code && d < schedule->devices; d++) stages[d] = sum_stage(schedule, ran->costs, result, d);
    outcome found = {result->start_ps, result->end_ps, stages, &result->levels, NULL};
    if (!code) code = fill_in(schedule, ran->costs, &found, false, replay, error);
    if (!code && with_trace) code = keep_engine_trace(ran, &found, replay, error);
    replay->trace_hash = ran->costs->ready_ps
                             ? pc_trace_hash(result->start_ps, result->end_ps, schedule->offsets[schedule->devices])
                             : result->trace_hash;
    pc_free(stages);
    return code;
}

static pc_code run_on_engine(const pc_schedule *schedule, const pc_costs *costs, const pc_replay_options *how,
                             pc_replay *replay, pc_error *error) {
    pc_program *program = NULL;
    pc_simulation *simulation = NULL;
    pc_simulation_result result;
    pc_simulation_options options = {.with_trace = how->with_trace, .every_event = how->engine == PC_ENGINE_EVENTS};
    engine_outcome found = {schedule, costs, how->memory_limit, &result, 0};
    replay->way = PC_WAY_EVENTS;
    pc_code code = pc_program_create(&program, error);
    if (!code) code = pc_simulation_create(&simulation, error);
    if (!code) code = lower(schedule, costs, how, program, &found.filled_ps, error);
    if (!code) code = pc_simulation_run(simulation, program, &options, &result, error);
    if (!code) code = summarize(&found, how->with_trace, replay, error);
    pc_simulation_free(simulation);
    pc_program_free(program);
    return code;
}

/* ---- as longest paths ---- */

/* Fills in `replay` where it can; false where the engine has to say what is wrong, or what did not fit and when. */
static bool run_as_paths(const pc_schedule *schedule, const pc_costs *costs, const pc_replay_options *how,
                         pc_replay *replay, pc_code *code, pc_error *error) {
    pc_timing *timing = NULL;
    pc_timing_result result;
    *code = pc_timing_create(&timing, NULL); /* no words yet: the engine may find others, or none */
    if (!*code) *code = pc_timing_run(timing, schedule, costs, &result, NULL);
    bool fits = *code == PC_OK && !pc_timing_exceeds(result.stages, schedule->devices, how->memory_limit);
    bool is_settled = *code == PC_ERROR_NO_MEMORY || fits;
    if (*code == PC_ERROR_NO_MEMORY) pc_error_no_memory(error);
    if (fits) {
        outcome found = {result.start_ps, result.end_ps, result.stages, NULL, NULL};
        *code = fill_in(schedule, costs, &found, how->with_trace, replay, error);
        replay->trace_hash = pc_trace_hash(result.start_ps, result.end_ps, schedule->offsets[schedule->devices]);
    }
    pc_timing_free(timing);
    return is_settled;
}

/* ---- of given times ---- */

static pc_stage_timing sum_stage_of_times(const pc_schedule *schedule, const pc_costs *costs, const pc_time *start_ps,
                                          const pc_time *end_ps, int d) {
    pc_stage_timing sums = {0};
    int64_t first = schedule->offsets[d], last = schedule->offsets[d + 1];
    for (int64_t i = first; i < last; i++) {
        bool is_second = costs->pair_ps && pc_schedule_is_second(schedule, i); /* whose time is the first one's */
        pc_time duration = is_second ? 0 : end_ps[i] - start_ps[i];
        sums.busy_ps += duration;
        if (schedule->passes[i].kind != PC_PASS_R) sums.work_ps += duration;
    }
    if (first == last) return sums;
    sums.start_ps = start_ps[first];
    sums.end_ps = end_ps[last - 1];
    return sums;
}

static pc_code fill_in_times(const pc_schedule *schedule, const pc_costs *costs, const pc_time *start_ps,
                             const pc_time *end_ps, const pc_time *arrival_ps, bool with_trace, pc_replay *replay,
                             pc_error *error) {
    size_t devices = (size_t)schedule->devices;
    pc_stage_timing *stages = pc_alloc(devices, sizeof *stages);
    int64_t *peak_bytes = pc_alloc(devices, sizeof *peak_bytes);
    pc_copy_levels levels = {0};
    pc_level_trace trace;
    outcome found = {start_ps, end_ps, stages, NULL, arrival_ps};
    pc_code code = stages && peak_bytes ? PC_OK : pc_error_no_memory(error);
    if (!code) code = pc_schedule_peaks(schedule, costs, peak_bytes, error);
    if (!code && pc_costs_have_copies(costs)) {
        code = pc_copy_levels_make(schedule, costs, start_ps, end_ps, &levels, error);
        if (!code) memcpy(peak_bytes, levels.peak_bytes, devices * sizeof *peak_bytes);
        trace = pc_copy_levels_trace(&levels);
        if (!code) found.levels = &trace;
    }
    for (int d = 0; !code && d < schedule->devices; d++) {
        stages[d] = sum_stage_of_times(schedule, costs, start_ps, end_ps, d);
        stages[d].peak_bytes = peak_bytes[d];
    }
    if (!code) code = fill_in(schedule, costs, &found, with_trace, replay, error);
    pc_copy_levels_free(&levels);
    pc_free(peak_bytes);
    pc_free(stages);
    return code;
}

pc_code pc_replay_from_times(const pc_schedule *schedule, const pc_costs *costs, const pc_time *start_ps,
                             const pc_time *end_ps, const pc_time *arrival_ps, bool with_trace, pc_replay *replay,
                             pc_error *error) {
    pc_replay made = {0};
    pc_code code = fill_in_times(schedule, costs, start_ps, end_ps, arrival_ps, with_trace, &made, error);
    if (code) {
        pc_replay_free(&made);
        return code;
    }
    made.trace_hash = pc_trace_hash(start_ps, end_ps, schedule->offsets[schedule->devices]);
    *replay = made;
    return PC_OK;
}

/* ---- the run ---- */

static bool wants_engine(const pc_costs *costs, const pc_replay_options *options) {
    return options->engine == PC_ENGINE_EVENTS || costs->transfer.mode != PC_TRANSFER_DELAY;
}

pc_code pc_replay_run(const pc_schedule *schedule, const pc_costs *costs, const pc_replay_options *options,
                      pc_replay *replay, pc_error *error) {
    static const pc_replay_options usual = {.engine = PC_ENGINE_AUTO};
    const pc_replay_options *how = options ? options : &usual;
    pc_replay made = {0};
    pc_code code = pc_timing_check_shape(schedule, costs, error);
    if (!code) code = pc_memory_limit_check(how->memory_limit, schedule->devices, error);
    if (code) return code;
    if (wants_engine(costs, how) || !run_as_paths(schedule, costs, how, &made, &code, error))
        code = run_on_engine(schedule, costs, how, &made, error);
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
                      trace->level_device,     trace->level_time_ps,  trace->level_bytes,     trace->level_kinds,
                      trace->transfer_from,    trace->transfer_to,    trace->transfer_pass,   trace->transfer_start_ps,
                      trace->transfer_end_ps};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) pc_free(arrays[i]);
    pc_engine_trace_free(&replay->engine);
    memset(replay, 0, sizeof *replay);
}
