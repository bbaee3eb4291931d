/* Layers by time within memory: of all divisions of small models that fit, none has a faster slowest stage; where none
 * fits, none lacks less. */
#include "tests/support.h"

#include "engine/numbers.h"
#include "models/training/iteration.h"
#include "models/training/iteration_spec.h"
#include "models/training/outline.h"
#include "models/training/outline_balance.h"
#include "models/training/sample.h"
#include "models/training/sample_base.h"
#include "models/workload/attention.h"
#include "tests/planner_example.h"

#include <math.h>

enum { STAGES_MAX = 4 };
static const int64_t plenty = INT64_C(1) << 50;

/* ---- dealing within a most ---- */

/* 14 layers of 1 s and a head of 2 s over four stages, of which the first may have two: 12 layers and 2 s are left for
 * three, 14 / 3, so 5 s at most: 4 5 3. With no more than 14 in all there is no choice. */
static void test_by_hand(void **state) {
    (void)state;
    static const int four[] = {0, 1, 2, 3};
    const pc_layout_times times = {1, 0, 2};
    const struct {
        int64_t most[4];
        int32_t expected[4];
    } cases[] = {{{2, 14, 14, 14}, {2, 4, 5, 3}}, {{14, 14, 14, 14}, {4, 4, 4, 2}}, {{1, 0, 3, 10}, {1, 0, 3, 10}}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int32_t made[4];
        pc_layout_balance(14, 4, 4, four, &times, cases[i].most, made);
        for (int part = 0; part < 4; part++) assert_int_equal(made[part], cases[i].expected[part]);
    }
}

/* A most that nobody reaches changes nothing. */
static void test_no_most(void **state) {
    (void)state;
    test_random random = {93};
    for (long i = 0; i < test_cases(200, 2000); i++) {
        int stages = (int)test_between(&random, 1, 4), chunks = (int)test_between(&random, 1, 2), at[8];
        int64_t layers = test_between(&random, 0, 20), most[4] = {layers, layers, layers, layers};
        pc_layout_times times = {(double)test_between(&random, 1, 3), (double)test_between(&random, 0, 4),
                                 (double)test_between(&random, 0, 9)};
        int32_t with[8], without[8];
        for (int part = 0; part < stages * chunks; part++) at[part] = part % stages;
        pc_layout_balance(layers, stages * chunks, stages, at, &times, most, with);
        pc_layout_balance(layers, stages * chunks, stages, at, &times, NULL, without);
        assert_memory_equal(with, without, (size_t)(stages * chunks) * sizeof *with);
    }
}

/* ---- all divisions ---- */

/* A division: what its fullest stage holds more than its GPU can, and its slowest stage's time. */
typedef struct judged {
    int64_t missing;
    double slowest_s;
} judged;

static judged judge(pc_iteration_spec spec, const pc_layer_dealing *dealing, const int32_t *layers, int parts,
                    const int64_t *capacity) {
    pc_iteration iteration;
    double stage_s[STAGES_MAX] = {0};
    judged found = {.missing = INT64_MIN};
    spec.cut.layout = PC_CUT_LISTED;
    spec.cut.layers_of_part = layers;
    spec.memory_limit_bytes = plenty;
    spec.bad_days = (pc_bad_days){0};
    pc_error error = {0};
    if (pc_iteration_run(&spec, NULL, false, &iteration, &error)) fail_msg("%s", error.message);
    if (iteration.status && !strstr(iteration.message, "host memory")) fail_msg("%s", iteration.message);
    int64_t share = pc_machine_host_memory(&spec.machine);
    for (int d = 0; d < spec.cut.pp; d++) {
        found.missing = pc_max(found.missing, iteration.memory[d].peak_bytes - capacity[d]);
        if (share > 0) found.missing = pc_max(found.missing, iteration.memory[d].host_bytes - share);
    }
    for (int i = 0; i < parts; i++)
        stage_s[dealing->stage_of_part[i]] += layers[i] * dealing->times.layer_s +
                                              (i == 0 ? dealing->times.embedding_s : 0) +
                                              (i == parts - 1 ? dealing->times.head_s : 0);
    for (int d = 0; d < spec.cut.pp; d++) found.slowest_s = fmax(found.slowest_s, stage_s[d]);
    pc_iteration_free(&iteration);
    return found;
}

/* The best of all divisions of the layers that are left, over stages from `stage` on. */
typedef struct all_divisions {
    const pc_iteration_spec *spec;
    const pc_layer_dealing *dealing;
    int parts;
    int64_t capacity[STAGES_MAX], of_stage[STAGES_MAX];
    judged fastest; /* that fits; slowest_s INFINITY: none */
    int64_t least_missing;
} all_divisions;

