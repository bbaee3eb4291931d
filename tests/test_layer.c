/* Whole layers: what they keep against models/workload, their passes on the emulated device against the families'
 * references in double precision, those against finite differences, and the lives of their slots. */
#include "tests/support.h"

#include "engine/alloc.h"
#include "kernels/dtype.h"
#include "kernels/kernel_check.h"
#include "kernels/layer.h"
#include "models/workload/memory.h"

#include <math.h>

/* ---- shapes ---- */

static const pc_layer_shape gpt = {.dtype = PC_BF16,
                                   .sequences = 2,
                                   .seq_len = 16,
                                   .hidden = 32,
                                   .heads = 2,
                                   .kv_heads = 2,
                                   .head_dim = 16,
                                   .ffn = 128,
                                   .has_bias = true,
                                   .is_causal = true,
                                   .dropout = 0.25F};

static const pc_layer_shape llama = {.dtype = PC_FP16,
                                     .sequences = 1,
                                     .seq_len = 24,
                                     .hidden = 32,
                                     .heads = 4,
                                     .kv_heads = 2,
                                     .head_dim = 8,
                                     .ffn = 88,
                                     .is_rms_norm = true,
                                     .is_swiglu = true,
                                     .is_rotary = true,
                                     .is_causal = true};

/* Without dropout the residual stream's gradients are those of the matrices; rows that are no whole 16 bytes. */
static const pc_layer_shape plain = {.dtype = PC_BF16,
                                     .sequences = 1,
                                     .seq_len = 9,
                                     .hidden = 20,
                                     .heads = 3,
                                     .kv_heads = 1,
                                     .head_dim = 8,
                                     .ffn = 36,
                                     .has_bias = true};

static const pc_layer_shape *const shapes[] = {&gpt, &llama, &plain};
enum { SHAPES = sizeof shapes / sizeof *shapes };

static pc_layer *make(const pc_layer_shape *shape) {
    pc_error error = {0};
    pc_layer *layer = pc_alloc(1, sizeof *layer);
    assert_non_null(layer);
    if (pc_layer_make(shape, layer, &error)) fail_msg("%s", error.message);
    return layer;
}

/* ---- what is kept ---- */

static bool toss(test_random *random) {
    return test_between(random, 0, 1);
}

static pc_model random_model(test_random *random, int64_t tp) {
    int64_t group = toss(random) ? 1 : test_between(random, 1, 3);
    int64_t kv_heads = tp * test_between(random, 1, 4);
    pc_model model = {.layers = 1,
                      .hidden = 8 * test_between(random, 1, 40),
                      .ffn_hidden = tp * test_between(random, 1, 300),
                      .heads = kv_heads * group,
                      .kv_heads = kv_heads,
                      .head_dim = 8 * test_between(random, 1, 16),
                      .vocab = 1000,
                      .vocab_multiple = 1,
                      .max_positions = 4096,
                      .attention = PC_ATTENTION_FLASH,
                      .has_dropout = toss(random)};
    if (toss(random)) { /* Llama's kind */
        model.norm = PC_NORM_RMS;
        model.mlp = PC_MLP_SWIGLU;
        model.positions = PC_POSITIONS_ROTARY;
    } else {
        model.has_bias = true;
    }
    return model;
}

static pc_layer_shape shape_of(const pc_model *model, const pc_cut *cut) {
    return (pc_layer_shape){.dtype = PC_BF16,
                            .sequences = cut->microbatch_size,
                            .seq_len = cut->seq_len,
                            .hidden = model->hidden,
                            .heads = model->heads / cut->tp,
                            .kv_heads = model->kv_heads / cut->tp,
                            .head_dim = model->head_dim,
                            .ffn = model->ffn_hidden / cut->tp,
                            .is_rms_norm = model->norm == PC_NORM_RMS,
                            .is_swiglu = model->mlp == PC_MLP_SWIGLU,
                            .is_rotary = model->positions == PC_POSITIONS_ROTARY,
                            .has_bias = model->has_bias,
                            .is_causal = true,
                            .dropout = model->has_dropout ? 0.1F : 0};
}

/* The rows of fp32 that F keeps and models/workload does not count: log-sum-exp, 4 bytes a head and token; 1 / sigma,
 * and for LayerNorm mu, of two norms, 4 bytes a token each. */
static int64_t expected_vectors(const pc_layer_shape *shape) {
    int64_t tokens = shape->sequences * shape->seq_len;
    return 4 * tokens * (shape->heads + (shape->is_rms_norm ? 2 : 4));
}

