/* Roofline costs: every expected number is derived here from the datasheet of a small made-up GPU. */
#include "tests/support.h"

#include "models/cost/cost.h"
#include "models/cost/roofline.h"
#include "models/cost/spread.h"

#include <math.h>

/* Ten processors, tiles of 4 x 8, so that numbers stay small: 1000 FLOP/s a processor at full rate. */
static pc_gpu small_gpu(void) {
    return (pc_gpu){
        .name = "small",
        .matrix_flops_per_s = 20000.0,
        .vector_flops_per_s = 1000.0,
        .memory_bytes_per_s = 200.0,
        .processors = 10,
        .tile_m = 4,
        .tile_n = 8,
        .gemm_efficiency = 0.5,
        .attention_efficiency = 0.25,
        .attention_backward = 1.5,
        .memory_efficiency = 0.5,
    };
}

static pc_operation gemm(int64_t batch, int64_t m, int64_t n, int64_t k) {
    return (pc_operation){.kind = PC_OPERATION_GEMM,
                          .batch = batch,
                          .m = m,
                          .n = n,
                          .k = k,
                          .flops = 2 * batch * m * n * k,
                          .launches = 1,
                          .repeat = 1};
}

static pc_operation kernel(pc_operation_kind kind, int64_t bytes) {
    return (pc_operation){.kind = kind, .batch = 1, .bytes = bytes, .launches = 1, .repeat = 1};
}

static double seconds(const pc_gpu *gpu, const pc_operation *operation) {
    pc_cost_model cost = pc_roofline(gpu);
    return cost.kernel(cost.self, operation).seconds;
}

static void check_close(double got, double expected) {
    if (fabs(got - expected) > 1e-12 * fabs(expected)) fail_msg("%.17g instead of %.17g", got, expected);
}

/* ---- matrix products ---- */

/* 8 x 40 is ten tiles of 4 x 8: one full wave at the whole rate, 2*8*40*k / 10000 seconds. */
static void test_full_wave(void **state) {
    (void)state;
    pc_gpu gpu = small_gpu();
    pc_operation whole = gemm(1, 8, 40, 100);
    check_close(seconds(&gpu, &whole), 2.0 * 8 * 40 * 100 / 10000);
    pc_operation batched = gemm(10, 4, 8, 100); /* the same ten tiles */
    check_close(seconds(&gpu, &batched), seconds(&gpu, &whole));
}

/* With a ramp as long as k the rate is half of that. */
static void test_ramp(void **state) {
    (void)state;
    pc_gpu gpu = small_gpu();
    gpu.gemm_ramp_k = 100;
    pc_operation whole = gemm(1, 8, 40, 100);
    check_close(seconds(&gpu, &whole), 2 * 2.0 * 8 * 40 * 100 / 10000);
}

/* Eleven tiles of 4 x 8 (44 x 8) with a ramp of 10 k: whole tiles take two waves of 64 * (100 + 10) flops a processor
 * of 1000 a second, 14.08 s. Tiles of 2 x 8 are 22, three waves of 32 * 100 + 64 * 10: 11.52 s. 4 x 4 likewise. 8 x 4:
 * 6 * 2 = 12 tiles, two waves. 2 x 4: 44 tiles, five waves of 16 * 100 + 640: 11.2 s, the least. */
static void test_last_wave(void **state) {
    (void)state;
    pc_gpu gpu = small_gpu();
    gpu.gemm_ramp_k = 10;
    pc_operation odd = gemm(1, 44, 8, 100);
    check_close(seconds(&gpu, &odd), 11.2);
}

/* Without a ramp small tiles cost nothing but what they waste: 5 x 3 of k 1 lies in two tiles of 2 x 4 (4 x 2: in 4)
 * more than it needs, all in one wave: 16 flops of a processor. Ten of them (split by batch) take the 30 tiles of
 * 2 x 4 in three waves, or the ten of 8 x 4 in one of 64 flops: 48. */
