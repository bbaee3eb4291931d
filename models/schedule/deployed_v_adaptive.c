/* Adaptive V as its authors' public generator gives it (sail-sg/zero-bubble-pipeline-parallelism, of 'Pipeline
 * Parallelism with Controllable Memory', arXiv 2405.15362, section 4 and appendix A), in the words of what it does:
 *
 * Every block of six cells a device is tried. F0 of the first device is in cell 0, its F1, B1, B0 in three others. Each
 * next device has F0 and B1 by k cells later and F1 and B0 by one earlier; k is one number for the first devices and
 * one no larger for the rest. Each W takes the next cell that is free. A block is repeated and squeezed at equal times.
 * Its warm-up and cool-down are written anew, and gaps are filled with what stands behind them. The order with the
 * least span at the real times is kept: one time for all stages, which is their mean here. No device holds more than a
 * number of chunks. Where one block holds too many, those that change k later are passed over.
 */
#include "models/schedule/deployed_grid.h"

#include "engine/alloc.h"
#include "engine/parallel.h"

#include <math.h>
#include <string.h>

enum { INTERVAL = 6 };

/* ---- blocks ---- */

/* The cell of every letter, of six; PC_NO_LETTER: none yet. */
typedef struct row_block {
    uint8_t cell[PC_LETTERS];
} row_block;

typedef struct candidate {
    row_block first;
    int shift, shift_after, turn; /* of F0 and B1, to each of the first `turn` devices behind the first, and after */
} candidate;

/* Each W into the next free cell behind its B, in a circle. */
static void add_w(row_block *row) {
    bool is_taken[INTERVAL] = {false};
    for (int letter = 0; letter < PC_TRAVELLERS; letter++) is_taken[row->cell[letter]] = true;
    for (int w = PC_LETTER_W1; w <= PC_LETTER_W0; w++) {
        int cell = row->cell[w - 2];
        while (is_taken[cell]) cell = (cell + 1) % INTERVAL;
        is_taken[cell] = true;
        row->cell[w] = (uint8_t)cell;
    }
}

/* False where two of its passes collide. */
static bool shift_row(const row_block *from, int shift, row_block *to) {
    bool is_taken[INTERVAL] = {false};
    for (int letter = 0; letter < PC_TRAVELLERS; letter++) {
        int by = letter % 2 == 0 ? shift : INTERVAL - 1, cell = (from->cell[letter] + by) % INTERVAL;
        if (is_taken[cell]) return false;
        is_taken[cell] = true;
        to->cell[letter] = (uint8_t)cell;
    }
    add_w(to);
    return true;
}

static bool make_block(const candidate *of, int devices, row_block *rows) {
    rows[0] = of->first;
    for (int d = 1; d < devices; d++)
        if (!shift_row(&rows[d - 1], d <= of->turn ? of->shift : of->shift_after, &rows[d])) return false;
    return true;
}

/* ---- one candidate on its way ---- */

typedef struct builder {
    int devices, microbatches;
    int most; /* chunks' activations that a device may hold */
    pc_time f, b, w, delay;
    row_block *rows; /* [devices] */
    pc_grid grid, spare;
    pc_squeezer squeezer;
    int32_t *cell;  /* [devices][PC_LETTERS][microbatches]: where passes stand */
    int32_t *count; /* [devices][PC_LETTERS]: how many are behind */
    int32_t *held;  /* [devices]: chunks' activations */
    pc_time *end;   /* as cell: when passes end */
    pc_time *now;   /* [devices]: when the device is free; then when it begins */
    pc_grid best;   /* the order with the least span so far; empty where there is none */
    pc_time best_ps;
    int best_row;     /* which first row it began with */
    pc_time least_ps; /* the work of a device, below which no span is */
} builder;

/* What became of it. */
typedef enum verdict { FITS, FAILS, HOLDS_TOO_MUCH } verdict;

static int smaller(int a, int b) {
    return a < b ? a : b;
}

static int larger(int a, int b) {
    return a > b ? a : b;
}

/* The first cell from `from` on where a row's block has the letter. */
static int next_cell(const row_block *row, int letter, int from) {
    return from + (row->cell[letter] - from % INTERVAL + INTERVAL) % INTERVAL;
}

