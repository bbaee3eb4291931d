#include "calib/profile/profile_cost.h"

#include "calib/fit/gemm_roles.h"
#include "calib/profile/profile_experts.h"
#include "calib/profile/profile_index.h"
#include "calib/profile/profile_private.h"
#include "engine/alloc.h"
#include "models/cost/roofline.h"

#include <math.h>
#include <stdio.h>

/* From here on outside the measured range, a warning; from there on the roofline takes over. */
static const double far = 1.25, too_far = 4.0;

struct pc_profile_cost {
    const pc_profile *profile;
    pc_machine machine;
    pc_cost_model roofline;
    pc_profile_transfers transfers;
    pc_notes *notes;
    pc_memo *memo;
    pc_profile_index index;
    pc_experts_fits experts;
    double memory_bytes_per_s; /* that the memory reaches */
    bool has_kernels;
};

/* ---- one fit, in its range and beyond ---- */

/* Of what is asked of a shape far from the operation's own; as many as can be counted. */
static int64_t whole(double bytes) {
    return bytes < 0x1p62 ? (int64_t)bytes : INT64_C(1) << 62;
}

/* The operation with another shape. FLOPs and bytes go with it, as near as a ratio of two times needs them. */
static pc_operation reshaped(const pc_operation *of, const pc_fit *fit, const double *point) {
    pc_operation made = *of;
    if (fit->dimensions == 1) {
        made.bytes = whole(point[0]);
        made.launches = 1;
        return made;
    }
    double b = (double)of->batch, m = (double)of->m, n = (double)of->n, k = (double)of->k;
    double to_k = fit->key.form == PC_FIT_FLASH ? k : point[3]; /* the size of a head is the fit's */
    bool is_gemm = of->kind == PC_OPERATION_GEMM;
    double was = is_gemm ? b * (m * k + k * n + m * n) : b * (m + n) * k;
    double is = is_gemm ? point[0] * (point[1] * to_k + to_k * point[2] + point[1] * point[2])
                        : point[0] * (point[1] + point[2]) * to_k;
    made.batch = (int64_t)point[0];
    made.m = (int64_t)point[1];
    made.n = (int64_t)point[2];
    made.k = (int64_t)to_k;
    made.flops = whole((double)of->flops * (point[0] / b) * (point[1] / m) * (point[2] / n) * (to_k / k));
    made.bytes = whole((double)of->bytes * is / was);
    return made;
}

/* The nearest point that is at most `too_far` outside, in whole numbers. */
static void move_in(const pc_fit *fit, const double *point, double *near) {
    for (int d = 0; d < fit->dimensions; d++) {
        double least = ceil(fit->least[d] / too_far), most = floor(fit->most[d] * too_far);
        near[d] = point[d] < least ? least : point[d] > most ? most : point[d];
    }
}

static double roofline_s(const pc_profile_cost *cost, const pc_operation *operation, const pc_fit *fit,
                         const double *point) {
    pc_operation made = reshaped(operation, fit, point);
    return cost->roofline.kernel(cost->roofline.self, &made).seconds;
}

/* What others measured is another site's, too. */
static pc_estimate predict(const pc_profile_cost *cost, const pc_kernel_answer *answer, const double *point) {
    const pc_fit *fit = &cost->profile->fit[answer->fit];
    switch (answer->way) {
    case PC_ANSWER_FIT:
        return pc_fit_predict(fit, point);
    case PC_ANSWER_INPUT_GRADIENT:
    case PC_ANSWER_WEIGHT_GRADIENT:
        return pc_fit_any_site(pc_gemm_role_estimate(pc_fit_predict_sustained(fit, point),
                                                     answer->way == PC_ANSWER_INPUT_GRADIENT ? PC_GEMM_INPUT_GRADIENT
                                                                                             : PC_GEMM_WEIGHT_GRADIENT,
                                                     point, cost->memory_bytes_per_s));
    case PC_ANSWER_BACKWARD:
        return pc_fit_any_site(pc_fit_predict_attention_backward(fit, point));
    default:
        return pc_fit_any_site(pc_fit_predict_sustained(fit, point));
    }
}

/* The fit, and from `too_far` on the roofline in proportion to what the fit says there: no step where they meet. What
 * the roofline may be wrong by comes in with the logarithm of the distance. */
static pc_estimate ask_far(const pc_profile_cost *cost, const pc_kernel_answer *answer, const pc_operation *operation,
                           const double *point, double distance) {
    const pc_fit *fit = &cost->profile->fit[answer->fit];
    double near[PC_FIT_DIMENSIONS] = {0};
    move_in(fit, point, near);
    pc_estimate estimate = predict(cost, answer, near);
    double part = log(distance / far) / log(too_far / far), relative = estimate.standard_error / estimate.seconds;
    double doubt = cost->machine.gpu.estimated_error * (part < 1.0 ? part : 1.0);
    if (distance > too_far)
        estimate.seconds *= roofline_s(cost, operation, fit, point) / roofline_s(cost, operation, fit, near);
    estimate.standard_error = estimate.seconds * sqrt(relative * relative + doubt * doubt);
    return estimate;
}

