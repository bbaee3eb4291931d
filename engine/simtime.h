/* simtime.h: simulated time, in whole picoseconds since the start of the simulation.
 *
 * A signed 64-bit count reaches 106 days. Whole numbers add up the same in every order, so that two ways to compute a
 * schedule can be compared for equality. One function rounds seconds; overflow is an error, never a wrap.
 */
#ifndef PC_ENGINE_SIMTIME_H
#define PC_ENGINE_SIMTIME_H

#include "engine/marks.h"

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef int64_t pc_time;

#define PC_TIME_MAX               INT64_MAX
#define PC_PICOSECONDS_PER_SECOND INT64_C(1000000000000)

/* Rounds `seconds` to the nearest picosecond (halves away from zero). False, and *time untouched, where seconds is not
 * a number, negative, or too large to count. */
PC_MUST_USE bool pc_time_from_seconds(double seconds, pc_time *time);

/* The same time in seconds, for output; exact to 53 bits. */
double pc_time_to_seconds(pc_time time);

/* a + b for non-negative times; false, and *sum untouched, on overflow. */
static inline bool pc_time_add(pc_time a, pc_time b, pc_time *sum) {
    if (a > PC_TIME_MAX - b) return false;
    *sum = a + b;
    return true;
}

#ifdef __cplusplus
}
#endif
#endif
