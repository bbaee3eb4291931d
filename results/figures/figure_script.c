#include "results/figures/figure_private.h"

#include "engine/numbers.h"
#include "results/figures/gnuplot.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { TITLE_Y = 28, SUBTITLE_Y = 51, MARK_DISTANCE = 200 };

double pc_figure_screen_x(const pc_figure *figure, double x) {
    return x / figure->width;
}
double pc_figure_screen_y(const pc_figure *figure, double y) {
    return 1 - y / figure->height;
}
double pc_figure_font_size(const pc_figure *figure, double pixels) {
    return pixels * figure->format->font_scale;
}

static void add_terminal(const pc_figure *figure, pc_text *script) {
    const pc_figure_format *format = figure->format;
    pc_text_printf(script,
                   "set encoding utf8\nset terminal %s size %.6g%s,%.6g%s font '%s,%.4g' linewidth %.4g\n"
                   "set multiplot\nunset key\n",
                   format->terminal, figure->width * format->size_scale, format->size_unit,
                   figure->height * format->size_scale, format->size_unit, format->font,
                   pc_figure_font_size(figure, pc_figure_length(figure, PC_STYLE_TEXT_FONT)), figure->scale);
}

void pc_figure_add_text(const pc_figure *figure, pc_text *script, const char *text, double x, double y, int font,
                        const char *style) {
    if (!text || !*text) return;
    double size = pc_figure_length(figure, font);
    double room = figure->width - pc_figure_length(figure, PC_FIGURE_MARGIN_RIGHT) - x;
    pc_text_printf(script, "set label ");
    pc_gnuplot_add_string(script, text, room > 0 ? (size_t)(room / (PC_STYLE_LETTER_WIDTH * size)) : 0);
    pc_text_printf(script, " at screen %.6f,%.6f left noenhanced font '%s%s,%.4g' textcolor rgb '" PC_STYLE_INK "'\n",
                   pc_figure_screen_x(figure, x), pc_figure_screen_y(figure, y), figure->format->font, style,
                   pc_figure_font_size(figure, size));
}

/* --- the legend --- */

enum { SWATCH = 14, SWATCH_GAP = 6, ENTRY_GAP = 24 };

static void add_swatch(const pc_figure *figure, pc_text *script, double x, uint32_t colour) {
    double y = figure->legend_y, size = pc_figure_length(figure, SWATCH);
    pc_text_printf(script,
                   "set object rectangle from screen %.6f,%.6f to screen %.6f,%.6f front fillstyle solid 1 noborder "
                   "fillcolor rgb 0x%06" PRIx32 "\n",
                   pc_figure_screen_x(figure, x), pc_figure_screen_y(figure, y + size / 2),
                   pc_figure_screen_x(figure, x + size), pc_figure_screen_y(figure, y - size / 2), colour);
}

static double add_legend_text(const pc_figure *figure, pc_text *script, double x, const char *text) {
    pc_text_printf(script, "set label '%s' at screen %.6f,%.6f left textcolor rgb '" PC_STYLE_INK "'\n", text,
                   pc_figure_screen_x(figure, x), pc_figure_screen_y(figure, figure->legend_y));
    return x + (double)strlen(text) * pc_figure_length(figure, PC_STYLE_LETTER_WIDTH * PC_STYLE_TEXT_FONT);
}

/* A swatch in the shades of the chunks, and the kind's name; the place of the next entry. */
static double add_legend_entry(const pc_figure *figure, pc_text *script, double x, int kind) {
    int shades = pc_figure_shade_count(figure->timeline);
    for (int shade = 0; shade < shades; shade++, x += pc_figure_length(figure, SWATCH))
        add_swatch(figure, script, x, pc_figure_fill_colour(figure->timeline, kind, shade));
    x = add_legend_text(figure, script, x + pc_figure_length(figure, SWATCH_GAP), pc_figure_kind_label(kind));
    return x + pc_figure_length(figure, ENTRY_GAP);
}

static void add_legend(const pc_figure *figure, pc_text *script) {
    double x = figure->margin_left;
    for (int kind = 0; kind < PC_PASS_KINDS; kind++)
        if (figure->passes.passes[kind] || figure->block.passes[kind]) x = add_legend_entry(figure, script, x, kind);
    if (figure->timeline->chunks > 1) {
        char text[64];
        int slices = figure->timeline->slices, parts = figure->timeline->chunks / pc_max(slices, 1);
        snprintf(text, sizeof text, "dark to light: %s 0 to %d", slices == figure->timeline->chunks ? "slice" : "chunk",
                 figure->timeline->chunks - 1);
        if (slices > 1 && parts > 1)
            snprintf(text, sizeof text, "dark to light: %d parts, of each slice 0 to %d", parts, slices - 1);
        add_legend_text(figure, script, x, text);
    }
}

/* --- axes --- */

/* 1, 2 or 5 times a power of ten, so that marks on the time axis stand about as far apart as reads well. */
static double time_step(const pc_figure *figure, const pc_figure_panel *panel) {
    double wanted = pc_figure_length(figure, MARK_DISTANCE) / panel->pixels_per_unit,
           power = pow(10, floor(log10(wanted)));
    if (wanted < 2 * power) return power;
    return wanted < 5 * power ? 2 * power : 5 * power;
}

int pc_figure_label_step(const pc_figure *figure, const pc_figure_panel *panel) {
    int step = 1;
    while (step * panel->row < pc_figure_length(figure, 1.25 * PC_STYLE_TEXT_FONT)) step *= 2;
    return step;
}