static void check_kept(test_random *random) {
    int64_t tp = test_between(random, 1, 3);
    pc_model model = random_model(random, tp);
    pc_cut cut = {.tp = (int)tp,
                  .pp = 1,
                  .dp = 1,
                  .chunks = 1,
                  .microbatch_size = test_between(random, 1, 4),
                  .microbatches = 1,
                  .seq_len = test_between(random, 1, 200)};
    pc_part part = {.layers = 1};
    pc_part_activation counted;
    assert_int_equal(pc_part_activations(&model, &cut, &part, (pc_pass_forms){.has_r = false}, &counted, NULL), PC_OK);
    pc_layer_shape shape = shape_of(&model, &cut);
    pc_layer *layer = make(&shape);
    int64_t vectors = expected_vectors(&shape), input = pc_layer_bytes(layer, PC_SLOT_INPUT);
    int64_t to_b = pc_layer_bytes(layer, PC_SLOT_F_TO_B), to_w = pc_layer_bytes(layer, PC_SLOT_F_TO_W);
    int64_t from_b = pc_layer_bytes(layer, PC_SLOT_B_TO_W);
    assert_int_equal(input + to_b + to_w - vectors, counted.taken);
    assert_int_equal(input + to_b - vectors - from_b, counted.b_frees);
    int64_t parameters = pc_part_parameters(&model, &cut, &part, false);
    assert_int_equal(pc_layer_bytes(layer, PC_SLOT_PARAMETER), 2 * parameters);
    assert_int_equal(pc_layer_bytes(layer, PC_SLOT_GRADIENT), 4 * parameters);
    pc_free(layer);
}

static void test_kept_is_what_workload_counts(void **state) {
    (void)state;
    test_random random = {17};
    for (long i = test_cases(300, 300); i > 0; i--) check_kept(&random);
}

/* 34 s b h, of which W needs 32, and the vectors: 4 s b (a + 4). */
static void test_gpt_in_closed_form(void **state) {
    (void)state;
    pc_layer *layer = make(&gpt);
    int64_t sbh = gpt.sequences * gpt.seq_len * gpt.hidden;
    int64_t to_b = pc_layer_bytes(layer, PC_SLOT_INPUT) + pc_layer_bytes(layer, PC_SLOT_F_TO_B);
    int64_t to_w = pc_layer_bytes(layer, PC_SLOT_F_TO_W), from_b = pc_layer_bytes(layer, PC_SLOT_B_TO_W);
    int64_t vectors = 4 * gpt.sequences * gpt.seq_len * (gpt.heads + 4);
    assert_int_equal(to_b + to_w, 34 * sbh + vectors);
    assert_int_equal(to_w + from_b, 32 * sbh);
    pc_free(layer);
}

/* ---- running a layer ---- */

/* A layer's slots on the device, each in memory of its own. */
typedef struct bench {
    pc_device *device;
    pc_layer *layer;
    void *at[PC_LAYER_SLOTS];
} bench;

static void must(pc_code code, const pc_error *error) {
    if (code) fail_msg("%s", error->message);
}

static bool is_given(const pc_layer *layer, int slot) {
    pc_slot_life life = layer->slot[slot].life;
    return life == PC_SLOT_PARAMETER || life == PC_SLOT_INPUT || slot == layer->output_gradient;
}

static void fill(bench *b, int slot, pc_fill how, double scale) {
    pc_error error = {0};
    const pc_slot *x = &b->layer->slot[slot];
    must(pc_device_fill(b->device, b->at[slot], x->dtype, x->count, how, scale, 1000 + (uint64_t)slot, &error), &error);
}

static void poison(bench *b, int slot) {
    fill(b, slot, PC_FILL_POISON, 1);
}

/* Weights of a size at which every part of the layer matters; norms' scales differ from one; random gradients to add
 * to. All else is poison. */
static void fill_all(bench *b) {
    double weight = 1 / sqrt((double)b->layer->shape.hidden);
    for (int i = 0; i < b->layer->slot_count; i++) {
        pc_slot_life life = b->layer->slot[i].life;
        bool is_one = b->layer->slot[i].fill == PC_FILL_ONE;
        poison(b, i);
        if (life == PC_SLOT_PARAMETER) fill(b, i, is_one ? PC_FILL_UNIFORM : PC_FILL_NORMAL, is_one ? 2 : weight);
        if (life == PC_SLOT_GRADIENT || (is_given(b->layer, i) && life != PC_SLOT_PARAMETER))
            fill(b, i, PC_FILL_NORMAL, 1);
    }
}

