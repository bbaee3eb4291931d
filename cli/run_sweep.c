#include "cli/run_sweep.h"

#include "cli/cli.h"
#include "cli/interrupt.h"
#include "cli/run_profiles.h"
#include "cli/scenario_charts.h"
#include "cli/utilisation.h"
#include "engine/alloc.h"
#include "engine/parallel.h"
#include "scenarios/run_key.h"
#include "results/store/store.h"
#include "scenarios/scenario.h"
#include "sweep/batch.h"
#include "sweep/ranks.h"
#include "sweep/sweep.h"
#include "sweep/sweep_files.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

/* All that is going on. Of a run of ours (0 .. count - 1) there are the hashes of what it is made of and of its labels,
 * and in the plan where its result is; 40 bytes. */
typedef struct session {
    const run_request *request;
    ranks *ranks;
    interrupt interrupt;
    pc_scenario **scenarios;
    int64_t *first_run; /* a number a scenario, and one more: the runs before it */
    run_profiles profiles;
    int64_t count; /* of our shard */
    pc_run_key *keys;
    uint64_t *labels;
    sweep_files files;
    sweep plan;
    progress bar;
    pc_search_memo *memo; /* of all runs */
    int64_t to_do;        /* when it began; the plan is made anew when all is done */
    _Atomic int64_t done;
    bool any_unfit;
    utilisation used;
} session;

/* ---- scenarios ---- */

static pc_code load_scenarios(session *s, pc_error *error) {
    const run_request *r = s->request;
    pc_scenario_options options = {r->sets.list, r->sets.count, r->allows_outside};
    s->scenarios = pc_alloc((size_t)r->path_count, sizeof(pc_scenario *));
    s->first_run = pc_alloc((size_t)r->path_count + 1, sizeof *s->first_run);
    if (!s->scenarios || !s->first_run) return pc_error_no_memory(error);
    for (int i = 0; i < r->path_count; i++) {
        pc_code code = pc_scenario_load_with(r->paths[i], &options, &s->scenarios[i], error);
        if (code) return run_flags_explain(r->sets.flags, r->sets.flag_count, error), code;
        if (r->paths[i]) code = scenario_charts_check(r->paths[i], s->scenarios[i], error);
        if (code) return code;
        s->first_run[i + 1] = s->first_run[i] + pc_scenario_run_count(s->scenarios[i]);
    }
    return PC_OK;
}

static pc_code refuse_own_scenario(const run_request *r, pc_error *error) {
    pc_code code = PC_OK;
    for (int i = 0; r->output && i < r->path_count && !code; i++)
        if (r->paths[i]) code = refuse_same_file(r->paths[i], r->output, "the scenario", error);
    return code;
}

/* ---- runs ---- */

static int64_t total_of(const session *s) {
    return s->first_run[s->request->path_count];
}

/* Shard I of N has the runs I-1, I-1+N, ...: neighbours, which cost about the same, go to different shards. */
static int64_t run_of(const run_request *r, int64_t index) {
    return r->shard - 1 + index * r->shard_count;
}

static int64_t share_of(const run_request *r, int64_t total) {
    return total < r->shard ? 0 : (total - r->shard) / r->shard_count + 1;
}

static int scenario_of(const session *s, int64_t run) {
    int i = 0;
    while (run >= s->first_run[i + 1]) i++;
    return i;
}

/* Before the first run starts: a profile that cannot be used is found now. */
static pc_code open_profiles(session *s, pc_error *error) {
    pc_code code = PC_OK;
    for (int64_t index = 0; index < s->count && !code; index++) {
        int64_t run = run_of(s->request, index);
        int i = scenario_of(s, run);
        pc_run_spec spec;
        pc_run_labels labels;
        if (!pc_scenario_has_profiles(s->scenarios[i])) continue;
        code = pc_scenario_run_spec(s->scenarios[i], run - s->first_run[i], &spec, &labels, error);
        if (code) break;
        code = run_profiles_open(&s->profiles, &spec, error);
        pc_run_spec_free(&spec);
    }
    return code;
}

