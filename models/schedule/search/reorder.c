#include "models/schedule/search/reorder_private.h"

#include "engine/alloc.h"
#include "models/schedule/search/objective.h"

#include <stddef.h>
#include <string.h>

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

void pc_reorder_start_turns(pc_reorder *r) {
    for (int i = 0; i < r->leaves; i++)
        r->turns[r->leaves + i] = (turn){i < r->instance->devices ? r->device[i].free : NEVER, i};
    for (int node = r->leaves - 1; node >= 1; node--) r->turns[node] = pc_reorder_first_below(r->turns, (unsigned)node);
}
/* ---- one sweep ---- */

/* When the passes that this one waits for have ended and sent; NEVER or later where that is not known yet. */
static inline pc_time ready_at(const lane *l, int microbatch) {
    pc_time arrival = l->before[microbatch] + l->before_delay, own = l->own[microbatch];
    pc_time ready = arrival > own ? arrival : own;
    return l->earliest > ready ? l->earliest : ready;
}

/* Tells a device that waits for a pass when its input arrives. */
static inline void notify(pc_reorder *r, int device, pc_time arrival) {
    if (arrival < r->device[device].free) arrival = r->device[device].free;
    if (arrival < pc_reorder_next(r, device)) pc_reorder_set_next(r, device, arrival);
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
        pc_reorder_set_next(s->r, device, soon);
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
            pc_reorder_set_next(s->r, device, time);
            return;
        } else if (!fill_gap(s, device, head, ready, time)) {
            return;
        }
        time = state->free;
    }
    pc_reorder_set_next(s->r, device, NEVER);
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

bool pc_reorder_run_sweep(const sweep *s, const pc_time *release) {
    pc_reorder *r = s->r;
    for (int d = 0; d < s->instance->devices; d++) start_device(s, d, release ? release[d] : 0);
    pc_reorder_start_turns(r);
    for (turn first; (first = r->turns[1]).time < NEVER;) decide(s, first.device, first.time);
    for (int d = 0; d < s->instance->devices; d++)
        if (r->device[d].filled < s->instance->passes) return false;
    measure(s);
    return true;
}

/* ---- squeeze ---- */

int64_t pc_reorder_peak(const pc_instance *instance, const pc_instance_order *order) {
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
    int64_t peak = pc_reorder_peak(r->instance, order);
    sweep s = {.r = r, .instance = r->instance, .old = order, .made = order};
    if (peak < 0 || !run_squeeze(&s)) return false;
    order->peak = peak;
    return true;
}
