/* pipecast run: all runs of some scenarios, into a table and a results file. */
#include "cli/batch.h"
#include "cli/cli.h"
#include "cli/run_flags.h"
#include "cli/run_profiles.h"
#include "cli/scenario_charts.h"

#include "engine/alloc.h"
#include "results/store/store.h"
#include "results/table.h"
#include "scenarios/scenario.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char help_start[] =
    "usage: pipecast run [SCENARIO.yaml...] [OPTIONS]\n"
    "\n"
    "Runs every case of the scenarios times every value of their sweeps, and prints a row for each. Without a\n"
    "scenario, the options that stand for keys of a setting say what to run.\n"
    "\n"
    "  -o RESULTS.h5              also keep rows, scenarios and traces in an HDF5 file\n"
    "      --format FORMAT        table, csv or json (default table)\n"
    "      --jobs N               threads (default: one a core); results do not depend on it\n"
    "      --shard I/N            only the I-th of N equal shares of the runs, I from 1\n"
    "      --set KEY=VALUE        override a key of every scenario, such as setting.microbatches=64; may be repeated\n"
    "  -q, --quiet                no progress bar, no warnings\n"
    "\n"
    "Keys of a setting, each short for --set setting.KEY=VALUE; several values, where ... stands, are swept:\n"
    "\n";

static const char help_end[] =
    "\n"
    "Exit status: 0 all runs done; 1 some did not fit; 2 bad input; 3 a fault of the machine.\n"
    "\n"
    "example: pipecast run scenarios/paper/zero_bubble_table5.yaml -o table5.h5\n"
    "example: pipecast run --model llama3-70b --machine dgx-h100 --gpus 512 --tp 8 --pp 4 --schedule v-half\n"
    "example: pipecast run --model gpt3-175b --machine dgx-a100 --gpus 1024 --tp 4,8 --pp 8,16 --schedule 1f1b,zb-h1\n";

enum { SETS_MAX = 256, JOBS_MAX = 1024, SHARDS_MAX = 1 << 20 };

typedef struct request {
    const char **paths;
    int path_count;
    const char *sets[SETS_MAX];
    int set_count;
    run_flag_use flags[SETS_MAX]; /* what some of `sets` come from */
    int flag_count;
    const char *output;
    pc_format format;
    int64_t jobs;
    int64_t shard, shard_count; /* shard from 1 */
    bool is_quiet;
} request;

/* All that is going on. */
typedef struct session {
    const request *request;
    pc_scenario **scenarios;
    int64_t *first_run;        /* a number a scenario, and one more: the runs before it */
    pc_results_writer *writer; /* NULL where no file is wanted */
    run_profiles profiles;
    pc_run_row *rows;
    int64_t row_count;
    progress bar;
} session;

/* ---- arguments ---- */

enum { OUTPUT, FORMAT, JOBS, SHARD, SET, QUIET, HELP, FLAGS, FLAGS_MAX = 32 };
static const option_spec own_options[FLAGS] = {
    {"output", 'o', "RESULTS.h5"}, {"format", 0, "FORMAT"}, {"jobs", 'j', "N"},  {"shard", 0, "I/N"},
    {"set", 0, "KEY=VALUE"},       {"quiet", 'q', NULL},    {"help", 'h', NULL},
};

/* The options of our own, and behind them those that stand for keys; the last has no name. */
static void list_options(option_spec options[FLAGS + FLAGS_MAX + 1]) {
    int count = FLAGS;
    memcpy(options, own_options, sizeof own_options);
    for (const run_flag *flag = run_flags; flag->name && count < FLAGS + FLAGS_MAX; flag++)
        options[count++] = (option_spec){flag->name, 0, flag->value};
    options[count] = (option_spec){NULL, 0, NULL};
}

static void print_help(void) {
    fputs(help_start, stdout);
    for (const run_flag *flag = run_flags; flag->name; flag++) {
        char option[64];
        snprintf(option, sizeof option, "%s %s%s", flag->name, flag->value, flag->sweep ? ",..." : "");
        printf("      --%-26s %s\n", option, flag->help);
    }
    fputs(help_end, stdout);
}

static bool parse_shard(const char *text, request *r) {
    char copy[64];
    const char *slash = strchr(text, '/');
    if (!slash || strlen(text) >= sizeof copy) {
        report_usage("--shard: '%s'; expected I/N such as 1/4", text);
        return false;
    }
    strcpy(copy, text);
    copy[slash - text] = '\0';
    return argument_integer("--shard", slash + 1, 1, SHARDS_MAX, &r->shard_count) &&
           argument_integer("--shard", copy, 1, r->shard_count, &r->shard);
}

