/* text.h: a text that grows, UTF-8 made valid, numbers that no locale changes. */
#ifndef PC_STORAGE_TEXT_H
#define PC_STORAGE_TEXT_H

#include "engine/marks.h"

#include <locale.h>
#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Zero it to start. Once an allocation fails the text stays as it is and `failed` stays true, so that a writer checks
 * once, at its end. */
typedef struct pc_text {
    char *data; /* terminated; NULL if nothing was added; freed by pc_text_free */
    size_t size;
    size_t capacity;
    bool failed;
} pc_text;

void pc_text_add(pc_text *text, const char *bytes, size_t size);
void pc_text_printf(pc_text *text, const char *format, ...) PC_PRINTF(2, 3);
void pc_text_free(pc_text *text);

/* Adds `character` as UTF-8. */
void pc_text_add_character(pc_text *text, unsigned character);

/* Adds at most `characters` of `source`, valid, with a '?' for each that may not be shown (engine/character.h). A text
 * that is longer ends in an ellipsis. */
void pc_text_add_line(pc_text *text, const char *source, size_t characters);

/* Adds `source` as a JSON string, quotes and all; what may not be shown is escaped. */
void pc_text_add_json(pc_text *text, const char *source);

/* Adds `source`, made valid, as a field of CSV: in quotes where it needs them (RFC 4180). */
void pc_text_add_csv(pc_text *text, const char *source);
/* Adds a large number as people say it, "32.76B": with two decimals, of hundreds with one, and K, M, B or T; below a
 * thousand as it is. */
void pc_text_add_count(pc_text *text, double number);

/* How many characters a valid text has: its width on a terminal, near enough. */
size_t pc_utf8_length(const char *text);

/* Between the two, this thread writes and reads numbers with a decimal point, whatever setlocale() was told; other
 * threads are not touched. `scope` is zeroed memory of the caller. False if memory is short. */
typedef struct pc_number_scope {
    locale_t plain, before;
} pc_number_scope;

PC_MUST_USE bool pc_number_scope_enter(pc_number_scope *scope);
void pc_number_scope_leave(pc_number_scope *scope);

enum { PC_NUMBER_SIZE = 32 };

/* The shortest of 15, 16 or 17 digits that reads back as the same double. Call it within a number scope. */
void pc_number_format(double value, char text[PC_NUMBER_SIZE]);

#ifdef __cplusplus
}
#endif
#endif
