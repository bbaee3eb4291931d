/* longest_path.h: a second way to time a schedule, for tests only.
 *
 * Shares no code with the engine, the checker or the replay: it builds its own graph from the definition of a pipeline
 * and relaxes it until nothing changes (Bellman and Ford's longest path), the slowest and plainest way there is.
 */
#ifndef PC_TESTS_LONGEST_PATH_H
#define PC_TESTS_LONGEST_PATH_H

#include "models/schedule/costs.h"
#include "models/schedule/schedule.h"

#include <stdbool.h>

/* Writes start and end of every pass, in the order of schedule->passes. False where the graph has a cycle. */
bool longest_path(const pc_schedule *schedule, const pc_costs *costs, pc_time *start, pc_time *end);

/* The same with a duration of its own for every pass, and a delay for what it waits for from another stage. */
bool longest_path_each(const pc_schedule *schedule, const pc_costs *costs, const pc_time *duration,
                       const pc_time *delay, pc_time *start, pc_time *end);

#endif
