/* attention.h: which scores the layers of a model compute: of all keys, of a window, of a chunk, of a document.
 */
#ifndef PC_MODELS_WORKLOAD_ATTENTION_H
#define PC_MODELS_WORKLOAD_ATTENTION_H

#include "models/workload/model.h"

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Of one layer and a sequence of s tokens. The kernel sees sequences of `length` tokens, s / length of each sequence:
 * s itself, or what documents or chunks leave of it. Of documents that is E[l^2] / E[l], so that the scores of a
 * sequence, s * length, are the sum of the squares of its documents' lengths. */
typedef struct pc_sight {
    int64_t length; /* 1 to s */
    int64_t window; /* keys that a query sees at most; 0: all of its `length` */
} pc_sight;

/* For a checked model and a sequence. `is_local`: of layers with a window or a chunk. */
pc_sight pc_model_sight(const pc_model *model, int64_t sequence, bool is_local);

/* Keys that count for each query. Of a full layer all, though half of them are masked, as in the papers; of a window
 * those inside it. */
static inline int64_t pc_sight_keys(pc_sight sight) {
    return sight.window > 0 ? sight.window : sight.length;
}

/* Of layers `first` (from 0) to `first + count - 1` those with a window or a chunk. */
int64_t pc_model_local_layers(const pc_model *model, int64_t first, int64_t count);

/* Whether local layers compute others than full ones do in such a sequence. */
bool pc_model_is_mixed(const pc_model *model, int64_t sequence);

#ifdef __cplusplus
}
#endif
#endif
