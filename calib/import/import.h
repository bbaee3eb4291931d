/* import.h: others' measurements into a profile: what nccl-tests print, and tables of kernel times. */
#ifndef PC_CALIB_IMPORT_IMPORT_H
#define PC_CALIB_IMPORT_IMPORT_H

#include "calib/profile/profile.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What the user adds where the file does not say. Zero and NULL: nothing. */
typedef struct pc_import_options {
    const char *collective; /* of nccl-tests output that does not name its program */
    const char *link;
    int ranks, nodes;
    const char *device; /* its name; of a table with rows of several devices the one whose rows are taken */
} pc_import_options;

/* PC_ERROR_INPUT if the collective or the link is none that profiles know; in any spelling. */
pc_code pc_import_check_options(const pc_import_options *options, pc_error *error);

/* Adds what the file holds to the profile, and the file's name to its origin; names the device where the file or the
 * user does. Rows that a table itself calls suspect are left out, and counted in the origin. The form is told by the
 * content. It is plain output of nccl-tests (all_reduce_perf and its like), a CSV of kernel times, or a CSV of transfer
 * times. The columns of the first CSV are op or kernel, m, n, k and time_us, or names like them; of the second
 * size_bytes, time_us and more. docs/calibration.md has them. PC_ERROR_INPUT: file:line: what, and what was expected;
 * the profile stays as it was. */
pc_code pc_profile_import(pc_profile *profile, const char *path, const pc_import_options *options, pc_error *error);

/* Adds what each of the files holds, in their order: one of these forms, or a profile, whose fits are left. What a
 * profile says of its device counts more than what tables say; of several profiles the first one stands. All have to be
 * of one device, unless options->device says what they are of. PC_ERROR_INPUT: the profile has what came before. */
pc_code pc_profile_import_all(pc_profile *profile, const char *const *paths, int count,
                              const pc_import_options *options, pc_error *error);

#ifdef __cplusplus
}
#endif
#endif
