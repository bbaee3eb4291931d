/* The blocks that the static schedules of one replica repeat: cells as block.h counts them, F, B, W and R of 1 and BW
 * of 2. All start with F of device 0 in cell 0. Put down again and again, the passes of a block are, by their starts,
 * in the order of the rule of the same name in generate.c, from the first pass to the last. Squeezed, one is the other.
 * Blocks of two replicas stand in generate_bidirectional.c.
 */
#include "models/schedule/generate_private.h"

pc_code pc_block_begin(const pc_generator *generator, const pc_generate_request *request, int microbatches,
                       int64_t interval, pc_block *block, pc_error *error) {
    int chunks = (int)request->chunks;
    pc_code code = pc_block_create(generator->placement, (int)request->devices, chunks, microbatches, block, error);
    if (code) return code;
    block->interval = interval;
    block->duration[PC_PASS_F] = 1;
    block->duration[PC_PASS_R] = generator->recomputes ? 1 : 0;
    block->duration[PC_PASS_BW] = generator->splits ? 0 : 2;
    block->duration[PC_PASS_B] = block->duration[PC_PASS_W] = generator->splits ? 1 : 0;
    return PC_OK;
}

void pc_block_put(pc_block *block, int device, pc_pass pass, int64_t cell) {
    block->start[pc_block_index(block, pass.microbatch, device, pass.chunk, pass.kind)] = cell;
}

/* One chunk, F and BW in an interval of 3. F of device d is in cell d, and BW in cell d + 3w + 1, so that w+1 F stand
 * before the first BW. BW of device d must start 2 cells or more behind that of d+1: 3 (w_d - w_d+1) - 1 >= 2, or: w
 * grows by one or more from a device to the one before it. The last one's is 0 or more. Lifespan 3 (w+1), bound w+1. */
static void put_linear(pc_block *block, int device, int64_t warm_up) {
    pc_block_put(block, device, (pc_pass){.kind = PC_PASS_F}, device);
    pc_block_put(block, device, (pc_pass){.kind = PC_PASS_BW}, device + 3 * warm_up + 1);
}

/* GPipe: w = m-1 on the last device, so that the m F of an iteration stand before its first BW, and p-1-d more on
 * device d, which 1F1B has too. BW in cell d + 3 (m-1 + p-1-d) + 1 = 3m + 3p-5 - 2d: each comes two behind the one
 * after it. The bound is m + p-1-d, of microbatches of which there are m: the one block that depends on m. */
pc_code pc_block_of_gpipe(const pc_generator *self, const pc_generate_request *request, pc_block *block,
                          pc_error *error) {
    int p = (int)request->devices;
    pc_code code = pc_block_begin(self, request, 1, 3, block, error);
    for (int d = 0; !code && d < p; d++) put_linear(block, d, request->microbatches - 1 + p - 1 - d);
    return code;
}

/* 1F1B: w = p-1-d, the least there is. BW in cell p + 2 (p-1-d): it comes up two cells a device, as long as it takes.
 * Eager 1F1B (`extra` 2): w = 2(p-1-d), BW in cell 6p-5 - 5d: it comes up five cells a device, of which three are there
 * for transfers. */
pc_code pc_block_of_1f1b(const pc_generator *self, const pc_generate_request *request, pc_block *block,
                         pc_error *error) {
    int p = (int)request->devices;
    pc_code code = pc_block_begin(self, request, 1, 3, block, error);
    for (int d = 0; !code && d < p; d++) put_linear(block, d, (int64_t)self->extra * (p - 1 - d));
    return code;
}

/* 1F1B that recomputes, in an interval of 4: F in cell d, R in d + 4 (p-1-d) + 1 and BW right behind it, in 4p-2 - 3d.
 * BW comes up three cells a device, one more than it takes: with two, every fourth device would collide. Lifespan
 * 4 (p-d). */
