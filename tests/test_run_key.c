/* The key of a run: every field that decides a result changes it. A table of all fields; sizes of the
 * structs are asserted, so that a new field does not build until somebody has looked whether it is a setting's
 * (settings.def) or worked out (run_key.c), and it is here. */
#include "scenarios/run_key.h"

#include "engine/alloc.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#if defined(__x86_64__) || defined(__aarch64__)
/* The memos of both, and the load that a cut knows, are not keyed: they save time, and decide nothing. Nor are copies
 * of given costs: there are none.
 */
_Static_assert(sizeof(pc_run_spec) == 3144, "a new field of a run: does it decide its result?");
_Static_assert(sizeof(pc_iteration_spec) == 2440, "a new field of an iteration");
_Static_assert(sizeof(pc_bad_days) == 576 && sizeof(pc_empirical) == 16, "a new field of bad days");
_Static_assert(sizeof(pc_model) == 544 && sizeof(pc_low_precision) == 104 && sizeof(pc_cut) == 352,
               "a new field of a model or its cut");
_Static_assert(sizeof(pc_machine) == 768 && sizeof(pc_gpu) == 424, "a new field of a machine");
_Static_assert(sizeof(pc_connection) == 40 && sizeof(pc_transfer) == 40, "a new field of a connection or transfer");
_Static_assert(sizeof(pc_costs) == 208, "a new field of costs");
#endif

enum { PARTS = 4, DEVICES = 2, CHUNKS = 2 };

/* ---- fields ---- */

typedef enum kind { WHOLE, REAL, TEXT } kind;

typedef struct field {
    const char *name;
    size_t offset, size;
    kind kind;
} field;

