#include "calib/import/import.h"

#include "calib/import/import_private.h"
#include "engine/alloc.h"
#include "engine/names.h"
#include "storage/text.h"
#include "storage/text_file.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

/* nccl-tests begin with comments that no table has. */
static bool is_of_nccl_tests(const char *content) {
    return strstr(content, "# nThread") || (strstr(content, "#wrong") && strstr(content, "algbw")) ||
           (strstr(content, "algbw") && strstr(content, "(GB/s)"));
}

/* ---- into the profile ---- */

static const char *last_part(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static pc_code check_device(const pc_import *import, const pc_profile *profile, pc_error *error) {
    const char *name = import->options->device ? import->options->device : import->device;
    const char *before = profile->device.name;
    if (name[0] == '\0' || before[0] == '\0' || import->options->device || pc_import_same(name, before)) return PC_OK;
    return pc_error_set_file(
        error, PC_ERROR_INPUT, import->text.path,
        "measured on '%s'; expected '%s', of which the profile is, or one name for both (--device)", name, before);
}

static void note_device(const pc_import *import, pc_profile *profile) {
    pc_profile_device *device = &profile->device;
    const char *name = import->options->device ? import->options->device : import->device;
    const char *origin = last_part(import->text.path);
    size_t used = strlen(device->origin);
    if (name[0] != '\0') snprintf(device->name, sizeof device->name, "%s", name);
    snprintf(device->origin + used, sizeof device->origin - used, "%s%s", used > 0 ? ", " : "", origin);
}

/* " (2 too fast, 14 repeated rows left out)" behind the files' names, which are cut where the room is short. */
static void note_left_out(const pc_import_report *report, pc_profile_device *device) {
    static const char *const words[PC_IMPORT_REASONS] = {"too fast", "without a time", "repeated", "suspect"};
    char text[160] = "";
    size_t used = 0;
    for (int i = 0; i < PC_IMPORT_REASONS; i++)
        if (report->left_out[i].count > 0)
            used += (size_t)snprintf(text + used, sizeof text - used, "%s%lld %s", used ? ", " : " (",
                                     (long long)report->left_out[i].count, words[i]);
    if (used == 0) return;
    used += (size_t)snprintf(text + used, sizeof text - used, " rows left out)");
    size_t room = sizeof device->origin - 1 - used, size = strlen(device->origin);
    memcpy(device->origin + (size < room ? size : room), text, used + 1);
}

static const char *hint_of(const char *words, const char *word, char text[PC_NEAREST_TEXT]) {
    pc_nearest nearest = {.word = word};
    pc_nearest_offer_words(&nearest, words);
    return pc_nearest_hint(&nearest, text);
}

pc_code pc_import_check_options(const pc_import_options *options, pc_error *error) {
    char hint[PC_NEAREST_TEXT];
    const char *link = options->link, *collective = options->collective;
    if (collective && !pc_import_collective(collective))
        return pc_error_set(
            error, PC_ERROR_INPUT, "the collective '%.40s'%s; expected " PC_IMPORT_COLLECTIVES, collective,
            hint_of("send_recv|all_reduce|all_gather|reduce_scatter|all_to_all|broadcast", collective, hint));
    if (link && strcmp(pc_import_link(link), "unknown") == 0 && !pc_import_same(link, "unknown"))
        return pc_error_set(error, PC_ERROR_INPUT, "the link '%.40s'%s; expected nvlink, pcie, network or loopback",
                            link, hint_of("nvlink|pcie|network|loopback", link, hint));
    return PC_OK;
}

static pc_code read_content(pc_import *import, const char *content, pc_error *error) {
    pc_code code = is_of_nccl_tests(content) ? pc_import_nccl(import, error) : pc_import_csv(import, error);
    if (code) return code;
    bool has_other = import->options->library || import->options->site; /* another file may have what is asked for */
    if (import->into->kernel_count + import->into->transfer_count > 0 || has_other) return PC_OK;
    return pc_error_set_file(error, PC_ERROR_INPUT, import->text.path,
                             "holds no measurement; expected output of nccl-tests, or a CSV of kernels or transfers");
}

/* The ledger's rows are of what was added; now of the profile that has it. */
static void move_ledger(pc_import_ledger *ledger, int64_t from, const pc_profile *before) {
    for (int64_t i = from; i < ledger->count; i++)
        ledger->row[i].index += ledger->row[i].is_transfer ? before->transfer_count : before->kernel_count;
}

static pc_code import_file(pc_profile *profile, const char *path, const pc_import_options *options,
                           pc_import_ledger *ledger, pc_error *error) {
    char *content = NULL;
    pc_profile added = {0};
    const pc_profile before = *profile;
    int64_t rows = ledger->count;
    pc_number_scope scope = {0};
    pc_code code = pc_text_file_read(path, "output of nccl-tests or a CSV", &content, error);
    if (code) return code;
    pc_import import = {.text = {path, content, 0}, .options = options, .into = &added, .ledger = ledger};
    if (pc_number_scope_enter(&scope)) {
        code = read_content(&import, content, error);
        pc_number_scope_leave(&scope);
    } else {
        code = pc_error_no_memory(error);
    }
    if (!code) code = check_device(&import, profile, error);
    if (!code) code = pc_profile_append(profile, &added, error);
    if (!code) note_device(&import, profile);
    if (!code) move_ledger(ledger, rows, &before);
    pc_profile_free(&added);
    pc_free(content);
    return code;
}

/* As it was before a file was added: what is added stands behind. */
static void take_back(pc_profile *profile, const pc_profile *before) {
    profile->device = before->device;
    profile->kernel_count = before->kernel_count;
    profile->transfer_count = before->transfer_count;
}

pc_code pc_profile_import(pc_profile *profile, const char *path, const pc_import_options *options, pc_error *error) {
    static const pc_import_options nothing = {0};
    pc_import_ledger ledger = {0};
    const pc_profile before = *profile;
    pc_code code = options ? pc_import_check_options(options, error) : PC_OK;
    if (!code) code = import_file(profile, path, options ? options : &nothing, &ledger, error);
    if (!code) code = pc_import_settle(profile, &ledger, error);
    if (code)
        take_back(profile, &before);
    else
        note_left_out(&ledger.report, &profile->device);
    pc_import_ledger_free(&ledger);
    return code;
}

/* ---- profiles among them ---- */

/* Whether the file begins as HDF5 files do. Of a pipe, what is read here would be lost. */
static bool is_hdf5(const char *path) {
    char found[8] = "";
    struct stat status;
    FILE *stream = stat(path, &status) == 0 && S_ISREG(status.st_mode) ? fopen(path, "rb") : NULL;
    if (!stream) return false;
    size_t got = fread(found, 1, sizeof found, stream);
    fclose(stream);
    return got == sizeof found && memcmp(found, "\x89HDF\r\n\x1a\n", sizeof found) == 0;
}

/* What a profile says of its device counts more than what tables say; of several profiles the first one stands. */
static void take_device(pc_profile_device *to, const pc_profile_device *from, bool is_first) {
    pc_profile_device was = *to;
    if (is_first) *to = *from;
    if (!to->name[0]) snprintf(to->name, sizeof to->name, "%s", was.name);
    if (!to->gpu[0]) snprintf(to->gpu, sizeof to->gpu, "%s", from->gpu);
    if (to->processors < 1) to->processors = from->processors;
    to->is_complete = from->is_complete && (is_first || was.is_complete);
    snprintf(to->origin, sizeof to->origin, "%.*s%s%.*s", 120, was.origin, was.origin[0] && from->origin[0] ? ", " : "",
             130, from->origin);
}

static pc_code check_profile(const pc_profile *to, const pc_profile *from, const char *path, pc_error *error) {
    const char *is = to->device.name, *found = from->device.name;
    if (!is[0] || !found[0] || strcasecmp(is, found) == 0) return PC_OK;
    return pc_error_set_file(error, PC_ERROR_INPUT, path,
                             "measured on '%s'; expected '%s', of which the others are, or one name for all (--device)",
                             found, is);
}

static pc_code add_profile(pc_profile *profile, const char *path, const pc_import_options *options, bool is_first,
                           pc_error *error) {
    pc_profile found = {0};
    pc_code code = pc_profile_read(path, &found, error);
    if (!code && !options->device) code = check_profile(profile, &found, path, error);
    if (!code) code = pc_profile_append(profile, &found, error);
    if (!code) take_device(&profile->device, &found.device, is_first);
    pc_profile_free(&found);
    return code;
}

pc_code pc_profile_import_all(pc_profile *profile, const char *const *paths, int count,
                              const pc_import_options *options, pc_import_report *report, pc_error *error) {
    int profiles = 0;
    pc_import_ledger ledger = {0};
    pc_code code = pc_import_check_options(options, error);
    for (int i = 0; i < count && !code; i++)
        code = is_hdf5(paths[i]) ? add_profile(profile, paths[i], options, profiles++ == 0, error)
                                 : import_file(profile, paths[i], options, &ledger, error);
    if (!code) code = pc_import_settle(profile, &ledger, error);
    if (!code) note_left_out(&ledger.report, &profile->device);
    if (report) *report = ledger.report;
    pc_import_ledger_free(&ledger);
    if (profiles == 0) profile->device.is_complete = true;
    return code;
}
