/* fit_groups.h: private to calib/fit/: products of several groups of rows, each with a matrix of its own, as one kernel
 * or a loop of kernels computes them: what grouped products and whole expert layers share.
 */
#ifndef PC_CALIB_FIT_FIT_GROUPS_H
#define PC_CALIB_FIT_FIT_GROUPS_H

#include "calib/fit/fit_private.h"

/* `groups` products of m x k by k x n. */
typedef struct pc_groups {
    double groups, m, n, k;
    double processors;
    double bytes; /* read and written by all groups */
} pc_groups;

/* The first three parameters of both forms, in this order: FLOP/s, k, bytes/s. */
enum { PC_GROUPS_RATE, PC_GROUPS_RAMP, PC_GROUPS_MEMORY, PC_GROUPS_PARAMETERS };

/* The root of the sum of squares of two times. One is that of whole waves of tiles over all groups, each with `ramp`
 * more steps of k; the other that of the bytes. The root lies between "all overlaps" (the longer) and "nothing does"
 * (the sum): while one group's matrix is loaded another one's tiles are computed, but not at all times. It fits the
 * grouped products of one B200 better than either (docs/calibration.md). `gradient` takes three derivatives, or is
 * NULL. */
double pc_groups_seconds(const pc_groups *shape, const double *parameter, double *gradient);

/* What a form asks for: its function of `parameters` parameters, and where to start. */
typedef struct pc_groups_problem {
    pc_point_function seconds_at;
    const void *self;
    int parameters;
    const double *start;
    bool is_near; /* `start` is a fit of most of the points: no other start is tried */
} pc_groups_problem;

/* Sets parameters, covariance, residual and residual_deviation of the fit. PC_ERROR_INPUT if there are fewer than two
 * shapes for each parameter, no processors, or if points scatter so far around every formula (a factor of 4) that they
 * are not one kernel's. */
pc_code pc_groups_fit(pc_fit *fit, const pc_groups_problem *problem, pc_error *error);

/* Bytes of an element of a type, by its name in profiles. */
double pc_groups_weight_bytes(const char *dtype);     /* of weights, their scales in it */
double pc_groups_activation_bytes(const char *dtype); /* of what is multiplied with them */

#endif
