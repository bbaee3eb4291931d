#include "cli/cli.h"

#include "engine/alloc.h"
#include "engine/names.h"
#include "scenarios/units.h"

#include <stdarg.h>
#include <string.h>

int report(const pc_error *error) {
    fprintf(stderr, "pipecast: %s\n", error->message);
    return error->code == PC_ERROR_INPUT ? EXIT_BAD_INPUT : EXIT_MACHINE;
}

int report_usage(const char *format, ...) {
    pc_error error;
    va_list values;
    va_start(values, format);
    pc_error_set_list(&error, PC_ERROR_INPUT, format, values);
    va_end(values);
    return report(&error);
}

static int find_option(const arguments *line, const char *name, size_t length) {
    for (int i = 0; line->options[i].name; i++)
        if (strlen(line->options[i].name) == length && memcmp(line->options[i].name, name, length) == 0) return i;
    return ARGUMENT_ERROR;
}

static int find_letter(const arguments *line, char letter) {
    for (int i = 0; line->options[i].name; i++)
        if (line->options[i].letter && line->options[i].letter == letter) return i;
    return ARGUMENT_ERROR;
}

/* What others call our options: Megatron-LM's names mostly, and what people try first. */
static const char *const other_names[][2] = {
    {"tp", "tensor-model-parallel-size"},
    {"tp", "tensor-parallel"},
    {"pp", "pipeline-model-parallel-size"},
    {"pp", "pipeline-parallel"},
    {"pp", "stages"},
    {"dp", "data-parallel"},
    {"gpus", "world-size"},
    {"gpus", "num-gpus"},
    {"chunks", "virtual-pipeline"},
    {"chunks", "num-layers-per-virtual-pipeline-stage"},
    {"microbatches", "num-microbatches"},
    {"microbatch-size", "mbs"},
    {"global-batch", "gbs"},
    {"global-batch", "batch-size"},
    {"seq-len", "sequence-length"},
    {"seq-len", "context"},
    {"jobs", "threads"},
    {"output", "out"},
    {"machine", "cluster"},
    {"machine", "hardware"},
    {"sequence-parallel", "sp"},
    {"making", "plan"}, /* its old name */
};

/* "--microbatches" of "--microbatch": as the command's options are spelt. */
static void offer_option(pc_nearest *nearest, const char *name, const char *alias) {
    char option[PC_NEAREST_NAME];
    snprintf(option, sizeof option, "--%s", name);
    pc_nearest_offer_as(nearest, option, alias);
}

static const char *hint_of_option(const arguments *line, const char *word, char text[PC_NEAREST_TEXT]) {
    char name[PC_NEAREST_NAME];
    pc_nearest nearest = {.word = name};
    snprintf(name, sizeof name, "%.*s", (int)strcspn(word, "="), word);
    for (int i = 0; line->options[i].name; i++) offer_option(&nearest, line->options[i].name, line->options[i].name);
    for (size_t i = 0; i < sizeof other_names / sizeof *other_names; i++)
        if (find_option(line, other_names[i][0], strlen(other_names[i][0])) >= 0)
            offer_option(&nearest, other_names[i][0], other_names[i][1]);
    return pc_nearest_hint(&nearest, text);
}

static int unknown_option(const arguments *line, const char *word) {
    char hint[PC_NEAREST_TEXT];
    report_usage("%s: unknown option '%s'%s; expected one that `pipecast %s --help` lists", line->command, word,
                 hint_of_option(line, word, hint), line->command);
    return ARGUMENT_ERROR;
}

/* Gives option `option` its value: what is attached to the word, or the next word. */
static int take_value(arguments *line, int option, const char *attached) {
    const option_spec *spec = &line->options[option];
    line->value = attached;
    if (!spec->value && attached) {
        report_usage("%s: --%s takes no value, and got '%s'; expected --%s alone", line->command, spec->name, attached,
                     spec->name);
        return ARGUMENT_ERROR;
    }
    if (!spec->value || attached) return option;
    if (line->next == line->argc) {
        report_usage("%s: --%s: no value; expected --%s %s", line->command, spec->name, spec->name, spec->value);
        return ARGUMENT_ERROR;
    }
    line->value = line->argv[line->next++];
    return option;
}

static int next_long(arguments *line, const char *word) {
    const char *equals = strchr(word + 2, '=');
    size_t length = equals ? (size_t)(equals - word - 2) : strlen(word + 2);
    int option = find_option(line, word + 2, length);
    return option < 0 ? unknown_option(line, word) : take_value(line, option, equals ? equals + 1 : NULL);
}

/* "-output" is no file "utput": a long option with one dash is meant as such. */
static int next_short(arguments *line, const char *word) {
    int option = find_letter(line, word[1]);
    if (word[2] && find_option(line, word + 1, strcspn(word + 1, "=")) >= 0) return unknown_option(line, word);
    return option < 0 ? unknown_option(line, word) : take_value(line, option, word[2] ? word + 2 : NULL);
}

/* NOLINTNEXTLINE(misc-no-recursion): once, for behind `--` all are operands */
int arguments_next(arguments *line) {
    if (line->next == line->argc) return ARGUMENT_END;
    const char *word = line->argv[line->next++];
    if (!line->only_operands && strcmp(word, "--") == 0) {
        line->only_operands = true;
        return arguments_next(line);
    }
    if (line->only_operands || word[0] != '-' || word[1] == '\0') {
        line->value = word;
        return ARGUMENT_OPERAND;
    }
    return word[1] == '-' ? next_long(line, word) : next_short(line, word);
}

static bool is_help(const arguments *line, int option) {
    return option >= 0 && strcmp(line->options[option].name, "help") == 0;
}

int arguments_take(arguments *line, const char *help, take_argument *take, void *request) {
    for (int option; (option = arguments_next(line)) != ARGUMENT_END;) {
        if (is_help(line, option)) {
            fputs(help, stdout);
            return finish_output(EXIT_DONE);
        }
        if (option == ARGUMENT_ERROR || !take(request, option, line->value)) return EXIT_BAD_INPUT;
    }
    return ARGUMENT_END;
}

const char **arguments_room(int argc) {
    const char **room = pc_alloc((size_t)argc + 1, sizeof *room);
    if (!room) report_usage("out of memory");
    return room;
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

bool argument_word(const char *name, const char *what, const char *words, const char *text, int *index) {
    pc_error error = {0};
    if (!pc_word_choose(what, words, text, index, &error)) return true;
    pc_error_prefix(&error, "%s", name);
    report(&error);
    return false;
}

bool argument_format(const char *name, const char *text, pc_format *format) {
    int index;
    if (!argument_word(name, "format", "table|csv|json", text, &index)) return false;
    *format = (pc_format)index;
    return true;
}

bool argument_shard(const char *text, int64_t *shard, int64_t *count, int64_t most) {
    char copy[64];
    const char *slash = strchr(text, '/');
    if (!slash || strlen(text) >= sizeof copy) {
        report_usage("--shard: '%s'; expected I/N such as 1/4", text);
        return false;
    }
    snprintf(copy, sizeof copy, "%s", text);
    copy[slash - text] = '\0';
    return argument_integer("--shard", slash + 1, 1, most, count) &&
           argument_integer("--shard", copy, 1, *count, shard);
}
