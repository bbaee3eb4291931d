/* Mixtures of experts and latent attention on one rank: parameters, FLOPs, products, memory, by algebra over random
 * models and cuts; how many rows come to the fullest rank; what is refused. */
#include "models/workload/expert_load.h"
#include "models/workload/layout.h"
#include "models/workload/memory.h"
#include "models/workload/operation.h"
#include "models/workload/slice.h"
#include "models/workload/tensors.h"
#include "scenarios/precision_file.h"
#include "tests/random_model.h"

#include <math.h>
#include <string.h>

static pc_model random_mixture(test_random *random, pc_cut *cut) {
    pc_model model = random_model(random);
    *cut = random_cut(random, &model);
    random_experts(random, &model, cut);
    return model;
}

static pc_operations pass_of(const pc_model *model, const pc_cut *cut, const pc_part *part, pc_pass_kind kind) {
    pc_operations made;
    pc_error error = {0};
    if (pc_pass_operations(model, cut, part, kind, false, &made, &error)) fail_msg("%s", error.message);
    return made;
}

/* Over the ranks of tensor parallelism model FLOPs of F and BW are those of the closed form, where every rank has all
 * its heads and the vocabulary alone. */
static void test_model_flops(void **state) {
    (void)state;
    test_random random = {25};
    for (long i = 0; i < test_cases(400, 4000); i++) {
        pc_cut cut;
        pc_model model = random_mixture(&random, &cut);
        if (model.kv_heads % cut.tp) continue;
        pc_part all = pc_cut_part(&model, &cut, 1, 0);
        pc_operations f = pass_of(&model, &cut, &all, PC_PASS_F), bw = pass_of(&model, &cut, &all, PC_PASS_BW);
        double sum = (double)pc_operations_sum(&f).model_flops + (double)pc_operations_sum(&bw).model_flops;
        double expected = pc_model_flops_per_sequence(&model, cut.tp, cut.seq_len) * (double)cut.microbatch_size;
        double off = sum * cut.tp / expected - 1;
        if (fabs(off) > 1e-12) fail_msg("case %ld: %g of %g", i, sum * cut.tp, expected);
    }
}

/* A B and a W have the kernels of a BW. */
static void test_splits(void **state) {
    (void)state;
    test_random random = {26};
    for (long i = 0; i < test_cases(400, 4000); i++) {
        pc_cut cut;
        pc_model model = random_mixture(&random, &cut);
        pc_part part = pc_cut_part(&model, &cut, 1, 0);
        part.recompute = (pc_recompute)test_between(&random, PC_RECOMPUTE_NONE, PC_RECOMPUTE_FULL);
        pc_operations of[3] = {pass_of(&model, &cut, &part, PC_PASS_B), pass_of(&model, &cut, &part, PC_PASS_W),
                               pass_of(&model, &cut, &part, PC_PASS_BW)};
        pc_operation_sums b = pc_operations_sum(&of[0]), w = pc_operations_sum(&of[1]), bw = pc_operations_sum(&of[2]);
        assert_true(b.flops + w.flops == bw.flops && b.bytes + w.bytes == bw.bytes);
        assert_true(b.model_flops + w.model_flops == bw.model_flops && b.launches + w.launches == bw.launches);
        assert_true(w.flops > 0);
    }
}

/* Over all ranks of the cut parts hold the model: replicated parameters as often as there are ranks, experts once for
 * every ep * etp of them. Of one rank they come to the model's. */
