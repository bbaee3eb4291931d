/* profile_tables.h: private to calib/profile_*.c: what the groups of a profile's file are made of
 * (docs/profile-format.md).
 */
#ifndef PC_CALIB_PROFILE_PROFILE_TABLES_H
#define PC_CALIB_PROFILE_PROFILE_TABLES_H

#include "calib/profile/profile.h"
#include "storage/fields.h"

extern const pc_fields pc_profile_device_fields;   /* of pc_profile_device */
extern const pc_fields pc_profile_kernel_fields;   /* of pc_kernel_measurement */
extern const pc_fields pc_profile_transfer_fields; /* of pc_transfer_measurement */
extern const pc_fields pc_profile_fit_fields;      /* of pc_fit: all but its arrays */
extern const pc_fields pc_profile_replay_fields;   /* of pc_replay_report: all but its passes */
extern const pc_fields pc_profile_pass_fields;     /* of pc_replay_pass_report */

/* The dimensions of a form's x: names and number. */
const char *const *pc_fit_form_dimensions(pc_fit_form form, int *count);

/* "transfer", "gemm"; "cold". */
const char *pc_fit_form_name(pc_fit_form form);
const char *pc_cache_state_name(int32_t cache);

/* The groups of fits and replays: pc_profile.fit and .replay, one group each. */
pc_code pc_profile_write_fits(hid_t file, const pc_profile *profile, pc_error *error);
pc_code pc_profile_read_fits(hid_t file, pc_profile *profile, pc_error *error);
pc_code pc_profile_write_replays(hid_t file, const pc_profile *profile, pc_error *error);
pc_code pc_profile_read_replays(hid_t file, pc_profile *profile, pc_error *error);

#endif
