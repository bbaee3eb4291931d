/* error.h: the one way in which a function of the library says that it could not do its work.
 *
 * A function that can fail returns a pc_code and takes a `pc_error *` last, which may be NULL. The function that first
 * knows the cause says what was wrong and what was expected; callers pass that on, or say where it was (pc_error_place,
 * pc_error_prefix). An error keeps these as parts, and from them makes its one line: nobody else writes a message, and
 * nobody takes one apart. Outputs are written on success only. A fault of ours aborts (assert); bad input, a full disk
 * or a lack of memory never does. The library neither prints nor exits.
 */
#ifndef PC_ENGINE_ERROR_H
#define PC_ENGINE_ERROR_H

#include "engine/marks.h"

#include <stdarg.h>
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

enum { PC_ERROR_MESSAGE_SIZE = 1024, PC_ERROR_PARTS_SIZE = 1032 };

/* The texts of an error, in the order in which its line has them. */
typedef enum pc_error_part {
    PC_ERROR_PART_AROUND,   /* what was being done, outside of the place: "run 3 (zb-h1)" */
    PC_ERROR_PART_FILE,     /* "own.yaml", or "--set KEY=VALUE" */
    PC_ERROR_PART_KEY,      /* "stages[5].W": of the file, or the key to blame, wherever it is */
    PC_ERROR_PART_WITHIN,   /* the way from the place to the fault: "gpu.yaml:4: memory", "model" */
    PC_ERROR_PART_WHAT,     /* what was wrong: "7 heads do not divide hidden 12" */
    PC_ERROR_PART_EXPECTED, /* what was expected: "a divisor, or head_dim" */
    PC_ERROR_PART_NOTE,     /* what has become of the rest: "its runs are kept in a.h5.journal" */
    PC_ERROR_PARTS
} pc_error_part;

/* What went wrong, and where, as far as that is known. All zero is "no error". */
typedef struct pc_error {
    pc_code code;
    bool is_rule;                        /* every value is fine, but they contradict each other */
    unsigned line;                       /* of the file, from 1; 0: none */
    char parts[PC_ERROR_PARTS_SIZE];     /* pc_error_part_of reads them: each text ends with a 0 byte */
    char message[PC_ERROR_MESSAGE_SIZE]; /* one line, made of all that: "[<around>: ][<file>[:<line>]: ][<key>: ]
                                            [<within>: ]<what>[; expected <expected>][; <note>]" */
} pc_error;

/* One of the texts; "" where there is none. It lies in the error, and moves when that changes. */
const char *pc_error_part_of(const pc_error *error, pc_error_part part);

/* Writes code and texts into `error` (where not NULL) and returns `code`, so that a caller can
 * `return pc_error_set(error, PC_ERROR_INPUT, "%d apples; expected %d", 3, 4)`. What stands behind "; expected " in the
 * format is what was expected; arguments are not searched for it. Texts become plain, as below; of those that are too
 * long for an error the middle goes. */
pc_code pc_error_set(pc_error *error, pc_code code, const char *format, ...) PC_PRINTF(3, 4);
pc_code pc_error_set_list(pc_error *error, pc_code code, const char *format, va_list arguments);

/* The same of what the user gave under a key: PC_ERROR_INPUT. Who knows in which file it stands says so later, by
 * pc_error_place, with the key's whole path. */
pc_code pc_error_blame(pc_error *error, const char *key, const char *format, ...) PC_PRINTF(3, 4);

/* The same with the place at once: of a whole file, and, as PC_ERROR_INPUT, of what stands in one. */
pc_code pc_error_set_file(pc_error *error, pc_code code, const char *path, const char *format, ...) PC_PRINTF(4, 5);
pc_code pc_error_refuse(pc_error *error, const char *file, unsigned line, const char *key, const char *format, ...)
    PC_PRINTF(5, 6);

/* Says which key it is, in place of the one that is there. */
void pc_error_set_key(pc_error *error, const char *key);

/* Writes `cause` into `error` (where not NULL); returns the cause's code. */
pc_code pc_error_copy(pc_error *error, const pc_error *cause);

/* The same where a key is to blame for the cause: where that was is then the way to it. */
pc_code pc_error_copy_blame(pc_error *error, const char *key, const pc_error *cause);

/* Says where it was, for what stands in `error` (where not NULL): "<file>:<line>: <key>: "; a line of 0 and an empty
 * key are left out. A place that is there already becomes a part of the way from the new one to the fault. */
void pc_error_place(pc_error *error, const char *file, unsigned line, const char *key);

/* The same in place of the place that is there. */
void pc_error_replace(pc_error *error, const char *file, unsigned line, const char *key);

/* Says what was being done: "<prefix>: ", in front of all that is in `error` (where not NULL). */
void pc_error_prefix(pc_error *error, const char *format, ...) PC_PRINTF(2, 3);

/* Says at the end what has become of the rest: "; <note>". */
void pc_error_note(pc_error *error, const char *format, ...) PC_PRINTF(2, 3);

/* The error of a file that cannot be opened or read, `cause` being errno: "<path>: <why>; expected <expected>" and
 * PC_ERROR_INPUT; but where the machine fails, not what the user named, PC_ERROR_NO_MEMORY or PC_ERROR_IO. */
pc_code pc_error_file(pc_error *error, const char *path, int cause, const char *expected);

/* That of the one cause that needs no words: returns PC_ERROR_NO_MEMORY. */
pc_code pc_error_no_memory(pc_error *error);

/* As snprintf, but with a decimal point in whatever locale the program has taken; for messages that are no errors. */
void pc_write_message(char *text, size_t size, const char *format, ...) PC_PRINTF(3, 4);

/* What may not be shown (character.h: a terminal would obey it, a line would end, text would turn around) and bytes
 * that are no UTF-8 become one '?' each, in place; so that a file's name can be shown. */
void pc_error_make_plain(char *text);

/* clang's analyzer sees one file at a time: here it learns that these never return PC_OK. */
#ifdef __clang_analyzer__
#define pc_error_set(error, code, ...)            ((void)(pc_error_set)(error, code, __VA_ARGS__), (code))
#define pc_error_blame(error, key, ...)           ((void)(pc_error_blame)(error, key, __VA_ARGS__), PC_ERROR_INPUT)
#define pc_error_set_file(error, code, path, ...) ((void)(pc_error_set_file)(error, code, path, __VA_ARGS__), (code))
#define pc_error_refuse(error, file, line, key, ...)                                                                   \
    ((void)(pc_error_refuse)(error, file, line, key, __VA_ARGS__), PC_ERROR_INPUT)
#define pc_error_no_memory(error)                   ((void)(pc_error_no_memory)(error), PC_ERROR_NO_MEMORY)
#define pc_error_file(error, path, cause, expected) ((void)(pc_error_file)(error, path, cause, expected), PC_ERROR_IO)
#endif

#ifdef __cplusplus
}
#endif
#endif
