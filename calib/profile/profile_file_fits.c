#include "calib/profile/profile_private.h"

#include "engine/alloc.h"
#include "models/schedule/schedule.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    GROUP_NAME_SIZE = 32,
    GROUPS_MAX = 1 << 16 /* fits, or replays, of a profile; those of a machine are some dozens */
};

/* ---- parameters, as a table of their own ---- */

typedef struct parameter_row {
    char name[sizeof((pc_fit){0}.parameter_name[0])], unit[sizeof((pc_fit){0}.parameter_unit[0])];
    double value, standard_error;
} parameter_row;

#define P(column, member, kind, unit_text, text)                                                                       \
    {                                                                                                                  \
        .name = column, .unit = unit_text, .description = text, .type = PC_FIELD_##kind,                               \
        .place = offsetof(parameter_row, member), .size = sizeof((parameter_row *)NULL)->member, .least = INT64_MIN    \
    }
static const pc_field parameter_field[] = {
    P("parameter_name", name, TEXT, "", "name of the parameter"),
    P("parameter_unit", unit, TEXT, "", "its unit"),
    P("parameter_value", value, REAL, "in parameter_unit", "what was fitted"),
    P("parameter_standard_error", standard_error, ANY, "in parameter_unit", "root of the covariance's diagonal"),
};
static const pc_fields parameter_fields = {parameter_field, sizeof parameter_field / sizeof *parameter_field,
                                           sizeof(parameter_row)};

static void gather_parameters(const pc_fit *fit, parameter_row rows[PC_FIT_PARAMETERS]) {
    memset(rows, 0, PC_FIT_PARAMETERS * sizeof *rows);
    for (int i = 0; i < fit->parameter_count; i++) {
        memcpy(rows[i].name, fit->parameter_name[i], sizeof rows[i].name);
        memcpy(rows[i].unit, fit->parameter_unit[i], sizeof rows[i].unit);
        rows[i].value = fit->parameter[i];
        rows[i].standard_error = pc_fit_standard_error(fit, i);
    }
}

static pc_code write_parameters(hid_t group, const pc_fit *fit, pc_error *error) {
    parameter_row rows[PC_FIT_PARAMETERS];
    gather_parameters(fit, rows);
    pc_code code = pc_fields_write(group, &parameter_fields, rows, fit->parameter_count, error);
    if (code) return code;
    return pc_reals_write(group, "covariance", "of parameter_unit times parameter_unit",
                          "of the parameters, row by row", fit->covariance,
                          (int64_t)fit->parameter_count * fit->parameter_count, error);
}

/* A fit's parameters are what its form has, in that order: the numbers mean nothing else. */
static pc_code refuse_label(const char *name, const char *column, int64_t row, const char *found, const char *expected,
                            pc_error *error) {
    return pc_error_set(error, PC_ERROR_INPUT, "'%s/%s': row %" PRId64 " says '%.40s'; expected '%s'", name, column,
                        row + 1, found, expected);
}

static pc_code check_label(const pc_fit *fit, const char *name, int64_t i, const parameter_row *row, pc_error *error) {
    pc_parameter_label label = pc_fit_label(fit->key.form, (int)i);
    if (strcmp(row->name, label.name) != 0)
        return refuse_label(name, "parameter_name", i, row->name, label.name, error);
    if (strcmp(row->unit, label.unit) != 0)
        return refuse_label(name, "parameter_unit", i, row->unit, label.unit, error);
    return PC_OK;
}

static pc_code take_parameters(const parameter_row *rows, int64_t count, const char *name, pc_fit *fit,
                               pc_error *error) {
    if (count != fit->parameter_count) return pc_fields_refuse(name, "parameter_name", error);
    pc_code code = PC_OK;
    for (int64_t i = 0; i < count && !code; i++) code = check_label(fit, name, i, &rows[i], error);
    for (int64_t i = 0; i < count && !code; i++) {
        memcpy(fit->parameter_name[i], rows[i].name, sizeof rows[i].name);
        memcpy(fit->parameter_unit[i], rows[i].unit, sizeof rows[i].unit);
        fit->parameter[i] = rows[i].value;
    }
    return code;
}