static void test_parts_hold_the_model(void **state) {
    (void)state;
    test_random random = {27};
    for (long i = 0; i < test_cases(400, 4000); i++) {
        pc_cut cut;
        pc_model model = random_mixture(&random, &cut);
        pc_parameters whole;
        pc_error error = {0};
        cut.tp = cut.etp = 1;
        assert_int_equal(pc_model_parameters(&model, 1, &whole, &error), PC_OK);
        int parts = (int)test_between(&random, 1, model.layers);
        if (model.layers % parts) parts = 1;
        int64_t sum = 0, experts = 0;
        for (int part = 0; part < parts; part++) {
            pc_part x = pc_cut_part(&model, &cut, parts, part);
            sum += pc_part_parameters(&model, &cut, &x, parts == 1);
            experts += pc_part_experts(&model, &cut, &x);
        }
        bool has_copy = model.is_tied || model.mtp_layers > 0; /* on the last part */
        if (has_copy && parts > 1) sum -= whole.embedding;
        assert_int_equal(sum, whole.total);
        pc_cut shared = cut;
        shared.ep = (int)model.experts.num_experts;
        shared.dp = shared.ep;
        pc_part x = pc_cut_part(&model, &shared, 1, 0);
        assert_int_equal(pc_part_experts(&model, &shared, &x) * shared.ep, experts);
    }
}

/* Tensors of a part come to its parameters. */
static void test_tensors(void **state) {
    (void)state;
    test_random random = {32};
    for (long i = 0; i < test_cases(400, 4000); i++) {
        pc_cut cut;
        pc_model model = random_mixture(&random, &cut);
        pc_tensor_sort sorts[PC_TENSOR_SORTS_MAX];
        int parts = i % 2 && pc_layout_divides(PC_CUT_EVEN, model.layers, 2) ? 2 : 1;
        pc_part part = pc_cut_part(&model, &cut, parts, parts - 1);
        int count = pc_part_tensors(&model, &cut, &part, parts == 1, sorts);
        int64_t sum = 0, of_experts = 0;
        for (int n = 0; n < count; n++) {
            sum += sorts[n].parameters * sorts[n].count;
            if (sorts[n].is_expert) of_experts += sorts[n].parameters * sorts[n].count;
        }
        assert_int_equal(sum, pc_part_parameters(&model, &cut, &part, parts == 1));
        assert_int_equal(of_experts, pc_part_experts(&model, &cut, &part));
    }
}

/* One layer, no tensor parallelism: rows are tokens x topk; F's grouped products are of rows x h x f, two or three of
 * them; and what waits for W is what they read. */
static void test_grouped_products(void **state) {
    (void)state;
    test_random random = {28};
    for (long i = 0; i < test_cases(200, 2000); i++) {
        pc_cut cut;
        pc_model model = random_mixture(&random, &cut);
        const pc_experts *x = &model.experts;
        cut.tp = cut.etp = 1;
        model.experts.capacity_factor = 0;
        model.experts.pads_to_capacity = false;
        pc_part part = {.layers = 1, .expert_layers = 1};
        pc_operations f = pass_of(&model, &cut, &part, PC_PASS_F);
        int64_t rows = cut.seq_len * cut.microbatch_size * x->topk, flops = 0, count = 0;
        for (int n = 0; n < f.count; n++) {
            if (f.list[n].kind != PC_OPERATION_GROUPED_GEMM) continue;
            flops += f.list[n].flops;
            assert_true(f.list[n].rows == rows && f.list[n].batch == x->num_experts);
            assert_true((f.list[n].m - 1) * x->num_experts < rows && rows <= f.list[n].m * x->num_experts);
            count++;
        }
        int64_t matrices = pc_mlp_is_gated(model.mlp) ? 3 : 2;
        assert_int_equal(count, 2);
        assert_int_equal(flops, 2 * matrices * rows * model.hidden * x->ffn_hidden);
    }
}

/* Blocks of 8 bits, of which the products for weights read other copies; experts over as many ranks. */
static pc_model in_blocks(test_random *random, pc_cut *cut) {
    pc_model model = random_mixture(random, cut);
    model.low = (pc_low_precision){.name = "blocks",
                                   .product = {PC_PRODUCT_FP8_BLOCK, PC_PRODUCT_FP8_BLOCK, PC_PRODUCT_FP8_BLOCK},
                                   .scaling = PC_SCALING_BLOCK,
                                   .copies = 2,
                                   .keeps_inputs = true};
    cut->tp = cut->etp = 1;
    cut->ep = cut->dp = (int)model.experts.num_experts;
    cut->dispatcher = PC_DISPATCHER_DEEPEP;
    return model;
}

