/* Products of 8 bits: what a shape may be, where scales lie, and the products on the host against a calculation by hand
 * and against the reference, with every scaling, in all roles. */
#include "tests/one_device.h"

#include "kernels/dtype.h"
#include "kernels/families.h"
#include "kernels/gemm_low.h"
#include "kernels/kernel_check.h"

#include <math.h>

enum { ROLES = 3, SCALINGS = 3 };
static const pc_kernel_family *const families[SCALINGS][ROLES] = {
    {&pc_family_fp8_gemm_forward, &pc_family_fp8_gemm_input_gradient, &pc_family_fp8_gemm_weight_gradient},
    {&pc_family_fp8_block_gemm_forward, &pc_family_fp8_block_gemm_input_gradient,
     &pc_family_fp8_block_gemm_weight_gradient},
    {&pc_family_mxfp8_gemm_forward, &pc_family_mxfp8_gemm_input_gradient, &pc_family_mxfp8_gemm_weight_gradient},
};

static pc_kernel_shape shape_of(const pc_kernel_family *family, int64_t m, int64_t n, int64_t k) {
    return (pc_kernel_shape){.dtype = PC_BF16, .scaling = family->low->scaling, .batch = 1, .m = m, .n = n, .k = k};
}

/* ---- shapes ---- */

static void test_refuses(void **state) {
    (void)state;
    static const char *const k_words[] = {"k is 72; expected a multiple of 16", "k is 72; expected a multiple of 128",
                                          "k is 72; expected a multiple of 32"};
    for (int s = 0; s < SCALINGS; s++)
        for (int role = 0; role < ROLES; role++) {
            const pc_kernel_family *family = families[s][role];
            pc_kernel_shape good = shape_of(family, 32, 48, 128), bad = good;
            bad.m = 24;
            refuses(family, bad, "m is 24");
            bad = good, bad.n = 0;
            refuses(family, bad, "n is 0");
            bad = good, bad.k = 72;
            refuses(family, bad, k_words[s]);
            bad = good, bad.batch = 2;
            refuses(family, bad, "more than one product");
            bad = good, bad.epilogue = PC_EPILOGUE_BIAS;
            refuses(family, bad, "an epilogue");
            bad = good, bad.dtype = PC_FP32;
            refuses(family, bad, "not of 16 bits");
            bad = good, bad.scaling = PC_LOW_NONE;
            refuses(family, bad, "no scaling");
            bad = good, bad.scaling = s ? PC_LOW_TENSOR : PC_LOW_MX;
            refuses(family, bad, s ? "fp8; expected" : "mxfp8; expected fp8");
            bad = good, bad.m = bad.n = bad.k = INT32_MAX / 128 * 128;
            refuses(family, bad, "more than can be counted");
            bad = good, bad.accumulates = true;
            if (role != PC_KERNEL_WEIGHT_GRADIENT) refuses(family, bad, "sum with what was there");
            bad = good, bad.low = PC_E5M2;
            if (s > 0) refuses(family, bad, "e5m2 in blocks");
        }
    pc_kernel_shape shape = shape_of(families[0][0], 32, 48, 128);
    refuses(&pc_family_gemm_forward, shape, "inputs of fp8"); /* is not for products of 16 bits */
}

/* m = 144, n = 272, k = 640: a has 92,160 numbers, b 174,080, c 39,168. One scale; or for 128 of k five times 144 and
 * 272, of weights three blocks of rows in lines of 8; or bytes, 256 and 384 rows by 20. */
