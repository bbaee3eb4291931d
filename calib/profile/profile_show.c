#include "calib/profile/profile_show.h"

#include "calib/profile/profile_private.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

/* ---- numbers with units ---- */

typedef struct scaled {
    double factor; /* from the unit of the file to the one shown */
    const char *unit;
} scaled;

static scaled scale_of(double value, const char *unit) {
    static const struct {
        const char *unit;
        double least;
        scaled shown;
    } rules[] = {
        {"s", 1.0, {1.0, "s"}},
        {"s", 1e-3, {1e3, "ms"}},
        {"s", 0.0, {1e6, "us"}},
        {"bytes/s", 1e12, {1e-12, "TB/s"}},
        {"bytes/s", 0.0, {1e-9, "GB/s"}},
        {"FLOP/s", 1e12, {1e-12, "TFLOP/s"}},
        {"FLOP/s", 0.0, {1e-9, "GFLOP/s"}},
        {"bytes", 0x1p30, {0x1p-30, "GiB"}},
        {"bytes", 0x1p20, {0x1p-20, "MiB"}},
        {"bytes", 1024.0, {1.0 / 1024.0, "KiB"}},
        {"Hz", 0.0, {1e-6, "MHz"}},
        {"k", 0.0, {1.0, "of k"}}, /* of a product; no thousands */
    };
    for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
        if (strcmp(unit, rules[i].unit) == 0 && fabs(value) >= rules[i].least) return rules[i].shown;
    return (scaled){1.0, unit};
}

static void add_number(pc_text *text, double value, const char *unit) {
    scaled shown = scale_of(value, unit);
    pc_text_printf(text, "%.4g %s", value * shown.factor, shown.unit);
}

/* ---- the device ---- */

static void add_line(pc_text *text, const char *name, const char *value) {
    if (value[0] == '\0') return;
    pc_text_printf(text, "%-16s", name);
    pc_text_add_line(text, value, 300);
    pc_text_add(text, "\n", 1);
}

static void add_quantity(pc_text *text, const char *name, double value, const char *unit) {
    if (!(value > 0.0)) return;
    pc_text_printf(text, "%-16s", name);
    add_number(text, value, unit);
    pc_text_add(text, "\n", 1);
}

static void add_device(pc_text *text, const pc_profile *profile) {
    const pc_profile_device *d = &profile->device;
    char hash[17];
    pc_profile_hash(profile, hash);
    add_line(text, "device", d->name[0] ? d->name : "not named");
    add_line(text, "gpu", d->gpu);
    add_line(text, "origin", d->origin);
    add_line(text, "pipecast", d->pipecast);
    add_line(text, "driver", d->driver);
    add_line(text, "runtime", d->runtime);
    add_line(text, "blas", d->blas);
    add_line(text, "nccl", d->nccl);
    add_line(text, "attention", d->attention);
    if (d->processors > 0) pc_text_printf(text, "%-16s%d\n", "processors", (int)d->processors);
    add_quantity(text, "memory", (double)d->memory_bytes, "bytes");
    add_quantity(text, "reserved", (double)d->reserved_bytes, "bytes");
    add_quantity(text, "l2", (double)d->l2_bytes, "bytes");
    add_quantity(text, "sm clock", d->sm_clock_hz, "Hz");
    add_quantity(text, "copy", d->copy_bytes_per_s, "bytes/s");
    add_quantity(text, "gemm", d->gemm_flops_per_s, "FLOP/s");
    add_quantity(text, "launch", d->launch_s, "s");
    pc_text_printf(text, "%-16s%s\n", "complete", d->is_complete ? "yes" : "no: interrupted, or its time was up");
    pc_text_printf(text, "%-16s%" PRId64 " kernels, %" PRId64 " transfers, %" PRId64 " raw samples\n", "measured",
                   profile->kernel_count, profile->transfer_count, profile->sample_count);
    pc_text_printf(text, "%-16s%s\n", "hash", hash);
}

/* ---- fits ---- */

static void add_span(pc_text *text, double least, double most, const char *unit) {
    add_number(text, least, unit);
    if (least == most) return;
    pc_text_printf(text, " to ");
    add_number(text, most, unit);
}

/* Whole numbers, in full. */
static void add_size(pc_text *text, const char *name, double least, double most) {
    pc_text_printf(text, "%s %.15g", name, least);
    if (least < most) pc_text_printf(text, " to %.15g", most);
}

