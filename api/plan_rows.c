/* Plans as rows of a table. */
#include "api/plan_private.h"

#include "engine/alloc.h"
#include "models/machine/ranks.h"
#include "storage/text.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

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
    {"part", "", "what the row answers: each, map, sensitivity or mix", PC_FIELD_TEXT, PC_FIELD_AT(plan_row, part)},
    {"what", "", "of which values it is the best plan, what is changed, or which plan it is", PC_FIELD_TEXT,
     PC_FIELD_AT(plan_row, what)},
    {"factor", "1", "how many times as much of that there is", PC_FIELD_NUMBER, PC_FIELD_AT(plan_row, factor)},
};
enum { PLAN_FIELDS = sizeof plan_fields / sizeof *plan_fields, FIELDS_OF_PARTS = 3 };

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

/* ---- rows ---- */

static void describe_choice(const pc_plan_row *plan, plan_row *row) {
    const pc_plan_choice *choice = &plan->found.choice;
    pc_rank_order_write(choice->order, row->rank_order);
    pc_offload_write(choice->offload, row->offload);
    snprintf(row->cp_comm_type, sizeof row->cp_comm_type, "%s", pc_plan_cp_comm(plan));
    snprintf(row->dispatcher, sizeof row->dispatcher, "%s", pc_plan_dispatcher(plan));
    row->overlap_p2p = choice->overlaps_p2p;
    row->overlap_tp = choice->overlaps_tp;
    row->overlap_gradients = choice->overlaps_gradients;
    row->overlap_parameters = choice->overlaps_parameters;
}

/* Without a plan all but what it was asked for is not defined. Beside the best one are other plans, and changes of it.
 */
static pc_code describe(const pipecast_plan *plan, const pc_plan_row *best, int64_t index, plan_row *row,
                        pc_error *error) {
    const pc_plan_row *of = &row->plan;
    pc_plan_objective objective = pc_plan_scenario_request(plan->scenario).objectives[0];
    set_list list = {row, false};
    row->rank = index + 1;
    row->overlap_p2p = row->overlap_tp = row->overlap_gradients = row->overlap_parameters = row->ties = row->close = -1;
    snprintf(row->part, sizeof row->part, "%s", pc_plan_part_name(of->part));
    snprintf(row->what, sizeof row->what, "%s", of->what);
    row->factor = of->part == PC_PLAN_PART_SENSITIVITY ? of->factor : NAN;
    if (of->lacks_plan) return PC_OK;
    describe_choice(of, row);
    if (of->part != PC_PLAN_PART_MIX) pc_plan_limits(of, row->limits); /* means have no waits */
    if (of->part == PC_PLAN_PART_PLANS || of->part == PC_PLAN_PART_SENSITIVITY) {
        pc_plan_behind(objective, best, of, row->behind);
        row->ties = pc_plan_ties(objective, best, of);
        row->close = pc_plan_is_close(objective, best, of);
    }
    if (of->part == PC_PLAN_PART_SENSITIVITY || of->part == PC_PLAN_PART_MIX) return PC_OK; /* of no scenario's run */
    pc_code code = pc_plan_scenario_put(plan->scenario, &of->found.choice, add_set, &list, error);
    return !code && list.has_failed ? pc_error_no_memory(error) : code;
}

static pc_code describe_all(const pipecast_plan *plan, const pc_plan_row *best, plan_row *rows, int64_t count,
                            pc_error *error) {
    pc_number_scope scope = {0};
    if (!pc_number_scope_enter(&scope)) return pc_error_no_memory(error);
    pc_code code = PC_OK;
    for (int64_t i = 0; i < count && !code; i++) code = describe(plan, best, i, &rows[i], error);
    pc_number_scope_leave(&scope);
    return code;
}

static pipecast_results *make_table(const pipecast_plan *plan, pc_run_row *runs, plan_row *rows, int64_t count,
                                    bool are_plans) {
    pipecast_results *made = api_results_create(count);
    if (!made) return NULL;
    if (are_plans) api_results_add(made, rank_fields, 1, rows, sizeof *rows);
    api_results_take_runs(made, runs);
    api_results_add(made, plan_fields, are_plans ? PLAN_FIELDS - FIELDS_OF_PARTS : PLAN_FIELDS, rows, sizeof *rows);
    made->plan = made->more_rows = rows;
    made->planned_by = plan;
    return made;
}

pc_code api_plan_table(const pipecast_plan *plan, const pc_plan_row *rows, int64_t count, const pc_plan_row *best,
                       pipecast_results **results, pc_error *error) {
    bool are_plans = count == 0 || rows[0].part == PC_PLAN_PART_PLANS;
    pc_run_row *runs = pc_alloc((size_t)count, sizeof *runs);
    plan_row *made = pc_alloc((size_t)count, sizeof *made);
    pc_code code = runs && made ? PC_OK : pc_error_no_memory(error);
    for (int64_t i = 0; i < count && !code; i++) {
        runs[i] = rows[i].row;
        made[i].plan = rows[i];
    }
    if (best == rows) best = code || count == 0 ? NULL : &made[0].plan; /* is not beside itself, by its address */
    if (!code) code = describe_all(plan, best, made, count, error);
    pipecast_results *table = code ? NULL : make_table(plan, runs, made, count, are_plans);
    if (!code && !table) code = pc_error_no_memory(error);
    if (!code) {
        *results = table;
        return PC_OK;
    }
    api_plan_rows_free(made, count);
    pc_free(made);
    pc_free(runs);
    return code;
}
