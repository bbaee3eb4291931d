#include "scenarios/source.h"

#include "engine/alloc.h"
#include "engine/character.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Which file it is, and whether nothing but a regular one will do. */
typedef struct wanted_file {
    const char *what;
    bool is_regular;
} wanted_file;

/* The end of a long path says more than its beginning. */
static void name_file(const char *path, pc_source *source) {
    size_t length = strlen(path), room = sizeof source->name - 1;
    if (length <= room)
        snprintf(source->name, sizeof source->name, "%s", path);
    else
        snprintf(source->name, sizeof source->name, "...%s", path + length - (room - 3));
}

static pc_code refuse_file(const pc_source *source, const wanted_file *wanted, pc_code code, const char *problem,
                           pc_error *error) {
    return pc_error_set_file(error, code, source->name, "%s; expected %s of at most 4 MiB", problem, wanted->what);
}

static pc_code check_file(int file, const pc_source *source, const wanted_file *wanted, pc_error *error) {
    struct stat status;
    if (fstat(file, &status) != 0) return refuse_file(source, wanted, PC_ERROR_IO, strerror(errno), error);
    if (S_ISDIR(status.st_mode)) return refuse_file(source, wanted, PC_ERROR_INPUT, "is a directory", error);
    if (wanted->is_regular && !S_ISREG(status.st_mode))
        return refuse_file(source, wanted, PC_ERROR_INPUT, "is no regular file", error);
    if (S_ISREG(status.st_mode) && status.st_size > PC_SOURCE_SIZE_MAX)
        return refuse_file(source, wanted, PC_ERROR_INPUT, "too large", error);
    return PC_OK;
}

/* Up to `room` bytes at once; -1 and errno on failure. */
static ssize_t read_some(int file, char *to, size_t room) {
    ssize_t got;
    do got = read(file, to, room);
    while (got < 0 && errno == EINTR);
    return got;
}

/* Reads until the end or one byte over the limit, whatever the file's size claims: pipes and devices have none. */
static pc_code read_all(int file, pc_source *source, const wanted_file *wanted, pc_error *error) {
    size_t room = 0;
    for (;;) {
        if (source->size == room) {
            room = room ? 2 * room : 16384;
            char *larger = pc_realloc(source->text, room + 1, 1);
            if (!larger) return pc_error_no_memory(error);
            source->text = larger;
        }
        ssize_t got = read_some(file, source->text + source->size, room - source->size);
        if (got < 0) return refuse_file(source, wanted, PC_ERROR_IO, strerror(errno), error);
        source->size += (size_t)got;
        source->text[source->size] = '\0';
        if (source->size > PC_SOURCE_SIZE_MAX) return refuse_file(source, wanted, PC_ERROR_INPUT, "too large", error);
        if (got == 0) return PC_OK;
    }
}

static pc_code refuse_to_open(const pc_source *source, const wanted_file *wanted, int cause, pc_error *error) {
    char expected[128];
    snprintf(expected, sizeof expected, "%s of at most 4 MiB", wanted->what);
    return pc_error_file(error, source->name, cause, expected);
}

static pc_code read_file(const char *path, const wanted_file *wanted, pc_source *source, pc_error *error) {
    pc_source made = {.is_file = true};
    name_file(path, &made);
    /* Opening a pipe without a writer would wait for one. */
    int file = open(path, O_RDONLY | O_CLOEXEC | (wanted->is_regular ? O_NONBLOCK : 0));
    if (file < 0) return refuse_to_open(&made, wanted, errno, error);
    pc_code code = check_file(file, &made, wanted, error);
    if (!code) code = read_all(file, &made, wanted, error);
    close(file);
    if (code)
        pc_source_free(&made);
    else
        *source = made;
    return code;
}

static const wanted_file scenario_file = {"a scenario file (YAML)", false};

pc_code pc_source_read(const char *path, pc_source *source, pc_error *error) {
    return read_file(path, &scenario_file, source, error);
}

pc_code pc_source_read_regular(const char *path, const char *what, pc_source *source, pc_error *error) {
    return read_file(path, &(wanted_file){what, true}, source, error);
}

