/* The static schedules of two replicas that run opposite ways (placement bidirectional), and the blocks they repeat.
 * Even microbatches go down the devices, odd ones up. Each replica keeps its own weights, so that they take twice the
 * room: a price that activation memory does not show.
 */
#include "models/schedule/generate_private.h"

#include <stdbool.h>

/* GEMS (Jain et al., SC 2020): each microbatch follows the one before, which goes the other way: as soon as a device
 * has done the backward pass of one, it does the F of the next. Two microbatches are alive at most, one each way, and a
 * device holds one: they pass each other. So F and the backward pass of each in turn, on every device.
 * With equal stages and no transfer time: while the backward passes of one go through the p devices, the F of the next
 * run right behind them, and the turn at the last device takes F more. A microbatch every F+BW + (p-1) max(F, BW), and
 * so the makespan is (m-1)(F+BW + (p-1) max(F, BW)) + p (F+BW). Bubble per microbatch: (p-1) max(F, BW). */
void pc_write_gems(pc_stage_writer *writer, int extra) {
    (void)extra;
    for (int i = 0; i < writer->microbatches; i++) {
        pc_stage_put(writer, PC_PASS_F, i % 2, i);
        pc_stage_put(writer, PC_PASS_BW, i % 2, i);
    }
}

static pc_pass of_replica(int microbatch, pc_pass_kind kind) {
    return (pc_pass){.microbatch = microbatch, .chunk = (int16_t)(microbatch % 2), .kind = (int16_t)kind};
}

/* One microbatch down (F in cell 2d of device d, so that each keeps the two cells behind the BW before it) and one up,
 * in an interval of 4p+2. The first turns at once on the last device: BW in cell 2p-1 + 2(p-1-d). F of the second
 * starts where that ends, in cell 4p-1 - 2d, so that on device 0 it ends in cell 4p; its BW come in cell 4p + 2d, and
 * end in 4p+2 + 2d, where F of the next pair is. Lifespans 4p-1 - 4d and 4d+3: together the interval. */
pc_code pc_block_of_gems(const pc_generator *self, const pc_generate_request *request, pc_block *block,
                         pc_error *error) {
    int p = (int)request->devices;
    pc_code code = pc_block_begin(self, request, 2, 4 * (int64_t)p + 2, block, error);
    for (int64_t d = 0; !code && d < p; d++) {
        pc_block_put(block, (int)d, of_replica(0, PC_PASS_F), 2 * d);
        pc_block_put(block, (int)d, of_replica(0, PC_PASS_BW), 4 * (int64_t)p - 3 - 2 * d);
        pc_block_put(block, (int)d, of_replica(1, PC_PASS_F), 4 * (int64_t)p - 1 - 2 * d);
        pc_block_put(block, (int)d, of_replica(1, PC_PASS_BW), 4 * (int64_t)p + 2 * d);
    }
    return code;
}

/* The passes of one kind in one direction, in order; `slot` is when the next of them would run if every pass took one
 * slot. */
typedef struct stream {
    pc_pass next;
    int64_t slot;
} stream;

/* Chimera's slots. A replica takes a new microbatch every second slot, ceil(p/2) of them in a unit, and a new unit
 * every 2p slots; a microbatch goes to the last stage and back without a pause. */
static int64_t slot_of(int devices, int stage, pc_pass pass) {
    int per_unit = (devices + 1) / 2, number = pass.microbatch / 2, is_up = pass.chunk;
    int64_t entry = (int64_t)(number / per_unit) * 2 * devices + INT64_C(2) * (number % per_unit);
    int depth = is_up ? devices - 1 - stage : stage;
    if (is_up && devices % 2 == 1) entry++; /* or else both ways would meet in a slot */
    return entry + (pass.kind == PC_PASS_F ? depth : 2 * devices - 1 - depth);
}

/* The stream that is first; backward passes win a tie, for they give memory back. */
static stream *first_of(stream streams[4], int microbatches) {
    stream *first = NULL;
    for (int k = 0; k < 4; k++)
        if (streams[k].next.microbatch < microbatches && (!first || streams[k].slot < first->slot)) first = &streams[k];
    return first;
}

