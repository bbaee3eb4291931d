/* Traces of PyTorch's profiler: what names of passes mean, what is read of a trace, and ranks put on one clock. Whole
 * traces, as long as they come, are read in tests/golden/test_import_kineto.py. */
#include "calib/trace/kineto.h"
#include "calib/trace/traced_run.h"
#include "engine/alloc.h"
#include "tests/support.h"

#include <unistd.h>

static void check_name(const char *text, pc_traced_kind kind, int microbatch, int chunk, bool has_part) {
    pc_traced_name name;
    assert_true(pc_traced_name_parse(text, &name));
    assert_int_equal(name.kind, kind);
    assert_int_equal(name.microbatch, microbatch);
    assert_int_equal(name.chunk, chunk);
    assert_int_equal(name.has_part, has_part);
}

static void test_names(void **state) {
    (void)state;
    check_name("F0", PC_TRACED_F, 0, 0, false);
    check_name("b12", PC_TRACED_B, 12, 1, false);
    check_name("W3.2", PC_TRACED_W, 3, 2, false);
    check_name("BW7", PC_TRACED_WHOLE, 7, 0, false);
    check_name("R1", PC_TRACED_R, 1, 0, false);
    check_name("PP:5F3", PC_TRACED_F, 3, 5, true);
    check_name("PP:5I3", PC_TRACED_INPUT, 3, 5, true);
    check_name("PP:5B3", PC_TRACED_WHOLE, 3, 5, true);
    check_name("PP:15W30", PC_TRACED_W, 30, 15, true);
    check_name("Forward 4", PC_TRACED_F, 4, 0, false);
    check_name("Backward 4", PC_TRACED_WHOLE, 4, 0, false);
    static const char *const others[] = {"",        "F",          "Fx",    "F0.",     "f0.1",   "F0.1.2",
                                         "F 0",     "PP:",        "PP:F0", "PP:1F",   "PP:1X0", "PP:0SEND_F1",
                                         "Forward", "F123456789", "B-1",   "aten::mm"};
    pc_traced_name name;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) assert_false(pc_traced_name_parse(others[i], &name));
}

/* ---- one trace ---- */

static pc_code read_text(const char *text, pc_rank_trace *trace, pc_error *error) {
    char path[256];
    test_temporary(path, sizeof path, "kineto");
    int descriptor = mkstemp(path);
    assert_true(descriptor >= 0);
    assert_int_equal(write(descriptor, text, strlen(text)), (ssize_t)strlen(text));
    close(descriptor);
    pc_code code = pc_kineto_read(path, trace, error);
    unlink(path);
    return code;
}

#define EVENT(cat, name, tid, ts, dur)                                                                                 \
    "{\"ph\":\"X\",\"cat\":\"" cat "\",\"name\":\"" name "\",\"pid\":0,\"tid\":" tid ",\"ts\":" ts ",\"dur\":" dur     \
    ",\"args\":{"

/* clang-format off */
static const char whole_trace[] =
    "{\"schemaVersion\":1,\"distributedInfo\":{\"backend\":\"nccl\",\"rank\":3},\"traceEvents\":["
    EVENT("gpu_user_annotation", "F0", "20", "1727890914000900.000", "90.5") "}},"
    EVENT("gpu_user_annotation", "F0", "7", "1727890914001000.125", "10.250") "\"External id\":3}},"
    EVENT("user_annotation", "F0", "99", "1727890914000000.000", "1") "}},"
    EVENT("gpu_user_annotation", "F0", "7", "1727890914002000.125", "11") "}},"
    EVENT("kernel", "gemm", "7", "1727890914001000.125", "9") "\"est. achieved occupancy %\":NaN}},"
    EVENT("kernel", "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)", "20", "1727890914001000.125", "900")
    "\"Collective name\":\"send\",\"In msg nelems\":1024,\"dtype\":\"BFloat16\",\"Process Group Ranks\":\"[3, 4]\"}},"
    EVENT("kernel", "ncclDevKernel_SendRecv", "20", "5e2", "1")
    "\"Collective name\":\"recv\",\"In msg nelems\":1024,\"dtype\":\"Float\",\"Src Rank\":2}}"
    "],\"traceName\":\"x\"}";
/* clang-format on */

