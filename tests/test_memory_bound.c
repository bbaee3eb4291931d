/* The families that read, do little and write, on the emulated device: random shapes with and without what is optional,
 * addresses that no vector fits, inputs at their limits; and what is said of shapes, by algebra. */
#include "tests/one_device.h"

#include "kernels/dropout.h"
#include "kernels/dtype.h"
#include "kernels/kernel_check.h"
#include "kernels/memory_bound.h"
#include "kernels/reference/memory_bound.h"
#include "tests/emulated/emulated.h"

#include <math.h>

static const char *const names[] = {
    "gelu_forward",
    "gelu_backward",
    "swiglu_forward",
    "swiglu_backward",
    "rotary_forward",
    "rotary_backward",
    "residual_forward",
    "residual_backward",
    "add",
    "cross_entropy_forward",
    "copy",
    "cross_entropy_backward",
    "embedding_forward",
    "embedding_backward",
    "bias_gradient",
    "adam",
};
enum { NAMES = sizeof names / sizeof *names };

static const pc_kernel_family *family_of(const char *name) {
    const pc_kernel_family *family = pc_kernel_family_find(name);
    if (!family) fail_msg("%s: not in the table", name);
    return family;
}

/* ---- the check of all kernels, on shapes of our own ---- */

static void check(pc_device *device, const char *name, const pc_kernel_shape *shape, uint64_t seed) {
    pc_kernel_check found;
    pc_error error = {0};
    if (pc_kernel_check_run(device, family_of(name), shape, seed, &found, &error))
        fail_msg("%s of %lld x %lld: %s", name, (long long)shape->m, (long long)shape->n, error.message);
    if (!found.is_right)
        fail_msg("%s of %lld x %lld, k %lld, seed %llu: %s", name, (long long)shape->m, (long long)shape->n,
                 (long long)shape->k, (unsigned long long)seed, found.message);
}

/* Half of the sizes are multiples of 8, as those of vectors. */
static int64_t draw_size(test_random *random, int64_t most) {
    int64_t size = test_between(random, 1, most);
    return test_draw(random) % 2 ? size : (size + 7) / 8 * 8;
}

static pc_kernel_shape draw_shape(test_random *random) {
    static const int64_t heads[] = {2, 6, 16, 32, 48, 64};
    pc_kernel_shape s = {.dtype = test_draw(random) % 2 ? PC_BF16 : PC_FP16};
    s.batch = test_between(random, 1, 4);
    s.m = s.batch * test_between(random, 1, 12);
    s.n = draw_size(random, test_draw(random) % 4 ? 100 : 2100);
    s.k = heads[test_between(random, 0, 5)];
    s.heads = test_between(random, 1, 11);
    s.kv_heads = test_between(random, 1, 3);
    s.probability = test_draw(random) % 2 ? 0.1f * (float)test_between(random, 1, 9) : 0.0f;
    s.epilogue = test_draw(random) % 2 ? PC_EPILOGUE_BIAS : PC_EPILOGUE_NONE;
    s.seed = test_draw(random);
    return s;
}

static void test_random_shapes(void **state) {
    long cases = test_cases(5, 5);
    test_random random = {5};
    for (int name = 0; name < NAMES; name++)
        for (long i = 0; i < cases; i++) {
            pc_kernel_shape shape = draw_shape(&random);
            check(*state, names[name], &shape, (uint64_t)i);
        }
}

/* At position 33,000 the second pair of eight stands at 10,400 radians, which fp32 knows to 0.0005 only: twice what is
 * a fault in fp16. */
static void test_far_positions(void **state) {
    pc_kernel_shape shape = {.dtype = PC_FP16, .m = 33000, .n = 33000, .k = 16, .heads = 1, .kv_heads = 1};
    check(*state, "rotary_forward", &shape, 1);
}

/* More tokens than a tile of the sort has, few rows and many. */
static void test_many_tokens(void **state) {
    const int64_t rows[] = {1, 3, 70, 20000};
    for (int i = 0; i < 4; i++) {
        pc_kernel_shape shape = {.dtype = PC_BF16, .batch = 5, .m = 2500, .n = i % 2 ? 16 : 9, .k = rows[i]};
        check(*state, "embedding_backward", &shape, (uint64_t)i);
        shape.epilogue = PC_EPILOGUE_BIAS;
        check(*state, "embedding_forward", &shape, (uint64_t)i);
    }
    pc_kernel_shape exact = {.dtype = PC_BF16, .batch = 2, .m = 2048, .n = 8, .k = 50, .epilogue = PC_EPILOGUE_BIAS};
    check(*state, "embedding_backward", &exact, 9);
}

