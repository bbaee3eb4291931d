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
    fixture *test = calloc(1, sizeof *test);
    assert_int_equal(pc_program_create(&test->program, NULL), PC_OK);
    assert_int_equal(pc_simulation_create(&test->simulation, NULL), PC_OK);
    *state = test;
    return 0;
}

static inline int tear_down(void **state) {
    fixture *test = *state;
    pc_program_free(test->program);
    pc_simulation_free(test->simulation);
    free(test);
    return 0;
}

#endif
