/* config.json to settings of a model. */
#include "scenarios/import/hf.h"

#include "scenarios/import/hf_private.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { KEY_SIZE = 64, NAMES_SHOWN = 8 };

/* ---- tables ---- */

typedef struct known_model {
    const char *types, *settings, *note;
} known_model;

typedef struct refused {
    const char *names, *why;
} refused;

typedef enum key_class { USED, NO_EFFECT, NOT_MODELLED, KEY_UNKNOWN } key_class;

typedef struct known_key {
    const char *names;
    key_class class;
    const char *words;
} known_key;

#define HF_MODEL(types, settings, note) {types, settings, note},
#define HF_REFUSED(keys, why)
#define HF_REFUSED_NAME(names, why)
#define HF_KEY(names, class, words)
static const known_model known_models[] = {
#include "scenarios/import/hf.def"
};
#undef HF_MODEL
#undef HF_REFUSED
#undef HF_KEY

#define HF_MODEL(types, settings, note)
#define HF_REFUSED(keys, why) {keys, why},
#define HF_KEY(names, class, words)
static const refused refusals[] = {
#include "scenarios/import/hf.def"
};
#undef HF_REFUSED
#undef HF_REFUSED_NAME

#define HF_REFUSED(keys, why)
#define HF_REFUSED_NAME(names, why) {names, why},
static const refused refused_names[] = {
#include "scenarios/import/hf.def"
};
#undef HF_REFUSED_NAME
#undef HF_KEY

#define HF_REFUSED_NAME(names, why)
#define HF_KEY(names, class, words) {names, class, words},
static const known_key known_keys[] = {
#include "scenarios/import/hf.def"
};
#undef HF_MODEL
#undef HF_REFUSED
#undef HF_KEY

enum {
    KNOWN_MODELS = sizeof known_models / sizeof *known_models,
    REFUSALS = sizeof refusals / sizeof *refusals,
    REFUSED_NAMES = sizeof refused_names / sizeof *refused_names,
    KNOWN_KEYS = sizeof known_keys / sizeof *known_keys
};

static const known_model *find_model(const char *type) {
    for (int i = 0; i < KNOWN_MODELS; i++)
        if (pc_foreign_is_one_of(type, strlen(type), known_models[i].types)) return &known_models[i];
    return NULL;
}

/* Of "attn_config.kv_n_heads" only the first part is a key of the file. */
static bool names_key(const char *names, const char *key) {
    size_t length = strlen(key);
    while (*names) {
        size_t size = strcspn(names, "|"), first = strcspn(names, "|.");
        if (first == length && memcmp(names, key, first) == 0) return true;
        names += size + (names[size] == '|');
    }
    return false;
}

static const known_key *find_key(const char *key) {
    for (int i = 0; i < KNOWN_KEYS; i++)
        if (names_key(known_keys[i].names, key)) return &known_keys[i];
    return NULL;
}

/* ---- values ---- */

/* Where the decoder's part says nothing, what stands beside it. */
const pc_node *pc_hf_find(const pc_hf_reader *r, const char *names) {
    const pc_node *node = pc_foreign_find(r->text, names);
    return node || r->text == r->top ? node : pc_foreign_find(r->top, names);
}

bool pc_hf_says(const pc_hf_reader *r, const char *names) {
    return pc_foreign_says(pc_hf_find(r, names));
}

pc_code pc_hf_count(const pc_hf_reader *r, const pc_node *node, int64_t least, int64_t *number) {
    return pc_foreign_count(&r->tree, node, least, INT32_MAX, number, r->error);
}

/* Sets `key` to the number under any of the names; leaves it alone if there is none. */
pc_code pc_hf_take_count(pc_hf_reader *r, const char *key, const char *names) {
    int64_t number;
    const pc_node *node = pc_foreign_find(r->text, names);
    if (!node) return PC_OK;
    pc_code code = pc_hf_count(r, node, 0, &number);
    if (!code) pc_imported_set_number(r->import, key, node->key, number);
    return code;
}

/* The same of what must be there, and be 1 or more. */
pc_code pc_hf_need_count(pc_hf_reader *r, const char *key, const char *names) {
    int64_t number;
    const pc_node *node = pc_foreign_find(r->text, names);
    if (!node) {
        char name[KEY_SIZE];
        snprintf(name, sizeof name, "%.*s", (int)strcspn(names, "|"), names);
        return pc_node_refuse_key(&r->tree, r->text, name, r->error, "missing; expected it, as a decoder of %s has it",
                                  r->architecture);
    }
    pc_code code = pc_hf_count(r, node, 1, &number);
    if (!code) pc_imported_set_number(r->import, key, node->key, number);
    return code;
}

