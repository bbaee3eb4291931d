/* Recipes of few bits: what they add to passes and memory, worked out by hand and counted once more another way; and
 * dimensions that are refused. */
#include "tests/random_model.h"

#include "models/workload/low_precision.h"
#include "scenarios/precision_file.h"

#include <string.h>

#define LENGTH(list) (int)(sizeof(list) / sizeof *(list))

static pc_low_precision recipe(const char *name) {
    pc_precision_recipe made;
    pc_error error = {0};
    pc_place place = pc_place_of_user();
    if (pc_precision_file_read(name, &place, &made, NULL, &error)) fail_msg("%s", error.message);
    return made.low;
}

/* ---- a layer, operation by operation ---- */

typedef struct expected_operation {
    const char *name, *function; /* function: of a product its format, of a collective "" */
    int64_t bytes;
} expected_operation;

static const char *function_of(const pc_operation *x) {
    if (x->kind == PC_OPERATION_GEMM) return pc_product_format_name(x->format);
    return x->function ? x->function : "";
}

static void check_pass(const pc_model *model, const pc_cut *cut, pc_pass_kind kind, const expected_operation *expected,
                       int count) {
    const pc_part part = {.layers = 3};
    pc_operations list;
    assert_int_equal(pc_pass_operations(model, cut, &part, kind, false, &list, NULL), PC_OK);
    for (int i = 0; i < list.count && i < count; i++) {
        const pc_operation *x = &list.list[i];
        assert_string_equal(x->name, expected[i].name);
        assert_string_equal(function_of(x), expected[i].function);
        assert_int_equal(x->kind >= PC_OPERATION_ALL_REDUCE ? x->size_bytes : x->bytes, expected[i].bytes);
        assert_int_equal(x->repeat, 3);
        assert_true(x->splits_accumulator ==
                    (x->kind == PC_OPERATION_GEMM && strcmp(function_of(x), "fp8") == 0 && x->role != PC_GEMM_FORWARD));
    }
    assert_int_equal(list.count, count);
}

/* 48 tokens, 24 of norms; h = 32; 48, 16, 64, 64 columns. Norms write a byte in place of two: 2 + 1. What is gathered
 * is that byte. Attention's output and the activation are cast both ways: 2 + 2 x 1. Weights came in 8 bits, and are
 * transposed: 2 x 1. Products read bytes and write 2; those of a mask, a softmax and heads' own are as ever. */
static void test_forward_by_delayed_scaling(void **state) {
    (void)state;
    pc_cut cut;
    pc_model model = small_gpt(&cut);
    model.low = recipe("fp8-delayed");
    const expected_operation expected[] = {
        {"norm", "layer_norm", 24 * 32 * 3},
        {"qkv", "", 48 * 32},
        {"qkv", "transpose", 2 * 32 * 48},
        {"qkv", "fp8", 48 * 32 + 32 * 48 + 2 * 48 * 48},
        {"qkv_bias", "copy", 48 * 48 * 4},
        {"scores", "bf16", 2 * 6 * (16 * 8 + 8 * 16 + 16 * 16)},
        {"softmax", "softmax", 6 * 16 * 16 * 4},
        {"attention_dropout", "dropout", 6 * 16 * 16 * 5},
        {"values", "bf16", 2 * 6 * (16 * 16 + 16 * 8 + 16 * 8)},
        {"attention_order", "copy", 48 * 16 * 4},
        {"attention_output", "cast_transpose", 48 * 16 * 4},
        {"attention_output", "transpose", 2 * 16 * 32},
        {"attention_output", "fp8", 48 * 16 + 16 * 32 + 2 * 48 * 32},
        {"attention_output", "", 48 * 32 * 2},
        {"residual", "residual", 24 * 32 * 7},
        {"norm", "layer_norm", 24 * 32 * 3},
        {"mlp_up", "", 48 * 32},
        {"mlp_up", "transpose", 2 * 32 * 64},
        {"mlp_up", "fp8", 48 * 32 + 32 * 64 + 2 * 48 * 64},
        {"activation", "gelu", 48 * 64 * 4},
        {"mlp_down", "cast_transpose", 48 * 64 * 4},
        {"mlp_down", "transpose", 2 * 64 * 32},
        {"mlp_down", "fp8", 48 * 64 + 64 * 32 + 2 * 48 * 32},
        {"mlp_down", "", 48 * 32 * 2},
        {"residual", "residual", 24 * 32 * 7},
    };
    check_pass(&model, &cut, PC_PASS_F, expected, LENGTH(expected));
}