/* Times since 1970 to the nanosecond; passes on the stream that computes, whatever comes first. */
static void test_reading(void **state) {
    (void)state;
    pc_rank_trace trace;
    pc_error error = {0};
    assert_int_equal(read_text(whole_trace, &trace, &error), PC_OK);
    assert_int_equal(trace.rank, 3);
    assert_true(trace.is_of_device);
    assert_false(trace.has_memory);
    assert_int_equal(trace.pass_count, 2);
    assert_int_equal(trace.passes[0].start_ns, INT64_C(1727890914001000125));
    assert_int_equal(trace.passes[0].end_ns, INT64_C(1727890914001010375));
    assert_int_equal(trace.passes[1].occurrence, 1);
    assert_int_equal(trace.message_count, 2);
    assert_false(trace.messages[0].is_sent);
    assert_int_equal(trace.messages[0].peer, 2);
    assert_int_equal(trace.messages[0].start_ns, 500000);
    assert_int_equal(trace.messages[0].bytes, 4096);
    assert_true(trace.messages[1].is_sent);
    assert_int_equal(trace.messages[1].peer, 4);
    assert_int_equal(trace.messages[1].bytes, 2048);
    pc_rank_trace_free(&trace);
}

/* Of allocations on the GPU: F takes 100 and gives 30 back; what the host allocates does not count; 500 were there. */
static void test_memory(void **state) {
    (void)state;
#define MEMORY(ts, bytes, total, type)                                                                                 \
    "{\"ph\":\"i\",\"cat\":\"cpu_instant_event\",\"name\":\"[memory]\",\"pid\":1,\"tid\":1,\"ts\":" ts                 \
    ",\"args\":{\"Bytes\":" bytes ",\"Total Allocated\":" total ",\"Device Type\":" type "}}"
    static const char text[] =
        "[" MEMORY("5", "500", "500", "1") "," EVENT("user_annotation", "F0", "1", "10", "10") "}}," MEMORY(
            "12", "100", "600", "1") "," MEMORY("13", "7777", "7777",
                                                "0") "," MEMORY("20", "-30", "570",
                                                                "1") "," MEMORY("21", "9", "579",
                                                                                "1") "," EVENT("gpu_user_annotation",
                                                                                               "F0", "7", "40",
                                                                                               "5") "}}]";
    pc_rank_trace trace;
    pc_error error = {0};
    assert_int_equal(read_text(text, &trace, &error), PC_OK);
    assert_true(trace.has_memory);
    assert_int_equal(trace.rank, PC_TRACED_NO_STAGE);
    assert_int_equal(trace.held_bytes, 500);
    assert_int_equal(trace.pass_count, 1);
    assert_int_equal(trace.passes[0].start_ns, 40000);
    assert_int_equal(trace.passes[0].bytes, 70);
    pc_rank_trace_free(&trace);
}

static void check_refused(const char *text, const char *expected) {
    pc_rank_trace trace;
    pc_error error = {0};
    assert_int_equal(read_text(text, &trace, &error), PC_ERROR_INPUT);
    const char *message = strstr(error.message, ": ");
    if (strchr(error.message, ':') < message) message = strchr(error.message, ':');
    assert_non_null(strstr(error.message, expected));
    (void)message;
}

static void test_refusals(void **state) {
    (void)state;
    check_refused("", "the text ends in the middle; expected a value");
    check_refused("{\"traceEvents\": [\n{\"ph\": X}]}", ":2: X; expected a number");
    check_refused("3", "has no events; expected a trace of PyTorch's profiler");
    check_refused("{\"a\": 1}", "has no traceEvents; expected a trace");
    check_refused("{\"traceEvents\": []} 1", "expected nothing behind the value");
    check_refused("{\"traceEvents\": []}", "has no passes; expected annotations such as F0, B3.1 or PP:2F0");
    check_refused("\x1f\x8b\x08\x00\x01", "");
    pc_rank_trace trace;
    pc_error error = {0};
    assert_int_equal(pc_kineto_read("/nowhere/at/all", &trace, &error), PC_ERROR_INPUT);
    assert_int_equal(pc_kineto_read("/dev/null", &trace, &error), PC_ERROR_INPUT);
    assert_string_equal(
        error.message, "/dev/null: is no regular file; expected a trace of PyTorch's profiler (JSON, or that in gzip)");
}

