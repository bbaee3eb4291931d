#include "models/schedule/search/reorder.h"

#include "engine/alloc.h"
#include "engine/random.h"
#include "models/schedule/search/objective.h"

#include <stddef.h>
#include <string.h>

/* All bytes alike, so that memory is filled with it; with a delay on top it stays a number, and later than all times.
 */
enum { NEVER_BYTE = 0x3f };
#define NEVER  INT64_C(0x3f3f3f3f3f3f3f3f)
#define PULLED (-NEVER) /* in place of a level: the pass has been pulled ahead */

enum { ROUNDS_WITHOUT_GAIN = 4, ROUNDS_AFTER_A_KICK = 1, RULES = 2 };

/* One type of one device, laid out for sweeps: what its cell says, and where its numbers stand, by microbatch. */
typedef struct lane {
    const pc_time *before, *own; /* when the passes that it waits for end: zeros where there are none */
    pc_time *end;                /* when its own do, in this sweep; NEVER: not yet */
    int32_t *position;           /* where they stand in the old order of their device */
    pc_time before_delay;
    pc_time earliest; /* no pass starts before; 0 without an objective */
    pc_time duration;
    pc_time after_delay; /* to the device that waits for it */
    int64_t taken;
    int32_t after; /* that device, if it is another one; or PC_INSTANCE_NONE */
    int32_t done;  /* how many have run */
} lane;

/* Where one device stands in a sweep. */
typedef struct device_state {
    const pc_instance_pass *old;
    const pc_time *old_start;
    pc_instance_pass *made;
    pc_time *start;
    int64_t *level; /* memory after each pass of the old order, with what was pulled ahead */
    lane *lanes;    /* a number a type */
    int64_t cursor; /* the first pass of the old order that may be left to run */
    int64_t filled; /* passes of the new order so far */
    pc_time free;   /* when the last of them ends */
} device_state;

/* When a device wants to decide. */
typedef struct turn {
    pc_time time;
    int32_t device;
} turn;

struct pc_reorder {
    const pc_instance *instance; /* the user's */
    pc_instance mirror;
    int64_t row;       /* microbatches of a type, and room behind them */
    pc_time *end;      /* [devices][types][row]: when a pass of this sweep ends; NEVER: not yet */
    pc_time *none;     /* [microbatches], zeros: what waits for nothing */
    int32_t *position; /* the same shape: where it stands in the old order of its device */
    int64_t *level;    /* [devices][passes] */
    lane *lanes[2];    /* [devices][types], of the user's instance and of the mirror */
    int32_t *done;     /* [devices][types], when squeezing and packing */
    device_state *device;
    turn *turns; /* a tournament: turns[leaves + d] is device d's, turns[1] the one with the least time, the first where
                  * equal */
    int leaves;
    pc_time *release;  /* a number a device: it does nothing before */
    pc_time *shortest; /* a number a device: its shortest pass */
    int64_t *window;   /* a number a device: how far ahead in the old order a pass may be pulled from */
    int32_t *ready;    /* devices that may go on when squeezing; a stack */
    int ready_count;
    pc_instance_order to, fro, now, trial, walk;
};

/* ---- the room ---- */

static int leaves_for(int devices) {
    int leaves = 1;
    while (leaves < devices) leaves *= 2;
    return leaves;
}

/* An odd number of cache lines: rows of a power of two of microbatches, of which each type of each device reads one
 * place at a time, would share a few lines of the cache. */
static int64_t row_for(int microbatches) {
    enum { LINE = 64 / sizeof(pc_time) };
    return (((int64_t)microbatches + LINE - 1) / LINE | 1) * LINE;
}

static bool allocate(pc_reorder *r) {
    size_t devices = (size_t)r->instance->devices, all = devices * (size_t)r->instance->passes;
    size_t rows = devices * (size_t)r->instance->types;
    r->row = row_for(r->instance->microbatches);
    r->end =
        pc_realloc(NULL, rows * (size_t)r->row, sizeof *r->end); /* this and the next two are filled by each sweep */
    r->none = pc_alloc((size_t)r->instance->microbatches, sizeof *r->none);
    r->position = pc_realloc(NULL, rows * (size_t)r->row, sizeof *r->position);
    r->level = pc_realloc(NULL, all, sizeof *r->level);
    for (int i = 0; i < 2; i++) r->lanes[i] = pc_alloc(rows, sizeof(lane));
    r->done = pc_alloc(rows, sizeof *r->done);
    r->device = pc_alloc(devices, sizeof *r->device);
    r->leaves = leaves_for(r->instance->devices);
    r->turns = pc_alloc((size_t)r->leaves * 2, sizeof *r->turns);
    r->release = pc_alloc(devices, sizeof *r->release);
    r->shortest = pc_alloc(devices, sizeof *r->shortest);
    r->ready = pc_alloc(devices, sizeof *r->ready);
    r->window = pc_alloc(devices, sizeof *r->window);
    return r->end && r->none && r->position && r->level && r->lanes[0] && r->lanes[1] && r->done && r->device &&
           r->turns && r->release && r->shortest && r->ready && r->window;
}

