/* Times that are a file: passes that were measured, in milliseconds and GiB. */
#include "results/schedule/schedule_private.h"

#include "engine/alloc.h"
#include "engine/numbers.h"
#include "scenarios/pass_times_file.h"
#include "scenarios/units.h"

#include <math.h>
#include <string.h>

/* What the file says already. */
static pc_code refuse_twice(const pc_schedule_request *r, pc_error *error) {
    static const char known[] = "stands beside a file of measured passes; expected it in the file, or no such option";
    if (r->units.comm > 0.0) return pc_schedule_refuse(r, PC_ASK_COMM, error, known);
    if (r->units.release_b > 0.0) return pc_schedule_refuse(r, PC_ASK_RELEASE_B, error, known);
    if (!r->slice_times && !r->slices) return PC_OK;
    return pc_schedule_refuse(r, PC_ASK_SLICES, error,
                              "measured passes are of whole microbatches; expected it in the file, or no such option");
}

/* Every word is a size, whatever becomes of it. */
static pc_code check_limits(const pc_schedule_request *r, pc_error *error) {
    char *copy = pc_schedule_counts_bytes(r) && r->memory_limit ? pc_strdup(r->memory_limit) : NULL, *rest = copy;
    pc_code code = PC_OK;
    double limit;
    for (char *word; !code && (word = strsep(&rest, ","));) code = pc_schedule_read_size(r, word, 0, &limit, error);
    pc_free(copy);
    return code;
}

pc_code pc_schedule_take_measured(pc_schedule_request *r, pc_error *error) {
    pc_code code = refuse_twice(r, error);
    if (!code) code = pc_pass_times_read(r->times_file, &r->measured, error);
    if (!code) code = check_limits(r, error);
    if (code) return code;
    if (r->devices == 0) r->devices = r->measured.devices;
    bool wants_scatter = r->robust || r->samples >= 0;
    if (wants_scatter && !pc_scatter_varies(&r->scatter)) r->scatter.jitter = pc_pass_times_scatter(&r->measured);
    return PC_OK;
}

bool pc_schedule_counts_bytes(const pc_schedule_request *r) {
    return r->times_file && pc_pass_times_have_activations(&r->measured);
}

pc_code pc_schedule_read_size(const pc_schedule_request *r, const char *word, int device, double *limit,
                              pc_error *error) {
    int64_t bytes, held = r->measured.held_bytes[device];
    if (pc_parse_size(word, &bytes, error)) {
        pc_error_set_key(error, pc_schedule_option_name(r, PC_ASK_MEMORY_LIMIT));
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
static void fill_memory(const pc_unit_shape *shape, pc_schedule_answer *a) {
    const pc_schedule_request *r = &a->request;
    pc_costs *costs = &a->costs;
    bool is_known = pc_schedule_counts_bytes(r);
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

pc_code pc_schedule_prepare_measured(const pc_unit_shape *shape, pc_schedule_answer *a, pc_error *error) {
    const pc_schedule_request *r = &a->request;
    pc_code code = pc_pass_times_suit(&r->measured, shape->devices, shape->chunks, shape->placement, error);
    if (!code && shape->barriers != PC_BARRIERS_NONE)
        code = pc_error_set(error, PC_ERROR_INPUT, "measured passes have no S and T; expected a schedule without them");
    if (code) return pc_error_place(error, r->times_file, 0, ""), code;
    code = pc_costs_create(shape->devices, shape->chunks, &a->costs, error);
    if (!code) code = pc_pass_times_fill(&r->measured, shape->placement, &a->costs, error);
    a->report.time_unit = "ms";
    a->report.time_unit_ps = 1e9;
    if (!code) fill_memory(shape, a);
    return code;
}
