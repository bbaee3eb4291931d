/* A stage's passes as tasks of its processor: pieces, between which buckets of parameters and gradients come and go, or
 * the steps of operations. */
#include "models/training/lowering.h"

#include "engine/alloc.h"
#include "models/training/expand_replicas.h"

/* ---- passes ---- */

static pc_code grow_spine(lowering *x) {
    int64_t room_now = x->spine_room ? 2 * x->spine_room : 64;
    int32_t *spine = pc_realloc(x->spine, (size_t)room_now, sizeof *spine);
    if (spine) x->spine = spine;
    pc_time *over_ps = pc_realloc(x->over_ps, (size_t)room_now, sizeof *over_ps);
    if (over_ps) x->over_ps = over_ps;
    if (!spine || !over_ps) return pc_error_no_memory(x->error);
    x->spine_room = room_now;
    return PC_OK;
}

/* Where it is in the pass: the first task takes the pass's memory, the last one gives. */
typedef enum piece { PIECE, LAST_PIECE } piece;

/* Adds a task on the stage's processor to the spine of the pass. */
static pc_code add_to_spine(lowering *x, int place, pc_time duration_ps, int32_t after, piece which) {
    pc_task task = pc_task_default();
    int32_t number;
    task.processor = place;
    task.duration_ps = duration_ps;
    if (x->how.has_memory) task.memory = place;
    if (x->spine_count == 0) task.take_bytes = x->take_bytes;
    if (which == LAST_PIECE) task.give_bytes = x->give_bytes;
    task.goes_on = x->spine_count > 0;
    pc_code code = pc_program_add_task(x->program, &task, &number, x->error);
    if (!code) code = lowering_add_edge(x, after, number, 0);
    if (!code && x->spine_count == x->spine_room) code = grow_spine(x);
    if (code) return code;
    int64_t at = x->spine_count++;
    x->spine[at] = number;
    x->over_ps[at] = duration_ps + (at > 0 ? x->over_ps[at - 1] : 0);
    return PC_OK;
}

/* The longest that a piece of a pass may be, so that the chunk's buckets can come or go between pieces; 0: whatever. */
static pc_time piece_of(const lowering *x, int device, int64_t position, pc_time duration_ps) {
    int64_t at = lowering_cell(x, device, x->schedule->passes[position].chunk);
    bool takes = x->first_f[at] == position && pc_plan_gathers_first(x->plan);
    bool gives = x->last_back[at] == position && pc_plan_reduces_behind(x->plan);
    int64_t buckets = takes || gives ? x->plan->chunks_of[at].buckets : 1;
    return buckets > 1 ? duration_ps / buckets : 0;
}

static pc_code add_pieces(lowering *x, int place, pc_time duration_ps, pc_time piece_ps, int32_t after, piece last) {
    int64_t pieces = piece_ps > 0 && duration_ps > piece_ps ? duration_ps / piece_ps : 1;
    pc_time share = duration_ps / pieces;
    pc_code code = add_to_spine(x, place, duration_ps - share * (pieces - 1), after, pieces == 1 ? last : PIECE);
    for (int64_t k = 1; !code && k < pieces; k++)
        code = add_to_spine(x, place, share, PC_NO_TASK, k + 1 == pieces ? last : PIECE);
    return code;
}

/* How far the steps of a pass have come: what the next task on the processor has to wait for beside the one before it.
 */
typedef struct progress {
    int32_t waits_for; /* the collective before */
    int32_t beside;    /* a collective under way for which the step after the next waits */
    pc_time piece_ps;
    /* Of a pass that is bound by its launches. */
    int32_t begin;         /* the task of no time with which it begins; else PC_NO_TASK */
    double stretch;        /* its launches over what its steps take alone: over 1 */
    double alone_s;        /* what the steps so far take alone */
    double alone_beside_s; /* the collective under way */
} progress;

