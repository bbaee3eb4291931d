#include "tests/iteration_experts.h"

#include "models/training/outline_experts.h"

static bool toss(test_random *random) {
    return test_between(random, 0, 1);
}

static void draw_model(test_random *random, pc_model *model) {
    model->experts = (pc_experts){.num_experts = 8,
                                  .topk = test_between(random, 1, 3),
                                  .ffn_hidden = 512,
                                  .shared_ffn_hidden = toss(random) ? 256 : 0,
                                  .first_dense = test_between(random, 0, 3),
                                  .layer_freq = test_between(random, 1, 3)};
    if (toss(random)) {
        model->experts.router_groups = 4;
        model->experts.router_group_topk = 2;
    }
    if (toss(random)) model->experts.capacity_factor = 0.5 * (double)test_between(random, 1, 4);
    model->experts.pads_to_capacity = model->experts.capacity_factor > 0 && toss(random);
}

static void draw_latent(pc_model *model) {
    model->mla = (pc_mla){64, 128, 64, 32, 64};
    model->head_dim = 96;
    model->kv_heads = model->heads;
    model->has_bias = model->has_qkv_bias = false;
    model->qk_norm = PC_QK_NORM_NONE;
}

static void draw_cut(test_random *random, pc_cut *cut) {
    if (pc_recompute_is_policy(cut->recompute)) cut->recompute = PC_RECOMPUTE_FULL;
    cut->sequence_parallel = cut->tp > 1;
    cut->ep = 1 << test_between(random, 0, 3);
    cut->etp = (int)test_between(random, 0, 2);
    cut->dispatcher = (pc_dispatcher)test_between(random, 0, PC_DISPATCHER_HYBRIDEP);
    cut->fp8_dispatch = cut->dispatcher >= PC_DISPATCHER_DEEPEP && toss(random);
    cut->moe_load = (pc_moe_load)test_between(random, 0, PC_MOE_LOAD_POWER);
    cut->moe_load_exponent = 0.5 * (double)test_between(random, 1, 4);
}

static bool can_be(const pc_iteration_spec *spec) {
    const pc_cut *cut = &spec->cut;
    pc_ranks ranks;
    if (pc_cut_check(&spec->model, cut, 1, NULL)) return false;
    if (pc_ranks_place(&spec->machine, spec->order, (pc_rank_counts){cut->tp, cut->pp, cut->dp, cut->cp}, &ranks, NULL))
        return false;
    return pc_outline_check_experts(spec, cut, &ranks, NULL) == PC_OK;
}

bool random_folded_experts(const test_random *from, pc_iteration_spec *spec) {
    test_random own = {from->state ^ 25};
    pc_iteration_spec made = *spec;
    if (toss(&own) || spec->cut.lora.rank > 0 || pc_placement_has_slices(spec->generator->placement)) return false;
    bool is_latent = toss(&own);
    draw_model(&own, &made.model);
    draw_cut(&own, &made.cut);
    if (made.generator->barriers == PC_BARRIERS_NONE) made.model.mtp_layers = test_between(&own, 0, 1);
    if (is_latent) draw_latent(&made.model);
    for (; made.cut.ep > 1 && !can_be(&made); made.cut.ep /= 2) continue;
    if (!can_be(&made)) made.cut.etp = 0;
    if (!can_be(&made)) return false;
    *spec = made;
    return pc_cut_folds_experts(&spec->model, &spec->cut);
}
