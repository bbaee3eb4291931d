/* plan_questions.h: what is asked of a plan beside its best ones, each a search of a part of its space, or a run of
 * plan 1 with something changed. Commands of rows are left to the caller.
 */
#ifndef PC_SWEEP_PLAN_QUESTIONS_H
#define PC_SWEEP_PLAN_QUESTIONS_H

#include "results/plan_cells.h"
#include "scenarios/plan_axes.h"
#include "scenarios/plan_scenario.h"
#include "sweep/plan_shares.h"
#include "sweep/run_profiles.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct pc_plan_asker {
    pc_plan_scenario *scenario; /* its bases have their costs */
    pc_plan_request request;    /* its first objective, limits, threads, shard, crew, keeper and who may stop it count;
                                 * all variants are looked at */
    pc_plan_shares *shares;     /* NULL: no search is in shares */
    pc_run_profiles *profiles;  /* of the runs of plans */
    bool asks_each;             /* beside a goal, whose rows are of part GOAL then */
    void (*say)(void *self, int64_t done, int64_t total); /* as cells are done; NULL: nobody asks */
    void *self;
} pc_plan_asker;

/* The best plan of each combination of the axes' values (one or two), and why there is none: as if every other value
 * had been left out of the lists. `part` is EACH or MAP. Free with pc_plan_cells_free. */
pc_code pc_plan_ask_each(const pc_plan_asker *asker, const pc_plan_axis *axes, int axis_count, pc_plan_part part,
                         pc_plan_cells *cells, pc_error *error);

/* The fewest GPUs of each machine that keep to the goal. The numbers that are listed are tried from the fewest on until
 * one keeps to it. Then come multiples of a node (within a node all numbers) between that one and the largest below
 * that misses it: each of them if they are few, else steps, and smaller steps between two of these. More GPUs need not
 * be faster, since cuts must divide them: only where every one was tried (`tried`) are they the fewest. Numbers that
 * could not keep to it even at the GPUs' peak rate are passed over, once some plan has said what a token takes. Plans
 * are the fastest. */
pc_code pc_plan_ask_goal(const pc_plan_asker *asker, const pc_plan_goal *goal, pc_plan_cells *cells, pc_error *error);

/* Lets a request have only plans that keep to the goal, on good days; of a space of one machine and one number of GPUs.
 */
void pc_plan_goal_limit(pc_plan_scenario *scenario, const pc_plan_goal *goal, const pc_plan_space *space,
                        pc_plan_request *request);

/* What becomes of plan 1 with 20% less and 20% more of each thing (plan_changes.c), those first that matter most. Each
 * is a run; with `plans_anew` there are two more, in which the whole space is searched again. */
pc_code pc_plan_ask_changes(const pc_plan_asker *asker, const pc_plan_row *best, bool plans_anew, pc_plan_cells *cells,
                            pc_error *error);

/* Sequences of several lengths, each so large a part of all tokens. Every iteration has one length, and as many tokens
 * as one of the longest: a microbatch of sequences half as long has twice as many. */
enum { PC_PLAN_LENGTHS_MOST = 8 };
typedef struct pc_plan_mix {
    int64_t length[PC_PLAN_LENGTHS_MOST];
    double weight[PC_PLAN_LENGTHS_MOST]; /* together 1 */
    int count;
} pc_plan_mix;

/* "8k:0.8,128k:0.2"; PC_ERROR_INPUT if lengths do not divide the longest, or parts do not add up to 1, but for
 * rounding.
 */
pc_code pc_plan_mix_parse(const char *text, pc_plan_mix *mix, pc_error *error);

/* What the plans are with such a mix, those that are fastest then first: a row each, of which tokens a second, MFU and
 * all that a token or the training takes are means, and the memory is the largest. Those that cannot be with some
 * length lack a plan. Of `plans` alone: which are best by themselves is not asked of all others. */
pc_code pc_plan_ask_mix(const pc_plan_asker *asker, const pc_plan_mix *mix, const pc_plan_row *plans, int64_t count,
                        pc_plan_cells *cells, pc_error *error);

#ifdef __cplusplus
}
#endif
#endif
