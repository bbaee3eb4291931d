#include "results/figure.h"

#include "engine/alloc.h"
#include "results/gnuplot.h"
#include "results/pdf.h"
#include "results/replace.h"
#include "results/text.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

/* --- file formats --- */

/* One pixel is 1/96 inch in all of them; a font of n pixels is asked for as n * font_scale. */
typedef struct picture_format {
    const char *ending;
    const char *terminal;
    const char *font;
    double size_scale; /* pixels into the terminal's unit of length */
    const char *size_unit;
    double font_scale;
    const char *bold; /* what makes a font bold there; the svg terminal takes it for a part of the name */
    bool dated;       /* whether cairo writes the time of day into it */
} picture_format;

static const picture_format formats[] = {
    {".svg", "svg noenhanced name 'timeline' background '#ffffff'", "Helvetica", 1, "", 1, "", false},
    {".png", "pngcairo noenhanced background '#ffffff'", "Helvetica", 1, "", 0.75, ":Bold", false},
    {".pdf", "pdfcairo noenhanced background '#ffffff' fontscale 1", "Helvetica", 1.0 / 96, "in", 0.5625, ":Bold",
     true},
};

static const picture_format *find_format(const char *path) {
    size_t length = strlen(path);
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
        size_t ending = strlen(formats[i].ending);
        if (length > ending && strcasecmp(path + length - ending, formats[i].ending) == 0) return &formats[i];
    }
    return NULL;
}

pc_code pc_figure_check_path(const char *path, pc_error *error) {
    if (find_format(path)) return PC_OK;
    return pc_error_set(error, PC_ERROR_INPUT, "%s: a file name that ends in .svg, .png or .pdf was expected", path);
}

/* --- colours --- */

enum { SHADES_MAX = 6, WHITE = 0xFFFFFF, BLACK = 0x000000 };

/* From the palette of Okabe and Ito (https://jfly.uni-koeln.de/color/): blue, vermilion, yellow and purple, apart in
 * hue and in lightness, and for the last chunk a tint of each. B and BW share a colour: no schedule needs both told
 * apart at a glance, and the legend names what is there. */
typedef struct kind_style {
    const char *label;
    uint32_t first, last; /* colours of the first and the last chunk */
} kind_style;

static const kind_style kind_styles[PC_PASS_KINDS] = {
    [PC_PASS_F] = {"F forward", 0x0072B2, 0x7CC4EE},           [PC_PASS_B] = {"B backward, input", 0xD55E00, 0xF7AE7C},
    [PC_PASS_W] = {"W backward, weights", 0xE9D628, 0xF6EE9C}, [PC_PASS_BW] = {"BW backward", 0xD55E00, 0xF7AE7C},
    [PC_PASS_R] = {"R recompute", 0xCC79A7, 0xEBCBDD},
};

static unsigned channel(uint32_t colour, int shift) {
    return colour >> shift & 0xFF;
}

static uint32_t blend(uint32_t from, uint32_t to, double part) {
    uint32_t colour = 0;
    for (int shift = 16; shift >= 0; shift -= 8)
        colour |= (uint32_t)lround(channel(from, shift) + part * ((double)channel(to, shift) - channel(from, shift)))
                  << shift;
    return colour;
}

static int shade_count(const pc_timeline *timeline) {
    return timeline->chunks < SHADES_MAX ? timeline->chunks : SHADES_MAX;
}

static int shade_of(const pc_timeline *timeline, int chunk) {
    int shades = shade_count(timeline);
    return timeline->chunks <= shades ? chunk : (int)((int64_t)chunk * shades / timeline->chunks);
}

static uint32_t fill_colour(const pc_timeline *timeline, int kind, int shade) {
    int shades = shade_count(timeline);
    double part = shades > 1 ? (double)shade / (shades - 1) : 0;
    return blend(kind_styles[kind].first, kind_styles[kind].last, part);
}

/* Black or white, whichever stands out: by the weights of Rec. 709 for the channels' light. */
static uint32_t ink_on(uint32_t fill) {
    double light = 0.2126 * channel(fill, 16) + 0.7152 * channel(fill, 8) + 0.0722 * channel(fill, 0);
    return light > 140 ? BLACK : WHITE;
}

