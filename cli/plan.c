/* pipecast plan: the best ways to train a model on a cluster. */
#include "cli/cli.h"
#include "cli/interrupt.h"
#include "cli/plan_job.h"
#include "cli/plan_means.h"
#include "cli/plan_merge.h"
#include "cli/plan_models.h"
#include "cli/plan_nearest.h"
#include "cli/plan_parts.h"
#include "cli/plan_request.h"
#include "cli/utilisation.h"

#include "engine/alloc.h"
#include "results/plan_table.h"
#include "results/store/store.h"
#include "scenarios/import/megatron_write.h"
#include "scenarios/import/torchtitan_write.h"
#include "sweep/run_profiles.h"
#include "sweep/sweep_files.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

/* All that is going on. */
typedef struct session {
    const plan_request *request;
    pc_plan_scenario *scenario;
    pc_run_profiles searched, planned; /* those of all points; and again of the plans, for what these have to say */
    plan_means means;
    plan_parts parts;         /* what else was asked */
    const pc_plan_row *least; /* of a goal; NULL: nobody asked, or nothing keeps to it */
    pc_plan_space space;      /* that is searched: the scenario's, or its part with `least` */
    pc_plan_answer answer;
    pc_results_writer *writer;      /* NULL if no file is wanted */
    pc_plan_row *rows;              /* one a plan; owns the commands */
    plan_job *jobs;                 /* likewise, if -o names files of another program; else NULL */
    char rule[PC_PLAN_REASON_SIZE]; /* to blame for points that broke one; empty if none did */
} session;

static pc_code load_scenario(session *s, pc_error *error) {
    const plan_request *r = s->request;
    pc_scenario_options options = {
        .sets = r->sets.list, .set_count = r->sets.count, .allows_outside = r->allows_outside};
    pc_code code = pc_plan_scenario_load_with(r->path, &options, &s->scenario, error);
    if (code) run_flags_explain(r->sets.flags, r->sets.flag_count, error);
    return code;
}

static pc_code open_profiles(session *s, pc_error *error) {
    int count;
    pc_run_spec *bases = pc_plan_scenario_bases(s->scenario, &count);
    pc_code code = PC_OK;
    for (int i = 0; i < count && !code; i++) code = pc_run_profiles_open(&s->searched, &bases[i], error);
    for (int i = 0; i < count && !code; i++) pc_run_profiles_use(&s->searched, &bases[i]);
    return code;
}

static pc_plan_shares *shares_of(const session *s) {
    return s->request->shares;
}

/* All shares of a plan are there, and answer what is asked. */
static bool is_merged(const session *s) {
    return shares_of(s) && !pc_plan_shares_records(shares_of(s));
}

static pc_plan_request wanted(const session *s) {
    pc_plan_request request = pc_plan_scenario_request(s->scenario);
    plan_means_give(&s->means, s->request, &request);
    request.all_variants = s->request->wants_variants;
    return request;
}

static void say_progress(void *self, pc_plan_phase phase, int64_t done, int64_t total) {
    progress_at(self, done, total, phase == PC_PLAN_BOUNDS ? "shapes" : "plans");
}

/* "14.03 s: tp 2, pp 2, dp 128, v-adaptive" */
static void say_better(void *self, const pc_plan_found *best) {
    const pc_plan_choice *choice = &best->choice;
    char note[80];
    snprintf(note, sizeof note, "%.4g s: tp %d, pp %d, dp %d, %.24s", best->iteration_s, choice->tp, choice->pp,
             choice->dp, choice->generator->name);
    progress_note(self, note);
}

typedef struct looker {
    progress bar;
    const plan_means *means;
} looker;

static void say_interrupted(void *context) {
    looker *x = context;
    progress_stop(&x->bar);
    plan_means_say_interrupted(x->means);
}

