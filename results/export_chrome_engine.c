#include "results/export_chrome.h"

#include "engine/alloc.h"
#include "engine/numbers.h"
#include "results/link_name.h"

#include <inttypes.h>

static int links_process(const pc_chrome *chrome) {
    return chrome->record->devices + 1;
}

/* --- what lasts, and where --- */

static pc_chrome_slice flow_slice(const pc_chrome *chrome, int64_t flow, int32_t link) {
    return (pc_chrome_slice){.process = links_process(chrome),
                             .track = link,
                             .start_ps = chrome->engine->flow_start_ps[flow],
                             .end_ps = chrome->engine->flow_end_ps[flow],
                             .row = flow};
}

/* A flow is on both its links. */
static pc_code list_flows(pc_chrome *chrome, pc_error *error) {
    const pc_engine_trace *trace = chrome->engine;
    chrome->flows = pc_alloc(2 * (size_t)trace->flow_count, sizeof *chrome->flows);
    if (!chrome->flows) return pc_error_no_memory(error);
    for (int64_t i = 0; i < trace->flow_count; i++) {
        int32_t out = trace->flow_out[i], in = trace->flow_in[i];
        if (out >= 0) chrome->flows[chrome->flow_count++] = flow_slice(chrome, i, out);
        if (in >= 0 && in != out) chrome->flows[chrome->flow_count++] = flow_slice(chrome, i, in);
    }
    return pc_chrome_place(chrome, chrome->flows, chrome->flow_count, error);
}

static pc_code list_work(pc_chrome *chrome, pc_error *error) {
    const pc_engine_trace *trace = chrome->engine;
    chrome->work = pc_alloc((size_t)trace->work_count, sizeof *chrome->work);
    if (!chrome->work) return pc_error_no_memory(error);
    for (int64_t i = 0; i < trace->work_count; i++)
        chrome->work[i] = (pc_chrome_slice){.process = trace->work_device[i] + 1,
                                            .track = trace->work_replica[i],
                                            .start_ps = trace->work_start_ps[i],
                                            .end_ps = trace->work_end_ps[i],
                                            .row = i};
    return pc_chrome_place(chrome, chrome->work, trace->work_count, error);
}

pc_code pc_chrome_list_engine(pc_chrome *chrome, pc_error *error) {
    pc_code code = list_flows(chrome, error);
    return code ? code : list_work(chrome, error);
}

/* --- names --- */

static void add_link_names(pc_chrome *chrome) {
    bool with_replica = pc_link_has_replicas(chrome->engine);
    char name[PC_LINK_NAME_SIZE];
    if (chrome->engine->link_count == 0) return;
    pc_chrome_add_name(chrome, "process", links_process(chrome), PC_CHROME_PASSES, "links", chrome->record->devices);
    for (int64_t i = 0; i < chrome->flow_count; i++) {
        pc_link_name(chrome->engine, chrome->flows[i].track, with_replica, name);
        pc_chrome_add_thread(chrome, &chrome->flows[i], name);
    }
}

void pc_chrome_add_engine_names(pc_chrome *chrome) {
    add_link_names(chrome);
    for (int64_t i = 0; i < chrome->engine->work_count; i++) {
        char name[48] = "work";
        if (chrome->work[i].track > 0) snprintf(name, sizeof name, "work of replica %" PRId64, chrome->work[i].track);
        pc_chrome_add_thread(chrome, &chrome->work[i], name);
    }
}

/* --- slices --- */

static void add_flow_name(pc_chrome *chrome, int64_t flow) {
    const pc_engine_trace *trace = chrome->engine;
    pc_text_printf(&chrome->out.text, ",\"cat\":\"flow\",\"name\":\"%s",
                   pc_flow_sort_name((pc_flow_sort)trace->flow_sort[flow]));
    if (trace->flow_microbatch[flow] >= 0)
        pc_text_printf(&chrome->out.text, ", microbatch %d", trace->flow_microbatch[flow]);
    else if (trace->flow_chunk[flow] >= 0)
        pc_text_printf(&chrome->out.text, ", chunk %d", trace->flow_chunk[flow]);
    pc_text_printf(&chrome->out.text, "\"");
}

static void add_flow_args(pc_chrome *chrome, int64_t flow) {
    const pc_engine_trace *trace = chrome->engine;
    pc_text_printf(&chrome->out.text, ",\"args\":{\"flow\":%" PRId64 ",\"replica\":%d,\"from\":%d,\"to\":%d", flow,
                   trace->flow_replica[flow], trace->flow_from[flow], trace->flow_to[flow]);
    if (trace->flow_microbatch[flow] >= 0)
        pc_text_printf(&chrome->out.text, ",\"microbatch\":%d", trace->flow_microbatch[flow]);
    if (trace->flow_chunk[flow] >= 0) pc_text_printf(&chrome->out.text, ",\"chunk\":%d", trace->flow_chunk[flow]);
    pc_chrome_add_number(chrome, "bytes", trace->flow_bytes[flow]);
    pc_chrome_add_time(chrome, "ready_us", trace->flow_ready_ps[flow]);
    pc_chrome_add_time(chrome, "waited_us", trace->flow_start_ps[flow] - trace->flow_ready_ps[flow]);
    pc_chrome_add_time(chrome, "alone_us", trace->flow_alone_ps[flow]);
    pc_text_add(&chrome->out.text, "}", 1);
}