static pc_estimate ask(const pc_profile_cost *cost, const pc_kernel_answer *answer, const pc_operation *operation,
                       const double *point) {
    const pc_fit *fit = &cost->profile->fit[answer->fit];
    int dimension = 0;
    double distance = pc_fit_distance(fit, point, &dimension);
    if (distance <= far) return predict(cost, answer, point);
    pc_notes_far(cost->notes, answer->fit, point, distance, dimension);
    return ask_far(cost, answer, operation, point, distance);
}

/* ---- operations ---- */

/* Whether there is an answer; says what is missing, or what stands in for it. */
static bool is_there(const pc_profile_cost *cost, const pc_kernel_answer *answer, const pc_operation *operation,
                     const char *family, const char *direction) {
    if ((answer->fit < 0 || answer->instead) && !answer->is_silent) {
        bool is_causal = operation->kind == PC_OPERATION_ATTENTION && operation->is_causal;
        char name[PC_FAMILY_SIZE];
        snprintf(name, sizeof name, "%s%s", family, direction);
        pc_notes_missing(cost->notes, name, pc_operation_dtype(operation), is_causal,
                         answer->fit < 0 ? NULL : answer->instead);
    }
    return answer->fit >= 0;
}

static bool ask_product(const pc_profile_cost *cost, const pc_operation *operation, pc_estimate *estimate) {
    static const char *const roles[] = {"_forward", "_input_gradient", "_weight_gradient"};
    const pc_kernel_answer *answer = pc_index_product(&cost->index, operation);
    const double shape[PC_FIT_DIMENSIONS] = {(double)operation->batch, (double)operation->m, (double)operation->n,
                                             (double)operation->k};
    if (!is_there(cost, answer, operation, "gemm", roles[operation->role])) return false;
    *estimate = ask(cost, answer, operation, shape);
    return true;
}

/* Where plain products of its format are the profile's to answer, so are those of experts. */
static bool ask_grouped(const pc_profile_cost *cost, const pc_operation *operation, pc_estimate *estimate) {
    pc_operation plain = *operation;
    plain.kind = PC_OPERATION_GEMM;
    if (pc_index_product(&cost->index, &plain)->fit < 0) return false;
    const pc_grouped_product product = {.role = operation->role,
                                        .format = operation->format,
                                        .groups = (double)operation->batch,
                                        .m = (double)operation->m,
                                        .n = (double)operation->n,
                                        .k = (double)operation->k};
    return pc_experts_product(&cost->experts, &product, cost->memory_bytes_per_s, estimate);
}

/* The operation as it would be if all keys were seen. */
static pc_operation without_window(const pc_operation *operation) {
    pc_operation made = *operation;
    if (made.window == 0) return made;
    made.flops = whole((double)made.flops / (double)made.window * (double)made.n);
    made.window = 0;
    return made;
}

/* Fits are of values as wide as queries. Forward one of two products is of values, backward two of five. */
static double value_part(const pc_operation *operation) {
    double wide = (double)operation->k, values = (double)operation->value_dim;
    if (operation->value_dim == 0) return 1.0;
    bool is_forward = operation->role == PC_GEMM_FORWARD;
    return is_forward ? (wide + values) / (2.0 * wide) : (3.0 * wide + 2.0 * values) / (5.0 * wide);
}

static double window_part(const pc_operation *operation) {
    return operation->window > 0 ? pc_fit_attention_window((double)operation->n, (double)operation->window) : 1.0;
}

/* What is beside the kernel in others' tables, and goes by the keys' heads, is left out for training: any group. Fits
 * with windows have those copies in their times, which nothing tells apart: a window takes its part of the whole. */
static bool ask_attention(const pc_profile_cost *cost, const pc_operation *operation, pc_estimate *estimate) {
    double scale;
    const pc_kernel_answer *answer = pc_index_attention(&cost->index, operation, &scale);
    const char *direction = operation->role == PC_GEMM_FORWARD ? "_forward" : "_backward";
    if (!is_there(cost, answer, operation, "attention", direction)) return false;
    bool is_flash = cost->profile->fit[answer->fit].key.form == PC_FIT_FLASH;
    const double shape[PC_FIT_DIMENSIONS] = {(double)operation->batch, (double)operation->m, (double)operation->n,
                                             is_flash ? 1.0 : (double)operation->k};
    const pc_operation all = without_window(operation);
    *estimate = ask(cost, answer, &all, shape);
    scale *= window_part(operation) * value_part(operation);
    estimate->seconds *= scale;
    estimate->standard_error *= scale;
    return true;
}

static const pc_kernel_answer *answer_of_run(const pc_profile_cost *cost, const pc_family_run *run,
                                             pc_precision precision) {
    const pc_kernel_answer *own = run->own ? pc_index_family(&cost->index, run->own, "", precision) : NULL;
    return own && own->fit >= 0 ? own : pc_index_family(&cost->index, run->function, run->direction, precision);
}

