/* table.h: rows of results as text: an aligned table for people, CSV and JSON for programs. */
#ifndef PC_RESULTS_TABLE_H
#define PC_RESULTS_TABLE_H

#include "engine/error.h"
#include "engine/marks.h"
#include "results/column_choice.h"
#include "results/row.h"
#include "storage/format.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

/* When a table is coloured. */
typedef enum pc_colour_mode { PC_COLOUR_AUTO, PC_COLOUR_ALWAYS, PC_COLOUR_NEVER } pc_colour_mode;

/* "auto", "always", "never"; false if the name is none of them. */
PC_MUST_USE bool pc_colour_mode_parse(const char *name, pc_colour_mode *mode);

/* AUTO: on a terminal that is not dumb, unless NO_COLOR has any text (no-color.org). `no_color` and `term` are the
 * environment's NO_COLOR and TERM, or NULL. */
bool pc_colour_is_wanted(pc_colour_mode mode, bool is_terminal, const char *no_color, const char *term);

/* How many characters a line of the terminal has: what the terminal says (0: nothing), else what COLUMNS does (NULL or
 * no number: nothing), else 80; 0 if the output is no terminal, whatever they say. */
int pc_terminal_width(bool is_terminal, int said_by_terminal, const char *said_by_columns);

/* How a table is to look, and what of it is shown. Zeroed: as in a file, with the table's own choice of columns. All of
 * it is borrowed. */
typedef struct pc_table_look {
    int width;                       /* TABLE: of the terminal; 0: none */
    bool is_coloured;                /* TABLE: with the terminal's escape sequences */
    const pc_column_choice *columns; /* these alone, in this order; NULL: the table's own choice, in CSV and JSON all */
    const char *const *notes;        /* TABLE: note_count sentences that stand below what all rows have in common */
    int note_count;
    bool names_repeat;        /* TABLE: rows differ in columns `swept` alone, so that their names say nothing more */
    const char *const *swept; /* swept_count names of columns, which are always shown then */
    int swept_count;
} pc_table_look;

/* The columns of a run, for pc_column_choice_parse: those of columns.h. */
const char *pc_table_column_name(int number);

/* Writes `count` rows. CSV: a header and a row a run, every column of columns.h, RFC 4180 quoting, lines that end in a
 * newline. JSON: an array of objects, undefined columns null. Numbers read back exactly, and what is not UTF-8 becomes
 * U+FFFD. TABLE has what all rows have in common in lines above. Below are the columns that a person compares and in
 * which at least one row has a value, aligned, with their unit in the header. Published numbers stand beside ours, with
 * the difference. A table that is wider than the terminal (without one, than 120 characters) gives up columns, those
 * that matter least first, and names them below. Independent of the locale. PC_ERROR_IO if the stream fails. */
pc_code pc_table_write(const pc_run_row *rows, int64_t count, pc_format format, FILE *stream, pc_error *error);

/* The same of rows that are read one by one, some times over, from the first to the last: CSV and JSON once, TABLE up
 * to four times. Also what a row's source refuses. `look` may be NULL. */
typedef pc_code pc_table_source(void *context, int64_t index, pc_run_row *row, pc_error *error);
pc_code pc_table_write_from(pc_table_source *source, void *context, int64_t count, pc_format format,
                            const pc_table_look *look, FILE *stream, pc_error *error);

#ifdef __cplusplus
}
#endif
#endif