static void add_margins(const pc_figure *figure, const pc_figure_panel *panel, pc_text *script) {
    pc_text_printf(script,
                   "set lmargin at screen %.6f\nset rmargin at screen %.6f\n"
                   "set tmargin at screen %.6f\nset bmargin at screen %.6f\n",
                   pc_figure_screen_x(figure, figure->margin_left), pc_figure_screen_x(figure, panel->right),
                   pc_figure_screen_y(figure, panel->top),
                   pc_figure_screen_y(figure, panel->top + panel->row * panel->devices));
}

static void add_time_label(const char *time_unit, pc_text *script) {
    pc_text label = {0};
    pc_text_printf(&label, *time_unit ? "Time [%s]" : "Time", time_unit);
    pc_text_printf(script, "set xlabel ");
    pc_gnuplot_add_string(script, label.data ? label.data : "Time", 40);
    script->failed = script->failed || label.failed;
    pc_text_free(&label);
    pc_text_printf(script, " noenhanced textcolor rgb '" PC_STYLE_QUIET "'\n");
}

/* Between the two rows of each device stands its number, unless it is too narrow for all. */
static void add_device_tics(const pc_figure *figure, const pc_figure_panel *panel, pc_text *script) {
    int step = pc_figure_label_step(figure, panel), devices = panel->devices / PC_TIMELINE_ROWS_BESIDE + 1;
    step = pc_max(1, step / PC_TIMELINE_ROWS_BESIDE);
    pc_text_printf(script, "set ytics nomirror scale 0 (");
    for (int d = 0; d < devices; d += step)
        pc_text_printf(script, "%s'%d' %d.5", d ? "," : "", d, PC_TIMELINE_ROWS_BESIDE * d);
    pc_text_printf(script, ") textcolor rgb '" PC_STYLE_QUIET "'\n");
}

static void add_axes(const pc_figure *figure, const pc_figure_panel *panel, pc_text *script) {
    double step = time_step(figure, panel);
    add_margins(figure, panel, script);
    pc_text_printf(script,
                   "set border 1 linewidth 0.8 linecolor rgb '" PC_STYLE_AXIS "'\n"
                   "set xtics nomirror out scale 0.5 %.9g,%.9g textcolor rgb '" PC_STYLE_QUIET "'\n"
                   "set ytics nomirror scale 0 %d,%d textcolor rgb '" PC_STYLE_QUIET "'\n"
                   "set grid xtics back linetype 1 linecolor rgb '" PC_STYLE_GRID "' linewidth 0.8\n"
                   "set object rectangle from graph 0,0 to graph 1,1 behind fillstyle solid 1 noborder "
                   "fillcolor rgb '#f3f3f3'\n"
                   "set xrange [%.9g:%.9g]\nset yrange [%.1f:%.1f]\n",
                   ceil(panel->begin / step - 1e-9) * step, step, panel->first_device,
                   pc_figure_label_step(figure, panel), panel->begin, panel->end,
                   panel->first_device + panel->devices - 0.5, panel->first_device - 0.5);
    if (figure->timeline->is_beside) add_device_tics(figure, panel, script);
    pc_text_printf(script, "set ylabel 'Device' textcolor rgb '" PC_STYLE_QUIET "'\n");
    if (panel->label) add_time_label(panel->label, script);
}

/* --- the panels --- */

/* What a panel has set must not show in the next. */
static void begin_panel(const pc_figure *figure, const pc_figure_panel *panel, pc_text *script) {
    if (panel->heading)
        pc_figure_add_text(figure, script, panel->heading, figure->margin_left, panel->heading_y, PC_STYLE_HEADING_FONT,
                           PC_SVG_BOLD);
    add_axes(figure, panel, script);
}

static void end_panel(pc_text *script) {
    pc_text_printf(script, "unset label\nunset object\nunset arrow\nunset xlabel\n");
}

static void add_block(const pc_figure *figure, pc_text *script) {
    begin_panel(figure, &figure->block, script);
    pc_figure_add_interval(figure, script);
    pc_figure_add_passes(figure, &figure->block, script);
    end_panel(script);
}

static void add_lifespans(const pc_figure *figure, pc_text *script) {
    begin_panel(figure, &figure->lifespans, script);
    pc_figure_add_lifespans(figure, script);
    end_panel(script);
}

static void add_timeline(const pc_figure *figure, pc_text *script) {
    begin_panel(figure, &figure->passes, script);
    if (figure->stable.interval > 0) pc_figure_add_stable(figure, script);
    pc_figure_add_passes(figure, &figure->passes, script);
    end_panel(script);
}

static void add_memory(const pc_figure *figure, pc_text *script) {
    begin_panel(figure, &figure->memory, script);
    pc_figure_add_memory(figure, script);
    end_panel(script);
}

void pc_figure_add_script(const pc_figure *figure, pc_text *script) {
    add_terminal(figure, script);
    pc_figure_add_text(figure, script, figure->timeline->title, figure->margin_left, pc_figure_length(figure, TITLE_Y),
                       PC_STYLE_TITLE_FONT, PC_SVG_BOLD);
    pc_figure_add_text(figure, script, figure->timeline->subtitle, figure->margin_left,
                       pc_figure_length(figure, SUBTITLE_Y), PC_STYLE_HEADING_FONT, "");
    add_legend(figure, script);
    if (figure->has_block) add_block(figure, script);
    if (figure->has_lifespans) add_lifespans(figure, script);
    add_timeline(figure, script);
    if (figure->has_memory) add_memory(figure, script);
    pc_text_printf(script, "unset multiplot\n");
}
