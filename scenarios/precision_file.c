#include "scenarios/precision_file.h"

#include "engine/field.h"
#include "scenarios/setting.h"
#include "scenarios/units.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

enum { FROM_DEPTH_MAX = 8 }; /* of recipes that say how they differ from another */

static const char precision_words[] = "bf16|fp16", format_words[] = "bf16|fp16|fp8|fp8_block|mxfp8|nvfp4",
                  scaling_words[] = "delayed|current|row|block|two-level", weights_words[] = "each|cached|held";
_Static_assert((int)PC_PRECISION_FP16 == 1 && (int)PC_PRODUCT_FP8 == 2 && (int)PC_PRODUCT_NVFP4 == 5 &&
                   (int)PC_SCALING_CURRENT == 1 && (int)PC_SCALING_TWO_LEVEL == 4 && (int)PC_LOW_WEIGHTS_HELD == 2,
               "the words stand in the order of the enums");

/* ---- keys ---- */

typedef enum rule_kind { WORD, WHOLE, SWITCH } rule_kind;

typedef struct rule {
    const char *path;
    rule_kind kind;
    const char *words; /* of WORD */
    int64_t least, most;
    size_t place; /* in pc_precision_recipe; an int32_t or an enum, or of SWITCH a bool */
} rule;

#define AT(member) offsetof(pc_precision_recipe, member)
static const rule rules[] = {
    {"memory", WORD, precision_words, 0, 0, AT(precision)},
    {"forward", WORD, format_words, 0, 0, AT(low.product[0])},
    {"input_gradient", WORD, format_words, 0, 0, AT(low.product[1])},
    {"weight_gradient", WORD, format_words, 0, 0, AT(low.product[2])},
    {"scaling", WORD, scaling_words, 0, 0, AT(low.scaling)},
    {"weights", WORD, weights_words, 0, 0, AT(low.weights)},
    {"copies", WHOLE, NULL, 1, 2, AT(low.copies)},
    {"bf16_layers.first", WHOLE, NULL, 0, INT32_MAX, AT(low.bf16_first)},
    {"bf16_layers.last", WHOLE, NULL, 0, INT32_MAX, AT(low.bf16_last)},
    {"gathers.parameters", SWITCH, NULL, 0, 1, AT(low.gathers_parameters)},
    {"gathers.activations", SWITCH, NULL, 0, 1, AT(low.gathers_activations)},
    {"keeps_inputs", SWITCH, NULL, 0, 1, AT(low.keeps_inputs)},
    {"fused.norm", SWITCH, NULL, 0, 1, AT(low.fuses_norm)},
    {"fused.activation", SWITCH, NULL, 0, 1, AT(low.fuses_activation)},
    {"split_accumulator", SWITCH, NULL, 0, 1, AT(low.splits_accumulator)},
    {"hadamard", SWITCH, NULL, 0, 1, AT(low.rotates)},
    {"stochastic_rounding", SWITCH, NULL, 0, 1, AT(low.rounds_stochastically)},
};
enum { RULES = sizeof rules / sizeof *rules };

static const pc_schema_field words[] = {
    {.path = "precision", .is_required = true}, {.path = "title"}, {.path = "source"}, {.path = "from"}};
enum { WORDS = sizeof words / sizeof *words };

static pc_schema_field recipe_field(int index) {
    return index < WORDS ? words[index] : (pc_schema_field){.path = rules[index - WORDS].path};
}
static const pc_schema recipe_schema = {.count = WORDS + RULES, .field = recipe_field};

/* ---- reading ---- */

static pc_code parse_rule(const rule *x, const char *text, pc_precision_recipe *recipe, pc_error *error) {
    char *place = (char *)recipe + x->place;
    int64_t number = 0;
    bool is_on = false;
    pc_code code = x->kind == WORD    ? pc_word_parse(x->words, text, &number, error)
                   : x->kind == WHOLE ? pc_parse_integer(text, x->least, x->most, &number, error)
                                      : pc_parse_switch(text, &is_on, error);
    if (code) return code;
    const int32_t narrow = (int32_t)number;
    if (x->kind == SWITCH)
        memcpy(place, &is_on, sizeof is_on);
    else
        memcpy(place, &narrow, sizeof narrow);
    return PC_OK;
}
_Static_assert(sizeof(pc_precision) == 4 && sizeof(pc_product_format) == 4 && sizeof(pc_scaling) == 4 &&
                   sizeof(pc_low_weights) == 4,
               "words are written as int32_t");

