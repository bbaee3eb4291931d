/* A replay kernel by kernel: where the time of a stage's passes goes, and what the profile foretells of it. */
#include "calib/device/measure_private.h"
#include "calib/device/replay_private.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *kind_name(pc_layer_kind kind) {
    static const pc_pass_kind kinds[PC_LAYER_KINDS] = {
        [PC_LAYER_F] = PC_PASS_F, [PC_LAYER_B] = PC_PASS_B, [PC_LAYER_W] = PC_PASS_W, [PC_LAYER_BW] = PC_PASS_BW};
    return pc_pass_kind_name(kinds[kind]);
}

static void describe(const pc_replay_step_time *step, const char *pass, const pc_profile *profile,
                     pc_replay_kernel *made) {
    pc_kernel_measurement measurement = {.cache = PC_CACHE_COLD}; /* as in training */
    snprintf(measurement.kernel, sizeof measurement.kernel, "%s", step->family->name);
    pc_measure_describe(step->family, &step->shape, &measurement);
    memset(made, 0, sizeof *made);
    snprintf(made->pass, sizeof made->pass, "%s", pass);
    snprintf(made->name, sizeof made->name, "%s", measurement.kernel);
    snprintf(made->dtype, sizeof made->dtype, "%s", measurement.dtype);
    made->batch = measurement.batch;
    made->m = measurement.m;
    made->n = measurement.n;
    made->k = measurement.k;
    made->bytes = measurement.bytes;
    made->count = step->count;
    made->measured_s = step->seconds / (double)step->count;
    made->fitted_s = profile ? pc_profile_fitted_s(profile, &measurement) : NAN;
}

static bool is_same(const pc_replay_kernel *a, const pc_replay_kernel *b) {
    return strcmp(a->pass, b->pass) == 0 && strcmp(a->name, b->name) == 0 && a->batch == b->batch && a->m == b->m &&
           a->n == b->n && a->k == b->k && a->bytes == b->bytes;
}

/* To one that is there, or behind them; what there is no room for is left out. */
static void add(const pc_replay_kernel *made, pc_replay_kernel kernel[PC_REPLAY_KERNELS], int32_t *count) {
    for (int32_t i = 0; i < *count; i++) {
        pc_replay_kernel *known = &kernel[i];
        if (!is_same(known, made)) continue;
        double seconds = known->measured_s * (double)known->count + made->measured_s * (double)made->count;
        known->count += made->count;
        known->measured_s = seconds / (double)known->count;
        return;
    }
    if (*count < PC_REPLAY_KERNELS) kernel[(*count)++] = *made;
}

int32_t pc_replay_kernels_of(const pc_replay_step_times *steps, const pc_profile *profile,
                             pc_replay_kernel kernel[PC_REPLAY_KERNELS]) {
    int32_t count = 0;
    for (int kind = 0; kind < PC_LAYER_KINDS; kind++)
        for (int t = 0; t < 2 * PC_LAYER_STEPS && (*steps)[kind][t].family; t++) {
            pc_replay_kernel made;
            describe(&(*steps)[kind][t], kind_name((pc_layer_kind)kind), profile, &made);
            add(&made, kernel, &count);
        }
    return count;
}
