/* What goes over links beside the passes: collectives of data parallelism, messages between stages. */
#include "models/training/lowering.h"

#include "models/training/buckets.h"
#include "models/training/expand_replicas.h"

/* ---- collectives of all replicas ---- */

pc_code lowering_add_meeting(lowering *lowered, int32_t *task) {
    pc_task nothing = pc_task_default();
    return pc_program_add_task(lowered->program, &nothing, task, lowered->error);
}

static pc_code add_edges_from(lowering *lowered, const int32_t *from, int32_t to) {
    pc_code code = PC_OK;
    for (int r = 0; !code && r < lowered->how.replicas; r++) code = lowering_add_edge(lowered, from[r], to, 0);
    return code;
}

/* It begins when all replicas can, and is over when all are. */
static pc_code add_to_all(lowering *lowered, int device, int to, const pc_sendings *sendings, pc_after before,
                          const int32_t *afters, int32_t *done) {
    int32_t ready = PC_NO_TASK, one, all = PC_NO_TASK;
    pc_flow_note now = lowered->lanes.now;
    pc_code code = afters && afters[0] != PC_NO_TASK ? lowering_add_meeting(lowered, &ready) : PC_OK;
    if (!code && ready != PC_NO_TASK) code = add_edges_from(lowered, afters, ready);
    if (!code) code = lowering_add_meeting(lowered, &all);
    for (int r = 0; !code && r < lowered->how.replicas; r++) {
        const pc_after both[] = {before, {ready, 0}};
        lowered->lanes.now = now;
        if (ready != PC_NO_TASK) lowered->lanes.now.ready_task = ready;
        code = pc_lanes_add_collective(&lowered->lanes, lowering_place(lowered, r, device),
                                       lowering_place(lowered, r, to), sendings, both, 2, &one, lowered->error);
        if (!code) code = lowering_add_edge(lowered, one, all, 0);
    }
    *done = all;
    return code;
}

pc_code lowering_add_collective(lowering *lowered, int device, int to, const pc_sendings *sendings, pc_after before,
                                const int32_t *afters, int32_t *done) {
    if (lowered->how.replicas > 1) return add_to_all(lowered, device, to, sendings, before, afters, done);
    const pc_after both[] = {before, {afters ? afters[0] : PC_NO_TASK, 0}};
    if (both[1].task != PC_NO_TASK) lowered->lanes.now.ready_task = both[1].task;
    return pc_lanes_add_collective(&lowered->lanes, device, to, sendings, both, 2, done, lowered->error);
}

/* ---- parameters and gradients ---- */

/* Adds one to the stage's stream, after `afters` too. */
static pc_code add_to_stream(lowering *lowered, int device, const pc_sendings *sendings, const int32_t *afters) {
    pc_after before = {lowered->stream[device], 0};
    pc_time held_ps = lowering_held_ps(lowered, device);
    if (before.task == PC_NO_TASK && held_ps > 0) before = (pc_after){lowered->lanes.start, held_ps};
    return lowering_add_collective(lowered, device, device, sendings, before, afters, &lowered->stream[device]);
}

/* What a bucket sends, `times` of them at once; alone_ps: what one takes. */
static pc_code bucket_sendings(const lowering *lowered, const pc_bucket_courses *courses, int32_t times,
                               pc_time alone_ps, pc_sendings *sendings) {
    pc_sendings next;
    double seconds = pc_bucket_seconds(courses);
    double slower = lowered->how.is_closed && seconds > 0 ? pc_time_to_seconds(alone_ps) / seconds : 1;
    pc_code code = PC_OK;
    for (int i = 0; !code && i < courses->count; i++) {
        code = pc_lanes_sendings(&lowered->lanes, courses->group[i], &courses->course[i], times * slower,
                                 i ? &next : sendings, lowered->error);
        if (!code && i) pc_sendings_append(sendings, &next);
    }
    bool is_copied = lowered->outline->cut.offload.kinds & PC_OFFLOAD_PARAMETERS; /* over the host's link, as latency */
    if (!code && (lowered->how.is_closed || is_copied)) pc_sendings_fit(sendings, times * alone_ps);
    return code;
}