static pc_code search(session *s, pc_error *error) {
    pc_plan_request request = wanted(s);
    const pc_plan_goal goal = pc_plan_scenario_goal(s->scenario);
    if (s->least) pc_plan_goal_limit(s->scenario, &goal, &s->space, &request);
    looker looks = {.means = &s->means};
    interrupt signals = {.is_blocked = false};
    bool is_first = plan_means_is_first(&s->means);
    progress_start(&looks.bar, 1, s->request->is_quiet || !is_first);
    if (looks.bar.is_shown)
        request.progress = (pc_plan_progress){.say = say_progress, .better = say_better, .self = &looks.bar};
    if (looks.bar.is_shown || (is_first && s->means.file)) {
        interrupt_block(&signals); /* for the threads of the search */
        interrupt_watch(&signals, say_interrupted, &looks);
    }
    pc_code code = pc_plan_shares_ask(shares_of(s), &s->space, &request, &s->answer, error);
    interrupt_end(&signals);
    progress_end(&looks.bar);
    ptrdiff_t first = s->space.bases - pc_plan_scenario_space(s->scenario)->bases;
    for (int64_t i = 0; i < s->answer.count && !code; i++) s->answer.found[i].choice.base += (int)first;
    return code;
}

static bool has_goal(const session *s) {
    pc_plan_goal goal = pc_plan_scenario_goal(s->scenario);
    return goal.deadline_s > 0.0 || goal.budget > 0.0;
}

/* What a goal was asked for is planned on the GPUs that keep to it. */
static void choose_space(session *s) {
    s->space = *pc_plan_scenario_space(s->scenario);
    if (!s->least) return;
    const pc_plan_choice *choice = &s->least->found.choice;
    s->space.gpus = (pc_plan_list){&choice->gpus, 1};
    s->space.bases += choice->base;
    s->space.base_count = 1;
}

static pc_code search_space(session *s, pc_error *error) {
    if (has_goal(s) && s->request->shard_count > 0)
        return pc_error_set(error, PC_ERROR_INPUT,
                            "plan: --shard beside a deadline or a budget: no share knows on how few GPUs the others "
                            "keep to it; expected --each gpus, which shows that, or these of the plan of all");
    pc_code code = plan_parts_before(s->request, s->scenario, &s->means, &s->planned, &s->parts, &s->least, error);
    if (code) return code;
    choose_space(s);
    return has_goal(s) && !s->least ? PC_OK : search(s, error);
}

static pc_code find_rule(session *s, pc_error *error) {
    const pc_plan_space *space = &s->space;
    pc_plan_remedy remedy;
    if (s->answer.log.broken_rule == 0) return PC_OK;
    pc_code code = pc_plan_find_remedy(space, &s->answer.log, &remedy, error);
    if (!code) pc_plan_rule_text(space, &s->answer.log, &remedy, s->rule);
    return code;
}

/* ---- the plans as runs ---- */

static bool writes_jobs(const session *s) {
    return s->request->writer && s->request->output && plan_job_is_file(s->request->output);
}

static pc_code open_results(session *s, pc_error *error) {
    size_t size;
    pc_standing standing;
    const char *path = s->request->path, *output = s->request->output;
    if (!output || pc_team_rank(s->means.team) > 0) return PC_OK;
    pc_code code = path ? refuse_same_file(path, output, "the scenario", error) : PC_OK;
    if (!code && writes_jobs(s)) return plan_job_check(output, error);
    if (!code) code = pc_sweep_files_check_target(output, &standing, error);
    if (!code) code = pc_results_create(output, &s->writer, error);
    if (code) return code;
    pc_results_guard(s->writer, &standing);
    const char *text = pc_plan_scenario_text(s->scenario, &size);
    return pc_results_add_scenario(s->writer, pc_plan_scenario_name(s->scenario), text, size, error);
}

static pc_code keep_run(session *s, const pc_run_spec *spec, const pc_run_row *row, const pc_run_detail *detail,
                        pc_error *error) {
    if (!s->writer) return PC_OK;
    pc_schedule shape = {.devices = spec->devices,
                         .microbatches = spec->microbatches,
                         .chunks = spec->chunks,
                         .placement = pc_generator_placement(spec->generator, spec->chunks, spec->slices)};
    snprintf(shape.name, sizeof shape.name, "%s", spec->generator->name);
    return pc_results_add_run(s->writer, row, &shape, spec->trace ? detail : NULL, error);
}

