/* pipecast figure: draws the timeline of a run that kept its trace, or a chart of runs. */
#include "cli/cli.h"
#include "cli/figure_charts.h"
#include "cli/figure_plan.h"
#include "cli/figure_sources.h"
#include "cli/figure_view.h"
#include "cli/find_run.h"

#include "engine/numbers.h"
#include "results/figures/figure.h"
#include "results/figures/links.h"
#include "results/figures/memory_kinds.h"
#include "results/store/store.h"
#include "storage/replace.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char help[] =
    "usage: pipecast figure RESULTS.h5 [NAME] -o FILE.svg|.png|.pdf\n"
    "       pipecast figure RESULTS.h5 links [--run RUN] [--top K] -o FILE.svg|.png|.pdf\n"
    "       pipecast figure RESULTS.h5 memory-kinds [--run RUN] [--top K] -o FILE.svg|.png|.pdf\n"
    "       pipecast figure RESULTS.h5... front|scaling -o FILE.svg|.png|.pdf\n"
    "       pipecast figure RESULTS.h5 map|sensitivity -o FILE.svg|.png|.pdf\n"
    "       pipecast figure RESULTS.h5... --x COLUMN --y COLUMN[,COLUMN]... -o FILE.svg|.png|.pdf\n"
    "       pipecast figure RESULTS.h5 --list\n"
    "\n"
    "Draws a chart of runs, or of one run the timeline or the load of its links. NAME is that of a chart that a\n"
    "scenario declares, or of a run that kept its trace, or its number in the table; SCENARIO/NAME where several\n"
    "scenarios have one of that name. Default: the first run that kept a trace. `links` draws how much of their\n"
    "bandwidth links have to carry over time, and of what, of a run with `engine: events` and `trace: true`.\n"
    "`memory-kinds` draws what memory is made of over time, of a run on a cluster with `trace: true`. `front`,\n"
    "`scaling`, `map` and `sensitivity` are of results of `pipecast plan`.\n"
    "\n"
    "  -o FILE             where to; the ending says the format\n"
    "  --list              print what the file has to draw\n"
    "  --title TEXT        what stands above\n"
    "  --dark              light on a dark ground\n"
    "  --run RUN           of links and memory-kinds: the run's name or number (default: the first that kept the\n"
    "                      trace)\n"
    "  --top K             of links: the K busiest of each sort (default 8, at most 64); of memory-kinds: the K\n"
    "                      fullest stages (default 4)\n"
    "\n"
    "Part of a timeline; an end of LOW:HIGH that is left out is that of the whole:\n"
    "  --time LOW:HIGH     in seconds, or with units: 200ms:500ms\n"
    "  --stages LOW:HIGH   these devices, from 0\n"
    "  --microbatches LOW:HIGH  the time of these, from 0; others are pale\n"
    "\n"
    "Several results files make one chart, a series or more each:\n"
    "  --label TEXT        of a file, in their order (default: their names)\n"
    "\n"
    "Charts of your own; columns are those of `pipecast run --format csv`:\n"
    "  --x COLUMN          what goes along\n"
    "  --y COLUMN,...      what goes up, at most four: a row of panels each\n"
    "  --series COLUMN,... a colour for each of its values, such as schedule, or of up to three columns together\n"
    "  --panels COLUMN,... a panel for each of its values, such as model; likewise\n"
    "  --style STYLE       points (default), lines, bars\n"
    "  --published         also what others published of y, hollow\n"
    "  --scenario NAME     the runs of that scenario alone\n"
    "\n"
    "Of these and of charts that a scenario declares:\n"
    "  --x-label TEXT      in place of the column's description\n"
    "  --y-label TEXT      likewise; for each column of --y in their order\n"
    "  --x-range LOW:HIGH  part of the axis, in its own numbers; an end that is left out is the chart's\n"
    "  --y-range LOW:HIGH,...  likewise; for each column of --y in their order\n"
    "  --log x|y|xy        logarithmic axes\n"
    "\n"
    "example: pipecast figure table5.h5 1.5B-m24.zb-h1 -o timeline.svg\n"
    "example: pipecast figure big.h5 --microbatches 40:47 --stages 0:3 --dark -o part.pdf\n"
    "example: pipecast figure cluster.h5 links --run flows.1f1b --top 8 -o links.svg\n"
    "example: pipecast figure before.h5 after.h5 --x microbatches --y iteration_s --series schedule --style lines\n"
    "             --log xy -o both.svg\n"
    "example: pipecast figure table5.h5 --x microbatches --y bubble_rate_span --series schedule --panels model\n"
    "             --style lines --published -o bubbles.svg\n";

