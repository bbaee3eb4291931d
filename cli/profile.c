/* pipecast profile: shows, fits, tunes and compares what was measured. */
#include "cli/cli.h"
#include "cli/profile_open.h"
#include "cli/profile_tune.h"

#include "calib/import/import.h"
#include "calib/profile/profile.h"
#include "calib/profile/profile_show.h"
#include "engine/alloc.h"
#include "results/figures/figure.h"
#include "results/figures/fits.h"
#include "results/figures/rates.h"
#include "scenarios/library.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const char help[] =
    "usage: pipecast profile show PROFILE.h5|NAME [--format table|csv|json] [--figure FILE] [--residuals FILE] "
    "[--fit NAME]\n"
    "                             [--dark]\n"
    "       pipecast profile fit INPUT... -o PROFILE.h5 [--device NAME] [--gpu NAME] [--processors N]\n"
    "                            [--library NAME,...] [--site NAME,...]\n"
    "                            [--collective NAME] [--link NAME] [--ranks N] [--nodes N]\n"
    "       pipecast profile tune MEASURED.csv [-o TUNED.h5] [--parameters NAME,...] [--by COLUMN,...]\n"
    "                            [--profile BASE.h5] [--format table|csv|json] [--set KEY=VALUE] [--allow-outside]\n"
    "                            [--jobs N] [-q]\n"
    "       pipecast profile compare A.h5|NAME B.h5|NAME [--format table|csv|json]\n"
    "\n"
    "A profile is what was measured on a GPU, and the fits of it; `pipecast calibrate` makes one, and\n"
    "`pipecast run --profile` uses it.\n"
    "\n"
    "show: the device, its ceilings, every fit with its parameters and errors; json is everything. NAME is one of\n"
    "`pipecast list profiles`.\n"
    "      --figure FILE    also draw rates by size, measured and fitted, a panel an operation; svg, png or pdf\n"
    "      --residuals FILE  also draw measured over predicted times and what is left\n"
    "      --fit NAME       of these fits alone: a name that show prints, or part of one\n"
    "      --dark           light on a dark ground, with --figure or --residuals\n"
    "\n"
    "fit: others' measurements become a profile. INPUT is what nccl-tests print, a CSV of kernel or transfer\n"
    "times (docs/calibration.md; aiconfigurator's and SimuMax's tables as they are), or a profile, whose\n"
    "measurements are fitted again. Rows that cannot be are left out and counted.\n"
    "  -o PROFILE.h5        where to; with the ending .csv the fits alone, as the library's profiles are\n"
    "      --device NAME    what the device calls itself (default: what the files say)\n"
    "      --gpu NAME       the GPU of `pipecast list machines` that it is, such as h100-sxm; what is faster than\n"
    "                       its datasheet's peak is left out\n"
    "      --processors N   its SMs or CUs; needed for matrix products and attention (default: the GPU's)\n"
    "      --library NAME,...  of tables that name libraries the rows of these alone; of others who computed it\n"
    "      --site NAME,...  the same of those who measured\n"
    "      --collective NAME, --link NAME, --ranks N, --nodes N\n"
    "                       of nccl-tests output that does not say so; links are nvlink, pcie, network, loopback\n"
    "\n"
    "tune: the few numbers that a cluster differs by, fitted to runs that were measured on it, a table as `pipecast\n"
    "score` reads it: factors on the seconds of matrix products, attention and memory-bound kernels, of launches and\n"
    "the network; what overlap costs more; a constant an iteration. It says which of them the runs do not determine,\n"
    "and how far off forecasts are of configurations that the fit has not seen. docs/calibration.md says more.\n"
    "  -o TUNED.h5          also write a profile that `run`, `plan`, `score` and scenarios take; a new file\n"
    "      --parameters NAME,...  gemm, attention, memory, launch, network, overlap, overhead (default: all)\n"
    "      --by COLUMN,...  a fit for every value of these columns together, such as software; files are named for "
    "them\n"
    "      --profile BASE.h5      what the factors are over (default: what the machine's file says)\n"
    "      --set KEY=VALUE  a key of all runs; may be repeated\n"
    "      --allow-outside  let rows name files outside of the table's folder\n"
    "      --jobs N         threads (default: one a core); results do not depend on it\n"
    "  -q, --quiet          no warnings\n"
    "\n"
    "compare: how devices and versions differ, and what the fits of B say over what those of A say;\n"
    "and how far off the fits of A are of what B measured, by operation too, whoever measured those of A.\n"
    "\n"
    "example: pipecast profile show h100.h5 --figure rates.svg --fit gemm_forward\n"
    "example: pipecast profile fit all_reduce.txt gemm.csv -o a100.h5 --gpu a100-sxm-80gb --processors 108 --link "
    "nvlink\n"
    "example: pipecast profile tune measured.csv -o ours.h5 --by software\n"
    "example: pipecast profile compare before.h5 after.h5\n"
    "example: pipecast profile compare h200-sxm h200.h5\n";