/* Any refused allocation is an error, and leaves nothing behind. */
static void test_no_memory(void **state) {
    (void)state;
    static const char text[] = "[" EVENT("user_annotation", "F0", "1", "10", "10") "}}]";
    for (long after = 0;; after++) {
        pc_rank_trace trace;
        pc_alloc_fail_after(after);
        pc_code code = read_text(text, &trace, NULL);
        pc_alloc_fail_after(-1);
        if (!code) {
            pc_rank_trace_free(&trace);
            assert_true(after >= 4);
            return;
        }
        assert_int_equal(code, PC_ERROR_NO_MEMORY);
    }
}

/* ---- ranks together ---- */

enum { RANKS = 3, PASSES = 8, MESSAGES = 8 };

typedef struct made_rank {
    pc_traced_pass passes[PASSES];
    pc_traced_message messages[MESSAGES];
    pc_rank_trace trace;
} made_rank;

static void add_pass(made_rank *rank, const char *name, int64_t start_ns, int64_t end_ns) {
    pc_traced_pass *pass = &rank->passes[rank->trace.pass_count++];
    *pass = (pc_traced_pass){.start_ns = start_ns, .end_ns = end_ns};
    assert_true(pc_traced_name_parse(name, &pass->name));
    rank->trace.passes = rank->passes;
}

static void add_message(made_rank *rank, bool is_sent, int peer, int64_t start_ns, int64_t end_ns) {
    rank->messages[rank->trace.message_count++] =
        (pc_traced_message){.is_sent = is_sent, .peer = peer, .start_ns = start_ns, .end_ns = end_ns, .bytes = 64};
    rank->trace.messages = rank->messages;
}

/* Two ranks whose clocks are 1000 ns apart. F of rank 0 ends at 10, and is sent from 10 to 14; rank 1 waits for it from
 * 2 to
 * 14. Its F lasts from 14 to 24, its B to 34, which is sent to 38. On its clock all is 1000 later; both ways cancel to
 * that. */
static void test_clocks(void **state) {
    (void)state;
    made_rank ranks[2] = {{.trace.rank = 4}, {.trace.rank = 5}};
    add_pass(&ranks[0], "F0", 0, 10);
    add_pass(&ranks[0], "B0", 38, 50);
    add_message(&ranks[0], true, 5, 10, 14);
    add_message(&ranks[0], false, 5, 20, 38);
    add_pass(&ranks[1], "F0", 1014, 1024);
    add_pass(&ranks[1], "B0", 1024, 1034);
    add_message(&ranks[1], false, 4, 1002, 1014);
    add_message(&ranks[1], true, 4, 1034, 1038);
    const pc_rank_trace traces[] = {ranks[1].trace, ranks[0].trace};
    const pc_traced_run_request request = {.placement = -1};
    pc_traced_run timeline;
    assert_int_equal(pc_traced_run_make(traces, 2, &request, &timeline, NULL), PC_OK);
    assert_int_equal(timeline.devices, 2);
    assert_int_equal(timeline.most_clock_ps, 1000000);
    assert_int_equal(timeline.pass_count, 4);
    assert_int_equal(timeline.passes[2].device, 1);
    assert_int_equal(timeline.passes[2].start_ps, 14000);
    assert_int_equal(timeline.passes[3].pass.kind, PC_PASS_BW); /* no W is there */
    assert_int_equal(timeline.message_count, 2);
    assert_int_equal(timeline.messages[0].start_ps, 10000);
    assert_int_equal(timeline.messages[0].end_ps, 14000);
    assert_int_equal(timeline.messages[0].time_ps, 4000);
    assert_int_equal(timeline.messages[1].time_ps, 4000);
    pc_pass_times times;
    assert_int_equal(pc_traced_run_measure(&timeline, &times, NULL), PC_OK);
    assert_int_equal(times.transfer_ps, 4000);
    assert_int_equal(times.transfer_bytes, 64);
    assert_int_equal(pc_pass_times_at(&times, 0, 0)->time_ps[PC_PASS_BW], 12000);
    pc_pass_times_free(&times);
    pc_traced_run_free(&timeline);
}

