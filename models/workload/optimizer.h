/* optimizer.h: what an optimizer holds of a rank's parameters, what its step moves, and Muon's products. */
#ifndef PC_MODELS_WORKLOAD_OPTIMIZER_H
#define PC_MODELS_WORKLOAD_OPTIMIZER_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ADAM: fp32 master weight and two moments. SGD, with momentum: master weight and one. ADAFACTOR (arXiv 1804.04235),
 * without a first moment: of a matrix a number a row and a number a column. ADAM_8BIT (arXiv 2110.02861, bitsandbytes):
 * both moments in 8 bits, each with an fp32 scale for PC_OPTIMIZER_BLOCK of them. MUON (Jordan 2024; Moonlight, arXiv
 * 2502.16982): one momentum of the matrices of layers, whose update five Newton-Schulz steps make orthogonal; all else
 * has Adam. */
typedef enum pc_optimizer_kind {
    PC_OPTIMIZER_ADAM,
    PC_OPTIMIZER_SGD,
    PC_OPTIMIZER_ADAFACTOR,
    PC_OPTIMIZER_ADAM_8BIT,
    PC_OPTIMIZER_MUON
} pc_optimizer_kind;

enum { PC_OPTIMIZER_BLOCK = 256, PC_MUON_STEPS = 5 };

/* Of a moment. fp8's scales, one a tensor, are left out. */
typedef enum pc_state_dtype { PC_STATE_FP32, PC_STATE_BF16, PC_STATE_FP16, PC_STATE_FP8 } pc_state_dtype;

typedef enum pc_main_params { PC_MAIN_PARAMS_FP32, PC_MAIN_PARAMS_FP16 } pc_main_params;
typedef enum pc_main_grads { PC_MAIN_GRADS_FP32, PC_MAIN_GRADS_BF16 } pc_main_grads;

/* Zeroed: Adam in fp32. The dtypes are those of Megatron-LM's use_precision_aware_optimizer, of Adam alone. */
typedef struct pc_optimizer {
    pc_optimizer_kind kind;
    pc_main_grads main_grads; /* BF16: the step reads 16-bit gradients as they are, without an fp32 copy */
    pc_main_params main_params;
    pc_state_dtype exp_avg, exp_avg_sq;
} pc_optimizer;

/* "adam", "sgd", "adafactor", "adam-8bit", "muon". */
const char *pc_optimizer_name(pc_optimizer_kind kind);

/* Whether it needs whole matrices, whose rows, columns or products it works with. */
static inline bool pc_optimizer_takes_tensors(const pc_optimizer *optimizer) {
    return optimizer->kind == PC_OPTIMIZER_ADAFACTOR || optimizer->kind == PC_OPTIMIZER_MUON;
}

/* Whether any of its dtypes is not fp32. */
bool pc_optimizer_is_precision_aware(const pc_optimizer *optimizer);

/* Whether of an fp32 master weight only the 16 bits are held that a weight of bf16 lacks, as Megatron-LM asks for with
 * its precision-aware optimizer (store_param_remainders; transformer_engine/pytorch/optimizers/fused_adam.py). Weights
 * that are held in few bits have whole ones. */
bool pc_optimizer_has_remainders(const pc_optimizer *optimizer);

/* Bytes a parameter of fp32 copies that the step makes of narrower state, of all parameters that it steps at once
 * (fused_adam.py, get_unscaled_state and step). */
int pc_optimizer_copied_bytes(const pc_optimizer *optimizer);

/* Bytes of `parameters` of them, laid end to end: moments; and with the master weights. Of an optimizer that takes
 * tensors those that are none of its matrices: Adam's, or Adafactor's of vectors. */
int64_t pc_optimizer_moment_bytes(const pc_optimizer *optimizer, int64_t parameters);
int64_t pc_optimizer_state_bytes(const pc_optimizer *optimizer, int64_t parameters);

/* The same of one tensor, with the master weights. `rows`, `columns`: of a matrix, else 0. `is_in_layer`: one of
 * those that Muon makes orthogonal. */
int64_t pc_optimizer_tensor_bytes(const pc_optimizer *optimizer, int64_t parameters, int64_t rows, int64_t columns,
                                  bool is_in_layer);

/* Bytes that the update of a parameter moves, behind norm and clipping. It reads a gradient of `width` bytes and
 * writes the 16-bit weight. `is_separate`: by a kernel for every step of the formula, of those that have them: Adam,
 * SGD and Adafactor. Of Muon's matrices the momentum and what it is made to, products apart. */
int pc_optimizer_moved_bytes(const pc_optimizer *optimizer, bool is_separate, int width);
int pc_muon_moved_bytes(int width);

#ifdef __cplusplus
}
#endif
#endif
