/* V-Min and V-Half as their authors' public generator gives them (sail-sg/zero-bubble-pipeline-parallelism, of
 * 'Pipeline Parallelism with Controllable Memory', arXiv 2405.15362), in the words of what it does:
 *
 * The block is repeated every six cells, with each W in the first cell that is free behind a B. Then the passes of the
 * warm-up (before the first device's first B of chunk 0) and of the cool-down (behind its last F) move, in the order of
 * the grid. Each goes to the earliest free cell that what it waits for allows and that leaves each device within the
 * most that any held at first. All is squeezed at equal times. Then W are taken out, the cool-down is moved again,
 * where each free cell behind a B counts as a W, W come back into free cells, and all is squeezed once more. In what
 * comes out W go into the free cells anew, those of chunk 1 first. Costs never matter.
 */
#include "models/schedule/deployed_grid.h"

#include "engine/alloc.h"

#include <assert.h>
#include <string.h>

enum { INTERVAL = 6 };

/* ---- the grid ---- */

/* The first cells of F0, F1, B1 and B0 of a device. */
typedef void block_rule(int devices, int device, int first[PC_TRAVELLERS]);

static void v_min_block(int p, int d, int first[PC_TRAVELLERS]) {
    int e = p % 3 == 0 ? 2 : 0;
    const int cells[PC_TRAVELLERS] = {d, 2 * p - 1 - d, 2 * p + e + d, 4 * p + e - 1 - d};
    memcpy(first, cells, sizeof cells);
}

static void v_half_block(int p, int d, int first[PC_TRAVELLERS]) {
    int e = p % 2 == 0 ? 3 : 0;
    const int cells[PC_TRAVELLERS] = {2 * d, 3 * p - 2 - d, 3 * p + e - 1 + 2 * d, 6 * p + e - 2 - d};
    memcpy(first, cells, sizeof cells);
}

static void repeat_block(block_rule *rule, pc_grid *grid) {
    for (int d = 0; d < grid->devices; d++) {
        int first[PC_TRAVELLERS];
        rule(grid->devices, d, first);
        for (int letter = 0; letter < PC_TRAVELLERS; letter++)
            for (int k = 0; k < grid->microbatches; k++)
                pc_grid_row(grid, d)[first[letter] + INTERVAL * k] = (uint8_t)letter;
        int end = first[PC_LETTER_B0] + INTERVAL * (grid->microbatches - 1) + 1;
        if (end > grid->width) grid->width = end;
    }
}

static bool is_back(int letter) {
    return letter == PC_LETTER_B1 || letter == PC_LETTER_B0;
}

/* Into each free cell a W of the B before it, those of chunk 1 first; behind the row's last pass what is left. */
static void fill_row(pc_grid *grid, int device) {
    uint8_t *row = pc_grid_row(grid, device);
    int waiting[2] = {0, 0}, end = grid->width;
    while (end > 0 && row[end - 1] == PC_NO_LETTER) end--;
    for (int i = 0; i < end || waiting[0] + waiting[1] > 0; i++) {
        if (is_back(row[i])) waiting[row[i] - PC_LETTER_B1]++;
        if (row[i] != PC_NO_LETTER) continue;
        int which = waiting[0] == 0;
        if (waiting[which] == 0) continue;
        waiting[which]--;
        row[i] = (uint8_t)(PC_LETTER_W1 + which);
        if (i >= grid->width) grid->width = i + 1;
    }
}

static void fill_with_w(pc_grid *grid) {
    for (int d = 0; d < grid->devices; d++) fill_row(grid, d);
}

static void take_w_out(pc_grid *grid) {
    for (int64_t i = 0; i < (int64_t)grid->devices * grid->room; i++)
        if (grid->cells[i] >= PC_TRAVELLERS) grid->cells[i] = PC_NO_LETTER;
}

/* ---- moving passes ---- */

typedef enum phase { WARM_UP, STEADY, COOL_DOWN } phase;

/* A walk over the grid, column by column: cells before the column are as they will be. */
typedef struct mover {
    pc_grid *grid;
    bool has_w; /* else free cells count as the W of the B before them */
    int cap;    /* the most that any device may hold */
    phase phase;
    int32_t *held;  /* [devices][room]: chunks' activations behind each cell */
    int32_t *due;   /* [devices][room]: W that are due behind it; where W have no cells */
    int32_t *at;    /* [devices][PC_LETTERS][2 m]: where passes came to stand; W of both chunks as W1 */
    int32_t *back;  /* [devices][2 m]: where B of both chunks came to stand, in that order */
    int32_t *count; /* [devices][PC_LETTERS] */
} mover;

static int32_t *held_of(const mover *walk, int device) {
    return walk->held + (int64_t)device * walk->grid->room;
}

static int32_t *due_of(const mover *walk, int device) {
    return walk->due + (int64_t)device * walk->grid->room;
}

