/* One run: what goes into the row, and what stays undefined; activation formulas; simulated time. */
#include "tests/support.h"

#include "engine/alloc.h"
#include "engine/simtime.h"
#include "models/workload/activation_memory.h"
#include "results/row.h"

#include <math.h>

/* ---- time ---- */

static void test_time(void **state) {
    (void)state;
    pc_time time = 7;
    assert_true(pc_time_from_seconds(0.018522, &time));
    assert_int_equal(time, 18522000000);
    assert_true(pc_time_from_seconds(0.4e-12, &time) && time == 0);
    assert_true(pc_time_from_seconds(0.5e-12, &time) && time == 1);
    assert_false(pc_time_from_seconds(-1e-9, &time));
    assert_false(pc_time_from_seconds(-0.4e-12, &time));
    assert_false(pc_time_from_seconds(NAN, &time));
    assert_false(pc_time_from_seconds(INFINITY, &time));
    assert_false(pc_time_from_seconds(9223372.1, &time));
    assert_int_equal(time, 1);
    assert_false(pc_time_add(PC_TIME_MAX, 1, &time));
    assert_true(pc_time_add(PC_TIME_MAX, 0, &time));
}

/* ---- activations ---- */

/* The 1.5B model of Zero Bubble: s = 1024, b = 6, h = 2304, a = 24. 34 sbh = 34 * 14155776 = 481296384; 5 a s^2 b =
 * 5 * 24 * 1048576 * 6 = 754974720; 2 sbh = 28311552. */
static void test_activation_bytes(void **state) {
    (void)state;
    pc_shape shape = {22, 2304, 24, 1024, 6};
    int64_t bytes;
    assert_true(pc_activation_bytes_per_layer(&shape, &bytes));
    assert_int_equal(bytes, 481296384 + 754974720);
    assert_true(pc_activation_b_bytes_per_layer(&shape, &bytes));
    assert_int_equal(bytes, 28311552 + 754974720);
    assert_true(pc_activation_input_bytes_per_layer(&shape, &bytes));
    assert_int_equal(bytes, 28311552);
    shape.heads = 0;
    assert_false(pc_activation_bytes_per_layer(&shape, &bytes));
    shape = (pc_shape){1, INT64_MAX / 8, 1, 1, 1};
    assert_false(pc_activation_bytes_per_layer(&shape, &bytes));
}

/* 22 layers, embedding and head on 24 parts: none, one each, none; on 8: 2, 3 ..., 2. 21 do not divide. */
static void test_layers_of_part(void **state) {
    (void)state;
    int64_t layers, sum = 0;
    for (int part = 0; part < 24; part++) {
        assert_int_equal(pc_layers_of_part(PC_LAYERS_ENDS, 22, 24, part, &layers, NULL), PC_OK);
        assert_int_equal(layers, part > 0 && part < 23);
    }
    for (int part = 0; part < 8; part++) {
        assert_int_equal(pc_layers_of_part(PC_LAYERS_ENDS, 22, 8, part, &layers, NULL), PC_OK);
        assert_int_equal(layers, part > 0 && part < 7 ? 3 : 2);
        sum += layers;
    }
    assert_int_equal(sum, 22);
    assert_int_equal(pc_layers_of_part(PC_LAYERS_EVEN, 24, 8, 0, &layers, NULL), PC_OK);
    assert_int_equal(layers, 3);
    pc_error error;
    assert_int_equal(pc_layers_of_part(PC_LAYERS_EVEN, 21, 8, 0, &layers, &error), PC_ERROR_INPUT);
    assert_string_equal(error.message, "layers: 21 do not divide evenly over 8 model parts");
}

/* ---- a run ---- */

static pc_run_labels make_labels(void) {
    pc_run_labels labels = pc_run_labels_none();
    labels.run = 3;
    strcpy(labels.name, "case.x");
    labels.published_bubble_rate_span = 0.25;
    return labels;
}

static pc_run_spec make_spec(const char *schedule, int p, int m) {
    pc_run_spec spec = {.devices = p, .microbatches = m, .chunks = 1, .microbatch_size = 2, .seq_len = 512};
    spec.generator = pc_generator_find(schedule);
    assert_int_equal(pc_costs_create(p, 1, &spec.costs, NULL), PC_OK);
    for (int i = 0; i < p; i++) {
        static const pc_time duration[PC_PASS_KINDS] = {1000000, 1000000, 1000000, 2000000, 1000000};
        memcpy(spec.costs.duration_ps + (ptrdiff_t)i * PC_PASS_KINDS, duration, sizeof duration);
        spec.costs.activation_bytes[i] = INT64_C(1) << 29; /* half a GiB */
    }
    return spec;
}