/* Sums of columns in several parts: whole ones, and a last one that is short or empty. */
static void test_tall(void **state) {
    const int64_t rows[] = {32, 33, 95, 1000, 1025}, columns[] = {8, 9, 264};
    for (int i = 0; i < 15; i++) {
        pc_kernel_shape shape = {.dtype = PC_BF16, .m = rows[i / 3], .n = columns[i % 3]};
        check(*state, "bias_gradient", &shape, (uint64_t)i);
    }
}

/* ---- the same, with addresses and numbers of our own ---- */

typedef struct bench {
    pc_device *device;
    const pc_kernel_family *family;
    const pc_kernel_shape *shape;
    int count;
    pc_tensor tensor[PC_KERNEL_TENSORS];
    void *block[PC_KERNEL_TENSORS];
    char *address[PC_KERNEL_TENSORS];
    double *right[PC_KERNEL_TENSORS];
} bench;

static int64_t bytes_of(const pc_tensor *tensor) {
    return tensor->count * pc_dtype_bytes(tensor->dtype);
}

/* Tensors stand `shift` elements behind what is aligned; scratch does not. */
static void open_bench(bench *b, pc_device *device, const char *name, const pc_kernel_shape *shape, unsigned shifted) {
    *b = (bench){.device = device, .family = family_of(name), .shape = shape};
    assert_int_equal(b->family->tensors(shape, b->tensor, &b->count, NULL), PC_OK);
    for (int i = 0; i < b->count; i++) {
        const pc_tensor *t = &b->tensor[i];
        int64_t shift = t->use != PC_TENSOR_SCRATCH && (shifted >> i & 1) ? pc_dtype_bytes(t->dtype) : 0;
        assert_int_equal(pc_device_allocate(device, bytes_of(t) + shift, &b->block[i], NULL), PC_OK);
        b->address[i] = (char *)b->block[i] + shift;
        bool is_read = t->use == PC_TENSOR_INPUT || t->use == PC_TENSOR_IN_PLACE;
        assert_int_equal(pc_device_fill(device, b->address[i], t->dtype, t->count, is_read ? t->fill : PC_FILL_POISON,
                                        t->scale, (uint64_t)i, NULL),
                         PC_OK);
        b->right[i] = calloc((size_t)t->count, sizeof(double));
    }
}

static void close_bench(bench *b) {
    for (int i = 0; i < b->count; i++) {
        pc_device_free(b->device, b->block[i]);
        free(b->right[i]);
    }
}

static void set(const bench *b, int tensor, int64_t element, double value) {
    pc_dtype dtype = b->tensor[tensor].dtype;
    char bits[8];
    pc_dtype_set(dtype, bits, 0, value);
    char *to = b->address[tensor] + element * pc_dtype_bytes(dtype);
    assert_int_equal(pc_device_upload(b->device, to, bits, pc_dtype_bytes(dtype), NULL), PC_OK);
}

/* What stands on the device, as doubles. */
static double *read_tensor(const bench *b, int tensor) {
    const pc_tensor *t = &b->tensor[tensor];
    char *bits = malloc((size_t)bytes_of(t));
    double *values = malloc((size_t)t->count * sizeof *values);
    assert_int_equal(pc_device_download(b->device, bits, b->address[tensor], bytes_of(t), NULL), PC_OK);
    for (int64_t i = 0; i < t->count; i++) values[i] = pc_dtype_get(t->dtype, bits, i);
    free(bits);
    return values;
}

static void compare(const bench *b, int tensor) {
    const pc_tensor *t = &b->tensor[tensor];
    double *got = read_tensor(b, tensor), typical = 0;
    for (int64_t i = 0; i < t->count; i++) typical += b->right[tensor][i] * b->right[tensor][i] / (double)t->count;
    for (int64_t i = 0; i < t->count; i++) {
        double right = b->right[tensor][i];
        double allowed = t->tolerance * (fabs(right) + sqrt(typical)) + pc_dtype_half_unit(t->dtype, right);
        if (got[i] != pc_dtype_round(t->dtype, right) && !(fabs(got[i] - right) <= allowed))
            fail_msg("%s, %s[%lld]: %.9g; expected %.9g", b->family->name, t->name, (long long)i, got[i], right);
    }
    free(got);
}

