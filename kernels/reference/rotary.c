#include "kernels/reference/memory_bound.h"

#include <math.h>

/* Su et al.: RoFormer (arXiv 2104.09864), section 3.2.2, with the pairs (i, i + k/2) of GPT-NeoX and Llama. */
static void turn_head(double *head, int64_t k, int64_t position, double direction) {
    for (int64_t i = 0; i < k / 2; i++) {
        double angle = direction * (double)position * pow(10000.0, -2.0 * (double)i / (double)k);
        double a = head[i], b = head[i + k / 2];
        head[i] = a * cos(angle) - b * sin(angle);
        head[i + k / 2] = b * cos(angle) + a * sin(angle);
    }
}

static void turn(const pc_kernel_shape *shape, double *tensor, int64_t heads, double direction) {
    for (int64_t token = 0; token < shape->m; token++)
        for (int64_t head = 0; head < heads; head++)
            turn_head(tensor + (token * heads + head) * shape->k, shape->k, token % shape->n, direction);
}

void pc_reference_rotary_forward(const pc_kernel_shape *shape, double *const *tensors) {
    turn(shape, tensors[0], shape->heads, 1.0);
    turn(shape, tensors[1], shape->kv_heads, 1.0);
}

void pc_reference_rotary_backward(const pc_kernel_shape *shape, double *const *tensors) {
    turn(shape, tensors[0], shape->heads, -1.0);
    turn(shape, tensors[1], shape->kv_heads, -1.0);
}
