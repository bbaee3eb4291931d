/* dependencies.h: where each pass of a schedule stands, and which passes it waits for.
 *
 * The dependencies, in one place for the checker and the replay:
 *   F of part k   waits for F of part k-1
 *   R             waits for F of its own part
 *   B, BW         wait for R of their own part where there is one, else F, and for B or BW of part k+1
 *   W             waits for B of its own part
 *   S             waits for F of the last part
 *   T             waits for S of every stage
 *   B, BW         of the last part wait for S (one barrier) or T (two) of every stage, where there are S and T
 * all of the same microbatch, and so, where there are replicas, of the one replica that it goes through. Where chunks
 * are slices, all of the same slice; and in the same part F of slice j waits for F of slice j-1, and B or BW of it
 * waits for B or BW of slice j+1.
 */
#ifndef PC_MODELS_SCHEDULE_DEPENDENCIES_H
#define PC_MODELS_SCHEDULE_DEPENDENCIES_H

#include "engine/error.h"
#include "engine/marks.h"
#include "models/schedule/schedule.h"

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { PC_NO_PASS = -1, PC_PREDECESSORS_MAX = 3 + PC_VOCAB_DEVICES_MAX };

/* For every (stage, chunk, microbatch, kind) the pass's position in schedule->passes, or PC_NO_PASS. */
typedef struct pc_pass_index {
    const pc_schedule *schedule;
    int32_t *position; /* owned */
} pc_pass_index;

/* PC_ERROR_INPUT, naming stage and place, where a pass is out of range or stands twice. */
pc_code pc_pass_index_create(const pc_schedule *schedule, pc_pass_index *index, pc_error *error);
/* The same; *stage becomes that stage. */
pc_code pc_pass_index_create_at(const pc_schedule *schedule, pc_pass_index *index, int *stage, pc_error *error);
void pc_pass_index_free(pc_pass_index *index);

int32_t pc_pass_position(const pc_pass_index *index, int stage, int chunk, int microbatch, pc_pass_kind kind);

/* An index for pc_pass_is_recomputed alone: where the schedule has no R it is zeroed, and nothing is allocated. */
pc_code pc_pass_index_create_if_recomputing(const pc_schedule *schedule, pc_pass_index *index, pc_error *error);

/* Whether the schedule has an R of the pass's chunk and microbatch on this stage; by a zeroed index, it has not. */
bool pc_pass_is_recomputed(const pc_pass_index *index, int stage, pc_pass pass);

/* A pass that another one waits for. */
typedef struct pc_predecessor {
    int32_t position;
    int32_t stage;
} pc_predecessor;

/* The chunk in which the pass's microbatch, or its slice, finds another part of the model. */
int pc_pass_chunk_in(const pc_schedule *schedule, pc_pass pass, int part);

/* Writes the passes that `pass` of `stage` waits for, its stage's order aside; returns their number. A pass that should
 * be there and is not is left out: pc_schedule_check finds it. */
int pc_pass_predecessors(const pc_pass_index *index, int stage, pc_pass pass,
                         pc_predecessor predecessors[PC_PREDECESSORS_MAX]);

/* The most that a pass of the schedule waits for: what an array for all of them must have room for, a pass. */
int pc_pass_predecessors_most(const pc_schedule *schedule);

/* The one pass of another stage that `pass` of `stage` waits for: F for the F of the part before, B and BW for that of
 * the part behind. False where there is none, or the part is on the same stage; S, T and what waits for them wait for
 * collectives of all stages, which are no such transfers. */
PC_MUST_USE bool pc_pass_sender(const pc_pass_index *index, int stage, pc_pass pass, pc_predecessor *sender);

/* Whether a pass waits for `before` by a collective of vocabulary parallelism (pc_costs_vocab_ps). */
static inline bool pc_pass_is_of_vocab(pc_pass before, pc_pass pass) {
    return before.kind >= PC_PASS_S || pass.kind >= PC_PASS_S;
}

/* The stage whose order holds position `position`. */
int pc_stage_of_position(const pc_schedule *schedule, int64_t position);

/* "F3", or "F3.1" (microbatch.chunk) where stages have several chunks. Needs 32 characters. */
enum { PC_PASS_NAME_SIZE = 32 };
void pc_pass_name(const pc_schedule *schedule, pc_pass pass, char name[PC_PASS_NAME_SIZE]);

#ifdef __cplusplus
}
#endif
#endif
