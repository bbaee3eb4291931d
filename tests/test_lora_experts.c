/* Adapters of models with experts and latent attention: counts by hand of published layers; parameters, FLOPs
 * and collectives by algebra; and that tokens move as they do without. */
#include "models/workload/lora_base.h"
#include "tests/lora_example.h"

#include <string.h>

/* ---- counts ---- */

static int64_t trained(const pc_model *model, const pc_cut *cut, int64_t layers, int64_t experts) {
    const pc_part part = {.layers = layers, .expert_layers = experts};
    return pc_part_trained(model, cut, &part, false);
}

/* r(in + out) of each matrix, r = 16. */
static void test_counts_by_hand(void **state) {
    (void)state;
    pc_model llama = llama3(8), mixture = mixtral(), latent = deepseek();
    const struct {
        const pc_model *model;
        int target;
        bool has_experts, shares;
        int64_t expected;
    } of[] = {
        {&llama, PC_LORA_QKV, false, true, 16 * (4096 + 6144)},
        {&llama, PC_LORA_PROJ, false, true, 16 * (4096 + 4096)},
        {&llama, PC_LORA_FC1, false, true, 16 * (4096 + 28672)},
        {&llama, PC_LORA_FC2, false, true, 16 * (14336 + 4096)},
        {&mixture, PC_LORA_QKV, true, true, 16 * (4096 + 6144)},
        {&mixture, PC_LORA_PROJ, true, false, 16 * (4096 + 4096)},
        {&mixture, PC_LORA_FC1, true, true, 16 * (4096 + 28672)},
        {&mixture, PC_LORA_FC1, true, false, 8 * 16 * (4096 + 28672)},
        {&mixture, PC_LORA_FC2, true, true, 16 * (14336 + 4096)},
        {&mixture, PC_LORA_FC2, true, false, 8 * 16 * (14336 + 4096)},
        {&mixture, PC_LORA_ALL, true, true, 16 * (10240 + 8192 + 32768 + 18432)},
        {&latent, PC_LORA_Q_DOWN, true, true, 16 * (7168 + 1536)},
        {&latent, PC_LORA_Q_UP, true, true, 16 * (1536 + 128 * 192)},
        {&latent, PC_LORA_KV_DOWN, true, true, 16 * (7168 + 512 + 64)},
        {&latent, PC_LORA_KV_UP, true, true, 16 * (512 + 128 * 256)},
        {&latent, PC_LORA_PROJ, true, true, 16 * (128 * 128 + 7168)},
        {&latent, PC_LORA_FC1, false, true, 16 * (7168 + 2 * 18432)},
        {&latent, PC_LORA_FC2, false, true, 16 * (18432 + 7168)},
        {&latent, PC_LORA_FC1, true, true, 2 * 16 * (7168 + 4096)},
        {&latent, PC_LORA_FC1, true, false, 257 * 16 * (7168 + 4096)},
        {&latent, PC_LORA_FC2, true, false, 257 * 16 * (2048 + 7168)},
    };
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        pc_cut cut = lone_cut();
        cut.lora = (pc_lora){.rank = 16, .targets = of[i].target, .shares_experts = of[i].shares};
        assert_int_equal(trained(of[i].model, &cut, 1, of[i].has_experts), of[i].expected);
    }
}

/* Without a latent of queries there is one matrix from the hidden states (Moonlight, arXiv 2502.16982). */
static void test_queries_without_a_latent(void **state) {
    (void)state;
    pc_model model = deepseek();
    pc_cut cut = lone_cut();
    model.mla.q_lora_rank = 0;
    cut.lora = (pc_lora){.rank = 8, .targets = PC_LORA_Q_PROJ};
    assert_int_equal(trained(&model, &cut, 1, 1), 8 * (7168 + 128 * 192));
}

/* ---- what has an adapter, of a model drawn at random ---- */

typedef struct matrix {
    int32_t target;
    wide inputs, outputs;
    bool is_whole; /* on every rank of TP */
} matrix;

typedef struct matrices {
    matrix list[8];
    int count;
} matrices;

