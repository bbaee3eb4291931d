#include "cli/plan_models.h"

#include "cli/cli.h"
#include "models/workload/model.h"

#include <stdio.h>
#include <string.h>

static int split(const char *text, plan_models *models) {
    for (const char *at = text;; at++) {
        size_t length = strcspn(at, ",");
        if (models->count == PLAN_MODELS_MOST)
            return report_usage("--model: more than %d models; expected fewer", PLAN_MODELS_MOST);
        if (length == 0 || length >= sizeof *models->name)
            return report_usage("--model: '%.80s': a name is missing or too long; expected names with commas between",
                                text);
        snprintf(models->name[models->count++], sizeof *models->name, "%.*s", (int)length, at);
        at += length;
        if (*at == '\0') return -1;
    }
}

static pc_code load(const plan_request *request, double *parameters, bool *has_goal, pc_error *error) {
    pc_plan_scenario *scenario = NULL;
    pc_parameters of;
    int count;
    pc_scenario_options options = {
        .sets = request->sets.list, .set_count = request->sets.count, .allows_outside = request->allows_outside};
    pc_code code = pc_plan_scenario_load_with(request->path, &options, &scenario, error);
    if (code) {
        run_flags_explain(request->sets.flags, request->sets.flag_count, error);
        return code;
    }
    pc_plan_goal goal = pc_plan_scenario_goal(scenario);
    *has_goal = goal.deadline_s > 0.0 || goal.budget > 0.0;
    code = pc_model_parameters(&pc_plan_scenario_bases(scenario, &count)->iteration.model, 1, &of, error);
    if (!code) *parameters = (double)of.total;
    pc_plan_scenario_free(scenario);
    return code;
}

static void swap(plan_models *models, int a, int b) {
    char name[sizeof *models->name];
    double parameters = models->parameters[a];
    memcpy(name, models->name[a], sizeof name);
    memcpy(models->name[a], models->name[b], sizeof name);
    memcpy(models->name[b], name, sizeof name);
    models->parameters[a] = models->parameters[b];
    models->parameters[b] = parameters;
}

/* The last one behind those that are larger. */
static void sort_in(plan_models *models, int last) {
    for (int at = last; at > 0 && at < PLAN_MODELS_MOST; at--)
        if (models->parameters[at] > models->parameters[at - 1]) swap(models, at, at - 1);
}

int plan_models_list(plan_request *request, plan_models *models) {
    *models = (plan_models){.count = 0};
    int status = split(request->models, models);
    for (int i = 0; i < models->count && status < 0; i++) {
        bool has_goal = false;
        pc_error error = {0};
        if (!plan_request_take_model(request, models->name[i])) return EXIT_BAD_INPUT;
        if (load(request, &models->parameters[i], &has_goal, &error)) status = report(&error);
        plan_request_drop_model(request);
        if (status < 0 && !has_goal)
            status =
                report_usage("--model: several; expected one, or --deadline or --budget, to which the largest keeps");
        if (status < 0) sort_in(models, i);
    }
    return status;
}
