#include "kernels/dropout.h"
#include "kernels/reference/memory_bound.h"

#include <stddef.h>

void pc_reference_residual_forward(const pc_kernel_shape *shape, double *const *tensors) {
    int next = 0;
    const double *input = tensors[next++], *residual = tensors[next++];
    const double *bias = shape->epilogue != PC_EPILOGUE_NONE ? tensors[next++] : NULL;
    double *output = tensors[next++];
    double *mask = shape->probability > 0 ? tensors[next++] : NULL;
    for (int64_t i = 0; i < shape->m * shape->n; i++) {
        double x = input[i] + (bias ? bias[i % shape->n] : 0.0);
        if (mask) {
            mask[i] = pc_dropout_keeps(shape->seed, i, pc_dropout_threshold(shape->probability)) ? 1.0 : 0.0;
            x *= mask[i] / (1.0 - (double)shape->probability);
        }
        output[i] = residual[i] + x;
    }
}

void pc_reference_residual_backward(const pc_kernel_shape *shape, double *const *tensors) {
    int next = 0;
    const double *output_gradient = tensors[next++];
    const double *mask = shape->probability > 0 ? tensors[next++] : NULL;
    double *input_gradient = tensors[next++];
    for (int64_t i = 0; i < shape->m * shape->n; i++) {
        double scale = mask ? mask[i] / (1.0 - (double)shape->probability) : 1.0;
        input_gradient[i] = output_gradient[i] * scale;
    }
}
