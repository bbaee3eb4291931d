/* deepspeed.h: a configuration of DeepSpeed (JSON) as the part of a setting that it is: batch, ZeRO, offload,
 * precision. Model, machine and GPUs stand elsewhere there, and are options of `run` here. */
#ifndef PC_SCENARIOS_IMPORT_DEEPSPEED_H
#define PC_SCENARIOS_IMPORT_DEEPSPEED_H

#include "engine/error.h"
#include "scenarios/import/imported.h"
#include "scenarios/source.h"

/* Reads `source`, whose text it takes; `import->name` is set by the caller. PC_ERROR_INPUT with file, line and key of
 * what cannot be. */
pc_code pc_import_deepspeed(pc_source *source, pc_imported *import, pc_error *error);

#endif
