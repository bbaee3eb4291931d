/* What is measured of products and of attention. Sizes of models: scenarios/models/. */
#include "calib/device/measure_private.h"

#include <stddef.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* ---- products ---- */

/* The product of this family that a weight matrix of inputs x outputs asks for with so many tokens. */
static pc_kernel_shape product(const pc_kernel_family *family, int64_t tokens, int64_t inputs, int64_t outputs) {
    pc_kernel_shape x = {.dtype = PC_BF16, .batch = 1};
    if (family->role == PC_KERNEL_FORWARD) {
        x.m = tokens, x.n = outputs, x.k = inputs;
    } else if (family->role == PC_KERNEL_INPUT_GRADIENT) {
        x.m = tokens, x.n = inputs, x.k = outputs;
    } else {
        x.m = outputs, x.n = inputs, x.k = tokens;
        x.accumulates = true;
    }
    return x;
}

static void add_product(pc_shape_builder *b, pc_shape_tier tier, int64_t tokens, int64_t inputs, int64_t outputs) {
    pc_kernel_shape x = product(b->family, tokens, inputs, outputs);
    pc_shape_add(b, tier, &x);
}

static void add_tiny_products(pc_shape_builder *b) {
    const int64_t tokens[] = {16, 32, 64, 96}, sides[][2] = {{16, 32}, {32, 32}, {64, 16}, {48, 64}, {24, 96}};
    for (size_t i = 0; i < COUNT(tokens); i++)
        for (size_t j = 0; j < COUNT(sides); j++) add_product(b, PC_SHAPE_COARSE, tokens[i], sides[j][0], sides[j][1]);
    if (b->family->role == PC_KERNEL_FORWARD) add_product(b, PC_SHAPE_CEILING, 96, 96, 96);
}

static void add_ceilings(pc_shape_builder *b) {
    const int64_t sizes[][3] = {{8192, 8192, 8192}, {16384, 8192, 8192}, {8192, 8192, 16384}, {4096, 16384, 8192}};
    if (b->family->role != PC_KERNEL_FORWARD) return;
    for (size_t i = 0; i < COUNT(sizes); i++) add_product(b, PC_SHAPE_CEILING, sizes[i][0], sizes[i][1], sizes[i][2]);
}

static void add_coarse_products(pc_shape_builder *b) {
    const int64_t tokens[] = {512, 2048, 8192, 32768};
    const int64_t sides[][2] = {{512, 512}, {1024, 4096}, {4096, 1024}, {4096, 4096}, {8192, 8192}, {16384, 4096}};
    for (size_t i = 0; i < COUNT(tokens); i++)
        for (size_t j = 0; j < COUNT(sides); j++)
            if (tokens[i] * sides[j][0] * sides[j][1] <= (int64_t)1 << 40)
                add_product(b, PC_SHAPE_COARSE, tokens[i], sides[j][0], sides[j][1]);
    add_product(b, PC_SHAPE_COARSE, 2048, 4096, 50304); /* a head: a wide product */
}

/* A layer's four matrices on one of `tp` ranks: outputs of query, key and value and of the first matrix of the MLP are
 * cut, and inputs of the two others. */
typedef struct layer_sizes {
    int64_t hidden, qkv, query, up, ffn, tp, tokens[2];
} layer_sizes;

static void add_layer(pc_shape_builder *b, pc_shape_tier tier, const layer_sizes *sizes) {
    for (int i = 0; i < 2; i++) {
        add_product(b, tier, sizes->tokens[i], sizes->hidden, sizes->qkv / sizes->tp);
        add_product(b, tier, sizes->tokens[i], sizes->query / sizes->tp, sizes->hidden);
        add_product(b, tier, sizes->tokens[i], sizes->hidden, sizes->up / sizes->tp);
        add_product(b, tier, sizes->tokens[i], sizes->ffn / sizes->tp, sizes->hidden);
    }
}