/* Of our run `index`. */
static pc_code make_spec(const session *s, int64_t index, pc_run_spec *spec, pc_run_labels *labels, pc_error *error) {
    int64_t run = run_of(s->request, index);
    int i = scenario_of(s, run);
    pc_code code = pc_scenario_run_spec(s->scenarios[i], run - s->first_run[i], spec, labels, error);
    if (code) return code;
    run_profiles_use(&s->profiles, spec);
    labels->run = run + 1;
    return PC_OK;
}

/* ---- what is to be done ---- */

/* Of one worker: the first run, of those that it came by, that cannot be made. */
typedef struct key_fault {
    int64_t run;
    pc_error error;
} key_fault;

typedef struct key_work {
    session *session;
    key_fault *faults; /* one a worker */
} key_work;

static void make_key(void *context, int worker, int64_t index) {
    const key_work *work = context;
    const session *s = work->session;
    pc_run_spec spec;
    pc_run_labels labels;
    pc_error error = {0};
    if (!make_spec(s, index, &spec, &labels, &error)) {
        s->keys[index] = pc_run_key_of(&spec);
        s->labels[index] = pc_run_labels_hash(&labels);
        pc_run_spec_free(&spec);
    } else if (!work->faults[worker].error.code || index < work->faults[worker].run) {
        work->faults[worker] = (key_fault){index, error};
    }
}

static int jobs_of(const session *s) {
    return s->request->jobs > 0 ? (int)s->request->jobs : ranks_default_jobs(s->ranks);
}

static pc_code make_keys(session *s, pc_error *error) {
    int threads = jobs_of(s);
    key_work work = {.session = s, .faults = pc_alloc((size_t)threads, sizeof *work.faults)};
    s->keys = pc_alloc((size_t)s->count, sizeof *s->keys);
    s->labels = pc_alloc((size_t)s->count, sizeof *s->labels);
    if (!work.faults || !s->keys || !s->labels) {
        pc_free(work.faults);
        return pc_error_no_memory(error);
    }
    pc_parallel_run(threads, s->count, make_key, &work);
    const key_fault *first = &work.faults[0];
    for (int i = 1; i < threads; i++) {
        const key_fault *fault = &work.faults[i];
        if (fault->error.code && (!first->error.code || fault->run < first->run)) first = fault;
    }
    pc_code code = first->error.code;
    if (code) pc_error_set(error, code, "%s", first->error.message);
    pc_free(work.faults);
    return code;
}

/* Where results are, and what is to be done. */
static pc_code look_around(session *s, pc_error *error) {
    pc_code code = sweep_files_collect(&s->files, error);
    sweep_free(&s->plan);
    if (code) return code;
    return sweep_plan(s->keys, s->count, s->files.keys, s->files.count, &s->plan, error);
}

/* All ranks wait for each other where one reads what another writes. */
static pc_code agree(session *s, pc_code code, pc_error *error) {
    return ranks_agree(s->ranks, code, error);
}

static bool is_first(const session *s) {
    return ranks_number(s->ranks) == 0;
}

static pc_code open_files(session *s, pc_error *error) {
    const run_request *r = s->request;
    pc_code code = refuse_own_scenario(r, error);
    if (!code && !r->output && ranks_count(s->ranks) > 1)
        code = pc_error_set(error, PC_ERROR_INPUT, "-o: expected with several ranks, which share results by files");
    if (!code)
        code = sweep_files_open(&s->files, r->output, ranks_number(s->ranks), ranks_count(s->ranks), r->is_fresh,
                                r->is_quiet, error);
    return agree(s, code, error);
}

/* Nobody starts before all have the same plan: what one adds to its journal would be in another's. */
static pc_code make_plan(session *s, pc_error *error) {
    pc_code code = is_first(s) ? sweep_files_collect(&s->files, error) : PC_OK;
    if (!code && is_first(s)) code = sweep_files_take_over(&s->files, s->keys, s->count, error);
    code = agree(s, code, error);
    if (!code) code = agree(s, look_around(s, error), error);
    return code;
}

