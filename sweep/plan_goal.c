/* The fewest GPUs on which a training keeps to a deadline and a budget. */
#include "engine/alloc.h"
#include "sweep/plan_questions_private.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Up to EVERY_MOST multiples of a node between a number that misses the goal and one that keeps to it are all tried. Of
 * more it is up to STEPS_MOST, and then again between the last of these that misses it and the next. */
enum { EVERY_MOST = 128, STEPS_MOST = 16, ROUNDS_MOST = 16 };

/* What is tried of one machine. */
typedef struct goal_search {
    const pc_plan_asker *asker;
    const pc_plan_goal *goal;
    pc_plan_cells *cells;
    pc_plan_axis machines;
    int machine;             /* its place among them */
    const int64_t *listed;   /* numbers of GPUs, the fewest first */
    int count;               /* of them */
    int64_t done, total;     /* numbers tried, and to be tried, of all machines */
    pc_plan_tried tried;     /* of this machine */
    int64_t misses, reaches; /* GPUs: the most that are known to miss the goal below the fewest that keep to it */
} goal_search;

/* ---- what is known before a search ---- */

/* FLOPs of a token: 0 as long as no plan has said so. */
static double flops_of_token(const pc_plan_cells *cells) {
    for (int64_t i = 0; i < cells->count; i++) {
        const pc_run_row *row = &cells->rows[i].row;
        if (!cells->rows[i].lacks_plan) return row->tflops_per_gpu * 1e12 / row->tokens_per_s_per_gpu;
    }
    return 0.0;
}

static const pc_run_spec *spec_of(const goal_search *x) {
    int count;
    const pc_run_spec *bases = pc_plan_scenario_bases(x->asker->scenario, &count);
    return &bases[(ptrdiff_t)x->machine * (count / x->machines.count)];
}

/* Whether so many GPUs of the machine take longer even at the highest of their rates. */
static bool is_hopeless(const goal_search *x, int64_t gpus) {
    const pc_run_spec *spec = spec_of(x);
    const pc_gpu *gpu = &spec->iteration.machine.gpu;
    double rate = fmax(gpu->matrix_flops_per_s, fmax(gpu->matrix_fp8_flops_per_s, gpu->matrix_fp4_flops_per_s));
    double least_s = flops_of_token(x->cells) * (double)spec->tokens / (rate * (double)gpus);
    return x->goal->deadline_s > 0.0 && least_s > x->goal->deadline_s;
}

void pc_plan_goal_limit(pc_plan_scenario *scenario, const pc_plan_goal *goal, const pc_plan_space *space,
                        pc_plan_request *request) {
    static const double rounding = 1 + 1e-9; /* whether a plan keeps to it is for its run to say */
    int count;
    double million_tokens = (double)pc_plan_scenario_bases(scenario, &count)->tokens / 1e6, most = INFINITY;
    double price = space->bases[0].gpu_hour_price > 0.0 ? space->bases[0].gpu_hour_price : 1.0;
    if (goal->deadline_s > 0.0)
        most = goal->deadline_s / 3600 * (double)space->gpus.values[0] * price / million_tokens * rounding;
    if (goal->budget > 0.0) most = fmin(most, goal->budget / million_tokens * rounding);
    if (request->most_cost > 0.0) most = fmin(most, request->most_cost);
    request->most_cost = most;
}

/* ---- one number of GPUs ---- */

/* A row of the number's fastest plan. A listed number has it however long that takes, and if there is none, the reason;
 * another only if it keeps to the goal. */
static pc_code try_number(goal_search *x, int64_t gpus, bool is_listed, bool *keeps, pc_error *error) {
    pc_plan_asker asker = *x->asker;
    pc_plan_space space = *pc_plan_scenario_space(asker.scenario);
    pc_plan_row *row = &x->cells->rows[x->cells->count];
    char machine[PC_PLAN_CELL_TEXT], number[PC_PLAN_CELL_TEXT], name[PC_LABEL_SIZE];
    *keeps = false;
    if (asker.say) asker.say(asker.self, x->done, x->total);
    x->done++;
    if (is_hopeless(x, gpus)) {
        x->cells->passed_over++;
        return PC_OK;
    }
    pc_plan_axis_value(asker.scenario, &x->machines, x->machine, machine);
    pc_plan_axis_narrow(asker.scenario, &x->machines, x->machine, &space);
    space.gpus = (pc_plan_list){&gpus, 1};
    snprintf(number, sizeof number, "%" PRId64, gpus);
    *row = (pc_plan_row){.part = x->cells->part, .factor = NAN};
    plan_cell_name(x->cells, (const char *const[]){machine, number}, row, name);
    asker.request.objectives[0] = PC_PLAN_THROUGHPUT; /* which is the least cost of a token too */
    if (!is_listed) pc_plan_goal_limit(asker.scenario, x->goal, &space, &asker.request);
    pc_code code =
        is_listed ? plan_cell_make(&asker, &space, name, row, error) : plan_cell_find(&asker, &space, name, row, error);
    if (code) return code;
    *keeps = pc_plan_row_meets(x->goal, row);
    if (is_listed || *keeps) x->cells->count++;
    return PC_OK;
}

/* ---- those that were listed ---- */

/* Where a rule is all that stands in the way, fewer GPUs may have a plan. */
static bool tells_of_fewer(const goal_search *x, int64_t rows_before) {
    if (x->cells->count == rows_before) return true; /* hopeless */
    const pc_plan_row *row = &x->cells->rows[x->cells->count - 1];
    return !row->lacks_plan || row->rule == PC_PLAN_RULES;
}

