/* Recomputation by module: what each set frees of a layer, what that costs, in one pass or with B and W apart; and what
 * B leaves W where it has gathered gradients. */
#include "models/schedule/check.h"
#include "models/schedule/generate.h"
#include "models/schedule/timing.h"
#include "tests/iteration_example.h"
#include "tests/random_model.h"

#include <string.h>

enum { ALL = PC_RECOMPUTES_ALL };

/* One layer's tensors, in bytes of one rank. */
typedef struct sizes {
    wide rows, query, up, ffn, scores, mask;
} sizes;

static sizes sizes_of(const pc_model *model, const pc_cut *cut) {
    wide t = cut->tp, sb = cut->seq_len * cut->microbatch_size, heads = model->heads / cut->tp;
    bool is_cut = cut->sequence_parallel && cut->tp > 1, is_flash = model->attention == PC_ATTENTION_FLASH;
    wide rows = sb * model->hidden / (is_cut ? t : 1), ffn = sb * (model->ffn_hidden / t);
    return (sizes){.rows = 2 * rows,
                   .query = 2 * sb * heads * model->head_dim,
                   .up = 2 * (model->mlp == PC_MLP_SWIGLU ? 2 : 1) * ffn,
                   .ffn = 2 * ffn,
                   .scores = is_flash ? 0 : (model->has_dropout ? 5 : 2) * heads * sb * cut->seq_len,
                   .mask = model->has_dropout ? rows : 0};
}

static pc_part_activation layers_of(const pc_model *model, const pc_cut *cut, int64_t layers, int32_t modules,
                                    pc_pass_forms forms) {
    const pc_part part = {.layers = layers,
                          .recompute = modules ? PC_RECOMPUTE_MODULES : PC_RECOMPUTE_NONE,
                          .recompute_modules = modules};
    pc_part_activation x;
    assert_int_equal(pc_part_activations(model, cut, &part, forms, &x, NULL), PC_OK);
    return x;
}

/* A model and a cut at random; of the modules the i-th set, in turn for each form of layer. */
static sizes draw_modules(test_random *random, long i, pc_model *model, pc_cut *cut, int32_t *set) {
    *model = random_model(random);
    *cut = random_cut(random, model);
    *set = (int32_t)(i % ALL) + 1;
    cut->transformer_impl = (pc_transformer_impl)(i / ALL % 2);
    return sizes_of(model, cut);
}

/* ---- names ---- */

