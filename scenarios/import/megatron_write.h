/* megatron_write.h: the way back: a run as arguments of Megatron-LM, ready to paste into a script. */
#ifndef PC_SCENARIOS_IMPORT_MEGATRON_WRITE_H
#define PC_SCENARIOS_IMPORT_MEGATRON_WRITE_H

#include "engine/error.h"
#include "models/training/run.h"
#include "storage/text.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Adds arrays of a shell script with the arguments of a run on a cluster; what Megatron-LM has no argument for stands
 * in comments, a schedule that it does not have in the first. What pc_import_megatron makes of them is the same run, as
 * far as there are no such comments, on the machine that is named beside them. `spec` has passed its checks, and has
 * the costs that it is run with. */
pc_code pc_megatron_write(const pc_run_spec *spec, pc_text *to, pc_error *error);

/* The schedule that Megatron-LM runs in place of the spec's, which it does not have; NULL if it has that one. */
const char *pc_megatron_nearest_schedule(const pc_run_spec *spec);

#ifdef __cplusplus
}
#endif
#endif
