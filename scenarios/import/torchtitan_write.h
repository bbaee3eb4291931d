/* torchtitan_write.h: a run as fields of a torchtitan job's configuration. */
#ifndef PC_SCENARIOS_IMPORT_TORCHTITAN_WRITE_H
#define PC_SCENARIOS_IMPORT_TORCHTITAN_WRITE_H

#include "models/training/run.h"
#include "storage/text.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Adds TOML: parallelism, training, recomputation and precision of a run on a cluster. A schedule that PyTorch does not
 * have by name is a CSV file, `csv`, or, if that is NULL, one that the command in a comment writes. What torchtitan has
 * no field for is another comment. Source of the fields: github.com/pytorch/torchtitan,
 * torchtitan/config/job_config.py; of what it makes of them with a file, torchtitan/distributed/pipeline_parallel.py.
 */
void pc_torchtitan_write(const pc_run_spec *spec, const char *csv, pc_text *to);

#ifdef __cplusplus
}
#endif
#endif
