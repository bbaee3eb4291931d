/* log_grid.h: what a formula leaves of thousands of points, smoothed onto a few hundred nodes: a table over the
 * logarithms of sizes, between whose nodes it is linear along each axis. Compact, deterministic, and asked in tens of
 * nanoseconds.
 *
 * The values minimise robust squares of what they leave of the residuals, plus `smoothing` times squares of the second
 * differences along each axis, plus a little of the values themselves (a Gaussian Markov random field; Rue and Held
 * 2005). So a node that no point is near takes what its neighbours say. How smooth is chosen by cross-validation.
 */
#ifndef PC_CALIB_FIT_LOG_GRID_H
#define PC_CALIB_FIT_LOG_GRID_H

#include "engine/error.h"

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { PC_GRID_AXES = 5, PC_GRID_NODES = 12, PC_GRID_VALUES = 4096 };

typedef struct pc_log_grid {
    int32_t axes;                              /* 0: there is no grid */
    int32_t axis[PC_GRID_AXES];                /* which dimension of x */
    int32_t nodes[PC_GRID_AXES];               /* at least 1; their product at most PC_GRID_VALUES */
    double place[PC_GRID_AXES][PC_GRID_NODES]; /* log x of the nodes, rising */
    double *value;                             /* of each node, the last axis fastest; of log(seconds). Owned */
    double deviation;                          /* of the values around zero */
} pc_log_grid;

void pc_log_grid_free(pc_log_grid *grid); /* zeroes it */

/* How many values: the product of the nodes; 0 of no grid. */
int64_t pc_log_grid_count(const pc_log_grid *grid);

/* Whether its values are numbers that times stay times with: within 30 (13 powers of ten), where residuals are within a
 * few tenths. Of a grid that was read. */
bool pc_log_grid_is_sound(const pc_log_grid *grid);

/* What it adds to log(seconds) at the point; outside of the nodes what it is at their edge. 0 of no grid. Pure. */
double pc_log_grid_at(const pc_log_grid *grid, const double *point);

/* Between which nodes of an axis it lies, *below and the next one, and how far towards that: 0 to 1. */
double pc_log_grid_locate(const pc_log_grid *grid, int32_t axis, double log_x, int32_t *below);

/* Of that value: nothing within the nodes, where the scatter of one measurement has it; outside it grows with the
 * distance by which the point lies outside, as the values scatter between nodes. */
double pc_log_grid_variance(const pc_log_grid *grid, const double *point);

/* Both at once: the logarithms are most of what they cost. */
double pc_log_grid_ask(const pc_log_grid *grid, const double *point, double *variance);

/* What is asked for: the axes (dimensions of x), and how many nodes each may have; they stand where points do. */
typedef struct pc_grid_plan {
    int32_t axes, axis[PC_GRID_AXES], nodes[PC_GRID_AXES];
} pc_grid_plan;

/* Of `count` points with `dimensions` numbers each, and their residuals of log(seconds), no grid where it would not
 * foretell points left out better by a twentieth. PC_ERROR_NO_MEMORY. left[count], where not NULL, takes the residuals
 * that cross-validation leaves: of each point by a grid that has not seen it. */
pc_code pc_log_grid_fit(const pc_grid_plan *plan, const double *x, int dimensions, const double *residual,
                        int64_t count, double *left, pc_log_grid *grid, pc_error *error);

#ifdef __cplusplus
}
#endif
#endif
