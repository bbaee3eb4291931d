/* Options of a shell script: its words, with what its variables are set to. No command is run. */
#include "scenarios/import/arguments.h"
#include "scenarios/import/arithmetic.h"
#include "storage/text.h"

#include "engine/alloc.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { VARIABLES_MAX = 256, NAME_SIZE = 64, WORD_MAX = 4096 };

typedef struct variable {
    char name[NAME_SIZE];
    char *value; /* owned */
} variable;

/* A script as it is read. */
typedef struct script {
    const char *at;
    unsigned line;
    variable variables[VARIABLES_MAX];
    int variable_count;
    pc_text word; /* the one being read */
    char open;    /* the quote around options that are being read: VAR="--a 1 --b 2"; 0: none */
    char *option; /* whose value comes next; owned, NULL: none */
    unsigned option_line;
    pc_text value; /* of it, as far as it was read */
    pc_arguments *arguments;
    pc_error *error;
} script;

static bool is_name(char c) {
    return isalnum((unsigned char)c) || c == '_';
}

static const char *find_variable(const script *s, const char *name, size_t length) {
    for (int i = s->variable_count; i-- > 0;)
        if (strlen(s->variables[i].name) == length && memcmp(s->variables[i].name, name, length) == 0)
            return s->variables[i].value;
    return NULL;
}

/* ---- words ---- */

static bool take_variable(const void *context, const char *name, size_t length, int64_t *value) {
    const char *text = find_variable(context, name, length);
    size_t digits = text ? strspn(text, "0123456789") : 0;
    if (digits == 0 || digits > 18 || text[digits]) return false;
    *value = strtoll(text, NULL, 10);
    return true;
}

/* Behind the ')' that closes the '(' at `from`, or the end of the text. */
static const char *find_close(const char *from) {
    int depth = 0;
    for (; *from; from++) {
        depth += *from == '(';
        depth -= *from == ')';
        if (depth == 0) return from + 1;
    }
    return from;
}

/* "$((2 * N))" is worked out; a command, "$(nproc)" or in backquotes, stands as it is, and nothing runs it. */
static void take_bracket(script *s) {
    const char *start = s->at, *end = *start == '`' ? strchr(start + 1, '`') : find_close(start + 1);
    size_t size = !end ? 1 : (size_t)(end - start) + (*start == '`'); /* one that nothing closes stands for itself */
    int64_t value;
    bool is_sum = *start == '$' && start[2] == '(' && size > 5 && strncmp(start + size - 2, "))", 2) == 0;
    if (is_sum && pc_arithmetic_evaluate(start + 3, size - 5, take_variable, s, &value))
        pc_text_printf(&s->word, "%" PRId64, value);
    else
        pc_text_add(&s->word, start, size);
    for (s->at = start; s->at < start + size; s->at++) s->line += *s->at == '\n';
}

/* "$NAME", "${NAME}" or "${NAME:-otherwise}"; of one that is not set it stands as it is. */
static void expand(script *s) {
    const char *start = s->at, *name = start + 1;
    bool has_brace = *name == '{';
    if (has_brace) name++;
    size_t length = 0;
    while (is_name(name[length])) length++;
    const char *end = name + length, *otherwise = NULL;
    size_t otherwise_size = 0;
    if (has_brace && end[0] == ':' && end[1] == '-') {
        otherwise = end + 2;
        otherwise_size = strcspn(otherwise, "}\n");
        end = otherwise + otherwise_size;
    }
    bool is_whole = length > 0 && (!has_brace || *end == '}');
    const char *value = is_whole ? find_variable(s, name, length) : NULL;
    if (!is_whole) {
        pc_text_add(&s->word, "$", 1);
        s->at++;
        return;
    }
    s->at = end + has_brace;
    if (value)
        pc_text_add(&s->word, value, strlen(value));
    else if (otherwise)
        pc_text_add(&s->word, otherwise, otherwise_size);
    else
        pc_text_add(&s->word, start, (size_t)(s->at - start));
}

/* One character of a word, or what stands for several. */
static void take_character(script *s, char quote) {
    if (s->word.size > WORD_MAX) { /* of no use */
        s->at++;
    } else if (quote != '\'' && (*s->at == '`' || (*s->at == '$' && s->at[1] == '('))) {
        take_bracket(s);
    } else if (*s->at == '$' && quote != '\'') {
        expand(s);
    } else {
        if (*s->at == '\\' && quote != '\'' && s->at[1] && s->at[1] != '\n') s->at++;
        pc_text_add(&s->word, s->at, 1);
        s->line += *s->at == '\n';
        s->at++;
    }
}

