#include "calib/trace/kineto_private.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- numbers ---- */

/* Digits up to a point, and `decimals` of those behind it; false if that is not all, or too much. */
static bool read_fixed(const char *text, int decimals, int64_t *number) {
    bool is_negative = *text == '-';
    int64_t value = 0;
    text += is_negative;
    for (; *text >= '0' && *text <= '9'; text++)
        if (__builtin_mul_overflow(value, 10, &value) || __builtin_add_overflow(value, *text - '0', &value))
            return false;
    text += *text == '.';
    for (int i = 0; i < decimals; i++) {
        int digit = *text >= '0' && *text <= '9' ? *text++ - '0' : 0;
        if (__builtin_mul_overflow(value, 10, &value) || __builtin_add_overflow(value, digit, &value)) return false;
    }
    while (*text >= '0' && *text <= '9') text++;
    *number = is_negative ? -value : value;
    return *text == '\0';
}

/* With an exponent, which is rare. */
static bool read_real(const char *text, double scale, int64_t *number) {
    double value = strtod(text, NULL) * scale;
    if (!(fabs(value) < 0x1p62)) return false;
    *number = llround(value);
    return true;
}

static bool has_exponent(const char *text) {
    return strpbrk(text, "eE") != NULL;
}

bool pc_kineto_time(const char *text, int64_t *time_ns) {
    bool is_read = has_exponent(text) ? read_real(text, 1e3, time_ns) : read_fixed(text, 3, time_ns);
    return is_read && *time_ns >= 0;
}

bool pc_kineto_integer(const char *text, int64_t *number) {
    bool is_read = has_exponent(text) ? read_real(text, 1.0, number) : read_fixed(text, 0, number);
    return is_read && llabs(*number) <= INT64_C(1) << 62;
}

/* A number, or a text that is one: PyTorch writes either. Stays as it is if it is neither. */
static void take_integer(const pc_json_token *token, int64_t *number) {
    int64_t found;
    bool is_text = token->kind == PC_JSON_NUMBER || (token->kind == PC_JSON_TEXT && token->length > 0);
    if (is_text && pc_kineto_integer(token->text, &found)) *number = found;
}

/* ---- what NCCL's kernels say ---- */

/* As PyTorch calls its types (c10::ScalarType). */
static int64_t bytes_of_type(const char *type) {
    static const struct {
        const char *name;
        int bytes;
    } types[] = {{"BFloat16", 2}, {"Half", 2},   {"Float", 4},  {"Double", 8},      {"Byte", 1},
                 {"Char", 1},     {"Bool", 1},   {"Short", 2},  {"Int", 4},         {"Long", 8},
                 {"UInt16", 2},   {"UInt32", 4}, {"UInt64", 8}, {"ComplexFloat", 8}};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcmp(type, types[i].name) == 0) return types[i].bytes;
    return strncmp(type, "Float8", 6) == 0 ? 1 : PC_KINETO_NOT_GIVEN;
}

/* "[0, 1]". */
static void take_group(const char *text, int64_t group[2]) {
    char *end;
    if (*text != '[') return;
    long long first = strtoll(text + 1, &end, 10);
    if (end == text + 1 || *end != ',') return;
    const char *second_text = end + 1;
    long long second = strtoll(second_text, &end, 10);
    if (end == second_text || *end != ']' || first < 0 || second < 0) return;
    group[0] = first;
    group[1] = second;
}

static bool is_word(const char *text, const char *word) {
    return strcmp(text, word) == 0;
}