enum {
    OUTPUT,
    LIST,
    RUN,
    TOP,
    X,
    Y,
    SERIES,
    PANELS,
    STYLE,
    PUBLISHED,
    SCENARIO,
    TITLE,
    LABEL,
    X_LABEL,
    Y_LABEL,
    X_RANGE,
    Y_RANGE,
    LOG,
    TIME,
    STAGES,
    MICROBATCHES,
    DARK,
    HELP
};
static const option_spec options[] = {
    {"output", 'o', "FILE"},
    {"list", 0, NULL},
    {"run", 0, "RUN"},
    {"top", 0, "K"},
    {"x", 0, "COLUMN"},
    {"y", 0, "COLUMN,..."},
    {"series", 0, "COLUMN,..."},
    {"panels", 0, "COLUMN,..."},
    {"style", 0, "STYLE"},
    {"published", 0, NULL},
    {"scenario", 0, "NAME"},
    {"title", 0, "TEXT"},
    {"label", 0, "TEXT"},
    {"x-label", 0, "TEXT"},
    {"y-label", 0, "TEXT"},
    {"x-range", 0, "LOW:HIGH"},
    {"y-range", 0, "LOW:HIGH,..."},
    {"log", 0, "x|y|xy"},
    {"time", 0, "LOW:HIGH"},
    {"stages", 0, "LOW:HIGH"},
    {"microbatches", 0, "LOW:HIGH"},
    {"dark", 0, NULL},
    {"help", 'h', NULL},
    {NULL, 0, NULL},
};

typedef struct request {
    figure_sources sources;
    const char *name, *output, *run;
    bool lists;
    int64_t top; /* 0 if it is not given */
    chart_request chart;
    figure_view view;
} request;

static const pc_results_reader *reader_of(const request *asked) {
    return asked->sources.reader[0];
}

/* What messages call the file. */
static const char *path_of(const request *asked) {
    return asked->sources.path[0];
}

/* --- timelines --- */

static pc_code draw(const pc_run_row *row, const pc_trace_record *record, const request *asked, pc_error *error) {
    char title[3 * PC_LABEL_SIZE], subtitle[160];
    snprintf(title, sizeof title, "%s%s%s: %d devices, %d microbatches", row->model, row->model[0] ? ", " : "",
             row->schedule, record->devices, record->microbatches);
    pc_write_message(subtitle, sizeof subtitle, "iteration %.4g s; bubble rate %.4f (span), %.4f (makespan)",
                     row->iteration_s, row->bubble_rate_span, row->bubble_rate_makespan);
    bool holds_all = record->memory && record->replay.engine.memory_count > 0; /* else it is activations alone */
    pc_timeline timeline = {.title = title,
                            .subtitle = subtitle,
                            .time_unit = "ms",
                            .time_unit_ps = 1e9,
                            .devices = record->devices,
                            .chunks = record->chunks,
                            .slices = pc_placement_slices(record->placement, record->chunks),
                            .trace = &record->replay.trace,
                            .engine = &record->replay.engine,
                            .memory_heading = holds_all ? "Memory: all that a device holds" : NULL,
                            .block = record->block.devices ? &record->block : NULL,
                            .memory = true,
                            .memory_unit_bytes = PC_BYTES_PER_GIB,
                            .memory_unit = "GiB"};
    pc_code code = set_view_of_timeline(&asked->view, record->microbatches, &timeline, error);
    if (code) return code;
    code = pc_figure_timeline(&timeline, asked->output, error);
    bool has_window = asked->view.time || asked->view.stages || asked->view.microbatches;
    if (code == PC_ERROR_INPUT && has_window) pc_error_place(error, path_of(asked), 0, "");
    return code;
}

