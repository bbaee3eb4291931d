/* Pictures of what the library found, drawn by gnuplot. */
#include "api/handles.h"

#include "engine/alloc.h"
#include "engine/numbers.h"
#include "results/figures/chart.h"
#include "results/figures/figure.h"
#include "results/figures/view.h"
#include "storage/text.h"

#include <stdio.h>
#include <string.h>

/* ---- options: KEY=VALUE ---- */

/* Puts a value where its key says; `picture` is what the options are of. */
typedef pc_code set_option(void *picture, const char *key, char *value, pc_error *error);

static pc_code blame(const char *key, pc_code code, pc_error *error) {
    if (code == PC_ERROR_INPUT) pc_error_set_key(error, key);
    return code;
}

static pc_code set_switch(const char *key, const char *value, bool *is_on, pc_error *error) {
    *is_on = strcmp(value, "true") == 0;
    if (*is_on || strcmp(value, "false") == 0) return PC_OK;
    return pc_error_blame(error, key, "'%.40s'; expected true or false", value);
}

/* Copies of them, each cut behind its key: the picture borrows what is behind. */
static pc_code take_options(char **copies, const char *const *options, size_t count, const char *keys, set_option *set,
                            void *picture, pc_error *error) {
    for (size_t i = 0; i < count; i++) {
        if (!(copies[i] = pc_strdup(options[i]))) return pc_error_no_memory(error);
        char *value = strchr(copies[i], '=');
        if (!value) return pc_error_set(error, PC_ERROR_INPUT, "'%.40s': expected KEY=VALUE, of %s", options[i], keys);
        *value++ = '\0';
        pc_code code = set(picture, copies[i], value, error);
        if (code) return code;
    }
    return PC_OK;
}

static pc_code refuse_option(const char *key, const char *picture, const char *keys, pc_error *error) {
    return pc_error_set(error, PC_ERROR_INPUT, "'%.40s': there is no such option of %s; expected %s", key, picture,
                        keys);
}

/* Draws what `of` is of, with the options copied into `copies`. */
typedef pc_code draw_picture(const void *of, char **copies, const char *const *options, size_t count, const char *path,
                             pc_error *error);

static int draw_with(draw_picture *draw, const void *of, const char *const *options, size_t count, const char *path,
                     pipecast_error *error) {
    pc_error why = {0};
    char **copies = pc_alloc(count ? count : 1, sizeof *copies);
    pc_code code = copies ? draw(of, copies, options, count, path, &why) : pc_error_no_memory(&why);
    for (size_t i = 0; copies && i < count; i++) pc_free(copies[i]);
    pc_free(copies);
    return api_answer(code, &why, error);
}

/* ---- timelines ---- */

static const char timeline_keys[] = "title, time, stages, microbatches or dark";

/* A timeline, and what its options are read by. */
typedef struct replay_picture {
    pc_timeline timeline;
    double bare_ps; /* what a number without a unit counts */
    int microbatches;
} replay_picture;

/* A schedule's replay does not say it itself. */
static int count_microbatches(const pc_trace_record *record) {
    int32_t most = -1;
    for (int64_t i = 0; i < record->replay.trace.pass_count; i++)
        if (record->replay.trace.pass[i].microbatch > most) most = record->replay.trace.pass[i].microbatch;
    return record->devices > 0 ? record->microbatches : most + 1;
}

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

static pc_code set_timeline_option(void *picture, const char *key, char *value, pc_error *error) {
    replay_picture *of = picture;
    pc_timeline_window *window = &of->timeline.window;
    if (strcmp(key, "title") == 0) return of->timeline.title = value, PC_OK;
    if (strcmp(key, "dark") == 0) return set_switch(key, value, &of->timeline.is_dark, error);
    if (strcmp(key, "time") == 0) return blame(key, pc_view_time(value, of->bare_ps, window, error), error);
    if (strcmp(key, "stages") == 0)
        return blame(key, pc_view_stages(value, of->timeline.devices, window, error), error);
    if (strcmp(key, "microbatches") == 0)
        return blame(key, pc_view_microbatches(value, of->microbatches, window, error), error);
    return refuse_option(key, "a timeline", timeline_keys, error);
}

static pc_code draw_replay(const void *drawn, char **copies, const char *const *options, size_t count, const char *path,
                           pc_error *error) {
    char subtitle[96];
    const pipecast_replay *replay = drawn;
    const pc_replay *of = &replay->record.replay;
    pc_write_message(subtitle, sizeof subtitle, "bubble rate %.4f (span), %.4f (makespan)", of->bubble_rate_span,
                     of->bubble_rate_makespan);
    replay_picture picture = {timeline_of(replay, "", subtitle),
                              replay->record.devices > 0 ? 1e12 : replay->time_unit_ps,
                              count_microbatches(&replay->record)};
    pc_code code = pc_figure_check_path(path, error);
    if (!code) code = pc_figure_check_size(path, of->trace.pass_count, error);
    if (!code) code = take_options(copies, options, count, timeline_keys, set_timeline_option, &picture, error);
    return code ? code : pc_figure_timeline(&picture.timeline, path, error);
}

