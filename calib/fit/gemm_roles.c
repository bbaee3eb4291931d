#include "calib/fit/gemm_roles.h"

#include <math.h>

static const double input_gradient_error = 0.03;
static const double weight_gradient_rate = 0.98, weight_gradient_error = 0.05;
static const double more_output_bytes = 6.0, seen_traffic = 0.5;
static const double between_sites = 0.14;

static pc_estimate with_doubt(double seconds, pc_estimate from, double doubt) {
    double relative = from.standard_error / from.seconds;
    return (pc_estimate){seconds, seconds * sqrt(relative * relative + doubt * doubt)};
}

pc_estimate pc_gemm_role_estimate(pc_estimate forward, pc_gemm_role role, const double shape[4],
                                  double memory_bytes_per_s) {
    if (role == PC_GEMM_FORWARD) return forward;
    if (role == PC_GEMM_INPUT_GRADIENT) return with_doubt(forward.seconds, forward, input_gradient_error);
    double sums = more_output_bytes * shape[0] * shape[1] * shape[2] / memory_bytes_per_s;
    return with_doubt(forward.seconds / weight_gradient_rate + seen_traffic * sums, forward, weight_gradient_error);
}

pc_estimate pc_fit_any_site(pc_estimate one_site) {
    return with_doubt(one_site.seconds, one_site, between_sites);
}
