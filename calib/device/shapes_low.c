/* What is measured of products of 8 bits: fewer than of 16, for their fits have the same form. Sizes of models:
 * scenarios/models/. */
#include "calib/device/measure_private.h"

#include <stddef.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* A product of this family; gradients as the recipe `hybrid` has them where a tensor has one scale. */
static void add_sizes(pc_shape_builder *b, pc_shape_tier tier, int64_t m, int64_t n, int64_t k) {
    pc_kernel_shape x = {
        .dtype = PC_BF16, .scaling = b->family->low->scaling, .batch = 1, .m = m, .n = n, .k = k, .low = PC_E4M3};
    if (x.scaling == PC_LOW_TENSOR && b->family->role != PC_KERNEL_FORWARD) x.low = PC_E5M2;
    x.accumulates = b->family->role == PC_KERNEL_WEIGHT_GRADIENT;
    pc_shape_add(b, tier, &x);
}

/* The one that a weight matrix of inputs x outputs asks for with so many tokens. */
static void add_product(pc_shape_builder *b, pc_shape_tier tier, int64_t tokens, int64_t inputs, int64_t outputs) {
    pc_kernel_role role = b->family->role;
    int64_t m = role == PC_KERNEL_WEIGHT_GRADIENT ? outputs : tokens;
    int64_t n = role == PC_KERNEL_FORWARD ? outputs : inputs;
    int64_t k = role == PC_KERNEL_FORWARD ? inputs : role == PC_KERNEL_INPUT_GRADIENT ? outputs : tokens;
    add_sizes(b, tier, m, n, k);
}

/* The least that the scaling allows along k, and two and three times that. */
static void add_tiny(pc_shape_builder *b) {
    const int64_t sides[][2] = {{16, 16}, {16, 48}, {32, 16}, {32, 32}};
    int64_t step = b->family->low->scaling == PC_LOW_BLOCK ? 128 : 32;
    for (int64_t k = step; k <= 3 * step; k += step)
        for (size_t i = 0; i < COUNT(sides); i++) add_sizes(b, PC_SHAPE_COARSE, sides[i][0], sides[i][1], k);
}

/* With --quick half of it: the time is for products of 16 bits first. */
static void add_coarse(pc_shape_builder *b, pc_calibrate_effort effort) {
    const int64_t tokens[] = {512, 8192, 2048, 32768};
    const size_t count = effort == PC_CALIBRATE_QUICK ? 2 : COUNT(tokens);
    const int64_t sides[][2] = {{1024, 1024}, {1024, 4096}, {4096, 4096}, {8192, 8192}};
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < COUNT(sides); j++)
            if (tokens[i] * sides[j][0] * sides[j][1] <= (int64_t)1 << 40)
                add_product(b, PC_SHAPE_COARSE, tokens[i], sides[j][0], sides[j][1]);
}

/* Inputs and outputs of a layer's matrices on one rank. */
typedef struct matrix {
    int64_t inputs, outputs;
} matrix;

static void add_matrices(pc_shape_builder *b, const matrix *matrices, size_t count) {
    const int64_t tokens[] = {4096, 8192};
    for (size_t i = 0; i < COUNT(tokens); i++)
        for (size_t j = 0; j < count; j++)
            add_product(b, PC_SHAPE_MODELS, tokens[i], matrices[j].inputs, matrices[j].outputs);
}

/* Llama 3 8B whole, 70B on 4 and 405B on 8 ranks: qkv, output, up and gate, down. */
static const matrix llama[] = {{4096, 6144},  {4096, 4096},  {4096, 28672},  {14336, 4096},
                               {8192, 2560},  {2048, 8192},  {8192, 14336},  {7168, 8192},
                               {16384, 2304}, {2048, 16384}, {16384, 13312}, {6656, 16384}};

/* DeepSeek-V3: queries down and up, keys and values up, output, dense MLP, shared expert. */
static const matrix deepseek[] = {{7168, 1536},  {1536, 24576}, {512, 32768}, {16384, 7168},
                                  {7168, 36864}, {18432, 7168}, {7168, 4096}, {2048, 7168}};

static void add_drawn(pc_shape_builder *b) {
    const int64_t step = 128, flops_most = (int64_t)4e12;
    for (int i = 0; i < 8; i++) {
        int64_t tokens = pc_shape_draw(b, 512, 32768, step);
        int64_t inputs = pc_shape_draw(b, 512, 32768, step), outputs = pc_shape_draw(b, 512, 32768, step);
        if (tokens * inputs <= flops_most / 2 / outputs) add_product(b, PC_SHAPE_FINE, tokens, inputs, outputs);
    }
}

void pc_shapes_of_gemm_low(pc_shape_builder *b, pc_calibrate_effort effort) {
    if (effort == PC_CALIBRATE_TINY) {
        add_tiny(b);
        return;
    }
    add_coarse(b, effort);
    if (effort == PC_CALIBRATE_QUICK) return;
    if (b->family->low->scaling == PC_LOW_BLOCK)
        add_matrices(b, deepseek, COUNT(deepseek));
    else
        add_matrices(b, llama, COUNT(llama));
    add_drawn(b);
}