static void fill_lanes(pc_reorder *r, const pc_instance *instance, lane *lanes) {
    int64_t row = r->row;
    for (int i = 0; i < instance->devices * instance->types; i++) {
        const pc_instance_cell *cell = &instance->cells[i];
        int after = cell->after == PC_INSTANCE_NONE ? PC_INSTANCE_NONE : cell->after / instance->types;
        bool is_sent = after != PC_INSTANCE_NONE && after != i / instance->types;
        lanes[i] = (lane){.before = cell->before == PC_INSTANCE_NONE ? r->none : r->end + cell->before * row,
                          .own = cell->own == PC_INSTANCE_NONE ? r->none : r->end + cell->own * row,
                          .end = r->end + i * row,
                          .position = r->position + i * row,
                          .before_delay = cell->before == PC_INSTANCE_NONE ? 0 : cell->before_delay,
                          .earliest = instance->objective ? pc_objective_ready(instance, i) : 0,
                          .duration = cell->duration,
                          .after_delay = is_sent ? instance->cells[cell->after].before_delay : 0,
                          .taken = cell->taken,
                          .after = is_sent ? after : PC_INSTANCE_NONE};
    }
}

static pc_time shortest_pass(const pc_instance *instance, int device) {
    pc_time shortest = NEVER;
    for (int type = 0; type < instance->types; type++) {
        pc_time duration = instance->cells[device * instance->types + type].duration;
        if (duration < shortest) shortest = duration;
    }
    return shortest;
}

pc_code pc_reorder_create(const pc_instance *instance, pc_reorder **reorder, pc_error *error) {
    pc_reorder *r = pc_alloc(1, sizeof *r);
    if (!r) return pc_error_no_memory(error);
    r->instance = instance;
    pc_code code = pc_instance_mirror(instance, &r->mirror, error);
    if (!code) code = pc_instance_order_create(instance, &r->to, error);
    if (!code) code = pc_instance_order_create(instance, &r->fro, error);
    if (!code) code = pc_instance_order_create(instance, &r->now, error);
    if (!code) code = pc_instance_order_create(instance, &r->trial, error);
    if (!code) code = pc_instance_order_create(instance, &r->walk, error);
    if (!code && !allocate(r)) code = pc_error_no_memory(error);
    if (code) {
        pc_reorder_free(r);
        return code;
    }
    for (int d = 0; d < instance->devices; d++) r->shortest[d] = shortest_pass(instance, d);
    fill_lanes(r, instance, r->lanes[0]);
    fill_lanes(r, &r->mirror, r->lanes[1]);
    *reorder = r;
    return PC_OK;
}

void pc_reorder_free(pc_reorder *r) {
    if (!r) return;
    void *const arrays[] = {r->end,    r->none,  r->position, r->level,    r->lanes[0], r->lanes[1], r->done,
                            r->device, r->turns, r->release,  r->shortest, r->ready,    r->window};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) pc_free(arrays[i]);
    pc_instance_mirror_free(&r->mirror);
    pc_instance_order_free(&r->to);
    pc_instance_order_free(&r->fro);
    pc_instance_order_free(&r->now);
    pc_instance_order_free(&r->trial);
    pc_instance_order_free(&r->walk);
    pc_free(r);
}

/* ---- who decides next ---- */

/* The first of the two turns below a node. */
static inline turn first_below(const turn *turns, unsigned node) {
    const turn *left = turns + 2 * (size_t)node;
    return left[left[1].time < left[0].time];
}

/* Where another device comes first as before, all above stands. */
static inline void set_next(pc_reorder *r, int device, pc_time time) {
    turn *turns = r->turns;
    unsigned node = (unsigned)(r->leaves + device);
    turns[node].time = time;
    for (node /= 2; node >= 1; node /= 2) {
        turn first = first_below(turns, node);
        if (first.device == turns[node].device && first.device != device) return;
        turns[node] = first;
    }
}

