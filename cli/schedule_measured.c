/* --times FILE of `pipecast schedule`: passes that were measured, in milliseconds and GiB. */
#include "cli/schedule_answer.h"

#include "engine/numbers.h"
#include "models/workload/activation_memory.h"
#include "scenarios/pass_times_file.h"
#include "scenarios/units.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What the file says already. */
static pc_code refuse_twice(const schedule_request *r, pc_error *error) {
    const char *option = r->units.comm > 0.0           ? "--comm: stands beside a file of measured passes"
                         : r->units.release_b > 0.0    ? "--release-b: stands beside a file of measured passes"
                         : r->slice_times || r->slices ? "--slices: measured passes are of whole microbatches"
                                                       : NULL;
    return option ? pc_error_set(error, PC_ERROR_INPUT, "%s; expected it in the file, or no such option", option)
                  : PC_OK;
}

/* Every word is a size, whatever becomes of it. */
static pc_code check_limits(const schedule_request *r, pc_error *error) {
    char *copy = counts_bytes(r) && r->memory_limit ? strdup(r->memory_limit) : NULL, *rest = copy;
    pc_code code = PC_OK;
    double limit;
    for (char *word; !code && (word = strsep(&rest, ","));) code = read_size_limit(r, word, 0, &limit, error);
    free(copy);
    return code;
}

pc_code take_measured(schedule_request *r, pc_error *error) {
    pc_code code = refuse_twice(r, error);
    if (!code) code = pc_pass_times_read(r->times_file, &r->measured, error);
    if (!code) code = check_limits(r, error);
    if (code) return code;
    if (r->devices == 0) r->devices = r->measured.devices;
    bool wants_scatter = r->robust || r->samples >= 0;
    if (wants_scatter && !pc_scatter_varies(&r->scatter)) r->scatter.jitter = pc_pass_times_scatter(&r->measured);
    return PC_OK;
}

bool counts_bytes(const schedule_request *r) {
    return r->times_file && pc_pass_times_have_activations(&r->measured);
}

pc_code read_size_limit(const schedule_request *r, const char *word, int device, double *limit, pc_error *error) {
    int64_t bytes, held = r->measured.held_bytes[device];
    if (pc_parse_size(word, &bytes, error)) {
        pc_error_prefix(error, "--memory-limit");
        return PC_ERROR_INPUT;
    }
    *limit = (double)(bytes - (held == PC_BYTES_NOT_GIVEN ? 0 : held)) / (double)PC_BYTES_PER_GIB;
    return PC_OK;
}

static bool has_held(const pc_pass_times *measured) {
    for (int d = 0; d < measured->devices; d++)
        if (measured->held_bytes[d] != PC_BYTES_NOT_GIVEN) return true;
    return false;
}

/* Where nobody says what F takes every chunk takes one, as without a file. */
static void fill_memory(const schedule_request *r, const pc_unit_shape *shape, answer *a) {
    pc_costs *costs = &a->costs;
    bool is_known = counts_bytes(r);
    for (int64_t i = 0; i < (int64_t)costs->devices * costs->chunks; i++) {
        if (!is_known) costs->activation_bytes[i] = PC_UNIT_CHUNK_BYTES;
        costs->activation_kept_bytes[i] = llround(r->units.keep * (double)costs->activation_bytes[i]);
    }
    a->report.microbatch_bytes =
        is_known ? (double)PC_BYTES_PER_GIB
                 : (double)PC_UNIT_CHUNK_BYTES * pc_placement_visited(shape->placement, shape->chunks);
    a->report.memory_unit = is_known ? "GiB" : NULL;
    a->report.held_bytes = is_known && has_held(&r->measured) ? r->measured.held_bytes : NULL;
}

pc_code prepare_measured(const schedule_request *r, const pc_unit_shape *shape, answer *a, pc_error *error) {
    pc_code code = pc_pass_times_suit(&r->measured, shape->devices, shape->chunks, shape->placement, error);
    if (!code && shape->barriers != PC_BARRIERS_NONE)
        code = pc_error_set(error, PC_ERROR_INPUT, "measured passes have no S and T; expected a schedule without them");
    if (code) return pc_error_place(error, r->times_file, 0, ""), code;
    code = pc_costs_create(shape->devices, shape->chunks, &a->costs, error);
    if (!code) code = pc_pass_times_fill(&r->measured, shape->placement, &a->costs, error);
    a->report.time_unit = "ms";
    a->report.time_unit_ps = 1e9;
    if (!code) fill_memory(r, shape, a);
    return code;
}