/* A collective waits for the kernels before it and for the collective before those. */
static pc_code add_collective_step(lowering *x, int place, const pc_step_of_pass *step, const pc_sendings *sendings,
                                   progress *now) {
    const pc_after afters[] = {{x->spine[x->spine_count - 1], 0}, {now->waits_for, 0}};
    int32_t *done = step->runs_beside ? &now->beside : &now->waits_for;
    *(step->runs_beside ? &now->alone_beside_s : &now->alone_s) += step->seconds;
    x->lanes.now.ready_task = x->spine[x->spine_count - 1];
    return pc_lanes_add_collective(&x->lanes, place, place, sendings, afters, 2, done, x->error);
}

/* Where the host is the slower one it launches evenly: a piece of kernels, from `first` on, begins no earlier than the
 * same part of all launches is out as of the steps' own time is over. */
static pc_code add_launches(lowering *x, int64_t first, double seconds, const progress *now) {
    double pieces = (double)(x->spine_count - first);
    pc_code code = PC_OK;
    for (int64_t i = first; !code && now->begin != PC_NO_TASK && i < x->spine_count; i++) {
        double over_s = now->alone_s + seconds * (double)(i - first) / pieces;
        pc_time launched_ps;
        code = pc_plan_time("launches", now->stretch * over_s, 1, &launched_ps, x->error);
        if (!code) code = lowering_add_edge(x, now->begin, x->spine[i], launched_ps);
    }
    return code;
}

static pc_code add_kernels(lowering *x, int place, double seconds, progress *now) {
    pc_time duration;
    int64_t first = x->spine_count;
    pc_code code = pc_plan_time("kernels", seconds, 1, &duration, x->error);
    if (!code) code = add_pieces(x, place, duration, now->piece_ps, now->waits_for, PIECE);
    if (!code) code = add_launches(x, first, seconds, now);
    now->alone_s += seconds > now->alone_beside_s ? seconds : now->alone_beside_s;
    now->alone_beside_s = 0;
    now->waits_for = now->beside;
    now->beside = PC_NO_TASK;
    return code;
}

/* A collective that comes first waits for the processor, too. */
static pc_code add_step(lowering *x, int place, const pc_step_of_pass *step, const pc_sendings *sendings,
                        progress *now) {
    if (!step->is_collective) return add_kernels(x, place, step->seconds, now);
    pc_code code = x->spine_count == 0 ? add_kernels(x, place, 0, now) : PC_OK;
    return code ? code : add_collective_step(x, place, step, sendings, now);
}

/* Behind the steps that are repeated together with this one. */
static int end_of_block(const pc_recipe *recipe, int first) {
    int behind = first + 1;
    while (behind < recipe->count && recipe->steps[behind].repeat == recipe->steps[first].repeat) behind++;
    return behind;
}

/* Block by block. */
static pc_code add_blocks(lowering *x, int place, const pc_recipe *recipe, const pc_sendings *sendings, progress *now) {
    pc_code code = PC_OK;
    for (int first = 0, behind; !code && first < recipe->count; first = behind) {
        behind = end_of_block(recipe, first);
        for (int64_t k = 0; k < recipe->steps[first].repeat; k++)
            for (int i = first; !code && i < behind; i++)
                code = add_step(x, place, &recipe->steps[i], &sendings[i], now);
    }
    return code;
}

static pc_code begin_steps(lowering *x, int place, const pc_recipe *recipe, progress *now) {
    if (recipe->launches_s <= recipe->alone_s) return PC_OK;
    pc_code code = add_kernels(x, place, 0, now);
    if (code) return code;
    now->begin = x->spine[0];
    if (recipe->alone_s > 0) now->stretch = recipe->launches_s / recipe->alone_s;
    now->piece_ps = (pc_time)((double)now->piece_ps / now->stretch);
    return PC_OK;
}

/* Nor does a pass end before its launches do. What the costs have more than the steps, which is ZeRO 3's, comes behind
 * them. */
