/* What is asked of a plan beside its best ones. */
#include "api/plan_private.h"

#include "engine/alloc.h"
#include "scenarios/plan_axes.h"
#include "sweep/plan_questions.h"

#include <inttypes.h>
#include <stdio.h>

static void say_cells(void *self, int64_t done, int64_t total) {
    const api_onlooker *of = self;
    if (of->progress) of->progress(of->context, done, total);
}

static pc_plan_asker asker_of(api_planning *planning, int threads, api_onlooker *looks) {
    pc_plan_asker asker = {.scenario = planning->of->scenario,
                           .request = pc_plan_scenario_request(planning->of->scenario),
                           .profiles = &planning->profiles,
                           .say = say_cells,
                           .self = looks};
    asker.request.threads = threads;
    if (planning->of->stop)
        asker.request.progress = (pc_plan_progress){.self = looks, .is_stopped = api_onlooker_stops};
    return asker;
}

/* The cells as a table; numbered from 1, of the scenario that was asked. */
static pc_code tabulate(const pipecast_plan *plan, pc_plan_cells *cells, const pc_plan_row *best,
                        pipecast_results **results, pc_error *error) {
    for (int64_t i = 0; i < cells->count; i++) {
        pc_run_row *row = &cells->rows[i].row;
        row->run = i + 1;
        snprintf(row->scenario, sizeof row->scenario, "%s", pc_plan_scenario_name(plan->scenario));
    }
    pc_code code = api_plan_table(plan, cells->rows, cells->count, best, results, error);
    pc_plan_cells_free(cells);
    return code;
}

/* ---- of each value ---- */

static pc_code ask_each(const pc_plan_asker *asker, const char *text, pc_plan_part part, pc_plan_cells *cells,
                        pc_error *error) {
    pc_plan_axis axes[PC_PLAN_AXES_MOST];
    int count;
    pc_code code = pc_plan_axes_parse(asker->scenario, text, axes, &count, error);
    if (!code && part == PC_PLAN_PART_MAP && count != 2)
        code = pc_error_set(error, PC_ERROR_INPUT, "%.40s: one axis; expected two, such as tp,pp", text);
    if (code == PC_ERROR_INPUT) pc_error_place(error, "axes", 0, "");
    return code ? code : pc_plan_ask_each(asker, axes, count, part, cells, error);
}

static int answer_each(api_onlooker *looks, pc_plan_part part, const char *axes, int threads,
                       pipecast_results **results, pipecast_error *error) {
    pc_error why = {0};
    api_planning planning;
    pc_plan_cells cells;
    pipecast_plan *plan = (pipecast_plan *)looks->plan;
    pc_code code = api_planning_open(plan, threads, &planning, &why);
    if (!code) {
        const pc_plan_asker asker = asker_of(&planning, threads, looks);
        code = ask_each(&asker, axes, part, &cells, &why);
        if (!code) code = tabulate(plan, &cells, NULL, results, &why);
    }
    api_planning_close(&planning);
    return api_answer(code, &why, error);
}

int pipecast_plan_each(pipecast_plan *plan, const char *axes, int threads, pipecast_progress *progress, void *context,
                       pipecast_results **results, pipecast_error *error) {
    api_onlooker looks = {progress, context, plan};
    return answer_each(&looks, PC_PLAN_PART_EACH, axes, threads, results, error);
}

int pipecast_plan_map(pipecast_plan *plan, const char *axes, int threads, pipecast_progress *progress, void *context,
                      pipecast_results **results, pipecast_error *error) {
    api_onlooker looks = {progress, context, plan};
    return answer_each(&looks, PC_PLAN_PART_MAP, axes, threads, results, error);
}

/* ---- the fewest GPUs ---- */

static pc_code ask_goal(const pc_plan_asker *asker, pc_plan_cells *cells, pc_error *error) {
    const pc_plan_goal goal = pc_plan_scenario_goal(asker->scenario);
    if (goal.deadline_s > 0.0 || goal.budget > 0.0) return pc_plan_ask_goal(asker, &goal, cells, error);
    return pc_error_set(error, PC_ERROR_INPUT, "plan: neither deadline nor budget; expected one of them at least");
}

