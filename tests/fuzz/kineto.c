/* Fuzz target: traces of PyTorch's profiler (calib/trace/kineto.h). What is read is in order and in range. As the trace
 * of one rank, and as that of two, it makes a run or is refused. The times of a run read back as they were written. The
 * file is the input; gzip is zlib's. */
#include "calib/trace/kineto.h"
#include "calib/trace/traced_run.h"
#include "scenarios/pass_times_file.h"
#include "storage/gz_file.h"
#include "tests/fuzz/fuzz.h"

#include <string.h>

static const uint8_t *next, *first;
static size_t left, all;

pc_code __wrap_pc_gz_open(const char *path, const char *expected, pc_gz_file **file, pc_error *error);
pc_code __wrap_pc_gz_open(const char *path, const char *expected, pc_gz_file **file, pc_error *error) {
    (void)path, (void)expected, (void)error;
    *file = NULL;
    return PC_OK;
}
void __wrap_pc_gz_close(pc_gz_file *file);
void __wrap_pc_gz_close(pc_gz_file *file) {
    (void)file;
}
pc_code __wrap_pc_gz_rewind(pc_gz_file *file, pc_error *error);
pc_code __wrap_pc_gz_rewind(pc_gz_file *file, pc_error *error) {
    (void)file, (void)error;
    next = first;
    left = all;
    return PC_OK;
}
/* In pieces, so that tokens are cut everywhere. */
int64_t __wrap_pc_gz_read(void *file, char *bytes, size_t size, pc_error *error);
int64_t __wrap_pc_gz_read(void *file, char *bytes, size_t size, pc_error *error) {
    enum { PIECE = 61 };
    size_t count = left < PIECE ? left : PIECE;
    (void)file, (void)error;
    if (count > size) count = size;
    memcpy(bytes, next, count);
    next += count;
    left -= count;
    return (int64_t)count;
}

static void check_trace(const pc_rank_trace *trace) {
    fuzz_require(trace->pass_count > 0, "a trace has passes");
    for (int64_t i = 0; i < trace->pass_count; i++) {
        const pc_traced_pass *pass = &trace->passes[i];
        fuzz_require(pass->start_ns >= 0 && pass->start_ns <= pass->end_ns, "a pass ends after it starts");
        fuzz_require(i == 0 || pass[-1].start_ns <= pass->start_ns, "passes come in their order");
        fuzz_require(pass->name.microbatch >= 0 && pass->name.chunk >= 0 && pass->occurrence >= 0,
                     "a name has numbers");
    }
    for (int64_t i = 0; i < trace->message_count; i++)
        fuzz_require(trace->messages[i].peer >= 0 && trace->messages[i].bytes >= 0, "a message has another end");
}

static void check_written(const pc_traced_run *timeline) {
    pc_error error = {0};
    pc_pass_times times, again;
    pc_text text = {.data = NULL};
    pc_code code = pc_traced_run_measure(timeline, &times, &error);
    fuzz_require(!code, "a timeline has times");
    pc_pass_times_write(&times, "fuzz", &text);
    code = pc_pass_times_read_text("fuzz", text.data, false, &again, &error);
    fuzz_check_error(code, &error); /* F may be missing */
    if (!code) {
        fuzz_require(again.devices == times.devices && again.chunks == times.chunks, "a file has the times' shape");
        fuzz_require(again.parts[0].time_ps[0] == times.parts[0].time_ps[0], "a file has the times");
        pc_pass_times_free(&again);
    }
    pc_pass_times_free(&times);
    pc_text_free(&text);
}

static void check_timeline(const pc_rank_trace *traces, int count) {
    const pc_traced_run_request request = {.placement = -1};
    pc_error error = {0};
    pc_traced_run timeline;
    pc_code code = pc_traced_run_make(traces, count, &request, &timeline, &error);
    fuzz_check_error(code, &error);
    if (code) return;
    for (int64_t i = 0; i < timeline.pass_count; i++)
        fuzz_require(timeline.passes[i].start_ps >= 0, "no pass begins before the first");
    check_written(&timeline);
    pc_traced_run_free(&timeline);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    pc_error error = {0};
    pc_rank_trace trace;
    first = next = data;
    all = left = size;
    pc_code code = pc_kineto_read("trace.json", &trace, &error);
    fuzz_check_error(code, &error);
    if (code) return 0;
    check_trace(&trace);
    pc_rank_trace two[2] = {trace, trace};
    two[0].rank = trace.message_count ? trace.messages[0].peer : 0; /* so that what one sends the other receives */
    two[1].rank = two[0].rank + 1;
    check_timeline(&trace, 1);
    check_timeline(two, 2);
    pc_rank_trace_free(&trace);
    return 0;
}
