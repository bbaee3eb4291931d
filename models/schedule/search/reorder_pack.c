/* A building block, repeated and packed. */
#include "models/schedule/search/reorder_private.h"

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
    pc_reorder_start_turns(r);
    while (r->turns[1].time < NEVER) {
        int d = r->turns[1].device;
        pack_pass(&k, d, next_in_block(&k, d, &start));
        next_in_block(&k, d, &start);
        pc_reorder_set_next(r, d, start);
    }
}
