/* What adapters beside experts and latent attention keep for the backward pass, by algebra. */
#include "models/workload/recompute.h"
#include "models/workload/saved.h"
#include "tests/lora_example.h"

static pc_part_activation activation(const pc_model *model, const pc_cut *cut, int32_t modules) {
    pc_part_activation x;
    pc_error error = {0};
    pc_part layer = {.layers = 1, .expert_layers = 1};
    if (modules) layer.recompute = PC_RECOMPUTE_MODULES, layer.recompute_modules = modules;
    if (pc_part_activations(model, cut, &layer, (pc_pass_forms){.splits = true}, &x, &error))
        fail_msg("%s", error.message);
    return x;
}

/* A token of Mixtral on one rank: two norms' inputs, 4h; queries, keys, values and the context, 2(qkv + q); fp32 scores
 * of 8 experts; and gate and up of two. An adapter of the first matrix keeps its rows and A's output, 2 x 2(h + r); of
 * the second one 2 x 2(f + r). W needs these, and gradients of what A and B put out. */
static void test_memory_of_experts(void **state) {
    (void)state;
    pc_model model = mixtral();
    pc_cut cut = lone_cut();
    const wide tokens = 8192, h = 4096, q = 4096, qkv = 6144, f = 14336, r = 16;
    const wide frozen = 4 * h + 2 * (qkv + q) + 4 * 8 + 2 * 4 * f;
    cut.lora = (pc_lora){.rank = 16, .targets = PC_LORA_FC1};
    pc_part_activation x = activation(&model, &cut, 0);
    assert_wide_equal(x.taken, tokens * (frozen + 4 * (h + r)));
    assert_wide_equal(x.taken - x.b_frees, tokens * (4 * (h + 2 * r) + 4 * 2 * f));
    cut.lora.targets = PC_LORA_FC2;
    x = activation(&model, &cut, 0);
    assert_wide_equal(x.taken, tokens * (frozen + 4 * (f + r)));
    assert_wide_equal(x.taken - x.b_frees, tokens * (4 * (f + 2 * r) + 4 * h));
    cut.lora.divides_rank = true;
    assert_wide_equal(activation(&model, &cut, 0).taken, tokens * (frozen + 4 * (f + r / 2)));
    cut.lora.divides_rank = false;
    cut.lora.dropout = 0.1;
    x = activation(&model, &cut, 0);
    assert_wide_equal(x.taken, tokens * (frozen + 6 * f + 4 * r));
}

/* Recomputed experts keep what they begin with, 2h, and nothing of their adapters; activations alone leave the second
 * adapter's input out, and keep what its dropout made. */
static void test_memory_of_recomputed_experts(void **state) {
    (void)state;
    pc_model model = mixtral();
    pc_cut cut = lone_cut();
    const wide tokens = 8192, h = 4096, q = 4096, qkv = 6144, f = 14336, r = 16;
    const wide frozen = 4 * h + 2 * (qkv + q);
    cut.lora = (pc_lora){.rank = 16, .targets = PC_LORA_FC1 | PC_LORA_FC2};
    assert_wide_equal(activation(&model, &cut, PC_RECOMPUTES_MOE).kept, tokens * (frozen + 2 * h));
    assert_wide_equal(activation(&model, &cut, PC_RECOMPUTES_MOE_ACT).kept,
                      tokens * (frozen + 32 + 8 * f + 4 * (h + 2 * r)));
    cut.lora.dropout = 0.1;
    assert_wide_equal(activation(&model, &cut, PC_RECOMPUTES_MOE).kept, tokens * (frozen + 2 * h));
    assert_wide_equal(activation(&model, &cut, PC_RECOMPUTES_MOE_ACT).kept,
                      tokens * (frozen + 32 + 8 * f + 6 * (h + f) + 4 * 2 * r));
}

/* A token of DeepSeek-V3's attention: the norm's input and those of both latents, queries, keys, values and what flash
 * attention puts out. The two matrices that go down read one tensor, 2h; those that go up the latents. */
static void test_memory_of_latents(void **state) {
    (void)state;
    pc_model model = deepseek();
    pc_cut cut = lone_cut();
    const wide tokens = 8192, h = 7168, r = 16, q = 128 * 192, output = 128 * 128;
    const wide frozen = 2 * h + 2 * (1536 + 512) + 2 * (2 * q + output) + 2 * output;
    const wide mlp = 2 * h + 4 * 256 + 8 * 2 * 4096 + 2 * 4096;
    cut.lora = (pc_lora){.rank = 16, .targets = PC_LORA_PROJ};
    assert_wide_equal(activation(&model, &cut, 0).taken, tokens * (frozen + mlp + 2 * r));
    cut.lora.targets = PC_LORA_Q_DOWN | PC_LORA_KV_DOWN;
    assert_wide_equal(activation(&model, &cut, 0).taken, tokens * (frozen + mlp + 2 * h + 4 * r));
    cut.lora.targets = PC_LORA_Q_UP | PC_LORA_KV_UP;
    assert_wide_equal(activation(&model, &cut, 0).taken, tokens * (frozen + mlp + 2 * (1536 + 512) + 4 * r));
    assert_wide_equal(activation(&model, &cut, PC_RECOMPUTES_MLA_UP_PROJ).kept,
                      tokens * (frozen - 2 * (2 * q + output) + mlp + 2 * (1536 + 512)));
    cut.lora = (pc_lora){.rank = 16, .targets = PC_LORA_FC1, .shares_experts = true};
    assert_wide_equal(activation(&model, &cut, 0).taken, tokens * (frozen + mlp + 9 * 2 * (h + r)));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_memory_of_experts),
        cmocka_unit_test(test_memory_of_recomputed_experts),
        cmocka_unit_test(test_memory_of_latents),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