static void test_small_products(void **state) {
    (void)state;
    pc_gpu gpu = small_gpu();
    pc_operation one = gemm(1, 5, 3, 1);
    check_close(seconds(&gpu, &one), 16.0 / 1000);
    pc_operation ten = gemm(10, 5, 3, 1);
    check_close(seconds(&gpu, &ten), 48.0 / 1000);
}

/* One tile of k = 6400 alone would hold one of ten processors for 64 * 6400 / 1000 = 409.6 s. Halves of it (2 x 8) with
 * k in five parts use all ten: 32 * 1280 / 1000 = 40.96 s, and five times 32 sums are written and read, 2 * 4 * 5 * 32
 * bytes at 100 a second: 12.8 s. Whole in ten: 40.96 + 25.6; quarters in two, of eight processors: 51.2 + 5.12. */
static void test_split_k(void **state) {
    (void)state;
    pc_gpu gpu = small_gpu();
    pc_operation tall = gemm(1, 4, 8, 6400);
    check_close(seconds(&gpu, &tall), 40.96 + 12.8);
    gpu.memory_bytes_per_s /= 2; /* and now the quarters: 51.2 + 2 * 5.12 of 40.96 + 2 * 12.8 */
    check_close(seconds(&gpu, &tall), 51.2 + 10.24);
}

/* The slower of products and memory; 0.5 of 200 bytes a second. */
static void test_memory_bound_product(void **state) {
    (void)state;
    pc_gpu gpu = small_gpu();
    pc_operation thin = gemm(1, 8, 40, 1);
    thin.bytes = 1000;
    check_close(seconds(&gpu, &thin), 10.0);
}

/* ---- attention ---- */

/* 20 heads of 4 queries, one block each: two full waves. FLOPs over 0.25 of 20000. */
static void test_attention(void **state) {
    (void)state;
    pc_gpu gpu = small_gpu();
    pc_operation heads = {.kind = PC_OPERATION_ATTENTION, .batch = 20, .m = 4, .n = 4, .k = 8, .launches = 1};
    heads.flops = 4 * 20 * 4 * 4 * 8;
    check_close(seconds(&gpu, &heads), 10240.0 / 5000);
    heads.batch = 21; /* a third wave for one block */
    heads.flops = 4 * 21 * 4 * 4 * 8;
    check_close(seconds(&gpu, &heads), 10752.0 / 5000 * 30 / 21);
    heads.role = PC_GEMM_INPUT_GRADIENT;
    check_close(seconds(&gpu, &heads), 1.5 * 10752.0 / 5000 * 30 / 21);
    heads.format = PC_PRODUCT_FP8; /* no units for it: as in 16 bits; three times as fast: so */
    check_close(seconds(&gpu, &heads), 1.5 * 10752.0 / 5000 * 30 / 21);
    gpu.matrix_fp8_flops_per_s = 3 * gpu.matrix_flops_per_s;
    check_close(seconds(&gpu, &heads), 1.5 * 10752.0 / 15000 * 30 / 21);
}

/* 16 queries are four blocks in a row, of which the mask leaves 1 + 2 + 3 + 4 of 16. */
static void test_causal_attention(void **state) {
    (void)state;
    pc_gpu gpu = small_gpu();
    pc_operation heads = {.kind = PC_OPERATION_ATTENTION, .batch = 5, .m = 16, .n = 16, .k = 8, .launches = 1};
    heads.flops = 4 * 5 * 16 * 16 * 8;
    double whole = seconds(&gpu, &heads);
    heads.is_causal = true;
    check_close(seconds(&gpu, &heads), whole * 10 / 16);
}

/* A window of 4 keys reaches into two blocks of 4: of four blocks of queries the first walks along one, the others
 * along two, 7 in all where there would be 10. One that holds every key leaves all as it is. */
