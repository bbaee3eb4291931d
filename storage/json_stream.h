/* json_stream.h: JSON read token by token, in constant memory however long the text is (RFC 8259).
 *
 *     pc_json json;
 *     pc_json_begin(&json, read, context);
 *     while (!(code = pc_json_next(&json, &token, error)) && token.kind != PC_JSON_END) ...
 *
 * There is no tree: who reads keeps what it wants. What profilers write for want of a number (NaN, inf) is null here.
 * Why our own: the one such library of Debian, yajl, has had no release since 2014, and its faults since then
 * (CVE-2022-24795, CVE-2023-33460) are mended by distributions alone.
 */
#ifndef PC_STORAGE_JSON_STREAM_H
#define PC_STORAGE_JSON_STREAM_H

#include "engine/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    PC_JSON_DEPTH_MAX = 64,   /* lists and objects in each other */
    PC_JSON_TEXT_SIZE = 4096, /* bytes that are kept of a text, with its end */
    PC_JSON_PIECE = 1 << 16   /* bytes that are asked for at once */
};

typedef enum pc_json_kind {
    PC_JSON_END, /* of the text */
    PC_JSON_OBJECT,
    PC_JSON_OBJECT_END,
    PC_JSON_LIST,
    PC_JSON_LIST_END,
    PC_JSON_KEY,
    PC_JSON_TEXT,
    PC_JSON_NUMBER,
    PC_JSON_TRUE,
    PC_JSON_FALSE,
    PC_JSON_NULL
} pc_json_kind;

typedef struct pc_json_token {
    pc_json_kind kind;
    const char *text; /* of a key, a text or a number; "" of others. Stands until the next token */
    size_t length;    /* of it, in bytes; a text may have NULs in it */
    bool is_cut;      /* a text that was longer than is kept */
} pc_json_token;

/* Gives at most `size` bytes; how many, 0 at the end, or -1 after having said why in `error`. */
typedef int64_t pc_json_read(void *context, char *bytes, size_t size, pc_error *error);

/* Plain data; nothing in it is owned. Some 70 kB: not for a small stack. */
typedef struct pc_json {
    pc_json_read *read;
    void *context;
    const char *next, *end; /* in `piece` */
    unsigned line;          /* from 1, of what stands next */
    int depth;
    uint64_t is_object; /* a bit a level, the lowest of the outermost */
    int expects;
    size_t length; /* of `text` */
    bool is_cut;
    char text[PC_JSON_TEXT_SIZE];
    char piece[PC_JSON_PIECE];
} pc_json;

void pc_json_begin(pc_json *json, pc_json_read *read, void *context);

/* The next token. PC_ERROR_INPUT, with the line in error->line, if the text is no JSON or is nested too deeply; what
 * `read` said, if that failed. One value makes the text; behind it END comes again and again. */
pc_code pc_json_next(pc_json *json, pc_json_token *token, pc_error *error);

/* Passes over the value that `token` begins, whatever is in it; a key's value is the token behind it. */
pc_code pc_json_skip(pc_json *json, const pc_json_token *token, pc_error *error);

#ifdef __cplusplus
}
#endif
#endif
