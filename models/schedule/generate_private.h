/* generate_private.h: what the files of generators share. Private to models/schedule/. */
#ifndef PC_MODELS_SCHEDULE_GENERATE_PRIVATE_H
#define PC_MODELS_SCHEDULE_GENERATE_PRIVATE_H

#include "models/schedule/generate.h"

#include <stddef.h>

/* One stage's order while it is written. */
typedef struct pc_stage_writer {
    pc_pass *next;
    int devices, microbatches, chunks, stage;
    int slices; /* k, chunks of one part; 1 where microbatches are whole */
    pc_schedule *schedule;
} pc_stage_writer;

static inline void pc_stage_put(pc_stage_writer *writer, pc_pass_kind kind, int chunk, int microbatch) {
    *writer->next++ = (pc_pass){.microbatch = microbatch, .chunk = (int16_t)chunk, .kind = (int16_t)kind};
}

/* The next two passes run together (pc_schedule_add_pairs, which the schedule has behind it). */
static inline void pc_stage_begin_pair(const pc_stage_writer *writer) {
    if (writer->schedule->pairs) writer->schedule->pairs[writer->next - writer->schedule->passes] = 1;
}

/* A rule writes all passes of one stage; `extra` is the generator's. */
typedef void pc_stage_rule(pc_stage_writer *writer, int extra);

/* Another one makes the block that they repeat, for a request with its chunks filled in. */
typedef pc_code pc_block_rule(const pc_generator *self, const pc_generate_request *request, pc_block *block,
                              pc_error *error);

/* These are in generate.c, of interleaved 1F1B. The first says what a generator's `extra` comes to: of one chunk it is
 * 1F1B, unless an only stage has F beside BW. The second says how many microbatches go through a chunk before the next
 * chunk's turn. The third says how many F of a stage come before its first F and BW in turn, if there are so many. The
 * fourth gives the chunk and microbatch of a stage's k-th F (or BW), in groups of that size. */
int pc_interleaved_extra(int devices, int chunks, int extra);
int pc_interleaved_group(int devices, int microbatches);
int64_t pc_interleaved_warm_up(int devices, int stage, int chunks, int group, int extra);
pc_pass pc_interleaved_pass(int group, int microbatches, int chunks, pc_pass_kind kind, int64_t k);

/* In generate_blocks.c. An empty block for the request, with the durations of the generator's passes; and a pass of it
 * put into its cell. */
pc_code pc_block_begin(const pc_generator *generator, const pc_generate_request *request, int microbatches,
                       int64_t interval, pc_block *block, pc_error *error);
void pc_block_put(pc_block *block, int device, pc_pass pass, int64_t cell);
pc_block_rule pc_block_of_gpipe, pc_block_of_1f1b, pc_block_of_1f1b_r, pc_block_of_interleaved, pc_block_of_zb_h;

/* Those that search; a generator's `extra`. */
typedef enum pc_searched_schedule {
    PC_SEARCHED_ZB_1P,
    PC_SEARCHED_ZB_2P,
    PC_SEARCHED_ZB_TWO_THIRDS,
    PC_SEARCHED_ZB_V,
    PC_SEARCHED_V_MIN,
    PC_SEARCHED_V_HALF,
    PC_SEARCHED_V_ADAPTIVE,
    PC_SEARCHED_1F1B_V,
    PC_SEARCHED_INTERLEAVED
} pc_searched_schedule;

/* In generate_searched.c. What a name limits each device to, beside what the request does, into named_bytes[0 .. p-1];
 * PC_NO_LIMIT where the request's alone counts, or nothing is held. One search at the request's costs, whose times must
 * be given and whose activations must have sizes, within the request's limit, which has the name's in it. A name's
 * family and effort as a number, and so whether two names differ in no more than their limit. And whether a name makes
 * another effort, `is_tight`, because the request leaves some device less than the name does. */
void pc_searched_limits(const pc_generator *self, const pc_generate_request *request, int64_t *named_bytes);
pc_code pc_searched_find(const pc_generator *self, const pc_generate_request *request, bool is_tight,
                         pc_schedule *schedule, pc_block *block, pc_error *error);
int pc_searched_number(const pc_generator *self);
bool pc_searched_are_one(const pc_generator *a, const pc_generator *b);
bool pc_searched_is_tightened(const pc_generator *self, const pc_generate_request *request, const int64_t *named_bytes);

/* In generate_remembered.c. The same search, or what the request's memo has of it. */
pc_code pc_searched_run(const pc_generator *self, const pc_generate_request *request, bool is_tight,
                        pc_schedule *schedule, pc_block *block, pc_error *error);

/* In generate_answers.c. The times of `making: equal`, for all chunks; and the schedule of a name that searches. */
void pc_searched_equal_times(pc_costs *costs);
pc_code pc_generate_searched(const pc_generator *self, const pc_generate_request *request, pc_schedule *schedule,
                             pc_block *block, pc_error *error);

/* In generate_request.c: pc_generate of a request that has passed its checks. In generate_recomputed.c: what `rule`
 * gives of a schedule that searches, for costs where B recomputes. */
typedef pc_code pc_generate_rule(const pc_generator *generator, const pc_generate_request *request,
                                 pc_schedule *schedule, pc_block *block, pc_error *error);
pc_generate_rule pc_generate_as_told;
pc_code pc_generate_recomputing(const pc_generator *generator, const pc_generate_request *request,
                                pc_generate_rule *rule, pc_schedule *schedule, pc_block *block, pc_error *error);

/* In generate.c: the schedule of a request that has passed its checks, stage by stage. */
pc_code pc_schedule_of_rule(const pc_generator *self, pc_stage_rule *rule, const pc_generate_request *request,
                            pc_schedule *schedule, pc_error *error);

/* In generate_frameworks.c. */
pc_stage_rule pc_write_looped_bfs, pc_write_zb_interleaved;
pc_block_rule pc_block_of_looped_bfs, pc_block_of_zb_interleaved;

/* In generate_dualpipe.c; and how many of a stage's 2m, or m, backward passes each splits, and the bytes that
 * dualpipe-v holds there with the first F of its middle: for equal chunks its peak. */
pc_stage_rule pc_write_dualpipe_v, pc_write_dualpipe;
pc_block_rule pc_block_of_dualpipe_v;
int pc_dualpipe_v_split(int devices, int stage);
int pc_dualpipe_split(int devices, int stage);
int64_t pc_dualpipe_v_held(const pc_costs *costs, int device);

/* In generate_gis.c. */
pc_stage_rule pc_write_gis, pc_write_gis_uniform;
pc_block_rule pc_block_of_gis, pc_block_of_gis_uniform;

/* In generate_slices.c; a generator's `extra`. */
typedef enum pc_slices_schedule {
    PC_SLICES_GPIPE,
    PC_SLICES_1F1B,
    PC_SLICES_ZB_H1,
    PC_SLICES_INTERLEAVED,
    PC_SLICES_ZB_INTERLEAVED
} pc_slices_schedule;
pc_code pc_generate_slices(const pc_generator *self, const pc_generate_request *request, pc_schedule *schedule,
                           pc_block *block, pc_error *error);

/* In generate_vocab.c. */
pc_code pc_generate_vocab(const pc_generator *self, const pc_generate_request *request, pc_schedule *schedule,
                          pc_block *block, pc_error *error);

/* In generate_bidirectional.c. */
pc_stage_rule pc_write_gems, pc_write_chimera;
pc_block_rule pc_block_of_gems, pc_block_of_chimera;

#endif