/* Up to a blank that is not quoted. A quoted piece that begins as an option is words of its own: VAR="--a 1 --b 2". */
static void read_word(script *s) {
    s->word.size = 0;
    pc_text_add(&s->word, "", 0);
    while (*s->at && !strchr(" \t\r\n;()", *s->at)) {
        char quote = *s->at;
        if (quote == '\\' && s->at[1] == '\n') return;
        if (s->open && quote == s->open) return;
        if (quote != '"' && quote != '\'') {
            take_character(s, 0);
            continue;
        }
        s->at++;
        if (s->word.size == 0 || s->word.data[s->word.size - 1] == '=') {
            const char *inner = s->at + strspn(s->at, " \t\r\n\\");
            if (inner[0] == '-' && inner[1] == '-' && !s->open) {
                s->open = quote; /* its words come next */
                return;
            }
        }
        while (*s->at && *s->at != quote) take_character(s, quote);
        s->at += *s->at == quote;
    }
    if (*s->at && strchr("()", *s->at)) s->at++;
}

/* ---- options ---- */

static pc_code end_option(script *s) {
    if (!s->option) return PC_OK;
    pc_code code = pc_arguments_add(s->arguments, s->option, strlen(s->option), s->value.data ? s->value.data : "",
                                    s->option_line, s->error);
    pc_free(s->option);
    s->option = NULL;
    pc_text_free(&s->value);
    return code;
}

static pc_code begin_option(script *s, const char *word) {
    pc_code code = end_option(s);
    if (code) return code;
    const char *equals = strchr(word, '=');
    s->option = pc_strdup(word);
    s->option_line = s->line;
    if (!s->option) return pc_error_no_memory(s->error);
    if (!equals) return PC_OK;
    s->option[equals - word] = '\0';
    pc_text_printf(&s->value, "%s", equals + 1);
    return PC_OK;
}

/* "NAME=value"; the last one wins. */
static pc_code set_variable(script *s, const char *word) {
    size_t length = strcspn(word, "=");
    if (length == 0 || length >= NAME_SIZE || s->variable_count == VARIABLES_MAX) return PC_OK;
    variable *made = &s->variables[s->variable_count];
    memcpy(made->name, word, length);
    made->name[length] = '\0';
    made->value = pc_strdup(word + length + 1);
    if (!made->value) return pc_error_no_memory(s->error);
    s->variable_count++;
    return PC_OK;
}

static bool is_assignment(const char *word) {
    size_t length = 0;
    while (is_name(word[length])) length++;
    return length > 0 && word[length] == '=' && !isdigit((unsigned char)word[0]);
}

/* "|", "&&", "2>&1", "> file": what comes next belongs to no option. */
static bool ends_command(const script *s) {
    const char *word = s->word.data + strspn(s->word.data, "0123456789");
    return !s->open && *word && strchr("|&<>", *word);
}

static pc_code take_word(script *s) {
    if (s->word.failed) return pc_error_no_memory(s->error);
    const char *word = s->word.data;
    if (ends_command(s)) return end_option(s);
    bool is_option = word[0] == '-' && word[1] == '-' && isalpha((unsigned char)word[2]);
    if (is_option) return begin_option(s, word);
    if (is_assignment(word)) {
        pc_code code = end_option(s);
        return code ? code : set_variable(s, word);
    }
    if (!s->option || !*word) return PC_OK;
    if (s->value.size < WORD_MAX) pc_text_printf(&s->value, "%s%s", s->value.size ? " " : "", word);
    return s->value.failed ? pc_error_no_memory(s->error) : PC_OK;
}

/* What stands between words; the end of options in quotes too. */
static bool is_between(script *s) {
    if (s->open && *s->at == s->open) {
        s->open = 0;
        return true;
    }
    return isspace((unsigned char)*s->at) || strchr(";()", *s->at);
}

/* A line ends an option's values, unless it goes on. */
static pc_code skip_blanks(script *s) {
    pc_code code = PC_OK;
    for (; *s->at && !code; s->at++) {
        bool goes_on = s->at[0] == '\\' && s->at[1] == '\n';
        if (*s->at == '#') s->at += strcspn(s->at, "\n");
        if (goes_on) s->at++;
        if (!*s->at || !is_between(s)) break;
        if (*s->at == ';') code = end_option(s);
        if (*s->at != '\n') continue;
        s->line++;
        if (!goes_on) code = end_option(s);
    }
    return code;
}

static pc_code read_all(script *s) {
    pc_code code = skip_blanks(s);
    while (!code && *s->at) {
        const char *before = s->at;
        read_word(s);
        if (s->at == before) s->at++; /* a backslash at the end, or a quote of another kind */
        code = take_word(s);
        if (!code) code = skip_blanks(s);
    }
    return code ? code : end_option(s);
}

pc_code pc_arguments_read_script(const pc_source *source, pc_arguments *arguments, pc_error *error) {
    script *s = pc_alloc(1, sizeof *s);
    if (!s) return pc_error_no_memory(error);
    s->at = source->text;
    s->line = 1;
    s->arguments = arguments;
    s->error = error;
    pc_code code = read_all(s);
    for (int i = 0; i < s->variable_count; i++) pc_free(s->variables[i].value);
    pc_free(s->option);
    pc_text_free(&s->word);
    pc_text_free(&s->value);
    pc_free(s);
    return code;
}
