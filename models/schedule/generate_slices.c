/* The static schedules of slices (placement slices): orders of whole microbatches, over units that are a slice each.
 *
 * A microbatch is cut along its sequence into k slices. The u-th F of a stage is that of slice u mod k of microbatch
 * u / k. The u-th backward pass is that of the same microbatch's slice k-1 - (u mod k), because gradients of keys and
 * values come from behind. So the first backward pass needs the F of a whole microbatch, and each warm-up has k-1 F
 * more than for whole microbatches. The u-th backward pass needs F of unit u + k-1 at most, which then stands before
 * it.
 */
#include "models/schedule/generate_private.h"

#include "engine/numbers.h"

/* `unit` 0 .. m*k-1. */
static void put_unit(pc_stage_writer *writer, pc_pass_kind kind, int64_t unit) {
    int k = writer->chunks, slice = (int)(unit % k);
    pc_stage_put(writer, kind, kind == PC_PASS_F ? slice : k - 1 - slice, (int)(unit / k));
}

static int64_t units_of(const pc_stage_writer *writer) {
    return (int64_t)writer->microbatches * writer->chunks;
}

/* F that stand before the first F and backward pass in turn. */
static int64_t warm_up_of(const pc_stage_writer *writer) {
    return pc_min(units_of(writer), writer->devices - 1 - writer->stage + writer->chunks - 1);
}

/* GPipe over slices, as TeraPipe has them (Li et al. 2021, arXiv 2102.07988): every F, then every backward pass. With
 * equal units of f and b and no transfer time the span is (mk + p-1)(f + b). All m microbatches are held at once. */
static void write_gpipe(pc_stage_writer *writer, int extra) {
    (void)extra;
    for (int64_t u = 0; u < units_of(writer); u++) put_unit(writer, PC_PASS_F, u);
    for (int64_t u = 0; u < units_of(writer); u++) put_unit(writer, PC_PASS_BW, u);
}

/* Seq1F1B (Sun et al. 2024, arXiv 2406.03488): 1F1B with a warm-up of p-1-d + k-1 F. With equal units of f and b and no
 * transfer time the span is (mk + p-1)(f + b): a k-th of the bubble of 1F1B. Stage d holds p-d + k-1 slices, of which k
 * are a microbatch. */
static void write_1f1b(pc_stage_writer *writer, int extra) {
    int64_t all = units_of(writer), warm_up = warm_up_of(writer);
    (void)extra;
    for (int64_t u = 0; u < warm_up; u++) put_unit(writer, PC_PASS_F, u);
    for (int64_t u = 0; u < all; u++) {
        if (warm_up + u < all) put_unit(writer, PC_PASS_F, warm_up + u);
        put_unit(writer, PC_PASS_BW, u);
    }
}

/* ZB-H1 over slices (Seq1F1B with ZB-H1, section 3.4 of the same): W of stage d run d rounds behind B, so that it holds
 * p + k-1 slices at most. With equal units of f, b, w and no transfer time the span is mk(f + b + w) + (p-1)(f + b - w)
 * where there are units enough. */
static void write_zb_h1(pc_stage_writer *writer, int extra) {
    int64_t all = units_of(writer), warm_up = warm_up_of(writer), behind = pc_min(all, writer->stage);
    (void)extra;
    for (int64_t u = 0; u < warm_up; u++) put_unit(writer, PC_PASS_F, u);
    for (int64_t u = 0; u < all + behind; u++) {
        if (warm_up + u < all) put_unit(writer, PC_PASS_F, warm_up + u);
        if (u < all) put_unit(writer, PC_PASS_B, u);
        if (u >= behind) put_unit(writer, PC_PASS_W, u - behind);
    }
}

/* They have no block: its passes know no slices before them. */
pc_code pc_generate_slices(const pc_generator *self, const pc_generate_request *request, pc_schedule *schedule,
                           pc_block *block, pc_error *error) {
    static pc_stage_rule *const rules[] = {
        [PC_SLICES_GPIPE] = write_gpipe, [PC_SLICES_1F1B] = write_1f1b, [PC_SLICES_ZB_H1] = write_zb_h1};
    (void)block;
    return pc_schedule_of_rule(self, rules[self->extra], request, schedule, error);
}
