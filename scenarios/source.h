/* source.h: a YAML text, and where it came from. Private to scenarios/. */
#ifndef PC_SCENARIOS_SOURCE_H
#define PC_SCENARIOS_SOURCE_H

#include "engine/error.h"

#include <stdbool.h>
#include <stddef.h>

enum {
    PC_SOURCE_NAME_SIZE = 256,
    PC_KEY_PATH_SIZE = 256,
    PC_SOURCE_SIZE_MAX = 4 << 20 /* bytes */
};

typedef struct pc_source {
    char name[PC_SOURCE_NAME_SIZE]; /* "FILE", or "--set KEY=VALUE"; cut where long */
    bool is_file;                   /* whether line numbers mean something to the user */
    char *text;                     /* NUL-terminated; owned */
    size_t size;                    /* bytes of text */
} pc_source;

/* Reads the file, of at most PC_SOURCE_SIZE_MAX bytes. Free with pc_source_free. */
pc_code pc_source_read(const char *path, pc_source *source, pc_error *error);

/* The same of a regular file alone, which is `what`: "a machine file (YAML)". */
pc_code pc_source_read_regular(const char *path, const char *what, pc_source *source, pc_error *error);

/* A copy of a text in memory, which messages call `name` as they would a file. */
pc_code pc_source_from_text(const char *name, const char *text, pc_source *source, pc_error *error);

/* The same of what stands in a scenario file, with its bound on the size. */
pc_code pc_source_of_file(const char *path, const char *text, pc_source *source, pc_error *error);

/* The same of `size` bytes. */
pc_code pc_source_from_bytes(const char *name, const char *bytes, size_t size, pc_source *source, pc_error *error);

/* The YAML document that "setting.times.F=12 ms" stands for: one key, nested as its path says. */
pc_code pc_source_from_set(const char *set, pc_source *source, pc_error *error);

/* A zeroed one is fine. */
void pc_source_free(pc_source *source);

/* The folder of a file, "." where its path has none; NULL if memory is short. The caller frees it. */
char *pc_source_folder(const char *path);

/* Whether a text (UTF-8) has control characters, C0, DEL or C1, or ends of lines (engine/character.h), that are not
 * among the allowed ones. */
bool pc_source_has_controls(const char *text, const char *allowed);

#endif
