/* import.h: foreign configurations as scenarios: which formats there are, and a file of one as a text of ours. */
#ifndef PC_SCENARIOS_IMPORT_IMPORT_H
#define PC_SCENARIOS_IMPORT_IMPORT_H

#include "engine/error.h"
#include "storage/text.h"

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum pc_import_format {
    PC_IMPORT_HF,        /* a config.json of Hugging Face's transformers */
    PC_IMPORT_MEGATRON,  /* Megatron-LM's arguments: a command line, a log, YAML */
    PC_IMPORT_NEMO,      /* a recipe of NeMo or Megatron-Bridge, YAML or JSON */
    PC_IMPORT_DEEPSPEED, /* a configuration of DeepSpeed, JSON */
    PC_IMPORT_FORMATS
} pc_import_format;

/* "hf". */
const char *pc_import_format_name(pc_import_format format);

/* All their names, with '|' between. */
extern const char pc_import_format_names[];

/* The same setting as a scenario, a YAML text with comments; and, one sentence a class, what it assumes, does not model
 * and does not know ("" if nothing). Both start zeroed, and are freed by the caller, on failure too. PC_ERROR_INPUT
 * says what cannot be, and where. */
typedef struct pc_import_text {
    pc_text scenario, notes;
} pc_import_text;

pc_code pc_import_bytes(pc_import_format format, const char *path, const char *bytes, size_t size, pc_import_text *made,
                        pc_error *error);

/* The same of a file; a folder means the config.json in it. */
pc_code pc_import_file(pc_import_format format, const char *path, pc_import_text *made, pc_error *error);

void pc_import_text_free(pc_import_text *text);

#ifdef __cplusplus
}
#endif
#endif
