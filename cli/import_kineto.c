/* pipecast import kineto: traces of PyTorch's profiler, as times of passes. */
#include "cli/cli.h"
#include "cli/import.h"

#include "calib/trace/kineto.h"
#include "calib/trace/traced_run.h"
#include "engine/alloc.h"
#include "scenarios/pass_times_file.h"

#include <inttypes.h>
#include <stdio.h>

static void free_traces(pc_rank_trace *traces, int count) {
    for (int i = 0; traces && i < count; i++) pc_rank_trace_free(&traces[i]);
    pc_free(traces);
}

static pc_code read_timeline(const import_request *r, pc_traced_run *timeline, pc_error *error) {
    const pc_traced_run_request request = {
        .devices = r->devices > 0 ? r->devices : 0, .placement = r->placement, .skip = r->skip > 0 ? r->skip : 0};
    pc_rank_trace *traces = pc_alloc((size_t)r->path_count, sizeof *traces);
    pc_code code = traces ? PC_OK : pc_error_no_memory(error);
    for (int i = 0; i < r->path_count && !code; i++) code = pc_kineto_read(r->paths[i], &traces[i], error);
    if (!code) code = pc_traced_run_make(traces, r->path_count, &request, timeline, error);
    free_traces(traces, r->path_count);
    return code;
}

/* What is not there. */
static void say(const import_request *r, const pc_traced_run *timeline) {
    if (r->is_quiet) return;
    if (timeline->devices > 1 && timeline->message_count == 0)
        say_warning(NULL, "no sends and receives between these ranks: the file says no time of a transfer");
    if (!timeline->has_memory)
        say_warning(NULL, "no allocations (profile_memory=True): the file does not say what passes hold");
}

pc_code import_kineto(const import_request *r, pc_text *text, pc_error *error) {
    char source[256];
    pc_traced_run timeline = {.passes = NULL};
    pc_pass_times times = {.parts = NULL};
    pc_code code = read_timeline(r, &timeline, error);
    if (!code) code = pc_traced_run_measure(&timeline, &times, error);
    if (!code) {
        snprintf(source, sizeof source,
                 "pipecast import kineto: %d trace%s, %d iteration%s of %d microbatch%s; passes scatter by %.1f%%",
                 r->path_count, r->path_count > 1 ? "s" : "", timeline.iterations, timeline.iterations > 1 ? "s" : "",
                 timeline.microbatches, timeline.microbatches > 1 ? "es" : "", 100 * pc_pass_times_scatter(&times));
        pc_pass_times_write(&times, source, text);
        say(r, &timeline);
    }
    pc_traced_run_free(&timeline);
    pc_pass_times_free(&times);
    return code;
}