/* ---- doing it ---- */

/* Of fewer runs than threads each has several, for its replicas and samples. */
static int threads_of_a_run(const session *s) {
    int64_t threads = jobs_of(s) / s->plan.to_do_count;
    return threads > 1 ? (int)threads : 1;
}

static pc_code make_run(void *context, int64_t index, pc_run_spec *spec, pc_run_labels *labels, pc_error *error) {
    const session *s = context;
    pc_code code = make_spec(s, s->plan.to_do[index], spec, labels, error);
    if (code) return code;
    spec->iteration.threads = threads_of_a_run(s);
    spec->memo = spec->iteration.memo = s->memo;
    spec->trace = spec->trace && s->request->output;
    return PC_OK;
}

static pc_code take_result(void *context, const pc_run_spec *spec, const pc_run_row *row, const pc_run_detail *detail,
                           pc_error *error) {
    session *s = context;
    int64_t index = (row->run - s->request->shard) / s->request->shard_count;
    pc_schedule shape = {.devices = spec->devices,
                         .microbatches = spec->microbatches,
                         .chunks = spec->chunks,
                         .placement = spec->generator->placement};
    snprintf(shape.name, sizeof shape.name, "%s", spec->generator->name);
    pc_run_row kept = *row;
    pc_run_key_text(s->keys[index], kept.key); /* also of a trace that was asked for and has no file to go to */
    pc_code code = pc_journal_add(s->files.own, s->keys[index], s->labels[index], &kept, &shape,
                                  spec->trace ? detail : NULL, error);
    s->done++;
    progress_step(&s->bar);
    return code;
}

/* Where somebody looks on, and not all is to be done. */
static void say_plan(const session *s) {
    int64_t repeats = s->plan.count - s->plan.to_do_count - s->plan.done_count;
    if (s->request->is_quiet || !isatty(STDERR_FILENO) || s->plan.to_do_count == s->count) return;
    fprintf(stderr,
            "pipecast: of %" PRId64 " runs %" PRId64 " done before, %" PRId64 " equal to another, %" PRId64 " to do\n",
            s->count, s->plan.done_count, repeats, s->plan.to_do_count);
}

static void say_interrupted(void *context) {
    session *s = context;
    progress_stop(&s->bar);
    if (!s->request->output) return; /* nothing is kept */
    fprintf(stderr, "pipecast: interrupted: %" PRId64 " of %" PRId64 " runs to do are done%s and kept in ", s->done,
            s->to_do, ranks_count(s->ranks) > 1 ? " by the first rank" : "");
    print_plain(stderr, s->files.path);
    fprintf(stderr, ".journal; the same command goes on\n");
}

static pc_code run_all(session *s, pc_error *error) {
    const run_request *r = s->request;
    s->to_do = s->plan.to_do_count;
    pc_code code = agree(s, pc_search_memo_create(PC_SEARCH_MEMO_BYTES, &s->memo, error), error);
    if (code) return code;
    if (is_first(s)) say_plan(s);
    progress_start(&s->bar, s->plan.to_do_count, r->is_quiet || !is_first(s));
    if (is_first(s) && (r->output || s->bar.is_shown)) {
        if (!s->interrupt.is_blocked) interrupt_block(&s->interrupt);
        interrupt_watch(&s->interrupt, say_interrupted, s);
    }
    if (!s->interrupt.is_watched) interrupt_end(&s->interrupt);
    code = ranks_run(s->ranks, s->plan.to_do_count, jobs_of(s), make_run, take_result, s, error);
    progress_end(&s->bar);
    if (!code) code = pc_journal_sync(s->files.own, error);
    return agree(s, code, error);
}

/* ---- results ---- */

