#include "kernels/reference/memory_bound.h"

#include <math.h>
#include <stddef.h>

/* ---- GELU, the tanh form (Hendrycks, Gimpel: arXiv 1606.08415, section 2), as Megatron's ---- */

static const double CUBIC = 0.044715;

static double slope(void) {
    return sqrt(2.0 / acos(-1.0));
}

static double gelu(double x) {
    return 0.5 * x * (1.0 + tanh(slope() * (x + CUBIC * x * x * x)));
}

static double gelu_derivative(double x) {
    double t = tanh(slope() * (x + CUBIC * x * x * x));
    return 0.5 * (1.0 + t) + 0.5 * x * (1.0 - t * t) * slope() * (1.0 + 3.0 * CUBIC * x * x);
}

void pc_reference_gelu_forward(const pc_kernel_shape *shape, double *const *tensors) {
    bool has_bias = shape->epilogue != PC_EPILOGUE_NONE;
    const double *input = tensors[0], *bias = has_bias ? tensors[1] : NULL;
    double *output = tensors[has_bias ? 2 : 1];
    for (int64_t i = 0; i < shape->m * shape->n; i++) output[i] = gelu(input[i] + (bias ? bias[i % shape->n] : 0.0));
}

void pc_reference_gelu_backward(const pc_kernel_shape *shape, double *const *tensors) {
    bool has_bias = shape->epilogue != PC_EPILOGUE_NONE;
    const double *output_gradient = tensors[0], *input = tensors[1], *bias = has_bias ? tensors[2] : NULL;
    double *input_gradient = tensors[has_bias ? 3 : 2];
    for (int64_t i = 0; i < shape->m * shape->n; i++)
        input_gradient[i] = output_gradient[i] * gelu_derivative(input[i] + (bias ? bias[i % shape->n] : 0.0));
}

/* ---- SwiGLU (Shazeer: arXiv 2002.05202, section 2): swish(gate) * up ---- */

static double sigmoid(double x) {
    return 1.0 / (1.0 + exp(-x));
}

void pc_reference_swiglu_forward(const pc_kernel_shape *shape, double *const *tensors) {
    int64_t n = shape->n;
    for (int64_t row = 0; row < shape->m; row++) {
        const double *gate = tensors[0] + row * 2 * n, *up = gate + n;
        double *output = tensors[1] + row * n;
        for (int64_t i = 0; i < n; i++) output[i] = gate[i] * sigmoid(gate[i]) * up[i];
    }
}

void pc_reference_swiglu_backward(const pc_kernel_shape *shape, double *const *tensors) {
    int64_t n = shape->n;
    for (int64_t row = 0; row < shape->m; row++) {
        const double *output_gradient = tensors[0] + row * n;
        const double *gate = tensors[1] + row * 2 * n, *up = gate + n;
        double *gate_gradient = tensors[2] + row * 2 * n, *up_gradient = gate_gradient + n;
        for (int64_t i = 0; i < n; i++) {
            double s = sigmoid(gate[i]);
            gate_gradient[i] = output_gradient[i] * up[i] * (s + gate[i] * s * (1.0 - s));
            up_gradient[i] = output_gradient[i] * gate[i] * s;
        }
    }
}
