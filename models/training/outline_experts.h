/* outline_experts.h: where the experts of an iteration lie, and what tokens take on their way to them. Private to
 * models/training/. */
#ifndef PC_MODELS_TRAINING_OUTLINE_EXPERTS_H
#define PC_MODELS_TRAINING_OUTLINE_EXPERTS_H

#include "models/training/outline.h"

/* Whether a rank has other experts, or other pieces of them, than the ranks that it shares all else with: then experts
 * have groups of their own, for tokens and for gradients. */
bool pc_cut_folds_experts(const pc_model *model, const pc_cut *cut);

/* PC_ERROR_INPUT and the rule that the grid of experts breaks (pc_ranks_place_experts), or that of a setting which
 * experts of their own groups do not go with. `ranks` are those of the spec. */
pc_code pc_outline_check_experts(const pc_iteration_spec *spec, const pc_cut *cut, const pc_ranks *ranks,
                                 pc_error *error);

/* Of an outline whose spec, cut and ranks are there, and which has experts that are folded. */
pc_expert_places pc_outline_place_experts(const pc_outline *outline);

/* Replicas in a row that share experts, and so wait for each other in exchanges; 1 where each has its own. The ranks of
 * a replica's stage are tp x cp, those that share experts etp x ep: so many replicas as both come out even. */
int pc_cut_replicas_in_step(const pc_model *model, const pc_cut *cut);

/* A dispatch or a combine, alone. */
pc_collective_course pc_outline_exchange(const pc_outline *outline, const pc_operation *operation);

#endif
