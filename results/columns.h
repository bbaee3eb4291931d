/* columns.h: the columns of the results table, each a line of one list: name, type, unit, words, place in pc_run_row
 * (row.h), and how tables show it.
 *
 * The CSV, the JSON, the terminal table, the HDF5 file, comparisons and the journal all walk this list: to add a column
 * is a member of pc_run_row, a line in columns.c, and what fills it in (row.c).
 */
#ifndef PC_RESULTS_COLUMNS_H
#define PC_RESULTS_COLUMNS_H

#include "engine/field.h"
#include "engine/marks.h"
#include "results/row.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Room for the longest text that pc_column_text writes. */
enum { PC_COLUMN_TEXT_SIZE = 256 };

/* How a column's values are written. */
typedef enum pc_column_style {
    PC_STYLE_TEXT,
    PC_STYLE_INTEGER,
    PC_STYLE_FOUR_DIGITS, /* at least four significant digits, the same decimals in all rows */
    PC_STYLE_RATE,        /* a fraction of one, four decimals */
    PC_STYLE_GIB,         /* two decimals */
    PC_STYLE_PLAIN,       /* as short as six digits allow */
    PC_STYLE_COUNT,       /* 32.76B */
    PC_STYLE_SHARE,       /* of another column, in percent with one decimal */
    PC_STYLE_DIFFERENCE,  /* ours less theirs, with its sign, four decimals */
    PC_STYLE_PERCENT      /* ours over theirs less one, with its sign */
} pc_column_style;

/* When a column with values is shown. */
typedef enum pc_column_shown {
    PC_SHOWN_ALWAYS,
    PC_SHOWN_ALIKE_ABOVE, /* where not all of several rows say the same; otherwise the lines above the table do */
    PC_SHOWN_VARYING,     /* where not all rows have the same value; otherwise the lines above the table say it */
    PC_SHOWN_UNNAMED,     /* as VARYING, but where the rows have names, their names say it */
    PC_SHOWN_COMPARED,    /* where there is a published value of it */
    PC_SHOWN_FAILED       /* where not all rows are ok */
} pc_column_shown;

/* If the table is too wide, columns go in the order of these numbers, 1 first, as far as WAITS. If there is something
 * to compare with, which matters more than where the time goes, WAITS and TOKENS go before all others, and then what is
 * left as far as COMPARED. If what remains is too wide still, TOKENS goes off a terminal, and on one the order goes on
 * as far as LAST. */
enum {
    PC_SACRIFICE_NEVER,     /* what runs are told apart by, and what was asked for */
    PC_SACRIFICE_NAME = 10, /* only names that say nothing more than the columns do */
    PC_SACRIFICE_WAITS,
    PC_SACRIFICE_BESIDE_COMPARED,
    PC_SACRIFICE_COMPARED,
    PC_SACRIFICE_NARROW,
    PC_SACRIFICE_TOKENS = PC_SACRIFICE_NARROW + 7,
    PC_SACRIFICE_LAST = PC_SACRIFICE_NARROW + 12
};

typedef struct pc_column {
    pc_field field;   /* name as in the CSV, unit ("s", "GiB", "1": a fraction or a count, "": text), words, place in
                       * pc_run_row; INT64, NUMBER, TEXT, CHOICE or HASH */
    const char *of;   /* of what others published: the column that has ours; or NULL */
    bool tells_runs;  /* it says which run it is, not what came of it */
    bool is_of_times; /* it says whether times are equal, not what they are */
    bool is_fraction; /* of one: charts show it in percent */
    /* In the table for people. */
    int shown_at;             /* columns stand in the order of these; 0: only where it is asked for by name */
    const char *top, *bottom; /* the header's two lines */
    pc_column_style style;
    pc_column_shown shown;
    int sacrifice;
    const char *instead;  /* where not NULL: it goes only where this column, which says as much, has values; on a
                           * terminal that is too narrow anyway */
    const char *share_of; /* where not NULL: it is shown as a share of this column */
    const char *label;    /* in the lines above, where that is not its name */
    const char *plain;    /* a value that goes without saying there */
} pc_column;

/* All of them, `*count`, in the order of the CSV. Static storage. */
const pc_column *pc_columns(int *count);

/* By name; NULL if there is none. */
const pc_column *pc_column_find(const char *name);

/* That of what others published for this one; NULL if there is none. */
const pc_column *pc_column_published(const pc_column *column);

/* Whether its values are numbers, whole or not; else they have texts. */
bool pc_column_is_number(const pc_column *column);

/* A row in which no column is defined. */
void pc_run_row_clear(pc_run_row *row);

/* Whether the row has a value in this column. An infinite number is none; nor is a status without a name, nor the hash
 * 0, which stands for "was not replayed". */
bool pc_column_defined(const pc_column *column, const pc_run_row *row);

/* The value; the column must be of the type that the name says. pc_column_text is for TEXT, CHOICE and HASH alike and
 * writes at most `size` bytes with the terminating zero; "" if the value is not defined. */
int64_t pc_column_integer(const pc_column *column, const pc_run_row *row);
double pc_column_real(const pc_column *column, const pc_run_row *row);
void pc_column_text(const pc_column *column, const pc_run_row *row, char *text, size_t size);

/* The way back, for TEXT, CHOICE and HASH: false, and the row untouched, where the text is no status or hash or does
 * not fit into the field. "" is "not defined". */
PC_MUST_USE bool pc_column_set_text(const pc_column *column, pc_run_row *row, const char *text);

#ifdef __cplusplus
}
#endif
#endif
