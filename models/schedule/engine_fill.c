#include "models/schedule/engine_fill.h"

#include "engine/alloc.h"

#include <stdlib.h>
#include <string.h>

enum { NO_LINK = -1, LINKS_A_DEVICE = 2 };

/* ---- links: two a device, to the next and to the one before ---- */

static int place_of_link(const pc_replayed_run *run, int from, int to) {
    bool is_next = to == (from + 1) % run->costs->devices;
    return LINKS_A_DEVICE * from + !is_next;
}

/* Writes to `number`, by place, the link's index in the trace, or NO_LINK where nothing goes over it. */
static pc_code fill_links(const pc_replayed_run *run, const pc_replay_trace *trace, int32_t *number,
                          pc_engine_trace *seen, pc_error *error) {
    int places = LINKS_A_DEVICE * run->costs->devices;
    for (int i = 0; i < places; i++) number[i] = NO_LINK;
    if (!pc_engine_trace_make(seen, PC_ENGINE_LINKS, run->transfer_task ? places : 0)) return pc_error_no_memory(error);
    for (int64_t i = 0; run->transfer_task && i < trace->transfer_count; i++) {
        int from = trace->transfer_from[i], to = trace->transfer_to[i];
        int32_t *known = &number[place_of_link(run, from, to)];
        if (*known != NO_LINK) continue;
        *known = (int32_t)seen->link_count;
        seen->link_device[seen->link_count] = from;
        seen->link_peer[seen->link_count] = to;
        seen->link_sort[seen->link_count] = PC_LINK_STAGES;
        seen->link_shared[seen->link_count] = 1;
        seen->link_bytes_per_s[seen->link_count++] = run->costs->transfer.bandwidth_bytes_per_s;
    }
    return PC_OK;
}

/* ---- flows: a row for every transfer ---- */

/* A transfer, and where it stands among the others. */
typedef struct sending {
    pc_time start_ps;
    int64_t row;    /* in the trace's transfers */
    int32_t sender; /* position of the pass that made it */
    int32_t link;   /* index in the trace, or NO_LINK */
} sending;

static int compare_sendings(const void *a, const void *b) {
    const sending *x = a, *y = b;
    if (x->start_ps != y->start_ps) return x->start_ps < y->start_ps ? -1 : 1;
    return x->row < y->row ? -1 : x->row > y->row;
}

/* In the trace's order, that of those who wait. Over a link its latency begins so long before it is filled. */
static void find_sendings(const pc_replayed_run *run, const pc_replay_trace *trace, const int32_t *link_number,
                          sending *made) {
    int64_t row = 0;
    for (int64_t i = 0; i < trace->pass_count; i++) {
        pc_predecessor sender;
        if (!pc_pass_sender(run->index, trace->pass_device[i], trace->pass[i], &sender)) continue;
        sending *x = &made[row];
        *x = (sending){trace->transfer_start_ps[row], row, sender.position, NO_LINK};
        if (run->transfer_task) {
            x->start_ps = run->result->start_ps[run->transfer_task[i]] - run->costs->transfer.latency_ps;
            x->link = link_number[place_of_link(run, sender.stage, trace->pass_device[i])];
        }
        row++;
    }
    qsort(made, (size_t)row, sizeof *made, compare_sendings);
}

static void fill_flow(const pc_replayed_run *run, const pc_replay_trace *trace, const sending *from, int64_t i,
                      pc_engine_trace *seen) {
    int64_t row = from->row;
    const pc_transfer *transfer = &run->costs->transfer;
    bool has_link = from->link != NO_LINK;
    seen->flow_sort[i] = PC_FLOW_MESSAGE;
    seen->flow_from[i] = trace->transfer_from[row];
    seen->flow_to[i] = trace->transfer_to[row];
    seen->flow_chunk[i] = trace->pass[from->sender].chunk;
    seen->flow_microbatch[i] = trace->pass[from->sender].microbatch;
    seen->flow_out[i] = from->link;
    seen->flow_in[i] = NO_LINK;
    seen->flow_bytes[i] = has_link ? (double)transfer->size_bytes : 0.0;
    seen->flow_ready_ps[i] = trace->transfer_start_ps[row];
    seen->flow_start_ps[i] = from->start_ps;
    seen->flow_end_ps[i] = trace->transfer_end_ps[row];
    seen->flow_alone_ps[i] =
        has_link ? transfer->latency_ps + run->filled_ps : trace->transfer_end_ps[row] - trace->transfer_start_ps[row];
}

/* ---- loads ---- */

/* A link's transfers fill it one after the other: its load is its bandwidth from the first's bytes on to the end of the
 * last one that follows without a gap. */
typedef struct change {
    pc_time time_ps;
    int32_t link;
    int32_t is_rise;
} change;

