/* Layers by time: the slowest stage is the fastest possible, and an iteration laid out so is that of the list. */
#include "tests/support.h"

#include "models/training/iteration.h"
#include "models/training/outline.h"
#include "models/workload/layout_balance.h"
#include "tests/planner_example.h"

#include <math.h>

enum { PARTS_MAX = 8 };

static void check_layers(int64_t layers, int parts, int stages, const int *stage_of_part, pc_layout_times times,
                         const int32_t *expected) {
    int32_t made[PARTS_MAX] = {0};
    pc_layout_balance(layers, parts, stages, stage_of_part, &times, NULL, made);
    for (int i = 0; i < parts; i++) assert_int_equal(made[i], expected[i]);
}

/* Four stages, 14 layers of 1 s. An embedding of 0 and a head of 2 layers: 4 4 4 2, all of 4 s. With a head of 1.5 the
 * 14 and 1.5 are 15.5 over 4: 3 stages of 4 and 2 + 1.5. A head of 9 layers is 9 s whatever else is done: the last has
 * none, and 14 over three stages are 4 5 5, the later ones longer. Two chunks of two stages, a head of 2: 16 / 2 = 8 a
 * stage, 4 4 on the first and 3 and 1 + 2 on the last, or 2 s more of either; and embedding and head of a V on one
 * stage: 7 of the other, 4 and 3. */
static void test_by_hand(void **state) {
    (void)state;
    static const int four[] = {0, 1, 2, 3}, looped[] = {0, 1, 0, 1}, folded[] = {0, 1, 1, 0};
    check_layers(14, 4, 4, four, (pc_layout_times){1, 0, 2}, (const int32_t[]){4, 4, 4, 2});
    check_layers(14, 4, 4, four, (pc_layout_times){1, 0, 1.5}, (const int32_t[]){4, 4, 4, 2});
    check_layers(14, 4, 4, four, (pc_layout_times){1, 0, 9}, (const int32_t[]){4, 5, 5, 0});
    check_layers(14, 4, 4, four, (pc_layout_times){1, 1, 1}, (const int32_t[]){3, 4, 4, 3});
    check_layers(14, 4, 2, looped, (pc_layout_times){1, 0, 2}, (const int32_t[]){4, 4, 4, 2});
    check_layers(12, 4, 2, folded, (pc_layout_times){1, 1, 1}, (const int32_t[]){2, 3, 4, 3});
    check_layers(3, 1, 1, four, (pc_layout_times){1, 1, 1}, (const int32_t[]){3});
    check_layers(1, 3, 3, four, (pc_layout_times){1, 0, 0}, (const int32_t[]){0, 0, 1});
}

/* The least slowest stage over all divisions of `layers` from stage `stage` on. */
/* NOLINTNEXTLINE(misc-no-recursion): as deep as there are stages */
static double least_slowest(int64_t layers, int stage, int stages, const double *ends_s, double layer_s) {
    double least = INFINITY;
    if (stage == stages - 1) return ends_s[stage] + (double)layers * layer_s;
    for (int64_t here = 0; here <= layers; here++) {
        double own = ends_s[stage] + (double)here * layer_s;
        double all = fmax(own, least_slowest(layers - here, stage + 1, stages, ends_s, layer_s));
        if (all < least) least = all;
    }
    return least;
}

static double slowest_of(const int32_t *made, int parts, int stages, const int *stage_of_part, const double *ends_s,
                         double layer_s) {
    double slowest = 0;
    for (int stage = 0; stage < stages; stage++) {
        int64_t layers = 0;
        for (int i = 0; i < parts; i++) layers += stage_of_part[i] == stage ? made[i] : 0;
        slowest = fmax(slowest, ends_s[stage] + (double)layers * layer_s);
    }
    return slowest;
}

/* Against every division. */
static void test_none_is_better(void **state) {
    (void)state;
    test_random random = {2411};
    for (long i = 0; i < test_cases(400, 4000); i++) {
        int stages = (int)test_between(&random, 1, 4), chunks = (int)test_between(&random, 1, 2), at[PARTS_MAX] = {0};
        int parts = stages * chunks;
        int64_t layers = test_between(&random, 0, 12), sum = 0;
        bool folds = test_between(&random, 0, 1);
        pc_layout_times times = {(double)test_between(&random, 1, 3), (double)test_between(&random, 0, 4),
                                 (double)test_between(&random, 0, 20) / 2};
        double ends_s[PARTS_MAX] = {0};
        int32_t made[PARTS_MAX] = {0};
        for (int part = 0; part < parts; part++) at[part] = folds && part >= stages ? parts - 1 - part : part % stages;
        ends_s[at[0]] += times.embedding_s;
        ends_s[at[parts - 1]] += times.head_s;
        pc_layout_balance(layers, parts, stages, at, &times, NULL, made);
        for (int part = 0; part < parts; part++) {
            assert_true(made[part] >= 0);
            sum += made[part];
        }
        assert_int_equal(sum, layers);
        assert_true(slowest_of(made, parts, stages, at, ends_s, times.layer_s) ==
                    least_slowest(layers, 0, stages, ends_s, times.layer_s));
    }
}

