/* arithmetic.h: whole-number arithmetic of a shell, as in $((WORLD_SIZE * 4)): + - * / %, signs, parentheses and
 * variables, in 64 bits. Pure, and bounded by the text's length and a depth of 32.
 */
#ifndef PC_SCENARIOS_IMPORT_ARITHMETIC_H
#define PC_SCENARIOS_IMPORT_ARITHMETIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The number that a variable is; false if it is unknown, or no whole number. */
typedef bool pc_arithmetic_variable(const void *context, const char *name, size_t length, int64_t *value);

/* False of anything else than such an expression, of a division by zero, and of numbers that do not fit. */
bool pc_arithmetic_evaluate(const char *text, size_t length, pc_arithmetic_variable *variable, const void *context,
                            int64_t *value);

#endif