/* What was gathered in 8 bits is transposed for W, of all tokens; what was not, its cast has left both ways. */
static void test_weights_by_delayed_scaling(void **state) {
    (void)state;
    pc_cut cut;
    pc_model model = small_gpt(&cut);
    model.low = recipe("fp8-delayed");
    const expected_operation expected[] = {
        {"mlp_down", "transpose", 2 * 48 * 32},
        {"mlp_down", "fp8", 48 * (64 + 32) + 8 * 64 * 32},
        {"mlp_up", "", 48 * 32},
        {"mlp_up", "transpose", 2 * 48 * 32},
        {"mlp_up", "fp8", 48 * (32 + 64) + 8 * 64 * 32},
        {"attention_output", "transpose", 2 * 48 * 32},
        {"attention_output", "fp8", 48 * (16 + 32) + 8 * 16 * 32},
        {"qkv", "", 48 * 32},
        {"qkv", "transpose", 2 * 48 * 32},
        {"qkv", "fp8", 48 * (32 + 48) + 8 * 32 * 48},
        {"qkv_bias", "bias_gradient", 48 * 48 * 2},
    };
    check_pass(&model, &cut, PC_PASS_W, expected, LENGTH(expected));
}

/* ---- sums by what an operation computes ---- */

static int64_t bytes_by(const pc_model *model, const pc_cut *cut, pc_pass_kind kind, const char *function) {
    const pc_part part = {.layers = 1};
    pc_operations list;
    int64_t sum = 0;
    assert_int_equal(pc_pass_operations(model, cut, &part, kind, false, &list, NULL), PC_OK);
    for (int i = 0; i < list.count; i++)
        if (list.list[i].function && strcmp(list.list[i].function, function) == 0) sum += list.list[i].bytes;
    return sum;
}

/* Llama 3 8B whole on a GPU: T tokens; inputs of 4096 (norm), 4096, 4096 (norm) and 14336 columns, outputs of 6144,
 * 4096, 28672 and 4096. */
enum { T = 8192, INPUTS = 4096 + 4096 + 4096 + 14336, OUTPUTS = 6144 + 4096 + 28672 + 4096 };
static const int64_t weights = INT64_C(4096) * 6144 + 4096 * 4096 + 4096 * 28672 + INT64_C(14336) * 4096;

static pc_model llama_by(const char *name, pc_cut *cut) {
    pc_model model = llama3(8);
    model.low = recipe(name);
    *cut = (pc_cut){
        .tp = 1, .pp = 1, .dp = 1, .chunks = 1, .zero = 1, .microbatch_size = 1, .microbatches = 4, .seq_len = T};
    return model;
}

/* The tensor is read for its largest number, 2, then cast both ways, 2 + 2. Weights come in 8 bits and are transposed
 * once in four microbatches. */
static void test_current_scaling_reads_twice(void **state) {
    (void)state;
    pc_cut cut;
    pc_model model = llama_by("fp8-current", &cut);
    assert_int_equal(bytes_by(&model, &cut, PC_PASS_F, "amax"), 2LL * T * INPUTS);
    assert_int_equal(bytes_by(&model, &cut, PC_PASS_F, "cast_transpose"), 4LL * T * INPUTS);
    assert_int_equal(bytes_by(&model, &cut, PC_PASS_F, "transpose"), 2 * weights / 4);
    assert_int_equal(bytes_by(&model, &cut, PC_PASS_B, "amax"), 2LL * T * OUTPUTS);
    assert_int_equal(bytes_by(&model, &cut, PC_PASS_B, "cast_transpose"), 4LL * T * OUTPUTS);
    assert_int_equal(bytes_by(&model, &cut, PC_PASS_W, "cast"), 0);
}

