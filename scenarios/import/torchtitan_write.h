/* torchtitan_write.h: a run as fields of a torchtitan job's configuration. */
#ifndef PC_SCENARIOS_IMPORT_TORCHTITAN_WRITE_H
#define PC_SCENARIOS_IMPORT_TORCHTITAN_WRITE_H

#include "models/training/run.h"
#include "storage/text.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Adds TOML: parallelism, training, recomputation and precision of a run on a cluster. A schedule that PyTorch does not
 * have by name is a CSV file, with the command that writes it in a comment; what torchtitan has no field for is
 * another. Source of the fields: github.com/pytorch/torchtitan, torchtitan/config/job_config.py. */
void pc_torchtitan_write(const pc_run_spec *spec, pc_text *to);

#ifdef __cplusplus
}
#endif
#endif
