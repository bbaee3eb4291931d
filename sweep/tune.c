#include "sweep/tune.h"

#include "calib/tune/tune.h"
#include "engine/alloc.h"
#include "engine/hash.h"
#include "engine/numbers.h"
#include "engine/order.h"
#include "scenarios/scenario.h"
#include "sweep/batch.h"
#include "sweep/run_profiles.h"
#include "sweep/team.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { CASES = 64 }; /* of a scenario: a model's file is read once a scenario */

/* A run that was measured once or more often, and the machine that it asks for. */
typedef struct configuration {
    pc_hash hash; /* of what it asks for */
    int64_t row;  /* of the score, the first */
    const pc_scenario *scenario;
    int64_t index; /* in it */
    int machine;
} configuration;

/* A machine with the costs of the numbers that are tried. */
typedef struct tried_machine {
    pc_machine machine;
    pc_profile_cost *cost;
    pc_cost_model model;
} tried_machine;

/* One fit. */
typedef struct session {
    const pc_tune_request *request;
    const pc_score *score;
    const pc_profile *base; /* empty: the machines' files */
    pc_tuned_group *group;
    int64_t *rows; /* of the score; count of them, and so many of what follows */
    int64_t count;
    int64_t *configuration_of;
    double *log_measured;
    configuration *configurations;
    int64_t configuration_count;
    int *fold; /* of each */
    int folds;
    pc_scenario **scenarios;
    int64_t scenario_count;
    tried_machine *machines;
    int machine_count;
    pc_tuned number[PC_TUNED]; /* those that are fitted */
    int numbers;
    /* While a forecast is made. */
    pc_profile tried; /* the base with the tuning that is tried; borrows from it */
    int64_t *asked;   /* configurations; asked_count of them */
    int64_t asked_count;
    double *log_seconds; /* a configuration */
} session;

/* ---- which rows ---- */

static const char *const left_names[] = {"without a measured time", "cannot be asked", "called out of memory",
                                         "called infeasible"};
_Static_assert(sizeof left_names / sizeof *left_names == PC_TUNE_LEFT, "a name for every reason");

const char *pc_tune_left_name(pc_tune_left why) {
    return left_names[why];
}

/* PC_TUNE_LEFT: it is not left out. */
static pc_tune_left why_left(const pc_score_row *row) {
    if (row->status == PC_SCORE_NOT_ASKED) return PC_TUNE_NOT_ASKED;
    if (row->status == PC_SCORE_OUT_OF_MEMORY) return PC_TUNE_OUT_OF_MEMORY;
    if (row->status == PC_SCORE_INFEASIBLE) return PC_TUNE_INFEASIBLE;
    return row->run.step_s > 0.0 && row->forecast_s > 0.0 ? PC_TUNE_LEFT : PC_TUNE_NO_TIME;
}

/* A column by its name or, where it means what one that is there means, by that. */
static int find_column(const pc_measured *m, const char *name) {
    for (int i = 0; i < m->column_count; i++)
        if (strcasecmp(m->column[i], name) == 0) return i;
    if (strcasecmp(name, "software") == 0) return m->at[PC_MEASURED_FRAMEWORK];
    return strcasecmp(name, "machine") == 0 ? m->at[PC_MEASURED_SYSTEM] : -1;
}

static pc_code check_by(const pc_tune_request *request, pc_error *error) {
    const pc_measured *m = request->score.measured;
    for (int i = 0; i < request->by_count; i++)
        if (find_column(m, request->by[i]) < 0)
            return pc_error_refuse(error, m->path, 0, "--by", "no column '%s'; expected columns of the header",
                                   request->by[i]);
    return PC_OK;
}

/* What the row says, by the library's name where it has one. */
static const char *value_of(const pc_measured *m, const pc_score_row *row, int column) {
    const char *name = column == m->at[PC_MEASURED_FRAMEWORK] ? row->run.software
                       : column == m->at[PC_MEASURED_SYSTEM]  ? row->run.machine
                       : column == m->at[PC_MEASURED_MODEL]   ? row->run.model
                                                              : "";
    if (!name[0]) name = m->cell[row->row * m->column_count + column];
    return name[0] ? name : "-";
}

