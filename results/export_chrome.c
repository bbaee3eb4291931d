#include "results/export_chrome.h"

#include "engine/alloc.h"
#include "results/export.h"

#include <inttypes.h>

/* --- names --- */

static void add_devices(pc_chrome *chrome) {
    for (int d = 0; d < chrome->record->devices; d++) {
        char name[32];
        snprintf(name, sizeof name, "stage %d", d);
        pc_chrome_add_name(chrome, "process", d + 1, PC_CHROME_PASSES, name, d);
        pc_chrome_add_name(chrome, "thread", d + 1, PC_CHROME_PASSES, "passes", PC_CHROME_PASSES);
    }
}

/* --- passes --- */

static void add_pass(pc_chrome *chrome, int64_t i) {
    const pc_replay_trace *trace = chrome->trace;
    pc_pass pass = trace->pass[i];
    char name[PC_PASS_NAME_SIZE];
    pc_pass_name(&chrome->view.schedule, pass, name);
    pc_chrome_start(chrome, 'X', trace->pass_device[i] + 1, PC_CHROME_PASSES);
    pc_text_printf(&chrome->out.text, ",\"cat\":\"pass\",\"name\":\"%s\"", name);
    pc_chrome_add_time(chrome, "ts", trace->pass_start_ps[i]);
    pc_chrome_add_time(chrome, "dur", trace->pass_end_ps[i] - trace->pass_start_ps[i]);
    pc_text_printf(&chrome->out.text, ",\"args\":{\"microbatch\":%d,\"chunk\":%d,\"kind\":\"%s\"", pass.microbatch,
                   pass.chunk, pc_pass_kind_name((pc_pass_kind)pass.kind));
    pc_chrome_add_wait(chrome, i);
    pc_text_add(&chrome->out.text, "}", 1);
    pc_chrome_end(chrome);
}

/* --- memory --- */

static void add_level(pc_chrome *chrome, int device, pc_time time, int64_t bytes) {
    char number[PC_NUMBER_SIZE];
    const pc_device_memory *held = chrome->record->memory ? &chrome->record->memory[device] : NULL;
    pc_chrome_start(chrome, 'C', device + 1, PC_CHROME_PASSES);
    pc_text_printf(&chrome->out.text, ",\"name\":\"memory [GiB]\"");
    pc_chrome_add_time(chrome, "ts", time);
    pc_number_format((double)bytes / 0x1p30, number);
    pc_text_printf(&chrome->out.text, ",\"args\":{\"activations\":%s", number);
    if (held) {
        pc_chrome_add_gib(chrome, "parameters", held->parameters);
        pc_chrome_add_gib(chrome, "gradients", held->gradients);
        pc_chrome_add_gib(chrome, "optimizer", held->optimizer);
        pc_chrome_add_gib(chrome, "buffers", held->buffers);
    }
    pc_text_add(&chrome->out.text, "}", 1);
    pc_chrome_end(chrome);
}

/* From the iteration's start on, where a viewer would otherwise show nothing. */
static void add_levels(pc_chrome *chrome) {
    const pc_replay_trace *trace = chrome->trace;
    for (int64_t i = 0; i < trace->level_count; i++) {
        int d = trace->level_device[i];
        bool is_first = i == 0 || trace->level_device[i - 1] != d;
        if (is_first && trace->level_time_ps[i] > 0) add_level(chrome, d, 0, 0);
        add_level(chrome, d, trace->level_time_ps[i], trace->level_bytes[i]);
    }
}

/* --- what is true of all --- */

static void add_label(pc_chrome *chrome, const char *name, const char *text) {
    if (!text[0]) return;
    pc_text_printf(&chrome->out.text, ",\"%s\":", name);
    pc_text_add_json(&chrome->out.text, text);
}

static void add_head(pc_chrome *chrome) {
    const pc_trace_record *record = chrome->record;
    pc_text_printf(&chrome->out.text, "{\"displayTimeUnit\":\"ms\",\"otherData\":{\"pipecast_version\":\"%s\"",
                   PC_VERSION);
    add_label(chrome, "scenario", chrome->row->scenario);
    pc_text_printf(&chrome->out.text, ",\"run\":%" PRId64, chrome->row->run);
    add_label(chrome, "name", chrome->row->name);
    add_label(chrome, "model", chrome->row->model);
    add_label(chrome, "machine", chrome->row->machine);
    add_label(chrome, "schedule", chrome->row->schedule);
    pc_text_printf(&chrome->out.text, ",\"devices\":%d,\"microbatches\":%d,\"chunks\":%d,\"placement\":\"%s\"",
                   record->devices, record->microbatches, record->chunks, pc_placement_name(record->placement));
    if (chrome->engine->queue_count)
        pc_text_printf(&chrome->out.text, ",\"events\":%" PRIu64, chrome->engine->event_count);
    pc_text_printf(&chrome->out.text, "},\"traceEvents\":[");
}

/* --- all of it --- */

static void add_all(pc_chrome *chrome) {
    add_head(chrome);
    add_devices(chrome);
    pc_chrome_add_ways(chrome);
    pc_chrome_add_engine_names(chrome);
    for (int64_t i = 0; i < chrome->trace->pass_count; i++) add_pass(chrome, i);
    pc_chrome_add_transfers(chrome);
    add_levels(chrome);
    pc_chrome_add_engine(chrome);
    pc_text_printf(&chrome->out.text, "\n]}\n");
}

static pc_code write_in_scope(pc_chrome *chrome, pc_error *error) {
    pc_number_scope scope = {0};
    if (!pc_number_scope_enter(&scope)) return pc_error_no_memory(error);
    add_all(chrome);
    pc_number_scope_leave(&scope);
    return pc_outlet_end(&chrome->out, error);
}

/* Threads behind those of passes, which links do not have. */
static pc_code number_threads(pc_chrome *chrome, pc_error *error) {
    int devices = chrome->record->devices;
    chrome->next_thread = pc_alloc((size_t)devices + 2, sizeof *chrome->next_thread);
    if (!chrome->next_thread) return pc_error_no_memory(error);
    for (int d = 0; d < devices; d++) chrome->next_thread[d + 1] = PC_CHROME_PASSES + 1;
    chrome->next_thread[devices + 1] = PC_CHROME_PASSES;
    return PC_OK;
}

pc_code pc_export_chrome(const pc_run_row *row, const pc_trace_record *record, FILE *stream, pc_error *error) {
    pc_chrome chrome = {.row = row,
                        .record = record,
                        .trace = &record->replay.trace,
                        .engine = &record->replay.engine,
                        .out = {.stream = stream},
                        .is_first = true};
    pc_code code = pc_trace_view_make(record, &chrome.view, error);
    if (!code) code = number_threads(&chrome, error);
    if (!code) code = pc_chrome_list_transfers(&chrome, error);
    if (!code) code = pc_chrome_list_engine(&chrome, error);
    if (!code) code = write_in_scope(&chrome, error);
    void *arrays[] = {chrome.sent, chrome.maker, chrome.waiting, chrome.flows, chrome.work, chrome.next_thread};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) pc_free(arrays[i]);
    pc_trace_view_free(&chrome.view);
    return code;
}