/* The row of our run `index`: from its record, with its own number and labels, whoever wrote the record. */
static pc_code read_row(const session *s, int64_t index, pc_run_row *row, pc_error *error) {
    int64_t place = s->plan.place[index];
    pc_code code = sweep_files_row(&s->files, place, row, error);
    if (code) return code;
    if (sweep_files_labels(&s->files, place) == s->labels[index] && row->run == run_of(s->request, index) + 1)
        return PC_OK;
    pc_run_spec spec;
    pc_run_labels labels;
    code = make_spec(s, index, &spec, &labels, error);
    if (code) return code;
    pc_run_row_relabel(&spec, &labels, row);
    pc_run_spec_free(&spec);
    return PC_OK;
}

static pc_code write_row(session *s, pc_results_writer *writer, int64_t index, pc_error *error) {
    pc_run_row row;
    pc_trace_record record = {0};
    pc_code code = read_row(s, index, &row, error);
    if (!code) code = sweep_files_trace(&s->files, s->plan.place[index], &record, error);
    if (code) return code;
    pc_schedule shape = pc_trace_record_schedule(&record, row.schedule);
    pc_run_detail detail = pc_trace_record_detail(&record);
    code = pc_results_add_run(writer, &row, &shape, record.devices > 0 ? &detail : NULL, error);
    pc_trace_record_free(&record);
    return code;
}

static pc_code write_results(session *s, pc_error *error) {
    pc_results_writer *writer;
    pc_code code = pc_results_create(s->request->output, &writer, error);
    if (code) return code;
    pc_results_guard(writer, &s->files.standing);
    code = pc_results_set_sweep_runs(writer, total_of(s), error);
    for (int i = 0; i < s->request->path_count && !code; i++) {
        size_t size;
        const char *text = pc_scenario_text(s->scenarios[i], &size);
        code = pc_results_add_scenario(writer, pc_scenario_name(s->scenarios[i]), text, size, error);
    }
    for (int64_t i = 0; i < s->count && !code; i++) code = write_row(s, writer, i, error);
    if (!code) return pc_results_commit(writer, error);
    pc_results_discard(writer);
    return code;
}

static pc_code give_row(void *context, int64_t index, pc_run_row *row, pc_error *error) {
    session *s = context;
    pc_code code = read_row(s, index, row, error);
    s->any_unfit = s->any_unfit || (!code && row->status != PC_RUN_OK);
    if (!code) utilisation_note(&s->used, index, row);
    return code;
}

static void note_assumed(const session *s, look_notes *notes) {
    pc_model_assumed list[PC_ASSUMED_MAX];
    int files = s->request->path_count;
    for (int i = 0; i < files; i++)
        look_note_assumed(notes, list, pc_scenario_assumed(s->scenarios[i], list),
                          files > 1 || pc_scenario_has_models(s->scenarios[i]));
}

/* Runs that fit, by the way in which they were worked out. */
static pc_code count_ways(const session *s, int64_t count[PC_ENGINE_WAYS], pc_error *error) {
    pc_run_row row;
    for (int64_t i = 0; i < s->count; i++) {
        pc_code code = read_row(s, i, &row, error);
        if (code) return code;
        for (int way = 0; way < PC_ENGINE_WAYS; way++)
            count[way] += row.status == PC_RUN_OK && strcmp(row.engine, pc_engine_way_name((pc_engine_way)way)) == 0;
    }
    return PC_OK;
}

static pc_code note_engine(const session *s, look_notes *notes, pc_error *error) {
    int64_t count[PC_ENGINE_WAYS] = {0};
    int ways = 0;
    pc_code code = count_ways(s, count, error);
    for (int way = 0; way < PC_ENGINE_WAYS; way++) ways += count[way] > 0;
    for (int way = 0; !code && way < PC_ENGINE_WAYS; way++)
        if (count[way] > 0 && ways == 1)
            look_note(notes, "engine: %s", pc_engine_way_words((pc_engine_way)way));
        else if (count[way] > 0)
            look_note(notes, "engine, %" PRId64 " run%s: %s", count[way], count[way] > 1 ? "s" : "",
                      pc_engine_way_words((pc_engine_way)way));
    return code;
}

