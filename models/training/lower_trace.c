/* What the engine saw: links and their loads, flows, memories, queues, work that is no pass. */
#include "models/training/lowering.h"

#include "engine/alloc.h"

#include <stdlib.h>

/* ---- links ---- */

static int64_t count_links(const lowering *lowered) {
    return pc_lanes_link(lowered->how.replicas * lowered->outline->devices, PC_LANE_DOMAIN, 0);
}

static void fill_in_link(const lowering *lowered, int place, pc_lane lane, int way, int32_t row, pc_engine_trace *t) {
    t->link_replica[row] = place / lowered->outline->devices;
    t->link_device[row] = place % lowered->outline->devices;
    t->link_peer[row] = -1;
    t->link_sort[row] = (uint8_t)(PC_LINK_DOMAIN + (int)lane);
    t->link_is_in[row] = (uint8_t)way;
    t->link_shared[row] = lowered->lanes.is_shared;
    t->link_bytes_per_s[row] = pc_lanes_bytes_per_s(&lowered->lanes, lane);
}

/* Those that anything goes over; row_of: of each of the program's links the row, or -1. */
static bool add_links(const lowering *lowered, int32_t *row_of, pc_engine_trace *t) {
    int64_t all = count_links(lowered);
    int32_t count = 0;
    for (int64_t i = 0; i < all; i++) row_of[i] = lowered->lanes.load_ps[i] > 0 ? count++ : -1;
    if (!pc_engine_trace_make(t, PC_ENGINE_LINKS, count)) return false;
    t->link_count = count;
    for (int place = 0; place < lowered->how.replicas * lowered->outline->devices; place++)
        for (int lane = 0; lane < PC_LANES; lane++)
            for (int way = 0; way < 2; way++) {
                int32_t row = row_of[pc_lanes_link(place, (pc_lane)lane, way)];
                if (row >= 0) fill_in_link(lowered, place, (pc_lane)lane, way, row, t);
            }
    return true;
}

/* Lanes count in time: a link is full at so many bytes a second as there are picoseconds in it. */
static bool add_loads(const pc_load_trace *loads, const int32_t *row_of, pc_engine_trace *t) {
    if (!pc_engine_trace_make(t, PC_ENGINE_LOADS, loads->count)) return false;
    t->load_count = loads->count;
    for (int64_t i = 0; i < loads->count; i++) {
        int32_t row = row_of[loads->link[i]];
        t->load_link[i] = row;
        t->load_time_ps[i] = loads->time_ps[i];
        t->load_bytes_per_s[i] = loads->bytes_per_s[i] / (double)PC_PICOSECONDS_PER_SECOND * t->link_bytes_per_s[row];
    }
    return true;
}

/* ---- flows ---- */

typedef struct begun {
    pc_time start_ps;
    int64_t note;
} begun;

static int compare_begun(const void *a, const void *b) {
    const begun *x = a, *y = b;
    if (x->start_ps != y->start_ps) return x->start_ps < y->start_ps ? -1 : 1;
    return (x->note > y->note) - (x->note < y->note);
}

/* In the order of their beginning: what leaves, before its latency. */
static begun *sort_notes(const lowering *lowered, const pc_simulation_result *found) {
    begun *order = pc_alloc((size_t)lowered->lanes.note_count + 1, sizeof *order);
    for (int64_t i = 0; order && i < lowered->lanes.note_count; i++)
        order[i] = (begun){found->start_ps[lowered->lanes.notes[i].task] - lowered->lanes.notes[i].latency_ps, i};
    if (order) qsort(order, (size_t)lowered->lanes.note_count, sizeof *order, compare_begun);
    return order;
}

/* Of what goes over several lanes side by side, the engine says of the first when all of it is over. */
static void fill_in_flow(const lowering *lowered, const pc_simulation_result *found, const begun *from,
                         const int32_t *row_of, int64_t row, pc_engine_trace *t) {
    const pc_flow_note *note = &lowered->lanes.notes[from->note];
    t->flow_sort[row] = (uint8_t)note->sort;
    t->flow_replica[row] = note->from / lowered->outline->devices;
    t->flow_from[row] = note->from % lowered->outline->devices;
    t->flow_to[row] = note->to % lowered->outline->devices;
    t->flow_chunk[row] = note->chunk;
    t->flow_microbatch[row] = note->microbatch;
    t->flow_out[row] = row_of[pc_lanes_link(note->from, note->lane, 0)];
    t->flow_in[row] = row_of[pc_lanes_link(note->to, note->lane, 1)];
    t->flow_bytes[row] = pc_time_to_seconds(note->fill_ps) * pc_lanes_bytes_per_s(&lowered->lanes, note->lane);
    t->flow_ready_ps[row] = found->end_ps[note->ready_task] + note->ready_delay_ps;
    t->flow_start_ps[row] = from->start_ps;
    t->flow_alone_ps[row] = note->latency_ps + note->fill_ps;
    t->flow_end_ps[row] = lowered->lanes.is_shared ? found->end_ps[note->task] : from->start_ps + t->flow_alone_ps[row];
}

