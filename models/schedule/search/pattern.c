#include "models/schedule/search/pattern.h"

#include "models/schedule/block_cells.h"

int pc_pattern_chunks(pc_pattern_family family) {
    return family <= PC_PATTERN_V_THIRDS ? 2 : 1;
}

int pc_pattern_microbatches(pc_pattern_family family) {
    return family == PC_PATTERN_LINEAR_PAIR ? 2 : 1;
}

bool pc_pattern_is_packed(pc_pattern_family family) {
    return family == PC_PATTERN_V_THIRDS;
}

/* ---- cells ---- */

/* The first cell from `least` on that is `cell` of its interval. */
static int64_t at_or_after(int64_t least, int64_t cell, int64_t interval) {
    return least + pc_cell_residue(cell - least, interval);
}

/* The passes of one device that are not W: F of the chunks, then B (or BW) of the chunks; 4, or 2 with one chunk. */
enum { LANES_MAX = 4 };
typedef struct lanes {
    int count;
    int64_t cell[LANES_MAX], duration[LANES_MAX];
} lanes;

static bool collide(const lanes *l, int64_t interval) {
    for (int a = 0; a < l->count; a++)
        for (int b = 0; b < a; b++)
            if (pc_cells_overlap(interval, l->cell[a], l->duration[a], l->cell[b], l->duration[b])) return true;
    return false;
}

/* +1 for passes that run down the devices, -1 for those that come back up: F down, F of a second chunk up, and B the
 * other way round. */
static int direction(const lanes *l, int lane) {
    return l->count == 2 ? (lane == 0 ? 1 : -1) : (lane == 0 || lane == 3 ? 1 : -1);
}

static lanes first_device(const pc_pattern *pattern, const pc_block *block) {
    pc_pass_kind back = pattern->splits ? PC_PASS_B : PC_PASS_BW;
    int64_t f = block->duration[PC_PASS_F], b = block->duration[back];
    if (block->chunks == 1) return (lanes){2, {0, pattern->b0}, {f, b}};
    return (lanes){4, {0, pattern->f1, pattern->b0, pattern->b1}, {f, f, b, b}};
}

/* ---- shifts from one device to the next ---- */

static void shift_by(lanes *l, const int64_t slack[LANES_MAX]) {
    for (int i = 0; i < l->count; i++) l->cell[i] += direction(l, i) * (l->duration[i] + slack[i]);
}

/* How many F device d runs before its first B in the family LINEAR_WARM. */
static int64_t warm_up(const pc_pattern *pattern, int devices, int device) {
    int64_t by_slope = ((int64_t)pattern->shift * (devices - 1 - device) + 2) / 4, by_top = pattern->turn - device;
    return by_slope < by_top ? by_slope : by_top;
}

/* The shifts from `device` to the next one that the family's formula gives. False where the passes then collide. */
static bool shift_given(const pc_pattern *pattern, int devices, int device, lanes *l) {
    int64_t slack[LANES_MAX] = {0}, shift = device < pattern->turn ? pattern->shift : pattern->shift_after;
    if (l->count == 2)
        slack[1] = pattern->interval * (warm_up(pattern, devices, device) - warm_up(pattern, devices, device + 1)) - 2;
    else
        slack[0] = slack[3] = shift - 1;
    if (slack[1] < 0) return false;
    shift_by(l, slack);
    return !collide(l, pattern->interval);
}

/* The next way to share out the same slack among the lanes, in lexicographic order; false after the last one. */
static bool next_share(int count, int64_t slack[LANES_MAX]) {
    int last = count - 1;
    while (last > 0 && slack[last] == 0) last--;
    if (last == 0) return false;
    int64_t rest = slack[last] - 1;
    slack[last] = 0;
    slack[last - 1]++;
    slack[count - 1] = rest;
    return true;
}

/* The least slack, in all, that keeps the next device free of collisions. Of several ways to share it out the pattern's
 * `shift` chooses which lane takes most of it. */
