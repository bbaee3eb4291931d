/* drawn_example.h: what a sample of an iteration is drawn with, for tests of its parts. */
#ifndef PC_TESTS_DRAWN_EXAMPLE_H
#define PC_TESTS_DRAWN_EXAMPLE_H

#include "models/training/conditions.h"
#include "models/training/outline.h"
#include "tests/support.h"

typedef struct drawn {
    pc_outline outline;
    pc_sample_base base;
    pc_conditions conditions;
    gsl_rng rng;
} drawn;

static inline void open_drawn(const pc_iteration_spec *spec, drawn *parts) {
    assert_int_equal(pc_outline_make(spec, NULL, &parts->outline, NULL), PC_OK);
    assert_int_equal(pc_sample_base_make(&parts->outline, &parts->base, NULL), PC_OK);
    assert_int_equal(pc_conditions_open(&parts->base, &parts->conditions, NULL), PC_OK);
    assert_int_equal(pc_draws_open(&parts->rng, NULL), PC_OK);
}

static inline void close_drawn(drawn *parts) {
    pc_draws_close(&parts->rng);
    pc_conditions_close(&parts->conditions);
    pc_sample_base_free(&parts->base);
    pc_outline_free(&parts->outline);
}

#endif