/* A row without a trace, of a plan or of none. */
static pc_code keep_row(session *s, const pc_plan_row *row, pc_error *error) {
    pc_schedule shape = {.devices = 1, .microbatches = 1, .chunks = 1, .placement = PC_PLACEMENT_LINEAR};
    if (!s->writer) return PC_OK;
    snprintf(shape.name, sizeof shape.name, "%.60s", row->row.schedule);
    return pc_results_add_run(s->writer, &row->row, &shape, NULL, error);
}

static pc_code name_job(session *s, int64_t index, const pc_run_spec *spec, const pc_run_detail *detail,
                        pc_error *error) {
    plan_job *job = &s->jobs[index];
    pc_code code = plan_job_name(s->request->output, index, job, error);
    if (code || s->request->writer != PLAN_WRITES_TORCHTITAN) return code;
    return plan_job_take_order(spec, &s->rows[index].row, detail, job, error);
}

static pc_code run_plan(session *s, int64_t index, pc_error *error) {
    pc_plan_row *plan = &s->rows[index];
    pc_run_detail detail = {.devices = 0};
    pc_run_spec spec;
    pc_run_labels labels;
    char *command;
    plan->found = s->answer.found[index];
    pc_code code = pc_plan_scenario_run_spec(s->scenario, &plan->found.choice, index + 1, &spec, &labels, error);
    if (code) return code;
    code = pc_run_profiles_open(&s->planned, &spec, error);
    if (!code) pc_run_profiles_use(&s->planned, &spec);
    spec.trace = (spec.trace && s->writer) || s->jobs;
    if (!code) code = pc_plan_row_run(&spec, &labels, plan, &detail, error);
    if (!code && s->jobs) code = name_job(s, index, &spec, &detail, error);
    if (!code) code = keep_run(s, &spec, &plan->row, &detail, error);
    pc_run_detail_free(&detail);
    pc_run_spec_free(&spec);
    if (!code) code = plan_request_command(s->request, s->scenario, &plan->found.choice, &command, error);
    if (!code) plan->command = command;
    return code;
}

static pc_code run_plans(session *s, pc_error *error) {
    pc_code code = PC_OK;
    s->rows = pc_alloc((size_t)s->answer.count, sizeof *s->rows);
    if (writes_jobs(s)) s->jobs = pc_alloc((size_t)s->answer.count, sizeof *s->jobs);
    if (!s->rows || (writes_jobs(s) && !s->jobs)) return pc_error_no_memory(error);
    for (int64_t i = 0; i < s->answer.count && !code; i++) code = run_plan(s, i, error);
    return code;
}

static pc_code keep_parts(session *s, pc_error *error) {
    int64_t run = s->answer.count;
    pc_code code = PC_OK;
    for (int i = 0; i < s->parts.count; i++)
        for (int64_t k = 0; k < s->parts.list[i].count && !code; k++) {
            pc_plan_row *row = &s->parts.list[i].rows[k];
            row->row.run = ++run;
            snprintf(row->row.scenario, sizeof row->row.scenario, "%s", pc_plan_scenario_name(s->scenario));
            code = keep_row(s, row, error);
        }
    return code;
}

static pc_code ask_parts(session *s, pc_error *error) {
    pc_code code =
        plan_parts_after(s->request, s->scenario, &s->means, &s->planned, s->rows, s->answer.count, &s->parts, error);
    return code ? code : keep_parts(s, error);
}

static pc_code commit_results(session *s, pc_error *error) {
    pc_results_writer *writer = s->writer;
    s->writer = NULL;
    return writer ? pc_results_commit(writer, error) : PC_OK;
}

