#include "scenarios/setting.h"

#include "engine/alloc.h"
#include "models/training/run.h"
#include "models/workload/activation.h"
#include "scenarios/units.h"

#include <stdio.h>
#include <string.h>

typedef enum value_kind { LABEL, INTEGER, TIME, SIZE, BANDWIDTH, FRACTION, LAYOUT, SCHEDULE, SWITCH } value_kind;

static const struct key_rule {
    const char *path;
    value_kind kind;
    int64_t most; /* of an INTEGER, which is at least 1 */
} keys[PC_KEYS] = {
    [PC_KEY_MODEL_NAME] = {"model.name", LABEL, 0},
    [PC_KEY_LAYERS] = {"model.layers", INTEGER, INT32_MAX},
    [PC_KEY_HIDDEN] = {"model.hidden", INTEGER, INT32_MAX},
    [PC_KEY_HEADS] = {"model.heads", INTEGER, INT32_MAX},
    [PC_KEY_SEQ_LEN] = {"model.seq_len", INTEGER, INT32_MAX},
    [PC_KEY_LAYOUT] = {"model.layout", LAYOUT, 0},
    [PC_KEY_MACHINE] = {"machine", LABEL, 0},
    [PC_KEY_SCHEDULE] = {"schedule", SCHEDULE, 0},
    [PC_KEY_DEVICES] = {"devices", INTEGER, PC_DEVICES_MAX},
    [PC_KEY_MICROBATCHES] = {"microbatches", INTEGER, PC_MICROBATCHES_MAX},
    [PC_KEY_MICROBATCH_SIZE] = {"microbatch_size", INTEGER, INT32_MAX},
    [PC_KEY_CHUNKS] = {"chunks", INTEGER, PC_CHUNKS_MAX},
    [PC_KEY_TIMES + PC_PASS_F] = {"times.F", TIME, 0},
    [PC_KEY_TIMES + PC_PASS_B] = {"times.B", TIME, 0},
    [PC_KEY_TIMES + PC_PASS_W] = {"times.W", TIME, 0},
    [PC_KEY_TIMES + PC_PASS_BW] = {"times.BW", TIME, 0},
    [PC_KEY_TIMES + PC_PASS_R] = {"times.R", TIME, 0},
    [PC_KEY_TRANSFER_TIME] = {"transfer.time", TIME, 0},
    [PC_KEY_TRANSFER_SIZE] = {"transfer.size", SIZE, 0},
    [PC_KEY_TRANSFER_LATENCY] = {"transfer.latency", TIME, 0},
    [PC_KEY_TRANSFER_BANDWIDTH] = {"transfer.bandwidth", BANDWIDTH, 0},
    [PC_KEY_ACTIVATION_SIZE] = {"activation.size", SIZE, 0},
    [PC_KEY_RELEASE_B] = {"activation.release_b", FRACTION, 0},
    [PC_KEY_KEEP] = {"activation.keep", FRACTION, 0},
    [PC_KEY_MEMORY] = {"memory", SIZE, 0},
    [PC_KEY_OVERHEAD] = {"overhead", TIME, 0},
    [PC_KEY_TRACE] = {"trace", SWITCH, 0},
};

const char *pc_key_path(pc_key key) {
    return keys[key].path;
}

static pc_code parse_label(const char *text, pc_value *value, pc_error *error) {
    for (const unsigned char *c = (const unsigned char *)text; *c; c++)
        if (*c < 0x20 || *c == 0x7f)
            return pc_error_set(error, PC_ERROR_INPUT, "has control characters; expected one line of text");
    if (strlen(text) >= PC_LABEL_SIZE)
        return pc_error_set(error, PC_ERROR_INPUT, "%.40s...: too long; expected at most %d bytes", text,
                            PC_LABEL_SIZE - 1);
    value->text = text;
    return PC_OK;
}

static pc_code parse_layout(const char *text, pc_value *value, pc_error *error) {
    bool even = strcmp(text, "even") == 0;
    if (!even && strcmp(text, "ends") != 0)
        return pc_error_set(error, PC_ERROR_INPUT, "%.40s: unknown layout; expected even or ends", text);
    value->whole = even ? PC_LAYERS_EVEN : PC_LAYERS_ENDS;
    return PC_OK;
}