static pc_code read_parameters(hid_t group, const char *name, pc_fit *fit, pc_error *error) {
    void *rows = NULL;
    double *covariance = NULL;
    int64_t count = 0, wanted = (int64_t)fit->parameter_count * fit->parameter_count;
    pc_code code = pc_fields_read(group, name, &parameter_fields, &rows, &count, error);
    if (!code) code = take_parameters(rows, count, name, fit, error);
    pc_free(rows);
    if (!code) code = pc_reals_read(group, name, "covariance", wanted, &covariance, &count, error);
    if (!code) memcpy(fit->covariance, covariance, (size_t)wanted * sizeof *covariance);
    pc_free(covariance);
    return code;
}

/* ---- points ---- */

static pc_code write_dimensions(hid_t group, const pc_fit *fit, pc_error *error) {
    int dimensions;
    const char *const *names = pc_fit_form_dimensions(fit->key.form, &dimensions);
    double *values = pc_alloc((size_t)fit->count, sizeof *values);
    pc_code code = values ? PC_OK : pc_error_no_memory(error);
    for (int d = 0; d < dimensions && !code; d++) {
        char text[48];
        snprintf(text, sizeof text, "%s of the shape", names[d]);
        for (int64_t i = 0; i < fit->count; i++) values[i] = fit->x[i * dimensions + d];
        code = pc_reals_write(group, names[d], dimensions == 1 ? "B" : "1",
                              dimensions == 1 ? "size or bytes moved" : text, values, fit->count, error);
    }
    pc_free(values);
    return code;
}

static pc_code write_points(hid_t group, const pc_fit *fit, pc_error *error) {
    pc_code code = write_dimensions(group, fit, error);
    if (!code)
        code = pc_reals_write(group, "least", "as the dimensions", "smallest measured, a dimension", fit->least,
                              fit->dimensions, error);
    if (!code)
        code = pc_reals_write(group, "most", "as the dimensions", "largest measured, a dimension", fit->most,
                              fit->dimensions, error);
    if (!code) code = pc_reals_write(group, "seconds", "s", "measured", fit->seconds, fit->count, error);
    if (!code)
        code = pc_reals_write(group, "residual", "1", "log(seconds) less log of the fit", fit->residual, fit->count,
                              error);
    if (code || !fit->weight) return code;
    return pc_reals_write(group, "weight", "1", "of the residual surface, a point", fit->weight, fit->count, error);
}

static bool all_positive(const double *values, int64_t count) {
    for (int64_t i = 0; i < count; i++)
        if (!(values[i] > 0.0)) return false;
    return true;
}

static pc_code read_dimensions(hid_t group, const char *name, pc_fit *fit, pc_error *error) {
    int dimensions;
    const char *const *names = pc_fit_form_dimensions(fit->key.form, &dimensions);
    pc_code code = PC_OK;
    for (int d = 0; d < dimensions && !code; d++) {
        double *values = NULL;
        int64_t count = 0;
        code = pc_reals_read(group, name, names[d], d == 0 ? -1 : fit->count, &values, &count, error);
        if (!code && !all_positive(values, count)) code = pc_fields_refuse(name, names[d], error);
        if (!code && d == 0) {
            fit->count = count;
            fit->x = pc_alloc((size_t)count, (size_t)dimensions * sizeof *fit->x);
            if (!fit->x) code = pc_error_no_memory(error);
        }
        for (int64_t i = 0; i < count && !code; i++) fit->x[i * dimensions + d] = values[i];
        pc_free(values);
    }
    return code;
}

/* The edges of what was measured, a number a dimension. */
static pc_code read_edges(hid_t group, const char *name, const char *column, int32_t dimensions, double *edges,
                          pc_error *error) {
    double *values = NULL;
    int64_t count;
    pc_code code = pc_reals_read(group, name, column, dimensions, &values, &count, error);
    if (!code && !all_positive(values, dimensions)) code = pc_fields_refuse(name, column, error);
    if (!code) memcpy(edges, values, (size_t)dimensions * sizeof *values);
    pc_free(values);
    return code;
}

