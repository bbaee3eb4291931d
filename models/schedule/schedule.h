/* schedule.h: a pipeline schedule as data: for every stage, the order of its passes; and where the model's parts lie.
 *
 * A stage is one of the p devices of a pipeline. A chunk is one of the v model parts that a stage holds. A part is one
 * of the p * v slices of the model, numbered in the order in which a forward pass visits them.
 */
#ifndef PC_MODELS_SCHEDULE_SCHEDULE_H
#define PC_MODELS_SCHEDULE_SCHEDULE_H

#include "engine/error.h"

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* F forward; B backward for the input; W backward for the weights; BW both, unsplit; R recompute of what F did not
 * keep. S and T are of vocabulary parallelism (Yeung et al. 2024, arXiv 2411.05288), where every stage has a slice of
 * the output layer: S makes the logits of the slice, T its gradients. A stage has one of each a microbatch, under chunk
 * 0. The values index arrays and stand in results files: never renumber them. */
typedef enum pc_pass_kind {
    PC_PASS_F,
    PC_PASS_B,
    PC_PASS_W,
    PC_PASS_BW,
    PC_PASS_R,
    PC_PASS_S,
    PC_PASS_T,
    PC_PASS_KINDS
} pc_pass_kind;

typedef struct pc_pass {
    int32_t microbatch; /* 0 .. m-1 */
    int16_t chunk;      /* 0 .. v-1 */
    int16_t kind;       /* pc_pass_kind */
} pc_pass;

/* chunk -> part. LINEAR: one chunk, part = stage. INTERLEAVED: chunk c of stage d is part c*p + d. V: even chunks run
 * down the stages as interleaved ones do, odd chunks run back up (part c*p + p-1-d), so that the first part and, with
 * an even v, the last part share stage 0.
 * BIDIRECTIONAL: two replicas of a model of p parts, and so always two chunks. Chunk 0 of stage d is part d of the one
 * that runs down, chunk 1 is part p-1-d of the one that runs up. Even microbatches go down, odd ones up, each through
 * one replica only (Chimera, Li & Hoefler 2021, arXiv 2107.06925). Each chunk is a whole stage of the model.
 * SLICES: a microbatch is cut along its sequence, and chunk c of stage d is part d of the model with the microbatch's
 * slice c (Seq1F1B, Sun et al. 2024, arXiv 2406.03488). On every stage F of a slice needs that of the slice before it,
 * whose keys and values it reads. B needs that of the slice behind it, which has added to the gradients of those.
 * Stages of several parts are PC_PLACEMENT_OF_SLICES(k): chunk c is slice c % k in part (c / k) * p + d. */
typedef enum pc_placement {
    PC_PLACEMENT_LINEAR,
    PC_PLACEMENT_INTERLEAVED,
    PC_PLACEMENT_V,
    PC_PLACEMENT_BIDIRECTIONAL,
    PC_PLACEMENT_SLICES,
    PC_PLACEMENTS,
    PC_PLACEMENT_LAST = 0xffff /* all that PC_PLACEMENT_OF_SLICES gives lies below */
} pc_placement;

/* SLICES of k slices, where a stage has chunks / k parts; 1 <= k <= PC_CHUNKS_MAX. The placement has the number in it:
 * wherever it goes, it says alone which part and which slice a chunk is. */
#define PC_PLACEMENT_OF_SLICES(k) ((pc_placement)((int)PC_PLACEMENT_SLICES + 16 * (k)))

/* Where all stages of a vocabulary-parallel schedule wait for each other. ONE (the paper's Vocab-2): behind S, before T
 * and before the backward pass of the last part. TWO (Vocab-1): behind S before T, and behind T before that backward
 * pass. */
typedef enum pc_barriers { PC_BARRIERS_NONE, PC_BARRIERS_ONE, PC_BARRIERS_TWO } pc_barriers;

enum {
    PC_VOCAB_DEVICES_MAX = 128, /* p of a schedule with barriers */
    PC_SCHEDULE_NAME_SIZE = 64,
    PC_DEVICES_MAX = 65536,       /* p */
    PC_CHUNKS_MAX = 1024,         /* v */
    PC_MICROBATCHES_MAX = 1 << 24 /* m */
};

/* The most passes a schedule may have, over all stages. A replay of so many takes about 10 GB with transfers that are
 * delays, and 18 GB with transfers over links. */
#define PC_PASSES_MAX (INT64_C(1) << 26)

typedef struct pc_schedule {
    char name[PC_SCHEDULE_NAME_SIZE];
    int devices;      /* p, at least 1 */
    int microbatches; /* m, at least 1 */
    int chunks;       /* v, at least 1 */
    pc_placement placement;
    pc_barriers barriers; /* whether there are S and T, and what the last part's backward pass waits for */
    int64_t *offsets;     /* p + 1 numbers: the passes of stage d are passes[offsets[d]] to passes[offsets[d+1] - 1] */
    pc_pass *passes;      /* offsets[p] of them; owned, as offsets are, and freed by pc_schedule_free */
    uint8_t *pairs; /* owned; by position, 1 where an F runs together with the B or BW behind it; NULL: none does */
} pc_schedule;

