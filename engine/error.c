#define _GNU_SOURCE /* uselocale */
#include "engine/error.h"

#include "engine/character.h"

#include <errno.h>
#include <locale.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum {
    WHOLE_SIZE = 4 * PC_ERROR_MESSAGE_SIZE + 8192,   /* of a text before it is cut: two paths and more */
    FAIR_SIZE = PC_ERROR_PARTS_SIZE / PC_ERROR_PARTS /* of a part, that is never cut */
};

_Static_assert(sizeof(pc_error) <= 2560, "errors lie on the stacks of many threads");

/* The parts of an error, wherever they lie. */
typedef struct texts {
    const char *part[PC_ERROR_PARTS];
} texts;

void pc_error_make_plain(char *text) {
    char *to = text;
    for (const char *at = text; *at;) {
        const char *from = at;
        unsigned character = pc_utf8_next(&at);
        size_t length = (size_t)(at - from);
        bool is_valid = character != PC_NO_CHARACTER || length > 1;
        if (!is_valid || !pc_character_is_shown(character)) {
            *to++ = '?';
            continue;
        }
        memmove(to, from, length);
        to += length;
    }
    *to = '\0';
}

static size_t format_all(char *text, size_t size, const char *format, va_list arguments) {
    locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0), before = plain ? uselocale(plain) : plain;
    int length = vsnprintf(text, size, format, arguments);
    if (plain) { /* else there is no memory for it; the C library keeps this one ready */
        uselocale(before);
        freelocale(plain);
    }
    return length > 0 ? (size_t)length : 0;
}

void pc_write_message(char *text, size_t size, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    format_all(text, size, format, arguments);
    va_end(arguments);
}

/* ---- the line ---- */

static const char gap[] = " ... ";

static size_t least(size_t a, size_t b) {
    return a < b ? a : b;
}

/* Both ends of a text that is too long; one that was cut before is cut where it was. */
static void join_ends(char *to, size_t size, const char *text, size_t length) {
    const char *seam = strstr(text, gap);
    size_t kept = size - sizeof gap, head = seam ? (size_t)(seam - text) : length;
    size_t tail = seam ? length - head - (sizeof gap - 1) : length;
    head = least(head, kept - least(tail, kept / 2));
    tail = least(tail, kept - head);
    snprintf(to, size, "%.*s%s%s", (int)head, text, gap, text + length - tail);
}

/* As much of a text as there is room for, made plain. Of what is too long the middle goes: where it happened stands at
 * the beginning, what happened at the end. */
static void cut(char *to, size_t size, const char *text) {
    size_t length = strlen(text);
    if (length < size)
        memmove(to, text, length + 1);
    else
        join_ends(to, size, text, length);
    pc_error_make_plain(to);
}

static void format_part(char part[PC_ERROR_PARTS_SIZE], const char *format, va_list arguments) {
    char whole[WHOLE_SIZE];
    format_all(whole, sizeof whole, format, arguments);
    cut(part, PC_ERROR_PARTS_SIZE, whole);
}

/* A line that grows; its room is enough for all that an error holds, and once more for its parts. */
typedef struct line_text {
    char text[2 * PC_ERROR_PARTS_SIZE + 64];
    size_t used;
} line_text;

static void add(line_text *line, const char *separator, const char *text) {
    if (text[0] == '\0') return;
    int more =
        snprintf(line->text + line->used, sizeof line->text - line->used, "%s%s", line->used ? separator : "", text);
    line->used += (size_t)more;
}

/* Where it was, from the outside to the inside. */
static void add_way(line_text *line, const pc_error *error, const texts *own) {
    char number[16];
    snprintf(number, sizeof number, ":%u", error->line);
    add(line, ": ", own->part[PC_ERROR_PART_AROUND]);
    add(line, ": ", own->part[PC_ERROR_PART_FILE]);
    if (own->part[PC_ERROR_PART_FILE][0] && error->line) add(line, "", number);
    add(line, ": ", own->part[PC_ERROR_PART_KEY]);
    add(line, ": ", own->part[PC_ERROR_PART_WITHIN]);
}