static bool run(const pc_iteration_spec *spec, pc_iteration *iteration) {
    pc_error error = {0};
    pc_code code = pc_iteration_run(spec, NULL, false, iteration, &error);
    if (code && code != PC_ERROR_INPUT) fail_msg("%s", error.message);
    return code == PC_OK;
}

/* The iteration of its list of layers, to the bit, in whatever schedule. */
static void check_spec(pc_iteration_spec spec, pc_cut_layout layout, long *checked) {
    pc_iteration balanced, listed;
    pc_outline outline;
    spec.cut.layout = layout;
    if (pc_outline_check(&spec, NULL) || !run(&spec, &balanced)) return;
    assert_int_equal(pc_outline_make(&spec, NULL, &outline, NULL), PC_OK);
    int64_t sum = 0;
    for (int i = 0; i < outline.parts; i++) sum += outline.layers_of_part[i];
    assert_int_equal(sum, spec.model.layers);
    spec.cut.layout = PC_CUT_LISTED;
    spec.cut.layers_of_part = outline.layers_of_part;
    assert_true(run(&spec, &listed));
    assert_true(listed.iteration_s == balanced.iteration_s || balanced.status);
    assert_int_equal(listed.memory[0].peak_bytes, balanced.memory[0].peak_bytes);
    pc_outline_free(&outline);
    pc_iteration_free(&balanced);
    pc_iteration_free(&listed);
    ++*checked;
}

static void test_iterations(void **state) {
    (void)state;
    test_random random = {55};
    long checked = 0;
    for (long i = 0; i < test_cases(40, 400); i++) {
        example_space drawn;
        draw_space(&random, 2000, false, &drawn);
        pc_iteration_spec spec = drawn.bases[0].spec;
        spec.cut.tp = spec.cut.dp = 1;
        spec.cut.pp = (int)test_between(&random, 1, 4);
        spec.generator = drawn.generators[0];
        spec.cut.chunks = spec.generator->chunks_default;
        spec.cut.microbatch_size = 1;
        spec.cut.microbatches = 8;
        spec.order = drawn.orders[0];
        spec.memory_limit_bytes = INT64_C(1) << 50;
        check_spec(spec, PC_CUT_BALANCED, &checked);
        check_spec(spec, PC_CUT_BALANCED_MEMORY, &checked);
    }
    assert_true(test_saw(checked, 22));
}

/* What has no time of its own for every layer, or two replicas on a stage, is refused. */
static void test_refused(void **state) {
    (void)state;
    test_random random = {7};
    example_space drawn;
    pc_error error;
    draw_space(&random, 2000, false, &drawn);
    pc_iteration_spec spec = drawn.bases[0].spec;
    spec.cut.tp = spec.cut.dp = spec.cut.pp = spec.cut.chunks = 1;
    spec.cut.microbatch_size = spec.cut.microbatches = 4;
    spec.cut.layout = PC_CUT_BALANCED;
    spec.cut.offload.kinds = 0;
    spec.cut.recompute = PC_RECOMPUTE_BLOCK;
    spec.cut.recompute_layers = 1;
    spec.generator = pc_generator_find("1f1b");
    assert_int_equal(pc_outline_check(&spec, &error), PC_ERROR_INPUT);
    assert_non_null(strstr(error.message, "layout balanced with recomputation that counts"));
    spec.cut.recompute = PC_RECOMPUTE_NONE;
    spec.generator = pc_generator_find("chimera");
    assert_int_equal(pc_outline_check(&spec, &error), PC_ERROR_INPUT);
    assert_non_null(strstr(error.message, "layout balanced with chimera"));
    spec.cut.layout = PC_CUT_BALANCED_MEMORY;
    assert_int_equal(pc_outline_check(&spec, &error), PC_ERROR_INPUT);
    assert_non_null(strstr(error.message, "layout balanced-memory with chimera"));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_by_hand), cmocka_unit_test(test_none_is_better),
                                       cmocka_unit_test(test_iterations), cmocka_unit_test(test_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
