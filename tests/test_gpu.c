/* On a real GPU, where there is one: every family against its reference, and what the device promises of fills, memory,
 * time and marks. Skipped without a GPU. */
#include "tests/support.h"

#include "kernels/dtype.h"
#include "kernels/families.h"
#include "kernels/fill.h"
#include "kernels/kernel_check.h"

#include <math.h>

static pc_device *device;

/* ---- kernels ---- */

static bool check_shape(const pc_kernel_family *family, int number, const pc_kernel_shape *shape) {
    pc_kernel_check check = {0};
    pc_error error = {0};
    pc_code code = pc_kernel_check_run(device, family, shape, (uint64_t)number, &check, &error);
    if (code == PC_OK && check.is_right) return true;
    print_error("%s, shape %d (%s, %lld x %lld x %lld x %lld): %s\n", family->name, number, pc_dtype_name(shape->dtype),
                (long long)shape->batch, (long long)shape->m, (long long)shape->n, (long long)shape->k,
                code == PC_OK ? check.message : error.message);
    return false;
}

static void test_families(void **state) {
    (void)state;
    int count, wrong = 0;
    const pc_kernel_family *const *families = pc_kernel_families(&count);
    for (int i = 0; i < count; i++) {
        pc_kernel_shape shape;
        pc_error why = {0};
        if (families[i]->low && families[i]->low->can(device, &why) != PC_OK) {
            print_message("%s: left out: %s\n", families[i]->name, why.message);
            continue;
        }
        for (int number = 0; pc_kernel_check_shape(families[i], number, &shape); number++)
            wrong += !check_shape(families[i], number, &shape);
    }
    assert_int_equal(wrong, 0);
}

/* Large enough that a library splits k, swizzles and takes its large tiles. */
static void test_large_products(void **state) {
    (void)state;
    static const pc_kernel_family *const families[] = {&pc_family_gemm_forward, &pc_family_gemm_input_gradient,
                                                       &pc_family_gemm_weight_gradient};
    static const int64_t sizes[][3] = {{512, 768, 512}, {128, 128, 16384}, {1000, 520, 264}, {513, 127, 1025}};
    int wrong = 0;
    for (int i = 0; i < 3 * 4 * 2; i++) {
        const int64_t *size = sizes[i / 3 % 4];
        pc_kernel_shape shape = {.dtype = i / 12 ? PC_FP16 : PC_BF16, .batch = 1};
        shape.m = size[0];
        shape.n = size[1];
        shape.k = size[2];
        shape.accumulates = i % 3 == 2;
        shape.epilogue = i % 3 == 0 ? PC_EPILOGUE_BIAS_GELU : PC_EPILOGUE_NONE;
        wrong += !check_shape(families[i % 3], i, &shape);
    }
    assert_int_equal(wrong, 0);
}

/* Experts as models have them, but for fewer columns; uneven groups on several streams. */
static void test_large_grouped_products(void **state) {
    (void)state;
    static const int64_t sizes[][4] = {{2, 512, 512, 256}, {8, 256, 768, 512}, {16, 256, 256, 128}};
    int count, wrong = 0;
    const pc_kernel_family *const *families = pc_kernel_families(&count);
    for (int i = 0; i < 3 * count; i++) {
        const pc_kernel_family *family = families[i / 3];
        bool is_low = family->low != NULL;
        if (family->group != PC_KERNEL_GROUPED_GEMM || (is_low && family->low->can(device, NULL) != PC_OK)) continue;
        const int64_t *size = sizes[i % 3];
        pc_kernel_shape shape = {.dtype = PC_BF16, .batch = size[0], .m = size[1], .n = size[2], .k = size[3]};
        shape.scaling = is_low ? family->low->scaling : PC_LOW_NONE;
        shape.low = shape.scaling == PC_LOW_TENSOR && family->role != PC_KERNEL_FORWARD ? PC_E5M2 : PC_E4M3;
        shape.accumulates = family->role == PC_KERNEL_WEIGHT_GRADIENT;
        wrong += !check_shape(family, i, &shape);
    }
    assert_int_equal(wrong, 0);
}

