#include "models/schedule/engine_trace.h"

#include "engine/alloc.h"

#include <stddef.h>
#include <string.h>

static const struct column {
    size_t place, size; /* of the pointer in the trace; of an element */
    pc_engine_axis axis;
} columns[] = {
#define COLUMN(member, of)                                                                                             \
    { offsetof(pc_engine_trace, member), sizeof *((pc_engine_trace *)NULL)->member, PC_ENGINE_##of }
    COLUMN(link_replica, LINKS),     COLUMN(link_device, LINKS),
    COLUMN(link_peer, LINKS),        COLUMN(link_sort, LINKS),
    COLUMN(link_is_in, LINKS),       COLUMN(link_shared, LINKS),
    COLUMN(link_bytes_per_s, LINKS), COLUMN(load_link, LOADS),
    COLUMN(load_time_ps, LOADS),     COLUMN(load_bytes_per_s, LOADS),
    COLUMN(flow_sort, FLOWS),        COLUMN(flow_replica, FLOWS),
    COLUMN(flow_from, FLOWS),        COLUMN(flow_to, FLOWS),
    COLUMN(flow_chunk, FLOWS),       COLUMN(flow_microbatch, FLOWS),
    COLUMN(flow_out, FLOWS),         COLUMN(flow_in, FLOWS),
    COLUMN(flow_bytes, FLOWS),       COLUMN(flow_ready_ps, FLOWS),
    COLUMN(flow_start_ps, FLOWS),    COLUMN(flow_end_ps, FLOWS),
    COLUMN(flow_alone_ps, FLOWS),    COLUMN(queue_ready_ps, QUEUE),
    COLUMN(memory_device, MEMORY),   COLUMN(memory_time_ps, MEMORY),
    COLUMN(memory_bytes, MEMORY),    COLUMN(memory_capacity_bytes, DEVICES),
    COLUMN(work_sort, WORK),         COLUMN(work_replica, WORK),
    COLUMN(work_device, WORK),       COLUMN(work_start_ps, WORK),
    COLUMN(work_end_ps, WORK),
#undef COLUMN
};
enum { COLUMNS = sizeof columns / sizeof *columns };

/* A column's pointer: all kinds of them look alike in memory. */
static void *get(const pc_engine_trace *trace, const struct column *of) {
    void *array;
    memcpy(&array, (const char *)trace + of->place, sizeof array);
    return array;
}

bool pc_engine_trace_make(pc_engine_trace *trace, pc_engine_axis axis, int64_t rows) {
    for (int i = 0; i < COLUMNS; i++) {
        if (columns[i].axis != axis) continue;
        void *made = pc_alloc((size_t)rows, columns[i].size);
        if (!made) return false;
        memcpy((char *)trace + columns[i].place, &made, sizeof made);
    }
    return true;
}

void pc_engine_trace_free(pc_engine_trace *trace) {
    for (int i = 0; i < COLUMNS; i++) pc_free(get(trace, &columns[i]));
    memset(trace, 0, sizeof *trace);
}

const char *const pc_link_sort_names[PC_LINK_SORTS + 1] = {
    [PC_LINK_STAGES] = "stages", [PC_LINK_DOMAIN] = "domain", [PC_LINK_NIC] = "nic", [PC_LINK_UPLINK] = "uplink"};

const char *pc_link_sort_name(pc_link_sort sort) {
    return pc_link_sort_names[sort];
}

const char *const pc_flow_sort_names[PC_FLOW_SORTS + 1] = {
    [PC_FLOW_MESSAGE] = "message", [PC_FLOW_TENSOR] = "tensor", [PC_FLOW_GATHER] = "gather",
    [PC_FLOW_REDUCE] = "reduce",   [PC_FLOW_TIED] = "tied",     [PC_FLOW_LOSS] = "loss",
    [PC_FLOW_NORM] = "norm"};

const char *pc_flow_sort_name(pc_flow_sort sort) {
    return pc_flow_sort_names[sort];
}

const char *const pc_work_sort_names[PC_WORK_SORTS + 1] = {
    [PC_WORK_OPTIMIZER] = "optimizer", [PC_WORK_OVERHEAD] = "overhead"};

const char *pc_work_sort_name(pc_work_sort sort) {
    return pc_work_sort_names[sort];
}
