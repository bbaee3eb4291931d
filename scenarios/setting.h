/* setting.h: what one `setting:`, one case or one --set gives, key by key, checked value by value. Private to
 * scenarios/.
 */
#ifndef PC_SCENARIOS_SETTING_H
#define PC_SCENARIOS_SETTING_H

#include "engine/error.h"
#include "engine/simtime.h"
#include "models/machine/ranks.h"
#include "models/schedule/generate.h"
#include "models/schedule/schedule.h"
#include "models/workload/cut.h"
#include "models/workload/layout.h"
#include "scenarios/keys.h"
#include "scenarios/tree.h"

#include <stdbool.h>
#include <stdint.h>

struct pc_reference;

/* The value of `jitter` that stands for the word: the profile's own. */
#define PC_JITTER_OF_PROFILE (-1.0)

typedef union pc_value {
    int64_t whole; /* numbers, times in ps, sizes in bytes, 0 or 1, which one of the words that a key has */
    double real;   /* bandwidth in bytes a second, fractions, durations in seconds */
    const char *text;
    const pc_generator *generator;
    pc_rank_order order;
    const struct pc_reference
        *reference; /* of model.from, machine and profile, once references are found: references.h */
} pc_value;

typedef struct pc_stage_values {
    pc_time time_ps[PC_PASS_KINDS]; /* or PC_TIME_NOT_GIVEN */
    int64_t memory_bytes;           /* the limit of the device of this number, or PC_NO_LIMIT */
} pc_stage_values;

typedef struct pc_setting {
    bool given[PC_KEYS]; /* whether value[k] is */
    pc_value value[PC_KEYS];
    pc_stage_values
        *stages; /* stage_count of them, or NULL; owned by the setting that was parsed, shared by merged ones */
    int64_t stage_count;
    bool is_memory_later; /* the value of `memory` came after the stages: theirs does not count */
} pc_setting;

static inline bool pc_setting_has(const pc_setting *setting, pc_key key) {
    return setting->given[key];
}

static inline int64_t pc_setting_whole(const pc_setting *setting, pc_key key, int64_t otherwise) {
    return setting->given[key] ? setting->value[key].whole : otherwise;
}

/* As messages name it: "model.layers". keys.c. */
const char *pc_key_path(pc_key key);

/* Whether the key means something only where costs follow from a model and a machine; or only where times are given. */
bool pc_key_is_of_cluster(pc_key key);
bool pc_key_is_of_times(pc_key key);

/* Whether its values are numbers of things, of which lists may have ranges: number_list.h. */
bool pc_key_is_whole(pc_key key);

/* The key that says the same in another way, and gives way to this one when that comes later: `pp` and `devices`,
 * `microbatches` and `global_batch`; PC_KEYS where there is none. */
pc_key pc_key_alternative(pc_key key);

/* Reads one value as its key wants it; the message lacks its place. Text is not copied. keys.c. */
pc_code pc_value_parse(pc_key key, const char *text, pc_value *value, pc_error *error);

/* Which of "one|two|three" the text is, from 0. */
pc_code pc_word_parse(const char *words, const char *text, int64_t *index, pc_error *error);

/* "`one`, `two` or `three`"; and what a key takes, in words: "whole number, 1 to 65536". Cut to size. */
void pc_word_list(const char *words, char *text, size_t size);
/* The same of "one=uno|two", without other names, each in quotes; and how many they are. */
void pc_words_list(const char *words, const char *quote, char *text, size_t size);
int pc_word_count(const char *words);
void pc_key_values(pc_key key, char *text, size_t size);

/* The value's name where it is told apart from others by it; NULL if it is a number or a word. Borrowed. */
const char *pc_value_name(pc_key key, pc_value value);

/* The value as runs are named by it, PC_DIMENSION_TEXT bytes at most with the terminating zero (of a longer one the
 * beginning), and how long it is in whole. */
enum { PC_DIMENSION_TEXT = 256 };
size_t pc_dimension_write(pc_dimension dimension, pc_value value, char text[PC_DIMENSION_TEXT]);

/* The word of number `index` that the key has, `*length` bytes without an end. */
const char *pc_word_of(pc_key key, int64_t index, size_t *length);

/* A size as pc_value_parse reads it: at least one byte. */
pc_code pc_value_parse_size(const char *text, pc_value *value, pc_error *error);

/* The layers that a `layout` that is a list gives to its parts, as pc_layout_parse; false if it is a word. */
bool pc_layout_list(const char *layout, int32_t *layers, pc_layout_shape *shape);

/* Reads all that stands in `node`, a `setting` or a case of the tree, which pc_schema_check has accepted; NULL:
 * nothing. The setting borrows the texts. */
pc_code pc_setting_parse(const pc_tree *tree, const pc_node *node, pc_setting *setting, pc_error *error);
void pc_setting_free(pc_setting *setting);

/* What `over` gives replaces what `base` has, key by key; times replace stages, memory that of the stages, one kind of
 * transfer the other, and a key its alternative. */
void pc_setting_merge(pc_setting *base, const pc_setting *over);

/* Gives one value, and takes away what says the same in another way: its alternative, for `memory` that of stages. */
void pc_setting_set(pc_setting *setting, pc_key key, pc_value value);

/* Whether it gives the value, or any of the values, or any stage, under "model.layers", "model", "stages[3].F". */
bool pc_setting_gives(const pc_setting *setting, const char *path);

#endif
