/* scenarios.h: 200 scenarios of all kinds, each drawn from its number; for tests only.
 *
 * A scenario is what `pipecast run --set` or `pipecast plan --set` would be given, so that any of them can be looked at
 * with the command.
 */
#ifndef PC_TESTS_DETERMINISM_SCENARIOS_H
#define PC_TESTS_DETERMINISM_SCENARIOS_H

#include <stdbool.h>

enum { SCENARIOS = 200, SCENARIO_SETS_MAX = 40, SCENARIO_SET_SIZE = 128 };

typedef struct drawn_scenario {
    const char *kind;
    bool is_plan;
    bool draws_noise; /* by functions whose last bit is the mathematics library's own */
    int set_count;
    char set[SCENARIO_SETS_MAX][SCENARIO_SET_SIZE]; /* KEY=VALUE */
} drawn_scenario;

/* The scenario of this number, 0 to SCENARIOS - 1: the same in every build. */
drawn_scenario draw_scenario(int number);

#endif