pc_code lowering_add_gathers(lowering *lowered, int device) {
    pc_code code = PC_OK;
    if (!pc_outline_gathers_first(lowered->outline)) return PC_OK;
    for (int i = 0; !code && i < lowered->outline->chunks; i++) {
        int chunk = pc_outline_nth_chunk(lowered->outline, device, i);
        int64_t at = lowering_cell(lowered, device, chunk);
        pc_sendings bucket;
        pc_bucket_courses courses = pc_outline_gathering(lowered->outline, device, chunk);
        code = bucket_sendings(lowered, &courses, 1, lowered->outline->chunks_of[at].gather_ps, &bucket);
        for (int64_t k = lowered->bucket[at]; !code && k < lowered->bucket[at + 1]; k++) {
            lowered->lanes.now = (pc_flow_note){.sort = PC_FLOW_GATHER, .chunk = chunk, .microbatch = -1};
            bool is_own = pc_outline_part(lowered->outline, device, chunk)->part.slice == 0; /* or the first slice's */
            if (is_own) code = add_to_stream(lowered, device, &bucket, NULL);
            lowered->gathered[k] = lowered->stream[device];
        }
    }
    return code;
}

/* Where passes need not run in their order, the one that stands last may run earlier: then a chunk's gradients wait for
 * all that add to them. */
static pc_code wait_for_others(lowering *lowered, int device, int64_t position) {
    int chunk = lowered->schedule->passes[position].chunk;
    int32_t all;
    if (!lowered->how.waits_for_memory) return PC_OK;
    pc_code code = lowering_add_meeting(lowered, &all);
    if (!code) code = lowering_add_edge(lowered, lowered->stream[device], all, 0);
    for (int r = 0; r < lowered->how.replicas; r++)
        for (int64_t i = lowered->schedule->offsets[device]; !code && i < lowered->schedule->offsets[device + 1]; i++) {
            pc_pass pass = lowered->schedule->passes[i];
            if (i != position && pass.chunk == chunk && pc_pass_adds_gradients(pass))
                code = lowering_add_edge(lowered, lowered->last[lowering_row(lowered, r, i)], all, 0);
        }
    lowered->stream[device] = all;
    return code;
}

/* Of every replica: the end of a pass, that of all of a stage's, or what a bucket waits for. */
static const int32_t *after_pass(const lowering *lowered, int64_t position) {
    for (int r = 0; r < lowered->how.replicas; r++)
        lowered->afters[r] = lowered->last[lowering_row(lowered, r, position)];
    return lowered->afters;
}

static const int32_t *after_stage(const lowering *lowered, int device) {
    int64_t last = lowered->schedule->offsets[device + 1] - 1;
    for (int r = 0; r < lowered->how.replicas; r++)
        lowered->afters[r] = lowering_over(lowered, lowering_row(lowered, r, last));
    return lowered->afters;
}

static const int32_t *after_bucket(const lowering *lowered, int device, int64_t bucket) {
    if (!pc_outline_overlaps_gradients(lowered->outline)) return after_stage(lowered, device);
    for (int r = 0; r < lowered->how.replicas; r++)
        lowered->afters[r] = lowered->reducible[r * lowering_buckets(lowered) + bucket];
    return lowered->afters;
}

/* The reduction of what one pass makes: bucket by bucket as the last pass goes on; with ZeRO 2 all at once behind each
 * one before. */