enum { PROCESSORS_MAX = 1 << 16, RANKS_MAX = 1 << 20, JOBS_MAX = 1024 };

typedef struct request {
    const char **paths;
    int path_count;
    const char *output, *figure, *residuals, *fit, *device, *gpu;
    bool is_dark; /* of figures */
    pc_format format;
    int64_t processors, ranks, nodes;
    const char *collective, *link, *library, *site;
    profile_tune tune;
} request;

/* ---- show ---- */

static int answer_show(request *r) {
    pc_error error = {0};
    pc_profile profile = {0};
    pc_code code = r->figure ? pc_figure_check_path(r->figure, &error) : PC_OK;
    if (!code && r->residuals) code = pc_figure_check_path(r->residuals, &error);
    if (!code) code = profile_open(r->paths[0], &profile, &error);
    if (!code && r->figure) code = pc_figure_rates(&profile, r->fit, r->is_dark, r->figure, &error);
    if (!code && r->residuals) code = pc_figure_fits(&profile, r->fit, r->is_dark, r->residuals, &error);
    if (!code) {
        code = pc_profile_show(&profile, r->format, stdout, &error);
        if (code == PC_ERROR_IO) pc_error_place(&error, "standard output", 0, "");
    }
    pc_profile_free(&profile);
    return code ? report(&error) : finish_output(EXIT_DONE);
}

/* ---- compare ---- */

static int answer_compare(request *r) {
    pc_error error = {0};
    pc_profile a = {0}, b = {0};
    pc_code code = profile_open(r->paths[0], &a, &error);
    if (!code) code = profile_open(r->paths[1], &b, &error);
    if (!code) {
        code = pc_profile_compare(&a, &b, r->format, stdout, &error);
        if (code == PC_ERROR_IO) pc_error_place(&error, "standard output", 0, "");
    }
    pc_profile_free(&a);
    pc_profile_free(&b);
    return code ? report(&error) : finish_output(EXIT_DONE);
}

/* ---- fit ---- */

/* NULL if the name is none of the library's, and the user's own. */
static const char *known_gpu(const char *name) {
    int count;
    const pc_library_file *known = pc_library_files(PC_LIBRARY_GPUS, &count);
    for (int i = 0; name && i < count; i++)
        if (strcasecmp(known[i].name, name) == 0) return known[i].name;
    return NULL;
}

static pc_code gather(const request *r, const pc_gpu *gpu, pc_profile *profile, pc_import_report *report,
                      pc_error *error) {
    const pc_import_options options = {.collective = r->collective,
                                       .link = r->link,
                                       .ranks = (int)r->ranks,
                                       .nodes = (int)r->nodes,
                                       .device = r->device,
                                       .library = r->library,
                                       .site = r->site,
                                       .gpu = gpu};
    pc_code code = pc_import_check_options(&options, error);
    if (code) return pc_error_prefix(error, "profile fit"), code;
    return pc_profile_import_all(profile, r->paths, r->path_count, &options, report, error);
}

/* What the user says counts more than what files say. */
static void set_device(const request *r, const pc_gpu *gpu, pc_profile_device *device) {
    if (r->device) snprintf(device->name, sizeof device->name, "%s", r->device);
    if (r->gpu) snprintf(device->gpu, sizeof device->gpu, "%s", r->gpu);
    if (gpu && device->processors < 1) device->processors = gpu->processors;
    if (r->processors > 0) device->processors = (int32_t)r->processors;
}

/* A machine's file of the user's may have a GPU of its own, so that an unknown name is no error. */
static void warn_of_gpu(const char *gpu) {
    if (known_gpu(gpu)) return;
    report_usage("warning: --gpu: '%s' is no GPU of `pipecast list machines`; only machines whose file names it so can "
                 "use the profile",
                 gpu);
}

static void print_left_out(const pc_import_report *report) {
    for (int i = 0; i < PC_IMPORT_REASONS; i++) {
        const pc_import_left_out *rows = &report->left_out[i];
        if (rows->count < 1) continue;
        report_usage("warning: %" PRId64 " row%s left out: %s; the first is %s", rows->count,
                     rows->count == 1 ? "" : "s", pc_import_reason_text((pc_import_reason)i), rows->first);
    }
}

