/* pipecast run: all runs of some scenarios, into a table and a results file. */
#include "cli/cli.h"
#include "cli/doubt.h"
#include "cli/interrupt.h"
#include "cli/look.h"
#include "cli/run_flags.h"
#include "cli/run_sets.h"
#include "cli/utilisation.h"

#include "engine/alloc.h"
#include "results/figures/scenario_charts.h"
#include "results/table.h"
#include "scenarios/import/import.h"
#include "sweep/sweep.h"

#include <assert.h>
#include <inttypes.h>
#include <limits.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

static const char help_start[] =
    "usage: pipecast run [SCENARIO.yaml...] [OPTIONS]\n"
    "\n"
    "Runs every case of the scenarios times every value of their sweeps, and prints a row for each. Without a\n"
    "scenario, the options that stand for keys of a setting say what to run. Processes that mpirun or srun started\n"
    "share the runs.\n"
    "\n"
    "      --megatron FILE        arguments of Megatron-LM as a scenario: a launch script, a log's block of arguments, "
    "or\n"
    "                             YAML; options that stand for keys of a setting win over them\n"
    "  -o RESULTS.h5              also keep rows, scenarios and traces in an HDF5 file; what is there already, from a\n"
    "                             run that was ended or had fewer values, is not simulated again\n"
    "      --format FORMAT        table, csv or json (default table)\n"
    "      --columns NAME,...     these columns alone, by their names in csv, in this order; all: every column\n"
    "      --color WHEN           auto (default), always or never; auto: on a terminal, unless NO_COLOR is set\n"
    "      --jobs N               threads (default: one a core); results do not depend on it\n"
    "      --shard I/N            only the I-th of N equal shares of the runs, I from 1\n"
    "      --fresh                simulate all runs again, whatever is there\n"
    "      --set KEY=VALUE        override a key of every scenario, such as setting.microbatches=64; may be repeated\n"
    "      --allow-outside        let a scenario name files outside of its folder: ../gpu.yaml, /data/h100.h5, links\n"
    "  -q, --quiet                no progress bar, no warnings\n"
    "\n"
    "Keys of a setting, each short for --set setting.KEY=VALUE; several values (4,8 or 1..8), where ... stands, are\n"
    "swept:\n"
    "\n";

static const char help_end[] =
    "\n"
    "Exit status: 0 all runs done; 1 some did not fit; 2 bad input; 3 a fault of the machine.\n"
    "\n"
    "example: pipecast run scenarios/paper/zero_bubble_table5.yaml -o table5.h5\n"
    "example: pipecast run --model llama3-70b --machine dgx-h100 --gpus 512 --tp 8 --pp 4 --schedule v-half\n"
    "example: pipecast run --model gpt3-175b --machine dgx-a100 --gpus 1024 --tp 4,8 --pp 8,16 --schedule 1f1b,zb-h1\n";

enum { JOBS_MAX = 1024, SHARDS_MAX = 1 << 20 };

/* What the user asked for. */
typedef struct run_request {
    const char **paths; /* NULL: no file, the sets say everything */
    int path_count;
    run_sets sets;
    const char *megatron; /* of the paths the one that has arguments of Megatron-LM; NULL: none */
    const char *output;   /* NULL: no results file */
    pc_format format;
    look_request look;
    int64_t jobs;               /* 0: the user does not say */
    int64_t shard, shard_count; /* shard from 1 */
    bool is_quiet;
    bool is_fresh;       /* all runs again, whatever is there */
    bool allows_outside; /* of the scenarios' folders, what they name */
} run_request;

/* All that is going on. */
typedef struct session {
    const run_request *request;
    pc_team *team;
    pc_scenario **scenarios;
    pc_import_text imported;
    pc_sweep *sweep;
    interrupt interrupt;
    progress bar;
    char journal[2 * PATH_MAX]; /* that keeps what is done; empty: nothing does */
    int64_t to_do;
    _Atomic int64_t done;
    bool any_unfit;
    utilisation used;
} session;

/* ---- the scenarios ---- */

static pc_code load_scenario(session *s, const char *path, pc_scenario **scenario, pc_error *error) {
    const run_request *r = s->request;
    pc_scenario_options options = {
        .sets = r->sets.list, .set_count = r->sets.count, .allows_outside = r->allows_outside};
    bool is_foreign = path && path == r->megatron;
    pc_code code = is_foreign ? pc_import_file(PC_IMPORT_MEGATRON, path, &s->imported, error) : PC_OK;
    if (is_foreign) options.text = s->imported.scenario.data;
    if (!code) code = pc_scenario_load_with(path, &options, scenario, error);
    if (code) run_flags_explain(r->sets.flags, r->sets.flag_count, error);
    if (!code && path) code = pc_scenario_charts_check(path, *scenario, error);
    if (!code && path && r->output) code = refuse_same_file(path, r->output, "the scenario", error);
    return code;
}

