/* Counted tokens of experts: the fullest rank's rows by algebra, what is drawn around them, and the file they are in.
 */
#include "engine/alloc.h"
#include "models/workload/expert_counts.h"
#include "scenarios/expert_counts_file.h"
#include "tests/support.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static pc_expert_counts counts_of(const double *numbers, int64_t layers, int64_t experts) {
    pc_expert_counts made;
    assert_int_equal(pc_expert_counts_make(numbers, layers, experts, &made, NULL), PC_OK);
    return made;
}

static pc_expert_spread spread_of(double experts, double ranks, double topk, double tokens) {
    return (pc_expert_spread){.experts = experts, .ranks = ranks, .topk = topk, .tokens = tokens};
}

static void check_near(double found, double expected, double off) {
    if (!(fabs(found - expected) <= off)) fail_msg("%.9g; expected %.9g within %g", found, expected, off);
}

/* ---- by algebra ---- */

/* So many tokens that chance is nothing. 5 + 1 of 8 on one of 2 ranks are 1.5 times the mean, 5 on one of 4 are 2.5
 * times; and a layer whose ranks have as many each is balanced however its experts differ. */
static void test_shares(void **state) {
    (void)state;
    const double numbers[] = {5, 1, 1, 1, 3, 1, 1, 3};
    pc_expert_counts x = counts_of(numbers, 2, 4), first = counts_of(numbers, 1, 4);
    const pc_expert_spread halves = spread_of(4, 2, 1, 1e18), quarters = spread_of(4, 4, 1, 1e18);
    check_near(pc_expert_load_counted(&first, &halves), 1.5, 1e-6);
    check_near(pc_expert_load_counted(&first, &quarters), 2.5, 1e-6);
    check_near(pc_expert_load_counted(&x, &halves), (1.5 + 1.0) / 2, 1e-6);
    check_near(pc_expert_load_counted(&x, &quarters), (2.5 + 1.5) / 2, 1e-6);
    assert_true(pc_expert_load_counted(&x, &(pc_expert_spread){.experts = 4, .ranks = 1, .topk = 1, .tokens = 9}) == 1);
    assert_true(x.largest == 5.0 / 8.0 && x.largest_layer == 0 && x.largest_expert == 0);
    pc_expert_counts_free(&x);
    pc_expert_counts_free(&first);
}

/* With equal shares a rank of r has the variance N k/r (1 - 1/r) (E - k)/(E - 1), as experts chosen by chance. The
 * larger of two independent normal numbers, or 0, is in the mean the integral of 1 - Phi^2 from 0 on. That is
 * 1 / sqrt(pi) for the larger of both, and the integral of (1 - Phi)^2 for where both are below 0. By parts the latter
 * is 1 / sqrt(2 pi) - 1 / (2 sqrt(pi)). */
static void test_equal_shares_are_chance(void **state) {
    (void)state;
    double numbers[64], experts = 64, topk = 4, tokens = 4096;
    for (int i = 0; i < 64; i++) numbers[i] = 7;
    pc_expert_counts x = counts_of(numbers, 1, 64);
    pc_expert_spread two = spread_of(experts, 2, topk, tokens);
    double rows = tokens * topk / 2, deviation = sqrt(rows * 0.5 * (experts - topk) / (experts - 1)) / rows;
    check_near(pc_expert_load_counted(&x, &two), 1 + deviation * (0.5 / sqrt(M_PI) + 1 / sqrt(2 * M_PI)),
               1e-3 * deviation);
    for (double ranks = 2; ranks <= 64; ranks *= 2) {
        pc_expert_spread spread = spread_of(experts, ranks, topk, tokens);
        double chance = pc_expert_load_by_chance(&spread); /* Blom's quantile, which may be below the mean of all */
        if (ranks > 4) check_near(pc_expert_load_counted(&x, &spread) - 1, chance - 1, 0.03 * (chance - 1));
        for (int i = 0; i < 4; i++) {
            const double part[] = {0.6, 0.9, 0.99, 0.999};
            spread.quantile = part[i];
            chance = pc_expert_load_drawn_by_chance(&spread, part[i]);
            check_near(pc_expert_load_counted(&x, &spread), chance, 1e-4 * (chance - 1));
            check_near(pc_expert_load_drawn_counted(&x, &spread, part[i]), chance, 1e-4 * (chance - 1));
        }
    }
    pc_expert_counts_free(&x);
}

/* Of two layers in equal parts, one balanced and one with 1.5 times the mean: what most layers stay within is the one
 * up to a half of all cases, the other beyond. At a quantile of 1 a rank has all that its two experts can take: of two
 * choices a token both, twice the mean. */
static void test_quantiles(void **state) {
    (void)state;
    const double numbers[] = {5, 1, 1, 1, 2, 2, 2, 2};
    pc_expert_counts x = counts_of(numbers, 2, 4);
    pc_expert_spread spread = spread_of(4, 2, 1, 1e18);
    spread.quantile = 0.49;
    check_near(pc_expert_load_counted(&x, &spread), 1.0, 1e-5);
    spread.quantile = 0.51;
    check_near(pc_expert_load_counted(&x, &spread), 1.5, 1e-5);
    spread.quantile = 1;
    spread.topk = 2;
    spread.tokens = 100;
    assert_true(pc_expert_load_counted(&x, &spread) == 2);
    pc_expert_counts_free(&x);
}

/* One choice a token: a rank with the share S has the variance S (1 - S) of a token. What is drawn for the fuller of
 * two ranks lies around its own mean, and one deviation above it in Phi(1) = 0.8413 of all cases. The other rank is 40
 * deviations below. The formula is that of rejective sampling, of which one choice in four is the worst case. */
