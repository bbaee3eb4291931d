/* A trace in a journal: numbers and arrays as they are in memory, which costs next to nothing to write and to read. In
 * the results file, where others read it, it is HDF5: that is made once. */
#include "sweep/journal_private.h"

#include "engine/alloc.h"

#include <stddef.h>
#include <string.h>

/* What an array has an element for; ONE is a number in the record itself. */
enum {
    ONE,
    PASS,
    LEVEL,
    TRANSFER,
    DEVICE,
    LINK,
    LOAD,
    FLOW,
    QUEUE,
    MEMORY,
    ENGINE_DEVICE,
    WORK,
    OWN_DEVICE,
    START,
    KIND,
    AXES
};

typedef struct part {
    size_t place, size; /* in pc_trace_record, of the number or of the pointer to the array; of an element */
    int axis;
} part;

#define NUMBER(member)                                                                                                 \
    { offsetof(pc_trace_record, member), sizeof((pc_trace_record *)0)->member, ONE }
#define ARRAY(member, axis)                                                                                            \
    { offsetof(pc_trace_record, member), sizeof *((pc_trace_record *)0)->member, axis }
#define ENGINE(member, axis) ARRAY(replay.engine.member, axis)

/* Numbers first: they say how long the arrays are. */
static const part parts[] = {
    NUMBER(devices),
    NUMBER(microbatches),
    NUMBER(chunks),
    NUMBER(placement),
    NUMBER(has_transfers),
    NUMBER(replay.devices),
    NUMBER(replay.span_ps),
    NUMBER(replay.makespan_ps),
    NUMBER(replay.bubble_rate_span),
    NUMBER(replay.bubble_rate_makespan),
    NUMBER(replay.peak_bytes),
    NUMBER(replay.trace_hash),
    NUMBER(replay.out_of_memory),
    NUMBER(replay.oom.device),
    NUMBER(replay.oom.pass),
    NUMBER(replay.oom.time_ps),
    NUMBER(replay.oom.requested_bytes),
    NUMBER(replay.oom.level_bytes),
    NUMBER(replay.oom.capacity_bytes),
    NUMBER(replay.way),
    NUMBER(replay.trace.pass_count),
    NUMBER(replay.trace.level_count),
    NUMBER(replay.trace.transfer_count),
    NUMBER(replay.engine.link_count),
    NUMBER(replay.engine.load_count),
    NUMBER(replay.engine.flow_count),
    NUMBER(replay.engine.queue_count),
    NUMBER(replay.engine.memory_count),
    NUMBER(replay.engine.devices),
    NUMBER(replay.engine.work_count),
    NUMBER(replay.engine.event_count),
    NUMBER(block.placement),
    NUMBER(block.devices),
    NUMBER(block.chunks),
    NUMBER(block.microbatches),
    NUMBER(block.interval),
    ARRAY(replay.device_start_ps, DEVICE),
    ARRAY(replay.device_end_ps, DEVICE),
    ARRAY(replay.device_busy_ps, DEVICE),
    ARRAY(replay.device_peak_bytes, DEVICE),
    ARRAY(replay.trace.pass_device, PASS),
    ARRAY(replay.trace.pass, PASS),
    ARRAY(replay.trace.pass_start_ps, PASS),
    ARRAY(replay.trace.pass_end_ps, PASS),
    ARRAY(replay.trace.level_device, LEVEL),
    ARRAY(replay.trace.level_time_ps, LEVEL),
    ARRAY(replay.trace.level_bytes, LEVEL),
    ARRAY(replay.trace.transfer_from, TRANSFER),
    ARRAY(replay.trace.transfer_to, TRANSFER),
    ARRAY(replay.trace.transfer_pass, TRANSFER),
    ARRAY(replay.trace.transfer_start_ps, TRANSFER),
    ARRAY(replay.trace.transfer_end_ps, TRANSFER),
    ENGINE(link_replica, LINK),
    ENGINE(link_device, LINK),
    ENGINE(link_peer, LINK),
    ENGINE(link_sort, LINK),
    ENGINE(link_is_in, LINK),
    ENGINE(link_shared, LINK),
    ENGINE(link_bytes_per_s, LINK),
    ENGINE(load_link, LOAD),
    ENGINE(load_time_ps, LOAD),
    ENGINE(load_bytes_per_s, LOAD),
    ENGINE(flow_sort, FLOW),
    ENGINE(flow_replica, FLOW),
    ENGINE(flow_from, FLOW),
    ENGINE(flow_to, FLOW),
    ENGINE(flow_chunk, FLOW),
    ENGINE(flow_microbatch, FLOW),
    ENGINE(flow_out, FLOW),
    ENGINE(flow_in, FLOW),
    ENGINE(flow_bytes, FLOW),
    ENGINE(flow_ready_ps, FLOW),
    ENGINE(flow_start_ps, FLOW),
    ENGINE(flow_end_ps, FLOW),
    ENGINE(flow_alone_ps, FLOW),
    ENGINE(queue_ready_ps, QUEUE),
    ENGINE(memory_device, MEMORY),
    ENGINE(memory_time_ps, MEMORY),
    ENGINE(memory_bytes, MEMORY),
    ENGINE(memory_capacity_bytes, ENGINE_DEVICE),
    ENGINE(work_sort, WORK),
    ENGINE(work_replica, WORK),
    ENGINE(work_device, WORK),
    ENGINE(work_start_ps, WORK),
    ENGINE(work_end_ps, WORK),
    ARRAY(memory, OWN_DEVICE),
    ARRAY(block.start, START),
    ARRAY(block.duration, KIND),
};

