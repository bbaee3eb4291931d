/* batch_example.h: runs that cost nothing, and what became of them. */
#ifndef PC_TESTS_BATCH_EXAMPLE_H
#define PC_TESTS_BATCH_EXAMPLE_H

#include "tests/support.h"

#include "sweep/batch.h"

#include <stdatomic.h>
#include <unistd.h>

/* What to do, and what was seen; -1 is never. */
typedef struct example_runs {
    int64_t slow, slow_us;       /* every slow-th run takes this long */
    int64_t bad_source, bad_run; /* cannot be made; is refused when it is run, as are all behind it */
    int64_t bad_sink;            /* its result is refused */
    atomic_llong made;           /* by all threads */
    int64_t taken, sum;          /* by the sink, and the sum of their indices */
    int wrong;                   /* a row that is not its spec's, a run that came before */
    unsigned char *seen;         /* a byte a run, where not NULL */
    int64_t sink_us;             /* that every result takes */
} example_runs;

static inline example_runs example_runs_default(void) {
    return (example_runs){.slow = -1, .bad_source = -1, .bad_run = -1, .bad_sink = -1};
}

/* Infeasible, as is said before the run: pc_run has nothing to do but to fill the row. */
static inline pc_code example_source(void *context, int64_t index, pc_run_spec *spec, pc_run_labels *labels,
                                     pc_error *error) {
    example_runs *x = context;
    x->made++;
    if (x->slow > 0 && index % x->slow == 0) usleep((useconds_t)x->slow_us);
    if (index == x->bad_source) return pc_error_set(error, PC_ERROR_INPUT, "source of %d", (int)index);
    *spec = pc_run_spec_default();
    *labels = pc_run_labels_none();
    labels->run = index;
    spec->generator = pc_generator_find("1f1b");
    spec->is_cluster = true;
    spec->iteration = pc_iteration_spec_default();
    spec->iteration.model.vocab_multiple = 1;
    spec->layers_of_part = calloc(4, sizeof *spec->layers_of_part); /* so that a leak shows */
    snprintf(spec->infeasible, sizeof spec->infeasible, "%d", (int)index);
    if (x->bad_run < 0 || index < x->bad_run) return PC_OK;
    pc_run_spec_free(spec);
    return pc_error_set(error, PC_ERROR_IO, "run %d", (int)index);
}

static inline pc_code example_sink(void *context, const pc_run_spec *spec, const pc_run_row *row,
                                   const pc_run_detail *detail, pc_error *error) {
    (void)detail;
    example_runs *x = context;
    if (x->sink_us) usleep((useconds_t)x->sink_us);
    if (row->run != atoll(spec->infeasible) || atoll(row->message) != row->run || (x->seen && x->seen[row->run]++))
        x->wrong++;
    if (row->run == x->bad_sink) return pc_error_set(error, PC_ERROR_IO, "sink of %d", (int)row->run);
    x->sum += row->run;
    x->taken++;
    return PC_OK;
}

#endif
