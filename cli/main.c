/* pipecast: picks the subcommand. */
#include "cli/cli.h"
#include "cli/ranks.h"
#include "cli/version.h"

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
    "  schedule NAME|FILE.csv    generate (or load) one schedule, check it, replay it, say what it costs\n"
    "  figure RESULTS.h5 [NAME]  draw a chart of runs, or the timeline of one\n"
    "  export RESULTS.h5         a run for a trace viewer, or the table of runs as csv or json\n"
    "  compare A.h5 B.h5         in what two results files differ, run by run and column by column\n"
    "  merge OUT.h5 SHARD.h5...  several shards of a sweep into one results file\n"
    "  calibrate                 measure this machine's GPU, and write a profile of it\n"
    "  profile show|fit|compare  what was measured on a GPU: look at it, fit others' numbers, compare two\n"
    "  list WHAT                 list schedules, models, machines, scenarios, or the keys of these\n"
    "\n"
    "pipecast COMMAND --help says more; pipecast --version says what was built.\n"
    "\n"
    "example: pipecast schedule zb-h1 -p 4 -m 8 --figure zb-h1.svg\n";

static void print_version(void) {
    unsigned major, minor, release;
    H5get_libversion(&major, &minor, &release);
    printf("pipecast %s\ncommit: %s\nhdf5: %u.%u.%u\ngsl: %s\ncuda: %s\nnccl: %s\nmpi: %s\n", PC_VERSION, PC_COMMIT,
           major, minor, release, gsl_version, PC_CUDA_VERSION, PC_NCCL_VERSION, ranks_mpi_version());
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
    {"list", command_list},
    {"merge", command_merge},
    {"profile", command_profile},
};

#define EXPECTED                                                                                                       \
    "expected run, plan, schedule, figure, export, compare, merge, calibrate, profile, list, --help or --version"

/* A standard stream that is closed would be the next file that is opened, and that would hold what belongs on the
 * stream: in its place stands what can only be used the other way round, so that it fails as it would have. */
static bool hold_streams(void) {
    for (int stream = STDIN_FILENO; stream <= STDERR_FILENO; stream++)
        if (fcntl(stream, F_GETFD) < 0 && open("/dev/null", stream == STDIN_FILENO ? O_WRONLY : O_RDONLY) != stream)
            return false;
    return true;
}

int main(int argc, char **argv) {
    if (!hold_streams()) return EXIT_MACHINE;
    signal(SIGXFSZ, SIG_IGN); /* a file that may not grow is an error as a full disk is, not an end */
    if (argc < 2) return report_usage("no command; " EXPECTED);
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "help") == 0) {
        fputs(help, stdout);
        return finish_output(EXIT_DONE);
    }
    if (strcmp(argv[1], "--version") == 0) {
        print_version();
        return finish_output(EXIT_DONE);
    }
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++)
        if (strcmp(argv[1], commands[i].name) == 0) return commands[i].function(argc - 1, argv + 1);
    return report_usage("unknown command '%s'; " EXPECTED, argv[1]);
}