/* The machines whose energy nobody knows, beside days that are known. */
static void note_energy(const pc_plan_row *rows, int64_t count, look_notes *notes) {
    for (int64_t i = 0; i < count; i++) {
        const pc_run_row *row = &rows[i].row;
        if (isnan(row->training_days) || !isnan(row->training_mwh)) continue;
        look_note(notes, "no energy of %s: the file of its GPU has no power; --watts says what a GPU takes",
                  row->machine);
    }
}

static void note_all(const session *s, look_notes *notes) {
    note_energy(s->rows, s->answer.count, notes);
    for (int i = 0; i < s->parts.count; i++) note_energy(s->parts.list[i].rows, s->parts.list[i].count, notes);
    if (pc_plan_scenario_shares_price(s->scenario))
        look_note(notes, "one price, for a GPU-hour of every machine; --price 2.50/h,1.20/h says one for each");
}

static pc_code print_plans(const session *s, pc_error *error) {
    pc_model_assumed assumed;
    char import[PC_IMPORT_NOTE_SIZE];
    look_notes notes = {.count = 0};
    look_note_assumed(&notes, &assumed, pc_plan_scenario_assumed(s->scenario, &assumed), false);
    if (pc_plan_scenario_import_note(s->scenario, import)) look_note(&notes, "%s", import);
    if (s->request->shard_count > 0)
        look_note(&notes, "share %" PRId64 " of %" PRId64 " of the cuts%s", s->request->shard, s->request->shard_count,
                  s->request->wants_changes || s->request->mix ? "; what is asked of the best plans waits for the merge"
                                                               : "");
    note_all(s, &notes);
    pc_plan_report report = {.scenario = pc_plan_scenario_name(s->scenario),
                             .rows = s->rows,
                             .count = s->answer.count,
                             .parts = s->parts.list,
                             .part_count = s->parts.count,
                             .goal = pc_plan_scenario_goal(s->scenario),
                             .request = wanted(s),
                             .rule = s->rule[0] ? s->rule : NULL,
                             .log = s->answer.log,
                             .look = look_of(&s->request->look, &notes)};
    pc_code code = pc_plan_table_write(&report, s->request->format, stdout, error);
    if (code == PC_ERROR_IO) pc_error_place(error, "standard output", 0, "");
    return code;
}

static void warn_of_schedule(int64_t index, const pc_run_spec *spec) {
    char line[256];
    const char *nearest = pc_megatron_nearest_schedule(spec);
    if (!nearest) return;
    snprintf(line, sizeof line,
             "plan %" PRId64 ": Megatron-LM does not have the schedule %s: with these arguments it runs %s, its "
             "nearest; `--schedule 1f1b,1f1b-interleaved` plans with what it has",
             index + 1, spec->generator->name, nearest);
    say_warning(NULL, line);
}

static pc_code write_plan(session *s, int64_t index, pc_text *text, pc_error *error) {
    pc_run_spec spec;
    pc_run_labels labels;
    const pc_plan_row *plan = &s->rows[index];
    pc_code code = pc_plan_scenario_run_spec(s->scenario, &plan->found.choice, index + 1, &spec, &labels, error);
    if (code) return code;
    pc_text_printf(text, "%s# plan %" PRId64 ": %.4g s an iteration on %" PRId64 " GPUs of %s\n# %s\n",
                   text->size > 0 ? "\n" : "", index + 1, plan->row.iteration_s, spec.gpus, labels.machine,
                   plan->command);
    code = pc_run_profiles_open(&s->planned, &spec, error);
    if (!code) pc_run_profiles_use(&s->planned, &spec);
    if (!code && s->request->writer == PLAN_WRITES_MEGATRON)
        code = pc_megatron_write(&spec, text, error);
    else if (!code)
        pc_torchtitan_write(&spec, s->jobs ? s->jobs[index].csv_name : NULL, text);
    if (!code && s->request->writer == PLAN_WRITES_MEGATRON && !s->request->is_quiet) warn_of_schedule(index, &spec);
    pc_run_spec_free(&spec);
    return !code && text->failed ? pc_error_no_memory(error) : code;
}

