/* calibrate_print.h: what `pipecast calibrate` says of a profile. */
#ifndef PC_CLI_CALIBRATE_PRINT_H
#define PC_CLI_CALIBRATE_PRINT_H

#include "calib/profile/profile.h"

/* The device, its ceilings, and a line a fit, on standard output. */
void calibrate_print(const pc_profile *profile);

/* The name in the library of the GPU that the profile's device is, by what its driver calls it; "" where it is none of
 * them. Static storage. */
const char *calibrate_gpu(const pc_profile *profile);

#endif
