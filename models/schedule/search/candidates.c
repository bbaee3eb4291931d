#include "models/schedule/search/candidates.h"

#include <stdlib.h>

/* Whether the block keeps every limit; *unused is what it leaves, summed over the devices. */
static bool keeps_limits(const pc_search *search, const pc_instance *instance, const pc_block *block, int64_t *unused) {
    *unused = 0;
    for (int d = 0; d < instance->devices; d++) {
        int64_t peak = pc_block_peak(block, search->costs, d, search->microbatches);
        if (peak > instance->limit[d]) return false;
        *unused += pc_instance_is_limited(instance, d) ? instance->limit[d] - peak : -peak;
    }
    return true;
}

/* Candidates that leave alike are tried in the order of these: another hash would find other schedules. Blocks have no
 * S and no T. */
static uint64_t hash_of(const pc_block *block) {
    int64_t count = (int64_t)block->microbatches * block->devices * block->chunks * PC_PASS_KINDS;
    uint64_t hash = (uint64_t)block->interval;
    for (int64_t i = 0; i < count; i++) {
        if (i % PC_PASS_KINDS >= PC_PASS_S) continue;
        hash = (hash ^ (uint64_t)block->start[i]) * UINT64_C(0x9e3779b97f4a7c15);
        hash ^= hash >> 29;
    }
    return hash;
}

/* Total: equal only for the same pattern. */
static int compare(const void *a, const void *b) {
    const pc_candidate *x = a, *y = b;
    if (x->unused != y->unused) return x->unused < y->unused ? -1 : 1;
    if (x->hash != y->hash) return x->hash < y->hash ? -1 : 1;
    return x->pattern < y->pattern ? -1 : x->pattern > y->pattern;
}

/* Of a sorted list; returns how many are left. */
static int64_t drop_doubles(pc_candidate *list, int64_t count) {
    int64_t kept = 0;
    for (int64_t i = 0; i < count; i++)
        if (kept == 0 || list[i].unused != list[kept - 1].unused || list[i].hash != list[kept - 1].hash)
            list[kept++] = list[i];
    return kept;
}

pc_code pc_candidates_list(const pc_search *search, const pc_instance *instance, pc_candidate *list, int64_t *count,
                           pc_error *error) {
    pc_block blocks[2] = {{0}}; /* of one microbatch, and of two */
    pc_code code = PC_OK;
    *count = 0;
    for (int i = 0; i < 2 && !code; i++)
        code = pc_block_create(instance->placement, instance->devices, instance->chunks, i + 1, &blocks[i], error);
    for (int64_t i = 0; i < search->pattern_count && !code; i++) {
        pc_block *block = &blocks[pc_pattern_microbatches(search->patterns[i].family) - 1];
        int64_t unused;
        if (pc_pattern_build(&search->patterns[i], block) && keeps_limits(search, instance, block, &unused))
            list[(*count)++] = (pc_candidate){i, unused, hash_of(block)};
    }
    for (int i = 0; i < 2; i++) pc_block_free(&blocks[i]);
    if (code) return code;
    qsort(list, (size_t)*count, sizeof *list, compare);
    *count = drop_doubles(list, *count);
    return PC_OK;
}

pc_code pc_candidates_fits(const pc_search *search, const pc_instance *instance, int64_t pattern, bool *fits,
                           pc_error *error) {
    const pc_pattern *p = &search->patterns[pattern];
    pc_block block;
    int64_t unused;
    pc_code code = pc_block_create(instance->placement, instance->devices, instance->chunks,
                                   pc_pattern_microbatches(p->family), &block, error);
    if (code) return code;
    *fits = pc_pattern_build(p, &block) && keeps_limits(search, instance, &block, &unused);
    pc_block_free(&block);
    return PC_OK;
}
