#include "kernels/reference/memory_bound.h"

#include <math.h>

void pc_reference_adam_update(const pc_adam *adam, double gradient, double *master, double *momentum,
                              double *variance) {
    double beta1 = adam->beta1, beta2 = adam->beta2, rate = adam->rate;
    *momentum = beta1 * *momentum + (1.0 - beta1) * gradient;
    *variance = beta2 * *variance + (1.0 - beta2) * gradient * gradient;
    double first = *momentum / (1.0 - pow(beta1, adam->step));
    double second = *variance / (1.0 - pow(beta2, adam->step));
    *master -= rate * (first / (sqrt(second) + (double)adam->epsilon) + (double)adam->decay * *master);
}

void pc_reference_adam(const pc_kernel_shape *shape, double *const *tensors) {
    const double *gradient = tensors[0];
    double *master = tensors[1], *momentum = tensors[2], *variance = tensors[3], *weight = tensors[4];
    pc_adam adam = pc_adam_usual();
    for (int64_t i = 0; i < shape->m * shape->n; i++) {
        pc_reference_adam_update(&adam, gradient[i], &master[i], &momentum[i], &variance[i]);
        weight[i] = master[i];
    }
}
