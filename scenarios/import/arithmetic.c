#include "scenarios/import/arithmetic.h"

#include <ctype.h>

enum { DEPTH_MAX = 32 };

typedef struct reading {
    const char *at, *end;
    pc_arithmetic_variable *variable;
    const void *context;
    int depth;
} reading;

static bool read_sum(reading *r, int64_t *value);

static char peek(reading *r) {
    while (r->at < r->end && isspace((unsigned char)*r->at)) r->at++;
    if (r->at == r->end) return '\0';
    return *r->at;
}

static bool read_number(reading *r, int64_t *value) {
    int64_t made = 0;
    for (; r->at < r->end && isdigit((unsigned char)*r->at); r->at++)
        if (__builtin_mul_overflow(made, 10, &made) || __builtin_add_overflow(made, *r->at - '0', &made)) return false;
    *value = made;
    return true;
}

/* "NAME", "$NAME" or "${NAME}". */
static bool read_variable(reading *r, int64_t *value) {
    bool has_brace = false;
    if (*r->at == '$') {
        r->at++;
        has_brace = r->at < r->end && *r->at == '{';
        r->at += has_brace;
    }
    const char *name = r->at;
    while (r->at < r->end && (isalnum((unsigned char)*r->at) || *r->at == '_')) r->at++;
    size_t length = (size_t)(r->at - name);
    if (length == 0 || !r->variable(r->context, name, length, value)) return false;
    if (has_brace && (r->at == r->end || *r->at++ != '}')) return false;
    return true;
}

static bool read_factor(reading *r, int64_t *value) { /* NOLINT(misc-no-recursion): DEPTH_MAX bounds it */
    char c = peek(r);
    bool is_fine = false;
    if (++r->depth > DEPTH_MAX) return false;
    if (c == '(') {
        r->at++;
        is_fine = read_sum(r, value) && peek(r) == ')';
        r->at += is_fine;
    } else if (c == '-' || c == '+') {
        r->at++;
        is_fine = read_factor(r, value) && (c == '+' || !__builtin_sub_overflow(INT64_C(0), *value, value));
    } else if (isdigit((unsigned char)c)) {
        is_fine = read_number(r, value);
    } else if (c == '$' || c == '_' || isalpha((unsigned char)c)) {
        is_fine = read_variable(r, value);
    }
    r->depth--;
    return is_fine;
}

static bool read_product(reading *r, int64_t *value) { /* NOLINT(misc-no-recursion): DEPTH_MAX bounds it */
    int64_t next;
    if (!read_factor(r, value)) return false;
    for (char c; (c = peek(r)) == '*' || c == '/' || c == '%';) {
        r->at++;
        if (!read_factor(r, &next)) return false;
        if (c == '*' && __builtin_mul_overflow(*value, next, value)) return false;
        if (c == '*') continue;
        if (next == 0 || (next == -1 && *value == INT64_MIN)) return false;
        *value = c == '/' ? *value / next : *value % next;
    }
    return true;
}

static bool read_sum(reading *r, int64_t *value) { /* NOLINT(misc-no-recursion): DEPTH_MAX bounds it */
    int64_t next;
    if (!read_product(r, value)) return false;
    for (char c; (c = peek(r)) == '+' || c == '-';) {
        r->at++;
        if (!read_product(r, &next)) return false;
        if (c == '+' ? __builtin_add_overflow(*value, next, value) : __builtin_sub_overflow(*value, next, value))
            return false;
    }
    return true;
}

bool pc_arithmetic_evaluate(const char *text, size_t length, pc_arithmetic_variable *variable, const void *context,
                            int64_t *value) {
    int64_t made;
    reading r = {.at = text, .end = text + length, .variable = variable, .context = context};
    if (!read_sum(&r, &made) || peek(&r)) return false;
    *value = made;
    return true;
}
