/* A search for plans, and its plans as runs. */
#include "api/plan_private.h"

#include "engine/alloc.h"

/* ---- its scenario ---- */

static pc_code load(const char *path, const pc_scenario_options *options, void *handle, pc_error *error) {
    pipecast_plan *made = handle;
    return pc_plan_scenario_load_with(path, options, &made->scenario, error);
}

int pipecast_plan_load(const char *path, const char *text, const char *const *sets, size_t set_count, int flags,
                       pipecast_plan **plan, pipecast_error *error) {
    int code;
    pipecast_plan *made = api_load(&(api_source){path, text, sets, set_count, flags, load}, sizeof *made, &code, error);
    if (made) *plan = made;
    return code;
}

void pipecast_plan_free(pipecast_plan *plan) {
    if (plan) pc_plan_scenario_free(plan->scenario);
    pc_free(plan);
}

/* ---- profiles ---- */

static pc_code open_profile(api_planning *planning, pc_run_spec *spec, pc_error *error) {
    api_lock();
    pc_code code = pc_run_profiles_open(&planning->profiles, spec, error);
    api_unlock();
    return code;
}

pc_code api_planning_use(api_planning *planning, pc_run_spec *spec, pc_error *error) {
    pc_code code = open_profile(planning, spec, error);
    if (!code) pc_run_profiles_use(&planning->profiles, spec);
    return code;
}

pc_code api_planning_open(pipecast_plan *plan, int threads, api_planning *planning, pc_error *error) {
    int count;
    pc_run_spec *bases = pc_plan_scenario_bases(plan->scenario, &count);
    *planning = (api_planning){.of = plan};
    pc_code code = api_check_threads(threads, error);
    for (int i = 0; i < count && !code; i++) code = open_profile(planning, &bases[i], error);
    if (code) return code;
    pc_run_spec *before = pc_alloc((size_t)count, sizeof *before);
    if (!before) return pc_error_no_memory(error);
    for (int i = 0; i < count; i++) {
        before[i] = bases[i];
        pc_run_profiles_use(&planning->profiles, &bases[i]);
    }
    planning->before = before;
    return PC_OK;
}

void api_planning_close(api_planning *planning) {
    int count;
    pc_run_spec *bases = pc_plan_scenario_bases(planning->of->scenario, &count);
    for (int i = 0; planning->before && i < count; i++) bases[i] = planning->before[i];
    pc_free(planning->before);
    pc_run_profiles_close(&planning->profiles);
}

/* ---- its runs ---- */

static pc_code run_plan(api_planning *planning, const pc_plan_found *found, int64_t index, pc_plan_row *plan,
                        pc_error *error) {
    pc_run_detail detail = {.devices = 0};
    pc_run_spec spec;
    pc_run_labels labels;
    plan->found = *found;
    pc_code code = pc_plan_scenario_run_spec(planning->of->scenario, &found->choice, index + 1, &spec, &labels, error);
    if (code) return code;
    code = api_planning_use(planning, &spec, error);
    spec.trace = false;
    if (!code) code = pc_plan_row_run(&spec, &labels, plan, &detail, error);
    pc_run_detail_free(&detail);
    pc_run_spec_free(&spec);
    return code;
}

static pc_code run_plans(api_planning *planning, const pc_plan_answer *answer, pipecast_results **results,
                         pc_error *error) {
    pc_plan_row *rows = pc_alloc((size_t)answer->count, sizeof *rows);
    pc_code code = rows ? PC_OK : pc_error_no_memory(error);
    for (int64_t i = 0; i < answer->count && !code; i++)
        code = run_plan(planning, &answer->found[i], i, &rows[i], error);
    if (!code) code = api_plan_table(planning->of, rows, answer->count, rows, results, error);
    pc_free(rows);
    return code;
}

/* ---- the search ---- */

void pipecast_plan_watch(pipecast_plan *plan, pipecast_stop *stop, void *context) {
    plan->stop = stop;
    plan->stop_context = context;
}

bool api_onlooker_stops(void *self) {
    const pipecast_plan *plan = ((const api_onlooker *)self)->plan;
    return plan->stop(plan->stop_context) != 0;
}

/* Without the phase: only the simulations are counted. */
static void say(void *self, pc_plan_phase phase, int64_t done, int64_t total) {
    const api_onlooker *of = self;
    if (phase == PC_PLAN_SIMULATION && of->progress) of->progress(of->context, done, total);
}

static pc_code find_plans(api_planning *planning, const pc_plan_request *request, pipecast_results **results,
                          pc_error *error) {
    pc_plan_answer answer = {.count = 0};
    pc_code code = pc_plan_run(pc_plan_scenario_space(planning->of->scenario), request, &answer, error);
    if (!code) code = run_plans(planning, &answer, results, error);
    pc_plan_answer_free(&answer);
    return code;
}

int pipecast_plan_run(pipecast_plan *plan, int threads, int flags, pipecast_progress *progress, void *context,
                      pipecast_results **results, pipecast_error *error) {
    pc_error why = {0};
    api_planning planning;
    api_onlooker looks = {progress, context, plan};
    pc_plan_request request = pc_plan_scenario_request(plan->scenario);
    request.threads = threads;
    request.all_variants = (flags & PIPECAST_ALL_VARIANTS) != 0;
    request.exhaustive = (flags & PIPECAST_EXHAUSTIVE) != 0;
    request.progress =
        (pc_plan_progress){.say = say, .self = &looks, .is_stopped = plan->stop ? api_onlooker_stops : NULL};
    if (flags & ~(PIPECAST_ALL_VARIANTS | PIPECAST_EXHAUSTIVE)) {
        pc_code code =
            pc_error_set(&why, PC_ERROR_INPUT, "flags: %d; expected PIPECAST_ALL_VARIANTS, PIPECAST_EXHAUSTIVE", flags);
        return api_answer(code, &why, error);
    }
    pc_code code = api_planning_open(plan, threads, &planning, &why);
    if (!code) code = find_plans(&planning, &request, results, &why);
    api_planning_close(&planning);
    return api_answer(code, &why, error);
}