/* The values of the columns, and the same with their names. */
static void name_group(const pc_tune_request *request, const pc_score_row *row, char value[PC_SCORE_LABEL_SIZE],
                       char only[PC_SCORE_LABEL_SIZE]) {
    const pc_measured *m = request->score.measured;
    int used = 0, said = 0;
    value[0] = only[0] = '\0';
    for (int i = 0; i < request->by_count; i++) {
        const char *text = value_of(m, row, find_column(m, request->by[i]));
        if (used < PC_SCORE_LABEL_SIZE)
            used += snprintf(value + used, (size_t)(PC_SCORE_LABEL_SIZE - used), "%s%s", i ? "; " : "", text);
        if (said < PC_SCORE_LABEL_SIZE)
            said += snprintf(only + said, (size_t)(PC_SCORE_LABEL_SIZE - said), "%s%s %s", i ? ", " : "",
                             request->by[i], text);
    }
}

static pc_code add_group(pc_tune_result *result, const pc_tuned_group *group, pc_error *error) {
    pc_tuned_group *all = pc_realloc(result->groups, (size_t)result->count + 1, sizeof *all);
    if (!all) return pc_error_no_memory(error);
    result->groups = all;
    result->groups[result->count++] = *group;
    return PC_OK;
}

static int64_t find_group(const pc_tune_result *result, const char *value) {
    for (int64_t i = 0; i < result->count; i++)
        if (strcmp(result->groups[i].value, value) == 0) return i;
    return -1;
}

static pc_code find_groups(const pc_tune_request *request, const pc_score *score, pc_tune_result *result,
                           pc_error *error) {
    for (int64_t i = 0; i < score->count; i++) {
        pc_tuned_group group = {.rows = 0};
        name_group(request, &score->rows[i], group.value, group.only);
        int64_t number = find_group(result, group.value);
        pc_code code = number < 0 ? add_group(result, &group, error) : PC_OK;
        if (code) return code;
        pc_tuned_group *found = &result->groups[number < 0 ? result->count - 1 : number];
        pc_tune_left why = why_left(&score->rows[i]);
        if (why == PC_TUNE_LEFT)
            found->rows++;
        else
            found->left[why]++;
    }
    return PC_OK;
}

static pc_code take_rows(session *s, pc_error *error) {
    char value[PC_SCORE_LABEL_SIZE], only[PC_SCORE_LABEL_SIZE];
    size_t most = (size_t)s->group->rows;
    s->rows = pc_alloc(most, sizeof *s->rows);
    s->configuration_of = pc_alloc(most, sizeof *s->configuration_of);
    s->log_measured = pc_alloc(most, sizeof *s->log_measured);
    s->configurations = pc_alloc(most, sizeof *s->configurations);
    s->scenarios = pc_alloc(most, sizeof(pc_scenario *));
    s->fold = pc_alloc(most, sizeof *s->fold);
    s->asked = pc_alloc(most, sizeof *s->asked);
    s->log_seconds = pc_alloc(most, sizeof *s->log_seconds);
    if (!s->rows || !s->configuration_of || !s->log_measured || !s->configurations || !s->scenarios || !s->fold ||
        !s->asked || !s->log_seconds)
        return pc_error_no_memory(error);
    for (int64_t i = 0; i < s->score->count; i++) {
        if (why_left(&s->score->rows[i]) != PC_TUNE_LEFT) continue;
        name_group(s->request, &s->score->rows[i], value, only);
        if (strcmp(value, s->group->value) == 0) s->rows[s->count++] = i;
    }
    return PC_OK;
}

/* ---- which configurations ---- */

/* A row as the case of a scenario; what stands behind its name says all that it asks for. */
static pc_code add_case(const session *s, int64_t row, pc_text *text, pc_error *error) {
    const pc_score_row *x = &s->score->rows[row];
    pc_measured_add_case(s->score->measured, x->row, &x->run, text);
    return text->failed ? pc_error_no_memory(error) : PC_OK;
}

static pc_code hash_row(const session *s, int64_t row, pc_hash *hash, pc_error *error) {
    pc_text text = {0};
    pc_code code = add_case(s, row, &text, error);
    const char *rest = code ? "" : strchr(text.data, ',');
    *hash = (pc_hash){0};
    if (!code) pc_hash_add_bytes(hash, rest, strlen(rest));
    pc_text_free(&text);
    return code;
}

static int64_t find_configuration(const session *s, pc_hash hash) {
    for (int64_t i = 0; i < s->configuration_count; i++)
        if (pc_hash_equal(s->configurations[i].hash, hash)) return i;
    return -1;
}

static pc_code find_configurations(session *s, pc_error *error) {
    for (int64_t i = 0; i < s->count; i++) {
        pc_hash hash;
        pc_code code = hash_row(s, s->rows[i], &hash, error);
        if (code) return code;
        int64_t number = find_configuration(s, hash);
        if (number < 0) {
            number = s->configuration_count++;
            s->configurations[number] = (configuration){.hash = hash, .row = s->rows[i]};
        }
        s->configuration_of[i] = number;
        s->log_measured[i] = log(s->score->rows[s->rows[i]].run.step_s);
    }
    return PC_OK;
}

