#include "sweep/sweep.h"

#include "engine/alloc.h"
#include "engine/parallel.h"
#include "results/store/store.h"
#include "scenarios/run_key.h"
#include "sweep/agenda.h"
#include "sweep/run_profiles.h"
#include "sweep/sweep_files.h"
#include "sweep/team_private.h"

#include <stdio.h>
#include <string.h>

/* All that is going on. Of a run of ours (0 .. count - 1) there are the hashes of what it is made of and of its labels,
 * and in the agenda where its result is; 40 bytes. */
struct pc_sweep {
    pc_sweep_request request;
    pc_sweep_sink sink;
    int64_t *first_run; /* a number a scenario, and one more: the runs before it */
    pc_run_profiles profiles;
    int64_t count; /* of our shard */
    pc_run_key *keys;
    uint64_t *labels;
    pc_sweep_files files;
    pc_agenda agenda;
    pc_search_memo *memo; /* of all runs */
    pc_sweep_progress progress;
    bool is_complete; /* what is in the journals is in the results file */
};

/* ---- runs ---- */

static pc_code count_runs(pc_sweep *sweep, pc_error *error) {
    const pc_sweep_request *r = &sweep->request;
    sweep->first_run = pc_alloc((size_t)r->scenario_count + 1, sizeof *sweep->first_run);
    if (!sweep->first_run) return pc_error_no_memory(error);
    for (int i = 0; i < r->scenario_count; i++)
        sweep->first_run[i + 1] = sweep->first_run[i] + pc_scenario_run_count(r->scenarios[i]);
    return PC_OK;
}

static int64_t total_of(const pc_sweep *sweep) {
    return sweep->first_run[sweep->request.scenario_count];
}

/* Shard I of N has the runs I-1, I-1+N, ...: neighbours, which cost about the same, go to different shards. */
static int64_t run_of(const pc_sweep *sweep, int64_t index) {
    return sweep->request.shard - 1 + index * sweep->request.shard_count;
}

static int64_t index_of(const pc_sweep *sweep, int64_t run) {
    return (run - sweep->request.shard + 1) / sweep->request.shard_count;
}

static int64_t share_of(const pc_sweep_request *r, int64_t total) {
    return total < r->shard ? 0 : (total - r->shard) / r->shard_count + 1;
}

static int scenario_of(const pc_sweep *sweep, int64_t run) {
    int i = 0;
    while (run >= sweep->first_run[i + 1]) i++;
    return i;
}

/* Before the first run starts: a profile that cannot be used is found now. */
static pc_code open_profiles(pc_sweep *sweep, pc_error *error) {
    pc_code code = PC_OK;
    for (int64_t index = 0; index < sweep->count && !code; index++) {
        int64_t run = run_of(sweep, index);
        int i = scenario_of(sweep, run);
        const pc_scenario *scenario = sweep->request.scenarios[i];
        pc_run_spec spec;
        pc_run_labels labels;
        if (!pc_scenario_has_profiles(scenario)) continue;
        code = pc_scenario_run_spec(scenario, run - sweep->first_run[i], &spec, &labels, error);
        if (code) break;
        code = pc_run_profiles_open(&sweep->profiles, &spec, error);
        pc_run_spec_free(&spec);
    }
    return code;
}

pc_code pc_sweep_spec(const pc_sweep *sweep, int64_t index, pc_run_spec *spec, pc_run_labels *labels, pc_error *error) {
    int64_t run = run_of(sweep, index);
    int i = scenario_of(sweep, run);
    pc_code code = pc_scenario_run_spec(sweep->request.scenarios[i], run - sweep->first_run[i], spec, labels, error);
    if (code) return code;
    pc_run_profiles_use(&sweep->profiles, spec);
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
    const pc_sweep *sweep;
    key_fault *faults; /* one a worker */
} key_work;