static int32_t *at_of(const mover *walk, int device, int letter) {
    return walk->at + ((int64_t)device * PC_LETTERS + letter) * 2 * walk->grid->microbatches;
}

static int32_t *back_of(const mover *walk, int device) {
    return walk->back + (int64_t)device * 2 * walk->grid->microbatches;
}

/* What a device holds behind a cell with this letter, and how many W are due, from what was so before it. */
static void step(bool has_w, int letter, int32_t *held, int32_t *due) {
    *held += pc_letter_holds(letter);
    if (has_w) return;
    if (is_back(letter)) ++*due;
    if (letter != PC_NO_LETTER || *due == 0) return;
    --*due;
    --*held;
}

/* From cell `from` on; behind cell `until`, until it is as it was. */
static void recount(mover *walk, int device, int from, int until) {
    const uint8_t *row = pc_grid_row(walk->grid, device);
    int32_t *held = held_of(walk, device), *due = due_of(walk, device);
    int32_t now = from > 0 ? held[from - 1] : 0, now_due = from > 0 ? due[from - 1] : 0;
    for (int i = from; i < walk->grid->width; i++) {
        step(walk->has_w, row[i], &now, &now_due);
        if (i >= until && now == held[i] && now_due == due[i]) return;
        held[i] = now;
        due[i] = now_due;
    }
}

static int find_peak(const mover *walk) {
    int32_t most = 0;
    for (int d = 0; d < walk->grid->devices; d++) {
        const int32_t *held = held_of(walk, d);
        for (int i = 0; i < walk->grid->width; i++)
            if (held[i] > most) most = held[i];
    }
    return most;
}

/* W of both chunks are one kind of pass: the k-th of them waits for the k-th B of either chunk. */
static int either_w(int letter) {
    return letter == PC_LETTER_W0 ? PC_LETTER_W1 : letter;
}

/* The cell of what the k-th pass of a letter waits for, and of the k-1-st; -1 where it waits for none. */
static int last_needed(const mover *walk, int device, int letter, int k) {
    int needed = k > 0 ? at_of(walk, device, letter)[k - 1] : -1, other = -1;
    int sender = letter % 2 == 0 ? device - 1 : device + 1;
    if (letter == PC_LETTER_W1)
        other = back_of(walk, device)[k];
    else if (sender >= 0 && sender < walk->grid->devices)
        other = at_of(walk, sender, letter)[k];
    else if (letter > 0)
        other = at_of(walk, device, letter - 1)[k];
    return other > needed ? other : needed;
}

/* Whether the device stays within the cap with the pass of `column` in the empty cell `cell`, where W have no cells. */
static bool can_stand(const mover *walk, int device, int cell, int column) {
    const uint8_t *row = pc_grid_row(walk->grid, device);
    const int32_t *held = held_of(walk, device), *due = due_of(walk, device);
    int32_t now = cell > 0 ? held[cell - 1] : 0, now_due = cell > 0 ? due[cell - 1] : 0;
    for (int i = cell; i < walk->grid->width; i++) {
        step(false, i == cell ? row[column] : i == column ? PC_NO_LETTER : row[i], &now, &now_due);
        if (now > walk->cap) return false;
        if (i >= column && now == held[i] && now_due == due[i]) return true;
    }
    return true;
}

/* The first cell from which on the device holds less than the cap, up to this column. */
static int room_from(const mover *walk, int device, int column) {
    const int32_t *held = held_of(walk, device);
    int from = column;
    while (from > 0 && held[from - 1] < walk->cap) from--;
    return from;
}

/* Where the pass in this column goes: to the earliest cell where it can stand, or nowhere. */
static int find_cell(const mover *walk, int device, int column, int k) {
    const uint8_t *row = pc_grid_row(walk->grid, device);
    int from = last_needed(walk, device, either_w(row[column]), k) + 1;
    if (walk->has_w && pc_letter_holds(row[column]) > 0) {
        int room = room_from(walk, device, column);
        if (room > from) from = room;
    }
    for (int i = from; i < column; i++)
        if (row[i] == PC_NO_LETTER && (walk->has_w || can_stand(walk, device, i, column))) return i;
    return column;
}

static void note_back(mover *walk, int device, int cell) {
    int32_t *back = back_of(walk, device);
    const int32_t *count = walk->count + (int64_t)device * PC_LETTERS;
    int i = count[PC_LETTER_B1] + count[PC_LETTER_B0];
    for (; i > 0 && back[i - 1] > cell; i--) back[i] = back[i - 1];
    back[i] = cell;
}

/* The steady phase begins with the first device's first B0, and ends behind its last F0. */
static bool is_moving(mover *walk, int device, int letter, int k) {
    bool is_last_f = letter == PC_LETTER_F0 && k == walk->grid->microbatches - 1;
    if (walk->phase == WARM_UP && device == 0 && letter == PC_LETTER_B0) walk->phase = STEADY;
    if (walk->phase == STEADY && is_last_f) {
        walk->phase = COOL_DOWN;
        return false;
    }
    return walk->phase == COOL_DOWN || (walk->phase == WARM_UP && walk->has_w);
}