static inline pc_time next_of(const pc_reorder *r, int device) {
    return r->turns[r->leaves + device].time;
}

static void start_tournament(pc_reorder *r) {
    for (int i = 0; i < r->leaves; i++)
        r->turns[r->leaves + i] = (turn){i < r->instance->devices ? r->device[i].free : NEVER, i};
    for (int node = r->leaves - 1; node >= 1; node--) r->turns[node] = first_below(r->turns, (unsigned)node);
}

/* ---- one sweep ---- */

/* `instance` is the user's or its mirror. */
typedef struct sweep {
    pc_reorder *r;
    const pc_instance *instance;
    const pc_instance_order *old;
    pc_instance_order *made;
    bool strict; /* a gap ends where the next pass is known to be ready, also if it started later before */
} sweep;

/* When the passes that this one waits for have ended and sent; NEVER or later where that is not known yet. */
static inline pc_time ready_at(const lane *l, int microbatch) {
    pc_time arrival = l->before[microbatch] + l->before_delay, own = l->own[microbatch];
    pc_time ready = arrival > own ? arrival : own;
    return l->earliest > ready ? l->earliest : ready;
}

/* Tells a device that waits for a pass when its input arrives. */
static inline void notify(pc_reorder *r, int device, pc_time arrival) {
    if (arrival < r->device[device].free) arrival = r->device[device].free;
    if (arrival < next_of(r, device)) set_next(r, device, arrival);
}

static inline void run_pass(pc_reorder *r, device_state *state, int type, int microbatch, pc_time start) {
    lane *l = &state->lanes[type];
    int64_t place = state->filled++;
    pc_time end = start + l->duration;
    state->made[place] = pc_instance_pass_make(type, microbatch);
    state->start[place] = start;
    state->free = l->end[microbatch] = end;
    l->done++;
    if (l->after != PC_INSTANCE_NONE) notify(r, l->after, end + l->after_delay);
}

enum { AT_ONCE = 8 }; /* levels */

/* Whether one of them is above `most`. */
static bool is_any_above(const int64_t *level, int64_t count, int64_t most) {
    int64_t k = 0;
    for (; count - k >= AT_ONCE; k += AT_ONCE) {
        int above = 0;
        for (int i = 0; i < AT_ONCE; i++) above |= level[k + i] > most;
        if (above) return true;
    }
    for (; k < count; k++)
        if (level[k] > most) return true;
    return false;
}

static void raise_levels(int64_t *level, int64_t count, int64_t taken) {
    int64_t k = 0;
    for (; count - k >= AT_ONCE; k += AT_ONCE)
        for (int i = 0; i < AT_ONCE; i++) level[k + i] += taken;
    for (; k < count; k++) level[k] += taken;
}

/* Whether memory, of which there is `most` beside it, allows to run a pass now that stands `place` in the old order: it
 * adds what it takes from here to there. */
static bool fits_memory(const device_state *state, int64_t place, int64_t taken, int64_t most) {
    if (taken <= 0) return true;
    const lane *head = &state->lanes[pc_instance_pass_type(state->old[state->cursor])];
    if (state->level[state->cursor] - head->taken > most) return false;
    return !is_any_above(state->level + state->cursor, place - state->cursor, most);
}

/* Runs the pass of this type that is next, ahead of what the old order has before it. */
static void pull(const sweep *s, device_state *state, int type, pc_time time) {
    const lane *l = &state->lanes[type];
    int microbatch = l->done;
    int64_t place = l->position[microbatch], taken = l->taken;
    run_pass(s->r, state, type, microbatch, time);
    if (taken != 0) raise_levels(state->level + state->cursor, place - state->cursor, taken);
    state->level[place] = PULLED;
}

/* Which pass to pull into a gap that begins at `time` and ends at `gap_end`: the first one in the old order that is
 * ready and fits; its type, or PC_INSTANCE_NONE. `soon` becomes the next time at which anything is known to be ready.
 */
static int choose(const sweep *s, int device, int head_type, pc_time time, pc_time gap_end, pc_time *soon) {
    const device_state *state = &s->r->device[device];
    int best = PC_INSTANCE_NONE, types = s->instance->types, m = s->instance->microbatches;
    int64_t best_place = state->cursor + s->r->window[device], limit = s->instance->limit[device];
    for (int type = 0; type < types; type++) {
        const lane *l = &state->lanes[type];
        int microbatch = l->done;
        if (type == head_type || microbatch >= m) continue;
        pc_time ready = ready_at(l, microbatch);
        if (ready > time) {
            if (ready < *soon) *soon = ready;
            continue;
        }
        if (l->duration > gap_end - time) continue;
        int64_t place = l->position[microbatch];
        if (place >= best_place || !fits_memory(state, place, l->taken, limit - l->taken)) continue;
        best = type;
        best_place = place;
    }
    return best;
}

