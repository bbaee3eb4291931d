/* block_fill.h: W where a block leaves cells free. Private to models/schedule/. */
#ifndef PC_MODELS_SCHEDULE_BLOCK_FILL_H
#define PC_MODELS_SCHEDULE_BLOCK_FILL_H

#include "engine/error.h"
#include "models/schedule/block.h"

#include <stdbool.h>

/* Puts every W of the listed chunks and microbatches, is_free[microbatch * chunks + chunk], into the first free cells
 * of the interval after its B; of several the one that finds them nearest goes first, as 'Controllable Memory' fills
 * its blocks. All other passes stand. PC_ERROR_INPUT: no cells are left, or there is too much to look at. */
pc_code pc_block_fill_w(const bool *is_free, pc_block *block, pc_error *error);

#endif
