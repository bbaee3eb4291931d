/* Steps follow models/workload/operations_layer.c, one kernel for one operation, as far as the families go; the tests
 * hold what is kept against models/workload/memory.c. */
#include "kernels/layer.h"

#include <inttypes.h>
#include <string.h>

enum { NO_SLOT = -1 };

/* Slots by name; NO_SLOT where the layer has none. */
typedef struct names {
    int x, y, dy, dx;
    int norm1_scale, norm1_shift, qkv_weight, qkv_bias, output_weight, output_bias;
    int norm2_scale, norm2_shift, up_weight, up_bias, down_weight, down_bias;
    int d_norm1_scale, d_norm1_shift, d_qkv_weight, d_qkv_bias, d_output_weight, d_output_bias;
    int d_norm2_scale, d_norm2_shift, d_up_weight, d_up_bias, d_down_weight, d_down_bias;
    int norm1, mean1, rstd1, q, k, v, attention, lse, middle, mask1; /* middle: between attention and MLP */
    int norm2, mean2, rstd2, up, active, mask2;
    int d_qkv, d_output, d_up, d_down; /* gradients of what the four matrices write */
    int d_middle;                      /* d_output where there is no dropout */
} names;

/* The first error stays, and what follows it does nothing. */
typedef struct builder {
    pc_layer *layer;
    const pc_layer_shape *shape;
    names s;
    int64_t tokens, query, key, qkv, up; /* columns of a token */
    pc_code code;
    pc_error *error;
} builder;

/* ---- slots ---- */

static int add_slot(builder *b, const char *name, pc_slot_life life, pc_dtype dtype, int64_t count) {
    pc_layer *layer = b->layer;
    if (layer->slot_count == PC_LAYER_SLOTS) {
        if (!b->code)
            b->code = pc_error_set(b->error, PC_ERROR_INPUT, "layer: slot %s is one too many; expected %d at most",
                                   name, PC_LAYER_SLOTS);
        return 0;
    }
    layer->slot[layer->slot_count] = (pc_slot){.name = name, .dtype = dtype, .count = count, .life = life};
    return layer->slot_count++;
}

/* Of activations, one row a token. */
static int add_rows(builder *b, const char *name, pc_slot_life life, int64_t columns) {
    return add_slot(b, name, life, b->shape->dtype, b->tokens * columns);
}

static int add_vector(builder *b, const char *name, int64_t count) {
    return add_slot(b, name, PC_SLOT_F_TO_B, PC_FP32, count);
}

static int add_mask(builder *b, const char *name) {
    if (b->shape->dropout <= 0) return NO_SLOT;
    return add_slot(b, name, PC_SLOT_F_TO_B, PC_UINT8, b->tokens * b->shape->hidden);
}

/* A parameter and its gradient. Weights begin as GPT-2's do: normal, 0.02. */
static void add_parameter(builder *b, const char *name, const char *gradient_name, int64_t count, int *slot,
                          int *gradient) {
    *slot = add_slot(b, name, PC_SLOT_PARAMETER, b->shape->dtype, count);
    b->layer->slot[*slot].fill = PC_FILL_NORMAL;
    b->layer->slot[*slot].scale = 0.02;
    *gradient = add_slot(b, gradient_name, PC_SLOT_GRADIENT, PC_FP32, count);
}

static void add_bias(builder *b, const char *name, const char *gradient_name, int64_t count, int *slot, int *gradient) {
    *slot = *gradient = NO_SLOT;
    if (b->shape->has_bias) add_parameter(b, name, gradient_name, count, slot, gradient);
}

static void add_norm_scale(builder *b, const char *name, const char *gradient_name, int *slot, int *gradient) {
    add_parameter(b, name, gradient_name, b->shape->hidden, slot, gradient);
    b->layer->slot[*slot].fill = PC_FILL_ONE;
}

