/* iteration_recount.h: a second way to come to an iteration's time, for tests only: from operations and collectives up,
 * in seconds, over plain loops, with its own longest path. Closed costs; ZeRO 0 and 1; no recomputation.
 */
#ifndef PC_TESTS_ITERATION_RECOUNT_H
#define PC_TESTS_ITERATION_RECOUNT_H

#include "models/training/iteration.h"

double recount_iteration(const pc_iteration_spec *spec);

#endif
