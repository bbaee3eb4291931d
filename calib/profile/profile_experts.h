/* profile_experts.h: what a profile says of experts: grouped products, and a whole layer forward.
 *
 * Pure functions of a profile's fits; thread-safe, without allocation.
 */
#ifndef PC_CALIB_PROFILE_PROFILE_EXPERTS_H
#define PC_CALIB_PROFILE_PROFILE_EXPERTS_H

#include "calib/profile/profile.h"
#include "models/cost/cost.h"
#include "models/workload/format.h"

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What a measurement of experts is to a fit: sets form, subject, variant and x. Of others it does nothing and returns
 * false. The x of grouped products are those of the product itself, {groups, m, n, k}. The gradient of the input swaps
 * the table's n and k. That of the weights has n x k outputs, with m to sum over. */
bool pc_experts_point(const pc_kernel_measurement *kernel, pc_fit_key *key, double x[PC_FIT_DIMENSIONS]);

/* The fits of a profile that answer; each the first of its kind, cold ones before hot ones, borrowed, NULL if there is
 * none. */
typedef struct pc_experts_fits {
    const pc_fit *grouped[PC_PRODUCT_FORMATS][3];      /* by role; of the weights' gradient with sums in fp32 */
    const pc_fit *grouped_sums_16[PC_PRODUCT_FORMATS]; /* the weights' gradient with sums in 16 bits */
    const pc_fit *plain[PC_PRODUCT_FORMATS][3];        /* products of one matrix: instead of grouped ones */
    const pc_fit *layer[PC_PRODUCT_FORMATS][2];        /* a whole layer forward; 1: with a gate */
} pc_experts_fits;

/* `profile` outlives it. */
void pc_experts_choose(const pc_profile *profile, pc_experts_fits *fits);

/* `groups` products of m x k by k x n, one for each expert of this rank. */
typedef struct pc_grouped_product {
    pc_gemm_role role;
    pc_product_format format;
    double groups, m, n, k;
    bool has_sums_16; /* weights' gradients are summed in 16 bits; otherwise fp32 */
} pc_grouped_product;

/* Seconds of a grouped product. Where none was measured on this GPU in this format, they come from its plain products:
 * all groups as one product, and the groups' own bytes at the datasheet's rate. Each counts by what the B200's grouped
 * products took over its plain ones; the file has the table and its source. False if the profile has neither. Standard
 * errors have the spread of that rule in them. */
bool pc_experts_product(const pc_experts_fits *fits, const pc_grouped_product *product, double memory_bytes_per_s,
                        pc_estimate *estimate);

/* A layer of experts on one rank, forward, without its dispatch and combine. */
typedef struct pc_experts_layer {
    pc_product_format format;
    double tokens, hidden, inter, topk, experts; /* of the whole layer; tokens of all ranks that share the experts */
    double tp, ep;                               /* ranks that cut an expert, and that share out experts */
    double skew;                                 /* of the fullest rank (pc_expert_load); 1: balanced */
    bool has_gate;
} pc_experts_layer;

/* Seconds of the fullest rank: measured layers; otherwise its two grouped products and the rows' bytes. False if the
 * profile has neither. */
bool pc_experts_forward(const pc_experts_fits *fits, const pc_experts_layer *layer, double memory_bytes_per_s,
                        pc_estimate *estimate);

#ifdef __cplusplus
}
#endif
#endif