/* Where the gap before a pass ends that is ready at `ready` (NEVER: not known) and started at `before` so far. */
static inline pc_time end_of_gap(const sweep *s, pc_time ready, pc_time before) {
    if (ready >= NEVER) return before;
    return s->strict || ready > before ? ready : before;
}

/* The old order's first pass that has not run. False where all have. Where nothing is pulled ahead it stands next. */
static inline bool find_head(device_state *state, int64_t passes, pc_instance_pass *head) {
    int64_t cursor = state->cursor;
    if (state->filled == passes) return false;
    if (state->filled > cursor)
        while (state->level[cursor] < PULLED / 2) cursor++;
    *head = state->old[cursor];
    state->cursor = cursor;
    return true;
}

/* Fills the gap at `time`, or says when to look again. False where the device has nothing to do now. */
static bool fill_gap(const sweep *s, int device, pc_instance_pass head, pc_time ready, pc_time time) {
    device_state *state = &s->r->device[device];
    pc_time gap_end = end_of_gap(s, ready, state->old_start[state->cursor]), soon = ready;
    int type = PC_INSTANCE_NONE;
    if (gap_end - time >= s->r->shortest[device])
        type = choose(s, device, pc_instance_pass_type(head), time, gap_end, &soon);
    if (type == PC_INSTANCE_NONE) {
        set_next(s->r, device, soon);
        return false;
    }
    pull(s, state, type, time);
    return true;
}

/* The device decides at `now`. It runs its next pass as long as that is ready, whatever the others do; into a gap it
 * looks only at the time of the sweep, when all that comes before is known. */
static void decide(const sweep *s, int device, pc_time now) {
    device_state *state = &s->r->device[device];
    int64_t passes = s->instance->passes;
    pc_instance_pass head;
    pc_time time = now;
    while (find_head(state, passes, &head)) {
        int type = pc_instance_pass_type(head), microbatch = pc_instance_pass_microbatch(head);
        pc_time ready = ready_at(&state->lanes[type], microbatch);
        if (ready <= time) {
            run_pass(s->r, state, type, microbatch, ready > state->free ? ready : state->free);
            state->cursor++;
        } else if (time > now) {
            set_next(s->r, device, time);
            return;
        } else if (!fill_gap(s, device, head, ready, time)) {
            return;
        }
        time = state->free;
    }
    set_next(s->r, device, NEVER);
}

static void start_device(const sweep *s, int device, pc_time release) {
    pc_reorder *r = s->r;
    int64_t base = device * s->instance->passes, level = 0;
    int types = s->instance->types;
    lane *lanes = r->lanes[s->instance == r->instance ? 0 : 1] + (ptrdiff_t)device * types;
    device_state *state = &r->device[device];
    *state = (device_state){.old = s->old->pass + base,
                            .old_start = s->old->start + base,
                            .made = s->made->pass + base,
                            .start = s->made->start + base,
                            .level = r->level + base,
                            .lanes = lanes,
                            .free = release};
    for (int type = 0; type < types; type++) lanes[type].done = 0;
    for (int64_t k = 0; k < s->instance->passes; k++) {
        pc_instance_pass pass = state->old[k];
        const lane *l = &lanes[pc_instance_pass_type(pass)];
        l->position[pc_instance_pass_microbatch(pass)] = (int32_t)k;
        state->level[k] = level += l->taken;
    }
    memset(lanes->end, NEVER_BYTE, (size_t)types * (size_t)r->row * sizeof *r->end);
}

/* Span and makespan of the new order; for the span, what the instance has in its place. */
static void measure(const sweep *s) {
    s->made->span = s->made->makespan = 0;
    for (int d = 0; d < s->instance->devices; d++) {
        pc_time end = s->r->device[d].free, span = end - s->made->start[d * s->instance->passes];
        if (span > s->made->span) s->made->span = span;
        if (end > s->made->makespan) s->made->makespan = end;
    }
    if (s->instance->objective) s->made->span = pc_objective_of(s->instance, s->made);
}