/* How many come before it in the order of their hashes: so folds do not depend on the order of rows, and neighbours in
 * a table are dealt out. */
static int64_t place_of(const session *s, int64_t number) {
    const pc_hash *own = &s->configurations[number].hash;
    int64_t before = 0;
    for (int64_t i = 0; i < s->configuration_count; i++) {
        const pc_hash *other = &s->configurations[i].hash;
        before += other->high < own->high || (other->high == own->high && other->low < own->low);
    }
    return before;
}

static void deal_folds(session *s) {
    s->folds = s->configuration_count > 1 ? (int)pc_min(s->configuration_count, (int64_t)PC_TUNE_FOLDS) : 0;
    for (int64_t i = 0; i < s->configuration_count && s->folds > 0; i++) s->fold[i] = (int)(place_of(s, i) % s->folds);
}

static pc_code load_some(session *s, int64_t first, int64_t count, pc_error *error) {
    const pc_score_request *r = &s->request->score;
    pc_text text = {0};
    pc_text_printf(&text, "scenario: tune\ncases:\n");
    pc_code code = PC_OK;
    for (int64_t i = 0; i < count && !code; i++) code = add_case(s, s->configurations[first + i].row, &text, error);
    pc_scenario_options options = {
        .sets = r->sets, .set_count = r->set_count, .allows_outside = r->allows_outside, .text = text.data};
    pc_scenario *scenario = NULL;
    if (!code) code = pc_scenario_load_with(r->measured->path, &options, &scenario, error);
    pc_text_free(&text);
    if (code) return code;
    s->scenarios[s->scenario_count++] = scenario;
    for (int64_t i = 0; i < count; i++) {
        s->configurations[first + i].scenario = scenario;
        s->configurations[first + i].index = i;
    }
    return PC_OK;
}

static pc_code load_all(session *s, pc_error *error) {
    pc_code code = PC_OK;
    for (int64_t i = 0; i < s->configuration_count && !code; i += CASES)
        code = load_some(s, i, pc_min(s->configuration_count - i, (int64_t)CASES), error);
    return code;
}

/* ---- which machines ---- */

static unsigned line_of(const session *s, int64_t number) {
    return (unsigned)s->score->measured->line[s->score->rows[s->configurations[number].row].row];
}

static pc_code check_run(const session *s, int64_t number, const pc_run_spec *spec, pc_error *error) {
    const char *path = s->score->measured->path, *gpu = spec->iteration.machine.gpu.name;
    if (spec->profile_path)
        return pc_error_refuse(error, path, line_of(s, number), "profile",
                               "the run has one of its own; expected --profile for all runs");
    if (s->machine_count > 0 && strcasecmp(s->machines[0].machine.gpu.name, gpu) != 0)
        return pc_error_refuse(error, path, line_of(s, number), "",
                               "a run on %s behind runs on %s; expected one GPU in a "
                               "fit: --by system",
                               gpu, s->machines[0].machine.gpu.name);
    return PC_OK;
}

static pc_code find_machine(session *s, const pc_run_spec *spec, int *number, pc_error *error) {
    pc_machine wanted;
    pc_run_profile_machine(s->base, spec, &wanted);
    for (*number = 0; *number < s->machine_count; ++*number)
        /* NOLINTNEXTLINE(bugprone-suspicious-memory-comparison): whole copies of one machine, with what is between */
        if (memcmp(&s->machines[*number].machine, &wanted, sizeof wanted) == 0) return PC_OK;
    tried_machine *all = pc_realloc(s->machines, (size_t)s->machine_count + 1, sizeof *all);
    if (!all) return pc_error_no_memory(error);
    s->machines = all;
    all[s->machine_count].cost = NULL;
    memcpy(&all[s->machine_count++].machine, &wanted, sizeof wanted);
    return PC_OK;
}

static pc_code find_machines(session *s, pc_error *error) {
    pc_code code = PC_OK;
    for (int64_t i = 0; i < s->configuration_count && !code; i++) {
        configuration *x = &s->configurations[i];
        pc_run_spec spec;
        pc_run_labels labels;
        code = pc_scenario_run_spec(x->scenario, x->index, &spec, &labels, error);
        if (code) break;
        if (s->request->base) spec.profile_path = NULL; /* which is the base */
        code = check_run(s, i, &spec, error);
        if (!code) code = find_machine(s, &spec, &x->machine, error);
        pc_run_spec_free(&spec);
    }
    return code;
}

