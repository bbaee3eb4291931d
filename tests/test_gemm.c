/* The matrix products: what a shape may be, what its tensors are, and the products on the host against a calculation by
 * hand and against the reference, in both formats, all layouts, ragged sizes. */
#include "tests/one_device.h"

#include "kernels/dtype.h"
#include "kernels/families.h"
#include "kernels/gemm.h"
#include "kernels/kernel_check.h"

#include <math.h>

static const pc_kernel_family *const families[] = {&pc_family_gemm_forward, &pc_family_gemm_input_gradient,
                                                   &pc_family_gemm_weight_gradient};

static pc_kernel_shape shape_of(pc_dtype dtype, int64_t m, int64_t n, int64_t k) {
    return (pc_kernel_shape){.dtype = dtype, .batch = 1, .m = m, .n = n, .k = k};
}

/* ---- shapes ---- */

static void refuses_by_name(const pc_kernel_family *family, pc_kernel_shape shape, const char *words) {
    refuses(family, shape, words);
    refuses(family, shape, family->name);
}

static void test_refuses(void **state) {
    (void)state;
    for (int i = 0; i < 3; i++) {
        pc_kernel_shape good = shape_of(PC_BF16, 3, 4, 5), bad = good;
        bad.dtype = PC_FP32;
        refuses_by_name(families[i], bad, "fp32");
        bad = good, bad.m = 0;
        refuses_by_name(families[i], bad, "m is 0");
        bad = good, bad.n = -1;
        refuses_by_name(families[i], bad, "n is -1");
        bad = good, bad.k = INT64_C(1) << 31;
        refuses_by_name(families[i], bad, "k is 2147483648");
        bad = good, bad.batch = 0;
        refuses_by_name(families[i], bad, "batch is 0");
        bad = good, bad.m = bad.n = bad.batch = INT32_MAX;
        refuses_by_name(families[i], bad, "more than can be counted");
        bad = good, bad.m = bad.n = bad.k = INT32_MAX;
        refuses_by_name(families[i], bad, "more than can be counted");
    }
    pc_kernel_shape bad = shape_of(PC_FP16, 3, 4, 5);
    bad.epilogue = PC_EPILOGUE_BIAS;
    refuses_by_name(families[1], bad, "behind a gradient");
    refuses_by_name(families[2], bad, "behind a gradient");
    bad.batch = 2;
    refuses_by_name(families[0], bad, "more than one product");
    bad.batch = 1, bad.accumulates = true;
    refuses_by_name(families[0], bad, "sum with what was there");
    bad.accumulates = false, bad.epilogue = (pc_epilogue)7;
    refuses_by_name(families[0], bad, "not known");
}

static void check_count(const pc_kernel_family *family, pc_kernel_shape shape, int count, int64_t bytes) {
    pc_tensor tensors[PC_KERNEL_TENSORS];
    int found;
    assert_int_equal(family->tensors(&shape, tensors, &found, NULL), PC_OK);
    assert_int_equal(found, count);
    assert_int_equal(family->bytes(&shape), bytes);
    assert_int_equal(family->flops(&shape), 2 * shape.batch * shape.m * shape.n * shape.k);
    assert_int_equal(tensors[PC_GEMM_A].count, shape.batch * shape.m * shape.k);
    assert_int_equal(tensors[PC_GEMM_B].count, shape.batch * shape.k * shape.n);
    assert_int_equal(tensors[PC_GEMM_C].count, shape.batch * shape.m * shape.n);
    bool is_fp32 = family->role == PC_KERNEL_WEIGHT_GRADIENT;
    assert_int_equal(tensors[PC_GEMM_C].dtype, is_fp32 ? PC_FP32 : shape.dtype);
    assert_int_equal(tensors[PC_GEMM_C].use, shape.accumulates ? PC_TENSOR_IN_PLACE : PC_TENSOR_OUTPUT);
}

/* m = 3, n = 4, k = 5: a has 15 elements, b 20, c 12, a bias 4. */
static void test_tensors(void **state) {
    (void)state;
    pc_kernel_shape shape = shape_of(PC_BF16, 3, 4, 5);
    check_count(families[0], shape, 3, 2 * (15 + 20 + 12));
    check_count(families[1], shape, 3, 2 * (15 + 20 + 12));
    check_count(families[2], shape, 3, 2 * (15 + 20) + 4 * 12);
    shape.accumulates = true; /* read and written */
    check_count(families[0], shape, 3, 2 * (15 + 20 + 2 * 12));
    check_count(families[2], shape, 3, 2 * (15 + 20) + 2 * 4 * 12);
    shape.batch = 7;
    check_count(families[2], shape, 3, 7 * (2 * (15 + 20) + 2 * 4 * 12));
    shape = shape_of(PC_FP16, 3, 4, 5);
    shape.epilogue = PC_EPILOGUE_BIAS;
    check_count(families[0], shape, 4, 2 * (15 + 20 + 12 + 4));
    shape.epilogue = PC_EPILOGUE_BIAS_GELU;
    check_count(families[0], shape, 5, 2 * (15 + 20 + 12 + 4 + 12));
}