/* 1F1B, p = 4, m = 8, F = B = W = 1 us: (8 + 3) * 3 = 33 us, and 7 us of overhead: 40 us. 16 sequences on 4 GPUs in 40
 * us: 100,000 a second and GPU. Stage 0 holds 4 microbatches of half a GiB. */
static void test_row(void **state) {
    (void)state;
    pc_run_row row;
    pc_run_detail detail;
    pc_run_spec spec = make_spec("1f1b", 4, 8);
    const pc_run_labels labels = make_labels();
    spec.overhead_ps = 7000000;
    spec.has_activation = spec.trace = true;
    assert_int_equal(pc_run_row_make(&spec, &labels, &row, &detail, NULL), PC_OK);
    assert_int_equal(row.run, 3);
    assert_int_equal(row.status, PC_RUN_OK);
    assert_string_equal(row.schedule, "1f1b");
    assert_true(fabs(row.iteration_s - 40e-6) < 1e-18);
    assert_true(fabs(row.samples_per_s_per_gpu - 1e5) < 1e-6);
    assert_true(row.activation_gib_max == 2.0);
    assert_true(fabs(row.bubble_rate_span - 9.0 / 33.0) < 1e-12);
    assert_int_equal(row.global_batch, 16);
    assert_int_equal(row.gpus, 4);
    assert_int_equal(row.tp, -1);
    assert_true(isnan(row.mfu) && isnan(row.memory_gib_max));
    assert_true(row.published_bubble_rate_span == 0.25);
    assert_int_equal(detail.replay.trace.pass_count, 4 * 8 * 2);
    pc_run_detail_free(&detail);
    pc_run_spec_free(&spec);
}

/* Nothing that was not given is made up. */
static void test_undefined(void **state) {
    (void)state;
    pc_run_row row;
    pc_run_detail detail;
    pc_run_spec spec = make_spec("zb-h2", 3, 9);
    spec.microbatch_size = -1;
    assert_int_equal(pc_run_row_make(&spec, NULL, &row, &detail, NULL), PC_OK);
    assert_int_equal(row.global_batch, -1);
    assert_true(isnan(row.samples_per_s_per_gpu));
    assert_true(isnan(row.activation_gib_max));
    assert_int_equal(detail.replay.trace.pass_count, 0);
    pc_run_detail_free(&detail);
    pc_run_spec_free(&spec);
}

/* A schedule that recomputes says so. p = 2, m = 3, F = R = 1 us, BW = 2 us: 3 + 3 * 4 = 15 us, and at most two inputs
 * and the rest of one are held, 2/4 + 3/4 of half a GiB. */
static void test_recompute(void **state) {
    (void)state;
    pc_run_row row;
    pc_run_detail detail;
    pc_run_spec spec = make_spec("1f1b-r", 2, 3);
    spec.has_activation = true;
    for (int i = 0; i < 2; i++) spec.costs.activation_kept_bytes[i] = INT64_C(1) << 27;
    assert_int_equal(pc_run_row_make(&spec, NULL, &row, &detail, NULL), PC_OK);
    assert_string_equal(row.recompute, "full");
    assert_true(fabs(row.iteration_s - 15e-6) < 1e-18);
    assert_true(row.activation_gib_max == 0.625);
    pc_run_detail_free(&detail);
    spec.generator = pc_generator_find("1f1b");
    assert_int_equal(pc_run_row_make(&spec, NULL, &row, &detail, NULL), PC_OK);
    assert_string_equal(row.recompute, "");
    pc_run_detail_free(&detail);
    pc_run_spec_free(&spec);
}

static void test_infeasible(void **state) {
    (void)state;
    pc_run_row row;
    pc_run_detail detail;
    pc_run_spec spec = make_spec("1f1b", 4, 6);
    spec.chunks = 2;
    assert_int_equal(pc_run_row_make(&spec, NULL, &row, &detail, NULL), PC_OK);
    assert_int_equal(row.status, PC_RUN_INFEASIBLE);
    assert_non_null(strstr(row.message, "1f1b: 2 chunks a device; expected 1"));
    assert_true(isnan(row.iteration_s));
    pc_run_detail_free(&detail);
    pc_run_spec_free(&spec);
}

