#include "tests/planner_example.h"

#include "engine/numbers.h"
#include "tests/random_machine.h"
#include "tests/random_model.h"

#include <math.h>

static bool toss(test_random *random) {
    return test_between(random, 0, 1);
}

/* A time that shows: passes of some milliseconds, transfers of some tenths of that. */
static pc_model draw_model(test_random *random, pc_cut *cut) {
    pc_model model = random_model(random);
    model.layers = toss(random) ? 10 : 12; /* over 3 parts as `ends`, as `even`; over 4 as both others */
    model.hidden = 8 * model.heads * (1 + model.hidden % 4);
    model.ffn_hidden = 8 * (1 + model.ffn_hidden % 1000);
    model.vocab %= 20000;
    model.vocab++;
    cut->seq_len = 8 * test_between(random, 8, 128);
    return model;
}

static pc_machine draw_machine(test_random *random) {
    pc_machine machine = random_machine(random);
    machine.gpu.kernel_s = toss(random) ? 2e-6 : 0;
    machine.gpu.launch_s = toss(random) ? 5e-6 : 0;
    machine.gpu.gemm_ramp_k = (double)test_between(random, 0, 100);
    machine.speed_variation = toss(random) ? 0 : 0.02;
    machine.network.bandwidth_bytes_per_s /= test_between(random, 0, 2) ? 1 : 20; /* gradients longer than passes */
    return machine;
}

/* Products in 8 bits, whose dimensions every tp that divides the heads leaves multiples of 16; from the program's
 * stream. */
static void draw_precision(test_random *own, pc_iteration_spec *spec) {
    pc_model *model = &spec->model;
    pc_low_precision *low = &model->low;
    if (toss(own)) return;
    model->ffn_hidden = 192 * (1 + model->ffn_hidden % 40);
    spec->cut.seq_len = (spec->cut.seq_len + 15) / 16 * 16;
    spec->machine.gpu.matrix_fp8_flops_per_s = 2 * spec->machine.gpu.matrix_flops_per_s;
    for (int i = 0; i < PC_LOW_PRODUCTS; i++) low->product[i] = PC_PRODUCT_FP8;
    low->scaling = (pc_scaling)test_between(own, PC_SCALING_DELAYED, PC_SCALING_ROW);
    low->weights = (pc_low_weights)test_between(own, PC_LOW_WEIGHTS_EACH, PC_LOW_WEIGHTS_HELD);
    low->copies = (int32_t)test_between(own, 1, 2);
    if (toss(own))
        low->bf16_first = (int32_t)test_between(own, 0, 5), low->bf16_last = (int32_t)test_between(own, 0, 5);
    low->gathers_parameters = toss(own);
    low->gathers_activations = toss(own);
    low->keeps_inputs = toss(own);
    low->fuses_norm = toss(own);
}

/* As torch shards: units of ZeRO 3. */
static void draw_units(test_random *own, pc_iteration_spec *spec) {
    spec->unit = PC_UNIT_LAYER;
    spec->unit_layers = test_between(own, 0, 3);
    spec->fsdp_prefetch = (int)test_between(own, 0, 2);
    spec->fsdp_version = (pc_fsdp_version)test_between(own, 0, 2);
    spec->reshard_after_forward = (pc_reshard)test_between(own, 0, 2);
    spec->gradient_sync = (pc_gradient_sync)test_between(own, 0, 2);
    spec->overlap_slowdown = toss(own) ? 0.25 : 0;
}

/* Where cut and schedule can do none of it, the points are infeasible. */
static void draw_offload(test_random *own, pc_iteration_spec *spec) {
    static const int32_t kinds[] = {PC_OFFLOAD_FINE_GRAINED, PC_OFFLOAD_SELECTIVE, PC_OFFLOAD_FULL, PC_OFFLOAD_TENSORS,
                                    0};
    if (test_between(own, 0, 2)) return;
    spec->machine.host_link_bytes_per_s = 1e9 * (double)test_between(own, 1, 100);
    spec->machine.host_memory_bytes_per_s = 1e9 * (double)test_between(own, 10, 1000);
    if (toss(own)) spec->machine.host_memory_bytes = INT64_C(1) << test_between(own, 30, 40);
    spec->cut.offload.kinds = kinds[test_between(own, 0, 4)];
    if (spec->cut.offload.kinds == PC_OFFLOAD_FINE_GRAINED)
        spec->cut.offload.modules = (int32_t)test_between(own, 1, 31) & 0x1f;
    if (toss(own)) spec->cut.offload.kinds |= PC_OFFLOAD_OPTIMIZER;
    if (test_between(own, 0, 4) == 0) spec->cut.offload.kinds |= PC_OFFLOAD_PARAMETERS;
    spec->cut.offload.fraction = (double)test_between(own, 0, 4) / 4;
    spec->cut.offload.optimizer_fraction = (double)test_between(own, 0, 4) / 4;
    spec->cut.offload.overlaps_copies = toss(own);
}

