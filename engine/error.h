/* error.h: the one way in which a function of the library says that it could not do its work.
 *
 * A function that can fail returns a pc_code and takes a `pc_error *` last, which may be NULL. The function that first
 * knows the cause writes the message; callers pass it on, or say where it was (pc_error_place, pc_error_prefix).
 * Outputs are written on success only. A fault of ours aborts (assert); bad input, a full disk or a lack of memory
 * never does. The library neither prints nor exits.
 */
#ifndef PC_ENGINE_ERROR_H
#define PC_ENGINE_ERROR_H

#include "engine/marks.h"

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum pc_code {
    PC_OK = 0,
    PC_ERROR_INPUT,     /* what the user gave is wrong: a file, a key, a value, a combination */
    PC_ERROR_NO_MEMORY, /* the allocator gave nothing */
    PC_ERROR_IO,        /* the machine's fault: disk, pipe, a missing program */
    PC_ERROR_STOPPED,   /* the caller wanted no more of it */
} pc_code;

enum { PC_ERROR_MESSAGE_SIZE = 1024, PC_ERROR_PLACE_SIZE = 256 };

/* What went wrong, and where, as far as that is known. All zero is "no error". */
typedef struct pc_error {
    pc_code code;
    bool is_rule;                   /* every value is fine, but they contradict each other */
    unsigned line;                  /* from 1; 0: none */
    unsigned what;                  /* where in `message` it says what went wrong: behind the place */
    char file[PC_ERROR_PLACE_SIZE]; /* or "--set KEY=VALUE"; "": none */
    char key[PC_ERROR_PLACE_SIZE];  /* "stages[5].W": of `file`; without one, which key is to blame wherever it is */
    char message[PC_ERROR_MESSAGE_SIZE]; /* one line, without a newline at its end; of longer ones the middle is cut */
} pc_error;

/* Writes code and message into `error` (where not NULL) and returns `code`, so that a caller can
 * `return pc_error_set(error, PC_ERROR_INPUT, "...")`. The message becomes plain, as below. */
pc_code pc_error_set(pc_error *error, pc_code code, const char *format, ...) PC_PRINTF(3, 4);

/* The same of what the user gave under a key: PC_ERROR_INPUT. The message does not name the key: who knows in which
 * file it stands says where, by pc_error_place. */
pc_code pc_error_blame(pc_error *error, const char *key, const char *format, ...) PC_PRINTF(3, 4);

/* Says where it was: puts "<file>:<line>: <key>: " in front of the message that stands in `error` (where not NULL); a
 * line of 0 and an empty key are left out. */
void pc_error_place(pc_error *error, const char *file, unsigned line, const char *key);

/* The same in place of the place that stands there. */
void pc_error_replace(pc_error *error, const char *file, unsigned line, const char *key);

/* As snprintf, but with a decimal point in whatever locale the program has taken; for messages that are no errors. */
void pc_write_message(char *text, size_t size, const char *format, ...) PC_PRINTF(3, 4);

/* What may not be shown (character.h: a terminal would obey it, a line would end, text would turn around) and bytes
 * that are no UTF-8 become one '?' each, in place; so that a file's name can be shown. */
void pc_error_make_plain(char *text);

/* Puts "<prefix>: " in front of the message that stands in `error` (where not NULL). */
void pc_error_prefix(pc_error *error, const char *format, ...) PC_PRINTF(2, 3);

/* The same for a file that cannot be opened or read, `cause` being errno: "<path>: <why>; expected <expected>" and
 * PC_ERROR_INPUT; but where the machine fails, not what the user named, PC_ERROR_NO_MEMORY or PC_ERROR_IO. */
pc_code pc_error_file(pc_error *error, const char *path, int cause, const char *expected);

/* The same for the one cause that needs no words: returns PC_ERROR_NO_MEMORY. */
pc_code pc_error_no_memory(pc_error *error);

/* clang's analyzer sees one file at a time: here it learns that these never return PC_OK. */
#ifdef __clang_analyzer__
#define pc_error_set(error, code, ...)              ((void)(pc_error_set)(error, code, __VA_ARGS__), (code))
#define pc_error_blame(error, key, ...)             ((void)(pc_error_blame)(error, key, __VA_ARGS__), PC_ERROR_INPUT)
#define pc_error_no_memory(error)                   ((void)(pc_error_no_memory)(error), PC_ERROR_NO_MEMORY)
#define pc_error_file(error, path, cause, expected) ((void)(pc_error_file)(error, path, cause, expected), PC_ERROR_IO)
#endif

#ifdef __cplusplus
}
#endif
#endif
