#include "scenarios/written_names.h"

#include <stdio.h>
#include <string.h>

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

void pc_written_squeeze(const char *name, size_t length, char squeezed[PC_WRITTEN_SIZE]) {
    size_t used = 0;
    for (size_t i = 0; i < length && name[i] && used + 1 < PC_WRITTEN_SIZE; i++) {
        char c = name[i];
        if (c >= 'A' && c <= 'Z') c = (char)(c - 'A' + 'a');
        bool is_point = c == '.' && i > 0 && is_digit(name[i - 1]) && i + 1 < length && is_digit(name[i + 1]);
        if (is_point || is_digit(c) || (c >= 'a' && c <= 'z')) squeezed[used++] = c;
    }
    squeezed[used] = '\0';
}

const pc_written_name *pc_written_find(pc_written_kind kind, const char *squeezed) {
    for (int i = 0; i < pc_written_name_count; i++) {
        const pc_written_name *row = &pc_written_names[i];
        if (row->kind == kind && strcmp(row->squeezed, squeezed) == 0) return row;
    }
    return NULL;
}

const pc_written_name *pc_written_find_start(pc_written_kind kind, const char *squeezed) {
    const pc_written_name *best = NULL;
    size_t longest = 0;
    for (int i = 0; i < pc_written_name_count; i++) {
        const pc_written_name *row = &pc_written_names[i];
        size_t length = strlen(row->squeezed);
        if (row->kind != kind || length <= longest || strncmp(row->squeezed, squeezed, length) != 0) continue;
        longest = length;
        best = row;
    }
    return best;
}

/* The row of `first`, `second` and the word, one behind the other. */
static const pc_written_name *find_said(pc_written_kind kind, const char *first, const char *second, const char *word) {
    char all[4 * PC_WRITTEN_SIZE], squeezed[PC_WRITTEN_SIZE];
    snprintf(all, sizeof all, "%s %s %s", first, second, word);
    pc_written_squeeze(all, strlen(all), squeezed);
    return pc_written_find(kind, squeezed);
}

const pc_written_name *pc_written_find_said(pc_written_kind kind, pc_written_speaker who, const char *word) {
    const char *const before[][2] = {{who.release, who.machine}, {who.program, who.machine}, {who.release, ""},
                                     {who.program, ""},          {who.machine, ""},          {"", ""}};
    size_t last = sizeof before / sizeof *before - 1;
    for (size_t i = 0; i <= last; i++) {
        bool is_nobody = !before[i][0][0] && !before[i][1][0];
        if (is_nobody && i < last) continue;
        const pc_written_name *found = find_said(kind, before[i][0], before[i][1], word);
        if (found) return found;
    }
    return NULL;
}
