/* What casts make, before it is rounded to 8 bits. */
#include "kernels/casts.h"

#include <math.h>

static double largest_of(const pc_kernel_shape *shape, const double *input, double least) {
    for (int64_t i = 0; i < shape->m * shape->n; i++) least = fmax(least, fabs(input[i]));
    return least;
}

void pc_reference_cast(const pc_kernel_shape *shape, double *const *tensors) {
    for (int64_t i = 0; i < shape->m * shape->n; i++) tensors[2][i] = tensors[0][i] * tensors[1][0];
}

void pc_reference_cast_transpose(const pc_kernel_shape *shape, double *const *tensors) {
    pc_reference_cast(shape, tensors);
    for (int64_t row = 0; row < shape->m; row++)
        for (int64_t column = 0; column < shape->n; column++)
            tensors[3][column * shape->m + row] = tensors[2][row * shape->n + column];
    tensors[4][0] = largest_of(shape, tensors[0], tensors[4][0]);
}

void pc_reference_amax(const pc_kernel_shape *shape, double *const *tensors) {
    tensors[1][0] = largest_of(shape, tensors[0], tensors[1][0]);
}
