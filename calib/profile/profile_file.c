#include "calib/profile/profile_private.h"

#include "engine/alloc.h"
#include "storage/sealed.h"

#include <string.h>

static const char HAS_TUNING[] = "has_tuning"; /* attribute of the file; versions 1 and 2 say it themselves */
static const pc_sealed_kind profile_kind = {"pipecast-profile", "a profile", PC_PROFILE_VERSION};

/* ---- writing ---- */

static pc_code write_device(hid_t file, const pc_profile_device *device, pc_error *error) {
    hid_t group = pc_h5_group_create(file, "device");
    if (group < 0) return pc_fields_fail(error);
    pc_code code = pc_fields_put(group, &pc_profile_device_fields, device, error);
    H5Gclose(group);
    return code;
}

static pc_code write_samples(hid_t file, const pc_profile *profile, pc_error *error) {
    hid_t group = pc_h5_group_create(file, "samples");
    if (group < 0) return pc_fields_fail(error);
    pc_code code = pc_reals_write(group, "seconds", "s", "raw samples of kernels and transfers, in their order",
                                  profile->sample, profile->sample_count, error);
    H5Gclose(group);
    return code;
}

/* Nothing where there is none: the file is that of a profile without. */
static pc_code write_tuning(hid_t file, const pc_tuning *tuning, pc_error *error) {
    if (!tuning->is_there) return PC_OK;
    hid_t group = pc_h5_group_create(file, "tuning");
    if (group < 0) return pc_fields_fail(error);
    pc_code code = pc_fields_put(group, &pc_profile_tuning_fields, tuning, error);
    if (!code) code = pc_fields_write(group, &pc_profile_tuned_fields, tuning->number, PC_TUNED, error);
    H5Gclose(group);
    return code;
}

static pc_code write_all(hid_t file, const void *content, pc_error *error) {
    const pc_profile *profile = content;
    if (!pc_h5_put_integer(file, HAS_TUNING, profile->tuning.is_there)) return pc_fields_fail(error);
    pc_code code = write_device(file, &profile->device, error);
    if (!code)
        code = pc_fields_write_group(file, "kernels", &pc_profile_kernel_fields, profile->kernel, profile->kernel_count,
                                     error);
    if (!code)
        code = pc_fields_write_group(file, "transfers", &pc_profile_transfer_fields, profile->transfer,
                                     profile->transfer_count, error);
    if (!code) code = write_samples(file, profile, error);
    if (!code) code = pc_profile_write_fits(file, profile, error);
    if (!code) code = pc_profile_write_replays(file, profile, error);
    return code ? code : write_tuning(file, &profile->tuning, error);
}

pc_code pc_profile_write(const pc_profile *profile, const char *path, pc_error *error) {
    return pc_sealed_write(path, &profile_kind, write_all, profile, error);
}

/* ---- reading ---- */

/* The group of that name; -1 with a message where there is none. */
static hid_t open_group(hid_t file, const char *name, pc_error *error) {
    hid_t group = pc_h5_group_open(file, name);
    if (group < 0) pc_error_set(error, PC_ERROR_INPUT, "group '%s' is missing or damaged", name);
    return group;
}

static pc_code read_device(hid_t file, pc_profile_device *device, pc_error *error) {
    hid_t group = open_group(file, "device", error);
    if (group < 0) return PC_ERROR_INPUT;
    pc_code code = pc_fields_get(group, "device", &pc_profile_device_fields, device, error);
    H5Gclose(group);
    return code;
}

static pc_code read_table(hid_t file, const char *name, const pc_fields *fields, void **rows, int64_t *count,
                          pc_error *error) {
    hid_t group = open_group(file, name, error);
    if (group < 0) return PC_ERROR_INPUT;
    pc_code code = pc_fields_read(group, name, fields, rows, count, error);
    H5Gclose(group);
    return code;
}

static pc_code read_samples(hid_t file, pc_profile *profile, pc_error *error) {
    hid_t group = open_group(file, "samples", error);
    if (group < 0) return PC_ERROR_INPUT;
    pc_code code = pc_reals_read(group, "samples", "seconds", -1, &profile->sample, &profile->sample_count, error);
    H5Gclose(group);
    return code;
}

/* Whether a measurement's samples lie among those that there are. */
static bool has_samples(const pc_profile *profile, const pc_statistics *seconds, int64_t first) {
    return first < 0 || (first <= profile->sample_count && seconds->count <= profile->sample_count - first);
}