/* --- layout, in pixels from the top left corner --- */

enum {
    WIDTH_USUAL = 1200,
    WIDTH_MAX = 6400, /* wide enough for the numbers of 128 microbatches */
    PLOT_HEIGHT_MAX = 6000,
    MARGIN_LEFT = 64,
    MARGIN_RIGHT = 24,
    MARGIN_BOTTOM = 58,
    TITLE_Y = 28,
    TITLE_FONT = 18,
    SUBTITLE_FONT = 13,
    TEXT_FONT = 12,
    NUMBER_FONT_MAX = 12,
    NUMBER_FONT_MIN = 7,
    MARK_DISTANCE = 200,
    GAP_FROM = 4,              /* the width from which a pass gives a pixel to the gap behind it */
    PASSES_DRAWN_MAX = 1000000 /* gnuplot and whoever opens the file must hold them all */
};

/* Of a digit and of an average letter, in font sizes; Helvetica's are 0.556 and about 0.5, its stand-ins are wider. */
#define DIGIT_WIDTH  0.6
#define LETTER_WIDTH 0.58

typedef struct timeline_layout {
    const pc_timeline *timeline;
    const picture_format *format;
    double width, height;
    double top; /* of the plot */
    double legend_y;
    double row;                     /* height of a device's row */
    double end;                     /* of the time axis, in the timeline's unit */
    double pixels_per_unit;         /* of time */
    int64_t passes[PC_PASS_KINDS];  /* how many of each kind are drawn */
    int number_font[PC_PASS_KINDS]; /* 0 where numbers do not fit */
} timeline_layout;

static double in_units(const pc_timeline *timeline, pc_time time) {
    return (double)time / timeline->time_unit_ps;
}

/* A replay that ended early may hold passes that never ran. */
static bool is_drawn(const pc_replay_trace *trace, int64_t i) {
    return trace->pass_start_ps[i] >= 0 && trace->pass_end_ps[i] > trace->pass_start_ps[i];
}

static int digits_of(int32_t number) {
    int digits = 1;
    for (; number >= 10; number /= 10) digits++;
    return digits;
}

static double number_width(int32_t number, double font) {
    return digits_of(number) * DIGIT_WIDTH * font + 2;
}

/* What the picture must show: the last end, the passes of each kind, and the width, in pixels per unit of time, at
 * which the mean pass holds the longest number. */
static double survey(timeline_layout *layout) {
    const pc_replay_trace *trace = layout->timeline->trace;
    double duration = 0;
    int64_t drawn = 0;
    int32_t longest = 0;
    for (int64_t i = 0; i < trace->pass_count; i++) {
        if (!is_drawn(trace, i)) continue;
        double end = in_units(layout->timeline, trace->pass_end_ps[i]);
        layout->passes[trace->pass[i].kind]++;
        layout->end = fmax(layout->end, end);
        duration += end - in_units(layout->timeline, trace->pass_start_ps[i]);
        if (trace->pass[i].microbatch > longest) longest = trace->pass[i].microbatch;
        drawn++;
    }
    return duration > 0 ? number_width(longest, NUMBER_FONT_MIN + 1) * (double)drawn / duration : 0;
}

static double row_height(int devices) {
    double height = fmin(44, fmax(20, 420.0 / devices));
    height = fmin(height, (double)PLOT_HEIGHT_MAX / devices);
    return height < 1 ? height : floor(height);
}

static double plot_width(const timeline_layout *layout) {
    return layout->width - MARGIN_LEFT - MARGIN_RIGHT;
}

static double clamp(double value, double least, double most) {
    return fmin(fmax(value, least), most);
}

static void choose_size(timeline_layout *layout, double pixels_wanted) {
    double width = ceil(layout->end * pixels_wanted + MARGIN_LEFT + MARGIN_RIGHT);
    layout->width = clamp(width, WIDTH_USUAL, WIDTH_MAX);
    layout->row = row_height(layout->timeline->devices);
    layout->legend_y = layout->timeline->subtitle && *layout->timeline->subtitle ? 76 : 54;
    layout->top = layout->legend_y + 26;
    layout->height = ceil(layout->top + layout->row * layout->timeline->devices + MARGIN_BOTTOM);
    layout->pixels_per_unit = plot_width(layout) / layout->end;
}

