/* pipecast import kineto: traces of PyTorch's profiler, as times of passes. */
#include "cli/cli.h"
#include "cli/import.h"

#include "calib/trace/kineto.h"
#include "calib/trace/traced_run.h"
#include "engine/alloc.h"
#include "scenarios/pass_times_file.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

enum { RANKS_SHOWN = 8 };

typedef struct reading {
    const import_request *request;
    pc_rank_trace *traces; /* one a path */
    pc_traced_run timeline;
    pc_pass_times times;
    pc_text source; /* the file's own line about itself, with what there is to say of the traces */
} reading;

static void free_reading(reading *x) {
    for (int i = 0; x->traces && i < x->request->path_count; i++) pc_rank_trace_free(&x->traces[i]);
    pc_free(x->traces);
    pc_traced_run_free(&x->timeline);
    pc_pass_times_free(&x->times);
    pc_text_free(&x->source);
}

static pc_code read_timeline(reading *x, pc_error *error) {
    const import_request *r = x->request;
    const pc_traced_run_request request = {
        .devices = r->devices > 0 ? r->devices : 0, .placement = r->placement, .skip = r->skip > 0 ? r->skip : 0};
    x->traces = pc_alloc((size_t)r->path_count, sizeof *x->traces);
    pc_code code = x->traces ? PC_OK : pc_error_no_memory(error);
    for (int i = 0; i < r->path_count && !code; i++) code = pc_kineto_read(r->paths[i], &x->traces[i], error);
    return code ? code : pc_traced_run_make(x->traces, r->path_count, &request, &x->timeline, error);
}

/* ---- what is wrong with the traces, which still make a file ---- */

/* To standard error and into the file. */
static void note(reading *x, const char *format, ...) PC_PRINTF(2, 3);

static void note(reading *x, const char *format, ...) {
    char text[512];
    va_list values;
    va_start(values, format);
    vsnprintf(text, sizeof text, format, values);
    va_end(values);
    if (!x->request->is_quiet) say_warning(NULL, text);
    pc_text_printf(&x->source, "; %s", text);
}

static bool is_given(const reading *x, int64_t rank) {
    for (int i = 0; i < x->request->path_count; i++)
        if (x->traces[i].rank == rank) return true;
    return false;
}

/* Ranks of the run that no trace is of; those that are there are stages in their order. */
static void note_missing_ranks(reading *x) {
    int64_t world = 0, missing = 0;
    size_t used = 0;
    char names[256] = "";
    for (int i = 0; i < x->request->path_count; i++) {
        if (x->traces[i].rank < 0) return; /* which rank is which nobody knows */
        if (x->traces[i].world_size > world) world = x->traces[i].world_size;
    }
    for (int64_t rank = 0; rank < world; rank++) {
        if (missing > RANKS_SHOWN) break;
        if (is_given(x, rank) || missing++ >= RANKS_SHOWN) continue;
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%" PRId64, used ? ", " : "", rank);
    }
    if (missing > 0)
        note(x, "no trace of rank%s %s%s of %" PRId64 " ranks: those given are taken as all stages",
             missing > 1 ? "s" : "", names, missing > RANKS_SHOWN ? " and others" : "", world);
}

static void note_bad_events(reading *x) {
    int64_t bad = 0, ranks = 0;
    for (int i = 0; i < x->request->path_count; i++) {
        bad += x->traces[i].bad_passes;
        ranks += x->traces[i].has_bad_rank;
    }
    if (bad > 0)
        note(x, "%" PRId64 " pass%s without a time or with a negative one: left out", bad, bad > 1 ? "es" : "");
    if (ranks > 0)
        note(x, "%" PRId64 " trace%s with a rank that is none: placed in the order of the files", ranks,
             ranks > 1 ? "s" : "");
}

/* Of the first stage that has fewer passes than whole iterations have. */
static void note_cut_iterations(reading *x) {
    const pc_traced_run *t = &x->timeline;
    int64_t whole = (int64_t)t->iterations * t->microbatches * t->chunks * t->replicas;
    for (int device = 0; device < t->devices; device++) {
        int64_t forward = 0, backward = 0;
        for (int64_t i = 0; i < t->pass_count; i++) {
            if (t->passes[i].device != device) continue;
            forward += t->passes[i].pass.kind == PC_PASS_F;
            backward += t->passes[i].pass.kind == PC_PASS_B || t->passes[i].pass.kind == PC_PASS_BW;
        }
        if (forward >= whole && backward >= whole) continue;
        note(x,
             "stage %d has %" PRId64 " of %" PRId64 " forward passes and %" PRId64 " of %" PRId64
             " backward passes: not all iterations are whole",
             device, forward, whole, backward, whole);
        return;
    }
}

/* What is not there. */
static void say(const reading *x) {
    bool has_allocations = true;
    if (x->request->is_quiet) return;
    for (int i = 0; i < x->request->path_count; i++) has_allocations = has_allocations && x->traces[i].has_allocations;
    if (x->timeline.devices > 1 && x->timeline.message_count == 0)
        say_warning(NULL, "no sends and receives between these ranks: the file says no time of a transfer");
    if (!x->timeline.has_memory)
        say_warning(NULL, has_allocations ? "allocations, but no passes of the host (user_annotation), which would say "
                                            "whose they are: the file does not say what passes hold"
                                          : "no allocations (profile_memory=True): the file does not say what passes "
                                            "hold");
}

static void write(reading *x, pc_text *text) {
    const pc_traced_run *t = &x->timeline;
    int traces = x->request->path_count;
    pc_text_printf(&x->source,
                   "pipecast import kineto: %d trace%s, %d iteration%s of %d microbatch%s; passes scatter by %.1f%%",
                   traces, traces > 1 ? "s" : "", t->iterations, t->iterations > 1 ? "s" : "", t->microbatches,
                   t->microbatches > 1 ? "es" : "", 100 * pc_pass_times_scatter(&x->times));
    note_missing_ranks(x);
    note_bad_events(x);
    note_cut_iterations(x);
    if (x->source.failed)
        text->failed = true;
    else
        pc_pass_times_write(&x->times, x->source.data, text);
    say(x);
}

pc_code import_kineto(const import_request *r, pc_text *text, pc_error *error) {
    reading x = {.request = r};
    pc_code code = read_timeline(&x, error);
    if (!code) code = pc_traced_run_measure(&x.timeline, &x.times, error);
    if (!code) write(&x, text);
    free_reading(&x);
    return code;
}
