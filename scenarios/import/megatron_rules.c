/* Model, memory and precision, as several arguments together say them. */
#include "scenarios/import/megatron_private.h"

#include "scenarios/import/foreign.h"
#include "storage/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    FFN_MULTIPLE = 64,
    GPT2_WORDS = 50257,
    NEMOTRON_WORDS = 256000,
    LLAMA2_WORDS = 32000,
    LAYERS_MAX = 4096,
    WORDS_SIZE = 512
};

static void set(pc_megatron_reader *r, const char *key, const char *from, const char *value) {
    pc_imported_set(r->import, key, from, value);
}

/* What Megatron-LM does unless an argument says otherwise; those of the table have been taken before. */
static void set_default(pc_megatron_reader *r, const char *key, const char *value) {
    if (!pc_imported_get(r->import, key)) set(r, key, "its default", value);
}

/* ---- the model ---- */

/* Of a SwiGLU MLP two thirds of 4 x hidden, in whole 64. */
static void take_ffn(pc_megatron_reader *r) {
    int64_t hidden = pc_imported_number(r->import, "model.hidden", 0);
    const char *mlp = pc_imported_get(r->import, "model.mlp");
    if (hidden == 0 || pc_imported_get(r->import, "model.ffn_hidden")) return;
    bool is_gated = mlp && strcmp(mlp, "swiglu") == 0;
    int64_t width = is_gated ? 4 * hidden * 2 / 3 / FFN_MULTIPLE * FFN_MULTIPLE : 4 * hidden;
    pc_imported_set_number(r->import, "model.ffn_hidden", "its default", width > 0 ? width : 1);
}

static pc_code take_latent(pc_megatron_reader *r) {
    static const struct {
        const char *name, *key, *otherwise;
    } parts[] = {{"kv-lora-rank", "model.kv_lora_rank", "32"},
                 {"q-lora-rank", "model.q_lora_rank", NULL},
                 {"qk-head-dim", "model.qk_nope_head_dim", "128"},
                 {"qk-pos-emb-head-dim", "model.qk_rope_head_dim", "64"},
                 {"v-head-dim", "model.v_head_dim", "128"}};
    pc_code code = PC_OK;
    for (size_t i = 0; i < sizeof parts / sizeof *parts && !code; i++) {
        code = pc_megatron_take(r, parts[i].name, parts[i].key);
        if (!code && parts[i].otherwise) set_default(r, parts[i].key, parts[i].otherwise);
    }
    return code;
}

static pc_code take_heads(pc_megatron_reader *r) {
    bool is_grouped = r->is_recipe || pc_megatron_is_on(r, "group-query-attention");
    if (pc_megatron_is_on(r, "multi-latent-attention")) return take_latent(r);
    int64_t groups = 1;
    pc_code code = is_grouped ? pc_megatron_take(r, "num-query-groups", "model.kv_heads")
                              : pc_megatron_number(r, "num-query-groups", 0, &groups);
    if (!code && groups > 1) /* logs have its default, 1 */
        pc_imported_note(r->import, PC_IMPORT_ASSUMED,
                         "as many heads of keys and values as of queries: num-query-groups %" PRId64
                         " means nothing without group-query-attention",
                         groups);
    if (!code) code = pc_megatron_take(r, "kv-channels", "model.head_dim");
    if (!code && pc_megatron_is_on(r, "qk-layernorm|qk-l2-norm")) set(r, "model.qk_norm", "qk-layernorm", "head");
    return code;
}

static int64_t words_of_tokenizer(const pc_megatron_reader *r) {
    const char *type = pc_megatron_text(r, "tokenizer-type"), *model = pc_megatron_text(r, "tokenizer-model");
    if (strcmp(type, "Llama2Tokenizer") == 0) return LLAMA2_WORDS;
    return strstr(model, "nemotron") && strstr(model, "256k") ? NEMOTRON_WORDS : GPT2_WORDS;
}