int pipecast_plan_goal(pipecast_plan *plan, int threads, pipecast_progress *progress, void *context,
                       pipecast_results **results, pipecast_error *error) {
    pc_error why = {0};
    api_planning planning;
    api_onlooker looks = {progress, context, plan};
    pc_plan_cells cells;
    pc_code code = api_planning_open(plan, threads, &planning, &why);
    if (!code) {
        const pc_plan_asker asker = asker_of(&planning, threads, &looks);
        code = ask_goal(&asker, &cells, &why);
        if (!code) code = tabulate(plan, &cells, NULL, results, &why);
    }
    api_planning_close(&planning);
    return api_answer(code, &why, error);
}

/* ---- what becomes of plans ---- */

static pc_code check_plans(const pipecast_plan *plan, const pipecast_results *plans, pc_error *error) {
    bool are_its = plans->plan && plans->planned_by == plan;
    if (are_its && (plans->row_count == 0 || plans->plan[0].plan.part == PC_PLAN_PART_PLANS)) return PC_OK;
    return pc_error_set(error, PC_ERROR_INPUT, "plans: not of this plan; expected what pipecast_plan_run gave");
}

static pc_code check_row(const pipecast_plan *plan, const pipecast_results *plans, int64_t row, int flags,
                         pc_error *error) {
    if (flags & ~PIPECAST_ANEW) return pc_error_set(error, PC_ERROR_INPUT, "flags: %d; expected PIPECAST_ANEW", flags);
    pc_code code = check_plans(plan, plans, error);
    if (code || (row >= 0 && row < plans->row_count)) return code;
    return pc_error_set(error, PC_ERROR_INPUT, "row: %" PRId64 "; expected a plan's, 0 to %" PRId64, row,
                        plans->row_count - 1);
}

int pipecast_plan_sensitivity(pipecast_plan *plan, const pipecast_results *plans, int64_t row, int threads, int flags,
                              pipecast_progress *progress, void *context, pipecast_results **results,
                              pipecast_error *error) {
    pc_error why = {0};
    api_planning planning;
    api_onlooker looks = {progress, context, plan};
    pc_plan_cells cells;
    pc_code code = check_row(plan, plans, row, flags, &why);
    if (code) return api_answer(code, &why, error);
    code = api_planning_open(plan, threads, &planning, &why);
    if (!code) {
        const pc_plan_row *best = &plans->plan[row].plan;
        const pc_plan_asker asker = asker_of(&planning, threads, &looks);
        code = pc_plan_ask_changes(&asker, best, (flags & PIPECAST_ANEW) != 0, &cells, &why);
        if (!code) code = tabulate(plan, &cells, best, results, &why);
    }
    api_planning_close(&planning);
    return api_answer(code, &why, error);
}

static pc_code ask_mix(const pc_plan_asker *asker, const pipecast_results *plans, const char *text,
                       pc_plan_cells *cells, pc_error *error) {
    pc_plan_mix mix;
    pc_plan_row *rows = pc_alloc((size_t)plans->row_count, sizeof *rows);
    pc_code code = rows ? pc_plan_mix_parse(text, &mix, error) : pc_error_no_memory(error);
    for (int64_t i = 0; i < plans->row_count && !code; i++) rows[i] = plans->plan[i].plan;
    if (!code) code = pc_plan_ask_mix(asker, &mix, rows, plans->row_count, cells, error);
    if (code == PC_ERROR_INPUT) pc_error_place(error, "mix", 0, "");
    pc_free(rows);
    return code;
}

int pipecast_plan_mix(pipecast_plan *plan, const pipecast_results *plans, const char *mix, int threads,
                      pipecast_progress *progress, void *context, pipecast_results **results, pipecast_error *error) {
    pc_error why = {0};
    api_planning planning;
    api_onlooker looks = {progress, context, plan};
    pc_plan_cells cells;
    pc_code code = check_plans(plan, plans, &why);
    if (code) return api_answer(code, &why, error);
    code = api_planning_open(plan, threads, &planning, &why);
    if (!code) {
        const pc_plan_asker asker = asker_of(&planning, threads, &looks);
        code = ask_mix(&asker, plans, mix, &cells, &why);
        if (!code) code = tabulate(plan, &cells, NULL, results, &why);
    }
    api_planning_close(&planning);
    return api_answer(code, &why, error);
}
