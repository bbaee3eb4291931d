/* Sweeps to and fro, kicks and walks. */
#include "models/schedule/search/reorder_private.h"

#include "engine/random.h"
#include "models/schedule/search/objective.h"

#include <stddef.h>
#include <string.h>

enum { ROUNDS_WITHOUT_GAIN = 4, ROUNDS_AFTER_A_KICK = 1, RULES = 2 };

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
    if (!pc_reorder_run_sweep(&backwards, r->release)) return false;
    reverse(r->instance, &r->fro, end, &r->to);
    draw_windows(r, stream);
    sweep forward = {r, r->instance, &r->to, &r->fro, strict};
    if (!pc_reorder_run_sweep(&forward, NULL)) return false;
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
    order->peak = pc_reorder_peak(r->instance, order);
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