static pc_code write_job(session *s, int64_t index, pc_error *error) {
    pc_text text = {.data = NULL};
    pc_code code = write_plan(s, index, &text, error);
    if (!code) code = plan_job_save(&s->jobs[index], &text, error);
    pc_text_free(&text);
    return code;
}

/* The plans as another program takes them, the best first. */
static pc_code write_plans(session *s, pc_error *error) {
    pc_text text = {.data = NULL};
    pc_code code = PC_OK;
    for (int64_t i = 0; i < s->answer.count && !code; i++)
        code = s->jobs ? write_job(s, i, error) : write_plan(s, i, &text, error);
    if (!code && text.size > 0) (void)fwrite(text.data, 1, text.size, stdout); /* finish_output looks at the stream */
    pc_text_free(&text);
    return code;
}

/* How long it took, for who waited for it. */
static void say_seconds(const session *s) {
    const pc_plan_log *log = &s->answer.log;
    if (s->request->is_quiet || is_merged(s) || !isatty(STDERR_FILENO)) return;
    fprintf(stderr, "pipecast: %" PRId64 " points: %.1f s of bounds, %.1f s of simulation\n", log->points, log->bound_s,
            log->simulate_s);
}

static void close_session(session *s, bool is_complete) {
    for (int64_t i = 0; s->rows && i < s->answer.count; i++) pc_free((char *)s->rows[i].command);
    for (int64_t i = 0; s->jobs && i < s->answer.count; i++) plan_job_free(&s->jobs[i]);
    pc_results_discard(s->writer);
    pc_plan_answer_free(&s->answer);
    plan_parts_free(&s->parts);
    plan_means_close(&s->means, is_complete);
    pc_run_profiles_close(&s->searched);
    pc_run_profiles_close(&s->planned);
    pc_plan_scenario_free(s->scenario);
    pc_free(s->jobs);
    pc_free(s->rows);
}

static void warn(const session *s) {
    utilisation used = {.last = 0};
    pc_run_spec spec;
    pc_run_labels labels;
    pc_run_profiles_warn(&s->planned, say_warning, NULL);
    for (int64_t i = 0; i < s->answer.count; i++) utilisation_note(&used, i, &s->rows[i].row);
    if (used.over.count == 0) return;
    const pc_plan_choice *most = &s->rows[used.most].found.choice;
    if (pc_plan_scenario_run_spec(s->scenario, most, used.run, &spec, &labels, &(pc_error){0})) return;
    utilisation_warn(&used, "plan", &spec.iteration);
    pc_run_spec_free(&spec);
}

/* The first rank looks at the results file before the search, which may take long, and is not to be in vain. */
static pc_code prepare(session *s, pc_error *error) {
    pc_code code = load_scenario(s, error);
    if (!code) code = open_profiles(s, error);
    if (!code) code = open_results(s, error);
    code = pc_team_agree(s->means.team, code, error);
    if (!code) code = plan_means_open(s->request, s->scenario, s->means.team, &s->means, error);
    if (!code) pc_plan_shares_use(shares_of(s), s->means.kept);
    return code;
}

static pc_code answer_questions(session *s, pc_error *error) {
    pc_code code = find_rule(s, error);
    if (!code) code = run_plans(s, error);
    return code ? code : ask_parts(s, error);
}

/* By the first rank. A results file that cannot come to its place is the one error with which there is a table. */
static pc_code give_answer(session *s, bool *is_complete, pc_error *error) {
    pc_code code = s->writer && pc_plan_shares_records(shares_of(s))
                       ? pc_plan_shares_write(shares_of(s), s->writer, error)
                       : PC_OK;
    if (!code) code = commit_results(s, error);
    *is_complete = !code || code == PC_ERROR_INPUT;
    if (code == PC_ERROR_INPUT) print_plans(s, NULL); /* another file stands where the results should: beside it */
    if (code) return code;
    return s->request->writer ? write_plans(s, error) : print_plans(s, error);
}

static const char *goal_words(const session *s) {
    pc_plan_goal goal = pc_plan_scenario_goal(s->scenario);
    if (!(goal.budget > 0.0)) return "the deadline";
    return goal.deadline_s > 0.0 ? "the deadline and the budget" : "the budget";
}

