#include "models/schedule/search/known.h"

/* Whether all passes take as long as the first one, wait for nothing on their way, and F alone takes memory, as much as
 * W gives back. */
static bool has_equal_passes(const pc_instance *instance) {
    const pc_instance_cell *first = instance->cells;
    for (int i = 0; i < instance->devices * instance->types; i++) {
        const pc_instance_cell *cell = &instance->cells[i];
        int row = i % instance->types / instance->chunks;
        int64_t taken = row == 0 ? first->taken : row == 1 ? 0 : -first->taken;
        if (cell->duration != first->duration || cell->before_delay != 0 || cell->taken != taken) return false;
    }
    return first->duration > 0 && first->taken > 0;
}

/* How many chunks fit on every device; 0 where they differ. */
static int64_t common_room(const pc_instance *instance) {
    int64_t room = instance->limit[0] / instance->cells[0].taken;
    for (int d = 1; d < instance->devices; d++)
        if (instance->limit[d] / instance->cells[0].taken != room) return 0;
    return room;
}

pc_time pc_known_span(const pc_instance *instance) {
    int64_t p = instance->devices;
    if (instance->placement != PC_PLACEMENT_V || instance->chunks != 2 || !instance->splits || p < 2 ||
        instance->microbatches < 2 * p || !has_equal_passes(instance))
        return 0;
    int64_t room = common_room(instance);
    if (room < 2 * ((p + 4) / 3)) return 0;
    int64_t idle = room >= 2 * p ? 0 : room == 2 * p - 1 ? 3 : 6 * p - 1 - 3 * room;
    return (instance->passes + idle) * instance->cells[0].duration;
}

pc_bound pc_known_first(const pc_instance *instance) {
    pc_time known = pc_instance_is_large(instance) ? pc_known_span(instance) : 0;
    return known > 0 ? (pc_bound){.least = known, .is_close = true} : pc_bound_first(instance);
}
