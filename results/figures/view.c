#include "results/figures/view.h"

#include "scenarios/units.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* --- parts: LOW:HIGH, each of which may be left out, but not both --- */

enum { END_SIZE = 64 };

typedef struct part {
    char low[END_SIZE], high[END_SIZE]; /* empty: left out */
} part;

static pc_code split_part(const char *text, size_t length, part *ends, pc_error *error) {
    const char *colon = memchr(text, ':', length);
    size_t low = colon ? (size_t)(colon - text) : 0, high = colon ? length - low - 1 : 0;
    if (!colon || low + high == 0 || memchr(colon + 1, ':', high) || low >= END_SIZE || high >= END_SIZE)
        return pc_error_set(error, PC_ERROR_INPUT, "'%.*s'; expected LOW:HIGH, LOW: or :HIGH",
                            (int)(length < END_SIZE ? length : END_SIZE), text);
    snprintf(ends->low, sizeof ends->low, "%.*s", (int)low, text);
    snprintf(ends->high, sizeof ends->high, "%.*s", (int)high, colon + 1);
    return PC_OK;
}

/* --- axes of charts --- */

/* A minus may stand before it. */
static pc_code read_number(const char *text, double *number, pc_error *error) {
    bool is_negative = text[0] == '-';
    pc_code code = pc_parse_number(text + is_negative, number, error);
    if (!code && is_negative) *number = -*number;
    return code;
}

static pc_code read_range(const char *text, size_t length, pc_chart_range *range, pc_error *error) {
    part ends;
    pc_code code = split_part(text, length, &ends, error);
    if (code) return code;
    *range = (pc_chart_range){.has_low = ends.low[0], .has_high = ends.high[0]};
    if (range->has_low) code = read_number(ends.low, &range->low, error);
    if (!code && range->has_high) code = read_number(ends.high, &range->high, error);
    return code;
}

pc_code pc_view_range(const char *text, pc_chart_range *range, pc_error *error) {
    return read_range(text, strlen(text), range, error);
}

pc_code pc_view_y_ranges(const char *text, pc_chart *chart, pc_error *error) {
    pc_code code = PC_OK;
    for (int i = 0; text && !code; i++) {
        size_t length = strcspn(text, ",");
        if (i == chart->y_count)
            return pc_error_set(error, PC_ERROR_INPUT, "more ranges than columns; expected at most %d", chart->y_count);
        if (length) code = read_range(text, length, &chart->y_range[i], error);
        text = text[length] ? text + length + 1 : NULL;
    }
    return code;
}

pc_code pc_view_log(const char *text, pc_chart *chart, pc_error *error) {
    bool is_xy = strcmp(text, "xy") == 0, is_x = strcmp(text, "x") == 0, is_y = strcmp(text, "y") == 0;
    if (!is_xy && !is_x && !is_y) return pc_error_set(error, PC_ERROR_INPUT, "'%.40s'; expected x, y or xy", text);
    chart->x_is_log = is_x || is_xy;
    chart->y_is_log = is_y || is_xy;
    return PC_OK;
}

/* --- windows of timelines --- */

/* Seconds go by the parser of times, which is exact. */
static pc_code read_time(const char *text, double bare_ps, pc_time *time, pc_error *error) {
    char with_unit[END_SIZE + 4];
    double number;
    bool is_bare = pc_parse_number(text, &number, NULL) == PC_OK;
    snprintf(with_unit, sizeof with_unit, "%s%s", text, is_bare ? " s" : "");
    if (!is_bare || bare_ps == 1e12) return pc_parse_time(with_unit, time, error);
    if (number * bare_ps >= 0x1p62)
        return pc_error_set(error, PC_ERROR_INPUT, "%.40s is too much; expected less than %g", text, 0x1p62 / bare_ps);
    return *time = (pc_time)llround(number * bare_ps), PC_OK;
}

pc_code pc_view_time(const char *text, double bare_ps, pc_timeline_window *window, pc_error *error) {
    part ends;
    pc_code code = split_part(text, strlen(text), &ends, error);
    if (code) return code;
    window->has_time = true;
    window->to_ps = INT64_MAX;
    if (ends.low[0]) code = read_time(ends.low, bare_ps, &window->from_ps, error);
    if (!code && ends.high[0]) code = read_time(ends.high, bare_ps, &window->to_ps, error);
    if (!code && window->from_ps >= window->to_ps)
        code = pc_error_set(error, PC_ERROR_INPUT, "'%.60s' has no length; expected the earlier end first", text);
    return code;
}

/* Numbers from 0, of which there are `count`; one alone stands for itself. */
static pc_code read_numbers(const char *text, int count, int64_t numbers[2], pc_error *error) {
    part ends = {"", ""};
    pc_code code = PC_OK;
    numbers[0] = 0;
    numbers[1] = count - 1;
    if (strchr(text, ':')) {
        code = split_part(text, strlen(text), &ends, error);
    } else {
        snprintf(ends.low, sizeof ends.low, "%s", text);
        snprintf(ends.high, sizeof ends.high, "%s", text);
    }
    if (code) return code;
    if (!strchr(text, ':') || ends.low[0]) code = pc_parse_count(ends.low, 0, count - 1, &numbers[0], error);
    if (!code && ends.high[0]) code = pc_parse_count(ends.high, 0, count - 1, &numbers[1], error);
    if (!code && numbers[0] > numbers[1])
        code = pc_error_set(error, PC_ERROR_INPUT, "'%.60s' has nothing; expected the smaller end first", text);
    return code;
}

pc_code pc_view_stages(const char *text, int devices, pc_timeline_window *window, pc_error *error) {
    int64_t numbers[2];
    pc_code code = read_numbers(text, devices, numbers, error);
    if (code) return code;
    window->has_devices = true;
    window->first_device = (int)numbers[0];
    window->last_device = (int)numbers[1];
    return PC_OK;
}

pc_code pc_view_microbatches(const char *text, int microbatches, pc_timeline_window *window, pc_error *error) {
    int64_t numbers[2];
    pc_code code = read_numbers(text, microbatches, numbers, error);
    if (code) return code;
    window->has_microbatches = true;
    window->first_microbatch = (int32_t)numbers[0];
    window->last_microbatch = (int32_t)numbers[1];
    return PC_OK;
}