/* Whether all of its runs are in the profile; their sum. */
static bool ask_families(const pc_profile_cost *cost, const pc_operation *operation, pc_estimate *sum) {
    pc_family_run runs[PC_FAMILY_RUNS];
    int count = pc_operation_runs(operation, runs);
    *sum = (pc_estimate){0};
    for (int i = 0; i < count; i++) {
        const pc_family_run *run = &runs[i];
        const pc_kernel_answer *answer = answer_of_run(cost, run, operation->precision);
        if (!is_there(cost, answer, operation, run->function, run->direction)) return false;
        pc_estimate part = ask(cost, answer, operation, &run->bytes);
        sum->seconds += run->times * part.seconds;
        sum->standard_error += run->times * part.standard_error;
    }
    return count > 0;
}

static bool ask_profile(const pc_profile_cost *cost, const pc_operation *operation, pc_estimate *estimate) {
    switch (operation->kind) {
    case PC_OPERATION_GEMM:
        return ask_product(cost, operation, estimate);
    case PC_OPERATION_GROUPED_GEMM:
        return ask_grouped(cost, operation, estimate);
    case PC_OPERATION_ATTENTION:
        return ask_attention(cost, operation, estimate);
    default:
        return ask_families(cost, operation, estimate);
    }
}

/* Of what nothing was measured but whole runs the roofline answers, without a word and without a memory. */
static pc_estimate answer_untuned(const pc_profile_cost *cost, const pc_operation *operation) {
    pc_estimate estimate;
    if (cost->profile->tuning.is_there && !cost->has_kernels)
        return cost->roofline.kernel(cost->roofline.self, operation);
    if (pc_memo_find(cost->memo, operation, &estimate)) return estimate;
    if (!ask_profile(cost, operation, &estimate)) estimate = cost->roofline.kernel(cost->roofline.self, operation);
    pc_memo_keep(cost->memo, operation, estimate);
    return estimate;
}

static pc_estimate answer(const void *self, const pc_operation *operation) {
    const pc_profile_cost *cost = self;
    pc_estimate estimate = answer_untuned(cost, operation);
    double factor = pc_tuning_factor(&cost->profile->tuning, operation->kind);
    return (pc_estimate){factor * estimate.seconds, factor * estimate.standard_error};
}

/* ---- the model ---- */

/* The machine's file counts what it knows to be taken; a device that says that more is, is right. */
static void take_over_device(const pc_profile_device *device, pc_machine *machine) {
    pc_gpu *gpu = &machine->gpu;
    bool is_possible =
        device->reserved_bytes > gpu->memory_reserved_bytes && device->reserved_bytes < gpu->memory_bytes;
    if (is_possible) gpu->memory_reserved_bytes = device->reserved_bytes;
    if (device->launch_s > 0.0) gpu->launch_s = device->launch_s;
}

pc_code pc_profile_cost_make(const pc_profile *profile, const pc_machine *machine, pc_profile_cost **result,
                             pc_error *error) {
    pc_code code = pc_profile_check_gpu(profile, machine->gpu.name, error);
    if (code) return code;
    pc_profile_cost *cost = pc_alloc(1, sizeof *cost);
    if (!cost) return pc_error_no_memory(error);
    cost->profile = profile;
    cost->machine = *machine;
    cost->notes = pc_notes_make(profile);
    cost->memo = pc_memo_make();
    if (!cost->notes || !cost->memo) {
        pc_profile_cost_free(cost);
        return pc_error_no_memory(error);
    }
    take_over_device(&profile->device, &cost->machine);
    pc_tuning_apply(&profile->tuning, &cost->machine);
    cost->has_kernels = pc_profile_has_kernels(profile);
    cost->roofline = pc_roofline(&cost->machine.gpu);
    cost->memory_bytes_per_s = cost->machine.gpu.memory_bytes_per_s * cost->machine.gpu.memory_efficiency;
    pc_profile_transfers_set(&cost->transfers, profile, cost->notes);
    pc_experts_choose(profile, &cost->experts);
    int32_t answers_for = profile->is_shipped ? machine->gpu.kernels_for : PC_KERNELS_FOR_ALL;
    pc_profile_index_set(&cost->index, profile, answers_for);
    bool has_transfers =
        (profile->fit_count > 0 || !profile->tuning.is_there) && answers_for & PC_KERNELS_FOR_TRANSFERS;
    if (has_transfers) cost->machine.measured = &cost->transfers.model;
    *result = cost;
    return PC_OK;
}

void pc_profile_cost_free(pc_profile_cost *cost) {
    if (!cost) return;
    pc_notes_free(cost->notes);
    pc_memo_free(cost->memo);
    pc_free(cost);
}

pc_cost_model pc_profile_cost_model(const pc_profile_cost *cost) {
    return (pc_cost_model){cost, answer, cost->machine.gpu.launch_s};
}

const pc_machine *pc_profile_cost_machine(const pc_profile_cost *cost) {
    return &cost->machine;
}

bool pc_profile_cost_warning(const pc_profile_cost *cost, int number, char *line, size_t size) {
    return pc_notes_line(cost->notes, number, line, size);
}
