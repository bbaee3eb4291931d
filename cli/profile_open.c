#include "cli/profile_open.h"

#include "calib/profile/profile_text.h"
#include "cli/cli.h"
#include "scenarios/library.h"
#include "storage/replace.h"
#include "storage/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- opening ---- */

static bool ends_in(const char *text, const char *ending) {
    size_t length = strlen(text), of_ending = strlen(ending);
    return length > of_ending && strcmp(text + length - of_ending, ending) == 0;
}

/* What has no folder and no ending may be meant as a name of the library. */
static void add_names(const char *name, pc_error *error) {
    char names[512];
    size_t used = 0;
    int count;
    const pc_library_file *files = pc_library_files(PC_LIBRARY_PROFILES, &count);
    if (strchr(name, '/') || ends_in(name, ".h5")) return;
    for (int i = 0; i < count && used < sizeof names; i++)
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", i ? ", " : "", files[i].name);
    pc_error_note(error, "profiles of the library are %s", names);
}

pc_code profile_open(const char *name, pc_profile *profile, pc_error *error) {
    const pc_library_file *file = pc_library_find(PC_LIBRARY_PROFILES, name);
    if (file) return pc_profile_text_read(file->text, name, profile, error);
    pc_code code = pc_profile_read(name, profile, error);
    if (code == PC_ERROR_INPUT) add_names(name, error);
    return code;
}

/* ---- saving ---- */

bool profile_is_text(const char *path) {
    return ends_in(path, ".csv");
}

pc_code profile_save(const pc_profile *profile, const char *path, pc_error *error) {
    if (!profile_is_text(path)) return pc_profile_write(profile, path, error);
    pc_text text = {0};
    pc_code code = pc_profile_text_write(profile, &text, error);
    if (!code) code = pc_replacement_put(path, text.data, text.size, error);
    pc_text_free(&text);
    return code;
}

/* ---- listing ---- */

static pc_code list_profile(list_json *json, const pc_library_file *file, pc_error *error) {
    pc_profile profile;
    pc_code code = pc_profile_text_read(file->text, file->name, &profile, error);
    if (code) return code;
    if (json) {
        list_json_next(json);
        list_json_text(json, "name", file->name);
        list_json_integer(json, "fits", profile.fit_count);
        list_json_integer(json, "bytes", (int64_t)strlen(file->text));
        list_json_text(json, "from", profile.device.origin);
    } else {
        printf("%-10s  %4" PRId64 "  %4zu  %s\n", file->name, profile.fit_count, (strlen(file->text) + 999) / 1000,
               profile.device.origin);
    }
    pc_profile_free(&profile);
    return PC_OK;
}

int list_profiles(list_json *json) {
    int count;
    pc_error error = {0};
    pc_code code = PC_OK;
    const pc_library_file *files = pc_library_files(PC_LIBRARY_PROFILES, &count);
    if (!json) printf("%-10s  %4s  %4s  from\n", "name", "fits", "kB");
    for (int i = 0; i < count && !code; i++) code = list_profile(json, &files[i], &error);
    if (code && json) pc_text_free(&json->text);
    if (code) return report(&error);
    return json ? list_json_end(json) : finish_output(EXIT_DONE);
}
