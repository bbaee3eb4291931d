/* Matrix products over cuBLASLt: what the library is asked for, against one that is made up (fake_cublaslt.h), which
 * multiplies just what its descriptors say and refuses what the manual forbids; and which of its ways is chosen. */
#include "tests/support.h"

#include "engine/alloc.h"
#include "kernels/cuda/runtime.h"
#include "kernels/dtype.h"
#include "kernels/families.h"
#include "kernels/gemm.h"
#include "kernels/kernel_check.h"
#include "tests/fake_cublaslt.h"
#include "tests/fake_cuda.h"
#include "tests/fake_device.h"

#include <math.h>

static const pc_kernel_family *const families[] = {&pc_family_gemm_forward, &pc_family_gemm_input_gradient,
                                                   &pc_family_gemm_weight_gradient};

static pc_kernel_shape shape_of(pc_dtype dtype, int64_t m, int64_t n, int64_t k) {
    return (pc_kernel_shape){.dtype = dtype, .batch = 1, .m = m, .n = n, .k = k};
}

/* The tensors of a shape, all or one of them `shift` bytes off an aligned address. */
typedef struct tensors {
    void *block[PC_KERNEL_TENSORS], *address[PC_KERNEL_TENSORS];
    int count;
    pc_tensor tensor[PC_KERNEL_TENSORS];
} tensors;

static void take(pc_device *device, const pc_kernel_family *family, const pc_kernel_shape *shape, int shift, int only,
                 tensors *all) {
    assert_int_equal(family->tensors(shape, all->tensor, &all->count, NULL), PC_OK);
    for (int i = 0; i < all->count; i++) {
        const pc_tensor *t = &all->tensor[i];
        int64_t bytes = t->count * pc_dtype_bytes(t->dtype) + 256;
        assert_int_equal(pc_device_allocate(device, bytes, &all->block[i], NULL), PC_OK);
        all->address[i] = (char *)all->block[i] + (only < 0 || only == i ? shift : 0);
        assert_int_equal(
            pc_device_fill(device, all->address[i], t->dtype, t->count, t->fill, t->scale, (uint64_t)i, NULL), PC_OK);
    }
}

static void give(pc_device *device, tensors *all) {
    for (int i = 0; i < all->count; i++) pc_device_free(device, all->block[i]);
}

/* ---- what comes out ---- */

static void check_shape(pc_device *device, const pc_kernel_family *family, const pc_kernel_shape *shape) {
    pc_kernel_check check;
    pc_error error = {0};
    if (pc_kernel_check_run(device, family, shape, 5, &check, &error) != PC_OK) fail_msg("%s", error.message);
    if (!check.is_right)
        fail_msg("%s %lld x (%lld, %lld, %lld): %s", family->name, (long long)shape->batch, (long long)shape->m,
                 (long long)shape->n, (long long)shape->k, check.message);
}

static pc_kernel_shape random_shape(test_random *random, pc_kernel_role role) {
    pc_kernel_shape shape = shape_of((pc_dtype)test_between(random, PC_BF16, PC_FP16), test_between(random, 1, 24),
                                     test_between(random, 1, 24), test_between(random, 1, 33));
    if (test_between(random, 0, 1)) shape.n = (shape.n + 7) / 8 * 8;
    if (role == PC_KERNEL_FORWARD) shape.epilogue = (pc_epilogue)test_between(random, 0, 2);
    if (shape.epilogue != PC_EPILOGUE_NONE) return shape;
    shape.batch = test_between(random, 1, 3);
    shape.accumulates = test_between(random, 0, 1) == 1;
    return shape;
}

static void test_random_shapes(void **state) {
    (void)state;
    test_random random = {11};
    pc_device *device = fake_device_open();
    long cases = test_cases(200, 1000);
    for (long i = 0; i < cases; i++) {
        const pc_kernel_family *family = families[i % 3];
        pc_kernel_shape shape = random_shape(&random, family->role);
        check_shape(device, family, &shape);
    }
    fake_device_close(device);
}

/* Tensors that are aligned to 2 bytes only: prepared so, or launched so though prepared otherwise. */
static void test_alignment(void **state) {
    (void)state;
    pc_device *device = fake_device_open();
    pc_kernel_shape shape = shape_of(PC_BF16, 5, 16, 8);
    shape.epilogue = PC_EPILOGUE_BIAS_GELU;
    static const int shifts[] = {0, 2, 16, 6, 128};
    for (int i = 0; i < 5; i++) {
        tensors all;
        take(device, families[0], &shape, shifts[i], -1, &all);
        if (i < 2) assert_int_equal(families[0]->prepare(device, &shape, all.address, NULL), PC_OK);
        assert_int_equal(families[0]->launch(device, &shape, all.address, NULL), PC_OK);
        assert_int_equal(fake_cublaslt_now()->last_way, shifts[i] % 16 == 0 ? 0 : 1);
        give(device, &all);
    }
    fake_device_close(device);
}