static int64_t bytes_of(const pc_model *model, const pc_cut *cut, pc_pass_kind kind) {
    pc_part part = {.layers = 1, .expert_layers = 1};
    pc_operations made = pass_of(model, cut, &part, kind);
    return pc_operations_sum(&made).bytes;
}

static int64_t rows_of(const pc_model *model, const pc_cut *cut) {
    pc_part part = {.layers = 1, .expert_layers = 1};
    pc_operations made = pass_of(model, cut, &part, PC_PASS_F);
    for (int n = 0; n < made.count; n++)
        if (made.list[n].kind == PC_OPERATION_GROUPED_GEMM) return made.list[n].rows;
    return 0;
}

/* A byte a number and four for 128 of them. */
static int64_t low(int64_t numbers) {
    return (33 * numbers + 31) / 32;
}

/* The bytes of the first cast of what a matrix reads, in F. */
static int64_t cast_bytes(const pc_model *model, const pc_cut *cut, const char *matrix) {
    pc_part part = {.layers = 1, .expert_layers = 1};
    pc_operations made = pass_of(model, cut, &part, PC_PASS_F);
    for (int n = 0; n < made.count; n++)
        if (made.list[n].kind == PC_OPERATION_ELEMENTWISE && !strcmp(made.list[n].name, matrix))
            return made.list[n].bytes;
    return 0;
}

/* Products that go up from latents read these, and cast no more than that: 16 bits in, two copies out. */
static void test_casts_of_latents(void **state) {
    (void)state;
    test_random random = {34};
    long compared = 0;
    for (long i = 0; i < test_cases(200, 2000); i++) {
        pc_cut cut;
        pc_model model = in_blocks(&random, &cut);
        if (!model.mla.kv_lora_rank) continue;
        int64_t numbers = cut.seq_len * cut.microbatch_size * model.mla.kv_lora_rank;
        assert_int_equal(cast_bytes(&model, &cut, "kv_up"), 2 * numbers + 2 * low(numbers));
        compared++;
    }
    assert_true(test_saw(compared, 20));
}

/* Rows that come in blocks of 8 bits are copied as such, and nobody casts them: neither what experts read nor the
 * gradient of what they put out. W makes its copies of both, reading and writing 8 bits. */
static void test_rows_of_8_bits(void **state) {
    (void)state;
    test_random random = {33};
    long compared = 0;
    for (long i = 0; i < test_cases(200, 2000); i++) {
        pc_cut cut, other;
        pc_model model = in_blocks(&random, &cut);
        if (cut.ep == 1) continue;
        other = cut;
        other.fp8_dispatch = true;
        int64_t h = model.hidden, rows = rows_of(&model, &cut), tokens = cut.seq_len * cut.microbatch_size * cut.ep;
        int64_t copied = ((tokens < rows ? tokens : rows) + rows) * h;
        int64_t saved = 2 * copied - low(copied) + 2 * rows * h + 2 * low(rows * h);
        assert_int_equal(bytes_of(&model, &cut, PC_PASS_F) - bytes_of(&model, &other, PC_PASS_F), saved);
        assert_int_equal(bytes_of(&model, &cut, PC_PASS_B) - bytes_of(&model, &other, PC_PASS_B), saved);
        assert_int_equal(bytes_of(&model, &other, PC_PASS_W) - bytes_of(&model, &cut, PC_PASS_W), 4 * low(rows * h));
        compared++;
        model.low.product[PC_GEMM_FORWARD] = PC_PRODUCT_FP8; /* has other scales */
        assert_int_equal(bytes_of(&model, &cut, PC_PASS_F), bytes_of(&model, &other, PC_PASS_F));
    }
    assert_true(test_saw(compared, 20));
}

typedef struct grouped_kernels {
    int products, launches, pads;
    int64_t pad_bytes;
} grouped_kernels;