enum { PARTS = sizeof parts / sizeof parts[0] };

/* An array that is not there, where one that is empty may be. */
static const int64_t none = -1;

static void find_lengths(const pc_trace_record *record, int64_t lengths[AXES]) {
    const pc_replay_trace *trace = &record->replay.trace;
    const pc_engine_trace *engine = &record->replay.engine;
    const pc_block *block = &record->block;
    const int64_t found[AXES] = {[PASS] = trace->pass_count,
                                 [LEVEL] = trace->level_count,
                                 [TRANSFER] = trace->transfer_count,
                                 [DEVICE] = record->replay.devices,
                                 [LINK] = engine->link_count,
                                 [LOAD] = engine->load_count,
                                 [FLOW] = engine->flow_count,
                                 [QUEUE] = engine->queue_count,
                                 [MEMORY] = engine->memory_count,
                                 [ENGINE_DEVICE] = engine->devices,
                                 [WORK] = engine->work_count,
                                 [OWN_DEVICE] = record->devices,
                                 [START] =
                                     (int64_t)block->microbatches * block->devices * block->chunks * PC_PASS_KINDS,
                                 [KIND] = PC_PASS_KINDS};
    memcpy(lengths, found, sizeof found);
}

/* The arrays are reached by their offset; all object pointers look the same here. */
static void *array_of(const pc_trace_record *record, const part *at) {
    void *values;
    memcpy(&values, (const char *)record + at->place, sizeof values);
    return values;
}

/* ---- writing ---- */

static size_t put(unsigned char *to, size_t at, const void *bytes, size_t size) {
    if (to && size > 0) memcpy(to + at, bytes, size);
    return size;
}

/* Bytes of all of it, into `to` where that is not NULL. */
static size_t put_all(const pc_trace_record *record, unsigned char *to) {
    int64_t lengths[AXES];
    size_t size = 0;
    find_lengths(record, lengths);
    for (int i = 0; i < PARTS; i++) {
        const part *at = &parts[i];
        if (at->axis == ONE) {
            size += put(to, size, (const char *)record + at->place, at->size);
            continue;
        }
        const void *values = array_of(record, at);
        size += put(to, size, values ? &lengths[at->axis] : &none, sizeof none);
        if (values) size += put(to, size, values, (size_t)lengths[at->axis] * at->size);
    }
    return size;
}

