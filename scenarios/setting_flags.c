#include "scenarios/setting_flags.h"

#include "scenarios/settings.h"

static const char *words_of(const pc_setting_rule *rule) {
    switch (rule->kind) {
    case PC_VALUE_SWITCH:
        return "true|false";
    case PC_VALUE_RECOMPUTATION:
        return "none|selective|full|selective-op|minimal_with_context|minimal";
    case PC_VALUE_OFFLOAD:
        return "none|fine-grained|selective|full|tensors|optimizer|parameters";
    case PC_VALUE_OFFLOAD_MODULES:
        return "attn_norm|qkv_linear|core_attn|attn_proj|mlp_norm";
    case PC_VALUE_LAYOUT:
        return "auto|even|ends|own";
    case PC_VALUE_JITTER:
        return "profile";
    default:
        return rule->words;
    }
}

_Static_assert((int)PC_KEYS < 2 * (int)PC_SETTING_FLAGS_MAX, "of most keys some have no option");

int pc_setting_flags(pc_setting_flag flags[PC_SETTING_FLAGS_MAX]) {
    pc_key keys[PC_SETTING_FLAGS_MAX];
    int count = 0;
    for (pc_key key = 0; key < PC_KEYS && count < PC_SETTING_FLAGS_MAX; key++) {
        int place = pc_setting_rule_of(key)->flag.place, at = count;
        if (place == 0) continue;
        for (; at > 0 && pc_setting_rule_of(keys[at - 1])->flag.place > place; at--) keys[at] = keys[at - 1];
        keys[at] = key;
        count++;
    }
    for (int i = 0; i < count; i++) {
        const pc_setting_rule *rule = pc_setting_rule_of(keys[i]);
        flags[i] = (pc_setting_flag){.name = rule->flag.name,
                                     .value = rule->flag.value,
                                     .key = rule->field.name,
                                     .sweep = rule->sweep.name,
                                     .help = rule->flag.help,
                                     .words = words_of(rule),
                                     .is_for_plans = !rule->flag.is_of_run};
    }
    return count;
}