/* Of those that there can be. */
static void draw_optimizer(test_random *own, pc_iteration_spec *spec) {
    pc_optimizer *x = &spec->cut.optimizer;
    bool is_fused = spec->optimizer_kernels == PC_OPTIMIZER_FUSED;
    if (pc_cut_frozen(&spec->cut) || spec->cut.offload.kinds || test_between(own, 0, 3)) return;
    x->kind = (pc_optimizer_kind)test_between(own, 0, PC_OPTIMIZER_MUON);
    if (x->kind == PC_OPTIMIZER_ADAM && is_fused) x->exp_avg = PC_STATE_BF16;
    if (pc_optimizer_takes_tensors(x)) spec->cut.zero_partition = PC_ZERO_PARTITION_TENSOR;
}

/* What a program decides; from a stream of its own, so that all else is drawn as without it. */
static void draw_program(pc_iteration_spec *spec) {
    test_random own = {(uint64_t)(spec->model.ffn_hidden + spec->cut.seq_len)};
    if (toss(&own)) spec->cut.zero_partition = PC_ZERO_PARTITION_TENSOR;
    if (toss(&own)) spec->cut.gradient_accumulation = PC_GRADIENT_ACCUMULATION_SEPARATE;
    spec->cut.dummy_wgrad = spec->cut.seq_len % 3 > 0;
    if (toss(&own)) spec->optimizer_kernels = PC_OPTIMIZER_SEPARATE;
    if (toss(&own)) spec->cut.cp_comm = PC_CP_ALL_GATHER;
    draw_precision(&own, spec);
    if (toss(&own)) draw_units(&own, spec);
    draw_offload(&own, spec);
    draw_optimizer(&own, spec);
    spec->cut.graphs = (int32_t)test_between(&own, 0, PC_GRAPHS_ITERATION);
}

static pc_plan_base draw_base(test_random *random) {
    pc_plan_base base = {.spec = pc_iteration_spec_default(),
                         .gpu_hour_price = (double)test_between(random, 10, 50) / 10};
    pc_iteration_spec *spec = &base.spec;
    spec->model = draw_model(random, &spec->cut);
    spec->machine = draw_machine(random);
    spec->making = (pc_making)test_between(random, PC_MAKING_COSTS, PC_MAKING_PUBLISHED);
    spec->scatters_boundary = toss(random);
    spec->bucket_bytes = toss(random) ? 0 : test_between(random, 1, 20) * 100000;
    spec->cut.gradient_bytes = toss(random) ? 2 : 0;
    spec->cut.cross_entropy = (pc_cross_entropy)test_between(random, 0, 3);
    spec->step = test_between(random, 0, 2) ? PC_STEP_NORM : PC_STEP_POST_VALIDATION;
    spec->granularity = test_between(random, 0, 4) ? PC_GRANULARITY_PASS : PC_GRANULARITY_OPERATIONS;
    spec->network = (pc_network_mode)test_between(random, PC_NETWORK_AUTO, PC_NETWORK_FLOWS);
    spec->pass_overhead = toss(random) ? 0 : 0.1;
    spec->overhead_ps = toss(random) ? 0 : 1000000;
    draw_program(spec);
    int64_t parameters = 12 * spec->model.hidden * spec->model.hidden * spec->model.layers;
    spec->memory_limit_bytes = parameters * test_between(random, 2, 40) + (INT64_C(1) << test_between(random, 24, 34));
    return base;
}

/* So many of the numbers of a list, in any order, none twice. */
static pc_plan_list pick(test_random *random, const int64_t *from, int count, int most, int64_t *values) {
    int64_t left[SPACE_LIST_MAX];
    int wanted = (int)test_between(random, 1, most < count ? most : count);
    memcpy(left, from, (size_t)count * sizeof *left);
    for (int i = 0; i < wanted; i++) {
        int64_t k = test_between(random, i, count - 1), other = left[k];
        left[k] = left[i];
        left[i] = other;
        values[i] = other;
    }
    return (pc_plan_list){values, wanted};
}

