/* roofline.h: costs from a datasheet and a few parameters a GPU (models/machine/machine.h).
 *
 * Seconds of a kernel: kernel_s a launch, and the longer of its products and its bytes. Bytes go at memory_efficiency
 * of the memory's rate. A GEMM is cut into tiles of its output: whole, half or a quarter of tile_m x tile_n, the best
 * for it. Products go at the rate of their format, at gemm_efficiency or, of 8 and 4 bits, gemm_efficiency_fp8 and
 * gemm_efficiency_fp4. Processors take one at a time, in whole waves, and a tile takes gemm_ramp_k more than its k. If
 * tiles do not fill one wave, k is split (wave quantisation: NVIDIA, 'Matrix Multiplication Background User's Guide').
 * Flash attention is cut into blocks of tile_m queries of a head (Dao 2023, 'FlashAttention-2', arXiv 2307.08691); a
 * causal mask leaves the blocks up to the diagonal. The standard error is estimated_error of the seconds.
 */
#ifndef PC_MODELS_COST_ROOFLINE_H
#define PC_MODELS_COST_ROOFLINE_H

#include "models/cost/cost.h"
#include "models/machine/machine.h"

#ifdef __cplusplus
extern "C" {
#endif

/* `gpu` is borrowed. Only + - * / of doubles: the same bits on every machine. */
pc_cost_model pc_roofline(const pc_gpu *gpu);

/* Of `row` blocks of keys, of which a causal mask leaves i to the i-th block of queries, how many one walks along on
 * average if it takes `most` of them. Both at least 1. */
double pc_causal_blocks(double row, double most);

#ifdef __cplusplus
}
#endif
#endif