static void print_done(const request *r, const pc_profile *profile, int64_t left_out) {
    int64_t measured = profile->kernel_count + profile->transfer_count;
    if (r->gpu) warn_of_gpu(r->gpu);
    if (left_out > 0)
        fprintf(stderr, "pipecast: warning: %" PRId64 " measurement%s in no fit: too few of their kind, or wrong\n",
                left_out, left_out == 1 ? " stands" : "s stand");
    report_usage("%s: %" PRId64 " fit%s of %" PRId64 " measurement%s", r->output, profile->fit_count,
                 profile->fit_count == 1 ? "" : "s", measured, measured == 1 ? "" : "s");
}

static int answer_fit(request *r) {
    pc_error error = {0};
    pc_profile profile = {0};
    int64_t left_out = 0;
    pc_gpu gpu;
    pc_import_report rows = {0};
    const char *known = known_gpu(r->gpu);
    pc_code code = known ? pc_library_load_gpu(known, &gpu, &error) : PC_OK;
    if (!code) code = gather(r, known ? &gpu : NULL, &profile, &rows, &error);
    if (!code) {
        print_left_out(&rows);
        set_device(r, known ? &gpu : NULL, &profile.device);
        code = pc_profile_fit(&profile, &left_out, &error);
    }
    if (!code && profile.fit_count == 0)
        code =
            pc_error_set(&error, PC_ERROR_INPUT,
                         "profile fit: too few measurements of everything; expected a few sizes or shapes of one kind");
    if (!code) code = profile_save(&profile, r->output, &error);
    if (!code) print_done(r, &profile, left_out);
    pc_profile_free(&profile);
    return code ? report(&error) : EXIT_DONE;
}

/* ---- tune ---- */

static int answer_tune(request *r) {
    r->tune.path = r->paths[0];
    r->tune.output = r->output;
    r->tune.format = r->format;
    return profile_tune_answer(&r->tune);
}

/* ---- arguments ---- */

enum {
    OUTPUT,
    FORMAT,
    FIGURE,
    RESIDUALS,
    FIT,
    DARK,
    DEVICE,
    GPU,
    PROCESSORS,
    COLLECTIVE,
    LINK,
    LIBRARY,
    SITE,
    RANKS,
    NODES,
    PARAMETERS,
    BY,
    BASE,
    SET,
    ALLOW_OUTSIDE,
    JOBS,
    QUIET,
    HELP
};
static const option_spec options[] = {
    {"output", 'o', "PROFILE.h5"}, {"format", 0, "FORMAT"},    {"figure", 0, "FILE"},
    {"residuals", 0, "FILE"},      {"fit", 0, "NAME"},         {"dark", 0, NULL},
    {"device", 0, "NAME"},         {"gpu", 0, "NAME"},         {"processors", 0, "N"},
    {"collective", 0, "NAME"},     {"link", 0, "NAME"},        {"library", 0, "NAME,..."},
    {"site", 0, "NAME,..."},       {"ranks", 0, "N"},          {"nodes", 0, "N"},
    {"parameters", 0, "NAME,..."}, {"by", 0, "COLUMN,..."},    {"profile", 0, "BASE.h5"},
    {"set", 0, "KEY=VALUE"},       {"allow-outside", 0, NULL}, {"jobs", 'j', "N"},
    {"quiet", 'q', NULL},          {"help", 'h', NULL},        {NULL, 0, NULL}};

typedef enum action { SHOW, FIT_IN, TUNE, COMPARE, ACTIONS } action;

/* Which options each of them has, and how many paths. */
static const struct action_rule {
    const char *name;
    unsigned options;
    int least, most;
    const char *expected;
    bool needs_output;
    int (*answer)(request *r);
} rules[ACTIONS] = {
    [SHOW] = {"show", 1u << FORMAT | 1u << FIGURE | 1u << RESIDUALS | 1u << FIT | 1u << DARK, 1, 1,
              "one PROFILE.h5, or a name of `pipecast list profiles`", false, answer_show},
    [FIT_IN] = {"fit",
                1u << OUTPUT | 1u << DEVICE | 1u << GPU | 1u << PROCESSORS | 1u << COLLECTIVE | 1u << LINK |
                    1u << LIBRARY | 1u << SITE | 1u << RANKS | 1u << NODES,
                1, INT32_MAX, "one INPUT or more", true, answer_fit},
    [TUNE] = {"tune",
              1u << OUTPUT | 1u << FORMAT | 1u << PARAMETERS | 1u << BY | 1u << BASE | 1u << SET | 1u << ALLOW_OUTSIDE |
                  1u << JOBS | 1u << QUIET,
              1, 1, "one MEASURED.csv", false, answer_tune},
    [COMPARE] = {"compare", 1u << FORMAT, 2, 2, "A.h5 B.h5, or names of `pipecast list profiles`", false,
                 answer_compare},
};

