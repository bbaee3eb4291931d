#include "calib/profile/profile_private.h"

/* ---- words ---- */

static const char *const forms[] = {"transfer", "memory", "gemm",     "attention", "grouped_gemm",
                                    "moe",      "law",    "dispatch", "flash",     NULL};
static const char *const caches[] = {"cold", "hot", NULL};
static const char *const roles[] = {"forward", "input_gradient", "weight_gradient", NULL};
/* As pc_operation_kind; profiles have kernels alone, but the numbers are those of all kinds. */
static const char *const kinds[] = {
    "gemm",       "attention",      "norm",       "elementwise", "optimizer", "grouped_gemm", "all_reduce",
    "all_gather", "reduce_scatter", "all_to_all", "ring",        "dispatch",  "combine",      NULL};

_Static_assert(sizeof forms / sizeof *forms == PC_FIT_FORMS + 1, "a word for every form");
_Static_assert(sizeof caches / sizeof *caches == PC_CACHE_STATES + 1, "a word for every state");
_Static_assert(sizeof kinds / sizeof *kinds == PC_OPERATION_KINDS + 1, "a word for every kind");
_Static_assert(sizeof(pc_operation_kind) == sizeof(int32_t) && sizeof(pc_fit_form) == sizeof(int32_t),
               "enums are stored and read as whole numbers of 32 bits");

const char *pc_fit_form_name(pc_fit_form form) {
    return forms[form];
}

/* ---- fields ---- */

#define SIZE(row, member) sizeof(((row *)NULL)->member)
#define FIELD(row, column, member, kind, unit_text, text)                                                              \
    {                                                                                                                  \
        .name = column, .unit = unit_text, .description = text, .type = PC_FIELD_##kind,                               \
        .place = offsetof(row, member), .size = SIZE(row, member),                                                     \
        .most = PC_FIELD_##kind == PC_FIELD_INT32 ? INT32_MAX : INT64_MAX                                              \
    }
#define CHOICE(row, column, member, words, text)                                                                       \
    {                                                                                                                  \
        .name = column, .unit = "", .description = text, .type = PC_FIELD_CHOICE, .place = offsetof(row, member),      \
        .choices = words                                                                                               \
    }
#define FROM(low, row, column, member, kind, unit_text, text)                                                          \
    {                                                                                                                  \
        .name = column, .unit = unit_text, .description = text, .type = PC_FIELD_##kind,                               \
        .place = offsetof(row, member), .least = low,                                                                  \
        .most = PC_FIELD_##kind == PC_FIELD_INT32 ? INT32_MAX : INT64_MAX                                              \
    }
/* Since version 3. */
#define LATER(row, column, member, kind, text)                                                                         \
    {                                                                                                                  \
        .name = column, .unit = PC_FIELD_##kind == PC_FIELD_TEXT ? "" : "1", .description = text,                      \
        .type = PC_FIELD_##kind, .place = offsetof(row, member), .size = SIZE(row, member),                            \
        .most = PC_FIELD_##kind == PC_FIELD_INT32 ? INT32_MAX : INT64_MAX, .may_lack = true                            \
    }
#define FIELDS(array, type)                                                                                            \
    { array, sizeof array / sizeof *array, sizeof(type) }

#define D(column, member, kind, unit, text) FIELD(pc_profile_device, column, member, kind, unit, text)
static const pc_field device_fields[] = {
    D("name", name, TEXT, "", "as its driver says"),
    D("gpu", gpu, TEXT, "", "the GPU of the library that it is"),
    D("origin", origin, TEXT, "", "where the measurements come from"),
    D("pipecast", pipecast, TEXT, "", "version that measured"),
    D("driver", driver, TEXT, "", "version"),
    D("runtime", runtime, TEXT, "", "version"),
    D("blas", blas, TEXT, "", "version"),
    D("nccl", nccl, TEXT, "", "version"),
    D("attention", attention, TEXT, "", "version of the attention library"),
    D("compute_major", compute_major, INT32, "1", "compute capability"),
    D("compute_minor", compute_minor, INT32, "1", "compute capability"),
    D("processors", processors, INT32, "1", "SMs, CUs"),
    D("memory_bytes", memory_bytes, INT64, "B", "as the driver reports it"),
    D("reserved_bytes", reserved_bytes, INT64, "B", "of it in use before anything was allocated"),
    D("l2_bytes", l2_bytes, INT64, "B", "cache"),
    D("sm_clock_hz", sm_clock_hz, ANY, "Hz", "settled, under load"),
    D("copy_bytes_per_s", copy_bytes_per_s, REAL, "B/s", "device-to-device copy, read and written"),
    D("gemm_flops_per_s", gemm_flops_per_s, REAL, "FLOP/s", "best large bf16 product"),
    D("launch_s", launch_s, REAL, "s", "host time a kernel launch"),
    D("is_complete", is_complete, FLAG, "1", "0: interrupted"),
};

