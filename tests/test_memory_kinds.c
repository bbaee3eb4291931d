/* What memory is made of: by algebra for one layer; and that kinds add up, at the peak and at every level, of specs
 * drawn at random. */
#include "tests/support.h"

#include "models/training/iteration.h"
#include "models/training/outline.h"
#include "models/workload/memory_kinds.h"
#include "tests/iteration_example.h"

#include <string.h>

static void expect_kinds(const pc_activation_bytes *found, const int64_t expected[PC_ACTIVATION_KINDS], int64_t unit) {
    for (int kind = 0; kind < PC_ACTIVATION_KINDS; kind++)
        if (found->of[kind] != expected[kind] * unit)
            fail_msg("kind %d: %lld; expected %lld times %lld", kind, (long long)found->of[kind],
                     (long long)expected[kind], (long long)unit);
}

/* ---- one part ---- */

/* Two GPT layers with dropout on one rank, with flash attention. In units of s*b*h: attention keeps its input (2),
 * query, key and value (6), its output (2) and the mask (1); the MLP its input (2), both ends of GELU (8 + 8) and the
 * mask (1); the norms their inputs (2 + 2). That is 34 (Korthikanti et al. 2022, table 2). */
static pc_part_kinds kinds_of(const char *recompute, bool splits, bool has_ends, pc_part_activation *sums) {
    pc_iteration_spec spec = example_spec();
    pc_recomputation recomputation;
    pc_part part = {.layers = 2, .has_embedding = has_ends, .has_head = has_ends};
    pc_pass_forms forms = {.splits = splits};
    spec.cut.tp = 1;
    spec.cut.sequence_parallel = false;
    spec.model.attention = PC_ATTENTION_FLASH;
    spec.model.has_dropout = true;
    assert_true(pc_recomputation_parse(recompute, strlen(recompute), &recomputation));
    part.recompute = recomputation.kind;
    part.recompute_layers = recomputation.layers;
    part.recompute_modules = recomputation.modules;
    assert_int_equal(pc_part_activations(&spec.model, &spec.cut, &part, forms, sums, NULL), PC_OK);
    return pc_part_kinds_of(&spec.model, &spec.cut, &part, forms, sums);
}

static void test_kinds_of_a_layer(void **state) {
    (void)state;
    pc_part_activation sums;
    int64_t sbh = 1024 * 2048;
    pc_part_kinds kinds = kinds_of("none", false, false, &sums);
    expect_kinds(&kinds.taken, (int64_t[PC_ACTIVATION_KINDS]){22, 38, 8, 0, 0}, sbh);
    expect_kinds(&kinds.kept, (int64_t[PC_ACTIVATION_KINDS]){22, 38, 8, 0, 0}, sbh);
    expect_kinds(&kinds.left, (int64_t[PC_ACTIVATION_KINDS]){0, 0, 0, 0, 0}, sbh);
    /* Of that, W needs inputs of matrices, and gradients of their outputs: of attention 2 + 2 and 6 + 2, of the MLP
     * 2 + 8 and 8 + 2. */
    kinds = kinds_of("none", true, false, &sums);
    expect_kinds(&kinds.taken, (int64_t[PC_ACTIVATION_KINDS]){22, 38, 8, 0, 0}, sbh);
    expect_kinds(&kinds.left, (int64_t[PC_ACTIVATION_KINDS]){24, 40, 0, 0, 0}, sbh);
    /* A checkpoint is what the first norm reads. B leaves W the same. */
    kinds = kinds_of("full", false, false, &sums);
    expect_kinds(&kinds.taken, (int64_t[PC_ACTIVATION_KINDS]){0, 0, 4, 0, 0}, sbh);
    kinds = kinds_of("full-uniform-2", false, false, &sums);
    expect_kinds(&kinds.taken, (int64_t[PC_ACTIVATION_KINDS]){0, 0, 2, 0, 0}, sbh);
    kinds = kinds_of("full-block-1", true, false, &sums);
    expect_kinds(&kinds.kept, (int64_t[PC_ACTIVATION_KINDS]){11, 19, 6, 0, 0}, sbh);
    expect_kinds(&kinds.taken, (int64_t[PC_ACTIVATION_KINDS]){12 + 11, 20 + 19, 4, 0, 0}, sbh);
    expect_kinds(&kinds.left, (int64_t[PC_ACTIVATION_KINDS]){24, 40, 0, 0, 0}, sbh);
    /* Of a recomputed MLP the norm's output and the mask stay. */
    kinds = kinds_of("selective:mlp", false, false, &sums);
    assert_int_equal(kinds.taken.of[PC_ACTIVATION_ATTENTION], 22 * sbh);
    assert_true(kinds.taken.of[PC_ACTIVATION_MLP] <= 6 * sbh);
}