/* False where the old order has a deadlock. */
static bool run_sweep(const sweep *s, const pc_time *release) {
    pc_reorder *r = s->r;
    for (int d = 0; d < s->instance->devices; d++) start_device(s, d, release ? release[d] : 0);
    start_tournament(r);
    for (turn first; (first = r->turns[1]).time < NEVER;) decide(s, first.device, first.time);
    for (int d = 0; d < s->instance->devices; d++)
        if (r->device[d].filled < s->instance->passes) return false;
    measure(s);
    return true;
}

/* ---- squeeze ---- */

/* The most memory over devices; -1 where a device goes over its limit. */
static int64_t peak_of(const pc_instance *instance, const pc_instance_order *order) {
    int64_t peak = 0;
    for (int d = 0; d < instance->devices; d++) {
        int64_t level = 0, most = 0;
        for (int64_t k = d * instance->passes; k < (d + 1) * instance->passes; k++) {
            level += instance->cells[d * instance->types + pc_instance_pass_type(order->pass[k])].taken;
            if (level > most) most = level;
        }
        if (most > instance->limit[d]) return -1;
        if (most > peak) peak = most;
    }
    return peak;
}

/* Without gaps to fill the order of events does not matter: a device runs on until it waits for another one, and that
 * one wakes it. */
static void squeeze_device(const sweep *s, int device) {
    pc_reorder *r = s->r;
    device_state *state = &r->device[device];
    int64_t passes = s->instance->passes, cursor = state->cursor;
    pc_time free = state->free;
    for (; cursor < passes; cursor++) {
        pc_instance_pass pass = state->old[cursor];
        const lane *l = &state->lanes[pc_instance_pass_type(pass)];
        int microbatch = pc_instance_pass_microbatch(pass), other = l->after;
        pc_time ready = ready_at(l, microbatch);
        if (ready >= NEVER) break;
        pc_time start = ready > free ? ready : free;
        state->start[cursor] = start;
        free = l->end[microbatch] = start + l->duration;
        if (other != PC_INSTANCE_NONE && r->done[other] == 0) {
            r->done[other] = 1;
            r->ready[r->ready_count++] = other;
        }
    }
    state->cursor = cursor;
    state->free = free;
}

/* Here r->done says, for each device, whether it stands in the stack. */
static bool run_squeeze(const sweep *s) {
    pc_reorder *r = s->r;
    int devices = s->instance->devices;
    memset(r->end, NEVER_BYTE, (size_t)devices * (size_t)s->instance->types * (size_t)r->row * sizeof *r->end);
    r->ready_count = 0;
    for (int d = devices - 1; d >= 0; d--) {
        int64_t base = d * s->instance->passes;
        r->device[d] = (device_state){.old = s->old->pass + base,
                                      .start = s->made->start + base,
                                      .lanes = r->lanes[0] + (ptrdiff_t)d * s->instance->types};
        r->done[d] = 1;
        r->ready[r->ready_count++] = d;
    }
    while (r->ready_count > 0) {
        int device = r->ready[--r->ready_count];
        r->done[device] = 0;
        squeeze_device(s, device);
    }
    for (int d = 0; d < devices; d++)
        if (r->device[d].cursor < s->instance->passes) return false;
    measure(s);
    return true;
}

bool pc_reorder_squeeze(pc_reorder *r, pc_instance_order *order) {
    int64_t peak = peak_of(r->instance, order);
    sweep s = {.r = r, .instance = r->instance, .old = order, .made = order};
    if (peak < 0 || !run_squeeze(&s)) return false;
    order->peak = peak;
    return true;
}

/* ---- pack a repeated block ---- */

/* What is packed, and into what; times are in cells of the block. */
typedef struct packing {
    pc_reorder *r;
    const pc_block *block;
    pc_instance_order *made;
} packing;

static inline pc_time cells_of(const packing *k, int type) {
    return k->block->duration[pc_instance_to_pass(k->r->instance, pc_instance_pass_make(type, 0)).kind];
}

/* The type of the device's next pass in the repeated block, and when it starts there; PC_INSTANCE_NONE and NEVER after
 * the last one. */
static int next_in_block(const packing *k, int device, pc_time *start) {
    const pc_instance *instance = k->r->instance;
    int next = PC_INSTANCE_NONE, many = k->block->microbatches;
    *start = NEVER;
    for (int type = 0; type < instance->types; type++) {
        int microbatch = k->r->done[device * instance->types + type];
        if (microbatch == instance->microbatches) continue;
        pc_pass pass = pc_instance_to_pass(instance, pc_instance_pass_make(type, microbatch));
        pc_time at = pc_block_start(k->block, microbatch % many, device, pass.chunk, pass.kind) +
                     microbatch / many * k->block->interval;
        if (at >= *start) continue;
        *start = at;
        next = type;
    }
    return next;
}