static pc_code load_scenarios(session *s, pc_error *error) {
    const run_request *r = s->request;
    s->scenarios = pc_alloc((size_t)r->path_count, sizeof(pc_scenario *));
    if (!s->scenarios) return pc_error_no_memory(error);
    for (int i = 0; i < r->path_count; i++) {
        pc_code code = load_scenario(s, r->paths[i], &s->scenarios[i], error);
        if (code) return code;
    }
    if (r->output || pc_team_size(s->team) <= 1) return PC_OK;
    return pc_error_set(error, PC_ERROR_INPUT, "-o: expected with several ranks, which share results by files");
}

/* ---- while it runs ---- */

static bool is_first(const session *s) {
    return pc_team_rank(s->team) == 0;
}

/* Where somebody looks on, and not all is to be done. */
static void say_agenda(const session *s, const pc_sweep_progress *at) {
    int64_t repeats = at->runs - at->to_do - at->done_before;
    if (s->request->is_quiet || !isatty(STDERR_FILENO) || at->to_do == at->runs) return;
    fprintf(stderr,
            "pipecast: of %" PRId64 " runs %" PRId64 " done before, %" PRId64 " equal to another, %" PRId64 " to do\n",
            at->runs, at->done_before, repeats, at->to_do);
}

static void say_interrupted(void *context) {
    session *s = context;
    progress_stop(&s->bar);
    if (!s->journal[0]) return;
    fprintf(stderr, "pipecast: interrupted: %" PRId64 " of %" PRId64 " runs to do are done%s and kept in ", s->done,
            s->to_do, pc_team_size(s->team) > 1 ? " by the first rank" : "");
    print_plain(stderr, s->journal);
    fprintf(stderr, "; the same command goes on\n");
}

/* The threads that do the runs start after it. */
static void begin(session *s, const pc_sweep_progress *at) {
    bool is_seen = is_first(s);
    s->to_do = at->to_do;
    snprintf(s->journal, sizeof s->journal, "%s", at->journal ? at->journal : "");
    if (is_seen) say_agenda(s, at);
    progress_start(&s->bar, at->to_do, s->request->is_quiet || !is_seen);
    if (is_seen && (at->journal || s->bar.is_shown)) {
        if (!s->interrupt.is_blocked) interrupt_block(&s->interrupt);
        interrupt_watch(&s->interrupt, say_interrupted, s);
    }
    if (!s->interrupt.is_watched) interrupt_end(&s->interrupt);
}

static void look_on(void *context, const pc_sweep_progress *at) {
    session *s = context;
    switch (at->phase) {
    case PC_SWEEP_BEGINS:
        begin(s, at);
        break;
    case PC_SWEEP_RUNS:
        s->done = at->done;
        progress_step(&s->bar);
        break;
    case PC_SWEEP_WRITES:
        progress_end(&s->bar);
        break;
    }
}

static pc_code run_all(session *s, pc_error *error) {
    const run_request *r = s->request;
    pc_sweep_request request = {.scenarios = s->scenarios,
                                .scenario_count = r->path_count,
                                .output = r->output,
                                .jobs = (int)r->jobs,
                                .shard = r->shard,
                                .shard_count = r->shard_count,
                                .is_fresh = r->is_fresh,
                                .team = s->team};
    pc_sweep_sink sink = {.context = s, .progress = look_on, .warn = r->is_quiet ? NULL : say_warning};
    return pc_sweep_run(&request, &sink, &s->sweep, error);
}

/* ---- the table ---- */

static pc_code give_row(void *context, int64_t index, pc_run_row *row, pc_error *error) {
    session *s = context;
    pc_code code = pc_sweep_row(s->sweep, index, row, error);
    s->any_unfit = s->any_unfit || (!code && row->status != PC_RUN_OK);
    if (!code) utilisation_note(&s->used, index, row);
    return code;
}

static void note_assumed(const session *s, look_notes *notes) {
    pc_model_assumed list[PC_ASSUMED_MAX];
    int files = s->request->path_count;
    for (int i = 0; i < files; i++)
        look_note_assumed(notes, list, pc_scenario_assumed(s->scenarios[i], list),
                          files > 1 || pc_scenario_has_models(s->scenarios[i]));
}