static bool take_set(request *r, const char *text) {
    if (r->set_count == SETS_MAX) {
        report_usage("--set: more than %d; expected fewer", SETS_MAX);
        return false;
    }
    r->sets[r->set_count++] = text;
    return true;
}

static bool take_flag(request *r, const run_flag *flag, const char *value) {
    const char *fault = run_flag_fault(flag, value);
    if (fault) {
        report_usage("--%s: '%s': %s", flag->name, value, fault);
        return false;
    }
    for (int i = 0; i < r->flag_count; i++) {
        if (!run_flags_rival(flag, r->flags[i].flag)) continue;
        report_usage("--%s: stands beside --%s; expected one of the two", flag->name, r->flags[i].flag->name);
        return false;
    }
    char *set = r->flag_count < SETS_MAX ? run_flag_set(flag, value) : NULL;
    if (!set) {
        report_usage("--%s: too many options, or out of memory", flag->name);
        return false;
    }
    r->flags[r->flag_count++] = (run_flag_use){flag, set};
    return take_set(r, set);
}

static bool take_format(request *r, const char *text) {
    if (pc_format_parse(text, &r->format)) return true;
    report_usage("--format: unknown format '%s'; expected table, csv or json", text);
    return false;
}

static bool take_option(request *r, int option, const char *value) {
    switch (option) {
    case ARGUMENT_OPERAND:
        r->paths[r->path_count++] = value;
        return true;
    case OUTPUT:
        r->output = value;
        return true;
    case FORMAT:
        return take_format(r, value);
    case JOBS:
        return argument_integer("--jobs", value, 1, JOBS_MAX, &r->jobs);
    case SHARD:
        return parse_shard(value, r);
    case SET:
        return take_set(r, value);
    case QUIET:
        r->is_quiet = true;
        return true;
    default:
        return option >= FLAGS && take_flag(r, &run_flags[option - FLAGS], value);
    }
}

/* ---- the runs ---- */

static pc_code load_scenarios(session *s, pc_error *error) {
    const request *r = s->request;
    for (int i = 0; i < r->path_count; i++) {
        pc_code code = pc_scenario_load(r->paths[i], r->sets, r->set_count, &s->scenarios[i], error);
        if (code) return run_flags_explain(r->flags, r->flag_count, error), code;
        if (r->paths[i]) code = scenario_charts_check(r->paths[i], s->scenarios[i], error);
        if (code) return code;
        s->first_run[i + 1] = s->first_run[i] + pc_scenario_run_count(s->scenarios[i]);
    }
    return PC_OK;
}

static pc_code refuse_own_scenario(const request *r, pc_error *error) {
    pc_code code = PC_OK;
    for (int i = 0; i < r->path_count && !code; i++)
        if (r->paths[i]) code = refuse_same_file(r->paths[i], r->output, "the scenario", error);
    return code;
}

static pc_code open_results(session *s, pc_error *error) {
    if (!s->request->output) return PC_OK;
    pc_code code = refuse_own_scenario(s->request, error);
    if (!code) code = pc_results_create(s->request->output, &s->writer, error);
    for (int i = 0; i < s->request->path_count && !code; i++) {
        size_t size;
        const char *text = pc_scenario_text(s->scenarios[i], &size);
        code = pc_results_add_scenario(s->writer, pc_scenario_name(s->scenarios[i]), text, size, error);
    }
    return code;
}

/* Shard I of N has the runs I-1, I-1+N, ...: neighbours, which cost about the same, go to different shards. */
static int64_t run_of(const request *r, int64_t index) {
    return r->shard - 1 + index * r->shard_count;
}

static int64_t share_of(const request *r, int64_t total) {
    return total < r->shard ? 0 : (total - r->shard) / r->shard_count + 1;
}

static int scenario_of(const session *s, int64_t run) {
    int i = 0;
    while (run >= s->first_run[i + 1]) i++;
    return i;
}

/* Before the first run starts: a profile that cannot be used is found now. */
static pc_code open_profiles(session *s, pc_error *error) {
    int64_t count = share_of(s->request, s->first_run[s->request->path_count]);
    pc_code code = PC_OK;
    for (int64_t index = 0; index < count && !code; index++) {
        int64_t run = run_of(s->request, index);
        int i = scenario_of(s, run);
        pc_run_spec spec;
        if (!pc_scenario_has_profiles(s->scenarios[i])) continue;
        code = pc_scenario_run_spec(s->scenarios[i], run - s->first_run[i], &spec, error);
        if (code) break;
        code = run_profiles_open(&s->profiles, &spec, error);
        pc_run_spec_free(&spec);
    }
    return code;
}

