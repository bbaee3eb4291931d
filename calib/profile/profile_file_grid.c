/* The smoothed residuals of a fit in its group: four columns of numbers. */
#include "calib/profile/profile_private.h"

#include "engine/alloc.h"

#include <string.h>

enum { PLACES = PC_GRID_AXES * PC_GRID_NODES };

pc_code pc_profile_write_grid(hid_t group, const pc_log_grid *grid, pc_error *error) {
    double axis[PC_GRID_AXES], nodes[PC_GRID_AXES], place[PLACES];
    int64_t places = 0;
    if (grid->axes == 0) return PC_OK;
    for (int32_t a = 0; a < grid->axes; a++) {
        axis[a] = grid->axis[a], nodes[a] = grid->nodes[a];
        memcpy(place + places, grid->place[a], (size_t)grid->nodes[a] * sizeof *place);
        places += grid->nodes[a];
    }
    pc_code code = pc_reals_write(group, "grid_axis", "1", "dimension of each axis, from 0", axis, grid->axes, error);
    if (!code) code = pc_reals_write(group, "grid_nodes", "1", "nodes of each axis", nodes, grid->axes, error);
    if (!code)
        code = pc_reals_write(group, "grid_place", "1", "log of the dimension at each node, an axis after the other",
                              place, places, error);
    if (code) return code;
    return pc_reals_write(group, "grid_value", "1", "of log(seconds) at each node, the last axis fastest", grid->value,
                          pc_log_grid_count(grid), error);
}

/* Whole numbers from 0 or 1 to `most`. */
static bool take_whole(const double *values, int32_t count, int32_t least, int32_t most, int32_t *to) {
    for (int32_t i = 0; i < count; i++) {
        if (!(values[i] >= least && values[i] <= most)) return false;
        to[i] = (int32_t)values[i];
    }
    return true;
}

static pc_code read_whole(hid_t group, const char *name, const char *column, int32_t count, int32_t least, int32_t most,
                          int32_t *to, pc_error *error) {
    double *values = NULL;
    int64_t found;
    pc_code code = pc_reals_read(group, name, column, count, &values, &found, error);
    if (!code && !take_whole(values, count, least, most, to)) code = pc_fields_refuse(name, column, error);
    pc_free(values);
    return code;
}

static bool take_places(const double *values, pc_log_grid *grid) {
    for (int32_t a = 0; a < grid->axes; a++) {
        memcpy(grid->place[a], values, (size_t)grid->nodes[a] * sizeof *values);
        for (int32_t i = 1; i < grid->nodes[a]; i++)
            if (!(values[i] > values[i - 1])) return false;
        values += grid->nodes[a];
    }
    return true;
}

pc_code pc_profile_read_grid(hid_t group, const char *name, int32_t dimensions, pc_log_grid *grid, pc_error *error) {
    double *values = NULL;
    int64_t places = 0, count = 1, found;
    if (grid->axes == 0) return PC_OK;
    if (grid->axes < 0 || grid->axes > PC_GRID_AXES) return pc_fields_refuse(name, "grid_axes", error);
    pc_code code = read_whole(group, name, "grid_axis", grid->axes, 0, dimensions - 1, grid->axis, error);
    if (!code) code = read_whole(group, name, "grid_nodes", grid->axes, 1, PC_GRID_NODES, grid->nodes, error);
    for (int32_t a = 0; a < grid->axes && !code; a++) places += grid->nodes[a], count *= grid->nodes[a];
    if (!code && count > PC_GRID_VALUES) code = pc_fields_refuse(name, "grid_nodes", error);
    if (!code) code = pc_reals_read(group, name, "grid_place", places, &values, &found, error);
    if (!code && !take_places(values, grid)) code = pc_fields_refuse(name, "grid_place", error);
    pc_free(values);
    if (!code) code = pc_reals_read(group, name, "grid_value", count, &grid->value, &found, error);
    return code || pc_log_grid_is_sound(grid) ? code : pc_fields_refuse(name, "grid_value", error);
}
