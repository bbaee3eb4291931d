#include "sweep/tune.h"

#include "calib/tune/tune.h"
#include "engine/alloc.h"
#include "engine/numbers.h"
#include "engine/order.h"
#include "sweep/batch.h"
#include "sweep/run_profiles.h"
#include "sweep/team.h"
#include "sweep/tune_private.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- a forecast of all of them ---- */

static double value_at(pc_tuned which, double moved) {
    const pc_tuned_rule *rule = pc_tuned_rule_of(which);
    double by = moved * rule->width, value = rule->is_factor ? exp(by) : by;
    return pc_min(pc_max(value, rule->least), rule->most);
}

static void set_numbers(const pc_tune_session *s, const double *moved, pc_tuning *tuning) {
    for (int j = 0; j < s->numbers; j++) tuning->number[s->number[j]].value = value_at(s->number[j], moved[j]);
}

static void forget_costs(pc_tune_session *s) {
    for (int i = 0; i < s->machine_count; i++) {
        pc_profile_cost_free(s->machines[i].cost);
        s->machines[i].cost = NULL;
    }
}

static pc_code make_costs(pc_tune_session *s, pc_error *error) {
    pc_code code = PC_OK;
    for (int i = 0; i < s->machine_count && !code; i++) {
        pc_tried_machine *x = &s->machines[i];
        code = pc_profile_cost_make(&s->tried, &x->machine, &x->cost, error);
        if (!code) x->model = pc_profile_cost_model(x->cost);
    }
    return code;
}

static pc_code make_spec(void *context, int64_t index, pc_run_spec *spec, pc_run_labels *labels, pc_error *error) {
    const pc_tune_session *s = context;
    const pc_tune_configuration *x = &s->configurations[s->asked[index]];
    pc_code code = pc_scenario_run_spec(x->scenario, x->index, spec, labels, error);
    if (code) return code;
    pc_run_profile_apply(&s->tried, s->machines[x->machine].cost, &s->machines[x->machine].model, spec);
    labels->run = index;
    return PC_OK;
}

static pc_code take_row(void *context, const pc_run_spec *spec, const pc_run_row *found, const pc_run_detail *detail,
                        pc_error *error) {
    pc_tune_session *s = context;
    int64_t number = s->asked[found->run];
    (void)spec, (void)detail;
    if (found->status != PC_RUN_OK)
        return pc_error_refuse(error, s->score->measured->path, pc_tune_line_of(s, number), "",
                               "cannot be forecast with what is tried: %s", found->message);
    s->log_seconds[number] = log(found->iteration_s);
    return PC_OK;
}

static void ask_for(pc_tune_session *s, const bool *wanted) {
    int64_t last = s->configuration_count;
    bool is_asked;
    s->asked_count = 0;
    for (int64_t c = 0; c < last; c++) {
        is_asked = !wanted;
        for (int64_t i = 0; i < s->count && !is_asked; i++) is_asked = s->configuration_of[i] == c && wanted[i];
        if (is_asked) s->asked[s->asked_count++] = c;
    }
}

static pc_code forecast(void *self, const double *moved, const bool *wanted, double *log_seconds, pc_error *error) {
    pc_tune_session *s = self;
    int jobs = s->request->score.jobs > 0 ? s->request->score.jobs : pc_team_default_jobs(NULL);
    set_numbers(s, moved, &s->tried.tuning);
    ask_for(s, wanted);
    pc_code code = make_costs(s, error);
    if (!code) code = pc_batch_run(s->asked_count, jobs, make_spec, take_row, s, error);
    for (int64_t i = 0; i < s->count && !code; i++)
        if (!wanted || wanted[i]) log_seconds[i] = s->log_seconds[s->configuration_of[i]];
    forget_costs(s);
    return code;
}

/* ---- what it comes to ---- */

/* `residual`: log(forecast / measured); it is used up. */
static pc_tuning_errors errors_of(double *residual, int64_t count) {
    pc_tuning_errors errors = {0, 0, 0};
    for (int64_t i = 0; i < count; i++) {
        double error = exp(residual[i]) - 1.0;
        errors.bias += error / (double)count;
        errors.mean += fabs(error) / (double)count;
        residual[i] = fabs(error);
    }
    pc_sort_reals(residual, count);
    errors.median = pc_quantile_at(residual, count, 0.5);
    return errors;
}

