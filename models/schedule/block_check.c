/* What is wrong with a block, in words. pc_block_is_valid says the same without, for searches. */
#include "models/schedule/given_block.h"

#include "engine/alloc.h"
#include "models/schedule/block_cells.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { PASS_TEXT = 64 };

/* A pass of the block on one device, and where it stands in the interval. */
typedef struct slot {
    int64_t residue;
    pc_pass pass;
} slot;

/* "F of chunk 1", "F of chunk 1 (microbatch 3 of the block)". */
static const char *name_pass(const pc_block *block, pc_pass pass, char text[PASS_TEXT]) {
    int used = snprintf(text, PASS_TEXT, "%s of chunk %d", pc_pass_kind_name((pc_pass_kind)pass.kind), pass.chunk);
    if (block->microbatches > 1)
        snprintf(text + used, (size_t)(PASS_TEXT - used), " (microbatch %d of the block)", pass.microbatch);
    return text;
}

/* ---- every pass is there ---- */

static pc_code check_complete(const pc_block *block, int device, pc_error *error) {
    char name[PASS_TEXT];
    for (int i = 0; i < block->microbatches; i++)
        for (int c = 0; c < block->chunks; c++)
            for (int kind = 0; kind < PC_PASS_KINDS; kind++) {
                pc_pass pass = {i, (int16_t)c, (int16_t)kind};
                bool is_wanted = block->duration[kind] > 0 && pc_placement_visits(block->placement, c, i);
                bool is_there = pc_block_start(block, i, device, c, kind) != PC_TIME_NOT_GIVEN;
                if (is_wanted == is_there) continue;
                return pc_error_set(error, PC_ERROR_INPUT, "%s %s on device %d; expected %s",
                                    is_wanted ? "no" : "there is", name_pass(block, pass, name), device,
                                    is_wanted ? "every pass once"
                                              : "even microbatches in chunk 0 and odd ones in chunk 1");
            }
    return PC_OK;
}

/* ---- no two passes in one cell ---- */

static int compare_slots(const void *left, const void *right) {
    const slot *a = left, *b = right;
    int64_t order = a->residue != b->residue                   ? a->residue - b->residue
                    : a->pass.microbatch != b->pass.microbatch ? a->pass.microbatch - b->pass.microbatch
                    : a->pass.kind != b->pass.kind             ? a->pass.kind - b->pass.kind
                                                               : a->pass.chunk - b->pass.chunk;
    return (order > 0) - (order < 0);
}

static int list_slots(const pc_block *block, int device, slot *slots) {
    int count = 0;
    for (int i = 0; i < block->microbatches; i++)
        for (int c = 0; c < block->chunks; c++)
            for (int kind = 0; kind < PC_PASS_KINDS; kind++) {
                int64_t start = pc_block_start(block, i, device, c, kind);
                if (start == PC_TIME_NOT_GIVEN) continue;
                slots[count++] = (slot){pc_cell_residue(start, block->interval), {i, (int16_t)c, (int16_t)kind}};
            }
    qsort(slots, (size_t)count, sizeof *slots, compare_slots);
    return count;
}

static pc_code blame_collision(const pc_block *block, int device, const slot *a, const slot *b, pc_error *error) {
    char first[PASS_TEXT], second[PASS_TEXT];
    return pc_error_set(error, PC_ERROR_INPUT,
                        "%s and %s collide on device %d: both take cell %" PRId64 " of the interval of %" PRId64
                        "; expected one pass a cell",
                        name_pass(block, a->pass, first), name_pass(block, b->pass, second), device, b->residue,
                        block->interval);
}

/* Along the interval each pass ends before the next one starts, and the last one before the first one comes again. */
static pc_code check_device(const pc_block *block, int device, slot *slots, pc_error *error) {
    int count = list_slots(block, device, slots);
    for (int k = 0; k < count; k++) {
        const slot *a = &slots[k], *b = &slots[(k + 1) % count];
        int64_t next = b->residue + (k + 1 == count ? block->interval : 0);
        if (a->residue + block->duration[a->pass.kind] > next) return blame_collision(block, device, a, b, error);
    }
    return PC_OK;
}

static pc_code check_collisions(const pc_block *block, pc_error *error) {
    size_t most = (size_t)block->microbatches * (size_t)block->chunks * PC_PASS_KINDS;
    slot *slots = pc_alloc(most, sizeof *slots);
    pc_code code = slots ? PC_OK : pc_error_no_memory(error);
    for (int d = 0; d < block->devices && !code; d++) code = check_device(block, d, slots, error);
    pc_free(slots);
    return code;
}

/* ---- nothing starts too early ---- */

/* A pass of a part of the model. */
typedef struct step {
    int part, microbatch, kind;
} step;

static int device_of(const pc_block *block, step at) {
    return pc_placement_stage(block->placement, block->devices, at.part, at.microbatch);
}

static int64_t start_of(const pc_block *block, step at) {
    int chunk = pc_placement_chunk(block->placement, block->devices, at.part, at.microbatch);
    return pc_block_start(block, at.microbatch, device_of(block, at), chunk, at.kind);
}

static const char *name_step(const pc_block *block, step at, char text[PASS_TEXT]) {
    int chunk = pc_placement_chunk(block->placement, block->devices, at.part, at.microbatch);
    return name_pass(block, (pc_pass){at.microbatch, (int16_t)chunk, (int16_t)at.kind}, text);
}

static pc_code check_after(const pc_block *block, step early, step late, pc_error *error) {
    int64_t end = start_of(block, early) + block->duration[early.kind], start = start_of(block, late);
    char first[PASS_TEXT], second[PASS_TEXT];
    if (end <= start) return PC_OK;
    return pc_error_set(error, PC_ERROR_INPUT,
                        "%s on device %d starts in cell %" PRId64 ", but waits for %s on device %d, which ends at "
                        "%" PRId64 "; expected it in cell %" PRId64 " or later",
                        name_step(block, late, second), device_of(block, late), start, name_step(block, early, first),
                        device_of(block, early), end, end);
}

static pc_code check_part(const pc_block *block, int part, int microbatch, pc_error *error) {
    bool splits = block->duration[PC_PASS_W] > 0, recomputes = block->duration[PC_PASS_R] > 0;
    bool is_last = part == pc_placement_parts(block->placement, block->devices, block->chunks) - 1;
    step f = {part, microbatch, PC_PASS_F}, r = {part, microbatch, PC_PASS_R}, w = {part, microbatch, PC_PASS_W};
    step back = {part, microbatch, splits ? PC_PASS_B : PC_PASS_BW};
    step next_f = {part + 1, microbatch, PC_PASS_F}, next_back = {part + 1, microbatch, back.kind};
    pc_code code = is_last ? PC_OK : check_after(block, f, next_f, error);
    if (!code && !is_last) code = check_after(block, next_back, back, error);
    if (!code) code = check_after(block, f, recomputes ? r : back, error);
    if (!code && recomputes) code = check_after(block, r, back, error);
    return code || !splits ? code : check_after(block, back, w, error);
}

pc_code pc_block_check(const pc_block *block, pc_error *error) {
    int parts = pc_placement_parts(block->placement, block->devices, block->chunks);
    pc_code code = PC_OK;
    for (int d = 0; d < block->devices && !code; d++) code = check_complete(block, d, error);
    if (!code) code = check_collisions(block, error);
    for (int i = 0; i < block->microbatches && !code; i++)
        for (int part = 0; part < parts && !code; part++) code = check_part(block, part, i, error);
    return code;
}
