/* Context parallelism: what attention over a cut sequence does and sends, worked out by hand, and what its ranks sum up
 * to. */
#include "models/machine/ranks.h"
#include "tests/plain_machine.h"
#include "tests/random_model.h"

#include <string.h>

/* Llama 3 8B: 32 heads of 128, 8 of keys; s = 8192, b = 2. */
static pc_cut context_cut(int tp, int cp, pc_cp_comm comm) {
    return (pc_cut){.tp = tp,
                    .pp = 1,
                    .dp = 1,
                    .cp = cp,
                    .cp_comm = comm,
                    .chunks = 1,
                    .sequence_parallel = tp > 1,
                    .microbatch_size = 2,
                    .microbatches = 1,
                    .seq_len = 8192};
}

static pc_operations list_of(const pc_model *model, const pc_cut *cut, pc_pass_kind kind) {
    pc_part part = whole_part(model, cut);
    pc_operations list;
    pc_error error = {0};
    if (pc_cut_check(model, cut, 1, &error)) fail_msg("%s", error.message);
    if (pc_pass_operations(model, cut, &part, kind, false, &list, &error)) fail_msg("%s", error.message);
    return list;
}

/* What of a list is attention, or a collective of context parallelism. */
typedef struct step {
    pc_operation_kind kind;
    int64_t layers, m, n, bytes; /* repeat / 32; of attention m, n; of a collective its size */
} step;

static void check_steps(const pc_cut *cut, pc_pass_kind kind, const step *expected, int count) {
    pc_model model = llama3(8);
    pc_operations list = list_of(&model, cut, kind);
    int at = 0;
    for (int i = 0; i < list.count; i++) {
        const pc_operation *x = &list.list[i];
        if (x->kind != PC_OPERATION_ATTENTION && x->group == PC_GROUP_TP) continue;
        assert_true(at < count && expected);
        assert_int_equal(x->kind, expected[at].kind);
        assert_int_equal(x->repeat, 32 * expected[at].layers);
        if (x->kind == PC_OPERATION_ATTENTION) assert_true(x->m == expected[at].m && x->n == expected[at].n);
        assert_int_equal(x->size_bytes, expected[at].bytes);
        at++;
    }
    assert_int_equal(at, count);
}

#define CHECK_STEPS(cut, kind, steps) check_steps(cut, kind, steps, (int)(sizeof(steps) / sizeof *(steps)))

/* Of 4 ranks each has 2048 x 2 tokens, whose keys are 1024 columns of 2 bytes: 8 MiB, as are the values. */
enum { KEYS = 2048 * 2 * 1024 * 2, QUERIES = 4 * KEYS };

static void test_ring(void **state) {
    (void)state;
    pc_cut cut = context_cut(1, 4, PC_CP_P2P);
    static const step forward[] = {{PC_OPERATION_RING, 1, 0, 0, 2 * KEYS},
                                   {PC_OPERATION_ATTENTION, 1, 2048, 2048, 0},
                                   {PC_OPERATION_RING, 2, 0, 0, 2 * KEYS},
                                   {PC_OPERATION_ATTENTION, 2, 1024, 2048, 0},
                                   {PC_OPERATION_ATTENTION, 1, 1024, 2048, 0}};
    static const step backward[] = {{PC_OPERATION_RING, 1, 0, 0, 2 * KEYS}, {PC_OPERATION_ATTENTION, 1, 1024, 2048, 0},
                                    {PC_OPERATION_RING, 2, 0, 0, 4 * KEYS}, {PC_OPERATION_ATTENTION, 2, 1024, 2048, 0},
                                    {PC_OPERATION_RING, 1, 0, 0, 2 * KEYS}, {PC_OPERATION_ATTENTION, 1, 2048, 2048, 0}};
    CHECK_STEPS(&cut, PC_PASS_F, forward);
    CHECK_STEPS(&cut, PC_PASS_B, backward);
    CHECK_STEPS(&cut, PC_PASS_BW, backward);
    check_steps(&cut, PC_PASS_W, NULL, 0);
}

