/* yaml.h: a YAML text into a struct, by a libcyaml schema, with messages for users. Private to scenarios/. */
#ifndef PC_SCENARIOS_YAML_H
#define PC_SCENARIOS_YAML_H

#include "engine/error.h"
#include "scenarios/source.h"

#include <cyaml/cyaml.h>
#include <stddef.h>

/* A text in the file as a `char *` in a struct. */
#define PC_YAML_TEXT(key, flags, structure, member)                                                                    \
    CYAML_FIELD_STRING_PTR(key, flags, structure, member, 0, CYAML_UNLIMITED)
/* A mapping in the file whose values stand beside those of its parent in the struct. */
#define PC_YAML_GROUP(key_, structure, fields_)                                                                        \
    {                                                                                                                  \
        .key = (key_), .data_offset = 0, .value = { CYAML_VALUE_MAPPING(CYAML_FLAG_OPTIONAL, structure, fields_) }     \
    }
enum {
    PC_YAML_OPTIONAL = CYAML_FLAG_OPTIONAL,
    PC_YAML_OPTIONAL_POINTER = CYAML_FLAG_OPTIONAL | CYAML_FLAG_POINTER,
    PC_YAML_REQUIRED_POINTER = CYAML_FLAG_POINTER,
};

/* Loads a text that pc_source_scan has accepted into a struct of `size` bytes, which `schema` describes. Never NULL on
 * success; free with pc_yaml_free. */
pc_code pc_yaml_load(const pc_source *source, const cyaml_schema_value_t *schema, size_t size, void **data,
                     pc_error *error);

/* The same, passing over keys that the schema lacks. */
pc_code pc_yaml_load_known(const pc_source *source, const cyaml_schema_value_t *schema, size_t size, void **data,
                           pc_error *error);
/* NULL is fine. */
void pc_yaml_free(const cyaml_schema_value_t *schema, void *data);

/* What libcyaml said on its way to a failure: the message, and the frames it stood in, the innermost first. */
enum { PC_FRAMES_MAX = 16, PC_FRAME_SIZE = 64 };
typedef struct pc_complaint {
    char message[256];
    char frame[PC_FRAMES_MAX][PC_FRAME_SIZE]; /* "devices", "[3]"; empty where libcyaml names only "a mapping" */
    int frame_count;
} pc_complaint;

/* libcyaml's log function; `context` is a pc_complaint. */
void pc_complaint_log(cyaml_log_t level, void *context, const char *format, va_list arguments);

/* One line for the user from what libcyaml said. */
pc_code pc_complaint_explain(const pc_complaint *complaint, cyaml_err_t failure, const cyaml_schema_value_t *schema,
                             const pc_source *source, pc_error *error);

#endif
