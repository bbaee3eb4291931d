/* A replay on the engine: the schedule as a program, and what its run comes to. */
#include "models/schedule/replay_private.h"

#include "engine/alloc.h"
#include "engine/program.h"
#include "engine/simulation.h"
#include "models/schedule/check.h"
#include "models/schedule/dependencies.h"
#include "models/schedule/engine_fill.h"
#include "models/schedule/timing.h"

#include <inttypes.h>

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

/* ---- what the engine made of it ---- */

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
    if (!pc_replay_make_arrays(replay, schedule->devices)) return pc_error_no_memory(error);
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

static pc_code trace_over_links(const engine_outcome *ran, const pc_pass_index *index, pc_replay_times *found,
                                pc_replay *replay, pc_error *error) {
    int64_t passes = ran->schedule->offsets[ran->schedule->devices];
    int32_t *task = find_transfer_tasks(index);
    pc_time *arrival_ps = task ? pc_alloc((size_t)passes, sizeof *arrival_ps) : NULL;
    pc_code code = arrival_ps ? PC_OK : pc_error_no_memory(error);
    for (int64_t i = 0; !code && i < passes; i++)
        if (task[i] != PC_NO_PASS) arrival_ps[i] = ran->result->end_ps[task[i]];
    found->arrival_ps = arrival_ps;
    pc_replayed_run run = {index, ran->costs, ran->memory_limit, ran->result, task, ran->filled_ps};
    if (!code) code = pc_replay_keep_trace(ran->schedule, ran->costs, found, &replay->trace, error);
    if (!code) code = pc_engine_fill(&run, &replay->trace, &replay->engine, error);
    pc_free(arrival_ps);
    pc_free(task);
    return code;
}

static pc_code trace_over_delays(const engine_outcome *ran, const pc_pass_index *index, const pc_replay_times *found,
                                 pc_replay *replay, pc_error *error) {
    pc_replayed_run run = {index, ran->costs, ran->memory_limit, ran->result, NULL, 0};
    pc_code code = pc_replay_keep_trace(ran->schedule, ran->costs, found, &replay->trace, error);
    return code ? code : pc_engine_fill(&run, &replay->trace, &replay->engine, error);
}

static pc_code keep_engine_trace(const engine_outcome *ran, pc_replay_times *found, pc_replay *replay,
                                 pc_error *error) {
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
    pc_replay_times found = {result->start_ps, result->end_ps, stages, &result->levels, NULL};
    if (!code) code = pc_replay_fill_in(schedule, ran->costs, &found, false, replay, error);
    if (!code && with_trace) code = keep_engine_trace(ran, &found, replay, error);
    replay->trace_hash = ran->costs->ready_ps
                             ? pc_trace_hash(result->start_ps, result->end_ps, schedule->offsets[schedule->devices])
                             : result->trace_hash;
    pc_free(stages);
    return code;
}

pc_code pc_replay_on_engine(const pc_schedule *schedule, const pc_costs *costs, const pc_replay_options *how,
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
