/* pipecast calibrate: measures the GPU, fits, and writes a profile. */
#include "cli/calibrate_print.h"
#include "cli/calibrate_replay.h"
#include "cli/cli.h"
#include "cli/version.h"

#include "calib/device/launched.h"
#include "calib/device/measure.h"
#include "engine/alloc.h"
#include "storage/replace.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

static const char help[] =
    "usage: pipecast calibrate [OPTIONS]\n"
    "\n"
    "Runs transformer kernels and transfers on this machine's GPU, fits cost models to their times, and writes a "
    "profile\n"
    "that scenarios can use. Every kernel is checked first. Takes up to 9 minutes; interrupted (Ctrl-C), it keeps "
    "what\n"
    "it has, and the profile says that it is not complete.\n"
    "\n"
    "  -o PROFILE.h5          where to (default profile.h5; a file that is there is replaced)\n"
    "      --quick            under a minute: coarse grids\n"
    "      --tiny             seconds: a few small shapes of everything, to see that it works here\n"
    "      --device N         the GPU, counted from 0 (default 0)\n"
    "      --gpu NAME         what the library calls it (`pipecast list machines`); default: by the driver's name\n"
    "      --kernels-only     no transfers\n"
    "      --transfers-only   no kernels\n"
    "      --attention-library FILE.so\n"
    "                         attention of somebody else's (kernels/attention_shim.h): checked, timed beside ours, "
    "and\n"
    "                         used where it is faster; the profile says which ran\n"
    "      --seed N           of the data and of the order (default 1)\n"
    "      --replay SCENARIO  then run one stage's passes of the scenario's runs (the first 8) here, in the order of\n"
    "                         their schedules, and compare time and memory with the simulated stage\n"
    "      --stage N          which stage (default: the middle one)\n"
    "      --allow-outside    let that scenario name files outside of its folder\n"
    "  -q, --quiet            no progress bar\n"
    "\n"
    "Under mpirun or srun, with one process a GPU, the ranks measure transfers between all nodes together; rank 0 "
    "does\n"
    "the rest and writes the profile.\n"
    "\n"
    "Exit status: 0 done, or interrupted with a profile of what was measured until then; 2 bad input; 3 no device, or "
    "a\n"
    "fault of it.\n"
    "\n"
    "example: pipecast calibrate --quick -o h100.h5\n"
    "example: pipecast calibrate -o h100.h5 --replay scenarios/studies/replay_stage.yaml\n";

enum {
    OUTPUT,
    QUICK,
    TINY,
    DEVICE,
    GPU,
    KERNELS_ONLY,
    TRANSFERS_ONLY,
    ATTENTION,
    SEED,
    REPLAY,
    STAGE,
    ALLOW_OUTSIDE,
    QUIET,
    HELP
};
static const option_spec options[] = {{"output", 'o', "PROFILE.h5"},
                                      {"quick", 0, NULL},
                                      {"tiny", 0, NULL},
                                      {"device", 0, "N"},
                                      {"gpu", 0, "NAME"},
                                      {"kernels-only", 0, NULL},
                                      {"transfers-only", 0, NULL},
                                      {"attention-library", 0, "FILE.so"},
                                      {"seed", 0, "N"},
                                      {"replay", 0, "SCENARIO"},
                                      {"stage", 0, "N"},
                                      {"allow-outside", 0, NULL},
                                      {"quiet", 'q', NULL},
                                      {"help", 'h', NULL},
                                      {NULL, 0, NULL}};

typedef struct request {
    pc_calibrate_request calibrate;
    const char *output, *gpu;
    replay_request replay; /* its path is NULL: none */
    bool is_quiet;
} request;

/* ---- arguments ---- */

static bool take_number(const char *name, const char *text, int64_t most, int64_t *number) {
    return argument_integer(name, text, 0, most, number);
}

/* False after having printed what is wrong. */
static bool take(request *x, int option, const char *value) {
    int64_t number = 0;
    bool is_good = true;
    if (option == OUTPUT) x->output = value;
    if (option == QUICK) x->calibrate.effort = PC_CALIBRATE_QUICK;
    if (option == TINY) x->calibrate.effort = PC_CALIBRATE_TINY;
    if (option == GPU) x->gpu = value;
    if (option == KERNELS_ONLY) x->calibrate.without_transfers = true;
    if (option == TRANSFERS_ONLY) x->calibrate.without_kernels = true;
    if (option == ATTENTION) x->calibrate.attention_library = value;
    if (option == REPLAY) x->replay.path = value;
    if (option == ALLOW_OUTSIDE) x->replay.allows_outside = true;
    if (option == QUIET) x->is_quiet = true;
    if (option == DEVICE && (is_good = take_number("calibrate: --device", value, 1023, &number)))
        x->calibrate.device = (int)number;
    if (option == STAGE && (is_good = take_number("calibrate: --stage", value, INT32_MAX, &number)))
        x->replay.stage = (int)number;
    if (option == SEED && (is_good = take_number("calibrate: --seed", value, INT64_MAX, &number)))
        x->calibrate.seed = (uint64_t)number;
    return is_good;
}

