/* The ends of Adaptive V's orders (deployed_v_adaptive.c): the warm-up and the cool-down are written anew, and where
 * there are fewer microbatches than it takes for a block to come round, the order is cut short. */
#include "models/schedule/deployed_grid.h"

#include <string.h>

static int smaller(int a, int b) {
    return a < b ? a : b;
}

/* Into a cell of the grid, whatever stands there; false where the row ends. */
static bool write(pc_grid *grid, int device, int cell, int letter) {
    if (cell < 0 || cell >= grid->room) return false;
    pc_grid_row(grid, device)[cell] = (uint8_t)letter;
    if (cell >= grid->width) grid->width = cell + 1;
    return true;
}

/* ---- the warm-up ---- */

/* Takes out what stands before the first B0, and counts it. */
static void take_warm_up(pc_grid *grid, int device, int taken[PC_LETTERS]) {
    uint8_t *row = pc_grid_row(grid, device);
    memset(taken, 0, PC_LETTERS * sizeof *taken);
    for (int i = 0; i < grid->width && row[i] != PC_LETTER_B0; i++) {
        if (row[i] == PC_NO_LETTER) continue;
        taken[row[i]]++;
        row[i] = PC_NO_LETTER;
    }
}

/* One pass of this letter, if there is one left of it, into the cell, which is then behind. */
static bool spend(pc_grid *grid, int device, int *cell, int left[PC_LETTERS], int letter) {
    int at = (*cell)++;
    return left[letter]-- > 0 ? write(grid, device, at, letter) : (left[letter] = 0, true);
}

/* F0 at first, then F0 and F1 in turn, as far as the memory goes before the first B1 of the last device: `many` of
 * each. A cell is left free where there is none left. */
static bool write_first_f(pc_grid *grid, int device, int *cell, int left[PC_LETTERS], const int many[2]) {
    int early[PC_LETTERS] = {smaller(left[PC_LETTER_F0], many[0]), smaller(left[PC_LETTER_F1], many[1])};
    bool is_written = true;
    for (int letter = 0; letter < 2; letter++) left[letter] -= early[letter];
    for (int i = 0; i < 2 * (grid->devices - 1 - device) && is_written; i++)
        is_written = spend(grid, device, cell, early, PC_LETTER_F0);
    for (int i = 0; i <= device && is_written; i++)
        is_written = spend(grid, device, cell, early, PC_LETTER_F0) && spend(grid, device, cell, early, PC_LETTER_F1);
    for (int letter = 0; letter < 2; letter++) left[letter] += early[letter];
    return is_written;
}

/* Then B1, W1, and F1 or else F0, again and again. */
static bool write_rounds(pc_grid *grid, int device, int *cell, int left[PC_LETTERS]) {
    bool is_written = true;
    while (left[PC_LETTER_F0] + left[PC_LETTER_F1] + left[PC_LETTER_B1] + left[PC_LETTER_W1] > 0 && is_written) {
        int f = left[PC_LETTER_F1] > 0 ? PC_LETTER_F1 : PC_LETTER_F0;
        is_written = spend(grid, device, cell, left, PC_LETTER_B1) && spend(grid, device, cell, left, PC_LETTER_W1) &&
                     spend(grid, device, cell, left, f);
    }
    return is_written;
}

/* The first device holds F0 alone but one F1, each next one F1 more, up to half of what any device holds. */
bool pc_grid_write_warm_up(pc_grid *grid) {
    int peak = smaller(pc_grid_peak(grid), 2 * grid->devices);
    for (int d = 0; d < grid->devices; d++) {
        int left[PC_LETTERS], cell = d, f1 = smaller(smaller(d + 1, peak / 2), grid->microbatches);
        const int many[2] = {smaller(peak - f1, grid->microbatches), f1};
        take_warm_up(grid, d, left);
        if (!write_first_f(grid, d, &cell, left, many) || !write_rounds(grid, d, &cell, left)) return false;
    }
    return true;
}

/* ---- fewer microbatches than a block needs to come round ---- */

void pc_grid_keep_microbatches(pc_grid *grid, int microbatches) {
    grid->microbatches = microbatches;
    for (int d = 0; d < grid->devices; d++) {
        int count[PC_LETTERS] = {0};
        uint8_t *row = pc_grid_row(grid, d);
        for (int i = 0; i < grid->width; i++)
            if (row[i] != PC_NO_LETTER && count[row[i]]++ >= microbatches) row[i] = PC_NO_LETTER;
    }
}

