/* Which fit of a profile answers for a collective, a message or an exchange of experts, and what it says. Fits are made
 * by hand, so that the answers are sums that the tests reckon with. */
#include "calib/profile/profile_cost.h"
#include "engine/alloc.h"
#include "models/machine/collective.h"
#include "models/machine/transfer_model.h"
#include "tests/iteration_example.h"
#include "tests/support.h"

#include <math.h>

static void check_close(double got, double expected) {
    if (!(fabs(got - expected) <= 1e-12 * fabs(expected))) fail_msg("%.17g instead of %.17g", got, expected);
}

/* ---- a profile by hand ---- */

static void add_fit(pc_profile *profile, pc_fit *fit, const char *subject) {
    fit->x = pc_alloc(1, sizeof *fit->x);
    fit->residual_deviation = 0.01;
    snprintf(fit->key.subject, sizeof fit->key.subject, "%s", subject);
    assert_int_equal(pc_profile_add_fit(profile, fit, NULL), PC_OK);
}

/* seconds = 20 us + bytes / beta, of so many ranks. */
static void add_line(pc_profile *profile, const char *collective, int32_t ranks, double beta) {
    pc_fit fit = {.key = {.form = PC_FIT_TRANSFER, .ranks = ranks, .nodes = 1, .link = "nvlink"},
                  .parameter_count = 3,
                  .parameter = {2e-5, beta, 0.01},
                  .dimensions = 1,
                  .least = {0x1p16},
                  .most = {0x1p30}};
    add_fit(profile, &fit, collective);
}

/* One law for all three protocols: start + 1 us a step + S * own, measured with 2 and 8 ranks; it changes protocols at
 * 1 KiB and 1 MiB. */
static void add_law(pc_profile *profile, const char *collective, const char *dtype, const char *version, double start,
                    double own) {
    pc_fit fit = {.key = {.form = PC_FIT_LAW, .nodes = 1, .link = "nvlink", .library = "nccl"},
                  .parameter_count = 22,
                  .parameter = {[12] = 1024.0, 0.0, 0x1p20, 0.0, 2.0, 1024.0, 0x1p20, 8.0, 1024.0, 0x1p20},
                  .dimensions = 2,
                  .least = {1024.0, 2.0},
                  .most = {0x1p29, 8.0}};
    for (int p = 0; p < 3; p++)
        fit.parameter[4 * p] = start, fit.parameter[4 * p + 1] = 1e-6, fit.parameter[4 * p + 2] = own;
    snprintf(fit.key.dtype, sizeof fit.key.dtype, "%s", dtype);
    snprintf(fit.key.variant, sizeof fit.key.variant, "%s", version);
    assert_true(pc_fit_has_parameters(&fit) && pc_fit_foretells(&fit));
    add_fit(profile, &fit, collective);
}

/* A start, a time a token and processor, and a link. */
static void add_exchange(pc_profile *profile, const char *subject, double start, double ranks_most, double nodes_most,
                         double processors) {
    pc_fit fit = {.key = {.form = PC_FIT_DISPATCH, .link = "nvlink", .library = "deepep"},
                  .parameter_count = 8,
                  .parameter = {start, 1e-7, 0.0, 0.0, 0.0, 1e-12, 0.0, 0.0},
                  .dimensions = 7,
                  .least = {512.0, 1024.0, 1.0, 1.0, 2.0, nodes_most > 1.0 ? 2.0 : 1.0, 1.0},
                  .most = {131072.0, 16384.0, ranks_most, nodes_most, ranks_most, nodes_most, processors}};
    add_fit(profile, &fit, subject);
}

static pc_profile_cost *make_cost(const pc_profile *profile) {
    pc_profile_cost *cost;
    pc_error error;
    pc_machine machine = example_spec().machine;
    snprintf(machine.gpu.name, sizeof machine.gpu.name, "example");
    if (pc_profile_cost_make(profile, &machine, &cost, &error)) fail_msg("%s", error.message);
    return cost;
}

static pc_profile empty_profile(void) {
    pc_profile profile = {0};
    snprintf(profile.device.gpu, sizeof profile.device.gpu, "example");
    return profile;
}

