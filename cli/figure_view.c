#include "cli/figure_view.h"

#include "scenarios/units.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* --- what a picture has no use for --- */

static const char *first_given(const char *const names[], const char *const values[], int count) {
    for (int i = 0; i < count; i++)
        if (values[i]) return names[i];
    return NULL;
}

pc_code refuse_view_of_charts(const figure_view *view, const char *picture, pc_error *error) {
    static const char *const names[] = {"--x-label", "--y-label", "--x-range", "--y-range", "--log"};
    const char *const values[] = {view->x_label, view->y_label[0], view->x_range, view->y_range, view->log};
    const char *given = first_given(names, values, sizeof names / sizeof *names);
    if (!given) return PC_OK;
    return pc_error_set(error, PC_ERROR_INPUT, "figure: %s is of charts, and %s is none; expected it beside a chart",
                        given, picture);
}

pc_code refuse_view_of_timelines(const figure_view *view, const char *picture, pc_error *error) {
    static const char *const names[] = {"--time", "--stages", "--microbatches"};
    const char *const values[] = {view->time, view->stages, view->microbatches};
    const char *given = first_given(names, values, sizeof names / sizeof *names);
    if (!given) return PC_OK;
    return pc_error_set(error, PC_ERROR_INPUT, "figure: %s is of timelines, and %s is none; expected it beside a run",
                        given, picture);
}

/* --- parts: LOW:HIGH, each of which may be left out, but not both --- */

enum { END_SIZE = 64 };

typedef struct part {
    char low[END_SIZE], high[END_SIZE]; /* empty: left out */
} part;

static pc_code split_part(const char *option, const char *text, size_t length, part *ends, pc_error *error) {
    const char *colon = memchr(text, ':', length);
    size_t low = colon ? (size_t)(colon - text) : 0, high = colon ? length - low - 1 : 0;
    if (!colon || low + high == 0 || memchr(colon + 1, ':', high) || low >= END_SIZE || high >= END_SIZE)
        return pc_error_set(error, PC_ERROR_INPUT, "figure: %s: '%.*s'; expected LOW:HIGH, LOW: or :HIGH", option,
                            (int)(length < END_SIZE ? length : END_SIZE), text);
    snprintf(ends->low, sizeof ends->low, "%.*s", (int)low, text);
    snprintf(ends->high, sizeof ends->high, "%.*s", (int)high, colon + 1);
    return PC_OK;
}

static pc_code name_option(const char *option, pc_code code, pc_error *error) {
    if (code == PC_ERROR_INPUT) pc_error_prefix(error, "figure: %s", option);
    return code;
}

/* A minus may stand before it. */
static pc_code read_number(const char *text, double *number, pc_error *error) {
    bool is_negative = text[0] == '-';
    pc_code code = pc_parse_number(text + is_negative, number, error);
    if (!code && is_negative) *number = -*number;
    return code;
}

static pc_code read_range(const char *option, const char *text, size_t length, pc_chart_range *range, pc_error *error) {
    part ends;
    pc_code code = split_part(option, text, length, &ends, error);
    if (code) return code;
    *range = (pc_chart_range){.has_low = ends.low[0], .has_high = ends.high[0]};
    if (range->has_low) code = read_number(ends.low, &range->low, error);
    if (!code && range->has_high) code = read_number(ends.high, &range->high, error);
    return name_option(option, code, error);
}

/* "::" is no entry; an empty one leaves the axis as it is. */
static pc_code read_y_ranges(const char *text, pc_chart *chart, pc_error *error) {
    pc_code code = PC_OK;
    for (int i = 0; text && !code; i++) {
        size_t length = strcspn(text, ",");
        if (i == chart->y_count)
            return pc_error_set(error, PC_ERROR_INPUT,
                                "figure: --y-range: more ranges than columns; expected at most %d", chart->y_count);
        if (length) code = read_range("--y-range", text, length, &chart->y_range[i], error);
        text = text[length] ? text + length + 1 : NULL;
    }
    return code;
}

static pc_code read_log(const char *text, pc_chart *chart, pc_error *error) {
    bool is_xy = strcmp(text, "xy") == 0, is_x = strcmp(text, "x") == 0, is_y = strcmp(text, "y") == 0;
    if (!is_xy && !is_x && !is_y)
        return pc_error_set(error, PC_ERROR_INPUT, "figure: --log: '%.40s'; expected x, y or xy", text);
    chart->x_is_log = is_x || is_xy;
    chart->y_is_log = is_y || is_xy;
    return PC_OK;
}