pc_code pc_source_from_bytes(const char *name, const char *bytes, size_t size, pc_source *source, pc_error *error) {
    pc_source made = {.is_file = true, .text = pc_alloc(size + 1, 1), .size = size};
    if (!made.text) return pc_error_no_memory(error);
    memcpy(made.text, bytes, size); /* pc_alloc zeroes: the last byte ends it */
    name_file(name, &made);
    *source = made;
    return PC_OK;
}

pc_code pc_source_from_text(const char *name, const char *text, pc_source *source, pc_error *error) {
    return pc_source_from_bytes(name, text, strlen(text), source, error);
}

pc_code pc_source_of_file(const char *path, const char *text, pc_source *source, pc_error *error) {
    pc_source named = {.is_file = true};
    if (strlen(text) <= PC_SOURCE_SIZE_MAX) return pc_source_from_text(path, text, source, error);
    name_file(path, &named);
    return refuse_file(&named, &scenario_file, PC_ERROR_INPUT, "too large", error);
}

char *pc_source_folder(const char *path) {
    const char *slash = strrchr(path, '/');
    char *folder = pc_strdup(slash ? path : ".");
    if (folder && slash) folder[slash == path ? 1 : slash - path] = '\0';
    return folder;
}

void pc_source_free(pc_source *source) {
    pc_free(source->text);
    memset(source, 0, sizeof *source);
}

static bool is_key_character(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
}

/* Length of a path such as "setting.times.F" before the '='; 0 if there is none. A path of these characters alone
 * cannot mean anything but keys in YAML. */
static size_t set_key_length(const char *set) {
    size_t length = 0;
    for (; set[length] && set[length] != '='; length++) {
        bool edge = length == 0 || set[length - 1] == '.';
        if (!is_key_character(set[length]) && (set[length] != '.' || edge)) return 0;
    }
    return set[length] == '=' && length > 0 && set[length - 1] != '.' ? length : 0;
}

/* What ends a line for YAML: what stands behind it could be a key, in what is read now and in the comment that a
 * results file keeps of it. */
static bool has_line_break(const char *text) {
    while (*text)
        if (pc_character_ends_line(pc_utf8_next(&text))) return true;
    return false;
}

static pc_code check_set(const char *set, const pc_source *source, pc_error *error) {
    const char *problem = NULL;
    size_t key = set_key_length(set);
    if (key == 0)
        problem = "no KEY=VALUE";
    else if (key >= PC_KEY_PATH_SIZE)
        problem = "the key is too long";
    else if (strlen(set) > PC_SOURCE_SIZE_MAX / 2)
        problem = "the value is too long";
    if (problem)
        pc_error_set(error, PC_ERROR_INPUT, "%s; expected KEY=VALUE such as setting.microbatches=64", problem);
    else if (has_line_break(set))
        pc_error_set(error, PC_ERROR_INPUT, "the value has a line break; expected one line");
    else
        return PC_OK;
    pc_error_place(error, source->name, 0, "");
    return PC_ERROR_INPUT;
}

/* One line a key, each a space deeper, and the value behind the last. */
static void write_set(const char *set, size_t key, pc_source *source) {
    char *out = source->text;
    int depth = 0;
    for (size_t i = 0; i < key; i++) {
        if (set[i] != '.') {
            *out++ = set[i];
            continue;
        }
        *out++ = ':';
        *out++ = '\n';
        depth++;
        for (int d = 0; d < depth; d++) *out++ = ' ';
    }
    out += sprintf(out, ": %s\n", set + key + 1);
    source->size = (size_t)(out - source->text);
}

pc_code pc_source_from_set(const char *set, pc_source *source, pc_error *error) {
    pc_source made = {.is_file = false};
    snprintf(made.name, 128, "--set %s", set);
    pc_code code = check_set(set, &made, error);
    if (code) return code;
    size_t key = set_key_length(set);
    made.text = pc_alloc(strlen(set) + key * (key + 2) + 8, 1);
    if (!made.text) return pc_error_no_memory(error);
    write_set(set, key, &made);
    *source = made;
    return PC_OK;
}

static bool is_control(unsigned character) {
    return character < 0x20 || (character >= 0x7F && character < 0xA0) || pc_character_ends_line(character);
}

bool pc_source_has_controls(const char *text, const char *allowed) {
    while (*text) {
        unsigned character = pc_utf8_next(&text);
        if (is_control(character) && (character >= 0x20 || !strchr(allowed, (int)character))) return true;
    }
    return false;
}