#define STATISTICS(type)                                                                                               \
    FROM(0, type, "samples", seconds.count, INT64, "1", "how many times it was measured"),                             \
        FIELD(type, "median_s", seconds.median, REAL, "s", "median of the samples"),                                   \
        FIELD(type, "q1_s", seconds.q1, ANY, "s", "first quartile"),                                                   \
        FIELD(type, "q3_s", seconds.q3, ANY, "s", "third quartile"),                                                   \
        FIELD(type, "p5_s", seconds.p5, ANY, "s", "5th percentile"),                                                   \
        FIELD(type, "p95_s", seconds.p95, ANY, "s", "95th percentile"),                                                \
        FIELD(type, "least_s", seconds.least, ANY, "s", "least of the samples")

#define K(column, member, kind, unit, text) FIELD(pc_kernel_measurement, column, member, kind, unit, text)
#define KL(column, member, kind, text)      LATER(pc_kernel_measurement, column, member, kind, text)
static const pc_field kernel_fields[] = {
    K("kernel", kernel, TEXT, "", "family of the kernel"),
    CHOICE(pc_kernel_measurement, "kind", kind, kinds, "kind of the operation"),
    CHOICE(pc_kernel_measurement, "role", role, roles, "pass that it belongs to"),
    K("dtype", dtype, TEXT, "", "of activations and weights"),
    K("epilogue", epilogue, TEXT, "", "what is fused behind a product"),
    K("is_causal", is_causal, FLAG, "1", "attention with a causal mask"),
    K("accumulates", accumulates, FLAG, "1", "adds to its output"),
    K("batch", batch, INT64, "1", "independent products; attention: sequences times heads"),
    K("m", m, INT64, "1", "rows; attention: queries"),
    K("n", n, INT64, "1", "columns; attention: keys"),
    K("k", k, INT64, "1", "inner dimension; attention: of a head"),
    K("heads", heads, INT64, "1", "query heads"),
    K("kv_heads", kv_heads, INT64, "1", "key and value heads"),
    K("flops", flops, INT64, "FLOP", "of one run"),
    K("bytes", bytes, INT64, "B", "read and written, each tensor once"),
    CHOICE(pc_kernel_measurement, "cache", cache, caches, "whether buffers were in the cache"),
    K("in_graph", in_graph, FLAG, "1", "launched from a graph"),
    STATISTICS(pc_kernel_measurement),
    K("sm_clock_hz", sm_clock_hz, ANY, "Hz", "at the time"),
    K("is_throttled", is_throttled, FLAG, "1", "power or heat kept the clock down"),
    K("function", function, TEXT, "", "what ran"),
    K("grid_x", grid[0], INT32, "1", "blocks"),
    K("grid_y", grid[1], INT32, "1", "blocks"),
    K("grid_z", grid[2], INT32, "1", "blocks"),
    K("block_x", block[0], INT32, "1", "threads"),
    K("block_y", block[1], INT32, "1", "threads"),
    K("block_z", block[2], INT32, "1", "threads"),
    FROM(-1, pc_kernel_measurement, "registers", registers, INT32, "1", "a thread; -1 where unknown"),
    FROM(-1, pc_kernel_measurement, "shared_bytes", shared_bytes, INT64, "B", "a block; -1 where unknown"),
    K("check_error", check_error, ANY, "1", "of the check, as a fraction of what is allowed"),
    FROM(-1, pc_kernel_measurement, "first_sample", first_sample, INT64, "1", "in samples/seconds; -1: none kept"),
    KL("out_dtype", out_dtype, TEXT, "of the output; empty: as the role has it"),
    KL("library", library, TEXT, "what computed it"),
    KL("library_version", library_version, TEXT, "its version"),
    KL("site", site, TEXT, "who measured it, on what system"),
    KL("variant", variant, TEXT, "of an expert layer: kernel, distribution of tokens"),
    KL("window", window, INT64, "of attention: keys that a query sees; 0: all"),
    KL("experts", experts, INT64, "of an expert layer: all experts"),
    KL("topk", topk, INT64, "of an expert layer: experts a token"),
    KL("moe_tp", moe_tp, INT64, "of an expert layer: ranks that share an expert"),
    KL("moe_ep", moe_ep, INT64, "of an expert layer: ranks among which experts lie"),
};

