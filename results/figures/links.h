/* links.h: the load of links over time, of a run that the engine ran whole, drawn by gnuplot (figure.h). */
#ifndef PC_RESULTS_LINKS_H
#define PC_RESULTS_LINKS_H

#include "engine/error.h"
#include "models/schedule/engine_trace.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { PC_LINKS_MOST = 8, PC_LINKS_LIMIT = 64 /* of a sort: drawn by default, and at most */ };

typedef struct pc_links_figure {
    const char *title;    /* plain text */
    const char *subtitle; /* plain text, may be NULL */
    const char *time_unit;
    double time_unit_ps; /* picoseconds in one of it */
    pc_time end_ps;      /* until when time goes at least */
    const pc_engine_trace *trace;
    bool is_dark; /* light on a dark ground */
    int most;     /* of a sort: the busiest, by the mean of load over bandwidth; 1 .. PC_LINKS_LIMIT */
} pc_links_figure;

/* A panel for each sort of link, one below the other. In it every link is a band as high as its bandwidth, filled by
 * its load in the colours of what goes over it: messages, tensor parallelism, gathers, reductions, and the rest. Where
 * the load of a link that nothing shares goes beyond the bandwidth, bands are as high as that, with a line at 100%. A
 * pixel's width shows the mean over its time. Where things of several colours are under way at once, the load is
 * divided among them by their number, as the trace does not say what each of them gets. In svg every piece has a
 * <title> and data- attributes (docs/figures.md). PC_ERROR_INPUT if nothing goes over any link. */
pc_code pc_figure_links(const pc_links_figure *figure, const char *path, pc_error *error);

#ifdef __cplusplus
}
#endif
#endif
