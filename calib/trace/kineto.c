#include "calib/trace/kineto.h"

#include "calib/trace/kineto_private.h"
#include "engine/alloc.h"
#include "storage/gz_file.h"
#include "storage/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPECTED "a trace of PyTorch's profiler (JSON, or that in gzip)"

/* A pass, and where it ran. */
typedef struct found_pass {
    pc_traced_pass pass;
    int64_t process, thread;
    bool is_of_device;
} found_pass;

typedef struct found_message {
    pc_traced_message message;
    int64_t peer;     /* PC_KINETO_NOT_GIVEN if only the group says it */
    int64_t group[2]; /* likewise */
} found_message;

/* Kernels that are not NCCL's, of a stream of a device. */
typedef struct stream_use {
    int64_t process, thread, kernel_ns;
} stream_use;

enum { STREAMS_MAX = 256 }; /* of further ones nobody asks */

typedef struct reading {
    pc_json json;
    pc_gz_file *file;
    int64_t rank, world_size, bad_passes;
    bool has_events, has_memory, has_bad_rank;
    found_pass *passes;
    int64_t pass_count, pass_room;
    found_message *messages;
    int64_t message_count, message_room;
    stream_use streams[STREAMS_MAX];
    int stream_count;
    /* Of the second reading: passes on the thread that launches them, by start; and what was allocated before them. */
    pc_traced_pass *windows;
    int64_t window_count;
    int64_t first_ns, before_ns, held_bytes;
} reading;

/* ---- what is kept ---- */

static pc_code grow(void **list, int64_t count, int64_t *room, size_t size, const char *what, pc_error *error) {
    if (count < *room) return PC_OK;
    if (count >= PC_TRACED_MOST)
        return pc_error_set(error, PC_ERROR_INPUT, "over %d %s; expected fewer of one rank", PC_TRACED_MOST, what);
    int64_t more = *room ? 2 * *room : 256;
    void *larger = pc_realloc(*list, (size_t)more, size);
    if (!larger) return pc_error_no_memory(error);
    *list = larger;
    *room = more;
    return PC_OK;
}

static pc_code keep_pass(reading *r, const pc_kineto_event *event, const pc_traced_name *name, pc_error *error) {
    void *list = r->passes;
    pc_code code = grow(&list, r->pass_count, &r->pass_room, sizeof *r->passes, "passes", error);
    r->passes = list;
    if (code) return code;
    r->passes[r->pass_count++] = (found_pass){
        .pass = {.name = *name, .start_ns = event->start_ns, .end_ns = event->start_ns + event->duration_ns},
        .process = event->process,
        .thread = event->thread,
        .is_of_device = event->sort == PC_KINETO_DEVICE_ANNOTATION};
    return PC_OK;
}

static pc_code keep_message(reading *r, const pc_kineto_event *event, pc_error *error) {
    void *list = r->messages;
    int64_t bytes = 0;
    bool has_bytes = event->elements > 0 && event->element_bytes > 0 &&
                     !__builtin_mul_overflow(event->elements, event->element_bytes, &bytes);
    pc_code code = grow(&list, r->message_count, &r->message_room, sizeof *r->messages, "messages", error);
    r->messages = list;
    if (code) return code;
    r->messages[r->message_count++] = (found_message){.message = {.is_sent = event->is_send,
                                                                  .start_ns = event->start_ns,
                                                                  .end_ns = event->start_ns + event->duration_ns,
                                                                  .bytes = has_bytes ? bytes : 0},
                                                      .peer = event->is_send ? event->target : event->source,
                                                      .group = {event->group[0], event->group[1]}};
    return PC_OK;
}

static void count_kernel(reading *r, const pc_kineto_event *event) {
    int i = 0;
    while (i < r->stream_count && (r->streams[i].process != event->process || r->streams[i].thread != event->thread))
        i++;
    if (i == STREAMS_MAX) return;
    if (i == r->stream_count) r->streams[r->stream_count++] = (stream_use){event->process, event->thread, 0};
    int64_t sum;
    if (!__builtin_add_overflow(r->streams[i].kernel_ns, event->duration_ns, &sum)) r->streams[i].kernel_ns = sum;
}