pc_code pc_block_of_1f1b_r(const pc_generator *self, const pc_generate_request *request, pc_block *block,
                           pc_error *error) {
    int p = (int)request->devices;
    pc_code code = pc_block_begin(self, request, 1, 4, block, error);
    for (int d = 0; !code && d < p; d++) {
        pc_block_put(block, d, (pc_pass){.kind = PC_PASS_F}, d);
        pc_block_put(block, d, (pc_pass){.kind = PC_PASS_R}, d + 4 * (p - 1 - d) + 1);
        pc_block_put(block, d, (pc_pass){.kind = PC_PASS_BW}, d + 4 * (p - 1 - d) + 2);
    }
    return code;
}

/* Interleaved 1F1B: a group of g microbatches, each with v passes of a kind a device, in an interval of 3gv; g is p or
 * a few more, and p also where there are fewer microbatches. The n-th F of device d is in cell s d + 3n, the n-th BW in
 * cell s d + 3 (w+n) + 1. Here w = e(p-1-d) + (v-1)g for `extra` e; if `extra` is 3, w is one F more than for 2. The
 * function pc_interleaved_pass says which microbatch and chunk the n-th is; n + gv is the n-th of the next block. All
 * chunks go the same way. So the last device must be done, g passes after the first one's n-th, with what it hands back
 * to the first device. That is s(p-1) + 1 <= 3g, for F, and the other way s' (p-1) + 2 <= 3g for BW, which comes up by
 * s' = 3e - s cells a device. So s and s' are at most 3: with `extra` 1 they are 1 and 2, the lengths of F and BW, and
 * with 2 both are 3, of which two cells of each F and one of each BW are there for transfers. A last group of fewer
 * microbatches is no whole block, and its BW have other F beside them. Lifespan of chunk c: 3 (w + 1 + (v-1-2c) g). One
 * chunk is 1F1B.
 */
pc_code pc_block_of_interleaved(const pc_generator *self, const pc_generate_request *request, pc_block *block,
                                pc_error *error) {
    int p = (int)request->devices, v = (int)request->chunks, extra = pc_interleaved_extra(p, v, self->extra);
    int group = v == 1 || request->microbatches < p ? p : pc_interleaved_group(p, (int)request->microbatches);
    int64_t passes = (int64_t)group * v, shift = extra == 1 ? 1 : 3;
    pc_code code = pc_block_begin(self, request, group, 3 * passes, block, error);
    for (int d = 0; !code && d < p; d++) {
        int64_t warm_up = pc_interleaved_warm_up(p, d, v, group, extra);
        for (int64_t n = 0; n < passes; n++) {
            pc_block_put(block, d, pc_interleaved_pass(group, group, v, PC_PASS_F, n), shift * d + 3 * n);
            pc_block_put(block, d, pc_interleaved_pass(group, group, v, PC_PASS_BW, n),
                         shift * d + 3 * (warm_up + n) + 1);
        }
    }
    return code;
}

/* ZB-H1 and ZB-H2 (`extra` k is 1 or 2), in an interval of 3: F in cell d, B 3k(p-1-d) + 1 behind it, for k(p-1-d) more
 * F stand before it, and W 3kd + 1 behind B, for kd more B do. B comes up 3k-1 cells a device. Lifespan 3k(p-1) + 3 on
 * every device. */
pc_code pc_block_of_zb_h(const pc_generator *self, const pc_generate_request *request, pc_block *block,
                         pc_error *error) {
    int p = (int)request->devices;
    int64_t k = self->extra;
    pc_code code = pc_block_begin(self, request, 1, 3, block, error);
    for (int d = 0; !code && d < p; d++) {
        int64_t b = d + 3 * k * (p - 1 - d) + 1;
        pc_block_put(block, d, (pc_pass){.kind = PC_PASS_F}, d);
        pc_block_put(block, d, (pc_pass){.kind = PC_PASS_B}, b);
        pc_block_put(block, d, (pc_pass){.kind = PC_PASS_W}, b + 3 * k * d + 1);
    }
    return code;
}
