#include "results/figures/chart_private.h"

#include "engine/alloc.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- values --- */

bool pc_chart_is_fraction(const pc_column *column) {
    return column->is_fraction;
}

static bool value_of(const pc_column *column, const pc_run_row *row, double *value) {
    if (!pc_column_defined(column, row)) return false;
    if (!pc_field_is_real(&column->field))
        *value = (double)pc_column_integer(column, row);
    else
        *value = pc_column_real(column, row) * (pc_chart_is_fraction(column) ? 100 : 1);
    return true;
}

static void value_name(const pc_column *column, const pc_run_row *row, char *name, size_t size) {
    if (!pc_column_defined(column, row))
        snprintf(name, size, "none");
    else if (!pc_column_is_number(column))
        pc_column_text(column, row, name, size);
    else if (pc_field_is_real(&column->field))
        snprintf(name, size, "%.6g", pc_column_real(column, row));
    else
        snprintf(name, size, "%" PRId64, pc_column_integer(column, row));
}

/* --- groups --- */

static const char *file_label(const pc_chart_groups *groups, const pc_run_row *row) {
    return groups->files->label[groups->files->of_row[row - groups->rows]];
}

/* "v-half, full", "tp 8, pp 4"; of one column its value alone. The file comes last. */
static void group_name(const pc_chart_groups *groups, const pc_run_row *row, char name[PC_CHART_NAME_SIZE]) {
    char value[PC_COLUMN_TEXT_SIZE], what[64];
    size_t used = 0;
    name[0] = '\0';
    for (int i = 0; i < groups->column_count; i++) {
        const pc_column *column = groups->column[i];
        what[0] = '\0';
        value_name(column, row, value, sizeof value);
        if (groups->column_count > 1 && strcmp(value, "none") == 0) continue;
        if (groups->column_count > 1 && pc_column_is_number(column)) pc_chart_spell(column, what, sizeof what);
        used += (size_t)snprintf(name + used, PC_CHART_NAME_SIZE - used, "%s%s%s%s", used ? ", " : "", what,
                                 what[0] ? " " : "", value);
        if (used >= PC_CHART_NAME_SIZE) used = PC_CHART_NAME_SIZE - 1;
    }
    if (!name[0] && groups->column_count) used = (size_t)snprintf(name, PC_CHART_NAME_SIZE, "none");
    if (groups->files)
        snprintf(name + used, PC_CHART_NAME_SIZE - used, "%s%s", used ? ", " : "", file_label(groups, row));
}

static bool has_groups(const pc_chart_groups *groups) {
    return groups->column_count > 0 || groups->files;
}

static pc_code begin_groups(pc_chart_groups *groups, const char *columns, pc_error *error) {
    groups->column_count = columns ? pc_chart_split(columns, groups->column, NULL, 0) : 0;
    groups->name = pc_alloc(PC_CHART_GROUPS_MAX, sizeof *groups->name);
    if (!groups->name) return pc_error_no_memory(error);
    if (!has_groups(groups)) groups->count = 1;
    return PC_OK;
}

static int find_group(const pc_chart_groups *groups, const pc_run_row *row) {
    char name[PC_CHART_NAME_SIZE];
    if (!has_groups(groups)) return 0;
    group_name(groups, row, name);
    for (int i = 0; i < groups->count; i++)
        if (strcmp(groups->name[i], name) == 0) return i;
    return -1;
}

static pc_code note_group(pc_chart_groups *groups, const char *role, const pc_run_row *row, pc_error *error) {
    if (find_group(groups, row) >= 0) return PC_OK;
    if (groups->count == PC_CHART_GROUPS_MAX)
        return pc_error_set(error, PC_ERROR_INPUT, "%s: '%s' has more than %d values; expected a column with fewer",
                            role, groups->column_count ? groups->column[0]->field.name : "file", PC_CHART_GROUPS_MAX);
    group_name(groups, row, groups->name[groups->count++]);
    return PC_OK;
}

/* "none" comes last. */
static int compare_numbers(const void *a, const void *b) {
    double x = strcmp(a, "none") == 0 ? INFINITY : strtod(a, NULL);
    double y = strcmp(b, "none") == 0 ? INFINITY : strtod(b, NULL);
    return (x > y) - (x < y);
}

/* By the first row that has the value, also where there is nothing in that row to draw. */
static void order_by_rows(pc_chart_groups *groups, const pc_run_row *rows, int64_t count) {
    int ordered = 0;
    for (int64_t row = 0; row < count && ordered < groups->count; row++) {
        int found = find_group(groups, &rows[row]);
        if (found < ordered) continue;
        char name[PC_CHART_NAME_SIZE];
        memcpy(name, groups->name[found], sizeof name);
        memmove(groups->name[ordered + 1], groups->name[ordered], (size_t)(found - ordered) * sizeof *groups->name);
        memcpy(groups->name[ordered++], name, sizeof name);
    }
}

