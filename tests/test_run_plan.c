/* Runs whose schedules are made as if all passes took the same time, and the limits, passes and parameters that rows
 * show. */
#include "results/row.h"
#include "tests/refusals.h"
#include "tests/scenario_files.h"

#include <math.h>

static const int64_t GIB = INT64_C(1) << 30;

/* A run and its trace. */
typedef struct done {
    pc_run_spec spec;
    pc_run_row row;
    pc_run_detail detail;
} done;

static done run_with(const char *const *sets, int count) {
    done result;
    pc_error error = {0};
    pc_scenario *scenario = load_with(NULL, sets, count);
    result.spec = spec_of(scenario, 0);
    if (pc_run_row_make(&result.spec, NULL, &result.row, &result.detail, &error)) fail_msg("%s", error.message);
    pc_scenario_free(scenario);
    return result;
}

static void free_run(done *result) {
    pc_run_detail_free(&result->detail);
    pc_run_spec_free(&result->spec);
}

/* p = 8; `times` of a whole stage, "F: 3 ms, B: 4 ms, W: 2 ms"; memory in microbatches of a GiB. */
static done run_times(const char *schedule, int microbatches, const char *times, const char *plan, const char *more) {
    char text[5][128];
    const char *sets[8] = {"setting.devices=8", "setting.activation.size=1 GiB", "setting.trace=true"};
    snprintf(text[0], sizeof text[0], "setting.schedule=%s", schedule);
    snprintf(text[1], sizeof text[1], "setting.microbatches=%d", microbatches);
    snprintf(text[2], sizeof text[2], "setting.times={%s}", times);
    snprintf(text[3], sizeof text[3], "setting.making=%s", plan);
    snprintf(text[4], sizeof text[4], "setting.%s", more);
    for (int i = 0; i < 5; i++) sets[3 + i] = text[i];
    done result = run_with(sets, 8);
    if (result.row.status != PC_RUN_OK) fail_msg("%s", result.row.message);
    return result;
}

static const char *const unequal = "F: 3 ms, B: 4 ms, W: 2 ms", *const equal = "F: 1 ms, B: 1 ms, W: 1 ms";

/* Whether both do the same passes on the same stages in the same order, whenever that is. */
static bool is_same_order(const done *a, const done *b) {
    const pc_replay_trace *x = &a->detail.replay.trace, *y = &b->detail.replay.trace;
    assert_true(x->pass_count > 0 && x->pass_count == y->pass_count);
    for (int64_t i = 0; i < x->pass_count; i++)
        if (x->pass_device[i] != y->pass_device[i] || x->pass[i].kind != y->pass[i].kind ||
            x->pass[i].chunk != y->pass[i].chunk || x->pass[i].microbatch != y->pass[i].microbatch)
            return false;
    return true;
}

/* ---- the order of passes ---- */

static void test_order_is_that_of_equal_times(void **state) {
    (void)state;
    static const char *const schedules[] = {"v-min", "v-half", "v-zb",          "zb-v",      "zb-1p",
                                            "zb-2p", "1f1b-v", "zb-two-thirds", "v-adaptive"};
    int different = 0;
    for (size_t i = 0; i < sizeof schedules / sizeof *schedules; i++) {
        done planned = run_times(schedules[i], 16, unequal, "equal", "transfer.time=1 ms");
        done at_equal = run_times(schedules[i], 16, equal, "costs", "transfer.time=0 ms");
        done at_costs = run_times(schedules[i], 16, unequal, "costs", "transfer.time=1 ms");
        if (!is_same_order(&planned, &at_equal)) fail_msg("%s: not the order of equal times", schedules[i]);
        different += !is_same_order(&planned, &at_costs);
        assert_string_equal(planned.row.making, "equal");
        assert_string_equal(at_costs.row.making, "costs");
        assert_true(planned.row.activation_gib_max == at_equal.row.activation_gib_max);
        assert_true(planned.row.iteration_s >= at_costs.row.iteration_s);
        free_run(&planned);
        free_run(&at_equal);
        free_run(&at_costs);
    }
    assert_true(different > 5);
}

