/* The static schedules. Each is one rule that writes the passes of one stage; pc_schedule_generate does the rest.
 *
 * All rules are of the shape: w passes F first (the warm-up), then F and a backward pass in turn, then the backward
 * passes that are left. The families differ in w, in which chunk comes when, and in where W goes.
 */
#include "models/schedule/generate.h"

#include "engine/alloc.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* One stage's order while it is written. */
typedef struct stage_writer {
    pc_pass *next;
    int devices, microbatches, chunks, stage;
} stage_writer;

static int least(int a, int b) {
    return a < b ? a : b;
}

static void put(stage_writer *writer, pc_pass_kind kind, int chunk, int microbatch) {
    *writer->next++ = (pc_pass){.microbatch = microbatch, .chunk = (int16_t)chunk, .kind = (int16_t)kind};
}

/* GPipe (Huang et al. 2019, arXiv 1811.06965): every F, then every backward pass, in the same order.
 * With equal stages and no transfer time the bubble is (p-1)(F+B+W); all m microbatches are held at once. */
static void write_gpipe(stage_writer *writer, int extra) {
    (void)extra;
    for (int i = 0; i < writer->microbatches; i++) put(writer, PC_PASS_F, 0, i);
    for (int i = 0; i < writer->microbatches; i++) put(writer, PC_PASS_BW, 0, i);
}

/* 1F1B (PipeDream-Flush; Narayanan et al. 2021, arXiv 2006.09503): stage d warms up with p-1-d F, so that it holds at
 * most p-d microbatches; bubble (p-1)(F+B+W). `extra` 2 doubles the warm-up: eager 1F1B (Zhuang et al. 2023, arXiv
 * 2211.05322), which hides transfers behind passes and holds up to 2(p-d)-1. */
static void write_1f1b(stage_writer *writer, int extra) {
    int m = writer->microbatches, warm_up = least(m, extra * (writer->devices - 1 - writer->stage));
    for (int i = 0; i < warm_up; i++) put(writer, PC_PASS_F, 0, i);
    for (int i = 0; i < m; i++) {
        if (warm_up + i < m) put(writer, PC_PASS_F, 0, warm_up + i);
        put(writer, PC_PASS_BW, 0, i);
    }
}

/* Which chunk and microbatch the k-th F of a stage in interleaved 1F1B belongs to: groups of p microbatches, and each
 * group through all chunks. Backward passes go the same way, chunks reversed. */
static void put_interleaved(stage_writer *writer, pc_pass_kind kind, int64_t k) {
    int p = writer->devices, v = writer->chunks;
    int64_t group = k / ((int64_t)p * v), within = k % ((int64_t)p * v);
    int chunk = (int)(within / p);
    put(writer, kind, kind == PC_PASS_F ? chunk : v - 1 - chunk, (int)(group * p + within % p));
}

/* Interleaved 1F1B (Narayanan et al. 2021, arXiv 2104.04473, section 2.2): stage d warms up with 2(p-1-d) + (v-1)p F;
 * bubble (p-1)(F+B+W)/v; stage d holds up to 2(p-1-d) + (v-1)p + 1 chunks of a v-th of a stage. One chunk is 1F1B. */
static void write_interleaved(stage_writer *writer, int extra) {
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
static void write_zb_h(stage_writer *writer, int extra) {
    int m = writer->microbatches, warm_up = least(m, extra * (writer->devices - 1 - writer->stage));
    int first_w = least(m, extra * writer->stage); /* W run this many rounds behind B */
    for (int i = 0; i < warm_up; i++) put(writer, PC_PASS_F, 0, i);
    for (int i = 0; i < m; i++) {
        if (warm_up + i < m) put(writer, PC_PASS_F, 0, warm_up + i);
        put(writer, PC_PASS_B, 0, i);
        if (i >= first_w) put(writer, PC_PASS_W, 0, i - first_w);
    }
    for (int i = m - first_w; i < m; i++) put(writer, PC_PASS_W, 0, i);
}

typedef void stage_rule(stage_writer *writer, int extra);

static pc_code generate(const pc_generator *self, stage_rule *rule, int devices, int microbatches, int chunks,
                        pc_schedule *schedule, pc_error *error) {
    int64_t *lengths = pc_alloc((size_t)devices, sizeof *lengths);
    if (!lengths) return pc_error_no_memory(error);
    for (int d = 0; d < devices; d++) lengths[d] = (int64_t)microbatches * chunks * (self->splits ? 3 : 2);
    pc_code code =
        pc_schedule_create(self->name, devices, microbatches, chunks, self->placement, lengths, schedule, error);
    pc_free(lengths);
    if (code) return code;
    for (int d = 0; d < devices; d++) {
        stage_writer writer = {schedule->passes + schedule->offsets[d], devices, microbatches, chunks, d};
        rule(&writer, self->extra);
    }
    return PC_OK;
}

#define PC_GENERATE(rule)                                                                                              \
    static pc_code generate_##rule(const pc_generator *self, int devices, int microbatches, int chunks,                \
                                   pc_schedule *schedule, pc_error *error) {                                           \
        return generate(self, write_##rule, devices, microbatches, chunks, schedule, error);                           \
    }
PC_GENERATE(gpipe)
PC_GENERATE(1f1b)
PC_GENERATE(interleaved)
PC_GENERATE(zb_h)

static const pc_generator generators[] = {
    {"gpipe", "every F, then every backward pass", PC_PLACEMENT_LINEAR, 1, 1, 1, false, generate_gpipe, 0},
    {"1f1b", "one forward, one backward; holds at most p microbatches", PC_PLACEMENT_LINEAR, 1, 1, 1, false,
     generate_1f1b, 1},
    {"eager-1f1b", "1F1B with twice the warm-up: hides transfers, holds up to 2p-1", PC_PLACEMENT_LINEAR, 1, 1, 1,
     false, generate_1f1b, 2},
    {"1f1b-interleaved", "1F1B over v chunks a device: a v-th of the bubble; m a multiple of p",
     PC_PLACEMENT_INTERLEAVED, 1, 0, 2, false, generate_interleaved, 0},
    {"zb-h1", "B and W apart, in the memory of 1F1B: a third of its bubble", PC_PLACEMENT_LINEAR, 1, 1, 1, true,
     generate_zb_h, 1},
    {"zb-h2", "B and W apart, in twice the memory: hardly a bubble", PC_PLACEMENT_LINEAR, 1, 1, 1, true, generate_zb_h,
     2},
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
    if (generator->generate == generate_interleaved && chunks > 1 && microbatches % devices != 0)
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
