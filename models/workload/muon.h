/* muon.h: the products of Muon's step on one tensor. */
#ifndef PC_MODELS_WORKLOAD_MUON_H
#define PC_MODELS_WORKLOAD_MUON_H

#include "models/workload/operation.h"
#include "models/workload/tensors.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Of a matrix of a layer as a rank has it, x of r <= c after a transposition (blockwise in tensor parallelism, as
 * Megatron-LM's `muon_tp_mode` says by default). Each of PC_MUON_STEPS steps is a = x x', b = a a and b x: 4 r^2 c +
 * 2 r^3 FLOPs, in bf16, whose sums with what was there are part of the products (Jordan 2024). Query, key and value are
 * three such (`muon_split_qkv`). `width`: of the gradient. */
void pc_muon_operations(const pc_tensor_sort *sort, int width, pc_operations *operations);

#ifdef __cplusplus
}
#endif
#endif