static grouped_kernels count_kernels(const pc_operations *pass) {
    grouped_kernels found = {0};
    for (int n = 0; n < pass->count; n++) {
        const pc_operation *x = &pass->list[n];
        bool pads = strcmp(x->name, "padding") == 0 || strcmp(x->name, "unpadding") == 0;
        if (x->kind == PC_OPERATION_GROUPED_GEMM) found.products++, found.launches += x->launches;
        if (pads) found.pads++, found.pad_bytes += x->bytes;
    }
    return found;
}

static const pc_model small_mixture = {.layers = 1,
                                       .hidden = 64,
                                       .ffn_hidden = 32,
                                       .heads = 2,
                                       .kv_heads = 2,
                                       .head_dim = 32,
                                       .vocab = 128,
                                       .vocab_multiple = 1,
                                       .positions = PC_POSITIONS_ROTARY,
                                       .mlp = PC_MLP_SWIGLU,
                                       .attention = PC_ATTENTION_FLASH,
                                       .experts = {.num_experts = 8, .topk = 2, .ffn_hidden = 32}};
static const pc_cut small_cut = {
    .tp = 1, .pp = 1, .dp = 1, .chunks = 1, .microbatch_size = 1, .microbatches = 1, .seq_len = 256};

/* Bytes and launches of what has the name. */
static pc_operation_sums sum_of(const pc_model *model, const pc_cut *cut, pc_pass_kind kind, const char *name) {
    const pc_part part = {.layers = 1, .expert_layers = 1};
    pc_operations pass = pass_of(model, cut, &part, kind);
    pc_operation_sums sum = {0};
    for (int n = 0; n < pass.count; n++) {
        if (strcmp(pass.list[n].name, name) != 0) continue;
        sum.bytes += pass.list[n].bytes;
        sum.launches += pass.list[n].launches;
    }
    return sum;
}

static void check_kernels(const pc_model *model, const pc_cut *cut, const char *name, const int64_t expected[4]) {
    pc_operation_sums f = sum_of(model, cut, PC_PASS_F, name), b = sum_of(model, cut, PC_PASS_BW, name);
    assert_int_equal(f.bytes, expected[0]);
    assert_int_equal(f.launches, expected[1]);
    assert_int_equal(b.bytes, expected[2]);
    assert_int_equal(b.launches, expected[3]);
}

/* GPT-OSS's: 512 rows of 64 numbers, gate and up of 64. Cut off: 8 bytes a number of gate and up, and 10 back. A bias
 * of the last product: 12 bytes a number and 16 back, of 8 experts 2 kernels each and 4 back, and one that joins them;
 * with probabilities of 32 bits 28 and 40, a kernel more, and 5 back. Rotations of 256 tokens x 2 x 64 queries and
 * keys: 24 bytes and 26. Nothing of experts where operations are fused. */
static void test_kernels_beside_fused_ones(void **state) {
    (void)state;
    enum { ROWS = 512, ROTATED = 256 * 2 * 64 };
    pc_model model = small_mixture;
    pc_cut cut = small_cut;
    check_kernels(&model, &cut, "expert_clamp", (int64_t[]){0, 0, 0, 0});
    check_kernels(&model, &cut, "expert_bias", (int64_t[]){0, 0, 0, 0});
    check_kernels(&model, &cut, "rotary", (int64_t[]){4 * ROTATED, 2, 4 * ROTATED, 2});
    model.experts.activation_clamp = 7;
    model.has_bias = model.scales_rotary = true;
    check_kernels(&model, &cut, "expert_clamp", (int64_t[]){8 * ROWS * 64, 3, 10 * ROWS * 64, 3});
    check_kernels(&model, &cut, "expert_bias", (int64_t[]){12 * ROWS * 64, 17, 16 * ROWS * 64, 33});
    check_kernels(&model, &cut, "rotary", (int64_t[]){24 * ROTATED, 24, 26 * ROTATED, 14});
    cut.dispatcher = PC_DISPATCHER_HYBRIDEP;
    check_kernels(&model, &cut, "expert_bias", (int64_t[]){28 * ROWS * 64, 18, 40 * ROWS * 64, 42});
    cut.fuses_operations = true;
    check_kernels(&model, &cut, "expert_clamp", (int64_t[]){0, 0, 0, 0});
    check_kernels(&model, &cut, "expert_bias", (int64_t[]){0, 0, 0, 0});
}