static void repeat_letter(builder *build, int device, int letter, int first) {
    for (int k = 0; k < build->grid.microbatches; k++)
        pc_grid_row(&build->grid, device)[first + INTERVAL * k] = (uint8_t)letter;
    build->grid.width = larger(build->grid.width, first + INTERVAL * (build->grid.microbatches - 1) + 1);
}

/* A microbatch's passes follow each other down and up the devices as closely as the block's cells let them. */
static void repeat_block(builder *build, int microbatches) {
    int from = INTERVAL;
    pc_grid_clear(&build->grid);
    build->grid.microbatches = microbatches;
    for (int letter = 0; letter < PC_TRAVELLERS; letter++)
        for (int i = 0; i < build->devices; i++) {
            int d = letter % 2 == 0 ? i : build->devices - 1 - i;
            int first = next_cell(&build->rows[d], letter, from);
            repeat_letter(build, d, letter, first);
            from = first + 1;
            if (letter >= PC_LETTER_B1)
                repeat_letter(build, d, letter + 2, next_cell(&build->rows[d], letter + 2, from));
        }
}

static bool squeeze(builder *build) {
    bool is_squeezed = pc_grid_squeeze(&build->grid, &build->spare, &build->squeezer);
    pc_grid grid = build->grid;
    build->grid = build->spare;
    build->spare = grid;
    return is_squeezed;
}

/* ---- fewer microbatches than a block needs to come round ---- */

/* *peak: what any device holds, before and after. */
static verdict cut_short(builder *build, int *peak) {
    int m = build->microbatches;
    pc_grid_keep_microbatches(&build->grid, m);
    if (m <= build->devices && 2 * m <= build->most &&
        !pc_grid_put_w_off(&build->grid, smaller(2 * build->devices, *peak)))
        return FAILS;
    if (!squeeze(build)) return FAILS;
    *peak = pc_grid_peak(&build->grid);
    return *peak > build->most ? HOLDS_TOO_MUCH : FITS;
}

/* ---- filling gaps ---- */

static int64_t cell_index(const builder *build, int device, int letter) {
    return ((int64_t)device * PC_LETTERS + letter) * build->microbatches;
}

static int32_t *count_of(const builder *build, int device) {
    return build->count + (int64_t)device * PC_LETTERS;
}

static void note_cells(builder *build) {
    memset(build->count, 0, (size_t)build->devices * PC_LETTERS * sizeof *build->count);
    for (int d = 0; d < build->devices; d++) {
        const uint8_t *row = pc_grid_row(&build->grid, d);
        for (int i = 0; i < build->grid.width; i++)
            if (row[i] != PC_NO_LETTER) build->cell[cell_index(build, d, row[i]) + count_of(build, d)[row[i]]++] = i;
    }
}

/* Whether what the k-th pass of a letter waits for stands before the column. */
static bool is_ready(const builder *build, int device, int letter, int k, int column) {
    int from = letter % 2 == 0 ? device - 1 : device + 1, as = letter;
    if (letter == PC_LETTER_F0 && device == 0) return true;
    if (letter >= PC_TRAVELLERS || from < 0 || from >= build->devices) {
        from = device;
        as = letter >= PC_TRAVELLERS ? letter - 2 : letter - 1;
    }
    return build->cell[cell_index(build, from, as) + k] < column;
}

/* Whether the device, which holds so much now, holds less than `peak` throughout up to cell `until`. */
static bool has_room(const pc_grid *grid, int device, int held, int column, int until, int peak) {
    const uint8_t *row = pc_grid_row(grid, device);
    for (int i = column + 1; i < until && held < peak; i++) held += pc_letter_holds(row[i]);
    return held < peak;
}

/* Of the next pass of each letter, the first one that could stand in the empty cell; PC_NO_LETTER: none. */
static int find_filler(const builder *build, int device, int column, int held, int peak) {
    int found = PC_NO_LETTER, nearest = build->grid.width;
    for (int letter = 0; letter < PC_LETTERS; letter++) {
        int k = count_of(build, device)[letter];
        if (k == build->microbatches) continue;
        int cell = build->cell[cell_index(build, device, letter) + k];
        if (cell >= nearest || !is_ready(build, device, letter, k, column)) continue;
        if (letter <= PC_LETTER_F1 && !has_room(&build->grid, device, held, column, cell, peak)) continue;
        nearest = cell;
        found = letter;
    }
    return found;
}

