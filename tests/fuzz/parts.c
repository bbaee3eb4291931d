#include "tests/fuzz/parts.h"

#include "scenarios/source.h"
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

enum { PARTS_MAX = 8, NAME_SIZE = 64, SETS_SIZE = 2048 };

typedef struct part {
    char name[NAME_SIZE];
    const char *text;
    size_t size;
} part;

static part parts[PARTS_MAX];
static int part_count;
static const char *sets[PARTS_SETS_MAX];
static char sets_text[SETS_SIZE];
static int set_count;

/* The next line that begins with "%%", or the end. */
static const char *find_mark(const char *at, const char *end) {
    for (const char *line = at; line && line < end;) {
        if (end - line > 2 && line[0] == '%' && line[1] == '%') return line;
        const char *newline = memchr(line, '\n', (size_t)(end - line));
        line = newline ? newline + 1 : NULL;
    }
    return end;
}

/* Reads "%% NAME\n", and returns what stands behind it. */
static const char *read_mark(const char *mark, const char *end, char name[NAME_SIZE]) {
    const char *newline = memchr(mark, '\n', (size_t)(end - mark)), *stop = newline ? newline : end;
    const char *word = mark + 2;
    while (word < stop && *word == ' ') word++;
    size_t length = (size_t)(stop - word) < NAME_SIZE - 1 ? (size_t)(stop - word) : NAME_SIZE - 1;
    memcpy(name, word, length);
    name[length] = '\0';
    return newline ? newline + 1 : end;
}

static void cut_sets(const char *text, size_t size) {
    size_t length = size < SETS_SIZE - 1 ? size : SETS_SIZE - 1;
    memcpy(sets_text, text, length);
    sets_text[length] = '\0';
    for (char *line, *rest = sets_text; set_count < PARTS_SETS_MAX && (line = strsep(&rest, "\n"));)
        if (*line) sets[set_count++] = line;
}

void parts_set(const uint8_t *data, size_t size) {
    const char *at = (const char *)data, *end = at + size;
    char name[NAME_SIZE] = INPUT_FILE;
    part_count = set_count = 0;
    while (part_count < PARTS_MAX) {
        const char *mark = find_mark(at, end);
        part *made = &parts[part_count];
        *made = (part){.text = at, .size = (size_t)(mark - at)};
        memcpy(made->name, name, sizeof name);
        if (strcmp(name, "set") == 0)
            cut_sets(made->text, made->size);
        else
            part_count++;
        if (mark == end) return;
        at = read_mark(mark, end, name);
    }
}

const char *const *parts_sets(int *count) {
    *count = set_count;
    return sets;
}

/* ---- instead of files ---- */

static pc_code read_part(const char *path, pc_source *source, pc_error *error) {
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    for (int i = 0; i < part_count; i++)
        if (strcmp(parts[i].name, name) == 0)
            return pc_source_from_bytes(path, parts[i].text, parts[i].size, source, error);
    return pc_error_set(error, PC_ERROR_INPUT, "%.80s: there is none; expected a file", path);
}

pc_code __wrap_pc_source_read(const char *path, pc_source *source, pc_error *error);
pc_code __wrap_pc_source_read(const char *path, pc_source *source, pc_error *error) {
    return read_part(path, source, error);
}

pc_code __wrap_pc_source_read_regular(const char *path, const char *what, pc_source *source, pc_error *error);
pc_code __wrap_pc_source_read_regular(const char *path, const char *what, pc_source *source, pc_error *error) {
    (void)what;
    return read_part(path, source, error);
}
