/* Searched schedules where B recomputes (pc_costs.recomputes_in_b). F keep little then, and in bytes the limit of a
 * name would let many times as many microbatches be under way. What the name means is their number: the search counts
 * chunks, each 1 from F to W. Where the devices' own room is all that limits it, or the count alone does not keep to
 * that room, it goes by bytes.
 */
#include "models/schedule/generate_private.h"

#include "engine/alloc.h"
#include "models/schedule/check.h"

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

/* By the number of chunks under way, or by bytes. In bytes W gives back all, and B nothing, for in a search a pass
 * either takes or gives: that is never less than what is held. */
static pc_code search(const pc_generator *generator, const pc_generate_request *request, pc_generate_rule *rule,
                      bool counts, pc_schedule *schedule, pc_block *block, pc_error *error) {
    stand_in x;
    pc_generate_request changed = *request;
    pc_code code = make_stand_in(request->costs, &x, error);
    if (code) return code;
    x.costs.activation_b_bytes = x.zeros;
    if (counts) {
        x.costs.activation_bytes = x.costs.activation_kept_bytes = x.ones;
        x.costs.recomputes_in_b = false;
        changed.memory_limit = (pc_memory_limit){NULL};
    }
    changed.costs = &x.costs;
    code = rule(generator, &changed, schedule, block, error);
    pc_free(x.ones);
    pc_free(x.zeros);
    return code;
}

static pc_code check_room(const pc_schedule *schedule, const pc_generate_request *request, bool *is_within,
                          pc_error *error) {
    int64_t *peak_bytes = pc_alloc((size_t)schedule->devices, sizeof *peak_bytes);
    if (!peak_bytes) return pc_error_no_memory(error);
    pc_code code = pc_schedule_peaks(schedule, request->costs, peak_bytes, error);
    *is_within = true;
    for (int d = 0; !code && d < schedule->devices; d++)
        *is_within = *is_within && peak_bytes[d] <= pc_memory_limit_of(request->memory_limit, d);
    pc_free(peak_bytes);
    return code;
}

pc_code pc_generate_recomputing(const pc_generator *generator, const pc_generate_request *request,
                                pc_generate_rule *rule, pc_schedule *schedule, pc_block *block, pc_error *error) {
    bool is_within = false;
    pc_code code = pc_generator_check_memory(generator, request->costs, request->memory_limit, error);
    if (code) return code;
    if (generator->adapts && pc_memory_limit_is_given(request->memory_limit, request->costs->devices))
        return search(generator, request, rule, false, schedule, block, error);
    code = search(generator, request, rule, true, schedule, block, error);
    if (code) return code;
    code = check_room(schedule, request, &is_within, error);
    if (!code && is_within) return PC_OK;
    pc_schedule_free(schedule);
    if (block) pc_block_free(block);
    return code ? code : search(generator, request, rule, false, schedule, block, error);
}