/* Cell by cell, later passes move into the empty ones, where no device comes to hold more than any did. */
static void fill_gaps(builder *build) {
    int peak = pc_grid_peak(&build->grid);
    note_cells(build);
    memset(build->count, 0, (size_t)build->devices * PC_LETTERS * sizeof *build->count);
    memset(build->held, 0, (size_t)build->devices * sizeof *build->held);
    for (int i = 0; i < build->grid.width; i++)
        for (int d = 0; d < build->devices; d++) {
            uint8_t *row = pc_grid_row(&build->grid, d);
            int letter = row[i] != PC_NO_LETTER ? row[i] : find_filler(build, d, i, build->held[d], peak);
            if (letter == PC_NO_LETTER) continue;
            int32_t *cell = &build->cell[cell_index(build, d, letter) + count_of(build, d)[letter]++];
            row[*cell] = PC_NO_LETTER;
            row[i] = (uint8_t)letter;
            *cell = i;
            build->held[d] += pc_letter_holds(letter);
        }
}

/* W of both chunks in the order of their B. */
static bool relabel_w(pc_grid *grid, int device) {
    uint8_t *row = pc_grid_row(grid, device);
    int back = -1;
    for (int i = 0; i < grid->width; i++) {
        if (row[i] != PC_LETTER_W1 && row[i] != PC_LETTER_W0) continue;
        do back++;
        while (back < i && row[back] != PC_LETTER_B1 && row[back] != PC_LETTER_B0);
        if (back >= i) return false;
        row[i] = (uint8_t)(row[back] + 2);
    }
    return true;
}

static bool is_whole(const pc_grid *grid) {
    for (int d = 0; d < grid->devices; d++) {
        int count[PC_LETTERS + 1] = {0};
        const uint8_t *row = pc_grid_row(grid, d);
        for (int i = 0; i < grid->width; i++) count[row[i]]++;
        for (int letter = 0; letter < PC_LETTERS; letter++)
            if (count[letter] != grid->microbatches) return false;
    }
    return true;
}

/* ---- what it takes ---- */

static pc_time duration_of(const builder *build, int letter) {
    return letter <= PC_LETTER_F1 ? build->f : letter < PC_TRAVELLERS ? build->b : build->w;
}

/* When the k-th pass of a letter has what it waits for of another device; PC_TIME_NOT_GIVEN: that did not run yet. */
static pc_time arrival(const builder *build, int device, int letter, int k) {
    int from = letter % 2 == 0 ? device - 1 : device + 1;
    if (letter >= PC_TRAVELLERS || from < 0 || from >= build->devices) return 0;
    if (count_of(build, from)[letter] <= k) return PC_TIME_NOT_GIVEN;
    return build->end[cell_index(build, from, letter) + k] + build->delay;
}

/* The longest time from a device's first start to its last end; PC_TIME_MAX where the order cannot run. */
static pc_time find_span(builder *build) {
    pc_time *now = build->now, *begin = now + build->devices, span = 0;
    memset(build->count, 0, (size_t)build->devices * PC_LETTERS * sizeof *build->count);
    memset(now, 0, (size_t)build->devices * sizeof *now);
    for (int i = 0; i < build->grid.width; i++)
        for (int d = 0; d < build->devices; d++) {
            int letter = pc_grid_row(&build->grid, d)[i];
            if (letter == PC_NO_LETTER) continue;
            int k = count_of(build, d)[letter]++;
            pc_time ready = arrival(build, d, letter, k);
            if (ready == PC_TIME_NOT_GIVEN) return PC_TIME_MAX;
            if (ready > now[d]) now[d] = ready;
            if (k == 0 && letter == PC_LETTER_F0) begin[d] = now[d];
            now[d] += duration_of(build, letter);
            build->end[cell_index(build, d, letter) + k] = now[d];
        }
    for (int d = 0; d < build->devices; d++)
        if (now[d] - begin[d] > span) span = now[d] - begin[d];
    return span;
}

/* ---- one candidate ---- */