/* In 8 bits, as large, and k as long as models have it: sums that stay in the matrix units lose most there. */
static void test_large_low_products(void **state) {
    (void)state;
    static const int64_t sizes[][3] = {{512, 768, 512}, {128, 256, 16384}, {1024, 528, 256}, {2048, 256, 2048}};
    int count, wrong = 0;
    const pc_kernel_family *const *families = pc_kernel_families(&count);
    for (int i = 0; i < 4 * count; i++) {
        const pc_kernel_family *family = families[i / 4];
        if (family->group != PC_KERNEL_GEMM || !family->low || family->low->can(device, NULL) != PC_OK) continue;
        const int64_t *size = sizes[i % 4];
        pc_kernel_shape shape = {.dtype = PC_BF16, .scaling = family->low->scaling, .batch = 1};
        shape.m = size[0];
        shape.n = size[1];
        shape.k = size[2];
        shape.low = shape.scaling == PC_LOW_TENSOR && i % 2 ? PC_E5M2 : PC_E4M3;
        shape.accumulates = family->role == PC_KERNEL_WEIGHT_GRADIENT;
        wrong += !check_shape(family, i, &shape);
    }
    assert_int_equal(wrong, 0);
}

/* ---- the device ---- */

static void check_fill(pc_dtype dtype, pc_fill fill, double scale) {
    enum { COUNT = 5000, SEED = 99 };
    char found[COUNT * 4];
    void *there;
    assert_int_equal(pc_device_allocate(device, sizeof found, &there, NULL), PC_OK);
    assert_int_equal(pc_device_fill(device, there, dtype, COUNT, fill, scale, SEED, NULL), PC_OK);
    assert_int_equal(pc_device_download(device, found, there, COUNT * pc_dtype_bytes(dtype), NULL), PC_OK);
    bool is_whole = dtype == PC_INT32 || dtype == PC_UINT8;
    for (int64_t i = 0; i < COUNT; i++) {
        double right = is_whole ? pc_fill_whole(fill, (uint64_t)scale, SEED, (uint64_t)i)
                                : (double)pc_fill_float(fill, pc_fill_factor(fill, scale), SEED, (uint64_t)i);
        assert_true(pc_dtype_get(dtype, found, i) == pc_dtype_round(dtype, right));
    }
    pc_device_free(device, there);
}

/* The same bits as on the host. */
static void test_fills(void **state) {
    (void)state;
    for (int dtype = PC_BF16; dtype <= PC_FP32; dtype++) {
        check_fill((pc_dtype)dtype, PC_FILL_ZERO, 0);
        check_fill((pc_dtype)dtype, PC_FILL_ONE, 0);
        check_fill((pc_dtype)dtype, PC_FILL_NORMAL, 0.7);
        check_fill((pc_dtype)dtype, PC_FILL_UNIFORM, 3);
    }
    for (int dtype = PC_E4M3; dtype <= PC_E5M2; dtype++) {
        check_fill((pc_dtype)dtype, PC_FILL_ONE, 0);
        check_fill((pc_dtype)dtype, PC_FILL_NORMAL, 0.7);
        check_fill((pc_dtype)dtype, PC_FILL_NORMAL, 300); /* beyond the largest e4m3 */
    }
    check_fill(PC_E8M0, PC_FILL_UNIFORM, 0.0125);
    check_fill(PC_INT32, PC_FILL_INDEX, 50257);
    check_fill(PC_UINT8, PC_FILL_INDEX, 200);
}

static pc_code fill_once(void *self, int repeat, pc_error *error) {
    return pc_device_fill(device, self, PC_FP32, INT64_C(16) << 20, PC_FILL_NORMAL, 1, (uint64_t)repeat, error);
}

/* What is freed counts no longer, though the device has not come to it yet, and its memory is given out again: a replay
 * (calib/device/replay_device.h) reads the most that was allocated while the host runs ahead. */
static void test_memory_ahead(void **state) {
    (void)state;
    const int64_t size = INT64_C(64) << 20, slack = INT64_C(2) << 20;
    int64_t before, now, peak;
    void *a = NULL;
    assert_int_equal(pc_device_memory_reset_peak(device, NULL), PC_OK);
    assert_int_equal(pc_device_allocated(device, &before, &peak, NULL), PC_OK);
    for (int i = 0; i < 20; i++) {
        assert_int_equal(pc_device_allocate(device, size, &a, NULL), PC_OK);
        for (int j = 0; j < 5; j++) assert_int_equal(fill_once(a, j, NULL), PC_OK);
        pc_device_free(device, a);
    }
    assert_int_equal(pc_device_allocated(device, &now, &peak, NULL), PC_OK); /* 6 GiB are still to be written */
    assert_int_equal(now, before);
    assert_true(peak - before >= size && peak - before <= size + slack);
    assert_int_equal(pc_device_wait(device, NULL), PC_OK);
}

