#include "scenarios/setting.h"

#include "engine/alloc.h"
#include "scenarios/units.h"

#include <string.h>

static pc_code parse_values(const pc_tree *tree, const pc_node *node, pc_setting *setting, pc_error *error) {
    for (pc_key key = 0; key < PC_KEYS; key++) {
        const pc_node *value = pc_node_find(node, pc_key_path(key));
        if (!value) continue;
        pc_code code = pc_value_parse(key, value->text, &setting->value[key], error);
        if (code) return pc_node_blame(tree, value, code, error);
        setting->given[key] = true;
    }
    return PC_OK;
}

static pc_code parse_stage(const pc_tree *tree, const pc_node *stage, pc_stage_values *values, pc_error *error) {
    pc_value bytes = {.whole = PC_NO_LIMIT};
    for (int kind = 0; kind < PC_PASS_KINDS; kind++) {
        const pc_node *time = pc_node_find(stage, pc_pass_kind_name((pc_pass_kind)kind));
        values->time_ps[kind] = PC_TIME_NOT_GIVEN;
        pc_code code = time ? pc_parse_time(time->text, &values->time_ps[kind], error) : PC_OK;
        if (code) return pc_node_blame(tree, time, code, error);
    }
    const pc_node *memory = pc_node_find(stage, pc_key_path(PC_KEY_MEMORY));
    pc_code code = memory ? pc_value_parse_size(memory->text, &bytes, error) : PC_OK;
    if (code) return pc_node_blame(tree, memory, code, error);
    values->memory_bytes = bytes.whole;
    return PC_OK;
}

static pc_code parse_stages(const pc_tree *tree, const pc_node *node, pc_setting *setting, pc_error *error) {
    const pc_node *list = pc_node_find(node, "stages");
    if (!list) return PC_OK;
    setting->stages = pc_alloc(list->count, sizeof *setting->stages);
    if (!setting->stages) return pc_error_no_memory(error);
    setting->stage_count = list->count;
    pc_stage_values *to = setting->stages;
    pc_code code = PC_OK;
    for (const pc_node *stage = pc_node_first(list); stage < pc_node_end(list) && !code; stage = pc_node_end(stage))
        code = parse_stage(tree, stage, to++, error);
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

static bool gives_measured(const pc_setting *setting) {
    return setting->given[PC_KEY_PASS_TIMES];
}

static bool gives_link(const pc_setting *setting) {
    return gives_any(setting, PC_KEY_TRANSFER_SIZE, PC_KEY_TRANSFER_BANDWIDTH + 1);
}

static void drop(pc_setting *setting, pc_key first, pc_key end) {
    for (pc_key key = first; key < end; key++) setting->given[key] = false;
}

/* Two ways to say the same thing, in one place: one of them would go unheard. */
static pc_code check_alternatives(const pc_tree *tree, const pc_node *node, const pc_setting *setting,
                                  pc_error *error) {
    if (setting->stages && gives_times(setting))
        return pc_node_refuse(tree, pc_node_find(node, "stages"), error,
                              "stands beside times; expected one of the two");
    if (gives_measured(setting) && (setting->stages || gives_times(setting)))
        return pc_node_refuse(tree, pc_node_find(node, pc_key_path(PC_KEY_PASS_TIMES)), error,
                              "stands beside %s; expected one of the two", setting->stages ? "stages" : "times");
    if (setting->given[PC_KEY_TRANSFER_TIME] && gives_link(setting))
        return pc_node_refuse(tree, pc_node_find(node, "transfer"), error,
                              "has both a time and a link; expected time, or size, latency and bandwidth");
    if (setting->given[PC_KEY_PP] && setting->given[PC_KEY_DEVICES])
        return pc_node_refuse(tree, pc_node_find(node, pc_key_path(PC_KEY_PP)), error,
                              "stands beside devices, which means the same; expected one");
    return PC_OK;
}

pc_code pc_setting_parse(const pc_tree *tree, const pc_node *node, pc_setting *setting, pc_error *error) {
    pc_setting made = {.stages = NULL};
    pc_code code = parse_values(tree, node, &made, error);
    if (!code) code = parse_stages(tree, node, &made, error);
    if (!code) code = check_alternatives(tree, node, &made, error);
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
    if (over->stages || gives_measured(over)) drop(base, PC_KEY_TIMES, PC_KEY_TIMES + PC_PASS_KINDS);
    if (over->stages || times) base->given[PC_KEY_PASS_TIMES] = false;
    if (over->given[PC_KEY_TRANSFER_TIME]) drop(base, PC_KEY_TRANSFER_SIZE, PC_KEY_TRANSFER_BANDWIDTH + 1);
    if (gives_link(over)) base->given[PC_KEY_TRANSFER_TIME] = false;
    if (over->stages || over->given[PC_KEY_MEMORY]) base->is_memory_later = !over->stages;
    if (!over->stages && !times && !gives_measured(over)) return;
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
