/* A search for plans, and its plans as runs. */
#include "api/handles.h"

#include "engine/alloc.h"
#include "models/machine/ranks.h"
#include "models/workload/offload.h"
#include "results/plan_table.h"
#include "scenarios/plan_scenario.h"
#include "storage/text.h"
#include "sweep/run_profiles.h"

#include <stdio.h>
#include <string.h>

struct pipecast_plan {
    pc_plan_scenario *scenario;
    pipecast_stop *stop;
    void *stop_context;
};

/* What a plan has beside the columns of its run, and the overrides that make it. */
typedef struct plan_row {
    int64_t rank;
    char rank_order[32], offload[PC_OFFLOAD_SIZE], cp_comm_type[16], dispatcher[16], limits[PC_PLAN_TEXT_SIZE],
        behind[PC_PLAN_TEXT_SIZE];
    int64_t overlap_p2p, overlap_tp, overlap_gradients, overlap_parameters, ties, close;
    char **sets; /* set_count of them; owned */
    int set_count;
} plan_row;

static const pc_field rank_fields[] = {
    {"rank", "1", "of the plan, the best is 1", PC_FIELD_INT64, PC_FIELD_AT(plan_row, rank)},
};
static const pc_field plan_fields[] = {
    {"rank_order", "", "which axis of parallelism has neighbouring ranks, the innermost first", PC_FIELD_TEXT,
     PC_FIELD_AT(plan_row, rank_order)},
    {"offload", "", "what goes to the host's memory", PC_FIELD_TEXT, PC_FIELD_AT(plan_row, offload)},
    {"cp_comm_type", "", "how context-parallel ranks come to each other's keys, none where cp is 1", PC_FIELD_TEXT,
     PC_FIELD_AT(plan_row, cp_comm_type)},
    {"dispatcher", "", "how tokens come to their experts, none without expert parallelism", PC_FIELD_TEXT,
     PC_FIELD_AT(plan_row, dispatcher)},
    {"overlap_p2p", "1", "whether transfers between stages run beside passes", PC_FIELD_INT64,
     PC_FIELD_AT(plan_row, overlap_p2p)},
    {"overlap_tp", "1", "whether collectives of tensor parallelism run beside kernels", PC_FIELD_INT64,
     PC_FIELD_AT(plan_row, overlap_tp)},
    {"overlap_gradients", "1", "whether gradients are reduced behind the last backward passes", PC_FIELD_INT64,
     PC_FIELD_AT(plan_row, overlap_gradients)},
    {"overlap_parameters", "1", "whether parameters are gathered behind the first forward passes", PC_FIELD_INT64,
     PC_FIELD_AT(plan_row, overlap_parameters)},
    {"limits", "", "what the iteration waits for most", PC_FIELD_TEXT, PC_FIELD_AT(plan_row, limits)},
    {"behind", "", "by what it is behind the best plan", PC_FIELD_TEXT, PC_FIELD_AT(plan_row, behind)},
    {"ties", "1", "whether its interval of 80% overlaps that of the best plan", PC_FIELD_INT64,
     PC_FIELD_AT(plan_row, ties)},
    {"close", "1", "whether it is closer to the best plan than ratios of two such runs are forecast", PC_FIELD_INT64,
     PC_FIELD_AT(plan_row, close)},
};

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

/* ---- overrides ---- */

void api_plan_rows_free(plan_row *rows, int64_t count) {
    for (int64_t i = 0; rows && i < count; i++) {
        for (int n = 0; n < rows[i].set_count; n++) pc_free(rows[i].sets[n]);
        pc_free(rows[i].sets);
    }
}

/* Those of one plan as they come; where memory is short none is added any more. */
typedef struct set_list {
    plan_row *row;
    bool has_failed;
} set_list;

static void add_set(void *context, const char *key, const char *value) {
    set_list *to = context;
    size_t size = sizeof "setting.=" + strlen(key) + strlen(value);
    char **sets = pc_realloc(to->row->sets, (size_t)to->row->set_count + 1, sizeof *sets);
    if (sets) to->row->sets = sets;
    char *set = sets && !to->has_failed ? pc_alloc(size, 1) : NULL;
    to->has_failed = !set;
    if (!set) return;
    snprintf(set, size, "setting.%s=%s", key, value);
    sets[to->row->set_count++] = set;
}

