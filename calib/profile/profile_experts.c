#include "calib/profile/profile_experts.h"

#include "models/workload/expert_load.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- measurements ---- */

static const char *const grouped_subjects[] = {"grouped_gemm_forward", "grouped_gemm_input_gradient",
                                               "grouped_gemm_weight_gradient"};
static const char *const plain_subjects[] = {"gemm_forward", "gemm_input_gradient", "gemm_weight_gradient"};
static const char layer_subject[] = "moe_layer";

static const char power_law[] = "power_law_";

/* The last word of a layer's variant: how its tokens were spread. NULL: it does not say. */
static const char *distribution_of(const char *variant) {
    const char *space = strrchr(variant, ' '), *word = space ? space + 1 : variant;
    bool is_known = strcmp(word, "balanced") == 0 || strncmp(word, power_law, sizeof power_law - 1) == 0;
    return is_known ? word : NULL;
}

/* Keys are compared byte by byte: nothing may stay behind the text. */
static void set_text(char *to, size_t size, const char *from, int length) {
    memset(to, 0, size);
    snprintf(to, size, "%.*s", length, from);
}

/* 0: balanced. */
static double exponent_of(const char *distribution) {
    if (!distribution || strncmp(distribution, power_law, sizeof power_law - 1) != 0) return 0.0;
    double exponent = strtod(distribution + sizeof power_law - 1, NULL);
    return exponent > 0.0 && exponent < 16.0 ? exponent : 0.0;
}

static void point_of_layer(const pc_kernel_measurement *kernel, pc_fit_key *key, double *x) {
    const char *distribution = distribution_of(kernel->variant);
    double experts = (double)kernel->experts, ranks = (double)kernel->moe_ep, tokens = (double)kernel->m;
    pc_expert_spread spread = {experts, ranks, (double)kernel->topk, tokens, exponent_of(distribution), 0};
    double skew = pc_expert_load(&spread);
    int kept = distribution ? (int)(distribution - kernel->variant) : (int)strlen(kernel->variant);
    while (kept > 0 && kernel->variant[kept - 1] == ' ') kept--;
    key->form = PC_FIT_MOE;
    set_text(key->variant, sizeof key->variant, kernel->variant, kept);
    x[0] = skew * tokens * (double)kernel->topk / experts;
    x[1] = experts / ranks;
    x[2] = (double)kernel->k;
    x[3] = (double)kernel->n / (double)kernel->moe_tp;
    x[4] = skew;
}

static void point_of_grouped(const pc_kernel_measurement *kernel, pc_fit_key *key, double *x) {
    double m = (double)kernel->m, n = (double)kernel->n, k = (double)kernel->k;
    const double shape[][3] = {
        [PC_GEMM_FORWARD] = {m, n, k}, [PC_GEMM_INPUT_GRADIENT] = {m, k, n}, [PC_GEMM_WEIGHT_GRADIENT] = {n, k, m}};
    key->form = PC_FIT_GROUPED_GEMM;
    bool is_weight = kernel->role == PC_GEMM_WEIGHT_GRADIENT;
    set_text(key->out_dtype, sizeof key->out_dtype, kernel->out_dtype, is_weight ? (int)sizeof key->out_dtype : 0);
    x[0] = (double)kernel->batch;
    memcpy(x + 1, shape[kernel->role], sizeof shape[0]);
}

bool pc_experts_point(const pc_kernel_measurement *kernel, pc_fit_key *key, double x[PC_FIT_DIMENSIONS]) {
    for (int d = 0; d < PC_FIT_DIMENSIONS; d++) x[d] = 1.0;
    if (strcmp(kernel->kernel, layer_subject) == 0) {
        point_of_layer(kernel, key, x);
        return true;
    }
    bool is_grouped = strncmp(kernel->kernel, "grouped_gemm_", 13) == 0;
    if (is_grouped) point_of_grouped(kernel, key, x);
    return is_grouped;
}

/* ---- which fit answers ---- */

/* What a kernel reads was written long before: a cold fit before a hot one. */
static void keep_first(const pc_fit **place, const pc_fit *fit) {
    bool is_colder = *place && (*place)->key.cache != PC_CACHE_COLD && fit->key.cache == PC_CACHE_COLD;
    if (!*place || is_colder) *place = fit;
}

static void keep_role(const pc_fit *fit, const char *const subjects[3], const pc_fit **place) {
    for (int role = 0; role < 3; role++)
        if (strcmp(fit->key.subject, subjects[role]) == 0) keep_first(&place[role], fit);
}

static bool has_sums_16(const pc_fit *fit) {
    const char *type = fit->key.out_dtype;
    return strcmp(type, "bf16") == 0 || strcmp(type, "fp16") == 0;
}

static void choose(const pc_fit *fit, pc_product_format format, pc_experts_fits *fits) {
    if (fit->key.form == PC_FIT_GEMM) keep_role(fit, plain_subjects, fits->plain[format]);
    if (fit->key.form == PC_FIT_MOE)
        keep_first(&fits->layer[format][strstr(fit->key.variant, "nongated") == NULL], fit);
    if (fit->key.form != PC_FIT_GROUPED_GEMM) return;
    if (strcmp(fit->key.subject, grouped_subjects[PC_GEMM_WEIGHT_GRADIENT]) == 0 && has_sums_16(fit))
        keep_first(&fits->grouped_sums_16[format], fit);
    else
        keep_role(fit, grouped_subjects, fits->grouped[format]);
}

void pc_experts_choose(const pc_profile *profile, pc_experts_fits *fits) {
    pc_product_format format;
    memset(fits, 0, sizeof *fits);
    for (int64_t i = 0; i < profile->fit_count; i++)
        if (pc_product_format_find(profile->fit[i].key.dtype, &format)) choose(&profile->fit[i], format, fits);
}

