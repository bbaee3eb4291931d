/* Grouped products: how rows are spread over groups, what a shape may be, and the products on the host against plain
 * ones and against the reference, in 16 and 8 bits. */
#include "tests/one_device.h"

#include "kernels/dtype.h"
#include "kernels/families.h"
#include "kernels/gemm_grouped.h"
#include "kernels/kernel_check.h"

enum { ROLES = 3, SCALINGS = 3 };
static const pc_kernel_family *const families[SCALINGS][ROLES] = {
    {&pc_family_grouped_gemm_forward, &pc_family_grouped_gemm_input_gradient, &pc_family_grouped_gemm_weight_gradient},
    {&pc_family_fp8_grouped_gemm_forward, &pc_family_fp8_grouped_gemm_input_gradient,
     &pc_family_fp8_grouped_gemm_weight_gradient},
    {&pc_family_fp8_block_grouped_gemm_forward, &pc_family_fp8_block_grouped_gemm_input_gradient,
     &pc_family_fp8_block_grouped_gemm_weight_gradient}};

static pc_kernel_shape shape_of(bool is_low, int64_t groups, int64_t m, int64_t n, int64_t k) {
    pc_low_scaling scaling = is_low ? PC_LOW_TENSOR : PC_LOW_NONE;
    return (pc_kernel_shape){.dtype = PC_BF16, .scaling = scaling, .batch = groups, .m = m, .n = n, .k = k};
}

/* ---- rows ---- */

/* Two groups of 100 on average: of 200 rows the first half of the groups has 200 (1/2 + 1/4) / 2 = 75. In 8 bits, of
 * 96: 192 rows are 12 steps, and 12 * 3/8 = 4.5 are 4, 64 rows. */
static void test_starts(void **state) {
    (void)state;
    pc_kernel_shape two = shape_of(false, 2, 100, 16, 16), low = shape_of(true, 2, 96, 16, 16);
    assert_int_equal(pc_gemm_group_start(&two, 0), 0);
    assert_int_equal(pc_gemm_group_start(&two, 1), 75);
    assert_int_equal(pc_gemm_group_start(&two, 2), 200);
    assert_int_equal(pc_gemm_group_start(&low, 1), 64);
    assert_int_equal(pc_gemm_group_start(&low, 2), 192);
}

/* All rows are some group's, none has fewer than half of the mean less a step, and in 8 bits steps are of 16. */
static void test_rows(void **state) {
    (void)state;
    test_random random = {21};
    for (long i = 0; i < test_cases(200, 2000); i++) {
        bool is_low = i % 2 == 1;
        int64_t step = is_low ? 16 : 1, groups = test_between(&random, 1, 300), before = 0;
        pc_kernel_shape s = shape_of(is_low, groups, step * test_between(&random, 2, 4000), 16, 16);
        for (int64_t group = 0; group < groups; group++) {
            int64_t end = pc_gemm_group_start(&s, group + 1), rows = end - before;
            assert_true(rows >= step && rows % step == 0);
            assert_true(2 * rows > s.m - 2 * step && 2 * rows < 3 * s.m + 2 * step);
            before = end;
        }
        assert_int_equal(before, groups * s.m);
    }
}

/* ---- shapes ---- */

static void test_refuses(void **state) {
    (void)state;
    for (int i = 0; i < 2 * ROLES; i++) {
        const pc_kernel_family *family = families[i / ROLES][i % ROLES];
        bool is_low = i >= ROLES;
        pc_kernel_shape good = shape_of(is_low, 3, 48, 32, 64), bad = good;
        bad.batch = 0;
        refuses(family, bad, "0 groups");
        bad = good, bad.batch = PC_GROUPS_MOST + 1;
        refuses(family, bad, "1025 groups");
        bad = good, bad.m = is_low ? 40 : 1;
        refuses(family, bad, is_low ? "40 rows a group; expected a multiple of 16" : "1 rows a group");
        bad = good, bad.m = INT64_C(1) << 30;
        refuses(family, bad, "less than 2^31");
        bad = good, bad.n = 0;
        refuses(family, bad, "grouped_gemm: ");
        bad = good, bad.epilogue = PC_EPILOGUE_BIAS;
        refuses(family, bad, "an epilogue");
        bad = good, bad.scaling = is_low ? PC_LOW_NONE : PC_LOW_TENSOR;
        refuses(family, bad, "expected");
    }
}

