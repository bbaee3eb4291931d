/* figure.h: pictures, drawn by gnuplot: svg, png or pdf by the ending of the file's name.
 *
 * gnuplot (gnuplot-nox of Debian) reads its script from a file in memory, without a shell and without the user's
 * settings; text from users cannot become a command. The picture is drawn beside its final path and renamed when
 * complete. Same trace, same bytes, as long as gnuplot, cairo and the fonts are the same.
 */
#ifndef PC_RESULTS_FIGURE_H
#define PC_RESULTS_FIGURE_H

#include "engine/error.h"
#include "models/schedule/block.h"
#include "models/schedule/replay.h"

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Of a timeline that lays one run beside another: rows a device, the last of them empty. */
enum { PC_TIMELINE_ROWS_BESIDE = 3 };

/* Part of a timeline. Zeroed: all of it. */
typedef struct pc_timeline_window {
    bool has_time, has_devices, has_microbatches;
    pc_time from_ps, to_ps; /* of the axis, cut at the trace's end; 0 <= from < to. Without: of microbatches, from their
                             * first start to their last end; else all of it */
    int first_device, last_device;
    int32_t first_microbatch, last_microbatch; /* others are drawn pale */
} pc_timeline_window;

typedef struct pc_timeline {
    const char *title;             /* plain text */
    const char *subtitle;          /* plain text, may be NULL */
    const char *time_unit;         /* "ms"; "" for times without a unit */
    double time_unit_ps;           /* picoseconds in one of it */
    int devices, chunks, slices;   /* slices of a microbatch; 0 or 1: it is whole */
    bool is_beside;                /* rows are PC_TIMELINE_ROWS_BESIDE a device: simulated, measured, none */
    const pc_replay_trace *trace;  /* with at least one pass */
    const pc_engine_trace *engine; /* where it has memory levels, the panel shows those; NULL: activations' */
    const char *memory_heading;    /* plain text; NULL: "Activation memory" */
    const pc_block *block;         /* of the same placement; NULL: no panel for it */
    bool is_dark;                  /* light on a dark ground */
    bool explains_block;           /* with a block: a panel of its lifespans, and the stable phase marked */
    pc_timeline_window window;     /* with one there is no panel for the block */
    bool memory;                   /* a panel for it; there is none where the trace has no levels */
    double memory_unit_bytes;      /* bytes in one unit of memory */
    const char *memory_unit;       /* "GiB"; plain text */
} pc_timeline;

/* PC_OK if the name ends in .svg, .png or .pdf; PC_ERROR_INPUT and the three otherwise. For checking before work. */
pc_code pc_figure_check_path(const char *path, pc_error *error);

/* PC_OK if a timeline of so many passes can be drawn; for checking before work, too. */
pc_code pc_figure_check_size(const char *path, int64_t pass_count, pc_error *error);

/* A schedule in up to four panels, one below the other. The building block, and its repetitions in pale, as figures 1
 * and 3 of 'Pipeline Parallelism with Controllable Memory' have it; its time is in cells. A bar for each of its
 * lifespans, from the start of F to the end of W. The timeline: devices down, time across, and the time in which it
 * repeats itself shaded. F, B, W, BW and R have colours that a colour-blind reader tells apart, lighter and darker for
 * the chunks. There are microbatch numbers where they fit, a legend and a title. And the memory of each device, on the
 * same axis: activations, or what the engine saw it hold, with a line at its capacity where that is less than twice the
 * peak. In svg every pass has a <title> and data- attributes that say what it is (docs/figures.md). */
/* PC_ERROR_INPUT also where no pass is within the window. */
pc_code pc_figure_timeline(const pc_timeline *timeline, const char *path, pc_error *error);

#ifdef __cplusplus
}
#endif
#endif
