/* settings.h: the table of settings, one line each in settings.def: name, type, field, unit, range, default, words.
 * Private to scenarios/.
 *
 * Of it are made: what a value is checked and read by (keys.c); what a sweep may list, and how names of runs say it;
 * the options of `run` and `plan` (setting_flags.h). So are the fields of a run's spec and its key (run_key.h), and the
 * list of keys with its page (key_list.h).
 */
#ifndef PC_SCENARIOS_SETTINGS_H
#define PC_SCENARIOS_SETTINGS_H

#include "engine/field.h"
#include "models/cost/dispatch.h"
#include "models/training/run.h"
#include "scenarios/key_list.h"
#include "scenarios/keys.h"
#include "scenarios/setting.h"

#include <stdbool.h>
#include <stdint.h>

typedef enum pc_value_kind {
    PC_VALUE_LABEL,
    PC_VALUE_REFERENCE,
    PC_VALUE_DATA_FILE,
    PC_VALUE_COUNT,
    PC_VALUE_NUMBER, /* a COUNT of which "32k" would leave open which number it is */
    PC_VALUE_AMOUNT, /* a number of tokens, in thousands of thousands: "15T" */
    PC_VALUE_TIME,
    PC_VALUE_SIZE,
    PC_VALUE_BANDWIDTH,
    PC_VALUE_FRACTION,
    PC_VALUE_OVERHEAD,
    PC_VALUE_LAYOUT,
    PC_VALUE_SCHEDULE,
    PC_VALUE_SWITCH,
    PC_VALUE_WORD,
    PC_VALUE_WORDS,   /* none, one or several of them: a sum of 2^place */
    PC_VALUE_NUMERAL, /* a WORD that is a number, and stands for it */
    PC_VALUE_RECOMPUTATION,
    PC_VALUE_MODULES, /* names with commas between; in a file a list, too */
    PC_VALUE_ORDER,
    PC_VALUE_OFFLOAD,
    PC_VALUE_OFFLOAD_MODULES,
    PC_VALUE_PRICE,
    PC_VALUE_DURATION,
    PC_VALUE_JITTER,
    PC_VALUE_SLOWDOWN,
    PC_VALUE_SHARE
} pc_value_kind;

/* How a sweep lists it. Places are its ranks among all that can be swept. */
typedef struct pc_dimension_rule {
    pc_key key;
    const char *name;                       /* of `sweep:`; NULL: it cannot be swept */
    const char *letters;                    /* what stands in front of its value in the name of a run */
    int page_place, loop_place, name_place; /* on the reference page; among loops, the outermost first; in names */
} pc_dimension_rule;

typedef struct pc_flag_rule {
    int place; /* in the help */
    const char *name, *value, *help;
    bool is_of_run;      /* not an option of `plan` */
    const char *why_not; /* there is none; NULL if there is */
} pc_flag_rule;

typedef struct pc_setting_rule {
    pc_field
        field;   /* name: the dotted path; where the value goes in pc_run_spec, as it is: nowhere where `size` is 0 */
    size_t twin; /* where the spec's iteration has the same; 0: nowhere */
    pc_key_use use;
    pc_value_kind kind;
    int64_t least, most; /* of a COUNT or NUMBER; of a DURATION: 1 if it is more than zero, and years */
    const char *words;   /* of a WORD, in the order of the enum that it stands for; of a NUMERAL; of WORDS, each with
                          * other names behind it, "one=uno|two" */
    bool has_standard;   /* whether `standard` is what it is where it is not given: a number, a word's place */
    double standard;
    const char *standard_text; /* the same of a text; NULL: none */
    const char *otherwise;     /* what it is without it, in words; NULL: the standard */
    pc_flag_rule flag;
    pc_dimension_rule sweep;
} pc_setting_rule;

const pc_setting_rule *pc_setting_rule_of(pc_key key);

const pc_dimension_rule *pc_dimension_rule_of(pc_dimension dimension);

static inline pc_key pc_dimension_key(pc_dimension dimension) {
    return pc_dimension_rule_of(dimension)->key;
}

/* All dimensions by one of their places; those whose place is 0 are left out. Returns how many there are. */
typedef enum pc_dimension_order { PC_ORDER_OF_PAGE, PC_ORDER_OF_LOOPS, PC_ORDER_OF_NAMES } pc_dimension_order;
int pc_dimensions_in_order(pc_dimension_order order, pc_dimension list[PC_DIMENSIONS]);

/* What the reference page has of a setting, in its order: a key, or a group of keys with words of its own. */
typedef struct pc_setting_line {
    pc_key key; /* PC_KEYS: a group */
    const char *path, *value, *otherwise, *description;
} pc_setting_line;
const pc_setting_line *pc_setting_lines(int *count);

/* What a key is without being given, in words, as the page has it: "`true`", "1". Cut to size. */
void pc_key_otherwise(pc_key key, char *text, size_t size);

/* ---- values ---- */

/* What a setting says, or the key's standard: 0 if it has none. */
int64_t pc_setting_integer(const pc_setting *setting, pc_key key);
double pc_setting_real(const pc_setting *setting, pc_key key);
const char *pc_setting_text(const pc_setting *setting, pc_key key); /* NULL if it has none */

static inline bool pc_setting_is_on(const pc_setting *setting, pc_key key) {
    return pc_setting_integer(setting, key) != 0;
}

/* Fills in all fields of a spec that take a value as it is, for a run of this sort. What is neither given nor has a
 * standard stays as it is. */
void pc_setting_fill(const pc_setting *setting, bool is_cluster, pc_run_spec *spec);

/* The same of a model alone. */
void pc_setting_fill_model(const pc_setting *setting, pc_model *model);

/* Whether a run of this sort has the field of a key; and whether it has the twin. */
bool pc_setting_has_field(const pc_setting_rule *rule, bool is_cluster);
static inline bool pc_setting_has_twin(const pc_setting_rule *rule, bool is_cluster) {
    return is_cluster && rule->twin > 0;
}

/* How much further on than the field the twin lies. */
static inline size_t pc_setting_twin(const pc_setting_rule *rule) {
    return rule->twin - rule->field.place;
}

#endif
