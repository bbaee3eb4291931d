#include "cli/profile_tune.h"

#include "cli/cli.h"
#include "cli/version.h"

#include "storage/replace.h"
#include "storage/text.h"
#include "sweep/tune.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

/* ---- what is asked ---- */

bool profile_tune_take_by(profile_tune *tune, const char *columns) {
    char *rest = NULL;
    if (tune->by_count > 0 || strlen(columns) >= sizeof tune->by_text) {
        report_usage("profile tune: --by: given twice or too long; expected COLUMN,... once");
        return false;
    }
    snprintf(tune->by_text, sizeof tune->by_text, "%s", columns);
    for (char *name = strtok_r(tune->by_text, ",", &rest); name; name = strtok_r(NULL, ",", &rest)) {
        if (tune->by_count == PROFILE_TUNE_BY) {
            report_usage("profile tune: --by: more than %d columns; expected fewer", PROFILE_TUNE_BY);
            return false;
        }
        tune->by[tune->by_count++] = name;
    }
    return true;
}

static bool take_parameter(const char *name, size_t length, bool is_wanted[PC_TUNED]) {
    for (pc_tuned i = 0; i < PC_TUNED; i++) {
        const char *known = pc_tuned_rule_of(i)->name;
        if (strlen(known) != length || strncmp(known, name, length) != 0) continue;
        is_wanted[i] = true;
        return true;
    }
    return false;
}

static pc_code take_parameters(const char *names, bool is_wanted[PC_TUNED], pc_error *error) {
    for (pc_tuned i = 0; i < PC_TUNED; i++) is_wanted[i] = !names;
    for (const char *name = names; name; name++) {
        size_t length = strcspn(name, ",");
        if (!take_parameter(name, length, is_wanted))
            return pc_error_refuse(error, "profile tune", 0, "--parameters",
                                   "'%.*s' is none; expected some of gemm,attention,memory,launch,network,overlap,"
                                   "overhead",
                                   (int)length, name);
        name += length;
        if (*name == '\0') break;
    }
    return PC_OK;
}

/* ---- files ---- */

/* "tuned.h5", or of a group of --by "tuned-nemo.h5": what is no letter, digit or dot becomes a dash. */
static void write_path(const profile_tune *tune, const pc_tuned_group *group, pc_text *path) {
    const char *dot = strrchr(tune->output, '.'), *slash = strrchr(tune->output, '/');
    size_t stem = dot && (!slash || dot > slash) ? (size_t)(dot - tune->output) : strlen(tune->output);
    pc_text_add(path, tune->output, stem);
    if (tune->by_count > 0) pc_text_add(path, "-", 1);
    for (const char *at = group->value; *at && tune->by_count > 0; at++) {
        bool is_plain = isalnum((unsigned char)*at) || *at == '.';
        if (is_plain || path->data[path->size - 1] != '-') pc_text_add(path, is_plain ? at : "-", 1);
    }
    pc_text_printf(path, "%s", tune->output + stem);
}

static pc_code check_free(const char *path, pc_error *error) {
    struct stat status;
    if (lstat(path, &status) == 0)
        return pc_error_refuse(error, path, 0, "", "is there already; expected the name of a new file");
    return pc_replacement_probe(path, error);
}

typedef pc_code path_action(const char *path, const pc_tuned_group *group, pc_error *error);

static pc_code check_group(const char *path, const pc_tuned_group *group, pc_error *error) {
    (void)group;
    return check_free(path, error);
}

static pc_code write_group(const char *path, const pc_tuned_group *group, pc_error *error) {
    return pc_profile_write(&group->profile, path, error);
}

static pc_code say_group(const char *path, const pc_tuned_group *group, pc_error *error) {
    (void)error;
    report_usage("%s: tuned to %" PRId64 " runs", path, group->profile.tuning.rows);
    return PC_OK;
}

/* Does it to the file of every group that has one. */
static pc_code for_files(const profile_tune *tune, const pc_tune_result *result, path_action *act, pc_error *error) {
    pc_code code = PC_OK;
    for (int64_t i = 0; i < result->count && tune->output && !code; i++) {
        const pc_tuned_group *group = &result->groups[i];
        pc_text path = {0};
        if (!group->profile.tuning.is_there) continue;
        write_path(tune, group, &path);
        code = path.failed ? pc_error_no_memory(error) : act(path.data, group, error);
        pc_text_free(&path);
    }
    return code;
}

/* ---- print ---- */

static void add_left(pc_text *text, const pc_tuned_group *group) {
    const char *between = "  left out: ";
    for (int why = 0; why < PC_TUNE_LEFT; why++) {
        if (group->left[why] == 0) continue;
        pc_text_printf(text, "%s%" PRId64 " %s", between, group->left[why], pc_tune_left_name((pc_tune_left)why));
        between = ", ";
    }
    if (between[0] == ',') pc_text_add(text, "\n", 1);
}

