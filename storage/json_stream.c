#include "storage/json_stream.h"

#include <string.h>

/* What may stand next. */
enum {
    VALUE,         /* a value */
    FIRST_VALUE,   /* a value, or the end of a list */
    FIRST_KEY,     /* a key, or the end of an object */
    KEY,           /* a key, behind a comma */
    COLON,         /* behind a key */
    COMMA_OR_CLOSE /* behind a value; at depth 0 the end */
};

void pc_json_begin(pc_json *json, pc_json_read *read, void *context) {
    json->read = read;
    json->context = context;
    json->next = json->end = json->piece;
    json->line = 1;
    json->depth = 0;
    json->is_object = 0;
    json->expects = VALUE;
}

/* ---- bytes ---- */

enum { NO_MORE = -1, FAILED = -2 };

/* The byte that stands next, which stays; NO_MORE at the end. */
static int peek(pc_json *json, pc_error *error) {
    if (json->next < json->end) return (unsigned char)*json->next;
    int64_t count = json->read(json->context, json->piece, sizeof json->piece, error);
    if (count < 0) return FAILED;
    json->next = json->piece;
    json->end = json->piece + count;
    return count == 0 ? NO_MORE : (unsigned char)*json->next;
}

static pc_code refuse(const pc_json *json, int byte, const char *expected, pc_error *error) {
    if (byte == FAILED) return error ? error->code : PC_ERROR_IO;
    if (byte == NO_MORE)
        pc_error_set(error, PC_ERROR_INPUT, "the text ends in the middle; expected %s", expected);
    else if (byte > ' ' && byte < 0x7f)
        pc_error_set(error, PC_ERROR_INPUT, "'%c'; expected %s", byte, expected);
    else
        pc_error_set(error, PC_ERROR_INPUT, "byte %d; expected %s", byte, expected);
    if (error) error->line = json->line;
    return PC_ERROR_INPUT;
}

static int peek_word(pc_json *json, pc_error *error) {
    for (;;) {
        int byte = peek(json, error);
        if (byte != ' ' && byte != '\n' && byte != '\r' && byte != '\t') return byte;
        json->line += byte == '\n';
        json->next++;
    }
}

/* ---- texts ---- */

static void keep(pc_json *json, const char *bytes, size_t count) {
    size_t room = sizeof json->text - 1 - json->length, kept = count < room ? count : room;
    memcpy(json->text + json->length, bytes, kept);
    json->length += kept;
    json->is_cut = json->is_cut || kept < count;
}

static void keep_character(pc_json *json, unsigned c) {
    char bytes[4];
    size_t count = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    static const unsigned char lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (size_t i = count - 1; i > 0; i--, c >>= 6) bytes[i] = (char)(0x80 | (c & 0x3f));
    bytes[0] = (char)(lead[count] | c);
    keep(json, bytes, count);
}

static int hex_digit(int c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static pc_code read_hex(pc_json *json, unsigned *unit, pc_error *error) {
    *unit = 0;
    for (int i = 0; i < 4; i++) {
        int byte = peek(json, error), digit = hex_digit(byte);
        if (digit < 0) return refuse(json, byte, "four hexadecimal digits behind \\u", error);
        *unit = *unit << 4 | (unsigned)digit;
        json->next++;
    }
    return PC_OK;
}

/* Behind "\u": one unit, or two that are one character; a half alone becomes U+FFFD. */
static pc_code read_unicode(pc_json *json, pc_error *error) {
    unsigned unit, low;
    pc_code code = read_hex(json, &unit, error);
    while (!code && unit >= 0xd800 && unit < 0xdc00) {
        int byte = peek(json, error);
        if (byte == FAILED) return refuse(json, byte, "", error);
        if (byte != '\\') break;
        json->next++;
        byte = peek(json, error);
        if (byte != 'u') {
            keep_character(json, 0xfffd);
            return refuse(json, byte, "\\u with the other half of a character", error);
        }
        json->next++;
        code = read_hex(json, &low, error);
        bool is_pair = !code && low >= 0xdc00 && low < 0xe000;
        if (is_pair) return keep_character(json, 0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00)), PC_OK;
        keep_character(json, 0xfffd);
        unit = low;
    }
    if (!code) keep_character(json, unit >= 0xd800 && unit < 0xe000 ? 0xfffd : unit);
    return code;
}