static void draw_generators(test_random *random, bool searches, example_space *drawn) {
    int all, count = (int)test_between(random, 1, 4), picked = 0;
    const pc_generator *first = pc_generators(&all);
    while (picked < count) {
        const pc_generator *generator = &first[test_between(random, 0, all - 1)];
        if (!generator->searches || searches) drawn->generators[picked++] = generator;
    }
    drawn->space.generators = drawn->generators;
    drawn->space.generator_count = count;
}

static void draw_orders(test_random *random, example_space *drawn) {
    static const char *const names[] = {"tp-dp-pp", "tp-pp-dp", "dp-tp-pp", "dp-pp-tp", "pp-tp-dp", "pp-dp-tp"};
    drawn->space.orders = drawn->orders;
    drawn->space.order_count = (int)test_between(random, 1, 3);
    for (int i = 0; i < drawn->space.order_count; i++)
        if (pc_rank_order_parse(names[test_between(random, 0, 5)], &drawn->orders[i], NULL)) fail();
}

static void draw_lists(test_random *random, example_space *drawn) {
    static const int64_t gpus[] = {4, 8, 16}, batch[] = {8, 12, 16}, ways[] = {1, 2, 3, 4}, sizes[] = {1, 2, 3},
                         recompute[] = {0, 1, 2}, zero[] = {0, 1, 2, 3}, groups[] = {0, 2, 4, 3}, both[] = {0, 1},
                         dp[] = {1, 2, 4}, cp[] = {1, 2},
                         layouts[] = {
                             PC_CUT_EVEN,        PC_CUT_ENDS, PC_CUT_OWN, PC_CUT_BALANCED, PC_CUT_BALANCED_MEMORY,
                             PC_PLAN_LAYOUT_AUTO};
    const struct {
        pc_plan_list *list;
        const int64_t *from;
        int count, most;
    } lists[] = {{&drawn->space.gpus, gpus, 3, 2},
                 {&drawn->space.global_batch, batch, 3, 2},
                 {&drawn->space.tp, ways, 4, 2},
                 {&drawn->space.pp, ways, 4, 3},
                 {&drawn->space.dp, dp, 3, 3},
                 {&drawn->space.cp, cp, 2, 2},
                 {&drawn->space.chunks, ways, 4, 2},
                 {&drawn->space.microbatch_size, sizes, 3, 2},
                 {&drawn->space.recompute, recompute, 3, 2},
                 {&drawn->space.zero, zero, 4, 2},
                 {&drawn->space.sequence_parallel, both, 2, 2},
                 {&drawn->space.overlaps_tp, both, 2, 2},
                 {&drawn->space.overlaps_gradients, both, 2, 2},
                 {&drawn->space.overlaps_parameters, both, 2, 2},
                 {&drawn->space.overlaps_p2p, both, 2, 2},
                 {&drawn->space.layouts, layouts, 6, 3},
                 {&drawn->space.shard_group, groups, 4, 2}};
    for (int i = 0; i < SPACE_LISTS; i++)
        *lists[i].list = pick(random, lists[i].from, lists[i].count, lists[i].most, drawn->values[i]);
    if (test_between(random, 0, 2)) drawn->space.dp = (pc_plan_list){NULL, 0};
    if (test_between(random, 0, 2)) drawn->space.shard_group = (pc_plan_list){NULL, 0};
    if (test_between(random, 0, 2)) drawn->space.cp = (pc_plan_list){NULL, 0};
}

/* In a third of the spaces a list of what goes to the host, where all bases then have one; from a stream of its own. */
static void draw_offloads(example_space *drawn) {
    static const int64_t offloads[] = {0,
                                       PC_OFFLOAD_SELECTIVE,
                                       PC_OFFLOAD_FULL,
                                       PC_OFFLOAD_OPTIMIZER,
                                       PC_OFFLOAD_FULL | PC_OFFLOAD_OPTIMIZER,
                                       PC_OFFLOAD_TENSORS};
    test_random own = {(uint64_t)drawn->bases[0].spec.model.ffn_hidden};
    if (test_between(&own, 0, 2)) return;
    drawn->space.offload = pick(&own, offloads, 6, 2, drawn->offloads);
    for (int i = 0; i < drawn->space.base_count; i++) {
        pc_machine *machine = &drawn->bases[i].spec.machine;
        if (machine->host_link_bytes_per_s > 0) continue;
        machine->host_link_bytes_per_s = 1e9 * (double)test_between(&own, 1, 100);
        machine->host_memory_bytes_per_s = 1e9 * (double)test_between(&own, 10, 1000);
    }
}

