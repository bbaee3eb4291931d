/* pipecast: picks the subcommand. */
#include "cli/cli.h"
#include "cli/version.h"
#include "engine/names.h"
#include "sweep/team.h"

#include <fcntl.h>
#include <gsl/gsl_version.h>
#include <hdf5.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#ifndef PC_CUDA_VERSION /* meson.build gives both where kernels are built for GPUs */
#define PC_CUDA_VERSION "no"
#define PC_NCCL_VERSION "no"
#endif

static const char help[] =
    "pipecast forecasts the throughput, MFU and memory of pipeline-parallel training by simulation.\n"
    "\n"
    "usage: pipecast COMMAND [ARGUMENTS]\n"
    "\n"
    "  run SCENARIO.yaml...      run the scenarios' pipelines; a table, csv or json, and an HDF5 file\n"
    "  plan [SCENARIO.yaml]      the best ways to train a model on a cluster: cut, schedule, recomputation, sharding\n"
    "  score MEASURED.csv        your own measured runs, each beside its forecast; sums, pairs, a picture\n"
    "  schedule NAME|FILE.csv    generate (or load) one schedule, check it, replay it, say what it costs\n"
    "  figure RESULTS.h5 [NAME]  draw a chart of runs, or the timeline of one\n"
    "  export RESULTS.h5         a run for a trace viewer, or the table of runs as csv or json\n"
    "  compare A.h5 B.h5         in what two results files differ, run by run and column by column\n"
    "  merge OUT.h5 SHARD.h5...  several shards of a sweep into one results file\n"
    "  import FORMAT FILE...     what others wrote as files of ours: models, settings, traces of profilers\n"
    "  calibrate                 measure this machine's GPU, and write a profile of it\n"
    "  profile show|fit|compare|tune  what was measured: look at it, fit others' numbers, compare two, fit whole runs\n"
    "  list WHAT                 list schedules, models, machines, scenarios, or the keys of these\n"
    "\n"
    "pipecast COMMAND --help, or pipecast help COMMAND, says more; pipecast --version (-V) says what was built.\n"
    "\n"
    "example: pipecast schedule zb-h1 -p 4 -m 8 --figure zb-h1.svg\n";

static void print_version(void) {
    unsigned major, minor, release;
    H5get_libversion(&major, &minor, &release);
    printf("pipecast %s\ncommit: %s\nhdf5: %u.%u.%u\ngsl: %s\ncuda: %s\nnccl: %s\nmpi: %s\n", PC_VERSION, PC_COMMIT,
           major, minor, release, gsl_version, PC_CUDA_VERSION, PC_NCCL_VERSION, pc_team_mpi_version());
}

typedef struct command {
    const char *name;
    command_function *function;
} command;

static const command commands[] = {
    {"run", command_run},
    {"plan", command_plan},
    {"calibrate", command_calibrate},
    {"calibrate-rank", command_calibrate_rank}, /* started by `calibrate` */
    {"compare", command_compare},
    {"schedule", command_schedule},
    {"figure", command_figure},
    {"export", command_export},
    {"import", command_import},
    {"list", command_list},
    {"merge", command_merge},
    {"profile", command_profile},
    {"score", command_score},
};

/* What people try first, and what they mean by it. */
static const char *const other_names[][2] = {
    {"run", "simulate"},
    {"run", "forecast"},
    {"plan", "search"},
    {"plan", "optimize"},
    {"plan", "tune"},
    {"figure", "plot"},
    {"figure", "draw"},
    {"compare", "diff"},
    {"calibrate", "measure"},
    {"import", "convert"},
    {"score", "judge"},
    {"score", "validate"},
    {"list models", "models"},
    {"list machines", "machines"},
    {"list keys", "keys"},
    {"list scenarios", "scenarios"},
    {"list schedules", "schedules"},
};

#define EXPECTED                                                                                                       \
    "expected run, plan, score, schedule, figure, export, compare, merge, import, calibrate, profile, list, --help "   \
    "or --version"

/* If a standard stream is closed, the next file that is opened would take its number, and get what belongs on the
 * stream. So its place is taken by something that can only be used the other way round: using it fails, as it would
 * have. */
static bool hold_streams(void) {
    for (int stream = STDIN_FILENO; stream <= STDERR_FILENO; stream++)
        if (fcntl(stream, F_GETFD) < 0 && open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY) != stream)
            return false;
    return true;
}

static command_function *find_command(const char *name) {
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        if (strcmp(name, commands[i].name) == 0) return commands[i].function;
    return NULL;
}

static int unknown_command(const char *name) {
    char hint[PC_NEAREST_TEXT];
    pc_nearest nearest = {.word = name};
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        if (commands[i].function != command_calibrate_rank) pc_nearest_offer(&nearest, commands[i].name);
    pc_nearest_offer_words(&nearest, "help|version");
    for (size_t i = 0; i < sizeof other_names / sizeof *other_names; i++)
        pc_nearest_offer_as(&nearest, other_names[i][0], other_names[i][1]);
    return report_usage("unknown command '%s'%s; " EXPECTED, name, pc_nearest_hint(&nearest, hint));
}

static bool is_one_of(const char *word, const char *a, const char *b, const char *c) {
    return strcmp(word, a) == 0 || strcmp(word, b) == 0 || strcmp(word, c) == 0;
}

/* "help" and "help run"; of "help profile show" what is said of the former. */
static int say_help(int argc, char **argv) {
    char option[] = "--help", *words[] = {argc > 1 ? argv[1] : NULL, option, NULL};
    bool is_of_command = argc > 1 && !is_one_of(argv[1], "--help", "-h", "help");
    command_function *function = is_of_command ? find_command(argv[1]) : NULL;
    if (function == command_calibrate_rank) function = NULL;
    if (function) return function(2, words);
    if (is_of_command && strcmp(argv[0], "help") == 0 && !is_one_of(argv[1], "--version", "-V", "version"))
        return unknown_command(argv[1]);
    fputs(help, stdout);
    return finish_output(EXIT_DONE);
}

int main(int argc, char **argv) {
    if (!hold_streams()) return EXIT_MACHINE;
    signal(SIGXFSZ, SIG_IGN); /* a file that may not grow is an error as a full disk is, not an end */
    if (argc < 2) return report_usage("no command; " EXPECTED);
    if (is_one_of(argv[1], "--help", "-h", "help")) return say_help(argc - 1, argv + 1);
    if (is_one_of(argv[1], "--version", "-V", "version")) {
        print_version();
        return finish_output(EXIT_DONE);
    }
    command_function *function = find_command(argv[1]);
    return function ? function(argc - 1, argv + 1) : unknown_command(argv[1]);
}