/* When all that the pass waits for has ended, the same pass of the microbatch before included. */
static pc_time ready_in_cells(const packing *k, int cell, int microbatch) {
    const int64_t row = k->r->row;
    const int32_t others[] = {k->r->instance->cells[cell].before, k->r->instance->cells[cell].own};
    pc_time ready = microbatch > 0 ? k->r->end[cell * row + microbatch - 1] : 0;
    for (int i = 0; i < 2; i++) {
        if (others[i] == PC_INSTANCE_NONE) continue;
        pc_time end = k->r->end[others[i] * row + microbatch];
        if (end > ready) ready = end;
    }
    return ready;
}

/* Where the device's new order has the first gap for the pass after which memory never lacks; *start becomes when it
 * begins. There is one behind the last pass, for the block has the pass there. */
static int64_t find_gap(const packing *k, int device, int type, pc_time ready, pc_time *start) {
    const pc_instance *instance = k->r->instance;
    int64_t base = device * instance->passes, last = base + k->r->device[device].filled, gap = last;
    int64_t taken = instance->cells[device * instance->types + type].taken;
    pc_time cells = cells_of(k, type);
    for (int64_t at = last; at >= base; at--) {
        pc_time free =
            at == base ? 0 : k->made->start[at - 1] + cells_of(k, pc_instance_pass_type(k->made->pass[at - 1]));
        pc_time begin = free > ready ? free : ready;
        int64_t level = at == base ? 0 : k->r->level[at - 1];
        bool fits = taken <= 0 || level <= instance->limit[device] - taken;
        if (at == last || (fits && begin + cells <= k->made->start[at])) {
            gap = at;
            *start = begin;
        }
        if (!fits || free <= ready) break;
    }
    return gap;
}

static void pack_pass(const packing *k, int device, int type) {
    const pc_instance *instance = k->r->instance;
    int cell = device * instance->types + type, microbatch = k->r->done[cell]++;
    int64_t last = device * instance->passes + k->r->device[device].filled, taken = instance->cells[cell].taken;
    int64_t *level = k->r->level;
    pc_time start = 0;
    int64_t gap = find_gap(k, device, type, ready_in_cells(k, cell, microbatch), &start);
    for (int64_t at = last; at > gap; at--) { /* not far: only what is ahead of its block at the ends moves */
        k->made->pass[at] = k->made->pass[at - 1];
        k->made->start[at] = k->made->start[at - 1];
        level[at] = level[at - 1] + taken;
    }
    k->made->pass[gap] = pc_instance_pass_make(type, microbatch);
    k->made->start[gap] = start;
    level[gap] = (gap == device * instance->passes ? 0 : level[gap - 1]) + taken;
    k->r->device[device].filled++;
    k->r->end[cell * k->r->row + microbatch] = start + cells_of(k, type);
}

void pc_reorder_pack(pc_reorder *r, const pc_block *block, pc_instance_order *order) {
    const packing k = {r, block, order};
    pc_time start;
    for (int d = 0; d < r->instance->devices; d++) {
        for (int type = 0; type < r->instance->types; type++) r->done[d * r->instance->types + type] = 0;
        r->device[d] = (device_state){0};
        next_in_block(&k, d, &r->device[d].free);
    }
    start_tournament(r);
    while (r->turns[1].time < NEVER) {
        int d = r->turns[1].device;
        pack_pass(&k, d, next_in_block(&k, d, &start));
        next_in_block(&k, d, &start);
        set_next(r, d, start);
    }
}

/* ---- to and fro ---- */

/* `from` run backwards from time `end`, of the same instance or its mirror: both have the same durations. */
static void reverse(const pc_instance *instance, const pc_instance_order *from, pc_time end, pc_instance_order *to) {
    for (int d = 0; d < instance->devices; d++) {
        const pc_instance_cell *cells = instance->cells + (size_t)d * instance->types;
        int64_t first = d * instance->passes, last = first + instance->passes - 1;
        for (int64_t k = 0; k < instance->passes; k++) {
            pc_instance_pass pass = from->pass[last - k];
            int type = pc_instance_pass_type(pass);
            to->pass[first + k] =
                pc_instance_pass_make(type, instance->microbatches - 1 - pc_instance_pass_microbatch(pass));
            to->start[first + k] = end - from->start[last - k] - cells[type].duration;
        }
    }
}

