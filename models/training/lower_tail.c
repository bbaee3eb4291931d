/* From each stage's last pass and gradient to the end of the iteration: what finish.h works out, as tasks. */
#include "models/training/lowering.h"

#include "models/training/finish.h"
#include "models/training/state.h"

enum { FP32_BYTES = 4 };

/* ---- collectives of the whole pipeline ---- */

/* What takes whole_ps in all, of a group's all-reduce of so many bytes. */
static pc_code sendings_of(const lowering *x, const pc_group *group, double bytes, pc_time whole_ps,
                           pc_sendings *sendings) {
    pc_collective_plan plan =
        pc_collective_plan_for(&x->plan->spec->machine, group, PC_COLLECTIVE_ALL_REDUCE, PC_ALGORITHM_BEST, bytes);
    double stretch = plan.seconds > 0 ? pc_time_to_seconds(whole_ps) / plan.seconds : 1;
    pc_code code = pc_lanes_sendings(&x->lanes, group, &plan, stretch, sendings, x->error);
    if (!code) pc_sendings_fit(sendings, whole_ps);
    return code;
}

static void note(lowering *x, pc_flow_sort sort, int32_t ready_task) {
    x->lanes.now = (pc_flow_note){.sort = sort, .chunk = -1, .microbatch = -1, .ready_task = ready_task};
}

static pc_code add_meeting_of(lowering *x, const int32_t *tasks, int count, int32_t *meeting) {
    pc_code code = lowering_add_meeting(x, meeting);
    for (int i = 0; !code && i < count; i++) code = lowering_add_edge(x, tasks[i], *meeting, 0);
    return code;
}

/* ---- what comes before the step ---- */

/* With its last pass and its gradients, in every replica; with all passes, where any may run last. */
static pc_code end_stage(lowering *x, int device) {
    int64_t behind = x->schedule->offsets[device + 1];
    int64_t first = x->how.waits_for_memory ? x->schedule->offsets[device] : behind - 1;
    pc_code code = lowering_add_meeting(x, &x->ended[device]);
    if (!code) code = lowering_add_edge(x, x->stream[device], x->ended[device], 0);
    for (int r = 0; r < x->how.replicas; r++)
        for (int64_t i = first; !code && i < behind; i++)
            code = lowering_add_edge(x, x->last[lowering_row(x, r, i)], x->ended[device], 0);
    return code;
}

/* The tied embedding's gradient, from each end of the model to the other. */
static pc_code meet_ends(lowering *x, int first, int last) {
    pc_group pair = pc_plan_pair(x->plan, first, last);
    const int32_t ends[] = {x->ended[first], x->ended[last]};
    int32_t meeting, there, back;
    pc_sendings sendings;
    pc_code code = sendings_of(x, &pair, pc_plan_tied_bytes(x->plan), x->plan->tied_ps, &sendings);
    if (!code) code = add_meeting_of(x, ends, 2, &meeting);
    if (code) return code;
    const pc_after after = {meeting, 0};
    note(x, PC_FLOW_TIED, meeting);
    code = lowering_add_collective(x, first, last, &sendings, after, NULL, &there);
    note(x, PC_FLOW_TIED, meeting);
    if (!code) code = lowering_add_collective(x, last, first, &sendings, after, NULL, &back);
    const int32_t both[] = {there, back};
    if (!code) code = add_meeting_of(x, both, 2, &x->ended[first]);
    x->ended[last] = x->ended[first];
    return code;
}

static pc_code reduce_loss(lowering *x, int last) {
    pc_sendings sendings;
    pc_code code = sendings_of(x, &x->plan->dp, FP32_BYTES, x->plan->loss_ps, &sendings);
    const pc_after after = {x->ended[last], 0};
    note(x, PC_FLOW_LOSS, after.task);
    return code ? code : lowering_add_collective(x, last, last, &sendings, after, NULL, &x->ended[last]);
}

