/* What the values of arguments may be: the words of a choice, and true or false, by the lists of megatron.def. */
#include "scenarios/import/megatron_private.h"

#include "scenarios/import/foreign.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { EXPECTED_SIZE = 200, WORD_SIZE = 64 };

typedef struct choice {
    const char *names, *words, *real;
} choice;

#define MEGATRON_NUMBER(names, key)
#define MEGATRON_FLAG(names, key, value)
#define MEGATRON_FLAG_OFF(names, key, value)
#define MEGATRON_WORD(names, key, words)
#define MEGATRON_USED(names, words)
#define MEGATRON_NONE(names, reason)
#define MEGATRON_NOT(names, words)
#define MEGATRON_SWITCH(names)
#define MEGATRON_CHOICE(names, words, real) {names, words, real},
static const choice choices[] = {
#include "scenarios/import/megatron.def"
};
#undef MEGATRON_FLAG
#undef MEGATRON_FLAG_OFF
#undef MEGATRON_SWITCH
#undef MEGATRON_CHOICE

#define MEGATRON_FLAG(names, key, value)     names,
#define MEGATRON_FLAG_OFF(names, key, value) names,
#define MEGATRON_SWITCH(names)               names,
#define MEGATRON_CHOICE(names, words, real)
static const char *const switches[] = {
#include "scenarios/import/megatron.def"
};

enum { CHOICES = sizeof choices / sizeof *choices, SWITCHES = sizeof switches / sizeof *switches };

/* The first word of "[a, b]", "a b" and "'a'"; of "AttnBackend.auto" and "torch.float32", as logs have them, the last
 * part. */
static void write_word(const char *value, char word[WORD_SIZE]) {
    value += strspn(value, "[('\" ");
    snprintf(word, WORD_SIZE, "%.*s", (int)strcspn(value, " ,])'\""), value);
    const char *dot = strrchr(word, '.');
    if (dot && isalpha((unsigned char)dot[1])) memmove(word, dot + 1, strlen(dot + 1) + 1);
}

static bool is_word_of(const char *word, const char *words) {
    while (*words) {
        size_t size = strcspn(words, "|");
        if (size == strlen(word) && strncasecmp(words, word, size) == 0) return true;
        words += size + (words[size] == '|');
    }
    return false;
}

/* "a, b or c" of "a|b" and "c". */
static void write_expected(const char *words, const char *real, char expected[EXPECTED_SIZE]) {
    size_t used = 0;
    char all[EXPECTED_SIZE];
    snprintf(all, sizeof all, "%s%s%s", words, *real ? "|" : "", real);
    expected[0] = '\0';
    for (const char *word = all; *word && used < EXPECTED_SIZE;) {
        size_t size = strcspn(word, "|");
        const char *next = word + size + (word[size] == '|');
        used += (size_t)snprintf(expected + used, EXPECTED_SIZE - used, "%s%.*s",
                                 used == 0 ? ""
                                 : *next   ? ", "
                                           : " or ",
                                 (int)size, word);
        word = next;
    }
}

static pc_code check_choice(pc_megatron_reader *r, const choice *c, const pc_argument *argument) {
    char word[WORD_SIZE], expected[EXPECTED_SIZE];
    write_word(argument->value, word);
    if (is_word_of(word, c->words)) return PC_OK;
    if (is_word_of(word, c->real)) {
        pc_imported_note(r->import, PC_IMPORT_NOT_MODELLED, "%s %s", argument->name, word);
        return PC_OK;
    }
    write_expected(c->words, c->real, expected);
    return pc_megatron_refuse(r, argument, expected);
}

/* Behind a flag of a command line may stand words that are not its own: "--bf16 2>&1", "--swiglu train.py". */
static bool is_plain(const char *word) {
    size_t length = 0;
    while (isalnum((unsigned char)word[length]) || word[length] == '_' || word[length] == '-') length++;
    return length > 0 && word[length] == '\0';
}

static pc_code check_switch(pc_megatron_reader *r, const pc_argument *argument) {
    static const char words[] = "true|false|1|0|yes|no|on|off|none|null";
    char word[WORD_SIZE];
    const char *value = argument->value + strspn(argument->value, "'\" ");
    snprintf(word, sizeof word, "%.*s", (int)strcspn(value, " '\""), value);
    if (!is_plain(word) || is_word_of(word, words)) return PC_OK;
    return pc_megatron_refuse(r, argument, "true or false, or nothing behind it");
}

pc_code pc_megatron_check_values(pc_megatron_reader *r) {
    pc_code code = PC_OK;
    for (int i = 0; i < r->arguments.count && !code; i++) {
        const pc_argument *argument = &r->arguments.list[i];
        size_t length = strlen(argument->name);
        if (pc_megatron_is_nothing(argument->value)) continue;
        for (int k = 0; k < CHOICES && !code; k++)
            if (pc_foreign_is_one_of(argument->name, length, choices[k].names))
                code = check_choice(r, &choices[k], argument);
        for (int k = 0; k < SWITCHES && !code; k++)
            if (pc_foreign_is_one_of(argument->name, length, switches[k])) code = check_switch(r, argument);
    }
    return code;
}

pc_code pc_megatron_fraction(const pc_megatron_reader *r, const char *name, double *number) {
    char word[WORD_SIZE], *end;
    const pc_argument *argument = pc_megatron_find(r, name);
    if (!argument) return PC_OK;
    const char *value = argument->value + strspn(argument->value, "'\" ");
    snprintf(word, sizeof word, "%.*s", (int)strcspn(value, " '\""), value);
    double made = strtod(word, &end);
    if (end == word || *end || !(made >= 0 && made <= 1)) return pc_megatron_refuse(r, argument, "a fraction, 0 to 1");
    *number = made;
    return PC_OK;
}
