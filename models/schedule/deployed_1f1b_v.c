/* 1F1B-V as its authors' public generator gives it (sail-sg/zero-bubble-pipeline-parallelism, of 'Pipeline Parallelism
 * with Controllable Memory', arXiv 2405.15362), in the words of what it does:
 *
 * F0 come down the devices and F1 go up them, cell by cell; B1 and B0 likewise, each with its W behind it, but that
 * every third one waits three cells more. The block is repeated every six cells. Then every pass, in the order of the
 * grid, moves to the earliest free cell that what it waits for allows, and a B to two of them. An F does so only where
 * no device comes to hold more than one did at first. B and W are one pass in what comes out.
 */
#include "models/schedule/deployed_grid.h"

#include "engine/alloc.h"

enum { INTERVAL = 6 };

typedef struct mover {
    pc_grid grid;
    int cap;        /* the most chunks' activations that any device may hold */
    int32_t *held;  /* [devices][room]: chunks' activations behind each cell */
    int32_t *cell;  /* [devices][PC_LETTERS][microbatches]: where passes came to stand */
    int32_t *count; /* [devices][PC_LETTERS] */
} mover;

/* ---- the grid ---- */

static void put_letter(pc_grid *grid, int device, int letter, int first) {
    for (int k = 0; k < grid->microbatches; k++) pc_grid_row(grid, device)[first + INTERVAL * k] = (uint8_t)letter;
    int end = first + INTERVAL * (grid->microbatches - 1) + 1;
    if (end > grid->width) grid->width = end;
}

/* So that no F meets a B in a cell of the interval, B begin later where 3 divides p, and rest after every third,
 * counted from where F ended. */
static void repeat_block(pc_grid *grid) {
    int p = grid->devices, cell = 0, turn = (3 - (p + 2) % 3) % 3;
    for (int i = 0; i < 2 * p; i++, cell++)
        put_letter(grid, i < p ? i : 2 * p - 1 - i, i < p ? PC_LETTER_F0 : PC_LETTER_F1, cell);
    cell += p % 3 == 0 ? 3 : 0;
    for (int i = 0; i < 2 * p; i++) {
        int d = i < p ? i : 2 * p - 1 - i, letter = i < p ? PC_LETTER_B1 : PC_LETTER_B0;
        put_letter(grid, d, letter, cell);
        put_letter(grid, d, letter + 2, cell + 1);
        cell += 2;
        turn = (turn + 1) % 3;
        if (turn == 0) cell += 3;
    }
}

/* ---- moving passes ---- */

static int32_t *cells_of(const mover *walk, int device, int letter) {
    return walk->cell + ((int64_t)device * PC_LETTERS + letter) * walk->grid.microbatches;
}

static int32_t *held_of(const mover *walk, int device) {
    return walk->held + (int64_t)device * walk->grid.room;
}

/* The cell of what the k-th pass of a letter waits for, where a B ends with its W; -1 where it waits for none. */
static int sent_in(const mover *walk, int device, int letter, int k) {
    int from = letter % 2 == 0 ? device - 1 : device + 1;
    bool turns = from < 0 || from >= walk->grid.devices, is_back = letter == PC_LETTER_B1 || letter == PC_LETTER_B0;
    if (letter >= PC_TRAVELLERS) return cells_of(walk, device, letter - 2)[k];
    if (letter == PC_LETTER_F0 && device == 0) return -1;
    if (turns) from = device;
    int as = letter - turns; /* at the ends of the V the same device has it, as the letter before */
    return cells_of(walk, from, is_back && as >= PC_LETTER_B1 ? as + 2 : as)[k];
}

static int last_needed(const mover *walk, int device, int letter, int k) {
    int before = k > 0 ? cells_of(walk, device, letter)[k - 1] : -1, sent = sent_in(walk, device, letter, k);
    return sent > before ? sent : before;
}

/* Whether a B and the W behind it would find their cells empty. */
static bool is_free(const uint8_t *row, int cell, int letter) {
    bool is_two = letter == PC_LETTER_B1 || letter == PC_LETTER_B0;
    return row[cell] == PC_NO_LETTER && (!is_two || row[cell + 1] == PC_NO_LETTER);
}

static int find_cell(const mover *walk, int device, int column, int k) {
    const uint8_t *row = pc_grid_row(&walk->grid, device);
    const int32_t *held = held_of(walk, device);
    int letter = row[column], from = last_needed(walk, device, letter, k) + 1, room = column;
    while (from < column && !is_free(row, from, letter)) from++;
    if (from == column || pc_letter_holds(letter) <= 0) return from;
    while (room > from && held[room - 1] < walk->cap) room--;
    while (room < column && row[room] != PC_NO_LETTER) room++;
    return room;
}

static void move_pass(mover *walk, int device, int column) {
    uint8_t *row = pc_grid_row(&walk->grid, device);
    int32_t *held = held_of(walk, device);
    int letter = row[column], k = walk->count[device * PC_LETTERS + letter]++,
        cell = find_cell(walk, device, column, k);
    row[column] = PC_NO_LETTER;
    row[cell] = (uint8_t)letter;
    for (int i = cell; i < column; i++) held[i] += pc_letter_holds(letter);
    cells_of(walk, device, letter)[k] = cell;
}

static void count_held(mover *walk) {
    for (int d = 0; d < walk->grid.devices; d++) {
        int32_t now = 0;
        for (int i = 0; i < walk->grid.width; i++)
            held_of(walk, d)[i] = now += pc_letter_holds(pc_grid_row(&walk->grid, d)[i]);
    }
    walk->cap = pc_grid_peak(&walk->grid);
}

static void make_order(mover *walk) {
    repeat_block(&walk->grid);
    count_held(walk);
    for (int i = 0; i < walk->grid.width; i++)
        for (int d = 0; d < walk->grid.devices; d++)
            if (pc_grid_row(&walk->grid, d)[i] != PC_NO_LETTER) move_pass(walk, d, i);
}

/* A block takes 2p cells for F, and at most 5 a device and chunk for B. */
pc_code pc_published_1f1b_v(const pc_generator *self, const pc_generate_request *request, pc_schedule *schedule,
                            pc_error *error) {
    int p = (int)request->devices, m = (int)request->microbatches, room = 12 * p + INTERVAL * (m + 1);
    mover walk = {.held = pc_alloc((size_t)p * (size_t)room, sizeof *walk.held),
                  .cell = pc_alloc((size_t)p * PC_LETTERS * (size_t)m, sizeof *walk.cell),
                  .count = pc_alloc((size_t)p * PC_LETTERS, sizeof *walk.count)};
    pc_code code = walk.held && walk.cell && walk.count ? pc_grid_create(p, m, room, &walk.grid, error)
                                                        : pc_error_no_memory(error);
    if (!code) make_order(&walk);
    if (!code) code = pc_grid_to_schedule(&walk.grid, self, schedule, error);
    pc_grid_free(&walk.grid);
    pc_free(walk.count);
    pc_free(walk.cell);
    pc_free(walk.held);
    return code;
}
