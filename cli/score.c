/* pipecast score: measured runs beside their forecasts. */
#include "cli/cli.h"
#include "cli/run_sets.h"

#include "results/figures/figure.h"
#include "results/figures/score_figure.h"
#include "results/score/score_file.h"
#include "results/score/score_table.h"
#include "storage/replace.h"
#include "sweep/score.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char help[] =
    "usage: pipecast score MEASURED.csv [-o RESULTS.h5] [--by COLUMN,...] [--figure FILE] [OPTIONS]\n"
    "\n"
    "Forecasts every run of a table of measured ones, a row each, and says how far off the forecasts are: by row, in\n"
    "sums, for runs that differ in one thing, and whether the fastest configuration would have been chosen. Columns:\n"
    "model, system, gpus, precision, gbs, mbs, seq, tp, pp, vp, zero, fsdp_shard, recompute, schedule, and as "
    "measured\n"
    "step_s or tokens_per_s_per_gpu, memory_gib; setting.KEY for any other key; more are kept. docs/score.md says "
    "more.\n"
    "\n"
    "  -o RESULTS.h5              also keep rows and sums in an HDF5 file\n"
    "      --by COLUMN,...        sums for every value of these columns together; may be repeated (default source, or\n"
    "                             model where there is none)\n"
    "      --conditions RECIPES.csv  what rows do not say: a table of configurations with Megatron's arguments\n"
    "      --figure FILE          draw forecast over measured times: .svg, .png or .pdf\n"
    "      --dark                 light on a dark ground, with --figure\n"
    "      --format FORMAT        table, csv or json (default table); csv: the table's columns, and the forecasts "
    "behind\n"
    "      --set KEY=VALUE        a key of all runs, such as setting.profile=h100.h5; may be repeated\n"
    "      --allow-outside        let rows name files outside of the table's folder\n"
    "      --jobs N               threads (default: one a core); results do not depend on it\n"
    "  -q, --quiet                no progress bar, no warnings\n"
    "\n"
    "Exit status: 0 done; 1 a row could not be read, or was called out of memory or infeasible; 2 bad input; 3 a fault "
    "of\n"
    "the machine.\n"
    "\n"
    "example: pipecast score measured.csv --by system,gpus --figure measured.svg\n";

enum { BY_MOST = 16, JOBS_MAX = 1024 };

typedef struct score_command {
    const char *path, *output, *figure, *conditions;
    const char *by[BY_MOST];
    int by_count;
    pc_format format;
    run_sets sets;
    int64_t jobs;
    bool allows_outside, is_quiet;
    bool is_dark; /* of the figure */
    bool any_bad; /* a row could not be read */
    progress bar;
    bool has_bar;
} score_command;

/* ---- while it runs ---- */

static void say_bad(void *context, const pc_error *error) {
    score_command *c = context;
    c->any_bad = true;
    report(error);
}

static void look_on(void *context, int64_t done, int64_t to_do) {
    score_command *c = context;
    if (!c->has_bar) progress_start(&c->bar, to_do, c->is_quiet);
    c->has_bar = true;
    progress_at(&c->bar, done, to_do, "runs");
}

static void say_joins(void *context, pc_score_joins joins) {
    (void)context;
    fprintf(stderr,
            "pipecast: conditions: %lld rows have one, %lld none, %lld several that differ, of which none holds\n",
            (long long)joins.found, (long long)joins.none, (long long)joins.unclear);
}

/* Columns that mean nothing here, by name. */
static void say_unknown(const pc_measured *m) {
    int count = 0;
    for (int i = 0; i < m->column_count; i++) {
        if (m->is_known[i] || pc_score_is_column(m->column[i])) continue;
        fprintf(stderr, "%s", count++ ? ", " : "pipecast: columns that are kept and not read: ");
        print_plain(stderr, m->column[i]);
    }
    if (count) fprintf(stderr, "\n");
}

/* ---- all of it ---- */

static pc_code check(const score_command *c, const pc_measured *m, pc_error *error) {
    pc_code code = PC_OK;
    for (int i = 0; i < c->by_count && !code; i++) code = pc_score_check_by(m, c->by[i], error);
    if (!code && c->figure) code = pc_figure_check_path(c->figure, error);
    if (!code && c->output) code = refuse_same_file(c->path, c->output, "the table", error);
    if (!code && c->output) code = pc_replacement_probe(c->output, error);
    return code;
}

static void choose_by(score_command *c, const pc_measured *m) {
    if (c->by_count > 0) return;
    c->by[c->by_count++] = m->column[m->at[PC_MEASURED_MODEL]];
    for (int i = 0; i < m->column_count; i++)
        if (strcmp(m->column[i], "source") == 0) c->by[0] = m->column[i];
}

