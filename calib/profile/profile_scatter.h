/* profile_scatter.h: how the times of a profile's kernels scatter, as a distribution of factors for what takes them. */
#ifndef PC_CALIB_PROFILE_PROFILE_SCATTER_H
#define PC_CALIB_PROFILE_PROFILE_SCATTER_H

#include "calib/profile/profile.h"
#include "engine/api.h"
#include "engine/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* At probabilities 0, 0.001, ... 1. */
enum { PC_SCATTER_QUANTILES = 1001 };

/* Of all raw samples, each over the median of its point (a kernel on a shape), every point with the same weight: the
 * quantiles, linear between samples, over the distribution's mean, which is 1 then. Outliers stay in: the first and the
 * last quantile are such that the mean of the thousandth at their end is that of the samples there, so that one sample
 * in a hundred thousand does not count as one in two thousand; the greatest itself may lie beyond. Points without
 * samples, such as imported ones, and those that only watch for drift (PC_PROFILE_SENTINEL) are left out.
 * PC_ERROR_INPUT where none has two samples, and where half of a point's are not above zero. */
PC_API pc_code pc_profile_scatter(const pc_profile *profile, double quantiles[PC_SCATTER_QUANTILES], pc_error *error);

#ifdef __cplusplus
}
#endif
#endif
