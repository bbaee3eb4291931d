#include "models/schedule/engine_trace.h"

#include "engine/alloc.h"

#include <string.h>

void pc_engine_trace_free(pc_engine_trace *trace) {
    void *arrays[] = {
        trace->link_replica,  trace->link_device,      trace->link_peer,        trace->link_sort,
        trace->link_is_in,    trace->link_shared,      trace->link_bytes_per_s, trace->load_link,
        trace->load_time_ps,  trace->load_bytes_per_s, trace->flow_sort,        trace->flow_replica,
        trace->flow_from,     trace->flow_to,          trace->flow_chunk,       trace->flow_microbatch,
        trace->flow_out,      trace->flow_in,          trace->flow_bytes,       trace->flow_ready_ps,
        trace->flow_start_ps, trace->flow_end_ps,      trace->flow_alone_ps,    trace->queue_ready_ps,
        trace->memory_device, trace->memory_time_ps,   trace->memory_bytes,     trace->memory_capacity_bytes,
        trace->work_sort,     trace->work_replica,     trace->work_device,      trace->work_start_ps,
        trace->work_end_ps};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) pc_free(arrays[i]);
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
