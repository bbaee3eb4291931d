#include "models/schedule/search/coarse.h"

static const int quanta_in_shortest[PC_COARSE_KINDS] = {
    [PC_COARSE_CELLS] = 1, [PC_COARSE_HALVES] = 2, [PC_COARSE_QUARTERS] = 4};

static pc_time shortest_pass(const pc_plan *plan) {
    pc_time shortest = 0;
    for (int i = 0; i < plan->devices * plan->types; i++) {
        pc_time duration = plan->cells[i].duration;
        if (duration > 0 && (shortest == 0 || duration < shortest)) shortest = duration;
    }
    return shortest;
}

bool pc_plan_takes_time(const pc_plan *plan) {
    return shortest_pass(plan) > 0;
}

static pc_time round_time(pc_time time, pc_time shortest, int quanta) {
    return (pc_time)((double)time * quanta / (double)shortest + 0.5);
}

pc_code pc_plan_coarsen(const pc_plan *plan, int kind, pc_plan *coarse, pc_error *error) {
    pc_time shortest = shortest_pass(plan);
    pc_code code = pc_plan_mirror(plan, coarse, error); /* for its cells, which are then written anew */
    for (int i = 0; !code && i < plan->devices * plan->types; i++) {
        pc_plan_cell *cell = &coarse->cells[i];
        bool is_whole_backward = !plan->splits && i % plan->types / plan->chunks == 1;
        *cell = plan->cells[i];
        cell->duration = kind == PC_COARSE_CELLS ? (is_whole_backward ? 2 : 1)
                                                 : round_time(cell->duration, shortest, quanta_in_shortest[kind]);
        cell->before_delay =
            kind == PC_COARSE_CELLS ? 0 : round_time(cell->before_delay, shortest, quanta_in_shortest[kind]);
    }
    return code;
}

bool pc_plan_has_times_of(const pc_plan *plan, const pc_plan *other) {
    double unit = (double)shortest_pass(plan), other_unit = (double)shortest_pass(other);
    for (int i = 0; i < plan->devices * plan->types; i++) {
        const pc_plan_cell *x = &plan->cells[i], *y = &other->cells[i];
        if ((double)x->duration * other_unit != (double)y->duration * unit ||
            (double)x->before_delay * other_unit != (double)y->before_delay * unit)
            return false;
    }
    return true;
}
