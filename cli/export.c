/* pipecast export: a run's trace for other programs, or the table of runs. */
#include "cli/cli.h"
#include "cli/find_run.h"

#include "engine/alloc.h"
#include "results/export.h"
#include "results/store/store.h"
#include "results/table.h"
#include "scenarios/units.h"
#include "storage/replace.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

static const char help[] =
    "usage: pipecast export RESULTS.h5 --run RUN --to chrome|csv|torch-csv [--table NAME] [-o FILE]\n"
    "       pipecast export RESULTS.h5 --run RUN --to chakra -o PREFIX [--message-size SIZE]\n"
    "       pipecast export RESULTS.h5 --to csv|json [--scenario NAME] [-o FILE]\n"
    "\n"
    "With --run, writes what one run did, which must have kept its trace (`trace: true` in the scenario): every pass,\n"
    "every transfer between stages, and the memory of every stage over time. Without, writes the table of all runs, "
    "as\n"
    "`pipecast run --format csv|json` does.\n"
    "Of a run with `engine: events` there is more: every link with its load over time and all that is sent over it,\n"
    "what each pass waited for its device, and all that each device holds.\n"
    "\n"
    "      --run RUN          its name, SCENARIO/NAME where several scenarios have one of that name, or its number\n"
    "      --to FORMAT        chrome: JSON that Perfetto (ui.perfetto.dev) and chrome://tracing open, a process a\n"
    "                         stage; csv: a line an event, or a line a run; torch-csv: the order of passes of every\n"
    "                         stage, as PyTorch's pipelining runtime and `--schedule FILE.csv` read it; json: the\n"
    "                         table of runs; chakra: execution traces of MLCommons Chakra, which ASTRA-sim runs,\n"
    "                         PREFIX.0.et and so on, one a stage\n"
    "      --table NAME       of a run as csv, one table: passes, transfers, levels (activation memory), kinds (all\n"
    "                         memory of a run on a cluster, by what it is for); and with\n"
    "                         `engine: events` links, loads, flows, queue, memory (all that is held), work\n"
    "                         (default: passes, transfers, levels and the building block in one)\n"
    "      --message-size S   of chakra, what a transfer between stages has, such as 32MiB, if the run does not say\n"
    "      --scenario NAME    the runs of this scenario alone\n"
    "  -o, --output FILE      where to (default: standard output); of chakra what the files' names begin with\n"
    "\n"
    "example: pipecast export timelines.h5 --run v-min --to chrome -o v-min.json\n"
    "example: pipecast export timelines.h5 --run v-min --to csv --table loads -o loads.csv\n"
    "example: pipecast export table5.h5 --to csv -o table5.csv\n";

/* In the order of pc_export_sort. */
static const char table_names[] = "passes|transfers|levels|kinds|links|loads|flows|queue|memory|work";

enum { RUN, TO, TABLE, MESSAGE_SIZE, SCENARIO, OUTPUT, HELP };
static const option_spec options[] = {{"run", 0, "RUN"},        {"to", 0, "FORMAT"},     {"table", 0, "NAME"},
                                      {"message-size", 0, "S"}, {"scenario", 0, "NAME"}, {"output", 'o', "FILE"},
                                      {"help", 'h', NULL},      {NULL, 0, NULL}};

typedef struct request {
    const char *path, *run, *to, *table, *message_size, *scenario, *output; /* NULL if not given */
    int64_t message_bytes;                                                  /* 0: not given */
    int stage;                                                              /* of chakra, whose file is written */
} request;

/* ---- what is written ---- */

static pc_code refuse_scenario(const request *r, const pc_results_reader *reader, const pc_run_row *row,
                               pc_error *error) {
    char hint[PC_NEAREST_TEXT];
    if (!row)
        return pc_error_set_file(error, PC_ERROR_INPUT, r->path, "has no runs; expected some of '%s'", r->scenario);
    return pc_error_set_file(error, PC_ERROR_INPUT, r->path,
                             "no runs of a scenario '%s'%s; expected one in the file, such as '%s'", r->scenario,
                             scenario_hint(reader, r->scenario, hint), row->scenario);
}