/* The same for an objective: a device may end as late as leaves the order at what it comes to, and so may each chunk's
 * last pass. No other pass backwards waits for itself. */
static pc_time find_latest(pc_reorder *r, const pc_instance_order *order) {
    const pc_instance *instance = r->instance;
    pc_time last = 0;
    for (int d = 0; d < instance->devices; d++) {
        pc_device_ends ends = pc_objective_ends(instance, order, d);
        lane *lanes = r->lanes[1] + (ptrdiff_t)(d + 1) * instance->types - instance->chunks;
        pc_objective_latest(instance, d, order->span, &ends);
        r->release[d] = ends.end;
        for (int c = 0; c < instance->chunks; c++) lanes[c].earliest = ends.chunk_end[c];
        if (ends.end > last) last = ends.end;
    }
    for (int d = 0; d < instance->devices; d++) {
        lane *lanes = r->lanes[1] + (ptrdiff_t)(d + 1) * instance->types - instance->chunks;
        r->release[d] = last - r->release[d];
        for (int c = 0; c < instance->chunks; c++) lanes[c].earliest = last - lanes[c].earliest;
    }
    return last;
}

/* Every device may end its own span after it started, and no later: its release in the instance run backwards from the
 * time that is returned. */
static pc_time find_releases(pc_reorder *r, const pc_instance_order *order) {
    if (r->instance->objective) return find_latest(r, order);
    pc_time last = 0;
    for (int d = 0; d < r->instance->devices; d++) {
        r->release[d] = order->start[d * r->instance->passes] + order->span;
        if (r->release[d] > last) last = r->release[d];
    }
    for (int d = 0; d < r->instance->devices; d++) r->release[d] = last - r->release[d];
    return last;
}

/* ---- how far a sweep looks ahead ---- */

enum { FAR = 64 }; /* passes a device and chunk: as good as all, but keeps the time of a sweep in proportion */

static uint64_t draw(uint64_t *stream) {
    return pc_xorshift64star(stream) >> 32;
}

static int64_t draw_window(uint64_t *stream, int64_t far) {
    static const int64_t windows[] = {1, 2, 3, 4, 6, 8, 12, 16, 32, INT64_MAX, INT64_MAX, INT64_MAX};
    int64_t window = windows[draw(stream) % (sizeof windows / sizeof *windows)];
    return window < far ? window : far;
}

/* Every second sweep with the same window for all devices, else with one for each. */
static void draw_windows(pc_reorder *r, uint64_t *stream) {
    int64_t far = FAR * ((int64_t)r->instance->devices + 4) * r->instance->chunks;
    bool is_common = draw(stream) % 2 == 0;
    int64_t window = draw_window(stream, far);
    for (int d = 0; d < r->instance->devices; d++)
        r->window[d] = *stream == 0 ? far : is_common ? window : draw_window(stream, far);
}

/* Whether all passes stand where they stood, in place and in time. */
static bool is_same(const pc_instance *instance, const pc_instance_order *a, const pc_instance_order *b) {
    size_t count = (size_t)instance->devices * (size_t)instance->passes;
    return memcmp(a->start, b->start, count * sizeof *a->start) == 0 &&
           memcmp(a->pass, b->pass, count * sizeof *a->pass) == 0;
}

/* One sweep backwards and one forward: r->now becomes the next one; *is_still says whether it is as it was. False
 * never, but for a fault of ours. `stream` 0 is no stream: all windows are wide. */
static bool improve_once(pc_reorder *r, bool strict, uint64_t *stream, bool *is_still) {
    pc_time end = find_releases(r, &r->now);
    reverse(r->instance, &r->now, end, &r->to);
    draw_windows(r, stream);
    sweep backwards = {r, &r->mirror, &r->to, &r->fro, strict};
    if (!run_sweep(&backwards, r->release)) return false;
    reverse(r->instance, &r->fro, end, &r->to);
    draw_windows(r, stream);
    sweep forward = {r, r->instance, &r->to, &r->fro, strict};
    if (!run_sweep(&forward, NULL)) return false;
    pc_instance_order now = r->fro;
    *is_still = is_same(r->instance, &now, &r->now);
    r->fro = r->now;
    r->now = now;
    return true;
}

static bool is_better(const pc_instance_order *a, const pc_instance_order *b) {
    return a->span < b->span || (a->span == b->span && a->makespan < b->makespan);
}

