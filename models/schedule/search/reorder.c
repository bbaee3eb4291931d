#include "models/schedule/search/reorder.h"

#include "engine/alloc.h"
#include "engine/random.h"
#include "models/schedule/search/objective.h"

#include <string.h>

#define NEVER   (INT64_MAX / 2)
#define NOT_YET INT64_C(-1)

enum { ROUNDS_WITHOUT_GAIN = 4, ROUNDS_AFTER_A_KICK = 1 };

/* Where one device stands in a sweep. */
typedef struct device_state {
    int64_t cursor; /* the first pass of the old order that may be left to run */
    int64_t filled; /* passes of the new order so far */
    pc_time free;   /* when the last of them ends */
} device_state;

struct pc_reorder {
    const pc_instance *instance; /* the user's */
    pc_instance mirror;
    pc_time *end;      /* [devices][types][microbatches]: when a pass of this sweep ends; NOT_YET */
    int32_t *position; /* the same shape: where it stands in the old order of its device */
    int64_t *level;    /* [devices][passes]: memory after each pass of the old order, with what was pulled ahead */
    int32_t *done;     /* [devices][types] */
    device_state *device;
    pc_time *next;   /* a number a device: when it wants to decide */
    int32_t *winner; /* a tournament over `next`: winner[1] is the device with the least, the first where equal */
    int leaves;
    pc_time *release;     /* a number a device: it does nothing before */
    pc_time *shortest;    /* a number a device: its shortest pass */
    pc_time *head, *tail; /* [devices][types]: no pass starts earlier, forward and backwards; NULL without an objective
                           */
    int64_t *window;      /* a number a device: how far ahead in the old order a pass may be pulled from */
    int32_t *ready;       /* devices that may go on when squeezing; a stack */
    int ready_count;
    pc_instance_order to, fro, now, trial, walk;
};

/* ---- the room ---- */

static int leaves_for(int devices) {
    int leaves = 1;
    while (leaves < devices) leaves *= 2;
    return leaves;
}

static bool allocate(pc_reorder *r) {
    size_t devices = (size_t)r->instance->devices, all = devices * (size_t)r->instance->passes;
    r->end = pc_alloc(all, sizeof *r->end);
    r->position = pc_alloc(all, sizeof *r->position);
    r->level = pc_alloc(all, sizeof *r->level);
    r->done = pc_alloc(devices * (size_t)r->instance->types, sizeof *r->done);
    r->device = pc_alloc(devices, sizeof *r->device);
    r->leaves = leaves_for(r->instance->devices);
    r->next = pc_alloc((size_t)r->leaves, sizeof *r->next);
    r->winner = pc_alloc((size_t)r->leaves * 2, sizeof *r->winner);
    r->release = pc_alloc(devices, sizeof *r->release);
    r->shortest = pc_alloc(devices, sizeof *r->shortest);
    r->ready = pc_alloc(devices, sizeof *r->ready);
    r->window = pc_alloc(devices, sizeof *r->window);
    return r->end && r->position && r->level && r->done && r->device && r->next && r->winner && r->release &&
           r->shortest && r->ready && r->window;
}

static bool allocate_objective(pc_reorder *r) {
    int cells = r->instance->devices * r->instance->types;
    r->head = pc_alloc((size_t)cells, sizeof *r->head);
    r->tail = pc_alloc((size_t)cells, sizeof *r->tail);
    for (int i = 0; r->head && i < cells; i++) r->head[i] = pc_objective_ready(r->instance, i);
    return r->head && r->tail;
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
    if (!code && instance->objective && !allocate_objective(r)) code = pc_error_no_memory(error);
    if (code) {
        pc_reorder_free(r);
        return code;
    }
    for (int d = 0; d < instance->devices; d++) r->shortest[d] = shortest_pass(instance, d);
    *reorder = r;
    return PC_OK;
}

