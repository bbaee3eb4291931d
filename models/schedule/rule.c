#include "models/schedule/rule.h"

#include "engine/alloc.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

typedef enum operation {
    NUMBER,
    NAME,
    NEGATE,
    NOT,
    ADD,
    SUBTRACT,
    MULTIPLY,
    DIVIDE,
    MODULO,
    LESS,
    LESS_OR_EQUAL,
    MORE,
    MORE_OR_EQUAL,
    EQUAL,
    UNEQUAL,
    AND,
    OR,
    LEAST,
    MOST,
    IF /* three operands */
} rule_operation;

/* Operands stand before what takes them: a walk down the tree ends, and is no deeper than the text is long. */
struct pc_rule_node {
    rule_operation operation;
    int32_t operand[3];
    int64_t number; /* of a NUMBER; which one of a NAME */
};

static const char names[PC_RULE_NAMES + 1] = "dcipvm";

/* ---- reading ---- */

typedef struct reader {
    const char *text, *at;
    unsigned names;
    int depth;
    pc_rule_node *nodes; /* room for one a byte of the text */
    int count;
    pc_error *error;
} reader;

static bool refuse(reader *r, const char *expected) {
    char found[24] = "the end";
    if (*r->at) snprintf(found, sizeof found, "'%.1s'", *r->at > ' ' && *r->at < 0x7F ? r->at : "?");
    pc_error_set(r->error, PC_ERROR_INPUT, "%s at byte %d of the rule; expected %s", found, (int)(r->at - r->text) + 1,
                 expected);
    return false;
}

static void skip_spaces(reader *r) {
    while (*r->at == ' ' || *r->at == '\t' || *r->at == '\n') r->at++;
}

/* Whether this stands next, which is then read. */
static bool take(reader *r, const char *word) {
    size_t length = strlen(word);
    skip_spaces(r);
    if (strncmp(r->at, word, length) != 0) return false;
    r->at += length;
    return true;
}

static bool need(reader *r, const char *word, const char *expected) {
    return take(r, word) || refuse(r, expected);
}

static int32_t add(reader *r, rule_operation operation, int32_t a, int32_t b, int32_t c) {
    r->nodes[r->count] = (pc_rule_node){operation, {a, b, c}, 0};
    return r->count++;
}

static bool read_choice(reader *r, int32_t *node);

static bool read_number(reader *r, int32_t *node) {
    int64_t number = 0;
    for (; *r->at >= '0' && *r->at <= '9'; r->at++) {
        number = 10 * number + (*r->at - '0');
        if (number > PC_RULE_MOST) return refuse(r, "a number of at most 2^40");
    }
    *node = add(r, NUMBER, 0, 0, 0);
    r->nodes[*node].number = number;
    return true;
}

/* min(a, b, ...): from left to right. */
/* NOLINTNEXTLINE(misc-no-recursion): PC_RULE_DEPTH_MAX deep at most, as read_choice counts */
static bool read_arguments(reader *r, rule_operation operation, int32_t *node) {
    if (!need(r, "(", "'(' and numbers") || !read_choice(r, node)) return false;
    while (take(r, ",")) {
        int32_t other;
        if (!read_choice(r, &other)) return false;
        *node = add(r, operation, *node, other, 0);
    }
    return need(r, ")", "',' or ')'");
}

/* For messages: "d, c, i, p, v, m". */
static void list_names(unsigned which, char *text, size_t size) {
    size_t used = 0;
    text[0] = '\0';
    for (int i = 0; i < PC_RULE_NAMES; i++)
        if (which >> i & 1) used += (size_t)snprintf(text + used, size - used, "%s%c", used ? ", " : "", names[i]);
}

static bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (c >= '0' && c <= '9');
}

/* NOLINTNEXTLINE(misc-no-recursion): as read_arguments */
static bool read_name(reader *r, int32_t *node) {
    size_t length = 0;
    char expected[96] = "a number, min, max, a bracket, or one of ";
    while (is_letter(r->at[length])) length++;
    if (length == 3 && (strncmp(r->at, "min", 3) == 0 || strncmp(r->at, "max", 3) == 0)) {
        rule_operation operation = r->at[1] == 'i' ? LEAST : MOST;
        r->at += 3;
        return read_arguments(r, operation, node);
    }
    const char *found = length == 1 ? strchr(names, *r->at) : NULL;
    if (!found || !(r->names >> (found - names) & 1)) {
        size_t used = strlen(expected);
        list_names(r->names, expected + used, sizeof expected - used);
        return refuse(r, expected);
    }
    r->at++;
    *node = add(r, NAME, 0, 0, 0);
    r->nodes[*node].number = found - names;
    return true;
}