/* From the repeated block to an order with its gaps filled. */
static verdict make_order(builder *build) {
    int m = build->microbatches, filled = larger(m, 2 * build->devices);
    repeat_block(build, filled);
    int peak = pc_grid_peak(&build->grid);
    if ((m == filled && peak > build->most) || peak > 2 * build->devices) return HOLDS_TOO_MUCH;
    if (!squeeze(build) || !pc_grid_write_warm_up(&build->grid) || !squeeze(build)) return FAILS;
    int squeezed_peak = pc_grid_peak(&build->grid);
    if (squeezed_peak > peak) return FAILS;
    verdict found = m < filled ? cut_short(build, &squeezed_peak) : FITS;
    if (m < filled) peak = squeezed_peak;
    if (found != FITS) return found;
    if (!pc_grid_write_cool_down(&build->grid) || !squeeze(build) || !is_whole(&build->grid)) return FAILS;
    fill_gaps(build);
    for (int d = 0; d < build->devices; d++)
        if (!relabel_w(&build->grid, d)) return FAILS;
    return pc_grid_peak(&build->grid) <= peak && is_whole(&build->grid) ? FITS : FAILS;
}

static verdict try_candidate(builder *build, const candidate *of, int row) {
    if (!make_block(of, build->devices, build->rows)) return FAILS;
    verdict found = make_order(build);
    pc_time span = found == FITS ? find_span(build) : PC_TIME_MAX;
    if (span >= build->best_ps) return found;
    build->best_ps = span;
    build->best_row = row;
    memcpy(build->best.cells, build->grid.cells,
           (size_t)build->devices * (size_t)build->grid.room * sizeof *build->best.cells);
    build->best.width = build->grid.width;
    return found;
}

enum { FIRST_ROWS = 60 }; /* F1, B1, B0 in three of five cells */

/* The first row of this number, in the order of its cells. */
static row_block first_row(int number) {
    int cells[] = {1, 2, 3, 4, 5}, picked[3], left = 5;
    const int places[] = {number / 12, number / 3 % 4, number % 3};
    for (int i = 0; i < 3; i++) {
        picked[i] = cells[places[i]];
        memmove(&cells[places[i]], &cells[places[i] + 1], (size_t)(--left - places[i]) * sizeof *cells);
    }
    row_block row = {{0, (uint8_t)picked[0], (uint8_t)picked[1], (uint8_t)picked[2]}};
    add_w(&row);
    return row;
}

/* All that begin so. With one shift for all devices it does not matter where it changes. */
static void try_first_row(void *context, int worker, int64_t index) {
    builder *build = &((builder *)context)[worker];
    const row_block first = first_row((int)index);
    for (int shift = 1; shift < INTERVAL; shift++)
        for (int after = 1; after <= shift; after++)
            for (int turn = 1; turn < (shift == after ? 2 : build->devices); turn++) {
                const candidate one = {first, shift, after, turn};
                if (build->best_ps == build->least_ps) return;
                if (try_candidate(build, &one, (int)index) == HOLDS_TOO_MUCH) break;
            }
}

/* ---- for a request ---- */

/* The mean over all chunks of all devices: the generator knows one time for all. */
static pc_time mean_time(const pc_costs *costs, pc_pass_kind kind) {
    int64_t cells = (int64_t)costs->devices * costs->chunks;
    double sum = 0;
    for (int64_t i = 0; i < cells; i++) sum += (double)costs->duration_ps[i * PC_PASS_KINDS + kind];
    return (pc_time)llround(sum / (double)cells);
}

static pc_time mean_delay(const pc_costs *costs) {
    double sum = 0;
    for (int d = 0; d + 1 < costs->devices; d++) sum += (double)pc_costs_delay_alone(costs, d, d + 1);
    return (pc_time)llround(sum / (costs->devices - 1));
}

/* As many chunks as every device has room for, each as large as its largest. */
static int count_room(const pc_generate_request *request) {
    const pc_costs *costs = request->costs;
    int64_t most = 2 * request->devices;
    for (int d = 0; d < costs->devices; d++) {
        int64_t limit = pc_memory_limit_of(request->memory_limit, d), chunk = 0;
        for (int c = 0; c < costs->chunks; c++) {
            int64_t bytes = costs->activation_bytes[pc_costs_index(costs, d, c)];
            if (bytes > chunk) chunk = bytes;
        }
        if (chunk > 0 && limit != PC_NO_LIMIT && limit / chunk < most) most = limit / chunk;
    }
    return (int)most;
}

