/* Flash attention on the emulated device against the formula in double precision; and the formula's gradients against
 * differences of its values. */
#include "tests/support.h"

#include "kernels/attention.h"
#include "kernels/dtype.h"
#include "kernels/families.h"
#include "kernels/kernel_check.h"

#include <math.h>

/* ---- the formula itself ---- */

enum { TENSORS = PC_ATTENTION_BACKWARD_TENSORS };

/* A number evenly in [-1, 1). */
static double draw_number(test_random *random) {
    return (double)(test_draw(random) >> 11) * 0x1p-52 - 1;
}

/* All tensors of both directions as doubles, inputs drawn with the standard deviation sqrt(1/3) times `scale`. */
static void make_values(const pc_kernel_shape *shape, uint64_t seed, double scale, double *values[TENSORS]) {
    pc_tensor tensors[PC_KERNEL_TENSORS];
    int count;
    test_random random = {seed};
    assert_int_equal(pc_attention_backward_tensors(shape, tensors, &count, NULL), PC_OK);
    assert_int_equal(count, TENSORS);
    for (int i = 0; i < count; i++) {
        values[i] = calloc((size_t)tensors[i].count, sizeof(double));
        for (int64_t j = 0; j < tensors[i].count; j++)
            values[i][j] = pc_dtype_round(shape->dtype, draw_number(&random) * (i <= PC_ATTENTION_KEY ? scale : 1));
    }
}

static void free_values(double *values[TENSORS]) {
    for (int i = 0; i < TENSORS; i++) free(values[i]);
}

static int64_t count_of(const pc_kernel_shape *shape, int tensor) {
    pc_tensor tensors[PC_KERNEL_TENSORS];
    int count;
    assert_int_equal(pc_attention_backward_tensors(shape, tensors, &count, NULL), PC_OK);
    return tensors[tensor].count;
}

/* The loss whose gradients backward makes: the sum of out * out_gradient. */
static double loss(const pc_kernel_shape *shape, double *const *values) {
    pc_attention_forward_reference(shape, values);
    double sum = 0;
    for (int64_t i = 0; i < count_of(shape, PC_ATTENTION_OUT); i++)
        sum += values[PC_ATTENTION_OUT][i] * values[PC_ATTENTION_OUT_GRADIENT][i];
    return sum;
}

/* Central differences with a step of 1e-5 are off by a third derivative (about 1) times 1e-10 / 6, and by rounding of
 * about 1e-16 * 100 / 1e-5. */
static void check_differences(const pc_kernel_shape *shape, double *const *values, int input, int gradient) {
    const double step = 1e-5;
    for (int64_t i = 0; i < count_of(shape, input); i++) {
        double at = values[input][i];
        values[input][i] = at + step;
        double above = loss(shape, values);
        values[input][i] = at - step;
        double below = loss(shape, values);
        values[input][i] = at;
        double expected = (above - below) / (2 * step);
        if (fabs(values[gradient][i] - expected) > 1e-7)
            fail_msg("gradient %d[%ld]: %.12g; expected %.12g", gradient, (long)i, values[gradient][i], expected);
    }
}

static void test_reference_gradients(void **state) {
    (void)state;
    const pc_kernel_shape shapes[] = {
        {.batch = 1, .m = 3, .n = 5, .k = 8, .heads = 2, .kv_heads = 1},
        {.batch = 2, .m = 4, .n = 4, .k = 8, .heads = 2, .kv_heads = 2, .is_causal = true},
        {.batch = 1, .m = 2, .n = 6, .k = 8, .heads = 4, .kv_heads = 2, .is_causal = true},
        {.batch = 1, .m = 7, .n = 4, .k = 8, .heads = 1, .kv_heads = 1, .is_causal = true},
    };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        double *values[TENSORS];
        make_values(&shapes[i], i, 1, values);
        pc_attention_forward_reference(&shapes[i], values);
        pc_attention_backward_reference(&shapes[i], values);
        check_differences(&shapes[i], values, PC_ATTENTION_QUERY, PC_ATTENTION_QUERY_GRADIENT);
        check_differences(&shapes[i], values, PC_ATTENTION_KEY, PC_ATTENTION_KEY_GRADIENT);
        check_differences(&shapes[i], values, PC_ATTENTION_VALUE, PC_ATTENTION_VALUE_GRADIENT);
        free_values(values);
    }
}

/* By hand: of one query and two keys with q k1 / sqrt(8) = 0 and q k2 / sqrt(8) = log 3 the probabilities are 1/4 and
 * 3/4. */
