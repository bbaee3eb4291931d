/* From each stage's last pass and gradient to the end of the iteration: what finish.h works out, as tasks. */
#include "models/training/lowering.h"

#include "models/training/finish.h"
#include "models/training/state.h"

enum { FP32_BYTES = 4 };

/* ---- collectives of the whole pipeline ---- */

/* What takes whole_ps in all, of a group's all-reduce of so many bytes. */
static pc_code sendings_of(const lowering *lowered, const pc_group *group, double bytes, pc_time whole_ps,
                           pc_sendings *sendings) {
    pc_collective_course course = pc_collective_course_of(&lowered->outline->spec->machine, group,
                                                          PC_COLLECTIVE_ALL_REDUCE, PC_ALGORITHM_BEST, bytes);
    double stretch = course.seconds > 0 ? pc_time_to_seconds(whole_ps) / course.seconds : 1;
    pc_code code = pc_lanes_sendings(&lowered->lanes, group, &course, stretch, sendings, lowered->error);
    if (!code) pc_sendings_fit(sendings, whole_ps);
    return code;
}

static void note(lowering *lowered, pc_flow_sort sort, int32_t ready_task) {
    lowered->lanes.now = (pc_flow_note){.sort = sort, .chunk = -1, .microbatch = -1, .ready_task = ready_task};
}

static pc_code add_meeting_of(lowering *lowered, const int32_t *tasks, int count, int32_t *meeting) {
    pc_code code = lowering_add_meeting(lowered, meeting);
    for (int i = 0; !code && i < count; i++) code = lowering_add_edge(lowered, tasks[i], *meeting, 0);
    return code;
}

/* ---- what comes before the step ---- */

/* Later by what the stage's kernels lose beside collectives. */
static pc_code slow_stage(lowering *lowered, int device) {
    pc_time slowed_ps = lowered->outline->device[device].slowed_ps;
    int32_t later;
    if (slowed_ps == 0) return PC_OK;
    pc_code code = lowering_add_meeting(lowered, &later);
    if (!code) code = lowering_add_edge(lowered, lowered->ended[device], later, slowed_ps);
    lowered->ended[device] = later;
    return code;
}

/* With its last pass, what that sent where the stage waits for it, and its gradients, in every replica; with all
 * passes, where any may run last. */
static pc_code end_stage(lowering *lowered, int device) {
    int64_t behind = lowered->schedule->offsets[device + 1];
    int64_t first = lowered->how.waits_for_memory ? lowered->schedule->offsets[device] : behind - 1;
    pc_code code = lowering_add_meeting(lowered, &lowered->ended[device]);
    if (!code) code = lowering_add_edge(lowered, lowered->stream[device], lowered->ended[device], 0);
    for (int r = 0; r < lowered->how.replicas; r++)
        for (int64_t i = first; !code && i < behind; i++)
            code = lowering_add_edge(lowered, lowering_over(lowered, lowering_row(lowered, r, i)),
                                     lowered->ended[device], 0);
    return code ? code : slow_stage(lowered, device);
}

/* The embedding's gradient, from each of the two stages that have it to the other. */
static pc_code meet_ends(lowering *lowered, int first, int last) {
    pc_group pair = pc_outline_pair(lowered->outline, first, last);
    const int32_t ends[] = {lowered->ended[first], lowered->ended[last]};
    int32_t meeting, there = 0, back = 0;
    pc_sendings sendings;
    pc_code code =
        sendings_of(lowered, &pair, pc_outline_tied_bytes(lowered->outline), lowered->outline->tied_ps, &sendings);
    if (!code) code = add_meeting_of(lowered, ends, 2, &meeting);
    if (code) return code;
    const pc_after after = {meeting, 0};
    note(lowered, PC_FLOW_TIED, meeting);
    code = lowering_add_collective(lowered, first, last, &sendings, after, NULL, &there);
    note(lowered, PC_FLOW_TIED, meeting);
    if (!code) code = lowering_add_collective(lowered, last, first, &sendings, after, NULL, &back);
    const int32_t both[] = {there, back};
    if (!code) code = add_meeting_of(lowered, both, 2, &lowered->ended[first]);
    lowered->ended[last] = lowered->ended[first];
    return code;
}

static pc_code reduce_loss(lowering *lowered, int last) {
    pc_sendings sendings;
    pc_code code = sendings_of(lowered, &lowered->outline->dp, FP32_BYTES, lowered->outline->loss_ps, &sendings);
    const pc_after after = {lowered->ended[last], 0};
    note(lowered, PC_FLOW_LOSS, after.task);
    return code ? code : lowering_add_collective(lowered, last, last, &sendings, after, NULL, &lowered->ended[last]);
}