void pc_reorder_free(pc_reorder *r) {
    if (!r) return;
    void *const arrays[] = {r->end,     r->position, r->level, r->done,   r->device, r->next, r->winner,
                            r->release, r->shortest, r->ready, r->window, r->head,   r->tail};
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

static void play_from(pc_reorder *r, int node) {
    for (; node >= 1; node /= 2) {
        int left = r->winner[2 * (size_t)node], right = r->winner[2 * (size_t)node + 1];
        r->winner[node] = r->next[right] < r->next[left] ? right : left;
    }
}

static inline void set_next(pc_reorder *r, int device, pc_time time) {
    r->next[device] = time;
    play_from(r, (r->leaves + device) / 2);
}

static void start_tournament(pc_reorder *r) {
    for (int i = 0; i < r->leaves; i++) {
        r->winner[r->leaves + i] = i;
        r->next[i] = i < r->instance->devices ? r->device[i].free : NEVER;
    }
    for (int node = r->leaves - 1; node >= 1; node--) {
        int left = r->winner[2 * (size_t)node], right = r->winner[2 * (size_t)node + 1];
        r->winner[node] = r->next[right] < r->next[left] ? right : left;
    }
}

/* ---- one sweep ---- */

/* `instance` is the user's or its mirror. */
typedef struct sweep {
    pc_reorder *r;
    const pc_instance *instance;
    const pc_instance_order *old;
    pc_instance_order *made;
    bool strict;             /* a gap ends where the next pass is known to be ready, also if it started later before */
    const pc_time *earliest; /* [devices][types]; NULL: no pass has to wait for itself */
} sweep;

static inline int64_t index_of(const sweep *s, int cell, int microbatch) {
    return (int64_t)cell * s->instance->microbatches + microbatch;
}

/* When the passes that this one waits for have ended and sent; NEVER where that is not known yet. */
static inline pc_time ready_at(const sweep *s, const pc_instance_cell *cell, int microbatch) {
    pc_time ready = 0;
    if (cell->before != PC_INSTANCE_NONE) {
        pc_time end = s->r->end[index_of(s, cell->before, microbatch)];
        if (end == NOT_YET) return NEVER;
        ready = end + cell->before_delay;
    }
    if (cell->own != PC_INSTANCE_NONE) {
        pc_time end = s->r->end[index_of(s, cell->own, microbatch)];
        if (end == NOT_YET) return NEVER;
        if (end > ready) ready = end;
    } else if (s->earliest) { /* F, and backwards the last passes of a chunk: neither has an own one */
        pc_time earliest = s->earliest[cell - s->instance->cells];
        if (earliest > ready) ready = earliest;
    }
    return ready;
}

/* Tells the device that waits for this pass when its input arrives. */
static inline void notify(const sweep *s, int device, const pc_instance_cell *cell, pc_time end) {
    if (cell->after == PC_INSTANCE_NONE) return;
    int other = cell->after / s->instance->types;
    if (other == device) return;
    pc_time arrival = end + s->instance->cells[cell->after].before_delay;
    if (arrival < s->r->device[other].free) arrival = s->r->device[other].free;
    if (arrival < s->r->next[other]) set_next(s->r, other, arrival);
}

static inline void run_pass(const sweep *s, int device, int type, int microbatch, pc_time start) {
    int cell_index = device * s->instance->types + type;
    const pc_instance_cell *cell = &s->instance->cells[cell_index];
    device_state *state = &s->r->device[device];
    int64_t place = device * s->instance->passes + state->filled++;
    s->made->pass[place] = pc_instance_pass_make(type, microbatch);
    s->made->start[place] = start;
    state->free = s->r->end[index_of(s, cell_index, microbatch)] = start + cell->duration;
    s->r->done[cell_index]++;
    notify(s, device, cell, state->free);
}

/* Whether memory allows to run a pass now that stands `place` in the old order: it adds `taken` from here to there. */
static bool fits_memory(const sweep *s, int device, int64_t place, int64_t taken) {
    if (taken <= 0) return true;
    int64_t base = device * s->instance->passes, most = s->instance->limit[device] - taken;
    const device_state *state = &s->r->device[device];
    pc_instance_pass head = s->old->pass[base + state->cursor];
    const pc_instance_cell *head_cell = &s->instance->cells[device * s->instance->types + pc_instance_pass_type(head)];
    if (s->r->level[base + state->cursor] - head_cell->taken > most) return false;
    for (int64_t k = state->cursor; k < place; k++) {
        if (s->r->level[base + k] <= most) continue;
        pc_instance_pass pass = s->old->pass[base + k];
        int cell = device * s->instance->types + pc_instance_pass_type(pass);
        if (s->r->end[index_of(s, cell, pc_instance_pass_microbatch(pass))] == NOT_YET) return false;
    }
    return true;
}

/* Runs the pass of this type that is next, ahead of what the old order has before it. */
static void pull(const sweep *s, int device, int type, pc_time time) {
    int cell = device * s->instance->types + type, microbatch = s->r->done[cell];
    int64_t base = device * s->instance->passes, place = s->r->position[index_of(s, cell, microbatch)];
    int64_t taken = s->instance->cells[cell].taken;
    run_pass(s, device, type, microbatch, time);
    if (taken != 0)
        for (int64_t k = s->r->device[device].cursor; k < place; k++) s->r->level[base + k] += taken;
}

/* Which pass to pull into a gap that begins at `time` and ends at `gap_end`: the first one in the old order that is
 * ready and fits; its type, or PC_INSTANCE_NONE. `soon` becomes the next time at which anything is known to be ready.
 */
static int choose(const sweep *s, int device, int head_type, pc_time time, pc_time gap_end, pc_time *soon) {
    int best = PC_INSTANCE_NONE;
    int64_t best_place = s->r->device[device].cursor + s->r->window[device];
    for (int type = 0; type < s->instance->types; type++) {
        int cell_index = device * s->instance->types + type, microbatch = s->r->done[cell_index];
        if (type == head_type || microbatch >= s->instance->microbatches) continue;
        const pc_instance_cell *cell = &s->instance->cells[cell_index];
        pc_time ready = ready_at(s, cell, microbatch);
        if (ready > time && ready < *soon) *soon = ready;
        if (ready > time || cell->duration > gap_end - time) continue;
        int64_t place = s->r->position[index_of(s, cell_index, microbatch)];
        if (place >= best_place || !fits_memory(s, device, place, cell->taken)) continue;
        best = type;
        best_place = place;
    }
    return best;
}

/* Where the gap before a pass ends that is ready at `ready` (NEVER: not known) and started at `before` so far. */
static inline pc_time end_of_gap(const sweep *s, pc_time ready, pc_time before) {
    if (ready == NEVER) return before;
    return s->strict || ready > before ? ready : before;
}

/* The old order's first pass that has not run. False where all have. */
static inline bool find_head(const sweep *s, int device, pc_instance_pass *head) {
    device_state *state = &s->r->device[device];
    if (state->filled == s->instance->passes) return false;
    for (int64_t base = device * s->instance->passes;; state->cursor++) {
        *head = s->old->pass[base + state->cursor];
        int cell = device * s->instance->types + pc_instance_pass_type(*head);
        if (s->r->end[index_of(s, cell, pc_instance_pass_microbatch(*head))] == NOT_YET) return true;
    }
}

/* Fills the gap at `time`, or says when to look again. False where the device has nothing to do now. */
static bool fill_gap(const sweep *s, int device, pc_instance_pass head, pc_time ready, pc_time time) {
    pc_time before = s->old->start[device * s->instance->passes + s->r->device[device].cursor], soon = ready;
    pc_time gap_end = end_of_gap(s, ready, before);
    int type = PC_INSTANCE_NONE;
    if (gap_end - time >= s->r->shortest[device])
        type = choose(s, device, pc_instance_pass_type(head), time, gap_end, &soon);
    if (type == PC_INSTANCE_NONE) {
        set_next(s->r, device, soon);
        return false;
    }
    pull(s, device, type, time);
    return true;
}

/* The device decides at `now`. It runs its next pass as long as that is ready, whatever the others do; into a gap it
 * looks only at the time of the sweep, when all that comes before is known. */
static void decide(const sweep *s, int device, pc_time now) {
    const device_state *state = &s->r->device[device];
    pc_instance_pass head;
    pc_time time = now;
    while (find_head(s, device, &head)) {
        int type = pc_instance_pass_type(head), microbatch = pc_instance_pass_microbatch(head);
        pc_time ready = ready_at(s, &s->instance->cells[device * s->instance->types + type], microbatch);
        if (ready <= time) {
            run_pass(s, device, type, microbatch, ready > state->free ? ready : state->free);
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
    r->device[device] = (device_state){.free = release};
    for (int type = 0; type < s->instance->types; type++) r->done[device * s->instance->types + type] = 0;
    for (int64_t k = base; k < base + s->instance->passes; k++) {
        pc_instance_pass pass = s->old->pass[k];
        int cell = device * s->instance->types + pc_instance_pass_type(pass);
        int64_t i = index_of(s, cell, pc_instance_pass_microbatch(pass));
        r->position[i] = (int32_t)(k - base);
        r->end[i] = NOT_YET;
        r->level[k] = level += s->instance->cells[cell].taken;
    }
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
    for (int d; r->next[d = r->winner[1]] < NEVER;) decide(s, d, r->next[d]);
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
    const pc_instance *instance = s->instance;
    pc_reorder *r = s->r;
    device_state *state = &r->device[device];
    for (int64_t base = device * instance->passes; state->cursor < instance->passes; state->cursor++) {
        pc_instance_pass pass = s->old->pass[base + state->cursor];
        int cell_index = device * instance->types + pc_instance_pass_type(pass),
            microbatch = pc_instance_pass_microbatch(pass);
        const pc_instance_cell *cell = &instance->cells[cell_index];
        pc_time ready = ready_at(s, cell, microbatch);
        if (ready == NEVER) return;
        pc_time start = ready > state->free ? ready : state->free;
        s->made->start[base + state->cursor] = start;
        state->free = r->end[index_of(s, cell_index, microbatch)] = start + cell->duration;
        int other = cell->after == PC_INSTANCE_NONE ? device : cell->after / instance->types;
        if (other != device && r->done[other] == 0) {
            r->done[other] = 1;
            r->ready[r->ready_count++] = other;
        }
    }
}

/* Here r->done says, for each device, whether it stands in the stack. */
static bool run_squeeze(const sweep *s) {
    pc_reorder *r = s->r;
    int devices = s->instance->devices;
    memset(r->end, 0xff, (size_t)devices * (size_t)s->instance->passes * sizeof *r->end); /* NOT_YET */
    r->ready_count = 0;
    for (int d = devices - 1; d >= 0; d--) {
        r->device[d] = (device_state){0};
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
    sweep s = {.r = r, .instance = r->instance, .old = order, .made = order, .earliest = r->head};
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
    const int64_t microbatches = k->r->instance->microbatches;
    const int32_t others[] = {k->r->instance->cells[cell].before, k->r->instance->cells[cell].own};
    pc_time ready = microbatch > 0 ? k->r->end[cell * microbatches + microbatch - 1] : 0;
    for (int i = 0; i < 2; i++) {
        if (others[i] == PC_INSTANCE_NONE) continue;
        pc_time end = k->r->end[others[i] * microbatches + microbatch];
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
    k->r->end[cell * (int64_t)instance->microbatches + microbatch] = start + cells_of(k, type);
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
    for (int d; r->next[d = r->winner[1]] < NEVER;) {
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
    int chunks = instance->chunks;
    pc_time last = 0;
    for (int d = 0; d < instance->devices; d++) {
        pc_device_ends ends = pc_objective_ends(instance, order, d);
        pc_objective_latest(instance, d, order->span, &ends);
        r->release[d] = ends.end;
        memcpy(r->tail + (d + 1) * instance->types - chunks, ends.chunk_end, (size_t)chunks * sizeof *r->tail);
        if (ends.end > last) last = ends.end;
    }
    for (int d = 0; d < instance->devices; d++) {
        pc_time *tail = r->tail + (d + 1) * instance->types - chunks;
        r->release[d] = last - r->release[d];
        for (int c = 0; c < chunks; c++) tail[c] = last - tail[c];
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

/* One sweep backwards and one forward: r->now becomes the next one. False never, but for a fault of ours. `stream` 0 is
 * no stream: all windows are wide. */
static bool improve_once(pc_reorder *r, bool strict, uint64_t *stream) {
    pc_time end = find_releases(r, &r->now);
    reverse(r->instance, &r->now, end, &r->to);
    draw_windows(r, stream);
    sweep backwards = {r, &r->mirror, &r->to, &r->fro, strict, r->tail};
    if (!run_sweep(&backwards, r->release)) return false;
    reverse(r->instance, &r->fro, end, &r->to);
    draw_windows(r, stream);
    sweep forward = {r, r->instance, &r->to, &r->now, strict, r->head};
    return run_sweep(&forward, NULL);
}

static bool is_better(const pc_instance_order *a, const pc_instance_order *b) {
    return a->span < b->span || (a->span == b->span && a->makespan < b->makespan);
}

void pc_reorder_improve(pc_reorder *r, int rounds, int way, pc_time enough, pc_instance_order *order) {
    uint64_t stream = (uint64_t)(way / 2) * PC_GOLDEN;
    int patience = stream ? rounds : ROUNDS_WITHOUT_GAIN;
    pc_instance_order_copy(r->instance, order, &r->now);
    for (int round = 0, without_gain = 0; round < rounds && without_gain < patience; round++) {
        pc_time span = order->span;
        if (span <= enough || !improve_once(r, ((way + round) & 1) != 0, &stream)) break;
        if (is_better(&r->now, order)) pc_instance_order_copy(r->instance, &r->now, order);
        without_gain = order->span < span ? 0 : without_gain + 1;
    }
    order->peak = peak_of(r->instance, order);
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

void pc_reorder_kick(pc_reorder *r, int kicks, int patience, int way, pc_time enough, pc_instance_order *order) {
    uint64_t stream = pc_seed_of((uint64_t)way);
    pc_instance_order_copy(r->instance, order, &r->walk);
    for (int kick = 0, without_gain = 0; kick < kicks && without_gain < patience && order->span > enough; kick++) {
        pc_instance_order_copy(r->instance, &r->walk, &r->trial);
        for (int moves = 1 + (int)(draw(&stream) % MOVES); moves > 0; moves--)
            pc_reorder_move(r->instance, &stream, &r->trial);
        if (!pc_reorder_squeeze(r, &r->trial)) continue;
        pc_reorder_improve(r, ROUNDS_AFTER_A_KICK, kick % 2, enough, &r->trial);
        if (r->trial.span <= r->walk.span) pc_instance_order_copy(r->instance, &r->trial, &r->walk);
        without_gain = r->walk.span < order->span ? 0 : without_gain + 1;
        if (r->walk.span < order->span) pc_instance_order_copy(r->instance, &r->walk, order);
    }
}
