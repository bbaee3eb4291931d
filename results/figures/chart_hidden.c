/* Series that cannot be seen: every point of theirs lies upon a point of one that is drawn after them. */
#include "results/figures/chart_private.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { NAMED_MOST = 4, POINTS_MOST = 20000 /* of charts that are looked at: many points make a cloud, no curve */ };

#define NEAR 1.5 /* pixels, less than any mark's radius */

typedef struct plot {
    const pc_chart_axis *x, *y;
    double width, height; /* in pixels */
} plot;

static bool is_on_axes(const plot *at, const pc_chart_point *point) {
    return pc_chart_is_on(at->x, pc_chart_position(at->x, point->x)) &&
           pc_chart_is_on(at->y, pc_chart_position(at->y, point->y));
}

/* In pixels, from `a` to `b`. */
static double distance(const pc_chart_axis *axis, double pixels, double a, double b) {
    return (pc_chart_position(axis, b) - pc_chart_position(axis, a)) / (axis->high - axis->low) * pixels;
}

/* Both are sorted by x. */
static bool is_covered(const plot *at, const pc_chart_point *point, const pc_chart_point *others, int64_t count) {
    for (int64_t i = 0; i < count; i++) {
        double dx = distance(at->x, at->width, point->x, others[i].x);
        if (dx > NEAR) return false;
        if (dx >= -NEAR && fabs(distance(at->y, at->height, point->y, others[i].y)) <= NEAR) return true;
    }
    return false;
}

/* On one plot: false if a point of `series` is seen; *count grows by those that are not. */
static bool is_hidden_on(const pc_chart_data *data, const plot *at, int y_index, int panel, const int series[2],
                         int64_t *count) {
    const pc_chart_point *points, *others;
    int64_t point_count = pc_chart_find_points(data, y_index, panel, series[0], false, &points);
    int64_t other_count = pc_chart_find_points(data, y_index, panel, series[1], false, &others);
    for (int64_t i = 0; i < point_count; i++) {
        if (!is_on_axes(at, &points[i])) continue;
        if (!is_covered(at, &points[i], others, other_count)) return false;
        ++*count;
    }
    return true;
}

/* In all panels. */
static bool is_hidden(const pc_chart_data *data, const pc_chart_layout *layout, int y_index, int below, int above) {
    pc_chart_axis x;
    int64_t count = 0;
    pc_chart_make_x_axis(data, 0, layout->plot_width, &x);
    plot at = {&x, &layout->y[y_index], layout->plot_width, layout->plot_height};
    for (int panel = 0; panel < data->panels.count; panel++)
        if (!is_hidden_on(data, &at, y_index, panel, (int[2]){below, above}, &count)) return false;
    return count > 0;
}

/* The last of those above it, which nothing hides; -1 if it is seen. */
static int find_above(const pc_chart_data *data, const pc_chart_layout *layout, int y_index, int series) {
    for (int above = data->series.count - 1; above > series; above--)
        if (is_hidden(data, layout, y_index, series, above)) return above;
    return -1;
}

static void add_hidden(const pc_chart_data *data, int series, int above, pc_text *text) {
    char below[PC_CHART_LABEL_SIZE], upon[PC_CHART_LABEL_SIZE];
    pc_chart_group_label(&data->series, series, below);
    pc_chart_group_label(&data->series, above, upon);
    pc_text_printf(text, "%s lies under %s", below, upon);
}

/* Those of one y; of several columns it says which. */
static void add_hidden_of(const pc_chart_data *data, const pc_chart_layout *layout, int y_index, pc_text *text) {
    char name[PC_CHART_LABEL_SIZE];
    int found = 0;
    size_t before = text->size;
    for (int series = 0; series < data->series.count; series++) {
        int above = find_above(data, layout, y_index, series);
        if (above < 0 || ++found > NAMED_MOST) continue;
        if (text->size) pc_text_printf(text, text->size == before ? "; " : ", ");
        add_hidden(data, series, above, text);
    }
    if (found > NAMED_MOST) pc_text_printf(text, " and %d more under others", found - NAMED_MOST);
    if (found == 0 || data->chart->y_count == 1) return;
    pc_chart_axis_label(data->y[y_index], data->chart->y_label[y_index], name);
    char *unit = strstr(name, " [");
    if (unit) *unit = '\0';
    pc_text_printf(text, " (%s)", name);
}

void pc_chart_name_hidden(const pc_chart_data *data, const pc_chart_layout *layout, char line[PC_CHART_LINE_SIZE]) {
    pc_text text = {0};
    line[0] = '\0';
    if (data->chart->style == PC_CHART_BARS || data->point_count > POINTS_MOST) return;
    for (int i = 0; i < data->chart->y_count; i++) add_hidden_of(data, layout, i, &text);
    if (!text.failed && text.data) snprintf(line, PC_CHART_LINE_SIZE, "%.*s", (int)text.size, text.data);
    pc_text_free(&text);
}
