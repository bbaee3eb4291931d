/* Dimensions of a config.json, and what it says of attention, norms and training. */
#include "scenarios/import/hf.h"
#include "scenarios/import/hf_private.h"

#include <inttypes.h>
#include <string.h>

enum { FFN_OF_GPT = 4, VOCAB_MULTIPLE = 128, EXPANSION_MAX = 64 };

/* ---- dimensions ---- */

static bool is_gated(const pc_imported *import) {
    const char *mlp = pc_imported_get(import, "model.mlp");
    return strcmp(mlp, "swiglu") == 0 || strcmp(mlp, "geglu") == 0;
}

static pc_code take_activation(pc_hf_reader *r) {
    const pc_node *node =
        pc_foreign_find(r->text, "hidden_act|hidden_activation|activation_function|hidden_activation_function|"
                                 "mlp_hidden_act|ffn_config.ffn_act_fn.name");
    const char *name = pc_foreign_text(node), *mlp = NULL;
    bool gated = is_gated(r->import);
    if (strcmp(name, "silu") == 0 || strcmp(name, "swish") == 0 || strcmp(name, "swiglu") == 0)
        mlp = gated ? "swiglu" : "gelu";
    else if (strncmp(name, "gelu", 4) == 0)
        mlp = gated ? "geglu" : "gelu";
    else if (strcmp(name, "relu") == 0)
        mlp = "relu";
    else if (strcmp(name, "relu2") == 0 || strcmp(name, "squared_relu") == 0)
        mlp = "squared-relu";
    else if (node)
        pc_imported_note(r->import, PC_IMPORT_NOT_MODELLED, "the activation %.40s: %s in its place", name,
                         pc_imported_get(r->import, "model.mlp"));
    if (mlp) pc_imported_set(r->import, "model.mlp", node->key, mlp);
    return PC_OK;
}

static pc_code take_kv_heads(pc_hf_reader *r) {
    bool is_multi_query = pc_hf_says(r, "multi_query") && !pc_hf_says(r, "new_decoder_architecture");
    pc_code code = pc_hf_take_count(r, "model.kv_heads",
                                    "swa_num_key_value_heads|num_key_value_heads|n_head_kv|num_kv_heads|"
                                    "multi_query_group_num|attn_config.kv_n_heads");
    if (!code && is_multi_query) pc_imported_set_number(r->import, "model.kv_heads", "multi_query", 1);
    return code;
}

/* MPT says how many times as wide as the model. */
static pc_code take_ffn(pc_hf_reader *r) {
    int64_t times, hidden = pc_imported_number(r->import, "model.hidden", 0);
    const pc_node *ratio = pc_foreign_find(r->text, "expansion_ratio");
    pc_code code = pc_hf_take_count(r, "model.ffn_hidden",
                                    "intermediate_size_mlp|intermediate_size|n_inner|ffn_dim|ffn_hidden_size|"
                                    "ffn_config.ffn_hidden_size");
    if (code || pc_imported_get(r->import, "model.ffn_hidden")) return code;
    if (!ratio) {
        times = FFN_OF_GPT;
        if (is_gated(r->import)) return pc_hf_need_count(r, "model.ffn_hidden", "intermediate_size");
    } else {
        code = pc_foreign_count(&r->tree, ratio, 1, EXPANSION_MAX, &times, r->error);
    }
    if (!code) pc_imported_set_number(r->import, "model.ffn_hidden", ratio ? ratio->key : "4 x hidden", times * hidden);
    return code;
}

static pc_code take_latent(pc_hf_reader *r) {
    pc_code code = pc_hf_need_count(r, "model.kv_lora_rank", "kv_lora_rank");
    if (!code) code = pc_hf_take_count(r, "model.q_lora_rank", "q_lora_rank");
    if (!code) code = pc_hf_need_count(r, "model.qk_nope_head_dim", "qk_nope_head_dim");
    if (!code) code = pc_hf_need_count(r, "model.qk_rope_head_dim", "qk_rope_head_dim");
    if (!code) code = pc_hf_need_count(r, "model.v_head_dim", "v_head_dim");
    return code;
}

static pc_code take_attention(pc_hf_reader *r) {
    if (pc_hf_says(r, "kv_lora_rank")) return take_latent(r);
    pc_code code = take_kv_heads(r);
    return code ? code : pc_hf_take_count(r, "model.head_dim", "head_dim|kv_channels|attention_head_dim");
}

static pc_code take_dimensions(pc_hf_reader *r) {
    pc_code code = pc_hf_need_count(r, "model.layers", "num_hidden_layers|n_layer|n_layers|num_layers");
    if (!code) code = pc_hf_need_count(r, "model.hidden", "hidden_size|n_embd|d_model|model_dim");
    if (!code) code = pc_hf_need_count(r, "model.heads", "num_attention_heads|n_head|n_heads|num_heads");
    if (!code) code = pc_hf_need_count(r, "model.vocab", "vocab_size|padded_vocab_size");
    if (!code) code = take_activation(r);
    if (!code) code = take_attention(r);
    if (!code) code = take_ffn(r);
    return code;
}