static int compare_changes(const void *a, const void *b) {
    const change *x = a, *y = b;
    if (x->time_ps != y->time_ps) return x->time_ps < y->time_ps ? -1 : 1;
    if (x->link != y->link) return x->link < y->link ? -1 : 1;
    return x->is_rise - y->is_rise;
}

static void fill_loads(const pc_replayed_run *run, change *changes, int64_t count, pc_engine_trace *seen) {
    qsort(changes, (size_t)count, sizeof *changes, compare_changes);
    for (int64_t i = 0; i < count; i++) {
        const change *one = &changes[i];
        if (i + 1 < count && one[1].time_ps == one->time_ps && one[1].link == one->link) {
            i++; /* one ends and the next begins */
            continue;
        }
        seen->load_link[seen->load_count] = one->link;
        seen->load_time_ps[seen->load_count] = one->time_ps;
        seen->load_bytes_per_s[seen->load_count++] = one->is_rise ? run->costs->transfer.bandwidth_bytes_per_s : 0.0;
    }
}

static pc_code make_and_fill_loads(const pc_replayed_run *run, pc_engine_trace *seen, pc_error *error) {
    int64_t count = run->transfer_task && run->filled_ps > 0 ? 2 * seen->flow_count : 0;
    change *changes = pc_alloc((size_t)count, sizeof *changes);
    if (!changes) return pc_error_no_memory(error);
    for (int64_t i = 0; i < count; i++) {
        int64_t flow = i / 2;
        pc_time end = seen->flow_end_ps[flow];
        changes[i] = (change){i % 2 ? end : end - run->filled_ps, seen->flow_out[flow], i % 2 == 0};
    }
    bool made = pc_engine_trace_make(seen, PC_ENGINE_LOADS, count);
    if (made) fill_loads(run, changes, count, seen);
    pc_free(changes);
    return made ? PC_OK : pc_error_no_memory(error);
}

/* ---- memory and queues ---- */

static bool fill_memory(const pc_replayed_run *run, const pc_replay_trace *trace, pc_engine_trace *seen) {
    size_t rows = (size_t)trace->level_count;
    if (!pc_engine_trace_make(seen, PC_ENGINE_MEMORY, trace->level_count) ||
        !pc_engine_trace_make(seen, PC_ENGINE_DEVICES, run->costs->devices))
        return false;
    memcpy(seen->memory_device, trace->level_device, rows * sizeof *seen->memory_device);
    memcpy(seen->memory_time_ps, trace->level_time_ps, rows * sizeof *seen->memory_time_ps);
    memcpy(seen->memory_bytes, trace->level_bytes, rows * sizeof *seen->memory_bytes);
    for (int d = 0; d < run->costs->devices; d++)
        seen->memory_capacity_bytes[d] = pc_memory_limit_of(run->memory_limit, d);
    seen->memory_count = trace->level_count;
    seen->devices = run->costs->devices;
    return true;
}

static bool fill_queues(const pc_replayed_run *run, const pc_replay_trace *trace, pc_engine_trace *seen) {
    if (!pc_engine_trace_make(seen, PC_ENGINE_QUEUE, trace->pass_count)) return false;
    memcpy(seen->queue_ready_ps, run->result->ready_ps, (size_t)trace->pass_count * sizeof *seen->queue_ready_ps);
    seen->queue_count = trace->pass_count;
    return true;
}

/* ---- all of it ---- */

static pc_code fill_flows(const pc_replayed_run *run, const pc_replay_trace *trace, const int32_t *link_number,
                          pc_engine_trace *seen, pc_error *error) {
    sending *sendings = pc_alloc((size_t)trace->transfer_count, sizeof *sendings);
    bool made = sendings && pc_engine_trace_make(seen, PC_ENGINE_FLOWS, trace->transfer_count);
    if (made) find_sendings(run, trace, link_number, sendings);
    seen->flow_count = made ? trace->transfer_count : 0;
    for (int64_t i = 0; i < seen->flow_count; i++) fill_flow(run, trace, &sendings[i], i, seen);
    pc_free(sendings);
    return made ? PC_OK : pc_error_no_memory(error);
}

pc_code pc_engine_fill(const pc_replayed_run *run, const pc_replay_trace *trace, pc_engine_trace *made,
                       pc_error *error) {
    int32_t *link_number = pc_alloc((size_t)run->costs->devices * LINKS_A_DEVICE, sizeof *link_number);
    pc_code code = link_number ? PC_OK : pc_error_no_memory(error);
    if (!code) code = fill_links(run, trace, link_number, made, error);
    if (!code) code = fill_flows(run, trace, link_number, made, error);
    if (!code) code = make_and_fill_loads(run, made, error);
    if (!code && (!fill_memory(run, trace, made) || !fill_queues(run, trace, made))) code = pc_error_no_memory(error);
    pc_free(link_number);
    return code;
}