#define FIELD(of, member, kind)                                                                                        \
    { #member, offsetof(of, member), sizeof(((of *)0)->member), kind }
#define RUN(member)            FIELD(pc_run_spec, member, WHOLE)
#define RUN_REAL(member)       FIELD(pc_run_spec, member, REAL)
#define ITERATION(member)      FIELD(pc_run_spec, iteration.member, WHOLE)
#define ITERATION_REAL(member) FIELD(pc_run_spec, iteration.member, REAL)
#define CONNECTION(member)                                                                                             \
    ITERATION_REAL(machine.member.bandwidth_bytes_per_s), ITERATION_REAL(machine.member.efficiency),                   \
        ITERATION_REAL(machine.member.latency_s), ITERATION_REAL(machine.member.fast_latency_s),                       \
        ITERATION_REAL(machine.member.fast_efficiency)
#define GPU(member)                                                                                                    \
    ITERATION_REAL(member.matrix_flops_per_s), ITERATION_REAL(member.vector_flops_per_s),                              \
        ITERATION_REAL(member.matrix_fp8_flops_per_s), ITERATION_REAL(member.matrix_fp4_flops_per_s),                  \
        ITERATION_REAL(member.gemm_efficiency_fp8), ITERATION_REAL(member.gemm_efficiency_fp4),                        \
        ITERATION_REAL(member.split_accumulator), ITERATION(member.has_fp8_layouts),                                   \
        ITERATION_REAL(member.memory_bytes_per_s), ITERATION(member.memory_bytes),                                     \
        ITERATION(member.memory_reserved_bytes), ITERATION(member.l2_bytes), ITERATION(member.processors),             \
        ITERATION_REAL(member.power_w), ITERATION(member.tile_m), ITERATION(member.tile_n),                            \
        ITERATION_REAL(member.gemm_efficiency), ITERATION_REAL(member.gemm_ramp_k),                                    \
        ITERATION_REAL(member.attention_efficiency), ITERATION_REAL(member.flash_efficiency[0]),                       \
        ITERATION_REAL(member.flash_efficiency[1]), ITERATION_REAL(member.permute_efficiency),                         \
        ITERATION_REAL(member.flash_efficiency[2]), ITERATION_REAL(member.unfused),                                    \
        ITERATION_REAL(member.attention_backward), ITERATION_REAL(member.memory_efficiency),                           \
        ITERATION_REAL(member.kernel_s), ITERATION_REAL(member.launch_s), ITERATION_REAL(member.call_s),               \
        ITERATION_REAL(member.module_s), ITERATION_REAL(member.expert_s), ITERATION_REAL(member.estimated_error)

/* Of both sorts of runs. */
static const field common[] = {
    RUN(gpus),
    RUN(devices),
    RUN(microbatches),
    RUN(chunks),
    RUN(making),
    RUN(goal),
    RUN(microbatch_size),
    RUN(seq_len),
    RUN(has_activation),
    RUN(trace),
    RUN(overhead_ps),
    RUN(engine),
    RUN(waits_for_memory),
    RUN(is_cluster),
    RUN(profile_hash),
    RUN(has_profile_jitter),
    FIELD(pc_run_spec, infeasible, TEXT),
};

static const field of_cluster[] = {
    RUN_REAL(gpu_hour_price),
    RUN(tokens),
    RUN(watts),
    ITERATION(model.layers),
    ITERATION(model.hidden),
    ITERATION(model.ffn_hidden),
    ITERATION(model.heads),
    ITERATION(model.kv_heads),
    ITERATION(model.head_dim),
    ITERATION(model.vocab),
    ITERATION(model.vocab_multiple),
    ITERATION(model.max_positions),
    ITERATION(model.positions),
    ITERATION(model.norm),
    ITERATION(model.mlp),
    ITERATION(model.attention),
    ITERATION(model.precision),
    ITERATION(model.low.product[0]),
    ITERATION(model.low.product[1]),
    ITERATION(model.low.product[2]),
    ITERATION(model.low.scaling),
    ITERATION(model.low.weights),
    ITERATION(model.low.bf16_first),
    ITERATION(model.low.bf16_last),
    ITERATION(model.low.copies),
    ITERATION(model.low.gathers_parameters),
    ITERATION(model.low.gathers_activations),
    ITERATION(model.low.keeps_inputs),
    ITERATION(model.low.fuses_norm),
    ITERATION(model.low.fuses_activation),
    ITERATION(model.low.splits_accumulator),
    ITERATION(model.low.rotates),
    ITERATION(model.low.rounds_stochastically),
    ITERATION(model.is_tied),
    ITERATION(model.has_bias),
    ITERATION(model.has_dropout),
    ITERATION(model.has_qkv_bias),
    ITERATION(model.has_norm_bias),
    ITERATION(model.norm_place),
    ITERATION(model.qk_norm),
    ITERATION(model.sliding_window),
    ITERATION(model.attention_chunk_size),
    ITERATION(model.sliding_window_pattern),
    ITERATION(model.document_length),
    ITERATION(model.document_length_square),
    ITERATION(model.attn_logit_softcapping),
    ITERATION(model.final_logit_softcapping),
    ITERATION(model.experts.num_experts),
    ITERATION(model.experts.topk),
    ITERATION(model.experts.ffn_hidden),
    ITERATION(model.experts.shared_ffn_hidden),
    ITERATION(model.experts.router_groups),
    ITERATION(model.experts.router_group_topk),
    ITERATION(model.experts.first_dense),
    ITERATION(model.experts.layer_freq),
    ITERATION(model.experts.score),
    ITERATION(model.experts.has_router_bias),
    ITERATION(model.experts.has_shared_gate),
    ITERATION(model.experts.pads_to_capacity),
    ITERATION_REAL(model.experts.capacity_factor),
    ITERATION_REAL(model.experts.activation_clamp),
    ITERATION(model.mla.q_lora_rank),
    ITERATION(model.mla.kv_lora_rank),
    ITERATION(model.mla.qk_nope_head_dim),
    ITERATION(model.mla.qk_rope_head_dim),
    ITERATION(model.mla.v_head_dim),
    ITERATION(model.has_attention_sinks),
    ITERATION(model.scales_rotary),
    ITERATION(model.mtp_layers),
    ITERATION(cut.ep),
    ITERATION(cut.etp),
    ITERATION(cut.dispatcher),
    ITERATION(cut.fp8_dispatch),
    ITERATION(cut.deepep_sms),
    ITERATION(cut.hybridep_sms),
    ITERATION(cut.overlaps_shared),
    ITERATION(cut.moe_load),
    ITERATION_REAL(cut.moe_load_exponent),
    ITERATION_REAL(cut.memory_quantile),
    ITERATION(cut.tp),
    ITERATION(cut.pp),
    ITERATION(cut.cp),
    ITERATION(cut.cp_comm),
    ITERATION(cut.cp_a2a),
    ITERATION(cut.dp),
    ITERATION(cut.chunks),
    ITERATION(cut.sequence_parallel),
    ITERATION(cut.shard_group),
    ITERATION(cut.zero),
    ITERATION(cut.zero_partition),
    ITERATION(cut.gradient_accumulation),
    ITERATION(cut.dummy_wgrad),
    ITERATION(counts_modules),
    ITERATION(optimizer_kernels),
    ITERATION(cut.microbatch_size),
    ITERATION(cut.microbatches),
    ITERATION(cut.seq_len),
    ITERATION(cut.recompute),
    ITERATION(cut.recompute_layers),
    ITERATION(cut.recompute_modules),
    ITERATION(cut.transformer_impl),
    ITERATION(cut.stores_low_input),
    ITERATION(cut.attention_is_low),
    ITERATION(cut.attention_hands_low),
    ITERATION(cut.fuses_operations),
    ITERATION(cut.compiles),
    ITERATION(cut.kernels),
    ITERATION(cut.tp_inputs),
    ITERATION(cut.loss_buffers),
    ITERATION(unit),
    ITERATION(cut.layout),
    ITERATION(cut.gradient_bytes),
    ITERATION(cut.cross_entropy),
    ITERATION(cut.cross_entropy_chunks),
    ITERATION(cut.offload_layers),
    ITERATION(cut.optimizer.kind),
    ITERATION(cut.optimizer.main_params),
    ITERATION(cut.optimizer.main_grads),
    ITERATION(cut.optimizer.exp_avg),
    ITERATION(cut.optimizer.exp_avg_sq),
    ITERATION(cut.offload.kinds),
    ITERATION(cut.offload.modules),
    ITERATION_REAL(cut.offload.fraction),
    ITERATION_REAL(cut.offload.optimizer_fraction),
    ITERATION(cut.offload.overlaps_copies),
    ITERATION(cut.lora.rank),
    ITERATION(cut.lora.targets),
    ITERATION(cut.lora.base),
    ITERATION(cut.lora.shares_experts),
    ITERATION(cut.lora.divides_rank),
    ITERATION_REAL(cut.lora.dropout),
    ITERATION(cut.frozen),
    ITERATION(cut.graphs),
    FIELD(pc_run_spec, iteration.machine.name, TEXT),
    GPU(machine.gpu),
    ITERATION(machine.gpus_per_node),
    ITERATION(machine.domain_gpus),
    ITERATION(machine.segment_gpus),
    ITERATION(machine.nics_per_node),
    ITERATION(machine.nodes),
    CONNECTION(domain),
    CONNECTION(network),
    ITERATION(machine.leaf_nodes),
    ITERATION_REAL(machine.oversubscription),
    ITERATION_REAL(machine.switch_latency_s),
    ITERATION(machine.reduces_in_switch),
    ITERATION_REAL(machine.in_switch_efficiency),
    ITERATION_REAL(machine.in_switch_latency_s),
    ITERATION_REAL(machine.nic_crossing_efficiency),
    ITERATION_REAL(machine.speed_variation),
    ITERATION_REAL(machine.collective_call_s),
    ITERATION_REAL(machine.host_link_bytes_per_s),
    ITERATION(machine.host_link_gpus),
    ITERATION(machine.host_memory_bytes),
    ITERATION_REAL(machine.host_memory_bytes_per_s),
    ITERATION(order.axis[0]),
    ITERATION(order.axis[1]),
    ITERATION(order.axis[2]),
    ITERATION(order.axis[3]),
    ITERATION(making),
    ITERATION(goal),
    ITERATION(overlaps_p2p),
    ITERATION(overlaps_tp),
    ITERATION(overlaps_pairs),
    ITERATION(delays_weights),
    ITERATION(pipelines_tp),
    ITERATION(overlaps_gradients),
    ITERATION_REAL(overlap_slowdown),
    ITERATION(overlaps_parameters),
    ITERATION(scatters_boundary),
    ITERATION(stage_buffers),
    ITERATION(bucket_bytes),
    ITERATION(unit_layers),
    ITERATION(fsdp_prefetch),
    ITERATION(reshard_after_forward),
    ITERATION(gradient_sync),
    ITERATION(fsdp_version),
    ITERATION(step),
    ITERATION(granularity),
    ITERATION(network),
    ITERATION_REAL(pass_overhead),
    ITERATION(engine),
    ITERATION(waits_for_memory),
    ITERATION(overhead_ps),
    ITERATION(memory_limit_bytes),
    ITERATION(expands),
    ITERATION_REAL(jitter),
    ITERATION(seed),
    ITERATION(bad_days.samples),
    ITERATION_REAL(bad_days.gpu_jitter),
    ITERATION_REAL(bad_days.link_jitter),
    ITERATION(bad_days.slow_gpus),
    ITERATION_REAL(bad_days.slow_factor),
    ITERATION(bad_days.bad_links),
    ITERATION_REAL(bad_days.bad_factor),
    ITERATION(bad_days.slow_stage),
    ITERATION(bad_days.has_slow_stage),
    ITERATION(bad_days.other_nodes),
    GPU(bad_days.other_gpu),
    ITERATION(bad_days.robust),
    ITERATION_REAL(bad_days.mtbf_s),
    ITERATION_REAL(bad_days.checkpoint_s),
    ITERATION_REAL(bad_days.interval_s),
    ITERATION_REAL(bad_days.restart_s),
    ITERATION_REAL(bad_days.repair_s),
    ITERATION(bad_days.spare_nodes),
    ITERATION_REAL(bad_days.horizon_s),
};

static const field of_costs[] = {
    RUN(costs.transfer.mode),       RUN(costs.transfer.delay_ps),
    RUN(costs.transfer.latency_ps), RUN_REAL(costs.transfer.bandwidth_bytes_per_s),
    RUN(costs.transfer.size_bytes), RUN(costs.vocab.broadcast_ps),
    RUN(costs.vocab.exchange_ps),   RUN(costs.vocab.reduce_ps),
    RUN(costs.vocab.held_bytes),
};

/* What cannot be seen in a row. */
static const field unseen[] = {
    ITERATION(sequence_slices), /* worked out of them is cut.chunks */
    ITERATION(cut.slices),
    ITERATION(cut.sequence_split), /* of a schedule without slices */
    FIELD(pc_run_spec, iteration.model.name, TEXT),
    FIELD(pc_run_spec, iteration.model.low.name, TEXT), /* of no recipe of few bits */
    FIELD(pc_run_spec, iteration.machine.gpu.name, TEXT),
    FIELD(pc_run_spec, iteration.bad_days.other_gpu.name, TEXT),
    ITERATION(threads),
    ITERATION(memo),
    RUN(memo),
};

#define COUNT(list) (sizeof(list) / sizeof(list)[0])

/* Another value of the same type. */
static void change(pc_run_spec *spec, const field *f) {
    char *place = (char *)spec + f->offset;
    double real;
    if (f->kind == TEXT) {
        snprintf(place, f->size, "another");
    } else if (f->kind == REAL) {
        memcpy(&real, place, sizeof real);
        real = isnan(real) ? 1.5 : real + 1.5;
        memcpy(place, &real, sizeof real);
    } else {
        place[0] ^= 1; /* of a bool as of a number */
    }
}

/* ---- specs ---- */

/* Longer than the parts are: other numbers of stages and chunks are tried. */
static int32_t layers[4 * PARTS] = {6, 6, 6, 6};
static pc_recomputation recomputes[4 * PARTS];
static double quantiles[3] = {0.9, 1.0, 1.1};

static pc_run_spec cluster_spec(void) {
    pc_run_spec spec = pc_run_spec_default();
    spec.is_cluster = true;
    spec.generator = pc_generator_find("1f1b-interleaved");
    spec.iteration = pc_iteration_spec_default();
    spec.iteration.generator = spec.generator;
    spec.iteration.memory_limit_bytes = 1000;
    spec.iteration.cut = (pc_cut){.tp = 1, .pp = DEVICES, .dp = 1, .chunks = CHUNKS, .layout = PC_CUT_LISTED};
    spec.iteration.cut.layers_of_part = layers;
    spec.iteration.cut.recompute_of_part = recomputes;
    spec.iteration.bad_days.passes = (pc_empirical){quantiles, 3};
    return spec;
}

static pc_run_spec costs_spec(void) {
    pc_run_spec spec = pc_run_spec_default();
    spec.generator = pc_generator_find("1f1b-interleaved");
    assert_int_equal(pc_costs_create(DEVICES, CHUNKS, &spec.costs, NULL), PC_OK);
    assert_int_equal(pc_costs_add_hop_delays(&spec.costs, NULL), PC_OK);
    assert_int_equal(pc_costs_add_ready(&spec.costs, NULL), PC_OK);
    spec.memory_limit_bytes = pc_alloc(DEVICES, sizeof *spec.memory_limit_bytes);
    for (int d = 0; d < DEVICES; d++) spec.memory_limit_bytes[d] = 1000;
    return spec;
}

/* ---- tests ---- */

enum { KEYS_MAX = 400 };

typedef struct key_list {
    pc_run_key keys[KEYS_MAX];
    int count;
} key_list;

/* The key is none of those that were seen before. */
static void expect_new(key_list *seen, const pc_run_spec *spec, const char *what) {
    pc_run_key key = pc_run_key_of(spec);
    for (int i = 0; i < seen->count; i++)
        if (pc_run_key_equal(seen->keys[i], key)) fail_msg("%s: leaves the key as it was, or as another does", what);
    assert_true(seen->count < KEYS_MAX);
    seen->keys[seen->count++] = key;
}

static void expect_changes(key_list *seen, const pc_run_spec *base, const field *list, size_t count) {
    for (size_t i = 0; i < count; i++) {
        pc_run_spec spec = *base;
        change(&spec, &list[i]);
        expect_new(seen, &spec, list[i].name);
    }
}

static void every_field_of_a_cluster_run_counts(void **state) {
    (void)state;
    key_list seen = {.count = 0};
    pc_run_spec base = cluster_spec(), other;
    expect_new(&seen, &base, "the spec itself");
    expect_changes(&seen, &base, common, COUNT(common));
    expect_changes(&seen, &base, of_cluster, COUNT(of_cluster));
    other = base;
    other.iteration.generator = pc_generator_find("1f1b-v");
    expect_new(&seen, &other, "iteration.generator");
    other.iteration.generator = pc_generator_find("seq-1f1b");
    expect_new(&seen, &other, "a schedule with slices");
    other.iteration.cut.sequence_split = PC_SEQUENCE_SPLIT_FLOPS;
    expect_new(&seen, &other, "sequence_split of a schedule with slices");
    other = base;
    other.iteration.cut.layers_of_part = NULL;
    expect_new(&seen, &other, "no layers_of_part");
    other = base;
    other.iteration.cut.recompute_of_part = NULL;
    expect_new(&seen, &other, "no recompute_of_part");
    other = base;
    other.iteration.cut.moe_load = PC_MOE_LOAD_GIVEN;
    expect_new(&seen, &other, "no counts of experts' tokens");
    other.iteration.cut.moe_load_counts = &(pc_expert_counts){.hash = 1};
    expect_new(&seen, &other, "counts of experts' tokens");
    other.iteration.cut.moe_load_counts = &(pc_expert_counts){.hash = 2};
    expect_new(&seen, &other, "other counts of experts' tokens");
    other = base;
    other.iteration.machine.measured = (const struct pc_transfer_model *)&other;
    expect_new(&seen, &other, "measured transfers");
    other = base;
    other.iteration.bad_days.passes.quantiles = NULL;
    expect_new(&seen, &other, "no quantiles");
    other = base;
    other.iteration.bad_days.passes.count = 2;
    expect_new(&seen, &other, "fewer quantiles");
    for (int i = 0; i < PARTS; i++) {
        layers[i]++;
        expect_new(&seen, &base, "layers_of_part");
        layers[i]--;
        recomputes[i].kind = PC_RECOMPUTE_FULL;
        expect_new(&seen, &base, "recompute_of_part");
        recomputes[i].kind = PC_RECOMPUTE_NONE;
    }
    other = base;
    other.iteration.cut.mtp_listed = 1;
    expect_new(&seen, &other, "mtp_listed");
    other.iteration.cut.mtp_ahead = 1;
    expect_new(&seen, &other, "mtp_ahead");
    for (int i = 0; i < 3; i++) {
        quantiles[i] += 0.01;
        expect_new(&seen, &base, "quantiles");
        quantiles[i] -= 0.01;
    }
}

static void expect_numbers(key_list *seen, pc_run_spec *spec, int64_t *numbers, int count, const char *what) {
    for (int i = 0; i < count; i++) {
        numbers[i] += 3;
        expect_new(seen, spec, what);
        numbers[i] -= 3;
    }
}

static void every_field_of_given_costs_counts(void **state) {
    (void)state;
    key_list seen = {.count = 0};
    pc_run_spec base = costs_spec(), other = base;
    expect_new(&seen, &base, "the spec itself");
    expect_changes(&seen, &base, common, COUNT(common));
    expect_changes(&seen, &base, of_costs, COUNT(of_costs));
    expect_numbers(&seen, &base, base.costs.duration_ps, PARTS * PC_PASS_KINDS, "duration_ps");
    expect_numbers(&seen, &base, base.costs.activation_bytes, PARTS, "activation_bytes");
    expect_numbers(&seen, &base, base.costs.activation_b_bytes, PARTS, "activation_b_bytes");
    expect_numbers(&seen, &base, base.costs.activation_kept_bytes, PARTS, "activation_kept_bytes");
    expect_numbers(&seen, &base, base.memory_limit_bytes, DEVICES, "memory_limit_bytes");
    expect_numbers(&seen, &base, base.costs.hop_delay_ps, DEVICES, "hop_delay_ps");
    expect_numbers(&seen, &base, base.costs.ready_ps, PARTS, "ready_ps");
    other.costs.hop_delay_ps = NULL;
    expect_new(&seen, &other, "no hop delays");
    other = base;
    other.costs.ready_ps = NULL;
    expect_new(&seen, &other, "nothing that is ready later");
    other = base;
    other.costs.recomputes_in_b = true;
    expect_new(&seen, &other, "recomputes_in_b");
    other.costs.leaves_gradients = true;
    expect_new(&seen, &other, "leaves_gradients");
    other = base;
    other.generator = pc_generator_find("1f1b");
    expect_new(&seen, &other, "generator");
    pc_run_spec_free(&base);
}

static void what_is_not_seen_does_not_count(void **state) {
    (void)state;
    pc_run_spec base = cluster_spec();
    for (size_t i = 0; i < COUNT(unseen); i++) {
        pc_run_spec spec = base;
        change(&spec, &unseen[i]);
        if (!pc_run_key_equal(pc_run_key_of(&spec), pc_run_key_of(&base)))
            fail_msg("%s: is in the key", unseen[i].name);
    }
}

/* Bytes behind a text's end, other addresses of equal lists, and another NaN are nothing. */
static void values_count_not_how_they_lie_in_memory(void **state) {
    (void)state;
    pc_run_spec base = cluster_spec(), spec = base;
    memset(spec.infeasible + 1, 'x', 20);
    memset(spec.iteration.machine.name + 1, 'y', 20);
    int32_t same_layers[4 * PARTS];
    memcpy(same_layers, layers, sizeof layers);
    spec.iteration.cut.layers_of_part = same_layers;
    spec.gpu_hour_price = -base.gpu_hour_price;
    assert_true(pc_run_key_equal(pc_run_key_of(&spec), pc_run_key_of(&base)));
}

/* The lists of a run that is known to be infeasible may be shorter than its parts: they are not looked at. */
static void lists_of_what_cannot_be_are_left_alone(void **state) {
    (void)state;
    int32_t *one = malloc(sizeof *one);
    *one = 24;
    pc_run_spec spec = cluster_spec();
    snprintf(spec.infeasible, sizeof spec.infeasible, "layout: 1 number; expected 4");
    spec.iteration.cut.layers_of_part = one;
    pc_run_key key = pc_run_key_of(&spec);
    *one = 23;
    assert_true(pc_run_key_equal(key, pc_run_key_of(&spec)));
    free(one);
}

static void keys_are_texts(void **state) {
    (void)state;
    const pc_run_key key = {UINT64_C(0x0123456789abcdef), UINT64_C(0xfedcba9876543210)};
    pc_run_key back = {0, 0};
    char text[PC_RUN_KEY_SIZE];
    pc_run_key_text(key, text);
    assert_string_equal(text, "0123456789abcdeffedcba9876543210");
    assert_true(pc_run_key_parse(text, &back));
    assert_true(pc_run_key_equal(key, back));
    assert_false(pc_run_key_parse("", &back));
    assert_false(pc_run_key_parse("0123456789abcdeffedcba987654321", &back));
    assert_false(pc_run_key_parse("0123456789ABCDEFfedcba9876543210", &back));
    assert_false(pc_run_key_parse("0123456789abcdeffedcba98765432100", &back));
}

/* A recipe's name stands in rows, and those of one key are one. */
static void the_name_of_a_recipe_counts(void **state) {
    (void)state;
    pc_run_spec spec = cluster_spec();
    spec.iteration.model.low.product[0] = PC_PRODUCT_FP8;
    snprintf(spec.iteration.model.low.name, sizeof spec.iteration.model.low.name, "mine");
    pc_run_key mine = pc_run_key_of(&spec);
    snprintf(spec.iteration.model.low.name, sizeof spec.iteration.model.low.name, "yours");
    assert_false(pc_run_key_equal(mine, pc_run_key_of(&spec)));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_field_of_a_cluster_run_counts),
        cmocka_unit_test(every_field_of_given_costs_counts),
        cmocka_unit_test(what_is_not_seen_does_not_count),
        cmocka_unit_test(values_count_not_how_they_lie_in_memory),
        cmocka_unit_test(lists_of_what_cannot_be_are_left_alone),
        cmocka_unit_test(keys_are_texts),
        cmocka_unit_test(the_name_of_a_recipe_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