/* Of LayerNorm, also where nothing else has a bias. */
static void add_norm_shift(builder *b, const char *name, const char *gradient_name, int *slot, int *gradient) {
    *slot = *gradient = NO_SLOT;
    if (!b->shape->is_rms_norm) add_parameter(b, name, gradient_name, b->shape->hidden, slot, gradient);
}

static void add_parameters(builder *b) {
    names *s = &b->s;
    int64_t h = b->shape->hidden, f = b->shape->ffn;
    add_norm_scale(b, "norm1_scale", "norm1_scale_gradient", &s->norm1_scale, &s->d_norm1_scale);
    add_norm_shift(b, "norm1_shift", "norm1_shift_gradient", &s->norm1_shift, &s->d_norm1_shift);
    add_parameter(b, "qkv_weight", "qkv_weight_gradient", b->qkv * h, &s->qkv_weight, &s->d_qkv_weight);
    add_bias(b, "qkv_bias", "qkv_bias_gradient", b->qkv, &s->qkv_bias, &s->d_qkv_bias);
    add_parameter(b, "output_weight", "output_weight_gradient", h * b->query, &s->output_weight, &s->d_output_weight);
    add_bias(b, "output_bias", "output_bias_gradient", h, &s->output_bias, &s->d_output_bias);
    add_norm_scale(b, "norm2_scale", "norm2_scale_gradient", &s->norm2_scale, &s->d_norm2_scale);
    add_norm_shift(b, "norm2_shift", "norm2_shift_gradient", &s->norm2_shift, &s->d_norm2_shift);
    add_parameter(b, "up_weight", "up_weight_gradient", b->up * h, &s->up_weight, &s->d_up_weight);
    add_bias(b, "up_bias", "up_bias_gradient", b->up, &s->up_bias, &s->d_up_bias);
    add_parameter(b, "down_weight", "down_weight_gradient", h * f, &s->down_weight, &s->d_down_weight);
    add_bias(b, "down_bias", "down_bias_gradient", h, &s->down_bias, &s->d_down_bias);
}

/* What F leaves. */
static void add_activations(builder *b) {
    names *s = &b->s;
    const pc_layer_shape *shape = b->shape;
    bool has_mean = !shape->is_rms_norm;
    s->norm1 = add_rows(b, "norm1", PC_SLOT_F_TO_W, shape->hidden);
    s->mean1 = has_mean ? add_vector(b, "norm1_mean", b->tokens) : NO_SLOT;
    s->rstd1 = add_vector(b, "norm1_rstd", b->tokens);
    s->q = add_rows(b, "query", PC_SLOT_F_TO_B, b->query);
    s->k = add_rows(b, "key", PC_SLOT_F_TO_B, b->key);
    s->v = add_rows(b, "value", PC_SLOT_F_TO_B, b->key);
    s->attention = add_rows(b, "attention", PC_SLOT_F_TO_W, b->query);
    s->lse = add_vector(b, "attention_lse", shape->heads * b->tokens);
    s->middle = add_rows(b, "middle", PC_SLOT_F_TO_B, shape->hidden);
    s->mask1 = add_mask(b, "mask1");
    s->norm2 = add_rows(b, "norm2", PC_SLOT_F_TO_W, shape->hidden);
    s->mean2 = has_mean ? add_vector(b, "norm2_mean", b->tokens) : NO_SLOT;
    s->rstd2 = add_vector(b, "norm2_rstd", b->tokens);
    s->up = add_rows(b, "up", PC_SLOT_F_TO_B, b->up);
    s->active = add_rows(b, "active", PC_SLOT_F_TO_W, shape->ffn);
    s->mask2 = add_mask(b, "mask2");
}

