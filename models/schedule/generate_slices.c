/* The static schedules of slices (placement slices): orders of whole microbatches, over units that are a slice each.
 *
 * A microbatch is cut along its sequence into k slices. The u-th F of a stage is that of slice u mod k of microbatch
 * u / k. The u-th backward pass is that of the same microbatch's slice k-1 - (u mod k), because gradients of keys and
 * values come from behind. So the first backward pass needs the F of a whole microbatch, and each warm-up has k-1 F
 * more than for whole microbatches. The u-th backward pass needs F of unit u + k-1 at most, which then stands before
 * it. With several parts a stage the chunks are k slices of the first, k of the second and so on.
 */
#include "models/schedule/generate_private.h"

#include "engine/numbers.h"

#include <inttypes.h>

/* ---- shapes ---- */

bool pc_generator_has_sliced_parts(const pc_generator *generator) {
    return pc_placement_has_slices(generator->placement) && generator->placement != PC_PLACEMENT_SLICES;
}

int pc_generator_slices(const pc_generator *generator, int64_t chunks, int64_t slices) {
    chunks = pc_generator_chunks(generator, chunks, slices);
    if (!pc_generator_has_sliced_parts(generator)) return pc_placement_slices(generator->placement, (int)chunks);
    return (int)(slices > 0 ? slices : pc_gcd(chunks, pc_placement_slices(generator->placement, 1)));
}

int64_t pc_generator_chunks(const pc_generator *generator, int64_t chunks, int64_t slices) {
    if (chunks > 0) return chunks;
    int usual = generator->chunks_default;
    if (slices == 0 || !pc_generator_has_sliced_parts(generator)) return usual;
    return usual / pc_placement_slices(generator->placement, 1) * slices;
}

/* Slices of stages of one part are SLICES, whoever makes them. */
pc_placement pc_generator_placement(const pc_generator *generator, int64_t chunks, int64_t slices) {
    int k = pc_generator_slices(generator, chunks, slices);
    if (!pc_generator_has_sliced_parts(generator)) return generator->placement;
    return k == pc_generator_chunks(generator, chunks, slices) ? PC_PLACEMENT_SLICES : PC_PLACEMENT_OF_SLICES(k);
}

pc_code pc_generator_check_slices(const pc_generator *generator, int64_t chunks, int64_t slices, pc_error *error) {
    if (slices == 0 || !pc_generator_has_sliced_parts(generator)) return PC_OK;
    if (slices > 0 && slices <= chunks && chunks % slices == 0) return PC_OK;
    return pc_error_set(error, PC_ERROR_INPUT,
                        "%s: %" PRId64 " chunks of %" PRId64 " slices; expected a multiple of the slices",
                        generator->name, chunks, slices);
}

/* ---- orders ---- */

/* `unit` 0 .. m*k-1, in one of the stage's parts. */
static void put_unit(pc_stage_writer *writer, pc_pass_kind kind, int part, int64_t unit) {
    int k = writer->slices, slice = (int)(unit % k);
    pc_stage_put(writer, kind, part * k + (kind == PC_PASS_F ? slice : k - 1 - slice), (int)(unit / k));
}

static int64_t units_of(const pc_stage_writer *writer) {
    return (int64_t)writer->microbatches * writer->slices;
}

/* F that stand before the first F and backward pass in turn. */
static int64_t warm_up_of(const pc_stage_writer *writer) {
    return pc_min(units_of(writer), writer->devices - 1 - writer->stage + writer->slices - 1);
}

/* GPipe over slices, as TeraPipe has them (Li et al. 2021, arXiv 2102.07988): every F, then every backward pass. With
 * equal units of f and b and no transfer time the span is (mk + p-1)(f + b). All m microbatches are held at once. */
static void write_gpipe(pc_stage_writer *writer, int extra) {
    (void)extra;
    for (int64_t u = 0; u < units_of(writer); u++) put_unit(writer, PC_PASS_F, 0, u);
    for (int64_t u = 0; u < units_of(writer); u++) put_unit(writer, PC_PASS_BW, 0, u);
}

/* Seq1F1B (Sun et al. 2024, arXiv 2406.03488): 1F1B with a warm-up of p-1-d + k-1 F. With equal units of f and b and no
 * transfer time the span is (mk + p-1)(f + b): a k-th of the bubble of 1F1B. Stage d holds p-d + k-1 slices, of which k
 * are a microbatch. */
static void write_1f1b(pc_stage_writer *writer, int extra) {
    int64_t all = units_of(writer), warm_up = warm_up_of(writer);
    (void)extra;
    for (int64_t u = 0; u < warm_up; u++) put_unit(writer, PC_PASS_F, 0, u);
    for (int64_t u = 0; u < all; u++) {
        if (warm_up + u < all) put_unit(writer, PC_PASS_F, 0, warm_up + u);
        put_unit(writer, PC_PASS_BW, 0, u);
    }
}