/* In half of the spaces a list of slices, and in half of those a schedule that has them for the first listed one. */
static void draw_slices(example_space *drawn) {
    static const int64_t slices[] = {1, 2, 3, 4};
    static const char *const names[] = {"seq-1f1b", "seq-1f1b-interleaved"};
    test_random own = {(uint64_t)drawn->bases[0].spec.model.ffn_hidden + 7};
    if (test_between(&own, 0, 1)) return;
    drawn->space.slices = pick(&own, slices, 4, 2, drawn->slices);
    if (test_between(&own, 0, 1)) drawn->generators[0] = pc_generator_find(names[test_between(&own, 0, 1)]);
}

/* Sides that a recipe in 8 bits can have, also of halves. */
static void round_sides(pc_model *model) {
    pc_mla *mla = &model->mla;
    int64_t *sides[] = {&mla->q_lora_rank, &mla->kv_lora_rank, &mla->qk_nope_head_dim, &mla->qk_rope_head_dim,
                        &mla->v_head_dim};
    model->experts.ffn_hidden = pc_round_up(model->experts.ffn_hidden, 32);
    model->experts.shared_ffn_hidden = pc_round_up(model->experts.shared_ffn_hidden, 64);
    for (size_t i = 0; i < sizeof sides / sizeof *sides; i++) *sides[i] = pc_round_up(*sides[i], 16);
    if (pc_model_is_latent(model)) model->head_dim = mla->qk_nope_head_dim + mla->qk_rope_head_dim;
}

/* In a third of the spaces context ranks and a list of how they communicate, of models that can have them; from a
 * stream of its own. */
static void draw_contexts(example_space *drawn) {
    static const int64_t kinds[] = {PC_CP_P2P, PC_CP_ALL_GATHER, PC_CP_A2A, PC_CP_A2A_P2P}, cp[] = {2, 1};
    test_random own = {(uint64_t)drawn->bases[0].spec.model.ffn_hidden + 13};
    if (test_between(&own, 0, 2)) return;
    drawn->space.cp = pick(&own, cp, 2, 2, drawn->contexts[0]);
    drawn->space.cp_comm = pick(&own, kinds, 4, 3, drawn->contexts[1]);
    for (int i = 0; i < drawn->space.base_count; i++) drawn->bases[i].spec.model.attention = PC_ATTENTION_FLASH;
}

/* Half of them train adapters alone, where their optimizer can; from a stream of its own. */
static void draw_adapters(pc_iteration_spec *spec) {
    test_random own = {(uint64_t)(spec->model.ffn_hidden + spec->model.experts.ffn_hidden)};
    if (toss(&own) || pc_optimizer_takes_tensors(&spec->cut.optimizer)) return;
    spec->cut.lora = (pc_lora){.rank = (int32_t)(8 * test_between(&own, 1, 8)),
                               .targets = toss(&own) ? (int32_t)PC_LORA_ALL : (int32_t)PC_LORA_MLP,
                               .dropout = toss(&own) ? 0.1 : 0,
                               .shares_experts = toss(&own)};
    spec->cut.zero_partition = PC_ZERO_PARTITION_EVEN;
    spec->cut.fp8_dispatch = false;
}

