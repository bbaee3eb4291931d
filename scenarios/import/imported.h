/* imported.h: what a foreign configuration says, as settings of ours: keys and values, and what became of the rest.
 *
 * Pure: readers of foreign formats (hf.h, megatron.h, ...) fill it in, and it writes itself as YAML, which is then
 * loaded as any scenario or model file is. So an import can say nothing that a file of ours could not.
 */
#ifndef PC_SCENARIOS_IMPORT_IMPORTED_H
#define PC_SCENARIOS_IMPORT_IMPORTED_H

#include "engine/error.h"
#include "engine/marks.h"
#include "storage/text.h"

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What became of a foreign key that is no setting, or of a setting that no foreign key gives. */
typedef enum pc_import_class {
    PC_IMPORT_ASSUMED,      /* nothing is said: what is taken instead */
    PC_IMPORT_NOT_MODELLED, /* changes time or memory, and is left out here */
    PC_IMPORT_UNKNOWN,      /* no such key is known */
    PC_IMPORT_NO_EFFECT,    /* changes neither time nor memory */
    PC_IMPORT_CLASSES
} pc_import_class;

/* A setting: "model.layers" is "32", from "--num-layers". */
typedef struct pc_import_entry {
    const char *key; /* static storage: a path of settings.def, without "setting." */
    char *value;     /* plain YAML; owned */
    char *from;      /* "" if nothing foreign gives it; owned */
} pc_import_entry;

enum { PC_IMPORT_ENTRIES = 160, PC_IMPORT_NAME_SIZE = 128 };

/* Zero it to start; free with pc_imported_free, on failure too. */
typedef struct pc_imported {
    char name[PC_IMPORT_NAME_SIZE]; /* of the scenario or model */
    pc_import_entry entries[PC_IMPORT_ENTRIES];
    int count;
    pc_text notes[PC_IMPORT_CLASSES]; /* of each class, joined by "; "; empty if there are none */
    bool failed;                      /* memory is short */
} pc_imported;

void pc_imported_free(pc_imported *import);

/* PC_ERROR_NO_MEMORY if any step before failed. */
pc_code pc_imported_check(const pc_imported *import, pc_error *error);

/* A name as scenarios may have it, of any text: what may not stand in one becomes '_'. "" becomes "imported". */
void pc_imported_set_name(pc_imported *import, const char *text);

/* The same of a file: "NAME" of "some/NAME.json", and of "NAME/config.json". */
void pc_imported_name_of_path(pc_imported *import, const char *path);

/* What stands for the key, to be changed; NULL if nothing does. */
pc_import_entry *pc_imported_find(pc_imported *import, const char *key);

/* Sets a key, in place of what it had. `key` lives on; `value` and `from` are copied. */
void pc_imported_set(pc_imported *import, const char *key, const char *from, const char *value);
void pc_imported_set_number(pc_imported *import, const char *key, const char *from, int64_t number);
void pc_imported_set_switch(pc_imported *import, const char *key, const char *from, bool is_true);

/* Takes a key back. */
void pc_imported_clear(pc_imported *import, const char *key);

/* NULL if the key is not set. */
const char *pc_imported_get(const pc_imported *import, const char *key);

/* A number that was set as one; `otherwise` if the key is not set. */
int64_t pc_imported_number(const pc_imported *import, const char *key, int64_t otherwise);

/* One more note, unless it is there already; foreign text in it is cut and made plain. */
void pc_imported_note(pc_imported *import, pc_import_class kind, const char *format, ...) PC_PRINTF(3, 4);

/* Refuses a whole model whose numbers a run would refuse, if a foreign key is to blame, which `*from` then is: else
 * options may still mend it. imported_model.c. */
pc_code pc_imported_check_model(pc_imported *import, const char **from, pc_error *error);

/* A scenario with comments: where each value is from, and the notes. `headline` is its first line. And of the keys
 * under `model` alone a model file, with the notes that matter to a forecast. */
void pc_imported_write_scenario(const pc_imported *import, const char *headline, pc_text *to);
void pc_imported_write_model(const pc_imported *import, pc_text *to);

/* The notes that a heading should have, one text of a few sentences; "" if there are none. */
void pc_imported_write_heading(const pc_imported *import, pc_text *to);

#ifdef __cplusplus
}
#endif
#endif
