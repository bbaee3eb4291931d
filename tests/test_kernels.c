/* Every family of the table on the emulated device, on every shape of its group: right, twice the same, nothing written
 * beside. Norms and softmax on shapes that take each of their kernels. And that the check sees what is wrong. */
#include "tests/support.h"

#include "kernels/dtype.h"
#include "kernels/families.h"
#include "kernels/kernel_check.h"

#include <math.h>

static int set_up(void **state) {
    pc_device *device;
    if (pc_device_open(0, &device, NULL)) return 1;
    *state = device;
    return 0;
}

static int tear_down(void **state) {
    pc_device_close(*state);
    return 0;
}

static void check_right(pc_device *device, const pc_kernel_family *family, const pc_kernel_shape *shape,
                        uint64_t seed) {
    pc_kernel_check check;
    pc_error error = {0};
    if (pc_kernel_check_run(device, family, shape, seed, &check, &error))
        fail_msg("%s, %lld x %lld: %s", family->name, (long long)shape->m, (long long)shape->n, error.message);
    if (!check.is_right)
        fail_msg("%s, %lld x %lld: %s", family->name, (long long)shape->m, (long long)shape->n, check.message);
    assert_true(check.worst_error <= 1);
    assert_string_equal(check.message, "");
}

/* ---- all ---- */

static void test_families(void **state) {
    int count;
    const pc_kernel_family *const *families = pc_kernel_families(&count);
    for (int i = 0; i < count; i++) {
        pc_kernel_shape shape;
        int shapes = 0;
        while (pc_kernel_check_shape(families[i], shapes, &shape))
            check_right(*state, families[i], &shape, (uint64_t)shapes++);
        assert_true(shapes > 0);
        assert_false(pc_kernel_check_shape(families[i], -1, &shape));
    }
}

/* What a family says of itself, without running. */
static void test_table(void **state) {
    int count;
    const pc_kernel_family *const *families = pc_kernel_families(&count);
    for (int i = 0; i < count; i++) {
        const pc_kernel_family *family = families[i];
        pc_kernel_shape shape;
        pc_kernel_attributes made;
        assert_ptr_equal(pc_kernel_family_find(family->name), family);
        for (int j = 0; pc_kernel_check_shape(family, j, &shape); j++) {
            assert_int_equal(family->attributes(*state, &shape, &made, NULL), PC_OK);
            assert_true(made.kernel[0] && made.launches > 0);
            assert_true(family->bytes(&shape) > 0 && family->flops(&shape) >= 0);
        }
    }
    assert_null(pc_kernel_family_find("fft"));
}

/* ---- rows ---- */

static const pc_kernel_family *const of_rows[] = {
    &pc_family_layer_norm_forward, &pc_family_layer_norm_backward, &pc_family_rms_norm_forward,
    &pc_family_rms_norm_backward,  &pc_family_softmax_forward,     &pc_family_softmax_backward,
};
enum { OF_ROWS = sizeof of_rows / sizeof *of_rows };

/* By warp with 1, 2 and 4 chunks kept, by block with 1, 2 and 4, the longest rows not kept, ragged ones of a warp, of a
 * small and of a large block; more rows than blocks, so that each has several. */
static const struct size {
    int64_t m, n;
} sizes[] = {{9, 8},     {67, 256},  {6, 512},   {35, 520}, {7, 1024}, {3, 1032}, {5, 2048}, {3, 4096}, {5, 8200},
             {5, 12000}, {1, 16392}, {1, 33000}, {41, 33},  {3, 257},  {1, 5001}, {300, 8},  {530, 3},  {1, 7}};

static void test_rows(void **state) {
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int j = 0; j < OF_ROWS; j++) {
            if (sizes[i].n > 20000 && strstr(of_rows[j]->name, "norm_backward")) continue; /* as 16,392, but longer */
            pc_kernel_shape shape = {
                .dtype = (i + (size_t)j) % 2 ? PC_FP16 : PC_BF16, .m = sizes[i].m, .n = sizes[i].n};
            check_right(*state, of_rows[j], &shape, i);
        }
}

