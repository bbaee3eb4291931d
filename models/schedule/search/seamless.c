#include "models/schedule/search/seamless.h"

#include "engine/alloc.h"
#include "engine/numbers.h"

#include <assert.h>

/* Types of an instance of two chunks that splits, as instance.h numbers them. */
enum { F0, F1, B0, B1, W0, W1, TYPES, NO_STATE = -1 };

/* ---- one device ---- */

/* Where a device's passes stand from its F0 on, what others see of that, and which state of the device behind goes with
 * it. */
typedef struct state {
    pc_time out, rest, back, whole; /* A, C, D and their sum: from F0 to F1, to B1, to B0 */
    pc_time start[TYPES];
    int64_t turn[TYPES]; /* of the interval that each starts in: start is turn x interval and an offset */
    int32_t behind;
} state;

/* The states of a device, in the room of all. */
typedef struct state_list {
    int32_t first, count;
} state_list;

typedef struct seamless {
    const pc_instance *instance;
    pc_time interval;
    pc_seamless_effort effort;
    state *states; /* of all devices, those of the last device first */
    int32_t count, room;
    state_list *of_device;
    int device;                    /* that is being listed */
    pc_time work;                  /* of its passes, for one microbatch */
    const pc_instance_cell *cells; /* its own */
    int sequence[TYPES];           /* its types in the order in which they stand in the circle */
    pc_time least_out, least_turn, least_back, longest_turn; /* what the others leave A, C and D */
    pc_time way[3];  /* the constants of a, g and h to the device behind; unless it is the last one */
    bool has_failed; /* for want of memory */
} seamless;

static const pc_instance_cell *cell_of(const seamless *s, int device, int type) {
    return &s->instance->cells[device * TYPES + type];
}

/* What the device holds at most if the block is repeated for ever. */
static int64_t level_of(const seamless *s, const state *at) {
    int64_t level = 0, most = 0;
    for (int type = 0; type < TYPES; type++) level -= s->cells[type].taken * at->turn[type];
    for (int i = 0; i < TYPES; i++) {
        level += s->cells[s->sequence[i]].taken;
        if (level > most) most = level;
    }
    return most;
}

static bool fits(const seamless *s, const state *at) {
    return level_of(s, at) <= s->instance->limit[s->device];
}

/* ---- neighbours ---- */

/* Whether device d can be in this state while the one behind is in that. */
static bool is_allowed(const seamless *s, const state *here, const state *behind) {
    pc_time a = here->out - behind->out - s->way[0], g = behind->rest - here->rest - s->way[1];
    pc_time h = here->back - behind->back - s->way[2];
    return a >= 0 && g >= 0 && h >= 0 && a + h >= g;
}

static bool find_behind(const seamless *s, state *here) {
    here->behind = NO_STATE;
    if (s->device == s->instance->devices - 1) return true;
    state_list list = s->of_device[s->device + 1];
    for (int32_t i = list.first; i < list.first + list.count; i++)
        if (is_allowed(s, here, &s->states[i])) {
            here->behind = i;
            return true;
        }
    return false;
}

/* Whether what one state allows the device in front, the other one allows too. */
static bool is_as_good(const state *one, const state *other) {
    return one->out <= other->out && one->rest >= other->rest && one->back <= other->back && one->whole <= other->whole;
}

static bool make_room(seamless *s) {
    if (s->count < s->room) return true;
    int32_t room = s->room ? 2 * s->room : 32 * s->instance->devices;
    state *moved = pc_realloc(s->states, (size_t)room, sizeof *moved);
    if (!moved) return false;
    s->states = moved;
    s->room = room;
    return true;
}

/* Lists the state unless another is as good, in place of those that are no better. */
static void keep(seamless *s, state *found) {
    state_list *list = &s->of_device[s->device];
    int32_t kept = list->first;
    for (int32_t i = list->first; i < s->count; i++)
        if (is_as_good(&s->states[i], found)) return;
    if (!find_behind(s, found)) return;
    for (int32_t i = list->first; i < s->count; i++)
        if (!is_as_good(found, &s->states[i])) s->states[kept++] = s->states[i];
    s->count = kept;
    s->has_failed = !make_room(s);
    if (!s->has_failed && s->count - list->first < s->effort.states) s->states[s->count++] = *found;
    list->count = s->count - list->first;
}

/* ---- all states ---- */

/* Puts the pass where it stands at its offset for the first time from `least` on. */
static void put_from(const seamless *s, const pc_time *offset, int type, pc_time least, state *at) {
    pc_time turn = pc_divide_up(least - offset[type], s->interval);
    at->turn[type] = turn;
    at->start[type] = offset[type] + turn * s->interval;
}

