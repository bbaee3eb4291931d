/* Products of several groups of rows, each with a matrix of its own: experts. x = {groups, m, n, k}, those of a group's
 * product. A loop of kernels takes `group` seconds a group on the host, however little each group has to do. */
#include "calib/fit/fit_groups.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { GROUP = PC_GROUPS_PARAMETERS, PARAMETERS };

typedef struct kernel {
    double processors;
    double operand_bytes, output_bytes; /* an element; with what is read of the output */
} kernel;

/* Gradients of weights are added to: read and written. fp32 unless the key says otherwise. */
static kernel kernel_of(const pc_fit *fit) {
    const pc_fit_key *key = &fit->key;
    double operand = pc_groups_activation_bytes(key->dtype);
    bool is_weight = strstr(key->subject, "weight_gradient") != NULL;
    double sums = strcmp(key->out_dtype, "bf16") == 0 || strcmp(key->out_dtype, "fp16") == 0 ? 2.0 : 4.0;
    return (kernel){fit->processors, operand, is_weight ? 2.0 * sums : fmax(operand, 2.0)};
}

static double bytes_of(const kernel *k, const double *x) {
    return x[0] * (k->operand_bytes * x[3] * (x[1] + x[2]) + k->output_bytes * x[1] * x[2]);
}

static double point_seconds(const void *self, const double *parameter, const double *x, double *gradient) {
    const kernel *k = self;
    pc_groups shape = {x[0], x[1], x[2], x[3], k->processors, bytes_of(k, x)};
    double device = pc_groups_seconds(&shape, parameter, gradient), host = x[0] * parameter[GROUP];
    if (gradient) gradient[GROUP] = host > device ? x[0] : 0.0;
    if (host <= device) return device;
    for (int i = 0; gradient && i < PC_GROUPS_PARAMETERS; i++) gradient[i] = 0.0;
    return host;
}

static double seconds_at(const pc_fit *fit, const double *point, double *gradient, double *scatter) {
    (void)scatter; /* the same everywhere */
    kernel k = kernel_of(fit);
    return point_seconds(&k, fit->parameter, point, gradient);
}

/* The best rates that were seen, and the least time a group. */
static void best_seen(pc_fit *fit, const kernel *k, double start[PARAMETERS]) {
    start[GROUP] = HUGE_VAL;
    for (int64_t i = 0; i < fit->count; i++) {
        const double *x = fit->x + i * fit->dimensions;
        fit->residual[i] = 2.0 * x[0] * x[1] * x[2] * x[3] / fit->seconds[i];
        fit->weight[i] = bytes_of(k, x) / fit->seconds[i];
        start[GROUP] = fmin(start[GROUP], fit->seconds[i] / x[0]);
    }
    start[PC_GROUPS_RATE] = 1.1 * pc_fit_quantile(fit->residual, fit->count, 0.95);
    start[PC_GROUPS_MEMORY] = 1.1 * pc_fit_quantile(fit->weight, fit->count, 0.95);
    start[PC_GROUPS_RAMP] = 128.0;
}

static pc_code fit_grouped(pc_fit *fit, const double *near, pc_error *error) {
    kernel k = kernel_of(fit);
    double start[PARAMETERS];
    if (near)
        memcpy(start, near, sizeof start);
    else
        best_seen(fit, &k, start);
    pc_groups_problem problem = {point_seconds, &k, PARAMETERS, start, near != NULL};
    pc_code code = pc_groups_fit(fit, &problem, error);
    return code ? code : pc_surface_fit(fit, error);
}

static pc_parameter_label label(int i) {
    static const char *const names[PARAMETERS][2] = {
        {"rate", "FLOP/s"}, {"ramp", "k"}, {"memory", "bytes/s"}, {"group", "s"}};
    pc_parameter_label label = {.unit = names[i][1]};
    snprintf(label.name, sizeof label.name, "%s", names[i][0]);
    return label;
}

static bool has_parameters(const pc_fit *fit) {
    return fit->parameter_count == PARAMETERS;
}

static bool has_rates(const pc_fit *fit) {
    return fit->parameter[PC_GROUPS_RATE] > 0.0 && fit->parameter[PC_GROUPS_MEMORY] > 0.0 &&
           pc_fit_has_none_below_zero(fit);
}

const pc_form pc_form_grouped_gemm = {.dimensions = 4,
                                      .dimension = {"groups", "m", "n", "k"},
                                      .has_processors = true,
                                      .has_weights = true,
                                      .label = label,
                                      .fit = fit_grouped,
                                      .seconds = seconds_at,
                                      .left = pc_surface_at,
                                      .has_parameters = has_parameters,
                                      .has_rates = has_rates};
