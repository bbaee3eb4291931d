#include "results/figures/links_private.h"

#include "engine/numbers.h"
#include "results/figures/picture.h"
#include "results/figures/style.h"
#include "results/link_name.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* In pixels. */
enum {
    MARGIN = 20,
    MARGIN_RIGHT = 70,
    TITLE_Y = 28,
    SUBTITLE_Y = 51,
    LEGEND_Y = 76,
    LEGEND_BELOW = 30, /* to the heading of the first panel */
    SECOND_LINE = 18,
    HEADING_BELOW = 32, /* to the plot */
    TICKS = 28,
    LABEL = 22,
    PANEL_GAP = 22,
    BOTTOM = 8,
    ROWS_TOGETHER = 560,
    ROW_LEAST = 14,
    ROW_MOST = 38,
    SWATCH = 14,
    SWATCH_GAP = 6,
    ENTRY_GAP = 24,
    MEAN_GAP = 8,
    MARK_DISTANCE = 180
};

#define BAND_BOTTOM 0.44 /* of a row, down from its middle */
#define BAND_HEIGHT 0.88
#define OVERLAP     0.4  /* of a pixel */
#define MEAN_LEAST  0.01 /* percent: below it a number is of no interest */

typedef struct picture {
    const pc_links_figure *figure;
    const pc_links_data *data;
    pc_picture_page page;
    pc_svg_notes *notes;
    bool with_replica, with_notes;
    double left, row;
    double y[PC_LINK_SORTS]; /* of each panel's heading */
} picture;

/* --- layout --- */

static double label_width(const picture *canvas) {
    char name[PC_LINK_NAME_SIZE];
    size_t longest = 0;
    for (int i = 0; i < canvas->data->row_count; i++) {
        pc_link_name(canvas->data->trace, canvas->data->rows[i].link, canvas->with_replica, name);
        if (strlen(name) > longest) longest = strlen(name);
    }
    return (double)longest * PC_STYLE_LETTER_WIDTH * PC_STYLE_TEXT_FONT;
}

static double plot_top(const picture *canvas, int panel) {
    return canvas->y[panel] + HEADING_BELOW;
}

static double plot_bottom(const picture *canvas, int panel) {
    return plot_top(canvas, panel) + canvas->row * canvas->data->panels[panel].count;
}

static void lay_out(picture *canvas) {
    canvas->row = floor(fmin(fmax((double)ROWS_TOGETHER / canvas->data->row_count, ROW_LEAST), ROW_MOST));
    canvas->left = ceil(MARGIN + label_width(canvas));
    canvas->page.width = canvas->left + PC_LINKS_COLUMNS + MARGIN_RIGHT; /* a column is a pixel */
    double y = LEGEND_Y + LEGEND_BELOW;
    for (int i = 0; i < canvas->data->panel_count; i++) {
        canvas->y[i] = y;
        y = plot_bottom(canvas, i) + TICKS + PANEL_GAP;
    }
    canvas->page.height = y - PANEL_GAP + LABEL + BOTTOM;
}

/* --- texts --- */

static void add_legend(const picture *canvas) {
    double at = canvas->left;
    for (int colour = 0; colour < PC_LINKS_COLOURS; colour++) {
        if (!canvas->data->has_colour[colour]) continue;
        pc_picture_add_swatch(&canvas->page, at, LEGEND_Y, SWATCH, pc_links_colour(colour));
        at += SWATCH + SWATCH_GAP;
        pc_picture_add_text(&canvas->page, pc_links_colour_name(colour), at, LEGEND_Y, PC_STYLE_TEXT_FONT, false);
        at += (double)strlen(pc_links_colour_name(colour)) * PC_STYLE_LETTER_WIDTH * PC_STYLE_TEXT_FONT + ENTRY_GAP;
    }
}

