/* pipecast merge: several shards of a sweep into one results file. */
#include "calib/device/launched.h"
#include "cli/cli.h"
#include "sweep/sweep.h"

#include "engine/alloc.h"

static const char help[] =
    "usage: pipecast merge OUT.h5 SHARD.h5... [--quiet]\n"
    "\n"
    "Puts the runs of several results files of one sweep, made as shards by `pipecast run`, into one: byte for byte "
    "that\n"
    "of the same sweep without shards. A run that is in several of them must be equal there. Runs that are in none "
    "are\n"
    "named in a warning.\n"
    "\n"
    "  -q, --quiet            no warnings\n"
    "\n"
    "Exit status: 0 merged, whether runs are missing or not; 2 bad input: shards of different scenarios or builds, or "
    "a\n"
    "run that differs; 3 a fault of the machine.\n"
    "\n"
    "example: pipecast merge sweep.h5 shard1.h5 shard2.h5 shard3.h5\n";

enum { QUIET, HELP };
static const option_spec option_specs[] = {{"quiet", 'q', NULL}, {"help", 'h', NULL}, {NULL, 0, NULL}};

typedef struct merge {
    pc_sweep_merge_request request;
    bool is_quiet;
} merge;

static int answer(const merge *m) {
    pc_error error = {0};
    pc_sweep_sink sink = {.warn = m->is_quiet ? NULL : say_warning};
    return pc_sweep_merge(&m->request, &sink, &error) ? report(&error) : EXIT_DONE;
}

/* `shards` has room for all that stands on the command line. */
static int parse_and_answer(merge *m, const char **shards, int argc, char **argv) {
    arguments x = {.argc = argc, .argv = argv, .next = 1, .options = option_specs, .command = "merge"};
    for (int option; (option = arguments_next(&x)) != ARGUMENT_END;) {
        if (option == ARGUMENT_ERROR) return EXIT_BAD_INPUT;
        if (option == HELP) {
            fputs(help, stdout);
            return finish_output(EXIT_DONE);
        }
        if (option == QUIET)
            m->is_quiet = true;
        else if (!m->request.output)
            m->request.output = x.value;
        else
            shards[m->request.shard_count++] = x.value;
    }
    if (m->request.shard_count == 0) return report_usage("merge: no shards; expected OUT.h5 SHARD.h5...");
    return answer(m);
}

/* The work of one process: of several that a launcher started, the first's. */
int command_merge(int argc, char **argv) {
    pc_launched launched;
    if (pc_launched_ranks(&launched) && launched.rank > 0) return EXIT_DONE;
    const char **shards = arguments_room(argc);
    if (!shards) return EXIT_MACHINE;
    merge m = {.request = {.shards = shards}};
    int status = parse_and_answer(&m, shards, argc, argv);
    pc_free(shards);
    return status;
}
