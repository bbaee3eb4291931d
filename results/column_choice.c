#include "results/column_choice.h"

#include "engine/names.h"

#include <stdio.h>
#include <string.h>

enum { NAME_MAX_LENGTH = 63 };

static int find(pc_column_namer *name_of, const char *name) {
    for (int i = 0; name_of(i); i++)
        if (strcmp(name_of(i), name) == 0) return i;
    return -1;
}

static pc_code refuse(const char *name, pc_column_namer *name_of, pc_error *error) {
    char hint[PC_NEAREST_TEXT];
    pc_nearest nearest = {.word = name};
    if (strcmp(name, "all") == 0)
        return pc_error_set(error, PC_ERROR_INPUT, "'all' beside others; expected it alone, or names of columns");
    pc_nearest_offer(&nearest, "all");
    for (int i = 0; name_of(i); i++) pc_nearest_offer(&nearest, name_of(i));
    return pc_error_set(error, PC_ERROR_INPUT,
                        "'%s': no such column%s; expected names of the columns that --format csv has, or all", name,
                        pc_nearest_hint(&nearest, hint));
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