static void test_reference_by_hand(void **state) {
    (void)state;
    const pc_kernel_shape shape = {.batch = 1, .m = 1, .n = 2, .k = 8, .heads = 1, .kv_heads = 1};
    double query[8] = {1}, key[16] = {0}, value[16] = {0}, out[8], log_sum;
    key[8] = sqrt(8) * log(3);
    value[0] = 4, value[8] = 8, value[9] = 1;
    double *values[] = {query, key, value, out, &log_sum};
    pc_attention_forward_reference(&shape, values);
    assert_true(fabs(out[0] - 7) < 1e-14 && fabs(out[1] - 0.75) < 1e-15 && out[2] == 0);
    assert_true(fabs(log_sum - log(4)) < 1e-15);
}

/* ---- kernels on inputs of their own ---- */

static pc_device *open_device(void **state) {
    (void)state;
    pc_device *device;
    assert_int_equal(pc_device_open(0, &device, NULL), PC_OK);
    return device;
}

static void check_right(pc_device *device, const pc_kernel_family *family, const pc_kernel_shape *shape) {
    pc_kernel_check check = {0};
    pc_error error = {0};
    if (pc_kernel_check_run(device, family, shape, 1, &check, &error)) fail_msg("%s", error.message);
    if (!check.is_right)
        fail_msg("%s %s, %ld sequences, %ld queries, %ld keys of %ld, heads %ld of %ld, causal %d: %s", family->name,
                 pc_dtype_name(shape->dtype), (long)shape->batch, (long)shape->m, (long)shape->n, (long)shape->k,
                 (long)shape->heads, (long)shape->kv_heads, shape->is_causal, check.message);
}

static void check_shape(pc_device *device, pc_kernel_shape shape) {
    check_right(device, &pc_family_attention_forward, &shape);
    check_right(device, &pc_family_attention_backward, &shape);
}

static void check_both(pc_device *device, pc_kernel_shape shape) {
    for (int dtype = PC_BF16; dtype <= PC_FP16; dtype++) {
        shape.dtype = (pc_dtype)dtype;
        check_shape(device, shape);
    }
}

/* Every kernel's width, full, and with a part of it unused. */
static void test_head_dimensions(void **state) {
    pc_device *device = open_device(state);
    const int64_t dimensions[][2] = {{32, 8}, {64, 40}, {96, 72}, {128, 104}, {256, 136}};
    for (int i = 0; i < 5; i++) {
        pc_kernel_shape shape = {.batch = 1, .m = 66, .n = 70, .heads = 1, .kv_heads = 1, .is_causal = i % 2 == 0};
        shape.k = dimensions[i][0];
        check_both(device, shape);
        shape.k = dimensions[i][1];
        shape.dtype = i % 2 ? PC_BF16 : PC_FP16;
        check_shape(device, shape);
    }
    pc_device_close(device);
}

/* Lengths around the tiles' edges, masked and not: one tile, more than one, the mask through the first, the last and
 * between; queries that see nothing. */
static void test_lengths(void **state) {
    pc_device *device = open_device(state);
    const int64_t lengths[][2] = {{1, 1},   {1, 130}, {7, 65},   {65, 7},   {63, 64},
                                  {64, 63}, {64, 64}, {130, 65}, {65, 130}, {130, 130}};
    for (size_t i = 0; i < 2 * sizeof lengths / sizeof *lengths; i++)
        check_shape(device, (pc_kernel_shape){.dtype = i / 2 % 2 ? PC_BF16 : PC_FP16,
                                              .batch = 1,
                                              .m = lengths[i / 2][0],
                                              .n = lengths[i / 2][1],
                                              .k = 32,
                                              .heads = 1,
                                              .kv_heads = 1,
                                              .is_causal = i % 2});
    pc_device_close(device);
}

/* Several key tiles of the kernels that split them among warps, and several query tiles of those for keys. */
static void test_many_tiles(void **state) {
    pc_device *device = open_device(state);
    const pc_kernel_shape shapes[] = {
        {.dtype = PC_BF16, .batch = 1, .m = 40, .n = 200, .k = 128, .heads = 1, .kv_heads = 1},
        {.dtype = PC_FP16, .batch = 1, .m = 200, .n = 30, .k = 128, .heads = 1, .kv_heads = 1, .is_causal = true},
        {.dtype = PC_BF16, .batch = 1, .m = 150, .n = 150, .k = 64, .heads = 1, .kv_heads = 1, .is_causal = true},
        {.dtype = PC_FP16, .batch = 1, .m = 80, .n = 72, .k = 256, .heads = 2, .kv_heads = 1, .is_causal = true},
    };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) check_shape(device, shapes[i]);
    pc_device_close(device);
}

