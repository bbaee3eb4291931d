/* Schedules with vocabulary parallelism: Yeung et al. 2024 (arXiv 2411.05288), sections 4 to 6. The output layer, and
 * with it the input layer, is cut over all p stages, which all do a pass S and a pass T of every microbatch.
 *
 * The paper inserts S and T into the building block of a schedule, and moves the backward passes of a microbatch behind
 * by one interval for each barrier of all stages: a barrier then has an interval to hide in. So a stage holds one
 * microbatch more than without for each barrier: p + 1 with one (its algorithm 2, Vocab-2), p + 2 with two (algorithm
 * 1, Vocab-1), where 1F1B holds p.
 *
 * Here each pass of a block has a cell, as if S and T took no time, and every microbatch comes an interval later. A
 * stage runs its passes in the order of their cells. What waits for another pass has a later cell, and so no order can
 * lock. The orders do not look at times. */
#include "models/schedule/generate_private.h"

#include "engine/alloc.h"

#include <stdlib.h>

enum { STEPS = 4 }; /* in a cell: a pass, then S, then T */

/* A pass of a stage, and when its turn is. */
typedef struct turn {
    int64_t step;
    pc_pass pass;
} turn;

/* The cells of one microbatch on one stage. */
typedef struct cells {
    turn list[8];
    int count;
    int64_t interval;
} cells;

static void put(cells *x, pc_pass_kind kind, int chunk, int64_t cell, int step) {
    pc_pass pass = {.microbatch = 0, .chunk = (int16_t)chunk, .kind = (int16_t)kind};
    x->list[x->count++] = (turn){cell * STEPS + step, pass};
}

/* S a cell behind the last F, T with the S of the next microbatch; with one barrier behind the last part's B, which
 * tells this from two (pc_schedule_find_barriers). */
static void put_vocab(cells *x, pc_barriers barriers, int64_t cell, int64_t slack) {
    put(x, PC_PASS_S, 0, cell, 1);
    put(x, PC_PASS_T, 0, cell + x->interval + (barriers == PC_BARRIERS_ONE ? slack : 0), 2);
}

/* 1F1B: F takes a cell, BW two. */
static cells cells_of_1f1b(int p, int d, pc_barriers barriers) {
    cells x = {.interval = 3};
    put(&x, PC_PASS_F, 0, d, 0);
    put_vocab(&x, barriers, p, 0);
    put(&x, PC_PASS_BW, 0, p + 3 * (int64_t)barriers + 2 * (int64_t)(p - 1 - d), 0);
    return x;
}

/* The first cell behind `after` that none of the passes has in its interval. */
static int64_t free_cell(const cells *x, int64_t after) {
    for (int64_t cell = after + 1;; cell++) {
        bool is_free = true;
        for (int i = 0; i < x->count; i++)
            if (x->list[i].pass.kind < PC_PASS_S && (cell - x->list[i].step / STEPS) % x->interval == 0)
                is_free = false;
        if (is_free) return cell;
    }
}

/* V-Half ('Pipeline Parallelism with Controllable Memory', arXiv 2405.15362, figure 6): every pass takes a cell, and
 * W the next free one behind its B. */
static cells cells_of_v_half(int p, int d, pc_barriers barriers) {
    cells x = {.interval = 6};
    int64_t slack = p % 2 == 0 ? 3 : 0, later = 6 * (int64_t)barriers + slack;
    int64_t b1 = 3 * (int64_t)p - 1 + later + 2 * (int64_t)d, b0 = 6 * (int64_t)p - 2 + later - d;
    put(&x, PC_PASS_F, 0, 2 * (int64_t)d, 0);
    put(&x, PC_PASS_F, 1, 3 * (int64_t)p - 2 - d, 0);
    put(&x, PC_PASS_B, 1, b1, 0);
    put(&x, PC_PASS_B, 0, b0, 0);
    put(&x, PC_PASS_W, 1, free_cell(&x, b1), 0);
    put(&x, PC_PASS_W, 0, free_cell(&x, b0), 0);
    put_vocab(&x, barriers, 3 * (int64_t)p - 1, slack);
    return x;
}

static int in_turn(const void *left, const void *right) {
    const turn *a = left, *b = right;
    if (a->step != b->step) return a->step < b->step ? -1 : 1;
    return a->pass.microbatch - b->pass.microbatch;
}

static void write_stage(const cells *x, turn *turns, pc_schedule *schedule, int stage) {
    int64_t count = 0;
    for (int i = 0; i < schedule->microbatches; i++)
        for (int k = 0; k < x->count; k++) {
            turns[count] = x->list[k];
            turns[count].step += i * x->interval * STEPS;
            turns[count++].pass.microbatch = i;
        }
    qsort(turns, (size_t)count, sizeof *turns, in_turn);
    for (int64_t i = 0; i < count; i++) schedule->passes[schedule->offsets[stage] + i] = turns[i].pass;
}

pc_code pc_generate_vocab(const pc_generator *self, const pc_generate_request *request, pc_schedule *schedule,
                          pc_block *block, pc_error *error) {
    int p = (int)request->devices, m = (int)request->microbatches, v = (int)request->chunks;
    int64_t in_stage = (v == 1 ? 4 : 8) * (int64_t)m;
    int64_t *lengths = pc_alloc((size_t)p, sizeof *lengths);
    turn *turns = lengths ? pc_alloc((size_t)in_stage, sizeof *turns) : NULL;
    (void)block; /* stays empty: a block of cells has no S and T */
    for (int d = 0; turns && d < p; d++) lengths[d] = in_stage;
    pc_code code = turns ? pc_schedule_create(self->name, p, m, v, self->placement, lengths, schedule, error)
                         : pc_error_no_memory(error);
    if (!code) schedule->barriers = self->barriers;
    for (int d = 0; !code && d < p; d++) {
        cells x = v == 1 ? cells_of_1f1b(p, d, self->barriers) : cells_of_v_half(p, d, self->barriers);
        write_stage(&x, turns, schedule, d);
    }
    pc_free(lengths);
    pc_free(turns);
    return code;
}
