/* pipecast compare: two results files beside each other; or a forecast beside what was measured. */
#include "cli/cli.h"
#include "cli/compare_traces.h"
#include "cli/look.h"

#include "engine/alloc.h"

#include "results/compare.h"
#include "results/figures/figure.h"
#include "results/store/store.h"

#include <string.h>

static const char help[] =
    "usage: pipecast compare A.h5 B.h5 [--columns LIST] [--tolerance X] [--sort ORDER] [-o FILE]\n"
    "                        [--format table|csv|json] [--all] [--exit-code]\n"
    "       pipecast compare RESULTS.h5 TRACE.json... [--run RUN] [--iteration N] [-o FILE] [--format FORMAT]\n"
    "\n"
    "Says in what two results files differ. Runs of one scenario and name belong together, whatever their order; "
    "every\n"
    "column but the number of the run is compared, and differences are relative to A.\n"
    "\n"
    "      --columns LIST     only these columns, by their names in --format csv of `run`, such as iteration_s,mfu\n"
    "      --tolerance X      numbers that differ by at most this share of A's count as equal, such as 0.001 (default "
    "0:\n"
    "                         equal to the last bit); trace_hash, which any change of a time changes, is then left "
    "out\n"
    "      --sort ORDER       run: run by run; change: by the size of the change, the largest first, after values "
    "that\n"
    "                         only one has (default: change with --columns, else run)\n"
    "  -o, --figure FILE      draw the largest changes of numbers as bars: .svg, .png or .pdf\n"
    "      --format FORMAT    table, csv or json (default table); csv and json have every difference\n"
    "      --all              every difference in the table too, not just the first\n"
    "      --exit-code        exit with 1 where the two differ\n"
    "\n"
    "With traces of PyTorch's profiler, one a rank, lays the measured timeline over that of a simulated run, which "
    "must\n"
    "have kept its trace: where the time goes, in slower passes, slower transfers and gaps.\n"
    "\n"
    "      --run RUN          which run (default: the first that kept its trace)\n"
    "      --iteration N      which of those that were traced, from 1 (default: the one of median length)\n"
    "  -o, --figure FILE      draw both timelines, one above the other\n"
    "      --dark             with --figure, of either: light on a dark ground\n"
    "\n"
    "Exit status: 0 compared, whether they differ or not; 1 they differ, with --exit-code; 2 bad input; 3 a fault of "
    "the\n"
    "machine.\n"
    "\n"
    "example: pipecast compare before.h5 after.h5 --tolerance 1e-6\n"
    "example: pipecast compare before.h5 after.h5 --columns iteration_s,memory_gib_max -o changes.svg\n"
    "example: pipecast compare study.h5 rank0.json.gz rank1.json.gz --run study.zb-h1 -o beside.svg\n";

enum { COLUMNS, TOLERANCE, SORT, FORMAT, ALL, EXIT_CODE, RUN, ITERATION, FIGURE, DARK };
static const option_spec option_specs[] = {{"columns", 0, "LIST"},  {"tolerance", 0, "X"}, {"sort", 0, "ORDER"},
                                           {"format", 0, "FORMAT"}, {"all", 0, NULL},      {"exit-code", 0, NULL},
                                           {"run", 0, "RUN"},       {"iteration", 0, "N"}, {"figure", 'o', "FILE"},
                                           {"dark", 0, NULL},       {"help", 'h', NULL},   {NULL, 0, NULL}};

enum { NOT_SORTED = -1, BY_RUN, BY_CHANGE };

typedef struct request {
    const char **paths; /* owned */
    int path_count;
    look_request look; /* the columns */
    int order;         /* NOT_SORTED: not given */
    pc_compare_options options;
    bool has_exit_code;
    const char *run, *figure; /* NULL if not given */
    int64_t iteration;        /* 0 likewise */
    bool is_dark;             /* of the figure */
} request;

static bool take_option(void *asked, int option, const char *value) {
    request *r = asked;
    switch (option) {
    case ARGUMENT_OPERAND:
        r->paths[r->path_count++] = value;
        return true;
    case COLUMNS:
        return look_take_columns(&r->look, value, pc_table_column_name);
    case TOLERANCE:
        return argument_number("--tolerance", value, &r->options.tolerance);
    case SORT:
        return argument_word("--sort", "order", "run|change", value, &r->order);
    case FORMAT:
        return argument_format("--format", value, &r->options.format);
    case ALL:
        return r->options.all = true;
    case EXIT_CODE:
        return r->has_exit_code = true;
    case RUN:
        r->run = value;
        return true;
    case ITERATION:
        return argument_integer("--iteration", value, 1, INT32_MAX, &r->iteration);
    case FIGURE:
        r->figure = value;
        return true;
    case DARK:
        return r->is_dark = true;
    default:
        return false;
    }
}

