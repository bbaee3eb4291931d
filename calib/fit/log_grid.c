#include "calib/fit/log_grid.h"

#include "engine/alloc.h"

#include <math.h>
#include <string.h>

void pc_log_grid_free(pc_log_grid *grid) {
    pc_free(grid->value);
    memset(grid, 0, sizeof *grid);
}

int64_t pc_log_grid_count(const pc_log_grid *grid) {
    int64_t count = grid->axes > 0;
    for (int32_t a = 0; a < grid->axes; a++) count *= grid->nodes[a];
    return count;
}

double pc_log_grid_locate(const pc_log_grid *grid, int32_t axis, double log_x, int32_t *below) {
    const double *place = grid->place[axis];
    int32_t last = grid->nodes[axis] - 1, at = 0;
    *below = 0;
    if (last == 0 || log_x <= place[0]) return 0.0;
    while (at + 2 <= last && log_x >= place[at + 1]) at++;
    *below = at;
    double part = (log_x - place[at]) / (place[at + 1] - place[at]);
    return part < 1.0 ? part : 1.0;
}

/* Along the last axis first: of the values between nodes `below` and above of every axis. */
static double between(const pc_log_grid *grid, const int32_t *below, const double *part, int32_t axis, int64_t index) {
    if (axis == grid->axes) return grid->value[index];
    int64_t at = index * grid->nodes[axis] + below[axis];
    double low = between(grid, below, part, axis + 1, at);
    if (part[axis] == 0.0) return low;
    return low + part[axis] * (between(grid, below, part, axis + 1, at + 1) - low);
}

double pc_log_grid_at(const pc_log_grid *grid, const double *point) {
    int32_t below[PC_GRID_AXES];
    double part[PC_GRID_AXES];
    if (grid->axes == 0) return 0.0;
    for (int32_t a = 0; a < grid->axes; a++)
        part[a] = pc_log_grid_locate(grid, a, log(point[grid->axis[a]]), &below[a]);
    return between(grid, below, part, 0, 0);
}

double pc_log_grid_variance(const pc_log_grid *grid, const double *point) {
    double squared = 0.0;
    for (int32_t a = 0; a < grid->axes; a++) {
        double log_x = log(point[grid->axis[a]]), low = grid->place[a][0], high = grid->place[a][grid->nodes[a] - 1];
        double away = log_x < low ? low - log_x : log_x > high ? log_x - high : 0.0;
        squared += away * away;
    }
    return grid->deviation * grid->deviation * squared;
}
