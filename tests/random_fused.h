/* random_fused.h: kernels that do more than one thing, and attention in 8 bits, drawn at random. */
#ifndef PC_TESTS_RANDOM_FUSED_H
#define PC_TESTS_RANDOM_FUSED_H

#include "models/workload/low_attention.h"
#include "tests/support.h"

/* Whatever the cut allows of Transformer Engine's fused operations or torch.compile and, with a recipe of few bits, of
 * attention in 8 bits; what is drawn next is what it was. */
static inline void random_fused(const test_random *from, const pc_model *model, pc_cut *cut) {
    test_random own = *from, *random = &own;
    cut->fuses_operations = cut->kernels == PC_KERNELS_FUSED && test_between(random, 0, 1);
    cut->compiles = cut->kernels == PC_KERNELS_FUSED && !cut->fuses_operations && test_between(random, 0, 1);
    cut->attention_is_low = test_between(random, 0, 1);
    cut->attention_hands_low = cut->attention_is_low && test_between(random, 0, 1);
    if (pc_low_attention_check(model, cut, NULL)) cut->attention_is_low = cut->attention_hands_low = false;
}

/* A recipe of 8 bits for a third of the models: delayed or current scaling, or blocks. */
static inline void random_recipe(const test_random *from, pc_model *model, pc_cut *cut) {
    static const pc_scaling scalings[] = {PC_SCALING_DELAYED, PC_SCALING_CURRENT, PC_SCALING_BLOCK};
    test_random own = *from, *random = &own;
    if (test_between(random, 0, 2)) return;
    if (cut->lora.base == PC_LORA_BASE_NF4) cut->lora.base = PC_LORA_BASE_PRE_QUANTIZED;
    model->low = (pc_low_precision){.name = "drawn",
                                    .product = {PC_PRODUCT_FP8, PC_PRODUCT_FP8, PC_PRODUCT_FP8},
                                    .scaling = scalings[test_between(random, 0, 2)],
                                    .weights = (pc_low_weights)test_between(random, 0, 2),
                                    .copies = (int32_t)test_between(random, 1, 2),
                                    .keeps_inputs = test_between(random, 0, 1)};
}

#endif
