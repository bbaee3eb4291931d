#include "models/schedule/block.h"

#include "engine/alloc.h"
#include "engine/numbers.h"
#include "models/schedule/block_cells.h"

#include <string.h>

pc_code pc_block_create(pc_placement placement, int devices, int chunks, int microbatches, pc_block *block,
                        pc_error *error) {
    pc_block made = {.placement = placement, .devices = devices, .chunks = chunks, .microbatches = microbatches};
    size_t count = (size_t)microbatches * (size_t)devices * (size_t)chunks * PC_PASS_KINDS;
    made.start = pc_alloc(count, sizeof *made.start);
    made.duration = pc_alloc(PC_PASS_KINDS, sizeof *made.duration);
    if (!made.start || !made.duration) {
        pc_block_free(&made);
        return pc_error_no_memory(error);
    }
    for (size_t i = 0; i < count; i++) made.start[i] = PC_TIME_NOT_GIVEN;
    *block = made;
    return PC_OK;
}

void pc_block_free(pc_block *block) {
    pc_free(block->start);
    pc_free(block->duration);
    memset(block, 0, sizeof *block);
}

/* The pass after which nothing of the chunk is held: W, or BW where B and W are one. */
static pc_pass_kind last_kind(const pc_block *block) {
    return block->duration[PC_PASS_BW] > 0 ? PC_PASS_BW : PC_PASS_W;
}

static bool recomputes(const pc_block *block) {
    return block->duration[PC_PASS_R] > 0;
}

static int64_t end_of(const pc_block *block, int microbatch, int device, int chunk, int kind) {
    return pc_block_start(block, microbatch, device, chunk, kind) + block->duration[kind];
}

int64_t pc_block_lifespan(const pc_block *block, int microbatch, int device, int chunk) {
    return end_of(block, microbatch, device, chunk, last_kind(block)) -
           pc_block_start(block, microbatch, device, chunk, PC_PASS_F);
}

int64_t pc_block_peak_bound(const pc_block *block, int device) {
    int64_t bound = 0;
    for (int i = 0; i < block->microbatches; i++)
        for (int c = 0; c < block->chunks; c++) {
            if (!pc_placement_visits(block->placement, c, i)) continue;
            bound += pc_divide_up(pc_block_lifespan(block, i, device, c), block->interval);
        }
    return bound;
}

/* ---- what is really held ---- */

/* How many of `count` repetitions of an event at `first`, first + interval, ... have come by time t. */
static int64_t happened(int64_t first, int64_t interval, int64_t count, int64_t t) {
    int64_t number = pc_divide_down(t - first, interval) + 1;
    return number < 0 ? 0 : number > count ? count : number;
}

/* The pass that takes what F does not keep: R, or a B that recomputes; BW recomputes in less than is counted. */
static pc_pass_kind retaking_kind(const pc_block *block) {
    return recomputes(block) ? PC_PASS_R : PC_PASS_B;
}

static bool retakes(const pc_block *block, const pc_costs *costs) {
    return recomputes(block) || (costs->recomputes_in_b && last_kind(block) == PC_PASS_W);
}

static int64_t retaken(const pc_block *block, const pc_costs *costs, int64_t at) {
    return retakes(block, costs) ? costs->activation_bytes[at] - costs->activation_kept_bytes[at] : 0;
}

/* All that the chunk takes. */
static int64_t whole(const pc_block *block, const pc_costs *costs, int64_t at) {
    bool is_kept = costs->recomputes_in_b && !retakes(block, costs);
    return is_kept ? costs->activation_kept_bytes[at] : costs->activation_bytes[at];
}

/* What the device holds at time t, when what ends at t has gone and what starts at t has come. */
static int64_t level_at(const pc_block *block, const pc_costs *costs, int device, int64_t repetitions, int64_t t) {
    bool splits = last_kind(block) == PC_PASS_W;
    int64_t level = 0;
    for (int i = 0; i < block->microbatches; i++)
        for (int c = 0; c < block->chunks; c++) {
            if (!pc_placement_visits(block->placement, c, i)) continue;
            int64_t at = pc_costs_index(costs, device, c), by_b = splits ? costs->activation_b_bytes[at] : 0;
            int64_t f = pc_block_start(block, i, device, c, PC_PASS_F), by_r = retaken(block, costs, at);
            int64_t all = whole(block, costs, at);
            int64_t begun = happened(f, block->interval, repetitions, t);
            int64_t ended = happened(end_of(block, i, device, c, last_kind(block)), block->interval, repetitions, t);
            level += begun * (all - by_r) - ended * (all - by_b);
            if (by_b) level -= by_b * happened(end_of(block, i, device, c, PC_PASS_B), block->interval, repetitions, t);
            if (by_r)
                level += by_r * happened(pc_block_start(block, i, device, c, retaking_kind(block)), block->interval,
                                         repetitions, t);
        }
    return level;
}

