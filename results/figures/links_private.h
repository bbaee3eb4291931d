/* links_private.h: private to results/figures/links*.c: a trace becomes pieces of rows, rows get a place in panels, and
 * then there is a script. */
#ifndef PC_RESULTS_LINKS_PRIVATE_H
#define PC_RESULTS_LINKS_PRIVATE_H

#include "results/figures/figure_svg.h"
#include "results/figures/links.h"
#include "storage/text.h"

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { PC_LINKS_COLOURS = 5, PC_LINKS_COLUMNS = 1000 /* of a row: its pixels */ };

/* A link that is drawn. */
typedef struct pc_links_row {
    int64_t link;
    int32_t replica, device, peer, is_in; /* of the link */
    double mean;                          /* of load over bandwidth; */
    double most;                          /* the most of it in a column */
} pc_links_row;

typedef struct pc_links_panel {
    pc_link_sort sort;
    int64_t of; /* how many links of the sort carry anything */
    int first, count;
    double scale;   /* of load over bandwidth: 1, or what the most loaded of its rows has */
    bool is_shared; /* whether flows share all of its links */
} pc_links_panel;

typedef struct pc_links_data {
    const pc_engine_trace *trace;
    pc_time end_ps;
    int row_count;
    pc_links_row *rows; /* by sort, and in it by replica, stage, peer and direction */
    double *loads;      /* [row][column][colour]: means of load over bandwidth */
    int panel_count;
    pc_links_panel panels[PC_LINK_SORTS];
    bool has_colour[PC_LINKS_COLOURS];
} pc_links_data;

/* --- links_data.c --- */

/* What is drawn of a trace whose numbers are in range. Free with pc_links_free, whatever comes back. Without rows where
 * nothing goes over any link. */
pc_code pc_links_collect(const pc_links_figure *figure, pc_links_data *data, pc_error *error);
void pc_links_free(pc_links_data *data);

/* The loads of a row and column, a number a colour. */
static inline const double *pc_links_loads(const pc_links_data *data, int row, int column) {
    return &data->loads[((int64_t)row * PC_LINKS_COLUMNS + column) * PC_LINKS_COLOURS];
}

/* The column behind those, from `column` on, that have the same loads as it. */
int pc_links_run_end(const pc_links_data *data, int row, int column);

/* "messages", "tensor parallelism" and so on; and as gnuplot takes it. */
const char *pc_links_colour_name(int colour);
uint32_t pc_links_colour(int colour);

/* --- links_script.c --- */

/* The whole script, and a note for every piece. Within a number scope. */
void pc_links_add_script(const pc_links_figure *figure, const pc_links_data *data, const char *path, pc_text *script,
                         pc_svg_notes *notes);

#ifdef __cplusplus
}
#endif
#endif
