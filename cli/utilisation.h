/* utilisation.h: runs that use more of their GPUs than there is: a warning behind the table. */
#ifndef PC_CLI_UTILISATION_H
#define PC_CLI_UTILISATION_H

#include "results/row.h"
#include "sweep/run_list.h"

/* Zero it to start. */
typedef struct utilisation {
    pc_run_list over; /* runs whose MFU or HFU is over 1 */
    int64_t last;     /* the last run that was looked at */
    int64_t most;     /* of those over 1, the index of the one with the highest HFU */
    int64_t run;      /* its number, its name, and what its row says: */
    char name[sizeof((pc_run_row *)0)->name];
    double mfu, hfu, peak_tflops;
} utilisation;

/* Looks at the row of a run, those of a table in its order; the caller's `index` is kept. Again is not twice. */
void utilisation_note(utilisation *used, int64_t index, const pc_run_row *row);

/* Says in one line on standard error which runs are over 1, and why. The whole s x s of attention is counted, and a
 * causal mask leaves half of it to be computed. If that is not enough, the cost model's kernels are faster than the
 * peak by which MFU and HFU divide. `spec` is that of the run `most`; `what`: "run" or "plan". */
void utilisation_warn(const utilisation *used, const char *what, const pc_iteration_spec *spec);

#endif