/* Of the first reading. */
static pc_code take_event(reading *r, const pc_kineto_event *event, pc_error *error) {
    int64_t end_ns;
    pc_traced_name name;
    r->has_memory = r->has_memory || (event->sort == PC_KINETO_MEMORY && event->device_type > 0);
    bool is_annotation = event->sort == PC_KINETO_ANNOTATION || event->sort == PC_KINETO_DEVICE_ANNOTATION;
    bool is_pass = is_annotation && pc_traced_name_parse(event->name, &name);
    if (event->phase != 'X') return PC_OK;
    if (!event->has_start || !event->has_duration || event->duration_ns < 0 ||
        __builtin_add_overflow(event->start_ns, event->duration_ns, &end_ns)) {
        r->bad_passes += is_pass;
        return PC_OK;
    }
    if (event->sort == PC_KINETO_KERNEL) {
        if (strncmp(event->name, "nccl", 4) != 0) return count_kernel(r, event), PC_OK;
        return event->is_send || event->is_receive ? keep_message(r, event, error) : PC_OK;
    }
    return is_pass ? keep_pass(r, event, &name, error) : PC_OK;
}

/* ---- allocations, in the second reading ---- */

/* The last window that has begun; -1: none has. */
static int64_t window_at(const reading *r, int64_t time_ns) {
    int64_t low = 0, high = r->window_count;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (r->windows[middle].start_ns <= time_ns)
            low = middle + 1;
        else
            high = middle;
    }
    return low - 1;
}

static pc_code take_allocation(reading *r, const pc_kineto_event *event, pc_error *error) {
    int64_t sum;
    (void)error;
    if (event->sort != PC_KINETO_MEMORY || event->device_type <= 0 || !event->has_start) return PC_OK;
    if (event->start_ns < r->first_ns && event->start_ns >= r->before_ns && event->allocated >= 0) {
        r->before_ns = event->start_ns;
        r->held_bytes = event->allocated;
    }
    int64_t i = window_at(r, event->start_ns);
    if (i < 0 || event->start_ns > r->windows[i].end_ns) return PC_OK;
    if (!__builtin_add_overflow(r->windows[i].bytes, event->bytes, &sum)) r->windows[i].bytes = sum;
    return PC_OK;
}

/* ---- the text ---- */

typedef pc_code take_event_function(reading *r, const pc_kineto_event *event, pc_error *error);

static pc_code read_events(reading *r, take_event_function *take, pc_error *error) {
    pc_kineto_event event;
    pc_json_token token;
    pc_code code;
    r->has_events = true;
    while (!(code = pc_json_next(&r->json, &token, error)) && token.kind != PC_JSON_LIST_END) {
        if (token.kind == PC_JSON_OBJECT) {
            code = pc_kineto_event_read(&r->json, &event, error);
            if (!code) code = take(r, &event, error);
        } else {
            code = pc_json_skip(&r->json, &token, error);
        }
        if (code) return code;
    }
    return code;
}

static pc_code read_distributed(reading *r, pc_error *error) {
    pc_json_token token;
    pc_code code;
    while (!(code = pc_json_next(&r->json, &token, error)) && token.kind == PC_JSON_KEY) {
        bool is_rank = strcmp(token.text, "rank") == 0, is_size = strcmp(token.text, "world_size") == 0;
        int64_t number = 0;
        code = pc_json_next(&r->json, &token, error);
        bool is_good = !code && token.kind == PC_JSON_NUMBER && pc_kineto_integer(token.text, &number) && number >= 0 &&
                       number <= INT32_MAX;
        if (is_rank) r->has_bad_rank = !is_good;
        if (is_rank && is_good) r->rank = number;
        if (is_size && is_good) r->world_size = number;
        if (!code) code = pc_json_skip(&r->json, &token, error);
        if (code) return code;
    }
    return code;
}

static pc_code read_member(reading *r, take_event_function *take, pc_error *error) {
    pc_json_token token = {.kind = PC_JSON_KEY};
    char key[PC_KINETO_NAME_SIZE];
    snprintf(key, sizeof key, "%.*s", (int)sizeof key - 1, r->json.text);
    pc_code code = pc_json_next(&r->json, &token, error);
    if (code) return code;
    if (strcmp(key, "traceEvents") == 0 && token.kind == PC_JSON_LIST) return read_events(r, take, error);
    if (strcmp(key, "distributedInfo") == 0 && token.kind == PC_JSON_OBJECT) return read_distributed(r, error);
    return pc_json_skip(&r->json, &token, error);
}

static pc_code read_text(reading *r, take_event_function *take, pc_error *error) {
    pc_json_token token;
    pc_json_begin(&r->json, pc_gz_read, r->file);
    pc_code code = pc_json_next(&r->json, &token, error);
    if (code) return code;
    if (token.kind == PC_JSON_LIST)
        code = read_events(r, take, error);
    else if (token.kind != PC_JSON_OBJECT)
        return pc_error_set(error, PC_ERROR_INPUT, "has no events; expected " EXPECTED);
    else
        while (!(code = pc_json_next(&r->json, &token, error)) && token.kind == PC_JSON_KEY) {
            code = read_member(r, take, error);
            if (code) return code;
        }
    if (!code) code = pc_json_next(&r->json, &token, error); /* nothing may stand behind it */
    if (code || r->has_events) return code;
    return pc_error_set(error, PC_ERROR_INPUT, "has no traceEvents; expected " EXPECTED);
}