/* ZB-H1 over slices (Seq1F1B with ZB-H1, section 3.4 of the same): W of stage d run d rounds behind B, so that it holds
 * p + k-1 slices at most. With equal units of f, b, w and no transfer time the span is mk(f + b + w) + (p-1)(f + b - w)
 * where there are units enough. */
static void write_zb_h1(pc_stage_writer *writer, int extra) {
    int64_t all = units_of(writer), warm_up = warm_up_of(writer), behind = pc_min(all, writer->stage);
    (void)extra;
    for (int64_t u = 0; u < warm_up; u++) put_unit(writer, PC_PASS_F, 0, u);
    for (int64_t u = 0; u < all + behind; u++) {
        if (warm_up + u < all) put_unit(writer, PC_PASS_F, 0, warm_up + u);
        if (u < all) put_unit(writer, PC_PASS_B, 0, u);
        if (u >= behind) put_unit(writer, PC_PASS_W, 0, u - behind);
    }
}

/* ---- several parts a stage ---- */

/* The units of interleaved 1F1B are slices. Groups are of whole microbatches, for the backward passes of one come in
 * another order than its F. A group's units are p at least, and so at least one more than p where k does not divide it.
 */
static int group_of(const pc_stage_writer *writer) {
    int whole = (int)pc_divide_up(writer->devices, writer->slices);
    return pc_interleaved_group(whole, writer->microbatches) * writer->slices;
}

static void put_interleaved(pc_stage_writer *writer, pc_pass_kind kind, int64_t number) {
    int parts = writer->chunks / writer->slices, units = (int)units_of(writer);
    pc_pass pass = pc_interleaved_pass(group_of(writer), units, parts, kind, number);
    put_unit(writer, kind, pass.chunk, pass.microbatch);
}

/* Seq1F1B-I (section 3.2 of arXiv 2406.03488): interleaved 1F1B with k-1 F more before the first backward pass, which
 * is 2(p-1-d) + (v-1)n + k-1 of them, with groups of n units. With equal units of f and b, no transfer time and all
 * groups full the span is (mkv + p-1)(f + b). Stage d holds 2(p-1-d) + (v-1)n + k units of one part.
 *
 * No order waits in a circle if that of interleaved 1F1B does not. Number its backward passes as they come. In that
 * order each waits for those of the same number, and for an F of a number higher by k-1 at most; and as many more F
 * stand before it. */
static void write_interleaved(pc_stage_writer *writer, int extra) {
    int parts = writer->chunks / writer->slices, group = group_of(writer);
    int64_t all = units_of(writer) * parts;
    int64_t first = pc_interleaved_warm_up(writer->devices, writer->stage, parts, group, 2) + writer->slices - 1;
    int64_t warm_up = pc_min(all, first);
    if (parts == 1) {
        write_1f1b(writer, extra);
        return;
    }
    for (int64_t u = 0; u < warm_up; u++) put_interleaved(writer, PC_PASS_F, u);
    for (int64_t u = 0; u < all; u++) {
        if (warm_up + u < all) put_interleaved(writer, PC_PASS_F, warm_up + u);
        put_interleaved(writer, PC_PASS_BW, u);
    }
}

/* zb-interleaved over slices: a warm-up of p-1-d + (v-1)n + k-1 F, and W of stage d d rounds behind B. With F = B = W,
 * no transfer time and units enough its span is (3mkv + p-1) f, and every stage holds p + (v-1)n + k-1 units. */
static void write_zb_interleaved(pc_stage_writer *writer, int extra) {
    int parts = writer->chunks / writer->slices, group = group_of(writer);
    int64_t all = units_of(writer) * parts, behind = pc_min(all, writer->stage);
    int64_t first = pc_interleaved_warm_up(writer->devices, writer->stage, parts, group, 1) + writer->slices - 1;
    int64_t warm_up = pc_min(all, first);
    (void)extra;
    for (int64_t u = 0; u < warm_up; u++) put_interleaved(writer, PC_PASS_F, u);
    for (int64_t u = 0; u < all + behind; u++) {
        if (warm_up + u < all) put_interleaved(writer, PC_PASS_F, warm_up + u);
        if (u < all) put_interleaved(writer, PC_PASS_B, u);
        if (u >= behind) put_interleaved(writer, PC_PASS_W, u - behind);
    }
}

/* They have no block: its passes know no slices before them. */
pc_code pc_generate_slices(const pc_generator *self, const pc_generate_request *request, pc_schedule *schedule,
                           pc_block *block, pc_error *error) {
    static pc_stage_rule *const rules[] = {[PC_SLICES_GPIPE] = write_gpipe,
                                           [PC_SLICES_1F1B] = write_1f1b,
                                           [PC_SLICES_ZB_H1] = write_zb_h1,
                                           [PC_SLICES_INTERLEAVED] = write_interleaved,
                                           [PC_SLICES_ZB_INTERLEAVED] = write_zb_interleaved};
    (void)block;
    return pc_schedule_of_rule(self, rules[self->extra], request, schedule, error);
}
