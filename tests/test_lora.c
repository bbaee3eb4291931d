/* Adapters beside frozen matrices: products, parameters, bytes and collectives by algebra; frozen ends; and kernels
 * that the host launches as one. */
#include "tests/random_frozen.h"
#include "tests/random_model.h"

/* A matrix of the whole model: what its adapter reads and writes, and whether its columns are cut. */
typedef struct matrix {
    int32_t target;
    wide inputs, outputs;
} matrix;

enum { MATRICES = 4 };

static void matrices_of(const pc_model *model, matrix list[MATRICES]) {
    wide h = model->hidden, f = model->ffn_hidden, q = model->heads * model->head_dim;
    wide key = model->kv_heads * model->head_dim, ups = model->mlp == PC_MLP_SWIGLU ? 2 : 1;
    list[0] = (matrix){PC_LORA_QKV, h, q + 2 * key};
    list[1] = (matrix){PC_LORA_PROJ, q, h};
    list[2] = (matrix){PC_LORA_FC1, h, ups * f};
    list[3] = (matrix){PC_LORA_FC2, f, h};
}

/* Elements of all matrices of a layer; and of its adapters, r(in + out). */
static wide base_of(const pc_model *model) {
    matrix list[MATRICES];
    wide sum = 0;
    matrices_of(model, list);
    for (int i = 0; i < MATRICES; i++) sum += list[i].inputs * list[i].outputs;
    return sum;
}

static wide adapters_of(const pc_model *model, const pc_cut *cut) {
    matrix list[MATRICES];
    wide sum = 0;
    matrices_of(model, list);
    for (int i = 0; i < MATRICES; i++)
        if (cut->lora.targets & list[i].target) sum += cut->lora.rank * (list[i].inputs + list[i].outputs);
    return sum;
}

static pc_lora draw_lora(test_random *random, const pc_cut *cut) {
    return (pc_lora){.rank = (int32_t)(cut->tp * test_between(random, 1, 32)),
                     .targets = (int32_t)test_between(random, 1, PC_LORA_DENSE),
                     .dropout = test_between(random, 0, 1) ? 0.1 : 0};
}

/* Forward: base and adapters once, 2 FLOPs an element and token. For the input: both again, and attention twice.
 * For the weights: adapters alone. All of them count, over all ranks, as 2(2N + 3A) and attention's 12s^2 q. */
static void test_flops(void **state) {
    (void)state;
    test_random random = {1};
    for (long i = 0; i < test_cases(300, 1500); i++) {
        pc_model model = random_model(&random);
        pc_cut cut = random_cut(&random, &model);
        cut.lora = draw_lora(&random, &cut);
        pc_part part = whole_part(&model, &cut);
        wide tokens = cut.seq_len * cut.microbatch_size, q = model.heads * model.head_dim;
        wide attention = model.layers * tokens * cut.seq_len * q;
        wide base = model.layers * base_of(&model) + (wide)model.hidden * pc_model_padded_vocab(&model, cut.tp);
        wide adapters = model.layers * adapters_of(&model, &cut);
        pc_operation_sums f = sums_of(&model, &cut, &part, PC_PASS_F, false),
                          b = sums_of(&model, &cut, &part, PC_PASS_B, false),
                          w = sums_of(&model, &cut, &part, PC_PASS_W, false);
        assert_wide_equal(cut.tp * (wide)f.model_flops, 2 * tokens * (base + adapters) + 4 * attention);
        assert_wide_equal(cut.tp * (wide)b.model_flops, 2 * tokens * (base + adapters) + 8 * attention);
        assert_wide_equal(cut.tp * (wide)w.model_flops, 2 * tokens * adapters);
        double sequence = pc_cut_flops_per_sequence(&model, &cut);
        wide all = 2 * cut.seq_len * (2 * base + 3 * adapters) + 12 * attention / cut.microbatch_size;
        assert_true(sequence / (double)all - 1 < 1e-14 && sequence / (double)all - 1 > -1e-14);
    }
}

