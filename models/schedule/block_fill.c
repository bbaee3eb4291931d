#include "models/schedule/block_fill.h"

#include "engine/alloc.h"
#include "models/schedule/block_cells.h"

#include <inttypes.h>
#include <string.h>

#define LOOKS_MAX (INT64_C(1) << 28) /* cells that may have to be looked at, in all */

/* A W to be placed: its chunk and microbatch, and how far behind its B the first cells lie that may be free. */
typedef struct waiting {
    int32_t chunk, microbatch;
    int64_t behind;
} waiting;

/* One device. */
typedef struct filling {
    pc_block *block;
    int device;
    bool *is_taken; /* [interval] */
    waiting *list;
    int count;
} filling;

static int64_t *start_of(const filling *f, const waiting *w, int kind) {
    return &f->block->start[pc_block_index(f->block, w->microbatch, f->device, w->chunk, kind)];
}

static void take(const filling *f, int64_t start, int64_t duration) {
    int64_t interval = f->block->interval, at = pc_cell_residue(start, interval);
    for (int64_t k = 0; k < duration && k < interval; k++) f->is_taken[(at + k) % interval] = true;
}

static bool is_free_at(const filling *f, int64_t start) {
    int64_t interval = f->block->interval, at = pc_cell_residue(start, interval);
    int64_t duration = f->block->duration[PC_PASS_W];
    for (int64_t k = 0; k < duration; k++)
        if (k >= interval || f->is_taken[(at + k) % interval]) return false;
    return true;
}

static void take_others(const filling *f) {
    const pc_block *b = f->block;
    memset(f->is_taken, 0, (size_t)b->interval * sizeof *f->is_taken);
    for (int i = 0; i < b->microbatches; i++)
        for (int c = 0; c < b->chunks; c++)
            for (int kind = 0; kind < PC_PASS_KINDS; kind++) {
                int64_t start = pc_block_start(b, i, f->device, c, kind);
                if (start != PC_TIME_NOT_GIVEN) take(f, start, b->duration[kind]);
            }
}

static void list_waiting(const bool *is_free, filling *f) {
    const pc_block *b = f->block;
    f->count = 0;
    for (int c = 0; c < b->chunks; c++)
        for (int i = 0; i < b->microbatches; i++)
            if (is_free[(int64_t)i * b->chunks + c] && pc_placement_visits(b->placement, c, i))
                f->list[f->count++] = (waiting){c, i, 0};
}

/* The one whose free cells are nearest behind its B, the first of several; -1 where one has none left. What was taken
 * stays taken, so that each looks on from where it stopped. */
static int find_nearest(const filling *f) {
    int best = -1;
    for (int k = 0; k < f->count; k++) {
        waiting *w = &f->list[k];
        int64_t after = *start_of(f, w, PC_PASS_B) + f->block->duration[PC_PASS_B];
        while (w->behind < f->block->interval && !is_free_at(f, after + w->behind)) w->behind++;
        if (w->behind == f->block->interval) return -1;
        if (best < 0 || w->behind < f->list[best].behind) best = k;
    }
    return best;
}

static pc_code fill_device(filling *f, pc_error *error) {
    while (f->count > 0) {
        int k = find_nearest(f);
        if (k < 0)
            return pc_error_set(error, PC_ERROR_INPUT,
                                "no free cells for W on device %d in an interval of %" PRId64
                                "; expected a longer interval, or offsets",
                                f->device, f->block->interval);
        waiting w = f->list[k];
        int64_t start = *start_of(f, &w, PC_PASS_B) + f->block->duration[PC_PASS_B] + w.behind;
        *start_of(f, &w, PC_PASS_W) = start;
        take(f, start, f->block->duration[PC_PASS_W]);
        memmove(&f->list[k], &f->list[k + 1], (size_t)(f->count - k - 1) * sizeof *f->list);
        f->count--;
    }
    return PC_OK;
}

/* Of every B whose W is looked for. */
static pc_code check_b(const filling *f, pc_error *error) {
    for (int k = 0; k < f->count; k++)
        if (*start_of(f, &f->list[k], PC_PASS_B) == PC_TIME_NOT_GIVEN)
            return pc_error_set(error, PC_ERROR_INPUT,
                                "W of chunk %d is to stand behind its B on device %d, and there is none; expected one",
                                f->list[k].chunk, f->device);
    return PC_OK;
}

static bool is_too_much(const pc_block *block, const bool *is_free) {
    int64_t count = 0, looks;
    for (int64_t i = 0; i < (int64_t)block->microbatches * block->chunks; i++) count += is_free[i];
    return __builtin_mul_overflow(count * (block->interval + count), block->devices * block->duration[PC_PASS_W],
                                  &looks) ||
           looks > LOOKS_MAX;
}

pc_code pc_block_fill_w(const bool *is_free, pc_block *block, pc_error *error) {
    if (is_too_much(block, is_free))
        return pc_error_set(error, PC_ERROR_INPUT,
                            "offset free in a block of %d microbatches, %d chunks, %d devices and an interval of "
                            "%" PRId64 ": too much to look through; expected a smaller block, or offsets",
                            block->microbatches, block->chunks, block->devices, block->interval);
    filling f = {.block = block};
    f.is_taken = pc_alloc((size_t)block->interval, sizeof *f.is_taken);
    f.list = pc_alloc((size_t)block->microbatches * (size_t)block->chunks, sizeof *f.list);
    pc_code code = f.is_taken && f.list ? PC_OK : pc_error_no_memory(error);
    for (f.device = 0; f.device < block->devices && !code; f.device++) {
        list_waiting(is_free, &f);
        take_others(&f);
        code = check_b(&f, error);
        if (!code) code = fill_device(&f, error);
    }
    pc_free(f.is_taken);
    pc_free(f.list);
    return code;
}
