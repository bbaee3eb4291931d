/* memory_kinds.h: what memory is made of over time, of a run that kept its trace, drawn by gnuplot (figure.h). */
#ifndef PC_RESULTS_MEMORY_KINDS_H
#define PC_RESULTS_MEMORY_KINDS_H

#include "engine/error.h"
#include "results/store/store.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { PC_MEMORY_KINDS_MOST = 4, PC_MEMORY_KINDS_LIMIT = 64 /* stages: drawn by default, and at most */ };

typedef struct pc_memory_kinds_figure {
    const char *title;    /* plain text */
    const char *subtitle; /* plain text, may be NULL */
    const pc_trace_record *record;
    bool is_dark; /* light on a dark ground */
    int most;     /* stages: the fullest; 1 .. PC_MEMORY_KINDS_LIMIT */
} pc_memory_kinds_figure;

/* A panel for each stage, in their order, one below the other, all on one scale: GiB over time, the kinds one upon the
 * other, and a line at what the GPU has room for, unless that is more than twice the highest peak. A pixel's width
 * shows the fullest moment of its time. PC_ERROR_INPUT where the trace does not say what memory is made of. */
pc_code pc_figure_memory_kinds(const pc_memory_kinds_figure *figure, const char *path, pc_error *error);

#ifdef __cplusplus
}
#endif
#endif
