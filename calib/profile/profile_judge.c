/* How far off the fits of a profile are, of what another one measured. */
#include "calib/profile/profile_private.h"

#include "engine/alloc.h"
#include "engine/order.h"

#include <math.h>

static bool is_of(const pc_fit *fit, const pc_profile_point *point) {
    for (int d = 0; d < fit->dimensions; d++)
        if (!(point->x[d] > 0.0 && point->x[d] < 1e18)) return false;
    return point->seconds > 1e-12 && point->seconds < 1e9 && pc_fit_key_is(&point->key, &fit->key);
}

/* Adds the point's error to error[judged->count], if the fit is for it. */
static void judge_point(const pc_fit *fit, const pc_profile_point *point, double *error, pc_judged *judged) {
    double low, high;
    if (!is_of(fit, point)) return;
    error[judged->count++] = fabs(pc_fit_predict(fit, point->x).seconds / point->seconds - 1.0);
    pc_fit_interval(fit, point->x, 0.95, &low, &high);
    judged->held += point->seconds >= low && point->seconds <= high;
}

static void judge_kernels(const pc_fit *fit, const pc_profile *measured, double *errors, pc_judged *judged) {
    for (int64_t i = 0; i < measured->kernel_count; i++) {
        pc_profile_point point;
        pc_profile_point_of_kernel(&measured->kernel[i], &point);
        judge_point(fit, &point, errors, judged);
    }
}

static void judge_transfers(const pc_fit *fit, const pc_profile *measured, double *errors, pc_judged *judged) {
    for (int64_t i = 0; i < measured->transfer_count; i++) {
        pc_profile_point point;
        if (measured->transfer[i].wrong > 0) continue;
        pc_profile_point_of_transfer(&measured->transfer[i], &point);
        judge_point(fit, &point, errors, judged);
    }
}

pc_code pc_profile_judge(const pc_fit *fit, const pc_profile *measured, pc_judged *judged, pc_error *error) {
    pc_judged made = {0};
    size_t room = (size_t)(measured->kernel_count + measured->transfer_count) + 1;
    double *errors = pc_alloc(room, sizeof *errors);
    if (!errors) return pc_error_no_memory(error);
    judge_kernels(fit, measured, errors, &made);
    judge_transfers(fit, measured, errors, &made);
    if (made.count > 0) {
        pc_sort_reals(errors, made.count);
        made.median = pc_quantile_at(errors, made.count, 0.5);
        made.p95 = pc_quantile_at(errors, made.count, 0.95);
        made.held /= (double)made.count;
    }
    pc_free(errors);
    *judged = made;
    return PC_OK;
}
