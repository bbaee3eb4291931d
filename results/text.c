#define _GNU_SOURCE /* uselocale */
#include "results/text.h"

#include "engine/alloc.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool make_room(pc_text *text, size_t more) {
    if (text->failed) return false;
    if (more < text->capacity - text->size) return true; /* with room for the terminating zero */
    size_t capacity = text->capacity < 128 ? 256 : text->capacity * 2;
    if (capacity <= text->size + more) capacity = text->size + more + 1;
    char *data = pc_realloc(text->data, capacity, 1);
    if (!data) return text->failed = true, false;
    text->data = data;
    text->capacity = capacity;
    return true;
}

void pc_text_add(pc_text *text, const char *bytes, size_t size) {
    if (!make_room(text, size)) return;
    memcpy(text->data + text->size, bytes, size);
    text->size += size;
    text->data[text->size] = '\0';
}

void pc_text_printf(pc_text *text, const char *format, ...) {
    char piece[512]; /* what most calls need; longer ones are written again, in place */
    va_list arguments;
    va_start(arguments, format);
    int size = vsnprintf(piece, sizeof piece, format, arguments);
    va_end(arguments);
    if (size < 0) return (void)(text->failed = true);
    if ((size_t)size < sizeof piece) return pc_text_add(text, piece, (size_t)size);
    if (!make_room(text, (size_t)size)) return;
    va_start(arguments, format);
    vsnprintf(text->data + text->size, (size_t)size + 1, format, arguments);
    va_end(arguments);
    text->size += (size_t)size;
}

void pc_text_free(pc_text *text) {
    pc_free(text->data);
    *text = (pc_text){0};
}

enum { NO_CHARACTER = 0xFFFD };

/* The length of the sequence that `lead` starts, and the bits of the character it holds; 0 where it starts none. */
static int sequence_length(unsigned char lead, unsigned *bits) {
    if (lead < 0x80) return *bits = lead, 1;
    if (lead >= 0xC2 && lead <= 0xDF) return *bits = lead & 0x1F, 2;
    if ((lead & 0xF0) == 0xE0) return *bits = lead & 0x0F, 3;
    if (lead >= 0xF0 && lead <= 0xF4) return *bits = lead & 0x07, 4;
    return 0;
}

/* Surrogates, numbers past Unicode's end, and characters written longer than need be are not valid. */
static bool is_valid(unsigned character, int length) {
    static const unsigned least[] = {0, 0, 0x80, 0x800, 0x10000};
    bool surrogate = character >= 0xD800 && character <= 0xDFFF;
    return character >= least[length] && character <= 0x10FFFF && !surrogate;
}

unsigned pc_utf8_next(const char **bytes) {
    const unsigned char *at = (const unsigned char *)*bytes;
    unsigned character;
    int length = sequence_length(*at, &character);
    for (int i = 1; i < length; i++) {
        if ((at[i] & 0xC0) != 0x80)
            length = 0; /* the text may end here: look no further */
        else
            character = character << 6 | (at[i] & 0x3F);
    }
    bool valid = length > 0 && is_valid(character, length);
    *bytes += valid ? length : 1;
    return valid ? character : NO_CHARACTER;
}

void pc_text_add_character(pc_text *text, unsigned c) {
    char bytes[4];
    size_t size = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    static const unsigned char lead[] = {0, 0, 0xC0, 0xE0, 0xF0};
    for (size_t i = size - 1; i > 0; i--, c >>= 6) bytes[i] = (char)(0x80 | (c & 0x3F));
    bytes[0] = (char)(lead[size] | c);
    pc_text_add(text, bytes, size);
}

void pc_text_add_json(pc_text *text, const char *source) {
    pc_text_add(text, "\"", 1);
    while (*source) {
        unsigned character = pc_utf8_next(&source);
        if (character == '"' || character == '\\')
            pc_text_printf(text, "\\%c", (int)character);
        else if (character < 0x20 || character == 0x7F)
            pc_text_printf(text, "\\u%04x", character);
        else
            pc_text_add_character(text, character);
    }
    pc_text_add(text, "\"", 1);
}

/* Control characters, ends of lines, and U+FFFE and U+FFFF, which are no characters and which XML does not allow. */
static bool is_control(unsigned c) {
    return c < 0x20 || (c >= 0x7F && c < 0xA0) || c == 0x2028 || c == 0x2029 || c == 0xFFFE || c == 0xFFFF;
}

static size_t count_characters(const char *source) {
    size_t count = 0;
    for (; *source; count++) pc_utf8_next(&source);
    return count;
}

void pc_text_add_line(pc_text *text, const char *source, size_t characters) {
    bool cut = count_characters(source) > characters;
    for (size_t left = cut ? characters - 1 : characters; *source && left > 0; left--) {
        unsigned character = pc_utf8_next(&source);
        pc_text_add_character(text, is_control(character) ? '?' : character);
    }
    if (cut) pc_text_add_character(text, 0x2026);
}

size_t pc_utf8_length(const char *text) {
    return count_characters(text);
}

bool pc_number_scope_enter(pc_number_scope *scope) {
    scope->plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (!scope->plain) return false;
    scope->before = uselocale(scope->plain);
    return true;
}

void pc_number_scope_leave(pc_number_scope *scope) {
    uselocale(scope->before);
    freelocale(scope->plain);
    *scope = (pc_number_scope){0};
}

void pc_number_format(double value, char text[PC_NUMBER_SIZE]) {
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, PC_NUMBER_SIZE, "%.*g", digits, value);
        if (digits == 17 || strtod(text, NULL) == value) return; /* 17 are always enough */
    }
}