pc_code set_view_of_chart(const figure_view *view, pc_chart *chart, pc_error *error) {
    pc_code code = refuse_view_of_timelines(view, "a chart", error);
    if (!code && view->y_labels > chart->y_count)
        code = pc_error_set(error, PC_ERROR_INPUT, "figure: --y-label: %d labels of %d columns; expected one a column",
                            view->y_labels, chart->y_count);
    if (!code && view->x_range)
        code = read_range("--x-range", view->x_range, strlen(view->x_range), &chart->x_range, error);
    if (!code && view->y_range) code = read_y_ranges(view->y_range, chart, error);
    if (!code && view->log) code = read_log(view->log, chart, error);
    if (code) return code;
    if (view->title) chart->title = view->title;
    if (view->x_label) chart->x_label = view->x_label;
    for (int i = 0; i < view->y_labels; i++) chart->y_label[i] = view->y_label[i];
    chart->is_dark = view->is_dark;
    return PC_OK;
}

/* --- windows of timelines --- */

/* Seconds where there is no unit. */
static pc_code read_time(const char *text, pc_time *time, pc_error *error) {
    char with_unit[END_SIZE + 4];
    double seconds;
    bool is_bare = pc_parse_number(text, &seconds, NULL) == PC_OK;
    snprintf(with_unit, sizeof with_unit, "%s%s", text, is_bare ? " s" : "");
    return pc_parse_time(with_unit, time, error);
}

static pc_code read_times(const char *text, pc_timeline_window *window, pc_error *error) {
    part ends;
    pc_code code = split_part("--time", text, strlen(text), &ends, error);
    if (code) return code;
    window->has_time = true;
    window->to_ps = INT64_MAX;
    if (ends.low[0]) code = read_time(ends.low, &window->from_ps, error);
    if (!code && ends.high[0]) code = read_time(ends.high, &window->to_ps, error);
    if (!code && window->from_ps >= window->to_ps)
        code = pc_error_set(error, PC_ERROR_INPUT, "'%.60s' has no length; expected the earlier end first", text);
    return name_option("--time", code, error);
}

/* Numbers from 0, of which there are `count`; one alone stands for itself. */
static pc_code read_numbers(const char *option, const char *text, int count, int64_t numbers[2], pc_error *error) {
    part ends = {"", ""};
    pc_code code = PC_OK;
    numbers[0] = 0;
    numbers[1] = count - 1;
    if (strchr(text, ':'))
        code = split_part(option, text, strlen(text), &ends, error);
    else {
        snprintf(ends.low, sizeof ends.low, "%s", text);
        snprintf(ends.high, sizeof ends.high, "%s", text);
    }
    if (code) return code;
    if (!strchr(text, ':') || ends.low[0]) code = pc_parse_count(ends.low, 0, count - 1, &numbers[0], error);
    if (!code && ends.high[0]) code = pc_parse_count(ends.high, 0, count - 1, &numbers[1], error);
    if (!code && numbers[0] > numbers[1])
        code = pc_error_set(error, PC_ERROR_INPUT, "'%.60s' has nothing; expected the smaller end first", text);
    return name_option(option, code, error);
}

pc_code set_view_of_timeline(const figure_view *view, int microbatches, pc_timeline *timeline, pc_error *error) {
    pc_timeline_window *window = &timeline->window;
    int64_t numbers[2];
    pc_code code = refuse_view_of_charts(view, "a timeline", error);
    if (!code && view->time) code = read_times(view->time, window, error);
    if (!code && view->stages) {
        code = read_numbers("--stages", view->stages, timeline->devices, numbers, error);
        if (code) return code;
        window->has_devices = true;
        window->first_device = (int)numbers[0];
        window->last_device = (int)numbers[1];
    }
    if (!code && view->microbatches) {
        code = read_numbers("--microbatches", view->microbatches, microbatches, numbers, error);
        if (code) return code;
        window->has_microbatches = true;
        window->first_microbatch = (int32_t)numbers[0];
        window->last_microbatch = (int32_t)numbers[1];
    }
    if (view->title) timeline->title = view->title;
    timeline->is_dark = view->is_dark;
    return code;
}
