/* goal_example.h: searches with tails at random, and a second way to count what follows a schedule. */
#ifndef PC_TESTS_GOAL_EXAMPLE_H
#define PC_TESTS_GOAL_EXAMPLE_H

#include "tests/support.h"

#include "models/schedule/generate.h"
#include "models/schedule/search/instance.h"
#include "models/schedule/search/objective.h"

enum { GOAL_DEVICES_MOST = 8, GOAL_CELLS_MOST = 2 * GOAL_DEVICES_MOST, GOAL_NAMES = 7 };

/* Of schedules that are searched. */
extern const char *const goal_names[GOAL_NAMES];

typedef struct goal_example {
    pc_costs costs;
    pc_time stream[GOAL_CELLS_MOST], after[GOAL_CELLS_MOST], own[GOAL_DEVICES_MOST];
    int64_t limit[GOAL_DEVICES_MOST];
    pc_tails tails;
    const pc_generator *generator;
    int microbatches;
} goal_example;

/* Costs, limits and tails; free them. Of any name, on up to `most` devices. Tails alone: up to `longest`. */
void goal_example_draw(test_random *random, const char *name, int devices, int microbatches, goal_example *e);
void goal_example_any(test_random *random, int most, goal_example *e);
void goal_example_tails(test_random *random, goal_example *e, int64_t longest);
void goal_example_free(goal_example *e);

/* What the search makes of it for a goal, by other costs than its own; memo may be NULL. Free it. */
pc_schedule goal_example_schedule(const goal_example *e, pc_goal goal, const pc_costs *costs, pc_search_memo *memo);

/* The search's instance with this objective; and any order that can run. The caller frees both. */
pc_instance goal_example_instance(const goal_example *e, const pc_objective *objective);
void goal_example_order(test_random *random, const pc_instance *x, pc_instance_order *order);

typedef struct goal_counted {
    pc_time span, makespan, iteration;
} goal_counted;

/* By the longest path, and a plain loop over the chunks that wait for the network; with_ready: chunks that are ready
 * later than at once, too. */
goal_counted goal_count(const goal_example *e, const pc_schedule *s, bool with_ready);

#endif