/* Rows with room between experts, for products in 8 bits: DeepEP's are copied, HybridEP's come so. */
static void test_padding_by_dispatcher(void **state) {
    (void)state;
    pc_model model = small_mixture;
    pc_cut cut = small_cut;
    model.low =
        (pc_low_precision){.name = "example", .product = {PC_PRODUCT_FP8, PC_PRODUCT_FP8, PC_PRODUCT_FP8}, .copies = 1};
    cut.dp = cut.ep = 2;
    for (pc_dispatcher d = PC_DISPATCHER_ALLGATHER; d <= PC_DISPATCHER_HYBRIDEP; d++) {
        cut.dispatcher = d;
        int64_t bytes = d == PC_DISPATCHER_HYBRIDEP ? 0 : 2 * 2 * 512 * 64, launches = bytes > 0;
        check_kernels(&model, &cut, "padding", (int64_t[]){bytes, launches, bytes, launches});
    }
}

/* One layer of E experts on one GPU. A grouped product is E kernels, and one where operations are fused. In 8 bits rows
 * are copied twice in F and twice in B, 2 x 2 bytes a number of tokens x topk x h; not in 16 bits, and not where
 * operations are fused. */
static void test_kernels_of_experts(void **state) {
    (void)state;
    const int64_t rows = 256 * 2, h = 64;
    pc_model model = small_mixture;
    pc_cut cut = small_cut;
    pc_part part = {.layers = 1, .expert_layers = 1};
    for (int is_low = 0; is_low < 2; is_low++) {
        for (int fuses = 0; fuses < 2; fuses++) {
            if (is_low)
                model.low = (pc_low_precision){
                    .name = "example", .product = {PC_PRODUCT_FP8, PC_PRODUCT_FP8, PC_PRODUCT_FP8}, .copies = 1};
            cut.fuses_operations = fuses;
            for (int back = 0; back < 2; back++) {
                pc_operations pass = pass_of(&model, &cut, &part, back ? PC_PASS_BW : PC_PASS_F);
                grouped_kernels found = count_kernels(&pass);
                assert_int_equal(found.products, back ? 4 : 2);
                assert_int_equal(found.launches, found.products * (fuses ? 1 : 8));
                assert_int_equal(found.pads, is_low && !fuses ? 2 : 0);
                assert_int_equal(found.pad_bytes, found.pads * 2 * 2 * rows * h);
            }
        }
    }
}

/* Mixtral's layer, one sequence of 4,096 tokens on one GPU, in bytes. Norms' inputs are 2 x 2sh; in front of query, key
 * and value are 2sh, and these 2s(h + 2h/4); attention's output is 2sh. The router has 2sh and scores 4sE. Of 2s rows
 * there are their inputs, 4sh, gate and up, 2 x 4sf, and 4sf. */
