#include "sweep/tune_private.h"

#include "calib/tune/tune.h"
#include "engine/alloc.h"
#include "engine/numbers.h"
#include "sweep/run_profiles.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { CASES = 64 }; /* of a scenario: a model's file is read once a scenario */

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
int pc_tune_find_column(const pc_measured *m, const char *name) {
    for (int i = 0; i < m->column_count; i++)
        if (strcasecmp(m->column[i], name) == 0) return i;
    if (strcasecmp(name, "software") == 0) return m->at[PC_MEASURED_FRAMEWORK];
    return strcasecmp(name, "machine") == 0 ? m->at[PC_MEASURED_SYSTEM] : -1;
}

pc_code pc_tune_check_by(const pc_tune_request *request, pc_error *error) {
    const pc_measured *m = request->score.measured;
    for (int i = 0; i < request->by_count; i++)
        if (pc_tune_find_column(m, request->by[i]) < 0)
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
        const char *text = value_of(m, row, pc_tune_find_column(m, request->by[i]));
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

pc_code pc_tune_find_groups(const pc_tune_request *request, const pc_score *score, pc_tune_result *result,
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

static pc_code take_rows(pc_tune_session *s, pc_error *error) {
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
static pc_code add_case(const pc_tune_session *s, int64_t row, pc_text *text, pc_error *error) {
    const pc_score_row *x = &s->score->rows[row];
    pc_measured_add_case(s->score->measured, x->row, &x->run, text);
    return text->failed ? pc_error_no_memory(error) : PC_OK;
}

static pc_code hash_row(const pc_tune_session *s, int64_t row, pc_hash *hash, pc_error *error) {
    pc_text text = {0};
    pc_code code = add_case(s, row, &text, error);
    const char *rest = code ? "" : strchr(text.data, ',');
    *hash = (pc_hash){0};
    if (!code) pc_hash_add_bytes(hash, rest, strlen(rest));
    pc_text_free(&text);
    return code;
}

static int64_t find_configuration(const pc_tune_session *s, pc_hash hash) {
    for (int64_t i = 0; i < s->configuration_count; i++)
        if (pc_hash_equal(s->configurations[i].hash, hash)) return i;
    return -1;
}

static pc_code find_configurations(pc_tune_session *s, pc_error *error) {
    for (int64_t i = 0; i < s->count; i++) {
        pc_hash hash;
        pc_code code = hash_row(s, s->rows[i], &hash, error);
        if (code) return code;
        int64_t number = find_configuration(s, hash);
        if (number < 0) {
            number = s->configuration_count++;
            s->configurations[number] = (pc_tune_configuration){.hash = hash, .row = s->rows[i]};
        }
        s->configuration_of[i] = number;
        s->log_measured[i] = log(s->score->rows[s->rows[i]].run.step_s);
    }
    return PC_OK;
}

/* How many come before it in the order of their hashes: so folds do not depend on the order of rows, and neighbours in
 * a table are dealt out. */
static int64_t place_of(const pc_tune_session *s, int64_t number) {
    const pc_hash *own = &s->configurations[number].hash;
    int64_t before = 0;
    for (int64_t i = 0; i < s->configuration_count; i++) {
        const pc_hash *other = &s->configurations[i].hash;
        before += other->high < own->high || (other->high == own->high && other->low < own->low);
    }
    return before;
}

static void deal_folds(pc_tune_session *s) {
    s->folds = s->configuration_count > 1 ? (int)pc_min(s->configuration_count, (int64_t)PC_TUNE_FOLDS) : 0;
    for (int64_t i = 0; i < s->configuration_count && s->folds > 0; i++) s->fold[i] = (int)(place_of(s, i) % s->folds);
}

static pc_code load_some(pc_tune_session *s, int64_t first, int64_t count, pc_error *error) {
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

static pc_code load_all(pc_tune_session *s, pc_error *error) {
    pc_code code = PC_OK;
    for (int64_t i = 0; i < s->configuration_count && !code; i += CASES)
        code = load_some(s, i, pc_min(s->configuration_count - i, (int64_t)CASES), error);
    return code;
}

/* ---- which machines ---- */

unsigned pc_tune_line_of(const pc_tune_session *s, int64_t number) {
    return (unsigned)s->score->measured->line[s->score->rows[s->configurations[number].row].row];
}

static pc_code check_run(const pc_tune_session *s, int64_t number, const pc_run_spec *spec, pc_error *error) {
    const char *path = s->score->measured->path, *gpu = spec->iteration.machine.gpu.name;
    if (spec->profile_path)
        return pc_error_refuse(error, path, pc_tune_line_of(s, number), "profile",
                               "the run has one of its own; expected --profile for all runs");
    if (s->machine_count > 0 && strcasecmp(s->machines[0].machine.gpu.name, gpu) != 0)
        return pc_error_refuse(error, path, pc_tune_line_of(s, number), "",
                               "a run on %s behind runs on %s; expected one GPU in a "
                               "fit: --by system",
                               gpu, s->machines[0].machine.gpu.name);
    return PC_OK;
}

static pc_code find_machine(pc_tune_session *s, const pc_run_spec *spec, int *number, pc_error *error) {
    pc_machine wanted;
    pc_run_profile_machine(s->base, spec, &wanted);
    for (*number = 0; *number < s->machine_count; ++*number)
        /* NOLINTNEXTLINE(bugprone-suspicious-memory-comparison): whole copies of one machine, with what is between */
        if (memcmp(&s->machines[*number].machine, &wanted, sizeof wanted) == 0) return PC_OK;
    pc_tried_machine *all = pc_realloc(s->machines, (size_t)s->machine_count + 1, sizeof *all);
    if (!all) return pc_error_no_memory(error);
    s->machines = all;
    all[s->machine_count].cost = NULL;
    memcpy(&all[s->machine_count++].machine, &wanted, sizeof wanted);
    return PC_OK;
}

static pc_code find_machines(pc_tune_session *s, pc_error *error) {
    pc_code code = PC_OK;
    for (int64_t i = 0; i < s->configuration_count && !code; i++) {
        pc_tune_configuration *x = &s->configurations[i];
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

/* ---- all of it ---- */

void pc_tune_free_session(pc_tune_session *s) {
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

pc_code pc_tune_prepare(pc_tune_session *s, pc_error *error) {
    for (pc_tuned i = 0; i < PC_TUNED; i++)
        if (s->request->is_wanted[i]) s->number[s->numbers++] = i;
    pc_code code = take_rows(s, error);
    if (!code) code = find_configurations(s, error);
    if (!code) code = load_all(s, error);
    if (!code) code = find_machines(s, error);
    if (!code) deal_folds(s);
    return code;
}
