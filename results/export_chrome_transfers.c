#include "results/export_chrome.h"

#include "engine/alloc.h"

#include <inttypes.h>

/* --- what a transfer joins --- */

pc_code pc_chrome_list_transfers(pc_chrome *chrome, pc_error *error) {
    const pc_replay_trace *trace = chrome->trace;
    size_t transfers = (size_t)trace->transfer_count;
    chrome->sent = pc_alloc(transfers, sizeof *chrome->sent);
    chrome->maker = pc_alloc(transfers, sizeof *chrome->maker);
    chrome->waiting = pc_alloc(transfers, sizeof *chrome->waiting);
    if (!chrome->sent || !chrome->maker || !chrome->waiting) return pc_error_no_memory(error);
    for (int64_t i = 0; i < trace->transfer_count; i++) {
        chrome->sent[i] = (pc_chrome_slice){.process = trace->transfer_from[i] + 1,
                                            .track = trace->transfer_to[i],
                                            .start_ps = trace->transfer_start_ps[i],
                                            .end_ps = trace->transfer_end_ps[i],
                                            .row = i};
        pc_code code = pc_trace_view_join(&chrome->view, trace, i, &chrome->maker[i], &chrome->waiting[i], error);
        if (code) return code;
    }
    return pc_chrome_place(chrome, chrome->sent, trace->transfer_count, error);
}

/* --- names --- */

void pc_chrome_add_ways(pc_chrome *chrome) {
    for (int64_t i = 0; i < chrome->trace->transfer_count; i++) {
        char name[48];
        snprintf(name, sizeof name, "to stage %" PRId64, chrome->sent[i].track);
        pc_chrome_add_thread(chrome, &chrome->sent[i], name);
    }
}

/* --- what lasts --- */

static void add_transfer(pc_chrome *chrome, const pc_chrome_slice *now) {
    const pc_replay_trace *trace = chrome->trace;
    pc_pass pass = trace->transfer_pass[now->row];
    char name[PC_PASS_NAME_SIZE];
    pc_pass_name(&chrome->view.schedule, pass, name);
    pc_chrome_start(chrome, 'X', now->process, now->thread);
    pc_text_printf(&chrome->out.text, ",\"cat\":\"transfer\",\"name\":\"to %s\"", name);
    pc_chrome_add_time(chrome, "ts", now->start_ps);
    pc_chrome_add_time(chrome, "dur", now->end_ps - now->start_ps);
    pc_text_printf(&chrome->out.text,
                   ",\"args\":{\"microbatch\":%d,\"chunk\":%d,\"kind\":\"%s\",\"from\":%d,\"to\":%d}", pass.microbatch,
                   pass.chunk, pc_pass_kind_name((pc_pass_kind)pass.kind), trace->transfer_from[now->row],
                   trace->transfer_to[now->row]);
    pc_chrome_end(chrome);
}

/* --- arrows --- */

static void add_arrow_end(pc_chrome *chrome, char phase, const pc_chrome_slice *now, int process, int thread,
                          pc_time time) {
    pc_chrome_start(chrome, phase, process, thread);
    pc_text_printf(&chrome->out.text, ",\"cat\":\"transfer\",\"name\":\"waits\",\"id\":%" PRId64, now->row + 1);
    if (phase == 'f') pc_text_printf(&chrome->out.text, ",\"bp\":\"e\"");
    pc_chrome_add_time(chrome, "ts", time);
    pc_chrome_end(chrome);
}

/* From the transfer to the start of the pass that waits for it. A transfer of no time is nothing that an arrow could
 * start from: it starts from the pass that made what is sent. */
static void add_arrow(pc_chrome *chrome, const pc_chrome_slice *now) {
    const pc_time *start_ps = chrome->trace->pass_start_ps;
    int to = chrome->trace->transfer_to[now->row] + 1;
    if (now->end_ps > now->start_ps)
        add_arrow_end(chrome, 's', now, now->process, now->thread, now->start_ps);
    else
        add_arrow_end(chrome, 's', now, now->process, PC_CHROME_PASSES, start_ps[chrome->maker[now->row]]);
    add_arrow_end(chrome, 'f', now, to, PC_CHROME_PASSES, start_ps[chrome->waiting[now->row]]);
}

void pc_chrome_add_transfers(pc_chrome *chrome) {
    for (int64_t i = 0; i < chrome->trace->transfer_count; i++) add_transfer(chrome, &chrome->sent[i]);
    for (int64_t i = 0; i < chrome->trace->transfer_count; i++) add_arrow(chrome, &chrome->sent[i]);
}