/* Blackwell reads a tensor's 8 bits in any layout: one copy, and nothing to transpose. */
static void test_one_copy_where_layouts_are_free(void **state) {
    (void)state;
    pc_cut cut;
    pc_model model = llama_by("fp8-current", &cut);
    pc_gpu gpu = {.has_fp8_layouts = true};
    pc_precision_fit_gpu(&gpu, &model.low);
    assert_int_equal(bytes_by(&model, &cut, PC_PASS_F, "cast"), 3LL * T * INPUTS);
    assert_int_equal(bytes_by(&model, &cut, PC_PASS_F, "cast_transpose"), 0);
    assert_int_equal(bytes_by(&model, &cut, PC_PASS_F, "transpose"), 0);
    model.low = recipe("mxfp8");
    pc_precision_fit_gpu(&gpu, &model.low);
    assert_int_equal(model.low.copies, 2); /* scales of blocks run along rows, or along columns */
}

/* 33 bytes for 32 numbers; weights are cast by the first of four microbatches, 2 + 2 x 33/32. */
static void test_mxfp8_casts_both_ways(void **state) {
    (void)state;
    pc_cut cut;
    pc_model model = llama_by("mxfp8", &cut);
    assert_int_equal(bytes_by(&model, &cut, PC_PASS_F, "amax"), 0);
    assert_int_equal(bytes_by(&model, &cut, PC_PASS_F, "cast_transpose"),
                     (2LL * 32 + 2 * 33) * (T / 32) * INPUTS + (2 * 32 + 2 * 33) * (weights / 32) / 4);
}

/* 18 bytes for 32: amaxes read 2, casts 2, and write both copies, one of them rotated. */
static void test_nvfp4_casts_and_rotates_at_once(void **state) {
    (void)state;
    pc_cut cut;
    pc_model model = llama_by("nvfp4", &cut);
    assert_int_equal(bytes_by(&model, &cut, PC_PASS_F, "amax"), 2LL * T * INPUTS);
    assert_int_equal(bytes_by(&model, &cut, PC_PASS_B, "amax"), 2LL * T * OUTPUTS);
    assert_int_equal(bytes_by(&model, &cut, PC_PASS_F, "cast"), 0);
    assert_int_equal(bytes_by(&model, &cut, PC_PASS_F, "hadamard"), 0);
    assert_int_equal(bytes_by(&model, &cut, PC_PASS_F, "cast_transpose"),
                     (64LL + 2 * 18) * (T / 32) * INPUTS + (4 * 32 + 2 * 18) * (weights / 32) / 4);
    assert_int_equal(bytes_by(&model, &cut, PC_PASS_B, "cast_transpose"), (64LL + 2 * 18) * (T / 32) * OUTPUTS);
}

/* torchao, by rows: norms and the activation cast in their own kernels and write 16 bits beside, 1 more a number; what
 * attention leaves has a cast, 3, and so have weights in each pass. W casts both of its operands, 3. */
static void test_rowwise_casts_in_every_pass(void **state) {
    (void)state;
    pc_cut cut;
    pc_model model = llama_by("fp8-rowwise", &cut), plain = model;
    memset(&plain.low, 0, sizeof plain.low);
    int64_t norms = bytes_by(&model, &cut, PC_PASS_F, "rms_norm") - bytes_by(&plain, &cut, PC_PASS_F, "rms_norm");
    int64_t swiglu = bytes_by(&model, &cut, PC_PASS_F, "swiglu") - bytes_by(&plain, &cut, PC_PASS_F, "swiglu");
    assert_int_equal(norms, 2LL * T * 4096);
    assert_int_equal(swiglu, 1LL * T * 14336);
    assert_int_equal(bytes_by(&model, &cut, PC_PASS_F, "cast"), 3LL * T * 4096 + 3 * weights);
    assert_int_equal(bytes_by(&model, &cut, PC_PASS_B, "cast"), 3LL * T * (6144 + 4096 + 4096) + 3 * weights);
    assert_int_equal(bytes_by(&model, &cut, PC_PASS_W, "cast"), 3LL * T * (INPUTS + OUTPUTS));
}

/* Its weights come in 8 bits where ZeRO 3 gathers them, and are transposed for B; else each pass finds their largest
 * number and casts them: 2 + 3. */