static pc_code add_reduction(lowering *lowered, int device, int64_t position) {
    const pc_outline *outline = lowered->outline;
    pc_pass pass = lowered->schedule->passes[position];
    int64_t at = lowering_cell(lowered, device, pass.chunk);
    bool is_last = lowered->last_back[at] == position;
    const pc_chunk_outline *chunk = &outline->chunks_of[at];
    pc_sendings bucket;
    pc_bucket_courses courses = pc_outline_reduction(outline, device, pass.chunk);
    pc_code code = bucket_sendings(lowered, &courses, is_last ? 1 : chunk->buckets, chunk->reduce_ps, &bucket);
    if (!code && is_last) code = wait_for_others(lowered, device, position);
    lowered->lanes.now = (pc_flow_note){.sort = PC_FLOW_REDUCE, .chunk = pass.chunk, .microbatch = -1};
    if (!is_last) return code ? code : add_to_stream(lowered, device, &bucket, after_pass(lowered, position));
    for (int64_t k = lowered->bucket[at]; !code && k < lowered->bucket[at + 1]; k++)
        code = add_to_stream(lowered, device, &bucket, after_bucket(lowered, device, k));
    return code;
}

/* Of the passes that are, or are not, the last ones of their chunks. */
static pc_code add_reductions_of(lowering *lowered, int device, bool of_last, bool of_others) {
    pc_code code = PC_OK;
    for (int64_t i = lowered->schedule->offsets[device]; !code && i < lowered->schedule->offsets[device + 1]; i++) {
        pc_pass pass = lowered->schedule->passes[i];
        bool is_last = lowered->last_back[lowering_cell(lowered, device, pass.chunk)] == i;
        bool has_own = pc_outline_part(lowered->outline, device, pass.chunk)->part.slice == 0;
        if (has_own && pc_pass_adds_gradients(pass) && (is_last ? of_last : of_others))
            code = add_reduction(lowered, device, i);
    }
    return code;
}

/* By closed costs the last ones come behind all others, and none waits for parameters, each having a stream of its own
 * (finish.h). */
pc_code lowering_add_reductions(lowering *lowered, int device) {
    bool has_others = lowered->outline->cut.zero == 2;
    if (!pc_outline_reduces_behind(lowered->outline)) return PC_OK;
    if (lowered->how.is_closed) lowered->stream[device] = PC_NO_TASK;
    if (!lowered->how.is_closed || !has_others) return add_reductions_of(lowered, device, true, has_others);
    pc_code code = add_reductions_of(lowered, device, false, true);
    return code ? code : add_reductions_of(lowered, device, true, false);
}

/* ---- transfers ---- */

static bool goes_into_domain(const lowering *lowered, int from, int to) {
    return lowered->outline->device[pc_outline_hop(lowered->outline, from, to)].hop.in_domain;
}

/* Where passes need not run in their order, what a stage sends over a link goes in the order in which it can. */
static pc_code find_sender(lowering *lowered, int place, bool in_domain, int32_t *sender) {
    int32_t *known = &lowered->sender[2 * (int64_t)place + in_domain];
    pc_code code = PC_OK;
    if (*known == PC_NO_TASK)
        code = pc_program_add_processor(lowered->program, PC_PROCESSOR_FIRST_COME, known, lowered->error);
    *sender = *known;
    return code;
}

/* A stage that waits for what it sends does no pass meanwhile; which would be the next, its order says, or else a task
 * waits in its place. What both passes of a pair send is waited for behind both. */
static pc_code wait_for_sent(lowering *lowered, int replica, int64_t position, int32_t done) {
    int64_t row = lowering_row(lowered, replica, position) + lowering_begins_pair(lowered, position);
    if (!lowered->waiter) return PC_OK;
    int32_t next = lowered->waiter[row] == PC_NO_TASK ? lowered->first[row + 1] : lowered->waiter[row];
    return lowering_add_edge(lowered, done, next, lowered->outline->gathering_ps);
}

/* What a pass waits for; of a pair, the first pass too, which is both (pc_costs_busy_ps). */
static pc_code hold_receiver(lowering *lowered, int32_t done, int replica, int64_t position, pc_time delay_ps) {
    int64_t row = lowering_row(lowered, replica, position);
    bool is_second = lowering_ends_pair(lowered, position);
    pc_code code = lowering_add_edge(lowered, done, lowered->first[row], delay_ps);
    return code || !is_second ? code : lowering_add_edge(lowered, done, lowered->first[row - 1], delay_ps);
}