/* "Links between stages: the 6 busiest of 14, 50 GB/s" */
static void add_heading(const picture *canvas, int index) {
    static const char *const words[PC_LINK_SORTS] = {[PC_LINK_STAGES] = "Links between stages",
                                                     [PC_LINK_DOMAIN] = "Ports into NVLink domains",
                                                     [PC_LINK_NIC] = "Shares of NICs",
                                                     [PC_LINK_UPLINK] = "Shares of uplinks"};
    const pc_links_panel *panel = &canvas->data->panels[index];
    const pc_links_row *rows = &canvas->data->rows[panel->first];
    const double *bandwidth = canvas->data->trace->link_bytes_per_s;
    char text[160];
    double least = INFINITY, most = 0;
    for (int i = 0; i < panel->count; i++) {
        least = fmin(least, bandwidth[rows[i].link]);
        most = fmax(most, bandwidth[rows[i].link]);
    }
    int used = snprintf(text, sizeof text, "%s: ", words[panel->sort]);
    if (panel->of > panel->count)
        used += snprintf(text + used, sizeof text - (size_t)used, "the %d busiest of %" PRId64 ", ", panel->count,
                         panel->of);
    if (least < most)
        snprintf(text + used, sizeof text - (size_t)used, "%.4g to %.4g GB/s", least / PC_BYTES_PER_GB,
                 most / PC_BYTES_PER_GB);
    else
        snprintf(text + used, sizeof text - (size_t)used, "%.4g GB/s%s", most / PC_BYTES_PER_GB,
                 panel->count > 1 ? " each" : "");
    pc_picture_add_text(&canvas->page, text, canvas->left, canvas->y[index], PC_STYLE_HEADING_FONT, true);
}

static void add_second_line(const picture *canvas, int index) {
    const pc_links_panel *panel = &canvas->data->panels[index];
    const char *sharing = panel->is_shared ? "" : "; nothing is shared: each flow has all of it, as if alone";
    char text[200];
    if (panel->scale > 1)
        snprintf(text, sizeof text, "a band is %.0f%% of the bandwidth, the line 100%%%s", 100 * panel->scale, sharing);
    else
        snprintf(text, sizeof text, "a band is 100%% of the bandwidth%s", sharing);
    pc_picture_add_text(&canvas->page, text, canvas->left, canvas->y[index] + SECOND_LINE, PC_STYLE_TEXT_FONT, false);
    pc_picture_add_text(&canvas->page, "mean", canvas->left + PC_LINKS_COLUMNS + MEAN_GAP,
                        canvas->y[index] + SECOND_LINE, PC_STYLE_TEXT_FONT, false);
}

/* --- axes --- */

static double time_end(const picture *canvas) {
    return (double)canvas->data->end_ps / canvas->figure->time_unit_ps;
}

/* 1, 2 or 5 times a power of ten. */
static double time_step(const picture *canvas) {
    double wanted = time_end(canvas) * MARK_DISTANCE / PC_LINKS_COLUMNS, power = pow(10, floor(log10(wanted)));
    if (wanted < 2 * power) return power;
    return wanted < 5 * power ? 2 * power : 5 * power;
}

static void add_row_names(const picture *canvas, const pc_links_panel *panel) {
    char name[PC_LINK_NAME_SIZE];
    pc_text_printf(canvas->page.script, "set ytics nomirror scale 0 (");
    for (int i = 0; i < panel->count; i++) {
        pc_link_name(canvas->data->trace, canvas->data->rows[panel->first + i].link, canvas->with_replica, name);
        pc_text_printf(canvas->page.script, "%s'%s' %d", i ? ", " : "", name, i);
    }
    pc_text_printf(canvas->page.script, ") textcolor rgb '" PC_STYLE_INK "'\n");
}