const char *pipecast_plan_set(const pipecast_results *plans, int64_t row, int number) {
    if (!plans->plan || row < 0 || row >= plans->row_count) return NULL;
    const plan_row *of = &plans->plan[row];
    return number >= 0 && number < of->set_count ? of->sets[number] : NULL;
}

/* ---- its runs ---- */

/* All that is going on; the profiles of the search, and those of the plans. */
typedef struct search {
    pc_plan_scenario *scenario;
    pc_run_profiles profiles;
    pc_plan_answer answer;
    pc_plan_row *found; /* as results/plan_table.h wants them, one a plan */
    pc_run_row *runs;
    plan_row *rows;
} search;

static pc_code open_profile(search *s, pc_run_spec *spec, pc_error *error) {
    api_lock();
    pc_code code = pc_run_profiles_open(&s->profiles, spec, error);
    api_unlock();
    return code;
}

static pc_code open_profiles(search *s, pc_error *error) {
    int count;
    pc_run_spec *bases = pc_plan_scenario_bases(s->scenario, &count);
    pc_code code = PC_OK;
    for (int i = 0; i < count && !code; i++) code = open_profile(s, &bases[i], error);
    return code;
}

/* A second search by the same scenario must find its machines as they were: profiles change them. */
static void use_profiles(const search *s, pc_run_spec *before) {
    int count;
    pc_run_spec *bases = pc_plan_scenario_bases(s->scenario, &count);
    for (int i = 0; i < count; i++) {
        before[i] = bases[i];
        pc_run_profiles_use(&s->profiles, &bases[i]);
    }
}

static void forget_profiles(const search *s, const pc_run_spec *before) {
    int count;
    pc_run_spec *bases = pc_plan_scenario_bases(s->scenario, &count);
    for (int i = 0; i < count; i++) bases[i] = before[i];
}

static pc_code run_plan(search *s, int64_t index, pc_error *error) {
    pc_plan_row *plan = &s->found[index];
    pc_run_detail detail = {.devices = 0};
    pc_run_spec spec;
    pc_run_labels labels;
    plan->found = s->answer.found[index];
    pc_code code = pc_plan_scenario_run_spec(s->scenario, &plan->found.choice, index + 1, &spec, &labels, error);
    if (code) return code;
    code = open_profile(s, &spec, error);
    if (!code) pc_run_profiles_use(&s->profiles, &spec);
    spec.trace = false;
    if (!code) code = pc_plan_row_run(&spec, &labels, plan, &detail, error);
    if (!code) s->runs[index] = plan->row;
    pc_run_detail_free(&detail);
    pc_run_spec_free(&spec);
    return code;
}

static pc_code describe(search *s, pc_plan_objective objective, int64_t index, pc_error *error) {
    const pc_plan_row *plan = &s->found[index];
    const pc_plan_choice *choice = &plan->found.choice;
    plan_row *row = &s->rows[index];
    set_list list = {row, false};
    row->rank = index + 1;
    pc_rank_order_write(choice->order, row->rank_order);
    pc_offload_write(choice->offload, row->offload);
    snprintf(row->cp_comm_type, sizeof row->cp_comm_type, "%s", pc_plan_cp_comm(plan));
    snprintf(row->dispatcher, sizeof row->dispatcher, "%s", pc_plan_dispatcher(plan));
    row->overlap_p2p = choice->overlaps_p2p;
    row->overlap_tp = choice->overlaps_tp;
    row->overlap_gradients = choice->overlaps_gradients;
    row->overlap_parameters = choice->overlaps_parameters;
    pc_plan_limits(plan, row->limits);
    pc_plan_behind(objective, s->found, plan, row->behind);
    row->ties = pc_plan_ties(objective, s->found, plan);
    row->close = pc_plan_is_close(objective, s->found, plan);
    pc_code code = pc_plan_scenario_put(s->scenario, choice, add_set, &list, error);
    return !code && list.has_failed ? pc_error_no_memory(error) : code;
}

static pc_code describe_plans(search *s, pc_plan_objective objective, pc_error *error) {
    pc_number_scope scope = {0};
    if (!pc_number_scope_enter(&scope)) return pc_error_no_memory(error);
    pc_code code = PC_OK;
    for (int64_t i = 0; i < s->answer.count && !code; i++) code = describe(s, objective, i, error);
    pc_number_scope_leave(&scope);
    return code;
}

