#include "models/workload/lora_base.h"

#include "engine/numbers.h"
#include "models/workload/slice.h"

enum { NUMBERS_A_SCALE = 64, SCALES_A_SCALE = 256, WIDE_BYTES = 2, SCALE_BYTES = 4 };

int64_t pc_nf4_bytes(int64_t numbers) {
    int64_t scales = pc_divide_up(numbers, NUMBERS_A_SCALE);
    return pc_divide_up(numbers, 2) + scales + SCALE_BYTES * pc_divide_up(scales, SCALES_A_SCALE);
}

/* Down to the latents, whole on every rank, and up from them. */
static int64_t largest_of_latents(const pc_slice *x) {
    const pc_mla *mla = &x->mla;
    int64_t h = x->hidden, q_rank = mla->q_lora_rank;
    int64_t queries = q_rank > 0 ? q_rank * pc_max(h, x->query) : h * x->query;
    int64_t keys = pc_max(h * (mla->kv_lora_rank + mla->qk_rope_head_dim), mla->kv_lora_rank * x->latent_up);
    return pc_max(pc_max(queries, keys), h * x->output);
}

/* Gate and up are two matrices there, and each expert's are its own. */
int64_t pc_lora_base_workspace(const pc_model *model, const pc_cut *cut) {
    const pc_slice x = pc_slice_of(model, cut);
    int64_t largest = pc_model_is_latent(model) ? largest_of_latents(&x) : x.hidden * x.query;
    bool has_dense = pc_model_expert_layers(model, 0, model->layers) < model->layers;
    if (cut->lora.base != PC_LORA_BASE_NF4) return 0;
    if (has_dense) largest = pc_max(largest, x.hidden * x.ffn);
    return WIDE_BYTES * pc_max(largest, x.hidden * pc_max(x.experts.ffn, x.experts.shared));
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
