#include "sweep/score.h"

#include "engine/alloc.h"
#include "engine/numbers.h"
#include "scenarios/scenario.h"
#include "sweep/batch.h"
#include "sweep/run_profiles.h"
#include "sweep/team.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Rows are asked as the cases of scenarios: of several at a time, for a model's file is read once a scenario; not of
 * all, for a case that is refused has its scenario made anew. */
enum { CASES = 64 };
static const int64_t ROOM_ENOUGH = INT64_C(1) << 50;

/* A row that is asked: which run of which scenario. */
typedef struct asked {
    int64_t row; /* of score->rows */
    const pc_scenario *scenario;
    int64_t index;
} asked;

typedef struct session {
    const pc_score_request *request;
    const pc_score_sink *sink;
    pc_score *score;
    pc_scenario **scenarios;
    int64_t scenario_count;
    asked *list;
    int64_t count;
    pc_run_profiles profiles;
    bool has_room; /* GPUs have room for all: the second round, of what did not fit */
    int64_t done, to_do;
} session;

/* ---- rows ---- */

static void say_bad(const session *s, pc_score_row *row, const pc_error *error) {
    row->status = PC_SCORE_BAD;
    if (s->sink->say) s->sink->say(s->sink->context, error);
}

static pc_score_row no_row(int64_t row) {
    return (pc_score_row){.row = row,
                          .status = PC_SCORE_NOT_ASKED,
                          .forecast_s = NAN,
                          .forecast_low_s = NAN,
                          .forecast_high_s = NAN,
                          .error = NAN,
                          .forecast_gib = NAN,
                          .forecast_gib_low = NAN,
                          .forecast_gib_high = NAN,
                          .memory_error = NAN};
}

static void join(const pc_score_request *request, pc_measured_run *run, pc_score_joins *joins) {
    if (!request->conditions) return;
    int64_t fitting = pc_measured_condition_of(request->conditions, run, &run->condition);
    joins->found += run->condition >= 0;
    joins->none += fitting == 0;
    joins->unclear += fitting > 0 && run->condition < 0;
    if (run->condition >= 0) run->conditions = request->conditions;
}

static pc_code read_rows(session *s, pc_error *error) {
    pc_score_joins joins = {0};
    const pc_measured *m = s->request->measured;
    pc_number_scope scope = {0};
    pc_error why = {0};
    s->score->rows = pc_alloc((size_t)m->row_count, sizeof *s->score->rows);
    if (!s->score->rows || !pc_number_scope_enter(&scope)) return pc_error_no_memory(error);
    for (int64_t i = 0; i < m->row_count; i++) {
        pc_score_row *row = &s->score->rows[i];
        *row = no_row(i);
        if (pc_measured_run_of(m, i, &row->run, &why))
            say_bad(s, row, &why);
        else if (!row->run.missing[0])
            row->status = PC_SCORE_OK;
        if (row->status == PC_SCORE_OK) join(s->request, &row->run, &joins);
    }
    if (s->request->conditions && s->sink->joined) s->sink->joined(s->sink->context, joins);
    s->score->count = m->row_count;
    pc_number_scope_leave(&scope);
    return PC_OK;
}

/* Rows that cannot be read are in no table. */
static void drop_bad(pc_score *score) {
    int64_t kept = 0;
    for (int64_t i = 0; i < score->count; i++)
        if (score->rows[i].status != PC_SCORE_BAD) score->rows[kept++] = score->rows[i];
    score->count = kept;
}

/* ---- scenarios ---- */

/* The rows of `list` as one scenario, a line each behind the first two. */
static pc_code load(session *s, const asked *list, int64_t count, pc_scenario **scenario, pc_error *error) {
    const pc_score_request *r = s->request;
    pc_text text = {0};
    pc_text_printf(&text, "scenario: score\ncases:\n");
    for (int64_t i = 0; i < count; i++) {
        const pc_score_row *row = &s->score->rows[list[i].row];
        pc_measured_add_case(r->measured, row->row, &row->run, &text);
    }
    pc_scenario_options options = {
        .sets = r->sets, .set_count = r->set_count, .allows_outside = r->allows_outside, .text = text.data};
    pc_code code =
        text.failed ? pc_error_no_memory(error) : pc_scenario_load_with(r->measured->path, &options, scenario, error);
    pc_text_free(&text);
    return code;
}