static void add_range(pc_text *text, const pc_fit *fit) {
    int dimensions;
    const char *const *names = pc_fit_form_dimensions(fit->key.form, &dimensions);
    if (fit->seconds)
        pc_text_printf(text, "  %" PRId64 " points, ", fit->count);
    else
        pc_text_printf(text, "  ");
    for (int d = 0; d < dimensions; d++) {
        if (d) pc_text_printf(text, ", ");
        if (dimensions == 1)
            add_span(text, fit->least[d], fit->most[d], "bytes");
        else
            add_size(text, names[d], fit->least[d], fit->most[d]);
    }
    pc_text_printf(text, "\n");
}

/* What the file says, to the left of a column; not bounded by what it should say. */
static void add_word(pc_text *text, const char *word, size_t width) {
    size_t length = pc_utf8_length(word);
    pc_text_add_line(text, word, PC_FIELD_TEXT_SIZE);
    pc_text_printf(text, "%*s", length < width ? (int)(width - length) : 0, "");
}

static void add_parameters(pc_text *text, const pc_fit *fit) {
    for (int i = 0; i < fit->parameter_count; i++) {
        scaled shown = scale_of(fit->parameter[i], fit->parameter_unit[i]);
        double error = pc_fit_standard_error(fit, i) * shown.factor;
        pc_text_add(text, "  ", 2);
        add_word(text, fit->parameter_name[i], 14);
        pc_text_printf(text, " %10.4g ", fit->parameter[i] * shown.factor);
        if (error > 0.0) /* of what was not fitted with the others there is none */
            pc_text_printf(text, "+- %-8.2g ", error);
        else
            pc_text_printf(text, "%12s", "");
        add_word(text, shown.unit, 0);
        pc_text_add(text, "\n", 1);
    }
}

static void add_errors(pc_text *text, const pc_fit *fit) {
    pc_text_printf(text, "  scatter %.2g%%", 100.0 * fit->residual_deviation);
    if (!isnan(fit->cv_median))
        pc_text_printf(
            text, "; cross-validated: median error %.2g%%, 95th percentile %.2g%%, %.3g%% within the 95%% interval",
            100.0 * fit->cv_median, 100.0 * fit->cv_p95, 100.0 * fit->cv_coverage);
    pc_text_printf(text, "\n");
}

static void add_fit(pc_text *text, const pc_fit *fit) {
    char name[128];
    pc_fit_name(&fit->key, name, sizeof name);
    pc_text_add(text, "\n", 1);
    add_word(text, name, 0);
    pc_text_add(text, "\n", 1);
    add_range(text, fit);
    add_parameters(text, fit);
    add_errors(text, fit);
}

/* ---- replays ---- */

static void add_replay(pc_text *text, const pc_replay_report *report) {
    pc_text_printf(text, "\nreplay of ");
    pc_text_add_line(text, report->scenario, 100);
    pc_text_add(text, ", ", 2);
    add_word(text, report->schedule, 0);
    pc_text_printf(text, ", stage %d: measured ", (int)report->stage);
    add_number(text, report->measured_s, "s");
    pc_text_printf(text, ", simulated ");
    add_number(text, report->simulated_s, "s");
    pc_text_printf(text, " (%+.2f%%); peak memory measured ", 100.0 * (report->simulated_s / report->measured_s - 1.0));
    add_number(text, (double)report->measured_peak_bytes, "bytes");
    pc_text_printf(text, ", simulated ");
    add_number(text, (double)report->simulated_peak_bytes, "bytes");
    pc_text_printf(text, "\n");
    for (int i = 0; i < report->pass_kind_count; i++) {
        pc_text_add(text, "  ", 2);
        add_word(text, report->pass[i].kind, 3);
        pc_text_printf(text, " %6" PRId64 " passes, measured ", report->pass[i].count);
        add_number(text, report->pass[i].measured_s, "s");
        pc_text_printf(text, ", simulated ");
        add_number(text, report->pass[i].simulated_s, "s");
        pc_text_printf(text, "\n");
    }
}

static void add_table(pc_text *text, const pc_profile *profile) {
    add_device(text, profile);
    for (int64_t i = 0; i < profile->fit_count; i++) add_fit(text, &profile->fit[i]);
    for (int64_t i = 0; i < profile->replay_count; i++) add_replay(text, &profile->replay[i]);
    if (profile->tuning.is_there) {
        pc_text_printf(text, "\ntuning\n");
        pc_tuning_add_table(text, &profile->tuning);
    }
}

/* ---- CSV ---- */

static void add_csv_real(pc_text *text, double value) {
    char number[PC_NUMBER_SIZE] = "";
    if (!isnan(value)) pc_number_format(value, number);
    pc_text_printf(text, ",%s", number);
}

