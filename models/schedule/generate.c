/* The static schedules. Each is one rule that writes the passes of one stage; pc_schedule_generate does the rest.
 *
 * All rules are of the shape: w passes F first (the warm-up), then F and a backward pass in turn, then the backward
 * passes that are left. The families differ in w, in which chunk comes when, and in where W goes. Those of two replicas
 * stand in generate_bidirectional.c.
 */
#include "models/schedule/generate_private.h"

#include "engine/alloc.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static int least(int a, int b) {
    return a < b ? a : b;
}

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
    warm_up = least(m, warm_up);
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
 * gradient: the last stage works m(2F+B+W) without a pause, before it p-1 F go down and after it p-1 backward passes go
 * up, and no stage takes longer. Bubble, R counted as busy: (p-1)(F+B+W), as 1F1B has. With a share k of an activation
 * kept, stage d holds (p-d) k, and 1-k more while it is at a backward pass. */
static void write_1f1b_r(pc_stage_writer *writer, int extra) {
    (void)extra;
    put_1f1b(writer, writer->devices - 1 - writer->stage, true);
}

/* Which chunk and microbatch the k-th F of a stage in interleaved 1F1B belongs to: groups of p microbatches, and each
 * group through all chunks. Backward passes go the same way, chunks reversed. */
static void put_interleaved(pc_stage_writer *writer, pc_pass_kind kind, int64_t k) {
    int p = writer->devices, v = writer->chunks;
    int64_t group = k / ((int64_t)p * v), within = k % ((int64_t)p * v);
    int chunk = (int)(within / p);
    pc_stage_put(writer, kind, kind == PC_PASS_F ? chunk : v - 1 - chunk, (int)(group * p + within % p));
}

/* Interleaved 1F1B (Narayanan et al. 2021, arXiv 2104.04473, section 2.2): stage d warms up with 2(p-1-d) + (v-1)p F;
 * bubble (p-1)(F+B+W)/v; stage d holds up to 2(p-1-d) + (v-1)p + 1 chunks of a v-th of a stage. One chunk is 1F1B. */
static void write_interleaved(pc_stage_writer *writer, int extra) {
    if (writer->chunks == 1) {
        write_1f1b(writer, 1);
        return;
    }
    (void)extra;
    int p = writer->devices, v = writer->chunks;
    int64_t total = (int64_t)writer->microbatches * v;
    int64_t warm_up = 2 * (int64_t)(p - 1 - writer->stage) + (int64_t)(v - 1) * p;
    if (warm_up > total) warm_up = total;
    for (int64_t k = 0; k < warm_up; k++) put_interleaved(writer, PC_PASS_F, k);
    for (int64_t k = 0; k < total; k++) {
        if (warm_up + k < total) put_interleaved(writer, PC_PASS_F, warm_up + k);
        put_interleaved(writer, PC_PASS_BW, k);
    }
}

/* ZB-H1 and ZB-H2 (Qi et al. 2024, arXiv 2401.10241, section 2): `extra` k is 1 or 2. Stage d warms up with k(p-1-d) F;
 * then rounds of an F, a B and, from the (k*d)-th round on, a W; the W that are left come last. With equal stages, no
 * transfer time and F = B = W, H1 idles (p-1)(F+B-W) and holds what 1F1B does; H2 does not idle (its formula is
 * (p-1)(F+B-2W)) and holds up to 2p-1 microbatches. The order does not look at the times: others can idle more. */
static void write_zb_h(pc_stage_writer *writer, int extra) {
    int m = writer->microbatches, warm_up = least(m, extra * (writer->devices - 1 - writer->stage));
    int first_w = least(m, extra * writer->stage); /* W run this many rounds behind B */
    for (int i = 0; i < warm_up; i++) pc_stage_put(writer, PC_PASS_F, 0, i);
    for (int i = 0; i < m; i++) {
        if (warm_up + i < m) pc_stage_put(writer, PC_PASS_F, 0, warm_up + i);
        pc_stage_put(writer, PC_PASS_B, 0, i);
        if (i >= first_w) pc_stage_put(writer, PC_PASS_W, 0, i - first_w);
    }
    for (int i = m - first_w; i < m; i++) pc_stage_put(writer, PC_PASS_W, 0, i);
}

/* The passes of one microbatch in one chunk. */
static int passes_in_chunk(const pc_generator *generator) {
    return (generator->splits ? 3 : 2) + (generator->recomputes ? 1 : 0);
}

static pc_code generate(const pc_generator *self, pc_stage_rule *rule, int devices, int microbatches, int chunks,
                        pc_schedule *schedule, pc_error *error) {
    int64_t *lengths = pc_alloc((size_t)devices, sizeof *lengths);
    if (!lengths) return pc_error_no_memory(error);
    int64_t length = (int64_t)microbatches * pc_placement_visited(self->placement, chunks) * passes_in_chunk(self);
    for (int d = 0; d < devices; d++) lengths[d] = length;
    pc_code code =
        pc_schedule_create(self->name, devices, microbatches, chunks, self->placement, lengths, schedule, error);
    pc_free(lengths);
    if (code) return code;
    for (int d = 0; d < devices; d++) {
        pc_stage_writer writer = {schedule->passes + schedule->offsets[d], devices, microbatches, chunks, d};
        rule(&writer, self->extra);
    }
    return PC_OK;
}

