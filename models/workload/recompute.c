#include "models/workload/recompute.h"

#include <stdio.h>
#include <string.h>

enum {
    PROJECTIONS = PC_KEEPS_QUERY | PC_KEEPS_KEY | PC_KEEPS_VALUE | PC_KEEPS_ROTATED,
    ATTENTION = PROJECTIONS | PC_KEEPS_OUTPUT,
    MLP_IN = PC_KEEPS_GATE | PC_KEEPS_UP
};

/* UNIFORM, BLOCK and EVERY have their number behind the name, MODULES its modules; what OP keeps depends on the model.
 */
static const struct {
    const char *name;
    int kept;
} kinds[PC_RECOMPUTE_KINDS] = {
    [PC_RECOMPUTE_NONE] = {"none", 0},
    [PC_RECOMPUTE_SELECTIVE] = {"selective", 0},
    [PC_RECOMPUTE_FULL] = {"full", 0},
    [PC_RECOMPUTE_UNIFORM] = {"full-uniform-", 0},
    [PC_RECOMPUTE_BLOCK] = {"full-block-", 0},
    [PC_RECOMPUTE_EVERY] = {"selective-", 0},
    [PC_RECOMPUTE_OP] = {"selective-op", PC_KEEPS_CONTEXT},
    [PC_RECOMPUTE_MINIMAL_WITH_CONTEXT] = {"minimal_with_context",
                                           ATTENTION | PC_KEEPS_CONTEXT | MLP_IN | PC_KEEPS_DOWN},
    [PC_RECOMPUTE_MINIMAL] = {"minimal", ATTENTION | MLP_IN | PC_KEEPS_DOWN},
    [PC_RECOMPUTE_SAVE_DOT_WITH_CONTEXT_EXCEPT_MLP] = {"save_dot_with_context_except_mlp",
                                                       ATTENTION | PC_KEEPS_CONTEXT},
    [PC_RECOMPUTE_SAVE_DOT_EXCEPT_MLPWI] = {"save_dot_except_mlpwi", ATTENTION | PC_KEEPS_DOWN},
    [PC_RECOMPUTE_SAVE_DOT_EXCEPT_MLP] = {"save_dot_except_mlp", ATTENTION},
    [PC_RECOMPUTE_SAVE_QKV_PROJ] = {"save_qkv_proj", PROJECTIONS},
    [PC_RECOMPUTE_SAVE_OUT_PROJ] = {"save_out_proj", PC_KEEPS_OUTPUT},
    [PC_RECOMPUTE_MODULES] = {"selective:", 0},
};

/* By bit. */
static const char *const modules[] = {"core_attn", "layernorm",      "mlp",        "moe",
                                      "moe_act",   "shared_experts", "mla_up_proj"};
enum { MODULES = sizeof modules / sizeof *modules };

/* ---- names ---- */

/* 1 to PC_RECOMPUTE_LAYERS_MAX, as one would write it; 0 otherwise. */
static int32_t number_of(const char *text, size_t length) {
    int32_t number = 0;
    if (length == 0 || text[0] == '0') return 0;
    for (size_t i = 0; i < length; i++) {
        if (text[i] < '0' || text[i] > '9') return 0;
        number = 10 * number + (text[i] - '0');
        if (number > PC_RECOMPUTE_LAYERS_MAX) return 0;
    }
    return number;
}

static int32_t module_of(const char *text, size_t length) {
    for (int i = 0; i < MODULES; i++)
        if (strlen(modules[i]) == length && memcmp(text, modules[i], length) == 0) return 1 << i;
    return 0;
}

int32_t pc_recompute_modules_parse(const char *text, size_t length, char between) {
    int32_t set = 0;
    for (const char *end = text + length;; text++) {
        const char *next = memchr(text, between, (size_t)(end - text));
        if (!next) next = end;
        int32_t one = module_of(text, (size_t)(next - text));
        if (!one || set & one) return 0;
        set |= one;
        if (next == end) return set;
        text = next;
    }
}

bool pc_recomputation_parse(const char *text, size_t length, pc_recomputation *recomputation) {
    for (pc_recompute kind = 0; kind < PC_RECOMPUTE_KINDS; kind++) {
        size_t own = strlen(kinds[kind].name);
        bool has_layers = pc_recompute_has_layers(kind), has_modules = kind == PC_RECOMPUTE_MODULES;
        if (length < own || memcmp(text, kinds[kind].name, own) != 0) continue;
        int32_t layers = has_layers ? number_of(text + own, length - own) : 0;
        int32_t set = has_modules ? pc_recompute_modules_parse(text + own, length - own, '+') : 0;
        if (has_layers || has_modules ? !layers && !set : length != own) continue;
        *recomputation = (pc_recomputation){kind, layers, set};
        return true;
    }
    return false;
}

void pc_recomputation_write(pc_recomputation recomputation, char *text) {
    int used = snprintf(text, PC_RECOMPUTATION_SIZE, "%s", kinds[recomputation.kind].name);
    if (pc_recompute_has_layers(recomputation.kind))
        snprintf(text + used, PC_RECOMPUTATION_SIZE - (size_t)used, "%d", (int)recomputation.layers);
    if (recomputation.kind != PC_RECOMPUTE_MODULES) return;
    const char *between = "";
    for (int i = 0; i < MODULES; i++) {
        if (!(recomputation.modules >> i & 1)) continue;
        used += snprintf(text + used, PC_RECOMPUTATION_SIZE - (size_t)used, "%s%s", between, modules[i]);
        between = "+";
    }
}

void pc_recomputation_names(const char *between, char *text, size_t size) {
    size_t used = 0;
    for (pc_recompute kind = 0; kind < PC_RECOMPUTE_KINDS && used < size; kind++)
        used += (size_t)snprintf(text + used, size - used, "%s%s%s", kind ? between : "", kinds[kind].name,
                                 pc_recompute_has_layers(kind)  ? "N"
                                 : kind == PC_RECOMPUTE_MODULES ? "core_attn+layernorm+mlp+..."
                                                                : "");
}

/* ---- policies ---- */

/* Every other product, from the first on: query, value, and of the MLP's the first and, of three, the third. If query,
 * key and value have biases and the others none, the first that counts is the output's. */
static int products_kept_by_op(const pc_model *model) {
    bool is_gated = pc_mlp_is_gated(model->mlp);
    if (model->has_bias) return 0;
    if (model->has_qkv_bias) return PC_KEEPS_OUTPUT | (is_gated ? PC_KEEPS_UP : PC_KEEPS_DOWN);
    return PC_KEEPS_QUERY | PC_KEEPS_VALUE | PC_KEEPS_GATE | (is_gated ? PC_KEEPS_DOWN : 0);
}

static int kept_by_op(const pc_model *model) {
    return PC_KEEPS_CONTEXT | PC_KEEPS_REDUCED | products_kept_by_op(model);
}

int pc_recompute_kept(const pc_model *model, pc_recompute kind) {
    int kept = kind == PC_RECOMPUTE_OP ? kept_by_op(model) : kinds[kind].kept;
    return model->attention == PC_ATTENTION_FLASH ? kept : kept & ~PC_KEEPS_CONTEXT;
}