/* In half of the spaces models with experts, and lists of how ranks share and cut them; from a stream of its own. */
static void draw_experts(example_space *drawn) {
    static const int64_t ep[] = {1, 2, 4, 8}, etp[] = {1, 2},
                         dispatchers[] = {PC_DISPATCHER_ALLTOALL, PC_DISPATCHER_ALLGATHER, PC_DISPATCHER_DEEPEP,
                                          PC_DISPATCHER_HYBRIDEP};
    test_random own = {(uint64_t)drawn->bases[0].spec.model.ffn_hidden + 11};
    if (test_between(&own, 0, 1)) return;
    for (int i = 0; i < drawn->space.base_count; i++) {
        pc_iteration_spec *spec = &drawn->bases[i].spec;
        if (test_between(&own, 0, 3) == 0) continue; /* a machine beside it may train a model without */
        pc_cut cut = spec->cut;
        cut.tp = cut.pp = cut.dp = 1;
        cut.microbatches = cut.microbatch_size = cut.chunks = 1;
        cut.offload = (pc_offload){0};
        pc_low_precision low = spec->model.low;
        spec->model.low = (pc_low_precision){0};
        random_experts(&own, &spec->model, &cut);
        round_sides(&spec->model);
        spec->model.low = low;
        spec->cut.etp = cut.etp;
        spec->cut.dispatcher = cut.dispatcher;
        spec->cut.fp8_dispatch = toss(&own);
        spec->cut.moe_load = (pc_moe_load)test_between(&own, PC_MOE_LOAD_BALANCED, PC_MOE_LOAD_POWER);
        spec->cut.moe_load_exponent = 1.2;
        if (test_between(&own, 0, 2)) spec->cut.zero_partition = PC_ZERO_PARTITION_EVEN;
        draw_adapters(spec);
    }
    drawn->space.ep = pick(&own, ep, 4, 2, drawn->experts[0]);
    if (toss(&own)) drawn->space.etp = pick(&own, etp, 2, 2, drawn->experts[1]);
    if (toss(&own)) drawn->space.dispatchers = pick(&own, dispatchers, 4, 2, drawn->experts[2]);
    bool has_pairs = toss(&own);
    for (int i = 0; has_pairs && i < drawn->space.base_count; i++) {
        pc_iteration_spec *spec = &drawn->bases[i].spec;
        spec->overlaps_pairs = toss(&own);
        spec->delays_weights = spec->overlaps_pairs && toss(&own);
    }
}

static double count_numbers(const pc_plan_space *space) {
    const int counts[] = {space->base_count,
                          space->gpus.count,
                          space->global_batch.count,
                          space->tp.count,
                          space->pp.count,
                          space->dp.count > 0 ? space->dp.count : 1,
                          space->cp.count > 0 ? space->cp.count : 1,
                          space->cp_comm.count > 0 ? space->cp_comm.count : 1,
                          space->ep.count > 0 ? space->ep.count : 1,
                          space->etp.count > 0 ? space->etp.count : 1,
                          space->dispatchers.count > 0 ? space->dispatchers.count : 1,
                          space->generator_count,
                          space->slices.count > 0 ? space->slices.count : 1,
                          space->chunks.count,
                          space->layouts.count,
                          space->microbatch_size.count,
                          space->recompute.count,
                          space->offload.count > 0 ? space->offload.count : 1,
                          space->zero.count,
                          space->shard_group.count > 0 ? space->shard_group.count : 1,
                          space->sequence_parallel.count,
                          space->order_count,
                          space->overlaps_tp.count,
                          space->overlaps_gradients.count,
                          space->overlaps_parameters.count,
                          space->overlaps_p2p.count};
    double product = 1;
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) product *= counts[i];
    return product;
}

void draw_space(test_random *random, int64_t most, bool searches, example_space *drawn) {
    double count;
    do {
        memset(drawn, 0, sizeof *drawn);
        drawn->space.bases = drawn->bases;
        drawn->space.base_count = (int)test_between(random, 1, SPACE_BASES_MAX);
        for (int i = 0; i < drawn->space.base_count; i++) drawn->bases[i] = draw_base(random);
        draw_lists(random, drawn);
        draw_offloads(drawn);
        draw_generators(random, searches, drawn);
        draw_slices(drawn);
        draw_experts(drawn);
        draw_contexts(drawn);
        draw_orders(random, drawn);
        count = count_numbers(&drawn->space);
    } while (count > (double)most || count < (double)most / 4);
}

static const pc_generator *draw_searching(test_random *random) {
    int all;
    const pc_generator *first = pc_generators(&all), *generator = NULL;
    while (!generator || !generator->searches) generator = &first[test_between(random, 0, all - 1)];
    return generator;
}

void draw_searched_space(test_random *random, int64_t most, bool has_others, example_space *drawn) {
    draw_space(random, most, true, drawn);
    for (int i = 0; i < drawn->space.generator_count; i++)
        if (!has_others || i % 2 == 0) drawn->generators[i] = draw_searching(random);
    for (int i = 0; i < drawn->space.base_count; i++) {
        pc_iteration_spec *spec = &drawn->bases[i].spec;
        spec->effort = test_between(random, 0, 9) ? PC_EFFORT_QUICK : PC_EFFORT_FULL;
        if (test_between(random, 0, 2)) spec->making = PC_MAKING_COSTS;
    }
}