static void test_memory_of_mixtral(void **state) {
    (void)state;
    const int64_t s = 4096, h = 4096, f = 14336;
    pc_model model = {.layers = 1,
                      .hidden = h,
                      .ffn_hidden = f,
                      .heads = 32,
                      .kv_heads = 8,
                      .head_dim = 128,
                      .vocab = 32000,
                      .vocab_multiple = 1,
                      .positions = PC_POSITIONS_ROTARY,
                      .norm = PC_NORM_RMS,
                      .mlp = PC_MLP_SWIGLU,
                      .attention = PC_ATTENTION_FLASH,
                      .experts = {.num_experts = 8, .topk = 2, .ffn_hidden = f}};
    pc_cut cut = {.tp = 1, .pp = 1, .dp = 1, .chunks = 1, .microbatch_size = 1, .microbatches = 1, .seq_len = s};
    pc_part part = {.layers = 1, .expert_layers = 1};
    pc_part_activation x;
    pc_error error = {0};
    assert_int_equal(pc_part_activations(&model, &cut, &part, (pc_pass_forms){.has_r = false}, &x, &error), PC_OK);
    int64_t attention = 2 * s * h + 2 * s * h + 3 * s * h + 2 * s * h;
    int64_t experts = 2 * s * h + 2 * s * h + 4 * s * 8 + 4 * s * h + 8 * s * f + 4 * s * f;
    assert_int_equal(x.kept, attention + experts);
    part.recompute = PC_RECOMPUTE_MODULES;
    part.recompute_modules = PC_RECOMPUTES_MOE_ACT;
    assert_int_equal(pc_part_activations(&model, &cut, &part, (pc_pass_forms){.has_r = false}, &x, &error), PC_OK);
    assert_int_equal(x.kept, attention + experts - 4 * s * f);
    part.recompute_modules = PC_RECOMPUTES_MOE;
    assert_int_equal(pc_part_activations(&model, &cut, &part, (pc_pass_forms){.has_r = false}, &x, &error), PC_OK);
    assert_int_equal(x.kept, attention + 2 * s * h + 2 * s * h);
}

/* Modules are made again as they were made: operations of R that F has, and BW's the same beside them. */
static void test_modules_again(void **state) {
    (void)state;
    test_random random = {29};
    for (long i = 0; i < test_cases(200, 2000); i++) {
        pc_cut cut;
        pc_model model = random_mixture(&random, &cut);
        pc_part none = {.layers = 1, .expert_layers = 1}, some = none;
        some.recompute = PC_RECOMPUTE_MODULES;
        some.recompute_modules = (int32_t)test_between(&random, 1, PC_RECOMPUTES_ALL);
        pc_operations bw = pass_of(&model, &cut, &none, PC_PASS_BW), more = pass_of(&model, &cut, &some, PC_PASS_BW),
                      r = pass_of(&model, &cut, &some, PC_PASS_R), f = pass_of(&model, &cut, &none, PC_PASS_F);
        pc_operation_sums again = pc_operations_sum(&r), without = pc_operations_sum(&bw),
                          with = pc_operations_sum(&more);
        assert_int_equal(with.flops, without.flops + again.flops);
        assert_int_equal(with.bytes, without.bytes + again.bytes);
        assert_int_equal(again.model_flops, 0);
        assert_true(again.flops <= pc_operations_sum(&f).flops);
        pc_part_activation kept, all;
        pc_error error = {0};
        pc_pass_forms forms = {.has_r = false};
        assert_int_equal(pc_part_activations(&model, &cut, &some, forms, &kept, &error), PC_OK);
        assert_int_equal(pc_part_activations(&model, &cut, &none, forms, &all, &error), PC_OK);
        assert_true(kept.kept <= all.kept && kept.kept + kept.working >= 0);
    }
}

/* Draws of topk experts for each token: the fullest rank over the mean, in a mean of many draws, is within 2%. */
static double drawn_load(test_random *random, int experts, int ranks, int topk, int tokens) {
    static int64_t rows[64];
    int64_t most = 0;
    memset(rows, 0, sizeof rows);
    for (int t = 0; t < tokens; t++) {
        uint64_t taken = 0;
        for (int k = 0; k < topk;) {
            int64_t e = test_between(random, 0, experts - 1);
            if (taken >> e & 1) continue;
            taken |= UINT64_C(1) << e;
            rows[e * ranks / experts]++;
            k++;
        }
    }
    for (int r = 0; r < ranks; r++) most = rows[r] > most ? rows[r] : most;
    return (double)most * ranks / ((double)tokens * topk);
}

