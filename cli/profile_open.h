/* profile_open.h: profiles as commands name them: files, or those of the library. */
#ifndef PC_CLI_PROFILE_OPEN_H
#define PC_CLI_PROFILE_OPEN_H

#include "calib/profile/profile.h"
#include "cli/list_json.h"
#include "engine/error.h"

/* The library's profile of that name, otherwise the file; for pc_profile_free. PC_ERROR_INPUT as the file's reader has
 * it, with the names of the library where `name` could have been one. */
pc_code profile_open(const char *name, pc_profile *profile, pc_error *error);

/* Whether it names a profile as text, "b200.csv". */
bool profile_is_text(const char *path);

/* The file, replaced at once or left as it was: HDF5, or as text the fits alone. */
pc_code profile_save(const pc_profile *profile, const char *path, pc_error *error);

/* `pipecast list profiles`, a table where `json` is NULL; an exit code. */
int list_profiles(list_json *json);

#endif