static pc_code draw_timeline(const request *asked, const pc_nearest *charts, pc_error *error) {
    pc_trace_record record = {0};
    const pc_run_row *row = NULL;
    pc_code code = find_traced_run(reader_of(asked), path_of(asked), asked->name, charts, &row, &record, error);
    if (!code && asked->sources.count > 1) code = refuse_several(&asked->sources, "a timeline", error);
    if (!code) code = draw(row, &record, asked, error);
    pc_trace_record_free(&record);
    return code;
}

/* --- links --- */

/* What is neither a chart nor a timeline, and of one file. */
static pc_code check_view(const request *asked, const char *picture, pc_error *error) {
    if (asked->sources.count > 1) return refuse_several(&asked->sources, picture, error);
    pc_code code = refuse_view_of_charts(&asked->view, picture, error);
    return code ? code : refuse_view_of_timelines(&asked->view, picture, error);
}

static pc_code draw_links(const request *asked, pc_error *error) {
    pc_trace_record record = {0};
    const pc_run_row *row = NULL;
    char title[3 * PC_LABEL_SIZE], subtitle[4 * PC_LABEL_SIZE];
    pc_code code = check_view(asked, "a picture of links", error);
    if (!code) code = find_engine_run(reader_of(asked), path_of(asked), asked->run, &row, &record, error);
    if (code) return code;
    snprintf(title, sizeof title, "Load of links: %s%s%s", row->scenario, row->scenario[0] ? "/" : "", row->name);
    snprintf(subtitle, sizeof subtitle, "%s%s%s: %d devices, %d microbatches", row->model, row->model[0] ? ", " : "",
             row->schedule, record.devices, record.microbatches);
    pc_links_figure figure = {.title = asked->view.title ? asked->view.title : title,
                              .is_dark = asked->view.is_dark,
                              .subtitle = subtitle,
                              .time_unit = "ms",
                              .time_unit_ps = 1e9,
                              .end_ps = record.replay.makespan_ps,
                              .trace = &record.replay.engine,
                              .most = asked->top ? (int)asked->top : PC_LINKS_MOST};
    code = pc_figure_links(&figure, asked->output, error);
    pc_trace_record_free(&record);
    return code;
}

/* --- what memory is made of --- */

static pc_code draw_kinds(const request *asked, pc_error *error) {
    pc_trace_record record = {0};
    const pc_run_row *row = NULL;
    char title[3 * PC_LABEL_SIZE], subtitle[4 * PC_LABEL_SIZE];
    pc_code code = check_view(asked, "a picture of memory", error);
    if (!code) code = find_traced_run(reader_of(asked), path_of(asked), asked->run, NULL, &row, &record, error);
    if (code) return code;
    snprintf(title, sizeof title, "What memory is made of: %s%s%s", row->scenario, row->scenario[0] ? "/" : "",
             row->name);
    snprintf(subtitle, sizeof subtitle, "%s%s%s: %d devices, %d microbatches", row->model, row->model[0] ? ", " : "",
             row->schedule, record.devices, record.microbatches);
    pc_memory_kinds_figure figure = {.title = asked->view.title ? asked->view.title : title,
                                     .is_dark = asked->view.is_dark,
                                     .subtitle = subtitle,
                                     .record = &record,
                                     .most = asked->top ? (int)asked->top : PC_MEMORY_KINDS_MOST};
    code = pc_figure_memory_kinds(&figure, asked->output, error);
    pc_trace_record_free(&record);
    return code;
}

/* --- what is asked for --- */

static bool wants_kinds(const request *asked) {
    return asked->name && strcmp(asked->name, "memory-kinds") == 0;
}