static pc_code add_message(lowering *lowered, int replica, pc_predecessor from, int device, int64_t position) {
    int64_t sender = lowering_row(lowered, replica, from.position), receiver = lowering_row(lowered, replica, position);
    int place = lowering_place(lowered, replica, from.stage);
    pc_pass pass = lowered->schedule->passes[from.position];
    pc_time whole_ps = lowered->how.is_closed ? lowering_message_ps(lowered, replica, from.stage, from.position, device)
                                              : PC_TIME_NOT_GIVEN;
    pc_time gathering_ps =
        lowered->how.is_closed ? pc_lanes_gathering_ps(&lowered->lanes, whole_ps) : lowered->outline->gathering_ps;
    int32_t done;
    lowered->lanes.now = (pc_flow_note){.sort = PC_FLOW_MESSAGE,
                                        .chunk = pass.chunk,
                                        .microbatch = pass.microbatch,
                                        .ready_task = lowered->leaves[sender]};
    lowered->lanes.processor = PC_NO_RESOURCE;
    pc_code code = PC_OK;
    if (lowered->how.waits_for_memory && !lowered->how.is_closed && lowered->outline->spec->overlaps_p2p)
        code = find_sender(lowered, place, goes_into_domain(lowered, from.stage, device), &lowered->lanes.processor);
    if (!code)
        code = pc_lanes_add_message(&lowered->lanes, lowered->leaves[sender], place,
                                    lowering_place(lowered, replica, device), whole_ps, &done, lowered->error);
    lowered->lanes.processor = PC_NO_RESOURCE;
    if (!code) code = hold_receiver(lowered, done, replica, position, gathering_ps);
    if (code) return code;
    lowered->message[receiver] = lowered->sent[sender] = done;
    lowered->sent_to[from.position] = device;
    return wait_for_sent(lowered, replica, from.position, done);
}

/* What passes wait for on their own stage its order says, unless that need not be kept. */
/* Collectives of vocabulary parallelism are on their way for as long as they take alone, over flows too: beside what
 * else goes over links they are short. */
static pc_code add_vocab_wait(lowering *lowered, int replica, pc_predecessor from, int device, int64_t position) {
    const pc_costs costs = {.vocab = lowered->outline->vocab};
    pc_pass before = lowered->schedule->passes[from.position];
    return lowering_add_edge(lowered, lowered->last[lowering_row(lowered, replica, from.position)],
                             lowered->first[lowering_row(lowered, replica, position)],
                             pc_costs_vocab_ps(&costs, before, from.stage, device));
}

static pc_code add_dependency(lowering *lowered, int replica, pc_predecessor from, int device, int64_t position) {
    const pc_pass *passes = lowered->schedule->passes;
    if (pc_pass_is_of_vocab(passes[from.position], passes[position]))
        return add_vocab_wait(lowered, replica, from, device, position);
    if (from.stage != device) return add_message(lowered, replica, from, device, position);
    if (!lowered->how.waits_for_memory) return PC_OK;
    return hold_receiver(lowered, lowered->last[lowering_row(lowered, replica, from.position)], replica, position, 0);
}

/* What a stage sends over a link goes out message by message, in the order of its passes: only traffic of other kinds
 * and other stages is shared with. Messages into the domain and those through NICs do not wait for each other. A stage
 * that waits for what it has sent has this order anyway. */
static pc_code keep_messages_in_order(lowering *lowered, int replica, int device) {
    int32_t before[] = {PC_NO_TASK, PC_NO_TASK}; /* through NICs, into the domain */
    pc_code code = PC_OK;
    for (int64_t i = lowered->schedule->offsets[device]; !code && i < lowered->schedule->offsets[device + 1]; i++) {
        int32_t sent = lowered->sent[lowering_row(lowered, replica, i)];
        if (sent == PC_NO_TASK) continue;
        bool in_domain = goes_into_domain(lowered, device, lowered->sent_to[i]);
        code = lowering_add_edge(lowered, before[in_domain], sent, 0);
        before[in_domain] = sent;
    }
    return code;
}