/* Input, output, and what B leaves. Without dropout the gradient behind a matrix is that of the residual stream. */
static void add_gradients(builder *b) {
    names *s = &b->s;
    int64_t h = b->shape->hidden;
    bool has_dropout = b->shape->dropout > 0;
    s->x = add_rows(b, "input", PC_SLOT_INPUT, h);
    s->y = add_rows(b, "output", PC_SLOT_OUTPUT, h);
    s->dx = add_rows(b, "input_gradient", PC_SLOT_INPUT_GRADIENT, h);
    s->dy = add_rows(b, "output_gradient", has_dropout ? PC_SLOT_OUTPUT_GRADIENT : PC_SLOT_B_TO_W, h);
    s->d_down = has_dropout ? add_rows(b, "down_gradient", PC_SLOT_B_TO_W, h) : s->dy;
    s->d_up = add_rows(b, "up_gradient", PC_SLOT_B_TO_W, b->up);
    s->d_middle = add_rows(b, "middle_gradient", has_dropout ? PC_SLOT_TEMPORARY : PC_SLOT_B_TO_W, h);
    s->d_output = has_dropout ? add_rows(b, "attention_output_gradient", PC_SLOT_B_TO_W, h) : s->d_middle;
    s->d_qkv = add_rows(b, "qkv_gradient", PC_SLOT_B_TO_W, b->qkv);
    b->layer->input = s->x;
    b->layer->output = s->y;
    b->layer->output_gradient = s->dy;
    b->layer->input_gradient = s->dx;
}

static int add_temporary(builder *b, const char *name, int64_t columns) {
    return add_rows(b, name, PC_SLOT_TEMPORARY, columns);
}

/* ---- steps ---- */

/* A tensor of a family, and the slot that it is here. */
typedef struct binding {
    const char *tensor;
    int slot; /* NO_SLOT: the layer has none, and the family must ask for none */
} binding;

static const binding *find_binding(const binding *list, const char *tensor) {
    for (; list->tensor; list++)
        if (strcmp(list->tensor, tensor) == 0 && list->slot != NO_SLOT) return list;
    return NULL;
}

static int count_bound(const binding *list) {
    int count = 0;
    for (; list->tensor; list++) count += list->slot != NO_SLOT;
    return count;
}

/* The slot for a tensor; scratch gets one of its own. */
static int slot_for(builder *b, const char *family, const pc_tensor *tensor, const binding *list) {
    if (tensor->use == PC_TENSOR_SCRATCH)
        return add_slot(b, "scratch", PC_SLOT_TEMPORARY, tensor->dtype, tensor->count);
    const binding *found = find_binding(list, tensor->name);
    if (!found) {
        b->code = pc_error_set(b->error, PC_ERROR_INPUT, "layer: %s: tensor %s; expected none of that name", family,
                               tensor->name);
        return 0;
    }
    const pc_slot *slot = &b->layer->slot[found->slot];
    if (slot->dtype != tensor->dtype || slot->count != tensor->count)
        b->code = pc_error_set(b->error, PC_ERROR_INPUT,
                               "layer: %s: tensor %s is %" PRId64 " of %s; expected slot %s, %" PRId64 " of %s", family,
                               tensor->name, tensor->count, pc_dtype_name(tensor->dtype), slot->name, slot->count,
                               pc_dtype_name(slot->dtype));
    return found->slot;
}

static void bind_tensors(builder *b, pc_layer_step *step, const pc_tensor *tensors, int count, const binding *list) {
    int bound = 0;
    for (int i = 0; !b->code && i < count; i++) {
        step->slot[i] = slot_for(b, step->family->name, &tensors[i], list);
        bound += tensors[i].use != PC_TENSOR_SCRATCH;
    }
    if (!b->code && bound != count_bound(list))
        b->code = pc_error_set(b->error, PC_ERROR_INPUT, "layer: %s takes %d tensors; expected %d", step->family->name,
                               bound, count_bound(list));
}

static void add_step(builder *b, pc_layer_pass *pass, const char *name, const pc_kernel_shape *shape,
                     const binding *list) {
    pc_tensor tensors[PC_KERNEL_TENSORS];
    int count;
    const pc_kernel_family *family = pc_kernel_family_find(name);
    if (b->code) return;
    if (!family || pass->count == PC_LAYER_STEPS) {
        b->code = pc_error_set(b->error, PC_ERROR_INPUT, "layer: %s: %s", name,
                               family ? "one step too many" : "there is no such kernel");
        return;
    }
    b->code = family->tensors(shape, tensors, &count, b->error);
    if (b->code) {
        pc_error_prefix(b->error, "layer: %s", name);
        return;
    }
    pc_layer_step *step = &pass->step[pass->count++];
    *step = (pc_layer_step){.family = family, .shape = *shape, .tensor_count = count};
    bind_tensors(b, step, tensors, count, list);
}

