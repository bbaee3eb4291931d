/* Whether the numbers of an imported model go together, by the rules that a run has. */
#include "scenarios/import/imported.h"
#include "scenarios/library_private.h"
#include "scenarios/setting.h"
#include "scenarios/settings.h"

/* What else is needed may come with options. */
static bool is_whole(const pc_setting *setting) {
    return setting->given[PC_KEY_LAYERS] && setting->given[PC_KEY_HIDDEN] && setting->given[PC_KEY_HEADS] &&
           setting->given[PC_KEY_VOCAB] && setting->given[PC_KEY_SEQ_LEN];
}

static int64_t whole(const pc_setting *setting, pc_key key, int64_t otherwise) {
    return setting->given[key] ? setting->value[key].whole : otherwise;
}

/* Of numbers that do not go together the one that is to blame, if that is clear. */
static pc_key find_culprit(const pc_setting *setting) {
    int64_t kv_heads = whole(setting, PC_KEY_KV_HEADS, 1), experts = whole(setting, PC_KEY_NUM_EXPERTS, 0);
    if (kv_heads < 1 || whole(setting, PC_KEY_HEADS, 1) % kv_heads) return PC_KEY_KV_HEADS;
    if (experts > 0 && whole(setting, PC_KEY_MOE_ROUTER_TOPK, 1) > experts) return PC_KEY_MOE_ROUTER_TOPK;
    return PC_KEY_MODEL_END;
}

pc_code pc_imported_check_model(pc_imported *import, const char **from, pc_error *error) {
    pc_setting setting = {.stages = NULL};
    pc_model model;
    pc_key culprit = PC_KEY_MODEL_END;
    pc_error cause = {.code = PC_OK};
    pc_code code = PC_OK;
    *from = "";
    for (pc_key key = 0; key < PC_KEY_MODEL_END && !code; key++) {
        const pc_import_entry *entry = pc_imported_find(import, pc_key_path(key));
        if (!entry || pc_setting_rule_of(key)->kind == PC_VALUE_REFERENCE) continue; /* it would have to be opened */
        code = pc_value_parse(key, entry->value, &setting.value[key], &cause);
        setting.given[key] = !code;
        if (code) culprit = key;
    }
    if (!code && is_whole(&setting)) {
        code = pc_setting_model(&setting, &model, &culprit, &cause);
        if (code && culprit == PC_KEY_MODEL_END) culprit = find_culprit(&setting);
    }
    if (code && culprit != PC_KEY_MODEL_END) {
        const pc_import_entry *entry = pc_imported_find(import, pc_key_path(culprit));
        if (entry) *from = entry->from;
    }
    return code && **from ? pc_error_copy(error, &cause) : PC_OK;
}