/* ---- by hand ---- */

enum { M = 2, N = 3, K = 2 };

/* A = (1 2; 3 4), B = (5 6 7; 8 9 10): C = (21 24 27; 47 54 61). All of them whole numbers that both formats hold. */
static const double a_rows[M][K] = {{1, 2}, {3, 4}}, b_rows[K][N] = {{5, 6, 7}, {8, 9, 10}},
                    c_rows[M][N] = {{21, 24, 27}, {47, 54, 61}};

static void store_by_hand(pc_kernel_role role, pc_dtype dtype, void *a, void *b) {
    for (int i = 0; i < M; i++)
        for (int j = 0; j < K; j++)
            pc_dtype_set(dtype, a, role == PC_KERNEL_WEIGHT_GRADIENT ? j * M + i : i * K + j, a_rows[i][j]);
    for (int i = 0; i < K; i++)
        for (int j = 0; j < N; j++)
            pc_dtype_set(dtype, b, role == PC_KERNEL_FORWARD ? j * K + i : i * N + j, b_rows[i][j]);
}

static void check_by_hand(pc_device *device, const pc_kernel_family *family, pc_dtype dtype, bool accumulates) {
    uint16_t a[M * K], b[K * N];
    float c[M * N]; /* room for either format */
    void *const tensors[] = {a, b, c};
    pc_dtype of_c = family->role == PC_KERNEL_WEIGHT_GRADIENT ? PC_FP32 : dtype;
    pc_kernel_shape shape = shape_of(dtype, M, N, K);
    shape.accumulates = accumulates;
    store_by_hand(family->role, dtype, a, b);
    for (int i = 0; i < M * N; i++) pc_dtype_set(of_c, c, i, accumulates ? 100 : NAN);
    assert_int_equal(family->prepare(device, &shape, tensors, NULL), PC_OK);
    assert_int_equal(family->launch(device, &shape, tensors, NULL), PC_OK);
    for (int i = 0; i < M * N; i++)
        assert_true(pc_dtype_get(of_c, c, i) == c_rows[i / N][i % N] + (accumulates ? 100 : 0));
}

static void test_by_hand(void **state) {
    for (int i = 0; i < 3; i++)
        for (int dtype = PC_BF16; dtype <= PC_FP16; dtype++)
            for (int accumulates = 0; accumulates < 2; accumulates++)
                check_by_hand(*state, families[i], (pc_dtype)dtype, accumulates);
}

/* The same product in double precision, through the reference. */
static void test_reference_by_hand(void **state) {
    (void)state;
    for (int i = 0; i < 3; i++) {
        uint16_t a[M * K], b[K * N];
        double a_values[M * K], b_values[K * N], c[M * N], bias[N] = {1, -60, 0}, pre[M * N];
        double *const tensors[] = {a_values, b_values, c, bias, pre};
        store_by_hand(families[i]->role, PC_FP16, a, b);
        for (int j = 0; j < M * K; j++) a_values[j] = pc_dtype_get(PC_FP16, a, j);
        for (int j = 0; j < K * N; j++) b_values[j] = pc_dtype_get(PC_FP16, b, j);
        pc_kernel_shape shape = shape_of(PC_FP16, M, N, K);
        families[i]->reference(&shape, tensors);
        for (int j = 0; j < M * N; j++) assert_true(c[j] == c_rows[j / N][j % N]);
        shape.accumulates = true;
        families[i]->reference(&shape, tensors);
        for (int j = 0; j < M * N; j++) assert_true(c[j] == 2 * c_rows[j / N][j % N]);
    }
}

/* GELU is x where x is large, 0 where it is very negative, and x/2 (1 + tanh(...)) at 1: 0.8411919906082768 (by an
 * independent evaluation to 16 digits). 0 x 0 products leave the bias alone. */
static void test_epilogue_by_hand(void **state) {
    uint16_t a[1] = {0}, b[4] = {0}, c[4], bias[4], pre[4];
    void *const tensors[] = {a, b, c, bias, pre};
    const double given[4] = {1, 20, -20, 0}, right[4] = {0.8411919906082768, 20, 0, 0};
    for (int i = 0; i < 4; i++) pc_dtype_set(PC_FP16, bias, i, given[i]);
    pc_kernel_shape shape = shape_of(PC_FP16, 1, 4, 1);
    shape.epilogue = PC_EPILOGUE_BIAS;
    assert_int_equal(pc_family_gemm_forward.launch(*state, &shape, tensors, NULL), PC_OK);
    for (int i = 0; i < 4; i++) assert_true(pc_dtype_get(PC_FP16, c, i) == given[i]);
    shape.epilogue = PC_EPILOGUE_BIAS_GELU;
    assert_int_equal(pc_family_gemm_forward.launch(*state, &shape, tensors, NULL), PC_OK);
    for (int i = 0; i < 4; i++) {
        assert_true(pc_dtype_get(PC_FP16, pre, i) == given[i]);
        assert_true(pc_dtype_get(PC_FP16, c, i) == pc_dtype_round(PC_FP16, right[i]));
    }
    double zero[4] = {0}, c_values[4], pre_values[4];
    double *const values[] = {zero, zero, c_values, (double *)given, pre_values};
    pc_family_gemm_forward.reference(&shape, values);
    for (int i = 0; i < 4; i++) assert_true(fabs(c_values[i] - right[i]) < 1e-15);
    for (int i = 0; i < 4; i++) assert_true(pre_values[i] == given[i]);
}

