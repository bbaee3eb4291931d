/* What is measured of kernels that move bytes: sizes from 64 KiB to 1 GiB, read and written, in rows as wide as those
 * of models. */
#include "calib/device/measure_private.h"

#include <stddef.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* What a family's shape is like beside its rows. */
typedef enum row_form {
    ROWS,    /* m tokens of n columns */
    DROPOUT, /* the same, with a mask */
    HEADS,   /* m tokens of heads of k columns, in sequences of n */
    LOGITS,  /* m tokens of n words */
    TABLE,   /* m tokens of n columns, looked up in k rows */
    MATRICES /* square ones of n columns, `batch` of them */
} row_form;

static const struct {
    const char *name;
    row_form form;
} families[] = {
    {"layer_norm_forward", ROWS},
    {"layer_norm_backward", ROWS},
    {"rms_norm_forward", ROWS},
    {"rms_norm_backward", ROWS},
    {"softmax_forward", MATRICES},
    {"softmax_backward", MATRICES},
    {"gelu_forward", ROWS},
    {"gelu_backward", ROWS},
    {"swiglu_forward", ROWS},
    {"swiglu_backward", ROWS},
    {"rotary_forward", HEADS},
    {"rotary_backward", HEADS},
    {"residual_forward", DROPOUT},
    {"residual_backward", DROPOUT},
    {"add", ROWS},
    {"cross_entropy_forward", LOGITS},
    {"cross_entropy_backward", LOGITS},
    {"embedding_forward", TABLE},
    {"embedding_backward", TABLE},
    {"bias_gradient", ROWS},
    {"adam", ROWS},
    {"copy", ROWS},
    {"cast", ROWS},
    {"cast_transpose", ROWS},
    {"amax", ROWS},
    {"qkv_split", HEADS},
    {"qkv_merge", HEADS},
};

static bool find_form(const char *name, row_form *found) {
    for (size_t i = 0; i < COUNT(families); i++)
        if (strcmp(families[i].name, name) == 0) {
            *found = families[i].form;
            return true;
        }
    return false;
}

/* ---- one size ---- */

/* Widths that models have: hidden sizes, cut and not; words; words of one of eight ranks. */
static const int64_t widths[] = {4096, 8192, 2048, 5120, 12288, 1024, 6144, 16384};
static const int64_t words[] = {32000, 50304, 16032, 128256, 6288};
static const int64_t sides[] = {128, 512, 1024, 2048};

/* The shape of a form, one row (one matrix) of it; `number` picks the width. */
static pc_kernel_shape one_row(row_form form, bool is_tiny, int number) {
    pc_kernel_shape x = {.dtype = PC_BF16, .batch = 1, .m = 1};
    x.n = is_tiny ? INT64_C(16) * (1 + number % 3) : widths[(size_t)number % COUNT(widths)];
    if (form == DROPOUT) x.probability = 0.1f;
    if (form == HEADS) {
        x.heads = is_tiny ? 2 : 32;
        x.kv_heads = is_tiny ? 1 : 8;
        x.k = is_tiny ? 16 : 128;
        x.n = is_tiny ? 8 : 4096;
    }
    if (form == LOGITS) x.n = is_tiny ? 50 + number % 3 : words[(size_t)number % COUNT(words)];
    if (form == TABLE) x.k = is_tiny ? 40 : 32000;
    if (form == MATRICES) {
        x.n = x.m = is_tiny ? 8 : sides[(size_t)number % COUNT(sides)];
        x.heads = 1;
        x.is_causal = true;
    }
    return x;
}

/* As many rows (matrices) as come nearest to `target` bytes; bytes grow by the same with each. */
static pc_kernel_shape of_size(const pc_shape_builder *b, row_form form, pc_kernel_shape shape, int64_t target) {
    int64_t *rows = form == MATRICES ? &shape.batch : &shape.m, first = b->family->bytes(&shape);
    *rows = 2;
    int64_t each = b->family->bytes(&shape) - first, more = each > 0 && target > first ? (target - first) / each : 0;
    *rows = 1 + more;
    return shape;
}

static void add_size(pc_shape_builder *b, row_form form, pc_shape_tier tier, int64_t target, int number) {
    pc_kernel_shape x = of_size(b, form, one_row(form, false, number), target);
    if (tier == PC_SHAPE_HALF) x.dtype = PC_FP16;
    pc_shape_add(b, tier, &x);
}

/* ---- the grid ---- */

static void add_tiny(pc_shape_builder *b, row_form form) {
    for (int i = 0; i < 8; i++) {
        pc_kernel_shape x = of_size(b, form, one_row(form, true, i), (int64_t)512 << i % 6);
        *(form == MATRICES ? &x.batch : &x.m) += i; /* odd numbers too */
        pc_shape_add(b, PC_SHAPE_COARSE, &x);
    }
    if (strcmp(b->family->name, "copy") == 0) {
        pc_kernel_shape x = {.dtype = PC_BF16, .batch = 1, .m = 64, .n = 256};
        pc_shape_add(b, PC_SHAPE_CEILING, &x);
    }
}

#define KIB INT64_C(1024)
#define MIB (1024 * KIB)
static const int64_t gib = 1 << 30;

static void add_ceiling(pc_shape_builder *b) {
    for (int64_t size = gib; size >= gib / 8; size /= 2) {
        pc_kernel_shape x = {.dtype = PC_BF16, .batch = 1, .m = size / 2 / 8192, .n = 8192};
        int64_t before = b->list->count;
        pc_shape_add(b, PC_SHAPE_CEILING, &x);
        if (b->list->count > before) return; /* the largest that fits */
    }
}

static void add_coarse(pc_shape_builder *b, row_form form) {
    const int64_t sizes[] = {64 * KIB, 512 * KIB, 4 * MIB, 16 * MIB, 64 * MIB, 128 * MIB, 512 * MIB, gib};
    for (size_t i = 0; i < COUNT(sizes); i++) add_size(b, form, PC_SHAPE_COARSE, sizes[i], 0);
}

static void add_fine(pc_shape_builder *b, row_form form) {
    int number = 1;
    for (int64_t size = 128 * KIB; size <= gib; size *= 2) add_size(b, form, PC_SHAPE_MODELS, size, number++);
    for (int i = 0; i < 8; i++) {
        int64_t size = pc_shape_draw(b, 64 * KIB, gib, 1);
        pc_kernel_shape x = of_size(b, form, one_row(form, false, i), size);
        if (i % 2 == 1) x.probability = 0;
        pc_shape_add(b, PC_SHAPE_FINE, &x);
    }
    for (int64_t size = 256 * KIB; size <= gib; size *= 4) add_size(b, form, PC_SHAPE_HALF, size, 0);
}

bool pc_shapes_of_rows(pc_shape_builder *b, pc_calibrate_effort effort) {
    row_form form;
    if (!find_form(b->family->name, &form)) return false;
    if (effort == PC_CALIBRATE_TINY) {
        add_tiny(b, form);
        return true;
    }
    if (strcmp(b->family->name, "copy") == 0) add_ceiling(b);
    add_coarse(b, form);
    if (effort == PC_CALIBRATE_FULL) add_fine(b, form);
    return true;
}