static void put(matrices *all, int target, wide inputs, wide outputs, bool is_whole) {
    all->list[all->count++] = (matrix){target, inputs, outputs, is_whole};
}

static matrices attention_of(const pc_model *model) {
    const pc_mla *mla = &model->mla;
    matrices all = {.count = 0};
    wide h = model->hidden, q = model->heads * model->head_dim, key = model->kv_heads * model->head_dim;
    if (mla->kv_lora_rank == 0) {
        put(&all, PC_LORA_QKV, h, q + 2 * key, false);
        put(&all, PC_LORA_PROJ, q, h, false);
        return all;
    }
    if (mla->q_lora_rank == 0) put(&all, PC_LORA_Q_PROJ, h, q, false);
    if (mla->q_lora_rank > 0) put(&all, PC_LORA_Q_DOWN, h, mla->q_lora_rank, true);
    if (mla->q_lora_rank > 0) put(&all, PC_LORA_Q_UP, mla->q_lora_rank, q, false);
    put(&all, PC_LORA_KV_DOWN, h, mla->kv_lora_rank + mla->qk_rope_head_dim, true);
    put(&all, PC_LORA_KV_UP, mla->kv_lora_rank, model->heads * (mla->qk_nope_head_dim + mla->v_head_dim), false);
    put(&all, PC_LORA_PROJ, model->heads * mla->v_head_dim, h, false);
    return all;
}

static matrices mlp_of(const pc_model *model, wide ffn) {
    matrices all = {.count = 0};
    if (ffn == 0) return all;
    put(&all, PC_LORA_FC1, model->hidden, (pc_mlp_is_gated(model->mlp) ? 2 : 1) * ffn, false);
    put(&all, PC_LORA_FC2, ffn, model->hidden, false);
    return all;
}

/* Of routed experts' adapters. */
static pc_lora of_experts(const pc_model *model, const pc_cut *cut) {
    pc_lora lora = cut->lora;
    if (lora.divides_rank) lora.rank /= (int32_t)model->experts.topk;
    return lora;
}

/* Elements of the adapters, over all ranks of TP: with `ranks` those that are whole count as often. */
static wide elements(const matrices *all, const pc_lora *lora, int ranks) {
    wide sum = 0;
    for (int i = 0; i < all->count; i++)
        if (lora->targets & all->list[i].target)
            sum += (all->list[i].is_whole ? ranks : 1) * lora->rank * (all->list[i].inputs + all->list[i].outputs);
    return sum;
}

/* A mixture, its ranks, and adapters; experts that are a power of two are shared out. */
static pc_model draw(test_random *random, pc_cut *cut) {
    pc_model model;
    pc_error error = {0};
    do {
        model = random_model(random);
        *cut = random_cut(random, &model);
        random_experts(random, &model, cut);
    } while (model.kv_heads % cut->tp);
    for (cut->ep = 1; 2 * cut->ep <= model.experts.num_experts && test_between(random, 0, 2);) cut->ep *= 2;
    cut->dp = cut->ep * (int)test_between(random, 1, 2);
    cut->lora = (pc_lora){.rank = (int32_t)(8 * test_between(random, 1, 8)),
                          .targets = (int32_t)test_between(random, 1, PC_LORA_ALL),
                          .dropout = test_between(random, 0, 1) ? 0.1 : 0,
                          .shares_experts = test_between(random, 0, 1),
                          .divides_rank = test_between(random, 0, 1)};
    if (cut->lora.divides_rank) cut->lora.rank *= (int32_t)model.experts.topk;
    int32_t latents = PC_LORA_Q_PROJ | PC_LORA_Q_DOWN | PC_LORA_Q_UP | PC_LORA_KV_DOWN | PC_LORA_KV_UP;
    int32_t no_queries = model.mla.q_lora_rank > 0 ? PC_LORA_Q_PROJ : PC_LORA_Q_DOWN | PC_LORA_Q_UP;
    cut->lora.targets &= model.mla.kv_lora_rank > 0 ? ~((int32_t)PC_LORA_QKV | no_queries) : ~latents;
    if (cut->lora.targets == 0) cut->lora.targets = PC_LORA_FC2;
    if (pc_cut_check(&model, cut, 1, &error)) fail_msg("%s", error.message);
    return model;
}