static void take_argument(const char *key, const pc_json_token *value, pc_kineto_event *event) {
    if (is_word(key, "Bytes")) take_integer(value, &event->bytes);
    if (is_word(key, "Total Allocated")) take_integer(value, &event->allocated);
    if (is_word(key, "Device Type")) take_integer(value, &event->device_type);
    if (is_word(key, "In msg nelems")) take_integer(value, &event->elements);
    if (is_word(key, "Src Rank")) take_integer(value, &event->source);
    if (is_word(key, "Dst Rank")) take_integer(value, &event->target);
    if (value->kind != PC_JSON_TEXT) return;
    if (is_word(key, "dtype")) event->element_bytes = bytes_of_type(value->text);
    if (is_word(key, "Process Group Ranks")) take_group(value->text, event->group);
    if (!is_word(key, "Collective name")) return;
    event->is_send = is_word(value->text, "send");
    event->is_receive = is_word(value->text, "recv");
}

static pc_code read_arguments(pc_json *json, pc_kineto_event *event, pc_error *error) {
    char key[PC_KINETO_NAME_SIZE];
    pc_json_token token;
    pc_code code;
    while (!(code = pc_json_next(json, &token, error)) && token.kind == PC_JSON_KEY) {
        snprintf(key, sizeof key, "%.*s", (int)sizeof key - 1, token.text);
        code = pc_json_next(json, &token, error);
        if (!code) take_argument(key, &token, event);
        if (!code) code = pc_json_skip(json, &token, error);
        if (code) return code;
    }
    return code;
}

/* ---- the event ---- */

static void take_category(const char *text, pc_kineto_event *event) {
    if (is_word(text, "user_annotation"))
        event->sort = PC_KINETO_ANNOTATION;
    else if (is_word(text, "gpu_user_annotation") || is_word(text, "gpu_user_Annotation"))
        event->sort = PC_KINETO_DEVICE_ANNOTATION;
    else if (is_word(text, "kernel") || is_word(text, "Kernel"))
        event->sort = PC_KINETO_KERNEL;
}

static void take_text(const char *key, const char *text, pc_kineto_event *event) {
    if (is_word(key, "ph")) event->phase = text[0];
    if (is_word(key, "cat")) take_category(text, event);
    if (!is_word(key, "name")) return;
    snprintf(event->name, sizeof event->name, "%.*s", (int)sizeof event->name - 1, text);
    if (is_word(text, "[memory]")) event->sort = PC_KINETO_MEMORY;
}

static void take_value(const char *key, const pc_json_token *value, pc_kineto_event *event) {
    if (value->kind == PC_JSON_TEXT) take_text(key, value->text, event);
    if (is_word(key, "pid")) take_integer(value, &event->process);
    if (is_word(key, "tid")) take_integer(value, &event->thread);
    if (value->kind != PC_JSON_NUMBER) return;
    if (is_word(key, "ts")) event->has_start = pc_kineto_time(value->text, &event->start_ns);
    if (is_word(key, "dur")) event->has_duration = pc_kineto_time(value->text, &event->duration_ns);
}

static pc_code read_member(pc_json *json, const char *key, pc_kineto_event *event, pc_error *error) {
    pc_json_token token;
    pc_code code = pc_json_next(json, &token, error);
    if (code) return code;
    if (is_word(key, "args") && token.kind == PC_JSON_OBJECT) return read_arguments(json, event, error);
    take_value(key, &token, event);
    return pc_json_skip(json, &token, error);
}

pc_code pc_kineto_event_read(pc_json *json, pc_kineto_event *event, pc_error *error) {
    enum { NONE = PC_KINETO_NOT_GIVEN };
    char key[PC_KINETO_NAME_SIZE];
    pc_json_token token;
    pc_code code;
    *event = (pc_kineto_event){.process = NONE,
                               .thread = NONE,
                               .elements = NONE,
                               .element_bytes = NONE,
                               .source = NONE,
                               .target = NONE,
                               .group = {NONE, NONE},
                               .allocated = NONE,
                               .device_type = NONE};
    while (!(code = pc_json_next(json, &token, error)) && token.kind == PC_JSON_KEY) {
        snprintf(key, sizeof key, "%.*s", (int)sizeof key - 1, token.text);
        code = read_member(json, key, event, error);
        if (code) return code;
    }
    return code;
}