static void say_none(const session *s) {
    if (s->answer.count > 0 || s->request->shard_count > 0) return;
    if (has_goal(s)) {
        report_usage("plan: no plan that was tried keeps to %s", goal_words(s));
        return;
    }
    pc_plan_request request = wanted(s);
    request.crew = (pc_plan_crew){.size = 0};
    plan_nearest_say(pc_plan_scenario_space(s->scenario), &request, &s->answer.log, s->rule);
}

/* The answer's exit status. All ranks fail with one message, which the first says; of the others launchers are to see
 * nothing bad. */
static int finish(session *s, pc_code code, bool *is_complete, pc_error *error) {
    if (!plan_means_is_first(&s->means)) return EXIT_DONE;
    if (!code) code = give_answer(s, is_complete, error);
    bool is_done = s->answer.count > 0 || s->request->shard_count > 0;
    int status = code ? report(error) : finish_output(is_done ? EXIT_DONE : EXIT_DID_NOT_FIT);
    if (code) return status;
    say_none(s);
    if (!s->request->is_quiet) warn(s);
    say_seconds(s);
    return status;
}

/* With `passes_on` a goal that nothing keeps to is the next model's: it is said, and nothing else. */
static int answer_request(const plan_request *r, pc_team *team, bool *passes_on) {
    pc_error error = {0};
    session s = {.request = r, .means.team = team};
    bool is_complete = false;
    pc_code code = prepare(&s, &error);
    if (!code) code = search_space(&s, &error);
    if (passes_on) *passes_on = !code && !s.least;
    if (passes_on && *passes_on) {
        close_session(&s, false);
        return EXIT_DONE;
    }
    if (!code) code = answer_questions(&s, &error);
    int status = finish(&s, code, &is_complete, &error);
    close_session(&s, is_complete);
    return status;
}

/* The answer of the largest model that keeps to the goal, or the last one's. */
static int answer_models(plan_request *r, pc_team *team) {
    plan_models models;
    int status = plan_models_list(r, &models);
    bool passes_on = true;
    for (int i = 0; i < models.count && status < 0; i++) {
        bool is_last = i + 1 == models.count;
        if (!plan_request_take_model(r, models.name[i])) return EXIT_BAD_INPUT;
        int answered = answer_request(r, team, is_last ? NULL : &passes_on);
        if (is_last || !passes_on)
            status = answered;
        else if (!r->is_quiet && pc_team_rank(team) == 0)
            report_usage("plan: %s: no plan that was tried keeps to what was asked", models.name[i]);
        plan_request_drop_model(r);
    }
    return status;
}

/* Several processes that a launcher started work on one search. */
static int answer(plan_request *r) {
    pc_error error = {0};
    pc_team *team;
    int status = EXIT_DONE;
    pc_code code = pc_team_open(&team, &error);
    if (!code)
        status = r->models ? answer_models(r, team) : answer_request(r, team, NULL);
    else if (pc_team_rank(team) == 0)
        status = report(&error);
    pc_team_close(team);
    return status;
}

static int answer_share(plan_request *r) {
    pc_error error = {0};
    if (pc_plan_shares_record(r->shard, r->shard_count, r->words.data, &r->shares, &error)) return report(&error);
    int status = answer(r);
    pc_plan_shares_free(r->shares);
    return status;
}

int command_plan(int argc, char **argv) {
    plan_request r = {.path = NULL};
    int status = plan_request_parse(argc, argv, &r);
    if (status < 0) status = r.shard_count > 0 && r.output ? answer_share(&r) : answer(&r);
    plan_request_free(&r);
    return status;
}

int plan_answer_merged(pc_plan_shares *shares, int argc, char **argv) {
    plan_request r = {.path = NULL};
    int status = plan_request_parse_words(pc_plan_shares_words(shares), argc, argv, &r);
    r.shares = shares;
    if (status < 0) status = answer_request(&r, NULL, NULL);
    plan_request_free(&r);
    return status;
}