/* Of two ranks each has one step but its own, and nothing is left between. */
static void test_ring_of_two(void **state) {
    (void)state;
    pc_cut cut = context_cut(1, 2, PC_CP_P2P);
    static const step forward[] = {{PC_OPERATION_RING, 1, 0, 0, 4 * KEYS},
                                   {PC_OPERATION_ATTENTION, 1, 4096, 4096, 0},
                                   {PC_OPERATION_ATTENTION, 1, 2048, 4096, 0}};
    static const step backward[] = {{PC_OPERATION_RING, 1, 0, 0, 4 * KEYS},
                                    {PC_OPERATION_ATTENTION, 1, 2048, 4096, 0},
                                    {PC_OPERATION_RING, 1, 0, 0, 4 * KEYS},
                                    {PC_OPERATION_ATTENTION, 1, 4096, 4096, 0}};
    CHECK_STEPS(&cut, PC_PASS_F, forward);
    CHECK_STEPS(&cut, PC_PASS_BW, backward);
}

static void test_gathered(void **state) {
    (void)state;
    pc_cut cut = context_cut(1, 4, PC_CP_ALL_GATHER);
    static const step both[] = {{PC_OPERATION_ALL_GATHER, 1, 0, 0, 4 * KEYS},
                                {PC_OPERATION_ALL_GATHER, 1, 0, 0, 4 * KEYS},
                                {PC_OPERATION_ATTENTION, 1, 2048, 8192, 0},
                                {PC_OPERATION_REDUCE_SCATTER, 1, 0, 0, 4 * KEYS},
                                {PC_OPERATION_REDUCE_SCATTER, 1, 0, 0, 4 * KEYS}};
    check_steps(&cut, PC_PASS_F, both, 3);
    check_steps(&cut, PC_PASS_B, both, 5);
}

/* Queries, keys, values there, outputs back; and the other way round. */
static void test_exchanged(void **state) {
    (void)state;
    pc_cut cut = context_cut(1, 4, PC_CP_A2A);
    static const step forward[] = {{PC_OPERATION_ALL_TO_ALL, 1, 0, 0, QUERIES},
                                   {PC_OPERATION_ALL_TO_ALL, 1, 0, 0, KEYS},
                                   {PC_OPERATION_ALL_TO_ALL, 1, 0, 0, KEYS},
                                   {PC_OPERATION_ATTENTION, 1, 8192, 8192, 0},
                                   {PC_OPERATION_ALL_TO_ALL, 1, 0, 0, QUERIES}};
    static const step backward[] = {{PC_OPERATION_ALL_TO_ALL, 1, 0, 0, QUERIES},
                                    {PC_OPERATION_ATTENTION, 1, 8192, 8192, 0},
                                    {PC_OPERATION_ALL_TO_ALL, 1, 0, 0, QUERIES},
                                    {PC_OPERATION_ALL_TO_ALL, 1, 0, 0, KEYS},
                                    {PC_OPERATION_ALL_TO_ALL, 1, 0, 0, KEYS}};
    CHECK_STEPS(&cut, PC_PASS_F, forward);
    CHECK_STEPS(&cut, PC_PASS_B, backward);
}

/* Heads among two neighbours, and a ring of two rows with half the heads and twice the tokens. */
static void test_nested(void **state) {
    (void)state;
    pc_cut cut = context_cut(1, 4, PC_CP_A2A_P2P);
    cut.cp_a2a = 2;
    static const step forward[] = {
        {PC_OPERATION_ALL_TO_ALL, 1, 0, 0, QUERIES}, {PC_OPERATION_ALL_TO_ALL, 1, 0, 0, KEYS},
        {PC_OPERATION_ALL_TO_ALL, 1, 0, 0, KEYS},    {PC_OPERATION_RING, 1, 0, 0, 2 * KEYS},
        {PC_OPERATION_ATTENTION, 1, 4096, 4096, 0},  {PC_OPERATION_ATTENTION, 1, 2048, 4096, 0},
        {PC_OPERATION_ALL_TO_ALL, 1, 0, 0, QUERIES}};
    CHECK_STEPS(&cut, PC_PASS_F, forward);
    cut.cp_a2a = 0;
    cut.cp = 16;
    pc_model model = llama3(8);
    assert_int_equal(pc_cut_exchange(&model, &cut), 8);
    assert_int_equal(pc_cut_most_exchange(&model, &cut, 7), 4);
}

