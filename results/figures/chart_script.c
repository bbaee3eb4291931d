#include "results/figures/chart_private.h"

#include "results/figures/gnuplot.h"
#include "results/figures/picture.h"
#include "results/figures/style.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* In pixels. */
enum {
    HEADING_ABOVE = 12,
    MARK_X = 11,
    LINE_LENGTH = 22,
    SWATCH = 13,
    HALF_SWATCH = SWATCH / 2,
    Y_LABEL_X = 20,
    Y_LABEL_OVER = 12
};

/* Of gnuplot's points. Each series' are a little smaller than those of the one before, which it may lie upon. */
#define MARK_LARGEST   1.25
#define MARK_SMALLEST  0.85
#define PUBLISHED_SIZE 1.9 /* a ring around ours, where both are the same */
#define BARS_PART      0.8 /* of a group's width that its bars fill */
#define BAR_PART       0.9 /* of a bar's share of it */
#define QUIET_LINE     "linewidth 0.8 linecolor rgb '" PC_STYLE_AXIS "'"

typedef struct picture {
    const pc_chart_data *data;
    const pc_chart_layout *layout;
    pc_chart_axis x_axis; /* of the panel that is being written */
    const char *path;
    pc_text *script;
    pc_svg_notes *notes;
} picture;

/* --- texts that stand somewhere on the picture --- */

static void add_place(const picture *canvas, double at_x, double at_y) {
    pc_text_printf(canvas->script, "screen %.6f,%.6f", at_x / canvas->layout->width, 1 - at_y / canvas->layout->height);
}

/* A user's text, cut to `room`; `how` is more of gnuplot's words. */
static void add_text(const picture *canvas, const char *text, double at_x, double at_y, double room, int font,
                     const char *how) {
    pc_text_printf(canvas->script, "set label ");
    pc_gnuplot_add_string(canvas->script, text, (size_t)fmax(room / (PC_STYLE_LETTER_WIDTH * font), 1));
    pc_text_printf(canvas->script, " at ");
    add_place(canvas, at_x, at_y);
    pc_text_printf(canvas->script, " noenhanced %s textcolor rgb '" PC_STYLE_INK "' ", how);
    pc_picture_add_font(canvas->script, canvas->path, font, font != PC_STYLE_TEXT_FONT);
    pc_text_printf(canvas->script, "\n");
}

static void add_title(const picture *canvas) {
    const pc_chart_layout *layout = canvas->layout;
    for (int i = 0; i < layout->title_line_count; i++)
        add_text(canvas, layout->title_line[i], PC_CHART_MARGIN, layout->title_y + PC_CHART_TITLE_LINE * i,
                 layout->width - PC_CHART_MARGIN - PC_CHART_MARGIN_RIGHT, PC_STYLE_TITLE_FONT, "left");
}

static void add_x_label(const picture *canvas) {
    char label[PC_CHART_LABEL_SIZE];
    double plots = canvas->layout->width - canvas->layout->left - PC_CHART_MARGIN_RIGHT;
    pc_chart_axis_label(canvas->data->x, canvas->data->chart->x_label, label);
    add_text(canvas, label, canvas->layout->left + plots / 2, canvas->layout->x_label_y, plots, PC_STYLE_TEXT_FONT,
             "center");
}

/* Beside the leftmost plot of a row, upwards. */
static void add_y_label(const picture *canvas, int y_index, int panel) {
    char label[PC_CHART_LABEL_SIZE], lines[PC_CHART_Y_LABEL_LINES][PC_CHART_LINE_SIZE];
    double room = canvas->layout->plot_height + Y_LABEL_OVER;
    double middle = pc_chart_plot_spot(canvas->layout, y_index, panel).y + canvas->layout->plot_height / 2;
    pc_chart_axis_label(canvas->data->y[y_index], canvas->data->chart->y_label[y_index], label);
    size_t letters = (size_t)(room / (PC_STYLE_LETTER_WIDTH * PC_STYLE_TEXT_FONT));
    int count = pc_chart_wrap(label, letters, PC_CHART_Y_LABEL_LINES, lines);
    for (int i = 0; i < count; i++)
        add_text(canvas, lines[i], Y_LABEL_X + PC_CHART_Y_LABEL_LINE * (PC_CHART_Y_LABEL_LINES - count + i), middle,
                 room, PC_STYLE_TEXT_FONT, "center rotate by 90");
}