static pc_code read_points(hid_t group, const char *name, pc_fit *fit, pc_error *error) {
    int64_t count;
    pc_code code = read_dimensions(group, name, fit, error);
    if (!code) code = read_edges(group, name, "least", fit->dimensions, fit->least, error);
    if (!code) code = read_edges(group, name, "most", fit->dimensions, fit->most, error);
    if (!code && !pc_profile_has_edges(fit)) code = pc_fields_refuse(name, "least", error);
    if (!code) code = pc_reals_read(group, name, "seconds", fit->count, &fit->seconds, &count, error);
    if (!code && !all_positive(fit->seconds, fit->count)) code = pc_fields_refuse(name, "seconds", error);
    if (!code) code = pc_reals_read(group, name, "residual", fit->count, &fit->residual, &count, error);
    if (code || !pc_h5_has(group, "weight")) return code;
    return pc_reals_read(group, name, "weight", fit->count, &fit->weight, &count, error);
}

/* ---- one fit ---- */

static pc_code write_fit(hid_t group, const pc_fit *fit, pc_error *error) {
    pc_code code = pc_fields_put(group, &pc_profile_fit_fields, fit, error);
    if (!code) code = pc_fields_put(group, &pc_profile_fit_origin_fields, fit, error);
    if (!code) code = write_parameters(group, fit, error);
    if (!code) code = pc_profile_write_grid(group, &fit->grid, error);
    return code ? code : write_points(group, fit, error);
}

static pc_code read_fit(hid_t group, const char *name, pc_fit *fit, pc_error *error) {
    int dimensions;
    pc_code code = pc_fields_get(group, name, &pc_profile_fit_fields, fit, error);
    bool has_origin = !code && H5Aexists(group, "grid_axes") != 0;
    if (has_origin) code = pc_fields_get(group, name, &pc_profile_fit_origin_fields, fit, error);
    if (code) return code;
    pc_fit_form_dimensions(fit->key.form, &dimensions);
    if (fit->dimensions != dimensions) return pc_fields_refuse(name, "dimensions", error);
    if (!pc_fit_has_parameters(fit)) return pc_fields_refuse(name, "parameter_count", error);
    code = read_parameters(group, name, fit, error);
    if (!code) code = pc_profile_read_grid(group, name, fit->dimensions, &fit->grid, error);
    if (!code) code = read_points(group, name, fit, error);
    if (code || pc_fit_foretells(fit)) return code;
    return pc_fields_refuse(name, "parameter_value", error);
}

/* ---- groups of numbered groups: fits/0, fits/1 ... ---- */

typedef pc_code write_one(hid_t group, const pc_profile *profile, int64_t number, pc_error *error);
typedef pc_code read_one(hid_t group, const char *name, pc_profile *profile, pc_error *error);

static pc_code write_numbered(hid_t parent, const pc_profile *profile, int64_t number, write_one *write,
                              pc_error *error) {
    char name[GROUP_NAME_SIZE];
    snprintf(name, sizeof name, "%" PRId64, number);
    hid_t group = pc_h5_group_create(parent, name);
    if (group < 0) return pc_fields_fail(error);
    pc_code code = write(group, profile, number, error);
    H5Gclose(group);
    return code;
}

static pc_code write_groups(hid_t file, const char *name, const pc_profile *profile, int64_t count, write_one *write,
                            pc_error *error) {
    hid_t parent = pc_h5_group_create(file, name);
    if (parent < 0) return pc_fields_fail(error);
    pc_code code = pc_h5_put_integer(parent, "count", count) ? PC_OK : pc_fields_fail(error);
    for (int64_t i = 0; i < count && !code; i++) code = write_numbered(parent, profile, i, write, error);
    H5Gclose(parent);
    return code;
}

static pc_code read_numbered(hid_t parent, const char *parent_name, int64_t number, pc_profile *profile, read_one *read,
                             pc_error *error) {
    char name[GROUP_NAME_SIZE], full[2 * GROUP_NAME_SIZE];
    snprintf(name, sizeof name, "%" PRId64, number);
    snprintf(full, sizeof full, "%s/%s", parent_name, name);
    hid_t group = pc_h5_group_open(parent, name);
    if (group < 0) return pc_fields_refuse(parent_name, name, error);
    pc_code code = read(group, full, profile, error);
    H5Gclose(group);
    return code;
}