static pc_code write_rows(const request *r, const pc_results_reader *reader, FILE *stream, pc_error *error) {
    int64_t all = pc_results_run_count(reader), count = 0;
    pc_format format = PC_FORMAT_CSV;
    pc_run_row *rows = pc_alloc((size_t)all, sizeof *rows);
    if (!rows) return pc_error_no_memory(error);
    for (int64_t i = 0; i < all; i++) {
        const pc_run_row *row = pc_results_row(reader, i);
        if (!r->scenario || strcmp(row->scenario, r->scenario) == 0) rows[count++] = *row;
    }
    bool is_known = pc_format_parse(r->to, &format); /* checked with the options */
    pc_code code = PC_OK;
    if (r->scenario && count == 0)
        code = refuse_scenario(r, reader, all ? pc_results_row(reader, 0) : NULL, error);
    else if (is_known)
        code = pc_table_write(rows, count, format, stream, error);
    pc_free(rows);
    return code;
}

static void place_run(const request *r, pc_error *error) {
    pc_error_prefix(error, "run %s", r->run);
    pc_error_place(error, r->path, 0, "");
}

static pc_code write_run(const request *r, const pc_results_reader *reader, FILE *stream, pc_error *error) {
    pc_trace_record record = {0};
    const pc_run_row *row = NULL;
    pc_code code = find_traced_run(reader, r->path, r->run, NULL, &row, &record, error);
    int sort;
    if (code) return code;
    if (strcmp(r->to, "chakra") == 0)
        code = pc_export_chakra(row, &record, r->stage, r->message_bytes, stream, error);
    else if (strcmp(r->to, "chrome") == 0)
        code = pc_export_chrome(row, &record, stream, error);
    else if (strcmp(r->to, "torch-csv") == 0)
        code = pc_export_torch_csv(row, &record, stream, error);
    else if (r->table && argument_word("--table", "table", table_names, r->table, &sort))
        code = pc_export_table((pc_export_sort)sort, &record, stream, error);
    else
        code = pc_export_csv(row, &record, stream, error);
    if (code == PC_ERROR_INPUT) place_run(r, error);
    pc_trace_record_free(&record);
    return code;
}

static pc_code write_to(const request *r, const pc_results_reader *reader, FILE *stream, pc_error *error) {
    return r->run ? write_run(r, reader, stream, error) : write_rows(r, reader, stream, error);
}

/* ---- where to ---- */

static FILE *open_stream(const pc_replacement *replacement, pc_error *error) {
    int descriptor = dup(replacement->descriptor);
    FILE *stream = descriptor >= 0 ? fdopen(descriptor, "w") : NULL;
    if (stream) return stream;
    pc_error_set_file(error, PC_ERROR_IO, replacement->path, "cannot write: %s", strerror(errno));
    if (descriptor >= 0) close(descriptor);
    return NULL;
}

static pc_code write_output(const request *r, const pc_results_reader *reader, pc_error *error) {
    pc_code code = write_to(r, reader, stdout, error);
    if (code == PC_ERROR_IO) pc_error_place(error, "standard output", 0, "");
    return code;
}

/* Whole, or not at all. */
static pc_code write_file(const request *r, const pc_results_reader *reader, pc_error *error) {
    pc_replacement replacement;
    pc_code code = refuse_same_file(r->path, r->output, "the results file", error);
    if (!code) code = pc_replacement_begin(r->output, &replacement, error);
    if (code) return code;
    FILE *stream = open_stream(&replacement, error);
    code = stream ? write_to(r, reader, stream, error) : PC_ERROR_IO;
    if (stream && fclose(stream) != 0 && !code)
        code = pc_error_set(error, PC_ERROR_IO, "cannot write: %s", strerror(errno));
    if (!code) return pc_replacement_commit(&replacement, error);
    if (stream && code == PC_ERROR_IO) pc_error_place(error, r->output, 0, "");
    pc_replacement_discard(&replacement);
    return code;
}