static void make_key(void *context, int worker, int64_t index) {
    const key_work *work = context;
    const pc_sweep *sweep = work->sweep;
    pc_run_spec spec;
    pc_run_labels labels;
    pc_error error = {0};
    if (!pc_sweep_spec(sweep, index, &spec, &labels, &error)) {
        sweep->keys[index] = pc_run_key_of(&spec);
        sweep->labels[index] = pc_run_labels_hash(&labels);
        pc_run_spec_free(&spec);
    } else if (!work->faults[worker].error.code || index < work->faults[worker].run) {
        work->faults[worker] = (key_fault){index, error};
    }
}

static int jobs_of(const pc_sweep *sweep) {
    return sweep->request.jobs > 0 ? sweep->request.jobs : pc_team_default_jobs(sweep->request.team);
}

static pc_code make_keys(pc_sweep *sweep, pc_error *error) {
    int threads = jobs_of(sweep);
    key_work work = {.sweep = sweep, .faults = pc_alloc((size_t)threads, sizeof *work.faults)};
    sweep->keys = pc_alloc((size_t)sweep->count, sizeof *sweep->keys);
    sweep->labels = pc_alloc((size_t)sweep->count, sizeof *sweep->labels);
    if (!work.faults || !sweep->keys || !sweep->labels) {
        pc_free(work.faults);
        return pc_error_no_memory(error);
    }
    pc_parallel_run(threads, sweep->count, make_key, &work);
    const key_fault *first = &work.faults[0];
    for (int i = 1; i < threads; i++) {
        const key_fault *fault = &work.faults[i];
        if (fault->error.code && (!first->error.code || fault->run < first->run)) first = fault;
    }
    pc_code code = first->error.code;
    if (code) pc_error_copy(error, &first->error);
    pc_free(work.faults);
    return code;
}

/* Where results are, and what is to be done. */
static pc_code look_around(pc_sweep *sweep, pc_error *error) {
    pc_code code = pc_sweep_files_collect(&sweep->files, error);
    pc_agenda_free(&sweep->agenda);
    if (code) return code;
    return pc_agenda_make(sweep->keys, sweep->count, sweep->files.keys, sweep->files.count, &sweep->agenda, error);
}

/* All ranks wait for each other where one reads what another writes. */
static pc_code agree(const pc_sweep *sweep, pc_code code, pc_error *error) {
    return pc_team_agree(sweep->request.team, code, error);
}

static bool is_first(const pc_sweep *sweep) {
    return pc_team_rank(sweep->request.team) == 0;
}

static pc_code open_files(pc_sweep *sweep, pc_error *error) {
    const pc_sweep_request *r = &sweep->request;
    pc_code code = PC_OK;
    if (!r->output && pc_team_size(r->team) > 1)
        code = pc_error_set(error, PC_ERROR_INPUT, "output: expected with several ranks, which share results by files");
    if (!code) code = pc_sweep_files_open(&sweep->files, r, &sweep->sink, error);
    return agree(sweep, code, error);
}

/* Nobody starts before all have the same agenda: what one adds to its journal would be in another's. */
static pc_code make_agenda(pc_sweep *sweep, pc_error *error) {
    pc_code code = is_first(sweep) ? pc_sweep_files_collect(&sweep->files, error) : PC_OK;
    if (!code && is_first(sweep)) code = pc_sweep_files_take_over(&sweep->files, sweep->keys, sweep->count, error);
    code = agree(sweep, code, error);
    if (!code) code = agree(sweep, look_around(sweep, error), error);
    return code;
}

/* ---- doing it ---- */

static void say_progress(pc_sweep *sweep, pc_sweep_phase phase, const pc_run_row *row) {
    sweep->progress.phase = phase;
    sweep->progress.row = row;
    if (sweep->sink.progress) sweep->sink.progress(sweep->sink.context, &sweep->progress);
}

/* Of fewer runs than threads each has several, for its replicas and samples. */
static int threads_of_a_run(const pc_sweep *sweep) {
    int64_t threads = jobs_of(sweep) / sweep->agenda.to_do_count;
    return threads > 1 ? (int)threads : 1;
}