/* From where the last block ends: 4p hops of six cells, and all microbatches; and what is written behind that. */
static pc_code create_builder(const pc_generate_request *request, builder *build, pc_error *error) {
    int p = (int)request->devices, m = (int)request->microbatches, filled = larger(m, 2 * p);
    int room = INTERVAL * (4 * p + filled + 1) + 4 * p + 2 * filled;
    size_t cells = (size_t)p * PC_LETTERS * (size_t)m;
    *build = (builder){.devices = p,
                       .microbatches = m,
                       .most = count_room(request),
                       .f = mean_time(request->costs, PC_PASS_F),
                       .b = mean_time(request->costs, PC_PASS_B),
                       .w = mean_time(request->costs, PC_PASS_W),
                       .delay = mean_delay(request->costs),
                       .rows = pc_alloc((size_t)p, sizeof *build->rows),
                       .cell = pc_alloc(cells, sizeof *build->cell),
                       .count = pc_alloc((size_t)p * PC_LETTERS, sizeof *build->count),
                       .held = pc_alloc((size_t)p, sizeof *build->held),
                       .end = pc_alloc(cells, sizeof *build->end),
                       .now = pc_alloc(2 * (size_t)p, sizeof *build->now),
                       .best_ps = PC_TIME_MAX};
    build->least_ps = (pc_time)2 * m * (build->f + build->b + build->w);
    if (!build->rows || !build->cell || !build->count || !build->held || !build->end || !build->now)
        return pc_error_no_memory(error);
    pc_code code = pc_grid_create(p, filled, room, &build->grid, error);
    if (!code) code = pc_grid_create(p, filled, room, &build->spare, error);
    if (!code) code = pc_grid_create(p, m, room, &build->best, error);
    return code ? code : pc_squeezer_create(p, filled, &build->squeezer, error);
}

static void free_builder(builder *build) {
    pc_squeezer_free(&build->squeezer);
    pc_grid_free(&build->best);
    pc_grid_free(&build->spare);
    pc_grid_free(&build->grid);
    pc_free(build->now);
    pc_free(build->end);
    pc_free(build->held);
    pc_free(build->count);
    pc_free(build->cell);
    pc_free(build->rows);
}

/* The first one of the shortest. */
static const builder *find_best(const builder *builders, int count) {
    const builder *best = builders;
    for (int i = 1; i < count; i++) {
        const builder *next = &builders[i];
        bool is_first = next->best_ps == best->best_ps && next->best_row < best->best_row;
        if (next->best_ps < best->best_ps || is_first) best = next;
    }
    return best;
}

static pc_code take_best(const builder *best, const pc_generator *self, pc_schedule *schedule, pc_error *error) {
    if (best->best_ps < PC_TIME_MAX) return pc_grid_to_schedule(&best->best, self, schedule, error);
    return pc_error_set(error, PC_ERROR_INPUT,
                        "%s: making published: the public generator has no order that holds at most %d chunks of "
                        "microbatches on a device; expected room for more",
                        self->name, best->most);
}

pc_code pc_published_v_adaptive(const pc_generator *self, const pc_generate_request *request, pc_schedule *schedule,
                                pc_error *error) {
    int threads = request->threads > 0 ? request->threads : pc_parallel_processors();
    if (request->devices < 2)
        return pc_error_set(error, PC_ERROR_INPUT, "%s: making published: 1 device; expected at least 2", self->name);
    if (request->chunks != 2)
        return pc_error_set(error, PC_ERROR_INPUT,
                            "%s: making published: %d chunks a device; expected 2, for the public generator has no "
                            "order of others",
                            self->name, (int)request->chunks);
    if (threads > FIRST_ROWS) threads = FIRST_ROWS;
    builder *builders = pc_alloc((size_t)threads, sizeof *builders);
    if (!builders) return pc_error_no_memory(error);
    pc_code code = PC_OK;
    for (int i = 0; i < threads && !code; i++) code = create_builder(request, &builders[i], error);
    if (!code) pc_parallel_run(threads, FIRST_ROWS, try_first_row, builders);
    if (!code) code = take_best(find_best(builders, threads), self, schedule, error);
    for (int i = 0; i < threads; i++) free_builder(&builders[i]);
    pc_free(builders);
    return code;
}