static pc_code take_biases(pc_hf_reader *r) {
    pc_code code = pc_hf_take_switch(r, "model.bias", "bias|use_bias|add_bias_linear", false);
    if (!code) code = pc_hf_take_switch(r, "model.bias", "no_bias", true);
    if (!code && pc_hf_says(r, "mlp_bias") && pc_hf_says(r, "attention_bias"))
        pc_imported_set(r->import, "model.bias", "mlp_bias", "true");
    if (!code)
        code = pc_hf_take_switch(r, "model.qkv_bias", "attention_bias|qkv_bias|add_qkv_bias|use_qkv_bias", false);
    return code ? code : pc_hf_take_switch(r, "model.tied", "tie_word_embeddings", false);
}

static pc_code take_qk_norm(pc_hf_reader *r) {
    bool is_there;
    const pc_node *node = pc_foreign_find(r->text, "use_qk_norm|qk_layernorm|use_qk_layernorm");
    if (!node || pc_hf_says(r, "kv_lora_rank")) return PC_OK;
    pc_code code = pc_foreign_switch(&r->tree, node, &is_there, r->error);
    bool is_full = strcmp(pc_foreign_text(pc_hf_find(r, "qk_norm_type")), "per_layer") == 0;
    if (!code) pc_imported_set(r->import, "model.qk_norm", node->key, !is_there ? "none" : is_full ? "full" : "head");
    return code;
}

/* ---- windows ---- */

/* Of a list of layers' kinds: how many see everything, and whether these are every so many-th. */
typedef struct layer_kinds {
    int64_t layers, full;
    bool is_regular;
} layer_kinds;

static bool sees_all(const pc_node *kind) {
    return strcmp(pc_foreign_text(kind), "sliding_attention") != 0 &&
           strcmp(pc_foreign_text(kind), "chunked_attention") != 0 && strcmp(pc_foreign_text(kind), "1") != 0;
}

static layer_kinds look_at_kinds(const pc_node *list) {
    layer_kinds kinds = {.is_regular = true};
    int64_t every = 0;
    for (const pc_node *kind = pc_node_first(list); kind < pc_node_end(list); kind = pc_node_end(kind)) {
        kinds.layers++;
        if (!sees_all(kind)) continue;
        kinds.full++;
        if (every == 0) every = kinds.layers;
        kinds.is_regular = kinds.is_regular && kinds.layers == kinds.full * every;
    }
    kinds.is_regular = kinds.is_regular && (every == 0 || kinds.layers / every == kinds.full);
    return kinds;
}

/* Which layers have the window: each that a list says, or by the pattern. */
static void set_pattern(pc_hf_reader *r, const pc_node *list) {
    layer_kinds kinds = look_at_kinds(list);
    int64_t every = kinds.full > 0 ? (kinds.layers + kinds.full / 2) / kinds.full : 0;
    pc_imported_set_number(r->import, "model.sliding_window_pattern", list->key, every);
    if (!kinds.is_regular)
        pc_imported_note(r->import, PC_IMPORT_NOT_MODELLED,
                         "the places of the %" PRId64 " layers without window (%s): every %" PRId64 ". layer has none",
                         kinds.full, list->key, every);
}

static pc_code take_windows(pc_hf_reader *r) {
    int64_t window = 0, longest = INT32_MAX;
    const pc_node *list = pc_foreign_find(r->text, "layer_types|hybrid_layer_pattern");
    const pc_node *chunk = pc_foreign_find(r->text, "attention_chunk_size"),
                  *sliding =
                      pc_foreign_find(r->text, "sliding_window|sliding_window_size|attn_config.sliding_window_size");
    bool is_chunked = chunk && !sliding;
    const pc_node *node = is_chunked ? chunk : sliding, *most = pc_foreign_find(r->text, "max_position_embeddings");
    pc_code code = node && strcmp(pc_foreign_text(node), "-1") != 0 ? pc_hf_count(r, node, 0, &window) : PC_OK;
    if (!code && most) code = pc_hf_count(r, most, 1, &longest);
    if (!code) code = pc_hf_take_count(r, "model.sliding_window_pattern", "sliding_window_pattern");
    bool is_off = pc_hf_find(r, "use_sliding_window") && !pc_hf_says(r, "use_sliding_window");
    bool is_list = list && list->kind == PC_NODE_LIST && list->count > 0;
    bool none_has = is_list && look_at_kinds(list).full == list->count;
    if (code || window == 0 || window >= longest || is_off || none_has) {
        pc_imported_clear(r->import, "model.sliding_window_pattern");
        return code;
    }
    pc_imported_set_number(r->import, is_chunked ? "model.attention_chunk_size" : "model.sliding_window", node->key,
                           window);
    if (is_list) set_pattern(r, list);
    if (!is_list && pc_hf_says(r, "max_window_layers") && pc_hf_says(r, "use_sliding_window"))
        pc_imported_note(r->import, PC_IMPORT_NOT_MODELLED, "layers without window in front (max_window_layers)");
    return PC_OK;
}