/* NOLINTNEXTLINE(misc-no-recursion): as deep as there are stages */
static void try_all(all_divisions *all, int stage, int64_t left) {
    int32_t layers[8 * STAGES_MAX];
    if (stage < all->spec->cut.pp - 1) {
        for (all->of_stage[stage] = 0; all->of_stage[stage] <= left; all->of_stage[stage]++)
            try_all(all, stage + 1, left - all->of_stage[stage]);
        return;
    }
    all->of_stage[stage] = left;
    pc_layout_balance(all->spec->model.layers, all->parts, all->spec->cut.pp, all->dealing->stage_of_part,
                      &all->dealing->times, all->of_stage, layers);
    judged found = judge(*all->spec, all->dealing, layers, all->parts, all->capacity);
    if (found.missing < all->least_missing) all->least_missing = found.missing;
    if (found.missing <= 0 && found.slowest_s < all->fastest.slowest_s) all->fastest = found;
}

static bool are_alike(const pc_iteration_spec *spec) {
    const pc_model *model = &spec->model;
    int64_t experts = pc_model_expert_layers(model, 0, model->layers);
    int64_t local = pc_model_is_mixed(model, spec->cut.seq_len) ? pc_model_local_layers(model, 0, model->layers) : 0;
    return (experts == 0 || experts == model->layers) && (local == 0 || local == model->layers) &&
           model->low.bf16_first == 0 && model->low.bf16_last == 0;
}

/* A spec of a drawn space, of few layers over few stages. */
static pc_iteration_spec draw_spec(test_random *random, const example_space *drawn) {
    pc_iteration_spec spec = drawn->bases[0].spec;
    spec.model.layers = test_between(random, 1, 7);
    spec.cut.tp = 1;
    spec.cut.dp = (int)test_between(random, 1, 2);
    spec.cut.zero = spec.cut.dp > 1 ? (int)test_between(random, 0, 3) : 0;
    spec.cut.pp = (int)test_between(random, 1, STAGES_MAX);
    spec.cut.chunks = drawn->generators[0]->chunks_default;
    spec.cut.microbatch_size = 1;
    spec.cut.microbatches = spec.cut.pp * test_between(random, 1, 3);
    spec.cut.layout = PC_CUT_BALANCED_MEMORY;
    spec.generator = drawn->generators[0];
    spec.overlaps_pairs = spec.overlaps_pairs && pc_generator_pairs(spec.generator, 1, 1);
    spec.order = drawn->orders[0];
    spec.memory_limit_bytes = plenty;
    return spec;
}

/* Every GPU on a node of its own. */
static void scatter(pc_iteration_spec *spec) {
    spec->machine.gpus_per_node = spec->machine.domain_gpus = spec->machine.nics_per_node = 1;
    spec->machine.segment_gpus = spec->machine.leaf_nodes = 0;
    spec->machine.nodes = 0;
}

/* From what `bytes` are, which is enough, down to less than anything needs: of all GPUs, or, on nodes of one GPU, less
 * on the last one alone. */
static void limit_memory(test_random *random, int64_t bytes, pc_iteration_spec *spec) {
    int64_t least = bytes / 100 * test_between(random, 70, 99);
    bool has_other = test_between(random, 0, 1);
    spec->memory_limit_bytes = has_other ? PC_NO_LIMIT : least;
    if (!has_other) return;
    spec->machine.gpu.memory_reserved_bytes = 0;
    spec->machine.gpu.memory_bytes = bytes / 100 * test_between(random, 100, 130);
    spec->bad_days.other_gpu = spec->machine.gpu;
    spec->bad_days.other_gpu.memory_bytes = least;
    spec->bad_days.other_nodes = spec->bad_days.samples = 1;
    scatter(spec);
}

typedef struct seen_divisions {
    long moved, full, mixed;
} seen_divisions;

