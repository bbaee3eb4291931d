/* profile_text.h: a profile's fits as text, without the measurements that they were made of: how profiles of the
 * library are written, read and shipped (docs/profile-format.md, "As text").
 *
 * What answers survives: device, keys, parameters with their covariance, ranges, and the points that a residual surface
 * stands on, to six or seven digits. Measurements, samples, replays and tunings do not.
 */
#ifndef PC_CALIB_PROFILE_PROFILE_TEXT_H
#define PC_CALIB_PROFILE_PROFILE_TEXT_H

#include "calib/profile/profile.h"
#include "engine/error.h"
#include "storage/text.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Adds the device and all fits to `text`; same profile, same bytes. PC_ERROR_NO_MEMORY. */
pc_code pc_profile_text_write(const pc_profile *profile, pc_text *text, pc_error *error);

/* The way back: a profile that is_shipped, without measurements, for pc_profile_free. `name` is what messages call the
 * text, "b200.csv". PC_ERROR_INPUT with name, line and key where the text is no such profile, of a newer version, cut
 * short, or has a fit that foretells nothing. */
pc_code pc_profile_text_read(const char *text, const char *name, pc_profile *profile, pc_error *error);

#ifdef __cplusplus
}
#endif
#endif
