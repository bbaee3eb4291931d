/* block_example.h: files of building blocks that are read and made, for tests. */
#ifndef PC_TESTS_BLOCK_EXAMPLE_H
#define PC_TESTS_BLOCK_EXAMPLE_H

#include "models/schedule/check.h"
#include "models/schedule/generate.h"
#include "models/schedule/given_block.h"
#include "scenarios/block_file.h"
#include "tests/support.h"

/* The first lines of 1F1B's block, and its passes. */
#define HEAD "block: own\nplacement: linear\ninterval: 3\n"
#define PAIR "passes:\n  - {kind: F, offset: d}\n  - {kind: BW, offset: 3*p - 2 - 2*d}\n"

static inline pc_given_block *read_good(const char *text) {
    pc_error error = {0};
    pc_given_block *block = NULL;
    if (pc_block_text_read("own.yaml", text, &block, &error)) fail_msg("%s\n%s", error.message, text);
    return block;
}

/* One cell each, BW two; every chunk holds 1. */
static inline void fill_equal(pc_costs *costs) {
    for (int i = 0; i < costs->devices * costs->chunks; i++) {
        for (int kind = 0; kind < PC_PASS_KINDS; kind++)
            costs->duration_ps[i * PC_PASS_KINDS + kind] = kind == PC_PASS_BW ? 2 : 1;
        costs->activation_bytes[i] = costs->activation_kept_bytes[i] = 1;
    }
}

/* A schedule of the block, at costs of cells. */
static inline void make(const pc_given_block *given, int p, int m, pc_costs *costs, pc_schedule *schedule) {
    const pc_generator *generator = pc_given_block_generator(given);
    pc_error error = {0};
    assert_int_equal(pc_costs_create(p, generator->chunks_default, costs, NULL), PC_OK);
    fill_equal(costs);
    pc_generate_request request = {.devices = p, .microbatches = m, .costs = costs, .threads = 1};
    if (pc_generate(generator, &request, schedule, NULL, &error)) fail_msg("p %d, m %d: %s", p, m, error.message);
    assert_int_equal(pc_schedule_check(schedule, NULL), PC_OK);
}

#endif
