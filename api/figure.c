/* Pictures of what the library found, drawn by gnuplot. */
#include "api/handles.h"

#include "engine/alloc.h"
#include "engine/numbers.h"
#include "results/figures/chart.h"
#include "results/figures/figure.h"
#include "storage/text.h"

#include <stdio.h>
#include <string.h>

/* ---- timelines ---- */

/* Of a run: milliseconds and GiB; of a schedule alone: the caller's units. */
static pc_timeline timeline_of(const pipecast_replay *replay, const char *title, const char *subtitle) {
    const pc_trace_record *record = &replay->record;
    bool is_run = record->devices > 0;
    bool holds_all = is_run && record->memory && record->replay.engine.memory_count > 0;
    return (pc_timeline){.title = title,
                         .subtitle = subtitle,
                         .time_unit = is_run ? "ms" : "",
                         .time_unit_ps = is_run ? 1e9 : replay->time_unit_ps,
                         .devices = record->replay.devices,
                         .chunks = replay->chunks,
                         .slices = pc_placement_slices(replay->placement, replay->chunks),
                         .trace = &record->replay.trace,
                         .engine = is_run ? &record->replay.engine : NULL,
                         .memory_heading = holds_all ? "Memory: all that a device holds" : NULL,
                         .block = record->block.devices ? &record->block : NULL,
                         .memory = true,
                         .memory_unit_bytes = is_run ? (double)PC_BYTES_PER_GIB : replay->memory_unit_bytes,
                         .memory_unit = is_run ? "GiB" : "microbatches"};
}

int pipecast_replay_draw(const pipecast_replay *replay, const char *title, const char *path, pipecast_error *error) {
    char subtitle[96];
    pc_error why = {0};
    const pc_replay *of = &replay->record.replay;
    pc_write_message(subtitle, sizeof subtitle, "bubble rate %.4f (span), %.4f (makespan)", of->bubble_rate_span,
                     of->bubble_rate_makespan);
    pc_timeline timeline = timeline_of(replay, title ? title : "", subtitle);
    pc_code code = pc_figure_check_path(path, &why);
    if (!code) code = pc_figure_check_size(path, of->trace.pass_count, &why);
    if (!code) code = pc_figure_timeline(&timeline, path, &why);
    return api_answer(code, &why, error);
}

/* ---- charts ---- */

static pc_code add_columns(char *list, pc_chart *chart, pc_error *error) {
    for (char *at = list; at;) {
        char *comma = strchr(at, ',');
        if (chart->y_count == PC_CHART_Y_MAX)
            return pc_error_blame(error, "y", "more than %d columns; expected at most that many", PC_CHART_Y_MAX);
        if (comma) *comma++ = '\0';
        chart->y[chart->y_count++] = at;
        at = comma;
    }
    return PC_OK;
}

static pc_code set_style(const char *value, pc_chart *chart, pc_error *error) {
    if (pc_chart_style_parse(value, &chart->style)) return PC_OK;
    return pc_error_blame(error, "style", "'%.40s'; expected points, lines or bars", value);
}

static pc_code set_switch(const char *key, const char *value, bool *is_on, pc_error *error) {
    *is_on = strcmp(value, "true") == 0;
    if (*is_on || strcmp(value, "false") == 0) return PC_OK;
    return pc_error_blame(error, key, "'%.40s'; expected true or false", value);
}

/* Where a text goes; NULL of options that are none. */
static const char **text_of(pc_chart *chart, const char *key) {
    if (strcmp(key, "x") == 0) return &chart->x;
    if (strcmp(key, "series") == 0) return &chart->series;
    if (strcmp(key, "panels") == 0) return &chart->panels;
    return strcmp(key, "title") == 0 ? &chart->title : NULL;
}

/* `option` is cut behind its key. */
static pc_code take_option(char *option, pc_chart *chart, pc_error *error) {
    static const char keys[] = "x, y, series, panels, style, title, published or dark";
    char *value = strchr(option, '=');
    if (!value) return pc_error_set(error, PC_ERROR_INPUT, "'%.40s': expected KEY=VALUE, of %s", option, keys);
    *value++ = '\0';
    const char **text = text_of(chart, option);
    if (text) return *text = value, PC_OK;
    if (strcmp(option, "y") == 0) return add_columns(value, chart, error);
    if (strcmp(option, "style") == 0) return set_style(value, chart, error);
    if (strcmp(option, "published") == 0) return set_switch(option, value, &chart->published, error);
    if (strcmp(option, "dark") == 0) return set_switch(option, value, &chart->is_dark, error);
    return pc_error_set(error, PC_ERROR_INPUT, "'%.40s': there is no such option of a chart; expected %s", option,
                        keys);
}

static pc_code check_chart(const pipecast_results *results, const pc_chart *chart, pc_error *error) {
    if (!chart->x || chart->y_count == 0)
        return pc_error_blame(error, chart->x ? "y" : "x", "not given; expected a column");
    if (!results->runs)
        return pc_error_set(error, PC_ERROR_INPUT, "a table without runs; expected the results of a sweep or a plan");
    return pc_chart_check(chart, error);
}

static pc_code draw(const pipecast_results *results, char **options, size_t count, const char *path, pc_error *error) {
    pc_chart chart = {.title = NULL};
    pc_code code = pc_figure_check_path(path, error);
    for (size_t i = 0; i < count && !code; i++) code = take_option(options[i], &chart, error);
    if (!code) code = check_chart(results, &chart, error);
    return code ? code : pc_figure_chart(&chart, results->runs, results->row_count, path, error);
}

int pipecast_results_draw(const pipecast_results *results, const char *const *options, size_t count, const char *path,
                          pipecast_error *error) {
    pc_error why = {0};
    char **copies = pc_alloc(count ? count : 1, sizeof *copies);
    pc_code code = copies ? PC_OK : pc_error_no_memory(&why);
    for (size_t i = 0; i < count && !code; i++)
        if (!(copies[i] = pc_strdup(options[i]))) code = pc_error_no_memory(&why);
    if (!code) code = draw(results, copies, count, path, &why);
    for (size_t i = 0; copies && i < count; i++) pc_free(copies[i]);
    pc_free(copies);
    return api_answer(code, &why, error);
}