static void add_model_products(pc_shape_builder *b) {
    static const layer_sizes layers[] = {
        {2048, 6144, 2048, 8192, 8192, 1, {2048, 4096}},       /* GPT-3 1.3B */
        {4096, 12288, 4096, 16384, 16384, 1, {2048, 4096}},    /* GPT-3 6.7B */
        {5120, 15360, 5120, 20480, 20480, 2, {2048, 4096}},    /* GPT-3 13B (as the 5,120 of Megatron) */
        {6144, 18432, 6144, 24576, 24576, 4, {1024, 4096}},    /* 21B, 22B */
        {8192, 24576, 8192, 32768, 32768, 8, {2048, 8192}},    /* 38.5B */
        {12288, 36864, 12288, 49152, 49152, 8, {2048, 4096}},  /* GPT-3 175B */
        {20480, 61440, 20480, 81920, 81920, 8, {2048, 4096}},  /* 530B */
        {4096, 6144, 4096, 28672, 14336, 1, {4096, 8192}},     /* Llama 3 8B */
        {8192, 10240, 8192, 57344, 28672, 8, {4096, 8192}},    /* Llama 3 70B */
        {16384, 18432, 16384, 106496, 53248, 8, {4096, 8192}}, /* Llama 3 405B */
    };
    for (size_t i = 0; i < COUNT(layers); i++) add_layer(b, PC_SHAPE_MODELS, &layers[i]);
    const int64_t heads[][3] = {{2048, 2048, 50304}, {2048, 12288, 6288}, {8192, 4096, 32064}, {8192, 8192, 16032}};
    for (size_t i = 0; i < COUNT(heads); i++) add_product(b, PC_SHAPE_MODELS, heads[i][0], heads[i][1], heads[i][2]);
}

/* Scores and values of attention that is not fused: a small product of every head. */
static void add_batched_products(pc_shape_builder *b) {
    const int64_t sizes[][3] = {{16, 1024, 64}, {16, 2048, 128}, {32, 2048, 128}, {12, 4096, 128}};
    if (b->family->role == PC_KERNEL_WEIGHT_GRADIENT) return;
    for (size_t i = 0; i < COUNT(sizes); i++) {
        int64_t heads = sizes[i][0], sequence = sizes[i][1], dimension = sizes[i][2];
        pc_kernel_shape scores = {.dtype = PC_BF16, .batch = heads, .m = sequence, .n = sequence, .k = dimension};
        pc_kernel_shape values = {.dtype = PC_BF16, .batch = heads, .m = sequence, .n = dimension, .k = sequence};
        pc_shape_add(b, PC_SHAPE_MODELS, &scores);
        pc_shape_add(b, PC_SHAPE_MODELS, &values);
    }
}

/* Evenly over the logarithms, but for what takes too long: most as tensor parallelism leaves them (multiples of 64),
 * some of 8. Rows that 16 bytes do not divide run at a fraction of the speed, which no fit over sizes can tell. */
static void add_drawn_products(pc_shape_builder *b) {
    const int64_t flops_most = (int64_t)4e12;
    for (int i = 0; i < 48; i++) {
        int64_t step = i % 6 == 5 ? 8 : 64;
        int64_t tokens = pc_shape_draw(b, 512, 32768, step);
        int64_t inputs = pc_shape_draw(b, 512, 65536, step), outputs = pc_shape_draw(b, 512, 65536, step);
        if (tokens * inputs <= flops_most / 2 / outputs) add_product(b, PC_SHAPE_FINE, tokens, inputs, outputs);
    }
}

static void add_half_products(pc_shape_builder *b) {
    const int64_t sizes[][3] = {{2048, 1024, 4096},  {2048, 4096, 1024}, {2048, 4096, 4096}, {2048, 12288, 6144},
                                {2048, 8192, 8192},  {4096, 5120, 7680}, {512, 4096, 4096},  {512, 1024, 1024},
                                {8192, 4096, 16384}, {8192, 8192, 8192}, {8192, 1024, 1024}, {8192, 16384, 4096},
                                {32768, 1024, 4096}, {1024, 6144, 6144}, {2048, 2048, 8192}, {4096, 8192, 4096}};
    for (size_t i = 0; i < COUNT(sizes); i++) {
        pc_kernel_shape x = product(b->family, sizes[i][0], sizes[i][1], sizes[i][2]);
        x.dtype = PC_FP16;
        pc_shape_add(b, PC_SHAPE_HALF, &x);
    }
}

void pc_shapes_of_gemm(pc_shape_builder *b, pc_calibrate_effort effort) {
    if (effort == PC_CALIBRATE_TINY) {
        add_tiny_products(b);
        return;
    }
    add_ceilings(b);
    add_coarse_products(b);
    if (effort == PC_CALIBRATE_QUICK) return;
    add_model_products(b);
    add_batched_products(b);
    add_drawn_products(b);
    add_half_products(b);
}

