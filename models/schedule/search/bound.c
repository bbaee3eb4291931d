#include "models/schedule/search/bound.h"

/* How long after the start of a microbatch's first F on a device its first backward pass can start there. */
static pc_time way_back(const pc_plan *plan, int device) {
    int first_back = device * plan->types + plan->chunks, cell = device * plan->types;
    pc_time way = 0;
    do {
        way += plan->cells[cell].duration;
        cell = plan->cells[cell].after;
        way += plan->cells[cell].before_delay;
    } while (cell < first_back || cell >= (device + 1) * plan->types);
    return way;
}

/* The most time that a device can spend on F before its memory is full. */
static pc_time longest_warm_up(const pc_plan *plan, int device) {
    const pc_plan_cell *cells = plan->cells + (int64_t)device * plan->types;
    pc_time longest = 0, all = 0;
    int64_t smallest = INT64_MAX;
    for (int c = 0; c < plan->chunks; c++) {
        if (cells[c].taken < smallest) smallest = cells[c].taken;
        if (cells[c].duration > longest) longest = cells[c].duration;
        all += cells[c].duration * plan->microbatches;
    }
    if (smallest <= 0 || longest == 0) return all;
    int64_t most = plan->limit[device] / smallest;
    return most > all / longest ? all : most * longest;
}

pc_time pc_plan_least_span(const pc_plan *plan) {
    pc_time least = 0;
    for (int d = 0; d < plan->devices; d++) {
        pc_time work = 0, wait = way_back(plan, d) - longest_warm_up(plan, d);
        for (int type = 0; type < plan->types; type++) work += plan->cells[d * plan->types + type].duration;
        work = work * plan->microbatches + (wait > 0 ? wait : 0);
        if (work > least) least = work;
    }
    return least;
}