/* The embedding keeps its mask, sbh; the head the inputs of its norm and matrix, 4sbh, and the softmax in fp32. */
static void test_kinds_of_ends(void **state) {
    (void)state;
    pc_part_activation sums;
    int64_t sbh = 1024 * 2048, logits = INT64_C(1024) * 50304;
    pc_part_kinds kinds = kinds_of("none", true, true, &sums);
    assert_int_equal(kinds.taken.of[PC_ACTIVATION_EMBEDDING], sbh);
    assert_int_equal(kinds.taken.of[PC_ACTIVATION_HEAD], 4 * sbh + 4 * logits);
    assert_int_equal(kinds.left.of[PC_ACTIVATION_EMBEDDING], 0);
    assert_int_equal(kinds.left.of[PC_ACTIVATION_HEAD], 2 * sbh + 2 * logits);
    assert_int_equal(pc_activation_bytes_sum(&kinds.left), sums.taken - sums.b_frees);
}

/* One of two layers is on the host: half of each kind of the layers stays, and the ends as they are. */
static void test_kinds_beside_the_host(void **state) {
    (void)state;
    pc_part_activation sums;
    int64_t sbh = 1024 * 2048;
    pc_part_kinds all = kinds_of("none", false, true, &sums), kinds;
    pc_iteration_spec spec = example_spec();
    pc_part part = {.layers = 2, .has_embedding = true, .has_head = true};
    spec.cut.tp = 1;
    spec.cut.sequence_parallel = false;
    spec.model.attention = PC_ATTENTION_FLASH;
    spec.model.has_dropout = true;
    sums.taken -= 34 * sbh;
    sums.kept -= 34 * sbh;
    kinds = pc_part_kinds_of(&spec.model, &spec.cut, &part, (pc_pass_forms){.splits = false}, &sums);
    assert_int_equal(kinds.taken.of[PC_ACTIVATION_HEAD], all.taken.of[PC_ACTIVATION_HEAD]);
    kinds.taken.of[PC_ACTIVATION_HEAD] = 0;
    expect_kinds(&kinds.taken, (int64_t[PC_ACTIVATION_KINDS]){11, 19, 4, 1, 0}, sbh);
}

/* ---- whole iterations ---- */

static void draw_savers(test_random *random, pc_iteration_spec *spec) {
    static const char *const names[] = {
        "none",         "full",    "full-uniform-2", "full-block-1", "full-every-2",        "selective",
        "selective-op", "minimal", "save_qkv_proj",  "selective-2",  "selective:core_attn", "selective:mlp+layernorm"};
    const char *name = names[test_between(random, 0, 11)];
    pc_recomputation found;
    if (pc_recomputation_parse(name, strlen(name), &found)) {
        spec->cut.recompute = found.kind;
        spec->cut.recompute_layers = found.layers;
        spec->cut.recompute_modules = found.modules;
    }
    if (test_between(random, 0, 2) == 0) spec->cut.zero = (int)test_between(random, 2, 3);
    if (test_between(random, 0, 2) == 0) spec->cut.gradient_bytes = 2;
    spec->cut.dummy_wgrad = spec->cut.gradient_bytes == 2;
    spec->cut.graphs = (int32_t)(spec->cut.microbatches % 3) * (spec->cut.gradient_bytes == 2);
    if (test_between(random, 0, 2) == 0) spec->engine = PC_ENGINE_EVENTS;
    if (spec->cut.pp == 1 && test_between(random, 0, 1)) {
        spec->cut.recompute = PC_RECOMPUTE_NONE;
        spec->cut.recompute_layers = spec->cut.recompute_modules = 0;
        spec->cut.offload_layers = test_between(random, 1, 24);
        spec->machine.host_link_bytes_per_s = 5e10;
    }
}

