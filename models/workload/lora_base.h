/* lora_base.h: how matrices that are frozen beside adapters are held.
 *
 * NF4: 4 bits a number, a scale of 8 bits for 64 numbers, and one of 32 bits for 256 scales (Dettmers et al. 2023,
 * QLoRA, arXiv 2305.14314, section 3; bitsandbytes' Linear4bit with double quantisation). Every pass that multiplies
 * by a matrix makes it 16 bits first, in a kernel of its own, and drops it behind the product: one at a time is there.
 * Embedding, head, norms and adapters stay in 16 bits. */
#ifndef PC_MODELS_WORKLOAD_LORA_BASE_H
#define PC_MODELS_WORKLOAD_LORA_BASE_H

#include "models/workload/cut.h"
#include "models/workload/model.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Bytes of so many numbers with their scales, rounded up; below 2^61 of them. */
int64_t pc_nf4_bytes(int64_t numbers);

/* Of the largest matrix that is made 16 bits at once, on this rank; 0 where none is. For a checked cut. */
int64_t pc_lora_base_workspace(const pc_model *model, const pc_cut *cut);

/* PC_ERROR_INPUT: without adapters; nf4 beside a recipe, or with ZeRO 3; pre-quantized without a recipe that holds or
 * caches its weights. */
pc_code pc_lora_base_check(const pc_model *model, const pc_cut *cut, pc_error *error);

#ifdef __cplusplus
}
#endif
#endif
