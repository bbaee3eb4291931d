/* The static schedules. Each is one rule that writes the passes of one stage; pc_schedule_generate does the rest.
 *
 * All rules are of the shape: w passes F first (the warm-up), then F and a backward pass in turn, then the backward
 * passes that are left. The families differ in w, in which chunk comes when, and in where W goes. Those of two replicas
 * stand in generate_bidirectional.c, those that frameworks brought in generate_frameworks.c, those of slices in
 * generate_slices.c. How a schedule is asked for is in generate_request.c.
 */
#include "models/schedule/generate_private.h"

#include "engine/alloc.h"
#include "engine/numbers.h"

#include <stdio.h>
#include <string.h>

/* GPipe (Huang et al. 2019, arXiv 1811.06965): every F, then every backward pass, in the same order.
 * With equal stages and no transfer time the bubble is (p-1)(F+B+W); all m microbatches are held at once. */
static void write_gpipe(pc_stage_writer *writer, int extra) {
    (void)extra;
    for (int i = 0; i < writer->microbatches; i++) pc_stage_put(writer, PC_PASS_F, 0, i);
    for (int i = 0; i < writer->microbatches; i++) pc_stage_put(writer, PC_PASS_BW, 0, i);
}

/* The order of 1F1B, with or without an R before each backward pass. */
static void put_1f1b(pc_stage_writer *writer, int warm_up, bool recomputes) {
    int m = writer->microbatches;
    warm_up = pc_min(m, warm_up);
    for (int i = 0; i < warm_up; i++) pc_stage_put(writer, PC_PASS_F, 0, i);
    for (int i = 0; i < m; i++) {
        if (warm_up + i < m) pc_stage_put(writer, PC_PASS_F, 0, warm_up + i);
        if (recomputes) pc_stage_put(writer, PC_PASS_R, 0, i);
        pc_stage_put(writer, PC_PASS_BW, 0, i);
    }
}

/* 1F1B (PipeDream-Flush; Narayanan et al. 2021, arXiv 2006.09503): stage d warms up with p-1-d F, so that it holds at
 * most p-d microbatches; bubble (p-1)(F+B+W). `extra` 2 doubles the warm-up: eager 1F1B (Zhuang et al. 2023, arXiv
 * 2211.05322), which hides transfers behind passes and holds up to 2(p-d)-1. */
static void write_1f1b(pc_stage_writer *writer, int extra) {
    put_1f1b(writer, extra * (writer->devices - 1 - writer->stage), false);
}

/* 1F1B with full recomputation (Chen et al. 2016, arXiv 1604.06174; Korthikanti et al. 2022, arXiv 2205.05198): as
 * above, with an R right before each backward pass. R needs only what its own F kept, so that it fills the wait for the
 * gradient. The last stage works m(2F+B+W) without a pause; before it p-1 F go down, and after it p-1 backward passes
 * go up. No stage takes longer. Bubble, R counted as busy: (p-1)(F+B+W), as 1F1B has. With a share k of an activation
 * kept, stage d holds (p-d) k, and 1-k more while it is at a backward pass. */
static void write_1f1b_r(pc_stage_writer *writer, int extra) {
    (void)extra;
    put_1f1b(writer, writer->devices - 1 - writer->stage, true);
}

/* As Megatron-LM has it (core/pipeline_parallel/schedules.py, microbatch_group_size_per_vp_stage): a group is at least
 * p and at most m microbatches, and so is the last one, which has the rest. Of such sizes the least, for the warm-up
 * grows with it: p where p divides m, and 5 for its own test of 10 microbatches on 4 stages (gpt3_mcore_te_tp1_pp4_vp1_
 * tunable_overlap). Fewer microbatches than stages, which it refuses, are one group. */
int pc_interleaved_group(int devices, int microbatches) {
    int group = pc_min(devices, microbatches);
    while (microbatches % group != 0 && microbatches % group < devices) group++;
    return group;
}

