#include "results/figures/chart_private.h"

#include "results/figures/style.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum {
    TICK_GAP = 10,   /* between the numbers of an axis, in pixels */
    Y_DISTANCE = 34, /* between marks */
    X_DISTANCE = 76, /* and where numbers stand beside each other */
    LOG_FROM = 16    /* the ratio of largest to smallest from which doubled counts are spread evenly */
};

#define MARGIN 0.06 /* of an axis, beyond the first and the last point */

double pc_chart_position(const pc_chart_axis *axis, double value) {
    if (axis->is_ranked) return axis->rank[(int)value];
    return axis->is_log ? log2(value) : value;
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

static extent add_margin(const extent *found, bool from_zero) {
    extent wide = *found;
    double margin = MARGIN * (wide.high - wide.low);
    if (margin <= 0) margin = wide.high == 0 ? 1 : 0.1 * fabs(wide.high);
    wide.high += margin;
    if (!from_zero) wide.low -= margin;
    return wide;
}

/* --- ticks --- */

/* The least of 1, 2 and 5 times a power of ten that is no less. */
static double nice_step(double wanted) {
    double power = pow(10, floor(log10(wanted)));
    if (wanted <= power) return power;
    if (wanted <= 2 * power) return 2 * power;
    return wanted <= 5 * power ? 5 * power : 10 * power;
}

static void add_tick(pc_chart_axis *axis, double at, double value, const char *unit) {
    if (axis->tick_count == PC_CHART_TICKS_MAX) return;
    pc_chart_tick *tick = &axis->tick[axis->tick_count++];
    tick->at = at;
    snprintf(tick->label, sizeof tick->label, "%.6g%s", value == 0 ? 0 : value, unit); /* no "-0" */
}

static void add_even_ticks(pc_chart_axis *axis, const pc_column *column, double marks) {
    double step = nice_step((axis->high - axis->low) / fmax(marks, 2));
    if (!pc_field_is_real(&column->field)) step = fmax(step, 1);
    double first = ceil(axis->low / step - 1e-9), last = floor(axis->high / step + 1e-9);
    for (double i = first; i <= last; i++) add_tick(axis, i * step, i * step, pc_chart_is_fraction(column) ? "%" : "");
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

/* The different values from small to large; -1 if there are more than that. */
static int list_values(const pc_chart_data *data, double values[PC_CHART_TICKS_MAX]) {
    int count = 0;
    for (int64_t i = 0; i < data->point_count; i++) {
        double value = data->points[i].x;
        int at = count;
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
    axis->is_log = count > 0 && wants_log(values, count);
    extent found = {INFINITY, -INFINITY};
    for (int64_t i = 0; i < data->point_count; i++) widen(&found, pc_chart_position(axis, data->points[i].x));
    bool from_zero = !is_whole && wants_zero(&found);
    if (from_zero) found.low = 0;
    found = add_margin(&found, from_zero);
    axis->low = found.low;
    axis->high = found.high;
    if (!add_value_ticks(axis, values, count, pixels)) add_even_ticks(axis, data->x, pixels / X_DISTANCE);
}

/* --- y --- */

void pc_chart_make_y_axis(const pc_chart_data *data, int y_index, double pixels, pc_chart_axis *axis) {
    extent found = {INFINITY, -INFINITY};
    *axis = (pc_chart_axis){0};
    for (int64_t i = 0; i < data->point_count; i++)
        if (data->points[i].y_index == y_index) widen(&found, data->points[i].y);
    if (found.low > found.high) found = (extent){0, 1}; /* no point has this y */
    bool is_bars = data->chart->style == PC_CHART_BARS, from_zero = wants_zero(&found) || (is_bars && found.low >= 0);
    if (from_zero || (is_bars && found.low < 0 && found.high > 0)) widen(&found, 0);
    if (is_bars && found.high < 0) found.high = 0;
    found = add_margin(&found, from_zero);
    axis->low = found.low;
    axis->high = found.high;
    add_even_ticks(axis, data->y[y_index], pixels / Y_DISTANCE);
}

/* --- names --- */

void pc_chart_spell(const pc_column *column, char *text, size_t size) {
    size_t length = strlen(column->field.name), unit = strlen(column->field.unit);
    bool ends_in_unit = unit > 0 && length > unit + 1 && column->field.name[length - unit - 1] == '_' &&
                        strncasecmp(column->field.name + length - unit, column->field.unit, unit) == 0;
    snprintf(text, size, "%.*s", (int)(ends_in_unit ? length - unit - 1 : length), column->field.name);
    for (char *c = text; *c; c++)
        if (*c == '_') *c = ' ';
}

/* "peak memory in all, the most over stages" is about peak memory in all. A formula, or what says less than the name of
 * the column, is nothing to stand beside an axis. */
static void shorten(const pc_column *column, char *text, size_t size) {
    const char *description = column->field.description;
    size_t length = strcspn(description, ",:;");
    bool is_formula = memchr(description, '/', length) || memchr(description, '=', length);
    if (is_formula || strncmp(description, "of ", 3) == 0 || strncmp(description, "the same", 8) == 0)
        pc_chart_spell(column, text, size);
    else
        snprintf(text, size, "%.*s", (int)length, description);
    if (text[0] >= 'a' && text[0] <= 'z') text[0] = (char)(text[0] - 'a' + 'A');
}

void pc_chart_axis_label(const pc_column *column, const char *given, char label[PC_CHART_LABEL_SIZE]) {
    if (given) {
        snprintf(label, PC_CHART_LABEL_SIZE, "%s", given);
        return;
    }
    shorten(column, label, PC_CHART_LABEL_SIZE);
    size_t used = strlen(label);
    if (column->field.unit[0] && strcmp(column->field.unit, "1") != 0)
        snprintf(label + used, PC_CHART_LABEL_SIZE - used, " [%s]", column->field.unit);
}

void pc_chart_group_label(const pc_chart_groups *groups, int group, char label[PC_CHART_LABEL_SIZE]) {
    const pc_column *column = groups->column[0];
    char name[PC_CHART_LABEL_SIZE - PC_CHART_NAME_SIZE] = "";
    if (groups->column_count == 0) return (void)snprintf(label, PC_CHART_LABEL_SIZE, "ours");
    bool is_number = pc_column_is_number(column);
    if (is_number && groups->column_count == 1) pc_chart_spell(column, name, sizeof name);
    snprintf(label, PC_CHART_LABEL_SIZE, "%s%s%s", name, name[0] ? " " : "", groups->name[group]);
}
