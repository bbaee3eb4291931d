/* program_fixture.h: an empty program and a simulation for each test of the engine. */
#ifndef PC_TESTS_PROGRAM_FIXTURE_H
#define PC_TESTS_PROGRAM_FIXTURE_H

#include "tests/support.h"

#include "engine/program.h"
#include "engine/simulation.h"

typedef struct fixture {
    pc_program *program;
    pc_simulation *simulation;
    pc_simulation_result result;
} fixture;

static inline int set_up(void **state) {
    fixture *x = calloc(1, sizeof *x);
    assert_int_equal(pc_program_create(&x->program, NULL), PC_OK);
    assert_int_equal(pc_simulation_create(&x->simulation, NULL), PC_OK);
    *state = x;
    return 0;
}

static inline int tear_down(void **state) {
    fixture *x = *state;
    pc_program_free(x->program);
    pc_simulation_free(x->simulation);
    free(x);
    return 0;
}

#endif
