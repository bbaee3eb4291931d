/* A model from the keys of a setting. */
#include "scenarios/cluster.h"
#include "scenarios/library_private.h"

#include "scenarios/run_labels.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* A key of the model, and where its number goes. */
typedef struct model_number {
    pc_key key;
    size_t place; /* of an int64_t in pc_model */
} model_number;

static const model_number numbers[] = {
    {PC_KEY_LAYERS, offsetof(pc_model, layers)},
    {PC_KEY_HIDDEN, offsetof(pc_model, hidden)},
    {PC_KEY_FFN_HIDDEN, offsetof(pc_model, ffn_hidden)},
    {PC_KEY_HEADS, offsetof(pc_model, heads)},
    {PC_KEY_KV_HEADS, offsetof(pc_model, kv_heads)},
    {PC_KEY_HEAD_DIM, offsetof(pc_model, head_dim)},
    {PC_KEY_VOCAB, offsetof(pc_model, vocab)},
    {PC_KEY_VOCAB_MULTIPLE, offsetof(pc_model, vocab_multiple)},
    {PC_KEY_MAX_POSITIONS, offsetof(pc_model, max_positions)},
};

/* What GPT and Llama differ in, as GPT has it. */
typedef struct model_trait {
    pc_key key;
    int64_t of_gpt;
} model_trait;

static const model_trait traits[] = {{PC_KEY_POSITIONS, PC_POSITIONS_LEARNED},
                                     {PC_KEY_TIED, true},
                                     {PC_KEY_BIAS, true},
                                     {PC_KEY_DROPOUT, true},
                                     {PC_KEY_NORM, PC_NORM_LAYER},
                                     {PC_KEY_MLP, PC_MLP_GELU}};
enum { TRAITS = sizeof traits / sizeof *traits };

static int64_t trait_of(const pc_setting *setting, pc_key key) {
    int i = 0;
    while (traits[i].key != key) i++;
    return pc_setting_whole(setting, key, traits[i].of_gpt);
}

/* "tied true", "norm layernorm". */
static int write_trait(const model_trait *trait, char *text, size_t size) {
    const char *dot = strchr(pc_key_path(trait->key), '.');
    size_t length;
    if (trait->key == PC_KEY_TIED || trait->key == PC_KEY_BIAS || trait->key == PC_KEY_DROPOUT)
        return snprintf(text, size, "%s %s", dot + 1, trait->of_gpt ? "true" : "false");
    const char *word = pc_word_of(trait->key, trait->of_gpt, &length);
    return snprintf(text, size, "%s %.*s", dot + 1, (int)length, word);
}

bool pc_setting_assumes(const pc_setting *setting, char *text, size_t size) {
    size_t used = 0;
    text[0] = '\0';
    for (int i = 0; i < TRAITS && used < size && pc_setting_is_cluster(setting); i++) {
        if (setting->given[traits[i].key]) continue;
        if (used > 0) used += (size_t)snprintf(text + used, size - used, ", ");
        if (used < size) used += (size_t)write_trait(&traits[i], text + used, size - used);
    }
    return used > 0;
}

/* What a setting gives; a number that it does not give is -1, and all else as in GPT. */
static pc_model take(const pc_setting *setting) {
    pc_model model = {
        .positions = (pc_positions)trait_of(setting, PC_KEY_POSITIONS),
        .norm = (pc_norm)trait_of(setting, PC_KEY_NORM),
        .mlp = (pc_mlp)trait_of(setting, PC_KEY_MLP),
        .attention = (pc_attention)pc_setting_whole(setting, PC_KEY_ATTENTION, PC_ATTENTION_FLASH),
        .precision = (pc_precision)pc_setting_whole(setting, PC_KEY_PRECISION, PC_PRECISION_BF16),
        .is_tied = trait_of(setting, PC_KEY_TIED),
        .has_bias = trait_of(setting, PC_KEY_BIAS),
        .has_dropout = trait_of(setting, PC_KEY_DROPOUT),
    };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        int64_t number = pc_setting_whole(setting, numbers[i].key, -1);
        memcpy((char *)&model + numbers[i].place, &number, sizeof number);
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

/* What GPT has where nothing is said. */
static pc_code fill_in(const pc_setting *setting, pc_model *model, pc_key *culprit, pc_error *error) {
    if (model->kv_heads < 0) model->kv_heads = model->heads;
    if (model->vocab_multiple < 0) model->vocab_multiple = 128;
    if (model->max_positions < 0)
        model->max_positions = model->positions == PC_POSITIONS_LEARNED ? setting->value[PC_KEY_SEQ_LEN].whole : 0;
    if (model->ffn_hidden < 0) {
        if (model->mlp != PC_MLP_GELU)
            return refuse_missing(PC_KEY_FFN_HIDDEN, culprit, "it, since it is 4 x hidden only with gelu", error);
        model->ffn_hidden = 4 * model->hidden;
    }
    if (model->head_dim < 0) {
        *culprit = PC_KEY_HEADS;
        if (model->hidden % model->heads)
            return pc_error_set(error, PC_ERROR_INPUT,
                                "%" PRId64 " heads do not divide hidden %" PRId64 "; expected a divisor, or head_dim",
                                model->heads, model->hidden);
        model->head_dim = model->hidden / model->heads;
    }
    return PC_OK;
}

/* pc_model_check's message stands behind the key `model`, and so needs not say it again. */
static pc_code check_whole(const pc_model *model, pc_key *culprit, pc_error *error) {
    static const char prefix[] = "model: ";
    pc_error cause = {0};
    pc_code code = pc_model_check(model, &cause);
    const char *message = cause.message;
    if (!code) return PC_OK;
    *culprit = PC_KEY_MODEL_END;
    if (strncmp(message, prefix, strlen(prefix)) == 0) message += strlen(prefix);
    return pc_error_set(error, code, "%s", message);
}

pc_code pc_setting_model(const pc_setting *setting, pc_model *model, pc_key *culprit, pc_error *error) {
    pc_model made = take(setting);
    pc_code code = check_given(setting, culprit, error);
    if (!code) code = fill_in(setting, &made, culprit, error);
    if (code) return code;
    code = check_whole(&made, culprit, error);
    if (!code) *model = made;
    return code;
}