static bench open_bench(const pc_layer_shape *shape) {
    pc_error error = {0};
    bench b = {.layer = make(shape)};
    must(pc_device_open(0, &b.device, &error), &error);
    for (int i = 0; i < b.layer->slot_count; i++)
        must(pc_device_allocate(b.device, pc_slot_bytes(&b.layer->slot[i]), &b.at[i], &error), &error);
    fill_all(&b);
    return b;
}

static void close_bench(bench *b) {
    for (int i = 0; i < b->layer->slot_count; i++) pc_device_free(b->device, b->at[i]);
    pc_device_close(b->device);
    pc_free(b->layer);
}

static void run_step(bench *b, const pc_layer_step *step) {
    void *tensors[PC_KERNEL_TENSORS];
    pc_error error = {0};
    for (int i = 0; i < step->tensor_count; i++) tensors[i] = b->at[step->slot[i]];
    if (step->family->prepare) must(step->family->prepare(b->device, &step->shape, tensors, &error), &error);
    must(step->family->launch(b->device, &step->shape, tensors, &error), &error);
}

static void run_pass(bench *b, const pc_layer_pass *pass) {
    for (int i = 0; i < pass->count; i++) run_step(b, &pass->step[i]);
}

/* The same in double precision, on the host. */
typedef struct right {
    const pc_layer *layer;
    double *at[PC_LAYER_SLOTS];
} right;

static right open_right(const bench *b) {
    right r = {.layer = b->layer};
    for (int i = 0; i < b->layer->slot_count; i++) {
        const pc_slot *slot = &b->layer->slot[i];
        r.at[i] = pc_alloc((size_t)slot->count, sizeof *r.at[i]);
        assert_non_null(r.at[i]);
        for (int64_t j = 0; j < slot->count; j++) r.at[i][j] = pc_dtype_get(slot->dtype, b->at[i], j);
    }
    return r;
}

static void close_right(right *r) {
    for (int i = 0; i < r->layer->slot_count; i++) pc_free(r->at[i]);
}

static void refer(right *r, const pc_layer_pass *pass) {
    double *tensors[PC_KERNEL_TENSORS];
    for (int i = 0; i < pass->count; i++) {
        const pc_layer_step *step = &pass->step[i];
        for (int t = 0; t < step->tensor_count; t++) tensors[t] = r->at[step->slot[t]];
        step->family->reference(&step->shape, tensors);
    }
}

/* ---- passes against references ---- */

static double typical(const double *values, int64_t count) {
    double sum = 0;
    for (int64_t i = 0; i < count; i++) sum += values[i] * values[i];
    return sqrt(sum / (double)count);
}

/* Every step rounds, and passes on what those before it rounded: behind some thirty steps the mean error is a few
 * units, the worst of thousands of elements some times that. A wrong element is off by hundreds. */
static void check_slot(const bench *b, const right *r, int slot) {
    const pc_slot *x = &b->layer->slot[slot];
    double unit = b->layer->shape.dtype == PC_BF16 ? 0x1p-8 : 0x1p-11, size = typical(r->at[slot], x->count), sum = 0;
    for (int64_t i = 0; i < x->count; i++) {
        double off = pc_dtype_get(x->dtype, b->at[slot], i) - r->at[slot][i];
        if (!(fabs(off) <= 40 * unit * (size + fabs(r->at[slot][i]))))
            fail_msg("%s[%lld]: off by %g; expected %g", x->name, (long long)i, off, r->at[slot][i]);
        sum += off * off;
    }
    double error = sqrt(sum / (double)x->count);
    if (!(error <= 8 * unit * size)) fail_msg("%s: off by %g of %g", x->name, error, size);
}

static bool is_result(const pc_layer *layer, int slot) {
    return layer->slot[slot].life == PC_SLOT_GRADIENT || slot == layer->output || slot == layer->input_gradient;
}

static void check_passes(const pc_layer_shape *shape) {
    bench b = open_bench(shape);
    right r = open_right(&b);
    run_pass(&b, &b.layer->f);
    run_pass(&b, &b.layer->b);
    run_pass(&b, &b.layer->w);
    refer(&r, &b.layer->f);
    refer(&r, &b.layer->b);
    refer(&r, &b.layer->w);
    for (int i = 0; i < b.layer->slot_count; i++)
        if (is_result(b.layer, i)) check_slot(&b, &r, i);
    close_right(&r);
    close_bench(&b);
}