/* Adds a source that is not there yet, as far as there is room. */
static void add_source(const char *source, char *all, size_t size) {
    size_t length = strlen(source), used = strlen(all);
    for (const char *at = strstr(all, source); at; at = strstr(at + 1, source))
        if ((at == all || at[-1] == ' ') && (at[length] == '\0' || at[length] == ';')) return;
    if (used + length + 3 <= size) snprintf(all + used, size - used, "%s%s", used ? "; " : "", source);
}

static void name_sources(const pc_tune_session *s, char *all, size_t size) {
    const pc_measured *m = s->score->measured;
    const char *slash = strrchr(m->path, '/');
    int column = pc_tune_find_column(m, "source");
    for (int64_t i = 0; i < s->count && column >= 0; i++) {
        const char *cell = m->cell[s->score->rows[s->rows[i]].row * m->column_count + column];
        if (cell[0]) add_source(cell, all, size);
    }
    if (!all[0]) snprintf(all, size, "%s", slash ? slash + 1 : m->path);
}

static void describe(const pc_tune_session *s, pc_tuning *tuning) {
    snprintf(tuning->pipecast, sizeof tuning->pipecast, "%s", s->request->version);
    snprintf(tuning->only, sizeof tuning->only, "%.*s", (int)sizeof tuning->only - 1, s->group->only);
    name_sources(s, tuning->source, sizeof tuning->source);
    if (s->request->base) {
        char hash[17];
        pc_profile_hash(s->base, hash);
        snprintf(tuning->base, sizeof tuning->base, "%s", hash);
    }
    tuning->rows = s->count;
    tuning->configurations = s->configuration_count;
    for (int why = 0; why < PC_TUNE_LEFT; why++) tuning->left_out += s->group->left[why];
    tuning->folds = s->folds;
}

static void conclude(const pc_tune_session *s, pc_tune_solution *solution, pc_tuning *tuning) {
    set_numbers(s, solution->moved, tuning);
    tuning->scatter = solution->scatter;
    for (int j = 0; j < s->numbers; j++) {
        pc_tuned_number *x = &tuning->number[s->number[j]];
        x->standard_error =
            solution->deviation[j] * x->prior_width * (pc_tuned_rule_of(s->number[j])->is_factor ? x->value : 1.0);
        x->is_fitted = true;
        x->is_determined = pc_tune_is_determined(solution->deviation[j]);
    }
    tuning->before = errors_of(solution->before, s->count);
    tuning->after = errors_of(solution->after, s->count);
    if (s->folds > 0) tuning->unseen = errors_of(solution->unseen, s->count);
}

static pc_code fit(pc_tune_session *s, pc_tuning *tuning, pc_error *error) {
    pc_tune_problem problem = {.numbers = s->numbers,
                               .count = s->count,
                               .log_measured = s->log_measured,
                               .configuration = s->configuration_of,
                               .configurations = s->configuration_count,
                               .fold = s->fold,
                               .folds = s->folds,
                               .forecast = forecast,
                               .self = s};
    double *residuals = pc_alloc(3 * (size_t)s->count, sizeof *residuals);
    if (!residuals) return pc_error_no_memory(error);
    pc_tune_solution solution = {
        .before = residuals, .after = residuals + s->count, .unseen = residuals + 2 * s->count};
    pc_code code = pc_tune_fit(&problem, &solution, error);
    if (!code) conclude(s, &solution, tuning);
    pc_free(residuals);
    return code;
}

/* ---- one group ---- */

/* A profile of nothing but a tuning is of the GPU that the runs were on. */
static void name_device(const pc_tune_session *s, pc_profile_device *device) {
    if (s->request->base) return;
    snprintf(device->gpu, sizeof device->gpu, "%s", s->machines[0].machine.gpu.name);
    snprintf(device->name, sizeof device->name, "%s", s->machines[0].machine.gpu.name);
    snprintf(device->origin, sizeof device->origin, "pipecast profile tune");
    snprintf(device->pipecast, sizeof device->pipecast, "%s", s->request->version);
    device->sm_clock_hz = NAN;
    device->is_complete = true;
}