static void move_pass(mover *walk, int device, int column) {
    uint8_t *row = pc_grid_row(walk->grid, device);
    int letter = row[column], of = either_w(letter);
    int k = walk->count[(int64_t)device * PC_LETTERS + of];
    int cell = is_moving(walk, device, letter, k) ? find_cell(walk, device, column, k) : column;
    if (cell < column) {
        row[cell] = (uint8_t)letter;
        row[column] = PC_NO_LETTER;
        recount(walk, device, cell, column);
    }
    at_of(walk, device, of)[k] = cell;
    if (is_back(letter)) note_back(walk, device, cell);
    walk->count[(int64_t)device * PC_LETTERS + of]++;
}

static pc_code create_mover(pc_grid *grid, mover *walk, pc_error *error) {
    size_t p = (size_t)grid->devices, cells = p * (size_t)grid->room, passes = 2 * p * (size_t)grid->microbatches;
    *walk = (mover){.grid = grid,
                    .held = pc_alloc(cells, sizeof *walk->held),
                    .due = pc_alloc(cells, sizeof *walk->due),
                    .at = pc_alloc(PC_LETTERS * passes, sizeof *walk->at),
                    .back = pc_alloc(passes, sizeof *walk->back),
                    .count = pc_alloc(p * PC_LETTERS, sizeof *walk->count)};
    return walk->held && walk->due && walk->at && walk->back && walk->count ? PC_OK : pc_error_no_memory(error);
}

static void free_mover(mover *walk) {
    pc_free(walk->held);
    pc_free(walk->due);
    pc_free(walk->at);
    pc_free(walk->back);
    pc_free(walk->count);
}

/* Moves what warm-up and cool-down have; with W in their cells, or the cool-down alone without. */
static void move_passes(mover *walk, bool has_w) {
    walk->has_w = has_w;
    walk->phase = WARM_UP;
    memset(walk->count, 0, (size_t)walk->grid->devices * PC_LETTERS * sizeof *walk->count);
    for (int d = 0; d < walk->grid->devices; d++) recount(walk, d, 0, walk->grid->width);
    walk->cap = find_peak(walk);
    for (int i = 0; i < walk->grid->width; i++)
        for (int d = 0; d < walk->grid->devices; d++)
            if (pc_grid_row(walk->grid, d)[i] != PC_NO_LETTER) move_pass(walk, d, i);
}

/* ---- the order ---- */

/* Every pass stands behind what it waits for, so that squeezing never fails. */
static void squeeze(mover *walk, pc_grid *spare, pc_squeezer *squeezer) {
    bool is_squeezed = pc_grid_squeeze(walk->grid, spare, squeezer);
    assert(is_squeezed);
    (void)is_squeezed;
    pc_grid grid = *walk->grid;
    *walk->grid = *spare;
    *spare = grid;
}

static void make_order(block_rule *rule, mover *walk, pc_grid *spare, pc_squeezer *squeezer) {
    repeat_block(rule, walk->grid);
    fill_with_w(walk->grid);
    move_passes(walk, true);
    squeeze(walk, spare, squeezer);
    take_w_out(walk->grid);
    move_passes(walk, false);
    fill_with_w(walk->grid);
    squeeze(walk, spare, squeezer);
    take_w_out(walk->grid);
    fill_with_w(walk->grid);
}

static pc_code publish(block_rule *rule, const pc_generator *self, const pc_generate_request *request,
                       pc_schedule *schedule, pc_error *error) {
    int p = (int)request->devices, m = (int)request->microbatches, room = 8 * (p + m) + INTERVAL;
    pc_grid grid = {0}, spare = {0};
    pc_squeezer squeezer = {0};
    mover walk = {0};
    pc_code code = pc_grid_create(p, m, room, &grid, error);
    if (!code) code = pc_grid_create(p, m, room, &spare, error);
    if (!code) code = pc_squeezer_create(p, m, &squeezer, error);
    if (!code) code = create_mover(&grid, &walk, error);
    if (!code) make_order(rule, &walk, &spare, &squeezer);
    if (!code) code = pc_grid_to_schedule(&grid, self, schedule, error);
    free_mover(&walk);
    pc_squeezer_free(&squeezer);
    pc_grid_free(&spare);
    pc_grid_free(&grid);
    return code;
}

pc_code pc_published_v_min(const pc_generator *self, const pc_generate_request *request, pc_schedule *schedule,
                           pc_error *error) {
    return publish(v_min_block, self, request, schedule, error);
}

pc_code pc_published_v_half(const pc_generator *self, const pc_generate_request *request, pc_schedule *schedule,
                            pc_error *error) {
    return publish(v_half_block, self, request, schedule, error);
}