/* The table says it itself; to programs that read the other formats it is no row. */
static void warn_of_versions(const pc_compare_options *options) {
    if (options->format != PC_FORMAT_TABLE && strcmp(options->version_a, options->version_b) != 0)
        report_usage("written by different versions of pipecast: a by %s, b by %s", options->version_a,
                     options->version_b);
}

static pc_compare_options options_of(const request *r, pc_results_reader *const readers[2]) {
    pc_compare_options options = r->options;
    options.name_a = r->paths[0];
    options.name_b = r->paths[1];
    options.version_a = pc_results_version(readers[0]);
    options.version_b = pc_results_version(readers[1]);
    options.columns = r->look.has_columns ? &r->look.columns : NULL;
    options.by_change = r->order == NOT_SORTED ? r->look.has_columns : r->order == BY_CHANGE;
    return options;
}

static pc_code compare(const request *r, pc_results_reader *const readers[2], pc_compare_summary *summary,
                       pc_error *error) {
    const pc_compare_options options = options_of(r, readers);
    const pc_run_row *a = pc_results_row(readers[0], 0), *b = pc_results_row(readers[1], 0);
    const int64_t a_count = pc_results_run_count(readers[0]), b_count = pc_results_run_count(readers[1]);
    warn_of_versions(&options);
    pc_code code = r->figure ? pc_compare_draw(a, a_count, b, b_count, &options, r->is_dark, r->figure, error) : PC_OK;
    if (code) return code;
    code = pc_compare(a, a_count, b, b_count, &options, stdout, summary, error);
    if (code == PC_ERROR_IO) pc_error_place(error, "standard output", 0, "");
    return code;
}

/* Before files are read. */
static pc_code check_figure(const request *r, pc_error *error) {
    pc_code code = r->figure ? pc_figure_check_path(r->figure, error) : PC_OK;
    for (int i = 0; i < 2 && r->figure && !code; i++)
        code = refuse_same_file(r->paths[i], r->figure, "a file to compare", error);
    return code;
}

static int answer_request(const request *r) {
    pc_error error = {0};
    pc_results_reader *readers[2] = {NULL, NULL};
    pc_compare_summary sum = {0};
    pc_code code = check_figure(r, &error);
    if (!code) code = pc_results_open(r->paths[0], &readers[0], &error);
    if (!code) code = pc_results_open(r->paths[1], &readers[1], &error);
    if (!code) code = compare(r, readers, &sum, &error);
    pc_results_close(readers[1]);
    pc_results_close(readers[0]);
    if (code) return report(&error);
    bool differ = sum.different > 0 || sum.only_a > 0 || sum.only_b > 0;
    return finish_output(r->has_exit_code && differ ? EXIT_DID_NOT_FIT : EXIT_DONE);
}

/* A trace by its ending; results have others. */
static bool is_trace(const char *path) {
    size_t length = strlen(path);
    return (length > 5 && strcmp(path + length - 5, ".json") == 0) ||
           (length > 3 && strcmp(path + length - 3, ".gz") == 0);
}

static int answer_traces(const request *r) {
    if (r->options.tolerance > 0 || r->options.all || r->has_exit_code || r->look.has_columns || r->order != NOT_SORTED)
        return report_usage("compare: --columns, --tolerance, --sort, --all and --exit-code are of two results files; "
                            "expected them without traces");
    const traces_request traces = {.results = r->paths[0],
                                   .run = r->run,
                                   .figure = r->figure,
                                   .traces = r->paths + 1,
                                   .trace_count = r->path_count - 1,
                                   .iteration = r->iteration,
                                   .is_dark = r->is_dark,
                                   .format = r->options.format};
    return compare_traces(&traces);
}

static int judge_request(const request *r) {
    if (r->is_dark && !r->figure)
        return report_usage("compare: --dark: nothing is drawn; expected it with --figure FILE");
    if (r->path_count >= 2 && is_trace(r->paths[1])) return answer_traces(r);
    if (r->path_count > 2)
        return report_usage("compare: '%s' is one too many; expected A.h5 B.h5, or RESULTS.h5 TRACE.json...",
                            r->paths[2]);
    if (r->path_count < 2) return report_usage("compare: %d of two results files; expected A.h5 B.h5", r->path_count);
    if (r->run || r->iteration)
        return report_usage("compare: --run and --iteration are of traces; expected RESULTS.h5 TRACE.json...");
    return answer_request(r);
}

int command_compare(int argc, char **argv) {
    request r = {.order = NOT_SORTED};
    arguments x = {.argc = argc, .argv = argv, .next = 1, .options = option_specs, .command = "compare"};
    r.paths = arguments_room(argc);
    if (!r.paths) return EXIT_MACHINE;
    int status = arguments_take(&x, help, take_option, &r);
    if (status == ARGUMENT_END) status = judge_request(&r);
    pc_free(r.paths);
    return status;
}