static void add_table(pc_text *text, const pc_tune_result *result) {
    for (int64_t i = 0; i < result->count; i++) {
        const pc_tuned_group *group = &result->groups[i];
        if (i) pc_text_add(text, "\n", 1);
        if (group->only[0]) {
            pc_text_add_line(text, group->only, sizeof group->only);
            pc_text_add(text, "\n", 1);
        }
        if (group->profile.tuning.is_there)
            pc_tuning_add_table(text, &group->profile.tuning);
        else
            pc_text_printf(text, "  %" PRId64 " runs to fit to: too few\n", group->rows);
        add_left(text, group);
    }
}

static void add_json(pc_text *text, const pc_tune_result *result) {
    pc_text_printf(text, "[");
    for (int64_t i = 0; i < result->count; i++) {
        const pc_tuned_group *group = &result->groups[i];
        pc_text_printf(text, "%s\n  {\"only\": ", i ? "," : "");
        pc_text_add_json(text, group->only);
        pc_text_printf(text, ", \"rows\": %" PRId64 ", \"left_out\": {", group->rows);
        for (int why = 0; why < PC_TUNE_LEFT; why++)
            pc_text_printf(text, "%s\"%s\": %" PRId64, why ? ", " : "", pc_tune_left_name((pc_tune_left)why),
                           group->left[why]);
        pc_text_printf(text, "}, \"tuning\": ");
        if (group->profile.tuning.is_there)
            pc_tuning_add_json(text, &group->profile.tuning);
        else
            pc_text_printf(text, "null");
        pc_text_printf(text, "}");
    }
    pc_text_printf(text, "\n]\n");
}

static void add_csv(pc_text *text, const pc_tune_result *result) {
    pc_text_printf(text, PC_PROFILE_CSV_HEADER);
    for (int64_t i = 0; i < result->count; i++) {
        const pc_tuned_group *group = &result->groups[i];
        if (group->profile.tuning.is_there)
            pc_tuning_add_csv(text, group->value[0] ? group->value : "tuning", &group->profile.tuning);
    }
}

static pc_code print(const profile_tune *tune, const pc_tune_result *result, pc_error *error) {
    pc_number_scope scope = {0};
    pc_text text = {0};
    if (!pc_number_scope_enter(&scope)) return pc_error_no_memory(error);
    if (tune->format == PC_FORMAT_JSON)
        add_json(&text, result);
    else if (tune->format == PC_FORMAT_CSV)
        add_csv(&text, result);
    else
        add_table(&text, result);
    pc_number_scope_leave(&scope);
    pc_code code = text.failed ? pc_error_no_memory(error) : PC_OK;
    if (!code && fwrite(text.data, 1, text.size, stdout) != text.size)
        code = pc_error_file(error, "standard output", errno, "room for the results");
    pc_text_free(&text);
    return code;
}

/* ---- all of it ---- */

static void say_bad(void *context, const pc_error *error) {
    profile_tune *tune = context;
    tune->any_bad = true;
    report(error);
}

static pc_code fit(profile_tune *tune, const pc_measured *measured, pc_tune_result *result, pc_error *error) {
    pc_tune_request request = {.score = {.measured = measured,
                                         .sets = tune->sets.list,
                                         .set_count = tune->sets.count,
                                         .allows_outside = tune->allows_outside,
                                         .jobs = (int)tune->jobs},
                               .base = tune->base,
                               .version = PC_VERSION " " PC_COMMIT,
                               .by = tune->by,
                               .by_count = tune->by_count};
    pc_score_sink sink = {.context = tune, .say = say_bad, .warn = tune->is_quiet ? NULL : say_warning};
    pc_code code = take_parameters(tune->parameters, request.is_wanted, error);
    return code ? code : pc_tune_run(&request, &sink, result, error);
}

int profile_tune_answer(profile_tune *tune) {
    pc_error error = {0};
    pc_measured measured = {0};
    pc_tune_result result = {0};
    pc_code code = tune->output && tune->by_count == 0 ? check_free(tune->output, &error) : PC_OK;
    if (!code) code = pc_measured_read(tune->path, say_bad, tune, &measured, &error);
    if (!code) code = fit(tune, &measured, &result, &error);
    if (!code) code = for_files(tune, &result, check_group, &error);
    if (!code) code = for_files(tune, &result, write_group, &error);
    if (!code) code = print(tune, &result, &error);
    if (!code) for_files(tune, &result, say_group, &error);
    pc_tune_free(&result);
    pc_measured_free(&measured);
    if (code) return report(&error);
    return finish_output(tune->any_bad ? EXIT_DID_NOT_FIT : EXIT_DONE);
}