/* EXIT_DONE and *is_help, or the status of what is wrong, said. */
static int parse(int argc, char **argv, request *x, bool *is_help) {
    arguments in = {.argc = argc, .argv = argv, .next = 1, .options = options, .command = "calibrate"};
    for (int option; (option = arguments_next(&in)) != ARGUMENT_END;) {
        if (option == ARGUMENT_ERROR) return EXIT_BAD_INPUT;
        if (option == ARGUMENT_OPERAND)
            return report_usage("calibrate: '%s' is one too many; expected options alone (-o %s?)", in.value, in.value);
        if (option == HELP) {
            *is_help = true;
            return EXIT_DONE;
        }
        if (!take(x, option, in.value)) return EXIT_BAD_INPUT;
    }
    if (x->calibrate.without_kernels && x->calibrate.without_transfers)
        return report_usage("calibrate: --kernels-only and --transfers-only leave nothing; expected one of them");
    if (x->replay.stage >= 0 && !x->replay.path) return report_usage("calibrate: --stage: no --replay; expected both");
    const size_t name_most = sizeof(((pc_profile_device *)0)->gpu) - 1;
    if (x->gpu && (!x->gpu[0] || strlen(x->gpu) > name_most))
        return report_usage("calibrate: --gpu: %zu characters; expected 1 to %zu", strlen(x->gpu), name_most);
    return EXIT_DONE;
}

/* ---- interruption, progress ---- */

static volatile int is_interrupted; /* a signal handler can reach nothing else */

static void interrupt(int signal_number) {
    (void)signal_number;
    is_interrupted = 1;
}

/* The first one ends the measuring, a second one the program. */
static void watch_interrupts(void) {
    struct sigaction action = {.sa_handler = interrupt, .sa_flags = SA_RESETHAND | SA_RESTART};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

static void step(void *self, int64_t done, int64_t total, const char *what) {
    progress *bar = self;
    (void)what;
    bar->total = total;
    bar->done = done - 1;
    progress_step(bar);
}

/* ---- the work ---- */

static void print_lines(const char *lines) {
    for (const char *line = lines; line && *line;) {
        size_t length = strcspn(line, "\n");
        report_usage("calibrate: %.*s", (int)length, line);
        line += length + (line[length] == '\n');
    }
}

static bool is_empty(const pc_profile *profile) {
    return profile->kernel_count + profile->transfer_count + profile->replay_count == 0;
}

/* After the measuring: the summary, the file, what went wrong. `status`: of that. */
static int finish(const request *x, pc_profile *profile, int status) {
    pc_error error = {0};
    if (is_empty(profile)) {
        if (status == EXIT_DONE)
            status = report_usage("calibrate: interrupted before anything was measured; nothing is written");
        return status == EXIT_BAD_INPUT ? EXIT_MACHINE : status;
    }
    if (pc_profile_write(profile, x->output, &error)) return report(&error);
    calibrate_print(profile);
    printf("\nwritten to ");
    print_plain(stdout, x->output);
    printf("%s\n", profile->device.is_complete ? "" : " (not complete)");
    if (is_interrupted)
        report_usage("calibrate: interrupted; %s has what was measured until then and is marked as not complete",
                     x->output);
    return finish_output(status);
}

static int calibrate(request *x, pc_profile *profile) {
    progress bar;
    char *warnings = NULL;
    pc_error error = {0};
    progress_start(&bar, 1, x->is_quiet);
    bar.unit = "shapes";
    x->calibrate.progress = (pc_calibrate_progress){step, &bar};
    pc_code code = pc_calibrate(&x->calibrate, profile, &warnings, &error);
    progress_end(&bar);
    x->calibrate.progress = (pc_calibrate_progress){0}; /* the bar ends here */
    print_lines(warnings);
    pc_free(warnings);
    int status = code ? report(&error) : EXIT_DONE;
    snprintf(profile->device.gpu, sizeof profile->device.gpu, "%s", x->gpu ? x->gpu : calibrate_gpu(profile));
    const pc_launched *launched = x->calibrate.launched;
    if (launched && launched->rank > 0) return status; /* rank 0 has everything */
    if (!code && x->replay.path && !is_interrupted) status = calibrate_replay(&x->replay, x->calibrate.device, profile);
    return finish(x, profile, status);
}

/* Beside the output, which all ranks see. */
static const char *meeting_folder(const char *output, const pc_launched *launched, char *path, size_t size) {
    snprintf(path, size, "%s.ranks%s%s", output, *launched->key ? "-" : "", launched->key);
    return path;
}

int command_calibrate(int argc, char **argv) {
    request x = {.calibrate = {.seed = 1, .is_interrupted = &is_interrupted, .version = PC_VERSION " " PC_COMMIT},
                 .output = "profile.h5",
                 .replay = {.stage = -1}};
    bool is_help = false;
    int status = parse(argc, argv, &x, &is_help);
    if (status != EXIT_DONE) return status;
    if (is_help) {
        fputs(help, stdout);
        return finish_output(EXIT_DONE);
    }
    pc_error error = {0};
    if (pc_replacement_probe(x.output, &error)) {
        pc_error_prefix(&error, "calibrate: -o");
        return report(&error);
    }
    if (x.replay.path && calibrate_replay_check(&x.replay, x.gpu, &error)) return report(&error);
    char *program = realpath("/proc/self/exe", NULL); /* ranks of transfers are this program again */
    x.calibrate.program = program ? program : "pipecast";
    watch_interrupts();
    pc_launched launched;
    char meeting[4096];
    if (pc_launched_ranks(&launched)) {
        x.calibrate.launched = &launched;
        x.calibrate.meeting = meeting_folder(x.output, &launched, meeting, sizeof meeting);
        if (launched.rank > 0) x.is_quiet = true;
    }
    pc_profile profile = {0};
    status = calibrate(&x, &profile);
    pc_profile_free(&profile);
    free(program);
    return status;
}