#define BIND(...) ((const binding[]){__VA_ARGS__, {NULL, 0}})

/* ---- single kernels ---- */

static pc_kernel_shape rows_shape(const builder *b, int64_t columns) {
    return (pc_kernel_shape){.dtype = b->shape->dtype, .m = b->tokens, .n = columns};
}

static pc_kernel_shape gemm_shape(const builder *b, int64_t m, int64_t n, int64_t k) {
    return (pc_kernel_shape){.dtype = b->shape->dtype, .batch = 1, .m = m, .n = n, .k = k};
}

static pc_kernel_shape attention_shape(const builder *b) {
    const pc_layer_shape *shape = b->shape;
    return (pc_kernel_shape){.dtype = shape->dtype,
                             .batch = shape->sequences,
                             .m = shape->seq_len,
                             .n = shape->seq_len,
                             .k = shape->head_dim,
                             .heads = shape->heads,
                             .kv_heads = shape->kv_heads,
                             .is_causal = shape->is_causal};
}

/* Of rows of heads: positions count from the start of each sequence of n tokens. */
static pc_kernel_shape heads_shape(const builder *b, bool with_bias) {
    pc_kernel_shape shape = attention_shape(b);
    shape.batch = 0;
    shape.m = b->tokens;
    shape.epilogue = with_bias ? PC_EPILOGUE_BIAS : PC_EPILOGUE_NONE;
    return shape;
}

static void add_product(builder *b, int input, int weight, int output, int64_t inputs, int64_t outputs) {
    pc_kernel_shape shape = gemm_shape(b, b->tokens, outputs, inputs);
    add_step(b, &b->layer->f, "gemm_forward", &shape, BIND({"a", input}, {"b", weight}, {"c", output}));
}

static void add_input_gradient(builder *b, int gradient, int weight, int output, int64_t inputs, int64_t outputs) {
    pc_kernel_shape shape = gemm_shape(b, b->tokens, inputs, outputs);
    add_step(b, &b->layer->b, "gemm_input_gradient", &shape, BIND({"a", gradient}, {"b", weight}, {"c", output}));
}

static void add_weight_gradient(builder *b, int gradient, int input, int output, int64_t inputs, int64_t outputs) {
    pc_kernel_shape shape = gemm_shape(b, outputs, inputs, b->tokens);
    shape.accumulates = true;
    add_step(b, &b->layer->w, "gemm_weight_gradient", &shape, BIND({"a", gradient}, {"b", input}, {"c", output}));
}

static void add_bias_gradient(builder *b, pc_layer_pass *pass, int gradient, int output, int64_t columns) {
    pc_kernel_shape shape = rows_shape(b, columns);
    if (output != NO_SLOT)
        add_step(b, pass, "bias_gradient", &shape, BIND({"output_gradient", gradient}, {"bias_gradient", output}));
}

static void add_norm(builder *b, int input, int scale, int shift, int output, int mean, int rstd) {
    pc_kernel_shape shape = rows_shape(b, b->shape->hidden);
    add_step(b, &b->layer->f, b->shape->is_rms_norm ? "rms_norm_forward" : "layer_norm_forward", &shape,
             BIND({"x", input}, {"gamma", scale}, {"beta", shift}, {"y", output}, {"mean", mean}, {"rstd", rstd}));
}

static void add_norm_backward(builder *b, const int saved[3], int gradient, int scale, int output, int d_scale,
                              int d_shift) {
    pc_kernel_shape shape = rows_shape(b, b->shape->hidden);
    add_step(b, &b->layer->b, b->shape->is_rms_norm ? "rms_norm_backward" : "layer_norm_backward", &shape,
             BIND({"dy", gradient}, {"x", saved[0]}, {"gamma", scale}, {"mean", saved[1]}, {"rstd", saved[2]},
                  {"dx", output}, {"dgamma", d_scale}, {"dbeta", d_shift}));
}

