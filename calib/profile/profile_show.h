/* profile_show.h: a profile as text: for people, and for programs. */
#ifndef PC_CALIB_PROFILE_PROFILE_SHOW_H
#define PC_CALIB_PROFILE_PROFILE_SHOW_H

#include "calib/profile/profile.h"
#include "engine/error.h"
#include "storage/format.h"

#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

/* TABLE: the device, its versions and ceilings; each fit with its parameters and their standard errors, the errors of
 * cross-validation and the measured range; replays. CSV: a header, and a line a parameter of each fit. JSON: one object
 * with everything but the raw samples. Independent of the locale. PC_ERROR_IO if the stream fails. */
pc_code pc_profile_show(const pc_profile *profile, pc_format format, FILE *stream, pc_error *error);

/* Two profiles beside each other. It says what differs in their devices and versions, and what only one of them has.
 * For each fit that both have, it says what the second predicts over what the first predicts, at a few shapes that both
 * measured, and whether that lies within what the two 95% intervals allow. Then, of each fit of the first, how far off it
 * is of what the second measured itself: so rows that were left out of a fit judge it. */
pc_code pc_profile_compare(const pc_profile *a, const pc_profile *b, pc_format format, FILE *stream, pc_error *error);

#ifdef __cplusplus
}
#endif
#endif