static pc_code make_run(void *context, int64_t index, pc_run_spec *spec, pc_run_labels *labels, pc_error *error) {
    const pc_sweep *sweep = context;
    if (sweep->sink.is_stopped && sweep->sink.is_stopped(sweep->sink.context))
        return pc_error_set(error, PC_ERROR_STOPPED, "stopped before all runs were done");
    pc_code code = pc_sweep_spec(sweep, sweep->agenda.to_do[index], spec, labels, error);
    if (code) return code;
    spec->iteration.threads = threads_of_a_run(sweep);
    spec->memo = spec->iteration.memo = sweep->memo;
    spec->trace = spec->trace && (sweep->request.output || sweep->request.keeps_traces);
    return PC_OK;
}

static pc_code take_result(void *context, const pc_run_spec *spec, const pc_run_row *row, const pc_run_detail *detail,
                           pc_error *error) {
    pc_sweep *sweep = context;
    int64_t index = index_of(sweep, row->run - 1);
    pc_schedule shape = {.devices = spec->devices,
                         .microbatches = spec->microbatches,
                         .chunks = spec->chunks,
                         .placement = pc_generator_placement(spec->generator, spec->chunks, spec->slices)};
    snprintf(shape.name, sizeof shape.name, "%s", spec->generator->name);
    pc_run_row kept = *row;
    pc_run_key_text(sweep->keys[index], kept.key); /* also of a trace that was asked for and has no file to go to */
    pc_code code = pc_journal_add(sweep->files.own, sweep->keys[index], sweep->labels[index], &kept, &shape,
                                  spec->trace ? detail : NULL, error);
    sweep->progress.done++;
    if (!code) say_progress(sweep, PC_SWEEP_RUNS, &kept);
    return code;
}

static pc_code run_all(pc_sweep *sweep, pc_error *error) {
    pc_code code = agree(sweep, pc_search_memo_create(PC_SEARCH_MEMO_BYTES, &sweep->memo, error), error);
    if (code) return code;
    sweep->progress = (pc_sweep_progress){.runs = sweep->count,
                                          .to_do = sweep->agenda.to_do_count,
                                          .done_before = sweep->agenda.done_count,
                                          .journal = pc_journal_path(sweep->files.own)};
    say_progress(sweep, PC_SWEEP_BEGINS, NULL);
    code = pc_team_run(sweep->request.team, sweep->agenda.to_do_count, jobs_of(sweep), make_run, take_result, sweep,
                       error);
    say_progress(sweep, PC_SWEEP_WRITES, NULL);
    if (!code) code = pc_journal_sync(sweep->files.own, error);
    return agree(sweep, code, error);
}

/* ---- results ---- */

int64_t pc_sweep_row_count(const pc_sweep *sweep) {
    return is_first(sweep) ? sweep->count : 0;
}

/* From its record, with its own number and labels, whoever wrote the record. */
pc_code pc_sweep_row(const pc_sweep *sweep, int64_t index, pc_run_row *row, pc_error *error) {
    int64_t place = sweep->agenda.place[index];
    pc_code code = pc_sweep_files_row(&sweep->files, place, row, error);
    if (code) return code;
    if (pc_sweep_files_labels(&sweep->files, place) == sweep->labels[index] && row->run == run_of(sweep, index) + 1)
        return PC_OK;
    pc_run_spec spec;
    pc_run_labels labels;
    code = pc_sweep_spec(sweep, index, &spec, &labels, error);
    if (code) return code;
    pc_run_row_relabel(&spec, &labels, row);
    pc_run_spec_free(&spec);
    return PC_OK;
}

pc_code pc_sweep_trace(const pc_sweep *sweep, int64_t index, pc_trace_record *record, pc_error *error) {
    return pc_sweep_files_trace(&sweep->files, sweep->agenda.place[index], record, error);
}

static pc_code write_row(const pc_sweep *sweep, pc_results_writer *writer, int64_t index, pc_error *error) {
    pc_run_row row;
    pc_trace_record record = {0};
    pc_code code = pc_sweep_row(sweep, index, &row, error);
    if (!code) code = pc_sweep_trace(sweep, index, &record, error);
    if (code) return code;
    pc_schedule shape = pc_trace_record_schedule(&record, row.schedule);
    pc_run_detail detail = pc_trace_record_detail(&record);
    code = pc_results_add_run(writer, &row, &shape, record.devices > 0 ? &detail : NULL, error);
    pc_trace_record_free(&record);
    return code;
}

