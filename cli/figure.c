/* pipecast figure: draws the timeline of a run that kept its trace, or a chart of runs. */
#include "cli/cli.h"
#include "cli/figure_charts.h"
#include "cli/figure_plan.h"
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
    "       pipecast figure RESULTS.h5 front|scaling|map|sensitivity -o FILE.svg|.png|.pdf\n"
    "       pipecast figure RESULTS.h5 --x COLUMN --y COLUMN[,COLUMN]... -o FILE.svg|.png|.pdf\n"
    "       pipecast figure RESULTS.h5 --list\n"
    "\n"
    "Draws a chart of runs, or of one run the timeline or the load of its links. NAME is that of a chart that a "
    "scenario declares, or of a run "
    "that\n"
    "kept its trace, or its number in the table; SCENARIO/NAME where several scenarios have one of that name. "
    "Default:\n"
    "the first run that kept a trace. `links` draws how much of their bandwidth links have to carry over time, and of\n"
    "what, of a run with `engine: events` and `trace: true`. `memory-kinds` draws what memory is made of over time, of "
    "a\n"
    "run on a cluster with `trace: true`. `front`, `scaling`, `map` and `sensitivity` are of results of `pipecast "
    "plan`.\n"
    "\n"
    "  -o FILE             where to; the ending says the format\n"
    "  --list              print what the file has to draw\n"
    "  --run RUN           of links and memory-kinds: the run's name or number (default: the first that kept the "
    "trace)\n"
    "  --top K             of links: the K busiest of each sort (default 8, at most 64); of memory-kinds: the K "
    "fullest\n"
    "                      stages (default 4)\n"
    "\n"
    "Charts of your own; columns are those of `pipecast run --format csv`:\n"
    "  --x COLUMN          what goes along\n"
    "  --y COLUMN,...      what goes up, at most four: a row of panels each\n"
    "  --series COLUMN     a colour for each of its values, such as schedule\n"
    "  --panels COLUMN     a panel for each of its values, such as model\n"
    "  --style STYLE       points (default), lines, bars\n"
    "  --published         also what others published of y, hollow\n"
    "  --scenario NAME     the runs of that scenario alone\n"
    "  --title TEXT\n"
    "\n"
    "example: pipecast figure table5.h5 1.5B-m24.zb-h1 -o timeline.svg\n"
    "example: pipecast figure cluster.h5 links --run flows.1f1b --top 8 -o links.svg\n"
    "example: pipecast figure table5.h5 --x microbatches --y bubble_rate_span --series schedule --panels model\n"
    "             --style lines --published -o bubbles.svg\n";

enum { OUTPUT, LIST, RUN, TOP, X, Y, SERIES, PANELS, STYLE, PUBLISHED, SCENARIO, TITLE, HELP };
static const option_spec options[] = {
    {"output", 'o', "FILE"}, {"list", 0, NULL},      {"run", 0, "RUN"},       {"top", 0, "K"},
    {"x", 0, "COLUMN"},      {"y", 0, "COLUMN,..."}, {"series", 0, "COLUMN"}, {"panels", 0, "COLUMN"},
    {"style", 0, "STYLE"},   {"published", 0, NULL}, {"scenario", 0, "NAME"}, {"title", 0, "TEXT"},
    {"help", 'h', NULL},     {NULL, 0, NULL},
};

typedef struct request {
    const char *path, *name, *output, *run;
    bool lists;
    int64_t top; /* 0 if it is not given */
    chart_request chart;
} request;

/* --- timelines --- */

static pc_code draw(const pc_run_row *row, const pc_trace_record *record, const char *output, pc_error *error) {
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
    return pc_figure_timeline(&timeline, output, error);
}

static pc_code draw_timeline(const pc_results_reader *reader, const request *asked, const pc_nearest *charts,
                             pc_error *error) {
    pc_trace_record record = {0};
    const pc_run_row *row = NULL;
    pc_code code = find_traced_run(reader, asked->path, asked->name, charts, &row, &record, error);
    if (code) return code;
    code = draw(row, &record, asked->output, error);
    pc_trace_record_free(&record);
    return code;
}

/* --- links --- */