/* 3 groups of 48 rows, n = 32, k = 64: 144 x 64 = 9,216 inputs, 144 x 32 = 4,608 outputs, 3 x 2,048 = 6,144 weights. */
static void test_tensors(void **state) {
    (void)state;
    static const int64_t counts[ROLES][3] = {{9216, 6144, 4608}, {4608, 6144, 9216}, {4608, 9216, 6144}};
    for (int i = 0; i < 2 * ROLES; i++) {
        int role = i % ROLES, of_c = role == PC_KERNEL_WEIGHT_GRADIENT ? 4 : 2, element = i < ROLES ? 2 : 1;
        const pc_kernel_family *family = families[i / ROLES][role];
        pc_kernel_shape shape = shape_of(i >= ROLES, 3, 48, 32, 64);
        pc_tensor tensors[PC_KERNEL_TENSORS];
        int count;
        assert_int_equal(family->tensors(&shape, tensors, &count, NULL), PC_OK);
        assert_int_equal(count, i < ROLES ? 3 : 5);
        for (int t = 0; t < count; t++) assert_int_equal(tensors[t].count, t < 3 ? counts[role][t] : 3);
        int64_t bytes = element * (counts[role][0] + counts[role][1]) + of_c * counts[role][2] + (count - 3) * 4 * 3;
        assert_int_equal(family->bytes(&shape), bytes);
        assert_int_equal(family->flops(&shape), INT64_C(2) * 3 * 48 * 32 * 64);
        assert_int_equal(family->group, PC_KERNEL_GROUPED_GEMM);
    }
}

/* In blocks, of 2 groups of 384 rows, n = 256 and k = 640: 768 rows are 6 steps of 128, of which the first group has
 * 6 * 3/8 = 2.25, so 2: 256 rows. A line of k has 5 scales of 128, of n 2; weights are 2 x 5 or 5 x 2 blocks in lines
 * of 8 or 4. */
static void test_scales_of_blocks(void **state) {
    (void)state;
    static const int64_t before[ROLES][2] = {{256 * 5, 2 * 8}, {256 * 2, 5 * 4}, {256 * 2, 640 * 2}};
    static const int64_t all[ROLES][2] = {{768 * 5, 2 * 2 * 8}, {768 * 2, 2 * 5 * 4}, {256 * 6, 640 * 6}};
    for (int role = 0; role < ROLES; role++) {
        const pc_kernel_family *family = families[2][role];
        pc_kernel_shape shape = shape_of(true, 2, 384, 256, 640);
        shape.scaling = PC_LOW_BLOCK;
        assert_int_equal(pc_gemm_group_start(&shape, 1), 256);
        pc_tensor tensors[PC_KERNEL_TENSORS];
        int count;
        assert_int_equal(family->tensors(&shape, tensors, &count, NULL), PC_OK);
        for (int i = 0; i < 2; i++) {
            assert_int_equal(pc_gemm_group_scales(family->role, &shape, i, 0), 0);
            assert_int_equal(pc_gemm_group_scales(family->role, &shape, i, 1), before[role][i]);
            assert_int_equal(tensors[i ? PC_GEMM_B_SCALE : PC_GEMM_A_SCALE].count, all[role][i]);
        }
        shape.m = 400;
        refuses(family, shape, "400 rows a group; expected a multiple of 128, at least 256");
    }
}

/* ---- what comes out ---- */

static void check(pc_device *device, const pc_kernel_family *family, const pc_kernel_shape *shape, uint64_t seed) {
    pc_kernel_check found;
    pc_error error = {0};
    if (pc_kernel_check_run(device, family, shape, seed, &found, &error)) fail_msg("%s", error.message);
    if (!found.is_right)
        fail_msg("%s, %lld of %lld x %lld x %lld: %s", family->name, (long long)shape->batch, (long long)shape->m,
                 (long long)shape->n, (long long)shape->k, found.message);
}

static void test_random_shapes(void **state) {
    test_random random = {22};
    for (long i = 0; i < 2 * ROLES * test_cases(4, 10); i++) {
        bool is_low = i % 2 == 1;
        int64_t step = is_low ? 16 : 1, most = 64 / step;
        const pc_kernel_family *family = families[is_low][i / 2 % ROLES];
        pc_kernel_shape shape = shape_of(is_low, test_between(&random, 1, 9), step * test_between(&random, 2, most),
                                         step * test_between(&random, 1, most), step * test_between(&random, 1, most));
        if (is_low && test_between(&random, 0, 1)) shape.low = PC_E5M2;
        if (!is_low && test_between(&random, 0, 1)) shape.dtype = PC_FP16;
        shape.accumulates = family->role == PC_KERNEL_WEIGHT_GRADIENT && test_between(&random, 0, 1);
        check(*state, family, &shape, (uint64_t)i);
    }
}

static void test_blocks(void **state) {
    test_random random = {23};
    for (long i = 0; i < ROLES * test_cases(1, 4); i++) {
        const pc_kernel_family *family = families[2][i % ROLES];
        pc_kernel_shape shape =
            shape_of(true, test_between(&random, 1, 3), 128 * test_between(&random, 2, 3), 128, 128);
        shape.scaling = PC_LOW_BLOCK;
        shape.n = 128 * test_between(&random, 1, 2);
        check(*state, family, &shape, (uint64_t)i);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_starts),  cmocka_unit_test(test_rows),          cmocka_unit_test(test_refuses),
        cmocka_unit_test(test_tensors), cmocka_unit_test(test_random_shapes), cmocka_unit_test(test_scales_of_blocks),
        cmocka_unit_test(test_blocks),
    };
    return cmocka_run_group_tests_name("gemm_grouped", tests, open_device, close_device);
}
