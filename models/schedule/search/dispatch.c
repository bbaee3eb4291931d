#include "models/schedule/search/dispatch.h"

#include "engine/alloc.h"

#include <string.h>

#define NEVER   (INT64_MAX / 2)
#define NOT_YET INT64_C(-1)

/* Where one device stands. */
typedef struct device_state {
    pc_time free, next; /* when its last pass ends; when it decides again */
    int64_t filled;     /* passes so far */
    int64_t level;      /* of memory */
    int64_t ahead;      /* what microbatches hold that are later than `oldest` */
    int64_t of_one;     /* what a microbatch takes in all */
    int64_t spare;      /* the most that a pass takes that is no F */
    int oldest;         /* the first microbatch whose F are not all done */
    int waiting;        /* W whose B are done */
    bool forward_last;  /* whether its last pass but W was an F */
} device_state;

struct pc_dispatch {
    const pc_instance *instance;
    pc_time *end;  /* [devices][types][microbatches]; NOT_YET */
    int32_t *done; /* [devices][types] */
    device_state *device;
};

pc_code pc_dispatch_create(const pc_instance *instance, pc_dispatch **dispatch, pc_error *error) {
    size_t devices = (size_t)instance->devices;
    pc_dispatch *k = pc_alloc(1, sizeof *k);
    if (!k) return pc_error_no_memory(error);
    k->instance = instance;
    k->end = pc_alloc(devices * (size_t)instance->passes, sizeof *k->end);
    k->done = pc_alloc(devices * (size_t)instance->types, sizeof *k->done);
    k->device = pc_alloc(devices, sizeof *k->device);
    if (!k->end || !k->done || !k->device) {
        pc_dispatch_free(k);
        return pc_error_no_memory(error);
    }
    *dispatch = k;
    return PC_OK;
}

void pc_dispatch_free(pc_dispatch *k) {
    if (!k) return;
    pc_free(k->end);
    pc_free(k->done);
    pc_free(k->device);
    pc_free(k);
}

/* ---- one pass ---- */

static inline int64_t index_of(const pc_dispatch *k, int cell, int microbatch) {
    return (int64_t)cell * k->instance->microbatches + microbatch;
}

/* When the passes that this one waits for have ended and sent; NEVER where that is not known yet. */
static pc_time ready_at(const pc_dispatch *k, const pc_instance_cell *cell, int microbatch) {
    pc_time ready = 0;
    if (cell->before != PC_INSTANCE_NONE) {
        pc_time end = k->end[index_of(k, cell->before, microbatch)];
        if (end == NOT_YET) return NEVER;
        ready = end + cell->before_delay;
    }
    if (cell->own != PC_INSTANCE_NONE) {
        pc_time end = k->end[index_of(k, cell->own, microbatch)];
        if (end == NOT_YET) return NEVER;
        if (end > ready) ready = end;
    }
    return ready;
}

static bool fits_memory(const pc_dispatch *k, int device, int type, int microbatch) {
    const device_state *s = &k->device[device];
    int64_t taken = k->instance->cells[device * k->instance->types + type].taken, limit = k->instance->limit[device];
    if (taken <= 0) return true;
    if (type >= k->instance->chunks) return s->level + taken <= limit;
    if (s->level + taken + s->spare > limit) return false;
    return microbatch == s->oldest || s->of_one + s->ahead + taken <= limit;
}

/* Whether the device may begin another microbatch. */
static bool may_begin(const pc_dispatch *k, const pc_dispatch_rule *rule, int device) {
    const int32_t *done = k->done + (int64_t)device * k->instance->types;
    return done[0] - done[k->instance->chunks] < rule->under_way;
}

/* The oldest microbatch moves on where all its F are done; what the next one holds is no longer ahead. */
static void move_oldest(const pc_dispatch *k, int device) {
    device_state *s = &k->device[device];
    const pc_instance *instance = k->instance;
    const int32_t *done = k->done + (int64_t)device * instance->types;
    for (bool are_done = true; are_done && s->oldest < instance->microbatches;) {
        for (int c = 0; c < instance->chunks; c++) are_done = are_done && done[c] > s->oldest;
        if (!are_done) return;
        s->oldest++;
        for (int c = 0; c < instance->chunks; c++)
            if (done[c] > s->oldest) s->ahead -= instance->cells[device * instance->types + c].taken;
    }
}