/* Each group through all chunks. Backward passes go the same way, chunks reversed. */
pc_pass pc_interleaved_pass(int group, int microbatches, int chunks, pc_pass_kind kind, int64_t k) {
    int whole = microbatches / group * group; /* microbatches in whole groups */
    bool is_rest = k >= (int64_t)whole * chunks;
    if (is_rest) k -= (int64_t)whole * chunks;
    int size = is_rest ? microbatches - whole : group;
    int64_t first = (is_rest ? whole : 0) + k / ((int64_t)size * chunks) * size, within = k % ((int64_t)size * chunks);
    int chunk = (int)(within / size);
    return (pc_pass){.microbatch = (int32_t)(first + within % size),
                     .chunk = (int16_t)(kind == PC_PASS_F ? chunk : chunks - 1 - chunk),
                     .kind = (int16_t)kind};
}

/* Interleaved 1F1B (Narayanan et al. 2021, arXiv 2104.04473, section 2.2), in groups of n microbatches: with `extra` 2
 * stage d warms up with 2(p-1-d) + (v-1)n F; bubble (p-1)(F+B+W)/v; stage d holds up to 2(p-1-d) + (v-1)n + 1 chunks of
 * a v-th of a stage. One chunk is 1F1B. With `extra` 1 the warm-up is p-1-d + (v-1)n: the same bubble, for what the
 * last stages wait longer at the start they wait less at the end. There are p-1-d + (v-1)n + 1 chunks, so that with n =
 * p stage 0 holds p microbatches, as in 1F1B ('Controllable Memory', arXiv 2405.15362, appendix I, interleaved 1F1B
 * with less memory). Transfers that take time cost it more, for a stage waits for each of them. `extra` 3 is `extra` 2
 * and one F more: the same bubble, and a chunk more. Megatron-LM has it where an F and the BW beside it are to overlap
 * (overlap_moe_expert_parallel_comm). On the last stage, too, the BW is then of what an F before has done. On an only
 * stage of one chunk each F is then beside the BW of the microbatch before (combined_1f1b_schedule_for_no_pipelining).
 *
 * No order waits in a circle. The k-th F of the first stage needs the last one's (k-g)-th, which stands behind its BW
 * of number k-g - (v-1)n - 1. That one needs the first stage's BW g' before it; g and g' are the sizes of the groups
 * that they end. The first stage has done its BW up to k-1 - e(p-1) - (v-1)n by then: enough where g + g' >= e(p-1), as
 * it is where no group is below p. A single group has no g': its BW in the last chunk need nobody's before them. */
int64_t pc_interleaved_warm_up(int devices, int stage, int chunks, int group, int extra) {
    int64_t hops = devices - 1 - stage, rounds = (int64_t)(chunks - 1) * group;
    return extra == 3 ? 2 * hops + rounds + 1 : extra * hops + rounds;
}

int pc_interleaved_extra(int devices, int chunks, int extra) {
    if (chunks > 1 || (devices == 1 && extra == 3)) return extra;
    return 1;
}

static void write_interleaved(pc_stage_writer *writer, int extra) {
    if (writer->chunks == 1 && pc_interleaved_extra(writer->devices, 1, extra) == 1) {
        write_1f1b(writer, 1);
        return;
    }
    int p = writer->devices, v = writer->chunks, m = writer->microbatches, group = pc_interleaved_group(p, m);
    int64_t total = (int64_t)m * v, warm_up = pc_interleaved_warm_up(p, writer->stage, v, group, extra);
    if (warm_up > total) warm_up = total;
    for (int64_t k = 0; k < warm_up; k++) *writer->next++ = pc_interleaved_pass(group, m, v, PC_PASS_F, k);
    for (int64_t k = 0; k < total; k++) {
        bool has_f = warm_up + k < total;
        if (has_f) pc_stage_begin_pair(writer);
        if (has_f) *writer->next++ = pc_interleaved_pass(group, m, v, PC_PASS_F, warm_up + k);
        *writer->next++ = pc_interleaved_pass(group, m, v, PC_PASS_BW, k);
    }
}