static void run_bench(bench *b) {
    for (int i = 0; i < b->count; i++) {
        double *values = read_tensor(b, i);
        memcpy(b->right[i], values, (size_t)b->tensor[i].count * sizeof *values);
        free(values);
    }
    b->family->reference(b->shape, b->right);
    void *addresses[PC_KERNEL_TENSORS];
    for (int i = 0; i < b->count; i++) addresses[i] = b->address[i];
    assert_int_equal(b->family->launch(b->device, b->shape, addresses, NULL), PC_OK);
    assert_int_equal(pc_device_wait(b->device, NULL), PC_OK);
    for (int i = 0; i < b->count; i++)
        if (b->tensor[i].use == PC_TENSOR_OUTPUT || b->tensor[i].use == PC_TENSOR_IN_PLACE) compare(b, i);
}

/* All tensors one element behind an aligned address, and any mixture of such. */
static void test_misaligned(void **state) {
    test_random random = {17};
    for (int name = 0; name < NAMES; name++)
        for (int i = 0; i < 4; i++) {
            pc_kernel_shape shape = {.dtype = i % 2 ? PC_FP16 : PC_BF16,
                                     .batch = 2,
                                     .m = 6,
                                     .n = 80,
                                     .k = 32,
                                     .heads = 3,
                                     .kv_heads = 1,
                                     .probability = 0.25f,
                                     .epilogue = i < 2 ? PC_EPILOGUE_BIAS : PC_EPILOGUE_NONE};
            bench b;
            open_bench(&b, *state, names[name], &shape, i == 0 ? ~0u : (unsigned)test_draw(&random));
            run_bench(&b);
            close_bench(&b);
        }
}

/* Tokens and targets outside of the table: none of their memory is touched, and what they give is zero. */
static void test_no_tokens(void **state) {
    static const char *const of_token[] = {"embedding_forward", "embedding_backward", "cross_entropy_forward",
                                           "cross_entropy_backward"};
    const double outside[] = {-1, 24, INT32_MAX, INT32_MIN};
    for (int i = 0; i < 4; i++) {
        pc_kernel_shape shape = {.dtype = PC_BF16, .m = 9, .n = 24, .k = 24};
        bench b;
        open_bench(&b, *state, of_token[i], &shape, 0);
        for (int j = 0; j < 4; j++) set(&b, 1, 2 * j, outside[j]);
        run_bench(&b);
        int result = i == 3 ? 3 : 2, columns = i == 0 || i == 3 ? 24 : 1;
        double *got = read_tensor(&b, result);
        for (int j = 0; j < columns && i != 1; j++) assert_true(got[2 * columns + j] == 0);
        free(got);
        close_bench(&b);
    }
}

/* Logits of masked columns (-inf), at the ends of fp16, and one far above the rest. */
static void test_large_logits(void **state) {
    pc_kernel_shape shape = {.dtype = PC_FP16, .m = 4, .n = 1111};
    bench b;
    open_bench(&b, *state, "cross_entropy_forward", &shape, 0);
    for (int j = 0; j < 1111; j++) {
        set(&b, 0, j, -INFINITY);
        set(&b, 0, 1111 + j, j % 2 ? 65504 : -65504);
        set(&b, 0, 2222 + j, -65504);
    }
    set(&b, 0, 700, 2.5); /* alone: log_sum is it */
    set(&b, 1, 0, 700);
    run_bench(&b);
    double *log_sum = read_tensor(&b, 3), *loss = read_tensor(&b, 2);
    assert_true(log_sum[0] == 2.5 && loss[0] == 0);
    assert_true(fabs(log_sum[1] - (65504 + log(555))) < 0.01); /* 555 odd numbers below 1111 */
    free(log_sum);
    free(loss);
    close_bench(&b);
}

/* Activations of numbers whose cubes no float holds. */
static void test_large_activations(void **state) {
    const double ends[] = {3e38, -3e38, 1e13, -1e13, 40, -40, 0, 1e-30};
    static const char *const of[] = {"gelu_forward", "gelu_backward", "swiglu_forward", "swiglu_backward"};
    for (int i = 0; i < 4; i++) {
        pc_kernel_shape shape = {.dtype = PC_BF16, .m = 1, .n = 8};
        bench b;
        open_bench(&b, *state, of[i], &shape, 0);
        for (int j = 0; j < 8; j++) set(&b, i % 2, j, ends[j]);
        for (int j = 0; j < 8; j++) set(&b, 0, j, i % 2 ? 0.5 : ends[j]);
        if (i >= 2)
            for (int j = 0; j < 8; j++) set(&b, i % 2, 8 + j, 0.25);
        run_bench(&b);
        close_bench(&b);
    }
}

