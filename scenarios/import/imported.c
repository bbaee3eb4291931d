#include "scenarios/import/imported.h"

#include "engine/alloc.h"

#include <assert.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LINE_WIDTH = 110, NOTE_CHARACTERS = 300 };

static const char *const class_words[PC_IMPORT_CLASSES] = {
    [PC_IMPORT_ASSUMED] = "not said there, so by default",
    [PC_IMPORT_NOT_MODELLED] = "not modelled",
    [PC_IMPORT_UNKNOWN] = "not known here",
    [PC_IMPORT_NO_EFFECT] = "without effect on time and memory",
};

static void clear_entry(pc_import_entry *entry) {
    pc_free(entry->value);
    pc_free(entry->from);
    *entry = (pc_import_entry){.key = NULL};
}

void pc_imported_free(pc_imported *import) {
    for (int i = 0; i < import->count; i++) clear_entry(&import->entries[i]);
    for (int i = 0; i < PC_IMPORT_CLASSES; i++) pc_text_free(&import->notes[i]);
    *import = (pc_imported){.count = 0};
}

pc_code pc_imported_check(const pc_imported *import, pc_error *error) {
    bool failed = import->failed;
    for (int i = 0; i < PC_IMPORT_CLASSES; i++) failed = failed || import->notes[i].failed;
    return failed ? pc_error_no_memory(error) : PC_OK;
}

/* ---- names ---- */

void pc_imported_set_name(pc_imported *import, const char *text) {
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    snprintf(import->name, sizeof import->name, "%s", *text ? text : "imported");
    for (char *c = import->name; *c; c++)
        if (!strchr(allowed, *c)) *c = '_';
}

void pc_imported_name_of_path(pc_imported *import, const char *path) {
    static const char usual[] = "/config.json";
    char name[PC_IMPORT_NAME_SIZE];
    size_t length = strlen(path);
    bool is_usual = length > strlen(usual) && strcmp(path + length - strlen(usual), usual) == 0;
    if (is_usual) length -= strlen(usual);
    while (length > 1 && path[length - 1] == '/') length--;
    size_t start = length;
    while (start > 0 && path[start - 1] != '/') start--;
    snprintf(name, sizeof name, "%.*s", (int)(length - start < sizeof name ? length - start : sizeof name - 1),
             path + start);
    char *dot = is_usual ? NULL : strrchr(name, '.');
    if (dot && dot > name && strlen(dot) <= 5) *dot = '\0';
    pc_imported_set_name(import, strcmp(name, ".") == 0 || strcmp(name, "..") == 0 ? "" : name);
}

/* ---- settings ---- */

pc_import_entry *pc_imported_find(pc_imported *import, const char *key) {
    for (int i = 0; i < import->count; i++)
        if (strcmp(import->entries[i].key, key) == 0) return &import->entries[i];
    return NULL;
}

void pc_imported_set(pc_imported *import, const char *key, const char *from, const char *value) {
    pc_import_entry made = {.key = key, .value = pc_strdup(value), .from = pc_strdup(from)};
    pc_import_entry *entry = pc_imported_find(import, key);
    if (!made.value || !made.from) {
        import->failed = true;
        return clear_entry(&made);
    }
    if (entry)
        clear_entry(entry);
    else {
        assert(import->count < PC_IMPORT_ENTRIES); /* there are fewer keys */
        entry = &import->entries[import->count++];
    }
    *entry = made;
}

void pc_imported_set_number(pc_imported *import, const char *key, const char *from, int64_t number) {
    char text[32];
    snprintf(text, sizeof text, "%" PRId64, number);
    pc_imported_set(import, key, from, text);
}

void pc_imported_set_switch(pc_imported *import, const char *key, const char *from, bool is_true) {
    pc_imported_set(import, key, from, is_true ? "true" : "false");
}

void pc_imported_clear(pc_imported *import, const char *key) {
    pc_import_entry *entry = pc_imported_find(import, key);
    if (!entry) return;
    clear_entry(entry);
    memmove(entry, entry + 1, (size_t)(import->entries + import->count - (entry + 1)) * sizeof *entry);
    import->count--;
}

const char *pc_imported_get(const pc_imported *import, const char *key) {
    for (int i = 0; i < import->count; i++)
        if (strcmp(import->entries[i].key, key) == 0) return import->entries[i].value;
    return NULL;
}

int64_t pc_imported_number(const pc_imported *import, const char *key, int64_t otherwise) {
    const char *value = pc_imported_get(import, key);
    return value ? strtoll(value, NULL, 10) : otherwise;
}