/* ZB-H1 and ZB-H2 (Qi et al. 2024, arXiv 2401.10241, section 2): `extra` k is 1 or 2. Stage d warms up with k(p-1-d) F;
 * then rounds of an F, a B and, from the (k*d)-th round on, a W; the W that are left come last. With equal stages, no
 * transfer time and F = B = W, H1 idles (p-1)(F+B-W) and holds what 1F1B does; H2 does not idle (its formula is
 * (p-1)(F+B-2W)) and holds up to 2p-1 microbatches. The order does not look at the times: others can idle more. */
static void write_zb_h(pc_stage_writer *writer, int extra) {
    int m = writer->microbatches, warm_up = pc_min(m, extra * (writer->devices - 1 - writer->stage));
    int first_w = pc_min(m, extra * writer->stage); /* W run this many rounds behind B */
    for (int i = 0; i < warm_up; i++) pc_stage_put(writer, PC_PASS_F, 0, i);
    for (int i = 0; i < m; i++) {
        if (warm_up + i < m) pc_stage_put(writer, PC_PASS_F, 0, warm_up + i);
        pc_stage_put(writer, PC_PASS_B, 0, i);
        if (i >= first_w) pc_stage_put(writer, PC_PASS_W, 0, i - first_w);
    }
    for (int i = m - first_w; i < m; i++) pc_stage_put(writer, PC_PASS_W, 0, i);
}

/* All passes of a stage: those of one microbatch in one chunk, so many times. */
static int64_t count_passes(const pc_generator *generator, const pc_generate_request *request, int stage) {
    int in_chunk = (generator->splits && !generator->mixes ? 3 : 2) + (generator->recomputes ? 1 : 0);
    int64_t visits = request->microbatches * pc_placement_visited(generator->placement, (int)request->chunks);
    if (!generator->mixes) return visits * in_chunk;
    bool has_replicas = generator->placement == PC_PLACEMENT_BIDIRECTIONAL;
    return visits * in_chunk + (has_replicas ? pc_dualpipe_split : pc_dualpipe_v_split)((int)request->devices, stage);
}

pc_code pc_schedule_of_rule(const pc_generator *self, pc_stage_rule *rule, const pc_generate_request *request,
                            pc_schedule *schedule, pc_error *error) {
    int p = (int)request->devices, m = (int)request->microbatches, v = (int)request->chunks;
    int64_t *lengths = pc_alloc((size_t)p, sizeof *lengths);
    if (!lengths) return pc_error_no_memory(error);
    for (int d = 0; d < p; d++) lengths[d] = count_passes(self, request, d);
    pc_placement placement = pc_generator_placement(self, v, request->slices);
    int slices = pc_placement_slices(placement, v);
    pc_code code = pc_schedule_create(self->name, p, m, v, placement, lengths, schedule, error);
    pc_free(lengths);
    if (code) return code;
    if (pc_generator_pairs(self, p, v) && pc_schedule_add_pairs(schedule, error)) {
        pc_schedule_free(schedule);
        return error ? error->code : PC_ERROR_NO_MEMORY;
    }
    for (int d = 0; d < p; d++) {
        pc_stage_writer writer = {schedule->passes + schedule->offsets[d], p, m, v, d, slices, schedule};
        rule(&writer, self->extra);
    }
    return PC_OK;
}

static pc_code generate_with_block(const pc_generator *self, pc_stage_rule *rule, pc_block_rule *block_rule,
                                   const pc_generate_request *request, pc_schedule *schedule, pc_block *block,
                                   pc_error *error) {
    pc_code code = pc_schedule_of_rule(self, rule, request, schedule, error);
    if (code || !block) return code;
    code = block_rule(self, request, block, error);
    if (code) pc_schedule_free(schedule);
    return code;
}

