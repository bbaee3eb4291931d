#include "scenarios/written_names.h"

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
