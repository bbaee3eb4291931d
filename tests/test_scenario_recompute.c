/* Scenarios that say in Megatron-LM's arguments what is recomputed: which cut comes of them, and what is refused. */
#include "tests/scenario_files.h"

static pc_scenario *load_asked(const char *keys) {
    char text[512];
    snprintf(text, sizeof text,
             "scenario: x\nsetting: {model: {from: gpt3-1.3b}, machine: dgx-a100, pp: 4, microbatches: 8, %s}\n", keys);
    return load_text(text);
}

static void test_arguments(void **state) {
    (void)state;
    static const struct {
        const char *keys;
        pc_recompute kind;
        int layers, modules;
    } cases[] = {{"recompute: selective", PC_RECOMPUTE_SELECTIVE, 0, 0},
                 {"recompute: selective, recompute_modules: [core_attn]", PC_RECOMPUTE_MODULES, 0, 1},
                 {"recompute: selective, recompute_modules: [mlp, core_attn]", PC_RECOMPUTE_MODULES, 0, 5},
                 {"recompute: selective, recompute_modules: 'layernorm, mlp'", PC_RECOMPUTE_MODULES, 0, 6},
                 {"recompute: 'selective:layernorm'", PC_RECOMPUTE_MODULES, 0, 2},
                 {"recompute: full", PC_RECOMPUTE_FULL, 0, 0},
                 {"recompute: full, recompute_method: uniform, recompute_layers: 3", PC_RECOMPUTE_UNIFORM, 3, 0},
                 {"recompute: full, recompute_method: block, recompute_layers: 2", PC_RECOMPUTE_BLOCK, 2, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pc_scenario *scenario = load_asked(cases[i].keys);
        pc_run_spec spec = spec_of(scenario, 0);
        const pc_cut *cut = &spec.iteration.cut;
        assert_int_equal(cut->recompute, cases[i].kind);
        assert_int_equal(cut->recompute_layers, cases[i].layers);
        assert_int_equal(cut->recompute_modules, cases[i].modules);
        pc_run_spec_free(&spec);
        pc_scenario_free(scenario);
    }
}

/* Parts of their own numbers and modules. */
static void test_lists(void **state) {
    (void)state;
    pc_scenario *scenario = load_asked("recompute: 'full-block-2,full-block-1,selective:mlp+core_attn, none'");
    pc_run_spec spec = spec_of(scenario, 0);
    const pc_cut *cut = &spec.iteration.cut;
    pc_part part[4];
    for (int i = 0; i < 4; i++) part[i] = pc_cut_part(&spec.iteration.model, cut, 4, i);
    assert_true(part[0].recompute == PC_RECOMPUTE_BLOCK && part[0].recompute_layers == 2);
    assert_true(part[1].recompute == PC_RECOMPUTE_BLOCK && part[1].recompute_layers == 1);
    assert_true(part[2].recompute == PC_RECOMPUTE_MODULES && part[2].recompute_modules == 5);
    assert_true(part[3].recompute == PC_RECOMPUTE_NONE && part[3].recompute_layers == 0);
    pc_run_spec_free(&spec);
    pc_scenario_free(scenario);
}

/* Every refusal says what to write. */
static void test_refusals(void **state) {
    (void)state;
    static const struct {
        const char *sets[3], *expected;
    } cases[] = {
        {{"setting.recompute_modules=mlp"},
         "--set setting.recompute_modules=mlp: setting.recompute_modules: stands beside recompute: none; expected "
         "recompute: selective"},
        {{"setting.recompute=full", "setting.recompute_modules=mlp"},
         "--set setting.recompute_modules=mlp: setting.recompute_modules: stands beside recompute: full; expected "
         "recompute: selective"},
        {{"setting.recompute=full", "setting.recompute_layers=2"},
         "--set setting.recompute_layers=2: setting.recompute_layers: stands beside no recompute_method; expected "
         "uniform or block"},
        {{"setting.recompute=full", "setting.recompute_method=block"},
         "--set setting.recompute_method=block: setting.recompute_method: stands beside no recompute_layers; expected "
         "a number of layers"},
        {{"setting.recompute_layers=2", "setting.recompute_method=block"},
         "--set setting.recompute_method=block: setting.recompute_method: stands beside recompute: none; expected "
         "recompute: full"},
        {{"setting.recompute_modules=[mlp, mlp]"},
         "--set setting.recompute_modules=[mlp, mlp]: setting.recompute_modules: mlp,mlp: no modules; expected some"},
        {{"setting.recompute_modules=norm"},
         "--set setting.recompute_modules=norm: setting.recompute_modules: norm: no modules; expected some of"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *sets[7] = {"setting.model.from=gpt3-1.3b", "setting.machine=dgx-a100", "setting.pp=4",
                               "setting.microbatches=8"};
        int count = 4;
        for (int s = 0; s < 3 && cases[i].sets[s]; s++) sets[count++] = cases[i].sets[s];
        assert_starts(message_of(NULL, sets, count), cases[i].expected);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_arguments),
        cmocka_unit_test(test_lists),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, make_temporary, remove_temporary);
}