static bool wants_links(const request *asked) {
    return asked->name && strcmp(asked->name, "links") == 0;
}

/* Charts that this pipecast cannot read, as a newer one may declare them, do not stand in a run's way. */
static bool is_run(const request *asked) {
    const pc_run_row *row;
    pc_error error;
    return find_run(reader_of(asked), path_of(asked), asked->name, NULL, &row, &error) == PC_OK;
}

static pc_code draw_plans(const request *asked, pc_error *error) {
    return draw_plan_picture(&asked->sources, asked->name, &asked->view, asked->output, error);
}

/* What has a name of its own; NULL: the name is of something else. */
typedef pc_code draw_named(const request *asked, pc_error *error);
static draw_named *named_picture(const request *asked) {
    if (wants_kinds(asked)) return draw_kinds;
    if (wants_links(asked)) return draw_links;
    return is_plan_picture(asked->name) ? draw_plans : NULL;
}

static pc_code draw_picture(const request *asked, pc_error *error) {
    bool is_chart = false;
    pc_nearest charts = {.word = asked->name};
    if (chart_is_requested(&asked->chart))
        return draw_requested_chart(&asked->sources, &asked->chart, &asked->view, asked->output, error);
    draw_named *draw_of_run = named_picture(asked);
    if (draw_of_run && (asked->run || asked->top)) return draw_of_run(asked, error);
    pc_code code = PC_OK;
    if (asked->name)
        code =
            draw_declared_chart(&asked->sources, asked->name, &asked->view, asked->output, &is_chart, &charts, error);
    if (code == PC_ERROR_INPUT && !is_chart && is_run(asked)) code = PC_OK;
    if (!code && !is_chart && draw_of_run && !is_run(asked)) return draw_of_run(asked, error);
    return code || is_chart ? code : draw_timeline(asked, &charts, error);
}

static void print_run(const char *what, const pc_run_row *row) {
    printf("%s  ", what);
    print_plain(stdout, row->scenario);
    putchar('/');
    print_plain(stdout, row->name);
    putchar('\n');
}

static pc_code list_pictures(const pc_results_reader *reader, const char *path, pc_error *error) {
    pc_code code = list_declared_charts(reader, path, stdout, error);
    list_plan_pictures(reader, stdout);
    for (int64_t i = 0; i < pc_results_run_count(reader); i++) { /* also behind charts that cannot be read */
        const pc_run_row *row = pc_results_row(reader, i);
        if (!pc_results_has_trace(reader, row->run)) continue;
        print_run("run  ", row);
        if (pc_results_has_engine_trace(reader, row->run)) print_run("links", row);
        if (pc_results_has_memory_kinds(reader, row->run)) print_run("kinds", row);
    }
    return code;
}

/* Before the work: what is wrong with it later would seem to be the results file's fault. */
static pc_code check_output(const request *asked, pc_error *error) {
    pc_code code = pc_figure_check_path(asked->output, error);
    for (int i = 0; i < asked->sources.count && !code; i++)
        code = refuse_same_file(asked->sources.path[i], asked->output, "the results file", error);
    return code ? code : pc_replacement_probe(asked->output, error);
}

static int answer_request(request *asked) {
    pc_error error = {0};
    pc_code code = asked->lists ? PC_OK : check_output(asked, &error);
    if (!code) code = figure_sources_open(&asked->sources, &error);
    if (!code && asked->lists)
        code = list_pictures(reader_of(asked), path_of(asked), &error);
    else if (!code)
        code = draw_picture(asked, &error);
    figure_sources_close(&asked->sources);
    if (code) return report(&error);
    return asked->lists ? finish_output(EXIT_DONE) : EXIT_DONE;
}

/* An option that may come several times; those beyond the last place are counted. */
static void take_next(const char *value, const char **places, int most, int *count) {
    if (*count < most) places[*count] = value;
    ++*count;
}

