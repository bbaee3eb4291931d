/* memory_bound.h: right answers in double precision of the families that read, do little and write. Each takes the
 * tensors of its family in the family's order (kernels/cuda/: activation, rotary, residual, loss, embedding, optimizer,
 * elementwise), scratch not looked at. Straight from the formulas, one element after the other.
 */
#ifndef PC_KERNELS_REFERENCE_MEMORY_BOUND_H
#define PC_KERNELS_REFERENCE_MEMORY_BOUND_H

#include "kernels/adam.h"
#include "kernels/kernel.h"

#ifdef __cplusplus
extern "C" {
#endif

void pc_reference_gelu_forward(const pc_kernel_shape *shape, double *const *tensors);
void pc_reference_gelu_backward(const pc_kernel_shape *shape, double *const *tensors);
void pc_reference_swiglu_forward(const pc_kernel_shape *shape, double *const *tensors);
void pc_reference_swiglu_backward(const pc_kernel_shape *shape, double *const *tensors);

void pc_reference_rotary_forward(const pc_kernel_shape *shape, double *const *tensors);
void pc_reference_rotary_backward(const pc_kernel_shape *shape, double *const *tensors);

void pc_reference_residual_forward(const pc_kernel_shape *shape, double *const *tensors);
void pc_reference_residual_backward(const pc_kernel_shape *shape, double *const *tensors);

void pc_reference_cross_entropy_forward(const pc_kernel_shape *shape, double *const *tensors);
void pc_reference_cross_entropy_backward(const pc_kernel_shape *shape, double *const *tensors);

void pc_reference_embedding_forward(const pc_kernel_shape *shape, double *const *tensors);
void pc_reference_embedding_backward(const pc_kernel_shape *shape, double *const *tensors);

void pc_reference_adam(const pc_kernel_shape *shape, double *const *tensors);
/* One parameter, in place. */
void pc_reference_adam_update(const pc_adam *adam, double gradient, double *master, double *momentum, double *variance);

void pc_reference_add(const pc_kernel_shape *shape, double *const *tensors);
void pc_reference_copy(const pc_kernel_shape *shape, double *const *tensors);
void pc_reference_bias_gradient(const pc_kernel_shape *shape, double *const *tensors);

#ifdef __cplusplus
}
#endif
#endif