static void add_heading(const picture *canvas, int panel) {
    char label[PC_CHART_LABEL_SIZE];
    pc_chart_spot spot = pc_chart_plot_spot(canvas->layout, 0, panel);
    pc_chart_group_label(&canvas->data->panels, panel, label);
    add_text(canvas, label, spot.x, spot.y - HEADING_ABOVE, canvas->layout->plot_width, PC_STYLE_HEADING_FONT, "left");
}

static void add_texts(const picture *canvas) {
    add_title(canvas);
    add_x_label(canvas);
    for (int panel = 0; panel < canvas->data->panels.count; panel++) {
        if (canvas->data->panels.column_count) add_heading(canvas, panel);
        for (int i = 0; i < canvas->data->chart->y_count && panel % canvas->layout->columns == 0; i++)
            add_y_label(canvas, i, panel);
    }
}

/* --- the legend --- */

/* A series in several files: how long its name is without the file's label, and which file it is of. */
static size_t split_label(const pc_chart_groups *groups, int series, int *file) {
    size_t length = strlen(groups->name[series]), most = 0;
    *file = 0;
    for (int i = 0; groups->files && i < groups->files->count; i++) {
        size_t label = strlen(groups->files->label[i]);
        bool ends = label <= length && strcmp(groups->name[series] + length - label, groups->files->label[i]) == 0;
        if (!ends || label <= most) continue;
        most = label;
        *file = i;
    }
    return length > most + 2 ? length - most - 2 : 0; /* ", " */
}

/* The first series that differs by its file alone: they look alike. */
static int first_alike(const pc_chart_groups *groups, int series, size_t length) {
    int other_file;
    for (int i = 0; i < series; i++)
        if (split_label(groups, i, &other_file) == length && memcmp(groups->name[i], groups->name[series], length) == 0)
            return i;
    return series;
}

static pc_look look_of(const pc_chart_data *data, int series) {
    const pc_chart_groups *groups = &data->series;
    char name[PC_CHART_NAME_SIZE];
    int file;
    if (!groups->column_count) return pc_chart_look("", series);
    if (!groups->files) return pc_chart_look(groups->name[series], series);
    size_t length = split_label(groups, series, &file);
    snprintf(name, sizeof name, "%.*s", (int)length, groups->name[series]);
    return pc_chart_look_in_file(pc_chart_look(name, first_alike(groups, series, length)), file);
}

static double mark_size(const pc_chart_data *data, int series) {
    if (data->series.count == 1) return (MARK_LARGEST + MARK_SMALLEST) / 2;
    return MARK_LARGEST - (MARK_LARGEST - MARK_SMALLEST) * series / (data->series.count - 1);
}

static void add_swatch(const picture *canvas, pc_chart_spot at, uint32_t colour) {
    pc_text_printf(canvas->script, "set object rectangle from ");
    add_place(canvas, at.x + (double)MARK_X - HALF_SWATCH, at.y + (double)SWATCH / 2);
    pc_text_printf(canvas->script, " to ");
    add_place(canvas, at.x + (double)MARK_X + HALF_SWATCH, at.y - (double)SWATCH / 2);
    pc_text_printf(canvas->script, " front fillstyle solid 1 noborder fillcolor rgb '#%06" PRIx32 "'\n", colour);
}

static void add_line(const picture *canvas, pc_chart_spot at, const pc_look *look) {
    pc_text_printf(canvas->script, "set arrow from ");
    add_place(canvas, at.x, at.y);
    pc_text_printf(canvas->script, " to ");
    add_place(canvas, at.x + LINE_LENGTH, at.y);
    pc_text_printf(canvas->script, " nohead linewidth 1.5 dashtype %d linecolor rgb '#%06" PRIx32 "'\n", look->dash,
                   look->colour);
}

static void add_mark(const picture *canvas, pc_chart_spot at, int shape, double size, uint32_t colour) {
    pc_text_printf(canvas->script, "set label '' at ");
    add_place(canvas, at.x + MARK_X, at.y);
    pc_text_printf(canvas->script, " point pointtype %d pointsize %.3g linewidth 1.5 linecolor rgb '#%06" PRIx32 "'\n",
                   shape, size, colour);
}

static void add_entry_text(const picture *canvas, pc_chart_spot at, const char *label) {
    double room = canvas->layout->width - PC_CHART_MARGIN_RIGHT - at.x - PC_CHART_MARK;
    add_text(canvas, label, at.x + PC_CHART_MARK, at.y, room, PC_STYLE_TEXT_FONT, "left");
}