/* Behind a backslash. */
static pc_code read_escape(pc_json *json, pc_error *error) {
    static const char names[] = "\"\\/bfnrt", characters[] = "\"\\/\b\f\n\r\t";
    int byte = peek(json, error);
    const char *name = byte > 0 ? strchr(names, byte) : NULL;
    if (!name && byte != 'u') return refuse(json, byte, "one of \"\\/bfnrtu behind a backslash", error);
    json->next++;
    if (!name) return read_unicode(json, error);
    keep(json, &characters[name - names], 1);
    return PC_OK;
}

/* Up to the quote that ends it; the first one is read. */
static pc_code read_text(pc_json *json, pc_error *error) {
    json->length = 0;
    json->is_cut = false;
    for (;;) {
        int byte = peek(json, error);
        const char *from = json->next;
        if (byte < ' ') return refuse(json, byte, "a text that ends in a quote, without control characters", error);
        while (json->next < json->end && *json->next != '"' && *json->next != '\\' && (unsigned char)*json->next >= ' ')
            json->next++;
        keep(json, from, (size_t)(json->next - from));
        if (json->next == json->end || (unsigned char)*json->next < ' ') continue;
        if (*json->next++ == '"') break;
        pc_code code = read_escape(json, error);
        if (code) return code;
    }
    json->text[json->length] = '\0';
    return PC_OK;
}

/* ---- numbers and words ---- */

static bool is_in_word(int c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '+' ||
           c == '.';
}

static const char *pass_digits(const char *c) {
    while (*c >= '0' && *c <= '9') c++;
    return c;
}

/* As JSON has it: no zeros in front, digits on both sides of the point. */
static bool is_number(const char *text) {
    const char *c = text + (*text == '-'), *begin = c;
    c = pass_digits(c);
    if (c == begin || (*begin == '0' && c > begin + 1)) return false;
    if (*c == '.') {
        begin = ++c;
        c = pass_digits(c);
        if (c == begin) return false;
    }
    if (*c == 'e' || *c == 'E') {
        c += c[1] == '+' || c[1] == '-' ? 2 : 1;
        begin = c;
        c = pass_digits(c);
        if (c == begin) return false;
    }
    return *c == '\0';
}

static bool kind_of_word(const char *word, pc_json_kind *kind) {
    static const struct {
        const char *word;
        pc_json_kind kind;
    } known[] = {{"true", PC_JSON_TRUE},      {"false", PC_JSON_FALSE},   {"null", PC_JSON_NULL},
                 {"NaN", PC_JSON_NULL},       {"nan", PC_JSON_NULL},      {"-nan", PC_JSON_NULL},
                 {"inf", PC_JSON_NULL},       {"-inf", PC_JSON_NULL},     {"Infinity", PC_JSON_NULL},
                 {"-Infinity", PC_JSON_NULL}, {"undefined", PC_JSON_NULL}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(word, known[i].word) == 0) return *kind = known[i].kind, true;
    *kind = PC_JSON_NUMBER;
    return is_number(word);
}

static pc_code read_word(pc_json *json, pc_json_kind *kind, pc_error *error) {
    json->length = 0;
    json->is_cut = false;
    int byte;
    while ((byte = peek(json, error)) >= 0 && is_in_word(byte)) {
        const char *from = json->next;
        while (json->next < json->end && is_in_word(*json->next)) json->next++;
        keep(json, from, (size_t)(json->next - from));
    }
    json->text[json->length] = '\0';
    if (byte == FAILED || json->length == 0) return refuse(json, byte, "a value", error);
    if (!json->is_cut && kind_of_word(json->text, kind)) return PC_OK;
    pc_error_set(error, PC_ERROR_INPUT, "%.40s; expected a number, a text, a list, an object, true, false or null",
                 json->text);
    if (error) error->line = json->line;
    return PC_ERROR_INPUT;
}

/* ---- tokens ---- */

static pc_code open_level(pc_json *json, bool is_object, pc_error *error) {
    if (json->depth == PC_JSON_DEPTH_MAX) {
        pc_error_set(error, PC_ERROR_INPUT, "lists and objects nested over %d deep; expected at most that",
                     PC_JSON_DEPTH_MAX);
        if (error) error->line = json->line;
        return PC_ERROR_INPUT;
    }
    uint64_t bit = UINT64_C(1) << json->depth++;
    json->is_object = is_object ? json->is_object | bit : json->is_object & ~bit;
    json->expects = is_object ? FIRST_KEY : FIRST_VALUE;
    json->next++;
    return PC_OK;
}