/* Of 16,384 columns sums take 128 KiB for layer norm, which is then not fused, and 64 KiB for RMS norm. */
static void test_little_shared_memory(void **state) {
    const pc_kernel_shape shape = {.dtype = PC_BF16, .m = 2, .n = 16384};
    pc_device_info *about = (pc_device_info *)(uintptr_t)pc_device_about(*state);
    int64_t usual = about->shared_bytes;
    pc_kernel_attributes made;
    assert_int_equal(pc_family_layer_norm_backward.attributes(*state, &shape, &made, NULL), PC_OK);
    assert_int_equal(made.launches, 2);
    about->shared_bytes = 99 << 10;
    assert_int_equal(pc_family_layer_norm_backward.attributes(*state, &shape, &made, NULL), PC_OK);
    assert_int_equal(made.launches, 3);
    check_right(*state, &pc_family_layer_norm_backward, &shape, 1);
    assert_int_equal(pc_family_rms_norm_backward.attributes(*state, &shape, &made, NULL), PC_OK);
    assert_int_equal(made.launches, 2);
    about->shared_bytes = usual;
}

/* Matrices of several heads, scaled; more rows than columns: the first see nothing, and are zero. */
static void test_causal(void **state) {
    static const struct size causal[] = {{5, 5}, {40, 24}, {9, 1}, {6, 200}, {3, 301}, {2, 1500}, {70, 64}, {1, 32800}};
    for (size_t i = 0; i < sizeof causal / sizeof *causal; i++) {
        pc_kernel_shape shape = {.dtype = i % 2 ? PC_FP16 : PC_BF16, .m = causal[i].m, .n = causal[i].n, .batch = 2};
        shape.heads = 1 + (int64_t)(i % 3);
        shape.k = 16;
        shape.is_causal = true;
        check_right(*state, &pc_family_softmax_forward, &shape, i);
        check_right(*state, &pc_family_softmax_backward, &shape, i);
    }
}

/* The family `moved` at addresses that are multiples of their own size only. */
static const pc_kernel_family *moved;

static pc_code launch_moved(pc_device *device, const pc_kernel_shape *shape, void *const *tensors, pc_error *error) {
    pc_tensor of[PC_KERNEL_TENSORS];
    char *copy[PC_KERNEL_TENSORS];
    void *address[PC_KERNEL_TENSORS];
    int count;
    assert_int_equal(moved->tensors(shape, of, &count, error), PC_OK);
    for (int i = 0; i < count; i++) {
        size_t size = (size_t)pc_dtype_bytes(of[i].dtype), bytes = (size_t)of[i].count * size;
        copy[i] = malloc(bytes + size);
        address[i] = memcpy(copy[i] + size, tensors[i], bytes);
    }
    pc_code code = moved->launch(device, shape, address, error);
    for (int i = 0; i < count; i++) {
        memcpy(tensors[i], address[i], (size_t)(of[i].count * pc_dtype_bytes(of[i].dtype)));
        free(copy[i]);
    }
    return code;
}

static void test_misaligned(void **state) {
    static const struct size moved_sizes[] = {{5, 64}, {3, 1024}, {2, 4104}};
    for (size_t i = 0; i < sizeof moved_sizes / sizeof *moved_sizes; i++)
        for (int j = 0; j < OF_ROWS; j++) {
            pc_kernel_shape shape = {.dtype = PC_BF16, .m = moved_sizes[i].m, .n = moved_sizes[i].n};
            moved = of_rows[j];
            pc_kernel_family family = *moved;
            family.launch = launch_moved;
            check_right(*state, &family, &shape, i);
        }
}