static void add_series_entry(const picture *canvas, int series) {
    char label[PC_CHART_LABEL_SIZE];
    pc_chart_spot at = canvas->layout->legend[series];
    pc_look look = look_of(canvas->data, series);
    if (canvas->data->chart->style == PC_CHART_BARS)
        add_swatch(canvas, at, look.colour);
    else
        add_mark(canvas, at, look.shape, mark_size(canvas->data, series), look.colour);
    if (canvas->data->chart->style == PC_CHART_LINES) add_line(canvas, at, &look);
    pc_chart_group_label(&canvas->data->series, series, label);
    add_entry_text(canvas, at, label);
}

/* How published points look: of bars, whose colours they would vanish on, all the same. */
static pc_look published_look(const pc_chart_data *data, int series) {
    static const pc_look of_bars = {0x222222, 13, 1};
    return data->chart->style == PC_CHART_BARS ? of_bars : look_of(data, series);
}

static void add_legend(const picture *canvas) {
    const pc_chart_data *data = canvas->data;
    if (!canvas->layout->has_legend) return;
    if (canvas->layout->hidden[0])
        add_text(canvas, canvas->layout->hidden, PC_CHART_MARGIN, canvas->layout->hidden_y,
                 canvas->layout->width - PC_CHART_MARGIN - PC_CHART_MARGIN_RIGHT, PC_STYLE_TEXT_FONT, "left");
    for (int series = 0; series < data->series.count; series++) add_series_entry(canvas, series);
    if (!data->has_published) return;
    pc_chart_spot at = canvas->layout->legend[data->series.count];
    bool is_bars = data->chart->style == PC_CHART_BARS;
    add_mark(canvas, at, is_bars ? published_look(data, 0).shape - 1 : 6, PUBLISHED_SIZE, 0x444444);
    add_entry_text(canvas, at, "published");
}

/* --- axes --- */

/* gnuplot takes the name of a tick for a format: a percent sign is written twice. */
static void add_tick_label(const char *label, size_t letters, pc_text *script) {
    pc_text cut = {0}, format = {0};
    pc_text_add_line(&cut, label, letters);
    for (size_t i = 0; i < cut.size; i++) {
        if (cut.data[i] == '%') pc_text_add(&format, "%", 1);
        pc_text_add(&format, &cut.data[i], 1);
    }
    pc_gnuplot_add_string(script, format.data ? format.data : "", SIZE_MAX);
    script->failed = script->failed || cut.failed || format.failed;
    pc_text_free(&cut);
    pc_text_free(&format);
}

static void add_ticks(const picture *canvas, const pc_chart_axis *axis, bool has_labels, size_t letters) {
    pc_text_printf(canvas->script, "(");
    for (int i = 0; i < axis->tick_count; i++) {
        if (i) pc_text_printf(canvas->script, ", ");
        add_tick_label(has_labels ? axis->tick[i].label : "", letters, canvas->script);
        pc_text_printf(canvas->script, " %.9g", axis->tick[i].at);
    }
    pc_text_printf(canvas->script, ") textcolor rgb '" PC_STYLE_QUIET "'\n");
}

static bool is_lowest(const picture *canvas, int y_index) {
    return y_index == canvas->data->chart->y_count - 1;
}

static size_t letters_of_names(const picture *canvas) {
    return canvas->layout->ticks_turned ? PC_CHART_NAME_LETTERS : PC_COLUMN_TEXT_SIZE;
}

static void add_axes(const picture *canvas, int y_index, int panel) {
    const pc_chart_layout *layout = canvas->layout;
    const pc_chart_axis *ax = &canvas->x_axis, *ay = &layout->y[y_index];
    bool is_bars = canvas->data->chart->style == PC_CHART_BARS;
    pc_chart_spot spot = pc_chart_plot_spot(layout, y_index, panel);
    pc_text_printf(canvas->script,
                   "set lmargin at screen %.6f\nset rmargin at screen %.6f\n"
                   "set tmargin at screen %.6f\nset bmargin at screen %.6f\n",
                   spot.x / layout->width, (spot.x + layout->plot_width) / layout->width, 1 - spot.y / layout->height,
                   1 - (spot.y + layout->plot_height) / layout->height);
    pc_text_printf(canvas->script, "set border 3 " QUIET_LINE "\nset xrange [%.9g:%.9g]\nset yrange [%.9g:%.9g]\n",
                   ax->low, ax->high, ay->low, ay->high);
    pc_text_printf(canvas->script, "set xtics nomirror out scale %s ", is_bars ? "0" : "0.5");
    if (layout->ticks_turned) pc_text_printf(canvas->script, "rotate by %d right ", PC_CHART_TURN);
    add_ticks(canvas, ax, is_lowest(canvas, y_index), letters_of_names(canvas));
    pc_text_printf(canvas->script, "set ytics nomirror out scale 0.5 ");
    add_ticks(canvas, ay, panel % layout->columns == 0, PC_COLUMN_TEXT_SIZE);
    pc_text_printf(canvas->script, "set grid %sytics back linetype 1 linewidth 0.8 linecolor rgb '" PC_STYLE_GRID "'\n",
                   is_bars ? "" : "xtics ");
}

