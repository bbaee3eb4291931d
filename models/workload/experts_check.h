/* experts_check.h: what experts and latent attention ask of a model and a cut. Private to workload. */
#ifndef PC_MODELS_WORKLOAD_EXPERTS_CHECK_H
#define PC_MODELS_WORKLOAD_EXPERTS_CHECK_H

#include "models/workload/cut.h"
#include "models/workload/model.h"

/* PC_ERROR_INPUT and the rule: "moe_router_topk is 9; expected 1 to the 8 of num_experts". Zeros pass. */
pc_code pc_experts_check(const pc_experts *experts, pc_error *error);
pc_code pc_mla_check(const pc_model *model, pc_error *error);

/* Likewise of a checked model with experts, latent attention or multi-token prediction: what divides what, and what
 * does not go with them. */
pc_code pc_experts_check_cut(const pc_model *model, const pc_cut *cut, pc_error *error);

#endif
