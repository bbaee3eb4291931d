/* hf.h: a config.json of Hugging Face's transformers as a model: text in, settings and notes out.
 *
 * Keys have several names, which hf.def lists with what becomes of each. What the file does not say but the code of its
 * architecture has stands there too. An architecture that is not listed is read as Llama's, with a note, as long as
 * its keys say how large it is and nothing that no model of ours can have.
 */
#ifndef PC_SCENARIOS_IMPORT_HF_H
#define PC_SCENARIOS_IMPORT_HF_H

#include "engine/error.h"
#include "scenarios/import/imported.h"
#include "scenarios/source.h"

enum { PC_HF_SEQ_LEN = 4096 }; /* tokens of a sequence, of which a config.json says nothing but the most */

/* Reads `source`, whose text it may change; `import->name` is set by the caller. PC_ERROR_INPUT with file, line and key
 * of what cannot be; where the architecture is none that we can model its name and the reason. */
pc_code pc_import_hf(pc_source *source, pc_imported *import, pc_error *error);

#endif
