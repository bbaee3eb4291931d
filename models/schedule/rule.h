/* rule.h: whole numbers as expressions in the numbers of a block: "2*p - 1 - d", "p % 3 == 0 ? 2 : 0". Private to the
 * library.
 *
 * Of C's operators, with C's precedence: ?: || && == != < <= > >= + - * / % ! and unary -, brackets, min(...) and
 * max(...). / rounds down and % is never negative beside a positive divisor, also for numbers below zero. What is true
 * is 1; of ?:, && and || only what is asked for is worked out. A rule is read once and worked out many times. What it
 * comes to, and what it comes to on the way, lies within PC_RULE_MOST of zero, or is refused.
 */
#ifndef PC_MODELS_SCHEDULE_RULE_H
#define PC_MODELS_SCHEDULE_RULE_H

#include "engine/error.h"
#include "engine/hash.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What a rule may name, and the letters by which it does: device, chunk, microbatch of the block; the numbers of
 * devices, chunks and microbatches of the iteration. */
typedef enum pc_rule_name {
    PC_RULE_D,
    PC_RULE_C,
    PC_RULE_I,
    PC_RULE_P,
    PC_RULE_V,
    PC_RULE_M,
    PC_RULE_NAMES
} pc_rule_name;

enum {
    PC_RULE_TEXT_MAX = 1000, /* bytes */
    PC_RULE_DEPTH_MAX = 32,  /* of brackets, signs and conditions in each other */
    PC_RULE_SHAPE_NAMES = 1 << PC_RULE_P | 1 << PC_RULE_V | 1 << PC_RULE_M,
    PC_RULE_ALL_NAMES = (1 << PC_RULE_NAMES) - 1
};
#define PC_RULE_MOST (INT64_C(1) << 40)

typedef struct pc_rule_node pc_rule_node;

typedef struct pc_rule {
    pc_rule_node *nodes; /* owned: pc_rule_free; the last one is the root */
    int count;
} pc_rule;

/* Reads a rule that may name what `names` has a bit for. PC_ERROR_INPUT: what is wrong, and at which byte of the text,
 * from 1. The message lacks its place. */
pc_code pc_rule_parse(const char *text, unsigned names, pc_rule *rule, pc_error *error);

/* A rule that is a number. */
pc_code pc_rule_number(int64_t number, pc_rule *rule, pc_error *error);

/* What it comes to; PC_ERROR_INPUT: too large, or a division by zero. A rule that was never read comes to 0. */
pc_code pc_rule_value(const pc_rule *rule, const int64_t values[PC_RULE_NAMES], int64_t *value, pc_error *error);

/* Adds what the rule says. */
void pc_rule_hash(const pc_rule *rule, pc_hash *hash);

/* A zeroed one is fine. */
void pc_rule_free(pc_rule *rule);

#ifdef __cplusplus
}
#endif
#endif
