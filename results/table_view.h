/* table_view.h: private to results/: how the columns of runs look in the table for people. */
#ifndef PC_RESULTS_TABLE_VIEW_H
#define PC_RESULTS_TABLE_VIEW_H

#include "results/columns.h"

#include <stdbool.h>

/* How a column's values are written. */
typedef enum pc_table_style {
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
} pc_table_style;

/* When a column with values is shown. */
typedef enum pc_table_shown {
    PC_SHOWN_ALWAYS,
    PC_SHOWN_ALIKE_ABOVE, /* where not all of several rows say the same; otherwise the lines above the table do */
    PC_SHOWN_VARYING,     /* where not all rows have the same value; otherwise the lines above the table say it */
    PC_SHOWN_UNNAMED,     /* as VARYING, but where the rows have names, their names say it */
    PC_SHOWN_COMPARED,    /* where there is a published value of it */
    PC_SHOWN_FAILED       /* where not all rows are ok */
} pc_table_shown;

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

typedef struct pc_table_view {
    const char *column;       /* of columns.h */
    const char *minus;        /* the column to compare with, for the last three styles */
    const char *top, *bottom; /* the header's two lines */
    pc_table_style style;
    pc_table_shown shown;
    int sacrifice;
    const char *instead; /* where not NULL: it goes only where this column, which says as much, has values; on a
                          * terminal that is too narrow anyway */
} pc_table_view;

/* All of them, `*count`, in the order of the table. Static storage. */
const pc_table_view *pc_table_views(int *count);

/* That of a column as it is, compared with nothing; NULL where it has none. */
const pc_table_view *pc_table_view_find(const char *column);

/* A view for a column that has none, asked for by its name: its unit stands below that. */
pc_table_view pc_table_view_of(const pc_column *column);

#endif
