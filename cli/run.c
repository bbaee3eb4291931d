/* pipecast run: all runs of some scenarios, into a table and a results file. */
#include "cli/cli.h"
#include "cli/run_flags.h"
#include "cli/run_sweep.h"

#include "engine/alloc.h"
#include "results/table.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static const char help_start[] =
    "usage: pipecast run [SCENARIO.yaml...] [OPTIONS]\n"
    "\n"
    "Runs every case of the scenarios times every value of their sweeps, and prints a row for each. Without a\n"
    "scenario, the options that stand for keys of a setting say what to run. Processes that mpirun or srun started\n"
    "share the runs.\n"
    "\n"
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

/* ---- arguments ---- */

enum { OUTPUT, FORMAT, COLUMNS, COLOUR, JOBS, SHARD, FRESH, SET, ALLOW_OUTSIDE, QUIET, HELP, FLAGS };
static const option_spec own_options[FLAGS] = {
    {"output", 'o', "RESULTS.h5"},
    {"format", 0, "FORMAT"},
    {"columns", 0, "NAME,..."},
    {"color", 0, "WHEN"},
    {"jobs", 'j', "N"},
    {"shard", 0, "I/N"},
    {"fresh", 0, NULL},
    {"set", 0, "KEY=VALUE"},
    {"allow-outside", 0, NULL},
    {"quiet", 'q', NULL},
    {"help", 'h', NULL},
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

static bool parse_shard(const char *text, run_request *r) {
    char copy[64];
    const char *slash = strchr(text, '/');
    if (!slash || strlen(text) >= sizeof copy) {
        report_usage("--shard: '%s'; expected I/N such as 1/4", text);
        return false;
    }
    snprintf(copy, sizeof copy, "%s", text);
    copy[slash - text] = '\0';
    return argument_integer("--shard", slash + 1, 1, SHARDS_MAX, &r->shard_count) &&
           argument_integer("--shard", copy, 1, r->shard_count, &r->shard);
}

static bool take_option(run_request *r, int option, const char *value) {
    switch (option) {
    case ARGUMENT_OPERAND:
        r->paths[r->path_count++] = value;
        return true;
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
        return parse_shard(value, r);
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
    return run_sweep(r);
}

int command_run(int argc, char **argv) {
    run_request r = {.shard = 1, .shard_count = 1};
    r.paths = pc_alloc((size_t)argc + 1, sizeof *r.paths);
    if (!r.paths) {
        report_usage("out of memory");
        return EXIT_MACHINE;
    }
    int status = parse_and_answer(&r, argc, argv);
    run_sets_free(&r.sets);
    pc_free(r.paths);
    return status;
}