/* ---- what is said of a shape ---- */

/* Bytes are those of the tensors, what is in place twice, scratch not; of a table that is hit in all rows too. */
static void test_bytes(void **state) {
    (void)state;
    test_random random = {23};
    for (int i = 0; i < 40 * NAMES; i++) {
        const pc_kernel_family *family = family_of(names[i % NAMES]);
        pc_kernel_shape shape = draw_shape(&random);
        if (strncmp(family->name, "embedding", 9) == 0) shape.k = 1;
        pc_tensor tensors[PC_KERNEL_TENSORS];
        int count;
        int64_t bytes = 0;
        assert_int_equal(family->tensors(&shape, tensors, &count, NULL), PC_OK);
        for (int t = 0; t < count; t++)
            bytes += tensors[t].use == PC_TENSOR_SCRATCH
                         ? 0
                         : bytes_of(&tensors[t]) * (tensors[t].use == PC_TENSOR_IN_PLACE ? 2 : 1);
        assert_int_equal(family->bytes(&shape), bytes);
        assert_int_equal(family->flops(&shape), 0);
    }
}

/* Of k rows m evenly drawn tokens miss each with (1 - 1/k)^m: two tokens hit 2 - 1/2 of two rows, that is 2 rounded;
 * many more tokens than rows hit all; many more rows than tokens, a row a token. */
static void test_bytes_of_tables(void **state) {
    (void)state;
    const pc_kernel_family *family = family_of("embedding_backward");
    const int64_t m[] = {2, 1000, 4}, k[] = {2, 10, 1000000}, hit[] = {2, 10, 4};
    for (int i = 0; i < 3; i++) {
        pc_kernel_shape shape = {.dtype = PC_BF16, .m = m[i], .n = 16, .k = k[i]};
        assert_int_equal(family->bytes(&shape), m[i] * (2 * 16 + 4) + hit[i] * 16 * 8);
    }
}

/* Attributes tell the launches that there are, and what of the shape cannot be. */
static void test_attributes(void **state) {
    test_random random = {29};
    for (int i = 0; i < 4 * NAMES; i++) {
        pc_kernel_shape shape = draw_shape(&random);
        pc_kernel_attributes made;
        bench b;
        open_bench(&b, *state, names[i % NAMES], &shape, 0);
        assert_int_equal(b.family->attributes(*state, &shape, &made, NULL), PC_OK);
        int64_t before = pc_emulated_launches(*state);
        run_bench(&b);
        assert_int_equal(pc_emulated_launches(*state) - before, made.launches);
        assert_true(made.grid[0] >= 1 && made.grid[1] >= 1 && made.block[0] % 32 == 0);
        assert_non_null(strstr(made.kernel, shape.dtype == PC_BF16 ? "<bf16>" : "<fp16>"));
        close_bench(&b);
        shape.m = 0;
        assert_int_equal(b.family->attributes(*state, &shape, &made, NULL), PC_ERROR_INPUT);
    }
}