/* Heads that share keys and values; sequences behind each other. */
static void test_groups(void **state) {
    pc_device *device = open_device(state);
    const int64_t heads[][2] = {{1, 1}, {3, 3}, {2, 1}, {4, 2}, {4, 1}};
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++)
        check_shape(device, (pc_kernel_shape){.dtype = i % 2 ? PC_BF16 : PC_FP16,
                                              .batch = 2,
                                              .m = 37,
                                              .n = 45,
                                              .k = 16,
                                              .heads = heads[i][0],
                                              .kv_heads = heads[i][1],
                                              .is_causal = true});
    pc_device_close(device);
}

/* ---- forward, then backward on what it left ---- */

/* Runs `family` on `values`, rounded, and puts what it wrote in their place; `upload`: the first so many tensors. */
static void run_family(pc_device *device, const pc_kernel_family *family, const pc_kernel_shape *shape,
                       double *values[TENSORS]) {
    pc_tensor tensors[PC_KERNEL_TENSORS];
    void *address[PC_KERNEL_TENSORS], *host[PC_KERNEL_TENSORS];
    int count;
    assert_int_equal(family->tensors(shape, tensors, &count, NULL), PC_OK);
    for (int i = 0; i < count; i++) {
        int64_t bytes = tensors[i].count * pc_dtype_bytes(tensors[i].dtype);
        host[i] = malloc((size_t)bytes);
        for (int64_t j = 0; j < tensors[i].count; j++) pc_dtype_set(tensors[i].dtype, host[i], j, values[i][j]);
        assert_int_equal(pc_device_allocate(device, bytes, &address[i], NULL), PC_OK);
        assert_int_equal(pc_device_upload(device, address[i], host[i], bytes, NULL), PC_OK);
    }
    assert_int_equal(family->launch(device, shape, address, NULL), PC_OK);
    for (int i = 0; i < count; i++) {
        int64_t bytes = tensors[i].count * pc_dtype_bytes(tensors[i].dtype);
        assert_int_equal(pc_device_download(device, host[i], address[i], bytes, NULL), PC_OK);
        for (int64_t j = 0; j < tensors[i].count; j++) values[i][j] = pc_dtype_get(tensors[i].dtype, host[i], j);
        pc_device_free(device, address[i]);
        free(host[i]);
    }
}

static double largest(const double *values, int64_t count) {
    double most = 0;
    for (int64_t i = 0; i < count; i++) most = isnan(values[i]) ? INFINITY : fmax(most, fabs(values[i]));
    return most;
}

/* `tolerance` is of the largest element, or of `least` where all are smaller. */
static void check_near(const pc_kernel_shape *shape, double *const *got, double *const *right, int tensor,
                       double tolerance, double least) {
    int64_t count = count_of(shape, tensor);
    double allowed = tolerance * fmax(least, largest(right[tensor], count));
    for (int64_t i = 0; i < count; i++)
        if (!(fabs(got[tensor][i] - right[tensor][i]) <= allowed))
            fail_msg("tensor %d[%ld]: %g; expected %g within %g", tensor, (long)i, got[tensor][i], right[tensor][i],
                     allowed);
}

/* All of it on the device against all of it in double precision. */
static void check_chain(const pc_kernel_shape *shape, double *got[TENSORS], double tolerance, double least) {
    pc_device *device = open_device(NULL);
    double *right[TENSORS];
    make_values(shape, 0, 1, right);
    for (int i = 0; i < TENSORS; i++) memcpy(right[i], got[i], (size_t)count_of(shape, i) * sizeof(double));
    pc_attention_forward_reference(shape, right);
    pc_attention_backward_reference(shape, right);
    run_family(device, &pc_family_attention_forward, shape, got);
    check_near(shape, got, right, PC_ATTENTION_OUT, tolerance, 0);
    check_near(shape, got, right, PC_ATTENTION_LOG_SUM, 1e-5, 0);
    run_family(device, &pc_family_attention_backward, shape, got);
    for (int i = PC_ATTENTION_QUERY_GRADIENT; i <= PC_ATTENTION_VALUE_GRADIENT; i++)
        check_near(shape, got, right, i, tolerance, least);
    free_values(got);
    free_values(right);
    pc_device_close(device);
}

