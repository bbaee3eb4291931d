/* look.h: how tables look on standard output: what the user asked for, and what the terminal is. */
#ifndef PC_CLI_LOOK_H
#define PC_CLI_LOOK_H

#include "results/table.h"
#include "scenarios/scenario.h"

#include <stdbool.h>

/* What `--color` and `--columns` ask for. Zeroed: nothing. */
typedef struct look_request {
    pc_colour_mode colour;
    bool has_columns;
    pc_column_choice columns;
} look_request;

/* Take the value of an option; false after having printed what is wrong. */
bool look_take_colour(look_request *request, const char *value);
bool look_take_columns(look_request *request, const char *value, pc_column_namer *name_of);

/* Sentences below what all rows have in common, in room of their own. */
enum { LOOK_NOTES_MAX = 16, LOOK_NOTE_SIZE = PC_IMPORT_NOTE_SIZE };
typedef struct look_notes {
    char text[LOOK_NOTES_MAX][LOOK_NOTE_SIZE];
    const char *list[LOOK_NOTES_MAX];
    int count;
} look_notes;

/* One more, unless it is there; those beyond LOOK_NOTES_MAX are dropped. */
void look_note(look_notes *notes, const char *format, ...) PC_PRINTF(2, 3);

/* What was assumed of models; `is_named`: with their names, for there are others. */
void look_note_assumed(look_notes *notes, const pc_model_assumed *list, int count, bool is_named);

/* The look of standard output now; borrows both. */
pc_table_look look_of(const look_request *request, const look_notes *notes);

#endif
