/* deployed_grid.h: V-shaped orders on a grid, as their public generators write them: a row a device, in which every
 * pass fills one cell. Private to the generators. */
#ifndef PC_MODELS_SCHEDULE_DEPLOYED_GRID_H
#define PC_MODELS_SCHEDULE_DEPLOYED_GRID_H

#include "models/schedule/deployed.h"

#include <stdbool.h>
#include <stdint.h>

/* What a device does for a microbatch, in the order in which it does it, kind and chunk. Those of even number come to
 * it from the device before (W aside, which comes from nowhere), the others from the device behind. */
typedef enum pc_letter {
    PC_LETTER_F0,
    PC_LETTER_F1,
    PC_LETTER_B1,
    PC_LETTER_B0,
    PC_LETTER_W1,
    PC_LETTER_W0,
    PC_LETTERS,
    PC_NO_LETTER = PC_LETTERS,   /* an empty cell */
    PC_TRAVELLERS = PC_LETTER_W1 /* those before it go from device to device */
} pc_letter;

/* The k-th time that a letter stands in a row it is microbatch k's. */
typedef struct pc_grid {
    int devices;
    int microbatches;
    int width;      /* cells of a row that count: behind them all are empty */
    int room;       /* cells that a row has */
    uint8_t *cells; /* [devices][room], of pc_letter; owned */
} pc_grid;

/* An empty one. Free it with pc_grid_free; a zeroed one is fine. */
pc_code pc_grid_create(int devices, int microbatches, int room, pc_grid *grid, pc_error *error);
void pc_grid_free(pc_grid *grid);
void pc_grid_clear(pc_grid *grid);

static inline uint8_t *pc_grid_row(const pc_grid *grid, int device) {
    return grid->cells + (int64_t)device * grid->room;
}

/* What a pass adds to the chunks' activations that its device holds: F takes one, W gives it back. */
static inline int pc_letter_holds(int letter) {
    return (letter <= PC_LETTER_F1) - (letter == PC_LETTER_W1 || letter == PC_LETTER_W0);
}

/* The most that a device holds; and any device. */
int pc_grid_device_peak(const pc_grid *grid, int device);
int pc_grid_peak(const pc_grid *grid);

/* Room to squeeze in, for grids of so many devices and microbatches. */
typedef struct pc_squeezer {
    int32_t *at;    /* [devices][PC_TRAVELLERS][microbatches]: the cells where passes came to stand */
    int32_t *count; /* [devices][PC_LETTERS]: how many of a letter stand already */
    int32_t *next;  /* [devices]: the cell behind the last pass */
    int32_t *later; /* [devices]: of one column, those whose pass runs up */
} pc_squeezer;

pc_code pc_squeezer_create(int devices, int microbatches, pc_squeezer *squeezer, pc_error *error);
void pc_squeezer_free(pc_squeezer *squeezer);

/* Every device keeps its order, and every pass goes to the earliest cell that is behind the pass before it and what it
 * waits for. False where a pass stands before what it waits for, or once too often. `to` is as large as `from`. */
bool pc_grid_squeeze(const pc_grid *from, pc_grid *to, pc_squeezer *squeezer);

/* The generator's schedule with this order; of one that does not split B and W, B stands for both. Every letter must
 * stand once a microbatch. */
pc_code pc_grid_to_schedule(const pc_grid *grid, const pc_generator *self, pc_schedule *schedule, pc_error *error);

/* ---- in deployed_v_ends.c ---- */

/* Write what stands before the first B0 of each device, and after it the last B and their W, anew; false where a row is
 * too short. The order may want squeezing then. */
bool pc_grid_write_warm_up(pc_grid *grid);
bool pc_grid_write_cool_down(pc_grid *grid);

/* Leaves out all behind so many microbatches. */
void pc_grid_keep_microbatches(pc_grid *grid, int microbatches);

/* A device that holds less than `peak` puts so many of its first W off to the end; false where its row ends. */
bool pc_grid_put_w_off(pc_grid *grid, int peak);

/* In deployed_v.c, deployed_v_adaptive.c and deployed_1f1b_v.c: as the public generators of sail-sg give them. */
pc_code pc_published_v_min(const pc_generator *self, const pc_generate_request *request, pc_schedule *schedule,
                           pc_error *error);
pc_code pc_published_v_half(const pc_generator *self, const pc_generate_request *request, pc_schedule *schedule,
                            pc_error *error);
pc_code pc_published_v_adaptive(const pc_generator *self, const pc_generate_request *request, pc_schedule *schedule,
                                pc_error *error);
pc_code pc_published_1f1b_v(const pc_generator *self, const pc_generate_request *request, pc_schedule *schedule,
                            pc_error *error);

#endif