static void note_imports(const session *s, look_notes *notes) {
    char text[PC_IMPORT_NOTE_SIZE];
    if (s->imported.notes.size > 0) look_note(notes, "%s", s->imported.notes.data);
    for (int i = 0; i < s->request->path_count; i++)
        for (int k = 0; pc_scenario_import_note(s->scenarios[i], k, text); k++) look_note(notes, "%s", text);
}

/* Runs that fit, by the way in which they were worked out; and what their intervals say. */
static pc_code look_at_rows(const session *s, int64_t count[PC_ENGINE_WAYS], doubt *intervals, pc_error *error) {
    pc_run_row row;
    for (int64_t i = 0; i < pc_sweep_row_count(s->sweep); i++) {
        pc_code code = pc_sweep_row(s->sweep, i, &row, error);
        if (code) return code;
        doubt_add(intervals, &row);
        for (int way = 0; way < PC_ENGINE_WAYS; way++)
            count[way] += row.status == PC_RUN_OK && strcmp(row.engine, pc_engine_way_name((pc_engine_way)way)) == 0;
    }
    return PC_OK;
}

static pc_code note_rows(const session *s, look_notes *notes, pc_error *error) {
    int64_t count[PC_ENGINE_WAYS] = {0};
    doubt intervals = {.runs = 0};
    int ways = 0;
    pc_code code = look_at_rows(s, count, &intervals, error);
    for (int way = 0; way < PC_ENGINE_WAYS; way++) ways += count[way] > 0;
    for (int way = 0; !code && way < PC_ENGINE_WAYS; way++)
        if (count[way] > 0 && ways == 1)
            look_note(notes, "engine: %s", pc_engine_way_words((pc_engine_way)way));
        else if (count[way] > 0)
            look_note(notes, "engine, %" PRId64 " run%s: %s", count[way], count[way] > 1 ? "s" : "",
                      pc_engine_way_words((pc_engine_way)way));
    if (!code) doubt_note(&intervals, notes);
    return code;
}

static pc_code print_table(session *s, pc_error *error) {
    const run_request *r = s->request;
    const char *swept[PC_SCENARIO_SWEPT_MAX];
    look_notes notes = {.count = 0};
    note_assumed(s, &notes);
    note_imports(s, &notes);
    pc_code code = r->format == PC_FORMAT_TABLE ? note_rows(s, &notes, error) : PC_OK;
    if (code) return code;
    pc_table_look look = look_of(&r->look, &notes);
    look.swept = swept;
    look.names_repeat = r->path_count == 1 && pc_scenario_only_sweeps(s->scenarios[0], swept, &look.swept_count);
    code = pc_table_write_from(give_row, s, pc_sweep_row_count(s->sweep), r->format, &look, stdout, error);
    bool is_placed = code && pc_error_part_of(error, PC_ERROR_PART_FILE)[0]; /* a row that could not be read */
    if (code == PC_ERROR_IO && !is_placed) pc_error_place(error, "standard output", 0, "");
    return code;
}

static void warn(const session *s) {
    pc_run_spec spec;
    pc_run_labels labels;
    pc_sweep_warn(s->sweep, say_warning, NULL);
    if (s->used.over.count == 0 || pc_sweep_spec(s->sweep, s->used.most, &spec, &labels, &(pc_error){0})) return;
    utilisation_warn(&s->used, "run", &spec.iteration);
    pc_run_spec_free(&spec);
}

/* ---- all of it ---- */

/* If another file has come to the place of the results, what was asked for is still printed. */
static pc_code do_all(session *s, pc_error *error) {
    pc_code code = pc_team_agree(s->team, load_scenarios(s, error), error);
    if (!code) code = run_all(s, error);
    if (code && s->sweep) print_table(s, NULL);
    return code || !is_first(s) ? code : print_table(s, error);
}

/* All ranks fail with one message, which the first says. */
static int status_of(const session *s, pc_code code, const pc_error *error) {
    if (!is_first(s)) return EXIT_DONE; /* launchers end all ranks at the first that ends badly */
    return code ? report(error) : finish_output(s->any_unfit ? EXIT_DID_NOT_FIT : EXIT_DONE);
}

static void close_session(session *s) {
    interrupt_end(&s->interrupt);
    pc_sweep_free(s->sweep);
    for (int i = 0; s->scenarios && i < s->request->path_count; i++) pc_scenario_free(s->scenarios[i]);
    pc_free(s->scenarios);
    pc_import_text_free(&s->imported);
    pc_team_close(s->team);
}

