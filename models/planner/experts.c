/* What experts make of a choice: where their ranks are, and what makes no difference to them. */
#include "models/planner/space.h"

#include "models/training/outline_experts.h"

static pc_cut expert_cut(const pc_plan_choice *choice) {
    return (pc_cut){.tp = choice->tp, .dp = choice->dp, .cp = choice->cp, .ep = choice->ep, .etp = choice->etp};
}

/* Of most models without a look at the cut: it is asked of every point. */
bool plan_folds_experts(const pc_plan_space *space, const pc_plan_choice *choice) {
    const pc_model *model = &space->bases[choice->base].spec.model;
    if (!pc_model_has_experts(model)) return false;
    pc_cut cut = expert_cut(choice);
    return pc_cut_folds_experts(model, &cut);
}

/* Whether this order has the stages of experts where those of the rest are. */
static bool places_experts(const pc_plan_space *space, const pc_plan_choice *choice, pc_rank_order order) {
    const pc_rank_counts counts = {.tp = choice->tp, .pp = choice->pp, .dp = choice->dp, .cp = choice->cp};
    const pc_cut cut = expert_cut(choice);
    pc_ranks ranks, experts;
    if (pc_ranks_place(&space->bases[choice->base].spec.machine, order, counts, &ranks, NULL))
        return true; /* too few GPUs: another rule */
    return pc_ranks_place_experts(&ranks, order, pc_cut_etp(&cut), pc_cut_ep(&cut), &experts, NULL) == PC_OK;
}

bool plan_experts_divide(const pc_plan_space *space, const pc_plan_choice *choice) {
    const pc_experts *experts = &space->bases[choice->base].spec.model.experts;
    const pc_cut cut = expert_cut(choice);
    const int64_t ep = pc_cut_ep(&cut), etp = pc_cut_etp(&cut), all = (int64_t)pc_cut_replicas(&cut) * cut.tp;
    if (experts->num_experts == 0) return ep == 1 && choice->etp <= 1;
    if (!plan_folds_experts(space, choice)) return true;
    return experts->num_experts % ep == 0 && experts->ffn_hidden % etp == 0 && all % (ep * etp) == 0 &&
           places_experts(space, choice, choice->order);
}

pc_rank_order plan_order_of(const pc_plan_space *space, const pc_plan_choice *choice, int digit) {
    if (choice->dp == 0 || !plan_folds_experts(space, choice)) return space->orders[digit];
    if (places_experts(space, choice, space->orders[digit])) return space->orders[digit];
    for (int i = 0; i < space->order_count; i++)
        if (places_experts(space, choice, space->orders[i])) return space->orders[i];
    return space->orders[digit];
}

pc_dispatcher plan_dispatcher_of(const pc_plan_space *space, const pc_plan_choice *choice, int digit) {
    if (space->dispatchers.count == 0) return space->bases[choice->base].spec.cut.dispatcher;
    return (pc_dispatcher)space->dispatchers.values[plan_folds_experts(space, choice) ? digit : 0];
}
