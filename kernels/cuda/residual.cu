/* residual.cu: bias, dropout and residual in one, and the gradient through the dropout. */
#include "kernels/cuda/elementwise.cuh"
#include "kernels/dropout.h"

namespace {

/* Eight mask bytes as one access. */
struct alignas(8) mask_vector {
    uint8_t value[PC_EIGHT];
};

template <class T> struct residual_forward_op {
    static constexpr int unroll = 2;
    const T *input, *residual, *bias; /* no bias: NULL */
    T *output;
    uint8_t *mask; /* no dropout: NULL */
    int64_t columns;
    uint64_t seed;
    uint32_t threshold;
    float scale;

    struct held {
        pc_vector<T> input, residual, bias;
    };
    __device__ held load(int64_t v) const {
        held found = {pc_load(input + v * PC_EIGHT), pc_load(residual + v * PC_EIGHT), {}};
        if (bias) found.bias = pc_load(bias + pc_place_of(v, columns / PC_EIGHT).column * PC_EIGHT);
        return found;
    }
    __device__ void store(int64_t v, const held &of) const {
        pc_vector<T> result;
        mask_vector kept;
        pc_dropout_bits bits{};
        if (mask) bits = pc_dropout_eight(seed, (uint64_t)v);
#pragma unroll
        for (int i = 0; i < PC_EIGHT; i++) {
            bool stays = !mask || pc_dropout_stays(&bits, i, threshold);
            float x = pc_to_float(of.input.value[i]) + pc_to_float(of.bias.value[i]);
            kept.value[i] = stays;
            result.value[i] = pc_from_float<T>(pc_to_float(of.residual.value[i]) + (stays ? x * scale : 0.0f));
        }
        pc_store(output + v * PC_EIGHT, result);
        if (mask) *reinterpret_cast<mask_vector *>(mask + v * PC_EIGHT) = kept;
    }
    __device__ void single(int64_t e) const {
        bool stays = !mask || pc_dropout_keeps(seed, e, threshold);
        float x = pc_to_float(input[e]) + (bias ? pc_to_float(bias[pc_place_of(e, columns).column]) : 0.0f);
        output[e] = pc_from_float<T>(pc_to_float(residual[e]) + (stays ? x * scale : 0.0f));
        if (mask) mask[e] = stays;
    }
};

template <class T> struct residual_backward_op {
    static constexpr int unroll = 2;
    const T *output_gradient;
    const uint8_t *mask; /* no dropout: NULL */
    T *input_gradient;
    float scale;

    struct held {
        pc_vector<T> output_gradient;
        mask_vector mask;
    };
    __device__ held load(int64_t v) const {
        held found;
        found.output_gradient = pc_load(output_gradient + v * PC_EIGHT);
        if (mask) found.mask = *reinterpret_cast<const mask_vector *>(mask + v * PC_EIGHT);
        return found;
    }
    __device__ void store(int64_t v, const held &of) const {
        pc_vector<T> result;
#pragma unroll
        for (int i = 0; i < PC_EIGHT; i++) {
            float kept = mask ? (float)of.mask.value[i] * scale : 1.0f;
            result.value[i] = pc_from_float<T>(pc_to_float(of.output_gradient.value[i]) * kept);
        }
        pc_store(input_gradient + v * PC_EIGHT, result);
    }
    __device__ void single(int64_t e) const {
        float kept = mask ? (float)mask[e] * scale : 1.0f;
        input_gradient[e] = pc_from_float<T>(pc_to_float(output_gradient[e]) * kept);
    }
};

float scale_of(const pc_kernel_shape *s) {
    return (float)(1.0 / (1.0 - (double)s->probability));
}

pc_code residual_forward(const pc_task &task) {
    const pc_kernel_shape *s = task.shape;
    return pc_dispatch(s->dtype, [&](auto zero) {
        using T = decltype(zero);
        int next = 0;
        residual_forward_op<T> op = {};
        op.input = task.tensor<const T>(next++);
        op.residual = task.tensor<const T>(next++);
        if (task.has_bias()) op.bias = task.tensor<const T>(next++);
        op.output = task.tensor<T>(next++);
        if (task.has_dropout()) op.mask = task.tensor<uint8_t>(next++);
        op.columns = s->n;
        op.seed = s->seed;
        op.threshold = pc_dropout_threshold(s->probability);
        op.scale = scale_of(s);
        bool is_wide = pc_all_aligned(op.input, op.residual, op.bias, op.output, op.mask) &&
                       (!task.has_bias() || s->n % PC_EIGHT == 0);
        return pc_run_flat(task, PC_MAIN, "residual_forward", op, s->m * s->n, is_wide);
    });
}

pc_code residual_backward(const pc_task &task) {
    const pc_kernel_shape *s = task.shape;
    return pc_dispatch(s->dtype, [&](auto zero) {
        using T = decltype(zero);
        bool has_mask = task.has_dropout();
        residual_backward_op<T> op = {task.tensor<const T>(0), has_mask ? task.tensor<const uint8_t>(1) : nullptr,
                                      task.tensor<T>(has_mask ? 2 : 1), scale_of(s)};
        bool is_wide = pc_all_aligned(op.output_gradient, op.mask, op.input_gradient);
        return pc_run_flat(task, PC_MAIN, "residual_backward", op, s->m * s->n, is_wide);
    });
}

} // namespace

PC_MEMORY_FAMILY(residual_forward, PC_KERNEL_ELEMENTWISE, PC_KERNEL_FORWARD);
PC_MEMORY_FAMILY(residual_backward, PC_KERNEL_ELEMENTWISE, PC_KERNEL_INPUT_GRADIENT);