#define T(column, member, kind, unit, text) FIELD(pc_transfer_measurement, column, member, kind, unit, text)
#define TL(column, member, kind, text)      LATER(pc_transfer_measurement, column, member, kind, text)
static const pc_field transfer_fields[] = {
    T("collective", collective, TEXT, "", "what was done"),
    T("link", link, TEXT, "", "over what"),
    T("ranks", ranks, INT32, "1", "of the group"),
    T("nodes", nodes, INT32, "1", "on which they lay"),
    T("is_in_place", is_in_place, FLAG, "1", "output over input"),
    T("size_bytes", size_bytes, REAL, "B", "the whole tensor, as nccl-tests count it"),
    STATISTICS(pc_transfer_measurement),
    T("algbw", algbw, ANY, "B/s", "size over time"),
    T("busbw", busbw, ANY, "B/s", "as nccl-tests define it"),
    FROM(-1, pc_transfer_measurement, "wrong", wrong, INT64, "1", "elements; -1: not checked"),
    FROM(-1, pc_transfer_measurement, "first_sample", first_sample, INT64, "1", "in samples/seconds; -1: none kept"),
    TL("dtype", dtype, TEXT, "of what is sent"),
    TL("library", library, TEXT, "what sent it"),
    TL("library_version", library_version, TEXT, "its version"),
    TL("site", site, TEXT, "who measured it, on what system"),
    TL("hidden", hidden, INT64, "of dispatch and combine: numbers a token"),
    TL("tokens", tokens, INT64, "of dispatch and combine: tokens a rank"),
    TL("topk", topk, INT64, "of dispatch and combine: experts a token"),
    TL("experts", experts, INT64, "of dispatch and combine: all experts"),
    TL("sms", sms, INT32, "processors that dispatch or combine keeps busy; 0: not known"),
};

#define F(column, member, kind, unit, text) FIELD(pc_fit, column, member, kind, unit, text)
static const pc_field fit_fields[] = {
    CHOICE(pc_fit, "form", key.form, forms, "form of the model"),
    F("subject", key.subject, TEXT, "", "kernel family or collective"),
    F("dtype", key.dtype, TEXT, "", "of a kernel"),
    F("link", key.link, TEXT, "", "of a transfer"),
    CHOICE(pc_fit, "cache", key.cache, caches, "whether buffers were in the cache"),
    F("ranks", key.ranks, INT32, "1", "of a transfer"),
    F("nodes", key.nodes, INT32, "1", "of a transfer"),
    F("is_causal", key.is_causal, FLAG, "1", "of attention"),
    F("processors", processors, INT32, "1", "of the device, for waves"),
    F("parameter_count", parameter_count, INT32, "1", "how many parameters"),
    F("dimensions", dimensions, INT32, "1", "how many x has"),
    F("residual_deviation", residual_deviation, REAL, "1", "robust, of log(seconds)"),
    F("surface_length", surface_length, REAL, "1", "of the residual surface, in log x"),
    F("surface_amplitude", surface_amplitude, REAL, "1", "of the residual surface"),
    F("surface_noise", surface_noise, REAL, "1", "of the residual surface"),
    F("cv_median", cv_median, ANY, "1", "cross-validation: median relative error"),
    F("cv_p95", cv_p95, ANY, "1", "cross-validation: 95th percentile"),
    F("cv_coverage", cv_coverage, ANY, "1", "cross-validation: share within the 95% interval"),
};

/* Of fits since version 3: who measured, with what; files before have none of them. */
static const pc_field fit_origin_fields[] = {
    F("library", key.library, TEXT, "", "what computed or sent"),
    F("site", key.site, TEXT, "", "who measured"),
    F("out_dtype", key.out_dtype, TEXT, "", "of the output, where it is not that of the inputs"),
    F("variant", key.variant, TEXT, "", "of an expert layer: kernel and distribution"),
    F("head_dim", key.head_dim, INT32, "1", "of attention"),
    F("window", key.window, INT64, "1", "of attention: keys that a query sees; 0: all"),
    F("grid_axes", grid.axes, INT32, "1", "of the smoothed residuals; 0: there are none"),
    F("grid_deviation", grid.deviation, REAL, "1", "of the smoothed residuals, of log(seconds)"),
};