static pc_code check_samples(const pc_profile *profile, pc_error *error) {
    for (int64_t i = 0; i < profile->kernel_count; i++)
        if (!has_samples(profile, &profile->kernel[i].seconds, profile->kernel[i].first_sample))
            return pc_fields_refuse("kernels", "first_sample", error);
    for (int64_t i = 0; i < profile->transfer_count; i++)
        if (!has_samples(profile, &profile->transfer[i].seconds, profile->transfer[i].first_sample))
            return pc_fields_refuse("transfers", "first_sample", error);
    return PC_OK;
}

/* The numbers are those that this program knows, in its order, each where it may be. */
static pc_code check_tuned(const pc_tuning *tuning, pc_error *error) {
    for (pc_tuned i = 0; i < PC_TUNED; i++) {
        const pc_tuned_rule *rule = pc_tuned_rule_of(i);
        const pc_tuned_number *x = &tuning->number[i];
        if (strcmp(x->name, rule->name) != 0)
            return pc_error_set(error, PC_ERROR_INPUT, "'tuning/name': row %d says '%s'; expected '%s'", (int)i + 1,
                                x->name, rule->name);
        if (!(x->value >= rule->least && x->value <= rule->most))
            return pc_error_set(error, PC_ERROR_INPUT, "'tuning/value': %s is %g; expected %g to %g", rule->name,
                                x->value, rule->least, rule->most);
    }
    return PC_OK;
}

static pc_code read_has_tuning(hid_t file, bool *has, pc_error *error) {
    int64_t version, flag;
    bool is_old = pc_h5_get_integer(file, "format_version", &version) && version <= PC_PROFILE_VERSION_TUNED;
    if (!is_old && !(pc_h5_get_integer(file, HAS_TUNING, &flag) && (flag == 0 || flag == 1)))
        return pc_fields_refuse(NULL, HAS_TUNING, error);
    *has = is_old ? version == PC_PROFILE_VERSION_TUNED : flag == 1;
    return PC_OK;
}

static pc_code read_tuning(hid_t file, pc_tuning *tuning, pc_error *error) {
    pc_tuning made = {.is_there = true};
    bool has = false;
    if (read_has_tuning(file, &has, error)) return PC_ERROR_INPUT;
    if (!has) return PC_OK;
    hid_t group = open_group(file, "tuning", error);
    if (group < 0) return PC_ERROR_INPUT;
    pc_code code = pc_fields_get(group, "tuning", &pc_profile_tuning_fields, &made, error);
    if (!code) code = pc_fields_read_known(group, "tuning", &pc_profile_tuned_fields, made.number, PC_TUNED, error);
    if (!code) code = check_tuned(&made, error);
    if (!code) *tuning = made;
    H5Gclose(group);
    return code;
}

/* Counts are what there is room for, also of what is read half. */
static pc_code read_all(hid_t file, pc_profile *profile, pc_error *error) {
    void *rows = NULL;
    pc_code code = read_device(file, &profile->device, error);
    if (code) return code;
    code = read_table(file, "kernels", &pc_profile_kernel_fields, &rows, &profile->kernel_count, error);
    profile->kernel = rows;
    profile->kernel_room = profile->kernel_count;
    if (code) return code;
    rows = NULL;
    code = read_table(file, "transfers", &pc_profile_transfer_fields, &rows, &profile->transfer_count, error);
    profile->transfer = rows;
    profile->transfer_room = profile->transfer_count;
    if (!code) code = read_samples(file, profile, error);
    profile->sample_room = profile->sample_count;
    if (!code) code = check_samples(profile, error);
    if (!code) code = pc_profile_read_fits(file, profile, error);
    if (!code) code = pc_profile_read_replays(file, profile, error);
    return code ? code : read_tuning(file, &profile->tuning, error);
}

static pc_code read_file(const char *path, pc_profile *profile, pc_error *error) {
    hid_t file = -1;
    pc_code code = pc_sealed_open(path, &profile_kind, &file, error);
    if (code) return code;
    code = read_all(file, profile, error);
    if (code == PC_ERROR_INPUT) pc_error_place(error, path, 0, "");
    H5Fclose(file);
    return code;
}

pc_code pc_profile_read(const char *path, pc_profile *profile, pc_error *error) {
    pc_profile made = {0};
    pc_h5_quiet quiet = pc_h5_quiet_begin();
    pc_code code = read_file(path, &made, error);
    pc_h5_quiet_end(quiet);
    if (code)
        pc_profile_free(&made);
    else
        *profile = made;
    return code;
}
