#include "cli/figure_plan.h"

#include "engine/alloc.h"
#include "results/figures/chart.h"
#include "results/figures/plan_figures.h"

#include <math.h>
#include <string.h>

typedef pc_code draw_rows(const pc_run_row *rows, int64_t count, const char *output, pc_error *error);

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

static pc_code draw_front(const pc_run_row *rows, int64_t count, const char *output, pc_error *error) {
    pc_chart chart = {.title = "Plans: throughput and cost over memory",
                      .x = "memory_gib_max",
                      .y = {"tokens_per_s_per_gpu",
                            has_price(rows, count) ? "cost_per_million_tokens" : "gpu_hours_per_million_tokens"},
                      .y_count = 2,
                      .series = series_of(rows, count)};
    return pc_figure_chart(&chart, rows, count, output, error);
}

static pc_code draw_scaling(const pc_run_row *rows, int64_t count, const char *output, pc_error *error) {
    pc_chart chart = {.title = "The best plan of each number of GPUs",
                      .x = "gpus",
                      .y = {"tokens_per_s_per_gpu", "mfu"},
                      .y_count = 2,
                      .series = differ(rows, count, offsetof(pc_run_row, machine)) ? "machine" : NULL,
                      .style = PC_CHART_LINES};
    if (has_days(rows, count)) chart.y[chart.y_count++] = "training_days";
    if (has_days(rows, count) && has_price(rows, count)) chart.y[chart.y_count++] = "training_cost";
    return pc_figure_chart(&chart, rows, count, output, error);
}

/* ---- which there are ---- */

static const struct {
    const char *name, *part, *title, *made_by;
    draw_rows *draw;
} pictures[] = {
    {"front", "plan", "plans: throughput and cost over memory", "`pipecast plan -o`", draw_front},
    {"scaling", "each", "the best plan of each number of GPUs",
     "`pipecast plan --each gpus -o`, or with a deadline or a budget", draw_scaling},
    {"map", "map", "the best plan of each two values", "`pipecast plan --map AXIS,AXIS -o`", pc_figure_plan_map},
    {"sensitivity", "sensitivity", "what would change plan 1", "`pipecast plan --sensitivity -o`",
     pc_figure_plan_changes},
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

static bool is_of_part(const pc_run_row *row, int picture) {
    bool is_of_gpus = pictures[picture].draw != draw_scaling || strstr(row->name, "gpus=");
    return is_of_gpus && pc_plan_row_is_of(row, pictures[picture].part);
}

/* Of sensitivity with plan 1. */
static bool is_row_of(const pc_run_row *row, int picture) {
    bool is_best = pictures[picture].draw == pc_figure_plan_changes && strcmp(row->name, "plan-1") == 0;
    return is_best || is_of_part(row, picture);
}

static bool has_rows(const pc_results_reader *reader, int picture) {
    for (int64_t i = 0; i < pc_results_run_count(reader); i++)
        if (is_of_part(pc_results_row(reader, i), picture)) return true;
    return false;
}

pc_code draw_plan_picture(const pc_results_reader *reader, const char *path, const char *name, const char *output,
                          pc_error *error) {
    int picture = find_picture(name);
    int64_t all = pc_results_run_count(reader), count = 0;
    if (!has_rows(reader, picture))
        return pc_error_set_file(error, PC_ERROR_INPUT, path, "nothing to draw a %s of; expected results of %s", name,
                                 pictures[picture].made_by);
    pc_run_row *rows = pc_alloc((size_t)all, sizeof *rows);
    if (!rows) return pc_error_no_memory(error);
    for (int64_t i = 0; i < all; i++)
        if (is_row_of(pc_results_row(reader, i), picture)) rows[count++] = *pc_results_row(reader, i);
    pc_code code = pictures[picture].draw(rows, count, output, error);
    if (code == PC_ERROR_INPUT) pc_error_place(error, path, 0, "");
    pc_free(rows);
    return code;
}

void list_plan_pictures(const pc_results_reader *reader, FILE *stream) {
    for (int i = 0; i < PICTURES; i++)
        if (has_rows(reader, i)) fprintf(stream, "plans  %s  %s\n", pictures[i].name, pictures[i].title);
}
