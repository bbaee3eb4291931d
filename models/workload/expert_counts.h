/* expert_counts.h: how many tokens went to each expert, layer by layer, as a router counted them: what makes one rank
 * of expert parallelism fuller than another.
 */
#ifndef PC_MODELS_WORKLOAD_EXPERT_COUNTS_H
#define PC_MODELS_WORKLOAD_EXPERT_COUNTS_H

#include "engine/error.h"
#include "models/workload/expert_load.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Owned: pc_expert_counts_free; a zeroed one is fine there. */
typedef struct pc_expert_counts {
    int64_t layers, experts;
    double *share;  /* [layers][experts + 1]: of a layer's choices, those of all experts before this one */
    double *square; /* likewise the sum of these experts' shares squared */
    double largest; /* share of one expert, and where it is */
    int64_t largest_layer, largest_expert;
    uint64_t hash; /* of the shares */
} pc_expert_counts;

/* Of `counts` [layers][experts], which are in any unit: a layer's shares are its own counts over their sum.
 * PC_ERROR_INPUT if a number is negative or no number, or a layer has none above 0. Both sizes are at least 1. */
pc_code pc_expert_counts_make(const double *counts, int64_t layers, int64_t experts, pc_expert_counts *made,
                              pc_error *error);
void pc_expert_counts_free(pc_expert_counts *counts);

/* The expected rows of the fullest rank over the mean of all, in the mean over the layers; or what they stay within as
 * often as the spread's quantile says, each layer as often as any other. The spread's experts are the counts'.
 *
 * Experts lie over ranks in a row, as many on each. Of N tokens with k choices each a rank whose experts have the
 * shares s_i gets N k times their sum in the mean. No token goes to an expert twice: it goes to this one with the
 * chance p_i = k s_i, at most 1. So the rank's variance is N (d - d^2 / D) E / (E - 1). There d is the sum of
 * p_i (1 - p_i) over its experts, and D that over all E (Hajek, 'Asymptotic theory of rejective sampling with varying
 * probabilities from a finite population', 1964). With equal shares that is the hypergeometric variance of
 * pc_expert_load_by_chance. A rank's rows are taken as normal, and ranks as independent. No rank has more rows than
 * tokens times the choices that its experts can take. */
double pc_expert_load_counted(const pc_expert_counts *counts, const pc_expert_spread *spread);

/* The fullest rank's of one layer, drawn from those that the above is the mean of: `u`, evenly distributed between 0
 * and 1, chooses the layer and its place in the layer's distribution. */
double pc_expert_load_drawn_counted(const pc_expert_counts *counts, const pc_expert_spread *spread, double u);

#ifdef __cplusplus
}
#endif
#endif
