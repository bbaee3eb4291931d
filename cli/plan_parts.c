#include "cli/plan_parts.h"

#include "cli/cli.h"
#include "cli/interrupt.h"
#include "engine/alloc.h"
#include "scenarios/plan_axes.h"

#include <string.h>

static void say_cells(void *self, int64_t done, int64_t total) {
    progress_at(self, done, total, "cells");
}

static void take_bar_back(void *bar) {
    progress_stop(bar);
}

/* Who asks, with a bar that is started and ended beside a question. */
typedef struct asking {
    pc_plan_asker asker;
    progress bar;
    interrupt signals;
} asking;

static void start(const plan_request *request, pc_plan_scenario *scenario, const plan_means *means,
                  pc_run_profiles *profiles, asking *one) {
    *one = (asking){.signals = {.is_blocked = false}};
    one->asker = (pc_plan_asker){.scenario = scenario,
                                 .request = pc_plan_scenario_request(scenario),
                                 .shares = request->shares,
                                 .profiles = profiles,
                                 .asks_each = request->each != NULL,
                                 .say = say_cells,
                                 .self = &one->bar};
    plan_means_give(means, request, &one->asker.request);
    progress_start(&one->bar, 1, request->is_quiet || !plan_means_is_first(means));
    if (!one->bar.is_shown) return;
    interrupt_block(&one->signals);
    interrupt_watch(&one->signals, take_bar_back, &one->bar);
}

static void end(asking *one) {
    interrupt_end(&one->signals);
    progress_end(&one->bar);
}

/* The command of each row that is a run of the scenario. */
static pc_code add_commands(const plan_request *request, const pc_plan_scenario *scenario, pc_plan_cells *cells,
                            pc_error *error) {
    pc_code code = PC_OK;
    for (int64_t i = 0; i < cells->count && !code; i++) {
        pc_plan_row *row = &cells->rows[i];
        char *command = NULL;
        if (row->lacks_plan || cells->part == PC_PLAN_PART_SENSITIVITY || cells->part == PC_PLAN_PART_MIX) continue;
        code = plan_request_command(request, scenario, &row->found.choice, &command, error);
        row->command = command;
    }
    return code;
}

/* `code` is that of the question; its cells are the next part. */
static pc_code take(const plan_request *request, const pc_plan_scenario *scenario, pc_code code, plan_parts *parts,
                    pc_error *error) {
    if (code) return code;
    return add_commands(request, scenario, &parts->list[parts->count++], error);
}

static bool has_goal(const pc_plan_goal *goal) {
    return goal->deadline_s > 0.0 || goal->budget > 0.0;
}

/* Puts the option in front of what is wrong with its value. */
static pc_code parse_axes(const pc_plan_scenario *scenario, const char *option, const char *text,
                          pc_plan_axis axes[PC_PLAN_AXES_MOST], int *count, pc_error *error) {
    pc_code code = pc_plan_axes_parse(scenario, text, axes, count, error);
    if (code) pc_error_place(error, option, 0, "");
    return code;
}

static pc_code check_axes(const plan_request *request, const pc_plan_scenario *scenario, pc_error *error) {
    pc_plan_axis axes[PC_PLAN_AXES_MOST];
    int count = 0;
    pc_plan_mix mix;
    pc_code code = request->mix ? pc_plan_mix_parse(request->mix, &mix, error) : PC_OK;
    if (code == PC_ERROR_INPUT) pc_error_place(error, "--seq-mix", 0, "");
    if (!code && request->each) code = parse_axes(scenario, "--each", request->each, axes, &count, error);
    if (!code && request->map) code = parse_axes(scenario, "--map", request->map, axes, &count, error);
    if (!code && request->map && count != 2) {
        code = pc_error_set(error, PC_ERROR_INPUT, "%.40s: one axis; expected two, such as tp,pp", request->map);
        pc_error_place(error, "--map", 0, "");
    }
    return code;
}

pc_code plan_parts_before(const plan_request *request, pc_plan_scenario *scenario, const plan_means *means,
                          pc_run_profiles *profiles, plan_parts *parts, const pc_plan_row **least, pc_error *error) {
    pc_plan_goal goal = pc_plan_scenario_goal(scenario);
    pc_code code = check_axes(request, scenario, error);
    *least = NULL;
    if (code || !has_goal(&goal)) return code;
    asking one;
    pc_plan_cells *cells = &parts->list[parts->count];
    start(request, scenario, means, profiles, &one);
    code = pc_plan_ask_goal(&one.asker, &goal, cells, error);
    end(&one);
    code = take(request, scenario, code, parts, error);
    int64_t found = code ? -1 : pc_plan_cells_least(cells, &goal);
    if (found >= 0) *least = &cells->rows[found];
    return code;
}

static pc_code ask_axes(const plan_request *request, const asking *one, const char *text, pc_plan_part part,
                        plan_parts *parts, pc_error *error) {
    pc_plan_axis axes[PC_PLAN_AXES_MOST];
    int count;
    if (!text) return PC_OK;
    pc_code code = pc_plan_axes_parse(one->asker.scenario, text, axes, &count, error);
    if (!code) code = pc_plan_ask_each(&one->asker, axes, count, part, &parts->list[parts->count], error);
    return take(request, one->asker.scenario, code, parts, error);
}

static pc_code ask_mix(const plan_request *request, const asking *one, const pc_plan_row *plans, int64_t count,
                       plan_parts *parts, pc_error *error) {
    pc_plan_mix mix;
    pc_plan_cells *cells = &parts->list[parts->count];
    pc_code code = pc_plan_mix_parse(request->mix, &mix, error);
    if (!code) code = pc_plan_ask_mix(&one->asker, &mix, plans, count, cells, error);
    if (code == PC_ERROR_INPUT) pc_error_place(error, "--seq-mix", 0, "");
    return take(request, one->asker.scenario, code, parts, error);
}

pc_code plan_parts_after(const plan_request *request, pc_plan_scenario *scenario, const plan_means *means,
                         pc_run_profiles *profiles, const pc_plan_row *plans, int64_t count, plan_parts *parts,
                         pc_error *error) {
    bool is_whole = request->shard_count == 0 && count > 0; /* a share's best plans may not be those of all */
    bool wants_changes = request->wants_changes && is_whole, wants_mix = request->mix && is_whole;
    if (!request->each && !request->map && !wants_changes && !wants_mix) return PC_OK;
    asking one;
    start(request, scenario, means, profiles, &one);
    pc_code code = ask_axes(request, &one, request->each, PC_PLAN_PART_EACH, parts, error);
    if (!code) code = ask_axes(request, &one, request->map, PC_PLAN_PART_MAP, parts, error);
    if (!code && wants_mix) code = ask_mix(request, &one, plans, count, parts, error);
    if (!code && wants_changes) {
        pc_plan_cells *cells = &parts->list[parts->count];
        code = take(request, scenario, pc_plan_ask_changes(&one.asker, plans, request->plans_anew, cells, error), parts,
                    error);
    }
    end(&one);
    return code;
}

void plan_parts_free(plan_parts *parts) {
    for (int i = 0; i < parts->count; i++) {
        for (int64_t k = 0; k < parts->list[i].count; k++) pc_free((char *)parts->list[i].rows[k].command);
        pc_plan_cells_free(&parts->list[i]);
    }
}