/* Adapters add what is trained. Those of routed experts are on etp ranks, and each expert's own on one of ep more. */
static void test_parameters(void **state) {
    (void)state;
    test_random random = {41};
    long shared = 0, cut_over = 0;
    for (long i = 0; i < test_cases(400, 4000); i++) {
        pc_cut cut, plain;
        pc_model model = draw(&random, &cut);
        const pc_lora *lora = &cut.lora, routed_lora = of_experts(&model, &cut);
        pc_part part = pc_cut_part(&model, &cut, 1, 0);
        plain = cut;
        plain.lora = (pc_lora){0};
        matrices attention = attention_of(&model), dense = mlp_of(&model, model.ffn_hidden),
                 routed = mlp_of(&model, model.experts.ffn_hidden),
                 of_shared = mlp_of(&model, model.experts.shared_ffn_hidden);
        wide all = pc_part_trained(&model, &cut, &part, false), experts = pc_part_experts_trained(&model, &cut, &part);
        assert_wide_equal(
            pc_part_parameters(&model, &cut, &part, false) - pc_part_parameters(&model, &plain, &part, false), all);
        assert_wide_equal(pc_part_experts(&model, &cut, &part) - pc_part_experts(&model, &plain, &part), experts);
        assert_wide_equal(cut.tp * (all - experts),
                          part.layers * elements(&attention, lora, cut.tp) +
                              (part.layers - part.expert_layers) * elements(&dense, lora, cut.tp) +
                              part.expert_layers * elements(&of_shared, lora, cut.tp));
        wide of = lora->shares_experts ? cut.ep : model.experts.num_experts;
        assert_wide_equal(pc_cut_etp(&cut) * cut.ep * experts,
                          part.expert_layers * of * elements(&routed, &routed_lora, 1));
        assert_wide_equal(pc_part_experts_trained(&model, &plain, &part), pc_part_experts(&model, &plain, &part));
        shared += lora->shares_experts && cut.ep > 1;
        cut_over += pc_cut_etp(&cut) > 1 && experts > 0;
    }
    assert_true(test_saw(shared, 20) && test_saw(cut_over, 20));
}

/* ---- FLOPs ---- */

/* Of a token, and of topk experts that it goes to. */
static wide active(const pc_model *model, const pc_cut *cut) {
    pc_part part = pc_cut_part(model, cut, 1, 0);
    const pc_lora lora = of_experts(model, cut);
    matrices attention = attention_of(model), dense = mlp_of(model, model->ffn_hidden),
             routed = mlp_of(model, model->experts.ffn_hidden),
             shared = mlp_of(model, model->experts.shared_ffn_hidden);
    return part.layers * elements(&attention, &cut->lora, 1) +
           (part.layers - part.expert_layers) * elements(&dense, &cut->lora, 1) +
           part.expert_layers * (elements(&shared, &cut->lora, 1) + model->experts.topk * elements(&routed, &lora, 1));
}

/* 2 FLOPs a token and element of A or B in F, B and W each. Without, W has all other matrices, and the head: frozen, it
 * has none of them, and the sum is the closed form's. */
static void test_flops(void **state) {
    (void)state;
    test_random random = {42};
    for (long i = 0; i < test_cases(400, 4000); i++) {
        pc_cut cut, plain;
        pc_model model = draw(&random, &cut);
        pc_part part = pc_cut_part(&model, &cut, 1, 0);
        plain = cut;
        plain.lora = (pc_lora){0};
        wide t = cut.tp, tokens = cut.seq_len * cut.microbatch_size, of = 2 * tokens * active(&model, &cut), sum = 0;
        static const pc_pass_kind kinds[] = {PC_PASS_F, PC_PASS_B, PC_PASS_W};
        for (int k = 0; k < 3; k++) {
            wide with = t * sums_of(&model, &cut, &part, kinds[k], false).model_flops,
                 without = t * sums_of(&model, &plain, &part, kinds[k], false).model_flops;
            assert_wide_equal(with, of + (k < 2 ? without : 0));
            sum += with;
        }
        double closed = pc_cut_flops_per_sequence(&model, &cut) * (double)cut.microbatch_size,
               off = (double)sum / closed;
        assert_true(off > 1 - 1e-12 && off < 1 + 1e-12);
        wide both =
            sums_of(&model, &cut, &part, PC_PASS_B, false).bytes + sums_of(&model, &cut, &part, PC_PASS_W, false).bytes;
        assert_wide_equal(both, sums_of(&model, &cut, &part, PC_PASS_BW, false).bytes);
    }
}