/* ---- any model, any cut ---- */

static pc_cut random_context(test_random *random, pc_model *model, pc_error *error) {
    model->attention = PC_ATTENTION_FLASH;
    pc_cut cut = random_cut(random, model);
    cut.cp = 1 << test_between(random, 1, 3);
    cut.cp_comm = (pc_cp_comm)test_between(random, 0, 3);
    cut.cp_a2a = test_between(random, 0, 1) ? 0 : 1 << test_between(random, 0, 2);
    cut.seq_len = 128 * test_between(random, 1, 64);
    if (pc_cut_check(model, &cut, 1, error)) cut.cp_comm = PC_CP_P2P, cut.cp_a2a = 0;
    assert_int_equal(pc_cut_check(model, &cut, 1, error), PC_OK);
    return cut;
}

/* All ranks do what one would, and B and W what BW does; nothing else than attention asks for ranks of the group. */
static void test_ranks_add_up(void **state) {
    (void)state;
    static const pc_pass_kind kinds[] = {PC_PASS_F, PC_PASS_B, PC_PASS_W, PC_PASS_BW};
    test_random random = {61};
    for (long i = 0; i < test_cases(300, 3000); i++) {
        pc_model model = random_model(&random);
        pc_cut cut = random_context(&random, &model, NULL), one = cut;
        pc_part part = whole_part(&model, &cut);
        pc_operation_sums sums[4];
        one.cp = 1;
        for (int k = 0; k < 4; k++) {
            sums[k] = sums_of(&model, &cut, &part, kinds[k], false);
            pc_operation_sums whole = sums_of(&model, &one, &part, kinds[k], false);
            assert_wide_equal((wide)cut.cp * sums[k].flops, whole.flops);
            assert_wide_equal((wide)cut.cp * sums[k].model_flops, whole.model_flops);
        }
        assert_wide_equal((wide)sums[1].flops + sums[2].flops, sums[3].flops);
        assert_wide_equal((wide)sums[1].bytes + sums[2].bytes, sums[3].bytes);
        assert_wide_equal((wide)sums[1].collective_bytes + sums[2].collective_bytes, sums[3].collective_bytes);
    }
}

/* A rank keeps what it would of a sequence of its length; it holds the same parameters. What it works with is more. */
static void test_memory(void **state) {
    (void)state;
    static const pc_pass_forms forms = {0};
    test_random random = {62};
    for (long i = 0; i < test_cases(300, 3000); i++) {
        pc_model model = random_model(&random);
        pc_cut cut = random_context(&random, &model, NULL), shorter = cut;
        pc_part part = whole_part(&model, &cut);
        pc_part_activation x, y;
        shorter.seq_len /= cut.cp;
        shorter.cp = 0;
        assert_int_equal(pc_part_activations(&model, &cut, &part, forms, &x, NULL), PC_OK);
        assert_int_equal(pc_part_activations(&model, &shorter, &part, forms, &y, NULL), PC_OK);
        assert_true(x.taken == y.taken && x.kept == y.kept && x.b_frees == y.b_frees);
        int64_t kv = model.kv_heads < cut.tp ? 1 : model.kv_heads / cut.tp, exchange = pc_cut_exchange(&model, &cut);
        int64_t tokens = cut.seq_len / cut.cp * cut.microbatch_size, ring = cut.cp / exchange;
        int64_t keys = 2 * tokens * kv * model.head_dim, queries = 2 * tokens * (model.heads / cut.tp) * model.head_dim;
        int64_t buffers = ring * (2 * keys + queries) > 8 * keys ? ring * (2 * keys + queries) : 8 * keys;
        if (ring == 1) buffers = 0;
        if (cut.cp_comm == PC_CP_ALL_GATHER) buffers = 4 * cut.cp * keys;
        assert_int_equal(x.working - y.working, buffers);
        assert_int_equal(pc_boundary_bytes(&model, &cut, false), pc_boundary_bytes(&model, &shorter, false));
        assert_int_equal(pc_part_parameters(&model, &cut, &part, false),
                         pc_part_parameters(&model, &shorter, &part, false));
    }
}

