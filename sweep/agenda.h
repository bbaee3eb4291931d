/* agenda.h: which runs of a list have a result already, which repeat another, which are to be done.
 *
 * Pure: keys in, numbers out. A run costs 16 bytes here, and while the agenda is made up to 64 more.
 */
#ifndef PC_SWEEP_AGENDA_H
#define PC_SWEEP_AGENDA_H

#include "engine/error.h"
#include "scenarios/run_key.h"

#include <stdint.h>

typedef struct pc_agenda {
    int64_t count;  /* of runs */
    int64_t *place; /* of each run the result in the list that was given, the first of its key; -1: there is none yet */
    int64_t *to_do; /* runs (0 ..) to be done, ascending: the first of each key that has no result */
    int64_t to_do_count;
    int64_t done_count; /* runs whose key has a result; count - done_count - to_do_count repeat one to be done */
} pc_agenda;

/* `results` are the keys of what is there. Free with pc_agenda_free. */
pc_code pc_agenda_make(const pc_run_key *runs, int64_t run_count, const pc_run_key *results, int64_t result_count,
                       pc_agenda *agenda, pc_error *error);

/* A zeroed one is fine. */
void pc_agenda_free(pc_agenda *agenda);

#endif
