/* A trace in a journal: numbers and arrays as they are in memory, which costs next to nothing to write and to read. In
 * the results file, where others read it, it is HDF5: that is made once. */
#include "sweep/journal_private.h"

#include "engine/alloc.h"

#include <stddef.h>
#include <string.h>

/* A number of the record. */
typedef struct part {
    size_t place, size;
} part;

#define NUMBER(member)                                                                                                 \
    { offsetof(pc_trace_record, member), sizeof((pc_trace_record *)0)->member }

/* They say how long the arrays are (pc_trace_record_arrays), which stand behind them. */
static const part numbers[] = {
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
};

enum { NUMBERS = sizeof numbers / sizeof numbers[0] };

/* An array that is not there, where one that is empty may be. */
static const int64_t none = -1;

/* The arrays are reached by their offset; all object pointers look the same here. */
static void *array_of(const pc_trace_record *record, const pc_trace_array *array) {
    void *values;
    memcpy(&values, (const char *)record + array->pointer, sizeof values);
    return values;
}

/* ---- writing ---- */

static size_t put(unsigned char *to, size_t at, const void *bytes, size_t size) {
    if (to && size > 0) memcpy(to + at, bytes, size);
    return size;
}

/* Bytes of all of it, into `to` where that is not NULL. */
static size_t put_all(const pc_trace_record *record, unsigned char *to) {
    pc_trace_array arrays[PC_TRACE_ARRAYS_MAX];
    size_t size = 0;
    for (int i = 0; i < NUMBERS; i++) size += put(to, size, (const char *)record + numbers[i].place, numbers[i].size);
    int count = pc_trace_record_arrays(record, arrays);
    for (int i = 0; i < count; i++) {
        const void *values = array_of(record, &arrays[i]);
        size += put(to, size, values ? &arrays[i].length : &none, sizeof none);
        if (values) size += put(to, size, values, (size_t)arrays[i].length * arrays[i].stride);
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
           pc_placement_is_known((int64_t)record->placement, record->chunks) && is_within(kind, 0, PC_PASS_KINDS - 1) &&
           is_within((int64_t)block->placement, 0, PC_PLACEMENTS - 1) && is_within(block->devices, 0, PC_DEVICES_MAX) &&
           is_within(block->chunks, 0, PC_CHUNKS_MAX) && is_within(block->microbatches, 0, PC_MICROBATCHES_MAX);
}

/* False if it is not there as the numbers say. */
static bool take_array(source *from, const pc_trace_array *array, pc_trace_record *record, bool *is_short) {
    int64_t found;
    if (!take(from, &found, sizeof found)) return false;
    if (found == none) return array->length == 0 || array->may_lack;
    if (found != array->length || found < 0 || (size_t)found > from->left / array->stride) return false;
    void *values = pc_alloc((size_t)found, array->stride);
    *is_short = !values;
    if (!values) return false;
    memcpy((char *)record + array->pointer, &values, sizeof values);
    return take(from, values, (size_t)found * array->stride);
}

static bool take_all(source *from, pc_trace_record *record, bool *is_short) {
    pc_trace_array arrays[PC_TRACE_ARRAYS_MAX];
    bool is_right = true;
    for (int i = 0; i < NUMBERS && is_right; i++)
        is_right = take(from, (char *)record + numbers[i].place, numbers[i].size);
    if (!is_right || !are_numbers_right(record)) return false;
    int count = pc_trace_record_arrays(record, arrays);
    for (int i = 0; i < count && is_right; i++) is_right = take_array(from, &arrays[i], record, is_short);
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
