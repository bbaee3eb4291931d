/* random_schedule.h: valid schedules and costs drawn at random, for property tests. */
#ifndef PC_TESTS_RANDOM_SCHEDULE_H
#define PC_TESTS_RANDOM_SCHEDULE_H

#include "models/schedule/costs.h"
#include "models/schedule/schedule.h"
#include "tests/support.h"

/* A schedule of some shape in which every stage takes its passes in an order that can run: drawn by running it. With or
 * without the backward pass split, with or without recomputation. Two chunks, whatever chunks_max, where it has two
 * replicas. */
void random_schedule(test_random *random, int devices_max, int microbatches_max, int chunks_max, pc_schedule *schedule);

/* Times of every stage, chunk and kind of their own, some zero, and a transfer delay. Activations have a random split.
 * A random part of them is kept where they are recomputed, which for a schedule without R is in B, in one half of the
 * calls. */
void random_costs(test_random *random, const pc_schedule *schedule, pc_costs *costs);

/* Adds, each in one half of the calls, a delay of its own for every hop and a ready time for every chunk. */
void random_hops_and_ready(test_random *random, pc_costs *costs);

#endif