static void add_csv_fit(pc_text *text, const pc_fit *fit) {
    char name[128];
    pc_fit_name(&fit->key, name, sizeof name);
    for (int i = 0; i < fit->parameter_count; i++) {
        const char *const texts[] = {name, pc_fit_form_name(fit->key.form), fit->parameter_name[i],
                                     fit->parameter_unit[i]};
        for (size_t k = 0; k < sizeof texts / sizeof *texts; k++) {
            pc_text_add_csv(text, texts[k]);
            pc_text_add(text, ",", 1);
        }
        pc_text_printf(text, "%" PRId64, fit->count);
        add_csv_real(text, fit->parameter[i]);
        add_csv_real(text, pc_fit_standard_error(fit, i));
        add_csv_real(text, fit->residual_deviation);
        add_csv_real(text, fit->cv_median);
        add_csv_real(text, fit->cv_p95);
        add_csv_real(text, fit->cv_coverage);
        pc_text_add(text, "\n", 1);
    }
}

static void add_csv(pc_text *text, const pc_profile *profile) {
    pc_text_printf(text, "%s", PC_PROFILE_CSV_HEADER);
    for (int64_t i = 0; i < profile->fit_count; i++) add_csv_fit(text, &profile->fit[i]);
    if (profile->tuning.is_there) pc_tuning_add_csv(text, "tuning", &profile->tuning);
}

/* ---- JSON ---- */

/* A number that reads back exactly; null for what is none. */
static void add_json_real(pc_text *text, double value) {
    char number[PC_NUMBER_SIZE];
    if (isfinite(value)) pc_number_format(value, number);
    pc_text_printf(text, "%s", isfinite(value) ? number : "null");
}

static void add_json_field(pc_text *text, const pc_field *field, const void *row) {
    pc_field_value value = pc_field_of(field, row);
    pc_text_add_json(text, field->name);
    pc_text_printf(text, ": ");
    if (value.text)
        pc_text_add_json(text, value.text);
    else if (field->type == PC_FIELD_REAL || field->type == PC_FIELD_ANY)
        add_json_real(text, value.real);
    else if (field->type == PC_FIELD_FLAG)
        pc_text_printf(text, value.integer ? "true" : "false");
    else
        pc_text_printf(text, "%" PRId64, value.integer);
}

/* "name": value, ... without braces. */
static void add_json_fields(pc_text *text, const pc_fields *fields, const void *row) {
    for (size_t i = 0; i < fields->count; i++) {
        if (i) pc_text_printf(text, ", ");
        add_json_field(text, &fields->field[i], row);
    }
}

static void add_json_rows(pc_text *text, const char *name, const pc_fields *fields, const void *rows, int64_t count) {
    pc_text_printf(text, ",\n  \"%s\": [", name);
    for (int64_t i = 0; i < count; i++) {
        pc_text_printf(text, "%s\n    {", i ? "," : "");
        add_json_fields(text, fields, (const char *)rows + (size_t)i * fields->row_size);
        pc_text_printf(text, "}");
    }
    pc_text_printf(text, "%s]", count ? "\n  " : "");
}

static void add_json_reals(pc_text *text, const char *name, const double *values, int64_t count, int64_t stride) {
    pc_text_printf(text, ", \"%s\": [", name);
    for (int64_t i = 0; i < count; i++) {
        if (i) pc_text_printf(text, ", ");
        add_json_real(text, values[i * stride]);
    }
    pc_text_printf(text, "]");
}

static void add_json_parameters(pc_text *text, const pc_fit *fit) {
    pc_text_printf(text, ", \"parameters\": [");
    for (int i = 0; i < fit->parameter_count; i++) {
        pc_text_printf(text, "%s{\"name\": ", i ? ", " : "");
        pc_text_add_json(text, fit->parameter_name[i]);
        pc_text_printf(text, ", \"value\": ");
        add_json_real(text, fit->parameter[i]);
        pc_text_printf(text, ", \"standard_error\": ");
        add_json_real(text, pc_fit_standard_error(fit, i));
        pc_text_printf(text, ", \"unit\": ");
        pc_text_add_json(text, fit->parameter_unit[i]);
        pc_text_printf(text, "}");
    }
    pc_text_printf(text, "]");
    add_json_reals(text, "covariance", fit->covariance, (int64_t)fit->parameter_count * fit->parameter_count, 1);
}