static bool shift_free(const pc_pattern *pattern, lanes *l) {
    for (int64_t total = 0; total <= pattern->interval; total++) {
        int64_t share[LANES_MAX] = {0};
        share[l->count - 1] = total;
        do {
            lanes shifted = *l;
            int64_t slack[LANES_MAX];
            for (int i = 0; i < l->count; i++) slack[(i + pattern->shift) % l->count] = share[i];
            shift_by(&shifted, slack);
            if (!collide(&shifted, pattern->interval)) {
                *l = shifted;
                return true;
            }
        } while (next_share(l->count, share));
    }
    return false;
}

static bool is_free_family(pc_pattern_family family) {
    return family == PC_PATTERN_V_FREE || family == PC_PATTERN_LINEAR_FREE;
}

/* ---- the block ---- */

static int64_t *start(const pc_block *block, int microbatch, int device, int chunk, int kind) {
    return &block->start[pc_block_index(block, microbatch, device, chunk, kind)];
}

static int64_t *lane_start(const pc_pattern *pattern, const pc_block *block, int device, int lane) {
    int is_back = lane >= block->chunks;
    int kind = !is_back ? PC_PASS_F : pattern->splits ? PC_PASS_B : PC_PASS_BW;
    return start(block, 0, device, lane % block->chunks, kind);
}

static void write_lanes(const pc_pattern *pattern, const pc_block *block, int device, const lanes *l) {
    for (int i = 0; i < l->count; i++) *lane_start(pattern, block, device, i) = l->cell[i];
}

/* Moves a lane by whole intervals so that on `device` it starts at `least` or as soon after that as its cell allows. */
static void raise_lane(const pc_pattern *pattern, const pc_block *block, int lane, int device, int64_t least) {
    int64_t now = *lane_start(pattern, block, device, lane);
    int64_t move = at_or_after(least, now, pattern->interval) - now;
    for (int d = 0; d < block->devices; d++) *lane_start(pattern, block, d, lane) += move;
}

/* Where the model turns from one lane to the next, on one device, the later lane waits for the earlier one. */
static void fold(const pc_pattern *pattern, const pc_block *block, int from, int to, int device) {
    int64_t duration = block->duration[from < block->chunks ? PC_PASS_F : pattern->splits ? PC_PASS_B : PC_PASS_BW];
    raise_lane(pattern, block, to, device, *lane_start(pattern, block, device, from) + duration);
}

/* Puts every W into the first free cell after its B, nearer ones first. False where there is no cell left. */
static bool place_w(const pc_pattern *pattern, const pc_block *block, int device, const lanes *l) {
    lanes taken = *l;
    int64_t interval = pattern->interval, found[2] = {0};
    bool is_placed[2] = {false};
    for (int round = 0; round < block->chunks; round++) {
        int best = -1;
        for (int c = 0; c < block->chunks; c++) {
            if (is_placed[c]) continue;
            int64_t after = *start(block, 0, device, c, PC_PASS_B) + block->duration[PC_PASS_B], cell = after;
            while (cell < after + interval) {
                bool is_free = true;
                for (int i = 0; i < l->count; i++)
                    is_free = is_free && !pc_cells_overlap(interval, cell, 1, taken.cell[i], taken.duration[i]);
                if (is_free && !(round == 1 && pc_cell_residue(cell - found[1 - c], interval) == 0)) break;
                cell++;
            }
            if (cell == after + interval) return false;
            if (best < 0 || cell - after < found[best] - (*start(block, 0, device, best, PC_PASS_B) + 1)) best = c;
            found[c] = cell;
        }
        /* cppcheck-suppress negativeIndex ; one of the chunks is not placed yet */
        is_placed[best] = true;
        /* cppcheck-suppress negativeIndex ; as above */
        *start(block, 0, device, best, PC_PASS_W) = found[best];
    }
    return true;
}

static void fold_all(const pc_pattern *pattern, const pc_block *block) {
    int last = block->devices - 1;
    if (block->chunks == 1) {
        fold(pattern, block, 0, 1, last);
        return;
    }
    fold(pattern, block, 0, 1, last);
    fold(pattern, block, 1, 3, 0);
    fold(pattern, block, 3, 2, last);
}

