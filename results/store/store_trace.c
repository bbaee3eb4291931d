#include "results/store/store_arrays.h"
#include "results/store/store_private.h"

#include "engine/alloc.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What a trace is made of, said once for writing and reading. */
enum { AXIS_PASS, AXIS_LEVEL, AXIS_TRANSFER, AXIS_DEVICE, AXES };

#define PLAIN(column_name, axis_name, kind, member, type, unit_text, text)                                             \
    { {column_name, unit_text, text, PC_STORE_##kind, sizeof(type), 0}, AXIS_##axis_name, offsetof(pc_replay, member) }
#define PASS(column_name, axis_name, kind, member, field, text)                                                        \
    {                                                                                                                  \
        {column_name, "1", text, PC_STORE_##kind, sizeof(pc_pass), offsetof(pc_pass, field)}, AXIS_##axis_name,        \
            offsetof(pc_replay, member)                                                                                \
    }

static const pc_store_array columns[] = {
    PLAIN("pass_device", PASS, INT32, trace.pass_device, int32_t, "1", "stage of the pipeline that runs the pass"),
    PASS("pass_chunk", PASS, INT16, trace.pass, chunk, "chunk of the stage, from 0"),
    PASS("pass_kind", PASS, KIND, trace.pass, kind,
         "F forward, B backward for the input, W for the weights, BW both, R recompute"),
    PASS("pass_microbatch", PASS, INT32, trace.pass, microbatch, "microbatch, from 0"),
    PLAIN("pass_start_ps", PASS, INT64, trace.pass_start_ps, pc_time, "ps", "start of the pass"),
    PLAIN("pass_end_ps", PASS, INT64, trace.pass_end_ps, pc_time, "ps", "end of the pass"),
    PLAIN("level_device", LEVEL, INT32, trace.level_device, int32_t, "1", "stage whose activation memory changes"),
    PLAIN("level_time_ps", LEVEL, INT64, trace.level_time_ps, pc_time, "ps", "time of the change"),
    PLAIN("level_bytes", LEVEL, INT64, trace.level_bytes, int64_t, "B", "activation memory after the change"),
    PLAIN("device_start_ps", DEVICE, INT64, device_start_ps, pc_time, "ps", "start of the stage's first pass"),
    PLAIN("device_end_ps", DEVICE, INT64, device_end_ps, pc_time, "ps", "end of the stage's last pass"),
    PLAIN("device_busy_ps", DEVICE, INT64, device_busy_ps, pc_time, "ps", "time the stage spends in passes"),
    PLAIN("device_peak_bytes", DEVICE, INT64, device_peak_bytes, int64_t, "B", "peak activation memory of the stage"),
};

/* What goes between stages; older files say nothing of it. */
static const pc_store_array transfer_columns[] = {
    PLAIN("transfer_from", TRANSFER, INT32, trace.transfer_from, int32_t, "1", "stage that sends"),
    PLAIN("transfer_to", TRANSFER, INT32, trace.transfer_to, int32_t, "1", "stage that receives"),
    PASS("transfer_chunk", TRANSFER, INT16, trace.transfer_pass, chunk, "chunk of the pass that waits for it"),
    PASS("transfer_kind", TRANSFER, KIND, trace.transfer_pass, kind, "kind of the pass that waits for it"),
    PASS("transfer_microbatch", TRANSFER, INT32, trace.transfer_pass, microbatch, "microbatch it belongs to"),
    PLAIN("transfer_start_ps", TRANSFER, INT64, trace.transfer_start_ps, pc_time, "ps",
          "end of the pass that made what is sent"),
    PLAIN("transfer_end_ps", TRANSFER, INT64, trace.transfer_end_ps, pc_time, "ps", "time when it has arrived"),
};

static const pc_store_arrays of_all = {columns, sizeof columns / sizeof columns[0], 4 * PC_PASSES_MAX};
static const pc_store_arrays of_transfers = {transfer_columns, sizeof transfer_columns / sizeof transfer_columns[0],
                                             4 * PC_PASSES_MAX};

#define MEMORY(column_name, field, unit_text, text)                                                                    \
    { column_name, unit_text, text, PC_STORE_INT64, sizeof(pc_device_memory), offsetof(pc_device_memory, field) }

/* What a device's memory is taken by; of runs on a cluster alone. Their array stands beside the replay. */
static const pc_store_column memory_columns[] = {
    MEMORY("device_parameters_bytes", parameters, "B", "parameters on the stage's GPU"),
    MEMORY("device_gradients_bytes", gradients, "B", "gradients on the stage's GPU"),
    MEMORY("device_optimizer_bytes", optimizer, "B", "optimizer state on the stage's GPU"),
    MEMORY("device_buffers_bytes", buffers, "B", "buffers of communication and of running passes on the stage's GPU"),
    MEMORY("device_activations_bytes", activations, "B", "activations on the stage's GPU at its peak"),
    MEMORY("device_peak_total_bytes", peak_bytes, "B", "all of that together at the peak"),
    MEMORY("device_peak_ps", peak_ps, "ps", "when the peak is reached first"),
    MEMORY("device_capacity_bytes", capacity_bytes, "B", "what the stage's GPU has room for"),
};

enum { MEMORY_COLUMN_COUNT = sizeof memory_columns / sizeof memory_columns[0] };

/* --- writing --- */

static bool describe_shape(hid_t group, const pc_schedule *schedule) {
    return pc_h5_put_text(group, "schedule", schedule->name) &&
           pc_h5_put_integer(group, "devices", schedule->devices) &&
           pc_h5_put_integer(group, "microbatches", schedule->microbatches) &&
           pc_h5_put_integer(group, "chunks", schedule->chunks) &&
           pc_h5_put_text(group, "placement", pc_placement_name(schedule->placement));
}

static bool describe_times(hid_t group, const pc_replay *replay) {
    char hash[17];
    snprintf(hash, sizeof hash, "%016" PRIx64, replay->trace_hash);
    return pc_h5_put_integer(group, "span_ps", replay->span_ps) &&
           pc_h5_put_integer(group, "makespan_ps", replay->makespan_ps) &&
           pc_h5_put_real(group, "bubble_rate_span", replay->bubble_rate_span) &&
           pc_h5_put_real(group, "bubble_rate_makespan", replay->bubble_rate_makespan) &&
           pc_h5_put_integer(group, "peak_bytes", replay->peak_bytes) && pc_h5_put_text(group, "trace_hash", hash);
}

static bool describe_out_of_memory(hid_t group, const pc_replay *replay) {
    const pc_out_of_memory *oom = &replay->oom;
    if (!pc_h5_put_integer(group, "out_of_memory", replay->out_of_memory)) return false;
    if (!replay->out_of_memory) return true;
    return pc_h5_put_integer(group, "oom_device", oom->device) &&
           pc_h5_put_text(group, "oom_kind", pc_pass_kind_name((pc_pass_kind)oom->pass.kind)) &&
           pc_h5_put_integer(group, "oom_chunk", oom->pass.chunk) &&
           pc_h5_put_integer(group, "oom_microbatch", oom->pass.microbatch) &&
           pc_h5_put_integer(group, "oom_time_ps", oom->time_ps) &&
           pc_h5_put_integer(group, "oom_requested_bytes", oom->requested_bytes) &&
           pc_h5_put_integer(group, "oom_level_bytes", oom->level_bytes) &&
           pc_h5_put_integer(group, "oom_capacity_bytes", oom->capacity_bytes);
}

static pc_code write_memory(hid_t group, const pc_run_detail *detail, pc_error *error) {
    pc_code code = PC_OK;
    bool is_known = detail->memory && detail->devices == detail->replay.devices;
    for (int i = 0; is_known && i < MEMORY_COLUMN_COUNT && !code; i++)
        code = pc_store_column_write(group, &memory_columns[i], detail->devices, detail->memory, error);
    return code;
}

pc_code pc_store_trace_write(hid_t group, const pc_schedule *schedule, const pc_run_detail *detail, pc_error *error) {
    const pc_replay *replay = &detail->replay;
    if (!describe_shape(group, schedule) || !describe_times(group, replay) || !describe_out_of_memory(group, replay))
        return pc_store_fail(error);
    const int64_t lengths[AXES] = {[AXIS_PASS] = replay->trace.pass_count,
                                   [AXIS_LEVEL] = replay->trace.level_count,
                                   [AXIS_TRANSFER] = replay->trace.transfer_count,
                                   [AXIS_DEVICE] = replay->devices};
    pc_code code = pc_store_arrays_write(group, &of_all, replay, lengths, error);
    if (!code && replay->trace.transfer_from)
        code = pc_store_arrays_write(group, &of_transfers, replay, lengths, error);
    if (!code) code = write_memory(group, detail, error);
    if (!code) code = pc_store_block_write(group, &detail->block, error);
    return code ? code : pc_store_engine_write(group, replay, error);
}

/* --- reading --- */

static pc_code read_in_range(hid_t group, const char *name, int64_t least, int64_t most, int64_t *value,
                             pc_error *error) {
    int64_t found = 0;
    if (!pc_h5_get_integer(group, name, &found) || found < least || found > most) return pc_store_refuse(error, name);
    *value = found;
    return PC_OK;
}

static pc_code read_int(hid_t group, const char *name, int least, int most, int *value, pc_error *error) {
    int64_t found = 0;
    pc_code code = read_in_range(group, name, least, most, &found, error);
    if (!code) *value = (int)found;
    return code;
}

static pc_code read_placement(hid_t group, pc_placement *placement, pc_error *error) {
    char name[32];
    if (!pc_h5_get_text(group, "placement", name, sizeof name)) return pc_store_refuse(error, "placement");
    for (int i = 0; i < PC_PLACEMENTS; i++) {
        if (strcmp(name, pc_placement_name((pc_placement)i)) != 0) continue;
        *placement = (pc_placement)i;
        return PC_OK;
    }
    return pc_store_refuse(error, "placement");
}

static pc_code read_shape(hid_t group, pc_trace_record *record, pc_error *error) {
    pc_code code = read_int(group, "devices", 1, PC_DEVICES_MAX, &record->devices, error);
    if (!code) code = read_int(group, "microbatches", 1, PC_MICROBATCHES_MAX, &record->microbatches, error);
    if (!code) code = read_int(group, "chunks", 1, PC_CHUNKS_MAX, &record->chunks, error);
    if (!code) code = read_placement(group, &record->placement, error);
    /* A microbatch's chunk is its number modulo 2 there: one that the record lacks would be looked up as well. */
    bool lacks_replica = !code && record->placement == PC_PLACEMENT_BIDIRECTIONAL && record->chunks != 2;
    return lacks_replica ? pc_store_refuse(error, "placement") : code;
}

static pc_code read_hash(hid_t group, uint64_t *hash, pc_error *error) {
    char text[32];
    if (!pc_h5_get_text(group, "trace_hash", text, sizeof text)) return pc_store_refuse(error, "trace_hash");
    *hash = strtoull(text, NULL, 16);
    return PC_OK;
}

static pc_code read_times(hid_t group, pc_replay *replay, pc_error *error) {
    pc_code code = read_in_range(group, "span_ps", 0, PC_TIME_MAX, &replay->span_ps, error);
    if (!code) code = read_in_range(group, "makespan_ps", 0, PC_TIME_MAX, &replay->makespan_ps, error);
    if (!code) code = read_in_range(group, "peak_bytes", 0, INT64_MAX, &replay->peak_bytes, error);
    if (!code && !pc_h5_get_real(group, "bubble_rate_span", &replay->bubble_rate_span))
        code = pc_store_refuse(error, "bubble_rate_span");
    if (!code && !pc_h5_get_real(group, "bubble_rate_makespan", &replay->bubble_rate_makespan))
        code = pc_store_refuse(error, "bubble_rate_makespan");
    return code ? code : read_hash(group, &replay->trace_hash, error);
}

static pc_code read_kind(hid_t group, const char *name, int16_t *kind, pc_error *error) {
    char text[8];
    if (!pc_h5_get_text(group, name, text, sizeof text)) return pc_store_refuse(error, name);
    for (int i = 0; i < PC_PASS_KINDS; i++) {
        if (strcmp(text, pc_pass_kind_name((pc_pass_kind)i)) != 0) continue;
        *kind = (int16_t)i;
        return PC_OK;
    }
    return pc_store_refuse(error, name);
}

static pc_code read_oom_pass(hid_t group, const pc_trace_record *record, pc_pass *pass, pc_error *error) {
    int chunk = 0, microbatch = 0;
    pc_code code = read_int(group, "oom_chunk", 0, record->chunks - 1, &chunk, error);
    if (!code) code = read_int(group, "oom_microbatch", 0, record->microbatches - 1, &microbatch, error);
    if (!code) code = read_kind(group, "oom_kind", &pass->kind, error);
    pass->chunk = (int16_t)chunk;
    pass->microbatch = microbatch;
    return code;
}

static pc_code read_out_of_memory(hid_t group, pc_trace_record *record, pc_error *error) {
    int happened = 0;
    pc_out_of_memory *oom = &record->replay.oom;
    pc_code code = read_int(group, "out_of_memory", 0, 1, &happened, error);
    if (code || !happened) return code;
    record->replay.out_of_memory = true;
    code = read_int(group, "oom_device", 0, record->devices - 1, &oom->device, error);
    if (!code) code = read_oom_pass(group, record, &oom->pass, error);
    if (!code) code = read_in_range(group, "oom_time_ps", 0, PC_TIME_MAX, &oom->time_ps, error);
    if (!code) code = read_in_range(group, "oom_requested_bytes", 0, INT64_MAX, &oom->requested_bytes, error);
    if (!code) code = read_in_range(group, "oom_level_bytes", 0, INT64_MAX, &oom->level_bytes, error);
    if (!code) code = read_in_range(group, "oom_capacity_bytes", 0, INT64_MAX, &oom->capacity_bytes, error);
    return code;
}

static pc_code read_columns(hid_t group, pc_trace_record *record, pc_error *error) {
    pc_replay_trace *trace = &record->replay.trace;
    int64_t lengths[AXES] = {-1, -1, -1, record->devices};
    pc_code code = pc_store_arrays_read(group, &of_all, &record->replay, lengths, error);
    record->has_transfers = !code && pc_h5_has(group, transfer_columns[0].stored.name);
    if (record->has_transfers) code = pc_store_arrays_read(group, &of_transfers, &record->replay, lengths, error);
    trace->pass_count = lengths[AXIS_PASS];
    trace->level_count = lengths[AXIS_LEVEL];
    trace->transfer_count = record->has_transfers ? lengths[AXIS_TRANSFER] : 0;
    return code;
}

/* All of it, or nothing where the first is not there. */
static pc_code read_memory(hid_t group, pc_trace_record *record, pc_error *error) {
    if (!pc_h5_has(group, memory_columns[0].name)) return PC_OK;
    record->memory = pc_alloc((size_t)record->devices, sizeof *record->memory);
    if (!record->memory) return pc_error_no_memory(error);
    pc_code code = PC_OK;
    for (int i = 0; i < MEMORY_COLUMN_COUNT && !code; i++)
        code = pc_store_column_fetch(group, &memory_columns[i], record->devices, record->memory, error);
    return code;
}

static bool is_within(int64_t value, int64_t limit) {
    return value >= 0 && value < limit;
}

/* The part of "pass_chunk", "transfer_chunk" and so on that is out of range; NULL where all is well. */
static const char *fault_of(const pc_trace_record *record, const pc_pass *pass, pc_time start_ps, pc_time end_ps) {
    if (!is_within(pass->chunk, record->chunks)) return "chunk";
    if (!is_within(pass->kind, PC_PASS_KINDS)) return "kind";
    if (!is_within(pass->microbatch, record->microbatches)) return "microbatch";
    if (start_ps < 0) return "start_ps";
    return end_ps < start_ps ? "end_ps" : NULL;
}

static pc_code refuse_part(pc_error *error, const char *of, const char *part) {
    char name[64];
    snprintf(name, sizeof name, "%s_%s", of, part);
    return pc_store_refuse(error, name);
}

/* A microbatch has at least an F and a B on every stage that it visits, and so on one chunk in two; whoever makes room
 * for what the shape says makes it for what the file has. A run that ended for want of memory has fewer. */
static bool has_its_passes(const pc_trace_record *record) {
    int64_t all = (int64_t)record->devices * record->chunks * record->microbatches;
    return record->replay.out_of_memory || all <= record->replay.trace.pass_count;
}

/* Whoever draws or exports the trace uses these numbers as indices. */
static pc_code check_passes(const pc_trace_record *record, pc_error *error) {
    const pc_replay_trace *trace = &record->replay.trace;
    if (!has_its_passes(record)) return pc_store_refuse(error, "microbatches");
    for (int64_t i = 0; i < trace->pass_count; i++) {
        const char *fault = fault_of(record, &trace->pass[i], trace->pass_start_ps[i], trace->pass_end_ps[i]);
        if (!is_within(trace->pass_device[i], record->devices)) fault = "device";
        if (fault) return refuse_part(error, "pass", fault);
    }
    for (int64_t i = 0; i < trace->level_count; i++) {
        if (!is_within(trace->level_device[i], record->devices)) return pc_store_refuse(error, "level_device");
        if (trace->level_time_ps[i] < 0) return pc_store_refuse(error, "level_time_ps");
    }
    return PC_OK;
}

static pc_code check_transfers(const pc_trace_record *record, pc_error *error) {
    const pc_replay_trace *trace = &record->replay.trace;
    for (int64_t i = 0; i < trace->transfer_count; i++) {
        int from = trace->transfer_from[i], to = trace->transfer_to[i];
        const char *fault =
            fault_of(record, &trace->transfer_pass[i], trace->transfer_start_ps[i], trace->transfer_end_ps[i]);
        if (!is_within(from, record->devices)) fault = "from";
        if (!is_within(to, record->devices) || from == to) fault = "to";
        if (fault) return refuse_part(error, "transfer", fault);
    }
    return PC_OK;
}

pc_code pc_store_trace_read(hid_t group, pc_trace_record *result, pc_error *error) {
    pc_trace_record record = {0};
    pc_code code = read_shape(group, &record, error);
    if (!code) code = read_times(group, &record.replay, error);
    if (!code) code = read_out_of_memory(group, &record, error);
    record.replay.devices = record.devices;
    if (!code) code = read_columns(group, &record, error);
    if (!code) code = read_memory(group, &record, error);
    if (!code) code = check_passes(&record, error);
    if (!code) code = check_transfers(&record, error);
    if (!code) code = pc_store_block_read(group, &record, error);
    if (!code) code = pc_store_engine_read(group, &record, error);
    if (code)
        pc_trace_record_free(&record);
    else
        *result = record;
    return code;
}

pc_schedule pc_trace_record_schedule(const pc_trace_record *record, const char *name) {
    pc_schedule shape = {.devices = record->devices,
                         .microbatches = record->microbatches,
                         .chunks = record->chunks,
                         .placement = record->placement};
    snprintf(shape.name, sizeof shape.name, "%s", name);
    return shape;
}

pc_run_detail pc_trace_record_detail(const pc_trace_record *record) {
    return (pc_run_detail){.replay = record->replay,
                           .devices = record->memory ? record->devices : 0,
                           .memory = record->memory,
                           .block = record->block};
}

void pc_trace_record_free(pc_trace_record *record) {
    pc_replay_free(&record->replay);
    pc_block_free(&record->block);
    pc_free(record->memory);
    *record = (pc_trace_record){0};
}