static void add_flow(pc_chrome *chrome, const pc_chrome_slice *now) {
    pc_chrome_start(chrome, 'X', now->process, now->thread);
    add_flow_name(chrome, now->row);
    pc_chrome_add_time(chrome, "ts", now->start_ps);
    pc_chrome_add_time(chrome, "dur", now->end_ps - now->start_ps);
    add_flow_args(chrome, now->row);
    pc_chrome_end(chrome);
}

static void add_work(pc_chrome *chrome, const pc_chrome_slice *now) {
    pc_chrome_start(chrome, 'X', now->process, now->thread);
    pc_text_printf(&chrome->out.text, ",\"cat\":\"work\",\"name\":\"%s\"",
                   pc_work_sort_name((pc_work_sort)chrome->engine->work_sort[now->row]));
    pc_chrome_add_time(chrome, "ts", now->start_ps);
    pc_chrome_add_time(chrome, "dur", now->end_ps - now->start_ps);
    pc_text_printf(&chrome->out.text, ",\"args\":{\"replica\":%d}", chrome->engine->work_replica[now->row]);
    pc_chrome_end(chrome);
}

void pc_chrome_add_wait(pc_chrome *chrome, int64_t pass) {
    if (pass >= chrome->engine->queue_count) return;
    pc_chrome_add_time(chrome, "waited_us", chrome->trace->pass_start_ps[pass] - chrome->engine->queue_ready_ps[pass]);
}

/* --- counters --- */

static void add_load(pc_chrome *chrome, int64_t link, bool with_replica, pc_time time, double bytes_per_s) {
    char name[PC_LINK_NAME_SIZE], number[PC_NUMBER_SIZE];
    pc_link_name(chrome->engine, link, with_replica, name);
    pc_number_format(bytes_per_s / PC_BYTES_PER_GB, number);
    pc_chrome_start(chrome, 'C', links_process(chrome), PC_CHROME_PASSES);
    pc_text_printf(&chrome->out.text, ",\"name\":\"%s [GB/s]\"", name);
    pc_chrome_add_time(chrome, "ts", time);
    pc_text_printf(&chrome->out.text, ",\"args\":{\"load\":%s}", number);
    pc_chrome_end(chrome);
}

/* From the iteration's start on, where a viewer would otherwise show nothing. */
static void add_loads(pc_chrome *chrome) {
    const pc_engine_trace *trace = chrome->engine;
    bool with_replica = pc_link_has_replicas(trace);
    for (int64_t i = 0; i < trace->link_count; i++) add_load(chrome, i, with_replica, 0, 0);
    for (int64_t i = 0; i < trace->load_count; i++)
        add_load(chrome, trace->load_link[i], with_replica, trace->load_time_ps[i], trace->load_bytes_per_s[i]);
}

/* What is free lies upon what is held: together they are the capacity. */
static void add_memory(pc_chrome *chrome, int device, pc_time time, int64_t bytes) {
    int64_t capacity = device < chrome->engine->devices ? chrome->engine->memory_capacity_bytes[device] : PC_NO_LIMIT;
    char number[PC_NUMBER_SIZE];
    pc_number_format((double)bytes / 0x1p30, number);
    pc_chrome_start(chrome, 'C', device + 1, PC_CHROME_PASSES);
    pc_text_printf(&chrome->out.text, ",\"name\":\"memory in all [GiB]\"");
    pc_chrome_add_time(chrome, "ts", time);
    pc_text_printf(&chrome->out.text, ",\"args\":{\"held\":%s", number);
    if (capacity != PC_NO_LIMIT) pc_chrome_add_gib(chrome, "free", capacity > bytes ? capacity - bytes : 0);
    pc_text_add(&chrome->out.text, "}", 1);
    pc_chrome_end(chrome);
}

static void add_memories(pc_chrome *chrome) {
    const pc_engine_trace *trace = chrome->engine;
    for (int64_t i = 0; i < trace->memory_count; i++) {
        int d = trace->memory_device[i];
        bool is_first = i == 0 || trace->memory_device[i - 1] != d;
        if (is_first && trace->memory_time_ps[i] > 0) add_memory(chrome, d, 0, 0);
        add_memory(chrome, d, trace->memory_time_ps[i], trace->memory_bytes[i]);
    }
}

void pc_chrome_add_engine(pc_chrome *chrome) {
    for (int64_t i = 0; i < chrome->flow_count; i++) add_flow(chrome, &chrome->flows[i]);
    for (int64_t i = 0; i < chrome->engine->work_count; i++) add_work(chrome, &chrome->work[i]);
    add_loads(chrome);
    add_memories(chrome);
}