static bool build_single(const pc_pattern *pattern, pc_block *block) {
    lanes l = first_device(pattern, block);
    if (collide(&l, pattern->interval)) return false;
    for (int d = 0; d < block->devices; d++) {
        if (d > 0 && !(is_free_family(pattern->family) ? shift_free(pattern, &l)
                                                       : shift_given(pattern, block->devices, d - 1, &l)))
            return false;
        write_lanes(pattern, block, d, &l);
    }
    fold_all(pattern, block);
    for (int d = 0; pattern->splits && d < block->devices; d++) {
        for (int i = 0; i < l.count; i++) l.cell[i] = *lane_start(pattern, block, d, i);
        if (!place_w(pattern, block, d, &l)) return false;
        if (pattern->family == PC_PATTERN_LINEAR_WARM)
            *start(block, 0, d, 0, PC_PASS_W) += pattern->interval * ((int64_t)pattern->shift_after * d / 2);
    }
    return true;
}

/* Even cells of a device hold two F and odd ones two B, or the other way round on odd devices: F moves down and B up by
 * one cell a device, so they never meet. W take the two cells that are left. */
static bool build_pair(pc_block *block) {
    int p = block->devices;
    for (int i = 0; i < 2; i++)
        for (int d = 0; d < p; d++) {
            int64_t f = d + 2 * i, b = 2 * p - 1 - d + 2 * i;
            *start(block, i, d, 0, PC_PASS_F) = f;
            *start(block, i, d, 0, PC_PASS_B) = b;
        }
    for (int d = 0; d < p; d++) {
        /* The other cell that is left has the parity of F: the first one after B that is neither of the two F. */
        int64_t b = *start(block, 0, d, 0, PC_PASS_B), of_f = at_or_after(b + 1, pc_cell_residue(d + 4, 6), 6),
                of_b = b + 4;
        /* As of all passes, the first microbatch's W comes before the second one's. */
        *start(block, 0, d, 0, PC_PASS_W) = of_f < of_b ? of_f : of_b;
        *start(block, 1, d, 0, PC_PASS_W) = of_f < of_b ? of_b : of_f;
    }
    return true;
}

/* BW, on their way down with chunk 1 and back up with chunk 0, wait for three cells after every third device: nine
 * cells in three devices, and F three, so all meet again as they did three devices before. Which devices those are,
 * and whether the first BW waits too, depends on p, so that nothing collides at the folds. */
static bool build_thirds(pc_block *block) {
    int p = block->devices, phase = p % 3 == 0 ? 1 : p % 3 == 1 ? 0 : 2, first = 2 * p + (p % 3 == 0 ? 3 : 0);
    for (int d = 0; d < p; d++) {
        int up = 2 * p - 1 - d;
        *start(block, 0, d, 0, PC_PASS_F) = d;
        *start(block, 0, d, 1, PC_PASS_F) = up;
        *start(block, 0, d, 1, PC_PASS_BW) = first + 2 * d + 3 * ((d + phase) / 3);
        *start(block, 0, d, 0, PC_PASS_BW) = first + 2 * up + 3 * ((up + phase) / 3);
    }
    return true;
}

bool pc_pattern_build(const pc_pattern *pattern, pc_block *block) {
    block->interval = pattern->interval;
    for (int kind = 0; kind < PC_PASS_KINDS; kind++) block->duration[kind] = 0;
    block->duration[PC_PASS_F] = 1;
    block->duration[PC_PASS_B] = block->duration[PC_PASS_W] = pattern->splits ? 1 : 0;
    block->duration[PC_PASS_BW] = pattern->splits ? 0 : 2;
    if (pattern->family == PC_PATTERN_V_THIRDS) return build_thirds(block);
    return pattern->family == PC_PATTERN_LINEAR_PAIR ? build_pair(block) : build_single(pattern, block);
}
