#include "models/workload/low_attention.h"

static pc_code refuse(pc_error *error, const char *with, const char *expected) {
    return pc_error_set(error, PC_ERROR_INPUT, "fp8_dot_product_attention %s; expected %s", with, expected);
}

pc_code pc_low_attention_check(const pc_model *model, const pc_cut *cut, pc_error *error) {
    bool has_windows = model->sliding_window > 0 || model->attention_chunk_size > 0;
    if (cut->attention_hands_low && !cut->attention_is_low)
        return pc_error_set(error, PC_ERROR_INPUT,
                            "fp8_multi_head_attention without fp8_dot_product_attention; expected both");
    if (!cut->attention_is_low) return PC_OK;
    if (!pc_low_precision_is_on(&model->low))
        return refuse(error, "beside products in 16 bits", "a precision of 8 or 4 bits, such as fp8-delayed");
    if (model->attention != PC_ATTENTION_FLASH || cut->kernels != PC_KERNELS_FUSED)
        return refuse(error, "with attention that keeps its scores, or eager kernels",
                      "attention: flash, and fused kernels");
    if (has_windows || model->attn_logit_softcapping > 0)
        return refuse(error, "with windows, chunks or capped scores",
                      "full attention, for kernels of 8 bits have no other");
    if (cut->slices > 0) return refuse(error, "with slices of the sequence", "a schedule of whole sequences");
    if (pc_cut_cp(cut) > 1 && cut->cp_comm == PC_CP_ALL_GATHER)
        return refuse(error, "with cp_comm_type all_gather", "p2p, a2a or a2a+p2p, which can send 8 bits");
    return PC_OK;
}
