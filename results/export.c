#include "results/export.h"

#include "engine/alloc.h"
#include "models/schedule/check.h"
#include "models/schedule/exchange.h"
#include "results/export_private.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

/* --- text on its way --- */

enum { PIECE_BYTES = 1 << 16 };

static void send_text(pc_outlet *outlet) {
    errno = 0;
    if (!outlet->failed &&
        fwrite(outlet->text.data ? outlet->text.data : "", 1, outlet->text.size, outlet->stream) != outlet->text.size) {
        outlet->failed = true;
        outlet->cause = errno;
    }
    outlet->text.size = 0;
}

void pc_outlet_step(pc_outlet *outlet) {
    if (outlet->text.size >= PIECE_BYTES) send_text(outlet);
}

pc_code pc_outlet_end(pc_outlet *outlet, pc_error *error) {
    bool starved = outlet->text.failed;
    send_text(outlet);
    pc_text_free(&outlet->text);
    errno = 0;
    if (!outlet->failed && fflush(outlet->stream) != 0) {
        outlet->failed = true;
        outlet->cause = errno;
    }
    if (starved) return pc_error_no_memory(error);
    if (!outlet->failed) return PC_OK;
    return pc_error_set(error, PC_ERROR_IO, "cannot write the trace: %s",
                        outlet->cause ? strerror(outlet->cause) : "stream error");
}

/* --- the trace as a schedule --- */

static pc_code refuse_order(int64_t pass, pc_error *error) {
    return pc_error_set(error, PC_ERROR_INPUT, "trace: pass %" PRId64 " is out of order; expected them stage by stage",
                        pass);
}

/* The record's passes are known to be in range. */
static pc_code find_offsets(const pc_trace_record *record, int64_t *offsets, pc_error *error) {
    const pc_replay_trace *trace = &record->replay.trace;
    int stage = 0;
    for (int64_t i = 0; i < trace->pass_count; i++) {
        if (trace->pass_device[i] < stage) return refuse_order(i, error);
        while (stage < trace->pass_device[i]) offsets[++stage] = i;
    }
    while (stage < record->devices) offsets[++stage] = trace->pass_count;
    return PC_OK;
}

pc_code pc_trace_view_make(const pc_trace_record *record, pc_trace_view *view, pc_error *error) {
    *view = (pc_trace_view){.schedule = {.name = "trace",
                                         .devices = record->devices,
                                         .microbatches = record->microbatches,
                                         .chunks = record->chunks,
                                         .placement = record->placement,
                                         .passes = record->replay.trace.pass}};
    pc_code code = pc_schedule_check_size(record->devices, record->microbatches, record->chunks, error);
    if (code) return code;
    view->schedule.offsets = pc_alloc((size_t)record->devices + 1, sizeof *view->schedule.offsets);
    if (!view->schedule.offsets) return pc_error_no_memory(error);
    code = find_offsets(record, view->schedule.offsets, error);
    if (!code) view->schedule.barriers = pc_schedule_find_barriers(&view->schedule);
    if (!code) code = pc_pass_index_create(&view->schedule, &view->index, error);
    if (code) pc_trace_view_free(view);
    return code;
}

void pc_trace_view_free(pc_trace_view *view) {
    pc_pass_index_free(&view->index);
    pc_free(view->schedule.offsets);
    memset(view, 0, sizeof *view);
}

/* A file may say anything. */
pc_code pc_trace_view_join(const pc_trace_view *view, const pc_replay_trace *trace, int64_t transfer, int32_t *maker,
                           int32_t *waiting, pc_error *error) {
    pc_pass pass = trace->transfer_pass[transfer];
    int from = trace->transfer_from[transfer], to = trace->transfer_to[transfer];
    pc_predecessor sender;
    *waiting = pc_pass_position(&view->index, to, pass.chunk, pass.microbatch, (pc_pass_kind)pass.kind);
    if (*waiting != PC_NO_PASS && trace->pass_start_ps[*waiting] >= trace->transfer_end_ps[transfer] &&
        pc_pass_sender(&view->index, to, pass, &sender) && sender.stage == from) {
        *maker = sender.position;
        return PC_OK;
    }
    char name[PC_PASS_NAME_SIZE];
    pc_pass_name(&view->schedule, pass, name);
    return pc_error_set(error, PC_ERROR_INPUT,
                        "trace: a transfer from stage %d to %s of stage %d; expected a pass that starts after it and "
                        "waits for that stage",
                        from, name, to);
}

