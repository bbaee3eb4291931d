#include "models/workload/lora_base.h"

#include "engine/numbers.h"

enum { NUMBERS_A_SCALE = 64, SCALES_A_SCALE = 256, WIDE_BYTES = 2, SCALE_BYTES = 4 };

int64_t pc_nf4_bytes(int64_t numbers) {
    int64_t scales = pc_divide_up(numbers, NUMBERS_A_SCALE);
    return pc_divide_up(numbers, 2) + scales + SCALE_BYTES * pc_divide_up(scales, SCALES_A_SCALE);
}

/* Gate and up are two matrices there. */
int64_t pc_lora_base_workspace(const pc_model *model, const pc_cut *cut) {
    int64_t columns = pc_max(model->ffn_hidden, model->heads * model->head_dim);
    return cut->lora.base == PC_LORA_BASE_NF4 ? WIDE_BYTES * model->hidden * (columns / cut->tp) : 0;
}

static pc_code refuse(pc_error *error, const char *what, const char *expected) {
    return pc_error_set(error, PC_ERROR_INPUT, "lora.base_weights %s; expected %s", what, expected);
}

pc_code pc_lora_base_check(const pc_model *model, const pc_cut *cut, pc_error *error) {
    bool is_low = pc_low_precision_is_on(&model->low);
    if (cut->lora.base == PC_LORA_BASE_RECIPE) return PC_OK;
    if (cut->lora.rank == 0) return refuse(error, "without lora.rank", "adapters beside frozen matrices");
    if (cut->lora.base == PC_LORA_BASE_NF4) {
        if (is_low) return refuse(error, "nf4 beside products of few bits", "precision bf16 or fp16, or pre-quantized");
        return cut->zero < 3 ? PC_OK : refuse(error, "nf4 with zero 3", "zero 0 to 2: what is gathered is of 16 bits");
    }
    if (is_low && model->low.weights != PC_LOW_WEIGHTS_EACH) return PC_OK;
    return refuse(error, "pre-quantized without a recipe that holds or caches weights of few bits",
                  "one, such as nvfp4 or fp8-delayed, or nf4");
}