static pc_code make_spec(void *context, int64_t index, pc_run_spec *spec, pc_error *error) {
    const session *s = context;
    int64_t run = run_of(s->request, index);
    int i = scenario_of(s, run);
    pc_code code = pc_scenario_run_spec(s->scenarios[i], run - s->first_run[i], spec, error);
    if (code) return code;
    run_profiles_use(&s->profiles, spec);
    spec->run = run + 1;
    spec->trace = spec->trace && s->writer;
    return PC_OK;
}

static pc_code take_result(void *context, const pc_run_spec *spec, const pc_run_row *row, const pc_run_detail *detail,
                           pc_error *error) {
    session *s = context;
    s->rows[s->row_count++] = *row;
    progress_step(&s->bar);
    if (!s->writer) return PC_OK;
    pc_schedule shape = {.devices = spec->devices,
                         .microbatches = spec->microbatches,
                         .chunks = spec->chunks,
                         .placement = spec->generator->placement};
    snprintf(shape.name, sizeof shape.name, "%s", spec->generator->name);
    return pc_results_add_run(s->writer, row, &shape, spec->trace ? detail : NULL, error);
}

static int worst_status(const session *s) {
    for (int64_t i = 0; i < s->row_count; i++)
        if (s->rows[i].status != PC_RUN_OK) return EXIT_DID_NOT_FIT;
    return EXIT_DONE;
}

static pc_code run_all(session *s, pc_error *error) {
    const request *r = s->request;
    int64_t count = share_of(r, s->first_run[r->path_count]);
    s->rows = pc_alloc((size_t)count, sizeof *s->rows);
    if (!s->rows) return pc_error_no_memory(error);
    progress_start(&s->bar, count, r->is_quiet);
    pc_code code = batch_run(count, (int)r->jobs, make_spec, take_result, s, error);
    progress_end(&s->bar);
    return code;
}

static pc_code commit_results(session *s, pc_error *error) {
    pc_results_writer *writer = s->writer;
    s->writer = NULL;
    return writer ? pc_results_commit(writer, error) : PC_OK;
}

static void close_session(session *s) {
    pc_results_discard(s->writer);
    run_profiles_close(&s->profiles);
    for (int i = 0; s->scenarios && i < s->request->path_count; i++) pc_scenario_free(s->scenarios[i]);
    pc_free(s->scenarios);
    pc_free(s->first_run);
    pc_free(s->rows);
}

static int answer_request(const request *r) {
    pc_error error = {0};
    session s = {.request = r,
                 .scenarios = pc_alloc((size_t)r->path_count, sizeof *s.scenarios),
                 .first_run = pc_alloc((size_t)r->path_count + 1, sizeof *s.first_run)};
    pc_code code = s.scenarios && s.first_run ? load_scenarios(&s, &error) : pc_error_no_memory(&error);
    if (!code) code = open_profiles(&s, &error);
    if (!code) code = open_results(&s, &error);
    if (!code) code = run_all(&s, &error);
    if (!code) code = commit_results(&s, &error);
    if (!code) {
        code = pc_table_write(s.rows, s.row_count, r->format, stdout, &error);
        if (code == PC_ERROR_IO) pc_error_prefix(&error, "standard output");
    }
    int status = code ? report(&error) : finish_output(worst_status(&s));
    if (!code && !r->is_quiet) run_profiles_warn(&s.profiles);
    close_session(&s);
    return status;
}

static int64_t core_count(void) {
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    return cores < 1 ? 1 : cores > JOBS_MAX ? JOBS_MAX : cores;
}

static int parse_and_answer(request *r, int argc, char **argv) {
    option_spec options[FLAGS + FLAGS_MAX + 1];
    list_options(options);
    arguments x = {.argc = argc, .argv = argv, .next = 1, .options = options, .command = "run"};
    for (int option; (option = arguments_next(&x)) != ARGUMENT_END;) {
        if (option == HELP) {
            print_help();
            return finish_output(EXIT_DONE);
        }
        if (option == ARGUMENT_ERROR || !take_option(r, option, x.value)) return EXIT_BAD_INPUT;
    }
    if (r->path_count == 0 && r->flag_count == 0)
        return report_usage("run: no scenario; expected SCENARIO.yaml, or options such as --model and --machine");
    if (r->path_count == 0) r->paths[r->path_count++] = NULL; /* options say everything */
    return answer_request(r);
}

int command_run(int argc, char **argv) {
    request r = {.jobs = core_count(), .shard = 1, .shard_count = 1};
    r.paths = pc_alloc((size_t)argc + 1, sizeof *r.paths);
    if (!r.paths) {
        report_usage("out of memory");
        return EXIT_MACHINE;
    }
    int status = parse_and_answer(&r, argc, argv);
    for (int i = 0; i < r.flag_count; i++) free(r.flags[i].set);
    pc_free(r.paths);
    return status;
}
