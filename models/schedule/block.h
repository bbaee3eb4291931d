/* block.h: building blocks, the pattern that a schedule repeats ('Pipeline Parallelism with Controllable Memory', Qi et
 * al. 2024, arXiv 2405.15362, section 3).
 *
 * A block says when every pass of one microbatch starts on every stage, from the block's own zero. A schedule is the
 * block put down again every `interval`. Where the passes of one microbatch would collide with those of the next, a
 * block may hold several microbatches. With replicas it holds an even number of them, and a microbatch's passes stand
 * in the chunks that it visits (pc_placement_visits) alone.
 *
 * Time in a block is counted in cells, the length of one F, B or W of a chunk where all are equal; a BW takes two.
 * Costs that are not equal stretch a schedule later, when its order stands.
 */
#ifndef PC_MODELS_SCHEDULE_BLOCK_H
#define PC_MODELS_SCHEDULE_BLOCK_H

#include "engine/error.h"
#include "models/schedule/costs.h"
#include "models/schedule/schedule.h"

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct pc_block {
    pc_placement placement;
    int devices;       /* p */
    int chunks;        /* v */
    int microbatches;  /* in one block; mostly 1 */
    int64_t interval;  /* cells from one repetition to the next */
    int64_t *start;    /* [microbatches][devices][chunks][PC_PASS_KINDS], in cells; PC_TIME_NOT_GIVEN where there is no
                        * such pass; owned: pc_block_free */
    int64_t *duration; /* [PC_PASS_KINDS], in cells; 0 where there is no such pass; owned */
} pc_block;

/* Index into start. */
static inline int64_t pc_block_index(const pc_block *block, int microbatch, int device, int chunk, int kind) {
    return (((int64_t)microbatch * block->devices + device) * block->chunks + chunk) * PC_PASS_KINDS + kind;
}

static inline int64_t pc_block_start(const pc_block *block, int microbatch, int device, int chunk, int kind) {
    return block->start[pc_block_index(block, microbatch, device, chunk, kind)];
}

/* A block without passes and with interval 0. */
pc_code pc_block_create(pc_placement placement, int devices, int chunks, int microbatches, pc_block *block,
                        pc_error *error);

/* Frees what the block owns and zeroes it; a zeroed one is fine. */
void pc_block_free(pc_block *block);

/* Whether no two passes of a device overlap when the block is repeated every interval, and every pass starts after
 * those it waits for have ended (an F after the F of the part before, and so on). Every pass that its microbatches have
 * must stand in it. */
bool pc_block_is_valid(const pc_block *block);

/* How long the activation of a chunk, which the microbatch visits, is held, in cells: from the start of its F to the
 * end of its W, or BW. */
int64_t pc_block_lifespan(const pc_block *block, int microbatch, int device, int chunk);

/* The bound of 'Controllable Memory' on a device's memory when the block is repeated: the sum over the chunks of
 * ceil(lifespan / interval) times the chunk's activation, for every microbatch of the block; in chunks, each
 * counting 1. The fewer microbatches a block holds the closer it is: many short lives in a long interval count as one
 * each. */
int64_t pc_block_peak_bound(const pc_block *block, int device);

/* The most memory a device really holds when the block is repeated for m microbatches, or a few more where blocks of
 * several are to be whole. In bytes; B gives back its share, and R, or a B that recomputes, takes what F did not
 * keep. Never more than the bound. */
int64_t pc_block_peak(const pc_block *block, const pc_costs *costs, int device, int microbatches);

/* The block that a schedule repeats in its middle, of one or two microbatches. With every pass as long as its cells,
 * transfers free, and as early as it can run, there are two intervals there, one behind the other, in which all devices
 * do the same for the next microbatch or two. An empty block (no devices) where there are none: the iteration is too
 * short, or what it repeats is longer. The schedule must have passed pc_schedule_check. Free it with pc_block_free. */
pc_code pc_block_of_schedule(const pc_schedule *schedule, pc_block *block, pc_error *error);

#ifdef __cplusplus
}
#endif
#endif