/* Keys and values of fewer heads than ranks stand on several, and their columns of B with them. */
static void test_parameters(void **state) {
    (void)state;
    test_random random = {2};
    for (long i = 0; i < test_cases(500, 2500); i++) {
        pc_model model = random_model(&random);
        pc_cut cut = random_cut(&random, &model);
        int parts = (int)test_between(&random, 1, 5);
        model.layers = parts * test_between(&random, 1, 20);
        wide without = 0, with = 0, trained = 0;
        for (int p = 0; p < parts; p++) {
            pc_part part = pc_cut_part(&model, &cut, parts, p);
            pc_cut adapted = cut;
            adapted.lora = draw_lora(&random, &cut);
            wide copies = model.kv_heads < cut.tp ? cut.tp / model.kv_heads - 1 : 0;
            wide again = adapted.lora.targets & PC_LORA_QKV
                             ? copies * 2 * model.kv_heads * model.head_dim * adapted.lora.rank
                             : 0;
            without = pc_part_parameters(&model, &cut, &part, false);
            with = pc_part_parameters(&model, &adapted, &part, false);
            trained = pc_part_trained(&model, &adapted, &part, false);
            assert_wide_equal(with - without, trained);
            assert_wide_equal(cut.tp * trained, part.layers * (adapters_of(&model, &adapted) + again));
            assert_wide_equal(pc_part_trained(&model, &cut, &part, false), without);
        }
    }
}

static pc_part_activation activation_of(const pc_model *model, const pc_cut *cut, const pc_part *part) {
    pc_part_activation activation;
    pc_error error = {0};
    if (pc_part_activations(model, cut, part, (pc_pass_forms){.splits = true}, &activation, &error))
        fail_msg("%s", error.message);
    return activation;
}

/* Llama's layer on one rank, flash, 16 bits. Frozen without a reader are the inputs of fc1 and fc2, and of qkv. Kept
 * are two norms' inputs, 4h; queries, keys, values and the context, 2(qkv + q); gate and up, 2 * 2f. An adapter adds
 * its input, but for proj's, which the context is, and A's output, 2r; dropout a mask of 1 byte, and a copy of the
 * context. W needs A's input and output, and the gradients of both products. */
static void test_layer_memory(void **state) {
    (void)state;
    pc_model model = llama3(8);
    pc_cut cut = {.tp = 1, .pp = 1, .dp = 1, .chunks = 1, .microbatch_size = 2, .microbatches = 1, .seq_len = 4096};
    const pc_part layer = {.layers = 1};
    const wide tokens = 8192, h = 4096, q = 4096, qkv = 4096 + 2048, f = 14336, r = 16;
    const wide frozen = 4 * h + 2 * (qkv + q) + 4 * f;
    cut.lora = (pc_lora){.rank = 16, .targets = PC_LORA_PROJ};
    pc_part_activation x = activation_of(&model, &cut, &layer);
    assert_wide_equal(x.taken, tokens * (frozen + 2 * r));
    assert_wide_equal(x.taken - x.b_frees, tokens * (2 * q + 4 * r + 2 * h));
    cut.lora.targets = PC_LORA_QKV | PC_LORA_FC1;
    x = activation_of(&model, &cut, &layer);
    assert_wide_equal(x.taken, tokens * (frozen + 2 * 2 * h + 2 * 2 * r));
    assert_wide_equal(x.taken - x.b_frees, tokens * (2 * (2 * h + 4 * r) + 2 * qkv + 4 * f));
    cut.lora = (pc_lora){.rank = 16, .targets = PC_LORA_PROJ | PC_LORA_FC2, .dropout = 0.1};
    x = activation_of(&model, &cut, &layer);
    assert_wide_equal(x.taken, tokens * (frozen + 3 * q + 3 * f + 2 * 2 * r));
    assert_wide_equal(x.taken - x.b_frees, tokens * (2 * q + 2 * f + 2 * 4 * r + 2 * 2 * h));
}

