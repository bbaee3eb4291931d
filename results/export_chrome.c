#include "results/export_chrome.h"

#include "engine/alloc.h"
#include "results/export.h"

#include <inttypes.h>

/* --- names --- */

static void add_devices(pc_chrome *x) {
    for (int d = 0; d < x->record->devices; d++) {
        char name[32];
        snprintf(name, sizeof name, "stage %d", d);
        pc_chrome_add_name(x, "process", d + 1, PC_CHROME_PASSES, name, d);
        pc_chrome_add_name(x, "thread", d + 1, PC_CHROME_PASSES, "passes", PC_CHROME_PASSES);
    }
}

/* --- passes --- */

static void add_pass(pc_chrome *x, int64_t i) {
    const pc_replay_trace *trace = x->trace;
    pc_pass pass = trace->pass[i];
    char name[PC_PASS_NAME_SIZE];
    pc_pass_name(&x->view.schedule, pass, name);
    pc_chrome_start(x, 'X', trace->pass_device[i] + 1, PC_CHROME_PASSES);
    pc_text_printf(&x->out.text, ",\"cat\":\"pass\",\"name\":\"%s\"", name);
    pc_chrome_add_time(x, "ts", trace->pass_start_ps[i]);
    pc_chrome_add_time(x, "dur", trace->pass_end_ps[i] - trace->pass_start_ps[i]);
    pc_text_printf(&x->out.text, ",\"args\":{\"microbatch\":%d,\"chunk\":%d,\"kind\":\"%s\"", pass.microbatch,
                   pass.chunk, pc_pass_kind_name((pc_pass_kind)pass.kind));
    pc_chrome_add_wait(x, i);
    pc_text_add(&x->out.text, "}", 1);
    pc_chrome_end(x);
}

/* --- memory --- */

static void add_level(pc_chrome *x, int device, pc_time time, int64_t bytes) {
    char number[PC_NUMBER_SIZE];
    const pc_device_memory *held = x->record->memory ? &x->record->memory[device] : NULL;
    pc_chrome_start(x, 'C', device + 1, PC_CHROME_PASSES);
    pc_text_printf(&x->out.text, ",\"name\":\"memory [GiB]\"");
    pc_chrome_add_time(x, "ts", time);
    pc_number_format((double)bytes / 0x1p30, number);
    pc_text_printf(&x->out.text, ",\"args\":{\"activations\":%s", number);
    if (held) {
        pc_chrome_add_gib(x, "parameters", held->parameters);
        pc_chrome_add_gib(x, "gradients", held->gradients);
        pc_chrome_add_gib(x, "optimizer", held->optimizer);
        pc_chrome_add_gib(x, "buffers", held->buffers);
    }
    pc_text_add(&x->out.text, "}", 1);
    pc_chrome_end(x);
}

/* From the iteration's start on, where a viewer would otherwise show nothing. */
static void add_levels(pc_chrome *x) {
    const pc_replay_trace *trace = x->trace;
    for (int64_t i = 0; i < trace->level_count; i++) {
        int d = trace->level_device[i];
        bool is_first = i == 0 || trace->level_device[i - 1] != d;
        if (is_first && trace->level_time_ps[i] > 0) add_level(x, d, 0, 0);
        add_level(x, d, trace->level_time_ps[i], trace->level_bytes[i]);
    }
}

/* --- what is true of all --- */

static void add_label(pc_chrome *x, const char *name, const char *text) {
    if (!text[0]) return;
    pc_text_printf(&x->out.text, ",\"%s\":", name);
    pc_text_add_json(&x->out.text, text);
}

static void add_head(pc_chrome *x) {
    const pc_trace_record *record = x->record;
    pc_text_printf(&x->out.text, "{\"displayTimeUnit\":\"ms\",\"otherData\":{\"pipecast_version\":\"%s\"", PC_VERSION);
    add_label(x, "scenario", x->row->scenario);
    pc_text_printf(&x->out.text, ",\"run\":%" PRId64, x->row->run);
    add_label(x, "name", x->row->name);
    add_label(x, "model", x->row->model);
    add_label(x, "machine", x->row->machine);
    add_label(x, "schedule", x->row->schedule);
    pc_text_printf(&x->out.text, ",\"devices\":%d,\"microbatches\":%d,\"chunks\":%d,\"placement\":\"%s\"",
                   record->devices, record->microbatches, record->chunks, pc_placement_name(record->placement));
    if (x->engine->queue_count) pc_text_printf(&x->out.text, ",\"events\":%" PRIu64, x->engine->event_count);
    pc_text_printf(&x->out.text, "},\"traceEvents\":[");
}

/* --- all of it --- */

static void add_all(pc_chrome *x) {
    add_head(x);
    add_devices(x);
    pc_chrome_add_ways(x);
    pc_chrome_add_engine_names(x);
    for (int64_t i = 0; i < x->trace->pass_count; i++) add_pass(x, i);
    pc_chrome_add_transfers(x);
    add_levels(x);
    pc_chrome_add_engine(x);
    pc_text_printf(&x->out.text, "\n]}\n");
}

static pc_code write_in_scope(pc_chrome *x, pc_error *error) {
    pc_number_scope scope = {0};
    if (!pc_number_scope_enter(&scope)) return pc_error_no_memory(error);
    add_all(x);
    pc_number_scope_leave(&scope);
    return pc_outlet_end(&x->out, error);
}

/* Threads behind those of passes, which links do not have. */
static pc_code number_threads(pc_chrome *x, pc_error *error) {
    int devices = x->record->devices;
    x->next_thread = pc_alloc((size_t)devices + 2, sizeof *x->next_thread);
    if (!x->next_thread) return pc_error_no_memory(error);
    for (int d = 0; d < devices; d++) x->next_thread[d + 1] = PC_CHROME_PASSES + 1;
    x->next_thread[devices + 1] = PC_CHROME_PASSES;
    return PC_OK;
}

pc_code pc_export_chrome(const pc_run_row *row, const pc_trace_record *record, FILE *stream, pc_error *error) {
    pc_chrome x = {.row = row,
                   .record = record,
                   .trace = &record->replay.trace,
                   .engine = &record->replay.engine,
                   .out = {.stream = stream},
                   .is_first = true};
    pc_code code = pc_trace_view_make(record, &x.view, error);
    if (!code) code = number_threads(&x, error);
    if (!code) code = pc_chrome_list_transfers(&x, error);
    if (!code) code = pc_chrome_list_engine(&x, error);
    if (!code) code = write_in_scope(&x, error);
    void *arrays[] = {x.sent, x.maker, x.waiting, x.flows, x.work, x.next_thread};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) pc_free(arrays[i]);
    pc_trace_view_free(&x.view);
    return code;
}