static void check_spec(test_random *random, pc_iteration_spec spec, seen_divisions *seen) {
    static const int64_t none[STAGES_MAX] = {0};
    pc_outline outline;
    pc_layer_dealing dealing;
    pc_iteration iteration;
    pc_error error = {0};
    if (pc_iteration_spec_check(&spec, NULL) || pc_outline_check(&spec, NULL)) return;
    if (pc_outline_make(&spec, NULL, &outline, NULL)) return;
    assert_int_equal(pc_outline_dealing(&outline, &dealing, NULL), PC_OK);
    judged alone = judge(spec, &dealing, outline.layers_of_part, outline.parts, none);
    pc_outline_free(&outline);

    limit_memory(random, alone.missing, &spec);
    if (pc_iteration_spec_check(&spec, NULL) || pc_outline_check(&spec, NULL)) return;
    if (pc_outline_make(&spec, NULL, &outline, &error)) fail_msg("%s", error.message);
    pc_samples_limit_memory(&outline);
    assert_int_equal(pc_outline_dealing(&outline, &dealing, NULL), PC_OK);
    all_divisions all = {&spec, &dealing, outline.parts, {0}, {0}, {0, INFINITY}, INT64_MAX};
    for (int d = 0; d < spec.cut.pp; d++) all.capacity[d] = outline.device[d].capacity_bytes;
    try_all(&all, 0, spec.model.layers);
    judged made = judge(spec, &dealing, outline.layers_of_part, outline.parts, all.capacity);
    bool fits = all.fastest.slowest_s < INFINITY;
    if (fits) {
        assert_true(made.missing <= 0);
        assert_true(made.slowest_s == all.fastest.slowest_s);
    } else {
        assert_int_equal(made.missing, all.least_missing);
    }
    assert_int_equal(pc_iteration_run(&spec, NULL, false, &iteration, NULL), PC_OK);
    if ((iteration.status == PC_RUN_OK) != fits) fail_msg("%s", iteration.message);
    seen->moved += fits && made.slowest_s > alone.slowest_s;
    seen->full += !fits;
    seen->mixed += fits && made.slowest_s > alone.slowest_s && all.capacity[0] != all.capacity[spec.cut.pp - 1];
    pc_iteration_free(&iteration);
    pc_outline_free(&outline);
}

static void test_none_is_better(void **state) {
    (void)state;
    test_random random = {2917};
    seen_divisions seen = {0};
    for (long i = 0; i < test_cases(800, 6000); i++) {
        example_space drawn;
        draw_space(&random, 2000, false, &drawn);
        pc_iteration_spec spec = draw_spec(&random, &drawn);
        if (!are_alike(&spec) || pc_offload_is_beside_passes(&spec.cut.offload)) continue;
        check_spec(&random, spec, &seen);
    }
    assert_true(test_saw(seen.moved, 12));
    assert_true(test_saw(seen.full, 50));
    assert_true(test_saw(seen.mixed, 2));
}

/* ---- orders that are searched for ---- */

/* No stage holds more than by the schedule's name. */
static void check_search(pc_iteration_spec spec, long *checked) {
    pc_outline outline;
    pc_costs costs;
    pc_iteration iteration;
    if (pc_iteration_spec_check(&spec, NULL) || pc_outline_check(&spec, NULL)) return;
    if (spec.making != PC_MAKING_COSTS && spec.making != PC_MAKING_EQUAL) return;
    assert_int_equal(pc_outline_make(&spec, NULL, &outline, NULL), PC_OK);
    assert_int_equal(pc_outline_costs(&outline, 0, &costs, NULL), PC_OK);
    assert_int_equal(pc_iteration_run(&spec, NULL, false, &iteration, NULL), PC_OK);
    const pc_generate_request request = {.microbatches = spec.cut.microbatches, .costs = &costs};
    for (int d = 0; d < outline.devices && !iteration.status && !spec.generator->adapts; d++) {
        assert_true(iteration.memory[d].activations <= pc_generator_named_memory(spec.generator, &request, d));
        ++*checked;
    }
    pc_iteration_free(&iteration);
    pc_costs_free(&costs);
    pc_outline_free(&outline);
}

static void test_searches(void **state) {
    (void)state;
    test_random random = {31};
    long checked = 0;
    for (long i = 0; i < test_cases(60, 600); i++) {
        example_space drawn;
        draw_searched_space(&random, 2000, false, &drawn);
        pc_iteration_spec spec = draw_spec(&random, &drawn);
        spec.effort = PC_EFFORT_QUICK;
        if (!pc_offload_is_beside_passes(&spec.cut.offload)) check_search(spec, &checked);
    }
    assert_true(test_saw(checked, 20));
}

static int64_t fullest(const pc_iteration *iteration) {
    int64_t most = 0;
    for (int d = 0; d < iteration->devices; d++) most = pc_max(most, iteration->memory[d].peak_bytes);
    return most;
}

static pc_iteration run_laid_out(pc_iteration_spec spec, pc_cut_layout layout) {
    pc_iteration iteration;
    pc_error error = {0};
    spec.cut.layout = layout;
    if (pc_iteration_run(&spec, NULL, false, &iteration, &error)) fail_msg("%s", error.message);
    return iteration;
}

