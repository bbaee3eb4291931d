/* The answer of a whole search, put together of those of its shares. */
#include "engine/alloc.h"
#include "engine/hash.h"
#include "models/planner/plan_search.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* What shares' plans are checked and ranked by. */
typedef struct combining {
    plan_search search; /* of it space, request, numbers, ranking, best and log */
    pc_plan_request request;
    int64_t measured; /* simulated, and with a time */
} combining;

static bool is_plan_of_share(const plan_search *search, int64_t number) {
    const plan_numbers *numbers = &search->numbers;
    if (number < 0 || number >= numbers->shapes * numbers->variants || !plan_is_point(numbers, number)) return false;
    return plan_is_in_shard(search, number / numbers->variants / numbers->of_frame);
}

static bool has_times(const pc_plan_found *found) {
    return found->iteration_s > 0 && isfinite(found->iteration_s) && found->memory_bytes >= 0;
}

static pc_code take_plan(combining *x, const pc_plan_found *found, pc_error *error) {
    plan_search *search = &x->search;
    pc_plan_rule broken;
    pc_plan_choice choice = {.base = 0};
    bool is_good = has_times(found) && is_plan_of_share(search, found->number);
    if (is_good) choice = plan_choice_of(&search->numbers, found->number);
    if (!is_good || plan_check_rules(search->space, &choice, &broken))
        return pc_error_set(error, PC_ERROR_INPUT,
                            "share %" PRId64 ": plan %" PRId64 " is none of it; expected a point of its cuts",
                            x->request.shard, found->number);
    plan_ranked plan = {.found = *found};
    plan.found.choice = choice;
    plan.found.cost = plan_cost_of(&search->ranking, &choice, found->iteration_s);
    plan.rank = plan_rank_of(&search->ranking, &choice, found->number, found->iteration_s, found->memory_bytes);
    return plan_best_rejects(&search->best, &plan.rank) ? PC_OK : plan_best_add(&search->best, &plan, error);
}

static void take_log(combining *x, const pc_plan_log *log) {
    pc_plan_log *sum = &x->search.log;
    int64_t measured = log->simulated - log->simulated_over_memory - log->simulated_infeasible;
    sum->points += log->points;
    sum->broken_rule += log->broken_rule;
    for (int i = 0; i < PC_PLAN_RULES; i++) sum->broken[i] += log->broken[i];
    sum->over_memory += log->over_memory;
    sum->too_slow += log->too_slow;
    sum->simulated += log->simulated;
    sum->simulated_over_memory += log->simulated_over_memory;
    sum->simulated_infeasible += log->simulated_infeasible;
    x->measured += measured;
    if (measured > 0) sum->mean_bound += log->mean_bound * (double)measured;
    if (measured > 0) sum->worst_bound = fmin(sum->worst_bound, log->worst_bound);
}

static pc_code take_share(combining *x, const pc_plan_answer *share, pc_error *error) {
    pc_code code = PC_OK;
    take_log(x, &share->log);
    for (int64_t i = 0; i < share->count && !code; i++) code = take_plan(x, &share->found[i], error);
    return code;
}

static pc_code give(combining *x, int top, pc_plan_answer *answer, pc_error *error) {
    const plan_best *best = &x->search.best;
    bool is_cut = x->request.objective_count > 1 && top > 0 && best->count > top;
    int64_t count = is_cut ? top : best->count;
    pc_plan_log *log = &x->search.log;
    log->mean_bound = x->measured > 0 ? log->mean_bound / (double)x->measured : NAN;
    if (x->measured == 0) log->worst_bound = NAN;
    pc_plan_found *found = pc_alloc((size_t)count, sizeof *found);
    if (!found) return pc_error_no_memory(error);
    for (int64_t i = 0; i < count; i++) found[i] = best->list[i].found;
    *answer = (pc_plan_answer){.found = found, .count = count, .log = *log};
    return PC_OK;
}

pc_code pc_plan_combine(const pc_plan_space *space, const pc_plan_request *request, const pc_plan_answer *shares,
                        int count, pc_plan_answer *answer, pc_error *error) {
    combining x = {.request = *request};
    plan_search *search = &x.search;
    x.request.shard_count = count;
    *search = (plan_search){.space = space, .request = &x.request, .log.worst_bound = INFINITY};
    pc_code code = plan_numbers_make(space, &search->numbers, error);
    if (!code) code = plan_ranking_make(space, request, &search->ranking, error);
    if (code) return code;
    plan_best_make(search);
    for (int i = 0; i < count && !code; i++) {
        x.request.shard = i + 1;
        code = take_share(&x, &shares[i], error);
    }
    if (!code) code = give(&x, request->top, answer, error);
    plan_best_free(&search->best);
    return code;
}

/* ---- which space it is ---- */

static void add_list(const pc_plan_list *list, pc_hash *hash) {
    pc_hash_add(hash, (uint64_t)list->count);
    for (int i = 0; i < list->count; i++) pc_hash_add(hash, (uint64_t)list->values[i]);
}

void pc_plan_space_hash(const pc_plan_space *space, pc_hash *hash) {
    const pc_plan_list *lists[] = {&space->gpus,
                                   &space->global_batch,
                                   &space->tp,
                                   &space->pp,
                                   &space->dp,
                                   &space->cp,
                                   &space->cp_comm,
                                   &space->ep,
                                   &space->etp,
                                   &space->dispatchers,
                                   &space->chunks,
                                   &space->slices,
                                   &space->layouts,
                                   &space->microbatch_size,
                                   &space->recompute,
                                   &space->offload,
                                   &space->zero,
                                   &space->shard_group,
                                   &space->sequence_parallel,
                                   &space->overlaps_tp,
                                   &space->overlaps_gradients,
                                   &space->overlaps_parameters,
                                   &space->overlaps_p2p};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) add_list(lists[i], hash);
    pc_hash_add(hash, space->batch_follows_dp);
    pc_hash_add(hash, (uint64_t)space->generator_count);
    for (int i = 0; i < space->generator_count; i++)
        pc_hash_add_bytes(hash, space->generators[i]->name, strlen(space->generators[i]->name));
    pc_hash_add(hash, (uint64_t)space->order_count);
    for (int i = 0; i < space->order_count; i++)
        for (int axis = 0; axis < PC_AXES; axis++) pc_hash_add(hash, (uint64_t)space->orders[i].axis[axis]);
}
