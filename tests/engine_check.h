/* engine_check.h: schedules and costs to run by the engine, and what must hold of what it saw. */
#ifndef PC_TESTS_ENGINE_CHECK_H
#define PC_TESTS_ENGINE_CHECK_H

#include "models/schedule/replay.h"
#include "tests/memory_limits.h"
#include "tests/support.h"

/* With its trace; the test fails where it cannot be run. */
pc_replay replay_of(const pc_schedule *schedule, const pc_costs *costs, const test_limits *limits,
                    pc_engine_mode engine, bool waits);

/* Whether the order needs more memory than some device has. */
bool is_too_small(const pc_schedule *s, const pc_costs *costs, const test_limits *limits);

/* One byte a picosecond, or a third of one, so that times are rounded. */
void over_links(test_random *random, pc_costs *costs);

/* A share of what the order needs: about as often enough as not. */
void limit_memory(test_random *random, const pc_schedule *s, const pc_costs *costs, test_limits *limits);

/* Costs of any kind, with hops and times from which on chunks may run. */
void draw_costs(test_random *random, const pc_schedule *shape, pc_costs *costs);

/* What must hold of links, flows, queues and memories of a run by the engine. */
void check_engine_trace(const pc_schedule *s, const pc_costs *costs, const test_limits *limits,
                        const pc_replay *replay);

#endif
