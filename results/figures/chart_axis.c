#include "results/figures/chart_private.h"

#include "results/figures/picture.h"
#include "results/figures/style.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    TICK_GAP = 10,   /* between the numbers of an axis, in pixels */
    Y_DISTANCE = 34, /* between marks */
    X_DISTANCE = 76, /* and where numbers stand beside each other */
    LOG_FROM = 16    /* the ratio of largest to smallest from which doubled counts are spread evenly */
};

#define MARGIN 0.06 /* of an axis, beyond the first and the last point */
#define HAIR   1e-6 /* of an axis, beyond a range that was asked for */

double pc_chart_position(const pc_chart_axis *axis, double value) {
    if (axis->is_ranked) return axis->rank[(int)value];
    return axis->is_log ? log2(value) : value;
}

bool pc_chart_is_on(const pc_chart_axis *axis, double position) {
    return position >= axis->low && position <= axis->high;
}

/* --- ranges --- */

typedef struct extent {
    double low, high;
} extent;

static void widen(extent *found, double value) {
    found->low = fmin(found->low, value);
    found->high = fmax(found->high, value);
}

/* Where the smallest is not near the largest, an axis that starts elsewhere than at zero would deceive. */
static bool wants_zero(const extent *found) {
    return found->low >= 0 && found->low < 0.5 * found->high;
}

/* What is asked for takes the place of what was chosen, a hair wider: a point that lies on the edge is drawn. */
static void set_range(pc_chart_axis *axis, const pc_chart_range *range) {
    if (range->has_low) axis->low = pc_chart_position(axis, range->low);
    if (range->has_high) axis->high = pc_chart_position(axis, range->high);
    double hair = HAIR * (axis->high - axis->low);
    if (range->has_low) axis->low -= hair;
    if (range->has_high) axis->high += hair;
}

static extent add_margin(const extent *found, bool from_zero) {
    extent wide = *found;
    double margin = MARGIN * (wide.high - wide.low);
    if (margin <= 0) margin = wide.high == 0 ? 1 : 0.1 * fabs(wide.high);
    wide.high += margin;
    if (!from_zero) wide.low -= margin;
    return wide;
}

/* --- ticks --- */

static void add_tick(pc_chart_axis *axis, double at, double value, const char *unit) {
    if (axis->tick_count == PC_CHART_TICKS_MAX) return;
    pc_chart_tick *tick = &axis->tick[axis->tick_count++];
    tick->at = at;
    snprintf(tick->label, sizeof tick->label, "%.6g%s", value == 0 ? 0 : value, unit); /* no "-0" */
}

static void add_even_ticks(pc_chart_axis *axis, const pc_column *column, double marks) {
    double step = pc_picture_step((axis->high - axis->low) / fmax(marks, 2));
    if (!pc_field_is_real(&column->field)) step = fmax(step, 1);
    double first = ceil(axis->low / step - 1e-9), last = floor(axis->high / step + 1e-9);
    for (double i = first; i <= last; i++) add_tick(axis, i * step, i * step, pc_chart_is_fraction(column) ? "%" : "");
}

/* Ones, twos and fives, or powers of ten alone where they are many. */
static void add_decades(pc_chart_axis *axis, double low, double high, double marks, const char *unit) {
    static const double in_decade[] = {1, 2, 5};
    double decades = log10(high / low), first = floor(log10(low));
    int each = 3 * decades <= marks + 2 ? 3 : 1;
    double step = each == 3 ? 1 : fmax(1, ceil(decades / marks));
    for (double power = first; power <= first + decades + 1; power += step)
        for (int i = 0; i < each; i++) {
            double value = in_decade[i] * pow(10, power), at = pc_chart_position(axis, value);
            if (pc_chart_is_on(axis, at)) add_tick(axis, at, value, unit);
        }
}

/* On less than about a decade there are few of those: then even steps, which lie closer to each other upwards. */
static void add_log_ticks(pc_chart_axis *axis, const pc_column *column, double marks) {
    const char *unit = pc_chart_is_fraction(column) ? "%" : "";
    double low = exp2(axis->low), high = exp2(axis->high), step = pc_picture_step((high - low) / fmax(marks, 2));
    add_decades(axis, low, high, marks, unit);
    if (axis->tick_count > 2) return;
    axis->tick_count = 0;
    for (double i = ceil(low / step - 1e-9); i <= floor(high / step + 1e-9); i++)
        add_tick(axis, pc_chart_position(axis, i * step), i * step, unit);
}

static void add_ticks(pc_chart_axis *axis, const pc_column *column, double marks) {
    if (axis->is_log)
        add_log_ticks(axis, column, marks);
    else
        add_even_ticks(axis, column, marks);
}

static double label_width(const pc_chart_tick *tick) {
    return (double)pc_utf8_length(tick->label) * PC_STYLE_DIGIT_WIDTH * PC_STYLE_TEXT_FONT;
}

static bool labels_fit(const pc_chart_axis *axis, double pixels, int step) {
    for (int i = step; i < axis->tick_count; i += step) {
        const pc_chart_tick *a = &axis->tick[i - step], *b = &axis->tick[i];
        double distance = (b->at - a->at) / (axis->high - axis->low) * pixels;
        if (distance < (label_width(a) + label_width(b)) / 2 + TICK_GAP) return false;
    }
    return true;
}

static void keep_every(pc_chart_axis *axis, int step) {
    int kept = 0;
    for (int i = 0; i < axis->tick_count; i += step) axis->tick[kept++] = axis->tick[i];
    axis->tick_count = kept;
}

