/* Every backward reference against central differences of its forward reference, in double precision: the proof that
 * the references, by which the kernels are judged, are derivatives at all.
 *
 * Take a loss L = sum of weight * output, with random weights as the output's gradient. Then the gradient of an input x
 * is (L(x + h) - L(x - h)) / 2h, up to h^2 / 6 of the third derivative and to rounding, 1e-16 L / h. With h = 1e-4 both
 * are below 1e-8 of what tensors of size one give. Tensors find each other by name: what is called X_gradient or dX
 * belongs to X, what has the name of a tensor of forward is that tensor. */
#include "tests/support.h"

#include "kernels/kernel.h"

#include <math.h>

static const double STEP = 1e-4, TOLERANCE = 1e-6;

/* ---- tensors ---- */

typedef struct bag {
    const pc_kernel_family *family;
    pc_kernel_shape shape;
    int count;
    pc_tensor tensor[PC_KERNEL_TENSORS];
    double *value[PC_KERNEL_TENSORS];
} bag;

/* Sum of twelve uniform numbers less 6: about normal, and bounded. */
static double draw_normal(test_random *random) {
    double sum = -6;
    for (int i = 0; i < 12; i++) sum += test_draw_unit(random);
    return sum;
}

static void fill(const pc_tensor *tensor, double *value, test_random *random) {
    for (int64_t i = 0; i < tensor->count; i++)
        value[i] = tensor->fill == PC_FILL_INDEX ? (double)test_between(random, 0, (int64_t)tensor->scale - 1)
                                                 : draw_normal(random);
}

static bag *make_bag(const pc_kernel_family *family, const pc_kernel_shape *shape, test_random *random) {
    bag *b = calloc(1, sizeof *b);
    pc_error error = {0};
    b->family = family;
    b->shape = *shape;
    if (family->tensors(shape, b->tensor, &b->count, &error)) fail_msg("%s: %s", family->name, error.message);
    for (int i = 0; i < b->count; i++) {
        b->value[i] = malloc((size_t)b->tensor[i].count * sizeof(double));
        for (int64_t j = 0; j < b->tensor[i].count; j++) b->value[i][j] = NAN;
        if (b->tensor[i].use == PC_TENSOR_INPUT || b->tensor[i].use == PC_TENSOR_IN_PLACE)
            fill(&b->tensor[i], b->value[i], random);
    }
    return b;
}

static void free_bag(bag *b) {
    for (int i = 0; i < b->count; i++) free(b->value[i]);
    free(b);
}

static int find(const bag *b, const char *name) {
    for (int i = 0; i < b->count; i++)
        if (strcmp(b->tensor[i].name, name) == 0) return i;
    return -1;
}

/* The number in `b` of the gradient of `name`; -1 where there is none. */
static int find_gradient(const bag *b, const char *name) {
    char wanted[64];
    snprintf(wanted, sizeof wanted, "%s_gradient", name);
    int found = find(b, wanted);
    if (found >= 0) return found;
    snprintf(wanted, sizeof wanted, "d%s", name);
    return find(b, wanted);
}

static void copy_values(double *to, const double *from, int64_t count) {
    memcpy(to, from, (size_t)count * sizeof *to);
}

static bool is_number(const pc_tensor *tensor) {
    return tensor->dtype != PC_INT32 && tensor->dtype != PC_UINT8;
}

/* ---- one pair ---- */

typedef struct pair {
    const char *forward, *backward;
    const char *mean; /* the output of which the mean is the loss, where backward is not given its gradient */
    pc_kernel_shape shape;
} pair;

/* A pair's forward, its weights and its backward. */
typedef struct trial {
    const pair *of;
    bag *forward, *backward;
    double *weight[PC_KERNEL_TENSORS]; /* of forward's outputs; NULL: none */
    double *first[PC_KERNEL_TENSORS];  /* of backward's: what stood there before */
} trial;

