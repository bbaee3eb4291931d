/* Chrome's trace event format, as its public description ('Trace Event Format', Google, 2016) has it: M names processes
 * and threads, X is something that lasts, C a counter, s and f the ends of an arrow. */
#include "results/export.h"

#include "engine/alloc.h"
#include "results/export_private.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Process 0 and thread 0 mean "idle" to Perfetto. Transfers have threads from 2 on. */
enum { THREAD_OF_PASSES = 1 };

static const double BYTES_PER_GIB = 1073741824.0;

/* A transfer and its place: a thread of its sender, on which none overlaps another. */
typedef struct sent {
    int32_t from, to;
    pc_time start_ps, end_ps;
    int64_t row;
    int32_t maker, waiting; /* positions of the passes at its ends */
    int32_t thread;
} sent;

typedef struct chrome {
    const pc_run_row *row;
    const pc_trace_record *record;
    const pc_replay_trace *trace;
    pc_trace_view view;
    sent *sent; /* [transfer_count], by sender, receiver and time */
    pc_outlet out;
    bool is_first;
} chrome;

static int process_of(int device) {
    return device + 1;
}

/* --- which thread --- */

static int compare(int64_t a, int64_t b) {
    return (a > b) - (a < b);
}

static int compare_sent(const void *a, const void *b) {
    const sent *x = a, *y = b;
    int order = compare(x->from, y->from);
    if (order == 0) order = compare(x->to, y->to);
    if (order == 0) order = compare(x->start_ps, y->start_ps);
    return order ? order : compare(x->row, y->row);
}

/* Each on the first thread of its way that is free: `free_ps` says from when on, for `count` threads from `first` on.
 */
static int32_t take_thread(pc_time *free_ps, int32_t first, int32_t *count, pc_time start_ps, pc_time end_ps) {
    int32_t i = 0;
    while (i < *count && free_ps[i] > start_ps) i++;
    if (i == *count) (*count)++;
    free_ps[i] = end_ps;
    return first + i;
}

static void place_transfers(chrome *x, pc_time *free_ps) {
    int32_t first = 0, count = 0;
    for (int64_t i = 0; i < x->trace->transfer_count; i++) {
        sent *now = &x->sent[i];
        bool same_sender = i > 0 && now[-1].from == now->from, same_way = same_sender && now[-1].to == now->to;
        if (!same_way) first = same_sender ? first + count : THREAD_OF_PASSES + 1;
        if (!same_way) count = 0;
        now->thread = take_thread(free_ps, first, &count, now->start_ps, now->end_ps);
    }
}

/* --- what it joins --- */

/* A file may say anything. */
static pc_code find_passes(const chrome *x, sent *now, pc_error *error) {
    pc_pass pass = x->trace->transfer_pass[now->row];
    pc_predecessor maker;
    now->waiting = pc_pass_position(&x->view.index, now->to, pass.chunk, pass.microbatch, (pc_pass_kind)pass.kind);
    if (now->waiting != PC_NO_PASS && x->trace->pass_start_ps[now->waiting] >= now->end_ps &&
        pc_pass_sender(&x->view.index, now->to, pass, &maker) && maker.stage == now->from) {
        now->maker = maker.position;
        return PC_OK;
    }
    char name[PC_PASS_NAME_SIZE];
    pc_pass_name(&x->view.schedule, pass, name);
    return pc_error_set(error, PC_ERROR_INPUT,
                        "trace: a transfer from stage %d to %s of stage %d; expected a pass that starts after it and "
                        "waits for that stage",
                        now->from, name, now->to);
}

static pc_code list_transfers(chrome *x, pc_error *error) {
    const pc_replay_trace *trace = x->trace;
    size_t transfers = (size_t)trace->transfer_count;
    pc_time *free_ps = pc_alloc(transfers, sizeof *free_ps);
    x->sent = pc_alloc(transfers, sizeof *x->sent);
    pc_code code = x->sent && free_ps ? PC_OK : pc_error_no_memory(error);
    for (int64_t i = 0; i < trace->transfer_count && !code; i++) {
        x->sent[i] = (sent){.from = trace->transfer_from[i],
                            .to = trace->transfer_to[i],
                            .start_ps = trace->transfer_start_ps[i],
                            .end_ps = trace->transfer_end_ps[i],
                            .row = i};
        code = find_passes(x, &x->sent[i], error);
    }
    if (!code) qsort(x->sent, transfers, sizeof *x->sent, compare_sent);
    if (!code) place_transfers(x, free_ps);
    pc_free(free_ps);
    return code;
}

/* --- pieces of events --- */

/* Microseconds, to the picosecond. */
static void add_time(chrome *x, const char *name, pc_time time) {
    pc_text_printf(&x->out.text, ",\"%s\":%" PRId64 ".%06" PRId64, name, time / 1000000, time % 1000000);
}

