#include "results/column_choice.h"

#include <stdio.h>
#include <string.h>

enum { NAME_MAX_LENGTH = 63, NEAR = 3 };

/* ---- the name that was probably meant ---- */

static int least_of(int a, int b) {
    return a < b ? a : b;
}

/* Levenshtein's distance of two words of at most NAME_MAX_LENGTH letters. */
static int distance(const char *a, const char *b) {
    int row[NAME_MAX_LENGTH + 1], length = (int)strlen(b);
    for (int j = 0; j <= length; j++) row[j] = j;
    for (int i = 1; a[i - 1]; i++) {
        int above = row[0];
        row[0] = i;
        for (int j = 1; j <= length; j++) {
            int changed = above + (a[i - 1] != b[j - 1]);
            above = row[j];
            row[j] = least_of(changed, 1 + least_of(above, row[j - 1]));
        }
    }
    return row[length];
}

static bool begins_a_word(const char *name, const char *at) {
    return at == name || at[-1] == '_';
}

/* How far a name is from what was written: its letters; less where one of its words begins so ("tokens", "memory"). */
static int farness(const char *written, const char *name) {
    const char *found = strlen(written) >= 3 ? strstr(name, written) : NULL;
    return found && begins_a_word(name, found) ? 1 : distance(written, name);
}

/* Writes " (did you mean a, b or c?)" with the nearest names, or nothing. */
static void write_hint(const char *written, pc_column_namer *name_of, char *hint, size_t size) {
    const char *near[NEAR];
    int length = (int)strlen(written), count = 0, best = length > 4 ? 2 : 1; /* of a short word, one slip */
    hint[0] = '\0';
    for (int i = 0; name_of(i); i++) {
        int far = farness(written, name_of(i));
        if (far >= length || far > best) continue;
        if (far < best) count = 0;
        best = far;
        if (count < NEAR) near[count++] = name_of(i);
    }
    for (int i = 0, used = 0; i < count; i++)
        used += snprintf(hint + used, size - (size_t)used, "%s%s%s",
                         i == 0           ? " (did you mean "
                         : i == count - 1 ? " or "
                                          : ", ",
                         near[i], i == count - 1 ? "?)" : "");
}

/* ---- the list ---- */

static int find(pc_column_namer *name_of, const char *name) {
    for (int i = 0; name_of(i); i++)
        if (strcmp(name_of(i), name) == 0) return i;
    return -1;
}

static pc_code refuse(const char *name, pc_column_namer *name_of, pc_error *error) {
    char hint[256];
    write_hint(name, name_of, hint, sizeof hint);
    return pc_error_set(error, PC_ERROR_INPUT,
                        "'%s': no such column%s; expected names of the columns that --format csv has, or all", name,
                        hint);
}

static bool has(const pc_column_choice *choice, int column) {
    for (int i = 0; i < choice->count; i++)
        if (choice->column[i] == column) return true;
    return false;
}

static pc_code add(const char *name, pc_column_namer *name_of, pc_column_choice *choice, pc_error *error) {
    int column = find(name_of, name);
    if (*name == '\0')
        return pc_error_set(error, PC_ERROR_INPUT, "an empty name; expected one comma between two names");
    if (column < 0) return refuse(name, name_of, error);
    if (has(choice, column)) return pc_error_set(error, PC_ERROR_INPUT, "'%s' twice; expected it once", name);
    choice->column[choice->count++] = column; /* there is room for all of them once */
    return PC_OK;
}

static void take_all(pc_column_namer *name_of, pc_column_choice *choice) {
    *choice = (pc_column_choice){.is_all = true};
    for (int i = 0; name_of(i) && i < PC_COLUMN_CHOICE_MAX; i++) choice->column[choice->count++] = i;
}

/* The word from `start` to `end`, without blanks around it; of one that is too long for any name the beginning. */
static void copy_word(const char *start, const char *end, char word[NAME_MAX_LENGTH + 1]) {
    while (start < end && *start == ' ') start++;
    while (end > start && end[-1] == ' ') end--;
    int length = end - start > NAME_MAX_LENGTH ? NAME_MAX_LENGTH : (int)(end - start);
    snprintf(word, NAME_MAX_LENGTH + 1, "%.*s", length, start);
}

pc_code pc_column_choice_parse(const char *text, pc_column_namer *name_of, pc_column_choice *choice, pc_error *error) {
    char word[NAME_MAX_LENGTH + 1];
    pc_code code = PC_OK;
    *choice = (pc_column_choice){.count = 0};
    if (strcmp(text, "all") == 0) {
        take_all(name_of, choice);
        return PC_OK;
    }
    for (const char *at = text; at && !code;) {
        const char *comma = strchr(at, ',');
        copy_word(at, comma ? comma : at + strlen(at), word);
        code = add(word, name_of, choice, error);
        at = comma ? comma + 1 : NULL;
    }
    return code;
}
