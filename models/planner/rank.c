#include "models/planner/rank.h"

#include "engine/alloc.h"

#include <math.h>
#include <string.h>

/* ---- rankings ---- */

static pc_code check_prices(const pc_plan_space *space, bool *has_prices, pc_error *error) {
    int priced = 0;
    for (int i = 0; i < space->base_count; i++) {
        double price = space->bases[i].gpu_hour_price;
        if (!isnan(price) && !(price >= 0 && price < 1e12))
            return pc_error_set(error, PC_ERROR_INPUT, "plan: price %g of a GPU-hour; expected 0 or more", price);
        priced += !isnan(price);
    }
    *has_prices = priced > 0;
    if (priced == 0 || priced == space->base_count) return PC_OK;
    return pc_error_set(error, PC_ERROR_INPUT,
                        "plan: %d of %d kinds of GPU have a price; expected all or none, to compare costs", priced,
                        space->base_count);
}

static pc_code check_request(const pc_plan_request *request, pc_error *error) {
    int count = request->objective_count;
    if (count < 1 || count > PC_PLAN_OBJECTIVES)
        return pc_error_set(error, PC_ERROR_INPUT, "plan: %d objectives; expected 1 to %d", count, PC_PLAN_OBJECTIVES);
    for (int i = 0; i < count; i++) {
        bool is_twice = false;
        for (int k = 0; k < i; k++) is_twice = is_twice || request->objectives[k] == request->objectives[i];
        if (request->objectives[i] < 0 || request->objectives[i] >= PC_PLAN_OBJECTIVES || is_twice)
            return pc_error_set(error, PC_ERROR_INPUT,
                                "plan: objective %d; expected throughput, memory or cost, each once",
                                (int)request->objectives[i]);
    }
    if (request->top < (count == 1) || request->threads < 0 || !(request->most_iteration_s >= 0) ||
        !(request->most_cost >= 0))
        return pc_error_set(error, PC_ERROR_INPUT,
                            "plan: top %d, %d threads, limits of %g s and %g; expected at least 1 (of a front 0) and "
                            "nothing below 0",
                            request->top, request->threads, request->most_iteration_s, request->most_cost);
    return PC_OK;
}

static bool is_asked_for(const plan_ranking *ranking, pc_plan_objective objective) {
    for (int i = 0; i < ranking->key_count; i++)
        if (ranking->order[i] == objective) return true;
    return false;
}

pc_code plan_ranking_make(const pc_plan_space *space, const pc_plan_request *request, plan_ranking *ranking,
                          pc_error *error) {
    plan_ranking made = {.space = space, .objective_count = request->objective_count};
    pc_code code = check_request(request, error);
    if (code) return code;
    for (; made.key_count < request->objective_count; made.key_count++)
        made.order[made.key_count] = request->objectives[made.key_count];
    bool compares_costs = is_asked_for(&made, PC_PLAN_COST) || request->most_cost > 0;
    code = check_prices(space, &made.has_prices, compares_costs ? error : NULL);
    if (code && compares_costs) return code;
    if (!is_asked_for(&made, PC_PLAN_THROUGHPUT)) made.order[made.key_count++] = PC_PLAN_THROUGHPUT;
    if (!is_asked_for(&made, PC_PLAN_MEMORY)) made.order[made.key_count++] = PC_PLAN_MEMORY;
    *ranking = made;
    return PC_OK;
}

double plan_cost_of(const plan_ranking *ranking, const pc_plan_choice *choice, double iteration_s) {
    const pc_plan_base *base = &ranking->space->bases[choice->base];
    double tokens = (double)choice->global_batch * (double)base->spec.cut.seq_len;
    double hours = iteration_s * (double)choice->gpus / 3600;
    return hours * (ranking->has_prices ? base->gpu_hour_price : 1) / tokens * 1e6;
}

plan_rank plan_rank_of(const plan_ranking *ranking, const pc_plan_choice *choice, int64_t number, double iteration_s,
                       int64_t memory_bytes) {
    plan_rank rank = {.number = number};
    for (int i = 0; i < ranking->key_count; i++) switch (ranking->order[i]) {
        case PC_PLAN_MEMORY:
            rank.key[i] = (double)memory_bytes;
            break;
        case PC_PLAN_COST:
            rank.key[i] = plan_cost_of(ranking, choice, iteration_s);
            break;
        default:
            rank.key[i] = iteration_s / (double)choice->global_batch;
        }
    return rank;
}

static int compare_doubles(double a, double b) {
    return (a > b) - (a < b);
}

int plan_rank_compare(const plan_ranking *ranking, const plan_rank *a, const plan_rank *b) {
    for (int i = 0; i < ranking->key_count; i++)
        if (a->key[i] != b->key[i]) return compare_doubles(a->key[i], b->key[i]);
    return (a->number > b->number) - (a->number < b->number);
}

