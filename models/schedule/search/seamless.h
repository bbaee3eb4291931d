/* seamless.h: building blocks of one microbatch for a V of two chunks, in a given interval and within the limits of
 * memory; if the interval is the work of every device, exactly whether there is one. Private to the generators.
 *
 * How the devices depend on each other is little. On device d let F0 start at x, F1 at y, B1 at z and B0 at u. Whether
 * passes collide, modulo the interval T, and what is held, depend on A = y - x, C = z - y, D = u - z and on where the
 * two W stand: on d alone. Between devices d and d' = d+1 the microbatch's way down and up again says, with passes'
 * names for their times, and c for a transfer down, c' for one up:
 *
 *     x' = x + F0 + c + s1,    y = y' + F1' + c' + s2,    z' = z + B1 + c + s3,    u = u' + B0' + c' + s4,   all s >= 0
 *
 * and so, with a = A - A' - (F0 + c + F1' + c'), g = C' - C - (B1 + c + F1' + c') and h = D - D' - (B1 + c + B0' + c'):
 *
 *     s1 + s2 = a,   s2 + s3 = g,   s3 + s4 = h:    which some s >= 0 solve if a, g, h >= 0 and a + h >= g.
 *
 * Without idle time the six passes fill the circle of T in one of 5! orders. Then A, C and D are known but for whole
 * turns, of which the limit allows few. So all states of a device can be listed, and the devices gone through from the
 * last one to the first, keeping those states that some state of the device behind allows. Nothing is lost thereby: if
 * no block is found no block of one microbatch without idle time exists.
 *
 * A device that idles has room to spare, which is put between its passes in a few equal pieces in all ways. That may
 * miss blocks.
 */
#ifndef PC_MODELS_SCHEDULE_SEARCH_SEAMLESS_H
#define PC_MODELS_SCHEDULE_SEARCH_SEAMLESS_H

#include "engine/error.h"
#include "engine/simtime.h"
#include "models/schedule/search/fitted.h"
#include "models/schedule/search/instance.h"

#include <stdbool.h>
#include <stdint.h>

/* Whether blocks can be made: a V of two chunks, B and W apart, every pass of some time. */
bool pc_seamless_applies(const pc_instance *instance);

/* The longest work of a device for one microbatch: no interval is shorter. */
pc_time pc_seamless_work(const pc_instance *instance);

/* How much is tried. */
typedef struct pc_seamless_effort {
    int turns; /* from F0 to F1, and from B1 to B0, a microbatch takes the least turns of the interval that it can, or
                * so many less one more */
    int rest_turns; /* the same from F1 to B1 */
    int pieces;     /* into so many pieces the idle time of a device is cut, if it has any; at least 1 */
    int states;     /* so many are kept of each device */
} pc_seamless_effort;

/* All; and for searches, which want a block soon. */
#define PC_SEAMLESS_WHOLE ((pc_seamless_effort){.turns = 64, .rest_turns = 64, .pieces = 2, .states = INT32_MAX / 2})
#define PC_SEAMLESS_QUICK ((pc_seamless_effort){.turns = 2, .rest_turns = 16, .pieces = 1, .states = 64})

/* A block of this interval: *block is of no microbatches if none was found, and if `interval` is less than the work.
 * The instance must be one that applies. That there is none is certain if every device works for all of the interval,
 * all have limits, none has room for more than 64 intervals of both chunks, and the effort is PC_SEAMLESS_WHOLE. Free
 * block->start with pc_free. */
pc_code pc_seamless_find(const pc_instance *instance, pc_time interval, pc_seamless_effort effort,
                         pc_fitted_block *block, pc_error *error);

/* A block for a search to start from, as a list of one: quickly, in the interval of the work. The list is empty if none
 * is found or asked for: where nothing is limited, and where all passes are as long as each other, which patterns suit
 * (pattern.h). Free with pc_fitted_free. */
pc_code pc_seamless_start(const pc_instance *instance, pc_fitted *fitted, pc_error *error);

#endif
