/* Arguments to settings, by the table. */
#include "scenarios/import/megatron.h"

#include "scenarios/import/foreign.h"
#include "scenarios/import/megatron_private.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { NAMES_SHOWN = 12 };

typedef enum kind { NUMBER, FLAG, FLAG_OFF, WORD, USED, NONE, NOT } kind;

typedef struct known_argument {
    const char *names;
    kind kind;
    const char *key, *words; /* the setting and its value; or what is said of it */
} known_argument;

#define MEGATRON_NUMBER(names, key)          {names, NUMBER, key, ""},
#define MEGATRON_FLAG(names, key, value)     {names, FLAG, key, value},
#define MEGATRON_FLAG_OFF(names, key, value) {names, FLAG_OFF, key, value},
#define MEGATRON_WORD(names, key, words)     {names, WORD, key, words},
#define MEGATRON_USED(names, words)          {names, USED, NULL, words},
#define MEGATRON_NONE(names, reason)         {names, NONE, NULL, reason},
#define MEGATRON_NOT(names, words)           {names, NOT, NULL, words},
#define MEGATRON_CHOICE(names, words, real)
#define MEGATRON_SWITCH(names)
static const known_argument known[] = {
#include "scenarios/import/megatron.def"
};
enum { KNOWN = sizeof known / sizeof *known };

/* ---- single arguments ---- */

bool pc_megatron_is_nothing(const char *value) {
    return strcmp(value, "None") == 0 || strcmp(value, "null") == 0;
}

static bool is_off(const char *value) {
    return strcasecmp(value, "false") == 0 || strcmp(value, "0") == 0 || strcasecmp(value, "none") == 0 ||
           strcasecmp(value, "null") == 0 || strcasecmp(value, "no") == 0 || strcasecmp(value, "off") == 0 ||
           strcmp(value, "[]") == 0 || strcmp(value, "0.0") == 0;
}

const pc_argument *pc_megatron_find(const pc_megatron_reader *r, const char *names) {
    for (int i = r->arguments.count; i-- > 0;) {
        const pc_argument *argument = &r->arguments.list[i];
        if (pc_foreign_is_one_of(argument->name, strlen(argument->name), names))
            return pc_megatron_is_nothing(argument->value) ? NULL : argument;
    }
    return NULL;
}

bool pc_megatron_is_on(const pc_megatron_reader *r, const char *names) {
    const pc_argument *argument = pc_megatron_find(r, names);
    return argument && !is_off(argument->value);
}

const char *pc_megatron_text(const pc_megatron_reader *r, const char *names) {
    const pc_argument *argument = pc_megatron_find(r, names);
    return argument ? argument->value : "";
}

bool pc_megatron_has_word(const char *value, const char *word) {
    static const char between[] = " ,[]'\"\t";
    size_t length = strlen(word);
    for (value += strspn(value, between); *value; value += strspn(value, between)) {
        size_t size = strcspn(value, between);
        size_t part = size; /* of "AttnBackend.auto", as logs have it, the last part */
        while (part > 0 && value[part - 1] != '.') part--;
        if (size == length && strncasecmp(value, word, size) == 0) return true;
        if (size - part == length && strncasecmp(value + part, word, length) == 0) return true;
        value += size;
    }
    return false;
}

pc_code pc_megatron_refuse(const pc_megatron_reader *r, const pc_argument *argument, const char *expected) {
    const char *value = argument->value;
    bool is_command = strstr(value, "$(") || strchr(value, '`'), is_variable = !is_command && strchr(value, '$');
    return pc_error_refuse(r->error, r->arguments.file, argument->line, argument->name, "%.60s; expected %s%s",
                           value[0] ? value : "nothing", expected,
                           is_command    ? ": commands of a shell are not run, and only whole numbers are worked out"
                           : is_variable ? ": the script does not set the variable, and loops are not run"
                                         : "");
}

/* Behind a number of a command line may stand a word that is not its own ("--nnodes 2 train.py"), and torchrun has
 * "1:4"; no second number. */
static bool ends_number(const char *text) {
    if (*text == ':') return true;
    text += strspn(text, "]'\"");
    return *text == '\0' || (*text == ' ' && !isdigit((unsigned char)text[strspn(text, " ")]));
}