static void test_passes_are_right(void **state) {
    (void)state;
    for (int i = 0; i < SHAPES; i++) check_passes(shapes[i]);
}

/* ---- references against finite differences ---- */

static double dot(const double *values, const double *y, int64_t count) {
    double sum = 0;
    for (int64_t i = 0; i < count; i++) sum += values[i] * y[i];
    return sum;
}

/* The loss is the output times the output gradient; how it changes along `direction` in a slot that is given. */
static double slope(right *r, int slot, const double *direction) {
    const pc_layer *layer = r->layer;
    int64_t count = layer->slot[slot].count, outputs = layer->slot[layer->output].count;
    const double step = 1e-5;
    double loss[2];
    for (int side = 0; side < 2; side++) {
        for (int64_t i = 0; i < count; i++) r->at[slot][i] += (side ? 2 : -1) * step * direction[i];
        refer(r, &layer->f);
        loss[side] = dot(r->at[layer->output], r->at[layer->output_gradient], outputs);
    }
    for (int64_t i = 0; i < count; i++) r->at[slot][i] -= step * direction[i];
    return (loss[1] - loss[0]) / (2 * step);
}

/* Along random directions, which meet every element, and along single elements. */
static void draw_direction(test_random *random, int number, int64_t count, double *direction) {
    for (int64_t i = 0; i < count; i++)
        direction[i] = number < 3 ? (double)test_between(random, -1000, 1000) / 1000 : 0;
    if (number >= 3) direction[test_between(random, 0, count - 1)] = 1;
}

static void check_gradient(right *r, test_random *random, int slot, const double *gradient) {
    enum { DIRECTIONS = 7 };
    const pc_slot *x = &r->layer->slot[slot];
    double *direction = pc_alloc((size_t)x->count, sizeof *direction);
    assert_non_null(direction);
    for (int d = 0; d < DIRECTIONS; d++) {
        draw_direction(random, d, x->count, direction);
        double found = dot(gradient, direction, x->count), expected = slope(r, slot, direction);
        double size = typical(gradient, x->count) * sqrt(dot(direction, direction, x->count));
        if (!(fabs(found - expected) <= 1e-5 * (size + fabs(expected))))
            fail_msg("%s: %g along direction %d; expected %g", x->name, found, d, expected);
    }
    pc_free(direction);
}

/* A parameter's gradient stands in the slot behind it. */
static void check_gradients(const pc_layer_shape *shape) {
    bench b = open_bench(shape);
    const pc_layer *layer = b.layer;
    right r = open_right(&b);
    test_random random = {5};
    for (int i = 0; i < layer->slot_count; i++)
        if (layer->slot[i].life == PC_SLOT_GRADIENT) memset(r.at[i], 0, (size_t)layer->slot[i].count * sizeof *r.at[i]);
    refer(&r, &layer->f);
    refer(&r, &layer->b);
    refer(&r, &layer->w);
    check_gradient(&r, &random, layer->input, r.at[layer->input_gradient]);
    for (int i = 0; i < layer->slot_count; i++) {
        if (layer->slot[i].life != PC_SLOT_PARAMETER) continue;
        assert_int_equal(layer->slot[i + 1].life, PC_SLOT_GRADIENT);
        check_gradient(&r, &random, i, r.at[i + 1]);
    }
    close_right(&r);
    close_bench(&b);
}

static void test_gradients_are_those_of_the_loss(void **state) {
    (void)state;
    for (int i = 0; i < SHAPES; i++) check_gradients(shapes[i]);
}

/* ---- lives ---- */

/* Every result, one behind the other; free with pc_free. */
static char *results_of(const bench *b, size_t *size) {
    size_t sum = 0;
    for (int i = 0; i < b->layer->slot_count; i++)
        if (is_result(b->layer, i)) sum += (size_t)pc_slot_bytes(&b->layer->slot[i]);
    char *all = pc_alloc(sum, 1), *next = all;
    assert_non_null(all);
    for (int i = 0; i < b->layer->slot_count; i++) {
        if (!is_result(b->layer, i)) continue;
        memcpy(next, b->at[i], (size_t)pc_slot_bytes(&b->layer->slot[i]));
        next += pc_slot_bytes(&b->layer->slot[i]);
    }
    *size = sum;
    return all;
}