/* A contradiction between numbers that are each fine is a run that cannot be; anything else a row that cannot be read.
 */
static void refuse(session *s, const asked *one, pc_error *why) {
    const pc_measured *m = s->request->measured;
    pc_score_row *row = &s->score->rows[one->row];
    const char *key = pc_error_part_of(why, PC_ERROR_PART_KEY), *dot = strchr(key, '.');
    char column[128];
    snprintf(column, sizeof column, "%s", pc_measured_column_of_key(m, dot ? dot + 1 : key));
    if (why->is_rule) {
        row->status = PC_SCORE_INFEASIBLE;
        snprintf(row->message, sizeof row->message, "%s: %.*s", column, (int)(sizeof row->message - sizeof column - 3),
                 pc_error_part_of(why, PC_ERROR_PART_WHAT));
        return;
    }
    pc_error_replace(why, m->path, (unsigned)m->line[row->row], column);
    say_bad(s, row, why);
}

static void keep(session *s, const asked *list, int64_t count, pc_scenario *scenario) {
    s->scenarios[s->scenario_count++] = scenario;
    for (int64_t i = 0; i < count; i++) {
        s->list[s->count] = list[i];
        s->list[s->count].scenario = scenario;
        s->list[s->count++].index = i;
    }
}

/* Which of the cases the error is of; -1: none of them alone. */
static int64_t culprit_of(const pc_error *error, int64_t count) {
    int64_t index = (int64_t)error->line - 3;
    if (count == 1) return 0;
    return index >= 0 && index < count ? index : -1;
}

/* Whether it is of what is set for all rows, and not of how that goes with a row. */
static bool is_of_all(const pc_error *error) {
    return !error->is_rule && strncmp(pc_error_part_of(error, PC_ERROR_PART_FILE), "--set", 5) == 0;
}

/* The next rows, `most` of them at most, that can still be asked; and where the next ones begin. */
static int64_t gather(const session *s, int64_t from, int64_t most, asked list[CASES], int64_t *next) {
    int64_t count = 0, i = from;
    for (; i < s->score->count && count < most; i++)
        if (s->score->rows[i].status == PC_SCORE_OK) list[count++].row = i;
    *next = i;
    return count;
}

/* One row at least is refused, or the list was of several that cannot be told apart; then fewer are asked next. */
static int64_t refuse_one(session *s, const asked *list, int64_t count, pc_error *why) {
    int64_t culprit = culprit_of(why, count);
    if (culprit >= 0) refuse(s, &list[culprit], why);
    return culprit >= 0 ? pc_max(culprit, 1) : count / 2;
}

/* Refuses those rows that cannot be runs, and keeps the others. As many are asked at a time as there were before the
 * last one that was refused; where none is, twice as many the next time. */
static pc_code ask_rows(session *s, pc_error *error) {
    asked list[CASES];
    int64_t most = CASES, next = 0;
    for (int64_t from = 0; from < s->score->count;) {
        pc_scenario *scenario = NULL;
        pc_error why = {0};
        int64_t count = gather(s, from, most, list, &next);
        pc_code code = count > 0 ? load(s, list, count, &scenario, &why) : PC_OK;
        if (code && (code != PC_ERROR_INPUT || is_of_all(&why))) return pc_error_copy(error, &why);
        if (code) {
            most = refuse_one(s, list, count, &why);
            continue;
        }
        if (count > 0) keep(s, list, count, scenario);
        most = pc_min(2 * most, CASES);
        from = next;
    }
    return PC_OK;
}

static pc_code ask_all(session *s, pc_error *error) {
    size_t most = (size_t)pc_max(s->score->count, INT64_C(1));
    s->list = pc_alloc(most, sizeof *s->list);
    s->scenarios = pc_alloc(most, sizeof(pc_scenario *));
    return s->list && s->scenarios ? ask_rows(s, error) : pc_error_no_memory(error);
}

/* ---- runs ---- */

static pc_code open_profiles(session *s, pc_error *error) {
    pc_code code = PC_OK;
    for (int64_t i = 0; i < s->count && !code; i++) {
        pc_run_spec spec;
        pc_run_labels labels;
        if (!pc_scenario_has_profiles(s->list[i].scenario)) continue;
        code = pc_scenario_run_spec(s->list[i].scenario, s->list[i].index, &spec, &labels, error);
        if (code) break;
        code = pc_run_profiles_open(&s->profiles, &spec, error);
        pc_run_spec_free(&spec);
    }
    return code;
}

