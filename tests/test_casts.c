/* Casts to 8 bits on the emulated device: random shapes, tiles that are not full, addresses that no vector fits,
 * numbers beyond the largest; and by hand. */
#include "tests/one_device.h"

#include "kernels/casts.h"
#include "kernels/dtype.h"
#include "kernels/families.h"
#include "kernels/kernel_check.h"

#include <math.h>

static const pc_kernel_family *const families[] = {&pc_family_cast, &pc_family_cast_transpose, &pc_family_amax};
enum { FAMILIES = sizeof families / sizeof *families };

static void check(pc_device *device, const pc_kernel_family *family, const pc_kernel_shape *shape, uint64_t seed) {
    pc_kernel_check found;
    pc_error error = {0};
    if (pc_kernel_check_run(device, family, shape, seed, &found, &error))
        fail_msg("%s of %lld x %lld: %s", family->name, (long long)shape->m, (long long)shape->n, error.message);
    if (!found.is_right)
        fail_msg("%s of %lld x %lld to %s, seed %llu: %s", family->name, (long long)shape->m, (long long)shape->n,
                 pc_dtype_name(pc_shape_low(shape)), (unsigned long long)seed, found.message);
}

/* ---- the check of all kernels, on shapes of our own ---- */

static void test_random_shapes(void **state) {
    test_random random = {6};
    for (long i = 0; i < test_cases(12, 24); i++)
        for (int f = 0; f < FAMILIES; f++) {
            pc_kernel_shape shape = {.dtype = i % 2 ? PC_FP16 : PC_BF16, .low = i % 3 ? PC_E4M3 : PC_E5M2};
            int64_t step = i % 4 == 3 ? 1 : 16; /* the wide form, but for a fourth */
            shape.m = step * test_between(&random, 1, 200 / step);
            shape.n = step * test_between(&random, 1, 200 / step);
            check(*state, families[f], &shape, (uint64_t)i);
        }
}

/* One tile and a part of the next, both ways; one row; more than a block of amax. */
static void test_edges(void **state) {
    static const int64_t sizes[][2] = {{128, 128}, {144, 128}, {128, 136}, {16, 8},    {1, 1},
                                       {1, 3000},  {300, 8},   {272, 392}, {17, 1000}, {64, 520}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int f = 0; f < FAMILIES; f++) {
            pc_kernel_shape shape = {.dtype = PC_BF16, .low = PC_E5M2, .m = sizes[i][0], .n = sizes[i][1]};
            check(*state, families[f], &shape, i);
        }
}

/* ---- by hand ---- */

enum { M = 16, N = 8 };

/* Every third number is 3, the others 0.3; times 160 they are 480, which saturates, and 48.046875 (0.3 is 0.30078125 in
 * bf16), which lies next to 48. */
static void test_by_hand(void **state) {
    const pc_kernel_shape shape = {.dtype = PC_BF16, .m = M, .n = N};
    uint16_t input[M * N + 8];
    uint8_t output[M * N], transposed[M * N];
    float scale = 160, amax = 1;
    for (int shift = 0; shift < 2; shift++) { /* once to a place where no vector fits */
        uint16_t *from = input + shift;
        void *const tensors[] = {from, &scale, output, transposed, &amax};
        for (int i = 0; i < M * N; i++) pc_dtype_set(PC_BF16, from, i, i % 3 ? -0.3 : 3);
        amax = 1;
        assert_int_equal(pc_family_cast_transpose.launch(*state, &shape, tensors, NULL), PC_OK);
        assert_true(amax == 3.0f);
        for (int i = 0; i < M * N; i++) {
            assert_true(pc_dtype_get(PC_E4M3, output, i) == (i % 3 ? -48 : 448));
            assert_int_equal(transposed[i % N * M + i / N], output[i]);
        }
    }
    float larger = 7;
    void *const looked_at[] = {input, &larger};
    assert_int_equal(pc_family_amax.launch(*state, &shape, looked_at, NULL), PC_OK);
    assert_true(larger == 7.0f); /* of iterations before */
}

/* ---- shapes ---- */

static void test_shapes(void **state) {
    (void)state;
    static const pc_kernel_shape good = {.dtype = PC_FP16, .m = 30, .n = 7};
    static const int64_t bytes[FAMILIES] = {210 * 3 + 4, 210 * 4 + 12, 210 * 2 + 8};
    static const pc_kernel_shape wrong[] = {{.dtype = PC_BF16, .m = 0, .n = 8},
                                            {.dtype = PC_BF16, .m = 8, .n = INT64_C(1) << 31},
                                            {.dtype = PC_FP32, .m = 8, .n = 8}};
    for (int f = 0; f < FAMILIES; f++) {
        pc_tensor tensors[PC_KERNEL_TENSORS];
        int count, written = 0;
        assert_int_equal(families[f]->tensors(&good, tensors, &count, NULL), PC_OK);
        assert_int_equal(families[f]->bytes(&good), bytes[f]);
        assert_int_equal(families[f]->flops(&good), 0);
        for (int i = 0; i < count; i++) written += tensors[i].use != PC_TENSOR_INPUT;
        assert_int_equal(written, f == 1 ? 3 : 1);
        for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
            pc_error error = {0};
            assert_int_equal(families[f]->tensors(&wrong[i], tensors, &count, &error), PC_ERROR_INPUT);
            assert_non_null(strstr(error.message, families[f]->name));
            assert_non_null(strstr(error.message, "; expected "));
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_shapes),
        cmocka_unit_test(test_edges),
        cmocka_unit_test(test_by_hand),
        cmocka_unit_test(test_shapes),
    };
    return cmocka_run_group_tests_name("casts", tests, open_device, close_device);
}