static pc_code read_number(const pc_megatron_reader *r, const char *names, int64_t least, bool is_list,
                           int64_t *number) {
    char expected[64];
    const pc_argument *argument = pc_megatron_find(r, names);
    if (!argument) return PC_OK;
    const char *text = argument->value + strspn(argument->value, "['\" ");
    size_t digits = strspn(text, "0123456789");
    bool is_whole = is_list ? !isalnum((unsigned char)text[digits]) && text[digits] != '.' : ends_number(text + digits);
    int64_t made = digits > 0 && digits < 11 && is_whole ? strtoll(text, NULL, 10) : -1;
    snprintf(expected, sizeof expected, "a whole number, %" PRId64 " or more", least);
    if (made < least || made > INT32_MAX) return pc_megatron_refuse(r, argument, expected);
    *number = made;
    return PC_OK;
}

pc_code pc_megatron_number(const pc_megatron_reader *r, const char *names, int64_t least, int64_t *number) {
    return read_number(r, names, least, false, number);
}

static pc_code take_number(pc_megatron_reader *r, const char *names, const char *key, bool is_list) {
    static const char above_zero[] =
        "model.layers|model.hidden|model.heads|model.kv_heads|model.head_dim|model.ffn_hidden|model.seq_len|"
        "model.vocab_multiple|tp|pp|cp|cp_a2a|ep|etp|microbatch_size|global_batch|recompute_layers|moe_deepep_num_sms|"
        "moe_hybridep_num_sms";
    int64_t number = -1, least = pc_foreign_is_one_of(key, strlen(key), above_zero);
    pc_code code = read_number(r, names, least, is_list, &number);
    if (!code && number >= 0) pc_imported_set_number(r->import, key, pc_megatron_find(r, names)->name, number);
    return code;
}

pc_code pc_megatron_take(pc_megatron_reader *r, const char *names, const char *key) {
    return take_number(r, names, key, false);
}

pc_code pc_megatron_take_first(pc_megatron_reader *r, const char *names, const char *key) {
    return take_number(r, names, key, true);
}

/* ---- the table ---- */

/* "theirs=ours|...", of which the value is a "theirs"; what else it may be was looked at before. */
static void take_word(pc_megatron_reader *r, const known_argument *line, const pc_argument *argument) {
    const char *value = argument->value + strspn(argument->value, "['\" ");
    size_t length = strcspn(value, " ,]'\"");
    for (const char *word = line->words; *word; word += strcspn(word, "|"), word += *word == '|') {
        size_t size = strcspn(word, "|="), all = strcspn(word, "|");
        if (size != length || strncasecmp(word, value, size) != 0) continue;
        char ours[64];
        snprintf(ours, sizeof ours, "%.*s", (int)(all - size - 1), word + size + 1);
        pc_imported_set(r->import, line->key, argument->name, ours);
        return;
    }
}

/* The last argument of a line of the table, as pc_megatron_find. */
static const pc_argument *find_of_line(const pc_megatron_reader *r, int line) {
    for (int i = r->arguments.count; i-- > 0;)
        if (r->arguments.list[i].known == line)
            return pc_megatron_is_nothing(r->arguments.list[i].value) ? NULL : &r->arguments.list[i];
    return NULL;
}

/* Each of the line's names that is on. */
static void note_not_modelled(pc_megatron_reader *r, int line) {
    pc_text names = {.data = NULL};
    for (int i = 0; i < r->arguments.count; i++) {
        const pc_argument *argument = &r->arguments.list[i];
        if (argument->known == line && !is_off(argument->value))
            pc_text_printf(&names, "%s%s", names.size ? ", " : "", argument->name);
    }
    if (names.failed) r->import->failed = true;
    if (names.size > 0 && !names.failed)
        pc_imported_note(r->import, PC_IMPORT_NOT_MODELLED, "%s (%.200s)", known[line].words, names.data);
    pc_text_free(&names);
}

static pc_code take_line(pc_megatron_reader *r, int index) {
    const known_argument *line = &known[index];
    const pc_argument *argument = find_of_line(r, index);
    if (!argument) return PC_OK;
    bool off = is_off(argument->value);
    switch (line->kind) {
    case NUMBER:
        return pc_megatron_take(r, line->names, line->key);
    case FLAG:
    case FLAG_OFF:
        if (off == (line->kind == FLAG_OFF)) pc_imported_set(r->import, line->key, argument->name, line->words);
        return PC_OK;
    case WORD:
        take_word(r, line, argument);
        return PC_OK;
    case NOT:
        note_not_modelled(r, index);
        return PC_OK;
    case NONE:
    case USED:
        return PC_OK;
    }
    return PC_OK;
}