/* ---- what stays as it was ---- */

static void fill(const pc_model *model, const pc_cut *cut, const pc_part *part, pc_pass_kind kind,
                 pc_operations *made) {
    pc_error error = {0};
    if (pc_pass_operations(model, cut, part, kind, false, made, &error)) fail_msg("%s", error.message);
}

static bool is_of_adapter(const pc_operation *x) {
    return !strncmp(x->name, "lora", 4);
}

static void check_same(const pc_operation *x, const pc_operation *y) {
    assert_string_equal(x->name, y->name);
    assert_true(x->kind == y->kind && x->group == y->group && x->repeat == y->repeat && x->launches == y->launches);
    assert_true(x->m == y->m && x->n == y->n && x->k == y->k && x->rows == y->rows && x->batch == y->batch);
    assert_true(x->flops == y->flops && x->bytes == y->bytes && x->size_bytes == y->size_bytes);
}

/* F without kernels of adapters is the plain one, exchanges of tokens among it. B's products and exchanges are, too; W
 * has adapters' products alone, two of each. */
static void test_tokens_move_as_before(void **state) {
    (void)state;
    static pc_operations with, without;
    test_random random = {43};
    long exchanges = 0;
    for (long i = 0; i < test_cases(200, 2000); i++) {
        pc_cut cut, plain;
        pc_model model = draw(&random, &cut);
        pc_part part = pc_cut_part(&model, &cut, 1, 0);
        plain = cut;
        plain.lora = (pc_lora){0};
        for (int k = 0; k < 2; k++) {
            int at = 0;
            fill(&model, &cut, &part, k ? PC_PASS_B : PC_PASS_F, &with);
            fill(&model, &plain, &part, k ? PC_PASS_B : PC_PASS_F, &without);
            for (int n = 0; n < with.count; n++) {
                const pc_operation *x = &with.list[n];
                bool is_kernel = x->kind == PC_OPERATION_ELEMENTWISE || x->kind == PC_OPERATION_NORM;
                if (is_of_adapter(x) || (k && is_kernel)) continue;
                while (k && (without.list[at].kind == PC_OPERATION_ELEMENTWISE ||
                             without.list[at].kind == PC_OPERATION_NORM))
                    at++;
                check_same(x, &without.list[at++]);
                exchanges += x->kind == PC_OPERATION_DISPATCH || x->kind == PC_OPERATION_COMBINE;
            }
        }
        fill(&model, &cut, &part, PC_PASS_W, &with);
        for (int n = 0; n < with.count; n++) assert_true(is_of_adapter(&with.list[n]));
        assert_int_equal(with.count % 2, 0);
    }
    assert_true(test_saw(exchanges, 100));
}

/* ---- collectives ---- */

static int64_t sent(const pc_model *model, const pc_cut *cut, pc_pass_kind kind, pc_operation_group group) {
    const pc_part layer = {.layers = 1, .expert_layers = 1};
    static pc_operations made;
    int64_t sum = 0;
    fill(model, cut, &layer, kind, &made);
    for (int n = 0; n < made.count; n++)
        if (is_of_adapter(&made.list[n]) && made.list[n].size_bytes > 0 && made.list[n].group == group)
            sum += made.list[n].size_bytes;
    return sum;
}