static void test_tensorwise_gathers_weights_in_8_bits(void **state) {
    (void)state;
    pc_cut cut;
    pc_model model = llama_by("fp8-tensorwise", &cut);
    int64_t inputs = 3LL * T * INPUTS; /* amaxes of norms and activations are fused, casts are not */
    assert_int_equal(bytes_by(&model, &cut, PC_PASS_F, "cast"), inputs + 5 * weights);
    assert_int_equal(bytes_by(&model, &cut, PC_PASS_F, "amax"), 2LL * T * 4096);
    cut.zero = 3;
    assert_int_equal(bytes_by(&model, &cut, PC_PASS_F, "cast"), inputs + 5 * weights); /* of one replica: there */
    cut.dp = 2;
    assert_int_equal(bytes_by(&model, &cut, PC_PASS_F, "cast"), inputs);
    assert_int_equal(bytes_by(&model, &cut, PC_PASS_B, "transpose"), 2 * weights);
}

/* ---- memory ---- */

/* A token of a layer in 16 bits: 8h + 2(qkv + query + up + ffn) = 139,264. In 8: inputs of two norms 4h, of the
 * matrices behind them 2h; queries, keys, values and up 2 each, attention's output 2 + 1, down's input 1: 120,832. */
static void test_inputs_are_kept_in_few_bits(void **state) {
    (void)state;
    static const struct {
        const char *name;
        int64_t bytes_of_32; /* a number's; 0: it keeps 16 bits */
    } rows[] = {{"fp8-delayed", 32}, {"fp8-blockwise", 33}, {"nvfp4", 18}, {"fp8-rowwise", 0}, {"bf16", 0}};
    const pc_pass_forms forms = {.splits = true};
    const pc_part part = {.layers = 2};
    for (int i = 0; i < LENGTH(rows); i++) {
        pc_cut cut;
        pc_model model = llama_by(rows[i].name, &cut);
        pc_part_activation x;
        int64_t few = 2 * 4096 + 4096 + 14336, in_16 = 4 * 4096 + 2 * (6144 + 4096 + 28672);
        int64_t token = rows[i].bytes_of_32 ? in_16 + few / 32 * rows[i].bytes_of_32 : 139264;
        int64_t for_w = 2 * 4096 + 4096 + 14336 + 6144 + 28672 + 2 * 4096;
        int64_t needs = rows[i].bytes_of_32 ? for_w / 32 * rows[i].bytes_of_32 : 2 * for_w;
        assert_int_equal(pc_part_activations(&model, &cut, &part, forms, &x, NULL), PC_OK);
        assert_int_equal(x.taken, 2 * T * token);
        assert_int_equal(x.taken - x.b_frees, 2 * T * (needs < token ? needs : token));
    }
}

/* A layer of each sort of two: the mean of both, which comes to their sum. */
static void test_layers_of_both_sorts(void **state) {
    (void)state;
    pc_cut cut;
    pc_model model = llama_by("fp8-delayed", &cut), in_16 = llama_by("bf16", &cut);
    const pc_pass_forms forms = {.splits = true};
    const pc_part both = {.layers = 5, .wide_layers = 2}, low = {.layers = 3}, high = {.layers = 2};
    pc_part_activation x, a, b;
    assert_int_equal(pc_part_activations(&model, &cut, &both, forms, &x, NULL), PC_OK);
    assert_int_equal(pc_part_activations(&model, &cut, &low, forms, &a, NULL), PC_OK);
    assert_int_equal(pc_part_activations(&in_16, &cut, &high, forms, &b, NULL), PC_OK);
    assert_true(x.taken >= a.taken + b.taken && x.taken < a.taken + b.taken + 5);
    for (int kind = 0; kind < PC_PASS_KINDS; kind++) {
        pc_operation_sums s = sums_of(&model, &cut, &both, (pc_pass_kind)kind, false),
                          t = sums_of(&model, &cut, &low, (pc_pass_kind)kind, false),
                          u = sums_of(&in_16, &cut, &high, (pc_pass_kind)kind, false);
        assert_int_equal(s.bytes, t.bytes + u.bytes);
        assert_int_equal(s.flops, t.flops + u.flops);
    }
}

