/* figure_private.h: private to results/figure*.c: a picture is up to four panels, one below the other, which are laid
 * out in pixels from the top left corner and then written as one script.
 *
 * Lengths below, but for those of the panels, are those of a picture of usual width. A wide one is looked at scaled
 * down, so that all but the passes' widths grows with it: pc_figure_length.
 *
 * The building block and the timeline are drawn by the same code (figure_timeline.c), each from a trace of passes; the
 * block is made into one by figure_block.c. The memory panel has the timeline's left and right edge and its time axis.
 */
#ifndef PC_RESULTS_FIGURE_PRIVATE_H
#define PC_RESULTS_FIGURE_PRIVATE_H

#include "results/figures/figure.h"
#include "results/figures/figure_svg.h"
#include "results/figures/style.h"
#include "storage/text.h"

#include <stdint.h>

enum {
    PC_FIGURE_WIDTH_USUAL = 1200,
    PC_FIGURE_WIDTH_MAX = 6720, /* wide enough for the numbers of 128 microbatches */
    PC_FIGURE_PLOT_HEIGHT_MAX = 6000,
    PC_FIGURE_PASSES_MAX = 1000000, /* gnuplot and whoever opens the file must hold them all */
    PC_FIGURE_MARGIN_LEFT = 64,
    PC_FIGURE_MARGIN_RIGHT = 24,
    PC_FIGURE_NUMBER_FONT_MAX = 12,
    PC_FIGURE_NUMBER_FONT_MIN = 7
};

/* One pixel is 1/96 inch in all of them; a font of n pixels is asked for as n * font_scale. */
typedef struct pc_figure_format {
    const char *ending;
    const char *terminal;
    const char *font;
    double size_scale; /* pixels into the terminal's unit of length */
    const char *size_unit;
    double font_scale;
    double point_scale; /* of gnuplot's points, for the same size everywhere */
    bool dated;         /* whether cairo writes the time of day into it */
    bool is_svg;
} pc_figure_format;

/* Rows of devices over an axis of time. */
typedef struct pc_figure_panel {
    const char *name;    /* of its data in the script */
    const char *heading; /* NULL: none */
    const char *label;   /* of the time axis; NULL: none */
    const char *unit;    /* of times */
    double heading_y;
    double top, row;   /* of the plot; height of a device's row */
    double right;      /* where the plot ends, as seen from the left edge of the picture */
    double begin, end; /* of the time axis, in `unit_ps`; an end of 0: there is nothing to draw */
    double unit_ps;    /* what the trace's times are divided by */
    double pixels_per_unit;
    int first_device, devices;
    const pc_replay_trace *trace;
    int64_t full;                     /* the passes from this one on are drawn pale */
    const pc_timeline_window *window; /* whose other microbatches are, too; NULL: none */
    int64_t passes[PC_PASS_KINDS];    /* how many of each kind are drawn */
    int number_font[PC_PASS_KINDS];   /* 0 where numbers do not fit */
} pc_figure_panel;

/* The changes of devices' memory, device by device and in each in the order of time. */
typedef struct pc_figure_levels {
    int64_t count;
    const int32_t *device;
    const pc_time *time_ps;
    const int64_t *bytes;
    pc_memory_limit capacity; /* of all devices */
} pc_figure_levels;

/* The time in which all devices do the same again every interval; an interval of 0: there is none. */
typedef struct pc_figure_phase {
    pc_time begin, end, interval;
} pc_figure_phase;

typedef struct pc_figure {
    const pc_timeline *timeline;
    const pc_figure_format *format;
    double width, height;
    double scale; /* of lengths and fonts */
    double margin_left, margin_right, legend_y;
    bool has_block, has_lifespans, has_memory;
    pc_figure_panel block, lifespans, passes, memory;
    pc_figure_phase stable;
    char timeline_heading[128];
    pc_figure_levels levels;
    pc_replay_trace repeated; /* the block and its repetitions; owned */
    pc_replay_trace cut;      /* passes and levels in the window; owned */
    pc_svg_notes *notes;      /* what every pass says under the pointer */
} pc_figure;

/* --- figure_layout.c --- */

double pc_figure_clamp(double value, double least, double most);

/* `usual`, grown with the picture. */
double pc_figure_length(const pc_figure *figure, double usual);

/* Sizes and places of everything; makes `repeated`, which the caller frees. The panel of passes has end 0 if there
 * is nothing to draw. */
pc_code pc_figure_lay_out(pc_figure *figure, pc_error *error);

/* --- figure_window.c: part of a timeline --- */