static pc_code fit_group(const pc_tune_request *request, const pc_score *score, pc_tuned_group *group,
                         pc_error *error) {
    pc_profile base = {.kernel_count = 0};
    pc_tune_session s = {.request = request, .score = score, .base = &base, .group = group};
    pc_tuning tuning = pc_tuning_none();
    pc_code code = request->base ? pc_profile_read(request->base, &base, error) : PC_OK;
    if (!code) code = pc_tune_prepare(&s, error);
    if (!code) {
        name_device(&s, &base.device);
        s.tried = base;
        s.tried.tuning = tuning;
        describe(&s, &tuning);
        code = fit(&s, &tuning, error);
    }
    pc_tune_free_session(&s);
    if (code) {
        pc_profile_free(&base);
        return code;
    }
    group->profile = base;
    group->profile.tuning = tuning;
    return PC_OK;
}

/* ---- all of them ---- */

static pc_code check_base(const pc_tune_request *request, pc_error *error) {
    pc_profile base = {.kernel_count = 0};
    if (!request->base) return PC_OK;
    pc_code code = pc_profile_read(request->base, &base, error);
    if (!code && base.tuning.is_there) {
        code = pc_error_set(error, PC_ERROR_INPUT, "is tuned already; expected the profile that it was tuned over");
        pc_error_place(error, request->base, 0, "");
    }
    pc_profile_free(&base);
    return code;
}

/* "m.csv: 2 rows to fit to, 3 called out of memory; expected 3 at least" */
static pc_code refuse_few(const pc_tune_request *request, const pc_tune_result *result, pc_error *error) {
    int64_t most = 0, left[PC_TUNE_LEFT] = {0};
    char text[256] = "";
    for (int64_t i = 0; i < result->count; i++) {
        most = pc_max(most, result->groups[i].rows);
        for (int why = 0; why < PC_TUNE_LEFT; why++) left[why] += result->groups[i].left[why];
    }
    for (int why = 0; why < PC_TUNE_LEFT; why++) {
        size_t used = strlen(text);
        if (left[why] > 0)
            snprintf(text + used, sizeof text - used, ", %" PRId64 " %s", left[why],
                     pc_tune_left_name((pc_tune_left)why));
    }
    return pc_error_refuse(error, request->score.measured->path, 0, "",
                           "%" PRId64 " row%s to fit to%s%s; expected %d at least", most, most == 1 ? "" : "s",
                           request->by_count ? " in a group at most" : "", text, PC_TUNE_ROWS);
}

static pc_code fit_groups(const pc_tune_request *request, const pc_score *score, pc_tune_result *result,
                          pc_error *error) {
    bool any = false;
    pc_code code = pc_tune_find_groups(request, score, result, error);
    for (int64_t i = 0; i < result->count && !code; i++) {
        if (result->groups[i].rows < PC_TUNE_ROWS) continue;
        any = true;
        code = fit_group(request, score, &result->groups[i], error);
    }
    return code || any ? code : refuse_few(request, result, error);
}

/* The same rows, forecast over the base. */
static pc_code score_rows(const pc_tune_request *request, const pc_score_sink *sink, pc_score *score, char **set,
                          const char ***sets, pc_score_request *asked, pc_error *error) {
    size_t count = (size_t)request->score.set_count, size = request->base ? strlen(request->base) + 24 : 1;
    *asked = request->score;
    *set = pc_alloc(size, 1);
    *sets = pc_alloc(count + 1, sizeof **sets);
    if (!*set || !*sets) return pc_error_no_memory(error);
    if (count > 0) memcpy(*sets, request->score.sets, count * sizeof **sets);
    if (request->base) {
        snprintf(*set, size, "setting.profile=%s", request->base);
        (*sets)[count++] = *set;
    }
    asked->sets = *sets;
    asked->set_count = (int)count;
    return pc_score_run(asked, sink, score, error);
}

pc_code pc_tune_run(const pc_tune_request *request, const pc_score_sink *sink, pc_tune_result *result,
                    pc_error *error) {
    pc_tune_request over_base = *request;
    pc_score score = {0};
    char *set = NULL;
    const char **sets = NULL;
    *result = (pc_tune_result){0};
    pc_code code = pc_tune_check_by(request, error);
    if (!code) code = check_base(request, error);
    if (!code) code = score_rows(request, sink, &score, &set, &sets, &over_base.score, error);
    if (!code) code = fit_groups(&over_base, &score, result, error);
    pc_score_free(&score);
    pc_free(sets);
    pc_free(set);
    if (code) pc_tune_free(result);
    return code;
}

void pc_tune_free(pc_tune_result *result) {
    for (int64_t i = 0; i < result->count; i++) pc_profile_free(&result->groups[i].profile);
    pc_free(result->groups);
    *result = (pc_tune_result){0};
}