static int find_line(const char *name) {
    size_t length = strlen(name);
    for (int i = 0; i < KNOWN; i++)
        if (pc_foreign_is_one_of(name, length, known[i].names)) return i;
    return -1;
}

/* Logs have "rope_fusion" where command lines have "no-rope-fusion". */
static bool is_inverse_of_known(const char *name) {
    char inverse[PC_ARGUMENT_NAME_SIZE + 4];
    snprintf(inverse, sizeof inverse, "no-%s", name);
    return find_line(inverse) >= 0;
}

/* Those that change nothing by their reasons, and those that nobody knows. */
static void note_rest(pc_megatron_reader *r) {
    int unknown = 0;
    for (int i = 0; i < r->arguments.count; i++) {
        const pc_argument *argument = &r->arguments.list[i];
        if (argument->known >= 0 || is_off(argument->value) || is_inverse_of_known(argument->name)) continue;
        if (unknown++ < NAMES_SHOWN) pc_imported_note(r->import, PC_IMPORT_UNKNOWN, "%s", argument->name);
    }
    if (unknown > NAMES_SHOWN) pc_imported_note(r->import, PC_IMPORT_UNKNOWN, "and %d more", unknown - NAMES_SHOWN);
    for (int i = 0; i < KNOWN; i++)
        if (known[i].kind == NONE && find_of_line(r, i))
            pc_imported_note(r->import, PC_IMPORT_NO_EFFECT, "%s", known[i].words);
}

/* A config.json has keys that are spelt as arguments are, so that what it comes to would look like a setting. */
static pc_code refuse_config_json(const pc_megatron_reader *r) {
    for (int i = 0; i < r->arguments.count; i++) {
        const pc_argument *argument = &r->arguments.list[i];
        if (strcmp(argument->name, "architectures") != 0) continue;
        return pc_error_refuse(r->error, r->arguments.file, argument->line, argument->name,
                               "a config.json of Hugging Face; expected arguments of Megatron-LM "
                               "(pipecast import hf reads it)");
    }
    return PC_OK;
}

/* Of another program's file no argument is known that says anything of time or memory. */
static pc_code check_sort(const pc_megatron_reader *r) {
    const char *sort = NULL;
    for (int i = 0; i < r->arguments.count; i++) {
        const pc_argument *argument = &r->arguments.list[i];
        if (argument->known >= 0 && known[argument->known].kind != NONE) return PC_OK;
        if (!sort) sort = pc_foreign_sort_of(argument->name);
    }
    return pc_error_refuse(r->error, r->arguments.file, 0, "",
                           "no argument of Megatron-LM that says anything of time or memory; expected such as "
                           "num-layers or tensor-model-parallel-size%s%s",
                           sort ? ": it looks like " : "", sort ? sort : "");
}

/* What a run would refuse, with the place in the file. */
static pc_code check_model(const pc_megatron_reader *r) {
    const char *from;
    pc_code code = pc_imported_check_model(r->import, &from, r->error);
    const pc_argument *argument = code ? pc_megatron_find(r, from) : NULL;
    if (code) pc_error_place(r->error, r->arguments.file, argument ? argument->line : 0, from);
    return code;
}

static pc_code read_all(pc_megatron_reader *r) {
    pc_code code = refuse_config_json(r);
    for (int i = 0; i < r->arguments.count; i++) r->arguments.list[i].known = find_line(r->arguments.list[i].name);
    if (!code) code = check_sort(r);
    if (!code) code = pc_megatron_check_values(r);
    for (int i = 0; i < KNOWN && !code; i++) code = take_line(r, i);
    if (!code) code = pc_megatron_take_model(r);
    if (!code) code = pc_megatron_take_memory(r);
    if (!code) code = pc_megatron_take_cut(r);
    if (!code) note_rest(r);
    if (!code) code = pc_imported_check(r->import, r->error);
    return code ? code : check_model(r);
}

static pc_code import(pc_source *source, bool is_recipe, pc_imported *import, pc_error *error) {
    pc_megatron_reader r = {.import = import, .is_recipe = is_recipe, .error = error};
    pc_code code = pc_arguments_read(source, &r.arguments, error);
    if (!code) code = read_all(&r);
    pc_arguments_free(&r.arguments);
    return code;
}

pc_code pc_import_megatron(pc_source *source, pc_imported *made, pc_error *error) {
    return import(source, false, made, error);
}

pc_code pc_import_nemo(pc_source *source, pc_imported *made, pc_error *error) {
    return import(source, true, made, error);
}