static double pass_width(const timeline_layout *layout, int64_t i) {
    const pc_replay_trace *trace = layout->timeline->trace;
    return (double)(trace->pass_end_ps[i] - trace->pass_start_ps[i]) / layout->timeline->time_unit_ps *
           layout->pixels_per_unit;
}

static bool number_fits(const timeline_layout *layout, int64_t i, int font) {
    return number_width(layout->timeline->trace->pass[i].microbatch, font) <= pass_width(layout, i);
}

static int64_t count_fitting(const timeline_layout *layout, int kind, int font) {
    const pc_replay_trace *trace = layout->timeline->trace;
    int64_t count = 0;
    for (int64_t i = 0; i < trace->pass_count; i++)
        if (trace->pass[i].kind == kind && is_drawn(trace, i) && number_fits(layout, i, font)) count++;
    return count;
}

/* The largest in which nearly all numbers of a kind fit, one for the whole kind; 0 where there is none: numbers on some
 * passes only would look like a meaning. */
static int choose_number_font(const timeline_layout *layout, int kind) {
    for (int font = (int)fmin(NUMBER_FONT_MAX, 0.7 * layout->row); font >= NUMBER_FONT_MIN; font--)
        if ((double)count_fitting(layout, kind, font) >= 0.9 * (double)layout->passes[kind]) return font;
    return 0;
}

/* Fonts that differ by a little look like a mistake: they become the smallest of them. */
static void even_out_fonts(timeline_layout *layout) {
    int largest = 0, smallest = NUMBER_FONT_MAX;
    for (int kind = 0; kind < PC_PASS_KINDS; kind++)
        if (layout->number_font[kind] > largest) largest = layout->number_font[kind];
    for (int kind = 0; kind < PC_PASS_KINDS; kind++)
        if (layout->number_font[kind] >= largest - 2 && layout->number_font[kind] < smallest)
            smallest = layout->number_font[kind];
    for (int kind = 0; kind < PC_PASS_KINDS; kind++)
        if (layout->number_font[kind] > smallest) layout->number_font[kind] = smallest;
}

static void lay_out(timeline_layout *layout) {
    choose_size(layout, survey(layout));
    for (int kind = 0; kind < PC_PASS_KINDS; kind++)
        if (layout->passes[kind]) layout->number_font[kind] = choose_number_font(layout, kind);
    even_out_fonts(layout);
}

/* --- the script --- */

static double screen_x(const timeline_layout *layout, double x) {
    return x / layout->width;
}
static double screen_y(const timeline_layout *layout, double y) {
    return 1 - y / layout->height;
}
static double font_size(const timeline_layout *layout, double pixels) {
    return pixels * layout->format->font_scale;
}

static void add_terminal(const timeline_layout *layout, pc_text *script) {
    const picture_format *format = layout->format;
    pc_text_printf(script, "set encoding utf8\nset terminal %s size %.6g%s,%.6g%s font '%s,%.4g' linewidth 1\n",
                   format->terminal, layout->width * format->size_scale, format->size_unit,
                   layout->height * format->size_scale, format->size_unit, format->font, font_size(layout, TEXT_FONT));
}

/* A line of user's text, cut to the picture's width. */
static void add_line(const timeline_layout *layout, pc_text *script, const char *text, double y, int font,
                     const char *style) {
    if (!text || !*text) return;
    pc_text_printf(script, "set label ");
    pc_gnuplot_add_string(script, text, (size_t)(plot_width(layout) / (LETTER_WIDTH * font)));
    pc_text_printf(script, " at screen %.6f,%.6f left noenhanced font '%s%s,%.4g' textcolor rgb '#222222'\n",
                   screen_x(layout, MARGIN_LEFT), screen_y(layout, y), layout->format->font, style,
                   font_size(layout, font));
}