pc_code pc_journal_trace_encode(const pc_schedule *schedule, const pc_run_detail *detail, unsigned char **bytes,
                                size_t *size, pc_error *error) {
    const pc_trace_record record = {.devices = schedule->devices,
                                    .microbatches = schedule->microbatches,
                                    .chunks = schedule->chunks,
                                    .placement = schedule->placement,
                                    .replay = detail->replay,
                                    .memory = detail->devices == schedule->devices ? detail->memory : NULL,
                                    .has_transfers = detail->replay.trace.transfer_from != NULL,
                                    .block = detail->block};
    *size = put_all(&record, NULL);
    *bytes = pc_realloc(NULL, *size, 1);
    if (!*bytes) return pc_error_no_memory(error);
    put_all(&record, *bytes);
    return PC_OK;
}

/* ---- reading ---- */

typedef struct source {
    const unsigned char *at;
    size_t left;
} source;

static bool take(source *from, void *to, size_t size) {
    if (from->left < size) return false;
    memcpy(to, from->at, size);
    from->at += size;
    from->left -= size;
    return true;
}

static bool is_within(int64_t value, int64_t least, int64_t most) {
    return value >= least && value <= most;
}

/* Read as bytes: what no value of its type is must not be looked at as one. */
static bool is_flag(const void *flag) {
    unsigned char byte;
    memcpy(&byte, flag, 1);
    return byte <= 1;
}

/* What follows from these numbers without being looked at again. */
static bool are_numbers_right(const pc_trace_record *record) {
    const pc_block *block = &record->block;
    int kind = record->replay.oom.pass.kind;
    return is_flag(&record->has_transfers) && is_flag(&record->replay.out_of_memory) &&
           is_within(record->devices, 1, PC_DEVICES_MAX) && record->replay.devices == record->devices &&
           is_within((int64_t)record->placement, 0, PC_PLACEMENTS - 1) && is_within(kind, 0, PC_PASS_KINDS - 1) &&
           is_within((int64_t)block->placement, 0, PC_PLACEMENTS - 1) && is_within(block->devices, 0, PC_DEVICES_MAX) &&
           is_within(block->chunks, 0, PC_CHUNKS_MAX) && is_within(block->microbatches, 0, PC_MICROBATCHES_MAX);
}

static bool may_lack(const pc_trace_record *record, int axis) {
    return axis == OWN_DEVICE || (axis == TRANSFER && !record->has_transfers) ||
           ((axis == START || axis == KIND) && record->block.devices == 0);
}

/* False where it is not there as the numbers say. */
static bool take_array(source *from, const part *at, int64_t length, pc_trace_record *record, bool *is_short) {
    int64_t found;
    if (!take(from, &found, sizeof found)) return false;
    if (found == none) return length == 0 || may_lack(record, at->axis);
    if (found != length || found < 0 || (size_t)found > from->left / at->size) return false;
    void *values = pc_alloc((size_t)found, at->size);
    *is_short = !values;
    if (!values) return false;
    memcpy((char *)record + at->place, &values, sizeof values);
    return take(from, values, (size_t)found * at->size);
}

static bool take_all(source *from, pc_trace_record *record, bool *is_short) {
    int64_t lengths[AXES];
    bool is_right = true;
    int i = 0;
    for (; parts[i].axis == ONE && is_right; i++) is_right = take(from, (char *)record + parts[i].place, parts[i].size);
    is_right = is_right && are_numbers_right(record);
    if (!is_right) return false;
    find_lengths(record, lengths);
    for (; i < PARTS && is_right; i++) is_right = take_array(from, &parts[i], lengths[parts[i].axis], record, is_short);
    return is_right && from->left == 0;
}

pc_code pc_journal_trace_decode(const char *path, const unsigned char *bytes, size_t size, pc_trace_record *result,
                                pc_error *error) {
    pc_trace_record record = {0};
    source from = {bytes, size};
    bool is_short = false;
    if (take_all(&from, &record, &is_short)) return *result = record, PC_OK;
    pc_trace_record_free(&record);
    if (is_short) return pc_error_no_memory(error);
    return pc_error_set_file(error, PC_ERROR_INPUT, path, "a trace is damaged; expected it as pipecast wrote it");
}