static pc_code take_vocabulary(pc_megatron_reader *r) {
    int64_t words = 0;
    pc_code code = pc_megatron_number(r, "vocab-size", 0, &words);
    if (!code && words == 0) {
        code = pc_megatron_number(r, "padded-vocab-size", 0, &words);
        if (words > 0) set(r, "model.vocab_multiple", "padded-vocab-size", "1");
    }
    if (code) return code;
    if (words > 0) return pc_imported_set_number(r->import, "model.vocab", "vocab-size", words), PC_OK;
    words = words_of_tokenizer(r);
    pc_imported_set_number(r->import, "model.vocab", "its tokenizer", words);
    pc_imported_note(r->import, PC_IMPORT_ASSUMED, "a vocabulary of %" PRId64, words);
    return PC_OK;
}

/* Both have a default of 0.1. */
static pc_code take_dropout(pc_megatron_reader *r) {
    double attention = r->is_recipe ? 0 : 0.1, hidden = attention;
    pc_code code = pc_megatron_fraction(r, "attention-dropout", &attention);
    if (!code) code = pc_megatron_fraction(r, "hidden-dropout", &hidden);
    if (code) return code;
    pc_imported_set_switch(r->import, "model.dropout", "attention-dropout, hidden-dropout",
                           attention > 0 || hidden > 0);
    return PC_OK;
}

/* "(1023, 0)": a query sees so many keys before it, and its own. */
static pc_code take_window(pc_megatron_reader *r) {
    const pc_argument *window = pc_megatron_find(r, "window-size");
    if (!window) return PC_OK;
    const char *text = window->value + strcspn(window->value, "0123456789-");
    int64_t keys = strtoll(text, NULL, 10);
    if (keys < 0) return PC_OK; /* -1: all */
    if (!*text || keys >= INT32_MAX) return pc_megatron_refuse(r, window, "a window such as (1023, 0)");
    pc_imported_set_number(r->import, "model.sliding_window", window->name, keys + 1);
    return pc_megatron_take(r, "window-attn-skip-freq", "model.sliding_window_pattern");
}

/* ---- experts ---- */

/* "([0]*3+[1]*58)", "[0,1,1]": layers in front without, and those behind; false if it is anything else. */
static bool read_pattern(const char *text, int64_t *dense, int64_t *experts, int64_t *others) {
    *dense = *experts = *others = 0;
    while (*(text += strspn(text, " ()+,'\"")) == '[') {
        int64_t times = 1, zeros = 0, ones = 0;
        bool ends_in_one = false, starts_with_zero = text[1] == '0';
        for (text++; *text && *text != ']'; text++) {
            if (*text == '0') zeros++, ends_in_one = false;
            if (*text == '1') ones++, ends_in_one = true;
            if (!strchr("01, ", *text)) return false;
        }
        if (*text == ']') text++;
        if (*text == '*') times = strtoll(text + 1, NULL, 10);
        if (*text == '*') text += 1 + strspn(text + 1, "0123456789");
        if (times < 0 || times > LAYERS_MAX || zeros + ones > LAYERS_MAX) return false;
        bool is_front = *experts == 0 && (ones == 0 || (times == 1 && starts_with_zero && ends_in_one));
        if (is_front)
            *dense += zeros * times;
        else
            *others += zeros * times;
        *experts += ones * times;
    }
    return *text == '\0' && *experts > 0;
}

static pc_code take_layers_with_experts(pc_megatron_reader *r) {
    int64_t dense, experts, others;
    const pc_argument *freq = pc_megatron_find(r, "moe-layer-freq");
    if (!freq) return PC_OK;
    if (freq->value[strspn(freq->value, "0123456789")] == '\0')
        return pc_megatron_take(r, "moe-layer-freq", "model.moe_layer_freq");
    if (!read_pattern(freq->value, &dense, &experts, &others))
        return pc_megatron_refuse(r, freq, "a number, or a pattern such as ([0]*3+[1]*58)");
    pc_imported_set_number(r->import, "model.first_k_dense_replace", freq->name, dense);
    if (others > 0)
        pc_imported_note(r->import, PC_IMPORT_NOT_MODELLED, "%" PRId64 " layers without experts behind others (%s)",
                         others, freq->name);
    return PC_OK;
}