static pc_code try_listed(goal_search *x, pc_error *error) {
    bool keeps = false;
    x->misses = x->reaches = 0;
    for (int i = 0; i < x->count && !keeps; i++) {
        int64_t before = x->cells->count;
        pc_code code = try_number(x, x->listed[i], true, &keeps, error);
        if (code) return code;
        if (!keeps && (i == 0 || tells_of_fewer(x, before))) x->misses = x->listed[i];
        if (keeps) x->reaches = x->listed[i];
    }
    return PC_OK;
}

/* ---- those between ---- */

static int64_t unit_of(const goal_search *x) {
    int64_t node = spec_of(x)->iteration.machine.gpus_per_node;
    return x->reaches <= node ? 1 : node;
}

/* Multiples of `step` between. */
static int64_t count_between(const goal_search *x, int64_t step) {
    return (x->reaches - 1) / step - x->misses / step;
}

/* False if none of them keeps to it: then there is nothing more to be found. */
static pc_code try_steps(goal_search *x, int64_t step, bool *found, pc_error *error) {
    pc_code code = PC_OK;
    int64_t reaches = x->reaches;
    *found = false;
    x->total += count_between(x, step);
    for (int64_t gpus = (x->misses / step + 1) * step; gpus < reaches && !*found && !code; gpus += step) {
        code = try_number(x, gpus, false, found, error);
        x->tried.count++;
        if (*found)
            x->reaches = gpus;
        else
            x->misses = gpus;
    }
    x->done += x->reaches < reaches ? (reaches - 1) / step - x->reaches / step : 0;
    return code;
}

static pc_code try_between(goal_search *x, pc_error *error) {
    bool found = true;
    pc_code code = PC_OK;
    x->tried = (pc_plan_tried){.misses = x->misses, .reaches = x->reaches, .is_every = true};
    for (int round = 0; x->misses > 0 && round < ROUNDS_MOST && found && !code; round++) {
        int64_t unit = unit_of(x), step = unit;
        if (count_between(x, unit) == 0) break;
        if (count_between(x, unit) > EVERY_MOST) x->tried.is_every = false;
        while (count_between(x, unit) > EVERY_MOST && count_between(x, step) > STEPS_MOST) step *= 2;
        x->tried.step = unit;
        code = try_steps(x, step, &found, error);
        found = found || step > unit; /* finer ones are between the last step and the number that keeps to it */
    }
    if (x->tried.step == 0) x->tried.step = unit_of(x);
    return code;
}

/* ---- all machines ---- */

static void sort(int64_t *numbers, int count) {
    for (int i = 1; i < count; i++) {
        int64_t number = numbers[i];
        int at = i;
        for (; at > 0 && numbers[at - 1] > number; at--) numbers[at] = numbers[at - 1];
        numbers[at] = number;
    }
}

static int compare_rows(const void *left, const void *right) {
    const pc_plan_row *a = left, *b = right;
    return (a->row.gpus > b->row.gpus) - (a->row.gpus < b->row.gpus);
}

static pc_code try_machine(goal_search *x, pc_error *error) {
    int64_t first = x->cells->count, before = x->done;
    pc_code code = try_listed(x, error);
    if (!code && x->reaches > 0) x->done = before + x->count;
    if (!code && x->reaches > 0) code = try_between(x, error);
    if (!code) qsort(x->cells->rows + first, (size_t)(x->cells->count - first), sizeof *x->cells->rows, compare_rows);
    return code;
}

static pc_code try_machines(goal_search *x, pc_error *error) {
    pc_code code = PC_OK;
    for (x->machine = 0; x->machine < x->machines.count && !code; x->machine++) {
        int64_t first = x->cells->count;
        code = try_machine(x, error);
        if (!code && pc_plan_cells_least(x->cells, x->goal) >= first) x->cells->tried = x->tried;
    }
    return code;
}

pc_code pc_plan_ask_goal(const pc_plan_asker *asker, const pc_plan_goal *goal, pc_plan_cells *cells, pc_error *error) {
    const pc_plan_list *gpus = &pc_plan_scenario_space(asker->scenario)->gpus;
    goal_search x = {.asker = asker, .goal = goal, .cells = cells, .count = gpus->count};
    x.machines = pc_plan_axis_of(asker->scenario, "machine");
    x.total = (int64_t)x.machines.count * x.count;
    *cells = (pc_plan_cells){.part = asker->asks_each ? PC_PLAN_PART_GOAL : PC_PLAN_PART_EACH,
                             .is_of_goal = true,
                             .axis_count = 2,
                             .axis = {x.machines.name, "gpus"}};
    cells->rows = pc_alloc((size_t)x.machines.count * (size_t)(x.count + ROUNDS_MOST) + 1, sizeof *cells->rows);
    int64_t *listed = pc_alloc((size_t)x.count, sizeof *listed);
    pc_code code = cells->rows && listed ? PC_OK : pc_error_no_memory(error);
    if (!code) {
        memcpy(listed, gpus->values, (size_t)x.count * sizeof *listed);
        sort(listed, x.count);
        x.listed = listed;
        code = try_machines(&x, error);
    }
    pc_free(listed);
    if (code) pc_plan_cells_free(cells);
    return code;
}