/* 1, 2 or 5 times a power of ten, so that marks on the time axis stand about as far apart as reads well. */
static double time_step(const timeline_layout *layout) {
    double wanted = MARK_DISTANCE / layout->pixels_per_unit, power = pow(10, floor(log10(wanted)));
    if (wanted < 2 * power) return power;
    return wanted < 5 * power ? 2 * power : 5 * power;
}

static void add_axes(const timeline_layout *layout, pc_text *script) {
    const pc_timeline *timeline = layout->timeline;
    int step = 1;
    while (step * layout->row < 1.25 * TEXT_FONT) step *= 2;
    pc_text_printf(script,
                   "unset key\nset lmargin at screen %.6f\nset rmargin at screen %.6f\n"
                   "set tmargin at screen %.6f\nset bmargin at screen %.6f\n",
                   screen_x(layout, MARGIN_LEFT), screen_x(layout, layout->width - MARGIN_RIGHT),
                   screen_y(layout, layout->top), screen_y(layout, layout->height - MARGIN_BOTTOM));
    pc_text_printf(script,
                   "set border 1 linewidth 0.8 linecolor rgb '#888888'\n"
                   "set xtics nomirror out scale 0.5 0,%.9g textcolor rgb '#444444'\n"
                   "set ytics nomirror scale 0 0,%d textcolor rgb '#444444'\n"
                   "set grid xtics back linetype 1 linecolor rgb '#dcdcdc' linewidth 0.8\n"
                   "set object rectangle from graph 0,0 to graph 1,1 behind fillstyle solid 1 noborder "
                   "fillcolor rgb '#f3f3f3'\n"
                   "set xrange [0:%.9g]\nset yrange [%.1f:-0.5]\n",
                   time_step(layout), step, layout->end, timeline->devices - 0.5);
    pc_text_printf(script, "set ylabel 'Device' textcolor rgb '#444444'\nset xlabel ");
    pc_text unit = {0};
    pc_text_printf(&unit, *timeline->time_unit ? "Time [%s]" : "Time", timeline->time_unit);
    pc_gnuplot_add_string(script, unit.data ? unit.data : "Time", 40);
    script->failed = script->failed || unit.failed;
    pc_text_free(&unit);
    pc_text_printf(script, " noenhanced textcolor rgb '#444444'\n");
}

enum { SWATCH = 14, SWATCH_GAP = 6, ENTRY_GAP = 24 };

static void add_swatch(const timeline_layout *layout, pc_text *script, double x, double width, uint32_t colour) {
    double y = layout->legend_y;
    pc_text_printf(script,
                   "set object rectangle from screen %.6f,%.6f to screen %.6f,%.6f front fillstyle solid 1 noborder "
                   "fillcolor rgb '#%06" PRIx32 "'\n",
                   screen_x(layout, x), screen_y(layout, y + SWATCH / 2.0), screen_x(layout, x + width),
                   screen_y(layout, y - SWATCH / 2.0), colour);
}

static double add_legend_text(const timeline_layout *layout, pc_text *script, double x, const char *text) {
    pc_text_printf(script, "set label '%s' at screen %.6f,%.6f left textcolor rgb '#222222'\n", text,
                   screen_x(layout, x), screen_y(layout, layout->legend_y));
    return x + (double)strlen(text) * LETTER_WIDTH * TEXT_FONT;
}

/* A swatch in the shades of the chunks, and the kind's name; the place of the next entry. */
static double add_legend_entry(const timeline_layout *layout, pc_text *script, double x, int kind) {
    int shades = shade_count(layout->timeline);
    for (int shade = 0; shade < shades; shade++, x += SWATCH)
        add_swatch(layout, script, x, SWATCH, fill_colour(layout->timeline, kind, shade));
    return add_legend_text(layout, script, x + SWATCH_GAP, kind_styles[kind].label) + ENTRY_GAP;
}

static void add_legend(const timeline_layout *layout, pc_text *script) {
    double x = MARGIN_LEFT;
    for (int kind = 0; kind < PC_PASS_KINDS; kind++)
        if (layout->passes[kind]) x = add_legend_entry(layout, script, x, kind);
    if (layout->timeline->chunks > 1) {
        char text[64];
        snprintf(text, sizeof text, "dark to light: chunk 0 to %d", layout->timeline->chunks - 1);
        add_legend_text(layout, script, x, text);
    }
}