#define PC_GENERATE(name, rule)                                                                                        \
    static pc_code generate_##name(const pc_generator *self, const pc_generate_request *request,                       \
                                   pc_schedule *schedule, pc_block *block, pc_error *error) {                          \
        return generate_with_block(self, rule, pc_block_of_##name, request, schedule, block, error);                   \
    }
PC_GENERATE(gpipe, write_gpipe)
PC_GENERATE(1f1b, write_1f1b)
PC_GENERATE(1f1b_r, write_1f1b_r)
PC_GENERATE(interleaved, write_interleaved)
PC_GENERATE(zb_h, write_zb_h)
PC_GENERATE(gems, pc_write_gems)
PC_GENERATE(chimera, pc_write_chimera)
PC_GENERATE(looped_bfs, pc_write_looped_bfs)
PC_GENERATE(zb_interleaved, pc_write_zb_interleaved)
PC_GENERATE(gis, pc_write_gis)
PC_GENERATE(gis_uniform, pc_write_gis_uniform)
PC_GENERATE(dualpipe_v, pc_write_dualpipe_v)
#define pc_block_of_dualpipe pc_block_of_dualpipe_v
PC_GENERATE(dualpipe, pc_write_dualpipe)
#undef pc_block_of_dualpipe

#define LINEAR        PC_PLACEMENT_LINEAR, 1, 1, 1, 0
#define INTERLEAVED   PC_PLACEMENT_INTERLEAVED, 1, 0, 2, 0
#define V             PC_PLACEMENT_V, 2, 2, 2, 0
#define V_OF_CHUNKS   PC_PLACEMENT_V, 2, 4, 2, 0
#define OF_CHUNKS     PC_PLACEMENT_INTERLEAVED, 2, 8, 2, 0
#define V_OF_MANY     PC_PLACEMENT_V, 2, 2, 2, 2
#define BIDIRECTIONAL PC_PLACEMENT_BIDIRECTIONAL, 2, 2, 2, 0
#define SLICES        PC_PLACEMENT_SLICES, 1, 0, 4, 0
#define SLICED_PARTS  PC_PLACEMENT_OF_SLICES(4), 1, 0, 8, 0
#define WHOLE         false, false, false, false, false, NULL, PC_BARRIERS_NONE /* BW */
#define RECOMPUTING   false, false, true, false, false, NULL, PC_BARRIERS_NONE
#define SPLIT         true, false, false, false, false, NULL, PC_BARRIERS_NONE /* B and W */
#define MIXED         true, true, false, false, false, NULL, PC_BARRIERS_NONE
#define SEARCHED      true, false, false, true, false, NULL, PC_BARRIERS_NONE
#define ADAPTIVE      true, false, false, true, true, NULL, PC_BARRIERS_NONE

#define VOCAB(splits, barriers) splits, false, false, false, false, NULL, PC_BARRIERS_##barriers

static const pc_generator generators[] = {
    {"gpipe", "every F, then every backward pass", LINEAR, WHOLE, generate_gpipe, 0},
    {"1f1b", "one forward, one backward; holds at most p microbatches", LINEAR, WHOLE, generate_1f1b, 1},
    {"1f1b-r", "1F1B that recomputes: a stage's inputs of p microbatches, and one of them whole", LINEAR, RECOMPUTING,
     generate_1f1b_r, 0},
    {"eager-1f1b", "1F1B with twice the warm-up: hides transfers, holds up to 2p-1", LINEAR, WHOLE, generate_1f1b, 2},
    {"1f1b-interleaved", "1F1B over v chunks a device: a v-th of the bubble", INTERLEAVED, WHOLE, generate_interleaved,
     2},
    {"1f1b-interleaved-overlap", "the same with one F more first: each F beside a BW that does not need it",
     INTERLEAVED, WHOLE, generate_interleaved, 3},
    {"1f1b-interleaved-low-memory", "the same bubble in the memory of 1F1B, where p divides m", INTERLEAVED, WHOLE,
     generate_interleaved, 1},
    {"looped-bfs", "breadth first: every microbatch through a chunk before the next chunk; holds all m", INTERLEAVED,
     WHOLE, generate_looped_bfs, 0},
    {"1f1b-v", "1F1B folded to a V: two thirds of the memory of 1F1B", V, false, false, false, true, false, NULL,
     PC_BARRIERS_NONE, pc_generate_searched, PC_SEARCHED_1F1B_V},
    {"zb-h1", "B and W apart, in the memory of 1F1B: a third of its bubble", LINEAR, SPLIT, generate_zb_h, 1},
    {"zb-h2", "B and W apart, in twice the memory: hardly a bubble", LINEAR, SPLIT, generate_zb_h, 2},
    {"zb-interleaved", "ZB-H1 over v chunks a device: a v-th of its bubble", INTERLEAVED, SPLIT,
     generate_zb_interleaved, 0},
    {"gis", "PipeOffload's interleaved schedule: W right behind B, the memory of 1F1B", INTERLEAVED, SPLIT,
     generate_gis, 1},
    {"gis-h", "the same in half the groups: about half the memory of 1f1b-interleaved", INTERLEAVED, SPLIT,
     generate_gis, 2},
    {"gis-uniform", "gis microbatch by microbatch: a quarter of its memory with half its chunks on the host",
     INTERLEAVED, SPLIT, generate_gis_uniform, 1},
    {"gis-h-uniform", "gis-h microbatch by microbatch", INTERLEAVED, SPLIT, generate_gis_uniform, 2},
    {"interleaved-adaptive",
     "the best over v chunks within the memory limit (without one: that of 1f1b-interleaved), at the given times",
     OF_CHUNKS, ADAPTIVE, pc_generate_searched, PC_SEARCHED_INTERLEAVED},
    {"zb-1p", "the best with B and W apart in the memory of 1F1B, at the given times", LINEAR, SEARCHED,
     pc_generate_searched, PC_SEARCHED_ZB_1P},
    {"zb-2p", "the same in twice that memory", LINEAR, SEARCHED, pc_generate_searched, PC_SEARCHED_ZB_2P},
    {"zb-two-thirds", "B and W apart in two thirds of the memory of 1F1B", LINEAR, SEARCHED, pc_generate_searched,
     PC_SEARCHED_ZB_TWO_THIRDS},
    {"v-min", "V-shaped, a third of the memory of 1F1B", V, SEARCHED, pc_generate_searched, PC_SEARCHED_V_MIN},
    {"v-half", "V-shaped, half the memory of 1F1B", V, SEARCHED, pc_generate_searched, PC_SEARCHED_V_HALF},
    {"v-zb", "V-shaped, no bubble for equal times, the memory of 1F1B", V, SEARCHED, pc_generate_searched,
     PC_SEARCHED_ZB_V},
    {"zb-v", "the best V in the memory of 1F1B, at the given times", V, SEARCHED, pc_generate_searched,
     PC_SEARCHED_ZB_V},
    {"v-adaptive", "the best V within the memory limit (without one: that of 1F1B), at the given times", V_OF_CHUNKS,
     ADAPTIVE, pc_generate_searched, PC_SEARCHED_V_ADAPTIVE},
    {"dualpipe-v", "V-shaped, F beside BW of another microbatch: half the bubble of ZB-H1, p + 1/2 microbatches",
     V_OF_MANY, MIXED, generate_dualpipe_v, 0},
    {"dualpipe", "two replicas, F beside BW of the other way: the bubble of dualpipe-v of half the devices, p + 1",
     PC_PLACEMENT_BIDIRECTIONAL, 2, 2, 2, 2, MIXED, generate_dualpipe, 0},
    {"gems", "two replicas, one microbatch each way: holds one a device, and idles most of the time", BIDIRECTIONAL,
     WHOLE, generate_gems, 0},
    {"chimera", "two replicas, p/2 microbatches each way: half the bubble of 1F1B where m is p", BIDIRECTIONAL, WHOLE,
     generate_chimera, 0},
    {"seq-gpipe", "GPipe over slices of the sequence, as TeraPipe; holds all m microbatches", SLICES, WHOLE,
     pc_generate_slices, PC_SLICES_GPIPE},
    {"seq-1f1b", "Seq1F1B: 1F1B over k slices of the sequence: a k-th of the bubble, about a k-th of the memory",
     SLICES, WHOLE, pc_generate_slices, PC_SLICES_1F1B},
    {"seq-zb-h1", "ZB-H1 over k slices of the sequence: a k-th of its bubble and about a k-th of the memory", SLICES,
     SPLIT, pc_generate_slices, PC_SLICES_ZB_H1},
    {"seq-1f1b-interleaved", "Seq1F1B-I: interleaved 1F1B over k slices of the sequence: a k-th of its bubble",
     SLICED_PARTS, WHOLE, pc_generate_slices, PC_SLICES_INTERLEAVED},
    {"seq-zb-interleaved", "ZB-H1 over v chunks a device and k slices of the sequence", SLICED_PARTS, SPLIT,
     pc_generate_slices, PC_SLICES_ZB_INTERLEAVED},
    {"1f1b-vocab-1", "1F1B whose stages share the output layer; two barriers, holds p + 2", LINEAR, VOCAB(false, TWO),
     pc_generate_vocab, 0},
    {"1f1b-vocab-2", "the same with one barrier: holds p + 1", LINEAR, VOCAB(false, ONE), pc_generate_vocab, 0},
    {"v-half-vocab-1", "V-Half whose stages share the output layer; two barriers, holds two microbatches more", V,
     VOCAB(true, TWO), pc_generate_vocab, 0},
    {"v-half-vocab-2", "the same with one barrier: holds one microbatch more", V, VOCAB(true, ONE), pc_generate_vocab,
     0},
};

const pc_generator *pc_generators(int *count) {
    *count = (int)(sizeof generators / sizeof *generators);
    return generators;
}

const pc_generator *pc_generator_find(const char *name) {
    int count;
    const pc_generator *all = pc_generators(&count);
    for (int i = 0; i < count; i++)
        if (strcmp(all[i].name, name) == 0) return &all[i];
    return NULL;
}

bool pc_generator_pairs(const pc_generator *generator, int devices, int chunks) {
    bool is_overlap = generator->generate == generate_interleaved && generator->extra == 3;
    return generator->mixes || (is_overlap && pc_interleaved_extra(devices, chunks, 3) == 3);
}

bool pc_generator_has_kind(const pc_generator *generator, pc_pass_kind kind) {
    switch (kind) {
    case PC_PASS_F:
        return true;
    case PC_PASS_B:
    case PC_PASS_W:
        return generator->splits;
    case PC_PASS_BW:
        return !generator->splits || generator->mixes;
    case PC_PASS_R:
        return generator->recomputes;
    case PC_PASS_S:
    case PC_PASS_T:
        return generator->barriers != PC_BARRIERS_NONE;
    case PC_PASS_KINDS:
        break;
    }
    return false;
}

void pc_generator_names(char *text, int size) {
    int count, used = 0;
    const pc_generator *all = pc_generators(&count);
    if (size > 0) text[0] = '\0';
    for (int i = 0; i < count && used < size; i++)
        used += snprintf(text + used, (size_t)(size - used), "%s%s", i ? ", " : "", all[i].name);
}

const char *pc_generator_hint(const char *word, char text[PC_NEAREST_TEXT]) {
    static const char *const others[][2] = {{"1f1b-interleaved", "interleaved"},
                                            {"1f1b-interleaved", "interleaved-1f1b"},
                                            {"1f1b-interleaved", "ScheduleInterleaved1F1B"},
                                            {"1f1b", "Schedule1F1B"},
                                            {"gpipe", "ScheduleGPipe"},
                                            {"looped-bfs", "breadth-first"},
                                            {"looped-bfs", "ScheduleLoopedBFS"},
                                            {"zb-interleaved", "interleaved-zero-bubble"},
                                            {"zb-interleaved", "ScheduleInterleavedZeroBubble"},
                                            {"zb-v", "zbv-zero-bubble"},
                                            {"zb-v", "ScheduleZBVZeroBubble"},
                                            {"dualpipe-v", "ScheduleDualPipeV"},
                                            {"seq-1f1b", "seq1f1b"},
                                            {"seq-1f1b-interleaved", "seq1f1b-i"},
                                            {"seq-1f1b-interleaved", "seq-interleaved"},
                                            {"seq-zb-h1", "seq1f1b-zb"},
                                            {"seq-gpipe", "terapipe"}};
    int count;
    const pc_generator *all = pc_generators(&count);
    pc_nearest nearest = {.word = word};
    for (int i = 0; i < count; i++) pc_nearest_offer(&nearest, all[i].name);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        pc_nearest_offer_as(&nearest, others[i][0], others[i][1]);
    return pc_nearest_hint(&nearest, text);
}