static void test_weights_are_held_cached_or_neither(void **state) {
    (void)state;
    const pc_low_precision held = recipe("fp8-delayed"), cached = recipe("fp8-blockwise"), none = recipe("fp8-rowwise"),
                           in_16 = recipe("bf16");
    assert_int_equal(pc_low_precision_weight_bytes(&held, 3200), 2 * 3200);
    assert_int_equal(pc_low_precision_weight_bytes(&cached, 3200), 2 * 3200 + 2 * 3300);
    assert_int_equal(pc_low_precision_weight_bytes(&none, 3200), 2 * 3200);
    assert_int_equal(pc_low_precision_weight_bytes(&in_16, 3200), 2 * 3200);
    assert_int_equal(pc_product_format_bytes(PC_PRODUCT_NVFP4, 33), 19); /* 18 of 32, and 18/32 of one, rounded up */
}

/* Of 12 layers in three parts the first and the last six. */
static void test_first_and_last_layers_stay_wide(void **state) {
    (void)state;
    pc_model model = llama3(8);
    pc_cut cut = {.tp = 1, .pp = 3, .dp = 1, .chunks = 1, .layout = PC_CUT_EVEN};
    model.layers = 12;
    model.low = recipe("nvfp4");
    static const struct {
        int32_t first, last;
        int64_t wide[3];
    } rows[] = {{0, 4, {0, 0, 4}}, {1, 6, {1, 2, 4}}, {5, 0, {4, 1, 0}}, {8, 8, {4, 4, 4}}, {0, 0, {0, 0, 0}}};
    for (int i = 0; i < LENGTH(rows); i++) {
        model.low.bf16_first = rows[i].first;
        model.low.bf16_last = rows[i].last;
        for (int part = 0; part < 3; part++)
            assert_int_equal(pc_cut_part(&model, &cut, 3, part).wide_layers, rows[i].wide[part]);
    }
    model.low = recipe("bf16");
    model.low.bf16_last = 4;
    assert_int_equal(pc_cut_part(&model, &cut, 3, 2).wide_layers, 0);
}

/* ---- random models and recipes ---- */

static pc_low_precision random_recipe(test_random *random) {
    pc_low_precision made = {.copies = (int32_t)test_between(random, 1, 2),
                             .scaling = (pc_scaling)test_between(random, 0, PC_SCALING_TWO_LEVEL),
                             .weights = (pc_low_weights)test_between(random, 0, PC_LOW_WEIGHTS_HELD)};
    pc_product_format format = (pc_product_format)test_between(random, PC_PRODUCT_FP8, PC_PRODUCT_NVFP4);
    for (int i = 0; i < PC_LOW_PRODUCTS; i++)
        made.product[i] = i == 0 || test_between(random, 0, 3) ? format : PC_PRODUCT_BF16;
    made.gathers_parameters = test_between(random, 0, 1);
    made.gathers_activations = test_between(random, 0, 1);
    made.keeps_inputs = test_between(random, 0, 1);
    made.fuses_norm = test_between(random, 0, 1);
    made.fuses_activation = test_between(random, 0, 1);
    made.rotates = test_between(random, 0, 1) && pc_product_format_is_low(made.product[2]);
    return made;
}

/* A model whose dimensions all formats divide. */
static pc_model even_model(test_random *random, pc_cut *cut) {
    pc_model model = random_model(random);
    model.head_dim = 128;
    model.heads = 8 * test_between(random, 1, 4);
    model.kv_heads = 8;
    model.hidden = 1024 * test_between(random, 1, 4);
    model.ffn_hidden = 1024 * test_between(random, 1, 4);
    model.max_positions = 1 << 20;
    *cut = random_cut(random, &model);
    cut->seq_len = 1024 * test_between(random, 1, 4);
    cut->microbatches = test_between(random, 1, 5);
    cut->zero = (int)test_between(random, 0, 3);
    cut->dp = (int)test_between(random, 1, 2);
    return model;
}

