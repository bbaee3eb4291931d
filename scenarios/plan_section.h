/* plan_section.h: the section `plan` of a scenario, list by list. Private to scenarios/.
 *
 * plan_section.c reads the lists; plan_defaults.c makes those that nobody gave; plan_scenario.c puts them together;
 * plan_runs.c makes runs of choices.
 */
#ifndef PC_SCENARIOS_PLAN_SECTION_H
#define PC_SCENARIOS_PLAN_SECTION_H

#include "models/planner/planner.h"
#include "scenarios/expand.h"
#include "scenarios/loaded.h"
#include "scenarios/plan_scenario.h"

#include <stdbool.h>

enum { PC_CHOICE_VALUES_MAX = 4096 };

/* Where a list is from. LISTED: `plan`, or `sweep`. */
typedef enum pc_choice_origin { PC_CHOICE_DEFAULT, PC_CHOICE_FIXED, PC_CHOICE_LISTED } pc_choice_origin;

/* `whole` of values is a pc_plan_objective, a pc_recomputation_code, PC_OFFLOAD_* kinds, 0 or 1 of switches. */
typedef struct pc_choice_list {
    pc_choice_origin origin;
    pc_value *values; /* owned */
    int count;
    const pc_document *document; /* of LISTED: where it stands */
    bool is_of_sweep;
} pc_choice_list;

struct pc_plan_scenario {
    pc_scenario *loaded;
    pc_setting given; /* the file's setting, its case and the sets; stages are the documents' */
    pc_choice_list list[PC_CHOICES];
    pc_plan_request request;
    pc_plan_goal goal;
    bool batch_follows_dp;
    char budget_currency[8]; /* PC_CURRENCY_TEXT */
    pc_run_spec *runs;       /* one a base */
    /* The space, and what it borrows. */
    pc_plan_base *bases;
    int64_t *numbers[PC_CHOICES];
    int64_t dispatchers[PC_DISPATCHER_HYBRIDEP + 1]; /* of the types, and of flex its kernels */
    int dispatcher_count;
    const pc_generator **generators;
    pc_rank_order *orders;
    char (*recompute_names)[PC_RECOMPUTATION_SIZE]; /* of the list of recomputation, in its order */
    char (*offload_names)[PC_OFFLOAD_SIZE];         /* and of that of offload */
    pc_plan_space space;
};

/* What a choice is called, "tp"; its key in a setting, PC_KEYS where there is none;
 * the dimension of a sweep, PC_DIMENSIONS where there is none. */
typedef struct pc_choice_rule {
    const char *name;
    pc_key key;
    pc_dimension dimension;
} pc_choice_rule;
pc_choice_rule pc_choice_rule_of(pc_choice choice);

/* The list of a choice under `plan` of a document; NULL if there is none. */
const pc_node *pc_choice_node(const pc_document *document, pc_choice choice);

/* What `plan` lists of a choice, in words; and whether its numbers can be ranges. */
void pc_choice_values(pc_choice choice, char *text, size_t size);
bool pc_choice_has_ranges(pc_choice choice);

extern const char *const pc_plan_text_names[PC_PLAN_TEXTS];

/* Reads all lists that somebody gave, and all else of `plan`; then the merged setting, whose values are lists of one
 * where there is no other. */
pc_code pc_plan_section_read(pc_plan_scenario *scenario, pc_error *error);

/* Writes "FILE:LINE: plan.tp[2]: ..." of a list that was given; `index` -1 is the list itself. */
pc_code pc_choice_refuse(const pc_plan_scenario *scenario, pc_choice choice, int index, pc_error *error,
                         const char *format, ...) PC_PRINTF(5, 6);

/* The same with the fault's words and its code. */
pc_code pc_choice_pass_on(const pc_plan_scenario *x, pc_choice choice, int index, const pc_error *fault,
                          pc_error *error);

/* Says where the setting has the key that is to blame: "FILE:LINE: setting.tp: ..."; returns the code of the fault,
 * which names the key. */
pc_code pc_plan_refuse_setting(const pc_plan_scenario *scenario, const pc_error *fault, pc_error *error);

/* Bases are machines, each with every precision that is listed; at least one. The place in their list of a base's
 * machine and of its precision. */
int pc_plan_base_count(const pc_plan_scenario *scenario);
int pc_plan_machine_of(const pc_plan_scenario *scenario, int base);
int pc_plan_precision_of(const pc_plan_scenario *scenario, int base);

/* The setting of a base, with its price; what the model's file says is filled in. */
pc_setting pc_plan_base_setting(const pc_plan_scenario *scenario, int base);

/* The key that only flex has, if there is one: then no other dispatcher is meant. NULL: none. */
const char *pc_plan_key_of_flex(const pc_plan_scenario *scenario);

/* Fills in lists that nobody gave; scenario->runs are there. `dp` stays empty. */
pc_code pc_plan_defaults_fill(pc_plan_scenario *scenario, pc_error *error);

#endif