bool pc_grid_put_w_off(pc_grid *grid, int peak) {
    int end = grid->width;
    for (int d = 0; d < grid->devices; d++) {
        uint8_t *row = pc_grid_row(grid, d);
        int room = peak - pc_grid_device_peak(grid, d), last = end;
        for (int i = 0; i < end && room > 0; i++) {
            if (row[i] == PC_NO_LETTER || row[i] < PC_TRAVELLERS) continue;
            int letter = row[i];
            row[i] = PC_NO_LETTER;
            room--;
            if (!write(grid, d, last++, letter)) return false;
        }
    }
    return true;
}

/* ---- the cool-down ---- */

/* Takes out the last B, at most `most` of each, and as many W as go with them and with what is held; how many B1 and B0
 * there were, and where the last F1 is. */
static int take_cool_down(pc_grid *grid, int device, int peak, const int most[2], int taken[2]) {
    uint8_t *row = pc_grid_row(grid, device);
    int last_f1 = -1, w[2] = {0, 0};
    taken[0] = taken[1] = 0;
    for (int i = grid->width; i-- > 0;) {
        int which = row[i] - PC_LETTER_B1;
        if (row[i] == PC_LETTER_F1 && last_f1 < 0) last_f1 = i;
        if (which < 0 || which > 1 || taken[which] >= most[which]) continue;
        taken[which]++;
        row[i] = PC_NO_LETTER;
    }
    for (int i = grid->width; i-- > 0 && (w[0] < taken[0] || w[1] < taken[1] || w[0] + w[1] < peak);) {
        int which = row[i] - PC_LETTER_W1;
        if (which < 0 || which > 1) continue;
        w[which]++;
        row[i] = PC_NO_LETTER;
    }
    return last_f1;
}

/* B as tight as they can follow each other behind the first device's last F1, every other cell. */
static bool write_last_b(pc_grid *grid, int device, int last_f1, const int count[2]) {
    for (int k = 0; k < count[1]; k++) {
        int cell = last_f1 - device + 2 * grid->devices - 2 * k;
        bool is_free = cell >= 0 && cell < grid->room && pc_grid_row(grid, device)[cell] == PC_NO_LETTER;
        if (!is_free || !write(grid, device, cell, PC_LETTER_B0)) return false;
    }
    for (int k = 0; k < count[0]; k++)
        if (!write(grid, device, last_f1 + 1 + device - 2 * k, PC_LETTER_B1)) return false;
    return true;
}

static void count_due(int letter, int due[2]) {
    if (letter == PC_LETTER_B1 || letter == PC_LETTER_B0) due[letter - PC_LETTER_B1]++;
    if (letter == PC_LETTER_W1 || letter == PC_LETTER_W0) due[letter - PC_LETTER_W1]--;
}

/* Behind the row's last W, those that are due into free cells, and the rest from cell `end` on; of chunk 1 first. */
static bool write_last_w(pc_grid *grid, int device, int end) {
    uint8_t *row = pc_grid_row(grid, device);
    int due[2] = {0, 0}, last = end - 1;
    while (last >= 0 && row[last] != PC_LETTER_W1 && row[last] != PC_LETTER_W0) last--;
    for (int i = 0; i < end; i++) {
        count_due(row[i], due);
        if (row[i] != PC_NO_LETTER || i <= last || (due[0] <= 0 && due[1] <= 0)) continue;
        int which = due[0] > 0 ? 0 : 1;
        row[i] = (uint8_t)(PC_LETTER_W1 + which);
        due[which]--;
    }
    for (int which = 0; which < 2; which++)
        for (; due[which] > 0; due[which]--)
            if (!write(grid, device, end++, PC_LETTER_W1 + which)) return false;
    return true;
}

bool pc_grid_write_cool_down(pc_grid *grid) {
    int peak = pc_grid_peak(grid), start = -1, m = grid->microbatches, b0 = smaller((peak + 1) / 2, m);
    for (int d = 0; d < grid->devices; d++) {
        const int most[2] = {smaller(d + 1, smaller(peak - b0, m)), b0};
        int taken[2], last_f1 = take_cool_down(grid, d, peak, most, taken);
        if (d == 0) start = last_f1;
        if (!write_last_b(grid, d, start, taken)) return false;
    }
    int end = grid->width;
    for (int d = 0; d < grid->devices; d++)
        if (!write_last_w(grid, d, end)) return false;
    return true;
}