pc_code pc_hf_take_switch(pc_hf_reader *r, const char *key, const char *names, bool is_inverse) {
    bool is_true;
    const pc_node *node = pc_hf_find(r, names);
    if (!node) return PC_OK;
    pc_code code = pc_foreign_switch(&r->tree, node, &is_true, r->error);
    if (!code) pc_imported_set_switch(r->import, key, node->key, is_true != is_inverse);
    return code;
}

/* ---- what it is ---- */

static void find_decoder(pc_hf_reader *r) {
    const pc_node *inner = pc_foreign_find(r->top, "text_config|llm_config|language_config");
    r->text = inner && inner->kind == PC_NODE_MAPPING ? inner : r->top;
    const pc_node *name = pc_node_find(r->top, "architectures[0]");
    if (!name) name = pc_node_find(r->text, "architectures[0]");
    if (!name) name = pc_hf_find(r, "model_type");
    r->architecture = *pc_foreign_text(name) ? name->text : "no architecture";
    if (r->text != r->top)
        pc_imported_note(r->import, PC_IMPORT_NOT_MODELLED, "all of %s but its text model (%s)", r->architecture,
                         inner->key);
}

static pc_code refuse(const pc_hf_reader *r, const pc_node *node, const char *why) {
    return pc_node_refuse(&r->tree, node, r->error, "%.80s: %s; expected a decoder of attention with MLPs or experts",
                          r->architecture, why);
}

/* Kinds of attention that layers name one by one. */
static pc_code check_layers(const pc_hf_reader *r) {
    static const char known[] =
        "full_attention|sliding_attention|chunked_attention|deepseek_sparse_attention|attention";
    const pc_node *types = pc_foreign_find(r->text, "layer_types"), *kinds = pc_foreign_find(r->text, "attn_type_list");
    if (types && types->kind == PC_NODE_LIST)
        for (const pc_node *type = pc_node_first(types); type < pc_node_end(types); type = pc_node_end(type))
            if (!pc_foreign_is_one_of(pc_foreign_text(type), strlen(pc_foreign_text(type)), known)) {
                char why[96];
                snprintf(why, sizeof why, "layers of %.40s are not modelled", pc_foreign_text(type));
                return refuse(r, types, why);
            }
    if (kinds && kinds->kind == PC_NODE_LIST)
        for (const pc_node *kind = pc_node_first(kinds); kind < pc_node_end(kinds); kind = pc_node_end(kind))
            if (strcmp(pc_foreign_text(kind), "1") != 0)
                return refuse(r, kinds, "layers of linear attention are not modelled");
    return PC_OK;
}

static bool ends_in_one_of(const char *name, const char *endings) {
    size_t length = strlen(name);
    while (*endings) {
        size_t size = strcspn(endings, "|");
        if (size <= length && memcmp(name + length - size, endings, size) == 0) return true;
        endings += size + (endings[size] == '|');
    }
    return false;
}

static pc_code check_name(const pc_hf_reader *r) {
    const pc_node *type = pc_hf_find(r, "model_type"), *name = pc_hf_find(r, "architectures");
    for (int i = 0; i < REFUSED_NAMES; i++) {
        const char *names = refused_names[i].names;
        if (name && isupper((unsigned char)r->architecture[0]) && ends_in_one_of(r->architecture, names))
            return refuse(r, name, refused_names[i].why);
        if (type && pc_foreign_is_one_of(pc_foreign_text(type), strlen(pc_foreign_text(type)), names))
            return refuse(r, type, refused_names[i].why);
    }
    return PC_OK;
}

/* OPT's projection of embeddings, which only its model of 350 million has. */
static pc_code check_embeddings(const pc_hf_reader *r) {
    const pc_node *width = pc_foreign_find(r->text, "word_embed_proj_dim"),
                  *hidden = pc_foreign_find(r->text, "hidden_size");
    if (!width || !hidden || strcmp(pc_foreign_text(width), pc_foreign_text(hidden)) == 0) return PC_OK;
    return refuse(r, width, "embeddings of another width than the model's are not modelled");
}

static pc_code check_kind(const pc_hf_reader *r) {
    for (int i = 0; i < REFUSALS; i++) {
        const pc_node *node = pc_foreign_find(r->text, refusals[i].names);
        if (pc_foreign_says(node)) return refuse(r, node, refusals[i].why);
    }
    pc_code code = check_layers(r);
    if (!code) code = check_name(r);
    return code ? code : check_embeddings(r);
}