/* ---- messages of pairs whose stages wait for them ---- */

void lowering_find_mate(const lowering *lowered, int replica, int device, int64_t position, int32_t *task,
                        pc_time *later_ps) {
    bool begins = lowering_begins_pair(lowered, position), ends = lowering_ends_pair(lowered, position);
    *task = PC_NO_TASK;
    if (lowered->outline->spec->overlaps_p2p || (!begins && !ends)) return;
    int64_t other = begins ? position + 1 : position - 1;
    *task = lowered->sent[lowering_row(lowered, replica, other)];
    *later_ps = lowered->outline->gathering_ps;
    if (*task == PC_NO_TASK || !lowered->how.is_closed) return;
    pc_time whole_ps = lowering_message_ps(lowered, replica, device, other, lowered->sent_to[other]);
    *later_ps = pc_lanes_gathering_ps(&lowered->lanes, whole_ps);
}

static pc_code hold_for_mate(lowering *lowered, int replica, int device, int64_t position) {
    pc_predecessor sender;
    int32_t mate;
    pc_time later_ps;
    if (!pc_pass_sender(&lowered->index, device, lowered->schedule->passes[position], &sender)) return PC_OK;
    lowering_find_mate(lowered, replica, sender.stage, sender.position, &mate, &later_ps);
    return mate == PC_NO_TASK ? PC_OK : hold_receiver(lowered, mate, replica, position, later_ps);
}

/* Over flows they go out one after the other where they are for one link, as all that a stage sends. */
static pc_code order_mates(lowering *lowered, int replica, int device, int64_t position) {
    int64_t row = lowering_row(lowered, replica, position);
    bool are_two = lowering_begins_pair(lowered, position) && lowered->sent[row] != PC_NO_TASK &&
                   lowered->sent[row + 1] != PC_NO_TASK;
    bool shares_link = are_two && goes_into_domain(lowered, device, lowered->sent_to[position]) ==
                                      goes_into_domain(lowered, device, lowered->sent_to[position + 1]);
    return shares_link ? lowering_add_edge(lowered, lowered->sent[row], lowered->sent[row + 1], 0) : PC_OK;
}

static pc_code tie_mates(lowering *lowered, int replica) {
    const pc_schedule *schedule = lowered->schedule;
    pc_code code = PC_OK;
    for (int d = 0; d < schedule->devices; d++)
        for (int64_t i = schedule->offsets[d]; !code && i < schedule->offsets[d + 1]; i++) {
            code = hold_for_mate(lowered, replica, d, i);
            if (!code && !lowered->how.is_closed) code = order_mates(lowered, replica, d, i);
        }
    return code;
}

pc_code lowering_add_transfers(lowering *lowered, int replica) {
    const pc_schedule *schedule = lowered->schedule;
    bool keeps_order =
        lowered->outline->spec->overlaps_p2p && !lowered->how.is_closed && !lowered->how.waits_for_memory;
    pc_code code = PC_OK;
    for (int d = 0; d < schedule->devices; d++)
        for (int64_t i = schedule->offsets[d]; !code && i < schedule->offsets[d + 1]; i++) {
            pc_predecessor predecessors[PC_PREDECESSORS_MAX];
            int count = pc_pass_predecessors(&lowered->index, d, schedule->passes[i], predecessors);
            for (int k = 0; !code && k < count; k++) code = add_dependency(lowered, replica, predecessors[k], d, i);
        }
    for (int d = 0; !code && keeps_order && d < schedule->devices; d++)
        code = keep_messages_in_order(lowered, replica, d);
    bool has_mates = lowered->costs.pair_ps && schedule->pairs && !lowered->outline->spec->overlaps_p2p;
    return code || !has_mates ? code : tie_mates(lowered, replica);
}