static pc_code end_steps(lowering *x, int place, const pc_recipe *recipe, pc_time more_ps, const progress *now) {
    pc_time launched_ps;
    pc_code code = add_to_spine(x, place, more_ps, now->waits_for, LAST_PIECE);
    if (code || now->begin == PC_NO_TASK) return code;
    code = pc_plan_time("launches", recipe->launches_s, 1, &launched_ps, x->error);
    return code ? code : lowering_add_edge(x, now->begin, x->spine[x->spine_count - 1], launched_ps);
}

static pc_code add_steps(lowering *x, int place, pc_pass pass, pc_time duration_ps, pc_time piece_ps) {
    int device = place % x->plan->devices;
    int at = x->plan->chunks_of[lowering_cell(x, device, pass.chunk)].sort * PC_PASS_KINDS + pass.kind;
    const pc_recipe *recipe = &x->recipes[at];
    progress now = {
        .waits_for = PC_NO_TASK, .beside = PC_NO_TASK, .piece_ps = piece_ps, .begin = PC_NO_TASK, .stretch = 1};
    pc_time alone_ps = duration_ps;
    x->lanes.now = (pc_flow_note){.sort = PC_FLOW_TENSOR, .chunk = pass.chunk, .microbatch = pass.microbatch};
    pc_code code = begin_steps(x, place, recipe, &now);
    if (!code) code = add_blocks(x, place, recipe, x->sendings[at], &now);
    if (!code) code = pc_plan_time("pass", pc_iteration_plan_pass_s(x->plan, device, pass), 1, &alone_ps, x->error);
    return code ? code : end_steps(x, place, recipe, duration_ps - alone_ps, &now);
}

/* The k-th of `count` equal shares of the pass's time is over at this. */
static pc_time share_over_ps(const lowering *x, int64_t k, int64_t count) {
    pc_time whole = x->over_ps[x->spine_count - 1];
    return k < 0 ? 0 : whole - whole / count * (count - 1 - k);
}

/* Ties a bucket of parameters to the task in which its share of the pass begins. */
static pc_code tie_gathered(lowering *x, int64_t first, int64_t count) {
    int64_t at = 0;
    pc_code code = PC_OK;
    for (int64_t k = 0; !code && k < count; k++) {
        while (at + 1 < x->spine_count && x->over_ps[at] <= share_over_ps(x, k - 1, count)) at++;
        code = lowering_add_edge(x, x->gathered[first + k], x->spine[k == 0 ? 0 : at], 0);
    }
    return code;
}

/* A bucket of gradients is there with the task in which its share of the pass ends. */
static void tie_reducible(lowering *x, int replica, int64_t first, int64_t count) {
    int32_t *reducible = x->reducible + replica * lowering_buckets(x);
    int64_t at = 0;
    for (int64_t k = 0; k < count; k++) {
        while (at + 1 < x->spine_count && x->over_ps[at] < share_over_ps(x, k, count)) at++;
        reducible[first + k] = x->spine[k + 1 == count ? x->spine_count - 1 : at];
    }
}

static pc_code tie_buckets(lowering *x, int replica, int device, int64_t position) {
    int64_t at = lowering_cell(x, device, x->schedule->passes[position].chunk);
    int64_t count = x->plan->chunks_of[at].buckets;
    bool gathers = pc_plan_gathers_first(x->plan) && x->plan->spec->overlaps_parameters && !x->how.is_closed;
    if (x->last_back[at] == position) tie_reducible(x, replica, x->bucket[at], count);
    return gathers && x->first_f[at] == position ? tie_gathered(x, x->bucket[at], count) : PC_OK;
}

/* ---- over a closed network ---- */

/* The pass is cut where a bucket of gradients is ready, which no task may end too late for, and where what it sends
 * goes, if the stage waits for that: then the transfer is the pass's last part. */