/* "F", "B", "W", "BW", "R", "S", "T"; "linear", "interleaved", "v", "bidirectional", "slices", however many. */
const char *pc_pass_kind_name(pc_pass_kind kind);
extern const char *const pc_pass_kind_names[PC_PASS_KINDS + 1]; /* ends with NULL, as the next */
extern const char *const pc_placement_names[PC_PLACEMENTS + 1];
const char *pc_placement_name(pc_placement placement);

/* Whether chunks are slices of microbatches; and k, of how many: all of a stage's chunks, unless the placement says it,
 * and 1 where microbatches are whole. */
static inline bool pc_placement_has_slices(pc_placement placement) {
    return (int)placement % 16 == (int)PC_PLACEMENT_SLICES;
}
static inline int pc_placement_slices(pc_placement placement, int chunks) {
    if (!pc_placement_has_slices(placement)) return 1;
    return placement == PC_PLACEMENT_SLICES ? chunks : (int)placement / 16;
}

/* Whether a number from outside is a placement, for so many chunks a stage. */
bool pc_placement_is_known(int64_t placement, int64_t chunks);

/* The part that chunk `chunk` of stage `stage` holds. And back: the stage and the chunk in which `microbatch` finds
 * `part`; only where there are replicas does that depend on the microbatch. Of slices, all of which it finds there, the
 * chunk is the first. Arguments must be in range. */
int pc_placement_part(pc_placement placement, int devices, int stage, int chunk);
int pc_placement_stage(pc_placement placement, int devices, int part, int microbatch);
int pc_placement_chunk(pc_placement placement, int devices, int part, int microbatch);

/* Whether `microbatch` goes through the chunks of this number: every one does, but for replicas. */
bool pc_placement_visits(pc_placement placement, int chunk, int microbatch);

/* Whether every microbatch goes whole through one model, each chunk being a part of its own: neither replicas nor
 * slices. What searches, improves or repeats orders knows these alone. */
static inline bool pc_placement_is_plain(pc_placement placement) {
    return placement < PC_PLACEMENT_BIDIRECTIONAL;
}

/* The parts that a microbatch goes through: p*v, or p where the chunks are replicas, and p*v/k where they are k slices;
 * and how many of a stage's v chunks it visits, one share of the stage each. */
int pc_placement_parts(pc_placement placement, int devices, int chunks);
int pc_placement_visited(pc_placement placement, int chunks);

/* PC_OK where p, m, v are within the limits above and 3*p*m*v (F, B and W) within PC_PASSES_MAX; otherwise
 * PC_ERROR_INPUT and a message that names the number and the range. */
pc_code pc_schedule_check_size(int64_t devices, int64_t microbatches, int64_t chunks, pc_error *error);

/* An empty schedule of the given shape with room for `passes_per_stage[d]` passes on stage d (offsets filled in, the
 * passes zeroed). The caller fills them in. */
pc_code pc_schedule_create(const char *name, int devices, int microbatches, int chunks, pc_placement placement,
                           const int64_t *passes_per_stage, pc_schedule *schedule, pc_error *error);

/* Room for pairs, none marked yet. PyTorch's runtime calls a pair OVERLAP_F_B; DeepSeek-V3 (arXiv 2412.19437) and
 * Megatron-LM's combined 1F1B run such ones. Both passes start when the inputs of both are there, and end together. */
pc_code pc_schedule_add_pairs(pc_schedule *schedule, pc_error *error);

/* Whether the pass at the position begins a pair, and whether it is the second of one. */
static inline bool pc_schedule_pairs_at(const pc_schedule *schedule, int64_t position) {
    return schedule->pairs && schedule->pairs[position];
}
static inline bool pc_schedule_is_second(const pc_schedule *schedule, int64_t position) {
    return position > 0 && pc_schedule_pairs_at(schedule, position - 1);
}

/* PC_ERROR_INPUT, naming stage and place, where a pair is not an F and the B or BW of something else behind it. */
pc_code pc_schedule_check_pairs(const pc_schedule *schedule, pc_error *error);

/* A copy with memory of its own. */
pc_code pc_schedule_copy(const pc_schedule *from, pc_schedule *to, pc_error *error);

/* Frees what the schedule owns and zeroes it; a zeroed one is fine. */
void pc_schedule_free(pc_schedule *schedule);

/* What `barriers` has to be for these passes: NONE without S; TWO where the last part's first backward pass stands
 * behind the T of its microbatch on its stage; else ONE. */
pc_barriers pc_schedule_find_barriers(const pc_schedule *schedule);

/* Whether the schedule has passes of this kind. */
bool pc_schedule_has(const pc_schedule *schedule, pc_pass_kind kind);

/* Whether the stage recomputes what `pass` belongs to: has an R of its chunk and microbatch. Looks through the stage's
 * whole order; to ask often, ask pc_pass_is_recomputed. */
bool pc_schedule_recomputes(const pc_schedule *schedule, int stage, pc_pass pass);

#ifdef __cplusplus
}
#endif
#endif
