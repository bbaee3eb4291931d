/* format.h: what the numbers are that a matrix product reads: their bits, and the scales that come with them.
 *
 * FP8 is E4M3 or E5M2 (Micikevicius et al. 2022, arXiv 2209.05433): both take a byte, and the hardware multiplies both
 * at the same rate. NVFP4 is E2M1 with an E4M3 scale for 16 numbers (NVIDIA 2025, arXiv 2509.25149).
 */
#ifndef PC_MODELS_WORKLOAD_FORMAT_H
#define PC_MODELS_WORKLOAD_FORMAT_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum pc_product_format {
    PC_PRODUCT_BF16,
    PC_PRODUCT_FP16,
    PC_PRODUCT_FP8,       /* a scale a tensor, or a row: too few to count */
    PC_PRODUCT_FP8_BLOCK, /* an fp32 scale for 1 x 128 numbers of activations, for 128 x 128 of weights */
    PC_PRODUCT_MXFP8,     /* a scale of 8 bits for 1 x 32 numbers (OCP Microscaling Formats, 2023) */
    PC_PRODUCT_NVFP4,     /* a scale of 8 bits for 1 x 16 numbers, and one a tensor */
    PC_PRODUCT_FORMATS
} pc_product_format;

/* "bf16", "fp16", "fp8", "fp8_block", "mxfp8", "nvfp4"; static storage. */
const char *pc_product_format_name(pc_product_format format);

/* Writes *format only if there is one of the name. */
bool pc_product_format_find(const char *name, pc_product_format *format);

/* Bytes of 32 numbers with their scales, a whole number in all formats: 64, 64, 32, 33, 33, 18. Scales are counted as
 * of activations; a weight of FP8_BLOCK has 127 of 128 scales fewer, 0.8% of its bytes. */
int pc_product_format_bytes_of_32(pc_product_format format);

/* What a product's dimensions must be a multiple of. 16, for cuBLASLt asks for rows of 16 bytes (Transformer Engine's
 * assert_dim_for_fp8_exec); MXFP8 32. FP8_BLOCK has blocks at the edge that are not full, in DeepSeek-V3 as in
 * Transformer Engine: both count ceil(n / 128) scales. 1 in 16 bits. */
int pc_product_format_multiple(pc_product_format format);

/* The same of a tensor that ranks gather in few bits: of each rank's rows and columns. There blocks must be full: 128
 * for FP8_BLOCK (Transformer Engine's assert_dim_for_all_gather). */
int pc_product_format_gathered_multiple(pc_product_format format);

/* Not one of 16 bits. */
bool pc_product_format_is_low(pc_product_format format);

#ifdef __cplusplus
}
#endif
#endif