/* B and W are a BW, whatever the recipe; FLOPs are those of 16 bits; and what a product reads is never more. */
static void test_passes_add_up(void **state) {
    (void)state;
    test_random random = {23};
    for (int i = 0; i < 300; i++) {
        pc_cut cut;
        pc_model model = even_model(&random, &cut), plain = model;
        model.low = random_recipe(&random);
        pc_part part = {
            .layers = 7, .wide_layers = test_between(&random, 0, 7), .has_embedding = true, .has_head = true};
        assert_int_equal(pc_cut_check(&model, &cut, 1, NULL), PC_OK);
        part.recompute = test_between(&random, 0, 1) ? PC_RECOMPUTE_FULL : PC_RECOMPUTE_NONE;
        pc_operation_sums f = sums_of(&model, &cut, &part, PC_PASS_F, false),
                          b = sums_of(&model, &cut, &part, PC_PASS_B, false),
                          w = sums_of(&model, &cut, &part, PC_PASS_W, false),
                          bw = sums_of(&model, &cut, &part, PC_PASS_BW, false),
                          f16 = sums_of(&plain, &cut, &part, PC_PASS_F, false),
                          bw16 = sums_of(&plain, &cut, &part, PC_PASS_BW, false);
        assert_int_equal(bw.bytes, b.bytes + w.bytes);
        assert_int_equal(bw.flops, b.flops + w.flops);
        assert_int_equal(bw.collective_bytes, b.collective_bytes + w.collective_bytes);
        assert_int_equal(bw.launches, b.launches + w.launches);
        assert_int_equal(f.flops, f16.flops);
        assert_int_equal(bw.model_flops, bw16.model_flops);
    }
}

static int64_t few(pc_product_format format, int64_t elements) {
    return elements / 32 * pc_product_format_bytes_of_32(format);
}

/* What one tensor that two products read costs beside its maker, on one GPU: `own` by the product of its own pass,
 * `other` by that of W. 16 bits are 2 bytes; each clause is one kernel's reads and writes. */
static int64_t recount_tensor(const pc_low_precision *r, int own, int64_t n, bool is_fused) {
    bool is_low = pc_product_format_is_low(r->product[own]), w_low = pc_product_format_is_low(r->product[2]);
    bool has_amax = r->scaling == PC_SCALING_CURRENT || r->scaling == PC_SCALING_TWO_LEVEL;
    bool both = is_low && w_low && r->keeps_inputs && r->copies == 2;
    int64_t bytes = 0;
    if (is_low) {
        int64_t copies = both ? 2 : 1;
        bytes += has_amax && !is_fused ? 2 * n : 0;
        bytes += copies * few(r->product[own], n);
        if (!is_fused || has_amax) bytes += 2 * n;                    /* a kernel of its own reads 16 bits */
        if (is_fused && !has_amax && r->keeps_inputs) bytes -= 2 * n; /* the maker leaves those out */
    }
    if (w_low && (!r->keeps_inputs || !is_low)) bytes += 2 * n + few(r->product[2], n);
    return bytes;
}

/* One weight matrix in an F and a BW. */
static int64_t recount_weight(const pc_low_precision *r, const pc_cut *cut, int64_t n) {
    bool has_amax = r->scaling == PC_SCALING_CURRENT || r->scaling == PC_SCALING_TWO_LEVEL;
    bool b_low = pc_product_format_is_low(r->product[1]);
    int64_t low = few(r->product[0], n), read = has_amax ? 4 * n : 2 * n;
    if (r->weights == PC_LOW_WEIGHTS_EACH && r->gathers_parameters && cut->zero == 3 && cut->dp > 1)
        return b_low && r->copies == 2 ? 2 * low : 0;
    if (r->weights == PC_LOW_WEIGHTS_EACH) return (read + low) * (b_low ? 2 : 1);
    if (r->weights == PC_LOW_WEIGHTS_HELD && r->gathers_parameters)
        return r->copies == 2 ? 2 * low / cut->microbatches : 0;
    return (read + r->copies * low) / cut->microbatches;
}

/* Operands of the three products of a matrix, less what they are in 16 bits. */
static int64_t recount_products(const pc_low_precision *r, int64_t tokens, int64_t in, int64_t out) {
    const int64_t operands[PC_LOW_PRODUCTS] = {tokens * in + in * out, tokens * out + in * out, tokens * (in + out)};
    int64_t bytes = 0;
    for (int i = 0; i < PC_LOW_PRODUCTS; i++) {
        bool is_low = pc_product_format_is_low(r->product[i]);
        if (is_low) bytes += few(r->product[i], operands[i]) - 2 * operands[i];
    }
    return bytes;
}