static bool is_in_object(const pc_json *json) {
    return json->depth > 0 && (json->is_object >> (json->depth - 1) & 1);
}

static pc_json_kind close_level(pc_json *json) {
    bool was_object = is_in_object(json);
    json->depth--;
    json->expects = COMMA_OR_CLOSE;
    json->next++;
    return was_object ? PC_JSON_OBJECT_END : PC_JSON_LIST_END;
}

static pc_code read_value(pc_json *json, int byte, pc_json_kind *kind, pc_error *error) {
    if (byte == '{' || byte == '[') {
        *kind = byte == '{' ? PC_JSON_OBJECT : PC_JSON_LIST;
        return open_level(json, byte == '{', error);
    }
    json->expects = COMMA_OR_CLOSE;
    if (byte != '"') return read_word(json, kind, error);
    json->next++;
    *kind = PC_JSON_TEXT;
    return read_text(json, error);
}

static pc_code read_key(pc_json *json, int byte, pc_error *error) {
    if (byte != '"') return refuse(json, byte, "a key in quotes", error);
    json->next++;
    json->expects = COLON;
    return read_text(json, error);
}

/* Passes over what stands between tokens; *byte is what then stands next. */
static pc_code pass_between(pc_json *json, int *byte, pc_error *error) {
    *byte = peek_word(json, error);
    if (json->expects == COLON) {
        if (*byte != ':') return refuse(json, *byte, "a colon behind a key", error);
        json->next++;
        json->expects = VALUE;
        *byte = peek_word(json, error);
    } else if (json->expects == COMMA_OR_CLOSE && json->depth > 0 && *byte == ',') {
        json->next++;
        json->expects = is_in_object(json) ? KEY : VALUE;
        *byte = peek_word(json, error);
    }
    return *byte == FAILED ? refuse(json, *byte, "", error) : PC_OK;
}

static bool closes(const pc_json *json, int byte) {
    bool may_close = json->expects == COMMA_OR_CLOSE || json->expects == FIRST_KEY || json->expects == FIRST_VALUE;
    return may_close && json->depth > 0 && byte == (is_in_object(json) ? '}' : ']');
}

static pc_code read_token(pc_json *json, pc_json_kind *kind, pc_error *error) {
    int byte;
    pc_code code = pass_between(json, &byte, error);
    if (code) return code;
    if (closes(json, byte)) return *kind = close_level(json), PC_OK;
    if (json->expects == KEY || json->expects == FIRST_KEY) {
        *kind = PC_JSON_KEY;
        return read_key(json, byte, error);
    }
    if (json->expects != COMMA_OR_CLOSE) return read_value(json, byte, kind, error);
    if (json->depth > 0) return refuse(json, byte, is_in_object(json) ? "',' or '}'" : "',' or ']'", error);
    *kind = PC_JSON_END;
    return byte == NO_MORE ? PC_OK : refuse(json, byte, "nothing behind the value", error);
}

pc_code pc_json_next(pc_json *json, pc_json_token *token, pc_error *error) {
    pc_json_kind kind = PC_JSON_END;
    pc_code code = read_token(json, &kind, error);
    if (code) return code;
    bool has_text = kind == PC_JSON_KEY || kind == PC_JSON_TEXT || kind == PC_JSON_NUMBER;
    *token = (pc_json_token){.kind = kind,
                             .text = has_text ? json->text : "",
                             .length = has_text ? json->length : 0,
                             .is_cut = has_text && json->is_cut};
    return PC_OK;
}

pc_code pc_json_skip(pc_json *json, const pc_json_token *token, pc_error *error) {
    pc_json_token inner = *token;
    pc_code code = PC_OK;
    if (inner.kind == PC_JSON_KEY) code = pc_json_next(json, &inner, error);
    if (code || (inner.kind != PC_JSON_OBJECT && inner.kind != PC_JSON_LIST)) return code;
    for (int depth = json->depth - 1; !code && json->depth > depth;) code = pc_json_next(json, &inner, error);
    return code;
}
