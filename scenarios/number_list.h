/* number_list.h: lists of whole numbers, whose entries may stand for several. Private to scenarios/.
 *
 *   1..8            1, 2, ... 8
 *   512..16384x2    512, 1024, ... 16384; also with * in place of x
 *   8..64+8         8, 16, ... 64
 *   1,2,4..16       behind two numbers the range goes on as they do, by their step or by their ratio: 1, 2, 4, 8, 16
 *
 * Without a step a range of more than PC_GPU_RANGE_MAX numbers of GPUs doubles if that leads to its end: 512..16384.
 *
 * A range ends with its last number; one that would step over it is refused, and so is one behind a single number,
 * which says neither step nor ratio.
 */
#ifndef PC_SCENARIOS_NUMBER_LIST_H
#define PC_SCENARIOS_NUMBER_LIST_H

#include "engine/error.h"
#include "scenarios/setting.h"

#include <stdbool.h>

enum { PC_RANGE_VALUES_MAX = 4096, PC_GPU_RANGE_MAX = 64 };

/* Whether the entry is a range. */
bool pc_number_is_range(const char *entry);

/* Takes one value more; what it returns, where not PC_OK, ends the reading. */
typedef pc_code pc_number_take(void *context, pc_value value, pc_error *error);

/* Gives `take` the values of entry `index` of a list of texts, values of `key`, one for which pc_key_is_whole. The
 * message of what is refused lacks its place. */
pc_code pc_number_entry_read(pc_key key, const pc_node *list, unsigned index, pc_number_take *take, void *context,
                             pc_error *error);

#endif