static void test_windows(void **state) {
    (void)state;
    pc_gpu gpu = small_gpu();
    pc_operation heads = {.kind = PC_OPERATION_ATTENTION, .batch = 5, .m = 16, .n = 16, .k = 8, .launches = 1};
    heads.is_causal = true;
    heads.flops = 4 * 5 * 16 * 16 * 8;
    double all = seconds(&gpu, &heads);
    heads.flops = 4 * 5 * 16 * 4 * 8;
    heads.window = 4;
    check_close(seconds(&gpu, &heads), all * 7 / 10);
    heads.flops = 4 * 5 * 16 * 15 * 8;
    heads.window = 15;
    check_close(seconds(&gpu, &heads), all);
}

/* ---- the rest ---- */

static void test_memory_bound_kernels(void **state) {
    (void)state;
    static const pc_operation_kind kinds[] = {PC_OPERATION_NORM, PC_OPERATION_ELEMENTWISE, PC_OPERATION_OPTIMIZER};
    pc_gpu gpu = small_gpu();
    gpu.kernel_s = 3.0;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        pc_operation operation = kernel(kinds[i], 500);
        check_close(seconds(&gpu, &operation), 5.0 + 3.0);
        operation.launches = 4;
        check_close(seconds(&gpu, &operation), 5.0 + 12.0);
        operation.bytes = 0;
        check_close(seconds(&gpu, &operation), 12.0);
    }
}

/* Sums with repeats; collectives launch and take no kernel time here. */
static void test_pass(void **state) {
    (void)state;
    pc_gpu gpu = small_gpu();
    gpu.kernel_s = 0.5, gpu.launch_s = 0.25, gpu.estimated_error = 0.1;
    pc_operations operations = {.count = 3};
    operations.list[0] = kernel(PC_OPERATION_NORM, 100); /* 1.5 s */
    operations.list[0].repeat = 3;
    operations.list[1] = kernel(PC_OPERATION_ELEMENTWISE, 200); /* 2 s + 2 * 0.5 s */
    operations.list[1].launches = 2;
    operations.list[2] = kernel(PC_OPERATION_ALL_REDUCE, 0);
    operations.list[2].size_bytes = 1 << 20;
    operations.list[2].repeat = 6;
    pc_cost_model cost = pc_roofline(&gpu);
    pc_pass_estimate pass = pc_cost_pass(&cost, &operations);
    check_close(pass.kernel_s, 3 * 1.5 + 3.0);
    check_close(pass.launch_bound_s, (3 + 2 + 6) * 0.25);
    check_close(pass.standard_error, 0.1 * 7.5);
    operations.count = 0;
    pass = pc_cost_pass(&cost, &operations);
    assert_true(pass.kernel_s == 0 && pass.launch_bound_s == 0 && pass.standard_error == 0);
}

/* ---- properties ---- */

static double fraction(test_random *random) {
    return (double)test_between(random, 1, 1000) / 1000;
}

/* One draw a statement: initialisers and arguments have no order. */
static pc_gpu random_gpu(test_random *random) {
    pc_gpu gpu = {0};
    gpu.matrix_flops_per_s = 1e14 * (double)test_between(random, 1, 30);
    gpu.vector_flops_per_s = 1e12 * (double)test_between(random, 1, 200);
    gpu.memory_bytes_per_s = 1e11 * (double)test_between(random, 1, 80);
    gpu.processors = (int32_t)test_between(random, 1, 320);
    gpu.tile_m = 16 << test_between(random, 0, 4);
    gpu.tile_n = 16 << test_between(random, 0, 4);
    gpu.gemm_efficiency = fraction(random);
    gpu.gemm_ramp_k = (double)test_between(random, 0, 500);
    gpu.attention_efficiency = fraction(random);
    gpu.attention_backward = 1 + fraction(random);
    gpu.memory_efficiency = fraction(random);
    gpu.kernel_s = 1e-6 * (double)test_between(random, 0, 10);
    gpu.launch_s = 1e-6 * (double)test_between(random, 0, 10);
    gpu.estimated_error = fraction(random);
    return gpu;
}