static void test_refusals(void **state) {
    (void)state;
    static const struct {
        const char *family;
        pc_kernel_shape shape;
        const char *message;
    } cases[] = {
        {"add", {.m = 0, .n = 1}, "add: rows 0; expected 1 to 2^31 - 1"},
        {"copy", {.m = 1, .n = -8}, "copy: columns -8; expected 1 to 2^31 - 1"},
        {"adam", {.dtype = PC_INT32, .m = 1, .n = 1}, "adam: dtype number 3; expected bf16 or fp16"},
        {"gelu_forward", {.m = INT64_C(1) << 31, .n = 1}, "gelu_forward: rows 2147483648; expected 1 to 2^31 - 1"},
        {"add", {.m = INT32_MAX, .n = INT32_MAX}, "add: rows 2147483647; expected less than 2^57 elements in all"},
        {"rotary_forward",
         {.m = 1, .n = 1, .k = 7, .heads = 1, .kv_heads = 1},
         "rotary_forward: head dimension 7; expected an even one from 2 on"},
        {"rotary_backward",
         {.m = 1, .n = 1, .k = 8, .heads = 1},
         "rotary_backward: key/value heads 0; expected 1 to 2^31 - 1"},
        {"residual_forward",
         {.m = 1, .n = 1, .probability = 1},
         "residual_forward: probability 1; expected 0 to below 1"},
        {"residual_backward",
         {.m = 1, .n = 1, .probability = NAN},
         "residual_backward: probability nan; expected 0 to below 1"},
        {"embedding_forward", {.m = 1, .n = 1}, "embedding_forward: rows of the table 0; expected 1 to 2^31 - 1"},
        {"embedding_backward",
         {.m = 10, .n = 1, .k = 5, .batch = 3, .epilogue = PC_EPILOGUE_BIAS},
         "embedding_backward: sequences 3; expected a divisor of the tokens, for their positions"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pc_tensor tensors[PC_KERNEL_TENSORS];
        pc_error error = {0};
        int count;
        assert_int_equal(family_of(cases[i].family)->tensors(&cases[i].shape, tensors, &count, &error), PC_ERROR_INPUT);
        assert_string_equal(error.message, cases[i].message);
    }
}

/* ---- dropout, optimizer ---- */

/* The words of counter 0 and key 0 after seven rounds are those of the authors' known answers. */
static void test_philox(void **state) {
    (void)state;
    pc_dropout_bits bits = pc_dropout_eight(0, 0);
    const uint32_t known[4] = {0x5f6fb709, 0x0d893f64, 0x4f121f81, 0x4f730a48};
    for (int i = 0; i < 4; i++) assert_int_equal(bits.word[i], known[i]);
}

/* Of n elements a share p is dropped, up to 5 sqrt(p (1 - p) / n); neighbours, and other seeds, agree by chance only:
 * in p^2 + (1 - p)^2. */
static void test_dropout(void **state) {
    (void)state;
    const int64_t n = 40000;
    const float probabilities[] = {0.1f, 0.5f, 0.9f};
    for (int i = 0; i < 3; i++) {
        double p = probabilities[i], same = p * p + (1 - p) * (1 - p), noise = 5 / sqrt((double)n);
        uint32_t threshold = pc_dropout_threshold(probabilities[i]);
        int64_t dropped = 0, as_next = 0, as_other = 0;
        for (int64_t e = 0; e < n; e++) {
            bool keeps = pc_dropout_keeps(3, e, threshold);
            dropped += !keeps;
            as_next += keeps == pc_dropout_keeps(3, e + 1, threshold);
            as_other += keeps == pc_dropout_keeps(UINT64_C(3) << 32, e, threshold);
        }
        assert_true(fabs((double)dropped / (double)n - p) < noise * sqrt(p * (1 - p)));
        assert_true(fabs((double)as_next / (double)n - same) < noise);
        assert_true(fabs((double)as_other / (double)n - same) < noise);
    }
    assert_int_equal(pc_dropout_threshold(0.5f), 32768);
    assert_int_equal(pc_dropout_threshold(0.0f), 0);
}

/* From moments of 0 the corrections undo (1 - beta): the first step is the gradient's sign, less decay. With a constant
 * gradient g and no decay every step is g / (|g| + epsilon). */
static void test_adam(void **state) {
    (void)state;
    pc_adam adam = {.rate = 0.5f, .beta1 = 0.75f, .beta2 = 0.875f, .epsilon = 0, .decay = 0.25f, .step = 1};
    double master = 2, momentum = 0, variance = 0;
    pc_reference_adam_update(&adam, -8, &master, &momentum, &variance);
    assert_true(momentum == -2 && variance == 8); /* (1 - 3/4) of -8, (1 - 7/8) of 64 */
    assert_true(fabs(master - (2 - 0.5 * (-1 + 0.25 * 2))) < 1e-15);
    adam.decay = 0;
    master = momentum = variance = 0;
    for (adam.step = 1; adam.step <= 20; adam.step++) {
        pc_reference_adam_update(&adam, 3, &master, &momentum, &variance);
        assert_true(fabs(master + 0.5 * adam.step) < 1e-12);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_shapes), cmocka_unit_test(test_far_positions),
        cmocka_unit_test(test_many_tokens),   cmocka_unit_test(test_tall),
        cmocka_unit_test(test_misaligned),    cmocka_unit_test(test_no_tokens),
        cmocka_unit_test(test_large_logits),  cmocka_unit_test(test_large_activations),
        cmocka_unit_test(test_bytes),         cmocka_unit_test(test_bytes_of_tables),
        cmocka_unit_test(test_attributes),    cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_philox),        cmocka_unit_test(test_dropout),
        cmocka_unit_test(test_adam),
    };
    return cmocka_run_group_tests(tests, open_device, close_device);
}