/* What people run under V-Min's name idles 0.328 of the time at these times and transfers of 0.3 ms, which are no part
 * of its order; that is more than 1F1B does, and one that is made for them idles less. */
static void test_order_of_others(void **state) {
    (void)state;
    static const char *const times = "F: 22 ms, B: 24.6 ms, W: 17 ms", *const transfer = "transfer.time=0.3 ms";
    done published = run_times("v-min", 16, times, "published", transfer);
    done at_equal = run_times("v-min", 16, equal, "published", "transfer.time=0 ms");
    done at_costs = run_times("v-min", 16, times, "costs", transfer),
         plain = run_times("1f1b", 16, times, "published", transfer);
    assert_true(fabs(published.row.bubble_rate_span - 0.3283) < 5e-5);
    assert_true(is_same_order(&published, &at_equal));
    assert_true(at_costs.row.bubble_rate_span < plain.row.bubble_rate_span);
    assert_true(plain.row.bubble_rate_span < published.row.bubble_rate_span);
    assert_string_equal(published.row.making, "published");
    assert_string_equal(plain.row.making, "");
    free_run(&published);
    free_run(&at_equal);
    free_run(&at_costs);
    free_run(&plain);
}

/* An order that was made elsewhere does not look at a limit, and is out of memory where one breaks it, as a static one
 * is; but the adaptive one keeps it. */
static void test_limits_of_others(void **state) {
    (void)state;
    const char *sets[] = {"setting.schedule=v-min",
                          "setting.making=published",
                          "setting.devices=8",
                          "setting.microbatches=16",
                          "setting.memory=3.5 GiB",
                          "setting.activation.size=1 GiB",
                          "setting.times={F: 1 ms, B: 1 ms, W: 1 ms}"};
    done x = run_with(sets, 7);
    assert_int_equal(x.row.status, PC_RUN_OUT_OF_MEMORY);
    free_run(&x);
    x = run_times("v-adaptive", 16, unequal, "published", "memory=5 GiB");
    assert_true(x.row.activation_gib_max <= 5 && x.row.activation_gib_max > 4);
    free_run(&x);
}

/* The room counts with both plans, the link's time with one. */
static void test_memory_counts(void **state) {
    (void)state;
    done tight = run_times("v-adaptive", 16, unequal, "equal", "memory=5 GiB");
    done wide = run_times("v-adaptive", 16, unequal, "equal", "memory=8 GiB");
    assert_true(tight.row.activation_gib_max <= 5 && wide.row.activation_gib_max > 5);
    assert_true(tight.row.memory_limit_gib == 5 && wide.row.memory_limit_gib == 8);
    assert_false(is_same_order(&tight, &wide));
    free_run(&tight);
    free_run(&wide);
}

/* Schedules that do not search have no plan, and are what they are. */
static void test_no_effect(void **state) {
    (void)state;
    static const char *const schedules[] = {"1f1b", "zb-h1", "chimera"};
    for (size_t i = 0; i < sizeof schedules / sizeof *schedules; i++) {
        done a = run_times(schedules[i], 16, unequal, "equal", "transfer.time=1 ms");
        done b = run_times(schedules[i], 16, unequal, "costs", "transfer.time=1 ms");
        assert_true(a.row.trace_hash == b.row.trace_hash && a.row.trace_hash != 0);
        assert_string_equal(a.row.making, "");
        free_run(&a);
        free_run(&b);
    }
}

