/* Every kernel is checked before it is timed: a wrong kernel's time means nothing. */
#include "calib/device/measure_private.h"

#include <math.h>

/* A shape's check failed, or could not be made: the family is out. What is the device's fault goes on as an error. */
static pc_code put_out(pc_measure *x, int family, const pc_kernel_check *check, pc_code code, pc_error *why,
                       pc_error *error) {
    const char *name = x->seams.families[family]->name;
    x->family[family].is_out = true;
    if (code == PC_ERROR_IO) {
        pc_error_prefix(why, "%s: check", name);
        if (error) *error = *why;
        return code;
    }
    if (code) return pc_measure_warn(x, error, "%s: left out: its check could not be made: %s", name, why->message);
    return pc_measure_warn(x, error, "%s: left out: wrong result: %s", name, check->message);
}

static pc_code check_family(pc_measure *x, int family, double until_s, pc_error *error) {
    const pc_kernel_family *checked = x->seams.families[family];
    pc_measured_family *kept = &x->family[family];
    for (int number = 0; number < x->protocol.checks_most && !kept->is_out; number++) {
        pc_kernel_shape shape;
        pc_kernel_check check = {0};
        pc_error why = {0};
        if (!pc_kernel_check_shape(checked, number, &shape)) break;
        if (number > 0 && (pc_measure_is_interrupted(x) || pc_measure_now(x) > until_s)) break;
        pc_code code = x->seams.check(x->device, checked, &shape, x->request->seed + (uint64_t)number, &check, &why);
        if (code || !check.is_right) {
            code = put_out(x, family, &check, code, &why, error);
            if (code) return code;
        }
        if (!kept->is_out) kept->check_error = fmax(kept->check_error, check.worst_error); /* NaN gives way */
    }
    return PC_OK;
}

pc_code pc_measure_check(pc_measure *x, pc_error *error) {
    double until_s = pc_measure_now(x) + x->protocol.check_share * x->protocol.budget_s;
    for (int i = 0; i < x->seams.family_count; i++) {
        if (pc_measure_is_interrupted(x)) return PC_OK;
        pc_code code = check_family(x, i, until_s, error);
        if (code) return code;
    }
    return PC_OK;
}