/* ---- grouped products ---- */

static const pc_fit *measured_fit(const pc_experts_fits *fits, const pc_grouped_product *p) {
    bool is_16 = p->role == PC_GEMM_WEIGHT_GRADIENT && p->has_sums_16;
    return is_16 ? fits->grouped_sums_16[p->format] : fits->grouped[p->format][p->role];
}

/* What a loop of products of a group each takes over one product of all rows: fitted to the 108 grouped products of one
 * B200 in bf16 beside the fits of its plain ones (SimuMax, b200_bf16_ceperm: TransformerEngine's grouped linear). Bytes
 * are over the datasheet's 8 TB/s: they are loaded group by group, beside other groups' products at best. The host
 * needs 9 us for a group. The rule holds 5 to 7% in the middle and 12 to 27% at the 95th percentile of those rows. */
typedef struct grouped_rule {
    double product, bytes, group_s, spread; /* spread: of the logarithm */
} grouped_rule;

static grouped_rule rule_of(const pc_grouped_product *p) {
    static const grouped_rule rules[] = {[PC_GEMM_FORWARD] = {1.03, 2.05, 9.2e-6, 0.10},
                                         [PC_GEMM_INPUT_GRADIENT] = {1.03, 2.48, 8.7e-6, 0.14},
                                         [PC_GEMM_WEIGHT_GRADIENT] = {1.18, 1.45, 9.0e-6, 0.08}};
    static const grouped_rule sums_16 = {1.33, 1.53, 8.8e-6, 0.08};
    return p->role == PC_GEMM_WEIGHT_GRADIENT && p->has_sums_16 ? sums_16 : rules[p->role];
}

static double product_bytes(const pc_grouped_product *p) {
    double element = pc_product_format_bytes_of_32(p->format) / 32.0, output = 2.0;
    if (p->role == PC_GEMM_WEIGHT_GRADIENT) output = p->has_sums_16 ? 4.0 : 8.0; /* read and written */
    return p->groups * (element * p->k * (p->m + p->n) + output * p->m * p->n);
}

/* All rows as one product: of the weights' gradient the rows are what is summed over. */
static pc_estimate as_one(const pc_fit *fit, const pc_grouped_product *p) {
    bool is_weight = p->role == PC_GEMM_WEIGHT_GRADIENT;
    const double x[PC_FIT_DIMENSIONS] = {1.0, is_weight ? p->m : p->groups * p->m, p->n,
                                         is_weight ? p->groups * p->k : p->k};
    return pc_fit_predict_sustained(fit, x);
}

static pc_estimate by_rule(const pc_fit *plain, const pc_grouped_product *p, double memory_bytes_per_s) {
    grouped_rule rule = rule_of(p);
    pc_estimate one = as_one(plain, p);
    double product = rule.product * one.seconds, bytes = rule.bytes * product_bytes(p) / memory_bytes_per_s;
    double device = hypot(product, bytes), seconds = fmax(device, p->groups * rule.group_s);
    double known = rule.product * one.standard_error * product / device, spread = rule.spread * seconds;
    return (pc_estimate){seconds, hypot(known, spread)};
}

bool pc_experts_product(const pc_experts_fits *fits, const pc_grouped_product *product, double memory_bytes_per_s,
                        pc_estimate *estimate) {
    const pc_fit *fit = measured_fit(fits, product), *plain = fits->plain[product->format][product->role];
    const double x[PC_FIT_DIMENSIONS] = {product->groups, product->m, product->n, product->k};
    if (!plain) plain = fits->plain[product->format][PC_GEMM_FORWARD];
    if (!fit && !plain) return false;
    *estimate = fit ? pc_fit_predict_sustained(fit, x) : by_rule(plain, product, memory_bytes_per_s);
    return true;
}

/* ---- a layer ---- */

/* Tables of layers are of inference: a layer's rows are sorted to their experts, and back. */
static pc_estimate layer_estimate(const pc_fit *fit, const pc_experts_layer *l) {
    const double x[PC_FIT_DIMENSIONS] = {l->skew * l->tokens * l->topk / l->experts, l->experts / l->ep, l->hidden,
                                         l->inter / l->tp, l->skew};
    return pc_fit_predict_sustained(fit, x);
}

bool pc_experts_forward(const pc_experts_fits *fits, const pc_experts_layer *layer, double memory_bytes_per_s,
                        pc_estimate *estimate) {
    const pc_fit *fit = fits->layer[layer->format][layer->has_gate];
    if (fit) {
        *estimate = layer_estimate(fit, layer);
        return true;
    }
    double groups = layer->experts / layer->ep, rows = layer->skew * layer->tokens * layer->topk / layer->experts;
    double inter = layer->inter / layer->tp, matrices = layer->has_gate ? 2.0 : 1.0;
    pc_grouped_product up = {PC_GEMM_FORWARD, layer->format, groups, rows, matrices * inter, layer->hidden, false};
    pc_grouped_product down = {PC_GEMM_FORWARD, layer->format, groups, rows, layer->hidden, inter, false};
    pc_estimate of_up, of_down;
    if (!pc_experts_product(fits, &up, memory_bytes_per_s, &of_up)) return false;
    if (!pc_experts_product(fits, &down, memory_bytes_per_s, &of_down)) return false;
    /* Rows in 16 bits, read and written on the way in and out; the activation function's, read and written. */
    double moved = 2.0 * groups * rows * (4.0 * layer->hidden + (matrices + 1.0) * inter) / memory_bytes_per_s;
    *estimate = (pc_estimate){of_up.seconds + of_down.seconds + moved,
                              of_up.standard_error + of_down.standard_error + 0.25 * moved};
    return true;
}