static pc_code parse_schedule(const char *text, pc_value *value, pc_error *error) {
    char names[512];
    const pc_generator *generator = pc_generator_find(text);
    pc_generator_names(names, sizeof names);
    if (!generator)
        return pc_error_set(error, PC_ERROR_INPUT, "%.40s: unknown schedule; expected one of %s", text, names);
    value->generator = generator;
    return PC_OK;
}

static pc_code parse_switch(const char *text, pc_value *value, pc_error *error) {
    bool on = strcmp(text, "true") == 0;
    if (!on && strcmp(text, "false") != 0)
        return pc_error_set(error, PC_ERROR_INPUT, "%.40s: not a truth value; expected true or false", text);
    value->whole = on;
    return PC_OK;
}

static pc_code parse_fraction(const char *text, pc_value *value, pc_error *error) {
    double number;
    pc_code code = pc_parse_number(text, &number, error);
    if (code) return code;
    if (number > 1)
        return pc_error_set(error, PC_ERROR_INPUT, "%.40s: out of range; expected a fraction from 0 to 1", text);
    value->real = number;
    return PC_OK;
}

/* Sizes of zero would read as "no limit" or "nothing to send". */
static pc_code parse_size(const char *text, pc_value *value, pc_error *error) {
    int64_t bytes;
    pc_code code = pc_parse_size(text, &bytes, error);
    if (code) return code;
    if (bytes == 0) return pc_error_set(error, PC_ERROR_INPUT, "%.40s: is zero; expected at least one byte", text);
    value->whole = bytes;
    return PC_OK;
}

pc_code pc_value_parse(pc_key key, const char *text, pc_value *value, pc_error *error) {
    switch (keys[key].kind) {
    case LABEL:
        return parse_label(text, value, error);
    case INTEGER:
        return pc_parse_integer(text, 1, keys[key].most, &value->whole, error);
    case TIME:
        return pc_parse_time(text, &value->whole, error);
    case SIZE:
        return parse_size(text, value, error);
    case BANDWIDTH:
        return pc_parse_bandwidth(text, &value->real, error);
    case FRACTION:
        return parse_fraction(text, value, error);
    case LAYOUT:
        return parse_layout(text, value, error);
    case SCHEDULE:
        return parse_schedule(text, value, error);
    case SWITCH:
        return parse_switch(text, value, error);
    }
    return PC_OK;
}

static pc_code parse_values(const pc_source *source, const char *prefix, const pc_raw_setting *raw, pc_setting *setting,
                            pc_error *error) {
    pc_error cause;
    char path[PC_KEY_PATH_SIZE];
    for (pc_key key = 0; key < PC_KEYS; key++) {
        if (!raw->text[key]) continue;
        snprintf(path, sizeof path, "%s.%s", prefix, keys[key].path);
        if (pc_value_parse(key, raw->text[key], &setting->value[key], &cause))
            return pc_source_refuse(source, path, error, "%s", cause.message);
        setting->given |= UINT64_C(1) << key;
    }
    return PC_OK;
}

static pc_code parse_stage(const pc_source *source, const char *prefix, unsigned stage, const pc_raw_stage *raw,
                           pc_stage_values *values, pc_error *error) {
    const char *at_fault = NULL;
    pc_error cause;
    pc_value memory = {.whole = 0};
    char path[PC_KEY_PATH_SIZE];
    for (int kind = 0; kind < PC_PASS_KINDS && !at_fault; kind++) {
        const char *text = raw->times.text[kind];
        values->time_ps[kind] = PC_TIME_NOT_GIVEN;
        if (text && pc_parse_time(text, &values->time_ps[kind], &cause))
            at_fault = pc_pass_kind_name((pc_pass_kind)kind);
    }
    if (!at_fault && raw->memory && parse_size(raw->memory, &memory, &cause)) at_fault = keys[PC_KEY_MEMORY].path;
    values->memory_bytes = memory.whole;
    if (!at_fault) return PC_OK;
    snprintf(path, sizeof path, "%s.stages[%u].%s", prefix, stage, at_fault);
    return pc_source_refuse(source, path, error, "%s", cause.message);
}

