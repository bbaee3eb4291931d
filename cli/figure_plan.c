#include "cli/figure_plan.h"

#include "engine/alloc.h"
#include "results/figures/chart.h"
#include "results/figures/plan_figures.h"

#include <math.h>
#include <string.h>

/* What a picture is drawn from and how. */
typedef struct plan_picture {
    const pc_run_row *rows;
    int64_t count;
    pc_chart_files files;
    const figure_view *view;
    const char *path; /* of the first results file, for messages */
} plan_picture;

typedef pc_code draw_rows(const plan_picture *of, const char *output, pc_error *error);

/* ---- charts of plans ---- */

static bool has_price(const pc_run_row *rows, int64_t count) {
    bool has = false;
    for (int64_t i = 0; i < count && !has; i++) has = isfinite(rows[i].cost_per_million_tokens);
    return has;
}

static bool has_days(const pc_run_row *rows, int64_t count) {
    bool has = false;
    for (int64_t i = 0; i < count && !has; i++) has = isfinite(rows[i].training_days);
    return has;
}

static bool differ(const pc_run_row *rows, int64_t count, size_t place) {
    for (int64_t i = 1; i < count; i++)
        if (strcmp((const char *)&rows[i] + place, (const char *)&rows[0] + place) != 0) return true;
    return false;
}

/* Machines if there are several, else schedules. */
static const char *series_of(const pc_run_row *rows, int64_t count) {
    return differ(rows, count, offsetof(pc_run_row, machine)) ? "machine" : "schedule";
}

/* What is wrong with rows is wrong with their file. */
static pc_code place(const plan_picture *of, pc_code code, pc_error *error) {
    if (code == PC_ERROR_INPUT) pc_error_place(error, of->path, 0, "");
    return code;
}

static pc_code draw_chart(const plan_picture *of, pc_chart *chart, const char *output, pc_error *error) {
    chart->files = of->files;
    pc_code code = set_view_of_chart(of->view, chart, error);
    return code ? code : place(of, pc_figure_chart(chart, of->rows, of->count, output, error), error);
}

static pc_code draw_front(const plan_picture *of, const char *output, pc_error *error) {
    const pc_run_row *rows = of->rows;
    int64_t count = of->count;
    pc_chart chart = {.title = "Plans: throughput and cost over memory",
                      .x = "memory_gib_max",
                      .y = {"tokens_per_s_per_gpu",
                            has_price(rows, count) ? "cost_per_million_tokens" : "gpu_hours_per_million_tokens"},
                      .y_count = 2,
                      .series = series_of(rows, count)};
    return draw_chart(of, &chart, output, error);
}

static pc_code draw_scaling(const plan_picture *of, const char *output, pc_error *error) {
    const pc_run_row *rows = of->rows;
    int64_t count = of->count;
    pc_chart chart = {.title = "The best plan of each number of GPUs",
                      .x = "gpus",
                      .y = {"tokens_per_s_per_gpu", "mfu"},
                      .y_count = 2,
                      .series = differ(rows, count, offsetof(pc_run_row, machine)) ? "machine" : NULL,
                      .style = PC_CHART_LINES};
    if (has_days(rows, count)) chart.y[chart.y_count++] = "training_days";
    if (has_days(rows, count) && has_price(rows, count)) chart.y[chart.y_count++] = "training_cost";
    return draw_chart(of, &chart, output, error);
}

/* ---- pictures of one file, which are no charts ---- */

static pc_code refuse_view(const figure_view *view, const char *picture, pc_error *error) {
    if (view->title)
        return pc_error_set(error, PC_ERROR_INPUT, "figure: %s has a title of its own; expected no --title", picture);
    pc_code code = refuse_view_of_charts(view, picture, error);
    return code ? code : refuse_view_of_timelines(view, picture, error);
}

static pc_code draw_map(const plan_picture *of, const char *output, pc_error *error) {
    pc_code code = refuse_view(of->view, "a map", error);
    if (code) return code;
    return place(of, pc_figure_plan_map(of->rows, of->count, of->view->is_dark, output, error), error);
}