/* Stage 0 wants a fourth half GiB where 1.75 are: 0.25 are free, 0.25 too much. */
static void test_out_of_memory(void **state) {
    (void)state;
    pc_run_row row;
    pc_run_detail detail;
    pc_run_spec spec = make_spec("1f1b", 4, 8);
    spec.has_activation = true;
    spec.memory_limit_bytes = pc_alloc(4, sizeof *spec.memory_limit_bytes);
    for (int d = 0; d < 4; d++) spec.memory_limit_bytes[d] = INT64_C(7) << 28;
    assert_int_equal(pc_run_row_make(&spec, NULL, &row, &detail, NULL), PC_OK);
    assert_int_equal(row.status, PC_RUN_OUT_OF_MEMORY);
    assert_string_equal(row.message, "device 0: F of microbatch 3, chunk 0 at 3e-06 s asks for 0.5 GiB and finds 0.25 "
                                     "GiB of 1.75 GiB free: 0.25 GiB too much (1f1b)");
    assert_true(isnan(row.iteration_s) && isnan(row.activation_gib_max));
    pc_run_detail_free(&detail);
    pc_run_spec_free(&spec);
}

static void expect_run(const pc_run_spec *spec, pc_run_status status, const char *engine, const char *message) {
    pc_run_row row;
    pc_run_detail detail;
    assert_int_equal(pc_run_row_make(spec, NULL, &row, &detail, NULL), PC_OK);
    assert_int_equal(row.status, status);
    assert_string_equal(row.engine, engine);
    assert_string_equal(row.message, message);
    if (status == PC_RUN_OK && spec->waits_for_memory) assert_true(row.activation_gib_max <= 1.75);
    pc_run_detail_free(&detail);
}

/* The same three halves fit where passes wait; of room for less than one, the first waits for ever. */
static void test_engines(void **state) {
    (void)state;
    pc_run_spec spec = make_spec("1f1b", 4, 8);
    spec.has_activation = true;
    spec.memory_limit_bytes = pc_alloc(4, sizeof *spec.memory_limit_bytes);
    for (int d = 0; d < 4; d++) spec.memory_limit_bytes[d] = INT64_C(7) << 28;
    expect_run(
        &spec, PC_RUN_OUT_OF_MEMORY, "events",
        "device 0: F of microbatch 3, chunk 0 at 3e-06 s asks for 0.5 GiB and finds 0.25 GiB of 1.75 GiB free: 0.25 "
        "GiB too much (1f1b)");
    spec.waits_for_memory = true;
    expect_run(&spec, PC_RUN_OK, "events", "");
    spec.memory_limit_bytes[0] = INT64_C(1) << 28;
    expect_run(
        &spec, PC_RUN_OUT_OF_MEMORY, "events",
        "device 0: F of microbatch 0, chunk 0 at 0 s waits, and nothing else can run: it asks for 0.5 GiB and finds "
        "0.25 GiB of 0.25 GiB free: 0.25 GiB too much (1f1b)");
    pc_free(spec.memory_limit_bytes);
    spec.memory_limit_bytes = NULL;
    spec.costs.activation_bytes[0] = 1;
    expect_run(&spec, PC_RUN_OK, "paths", "");
    spec.engine = PC_ENGINE_EVENTS;
    expect_run(&spec, PC_RUN_OK, "events", "");
    pc_run_spec_free(&spec);
}

/* A time that the schedule needs and nobody gave is an error that names the run. */
static void test_missing_time(void **state) {
    (void)state;
    pc_run_row row;
    pc_run_detail detail;
    pc_error error;
    pc_run_spec spec = make_spec("zb-h1", 2, 4);
    const pc_run_labels labels = make_labels();
    spec.costs.duration_ps[PC_PASS_W] = PC_TIME_NOT_GIVEN;
    assert_int_equal(pc_run_row_make(&spec, &labels, &row, &detail, &error), PC_ERROR_INPUT);
    assert_non_null(strstr(error.message, "run 3 (case.x): zb-h1: the time of W of chunk 0 on device 0 is not given"));
    assert_int_equal(pc_run_row_make(&spec, NULL, &row, &detail, NULL), PC_ERROR_INPUT);
    pc_run_spec_free(&spec);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_time),           cmocka_unit_test(test_activation_bytes),
        cmocka_unit_test(test_layers_of_part), cmocka_unit_test(test_row),
        cmocka_unit_test(test_undefined),      cmocka_unit_test(test_infeasible),
        cmocka_unit_test(test_recompute),      cmocka_unit_test(test_out_of_memory),
        cmocka_unit_test(test_engines),        cmocka_unit_test(test_missing_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