static pc_code run_plans(search *s, pc_plan_objective objective, pc_error *error) {
    size_t count = (size_t)s->answer.count;
    pc_code code = PC_OK;
    s->found = pc_alloc(count, sizeof *s->found);
    s->runs = pc_alloc(count, sizeof *s->runs);
    s->rows = pc_alloc(count, sizeof *s->rows);
    if (!s->found || !s->runs || !s->rows) return pc_error_no_memory(error);
    for (int64_t i = 0; i < s->answer.count && !code; i++) code = run_plan(s, i, error);
    return code ? code : describe_plans(s, objective, error);
}

/* ---- the search ---- */

/* Who looks on, without the phase: only the simulations are counted. */
typedef struct onlooker {
    pipecast_progress *progress;
    void *context;
    const pipecast_plan *plan;
} onlooker;

void pipecast_plan_watch(pipecast_plan *plan, pipecast_stop *stop, void *context) {
    plan->stop = stop;
    plan->stop_context = context;
}

static bool is_stopped(void *self) {
    const pipecast_plan *plan = ((const onlooker *)self)->plan;
    return plan->stop(plan->stop_context) != 0;
}

static void say(void *self, pc_plan_phase phase, int64_t done, int64_t total) {
    const onlooker *of = self;
    if (phase == PC_PLAN_SIMULATION && of->progress) of->progress(of->context, done, total);
}

static pc_code find_plans(search *s, const pc_plan_request *request, pc_error *error) {
    int count;
    pc_plan_scenario_bases(s->scenario, &count);
    pc_run_spec *before = pc_alloc((size_t)count, sizeof *before);
    if (!before) return pc_error_no_memory(error);
    pc_code code = open_profiles(s, error);
    if (!code) {
        use_profiles(s, before);
        code = pc_plan_run(pc_plan_scenario_space(s->scenario), request, &s->answer, error);
        forget_profiles(s, before);
    }
    pc_free(before);
    return code ? code : run_plans(s, request->objectives[0], error);
}

static pc_code hand_over(search *s, pipecast_results **results, pc_error *error) {
    pipecast_results *made = api_results_create(s->answer.count);
    if (!made) return pc_error_no_memory(error);
    api_results_add(made, rank_fields, 1, s->rows, sizeof *s->rows);
    api_results_take_runs(made, s->runs);
    api_results_add(made, plan_fields, sizeof plan_fields / sizeof *plan_fields, s->rows, sizeof *s->rows);
    made->plan = made->more_rows = s->rows;
    s->runs = NULL;
    s->rows = NULL;
    *results = made;
    return PC_OK;
}

static void close_search(search *s) {
    api_plan_rows_free(s->rows, s->answer.count);
    pc_free(s->rows);
    pc_free(s->runs);
    pc_free(s->found);
    pc_plan_answer_free(&s->answer);
    pc_run_profiles_close(&s->profiles);
}

int pipecast_plan_run(pipecast_plan *plan, int threads, int flags, pipecast_progress *progress, void *context,
                      pipecast_results **results, pipecast_error *error) {
    pc_error why = {0};
    search s = {.scenario = plan->scenario};
    onlooker looks = {progress, context, plan};
    pc_plan_request request = pc_plan_scenario_request(plan->scenario);
    request.threads = threads;
    request.all_variants = (flags & PIPECAST_ALL_VARIANTS) != 0;
    request.exhaustive = (flags & PIPECAST_EXHAUSTIVE) != 0;
    request.progress = (pc_plan_progress){.say = say, .self = &looks, .is_stopped = plan->stop ? is_stopped : NULL};
    pc_code code = api_check_threads(threads, &why);
    if (!code && flags & ~(PIPECAST_ALL_VARIANTS | PIPECAST_EXHAUSTIVE))
        code =
            pc_error_set(&why, PC_ERROR_INPUT, "flags: %d; expected PIPECAST_ALL_VARIANTS, PIPECAST_EXHAUSTIVE", flags);
    if (!code) code = find_plans(&s, &request, &why);
    if (!code) code = hand_over(&s, results, &why);
    close_search(&s);
    return api_answer(code, &why, error);
}