/* --- the passes, one data block a colour --- */

#define ROW_FILL 0.45 /* of a row, up and down from its middle */

typedef struct colour_group {
    int kind, shade;
    int64_t passes, numbers;
} colour_group;

static bool is_in(const timeline_layout *layout, const colour_group *group, int64_t i) {
    const pc_pass *pass = &layout->timeline->trace->pass[i];
    return pass->kind == group->kind && is_drawn(layout->timeline->trace, i) &&
           shade_of(layout->timeline, pass->chunk) == group->shade;
}

typedef struct box_extent {
    double left, right; /* in the timeline's unit */
} box_extent;

/* Where a pass is drawn: on whole pixels and one short, so that all gaps between neighbours look the same; a border
 * would do so with a second shape a pass. Passes too narrow to spare a pixel are drawn where they are. */
static box_extent extent_of(const timeline_layout *layout, int64_t i) {
    const pc_replay_trace *trace = layout->timeline->trace;
    box_extent exact = {in_units(layout->timeline, trace->pass_start_ps[i]),
                        in_units(layout->timeline, trace->pass_end_ps[i])};
    double scale = layout->pixels_per_unit;
    if (pass_width(layout, i) < GAP_FROM) return exact;
    return (box_extent){round(exact.left * scale) / scale, (round(exact.right * scale) - 1) / scale};
}

static void add_boxes(const timeline_layout *layout, pc_text *script, colour_group *group) {
    const pc_replay_trace *trace = layout->timeline->trace;
    pc_text_printf(script, "$boxes_%s_%d << EOD\n", pc_pass_kind_name((pc_pass_kind)group->kind), group->shade);
    for (int64_t i = 0; i < trace->pass_count; i++) {
        if (!is_in(layout, group, i)) continue;
        box_extent extent = extent_of(layout, i);
        pc_text_printf(script, "%.9g %.9g %d\n", extent.left, extent.right, trace->pass_device[i]);
        group->passes++;
    }
    pc_text_printf(script, "EOD\n");
}

static void add_numbers(const timeline_layout *layout, pc_text *script, colour_group *group) {
    const pc_replay_trace *trace = layout->timeline->trace;
    int font = layout->number_font[group->kind];
    if (font == 0) return;
    pc_text_printf(script, "$numbers_%s_%d << EOD\n", pc_pass_kind_name((pc_pass_kind)group->kind), group->shade);
    for (int64_t i = 0; i < trace->pass_count; i++) {
        if (!is_in(layout, group, i) || !number_fits(layout, i, font)) continue;
        box_extent extent = extent_of(layout, i);
        double middle = (extent.left + extent.right) / 2;
        pc_text_printf(script, "%.9g %d %d\n", middle, trace->pass_device[i], trace->pass[i].microbatch);
        group->numbers++;
    }
    pc_text_printf(script, "EOD\n");
}

static void add_group_plots(const timeline_layout *layout, pc_text *plot, const colour_group *group) {
    const char *name = pc_pass_kind_name((pc_pass_kind)group->kind);
    uint32_t fill = fill_colour(layout->timeline, group->kind, group->shade);
    if (group->passes == 0) return;
    pc_text_printf(plot,
                   "%s$boxes_%s_%d using 1:3:1:2:($3-%.2f):($3+%.2f) with boxxyerror fillstyle solid 1 noborder "
                   "fillcolor rgb '#%06" PRIx32 "'",
                   plot->size ? ", " : "plot ", name, group->shade, ROW_FILL, ROW_FILL, fill);
    if (group->numbers == 0) return;
    pc_text_printf(
        plot, ", $numbers_%s_%d using 1:2:3 with labels center font '%s,%.4g' textcolor rgb '#%06" PRIx32 "'", name,
        group->shade, layout->format->font, font_size(layout, layout->number_font[group->kind]), ink_on(fill));
}

