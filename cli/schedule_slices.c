/* --slices and --slice-times of `pipecast schedule`: how a microbatch is cut along its sequence. */
#include "cli/cli.h"
#include "cli/schedule_answer.h"
#include "engine/alloc.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static pc_code refuse_whole(const schedule_request *r, pc_error *error) {
    return pc_error_set(error, PC_ERROR_INPUT,
                        "%s: %s has whole microbatches; expected it with seq-1f1b or another seq-...",
                        r->slices ? "--slices" : "--slice-times", r->name);
}

static pc_code refuse_times(const char *text, int64_t slices, pc_error *error) {
    return pc_error_set(error, PC_ERROR_INPUT,
                        "--slice-times: '%s'; expected %" PRId64
                        " numbers above zero, one a slice, such as 1,1.2,1.4,1.6 of four",
                        text, slices);
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

static pc_code read_times(schedule_request *r, int64_t slices, pc_error *error) {
    char *copy = strdup(r->slice_times);
    pc_free(r->slice_shares);
    r->slice_shares = pc_alloc((size_t)slices, sizeof *r->slice_shares);
    pc_code code = copy && r->slice_shares ? PC_OK : pc_error_no_memory(error);
    if (!code && !read_numbers(copy, slices, r->slice_shares)) code = refuse_times(r->slice_times, slices, error);
    free(copy);
    r->units.slice_times = r->slice_shares;
    return code;
}

/* -v are the parts of a stage, each of which has all slices. */
static pc_code take_parts(schedule_request *r, const pc_generator *generator, pc_error *error) {
    if (r->slices == 0) r->slices = pc_generator_slices(generator, 0, 0);
    r->chunks = r->chunks ? r->chunks * r->slices : pc_generator_chunks(generator, 0, r->slices);
    if (r->chunks > PC_CHUNKS_MAX)
        return pc_error_set(error, PC_ERROR_INPUT,
                            "--slices: %" PRId64 " of each of %" PRId64
                            " chunks a device; expected at most %d of all together",
                            r->slices, r->chunks / r->slices, PC_CHUNKS_MAX);
    return r->slice_times ? read_times(r, r->slices, error) : PC_OK;
}

pc_code take_slices(schedule_request *r, const pc_generator *generator, pc_error *error) {
    bool has_slices = generator && pc_placement_has_slices(generator->placement);
    if (!has_slices) return r->slices || r->slice_times ? refuse_whole(r, error) : PC_OK;
    if (pc_generator_has_sliced_parts(generator)) return take_parts(r, generator, error);
    if (r->chunks)
        return pc_error_set(
            error, PC_ERROR_INPUT,
            "-v: %s cuts microbatches into slices, and has one chunk a device; expected --slices %" PRId64, r->name,
            r->chunks);
    r->chunks = r->slices ? r->slices : generator->chunks_default;
    return r->slice_times ? read_times(r, r->chunks, error) : PC_OK;
}
