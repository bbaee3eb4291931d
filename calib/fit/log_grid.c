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

bool pc_log_grid_is_sound(const pc_log_grid *grid) {
    static const double most = 30.0;
    int64_t count = pc_log_grid_count(grid);
    for (int64_t i = 0; i < count; i++)
        if (!(fabs(grid->value[i]) <= most)) return false;
    return true;
}

/* Without branches: shapes come in any order. */
double pc_log_grid_locate(const pc_log_grid *grid, int32_t axis, double log_x, int32_t *below) {
    const double *place = grid->place[axis];
    int32_t last = grid->nodes[axis] - 1, at = 0;
    *below = 0;
    if (last == 0) return 0.0;
    for (int32_t i = 1; i < last; i++) at += log_x >= place[i];
    double part = (log_x - place[at]) / (place[at + 1] - place[at]);
    *below = at;
    part = part > 0.0 ? part : 0.0;
    return part < 1.0 ? part : 1.0;
}

/* The corners around a point, the last axis fastest; of an axis with one node that one twice. How many they are. */
static int take_corners(const pc_log_grid *grid, const int32_t *below, double *corner) {
    int64_t offset[1 << PC_GRID_AXES] = {0}, stride = pc_log_grid_count(grid);
    int count = 1;
    for (int32_t a = 0; a < grid->axes; a++) {
        stride /= grid->nodes[a];
        int64_t step = grid->nodes[a] > 1 ? stride : 0;
        for (int64_t c = count - 1; c >= 0; c--) { /* backwards: each becomes two */
            int64_t low = offset[c] + below[a] * stride;
            offset[2 * c] = low, offset[2 * c + 1] = low + step;
        }
        count *= 2;
    }
    for (int c = 0; c < count; c++) corner[c] = grid->value[offset[c]];
    return count;
}

double pc_log_grid_ask(const pc_log_grid *grid, const double *point, double *variance) {
    int32_t below[PC_GRID_AXES];
    double part[PC_GRID_AXES], corner[1 << PC_GRID_AXES], squared = 0.0;
    *variance = 0.0;
    if (grid->axes == 0) return 0.0;
    for (int32_t a = 0; a < grid->axes; a++) {
        double log_x = log(point[grid->axis[a]]), low = grid->place[a][0], high = grid->place[a][grid->nodes[a] - 1];
        double under = low > log_x ? low - log_x : 0.0, over = log_x > high ? log_x - high : 0.0;
        part[a] = pc_log_grid_locate(grid, a, log_x, &below[a]);
        squared += under * under + over * over;
    }
    int64_t count = take_corners(grid, below, corner);
    for (int32_t a = grid->axes - 1; a >= 0; a--) {
        count /= 2;
        for (int64_t c = 0; c < count; c++) corner[c] = corner[2 * c] + part[a] * (corner[2 * c + 1] - corner[2 * c]);
    }
    *variance = grid->deviation * grid->deviation * squared;
    return corner[0];
}

double pc_log_grid_at(const pc_log_grid *grid, const double *point) {
    double variance;
    return pc_log_grid_ask(grid, point, &variance);
}

double pc_log_grid_variance(const pc_log_grid *grid, const double *point) {
    double variance;
    pc_log_grid_ask(grid, point, &variance);
    return variance;
}