static void test_variance(void **state) {
    (void)state;
    const double numbers[] = {40, 20, 20, 20};
    pc_expert_counts x = counts_of(numbers, 1, 4);
    pc_expert_spread spread = spread_of(4, 2, 1, 10000);
    double deviation = 2 * sqrt(0.6 * 0.4 / spread.tokens);
    check_near(pc_expert_load_counted(&x, &spread), 1.2, 1e-6);
    check_near(pc_expert_load_drawn_counted(&x, &spread, 0.5), 1.2, 1e-6);
    check_near(pc_expert_load_drawn_counted(&x, &spread, 0.841344746), 1.2 + deviation, 0.02 * deviation);
    pc_expert_counts_free(&x);
}

/* ---- draws ---- */

/* What is drawn has the mean that is expected, over ranks that are near each other, and far, and layers that differ. */
static void test_drawn_mean(void **state) {
    (void)state;
    enum { LAYERS = 3, EXPERTS = 32, DRAWS = 3000 };
    test_random random = {20261129};
    for (long i = 0; i < test_cases(10, 100); i++) {
        double numbers[LAYERS * EXPERTS], sum = 0;
        for (int k = 0; k < LAYERS * EXPERTS; k++) numbers[k] = 1 + 2 * test_draw_unit(&random);
        pc_expert_counts x = counts_of(numbers, LAYERS, EXPERTS);
        pc_expert_spread spread = spread_of(EXPERTS, (double)(INT64_C(1) << test_between(&random, 1, 5)), 4,
                                            (double)test_between(&random, 100, 100000));
        for (int k = 0; k < DRAWS; k++) {
            double load = pc_expert_load_drawn_counted(&x, &spread, (k + 0.5) / DRAWS);
            assert_true(load >= 1 && load <= spread.ranks);
            sum += load;
        }
        double mean = pc_expert_load_counted(&x, &spread);
        check_near(sum / DRAWS, mean, 0.003 * mean);
        pc_expert_counts_free(&x);
    }
}

/* ---- files ---- */

static pc_code read(const char *text, pc_expert_counts *counts, pc_error *error) {
    char *copy = strdup(text);
    pc_code code = pc_expert_counts_read_text("own.csv", copy, counts, error);
    free(copy);
    return code;
}

static void check_refused(const char *text, const char *expected) {
    pc_error error = {0};
    pc_expert_counts counts;
    assert_int_equal(read(text, &counts, &error), PC_ERROR_INPUT);
    assert_string_equal(error.message, expected);
}

/* Comments, names of columns and the number of a layer are no counts; shares of another unit are the same. */
static void test_files(void **state) {
    (void)state;
    static const char *const texts[] = {"1,3\n4,4\n", "# counted\n\n1, 3\n4, 4", "e0,e1\r\n2,6\r\n1,1\r\n",
                                        "layer,e0,e1\n3,0.25,0.75\n4,0.5,0.5\n", "nano,info\n2,6\n1,1\n"};
    uint64_t hash = 0;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        pc_expert_counts counts;
        assert_int_equal(read(texts[i], &counts, NULL), PC_OK);
        assert_int_equal(counts.layers, 2);
        assert_int_equal(counts.experts, 2);
        assert_true(counts.share[1] == 0.25 && counts.share[2] == 1 && counts.share[4] == 0.5);
        assert_true(i == 0 || counts.hash == hash);
        hash = counts.hash;
        pc_expert_counts_free(&counts);
    }
}

static void test_refusals(void **state) {
    (void)state;
    check_refused("1,3\n4,-4\n", "own.csv:2: '-4' for expert 1; expected a count, 0 or more");
    check_refused("layer,a,b\n0,1,many\n", "own.csv:2: 'many' for expert 1; expected a count, 0 or more");
    check_refused("nan,3\n4,4\n", "own.csv:1: 'nan' for expert 0; expected a count, 0 or more");
    check_refused("INF , 3\n4,4\n", "own.csv:1: 'INF' for expert 0; expected a count, 0 or more");
    check_refused("1,3\n4,4,4\n", "own.csv:2: 3 numbers; expected 2, as in the lines before");
    check_refused("layer,a\n0,1\n1,1,1\n", "own.csv:3: 3 numbers; expected 2, as in the lines before");
    check_refused("1,3\n0,0\n", "own.csv:2: no tokens at all; expected a count over 0");
    check_refused("layer\n1\n", "own.csv:2: 1 number; expected 2 or more: the layer, and a count for each expert");
    check_refused("\"1,3\n", "own.csv:1: a quote that does not end; expected another one");
    check_refused("# none\n",
                  "own.csv: has no counts; expected a CSV file with a line for each layer, and in it a count for each "
                  "expert");
}

static void test_no_memory(void **state) {
    (void)state;
    for (long after = 0;; after++) {
        pc_error error = {0};
        pc_expert_counts counts;
        char text[] = "1,3\n4,4\n";
        pc_alloc_fail_after(after);
        pc_code code = pc_expert_counts_read_text("own.csv", text, &counts, &error);
        pc_alloc_fail_after(-1);
        if (!code) {
            pc_expert_counts_free(&counts);
            assert_true(after >= 4);
            return;
        }
        assert_int_equal(code, PC_ERROR_NO_MEMORY);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shares),     cmocka_unit_test(test_equal_shares_are_chance),
        cmocka_unit_test(test_quantiles),  cmocka_unit_test(test_variance),
        cmocka_unit_test(test_drawn_mean), cmocka_unit_test(test_files),
        cmocka_unit_test(test_refusals),   cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