/* Numbers far from their mean, as activations have them: the variance must not be the difference of two large sums. */
static void test_far_from_zero(void **state) {
    enum { N = 1000 };
    void *tensors[6];
    const int64_t bytes[6] = {2 * N, 2 * N, 2 * N, 2 * N, 4, 4};
    pc_kernel_shape shape = {.dtype = PC_FP16, .m = 1, .n = N};
    for (int i = 0; i < 6; i++) assert_int_equal(pc_device_allocate(*state, bytes[i], &tensors[i], NULL), PC_OK);
    for (int i = 0; i < N; i++) {
        pc_dtype_set(PC_FP16, tensors[0], i, 1500 + i % 2); /* mean 1500.5, variance 1/4 */
        pc_dtype_set(PC_FP16, tensors[1], i, 1);
        pc_dtype_set(PC_FP16, tensors[2], i, 0);
    }
    assert_int_equal(pc_family_layer_norm_forward.launch(*state, &shape, tensors, NULL), PC_OK);
    for (int i = 0; i < N; i++) assert_true(pc_dtype_get(PC_FP16, tensors[3], i) == (i % 2 ? 1 : -1));
    assert_true(pc_dtype_get(PC_FP32, tensors[4], 0) == 1500.5);
    assert_true(fabs(pc_dtype_get(PC_FP32, tensors[5], 0) - 1 / sqrt(0.25 + 1e-5)) < 1e-6);
    for (int i = 0; i < 6; i++) pc_device_free(*state, tensors[i]);
}

static void test_shapes_refused(void **state) {
    (void)state;
    static const pc_kernel_shape wrong[] = {{.dtype = PC_BF16, .m = 0, .n = 8},
                                            {.dtype = PC_BF16, .m = 8, .n = 0},
                                            {.dtype = PC_FP32, .m = 8, .n = 8},
                                            {.dtype = PC_BF16, .m = INT64_C(1) << 31, .n = 1},
                                            {.dtype = PC_BF16, .m = 1, .n = (1 << 30) + 1}};
    pc_tensor tensors[PC_KERNEL_TENSORS];
    int count;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        for (int j = 0; j < OF_ROWS; j++) {
            pc_error error = {0};
            assert_int_equal(of_rows[j]->tensors(&wrong[i], tensors, &count, &error), PC_ERROR_INPUT);
            assert_non_null(strstr(error.message, "expected"));
        }
}

/* ---- the check itself ---- */

/* A family that copies m numbers, in double precision or after a fault. The tensors: from (fp32), to (fp32), scratch.
 */
typedef enum fault {
    NO_FAULT,
    NEARLY_TOO_FAR, /* 0.99 of what is allowed */
    TOO_FAR,        /* 1.01 of it */
    NOT_A_NUMBER,
    INFINITE,
    LEFT_OUT, /* one element is not written */
    WRITTEN_BEFORE,
    WRITTEN_BEHIND,
    INPUT_WRITTEN,
    SCRATCH_OVERRUN,
    NOT_THE_SAME, /* every other run is another, within what is allowed */
    LAUNCH_ERROR,
    FAULTS
} fault;
static fault wanted;
static int runs;
static const double tolerance = 1e-3;

static pc_code copy_tensors(const pc_kernel_shape *shape, pc_tensor *tensors, int *count, pc_error *error) {
    if (shape->m < 1) return pc_error_set(error, PC_ERROR_INPUT, "copy: none; expected some");
    tensors[0] = (pc_tensor){"from", PC_FP32, shape->m, PC_TENSOR_INPUT, PC_FILL_NORMAL, 1, 0};
    tensors[1] = (pc_tensor){"to", PC_FP32, shape->m, PC_TENSOR_OUTPUT, PC_FILL_POISON, 0, tolerance};
    tensors[2] = (pc_tensor){"scratch", PC_FP32, 4, PC_TENSOR_SCRATCH, PC_FILL_POISON, 0, 0};
    *count = 3;
    return PC_OK;
}

/* By how much element i may be wrong: by the rule of pc_tensor. */
static double allowed(const float *x, int64_t m, int64_t i) {
    double squares = 0;
    for (int64_t j = 0; j < m; j++) squares += (double)x[j] * (double)x[j];
    return tolerance * (fabs((double)x[i]) + sqrt(squares / (double)m)) + pc_dtype_half_unit(PC_FP32, (double)x[i]);
}

