/* given_block.h: a building block of one's own ('Pipeline Parallelism with Controllable Memory', Qi et al. 2024, arXiv
 * 2405.15362, section 3): offsets as rules in d and p, or a number a device; checked, repeated, squeezed and reordered.
 *
 * As rules it is for any number of devices. pc_given_block_make makes the pc_block of p devices, and says what is wrong
 * with it; its generator (generate.h) makes schedules, and is like the named ones to all who ask for one.
 */
#ifndef PC_MODELS_SCHEDULE_GIVEN_BLOCK_H
#define PC_MODELS_SCHEDULE_GIVEN_BLOCK_H

#include "engine/error.h"
#include "models/schedule/block.h"
#include "models/schedule/costs.h"
#include "models/schedule/generate.h"
#include "models/schedule/replay.h"
#include "models/schedule/rule.h"
#include "models/schedule/schedule.h"

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What is done with a block once it is repeated. NONE: it is left as it is, every pass in its cell. SQUEEZE: passes
 * keep their order and start as early as they can. REORDER: that, and then the passes before and behind the middle move
 * into gaps, where that shortens the iteration and no device holds more than before (search/reorder.h). */
typedef enum pc_block_steps { PC_BLOCK_NONE, PC_BLOCK_SQUEEZE, PC_BLOCK_REORDER, PC_BLOCK_STEPS } pc_block_steps;

/* "none", "squeeze", "reorder". */
const char *pc_block_steps_name(pc_block_steps steps);

enum {
    PC_BLOCK_EVERY = -1,           /* every chunk, or microbatch */
    PC_BLOCK_CELLS_MAX = INT32_MAX /* the longest interval and pass, and how far an offset may lie from 0 */
};

/* Where passes of one kind start. */
typedef struct pc_block_line {
    pc_pass_kind kind;
    int chunk;          /* or PC_BLOCK_EVERY */
    int64_t microbatch; /* of the block, or PC_BLOCK_EVERY. In `ends`: of the iteration; from its end where negative */
    bool is_free;       /* a W that starts in the first free cell after its B; no rule and no numbers then */
    pc_rule rule;       /* where it has no numbers */
    int64_t *offset;    /* offset_count numbers, one a device, or NULL; owned, as the rule is */
    int offset_count;
    const char *file; /* where it stands: the draft's place, "" or NULL where nobody wrote it */
    unsigned number;  /* of the file's line */
    char *key;        /* "passes[3]"; owned */
} pc_block_line;

/* What a file says of a block. All that it points to is its own: pc_block_draft_free. */
typedef struct pc_block_draft {
    char name[PC_SCHEDULE_NAME_SIZE];
    char *place; /* the file, "own.yaml" */
    pc_placement placement;
    int devices; /* the one p that it is for; 0: any */
    int chunks;
    pc_rule interval, microbatches; /* of p, v and m */
    int64_t duration[PC_PASS_KINDS];
    pc_block_steps steps;
    pc_block_line *passes;
    int pass_count;
    pc_block_line *ends; /* microbatches of the iteration that start elsewhere than the block says; its beginning and
                          * end, mostly. Cells are from where their own repetition begins, as those of the block */
    int end_count;
} pc_block_draft;

/* Zeroed ones are fine. */
void pc_block_draft_free(pc_block_draft *draft);

/* A block with its generator. */
typedef struct pc_given_block pc_given_block;

/* Takes the draft over: on failure too. PC_ERROR_INPUT where it lacks F, or has not either BW or B and W. */
pc_code pc_given_block_create(pc_block_draft *draft, pc_given_block **given, pc_error *error);
void pc_given_block_free(pc_given_block *given); /* NULL is fine */

/* The given one's. It searches where its steps are REORDER: then it keeps the request's memory limit, or fails. */
const pc_generator *pc_given_block_generator(const pc_given_block *given);
const pc_block_draft *pc_given_block_draft(const pc_given_block *given);

/* Other steps than the file's, before anything is generated; PC_ERROR_INPUT where it cannot be reordered. */
pc_code pc_given_block_set_steps(pc_given_block *given, pc_block_steps steps, pc_error *error);

/* Says where the line is, and which of its keys is to blame, "chunk"; "": all of it. */
void pc_block_line_blame(const pc_block_line *line, const char *key, pc_error *error);

/* Where the pass of a line starts, in cells; PC_ERROR_INPUT says place and device. */
pc_code pc_block_line_offset(const pc_block_line *line, const int64_t values[PC_RULE_NAMES], int64_t *offset,
                             pc_error *error);

/* The block on p devices, for m microbatches; checked: pc_block_check. Free it with pc_block_free. */
pc_code pc_given_block_make(const pc_given_block *given, int devices, int microbatches, pc_block *block,
                            pc_error *error);

/* Which two passes collide, on which device and in which cell of the interval; which pass starts before what it waits
 * for has ended; which one the block lacks. PC_OK where pc_block_is_valid. */
pc_code pc_block_check(const pc_block *block, pc_error *error);

/* The block, repeated for m microbatches: every device's passes by their cells. `ends` as in a draft, or NULL. *cells,
 * where asked for, becomes the cell that every pass starts in, by its position; the caller frees it (pc_free). */
pc_code pc_schedule_of_block(const pc_block *block, const pc_block_line *ends, int end_count, const char *name,
                             int microbatches, pc_schedule *schedule, int64_t **cells, pc_error *error);

/* The same order made shorter within the memory that it takes on every device, and within the limit: REORDER.
 * Replaces the passes. PC_ERROR_INPUT where it cannot be: R, two replicas, a time that is not given, or too little
 * memory. */
pc_code pc_schedule_reorder(const pc_block *block, const pc_costs *costs, pc_memory_limit memory_limit,
                            pc_schedule *schedule, pc_error *error);

/* A replay on the block's own grid: every pass starts where its cell does. A cell is as long as it has to be: every
 * pass ends within its cells, and what waits for it in another part has its transfer by then. */
pc_code pc_given_block_replay(const pc_given_block *given, const pc_schedule *schedule, const pc_costs *costs,
                              bool with_trace, pc_replay *replay, pc_error *error);

#ifdef __cplusplus
}
#endif
#endif