static void add_json_fit(pc_text *text, const pc_fit *fit) {
    char name[128];
    int dimensions;
    const char *const *names = pc_fit_form_dimensions(fit->key.form, &dimensions);
    pc_fit_name(&fit->key, name, sizeof name);
    pc_text_printf(text, "{\"name\": ");
    pc_text_add_json(text, name);
    pc_text_printf(text, ", \"points\": %" PRId64 ", ", fit->count);
    add_json_fields(text, &pc_profile_fit_fields, fit);
    add_json_parameters(text, fit);
    add_json_reals(text, "least", fit->least, dimensions, 1);
    add_json_reals(text, "most", fit->most, dimensions, 1);
    for (int d = 0; d < dimensions; d++) add_json_reals(text, names[d], fit->x + d, fit->count, dimensions);
    add_json_reals(text, "seconds", fit->seconds, fit->seconds ? fit->count : 0, 1);
    add_json_reals(text, "residual", fit->residual, fit->residual ? fit->count : 0, 1);
    pc_text_printf(text, "}");
}

static void add_json_fits(pc_text *text, const pc_profile *profile) {
    pc_text_printf(text, ",\n  \"fits\": [");
    for (int64_t i = 0; i < profile->fit_count; i++) {
        pc_text_printf(text, "%s\n    ", i ? "," : "");
        add_json_fit(text, &profile->fit[i]);
    }
    pc_text_printf(text, "%s]", profile->fit_count ? "\n  " : "");
}

static void add_json_replay(pc_text *text, const pc_replay_report *report) {
    pc_text_printf(text, "{");
    add_json_fields(text, &pc_profile_replay_fields, report);
    pc_text_printf(text, ", \"pass\": [");
    for (int i = 0; i < report->pass_kind_count; i++) {
        pc_text_printf(text, "%s{", i ? ", " : "");
        add_json_fields(text, &pc_profile_pass_fields, &report->pass[i]);
        pc_text_printf(text, "}");
    }
    pc_text_printf(text, "]}");
}

void pc_tuning_add_json(pc_text *text, const pc_tuning *tuning) {
    pc_text_printf(text, "{");
    add_json_fields(text, &pc_profile_tuning_fields, tuning);
    pc_text_printf(text, ", \"numbers\": [");
    for (pc_tuned i = 0; i < PC_TUNED; i++) {
        pc_text_printf(text, "%s{", i ? ", " : "");
        add_json_fields(text, &pc_profile_tuned_fields, &tuning->number[i]);
        pc_text_printf(text, "}");
    }
    pc_text_printf(text, "]}");
}

/* The whole profile but its raw samples, one object and a newline. */
static void add_json(pc_text *text, const pc_profile *profile) {
    char hash[17];
    pc_profile_hash(profile, hash);
    pc_text_printf(text, "{\n  \"hash\": \"%s\",\n  \"device\": {", hash);
    add_json_fields(text, &pc_profile_device_fields, &profile->device);
    pc_text_printf(text, "}");
    add_json_fits(text, profile);
    add_json_rows(text, "kernels", &pc_profile_kernel_fields, profile->kernel, profile->kernel_count);
    add_json_rows(text, "transfers", &pc_profile_transfer_fields, profile->transfer, profile->transfer_count);
    pc_text_printf(text, ",\n  \"replays\": [");
    for (int64_t i = 0; i < profile->replay_count; i++) {
        pc_text_printf(text, "%s\n    ", i ? "," : "");
        add_json_replay(text, &profile->replay[i]);
    }
    pc_text_printf(text, "%s]", profile->replay_count ? "\n  " : "");
    if (profile->tuning.is_there) {
        pc_text_printf(text, ",\n  \"tuning\": ");
        pc_tuning_add_json(text, &profile->tuning);
    }
    pc_text_printf(text, "\n}\n");
}

/* ---- all ---- */

pc_code pc_text_out(pc_text *text, FILE *stream, pc_error *error) {
    pc_code code = text->failed ? pc_error_no_memory(error) : PC_OK;
    if (!code && text->size > 0 && fwrite(text->data, 1, text->size, stream) != text->size)
        code = pc_error_set(error, PC_ERROR_IO, "cannot write: %s; expected room for the results", strerror(errno));
    pc_text_free(text);
    return code;
}

pc_code pc_profile_show(const pc_profile *profile, pc_format format, FILE *stream, pc_error *error) {
    pc_number_scope scope = {0};
    pc_text text = {0};
    if (!pc_number_scope_enter(&scope)) return pc_error_no_memory(error);
    if (format == PC_FORMAT_JSON)
        add_json(&text, profile);
    else if (format == PC_FORMAT_CSV)
        add_csv(&text, profile);
    else
        add_table(&text, profile);
    pc_number_scope_leave(&scope);
    return pc_text_out(&text, stream, error);
}