/* Twelve bytes of optimizer a parameter over 2 x 4 ranks. */
static void test_state_is_shared(void **state) {
    (void)state;
    pc_cut cut = context_cut(1, 4, PC_CP_P2P);
    cut.dp = 2;
    cut.zero = 1;
    assert_int_equal(pc_state_of(&cut, 800).optimizer, 1200);
    assert_int_equal(pc_state_of(&cut, 800).gradients, 3200);
    cut.zero = 3;
    assert_int_equal(pc_state_of(&cut, 800).parameters, 200);
}

/* ---- what cannot be ---- */

static void check_refused(const pc_cut *cut, const pc_model *model, const char *expected) {
    pc_error error = {0};
    assert_int_equal(pc_cut_check(model, cut, 1, &error), PC_ERROR_INPUT);
    assert_string_equal(error.message, expected);
}

static void test_refusals(void **state) {
    (void)state;
    pc_model model = llama3(8), kept = model;
    pc_cut cut = context_cut(4, 4, PC_CP_A2A);
    check_refused(&cut, &model,
                  "cp with cp_comm_type a2a, 4 does not divide 8 heads and 2 kv_heads of a rank; expected a divisor of "
                  "both, or cp_comm_type p2p or a2a+p2p");
    cut.cp_comm = PC_CP_A2A_P2P;
    cut.cp_a2a = 4;
    check_refused(&cut, &model,
                  "cp_a2a 4 does not divide 8 heads and 2 kv_heads of a rank; expected a divisor of both, or "
                  "cp_comm_type p2p");
    cut.cp_a2a = 3;
    check_refused(&cut, &model, "cp_a2a 3 does not divide cp 4; expected a divisor");
    cut.cp_comm = PC_CP_P2P;
    cut.seq_len = 8196;
    check_refused(&cut, &model, "cp 4 cuts seq_len 8196 into 2 x cp pieces; expected a multiple of 8");
    cut.seq_len = 8200;
    check_refused(&cut, &model,
                  "tp 4 does not divide seq_len / cp 2050; expected a divisor, for sequence parallelism cuts it");
    kept.attention = PC_ATTENTION_MATERIALISED;
    cut = context_cut(1, 2, PC_CP_P2P);
    check_refused(&cut, &kept, "cp 2 with attention that keeps its scores; expected attention: flash, or cp 1");
    cut.cp = -1;
    check_refused(&cut, &model, "cp -1; expected at least 1");
}

/* ---- places ---- */

static pc_ranks placed(const pc_machine *machine, const char *text, pc_rank_counts counts) {
    pc_rank_order order;
    pc_ranks ranks;
    assert_int_equal(pc_rank_order_parse(text, &order, NULL), PC_OK);
    assert_int_equal(pc_ranks_place(machine, order, counts, &ranks, NULL), PC_OK);
    return ranks;
}