static void start_event(chrome *x, char phase, int device, int thread) {
    pc_text_printf(&x->out.text, "%s\n{\"ph\":\"%c\",\"pid\":%d,\"tid\":%d", x->is_first ? "" : ",", phase,
                   process_of(device), thread);
    x->is_first = false;
}

static void end_event(chrome *x) {
    pc_text_add(&x->out.text, "}", 1);
    pc_outlet_step(&x->out);
}

static void add_name(chrome *x, const char *what, int device, int thread, const char *name) {
    start_event(x, 'M', device, thread);
    pc_text_printf(&x->out.text, ",\"name\":\"%s\",\"args\":{\"name\":\"%s\"}", what, name);
    end_event(x);
}

static void add_sort_index(chrome *x, const char *what, int device, int thread, int index) {
    start_event(x, 'M', device, thread);
    pc_text_printf(&x->out.text, ",\"name\":\"%s\",\"args\":{\"sort_index\":%d}", what, index);
    end_event(x);
}

/* --- names --- */

static void add_devices(chrome *x) {
    for (int d = 0; d < x->record->devices; d++) {
        char name[32];
        snprintf(name, sizeof name, "stage %d", d);
        add_name(x, "process_name", d, THREAD_OF_PASSES, name);
        add_sort_index(x, "process_sort_index", d, THREAD_OF_PASSES, d);
        add_name(x, "thread_name", d, THREAD_OF_PASSES, "passes");
        add_sort_index(x, "thread_sort_index", d, THREAD_OF_PASSES, THREAD_OF_PASSES);
    }
}

/* A thread is named where its first transfer comes; where one way has several they are numbered. */
static void add_ways(chrome *x) {
    int32_t first = 0, last = 0;
    for (int64_t i = 0; i < x->trace->transfer_count; i++) {
        const sent *now = &x->sent[i];
        bool same_way = i > 0 && now[-1].from == now->from && now[-1].to == now->to;
        if (same_way && now->thread <= last) continue;
        if (!same_way) first = now->thread;
        last = now->thread;
        char name[48];
        int length = snprintf(name, sizeof name, "to stage %d", now->to);
        if (last > first) snprintf(name + length, sizeof name - (size_t)length, " (%d)", last - first + 1);
        add_name(x, "thread_name", now->from, last, name);
        add_sort_index(x, "thread_sort_index", now->from, last, last);
    }
}

/* --- what lasts --- */

static void add_pass_args(chrome *x, pc_pass pass) {
    pc_text_printf(&x->out.text, ",\"args\":{\"microbatch\":%d,\"chunk\":%d,\"kind\":\"%s\"", pass.microbatch,
                   pass.chunk, pc_pass_kind_name((pc_pass_kind)pass.kind));
}

static void add_passes(chrome *x) {
    const pc_replay_trace *trace = x->trace;
    for (int64_t i = 0; i < trace->pass_count; i++) {
        char name[PC_PASS_NAME_SIZE];
        pc_pass_name(&x->view.schedule, trace->pass[i], name);
        start_event(x, 'X', trace->pass_device[i], THREAD_OF_PASSES);
        pc_text_printf(&x->out.text, ",\"cat\":\"pass\",\"name\":\"%s\"", name);
        add_time(x, "ts", trace->pass_start_ps[i]);
        add_time(x, "dur", trace->pass_end_ps[i] - trace->pass_start_ps[i]);
        add_pass_args(x, trace->pass[i]);
        pc_text_add(&x->out.text, "}", 1);
        end_event(x);
    }
}

static void add_transfer(chrome *x, const sent *now) {
    const pc_replay_trace *trace = x->trace;
    char name[PC_PASS_NAME_SIZE];
    pc_pass_name(&x->view.schedule, trace->transfer_pass[now->row], name);
    start_event(x, 'X', now->from, now->thread);
    pc_text_printf(&x->out.text, ",\"cat\":\"transfer\",\"name\":\"to %s\"", name);
    add_time(x, "ts", now->start_ps);
    add_time(x, "dur", now->end_ps - now->start_ps);
    add_pass_args(x, trace->transfer_pass[now->row]);
    pc_text_printf(&x->out.text, ",\"from\":%d,\"to\":%d}", now->from, now->to);
    end_event(x);
}

/* --- arrows --- */

static void add_arrow_end(chrome *x, char phase, const sent *now, int device, int thread, pc_time time) {
    start_event(x, phase, device, thread);
    pc_text_printf(&x->out.text, ",\"cat\":\"transfer\",\"name\":\"waits\",\"id\":%" PRId64, now->row + 1);
    if (phase == 'f') pc_text_printf(&x->out.text, ",\"bp\":\"e\"");
    add_time(x, "ts", time);
    end_event(x);
}