/* Over DP, TP and PP one after the other; what roundings leave is the last one's. */
static pc_code norm_sendings(const lowering *lowered, pc_sendings sendings[3]) {
    const pc_group *groups[] = {&lowered->outline->dp, &lowered->outline->tp, &lowered->outline->pp};
    pc_time left_ps = lowered->outline->norm_ps, alone_ps[3], sum = 0;
    for (int i = 0; i < 3; i++) {
        double seconds =
            pc_outline_alone(&lowered->outline->spec->machine, groups[i], PC_COLLECTIVE_ALL_REDUCE, FP32_BYTES).seconds;
        pc_code code = pc_outline_time("norm", seconds, 1, &alone_ps[i], lowered->error);
        if (code) return code;
        sum += alone_ps[i];
    }
    for (int i = 0; i < 3; i++) {
        double share = sum > 0 ? (double)alone_ps[i] / (double)sum * (double)lowered->outline->norm_ps : 0;
        pc_time rounded = (pc_time)(share + 0.5), whole_ps = i == 2 || rounded > left_ps ? left_ps : rounded;
        pc_code code = sendings_of(lowered, groups[i], FP32_BYTES, whole_ps, &sendings[i]);
        if (code) return code;
        left_ps -= whole_ps;
    }
    return PC_OK;
}

/* All stages wait for the last one's gradients, and for each other. */
static pc_code add_norm(lowering *lowered, int32_t *known) {
    pc_sendings sendings[3];
    int32_t meeting = PC_NO_TASK;
    pc_code code = norm_sendings(lowered, sendings);
    if (!code) code = add_meeting_of(lowered, lowered->ended, lowered->outline->devices, &meeting);
    if (!code) code = lowering_add_meeting(lowered, known);
    for (int d = 0; !code && d < lowered->outline->devices; d++) {
        pc_after after = {meeting, 0};
        for (int i = 0; !code && i < 3; i++) {
            if (sendings[i].count == 0) continue;
            note(lowered, PC_FLOW_NORM, after.task);
            code = lowering_add_collective(lowered, d, d, &sendings[i], after, NULL, &after.task);
        }
        if (!code) code = lowering_add_edge(lowered, after.task, *known, 0);
    }
    return code;
}

/* ---- the step ---- */

static pc_code add_work(lowering *lowered, int place, pc_time duration_ps, int64_t bytes, int32_t after,
                        int32_t *number) {
    pc_task task = pc_task_default();
    task.processor = place;
    task.duration_ps = duration_ps;
    if (lowered->how.has_memory && bytes > 0) {
        task.memory = place;
        task.take_bytes = task.give_bytes = bytes;
    }
    pc_code code = pc_program_add_task(lowered->program, &task, number, lowered->error);
    return code ? code : lowering_add_edge(lowered, after, *number, 0);
}

/* norm: the task with which the norm is known, or PC_NO_TASK. */
static pc_code add_steps(lowering *lowered, int32_t norm) {
    int devices = lowered->outline->devices;
    pc_code code = PC_OK;
    for (int place = 0; !code && place < lowered->how.replicas * devices; place++) {
        const pc_device_outline *device = &lowered->outline->device[place % devices];
        code = add_work(lowered, place, device->step_ps, device->step_bytes,
                        norm == PC_NO_TASK ? lowered->ended[place % devices] : norm, &lowered->step[place]);
    }
    return code;
}

/* Behind all steps; or, where nobody waits, each stage's behind its own. */
static pc_code add_overheads(lowering *lowered, bool waits) {
    int places = lowered->how.replicas * lowered->outline->devices;
    int32_t all = PC_NO_TASK;
    pc_code code = waits ? add_meeting_of(lowered, lowered->step, places, &all) : PC_OK;
    for (int place = 0; !code && place < places; place++)
        code = add_work(lowered, place, lowered->outline->spec->overhead_ps, 0, waits ? all : lowered->step[place],
                        &lowered->overhead[place]);
    return code;
}

pc_code lowering_add_tail(lowering *lowered) {
    const pc_outline *outline = lowered->outline;
    int first = pc_placement_stage(outline->placement, outline->devices, 0, 0);
    int last = pc_placement_stage(outline->placement, outline->devices, outline->parts - 1, 0);
    bool waits = outline->spec->step == PC_STEP_NORM;
    int32_t norm = PC_NO_TASK;
    pc_code code = PC_OK;
    for (int d = 0; !code && d < outline->devices; d++) code = end_stage(lowered, d);
    if (!code && outline->tied_ps > 0) code = meet_ends(lowered, first, outline->tied_stage);
    if (!code && outline->loss_ps > 0) code = reduce_loss(lowered, last);
    if (!code && waits) code = add_norm(lowered, &norm);
    if (!code) code = add_steps(lowered, norm);
    return code || outline->spec->overhead_ps == 0 ? code : add_overheads(lowered, waits);
}
