#define _GNU_SOURCE /* uselocale */
#include "engine/error.h"

#include "engine/character.h"

#include <errno.h>
#include <locale.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { WHOLE_SIZE = 4 * PC_ERROR_MESSAGE_SIZE + 8192 }; /* of a message before it is cut: two paths and more */

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

static void format_all(char *text, size_t size, const char *format, va_list arguments) {
    locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0), before = plain ? uselocale(plain) : plain;
    vsnprintf(text, size, format, arguments);
    if (!plain) return; /* no memory for it; the C library keeps this one ready */
    uselocale(before);
    freelocale(plain);
}

void pc_write_message(char *text, size_t size, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    format_all(text, size, format, arguments);
    va_end(arguments);
}

/* Of what is too long the middle goes: where it happened stands at the beginning, what happened at the end. */
static void keep(pc_error *error, const char *whole) {
    static const char gap[] = " ... ";
    size_t length = strlen(whole), room = sizeof error->message - 1, half = (room - (sizeof gap - 1)) / 2;
    if (length <= room)
        memcpy(error->message, whole, length + 1);
    else
        snprintf(error->message, sizeof error->message, "%.*s%s%s", (int)(room - (sizeof gap - 1) - half), whole, gap,
                 whole + length - half);
    pc_error_make_plain(error->message);
}

static pc_code set(pc_error *error, pc_code code, const char *format, va_list arguments) {
    char whole[WHOLE_SIZE];
    format_all(whole, sizeof whole, format, arguments);
    error->code = code;
    error->is_rule = false;
    error->line = error->what = 0;
    error->file[0] = error->key[0] = '\0';
    keep(error, whole);
    return code;
}

pc_code(pc_error_set)(pc_error *error, pc_code code, const char *format, ...) {
    if (!error) return code;
    va_list arguments;
    va_start(arguments, format);
    set(error, code, format, arguments);
    va_end(arguments);
    return code;
}

pc_code(pc_error_blame)(pc_error *error, const char *key, const char *format, ...) {
    if (!error) return PC_ERROR_INPUT;
    va_list arguments;
    va_start(arguments, format);
    set(error, PC_ERROR_INPUT, format, arguments);
    va_end(arguments);
    snprintf(error->key, sizeof error->key, "%s", key);
    return PC_ERROR_INPUT;
}

/* "<prefix>: " in front of what stands in the message from `what` on, which is there in the end, too. */
static void put_in_front(pc_error *error, char whole[WHOLE_SIZE], size_t what) {
    pc_error_make_plain(whole);
    size_t used = strlen(whole), length = strlen(error->message);
    snprintf(whole + used, WHOLE_SIZE - used, ": %s", error->message + (what < length ? what : length));
    keep(error, whole);
    error->what = (unsigned)used + 2;
}

void pc_error_prefix(pc_error *error, const char *format, ...) {
    if (!error) return;
    char whole[WHOLE_SIZE];
    enum { REST = sizeof error->message + 2 };
    va_list arguments;
    va_start(arguments, format);
    format_all(whole, sizeof whole - REST, format, arguments);
    va_end(arguments);
    put_in_front(error, whole, 0);
}

static void place(pc_error *error, const char *file, unsigned line, const char *key, size_t what) {
    char whole[WHOLE_SIZE], number[16] = "";
    if (line) snprintf(number, sizeof number, ":%u", line);
    snprintf(whole, sizeof whole, "%.*s%s%s%.*s", PC_ERROR_PLACE_SIZE, file, number, *key ? ": " : "",
             PC_ERROR_PLACE_SIZE, key);
    put_in_front(error, whole, what);
    error->line = line;
    snprintf(error->file, sizeof error->file, "%s", file);
    if (key != error->key) snprintf(error->key, sizeof error->key, "%s", key);
}

void pc_error_place(pc_error *error, const char *file, unsigned line, const char *key) {
    if (error) place(error, file, line, key, 0);
}

void pc_error_replace(pc_error *error, const char *file, unsigned line, const char *key) {
    if (error) place(error, file, line, key, error->what);
}

pc_code(pc_error_file)(pc_error *error, const char *path, int cause, const char *expected) {
    static const int faults_of_machine[] = {EIO, EMFILE, ENFILE, ENOBUFS, EAGAIN, EINTR, ESTALE};
    if (cause == ENOMEM) return pc_error_no_memory(error);
    for (size_t i = 0; i < sizeof faults_of_machine / sizeof *faults_of_machine; i++)
        if (cause == faults_of_machine[i]) return pc_error_set(error, PC_ERROR_IO, "%s: %s", path, strerror(cause));
    return pc_error_set(error, PC_ERROR_INPUT, "%s: %s; expected %s", path, strerror(cause), expected);
}

pc_code(pc_error_no_memory)(pc_error *error) {
    return pc_error_set(error, PC_ERROR_NO_MEMORY, "out of memory: the allocation was refused");
}
