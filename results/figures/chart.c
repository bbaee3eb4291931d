#include "results/figures/chart_private.h"

#include "engine/alloc.h"
#include "engine/names.h"
#include "results/figures/figure.h"
#include "results/figures/picture.h"

#include <stdio.h>
#include <string.h>

bool pc_chart_style_parse(const char *name, pc_chart_style *style) {
    static const char *const names[] = {
        [PC_CHART_POINTS] = "points", [PC_CHART_LINES] = "lines", [PC_CHART_BARS] = "bars"};
    for (int i = PC_CHART_POINTS; i <= PC_CHART_BARS; i++)
        if (strcmp(name, names[i]) == 0) return *style = (pc_chart_style)i, true;
    return false;
}

/* --- checks --- */

enum { NAME_MOST = 48 };

static pc_code refuse_column(const char *role, const char *name, pc_error *error) {
    int count;
    const pc_column *columns = pc_columns(&count);
    pc_nearest nearest = {.word = name};
    for (int i = 0; i < count; i++) pc_nearest_offer(&nearest, columns[i].field.name);
    return pc_error_blame(error, role, "there is no column '%.80s'; expected one %s'%s'", name,
                          nearest.count ? "such as " : "of the table of runs, such as ",
                          nearest.count ? nearest.name[0] : "mfu");
}

static pc_code check_column(const char *role, const char *name, bool is_number, pc_error *error) {
    if (!name || !*name) return pc_error_blame(error, role, "no column; expected the name of one");
    const pc_column *column = pc_column_find(name);
    if (!column) return refuse_column(role, name, error);
    if (is_number && !pc_column_is_number(column))
        return pc_error_blame(error, role, "'%s' is text; expected a column of numbers", name);
    return PC_OK;
}

int pc_chart_split(const char *names, const pc_column *columns[PC_CHART_COLUMNS_MAX], char *unknown, size_t size) {
    int count = 0;
    for (const char *at = names; at;) {
        char name[NAME_MOST + 1];
        size_t length = strcspn(at, "+,");
        snprintf(name, sizeof name, "%.*s", (int)(length < NAME_MOST ? length : NAME_MOST), at);
        const pc_column *found = pc_column_find(name);
        if (!found || count == PC_CHART_COLUMNS_MAX) return snprintf(unknown, size, "%s", name), 0;
        columns[count++] = found;
        at = at[length] ? at + length + 1 : NULL;
    }
    return count;
}

/* Columns of groups: any, and joined. */
static pc_code check_groups(const char *role, const char *names, pc_error *error) {
    const pc_column *columns[PC_CHART_COLUMNS_MAX];
    char unknown[NAME_MOST + 1];
    if (!names || pc_chart_split(names, columns, unknown, sizeof unknown)) return PC_OK;
    pc_code code = check_column(role, unknown, false, error);
    return code ? code
                : pc_error_blame(error, role, "more than %d columns; expected at most that many", PC_CHART_COLUMNS_MAX);
}

static pc_code check_range(const char *role, const pc_chart_range *range, bool is_log, pc_error *error) {
    if (range->has_low && range->has_high && !(range->low < range->high))
        return pc_error_blame(error, role, "%.6g to %.6g has no length; expected the smaller end first", range->low,
                              range->high);
    bool is_above = (!range->has_low || range->low > 0) && (!range->has_high || range->high > 0);
    if (is_log && !is_above)
        return pc_error_blame(error, role, "%.6g is on no logarithmic axis; expected more than zero",
                              range->has_low ? range->low : range->high);
    return PC_OK;
}

static pc_code check_axes(const pc_chart *chart, pc_error *error) {
    bool is_bars = chart->style == PC_CHART_BARS, has_range = chart->x_range.has_low || chart->x_range.has_high;
    if (is_bars && (has_range || chart->x_is_log))
        return pc_error_blame(error, has_range ? "x_range" : "log",
                              "bars have names along x, no numbers; expected points or lines");
    pc_code code = check_range("x_range", &chart->x_range, chart->x_is_log, error);
    for (int i = 0; i < chart->y_count && !code; i++)
        code = check_range("y_range", &chart->y_range[i], chart->y_is_log, error);
    return code;
}

pc_code pc_chart_check(const pc_chart *chart, pc_error *error) {
    pc_code code = check_column("x", chart->x, chart->style != PC_CHART_BARS, error);
    if (!code && (chart->y_count < 1 || chart->y_count > PC_CHART_Y_MAX))
        code = pc_error_blame(error, "y", "%d columns; expected 1 to %d", chart->y_count, PC_CHART_Y_MAX);
    for (int i = 0; i < chart->y_count && !code; i++) code = check_column("y", chart->y[i], true, error);
    if (!code) code = check_groups("series", chart->series, error);
    if (!code) code = check_groups("panels", chart->panels, error);
    return code ? code : check_axes(chart, error);
}

/* --- drawing --- */

static pc_code lay_out(const pc_chart_data *data, const char *path, pc_text *script, pc_svg_notes *notes,
                       pc_error *error) {
    pc_chart_layout *layout = pc_alloc(1, sizeof *layout);
    if (!layout) return pc_error_no_memory(error);
    pc_chart_lay_out(data, layout);
    pc_chart_add_script(data, layout, path, script, notes);
    pc_free(layout);
    return PC_OK;
}

static pc_code make_script(const pc_chart *chart, const pc_run_row *rows, int64_t count, const char *path,
                           pc_text *script, pc_svg_notes *notes, pc_error *error) {
    pc_number_scope scope = {0};
    pc_chart_data data;
    if (!pc_number_scope_enter(&scope)) return pc_error_no_memory(error);
    pc_code code = pc_chart_collect(chart, rows, count, &data, error);
    if (!code) code = lay_out(&data, path, script, notes, error);
    pc_chart_data_free(&data);
    pc_number_scope_leave(&scope);
    return code;
}

pc_code pc_figure_chart(const pc_chart *chart, const pc_run_row *rows, int64_t count, const char *path,
                        pc_error *error) {
    pc_text script = {0};
    pc_svg_notes notes = {.title = chart->title};
    pc_code code = pc_figure_check_path(path, error);
    if (!code) code = pc_chart_check(chart, error);
    if (!code) code = make_script(chart, rows, count, path, &script, &notes, error);
    if (!code) code = pc_picture_draw(&script, chart->is_dark, &notes, path, error);
    pc_text_free(&script);
    pc_text_free(&notes.text);
    return code;
}
