/* block_cells.h: sums with cells that come again every interval. Private to models/schedule/. */
#ifndef PC_MODELS_SCHEDULE_BLOCK_CELLS_H
#define PC_MODELS_SCHEDULE_BLOCK_CELLS_H

#include <stdbool.h>
#include <stdint.h>

/* The place of a cell in its interval, 0 .. interval-1, also for cells before zero. */
static inline int64_t pc_cell_residue(int64_t cell, int64_t interval) {
    int64_t residue = cell % interval;
    return residue < 0 ? residue + interval : residue;
}

/* Whether two passes, from cells a and b on, overlap in some repetition. */
static inline bool pc_cells_overlap(int64_t interval, int64_t a, int64_t a_duration, int64_t b, int64_t b_duration) {
    int64_t distance = pc_cell_residue(b - a, interval);
    return distance < a_duration || interval - distance < b_duration;
}

#endif