static pc_code take_groups(pc_megatron_reader *r) {
    int64_t groups = 0;
    pc_code code = pc_megatron_number(r, "moe-router-num-groups", 0, &groups);
    if (code || groups <= 1) return code;
    pc_imported_set_number(r->import, "model.moe_router_num_groups", "moe-router-num-groups", groups);
    return pc_megatron_take(r, "moe-router-group-topk", "model.moe_router_group_topk");
}

/* None, or below 0: no token is dropped. */
static pc_code take_capacity(pc_megatron_reader *r) {
    const pc_argument *capacity = pc_megatron_find(r, "moe-expert-capacity-factor");
    if (!capacity) return PC_OK;
    char *end;
    double factor = strtod(capacity->value, &end);
    if (*end || factor == 0 || capacity->value[strspn(capacity->value, "-0123456789.")])
        return pc_megatron_refuse(r, capacity, "a factor such as 1.25, or -1 for no limit");
    if (factor > 0) set(r, "model.moe_expert_capacity_factor", capacity->name, capacity->value);
    return PC_OK;
}

static pc_code take_experts(pc_megatron_reader *r) {
    static const char *const keys[] = {"model.num_experts",
                                       "model.moe_router_topk",
                                       "model.moe_ffn_hidden_size",
                                       "model.moe_shared_expert_intermediate_size",
                                       "model.moe_shared_expert_gate",
                                       "model.moe_router_score_function",
                                       "model.moe_router_bias",
                                       "model.moe_pad_expert_input_to_capacity"};
    if (pc_imported_number(r->import, "model.num_experts", 0) < 1) {
        for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) pc_imported_clear(r->import, keys[i]);
        return PC_OK;
    }
    set_default(r, "model.moe_router_topk", "2");
    pc_code code = take_capacity(r);
    if (!code) code = take_layers_with_experts(r);
    return code ? code : take_groups(r);
}

pc_code pc_megatron_take_model(pc_megatron_reader *r) {
    if (!pc_imported_get(r->import, "model.layers")) {
        pc_imported_note(r->import, PC_IMPORT_ASSUMED, "no model: name one with --model");
        return PC_OK;
    }
    set_default(r, "model.positions", "learned");
    set_default(r, "model.norm", "layernorm");
    set_default(r, "model.mlp", "gelu");
    set_default(r, "model.tied", "true");
    set_default(r, "model.bias", "true");
    take_ffn(r);
    pc_code code = take_dropout(r);
    if (!code) code = take_heads(r);
    if (!code) code = take_vocabulary(r);
    if (!code) code = take_window(r);
    if (!code) code = take_experts(r);
    const char *positions = pc_imported_get(r->import, "model.positions");
    if (!code && positions && strcmp(positions, "learned") == 0)
        code = pc_megatron_take(r, "max-position-embeddings", "model.max_positions");
    return code;
}

/* ---- what is held, and what is computed again ---- */

/* The words of "a|b" that a value has, in the order of the value, with `join` between; others are not modelled. */
static void take_words(pc_megatron_reader *r, const char *names, const char *key, const char *words, char join) {
    static const char between[] = " ,[]'\"\t";
    pc_text joined = {.data = NULL};
    const pc_argument *argument = pc_megatron_find(r, names);
    if (!argument) return;
    for (const char *at = argument->value + strspn(argument->value, between); *at && joined.size < WORDS_SIZE;
         at += strspn(at, between)) {
        size_t length = strcspn(at, between);
        if (pc_foreign_is_one_of(at, length, words))
            pc_text_printf(&joined, "%.*s%.*s", joined.size > 0, &join, (int)length, at);
        else
            pc_imported_note(r->import, PC_IMPORT_NOT_MODELLED, "%.*s (%s)", length < 40 ? (int)length : 40, at,
                             argument->name);
        at += length;
    }
    if (joined.failed) r->import->failed = true;
    if (joined.size > 0 && !joined.failed) set(r, key, argument->name, joined.data);
    pc_text_free(&joined);
}