/* ---- a forecast of all of them ---- */

static double value_at(pc_tuned which, double moved) {
    const pc_tuned_rule *rule = pc_tuned_rule_of(which);
    double by = moved * rule->width, value = rule->is_factor ? exp(by) : by;
    return pc_min(pc_max(value, rule->least), rule->most);
}

static void set_numbers(const session *s, const double *moved, pc_tuning *tuning) {
    for (int j = 0; j < s->numbers; j++) tuning->number[s->number[j]].value = value_at(s->number[j], moved[j]);
}

static void forget_costs(session *s) {
    for (int i = 0; i < s->machine_count; i++) {
        pc_profile_cost_free(s->machines[i].cost);
        s->machines[i].cost = NULL;
    }
}

static pc_code make_costs(session *s, pc_error *error) {
    pc_code code = PC_OK;
    for (int i = 0; i < s->machine_count && !code; i++) {
        tried_machine *x = &s->machines[i];
        code = pc_profile_cost_make(&s->tried, &x->machine, &x->cost, error);
        if (!code) x->model = pc_profile_cost_model(x->cost);
    }
    return code;
}

static pc_code make_spec(void *context, int64_t index, pc_run_spec *spec, pc_run_labels *labels, pc_error *error) {
    const session *s = context;
    const configuration *x = &s->configurations[s->asked[index]];
    pc_code code = pc_scenario_run_spec(x->scenario, x->index, spec, labels, error);
    if (code) return code;
    pc_run_profile_apply(&s->tried, s->machines[x->machine].cost, &s->machines[x->machine].model, spec);
    labels->run = index;
    return PC_OK;
}

static pc_code take_row(void *context, const pc_run_spec *spec, const pc_run_row *found, const pc_run_detail *detail,
                        pc_error *error) {
    session *s = context;
    int64_t number = s->asked[found->run];
    (void)spec, (void)detail;
    if (found->status != PC_RUN_OK)
        return pc_error_refuse(error, s->score->measured->path, line_of(s, number), "",
                               "cannot be forecast with what is tried: %s", found->message);
    s->log_seconds[number] = log(found->iteration_s);
    return PC_OK;
}

static void ask_for(session *s, const bool *wanted) {
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
    session *s = self;
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

static void name_sources(const session *s, char *all, size_t size) {
    const pc_measured *m = s->score->measured;
    const char *slash = strrchr(m->path, '/');
    int column = find_column(m, "source");
    for (int64_t i = 0; i < s->count && column >= 0; i++) {
        const char *cell = m->cell[s->score->rows[s->rows[i]].row * m->column_count + column];
        if (cell[0]) add_source(cell, all, size);
    }
    if (!all[0]) snprintf(all, size, "%s", slash ? slash + 1 : m->path);
}

static void describe(const session *s, pc_tuning *tuning) {
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

static void conclude(const session *s, pc_tune_solution *solution, pc_tuning *tuning) {
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

static pc_code fit(session *s, pc_tuning *tuning, pc_error *error) {
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

static void free_session(session *s) {
    for (int64_t i = 0; i < s->scenario_count; i++) pc_scenario_free(s->scenarios[i]);
    pc_free(s->scenarios);
    pc_free(s->rows);
    pc_free(s->configuration_of);
    pc_free(s->log_measured);
    pc_free(s->configurations);
    pc_free(s->fold);
    pc_free(s->asked);
    pc_free(s->log_seconds);
    pc_free(s->machines);
}

static pc_code prepare(session *s, pc_error *error) {
    for (pc_tuned i = 0; i < PC_TUNED; i++)
        if (s->request->is_wanted[i]) s->number[s->numbers++] = i;
    pc_code code = take_rows(s, error);
    if (!code) code = find_configurations(s, error);
    if (!code) code = load_all(s, error);
    if (!code) code = find_machines(s, error);
    if (!code) deal_folds(s);
    return code;
}

/* A profile of nothing but a tuning is of the GPU that the runs were on. */
static void name_device(const session *s, pc_profile_device *device) {
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
    session s = {.request = request, .score = score, .base = &base, .group = group};
    pc_tuning tuning = pc_tuning_none();
    pc_code code = request->base ? pc_profile_read(request->base, &base, error) : PC_OK;
    if (!code) code = prepare(&s, error);
    if (!code) {
        name_device(&s, &base.device);
        s.tried = base;
        s.tried.tuning = tuning;
        describe(&s, &tuning);
        code = fit(&s, &tuning, error);
    }
    free_session(&s);
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
    pc_code code = find_groups(request, score, result, error);
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
    pc_code code = check_by(request, error);
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
