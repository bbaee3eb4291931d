/* activation.cu: GELU (tanh form, with or without a bias in front) and SwiGLU, forward and backward. */
#include "kernels/cuda/elementwise.cuh"

namespace {

/* ---- GELU: (1 + tanh(u)) / 2 is the sigmoid of 2 u, u = sqrt(2 / pi) (x + 0.044715 x^3) ---- */

constexpr float TWICE_SLOPE = 1.5957691216f; /* 2 sqrt(2 / pi) */
constexpr float CUBIC = 0.044715f;

__device__ inline float gelu_of(float x) {
    return x * pc_sigmoid(TWICE_SLOPE * (x + CUBIC * x * x * x));
}

__device__ inline float gelu_derivative(float x) {
    x = fminf(fmaxf(x, -30.0f), 30.0f); /* beyond, 0 and 1 to the last bit; and no power of x overflows */
    float s = pc_sigmoid(TWICE_SLOPE * (x + CUBIC * x * x * x));
    return s + x * s * (1.0f - s) * TWICE_SLOPE * (1.0f + 3.0f * CUBIC * x * x);
}

/* The bias of a vector's columns; zeros where there is none. */
template <class T> __device__ inline pc_vector<T> bias_of(const T *bias, int64_t v, int64_t columns) {
    if (!bias) return pc_vector<T>{};
    return pc_load(bias + pc_place_of(v, columns / PC_EIGHT).column * PC_EIGHT);
}
template <class T> __device__ inline float bias_of_one(const T *bias, int64_t e, int64_t columns) {
    return bias ? pc_to_float(bias[pc_place_of(e, columns).column]) : 0.0f;
}

template <class T> struct gelu_forward_op {
    static constexpr int unroll = 2;
    const T *input, *bias;
    T *output;
    int64_t columns;

    struct held {
        pc_vector<T> input, bias;
    };
    __device__ held load(int64_t v) const { return {pc_load(input + v * PC_EIGHT), bias_of(bias, v, columns)}; }
    __device__ void store(int64_t v, const held &of) const {
        pc_vector<T> result;
#pragma unroll
        for (int i = 0; i < PC_EIGHT; i++)
            result.value[i] = pc_from_float<T>(gelu_of(pc_to_float(of.input.value[i]) + pc_to_float(of.bias.value[i])));
        pc_store(output + v * PC_EIGHT, result);
    }
    __device__ void single(int64_t e) const {
        output[e] = pc_from_float<T>(gelu_of(pc_to_float(input[e]) + bias_of_one(bias, e, columns)));
    }
};

template <class T> struct gelu_backward_op {
    static constexpr int unroll = 2;
    const T *output_gradient, *input, *bias;
    T *input_gradient;
    int64_t columns;

    struct held {
        pc_vector<T> output_gradient, input, bias;
    };
    __device__ held load(int64_t v) const {
        return {pc_load(output_gradient + v * PC_EIGHT), pc_load(input + v * PC_EIGHT), bias_of(bias, v, columns)};
    }
    __device__ void store(int64_t v, const held &of) const {
        pc_vector<T> result;
#pragma unroll
        for (int i = 0; i < PC_EIGHT; i++) {
            float x = pc_to_float(of.input.value[i]) + pc_to_float(of.bias.value[i]);
            result.value[i] = pc_from_float<T>(pc_to_float(of.output_gradient.value[i]) * gelu_derivative(x));
        }
        pc_store(input_gradient + v * PC_EIGHT, result);
    }
    __device__ void single(int64_t e) const {
        float x = pc_to_float(input[e]) + bias_of_one(bias, e, columns);
        input_gradient[e] = pc_from_float<T>(pc_to_float(output_gradient[e]) * gelu_derivative(x));
    }
};

pc_code gelu_forward(const pc_task &task) {
    const pc_kernel_shape *s = task.shape;
    return pc_dispatch(s->dtype, [&](auto zero) {
        using T = decltype(zero);
        bool has_bias = task.has_bias();
        gelu_forward_op<T> op = {task.tensor<const T>(0), has_bias ? task.tensor<const T>(1) : nullptr,
                                 task.tensor<T>(has_bias ? 2 : 1), s->n};
        bool is_wide = pc_all_aligned(op.input, op.bias, op.output) && (!has_bias || s->n % PC_EIGHT == 0);
        return pc_run_flat(task, PC_MAIN, "gelu_forward", op, s->m * s->n, is_wide);
    });
}

pc_code gelu_backward(const pc_task &task) {
    const pc_kernel_shape *s = task.shape;
    return pc_dispatch(s->dtype, [&](auto zero) {
        using T = decltype(zero);
        bool has_bias = task.has_bias();
        gelu_backward_op<T> op = {task.tensor<const T>(0), task.tensor<const T>(1),
                                  has_bias ? task.tensor<const T>(2) : nullptr, task.tensor<T>(has_bias ? 3 : 2), s->n};
        bool is_wide = pc_all_aligned(op.output_gradient, op.input, op.bias, op.input_gradient) &&
                       (!has_bias || s->n % PC_EIGHT == 0);
        return pc_run_flat(task, PC_MAIN, "gelu_backward", op, s->m * s->n, is_wide);
    });
}

/* ---- SwiGLU: rows of 2 n in, gate and up side by side; rows of n out ---- */

__device__ inline float swiglu_of(float gate, float up) {
    return gate * pc_sigmoid(gate) * up;
}

/* Of the gate; the gradient of `up` is gradient * gate * sigmoid(gate). */
struct swiglu_gradient {
    float gate, up;
};
__device__ inline swiglu_gradient swiglu_gradient_of(float gradient, float gate, float up) {
    float s = pc_sigmoid(gate);
    return {gradient * up * s * (1.0f + gate * (1.0f - s)), gradient * gate * s};
}

template <class T> struct swiglu_forward_op {
    static constexpr int unroll = 2;
    const T *input;
    T *output;
    int64_t columns;

    struct held {
        pc_vector<T> gate, up;
    };
    __device__ held load(int64_t v) const {
        pc_place at = pc_place_of(v, columns / PC_EIGHT);
        const T *gate = input + at.row * 2 * columns + at.column * PC_EIGHT;
        return {pc_load(gate), pc_load(gate + columns)};
    }
    __device__ void store(int64_t v, const held &of) const {
        pc_vector<T> result;
#pragma unroll
        for (int i = 0; i < PC_EIGHT; i++)
            result.value[i] = pc_from_float<T>(swiglu_of(pc_to_float(of.gate.value[i]), pc_to_float(of.up.value[i])));
        pc_store(output + v * PC_EIGHT, result);
    }
    __device__ void single(int64_t e) const {
        pc_place at = pc_place_of(e, columns);
        const T *gate = input + at.row * 2 * columns + at.column;
        output[e] = pc_from_float<T>(swiglu_of(pc_to_float(gate[0]), pc_to_float(gate[columns])));
    }
};

template <class T> struct swiglu_backward_op {
    static constexpr int unroll = 2;
    const T *output_gradient, *input;
    T *input_gradient;
    int64_t columns;

    struct held {
        pc_vector<T> output_gradient, gate, up;
    };
    __device__ held load(int64_t v) const {
        pc_place at = pc_place_of(v, columns / PC_EIGHT);
        const T *gate = input + at.row * 2 * columns + at.column * PC_EIGHT;
        return {pc_load(output_gradient + v * PC_EIGHT), pc_load(gate), pc_load(gate + columns)};
    }
    __device__ void store(int64_t v, const held &of) const {
        pc_vector<T> gate, up;
#pragma unroll
        for (int i = 0; i < PC_EIGHT; i++) {
            swiglu_gradient made = swiglu_gradient_of(pc_to_float(of.output_gradient.value[i]),
                                                      pc_to_float(of.gate.value[i]), pc_to_float(of.up.value[i]));
            gate.value[i] = pc_from_float<T>(made.gate);
            up.value[i] = pc_from_float<T>(made.up);
        }
        pc_place at = pc_place_of(v, columns / PC_EIGHT);
        T *to = input_gradient + at.row * 2 * columns + at.column * PC_EIGHT;
        pc_store(to, gate);
        pc_store(to + columns, up);
    }
    __device__ void single(int64_t e) const {
        pc_place at = pc_place_of(e, columns);
        int64_t gate = at.row * 2 * columns + at.column, up = gate + columns;
        swiglu_gradient made =
            swiglu_gradient_of(pc_to_float(output_gradient[e]), pc_to_float(input[gate]), pc_to_float(input[up]));
        input_gradient[gate] = pc_from_float<T>(made.gate);
        input_gradient[up] = pc_from_float<T>(made.up);
    }
};

pc_code swiglu_forward(const pc_task &task) {
    const pc_kernel_shape *s = task.shape;
    return pc_dispatch(s->dtype, [&](auto zero) {
        using T = decltype(zero);
        swiglu_forward_op<T> op = {task.tensor<const T>(0), task.tensor<T>(1), s->n};
        bool is_wide = pc_all_aligned(op.input, op.output) && s->n % PC_EIGHT == 0;
        return pc_run_flat(task, PC_MAIN, "swiglu_forward", op, s->m * s->n, is_wide);
    });
}

pc_code swiglu_backward(const pc_task &task) {
    const pc_kernel_shape *s = task.shape;
    return pc_dispatch(s->dtype, [&](auto zero) {
        using T = decltype(zero);
        swiglu_backward_op<T> op = {task.tensor<const T>(0), task.tensor<const T>(1), task.tensor<T>(2), s->n};
        bool is_wide = pc_all_aligned(op.output_gradient, op.input, op.input_gradient) && s->n % PC_EIGHT == 0;
        return pc_run_flat(task, PC_MAIN, "swiglu_backward", op, s->m * s->n, is_wide);
    });
}

} // namespace

PC_MEMORY_FAMILY(gelu_forward, PC_KERNEL_ELEMENTWISE, PC_KERNEL_FORWARD);
PC_MEMORY_FAMILY(gelu_backward, PC_KERNEL_ELEMENTWISE, PC_KERNEL_INPUT_GRADIENT);
PC_MEMORY_FAMILY(swiglu_forward, PC_KERNEL_ELEMENTWISE, PC_KERNEL_FORWARD);
PC_MEMORY_FAMILY(swiglu_backward, PC_KERNEL_ELEMENTWISE, PC_KERNEL_INPUT_GRADIENT);