/* The same layer with its MLP made again: of that, and of its adapters, is kept what it begins with, 2h, where a norm
 * apart has put that out; else nothing. The norm alone: not the input of the first adapter, unless it is masked. */
static void test_recomputed_mlp(void **state) {
    (void)state;
    pc_model model = llama3(8);
    pc_cut cut = {.tp = 1, .pp = 1, .dp = 1, .chunks = 1, .microbatch_size = 2, .microbatches = 1, .seq_len = 4096};
    pc_part layer = {.layers = 1, .recompute = PC_RECOMPUTE_MODULES, .recompute_modules = PC_RECOMPUTES_MLP};
    const wide tokens = 8192, h = 4096, q = 4096, qkv = 6144, f = 14336, r = 16, frozen = 4 * h + 2 * (qkv + q);
    for (int drops = 0; drops < 2; drops++) {
        cut.lora = (pc_lora){.rank = 16, .targets = PC_LORA_FC1 | PC_LORA_FC2, .dropout = drops ? 0.1 : 0};
        cut.transformer_impl = PC_TRANSFORMER_ENGINE;
        layer.recompute_modules = PC_RECOMPUTES_MLP;
        assert_wide_equal(activation_of(&model, &cut, &layer).kept, tokens * frozen);
        cut.transformer_impl = PC_TRANSFORMER_LOCAL;
        assert_wide_equal(activation_of(&model, &cut, &layer).kept, tokens * (frozen + 2 * h));
        layer.recompute_modules = PC_RECOMPUTES_LAYERNORM;
        wide inputs = drops ? 3 * (h + f) : 2 * f;
        assert_wide_equal(activation_of(&model, &cut, &layer).kept, tokens * (frozen + 4 * f + inputs + 4 * r));
    }
}

/* Nobody reads the head's input, nor the embedding's mask; W has nothing of the head. */
static void test_frozen_ends(void **state) {
    (void)state;
    test_random random = {3};
    for (long i = 0; i < test_cases(100, 500); i++) {
        pc_model model = random_model(&random);
        model.is_tied = false;
        pc_cut cut = random_cut(&random, &model), frozen = cut;
        frozen.frozen = PC_FROZEN_EMBEDDING | PC_FROZEN_HEAD;
        const pc_part first = {.has_embedding = true}, last = {.has_head = true};
        wide rows = cut.seq_len * cut.microbatch_size * model.hidden / (cut.sequence_parallel ? cut.tp : 1);
        wide table = (wide)pc_model_padded_vocab(&model, cut.tp) / cut.tp * model.hidden;
        wide positions = model.positions == PC_POSITIONS_LEARNED ? (wide)model.max_positions * model.hidden : 0;
        pc_part_activation x = activation_of(&model, &cut, &last), y = activation_of(&model, &frozen, &last);
        assert_wide_equal(x.taken - y.taken, 2 * rows);
        assert_wide_equal(y.b_frees, y.taken);
        assert_wide_equal(activation_of(&model, &frozen, &first).taken, 0);
        assert_wide_equal(sums_of(&model, &frozen, &last, PC_PASS_W, false).launches, 0);
        assert_wide_equal(sums_of(&model, &frozen, &first, PC_PASS_BW, false).launches, 0);
        wide of_first = pc_part_parameters(&model, &cut, &first, false),
             of_last = pc_part_parameters(&model, &cut, &last, false);
        assert_wide_equal(pc_part_trained(&model, &frozen, &first, false), of_first - table - positions);
        assert_wide_equal(pc_part_trained(&model, &frozen, &last, false), of_last - table);
        double less = pc_cut_flops_per_sequence(&model, &cut) - pc_cut_flops_per_sequence(&model, &frozen);
        wide expected = 2 * cut.seq_len * table * cut.tp;
        assert_true(less > 0.999999 * (double)expected && less < 1.000001 * (double)expected);
    }
}

static int64_t sent(const pc_model *model, const pc_cut *cut, pc_pass_kind kind) {
    const pc_part layer = {.layers = 1};
    return sums_of(model, cut, &layer, kind, false).collective_bytes;
}