/* NOLINTNEXTLINE(misc-no-recursion): as read_arguments */
static bool read_operand(reader *r, int32_t *node) {
    skip_spaces(r);
    if (*r->at >= '0' && *r->at <= '9') return read_number(r, node);
    if (!take(r, "(")) return read_name(r, node);
    return read_choice(r, node) && need(r, ")", "')'");
}

static bool is_too_deep(reader *r) {
    if (r->depth < PC_RULE_DEPTH_MAX) return false;
    refuse(r, "less in each other, 32 deep at most");
    return true;
}

/* NOLINTNEXTLINE(misc-no-recursion): as read_arguments */
static bool read_signed(reader *r, int32_t *node) {
    rule_operation operation = NEGATE;
    skip_spaces(r);
    bool is_not = *r->at == '!' && r->at[1] != '=';
    if (!is_not && *r->at != '-') return read_operand(r, node);
    if (is_not) operation = NOT;
    if (is_too_deep(r)) return false;
    r->at++;
    r->depth++;
    if (!read_signed(r, node)) return false;
    r->depth--;
    *node = add(r, operation, *node, 0, 0);
    return true;
}

/* Operators that bind alike, the longer ones first. */
typedef struct level {
    const char *word[5];
    rule_operation operation[5];
} level;

static const level levels[] = {
    {{"||"}, {OR}},
    {{"&&"}, {AND}},
    {{"==", "!="}, {EQUAL, UNEQUAL}},
    {{"<=", ">=", "<", ">"}, {LESS_OR_EQUAL, MORE_OR_EQUAL, LESS, MORE}},
    {{"+", "-"}, {ADD, SUBTRACT}},
    {{"*", "/", "%"}, {MULTIPLY, DIVIDE, MODULO}},
};
enum { LEVELS = sizeof levels / sizeof *levels };

static bool take_operator(reader *r, const level *of, rule_operation *operation) {
    for (int i = 0; i < 5 && of->word[i]; i++) {
        if (!take(r, of->word[i])) continue;
        *operation = of->operation[i];
        return true;
    }
    return false;
}

/* From the left to the right; as deep as there are levels, whatever the text. */
/* NOLINTNEXTLINE(misc-no-recursion): as deep as there are levels */
static bool read_level(reader *r, int at, int32_t *node) {
    rule_operation operation;
    if (at == LEVELS) return read_signed(r, node);
    if (!read_level(r, at + 1, node)) return false;
    while (take_operator(r, &levels[at], &operation)) {
        int32_t right;
        if (!read_level(r, at + 1, &right)) return false;
        *node = add(r, operation, *node, right, 0);
    }
    return true;
}

/* NOLINTNEXTLINE(misc-no-recursion): as read_arguments */
static bool read_choice(reader *r, int32_t *node) {
    int32_t yes, no;
    if (is_too_deep(r)) return false;
    r->depth++;
    if (!read_level(r, 0, node)) return false;
    if (take(r, "?")) {
        if (!read_choice(r, &yes) || !need(r, ":", "':' and what holds otherwise") || !read_choice(r, &no))
            return false;
        *node = add(r, IF, *node, yes, no);
    }
    r->depth--;
    return true;
}

static bool read_rule(reader *r) {
    int32_t root;
    if (!read_choice(r, &root)) return false;
    skip_spaces(r);
    return *r->at == '\0' || refuse(r, "an operator, or the end");
}

pc_code pc_rule_parse(const char *text, unsigned which, pc_rule *rule, pc_error *error) {
    size_t length = strlen(text);
    if (length > PC_RULE_TEXT_MAX)
        return pc_error_set(error, PC_ERROR_INPUT, "a rule of %zu bytes; expected %d at most", length,
                            PC_RULE_TEXT_MAX);
    reader r = {.text = text, .at = text, .names = which, .error = error};
    r.nodes = pc_alloc(length + 1, sizeof *r.nodes);
    if (!r.nodes) return pc_error_no_memory(error);
    if (!read_rule(&r)) {
        pc_free(r.nodes);
        return PC_ERROR_INPUT;
    }
    *rule = (pc_rule){r.nodes, r.count};
    return PC_OK;
}

