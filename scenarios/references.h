/* references.h: what `model.from`, `model.precision`, `machine`, `software`, `profile`, `schedule`, `pass_times`,
 * `moe_load_counts` and `bad_days.other_gpu` name, looked up once when the scenario is loaded. Private to scenarios/.
 *
 * A name that leads nowhere is remembered with its message: where pass times are given, `machine` is but a label, and
 * nobody asks for more. But a schedule that cannot be read is refused at once.
 */
#ifndef PC_SCENARIOS_REFERENCES_H
#define PC_SCENARIOS_REFERENCES_H

#include "engine/error.h"
#include "models/machine/machine.h"
#include "models/schedule/given.h"
#include "models/schedule/given_block.h"
#include "models/schedule/pass_times.h"
#include "models/workload/expert_counts.h"
#include "scenarios/library_private.h"
#include "scenarios/place.h"
#include "scenarios/precision_file.h"
#include "scenarios/setting.h"

#include <stdbool.h>

typedef struct pc_reference {
    pc_key key;          /* PC_KEY_MODEL_FROM, PC_KEY_PRECISION, PC_KEY_MACHINE, PC_KEY_SOFTWARE, PC_KEY_PROFILE,
                          * PC_KEY_SCHEDULE, PC_KEY_PASS_TIMES, PC_KEY_MOE_LOAD_COUNTS or PC_KEY_OTHER_GPU */
    const char *text;    /* as it was written; borrowed from the document */
    pc_place place;      /* from which a path counts, and how far it may lead; borrowed */
    char *name;          /* for names of runs: without folder and ".yaml" or ".h5"; owned */
    char *path;          /* of a profile or a schedule, as it counts from where we are; owned.
                          * NULL of profile: none, and of one of the library */
    pc_error error;      /* why it could not be read; its code is PC_OK otherwise */
    pc_model_file model; /* of software likewise: keys and what they say */
    pc_machine machine;  /* of another GPU its `gpu` alone */
    pc_given_schedule *schedule; /* owned, as `block` is: a schedule has one of the two */
    pc_given_block *block;
    pc_precision_recipe recipe; /* of a precision */
    pc_pass_times pass_times;   /* owned */
    pc_expert_counts counts;    /* owned */
    struct pc_reference *next;
} pc_reference;

/* Replaces the text of a value of one of these keys by the reference, which may stand in `*list` already; others are
 * left alone. The text of a schedule becomes its generator, named or of the file: the one for which the rest can fail
 * other than for want of memory, with a message that lacks its place. */
pc_code pc_reference_find(pc_reference **list, pc_key key, const pc_place *place, pc_value *value, pc_error *error);
pc_code pc_references_find(pc_reference **list, const pc_place *place, pc_setting *setting, pc_error *error);

/* Frees the whole list; NULL is fine. */
void pc_references_free(pc_reference *list);

#endif
