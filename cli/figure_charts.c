#include "cli/figure_charts.h"
#include "cli/cli.h"
#include "results/figures/scenario_charts.h"

#include "cli/find_run.h"
#include "engine/alloc.h"
#include "results/figures/chart.h"
#include "scenarios/scenario.h"

#include <string.h>

/* --- rows --- */

static bool is_of_scenario(const pc_run_row *row, const void *scenario) {
    return !scenario || strcmp(row->scenario, scenario) == 0;
}

static pc_code draw_rows(const figure_sources *sources, const char *scenario, pc_chart *chart, const char *output,
                         pc_error *error) {
    char hint[PC_NEAREST_TEXT];
    source_rows rows;
    int without;
    pc_code code = copy_source_rows(sources, is_of_scenario, scenario, &rows, &without, error);
    if (!code && scenario && without >= 0)
        code = pc_error_set_file(error, PC_ERROR_INPUT, sources->path[without],
                                 "no run of '%.127s'%s; expected a scenario of the file", scenario,
                                 scenario_hint(sources->reader[without], scenario, hint));
    else if (!code) {
        chart->files = files_of_rows(sources, &rows);
        code = pc_figure_chart(chart, rows.rows, rows.count, output, error);
        if (code == PC_ERROR_INPUT) pc_error_place(error, sources->path[0], 0, "");
    }
    source_rows_free(&rows);
    return code;
}

/* --- the user's own --- */

bool chart_is_requested(const chart_request *request) {
    return request->x || request->y || request->series || request->panels || request->style || request->scenario ||
           request->published;
}

/* Cuts the list at its commas. */
static pc_code split_columns(char *list, pc_chart *chart, pc_error *error) {
    for (char *at = list; at; chart->y_count++) {
        char *comma = strchr(at, ',');
        if (chart->y_count == PC_CHART_Y_MAX)
            return pc_error_blame(error, "y", "more than %d columns; expected at most that many", PC_CHART_Y_MAX);
        chart->y[chart->y_count] = at;
        if (comma) *comma++ = '\0';
        at = comma;
    }
    return PC_OK;
}

static pc_code refuse_style(const char *style, pc_error *error) {
    char hint[PC_NEAREST_TEXT];
    pc_nearest nearest = {.word = style};
    pc_nearest_offer_words(&nearest, "points|lines|bars");
    return pc_error_blame(error, "style", "'%.40s'%s; expected points, lines or bars", style,
                          pc_nearest_hint(&nearest, hint));
}

static pc_code make_chart(const chart_request *request, const figure_view *view, char *columns, pc_chart *chart,
                          pc_error *error) {
    *chart = (pc_chart){
        .x = request->x, .series = request->series, .panels = request->panels, .published = request->published};
    if (!request->x || !request->y)
        return pc_error_blame(error, request->x ? "y" : "x",
                              "not given; expected a column, as a chart has both x and y");
    if (request->style && !pc_chart_style_parse(request->style, &chart->style))
        return refuse_style(request->style, error);
    pc_code code = split_columns(columns, chart, error);
    if (!code) code = set_view_of_chart(view, chart, error);
    return code ? code : pc_chart_check(chart, error);
}

/* The options have the names of the columns' roles; of other things the name stands already. */
static void name_option(pc_error *error) {
    char option[64];
    const char *key = pc_error_part_of(error, PC_ERROR_PART_KEY);
    if (!key[0]) return;
    snprintf(option, sizeof option, "--%.60s", key);
    for (char *at = option; *at; at++)
        if (*at == '_') *at = '-';
    pc_error_set_key(error, option);
    pc_error_prefix(error, "figure");
}

pc_code draw_requested_chart(const figure_sources *sources, const chart_request *request, const figure_view *view,
                             const char *output, pc_error *error) {
    pc_chart chart;
    char *columns = pc_strdup(request->y ? request->y : "");
    if (!columns) return pc_error_no_memory(error);
    pc_code code = make_chart(request, view, columns, &chart, error);
    if (code == PC_ERROR_INPUT) name_option(error);
    if (!code) code = draw_rows(sources, request->scenario, &chart, output, error);
    pc_free(columns);
    return code;
}

/* --- those of scenarios --- */

/* Calls `take` for every chart that a scenario of the file declares; stops where it does not return PC_OK. */
typedef pc_code take_figure(const char *scenario, const pc_scenario_figure *figure, void *context, pc_error *error);