/* --- CSV --- */

static void add_pass(pc_outlet *outlet, const pc_replay_trace *trace, int64_t i) {
    pc_pass pass = trace->pass[i];
    pc_text_printf(&outlet->text, "pass,%d,,%s,%d,%d,%" PRId64 ",%" PRId64 ",,,,\n", trace->pass_device[i],
                   pc_pass_kind_name((pc_pass_kind)pass.kind), pass.chunk, pass.microbatch, trace->pass_start_ps[i],
                   trace->pass_end_ps[i]);
    pc_outlet_step(outlet);
}

static void add_transfer(pc_outlet *outlet, const pc_replay_trace *trace, int64_t i) {
    pc_pass pass = trace->transfer_pass[i];
    pc_text_printf(&outlet->text, "transfer,%d,%d,%s,%d,%d,%" PRId64 ",%" PRId64 ",,,,\n", trace->transfer_from[i],
                   trace->transfer_to[i], pc_pass_kind_name((pc_pass_kind)pass.kind), pass.chunk, pass.microbatch,
                   trace->transfer_start_ps[i], trace->transfer_end_ps[i]);
    pc_outlet_step(outlet);
}

static void add_level(pc_outlet *outlet, const pc_replay_trace *trace, int64_t i) {
    pc_text_printf(&outlet->text, "level,%d,,,,,%" PRId64 ",,%" PRId64 ",,,\n", trace->level_device[i],
                   trace->level_time_ps[i], trace->level_bytes[i]);
    pc_outlet_step(outlet);
}

static void add_block_pass(pc_outlet *outlet, const pc_block *block, int microbatch, int device, int chunk, int kind) {
    int64_t start = pc_block_start(block, microbatch, device, chunk, kind);
    if (start == PC_TIME_NOT_GIVEN) return;
    pc_text_printf(&outlet->text, "block,%d,,%s,%d,%d,,,,%" PRId64 ",%" PRId64 ",%" PRId64 "\n", device,
                   pc_pass_kind_name((pc_pass_kind)kind), chunk, microbatch, start, start + block->duration[kind],
                   block->interval);
    pc_outlet_step(outlet);
}

static void add_block(pc_outlet *outlet, const pc_block *block) {
    for (int n = 0; n < block->microbatches; n++)
        for (int d = 0; d < block->devices; d++)
            for (int c = 0; c < block->chunks; c++)
                for (int kind = 0; kind < PC_PASS_KINDS; kind++) add_block_pass(outlet, block, n, d, c, kind);
}

pc_code pc_export_csv(const pc_run_row *row, const pc_trace_record *record, FILE *stream, pc_error *error) {
    const pc_replay_trace *trace = &record->replay.trace;
    pc_outlet outlet = {.stream = stream};
    (void)row; /* a table of events has no place for what is true of all of them */
    pc_text_printf(&outlet.text, "event,device,to_device,kind,chunk,microbatch,start_ps,end_ps,bytes,start_cells,"
                                 "end_cells,interval_cells\n");
    for (int64_t i = 0; i < trace->pass_count; i++) add_pass(&outlet, trace, i);
    for (int64_t i = 0; i < trace->transfer_count; i++) add_transfer(&outlet, trace, i);
    for (int64_t i = 0; i < trace->level_count; i++) add_level(&outlet, trace, i);
    if (record->block.devices) add_block(&outlet, &record->block);
    return pc_outlet_end(&outlet, error);
}

/* --- the order alone --- */

pc_code pc_export_torch_csv(const pc_run_row *row, const pc_trace_record *record, FILE *stream, pc_error *error) {
    pc_trace_view view;
    pc_code code = pc_trace_view_make(record, &view, error);
    if (code) return code;
    snprintf(view.schedule.name, sizeof view.schedule.name, "%.*s", PC_SCHEDULE_NAME_SIZE - 1, row->schedule);
    errno = 0;
    code = pc_schedule_check_complete(&view.index, error);
    if (!code) code = pc_schedule_write_torch_csv(&view.schedule, stream, error);
    if (!code && (fflush(stream) != 0 || ferror(stream)))
        code = pc_error_set(error, PC_ERROR_IO, "cannot write the trace: %s", errno ? strerror(errno) : "stream error");
    pc_trace_view_free(&view);
    return code;
}
