/* schema.h: which keys may stand where in a file, and the check that a tree has no others. Private to scenarios/. */
#ifndef PC_SCENARIOS_SCHEMA_H
#define PC_SCENARIOS_SCHEMA_H

#include "engine/error.h"
#include "scenarios/tree.h"

#include <stdbool.h>

/* What one value is; of a list, each entry. */
typedef enum pc_schema_kind {
    PC_KIND_TEXT,
    PC_KIND_SCHEDULE, /* a text, or {block: FILE, steps: WORD} */
    PC_KIND_WORDS,    /* a text, or a list of them: becomes a text, "one,two" */
    PC_KIND_MAPPING
} pc_schema_kind;

typedef struct pc_schema_field {
    const char *path; /* "layers"; "times.F" is F in the mapping `times`, which follows from the dot */
    pc_schema_kind kind;
    bool is_required; /* of those without a dot */
    bool is_list;
    unsigned least, most;           /* entries of a list; most 0: any number */
    const struct pc_schema *schema; /* of a mapping */
} pc_schema_field;

/* The keys of a mapping in the order in which messages and the reference page list them: those of one dot's mapping
 * stand together. */
typedef struct pc_schema {
    int count;
    const pc_schema_field *fields; /* NULL: `field` makes them */
    pc_schema_field (*field)(int index);
} pc_schema;

static inline pc_schema_field pc_schema_field_at(const pc_schema *schema, int index) {
    return schema->fields ? schema->fields[index] : schema->field(index);
}

/* Refuses, in the order of the text, what is unknown, missing, twice there or of another kind than the schema says. A
 * schedule that is a mapping becomes a text, "block:STEPS:FILE". */
pc_code pc_schema_check(const pc_schema *schema, pc_tree *tree, pc_error *error);

/* The same, passing over keys that are not known. */
pc_code pc_schema_check_known(const pc_schema *schema, pc_tree *tree, pc_error *error);

#endif
