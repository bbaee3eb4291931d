/* planner_example.h: small spaces drawn at random, for tests of the planner. */
#ifndef PC_TESTS_PLANNER_EXAMPLE_H
#define PC_TESTS_PLANNER_EXAMPLE_H

#include "models/planner/planner.h"
#include "tests/support.h"

enum { SPACE_LIST_MAX = 8, SPACE_LISTS = 17, SPACE_BASES_MAX = 2 };

/* A space and all that it borrows. */
typedef struct example_space {
    pc_plan_space space;
    pc_plan_base bases[SPACE_BASES_MAX];
    int64_t values[SPACE_LISTS][SPACE_LIST_MAX];
    int64_t offloads[SPACE_LIST_MAX], experts[3][SPACE_LIST_MAX], slices[SPACE_LIST_MAX];
    int64_t contexts[2][SPACE_LIST_MAX];
    const pc_generator *generators[SPACE_LIST_MAX];
    pc_rank_order orders[SPACE_LIST_MAX];
} example_space;

/* A quarter of `most` to `most` numbers, rules broken or not: GPT and other models of 10 or 12 layers on 4 to 16 GPUs,
 * with all overlaps, orders, networks, steps and layouts; memory that some points have not. `searches`: schedules that
 * search, too. */
void draw_space(test_random *random, int64_t most, bool searches, example_space *drawn);

/* The same with schedules that search alone, or as many others among them as there are; mostly at the quick effort. */
void draw_searched_space(test_random *random, int64_t most, bool has_others, example_space *drawn);

#endif
