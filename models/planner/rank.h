/* rank.h: which of two plans is better, and which are worth keeping. Private to models/planner/.
 *
 * Every plan has a value for each objective, less being better; so has a candidate, whose values are bounds: none is
 * above what simulating it would give. So a candidate that is beaten by a plan is beaten for good.
 */
#ifndef PC_MODELS_PLANNER_RANK_H
#define PC_MODELS_PLANNER_RANK_H

#include "models/planner/planner.h"
#include "models/planner/space.h"

/* First the objectives that were asked for, in their order, then, to tell equals apart, those of throughput and memory
 * that were not; and at last the number. */
typedef struct plan_rank {
    double key[PC_PLAN_OBJECTIVES];
    int64_t number;
} plan_rank;

/* How the values of a request are ranked. */
typedef struct plan_ranking {
    const pc_plan_space *space; /* borrowed */
    pc_plan_objective order[PC_PLAN_OBJECTIVES];
    int objective_count, key_count;
    bool has_prices;
} plan_ranking;

/* PC_ERROR_INPUT if the objectives or `top` cannot be, or some bases have prices and others none. */
pc_code plan_ranking_make(const pc_plan_space *space, const pc_plan_request *request, plan_ranking *ranking,
                          pc_error *error);

/* Money, or GPU-hours where there are no prices, for a million tokens. Rises with iteration_s, as rounded. */
double plan_cost_of(const plan_ranking *ranking, const pc_plan_choice *choice, double iteration_s);

/* The rank of a choice that takes so long and so much memory, or at least so. */
plan_rank plan_rank_of(const plan_ranking *ranking, const pc_plan_choice *choice, int64_t number, double iteration_s,
                       int64_t memory_bytes);

/* By keys, then by number: below zero where a comes first. */
int plan_rank_compare(const plan_ranking *ranking, const plan_rank *a, const plan_rank *b);

/* Whether b is not wanted beside a, of a front: a is as good in every objective, and better in one or the first of
 * equals. */
bool plan_rank_dominates(const plan_ranking *ranking, const plan_rank *a, const plan_rank *b);

/* The best plans so far, best first, of all groups; of one objective at most one a cut, if `numbers` are there. */
typedef struct plan_ranked {
    plan_rank rank;
    pc_plan_found found;
} plan_ranked;
typedef struct plan_best {
    const plan_ranking *ranking; /* borrowed */
    const plan_numbers *numbers; /* borrowed; NULL: any number of plans a cut */
    int top;                     /* of one objective, of each group of bases; of a front 0 */
    int64_t of_base;             /* numbers that share a base */
    plan_ranked *list;
    int64_t *cuts; /* theirs */
    int64_t count, room;
} plan_best;
void plan_best_free(plan_best *best);

/* Whether a plan of this rank would not be kept, nor one of the same cut whose rank is no better. */
bool plan_best_rejects(const plan_best *best, const plan_rank *rank);

/* Whether no plan whose rank is no better than this one would be kept, of any cut. Of a front that is not known. */
bool plan_best_is_full(const plan_best *best, const plan_rank *rank);

/* Takes in a plan that is not rejected, and drops those that are not wanted beside it. */
pc_code plan_best_add(plan_best *best, const plan_ranked *plan, pc_error *error);

#endif
