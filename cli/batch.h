/* batch.h: works on numbered runs with several threads, and hands them over one by one, in order.
 *
 * The order in which results arrive does not depend on the number of threads, and no more than a few runs are held at
 * once, however many there are.
 */
#ifndef PC_CLI_BATCH_H
#define PC_CLI_BATCH_H

#include "engine/error.h"
#include "models/training/run.h"

#include <stdint.h>

/* Makes the spec of run `index` (0 ..). Called from any thread. */
typedef pc_code batch_source(void *context, int64_t index, pc_run_spec *spec, pc_error *error);

/* Takes the result of a run, in ascending order of index, always from the calling thread; what it does not keep it must
 * not free. */
typedef pc_code batch_sink(void *context, const pc_run_spec *spec, const pc_run_row *row, const pc_run_detail *detail,
                           pc_error *error);

/* Does `count` runs on `jobs` threads. The first error, by index, ends the batch and is returned. */
pc_code batch_run(int64_t count, int jobs, batch_source *source, batch_sink *sink, void *context, pc_error *error);

#endif