static void put_w(const seamless *s, const pc_time *offset, int w, int b, state *at) {
    put_from(s, offset, w, at->start[b] + s->cells[b].duration, at);
}

static void turn_on(const seamless *s, int type, state *at) {
    at->turn[type]++;
    at->start[type] += s->interval;
}

static void note_distances(state *at) {
    at->out = at->start[F1] - at->start[F0];
    at->rest = at->start[B1] - at->start[F1];
    at->back = at->start[B0] - at->start[B1];
    at->whole = at->start[B0] - at->start[F0];
}

/* All whole turns that the limit allows, each later than the one before: with more of them more is held. Whether there
 * are any. */
static bool list_back(seamless *s, const pc_time *offset, state *at) {
    put_from(s, offset, B0, at->start[B1] + s->least_back, at);
    put_w(s, offset, W0, B0, at);
    for (int turn = 0; turn < s->effort.turns && !s->has_failed; turn++) {
        if (!fits(s, at)) return turn > 0;
        note_distances(at);
        state found = *at;
        keep(s, &found);
        turn_on(s, B0, at);
        turn_on(s, W0, at);
    }
    return true;
}

static bool list_turn(seamless *s, const pc_time *offset, state *at) {
    put_from(s, offset, B1, at->start[F1] + s->least_turn, at);
    put_w(s, offset, W1, B1, at);
    for (int turn = 0; turn < s->effort.rest_turns && !s->has_failed; turn++) {
        if (at->start[B1] - at->start[F1] > s->longest_turn || !list_back(s, offset, at)) return turn > 0;
        turn_on(s, B1, at);
        turn_on(s, W1, at);
    }
    return true;
}

static void list_turns(seamless *s, const pc_time *offset) {
    state at = {0};
    put_from(s, offset, F1, s->least_out, &at);
    for (int turn = 0; turn < s->effort.turns && !s->has_failed; turn++) {
        if (!list_turn(s, offset, &at)) return;
        turn_on(s, F1, &at);
    }
}

static bool is_placed(const seamless *s, int placed, int type) {
    for (int i = 0; i < placed; i++)
        if (s->sequence[i] == type) return true;
    return false;
}

/* Puts the passes behind F0 into the circle in all orders, and pieces of idle time between them in all ways. `used` of
 * the pieces stand before `at`. */
/* NOLINTNEXTLINE(misc-no-recursion): as deep as there are types */
static void list_orders(seamless *s, pc_time *offset, int placed, pc_time at, int used) {
    if (placed == TYPES) {
        list_turns(s, offset);
        return;
    }
    pc_time idle = s->interval - s->work;
    for (int upto = used; upto <= (idle > 0 ? s->effort.pieces : used); upto++) {
        pc_time waited = idle > 0 ? idle * upto / s->effort.pieces - idle * used / s->effort.pieces : 0;
        for (int type = F1; type < TYPES && !s->has_failed; type++) {
            if (is_placed(s, placed, type)) continue;
            s->sequence[placed] = type;
            offset[type] = at + waited;
            list_orders(s, offset, placed + 1, at + waited + s->cells[type].duration, upto);
        }
    }
}

/* ---- what the others leave a device ---- */

static pc_time work_of(const pc_instance *instance, int device) {
    pc_time work = 0;
    for (int type = 0; type < TYPES; type++) work += instance->cells[device * TYPES + type].duration;
    return work;
}

/* How C grows from the first device on at the least: a microbatch's F1 up to it and B1 down again. */
static pc_time least_turn(const seamless *s, int device) {
    pc_time least = cell_of(s, 0, F1)->duration + cell_of(s, 0, B1)->before_delay;
    for (int d = 1; d <= device; d++)
        least += cell_of(s, d, F1)->duration + cell_of(s, d - 1, F1)->before_delay + cell_of(s, d - 1, B1)->duration +
                 cell_of(s, d, B1)->before_delay;
    return least;
}

static void face_last(seamless *s) {
    s->least_out = s->cells[F0].duration + s->cells[F1].before_delay;
    s->least_back = s->cells[B1].duration + s->cells[B0].before_delay;
    s->longest_turn = INT64_MAX / 4;
}

static void face_behind(seamless *s) {
    int d = s->device;
    const pc_instance_cell *behind = s->cells + TYPES;
    pc_time down_f = behind[F0].before_delay, up_f = s->cells[F1].before_delay;
    pc_time down_b = behind[B1].before_delay, up_b = s->cells[B0].before_delay;
    s->way[0] = s->cells[F0].duration + down_f + behind[F1].duration + up_f;
    s->way[1] = s->cells[B1].duration + down_b + behind[F1].duration + up_f;
    s->way[2] = s->cells[B1].duration + down_b + behind[B0].duration + up_b;
    state_list list = s->of_device[d + 1];
    s->least_out = s->least_back = INT64_MAX / 4;
    s->longest_turn = 0;
    for (const state *at = &s->states[list.first]; at < &s->states[list.first + list.count]; at++) {
        s->least_out = pc_min(s->least_out, at->out + s->way[0]);
        s->least_back = pc_min(s->least_back, at->back + s->way[2]);
        s->longest_turn = pc_max(s->longest_turn, at->rest - s->way[1]);
    }
}