pc_code pc_rule_number(int64_t number, pc_rule *rule, pc_error *error) {
    pc_rule_node *node = pc_alloc(1, sizeof *node);
    if (!node) return pc_error_no_memory(error);
    *node = (pc_rule_node){.operation = NUMBER, .number = number};
    *rule = (pc_rule){node, 1};
    return PC_OK;
}

void pc_rule_free(pc_rule *rule) {
    pc_free(rule->nodes);
    *rule = (pc_rule){0};
}

void pc_rule_hash(const pc_rule *rule, pc_hash *hash) {
    for (int i = 0; i < rule->count; i++) {
        const pc_rule_node *node = &rule->nodes[i];
        const int64_t numbers[] = {(int64_t)node->operation, node->operand[0], node->operand[1], node->operand[2],
                                   node->number};
        pc_hash_add_bytes(hash, numbers, sizeof numbers);
    }
}

/* ---- working out ---- */

static int64_t floor_divide(int64_t a, int64_t b) {
    int64_t quotient = a / b;
    return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
}

/* Of numbers within 2^40 nothing but a product can run over. */
static bool combine(rule_operation operation, int64_t a, int64_t b, int64_t *value) {
    switch (operation) {
    case ADD:
        *value = a + b;
        return true;
    case SUBTRACT:
        *value = a - b;
        return true;
    case MULTIPLY:
        return !__builtin_mul_overflow(a, b, value);
    case DIVIDE:
    case MODULO:
        if (b == 0) return false;
        *value = operation == DIVIDE ? floor_divide(a, b) : a - b * floor_divide(a, b);
        return true;
    case LEAST:
        *value = a < b ? a : b;
        return true;
    case MOST:
        *value = a > b ? a : b;
        return true;
    case LESS:
        *value = a < b;
        return true;
    case LESS_OR_EQUAL:
        *value = a <= b;
        return true;
    case MORE:
        *value = a > b;
        return true;
    case MORE_OR_EQUAL:
        *value = a >= b;
        return true;
    case EQUAL:
        *value = a == b;
        return true;
    default:
        *value = a != b;
        return true;
    }
}

/* NULL where it is worked out; else what is wrong. */
/* NOLINTNEXTLINE(misc-no-recursion): as deep as the text is long, which is bounded */
static const char *work_out(const pc_rule_node *nodes, int32_t at, const int64_t *values, int64_t *value) {
    const pc_rule_node *node = &nodes[at];
    const char *wrong;
    int64_t a, b;
    if (node->operation == NUMBER || node->operation == NAME) {
        *value = node->operation == NUMBER ? node->number : values[node->number];
        return NULL;
    }
    if ((wrong = work_out(nodes, node->operand[0], values, &a))) return wrong;
    switch (node->operation) {
    case NEGATE:
        *value = -a;
        return NULL;
    case NOT:
        *value = !a;
        return NULL;
    case IF:
        return work_out(nodes, node->operand[a ? 1 : 2], values, value);
    case AND:
    case OR:
        *value = a != 0;
        if ((node->operation == AND) != (a != 0)) return NULL;
        if ((wrong = work_out(nodes, node->operand[1], values, &b))) return wrong;
        *value = b != 0;
        return NULL;
    default:
        if ((wrong = work_out(nodes, node->operand[1], values, &b))) return wrong;
        if ((node->operation == DIVIDE || node->operation == MODULO) && b == 0) return "divides by zero";
        if (!combine(node->operation, a, b, value) || *value > PC_RULE_MOST || *value < -PC_RULE_MOST)
            return "comes to more than 2^40";
        return NULL;
    }
}

pc_code pc_rule_value(const pc_rule *rule, const int64_t values[PC_RULE_NAMES], int64_t *value, pc_error *error) {
    int64_t found = 0;
    const char *wrong = rule->count == 0 ? NULL : work_out(rule->nodes, rule->count - 1, values, &found);
    if (wrong) return pc_error_set(error, PC_ERROR_INPUT, "%s; expected a number within 2^40 of zero", wrong);
    *value = found;
    return PC_OK;
}