/* ---- attention ---- */

typedef struct heads_of {
    int64_t heads, kv_heads, dimension;
} heads_of;

/* With as many sequences as make `tokens` of them, but at least one; causal and not. */
static void add_attention(pc_shape_builder *b, pc_shape_tier tier, pc_dtype dtype, int64_t tokens, int64_t sequence,
                          const heads_of *sizes) {
    for (int is_causal = 1; is_causal >= 0; is_causal--) {
        pc_kernel_shape shape = {.dtype = dtype,
                                 .batch = tokens > sequence ? tokens / sequence : 1,
                                 .m = sequence,
                                 .n = sequence,
                                 .k = sizes->dimension,
                                 .heads = sizes->heads,
                                 .kv_heads = sizes->kv_heads,
                                 .is_causal = is_causal};
        pc_shape_add(b, tier, &shape);
    }
}

static void add_tiny_attention(pc_shape_builder *b) {
    const int64_t sequences[] = {8, 16, 24, 32, 48};
    const heads_of heads[] = {{1, 1, 16}, {2, 1, 16}, {2, 2, 32}};
    for (size_t i = 0; i < COUNT(sequences); i++)
        for (size_t j = 0; j < COUNT(heads); j++)
            add_attention(b, PC_SHAPE_COARSE, PC_BF16, 32, sequences[i], &heads[j]);
}

/* Many sequences and one. */
static void add_coarse_attention(pc_shape_builder *b) {
    const int64_t sequences[] = {512, 1024, 2048, 4096, 8192}, tokens[] = {4096, 1, 4096};
    const heads_of heads[] = {{16, 16, 128}, {32, 8, 128}, {16, 16, 64}};
    for (size_t i = 0; i < COUNT(sequences); i++)
        for (size_t j = 0; j < COUNT(heads); j++)
            add_attention(b, PC_SHAPE_COARSE, PC_BF16, tokens[j], sequences[i], &heads[j]);
}

static void add_model_attention(pc_shape_builder *b) {
    const int64_t sequences[] = {512, 1024, 2048, 4096, 8192, 16384, 32768};
    const heads_of heads[] = {{12, 12, 128}, {8, 1, 128}, {32, 8, 128}, {24, 24, 64}, {40, 40, 128}, {16, 2, 128}};
    const int64_t work_most = (int64_t)8 * 32768 * 32768; /* heads times scores */
    for (size_t i = 0; i < COUNT(sequences); i++)
        for (size_t j = 0; j < COUNT(heads); j++) {
            int64_t sequence = sequences[i];
            if (heads[j].heads * sequence > work_most / sequence) continue;
            add_attention(b, PC_SHAPE_MODELS, PC_BF16, 2048, sequence, &heads[j]);
            if (j < 2 && sequence <= 8192) add_attention(b, PC_SHAPE_MODELS, PC_BF16, 16384, sequence, &heads[j]);
        }
}

static void add_drawn_attention(pc_shape_builder *b) {
    for (int i = 0; i < 12; i++) {
        int64_t group = (int64_t)1 << (i % 4);
        heads_of heads = {group * pc_shape_draw(b, 1, 8, 1), 0, i % 3 == 2 ? 64 : 128};
        heads.kv_heads = heads.heads / group;
        int64_t sequence = pc_shape_draw(b, 512, 12288, i % 5 == 4 ? 1 : 128);
        add_attention(b, PC_SHAPE_FINE, PC_BF16, pc_shape_draw(b, 512, 8192, 1), sequence, &heads);
    }
}

static void add_half_attention(pc_shape_builder *b) {
    const int64_t sequences[] = {512, 1024, 2048, 4096, 8192};
    const heads_of heads[] = {{16, 16, 128}, {12, 12, 64}};
    for (size_t i = 0; i < COUNT(sequences); i++)
        for (size_t j = 0; j < COUNT(heads); j++)
            add_attention(b, PC_SHAPE_HALF, PC_FP16, 4096, sequences[i], &heads[j]);
}

void pc_shapes_of_attention(pc_shape_builder *b, pc_calibrate_effort effort) {
    if (effort == PC_CALIBRATE_TINY) {
        add_tiny_attention(b);
        return;
    }
    add_coarse_attention(b);
    if (effort == PC_CALIBRATE_QUICK) return;
    add_model_attention(b);
    add_drawn_attention(b);
    add_half_attention(b);
}