/* Over DP, TP and PP one after the other; what roundings leave is the last one's. */
static pc_code norm_sendings(const lowering *x, pc_sendings sendings[3]) {
    const pc_group *groups[] = {&x->plan->dp, &x->plan->tp, &x->plan->pp};
    pc_time left_ps = x->plan->norm_ps, alone_ps[3], sum = 0;
    for (int i = 0; i < 3; i++) {
        double seconds =
            pc_plan_alone(&x->plan->spec->machine, groups[i], PC_COLLECTIVE_ALL_REDUCE, FP32_BYTES).seconds;
        pc_code code = pc_plan_time("norm", seconds, 1, &alone_ps[i], x->error);
        if (code) return code;
        sum += alone_ps[i];
    }
    for (int i = 0; i < 3; i++) {
        double share = sum > 0 ? (double)alone_ps[i] / (double)sum * (double)x->plan->norm_ps : 0;
        pc_time rounded = (pc_time)(share + 0.5), whole_ps = i == 2 || rounded > left_ps ? left_ps : rounded;
        pc_code code = sendings_of(x, groups[i], FP32_BYTES, whole_ps, &sendings[i]);
        if (code) return code;
        left_ps -= whole_ps;
    }
    return PC_OK;
}

/* All stages wait for the last one's gradients, and for each other. */
static pc_code add_norm(lowering *x, int32_t *known) {
    pc_sendings sendings[3];
    int32_t meeting = PC_NO_TASK;
    pc_code code = norm_sendings(x, sendings);
    if (!code) code = add_meeting_of(x, x->ended, x->plan->devices, &meeting);
    if (!code) code = lowering_add_meeting(x, known);
    for (int d = 0; !code && d < x->plan->devices; d++) {
        pc_after after = {meeting, 0};
        for (int i = 0; !code && i < 3; i++) {
            if (sendings[i].count == 0) continue;
            note(x, PC_FLOW_NORM, after.task);
            code = lowering_add_collective(x, d, d, &sendings[i], after, NULL, &after.task);
        }
        if (!code) code = lowering_add_edge(x, after.task, *known, 0);
    }
    return code;
}

/* ---- the step ---- */

static pc_code add_work(lowering *x, int place, pc_time duration_ps, int64_t bytes, int32_t after, int32_t *number) {
    pc_task task = pc_task_default();
    task.processor = place;
    task.duration_ps = duration_ps;
    if (x->how.has_memory && bytes > 0) {
        task.memory = place;
        task.take_bytes = task.give_bytes = bytes;
    }
    pc_code code = pc_program_add_task(x->program, &task, number, x->error);
    return code ? code : lowering_add_edge(x, after, *number, 0);
}

/* norm: the task with which the norm is known, or PC_NO_TASK. */
static pc_code add_steps(lowering *x, int32_t norm) {
    int devices = x->plan->devices;
    pc_code code = PC_OK;
    for (int place = 0; !code && place < x->how.replicas * devices; place++) {
        const pc_device_plan *device = &x->plan->device[place % devices];
        code = add_work(x, place, device->step_ps, device->step_bytes,
                        norm == PC_NO_TASK ? x->ended[place % devices] : norm, &x->step[place]);
    }
    return code;
}

/* Behind all steps; or, where nobody waits, each stage's behind its own. */
static pc_code add_overheads(lowering *x, bool waits) {
    int places = x->how.replicas * x->plan->devices;
    int32_t all = PC_NO_TASK;
    pc_code code = waits ? add_meeting_of(x, x->step, places, &all) : PC_OK;
    for (int place = 0; !code && place < places; place++)
        code = add_work(x, place, x->plan->spec->overhead_ps, 0, waits ? all : x->step[place], &x->overhead[place]);
    return code;
}

pc_code lowering_add_tail(lowering *x) {
    const pc_iteration_plan *plan = x->plan;
    int first = pc_placement_stage(plan->placement, plan->devices, 0, 0);
    int last = pc_placement_stage(plan->placement, plan->devices, plan->parts - 1, 0);
    bool waits = plan->spec->step == PC_STEP_NORM;
    int32_t norm = PC_NO_TASK;
    pc_code code = PC_OK;
    for (int d = 0; !code && d < plan->devices; d++) code = end_stage(x, d);
    if (!code && plan->tied_ps > 0) code = meet_ends(x, first, last);
    if (!code && plan->loss_ps > 0) code = reduce_loss(x, last);
    if (!code && waits) code = add_norm(x, &norm);
    if (!code) code = add_steps(x, norm);
    return code || plan->spec->overhead_ps == 0 ? code : add_overheads(x, waits);
}
