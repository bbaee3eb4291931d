#include "tests/profile_example.h"

#include "calib/fit/fit_private.h"
#include "engine/alloc.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- parts ---- */

static const double samples[] = {1.5e-3, 1.25e-3, 1.75e-3, 1e-6, 2e-6};

static pc_kernel_measurement product(int64_t m) {
    return (pc_kernel_measurement){
        .kernel = "gemm_weight_gradient",
        .kind = PC_OPERATION_GEMM,
        .role = PC_GEMM_WEIGHT_GRADIENT,
        .dtype = "bf16",
        .epilogue = "bias_gelu",
        .accumulates = true,
        .batch = 1,
        .m = m,
        .n = 4096,
        .k = INT64_C(1) << 40, /* no narrow numbers on the way */
        .flops = INT64_MAX,
        .bytes = 77,
        .cache = PC_CACHE_HOT,
        .in_graph = true,
        .seconds = {.count = 3, .median = 1.5e-3, .q1 = 1e-3, .q3 = 2e-3, .p5 = 1e-4, .p95 = NAN, .least = 1.0 / 3.0},
        .sm_clock_hz = NAN,
        .is_throttled = true,
        .function = "a kernel \xc3\xa9",
        .grid = {1, 2, 3},
        .block = {128, 1, 1},
        .registers = -1,
        .shared_bytes = 49152,
        .check_error = 0.25,
        .out_dtype = "fp32",
        .library = "trtllm",
        .library_version = "1.3.0rc20",
        .site = "b200_sxm",
        .variant = "a_kernel power_law_1.2",
        .window = 4096,
        .experts = 128,
        .topk = 8,
        .moe_tp = 2,
        .moe_ep = 64,
    };
}

static pc_transfer_measurement transfer(double size_bytes) {
    return (pc_transfer_measurement){
        .collective = "all_reduce",
        .link = "nvlink",
        .ranks = 8,
        .nodes = 1,
        .is_in_place = true,
        .size_bytes = size_bytes,
        .seconds = {.count = 2, .median = 1.5e-6, .q1 = NAN, .q3 = NAN, .p5 = NAN, .p95 = NAN, .least = NAN},
        .algbw = size_bytes / 1.5e-6,
        .busbw = NAN,
        .wrong = -1,
        .dtype = "fp8",
        .library = "deepep",
        .library_version = "0.5.12",
        .site = "h100_sxm",
        .hidden = 7168,
        .tokens = 4096,
        .topk = 8,
        .experts = 256,
        .sms = 20,
    };
}

/* Numbers that no fit would have, so that what goes astray shows. */
static pc_code fill_fit(pc_fit *fit, int64_t count, int32_t dimensions, bool has_surface, pc_error *error) {
    fit->count = count;
    fit->dimensions = dimensions;
    fit->x = pc_alloc((size_t)(count * dimensions), sizeof *fit->x);
    fit->seconds = pc_alloc((size_t)count, sizeof *fit->seconds);
    fit->residual = pc_alloc((size_t)count, sizeof *fit->residual);
    if (has_surface) fit->weight = pc_alloc((size_t)count, sizeof *fit->weight);
    if (!fit->x || !fit->seconds || !fit->residual || (has_surface && !fit->weight)) return pc_error_no_memory(error);
    for (int64_t i = 0; i < count * dimensions; i++) fit->x[i] = 1.0 + (double)i;
    for (int64_t i = 0; i < count; i++) {
        fit->seconds[i] = 1e-3 * (double)(i + 1);
        fit->residual[i] = -0.5 + (double)i / 7.0;
        if (fit->weight) fit->weight[i] = (double)i - 3.0;
    }
    for (int32_t d = 0; d < dimensions; d++) {
        fit->least[d] = 1.0 + (double)d;
        fit->most[d] = 100.0 + (double)d;
    }
    pc_fit_name_parameters(fit); /* nothing else is read */
    for (int32_t i = 0; i < fit->parameter_count; i++) {
        fit->parameter[i] = 1e9 / (3.0 + (double)i);
        for (int32_t j = 0; j < fit->parameter_count; j++)
            fit->covariance[i * fit->parameter_count + j] = i == j ? 4.0 + (double)i : 0.125;
    }
    return PC_OK;
}

static pc_code add_fits(pc_profile *profile, pc_error *error) {
    pc_fit surface = {.key = {.form = PC_FIT_GEMM, .subject = "gemm_forward", .dtype = "bf16", .cache = PC_CACHE_HOT},
                      .processors = 108,
                      .parameter_count = 4,
                      .residual_deviation = 0.02,
                      .surface_length = 1.5,
                      .surface_amplitude = 0.04,
                      .surface_noise = 0.01,
                      .cv_median = 0.03,
                      .cv_p95 = 0.09,
                      .cv_coverage = 0.95};
    pc_fit line = {.key = {.form = PC_FIT_TRANSFER, .subject = "all_reduce", .link = "nvlink", .ranks = 8, .nodes = 1},
                   .parameter_count = PC_FIT_PARAMETERS - 1,
                   .residual_deviation = 0.01,
                   .cv_median = NAN,
                   .cv_p95 = NAN,
                   .cv_coverage = NAN};
    pc_code code = fill_fit(&surface, 7, 4, true, error);
    if (!code) code = fill_fit(&line, 3, 1, false, error);
    if (!code) code = pc_profile_add_fit(profile, &surface, error);
    if (!code) code = pc_profile_add_fit(profile, &line, error);
    pc_fit_free(&surface);
    pc_fit_free(&line);
    return code;
}

