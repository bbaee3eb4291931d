#include "api/handles.h"

#include "calib/profile/profile.h"
#include "engine/alloc.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

struct pipecast_profile {
    pc_profile profile;
};

int pipecast_profile_open(const char *path, pipecast_profile **profile, pipecast_error *error) {
    pc_error why = {0};
    pipecast_profile *made = pc_alloc(1, sizeof *made);
    api_lock();
    pc_code code = made ? pc_profile_read(path, &made->profile, &why) : pc_error_no_memory(&why);
    api_unlock();
    if (code)
        pc_free(made);
    else
        *profile = made;
    return api_answer(code, &why, error);
}

void pipecast_profile_free(pipecast_profile *profile) {
    if (profile) pc_profile_free(&profile->profile);
    pc_free(profile);
}

const char *pipecast_profile_device(const pipecast_profile *profile) {
    return profile->profile.device.name;
}

const char *pipecast_profile_gpu(const pipecast_profile *profile) {
    return profile->profile.device.gpu;
}

/* ---- its fits ---- */

typedef struct fit_row {
    char name[128], dimensions[64];
    int64_t points;
    double cv_median;
} fit_row;

static const pc_field fit_fields[] = {
    {"name", "", "kernel or transfer, and what it is of", PC_FIELD_TEXT, PC_FIELD_AT(fit_row, name)},
    {"dimensions", "", "of its shapes, in order", PC_FIELD_TEXT, PC_FIELD_AT(fit_row, dimensions)},
    {"points", "1", "that were measured", PC_FIELD_INT64, PC_FIELD_AT(fit_row, points)},
    {"cv_median", "1", "median relative error of points that the fit had not seen", PC_FIELD_NUMBER,
     PC_FIELD_AT(fit_row, cv_median)},
};

static void fill_row(const pc_fit *fit, fit_row *row) {
    int count;
    size_t used = 0;
    const char *const *dimensions = pc_fit_form_dimensions(fit->key.form, &count);
    pc_fit_name(&fit->key, row->name, sizeof row->name);
    for (int i = 0; i < count && used < sizeof row->dimensions; i++)
        used += (size_t)snprintf(row->dimensions + used, sizeof row->dimensions - used, "%s%s", i ? " " : "",
                                 dimensions[i]);
    row->points = fit->count;
    row->cv_median = fit->cv_median;
}

int pipecast_profile_fits(const pipecast_profile *profile, pipecast_results **fits, pipecast_error *error) {
    pc_error why = {0};
    int64_t count = profile->profile.fit_count;
    pipecast_results *made = api_results_create(count);
    fit_row *rows = pc_alloc((size_t)count, sizeof *rows);
    if (!made || !rows) {
        pc_free(made);
        pc_free(rows);
        return api_answer(pc_error_no_memory(&why), &why, error);
    }
    for (int64_t i = 0; i < count; i++) fill_row(&profile->profile.fit[i], &rows[i]);
    made->rows = rows;
    api_results_add(made, fit_fields, sizeof fit_fields / sizeof *fit_fields, rows, sizeof *rows);
    *fits = made;
    return PIPECAST_OK;
}

static pc_code check_question(const pipecast_profile *profile, int64_t fit, const double *shape, size_t count,
                              pc_error *error) {
    if (fit < 0 || fit >= profile->profile.fit_count)
        return pc_error_set(error, PC_ERROR_INPUT, "fit %" PRId64 ": there is none; the profile has %" PRId64, fit,
                            profile->profile.fit_count);
    int32_t dimensions = profile->profile.fit[fit].dimensions;
    if (count != (size_t)dimensions)
        return pc_error_set(error, PC_ERROR_INPUT, "%zu dimensions; expected %" PRId32, count, dimensions);
    for (size_t i = 0; i < count; i++)
        if (!(shape[i] > 0.0) || !isfinite(shape[i]))
            return pc_error_set(error, PC_ERROR_INPUT, "dimension %zu: %g; expected more than zero", i, shape[i]);
    return PC_OK;
}

int pipecast_profile_ask(const pipecast_profile *profile, int64_t fit, const double *shape, size_t count,
                         double *seconds, double *standard_error, pipecast_error *error) {
    pc_error why = {0};
    pc_code code = check_question(profile, fit, shape, count, &why);
    if (code) return api_answer(code, &why, error);
    pc_estimate estimate = pc_fit_predict(&profile->profile.fit[fit], shape);
    if (seconds) *seconds = estimate.seconds;
    if (standard_error) *standard_error = estimate.standard_error;
    return PIPECAST_OK;
}
