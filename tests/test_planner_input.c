/* What the planner is asked that it cannot answer, spaces without a plan that fits, and refused memory. */
#include "tests/support.h"

#include "engine/alloc.h"
#include "models/planner/planner.h"
#include "tests/planner_example.h"

#include <math.h>

static const pc_plan_request fastest = {
    .objectives = {PC_PLAN_THROUGHPUT}, .objective_count = 1, .top = 1, .threads = 1};

static void check_refused(const pc_plan_space *space, const pc_plan_request *request, const char *part) {
    pc_plan_answer answer;
    pc_error error = {0};
    assert_int_equal(pc_plan_run(space, request, &answer, &error), PC_ERROR_INPUT);
    if (!strstr(error.message, part)) fail_msg("\"%s\"; expected \"%s\" in it", error.message, part);
}

/* A space that has plans. */
static void draw_plans(test_random *random, example_space *x) {
    for (int i = 0; i < 100; i++) {
        pc_plan_answer answer;
        draw_space(random, 2000, false, x);
        assert_int_equal(pc_plan_run(&x->space, &fastest, &answer, NULL), PC_OK);
        int64_t count = answer.count;
        pc_plan_answer_free(&answer);
        if (count > 0) return;
    }
    fail();
}

static void test_lists(void **state) {
    (void)state;
    test_random random = {721};
    static const int64_t odd[] = {-1};
    example_space x;
    draw_plans(&random, &x);
    const struct {
        size_t at;
        const char *name;
    } lists[] = {{offsetof(pc_plan_space, gpus), "gpus"},
                 {offsetof(pc_plan_space, global_batch), "global_batch"},
                 {offsetof(pc_plan_space, tp), "tp"},
                 {offsetof(pc_plan_space, pp), "pp"},
                 {offsetof(pc_plan_space, chunks), "chunks"},
                 {offsetof(pc_plan_space, microbatch_size), "microbatch_size"},
                 {offsetof(pc_plan_space, recompute), "recompute"},
                 {offsetof(pc_plan_space, zero), "zero"},
                 {offsetof(pc_plan_space, sequence_parallel), "sequence_parallel"},
                 {offsetof(pc_plan_space, overlaps_tp), "overlaps_tp"},
                 {offsetof(pc_plan_space, overlaps_gradients), "overlaps_gradients"},
                 {offsetof(pc_plan_space, overlaps_parameters), "overlaps_parameters"},
                 {offsetof(pc_plan_space, overlaps_p2p), "overlaps_p2p"}};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        pc_plan_space space = x.space;
        pc_plan_list *list = (pc_plan_list *)((char *)&space + lists[i].at);
        *list = (pc_plan_list){odd, 0};
        check_refused(&space, &fastest, lists[i].name);
        *list = (pc_plan_list){odd, 1};
        check_refused(&space, &fastest, lists[i].name);
    }
    pc_plan_space space = x.space;
    space.base_count = 0;
    check_refused(&space, &fastest, "machines");
    space = x.space;
    space.generator_count = 0;
    check_refused(&space, &fastest, "schedules");
    space = x.space;
    space.order_count = 0;
    check_refused(&space, &fastest, "orders");
}

static void test_requests(void **state) {
    (void)state;
    test_random random = {722};
    example_space x;
    draw_plans(&random, &x);
    pc_plan_request request = fastest;
    request.top = 0;
    check_refused(&x.space, &request, "top 0");
    request = fastest;
    request.objective_count = 0;
    check_refused(&x.space, &request, "0 objectives");
    request.objective_count = 2;
    check_refused(&x.space, &request, "each once");
    request = fastest;
    request.most_iteration_s = -1;
    check_refused(&x.space, &request, "-1 s");
    request = fastest;
    request.objectives[0] = PC_PLAN_COST;
    x.space.base_count = 2;
    x.bases[1] = x.bases[0];
    x.bases[1].gpu_hour_price = NAN;
    check_refused(&x.space, &request, "1 of 2");
    x.bases[0].gpu_hour_price = -2;
    check_refused(&x.space, &request, "price -2");
}