/* Forward's outputs of forward's inputs; what is in place is put back. */
static double loss_of(const trial *t) {
    const bag *f = t->forward;
    double *kept[PC_KERNEL_TENSORS] = {NULL}, loss = 0;
    for (int i = 0; i < f->count; i++) {
        if (f->tensor[i].use != PC_TENSOR_IN_PLACE) continue;
        kept[i] = malloc((size_t)f->tensor[i].count * sizeof(double));
        copy_values(kept[i], f->value[i], f->tensor[i].count);
    }
    f->family->reference(&f->shape, f->value);
    for (int i = 0; i < f->count; i++)
        for (int64_t j = 0; t->weight[i] && j < f->tensor[i].count; j++) loss += t->weight[i][j] * f->value[i][j];
    for (int i = 0; i < f->count; i++) {
        if (kept[i]) copy_values(f->value[i], kept[i], f->tensor[i].count);
        free(kept[i]);
    }
    return loss;
}

static void draw_weights(trial *t, test_random *random) {
    const bag *f = t->forward;
    for (int i = 0; i < f->count; i++) {
        const pc_tensor *tensor = &f->tensor[i];
        bool is_result = tensor->use == PC_TENSOR_OUTPUT || tensor->use == PC_TENSOR_IN_PLACE;
        bool is_mean = t->of->mean && strcmp(t->of->mean, tensor->name) == 0;
        if (!is_result || !is_number(tensor) || (!is_mean && find_gradient(t->backward, tensor->name) < 0)) continue;
        t->weight[i] = malloc((size_t)tensor->count * sizeof(double));
        for (int64_t j = 0; j < tensor->count; j++)
            t->weight[i][j] = is_mean ? 1.0 / (double)tensor->count : draw_normal(random);
    }
}

/* Gives backward forward's tensors and the weights. */
static void connect(trial *t) {
    const bag *f = t->forward;
    for (int i = 0; i < f->count; i++) {
        int same = find(t->backward, f->tensor[i].name), gradient = find_gradient(t->backward, f->tensor[i].name);
        if (same >= 0) {
            assert_int_equal(t->backward->tensor[same].use, PC_TENSOR_INPUT);
            assert_int_equal(t->backward->tensor[same].count, f->tensor[i].count);
            copy_values(t->backward->value[same], f->value[i], f->tensor[i].count);
        }
        if (gradient >= 0) assert_int_equal(t->backward->tensor[gradient].count, f->tensor[i].count);
        if (gradient >= 0 && t->weight[i]) copy_values(t->backward->value[gradient], t->weight[i], f->tensor[i].count);
    }
    for (int i = 0; i < t->backward->count; i++) {
        t->first[i] = malloc((size_t)t->backward->tensor[i].count * sizeof(double));
        copy_values(t->first[i], t->backward->value[i], t->backward->tensor[i].count);
    }
}

static double difference(const trial *t, int tensor, int64_t element) {
    double *x = &t->forward->value[tensor][element], kept = *x;
    *x = kept + STEP;
    double above = loss_of(t);
    *x = kept - STEP;
    double below = loss_of(t);
    *x = kept;
    return (above - below) / (2 * STEP);
}

/* ---- what backward says ---- */

/* Of a bias: the columns' sums of the gradient of what it is added to, backward's one output. */
static void bias_gradient(const trial *t, int64_t columns, double *gradient) {
    const pc_kernel_family *sums = pc_kernel_family_find("bias_gradient");
    int result = 0;
    while (t->backward->tensor[result].use != PC_TENSOR_OUTPUT) result++;
    pc_kernel_shape shape = {.m = t->backward->tensor[result].count / columns, .n = columns};
    double *tensors[PC_KERNEL_TENSORS] = {t->backward->value[result], gradient};
    for (int64_t i = 0; i < columns; i++) gradient[i] = 0;
    sums->reference(&shape, tensors);
}

/* The gradient of forward's tensor `number`, into `gradient`. */
static void said(const trial *t, int number, double *gradient) {
    const pc_tensor *x = &t->forward->tensor[number];
    int found = find_gradient(t->backward, x->name);
    if (found < 0 && strcmp(x->name, "bias") == 0) {
        bias_gradient(t, x->count, gradient);
    } else if (found < 0 && strcmp(x->name, "residual") == 0) {
        copy_values(gradient, t->weight[find(t->forward, "output")], x->count);
    } else {
        if (found < 0) fail_msg("%s: no gradient of %s", t->backward->family->name, x->name);
        bool adds = t->backward->tensor[found].use == PC_TENSOR_IN_PLACE && x->use == PC_TENSOR_INPUT;
        for (int64_t i = 0; i < x->count; i++)
            gradient[i] = t->backward->value[found][i] - (adds ? t->first[found][i] : 0);
    }
}

