/* table_layout.h: private to results/: which columns of runs a table for people has, and how wide they are. */
#ifndef PC_RESULTS_TABLE_LAYOUT_H
#define PC_RESULTS_TABLE_LAYOUT_H

#include "results/table_private.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How a column of the table looks: a column of columns.h, ours against theirs, or an extra. */
typedef struct pc_table_view {
    const char *column;
    const char *top, *bottom;
    pc_column_style style;
    pc_column_shown shown;
    int sacrifice;
    const char *instead;
} pc_table_view;

/* What a look at all rows says of a column's values. */
typedef struct pc_table_facts {
    bool any;           /* one of them is defined */
    bool varies;        /* not all are equal to the first row's */
    double least, most; /* of the sizes of numbers that are not zero, and of all; PC_STYLE_FOUR_DIGITS alone */
    uint64_t first;     /* hash of what the first row's cell says */
    bool differs;       /* not all cells say that */
} pc_table_facts;

typedef struct pc_table_entry {
    pc_table_view view;
    const pc_column *column, *minus; /* NULL: an extra; there is nothing to compare with or to be a share of */
    int extra;                       /* its number, where `column` is NULL */
    bool is_asked, is_swept;         /* by the user: it stays whatever the width */
    bool is_shown;                   /* in the table */
    bool is_moved;                   /* to the lines above it, since all rows say the same */
    bool is_sacrificed;
    pc_table_facts facts;
    int decimals; /* -1: the numbers are too far apart for one count of them */
    size_t width, text_most;
} pc_table_entry;

/* Rows are read three times, whatever their number: to know what there is, how wide it is, and to write it. */
typedef struct pc_table_layout {
    pc_table_rows *rows;
    pc_run_row first;
    pc_table_entry *entry; /* `count` of them: the table's own, then those that were asked for */
    int count;
    size_t width;                /* that lines may have */
    bool pp_is_gpus, hfu_is_mfu; /* in every row */
    bool named;                  /* every row has a name */
    bool all_ok;                 /* every row's status is */
} pc_table_layout;

/* Decides all of it; `cell` is working memory, whose `failed` says that there was too little. False also where a row
 * could not be read. Free the layout in any case. */
PC_MUST_USE bool pc_table_lay_out(pc_table_rows *rows, pc_table_layout *table, pc_text *cell);
void pc_table_layout_free(pc_table_layout *table);

/* Puts what the row, the last that was read, has in the column in place of what `cell` holds. */
void pc_table_set_cell(pc_text *cell, const pc_table_layout *table, const pc_table_entry *entry, const pc_run_row *row);

/* Whether the lines above the table say it. */
bool pc_table_is_above(const pc_table_layout *table, const pc_table_entry *entry);

static inline bool pc_table_entry_is_text(const pc_table_entry *entry) {
    return entry->view.style == PC_STYLE_TEXT;
}

#endif
