#include "scenarios/setting.h"

#include "engine/alloc.h"
#include "scenarios/units.h"

#include <stdio.h>
#include <string.h>

static pc_code parse_values(const pc_source *source, const char *prefix, const pc_raw_setting *raw, pc_setting *setting,
                            pc_error *error) {
    pc_error cause;
    char path[PC_KEY_PATH_SIZE];
    for (pc_key key = 0; key < PC_KEYS; key++) {
        if (!raw->text[key]) continue;
        snprintf(path, sizeof path, "%s.%s", prefix, pc_key_path(key));
        if (pc_value_parse(key, raw->text[key], &setting->value[key], &cause))
            return pc_source_refuse(source, path, error, "%s", cause.message);
        setting->given[key] = true;
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
    if (!at_fault && raw->memory && pc_value_parse_size(raw->memory, &memory, &cause))
        at_fault = pc_key_path(PC_KEY_MEMORY);
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

static bool gives_any(const pc_setting *setting, pc_key first, pc_key end) {
    for (pc_key key = first; key < end; key++)
        if (setting->given[key]) return true;
    return false;
}

static bool gives_times(const pc_setting *setting) {
    return gives_any(setting, PC_KEY_TIMES, PC_KEY_TIMES + PC_PASS_KINDS);
}

static bool gives_link(const pc_setting *setting) {
    return gives_any(setting, PC_KEY_TRANSFER_SIZE, PC_KEY_TRANSFER_BANDWIDTH + 1);
}

static void drop(pc_setting *setting, pc_key first, pc_key end) {
    for (pc_key key = first; key < end; key++) setting->given[key] = false;
}

/* Two ways to say the same thing, in one place: one of them would go unheard. */
static pc_code check_alternatives(const pc_source *source, const char *prefix, const pc_setting *setting,
                                  pc_error *error) {
    char path[PC_KEY_PATH_SIZE];
    if (setting->stages && gives_times(setting)) {
        snprintf(path, sizeof path, "%s.stages", prefix);
        return pc_source_refuse(source, path, error, "stands beside times; expected one of the two");
    }
    if (setting->given[PC_KEY_TRANSFER_TIME] && gives_link(setting)) {
        snprintf(path, sizeof path, "%s.transfer", prefix);
        return pc_source_refuse(source, path, error,
                                "has both a time and a link; expected time, or size, latency and bandwidth");
    }
    if (setting->given[PC_KEY_PP] && setting->given[PC_KEY_DEVICES]) {
        snprintf(path, sizeof path, "%s.pp", prefix);
        return pc_source_refuse(source, path, error, "stands beside devices, which means the same; expected one");
    }
    return PC_OK;
}

pc_code pc_setting_parse(const pc_source *source, const char *prefix, const pc_raw_setting *raw, pc_setting *setting,
                         pc_error *error) {
    pc_setting made = {.stages = NULL};
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
    bool times = gives_times(over);
    if (over->stages) drop(base, PC_KEY_TIMES, PC_KEY_TIMES + PC_PASS_KINDS);
    if (over->given[PC_KEY_TRANSFER_TIME]) drop(base, PC_KEY_TRANSFER_SIZE, PC_KEY_TRANSFER_BANDWIDTH + 1);
    if (gives_link(over)) base->given[PC_KEY_TRANSFER_TIME] = false;
    if (over->stages || over->given[PC_KEY_MEMORY]) base->is_memory_later = !over->stages;
    if (!over->stages && !times) return;
    base->stages = over->stages;
    base->stage_count = over->stage_count;
}

void pc_setting_set(pc_setting *setting, pc_key key, pc_value value) {
    pc_key alternative = pc_key_alternative(key);
    if (alternative != PC_KEYS) setting->given[alternative] = false;
    if (key == PC_KEY_MEMORY) setting->is_memory_later = true;
    setting->given[key] = true;
    setting->value[key] = value;
}

void pc_setting_merge(pc_setting *base, const pc_setting *over) {
    drop_alternatives(base, over);
    for (pc_key key = 0; key < PC_KEYS; key++) /* of both a key and its alternative, both stay: they must agree */
        if (over->given[key] && pc_key_alternative(key) != PC_KEYS) base->given[pc_key_alternative(key)] = false;
    for (pc_key key = 0; key < PC_KEYS; key++) {
        if (!over->given[key]) continue;
        base->value[key] = over->value[key];
        base->given[key] = true;
    }
}

/* Whether `path` is `key` or lies above it. */
static bool covers(const char *path, const char *key) {
    size_t length = strlen(path);
    return strncmp(path, key, length) == 0 && (key[length] == '\0' || key[length] == '.');
}

bool pc_setting_gives(const pc_setting *setting, const char *path) {
    if (strncmp(path, "stages", 6) == 0) return setting->stages != NULL;
    for (pc_key key = 0; key < PC_KEYS; key++)
        if (pc_setting_has(setting, key) && covers(path, pc_key_path(key))) return true;
    return false;
}
