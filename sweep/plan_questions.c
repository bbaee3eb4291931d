#include "sweep/plan_questions.h"

#include "engine/alloc.h"
#include "engine/numbers.h"
#include "sweep/plan_questions_private.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- one cell ---- */

/* Of the first objective the best plan alone. */
static pc_plan_request request_of(const pc_plan_asker *asker) {
    return (pc_plan_request){
        .objectives = {asker->request.objectives[0]},
        .objective_count = 1,
        .top = 1,
        .most_iteration_s = asker->request.most_iteration_s,
        .most_cost = asker->request.most_cost,
        .exhaustive = asker->request.exhaustive,
        .shard = asker->request.shard,
        .shard_count = asker->request.shard_count,
        .crew = asker->request.crew,
        .keeper = asker->request.keeper,
        .progress = {.self = asker->request.progress.self, .is_stopped = asker->request.progress.is_stopped},
        .threads = asker->request.threads};
}

static pc_code run_found(const pc_plan_asker *asker, const char *name, pc_plan_row *row, pc_error *error) {
    pc_run_detail detail = {.devices = 0};
    pc_run_spec spec;
    pc_run_labels labels;
    pc_code code = pc_plan_scenario_run_spec(asker->scenario, &row->found.choice, 1, &spec, &labels, error);
    if (code) return code;
    snprintf(labels.name, sizeof labels.name, "%s", name);
    code = pc_run_profiles_open(asker->profiles, &spec, error);
    if (!code) pc_run_profiles_use(asker->profiles, &spec);
    spec.trace = false;
    if (!code) code = pc_plan_row_run(&spec, &labels, row, &detail, error);
    pc_run_detail_free(&detail);
    pc_run_spec_free(&spec);
    return code;
}

static int64_t only(const pc_plan_list *list) {
    return list->count == 1 ? list->values[0] : -1;
}

/* The row of a run that breaks a rule: of the numbers those that have one value. */
static pc_code describe_lack(const pc_plan_space *space, const char *name, const char *why, pc_plan_row *row,
                             pc_error *error) {
    pc_run_spec spec = pc_run_spec_default();
    pc_run_labels labels = pc_run_labels_none();
    pc_run_detail detail = {.devices = 0};
    spec.is_cluster = true;
    spec.iteration = space->bases[0].spec;
    spec.generator = spec.iteration.generator = space->generators[0];
    spec.gpus = only(&space->gpus);
    pc_cut *cut = &spec.iteration.cut;
    cut->tp = (int)only(&space->tp);
    spec.devices = cut->pp = (int)only(&space->pp);
    cut->dp = (int)only(&space->dp);
    spec.seq_len = cut->seq_len;
    spec.chunks = 1;
    snprintf(spec.infeasible, sizeof spec.infeasible, "%s", why);
    snprintf(labels.name, sizeof labels.name, "%s", name);
    snprintf(labels.model, sizeof labels.model, "%.*s", PC_LABEL_SIZE - 1, spec.iteration.model.name);
    snprintf(labels.machine, sizeof labels.machine, "%.*s", PC_LABEL_SIZE - 1, spec.iteration.machine.name);
    pc_code code = pc_run_row_make(&spec, &labels, &row->row, &detail, error);
    pc_run_detail_free(&detail);
    return code;
}

static bool find_least_memory(const pc_plan_asker *asker, const pc_plan_space *space, pc_plan_found *found) {
    pc_plan_request request = request_of(asker);
    pc_plan_answer answer = {.count = 0};
    pc_plan_space roomy = *space;
    pc_plan_base *bases = pc_alloc((size_t)space->base_count, sizeof *bases);
    if (!bases) return false;
    memcpy(bases, space->bases, (size_t)space->base_count * sizeof *bases);
    for (int i = 0; i < space->base_count; i++) bases[i].spec.memory_limit_bytes = INT64_C(1) << 50;
    roomy.bases = bases;
    request.objectives[0] = PC_PLAN_MEMORY;
    pc_code code = pc_plan_shares_ask(asker->shares, &roomy, &request, &answer, NULL);
    bool has_one = code == PC_OK && answer.count > 0;
    if (has_one) *found = answer.found[0];
    pc_plan_answer_free(&answer);
    pc_free(bases);
    return has_one;
}