/* With the block, the transfers, and the times that the plan was made at. */
static void test_no_memory(void **state) {
    (void)state;
    static const char *const plans[] = {"setting.making=equal", "setting.making=costs"};
    for (int i = 0; i < 2; i++) {
        const char *const sets[] = {"setting.devices=2",      "setting.microbatches=4",
                                    "setting.schedule=zb-1p", "setting.times={F: 3 ms, B: 4 ms, W: 2 ms}",
                                    "setting.trace=true",     plans[i]};
        pc_error error;
        pc_scenario *scenario = load_with(NULL, sets, 6);
        pc_run_spec spec = spec_of(scenario, 0);
        refusals x = {.most = 5000};
        while (next_refusal(&x)) {
            pc_run_row row;
            pc_run_detail detail = {0};
            x.code = pc_run_row_make(&spec, NULL, &row, &detail, &error);
            if (x.code == PC_OK) assert_true(detail.block.devices == 2 && detail.replay.trace.transfer_count == 8);
            if (x.code == PC_OK) pc_run_detail_free(&detail);
        }
        assert_true(x.tried > 21);
        pc_run_spec_free(&spec);
        pc_scenario_free(scenario);
    }
}

/* ---- the repeating bubble ---- */

/* In steady state a handcrafted V-Min takes 12 ms for every microbatch more, where its passes take but 3 + 4 + 2. The
 * order fits F = B = W, where a microbatch costs just its 3 x 3 ms, and the bubble does not fade with more microbatches
 * ('Controllable Memory', figure 5). So does the public V-Min: 855 and 1623 half milliseconds at m = 32 and 64 are 12
 * ms each, and 0.326 of the time at m = 32, of which ours saves some at both ends. One made for the costs waits less.
 */
static void test_bubble_repeats(void **state) {
    (void)state;
    enum { FIRST = 32, STEP = 8, RUNS = 3 };
    double planned_s[RUNS], cost_s[RUNS], equal_s[RUNS];
    for (int i = 0; i < RUNS; i++) {
        done planned = run_times("v-min", FIRST + i * STEP, unequal, "equal", "overhead=0 ms");
        done at_costs = run_times("v-min", FIRST + i * STEP, unequal, "costs", "overhead=0 ms");
        done at_equal = run_times("v-min", FIRST + i * STEP, "F: 3 ms, B: 3 ms, W: 3 ms", "equal", "overhead=0 ms");
        assert_true(planned.row.bubble_rate_span > 0.25 && planned.row.bubble_rate_span <= 0.326316);
        planned_s[i] = planned.row.iteration_s;
        cost_s[i] = at_costs.row.iteration_s;
        equal_s[i] = at_equal.row.iteration_s;
        free_run(&planned);
        free_run(&at_costs);
        free_run(&at_equal);
    }
    double each = (planned_s[1] - planned_s[0]) / STEP, cost_each = (cost_s[1] - cost_s[0]) / STEP;
    assert_true(fabs(planned_s[2] - planned_s[1] - STEP * each) < 1e-12);
    assert_true(fabs(each - 12e-3) < 1e-12);
    assert_true(cost_each < each);
    assert_true(fabs(equal_s[1] - equal_s[0] - STEP * 9e-3) < 1e-12);
}

/* ---- on a cluster ---- */

static done run_cluster(const char *machine, const char *plan, const char *more) {
    char text[3][128];
    const char *sets[9] = {"setting.model.from=gpt3-1.3b", "setting.schedule=v-min", "setting.tp=1", "setting.pp=4",
                           "setting.microbatches=12",      "setting.trace=true"};
    snprintf(text[0], sizeof text[0], "setting.machine=%s", machine);
    snprintf(text[1], sizeof text[1], "setting.making=%s", plan);
    snprintf(text[2], sizeof text[2], "setting.%s", more);
    for (int i = 0; i < 3; i++) sets[6 + i] = text[i];
    return run_with(sets, 9);
}