static pc_code read_groups(hid_t file, const char *name, pc_profile *profile, read_one *read, pc_error *error) {
    int64_t count;
    hid_t parent = pc_h5_group_open(file, name);
    if (parent < 0) return pc_error_set(error, PC_ERROR_INPUT, "group '%s' is missing or damaged", name);
    pc_code code = pc_h5_get_integer(parent, "count", &count) && count >= 0 && count <= GROUPS_MAX
                       ? PC_OK
                       : pc_fields_refuse(name, "count", error);
    for (int64_t i = 0; !code && i < count; i++) code = read_numbered(parent, name, i, profile, read, error);
    H5Gclose(parent);
    return code;
}

/* ---- fits ---- */

static pc_code write_fit_number(hid_t group, const pc_profile *profile, int64_t number, pc_error *error) {
    return write_fit(group, &profile->fit[number], error);
}

/* In a file many names may lead to one fit: what all of them take together must be within what the file can hold. */
static bool can_hold_points(hid_t group, const pc_profile *profile, const pc_fit *fit) {
    int64_t numbers = fit->count * (fit->dimensions + 3);
    for (int64_t i = 0; i < profile->fit_count; i++)
        numbers += profile->fit[i].count * (profile->fit[i].dimensions + 3);
    return pc_h5_can_hold_rows(group, numbers, sizeof *fit->x);
}

static pc_code read_and_add_fit(hid_t group, const char *name, pc_profile *profile, pc_error *error) {
    pc_fit fit = {0};
    pc_code code = read_fit(group, name, &fit, error);
    if (!code && !can_hold_points(group, profile, &fit)) code = pc_fields_refuse(name, "seconds", error);
    if (!code) code = pc_profile_add_fit(profile, &fit, error);
    pc_fit_free(&fit); /* empty if the profile took it over */
    return code;
}

pc_code pc_profile_write_fits(hid_t file, const pc_profile *profile, pc_error *error) {
    return write_groups(file, "fits", profile, profile->fit_count, write_fit_number, error);
}

pc_code pc_profile_read_fits(hid_t file, pc_profile *profile, pc_error *error) {
    return read_groups(file, "fits", profile, read_and_add_fit, error);
}

/* ---- replays ---- */

static pc_code write_replay_number(hid_t group, const pc_profile *profile, int64_t number, pc_error *error) {
    const pc_replay_report *x = &profile->replay[number];
    pc_code code = pc_fields_put(group, &pc_profile_replay_fields, x, error);
    return code ? code : pc_fields_write(group, &pc_profile_pass_fields, x->pass, x->pass_kind_count, error);
}

static bool is_pass_kind(const char *name) {
    for (int kind = 0; kind < PC_PASS_KINDS; kind++)
        if (strcmp(pc_pass_kind_name((pc_pass_kind)kind), name) == 0) return true;
    return false;
}

static pc_code take_passes(const pc_replay_pass_report *passes, int64_t count, const char *name,
                           pc_replay_report *report, pc_error *error) {
    if (count > PC_REPLAY_PASSES) return pc_fields_refuse(name, "kind", error);
    for (int64_t i = 0; i < count; i++)
        if (!is_pass_kind(passes[i].kind))
            return pc_error_set(error, PC_ERROR_INPUT,
                                "'%s/kind': row %" PRId64 " says '%s'; expected F, B, W, BW or R", name, i + 1,
                                passes[i].kind);
    report->pass_kind_count = (int32_t)count;
    memcpy(report->pass, passes, (size_t)count * sizeof *report->pass);
    return PC_OK;
}

static pc_code read_and_add_replay(hid_t group, const char *name, pc_profile *profile, pc_error *error) {
    pc_replay_report report = {0};
    void *passes = NULL;
    int64_t count;
    pc_code code = pc_fields_get(group, name, &pc_profile_replay_fields, &report, error);
    if (!code) code = pc_fields_read(group, name, &pc_profile_pass_fields, &passes, &count, error);
    if (!code) code = take_passes(passes, count, name, &report, error);
    if (!code) code = pc_profile_add_replay(profile, &report, error);
    pc_free(passes);
    return code;
}

pc_code pc_profile_write_replays(hid_t file, const pc_profile *profile, pc_error *error) {
    return write_groups(file, "replays", profile, profile->replay_count, write_replay_number, error);
}

pc_code pc_profile_read_replays(hid_t file, pc_profile *profile, pc_error *error) {
    return read_groups(file, "replays", profile, read_and_add_replay, error);
}
