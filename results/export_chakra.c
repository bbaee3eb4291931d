#include "results/export.h"

#include "engine/alloc.h"
#include "results/export_private.h"

#include <math.h>
#include <string.h>

/* --- protobuf's wire format: varints, and bytes behind their length (protobuf.dev/programming-guides/encoding) ---
 *
 * A few lines write it. A library for it would be one more to install, for one file format. */

enum { VARINT = 0, BYTES = 2 };

static void add_varint(pc_text *text, uint64_t number) {
    char byte;
    for (; number >= 0x80; number >>= 7) {
        byte = (char)(0x80 | (number & 0x7f));
        pc_text_add(text, &byte, 1);
    }
    byte = (char)number;
    pc_text_add(text, &byte, 1);
}

static void add_number(pc_text *text, int field, uint64_t number) {
    add_varint(text, (uint64_t)field << 3 | VARINT);
    add_varint(text, number);
}

static void add_bytes(pc_text *text, int field, const char *bytes, size_t size) {
    add_varint(text, (uint64_t)field << 3 | BYTES);
    add_varint(text, size);
    pc_text_add(text, bytes, size);
}

static void add_string(pc_text *text, int field, const char *string) {
    add_bytes(text, field, string, strlen(string));
}

/* --- the schema's fields --- */

enum { METADATA_VERSION = 1, METADATA_ATTRIBUTE = 2 };
enum { NODE_ID = 1, NODE_NAME, NODE_TYPE, NODE_DATA_DEPS = 5, NODE_START, NODE_DURATION, NODE_ATTRIBUTE = 10 };
enum { ATTRIBUTE_NAME = 1, ATTRIBUTE_UINT64 = 13, ATTRIBUTE_BOOL = 27, ATTRIBUTE_STRING = 29 };
typedef enum node_type { COMP_NODE = 4, COMM_SEND_NODE, COMM_RECV_NODE } node_type;

/* One stage's file on its way. */
typedef struct chakra {
    const pc_trace_record *record;
    const pc_replay_trace *trace;
    pc_trace_view view;
    int stage;
    int64_t message_bytes;                /* 0: the trace says it */
    int32_t *maker, *waiting;             /* of each transfer */
    int64_t *sent_bytes, *received_bytes; /* of a message to, and from, each other stage */
    pc_text node, part;                   /* room */
    pc_outlet out;
} chakra;

/* --- what a message takes --- */

/* Of the messages that the stage sends to each other one, and gets from it, the largest: those of one way are alike. */
static pc_code find_sizes(chakra *c, pc_error *error) {
    const pc_engine_trace *engine = &c->record->replay.engine;
    c->sent_bytes = pc_alloc((size_t)c->record->devices, sizeof *c->sent_bytes);
    c->received_bytes = pc_alloc((size_t)c->record->devices, sizeof *c->received_bytes);
    if (!c->sent_bytes || !c->received_bytes) return pc_error_no_memory(error);
    for (int64_t i = 0; i < engine->flow_count; i++) {
        int from = engine->flow_from[i], to = engine->flow_to[i];
        int64_t bytes = engine->flow_bytes[i] < 0x1p62 ? llround(engine->flow_bytes[i]) : 0;
        if (engine->flow_sort[i] != PC_FLOW_MESSAGE) continue;
        if (from == c->stage && bytes > c->sent_bytes[to]) c->sent_bytes[to] = bytes;
        if (to == c->stage && bytes > c->received_bytes[from]) c->received_bytes[from] = bytes;
    }
    return PC_OK;
}

/* 0: nobody says. */
static int64_t bytes_of(const chakra *c, int64_t transfer) {
    int from = c->trace->transfer_from[transfer], to = c->trace->transfer_to[transfer];
    int64_t bytes = from == c->stage ? c->sent_bytes[to] : c->received_bytes[from];
    return bytes > 0 ? bytes : c->message_bytes;
}

static bool is_own(const chakra *c, int64_t transfer) {
    return c->trace->transfer_from[transfer] == c->stage || c->trace->transfer_to[transfer] == c->stage;
}

static pc_code check_bytes(const chakra *c, int64_t transfer, pc_error *error) {
    if (!is_own(c, transfer) || bytes_of(c, transfer) > 0) return PC_OK;
    return pc_error_set(
        error, PC_ERROR_INPUT,
        "trace: does not say how many bytes go between stages; expected a run on a cluster with engine: "
        "events, or --message-size");
}

