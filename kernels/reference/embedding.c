#include "kernels/reference/memory_bound.h"

static bool is_row(const pc_kernel_shape *shape, double token) {
    return token >= 0.0 && token < (double)shape->k;
}

static int64_t position_of(const pc_kernel_shape *shape, int64_t token) {
    return token % (shape->m / shape->batch);
}

void pc_reference_embedding_forward(const pc_kernel_shape *shape, double *const *tensors) {
    bool has_positions = shape->epilogue != PC_EPILOGUE_NONE;
    const double *table = tensors[0], *token = tensors[1];
    int64_t n = shape->n;
    for (int64_t t = 0; t < shape->m; t++) {
        double *output = tensors[has_positions ? 3 : 2] + t * n;
        for (int64_t i = 0; i < n; i++) {
            output[i] = is_row(shape, token[t]) ? table[(int64_t)token[t] * n + i] : 0.0;
            if (has_positions) output[i] += tensors[2][position_of(shape, t) * n + i];
        }
    }
}

void pc_reference_embedding_backward(const pc_kernel_shape *shape, double *const *tensors) {
    bool has_positions = shape->epilogue != PC_EPILOGUE_NONE;
    const double *token = tensors[1];
    double *table_gradient = tensors[2], *position_gradient = tensors[3];
    int64_t n = shape->n;
    for (int64_t t = 0; t < shape->m; t++) {
        const double *output_gradient = tensors[0] + t * n;
        for (int64_t i = 0; i < n; i++) {
            if (is_row(shape, token[t])) table_gradient[(int64_t)token[t] * n + i] += output_gradient[i];
            if (has_positions) position_gradient[position_of(shape, t) * n + i] += output_gradient[i];
        }
    }
}
