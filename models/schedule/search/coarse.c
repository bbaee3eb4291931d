#include "models/schedule/search/coarse.h"

static const int quanta_in_shortest[PC_COARSE_KINDS] = {
    [PC_COARSE_CELLS] = 1, [PC_COARSE_HALVES] = 2, [PC_COARSE_QUARTERS] = 4};

static pc_time shortest_pass(const pc_instance *instance) {
    pc_time shortest = 0;
    for (int i = 0; i < instance->devices * instance->types; i++) {
        pc_time duration = instance->cells[i].duration;
        if (duration > 0 && (shortest == 0 || duration < shortest)) shortest = duration;
    }
    return shortest;
}

bool pc_instance_takes_time(const pc_instance *instance) {
    return shortest_pass(instance) > 0;
}

static pc_time round_time(pc_time time, pc_time shortest, int quanta) {
    return (pc_time)((double)time * quanta / (double)shortest + 0.5);
}

pc_code pc_instance_coarsen(const pc_instance *instance, int kind, pc_instance *coarse, pc_error *error) {
    pc_time shortest = shortest_pass(instance);
    pc_code code = pc_instance_mirror(instance, coarse, error); /* for its cells, which are then written anew */
    for (int i = 0; !code && i < instance->devices * instance->types; i++) {
        pc_instance_cell *cell = &coarse->cells[i];
        bool is_whole_backward = !instance->splits && i % instance->types / instance->chunks == 1;
        *cell = instance->cells[i];
        cell->duration = kind == PC_COARSE_CELLS ? (is_whole_backward ? 2 : 1)
                                                 : round_time(cell->duration, shortest, quanta_in_shortest[kind]);
        cell->before_delay =
            kind == PC_COARSE_CELLS ? 0 : round_time(cell->before_delay, shortest, quanta_in_shortest[kind]);
    }
    return code;
}

bool pc_instance_has_times_of(const pc_instance *instance, const pc_instance *other) {
    double unit = (double)shortest_pass(instance), other_unit = (double)shortest_pass(other);
    for (int i = 0; i < instance->devices * instance->types; i++) {
        const pc_instance_cell *x = &instance->cells[i], *y = &other->cells[i];
        if ((double)x->duration * other_unit != (double)y->duration * unit ||
            (double)x->before_delay * other_unit != (double)y->before_delay * unit)
            return false;
    }
    return true;
}