/* The residual stream behind a half of the layer. */
static void add_residual(builder *b, int input, int residual, int bias, int output, int mask, uint64_t seed) {
    const pc_layer_shape *x = b->shape;
    pc_kernel_shape shape = rows_shape(b, x->hidden);
    shape.epilogue = bias == NO_SLOT ? PC_EPILOGUE_NONE : PC_EPILOGUE_BIAS;
    shape.probability = x->dropout;
    shape.seed = seed;
    add_step(b, &b->layer->f, "residual_forward", &shape,
             BIND({"input", input}, {"residual", residual}, {"bias", bias}, {"output", output}, {"mask", mask}));
}

/* The gradient behind a matrix that ends a half: without dropout that of the residual stream itself. */
static void add_residual_backward(builder *b, int gradient, int mask, int output, int bias_gradient) {
    pc_kernel_shape shape = rows_shape(b, b->shape->hidden);
    shape.probability = b->shape->dropout;
    if (mask != NO_SLOT)
        add_step(b, &b->layer->b, "residual_backward", &shape,
                 BIND({"output_gradient", gradient}, {"mask", mask}, {"input_gradient", output}));
    add_bias_gradient(b, &b->layer->b, output, bias_gradient, b->shape->hidden);
}

static void add_sum(builder *b, int one, int other, int output) {
    pc_kernel_shape shape = rows_shape(b, b->shape->hidden);
    add_step(b, &b->layer->b, "add", &shape, BIND({"first", one}, {"second", other}, {"output", output}));
}

static pc_kernel_shape active_shape(const builder *b) {
    pc_kernel_shape shape = rows_shape(b, b->shape->ffn);
    if (b->s.up_bias != NO_SLOT) shape.epilogue = PC_EPILOGUE_BIAS;
    return shape;
}

static void add_activation(builder *b) {
    pc_kernel_shape shape = active_shape(b);
    add_step(b, &b->layer->f, b->shape->is_swiglu ? "swiglu_forward" : "gelu_forward", &shape,
             BIND({"input", b->s.up}, {"bias", b->s.up_bias}, {"output", b->s.active}));
}

static void add_activation_backward(builder *b, int gradient) {
    pc_kernel_shape shape = active_shape(b);
    add_step(
        b, &b->layer->b, b->shape->is_swiglu ? "swiglu_backward" : "gelu_backward", &shape,
        BIND({"output_gradient", gradient}, {"input", b->s.up}, {"bias", b->s.up_bias}, {"input_gradient", b->s.d_up}));
    add_bias_gradient(b, &b->layer->b, b->s.d_up, b->s.d_up_bias, b->up);
}

static void add_rotary(builder *b) {
    pc_kernel_shape shape = heads_shape(b, false);
    if (b->shape->is_rotary)
        add_step(b, &b->layer->f, "rotary_forward", &shape, BIND({"query", b->s.q}, {"key", b->s.k}));
}

static void add_rotary_backward(builder *b, int dq, int dk) {
    pc_kernel_shape shape = heads_shape(b, false);
    if (b->shape->is_rotary)
        add_step(b, &b->layer->b, "rotary_backward", &shape, BIND({"query_gradient", dq}, {"key_gradient", dk}));
}

/* ---- passes ---- */

