/* random_iteration.h: iterations drawn at random from all that can be asked: every schedule, what is sharded, overlaps,
 * goes to the host or is made again, bad days; with what tests/iteration_example.h draws. */
#ifndef PC_TESTS_RANDOM_ITERATION_H
#define PC_TESTS_RANDOM_ITERATION_H

#include "models/training/iteration.h"
#include "tests/support.h"

pc_iteration_spec random_iteration(test_random *random);

/* Makes it one of a schedule with pairs that run together. */
void random_pairs(test_random *random, pc_iteration_spec *spec);

#endif
