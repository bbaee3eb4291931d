/* profile_example.h: a profile made by hand, for the tests of its file: something of everything. */
#ifndef PC_TESTS_PROFILE_EXAMPLE_H
#define PC_TESTS_PROFILE_EXAMPLE_H

#include "calib/profile/profile.h"

#include <stdbool.h>

/* Three kernels (the last without samples), two transfers, a fit with a surface and one without, one replay. */
pc_code make_profile(pc_profile *profile, pc_error *error);

/* Whether all that a file keeps is the same in both. */
bool profiles_equal(const pc_profile *a, const pc_profile *b);

#endif