/* ---- what the passes are ---- */

static int compare(int64_t a, int64_t b) {
    return (a > b) - (a < b);
}

static int compare_names(const pc_traced_name *a, const pc_traced_name *b) {
    int order = compare(a->has_part, b->has_part);
    if (order == 0) order = compare(a->chunk, b->chunk);
    if (order == 0) order = compare((int)a->kind, (int)b->kind);
    return order ? order : compare(a->microbatch, b->microbatch);
}

static int by_start(const void *a, const void *b) {
    const pc_traced_pass *x = a, *y = b;
    int order = compare(x->start_ns, y->start_ns);
    if (order == 0) order = compare(x->end_ns, y->end_ns);
    return order ? order : compare_names(&x->name, &y->name);
}

static int by_name(const void *a, const void *b) {
    const pc_traced_pass *x = a, *y = b;
    int order = compare_names(&x->name, &y->name);
    return order ? order : by_start(a, b);
}

/* The k-th of a name is of the k-th iteration that was traced. */
static void number_passes(pc_traced_pass *passes, int64_t count) {
    if (count == 0) return;
    qsort(passes, (size_t)count, sizeof *passes, by_name);
    for (int64_t i = 0; i < count; i++) {
        bool is_again = i > 0 && compare_names(&passes[i - 1].name, &passes[i].name) == 0;
        passes[i].occurrence = is_again ? passes[i - 1].occurrence + 1 : 0;
    }
    qsort(passes, (size_t)count, sizeof *passes, by_start);
}

static bool is_any_of_device(const reading *r) {
    for (int64_t i = 0; i < r->pass_count; i++)
        if (r->passes[i].is_of_device) return true;
    return false;
}

static int64_t kernel_time(const reading *r, int64_t process, int64_t thread) {
    for (int i = 0; i < r->stream_count; i++)
        if (r->streams[i].process == process && r->streams[i].thread == thread) return r->streams[i].kernel_ns;
    return -1;
}

/* The pass that ran where most computing was done: the first of the kind on the best stream; -1: there is none. */
static int64_t find_stream(const reading *r, bool is_of_device) {
    int64_t best = -1, best_ns = -1;
    for (int64_t i = 0; i < r->pass_count; i++) {
        const found_pass *pass = &r->passes[i];
        if (pass->is_of_device != is_of_device) continue;
        int64_t time_ns = is_of_device ? kernel_time(r, pass->process, pass->thread) : 0;
        if (best < 0 || time_ns > best_ns) {
            best = i;
            best_ns = time_ns;
        }
    }
    return best;
}

/* On the device those of the stream that computes; else all, for a backward pass may have a thread of its own. */
static bool is_chosen(const reading *r, const found_pass *pass, bool is_of_device, int64_t best) {
    if (pass->is_of_device != is_of_device) return false;
    if (!is_of_device) return true;
    return pass->process == r->passes[best].process && pass->thread == r->passes[best].thread;
}

static pc_code choose_passes(const reading *r, bool is_of_device, pc_traced_pass **passes, int64_t *count,
                             pc_error *error) {
    int64_t best = find_stream(r, is_of_device);
    *count = 0;
    *passes = pc_alloc((size_t)r->pass_count, sizeof **passes);
    if (!*passes) return pc_error_no_memory(error);
    for (int64_t i = 0; i < r->pass_count; i++)
        if (is_chosen(r, &r->passes[i], is_of_device, best)) (*passes)[(*count)++] = r->passes[i].pass;
    number_passes(*passes, *count);
    return PC_OK;
}

static int64_t peer_of(const reading *r, const found_message *message) {
    if (message->peer >= 0) return message->peer;
    if (r->rank < 0) return PC_KINETO_NOT_GIVEN;
    if (message->group[0] == r->rank) return message->group[1];
    return message->group[1] == r->rank ? message->group[0] : PC_KINETO_NOT_GIVEN;
}

static int by_message_start(const void *a, const void *b) {
    const pc_traced_message *x = a, *y = b;
    int order = compare(x->start_ns, y->start_ns);
    if (order == 0) order = compare(x->end_ns, y->end_ns);
    return order ? order : compare(x->peer, y->peer);
}