static pc_code parse_stages(const pc_source *source, const char *prefix, const pc_raw_setting *raw, pc_setting *setting,
                            pc_error *error) {
    if (!raw->stages) return PC_OK;
    setting->stages = pc_alloc(raw->stages_count, sizeof *setting->stages);
    if (!setting->stages) return pc_error_no_memory(error);
    setting->stage_count = raw->stages_count;
    pc_code code = PC_OK;
    for (unsigned i = 0; i < raw->stages_count && !code; i++)
        code = parse_stage(source, prefix, i, &raw->stages[i], &setting->stages[i], error);
    return code;
}

static const uint64_t times_mask = ((UINT64_C(1) << PC_PASS_KINDS) - 1) << PC_KEY_TIMES;
static const uint64_t delay_mask = UINT64_C(1) << PC_KEY_TRANSFER_TIME;
static const uint64_t link_mask = UINT64_C(1) << PC_KEY_TRANSFER_SIZE | UINT64_C(1) << PC_KEY_TRANSFER_LATENCY |
                                  UINT64_C(1) << PC_KEY_TRANSFER_BANDWIDTH;

/* Two ways to say the same thing, in one place: one of them would go unheard. */
static pc_code check_alternatives(const pc_source *source, const char *prefix, const pc_setting *setting,
                                  pc_error *error) {
    char path[PC_KEY_PATH_SIZE];
    if (setting->stages && setting->given & times_mask) {
        snprintf(path, sizeof path, "%s.stages", prefix);
        return pc_source_refuse(source, path, error, "stands beside times; expected one of the two");
    }
    if (setting->given & delay_mask && setting->given & link_mask) {
        snprintf(path, sizeof path, "%s.transfer", prefix);
        return pc_source_refuse(source, path, error,
                                "has both a time and a link; expected time, or size, latency and bandwidth");
    }
    return PC_OK;
}

pc_code pc_setting_parse(const pc_source *source, const char *prefix, const pc_raw_setting *raw, pc_setting *setting,
                         pc_error *error) {
    pc_setting made = {.given = 0};
    pc_code code = parse_values(source, prefix, raw, &made, error);
    if (!code) code = parse_stages(source, prefix, raw, &made, error);
    if (!code) code = check_alternatives(source, prefix, &made, error);
    if (code)
        pc_setting_free(&made);
    else
        *setting = made;
    return code;
}

void pc_setting_free(pc_setting *setting) {
    pc_free(setting->stages);
    memset(setting, 0, sizeof *setting);
}

/* What `over` says in one way takes away what `base` says in another. */
static void drop_alternatives(pc_setting *base, const pc_setting *over) {
    if (over->stages) base->given &= ~times_mask;
    if (over->given & delay_mask) base->given &= ~link_mask;
    if (over->given & link_mask) base->given &= ~delay_mask;
    if (over->stages || pc_setting_has(over, PC_KEY_MEMORY)) base->is_memory_later = !over->stages;
    if (!over->stages && !(over->given & times_mask)) return;
    base->stages = over->stages;
    base->stage_count = over->stage_count;
}

void pc_setting_merge(pc_setting *base, const pc_setting *over) {
    drop_alternatives(base, over);
    for (pc_key key = 0; key < PC_KEYS; key++)
        if (pc_setting_has(over, key)) base->value[key] = over->value[key];
    base->given |= over->given;
}

/* Whether `path` is `key` or lies above it. */
static bool covers(const char *path, const char *key) {
    size_t length = strlen(path);
    return strncmp(path, key, length) == 0 && (key[length] == '\0' || key[length] == '.');
}

bool pc_setting_gives(const pc_setting *setting, const char *path) {
    if (strncmp(path, "stages", 6) == 0) return setting->stages != NULL;
    for (pc_key key = 0; key < PC_KEYS; key++)
        if (pc_setting_has(setting, key) && covers(path, keys[key].path)) return true;
    return false;
}
