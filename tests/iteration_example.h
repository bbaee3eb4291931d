/* iteration_example.h: a small GPT on a small cluster, and specs drawn at random, for tests of iterations. */
#ifndef PC_TESTS_ITERATION_EXAMPLE_H
#define PC_TESTS_ITERATION_EXAMPLE_H

#include "models/training/iteration.h"
#include "tests/support.h"

#include <math.h>

/* 24 layers of 2048; nodes of 8 GPUs and 8 NICs; TP 2, PP 4, DP 8, 8 microbatches of a sequence of 1024, 1F1B, closed.
 */
pc_iteration_spec example_spec(void);

/* Another cut, schedule, order of ranks, choice of overlaps; over a closed network, neither recomputed nor expanded.
 * Feasible, and with room enough. */
pc_iteration_spec random_spec(test_random *random);

/* No latency, no launch, no least time of a kernel. */
void drop_latencies(pc_machine *machine);

/* Runs what must run; free with pc_iteration_free. */
pc_iteration run_spec(const pc_iteration_spec *spec);

/* Fails unless `found` is within that share of `expected`; a NaN is not. */
static inline void check_within(double found, double expected, double relative) {
    if (!(fabs(found - expected) <= relative * fabs(expected))) fail_msg("%.12g; expected %.12g", found, expected);
}

/* It cannot be, for that reason. */
void check_infeasible(const pc_iteration_spec *spec, const char *message);

#endif