static pc_code describe_memory(const pc_plan_asker *asker, const pc_plan_space *space, const char *name,
                               pc_plan_row *row, pc_error *error) {
    pc_plan_found least;
    char why[PC_PLAN_TEXT_SIZE] = "over memory";
    bool is_known = find_least_memory(asker, space, &least);
    if (is_known) {
        int64_t room = pc_iteration_capacity(&space->bases[least.choice.base].spec);
        pc_plan_amounts gib = pc_plan_write_gib(least.memory_bytes, room, 1);
        snprintf(why, sizeof why, "needs %s GiB at least, of %s GiB", gib.found, gib.limit);
    }
    pc_code code = describe_lack(space, name, why, row, error);
    if (code) return code;
    row->row.status = PC_RUN_OUT_OF_MEMORY;
    row->row.memory_gib_max = is_known ? (double)least.memory_bytes / PC_BYTES_PER_GIB : NAN;
    return PC_OK;
}

static pc_code describe_none(const pc_plan_asker *asker, const pc_plan_space *space, const pc_plan_log *log,
                             const char *name, pc_plan_row *row, pc_error *error) {
    pc_plan_remedy remedy = {.blamed = pc_plan_log_blames(log), .way = PC_PLAN_WAY_NONE};
    char why[PC_PLAN_REASON_SIZE] = "beyond the limits on time or cost";
    bool has_limit = log->too_slow > 0 || log->simulated > log->simulated_over_memory + log->simulated_infeasible;
    pc_plan_found least;
    row->lacks_plan = true;
    row->rule = PC_PLAN_RULES;
    /* Though this share has nothing over memory, another may have, and then the least of all is asked for. */
    if (!has_limit && log->over_memory + log->simulated_over_memory == 0 && pc_plan_shares_records(asker->shares))
        (void)find_least_memory(asker, space, &least);
    if (!has_limit && log->over_memory + log->simulated_over_memory > 0)
        return describe_memory(asker, space, name, row, error);
    if (!has_limit) {
        row->rule = remedy.blamed;
        remedy.rule = remedy.blamed;
        pc_plan_rule_text(space, log, &remedy, why);
    }
    return describe_lack(space, name, why, row, error);
}

/* The row of the best plan, if there is one; else why not, if that is asked. */
static pc_code find_cell(const pc_plan_asker *asker, const pc_plan_space *space, const char *name, bool says_why,
                         pc_plan_row *row, pc_error *error) {
    const pc_plan_space *whole = pc_plan_scenario_space(asker->scenario);
    pc_plan_request request = request_of(asker);
    pc_plan_answer answer = {.count = 0};
    pc_code code = pc_plan_shares_ask(asker->shares, space, &request, &answer, error);
    if (code) return code;
    row->lacks_plan = answer.count == 0;
    if (answer.count > 0) {
        row->found = answer.found[0];
        row->found.choice.base += (int)(space->bases - whole->bases);
        code = run_found(asker, name, row, error);
    } else if (says_why) {
        code = describe_none(asker, space, &answer.log, name, row, error);
    }
    pc_plan_answer_free(&answer);
    return code;
}

pc_code plan_cell_make(const pc_plan_asker *asker, const pc_plan_space *space, const char *name, pc_plan_row *row,
                       pc_error *error) {
    return find_cell(asker, space, name, true, row, error);
}

pc_code plan_cell_find(const pc_plan_asker *asker, const pc_plan_space *space, const char *name, pc_plan_row *row,
                       pc_error *error) {
    return find_cell(asker, space, name, false, row, error);
}

