/* The static schedules that people know from frameworks: PyTorch (torch.distributed.pipelining) has both. Each is
 * a rule, and the block that it repeats, as in generate.c and generate_blocks.c.
 */
#include "models/schedule/generate_private.h"

#include "engine/numbers.h"

/* Breadth-first pipelining over looped stages (Lamy-Poirier 2022, arXiv 2211.05953): all microbatches go through a
 * chunk before the first of them enters the next. Backward passes are the mirror image of that: the last chunk first,
 * and the last microbatch first, as PyTorch's ScheduleLoopedBFS has them, so that the last device turns at once. With
 * equal stages and no transfer time all F take ((v-1) max(m, p) + m + p-1) F/v, and all BW as many of theirs behind
 * them: the bubble is ((v-1) max(p-m, 0) + p-1) (F+B+W)/v. All m microbatches are held at once. */
void pc_write_looped_bfs(pc_stage_writer *writer, int extra) {
    int m = writer->microbatches;
    (void)extra;
    for (int c = 0; c < writer->chunks; c++)
        for (int i = 0; i < m; i++) pc_stage_put(writer, PC_PASS_F, c, i);
    for (int c = writer->chunks; c-- > 0;)
        for (int i = m; i-- > 0;) pc_stage_put(writer, PC_PASS_BW, c, i);
}

/* The whole iteration, for nothing in it comes again: n = max(m, p) cells a chunk. F of device d and chunk c in cells d
 * + nc on; all are done in cell L = (v-1)n + m + p-1, and the BW of chunk c and microbatch i, the mirror image, end in
 * cell 3L - 2 (d + nc + i). */
pc_code pc_block_of_looped_bfs(const pc_generator *self, const pc_generate_request *request, pc_block *block,
                               pc_error *error) {
    int p = (int)request->devices, m = (int)request->microbatches, v = (int)request->chunks;
    int64_t pause = pc_max(m, p), length = (v - 1) * pause + m + p - 1;
    pc_code code = pc_block_begin(self, request, m, 3 * length, block, error);
    for (int d = 0; !code && d < p; d++)
        for (int c = 0; c < v; c++)
            for (int i = 0; i < m; i++) {
                int64_t cell = d + c * pause + i;
                pc_block_put(block, d, (pc_pass){i, (int16_t)c, PC_PASS_F}, cell);
                pc_block_put(block, d, (pc_pass){i, (int16_t)c, PC_PASS_BW}, 3 * length - 2 * cell - 2);
            }
    return code;
}

/* ZB-H1 (arXiv 2401.10241) over v chunks, as PyTorch's ScheduleInterleavedZeroBubble has it: the F and B of interleaved
 * 1F1B with the short warm-up, p-1-d + (v-1)n F in groups of n, and W of stage d d rounds behind B. One chunk is ZB-H1.
 * With equal stages, no transfer time, F = B = W and m >= 2p the bubble is (p-1)(F+B-W)/v, and every stage holds p +
 * (v-1)n chunks: its warm-up, the F behind it, and d that wait for their W. */
void pc_write_zb_interleaved(pc_stage_writer *writer, int extra) {
    int p = writer->devices, v = writer->chunks, m = writer->microbatches, group = pc_interleaved_group(p, m);
    int64_t total = (int64_t)m * v, warm_up = p - 1 - writer->stage + (int64_t)(v - 1) * group;
    int64_t behind = writer->stage;
    (void)extra;
    for (int64_t k = 0; k < pc_min(warm_up, total); k++)
        *writer->next++ = pc_interleaved_pass(group, m, v, PC_PASS_F, k);
    for (int64_t k = 0; k < total + behind; k++) {
        if (warm_up + k < total) *writer->next++ = pc_interleaved_pass(group, m, v, PC_PASS_F, warm_up + k);
        if (k < total) *writer->next++ = pc_interleaved_pass(group, m, v, PC_PASS_B, k);
        if (k >= behind) *writer->next++ = pc_interleaved_pass(group, m, v, PC_PASS_W, k - behind);
    }
}

/* The slot of a device's k-th F, and, counted from the first one's, of its k-th B: one each, but for chunks of fewer
 * than p microbatches, which wait until the first has been on all devices. */
static int64_t slot_of(int devices, int group, int64_t k) {
    return k / group * pc_max(devices, group) + k % group;
}

/* A group of g microbatches in an interval of 3gv; where there are fewer than p microbatches, all of them, in 3pv. F of
 * device d and slot s is in cell d + 3s, B in d + 3 (w+s) + 1 with w = p-1-d + (v-1)g, and the W d rounds behind it
 * right behind that round's B. B comes up two cells a device. What the last device hands back to the first one in the
 * next chunk is there in time, as p+1 <= 3g and 2p <= 3g.
 * Lifespan of chunk c: 3 (w + d + 1 + (v-1-2c) g). One chunk is ZB-H1. */
pc_code pc_block_of_zb_interleaved(const pc_generator *self, const pc_generate_request *request, pc_block *block,
                                   pc_error *error) {
    int p = (int)request->devices, v = (int)request->chunks;
    int group = v == 1 ? p : pc_interleaved_group(p, (int)request->microbatches);
    int64_t passes = (int64_t)group * v;
    pc_code code = pc_block_begin(self, request, group, 3 * slot_of(p, group, passes), block, error);
    for (int64_t d = 0; !code && d < p; d++) {
        int64_t first_b = d + 3 * (p - 1 - d + slot_of(p, group, passes - group)) + 1;
        for (int64_t k = 0; k < passes; k++) {
            pc_pass f = pc_interleaved_pass(group, group, v, PC_PASS_F, k);
            pc_pass b = pc_interleaved_pass(group, group, v, PC_PASS_B, k), w = b;
            w.kind = PC_PASS_W;
            pc_block_put(block, (int)d, f, d + 3 * slot_of(p, group, k));
            pc_block_put(block, (int)d, b, first_b + 3 * slot_of(p, group, k));
            pc_block_put(block, (int)d, w, first_b + 3 * slot_of(p, group, k + d) + 1);
        }
    }
    return code;
}
