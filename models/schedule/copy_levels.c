#include "models/schedule/copy_levels.h"

#include "engine/alloc.h"
#include "engine/numbers.h"

#include <stdlib.h>
#include <string.h>

typedef struct change {
    pc_time when_ps;
    int64_t bytes; /* below zero: given back */
    int64_t order; /* of equal ones */
} change;

typedef struct changes {
    change *list;
    int64_t count;
} changes;

static void add(changes *all, pc_time when_ps, int64_t bytes) {
    if (bytes != 0) all->list[all->count] = (change){when_ps, bytes, all->count}, all->count++;
}

static int compare(const void *a, const void *b) {
    const change *x = a, *y = b;
    if (x->when_ps != y->when_ps) return x->when_ps < y->when_ps ? -1 : 1;
    if ((x->bytes < 0) != (y->bytes < 0)) return x->bytes < 0 ? -1 : 1;
    return x->order < y->order ? -1 : 1;
}

/* What a backward pass gives back of what had been on the host. */
static int64_t copied_given(const pc_copies *copies, int64_t at, int kind) {
    if (kind == PC_PASS_BW) return copies->bytes[at];
    return kind == PC_PASS_B ? copies->b_bytes[at] : kind == PC_PASS_W ? copies->bytes[at] - copies->b_bytes[at] : 0;
}

/* Schedules with copies have no R. */
static void add_passes(const pc_schedule *schedule, const pc_costs *costs, const pc_time *start_ps,
                       const pc_time *end_ps, int device, changes *all) {
    for (int64_t i = schedule->offsets[device]; i < schedule->offsets[device + 1]; i++) {
        pc_pass pass = schedule->passes[i];
        int64_t at = pc_costs_index(costs, device, pass.chunk);
        int64_t more = pass.kind == PC_PASS_F ? costs->copies.bytes[at] : 0;
        add(all, start_ps[i], pc_costs_taken_at(costs, schedule, device, i, false) + more);
        add(all, end_ps[i],
            -pc_costs_given_at(costs, schedule, device, i) - copied_given(&costs->copies, at, pass.kind));
    }
}

/* As the walk of timing.c has them. */
static void add_copies(const pc_schedule *schedule, const pc_costs *costs, const pc_time *end_ps, int device,
                       pc_copy_plan *plan, changes *all) {
    pc_copy_lanes lanes = {0, 0};
    for (int64_t i = schedule->offsets[device]; i < schedule->offsets[device + 1]; i++) {
        int64_t at = pc_costs_index(costs, device, schedule->passes[i].chunk);
        const pc_copies *x = &costs->copies;
        if (plan->mark[i] == PC_COPY_OUT) {
            plan->out_end_ps[i] = pc_copy_out(&lanes, end_ps[i], x->out_ps[at]);
            add(all, plan->out_end_ps[i], -x->bytes[at]);
        }
        if (plan->mark[i] == PC_COPY_BACK) {
            pc_time before_ps = end_ps[plan->after[i]];
            pc_time back_ps = pc_copy_back(&lanes, before_ps, plan->out_end_ps[plan->partner[i]], x->back_ps[at]);
            add(all, back_ps - x->back_ps[at], x->bytes[at]);
        }
    }
}

static void write_device(changes *all, int device, pc_copy_levels *levels) {
    int64_t level = 0, row = levels->offsets[device];
    if (all->count > 0) qsort(all->list, (size_t)all->count, sizeof *all->list, compare);
    for (int64_t i = 0; i < all->count; i++, row++) {
        level += all->list[i].bytes;
        levels->device[row] = device;
        levels->time_ps[row] = all->list[i].when_ps;
        levels->level_bytes[row] = level;
        levels->peak_bytes[device] = pc_max(levels->peak_bytes[device], level);
    }
    levels->offsets[device + 1] = levels->count = row;
}

static bool make_room(const pc_schedule *schedule, pc_copy_levels *levels, changes *all) {
    size_t devices = (size_t)schedule->devices, rows = 3 * (size_t)schedule->offsets[schedule->devices] + 1;
    levels->device = pc_alloc(rows, sizeof *levels->device);
    levels->time_ps = pc_alloc(rows, sizeof *levels->time_ps);
    levels->level_bytes = pc_alloc(rows, sizeof *levels->level_bytes);
    levels->offsets = pc_alloc(devices + 1, sizeof *levels->offsets);
    levels->peak_bytes = pc_alloc(devices, sizeof *levels->peak_bytes);
    levels->host_bytes = pc_alloc(devices, sizeof *levels->host_bytes);
    all->list = pc_alloc(rows, sizeof *all->list);
    return levels->device && levels->time_ps && levels->level_bytes && levels->offsets && levels->peak_bytes &&
           levels->host_bytes && all->list;
}

pc_code pc_copy_levels_make(const pc_schedule *schedule, const pc_costs *costs, const pc_time *start_ps,
                            const pc_time *end_ps, pc_copy_levels *levels, pc_error *error) {
    pc_copy_plan plan = {0};
    changes all = {0};
    memset(levels, 0, sizeof *levels);
    pc_code code = make_room(schedule, levels, &all) ? PC_OK : pc_error_no_memory(error);
    if (!code) code = pc_copy_plan_make(schedule, costs, &plan, error);
    for (int d = 0; !code && d < schedule->devices; d++) {
        all.count = 0;
        add_passes(schedule, costs, start_ps, end_ps, d, &all);
        add_copies(schedule, costs, end_ps, d, &plan, &all);
        write_device(&all, d, levels);
        levels->host_bytes[d] = pc_copy_plan_host_bytes(schedule, costs, &plan, d);
    }
    pc_copy_plan_free(&plan);
    pc_free(all.list);
    if (code) pc_copy_levels_free(levels);
    return code;
}

void pc_copy_levels_free(pc_copy_levels *levels) {
    pc_free(levels->device);
    pc_free(levels->time_ps);
    pc_free(levels->level_bytes);
    pc_free(levels->offsets);
    pc_free(levels->peak_bytes);
    pc_free(levels->host_bytes);
    memset(levels, 0, sizeof *levels);
}
