/* What is measured of experts' products: few groups with many rows and many with few, and those of models. Sizes of
 * models: scenarios/models/. */
#include "calib/device/measure_private.h"

#include <stddef.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* `rows` a group on average; inputs and outputs of the forward product. In 8 bits as the recipe `hybrid` has it. */
static void add_grouped(pc_shape_builder *b, pc_shape_tier tier, int64_t groups, int64_t rows, int64_t inputs,
                        int64_t outputs) {
    pc_kernel_shape x = {.dtype = tier == PC_SHAPE_HALF ? PC_FP16 : PC_BF16, .batch = groups, .m = rows};
    x.n = outputs;
    x.k = inputs;
    x.accumulates = b->family->role == PC_KERNEL_WEIGHT_GRADIENT;
    if (b->family->low) {
        x.scaling = b->family->low->scaling;
        x.low = x.scaling == PC_LOW_TENSOR && b->family->role != PC_KERNEL_FORWARD ? PC_E5M2 : PC_E4M3;
    }
    pc_shape_add(b, tier, &x);
}

/* What is summed over is 128 at least: inputs forward, outputs in the input's gradient, else rows. */
static void add_tiny_blocks(pc_shape_builder *b) {
    pc_kernel_role role = b->family->role;
    for (int64_t groups = 1; groups <= 5; groups++)
        for (int64_t side = 16; side <= 48; side += 32)
            add_grouped(b, PC_SHAPE_COARSE, groups, 256, role == PC_KERNEL_FORWARD ? 128 : side,
                        role == PC_KERNEL_INPUT_GRADIENT ? 128 : side);
}

static void add_tiny(pc_shape_builder *b) {
    if (b->family->low && b->family->low->scaling == PC_LOW_BLOCK) {
        add_tiny_blocks(b);
        return;
    }
    for (int64_t groups = 1; groups <= 5; groups++) {
        add_grouped(b, PC_SHAPE_COARSE, groups, 32, 32, 64);
        add_grouped(b, PC_SHAPE_COARSE, groups, 64, 48, 32);
    }
}

/* With --quick 8 groups in one size only. */
static void add_coarse(pc_shape_builder *b, pc_calibrate_effort effort) {
    const int64_t groups[] = {2, 8, 32}, rows[] = {256, 2048}, sides[][2] = {{512, 1024}, {4096, 4096}};
    for (size_t i = 0; i < COUNT(groups); i++)
        for (size_t j = 0; j < COUNT(rows); j++)
            for (size_t k = effort == PC_CALIBRATE_QUICK && groups[i] == 8; k < COUNT(sides); k++)
                add_grouped(b, PC_SHAPE_COARSE, groups[i], rows[j], sides[k][0], sides[k][1]);
}

/* Experts of one rank: how many, their rows in balance, and the sizes of the model. Up and gate are one matrix. */
static const struct model {
    int64_t hidden, inter, groups[3], rows[3];
} models[] = {
    {4096, 14336, {1, 2, 8}, {8192, 4096, 2048}},  /* Mixtral 8x7B: 8 experts, 2 a token; ep 8, 4 and 1 */
    {2048, 768, {16, 32, 128}, {2048, 1024, 512}}, /* Qwen3-30B-A3B: 128 experts, 8 a token; ep 8, 4 and 1 */
    {7168, 2048, {4, 8, 32}, {8192, 4096, 1024}},  /* DeepSeek-V3: 256 experts, 8 a token; ep 64, 32 and 8 */
};

static void add_models(pc_shape_builder *b) {
    for (size_t i = 0; i < COUNT(models); i++)
        for (int j = 0; j < 3; j++) {
            const struct model *of = &models[i];
            add_grouped(b, PC_SHAPE_MODELS, of->groups[j], of->rows[j], of->hidden, 2 * of->inter);
            add_grouped(b, PC_SHAPE_MODELS, of->groups[j], of->rows[j], of->inter, of->hidden);
        }
}

static void add_half(pc_shape_builder *b) {
    const int64_t groups[] = {2, 8, 32}, sides[][2] = {{512, 1024}, {2048, 4096}, {4096, 4096}};
    for (size_t i = 0; i < COUNT(groups) && !b->family->low; i++)
        for (size_t j = 0; j < COUNT(sides); j++)
            add_grouped(b, PC_SHAPE_HALF, groups[i], 1024, sides[j][0], sides[j][1]);
}

void pc_shapes_of_grouped(pc_shape_builder *b, pc_calibrate_effort effort) {
    if (effort == PC_CALIBRATE_TINY) {
        add_tiny(b);
        return;
    }
    add_coarse(b, effort);
    if (effort == PC_CALIBRATE_QUICK) return;
    add_models(b);
    add_half(b);
}