static pc_code draw_links(const pc_results_reader *reader, const request *asked, pc_error *error) {
    pc_trace_record record = {0};
    const pc_run_row *row = NULL;
    char title[3 * PC_LABEL_SIZE], subtitle[4 * PC_LABEL_SIZE];
    pc_code code = find_engine_run(reader, asked->path, asked->run, &row, &record, error);
    if (code) return code;
    snprintf(title, sizeof title, "Load of links: %s%s%s", row->scenario, row->scenario[0] ? "/" : "", row->name);
    snprintf(subtitle, sizeof subtitle, "%s%s%s: %d devices, %d microbatches", row->model, row->model[0] ? ", " : "",
             row->schedule, record.devices, record.microbatches);
    pc_links_figure figure = {.title = title,
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

static pc_code draw_kinds(const pc_results_reader *reader, const request *asked, pc_error *error) {
    pc_trace_record record = {0};
    const pc_run_row *row = NULL;
    char title[3 * PC_LABEL_SIZE], subtitle[4 * PC_LABEL_SIZE];
    pc_code code = find_traced_run(reader, asked->path, asked->run, NULL, &row, &record, error);
    if (code) return code;
    snprintf(title, sizeof title, "What memory is made of: %s%s%s", row->scenario, row->scenario[0] ? "/" : "",
             row->name);
    snprintf(subtitle, sizeof subtitle, "%s%s%s: %d devices, %d microbatches", row->model, row->model[0] ? ", " : "",
             row->schedule, record.devices, record.microbatches);
    pc_memory_kinds_figure figure = {.title = title,
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
static bool is_run(const pc_results_reader *reader, const request *asked) {
    const pc_run_row *row;
    pc_error error;
    return find_run(reader, asked->path, asked->name, NULL, &row, &error) == PC_OK;
}

static pc_code draw_plans(const pc_results_reader *reader, const request *asked, pc_error *error) {
    return draw_plan_picture(reader, asked->path, asked->name, asked->output, error);
}

/* What has a name of its own; NULL: the name is of something else. */
typedef pc_code draw_named(const pc_results_reader *reader, const request *asked, pc_error *error);
static draw_named *named_picture(const request *asked) {
    if (wants_kinds(asked)) return draw_kinds;
    if (wants_links(asked)) return draw_links;
    return is_plan_picture(asked->name) ? draw_plans : NULL;
}

static pc_code draw_picture(const pc_results_reader *reader, const request *asked, pc_error *error) {
    bool is_chart = false;
    pc_nearest charts = {.word = asked->name};
    if (chart_is_requested(&asked->chart))
        return draw_requested_chart(reader, asked->path, &asked->chart, asked->output, error);
    draw_named *draw_of_run = named_picture(asked);
    if (draw_of_run && (asked->run || asked->top)) return draw_of_run(reader, asked, error);
    pc_code code = PC_OK;
    if (asked->name)
        code = draw_declared_chart(reader, asked->path, asked->name, asked->output, &is_chart, &charts, error);
    if (code == PC_ERROR_INPUT && !is_chart && is_run(reader, asked)) code = PC_OK;
    if (!code && !is_chart && draw_of_run && !is_run(reader, asked)) return draw_of_run(reader, asked, error);
    return code || is_chart ? code : draw_timeline(reader, asked, &charts, error);
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
    if (!code) code = refuse_same_file(asked->path, asked->output, "the results file", error);
    return code ? code : pc_replacement_probe(asked->output, error);
}

static int answer_request(const request *asked) {
    pc_error error = {0};
    pc_results_reader *reader = NULL;
    pc_code code = asked->lists ? PC_OK : check_output(asked, &error);
    if (!code) code = pc_results_open(asked->path, &reader, &error);
    if (!code) code = asked->lists ? list_pictures(reader, asked->path, &error) : draw_picture(reader, asked, &error);
    pc_results_close(reader);
    if (code) return report(&error);
    return asked->lists ? finish_output(EXIT_DONE) : EXIT_DONE;
}

/* False, and the message printed, where the value is none. */
static bool take_option(int option, const char *value, request *asked) {
    const char **places[] = {[OUTPUT] = &asked->output,       [RUN] = &asked->run,
                             [X] = &asked->chart.x,           [Y] = &asked->chart.y,
                             [SERIES] = &asked->chart.series, [PANELS] = &asked->chart.panels,
                             [STYLE] = &asked->chart.style,   [SCENARIO] = &asked->chart.scenario,
                             [TITLE] = &asked->chart.title};
    if (option == TOP) return argument_integer("--top", value, 1, PC_LINKS_LIMIT, &asked->top);
    if (option == LIST)
        asked->lists = true;
    else if (option == PUBLISHED)
        asked->chart.published = true;
    else
        *places[option] = value;
    return true;
}

static int check_request(const request *asked) {
    bool has_chart = chart_is_requested(&asked->chart);
    if (!asked->path) return report_usage("figure: no results file; expected RESULTS.h5");
    if (asked->lists && (asked->output || asked->name || asked->run || asked->top || has_chart))
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
        if (option >= 0) continue;
        if (!asked.path)
            asked.path = x.value;
        else if (!asked.name)
            asked.name = x.value;
        else
            return report_usage("figure: '%s' is one too many; expected RESULTS.h5 [NAME]", x.value);
    }
    int status = check_request(&asked);
    return status == EXIT_DONE ? answer_request(&asked) : status;
}