/* One tensor that is not aligned is enough, whichever it is. */
static void test_one_alignment(void **state) {
    (void)state;
    pc_device *device = fake_device_open();
    pc_kernel_shape shape = shape_of(PC_FP16, 5, 16, 8);
    shape.epilogue = PC_EPILOGUE_BIAS_GELU;
    for (int i = 0; i < 5; i++) {
        for (int role = 0; role < (i < 3 ? 3 : 1); role++) {
            tensors all;
            shape.epilogue = role == 0 ? PC_EPILOGUE_BIAS_GELU : PC_EPILOGUE_NONE;
            take(device, families[role], &shape, 4, i, &all);
            assert_int_equal(families[role]->prepare(device, &shape, all.address, NULL), PC_OK);
            assert_int_equal(families[role]->launch(device, &shape, all.address, NULL), PC_OK);
            assert_int_equal(fake_cublaslt_now()->last_way, 1);
            give(device, &all);
        }
    }
    fake_device_close(device);
}

/* ---- which way is chosen ---- */

static void check_chosen(pc_device *device, const pc_kernel_family *family, const pc_kernel_shape *shape, int way) {
    tensors all;
    pc_kernel_attributes made;
    char name[96];
    take(device, family, shape, 0, -1, &all);
    assert_int_equal(family->prepare(device, shape, all.address, NULL), PC_OK);
    int asked = fake_cublaslt_now()->asked;
    assert_int_equal(family->launch(device, shape, all.address, NULL), PC_OK);
    assert_int_equal(family->prepare(device, shape, all.address, NULL), PC_OK);
    assert_int_equal(fake_cublaslt_now()->last_way, way);
    assert_int_equal(fake_cublaslt_now()->asked, asked); /* it is remembered */
    assert_int_equal(family->attributes(device, shape, &made, NULL), PC_OK);
    snprintf(name, sizeof name, "cublasLt algo %d, tile 128x256, stages 6, split 2, swizzle 4, cluster 8", 60 + way);
    assert_string_equal(made.kernel, name);
    assert_int_equal(made.workspace_bytes, 1 << 20);
    assert_int_equal(made.registers, -1);
    give(device, &all);
}

/* Short ones are timed in graphs, long ones one by one: the fastest is found in both, wherever it stands. */
static void test_fastest(void **state) {
    (void)state;
    static const double scales[] = {1e-6, 1e-4, 1e-2};
    for (int scale = 0; scale < 3; scale++) {
        for (int fastest = 0; fastest < 8; fastest++) {
            fake_device_reset(NULL);
            fake_cublaslt *fake_blas = fake_cublaslt_now();
            for (int way = 0; way < 8; way++)
                fake_blas->seconds[way] = scales[scale] * (way == fastest ? 1.5 : 2 + way);
            pc_device *device = fake_device_open();
            pc_kernel_shape shape = shape_of(PC_FP16, 8, 8, 8);
            for (int i = 0; i < 3; i++) check_chosen(device, families[i], &shape, fastest);
            assert_int_equal(fake_blas->ways_given, 8);
            assert_int_equal(fake.graph_launches > 0, scale == 0);
            shape.accumulates = true; /* another product */
            int asked = fake_blas->asked;
            check_chosen(device, families[2], &shape, fastest);
            assert_int_equal(fake_blas->asked, asked + 1);
            fake_device_close(device);
        }
    }
}

/* Trying leaves what is added to as it is, and gives its room back. */
static void test_prepare_keeps_sums(void **state) {
    (void)state;
    pc_device *device = fake_device_open();
    for (int i = 0; i < 3; i++) {
        pc_kernel_shape shape = shape_of(PC_BF16, 6, 7, 9);
        shape.accumulates = true;
        shape.batch = 2;
        tensors all;
        take(device, families[i], &shape, 0, -1, &all);
        char before[512], after[512];
        size_t bytes = 2 * 6 * 7 * (i == 2 ? 4 : 2);
        memcpy(before, all.address[PC_GEMM_C], bytes);
        int64_t blocks = fake.blocks;
        assert_int_equal(families[i]->prepare(device, &shape, all.address, NULL), PC_OK);
        memcpy(after, all.address[PC_GEMM_C], bytes);
        assert_memory_equal(before, after, bytes);
        assert_int_equal(fake.blocks, blocks);
        give(device, &all);
    }
    fake_device_close(device);
}