static void test_bytes_are_those_of_an_independent_count(void **state) {
    (void)state;
    test_random random = {24};
    for (int i = 0; i < 300; i++) {
        pc_cut cut;
        pc_model model = even_model(&random, &cut), plain = model;
        model.low = random_recipe(&random);
        const pc_low_precision *r = &model.low;
        const pc_part part = {.layers = 1};
        cut.tp = 1;
        int64_t tokens = cut.seq_len * cut.microbatch_size, h = model.hidden, f = model.ffn_hidden;
        int64_t query = model.heads * 128, qkv = query + 2 * model.kv_heads * 128;
        int64_t up = model.mlp == PC_MLP_SWIGLU ? 2 * f : f, more = 0;
        const struct {
            int64_t in, out;
            bool is_in_fused, is_out_fused;
        } matrices[] = {{h, qkv, r->fuses_norm, false},
                        {query, h, false, false},
                        {h, up, r->fuses_norm, r->fuses_activation},
                        {f, h, r->fuses_activation, false}};
        for (int m = 0; m < LENGTH(matrices); m++) {
            int64_t in = matrices[m].in, out = matrices[m].out;
            more += recount_products(r, tokens, in, out) + recount_weight(r, &cut, in * out);
            more += recount_tensor(r, 0, tokens * in, matrices[m].is_in_fused);
            more += recount_tensor(r, 1, tokens * out, matrices[m].is_out_fused);
        }
        int64_t bytes = 0;
        for (int pass = 0; pass < 2; pass++) {
            pc_pass_kind kind = pass ? PC_PASS_BW : PC_PASS_F;
            bytes += sums_of(&model, &cut, &part, kind, false).bytes - sums_of(&plain, &cut, &part, kind, false).bytes;
        }
        assert_int_equal(bytes, more);
    }
}

/* ---- what is refused ---- */

static void check_cut(const pc_model *model, const pc_cut *cut, const char *message) {
    pc_error error = {0};
    assert_int_equal(pc_cut_check(model, cut, 1, &error), PC_ERROR_INPUT);
    assert_string_equal(error.message, message);
}

static void test_dimensions_that_no_block_divides(void **state) {
    (void)state;
    pc_cut cut;
    pc_model model = llama_by("fp8-blockwise", &cut);
    model.ffn_hidden = 11008;
    cut.tp = 8;
    cut.sequence_parallel = true;
    assert_int_equal(pc_cut_check(&model, &cut, 1, NULL), PC_OK); /* 1376 = 16 x 86: the last block is not full */
    cut.seq_len = 512;                                            /* of which a rank has 64 tokens */
    check_cut(&model, &cut,
              "precision fp8-blockwise: 64 tokens of a rank, which tp gathers; expected a multiple of 128, another tp, "
              "or bf16");
    cut.sequence_parallel = false;
    assert_int_equal(pc_cut_check(&model, &cut, 1, NULL), PC_OK);
    cut.sequence_parallel = true;
    model.low = recipe("fp8-delayed");
    assert_int_equal(pc_cut_check(&model, &cut, 1, NULL), PC_OK);
    cut.seq_len = 8200;
    check_cut(&model, &cut,
              "precision fp8-delayed: 8200 seq_len x microbatch_size; expected a multiple of 16, another tp, or bf16");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forward_by_delayed_scaling),
        cmocka_unit_test(test_weights_by_delayed_scaling),
        cmocka_unit_test(test_current_scaling_reads_twice),
        cmocka_unit_test(test_one_copy_where_layouts_are_free),
        cmocka_unit_test(test_mxfp8_casts_both_ways),
        cmocka_unit_test(test_nvfp4_casts_and_rotates_at_once),
        cmocka_unit_test(test_rowwise_casts_in_every_pass),
        cmocka_unit_test(test_tensorwise_gathers_weights_in_8_bits),
        cmocka_unit_test(test_inputs_are_kept_in_few_bits),
        cmocka_unit_test(test_layers_of_both_sorts),
        cmocka_unit_test(test_weights_are_held_cached_or_neither),
        cmocka_unit_test(test_first_and_last_layers_stay_wide),
        cmocka_unit_test(test_passes_add_up),
        cmocka_unit_test(test_bytes_are_those_of_an_independent_count),
        cmocka_unit_test(test_dimensions_that_no_block_divides),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
