/* Searched schedules where B takes more than F kept (pc_costs.recomputes_in_b). If B recomputes, F keep little, and in
 * bytes the limit of a name would let many times as many microbatches be under way. What the name means is their
 * number: the search counts chunks, each 1 from F to W. Where the devices' own room is all that limits it, or the count
 * alone does not keep to that room, it goes by bytes.
 *
 * If B makes nothing again, the rest is gradients that wait for W (leaves_gradients). The search then goes by what F
 * keeps, as it would without them, unless that does not keep to the room. Where the room is all that limits it, it goes
 * by bytes as well, and the shorter order stays: to make room for gradients bit by bit is a poor search.
 */
#include "models/schedule/generate_private.h"

#include "engine/alloc.h"
#include "models/schedule/check.h"
#include "models/schedule/timing.h"

/* Other numbers in the place of some of the costs' own. */
typedef struct stand_in {
    pc_costs costs;
    int64_t *ones, *zeros; /* [devices][chunks]; owned */
} stand_in;

static pc_code make_stand_in(const pc_costs *costs, stand_in *made, pc_error *error) {
    size_t cells = (size_t)costs->devices * (size_t)costs->chunks;
    *made = (stand_in){
        .costs = *costs, .ones = pc_alloc(cells, sizeof *made->ones), .zeros = pc_alloc(cells, sizeof *made->zeros)};
    if (made->ones && made->zeros) {
        for (size_t i = 0; i < cells; i++) made->ones[i] = 1;
        return PC_OK;
    }
    pc_free(made->ones);
    pc_free(made->zeros);
    return pc_error_no_memory(error);
}

/* What a search counts: chunks under way; bytes that F keep; or all bytes. Of these W gives back all, and B nothing,
 * for in a search a pass either takes or gives: that is never less than what is held. */
typedef enum counted { COUNT_CHUNKS, COUNT_KEPT, COUNT_BYTES } counted;

static pc_code search(const pc_generator *generator, const pc_generate_request *request, pc_generate_rule *rule,
                      counted what, pc_schedule *schedule, pc_block *block, pc_error *error) {
    stand_in x;
    pc_generate_request changed = *request;
    pc_code code = make_stand_in(request->costs, &x, error);
    if (code) return code;
    if (what != COUNT_KEPT) x.costs.activation_b_bytes = x.zeros;
    if (what != COUNT_BYTES) x.costs.recomputes_in_b = false;
    if (what == COUNT_KEPT) x.costs.activation_bytes = x.costs.activation_kept_bytes;
    if (what == COUNT_CHUNKS) {
        x.costs.activation_bytes = x.costs.activation_kept_bytes = x.ones;
        changed.memory_limit = (pc_memory_limit){NULL};
    }
    changed.costs = &x.costs;
    if (what == COUNT_KEPT) code = pc_generator_check_memory(generator, &x.costs, changed.memory_limit, error);
    if (!code) code = rule(generator, &changed, schedule, block, error);
    pc_free(x.ones);
    pc_free(x.zeros);
    return code;
}

/* Whether a schedule keeps to the devices' room. Where it does not, `limit_bytes` of the device goes down by as much;
 * NULL: it stays. */
static pc_code check_room(const pc_schedule *schedule, const pc_generate_request *request, int64_t *limit_bytes,
                          bool *is_within, pc_error *error) {
    int64_t *peak_bytes = pc_alloc((size_t)schedule->devices, sizeof *peak_bytes);
    if (!peak_bytes) return pc_error_no_memory(error);
    pc_code code = pc_schedule_peaks(schedule, request->costs, peak_bytes, error);
    *is_within = true;
    for (int d = 0; !code && d < schedule->devices; d++) {
        int64_t room = pc_memory_limit_of(request->memory_limit, d);
        if (peak_bytes[d] <= room) continue;
        *is_within = false;
        if (limit_bytes) limit_bytes[d] -= peak_bytes[d] - room;
    }
    pc_free(peak_bytes);
    return code;
}

static void drop(pc_schedule *schedule, pc_block *block) {
    pc_schedule_free(schedule);
    if (block) pc_block_free(block);
}

/* By what F keeps, with less and less room for it until what B leaves finds room as well: each time by as much as is
 * missing. A limit that no schedule keeps ends that. */
static pc_code search_by_kept(const pc_generator *generator, const pc_generate_request *request, pc_generate_rule *rule,
                              int64_t *limit_bytes, pc_schedule *schedule, pc_block *block, bool *is_within,
                              pc_error *error) {
    enum { TRIES = 4 };
    pc_generate_request changed = *request;
    if (pc_memory_limit_is_given(request->memory_limit, request->costs->devices))
        changed.memory_limit = (pc_memory_limit){limit_bytes};
    for (int i = 0; i < TRIES; i++) {
        pc_error ignored = {0};
        pc_code code = search(generator, &changed, rule, COUNT_KEPT, schedule, block, &ignored);
        if (code && code != PC_ERROR_INPUT) return pc_error_copy(error, &ignored);
        if (code) break;
        code = check_room(schedule, request, limit_bytes, is_within, error);
        if (!code && *is_within) return PC_OK;
        drop(schedule, block);
        if (code) return code;
    }
    return PC_OK;
}

