/* Profiles as text, written: a line a value, "key,value" or "key,number,number". */
#include "calib/profile/profile_text.h"

#include "calib/profile/profile_private.h"

#include <math.h>
#include <string.h>

/* Whether the value is what a reader starts from, so that no line says it. */
static bool is_default(const pc_field *field, const void *row) {
    pc_field_value value = pc_field_of(field, row);
    if (pc_field_is_text(field)) return value.text[0] == '\0';
    return pc_field_is_real(field) ? value.real == 0.0 : value.integer == 0;
}

static void add_number(pc_text *text, double number, int digits) {
    pc_text_printf(text, ",%.*g", digits, number);
}

/* A line's end among the characters, as names of files may have it, would end the value. */
static void add_words(pc_text *text, const char *words) {
    pc_text_add(text, ",", 1);
    for (; *words; words++) pc_text_printf(text, "%c", *words == '\n' || *words == '\r' ? ' ' : *words);
}

static void add_value(pc_text *text, const pc_field *field, const void *row) {
    pc_field_value value = pc_field_of(field, row);
    pc_text_printf(text, "%s", field->name);
    if (pc_field_is_text(field))
        add_words(text, value.text);
    else if (!pc_field_is_real(field))
        pc_text_printf(text, ",%lld", (long long)value.integer);
    else if (isnan(value.real))
        pc_text_add(text, ",", 1); /* not known */
    else
        add_number(text, value.real, PC_TEXT_DIGITS);
    pc_text_add(text, "\n", 1);
}

static void add_fields(pc_text *text, const pc_fields *fields, const void *row) {
    for (size_t i = 0; i < fields->count; i++) {
        const pc_field *field = &fields->field[i];
        bool is_needed = strcmp(field->name, "form") == 0 || !is_default(field, row); /* which begins a fit */
        if (is_needed && !pc_profile_text_follows(field->name)) add_value(text, field, row);
    }
}

static void add_numbers(pc_text *text, const char *key, const double *numbers, int count) {
    pc_text_printf(text, "%s", key);
    for (int i = 0; i < count; i++) add_number(text, numbers[i], PC_TEXT_DIGITS);
    pc_text_add(text, "\n", 1);
}

/* Row by row the lower triangle: it is symmetric. */
static void add_covariance(pc_text *text, const pc_fit *fit) {
    pc_text_printf(text, "covariance");
    for (int a = 0; a < fit->parameter_count; a++)
        for (int b = 0; b <= a; b++) add_number(text, fit->covariance[a * fit->parameter_count + b], PC_TEXT_DIGITS);
    pc_text_add(text, "\n", 1);
}

/* A roofline's surface asks those points alone that have a weight; of pieces all count. */
static bool counts(const pc_fit *fit, int64_t point) {
    return !pc_fit_form_is_roofline(fit->key.form) || fit->weight[point] != 0.0;
}

/* Those that what is left over stands on. Weights cancel in sums, so that they have a digit more. */
static void add_points(pc_text *text, const pc_fit *fit) {
    int64_t count = 0;
    if (!fit->weight) return;
    for (int64_t i = 0; i < fit->count; i++) count += counts(fit, i);
    pc_text_printf(text, "points,%lld\n", (long long)count);
    for (int64_t i = 0; i < fit->count; i++) {
        if (!counts(fit, i)) continue;
        pc_text_printf(text, "point");
        for (int d = 0; d < fit->dimensions; d++) add_number(text, fit->x[i * fit->dimensions + d], PC_TEXT_DIGITS + 1);
        add_number(text, fit->weight[i], PC_TEXT_DIGITS + 1);
        pc_text_add(text, "\n", 1);
    }
}

/* An axis a line: its dimension and its nodes; then what is added to log(seconds), in ten-thousandths. */
static void add_grid(pc_text *text, const pc_log_grid *grid) {
    int64_t count = pc_log_grid_count(grid);
    for (int32_t a = 0; a < grid->axes; a++) {
        pc_text_printf(text, "grid,%d", (int)grid->axis[a]);
        for (int32_t i = 0; i < grid->nodes[a]; i++) add_number(text, grid->place[a][i], PC_TEXT_DIGITS + 1);
        pc_text_add(text, "\n", 1);
    }
    if (grid->axes > 0) pc_text_printf(text, "grid_value");
    for (int64_t i = 0; i < count; i++) pc_text_printf(text, ",%.0f", rint(grid->value[i] / PC_TEXT_GRID_UNIT) + 0.0);
    if (grid->axes > 0) pc_text_add(text, "\n", 1);
}

static void add_fit(pc_text *text, const pc_fit *fit) {
    add_fields(text, &pc_profile_fit_fields, fit);
    add_fields(text, &pc_profile_fit_origin_fields, fit);
    add_numbers(text, "parameters", fit->parameter, fit->parameter_count);
    add_covariance(text, fit);
    add_numbers(text, "least", fit->least, fit->dimensions);
    add_numbers(text, "most", fit->most, fit->dimensions);
    add_points(text, fit);
    add_grid(text, &fit->grid);
}

pc_code pc_profile_text_write(const pc_profile *profile, pc_text *text, pc_error *error) {
    pc_number_scope scope = {0};
    if (!pc_number_scope_enter(&scope)) return pc_error_no_memory(error);
    pc_text_printf(text, PC_TEXT_FORMAT ",%d\n", PC_TEXT_VERSION);
    add_fields(text, &pc_profile_device_fields, &profile->device);
    for (int64_t i = 0; i < profile->fit_count; i++) add_fit(text, &profile->fit[i]);
    pc_text_printf(text, "fits,%lld\n", (long long)profile->fit_count);
    pc_number_scope_leave(&scope);
    return text->failed ? pc_error_no_memory(error) : PC_OK;
}
