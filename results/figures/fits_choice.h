/* fits_choice.h: private to results/: the fits of a profile that a picture is of. */
#ifndef PC_RESULTS_FITS_CHOICE_H
#define PC_RESULTS_FITS_CHOICE_H

#include "calib/profile/profile.h"

/* Those whose name has `part` in it (NULL: all), the first `room`; one that is called so exactly stands alone.
 * PC_ERROR_INPUT where there is none, with the names that there are. */
pc_code pc_fits_choose(const pc_profile *profile, const char *part, const pc_fit **fit, int room, int *count,
                       pc_error *error);

#endif
