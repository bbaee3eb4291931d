/* column_choice.h: which columns of a table somebody asks for, by the names of the CSV's. */
#ifndef PC_RESULTS_COLUMN_CHOICE_H
#define PC_RESULTS_COLUMN_CHOICE_H

#include "engine/error.h"

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { PC_COLUMN_CHOICE_MAX = 512 };

/* The name of a table's column `number` (0 ..), in the order of its CSV; NULL behind the last. */
typedef const char *pc_column_namer(int number);

typedef struct pc_column_choice {
    bool is_all; /* "all" was asked for: a table for people leaves out what is empty in every row */
    int count;
    int column[PC_COLUMN_CHOICE_MAX]; /* numbers of the namer, in the order in which they were asked for */
} pc_column_choice;

/* Reads "mfu,iteration_s", with blanks around names or without, or "all". PC_ERROR_INPUT if a name is none (with
 * the nearest ones), is empty, or is there twice. */
pc_code pc_column_choice_parse(const char *text, pc_column_namer *name_of, pc_column_choice *choice, pc_error *error);

#ifdef __cplusplus
}
#endif
#endif