static void add_attention_half(builder *b) {
    const names *s = &b->s;
    int64_t h = b->shape->hidden;
    pc_kernel_shape heads = heads_shape(b, s->qkv_bias != NO_SLOT), attention = attention_shape(b);
    int qkv = add_temporary(b, "qkv", b->qkv), output = add_temporary(b, "attention_output", h);
    add_norm(b, s->x, s->norm1_scale, s->norm1_shift, s->norm1, s->mean1, s->rstd1);
    add_product(b, s->norm1, s->qkv_weight, qkv, h, b->qkv);
    add_step(b, &b->layer->f, "qkv_split", &heads,
             BIND({"qkv", qkv}, {"bias", s->qkv_bias}, {"query", s->q}, {"key", s->k}, {"value", s->v}));
    add_rotary(b);
    add_step(b, &b->layer->f, "attention_forward", &attention,
             BIND({"query", s->q}, {"key", s->k}, {"value", s->v}, {"out", s->attention}, {"log_sum", s->lse}));
    add_product(b, s->attention, s->output_weight, output, b->query, h);
    add_residual(b, output, s->x, s->output_bias, s->middle, s->mask1, 1);
}

static void add_mlp_half(builder *b) {
    const names *s = &b->s;
    int64_t h = b->shape->hidden;
    int down = add_temporary(b, "down", h);
    add_norm(b, s->middle, s->norm2_scale, s->norm2_shift, s->norm2, s->mean2, s->rstd2);
    add_product(b, s->norm2, s->up_weight, s->up, h, b->up);
    add_activation(b);
    add_product(b, s->active, s->down_weight, down, b->shape->ffn, h);
    add_residual(b, down, s->middle, s->down_bias, s->y, s->mask2, 2);
}

static void add_mlp_backward(builder *b) {
    const names *s = &b->s;
    int64_t h = b->shape->hidden;
    int d_active = add_temporary(b, "active_gradient", b->shape->ffn);
    int d_norm = add_temporary(b, "norm2_gradient", h), d_input = add_temporary(b, "norm2_input_gradient", h);
    add_residual_backward(b, s->dy, s->mask2, s->d_down, s->d_down_bias);
    add_input_gradient(b, s->d_down, s->down_weight, d_active, b->shape->ffn, h);
    add_activation_backward(b, d_active);
    add_input_gradient(b, s->d_up, s->up_weight, d_norm, h, b->up);
    add_norm_backward(b, (const int[]){s->middle, s->mean2, s->rstd2}, d_norm, s->norm2_scale, d_input,
                      s->d_norm2_scale, s->d_norm2_shift);
    add_sum(b, s->dy, d_input, s->d_middle);
}

static void add_attention_backward(builder *b, int d_attention) {
    const names *s = &b->s;
    pc_kernel_shape attention = attention_shape(b), heads = heads_shape(b, false);
    int dq = add_temporary(b, "query_gradient", b->query), dk = add_temporary(b, "key_gradient", b->key);
    int dv = add_temporary(b, "value_gradient", b->key);
    add_step(b, &b->layer->b, "attention_backward", &attention,
             BIND({"query", s->q}, {"key", s->k}, {"value", s->v}, {"out", s->attention}, {"log_sum", s->lse},
                  {"out_gradient", d_attention}, {"query_gradient", dq}, {"key_gradient", dk}, {"value_gradient", dv}));
    add_rotary_backward(b, dq, dk);
    add_step(b, &b->layer->b, "qkv_merge", &heads,
             BIND({"query_gradient", dq}, {"key_gradient", dk}, {"value_gradient", dv}, {"qkv_gradient", s->d_qkv}));
}

static void add_attention_half_backward(builder *b) {
    const names *s = &b->s;
    int64_t h = b->shape->hidden;
    int d_attention = add_temporary(b, "attention_gradient", b->query);
    int d_norm = add_temporary(b, "norm1_gradient", h), d_input = add_temporary(b, "norm1_input_gradient", h);
    add_residual_backward(b, s->d_middle, s->mask1, s->d_output, s->d_output_bias);
    add_input_gradient(b, s->d_output, s->output_weight, d_attention, b->query, h);
    add_attention_backward(b, d_attention);
    add_input_gradient(b, s->d_qkv, s->qkv_weight, d_norm, h, b->qkv);
    add_norm_backward(b, (const int[]){s->x, s->mean1, s->rstd1}, d_norm, s->norm1_scale, d_input, s->d_norm1_scale,
                      s->d_norm1_shift);
    add_sum(b, s->d_middle, d_input, s->dx);
}