static pc_code print_table(session *s, pc_error *error) {
    const run_request *r = s->request;
    const char *swept[PC_SCENARIO_SWEPT_MAX];
    look_notes notes = {.count = 0};
    note_assumed(s, &notes);
    pc_code code = r->format == PC_FORMAT_TABLE ? note_engine(s, &notes, error) : PC_OK;
    if (code) return code;
    pc_table_look look = look_of(&r->look, &notes);
    look.swept = swept;
    look.names_repeat = r->path_count == 1 && pc_scenario_only_sweeps(s->scenarios[0], swept, &look.swept_count);
    return pc_table_write_from(give_row, s, s->count, r->format, &look, stdout, error);
}

/* Something else has come to the file's place, or that is gone: the journal has all runs. */
static pc_code say_kept(const session *s, pc_code code, pc_error *error) {
    size_t used = strlen(error->message);
    if (code != PC_ERROR_INPUT) return code;
    snprintf(error->message + used, sizeof error->message - used, "; its runs are kept in %s.journal", s->files.path);
    pc_error_make_plain(error->message + used);
    return code;
}

/* By the first rank, for all. The journals are there until the results file is. If another file has come to its place,
 * what was asked for is still printed. */
static pc_code finish(session *s, pc_error *error) {
    pc_code code = is_first(s) ? look_around(s, error) : PC_OK;
    bool is_made = !code && is_first(s);
    if (is_made && s->request->output) code = say_kept(s, write_results(s, error), error);
    code = agree(s, code, error);
    if (code == PC_ERROR_INPUT && is_made) print_table(s, NULL);
    if (code) return code;
    if (is_first(s)) code = print_table(s, error);
    sweep_files_remove(&s->files);
    return code;
}

/* ---- all of it ---- */

static void close_session(session *s) {
    interrupt_end(&s->interrupt);
    sweep_free(&s->plan);
    sweep_files_close(&s->files);
    run_profiles_close(&s->profiles);
    pc_search_memo_free(s->memo);
    for (int i = 0; s->scenarios && i < s->request->path_count; i++) pc_scenario_free(s->scenarios[i]);
    pc_free(s->scenarios);
    pc_free(s->first_run);
    pc_free(s->keys);
    pc_free(s->labels);
    ranks_close(s->ranks);
}

static pc_code do_all(session *s, pc_error *error) {
    pc_code code = load_scenarios(s, error);
    if (!code) s->count = share_of(s->request, total_of(s));
    if (!code) code = open_profiles(s, error);
    if (!code) code = make_keys(s, error);
    code = agree(s, code, error);
    if (!code) code = open_files(s, error);
    if (!code) code = make_plan(s, error);
    if (!code) code = run_all(s, error);
    return code ? code : finish(s, error);
}

static void warn(const session *s) {
    pc_run_spec spec;
    pc_run_labels labels;
    run_profiles_warn(&s->profiles);
    if (s->used.over.count == 0 || make_spec(s, s->used.most, &spec, &labels, &(pc_error){0})) return;
    utilisation_warn(&s->used, "run", &spec.iteration);
    pc_run_spec_free(&spec);
}

/* All ranks fail with one message, which the first says. */
static int status_of(const session *s, pc_code code, const pc_error *error) {
    if (code && !s->ranks) return report(error);
    if (code) return ranks_report(s->ranks, error);
    return is_first(s) ? finish_output(s->any_unfit ? EXIT_DID_NOT_FIT : EXIT_DONE) : EXIT_DONE;
}

int run_sweep(const run_request *r) {
    pc_error error = {0};
    session s = {.request = r};
    interrupt_block(&s.interrupt); /* for the threads that MPI starts */
    pc_code code = ranks_open(&s.ranks, &error);
    if (ranks_count(s.ranks) <= 1) interrupt_end(&s.interrupt);
    if (!code) code = do_all(&s, &error);
    int status = status_of(&s, code, &error);
    if (!code && !r->is_quiet && is_first(&s)) warn(&s);
    close_session(&s);
    return status;
}
