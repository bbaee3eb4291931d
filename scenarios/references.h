/* references.h: what `model.from`, `machine`, `profile` and `bad_days.other_gpu` name, looked up once when the scenario
 * is loaded. Private to scenarios/.
 *
 * A name that leads nowhere is remembered with its message: where pass times are given, `machine` is but a label, and
 * nobody asks for more.
 */
#ifndef PC_SCENARIOS_REFERENCES_H
#define PC_SCENARIOS_REFERENCES_H

#include "engine/error.h"
#include "models/machine/machine.h"
#include "scenarios/library_private.h"
#include "scenarios/place.h"
#include "scenarios/setting.h"

#include <stdbool.h>

typedef struct pc_reference {
    pc_key key;       /* PC_KEY_MODEL_FROM, PC_KEY_MACHINE, PC_KEY_PROFILE or PC_KEY_OTHER_GPU */
    const char *text; /* as it was written; borrowed from the document */
    pc_place place;   /* from which a path counts, and how far it may lead; borrowed */
    char *name;       /* for names of runs: without folder and ".yaml" or ".h5"; owned */
    char *path;       /* of a profile, as it counts from where we are; owned */
    pc_error error;   /* why it could not be read; its code is PC_OK otherwise */
    pc_model_file model;
    pc_machine machine; /* of another GPU its `gpu` alone */
    struct pc_reference *next;
} pc_reference;

/* Replaces the text of a value of one of these keys by the reference, which may stand in `*list` already;
 * others are left alone. Fails for want of memory only. */
pc_code pc_reference_find(pc_reference **list, pc_key key, const pc_place *place, pc_value *value, pc_error *error);
pc_code pc_references_find(pc_reference **list, const pc_place *place, pc_setting *setting, pc_error *error);

/* Frees the whole list; NULL is fine. */
void pc_references_free(pc_reference *list);

#endif