/* False, and the message printed, where the value is none. */
static bool take_option(int option, const char *value, request *asked) {
    figure_view *view = &asked->view;
    const char **places[] = {[OUTPUT] = &asked->output,
                             [RUN] = &asked->run,
                             [X] = &asked->chart.x,
                             [Y] = &asked->chart.y,
                             [SERIES] = &asked->chart.series,
                             [PANELS] = &asked->chart.panels,
                             [STYLE] = &asked->chart.style,
                             [SCENARIO] = &asked->chart.scenario,
                             [TITLE] = &view->title,
                             [X_LABEL] = &view->x_label,
                             [X_RANGE] = &view->x_range,
                             [Y_RANGE] = &view->y_range,
                             [LOG] = &view->log,
                             [TIME] = &view->time,
                             [STAGES] = &view->stages,
                             [MICROBATCHES] = &view->microbatches};
    if (option == TOP) return argument_integer("--top", value, 1, PC_LINKS_LIMIT, &asked->top);
    if (option == LIST)
        asked->lists = true;
    else if (option == PUBLISHED)
        asked->chart.published = true;
    else if (option == DARK)
        view->is_dark = true;
    else if (option == LABEL)
        take_next(value, asked->sources.given_label, SOURCES_MAX, &asked->sources.labels);
    else if (option == Y_LABEL)
        take_next(value, view->y_label, PC_CHART_Y_MAX, &view->y_labels);
    else
        *places[option] = value;
    return true;
}

/* Results files, and behind them at most one name. False, and the message printed, where it is neither. */
static bool take_operand(const char *word, request *asked) {
    bool is_file = asked->sources.count == 0 || (is_results_path(word) && !asked->name);
    if (is_file && asked->sources.count == SOURCES_MAX)
        return report_usage("figure: '%s' is one too many; expected at most %d results files", word, SOURCES_MAX),
               false;
    if (is_file)
        asked->sources.path[asked->sources.count++] = word;
    else if (!asked->name)
        asked->name = word;
    else
        return report_usage("figure: '%s' is one too many; expected RESULTS.h5... [NAME]", word), false;
    return true;
}

static bool has_view(const figure_view *view) {
    return view->title || view->x_label || view->y_labels || view->x_range || view->y_range || view->log ||
           view->time || view->stages || view->microbatches || view->is_dark;
}

static int check_request(const request *asked) {
    bool has_chart = chart_is_requested(&asked->chart);
    if (!asked->sources.count) return report_usage("figure: no results file; expected RESULTS.h5");
    if (asked->lists && (asked->output || asked->name || asked->run || asked->top || has_chart ||
                         has_view(&asked->view) || asked->sources.labels || asked->sources.count > 1))
        return report_usage("figure: --list stands alone; expected nothing but RESULTS.h5 beside it");
    if (!asked->lists && !asked->output) return report_usage("figure: no output; expected -o FILE.svg, .png or .pdf");
    if ((asked->run || asked->top) && !wants_links(asked) && !wants_kinds(asked))
        return report_usage("figure: %s is of links and memory-kinds; expected RESULTS.h5 links or memory-kinds beside "
                            "it",
                            asked->run ? "--run" : "--top");
    if (asked->name && has_chart)
        return report_usage("figure: '%s' and the options of a chart; expected one or the other", asked->name);
    return EXIT_DONE;
}

int command_figure(int argc, char **argv) {
    request asked = {0};
    arguments x = {.argc = argc, .argv = argv, .next = 1, .options = options, .command = "figure"};
    for (int option; (option = arguments_next(&x)) != ARGUMENT_END;) {
        if (option == ARGUMENT_ERROR) return EXIT_BAD_INPUT;
        if (option == HELP) {
            fputs(help, stdout);
            return finish_output(EXIT_DONE);
        }
        if (option >= 0 && !take_option(option, x.value, &asked)) return EXIT_BAD_INPUT;
        if (option < 0 && !take_operand(x.value, &asked)) return EXIT_BAD_INPUT;
    }
    int status = check_request(&asked);
    return status == EXIT_DONE ? answer_request(&asked) : status;
}