static void check_same_results(const bench *one, const bench *other) {
    size_t size, other_size;
    char *a = results_of(one, &size), *b = results_of(other, &other_size);
    assert_int_equal(size, other_size);
    assert_memory_equal(a, b, size);
    pc_free(a);
    pc_free(b);
}

/* What a pass may find: W the slots that are kept for it and nothing else, the others all but temporaries. */
static bool may_find(const pc_layer *layer, pc_layer_kind kind, int slot) {
    pc_slot_life life = layer->slot[slot].life;
    bool is_for_w = life == PC_SLOT_F_TO_W || life == PC_SLOT_B_TO_W || is_result(layer, slot);
    return kind == PC_LAYER_W ? is_for_w : life != PC_SLOT_TEMPORARY;
}

/* Poisons what the pass may not find, and what a slot holds before it is first written and behind its last use. */
static void run_tape(bench *b, pc_layer_kind kind) {
    pc_layer_tape *tape = pc_alloc(1, sizeof *tape);
    assert_non_null(tape);
    pc_layer_tape_make(b->layer, kind, tape);
    for (int i = 0; i < b->layer->slot_count; i++)
        if (!may_find(b->layer, kind, i)) poison(b, i);
    for (int i = 0; i < tape->count; i++) {
        const pc_layer_moment *x = &tape->moment[i];
        for (int t = 0; t < x->take_count; t++) poison(b, x->take[t]);
        run_step(b, x->step);
        for (int g = 0; g < x->give_count; g++) poison(b, x->give[g]);
    }
    pc_free(tape);
}

/* Temporaries lie in one piece of memory, over each other. */
static void *place(bench *b) {
    pc_error error = {0};
    int64_t offset[PC_LAYER_SLOTS], bytes = pc_layer_place(b->layer, offset), apart = 0;
    void *piece;
    must(pc_device_allocate(b->device, bytes, &piece, &error), &error);
    for (int i = 0; i < b->layer->slot_count; i++) {
        assert_int_equal(offset[i] >= 0, b->layer->slot[i].life == PC_SLOT_TEMPORARY);
        if (offset[i] < 0) continue;
        apart += pc_slot_bytes(&b->layer->slot[i]);
        pc_device_free(b->device, b->at[i]);
        b->at[i] = (char *)piece + offset[i];
    }
    assert_true(bytes < apart);
    return piece;
}

static void close_placed(bench *b, void *piece) {
    for (int i = 0; i < b->layer->slot_count; i++)
        if (b->layer->slot[i].life == PC_SLOT_TEMPORARY) b->at[i] = NULL;
    pc_device_free(b->device, piece);
    close_bench(b);
}

static void check_lives(const pc_layer_shape *shape) {
    bench b = open_bench(shape);
    run_pass(&b, &b.layer->f);
    run_pass(&b, &b.layer->b);
    run_pass(&b, &b.layer->w);
    for (int joined = 0; joined < 2; joined++) {
        bench other = open_bench(shape);
        void *piece = place(&other);
        run_tape(&other, PC_LAYER_F);
        run_tape(&other, joined ? PC_LAYER_BW : PC_LAYER_B);
        if (!joined) run_tape(&other, PC_LAYER_W);
        check_same_results(&b, &other);
        close_placed(&other, piece);
    }
    close_bench(&b);
}

static void test_nobody_reads_a_slot_outside_its_life(void **state) {
    (void)state;
    for (int i = 0; i < SHAPES; i++) check_lives(shapes[i]);
}

/* A microbatch's held slots, beside those of the bench. */
static void swap_held(bench *b, void *other[PC_LAYER_SLOTS]) {
    for (int i = 0; i < b->layer->slot_count; i++) {
        pc_slot_life life = b->layer->slot[i].life;
        if (life != PC_SLOT_F_TO_B && life != PC_SLOT_F_TO_W && life != PC_SLOT_B_TO_W) continue;
        void *mine = b->at[i];
        b->at[i] = other[i];
        other[i] = mine;
    }
}

static void load(bench *b, int microbatch) {
    for (int i = 0; i < b->layer->slot_count; i++)
        if (is_given(b->layer, i) && b->layer->slot[i].life != PC_SLOT_PARAMETER)
            fill(b, i, PC_FILL_NORMAL, 1 + microbatch);
}

