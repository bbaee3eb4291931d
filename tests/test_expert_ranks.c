/* The grid of experts: against Megatron-LM's generator of groups, written down again as a count over all GPUs, and how
 * groups of experts lie in machines. */
#include "models/machine/machine.h"
#include "models/machine/ranks.h"
#include "tests/plain_machine.h"
#include "tests/random_machine.h"

/* ---- groups as Megatron-LM makes them ---- */

enum { AXES = 5, GPUS_MOST = 512 };
enum { TP, CP, EP, DP, PP };

/* Which group of the axes in `mask` a GPU is in: parallel_state.py's generate_masked_orthogonal_rank_groups. The other
 * axes, in the order of ranks, are the digits of the group's number. */
static int group_number(const int *order, const int *size, unsigned mask, int gpu) {
    int number = 0, place = 1;
    for (int i = 0; i < AXES; i++) {
        int digit = gpu % size[order[i]];
        gpu /= size[order[i]];
        if (mask >> order[i] & 1) continue;
        number += digit * place;
        place *= size[order[i]];
    }
    return number;
}

/* "tp-cp-ep-dp-pp" and "tp-cp-ep-pp-dp", as --use-tp-pp-dp-mapping has it. */
static const int orders[2][AXES] = {{TP, CP, EP, DP, PP}, {TP, CP, EP, PP, DP}};
static const char *const names[2] = {"tp-cp-dp-pp", "tp-cp-pp-dp"};

/* The other ranks' grid has no ep, that of experts no cp. */
typedef struct sizes {
    int dense[AXES], experts[AXES];
} sizes;

static int count_gpus(const int *size) {
    int count = 1;
    for (int i = 0; i < AXES; i++) count *= size[i];
    return count;
}

static bool is_same_stage(const sizes *x, int order) {
    for (int gpu = 0; gpu < count_gpus(x->dense); gpu++)
        if (group_number(orders[order], x->dense, 1u << PP, gpu) !=
            group_number(orders[order], x->experts, 1u << PP, gpu))
            return false;
    return true;
}

/* Two GPUs are in a group if they differ on its axes alone. */
static bool is_together(const pc_ranks *experts, const pc_axis *axes, int count, int64_t a, int64_t b) {
    for (int axis = 0; axis < PC_AXES; axis++) {
        bool is_of_group = false;
        for (int i = 0; i < count; i++) is_of_group = is_of_group || (int)axes[i] == axis;
        if (!is_of_group &&
            pc_ranks_coordinate(experts, (pc_axis)axis, a) != pc_ranks_coordinate(experts, (pc_axis)axis, b))
            return false;
    }
    return true;
}

static const struct asked {
    unsigned mask;
    pc_axis axes[2];
    int count;
} asked[] = {{1u << TP, {PC_AXIS_TP}, 1},
             {1u << EP, {(pc_axis)PC_AXIS_EP}, 1},
             {1u << DP, {PC_AXIS_DP}, 1},
             {1u << PP, {PC_AXIS_PP}, 1},
             {1u << TP | 1u << EP, {PC_AXIS_TP, (pc_axis)PC_AXIS_EP}, 2}};

static void check_groups(const pc_ranks *experts, const sizes *x, int order) {
    int gpus = count_gpus(x->experts);
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++)
        for (int a = 0; a < gpus; a++)
            for (int b = 0; b < gpus; b++) {
                bool expected = group_number(orders[order], x->experts, asked[i].mask, a) ==
                                group_number(orders[order], x->experts, asked[i].mask, b);
                if (is_together(experts, asked[i].axes, asked[i].count, a, b) != expected)
                    fail_msg("GPUs %d and %d, group %zu, etp %d ep %d edp %d", a, b, i, x->experts[TP], x->experts[EP],
                             x->experts[DP]);
            }
}

static int one_of(test_random *random) {
    static const int some[] = {1, 1, 2, 2, 3, 4};
    return some[test_between(random, 0, 5)];
}

static sizes draw_sizes(test_random *random) {
    sizes x = {{one_of(random), one_of(random), 1, one_of(random), one_of(random)}, {0}};
    int of_stage = x.dense[TP] * x.dense[CP] * x.dense[DP], etp, ep;
    do etp = (int)test_between(random, 1, of_stage);
    while (of_stage % etp);
    do ep = (int)test_between(random, 1, of_stage / etp);
    while (of_stage / etp % ep);
    x.experts[TP] = etp, x.experts[CP] = 1, x.experts[EP] = ep;
    x.experts[DP] = of_stage / etp / ep, x.experts[PP] = x.dense[PP];
    return x;
}

