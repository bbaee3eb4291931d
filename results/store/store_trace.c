#include "results/store/store_arrays.h"
#include "results/store/store_private.h"

#include "engine/alloc.h"

#include <assert.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What a trace is made of, said once for writing and reading. */
enum { AXIS_PASS, AXIS_LEVEL, AXIS_TRANSFER, AXIS_DEVICE, AXES };

/* An array of the replay, and a field of the passes in one. */
#define PLAIN(column_name, axis_name, kind, member, unit_text, text)                                                   \
    {                                                                                                                  \
        {.name = column_name, .unit = unit_text, .description = text, .type = PC_FIELD_##kind},                        \
            sizeof *((pc_replay *)NULL)->member, AXIS_##axis_name, offsetof(pc_replay, member)                         \
    }
#define PASS(column_name, axis_name, kind, member, part, words, text)                                                  \
    {                                                                                                                  \
        {.name = column_name,                                                                                          \
         .unit = "1",                                                                                                  \
         .description = text,                                                                                          \
         .type = PC_FIELD_##kind,                                                                                      \
         .choices = words,                                                                                             \
         PC_FIELD_AT(pc_pass, part)},                                                                                  \
            sizeof(pc_pass), AXIS_##axis_name, offsetof(pc_replay, member)                                             \
    }

static const pc_store_array columns[] = {
    PLAIN("pass_device", PASS, INT32, trace.pass_device, "1", "stage of the pipeline that runs the pass"),
    PASS("pass_chunk", PASS, INT16, trace.pass, chunk, NULL, "chunk of the stage, from 0"),
    PASS("pass_kind", PASS, INT16, trace.pass, kind, pc_pass_kind_names,
         "F forward, B backward for the input, W for the weights, BW both, R recompute"),
    PASS("pass_microbatch", PASS, INT32, trace.pass, microbatch, NULL, "microbatch, from 0"),
    PLAIN("pass_start_ps", PASS, INT64, trace.pass_start_ps, "ps", "start of the pass"),
    PLAIN("pass_end_ps", PASS, INT64, trace.pass_end_ps, "ps", "end of the pass"),
    PLAIN("level_device", LEVEL, INT32, trace.level_device, "1", "stage whose activation memory changes"),
    PLAIN("level_time_ps", LEVEL, INT64, trace.level_time_ps, "ps", "time of the change"),
    PLAIN("level_bytes", LEVEL, INT64, trace.level_bytes, "B", "activation memory after the change"),
    PLAIN("device_start_ps", DEVICE, INT64, device_start_ps, "ps", "start of the stage's first pass"),
    PLAIN("device_end_ps", DEVICE, INT64, device_end_ps, "ps", "end of the stage's last pass"),
    PLAIN("device_busy_ps", DEVICE, INT64, device_busy_ps, "ps", "time the stage spends in passes"),
    PLAIN("device_peak_bytes", DEVICE, INT64, device_peak_bytes, "B", "peak activation memory of the stage"),
};

#define KIND(column_name, kind, text)                                                                                  \
    {                                                                                                                  \
        {.name = column_name,                                                                                          \
         .unit = "B",                                                                                                  \
         .description = text,                                                                                          \
         .type = PC_FIELD_INT64,                                                                                       \
         PC_FIELD_AT(pc_activation_bytes, of[PC_ACTIVATION_##kind])},                                                  \
            sizeof(pc_activation_bytes), AXIS_LEVEL, offsetof(pc_replay, trace.level_kinds)                            \
    }

/* What levels are made of, on clusters; older files say nothing of it. */
static const pc_store_array kind_columns[] = {
    KIND("level_attention_bytes", ATTENTION, "of it attention and its matrices"),
    KIND("level_mlp_bytes", MLP, "of it the MLP"),
    KIND("level_norms_bytes", NORMS, "of it what norms read, with the inputs of recomputed layers"),
    KIND("level_embedding_bytes", EMBEDDING, "of it the embedding"),
    KIND("level_head_bytes", HEAD, "of it the head: norm, logits, loss"),
    KIND("level_offloaded_bytes", OFFLOADED, "of it what goes to the host, as long as it is here"),
};

bool pc_store_kinds_are_there(hid_t group) {
    return pc_h5_has(group, kind_columns[0].field.name);
}

/* What goes between stages; older files say nothing of it. */
static const pc_store_array transfer_columns[] = {
    PLAIN("transfer_from", TRANSFER, INT32, trace.transfer_from, "1", "stage that sends"),
    PLAIN("transfer_to", TRANSFER, INT32, trace.transfer_to, "1", "stage that receives"),
    PASS("transfer_chunk", TRANSFER, INT16, trace.transfer_pass, chunk, NULL, "chunk of the pass that waits for it"),
    PASS("transfer_kind", TRANSFER, INT16, trace.transfer_pass, kind, pc_pass_kind_names,
         "kind of the pass that waits for it"),
    PASS("transfer_microbatch", TRANSFER, INT32, trace.transfer_pass, microbatch, NULL, "microbatch it belongs to"),
    PLAIN("transfer_start_ps", TRANSFER, INT64, trace.transfer_start_ps, "ps",
          "end of the pass that made what is sent"),
    PLAIN("transfer_end_ps", TRANSFER, INT64, trace.transfer_end_ps, "ps", "time when it has arrived"),
};

static const pc_store_arrays of_all = {columns, sizeof columns / sizeof columns[0], 4 * PC_PASSES_MAX};
static const pc_store_arrays of_kinds = {kind_columns, sizeof kind_columns / sizeof kind_columns[0], 4 * PC_PASSES_MAX};
static const pc_store_arrays of_transfers = {transfer_columns, sizeof transfer_columns / sizeof transfer_columns[0],
                                             4 * PC_PASSES_MAX};

#define MEMORY(column_name, member, unit_text, text)                                                                   \
    {                                                                                                                  \
        .name = column_name, .unit = unit_text, .description = text, .type = PC_FIELD_INT64,                           \
        PC_FIELD_AT(pc_device_memory, member)                                                                          \
    }

#define PART(column_name, kind, text) MEMORY(column_name, kinds[PC_MEMORY_##kind], "B", text)

/* What a device's memory is taken by; of runs on a cluster alone. Their array stands beside the replay. */
static const pc_field memory_columns[] = {
    MEMORY("device_parameters_bytes", parameters, "B", "parameters on the stage's GPU"),
    MEMORY("device_gradients_bytes", gradients, "B", "gradients on the stage's GPU"),
    MEMORY("device_optimizer_bytes", optimizer, "B", "optimizer state on the stage's GPU"),
    MEMORY("device_buffers_bytes", buffers, "B", "buffers of communication and of running passes on the stage's GPU"),
    MEMORY("device_activations_bytes", activations, "B", "activations on the stage's GPU at its peak"),
    MEMORY("device_peak_total_bytes", peak_bytes, "B", "all of that together at the peak"),
    MEMORY("device_peak_ps", peak_ps, "ps", "when the peak is reached first"),
    MEMORY("device_capacity_bytes", capacity_bytes, "B", "what the stage's GPU has room for"),
};

/* What its peak is made of beside parameters, gradients and optimizer state; older files do not say. */
static const pc_field part_columns[] = {
    PART("device_attention_bytes", ATTENTION,
         "activations of attention and its matrices on the stage's GPU at its peak"),
    PART("device_mlp_bytes", MLP, "the same of the MLP"),
    PART("device_norms_bytes", NORMS, "the same of what norms read"),
    PART("device_embedding_bytes", EMBEDDING, "the same of the embedding"),
    PART("device_head_bytes", HEAD, "the same of the head"),
    PART("device_offloaded_bytes", OFFLOADED, "the same of what goes to the host, as long as it is here"),
    PART("device_boundary_bytes", BOUNDARY, "buffers on the stage's GPU: what goes between stages"),
    PART("device_gathered_bytes", GATHERED, "the same: units or buckets of ZeRO 2 and 3"),
    PART("device_context_bytes", CONTEXT, "the same: keys and values of context parallelism"),
    PART("device_sequence_bytes", SEQUENCE, "the same: the gathered sequence"),
    PART("device_recomputation_bytes", RECOMPUTATION, "the same: what a pass makes again"),
    PART("device_loss_bytes", LOSS, "the same: what the loss works with"),
    PART("device_copies_bytes", COPIES, "the same: layers on their way to the host and back"),
    PART("device_step_bytes", STEP, "the same: what the step needs beyond the peak of activations"),
};
static const pc_fields of_parts = {part_columns, sizeof part_columns / sizeof *part_columns, sizeof(pc_device_memory)};

static const pc_fields of_memory = {memory_columns, sizeof memory_columns / sizeof *memory_columns,
                                    sizeof(pc_device_memory)};

/* What a trace says of all of it, as attributes; of the schedule only its name is not read again. */
typedef struct trace_head {
    char schedule[sizeof((pc_schedule *)NULL)->name];
    int32_t devices, microbatches, chunks, placement;
    int64_t span_ps, makespan_ps, peak_bytes;
    double bubble_rate_span, bubble_rate_makespan;
    char hash[17];
    bool is_out_of_memory;
    int32_t slices; /* of a part, where the placement says how many; else 0, and not there */
} trace_head;

/* What did not fit, where something did not. */
typedef struct trace_oom {
    int32_t device, kind, chunk, microbatch;
    int64_t time_ps, requested_bytes, level_bytes, capacity_bytes;
} trace_oom;

#define HEAD(attribute, member, kind)                                                                                  \
    { .name = attribute, .type = PC_FIELD_##kind, PC_FIELD_AT(trace_head, member) }
#define HEAD_WITHIN(attribute, member, kind, low, high)                                                                \
    { .name = attribute, .type = PC_FIELD_##kind, PC_FIELD_AT(trace_head, member), .least = low, .most = high }
#define OOM(member, kind, high)                                                                                        \
    { .name = "oom_" #member, .type = PC_FIELD_##kind, PC_FIELD_AT(trace_oom, member), .most = high }

static const pc_field head_fields[] = {
    HEAD("schedule", schedule, TEXT),
    HEAD_WITHIN("devices", devices, INT32, 1, PC_DEVICES_MAX),
    HEAD_WITHIN("microbatches", microbatches, INT32, 1, PC_MICROBATCHES_MAX),
    HEAD_WITHIN("chunks", chunks, INT32, 1, PC_CHUNKS_MAX),
    {.name = "placement", .type = PC_FIELD_CHOICE, .choices = pc_placement_names, PC_FIELD_AT(trace_head, placement)},
    HEAD_WITHIN("span_ps", span_ps, INT64, 0, PC_TIME_MAX),
    HEAD_WITHIN("makespan_ps", makespan_ps, INT64, 0, PC_TIME_MAX),
    HEAD("bubble_rate_span", bubble_rate_span, NUMBER),
    HEAD("bubble_rate_makespan", bubble_rate_makespan, NUMBER),
    HEAD_WITHIN("peak_bytes", peak_bytes, INT64, 0, INT64_MAX),
    HEAD("trace_hash", hash, TEXT),
    HEAD("out_of_memory", is_out_of_memory, FLAG),
};
static const pc_field slices_fields[] = {{.name = "slices",
                                          .type = PC_FIELD_INT32,
                                          PC_FIELD_AT(trace_head, slices),
                                          .most = PC_CHUNKS_MAX,
                                          .may_lack = true}};
static const pc_fields of_slices = {slices_fields, 1, sizeof(trace_head)};
enum { HEAD_COUNT = sizeof head_fields / sizeof *head_fields };
static const pc_fields of_head = {head_fields, HEAD_COUNT, sizeof(trace_head)};
static const pc_fields of_head_read = {head_fields + 1, HEAD_COUNT - 1, sizeof(trace_head)};

static const pc_field oom_fields[] = {
    OOM(device, INT32, PC_DEVICES_MAX - 1),
    {.name = "oom_kind", .type = PC_FIELD_CHOICE, .choices = pc_pass_kind_names, PC_FIELD_AT(trace_oom, kind)},
    OOM(chunk, INT32, PC_CHUNKS_MAX - 1),
    OOM(microbatch, INT32, PC_MICROBATCHES_MAX - 1),
    OOM(time_ps, INT64, PC_TIME_MAX),
    OOM(requested_bytes, INT64, INT64_MAX),
    OOM(level_bytes, INT64, INT64_MAX),
    OOM(capacity_bytes, INT64, INT64_MAX),
};
static const pc_fields of_oom = {oom_fields, sizeof oom_fields / sizeof *oom_fields, sizeof(trace_oom)};

pc_code pc_store_refuse(pc_error *error, const char *name) {
    return pc_fields_refuse(NULL, name, error);
}

pc_code pc_store_fail(pc_error *error) {
    return pc_error_set(error, PC_ERROR_IO, "HDF5 could not build a trace");
}

static void find_lengths(const pc_replay *replay, int64_t lengths[AXES]) {
    lengths[AXIS_PASS] = replay->trace.pass_count;
    lengths[AXIS_LEVEL] = replay->trace.level_count;
    lengths[AXIS_TRANSFER] = replay->trace.transfer_count;
    lengths[AXIS_DEVICE] = replay->devices;
}

int pc_trace_record_arrays(const pc_trace_record *record, pc_trace_array arrays[PC_TRACE_ARRAYS_MAX]) {
    const size_t replay = offsetof(pc_trace_record, replay);
    const pc_block *block = &record->block;
    const int64_t starts = (int64_t)block->microbatches * block->devices * block->chunks * PC_PASS_KINDS;
    const bool no_block = block->devices == 0;
    int64_t lengths[AXES];
    find_lengths(&record->replay, lengths);
    int count = pc_store_arrays_list(&of_all, replay, lengths, false, arrays);
    count += pc_store_arrays_list(&of_transfers, replay, lengths, !record->has_transfers, arrays + count);
    const bool no_kinds = !record->replay.trace.level_kinds;
    count += pc_store_arrays_list(&of_kinds, replay, lengths, no_kinds, arrays + count);
    count += pc_store_engine_arrays(record, arrays + count);
    arrays[count++] =
        (pc_trace_array){offsetof(pc_trace_record, memory), sizeof *record->memory, record->devices, true};
    arrays[count++] = (pc_trace_array){offsetof(pc_trace_record, block.start), sizeof *block->start, starts, no_block};
    arrays[count++] =
        (pc_trace_array){offsetof(pc_trace_record, block.duration), sizeof *block->duration, PC_PASS_KINDS, no_block};
    assert(count <= PC_TRACE_ARRAYS_MAX);
    return count;
}

/* --- writing --- */

static pc_code write_head(hid_t group, const pc_schedule *schedule, const pc_replay *replay, pc_error *error) {
    bool has_slices = pc_placement_has_slices(schedule->placement);
    pc_placement kind = has_slices ? PC_PLACEMENT_SLICES : schedule->placement;
    trace_head head = {.devices = schedule->devices,
                       .microbatches = schedule->microbatches,
                       .chunks = schedule->chunks,
                       .placement = (int32_t)kind,
                       .slices = kind == schedule->placement ? 0 : pc_placement_slices(schedule->placement, 0),
                       .span_ps = replay->span_ps,
                       .makespan_ps = replay->makespan_ps,
                       .peak_bytes = replay->peak_bytes,
                       .bubble_rate_span = replay->bubble_rate_span,
                       .bubble_rate_makespan = replay->bubble_rate_makespan,
                       .is_out_of_memory = replay->out_of_memory};
    snprintf(head.schedule, sizeof head.schedule, "%s", schedule->name);
    snprintf(head.hash, sizeof head.hash, "%016" PRIx64, replay->trace_hash);
    pc_code code = pc_fields_put(group, &of_head, &head, error);
    return code || head.slices == 0 ? code : pc_fields_put(group, &of_slices, &head, error);
}

static pc_code write_out_of_memory(hid_t group, const pc_replay *replay, pc_error *error) {
    const pc_out_of_memory *oom = &replay->oom;
    const trace_oom stored = {.device = oom->device,
                              .kind = oom->pass.kind,
                              .chunk = oom->pass.chunk,
                              .microbatch = oom->pass.microbatch,
                              .time_ps = oom->time_ps,
                              .requested_bytes = oom->requested_bytes,
                              .level_bytes = oom->level_bytes,
                              .capacity_bytes = oom->capacity_bytes};
    return replay->out_of_memory ? pc_fields_put(group, &of_oom, &stored, error) : PC_OK;
}

static pc_code write_memory(hid_t group, const pc_run_detail *detail, pc_error *error) {
    bool is_known = detail->memory && detail->devices == detail->replay.devices;
    if (!is_known) return PC_OK;
    pc_code code = pc_fields_write_whole(group, &of_memory, detail->memory, detail->devices, error);
    bool has_parts = !code && detail->replay.trace.level_kinds;
    return has_parts ? pc_fields_write_whole(group, &of_parts, detail->memory, detail->devices, error) : code;
}

pc_code pc_store_trace_write(hid_t group, const pc_schedule *schedule, const pc_run_detail *detail, pc_error *error) {
    const pc_replay *replay = &detail->replay;
    int64_t lengths[AXES];
    find_lengths(replay, lengths);
    pc_code code = write_head(group, schedule, replay, error);
    if (!code) code = write_out_of_memory(group, replay, error);
    if (!code) code = pc_store_arrays_write(group, &of_all, replay, lengths, error);
    if (!code && replay->trace.level_kinds) code = pc_store_arrays_write(group, &of_kinds, replay, lengths, error);
    if (!code && replay->trace.transfer_from)
        code = pc_store_arrays_write(group, &of_transfers, replay, lengths, error);
    if (!code) code = write_memory(group, detail, error);
    if (!code) code = pc_store_block_write(group, &detail->block, error);
    return code ? code : pc_store_engine_write(group, replay, error);
}

/* --- reading --- */

static pc_code read_head(hid_t group, pc_trace_record *record, bool *is_out_of_memory, pc_error *error) {
    trace_head head = {.devices = 0};
    pc_code code = pc_fields_get(group, NULL, &of_head_read, &head, error);
    if (!code) code = pc_fields_get(group, NULL, &of_slices, &head, error);
    if (code) return code;
    record->devices = record->replay.devices = head.devices;
    record->microbatches = head.microbatches;
    record->chunks = head.chunks;
    record->placement = head.slices > 0 ? PC_PLACEMENT_OF_SLICES(head.slices) : (pc_placement)head.placement;
    record->replay.span_ps = head.span_ps;
    record->replay.makespan_ps = head.makespan_ps;
    record->replay.peak_bytes = head.peak_bytes;
    record->replay.bubble_rate_span = head.bubble_rate_span;
    record->replay.bubble_rate_makespan = head.bubble_rate_makespan;
    record->replay.trace_hash = strtoull(head.hash, NULL, 16);
    *is_out_of_memory = head.is_out_of_memory;
    /* A microbatch's chunk is its number modulo 2 there: one that the record lacks would be looked up as well. */
    bool lacks_replica = record->placement == PC_PLACEMENT_BIDIRECTIONAL && record->chunks != 2;
    if (lacks_replica) return pc_store_refuse(error, "placement");
    bool has_parts = head.slices == 0 || (head.placement == PC_PLACEMENT_SLICES && head.chunks % head.slices == 0);
    return has_parts ? PC_OK : pc_store_refuse(error, "slices");
}

static pc_code read_out_of_memory(hid_t group, pc_trace_record *record, pc_error *error) {
    trace_oom oom = {.device = 0};
    pc_code code = pc_fields_get(group, NULL, &of_oom, &oom, error);
    if (code) return code;
    if (oom.device >= record->devices) return pc_store_refuse(error, "oom_device");
    if (oom.chunk >= record->chunks) return pc_store_refuse(error, "oom_chunk");
    if (oom.microbatch >= record->microbatches) return pc_store_refuse(error, "oom_microbatch");
    record->replay.out_of_memory = true;
    record->replay.oom = (pc_out_of_memory){
        .device = oom.device,
        .pass = {.microbatch = oom.microbatch, .chunk = (int16_t)oom.chunk, .kind = (int16_t)oom.kind},
        .time_ps = oom.time_ps,
        .requested_bytes = oom.requested_bytes,
        .level_bytes = oom.level_bytes,
        .capacity_bytes = oom.capacity_bytes};
    return PC_OK;
}

static pc_code read_columns(hid_t group, pc_trace_record *record, pc_error *error) {
    pc_replay_trace *trace = &record->replay.trace;
    int64_t lengths[AXES] = {-1, -1, -1, record->devices};
    pc_code code = pc_store_arrays_read(group, &of_all, &record->replay, lengths, error);
    if (!code && pc_h5_has(group, kind_columns[0].field.name))
        code = pc_store_arrays_read(group, &of_kinds, &record->replay, lengths, error);
    record->has_transfers = !code && pc_h5_has(group, transfer_columns[0].field.name);
    if (record->has_transfers) code = pc_store_arrays_read(group, &of_transfers, &record->replay, lengths, error);
    trace->pass_count = lengths[AXIS_PASS];
    trace->level_count = lengths[AXIS_LEVEL];
    trace->transfer_count = record->has_transfers ? lengths[AXIS_TRANSFER] : 0;
    return code;
}

/* All of it, or nothing if the first is not there. */
static pc_code read_memory(hid_t group, pc_trace_record *record, pc_error *error) {
    if (!pc_h5_has(group, memory_columns[0].name)) return PC_OK;
    record->memory = pc_alloc((size_t)record->devices, sizeof *record->memory);
    if (!record->memory) return pc_error_no_memory(error);
    pc_code code = pc_fields_read_known(group, NULL, &of_memory, record->memory, record->devices, error);
    if (code || !record->replay.trace.level_kinds) return code;
    code = pc_fields_read_known(group, NULL, &of_parts, record->memory, record->devices, error);
    for (int d = 0; !code && d < record->devices; d++) {
        pc_device_memory *x = &record->memory[d];
        const int64_t state[] = {x->parameters, x->gradients, x->optimizer};
        memcpy(x->kinds, state, sizeof state);
    }
    return code;
}

pc_code pc_store_trace_read(hid_t group, pc_trace_record *result, pc_error *error) {
    pc_trace_record record = {0};
    bool is_out_of_memory = false;
    pc_code code = read_head(group, &record, &is_out_of_memory, error);
    if (!code && is_out_of_memory) code = read_out_of_memory(group, &record, error);
    if (!code) code = read_columns(group, &record, error);
    if (!code) code = read_memory(group, &record, error);
    if (!code) code = pc_store_trace_check(&record, error);
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