static const pc_transfer_model *model_of(const pc_profile_cost *cost) {
    const pc_transfer_model *model = pc_profile_cost_machine(cost)->measured;
    assert_non_null(model);
    return model;
}

static pc_group group_of(int32_t ranks, int32_t domains) {
    return (pc_group){.ranks = ranks, .in_domain = ranks / domains, .domains = domains};
}

static double ask(const pc_profile_cost *cost, pc_collective collective, int32_t ranks, double bytes) {
    const pc_transfer_model *model = model_of(cost);
    pc_group group = group_of(ranks, 1);
    double seconds = NAN;
    assert_true(model->collective(model->self, collective, &group, bytes, &seconds));
    return seconds;
}

/* ---- collectives ---- */

/* A group that was measured by itself, and the law for all others: (n - 1) us for steps. */
static void law_answers_for_any_group(void **state) {
    (void)state;
    pc_profile profile = empty_profile();
    add_line(&profile, "all_reduce", 4, 1e11);
    add_law(&profile, "all_reduce", "fp16", "2.29.2", 1e-5, 2e-12);
    pc_profile_cost *cost = make_cost(&profile);
    check_close(ask(cost, PC_COLLECTIVE_ALL_REDUCE, 4, 1e8), 2e-5 + 1e8 / 1e11);
    for (int32_t ranks = 2; ranks <= 8; ranks++)
        if (ranks != 4) check_close(ask(cost, PC_COLLECTIVE_ALL_REDUCE, ranks, 1e8), 1e-5 + 1e-6 * (ranks - 1) + 2e-4);
    /* Less than was measured takes as long as the least; with 16 ranks 7 * (15/7)^0.61 steps. */
    check_close(ask(cost, PC_COLLECTIVE_ALL_REDUCE, 8, 10.0), 1e-5 + 7e-6 + 1024.0 * 2e-12);
    check_close(ask(cost, PC_COLLECTIVE_ALL_REDUCE, 16, 1e8), 1e-5 + 7e-6 * pow(15.0 / 7.0, 0.61) + 2e-4);
    pc_profile_cost_free(cost);
    pc_profile_free(&profile);
}

static void others_stay_the_machines(void **state) {
    (void)state;
    pc_profile profile = empty_profile();
    add_law(&profile, "all_reduce", "fp16", "2.29.2", 1e-5, 2e-12);
    pc_profile_cost *cost = make_cost(&profile);
    const pc_transfer_model *model = model_of(cost);
    pc_group one = group_of(8, 1), two = group_of(8, 2);
    pc_hop hop = {.in_domain = true, .bytes_per_s = 1e11, .latency_s = 1e-6};
    double seconds;
    assert_false(model->collective(model->self, PC_COLLECTIVE_ALL_GATHER, &one, 1e8, &seconds));
    assert_false(model->collective(model->self, PC_COLLECTIVE_ALL_REDUCE, &two, 1e8, &seconds));
    assert_false(model->message(model->self, &hop, 1e8, &seconds));
    const pc_exchange exchange = {.tokens = 4096, .token_bytes = 4096, .ranks_reached = 8, .domains_reached = 1};
    assert_false(model->exchange(model->self, &one, &exchange, &seconds));
    pc_profile_cost_free(cost);
    pc_profile_free(&profile);
}

/* Numbers of 16 bits before those of 8, then the newest library, which 2.9 is not; in any order of fits. */
static void the_newest_law_of_halves(void **state) {
    static const char *const versions[] = {"", "2.9.1", "2.29.2", "2.28.9", "2.29"};
    enum { VERSIONS = sizeof versions / sizeof *versions };
    (void)state;
    for (int first = 0; first < VERSIONS; first++) {
        pc_profile profile = empty_profile();
        add_law(&profile, "all_reduce", "int8", "3.0", 9e-5, 2e-12);
        for (int i = 0; i < VERSIONS; i++) {
            const char *version = versions[(first + i) % VERSIONS];
            add_law(&profile, "all_reduce", "bf16", version, strcmp(version, "2.29.2") == 0 ? 1e-5 : 5e-5, 2e-12);
        }
        pc_profile_cost *cost = make_cost(&profile);
        check_close(ask(cost, PC_COLLECTIVE_ALL_REDUCE, 2, 1e6), 1e-5 + 1e-6 + 2e-6);
        pc_profile_cost_free(cost);
        pc_profile_free(&profile);
    }
}