static void test_tensors(void **state) {
    (void)state;
    static const int64_t scales[SCALINGS][ROLES][2] = {
        {{1, 1}, {1, 1}, {1, 1}}, {{720, 24}, {720, 24}, {720, 1360}}, {{5120, 7680}, {5120, 7680}, {5120, 7680}}};
    for (int s = 0; s < SCALINGS; s++)
        for (int role = 0; role < ROLES; role++) {
            const pc_kernel_family *family = families[s][role];
            pc_kernel_shape shape = shape_of(family, 144, 272, 640);
            pc_tensor tensors[PC_KERNEL_TENSORS];
            int count, element = s == 2 ? 1 : 4, of_c = role == PC_KERNEL_WEIGHT_GRADIENT ? 4 : 2;
            if (s == 0) shape.low = PC_E5M2;
            assert_int_equal(family->tensors(&shape, tensors, &count, NULL), PC_OK);
            assert_int_equal(count, 5);
            assert_int_equal(tensors[PC_GEMM_A].dtype, s == 0 && role > 0 ? PC_E5M2 : PC_E4M3);
            assert_int_equal(tensors[PC_GEMM_B].dtype, PC_E4M3);
            assert_int_equal(tensors[PC_GEMM_A_SCALE].count, scales[s][role][0]);
            assert_int_equal(tensors[PC_GEMM_B_SCALE].count, scales[s][role][1]);
            int64_t bytes = 92160 + 174080 + 39168 * of_c + element * (scales[s][role][0] + scales[s][role][1]);
            assert_int_equal(family->bytes(&shape), bytes);
            assert_int_equal(family->flops(&shape), INT64_C(2) * 144 * 272 * 640);
            assert_int_equal(pc_gemm_low_is_fast(family->role, &shape), s == 0 && role == 0);
            shape.accumulates = role == PC_KERNEL_WEIGHT_GRADIENT;
            assert_int_equal(family->bytes(&shape), bytes + (shape.accumulates ? 4 * 39168 : 0));
        }
    assert_string_equal(families[1][2]->low->measured, "gemm_weight_gradient");
    assert_string_equal(pc_low_name(families[1][2]->low->scaling), "fp8_block");
}

/* ---- scales ---- */

/* By hand: row 200 and number 300 of 272 rows of 640. The third part of k; of blocks the second line of 8; of bytes
 * number 9 of the row, in tile (1, 2) of five across, line 200 % 32 = 8, third of four rows there (200 - 128 = 72). */
static void test_places(void **state) {
    (void)state;
    assert_int_equal(pc_scale_place(PC_SCALE_ONE, 272, 640, 200, 300), 0);
    assert_int_equal(pc_scale_place(PC_SCALE_ROW_128, 272, 640, 200, 300), 2 * 272 + 200);
    assert_int_equal(pc_scale_place(PC_SCALE_BLOCK_128, 272, 640, 200, 300), 8 + 2);
    assert_int_equal(pc_scale_place(PC_SCALE_ROW_32, 272, 640, 200, 300), (5 + 2) * 512 + 8 * 16 + 2 * 4 + 1);
}

/* No two places meet that should not, and all are within the count. */
static void test_places_are_apart(void **state) {
    (void)state;
    static const struct {
        pc_scale_layout layout;
        int64_t rows, along; /* that share a scale */
    } layouts[] = {{PC_SCALE_ROW_128, 1, 128}, {PC_SCALE_BLOCK_128, 128, 128}, {PC_SCALE_ROW_32, 1, 32}};
    enum { ROWS = 304, K = 640, MOST = 8192 };
    for (int i = 0; i < 3; i++) {
        static int64_t owner[MOST];
        memset(owner, 0, sizeof owner);
        for (int64_t row = 0; row < ROWS; row++)
            for (int64_t at = 0; at < K; at++) {
                int64_t place = pc_scale_place(layouts[i].layout, ROWS, K, row, at);
                int64_t mine = 1 + row / layouts[i].rows * 1000 + at / layouts[i].along;
                assert_in_range(place, 0, pc_scale_count(layouts[i].layout, ROWS, K) - 1);
                assert_true(owner[place] == 0 || owner[place] == mine);
                owner[place] = mine;
            }
    }
}

/* ---- by hand ---- */

enum { M = 16, N = 16, K = 128 };

