/* pipecast calibrate: measures the GPU, fits, and writes a profile. */
#include "cli/cli.h"
#include "cli/kernel_table.h"
#include "cli/version.h"

#include "calib/device/launched.h"
#include "calib/device/measure.h"
#include "calib/device/replay_device.h"
#include "calib/profile/profile_cost.h"
#include "engine/alloc.h"
#include "engine/numbers.h"
#include "scenarios/library.h"
#include "scenarios/scenario.h"
#include "storage/replace.h"

#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

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
    "      --replay-kernels FILE.csv\n"
    "                         also time every kernel of the replayed passes, in one more iteration of each run\n"
    "      --profile FILE.h5  measure nothing but the replay: it is simulated with this profile, and -o gets both\n"
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
    "example: pipecast calibrate -o h100.h5 --replay scenarios/studies/replay_stage.yaml\n"
    "example: pipecast calibrate --profile h100.h5 -o replayed.h5 --replay scenarios/studies/replay_stage.yaml\n";

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
    REPLAY_KERNELS,
    PROFILE,
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
                                      {"replay-kernels", 0, "FILE.csv"},
                                      {"profile", 0, "FILE.h5"},
                                      {"allow-outside", 0, NULL},
                                      {"quiet", 'q', NULL},
                                      {"help", 'h', NULL},
                                      {NULL, 0, NULL}};

/* What the user asked for of --replay. */
typedef struct replay_request {
    const char *path;
    int stage;           /* -1: the middle one, p / 2 */
    bool allows_outside; /* of the scenario's folder, what it names */
    const char *kernels; /* where a table of kernels goes; NULL: nowhere */
} replay_request;

typedef struct calibration {
    pc_calibrate_request calibrate;
    const char *output, *gpu;
    const char *measured;  /* a profile to replay with, in place of measuring; NULL: none */
    replay_request replay; /* its path is NULL: none */
    bool is_quiet;
} calibration;

/* ---- arguments ---- */

static bool take_number(const char *name, const char *text, int64_t most, int64_t *number) {
    return argument_integer(name, text, 0, most, number);
}

/* False after having printed what is wrong. */
static bool take(calibration *asked, int option, const char *value) {
    int64_t number = 0;
    bool is_good = true;
    if (option == OUTPUT) asked->output = value;
    if (option == QUICK) asked->calibrate.effort = PC_CALIBRATE_QUICK;
    if (option == TINY) asked->calibrate.effort = PC_CALIBRATE_TINY;
    if (option == GPU) asked->gpu = value;
    if (option == KERNELS_ONLY) asked->calibrate.without_transfers = true;
    if (option == TRANSFERS_ONLY) asked->calibrate.without_kernels = true;
    if (option == ATTENTION) asked->calibrate.attention_library = value;
    if (option == REPLAY) asked->replay.path = value;
    if (option == PROFILE) asked->measured = value;
    if (option == REPLAY_KERNELS) asked->replay.kernels = value;
    if (option == ALLOW_OUTSIDE) asked->replay.allows_outside = true;
    if (option == QUIET) asked->is_quiet = true;
    if (option == DEVICE && (is_good = take_number("calibrate: --device", value, 1023, &number)))
        asked->calibrate.device = (int)number;
    if (option == STAGE && (is_good = take_number("calibrate: --stage", value, INT32_MAX, &number)))
        asked->replay.stage = (int)number;
    if (option == SEED && (is_good = take_number("calibrate: --seed", value, INT64_MAX, &number)))
        asked->calibrate.seed = (uint64_t)number;
    return is_good;
}

/* Whether options say what is measured. */
static bool is_measuring(const pc_calibrate_request *asked) {
    return asked->effort != PC_CALIBRATE_FULL || asked->without_kernels || asked->without_transfers ||
           asked->attention_library;
}

