/* Products of 8 bits from their definition, in double precision: every number times its scale. */
#include "kernels/gemm_low.h"

#include <stddef.h>

/* An operand: numbers, scales, and how these lie. */
typedef struct operand {
    const double *numbers, *scales;
    pc_scale_layout layout;
    int64_t rows, k;
} operand;

static double element(const operand *of, int64_t row, int64_t at) {
    return of->numbers[row * of->k + at] * of->scales[pc_scale_place(of->layout, of->rows, of->k, row, at)];
}

void pc_gemm_low_reference(pc_kernel_role role, const pc_kernel_shape *s, double *const *tensors) {
    const operand a = {tensors[PC_GEMM_A], tensors[PC_GEMM_A_SCALE], pc_gemm_low_layout(role, s, PC_GEMM_A), s->m,
                       s->k};
    const operand b = {tensors[PC_GEMM_B], tensors[PC_GEMM_B_SCALE], pc_gemm_low_layout(role, s, PC_GEMM_B), s->n,
                       s->k};
    for (int64_t row = 0; row < s->m; row++)
        for (int64_t column = 0; column < s->n; column++) {
            double *c = &tensors[PC_GEMM_C][row * s->n + column], sum = s->accumulates ? *c : 0;
            for (int64_t at = 0; at < s->k; at++) sum += element(&a, row, at) * element(&b, column, at);
            *c = sum;
        }
}