/* The bias of queries, keys and values with its matrix, as models/workload counts it. */
static void add_w(builder *b) {
    const names *s = &b->s;
    int64_t h = b->shape->hidden;
    add_weight_gradient(b, s->d_down, s->active, s->d_down_weight, b->shape->ffn, h);
    add_weight_gradient(b, s->d_up, s->norm2, s->d_up_weight, h, b->up);
    add_weight_gradient(b, s->d_output, s->attention, s->d_output_weight, b->query, h);
    add_weight_gradient(b, s->d_qkv, s->norm1, s->d_qkv_weight, h, b->qkv);
    add_bias_gradient(b, &b->layer->w, s->d_qkv, s->d_qkv_bias, b->qkv);
}

/* ---- the layer ---- */

static pc_code check_size(const char *name, int64_t value, pc_error *error) {
    if (value >= 1 && value <= INT32_MAX) return PC_OK;
    return pc_error_set(error, PC_ERROR_INPUT, "layer: %s %" PRId64 "; expected 1 to 2147483647", name, value);
}

/* What the families cannot say themselves. */
static pc_code check_shape(const pc_layer_shape *shape, pc_error *error) {
    pc_code code = check_size("sequences", shape->sequences, error);
    if (!code) code = check_size("seq_len", shape->seq_len, error);
    if (!code) code = check_size("hidden", shape->hidden, error);
    if (!code) code = check_size("heads", shape->heads, error);
    if (!code) code = check_size("kv_heads", shape->kv_heads, error);
    if (!code) code = check_size("head_dim", shape->head_dim, error);
    if (!code) code = check_size("ffn", shape->ffn, error);
    if (!code) code = check_size("tokens", shape->sequences * shape->seq_len, error);
    if (!code) code = check_size("columns of queries", shape->heads * shape->head_dim, error);
    if (!code) code = check_size("columns of keys", shape->kv_heads * shape->head_dim, error);
    if (code) return code;
    if (shape->heads % shape->kv_heads != 0)
        return pc_error_set(error, PC_ERROR_INPUT,
                            "layer: %" PRId64 " key/value heads of %" PRId64 " heads; expected a divisor",
                            shape->kv_heads, shape->heads);
    if (!(shape->dropout >= 0 && shape->dropout < 1))
        return pc_error_set(error, PC_ERROR_INPUT, "layer: dropout %g; expected 0 to below 1", (double)shape->dropout);
    if (shape->is_swiglu && shape->has_bias)
        return pc_error_set(error, PC_ERROR_INPUT, "layer: SwiGLU with biases; expected one without");
    return PC_OK;
}

pc_code pc_layer_make(const pc_layer_shape *shape, pc_layer *layer, pc_error *error) {
    builder b = {.layer = layer, .shape = shape, .error = error};
    b.code = check_shape(shape, error);
    if (b.code) return b.code;
    b.tokens = shape->sequences * shape->seq_len;
    b.query = shape->heads * shape->head_dim;
    b.key = shape->kv_heads * shape->head_dim;
    b.qkv = b.query + 2 * b.key;
    b.up = shape->is_swiglu ? 2 * shape->ffn : shape->ffn;
    memset(layer, 0, sizeof *layer);
    layer->shape = *shape;
    add_parameters(&b);
    add_activations(&b);
    add_gradients(&b);
    add_attention_half(&b);
    add_mlp_half(&b);
    add_mlp_backward(&b);
    add_attention_half_backward(&b);
    add_w(&b);
    return b.code;
}

int64_t pc_slot_bytes(const pc_slot *slot) {
    return slot->count * pc_dtype_bytes(slot->dtype);
}

int64_t pc_layer_bytes(const pc_layer *layer, pc_slot_life life) {
    int64_t sum = 0;
    for (int i = 0; i < layer->slot_count; i++)
        if (layer->slot[i].life == life) sum += pc_slot_bytes(&layer->slot[i]);
    return sum;
}