/* In turn F B W of each, or all F and B first and W later, in the same order: the same sums to the last bit. */
static void check_deferred(const pc_layer_shape *shape) {
    enum { MICROBATCHES = 3 };
    bench b = open_bench(shape), of[MICROBATCHES], late = open_bench(shape);
    for (int i = 0; i < MICROBATCHES; i++) of[i] = open_bench(shape);
    for (int i = 0; i < MICROBATCHES; i++) {
        load(&b, i);
        run_pass(&b, &b.layer->f);
        run_pass(&b, &b.layer->b);
        run_pass(&b, &b.layer->w);
        swap_held(&late, of[i].at);
        load(&late, i);
        run_pass(&late, &late.layer->f);
        run_pass(&late, &late.layer->b);
        swap_held(&late, of[i].at);
    }
    for (int i = 0; i < MICROBATCHES; i++) {
        swap_held(&late, of[i].at);
        run_pass(&late, &late.layer->w);
        swap_held(&late, of[i].at);
    }
    check_same_results(&b, &late);
    for (int i = 0; i < MICROBATCHES; i++) close_bench(&of[i]);
    close_bench(&late);
    close_bench(&b);
}

static void test_deferred_w_gives_the_same_sums(void **state) {
    (void)state;
    for (int i = 0; i < SHAPES; i++) check_deferred(shapes[i]);
}

/* ---- the kernels of layers alone ---- */

static void check_kernel(const char *name, const pc_kernel_shape *shape) {
    pc_error error = {0};
    pc_kernel_check check;
    pc_device *device;
    must(pc_device_open(0, &device, &error), &error);
    must(pc_kernel_check_run(device, pc_kernel_family_find(name), shape, 3, &check, &error), &error);
    if (!check.is_right) fail_msg("%s: %s", name, check.message);
    pc_device_close(device);
}

/* Heads that are whole pieces of 16 bytes, and some that are not; more columns than threads of a block. */
static void test_queries_keys_and_values_part_and_meet(void **state) {
    (void)state;
    const pc_kernel_shape of[] = {{.dtype = PC_BF16, .m = 3, .heads = 3, .kv_heads = 1, .k = 5},
                                  {.dtype = PC_FP16, .m = 2, .heads = 4, .kv_heads = 2, .k = 16},
                                  {.dtype = PC_FP16, .m = 1, .heads = 7, .kv_heads = 7, .k = 33},
                                  {.dtype = PC_BF16, .m = 2, .heads = 20, .kv_heads = 4, .k = 128}};
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        pc_kernel_shape with_bias = of[i];
        with_bias.epilogue = PC_EPILOGUE_BIAS;
        check_kernel("qkv_split", &of[i]);
        check_kernel("qkv_split", &with_bias);
        check_kernel("qkv_merge", &of[i]);
    }
}

/* ---- what cannot be ---- */

static void check_refused(pc_layer_shape shape, const char *words) {
    pc_error error = {0};
    pc_layer *layer = pc_alloc(1, sizeof *layer);
    assert_non_null(layer);
    assert_int_equal(pc_layer_make(&shape, layer, &error), PC_ERROR_INPUT);
    if (!strstr(error.message, words)) fail_msg("%s", error.message);
    pc_free(layer);
}

static void test_what_cannot_be(void **state) {
    (void)state;
    pc_layer_shape shape = gpt;
    shape.hidden = 0;
    check_refused(shape, "hidden 0; expected 1");
    shape = gpt;
    shape.kv_heads = 3;
    check_refused(shape, "3 key/value heads of 2");
    shape = gpt;
    shape.dropout = 1;
    check_refused(shape, "dropout 1; expected 0 to below 1");
    shape = llama;
    shape.has_bias = true;
    check_refused(shape, "SwiGLU with biases");
    shape = gpt;
    shape.head_dim = 12;
    check_refused(shape, "attention_forward: attention: head dimension 12");
    shape = gpt;
    shape.sequences = INT32_MAX;
    check_refused(shape, "tokens");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kept_is_what_workload_counts),
        cmocka_unit_test(test_gpt_in_closed_form),
        cmocka_unit_test(test_passes_are_right),
        cmocka_unit_test(test_gradients_are_those_of_the_loss),
        cmocka_unit_test(test_nobody_reads_a_slot_outside_its_life),
        cmocka_unit_test(test_deferred_w_gives_the_same_sums),
        cmocka_unit_test(test_queries_keys_and_values_part_and_meet),
        cmocka_unit_test(test_what_cannot_be),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
