#include "calib/trace/traced_run_private.h"

#include "engine/alloc.h"

#include <stdlib.h>

/* One end of a message, on its own rank's clock. */
typedef struct message_end {
    int32_t from, to; /* devices */
    int32_t order;    /* among those of the same rank, by start */
    const pc_traced_message *message;
} message_end;

/* What there is of one kind: sent, or received. */
typedef struct end_list {
    message_end *ends;
    int64_t count;
} end_list;

static int compare(int64_t a, int64_t b) {
    return (a > b) - (a < b);
}

static int by_way(const void *a, const void *b) {
    const message_end *x = a, *y = b;
    int order = compare(x->from, y->from);
    if (order == 0) order = compare(x->to, y->to);
    return order ? order : compare(x->order, y->order);
}

/* The device of a rank of replica 0; -1: none that is here. */
static int device_of_rank(const pc_draft *draft, int64_t rank) {
    for (int i = 0; i < draft->rank_count; i++)
        if (draft->ranks[i].replica == 0 && draft->ranks[i].trace->rank == rank) return draft->ranks[i].device;
    return -1;
}

static int64_t count_messages(const pc_draft *draft) {
    int64_t count = 0;
    for (int i = 0; i < draft->rank_count; i++)
        if (draft->ranks[i].replica == 0) count += draft->ranks[i].trace->message_count;
    return count;
}

static void list_of_rank(const pc_draft *draft, const pc_placed_rank *rank, end_list *sent, end_list *received) {
    for (int64_t i = 0; i < rank->trace->message_count; i++) {
        const pc_traced_message *message = &rank->trace->messages[i];
        int peer = device_of_rank(draft, message->peer);
        end_list *list = message->is_sent ? sent : received;
        if (peer < 0 || peer == rank->device) continue;
        list->ends[list->count++] = (message_end){.from = message->is_sent ? rank->device : peer,
                                                  .to = message->is_sent ? peer : rank->device,
                                                  .order = (int32_t)i,
                                                  .message = message};
    }
}

/* ---- clocks ---- */

/* A pair of ends: what b's clock shows more than a's when the message was there. */
typedef struct pair {
    int32_t from, to;
    int64_t ahead_ns;
    const pc_traced_message *sent, *received;
} pair;

/* Room for all of it; freed by the caller, whatever there is. */
typedef struct workspace {
    end_list sent, received;
    pair *pairs;
    int64_t *room, *offset_ns;
} workspace;

static bool is_near(int64_t time_ns) {
    return llabs(time_ns) <= PC_TRACED_SPAN_PS / 1000;
}

/* Ends of one way match in their order. */
static int64_t match(const end_list *sent, const end_list *received, pair *pairs) {
    int64_t count = 0;
    for (int64_t i = 0, j = 0; i < sent->count && j < received->count;) {
        const message_end *a = &sent->ends[i], *b = &received->ends[j];
        int order = compare(a->from, b->from);
        if (order == 0) order = compare(a->to, b->to);
        if (order == 0)
            pairs[count++] = (pair){a->from, a->to, b->message->end_ns - a->message->end_ns, a->message, b->message};
        i += order <= 0;
        j += order >= 0;
        /* one side has more of this way than the other: those are passed over */
    }
    return count;
}

static int by_size(const void *a, const void *b) {
    return compare(*(const int64_t *)a, *(const int64_t *)b);
}

/* The median of what `to` is ahead of `from`; false if nothing went that way. */
static bool find_median(const pair *pairs, int64_t count, int from, int to, int64_t *room, int64_t *median) {
    int64_t found = 0;
    for (int64_t i = 0; i < count; i++)
        if (pairs[i].from == from && pairs[i].to == to) room[found++] = pairs[i].ahead_ns;
    if (found == 0) return false;
    qsort(room, (size_t)found, sizeof *room, by_size);
    *median = room[found / 2];
    return true;
}

/* How far b's clock is ahead of a's; false if nothing went between them. */
static bool find_ahead(const pair *pairs, int64_t count, int a, int b, int64_t *room, int64_t *ahead_ns) {
    int64_t there, back;
    bool has_there = find_median(pairs, count, a, b, room, &there);
    bool has_back = find_median(pairs, count, b, a, room, &back);
    if (has_there && has_back)
        *ahead_ns = (there - back) / 2;
    else if (has_there || has_back)
        *ahead_ns = has_there ? there : -back;
    return has_there || has_back;
}

/* Device by device along the pipeline; who exchanges nothing with its neighbour keeps the neighbour's offset. */
static pc_code set_clocks(const pc_draft *draft, workspace *w, int64_t count, pc_error *error) {
    for (int d = 1; d < draft->timeline.devices; d++) {
        int64_t ahead_ns = 0;
        w->offset_ns[d] = w->offset_ns[d - 1];
        if (find_ahead(w->pairs, count, d - 1, d, w->room, &ahead_ns)) w->offset_ns[d] += ahead_ns;
        if (!is_near(w->offset_ns[d])) return pc_traced_run_refuse_span(error);
    }
    return PC_OK;
}

/* ---- what is kept ---- */