static pc_code add_cut_pass(lowering *x, int place, int64_t position, pc_time duration_ps, pc_time waits_ps) {
    int64_t at = lowering_cell(x, place % x->plan->devices, x->schedule->passes[position].chunk);
    bool gives = x->last_back[at] == position && pc_plan_reduces_behind(x->plan), cuts = waits_ps > 0;
    int64_t count = gives ? x->plan->chunks_of[at].buckets : 1;
    pc_time share = duration_ps / count, leaves_ps = duration_ps - waits_ps, over = 0;
    pc_code code = PC_OK;
    for (int64_t k = 1; !code && k <= count; k++) {
        pc_time next = duration_ps - share * (count - k);
        if (cuts && leaves_ps < next && (leaves_ps > over || x->spine_count == 0)) {
            code = add_to_spine(x, place, leaves_ps - over, PC_NO_TASK, PIECE);
            over = leaves_ps;
        }
        cuts = cuts && leaves_ps >= next;
        if (!code && (next > over || k == count))
            code = add_to_spine(x, place, next - over, PC_NO_TASK, k == count ? LAST_PIECE : PIECE);
        over = next;
    }
    return code;
}

/* The task with whose end so much of the pass is over. */
static int32_t spine_at(const lowering *x, pc_time over_ps) {
    int64_t at = 0;
    while (at + 1 < x->spine_count && x->over_ps[at] < over_ps) at++;
    return x->spine[at];
}

static pc_code add_tensor_flow(lowering *x, int place, pc_pass pass, const pc_sendings *sendings, double seconds) {
    pc_after after = {x->spine[0], 0};
    int32_t done;
    pc_code code = pc_plan_time("collective", seconds, 1, &after.delay_ps, x->error);
    if (code) return code;
    x->lanes.now = (pc_flow_note){.sort = PC_FLOW_TENSOR,
                                  .chunk = pass.chunk,
                                  .microbatch = pass.microbatch,
                                  .ready_task = after.task,
                                  .ready_delay_ps = after.delay_ps};
    return pc_lanes_add_collective(&x->lanes, place, place, sendings, &after, 1, &done, x->error);
}

/* How far the steps of a pass have come, alone, and what lasts beside the next. */
typedef struct alone {
    double now_s, beside_s;
} alone;

static pc_code add_step_beside(lowering *x, int place, pc_pass pass, const pc_step_of_pass *step,
                               const pc_sendings *sendings, double stretch, alone *time) {
    if (!step->is_collective) {
        time->now_s += step->seconds > time->beside_s ? step->seconds : time->beside_s;
        time->beside_s = 0;
        return PC_OK;
    }
    pc_code code = add_tensor_flow(x, place, pass, sendings, stretch * time->now_s);
    *(step->runs_beside ? &time->beside_s : &time->now_s) += step->seconds;
    return code;
}

/* By operations, a pass's collectives of tensor parallelism as flows beside it, each when the steps before it are over.
 * Nothing waits for them: they take what they take alone, which the pass's time has in it. */
static pc_code add_steps_beside(lowering *x, int place, pc_pass pass) {
    int at =
        x->plan->chunks_of[lowering_cell(x, place % x->plan->devices, pass.chunk)].sort * PC_PASS_KINDS + pass.kind;
    const pc_recipe *recipe = &x->recipes[at];
    bool is_launched = recipe->launches_s > recipe->alone_s && recipe->alone_s > 0;
    double stretch = is_launched ? recipe->launches_s / recipe->alone_s : 1;
    alone time = {0, 0};
    pc_code code = PC_OK;
    for (int first = 0, behind; !code && first < recipe->count; first = behind) {
        behind = end_of_block(recipe, first);
        for (int64_t k = 0; k < recipe->steps[first].repeat; k++)
            for (int i = first; !code && i < behind; i++)
                code = add_step_beside(x, place, pass, &recipe->steps[i], &x->sendings[at][i], stretch, &time);
    }
    return code;
}

static pc_code add_closed_pass(lowering *x, int replica, int device, int64_t position) {
    pc_pass pass = x->schedule->passes[position];
    int place = lowering_place(x, replica, device), to = pc_plan_receiver(x->plan, device, pass);
    pc_time duration_ps = lowering_duration_ps(x, replica, device, position);
    bool waits = to >= 0 && !x->plan->spec->overlaps_p2p;
    pc_time waits_ps = waits ? lowering_message_ps(x, replica, device, position, to) : 0;
    pc_code code = x->recipes ? add_to_spine(x, place, 0, PC_NO_TASK, PIECE) : PC_OK; /* from which they are counted */
    if (!code) code = add_cut_pass(x, place, position, duration_ps, waits_ps);
    if (!code && x->recipes) code = add_steps_beside(x, place, pass);
    if (code) return code;
    x->leaves[lowering_row(x, replica, position)] =
        waits ? spine_at(x, duration_ps - waits_ps) : x->spine[x->spine_count - 1];
    return PC_OK;
}