static int64_t longest_lifespan(const pc_block *block, int device) {
    int64_t longest = 0;
    for (int i = 0; i < block->microbatches; i++)
        for (int c = 0; c < block->chunks; c++) {
            if (!pc_placement_visits(block->placement, c, i)) continue;
            int64_t lifespan = pc_block_lifespan(block, i, device, c);
            if (lifespan > longest) longest = lifespan;
        }
    return longest;
}

/* The highest level at any of the repetitions `from` to `last` of a pass. */
static int64_t highest_level(const pc_block *block, const pc_costs *costs, int device, int64_t repetitions,
                             int64_t start, int64_t from, int64_t last) {
    int64_t highest = 0;
    for (int64_t k = from; k <= last; k++) {
        int64_t level = level_at(block, costs, device, repetitions, start + k * block->interval);
        if (level > highest) highest = level;
    }
    return highest;
}

int64_t pc_block_peak(const pc_block *block, const pc_costs *costs, int device, int microbatches) {
    int64_t repetitions = pc_divide_up(microbatches, block->microbatches), peak = 0;
    /* Between the end of the first repetition and the start of the last one all intervals are alike. */
    int64_t steady = longest_lifespan(block, device) / block->interval + 1;
    int64_t from = 0, last = repetitions - 1;
    if (2 * steady < repetitions) from = last = steady;
    for (int i = 0; i < block->microbatches; i++)
        for (int c = 0; c < block->chunks; c++) {
            if (!pc_placement_visits(block->placement, c, i)) continue;
            int64_t f = pc_block_start(block, i, device, c, PC_PASS_F);
            int64_t level = highest_level(block, costs, device, repetitions, f, from, last);
            if (level > peak) peak = level;
            if (!retakes(block, costs)) continue;
            int64_t r = pc_block_start(block, i, device, c, retaking_kind(block));
            level = highest_level(block, costs, device, repetitions, r, from, last);
            if (level > peak) peak = level;
        }
    return peak;
}

/* ---- validity ---- */

/* The passes of a device in the order microbatch, chunk, kind. */
static int64_t start_of_slot(const pc_block *block, int device, int slot) {
    int slots = block->chunks * PC_PASS_KINDS;
    return block->start[((int64_t)(slot / slots) * block->devices + device) * slots + slot % slots];
}

static bool is_free_of_collisions(const pc_block *block, int device) {
    int slots = block->microbatches * block->chunks * PC_PASS_KINDS;
    for (int a = 0; a < slots; a++) {
        int64_t start = start_of_slot(block, device, a), duration = block->duration[a % PC_PASS_KINDS];
        if (start == PC_TIME_NOT_GIVEN) continue;
        for (int b = 0; b < a; b++) {
            int64_t other = start_of_slot(block, device, b);
            if (other != PC_TIME_NOT_GIVEN &&
                pc_cells_overlap(block->interval, start, duration, other, block->duration[b % PC_PASS_KINDS]))
                return false;
        }
    }
    return true;
}

/* Whether the passes of one part wait for each other and for their neighbours in the model. */
static bool keeps_dependencies(const pc_block *block, int microbatch, int part) {
    int parts = pc_placement_parts(block->placement, block->devices, block->chunks);
    pc_pass_kind back = block->duration[PC_PASS_BW] > 0 ? PC_PASS_BW : PC_PASS_B;
    int device = pc_placement_stage(block->placement, block->devices, part, microbatch);
    int chunk = pc_placement_chunk(block->placement, block->devices, part, microbatch);
    int64_t f_end = end_of(block, microbatch, device, chunk, PC_PASS_F);
    int64_t b_start = pc_block_start(block, microbatch, device, chunk, back);
    if (back == PC_PASS_B && end_of(block, microbatch, device, chunk, PC_PASS_B) >
                                 pc_block_start(block, microbatch, device, chunk, PC_PASS_W))
        return false;
    if (recomputes(block)) {
        if (f_end > pc_block_start(block, microbatch, device, chunk, PC_PASS_R)) return false;
        if (end_of(block, microbatch, device, chunk, PC_PASS_R) > b_start) return false;
    }
    if (part == parts - 1) return f_end <= b_start;
    int next_device = pc_placement_stage(block->placement, block->devices, part + 1, microbatch);
    int next_chunk = pc_placement_chunk(block->placement, block->devices, part + 1, microbatch);
    return f_end <= pc_block_start(block, microbatch, next_device, next_chunk, PC_PASS_F) &&
           end_of(block, microbatch, next_device, next_chunk, back) <= b_start;
}

bool pc_block_is_valid(const pc_block *block) {
    int parts = pc_placement_parts(block->placement, block->devices, block->chunks);
    for (int d = 0; d < block->devices; d++)
        if (!is_free_of_collisions(block, d)) return false;
    for (int i = 0; i < block->microbatches; i++)
        for (int part = 0; part < parts; part++)
            if (!keeps_dependencies(block, i, part)) return false;
    return true;
}
