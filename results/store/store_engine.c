#include "engine/alloc.h"
#include "results/store/store_arrays.h"
#include "results/store/store_private.h"

#include <math.h>
#include <stddef.h>

static const char group_name[] = "engine";

enum { AXIS_LINK, AXIS_LOAD, AXIS_FLOW, AXIS_QUEUE, AXIS_MEMORY, AXIS_DEVICE, AXIS_WORK, AXES };

#define COLUMN(member, axis_name, kind, unit_text, text)                                                               \
    {                                                                                                                  \
        {.name = #member, .unit = unit_text, .description = text, .type = PC_FIELD_##kind},                            \
            sizeof *((pc_engine_trace *)NULL)->member, AXIS_##axis_name, offsetof(pc_engine_trace, member)             \
    }
/* Numbers that have names in the file. */
#define SORT(member, axis_name, words, text)                                                                           \
    {                                                                                                                  \
        {.name = #member, .unit = "1", .description = text, .type = PC_FIELD_UINT8, .choices = words},                 \
            sizeof *((pc_engine_trace *)NULL)->member, AXIS_##axis_name, offsetof(pc_engine_trace, member)             \
    }

static const pc_store_array columns[] = {
    COLUMN(link_replica, LINK, INT32, "1", "replica of the pipeline that the link is of"),
    COLUMN(link_device, LINK, INT32, "1", "stage whose GPU the link is of"),
    COLUMN(link_peer, LINK, INT32, "1", "of a link between stages the stage at its other end; else -1"),
    SORT(link_sort, LINK, pc_link_sort_names,
         "stages: between two of them; domain: into the GPU's NVLink domain; nic: its share of its node's NICs; "
         "uplink: its share of its leaf's uplinks"),
    COLUMN(link_is_in, LINK, UINT8, "1", "0: what the GPU sends; 1: what it receives"),
    COLUMN(link_shared, LINK, UINT8, "1",
           "1: flows share the bandwidth; 0: each flow has all of it, as if alone (network: closed)"),
    COLUMN(link_bytes_per_s, LINK, NUMBER, "B/s", "bandwidth of the link"),
    COLUMN(load_link, LOAD, INT32, "1", "link whose load changes, from 0"),
    COLUMN(load_time_ps, LOAD, INT64, "ps", "time of the change"),
    COLUMN(load_bytes_per_s, LOAD, NUMBER, "B/s", "load of the link after the change"),
    SORT(flow_sort, FLOW, pc_flow_sort_names,
         "message: between stages; tensor: a collective of tensor parallelism; gather: of parameters; reduce: of "
         "gradients; tied: of the tied embedding's gradient; loss; norm"),
    COLUMN(flow_replica, FLOW, INT32, "1", "replica that sends"),
    COLUMN(flow_from, FLOW, INT32, "1", "stage that sends"),
    COLUMN(flow_to, FLOW, INT32, "1", "stage that receives; the one that sends for a collective"),
    COLUMN(flow_chunk, FLOW, INT32, "1", "chunk it is of; -1 where it is of none"),
    COLUMN(flow_microbatch, FLOW, INT32, "1", "microbatch it is of; -1 where it is of none"),
    COLUMN(flow_out, FLOW, INT32, "1", "link that it leaves by, from 0; -1 where it takes a given time, over no link"),
    COLUMN(flow_in, FLOW, INT32, "1", "link that it comes in by; -1 where there is one link alone"),
    COLUMN(flow_bytes, FLOW, NUMBER, "B", "what is sent"),
    COLUMN(flow_ready_ps, FLOW, INT64, "ps", "time when all that it waits for is there"),
    COLUMN(flow_start_ps, FLOW, INT64, "ps", "time when it leaves, and its latency begins"),
    COLUMN(flow_end_ps, FLOW, INT64, "ps", "time when it has arrived"),
    COLUMN(flow_alone_ps, FLOW, INT64, "ps", "what it takes with nothing else under way, with its latency"),
    COLUMN(queue_ready_ps, QUEUE, INT64, "ps",
           "of each pass, time since when it waits for nothing but its device and the memory there"),
    COLUMN(memory_device, MEMORY, INT32, "1", "stage whose memory changes"),
    COLUMN(memory_time_ps, MEMORY, INT64, "ps", "time of the change"),
    COLUMN(memory_bytes, MEMORY, INT64, "B", "all that the stage's GPU holds after the change"),
    COLUMN(memory_capacity_bytes, DEVICE, INT64, "B", "what the stage's GPU has room for; 0: no limit"),
    SORT(work_sort, WORK, pc_work_sort_names, "optimizer: its step; overhead: what every iteration has"),
    COLUMN(work_replica, WORK, INT32, "1", "replica whose work it is"),
    COLUMN(work_device, WORK, INT32, "1", "stage whose work it is"),
    COLUMN(work_start_ps, WORK, INT64, "ps", "start of the work"),
    COLUMN(work_end_ps, WORK, INT64, "ps", "end of the work"),
};

static const pc_store_arrays of_engine = {columns, sizeof columns / sizeof columns[0], 4 * PC_PASSES_MAX};

static void find_lengths(const pc_engine_trace *trace, int64_t lengths[AXES]) {
    lengths[AXIS_LINK] = trace->link_count;
    lengths[AXIS_LOAD] = trace->load_count;
    lengths[AXIS_FLOW] = trace->flow_count;
    lengths[AXIS_QUEUE] = trace->queue_count;
    lengths[AXIS_MEMORY] = trace->memory_count;
    lengths[AXIS_DEVICE] = trace->devices;
    lengths[AXIS_WORK] = trace->work_count;
}

int pc_store_engine_arrays(const pc_trace_record *record, pc_trace_array *arrays) {
    int64_t lengths[AXES];
    find_lengths(&record->replay.engine, lengths);
    return pc_store_arrays_list(&of_engine, offsetof(pc_trace_record, replay.engine), lengths, false, arrays);
}

/* --- writing --- */

static pc_code write_columns(hid_t group, const pc_engine_trace *trace, pc_error *error) {
    int64_t lengths[AXES];
    find_lengths(trace, lengths);
    if (!pc_h5_put_integer(group, "event_count", (int64_t)trace->event_count)) return pc_store_fail(error);
    return pc_store_arrays_write(group, &of_engine, trace, lengths, error);
}

/* What a limit is in the file, where 0 says that there is none, and in memory: one becomes the other. */
static void exchange(int64_t from, int64_t to, int devices, int64_t *limit_bytes) {
    for (int d = 0; d < devices; d++)
        if (limit_bytes[d] == from) limit_bytes[d] = to;
}

static pc_code write_with_limits(hid_t group, const pc_engine_trace *trace, pc_error *error) {
    pc_engine_trace written = *trace;
    written.memory_capacity_bytes = pc_alloc((size_t)trace->devices, sizeof *written.memory_capacity_bytes);
    if (!written.memory_capacity_bytes) return pc_error_no_memory(error);
    for (int d = 0; d < trace->devices; d++) written.memory_capacity_bytes[d] = trace->memory_capacity_bytes[d];
    exchange(PC_NO_LIMIT, 0, trace->devices, written.memory_capacity_bytes);
    pc_code code = write_columns(group, &written, error);
    pc_free(written.memory_capacity_bytes);
    return code;
}

pc_code pc_store_engine_write(hid_t group, const pc_replay *replay, pc_error *error) {
    if (replay->engine.queue_count == 0) return PC_OK; /* it has a row for every pass, where it has anything */
    hid_t inside = pc_h5_group_create(group, group_name);
    if (inside < 0) return pc_store_fail(error);
    pc_code code = write_with_limits(inside, &replay->engine, error);
    H5Gclose(inside);
    return code;
}

/* --- reading --- */

static bool is_amount(double value) {
    return isfinite(value) && value >= 0;
}

/* Each of these says which column has something impossible in row i; NULL if all is well. */

static const char *fault_of_link(const pc_trace_record *record, const pc_engine_trace *trace, int64_t i) {
    bool has_peer = trace->link_sort[i] == PC_LINK_STAGES;
    if (trace->link_replica[i] < 0) return "link_replica";
    if (!pc_store_is_within(trace->link_device[i], 0, record->devices)) return "link_device";
    if (trace->link_sort[i] >= PC_LINK_SORTS) return "link_sort";
    if (has_peer ? !pc_store_is_within(trace->link_peer[i], 0, record->devices) : trace->link_peer[i] != -1)
        return "link_peer";
    if (trace->link_is_in[i] > 1) return "link_is_in";
    if (trace->link_shared[i] > 1) return "link_shared";
    return is_amount(trace->link_bytes_per_s[i]) && trace->link_bytes_per_s[i] > 0 ? NULL : "link_bytes_per_s";
}

static const char *fault_of_load(const pc_trace_record *record, const pc_engine_trace *trace, int64_t i) {
    (void)record;
    if (!pc_store_is_within(trace->load_link[i], 0, trace->link_count)) return "load_link";
    if (trace->load_time_ps[i] < (i ? trace->load_time_ps[i - 1] : 0)) return "load_time_ps";
    return is_amount(trace->load_bytes_per_s[i]) ? NULL : "load_bytes_per_s";
}

static const char *fault_of_flow_times(const pc_engine_trace *trace, int64_t i) {
    if (trace->flow_ready_ps[i] < 0) return "flow_ready_ps";
    if (trace->flow_start_ps[i] < trace->flow_ready_ps[i]) return "flow_start_ps";
    if (i > 0 && trace->flow_start_ps[i] < trace->flow_start_ps[i - 1]) return "flow_start_ps";
    if (trace->flow_end_ps[i] < trace->flow_start_ps[i]) return "flow_end_ps";
    return trace->flow_alone_ps[i] < 0 ? "flow_alone_ps" : NULL;
}

static const char *fault_of_flow(const pc_trace_record *record, const pc_engine_trace *trace, int64_t i) {
    if (trace->flow_sort[i] >= PC_FLOW_SORTS) return "flow_sort";
    if (trace->flow_replica[i] < 0) return "flow_replica";
    if (!pc_store_is_within(trace->flow_from[i], 0, record->devices)) return "flow_from";
    if (!pc_store_is_within(trace->flow_to[i], 0, record->devices)) return "flow_to";
    if (!pc_store_is_within(trace->flow_chunk[i], -1, record->chunks)) return "flow_chunk";
    if (!pc_store_is_within(trace->flow_microbatch[i], -1, record->microbatches)) return "flow_microbatch";
    if (!pc_store_is_within(trace->flow_out[i], -1, trace->link_count)) return "flow_out";
    if (!pc_store_is_within(trace->flow_in[i], -1, trace->link_count)) return "flow_in";
    if (!is_amount(trace->flow_bytes[i])) return "flow_bytes";
    return fault_of_flow_times(trace, i);
}

static const char *fault_of_queue(const pc_trace_record *record, const pc_engine_trace *trace, int64_t i) {
    pc_time start_ps = record->replay.trace.pass_start_ps[i];
    return pc_store_is_within(trace->queue_ready_ps[i], 0, start_ps) || trace->queue_ready_ps[i] == start_ps
               ? NULL
               : "queue_ready_ps";
}

/* Device by device, and in each in the order of time. */
static const char *fault_of_memory(const pc_trace_record *record, const pc_engine_trace *trace, int64_t i) {
    int32_t last = i ? trace->memory_device[i - 1] : 0;
    if (!pc_store_is_within(trace->memory_device[i], last, record->devices)) return "memory_device";
    bool follows = i > 0 && trace->memory_device[i] == last;
    if (trace->memory_time_ps[i] < (follows ? trace->memory_time_ps[i - 1] : 0)) return "memory_time_ps";
    return trace->memory_bytes[i] < 0 ? "memory_bytes" : NULL;
}

static const char *fault_of_capacity(const pc_trace_record *record, const pc_engine_trace *trace, int64_t i) {
    (void)record;
    return trace->memory_capacity_bytes[i] < 0 ? "memory_capacity_bytes" : NULL;
}

static const char *fault_of_work(const pc_trace_record *record, const pc_engine_trace *trace, int64_t i) {
    if (trace->work_sort[i] >= PC_WORK_SORTS) return "work_sort";
    if (trace->work_replica[i] < 0) return "work_replica";
    if (!pc_store_is_within(trace->work_device[i], 0, record->devices)) return "work_device";
    if (trace->work_start_ps[i] < 0) return "work_start_ps";
    return trace->work_end_ps[i] < trace->work_start_ps[i] ? "work_end_ps" : NULL;
}

typedef const char *find_fault(const pc_trace_record *record, const pc_engine_trace *trace, int64_t row);

/* Whoever draws or exports it uses its numbers as indices, and its orders as orders. */
static pc_code check(const pc_trace_record *record, const int64_t *lengths, pc_error *error) {
    static find_fault *const finders[AXES] = {
        [AXIS_LINK] = fault_of_link,   [AXIS_LOAD] = fault_of_load,     [AXIS_FLOW] = fault_of_flow,
        [AXIS_QUEUE] = fault_of_queue, [AXIS_MEMORY] = fault_of_memory, [AXIS_DEVICE] = fault_of_capacity,
        [AXIS_WORK] = fault_of_work,
    };
    const pc_engine_trace *trace = &record->replay.engine;
    if (trace->queue_count != record->replay.trace.pass_count) return pc_store_refuse(error, "queue_ready_ps");
    if (trace->link_count > INT32_MAX) return pc_store_refuse(error, "link_replica");
    if (trace->devices != 0 && trace->devices != record->devices)
        return pc_store_refuse(error, "memory_capacity_bytes");
    for (int axis = 0; axis < AXES; axis++)
        for (int64_t i = 0; i < lengths[axis]; i++) {
            const char *fault = finders[axis](record, trace, i);
            if (fault) return pc_store_refuse(error, fault);
        }
    return PC_OK;
}

static void set_lengths(const int64_t *lengths, pc_engine_trace *trace) {
    trace->link_count = lengths[AXIS_LINK];
    trace->load_count = lengths[AXIS_LOAD];
    trace->flow_count = lengths[AXIS_FLOW];
    trace->queue_count = lengths[AXIS_QUEUE];
    trace->memory_count = lengths[AXIS_MEMORY];
    trace->devices = lengths[AXIS_DEVICE] <= PC_DEVICES_MAX ? (int)lengths[AXIS_DEVICE] : -1;
    trace->work_count = lengths[AXIS_WORK];
}

static pc_code read_group(hid_t group, pc_trace_record *record, pc_error *error) {
    int64_t lengths[AXES], events = 0;
    for (int axis = 0; axis < AXES; axis++) lengths[axis] = -1;
    if (!pc_h5_get_integer(group, "event_count", &events) || events < 0) return pc_store_refuse(error, "event_count");
    pc_code code = pc_store_arrays_read(group, &of_engine, &record->replay.engine, lengths, error);
    if (code) return code;
    set_lengths(lengths, &record->replay.engine);
    record->replay.engine.event_count = (uint64_t)events;
    record->replay.way = PC_WAY_EVENTS;
    code = check(record, lengths, error);
    if (!code) exchange(0, PC_NO_LIMIT, record->replay.engine.devices, record->replay.engine.memory_capacity_bytes);
    return code;
}

bool pc_store_engine_is_there(hid_t group) {
    return pc_h5_has(group, group_name);
}

pc_code pc_store_engine_read(hid_t group, pc_trace_record *record, pc_error *error) {
    if (!pc_store_engine_is_there(group)) return PC_OK; /* another way, or an older pipecast's */
    hid_t inside = pc_h5_group_open(group, group_name);
    if (inside < 0) return pc_store_refuse(error, group_name);
    pc_code code = read_group(inside, record, error);
    H5Gclose(inside);
    return code;
}
