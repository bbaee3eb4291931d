/* sweep.h: which runs of a list have a result already, which repeat another, which are to be done.
 *
 * Pure: keys in, numbers out. A run costs 16 bytes here, and while the plan is made up to 32 more.
 */
#ifndef PC_SWEEP_SWEEP_H
#define PC_SWEEP_SWEEP_H

#include "engine/error.h"
#include "scenarios/run_key.h"

#include <stdint.h>

typedef struct sweep {
    int64_t count;  /* of runs */
    int64_t *place; /* of each run the result in the list that was given, the first of its key; -1: there is none yet */
    int64_t *to_do; /* runs (0 ..) to be done, ascending: the first of each key that has no result */
    int64_t to_do_count;
    int64_t
        done_count; /* runs whose key has a result; the rest, count - done_count - to_do_count, repeat one to be done */
} sweep;

/* `results` are the keys of what is there. Free with sweep_free. */
pc_code sweep_plan(const pc_run_key *runs, int64_t run_count, const pc_run_key *results, int64_t result_count,
                   sweep *plan, pc_error *error);

/* A zeroed one is fine. */
void sweep_free(sweep *plan);

#endif
