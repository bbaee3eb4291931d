#include "calib/profile/profile_cost.h"

#include "calib/profile/profile_private.h"
#include "engine/alloc.h"
#include "models/cost/roofline.h"

#include <math.h>
#include <string.h>

/* From here on outside the measured range, a warning; from there on the roofline takes over. */
static const double far = 1.25, too_far = 4.0;

struct pc_profile_cost {
    const pc_profile *profile;
    pc_machine machine;
    pc_cost_model roofline;
    pc_profile_transfers transfers;
    pc_notes *notes;
    pc_memo *memo;
    bool has_kernels;
};

/* ---- fits ---- */

static const char *const dtypes[] = {[PC_PRECISION_BF16] = "bf16", [PC_PRECISION_FP16] = "fp16"};

/* How well a fit answers for the family: 0 not at all. Buffers are cold in training: what a kernel reads was written
 * long before. Numbers of 16 bits take as long as others of 16. */
static int rank_of(const pc_fit *fit, const char *family, const char *dtype, bool is_causal) {
    const pc_fit_key *key = &fit->key;
    bool is_kernel = !pc_fit_form_is_transfer(key->form) && strcmp(key->subject, family) == 0;
    if (!is_kernel || (key->form == PC_FIT_ATTENTION && key->is_causal != is_causal)) return 0;
    int exact = strcmp(key->dtype, dtype) == 0 ? 3 : key->dtype[0] == '\0' ? 2 : 1;
    bool is_half = exact > 1 || strcmp(key->dtype, "bf16") == 0 || strcmp(key->dtype, "fp16") == 0;
    return is_half ? 2 * exact + (key->cache == PC_CACHE_COLD) : 0;
}

static int64_t find_fit(const pc_profile_cost *cost, const char *family, const char *dtype, bool is_causal) {
    int64_t best = -1;
    int best_rank = 0;
    for (int64_t i = 0; i < cost->profile->fit_count; i++) {
        int rank = rank_of(&cost->profile->fit[i], family, dtype, is_causal);
        if (rank > best_rank) best = i, best_rank = rank;
    }
    if (best < 0)
        pc_notes_missing(cost->notes, family, dtype, is_causal, NULL);
    else if (best_rank < 4)
        pc_notes_missing(cost->notes, family, dtype, is_causal, cost->profile->fit[best].key.dtype);
    return best;
}

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
    bool is_gemm = of->kind == PC_OPERATION_GEMM;
    double was = is_gemm ? b * (m * k + k * n + m * n) : b * (m + n) * k;
    double is = is_gemm ? point[0] * (point[1] * point[3] + point[3] * point[2] + point[1] * point[2])
                        : point[0] * (point[1] + point[2]) * point[3];
    made.batch = (int64_t)point[0];
    made.m = (int64_t)point[1];
    made.n = (int64_t)point[2];
    made.k = (int64_t)point[3];
    made.flops = whole((double)of->flops * (point[0] / b) * (point[1] / m) * (point[2] / n) * (point[3] / k));
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

/* The fit, and from `too_far` on the roofline in proportion to what the fit says there: no step where they meet. What
 * the roofline may be wrong by comes in with the logarithm of the distance. */
static pc_estimate ask(const pc_profile_cost *cost, int64_t number, const pc_operation *operation,
                       const double *point) {
    const pc_fit *fit = &cost->profile->fit[number];
    int dimension = 0;
    double near[PC_FIT_DIMENSIONS] = {0}, distance = pc_fit_distance(fit, point, &dimension);
    if (distance <= far) return pc_fit_predict(fit, point);
    pc_notes_far(cost->notes, number, point, distance, dimension);
    move_in(fit, point, near);
    pc_estimate estimate = pc_fit_predict(fit, near);
    double part = log(distance / far) / log(too_far / far), relative = estimate.standard_error / estimate.seconds;
    double doubt = cost->machine.gpu.estimated_error * (part < 1.0 ? part : 1.0);
    if (distance > too_far)
        estimate.seconds *= roofline_s(cost, operation, fit, point) / roofline_s(cost, operation, fit, near);
    estimate.standard_error = estimate.seconds * sqrt(relative * relative + doubt * doubt);
    return estimate;
}

/* ---- operations ---- */

static pc_estimate ask_run(const pc_profile_cost *cost, int64_t fit, const pc_operation *operation,
                           const pc_family_run *run) {
    double shape[PC_FIT_DIMENSIONS] = {(double)operation->batch, (double)operation->m, (double)operation->n,
                                       (double)operation->k};
    bool has_shape = operation->kind == PC_OPERATION_GEMM || operation->kind == PC_OPERATION_ATTENTION;
    pc_estimate estimate = ask(cost, fit, operation, has_shape ? shape : &run->bytes);
    return (pc_estimate){run->times * estimate.seconds, run->times * estimate.standard_error};
}

/* A profile of the library answers what the GPU's file says (kernels_for), and any other all that it has. */
static int32_t answered(const pc_profile_cost *cost) {
    return cost->profile->is_shipped ? cost->machine.gpu.kernels_for : PC_KERNELS_FOR_ALL;
}

static bool is_asked(const pc_profile_cost *cost, const pc_operation *operation) {
    if (operation->kind == PC_OPERATION_ATTENTION) return (answered(cost) & PC_KERNELS_FOR_ATTENTION) != 0;
    return operation->kind != PC_OPERATION_GEMM || (answered(cost) & 1 << operation->format) != 0;
}

/* Whether all of its runs are in the profile; their sum. */
static bool ask_profile(const pc_profile_cost *cost, const pc_operation *operation, pc_estimate *sum) {
    pc_family_run runs[PC_FAMILY_RUNS];
    *sum = (pc_estimate){0};
    if (!is_asked(cost, operation)) return false;
    int count = pc_operation_runs(operation, runs);
    bool is_causal = operation->kind == PC_OPERATION_ATTENTION && operation->is_causal;
    for (int i = 0; i < count; i++) {
        int64_t fit = find_fit(cost, runs[i].family, dtypes[operation->precision], is_causal);
        if (fit < 0) return false;
        pc_estimate part = ask_run(cost, fit, operation, &runs[i]);
        sum->seconds += part.seconds;
        sum->standard_error += part.standard_error;
    }
    return count > 0;
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
    pc_profile_transfers_set(&cost->transfers, profile, cost->notes);
    bool has_transfers = profile->fit_count > 0 || !profile->tuning.is_there;
    if (has_transfers && (answered(cost) & PC_KERNELS_FOR_TRANSFERS)) cost->machine.measured = &cost->transfers.model;
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
