/* sampler.h: private to calib/: when there are enough samples, when a clock has settled, what still fits into the time.
 * Pure decisions; nothing here looks at a clock or a device.
 */
#ifndef PC_CALIB_DEVICE_SAMPLER_H
#define PC_CALIB_DEVICE_SAMPLER_H

#include "engine/api.h"

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- samples of a shape ---- */

typedef struct pc_sampler_rule {
    int32_t least, most; /* samples */
    double steadiness;   /* by how much the relative inter-quartile range may differ, as a fraction of it */
    double floor;        /* ranges below this (a fraction of the median) are steady whatever they do */
    double limit_s;      /* of a shape; `least` samples are taken all the same */
} pc_sampler_rule;

/* 30 to 200 samples, 10%, 0.2%, and this limit. */
PC_API pc_sampler_rule pc_sampler_rule_default(double limit_s);

/* Whether these `count` samples, in the order in which they came, `spent_s` seconds after the first began, are enough:
 * the relative inter-quartile range of all agrees with that of the last two thirds. `room` takes `count` numbers. */
PC_API bool pc_sampler_is_done(const pc_sampler_rule *rule, const double *samples, int64_t count, double spent_s,
                               double *room);

/* ---- settling ---- */

/* Readings of one number that should stop changing: zero it, then add. */
typedef struct pc_settling {
    bool is_begun;
    double since_s, least, most; /* of the readings since then, which lie within the tolerance of each other */
} pc_settling;

/* Adds a reading, above 0, taken at `at_s`; true once all readings of the last `window_s` lie within `tolerance` (a
 * fraction) of each other. NaN begins anew. */
PC_API bool pc_settling_add(pc_settling *settling, double at_s, double reading, double window_s, double tolerance);

/* ---- time ---- */

/* How the time for measuring is spent: what an estimate says, times what estimates were off by so far. */
typedef struct pc_budget {
    double end_s;  /* on the caller's clock; INFINITY: no end */
    double factor; /* what things took over what was estimated: a running mean, starts at 1 */
} pc_budget;

PC_API pc_budget pc_budget_until(double end_s);
/* Whether something estimated at `estimate_s` ends in time, with a fifth to spare, if begun at `now_s`. */
PC_API bool pc_budget_allows(const pc_budget *budget, double estimate_s, double now_s);
/* It took `actual_s`. */
PC_API void pc_budget_learn(pc_budget *budget, double estimate_s, double actual_s);

#ifdef __cplusplus
}
#endif
#endif
