/* What goes over links beside the passes: collectives of data parallelism, messages between stages. */
#include "models/training/lowering.h"

#include "models/training/expand_replicas.h"
#include "models/training/state.h"

/* ---- collectives of all replicas ---- */

pc_code lowering_add_meeting(lowering *x, int32_t *task) {
    pc_task nothing = pc_task_default();
    return pc_program_add_task(x->program, &nothing, task, x->error);
}

static pc_code add_edges_from(lowering *x, const int32_t *from, int32_t to) {
    pc_code code = PC_OK;
    for (int r = 0; !code && r < x->how.replicas; r++) code = lowering_add_edge(x, from[r], to, 0);
    return code;
}

/* It begins when all replicas can, and is over when all are. */
static pc_code add_to_all(lowering *x, int device, int to, const pc_sendings *sendings, pc_after before,
                          const int32_t *afters, int32_t *done) {
    int32_t ready = PC_NO_TASK, one, all = PC_NO_TASK;
    pc_flow_note now = x->lanes.now;
    pc_code code = afters && afters[0] != PC_NO_TASK ? lowering_add_meeting(x, &ready) : PC_OK;
    if (!code && ready != PC_NO_TASK) code = add_edges_from(x, afters, ready);
    if (!code) code = lowering_add_meeting(x, &all);
    for (int r = 0; !code && r < x->how.replicas; r++) {
        const pc_after both[] = {before, {ready, 0}};
        x->lanes.now = now;
        if (ready != PC_NO_TASK) x->lanes.now.ready_task = ready;
        code = pc_lanes_add_collective(&x->lanes, lowering_place(x, r, device), lowering_place(x, r, to), sendings,
                                       both, 2, &one, x->error);
        if (!code) code = lowering_add_edge(x, one, all, 0);
    }
    *done = all;
    return code;
}

pc_code lowering_add_collective(lowering *x, int device, int to, const pc_sendings *sendings, pc_after before,
                                const int32_t *afters, int32_t *done) {
    if (x->how.replicas > 1) return add_to_all(x, device, to, sendings, before, afters, done);
    const pc_after both[] = {before, {afters ? afters[0] : PC_NO_TASK, 0}};
    if (both[1].task != PC_NO_TASK) x->lanes.now.ready_task = both[1].task;
    return pc_lanes_add_collective(&x->lanes, device, to, sendings, both, 2, done, x->error);
}

/* ---- parameters and gradients ---- */

/* Adds one to the stage's stream, after `afters` too. */
static pc_code add_to_stream(lowering *x, int device, const pc_sendings *sendings, const int32_t *afters) {
    pc_after before = {x->stream[device], 0};
    pc_time held_ps = lowering_held_ps(x, device);
    if (before.task == PC_NO_TASK && held_ps > 0) before = (pc_after){x->lanes.start, held_ps};
    return lowering_add_collective(x, device, device, sendings, before, afters, &x->stream[device]);
}

/* What a bucket of a chunk sends, `times` of them at once; alone_ps: what one takes. */
static pc_code bucket_sendings(const lowering *x, int device, int chunk, pc_collective collective, int bytes_each,
                               int32_t times, pc_time alone_ps, pc_sendings *sendings) {
    double bytes = pc_plan_bucket_bytes(x->plan, device, chunk, bytes_each);
    pc_collective_plan plan =
        pc_collective_plan_for(&x->plan->spec->machine, &x->plan->dp, collective, PC_ALGORITHM_BEST, bytes);
    double slower = x->how.is_closed && plan.seconds > 0 ? pc_time_to_seconds(alone_ps) / plan.seconds : 1;
    pc_code code = pc_lanes_sendings(&x->lanes, &x->plan->dp, &plan, times * slower, sendings, x->error);
    if (!code && x->how.is_closed) pc_sendings_fit(sendings, times * alone_ps);
    return code;
}

pc_code lowering_add_gathers(lowering *x, int device) {
    pc_code code = PC_OK;
    if (!pc_plan_gathers_first(x->plan)) return PC_OK;
    for (int i = 0; !code && i < x->plan->chunks; i++) {
        int chunk = pc_plan_nth_chunk(x->plan, device, i);
        int64_t at = lowering_cell(x, device, chunk);
        pc_sendings bucket;
        code = bucket_sendings(x, device, chunk, PC_COLLECTIVE_ALL_GATHER, PC_PARAMETER_BYTES, 1,
                               x->plan->chunks_of[at].gather_ps, &bucket);
        for (int64_t k = x->bucket[at]; !code && k < x->bucket[at + 1]; k++) {
            x->lanes.now = (pc_flow_note){.sort = PC_FLOW_GATHER, .chunk = chunk, .microbatch = -1};
            code = add_to_stream(x, device, &bucket, NULL);
            x->gathered[k] = x->stream[device];
        }
    }
    return code;
}

