/* outline_pairs.h: how long two passes of an outline take together. Private to models/training/. */
#ifndef PC_MODELS_TRAINING_OUTLINE_PAIRS_H
#define PC_MODELS_TRAINING_OUTLINE_PAIRS_H

#include "models/training/outline.h"

/* Whether the schedule has pairs that run as such: the spec says so, and the generator has them. */
bool pc_outline_has_pairs(const pc_outline *outline);

/* PC_ERROR_INPUT, one line, where the spec has pairs run together beside what does not know them. */
pc_code pc_iteration_check_pairs(const pc_iteration_spec *spec, pc_error *error);

/* Adds the times of pairs F&BW to costs whose durations are there: both passes' less what communication of one hides
 * behind computation of the other (pair_overlap.h). That is all collectives within passes, of tensor and context
 * parallelism too; kernels beside them lose the spec's overlap_slowdown. Launches of both take what they take. Behind
 * that or beside it come collectives of data parallelism and messages. without: as in pc_outline_costs. */
pc_code pc_outline_set_pairs(const pc_outline *outline, int without, pc_costs *costs, pc_error *error);

/* How long the two passes of a pair take together that take f_ps and back_ps alone, of an outline and costs with pairs.
 * That is the costs' pair_own_ps, stretched as the sum of both is over pair_apart_ps. Collectives of ZeRO 2 and 3 are
 * those of both, beside the kernels of both (pc_outline_with_zero). Of units the two passes take turns (units.h). What
 * a stage waits for messages is left out. */
pc_time pc_outline_pair_ps(const pc_outline *outline, const pc_costs *costs, int device, pc_pass f, pc_pass back,
                           int without, pc_time f_ps, pc_time back_ps);

/* Where stages wait for what they send, both passes' messages go out when both are done, as one batch
 * (batch_isend_irecv in DualPipe's _commit_and_wait_comm): the stage waits for the longer one, and nobody has either
 * before. */
pc_time pc_outline_pair_wait_ps(const pc_outline *outline, int device, pc_pass f, pc_pass back);

/* A pair of two sorts, step by step: pieces in the order in which they begin, where nothing else is under way. Of F,
 * the backward pass, or its delayed products: pass 0, 1, 2. Owned; pc_pair_plan_free. */
typedef struct pc_pair_piece {
    int pass;
    pc_pass_kind kind; /* whose recipe (recipe.h) has the step */
    int step;
    bool is_comm; /* it takes its turn among communication; else among the kernels, though it may be a collective */
    int also;     /* of a delayed one: a piece that is over before it; -1: none */
    double begin_s, end_s; /* a collective that its own pass's kernels hide has no time of its own */
} pc_pair_piece;
typedef struct pc_pair_plan {
    pc_pair_piece *pieces;
    int count;
    double least_s; /* both passes end no earlier than this: launches, or either one alone; or both apart, where nothing
                       hides */
} pc_pair_plan;
pc_code pc_outline_pair_plan(const pc_outline *outline, int f_sort, int back_sort, pc_pair_plan *plan, pc_error *error);
void pc_pair_plan_free(pc_pair_plan *plan);

/* Seconds that pairs hide on the busiest stage, over all microbatches; 0 without pairs. */
double pc_outline_hidden_s(const pc_outline *outline, const pc_schedule *schedule, const pc_costs *costs);

#endif