/* Parts 0 and 3 on one rank, 1 and 2 on the other: a V. And ranks of the same part are replicas. */
static void test_parts(void **state) {
    (void)state;
    made_rank ranks[3] = {{.trace.rank = 0}, {.trace.rank = 1}, {.trace.rank = 2}};
    add_pass(&ranks[0], "PP:0F0", 0, 10);
    add_pass(&ranks[0], "PP:3F0", 30, 40);
    add_pass(&ranks[1], "PP:1F0", 10, 20);
    add_pass(&ranks[1], "PP:2F0", 20, 30);
    const pc_rank_trace traces[] = {ranks[0].trace, ranks[1].trace};
    const pc_traced_run_request request = {.placement = -1}, interleaved = {.placement = PC_PLACEMENT_INTERLEAVED};
    pc_traced_run timeline;
    pc_error error;
    assert_int_equal(pc_traced_run_make(traces, 2, &request, &timeline, NULL), PC_OK);
    assert_int_equal(timeline.placement, PC_PLACEMENT_V);
    assert_int_equal(timeline.passes[1].pass.chunk, 1);
    pc_traced_run_free(&timeline);
    assert_int_equal(pc_traced_run_make(traces, 2, &interleaved, &timeline, &error), PC_ERROR_INPUT);
    add_pass(&ranks[2], "PP:1F0", 11, 23);
    add_pass(&ranks[2], "PP:2F0", 23, 33);
    const pc_rank_trace uneven[] = {ranks[0].trace, ranks[1].trace, ranks[2].trace};
    assert_int_equal(pc_traced_run_make(uneven, 3, &request, &timeline, &error), PC_ERROR_INPUT);
    assert_string_equal(error.message, "3 traces for 2 devices; expected one a device, or as many of every device");
}

/* Of four traces for two devices each stage has two: the means are over both. */
static void test_replicas(void **state) {
    (void)state;
    made_rank ranks[4] = {{.trace.rank = 0}, {.trace.rank = 1}, {.trace.rank = 2}, {.trace.rank = 3}};
    pc_rank_trace traces[4];
    for (int i = 0; i < 4; i++) {
        add_pass(&ranks[i], "F0", 100 * i, 100 * i + 10 + i);
        traces[i] = ranks[i].trace;
    }
    const pc_traced_run_request request = {.devices = 2, .placement = -1};
    pc_traced_run timeline;
    pc_pass_times times;
    assert_int_equal(pc_traced_run_make(traces, 4, &request, &timeline, NULL), PC_OK);
    assert_int_equal(timeline.replicas, 2);
    assert_int_equal(pc_traced_run_measure(&timeline, &times, NULL), PC_OK);
    assert_int_equal(pc_pass_times_at(&times, 0, 0)->time_ps[PC_PASS_F], 10500);
    assert_int_equal(pc_pass_times_at(&times, 1, 0)->time_ps[PC_PASS_F], 12500);
    pc_pass_times_free(&times);
    pc_traced_run_free(&timeline);
}

/* One of the two iterations is skipped; of three there are none. */
static void test_skip(void **state) {
    (void)state;
    made_rank rank = {.trace.rank = 0};
    add_pass(&rank, "F0", 0, 1000);
    add_pass(&rank, "F0", 2000, 2010);
    rank.passes[1].occurrence = 1;
    pc_traced_run_request request = {.placement = -1, .skip = 1};
    pc_traced_run timeline;
    pc_error error;
    assert_int_equal(pc_traced_run_make(&rank.trace, 1, &request, &timeline, NULL), PC_OK);
    assert_int_equal(timeline.pass_count, 1);
    assert_int_equal(timeline.passes[0].end_ps - timeline.passes[0].start_ps, 10000);
    pc_traced_run_free(&timeline);
    request.skip = 2;
    assert_int_equal(pc_traced_run_make(&rank.trace, 1, &request, &timeline, &error), PC_ERROR_INPUT);
    assert_string_equal(error.message, "no more than 2 iterations; expected more than are skipped");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),    cmocka_unit_test(test_reading),   cmocka_unit_test(test_memory),
        cmocka_unit_test(test_refusals), cmocka_unit_test(test_no_memory), cmocka_unit_test(test_clocks),
        cmocka_unit_test(test_parts),    cmocka_unit_test(test_replicas),  cmocka_unit_test(test_skip)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