/* Two ranks, T tokens of h. A column's A is gathered, 2Tr, and its gradient summed, 2Tr. A row's A is summed, 2Tr, B's
 * output gathered, 2Th; the gradient of what B read is summed, 2Tr, behind a gather of 2Th where the sequence is cut. W
 * gathers nothing, where the base did twice 2Th if the sequence is cut. */
static void test_collectives(void **state) {
    (void)state;
    pc_model model = llama3(8);
    const int64_t r = 16, rows = 2 * 4096 * model.hidden, low = 2 * 4096 * r;
    for (int is_cut = 0; is_cut < 2; is_cut++) {
        pc_cut cut = {.tp = 2, .pp = 1, .dp = 1, .chunks = 1, .microbatch_size = 1, .microbatches = 1, .seq_len = 4096};
        cut.sequence_parallel = is_cut;
        int64_t f = sent(&model, &cut, PC_PASS_F), b = sent(&model, &cut, PC_PASS_B), w = sent(&model, &cut, PC_PASS_W);
        assert_int_equal(w, is_cut ? 2 * rows : 0);
        cut.lora = (pc_lora){.rank = (int32_t)r, .targets = PC_LORA_QKV | PC_LORA_FC1};
        assert_int_equal(sent(&model, &cut, PC_PASS_F) - f, 2 * low);
        assert_int_equal(sent(&model, &cut, PC_PASS_B) - b, 2 * low);
        assert_int_equal(sent(&model, &cut, PC_PASS_W), 0);
        cut.lora.targets = PC_LORA_PROJ | PC_LORA_FC2;
        assert_int_equal(sent(&model, &cut, PC_PASS_F) - f, 2 * (low + rows));
        assert_int_equal(sent(&model, &cut, PC_PASS_B) - b, 2 * (low + is_cut * rows));
        assert_int_equal(sent(&model, &cut, PC_PASS_W), 0);
    }
}

/* A graph for each half of a layer in each pass, or one of all that no pass begins; nothing else changes. */
static void test_graphs(void **state) {
    (void)state;
    static const pc_pass_kind kinds[] = {PC_PASS_F, PC_PASS_B, PC_PASS_W, PC_PASS_BW};
    test_random random = {4};
    for (long i = 0; i < test_cases(100, 500); i++) {
        pc_model model = random_model(&random);
        pc_cut cut = random_cut(&random, &model), captured = cut;
        const pc_part part = {.layers = test_between(&random, 1, 9)};
        captured.graphs = PC_GRAPHS_LAYER;
        for (int k = 0; k < 4; k++) {
            pc_operation_sums x = sums_of(&model, &cut, &part, kinds[k], false),
                              y = sums_of(&model, &captured, &part, kinds[k], false);
            assert_int_equal(y.launches, 2 * part.layers);
            assert_true(x.flops == y.flops && x.bytes == y.bytes && x.collective_bytes == y.collective_bytes);
            captured.graphs = PC_GRAPHS_ITERATION;
            y = sums_of(&model, &captured, &part, kinds[k], false);
            assert_int_equal(y.launches, 0);
            assert_true(x.flops == y.flops && x.bytes == y.bytes && x.collective_bytes == y.collective_bytes);
            captured.graphs = PC_GRAPHS_LAYER;
        }
        int64_t whole = sums_of(&model, &cut, &part, PC_PASS_F, false).launches;
        captured.graphs = PC_GRAPHS_ATTN;
        int64_t mlp = sums_of(&model, &captured, &part, PC_PASS_F, false).launches - part.layers;
        captured.graphs = PC_GRAPHS_MLP;
        int64_t attention = sums_of(&model, &captured, &part, PC_PASS_F, false).launches - part.layers;
        assert_int_equal(mlp + attention, whole);
    }
}

/* Of a gated MLP: half the bytes of what the activation reads; and a cast there in F, back in B, of 3 bytes a number.
 */