int pipecast_replay_draw_with(const pipecast_replay *replay, const char *const *options, size_t count, const char *path,
                              pipecast_error *error) {
    return draw_with(draw_replay, replay, options, count, path, error);
}

int pipecast_replay_draw(const pipecast_replay *replay, const char *title, const char *path, pipecast_error *error) {
    pc_text option = {.data = NULL};
    pc_text_printf(&option, "title=%s", title ? title : "");
    pc_error why = {0};
    int code = option.failed ? api_answer(pc_error_no_memory(&why), &why, error)
                             : pipecast_replay_draw_with(replay, (const char *const[]){option.data}, 1, path, error);
    pc_text_free(&option);
    return code;
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

static pc_code add_label(const char *value, pc_chart *chart, pc_error *error) {
    for (int i = 0; i < PC_CHART_Y_MAX; i++)
        if (!chart->y_label[i]) return chart->y_label[i] = value, PC_OK;
    return pc_error_blame(error, "y_label", "more than %d labels; expected one a column", PC_CHART_Y_MAX);
}

static const char chart_keys[] =
    "x, y, series, panels, style, title, x_label, y_label, x_range, y_range, log, published or dark";

/* Ranges of y wait until all columns are known. */
typedef struct chart_picture {
    pc_chart chart;
    const char *y_range;
} chart_picture;

/* Where a text goes; NULL of options that are none. */
static const char **text_of(chart_picture *of, const char *key) {
    pc_chart *chart = &of->chart;
    if (strcmp(key, "x") == 0) return &chart->x;
    if (strcmp(key, "series") == 0) return &chart->series;
    if (strcmp(key, "panels") == 0) return &chart->panels;
    if (strcmp(key, "x_label") == 0) return &chart->x_label;
    if (strcmp(key, "y_range") == 0) return &of->y_range;
    return strcmp(key, "title") == 0 ? &chart->title : NULL;
}

static pc_code set_chart_option(void *picture, const char *key, char *value, pc_error *error) {
    chart_picture *of = picture;
    pc_chart *chart = &of->chart;
    const char **text = text_of(of, key);
    if (text) return *text = value, PC_OK;
    if (strcmp(key, "y") == 0) return add_columns(value, chart, error);
    if (strcmp(key, "style") == 0) return set_style(value, chart, error);
    if (strcmp(key, "y_label") == 0) return add_label(value, chart, error);
    if (strcmp(key, "x_range") == 0) return blame(key, pc_view_range(value, &chart->x_range, error), error);
    if (strcmp(key, "log") == 0) return blame(key, pc_view_log(value, chart, error), error);
    if (strcmp(key, "published") == 0) return set_switch(key, value, &chart->published, error);
    if (strcmp(key, "dark") == 0) return set_switch(key, value, &chart->is_dark, error);
    return refuse_option(key, "a chart", chart_keys, error);
}

static pc_code check_chart(const pipecast_results *results, chart_picture *of, pc_error *error) {
    pc_chart *chart = &of->chart;
    if (!chart->x || chart->y_count == 0)
        return pc_error_blame(error, chart->x ? "y" : "x", "not given; expected a column");
    if (!results->runs)
        return pc_error_set(error, PC_ERROR_INPUT, "a table without runs; expected the results of a sweep or a plan");
    if (chart->y_count < PC_CHART_Y_MAX && chart->y_label[chart->y_count])
        return pc_error_blame(error, "y_label", "more labels than columns; expected at most %d", chart->y_count);
    pc_code code = of->y_range ? blame("y_range", pc_view_y_ranges(of->y_range, chart, error), error) : PC_OK;
    return code ? code : pc_chart_check(chart, error);
}

static pc_code draw_runs(const void *drawn, char **copies, const char *const *options, size_t count, const char *path,
                         pc_error *error) {
    const pipecast_results *results = drawn;
    chart_picture of = {.chart = {.title = NULL}};
    pc_code code = pc_figure_check_path(path, error);
    if (!code) code = take_options(copies, options, count, chart_keys, set_chart_option, &of, error);
    if (!code) code = check_chart(results, &of, error);
    return code ? code : pc_figure_chart(&of.chart, results->runs, results->row_count, path, error);
}

int pipecast_results_draw(const pipecast_results *results, const char *const *options, size_t count, const char *path,
                          pipecast_error *error) {
    return draw_with(draw_runs, results, options, count, path, error);
}