/* Two ranks cut each expert, whose rows are all tokens' twice. A of the first matrix is gathered, 2Rr, of the second
 * summed, 2Rr, and B's output gathered, 2Rh; back, what B reads is summed, 2Rr, and nothing is gathered that the
 * dispatch has brought. With etp 1 there is nothing of it. Shared experts: as a dense MLP. */
static void test_collectives_of_experts(void **state) {
    (void)state;
    pc_model model = mixtral();
    pc_cut cut = lone_cut();
    const int64_t r = 16, h = 4096, tokens = 8192, rows = 2 * tokens;
    cut.tp = 2;
    cut.sequence_parallel = true;
    cut.lora = (pc_lora){.rank = (int32_t)r, .targets = PC_LORA_FC1, .shares_experts = true};
    for (int shares = 0; shares < 2; shares++) {
        cut.lora.shares_experts = shares;
        cut.lora.targets = PC_LORA_FC1;
        assert_int_equal(sent(&model, &cut, PC_PASS_F, PC_GROUP_ETP), 2 * rows * r);
        assert_int_equal(sent(&model, &cut, PC_PASS_B, PC_GROUP_ETP), 2 * rows * r);
        cut.lora.targets = PC_LORA_FC2;
        assert_int_equal(sent(&model, &cut, PC_PASS_F, PC_GROUP_ETP), 2 * rows * (r + h));
        assert_int_equal(sent(&model, &cut, PC_PASS_B, PC_GROUP_ETP), 2 * rows * r);
        assert_int_equal(sent(&model, &cut, PC_PASS_W, PC_GROUP_ETP), 0);
        assert_int_equal(sent(&model, &cut, PC_PASS_F, PC_GROUP_TP), 0);
    }
    cut.etp = 1;
    cut.ep = 2;
    cut.lora.targets = PC_LORA_FC1 | PC_LORA_FC2;
    assert_int_equal(sent(&model, &cut, PC_PASS_F, PC_GROUP_ETP), 0);
    model.experts.shared_ffn_hidden = 2048;
    assert_int_equal(sent(&model, &cut, PC_PASS_F, PC_GROUP_TP), 2 * tokens * (2 * r + h));
    assert_int_equal(sent(&model, &cut, PC_PASS_B, PC_GROUP_TP), 2 * tokens * (2 * r + h));
}

/* Matrices that go down to latents are whole, and send nothing; those that go up are columns. */
static void test_collectives_of_latents(void **state) {
    (void)state;
    pc_model model = deepseek();
    pc_cut cut = lone_cut();
    cut.tp = 2;
    cut.etp = 1;
    cut.sequence_parallel = true;
    cut.lora = (pc_lora){.rank = 16, .targets = PC_LORA_Q_DOWN | PC_LORA_KV_DOWN};
    for (int kind = PC_PASS_F; kind <= PC_PASS_W; kind++)
        assert_int_equal(sent(&model, &cut, (pc_pass_kind)kind, PC_GROUP_TP), 0);
    cut.lora.targets = PC_LORA_Q_UP | PC_LORA_KV_UP;
    assert_int_equal(sent(&model, &cut, PC_PASS_F, PC_GROUP_TP), 2 * 2 * 8192 * 16);
    assert_int_equal(sent(&model, &cut, PC_PASS_B, PC_GROUP_TP), 2 * 2 * 8192 * 16);
}

/* One product for all experts where they share an adapter, or torch's grouped one; and, each with its own, a copy that
 * joins their rows. */
static void test_kernels_of_experts(void **state) {
    (void)state;
    static pc_operations made;
    pc_model model = mixtral();
    pc_cut cut = lone_cut();
    const pc_part layer = {.layers = 1, .expert_layers = 1};
    const int64_t rows = 2 * 8192;
    cut.lora = (pc_lora){.rank = 16, .targets = PC_LORA_FC1};
    for (int shares = 0; shares < 2; shares++) {
        int64_t copied = 0, products = 0;
        cut.lora.shares_experts = shares;
        fill(&model, &cut, &layer, PC_PASS_F, &made);
        for (int n = 0; n < made.count; n++) {
            const pc_operation *x = &made.list[n];
            if (!is_of_adapter(x)) continue;
            assert_int_equal(x->launches, 1);
            if (x->function && !strcmp(x->function, "copy")) copied += x->bytes;
            if (x->kind != (shares ? PC_OPERATION_GEMM : PC_OPERATION_GROUPED_GEMM)) continue;
            assert_int_equal(x->flops, 2 * rows * 16 * (products++ ? 28672 : 4096));
        }
        assert_int_equal(products, 2);
        assert_int_equal(copied, shares ? 0 : 4 * rows * 4096);
    }
}