static void test_input_store(void **state) {
    (void)state;
    static const pc_pass_kind kinds[] = {PC_PASS_F, PC_PASS_B, PC_PASS_BW, PC_PASS_W};
    test_random random = {5};
    long gated = 0;
    for (long i = 0; i < test_cases(200, 1000); i++) {
        pc_model model = random_model(&random);
        pc_cut cut = random_cut(&random, &model), stored = cut;
        pc_part part = {.layers = test_between(&random, 1, 9)};
        if (!pc_mlp_is_gated(model.mlp) || cut.kernels != PC_KERNELS_FUSED) continue;
        gated++;
        stored.stores_low_input = true;
        wide numbers =
            part.layers * cut.seq_len / pc_cut_cp(&cut) * cut.microbatch_size * 2 * model.ffn_hidden / cut.tp;
        pc_part_activation x, y;
        pc_pass_forms forms = {0};
        assert_int_equal(pc_part_activations(&model, &cut, &part, forms, &x, NULL), PC_OK);
        assert_int_equal(pc_part_activations(&model, &stored, &part, forms, &y, NULL), PC_OK);
        assert_int_equal(x.taken - y.taken, numbers);
        for (int k = 0; k < 4; k++) {
            pc_operation_sums a = sums_of(&model, &cut, &part, kinds[k], false),
                              b = sums_of(&model, &stored, &part, kinds[k], false);
            assert_true(b.bytes - a.bytes == (k < 3 ? 3 * numbers : 0));
            assert_int_equal(b.launches - a.launches, k < 3 ? part.layers : 0);
        }
    }
    assert_true(test_saw(gated, 21));
}

static void check_refused(const pc_model *model, const pc_cut *cut, const char *message) {
    pc_error error = {0};
    assert_int_equal(pc_cut_check(model, cut, 1, &error), PC_ERROR_INPUT);
    assert_string_equal(error.message, message);
}

static void test_refusals(void **state) {
    (void)state;
    pc_model model = llama3(8);
    pc_cut cut = {.tp = 2, .pp = 1, .dp = 1, .chunks = 1, .microbatch_size = 1, .microbatches = 1, .seq_len = 4096};
    pc_cut x = cut;
    x.lora = (pc_lora){.rank = 3, .targets = PC_LORA_ALL};
    check_refused(&model, &x, "tp 2 does not divide lora.rank 3; expected a multiple of tp");
    x.lora = (pc_lora){.rank = 4};
    check_refused(&model, &x, "lora: rank 4 and no targets; expected one matrix at least");
    x.lora = (pc_lora){.rank = -2, .targets = PC_LORA_ALL};
    check_refused(&model, &x, "lora.rank -2; expected at least 1, or 0 for no adapters");
    x = cut;
    x.frozen = PC_FROZEN_LAYERS;
    check_refused(&model, &x, "frozen: layers without adapters; expected lora.rank with them");
    x.frozen = PC_FROZEN_HEAD;
    x.zero = 1;
    x.zero_partition = PC_ZERO_PARTITION_TENSOR;
    check_refused(&model, &x, "zero_partition tensor with frozen parameters; expected zero_partition even");
    model.is_tied = true;
    check_refused(&model, &x, "frozen: one end of a model whose head is the embedding's matrix; expected both or none");
    x = cut;
    x.stores_low_input = true;
    x.kernels = PC_KERNELS_EAGER;
    const char *store =
        "activation_func_fp8_input_store with an MLP that is not gated, or with kernels eager; expected "
        "swiglu or geglu, and fused kernels";
    check_refused(&model, &x, store);
    x.kernels = PC_KERNELS_FUSED;
    model.mlp = PC_MLP_GELU;
    check_refused(&model, &x, store);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_flops),          cmocka_unit_test(test_parameters),  cmocka_unit_test(test_layer_memory),
        cmocka_unit_test(test_frozen_ends),    cmocka_unit_test(test_collectives), cmocka_unit_test(test_graphs),
        cmocka_unit_test(test_recomputed_mlp), cmocka_unit_test(test_input_store), cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
