/* A stage's passes as tasks of its processor: pieces, between which buckets of parameters and gradients come and go, or
 * the steps of operations. */
#include "models/training/lowering.h"

#include "engine/alloc.h"
#include "engine/numbers.h"

/* ---- passes ---- */

static pc_code grow_spine(lowering *lowered) {
    int64_t room_now = lowered->spine_room ? 2 * lowered->spine_room : 64;
    int32_t *spine = pc_realloc(lowered->spine, (size_t)room_now, sizeof *spine);
    if (spine) lowered->spine = spine;
    pc_time *over_ps = pc_realloc(lowered->over_ps, (size_t)room_now, sizeof *over_ps);
    if (over_ps) lowered->over_ps = over_ps;
    if (!spine || !over_ps) return pc_error_no_memory(lowered->error);
    lowered->spine_room = room_now;
    return PC_OK;
}

pc_code lowering_add_to_spine(lowering *lowered, int place, pc_time duration_ps, int32_t after, piece which) {
    pc_task task = pc_task_default();
    int32_t number;
    task.processor = place;
    task.duration_ps = duration_ps;
    if (lowered->how.has_memory) task.memory = place;
    if (lowered->spine_count == 0) task.take_bytes = lowered->take_bytes;
    if (which == LAST_PIECE) task.give_bytes = lowered->give_bytes;
    task.goes_on = lowered->spine_count > 0 || lowered->goes_on;
    pc_code code = pc_program_add_task(lowered->program, &task, &number, lowered->error);
    if (!code) code = lowering_add_edge(lowered, after, number, 0);
    if (!code && lowered->spine_count == lowered->spine_room) code = grow_spine(lowered);
    if (code) return code;
    int64_t at = lowered->spine_count++;
    lowered->spine[at] = number;
    lowered->over_ps[at] = duration_ps + (at > 0 ? lowered->over_ps[at - 1] : 0);
    return PC_OK;
}

/* The longest that a piece of a pass may be, so that the chunk's buckets can come or go between pieces; 0: whatever. */
static pc_time piece_of(const lowering *lowered, int device, int64_t position, pc_time duration_ps) {
    int64_t at = lowering_cell(lowered, device, lowered->schedule->passes[position].chunk);
    bool takes = lowered->first_f[at] == position && pc_outline_gathers_first(lowered->outline);
    bool gives = lowered->last_back[at] == position && pc_outline_reduces_behind(lowered->outline);
    int64_t buckets = takes || gives ? lowered->outline->chunks_of[at].buckets : 1;
    return buckets > 1 ? duration_ps / buckets : 0;
}