/* a is 2 and b is 3 everywhere, but b's first row along k is 0.5: with scales of 4 and 0.25 a product is
 * 128 * 2 * 3 = 768, in the first column 128; both formats hold them. */
static void check_by_hand(pc_device *device, const pc_kernel_family *family, pc_dtype low, bool accumulates) {
    pc_kernel_shape shape = shape_of(family, M, N, K);
    static uint8_t a[M * K], b[N * K], a_bytes[512], b_bytes[512];
    float a_scale[M], b_scale[N], c[M * N];
    bool is_mx = shape.scaling == PC_LOW_MX;
    void *const tensors[] = {a, b, c, is_mx ? (void *)a_bytes : a_scale, is_mx ? (void *)b_bytes : b_scale};
    pc_dtype of_c = family->role == PC_KERNEL_WEIGHT_GRADIENT ? PC_FP32 : PC_BF16;
    shape.low = low;
    shape.accumulates = accumulates;
    pc_dtype of_a = family->role == PC_KERNEL_FORWARD ? PC_E4M3 : low;
    for (int i = 0; i < M * K; i++) pc_dtype_set(of_a, a, i, 2);
    for (int i = 0; i < N * K; i++) pc_dtype_set(PC_E4M3, b, i, i < K ? 0.5 : 3);
    for (int i = 0; i < 512; i++) a_bytes[i] = 129, b_bytes[i] = 125;
    for (int i = 0; i < M; i++) a_scale[i] = 4, b_scale[i] = 0.25f;
    for (int i = 0; i < M * N; i++) pc_dtype_set(of_c, c, i, accumulates ? 1000 : NAN);
    assert_int_equal(family->launch(device, &shape, tensors, NULL), PC_OK);
    for (int i = 0; i < M * N; i++)
        assert_true(pc_dtype_get(of_c, c, i) == (i % N ? 768 : 128) + (accumulates ? 1000 : 0));
}

static void test_by_hand(void **state) {
    for (int s = 0; s < SCALINGS; s++)
        for (int role = 0; role < ROLES; role++) check_by_hand(*state, families[s][role], PC_E4M3, false);
    check_by_hand(*state, families[0][1], PC_E5M2, false);
    check_by_hand(*state, families[0][2], PC_E5M2, true);
    check_by_hand(*state, families[1][2], PC_E4M3, true);
}

/* ---- against the reference ---- */

static void test_random_shapes(void **state) {
    static const int64_t steps[SCALINGS] = {16, 128, 32};
    test_random random = {4};
    long cases = test_cases(4, 12);
    for (int s = 0; s < SCALINGS; s++)
        for (long i = 0; i < ROLES * cases; i++) {
            const pc_kernel_family *family = families[s][i % ROLES];
            pc_kernel_shape shape = shape_of(family, 16 * test_between(&random, 1, 9), 16 * test_between(&random, 1, 9),
                                             steps[s] * test_between(&random, 1, 384 / steps[s]));
            pc_kernel_check check;
            pc_error error = {0};
            if (s == 0 && test_between(&random, 0, 1)) shape.low = PC_E5M2;
            shape.accumulates = family->role == PC_KERNEL_WEIGHT_GRADIENT && test_between(&random, 0, 1);
            if (pc_kernel_check_run(*state, family, &shape, (uint64_t)i, &check, &error)) fail_msg("%s", error.message);
            if (!check.is_right)
                fail_msg("%s %lld x %lld x %lld: %s", family->name, (long long)shape.m, (long long)shape.n,
                         (long long)shape.k, check.message);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refuses),          cmocka_unit_test(test_tensors), cmocka_unit_test(test_places),
        cmocka_unit_test(test_places_are_apart), cmocka_unit_test(test_by_hand), cmocka_unit_test(test_random_shapes),
    };
    return cmocka_run_group_tests_name("gemm_low", tests, open_device, close_device);
}