static texts texts_of(const pc_error *error) {
    texts own;
    const char *at = error->parts;
    for (int i = 0; i < PC_ERROR_PARTS; i++, at += strlen(at) + 1) own.part[i] = at;
    return own;
}

/* The one place that writes a message. */
static void write_message(pc_error *error) {
    texts own = texts_of(error);
    line_text line = {.used = 0};
    add_way(&line, error, &own);
    add(&line, ": ", own.part[PC_ERROR_PART_WHAT]);
    add(&line, "; expected ", own.part[PC_ERROR_PART_EXPECTED]);
    add(&line, "; ", own.part[PC_ERROR_PART_NOTE]);
    cut(error->message, sizeof error->message, line.text);
}

/* ---- the parts ---- */

/* How many bytes each may have; of what is too much for an error the longest give. */
static void share_room(const texts *given, size_t size[PC_ERROR_PARTS]) {
    size_t sum = 0;
    for (int i = 0; i < PC_ERROR_PARTS; i++) sum += size[i] = strlen(given->part[i]) + 1;
    while (sum > PC_ERROR_PARTS_SIZE) {
        size_t *longest = size, excess = sum - PC_ERROR_PARTS_SIZE;
        for (int i = 1; i < PC_ERROR_PARTS; i++)
            if (size[i] > *longest) longest = &size[i];
        size_t less = *longest > excess + FAIR_SIZE ? *longest - excess : FAIR_SIZE;
        sum -= *longest - less;
        *longest = less;
    }
}

/* The texts may lie in the error. */
static void keep(pc_error *error, const texts *given) {
    char packed[PC_ERROR_PARTS_SIZE] = "";
    size_t size[PC_ERROR_PARTS], used = 0;
    share_room(given, size);
    for (int i = 0; i < PC_ERROR_PARTS; i++) {
        cut(packed + used, size[i], given->part[i]);
        used += strlen(packed + used) + 1;
    }
    memcpy(error->parts, packed, sizeof packed);
    write_message(error);
}

const char *pc_error_part_of(const pc_error *error, pc_error_part part) {
    return texts_of(error).part[part];
}

/* ---- what was wrong ---- */

/* Ends `whole`, which the format made, in front of what was expected, if the format says that; returns it, or "". */
static const char *split(char *whole, const char *format, va_list arguments) {
    static const char mark[] = "; expected ";
    char start[PC_ERROR_MESSAGE_SIZE];
    const char *end = strstr(format, mark);
    if (!end || (size_t)(end - format) >= sizeof start) return "";
    snprintf(start, sizeof start, "%.*s", (int)(end - format), format);
    size_t length = format_all(NULL, 0, start, arguments);
    if (strlen(whole) < length + sizeof mark - 1) return "";
    whole[length] = '\0';
    return whole + length + sizeof mark - 1;
}

pc_code pc_error_set_list(pc_error *error, pc_code code, const char *format, va_list arguments) {
    char whole[WHOLE_SIZE];
    va_list again;
    if (!error) return code;
    va_copy(again, arguments);
    format_all(whole, sizeof whole, format, arguments);
    const char *expected = split(whole, format, again);
    va_end(again);
    error->code = code;
    error->is_rule = false;
    error->line = 0;
    keep(error, &(texts){{"", "", "", "", whole, expected, ""}});
    return code;
}

pc_code(pc_error_set)(pc_error *error, pc_code code, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    pc_error_set_list(error, code, format, arguments);
    va_end(arguments);
    return code;
}

pc_code(pc_error_blame)(pc_error *error, const char *key, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    pc_error_set_list(error, PC_ERROR_INPUT, format, arguments);
    va_end(arguments);
    pc_error_set_key(error, key);
    return PC_ERROR_INPUT;
}

pc_code pc_error_copy(pc_error *error, const pc_error *cause) {
    if (error && error != cause) *error = *cause;
    return cause->code;
}

/* ---- where it was ---- */

/* What was the place, and stood around it, is now a part of the way to the fault. */
static void move_inside(pc_error *error) {
    texts own = texts_of(error);
    line_text way = {.used = 0};
    add_way(&way, error, &own);
    own.part[PC_ERROR_PART_AROUND] = own.part[PC_ERROR_PART_FILE] = own.part[PC_ERROR_PART_KEY] = "";
    own.part[PC_ERROR_PART_WITHIN] = way.text;
    error->line = 0;
    keep(error, &own);
}