static void sort_groups(pc_chart_groups *groups, const pc_run_row *rows, int64_t count) {
    if (!has_groups(groups)) return;
    if (groups->column_count == 1 && !groups->files && pc_column_is_number(groups->column[0]))
        qsort(groups->name, (size_t)groups->count, sizeof *groups->name, compare_numbers);
    else
        order_by_rows(groups, rows, count);
}

/* --- points --- */

/* A logarithmic axis has no place for it. */
static bool is_off_log(const pc_chart_data *data, const pc_chart_point *point) {
    return (data->chart->x_is_log && point->x <= 0) || (data->chart->y_is_log && point->y <= 0);
}

/* Outside of a range a line still leads to a point, and a bar up to the edge. */
static bool is_wanted(const pc_chart_data *data, const pc_chart_point *point) {
    bool is_mark = data->chart->style == PC_CHART_POINTS || point->is_published;
    return pc_chart_is_within(data, point) || !(is_mark || is_off_log(data, point));
}

/* What a row has for one y, ours or published; false if it has not both x and y. An x that was published for some
 * runs must have been for this one too: our x beside their y would be nobody's point. */
static bool find_point(const pc_chart_data *data, int64_t row, int y_index, bool is_published, pc_chart_point *point) {
    const pc_run_row *at = &data->rows[row];
    const pc_column *x = data->x, *y = data->y[y_index];
    *point = (pc_chart_point){.row = row, .y_index = y_index, .is_published = is_published};
    if (is_published) {
        const pc_column *published_x = pc_column_published(x);
        if (published_x) x = published_x;
        y = pc_column_published(y);
    }
    if (!y || !value_of(y, at, &point->y)) return false;
    bool has_x = data->chart->style == PC_CHART_BARS ? pc_column_defined(data->x, at) : value_of(x, at, &point->x);
    return has_x && is_wanted(data, point);
}

/* Calls `take` for every point there is, row by row. */
typedef pc_code take_point(pc_chart_data *data, const pc_chart_point *point, pc_error *error);

static pc_code walk(pc_chart_data *data, int64_t count, take_point *take, pc_error *error) {
    pc_code code = PC_OK;
    pc_chart_point point;
    for (int64_t row = 0; row < count; row++)
        for (int kind = 0; kind < 2 * data->chart->y_count && !code; kind++) {
            bool is_published = kind % 2;
            if (is_published && !data->chart->published) continue;
            if (find_point(data, row, kind / 2, is_published, &point)) code = take(data, &point, error);
        }
    return code;
}

static pc_code refuse_off_log(const pc_chart_data *data, const pc_chart_point *point, pc_error *error) {
    bool is_x = data->chart->x_is_log && point->x <= 0;
    const pc_column *column = is_x ? data->x : data->y[point->y_index];
    return pc_error_set(
        error, PC_ERROR_INPUT,
        "'%s' of run %.*s is %.6g, which is on no logarithmic axis; expected more than zero, or a range "
        "that leaves it out",
        column->field.name, PC_LABEL_SIZE, data->rows[point->row].name, is_x ? point->x : point->y);
}

static pc_code note_point(pc_chart_data *data, const pc_chart_point *point, pc_error *error) {
    const pc_run_row *row = &data->rows[point->row];
    data->has_published = data->has_published || point->is_published;
    data->is_in_view = data->is_in_view || pc_chart_is_within(data, point);
    if (is_off_log(data, point)) return refuse_off_log(data, point, error);
    if (++data->point_count > PC_CHART_POINTS_MAX)
        return pc_error_set(error, PC_ERROR_INPUT, "more than %d points; expected fewer", PC_CHART_POINTS_MAX);
    pc_code code = note_group(&data->series, "series", row, error);
    if (!code) code = note_group(&data->panels, "panels", row, error);
    if (!code && data->chart->style == PC_CHART_BARS) code = note_group(&data->categories, "x", row, error);
    return code;
}

static pc_code keep_point(pc_chart_data *data, const pc_chart_point *point, pc_error *error) {
    const pc_run_row *row = &data->rows[point->row];
    pc_chart_point *kept = &data->points[data->point_count++];
    (void)error;
    *kept = *point;
    kept->series = find_group(&data->series, row);
    kept->panel = find_group(&data->panels, row);
    if (data->chart->style == PC_CHART_BARS) kept->x = find_group(&data->categories, row);
    return PC_OK;
}

static int compare(double a, double b) {
    return (a > b) - (a < b);
}

static int compare_plots(const pc_chart_point *p, const pc_chart_point *q) {
    if (p->y_index != q->y_index) return p->y_index - q->y_index;
    if (p->panel != q->panel) return p->panel - q->panel;
    if (p->series != q->series) return p->series - q->series;
    return p->is_published - q->is_published;
}