static void test_chain(void **state) {
    (void)state;
    pc_kernel_shape shape = {.dtype = PC_BF16, .batch = 1, .m = 33, .n = 70, .k = 64, .heads = 2, .kv_heads = 1};
    double *values[TENSORS];
    make_values(&shape, 5, 1, values);
    check_chain(&shape, values, 0.02, 0);
    shape.is_causal = true;
    shape.dtype = PC_FP16;
    make_values(&shape, 6, 1, values);
    check_chain(&shape, values, 0.0025, 0);
}

/* Elements of up to 100 make scores of thousands, of which exp is no number. One key of a query gets all but nothing,
 * and the queries' and keys' gradients are 0, but for e to the minus hundreds. */
static void test_large_scores(void **state) {
    (void)state;
    pc_kernel_shape shape = {.dtype = PC_BF16, .batch = 1, .m = 40, .n = 66, .k = 32, .heads = 1, .kv_heads = 1};
    double *values[TENSORS];
    make_values(&shape, 7, 100, values);
    check_chain(&shape, values, 0.01, 0.01);
}

/* All keys of a head are the same: the scores are as large, and the probabilities equal. A score of up to 2e4 is off by
 * 1e-3 in fp32, and so is a probability. The queries' gradients are 0 in truth, as those of the scores add up to 0, and
 * differ from it by the rounding to 2^-11 of some 1/66, times 100 for the keys. */
static void test_large_equal_scores(void **state) {
    (void)state;
    pc_kernel_shape shape = {
        .dtype = PC_FP16, .batch = 1, .m = 40, .n = 66, .k = 32, .heads = 1, .kv_heads = 1, .is_causal = true};
    double *values[TENSORS];
    make_values(&shape, 8, 100, values);
    for (int i = 1; i < 66; i++)
        memcpy(values[PC_ATTENTION_KEY] + 32 * i, values[PC_ATTENTION_KEY], 32 * sizeof(double));
    check_chain(&shape, values, 0.01, 5);
}

/* Of 5 queries and 2 keys the first 3 queries see nothing. */
static void test_rows_without_keys(void **state) {
    pc_device *device = open_device(state);
    const pc_kernel_shape shape = {
        .dtype = PC_FP16, .batch = 1, .m = 5, .n = 2, .k = 8, .heads = 1, .kv_heads = 1, .is_causal = true};
    double *values[TENSORS];
    make_values(&shape, 3, 1, values);
    run_family(device, &pc_family_attention_forward, &shape, values);
    for (int i = 0; i < 5; i++) assert_int_equal(isinf(values[PC_ATTENTION_LOG_SUM][i]) ? 1 : 0, i < 3);
    assert_true(largest(values[PC_ATTENTION_OUT], 3 * 8) == 0);
    for (int i = 0; i < 8; i++) /* the fourth sees the first key alone */
        assert_true(values[PC_ATTENTION_OUT][3 * 8 + i] == values[PC_ATTENTION_VALUE][i]);
    run_family(device, &pc_family_attention_backward, &shape, values);
    assert_true(largest(values[PC_ATTENTION_QUERY_GRADIENT], 4 * 8) == 0); /* one key: its probability stays 1 */
    assert_true(largest(values[PC_ATTENTION_QUERY_GRADIENT] + 4 * 8, 8) > 0);
    assert_true(isfinite(largest(values[PC_ATTENTION_QUERY_GRADIENT], 5 * 8)));
    assert_true(isfinite(largest(values[PC_ATTENTION_KEY_GRADIENT], 2 * 8)));
    assert_true(isfinite(largest(values[PC_ATTENTION_VALUE_GRADIENT], 2 * 8)));
    free_values(values);
    pc_device_close(device);
}

/* ---- what a shape is told ---- */

static void check_refused(pc_kernel_shape shape, const char *words) {
    pc_tensor tensors[PC_KERNEL_TENSORS];
    int count = -1;
    pc_error error = {0};
    assert_int_equal(pc_attention_backward_tensors(&shape, tensors, &count, &error), PC_ERROR_INPUT);
    assert_int_equal(count, -1);
    if (!strstr(error.message, words)) fail_msg("\"%s\"; expected \"%s\" in it", error.message, words);
}

static void test_refusals(void **state) {
    (void)state;
    const pc_kernel_shape good = {.batch = 1, .m = 1, .n = 1, .k = 64, .heads = 6, .kv_heads = 2};
    pc_kernel_shape bad = good;
    bad.k = 20;
    check_refused(bad, "head dimension 20; expected a multiple of 8");
    bad.k = 264;
    check_refused(bad, "head dimension 264");
    bad = good, bad.kv_heads = 4;
    check_refused(bad, "4 key/value heads of 6 heads; expected a divisor");
    bad.kv_heads = 0;
    check_refused(bad, "0 key/value heads of 6");
    bad = good, bad.m = 0;
    check_refused(bad, "queries 0");
    bad = good, bad.n = INT64_MAX;
    check_refused(bad, "keys 9223372036854775807");
    bad = good, bad.batch = bad.m = 1 << 28;
    check_refused(bad, "rows of all sequences and heads");
    bad = good, bad.dtype = PC_FP32;
    check_refused(bad, "expected bf16 or fp16");
}