/* "key: value, key: value" of hf.def. */
static void set_all(pc_imported *import, const char *settings) {
    static const char *const keys[] = {"model.mlp",
                                       "model.norm",
                                       "model.norm_bias",
                                       "model.norm_place",
                                       "model.qk_norm",
                                       "model.positions",
                                       "model.bias",
                                       "model.qkv_bias",
                                       "model.tied",
                                       "model.attention_sinks",
                                       "model.moe_router_bias",
                                       "model.moe_router_score_function",
                                       "model.moe_shared_expert_gate",
                                       "model.sliding_window_pattern"};
    while (*settings) {
        size_t size = strcspn(settings, ","), name = strcspn(settings, ":");
        char value[KEY_SIZE];
        snprintf(value, sizeof value, "%.*s", (int)(size - name - 2), settings + name + 2);
        for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
            if (strlen(keys[i]) == name + strlen("model.") && memcmp(keys[i] + strlen("model."), settings, name) == 0)
                pc_imported_set(import, keys[i], "its architecture", value);
        settings += size + (settings[size] == ',' ? 2 : 0);
    }
}

static void set_architecture(pc_hf_reader *r) {
    static const char llama[] = "positions: rotary, norm: rmsnorm, mlp: swiglu, tied: false, bias: false";
    const char *type = pc_foreign_text(pc_hf_find(r, "model_type"));
    const known_model *known = find_model(type);
    set_all(r->import, llama);
    if (known) {
        set_all(r->import, known->settings);
        if (known->note[0]) pc_imported_note(r->import, PC_IMPORT_NOT_MODELLED, "%s", known->note);
        return;
    }
    pc_imported_note(r->import, PC_IMPORT_UNKNOWN, "the architecture %.60s (%.40s): read as Llama's, by its keys",
                     r->architecture, type);
    if (!pc_hf_find(r, "rms_norm_eps") && pc_hf_find(r, "layer_norm_eps|layer_norm_epsilon"))
        pc_imported_set(r->import, "model.norm", "layer_norm_eps", "layernorm");
}

/* ---- what becomes of every key ---- */

static bool is_first_of(const pc_node *mapping, const pc_node *node, const known_key *known) {
    for (const pc_node *child = pc_node_first(mapping); child < node; child = pc_node_end(child))
        if (names_key(known->names, child->key) && pc_foreign_says(child)) return false;
    return true;
}

static void note_keys(pc_hf_reader *r, const pc_node *mapping) {
    pc_text unknown = {.data = NULL};
    int count = 0;
    for (const pc_node *node = pc_node_first(mapping); node < pc_node_end(mapping); node = pc_node_end(node)) {
        const known_key *known = find_key(node->key);
        if (known && known->class == NOT_MODELLED && pc_foreign_says(node) && is_first_of(mapping, node, known))
            pc_imported_note(r->import, PC_IMPORT_NOT_MODELLED, "%s", known->words);
        if (known || !pc_foreign_says(node)) continue;
        if (count++ < NAMES_SHOWN) pc_text_printf(&unknown, "%s%.40s", count > 1 ? ", " : "", node->key);
    }
    if (count > NAMES_SHOWN) pc_text_printf(&unknown, " and %d more", count - NAMES_SHOWN);
    if (unknown.failed) r->import->failed = true;
    if (count > 0 && !unknown.failed) pc_imported_note(r->import, PC_IMPORT_UNKNOWN, "%s", unknown.data);
    pc_text_free(&unknown);
}

/* What a run would refuse, with the place in the file. */
static pc_code check_model(const pc_hf_reader *r) {
    const char *from;
    pc_code code = pc_imported_check_model(r->import, &from, r->error);
    const pc_node *node = code ? pc_hf_find(r, from) : NULL;
    return code ? pc_node_blame(&r->tree, node ? node : r->text, code, r->error) : PC_OK;
}

pc_code pc_import_hf(pc_source *source, pc_imported *import, pc_error *error) {
    pc_hf_reader r = {.tree.source = *source, .import = import, .error = error};
    *source = (pc_source){.text = NULL};
    pc_code code = pc_foreign_read(&r.tree, "a config.json of Hugging Face", error);
    if (!code) {
        r.top = r.tree.nodes;
        find_decoder(&r);
        code = check_kind(&r);
    }
    if (!code) set_architecture(&r);
    if (!code) code = pc_imported_check(import, error); /* of what is read back */
    if (!code) code = pc_hf_take_model(&r);
    if (!code) {
        note_keys(&r, r.text);
        if (r.text != r.top) note_keys(&r, r.top);
        code = pc_imported_check(import, error);
    }
    if (!code) code = check_model(&r);
    pc_tree_free(&r.tree);
    return code;
}
