/* refusals.h: every allocation of a piece of work refused once, one after the other:
 *
 *     for (refusals tries = {0}; next_refusal(&tries);) tries.code = work();
 *
 * where the work says PC_ERROR_NO_MEMORY until none is left to refuse. What stands behind it in the loop may free, not
 * allocate. */
#ifndef PC_TESTS_REFUSALS_H
#define PC_TESTS_REFUSALS_H

#include "engine/alloc.h"
#include "engine/error.h"
#include "tests/support.h"

#include <stdbool.h>

typedef struct refusals {
    long most;    /* allocations that it may have; 0: 1,000 */
    pc_code code; /* what the work said */
    long tried;   /* how often it was done: at its end one more than it has allocations */
} refusals;

static inline bool next_refusal(refusals *refused) {
    pc_alloc_fail_after(-1);
    if (refused->tried > 0 && refused->code == PC_OK) return false;
    if (refused->tried > 0) assert_int_equal(refused->code, PC_ERROR_NO_MEMORY);
    assert_true(refused->tried < (refused->most > 0 ? refused->most : 1000));
    pc_alloc_fail_after(refused->tried++);
    return true;
}

#endif