static void run_pass(pc_dispatch *k, int device, int type, pc_time time, pc_instance_order *order) {
    const pc_instance *instance = k->instance;
    int cell_index = device * instance->types + type, row = type / instance->chunks;
    const pc_instance_cell *cell = &instance->cells[cell_index];
    device_state *s = &k->device[device];
    int microbatch = k->done[cell_index]++;
    order->pass[device * instance->passes + s->filled++] = pc_instance_pass_make(type, microbatch);
    s->free = s->next = k->end[index_of(k, cell_index, microbatch)] = time + cell->duration;
    s->level += cell->taken;
    if (row == 0 && microbatch > s->oldest) s->ahead += cell->taken;
    if (row == 0) move_oldest(k, device);
    if (row < 2) s->forward_last = row == 0;
    if (instance->splits && row > 0) s->waiting += row == 1 ? 1 : -1;
    if (cell->after == PC_INSTANCE_NONE) return;
    device_state *other = &k->device[cell->after / instance->types];
    pc_time arrival = s->free + instance->cells[cell->after].before_delay;
    if (arrival < other->free) arrival = other->free;
    if (arrival < other->next) other->next = arrival;
}

/* ---- which pass ---- */

/* The less the sooner: groups in turn, then the chunks on their way, then microbatches. */
static int64_t place_in_groups(const pc_instance *instance, const pc_dispatch_rule *rule, int row, int chunk,
                               int microbatch) {
    int turn = row == 0 ? chunk : instance->chunks - 1 - chunk;
    return ((int64_t)(microbatch / rule->group) * instance->chunks + turn) * rule->group + microbatch % rule->group;
}

/* The row's first pass that can start now; PC_INSTANCE_NONE if there is none. `soon` becomes the next time at which a
 * pass is known to be ready. */
static int first_of_row(const pc_dispatch *k, const pc_dispatch_rule *rule, int device, int row, pc_time *soon) {
    const pc_instance *instance = k->instance;
    int best = PC_INSTANCE_NONE;
    int64_t best_place = INT64_MAX;
    for (int c = 0; c < instance->chunks; c++) {
        int type = row * instance->chunks + c, cell = device * instance->types + type, microbatch = k->done[cell];
        if (microbatch == instance->microbatches) continue;
        pc_time ready = ready_at(k, &instance->cells[cell], microbatch);
        if (ready > k->device[device].next) {
            if (ready < *soon) *soon = ready;
            continue;
        }
        int64_t place = place_in_groups(instance, rule, row, c, microbatch);
        if (place >= best_place || !fits_memory(k, device, type, microbatch)) continue;
        if (type == 0 && !may_begin(k, rule, device)) continue;
        best = type;
        best_place = place;
    }
    return best;
}

static void decide(pc_dispatch *k, const pc_dispatch_rule *rule, int device, pc_instance_order *order) {
    device_state *s = &k->device[device];
    pc_time soon = NEVER;
    bool starts_with_f = rule->first == PC_DISPATCH_FORWARD || (rule->first == PC_DISPATCH_IN_TURN && !s->forward_last);
    int rows[3] = {starts_with_f ? 0 : 1, starts_with_f ? 1 : 0, 2}, count = k->instance->splits ? 3 : 2;
    if (k->instance->splits && s->waiting >= rule->waiting) {
        rows[2] = rows[1];
        rows[1] = rows[0];
        rows[0] = 2;
    }
    for (int i = 0; i < count; i++) {
        int type = first_of_row(k, rule, device, rows[i], &soon);
        if (type == PC_INSTANCE_NONE) continue;
        run_pass(k, device, type, s->next, order);
        return;
    }
    s->next = soon;
}

/* ---- all of them ---- */

static bool start_device(pc_dispatch *k, int device) {
    const pc_instance *instance = k->instance;
    device_state *s = &k->device[device];
    *s = (device_state){0};
    for (int type = 0; type < instance->types; type++) {
        int64_t taken = instance->cells[device * instance->types + type].taken;
        k->done[device * instance->types + type] = 0;
        if (type < instance->chunks) s->of_one += taken;
        if (type >= instance->chunks && taken > s->spare) s->spare = taken;
    }
    s->of_one += s->spare;
    return s->of_one <= instance->limit[device];
}

bool pc_dispatch_run(pc_dispatch *k, const pc_dispatch_rule *rule, pc_instance_order *order) {
    const pc_instance *instance = k->instance;
    memset(k->end, 0xff, (size_t)instance->devices * (size_t)instance->passes * sizeof *k->end); /* NOT_YET */
    for (int d = 0; d < instance->devices; d++)
        if (!start_device(k, d)) return false;
    for (int64_t left = instance->devices * instance->passes; left > 0;) {
        int first = 0;
        for (int d = 1; d < instance->devices; d++)
            if (k->device[d].next < k->device[first].next) first = d;
        if (k->device[first].next >= NEVER) return false;
        int64_t before = k->device[first].filled;
        decide(k, rule, first, order);
        left -= k->device[first].filled - before;
    }
    return true;
}
