#include "scenarios/recompute_keys.h"

#include "engine/names.h"
#include "models/workload/cut.h"
#include "scenarios/settings.h"

#include <string.h>

/* As messages quote it, where it may be empty. */
static const char *shown(const char *text) {
    return *text ? text : "''";
}

/* ---- `recompute` ---- */

/* A name of the list that starts here, and where it ends. */
static const char *take_recomputation(const char *text, pc_recomputation *taken) {
    while (*text == ' ') text++;
    size_t length = strcspn(text, " ,");
    if (!pc_recomputation_parse(text, length, taken)) return NULL;
    text += length;
    while (*text == ' ') text++;
    return text;
}

bool pc_recompute_list(const char *text, pc_recomputation *list, int *count) {
    *count = 0;
    while (*count < PC_PARTS_MAX) {
        pc_recomputation taken;
        text = take_recomputation(text, &taken);
        if (!text) return false;
        if (list) list[*count] = taken;
        (*count)++;
        if (*text == '\0') return true;
        if (*text++ != ',') return false;
    }
    return false;
}

pc_code pc_recompute_parse(const char *text, pc_value *value, pc_error *error) {
    int count;
    char hint[PC_NEAREST_TEXT], names[512];
    pc_nearest nearest = {.word = text};
    pc_recomputation_names("|", names, sizeof names);
    if (!strchr(text, ',')) pc_nearest_offer_words(&nearest, names);
    pc_recomputation_names(", ", names, sizeof names);
    if (!pc_recompute_list(text, NULL, &count))
        return pc_error_set(error, PC_ERROR_INPUT,
                            "%.40s: unknown recomputation%s; expected %s, with a number N, or one of them for every "
                            "part of the model such as \"full,full,none,none\"",
                            shown(text), pc_nearest_hint(&nearest, hint), names);
    value->text = text;
    return PC_OK;
}

/* ---- `recompute_modules` ---- */

/* The set, and its text without spaces, cut to a set's size. */
static int32_t modules_of(const char *text) {
    char squeezed[PC_RECOMPUTATION_SIZE];
    size_t used = 0;
    for (; *text && used + 1 < sizeof squeezed; text++)
        if (*text != ' ') squeezed[used++] = *text;
    return *text ? 0 : pc_recompute_modules_parse(squeezed, used, ',');
}

pc_code pc_recompute_parse_modules(const char *text, pc_value *value, pc_error *error) {
    value->text = text;
    if (modules_of(text)) return PC_OK;
    return pc_error_set(error, PC_ERROR_INPUT,
                        "%.40s: no modules; expected some of core_attn, layernorm, mlp, moe, moe_act, shared_experts, "
                        "mla_up_proj, each once, such as "
                        "\"core_attn,mlp\"",
                        shown(text));
}

/* ---- together ---- */

static pc_code refuse(pc_key key, const char *has, const char *text, const char *expected, pc_error *error) {
    error->is_rule = true;
    return pc_error_blame(error, pc_key_path(key), "stands beside %s%.40s; expected %s", has, text, expected);
}

static pc_code with_modules(const pc_setting *setting, const char *recompute, char *text, pc_error *error) {
    pc_key key = PC_KEY_RECOMPUTE_MODULES;
    if (strcmp(recompute, "selective") != 0)
        return refuse(key, "recompute: ", recompute, "recompute: selective", error);
    pc_recomputation_write(
        (pc_recomputation){.kind = PC_RECOMPUTE_MODULES, .modules = modules_of(setting->value[key].text)}, text);
    return PC_OK;
}

static pc_code with_layers(const pc_setting *setting, const char *recompute, char *text, pc_error *error) {
    bool has_method = pc_setting_has(setting, PC_KEY_RECOMPUTE_METHOD),
         has_layers = pc_setting_has(setting, PC_KEY_RECOMPUTE_LAYERS);
    pc_key key = has_method ? PC_KEY_RECOMPUTE_METHOD : PC_KEY_RECOMPUTE_LAYERS;
    if (strcmp(recompute, "full") != 0) return refuse(key, "recompute: ", recompute, "recompute: full", error);
    if (!has_layers) return refuse(key, "no recompute_layers", "", "a number of layers", error);
    if (!has_method) return refuse(key, "no recompute_method", "", "uniform or block", error);
    bool is_block = setting->value[PC_KEY_RECOMPUTE_METHOD].whole == 1;
    pc_recomputation_write((pc_recomputation){.kind = is_block ? PC_RECOMPUTE_BLOCK : PC_RECOMPUTE_UNIFORM,
                                              .layers = (int32_t)setting->value[PC_KEY_RECOMPUTE_LAYERS].whole},
                           text);
    return PC_OK;
}

pc_code pc_recompute_of_setting(const pc_setting *setting, char text[PC_RECOMPUTATION_SIZE], const char **whole,
                                pc_error *error) {
    const char *recompute = pc_setting_text(setting, PC_KEY_RECOMPUTE);
    bool has_modules = pc_setting_has(setting, PC_KEY_RECOMPUTE_MODULES),
         has_layers =
             pc_setting_has(setting, PC_KEY_RECOMPUTE_LAYERS) || pc_setting_has(setting, PC_KEY_RECOMPUTE_METHOD);
    *whole = has_modules || has_layers ? text : recompute;
    if (has_modules) return with_modules(setting, recompute, text, error);
    return has_layers ? with_layers(setting, recompute, text, error) : PC_OK;
}