/* Whatever the layout is counted by: what fits as BALANCED fits here and holds no more, and what fits here though not
 * so is what moving layers is for. Limits are drawn between what the order of BALANCED holds and what its name lets it
 * hold, too. */
static void check_fits(test_random *random, pc_iteration_spec spec, long *fitting, long *open, long *moved) {
    spec.memory_limit_bytes = plenty;
    if (pc_iteration_spec_check(&spec, NULL) || pc_outline_check(&spec, NULL)) return;
    pc_iteration free_run = run_laid_out(spec, PC_CUT_BALANCED);
    int64_t held = fullest(&free_run);
    pc_iteration_free(&free_run);
    spec.memory_limit_bytes = held + held / 200 * test_between(random, -20, 20);
    pc_iteration balanced = run_laid_out(spec, PC_CUT_BALANCED);
    pc_iteration fitted = run_laid_out(spec, PC_CUT_BALANCED_MEMORY);
    if (balanced.status == PC_RUN_OK) {
        if (fitted.status) fail_msg("%s: %s", spec.generator->name, fitted.message);
        assert_true(fullest(&fitted) <= fullest(&balanced));
        assert_true(fullest(&fitted) <= spec.memory_limit_bytes);
        *fitting += 1;
        *open += spec.generator->searches && !spec.generator->adapts && spec.cut.pp > 1;
    }
    *moved += fitted.status == PC_RUN_OK && balanced.status == PC_RUN_OUT_OF_MEMORY;
    pc_iteration_free(&balanced);
    pc_iteration_free(&fitted);
}

static void test_what_fits_balanced_fits(void **state) {
    (void)state;
    test_random random = {1163};
    long fitting = 0, open = 0, moved = 0;
    for (long i = 0; i < test_cases(300, 3000); i++) {
        example_space drawn;
        if (i % 4 == 0)
            draw_space(&random, 2000, false, &drawn);
        else
            draw_searched_space(&random, 2000, false, &drawn);
        pc_iteration_spec spec = draw_spec(&random, &drawn);
        spec.effort = PC_EFFORT_QUICK;
        spec.cut.microbatches = spec.cut.pp * test_between(&random, 1, 3);
        if (!pc_offload_is_beside_passes(&spec.cut.offload)) check_fits(&random, spec, &fitting, &open, &moved);
    }
    print_message("%ld fit, %ld of them searched; %ld fit by moving layers\n", fitting, open, moved);
    assert_true(test_saw(fitting, 40) && test_saw(open, 10) && test_saw(moved, 2));
}

/* ---- bad days ---- */

/* Layers stay where they are when links get bad. Here tensor ranks talk over these links, so that a layer would weigh
 * more beside the head. */
static void test_bad_days_keep_layers(void **state) {
    (void)state;
    test_random random = {8};
    long moved = 0;
    for (long i = 0; i < test_cases(400, 2000); i++) {
        example_space drawn;
        pc_outline outline, other;
        pc_sample_base base;
        draw_space(&random, 2000, false, &drawn);
        pc_iteration_spec spec = draw_spec(&random, &drawn);
        spec.cut.layout = PC_CUT_BALANCED;
        spec.cut.tp = 2;
        spec.cut.sequence_parallel = true;
        spec.model.layers = 12;
        scatter(&spec);
        spec.bad_days.bad_links = spec.bad_days.samples = 1;
        spec.bad_days.bad_factor = 1e-3;
        if (pc_iteration_spec_check(&spec, NULL) || pc_outline_check(&spec, NULL)) continue;
        if (pc_outline_make(&spec, NULL, &outline, NULL)) continue;
        if (!pc_sample_base_make(&outline, &base, NULL)) {
            size_t size = (size_t)outline.parts * sizeof *outline.layers_of_part;
            base.worse_spec.cut.layout = PC_CUT_BALANCED;
            assert_memory_equal(base.worse.cut.layers_of_part, outline.layers_of_part, size);
            assert_int_equal(pc_outline_make(&base.worse_spec, NULL, &other, NULL), PC_OK);
            moved += memcmp(other.layers_of_part, outline.layers_of_part, size) != 0;
            pc_outline_free(&other);
            pc_sample_base_free(&base);
        }
        pc_outline_free(&outline);
    }
    assert_true(test_saw(moved, 3));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_by_hand),
                                       cmocka_unit_test(test_no_most),
                                       cmocka_unit_test(test_none_is_better),
                                       cmocka_unit_test(test_searches),
                                       cmocka_unit_test(test_what_fits_balanced_fits),
                                       cmocka_unit_test(test_bad_days_keep_layers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
