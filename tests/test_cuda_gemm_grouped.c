/* Grouped products over a made-up CUDA and cuBLASLt: what comes out, that groups go round four streams with a workspace
 * each, and that a recording has all of them. */
#include "tests/support.h"

#include "kernels/cuda/runtime.h"
#include "kernels/cuda/side_streams.h"
#include "kernels/dtype.h"
#include "kernels/families.h"
#include "kernels/gemm_grouped.h"
#include "kernels/kernel_check.h"
#include "tests/fake_cublaslt.h"
#include "tests/fake_cuda.h"
#include "tests/fake_device.h"

enum { FAMILIES = 6 };
static const pc_kernel_family *const families[FAMILIES] = {&pc_family_grouped_gemm_forward,
                                                           &pc_family_grouped_gemm_input_gradient,
                                                           &pc_family_grouped_gemm_weight_gradient,
                                                           &pc_family_fp8_grouped_gemm_forward,
                                                           &pc_family_fp8_grouped_gemm_input_gradient,
                                                           &pc_family_fp8_grouped_gemm_weight_gradient};

static pc_kernel_shape shape_of(const pc_kernel_family *family, int64_t groups, int64_t m, int64_t n, int64_t k) {
    pc_low_scaling scaling = family->low ? family->low->scaling : PC_LOW_NONE;
    return (pc_kernel_shape){.dtype = PC_BF16, .scaling = scaling, .batch = groups, .m = m, .n = n, .k = k};
}

/* ---- what comes out ---- */

static void check_shape(pc_device *device, const pc_kernel_family *family, const pc_kernel_shape *shape) {
    pc_kernel_check check;
    pc_error error = {0};
    if (pc_kernel_check_run(device, family, shape, 5, &check, &error))
        fail_msg("%s: %s: %s", family->name, error.message, fake_cublaslt_now()->fault);
    if (!check.is_right) fail_msg("%s: %s", family->name, check.message);
}

static void test_random_shapes(void **state) {
    (void)state;
    test_random random = {31};
    pc_device *device = fake_device_open();
    for (long i = 0; i < FAMILIES * test_cases(4, 20); i++) {
        const pc_kernel_family *family = families[i % FAMILIES];
        int64_t step = family->low ? 16 : 1, most = 48 / step;
        pc_kernel_shape shape = shape_of(family, test_between(&random, 1, 9), step * test_between(&random, 2, most),
                                         step * test_between(&random, 1, most), step * test_between(&random, 1, most));
        if (family->low && test_between(&random, 0, 1)) shape.low = PC_E5M2;
        shape.accumulates = family->role == PC_KERNEL_WEIGHT_GRADIENT && test_between(&random, 0, 1);
        check_shape(device, family, &shape);
    }
    assert_int_equal(fake_cublaslt_now()->faults, 0);
    fake_device_close(device);
}

static void test_blocks(void **state) {
    (void)state;
    static const pc_kernel_family *const blocks[] = {&pc_family_fp8_block_grouped_gemm_forward,
                                                     &pc_family_fp8_block_grouped_gemm_input_gradient,
                                                     &pc_family_fp8_block_grouped_gemm_weight_gradient};
    pc_device *device = fake_device_open();
    for (int i = 0; i < 3; i++) {
        pc_kernel_shape shape = shape_of(blocks[i], 3, 256, 128, 128);
        check_shape(device, blocks[i], &shape);
    }
    assert_int_equal(fake_cublaslt_now()->faults, 0);
    fake_device_close(device);
}

/* ---- streams ---- */

typedef struct tensors {
    void *address[PC_KERNEL_TENSORS];
    int count;
} tensors;

static void take(pc_device *device, const pc_kernel_family *family, const pc_kernel_shape *shape, tensors *all) {
    pc_tensor tensor[PC_KERNEL_TENSORS];
    assert_int_equal(family->tensors(shape, tensor, &all->count, NULL), PC_OK);
    for (int i = 0; i < all->count; i++) {
        int64_t bytes = tensor[i].count * pc_dtype_bytes(tensor[i].dtype);
        assert_int_equal(pc_device_allocate(device, bytes, &all->address[i], NULL), PC_OK);
    }
}

static void give(pc_device *device, tensors *all) {
    for (int i = 0; i < all->count; i++) pc_device_free(device, all->address[i]);
}

/* Of six groups the first and the fifth share a stream and its workspace, the second and the sixth; the third and the
 * fourth are alone. Streams wait for the first three times, and it for them. */