bool pc_figure_has_window(const pc_timeline *timeline);

/* The heading of a timeline whose window has microbatches; the figure's own. */
const char *pc_figure_window_heading(pc_figure *figure);

/* Whether a pass is drawn pale beside the panel's others. */
bool pc_figure_is_pale(const pc_figure_panel *panel, int64_t pass);

/* From the first start to the last end, in picoseconds, of what the window is of. PC_ERROR_INPUT if no pass is in it.
 */
pc_code pc_figure_window_times(const pc_timeline *timeline, pc_time *from, pc_time *to, pc_error *error);

/* The passes that are on the axis for a time, of the window's devices; and of `levels` those in between, with what each
 * device holds when it begins. The caller frees it with pc_figure_cut_free, whatever comes back. */
pc_code pc_figure_cut(const pc_timeline *timeline, const pc_figure_levels *levels, pc_time from, pc_time to,
                      pc_replay_trace *cut, pc_error *error);
void pc_figure_cut_free(pc_replay_trace *cut);

/* --- figure_script.c: parts that all panels have --- */

/* Pixels as gnuplot's parts of the screen; a font's size as the terminal takes it. */
double pc_figure_screen_x(const pc_figure *figure, double x);
double pc_figure_screen_y(const pc_figure *figure, double y);
double pc_figure_font_size(const pc_figure *figure, double pixels);

/* A line of text, which may be a user's, cut to the width from x on; `font` grows with the picture; `style` is
 * PC_SVG_BOLD or "". */
void pc_figure_add_text(const pc_figure *figure, pc_text *script, const char *text, double x, double y, int font,
                        const char *style);

/* Every how many rows a label fits. */
int pc_figure_label_step(const pc_figure *figure, const pc_figure_panel *panel);

/* The whole script. */
void pc_figure_add_script(const pc_figure *figure, pc_text *script);

/* --- figure_colour.c --- */

/* Chunks share a few shades, from dark to light, where there are many. */
int pc_figure_shade_count(const pc_timeline *timeline);
int pc_figure_shade_of(const pc_timeline *timeline, int chunk);
uint32_t pc_figure_fill_colour(const pc_timeline *timeline, int kind, int shade);

/* Of repetitions, and of what is outside of a window: the same, in pale, and the ink of numbers on it. */
uint32_t pc_figure_pale(const pc_timeline *timeline, uint32_t fill);
uint32_t pc_figure_pale_ink(const pc_timeline *timeline);

/* Black or white, whichever stands out. */
uint32_t pc_figure_ink_on(uint32_t fill);

/* Of a kind, in the legend. */
const char *pc_figure_kind_label(int kind);

/* --- figure_timeline.c: passes --- */

/* What the panel must show: the last end and the passes of each kind. The result is the width, in pixels per unit of
 * time, at which the mean pass holds the longest number. */
double pc_figure_survey_passes(pc_figure_panel *panel);

/* One font for all numbers of a kind, once row and pixels_per_unit are known. */
void pc_figure_choose_fonts(const pc_figure *figure, pc_figure_panel *panel);

void pc_figure_add_passes(const pc_figure *figure, const pc_figure_panel *panel, pc_text *script);

/* --- figure_block.c: the building block --- */

/* The block as a trace in cells from its first start, then its repetitions; `full` passes are the block's own. The
 * caller frees it with pc_figure_block_free, whatever comes back. */
pc_code pc_figure_repeat_block(const pc_block *block, pc_replay_trace *trace, int64_t *full, pc_error *error);
void pc_figure_block_free(pc_replay_trace *trace);

/* The bar above the plot that is an interval long. */
void pc_figure_add_interval(const pc_figure *figure, pc_text *script);

/* --- figure_lifespan.c: how long the block's chunks are held --- */

void pc_figure_add_lifespans(const pc_figure *figure, pc_text *script);

/* --- figure_stable.c: where a schedule repeats itself --- */

/* The stable phase of a timeline that has a block: the longest time around its middle in which every pass comes again
 * an interval later, and has come an interval before. */
pc_code pc_figure_find_stable(const pc_timeline *timeline, pc_figure_phase *phase, pc_error *error);

/* The heading of the timeline, which says what is shaded; the figure's own. */
const char *pc_figure_stable_heading(pc_figure *figure);

/* The shade behind the passes, and a bar above them. */
void pc_figure_add_stable(const pc_figure *figure, pc_text *script);

/* --- figure_memory.c: a step curve a device --- */

void pc_figure_add_memory(const pc_figure *figure, pc_text *script);

#endif