/* Chimera (Li & Hoefler, SC 2021, arXiv 2107.06925) with its units put one behind the other: the passes of each device
 * in the order of their slots. Every input is an earlier slot's, so that any p and m give a schedule that can run.
 *
 * For even p no two passes share a slot: of those of device d's parity, F of the replica that runs down take d, d+2,
 * .., d+p-2 and backward passes of the other one p+d, .., 2p-2+d. The other parity is the same upside down, and the
 * next unit follows without a gap. A unit alone has 3p-2 slots, of which a device uses 2p: with F = BW, equal stages,
 * no transfer time and m a multiple of p the bubble is (p-2) F. For other times and m = k p the replay gives (p-2)
 * (max(F, BW) + (k-1) |BW-F|), which the tests hold it to: units no longer fit into each other's gaps. With BW = 2F and
 * k = 1 that is 2(p-2) F, against 3(p-1) F of 1F1B. Device d holds all p/2 microbatches of the replica in whose first
 * half it stands and as many of the other as that has parts from there on. That is p/2 + 1 + min(d, p-1-d), from
 * p/2 + 1 at the ends to p in the middle.
 * The paper has even p. For odd p a unit has p+1 microbatches and that number stands in place of p in these formulas,
 * but no device holds more than p. A last unit that is not full idles more, for its two ways are not in balance. */
void pc_write_chimera(pc_stage_writer *writer, int extra) {
    (void)extra;
    stream streams[4] = {{.next = {0, 0, PC_PASS_BW}},
                         {.next = {1, 1, PC_PASS_BW}},
                         {.next = {0, 0, PC_PASS_F}},
                         {.next = {1, 1, PC_PASS_F}}};
    for (int k = 0; k < 4; k++) streams[k].slot = slot_of(writer->devices, writer->stage, streams[k].next);
    for (stream *first; (first = first_of(streams, writer->microbatches));) {
        *writer->next++ = first->next;
        first->next.microbatch += 2;
        first->slot = slot_of(writer->devices, writer->stage, first->next);
    }
}

/* How many of `first`, first + period, ... come before `slot`. */
static int64_t count_before(int64_t slot, int64_t first, int64_t period) {
    return slot > first ? (slot - first - 1) / period + 1 : 0;
}

/* A unit is a block, and each slot two cells, as long as a BW. For even p, where no two passes share a slot, that is
 * all: p microbatches in an interval of 4p, of which 3p are work (squeezed, 4p-2).
 * For odd p there are p+1 microbatches in the 2p slots of a unit, and in two of them two passes. Slot 2p-1-d of device
 * d has the first BW that comes up and the last F of the other way, and slot d the last BW of the unit before that
 * goes down and the first F. There BW is first, and the slot three cells long: an interval of 4p+2. What waits for a
 * pass of a longer slot has one before it as well, or comes into one: from a device to the next, those slots move
 * as passes do or the other way, by one. */
static int64_t cell_of(int devices, int stage, pc_pass pass) {
    int64_t slot = slot_of(devices, stage, pass), period = INT64_C(2) * devices, turn = period - 1 - stage;
    if (devices % 2 == 0) return 2 * slot;
    bool is_long = slot % period == stage || slot % period == turn;
    int64_t longer = count_before(slot, stage, period) + count_before(slot, turn, period);
    return 2 * slot + longer + (is_long && pass.kind == PC_PASS_F ? 2 : 0) - 2; /* the first F is in a long one */
}

/* Lifespan, p even: 4(p-k) where a device is the k-th, from 0, that a microbatch visits: an interval or less, so that
 * the bound is p; p+1 for odd p. */
pc_code pc_block_of_chimera(const pc_generator *self, const pc_generate_request *request, pc_block *block,
                            pc_error *error) {
    int p = (int)request->devices, microbatches = p + p % 2;
    pc_code code =
        pc_block_begin(self, request, microbatches, p % 2 ? 4 * (int64_t)p + 2 : 4 * (int64_t)p, block, error);
    for (int d = 0; !code && d < p; d++)
        for (int i = 0; i < microbatches; i++) {
            pc_pass f = of_replica(i, PC_PASS_F), bw = of_replica(i, PC_PASS_BW);
            pc_block_put(block, d, f, cell_of(p, d, f));
            pc_block_put(block, d, bw, cell_of(p, d, bw));
        }
    return code;
}