/* Products in 16 bits are in those of memory; and who says bf16 or fp16 means no recipe, in tables and messages. */
static pc_code check_wide(const pc_tree *tree, const char *path, pc_product_format format,
                          const pc_precision_recipe *recipe, pc_error *error) {
    const char *name = recipe->low.name;
    if (format == PC_PRODUCT_FP16 && recipe->precision != PC_PRECISION_FP16)
        return pc_tree_refuse(tree, path, error, "fp16 beside memory: bf16; expected bf16, or memory: fp16");
    if (pc_product_format_is_low(format) && (strcmp(name, "bf16") == 0 || strcmp(name, "fp16") == 0))
        return pc_tree_refuse(tree, "precision", error, "%s beside %s: %s; expected a name of the recipe's own", name,
                              path, pc_product_format_name(format));
    return PC_OK;
}

/* What cannot go together. */
static pc_code check_recipe(const pc_tree *tree, const pc_precision_recipe *recipe, pc_error *error) {
    static const char *const paths[PC_LOW_PRODUCTS] = {"forward", "input_gradient", "weight_gradient"};
    const pc_low_precision *low = &recipe->low;
    const char *name = pc_product_format_name(low->product[0]);
    for (int i = 0; i < PC_LOW_PRODUCTS; i++) {
        bool is_low = pc_product_format_is_low(low->product[i]);
        pc_code code = check_wide(tree, paths[i], low->product[i], recipe, error);
        if (code) return code;
        if (is_low && recipe->precision == PC_PRECISION_FP16)
            return pc_tree_refuse(tree, paths[i], error,
                                  "%s beside memory: fp16; expected memory: bf16, which has the range that is needed",
                                  pc_product_format_name(low->product[i]));
        if (is_low && low->product[i] != low->product[0])
            return pc_tree_refuse(tree, paths[i], error, "%s beside forward: %s; expected the same, or bf16",
                                  pc_product_format_name(low->product[i]), name);
    }
    if (low->rotates && !pc_product_format_is_low(low->product[2]))
        return pc_tree_refuse(tree, "hadamard", error,
                              "true beside weight_gradient: bf16; expected a format of few bits, whose product it is");
    return PC_OK;
}

static pc_code read_recipe(const char *name, const pc_place *place, int depth, pc_precision_recipe *recipe, char *title,
                           pc_error *error);

/* NOLINTNEXTLINE(misc-no-recursion): FROM_DEPTH_MAX deep at most */
static pc_code read_base(const pc_library_text *text, int depth, pc_precision_recipe *recipe, pc_error *error) {
    const pc_node *from = pc_node_find(text->tree.nodes, "from");
    if (!from) return PC_OK;
    if (depth == FROM_DEPTH_MAX)
        return pc_node_refuse(&text->tree, from, error,
                              "the %dth recipe in a row that stands on another; expected fewer", depth);
    pc_code code = read_recipe(from->text, &text->place, depth + 1, recipe, NULL, error);
    return pc_node_blame(&text->tree, from, code, error);
}

static pc_code read_name(const pc_tree *tree, char *name, pc_error *error) {
    const pc_node *node = pc_node_find(tree->nodes, "precision");
    if (!*node->text || strlen(node->text) >= PC_LOW_PRECISION_NAME_SIZE || pc_source_has_controls(node->text, ""))
        return pc_node_refuse(tree, node, error, "no name; expected one line of 1 to %d bytes",
                              PC_LOW_PRECISION_NAME_SIZE - 1);
    snprintf(name, PC_LOW_PRECISION_NAME_SIZE, "%s", node->text);
    return PC_OK;
}

