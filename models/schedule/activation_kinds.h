/* activation_kinds.h: which modules of a model activations are of. */
#ifndef PC_MODELS_SCHEDULE_ACTIVATION_KINDS_H
#define PC_MODELS_SCHEDULE_ACTIVATION_KINDS_H

#include <stdint.h>

/* Of layers: what attention with its matrices keeps, what the MLP, and what norms read, which is also what is kept of a
 * layer that is made again. Of the ends: the embedding, and the head with its norm, logits and loss. And what
 * goes to the host beside passes, of whatever module, as long as it is here. */
typedef enum pc_activation_kind {
    PC_ACTIVATION_ATTENTION,
    PC_ACTIVATION_MLP,
    PC_ACTIVATION_NORMS,
    PC_ACTIVATION_EMBEDDING,
    PC_ACTIVATION_HEAD,
    PC_ACTIVATION_OFFLOADED,
    PC_ACTIVATION_KINDS
} pc_activation_kind;

/* Bytes of each, none below zero. */
typedef struct pc_activation_bytes {
    int64_t of[PC_ACTIVATION_KINDS];
} pc_activation_bytes;

static inline int64_t pc_activation_bytes_sum(const pc_activation_bytes *bytes) {
    int64_t sum = 0;
    for (int kind = 0; kind < PC_ACTIVATION_KINDS; kind++) sum += bytes->of[kind];
    return sum;
}

#endif