/* ---- few bits ---- */

static int64_t norm_bytes(const pc_model *model, const pc_cut *cut) {
    const pc_part layer = {.layers = 1, .expert_layers = 1};
    static pc_operations made;
    fill(model, cut, &layer, PC_PASS_F, &made);
    for (int n = 0; n < made.count; n++)
        if (made.list[n].kind == PC_OPERATION_NORM) return made.list[n].bytes;
    return 0;
}

/* A norm that casts reads 2 bytes and writes one, and no 16 bits unless an adapter of either matrix behind it reads
 * them. */
static void test_hidden_in_16_bits(void **state) {
    (void)state;
    static const int targets[] = {PC_LORA_Q_DOWN, PC_LORA_KV_DOWN, PC_LORA_Q_UP};
    pc_model model = deepseek();
    pc_cut cut = lone_cut();
    model.low = (pc_low_precision){.name = "low",
                                   .product = {PC_PRODUCT_FP8, PC_PRODUCT_FP8, PC_PRODUCT_FP8},
                                   .copies = 1,
                                   .keeps_inputs = true,
                                   .fuses_norm = true};
    for (int i = 0; i < 3; i++) {
        cut.lora = (pc_lora){.rank = 16, .targets = targets[i]};
        assert_int_equal(norm_bytes(&model, &cut), (i < 2 ? 5 : 3) * 8192 * 7168);
    }
}

/* ---- the longest list ---- */

/* B of a part with all that a layer may have, in two precisions, dense and with experts, all of it recomputed. */
static void test_longest_list(void **state) {
    (void)state;
    static pc_operations made;
    pc_model model = deepseek();
    pc_cut cut = lone_cut();
    pc_part part = {.layers = 8,
                    .expert_layers = 4,
                    .wide_layers = 4,
                    .mtp_layers = 1,
                    .mtp_heads = 1,
                    .has_embedding = true,
                    .has_head = true,
                    .recompute = PC_RECOMPUTE_FULL};
    model.norm_place = PC_NORM_SANDWICH;
    model.has_dropout = true;
    model.experts.has_shared_gate = model.experts.has_router_bias = true;
    model.experts.activation_clamp = 7;
    model.low = (pc_low_precision){.name = "low",
                                   .product = {PC_PRODUCT_FP8, PC_PRODUCT_FP8, PC_PRODUCT_FP8},
                                   .weights = PC_LOW_WEIGHTS_EACH,
                                   .copies = 2,
                                   .scaling = PC_SCALING_CURRENT,
                                   .keeps_inputs = true};
    cut.tp = 2;
    cut.dp = 4;
    cut.ep = 2;
    cut.etp = 2;
    cut.sequence_parallel = true;
    cut.lora = (pc_lora){.rank = 16, .targets = PC_LORA_ALL, .dropout = 0.1};
    cut.kernels = PC_KERNELS_EAGER;
    cut.gradient_accumulation = PC_GRADIENT_ACCUMULATION_SEPARATE;
    cut.microbatches = 4;
    model.attention = PC_ATTENTION_MATERIALISED;
    model.attn_logit_softcapping = 50;
    part.local_layers = 4;
    fill(&model, &cut, &part, PC_PASS_BW, &made);
    print_message("%d operations\n", made.count);
    assert_true(made.count < PC_OPERATIONS_MAX);
}

/* ---- held in 4 bits ---- */

