#include "cli/cli.h"

#include "scenarios/units.h"

#include <stdarg.h>
#include <string.h>

int report(const pc_error *error) {
    fprintf(stderr, "pipecast: %s\n", error->message);
    return error->code == PC_ERROR_INPUT ? EXIT_BAD_INPUT : EXIT_MACHINE;
}

int report_usage(const char *format, ...) {
    char message[4 * PC_ERROR_MESSAGE_SIZE + 8192]; /* two paths and more: pc_error_set cuts it */
    pc_error error;
    va_list values;
    va_start(values, format);
    vsnprintf(message, sizeof message, format, values);
    va_end(values);
    pc_error_set(&error, PC_ERROR_INPUT, "%s", message); /* which makes it one line */
    return report(&error);
}

static int find_option(const arguments *x, const char *name, size_t length) {
    for (int i = 0; x->options[i].name; i++)
        if (strlen(x->options[i].name) == length && memcmp(x->options[i].name, name, length) == 0) return i;
    return ARGUMENT_ERROR;
}

static int find_letter(const arguments *x, char letter) {
    for (int i = 0; x->options[i].name; i++)
        if (x->options[i].letter && x->options[i].letter == letter) return i;
    return ARGUMENT_ERROR;
}

static int unknown_option(const arguments *x, const char *word) {
    report_usage("%s: unknown option '%s'; expected one that `pipecast %s --help` lists", x->command, word, x->command);
    return ARGUMENT_ERROR;
}

/* Gives option `option` its value: what is attached to the word, or the next word. */
static int take_value(arguments *x, int option, const char *attached) {
    const option_spec *spec = &x->options[option];
    x->value = attached;
    if (!spec->value && attached) {
        report_usage("%s: --%s takes no value, and got '%s'", x->command, spec->name, attached);
        return ARGUMENT_ERROR;
    }
    if (!spec->value || attached) return option;
    if (x->next == x->argc) {
        report_usage("%s: --%s: no value; expected --%s %s", x->command, spec->name, spec->name, spec->value);
        return ARGUMENT_ERROR;
    }
    x->value = x->argv[x->next++];
    return option;
}

static int next_long(arguments *x, const char *word) {
    const char *equals = strchr(word + 2, '=');
    size_t length = equals ? (size_t)(equals - word - 2) : strlen(word + 2);
    int option = find_option(x, word + 2, length);
    return option < 0 ? unknown_option(x, word) : take_value(x, option, equals ? equals + 1 : NULL);
}

static int next_short(arguments *x, const char *word) {
    int option = find_letter(x, word[1]);
    return option < 0 ? unknown_option(x, word) : take_value(x, option, word[2] ? word + 2 : NULL);
}

/* NOLINTNEXTLINE(misc-no-recursion): once, for behind `--` all are operands */
int arguments_next(arguments *x) {
    if (x->next == x->argc) return ARGUMENT_END;
    const char *word = x->argv[x->next++];
    if (!x->only_operands && strcmp(word, "--") == 0) {
        x->only_operands = true;
        return arguments_next(x);
    }
    if (x->only_operands || word[0] != '-' || word[1] == '\0') {
        x->value = word;
        return ARGUMENT_OPERAND;
    }
    return word[1] == '-' ? next_long(x, word) : next_short(x, word);
}

bool argument_integer(const char *name, const char *text, int64_t least, int64_t most, int64_t *number) {
    pc_error error = {0};
    if (!pc_parse_count(text, least, most, number, &error)) return true;
    pc_error_prefix(&error, "%s", name);
    report(&error);
    return false;
}

bool argument_number(const char *name, const char *text, double *number) {
    pc_error error = {0};
    if (!pc_parse_number(text, number, &error)) return true;
    pc_error_prefix(&error, "%s", name);
    report(&error);
    return false;
}