static pc_code draw_changes(const plan_picture *of, const char *output, pc_error *error) {
    pc_code code = refuse_view(of->view, "sensitivity", error);
    if (code) return code;
    return place(of, pc_figure_plan_changes(of->rows, of->count, of->view->is_dark, output, error), error);
}

/* ---- which there are ---- */

static const struct {
    const char *name, *part, *title, *made_by;
    draw_rows *draw;
} pictures[] = {
    {"front", "plan", "plans: throughput and cost over memory", "`pipecast plan -o`", draw_front},
    {"scaling", "each", "the best plan of each number of GPUs",
     "`pipecast plan --each gpus -o`, or with a deadline or a budget", draw_scaling},
    {"map", "map", "the best plan of each two values", "`pipecast plan --map AXIS,AXIS -o`", draw_map},
    {"sensitivity", "sensitivity", "what would change plan 1", "`pipecast plan --sensitivity -o`", draw_changes},
};
enum { PICTURES = sizeof pictures / sizeof *pictures };

static int find_picture(const char *name) {
    int at = 0;
    while (at < PICTURES && strcmp(pictures[at].name, name) != 0) at++;
    return at;
}

bool is_plan_picture(const char *name) {
    return name && find_picture(name) < PICTURES;
}

/* Of numbers of GPUs those that a goal was tried with count, too. */
static bool is_of_part(const pc_run_row *row, int picture) {
    bool is_scaling = pictures[picture].draw == draw_scaling;
    bool is_of_it = pc_plan_row_is_of(row, pictures[picture].part) || (is_scaling && pc_plan_row_is_of(row, "goal"));
    return is_of_it && (!is_scaling || strstr(row->name, "gpus="));
}

/* Of sensitivity with plan 1. */
static bool is_row_of(const pc_run_row *row, int picture) {
    bool is_best = pictures[picture].draw == draw_changes && strcmp(row->name, "plan-1") == 0;
    return is_best || is_of_part(row, picture);
}

static bool has_rows(const pc_results_reader *reader, int picture) {
    for (int64_t i = 0; i < pc_results_run_count(reader); i++)
        if (is_of_part(pc_results_row(reader, i), picture)) return true;
    return false;
}

static bool is_wanted(const pc_run_row *row, const void *picture) {
    return is_row_of(row, *(const int *)picture);
}

static bool is_chart(int picture) {
    return pictures[picture].draw == draw_front || pictures[picture].draw == draw_scaling;
}

static pc_code check_sources(const figure_sources *sources, int picture, pc_error *error) {
    if (sources->count > 1 && !is_chart(picture)) return refuse_several(sources, pictures[picture].name, error);
    for (int i = 0; i < sources->count; i++)
        if (!has_rows(sources->reader[i], picture))
            return pc_error_set_file(error, PC_ERROR_INPUT, sources->path[i],
                                     "nothing to draw a %s of; expected results of %s", pictures[picture].name,
                                     pictures[picture].made_by);
    return PC_OK;
}

pc_code draw_plan_picture(const figure_sources *sources, const char *name, const figure_view *view, const char *output,
                          pc_error *error) {
    int picture = find_picture(name), without;
    source_rows rows;
    pc_code code = check_sources(sources, picture, error);
    if (code) return code;
    code = copy_source_rows(sources, is_wanted, &picture, &rows, &without, error);
    plan_picture of = {.rows = rows.rows, .count = rows.count, .view = view, .path = sources->path[0]};
    if (!code) of.files = files_of_rows(sources, &rows);
    if (!code) code = pictures[picture].draw(&of, output, error);
    source_rows_free(&rows);
    return code;
}

void list_plan_pictures(const pc_results_reader *reader, FILE *stream) {
    for (int i = 0; i < PICTURES; i++)
        if (has_rows(reader, i)) fprintf(stream, "plans  %s  %s\n", pictures[i].name, pictures[i].title);
}
