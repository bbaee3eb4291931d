/* statistics.h: private to calib/: what is kept of raw samples beside themselves. */
#ifndef PC_CALIB_DEVICE_STATISTICS_H
#define PC_CALIB_DEVICE_STATISTICS_H

#include "calib/profile/profile.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Of `count` > 0 finite samples. `room` takes `count` numbers: afterwards the samples, ascending. */
void pc_statistics_of(const double *samples, int64_t count, double *room, pc_statistics *statistics);

/* The inter-quartile range as a fraction of the median; `room` as above. 0 where the median is 0. */
double pc_relative_range(const double *samples, int64_t count, double *room);

#ifdef __cplusplus
}
#endif
#endif