/* --- attributes --- */

static void add_uint64(chakra *c, int field, const char *name, int64_t number) {
    c->part.size = 0;
    add_string(&c->part, ATTRIBUTE_NAME, name);
    add_number(&c->part, ATTRIBUTE_UINT64, (uint64_t)number);
    add_bytes(&c->node, field, c->part.data, c->part.size);
}

static void add_false(chakra *c, const char *name) {
    c->part.size = 0;
    add_string(&c->part, ATTRIBUTE_NAME, name);
    add_number(&c->part, ATTRIBUTE_BOOL, 0);
    add_bytes(&c->node, NODE_ATTRIBUTE, c->part.data, c->part.size);
}

static void add_text(chakra *c, int field, const char *name, const char *text) {
    pc_text plain = {.data = NULL};
    if (!text[0]) return;
    pc_text_add_line(&plain, text, PC_LABEL_SIZE); /* protobuf's strings are UTF-8 */
    c->part.size = 0;
    add_string(&c->part, ATTRIBUTE_NAME, name);
    add_bytes(&c->part, ATTRIBUTE_STRING, plain.data ? plain.data : "", plain.size);
    add_bytes(&c->node, field, c->part.data, c->part.size);
    c->node.failed = c->node.failed || plain.failed;
    pc_text_free(&plain);
}

/* --- messages --- */

/* Behind its length, as Chakra's reader wants each. */
static void end_message(chakra *c) {
    add_varint(&c->out.text, c->node.size);
    pc_text_add(&c->out.text, c->node.data, c->node.size);
    c->out.text.failed = c->out.text.failed || c->node.failed || c->part.failed;
    c->node.size = 0;
    pc_outlet_step(&c->out);
}

static void add_metadata(chakra *c, const pc_run_row *row) {
    add_string(&c->node, METADATA_VERSION, "0.0.4");
    add_text(c, METADATA_ATTRIBUTE, "program", "pipecast " PC_VERSION);
    add_text(c, METADATA_ATTRIBUTE, "run", row->name);
    add_text(c, METADATA_ATTRIBUTE, "model", row->model);
    add_text(c, METADATA_ATTRIBUTE, "schedule", row->schedule);
    add_uint64(c, METADATA_ATTRIBUTE, "rank", c->stage);
    end_message(c);
}

/* Up to its dependencies, of which there are `count`. */
static void start_node(chakra *c, int64_t id, node_type type, const char *name, const int64_t *needs, int count) {
    add_number(&c->node, NODE_ID, (uint64_t)id);
    add_string(&c->node, NODE_NAME, name);
    add_number(&c->node, NODE_TYPE, (uint64_t)type);
    c->part.size = 0;
    for (int i = 0; i < count; i++) add_varint(&c->part, (uint64_t)needs[i]);
    if (count > 0) add_bytes(&c->node, NODE_DATA_DEPS, c->part.data, c->part.size);
}

static uint64_t micros(pc_time time_ps) {
    return (uint64_t)((time_ps + 500000) / 1000000);
}

static void add_times(chakra *c, pc_time start_ps, pc_time end_ps) {
    uint64_t start = micros(start_ps), length = micros(end_ps - start_ps);
    if (start > 0) add_number(&c->node, NODE_START, start);
    if (length > 0) add_number(&c->node, NODE_DURATION, length);
}

/* Passes, what they receive and what they send are numbered so that each has its own. */
static int64_t id_of_pass(int64_t position) {
    return 3 * position + 1;
}
static int64_t id_of_transfer(int64_t transfer, bool is_sent) {
    return 3 * transfer + (is_sent ? 2 : 3);
}

static void add_transfer(chakra *c, int64_t i, bool is_sent) {
    const pc_replay_trace *trace = c->trace;
    char name[PC_PASS_NAME_SIZE], whole[PC_PASS_NAME_SIZE + 32];
    int from = trace->transfer_from[i], to = trace->transfer_to[i];
    int64_t maker = id_of_pass(c->maker[i]);
    pc_pass_name(&c->view.schedule, trace->transfer_pass[i], name);
    snprintf(whole, sizeof whole, "%s %s %s stage %d", is_sent ? "send for" : "receive for", name,
             is_sent ? "to" : "from", is_sent ? to : from);
    start_node(c, id_of_transfer(i, is_sent), is_sent ? COMM_SEND_NODE : COMM_RECV_NODE, whole, &maker, is_sent);
    add_times(c, trace->transfer_start_ps[i], trace->transfer_end_ps[i]);
    add_false(c, "is_cpu_op");
    add_uint64(c, NODE_ATTRIBUTE, "comm_src", from);
    add_uint64(c, NODE_ATTRIBUTE, "comm_dst", to);
    add_uint64(c, NODE_ATTRIBUTE, "comm_size", bytes_of(c, i));
    add_uint64(c, NODE_ATTRIBUTE, "comm_tag", i + 1);
    end_message(c);
}

