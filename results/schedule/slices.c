/* Slices: how a microbatch is cut along its sequence. */
#include "results/schedule/schedule_private.h"

#include "engine/alloc.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static pc_code refuse_whole(const pc_schedule_request *r, pc_error *error) {
    return pc_schedule_refuse(r, r->slices ? PC_ASK_SLICES : PC_ASK_SLICE_TIMES, error,
                              "%s has whole microbatches; expected it with seq-1f1b or another seq-...", r->name);
}

static pc_code refuse_times(const pc_schedule_request *r, int64_t slices, pc_error *error) {
    return pc_schedule_refuse(r, PC_ASK_SLICE_TIMES, error,
                              "'%s'; expected %" PRId64
                              " numbers above zero, one a slice, such as 1,1.2,1.4,1.6 of four",
                              r->slice_times, slices);
}

static bool read_number(const char *word, double *number) {
    char *end;
    *number = word ? strtod(word, &end) : 0.0;
    return word && *word && *end == '\0' && isfinite(*number) && *number > 0.0 && *number <= 1e9;
}

/* So many numbers; `rest` is cut. */
static bool read_numbers(char *rest, int64_t count, double *numbers) {
    for (int64_t i = 0; i < count; i++)
        if (!read_number(strsep(&rest, ","), &numbers[i])) return false;
    return !rest;
}

static pc_code read_times(pc_schedule_answer *a, int64_t slices, pc_error *error) {
    pc_schedule_request *r = &a->request;
    char *copy = pc_strdup(r->slice_times);
    a->slice_shares = pc_alloc((size_t)slices, sizeof *a->slice_shares);
    pc_code code = copy && a->slice_shares ? PC_OK : pc_error_no_memory(error);
    if (!code && !read_numbers(copy, slices, a->slice_shares)) code = refuse_times(r, slices, error);
    pc_free(copy);
    r->units.slice_times = a->slice_shares;
    return code;
}

/* The chunks that are asked for are the parts of a stage, each of which has all slices. */
static pc_code take_parts(pc_schedule_answer *a, const pc_generator *generator, pc_error *error) {
    pc_schedule_request *r = &a->request;
    if (r->slices == 0) r->slices = pc_generator_slices(generator, 0, 0);
    r->chunks = r->chunks ? r->chunks * r->slices : pc_generator_chunks(generator, 0, r->slices);
    if (r->chunks > PC_CHUNKS_MAX)
        return pc_schedule_refuse(r, PC_ASK_SLICES, error,
                                  "%" PRId64 " of each of %" PRId64
                                  " chunks a device; expected at most %d of all together",
                                  r->slices, r->chunks / r->slices, PC_CHUNKS_MAX);
    return r->slice_times ? read_times(a, r->slices, error) : PC_OK;
}

pc_code pc_schedule_take_slices(pc_schedule_answer *a, const pc_generator *generator, pc_error *error) {
    pc_schedule_request *r = &a->request;
    bool has_slices = generator && pc_placement_has_slices(generator->placement);
    if (!has_slices) return r->slices || r->slice_times ? refuse_whole(r, error) : PC_OK;
    if (pc_generator_has_sliced_parts(generator)) return take_parts(a, generator, error);
    if (r->chunks)
        return pc_schedule_refuse(r, PC_ASK_CHUNKS, error,
                                  "%s cuts microbatches into slices, and has one chunk a device; expected %s %" PRId64,
                                  r->name, pc_schedule_option_name(r, PC_ASK_SLICES), r->chunks);
    r->chunks = r->slices ? r->slices : generator->chunks_default;
    return r->slice_times ? read_times(a, r->chunks, error) : PC_OK;
}