/* ---- against the reference ---- */

static double check_shape(pc_device *device, const pc_kernel_family *family, const pc_kernel_shape *shape,
                          uint64_t seed) {
    pc_kernel_check check;
    pc_error error = {0};
    assert_int_equal(pc_kernel_check_run(device, family, shape, seed, &check, &error), PC_OK);
    if (!check.is_right)
        fail_msg("%s %lld x (%lld, %lld, %lld): %s", family->name, (long long)shape->batch, (long long)shape->m,
                 (long long)shape->n, (long long)shape->k, check.message);
    return check.worst_error;
}

/* ---- what a check is worth: families whose answer is slightly another one ---- */

static double scale_of_wrong; /* what the last element is multiplied by */

static void wrong_forward(const pc_kernel_shape *shape, double *const *tensors) {
    pc_gemm_forward_reference(shape, tensors);
    tensors[PC_GEMM_C][shape->m * shape->n - 1] *= scale_of_wrong;
}

static void wrong_weight_gradient(const pc_kernel_shape *shape, double *const *tensors) {
    pc_gemm_weight_gradient_reference(shape, tensors);
    tensors[PC_GEMM_C][shape->m * shape->n - 1] *= scale_of_wrong;
}

static bool is_found_right(pc_device *device, const pc_kernel_family *family, int64_t k, double scale) {
    pc_kernel_shape shape = shape_of(PC_BF16, 6, 5, k);
    pc_kernel_check check;
    scale_of_wrong = scale;
    assert_int_equal(pc_kernel_check_run(device, family, &shape, 3, &check, NULL), PC_OK);
    return check.is_right;
}

/* bf16 rounds by up to 2^-8 of a value: three times that, of a value as large as the typical one, is a fault. Sums of
 * 500 in fp32 are allowed 2^-22 (4 + 22 + 31) = 1.4e-5 of the sum of both. */
static void test_tolerance(void **state) {
    pc_kernel_family forward = pc_family_gemm_forward, gradient = pc_family_gemm_weight_gradient;
    forward.reference = wrong_forward;
    gradient.reference = wrong_weight_gradient;
    assert_true(is_found_right(*state, &forward, 70, 1));
    assert_false(is_found_right(*state, &forward, 70, 1 + 3 * 0x1p-8));
    assert_true(is_found_right(*state, &gradient, 500, 1));
    assert_false(is_found_right(*state, &gradient, 500, 1.001));
}

static void test_random_shapes(void **state) {
    test_random random = {7};
    long cases = test_cases(150, 750);
    for (long i = 0; i < cases; i++) {
        const pc_kernel_family *family = families[test_between(&random, 0, 2)];
        pc_kernel_shape shape =
            shape_of((pc_dtype)test_between(&random, PC_BF16, PC_FP16), test_between(&random, 1, 40),
                     test_between(&random, 1, 40), test_between(&random, 1, 70));
        if (family->role == PC_KERNEL_FORWARD) shape.epilogue = (pc_epilogue)test_between(&random, 0, 2);
        if (shape.epilogue == PC_EPILOGUE_NONE) {
            shape.batch = test_between(&random, 1, 3);
            shape.accumulates = test_between(&random, 0, 1) == 1;
        }
        check_shape(*state, family, &shape, (uint64_t)i);
    }
}

static void test_attributes(void **state) {
    pc_kernel_shape shape = shape_of(PC_BF16, 3, 4, 5);
    pc_kernel_attributes made;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(families[i]->attributes(*state, &shape, &made, NULL), PC_OK);
        assert_int_equal(made.launches, 1);
        assert_int_equal(made.registers, -1);
        assert_true(pc_kernel_family_find(families[i]->name) == families[i]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refuses),          cmocka_unit_test(test_tensors),
        cmocka_unit_test(test_by_hand),          cmocka_unit_test(test_reference_by_hand),
        cmocka_unit_test(test_epilogue_by_hand), cmocka_unit_test(test_tolerance),
        cmocka_unit_test(test_random_shapes),    cmocka_unit_test(test_attributes),
    };
    return cmocka_run_group_tests_name("gemm", tests, open_device, close_device);
}