/* EXIT_DONE and *is_help, or the status of what is wrong, said. */
static int parse(int argc, char **argv, calibration *asked, bool *is_help) {
    arguments in = {.argc = argc, .argv = argv, .next = 1, .options = options, .command = "calibrate"};
    for (int option; (option = arguments_next(&in)) != ARGUMENT_END;) {
        if (option == ARGUMENT_ERROR) return EXIT_BAD_INPUT;
        if (option == ARGUMENT_OPERAND)
            return report_usage("calibrate: '%s' is one too many; expected options alone (-o %s?)", in.value, in.value);
        if (option == HELP) {
            *is_help = true;
            return EXIT_DONE;
        }
        if (!take(asked, option, in.value)) return EXIT_BAD_INPUT;
    }
    if (asked->calibrate.without_kernels && asked->calibrate.without_transfers)
        return report_usage("calibrate: --kernels-only and --transfers-only leave nothing; expected one of them");
    const char *of_replay = asked->replay.stage >= 0 ? "stage"
                            : asked->replay.kernels  ? "replay-kernels"
                            : asked->measured        ? "profile"
                                                     : NULL;
    if (of_replay && !asked->replay.path) return report_usage("calibrate: --%s: no --replay; expected both", of_replay);
    if (asked->measured && is_measuring(&asked->calibrate))
        return report_usage(
            "calibrate: --profile: nothing is measured but the replay; expected none of --quick, --tiny, "
            "--kernels-only, --transfers-only, --attention-library");
    const size_t name_most = sizeof(((pc_profile_device *)0)->gpu) - 1;
    if (asked->gpu && (!asked->gpu[0] || strlen(asked->gpu) > name_most))
        return report_usage("calibrate: --gpu: %zu characters; expected 1 to %zu", strlen(asked->gpu), name_most);
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

/* ---- which GPU it is ---- */

/* The name in the library of the GPU that the profile's device is, by what its driver calls it; "" if it is none of
 * them. */
static const char *gpu_of(const pc_profile *profile) {
    int count;
    const pc_library_file *gpus = pc_library_files(PC_LIBRARY_GPUS, &count);
    pc_profile unnamed = {.device = profile->device};
    unnamed.device.gpu[0] = '\0'; /* so that the driver's name decides */
    for (int i = 0; i < count; i++)
        if (!pc_profile_check_gpu(&unnamed, gpus[i].name, NULL)) return gpus[i].name;
    return "";
}

/* ---- summary ---- */

static void print_device(const pc_profile_device *device) {
    printf("device     ");
    print_plain(stdout, device->name);
    printf("%s%s%s, %d SMs, %.1f GiB\n", device->gpu[0] ? " (" : "", device->gpu, device->gpu[0] ? ")" : "",
           device->processors, (double)device->memory_bytes / 0x1p30);
    if (device->sm_clock_hz > 0.0) printf("clock      %.0f MHz under load\n", device->sm_clock_hz * 1e-6);
    if (device->gemm_flops_per_s > 0.0)
        printf("product    %.1f TFLOP/s, the best large one, bf16\n", device->gemm_flops_per_s * 1e-12);
    if (device->copy_bytes_per_s > 0.0)
        printf("copy       %.1f GB/s, read and written\n", device->copy_bytes_per_s * 1e-9);
    if (device->launch_s > 0.0) printf("launch     %.2f us of the host\n", device->launch_s * 1e6);
}

static void print_fit(const pc_fit *fit, int width) {
    char name[160];
    pc_fit_name(&fit->key, name, sizeof name);
    printf("%-*s  %6" PRId64, width, name, fit->count);
    if (isnan(fit->cv_median)) /* too few to leave some out */
        printf("  %9s  %8s  %9s\n", "-", "-", "-");
    else
        printf("  %8.2f%%  %7.2f%%  %8.1f%%\n", 100.0 * fit->cv_median, 100.0 * fit->cv_p95, 100.0 * fit->cv_coverage);
}

static void print_fits(const pc_profile *profile) {
    int width = 3;
    for (int64_t i = 0; i < profile->fit_count; i++) {
        char name[160];
        pc_fit_name(&profile->fit[i].key, name, sizeof name);
        if ((int)strlen(name) > width) width = (int)strlen(name);
    }
    if (profile->fit_count == 0) return;
    printf("\nErrors of points that the fit has not seen (cross-validation), and how many of them its 95%% interval "
           "held:\n");
    printf("%-*s  points     median      p95   interval\n", width, "fit");
    for (int64_t i = 0; i < profile->fit_count; i++) print_fit(&profile->fit[i], width);
}

static void print_summary(const pc_profile *profile) {
    print_device(&profile->device);
    printf("measured   %" PRId64 " of kernels, %" PRId64 " of transfers, %" PRId64 " samples\n", profile->kernel_count,
           profile->transfer_count, profile->sample_count);
    print_fits(profile);
}

/* More of a scenario's runs would keep the GPU too long. */
enum { RUNS_MAX = 8 };

/* ---- --replay: what is printed ---- */

static double difference(double measured, double simulated) {
    return measured > 0 ? 100 * (simulated - measured) / measured : 0;
}

static void print_pass(const char *kind, int64_t count, double measured_s, double simulated_s) {
    printf("%-8s %8" PRId64 " %13.4f %13.4f %9.1f%%\n", kind, count, measured_s * 1e3, simulated_s * 1e3,
           difference(measured_s, simulated_s));
}

static void print_bytes(const char *what, int64_t measured, int64_t simulated) {
    const double mib = PC_BYTES_PER_MIB;
    printf("%-17s %13.2f %13.2f %9.1f%%\n", what, (double)measured / mib, (double)simulated / mib,
           difference((double)measured, (double)simulated));
}

static void print_outcome(const pc_replay_outcome *outcome) {
    const pc_replay_report *report = &outcome->report;
    printf("replay of ");
    print_plain(stdout, report->scenario);
    printf(": %s, stage %d, %" PRId64 " passes, simulated with %s\n\n", report->schedule, (int)report->stage,
           report->passes, outcome->is_roofline ? "the roofline" : "this profile");
    printf("%-8s %8s %13s %13s %10s\n", "pass", "count", "measured ms", "simulated ms", "off by");
    for (int i = 0; i < report->pass_kind_count; i++) {
        const pc_replay_pass_report *pass = &report->pass[i];
        print_pass(pass->kind, pass->count, pass->measured_s, pass->simulated_s);
    }
    print_pass("all", report->passes, report->measured_s, report->simulated_s);
    printf("\n%-17s %13s %13s %10s\n", "peak", "measured MiB", "simulated MiB", "off by");
    print_bytes("activations", outcome->measured_activations, outcome->simulated_activations);
    print_bytes("and state", report->measured_peak_bytes, report->simulated_peak_bytes);
    printf(
        "\nNot in the simulation: %.2f MiB of statistics and log-sum-exp. In neither: %.2f MiB for work within a pass",
        (double)outcome->vector_bytes / PC_BYTES_PER_MIB, (double)outcome->working_bytes / PC_BYTES_PER_MIB);
    printf("%s%s.\n", outcome->left_out[0] ? "; " : "", outcome->left_out);
}

/* ---- --replay: runs ---- */

typedef struct session {
    int device, stage;   /* of the request; stage -1: the middle one */
    const char *gpu;     /* what the user calls the device, or NULL */
    pc_profile *profile; /* NULL: to check alone */
    int done;
    kernel_table *kernels; /* NULL: none */
} session;

static void print_warnings(const char *scenario, const char *lines) {
    for (const char *line = lines; *line;) {
        size_t length = strcspn(line, "\n");
        report_usage("warning: replay of %s: %.*s", scenario, (int)length, line);
        line += length + (line[length] == '\n');
    }
}

static pc_code measure(session *s, const pc_replay_request *request, pc_error *error) {
    pc_replay_outcome outcome;
    pc_code code = pc_replay_on_device(request, &outcome, error);
    if (!code) code = pc_profile_add_replay(s->profile, &outcome.report, error);
    if (code) return code;
    if (s->kernels) kernel_table_add(s->kernels, &outcome);
    if (s->done > 0) putchar('\n');
    print_outcome(&outcome);
    print_warnings(request->scenario, outcome.warnings);
    fflush(stdout); /* the next one may take a while */
    return PC_OK;
}

/* Whether the run is on a machine of what the user calls the device. */
static pc_code check_gpu(const session *s, const pc_run_spec *spec, pc_error *error) {
    const char *gpu = spec->iteration.machine.gpu.name;
    if (!s->gpu || strcasecmp(s->gpu, gpu) == 0) return PC_OK;
    return pc_error_set(error, PC_ERROR_INPUT, "the machine's GPU is %s; expected %s, as --gpu says", gpu, s->gpu);
}

static pc_code replay_run(session *s, const pc_run_spec *spec, const char *name, pc_error *error) {
    if (spec->infeasible[0]) return pc_error_set(error, PC_ERROR_INPUT, "%s: %s", name, spec->infeasible);
    pc_replay_request request = pc_replay_request_default();
    request.spec = &spec->iteration;
    request.scenario = name;
    request.device = s->device;
    request.stage = s->stage < 0 ? spec->iteration.cut.pp / 2 : s->stage;
    request.profile = s->profile;
    request.kernel = s->kernels ? s->kernels->kernel : NULL;
    pc_code code = check_gpu(s, spec, error);
    if (!code) code = s->profile ? measure(s, &request, error) : pc_replay_check(&request, error);
    if (code)
        pc_error_prefix(error, "%s", name);
    else
        s->done++;
    return code;
}

/* Those of a model on a machine, not of given costs, until somebody interrupts. */
static pc_code replay_runs(session *s, const pc_scenario *scenario, pc_error *error) {
    int64_t count = pc_scenario_run_count(scenario);
    pc_code code = PC_OK;
    for (int64_t i = 0; !code && i < count && s->done < RUNS_MAX && !is_interrupted; i++) {
        pc_run_spec spec;
        pc_run_labels labels;
        code = pc_scenario_run_spec(scenario, i, &spec, &labels, error);
        if (code) return code;
        if (spec.is_cluster) code = replay_run(s, &spec, labels.name, error);
        pc_run_spec_free(&spec);
    }
    if (code || s->done > 0 || is_interrupted) return code;
    return pc_error_set(error, PC_ERROR_INPUT,
                        "%s: none of its %" PRId64 " runs is of a model on a machine; expected one",
                        pc_scenario_name(scenario), count);
}

static pc_code open_and_replay(const replay_request *r, session *s, pc_error *error) {
    pc_scenario *scenario;
    pc_scenario_options loading = {.allows_outside = r->allows_outside};
    s->stage = r->stage;
    pc_code code = pc_scenario_load_with(r->path, &loading, &scenario, error);
    if (!code) {
        code = replay_runs(s, scenario, error);
        pc_scenario_free(scenario);
    }
    if (code) pc_error_prefix(error, "calibrate: --replay");
    return code;
}

/* What of it can be known to fail before anything is measured. `gpu`: what the user calls the device, or NULL. */
static pc_code check_replay(const replay_request *r, const char *gpu, pc_error *error) {
    session s = {.gpu = gpu};
    return open_and_replay(r, &s, error);
}

/* Runs one stage of the scenario's runs of a model on a machine on GPU `device`, simulates it with the profile's fits,
 * prints both, and adds the reports to the profile, those made before something went wrong too. */
static int replay(const replay_request *r, int device, pc_profile *profile) {
    pc_error error = {0};
    kernel_table table = {0};
    session s = {.device = device, .profile = profile, .kernels = r->kernels ? &table : NULL};
    pc_code code = open_and_replay(r, &s, &error);
    int status = code ? report(&error) : EXIT_DONE;
    error = (pc_error){0};
    if (r->kernels && s.done > 0 && kernel_table_write(&table, r->kernels, &error)) status = report(&error);
    kernel_table_free(&table);
    return status;
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
static int finish(const calibration *asked, pc_profile *profile, int status) {
    pc_error error = {0};
    if (is_empty(profile)) {
        if (status == EXIT_DONE)
            status = report_usage("calibrate: interrupted before anything was measured; nothing is written");
        return status == EXIT_BAD_INPUT ? EXIT_MACHINE : status;
    }
    if (pc_profile_write(profile, asked->output, &error)) return report(&error);
    print_summary(profile);
    printf("\nwritten to ");
    print_plain(stdout, asked->output);
    printf("%s\n", profile->device.is_complete ? "" : " (not complete)");
    if (is_interrupted)
        report_usage("calibrate: interrupted; %s has what was measured until then%s", asked->output,
                     profile->device.is_complete ? "" : " and is marked as not complete");
    return finish_output(status);
}

static int calibrate(calibration *asked, pc_profile *profile) {
    progress bar;
    char *warnings = NULL;
    pc_error error = {0};
    progress_start(&bar, 1, asked->is_quiet);
    bar.unit = "shapes";
    asked->calibrate.progress = (pc_calibrate_progress){step, &bar};
    pc_code code = pc_calibrate(&asked->calibrate, profile, &warnings, &error);
    progress_end(&bar);
    asked->calibrate.progress = (pc_calibrate_progress){0}; /* the bar ends here */
    print_lines(warnings);
    pc_free(warnings);
    int status = code ? report(&error) : EXIT_DONE;
    snprintf(profile->device.gpu, sizeof profile->device.gpu, "%s", asked->gpu ? asked->gpu : gpu_of(profile));
    const pc_launched *launched = asked->calibrate.launched;
    if (launched && launched->rank > 0) return status; /* rank 0 has everything */
    if (!code && asked->replay.path && !is_interrupted)
        status = replay(&asked->replay, asked->calibrate.device, profile);
    return finish(asked, profile, status);
}

/* A profile that is there, and the replay. Its GPU's name in the library is kept. */
static int replay_alone(calibration *asked, pc_profile *profile) {
    pc_error error = {0};
    pc_code code = pc_profile_read(asked->measured, profile, &error);
    if (code) {
        pc_error_prefix(&error, "calibrate: --profile");
        return report(&error);
    }
    if (asked->gpu) snprintf(profile->device.gpu, sizeof profile->device.gpu, "%s", asked->gpu);
    return finish(asked, profile, replay(&asked->replay, asked->calibrate.device, profile));
}

/* Beside the output, which all ranks see. */
static const char *meeting_folder(const char *output, const pc_launched *launched, char *path, size_t size) {
    snprintf(path, size, "%s.ranks%s%s", output, *launched->key ? "-" : "", launched->key);
    return path;
}

int command_calibrate(int argc, char **argv) {
    calibration x = {.calibrate = {.seed = 1, .is_interrupted = &is_interrupted, .version = PC_VERSION " " PC_COMMIT},
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
    if (x.replay.kernels && pc_replacement_probe(x.replay.kernels, &error)) {
        pc_error_prefix(&error, "calibrate: --replay-kernels");
        return report(&error);
    }
    if (x.replay.path && check_replay(&x.replay, x.gpu, &error)) return report(&error);
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
    status = x.measured ? replay_alone(&x, &profile) : calibrate(&x, &profile);
    pc_profile_free(&profile);
    free(program);
    return status;
}

/* `pipecast calibrate-rank`: one rank of a group whose transfers are measured. The program starts it by itself. */
int command_calibrate_rank(int argc, char **argv) {
    pc_rank_task task;
    pc_error error = {0};
    pc_code code = pc_rank_task_parse(argc - 1, argv + 1, &task, &error);
    if (!code) code = pc_rank_measure(&task, &error);
    return code ? report(&error) : EXIT_DONE;
}
