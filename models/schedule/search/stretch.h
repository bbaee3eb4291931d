/* stretch.h: a longer iteration from a short one, by repeating the middle. Private to the generators. */
#ifndef PC_MODELS_SCHEDULE_SEARCH_STRETCH_H
#define PC_MODELS_SCHEDULE_SEARCH_STRETCH_H

#include "engine/error.h"
#include "models/schedule/search/instance.h"

#include <stdbool.h>

/* Writes into order->pass an order for `full`, which is the instance `brief` with more microbatches: that of
 * `brief_order`, with the microbatches put in where its middle repeats itself best; `attempt` 1 and 2 take the next
 * best places. Only if the middle is truly periodic is the result sure to be free of deadlock and within the limits:
 * squeeze it to see.
 */
enum { PC_STRETCH_ATTEMPTS = 3 };
pc_code pc_stretch(const pc_instance *brief, const pc_instance_order *brief_order, int attempt, const pc_instance *full,
                   pc_instance_order *order, pc_error *error);

/* The length for a brief order, at least `least`, that can be stretched to m: the two differ by a multiple of all
 * periods that are looked for. m itself where that is no longer. */
int pc_stretch_length(int least, int microbatches);

#endif
