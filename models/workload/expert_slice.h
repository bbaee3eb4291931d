/* expert_slice.h: what one rank has of a layer's experts, and how many rows come to it. */
#ifndef PC_MODELS_WORKLOAD_EXPERT_SLICE_H
#define PC_MODELS_WORKLOAD_EXPERT_SLICE_H

#include "models/workload/slice.h"

/* Of a model with experts and a checked cut. `tokens`: that this rank routes, of one microbatch. */
pc_expert_slice pc_expert_slice_of(const pc_model *model, const pc_cut *cut, int64_t tokens);

/* The fullest rank's rows over the mean, as the cut's moe_load says; 1 where one rank has all experts. `tokens`: those
 * of all ranks that share them out. `quantile` as of pc_expert_spread. */
double pc_cut_expert_load(const pc_model *model, const pc_cut *cut, double tokens, double quantile);

/* The tokens of all ranks that share out a layer's experts, of one microbatch and a checked cut; and the load with
 * them, for the cut to know. */
double pc_cut_expert_tokens(const pc_cut *cut);
pc_known_load pc_cut_find_load(const pc_model *model, const pc_cut *cut);

/* Whether that differs from layer to layer; of a checked cut its mean, and one that is drawn (expert_load.h). */
bool pc_cut_expert_load_varies(const pc_model *model, const pc_cut *cut);
double pc_cut_mean_expert_load(const pc_model *model, const pc_cut *cut);
double pc_cut_expert_load_drawn(const pc_model *model, const pc_cut *cut, double u);

#endif