/* ---- all of them ---- */

/* What a pass takes and gives of the device's memory. */
static void find_bytes(lowering *x, int device, pc_pass pass) {
    bool is_recomputed = pass.kind == PC_PASS_F && pc_pass_is_recomputed(&x->index, device, pass);
    x->take_bytes = pc_costs_taken(&x->costs, device, pass, is_recomputed);
    x->give_bytes = pc_costs_given(&x->costs, device, pass);
}

/* F of a chunk that is not ready at once; all of them, for they need not run in order. */
static pc_code hold_back(lowering *x, int replica, int device, int64_t position) {
    pc_pass pass = x->schedule->passes[position];
    pc_time ready_ps = x->how.is_closed ? lowering_ready_ps(x, replica, device, pass.chunk) : 0;
    ready_ps += lowering_held_ps(x, device);
    return pass.kind == PC_PASS_F && ready_ps > 0 ? lowering_add_edge(x, x->lanes.start, x->spine[0], ready_ps) : PC_OK;
}

static pc_code wait_for_all(lowering *x, int device, int64_t position) {
    bool waits = position == x->schedule->offsets[device] && pc_plan_gathers_first(x->plan) &&
                 !x->plan->spec->overlaps_parameters && !x->how.is_closed;
    return waits ? lowering_add_edge(x, x->stream[device], x->spine[0], 0) : PC_OK;
}

static pc_code add_open_pass(lowering *x, int replica, int device, int64_t position) {
    int place = lowering_place(x, replica, device);
    pc_time duration_ps = lowering_duration_ps(x, replica, device, position);
    pc_time piece_ps = piece_of(x, device, position, duration_ps);
    return x->recipes ? add_steps(x, place, x->schedule->passes[position], duration_ps, piece_ps)
                      : add_pieces(x, place, duration_ps, piece_ps, PC_NO_TASK, LAST_PIECE);
}

/* Behind the pass, whatever comes next. */
static pc_code add_waiter(lowering *x, int replica, int device, int64_t position) {
    int64_t row = lowering_row(x, replica, position);
    if (pc_plan_receiver(x->plan, device, x->schedule->passes[position]) < 0) return PC_OK;
    x->give_bytes = 0;
    pc_code code = add_to_spine(x, lowering_place(x, replica, device), 0, PC_NO_TASK, LAST_PIECE);
    if (!code) x->waiter[row] = x->spine[x->spine_count - 1];
    return code;
}

static pc_code add_pass(lowering *x, int replica, int device, int64_t position) {
    int64_t row = lowering_row(x, replica, position);
    x->spine_count = 0;
    if (x->how.has_memory) find_bytes(x, device, x->schedule->passes[position]);
    pc_code code =
        x->how.is_closed ? add_closed_pass(x, replica, device, position) : add_open_pass(x, replica, device, position);
    if (!code) code = tie_buckets(x, replica, device, position);
    if (!code) code = hold_back(x, replica, device, position);
    if (!code) code = wait_for_all(x, device, position);
    if (code) return code;
    x->first[row] = x->spine[0];
    x->last[row] = x->spine[x->spine_count - 1];
    if (!x->how.is_closed) x->leaves[row] = x->last[row];
    return x->waiter ? add_waiter(x, replica, device, position) : PC_OK;
}

pc_code lowering_add_passes(lowering *x, int replica, int device) {
    pc_code code = PC_OK;
    for (int64_t i = x->schedule->offsets[device]; !code && i < x->schedule->offsets[device + 1]; i++)
        code = add_pass(x, replica, device, i);
    return code;
}