static pc_time in_ps(int64_t time_ns, int64_t origin_ns, int64_t offset_ns) {
    return (time_ns - origin_ns - offset_ns) * 1000;
}

static void keep_messages(pc_draft *draft, const pair *pairs, int64_t count, const int64_t *offset_ns) {
    for (int64_t i = 0; i < count; i++) {
        const pair *p = &pairs[i];
        pc_time sent = in_ps(p->sent->start_ns, draft->origin_ns, offset_ns[p->from]);
        pc_time received = in_ps(p->received->start_ns, draft->origin_ns, offset_ns[p->to]);
        int64_t a_ns = p->sent->end_ns - p->sent->start_ns, b_ns = p->received->end_ns - p->received->start_ns;
        draft->timeline.messages[draft->timeline.message_count++] =
            (pc_traced_run_message){.from = p->from,
                                    .to = p->to,
                                    .start_ps = sent > received ? sent : received,
                                    .end_ps = in_ps(p->received->end_ns, draft->origin_ns, offset_ns[p->to]),
                                    .time_ps = (a_ns < b_ns ? a_ns : b_ns) * 1000,
                                    .bytes = p->sent->bytes > 0 ? p->sent->bytes : p->received->bytes};
    }
}

static void move_passes(pc_draft *draft, const int64_t *offset_ns) {
    pc_traced_run *timeline = &draft->timeline;
    pc_time first_ps = INT64_MAX;
    for (int64_t i = 0; i < timeline->pass_count; i++) {
        pc_traced_run_pass *pass = &timeline->passes[i];
        pass->start_ps -= offset_ns[pass->device] * 1000;
        pass->end_ps -= offset_ns[pass->device] * 1000;
        if (pass->start_ps < first_ps) first_ps = pass->start_ps;
    }
    for (int64_t i = 0; i < timeline->pass_count; i++) {
        timeline->passes[i].start_ps -= first_ps;
        timeline->passes[i].end_ps -= first_ps;
    }
    for (int64_t i = 0; i < timeline->message_count; i++) {
        timeline->messages[i].start_ps -= first_ps;
        timeline->messages[i].end_ps -= first_ps;
    }
    for (int d = 0; d < timeline->devices; d++)
        if (llabs(offset_ns[d]) * 1000 > timeline->most_clock_ps) timeline->most_clock_ps = llabs(offset_ns[d]) * 1000;
}

static bool are_near(const pc_draft *draft) {
    for (int i = 0; i < draft->rank_count; i++)
        for (int64_t k = 0; k < draft->ranks[i].trace->message_count; k++) {
            const pc_traced_message *message = &draft->ranks[i].trace->messages[k];
            if (!is_near(message->start_ns - draft->origin_ns) || !is_near(message->end_ns - draft->origin_ns))
                return false;
        }
    return true;
}

static pc_code make_room(workspace *w, const pc_draft *draft, int64_t count, pc_error *error) {
    w->sent.ends = pc_alloc((size_t)count, sizeof *w->sent.ends);
    w->received.ends = pc_alloc((size_t)count, sizeof *w->received.ends);
    w->pairs = pc_alloc((size_t)count, sizeof *w->pairs);
    w->room = pc_alloc((size_t)count, sizeof *w->room);
    w->offset_ns = pc_alloc((size_t)draft->timeline.devices, sizeof *w->offset_ns);
    bool is_there = w->sent.ends && w->received.ends && w->pairs && w->room && w->offset_ns;
    return is_there ? PC_OK : pc_error_no_memory(error);
}

static pc_code add(pc_draft *draft, workspace *w, pc_error *error) {
    for (int i = 0; i < draft->rank_count; i++)
        if (draft->ranks[i].replica == 0) list_of_rank(draft, &draft->ranks[i], &w->sent, &w->received);
    if (w->sent.count > 0) qsort(w->sent.ends, (size_t)w->sent.count, sizeof *w->sent.ends, by_way);
    if (w->received.count > 0) qsort(w->received.ends, (size_t)w->received.count, sizeof *w->received.ends, by_way);
    int64_t count = match(&w->sent, &w->received, w->pairs);
    pc_code code = set_clocks(draft, w, count, error);
    if (code) return code;
    draft->timeline.messages = pc_alloc((size_t)count, sizeof *draft->timeline.messages);
    if (!draft->timeline.messages) return pc_error_no_memory(error);
    keep_messages(draft, w->pairs, count, w->offset_ns);
    move_passes(draft, w->offset_ns);
    return PC_OK;
}

pc_code pc_traced_run_refuse_span(pc_error *error) {
    return pc_error_set(error, PC_ERROR_INPUT, "the traces' times are over six days apart; expected those of one run");
}

pc_code pc_traced_run_add_messages(pc_draft *draft, pc_error *error) {
    workspace w = {.pairs = NULL};
    if (!are_near(draft)) return pc_traced_run_refuse_span(error);
    pc_code code = make_room(&w, draft, count_messages(draft), error);
    if (!code) code = add(draft, &w, error);
    pc_free(w.sent.ends);
    pc_free(w.received.ends);
    pc_free(w.pairs);
    pc_free(w.room);
    pc_free(w.offset_ns);
    return code;
}
