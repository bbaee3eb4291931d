#include "api/handles.h"

#include "engine/alloc.h"

#include <inttypes.h>
#include <limits.h>

enum { THREADS_MAX = 1024, SHARDS_MAX = 1 << 20 };

struct pipecast_sweep {
    pc_scenario **scenarios;
    int scenario_count;
    char *output;
    int threads;
    bool is_fresh;
    int64_t shard, shard_count;
    api_watcher watcher;
};

/* ---- what is wanted ---- */

pc_code api_check_threads(int threads, pc_error *error) {
    if (threads >= 0 && threads <= THREADS_MAX) return PC_OK;
    return pc_error_set(error, PC_ERROR_INPUT, "threads: %d; expected 0 to %d", threads, THREADS_MAX);
}

static pc_code create(const pipecast_scenario *const *scenarios, size_t count, pipecast_sweep **sweep,
                      pc_error *error) {
    if (count < 1 || count > INT_MAX)
        return pc_error_set(error, PC_ERROR_INPUT, "%zu scenarios; expected at least one", count);
    pipecast_sweep *made = pc_alloc(1, sizeof *made);
    pc_scenario **list = pc_alloc(count, sizeof *list);
    if (!made || !list) {
        pc_free(made);
        pc_free(list);
        return pc_error_no_memory(error);
    }
    for (size_t i = 0; i < count; i++) list[i] = scenarios[i]->scenario;
    *made = (pipecast_sweep){.scenarios = list, .scenario_count = (int)count};
    *sweep = made;
    return PC_OK;
}

int pipecast_sweep_create(const pipecast_scenario *const *scenarios, size_t count, pipecast_sweep **sweep,
                          pipecast_error *error) {
    pc_error why = {0};
    return api_answer(create(scenarios, count, sweep, &why), &why, error);
}

void pipecast_sweep_free(pipecast_sweep *sweep) {
    if (!sweep) return;
    pc_free(sweep->scenarios);
    pc_free(sweep->output);
    pc_free(sweep);
}

int pipecast_sweep_set_threads(pipecast_sweep *sweep, int threads, pipecast_error *error) {
    pc_error why = {0};
    pc_code code = api_check_threads(threads, &why);
    if (!code) sweep->threads = threads;
    return api_answer(code, &why, error);
}

int pipecast_sweep_set_output(pipecast_sweep *sweep, const char *path, int is_fresh, pipecast_error *error) {
    pc_error why = {0};
    char *copy = path ? pc_strdup(path) : NULL;
    if (path && !copy) return api_answer(pc_error_no_memory(&why), &why, error);
    pc_free(sweep->output);
    sweep->output = copy;
    sweep->is_fresh = is_fresh != 0;
    return PIPECAST_OK;
}

int pipecast_sweep_set_shard(pipecast_sweep *sweep, int64_t shard, int64_t shard_count, pipecast_error *error) {
    pc_error why = {0};
    pc_code code = PC_OK;
    if (shard < 1 || shard > shard_count || shard_count > SHARDS_MAX)
        code = pc_error_set(&why, PC_ERROR_INPUT,
                            "shard %" PRId64 " of %" PRId64 "; expected one from 1 up, of at most %d", shard,
                            shard_count, SHARDS_MAX);
    if (!code) {
        sweep->shard = shard;
        sweep->shard_count = shard_count;
    }
    return api_answer(code, &why, error);
}

void pipecast_sweep_watch(pipecast_sweep *sweep, pipecast_progress *progress, pipecast_stop *stop, pipecast_warn *warn,
                          void *context) {
    sweep->watcher = (api_watcher){progress, stop, warn, context};
}

/* ---- while it runs ---- */

/* Simulations leave HDF5 to others. */
static void look_on(void *context, const pc_sweep_progress *at) {
    const api_watcher *watcher = context;
    if (at->phase == PC_SWEEP_BEGINS) api_unlock();
    if (at->phase != PC_SWEEP_WRITES && watcher->progress) watcher->progress(watcher->context, at->done, at->to_do);
    if (at->phase == PC_SWEEP_WRITES) api_lock();
}