static pc_code make_spec(void *context, int64_t index, pc_run_spec *spec, pc_run_labels *labels, pc_error *error) {
    const session *s = context;
    const asked *one = &s->list[index];
    pc_code code = pc_scenario_run_spec(one->scenario, one->index, spec, labels, error);
    if (code) return code;
    pc_run_profiles_use(&s->profiles, spec);
    if (s->has_room) spec->iteration.memory_limit_bytes = ROOM_ENOUGH;
    labels->run = index;
    return PC_OK;
}

static pc_score_status status_of(pc_run_status status) {
    return status == PC_RUN_OK           ? PC_SCORE_OK
           : status == PC_RUN_INFEASIBLE ? PC_SCORE_INFEASIBLE
                                         : PC_SCORE_OUT_OF_MEMORY;
}

static pc_code take_row(void *context, const pc_run_spec *spec, const pc_run_row *found, const pc_run_detail *detail,
                        pc_error *error) {
    session *s = context;
    pc_score_row *row = &s->score->rows[s->list[found->run].row];
    (void)spec, (void)detail;
    if (!s->has_room) {
        row->status = status_of(found->status);
        snprintf(row->message, sizeof row->message, "%s", found->message);
    }
    row->forecast_s = found->iteration_s;
    row->forecast_low_s = found->iteration_s_low, row->forecast_high_s = found->iteration_s_high;
    double counted = row->run.is_allocated ? found->memory_allocated_gib / found->memory_gib_max : 1.0;
    row->forecast_gib = row->run.is_allocated ? found->memory_allocated_gib : found->memory_gib_max;
    row->forecast_gib_low = counted * found->memory_gib_low, row->forecast_gib_high = counted * found->memory_gib_high;
    snprintf(row->kind, sizeof row->kind, "%s", found->kind);
    snprintf(row->basis, sizeof row->basis, "%s", found->iteration_basis);
    s->done++;
    if (s->sink->progress) s->sink->progress(s->sink->context, s->done, s->to_do);
    if (!s->sink->is_stopped || !s->sink->is_stopped(s->sink->context)) return PC_OK;
    return pc_error_set(error, PC_ERROR_STOPPED, "the runs were stopped");
}

/* What did not fit, once more with room enough: how long it would have taken, and how much it would have held. */
static void keep_unfit(session *s) {
    int64_t kept = 0;
    for (int64_t i = 0; i < s->count; i++)
        if (s->score->rows[s->list[i].row].status == PC_SCORE_OUT_OF_MEMORY) s->list[kept++] = s->list[i];
    s->count = kept;
    s->to_do += kept;
    s->has_room = true;
}

static pc_code run_all(session *s, pc_error *error) {
    int jobs = s->request->jobs > 0 ? s->request->jobs : pc_team_default_jobs(NULL);
    s->to_do = s->count;
    pc_code code = pc_batch_run(s->count, jobs, make_spec, take_row, s, error);
    if (code) return code;
    keep_unfit(s);
    return pc_batch_run(s->count, jobs, make_spec, take_row, s, error);
}

static void free_session(session *s) {
    pc_run_profiles_close(&s->profiles);
    for (int64_t i = 0; i < s->scenario_count; i++) pc_scenario_free(s->scenarios[i]);
    pc_free(s->scenarios);
    pc_free(s->list);
}

pc_code pc_score_run(const pc_score_request *request, const pc_score_sink *sink, pc_score *score, pc_error *error) {
    static const pc_score_sink nobody = {0};
    *score = (pc_score){.measured = request->measured};
    session s = {.request = request, .sink = sink ? sink : &nobody, .score = score};
    pc_code code = read_rows(&s, error);
    if (!code) code = ask_all(&s, error);
    if (!code) code = open_profiles(&s, error);
    if (!code) code = run_all(&s, error);
    if (!code && s.sink->warn) pc_run_profiles_warn(&s.profiles, s.sink->warn, s.sink->context);
    free_session(&s);
    drop_bad(score);
    for (int64_t i = 0; i < score->count; i++) pc_score_row_judge(&score->rows[i]);
    if (code) pc_score_free(score);
    return code;
}