static pc_operation random_operation(test_random *random) {
    static const pc_operation_kind kinds[] = {PC_OPERATION_GEMM, PC_OPERATION_GEMM,        PC_OPERATION_ATTENTION,
                                              PC_OPERATION_NORM, PC_OPERATION_ELEMENTWISE, PC_OPERATION_OPTIMIZER};
    int64_t size[4];
    for (int i = 0; i < 4; i++) { /* as many small ones as large ones */
        int64_t most = INT64_C(1) << test_between(random, 0, i == 0 ? 7 : 14);
        size[i] = test_between(random, 1, most);
    }
    pc_operation made = gemm(size[0], size[1], size[2], size[3]);
    made.kind = kinds[test_between(random, 0, 5)];
    made.role = (pc_gemm_role)test_between(random, 0, 2);
    made.bytes = test_between(random, 0, INT64_C(1) << test_between(random, 0, 34));
    made.launches = (int32_t)test_between(random, 1, 5);
    made.is_causal = test_between(random, 0, 1);
    if (made.kind == PC_OPERATION_ATTENTION) made.flops *= 2;
    if (made.kind > PC_OPERATION_ATTENTION) made.flops = 0;
    return made;
}

/* Nothing is faster than its rates: FLOPs at efficiency * peak, bytes at efficiency * bandwidth, kernels one by one. */
static void check_bounds(const pc_gpu *gpu, const pc_operation *operation, double got) {
    double slack = 1 - 1e-12;
    double start = operation->launches * gpu->kernel_s;
    double memory = (double)operation->bytes / (gpu->memory_bytes_per_s * gpu->memory_efficiency);
    double matrix = 0;
    if (operation->kind == PC_OPERATION_GEMM)
        matrix = (double)operation->flops / (gpu->matrix_flops_per_s * gpu->gemm_efficiency);
    if (operation->kind == PC_OPERATION_ATTENTION)
        matrix = (double)operation->flops / (gpu->matrix_flops_per_s * gpu->attention_efficiency) *
                 (operation->is_causal ? 0.5 : 1);
    assert_true(isfinite(got));
    assert_true(got >= slack * (start + memory));
    assert_true(got >= slack * (start + matrix));
}

/* One more row, column, product, product of a batch, or byte never makes a kernel faster. */
static void check_monotone(const pc_gpu *gpu, const pc_operation *operation, test_random *random, double got) {
    pc_operation larger = *operation;
    int64_t more = test_between(random, 1, 300);
    switch (test_between(random, 0, 4)) {
    case 0:
        larger.m += operation->kind == PC_OPERATION_ATTENTION ? 0 : more;
        break;
    case 1:
        larger.n += more;
        break;
    case 2:
        larger.k += more;
        break;
    case 3:
        larger.batch += more;
        break;
    default:
        larger.bytes += more;
    }
    if (operation->kind <= PC_OPERATION_ATTENTION)
        larger.flops = (operation->kind == PC_OPERATION_GEMM ? 2 : 4) * larger.batch * larger.m * larger.n * larger.k;
    assert_true(seconds(gpu, &larger) >= got * (1 - 1e-12));
}

/* Twice the rates and no fixed times: half, to the last bit, for a power of two changes no digit. */
static void check_scaling(pc_gpu gpu, const pc_operation *operation) {
    gpu.kernel_s = 0;
    double before = seconds(&gpu, operation);
    gpu.matrix_flops_per_s *= 2, gpu.vector_flops_per_s *= 2, gpu.memory_bytes_per_s *= 2;
    assert_true(seconds(&gpu, operation) == before / 2);
}

static void test_random_kernels(void **state) {
    (void)state;
    test_random random = {4};
    for (long i = 0; i < test_cases(20000, 100000); i++) {
        pc_gpu gpu = random_gpu(&random);
        pc_operation operation = random_operation(&random);
        pc_cost_model cost = pc_roofline(&gpu);
        pc_estimate got = cost.kernel(cost.self, &operation);
        assert_true(cost.launch_s == gpu.launch_s);
        check_close(got.standard_error, got.seconds * gpu.estimated_error);
        check_bounds(&gpu, &operation, got.seconds);
        check_monotone(&gpu, &operation, &random, got.seconds);
        check_scaling(gpu, &operation);
    }
}

