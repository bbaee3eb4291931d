/* known.h: how short the schedules of equal passes are that are known. Private to the generators.
 *
 * This is for two chunks folded to a V, all passes equally long, transfers free, W giving all memory back, m >= 2p and
 * room for x chunks on every device. The shortest schedules known idle 6p-1-3x passes up to x = 2p-2, then 3 and, from
 * x = 2p on, none (the adaptive scheduler of 'Controllable Memory'). From V-Min's memory on we have found none shorter
 * on 12 and 32 devices. It is no bound: but where an instance is so large that a search takes long, one that has come
 * so far ends.
 */
#ifndef PC_MODELS_SCHEDULE_SEARCH_KNOWN_H
#define PC_MODELS_SCHEDULE_SEARCH_KNOWN_H

#include "models/schedule/search/bound.h"
#include "models/schedule/search/instance.h"

#include <stdbool.h>

/* Whether it has so many passes that a search takes long. */
static inline bool pc_instance_is_large(const pc_instance *instance) {
    return instance->devices * instance->passes >= 8192;
}

/* That span; 0 for all other instances. */
pc_time pc_known_span(const pc_instance *instance);

/* Where a search of this instance may end: of a large one for which there is one at the known span, and closer bounds
 * are not asked for; else pc_bound_first. */
pc_bound pc_known_first(const pc_instance *instance);

#endif
