/* What is listed to be measured: that it fits, covers, repeats nothing. */
#include "tests/support.h"

#include "calib/device/measure_private.h"
#include "engine/alloc.h"

#include <math.h>

static const pc_calibrate_effort efforts[] = {PC_CALIBRATE_FULL, PC_CALIBRATE_QUICK, PC_CALIBRATE_TINY};

static pc_device_info some_device(test_random *random) {
    pc_device_info info = {.processors = 108};
    info.memory_bytes = (int64_t)1 << test_between(random, 30, 38);
    info.reserved_bytes = test_between(random, 0, info.memory_bytes / 4);
    info.l2_bytes = test_between(random, 1, 128) << 20;
    return info;
}

static pc_shape_list list_of(const pc_device_info *info, pc_calibrate_effort effort, uint64_t seed) {
    int count;
    pc_shape_list list;
    const pc_kernel_family *const *families = pc_kernel_families(&count);
    assert_int_equal(pc_shape_list_make(families, count, info, effort, seed, &list, NULL), PC_OK);
    return list;
}

static int compare_shapes(const void *a, const void *b) {
    const pc_listed_shape *listed = a, *y = b;
    int by_family = strcmp(listed->family->name, y->family->name);
    if (by_family) return by_family;
    const int64_t p[] = {
        listed->shape.dtype,    listed->shape.batch,     listed->shape.m,
        listed->shape.n,        listed->shape.k,         listed->shape.heads,
        listed->shape.kv_heads, listed->shape.is_causal, (int64_t)(1000.0f * listed->shape.probability)};
    const int64_t q[] = {y->shape.dtype,    y->shape.batch,     y->shape.m,
                         y->shape.n,        y->shape.k,         y->shape.heads,
                         y->shape.kv_heads, y->shape.is_causal, (int64_t)(1000.0f * y->shape.probability)};
    for (size_t i = 0; i < sizeof p / sizeof *p; i++)
        if (p[i] != q[i]) return p[i] < q[i] ? -1 : 1;
    return 0;
}

/* What the device has to hold, counted here by the family's own tensors. */
static void check_memory(const pc_listed_shape *listed, const pc_device_info *info) {
    pc_tensor tensors[PC_KERNEL_TENSORS];
    int count;
    int64_t bytes = 0;
    assert_int_equal(listed->family->tensors(&listed->shape, tensors, &count, NULL), PC_OK);
    for (int i = 0; i < count; i++) bytes += (tensors[i].count * pc_dtype_bytes(tensors[i].dtype) + 255) / 256 * 256;
    assert_int_equal(listed->set_bytes, bytes);
    assert_true(listed->sets >= 1 && bytes * listed->sets <= info->memory_bytes - info->reserved_bytes);
    int64_t touched = listed->family->bytes(&listed->shape) < bytes ? listed->family->bytes(&listed->shape) : bytes;
    bool is_cold = touched * listed->sets >= 3 * info->l2_bytes;
    bool is_full = (listed->sets + 1) * bytes > (int64_t)4 << 30 ||
                   (listed->sets + 1) * bytes > (info->memory_bytes - info->reserved_bytes) / 10 * 9;
    assert_true(is_cold || is_full);
}

static void plans_fit_and_repeat_nothing(void **state) {
    (void)state;
    test_random random = {5};
    for (long c = 0; c < test_cases(12, 60); c++) {
        pc_device_info info = some_device(&random);
        pc_calibrate_effort effort = efforts[c % 3];
        uint64_t seed = test_draw(&random);
        pc_shape_list list = list_of(&info, effort, seed), again = list_of(&info, effort, seed);
        assert_int_equal(list.count, again.count);
        for (int64_t i = 0; i < list.count; i++) {
            assert_int_equal(compare_shapes(&list.shape[i], &again.shape[i]), 0);
            check_memory(&list.shape[i], &info);
            assert_true(i == 0 || list.shape[i - 1].tier <= list.shape[i].tier);
        }
        qsort(again.shape, (size_t)again.count, sizeof *again.shape, compare_shapes);
        for (int64_t i = 1; i < again.count; i++)
            assert_true(compare_shapes(&again.shape[i - 1], &again.shape[i]) < 0 ||
                        again.shape[i - 1].shape.epilogue != again.shape[i].shape.epilogue);
        pc_shape_list_free(&list);
        pc_shape_list_free(&again);
    }
}

/* Of every family, the least and the most bytes that the coarse grid has, and how many shapes. */
static void plans_cover_every_family(void **state) {
    (void)state;
    int family_count;
    const pc_kernel_family *const *families = pc_kernel_families(&family_count);
    pc_device_info info = {.processors = 108, .memory_bytes = INT64_C(80) << 30, .l2_bytes = 40 << 20};
    for (int e = 0; e < 3; e++) {
        pc_shape_list list = list_of(&info, efforts[e], 1);
        assert_int_equal(list.too_large, 0);
        for (int f = 0; f < family_count; f++) {
            int64_t least = INT64_MAX, most = 0, coarse = 0, causal = 0, fp16 = 0;
            for (int64_t i = 0; i < list.count; i++) {
                const pc_listed_shape *listed = &list.shape[i];
                if (listed->family != families[f]) continue;
                int64_t bytes = listed->family->bytes(&listed->shape);
                least = bytes < least ? bytes : least;
                most = bytes > most ? bytes : most;
                coarse += listed->tier == PC_SHAPE_COARSE;
                causal += listed->shape.is_causal;
                fp16 += listed->shape.dtype == PC_FP16;
            }
            if (coarse < 7) fail_msg("%s: %d shapes", families[f]->name, (int)coarse);
            if (families[f]->group == PC_KERNEL_ATTENTION) assert_true(causal >= 10 && list.count > causal);
            if (efforts[e] == PC_CALIBRATE_TINY) continue;
            bool is_rows = families[f]->group != PC_KERNEL_GEMM && families[f]->group != PC_KERNEL_GROUPED_GEMM &&
                           families[f]->group != PC_KERNEL_ATTENTION;
            assert_true(least <= 32 << 20 && most >= 128 << 20);
            if (is_rows && !strstr(families[f]->name, "embedding")) assert_true(least <= 1 << 20 && most >= 900 << 20);
            assert_true((fp16 > 0) == (efforts[e] == PC_CALIBRATE_FULL && !families[f]->low));
        }
        pc_shape_list_free(&list);
    }
}

static void another_seed_is_another_order(void **state) {
    (void)state;
    pc_device_info info = {.processors = 108, .memory_bytes = INT64_C(80) << 30, .l2_bytes = 40 << 20};
    pc_shape_list a = list_of(&info, PC_CALIBRATE_QUICK, 1), b = list_of(&info, PC_CALIBRATE_QUICK, 2);
    int64_t same = 0;
    assert_int_equal(a.count, b.count);
    for (int64_t i = 0; i < a.count; i++) same += compare_shapes(&a.shape[i], &b.shape[i]) == 0;
    assert_true(same < a.count / 10);
    qsort(a.shape, (size_t)a.count, sizeof *a.shape, compare_shapes);
    qsort(b.shape, (size_t)b.count, sizeof *b.shape, compare_shapes);
    for (int64_t i = 0; i < a.count; i++) assert_int_equal(compare_shapes(&a.shape[i], &b.shape[i]), 0);
    pc_shape_list_free(&a);
    pc_shape_list_free(&b);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plans_fit_and_repeat_nothing),
        cmocka_unit_test(plans_cover_every_family),
        cmocka_unit_test(another_seed_is_another_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
