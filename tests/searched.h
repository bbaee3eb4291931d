/* searched.h: what the names of searched schedules promise, and costs to search for, for tests. */
#ifndef PC_TESTS_SEARCHED_H
#define PC_TESTS_SEARCHED_H

#include "models/schedule/costs.h"
#include "tests/support.h"

#include <stdint.h>
#include <string.h>

/* The most microbatches of a stage that a schedule of this name holds ('Controllable Memory', arXiv 2405.15362, table
 * 1: a third, a half, two thirds of 1F1B's p; rounded as the blocks need it, test_block.c); p where the name says
 * nothing else. Of interleaved-adaptive what 1f1b-interleaved holds is less than 2p with two chunks and more. */
static inline int64_t searched_microbatches(const char *name, int p) {
    if (strcmp(name, "v-min") == 0) return (p + 4) / 3;
    if (strcmp(name, "v-half") == 0) return (p + 2) / 2;
    if (strcmp(name, "1f1b-v") == 0) return 2 * p / 3 + 1;
    if (strcmp(name, "zb-two-thirds") == 0) return 2 * (p / 3) + 2 < p ? 2 * (p / 3) + 2 : p;
    if (strcmp(name, "interleaved-adaptive") == 0) return 2 * p;
    return strcmp(name, "zb-2p") == 0 ? 2 * p : p;
}

/* F, B and W take 1 and BW takes 2; a microbatch has so many bytes in each chunk. */
static inline pc_costs searched_costs(int p, int chunks, int64_t bytes) {
    pc_costs costs;
    assert_int_equal(pc_costs_create(p, chunks, &costs, NULL), PC_OK);
    for (int i = 0; i < p * chunks; i++) {
        for (int kind = 0; kind < PC_PASS_KINDS; kind++)
            costs.duration_ps[i * PC_PASS_KINDS + kind] = kind == PC_PASS_BW ? 2 : 1;
        costs.activation_bytes[i] = bytes;
    }
    return costs;
}

#endif