static int answer(const run_request *r) {
    pc_error error = {0};
    session s = {.request = r};
    interrupt_block(&s.interrupt); /* for the threads that MPI starts */
    pc_code code = pc_team_open(&s.team, &error);
    if (pc_team_size(s.team) <= 1) interrupt_end(&s.interrupt);
    if (!code) code = do_all(&s, &error);
    int status = status_of(&s, code, &error);
    if (!code && !r->is_quiet && is_first(&s)) warn(&s);
    close_session(&s);
    return status;
}

/* ---- arguments ---- */

enum { MEGATRON, OUTPUT, FORMAT, COLUMNS, COLOUR, JOBS, SHARD, FRESH, SET, ALLOW_OUTSIDE, QUIET, HELP, FLAGS };
static const option_spec own_options[FLAGS] = {
    {"megatron", 0, "FILE"}, {"output", 'o', "RESULTS.h5"},
    {"format", 0, "FORMAT"}, {"columns", 0, "NAME,..."},
    {"color", 0, "WHEN"},    {"jobs", 'j', "N"},
    {"shard", 0, "I/N"},     {"fresh", 0, NULL},
    {"set", 0, "KEY=VALUE"}, {"allow-outside", 0, NULL},
    {"quiet", 'q', NULL},    {"help", 'h', NULL},
};

/* The options of our own, and behind them those that stand for keys; the last has no name. */
static void list_options(option_spec options[FLAGS + PC_SETTING_FLAGS_MAX + 1]) {
    int count = FLAGS;
    memcpy(options, own_options, sizeof own_options);
    for (const run_flag *flag = run_flags(); flag->name; flag++)
        options[count++] = (option_spec){flag->name, 0, flag->value};
    options[count] = (option_spec){NULL, 0, NULL};
}

static void print_help(void) {
    fputs(help_start, stdout);
    for (const run_flag *flag = run_flags(); flag->name; flag++) {
        char option[64];
        snprintf(option, sizeof option, "%s %s%s", flag->name, flag->value, flag->sweep ? ",..." : "");
        printf("      --%-26s %s\n", option, flag->help);
    }
    fputs(help_end, stdout);
}

static bool take_option(run_request *r, int option, const char *value) {
    switch (option) {
    case ARGUMENT_OPERAND:
        r->paths[r->path_count++] = value;
        return true;
    case MEGATRON:
        r->paths[r->path_count++] = value;
        if (!r->megatron) return (r->megatron = value) != NULL;
        report_usage("--megatron: '%s' is a second one; expected one", value);
        return false;
    case OUTPUT:
        r->output = value;
        return true;
    case FORMAT:
        return argument_format("--format", value, &r->format);
    case COLUMNS:
        return look_take_columns(&r->look, value, pc_table_column_name);
    case COLOUR:
        return look_take_colour(&r->look, value);
    case JOBS:
        return argument_integer("--jobs", value, 1, JOBS_MAX, &r->jobs);
    case SHARD:
        return argument_shard(value, &r->shard, &r->shard_count, SHARDS_MAX);
    case FRESH:
        r->is_fresh = true;
        return true;
    case SET:
        return run_sets_take(&r->sets, value);
    case ALLOW_OUTSIDE:
        r->allows_outside = true;
        return true;
    case QUIET:
        r->is_quiet = true;
        return true;
    default:
        return option >= FLAGS && run_sets_take_flag(&r->sets, &run_flags()[option - FLAGS], value, run_flag_set);
    }
}

static int parse_and_answer(run_request *r, int argc, char **argv) {
    option_spec options[FLAGS + PC_SETTING_FLAGS_MAX + 1];
    list_options(options);
    arguments x = {.argc = argc, .argv = argv, .next = 1, .options = options, .command = "run"};
    for (int option; (option = arguments_next(&x)) != ARGUMENT_END;) {
        if (option == HELP) {
            print_help();
            return finish_output(EXIT_DONE);
        }
        if (option == ARGUMENT_ERROR) return EXIT_BAD_INPUT;
        if (!take_option(r, option, x.value)) return run_sets_status(&r->sets);
    }
    if (r->path_count == 0 && r->sets.flag_count == 0)
        return report_usage("run: no scenario; expected SCENARIO.yaml, or options such as --model and --machine");
    if (r->path_count == 0) r->paths[r->path_count++] = NULL; /* options say everything */
    return answer(r);
}

int command_run(int argc, char **argv) {
    run_request r = {.shard = 1, .shard_count = 1};
    r.paths = arguments_room(argc);
    if (!r.paths) return EXIT_MACHINE;
    int status = parse_and_answer(&r, argc, argv);
    run_sets_free(&r.sets);
    pc_free(r.paths);
    return status;
}