static pc_code write_results(const pc_sweep *sweep, pc_error *error) {
    const pc_sweep_request *r = &sweep->request;
    pc_results_writer *writer;
    pc_code code = pc_results_create(r->output, &writer, error);
    if (code) return code;
    pc_results_guard(writer, &sweep->files.standing);
    code = pc_results_set_sweep_runs(writer, total_of(sweep), error);
    for (int i = 0; i < r->scenario_count && !code; i++) {
        size_t size;
        const char *text = pc_scenario_text(r->scenarios[i], &size);
        code = pc_results_add_scenario(writer, pc_scenario_name(r->scenarios[i]), text, size, error);
    }
    for (int64_t i = 0; i < sweep->count && !code; i++) code = write_row(sweep, writer, i, error);
    if (!code) return pc_results_commit(writer, error);
    pc_results_discard(writer);
    return code;
}

/* Something else has come to the file's place, or that is gone: the journal has all runs. */
static pc_code say_kept(const pc_sweep *sweep, pc_code code, pc_error *error) {
    if (code == PC_ERROR_INPUT) pc_error_note(error, "its runs are kept in %s.journal", sweep->files.path);
    return code;
}

/* By the first rank, for all. The journals are there until the results file is, and who wants the rows has had them. */
static pc_code finish(pc_sweep *sweep, bool *has_rows, pc_error *error) {
    pc_code code = is_first(sweep) ? look_around(sweep, error) : PC_OK;
    *has_rows = !code;
    if (*has_rows && is_first(sweep) && sweep->request.output)
        code = say_kept(sweep, write_results(sweep, error), error);
    code = agree(sweep, code, error);
    sweep->is_complete = !code;
    *has_rows = !code || (*has_rows && is_first(sweep) && code == PC_ERROR_INPUT);
    return code;
}

/* ---- all of it ---- */

static pc_code do_all(pc_sweep *sweep, bool *has_rows, pc_error *error) {
    pc_code code = count_runs(sweep, error);
    if (!code) sweep->count = share_of(&sweep->request, total_of(sweep));
    if (!code) code = open_profiles(sweep, error);
    if (!code) code = make_keys(sweep, error);
    code = agree(sweep, code, error);
    if (!code) code = open_files(sweep, error);
    if (!code) code = make_agenda(sweep, error);
    if (!code) code = run_all(sweep, error);
    return code ? code : finish(sweep, has_rows, error);
}

pc_code pc_sweep_run(const pc_sweep_request *request, const pc_sweep_sink *sink, pc_sweep **result, pc_error *error) {
    bool has_rows = false;
    pc_sweep *sweep = pc_alloc(1, sizeof *sweep);
    *result = NULL;
    if (!sweep) return pc_team_agree(request->team, pc_error_no_memory(error), error);
    sweep->request = *request;
    if (request->shard_count == 0) sweep->request.shard = sweep->request.shard_count = 1;
    if (sink) sweep->sink = *sink;
    pc_code code = do_all(sweep, &has_rows, error);
    if (has_rows)
        *result = sweep;
    else
        pc_sweep_free(sweep);
    return code;
}

void pc_sweep_warn(const pc_sweep *sweep, void (*warn)(void *context, const char *text), void *context) {
    pc_run_profiles_warn(&sweep->profiles, warn, context);
}

void pc_sweep_free(pc_sweep *sweep) {
    if (!sweep) return;
    if (sweep->is_complete) pc_sweep_files_remove(&sweep->files);
    pc_agenda_free(&sweep->agenda);
    pc_sweep_files_close(&sweep->files);
    pc_run_profiles_close(&sweep->profiles);
    pc_search_memo_free(sweep->memo);
    pc_free(sweep->first_run);
    pc_free(sweep->keys);
    pc_free(sweep->labels);
    pc_free(sweep);
}