/* Where passes need not run in their order, the one that stands last may run earlier: then a chunk's gradients wait for
 * all that add to them. */
static pc_code wait_for_others(lowering *x, int device, int64_t position) {
    int chunk = x->schedule->passes[position].chunk;
    int32_t all;
    if (!x->how.waits_for_memory) return PC_OK;
    pc_code code = lowering_add_meeting(x, &all);
    if (!code) code = lowering_add_edge(x, x->stream[device], all, 0);
    for (int r = 0; r < x->how.replicas; r++)
        for (int64_t i = x->schedule->offsets[device]; !code && i < x->schedule->offsets[device + 1]; i++) {
            pc_pass pass = x->schedule->passes[i];
            if (i != position && pass.chunk == chunk && pc_pass_adds_gradients(pass))
                code = lowering_add_edge(x, x->last[lowering_row(x, r, i)], all, 0);
        }
    x->stream[device] = all;
    return code;
}

/* Of every replica: the end of a pass, or what a bucket waits for. */
static const int32_t *after_pass(const lowering *x, int64_t position) {
    for (int r = 0; r < x->how.replicas; r++) x->afters[r] = x->last[lowering_row(x, r, position)];
    return x->afters;
}

static const int32_t *after_bucket(const lowering *x, int device, int64_t bucket) {
    if (!x->plan->spec->overlaps_gradients) return after_pass(x, x->schedule->offsets[device + 1] - 1);
    for (int r = 0; r < x->how.replicas; r++) x->afters[r] = x->reducible[r * lowering_buckets(x) + bucket];
    return x->afters;
}

/* The reduction of what one pass makes: bucket by bucket as the last pass goes on; with ZeRO 2 all at once behind each
 * one before. */
static pc_code add_reduction(lowering *x, int device, int64_t position) {
    const pc_iteration_plan *plan = x->plan;
    pc_pass pass = x->schedule->passes[position];
    int64_t at = lowering_cell(x, device, pass.chunk);
    bool is_last = x->last_back[at] == position;
    const pc_chunk_plan *chunk = &plan->chunks_of[at];
    pc_sendings bucket;
    pc_code code = bucket_sendings(x, device, pass.chunk, pc_plan_reduction(plan), pc_cut_gradient_bytes(&plan->cut),
                                   is_last ? 1 : chunk->buckets, chunk->reduce_ps, &bucket);
    if (!code && is_last) code = wait_for_others(x, device, position);
    x->lanes.now = (pc_flow_note){.sort = PC_FLOW_REDUCE, .chunk = pass.chunk, .microbatch = -1};
    if (!is_last) return code ? code : add_to_stream(x, device, &bucket, after_pass(x, position));
    for (int64_t k = x->bucket[at]; !code && k < x->bucket[at + 1]; k++)
        code = add_to_stream(x, device, &bucket, after_bucket(x, device, k));
    return code;
}

/* Of the passes that are, or are not, the last ones of their chunks. */
static pc_code add_reductions_of(lowering *x, int device, bool of_last, bool of_others) {
    pc_code code = PC_OK;
    for (int64_t i = x->schedule->offsets[device]; !code && i < x->schedule->offsets[device + 1]; i++) {
        pc_pass pass = x->schedule->passes[i];
        bool is_last = x->last_back[lowering_cell(x, device, pass.chunk)] == i;
        if (pc_pass_adds_gradients(pass) && (is_last ? of_last : of_others)) code = add_reduction(x, device, i);
    }
    return code;
}

/* By closed costs the last ones come behind all others, and none waits for parameters, each having a stream of its own
 * (finish.h). */
pc_code lowering_add_reductions(lowering *x, int device) {
    bool has_others = x->plan->cut.zero == 2;
    if (!pc_plan_reduces_behind(x->plan)) return PC_OK;
    if (x->how.is_closed) x->stream[device] = PC_NO_TASK;
    if (!x->how.is_closed || !has_others) return add_reductions_of(x, device, true, has_others);
    pc_code code = add_reductions_of(x, device, false, true);
    return code ? code : add_reductions_of(x, device, true, false);
}

/* ---- transfers ---- */

static bool goes_into_domain(const lowering *x, int from, int to) {
    return x->plan->device[pc_plan_hop(x->plan, from, to)].hop.in_domain;
}

/* Where passes need not run in their order, what a stage sends over a link goes in the order in which it can. */
static pc_code find_sender(lowering *x, int place, bool in_domain, int32_t *sender) {
    int32_t *known = &x->sender[2 * (int64_t)place + in_domain];
    pc_code code = PC_OK;
    if (*known == PC_NO_TASK) code = pc_program_add_processor(x->program, PC_PROCESSOR_FIRST_COME, known, x->error);
    *sender = *known;
    return code;
}