#define PC_GENERATE(rule)                                                                                              \
    static pc_code generate_##rule(const pc_generator *self, int devices, int microbatches, int chunks,                \
                                   pc_schedule *schedule, pc_error *error) {                                           \
        return generate(self, rule, devices, microbatches, chunks, schedule, error);                                   \
    }
PC_GENERATE(write_gpipe)
PC_GENERATE(write_1f1b)
PC_GENERATE(write_1f1b_r)
PC_GENERATE(write_interleaved)
PC_GENERATE(write_zb_h)
PC_GENERATE(pc_write_gems)
PC_GENERATE(pc_write_chimera)

static const pc_generator generators[] = {
    {"gpipe", "every F, then every backward pass", PC_PLACEMENT_LINEAR, 1, 1, 1, false, false, generate_write_gpipe, 0},
    {"1f1b", "one forward, one backward; holds at most p microbatches", PC_PLACEMENT_LINEAR, 1, 1, 1, false, false,
     generate_write_1f1b, 1},
    {"1f1b-r", "1F1B that recomputes: a stage's inputs of p microbatches, and one of them whole", PC_PLACEMENT_LINEAR,
     1, 1, 1, false, true, generate_write_1f1b_r, 0},
    {"eager-1f1b", "1F1B with twice the warm-up: hides transfers, holds up to 2p-1", PC_PLACEMENT_LINEAR, 1, 1, 1,
     false, false, generate_write_1f1b, 2},
    {"1f1b-interleaved", "1F1B over v chunks a device: a v-th of the bubble; m a multiple of p",
     PC_PLACEMENT_INTERLEAVED, 1, 0, 2, false, false, generate_write_interleaved, 0},
    {"zb-h1", "B and W apart, in the memory of 1F1B: a third of its bubble", PC_PLACEMENT_LINEAR, 1, 1, 1, true, false,
     generate_write_zb_h, 1},
    {"zb-h2", "B and W apart, in twice the memory: hardly a bubble", PC_PLACEMENT_LINEAR, 1, 1, 1, true, false,
     generate_write_zb_h, 2},
    {"gems", "two replicas, one microbatch each way: holds one a device, and idles most of the time",
     PC_PLACEMENT_BIDIRECTIONAL, 2, 2, 2, false, false, generate_pc_write_gems, 0},
    {"chimera", "two replicas, p/2 microbatches each way: half the bubble of 1F1B where m is p",
     PC_PLACEMENT_BIDIRECTIONAL, 2, 2, 2, false, false, generate_pc_write_chimera, 0},
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

void pc_generator_names(char *text, int size) {
    int count, used = 0;
    const pc_generator *all = pc_generators(&count);
    if (size > 0) text[0] = '\0';
    for (int i = 0; i < count && used < size; i++)
        used += snprintf(text + used, (size_t)(size - used), "%s%s", i ? ", " : "", all[i].name);
}

static pc_code check_chunks(const pc_generator *generator, int64_t chunks, pc_error *error) {
    if (chunks < generator->chunks_min || (generator->chunks_max && chunks > generator->chunks_max))
        return generator->chunks_min == generator->chunks_max
                   ? pc_error_set(error, PC_ERROR_INPUT, "%s: %" PRId64 " chunks a device; expected %d",
                                  generator->name, chunks, generator->chunks_min)
                   : pc_error_set(error, PC_ERROR_INPUT, "%s: %" PRId64 " chunks a device; expected at least %d",
                                  generator->name, chunks, generator->chunks_min);
    return PC_OK;
}

pc_code pc_generator_check(const pc_generator *generator, int64_t devices, int64_t microbatches, int64_t chunks,
                           pc_error *error) {
    if (chunks == 0) chunks = generator->chunks_default;
    pc_code code = pc_schedule_check_size(devices, microbatches, chunks, error);
    if (!code) code = check_chunks(generator, chunks, error);
    if (code) return code;
    if (generator->generate == generate_write_interleaved && chunks > 1 && microbatches % devices != 0)
        return pc_error_set(error, PC_ERROR_INPUT,
                            "%s: %" PRId64 " microbatches on %" PRId64
                            " devices; expected a multiple of the number of devices",
                            generator->name, microbatches, devices);
    return PC_OK;
}

pc_code pc_schedule_generate(const pc_generator *generator, int64_t devices, int64_t microbatches, int64_t chunks,
                             pc_schedule *schedule, pc_error *error) {
    pc_code code = pc_generator_check(generator, devices, microbatches, chunks, error);
    if (code) return code;
    if (chunks == 0) chunks = generator->chunks_default;
    return generator->generate(generator, (int)devices, (int)microbatches, (int)chunks, schedule, error);
}