static void test_load_by_chance(void **state) {
    (void)state;
    static const int cases[][4] = {{8, 8, 2, 512}, {64, 8, 6, 256}, {64, 64, 8, 512}, {32, 4, 1, 1024}};
    test_random random = {30};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const int *c = cases[i], draws = 60;
        double sum = 0;
        for (int n = 0; n < draws; n++) sum += drawn_load(&random, c[0], c[1], c[2], c[3]);
        pc_expert_spread spread = {.experts = c[0], .ranks = c[1], .topk = c[2], .tokens = c[3]};
        double load = pc_expert_load_by_chance(&spread);
        if (fabs(load / (sum / draws) - 1) > 0.02) fail_msg("case %zu: %g, drawn %g", i, load, sum / draws);
    }
    assert_true(pc_expert_load_by_chance(&(pc_expert_spread){.experts = 8, .ranks = 1, .topk = 2, .tokens = 9}) == 1.0);
}

/* Blom's mean is the quantile ((r - 0.375) / (r + 0.25))^r; of all draws as many stay below a quantile as it says; and
 * to no rank come more than all tokens that it has experts for. */
static void test_quantiles_of_load(void **state) {
    (void)state;
    pc_expert_spread spread = {.experts = 64, .ranks = 8, .topk = 6, .tokens = 256};
    test_random random = {31};
    double mean = pc_expert_load_by_chance(&spread);
    spread.quantile = pow((8 - 0.375) / (8 + 0.25), 8);
    assert_true(fabs(pc_expert_load_by_chance(&spread) / mean - 1) < 1e-12);
    spread.quantile = 0.8;
    int below = 0, draws = 300;
    double load = pc_expert_load_by_chance(&spread);
    for (int n = 0; n < draws; n++) below += drawn_load(&random, 64, 8, 6, 256) <= load;
    assert_true(load > mean && fabs((double)below / draws - 0.8) < 0.1);
    spread.quantile = 1;
    assert_true(pc_expert_load_by_chance(&spread) == 8);
    spread.exponent = 1.2;
    assert_true(pc_expert_load(&spread) == 8);
    spread.quantile = 0;
    mean = pc_expert_load(&spread);
    spread.quantile = 0.99;
    assert_true(pc_expert_load(&spread) > mean);
    spread.quantile = 0.05;
    assert_true(pc_expert_load(&spread) < mean);
}

/* A capacity bounds rows; padded, they are what it says: ceil(1.25 x 4096 x 2 / 8) of each of 8. */
static void test_capacity(void **state) {
    (void)state;
    pc_model model = {.layers = 1,
                      .hidden = 64,
                      .ffn_hidden = 64,
                      .heads = 4,
                      .kv_heads = 4,
                      .head_dim = 16,
                      .vocab = 100,
                      .vocab_multiple = 1,
                      .positions = PC_POSITIONS_ROTARY,
                      .experts = {.num_experts = 8, .topk = 2, .ffn_hidden = 64, .capacity_factor = 1.25}};
    pc_cut cut = {.tp = 1, .pp = 1, .dp = 1, .chunks = 1, .microbatch_size = 1, .microbatches = 1, .seq_len = 4096};
    assert_int_equal(pc_slice_of(&model, &cut).experts.rows, 2 * 4096);
    model.experts.pads_to_capacity = true;
    assert_int_equal(pc_slice_of(&model, &cut).experts.rows, 8 * 1280);
    model.experts = (pc_experts){.num_experts = 8, .topk = 2, .ffn_hidden = 64, .capacity_factor = 0.5};
    assert_int_equal(pc_slice_of(&model, &cut).experts.rows, 8 * 512);
}

static void check_refused(const pc_model *model, const pc_cut *cut, const char *message) {
    pc_error error = {0};
    assert_int_equal(pc_cut_check(model, cut, 1, &error), PC_ERROR_INPUT);
    if (!strstr(error.message, message)) fail_msg("%s", error.message);
}