static pc_code walk_scenario(const pc_results_reader *reader, const char *scenario, take_figure *take, void *context,
                             pc_error *error) {
    pc_scenario_figures_list list = {0};
    char *text = NULL;
    size_t size;
    pc_code code = pc_results_scenario_text(reader, scenario, &text, &size, error);
    if (code == PC_ERROR_INPUT) return PC_OK; /* a file that was put together need not have it */
    if (!code) code = pc_scenario_figures_read(text, size, scenario, &list, error);
    for (int i = 0; i < list.count && !code; i++) code = take(scenario, &list.figures[i], context, error);
    pc_scenario_figures_free(&list);
    pc_free(text);
    return code;
}

/* Rows of a scenario stand together; one that comes again is found by looking back. */
static bool is_first_row(const pc_results_reader *reader, int64_t index) {
    const char *scenario = pc_results_row(reader, index)->scenario;
    if (index > 0 && strcmp(pc_results_row(reader, index - 1)->scenario, scenario) == 0) return false;
    for (int64_t i = 0; i < index; i++)
        if (strcmp(pc_results_row(reader, i)->scenario, scenario) == 0) return false;
    return true;
}

/* `path` stands before what is refused; NULL: that has its place. */
static pc_code walk_figures(const pc_results_reader *reader, const char *path, take_figure *take, void *context,
                            pc_error *error) {
    pc_code code = PC_OK;
    for (int64_t i = 0; i < pc_results_run_count(reader) && !code; i++)
        if (is_first_row(reader, i))
            code = walk_scenario(reader, pc_results_row(reader, i)->scenario, take, context, error);
    if (code == PC_ERROR_INPUT && path) pc_error_place(error, path, 0, "");
    return code;
}

static pc_code print_figure(const char *scenario, const pc_scenario_figure *figure, void *context, pc_error *error) {
    (void)error;
    fprintf(context, "chart  ");
    print_plain(context, scenario);
    fprintf(context, "/%s", figure->name);
    if (figure->title) fprintf(context, "  ");
    if (figure->title) print_plain(context, figure->title);
    fprintf(context, "\n");
    return PC_OK;
}

pc_code list_declared_charts(const pc_results_reader *reader, const char *path, FILE *stream, pc_error *error) {
    return walk_figures(reader, path, print_figure, stream, error);
}

typedef struct search {
    const char *name;
    pc_nearest *others;              /* is offered what is not meant */
    char scenario[2][PC_LABEL_SIZE]; /* of the first two that are meant */
    int count;
    const figure_sources *sources;
    const figure_view *view;
    const char *output;
} search;

static bool is_meant(const char *scenario, const pc_scenario_figure *figure, const char *name) {
    size_t length = strlen(scenario);
    if (strcmp(figure->name, name) == 0) return true;
    return strncmp(scenario, name, length) == 0 && name[length] == '/' && strcmp(figure->name, name + length + 1) == 0;
}

static pc_code note_figure(const char *scenario, const pc_scenario_figure *figure, void *context, pc_error *error) {
    search *of = context;
    (void)error;
    if (!is_meant(scenario, figure, of->name)) return pc_nearest_offer(of->others, figure->name), PC_OK;
    if (of->count < 2) snprintf(of->scenario[of->count], PC_LABEL_SIZE, "%s", scenario);
    of->count++;
    return PC_OK;
}

static pc_code draw_figure(const char *scenario, const pc_scenario_figure *figure, void *context, pc_error *error) {
    const search *of = context;
    pc_chart chart;
    if (!is_meant(scenario, figure, of->name)) return PC_OK;
    pc_code code = pc_scenario_chart(scenario, figure, &chart, error);
    if (code == PC_ERROR_INPUT) pc_error_place(error, of->sources->path[0], 0, "");
    if (code) return code;
    code = set_view_of_chart(of->view, &chart, error);
    if (!code) code = pc_chart_check(&chart, error);
    if (code == PC_ERROR_INPUT) name_option(error);
    return code ? code : draw_rows(of->sources, scenario, &chart, of->output, error);
}

pc_code draw_declared_chart(const figure_sources *sources, const char *name, const figure_view *view,
                            const char *output, bool *is_chart, pc_nearest *others, pc_error *error) {
    const char *path = sources->path[0];
    search of = {.name = name, .others = others, .sources = sources, .view = view, .output = output};
    pc_code code = walk_figures(sources->reader[0], path, note_figure, &of, error);
    *is_chart = of.count > 0;
    if (code || of.count == 0) return code;
    if (of.count == 1) return walk_figures(sources->reader[0], NULL, draw_figure, &of, error);
    return pc_error_set_file(error, PC_ERROR_INPUT, path,
                             "'%s' is the name of %d charts; expected one, such as %s/%s or %s/%s", name, of.count,
                             of.scenario[0], name, of.scenario[1], name);
}