static void check_gradient(const trial *t, int number, test_random *random) {
    const pc_tensor *x = &t->forward->tensor[number];
    double *gradient = malloc((size_t)x->count * sizeof(double)), typical = 0;
    said(t, number, gradient);
    for (int64_t i = 0; i < x->count; i++) typical += gradient[i] * gradient[i] / (double)x->count;
    typical = sqrt(typical);
    int64_t tried = x->count < 60 ? x->count : 60;
    for (int64_t i = 0; i < tried; i++) {
        int64_t element = tried == x->count ? i : test_between(random, 0, x->count - 1);
        double expected = difference(t, number, element);
        double allowed = TOLERANCE * (fabs(expected) + typical + 1e-3);
        if (!(fabs(gradient[element] - expected) <= allowed))
            fail_msg("%s of %s[%lld]: %.12g; expected %.12g", t->backward->family->name, x->name, (long long)element,
                     gradient[element], expected);
    }
    free(gradient);
}

static void check_pair(const pair *of, uint64_t seed) {
    test_random random = {seed};
    trial t = {.of = of};
    const pc_kernel_family *forward = pc_kernel_family_find(of->forward);
    const pc_kernel_family *backward = pc_kernel_family_find(of->backward);
    if (!forward || !backward) fail_msg("%s, %s: not in the table", of->forward, of->backward);
    t.forward = make_bag(forward, &of->shape, &random);
    t.backward = make_bag(backward, &of->shape, &random);
    draw_weights(&t, &random);
    (void)loss_of(&t);
    connect(&t);
    backward->reference(&of->shape, t.backward->value);
    for (int i = 0; i < t.forward->count; i++) {
        const pc_tensor *x = &t.forward->tensor[i];
        bool is_varied = x->use == PC_TENSOR_INPUT || x->use == PC_TENSOR_IN_PLACE;
        if (is_varied && is_number(x)) check_gradient(&t, i, &random);
    }
    for (int i = 0; i < PC_KERNEL_TENSORS; i++) {
        free(t.weight[i]);
        free(t.first[i]);
    }
    free_bag(t.forward);
    free_bag(t.backward);
}

/* ---- all pairs ---- */

#define BF16 .dtype = PC_BF16

static const pair elementwise[] = {
    {"gelu_forward", "gelu_backward", NULL, {BF16, .m = 5, .n = 7}},
    {"gelu_forward", "gelu_backward", NULL, {BF16, .m = 4, .n = 6, .epilogue = PC_EPILOGUE_BIAS}},
    {"swiglu_forward", "swiglu_backward", NULL, {BF16, .m = 3, .n = 5}},
    {"rotary_forward", "rotary_backward", NULL, {BF16, .m = 6, .n = 3, .k = 10, .heads = 3, .kv_heads = 1}},
    {"residual_forward", "residual_backward", NULL, {BF16, .m = 4, .n = 9}},
    {"residual_forward",
     "residual_backward",
     NULL,
     {BF16, .m = 5, .n = 9, .probability = 0.3f, .seed = 11, .epilogue = PC_EPILOGUE_BIAS}},
    {"qkv_split", "qkv_merge", NULL, {BF16, .m = 3, .k = 4, .heads = 4, .kv_heads = 2}},
    {"qkv_split", "qkv_merge", NULL, {BF16, .m = 3, .k = 4, .heads = 2, .kv_heads = 2, .epilogue = PC_EPILOGUE_BIAS}},
};

static const pair ends[] = {
    {"cross_entropy_forward", "cross_entropy_backward", "loss", {BF16, .m = 4, .n = 11}},
    {"cross_entropy_forward", "cross_entropy_backward", "loss", {BF16, .m = 1, .n = 2}},
    {"embedding_forward", "embedding_backward", NULL, {BF16, .m = 12, .n = 3, .k = 5}},
    {"embedding_forward",
     "embedding_backward",
     NULL,
     {BF16, .batch = 3, .m = 12, .n = 3, .k = 5, .epilogue = PC_EPILOGUE_BIAS}},
};