/* ---- all cells ---- */

static pc_code list_values(const pc_plan_asker *asker, const pc_plan_axis *axis, int place, pc_plan_cells *cells,
                           pc_error *error) {
    cells->axis[place] = axis->name;
    cells->size[place] = axis->count;
    cells->value[place] = pc_alloc((size_t)axis->count, sizeof *cells->value[place]);
    if (!cells->value[place]) return pc_error_no_memory(error);
    _Static_assert((int)PC_PLAN_CELL_TEXT == (int)PC_PLAN_VALUE_SIZE, "a value fits");
    for (int i = 0; i < axis->count; i++) pc_plan_axis_value(asker->scenario, axis, i, cells->value[place][i]);
    return PC_OK;
}

static pc_code start_cells(const pc_plan_asker *asker, const pc_plan_axis *axes, int axis_count, pc_plan_part part,
                           pc_plan_cells *cells, pc_error *error) {
    pc_code code = PC_OK;
    size_t count = 1;
    *cells = (pc_plan_cells){.part = part, .axis_count = axis_count};
    for (int i = 0; i < axis_count && !code; i++) {
        code = list_values(asker, &axes[i], i, cells, error);
        count *= (size_t)axes[i].count;
    }
    if (code) return code;
    cells->rows = pc_alloc(count, sizeof *cells->rows);
    return cells->rows ? PC_OK : pc_error_no_memory(error);
}

void plan_cell_name(const pc_plan_cells *cells, const char *const values[PC_PLAN_CELL_AXES], pc_plan_row *row,
                    char name[PC_LABEL_SIZE]) {
    int used = 0, named = snprintf(name, PC_LABEL_SIZE, "%s", pc_plan_part_name(cells->part));
    for (int i = 0; i < cells->axis_count && i < PC_PLAN_CELL_AXES; i++) {
        used += snprintf(row->what + used, sizeof row->what - (size_t)used, "%s%.40s %.20s", i ? ", " : "",
                         cells->axis[i], values[i]);
        if (named < PC_LABEL_SIZE)
            named += snprintf(name + named, (size_t)(PC_LABEL_SIZE - named), "%s%.32s=%.24s", i ? "," : ".",
                              cells->axis[i], values[i]);
    }
}

/* The cell of these values, as the next row. */
static pc_code add_cell(const pc_plan_asker *asker, const pc_plan_axis *axes, const int index[PC_PLAN_CELL_AXES],
                        pc_plan_cells *cells, pc_error *error) {
    pc_plan_space space = *pc_plan_scenario_space(asker->scenario);
    pc_plan_row *row = &cells->rows[cells->count];
    char name[PC_LABEL_SIZE];
    *row = (pc_plan_row){.part = cells->part, .factor = NAN};
    const char *values[PC_PLAN_CELL_AXES] = {NULL};
    for (int i = 0; i < cells->axis_count && i < PC_PLAN_CELL_AXES; i++) {
        pc_plan_axis_narrow(asker->scenario, &axes[i], index[i], &space);
        values[i] = cells->value[i][index[i]];
    }
    plan_cell_name(cells, values, row, name);
    pc_code code = plan_cell_make(asker, &space, name, row, error);
    if (!code) cells->count++;
    return code;
}

pc_code pc_plan_ask_each(const pc_plan_asker *asker, const pc_plan_axis *axes, int axis_count, pc_plan_part part,
                         pc_plan_cells *cells, pc_error *error) {
    pc_code code = start_cells(asker, axes, axis_count, part, cells, error);
    int second = axis_count > 1 ? axes[1].count : 1, total = axes[0].count * second;
    for (int i = 0; i < total && !code; i++) {
        const int place[PC_PLAN_CELL_AXES] = {i / second, i % second};
        if (asker->say) asker->say(asker->self, i, total);
        code = add_cell(asker, axes, place, cells, error);
    }
    if (code) pc_plan_cells_free(cells);
    return code;
}
