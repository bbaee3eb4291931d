#include "scenarios/number_list.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* How a range goes on: x * factor + step. */
typedef struct stride {
    int64_t factor, step;
} stride;

typedef struct range {
    const char *text; /* borrowed */
    int64_t from, to;
    stride stride;
} range;

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

static const char *text_at(const pc_node *list, unsigned index) {
    return pc_node_first(list)[index].text;
}

bool pc_number_is_range(const char *entry) {
    return strstr(entry, "..") != NULL;
}

/* ---- 1,024 ---- */

/* As a group of a number with commas: three digits, or at its beginning one to three. */
static bool is_group(const char *text, bool is_first) {
    size_t length = strspn(text, "0123456789");
    return text[length] == '\0' && (length == 3 || (is_first && length > 0 && length < 3));
}

/* Whether the entry, with those around it, is what became of a number with commas. A group that begins with a zero is
 * no number that anybody would write, and of others nobody can tell. */
static bool find_groups(const pc_node *list, unsigned index, unsigned *first, unsigned *last) {
    if (index == 0 || text_at(list, index)[0] != '0' || !is_group(text_at(list, index), false)) return false;
    *first = index - 1;
    while (*first > 0 && text_at(list, *first)[0] == '0' && is_group(text_at(list, *first), false)) --*first;
    if (text_at(list, *first)[0] == '0' || !is_group(text_at(list, *first), true)) return false;
    for (*last = index; *last + 1 < list->count && is_group(text_at(list, *last + 1), false); ++*last) {
    }
    return true;
}

static pc_code refuse_groups(const pc_node *list, unsigned first, unsigned last, pc_error *error) {
    char number[64] = "", with_commas[64] = "", several[96] = "";
    for (unsigned i = first; i <= last && strlen(with_commas) + 5 < sizeof with_commas; i++) {
        const char *comma = i > first ? "," : "", *between = i == first ? "" : i == last ? " and " : ", ";
        snprintf(number + strlen(number), sizeof number - strlen(number), "%s", text_at(list, i));
        snprintf(with_commas + strlen(with_commas), sizeof with_commas - strlen(with_commas), "%s%s", comma,
                 text_at(list, i));
        snprintf(several + strlen(several), sizeof several - strlen(several), "%s%s", between, text_at(list, i));
    }
    return pc_error_set(error, PC_ERROR_INPUT, "%s is %u values, %s; expected %s, without a comma", with_commas,
                        last - first + 1, several, number);
}

/* ---- ranges ---- */

static pc_code refuse(const range *span, pc_error *error, const char *problem) {
    return pc_error_set(error, PC_ERROR_INPUT,
                        "%.40s: %s; expected a range such as 1..8, 8..64+8, 4..64x2, or 1,2,4..16", span->text,
                        problem);
}

/* The piece of a text between two of its places, in a copy; false if it is longer than any number. */
static bool copy_piece(const char *from, const char *to, char piece[32]) {
    if (to - from >= 32) return false;
    snprintf(piece, 32, "%.*s", (int)(to - from), from);
    return true;
}

/* Where "x2", "*2" or "+8" stands at the end of a text; its end where none does. */
static const char *find_stride(const char *text) {
    const char *end = text + strlen(text), *c = end;
    while (c > text && is_digit(c[-1])) c--;
    return c < end && c > text && strchr("x*+", c[-1]) ? c - 1 : end;
}

static pc_code read_stride(range *span, const char *text, pc_error *error) {
    int64_t number = 0;
    for (const char *c = text + 1; *c; c++)
        if (__builtin_mul_overflow(number, INT64_C(10), &number) || number > INT64_MAX - 9)
            return refuse(span, error, "too large a step");
        else
            number += *c - '0';
    span->stride = *text == '+' ? (stride){1, number} : (stride){number, 0};
    if (*text == '+' ? number == 0 : number < 2) return refuse(span, error, "does not go on");
    return PC_OK;
}

/* The whole number before the entry: false if there is none, or a range. */
static bool number_before(pc_key key, const pc_node *list, unsigned index, unsigned back, int64_t *number) {
    pc_value value;
    if (back > index || pc_number_is_range(text_at(list, index - back))) return false;
    if (pc_value_parse(key, text_at(list, index - back), &value, NULL)) return false;
    *number = value.whole;
    return true;
}