static pc_code score_rows(score_command *c, const pc_measured *m, const pc_measured *conditions, pc_score *score,
                          pc_error *error) {
    pc_score_request request = {.measured = m,
                                .conditions = c->conditions ? conditions : NULL,
                                .sets = c->sets.list,
                                .set_count = c->sets.count,
                                .allows_outside = c->allows_outside,
                                .jobs = (int)c->jobs};
    pc_score_sink sink = {.context = c,
                          .say = say_bad,
                          .progress = look_on,
                          .warn = c->is_quiet ? NULL : say_warning,
                          .joined = c->is_quiet ? NULL : say_joins};
    pc_code code = pc_score_run(&request, &sink, score, error);
    if (c->has_bar) progress_end(&c->bar);
    return code ? code : pc_score_sum_up(score, c->by, c->by_count, error);
}

/* Files first, whatever becomes of standard output. */
static pc_code write_all(const score_command *c, const pc_score *score, pc_error *error) {
    const char *slash = strrchr(c->path, '/');
    pc_code code = c->output ? pc_score_file_write(score, c->output, error) : PC_OK;
    if (!code && c->figure)
        code = pc_figure_score(score, c->by[0], slash ? slash + 1 : c->path, c->is_dark, c->figure, error);
    if (code) return code;
    code = pc_score_table_write(score, c->format, stdout, error);
    if (code == PC_ERROR_IO) pc_error_place(error, "standard output", 0, "");
    return code;
}

static bool any_unfit(const pc_score *score) {
    for (int64_t i = 0; i < score->count; i++)
        if (score->rows[i].status == PC_SCORE_OUT_OF_MEMORY || score->rows[i].status == PC_SCORE_INFEASIBLE)
            return true;
    return false;
}

static int answer(score_command *c) {
    pc_error error = {0};
    pc_measured measured = {0}, conditions = {0};
    pc_score score = {0};
    pc_code code = pc_measured_read(c->path, say_bad, c, &measured, &error);
    if (!code && c->conditions) code = pc_measured_read(c->conditions, say_bad, c, &conditions, &error);
    if (!code) code = check(c, &measured, &error);
    if (!code && !c->is_quiet) say_unknown(&measured);
    if (!code) choose_by(c, &measured);
    if (!code) code = score_rows(c, &measured, &conditions, &score, &error);
    if (!code) code = write_all(c, &score, &error);
    int status = code ? report(&error) : c->any_bad || any_unfit(&score) ? EXIT_DID_NOT_FIT : EXIT_DONE;
    pc_score_free(&score);
    pc_measured_free(&conditions);
    pc_measured_free(&measured);
    return code ? status : finish_output(status);
}

/* ---- arguments ---- */

enum { OUTPUT, BY, CONDITIONS, FIGURE, DARK, FORMAT, SET, ALLOW_OUTSIDE, JOBS, QUIET, HELP };
static const option_spec option_specs[] = {
    {"output", 'o', "RESULTS.h5"}, {"by", 0, "COLUMN,..."},    {"conditions", 0, "RECIPES.csv"},
    {"figure", 0, "FILE"},         {"dark", 0, NULL},          {"format", 0, "FORMAT"},
    {"set", 0, "KEY=VALUE"},       {"allow-outside", 0, NULL}, {"jobs", 'j', "N"},
    {"quiet", 'q', NULL},          {"help", 'h', NULL},        {NULL, 0, NULL}};

static bool take_by(score_command *c, const char *value) {
    if (c->by_count == BY_MOST) {
        report_usage("--by: more than %d; expected fewer", BY_MOST);
        return false;
    }
    c->by[c->by_count++] = value;
    return true;
}

static bool take_path(score_command *c, const char *value) {
    if (c->path) report_usage("score: '%s' behind '%s'; expected one table", value, c->path);
    bool is_first = !c->path;
    c->path = value;
    return is_first;
}

static bool take_option(score_command *c, int option, const char *value) {
    switch (option) {
    case ARGUMENT_OPERAND:
        return take_path(c, value);
    case OUTPUT:
        c->output = value;
        return true;
    case BY:
        return take_by(c, value);
    case CONDITIONS:
        c->conditions = value;
        return true;
    case FIGURE:
        c->figure = value;
        return true;
    case DARK:
        return c->is_dark = true;
    case FORMAT:
        return argument_format("--format", value, &c->format);
    case SET:
        return run_sets_take(&c->sets, value);
    case ALLOW_OUTSIDE:
        c->allows_outside = true;
        return true;
    case JOBS:
        return argument_integer("--jobs", value, 1, JOBS_MAX, &c->jobs);
    case QUIET:
        c->is_quiet = true;
        return true;
    default:
        return false;
    }
}

int command_score(int argc, char **argv) {
    score_command c = {.format = PC_FORMAT_TABLE};
    arguments x = {.argc = argc, .argv = argv, .next = 1, .options = option_specs, .command = "score"};
    for (int option; (option = arguments_next(&x)) != ARGUMENT_END;) {
        if (option == HELP) {
            fputs(help, stdout);
            return finish_output(EXIT_DONE);
        }
        if (option == ARGUMENT_ERROR || !take_option(&c, option, x.value)) return EXIT_BAD_INPUT;
    }
    if (!c.path) return report_usage("score: no table; expected MEASURED.csv");
    if (c.is_dark && !c.figure) return report_usage("score: --dark: nothing is drawn; expected it with --figure FILE");
    return answer(&c);
}