/* A stage that waits for what it sends does no pass meanwhile; which would be the next, its order says, or else a task
 * waits in its place. */
static pc_code wait_for_sent(lowering *x, int replica, int from, int64_t position, int32_t done) {
    int64_t row = lowering_row(x, replica, position);
    bool is_last = position + 1 == x->schedule->offsets[from + 1];
    if (x->plan->spec->overlaps_p2p || x->how.is_closed || (is_last && !x->waiter)) return PC_OK;
    return lowering_add_edge(x, done, x->waiter ? x->waiter[row] : x->first[row + 1], x->plan->gathering_ps);
}

static pc_code add_message(lowering *x, int replica, pc_predecessor from, int device, int64_t position) {
    int64_t sender = lowering_row(x, replica, from.position), receiver = lowering_row(x, replica, position);
    int place = lowering_place(x, replica, from.stage);
    pc_pass pass = x->schedule->passes[from.position];
    pc_time whole_ps =
        x->how.is_closed ? lowering_message_ps(x, replica, from.stage, from.position, device) : PC_TIME_NOT_GIVEN;
    pc_time gathering_ps = x->how.is_closed ? pc_lanes_gathering_ps(&x->lanes, whole_ps) : x->plan->gathering_ps;
    int32_t done;
    x->lanes.now = (pc_flow_note){
        .sort = PC_FLOW_MESSAGE, .chunk = pass.chunk, .microbatch = pass.microbatch, .ready_task = x->leaves[sender]};
    x->lanes.processor = PC_NO_RESOURCE;
    pc_code code = PC_OK;
    if (x->how.waits_for_memory && !x->how.is_closed && x->plan->spec->overlaps_p2p)
        code = find_sender(x, place, goes_into_domain(x, from.stage, device), &x->lanes.processor);
    if (!code)
        code = pc_lanes_add_message(&x->lanes, x->leaves[sender], place, lowering_place(x, replica, device), whole_ps,
                                    &done, x->error);
    x->lanes.processor = PC_NO_RESOURCE;
    if (!code) code = lowering_add_edge(x, done, x->first[receiver], gathering_ps);
    if (code) return code;
    x->message[receiver] = x->sent[sender] = done;
    x->sent_to[from.position] = device;
    return wait_for_sent(x, replica, from.stage, from.position, done);
}

/* What passes wait for on their own stage its order says, unless that need not be kept. */
static pc_code add_dependency(lowering *x, int replica, pc_predecessor from, int device, int64_t position) {
    if (from.stage != device) return add_message(x, replica, from, device, position);
    if (!x->how.waits_for_memory) return PC_OK;
    return lowering_add_edge(x, x->last[lowering_row(x, replica, from.position)],
                             x->first[lowering_row(x, replica, position)], 0);
}

/* What a stage sends over a link goes out message by message, in the order of its passes: only traffic of other kinds
 * and other stages is shared with. Messages into the domain and those through NICs do not wait for each other. A stage
 * that waits for what it has sent has this order anyway. */
static pc_code keep_messages_in_order(lowering *x, int replica, int device) {
    int32_t before[] = {PC_NO_TASK, PC_NO_TASK}; /* through NICs, into the domain */
    pc_code code = PC_OK;
    for (int64_t i = x->schedule->offsets[device]; !code && i < x->schedule->offsets[device + 1]; i++) {
        int32_t sent = x->sent[lowering_row(x, replica, i)];
        if (sent == PC_NO_TASK) continue;
        bool in_domain = goes_into_domain(x, device, x->sent_to[i]);
        code = lowering_add_edge(x, before[in_domain], sent, 0);
        before[in_domain] = sent;
    }
    return code;
}

pc_code lowering_add_transfers(lowering *x, int replica) {
    const pc_schedule *schedule = x->schedule;
    bool keeps_order = x->plan->spec->overlaps_p2p && !x->how.is_closed && !x->how.waits_for_memory;
    pc_code code = PC_OK;
    for (int d = 0; d < schedule->devices; d++)
        for (int64_t i = schedule->offsets[d]; !code && i < schedule->offsets[d + 1]; i++) {
            pc_predecessor predecessors[PC_PREDECESSORS_MAX];
            int count = pc_pass_predecessors(&x->index, d, schedule->passes[i], predecessors);
            for (int k = 0; !code && k < count; k++) code = add_dependency(x, replica, predecessors[k], d, i);
        }
    for (int d = 0; !code && keeps_order && d < schedule->devices; d++) code = keep_messages_in_order(x, replica, d);
    return code;
}