/* From the transfer to the start of the pass that waits for it. A transfer of no time is nothing that an arrow could
 * start from: it starts from the pass that made what is sent. */
static void add_arrow(chrome *x, const sent *now) {
    const pc_time *start_ps = x->trace->pass_start_ps;
    if (now->end_ps > now->start_ps)
        add_arrow_end(x, 's', now, now->from, now->thread, now->start_ps);
    else
        add_arrow_end(x, 's', now, now->from, THREAD_OF_PASSES, start_ps[now->maker]);
    add_arrow_end(x, 'f', now, now->to, THREAD_OF_PASSES, start_ps[now->waiting]);
}

/* --- memory --- */

static void add_gib(chrome *x, const char *name, int64_t bytes) {
    char number[PC_NUMBER_SIZE];
    pc_number_format((double)bytes / BYTES_PER_GIB, number);
    pc_text_printf(&x->out.text, ",\"%s\":%s", name, number);
}

static void add_level(chrome *x, int device, pc_time time, int64_t bytes) {
    char number[PC_NUMBER_SIZE];
    const pc_device_memory *held = x->record->memory ? &x->record->memory[device] : NULL;
    start_event(x, 'C', device, THREAD_OF_PASSES);
    pc_text_printf(&x->out.text, ",\"name\":\"memory [GiB]\"");
    add_time(x, "ts", time);
    pc_number_format((double)bytes / BYTES_PER_GIB, number);
    pc_text_printf(&x->out.text, ",\"args\":{\"activations\":%s", number);
    if (held) {
        add_gib(x, "parameters", held->parameters);
        add_gib(x, "gradients", held->gradients);
        add_gib(x, "optimizer", held->optimizer);
        add_gib(x, "buffers", held->buffers);
    }
    pc_text_add(&x->out.text, "}", 1);
    end_event(x);
}

/* From the iteration's start on, where a viewer would otherwise show nothing. */
static void add_levels(chrome *x) {
    const pc_replay_trace *trace = x->trace;
    for (int64_t i = 0; i < trace->level_count; i++) {
        int d = trace->level_device[i];
        bool is_first = i == 0 || trace->level_device[i - 1] != d;
        if (is_first && trace->level_time_ps[i] > 0) add_level(x, d, 0, 0);
        add_level(x, d, trace->level_time_ps[i], trace->level_bytes[i]);
    }
}

/* --- what is true of all --- */

static void add_label(chrome *x, const char *name, const char *text) {
    if (!text[0]) return;
    pc_text_printf(&x->out.text, ",\"%s\":", name);
    pc_text_add_json(&x->out.text, text);
}

static void add_head(chrome *x) {
    const pc_trace_record *record = x->record;
    pc_text_printf(&x->out.text, "{\"displayTimeUnit\":\"ms\",\"otherData\":{\"pipecast_version\":\"%s\"", PC_VERSION);
    add_label(x, "scenario", x->row->scenario);
    pc_text_printf(&x->out.text, ",\"run\":%" PRId64, x->row->run);
    add_label(x, "name", x->row->name);
    add_label(x, "model", x->row->model);
    add_label(x, "machine", x->row->machine);
    add_label(x, "schedule", x->row->schedule);
    pc_text_printf(&x->out.text, ",\"devices\":%d,\"microbatches\":%d,\"chunks\":%d,\"placement\":\"%s\"}",
                   record->devices, record->microbatches, record->chunks, pc_placement_name(record->placement));
    pc_text_printf(&x->out.text, ",\"traceEvents\":[");
}

/* --- all of it --- */

static void add_all(chrome *x) {
    int64_t transfers = x->trace->transfer_count;
    add_head(x);
    add_devices(x);
    add_ways(x);
    add_passes(x);
    for (int64_t i = 0; i < transfers; i++) add_transfer(x, &x->sent[i]);
    for (int64_t i = 0; i < transfers; i++) add_arrow(x, &x->sent[i]);
    add_levels(x);
    pc_text_printf(&x->out.text, "\n]}\n");
}

static pc_code write_in_scope(chrome *x, pc_error *error) {
    pc_number_scope scope = {0};
    if (!pc_number_scope_enter(&scope)) return pc_error_no_memory(error);
    add_all(x);
    pc_number_scope_leave(&scope);
    return pc_outlet_end(&x->out, error);
}

pc_code pc_export_chrome(const pc_run_row *row, const pc_trace_record *record, FILE *stream, pc_error *error) {
    chrome x = {
        .row = row, .record = record, .trace = &record->replay.trace, .out = {.stream = stream}, .is_first = true};
    pc_code code = pc_trace_view_make(record, &x.view, error);
    if (!code) code = list_transfers(&x, error);
    if (!code) code = write_in_scope(&x, error);
    pc_free(x.sent);
    pc_trace_view_free(&x.view);
    return code;
}
