#include "calib/profile/profile_json.h"

#include "calib/profile/profile_tables.h"

#include <inttypes.h>
#include <math.h>

void pc_json_real(pc_text *text, double value) {
    char number[PC_NUMBER_SIZE];
    if (isfinite(value)) pc_number_format(value, number);
    pc_text_printf(text, "%s", isfinite(value) ? number : "null");
}

static void add_field(pc_text *text, const pc_field *field, const void *row) {
    pc_field_value value = pc_field_of(field, row);
    pc_text_add_json(text, field->name);
    pc_text_printf(text, ": ");
    if (value.text)
        pc_text_add_json(text, value.text);
    else if (field->type == PC_FIELD_REAL || field->type == PC_FIELD_ANY)
        pc_json_real(text, value.real);
    else if (field->type == PC_FIELD_FLAG)
        pc_text_printf(text, value.integer ? "true" : "false");
    else
        pc_text_printf(text, "%" PRId64, value.integer);
}

/* "name": value, ... without braces. */
static void add_fields(pc_text *text, const pc_fields *fields, const void *row) {
    for (size_t i = 0; i < fields->count; i++) {
        if (i) pc_text_printf(text, ", ");
        add_field(text, &fields->field[i], row);
    }
}

static void add_rows(pc_text *text, const char *name, const pc_fields *fields, const void *rows, int64_t count) {
    pc_text_printf(text, ",\n  \"%s\": [", name);
    for (int64_t i = 0; i < count; i++) {
        pc_text_printf(text, "%s\n    {", i ? "," : "");
        add_fields(text, fields, (const char *)rows + (size_t)i * fields->row_size);
        pc_text_printf(text, "}");
    }
    pc_text_printf(text, "%s]", count ? "\n  " : "");
}

/* ---- fits ---- */

static void add_reals(pc_text *text, const char *name, const double *values, int64_t count, int64_t stride) {
    pc_text_printf(text, ", \"%s\": [", name);
    for (int64_t i = 0; i < count; i++) {
        if (i) pc_text_printf(text, ", ");
        pc_json_real(text, values[i * stride]);
    }
    pc_text_printf(text, "]");
}

static void add_parameters(pc_text *text, const pc_fit *fit) {
    pc_text_printf(text, ", \"parameters\": [");
    for (int i = 0; i < fit->parameter_count; i++) {
        pc_text_printf(text, "%s{\"name\": ", i ? ", " : "");
        pc_text_add_json(text, fit->parameter_name[i]);
        pc_text_printf(text, ", \"value\": ");
        pc_json_real(text, fit->parameter[i]);
        pc_text_printf(text, ", \"standard_error\": ");
        pc_json_real(text, pc_fit_standard_error(fit, i));
        pc_text_printf(text, ", \"unit\": ");
        pc_text_add_json(text, fit->parameter_unit[i]);
        pc_text_printf(text, "}");
    }
    pc_text_printf(text, "]");
    add_reals(text, "covariance", fit->covariance, (int64_t)fit->parameter_count * fit->parameter_count, 1);
}

static void add_fit(pc_text *text, const pc_fit *fit) {
    char name[128];
    int dimensions;
    const char *const *names = pc_fit_form_dimensions(fit->key.form, &dimensions);
    pc_fit_name(&fit->key, name, sizeof name);
    pc_text_printf(text, "{\"name\": ");
    pc_text_add_json(text, name);
    pc_text_printf(text, ", \"points\": %" PRId64 ", ", fit->count);
    add_fields(text, &pc_profile_fit_fields, fit);
    add_parameters(text, fit);
    add_reals(text, "least", fit->least, dimensions, 1);
    add_reals(text, "most", fit->most, dimensions, 1);
    for (int d = 0; d < dimensions; d++) add_reals(text, names[d], fit->x + d, fit->count, dimensions);
    add_reals(text, "seconds", fit->seconds, fit->count, 1);
    add_reals(text, "residual", fit->residual, fit->count, 1);
    pc_text_printf(text, "}");
}

static void add_fits(pc_text *text, const pc_profile *profile) {
    pc_text_printf(text, ",\n  \"fits\": [");
    for (int64_t i = 0; i < profile->fit_count; i++) {
        pc_text_printf(text, "%s\n    ", i ? "," : "");
        add_fit(text, &profile->fit[i]);
    }
    pc_text_printf(text, "%s]", profile->fit_count ? "\n  " : "");
}

/* ---- replays ---- */

static void add_replay(pc_text *text, const pc_replay_report *x) {
    pc_text_printf(text, "{");
    add_fields(text, &pc_profile_replay_fields, x);
    pc_text_printf(text, ", \"pass\": [");
    for (int i = 0; i < x->pass_kind_count; i++) {
        pc_text_printf(text, "%s{", i ? ", " : "");
        add_fields(text, &pc_profile_pass_fields, &x->pass[i]);
        pc_text_printf(text, "}");
    }
    pc_text_printf(text, "]}");
}

void pc_profile_add_json(pc_text *text, const pc_profile *profile) {
    char hash[17];
    pc_profile_hash(profile, hash);
    pc_text_printf(text, "{\n  \"hash\": \"%s\",\n  \"device\": {", hash);
    add_fields(text, &pc_profile_device_fields, &profile->device);
    pc_text_printf(text, "}");
    add_fits(text, profile);
    add_rows(text, "kernels", &pc_profile_kernel_fields, profile->kernel, profile->kernel_count);
    add_rows(text, "transfers", &pc_profile_transfer_fields, profile->transfer, profile->transfer_count);
    pc_text_printf(text, ",\n  \"replays\": [");
    for (int64_t i = 0; i < profile->replay_count; i++) {
        pc_text_printf(text, "%s\n    ", i ? "," : "");
        add_replay(text, &profile->replay[i]);
    }
    pc_text_printf(text, "%s]\n}\n", profile->replay_count ? "\n  " : "");
}