/* Those of which the other end is known. */
static pc_code choose_messages(const reading *r, pc_rank_trace *trace, pc_error *error) {
    trace->messages = pc_alloc((size_t)r->message_count, sizeof *trace->messages);
    if (!trace->messages) return pc_error_no_memory(error);
    for (int64_t i = 0; i < r->message_count; i++) {
        int64_t peer = peer_of(r, &r->messages[i]);
        if (peer < 0 || peer > INT32_MAX) continue;
        trace->messages[trace->message_count] = r->messages[i].message;
        trace->messages[trace->message_count++].peer = (int32_t)peer;
    }
    if (trace->message_count > 0)
        qsort(trace->messages, (size_t)trace->message_count, sizeof *trace->messages, by_message_start);
    return PC_OK;
}

/* ---- all of it ---- */

static int find_by_name(const void *a, const void *b) {
    const pc_traced_pass *x = a, *y = b;
    int order = compare_names(&x->name, &y->name);
    return order ? order : compare(x->occurrence, y->occurrence);
}

/* What was allocated in a pass's window is the pass's, wherever its time was taken. */
static void give_bytes(reading *r, pc_rank_trace *trace) {
    qsort(r->windows, (size_t)r->window_count, sizeof *r->windows, find_by_name);
    for (int64_t i = 0; i < trace->pass_count; i++) {
        const pc_traced_pass *window =
            bsearch(&trace->passes[i], r->windows, (size_t)r->window_count, sizeof *r->windows, find_by_name);
        if (window) trace->passes[i].bytes = window->bytes;
    }
}

static pc_code read_memory(reading *r, pc_rank_trace *trace, pc_error *error) {
    pc_code code = choose_passes(r, false, &r->windows, &r->window_count, error);
    if (code || r->window_count == 0) return code;
    r->first_ns = r->windows[0].start_ns;
    r->held_bytes = PC_KINETO_NOT_GIVEN;
    code = pc_gz_rewind(r->file, error);
    if (!code) code = read_text(r, take_allocation, error);
    if (code) return code;
    give_bytes(r, trace);
    trace->has_memory = true;
    trace->held_bytes = r->held_bytes < 0 ? 0 : r->held_bytes;
    return PC_OK;
}

static bool has_forward(const reading *r) {
    for (int64_t i = 0; i < r->pass_count; i++)
        if (r->passes[i].pass.name.kind == PC_TRACED_F) return true;
    return false;
}

static pc_code read_whole(reading *r, pc_rank_trace *trace, pc_error *error) {
    pc_code code = read_text(r, take_event, error);
    if (code) return code;
    trace->rank = r->rank;
    trace->world_size = r->world_size;
    trace->bad_passes = r->bad_passes;
    trace->has_bad_rank = r->has_bad_rank;
    trace->has_allocations = r->has_memory;
    trace->is_of_device = is_any_of_device(r);
    if (r->pass_count == 0)
        return pc_error_set(error, PC_ERROR_INPUT,
                            "has no passes; expected annotations such as F0, B3.1 or PP:2F0 "
                            "(torch.profiler.record_function)");
    if (!has_forward(r))
        return pc_error_set(error, PC_ERROR_INPUT,
                            "has no forward passes; expected annotations such as F0 or PP:2F0, too");
    code = choose_passes(r, trace->is_of_device, &trace->passes, &trace->pass_count, error);
    if (!code) code = choose_messages(r, trace, error);
    return code || !r->has_memory ? code : read_memory(r, trace, error);
}

static void free_reading(reading *r) {
    pc_gz_close(r->file);
    pc_free(r->passes);
    pc_free(r->messages);
    pc_free(r->windows);
    pc_free(r);
}

static pc_code read_in_scope(reading *r, const char *path, pc_rank_trace *trace, pc_error *error) {
    pc_number_scope scope = {0};
    if (!pc_number_scope_enter(&scope)) return pc_error_no_memory(error);
    pc_code code = read_whole(r, trace, error);
    pc_number_scope_leave(&scope);
    if (code == PC_ERROR_INPUT && !pc_error_part_of(error, PC_ERROR_PART_FILE)[0])
        pc_error_place(error, path, error->line, "");
    return code;
}

pc_code pc_kineto_read(const char *path, pc_rank_trace *trace, pc_error *error) {
    pc_error why = {0};
    pc_rank_trace found = {0};
    reading *r = pc_alloc(1, sizeof *r);
    if (!r) return pc_error_no_memory(error);
    r->rank = PC_TRACED_NO_STAGE;
    pc_code code = pc_gz_open(path, EXPECTED, &r->file, &why);
    if (!code) code = read_in_scope(r, path, &found, &why);
    free_reading(r);
    if (code) {
        pc_rank_trace_free(&found);
        return pc_error_copy(error, &why);
    }
    *trace = found;
    return PC_OK;
}