/* No room for a copy of c: the library's first choice stands, untried. */
static void test_no_room_to_try(void **state) {
    (void)state;
    fake_cublaslt_now()->seconds[0] = 5e-3;
    pc_device *device = fake_device_open();
    pc_kernel_shape shape = shape_of(PC_BF16, 8, 8, 8);
    shape.accumulates = true;
    tensors all;
    take(device, families[2], &shape, 0, -1, &all);
    fake.capacity_bytes = fake.bytes;
    assert_int_equal(families[2]->prepare(device, &shape, all.address, NULL), PC_OK);
    assert_int_equal(fake_cublaslt_now()->multiplied, 0);
    assert_int_equal(families[2]->launch(device, &shape, all.address, NULL), PC_OK);
    assert_int_equal(fake_cublaslt_now()->last_way, 0);
    give(device, &all);
    fake_device_close(device);
}

/* A way that the library names and then refuses is passed over; where it refuses all, it says why. */
static void test_refused_ways(void **state) {
    (void)state;
    pc_device *device = fake_device_open();
    pc_kernel_shape shape = shape_of(PC_BF16, 8, 8, 8);
    fake_cublaslt_now()->refuses_at[0] = CUBLAS_STATUS_NOT_SUPPORTED;
    check_chosen(device, families[0], &shape, 1);
    fake_cublaslt_now()->refuses_at[1] = CUBLAS_STATUS_EXECUTION_FAILED;
    tensors all;
    pc_error error = {0};
    take(device, families[1], &shape, 0, -1, &all);
    assert_int_equal(families[1]->prepare(device, &shape, all.address, &error), PC_ERROR_IO);
    assert_string_equal(error.message, "cublasLtMatmul: a made-up refusal (status 13)");
    fake_cublaslt_now()->refuses_at[1] = CUBLAS_STATUS_NOT_SUPPORTED;
    assert_int_equal(families[1]->prepare(device, &shape, all.address, NULL), PC_ERROR_INPUT);
    memset(fake_cublaslt_now()->seconds, 0, sizeof fake_cublaslt_now()->seconds);
    shape.k = 9;
    /* The shape's fault, not the device's: a calibration leaves it out and goes on. */
    assert_int_equal(families[1]->prepare(device, &shape, all.address, &error), PC_ERROR_INPUT);
    assert_string_equal(error.message, "cuBLASLt has no way to multiply 1 x (8 x 9 by 9 x 8)");
    give(device, &all);
    fake_device_close(device);
}

/* ---- epilogues that the library has not ---- */

static void check_launches(pc_device *device, pc_epilogue epilogue, pc_kernel_shape shape, int launches) {
    pc_kernel_attributes made;
    shape.epilogue = epilogue;
    check_shape(device, families[0], &shape);
    assert_int_equal(families[0]->attributes(device, &shape, &made, NULL), PC_OK);
    assert_int_equal(made.launches, launches);
}

/* In one where n is a multiple of 8 and the library can; in two otherwise. */
static void test_gelu(void **state) {
    (void)state;
    pc_device *device = fake_device_open();
    const pc_epilogue gelu = PC_EPILOGUE_BIAS_GELU;
    check_launches(device, gelu, shape_of(PC_BF16, 5, 16, 7), 1);
    check_launches(device, gelu, shape_of(PC_BF16, 5, 12, 7), 2);
    check_launches(device, gelu, shape_of(PC_FP16, 5, 1, 7), 2);
    fake_cublaslt_now()->has_no_gelu = true;
    check_launches(device, gelu, shape_of(PC_FP16, 6, 16, 7), 2);
    fake_cublaslt_now()->has_no_gelu = false;
    fake_cublaslt_now()->gelu = CUBLAS_STATUS_INVALID_VALUE;
    check_launches(device, gelu, shape_of(PC_BF16, 6, 16, 9), 2);
    fake_device_close(device);
}

/* Where the library cannot add a bias: a copy of it is the first row, 1 + 1 + 2 + 1 make 5 of it, 1 + 1 + 2 + 4 make 8;
 * then the product, then GELU. */
static void test_bias_before(void **state) {
    (void)state;
    pc_device *device = fake_device_open();
    fake_cublaslt_now()->has_no_bias = true;
    check_launches(device, PC_EPILOGUE_BIAS, shape_of(PC_BF16, 1, 3, 7), 1 + 1);
    check_launches(device, PC_EPILOGUE_BIAS, shape_of(PC_FP16, 5, 3, 7), 4 + 1);
    check_launches(device, PC_EPILOGUE_BIAS, shape_of(PC_BF16, 8, 16, 7), 4 + 1);
    check_launches(device, PC_EPILOGUE_BIAS_GELU, shape_of(PC_FP16, 5, 16, 7), 4 + 2);
    check_launches(device, PC_EPILOGUE_NONE, shape_of(PC_FP16, 5, 16, 7), 1);
    fake_device_close(device);
}

/* ---- graphs ---- */

typedef struct step {
    pc_device *device;
    const pc_kernel_family *family;
    const pc_kernel_shape *shape;
    void *const *address;
} step;

