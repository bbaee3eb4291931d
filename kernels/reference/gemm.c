/* Matrix products from their definition, in double precision. */
#include "kernels/gemm.h"

#include <math.h>

/* Where element (row, column) of a stored matrix lies. */
typedef struct strides {
    int64_t row, column;
} strides;

static double dot(const double *a, int64_t a_step, const double *b, int64_t b_step, int64_t k) {
    double sum = 0;
    for (int64_t i = 0; i < k; i++) sum += a[i * a_step] * b[i * b_step];
    return sum;
}

/* c[m,n] = a[m,k] b[k,n], in the logical order; `a` and `b` say how they are stored. */
static void multiply(const pc_kernel_shape *s, double *const *tensors, strides a, strides b) {
    for (int64_t i = 0; i < s->batch * s->m; i++) {
        int64_t product = i / s->m, row = i % s->m;
        const double *a_row = tensors[PC_GEMM_A] + product * s->m * s->k + row * a.row;
        const double *b_all = tensors[PC_GEMM_B] + product * s->k * s->n;
        double *c = tensors[PC_GEMM_C] + i * s->n;
        for (int64_t j = 0; j < s->n; j++)
            c[j] = (s->accumulates ? c[j] : 0) + dot(a_row, a.column, b_all + j * b.column, b.row, s->k);
    }
}

/* Hendrycks and Gimpel 2016, arXiv 1606.08415, the form with tanh. */
static double gelu(double x) {
    return 0.5 * x * (1 + tanh(sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}

void pc_gemm_forward_reference(const pc_kernel_shape *shape, double *const *tensors) {
    multiply(shape, tensors, (strides){shape->k, 1}, (strides){1, shape->k});
    if (shape->epilogue == PC_EPILOGUE_NONE) return;
    for (int64_t i = 0; i < shape->m * shape->n; i++) {
        double *c = &tensors[PC_GEMM_C][i];
        *c += tensors[PC_GEMM_BIAS][i % shape->n];
        if (shape->epilogue != PC_EPILOGUE_BIAS_GELU) continue;
        tensors[PC_GEMM_PRE][i] = *c;
        *c = gelu(*c);
    }
}

void pc_gemm_input_gradient_reference(const pc_kernel_shape *shape, double *const *tensors) {
    multiply(shape, tensors, (strides){shape->k, 1}, (strides){shape->n, 1});
}

void pc_gemm_weight_gradient_reference(const pc_kernel_shape *shape, double *const *tensors) {
    multiply(shape, tensors, (strides){1, shape->m}, (strides){shape->n, 1});
}