static int compare_points(const void *a, const void *b) {
    const pc_chart_point *p = a, *q = b;
    int order = compare_plots(p, q);
    if (!order) order = compare(p->x, q->x);
    if (!order) order = compare(q->y, p->y);
    return order ? order : (p->row > q->row) - (p->row < q->row);
}

/* Of one x, the first is the best. Published figures of a case stand in all runs of it: once is enough. */
static bool is_repeated(const pc_chart_data *data, const pc_chart_point *before, const pc_chart_point *point) {
    if (compare_plots(before, point) != 0 || before->x != point->x) return false;
    return data->chart->style != PC_CHART_POINTS || (point->is_published && before->y == point->y);
}

static void drop_repeated(pc_chart_data *data) {
    int64_t kept = 0;
    for (int64_t i = 0; i < data->point_count; i++)
        if (kept == 0 || !is_repeated(data, &data->points[kept - 1], &data->points[i]))
            data->points[kept++] = data->points[i];
    data->point_count = kept;
}

static pc_code keep_points(pc_chart_data *data, int64_t count, pc_error *error) {
    data->points = pc_alloc((size_t)data->point_count, sizeof *data->points);
    if (!data->points) return pc_error_no_memory(error);
    data->point_count = 0;
    pc_code code = walk(data, count, keep_point, error);
    qsort(data->points, (size_t)data->point_count, sizeof *data->points, compare_points);
    drop_repeated(data);
    return code;
}

/* --- all of it --- */

static bool has_range(const pc_chart *chart) {
    bool has = chart->x_range.has_low || chart->x_range.has_high;
    for (int i = 0; i < chart->y_count; i++) has = has || chart->y_range[i].has_low || chart->y_range[i].has_high;
    return has;
}

static pc_code refuse_nothing(const pc_chart *chart, int64_t count, pc_error *error) {
    char names[256] = "";
    if (has_range(chart))
        return pc_error_set(error, PC_ERROR_INPUT,
                            "nothing to draw: of %" PRId64
                            " runs none has a point within the ranges that are asked for; "
                            "expected wider ones",
                            count);
    for (int i = 0; i < chart->y_count; i++) {
        size_t used = strlen(names);
        snprintf(names + used, sizeof names - used, "%s'%s'", i ? " or " : "", chart->y[i]);
    }
    return pc_error_set(error, PC_ERROR_INPUT,
                        "nothing to draw: of %" PRId64 " runs none has a value in '%s' and in %s; expected one", count,
                        chart->x, names);
}

static bool has_point_of(const pc_chart_data *data, int file) {
    for (int64_t i = 0; i < data->point_count; i++)
        if (data->chart->files.of_row[data->points[i].row] == file) return true;
    return false;
}

/* Who lays files over each other would take one that is not there for one that lies below. */
static pc_code check_files(const pc_chart_data *data, pc_error *error) {
    for (int i = 0; i < data->chart->files.count; i++)
        if (!has_point_of(data, i))
            return pc_error_set(error, PC_ERROR_INPUT,
                                "nothing of '%s' to draw: none of its runs has a point in this chart; expected one of "
                                "each file",
                                data->chart->files.label[i]);
    return PC_OK;
}

pc_code pc_chart_collect(const pc_chart *chart, const pc_run_row *rows, int64_t count, pc_chart_data *data,
                         pc_error *error) {
    *data = (pc_chart_data){.chart = chart, .rows = rows, .x = pc_column_find(chart->x)};
    for (int i = 0; i < chart->y_count; i++) data->y[i] = pc_column_find(chart->y[i]);
    if (chart->files.count) data->series.files = &chart->files;
    data->series.rows = rows;
    pc_code code = begin_groups(&data->series, chart->series, error);
    if (!code) code = begin_groups(&data->panels, chart->panels, error);
    if (!code) code = begin_groups(&data->categories, chart->x, error);
    if (!code) code = walk(data, count, note_point, error);
    if (code) return code;
    if (data->point_count == 0 || !data->is_in_view) return refuse_nothing(chart, count, error);
    sort_groups(&data->series, rows, count);
    sort_groups(&data->panels, rows, count);
    sort_groups(&data->categories, rows, count);
    code = keep_points(data, count, error);
    return code ? code : check_files(data, error);
}

void pc_chart_data_free(pc_chart_data *data) {
    pc_free(data->series.name);
    pc_free(data->panels.name);
    pc_free(data->categories.name);
    pc_free(data->points);
    *data = (pc_chart_data){0};
}

int64_t pc_chart_find_points(const pc_chart_data *data, int y_index, int panel, int series, bool is_published,
                             const pc_chart_point **first) {
    pc_chart_point key = {.y_index = y_index, .panel = panel, .series = series, .is_published = is_published};
    int64_t low = 0, high = data->point_count, count = 0;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (compare_plots(&data->points[middle], &key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    *first = &data->points[low];
    while (low + count < data->point_count && compare_plots(&data->points[low + count], &key) == 0) count++;
    return count;
}
