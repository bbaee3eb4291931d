#include "results/figures/scenario_charts.h"

static pc_code find_style(const pc_scenario_figure *figure, pc_chart_style *style, pc_error *error) {
    *style = PC_CHART_POINTS;
    if (!figure->style || pc_chart_style_parse(figure->style, style)) return PC_OK;
    return pc_error_set(error, PC_ERROR_INPUT, "style: '%.40s'; expected points, lines or bars", figure->style);
}

pc_code pc_scenario_chart(const char *file, const pc_scenario_figure *figure, pc_chart *chart, pc_error *error) {
    pc_chart made = {.title = figure->title ? figure->title : figure->name,
                     .x = figure->x,
                     .y_count = figure->y_count,
                     .series = figure->series,
                     .panels = figure->panels,
                     .x_label = figure->x_label,
                     .published = figure->published};
    for (int i = 0; i < figure->y_count; i++) {
        made.y[i] = figure->y[i];
        made.y_label[i] = figure->y_label[i];
    }
    pc_code code = find_style(figure, &made.style, error);
    if (!code) code = pc_chart_check(&made, error);
    if (!code) return *chart = made, PC_OK;
    pc_error_prefix(error, "%s: figures: %s", file, figure->name);
    return code;
}

pc_code pc_scenario_charts_check(const char *file, const pc_scenario *scenario, pc_error *error) {
    int count;
    const pc_scenario_figure *figures = pc_scenario_figures(scenario, &count);
    pc_code code = PC_OK;
    for (int i = 0; i < count && !code; i++)
        code = pc_scenario_chart(file, &figures[i], &(pc_chart){.title = NULL}, error);
    return code;
}
