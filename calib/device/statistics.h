/* statistics.h: private to calib/: what is kept of raw samples beside themselves. */
#ifndef PC_CALIB_DEVICE_STATISTICS_H
#define PC_CALIB_DEVICE_STATISTICS_H

#include "calib/profile/profile.h"
#include "engine/api.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The quantile p (0 .. 1) of `count` > 0 ascending values: linear between the two nearest, at the place p * (count - 1)
 * (definition 7 of Hyndman and Fan 1996, 'Sample Quantiles in Statistical Packages'). */
PC_API double pc_quantile(const double *sorted, int64_t count, double p);

/* Of `count` > 0 finite samples. `room` takes `count` numbers: afterwards the samples, ascending. */
PC_API void pc_statistics_of(const double *samples, int64_t count, double *room, pc_statistics *statistics);

/* The inter-quartile range as a fraction of the median; `room` as above. 0 where the median is 0. */
PC_API double pc_relative_range(const double *samples, int64_t count, double *room);

#ifdef __cplusplus
}
#endif
#endif
