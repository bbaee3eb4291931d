/* Products of 8 bits over cuBLASLt: what the library is asked for, and which GPUs and libraries can do them. The
 * library is made up (fake_cublaslt.h): it multiplies just what its descriptors say, with the scales where its
 * documentation has them, and refuses what that forbids. */
#include "tests/support.h"

#include "kernels/cuda/runtime.h"
#include "kernels/dtype.h"
#include "kernels/families.h"
#include "kernels/gemm_low.h"
#include "kernels/kernel_check.h"
#include "tests/fake_cublaslt.h"
#include "tests/fake_cuda.h"
#include "tests/fake_device.h"

enum { ROLES = 3, SCALINGS = 3 };
static const pc_kernel_family *const families[SCALINGS][ROLES] = {
    {&pc_family_fp8_gemm_forward, &pc_family_fp8_gemm_input_gradient, &pc_family_fp8_gemm_weight_gradient},
    {&pc_family_fp8_block_gemm_forward, &pc_family_fp8_block_gemm_input_gradient,
     &pc_family_fp8_block_gemm_weight_gradient},
    {&pc_family_mxfp8_gemm_forward, &pc_family_mxfp8_gemm_input_gradient, &pc_family_mxfp8_gemm_weight_gradient},
};

/* ---- what comes out ---- */

static void check_shape(pc_device *device, const pc_kernel_family *family, const pc_kernel_shape *shape) {
    pc_kernel_check check;
    pc_error error = {0};
    if (pc_kernel_check_run(device, family, shape, 5, &check, &error) != PC_OK)
        fail_msg("%s: %s: %s", family->name, error.message, fake_cublaslt_now()->fault);
    if (!check.is_right)
        fail_msg("%s (%lld, %lld, %lld): %s", family->name, (long long)shape->m, (long long)shape->n,
                 (long long)shape->k, check.message);
    bool is_fast = family->role == PC_KERNEL_FORWARD && shape->scaling == PC_LOW_TENSOR;
    assert_int_equal(fake_cublaslt_now()->last_was_fast, is_fast);
}

static void test_random_shapes(void **state) {
    (void)state;
    static const int64_t steps[SCALINGS] = {16, 128, 32};
    test_random random = {12};
    pc_device *device = fake_device_open();
    long cases = test_cases(3, 20);
    for (int s = 0; s < SCALINGS; s++)
        for (long i = 0; i < ROLES * cases; i++) {
            const pc_kernel_family *family = families[s][i % ROLES];
            pc_kernel_shape shape = {.dtype = PC_BF16, .scaling = family->low->scaling, .batch = 1};
            shape.m = 16 * test_between(&random, 1, 10);
            shape.n = 16 * test_between(&random, 1, 10);
            shape.k = steps[s] * test_between(&random, 1, 640 / steps[s]);
            if (s == 0 && test_between(&random, 0, 1)) shape.low = PC_E5M2;
            shape.accumulates = family->role == PC_KERNEL_WEIGHT_GRADIENT && test_between(&random, 0, 1);
            check_shape(device, family, &shape);
        }
    assert_int_equal(fake_cublaslt_now()->faults, 0);
    fake_device_close(device);
}

/* Formats of the gradient and scalings are products of their own: each is asked for and remembered. */
static void test_remembered_apart(void **state) {
    (void)state;
    pc_device *device = fake_device_open();
    pc_kernel_shape shape = {.dtype = PC_BF16, .scaling = PC_LOW_TENSOR, .batch = 1, .m = 16, .n = 32, .k = 128};
    check_shape(device, families[0][1], &shape);
    int asked = fake_cublaslt_now()->asked;
    shape.low = PC_E5M2;
    check_shape(device, families[0][1], &shape);
    assert_true(fake_cublaslt_now()->asked > asked);
    asked = fake_cublaslt_now()->asked;
    shape.low = PC_E4M3;
    shape.scaling = PC_LOW_BLOCK;
    check_shape(device, families[1][1], &shape);
    assert_true(fake_cublaslt_now()->asked > asked);
    fake_device_close(device);
}

/* ---- who can ---- */

static void check_can(int major, size_t version, const bool expected[SCALINGS], const char *words) {
    fake_device_reset(NULL);
    fake.compute_major = major;
    fake_cublaslt_now()->version = version;
    pc_device *device = fake_device_open();
    for (int s = 0; s < SCALINGS; s++)
        for (int role = 0; role < ROLES; role++) {
            pc_error error = {0};
            assert_int_equal(families[s][role]->low->can(device, &error), expected[s] ? PC_OK : PC_ERROR_INPUT);
            if (!expected[s] && !strstr(error.message, words)) fail_msg("%s", error.message);
            assert_int_equal(strstr(error.message, pc_low_name(families[s][role]->low->scaling)) != NULL, !expected[s]);
        }
    fake_device_close(device);
}

static void test_who_can(void **state) {
    (void)state;
    static const bool none[SCALINGS] = {false}, hopper[SCALINGS] = {true, true, false},
                      blackwell[SCALINGS] = {true, false, true}, old[SCALINGS] = {true, false, false};
    check_can(8, 130002, none, "compute capability 8.0, cuBLAS 13.0.2");
    check_can(9, 130002, hopper, "10.0 or later, and cuBLAS 12.9 or later");
    check_can(9, 120800, old, "cuBLAS 12.8.0");
    check_can(10, 130002, blackwell, "expected 9.0, and cuBLAS 12.9 or later");
}

static void test_without_library(void **state) {
    (void)state;
    fake_cublaslt_now()->create = CUBLAS_STATUS_NOT_INITIALIZED;
    pc_device *device = fake_device_open();
    pc_error error = {0};
    assert_int_equal(families[0][0]->low->can(device, &error), PC_ERROR_IO);
    fake_device_close(device);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_random_shapes, fake_device_reset),
        cmocka_unit_test_setup(test_remembered_apart, fake_device_reset),
        cmocka_unit_test_setup(test_who_can, fake_device_reset),
        cmocka_unit_test_setup(test_without_library, fake_device_reset),
    };
    return cmocka_run_group_tests_name("cuda_gemm_low", tests, NULL, NULL);
}