static pc_code try_by_kept(const pc_generator *generator, const pc_generate_request *request, pc_generate_rule *rule,
                           pc_schedule *schedule, pc_block *block, bool *is_within, pc_error *error) {
    int devices = request->costs->devices;
    int64_t *limit_bytes = pc_alloc((size_t)devices, sizeof *limit_bytes);
    if (!limit_bytes) return pc_error_no_memory(error);
    for (int d = 0; d < devices; d++) limit_bytes[d] = pc_memory_limit_of(request->memory_limit, d);
    pc_code code = search_by_kept(generator, request, rule, limit_bytes, schedule, block, is_within, error);
    pc_free(limit_bytes);
    return code;
}

/* By number; the devices' room is looked at behind it. */
static pc_code try_by_chunks(const pc_generator *generator, const pc_generate_request *request, pc_generate_rule *rule,
                             pc_schedule *schedule, pc_block *block, bool *is_within, pc_error *error) {
    pc_code code = search(generator, request, rule, COUNT_CHUNKS, schedule, block, error);
    if (code) return code;
    code = check_room(schedule, request, NULL, is_within, error);
    if (code || !*is_within) drop(schedule, block);
    return code;
}

/* ---- both ways ---- */

static pc_code length_of(const pc_schedule *schedule, const pc_generate_request *request, pc_time *length_ps,
                         pc_error *error) {
    pc_timing *timing = NULL;
    pc_timing_result result;
    pc_code code = pc_timing_create(&timing, error);
    if (!code) code = pc_timing_run(timing, schedule, request->costs, &result, error);
    if (!code) *length_ps = request->goal == PC_GOAL_SPAN ? result.totals.span_ps : result.totals.makespan_ps;
    pc_timing_free(timing);
    return code;
}

/* The shorter one stays; `other` goes. */
static pc_code keep_shorter(const pc_generate_request *request, pc_schedule *schedule, pc_block *block,
                            pc_schedule *other, pc_block *other_block, pc_error *error) {
    pc_time own_ps = 0, other_ps = 0;
    pc_code code = length_of(schedule, request, &own_ps, error);
    if (!code) code = length_of(other, request, &other_ps, error);
    bool is_other = !code && other_ps < own_ps;
    drop(is_other || code ? schedule : other, is_other || code ? block : other_block);
    if (code) {
        drop(other, other_block);
    } else if (is_other) {
        *schedule = *other;
        if (block) *block = *other_block;
    }
    return code;
}

/* By what F keeps and by bytes. Either may find nothing within the room. */
static pc_code search_both(const pc_generator *generator, const pc_generate_request *request, pc_generate_rule *rule,
                           pc_schedule *schedule, pc_block *block, pc_error *error) {
    pc_schedule by_bytes = {0};
    pc_block its_block = {0};
    pc_error why = {0};
    bool is_within = false;
    pc_code code = try_by_kept(generator, request, rule, schedule, block, &is_within, error);
    if (code) return code;
    if (!is_within) return search(generator, request, rule, COUNT_BYTES, schedule, block, error);
    code = search(generator, request, rule, COUNT_BYTES, &by_bytes, block ? &its_block : NULL, &why);
    if (code == PC_ERROR_INPUT) return PC_OK;
    if (!code) return keep_shorter(request, schedule, block, &by_bytes, block ? &its_block : NULL, error);
    drop(schedule, block);
    return pc_error_copy(error, &why);
}

pc_code pc_generate_recomputing(const pc_generator *generator, const pc_generate_request *request,
                                pc_generate_rule *rule, pc_schedule *schedule, pc_block *block, pc_error *error) {
    bool is_within = false;
    bool has_room = pc_memory_limit_is_given(request->memory_limit, request->costs->devices);
    pc_code code = pc_generator_check_memory(generator, request->costs, request->memory_limit, error);
    if (code) return code;
    bool is_both = generator->adapts && has_room && request->making != PC_MAKING_PUBLISHED &&
                   request->costs->transfer.mode == PC_TRANSFER_DELAY;
    if (request->costs->leaves_gradients && is_both)
        return search_both(generator, request, rule, schedule, block, error);
    if (request->costs->leaves_gradients)
        code = try_by_kept(generator, request, rule, schedule, block, &is_within, error);
    else if (!generator->adapts || !has_room)
        code = try_by_chunks(generator, request, rule, schedule, block, &is_within, error);
    if (code || is_within) return code;
    return search(generator, request, rule, COUNT_BYTES, schedule, block, error);
}
