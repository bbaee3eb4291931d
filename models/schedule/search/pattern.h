/* pattern.h: families of building blocks, each block named by a few small numbers, so that a search can go through
 * thousands of them. Private to the generators.
 *
 * A block follows from where the passes of the first device stand in the interval and from how far each next device
 * shifts them: F and the B of the last chunk run down the devices; with two chunks folded to a V, the F of the second
 * and the B of the first run back up. Where the model folds, the earliest cell that does not collide is taken.
 */
#ifndef PC_MODELS_SCHEDULE_SEARCH_PATTERN_H
#define PC_MODELS_SCHEDULE_SEARCH_PATTERN_H

#include "engine/error.h"
#include "models/schedule/block.h"

#include <stdbool.h>

/* V_SHIFTED: two chunks, B and W apart; every device shifts the passes that run down by `shift` cells, by `shift_after`
 *   from device `turn` on, and those that run up by one cell back: the search space of 'Controllable Memory', appendix.
 * V_FREE: two chunks; every device takes the least shifts that keep it free of collisions, `shift` saying which passes
 *   shall wait where there is a choice. With W, or with BW.
 * V_THIRDS: two chunks, BW, in an interval of 6: F shift by one cell a device and BW by three on average. The
 *   activations of a device's two chunks then live for about 8p cells together: two thirds of 1F1B's memory.
 * LINEAR_WARM: one chunk, B and W apart, in an interval of 3: device d runs min(shift/4 * (p-1-d), turn - d) F before
 *   its first B, rounded, and its W come shift_after/2 * d intervals behind the B, rounded down. ZB-H1 is shift 4 and
 *   shift_after 2, ZB-H2 twice that.
 * LINEAR_FREE: one chunk; F down and B up by the least shifts that do not collide. With W, or with BW.
 * LINEAR_PAIR: one chunk, two microbatches in an interval of 6 that never collide: B comes up by one cell a device, and
 *   the memory is two thirds of 1F1B's ('Controllable Memory', appendix I). */
typedef enum pc_pattern_family {
    PC_PATTERN_V_SHIFTED,
    PC_PATTERN_V_FREE,
    PC_PATTERN_V_THIRDS,
    PC_PATTERN_LINEAR_WARM,
    PC_PATTERN_LINEAR_FREE,
    PC_PATTERN_LINEAR_PAIR
} pc_pattern_family;

typedef struct pc_pattern {
    pc_pattern_family family;
    int32_t interval;
    int32_t f1, b1, b0; /* cells of F of chunk 1, B of chunk 1 and B of chunk 0 on device 0, whose F of chunk 0 is 0 */
    int32_t shift, shift_after; /* see the families */
    int32_t turn;
    bool splits;
} pc_pattern;

/* The number of chunks and of microbatches of the blocks of a family. */
int pc_pattern_chunks(pc_pattern_family family);
int pc_pattern_microbatches(pc_pattern_family family);

/* Whether blocks of this family shall be packed (reorder.h), not only repeated. */
bool pc_pattern_is_packed(pc_pattern_family family);

/* Writes the block into `block`, which pc_block_create has made for this family's chunks and microbatches and for any
 * number of devices. False where its passes would collide. */
bool pc_pattern_build(const pc_pattern *pattern, pc_block *block);

#endif