void api_watcher_warn(void *watcher, const char *text) {
    const api_watcher *of = watcher;
    if (of->warn) of->warn(of->context, text);
}

bool api_watcher_is_stopped(void *watcher) {
    const api_watcher *of = watcher;
    return of->stop && of->stop(of->context) != 0;
}

/* ---- what came of it ---- */

/* Of a sweep in memory, which the results then keep for its traces. */
static pc_code take_rows(pc_sweep *done, pipecast_results **results, pc_error *error) {
    int64_t count = pc_sweep_row_count(done);
    pipecast_results *made = api_results_create(count);
    pc_run_row *rows = pc_alloc((size_t)count, sizeof *rows);
    pc_code code = made && rows ? PC_OK : pc_error_no_memory(error);
    for (int64_t i = 0; i < count && !code; i++) code = pc_sweep_row(done, i, &rows[i], error);
    if (code) {
        pc_free(rows);
        pipecast_results_free(made);
        return code;
    }
    api_results_take_runs(made, rows);
    made->sweep = done;
    *results = made;
    return PC_OK;
}

static pc_code run(pipecast_sweep *sweep, pc_sweep **done, pc_error *error) {
    pc_sweep_request request = {.scenarios = sweep->scenarios,
                                .scenario_count = sweep->scenario_count,
                                .output = sweep->output,
                                .keeps_traces = true,
                                .jobs = sweep->threads,
                                .shard = sweep->shard,
                                .shard_count = sweep->shard_count,
                                .is_fresh = sweep->is_fresh};
    pc_sweep_sink sink = {.context = &sweep->watcher,
                          .progress = look_on,
                          .warn = api_watcher_warn,
                          .is_stopped = api_watcher_is_stopped};
    pc_code code = pc_sweep_run(&request, &sink, done, error);
    if (!code) pc_sweep_warn(*done, api_watcher_warn, &sweep->watcher);
    return code;
}

int pipecast_sweep_run(pipecast_sweep *sweep, pipecast_results **results, pipecast_error *error) {
    pc_error why = {0};
    pc_sweep *done = NULL;
    api_lock();
    pc_code code = run(sweep, &done, &why);
    bool keeps = !code && !sweep->output;
    if (keeps) code = take_rows(done, results, &why);
    if (!keeps || code) pc_sweep_free(done);
    api_unlock();
    if (code || keeps) return api_answer(code, &why, error);
    return pipecast_results_open(sweep->output, results, error);
}

int pipecast_run(const char *const *sets, size_t set_count, int flags, pipecast_warn *say, void *context,
                 pipecast_results **results, pipecast_error *error) {
    pipecast_scenario *scenario = NULL;
    pipecast_sweep *sweep = NULL;
    int code = pipecast_scenario_load(NULL, NULL, sets, set_count, flags, &scenario, error);
    if (!code) code = pipecast_sweep_create((const pipecast_scenario *const[]){scenario}, 1, &sweep, error);
    if (sweep) code = pipecast_sweep_set_threads(sweep, 1, error);
    if (sweep && !code) {
        pipecast_sweep_watch(sweep, NULL, NULL, say, context);
        code = pipecast_sweep_run(sweep, results, error);
    }
    pipecast_sweep_free(sweep);
    pipecast_scenario_free(scenario);
    return code;
}

int pipecast_sweep_merge(const char *output, const char *const *shards, size_t count, pipecast_warn *say, void *context,
                         pipecast_error *error) {
    pc_error why = {0};
    if (count > INT_MAX) return api_answer(pc_error_no_memory(&why), &why, error);
    pc_sweep_merge_request request = {.output = output, .shards = shards, .shard_count = (int)count};
    pc_sweep_sink sink = {.context = context, .warn = say};
    api_lock();
    pc_code code = pc_sweep_merge(&request, &sink, &why);
    api_unlock();
    return api_answer(code, &why, error);
}
