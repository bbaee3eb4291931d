/* To how many ranks or nodes a token goes: closed forms against counts by hand, and against draws. */
#include "models/workload/expert_reach.h"
#include "tests/support.h"

#include <math.h>

static double reached(double experts, double topk, double cells) {
    return pc_expert_reached(&(pc_routing){.experts = experts, .topk = topk}, cells);
}

/* 2 of 4 experts in 2 halves: 2 of 6 pairs lie in one half, so 2 * 4/6 + 1 * 2/6 = 5/3 halves. */
static void reached_by_counting(void **state) {
    (void)state;
    assert_true(fabs(reached(4, 2, 2) - 5.0 / 3.0) < 1e-12);
    assert_true(fabs(reached(256, 1, 8) - 1.0) < 1e-12);
    assert_true(fabs(reached(256, 8, 1) - 1.0) < 1e-12);
    assert_true(fabs(reached(64, 64, 8) - 8.0) < 1e-12);
    assert_true(reached(256, 8, 64) < 8.0);
}

/* 8 experts in 4 groups of 2, of which 2 are chosen, and 2 experts of those 4. Over 2 ranks, each of 2 groups: of 6
 * choices of groups 2 lie on one rank, which then has all; with the other 4 each rank has 2 of the 4 experts, and 2 of
 * 6 pairs lie on one rank: 5/3 ranks. So (2 * 1 + 4 * 5/3) / 6 = 13/9. Over 4 ranks, each a group: of the 6 pairs of 4
 * experts 2 are of one group: 5/3. Over 8 ranks, each an expert: 2. */
static void groups_by_counting(void **state) {
    (void)state;
    const pc_routing limited = {.experts = 8, .topk = 2, .groups = 4, .group_topk = 2};
    assert_true(fabs(pc_expert_reached(&limited, 2) - 13.0 / 9.0) < 1e-12);
    assert_true(fabs(pc_expert_reached(&limited, 4) - 5.0 / 3.0) < 1e-12);
    assert_true(fabs(pc_expert_reached(&limited, 8) - 2.0) < 1e-12);
}

/* All groups chosen is as none. */
static void all_groups_are_none(void **state) {
    (void)state;
    const pc_routing all = {.experts = 64, .topk = 6, .groups = 8, .group_topk = 8};
    assert_false(pc_routing_is_limited(&all));
    assert_true(pc_expert_reached(&all, 16) == reached(64, 6, 16));
}

/* DeepSeek-V3: 256 experts on 8 nodes, each a group, of which a token chooses 4: never more than 4 nodes, and with 8
 * experts nearly always all 4. */
static void nodes_are_limited(void **state) {
    (void)state;
    const pc_routing v3 = {.experts = 256, .topk = 8, .groups = 8, .group_topk = 4};
    double nodes = pc_expert_reached(&v3, 8);
    assert_true(nodes < 4.0 && nodes > 3.6 && nodes < reached(256, 8, 8));
}

/* Of e experts in g equal parts a token that chooses k misses one part with C(e - e/g, k) / C(e, k): of 2^40 in 8 parts
 * practically (7/8)^k, which is none after a thousand. 10000 of 20000 in halves: every one is reached. */
static void choices_that_nobody_has(void **state) {
    (void)state;
    assert_true(fabs(reached(0x1p40, 2.0, 8.0) - 8.0 * (1.0 - 0.875 * 0.875)) < 1e-9);
    assert_true(reached(0x1p40, 0x1p39, 8.0) == 8.0);
    assert_true(reached(20000.0, 10000.0, 2.0) == 2.0);
    assert_true(reached(4.0, 4.0, 4.0) == 4.0);
    double many = reached(0x1p40, 100000.0, 0x1p20); /* 2^20 (1 - (1 - 2^-20)^100000) */
    assert_true(fabs(many / (0x1p20 * -expm1(100000.0 * log1p(-0x1p-20))) - 1.0) < 1e-6);
}

/* ---- against draws ---- */

enum { EXPERTS_MOST = 96 };

/* Puts `count` of the first `of` numbers in front, in any order. */
static void shuffle(test_random *random, int *numbers, int of, int count) {
    for (int i = 0; i < count; i++) {
        int64_t other = test_between(random, i, of - 1);
        int kept = numbers[i];
        numbers[i] = numbers[other];
        numbers[other] = kept;
    }
}

static int count_cells(const int *chosen, int topk, int experts, int cells) {
    bool is_there[EXPERTS_MOST] = {false};
    int count = 0;
    for (int i = 0; i < topk; i++) {
        int cell = chosen[i] * cells / experts;
        count += !is_there[cell];
        is_there[cell] = true;
    }
    return count;
}

static int draw_cells(test_random *random, const pc_routing *x, int cells) {
    int groups[EXPERTS_MOST], open[EXPERTS_MOST], count = 0;
    int experts = (int)x->experts, in_group = experts / x->groups;
    for (int i = 0; i < x->groups; i++) groups[i] = i;
    shuffle(random, groups, x->groups, x->group_topk);
    for (int g = 0; g < x->group_topk; g++)
        for (int i = 0; i < in_group; i++) open[count++] = groups[g] * in_group + i;
    shuffle(random, open, count, (int)x->topk);
    return count_cells(open, (int)x->topk, experts, cells);
}

/* A mean of n draws is off by less than 5 standard errors, each draw from 1 to topk cells. Cells need not hold whole
 * groups, nor be in one. */
static void draws_agree(void **state) {
    (void)state;
    test_random random = {0x5eed};
    for (long i = 0; i < test_cases(60, 600); i++) {
        int groups = (int)test_between(&random, 1, 8), in_group = (int)test_between(&random, 1, 12);
        int limit = (int)test_between(&random, 1, groups), experts = groups * in_group, cells;
        do cells = (int)test_between(&random, 1, experts);
        while (experts % cells);
        pc_routing x = {.experts = experts,
                        .topk = (double)test_between(&random, 1, limit * in_group),
                        .groups = groups,
                        .group_topk = limit};
        enum { DRAWS = 4000 };
        double sum = 0, squares = 0, expected = pc_expert_reached(&x, cells);
        for (int k = 0; k < DRAWS; k++) {
            double drawn = draw_cells(&random, &x, cells);
            sum += drawn;
            squares += drawn * drawn;
        }
        double mean = sum / DRAWS, error = sqrt(fmax(squares / DRAWS - mean * mean, 0) / DRAWS);
        if (!(fabs(mean - expected) <= 5 * error + 1e-3))
            fail_msg("%d experts, top %g, %d of %d groups, %d cells: %g drawn, %g expected", experts, x.topk, limit,
                     groups, cells, mean, expected);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(reached_by_counting),     cmocka_unit_test(groups_by_counting),
                                       cmocka_unit_test(all_groups_are_none),     cmocka_unit_test(nodes_are_limited),
                                       cmocka_unit_test(choices_that_nobody_has), cmocka_unit_test(draws_agree)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