/* The order is one for machines whose costs differ; those of the costs are not. */
static void test_cluster(void **state) {
    (void)state;
    done a100 = run_cluster("dgx-a100", "equal", "zero=1"), slow = run_cluster("a100-pcie", "equal", "network=flows");
    done at_costs = run_cluster("dgx-a100", "costs", "zero=1"),
         published = run_cluster("dgx-a100", "published", "zero=1");
    assert_int_equal(published.row.status, PC_RUN_OK);
    assert_true(published.row.iteration_s > at_costs.row.iteration_s);
    assert_false(is_same_order(&published, &at_costs));
    assert_string_equal(published.row.making, "published");
    assert_int_equal(a100.row.status, PC_RUN_OK);
    assert_int_equal(slow.row.status, PC_RUN_OK);
    assert_true(is_same_order(&a100, &slow));
    assert_false(is_same_order(&a100, &at_costs));
    assert_true(a100.row.iteration_s > at_costs.row.iteration_s && slow.row.iteration_s > a100.row.iteration_s);
    assert_string_equal(a100.row.making, "equal");
    assert_string_equal(at_costs.row.making, "costs");
    free_run(&published);
    free_run(&a100);
    free_run(&slow);
    free_run(&at_costs);
}

/* ---- the limit in the row ---- */

static void test_limit_of_a_cluster(void **state) {
    (void)state;
    done own = run_cluster("dgx-a100", "costs", "zero=1"), given = run_cluster("dgx-a100", "costs", "memory=33 GiB");
    done none = run_cluster("dgx-a100", "costs", "memory=1 GiB");
    const pc_gpu *gpu = &own.spec.iteration.machine.gpu;
    assert_true(own.row.memory_limit_gib == (double)(gpu->memory_bytes - gpu->memory_reserved_bytes) / (double)GIB);
    assert_true(given.row.memory_limit_gib == 33 && none.row.memory_limit_gib == 1);
    assert_int_equal(none.row.status, PC_RUN_OUT_OF_MEMORY);
    assert_true(own.detail.memory[0].capacity_bytes == gpu->memory_bytes - gpu->memory_reserved_bytes);
    free_run(&own);
    free_run(&given);
    free_run(&none);
}

/* The least of the devices that have one; nothing where there is none, or nothing to fill it with. */
static void test_limit_of_given_times(void **state) {
    (void)state;
    static const struct {
        const char *sets[3];
        double gib;
    } cases[] = {
        {{"setting.activation.size=1 GiB", "setting.memory=9 GiB", "title=x"}, 9},
        {{"setting.activation.size=1 GiB", "title=x", "title=x"}, NAN},
        {{"title=x", "setting.memory=9 GiB", "title=x"}, NAN},
        {{"setting.activation.size=1 GiB", "setting.memory=9 GiB",
          "setting.stages=[{F: 1 ms, BW: 1 ms, memory: 7 GiB}, {F: 1 ms, BW: 1 ms}]"},
         7},
        {{"setting.activation.size=1 GiB", "title=x",
          "setting.stages=[{F: 1 ms, BW: 1 ms}, {F: 1 ms, BW: 1 ms, memory: 6.5 GiB}]"},
         6.5},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *sets[7] = {"setting.devices=2", "setting.microbatches=2", "setting.schedule=1f1b",
                               "setting.times={F: 1 ms, BW: 1 ms}"};
        for (int k = 0; k < 3; k++) sets[4 + k] = cases[i].sets[k];
        done result = run_with(sets, 7);
        assert_true(isnan(cases[i].gib) ? isnan(result.row.memory_limit_gib)
                                        : result.row.memory_limit_gib == cases[i].gib);
        assert_string_equal(result.row.making, "");
        free_run(&result);
    }
}

/* ---- the longest passes in the row ---- */

static void assert_passes(const pc_run_row *row, double f_s, double b_s, double w_s) {
    assert_true(fabs(row->pass_f_s - f_s) < 1e-15 && fabs(row->pass_b_s - b_s) < 1e-15);
    assert_true(isnan(w_s) ? isnan(row->pass_w_s) : fabs(row->pass_w_s - w_s) < 1e-15);
}