static void expect_sums(const pc_iteration *x) {
    const pc_replay_trace *trace = &x->replay.trace;
    for (int d = 0; d < x->devices; d++) {
        const pc_device_memory *memory = &x->memory[d];
        int64_t sum = 0, activations = 0, buffers = 0;
        for (int kind = 0; kind < PC_MEMORY_KINDS; kind++) {
            assert_true(memory->kinds[kind] >= 0);
            sum += memory->kinds[kind];
            if (kind >= PC_MEMORY_ATTENTION && kind <= PC_MEMORY_HEAD) activations += memory->kinds[kind];
            if (kind >= PC_MEMORY_BOUNDARY) buffers += memory->kinds[kind];
        }
        assert_int_equal(activations, memory->activations);
        assert_int_equal(buffers, memory->buffers);
        assert_int_equal(sum, memory->peak_bytes);
    }
    for (int64_t row = 0; row < trace->level_count; row++) {
        for (int kind = 0; kind < PC_ACTIVATION_KINDS; kind++) assert_true(trace->level_kinds[row].of[kind] >= 0);
        assert_int_equal(pc_activation_bytes_sum(&trace->level_kinds[row]), trace->level_bytes[row]);
    }
}

static void expect_fullest(const pc_iteration *all, const pc_iteration *x) {
    int found = 0;
    for (int d = 1; d < x->devices; d++)
        if (x->memory[d].peak_bytes > x->memory[found].peak_bytes) found = d;
    assert_memory_equal(x->memory[found].kinds, all->memory[found].kinds, sizeof x->memory[found].kinds);
    assert_null(x->replay.trace.level_kinds);
}

static void test_kinds_add_up(void **state) {
    (void)state;
    int answered = 0, seen[PC_MEMORY_KINDS] = {0}, cases = (int)test_cases(120, 2000);
    test_random random = {2401};
    for (int i = 0; i < cases; i++) {
        pc_iteration_spec spec = random_spec(&random);
        pc_iteration all, one;
        draw_savers(&random, &spec);
        if (pc_iteration_run(&spec, NULL, true, &all, NULL)) continue;
        if (all.status == PC_RUN_OK) {
            answered++;
            expect_sums(&all);
            assert_int_equal(pc_iteration_run(&spec, NULL, false, &one, NULL), PC_OK);
            expect_fullest(&all, &one);
            pc_iteration_free(&one);
            for (int kind = 0; kind < PC_MEMORY_KINDS; kind++) seen[kind] += all.memory[0].kinds[kind] > 0;
        }
        pc_iteration_free(&all);
    }
    if (answered < cases / 2) fail_msg("%d of %d answered", answered, cases);
    for (int kind = 0; kind < PC_MEMORY_KINDS; kind++)
        if (!test_saw(seen[kind], 1) && kind != PC_MEMORY_STEP && kind != PC_MEMORY_OFFLOADED)
            fail_msg("%s never seen", pc_memory_kind_names[kind]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kinds_of_a_layer),
        cmocka_unit_test(test_kinds_of_ends),
        cmocka_unit_test(test_kinds_beside_the_host),
        cmocka_unit_test(test_kinds_add_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