bool plan_rank_dominates(const plan_ranking *ranking, const plan_rank *a, const plan_rank *b) {
    bool is_better = false;
    for (int i = 0; i < ranking->objective_count; i++) {
        if (a->key[i] > b->key[i]) return false;
        is_better = is_better || a->key[i] < b->key[i];
    }
    return is_better || plan_rank_compare(ranking, a, b) < 0;
}

/* ---- the best ---- */

void plan_best_free(plan_best *best) {
    pc_free(best->list);
    pc_free(best->cuts);
    memset(best, 0, sizeof *best);
}

static int group_of(const plan_best *best, const plan_rank *rank) {
    return best->ranking->space->bases[rank->number / best->of_base].group;
}

/* The place of the worst plan of a group that has as many as are wanted; -1: it has fewer. */
static int64_t find_worst(const plan_best *best, int group) {
    int64_t count = 0, worst = -1;
    if (best->count < best->top) return -1;
    for (int64_t i = 0; i < best->count; i++) {
        if (group_of(best, &best->list[i].rank) != group) continue;
        worst = i;
        count++;
    }
    return count == best->top ? worst : -1;
}

static bool is_full(const plan_best *best, int group, const plan_rank *rank) {
    int64_t worst = best->top > 0 ? find_worst(best, group) : -1;
    return worst >= 0 && plan_rank_compare(best->ranking, &best->list[worst].rank, rank) < 0;
}

bool plan_best_is_full(const plan_best *best, const plan_rank *rank) {
    const pc_plan_space *space = best->ranking->space;
    bool all = true;
    for (int i = 0; i < space->base_count && all; i++) all = is_full(best, space->bases[i].group, rank);
    return all;
}

/* The place of the plan of a rank's cut; -1: there is none, or any number may be there. */
static int64_t find_cut(const plan_best *best, const plan_rank *rank) {
    if (best->top == 0 || !best->numbers) return -1;
    int64_t cut = plan_cut_of(best->numbers, rank->number);
    for (int64_t i = 0; i < best->count; i++)
        if (best->cuts[i] == cut) return i;
    return -1;
}

bool plan_best_rejects(const plan_best *best, const plan_rank *rank) {
    const plan_ranking *ranking = best->ranking;
    if (best->top > 0 && is_full(best, group_of(best, rank), rank)) return true;
    if (best->top > 0) {
        int64_t at = find_cut(best, rank);
        return at >= 0 && plan_rank_compare(ranking, &best->list[at].rank, rank) < 0;
    }
    for (int64_t i = 0; i < best->count; i++)
        if (plan_rank_dominates(ranking, &best->list[i].rank, rank)) return true;
    return false;
}

static pc_code make_room(plan_best *best, pc_error *error) {
    if (best->count < best->room) return PC_OK;
    int64_t room = best->room ? 2 * best->room : 16;
    plan_ranked *moved = pc_realloc(best->list, (size_t)room, sizeof *moved);
    if (!moved) return pc_error_no_memory(error);
    best->list = moved;
    int64_t *cuts = pc_realloc(best->cuts, (size_t)room, sizeof *cuts);
    if (!cuts) return pc_error_no_memory(error);
    best->cuts = cuts;
    best->room = room;
    return PC_OK;
}

static void drop_dominated(plan_best *best, const plan_rank *rank) {
    int64_t kept = 0;
    for (int64_t i = 0; i < best->count; i++)
        if (!plan_rank_dominates(best->ranking, rank, &best->list[i].rank)) best->list[kept++] = best->list[i];
    best->count = kept;
}

/* The plan of the same cut goes, which is worse; else, of as many as are wanted of a group, the worst. */
static void drop_one(plan_best *best, const plan_rank *rank) {
    int64_t at = find_cut(best, rank);
    if (at < 0) at = find_worst(best, group_of(best, rank));
    if (at < 0) return;
    best->count--;
    memmove(&best->list[at], &best->list[at + 1], (size_t)(best->count - at) * sizeof *best->list);
    memmove(&best->cuts[at], &best->cuts[at + 1], (size_t)(best->count - at) * sizeof *best->cuts);
}

pc_code plan_best_add(plan_best *best, const plan_ranked *plan, pc_error *error) {
    if (best->top == 0)
        drop_dominated(best, &plan->rank);
    else
        drop_one(best, &plan->rank);
    pc_code code = make_room(best, error);
    if (code) return code;
    int64_t at = best->count++;
    for (; at > 0 && plan_rank_compare(best->ranking, &plan->rank, &best->list[at - 1].rank) < 0; at--) {
        best->list[at] = best->list[at - 1];
        best->cuts[at] = best->cuts[at - 1];
    }
    best->list[at] = *plan;
    best->cuts[at] = best->numbers ? plan_cut_of(best->numbers, plan->rank.number) : 0;
    return PC_OK;
}