static void test_names(void **state) {
    (void)state;
    char text[PC_RECOMPUTATION_SIZE];
    pc_recomputation found, back;
    for (int32_t set = 1; set <= ALL; set++) {
        const pc_recomputation one = {.kind = PC_RECOMPUTE_MODULES, .modules = set};
        pc_recomputation_write(one, text);
        assert_true(pc_recomputation_parse(text, strlen(text), &found));
        back = pc_recomputation_of_code(pc_recomputation_code(one));
        assert_true(found.kind == one.kind && found.modules == set && found.layers == 0);
        assert_true(back.kind == one.kind && back.modules == set && back.layers == 0);
    }
    assert_string_equal(text, "selective:core_attn+layernorm+mlp+moe+moe_act+shared_experts+mla_up_proj");
    assert_true(pc_recomputation_parse("selective:mlp+core_attn", 23, &found) && found.modules == 5);
    back = pc_recomputation_of_code(pc_recomputation_code((pc_recomputation){PC_RECOMPUTE_BLOCK, 65535, 0}));
    assert_true(back.kind == PC_RECOMPUTE_BLOCK && back.layers == 65535 && back.modules == 0);
    static const char *const wrong[] = {"selective:",     "selective:mop",     "selective:mlp+",
                                        "selective:+mlp", "selective:mlp+mlp", "selective:mlp,core_attn"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_false(pc_recomputation_parse(wrong[i], strlen(wrong[i]), &found));
}

/* ---- memory ---- */

/* core_attn: the scores. layernorm: both norms' outputs, if they are the norms' own. mlp: inputs of activation and
 * down; and of up, unless a norm apart has put it out, which is the MLP's input then. */
static wide freed(const sizes *x, int32_t set, bool is_apart) {
    bool norms = set & PC_RECOMPUTES_LAYERNORM && is_apart, mlp = set & PC_RECOMPUTES_MLP;
    return (set & PC_RECOMPUTES_CORE_ATTN ? x->scores : 0) + (norms ? 2 * x->rows : 0) + (mlp ? x->up + x->ffn : 0) +
           (mlp && !is_apart ? x->rows : 0);
}

static void test_what_is_kept(void **state) {
    (void)state;
    test_random random = {31};
    for (long i = 0; i < test_cases(400, 4000); i++) {
        pc_model model;
        pc_cut cut;
        int32_t set;
        sizes x = draw_modules(&random, i, &model, &cut, &set);
        wide gone = freed(&x, set, cut.transformer_impl == PC_TRANSFORMER_LOCAL);
        pc_part_activation none = layers_of(&model, &cut, 3, 0, (pc_pass_forms){0});
        pc_part_activation some = layers_of(&model, &cut, 3, set, (pc_pass_forms){0});
        assert_wide_equal((wide)none.taken - some.taken, 3 * gone);
        assert_wide_equal(some.kept, some.taken);
        some = layers_of(&model, &cut, 3, set, (pc_pass_forms){.has_r = true});
        bool has_copy = set & PC_RECOMPUTES_CORE_ATTN && model.attention == PC_ATTENTION_FLASH;
        assert_wide_equal(some.taken, none.taken + (has_copy ? 3 * x.query : 0));
        assert_wide_equal(some.kept, none.taken - 3 * gone);
        assert_wide_equal(some.working, none.working);
    }
}

/* Of one layer. The MLP: all that it makes again, less the mask behind it. Attention: the scores, or a flash
 * kernel's output, when the MLP and the output matrix's input have gone. */
static void test_what_a_pass_works_with(void **state) {
    (void)state;
    test_random random = {32};
    int more = 0;
    for (long i = 0; i < test_cases(400, 4000); i++) {
        pc_model model = random_model(&random);
        pc_cut cut = random_cut(&random, &model);
        cut.transformer_impl = (pc_transformer_impl)(i % 2);
        sizes x = sizes_of(&model, &cut);
        wide gathered = layers_of(&model, &cut, 1, 0, (pc_pass_forms){0}).working;
        wide mlp = freed(&x, PC_RECOMPUTES_MLP, i % 2), gone = 2 * x.rows + x.up + x.ffn + 2 * x.mask + x.query;
        wide again = model.attention == PC_ATTENTION_FLASH ? x.query : x.scores, rest = again - gone;
        pc_part_activation some = layers_of(&model, &cut, 2, PC_RECOMPUTES_MLP, (pc_pass_forms){0});
        assert_wide_equal(some.working, (mlp > x.mask ? mlp - x.mask : 0) + gathered);
        some = layers_of(&model, &cut, 2, PC_RECOMPUTES_CORE_ATTN, (pc_pass_forms){0});
        assert_wide_equal(some.working, (rest > 0 ? rest : 0) + gathered);
        more += rest > 0;
        pc_part_activation mixed =
                               layers_of(&model, &cut, 2, i % ALL + 1, (pc_pass_forms){.splits = true, .mixes = true}),
                           split = layers_of(&model, &cut, 2, i % ALL + 1, (pc_pass_forms){.splits = true}),
                           whole = layers_of(&model, &cut, 2, i % ALL + 1, (pc_pass_forms){0});
        assert_true(mixed.working == (split.working > whole.working ? split.working : whole.working));
    }
    assert_true(more > 0);
}

/* The MLP alone, flash attention, no dropout, a norm in one with its matrix. Apart, at its largest B has all that W
 * needs of the layer, and one norm's input more, 2 bytes a number of this rank's tokens. A head that fuses its loss has
 * given back as much before, and to a BW its logits as well. */
static void test_what_a_pass_works_with_beside_w(void **state) {
    (void)state;
    test_random random = {36};
    for (long i = 0; i < test_cases(200, 2000); i++) {
        pc_model model = random_model(&random);
        pc_cut cut = random_cut(&random, &model);
        model.attention = PC_ATTENTION_FLASH;
        model.has_dropout = false;
        cut.cross_entropy = PC_CROSS_ENTROPY_FUSED;
        sizes x = sizes_of(&model, &cut);
        pc_part part = {.layers = 3, .recompute = PC_RECOMPUTE_MODULES, .recompute_modules = PC_RECOMPUTES_MLP};
        wide gathered = layers_of(&model, &cut, 1, 0, (pc_pass_forms){0}).working;
        wide head =
            2 * x.rows + 2 * cut.seq_len * cut.microbatch_size * (pc_model_padded_vocab(&model, cut.tp) / cut.tp);
        wide mlp = freed(&x, PC_RECOMPUTES_MLP, false), rest = mlp > head ? mlp - head : 0;
        pc_part_activation apart, together;
        for (int has_head = 0; has_head < 2; has_head++) {
            part.has_head = has_head;
            assert_int_equal(pc_part_activations(&model, &cut, &part, (pc_pass_forms){.splits = true}, &apart, NULL),
                             PC_OK);
            assert_int_equal(pc_part_activations(&model, &cut, &part, (pc_pass_forms){0}, &together, NULL), PC_OK);
            assert_wide_equal(apart.working, (has_head ? 0 : x.rows) + gathered);
            assert_wide_equal(together.working, (has_head ? rest : mlp) + gathered);
        }
    }
}

/* Whatever is recomputed, W needs the same of a layer; what is held is that, or what F kept where that is more. */
static void test_apart(void **state) {
    (void)state;
    test_random random = {33};
    const pc_pass_forms apart = {.splits = true};
    int takes_more = 0;
    for (long i = 0; i < test_cases(400, 4000); i++) {
        pc_model model = random_model(&random);
        pc_cut cut = random_cut(&random, &model);
        int32_t set = (int32_t)(i % (ALL + 1));
        pc_part_activation none = layers_of(&model, &cut, 1, 0, apart), some = layers_of(&model, &cut, 4, set, apart);
        wide left = none.taken - none.b_frees, kept = layers_of(&model, &cut, 4, set, (pc_pass_forms){0}).taken;
        assert_wide_equal(some.kept, kept);
        assert_wide_equal(some.taken, kept > 4 * left ? kept : 4 * left);
        assert_wide_equal(some.taken - some.b_frees, 4 * left);
        takes_more += some.taken > some.kept;
    }
    assert_true(takes_more > 0);
}

/* GPT on 8 ranks with sequence parallelism and a flash kernel: 34sbh/t between F and B; then W needs 28sbh/t, and two
 * output gradients as B has gathered them, 4sbh. Without sequence parallelism the inputs are whole as well: F has
 * 10sbh + 24sbh/t, W 8sbh + 24sbh/t. */
static void test_gathered_gradients(void **state) {
    (void)state;
    test_random random = {34};
    const pc_pass_forms apart = {.splits = true};
    pc_model model = random_gpt(&random);
    model.hidden = 4096;
    model.ffn_hidden = 4 * 4096;
    model.heads = model.kv_heads = 32;
    model.head_dim = 128;
    model.attention = PC_ATTENTION_FLASH;
    pc_cut cut = {.tp = 8,
                  .pp = 1,
                  .dp = 1,
                  .chunks = 1,
                  .sequence_parallel = true,
                  .microbatch_size = 1,
                  .microbatches = 1,
                  .seq_len = 2048};
    wide sbh = 2048 * 4096;
    pc_part_activation x = layers_of(&model, &cut, 2, 0, apart);
    assert_wide_equal(8 * x.kept, 2 * 34 * sbh);
    assert_wide_equal(8 * x.taken, 2 * (28 + 8 * 4) * sbh);
    assert_int_equal(x.b_frees, 0);
    cut.sequence_parallel = false;
    x = layers_of(&model, &cut, 2, 0, apart);
    assert_wide_equal(8 * x.kept, 2 * (80 + 24) * sbh);
    assert_int_equal(x.taken, x.kept);
    assert_wide_equal(8 * (wide)(x.taken - x.b_frees), 2 * (64 + 24) * sbh);
}

/* A recipe that keeps inputs in 8 bits: attention's output in 16 stands beside that, and core_attn drops it. Of the
 * MLP, 1 byte a number of the inputs of up and down, 2 of the activation's. */
static void test_few_bits(void **state) {
    (void)state;
    pc_model model = llama3(8);
    pc_cut cut = {.tp = 2,
                  .pp = 1,
                  .dp = 1,
                  .chunks = 1,
                  .sequence_parallel = true,
                  .microbatch_size = 1,
                  .microbatches = 1,
                  .seq_len = 4096};
    model.low = (pc_low_precision){
        .product = {PC_PRODUCT_FP8, PC_PRODUCT_FP8, PC_PRODUCT_FP8}, .keeps_inputs = true, .copies = 1};
    sizes x = sizes_of(&model, &cut);
    for (int32_t set = 1; set <= ALL; set++)
        for (int impl = 0; impl < 2; impl++) {
            cut.transformer_impl = (pc_transformer_impl)impl;
            wide core = set & PC_RECOMPUTES_CORE_ATTN ? x.query : 0, mlp = 0;
            bool norms = impl && set & PC_RECOMPUTES_LAYERNORM;
            if (set & PC_RECOMPUTES_MLP) mlp = x.up + x.ffn / 2 + x.rows / 2 - (impl && !norms ? x.rows : 0);
            wide gone = core + mlp + (norms ? x.rows / 2 + (set & PC_RECOMPUTES_MLP ? 0 : x.rows / 2) : 0);
            assert_wide_equal((wide)layers_of(&model, &cut, 1, 0, (pc_pass_forms){0}).taken -
                                  layers_of(&model, &cut, 1, set, (pc_pass_forms){0}).taken,
                              gone);
        }
}

/* ---- what it costs ---- */

/* core_attn: two products of s x s scores. mlp: up and down. B has what it has without, and all of this; none of it
 * counts as model FLOPs. */
static void test_costs(void **state) {
    (void)state;
    test_random random = {35};
    for (long i = 0; i < test_cases(200, 2000); i++) {
        pc_model model;
        pc_cut cut;
        int32_t set;
        sizes x = draw_modules(&random, i, &model, &cut, &set);
        pc_part none = {.layers = 3}, some = {.layers = 3, .recompute = PC_RECOMPUTE_MODULES, .recompute_modules = set};
        wide core = 2 * x.query * cut.seq_len, mlp = model.hidden * (x.up + x.ffn);
        wide expected = (set & PC_RECOMPUTES_CORE_ATTN ? core : 0) + (set & PC_RECOMPUTES_MLP ? mlp : 0);
        pc_operation_sums r = sums_of(&model, &cut, &some, PC_PASS_R, true);
        pc_operation_sums b = sums_of(&model, &cut, &some, PC_PASS_B, false),
                          plain = sums_of(&model, &cut, &none, PC_PASS_B, false);
        assert_wide_equal(r.flops, 3 * expected);
        assert_int_equal(r.model_flops, 0);
        assert_int_equal(b.flops, plain.flops + r.flops);
        assert_int_equal(b.model_flops, plain.model_flops);
        assert_int_equal(b.bytes, plain.bytes + r.bytes);
        assert_int_equal(b.collective_bytes, plain.collective_bytes + r.collective_bytes);
        assert_int_equal(b.launches, plain.launches + r.launches);
    }
}

/* The norms: 4 bytes a number of this rank's tokens, if they are modules of their own. The MLP has its gather and its
 * sum again. */
static void test_norms_and_collectives(void **state) {
    (void)state;
    pc_cut cut;
    pc_model model = small_gpt(&cut);
    pc_part part = {.layers = 5, .recompute = PC_RECOMPUTE_MODULES, .recompute_modules = PC_RECOMPUTES_LAYERNORM};
    pc_operation_sums x = sums_of(&model, &cut, &part, PC_PASS_R, true);
    assert_true(x.bytes == 0 && x.launches == 0);
    cut.transformer_impl = PC_TRANSFORMER_LOCAL;
    x = sums_of(&model, &cut, &part, PC_PASS_R, true);
    assert_true(x.bytes == 5 * 2 * 24 * 32 * 4 && x.launches == 5 * 2 && x.collective_bytes == 0);
    part.recompute_modules = PC_RECOMPUTES_MLP;
    pc_operation_sums local = sums_of(&model, &cut, &part, PC_PASS_R, true);
    assert_int_equal(local.collective_bytes, 5 * 2 * 48 * 32 * 2);
    cut.transformer_impl = PC_TRANSFORMER_ENGINE; /* with the norm that is in one with it */
    x = sums_of(&model, &cut, &part, PC_PASS_R, true);
    assert_int_equal(x.bytes - local.bytes, 5 * 24 * 32 * 4);
    cut.kernels = PC_KERNELS_EAGER; /* torch has no such module */
    x = sums_of(&model, &cut, &part, PC_PASS_R, true);
    cut.transformer_impl = PC_TRANSFORMER_LOCAL;
    assert_int_equal(x.bytes, sums_of(&model, &cut, &part, PC_PASS_R, true).bytes);
}

/* ---- iterations ---- */

/* In schedules of each form, over closed costs and flows: memory the same in both, and less than with nothing
 * recomputed where B and W are one. */
static void test_iterations(void **state) {
    (void)state;
    static const char *const names[] = {"1f1b", "zb-h1", "1f1b-r", "zb-v", "v-half"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        for (int32_t set = 1; set <= ALL; set += 2) {
            pc_iteration_spec spec = example_spec();
            spec.generator = pc_generator_find(names[i]);
            spec.cut.chunks = i > 2 ? 2 : 1;
            spec.cut.recompute = PC_RECOMPUTE_MODULES;
            spec.cut.recompute_modules = set;
            pc_iteration closed = run_spec(&spec);
            spec.network = PC_NETWORK_FLOWS;
            pc_iteration flows = run_spec(&spec);
            spec.network = PC_NETWORK_CLOSED;
            spec.cut.recompute = PC_RECOMPUTE_NONE;
            pc_iteration none = run_spec(&spec);
            for (int d = 0; d < 4; d++) {
                assert_int_equal(closed.memory[d].peak_bytes, flows.memory[d].peak_bytes);
                bool has_r = i == 2, is_less = set & PC_RECOMPUTES_MLP && i == 0 && d < 3;
                if (!has_r) assert_true(closed.memory[d].peak_bytes <= none.memory[d].peak_bytes || set == 1 || i > 0);
                if (is_less) assert_true(closed.memory[d].peak_bytes < none.memory[d].peak_bytes);
            }
            if (i != 2) assert_true(closed.hardware_flops > none.hardware_flops);
            pc_iteration_free(&closed);
            pc_iteration_free(&flows);
            pc_iteration_free(&none);
        }
}

/* Schedules of costs that example_spec has for a name; the caller frees both. */
static pc_schedule schedule_of(const char *name, const pc_costs *costs, const int64_t *limit) {
    pc_schedule made;
    pc_error error = {0};
    pc_generate_request request = {.devices = 4,
                                   .microbatches = 8,
                                   .chunks = costs->chunks,
                                   .costs = costs,
                                   .memory_limit = {limit},
                                   .threads = 1};
    if (pc_generate(pc_generator_find(name), &request, &made, NULL, &error)) fail_msg("%s", error.message);
    return made;
}

static pc_costs costs_of(const char *name) {
    pc_costs costs;
    pc_iteration_spec spec = example_spec();
    spec.generator = pc_generator_find(name);
    spec.cut.chunks = (int)spec.generator->chunks_default;
    assert_int_equal(pc_iteration_costs(&spec, NULL, &costs, NULL), PC_OK);
    assert_true(costs.recomputes_in_b && costs.leaves_gradients);
    return costs;
}

static bool is_same(const pc_schedule *a, const pc_schedule *b) {
    size_t bytes = (size_t)a->offsets[4] * sizeof *a->passes;
    return a->offsets[4] == b->offsets[4] && memcmp(a->passes, b->passes, bytes) == 0;
}

/* Gradients that wait for W are no reason for another order: F's bytes alone make the same one. */
static void test_gradients_change_no_order(void **state) {
    (void)state;
    static const char *const names[] = {"zb-h1", "v-half", "zb-v", "zb-1p", "v-adaptive"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        pc_costs costs = costs_of(names[i]), alone = costs_of(names[i]);
        alone.recomputes_in_b = alone.leaves_gradients = false;
        memcpy(alone.activation_bytes, costs.activation_kept_bytes,
               (size_t)(4 * costs.chunks) * sizeof *costs.activation_bytes);
        pc_schedule a = schedule_of(names[i], &costs, NULL), b = schedule_of(names[i], &alone, NULL);
        assert_true(is_same(&a, &b));
        pc_schedule_free(&a);
        pc_schedule_free(&b);
        pc_costs_free(&costs);
        pc_costs_free(&alone);
    }
}

static pc_time span_of(const pc_schedule *schedule, const pc_costs *costs) {
    pc_timing *timing;
    pc_timing_result result;
    assert_int_equal(pc_timing_create(&timing, NULL), PC_OK);
    assert_int_equal(pc_timing_run(timing, schedule, costs, &result, NULL), PC_OK);
    pc_timing_free(timing);
    return result.totals.span_ps;
}

/* Within a limit, with the gradients: never longer than by all bytes from F to W, as where B recomputes. By what F
 * keeps alone it is another order at 10 and 9 sixteenths of the room, and a longer one. Nor does more room make it
 * longer. */
static void test_limits_with_gradients(void **state) {
    (void)state;
    pc_costs costs = costs_of("v-adaptive");
    int64_t limit[4], peaks[4];
    pc_time with_more = 0;
    pc_schedule free_one = schedule_of("v-adaptive", &costs, NULL);
    assert_int_equal(pc_schedule_peaks(&free_one, &costs, peaks, NULL), PC_OK);
    for (int part = 15; part > 8; part--) {
        for (int d = 0; d < 4; d++) limit[d] = peaks[d] / 16 * part;
        costs.leaves_gradients = true;
        pc_schedule a = schedule_of("v-adaptive", &costs, limit);
        costs.leaves_gradients = false;
        pc_schedule b = schedule_of("v-adaptive", &costs, limit);
        int64_t held[4];
        assert_int_equal(pc_schedule_peaks(&a, &costs, held, NULL), PC_OK);
        for (int d = 0; d < 4; d++) assert_true(held[d] <= limit[d]);
        pc_time span = span_of(&a, &costs);
        assert_true(span <= span_of(&b, &costs));
        assert_true(span >= with_more);
        with_more = span;
        pc_schedule_free(&a);
        pc_schedule_free(&b);
    }
    pc_schedule_free(&free_one);
    pc_costs_free(&costs);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_what_is_kept),
        cmocka_unit_test(test_what_a_pass_works_with),
        cmocka_unit_test(test_what_a_pass_works_with_beside_w),
        cmocka_unit_test(test_apart),
        cmocka_unit_test(test_gathered_gradients),
        cmocka_unit_test(test_few_bits),
        cmocka_unit_test(test_costs),
        cmocka_unit_test(test_norms_and_collectives),
        cmocka_unit_test(test_iterations),
        cmocka_unit_test(test_gradients_change_no_order),
        cmocka_unit_test(test_limits_with_gradients),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