static pc_code take_recomputation(pc_megatron_reader *r) {
    const char *granularity = pc_megatron_text(r, "recompute-granularity");
    bool is_full = pc_megatron_has_word(granularity, "full");
    bool is_selective = pc_megatron_has_word(granularity, "selective") || pc_megatron_is_on(r, "recompute-activations");
    const char *method = pc_megatron_text(r, "recompute-method");
    if (!is_full && !is_selective) return PC_OK;
    set(r, "recompute", "recompute-granularity", is_full ? "full" : "selective");
    if (!is_full) {
        take_words(r, "recompute-modules", "recompute_modules",
                   "core_attn|layernorm|mla_up_proj|mlp|moe|moe_act|shared_experts", ',');
        return PC_OK;
    }
    bool is_block = pc_megatron_has_word(method, "block");
    if (!is_block && !pc_megatron_has_word(method, "uniform")) return PC_OK;
    set(r, "recompute_method", "recompute-method", is_block ? "block" : "uniform");
    pc_code code = pc_megatron_take(r, "recompute-num-layers", "recompute_layers");
    set_default(r, "recompute_layers", "1");
    return code;
}

static void take_attention(pc_megatron_reader *r) {
    const char *backend = pc_megatron_text(r, "attention-backend"),
               *impl = pc_imported_get(r->import, "transformer_impl");
    bool is_local = impl && strcmp(impl, "local") == 0 && !pc_megatron_is_on(r, "use-flash-attn");
    bool is_held = is_local || pc_megatron_has_word(backend, "unfused") || pc_megatron_has_word(backend, "local");
    if (is_held && pc_imported_number(r->import, "cp", 1) > 1) {
        pc_imported_note(r->import, PC_IMPORT_NOT_MODELLED,
                         "scores in memory with context parallelism: flash attention");
        is_held = false;
    }
    set(r, "model.attention", backend[0] ? "attention-backend" : "", is_held ? "materialised" : "flash");
}

/* ---- precision and optimizer ---- */

static const char *recipe_of(const pc_megatron_reader *r) {
    const char *recipe = pc_megatron_text(r, "fp8-recipe");
    if (pc_megatron_is_on(r, "fp4|fp4-format")) return "nvfp4";
    if (!pc_megatron_is_on(r, "fp8|fp8-format")) return NULL;
    if (pc_megatron_has_word(recipe, "tensorwise")) return "fp8-current";
    if (pc_megatron_has_word(recipe, "blockwise")) return "fp8-blockwise";
    return pc_megatron_has_word(recipe, "mxfp8") ? "mxfp8" : "fp8-delayed";
}

static void take_precision(pc_megatron_reader *r) {
    const char *recipe = recipe_of(r), *plain = pc_megatron_is_on(r, "fp16") ? "fp16" : "bf16";
    bool is_plain = pc_megatron_is_on(r, "fp16|bf16");
    if (!is_plain && !recipe) {
        if (r->is_recipe)
            pc_imported_note(r->import, PC_IMPORT_ASSUMED, "bf16");
        else
            pc_imported_note(r->import, PC_IMPORT_NOT_MODELLED, "fp32 (neither bf16 nor fp16): bf16");
    }
    set(r, "model.precision", recipe ? "fp8-recipe" : is_plain ? plain : "", recipe ? recipe : plain);
}