static pc_code add_rest(pc_profile *profile, pc_error *error) {
    static const pc_replay_report replay = {
        .scenario = "1.5B",
        .schedule = "zb-1p",
        .stage = 3,
        .pass_kind_count = 2,
        .passes = 48,
        .measured_s = 1.25,
        .simulated_s = 1.2,
        .measured_peak_bytes = INT64_C(5) << 32,
        .simulated_peak_bytes = INT64_C(5) << 32,
        .pass = {{"F", 24, 0.02, 0.021}, {"BW", 24, 0.04, 0.041}},
    };
    pc_kernel_measurement kernel = product(1);
    pc_transfer_measurement message = transfer(1024.0);
    pc_code code = pc_profile_add_kernel(profile, &kernel, samples, error);
    if (!code) code = pc_profile_add_transfer(profile, &message, samples + 3, error);
    kernel = product(2);
    message = transfer(2048.0);
    if (!code) code = pc_profile_add_kernel(profile, &kernel, samples + 1, error);
    if (!code) code = pc_profile_add_kernel(profile, &kernel, NULL, error);
    if (!code) code = pc_profile_add_transfer(profile, &message, NULL, error);
    if (!code) code = add_fits(profile, error);
    return code ? code : pc_profile_add_replay(profile, &replay, error);
}

static pc_tuning tuning(void) {
    pc_tuning made = pc_tuning_none();
    snprintf(made.source, sizeof made.source, "measured.csv");
    snprintf(made.only, sizeof made.only, "software nemo");
    made.rows = 12;
    made.configurations = 9;
    made.left_out = 3;
    made.folds = 9;
    made.scatter = 0.03;
    made.before = (pc_tuning_errors){0.15, 0.14, -0.15};
    made.after = (pc_tuning_errors){0.03, 0.02, -0.01};
    made.number[PC_TUNED_GEMM] = (pc_tuned_number){"gemm", 1.125, 0.1, 0.02, true, true};
    made.number[PC_TUNED_OVERLAP] = (pc_tuned_number){"overlap", -0.25, 0.1, 0.09, true, false};
    return made;
}

pc_code make_profile(pc_profile *profile, pc_error *error) {
    *profile = (pc_profile){.device = {.name = "Example GPU 80GB",
                                       .gpu = "example",
                                       .origin = "made by hand",
                                       .pipecast = "0.1.0",
                                       .driver = "1.2",
                                       .runtime = "3.4",
                                       .compute_major = 9,
                                       .processors = 132,
                                       .memory_bytes = INT64_C(80) << 30,
                                       .reserved_bytes = INT64_C(1) << 30,
                                       .l2_bytes = INT64_C(50) << 20,
                                       .sm_clock_hz = NAN,
                                       .copy_bytes_per_s = 2.5e12,
                                       .gemm_flops_per_s = 7e14,
                                       .launch_s = 4e-6,
                                       .is_complete = true},
                            .tuning = tuning()};
    pc_code code = add_rest(profile, error);
    if (code) pc_profile_free(profile);
    return code;
}

/* ---- sameness ---- */

static bool same(const void *a, const void *b, int64_t count, size_t size) {
    return count == 0 || memcmp(a, b, (size_t)count * size) == 0;
}

static bool fits_equal(const pc_fit *a, const pc_fit *b) {
    pc_fit left = *a, right = *b;
    left.x = left.seconds = left.residual = left.weight = NULL;
    right.x = right.seconds = right.residual = right.weight = NULL;
    return same(&left, &right, 1, sizeof left) && same(a->x, b->x, a->count * a->dimensions, sizeof *a->x) &&
           same(a->seconds, b->seconds, a->count, sizeof *a->seconds) &&
           same(a->residual, b->residual, a->count, sizeof *a->residual) && !a->weight == !b->weight &&
           (!a->weight || same(a->weight, b->weight, a->count, sizeof *a->weight));
}

/* What is not known is a NaN, which is itself in its bytes; between members there are none to be set. */
static bool tunings_equal(const pc_tuning *a, const pc_tuning *b) {
    bool is_same = a->is_there == b->is_there && strcmp(a->source, b->source) == 0 && strcmp(a->only, b->only) == 0 &&
                   strcmp(a->base, b->base) == 0 && a->rows == b->rows && a->configurations == b->configurations &&
                   a->left_out == b->left_out && a->folds == b->folds && a->scatter == b->scatter &&
                   same(&a->before, &b->before, 1, sizeof a->before) && same(&a->after, &b->after, 1, sizeof a->after);
    for (int i = 0; i < PC_TUNED; i++) {
        const pc_tuned_number *x = &a->number[i], *y = &b->number[i];
        is_same = is_same && strcmp(x->name, y->name) == 0 && x->value == y->value &&
                  x->prior_width == y->prior_width && x->standard_error == y->standard_error &&
                  x->is_fitted == y->is_fitted && x->is_determined == y->is_determined;
    }
    return is_same && !isnan(b->after.mean) == !isnan(a->after.mean) && isnan(a->unseen.mean) == isnan(b->unseen.mean);
}

bool profiles_equal(const pc_profile *a, const pc_profile *b) {
    bool counts = a->kernel_count == b->kernel_count && a->transfer_count == b->transfer_count &&
                  a->sample_count == b->sample_count && a->fit_count == b->fit_count &&
                  a->replay_count == b->replay_count;
    if (!counts || !same(&a->device, &b->device, 1, sizeof a->device)) return false;
    for (int64_t i = 0; i < a->fit_count; i++)
        if (!fits_equal(&a->fit[i], &b->fit[i])) return false;
    return same(a->kernel, b->kernel, a->kernel_count, sizeof *a->kernel) &&
           same(a->transfer, b->transfer, a->transfer_count, sizeof *a->transfer) &&
           same(a->sample, b->sample, a->sample_count, sizeof *a->sample) &&
           same(a->replay, b->replay, a->replay_count, sizeof *a->replay) && tunings_equal(&a->tuning, &b->tuning);
}
