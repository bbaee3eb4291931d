/* setting.h: what one `setting:`, one case or one --set gives, key by key, checked value by value. Private to
 * scenarios/.
 */
#ifndef PC_SCENARIOS_SETTING_H
#define PC_SCENARIOS_SETTING_H

#include "engine/error.h"
#include "engine/simtime.h"
#include "models/schedule/generate.h"
#include "models/schedule/schedule.h"
#include "scenarios/schema.h"
#include "scenarios/source.h"

#include <stdbool.h>
#include <stdint.h>

typedef union pc_value {
    int64_t whole; /* numbers, times in ps, sizes in bytes, pc_layer_layout, 0 or 1 */
    double real;   /* bandwidth in bytes a second, fractions */
    const char *text;
    const pc_generator *generator;
} pc_value;

typedef struct pc_stage_values {
    pc_time time_ps[PC_PASS_KINDS]; /* or PC_TIME_NOT_GIVEN */
    int64_t memory_bytes;           /* of the device of this number; 0 where not given */
} pc_stage_values;

typedef struct pc_setting {
    uint64_t given; /* bit k: whether value[k] is */
    pc_value value[PC_KEYS];
    pc_stage_values
        *stages; /* stage_count of them, or NULL; owned by the setting that was parsed, shared by merged ones */
    int64_t stage_count;
    bool is_memory_later; /* the value of `memory` came after the stages: theirs does not count */
} pc_setting;

static inline bool pc_setting_has(const pc_setting *setting, pc_key key) {
    return setting->given >> key & 1;
}

/* As messages name it: "model.layers". */
const char *pc_key_path(pc_key key);

/* Reads one value as its key wants it; the message lacks its place. Text is not copied. */
pc_code pc_value_parse(pc_key key, const char *text, pc_value *value, pc_error *error);

/* Reads all that was loaded; `prefix` is "setting" or "cases[3]". The setting borrows the texts of `raw`. */
pc_code pc_setting_parse(const pc_source *source, const char *prefix, const pc_raw_setting *raw, pc_setting *setting,
                         pc_error *error);
void pc_setting_free(pc_setting *setting);

/* What `over` gives replaces what `base` has, key by key; times replace stages, memory that of the stages, and one kind
 * of transfer the other. */
void pc_setting_merge(pc_setting *base, const pc_setting *over);

/* Whether it gives the value, or any of the values, or any stage, under "model.layers", "model", "stages[3].F". */
bool pc_setting_gives(const pc_setting *setting, const char *path);

#endif