/* What is beyond the measured sizes and groups is said. */
static void beyond_is_said(void **state) {
    char line[512];
    (void)state;
    pc_profile profile = empty_profile();
    add_law(&profile, "all_gather", "", "2.29.2", 1e-5, 2e-12);
    pc_profile_cost *cost = make_cost(&profile);
    ask(cost, PC_COLLECTIVE_ALL_GATHER, 8, 1e8);
    assert_false(pc_profile_cost_warning(cost, 0, line, sizeof line));
    ask(cost, PC_COLLECTIVE_ALL_GATHER, 72, 1e8);
    assert_true(pc_profile_cost_warning(cost, 0, line, sizeof line));
    if (!strstr(line, "(bytes 100000000, ranks 72) is 9 times above what was measured, 2 to 8")) fail_msg("%s", line);
    if (strstr(line, "roofline")) fail_msg("%s", line);
    pc_profile_cost_free(cost);
    pc_profile_free(&profile);
}

/* ---- exchanges ---- */

static double exchange_s(const pc_profile_cost *cost, int32_t ranks, int32_t domains, const pc_exchange *exchange) {
    const pc_transfer_model *model = model_of(cost);
    pc_group group = group_of(ranks, domains);
    double seconds = NAN;
    assert_true(model->exchange(model->self, &group, exchange, &seconds));
    return seconds;
}

/* A token goes to 8 ranks: of 8, 7 are reached over the link. 20 processors share the tokens. */
static void exchanges_go_by_ranks_reached(void **state) {
    (void)state;
    pc_profile profile = empty_profile();
    add_exchange(&profile, "dispatch", 3e-5, 8.0, 1.0, 24.0);
    add_exchange(&profile, "dispatch", 4e-5, 64.0, 1.0, 24.0);
    add_exchange(&profile, "dispatch", 5e-5, 64.0, 8.0, 24.0);
    add_exchange(&profile, "combine", 6e-5, 8.0, 1.0, 1.0);
    pc_profile_cost *cost = make_cost(&profile);
    pc_exchange x = {.tokens = 8192, .token_bytes = 7168, .ranks_reached = 8, .domains_reached = 1};
    double tokens_s = 8192 * 1e-7, sent = 8192.0 * 7168.0 * 1e-12;
    check_close(exchange_s(cost, 8, 1, &x), 3e-5 + tokens_s / 20.0 + sent * 8.0 * 7.0 / 8.0);
    check_close(exchange_s(cost, 32, 1, &x), 4e-5 + tokens_s / 20.0 + sent * 8.0 * 31.0 / 32.0);
    check_close(exchange_s(cost, 32, 4, &x), 5e-5 + tokens_s / 20.0 + sent * 8.0 * 31.0 / 32.0);
    x.is_combine = true; /* its kernels do not say how many processors they take */
    check_close(exchange_s(cost, 8, 1, &x), 6e-5 + tokens_s + sent * 8.0 * 7.0 / 8.0);
    /* To 1 rank, which is the own one of 8 times. */
    x = (pc_exchange){.tokens = 8192, .token_bytes = 7168, .ranks_reached = 1, .domains_reached = 1};
    check_close(exchange_s(cost, 8, 1, &x), 3e-5 + tokens_s / 20.0 + sent * 7.0 / 8.0);
    x.tokens = 10; /* fewer than were measured take as long as the fewest */
    check_close(exchange_s(cost, 8, 1, &x), 3e-5 + 512 * 1e-7 / 20.0 + 512 * 7168 * 1e-12 * 7.0 / 8.0);
    pc_profile_cost_free(cost);
    pc_profile_free(&profile);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(law_answers_for_any_group),
                                       cmocka_unit_test(others_stay_the_machines),
                                       cmocka_unit_test(the_newest_law_of_halves), cmocka_unit_test(beyond_is_said),
                                       cmocka_unit_test(exchanges_go_by_ranks_reached)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
