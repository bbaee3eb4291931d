/* plan_cells.h: what is asked of a plan beside the best ones: the best of each value of a list or two, or what becomes
 * of plan 1 where a number of the machine or the job is another. */
#ifndef PC_RESULTS_PLAN_CELLS_H
#define PC_RESULTS_PLAN_CELLS_H

#include "results/plan_table.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { PC_PLAN_CELL_AXES = 2, PC_PLAN_CELL_TEXT = 64 };

/* Where the fewest GPUs that keep to a goal were looked for, of the machine that has them. Those that were listed come
 * first, then numbers between the largest of them that misses the goal and the smallest that keeps to it. */
typedef struct pc_plan_tried {
    int64_t misses, reaches; /* these two numbers; `misses` 0: no fewer were listed */
    int64_t step;            /* numbers between are multiples of it */
    int64_t count;           /* of those that were tried */
    bool is_every;           /* no multiple that is smaller than what was found was left out */
} pc_plan_tried;

/* Of EACH and MAP a row for each combination of values, the last axis running fastest. Of a goal rows of each machine,
 * the fewest GPUs first: of all numbers that were listed up to one that keeps to it, and of those between that keep to
 * it; without sizes and values. Of SENSITIVITY two for each thing that is changed, less of it and more. Owned:
 * pc_plan_cells_free, but for the commands of the rows. */
typedef struct pc_plan_cells {
    pc_plan_part part;
    int axis_count;
    int size[PC_PLAN_CELL_AXES];
    const char *axis[PC_PLAN_CELL_AXES]; /* static */
    char (*value[PC_PLAN_CELL_AXES])[PC_PLAN_CELL_TEXT];
    pc_plan_row *rows;
    int64_t count;
    bool is_of_goal;     /* and then: */
    int64_t passed_over; /* numbers too slow even at the peak rate of the GPU, which have no row */
    pc_plan_tried tried;
} pc_plan_cells;

/* Behind what is changed, of the best plan then. */
#define PC_PLAN_ANEW ", planned anew"

void pc_plan_cells_free(pc_plan_cells *cells);

/* Why a cell has no plan, by a letter; ' ' where it has one. M: over memory; T: beyond the limits on time or cost; else
 * of the rule that stops the points that come furthest (pc_plan_rule): G GPUs, I interleaving, L layers, E experts, B
 * batch, S schedule, O offload, H heads, Z sizes. */
char pc_plan_cell_letter(const pc_plan_row *row);
const char *pc_plan_letter_words(char letter);
extern const char pc_plan_letters[];

/* Whether the training of a row's plan keeps to the goal. */
bool pc_plan_row_meets(const pc_plan_goal *goal, const pc_plan_row *row);

/* Of the rows that keep to the goal that of the fewest GPUs, and of these the fastest; -1 if none does. */
int64_t pc_plan_cells_least(const pc_plan_cells *cells, const pc_plan_goal *goal);

/* By how much less or more time a token takes (or the first objective's value is) than plan 1's, as a fraction: 0.1 is
 * 10% slower. NaN if the row has no plan. */
double pc_plan_row_change(pc_plan_objective objective, const pc_plan_row *best, const pc_plan_row *row);

#ifdef __cplusplus
}
#endif
#endif
