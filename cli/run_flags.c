#include "cli/run_flags.h"

#include "scenarios/library.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

const run_flag *run_flags(void) {
    static run_flag flags[PC_SETTING_FLAGS_MAX + 1]; /* the last stays without a name */
    if (!flags[0].name) pc_setting_flags(flags);
    return flags;
}

/* ---- lists of layouts ---- */

static bool is_of_layouts(const run_flag *flag) {
    return strcmp(flag->key, "model.layout") == 0;
}

/* Whether a layout begins here: a word, or Megatron-LM's notation, in which t, m and L only follow. */
static bool begins_layout(char c) {
    return (c >= 'a' && c <= 'z' && c != 't' && c != 'm') || c == 'E';
}

static bool begins_word(char c) {
    return begins_layout(c) && c != 'E';
}

static size_t blanks_at(const char *text) {
    return strspn(text, " ");
}

/* Bytes of the first of several layouts. Commas are a list's own, and mean nothing in Megatron-LM's notation: a layout
 * ends at one behind a word, at one before a word or an E, and at a semicolon. */
static size_t length_of_layout(const char *text) {
    bool is_word = begins_word(text[blanks_at(text)]);
    size_t length = 0;
    for (; text[length] && text[length] != ';'; length++)
        if (text[length] == ',' && (is_word || begins_layout(text[length + 1 + blanks_at(text + length + 1)]))) break;
    return length;
}

/* As a text of YAML, whatever is in it; returns what follows it. */
static char *quote_layout(const char *text, size_t length, char *out) {
    size_t first = blanks_at(text);
    while (length > first && text[length - 1] == ' ') length--;
    *out++ = '\'';
    for (size_t i = first; i < length; i++) {
        if (text[i] == '\'') *out++ = '\'';
        *out++ = text[i];
    }
    *out++ = '\'';
    return out;
}

/* "setting.model.layout='15,16,16,15'", or "sweep.layout=['even','Et*4|t*4L']". */
static char *set_of_layouts(const run_flag *flag, const char *value) {
    bool is_list = value[length_of_layout(value)] != '\0';
    char *set = malloc(5 * strlen(value) + strlen(flag->key) + 32), *out = set;
    if (!set) return NULL;
    out +=
        sprintf(out, "%s.%s=%s", is_list ? "sweep" : "setting", is_list ? flag->sweep : flag->key, is_list ? "[" : "");
    for (;;) {
        size_t length = length_of_layout(value);
        out = quote_layout(value, length, out);
        value += length;
        if (*value == '\0') break;
        *out++ = ',';
        value++;
    }
    if (is_list) *out++ = ']';
    *out = '\0';
    return set;
}

/* ---- any value ---- */

const char *run_flag_fault(const run_flag *flag, const char *value) {
    size_t length = strlen(value);
    bool is_list = flag->sweep && strchr(value, ',') && !is_of_layouts(flag);
    bool is_broken = is_list && (value[0] == ',' || value[length - 1] == ',' || strstr(value, ",,"));
    return is_broken ? "a list with an empty entry; expected one comma between two values" : NULL;
}

/* "1..8", "4k..32k": the dots of "../own.yaml" stand behind no number. */
static bool is_range(const char *value) {
    size_t digits = strspn(value, "0123456789");
    const char *dots = value + digits + (digits > 0 && value[digits] && strchr("kKM", value[digits]));
    return digits > 0 && strncmp(dots, "..", 2) == 0 && dots[2] >= '0' && dots[2] <= '9';
}

bool run_flag_is_list(const run_flag *flag, const char *value) {
    return flag->sweep && (strchr(value, ',') || is_range(value));
}

bool run_flags_rival(const run_flag *one, const run_flag *other) {
    static const char *const rivals[] = {"microbatches", "global_batch"};
    return (strcmp(one->key, rivals[0]) == 0 && strcmp(other->key, rivals[1]) == 0) ||
           (strcmp(one->key, rivals[1]) == 0 && strcmp(other->key, rivals[0]) == 0);
}

/* "my model", which is no name of the library and lies in the current folder: a path as "./my model" is. */
static bool is_file_of_model(const run_flag *flag, const char *value) {
    struct stat status;
    bool is_name = strcmp(flag->name, "model") == 0 && *value && !pc_library_is_path(value);
    return is_name && !pc_library_find(PC_LIBRARY_MODELS, value) && stat(value, &status) == 0;
}

char *run_flag_set(const run_flag *flag, const char *value) {
    if (is_of_layouts(flag)) return set_of_layouts(flag, value);
    bool is_list = run_flag_is_list(flag, value);
    size_t size = strlen(flag->key) + strlen(value) + 32;
    char *set = malloc(size);
    if (set && is_list)
        snprintf(set, size, "sweep.%s=[%s]", flag->sweep, value);
    else if (set)
        snprintf(set, size, "setting.%s=%s%s", flag->key, is_file_of_model(flag, value) ? "./" : "", value);
    return set;
}

/* Whether it was in the set that stands for the option. Long sets are cut in messages. */
static bool is_of_set(const pc_error *error, const run_flag_use *use) {
    char file[128];
    snprintf(file, sizeof file, "--set %s", use->set);
    pc_error_make_plain(file); /* as an error's texts are */
    return strcmp(pc_error_part_of(error, PC_ERROR_PART_FILE), file) == 0;
}

/* The option for a key, "dp", or for the first of several, "model", which is more than --model gives; NULL if there
 * is none. */
static const run_flag *flag_of_key(const char *key, size_t length) {
    for (const run_flag *flag = run_flags(); flag->name; flag++) {
        bool is_it = strncmp(flag->key, key, length) == 0;
        if (is_it && (flag->key[length] == '\0' || flag->key[length] == '.')) return flag;
    }
    return NULL;
}

/* What no option gave, or what followed from several: the option for it, or, of what a model lacks, --model, and
 * `*below` which of its keys; NULL where it was in a file. */
static const run_flag *flag_of_missing(const pc_error *error, const char **below) {
    static const char start[] = "setting.", model[] = "model.";
    const char *file = pc_error_part_of(error, PC_ERROR_PART_FILE), *key = pc_error_part_of(error, PC_ERROR_PART_KEY);
    *below = "";
    if (strcmp(file, "options") != 0 || strncmp(key, start, strlen(start)) != 0) return NULL;
    key += strlen(start);
    const run_flag *flag = flag_of_key(key, strlen(key));
    if (flag || strncmp(key, model, strlen(model)) != 0) return flag;
    *below = key + strlen(model);
    return flag_of_key(model, strlen(model) - 1);
}

void run_flags_explain(const run_flag_use *uses, int count, pc_error *error) {
    char option[64];
    const char *below;
    const run_flag *flag = flag_of_missing(error, &below);
    for (int i = 0; i < count && !flag; i++)
        if (is_of_set(error, &uses[i])) flag = uses[i].flag;
    if (!flag) return;
    snprintf(option, sizeof option, "--%s", flag->name);
    pc_error_replace(error, option, 0, below);
}