/* An allocator may round up to its pieces, 2 MiB at most. */
static void test_memory(void **state) {
    (void)state;
    const int64_t size = INT64_C(64) << 20, slack = INT64_C(2) << 20;
    int64_t before, now, peak;
    void *a, *b;
    assert_int_equal(pc_device_memory_reset_peak(device, NULL), PC_OK);
    assert_int_equal(pc_device_allocated(device, &before, &peak, NULL), PC_OK);
    assert_int_equal(peak, before);
    assert_int_equal(pc_device_allocate(device, size, &a, NULL), PC_OK);
    assert_int_equal(pc_device_allocate(device, size, &b, NULL), PC_OK);
    pc_device_free(device, a);
    assert_int_equal(pc_device_wait(device, NULL), PC_OK);
    assert_int_equal(pc_device_allocated(device, &now, &peak, NULL), PC_OK);
    assert_true(now - before >= size && now - before <= size + slack);
    assert_true(peak - before >= 2 * size && peak - before <= 2 * (size + slack));
    pc_device_free(device, b);
    assert_int_equal(pc_device_allocate(device, INT64_C(1) << 50, &a, NULL), PC_ERROR_NO_MEMORY);
    assert_int_equal(pc_device_wait(device, NULL), PC_OK); /* it works on */
}

static pc_code fill_little(void *self, int repeat, pc_error *error) {
    return pc_device_fill(device, self, PC_FP32, 1024, PC_FILL_ZERO, 0, (uint64_t)repeat, error);
}

/* The host's launch of a graph is no part of its time: one short kernel takes about what one of many takes, and not
 * some microseconds more. */
static void test_time_of_short(void **state) {
    (void)state;
    enum { MANY = 200, SAMPLES = 20 };
    void *there;
    double one_s = 1, many_s = 1, seconds;
    assert_int_equal(pc_device_allocate(device, 4096, &there, NULL), PC_OK);
    for (int i = 0; i < SAMPLES; i++) {
        assert_int_equal(pc_device_time(device, fill_little, there, 1, true, &seconds, NULL), PC_OK);
        one_s = fmin(one_s, seconds);
        assert_int_equal(pc_device_time(device, fill_little, there, MANY, true, &seconds, NULL), PC_OK);
        many_s = fmin(many_s, seconds / MANY);
    }
    print_message("a short kernel: %.2f us alone, %.2f us of %d\n", 1e6 * one_s, 1e6 * many_s, (int)MANY);
    assert_true(one_s < many_s + 4e-6);
    pc_device_free(device, there);
}

/* 64 MiB are written in more than a microsecond (67 TB/s) and less than a second. */
static void test_time(void **state) {
    (void)state;
    void *there;
    double seconds[3];
    assert_int_equal(pc_device_allocate(device, INT64_C(64) << 20, &there, NULL), PC_OK);
    for (int in_graph = 0; in_graph < 2; in_graph++) {
        assert_int_equal(pc_device_time(device, fill_once, there, 4, in_graph == 1, &seconds[0], NULL), PC_OK);
        assert_true(seconds[0] > 4e-6 && seconds[0] < 4);
    }
    assert_int_equal(pc_device_marks(device, 3, NULL), PC_OK);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(pc_device_mark(device, i, NULL), PC_OK);
        assert_int_equal(fill_once(there, i, NULL), PC_OK);
    }
    assert_int_equal(pc_device_mark_times(device, 3, seconds, NULL), PC_OK);
    assert_true(seconds[0] == 0 && seconds[1] > 1e-6 && seconds[2] > seconds[1] + 1e-6);
    pc_device_free(device, there);
}

/* test_gpu [PATTERN]: those of this name alone, as test_f*; a checker of memory or races slows those down that time. */
int main(int argc, char **argv) {
    enum { SKIPPED = 77 };
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fills),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_memory_ahead),
        cmocka_unit_test(test_time_of_short),
        cmocka_unit_test(test_time),
        cmocka_unit_test(test_families),
        cmocka_unit_test(test_large_products),
        cmocka_unit_test(test_large_low_products),
        cmocka_unit_test(test_large_grouped_products),
    };
    pc_error error = {0};
    if (pc_device_open(0, &device, &error) != PC_OK) {
        printf("skipped: %s\n", error.message);
        return SKIPPED;
    }
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    int failed = cmocka_run_group_tests_name("gpu", tests, NULL, NULL);
    pc_device_close(device);
    return failed;
}