static void test_round_robin(void **state) {
    (void)state;
    pc_device *device = fake_device_open();
    const pc_kernel_family *family = families[0];
    pc_kernel_shape shape = shape_of(family, 6, 32, 16, 16);
    tensors all;
    take(device, family, &shape, &all);
    int streams = fake.streams;
    assert_int_equal(family->prepare(device, &shape, all.address, NULL), PC_OK);
    assert_int_equal(fake.streams, streams + PC_SIDE_STREAMS);
    fake_cublaslt *blas = fake_cublaslt_now();
    int first = blas->multiplied + 1, waits = fake.waits, asked = blas->asked;
    assert_int_equal(family->launch(device, &shape, all.address, NULL), PC_OK);
    assert_int_equal(blas->multiplied, first + 5);
    assert_int_equal(blas->asked, asked); /* the ways were known */
    assert_int_equal(fake.waits, waits + 2 * PC_SIDE_STREAMS);
    void *of[6];
    for (int i = 0; i < 6; i++) of[i] = blas->workspaces[(first + i) % 8];
    assert_true(of[0] == of[4] && of[1] == of[5]);
    for (int i = 0; i < 4; i++)
        for (int j = i + 1; j < 4; j++) assert_true(of[i] != of[j]);
    pc_kernel_attributes made;
    assert_int_equal(family->attributes(device, &shape, &made, NULL), PC_OK);
    assert_int_equal(made.launches, 6);
    assert_non_null(strstr(made.kernel, "4 streams, cublasLt algo"));
    give(device, &all);
    fake_device_close(device);
    assert_int_equal(fake.streams, 0);
    assert_int_equal(fake.events, 0);
    assert_int_equal(fake.blocks, 0);
}

/* Two groups need one stream more, one group none. */
static void test_few_groups(void **state) {
    (void)state;
    pc_device *device = fake_device_open();
    for (int64_t groups = 1; groups <= 2; groups++) {
        const pc_kernel_family *family = families[1];
        pc_kernel_shape shape = shape_of(family, groups, 32, 16, 16);
        tensors all;
        take(device, family, &shape, &all);
        assert_int_equal(family->prepare(device, &shape, all.address, NULL), PC_OK);
        int waits = fake.waits;
        assert_int_equal(family->launch(device, &shape, all.address, NULL), PC_OK);
        assert_int_equal(fake.waits, waits + 2 * (groups - 1));
        give(device, &all);
    }
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

/* A recording has the products of all streams: three repeats of seven groups of a millisecond, none run before. Without
 * having been prepared it has them too, one behind the other. */
static void test_recorded(void **state) {
    (void)state;
    for (int is_prepared = 0; is_prepared < 2; is_prepared++) {
        pc_device *device = fake_device_open();
        const pc_kernel_family *family = families[3];
        pc_kernel_shape shape = shape_of(family, 7, 32, 16, 16);
        tensors all;
        double seconds;
        pc_error error = {0};
        take(device, family, &shape, &all);
        if (is_prepared) assert_int_equal(family->prepare(device, &shape, all.address, NULL), PC_OK);
        step of = {device, family, &shape, all.address};
        if (pc_device_time(device, launch_step, &of, 3, true, &seconds, &error)) fail_msg("%s", error.message);
        assert_true(seconds > 3 * 7 * 0.999e-3 && seconds < 3 * 7 * 1.001e-3);
        assert_int_equal(fake.faults, 0);
        give(device, &all);
        fake_device_close(device);
    }
}

/* Whatever call fails: what was made is given back, and the next launch works. */
static void test_failures(void **state) {
    (void)state;
    static const char *const calls[] = {"cudaEventCreateWithFlags", "cudaStreamCreateWithFlags", "cudaMalloc"};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        fake_device_reset(NULL);
        pc_device *device = fake_device_open();
        const pc_kernel_family *family = families[2];
        pc_kernel_shape shape = shape_of(family, 3, 32, 16, 16);
        tensors all;
        take(device, family, &shape, &all);
        int64_t blocks = fake.blocks;
        int streams = fake.streams, events = fake.events;
        fake.fails = calls[i];
        fake.fails_with = cudaErrorMemoryAllocation;
        fake.fails_after = 1;
        assert_int_equal(family->prepare(device, &shape, all.address, NULL), PC_ERROR_NO_MEMORY);
        assert_true(fake.blocks == blocks && fake.streams == streams && fake.events == events);
        assert_int_equal(family->prepare(device, &shape, all.address, NULL), PC_OK);
        fake.fails = "cudaStreamWaitEvent";
        fake.fails_with = cudaErrorInvalidValue;
        fake.fails_after = 4;
        assert_int_equal(family->launch(device, &shape, all.address, NULL), PC_OK); /* two out, two back */
        assert_int_equal(family->launch(device, &shape, all.address, NULL), PC_ERROR_IO);
        assert_int_equal(family->launch(device, &shape, all.address, NULL), PC_OK);
        give(device, &all);
        fake_device_close(device);
    }
}

static void test_who_can(void **state) {
    (void)state;
    fake.compute_major = 8;
    pc_device *device = fake_device_open();
    pc_error error = {0};
    assert_int_equal(families[5]->low->can(device, &error), PC_ERROR_INPUT);
    assert_non_null(strstr(error.message, "products in fp8: compute capability 8.0"));
    assert_null(families[2]->low);
    fake_device_close(device);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_random_shapes, fake_device_reset),
        cmocka_unit_test_setup(test_blocks, fake_device_reset),
        cmocka_unit_test_setup(test_round_robin, fake_device_reset),
        cmocka_unit_test_setup(test_few_groups, fake_device_reset),
        cmocka_unit_test_setup(test_recorded, fake_device_reset),
        cmocka_unit_test_setup(test_failures, fake_device_reset),
        cmocka_unit_test_setup(test_who_can, fake_device_reset),
    };
    return cmocka_run_group_tests_name("cuda_gemm_grouped", tests, NULL, NULL);
}