static void add_axes(const picture *canvas, int index) {
    const pc_links_panel *panel = &canvas->data->panels[index];
    pc_text_printf(canvas->page.script,
                   "set lmargin at screen %.6f\nset rmargin at screen %.6f\n"
                   "set tmargin at screen %.6f\nset bmargin at screen %.6f\n",
                   canvas->left / canvas->page.width, (canvas->left + PC_LINKS_COLUMNS) / canvas->page.width,
                   1 - plot_top(canvas, index) / canvas->page.height,
                   1 - plot_bottom(canvas, index) / canvas->page.height);
    pc_text_printf(canvas->page.script,
                   "set border 1 linewidth 0.8 linecolor rgb '" PC_STYLE_AXIS "'\n"
                   "set xtics nomirror out scale 0.5 0,%.9g textcolor rgb '" PC_STYLE_QUIET "'\n"
                   "set grid xtics back linetype 1 linecolor rgb '" PC_STYLE_GRID "' linewidth 0.8\n"
                   "set xrange [0:%.9g]\nset yrange [%.1f:-0.5]\n",
                   time_step(canvas), time_end(canvas), panel->count - 0.5);
    add_row_names(canvas, panel);
    if (index < canvas->data->panel_count - 1) return;
    pc_text_printf(canvas->page.script, "set xlabel 'Time [%s]' noenhanced textcolor rgb '" PC_STYLE_QUIET "'\n",
                   canvas->figure->time_unit);
}

/* --- pieces: as long as the loads of a row stay the same --- */

static void add_note(const picture *canvas, int row, int colour, double start, double end, double load) {
    const pc_links_row *of = &canvas->data->rows[row];
    char attributes[192], title[PC_LINK_NAME_SIZE + 160], name[PC_LINK_NAME_SIZE];
    double bytes_per_s = load * canvas->data->trace->link_bytes_per_s[of->link];
    pc_link_name(canvas->data->trace, of->link, canvas->with_replica, name);
    snprintf(attributes, sizeof attributes,
             "class=\"load\" data-link=\"%" PRId64 "\" data-colour=\"%d\" data-start=\"%.9g\" data-end=\"%.9g\" "
             "data-bytes-per-s=\"%.9g\"",
             of->link, colour, start, end, bytes_per_s);
    snprintf(title, sizeof title, "%s: %s, %.4g GB/s, %.3g%%: %.6g to %.6g %s", name, pc_links_colour_name(colour),
             bytes_per_s / PC_BYTES_PER_GB, 100 * load, start, end, canvas->figure->time_unit);
    pc_svg_add_note(canvas->notes, attributes, title);
}

/* Where a band reaches that is so much of the bandwidth. */
static double height(const pc_links_panel *panel, int row, double load) {
    return row - panel->first + BAND_BOTTOM - BAND_HEIGHT * load / panel->scale;
}

/* A piece of one colour lies upon those of the colours before, and reaches a little into the next of its own: where two
 * meet between pixels, the ground would show. */
static void add_piece(const picture *canvas, const pc_links_panel *panel, int row, int colour, int from, int to) {
    const double *loads = pc_links_loads(canvas->data, row, from);
    double below = 0, unit = time_end(canvas) / PC_LINKS_COLUMNS, start = from * unit, end = to * unit;
    for (int i = 0; i < colour; i++) below += loads[i];
    bool goes_on = to < PC_LINKS_COLUMNS && pc_links_loads(canvas->data, row, to)[colour] > 0;
    pc_text_printf(canvas->page.script, "%.9g %.9g %.9g %.9g\n", start, end + (goes_on ? OVERLAP * unit : 0),
                   height(panel, row, below), height(panel, row, below + loads[colour]));
    if (canvas->with_notes) add_note(canvas, row, colour, start, end, loads[colour]);
}

static int64_t add_pieces(const picture *canvas, int index, int colour, const char *name) {
    const pc_links_panel *panel = &canvas->data->panels[index];
    int64_t count = 0;
    pc_text_printf(canvas->page.script, "$%s << EOD\n", name);
    if (canvas->with_notes) pc_svg_begin_plot(canvas->notes, name, "polygon");
    for (int row = panel->first; row < panel->first + panel->count; row++)
        for (int column = 0, end; column < PC_LINKS_COLUMNS; column = end) {
            end = pc_links_run_end(canvas->data, row, column);
            if (pc_links_loads(canvas->data, row, column)[colour] <= 0) continue;
            add_piece(canvas, panel, row, colour, column, end);
            count++;
        }
    pc_text_printf(canvas->page.script, "EOD\n");
    if (canvas->with_notes) pc_svg_end_plot(canvas->notes);
    return count;
}

