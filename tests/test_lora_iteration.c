/* Iterations that train adapters of models with experts and latent attention: against a recount from operations up,
 * and what frozen weights leave out. */
#include "models/workload/memory.h"
#include "tests/iteration_example.h"
#include "tests/iteration_experts.h"
#include "tests/iteration_recount.h"
#include "tests/random_frozen.h"
#include "tests/random_iteration.h"

#include <math.h>

static bool toss(test_random *random) {
    return test_between(random, 0, 1);
}

/* Beside the matrices that the model has; false where the spec cannot have them. */
static bool add_adapters(test_random *random, pc_iteration_spec *spec) {
    pc_cut *cut = &spec->cut;
    int32_t latents = PC_LORA_Q_DOWN | PC_LORA_Q_UP | PC_LORA_KV_DOWN | PC_LORA_KV_UP;
    int32_t attention = spec->model.mla.kv_lora_rank > 0 ? latents : (int32_t)PC_LORA_QKV;
    cut->frozen = 0;
    cut->lora = (pc_lora){.rank = (int32_t)(8 * test_between(random, 1, 16)),
                          .targets = (int32_t)test_between(random, 1, PC_LORA_ALL) & (attention | 14),
                          .dropout = toss(random) ? 0.1 : 0,
                          .shares_experts = toss(random),
                          .divides_rank = toss(random)};
    if (cut->lora.divides_rank) cut->lora.rank *= (int32_t)spec->model.experts.topk;
    if (cut->lora.targets == 0) cut->lora.targets = attention;
    if (cut->lora.targets & PC_LORA_MLP) cut->fp8_dispatch = false;
    cut->zero_partition = PC_ZERO_PARTITION_EVEN;
    return spec->generator->barriers == PC_BARRIERS_NONE && pc_cut_check(&spec->model, cut, 1, NULL) == PC_OK;
}

static bool draw(test_random *random, pc_iteration_spec *spec) {
    *spec = random_spec(random);
    spec->cut.lora = (pc_lora){0};
    return random_folded_experts(random, spec) && add_adapters(random, spec);
}

static void test_agrees_with_a_recount(void **state) {
    (void)state;
    test_random random = {51};
    long folded = 0, shared = 0, routed = 0;
    for (long i = 0; i < test_cases(120, 1600); i++) {
        pc_iteration_spec spec;
        if (!draw(&random, &spec)) continue;
        pc_iteration iteration = run_spec(&spec);
        double expected = recount_iteration(&spec), found = iteration.iteration_s;
        if (!(fabs(found - expected) <= 1e-7 * expected))
            fail_msg("case %ld: %.12g; expected %.12g (%s)", i, found, expected, spec.generator->name);
        pc_iteration_free(&iteration);
        folded++;
        routed += (spec.cut.lora.targets & PC_LORA_MLP) != 0;
        shared += spec.cut.lora.targets & PC_LORA_MLP && spec.cut.lora.shares_experts && spec.cut.ep > 1;
    }
    print_message("%ld with adapters beside folded experts, %ld of experts, %ld of these shared over ep\n", folded,
                  routed, shared);
    assert_true(test_saw(folded, 15) && test_saw(routed, 12) && test_saw(shared, 3));
}

/* Two bytes of each weight and adapter; gradients and state of adapters alone, those of each group over its own ranks.
 * Zero 0: 4 and 12 bytes of what is trained. */
static void test_state_is_of_adapters(void **state) {
    (void)state;
    test_random random = {52};
    long compared = 0;
    for (long i = 0; i < test_cases(80, 800); i++) {
        pc_iteration_spec spec;
        if (!draw(&random, &spec) || spec.generator->placement == PC_PLACEMENT_BIDIRECTIONAL) continue;
        spec.cut.zero = 0;
        spec.cut.pp = spec.cut.chunks = 1;
        spec.generator = pc_generator_find("1f1b");
        pc_part all = pc_cut_part(&spec.model, &spec.cut, 1, 0);
        int64_t trained = pc_part_trained(&spec.model, &spec.cut, &all, true);
        int64_t held = pc_part_parameters(&spec.model, &spec.cut, &all, true);
        pc_iteration x = run_spec(&spec);
        assert_int_equal(x.memory[0].parameters, 2 * held);
        assert_int_equal(x.memory[0].gradients, pc_cut_gradient_bytes(&spec.cut) * trained);
        assert_int_equal(x.memory[0].optimizer, 12 * trained);
        pc_iteration_free(&x);
        compared++;
    }
    assert_true(test_saw(compared, 10));
}

/* Whatever else an iteration has, what is held comes to its peak. */
static void test_beside_all_else(void **state) {
    (void)state;
    test_random random = {53};
    long ran = 0;
    for (long i = 0; i < test_cases(150, 1500); i++) {
        pc_iteration_spec spec = random_iteration(&random);
        pc_iteration x;
        pc_error error = {0};
        bool is_mixed = pc_model_has_experts(&spec.model) || pc_model_is_latent(&spec.model);
        if (!is_mixed || !add_adapters(&random, &spec)) continue;
        if (pc_iteration_run(&spec, NULL, true, &x, &error)) fail_msg("case %ld: %s", i, error.message);
        for (int d = 0; x.status == PC_RUN_OK && d < x.devices; d++) {
            const pc_device_memory *of = &x.memory[d];
            assert_int_equal(of->peak_bytes,
                             of->parameters + of->gradients + of->optimizer + of->buffers + of->activations);
        }
        ran += x.status == PC_RUN_OK;
        pc_iteration_free(&x);
    }
    print_message("%ld ran\n", ran);
    assert_true(test_saw(ran, 10));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_agrees_with_a_recount),
                                       cmocka_unit_test(test_state_is_of_adapters),
                                       cmocka_unit_test(test_beside_all_else)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
