#include "results/figures/scenario_charts.h"

#include "results/figures/view.h"

#include <stdio.h>

static pc_code find_style(const pc_scenario_figure *figure, pc_chart_style *style, pc_error *error) {
    *style = PC_CHART_POINTS;
    if (!figure->style || pc_chart_style_parse(figure->style, style)) return PC_OK;
    return pc_error_blame(error, "style", "'%.40s'; expected points, lines or bars", figure->style);
}

static pc_code name_key(const char *key, pc_code code, pc_error *error) {
    if (code && error) pc_error_set_key(error, key);
    return code;
}

static pc_code set_view(const pc_scenario_figure *figure, pc_chart *chart, pc_error *error) {
    pc_code code = PC_OK;
    if (figure->x_range) code = name_key("x_range", pc_view_range(figure->x_range, &chart->x_range, error), error);
    for (int i = 0; i < figure->y_count && !code; i++)
        if (figure->y_range[i])
            code = name_key("y_range", pc_view_range(figure->y_range[i], &chart->y_range[i], error), error);
    return code || !figure->log ? code : name_key("log", pc_view_log(figure->log, chart, error), error);
}

static pc_code place(const char *file, const pc_scenario_figure *figure, pc_code code, pc_error *error) {
    char key[512];
    if (!error) return code;
    const char *role = pc_error_part_of(error, PC_ERROR_PART_KEY);
    snprintf(key, sizeof key, "figures: %.300s%s%.60s", figure->name, *role ? ": " : "", role);
    pc_error_place(error, file, 0, key);
    return code;
}

pc_code pc_scenario_chart(const char *file, const pc_scenario_figure *figure, pc_chart *chart, pc_error *error) {
    pc_chart made = {.title = figure->title ? figure->title : figure->name,
                     .x = figure->x,
                     .y_count = figure->y_count,
                     .series = figure->series,
                     .panels = figure->panels,
                     .x_label = figure->x_label,
                     .published = figure->published,
                     .is_dark = figure->is_dark};
    for (int i = 0; i < figure->y_count; i++) {
        made.y[i] = figure->y[i];
        made.y_label[i] = figure->y_label[i];
    }
    pc_code code = find_style(figure, &made.style, error);
    if (!code) code = set_view(figure, &made, error);
    if (!code) code = pc_chart_check(&made, error);
    if (!code) return *chart = made, PC_OK;
    return place(file, figure, code, error);
}

pc_code pc_scenario_charts_check(const char *file, const pc_scenario *scenario, pc_error *error) {
    int count;
    const pc_scenario_figure *figures = pc_scenario_figures(scenario, &count);
    pc_code code = PC_OK;
    for (int i = 0; i < count && !code; i++)
        code = pc_scenario_chart(file, &figures[i], &(pc_chart){.title = NULL}, error);
    return code;
}