/* Whether the notes "a; b; c" have one already. */
static bool has_note(const pc_text *notes, const pc_text *note) {
    for (const char *at = notes->size ? notes->data : NULL; at && (at = strstr(at, note->data)); at++) {
        const char *end = at + note->size;
        bool begins = at == notes->data || (at - notes->data >= 2 && strncmp(at - 2, "; ", 2) == 0);
        if (begins && (*end == '\0' || strncmp(end, "; ", 2) == 0)) return true;
    }
    return false;
}

void pc_imported_note(pc_imported *import, pc_import_class kind, const char *format, ...) {
    char text[1024];
    va_list values;
    pc_text *notes = &import->notes[kind], note = {.data = NULL};
    va_start(values, format);
    vsnprintf(text, sizeof text, format, values);
    va_end(values);
    pc_text_add_line(&note, text, NOTE_CHARACTERS);
    if (note.failed || notes->failed)
        import->failed = true;
    else if (note.size > 0 && !has_note(notes, &note))
        pc_text_printf(notes, "%s%s", notes->size > 0 ? "; " : "", note.data);
    pc_text_free(&note);
}

/* ---- as YAML ---- */

/* Breaks a text at spaces into comments of a readable width. */
static void write_comment(pc_text *to, const char *text) {
    while (*text) {
        size_t length = strlen(text), end = length;
        if (length > LINE_WIDTH) {
            end = LINE_WIDTH;
            while (end > 0 && text[end] != ' ') end--;
            if (end == 0) end = strcspn(text, " ");
        }
        pc_text_printf(to, "# %.*s\n", (int)end, text);
        text += end;
        while (*text == ' ') text++;
    }
}

static void write_notes(const pc_imported *import, pc_import_class last, pc_text *to) {
    for (int kind = 0; kind <= (int)last; kind++) {
        pc_text line = {.data = NULL};
        if (import->notes[kind].size == 0) continue;
        pc_text_printf(&line, "%s: %s.", class_words[kind], import->notes[kind].data);
        if (line.failed)
            to->failed = true;
        else
            write_comment(to, line.data);
        pc_text_free(&line);
    }
}

/* How much of a key names the mapping that it stands in: 6 of "model.layers", 0 of "tp". */
static size_t group_length(const char *key) {
    const char *dot = strchr(key, '.');
    return dot ? (size_t)(dot - key) : 0;
}

static bool is_in_group(const char *key, const char *group, size_t length) {
    return group_length(key) == length && strncmp(key, group, length) == 0;
}

static void write_entry(const pc_import_entry *entry, int indent, const char *key, pc_text *to) {
    pc_text line = {.data = NULL};
    pc_text_printf(&line, "%*s%s: %s", indent, "", key, entry->value);
    if (line.failed)
        to->failed = true;
    else if (entry->from[0])
        pc_text_printf(to, "%-40s # %s\n", line.data, entry->from);
    else
        pc_text_printf(to, "%s\n", line.data);
    pc_text_free(&line);
}

/* All of the group that entry `first` is the first of; nothing if it is not. */
static void write_group(const pc_imported *import, int first, pc_text *to) {
    const char *group = import->entries[first].key;
    size_t length = group_length(group);
    if (length == 0) return write_entry(&import->entries[first], 2, group, to);
    for (int i = 0; i < first; i++)
        if (is_in_group(import->entries[i].key, group, length)) return;
    pc_text_printf(to, "  %.*s:\n", (int)length, group);
    for (int i = first; i < import->count; i++)
        if (is_in_group(import->entries[i].key, group, length))
            write_entry(&import->entries[i], 4, import->entries[i].key + length + 1, to);
}

void pc_imported_write_scenario(const pc_imported *import, const char *headline, pc_text *to) {
    write_comment(to, headline);
    write_notes(import, PC_IMPORT_NO_EFFECT, to);
    pc_text_printf(to, "scenario: %s\n", import->name);
    if (import->count > 0) pc_text_printf(to, "setting:\n");
    for (int i = 0; i < import->count; i++) write_group(import, i, to);
}

void pc_imported_write_model(const pc_imported *import, pc_text *to) {
    static const char model[] = "model.";
    write_notes(import, PC_IMPORT_UNKNOWN, to);
    pc_text_printf(to, "model: %s\n", import->name);
    for (int i = 0; i < import->count; i++) {
        const pc_import_entry *entry = &import->entries[i];
        bool is_of_model = strncmp(entry->key, model, strlen(model)) == 0;
        if (is_of_model && strcmp(entry->key, "model.name") != 0) write_entry(entry, 0, entry->key + strlen(model), to);
    }
}

void pc_imported_write_heading(const pc_imported *import, pc_text *to) {
    for (int kind = 0; kind <= PC_IMPORT_UNKNOWN; kind++)
        if (import->notes[kind].size > 0)
            pc_text_printf(to, "%s%s: %s", to->size ? ". " : "", class_words[kind], import->notes[kind].data);
    if (!to->data) pc_text_add(to, "", 0);
}