/* Whether a state of every device is left. */
static bool list_devices(seamless *s) {
    for (int d = s->instance->devices - 1; d >= 0; d--) {
        pc_time offset[TYPES] = {0};
        s->device = d;
        s->cells = cell_of(s, d, 0);
        s->of_device[d].first = s->count;
        s->least_turn = least_turn(s, d);
        if (d == s->instance->devices - 1)
            face_last(s);
        else
            face_behind(s);
        s->work = work_of(s->instance, d);
        list_orders(s, offset, 1, s->cells[F0].duration, 0);
        if (s->has_failed || s->of_device[d].count == 0) return false;
    }
    return true;
}

/* ---- the block ---- */

/* How much later than it could F0 of the device behind starts: s1. */
static pc_time slack_of(const seamless *s, const state *here, const state *behind) {
    pc_time a = here->out - behind->out - s->way[0], g = behind->rest - here->rest - s->way[1];
    pc_time h = here->back - behind->back - s->way[2];
    return a - pc_max(g - h, 0L);
}

static void write_block(seamless *s, pc_time *start) {
    assert(s->states); /* the first device has one */
    const state *here = &s->states[s->of_device[0].first];
    pc_time x = 0;
    for (int d = 0;; d++) {
        for (int type = 0; type < TYPES; type++) start[d * TYPES + type] = x + here->start[type];
        if (d == s->instance->devices - 1) return;
        const state *behind = &s->states[here->behind];
        s->device = d;
        s->cells = cell_of(s, d, 0);
        face_behind(s);
        x += s->cells[F0].duration + s->cells[TYPES + F0].before_delay + slack_of(s, here, behind);
        here = behind;
    }
}

/* ---- for the caller ---- */

bool pc_seamless_applies(const pc_instance *instance) {
    if (instance->placement != PC_PLACEMENT_V || instance->chunks != 2 || !instance->splits) return false;
    for (int cell = 0; cell < instance->devices * TYPES; cell++)
        if (instance->cells[cell].duration <= 0) return false;
    return true;
}

pc_time pc_seamless_work(const pc_instance *instance) {
    pc_time most = 0;
    for (int d = 0; d < instance->devices; d++) most = pc_max(most, work_of(instance, d));
    return most;
}

pc_code pc_seamless_find(const pc_instance *instance, pc_time interval, pc_seamless_effort effort,
                         pc_fitted_block *block, pc_error *error) {
    size_t devices = (size_t)instance->devices;
    *block = (pc_fitted_block){0};
    if (interval < pc_seamless_work(instance)) return PC_OK;
    seamless s = {.instance = instance,
                  .interval = interval,
                  .effort = effort,
                  .of_device = pc_alloc(devices, sizeof *s.of_device)};
    pc_time *start = pc_alloc(devices * TYPES, sizeof *start);
    s.has_failed = !s.of_device || !start;
    if (!s.has_failed && list_devices(&s)) {
        write_block(&s, start);
        *block = (pc_fitted_block){.microbatches = 1, .interval = interval, .start = start};
        start = NULL;
    }
    pc_free(s.states);
    pc_free(s.of_device);
    pc_free(start);
    return s.has_failed ? pc_error_no_memory(error) : PC_OK;
}

static bool are_equal(const pc_instance *instance) {
    for (int i = 0; i < instance->devices * TYPES; i++)
        if (instance->cells[i].duration != instance->cells[0].duration || instance->cells[i].before_delay > 0)
            return false;
    return true;
}

static bool are_limited(const pc_instance *instance) {
    for (int d = 0; d < instance->devices; d++)
        if (!pc_instance_is_limited(instance, d)) return false;
    return true;
}

pc_code pc_seamless_start(const pc_instance *instance, pc_fitted *fitted, pc_error *error) {
    *fitted = (pc_fitted){0};
    if (!pc_seamless_applies(instance) || are_equal(instance) || !are_limited(instance)) return PC_OK;
    fitted->blocks = pc_alloc(1, sizeof *fitted->blocks);
    if (!fitted->blocks) return pc_error_no_memory(error);
    pc_code code = pc_seamless_find(instance, pc_seamless_work(instance), PC_SEAMLESS_QUICK, fitted->blocks, error);
    fitted->count = fitted->blocks->microbatches;
    if (code) pc_fitted_free(fitted);
    return code;
}
