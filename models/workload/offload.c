#include "models/workload/offload.h"

#include "models/workload/saved.h"

#include <stdio.h>
#include <string.h>

typedef struct name {
    const char *word;
    int32_t bit;
} name;

static const name kind_names[] = {
    {"fine-grained", PC_OFFLOAD_FINE_GRAINED}, {"selective", PC_OFFLOAD_SELECTIVE},   {"full", PC_OFFLOAD_FULL},
    {"optimizer", PC_OFFLOAD_OPTIMIZER},       {"parameters", PC_OFFLOAD_PARAMETERS}, {"tensors", PC_OFFLOAD_TENSORS}};

static const name module_names[] = {{"attn_norm", 1 << PC_MODULE_ATTN_NORM},
                                    {"qkv_linear", 1 << PC_MODULE_QKV},
                                    {"core_attn", 1 << PC_MODULE_CORE_ATTN},
                                    {"attn_proj", 1 << PC_MODULE_ATTN_PROJ},
                                    {"mlp_norm", 1 << PC_MODULE_MLP_NORM}};

enum { KINDS = sizeof kind_names / sizeof *kind_names, MODULES = sizeof module_names / sizeof *module_names };

static int32_t find(const name *names, int count, const char *word, size_t length) {
    for (int i = 0; i < count; i++)
        if (strlen(names[i].word) == length && memcmp(names[i].word, word, length) == 0) return names[i].bit;
    return 0;
}

/* The first word that is no name, *length bytes; NULL if all are. */
static const char *read_words(const char *text, const name *names, int count, int32_t *bits, size_t *length) {
    *bits = 0;
    for (const char *word = text;; word += *length + 1) {
        *length = strcspn(word, "+");
        int32_t bit = find(names, count, word, *length);
        if (!bit) return word;
        *bits |= bit;
        if (word[*length] == '\0') return NULL;
    }
}

pc_code pc_offload_parse(const char *text, int32_t *kinds, pc_error *error) {
    size_t length;
    *kinds = 0;
    if (strcmp(text, "none") == 0) return PC_OK;
    const char *wrong = read_words(text, kind_names, KINDS, kinds, &length);
    if (!wrong) return PC_OK;
    return pc_error_set(error, PC_ERROR_INPUT,
                        "%.*s: unknown kind of offload; expected none, or of fine-grained, selective, full, tensors, "
                        "optimizer and parameters one or more, joined by +",
                        (int)(length < 40 ? length : 40), wrong);
}

void pc_offload_write(int32_t kinds, char *text) {
    int used = kinds == 0 ? snprintf(text, PC_OFFLOAD_SIZE, "none") : 0;
    for (int i = 0; i < KINDS; i++)
        if (kinds & kind_names[i].bit)
            used += snprintf(text + used, (size_t)(PC_OFFLOAD_SIZE - used), "%s%s", used > 0 ? "+" : "",
                             kind_names[i].word);
}

pc_code pc_offload_modules_parse(const char *text, int32_t *modules, pc_error *error) {
    size_t length;
    const char *wrong = read_words(text, module_names, MODULES, modules, &length);
    if (!wrong) return PC_OK;
    bool is_of_experts =
        (length == 10 && memcmp(wrong, "expert_fc1", 10) == 0) || (length == 7 && memcmp(wrong, "moe_act", 7) == 0);
    return pc_error_set(error, PC_ERROR_INPUT,
                        "%.*s: %s; expected of attn_norm, qkv_linear, core_attn, attn_proj and mlp_norm one or more, "
                        "joined by +",
                        (int)(length < 40 ? length : 40), wrong,
                        is_of_experts ? "a module of experts, which dense models have not" : "unknown module");
}