static pc_code copy_launch(pc_device *device, const pc_kernel_shape *shape, void *const *tensors, pc_error *error) {
    (void)device;
    float *from = tensors[0], *to = tensors[1], *scratch = tensors[2];
    int64_t m = shape->m, at = m / 2;
    float left = to[at];
    bool is_first = ++runs == 1; /* the one that is looked at; the second has no room beside its tensors */
    if (wanted == LAUNCH_ERROR) return pc_error_set(error, PC_ERROR_IO, "copy: cannot");
    memcpy(to, from, (size_t)m * sizeof *to);
    if (wanted == NEARLY_TOO_FAR) to[at] += (float)(0.99 * allowed(from, m, at));
    if (wanted == TOO_FAR) to[at] -= (float)(1.01 * allowed(from, m, at));
    if (wanted == NOT_A_NUMBER) to[at] = NAN;
    if (wanted == INFINITE) to[at] = INFINITY;
    if (wanted == LEFT_OUT) to[at] = left;
    if (wanted == WRITTEN_BEFORE && is_first) to[-1] = 0;
    if (wanted == WRITTEN_BEHIND && is_first) to[m] = 0;
    if (wanted == INPUT_WRITTEN) from[0] = 0;
    if (wanted == SCRATCH_OVERRUN && is_first) scratch[4] = 0;
    if (wanted == NOT_THE_SAME && !is_first) to[at] += (float)(0.5 * allowed(from, m, at));
    return PC_OK;
}

static void copy_reference(const pc_kernel_shape *shape, double *const *tensors) {
    assert_null(tensors[2]); /* no scratch */
    for (int64_t i = 0; i < shape->m; i++) {
        assert_true(isnan(tensors[1][i]));
        tensors[1][i] = tensors[0][i];
    }
}

static const pc_kernel_family copy_family = {
    .name = "test", .tensors = copy_tensors, .launch = copy_launch, .reference = copy_reference};

static void check_fault(pc_device *device, fault f, const char *message) {
    pc_kernel_shape shape = {.m = 101};
    pc_kernel_check check;
    wanted = f;
    runs = 0;
    assert_int_equal(pc_kernel_check_run(device, &copy_family, &shape, 1, &check, NULL), PC_OK);
    assert_int_equal(runs, 2);
    assert_int_equal(check.is_right, message == NULL);
    if (message && !strstr(check.message, message)) fail_msg("%s; expected %s", check.message, message);
}

static void test_faults_are_seen(void **state) {
    pc_kernel_shape shape = {.m = 101}, none = {.m = 0};
    pc_kernel_check check;
    check_fault(*state, NO_FAULT, NULL);
    check_fault(*state, NEARLY_TOO_FAR, NULL);
    check_fault(*state, TOO_FAR, "to[50]: got ");
    check_fault(*state, NOT_A_NUMBER, "to[50]: got nan");
    check_fault(*state, INFINITE, "to[50]: got inf");
    check_fault(*state, LEFT_OUT, "to[50]: got nan");
    check_fault(*state, WRITTEN_BEFORE, "to: written 4 bytes before its begin");
    check_fault(*state, WRITTEN_BEHIND, "to: written 0 bytes behind its end");
    check_fault(*state, INPUT_WRITTEN, "from: an input, and byte ");
    check_fault(*state, SCRATCH_OVERRUN, "scratch: written 0 bytes behind its end");
    check_fault(*state, NOT_THE_SAME, "to: byte 200 of a second run differs from the first");
    wanted = LAUNCH_ERROR;
    assert_int_equal(pc_kernel_check_run(*state, &copy_family, &shape, 1, &check, NULL), PC_ERROR_IO);
    assert_int_equal(pc_kernel_check_run(*state, &copy_family, &none, 1, &check, NULL), PC_ERROR_INPUT);
}

/* How wrong the worst element is, as a part of what is allowed. */
static void test_worst_error(void **state) {
    pc_kernel_shape shape = {.m = 33};
    pc_kernel_check check;
    wanted = NEARLY_TOO_FAR;
    assert_int_equal(pc_kernel_check_run(*state, &copy_family, &shape, 2, &check, NULL), PC_OK);
    assert_true(fabs(check.worst_error - 0.99) < 1e-3);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_families),        TEST(test_table),       TEST(test_rows),          TEST(test_little_shared_memory),
        TEST(test_causal),          TEST(test_misaligned),  TEST(test_far_from_zero), TEST(test_shapes_refused),
        TEST(test_faults_are_seen), TEST(test_worst_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