static void take_optimizer(pc_megatron_reader *r) {
    static const char *const keys[][2] = {{"main-params-dtype", "main_params_dtype"},
                                          {"main-grads-dtype", "main_grads_dtype"},
                                          {"exp-avg-dtype", "exp_avg_dtype"},
                                          {"exp-avg-sq-dtype", "exp_avg_sq_dtype"}};
    static const char *const types[][2] = {
        {"fp32", "float32"}, {"bf16", "bfloat16"}, {"fp16", "float16"}, {"fp8", "uint8"}};
    const char *kind = pc_megatron_text(r, "optimizer");
    if (strstr(kind, "muon")) set(r, "optimizer", "optimizer", "muon");
    if (pc_megatron_has_word(kind, "sgd")) set(r, "optimizer", "optimizer", "sgd");
    if (!pc_megatron_is_on(r, "use-precision-aware-optimizer")) return;
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < 4; k++)
            if (pc_megatron_has_word(pc_megatron_text(r, keys[i][0]), types[k][0]) ||
                pc_megatron_has_word(pc_megatron_text(r, keys[i][0]), types[k][1]))
                set(r, keys[i][1], keys[i][0], types[k][0]);
}

static pc_code take_offload(pc_megatron_reader *r) {
    bool optimizer = pc_megatron_is_on(r, "optimizer-cpu-offload");
    bool activations = pc_megatron_is_on(r, "fine-grained-activation-offloading");
    double share = -1;
    if (activations)
        take_words(r, "offload-modules", "offload_modules", "attn_norm|qkv_linear|core_attn|attn_proj|mlp_norm", '+');
    if (optimizer || activations)
        set(r, "offload", "optimizer-cpu-offload, fine-grained-activation-offloading",
            !activations ? "optimizer"
            : optimizer  ? "fine-grained+optimizer"
                         : "fine-grained");
    pc_code code = pc_megatron_fraction(r, "optimizer-offload-fraction", &share);
    if (!code && optimizer && share >= 0) {
        char text[32];
        snprintf(text, sizeof text, "%.15g", share);
        set(r, "optimizer_offload_fraction", "optimizer-offload-fraction", text);
    }
    return code;
}

static void take_graphs(pc_megatron_reader *r) {
    static const char *const kinds[] = {"local", "transformer_engine", "full_iteration"};
    const char *impl = pc_megatron_text(r, "cuda-graph-impl");
    for (int i = 0; i < 3; i++)
        if (pc_megatron_has_word(impl, kinds[i])) set(r, "cuda_graph_impl", "cuda-graph-impl", kinds[i]);
    if (pc_megatron_is_on(r, "enable-cuda-graph")) set(r, "cuda_graph_impl", "enable-cuda-graph", "local");
    if (pc_megatron_is_on(r, "external-cuda-graph"))
        set(r, "cuda_graph_impl", "external-cuda-graph", "transformer_engine");
    const char *made = pc_imported_get(r->import, "cuda_graph_impl");
    if (made && strcmp(made, "full_iteration") != 0)
        take_words(r, "cuda-graph-scope|cuda-graph-modules", "cuda_graph_scope",
                   strcmp(made, "local") == 0 ? "attn|mlp|moe_router|moe_preprocess|moe|mamba|full_iteration"
                                              : "attn|mlp|moe_router|moe_preprocess|moe|mamba",
                   ',');
}

pc_code pc_megatron_take_memory(pc_megatron_reader *r) {
    bool is_te = pc_megatron_is_on(r, "cross-entropy-loss-fusion") &&
                 pc_megatron_has_word(pc_megatron_text(r, "cross-entropy-fusion-impl"), "te");
    pc_code code = take_recomputation(r);
    if (code) return code;
    take_attention(r);
    take_precision(r);
    take_optimizer(r);
    code = take_offload(r);
    take_graphs(r);
    set(r, "cross_entropy", is_te ? "cross-entropy-fusion-impl" : "", is_te ? "fused" : "in-place");
    return code;
}
