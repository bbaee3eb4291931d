#include "cli/figure_view.h"

#include "results/figures/view.h"

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

/* --- what it shows --- */

static pc_code name_option(const char *option, pc_code code, pc_error *error) {
    if (code == PC_ERROR_INPUT) pc_error_prefix(error, "figure: %s", option);
    return code;
}

pc_code set_view_of_chart(const figure_view *view, pc_chart *chart, pc_error *error) {
    pc_code code = refuse_view_of_timelines(view, "a chart", error);
    if (!code && view->y_labels > chart->y_count)
        code = pc_error_set(error, PC_ERROR_INPUT, "figure: --y-label: %d labels of %d columns; expected one a column",
                            view->y_labels, chart->y_count);
    if (!code && view->x_range)
        code = name_option("--x-range", pc_view_range(view->x_range, &chart->x_range, error), error);
    if (!code && view->y_range) code = name_option("--y-range", pc_view_y_ranges(view->y_range, chart, error), error);
    if (!code && view->log) code = name_option("--log", pc_view_log(view->log, chart, error), error);
    if (code) return code;
    if (view->title) chart->title = view->title;
    if (view->x_label) chart->x_label = view->x_label;
    for (int i = 0; i < view->y_labels; i++) chart->y_label[i] = view->y_label[i];
    chart->is_dark = chart->is_dark || view->is_dark;
    return PC_OK;
}

pc_code set_view_of_timeline(const figure_view *view, int microbatches, pc_timeline *timeline, pc_error *error) {
    pc_timeline_window *window = &timeline->window;
    pc_code code = refuse_view_of_charts(view, "a timeline", error);
    if (!code && view->time) code = name_option("--time", pc_view_time(view->time, 1e12, window, error), error);
    if (!code && view->stages)
        code = name_option("--stages", pc_view_stages(view->stages, timeline->devices, window, error), error);
    if (!code && view->microbatches)
        code =
            name_option("--microbatches", pc_view_microbatches(view->microbatches, microbatches, window, error), error);
    if (view->title) timeline->title = view->title;
    timeline->is_dark = view->is_dark;
    return code;
}