static void add_passes(const timeline_layout *layout, pc_text *script) {
    pc_text plot = {0};
    int shades = shade_count(layout->timeline);
    for (int i = 0; i < PC_PASS_KINDS * shades; i++) {
        colour_group group = {.kind = i / shades, .shade = i % shades};
        if (!layout->passes[group.kind]) continue;
        add_boxes(layout, script, &group);
        add_numbers(layout, script, &group);
        add_group_plots(layout, &plot, &group);
    }
    if (plot.data) pc_text_add(script, plot.data, plot.size);
    pc_text_add(script, "\n", 1);
    script->failed = script->failed || plot.failed;
    pc_text_free(&plot);
}

static void add_script(const timeline_layout *layout, pc_text *script) {
    add_terminal(layout, script);
    add_line(layout, script, layout->timeline->title, TITLE_Y, TITLE_FONT, layout->format->bold);
    add_line(layout, script, layout->timeline->subtitle, TITLE_Y + 23, SUBTITLE_FONT, "");
    add_axes(layout, script);
    add_legend(layout, script);
    add_passes(layout, script);
}

/* --- the picture --- */

static pc_code make_script(timeline_layout *layout, pc_text *script, pc_error *error) {
    pc_number_scope scope = {0};
    if (!pc_number_scope_enter(&scope)) return pc_error_no_memory(error);
    lay_out(layout);
    pc_code code = PC_OK;
    if (layout->end > 0)
        add_script(layout, script);
    else
        code = pc_error_set(error, PC_ERROR_INPUT, "there is no pass to draw");
    pc_number_scope_leave(&scope);
    return code || !script->failed ? code : pc_error_no_memory(error);
}

/* Writes out what gnuplot drew. */
static pc_code copy_picture(int picture, pc_replacement *replacement, pc_error *error) {
    char bytes[1 << 16];
    ssize_t got;
    for (off_t at = 0; (got = pread(picture, bytes, sizeof bytes, at)) > 0; at += got) {
        pc_code code = pc_replacement_write(replacement, bytes, (size_t)got, error);
        if (code) return code;
    }
    return got == 0 ? PC_OK : pc_error_set(error, PC_ERROR_IO, "cannot read the picture: %s", strerror(errno));
}

static pc_code draw_into(const pc_text *script, const picture_format *format, int picture, pc_error *error) {
    pc_code code = pc_gnuplot_run(script, picture, error);
    int cause = !code && format->dated ? pc_pdf_clear_date(picture) : 0;
    return cause ? pc_error_set(error, PC_ERROR_IO, "cannot draw: %s", strerror(cause)) : code;
}

static pc_code draw(const pc_text *script, const picture_format *format, const char *path, pc_error *error) {
    pc_replacement replacement;
    pc_code code = pc_replacement_begin(path, &replacement, error);
    if (code) return code;
    int picture = pc_memory_file("pipecast-picture");
    if (picture < 0) code = pc_error_set(error, PC_ERROR_IO, "cannot draw: %s", strerror(errno));
    if (!code) code = draw_into(script, format, picture, error);
    bool is_drawn = !code;
    if (!code) code = copy_picture(picture, &replacement, error);
    if (picture >= 0) close(picture);
    if (!code) return pc_replacement_commit(&replacement, error);
    if (!is_drawn) pc_error_prefix(error, "%s", path);
    pc_replacement_discard(&replacement);
    return code;
}

pc_code pc_figure_check_size(const char *path, int64_t pass_count, pc_error *error) {
    if (pass_count <= PASSES_DRAWN_MAX) return PC_OK;
    return pc_error_set(error, PC_ERROR_INPUT, "%s: %" PRId64 " passes are too many to draw, at most %d can be", path,
                        pass_count, PASSES_DRAWN_MAX);
}

pc_code pc_figure_timeline(const pc_timeline *timeline, const char *path, pc_error *error) {
    pc_code code = pc_figure_check_path(path, error);
    if (code) return code;
    code = pc_figure_check_size(path, timeline->trace->pass_count, error);
    if (code) return code;
    timeline_layout layout = {.timeline = timeline, .format = find_format(path)};
    pc_text script = {0};
    code = make_script(&layout, &script, error);
    if (!code) code = draw(&script, layout.format, path, error);
    pc_text_free(&script);
    return code;
}