void pc_error_replace(pc_error *error, const char *file, unsigned line, const char *key) {
    if (!error) return;
    texts own = texts_of(error);
    own.part[PC_ERROR_PART_FILE] = file;
    own.part[PC_ERROR_PART_KEY] = key;
    error->line = line;
    keep(error, &own);
}

static bool has_file(const pc_error *error) {
    return error && pc_error_part_of(error, PC_ERROR_PART_FILE)[0];
}

void pc_error_place(pc_error *error, const char *file, unsigned line, const char *key) {
    bool is_placed = has_file(error) || (error && pc_error_part_of(error, PC_ERROR_PART_AROUND)[0]);
    if (is_placed) move_inside(error);
    pc_error_replace(error, file, line, key);
}

void pc_error_set_key(pc_error *error, const char *key) {
    if (error) pc_error_replace(error, pc_error_part_of(error, PC_ERROR_PART_FILE), error->line, key);
}

pc_code pc_error_copy_blame(pc_error *error, const char *key, const pc_error *cause) {
    pc_error_copy(error, cause);
    if (error) move_inside(error);
    pc_error_set_key(error, key);
    return cause->code;
}

void pc_error_prefix(pc_error *error, const char *format, ...) {
    char prefix[PC_ERROR_PARTS_SIZE];
    line_text text = {.used = 0};
    va_list arguments;
    if (!error) return;
    va_start(arguments, format);
    format_part(prefix, format, arguments);
    va_end(arguments);
    texts own = texts_of(error);
    bool has_place = own.part[PC_ERROR_PART_FILE][0] || own.part[PC_ERROR_PART_KEY][0];
    const char **outer = &own.part[has_place ? PC_ERROR_PART_AROUND : PC_ERROR_PART_WITHIN];
    add(&text, "", prefix);
    add(&text, ": ", *outer);
    *outer = text.text;
    keep(error, &own);
}

void pc_error_note(pc_error *error, const char *format, ...) {
    char note[PC_ERROR_PARTS_SIZE];
    line_text notes = {.used = 0};
    va_list arguments;
    if (!error) return;
    va_start(arguments, format);
    format_part(note, format, arguments);
    va_end(arguments);
    texts own = texts_of(error);
    add(&notes, "", own.part[PC_ERROR_PART_NOTE]);
    add(&notes, "; ", note);
    own.part[PC_ERROR_PART_NOTE] = notes.text;
    keep(error, &own);
}

/* ---- those that come often ---- */

pc_code(pc_error_set_file)(pc_error *error, pc_code code, const char *path, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    pc_error_set_list(error, code, format, arguments);
    va_end(arguments);
    pc_error_place(error, *path ? path : "''", 0, "");
    return code;
}

pc_code(pc_error_refuse)(pc_error *error, const char *file, unsigned line, const char *key, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    pc_error_set_list(error, PC_ERROR_INPUT, format, arguments);
    va_end(arguments);
    pc_error_place(error, file, line, key);
    return PC_ERROR_INPUT;
}

pc_code(pc_error_file)(pc_error *error, const char *path, int cause, const char *expected) {
    static const int faults_of_machine[] = {EIO, EMFILE, ENFILE, ENOBUFS, EAGAIN, EINTR, ESTALE};
    pc_code code = PC_ERROR_INPUT;
    if (cause == ENOMEM) return pc_error_no_memory(error);
    for (size_t i = 0; i < sizeof faults_of_machine / sizeof *faults_of_machine; i++)
        if (cause == faults_of_machine[i]) code = PC_ERROR_IO;
    if (code == PC_ERROR_IO) return pc_error_set_file(error, code, path, "%s", strerror(cause));
    return pc_error_set_file(error, code, path, "%s; expected %s", strerror(cause), expected);
}

pc_code(pc_error_no_memory)(pc_error *error) {
    return pc_error_set(error, PC_ERROR_NO_MEMORY, "out of memory: the allocation was refused");
}