static pc_code take_softcaps(pc_hf_reader *r) {
    static const char *const keys[][2] = {
        {"model.attn_logit_softcapping", "attn_logit_softcapping|attn_logit_softcap"},
        {"model.final_logit_softcapping", "final_logit_softcapping|final_logit_softcap"}};
    for (int i = 0; i < 2; i++) {
        double number;
        const pc_node *node = pc_foreign_find(r->text, keys[i][1]);
        if (!node) continue;
        pc_code code = pc_foreign_number(&r->tree, node, &number, r->error);
        if (code) return code;
        if (number >= 1 && number <= INT32_MAX)
            pc_imported_set_number(r->import, keys[i][0], node->key, (int64_t)number);
    }
    return PC_OK;
}

/* ---- what a config.json hardly says ---- */

static pc_code take_predictions(pc_hf_reader *r) {
    int64_t layers = 0;
    const pc_node *node = pc_foreign_find(r->text, "num_nextn_predict_layers|mtp_num_hidden_layers|mtp_num_layers");
    pc_code code = node ? pc_foreign_count(&r->tree, node, 0, INT16_MAX, &layers, r->error) : PC_OK;
    if (code || layers == 0) return code;
    pc_imported_set_number(r->import, "model.mtp_num_layers", node->key, layers);
    pc_imported_note(r->import, PC_IMPORT_ASSUMED, "trained with its multi-token prediction (%s)", node->key);
    return PC_OK;
}

static pc_code take_dropout(pc_hf_reader *r) {
    static const char *const names[] = {"attention_dropout", "hidden_dropout",   "attn_pdrop",        "resid_pdrop",
                                        "embd_pdrop",        "residual_dropout", "embedding_dropout", "dropout"};
    bool is_said = false, is_there = false;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        double fraction;
        const pc_node *node = pc_foreign_find(r->text, names[i]);
        if (!node) continue;
        pc_code code = pc_foreign_number(&r->tree, node, &fraction, r->error);
        if (code) return code;
        is_said = true;
        is_there = is_there || fraction > 0;
    }
    pc_imported_set_switch(r->import, "model.dropout", is_said ? "its dropouts" : "", is_there);
    if (!is_said) pc_imported_note(r->import, PC_IMPORT_ASSUMED, "no dropout");
    return PC_OK;
}

static void take_precision(pc_hf_reader *r) {
    const pc_node *node = pc_hf_find(r, "torch_dtype|dtype");
    const char *name = pc_foreign_text(node);
    bool is_half = strcmp(name, "float16") == 0;
    pc_imported_set(r->import, "model.precision", node ? node->key : "", is_half ? "fp16" : "bf16");
    if (!is_half && strcmp(name, "bfloat16") != 0) pc_imported_note(r->import, PC_IMPORT_ASSUMED, "bf16");
}

/* The longest that it is made for is seldom what it is trained at. */
static pc_code take_sequence(pc_hf_reader *r) {
    int64_t most = INT32_MAX, seq_len = PC_HF_SEQ_LEN;
    const pc_node *node =
        pc_foreign_find(r->text, "max_position_embeddings|n_positions|n_ctx|max_seq_len|max_sequence_length|"
                                 "seq_length");
    pc_code code = node ? pc_hf_count(r, node, 1, &most) : PC_OK;
    if (code) return code;
    if (most < seq_len) seq_len = most;
    pc_imported_set_number(r->import, "model.seq_len", "", seq_len);
    pc_imported_note(r->import, PC_IMPORT_ASSUMED, "sequences of %" PRId64, seq_len);
    if (node && strcmp(pc_imported_get(r->import, "model.positions"), "learned") == 0)
        pc_imported_set_number(r->import, "model.max_positions", node->key, most);
    return PC_OK;
}

static void take_vocabulary(pc_hf_reader *r) {
    pc_imported_set_number(r->import, "model.vocab_multiple", "", VOCAB_MULTIPLE);
    pc_imported_note(r->import, PC_IMPORT_ASSUMED, "a vocabulary of %s, padded to a multiple of %d x tp",
                     pc_imported_get(r->import, "model.vocab"), VOCAB_MULTIPLE);
}

pc_code pc_hf_take_model(pc_hf_reader *r) {
    pc_code code = take_dimensions(r);
    if (!code) code = take_biases(r);
    if (!code) code = take_qk_norm(r);
    if (!code) code = take_windows(r);
    if (!code) code = take_softcaps(r);
    if (!code) code = pc_hf_take_experts(r);
    if (!code) code = take_sequence(r);
    if (!code) code = take_dropout(r);
    if (!code) code = take_predictions(r);
    if (!code) code = pc_imported_check(r->import, r->error); /* of what is read back */
    if (code) return code;
    take_vocabulary(r);
    take_precision(r);
    pc_imported_set(r->import, "model.attention", "", "flash");
    return PC_OK;
}