static void test_attributes(void **state) {
    pc_device *device = open_device(state);
    pc_kernel_shape shape = {.dtype = PC_BF16, .batch = 2, .m = 300, .n = 130, .k = 128, .heads = 6, .kv_heads = 2};
    pc_kernel_attributes made;
    assert_int_equal(pc_family_attention_forward.attributes(device, &shape, &made, NULL), PC_OK);
    assert_string_equal(made.kernel, "pc_attention_forward<bf16,128>");
    assert_int_equal(made.grid[0], 3 * 6 * 2); /* tiles of 128 queries */
    assert_int_equal(made.shared_bytes, (128 + 2 * 64) * 128 * 2);
    assert_int_equal(made.launches, 1);
    shape.k = 136;
    shape.dtype = PC_FP16;
    assert_int_equal(pc_family_attention_backward.attributes(device, &shape, &made, NULL), PC_OK);
    assert_string_equal(made.kernel, "pc_attention_backward<fp16,256>");
    assert_int_equal(made.grid[0], 3 * 2 * 2); /* tiles of 64 keys */
    assert_int_equal(made.launches, 4);
    pc_device_close(device);
}

/* Where a block has 99 KiB of shared memory: narrow heads run, wide ones are the shape's fault, not the device's. */
static void test_little_shared_memory(void **state) {
    pc_device *device = open_device(state);
    pc_kernel_shape shape = {.batch = 1, .m = 40, .n = 40, .k = 64, .heads = 2, .kv_heads = 1, .is_causal = true};
    pc_kernel_check check;
    pc_error error = {0};
    ((pc_device_info *)(uintptr_t)pc_device_about(device))->shared_bytes = 99 << 10;
    assert_int_equal(pc_kernel_check_run(device, &pc_family_attention_backward, &shape, 1, &check, NULL), PC_OK);
    assert_true(check.is_right);
    shape.k = 128;
    assert_int_equal(pc_kernel_check_run(device, &pc_family_attention_forward, &shape, 1, &check, NULL), PC_OK);
    assert_int_equal(pc_kernel_check_run(device, &pc_family_attention_backward, &shape, 1, &check, &error),
                     PC_ERROR_INPUT);
    assert_string_equal(error.message,
                        "attention_backward: heads of up to 128 need 132096 bytes of shared memory for a "
                        "block; this GPU has 101376"); /* (2 * 128 + 4 * 64) rows of 256, 4 * 64 floats */
    shape.k = 256;
    assert_int_equal(pc_kernel_check_run(device, &pc_family_attention_forward, &shape, 1, &check, NULL),
                     PC_ERROR_INPUT);
    pc_device_close(device);
}

/* As models/workload counts it, and each tensor once. */
static void test_work(void **state) {
    (void)state;
    const pc_kernel_shape shape = {.batch = 2, .m = 3, .n = 5, .k = 8, .heads = 4, .kv_heads = 2};
    assert_int_equal(pc_family_attention_forward.flops(&shape), 4 * 2 * 4 * 3 * 5 * 8);
    assert_int_equal(pc_family_attention_backward.flops(&shape), 10 * 2 * 4 * 3 * 5 * 8);
    int64_t query = 2 * 3 * 4 * 8, key = 2 * 5 * 2 * 8, rows = 2 * 4 * 3;
    assert_int_equal(pc_family_attention_forward.bytes(&shape), 2 * (2 * query + 2 * key) + 4 * rows);
    assert_int_equal(pc_family_attention_backward.bytes(&shape), 2 * (4 * query + 4 * key) + 4 * rows);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reference_by_hand),
        cmocka_unit_test(test_reference_gradients),
        cmocka_unit_test(test_head_dimensions),
        cmocka_unit_test(test_lengths),
        cmocka_unit_test(test_many_tiles),
        cmocka_unit_test(test_groups),
        cmocka_unit_test(test_chain),
        cmocka_unit_test(test_large_scores),
        cmocka_unit_test(test_large_equal_scores),
        cmocka_unit_test(test_rows_without_keys),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_attributes),
        cmocka_unit_test(test_little_shared_memory),
        cmocka_unit_test(test_work),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
