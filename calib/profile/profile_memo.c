#include "calib/profile/profile_private.h"

#include "engine/alloc.h"
#include "engine/index.h"

#include <pthread.h>
#include <stdint.h>

enum { MOST = 6144 };

/* What decides the cost of an operation. A function's name is one text in static storage: its address says it all. */
static pc_hash key_of(const pc_operation *operation) {
    pc_hash key = {0};
    const int64_t numbers[] = {operation->batch,
                               operation->m,
                               operation->n,
                               operation->k,
                               operation->bytes,
                               operation->flops,
                               (intptr_t)operation->function,
                               operation->kind,
                               operation->role,
                               operation->precision,
                               operation->format,
                               operation->launches,
                               operation->is_causal};
    pc_hash_add_bytes(&key, numbers, sizeof numbers);
    return key;
}

struct pc_memo {
    pthread_mutex_t lock;
    pc_index index;
    pc_estimate estimates[MOST];
};

pc_memo *pc_memo_make(void) {
    pc_memo *memo = pc_alloc(1, sizeof *memo);
    if (!memo) return NULL;
    pthread_mutex_init(&memo->lock, NULL);
    if (!pc_index_reserve(&memo->index, MOST, NULL)) return memo;
    pc_memo_free(memo);
    return NULL;
}

void pc_memo_free(pc_memo *memo) {
    if (!memo) return;
    pthread_mutex_destroy(&memo->lock);
    pc_index_free(&memo->index);
    pc_free(memo);
}

bool pc_memo_find(pc_memo *memo, const pc_operation *operation, pc_estimate *estimate) {
    pc_hash key = key_of(operation);
    pthread_mutex_lock(&memo->lock);
    int64_t number = pc_index_find(&memo->index, key);
    if (number >= 0) *estimate = memo->estimates[number];
    pthread_mutex_unlock(&memo->lock);
    return number >= 0;
}

/* Where two threads come with the same, they have the same estimate. */
void pc_memo_keep(pc_memo *memo, const pc_operation *operation, pc_estimate estimate) {
    pc_hash key = key_of(operation);
    pthread_mutex_lock(&memo->lock);
    if (memo->index.count < MOST) memo->estimates[pc_index_add(&memo->index, key, memo->index.count)] = estimate;
    pthread_mutex_unlock(&memo->lock);
}