/* A sum over random costs, as one number that must be the same on all machines, compilers and optimisation levels. */
static void test_same_bits(void **state) {
    (void)state;
    test_random random = {7};
    double sum = 0;
    for (int i = 0; i < 1000; i++) {
        pc_gpu gpu = random_gpu(&random);
        pc_operation operation = random_operation(&random);
        sum += seconds(&gpu, &operation);
    }
    uint64_t bits;
    memcpy(&bits, &sum, sizeof bits);
    assert_int_equal(bits, UINT64_C(0x3ffd03a1a05ea59e));
}

/* ---- the slowest of many ---- */

/* E = integral over x > 0 of 1 - P^n, less that over x < 0 of P^n, where P is the normal distribution. */
static double largest_by_integral(double count) {
    double sum = 0, step = 1.0 / 256;
    for (double x = step / 2; x < 9; x += step) {
        double above = 0.5 * erfc(x / sqrt(2.0));
        sum += step * (-expm1(count * log1p(-above)) - exp(count * log(above)));
    }
    return sum;
}

static void test_expected_largest(void **state) {
    (void)state;
    assert_true(pc_expected_largest(1) == 0);
    assert_true(pc_expected_largest(0) == 0);
    double before = 0;
    for (int64_t count = 2; count < INT64_C(1) << 28; count = count * 17 / 16 + 1) {
        double got = pc_expected_largest(count), expected = largest_by_integral((double)count);
        assert_true(got > before);
        assert_true(got < expected + 1e-4 && got > expected - 0.06);
        before = got;
    }
    for (int power = 1; power <= 30; power++) {
        int64_t count = INT64_C(1) << power;
        assert_true(fabs(pc_expected_largest(count) - largest_by_integral((double)count)) < 1e-4);
    }
    assert_true(pc_expected_largest(INT64_MAX) == pc_expected_largest(INT64_C(1) << 30));
}

/* What is not fused moves more bytes, but for sums of weights' gradients, which are one kernel anyway: 300 bytes at 100
 * a second. */
static void test_unfused(void **state) {
    (void)state;
    pc_gpu gpu = small_gpu();
    pc_operation between = kernel(PC_OPERATION_ELEMENTWISE, 300), sum = between,
                 step = kernel(PC_OPERATION_OPTIMIZER, 300);
    gpu.unfused = 1.5;
    sum.role = PC_GEMM_WEIGHT_GRADIENT;
    check_close(seconds(&gpu, &between), 4.5);
    check_close(seconds(&gpu, &sum), 3);
    check_close(seconds(&gpu, &step), 3);
}

/* ---- formats ---- */

/* Ten tiles of 4 x 8 over k = 100 in one wave: 2 * 4 * 8 * 100 = 6400 FLOPs a processor. At half of 2000 FLOP/s each,
 * 6.4 s in 16 bits; twice the rate 3.2 s, four times 1.6 s; with gemm_efficiency_fp8 = 0.25 twice as long again. */
static void products_go_at_the_rate_of_their_format(void **state) {
    (void)state;
    pc_gpu gpu = small_gpu();
    gpu.matrix_fp8_flops_per_s = 2 * gpu.matrix_flops_per_s;
    gpu.matrix_fp4_flops_per_s = 4 * gpu.matrix_flops_per_s;
    gpu.kernel_s = gpu.launch_s = 0;
    const double right[PC_PRODUCT_FORMATS] = {6.4, 6.4, 3.2, 3.2, 3.2, 1.6};
    pc_operation product = gemm(1, 40, 8, 100);
    pc_cost_model cost = pc_roofline(&gpu);
    for (int format = 0; format < PC_PRODUCT_FORMATS; format++) {
        product.format = (pc_product_format)format;
        assert_true(fabs(cost.kernel(cost.self, &product).seconds - right[format]) < 1e-9);
    }
    gpu.gemm_efficiency_fp8 = 0.25;
    for (int format = 0; format < PC_PRODUCT_FORMATS; format++) {
        product.format = (pc_product_format)format;
        double slower = pc_product_format_is_low((pc_product_format)format) ? 2 : 1;
        assert_true(fabs(cost.kernel(cost.self, &product).seconds - slower * right[format]) < 1e-9);
    }
}

