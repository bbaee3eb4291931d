#define _GNU_SOURCE /* uselocale */
#include "storage/text.h"

#include "engine/alloc.h"
#include "engine/character.h"

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

void pc_text_add_character(pc_text *text, unsigned c) {
    char bytes[4];
    size_t size = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    static const unsigned char lead[] = {0, 0, 0xC0, 0xE0, 0xF0};
    for (size_t i = size - 1; i > 0; i--, c >>= 6) bytes[i] = (char)(0x80 | (c & 0x3F));
    bytes[0] = (char)(lead[size] | c);
    pc_text_add(text, bytes, size);
}

/* As JSON escapes it: in two halves where it does not fit into one (RFC 8259, section 7). */
static void add_escape(pc_text *text, unsigned character) {
    if (character < 0x10000) return pc_text_printf(text, "\\u%04x", character);
    unsigned rest = character - 0x10000;
    pc_text_printf(text, "\\u%04x\\u%04x", 0xD800 + (rest >> 10), 0xDC00 + (rest & 0x3FF));
}

void pc_text_add_json(pc_text *text, const char *source) {
    pc_text_add(text, "\"", 1);
    while (*source) {
        unsigned character = pc_utf8_next(&source);
        if (character == '"' || character == '\\')
            pc_text_printf(text, "\\%c", (int)character);
        else if (!pc_character_is_shown(character))
            add_escape(text, character);
        else
            pc_text_add_character(text, character);
    }
    pc_text_add(text, "\"", 1);
}

void pc_text_add_csv(pc_text *text, const char *source) {
    bool quoted = strpbrk(source, ",\"\r\n") || source[0] == ' ' || (source[0] && source[strlen(source) - 1] == ' ');
    if (quoted) pc_text_add(text, "\"", 1);
    while (*source) {
        unsigned character = pc_utf8_next(&source);
        if (character == '"') pc_text_add(text, "\"", 1);
        pc_text_add_character(text, character);
    }
    if (quoted) pc_text_add(text, "\"", 1);
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
        pc_text_add_character(text, pc_character_is_shown(character) ? character : '?');
    }
    if (cut) pc_text_add_character(text, 0x2026);
}

void pc_text_add_count(pc_text *text, double number) {
    static const char units[] = "KMBT";
    int unit = -1;
    for (; number >= 999.95 && unit < 3; unit++) number /= 1000.0; /* which would be written as 1000.0 */
    if (unit < 0)
        pc_text_printf(text, "%.6g", number);
    else
        pc_text_printf(text, "%.*f%c", number < 99.995 ? 2 : 1, number, units[unit]);
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