static bool add_flows(const lowering *lowered, const pc_simulation_result *found, const int32_t *row_of,
                      pc_engine_trace *t) {
    begun *order = sort_notes(lowered, found);
    bool made = order && pc_engine_trace_make(t, PC_ENGINE_FLOWS, lowered->lanes.note_count);
    if (made) t->flow_count = lowered->lanes.note_count;
    for (int64_t i = 0; made && i < t->flow_count; i++) fill_in_flow(lowered, found, &order[i], row_of, i, t);
    pc_free(order);
    return made;
}

/* ---- devices ---- */

static bool add_queues(const lowering *lowered, const pc_simulation_result *found, pc_engine_trace *t) {
    if (!pc_engine_trace_make(t, PC_ENGINE_QUEUE, lowered->passes)) return false;
    t->queue_count = lowered->passes;
    for (int64_t i = 0; i < lowered->passes; i++) t->queue_ready_ps[i] = found->ready_ps[lowered->first[i]];
    return true;
}

/* The first replica's; the engine's rows are in time order over all devices, ours device by device. */
static bool add_memories(const lowering *lowered, const pc_level_trace *levels, pc_engine_trace *t) {
    int devices = lowered->outline->devices;
    int64_t *next = pc_alloc((size_t)devices + 1, sizeof *next);
    bool made = next && pc_engine_trace_make(t, PC_ENGINE_DEVICES, devices) &&
                pc_engine_trace_make(t, PC_ENGINE_MEMORY, levels->count);
    t->devices = devices;
    for (int d = 0; made && d < devices; d++) t->memory_capacity_bytes[d] = lowered->outline->device[d].capacity_bytes;
    for (int64_t i = 0; made && i < levels->count; i++)
        if (levels->memory[i] < devices) next[levels->memory[i] + 1]++;
    for (int d = 0; made && d < devices; d++) next[d + 1] += next[d];
    if (made) t->memory_count = next[devices];
    for (int64_t i = 0; made && i < levels->count; i++) {
        if (levels->memory[i] >= devices) continue;
        int64_t row = next[levels->memory[i]]++;
        t->memory_device[row] = levels->memory[i];
        t->memory_time_ps[row] = levels->time_ps[i];
        t->memory_bytes[row] = levels->level_bytes[i];
    }
    pc_free(next);
    return made;
}

static void fill_in_work(const lowering *lowered, const pc_simulation_result *found, pc_work_sort sort, int place,
                         pc_engine_trace *t) {
    int32_t task = sort == PC_WORK_OPTIMIZER ? lowered->step[place] : lowered->overhead[place];
    int64_t row = t->work_count++;
    t->work_sort[row] = (uint8_t)sort;
    t->work_replica[row] = place / lowered->outline->devices;
    t->work_device[row] = place % lowered->outline->devices;
    t->work_start_ps[row] = found->start_ps[task];
    t->work_end_ps[row] = found->end_ps[task];
}

static bool add_work(const lowering *lowered, const pc_simulation_result *found, pc_engine_trace *t) {
    int places = lowered->how.replicas * lowered->outline->devices,
        sorts = lowered->overhead[0] == PC_NO_TASK ? 1 : PC_WORK_SORTS;
    if (!pc_engine_trace_make(t, PC_ENGINE_WORK, (int64_t)places * sorts)) return false;
    for (int sort = 0; sort < sorts; sort++)
        for (int place = 0; place < places; place++) fill_in_work(lowered, found, (pc_work_sort)sort, place, t);
    return true;
}

pc_code lowering_trace(const lowering *lowered, const pc_simulation_result *found, pc_engine_trace *trace) {
    int32_t *row_of = pc_alloc((size_t)count_links(lowered), sizeof *row_of);
    bool made = row_of && add_links(lowered, row_of, trace) && add_loads(&found->loads, row_of, trace) &&
                add_flows(lowered, found, row_of, trace) && add_queues(lowered, found, trace) &&
                add_memories(lowered, &found->levels, trace) && add_work(lowered, found, trace);
    trace->event_count = found->event_count;
    pc_free(row_of);
    return made ? PC_OK : pc_error_no_memory(lowered->error);
}