static const pair norms[] = {
    {"layer_norm_forward", "layer_norm_backward", NULL, {BF16, .m = 4, .n = 13}},
    {"rms_norm_forward", "rms_norm_backward", NULL, {BF16, .m = 4, .n = 13}},
    {"softmax_forward", "softmax_backward", NULL, {BF16, .batch = 2, .heads = 2, .m = 5, .n = 5, .k = 4}},
    {"softmax_forward",
     "softmax_backward",
     NULL,
     {BF16, .batch = 1, .heads = 3, .m = 6, .n = 6, .k = 4, .is_causal = true}},
};

static const pair attentions[] = {
    {"attention_forward",
     "attention_backward",
     NULL,
     {BF16, .batch = 2, .m = 5, .n = 5, .k = 8, .heads = 2, .kv_heads = 1}},
    {"attention_forward",
     "attention_backward",
     NULL,
     {BF16, .batch = 1, .m = 4, .n = 6, .k = 8, .heads = 4, .kv_heads = 2, .is_causal = true}},
};

static void check_pairs(const pair *pairs, size_t count) {
    long cases = test_cases(3, 3);
    for (size_t i = 0; i < count; i++)
        for (long seed = 1; seed <= cases; seed++) check_pair(&pairs[i], (uint64_t)seed);
}

static void test_elementwise(void **state) {
    (void)state;
    check_pairs(elementwise, sizeof elementwise / sizeof *elementwise);
}

static void test_ends(void **state) {
    (void)state;
    check_pairs(ends, sizeof ends / sizeof *ends);
}

static void test_norms(void **state) {
    (void)state;
    check_pairs(norms, sizeof norms / sizeof *norms);
}

static void test_attentions(void **state) {
    (void)state;
    check_pairs(attentions, sizeof attentions / sizeof *attentions);
}

/* ---- matrix products, whose three families have shapes of their own ---- */

enum { M = 4, N = 5, K = 3 };

/* Of C[M,N] = A[M,K] B[N,K]^T: A's gradient is C's [M,N] times B as it lies [N,K], B's the sum over M of C's and A's.
 */
static void test_products(void **state) {
    (void)state;
    const pc_kernel_shape shape = {BF16, .batch = 1, .m = M, .n = N, .k = K};
    const pc_kernel_shape input = {BF16, .batch = 1, .m = M, .n = K, .k = N};
    const pc_kernel_shape weight = {BF16, .batch = 1, .m = N, .n = K, .k = M, .accumulates = true};
    double a[M * K], b[N * K], c[M * N], weights[M * N], of_a[M * K], of_b[N * K], first[N * K];
    test_random random = {31};
    for (int i = 0; i < M * K; i++) a[i] = draw_normal(&random);
    for (int i = 0; i < N * K; i++) b[i] = draw_normal(&random);
    for (int i = 0; i < M * N; i++) weights[i] = draw_normal(&random);
    for (int i = 0; i < N * K; i++) first[i] = of_b[i] = draw_normal(&random);
    pc_kernel_family_find("gemm_input_gradient")->reference(&input, (double *[]){weights, b, of_a});
    pc_kernel_family_find("gemm_weight_gradient")->reference(&weight, (double *[]){weights, a, of_b});
    const pc_kernel_family *forward = pc_kernel_family_find("gemm_forward");
    for (int i = 0; i < (M + N) * K; i++) {
        double *x = i < M * K ? &a[i] : &b[i - M * K], kept = *x, change = 0;
        for (int sign = -1; sign <= 1; sign += 2) {
            *x = kept + sign * STEP;
            forward->reference(&shape, (double *[]){a, b, c});
            for (int j = 0; j < M * N; j++) change += sign * weights[j] * c[j];
        }
        *x = kept;
        double got = i < M * K ? of_a[i] : of_b[i - M * K] - first[i - M * K];
        assert_true(fabs(got - change / (2 * STEP)) < TOLERANCE);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_elementwise), cmocka_unit_test(test_ends),     cmocka_unit_test(test_norms),
        cmocka_unit_test(test_attentions),  cmocka_unit_test(test_products),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
