/* Grouped products from their definition, in double precision: straight from the rows of every group. */
#include "kernels/gemm_grouped.h"

#include <stddef.h>

/* One group's numbers, as matrices of rows x n, rows x k and n x k, wherever they lie: an element's place is
 * row * its `row` + column * its `column`. */
typedef struct matrix {
    double *values;
    int64_t row, column;
} matrix;

static double *element(const matrix *of, int64_t row, int64_t column) {
    return &of->values[row * of->row + column * of->column];
}

/* In 8 bits rows along what is summed over: turned for the gradients of weights, and weights for those of the input. */
typedef struct group {
    matrix outputs, inputs, weights; /* outputs or their gradients; inputs or theirs */
    int64_t rows, n, k;
    double scale;
} group;

static group group_of(pc_kernel_role role, const pc_kernel_shape *s, double *const *tensors, int64_t number) {
    int64_t start = pc_gemm_group_start(s, number), n = s->n, k = s->k;
    group of = {.rows = pc_gemm_group_start(s, number + 1) - start, .n = n, .k = k, .scale = 1};
    static const int places[][3] = {[PC_KERNEL_FORWARD] = {PC_GEMM_C, PC_GEMM_A, PC_GEMM_B},
                                    [PC_KERNEL_INPUT_GRADIENT] = {PC_GEMM_A, PC_GEMM_C, PC_GEMM_B},
                                    [PC_KERNEL_WEIGHT_GRADIENT] = {PC_GEMM_A, PC_GEMM_B, PC_GEMM_C}};
    of.outputs = (matrix){tensors[places[role][0]] + start * n, n, 1};
    of.inputs = (matrix){tensors[places[role][1]] + start * k, k, 1};
    of.weights = (matrix){tensors[places[role][2]] + number * n * k, k, 1};
    if (s->scaling == PC_LOW_NONE) return of;
    of.scale = tensors[PC_GEMM_A_SCALE][number] * tensors[PC_GEMM_B_SCALE][number];
    if (role == PC_KERNEL_INPUT_GRADIENT) of.weights.row = 1, of.weights.column = n;
    if (role == PC_KERNEL_WEIGHT_GRADIENT) {
        of.outputs.row = of.inputs.row = 1;
        of.outputs.column = of.inputs.column = of.rows;
    }
    return of;
}

static void forward(const group *of) {
    for (int64_t row = 0; row < of->rows; row++)
        for (int64_t i = 0; i < of->n; i++) {
            double sum = 0;
            for (int64_t j = 0; j < of->k; j++) sum += *element(&of->inputs, row, j) * *element(&of->weights, i, j);
            *element(&of->outputs, row, i) = sum * of->scale;
        }
}

static void input_gradient(const group *of) {
    for (int64_t row = 0; row < of->rows; row++)
        for (int64_t j = 0; j < of->k; j++) {
            double sum = 0;
            for (int64_t i = 0; i < of->n; i++) sum += *element(&of->outputs, row, i) * *element(&of->weights, i, j);
            *element(&of->inputs, row, j) = sum * of->scale;
        }
}

static void weight_gradient(const group *of, bool accumulates) {
    for (int64_t i = 0; i < of->n; i++)
        for (int64_t j = 0; j < of->k; j++) {
            double sum = 0, *c = element(&of->weights, i, j);
            for (int64_t row = 0; row < of->rows; row++)
                sum += *element(&of->outputs, row, i) * *element(&of->inputs, row, j);
            *c = (accumulates ? *c : 0) + sum * of->scale;
        }
}

/* In blocks every number has a scale of its own place: a product of gemm_low.c a group. */
static void in_blocks(pc_kernel_role role, const pc_kernel_shape *shape, double *const *tensors) {
    for (int64_t number = 0; number < shape->batch; number++) {
        pc_gemm_group of = pc_gemm_group_of(role, shape, number);
        double *const of_group[] = {tensors[PC_GEMM_A] + of.a, tensors[PC_GEMM_B] + of.b, tensors[PC_GEMM_C] + of.c,
                                    tensors[PC_GEMM_A_SCALE] + pc_gemm_group_scales(role, shape, PC_GEMM_A, number),
                                    tensors[PC_GEMM_B_SCALE] + pc_gemm_group_scales(role, shape, PC_GEMM_B, number)};
        pc_gemm_low_reference(role, &of.shape, of_group);
    }
}

void pc_gemm_grouped_reference(pc_kernel_role role, const pc_kernel_shape *shape, double *const *tensors) {
    if (shape->scaling == PC_LOW_BLOCK) {
        in_blocks(role, shape, tensors);
        return;
    }
    for (int64_t number = 0; number < shape->batch; number++) {
        group of = group_of(role, shape, tensors, number);
        if (role == PC_KERNEL_FORWARD)
            forward(&of);
        else if (role == PC_KERNEL_INPUT_GRADIENT)
            input_gradient(&of);
        else
            weight_gradient(&of, shape->accumulates);
    }
}
