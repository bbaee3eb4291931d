#include "models/schedule/least_span.h"

#include "engine/alloc.h"
#include "engine/numbers.h"
#include "models/schedule/generate_private.h"
#include "models/schedule/search/bound.h"
#include "models/schedule/search/instance.h"
#include "models/schedule/slices_bound.h"

void pc_least_span_limits(const pc_generator *generator, const pc_generate_request *request, const pc_replay *replay,
                          int64_t *limit_bytes) {
    bool is_named = generator && generator->searches && !generator->given;
    if (is_named) pc_searched_limits(generator, request, limit_bytes);
    for (int d = 0; d < replay->devices; d++) {
        int64_t asked = pc_memory_limit_of(request->memory_limit, d), held = replay->device_peak_bytes[d];
        if (!is_named) limit_bytes[d] = PC_NO_LIMIT;
        if (asked < limit_bytes[d]) limit_bytes[d] = asked;
        if (limit_bytes[d] < held || (limit_bytes[d] == PC_NO_LIMIT && !is_named)) limit_bytes[d] = held;
    }
}

/* Whether one of a BW can stand for a B and a W: it takes no less than both. Where B recomputes it may hold less. */
static bool has_whole_times(const pc_costs *costs) {
    for (int64_t i = 0; i < (int64_t)costs->devices * costs->chunks; i++) {
        const pc_time *times = &costs->duration_ps[i * PC_PASS_KINDS];
        if (times[PC_PASS_BW] < times[PC_PASS_B] + times[PC_PASS_W]) return false;
    }
    return true;
}

#define LONGEST_WAYS                                                                                                   \
    (INT64_C(1) << 26) /* steps of all microbatches' ways that are followed; a fraction of a second                    \
                        */

static bool is_of_one_model(pc_placement placement) {
    return pc_placement_is_plain(placement) || pc_placement_has_slices(placement);
}

static bool is_known(const pc_schedule *schedule, const pc_costs *costs, bool splits) {
    if (!is_of_one_model(schedule->placement) || pc_schedule_has(schedule, PC_PASS_R)) return false;
    if (schedule->barriers != PC_BARRIERS_NONE) return false;
    bool has_slices = pc_placement_has_slices(schedule->placement);
    int64_t ways = (int64_t)schedule->devices * schedule->devices * schedule->chunks;
    if (has_slices) ways *= schedule->chunks / pc_placement_slices(schedule->placement, schedule->chunks);
    if (ways > LONGEST_WAYS) return false;
    if (!has_slices && (splits ? 3 : 2) * (int64_t)schedule->chunks > PC_INSTANCE_TYPES_MAX) return false;
    bool is_mixed = splits && pc_schedule_has(schedule, PC_PASS_BW);
    return !is_mixed || (has_whole_times(costs) && !costs->recomputes_in_b);
}

pc_code pc_schedule_least_span(const pc_schedule *schedule, const pc_costs *costs, pc_memory_limit limit,
                               pc_time *least_ps, pc_error *error) {
    bool splits = pc_schedule_has(schedule, PC_PASS_W);
    pc_instance instance;
    *least_ps = PC_TIME_NOT_GIVEN;
    if (!is_known(schedule, costs, splits)) return PC_OK;
    if (pc_placement_has_slices(schedule->placement))
        return pc_slices_least_span(schedule, costs, splits, limit, least_ps, error);
    pc_code code =
        pc_instance_create(costs, schedule->placement, splits, schedule->microbatches, limit, &instance, error);
    if (code) return code;
    code = pc_instance_bound(&instance, least_ps, error);
    pc_instance_free(&instance);
    return code;
}

/* ---- before there is a schedule ---- */

static bool can_be_bounded(const pc_generator *generator, const pc_generate_request *request) {
    const pc_costs *costs = request->costs;
    if (request->making != PC_MAKING_COSTS && request->making != PC_MAKING_EQUAL) return false;
    int64_t ways = (int64_t)costs->devices * costs->devices * costs->chunks;
    return generator->searches && !generator->given && !generator->mixes && !generator->recomputes &&
           generator->barriers == PC_BARRIERS_NONE && is_of_one_model(generator->placement) && ways <= LONGEST_WAYS &&
           (generator->splits ? 3 : 2) * (int64_t)costs->chunks <= PC_INSTANCE_TYPES_MAX;
}

/* By its name a schedule of B that recompute counts microbatches in the place of bytes: there the request's limit alone
 * is known. */
static void find_limits(const pc_generator *generator, const pc_generate_request *request, int64_t *limit_bytes) {
    bool is_named = pc_costs_have_activations(request->costs) && !request->costs->recomputes_in_b;
    if (is_named) pc_searched_limits(generator, request, limit_bytes);
    for (int d = 0; d < request->costs->devices; d++) {
        int64_t asked = pc_memory_limit_of(request->memory_limit, d);
        limit_bytes[d] = is_named ? pc_min(limit_bytes[d], asked) : asked;
    }
}

pc_code pc_generator_least_spans(const pc_generator *generator, const pc_generate_request *request, bool is_close,
                                 pc_time *least_ps, pc_error *error) {
    const pc_costs *costs = request->costs;
    pc_instance instance;
    for (int d = 0; d < costs->devices; d++) least_ps[d] = 0;
    if (!can_be_bounded(generator, request)) return PC_OK;
    int64_t *limit_bytes = pc_alloc((size_t)costs->devices, sizeof *limit_bytes);
    if (!limit_bytes) return pc_error_no_memory(error);
    find_limits(generator, request, limit_bytes);
    pc_code code = pc_instance_create(costs, generator->placement, generator->splits, (int)request->microbatches,
                                      (pc_memory_limit){limit_bytes}, &instance, error);
    pc_free(limit_bytes);
    if (code) return code;
    pc_instance_least_spans(&instance, least_ps);
    if (is_close) code = pc_instance_close_spans(&instance, least_ps, error);
    pc_instance_free(&instance);
    return code;
}