/* Nobody asks for every number of GPUs from 512 to 16384: a long range doubles, if that leads to its end. */
static bool doubles(pc_key key, const range *span) {
    int64_t number = span->from;
    if (key != PC_KEY_GPUS || number < 1 || span->to - span->from < PC_GPU_RANGE_MAX) return false;
    while (number <= span->to / 2) number *= 2;
    return number == span->to;
}

/* As the two numbers before it say; in a list's beginning, and behind another range, by one. */
static pc_code infer_stride(pc_key key, const pc_node *list, unsigned index, range *span, pc_error *error) {
    int64_t before = 0, earlier = 0;
    span->stride = doubles(key, span) ? (stride){2, 0} : (stride){1, 1};
    if (!number_before(key, list, index, 1, &before)) return PC_OK;
    if (!number_before(key, list, index, 2, &earlier))
        return refuse(span, error, "behind one number, which says neither step nor ratio");
    bool has_ratio = earlier > 0 && before % earlier == 0 && before / earlier > 1;
    if (before > earlier && span->from - before == before - earlier)
        span->stride.step = before - earlier;
    else if (has_ratio && span->from % before == 0 && span->from / before == before / earlier)
        span->stride = (stride){before / earlier, 0};
    else
        return refuse(span, error, "does not go on as the two numbers before it");
    return PC_OK;
}

/* The next number; INT64_MAX beyond all. */
static int64_t next_of(const range *span, int64_t number) {
    int64_t next;
    bool is_beyond = __builtin_mul_overflow(number, span->stride.factor, &next) ||
                     __builtin_add_overflow(next, span->stride.step, &next) || next <= number;
    return is_beyond ? INT64_MAX : next;
}

static pc_code refuse_length(const range *span, pc_error *error) {
    int64_t end = span->from;
    while (end > 0 && end <= span->to / 2) end *= 2;
    return pc_error_set(error, PC_ERROR_INPUT,
                        "%.40s: more than %d values; expected fewer, as of %" PRId64 "..%" PRId64 "x2, which doubles",
                        span->text, PC_RANGE_VALUES_MAX, span->from, end);
}

/* It must come to its end in so many steps that a list can be of use. */
static pc_code check_range(const range *span, pc_error *error) {
    int64_t number = span->from;
    if (span->from > span->to) return refuse(span, error, "runs backwards");
    for (int count = 1; number < span->to; count++) {
        int64_t next = next_of(span, number);
        if (next == INT64_MAX) return refuse(span, error, "does not go on");
        if (count == PC_RANGE_VALUES_MAX) return refuse_length(span, error);
        if (next > span->to)
            return pc_error_set(error, PC_ERROR_INPUT,
                                "%.40s: goes from %" PRId64 " to %" PRId64 "; expected one of these at its end",
                                span->text, number, next);
        number = next;
    }
    return PC_OK;
}

static pc_code read_range(pc_key key, const pc_node *list, unsigned index, range *span, pc_error *error) {
    char from[32], to[32];
    pc_value first, last;
    const char *dots = strstr(span->text, ".."), *goes_on = find_stride(dots + 2);
    if (!copy_piece(span->text, dots, from) || !copy_piece(dots + 2, goes_on, to))
        return refuse(span, error, "no range of numbers");
    pc_code code = pc_value_parse(key, from, &first, error);
    if (!code) code = pc_value_parse(key, to, &last, error);
    if (code) return code;
    span->from = first.whole;
    span->to = last.whole;
    code = *goes_on ? read_stride(span, goes_on, error) : infer_stride(key, list, index, span, error);
    return code ? code : check_range(span, error);
}

pc_code pc_number_entry_read(pc_key key, const pc_node *list, unsigned index, pc_number_take *take, void *context,
                             pc_error *error) {
    unsigned first, last;
    pc_value value;
    range span = {.text = text_at(list, index)};
    if (find_groups(list, index, &first, &last)) return refuse_groups(list, first, last, error);
    if (!pc_number_is_range(span.text)) {
        pc_code code = pc_value_parse(key, span.text, &value, error);
        return code ? code : take(context, value, error);
    }
    pc_code code = read_range(key, list, index, &span, error);
    for (int64_t n = span.from; !code && n <= span.to && n != INT64_MAX; n = next_of(&span, n))
        code = take(context, (pc_value){.whole = n}, error);
    return code;
}