/* --- points, and a note for each --- */

static void add_value(const pc_column *column, double value, pc_text *text) {
    const char *unit = pc_chart_is_fraction(column) ? "%" : column->field.unit;
    bool has_blank = unit[0] != '%' && strcmp(unit, "1") != 0;
    pc_text_printf(text, "%s %.6g%s%s", column->field.name, value, has_blank ? " " : "",
                   strcmp(unit, "1") == 0 ? "" : unit);
}

static void add_note(const picture *canvas, const pc_chart_point *point) {
    const pc_run_row *row = &canvas->data->rows[point->row];
    const pc_column *column = canvas->data->x;
    pc_text title = {0};
    char attributes[96];
    pc_text_printf(&title, "%s%s: ", row->name, point->is_published ? ", published" : "");
    if (canvas->data->chart->style == PC_CHART_BARS)
        pc_text_printf(&title, "%s %s", column->field.name, canvas->data->categories.name[(int)point->x]);
    else
        add_value(column, point->x, &title);
    pc_text_printf(&title, ", ");
    add_value(canvas->data->y[point->y_index], point->y, &title);
    snprintf(attributes, sizeof attributes, "class=\"%s\" data-run=\"%" PRId64 "\"%s",
             point->is_published ? "point published" : "point", row->run,
             point->is_published ? " pointer-events=\"all\"" : "");
    pc_svg_add_note(canvas->notes, attributes, title.data ? title.data : "");
    canvas->notes->text.failed = canvas->notes->text.failed || title.failed;
    pc_text_free(&title);
}

/* From left to right, from bottom to top, as far as the axis goes; false if nothing of it is on the axis. */
static bool add_bar(const picture *canvas, const pc_chart_point *point) {
    const pc_chart_axis *axis = &canvas->layout->y[point->y_index];
    double slot = BARS_PART / canvas->data->series.count;
    double left =
        pc_chart_position(&canvas->x_axis, point->x) - BARS_PART / 2 + slot * (point->series + (1 - BAR_PART) / 2);
    double end = pc_chart_position(axis, point->y), start = axis->is_log ? axis->low : 0;
    double bottom = fmax(fmin(start, end), axis->low), top = fmin(fmax(start, end), axis->high);
    if (bottom > top) return false;
    pc_text_printf(canvas->script, "%.9g %.9g %.9g %.9g\n", left, left + slot * BAR_PART, bottom, top);
    return true;
}

/* False if it is not on the axes, where gnuplot draws lines alone. */
static bool add_point(const picture *canvas, const pc_chart_point *point) {
    const pc_chart_axis *axis = &canvas->layout->y[point->y_index];
    double at = pc_chart_position(&canvas->x_axis, point->x), high = pc_chart_position(axis, point->y);
    if (canvas->data->chart->style == PC_CHART_BARS)
        at += BARS_PART / canvas->data->series.count * (point->series + 0.5) - BARS_PART / 2;
    pc_text_printf(canvas->script, "%.9g %.9g\n", at, high);
    return pc_chart_is_on(&canvas->x_axis, at) && pc_chart_is_on(axis, high);
}

/* On bars, of whatever colour, a white ground. */
static void add_ground(const picture *canvas, const pc_look *look, const char *name, pc_text *plot) {
    pc_text_printf(plot, "%s$%s using 1:2 with points pointtype %d pointsize %.3g linecolor rgb '#ffffff'",
                   plot->size ? ", " : "plot ", name, look->shape, pc_picture_point_size(canvas->path, PUBLISHED_SIZE));
}