static void test_bases(void **state) {
    (void)state;
    test_random random = {723};
    example_space x;
    static const int32_t layers[] = {6, 6};
    draw_plans(&random, &x);
    x.space.base_count = 1;
    pc_iteration_spec good = x.bases[0].spec, *spec = &x.bases[0].spec;
    spec->expands = true;
    check_refused(&x.space, &fastest, "expanded");
    *spec = good;
    spec->bad_days.samples = 10;
    check_refused(&x.space, &fastest, "samples");
    *spec = good;
    spec->cut.layout = PC_CUT_LISTED;
    spec->cut.layers_of_part = layers;
    check_refused(&x.space, &fastest, "part by part");
    *spec = good;
    spec->model.heads = 0;
    check_refused(&x.space, &fastest, "heads");
    *spec = good;
    spec->machine.gpu.memory_bytes_per_s = -1;
    check_refused(&x.space, &fastest, "expected");
    *spec = good;
    spec->overhead_ps = -1;
    check_refused(&x.space, &fastest, "below zero");
}

/* No plan is an answer, too: where nothing fits, nothing divides, or all is too slow. */
static void test_no_plan_is_no_error(void **state) {
    (void)state;
    test_random random = {724};
    example_space x;
    pc_plan_answer answer;
    draw_plans(&random, &x);
    pc_plan_request request = fastest;
    request.most_iteration_s = 1e-9;
    assert_int_equal(pc_plan_run(&x.space, &request, &answer, NULL), PC_OK);
    assert_int_equal(answer.count, 0);
    assert_int_equal(answer.log.simulated, 0);
    assert_true(answer.log.too_slow > 0 && isnan(answer.log.mean_bound));
    pc_plan_answer_free(&answer);
    for (int i = 0; i < x.space.base_count; i++) x.bases[i].spec.memory_limit_bytes = 1;
    assert_int_equal(pc_plan_run(&x.space, &fastest, &answer, NULL), PC_OK);
    assert_int_equal(answer.count, 0);
    assert_int_equal(answer.log.over_memory, answer.log.points - answer.log.broken_rule);
    pc_plan_answer_free(&answer);
    static const int64_t prime[] = {7919};
    x.space.gpus = (pc_plan_list){prime, 1};
    x.space.global_batch = (pc_plan_list){prime, 1};
    static const int64_t two[] = {2};
    x.space.tp = (pc_plan_list){two, 1};
    assert_int_equal(pc_plan_run(&x.space, &fastest, &answer, NULL), PC_OK);
    assert_int_equal(answer.log.broken_rule, answer.log.points);
    pc_plan_answer_free(&answer);
}

/* Without prices a cost is GPU-hours: the same plan, whatever base has been priced alike. */
static void test_costs_without_prices(void **state) {
    (void)state;
    test_random random = {725};
    example_space x;
    pc_plan_answer priced, plain;
    draw_plans(&random, &x);
    pc_plan_request request = fastest;
    request.objectives[0] = PC_PLAN_COST;
    for (int i = 0; i < x.space.base_count; i++) x.bases[i].gpu_hour_price = 4;
    assert_int_equal(pc_plan_run(&x.space, &request, &priced, NULL), PC_OK);
    for (int i = 0; i < x.space.base_count; i++) x.bases[i].gpu_hour_price = NAN;
    assert_int_equal(pc_plan_run(&x.space, &request, &plain, NULL), PC_OK);
    assert_int_equal(priced.count, 1);
    assert_int_equal(priced.found[0].number, plain.found[0].number);
    assert_true(priced.found[0].cost == 4 * plain.found[0].cost); /* a power of two: to the bit */
    pc_plan_answer_free(&priced);
    pc_plan_answer_free(&plain);
}

/* Each allocation refused once: an error and nothing leaked, or the whole answer. */
static void test_refused_memory(void **state) {
    (void)state;
    test_random random = {726};
    example_space x;
    pc_plan_answer answer;
    draw_plans(&random, &x);
    pc_plan_request request = fastest;
    request.top = 2;
    long before = pc_alloc_count();
    assert_int_equal(pc_plan_run(&x.space, &request, &answer, NULL), PC_OK);
    long asked = pc_alloc_count() - before;
    pc_plan_answer_free(&answer);
    assert_true(asked > 100);
    for (long i = 0; i < asked; i += 1 + i / 8) {
        pc_error error = {0};
        pc_alloc_fail_after(i);
        pc_code code = pc_plan_run(&x.space, &request, &answer, &error);
        pc_alloc_fail_after(-1);
        assert_int_equal(code, PC_ERROR_NO_MEMORY);
        assert_true(error.message[0] != '\0');
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lists),
        cmocka_unit_test(test_requests),
        cmocka_unit_test(test_bases),
        cmocka_unit_test(test_no_plan_is_no_error),
        cmocka_unit_test(test_costs_without_prices),
        cmocka_unit_test(test_refused_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