/* What fills and drains a tile writes 16 bits whatever it read: as many seconds in all formats. k = gemm_ramp_k = 100:
 * 6.4 s of ramp beside 6.4, 3.2 or 1.6 s of products. */
static void the_ramp_of_a_tile_is_the_same_in_all_formats(void **state) {
    (void)state;
    pc_gpu gpu = small_gpu();
    gpu.matrix_fp8_flops_per_s = 2 * gpu.matrix_flops_per_s;
    gpu.matrix_fp4_flops_per_s = 4 * gpu.matrix_flops_per_s;
    gpu.kernel_s = gpu.launch_s = 0;
    gpu.gemm_ramp_k = 100;
    const double right[PC_PRODUCT_FORMATS] = {12.8, 12.8, 9.6, 9.6, 9.6, 8};
    pc_operation product = gemm(1, 40, 8, 100);
    pc_cost_model cost = pc_roofline(&gpu);
    for (int format = 0; format < PC_PRODUCT_FORMATS; format++) {
        product.format = (pc_product_format)format;
        assert_true(fabs(cost.kernel(cost.self, &product).seconds - right[format]) < 1e-9);
    }
}

/* 32 numbers, and their scales: 4 bytes for 128 is 1 for 32; 1 for 32; 1 for 16 is 2 for 32. */
static void formats_have_names_and_bytes(void **state) {
    (void)state;
    static const char *const names[PC_PRODUCT_FORMATS] = {"bf16", "fp16", "fp8", "fp8_block", "mxfp8", "nvfp4"};
    const int bytes[PC_PRODUCT_FORMATS] = {64, 64, 32, 33, 33, 18},
              multiple[PC_PRODUCT_FORMATS] = {1, 1, 16, 16, 32, 16},
              gathered[PC_PRODUCT_FORMATS] = {1, 1, 16, 128, 32, 16};
    pc_product_format found = PC_PRODUCT_MXFP8;
    for (int i = 0; i < PC_PRODUCT_FORMATS; i++) {
        assert_string_equal(pc_product_format_name((pc_product_format)i), names[i]);
        assert_true(pc_product_format_find(names[i], &found) && (int)found == i);
        assert_int_equal(pc_product_format_bytes_of_32((pc_product_format)i), bytes[i]);
        assert_int_equal(pc_product_format_multiple((pc_product_format)i), multiple[i]);
        assert_int_equal(pc_product_format_gathered_multiple((pc_product_format)i), gathered[i]);
        assert_true(pc_product_format_is_low((pc_product_format)i) == (i > 1));
    }
    assert_false(pc_product_format_find("fp9", &found));
    assert_int_equal(found, PC_PRODUCT_NVFP4);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_full_wave),
        cmocka_unit_test(test_unfused),
        cmocka_unit_test(test_ramp),
        cmocka_unit_test(test_last_wave),
        cmocka_unit_test(test_small_products),
        cmocka_unit_test(test_split_k),
        cmocka_unit_test(test_memory_bound_product),
        cmocka_unit_test(test_attention),
        cmocka_unit_test(test_causal_attention),
        cmocka_unit_test(test_windows),
        cmocka_unit_test(test_memory_bound_kernels),
        cmocka_unit_test(test_pass),
        cmocka_unit_test(test_random_kernels),
        cmocka_unit_test(test_same_bits),
        cmocka_unit_test(test_expected_largest),
        cmocka_unit_test(products_go_at_the_rate_of_their_format),
        cmocka_unit_test(the_ramp_of_a_tile_is_the_same_in_all_formats),
        cmocka_unit_test(formats_have_names_and_bytes),
    };
    return cmocka_run_group_tests_name("cost", tests, NULL, NULL);
}