static void test_refusals(void **state) {
    (void)state;
    test_random random = {31};
    pc_cut cut, other;
    pc_model model = random_mixture(&random, &cut), changed = model;
    changed.experts.topk = changed.experts.num_experts + 1;
    check_refused(&changed, &cut, "moe_router_topk is ");
    changed = model;
    changed.experts.pads_to_capacity = true;
    changed.experts.capacity_factor = 0;
    check_refused(&changed, &cut, "moe_pad_expert_input_to_capacity without a capacity");
    changed = model;
    changed.experts.num_experts = 0;
    check_refused(&changed, &cut, "num_experts is 0 beside other keys");
    other = cut;
    other.ep = (int)model.experts.num_experts + 1;
    check_refused(&model, &other, "does not divide");
    other = cut;
    other.recompute = PC_RECOMPUTE_OP;
    check_refused(&model, &other, "recompute by a policy");
    changed = model;
    changed.mla = (pc_mla){.q_lora_rank = 8};
    check_refused(&changed, &cut, "kv_lora_rank is 0 beside other keys");
    other = cut;
    other.tp = 2;
    other.etp = 1;
    other.sequence_parallel = false;
    if (cut.tp > 1) check_refused(&model, &other, "without sequence parallelism");
}

/* What a recipe asks of every product, of those of experts and latents too: sides in multiples of 16. Nobody's
 * ffn_hidden counts where all layers have experts. */
static void test_sides_in_few_bits(void **state) {
    (void)state;
    pc_model model = {.layers = 1,
                      .hidden = 64,
                      .ffn_hidden = 63,
                      .heads = 4,
                      .kv_heads = 4,
                      .head_dim = 48,
                      .vocab = 100,
                      .vocab_multiple = 1,
                      .positions = PC_POSITIONS_ROTARY,
                      .mla = {32, 32, 32, 16, 32},
                      .experts = {.num_experts = 8, .topk = 2, .ffn_hidden = 64, .shared_ffn_hidden = 64}};
    pc_cut cut = {.tp = 1, .pp = 1, .dp = 8, .chunks = 1, .microbatch_size = 1, .microbatches = 1, .seq_len = 64};
    pc_precision_recipe made;
    pc_error error = {0};
    pc_place place = pc_place_of_user();
    if (pc_precision_file_read("fp8-delayed", &place, &made, NULL, &error)) fail_msg("%s", error.message);
    model.low = made.low;
    if (pc_cut_check(&model, &cut, 1, &error)) fail_msg("%s", error.message);
    pc_model changed = model;
    changed.experts.ffn_hidden = 40;
    check_refused(&changed, &cut, "40 moe_ffn_hidden_size / etp; expected a multiple of 16");
    cut.etp = 8;
    check_refused(&model, &cut, "8 moe_ffn_hidden_size / etp; ");
    cut.etp = 0;
    changed = model;
    changed.experts.shared_ffn_hidden = 72;
    check_refused(&changed, &cut, "72 moe_shared_expert_intermediate_size / tp; ");
    changed = model;
    changed.mla.kv_lora_rank = 24;
    check_refused(&changed, &cut, "24 kv_lora_rank; ");
    changed = model;
    changed.experts.layer_freq = 2;
    changed.layers = 2;
    check_refused(&changed, &cut, "63 ffn_hidden / tp; ");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_model_flops),
        cmocka_unit_test(test_splits),
        cmocka_unit_test(test_parts_hold_the_model),
        cmocka_unit_test(test_grouped_products),
        cmocka_unit_test(test_rows_of_8_bits),
        cmocka_unit_test(test_casts_of_latents),
        cmocka_unit_test(test_kernels_beside_fused_ones),
        cmocka_unit_test(test_padding_by_dispatcher),
        cmocka_unit_test(test_kernels_of_experts),
        cmocka_unit_test(test_memory_of_mixtral),
        cmocka_unit_test(test_modules_again),
        cmocka_unit_test(test_load_by_chance),
        cmocka_unit_test(test_quantiles_of_load),
        cmocka_unit_test(test_capacity),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_sides_in_few_bits),
        cmocka_unit_test(test_tensors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
