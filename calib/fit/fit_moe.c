/* A whole layer of experts, forward. */
#include "calib/fit/fit_private.h"

static pc_code refuse(pc_fit *fit, const double *near, pc_error *error) {
    (void)near;
    return pc_error_set(error, PC_ERROR_INPUT, "%s: no fit of this form is built yet; expected another form",
                        fit->key.subject);
}

static pc_parameter_label label(int i) {
    (void)i;
    return (pc_parameter_label){.unit = ""};
}

static double seconds_at(const pc_fit *fit, const double *point, double *gradient, double *scatter) {
    (void)fit, (void)point, (void)gradient, (void)scatter;
    return 0.0;
}

static bool has_parameters(const pc_fit *fit) {
    (void)fit;
    return false;
}

const pc_form pc_form_moe = {.dimensions = 7,
                             .dimension = {"tokens", "hidden", "inter", "topk", "experts", "moe_tp", "moe_ep"},
                             .has_processors = true,
                             .label = label,
                             .fit = refuse,
                             .seconds = seconds_at,
                             .has_parameters = has_parameters};