/* --- x --- */

static bool is_in(const pc_chart_range *range, double value) {
    return (!range->has_low || value >= range->low) && (!range->has_high || value <= range->high);
}

bool pc_chart_is_within(const pc_chart_data *data, const pc_chart_point *point) {
    return (data->chart->style == PC_CHART_BARS || is_in(&data->chart->x_range, point->x)) &&
           is_in(&data->chart->y_range[point->y_index], point->y);
}

/* The different values from small to large; -1 if there are more than that. */
static int list_values(const pc_chart_data *data, double values[PC_CHART_TICKS_MAX]) {
    int count = 0;
    for (int64_t i = 0; i < data->point_count; i++) {
        double value = data->points[i].x;
        int at = count;
        if (!is_in(&data->chart->x_range, value)) continue;
        while (at > 0 && values[at - 1] > value) at--;
        if (at > 0 && values[at - 1] == value) continue;
        if (count == PC_CHART_TICKS_MAX) return -1;
        memmove(values + at + 1, values + at, (size_t)(count - at) * sizeof *values);
        values[at] = value;
        count++;
    }
    return count;
}

static bool is_power_of_two(double value) {
    int exponent;
    return value >= 1 && frexp(value, &exponent) == 0.5;
}

/* Counts that are doubled from one to the next: powers of two, or three times one. */
static bool wants_log(const double *values, int count) {
    for (int i = 0; i < count; i++)
        if (!is_power_of_two(values[i]) && !is_power_of_two(values[i] / 3)) return false;
    return count > 0 && values[count - 1] >= LOG_FROM * values[0];
}

static bool has_category(const pc_chart_data *data, int panel, int category) {
    for (int64_t i = 0; i < data->point_count; i++)
        if (data->points[i].panel == panel && data->points[i].x == category) return true;
    return false;
}

static void make_category_axis(const pc_chart_data *data, int panel, pc_chart_axis *axis) {
    axis->is_ranked = true;
    for (int i = 0; i < data->categories.count; i++) {
        axis->rank[i] = axis->tick_count;
        if (!has_category(data, panel, i)) continue;
        pc_chart_tick *tick = &axis->tick[axis->tick_count++];
        tick->at = axis->rank[i];
        snprintf(tick->label, sizeof tick->label, "%.*s", PC_COLUMN_TEXT_SIZE - 1, data->categories.name[i]);
    }
    axis->low = -0.5;
    axis->high = axis->tick_count - 0.5;
}

/* Whole numbers such as those of microbatches are known by name: the marks stand where they are, if there is room. */
static bool add_value_ticks(pc_chart_axis *axis, const double *values, int count, double pixels) {
    for (int i = 0; i < count; i++) add_tick(axis, pc_chart_position(axis, values[i]), values[i], "");
    if (count > 0 && labels_fit(axis, pixels, 1)) return true;
    if (!axis->is_log) return axis->tick_count = 0, false;
    int step = 2;
    while (!labels_fit(axis, pixels, step)) step++;
    keep_every(axis, step);
    return true;
}

void pc_chart_make_x_axis(const pc_chart_data *data, int panel, double pixels, pc_chart_axis *axis) {
    double values[PC_CHART_TICKS_MAX + 1];
    *axis = (pc_chart_axis){0};
    if (data->chart->style == PC_CHART_BARS) return make_category_axis(data, panel, axis);
    bool is_whole = pc_column_is_number(data->x) && !pc_field_is_real(&data->x->field);
    int count = is_whole ? list_values(data, values) : -1;
    const pc_chart_range *range = &data->chart->x_range;
    bool may_double = !(range->has_low && range->low <= 0) && !(range->has_high && range->high <= 0);
    axis->is_log = data->chart->x_is_log || (may_double && count > 0 && wants_log(values, count));
    extent found = {INFINITY, -INFINITY};
    for (int64_t i = 0; i < data->point_count; i++)
        if (pc_chart_is_within(data, &data->points[i])) widen(&found, pc_chart_position(axis, data->points[i].x));
    bool from_zero = !is_whole && !axis->is_log && wants_zero(&found);
    if (from_zero) found.low = 0;
    found = add_margin(&found, from_zero);
    axis->low = found.low;
    axis->high = found.high;
    set_range(axis, range);
    if (!add_value_ticks(axis, values, count, pixels)) add_ticks(axis, data->x, pixels / X_DISTANCE);
}

/* --- y --- */

void pc_chart_make_y_axis(const pc_chart_data *data, int y_index, double pixels, pc_chart_axis *axis) {
    extent found = {INFINITY, -INFINITY};
    *axis = (pc_chart_axis){0};
    axis->is_log = data->chart->y_is_log;
    for (int64_t i = 0; i < data->point_count; i++)
        if (data->points[i].y_index == y_index && pc_chart_is_within(data, &data->points[i]))
            widen(&found, pc_chart_position(axis, data->points[i].y));
    if (found.low > found.high) found = (extent){0, 1}; /* no point has this y */
    bool is_bars = data->chart->style == PC_CHART_BARS && !axis->is_log;
    bool from_zero = !axis->is_log && (wants_zero(&found) || (is_bars && found.low >= 0));
    if (from_zero || (is_bars && found.low < 0 && found.high > 0)) widen(&found, 0);
    if (is_bars && found.high < 0) found.high = 0;
    found = add_margin(&found, from_zero);
    axis->low = found.low;
    axis->high = found.high;
    set_range(axis, &data->chart->y_range[y_index]);
    add_ticks(axis, data->y[y_index], pixels / Y_DISTANCE);
}