static pc_code launch_step(void *self, int repeat, pc_error *error) {
    const step *of = self;
    (void)repeat;
    return of->family->launch(of->device, of->shape, of->address, error);
}

/* Within a recording nothing is made, tried or waited for, prepared or not: the fake counts it as a fault. */
static void test_recorded(void **state) {
    (void)state;
    for (int is_prepared = 0; is_prepared < 2; is_prepared++) {
        pc_device *device = fake_device_open();
        pc_kernel_shape shape = shape_of(PC_BF16, 4, 12, 4);
        shape.epilogue = PC_EPILOGUE_BIAS_GELU;
        tensors all;
        double seconds;
        take(device, families[0], &shape, 0, -1, &all);
        if (is_prepared) assert_int_equal(families[0]->prepare(device, &shape, all.address, NULL), PC_OK);
        step of = {device, families[0], &shape, all.address};
        assert_int_equal(pc_device_time(device, launch_step, &of, 3, true, &seconds, NULL), PC_OK);
        assert_true(fabs(seconds - 3 * (1e-3 + 1e-6)) < 1e-8);
        give(device, &all);
        fake_device_close(device);
    }
}

/* ---- without the library ---- */

static void test_without_library(void **state) {
    (void)state;
    fake_cublaslt_now()->create = CUBLAS_STATUS_NOT_INITIALIZED;
    pc_device *device = fake_device_open();
    assert_string_equal(pc_device_about(device)->blas, "");
    pc_kernel_shape shape = shape_of(PC_BF16, 4, 4, 4);
    pc_kernel_attributes made;
    void *const none[3] = {NULL};
    for (int i = 0; i < 3; i++) {
        pc_error error = {0};
        assert_int_equal(families[i]->prepare(device, &shape, none, &error), PC_ERROR_IO);
        assert_string_equal(error.message, "cublasLtCreate: the library was not initialized (status 1)");
        assert_int_equal(families[i]->launch(device, &shape, none, &error), PC_ERROR_IO);
        assert_int_equal(families[i]->attributes(device, &shape, &made, &error), PC_ERROR_IO);
    }
    fake_device_close(device);
}

static void test_input(void **state) {
    (void)state;
    pc_device *device = fake_device_open();
    pc_kernel_shape shape = shape_of(PC_BF16, 4, 0, 4);
    pc_kernel_attributes made;
    void *const none[3] = {NULL};
    pc_error error = {0};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(families[i]->prepare(device, &shape, none, &error), PC_ERROR_INPUT);
        assert_int_equal(families[i]->launch(device, &shape, none, &error), PC_ERROR_INPUT);
        shape.n = 4;
        assert_int_equal(families[i]->attributes(device, &shape, &made, &error), PC_ERROR_INPUT);
        assert_non_null(strstr(error.message, "nothing is chosen yet; expected"));
        shape.n = 0;
    }
    fake_device_close(device);
}

/* Many products, each remembered; whatever allocation is refused, nothing is lost. */
static void test_no_memory(void **state) {
    (void)state;
    pc_device *device = fake_device_open();
    tensors all;
    pc_kernel_shape largest = shape_of(PC_BF16, 4, 4, 200);
    take(device, families[0], &largest, 0, -1, &all);
    for (int64_t k = 1; k <= 200; k++) {
        pc_kernel_shape shape = shape_of(PC_BF16, 4, 4, k);
        pc_alloc_fail_after(k % 3 == 0 ? 0 : -1);
        pc_code code = families[0]->prepare(device, &shape, all.address, NULL);
        pc_alloc_fail_after(-1);
        assert_true(code == PC_OK || code == PC_ERROR_NO_MEMORY);
        assert_int_equal(families[0]->launch(device, &shape, all.address, NULL), PC_OK);
    }
    give(device, &all);
    fake_device_close(device);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_random_shapes, fake_device_reset),
        cmocka_unit_test_setup(test_alignment, fake_device_reset),
        cmocka_unit_test_setup(test_one_alignment, fake_device_reset),
        cmocka_unit_test_setup(test_fastest, fake_device_reset),
        cmocka_unit_test_setup(test_prepare_keeps_sums, fake_device_reset),
        cmocka_unit_test_setup(test_no_room_to_try, fake_device_reset),
        cmocka_unit_test_setup(test_refused_ways, fake_device_reset),
        cmocka_unit_test_setup(test_gelu, fake_device_reset),
        cmocka_unit_test_setup(test_bias_before, fake_device_reset),
        cmocka_unit_test_setup(test_recorded, fake_device_reset),
        cmocka_unit_test_setup(test_without_library, fake_device_reset),
        cmocka_unit_test_setup(test_input, fake_device_reset),
        cmocka_unit_test_setup(test_no_memory, fake_device_reset),
    };
    return cmocka_run_group_tests_name("cuda_gemm", tests, NULL, NULL);
}