static void test_orders(void **state) {
    (void)state;
    static const char *const written[][2] = {{"tp-cp-dp-pp", "tp-dp-pp"},
                                             {"tp-dp-cp-pp", "tp-dp-cp-pp"},
                                             {"cp-tp-dp-pp", "cp-tp-dp-pp"},
                                             {"pp-dp-tp", "pp-dp-tp"}};
    static const char *const bad[] = {"cp-dp-pp", "tp-cp-dp", "tp-cp-cp-pp", "tp-cp-dp-pp-", "tp-cp-dp-xp"};
    pc_rank_order order;
    char text[16];
    for (int i = 0; i < 4; i++) {
        assert_int_equal(pc_rank_order_parse(written[i][0], &order, NULL), PC_OK);
        pc_rank_order_write(order, text);
        assert_string_equal(text, written[i][1]);
    }
    for (int i = 0; i < 5; i++) assert_int_equal(pc_rank_order_parse(bad[i], &order, NULL), PC_ERROR_INPUT);
    pc_machine x = plain_machine();
    pc_ranks ranks = placed(&x, "pp-tp-dp", (pc_rank_counts){.tp = 2, .pp = 3, .dp = 5, .cp = 7});
    assert_int_equal(pc_ranks_gpu(&ranks, 1, 2, 2, 3), 2 + 3 + 2 * 6 + 3 * 42);
}

/* Nodes of 8: replicas of cp and dp are in one row where they are neighbours; else rows of cp in every row of dp. */
static void test_groups_of_both(void **state) {
    (void)state;
    pc_machine x = plain_machine();
    pc_ranks ranks = placed(&x, "tp-cp-dp-pp", (pc_rank_counts){.tp = 2, .pp = 2, .dp = 4, .cp = 2}), as_one;
    as_one = placed(&x, "tp-dp-pp", (pc_rank_counts){.tp = 2, .pp = 2, .dp = 8});
    pc_group both = pc_group_of_both(&x, &ranks, PC_AXIS_DP, PC_AXIS_CP);
    pc_group one = pc_group_of(&x, &as_one, PC_AXIS_DP);
    assert_true(both.ranks == one.ranks && both.in_domain == one.in_domain && both.domains == one.domains);
    assert_true(both.groups_beside == one.groups_beside && both.nic_bytes_per_s == one.nic_bytes_per_s);
    ranks = placed(&x, "tp-cp-pp-dp", (pc_rank_counts){.tp = 2, .pp = 2, .dp = 4, .cp = 2});
    assert_false(pc_ranks_join(&ranks, PC_AXIS_DP, PC_AXIS_CP, NULL));
    both = pc_group_of_both(&x, &ranks, PC_AXIS_DP, PC_AXIS_CP);
    assert_true(both.ranks == 8 && both.in_domain == 2 && both.domains == 4);
}

/* 2 x 8 ranks over two nodes: the ring leaves each by one pair of GPUs; 2 x 2 stay in a node. */
static void test_hops_round(void **state) {
    (void)state;
    pc_machine x = plain_machine();
    pc_ranks ranks = placed(&x, "tp-cp-dp-pp", (pc_rank_counts){.tp = 2, .pp = 1, .dp = 2, .cp = 8});
    pc_hop hop = pc_hop_round(&x, &ranks, PC_AXIS_CP), pp = hop;
    assert_false(hop.in_domain);
    ranks = placed(&x, "tp-dp-pp", (pc_rank_counts){.tp = 2, .pp = 8, .dp = 1});
    pp = pc_hop_between(&x, &ranks, 3, 4);
    assert_true(hop.bytes_per_s == pp.bytes_per_s && hop.latency_s == pp.latency_s);
    ranks = placed(&x, "tp-cp-dp-pp", (pc_rank_counts){.tp = 2, .pp = 1, .dp = 8, .cp = 2});
    assert_true(pc_hop_round(&x, &ranks, PC_AXIS_CP).in_domain);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ring),      cmocka_unit_test(test_ring_of_two),     cmocka_unit_test(test_gathered),
        cmocka_unit_test(test_exchanged), cmocka_unit_test(test_nested),          cmocka_unit_test(test_ranks_add_up),
        cmocka_unit_test(test_memory),    cmocka_unit_test(test_state_is_shared), cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_orders),    cmocka_unit_test(test_groups_of_both),  cmocka_unit_test(test_hops_round),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
