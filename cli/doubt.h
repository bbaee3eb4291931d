/* doubt.h: what the table of runs says of their intervals, in sentences above it. */
#ifndef PC_CLI_DOUBT_H
#define PC_CLI_DOUBT_H

#include "cli/look.h"
#include "results/row.h"

#include <stdint.h>

/* What a look at all rows says. Zero it to start. */
typedef struct doubt {
    pc_run_row first;      /* of those with an interval */
    int64_t runs, unknown; /* with one; with that of the unknown */
    bool differs;          /* not all are learned from the same runs */
    double least, most;    /* ends over forecasts */
} doubt;

void doubt_add(doubt *said, const pc_run_row *row);

/* Of one run its intervals and what they are learned from; of several the widest one of the time, or which columns have
 * them. Nothing where no run has any. */
void doubt_note(const doubt *said, look_notes *notes);

#endif
