/* arguments.h: the arguments of a launch, as names and values, from any of the texts that they are found in.
 *
 * A command line or a script of one (quotes, line continuations, comments, and variables that the script sets, and
 * $((arithmetic)) of them); what a
 * log prints as its block of arguments ("tensor_model_parallel_size ...... 2"); YAML or JSON, with MODEL_ARGS or
 * without. Names come without dashes in front, in lower case with '-' for '_', and of "a.b.name" the last part.
 */
#ifndef PC_SCENARIOS_IMPORT_ARGUMENTS_H
#define PC_SCENARIOS_IMPORT_ARGUMENTS_H

#include "engine/error.h"
#include "scenarios/source.h"

#include <stdbool.h>

enum { PC_ARGUMENTS_MAX = 4096, PC_ARGUMENT_NAME_SIZE = 96 };

typedef struct pc_argument {
    char name[PC_ARGUMENT_NAME_SIZE]; /* cut where long */
    char *value;                      /* "" of one that is only there; owned */
    unsigned line;                    /* where it stands, from 1 */
    int known;                        /* for who looks it up in a table: which line it is of; -1: none */
} pc_argument;

typedef struct pc_arguments {
    pc_argument *list; /* in the order of the text; owned */
    int count;
    char file[PC_SOURCE_NAME_SIZE];
} pc_arguments;

/* Takes the source's text. PC_ERROR_INPUT where nothing in it is an argument, or a YAML text is none. Free with
 * pc_arguments_free, on failure too. */
pc_code pc_arguments_read(pc_source *source, pc_arguments *arguments, pc_error *error);
void pc_arguments_free(pc_arguments *arguments);

/* Private to arguments_*.c: one more, copied; and the readers of single forms. */
pc_code pc_arguments_add(pc_arguments *arguments, const char *name, size_t length, const char *value, unsigned line,
                         pc_error *error);
pc_code pc_arguments_read_script(const pc_source *source, pc_arguments *arguments, pc_error *error);

#endif