/* NOLINTNEXTLINE(misc-no-recursion): as read_base */
static pc_code parse_recipe(const pc_library_text *text, int depth, pc_precision_recipe *recipe, pc_error *error) {
    pc_precision_recipe made = {.low = {.copies = 1}};
    pc_code code = read_base(text, depth, &made, error);
    if (!code) code = read_name(&text->tree, made.low.name, error);
    for (int i = 0; i < RULES && !code; i++) {
        const pc_node *node = pc_node_find(text->tree.nodes, rules[i].path);
        if (node) code = pc_node_blame(&text->tree, node, parse_rule(&rules[i], node->text, &made, error), error);
    }
    if (!code) code = check_recipe(&text->tree, &made, error);
    if (!code) *recipe = made;
    return code;
}

/* NOLINTNEXTLINE(misc-no-recursion): as read_base */
static pc_code read_recipe(const char *name, const pc_place *place, int depth, pc_precision_recipe *recipe, char *title,
                           pc_error *error) {
    pc_library_text text;
    pc_code code = pc_library_open(PC_LIBRARY_PRECISIONS, name, place, &recipe_schema, &text, error);
    if (code) return code;
    code = parse_recipe(&text, depth, recipe, error);
    if (!code && title) pc_library_title(&text.tree, title);
    pc_library_text_free(&text);
    return code;
}

pc_code pc_precision_file_read(const char *name, const pc_place *place, pc_precision_recipe *recipe,
                               char title[PC_TITLE_SIZE], pc_error *error) {
    return read_recipe(name, place, 0, recipe, title, error);
}

pc_code pc_library_load_precision(const char *name, char title[PC_TITLE_SIZE], pc_error *error) {
    pc_precision_recipe recipe;
    pc_place place = pc_place_of_user();
    return pc_precision_file_read(name, &place, &recipe, title, error);
}

/* ---- GPUs ---- */

/* Units for 4 bits came with those that scale blocks of 32 and 16. */
pc_code pc_precision_check_gpu(const pc_low_precision *low, const pc_gpu *gpu, pc_error *error) {
    for (int i = 0; i < PC_LOW_PRODUCTS; i++) {
        pc_product_format format = low->product[i];
        bool needs_fp4 = format == PC_PRODUCT_NVFP4 || format == PC_PRODUCT_MXFP8;
        if (!pc_product_format_is_low(format)) continue;
        if (!(gpu->matrix_fp8_flops_per_s > 0))
            return pc_error_set(error, PC_ERROR_INPUT,
                                "%s: %s has no units for %s; expected bf16 or fp16, or a GPU whose file has matrix_fp8",
                                low->name, gpu->name, pc_product_format_name(format));
        if (needs_fp4 && !(gpu->matrix_fp4_flops_per_s > 0))
            return pc_error_set(error, PC_ERROR_INPUT,
                                "%s: %s has no units for %s; expected fp8-delayed, fp8-current or fp8-blockwise, or a "
                                "GPU whose file has matrix_fp4",
                                low->name, gpu->name, pc_product_format_name(format));
    }
    return PC_OK;
}

void pc_precision_fit_gpu(const pc_gpu *gpu, pc_low_precision *low) {
    if (gpu->has_fp8_layouts && pc_low_precision_is_per_tensor(low)) low->copies = 1;
}

/* ---- hashes ---- */

void pc_low_precision_hash(const pc_low_precision *low, pc_hash *hash) {
    pc_field field = {.name = ""};
    pc_precision_recipe recipe = {.low = *low}; /* 16 bits in memory are a setting's own */
    for (int i = 1; i < RULES; i++) {
        field.type = rules[i].kind == SWITCH ? PC_FIELD_FLAG : PC_FIELD_INT32;
        field.place = rules[i].place;
        pc_field_hash(&field, &recipe, hash);
    }
    const pc_field name = {.type = PC_FIELD_TEXT, PC_FIELD_AT(pc_low_precision, name)};
    if (pc_low_precision_is_on(low)) pc_field_hash(&name, low, hash);
}
