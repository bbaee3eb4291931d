/* pipecast figure: draws the timeline of a run that kept its trace. */
#include "cli/cli.h"

#include "results/figure.h"
#include "results/store.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char help[] =
    "usage: pipecast figure RESULTS.h5 [NAME] -o FILE.svg|.png|.pdf\n"
    "\n"
    "Draws the timeline of the run NAME (its name or its number in the table; default: the first that kept a trace).\n"
    "\n"
    "  -o FILE    where to; the ending says the format\n"
    "\n"
    "example: pipecast figure table5.h5 1.5B-m24.zb-h1 -o timeline.svg\n";

#define BYTES_PER_GIB 0x1p30

enum { OUTPUT, HELP };
static const option_spec options[] = {{"output", 'o', "FILE"}, {"help", 'h', NULL}, {NULL, 0, NULL}};

static bool has_name(const pc_run_row *row, const char *name) {
    char number[24];
    snprintf(number, sizeof number, "%" PRId64, row->run);
    return strcmp(row->name, name) == 0 || strcmp(number, name) == 0;
}

/* The trace of the run that is asked for, and its row. */
static pc_code find_trace(const pc_results_reader *reader, const char *path, const char *name, const pc_run_row **row,
                          pc_trace_record *record, pc_error *error) {
    for (int64_t i = 0; i < pc_results_run_count(reader); i++) {
        *row = pc_results_row(reader, i);
        if (name && !has_name(*row, name)) continue;
        pc_code code = pc_results_read_trace(reader, (*row)->run, record, error);
        if (!code || name) return code;
    }
    if (name)
        return pc_error_set(error, PC_ERROR_INPUT, "%s: no run '%s'; expected the name or number of one", path, name);
    return pc_error_set(error, PC_ERROR_INPUT, "%s: no run kept a trace; expected a scenario with `trace: true`", path);
}

static pc_code draw(const pc_run_row *row, const pc_trace_record *record, const char *output, pc_error *error) {
    char title[3 * PC_LABEL_SIZE], subtitle[160];
    snprintf(title, sizeof title, "%s%s%s: %d devices, %d microbatches", row->model, row->model[0] ? ", " : "",
             row->schedule, record->devices, record->microbatches);
    snprintf(subtitle, sizeof subtitle, "iteration %.4g s; bubble rate %.4f (span), %.4f (makespan)", row->iteration_s,
             row->bubble_rate_span, row->bubble_rate_makespan);
    pc_timeline timeline = {.title = title,
                            .subtitle = subtitle,
                            .time_unit = "ms",
                            .time_unit_ps = 1e9,
                            .devices = record->devices,
                            .chunks = record->chunks,
                            .trace = &record->replay.trace,
                            .memory = true,
                            .memory_unit_bytes = BYTES_PER_GIB,
                            .memory_unit = "GiB"};
    return pc_figure_timeline(&timeline, output, error);
}

static int answer_request(const char *path, const char *name, const char *output) {
    pc_error error = {0};
    pc_results_reader *reader = NULL;
    pc_trace_record record = {0};
    const pc_run_row *row = NULL;
    pc_code code = pc_figure_check_path(output, &error);
    if (!code) code = pc_results_open(path, &reader, &error);
    if (!code) code = find_trace(reader, path, name, &row, &record, &error);
    if (!code) {
        code = draw(row, &record, output, &error);
        pc_trace_record_free(&record);
    }
    pc_results_close(reader);
    return code ? report(&error) : EXIT_DONE;
}

int command_figure(int argc, char **argv) {
    const char *operands[2] = {NULL, NULL}, *output = NULL;
    int operand_count = 0;
    arguments x = {.argc = argc, .argv = argv, .next = 1, .options = options, .command = "figure"};
    for (int option; (option = arguments_next(&x)) != ARGUMENT_END;) {
        if (option == ARGUMENT_ERROR) return EXIT_BAD_INPUT;
        if (option == HELP) {
            fputs(help, stdout);
            return finish_output(EXIT_DONE);
        }
        if (option == OUTPUT)
            output = x.value;
        else if (operand_count < 2)
            operands[operand_count++] = x.value;
        else
            return report_usage("figure: '%s' is one too many; expected RESULTS.h5 [NAME]", x.value);
    }
    if (operand_count == 0) return report_usage("figure: no results file; expected RESULTS.h5");
    if (!output) return report_usage("figure: no output; expected -o FILE.svg, .png or .pdf");
    return answer_request(operands[0], operands[1], output);
}