/* As long as profiles have room for. */
static bool is_name(const char *option, const char *value) {
    const size_t most = sizeof(((pc_profile_device *)0)->name) - 1;
    if (value[0] != '\0' && strlen(value) <= most) return true;
    report_usage("profile fit: --%s: %zu characters; expected 1 to %zu", option, strlen(value), most);
    return false;
}

/* Those of tune alone. */
static bool take_tune_option(profile_tune *tune, int option, const char *value) {
    switch (option) {
    case BY:
        return profile_tune_take_by(tune, value);
    case SET:
        return run_sets_take(&tune->sets, value);
    case JOBS:
        return argument_integer("profile tune: --jobs", value, 1, JOBS_MAX, &tune->jobs);
    case ALLOW_OUTSIDE:
        tune->allows_outside = true;
        return true;
    default:
        tune->is_quiet = true;
        return true;
    }
}

static bool take_option(request *r, int option, const char *value) {
    const char **texts[] = {
        [OUTPUT] = &r->output, [FIGURE] = &r->figure, [RESIDUALS] = &r->residuals,        [FIT] = &r->fit,
        [DEVICE] = &r->device, [GPU] = &r->gpu,       [COLLECTIVE] = &r->collective,      [LIBRARY] = &r->library,
        [SITE] = &r->site,     [LINK] = &r->link,     [PARAMETERS] = &r->tune.parameters, [BASE] = &r->tune.base,
        [QUIET] = NULL};
    if (option == ARGUMENT_OPERAND) return r->paths[r->path_count++] = value, true;
    if (option == DARK) return r->is_dark = true;
    if (option == FORMAT) return argument_format("--format", value, &r->format);
    if (option == PROCESSORS)
        return argument_integer("profile fit: --processors", value, 1, PROCESSORS_MAX, &r->processors);
    if (option == RANKS) return argument_integer("profile fit: --ranks", value, 2, RANKS_MAX, &r->ranks);
    if (option == NODES) return argument_integer("profile fit: --nodes", value, 1, RANKS_MAX, &r->nodes);
    if (option == BY || option >= SET) return take_tune_option(&r->tune, option, value);
    /* cppcheck-suppress negativeIndex ; below zero is ARGUMENT_OPERAND alone */
    *texts[option] = value;
    return (option != DEVICE && option != GPU) || is_name(options[option].name, value);
}

static bool is_complete(const request *r, const struct action_rule *rule) {
    if (r->path_count < rule->least || r->path_count > rule->most)
        report_usage("profile %s: %d file%s; expected %s", rule->name, r->path_count, r->path_count == 1 ? "" : "s",
                     rule->expected);
    else if (rule->needs_output && !r->output)
        report_usage("profile fit: no output; expected -o PROFILE.h5");
    else if (r->fit && !r->figure && !r->residuals)
        report_usage("profile show: --fit without --figure or --residuals; expected one of them, too");
    else if (r->is_dark && !r->figure && !r->residuals)
        report_usage("profile show: --dark without --figure or --residuals; expected one of them, too");
    else
        return true;
    return false;
}

static int parse_and_answer(request *r, const struct action_rule *rule, int argc, char **argv) {
    arguments x = {.argc = argc, .argv = argv, .next = 1, .options = options, .command = "profile"};
    for (int option; (option = arguments_next(&x)) != ARGUMENT_END;) {
        if (option == ARGUMENT_ERROR) return EXIT_BAD_INPUT;
        if (option == HELP) {
            fputs(help, stdout);
            return finish_output(EXIT_DONE);
        }
        if (option >= 0 && !(rule->options & 1u << option))
            return report_usage("profile %s: has no option --%s; expected one that `pipecast profile --help` lists",
                                rule->name, options[option].name);
        if (!take_option(r, option, x.value)) return EXIT_BAD_INPUT;
    }
    return is_complete(r, rule) ? rule->answer(r) : EXIT_BAD_INPUT;
}

int command_profile(int argc, char **argv) {
    const struct action_rule *rule = NULL;
    if (argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
        fputs(help, stdout);
        return finish_output(EXIT_DONE);
    }
    for (int i = 0; i < ACTIONS && argc > 1; i++)
        if (strcmp(argv[1], rules[i].name) == 0) rule = &rules[i];
    if (!rule && argc == 1) return report_usage("profile: no subcommand; expected show, fit, tune or compare");
    if (!rule) {
        int index;
        argument_word("profile", "subcommand", "show|fit|tune|compare", argv[1], &index);
        return EXIT_BAD_INPUT;
    }
    request r = {.format = PC_FORMAT_TABLE};
    r.paths = arguments_room(argc);
    if (!r.paths) return EXIT_MACHINE;
    int status = parse_and_answer(&r, rule, argc - 1, argv + 1);
    pc_free(r.paths);
    return status;
}