static void add_how(const picture *canvas, const pc_chart_point *first, const char *name, pc_text *plot) {
    bool is_published = first->is_published, is_lines = canvas->data->chart->style == PC_CHART_LINES && !is_published;
    double size = is_published ? PUBLISHED_SIZE : mark_size(canvas->data, first->series);
    pc_look look = is_published ? published_look(canvas->data, first->series) : look_of(canvas->data, first->series);
    if (is_published && canvas->data->chart->style == PC_CHART_BARS) add_ground(canvas, &look, name, plot);
    pc_text_printf(plot, "%s$%s using 1:2 with %s pointtype %d pointsize %.3g linewidth 1.5 ",
                   plot->size ? ", " : "plot ", name, is_lines ? "linespoints" : "points", look.shape - is_published,
                   pc_picture_point_size(canvas->path, size));
    if (is_lines) pc_text_printf(plot, "dashtype %d ", look.dash);
    pc_text_printf(plot, "linecolor rgb '#%06" PRIx32 "'", look.colour);
}

static void add_how_bars(const picture *canvas, const pc_chart_point *first, const char *name, pc_text *plot) {
    pc_text_printf(plot,
                   "%s$%s using 1:3:1:2:3:4 with boxxyerror fillstyle solid 1 noborder fillcolor rgb '#%06" PRIx32 "'",
                   plot->size ? ", " : "plot ", name, look_of(canvas->data, first->series).colour);
}

static void add_points(const picture *canvas, const pc_chart_point *first, int64_t count, pc_text *plot) {
    bool is_bars = canvas->data->chart->style == PC_CHART_BARS && !first->is_published;
    char name[80];
    snprintf(name, sizeof name, "%s_%d_%d_%d", first->is_published ? "published" : "ours", first->y_index, first->panel,
             first->series);
    pc_text_printf(canvas->script, "$%s << EOD\n", name);
    pc_svg_begin_plot(canvas->notes, name, is_bars ? "polygon" : "use");
    int64_t drawn = 0;
    for (int64_t i = 0; i < count; i++) {
        bool is_seen = is_bars ? add_bar(canvas, &first[i]) : add_point(canvas, &first[i]);
        if (is_seen) add_note(canvas, &first[i]);
        drawn += is_seen || !is_bars;
    }
    pc_text_printf(canvas->script, "EOD\n");
    pc_svg_end_plot(canvas->notes);
    if (drawn == 0) return; /* gnuplot warns of a plot without a point */
    if (is_bars)
        add_how_bars(canvas, first, name, plot);
    else
        add_how(canvas, first, name, plot);
}

/* --- panels --- */

/* Published points lie below ours, which are smaller; but on bars. */
static void add_plot(const picture *canvas, int y_index, int panel) {
    pc_text plot = {0};
    const pc_chart_point *first;
    bool is_bars = canvas->data->chart->style == PC_CHART_BARS;
    for (int pass = 0; pass < 2; pass++)
        for (int series = 0; series < canvas->data->series.count; series++) {
            bool is_published = (pass == 0) != is_bars;
            int64_t count = pc_chart_find_points(canvas->data, y_index, panel, series, is_published, &first);
            if (count) add_points(canvas, first, count, &plot);
        }
    if (!plot.size) pc_text_printf(&plot, "plot NaN");
    pc_text_add(canvas->script, plot.data ? plot.data : "", plot.size);
    pc_text_printf(canvas->script, "\n");
    canvas->script->failed = canvas->script->failed || plot.failed;
    pc_text_free(&plot);
}

void pc_chart_add_script(const pc_chart_data *data, const pc_chart_layout *layout, const char *path, pc_text *script,
                         pc_svg_notes *notes) {
    picture canvas = {.data = data, .layout = layout, .path = path, .script = script, .notes = notes};
    pc_picture_begin(script, path, layout->width, layout->height);
    pc_text_printf(script, "set multiplot\nunset key\nset clip two\n");
    add_texts(&canvas);
    add_legend(&canvas);
    for (int panel = 0; panel < data->panels.count; panel++) {
        pc_chart_make_x_axis(data, panel, layout->plot_width, &canvas.x_axis);
        for (int i = 0; i < data->chart->y_count; i++) {
            add_axes(&canvas, i, panel);
            add_plot(&canvas, i, panel);
            pc_text_printf(script, "unset label\nunset object\nunset arrow\n");
        }
    }
    pc_text_printf(script, "unset multiplot\n");
}