/* With wide windows an order that neither rule for gaps moves stays as it is for good. */
bool pc_reorder_improve(pc_reorder *r, int rounds, int way, pc_time enough, pc_instance_order *order) {
    uint64_t stream = (uint64_t)(way / 2) * PC_GOLDEN;
    bool is_drawn = stream != 0, is_changed = false;
    int patience = is_drawn ? rounds : ROUNDS_WITHOUT_GAIN, without_gain = 0, still = 0;
    pc_instance_order_copy(r->instance, order, &r->now);
    for (int round = 0; round < rounds && without_gain < patience && still < RULES; round++) {
        pc_time span = order->span;
        bool is_still;
        if (span <= enough || !improve_once(r, ((way + round) & 1) != 0, &stream, &is_still)) break;
        bool is_gain = is_better(&r->now, order);
        if (is_gain) pc_instance_order_copy(r->instance, &r->now, order);
        is_changed = is_changed || is_gain;
        still = is_still && !is_drawn ? still + 1 : 0;
        without_gain = order->span < span ? 0 : without_gain + 1;
    }
    order->peak = peak_of(r->instance, order);
    return !is_drawn && !is_changed && (without_gain == patience || still == RULES);
}

/* ---- kicks ---- */

enum { MOVES = 3, FARTHEST = 6 };

void pc_reorder_move(const pc_instance *instance, uint64_t *stream, pc_instance_order *order) {
    int device = (int)(draw(stream) % (uint64_t)instance->devices);
    int64_t at = (int64_t)(draw(stream) % (uint64_t)instance->passes), far = 1 + (int64_t)(draw(stream) % FARTHEST);
    bool is_later = draw(stream) % 2 == 0;
    pc_instance_pass *first = order->pass + device * instance->passes + at, *last = first + far;
    if (at + far >= instance->passes) return;
    pc_instance_pass moved = is_later ? *first : *last;
    for (pc_instance_pass *pass = first; pass <= last; pass++)
        if (*pass != moved && pc_instance_pass_type(*pass) == pc_instance_pass_type(moved)) return;
    if (is_later)
        memmove(first, first + 1, (size_t)far * sizeof *first);
    else
        memmove(first + 1, first, (size_t)far * sizeof *first);
    *(is_later ? last : first) = moved;
}

/* The next place of a walk: a few passes moved, and not improved yet. */
static bool step_aside(pc_reorder *r, uint64_t *stream) {
    pc_instance_order_copy(r->instance, &r->walk, &r->trial);
    for (int moves = 1 + (int)(draw(stream) % MOVES); moves > 0; moves--)
        pc_reorder_move(r->instance, stream, &r->trial);
    return pc_reorder_squeeze(r, &r->trial);
}

void pc_reorder_kick(pc_reorder *r, int kicks, int patience, int way, pc_time enough, pc_instance_order *order) {
    uint64_t stream = pc_seed_of((uint64_t)way);
    pc_instance_order_copy(r->instance, order, &r->walk);
    for (int kick = 0, without_gain = 0; kick < kicks && without_gain < patience && order->span > enough; kick++) {
        if (!step_aside(r, &stream)) continue;
        pc_reorder_improve(r, ROUNDS_AFTER_A_KICK, kick % 2, enough, &r->trial);
        if (r->trial.span <= r->walk.span) pc_instance_order_copy(r->instance, &r->trial, &r->walk);
        without_gain = r->walk.span < order->span ? 0 : without_gain + 1;
        if (r->walk.span < order->span) pc_instance_order_copy(r->instance, &r->walk, order);
    }
}

/* ---- walks ---- */

enum { FAR_OFF = 2 }; /* of the first device's shortest passes: what a kick may cost before it is improved */

void pc_reorder_walk(pc_reorder *r, int kicks, int way, pc_time enough, pc_instance_order *order) {
    uint64_t stream = pc_seed_of(~(uint64_t)way);
    double shortest = (double)r->shortest[0];
    pc_instance_order_copy(r->instance, order, &r->walk);
    for (int kick = 0; kick < kicks && order->span > enough; kick++) {
        double cooling = (double)(kicks - kick) / kicks, drawn = (double)draw(&stream) / 0x1p32;
        if (!step_aside(r, &stream) || r->trial.span > r->walk.span + FAR_OFF * r->shortest[0]) continue;
        pc_reorder_improve(r, ROUNDS_AFTER_A_KICK, kick % 2, enough, &r->trial);
        if (r->trial.span > r->walk.span + (pc_time)(drawn * cooling * shortest)) continue;
        pc_instance_order_copy(r->instance, &r->trial, &r->walk);
        if (r->walk.span < order->span) pc_instance_order_copy(r->instance, &r->walk, order);
    }
}