static int64_t count_pieces(const pc_links_data *data) {
    int64_t count = 0;
    for (int row = 0; row < data->row_count; row++)
        for (int column = 0, end; column < PC_LINKS_COLUMNS; column = end, count++)
            end = pc_links_run_end(data, row, column);
    return count * PC_LINKS_COLOURS;
}

/* --- panels --- */

static void add_means(const picture *canvas, int index) {
    const pc_links_panel *panel = &canvas->data->panels[index];
    pc_text_printf(canvas->page.script, "$means_%d << EOD\n", index);
    for (int i = 0; i < panel->count; i++) {
        double mean = 100 * canvas->data->rows[panel->first + i].mean;
        if (mean < MEAN_LEAST)
            pc_text_printf(canvas->page.script, "%d <%g%%\n", i, MEAN_LEAST);
        else
            pc_text_printf(canvas->page.script, "%d %.3g%%\n", i, mean);
    }
    pc_text_printf(canvas->page.script, "EOD\n");
}

/* The bands behind, what fills them, the line at all of the bandwidth, and means. */
static void add_plots(const picture *canvas, int index) {
    const pc_links_panel *panel = &canvas->data->panels[index];
    pc_text plot = {0};
    double end = time_end(canvas), full = BAND_HEIGHT / panel->scale;
    pc_text_printf(
        &plot,
        "plot $means_%d using (0):1:(0):(%.9g):($1+%.6f):($1+%.6f) with boxxyerror fillstyle solid 1 noborder "
        "fillcolor rgb '#e8e8e8'",
        index, end, BAND_BOTTOM - full, BAND_BOTTOM);
    for (int colour = 0; colour < PC_LINKS_COLOURS; colour++) {
        char name[48];
        snprintf(name, sizeof name, "load_%d_%d", index, colour);
        if (!canvas->data->has_colour[colour] || add_pieces(canvas, index, colour, name) == 0) continue;
        pc_text_printf(&plot,
                       ", $%s using 1:3:1:2:3:4 with boxxyerror fillstyle solid 1 noborder fillcolor rgb 0x%06" PRIx32,
                       name, pc_links_colour(colour));
    }
    if (panel->scale > 1)
        pc_text_printf(
            &plot,
            ", $means_%d using (0):($1+%.6f):(%.9g):(0) with vectors nohead linewidth 1 linecolor rgb '" PC_STYLE_INK
            "'",
            index, BAND_BOTTOM - full, end);
    pc_text_printf(
        &plot, ", $means_%d using (%.9g):1:2 with labels left offset screen %.6f,0 textcolor rgb '" PC_STYLE_INK "'\n",
        index, end, MEAN_GAP / canvas->page.width);
    pc_text_add(canvas->page.script, plot.data ? plot.data : "", plot.size);
    canvas->page.script->failed = canvas->page.script->failed || plot.failed;
    pc_text_free(&plot);
}

void pc_links_add_script(const pc_links_figure *figure, const pc_links_data *data, const char *path, pc_text *script,
                         pc_svg_notes *notes) {
    picture canvas = {.figure = figure,
                      .data = data,
                      .page = {.path = path, .script = script, .margin = MARGIN},
                      .notes = notes,
                      .with_replica = pc_link_has_replicas(data->trace),
                      .with_notes = count_pieces(data) <= PC_SVG_NOTES_MAX};
    lay_out(&canvas);
    pc_picture_begin(script, path, canvas.page.width, canvas.page.height);
    pc_text_printf(script, "set multiplot\nunset key\n");
    pc_picture_add_text(&canvas.page, figure->title, MARGIN, TITLE_Y, PC_STYLE_TITLE_FONT, true);
    if (figure->subtitle)
        pc_picture_add_text(&canvas.page, figure->subtitle, MARGIN, SUBTITLE_Y, PC_STYLE_HEADING_FONT, false);
    add_legend(&canvas);
    for (int i = 0; i < data->panel_count; i++) {
        add_heading(&canvas, i);
        add_second_line(&canvas, i);
        add_axes(&canvas, i);
        add_means(&canvas, i);
        add_plots(&canvas, i);
        pc_text_printf(script, "unset label\nunset object\nunset xlabel\n");
    }
    pc_text_printf(script, "unset multiplot\n");
}