static pc_code add_pieces(lowering *lowered, int place, pc_time duration_ps, pc_time piece_ps, int32_t after,
                          piece last) {
    int64_t pieces = piece_ps > 0 && duration_ps > piece_ps ? duration_ps / piece_ps : 1;
    pc_time share = duration_ps / pieces;
    pc_code code =
        lowering_add_to_spine(lowered, place, duration_ps - share * (pieces - 1), after, pieces == 1 ? last : PIECE);
    for (int64_t k = 1; !code && k < pieces; k++)
        code = lowering_add_to_spine(lowered, place, share, PC_NO_TASK, k + 1 == pieces ? last : PIECE);
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
static pc_code add_collective_step(lowering *lowered, int place, const pc_step_of_pass *step,
                                   const pc_sendings *sendings, progress *now) {
    const pc_after afters[] = {{lowered->spine[lowered->spine_count - 1], 0}, {now->waits_for, 0}};
    int32_t *done = step->runs_beside ? &now->beside : &now->waits_for;
    *(step->runs_beside ? &now->alone_beside_s : &now->alone_s) += step->seconds;
    lowered->lanes.now.ready_task = lowered->spine[lowered->spine_count - 1];
    return pc_lanes_add_collective(&lowered->lanes, place, place, sendings, afters, 2, done, lowered->error);
}

/* Where the host is the slower one it launches evenly: a piece of kernels, from `first` on, begins no earlier than the
 * same part of all launches is out as of the steps' own time is over. */
static pc_code add_launches(lowering *lowered, int64_t first, double seconds, const progress *now) {
    double pieces = (double)(lowered->spine_count - first);
    pc_code code = PC_OK;
    for (int64_t i = first; !code && now->begin != PC_NO_TASK && i < lowered->spine_count; i++) {
        double over_s = now->alone_s + seconds * (double)(i - first) / pieces;
        pc_time launched_ps;
        code = pc_outline_time("launches", now->stretch * over_s, 1, &launched_ps, lowered->error);
        if (!code) code = lowering_add_edge(lowered, now->begin, lowered->spine[i], launched_ps);
    }
    return code;
}

static pc_code add_kernels(lowering *lowered, int place, double seconds, progress *now) {
    pc_time duration;
    int64_t first = lowered->spine_count;
    pc_code code = pc_outline_time("kernels", seconds, 1, &duration, lowered->error);
    if (!code) code = add_pieces(lowered, place, duration, now->piece_ps, now->waits_for, PIECE);
    if (!code) code = add_launches(lowered, first, seconds, now);
    now->alone_s += seconds > now->alone_beside_s ? seconds : now->alone_beside_s;
    now->alone_beside_s = 0;
    now->waits_for = now->beside;
    now->beside = PC_NO_TASK;
    return code;
}

/* A collective that comes first waits for the processor, too. */
static pc_code add_step(lowering *lowered, int place, const pc_step_of_pass *step, const pc_sendings *sendings,
                        progress *now) {
    if (!step->is_collective) return add_kernels(lowered, place, step->seconds, now);
    pc_code code = lowered->spine_count == 0 ? add_kernels(lowered, place, 0, now) : PC_OK;
    return code ? code : add_collective_step(lowered, place, step, sendings, now);
}

/* Block by block. */
static pc_code add_blocks(lowering *lowered, int place, const pc_recipe *recipe, const pc_sendings *sendings,
                          progress *now) {
    pc_code code = PC_OK;
    for (int first = 0, behind; !code && first < recipe->count; first = behind) {
        behind = pc_recipe_block_end(recipe, first);
        for (int64_t k = 0; k < recipe->steps[first].repeat; k++)
            for (int i = first; !code && i < behind; i++)
                code = add_step(lowered, place, &recipe->steps[i], &sendings[i], now);
    }
    return code;
}

static pc_code begin_steps(lowering *lowered, int place, const pc_recipe *recipe, progress *now) {
    if (recipe->launches_s <= recipe->alone_s) return PC_OK;
    pc_code code = add_kernels(lowered, place, 0, now);
    if (code) return code;
    now->begin = lowered->spine[0];
    if (recipe->alone_s > 0) now->stretch = recipe->launches_s / recipe->alone_s;
    now->piece_ps = (pc_time)((double)now->piece_ps / now->stretch);
    return PC_OK;
}

/* Nor does a pass end before its launches do. What the costs have more than the steps, which is ZeRO 3's, comes behind
 * them. */
static pc_code end_steps(lowering *lowered, int place, const pc_recipe *recipe, pc_time more_ps, const progress *now) {
    pc_time launched_ps;
    pc_code code = lowering_add_to_spine(lowered, place, more_ps, now->waits_for, LAST_PIECE);
    if (code || now->begin == PC_NO_TASK) return code;
    code = pc_outline_time("launches", recipe->launches_s, 1, &launched_ps, lowered->error);
    return code ? code : lowering_add_edge(lowered, now->begin, lowered->spine[lowered->spine_count - 1], launched_ps);
}

static pc_code add_steps(lowering *lowered, int place, pc_pass pass, pc_time duration_ps, pc_time piece_ps) {
    int device = place % lowered->outline->devices;
    int at = lowered->outline->chunks_of[lowering_cell(lowered, device, pass.chunk)].sort * PC_PASS_KINDS + pass.kind;
    const pc_recipe *recipe = &lowered->recipes[at];
    progress now = {
        .waits_for = PC_NO_TASK, .beside = PC_NO_TASK, .piece_ps = piece_ps, .begin = PC_NO_TASK, .stretch = 1};
    pc_time alone_ps = duration_ps;
    lowered->lanes.now = (pc_flow_note){.sort = PC_FLOW_TENSOR, .chunk = pass.chunk, .microbatch = pass.microbatch};
    pc_code code = begin_steps(lowered, place, recipe, &now);
    if (!code) code = add_blocks(lowered, place, recipe, lowered->sendings[at], &now);
    if (!code)
        code = pc_outline_time("pass", pc_outline_pass_s(lowered->outline, device, pass), 1, &alone_ps, lowered->error);
    return code ? code : end_steps(lowered, place, recipe, duration_ps - alone_ps, &now);
}

/* The k-th of `count` equal shares of the pass's time is over at this. */
static pc_time share_over_ps(const lowering *lowered, int64_t k, int64_t count) {
    pc_time whole = lowered->over_ps[lowered->spine_count - 1];
    return k < 0 ? 0 : whole - whole / count * (count - 1 - k);
}

/* Ties a bucket of parameters to the task in which its share of the pass begins. */
static pc_code tie_gathered(lowering *lowered, int64_t first, int64_t count) {
    int64_t at = 0;
    pc_code code = PC_OK;
    for (int64_t k = 0; !code && k < count; k++) {
        while (at + 1 < lowered->spine_count && lowered->over_ps[at] <= share_over_ps(lowered, k - 1, count)) at++;
        code = lowering_add_edge(lowered, lowered->gathered[first + k], lowered->spine[k == 0 ? 0 : at], 0);
    }
    return code;
}

/* A bucket of gradients is there with the task in which its share of the pass ends. */
static void tie_reducible(lowering *lowered, int replica, int64_t first, int64_t count) {
    int32_t *reducible = lowered->reducible + replica * lowering_buckets(lowered);
    int64_t at = 0;
    for (int64_t k = 0; k < count; k++) {
        while (at + 1 < lowered->spine_count && lowered->over_ps[at] < share_over_ps(lowered, k, count)) at++;
        reducible[first + k] = lowered->spine[k + 1 == count ? lowered->spine_count - 1 : at];
    }
}

static pc_code tie_buckets(lowering *lowered, int replica, int device, int64_t position) {
    int64_t at = lowering_cell(lowered, device, lowered->schedule->passes[position].chunk);
    int64_t count = lowered->outline->chunks_of[at].buckets;
    bool gathers = pc_outline_gathers_first(lowered->outline) && lowered->outline->spec->overlaps_parameters &&
                   !lowered->how.is_closed;
    if (lowered->last_back[at] == position) tie_reducible(lowered, replica, lowered->bucket[at], count);
    return gathers && lowered->first_f[at] == position ? tie_gathered(lowered, lowered->bucket[at], count) : PC_OK;
}

/* ---- over a closed network ---- */

/* The pass is cut where a bucket of gradients is ready, which no task may end too late for, and where what it sends
 * goes, if the stage waits for that: then the transfer is the pass's last part. */
static pc_code add_cut_pass(lowering *lowered, int place, int64_t position, pc_time duration_ps, pc_time waits_ps) {
    int64_t at = lowering_cell(lowered, place % lowered->outline->devices, lowered->schedule->passes[position].chunk);
    bool gives = lowered->last_back[at] == position && pc_outline_reduces_behind(lowered->outline), cuts = waits_ps > 0;
    int64_t count = gives ? lowered->outline->chunks_of[at].buckets : 1;
    pc_time share = duration_ps / count, leaves_ps = duration_ps - waits_ps, over = 0;
    pc_code code = PC_OK;
    for (int64_t k = 1; !code && k <= count; k++) {
        pc_time next = duration_ps - share * (count - k);
        if (cuts && leaves_ps < next && (leaves_ps > over || lowered->spine_count == 0)) {
            code = lowering_add_to_spine(lowered, place, leaves_ps - over, PC_NO_TASK, PIECE);
            over = leaves_ps;
        }
        cuts = cuts && leaves_ps >= next;
        if (!code && (next > over || k == count))
            code = lowering_add_to_spine(lowered, place, next - over, PC_NO_TASK, k == count ? LAST_PIECE : PIECE);
        over = next;
    }
    return code;
}

/* The task with whose end so much of the pass is over. */
static int32_t spine_at(const lowering *lowered, pc_time over_ps) {
    int64_t at = 0;
    while (at + 1 < lowered->spine_count && lowered->over_ps[at] < over_ps) at++;
    return lowered->spine[at];
}

pc_code lowering_add_tensor_flow(lowering *lowered, int place, pc_pass pass, const pc_sendings *sendings,
                                 double seconds) {
    pc_after after = {lowered->spine[0], 0};
    int32_t done;
    pc_code code = pc_outline_time("collective", seconds, 1, &after.delay_ps, lowered->error);
    if (code) return code;
    lowered->lanes.now = (pc_flow_note){.sort = PC_FLOW_TENSOR,
                                        .chunk = pass.chunk,
                                        .microbatch = pass.microbatch,
                                        .ready_task = after.task,
                                        .ready_delay_ps = after.delay_ps};
    return pc_lanes_add_collective(&lowered->lanes, place, place, sendings, &after, 1, &done, lowered->error);
}

/* How far the steps of a pass have come, alone, and what lasts beside the next. */
typedef struct alone {
    double now_s, beside_s;
} alone;

static pc_code add_step_beside(lowering *lowered, int place, pc_pass pass, const pc_step_of_pass *step,
                               const pc_sendings *sendings, double stretch, alone *time) {
    if (!step->is_collective) {
        time->now_s += step->seconds > time->beside_s ? step->seconds : time->beside_s;
        time->beside_s = 0;
        return PC_OK;
    }
    pc_code code = lowering_add_tensor_flow(lowered, place, pass, sendings, stretch * time->now_s);
    *(step->runs_beside ? &time->beside_s : &time->now_s) += step->seconds;
    return code;
}

/* By operations, a pass's collectives of tensor parallelism as flows beside it, each when the steps before it are over.
 * Nothing waits for them: they take what they take alone, which the pass's time has in it. */
static pc_code add_steps_beside(lowering *lowered, int place, pc_pass pass) {
    int at = lowered->outline->chunks_of[lowering_cell(lowered, place % lowered->outline->devices, pass.chunk)].sort *
                 PC_PASS_KINDS +
             pass.kind;
    const pc_recipe *recipe = &lowered->recipes[at];
    bool is_launched = recipe->launches_s > recipe->alone_s && recipe->alone_s > 0;
    double stretch = is_launched ? recipe->launches_s / recipe->alone_s : 1;
    alone time = {0, 0};
    pc_code code = PC_OK;
    for (int first = 0, behind; !code && first < recipe->count; first = behind) {
        behind = pc_recipe_block_end(recipe, first);
        for (int64_t k = 0; k < recipe->steps[first].repeat; k++)
            for (int i = first; !code && i < behind; i++)
                code =
                    add_step_beside(lowered, place, pass, &recipe->steps[i], &lowered->sendings[at][i], stretch, &time);
    }
    return code;
}

/* Its units, and what the stage waits for what it sends. */
static pc_code add_unit_pass(lowering *lowered, int device, pc_pass pass, pc_time waits_ps) {
    pc_code code = lowering_add_units(lowered, device, pass, waits_ps > 0 ? PIECE : LAST_PIECE);
    return code || waits_ps == 0 ? code : lowering_add_to_spine(lowered, device, waits_ps, PC_NO_TASK, LAST_PIECE);
}

/* For how long the stage waits for what a pass has sent. */
static pc_time message_behind_ps(const lowering *lowered, int replica, int device, int64_t position) {
    int to = pc_outline_receiver(lowered->outline, device, lowered->schedule->passes[position]);
    return to < 0 ? 0 : lowering_message_ps(lowered, replica, device, position, to);
}

/* The same of all that goes out with the pass: of a pair both messages, with the first pass. */
static pc_time wait_behind_ps(const lowering *lowered, int replica, int device, int64_t position) {
    if (lowered->outline->spec->overlaps_p2p || lowering_ends_pair(lowered, position)) return 0;
    pc_time own_ps = message_behind_ps(lowered, replica, device, position);
    if (!lowering_begins_pair(lowered, position)) return own_ps;
    return pc_max(own_ps, message_behind_ps(lowered, replica, device, position + 1));
}

static pc_code add_closed_pass(lowering *lowered, int replica, int device, int64_t position) {
    pc_pass pass = lowered->schedule->passes[position];
    int64_t row = lowering_row(lowered, replica, position);
    int place = lowering_place(lowered, replica, device);
    pc_time duration_ps = lowering_duration_ps(lowered, replica, device, position);
    pc_time waits_ps = wait_behind_ps(lowered, replica, device, position);
    pc_code code = lowered->recipes ? lowering_add_to_spine(lowered, place, 0, PC_NO_TASK, PIECE)
                                    : PC_OK; /* from which they are counted */
    bool has_units = lowering_has_units(lowered, position);
    if (!code && has_units)
        code = add_unit_pass(lowered, device, pass, waits_ps);
    else if (!code)
        code = add_cut_pass(lowered, place, position, duration_ps, waits_ps);
    bool begins = lowering_begins_pair(lowered, position), ends = lowering_ends_pair(lowered, position);
    if (!code && lowered->recipes && begins) code = lowering_add_pair_beside(lowered, place, position);
    if (!code && lowered->recipes && !begins && !ends) code = add_steps_beside(lowered, place, pass);
    if (code) return code;
    if (waits_ps > 0 && has_units)
        lowered->leaves[row] = lowered->spine[lowered->spine_count - 2];
    else if (ends)
        lowered->leaves[row] = lowered->leaves[row - 1];
    else
        lowered->leaves[row] =
            waits_ps > 0 ? spine_at(lowered, duration_ps - waits_ps) : lowered->spine[lowered->spine_count - 1];
    return PC_OK;
}

/* ---- all of them ---- */

/* What a pass takes and gives of the device's memory. */
static void find_bytes(lowering *lowered, int device, int64_t position) {
    const pc_schedule *schedule = lowered->schedule;
    pc_pass pass = schedule->passes[position];
    bool is_recomputed = pass.kind == PC_PASS_F && pc_pass_is_recomputed(&lowered->index, device, pass);
    lowered->take_bytes = pc_costs_taken_at(&lowered->costs, schedule, device, position, is_recomputed);
    lowered->give_bytes = pc_costs_given_at(&lowered->costs, schedule, device, position);
    lowering_add_copied_bytes(lowered, device, pass);
}

/* F of a chunk that is not ready at once; all of them, for they need not run in order. */
static pc_code hold_back(lowering *lowered, int replica, int device, int64_t position) {
    pc_pass pass = lowered->schedule->passes[position];
    pc_time ready_ps = lowered->how.is_closed ? lowering_ready_ps(lowered, replica, device, pass.chunk) : 0;
    ready_ps += lowering_held_ps(lowered, device);
    return pass.kind == PC_PASS_F && ready_ps > 0
               ? lowering_add_edge(lowered, lowered->lanes.start, lowered->spine[0], ready_ps)
               : PC_OK;
}

static pc_code wait_for_all(lowering *lowered, int device, int64_t position) {
    bool waits = position == lowered->schedule->offsets[device] && pc_outline_gathers_first(lowered->outline) &&
                 !lowered->outline->spec->overlaps_parameters && !lowered->how.is_closed;
    return waits ? lowering_add_edge(lowered, lowered->stream[device], lowered->spine[0], 0) : PC_OK;
}

static pc_code add_open_pass(lowering *lowered, int replica, int device, int64_t position) {
    int place = lowering_place(lowered, replica, device);
    pc_time duration_ps = lowering_duration_ps(lowered, replica, device, position);
    pc_time piece_ps = piece_of(lowered, device, position, duration_ps);
    if (lowering_has_units(lowered, position))
        return lowering_add_units(lowered, device, lowered->schedule->passes[position], LAST_PIECE);
    if (lowered->recipes && lowering_begins_pair(lowered, position))
        return lowering_add_pair(lowered, place, position, duration_ps);
    return lowered->recipes && !lowering_ends_pair(lowered, position)
               ? add_steps(lowered, place, lowered->schedule->passes[position], duration_ps, piece_ps)
               : add_pieces(lowered, place, duration_ps, piece_ps, PC_NO_TASK, LAST_PIECE);
}

static bool sends(const lowering *lowered, int device, int64_t position) {
    return pc_outline_receiver(lowered->outline, device, lowered->schedule->passes[position]) >= 0;
}

/* Behind the pass, whatever comes next; of a pair, behind both. In a fixed order the next pass itself waits, but none
 * is behind the last one. */
static pc_code add_waiter(lowering *lowered, int replica, int device, int64_t position) {
    int64_t row = lowering_row(lowered, replica, position);
    bool has_next = position + 1 < lowered->schedule->offsets[device + 1];
    if (!lowered->waiter || (has_next && !lowered->how.waits_for_memory)) return PC_OK;
    bool is_second = lowering_ends_pair(lowered, position);
    if (lowering_begins_pair(lowered, position)) return PC_OK;
    if (!sends(lowered, device, position) && !(is_second && sends(lowered, device, position - 1))) return PC_OK;
    lowered->give_bytes = 0;
    pc_code code = lowering_add_to_spine(lowered, lowering_place(lowered, replica, device), 0, PC_NO_TASK, LAST_PIECE);
    if (!code) lowered->waiter[row] = lowered->spine[lowered->spine_count - 1];
    return code;
}

static pc_code add_pass(lowering *lowered, int replica, int device, int64_t position) {
    int64_t row = lowering_row(lowered, replica, position);
    lowered->spine_count = 0;
    lowered->goes_on = lowering_ends_pair(lowered, position);
    if (lowered->how.has_memory) find_bytes(lowered, device, position);
    pc_code code = lowered->how.is_closed ? add_closed_pass(lowered, replica, device, position)
                                          : add_open_pass(lowered, replica, device, position);
    if (!code) code = tie_buckets(lowered, replica, device, position);
    if (!code) code = hold_back(lowered, replica, device, position);
    if (!code) code = wait_for_all(lowered, device, position);
    if (code) return code;
    lowered->first[row] = lowered->spine[0];
    lowered->last[row] = lowered->spine[lowered->spine_count - 1];
    if (!lowered->how.is_closed) lowered->leaves[row] = lowered->last[row];
    code = lowering_add_copies(lowered, replica, device, position);
    return code ? code : add_waiter(lowered, replica, device, position);
}

pc_code lowering_add_passes(lowering *lowered, int replica, int device) {
    pc_code code = PC_OK;
    for (int64_t i = lowered->schedule->offsets[device]; !code && i < lowered->schedule->offsets[device + 1]; i++)
        code = add_pass(lowered, replica, device, i);
    return code;
}
