/* megatron.h: Megatron-LM's arguments as a setting; also of NeMo and Megatron-Bridge, whose keys they are.
 *
 * What becomes of each argument stands in megatron.def; what follows from several of them in megatron_rules.c.
 */
#ifndef PC_SCENARIOS_IMPORT_MEGATRON_H
#define PC_SCENARIOS_IMPORT_MEGATRON_H

#include "engine/error.h"
#include "scenarios/import/imported.h"
#include "scenarios/source.h"

/* Reads `source`, whose text it takes; `import->name` is set by the caller. PC_ERROR_INPUT with file, line and argument
 * of what cannot be. */
pc_code pc_import_megatron(pc_source *source, pc_imported *import, pc_error *error);

/* The same of a recipe of NeMo or Megatron-Bridge, YAML or JSON: what it does not say is as there, and not as
 * Megatron-LM's own defaults are. */
pc_code pc_import_nemo(pc_source *source, pc_imported *import, pc_error *error);

#endif
