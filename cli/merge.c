/* pipecast merge: several shards of a sweep, or of a plan, into one results file. */
#include "calib/device/launched.h"
#include "cli/cli.h"
#include "cli/plan_merge.h"
#include "sweep/sweep.h"

#include "engine/alloc.h"

static const char help[] =
    "usage: pipecast merge OUT.h5 SHARD.h5... [OPTIONS]\n"
    "\n"
    "Puts the runs of several results files of one sweep, made as shards by `pipecast run`, into one: byte for byte "
    "that\n"
    "of the same sweep without shards. A run that is in several of them must be equal there. Runs that are in none "
    "are\n"
    "named in a warning.\n"
    "\n"
    "Of all shares of a plan, made by `pipecast plan --shard I/N -o SHARD.h5`, it makes the results file and prints "
    "the\n"
    "table of the same plan without shares. It does not search; it reads the scenario again, and runs the best plans.\n"
    "\n"
    "  -q, --quiet            no warnings\n"
    "      --format FORMAT    of a plan: table (default), csv, json, megatron or torchtitan\n"
    "      --columns NAME,... of a plan: these columns alone\n"
    "      --color WHEN       of a plan: auto (default), always or never\n"
    "      --jobs N           of a plan: threads (default: one a core)\n"
    "      --allow-outside    of a plan: let its scenario name files outside of its folder, as its shares did\n"
    "\n"
    "Exit status: 0 merged, whether runs are missing or not; 1 of a plan: no plan fits; 2 bad input: shards of\n"
    "different scenarios or builds, a run that differs, a share of a plan that is missing; 3 a fault of the machine.\n"
    "\n"
    "example: pipecast merge sweep.h5 shard1.h5 shard2.h5 shard3.h5\n";

enum { QUIET, FORMAT, COLUMNS, COLOUR, JOBS, ALLOW_OUTSIDE, HELP };
static const option_spec option_specs[] = {{"quiet", 'q', NULL}, {"format", 0, "FORMAT"}, {"columns", 0, "NAME,..."},
                                           {"color", 0, "WHEN"}, {"jobs", 'j', "N"},      {"allow-outside", 0, NULL},
                                           {"help", 'h', NULL},  {NULL, 0, NULL}};

enum { PLAN_WORDS_MAX = 64 };

typedef struct merge {
    pc_sweep_merge_request request;
    bool is_quiet;
    char *plan_words[PLAN_WORDS_MAX]; /* what `pipecast plan` is to be asked for as well */
    int plan_word_count;
    const char *of_plans; /* an option that only plans have; or NULL */
} merge;

/* ---- shares of a plan ---- */

static pc_code refuse_output(const merge *m, pc_error *error) {
    pc_code code = PC_OK;
    for (int i = 0; i < m->request.shard_count && !code; i++)
        code = refuse_same_file(m->request.shards[i], m->request.output, "one of the shares", error);
    return code;
}

static int answer_plan(merge *m) {
    static char output[] = "--output", quiet[] = "--quiet";
    pc_error error = {0};
    pc_plan_shares *shares;
    pc_code code = refuse_output(m, &error);
    if (!code) code = pc_plan_shares_open(m->request.shards, m->request.shard_count, &shares, &error);
    if (code) return report(&error);
    m->plan_words[m->plan_word_count++] = output;
    m->plan_words[m->plan_word_count++] = (char *)m->request.output;
    if (m->is_quiet) m->plan_words[m->plan_word_count++] = quiet;
    int status = plan_answer_merged(shares, m->plan_word_count, m->plan_words);
    pc_plan_shares_free(shares);
    return status;
}

/* ---- shards of a sweep ---- */

static int answer_sweep(const merge *m) {
    pc_error error = {0};
    pc_sweep_sink sink = {.warn = m->is_quiet ? NULL : say_warning};
    if (m->of_plans)
        return report_usage("merge: --%s beside shards of a sweep; expected it beside shares of a plan", m->of_plans);
    return pc_sweep_merge(&m->request, &sink, &error) ? report(&error) : EXIT_DONE;
}

/* What the first file is, they all are to be. */
static int answer(merge *m) {
    pc_error error = {0};
    bool is_share;
    if (pc_plan_shares_is_one(m->request.shards[0], &is_share, &error)) return report(&error);
    return is_share ? answer_plan(m) : answer_sweep(m);
}

/* ---- arguments ---- */

/* As `pipecast plan` takes it; false after having printed why not. */
static bool take_plan_option(merge *m, int option, char *value) {
    static char words[][16] = {[FORMAT] = "--format",
                               [COLUMNS] = "--columns",
                               [COLOUR] = "--color",
                               [JOBS] = "--jobs",
                               [ALLOW_OUTSIDE] = "--allow-outside"};
    m->of_plans = option_specs[option].name;
    if (m->plan_word_count + 5 > PLAN_WORDS_MAX) { /* with -o, its value and -q still to come */
        report_usage("merge: --%s: too many options; expected each once", m->of_plans);
        return false;
    }
    m->plan_words[m->plan_word_count++] = words[option];
    if (value) m->plan_words[m->plan_word_count++] = value;
    return true;
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
        else if (option >= 0 && !take_plan_option(m, option, (char *)x.value))
            return EXIT_BAD_INPUT;
        else if (option >= 0)
            continue;
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