/* Of each kind that of the stage where it is longest; a chunk has its share; BW where the schedule does not split. */
static void test_passes_of_given_times(void **state) {
    (void)state;
    static const struct {
        const char *schedule;
        double f_s, b_s, w_s;
    } cases[] = {{"setting.schedule=zb-h1", 4e-3, 6e-3, 3e-3},
                 {"setting.schedule=1f1b", 4e-3, 9e-3, NAN},
                 {"setting.schedule=v-half", 2e-3, 3e-3, 1.5e-3}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *const sets[] = {
            "setting.devices=3", "setting.microbatches=6", cases[i].schedule,
            "setting.stages=[{F: 1 ms, B: 6 ms, W: 3 ms}, {F: 2 ms, B: 1 ms, W: 1 ms}, {F: 4 ms, B: 2 ms, W: 2 ms}]"};
        done result = run_with(sets, 4);
        assert_passes(&result.row, cases[i].f_s, cases[i].b_s, cases[i].w_s);
        free_run(&result);
    }
}

static double longest_in(const pc_replay_trace *trace, pc_pass_kind kind) {
    pc_time longest = -1;
    for (int64_t i = 0; i < trace->pass_count; i++) {
        pc_time took = trace->pass_end_ps[i] - trace->pass_start_ps[i];
        if (trace->pass[i].kind == (int)kind && took > longest) longest = took;
    }
    return longest < 0 ? NAN : (double)longest * 1e-12;
}

/* Where transfers go on beside them, passes last in the trace what they cost. */
static void test_passes_of_a_cluster(void **state) {
    (void)state;
    done split = run_cluster("dgx-a100", "costs", "zero=1"), whole = run_cluster("dgx-a100", "costs", "schedule=1f1b");
    const pc_replay_trace *of_split = &split.detail.replay.trace, *of_whole = &whole.detail.replay.trace;
    assert_passes(&split.row, longest_in(of_split, PC_PASS_F), longest_in(of_split, PC_PASS_B),
                  longest_in(of_split, PC_PASS_W));
    assert_passes(&whole.row, longest_in(of_whole, PC_PASS_F), longest_in(of_whole, PC_PASS_BW), NAN);
    assert_true(split.row.pass_w_s > 0);
    free_run(&split);
    free_run(&whole);
}

/* ---- parameters in the row ---- */

/* 12 L h^2 + 13 L h in the layers, V h + s h + 2 h around them (Narayanan et al. 2021, equation 2): L 24, h and s 2048;
 * V is 50257 rounded up to a multiple of 128 times TP: 50304, and with 8 ranks 51200. */
static void test_parameters(void **state) {
    (void)state;
    const double h = 2048, inner = 24 * (12 * h * h + 13 * h) + h * h + 2 * h;
    done one = run_cluster("dgx-a100", "costs", "zero=1"), eight = run_cluster("dgx-a100", "costs", "tp=8");
    assert_true(one.row.model_parameters == inner + 50304 * h);
    assert_true(eight.row.model_parameters == inner + 51200 * h);
    assert_true(one.row.parameters == inner + 50304 * h); /* however it is cut */
    assert_true(eight.row.parameters == inner + 50304 * h);
    assert_true(eight.row.active_parameters == inner + 50304 * h); /* nothing in it is an expert's */
    free_run(&one);
    free_run(&eight);
    done times = run_times("1f1b", 16, equal, "costs", "overhead=0 ms");
    assert_true(isnan(times.row.model_parameters) && isnan(times.row.parameters));
    assert_true(isnan(times.row.active_parameters));
    free_run(&times);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order_is_that_of_equal_times),
        cmocka_unit_test(test_order_of_others),
        cmocka_unit_test(test_limits_of_others),
        cmocka_unit_test(test_memory_counts),
        cmocka_unit_test(test_no_effect),
        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_bubble_repeats),
        cmocka_unit_test(test_cluster),
        cmocka_unit_test(test_limit_of_a_cluster),
        cmocka_unit_test(test_limit_of_given_times),
        cmocka_unit_test(test_passes_of_given_times),
        cmocka_unit_test(test_passes_of_a_cluster),
        cmocka_unit_test(test_parameters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