/* Each expert's matrix is made 16 bits by a kernel of its own; the router stays in 16. One matrix is there at once. */
static void test_nf4(void **state) {
    (void)state;
    static pc_operations made;
    pc_model model = mixtral();
    pc_cut cut = lone_cut();
    const pc_part layer = {.layers = 1, .expert_layers = 1};
    const int64_t up = 8 * 4096 * 28672;
    int casts = 0;
    cut.lora = (pc_lora){.rank = 16, .targets = PC_LORA_QKV, .base = PC_LORA_BASE_NF4};
    fill(&model, &cut, &layer, PC_PASS_F, &made);
    for (int n = 0; n < made.count; n++) {
        const pc_operation *x = &made.list[n];
        if (x->kind != PC_OPERATION_ELEMENTWISE || !x->function || strcmp(x->function, "cast") != 0) continue;
        casts++;
        if (strcmp(x->name, "expert_up") != 0) continue;
        assert_int_equal(x->launches, 8);
        assert_int_equal(x->bytes, pc_nf4_bytes(up) + 2 * up);
    }
    assert_int_equal(casts, 4);
    assert_int_equal(pc_lora_base_workspace(&model, &cut), 2 * 4096 * 14336);
    model = deepseek();
    assert_int_equal(pc_lora_base_workspace(&model, &cut), 2 * 7168 * 18432);
    model.experts.first_dense = 0;
    assert_int_equal(pc_lora_base_workspace(&model, &cut), 2 * 7168 * 16384);
}

/* ---- what cannot be ---- */

static void check_refused(const pc_model *model, const pc_cut *cut, const char *expected) {
    pc_error error = {0};
    assert_int_equal(pc_cut_check(model, cut, 1, &error), PC_ERROR_INPUT);
    if (!strstr(error.message, expected)) fail_msg("'%s' not in '%s'", expected, error.message);
}

static void test_refusals(void **state) {
    (void)state;
    pc_model model = mixtral(), latent = deepseek(), dense = llama3(8);
    pc_cut cut = lone_cut();
    pc_error error = {0};
    cut.dp = 8;
    cut.etp = 4;
    cut.lora = (pc_lora){.rank = 6, .targets = PC_LORA_FC1};
    check_refused(&model, &cut, "etp 4 does not divide lora.rank 6 and hidden 4096; expected a divisor of both");
    cut.lora = (pc_lora){.rank = 4, .targets = PC_LORA_FC1, .divides_rank = true};
    check_refused(&model, &cut,
                  "lora.normalize_moe_lora with lora.rank 4, moe_router_topk 2 and etp 4; expected a rank");
    cut.lora.targets = PC_LORA_QKV;
    if (pc_cut_check(&model, &cut, 1, &error)) fail_msg("%s", error.message);
    cut.etp = 1;
    cut.ep = 8;
    cut.dispatcher = PC_DISPATCHER_DEEPEP;
    cut.fp8_dispatch = true;
    if (pc_cut_check(&model, &cut, 1, &error)) fail_msg("%s", error.message);
    cut.lora.targets = PC_LORA_FC2;
    check_refused(&model, &cut, "moe_fp8_dispatch with adapters of experts, which read 16 bits; expected");
    cut = lone_cut();
    cut.lora = (pc_lora){.rank = 16, .targets = PC_LORA_QKV};
    check_refused(&latent, &cut, "expected of it linear_q_down_proj, linear_q_up_proj, linear_kv_down_proj, ");
    latent.mla.q_lora_rank = 0;
    cut.lora.targets = PC_LORA_Q_DOWN;
    check_refused(&latent, &cut, "expected of it linear_q_proj, linear_kv_down_proj, ");
    check_refused(&dense, &cut, "expected of it linear_qkv and linear_proj");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counts_by_hand),
        cmocka_unit_test(test_queries_without_a_latent),
        cmocka_unit_test(test_parameters),
        cmocka_unit_test(test_flops),
        cmocka_unit_test(test_tokens_move_as_before),
        cmocka_unit_test(test_collectives_of_experts),
        cmocka_unit_test(test_collectives_of_latents),
        cmocka_unit_test(test_kernels_of_experts),
        cmocka_unit_test(test_hidden_in_16_bits),
        cmocka_unit_test(test_longest_list),
        cmocka_unit_test(test_nf4),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
