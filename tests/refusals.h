/* refusals.h: every allocation of a piece of work refused once, one after the other:
 *
 *     for (refusals x = {0}; next_refusal(&x);) x.code = work();
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

static inline bool next_refusal(refusals *x) {
    pc_alloc_fail_after(-1);
    if (x->tried > 0 && x->code == PC_OK) return false;
    if (x->tried > 0) assert_int_equal(x->code, PC_ERROR_NO_MEMORY);
    assert_true(x->tried < (x->most > 0 ? x->most : 1000));
    pc_alloc_fail_after(x->tried++);
    return true;
}

#endif
