/* A model from the keys of a setting. */
#include "scenarios/cluster.h"
#include "scenarios/library_private.h"
#include "scenarios/references.h"
#include "scenarios/settings.h"

#include "scenarios/run_labels.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* What GPT and Llama differ in; their standards are GPT's. */
static const pc_key traits[] = {PC_KEY_POSITIONS, PC_KEY_TIED, PC_KEY_BIAS, PC_KEY_DROPOUT, PC_KEY_NORM, PC_KEY_MLP};
enum { TRAITS = sizeof traits / sizeof *traits };

/* "tied true", "norm layernorm". */
static int write_trait(pc_key key, char *text, size_t size) {
    char word[32];
    pc_key_otherwise(key, word, sizeof word); /* between backquotes */
    return snprintf(text, size, "%s %.*s", strchr(pc_key_path(key), '.') + 1, (int)strlen(word) - 2, word + 1);
}

bool pc_setting_assumes(const pc_setting *setting, char *text, size_t size) {
    size_t used = 0;
    text[0] = '\0';
    for (int i = 0; i < TRAITS && used < size && pc_setting_is_cluster(setting); i++) {
        if (setting->given[traits[i]]) continue;
        if (used > 0) used += (size_t)snprintf(text + used, size - used, ", ");
        if (used < size) used += (size_t)write_trait(traits[i], text + used, size - used);
    }
    return used > 0;
}

/* What a setting gives, and the standards. */
static pc_model take(const pc_setting *setting) {
    pc_model model = {.name = ""};
    pc_setting_fill_model(setting, &model);
    if (setting->given[PC_KEY_PRECISION]) {
        const pc_precision_recipe *recipe = &setting->value[PC_KEY_PRECISION].reference->recipe;
        model.precision = recipe->precision;
        model.low = recipe->low;
    }
    if (setting->given[PC_KEY_MODEL_NAME])
        snprintf(model.name, sizeof model.name, "%s", setting->value[PC_KEY_MODEL_NAME].text);
    return model;
}

static pc_code refuse_missing(pc_key key, pc_key *culprit, const char *expected, pc_error *error) {
    *culprit = key;
    return pc_error_set(error, PC_ERROR_INPUT, "missing; expected %s", expected);
}

static pc_code check_given(const pc_setting *setting, pc_key *culprit, pc_error *error) {
    static const pc_key needed[] = {PC_KEY_LAYERS, PC_KEY_HIDDEN, PC_KEY_HEADS, PC_KEY_VOCAB, PC_KEY_SEQ_LEN};
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++)
        if (!setting->given[needed[i]])
            return refuse_missing(needed[i], culprit, "it in the model's file, or beside the model's other keys",
                                  error);
    return PC_OK;
}

/* What GPT has where nothing is said, and what follows from other numbers. */
static pc_code fill_in(const pc_setting *setting, pc_model *model, pc_key *culprit, pc_error *error) {
    if (!setting->given[PC_KEY_KV_HEADS]) model->kv_heads = model->heads;
    if (!setting->given[PC_KEY_MAX_POSITIONS])
        model->max_positions = model->positions == PC_POSITIONS_LEARNED ? setting->value[PC_KEY_SEQ_LEN].whole : 0;
    if (!setting->given[PC_KEY_FFN_HIDDEN]) {
        if (pc_mlp_is_gated(model->mlp))
            return refuse_missing(PC_KEY_FFN_HIDDEN, culprit, "it, since it is 4 x hidden only without a gate", error);
        model->ffn_hidden = 4 * model->hidden;
    }
    if (pc_model_has_experts(model) && !setting->given[PC_KEY_MOE_FFN_HIDDEN_SIZE])
        model->experts.ffn_hidden = model->ffn_hidden;
    if (pc_model_is_latent(model))
        model->head_dim = model->mla.qk_nope_head_dim + model->mla.qk_rope_head_dim;
    else if (!setting->given[PC_KEY_HEAD_DIM]) {
        *culprit = PC_KEY_HEADS;
        if (model->hidden % model->heads)
            return pc_error_set(error, PC_ERROR_INPUT,
                                "%" PRId64 " heads do not divide hidden %" PRId64 "; expected a divisor, or head_dim",
                                model->heads, model->hidden);
        model->head_dim = model->hidden / model->heads;
    }
    return PC_OK;
}

pc_code pc_setting_model(const pc_setting *setting, pc_model *model, pc_key *culprit, pc_error *error) {
    pc_model made = take(setting);
    pc_code code = check_given(setting, culprit, error);
    if (!code) code = fill_in(setting, &made, culprit, error);
    if (code) return code;
    *culprit = PC_KEY_MODEL_END;
    code = pc_model_check_dimensions(&made, error);
    if (!code) *model = made;
    return code;
}