#define R(column, member, kind, unit, text) FIELD(pc_replay_report, column, member, kind, unit, text)
static const pc_field replay_fields[] = {
    R("scenario", scenario, TEXT, "", "that was replayed"),
    R("schedule", schedule, TEXT, "", "its schedule"),
    R("stage", stage, INT32, "1", "which stage"),
    R("passes", passes, INT64, "1", "in all"),
    R("measured_s", measured_s, REAL, "s", "sum of its passes"),
    R("simulated_s", simulated_s, REAL, "s", "the same simulated"),
    R("measured_peak_bytes", measured_peak_bytes, INT64, "B", "peak memory"),
    R("simulated_peak_bytes", simulated_peak_bytes, INT64, "B", "the same simulated"),
};

#define P(column, member, kind, unit, text) FIELD(pc_replay_pass_report, column, member, kind, unit, text)
static const pc_field pass_fields[] = {
    P("kind", kind, TEXT, "", "F, B, W, BW or R"),
    P("count", count, INT64, "1", "passes of the kind"),
    P("measured_s", measured_s, REAL, "s", "mean of a pass"),
    P("simulated_s", simulated_s, REAL, "s", "mean of a pass"),
};

#define U(column, member, kind, unit, text) FIELD(pc_tuning, column, member, kind, unit, text)
#define E(column, member, text)             FROM(-1, pc_tuning, column, member, ANY, "1", text)
static const pc_field tuning_fields[] = {
    U("pipecast", pipecast, TEXT, "", "version that fitted"),
    U("source", source, TEXT, "", "where the runs are from"),
    U("only", only, TEXT, "", "which of them; empty: all"),
    U("base", base, TEXT, "", "hash of the profile that it is over; empty: the machine's file"),
    U("rows", rows, INT64, "1", "runs that it was fitted to"),
    U("configurations", configurations, INT64, "1", "different ones of them"),
    U("left_out", left_out, INT64, "1", "runs that it was not fitted to"),
    U("folds", folds, INT64, "1", "of the cross-validation; 0: too few configurations"),
    U("scatter", scatter, REAL, "1", "robust, of log(forecast / measured), that is left"),
    E("before_mean", before.mean, "mean size of forecast over measured, less one, as the base has it"),
    E("before_median", before.median, "the median of these"),
    E("before_bias", before.bias, "the mean error"),
    E("after_mean", after.mean, "the same with what was fitted"),
    E("after_median", after.median, "the same with what was fitted"),
    E("after_bias", after.bias, "the same with what was fitted"),
    E("unseen_mean", unseen.mean, "the same of configurations that the fit had not seen"),
    E("unseen_median", unseen.median, "the same of configurations that the fit had not seen"),
    E("unseen_bias", unseen.bias, "the same of configurations that the fit had not seen"),
};

#define N(column, member, kind, unit, text) FIELD(pc_tuned_number, column, member, kind, unit, text)
static const pc_field tuned_fields[] = {
    N("name", name, TEXT, "", "which number"),
    FROM(-1000, pc_tuned_number, "value", value, REAL, "", "a factor, or what is added"),
    N("prior_width", prior_width, REAL, "", "standard deviation before any run was seen: of a factor its logarithm's"),
    N("standard_error", standard_error, REAL, "", "of the value; 0: not fitted"),
    N("is_fitted", is_fitted, FLAG, "1", "0: left as the base has it"),
    N("is_determined", is_determined, FLAG, "1", "whether the runs say more of it than was known before"),
};

const pc_fields pc_profile_device_fields = FIELDS(device_fields, pc_profile_device);
const pc_fields pc_profile_kernel_fields = FIELDS(kernel_fields, pc_kernel_measurement);
const pc_fields pc_profile_transfer_fields = FIELDS(transfer_fields, pc_transfer_measurement);
const pc_fields pc_profile_fit_fields = FIELDS(fit_fields, pc_fit);
const pc_fields pc_profile_fit_origin_fields = FIELDS(fit_origin_fields, pc_fit);
const pc_fields pc_profile_replay_fields = FIELDS(replay_fields, pc_replay_report);
const pc_fields pc_profile_pass_fields = FIELDS(pass_fields, pc_replay_pass_report);
const pc_fields pc_profile_tuning_fields = FIELDS(tuning_fields, pc_tuning);
const pc_fields pc_profile_tuned_fields = FIELDS(tuned_fields, pc_tuned_number);
