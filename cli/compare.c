/* pipecast compare: two results files beside each other. */
#include "cli/cli.h"

#include "results/compare.h"
#include "results/store/store.h"

#include <string.h>

static const char help[] =
    "usage: pipecast compare A.h5 B.h5 [--tolerance X] [--format table|csv|json] [--all] [--exit-code]\n"
    "\n"
    "Says in what two results files differ. Runs of one scenario and name belong together, whatever their order; "
    "every\n"
    "column but the number of the run is compared, and differences are relative to A.\n"
    "\n"
    "      --tolerance X      numbers that differ by at most this share of A's count as equal, such as 0.001 (default "
    "0:\n"
    "                         equal to the last bit); trace_hash, which any change of a time changes, is then left "
    "out\n"
    "      --format FORMAT    table, csv or json (default table); csv and json have every difference\n"
    "      --all              every difference in the table too, not just the first\n"
    "      --exit-code        exit with 1 where the two differ\n"
    "\n"
    "Exit status: 0 compared, whether they differ or not; 1 they differ, with --exit-code; 2 bad input; 3 a fault of "
    "the\n"
    "machine.\n"
    "\n"
    "example: pipecast compare before.h5 after.h5 --tolerance 1e-6\n";

enum { TOLERANCE, FORMAT, ALL, EXIT_CODE, HELP };
static const option_spec option_specs[] = {{"tolerance", 0, "X"},  {"format", 0, "FORMAT"}, {"all", 0, NULL},
                                           {"exit-code", 0, NULL}, {"help", 'h', NULL},     {NULL, 0, NULL}};

typedef struct request {
    const char *paths[2];
    int path_count;
    pc_compare_options options;
    bool has_exit_code;
} request;

static bool take_path(request *r, const char *path) {
    if (r->path_count < 2) {
        r->paths[r->path_count++] = path;
        return true;
    }
    report_usage("compare: '%s' is one too many; expected A.h5 B.h5", path);
    return false;
}

static bool take_option(request *r, int option, const char *value) {
    switch (option) {
    case ARGUMENT_OPERAND:
        return take_path(r, value);
    case TOLERANCE:
        return argument_number("--tolerance", value, &r->options.tolerance);
    case FORMAT:
        return argument_format("--format", value, &r->options.format);
    case ALL:
        return r->options.all = true;
    case EXIT_CODE:
        return r->has_exit_code = true;
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

static pc_code compare(const request *r, pc_results_reader *const readers[2], pc_compare_summary *summary,
                       pc_error *error) {
    pc_compare_options options = r->options;
    options.name_a = r->paths[0];
    options.name_b = r->paths[1];
    options.version_a = pc_results_version(readers[0]);
    options.version_b = pc_results_version(readers[1]);
    warn_of_versions(&options);
    pc_code code =
        pc_compare(pc_results_row(readers[0], 0), pc_results_run_count(readers[0]), pc_results_row(readers[1], 0),
                   pc_results_run_count(readers[1]), &options, stdout, summary, error);
    if (code == PC_ERROR_IO) pc_error_place(error, "standard output", 0, "");
    return code;
}

static int answer_request(const request *r) {
    pc_error error = {0};
    pc_results_reader *readers[2] = {NULL, NULL};
    pc_compare_summary sum = {0};
    pc_code code = pc_results_open(r->paths[0], &readers[0], &error);
    if (!code) code = pc_results_open(r->paths[1], &readers[1], &error);
    if (!code) code = compare(r, readers, &sum, &error);
    pc_results_close(readers[1]);
    pc_results_close(readers[0]);
    if (code) return report(&error);
    bool differ = sum.different > 0 || sum.only_a > 0 || sum.only_b > 0;
    return finish_output(r->has_exit_code && differ ? EXIT_DID_NOT_FIT : EXIT_DONE);
}

int command_compare(int argc, char **argv) {
    request r = {0};
    arguments x = {.argc = argc, .argv = argv, .next = 1, .options = option_specs, .command = "compare"};
    for (int option; (option = arguments_next(&x)) != ARGUMENT_END;) {
        if (option == HELP) {
            fputs(help, stdout);
            return finish_output(EXIT_DONE);
        }
        if (option == ARGUMENT_ERROR || !take_option(&r, option, x.value)) return EXIT_BAD_INPUT;
    }
    if (r.path_count < 2) return report_usage("compare: %d of two results files; expected A.h5 B.h5", r.path_count);
    return answer_request(&r);
}