/* And where Megatron-LM's stages of both grids are not the same ones, which it asserts, it is refused. */
static void groups_are_megatrons(void **state) {
    (void)state;
    test_random random = {7};
    long refused = 0, taken = 0;
    for (long i = 0; i < test_cases(200, 2000); i++) {
        sizes x = draw_sizes(&random);
        int which = (int)test_between(&random, 0, 1);
        pc_rank_order order;
        pc_ranks ranks, experts;
        pc_machine machine = plain_machine();
        if (count_gpus(x.dense) > 96) continue;
        assert_int_equal(pc_rank_order_parse(names[which], &order, NULL), PC_OK);
        assert_int_equal(pc_ranks_place(&machine, order,
                                        (pc_rank_counts){x.dense[TP], x.dense[PP], x.dense[DP], x.dense[CP]}, &ranks,
                                        NULL),
                         PC_OK);
        pc_code code = pc_ranks_place_experts(&ranks, order, x.experts[TP], x.experts[EP], &experts, NULL);
        assert_int_equal(code == PC_OK, is_same_stage(&x, which));
        refused += code != PC_OK;
        taken += code == PC_OK;
        if (code == PC_OK) check_groups(&experts, &x, which);
    }
    assert_true(test_saw(refused, 1) && test_saw(taken, 21));
}

/* ---- by hand ---- */

static pc_ranks place(const char *name, pc_rank_counts counts, pc_rank_order *order) {
    pc_machine machine = plain_machine();
    pc_ranks ranks;
    assert_int_equal(pc_rank_order_parse(name, order, NULL), PC_OK);
    assert_int_equal(pc_ranks_place(&machine, *order, counts, &ranks, NULL), PC_OK);
    return ranks;
}

/* 16 nodes of 8: tp 2 x cp 2 x dp 16 and pp 2; ep 8 in a node, etp 1, edp 8: one rank of each node of the stage. With
 * etp 2 an ep group of 8 takes every other GPU of 2 nodes. */
static void groups_lie_in_nodes(void **state) {
    (void)state;
    pc_machine machine = plain_machine();
    pc_rank_order order;
    pc_ranks ranks = place("tp-cp-dp-pp", (pc_rank_counts){2, 2, 16, 2}, &order), experts;
    assert_int_equal(pc_ranks_place_experts(&ranks, order, 1, 8, &experts, NULL), PC_OK);
    pc_group ep = pc_group_of(&machine, &experts, (pc_axis)PC_AXIS_EP);
    pc_group edp = pc_group_of(&machine, &experts, PC_AXIS_DP);
    assert_int_equal(ep.ranks, 8);
    assert_int_equal(ep.domains, 1);
    assert_int_equal(edp.ranks, 8);
    assert_int_equal(edp.domains, 8);
    assert_int_equal(pc_ranks_place_experts(&ranks, order, 2, 8, &experts, NULL), PC_OK);
    ep = pc_group_of(&machine, &experts, (pc_axis)PC_AXIS_EP);
    assert_int_equal(ep.domains, 2);
    assert_int_equal(ep.in_domain, 4);
    assert_int_equal(pc_group_of(&machine, &experts, PC_AXIS_TP).domains, 1);
    pc_group both = pc_group_of_both(&machine, &experts, PC_AXIS_TP, (pc_axis)PC_AXIS_EP);
    assert_int_equal(both.ranks, 16);
    assert_int_equal(both.in_domain, 8);
}

static void refusals_name_the_remedy(void **state) {
    (void)state;
    pc_rank_order order;
    pc_ranks ranks = place("tp-cp-dp-pp", (pc_rank_counts){2, 1, 6, 1}, &order), experts;
    pc_error error;
    assert_int_equal(pc_ranks_place_experts(&ranks, order, 1, 8, &experts, &error), PC_ERROR_INPUT);
    assert_string_equal(error.message, "ep 8 x etp 1 with 12 ranks in a stage; expected a divisor of tp x cp x dp");
    ranks = place("tp-cp-pp-dp", (pc_rank_counts){2, 2, 8, 1}, &order);
    assert_int_equal(pc_ranks_place_experts(&ranks, order, 1, 8, &experts, &error), PC_ERROR_INPUT);
    assert_string_equal(error.message, "ep 8 x etp 1 in a rank order with pp before dp, whose stages are 2 ranks in a "
                                       "row; expected as many, or pp as the last of the order");
    assert_int_equal(pc_ranks_place_experts(&ranks, order, 1, 2, &experts, NULL), PC_OK);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(groups_are_megatrons), cmocka_unit_test(groups_lie_in_nodes),
                                       cmocka_unit_test(refusals_name_the_remedy)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