static void add_pass(chakra *c, int64_t position, int64_t receive) {
    const pc_replay_trace *trace = c->trace;
    pc_pass pass = trace->pass[position];
    char name[PC_PASS_NAME_SIZE];
    int64_t needs[2];
    int count = 0;
    bool is_first = position == c->view.schedule.offsets[c->stage];
    if (!is_first) needs[count++] = id_of_pass(position - 1);
    if (receive >= 0) needs[count++] = id_of_transfer(receive, false);
    pc_pass_name(&c->view.schedule, pass, name);
    start_node(c, id_of_pass(position), COMP_NODE, name, needs, count);
    add_times(c, trace->pass_start_ps[position], trace->pass_end_ps[position]);
    add_false(c, "is_cpu_op");
    add_text(c, NODE_ATTRIBUTE, "kind", pc_pass_kind_name((pc_pass_kind)pass.kind));
    add_uint64(c, NODE_ATTRIBUTE, "microbatch", pass.microbatch);
    add_uint64(c, NODE_ATTRIBUTE, "chunk", pass.chunk);
    add_uint64(c, NODE_ATTRIBUTE, "duration_ps", trace->pass_end_ps[position] - trace->pass_start_ps[position]);
    end_message(c);
}

/* --- all of it --- */

static pc_code join_transfers(chakra *c, pc_error *error) {
    size_t count = (size_t)c->trace->transfer_count;
    c->maker = pc_alloc(count, sizeof *c->maker);
    c->waiting = pc_alloc(count, sizeof *c->waiting);
    if (!c->maker || !c->waiting) return pc_error_no_memory(error);
    for (int64_t i = 0; i < c->trace->transfer_count; i++) {
        pc_code code = pc_trace_view_join(&c->view, c->trace, i, &c->maker[i], &c->waiting[i], error);
        if (!code) code = check_bytes(c, i, error);
        if (code) return code;
    }
    return PC_OK;
}

static pc_code write_stage(chakra *c, const pc_run_row *row, pc_error *error) {
    const int64_t *offsets = c->view.schedule.offsets;
    int64_t *receive = pc_alloc((size_t)c->trace->pass_count, sizeof *receive);
    if (!receive) return pc_error_no_memory(error);
    for (int64_t i = 0; i < c->trace->transfer_count; i++) receive[c->waiting[i]] = i + 1;
    add_metadata(c, row);
    for (int64_t i = 0; i < c->trace->transfer_count; i++)
        if (c->trace->transfer_to[i] == c->stage) add_transfer(c, i, false);
    for (int64_t i = offsets[c->stage]; i < offsets[c->stage + 1]; i++) add_pass(c, i, receive[i] - 1);
    for (int64_t i = 0; i < c->trace->transfer_count; i++)
        if (c->trace->transfer_from[i] == c->stage) add_transfer(c, i, true);
    pc_free(receive);
    return pc_outlet_end(&c->out, error);
}

pc_code pc_export_chakra(const pc_run_row *row, const pc_trace_record *record, int stage, int64_t message_bytes,
                         FILE *stream, pc_error *error) {
    chakra c = {.record = record,
                .trace = &record->replay.trace,
                .stage = stage,
                .message_bytes = message_bytes,
                .out = {.stream = stream}};
    pc_code code = pc_trace_view_make(record, &c.view, error);
    if (code) return code;
    code = find_sizes(&c, error);
    if (!code) code = join_transfers(&c, error);
    if (!code) code = write_stage(&c, row, error);
    pc_free(c.maker);
    pc_free(c.waiting);
    pc_free(c.sent_bytes);
    pc_free(c.received_bytes);
    pc_text_free(&c.node);
    pc_text_free(&c.part);
    pc_trace_view_free(&c.view);
    return code;
}
