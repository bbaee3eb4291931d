/* repeat.h: a building block, put down again and again: the first order of an instance. Private to the generators. */
#ifndef PC_MODELS_SCHEDULE_SEARCH_REPEAT_H
#define PC_MODELS_SCHEDULE_SEARCH_REPEAT_H

#include "models/schedule/block.h"
#include "models/schedule/search/instance.h"

/* Writes order->pass: every device's passes by their start in the repeated block; of the last repetition only the
 * microbatches that there are. A valid block gives an order without deadlock. */
void pc_repeat_block(const pc_instance *instance, const pc_block *block, pc_instance_order *order);

/* One microbatch after the other, which needs memory for one microbatch only. */
void pc_repeat_one_by_one(const pc_instance *instance, pc_instance_order *order);

#endif
