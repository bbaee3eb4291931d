/* random_frozen.h: what is not trained, drawn at random. */
#ifndef PC_TESTS_RANDOM_FROZEN_H
#define PC_TESTS_RANDOM_FROZEN_H

#include "models/workload/cut.h"
#include "tests/support.h"

/* Adapters, for any TP up to 8, frozen ends or neither, a third of the cases each; of the cut nothing else changes, and
 * what is drawn next is what it was. */
static inline void random_frozen(const test_random *from, const pc_model *model, pc_cut *cut) {
    test_random own = *from, *random = &own;
    int kind = (int)test_between(random, 0, 2), ends = PC_FROZEN_EMBEDDING | PC_FROZEN_HEAD;
    if (kind == 1)
        cut->lora = (pc_lora){.rank = (int32_t)(8 * test_between(random, 1, 16)),
                              .targets = (int32_t)test_between(random, 1, PC_LORA_DENSE),
                              .dropout = test_between(random, 0, 1) ? 0.1 : 0};
    if (kind == 2) cut->frozen = model->is_tied ? ends : (int32_t)test_between(random, 1, ends);
}

/* Frozen matrices in 4 bits for half of the adapters that can be beside them; for cuts whose ZeRO stays. */
static inline void random_base(const test_random *from, const pc_model *model, pc_cut *cut) {
    test_random own = *from, *random = &own;
    bool can = cut->lora.rank > 0 && cut->zero < 3 && !pc_low_precision_is_on(&model->low);
    if (can && test_between(random, 0, 1)) cut->lora.base = PC_LORA_BASE_NF4;
}

#endif