/* A file a stage, each whole or not at all. */
static pc_code write_stages(const request *r, const pc_results_reader *reader, pc_error *error) {
    pc_trace_record record = {0};
    const pc_run_row *row = NULL;
    char name[4096];
    pc_code code = find_traced_run(reader, r->path, r->run, NULL, &row, &record, error);
    int stages = record.devices;
    pc_trace_record_free(&record);
    for (int d = 0; d < stages && !code; d++) {
        request of_stage = *r;
        of_stage.stage = d;
        of_stage.output = name;
        if (snprintf(name, sizeof name, "%s.%d.et", r->output, d) >= (int)sizeof name)
            return pc_error_set(error, PC_ERROR_INPUT, "-o: is too long; expected under %zu bytes", sizeof name);
        code = write_file(&of_stage, reader, error);
    }
    return code;
}

static int answer_request(const request *r) {
    pc_error error = {0};
    pc_results_reader *reader = NULL;
    pc_code code = pc_results_open(r->path, &reader, &error);
    bool is_chakra = r->to && strcmp(r->to, "chakra") == 0;
    if (!code && is_chakra) code = write_stages(r, reader, &error);
    if (!code && !is_chakra) code = r->output ? write_file(r, reader, &error) : write_output(r, reader, &error);
    pc_results_close(reader);
    return code ? report(&error) : finish_output(EXIT_DONE);
}

/* ---- arguments ---- */

static bool is_of_run(const char *to) {
    return strcmp(to, "chrome") == 0 || strcmp(to, "torch-csv") == 0 || strcmp(to, "chakra") == 0;
}

static bool take_message_size(request *r) {
    pc_error error = {0};
    if (!r->message_size || !pc_parse_size(r->message_size, &r->message_bytes, &error)) return true;
    pc_error_prefix(&error, "--message-size");
    return report(&error), false;
}

/* 0 if all is well, else the exit status, the message printed. */
static int check_request(const request *r) {
    int index;
    if (!r->path) return report_usage("export: no results file; expected RESULTS.h5");
    if (!r->to)
        return report_usage("export: no format; expected --to %s",
                            r->run ? "chrome, csv, torch-csv or chakra" : "csv or json");
    if (r->run && !argument_word("--to", "format for a run", "chrome|csv|torch-csv|chakra", r->to, &index))
        return EXIT_BAD_INPUT;
    if (!r->run && is_of_run(r->to)) return report_usage("--to: %s shows one run; expected --run RUN beside it", r->to);
    if (!r->run && !argument_word("--to", "format", "csv|json|chrome|torch-csv|chakra", r->to, &index))
        return EXIT_BAD_INPUT;
    if (r->table && (!r->run || strcmp(r->to, "csv") != 0))
        return report_usage("--table: one of a run's tables, as csv; expected --run RUN and --to csv beside it");
    if (r->table && !argument_word("--table", "table", table_names, r->table, &index)) return EXIT_BAD_INPUT;
    if (strcmp(r->to, "chakra") == 0 && !r->output)
        return report_usage("export: chakra is a file a stage; expected -o PREFIX");
    if (r->message_size && strcmp(r->to, "chakra") != 0)
        return report_usage("--message-size: of another format than chakra; expected --to chakra beside it");
    if (r->run && r->scenario)
        return report_usage("--scenario: stands beside --run; expected --run SCENARIO/NAME instead");
    return 0;
}

int command_export(int argc, char **argv) {
    request r = {0};
    const char **const values[] = {
        [RUN] = &r.run,           [TO] = &r.to,        [TABLE] = &r.table, [MESSAGE_SIZE] = &r.message_size,
        [SCENARIO] = &r.scenario, [OUTPUT] = &r.output};
    arguments x = {.argc = argc, .argv = argv, .next = 1, .options = options, .command = "export"};
    for (int option; (option = arguments_next(&x)) != ARGUMENT_END;) {
        if (option == ARGUMENT_ERROR) return EXIT_BAD_INPUT;
        if (option == HELP) {
            fputs(help, stdout);
            return finish_output(EXIT_DONE);
        }
        if (option >= 0)
            *values[option] = x.value;
        else if (!r.path)
            r.path = x.value;
        else
            return report_usage("export: '%s' is one too many; expected RESULTS.h5", x.value);
    }
    int status = check_request(&r);
    if (!status && !take_message_size(&r)) status = EXIT_BAD_INPUT;
    return status ? status : answer_request(&r);
}
