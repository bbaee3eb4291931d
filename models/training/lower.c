/* The program's frame: room, processors, memories; stage by stage what the other files add; and the run. */
#include "models/training/lower.h"

#include "engine/alloc.h"
#include "models/training/expand_replicas.h"
#include "models/training/lowering.h"
#include "models/training/pass_costs.h"

#include <string.h>

/* ---- what passes take ---- */

pc_time lowering_duration_ps(const lowering *x, int replica, int device, int64_t position) {
    pc_pass pass = x->schedule->passes[position];
    const pc_time *given = x->how.times ? x->how.times[replica].duration_ps : NULL;
    return given ? given[position] : pc_costs_duration(&x->costs, device, pass.chunk, pass.kind);
}

pc_time lowering_message_ps(const lowering *x, int replica, int device, int64_t position, int to) {
    const pc_time *given = x->how.times ? x->how.times[replica].message_ps : NULL;
    return given ? given[position] : x->plan->device[pc_plan_hop(x->plan, device, to)].hop_ps;
}

pc_time lowering_ready_ps(const lowering *x, int replica, int device, int chunk) {
    const pc_time *given = x->how.times ? x->how.times[replica].ready_ps : NULL;
    return given ? given[lowering_cell(x, device, chunk)] : pc_costs_ready(&x->costs, device, chunk);
}

/* ---- room ---- */

static void find_ends(lowering *x) {
    const pc_schedule *schedule = x->schedule;
    for (int d = 0; d < schedule->devices; d++)
        for (int64_t i = schedule->offsets[d]; i < schedule->offsets[d + 1]; i++) {
            int64_t at = lowering_cell(x, d, schedule->passes[i].chunk);
            if (schedule->passes[i].kind == PC_PASS_F && x->first_f[at] == PC_NO_TASK) x->first_f[at] = (int32_t)i;
            if (pc_pass_adds_gradients(schedule->passes[i])) x->last_back[at] = (int32_t)i;
        }
}

/* Of so many numbers of tasks, PC_NO_TASK all. */
static int32_t *make_tasks(size_t count) {
    int32_t *made = pc_alloc(count, sizeof *made);
    if (made) memset(made, 0xff, count * sizeof *made);
    return made;
}

static bool make_pass_arrays(lowering *x) {
    bool has_waiters = x->how.waits_for_memory && !x->how.is_closed && !x->plan->spec->overlaps_p2p;
    size_t passes = (size_t)x->passes, rows = passes * (size_t)x->how.replicas;
    x->first = make_tasks(6 * rows + passes);
    if (!x->first) return false;
    x->last = x->first + rows;
    x->leaves = x->last + rows;
    x->message = x->leaves + rows;
    x->sent = x->message + rows;
    if (has_waiters) x->waiter = x->sent + rows;
    x->sent_to = x->sent + 2 * rows;
    return true;
}

static bool make_stage_arrays(lowering *x) {
    size_t devices = (size_t)x->plan->devices, cells = devices * (size_t)x->plan->chunks;
    size_t replicas = (size_t)x->how.replicas, places = replicas * devices;
    x->first_f = make_tasks(2 * cells + 2 * devices + 4 * places + replicas);
    x->bucket = pc_alloc(cells + 1, sizeof *x->bucket);
    if (!x->first_f || !x->bucket) return false;
    x->last_back = x->first_f + cells;
    x->stream = x->last_back + cells;
    x->ended = x->stream + devices;
    x->sender = x->ended + devices;
    x->step = x->sender + 2 * places;
    x->overhead = x->step + places;
    x->afters = x->overhead + places;
    for (size_t i = 0; i < cells; i++) x->bucket[i + 1] = x->bucket[i] + x->plan->chunks_of[i].buckets;
    x->gathered = pc_alloc((1 + replicas) * (size_t)x->bucket[cells], sizeof *x->gathered);
    if (!x->gathered) return false;
    x->reducible = x->gathered + x->bucket[cells];
    return true;
}

static pc_code make_recipe(lowering *x, int sort, pc_pass_kind kind) {
    const pc_iteration_plan *plan = x->plan;
    int at = sort * PC_PASS_KINDS + (int)kind;
    pc_recipe *recipe = &x->recipes[at];
    pc_code code = pc_recipe_make(plan, &plan->part_costs[sort], kind, recipe, x->error);
    if (code) return code;
    x->sendings[at] = pc_alloc((size_t)recipe->count, sizeof **x->sendings);
    if (!x->sendings[at]) return pc_error_no_memory(x->error);
    for (int i = 0; !code && i < recipe->count; i++)
        if (recipe->steps[i].is_collective)
            code = pc_lanes_sendings(&x->lanes, &plan->tp, &recipe->steps[i].collective, plan->pace,
                                     &x->sendings[at][i], x->error);
    return code;
}

static pc_code make_recipes(lowering *x) {
    const pc_iteration_plan *plan = x->plan;
    size_t count = (size_t)plan->sort_count * PC_PASS_KINDS;
    pc_code code = PC_OK;
    if (plan->spec->granularity == PC_GRANULARITY_PASS || x->how.times) return PC_OK;
    x->recipes = pc_alloc(count, sizeof *x->recipes);
    x->sendings = pc_alloc(count, sizeof *x->sendings);
    if (!x->recipes || !x->sendings) return pc_error_no_memory(x->error);
    for (int sort = 0; sort < plan->sort_count; sort++)
        for (int kind = 0; !code && kind < PC_PASS_KINDS; kind++)
            if (pc_plan_has_kind(plan->spec->generator, (pc_pass_kind)kind))
                code = make_recipe(x, sort, (pc_pass_kind)kind);
    return code;
}

/* The tasks of a pass's steps, at least; 0 where a pass is one. */
static double count_steps(const pc_recipe *recipe) {
    double count = 0;
    for (int i = 0; i < recipe->count; i++) count += (double)recipe->steps[i].repeat;
    return count;
}

/* So many tasks take about 2.7 GB. */
enum { TASKS_MAX = 1 << 24 };

/* The steps of all passes, one each where they are not cut into operations. */
static double count_tasks(const lowering *x) {
    double tasks = 0;
    if (!x->recipes) return (double)x->passes;
    for (int d = 0; d < x->schedule->devices; d++)
        for (int64_t i = x->schedule->offsets[d]; i < x->schedule->offsets[d + 1]; i++) {
            pc_pass pass = x->schedule->passes[i];
            int sort = x->plan->chunks_of[lowering_cell(x, d, pass.chunk)].sort;
            tasks += count_steps(&x->recipes[sort * PC_PASS_KINDS + pass.kind]);
        }
    return tasks;
}

/* About as much as is needed: beside its steps a pass has a message of two flows; a bucket is gathered and reduced, in
 * a few flows, and cuts two passes. */
static pc_code make_room(lowering *x) {
    double tasks = x->how.replicas * count_tasks(x);
    bool is_single = x->how.replicas == 1;
    if (tasks <= TASKS_MAX || (!x->recipes && is_single)) {
        int64_t all = (int64_t)tasks + x->how.replicas * (2 * x->passes + 8 * lowering_buckets(x));
        return pc_program_reserve(x->program, all, all + all / 2, x->error);
    }
    return pc_error_set(x->error, PC_ERROR_INPUT, "%s make %.0f tasks; expected at most %d: fewer microbatches%s",
                        is_single ? "granularity: operations" : "iteration: passes of expanded replicas", tasks,
                        TASKS_MAX, is_single ? ", or passes" : "; or replicas folded, or the engine left to choose");
}

/* ---- processors and memories ---- */

/* What the device holds all the time comes first of all that its processor does. */
static pc_code add_memory(lowering *x, int place) {
    int device = place % x->plan->devices;
    int64_t capacity = x->plan->device[device].capacity_bytes, held = pc_iteration_plan_fixed(x->plan, device);
    pc_task fixed = pc_task_default();
    int32_t number;
    pc_code code = pc_program_add_memory(x->program, capacity,
                                         x->how.waits_for_memory ? PC_MEMORY_WAIT : PC_MEMORY_NOTE, &number, x->error);
    fixed.processor = place;
    fixed.memory = number; /* place */
    fixed.take_bytes = held;
    return code ? code : pc_program_add_task(x->program, &fixed, &number, x->error);
}

static pc_code add_devices(lowering *x) {
    pc_code code = PC_OK;
    for (int place = 0; !code && place < x->how.replicas * x->plan->devices; place++) {
        int32_t number; /* place */
        code = pc_program_add_processor(x->program, PC_PROCESSOR_IN_ORDER, &number, x->error);
        if (!code && x->how.has_memory) code = add_memory(x, place);
    }
    return code;
}

/* ---- the program ---- */

static pc_code add_stage(lowering *x, int device) {
    pc_code code = lowering_add_gathers(x, device);
    for (int r = 0; !code && r < x->how.replicas; r++) code = lowering_add_passes(x, r, device);
    return code ? code : lowering_add_reductions(x, device);
}

static pc_code make_lanes(lowering *x) {
    pc_code code = pc_lanes_make(x->plan, x->program, x->how.replicas, !x->how.is_closed, &x->lanes, x->error);
    x->lanes.keeps_notes = x->how.with_trace;
    return code;
}

static pc_code build(lowering *x) {
    int without = x->how.is_closed ? 0 : PC_WITHOUT_TRANSFERS;
    pc_code code = pc_program_create(&x->program, x->error);
    if (!code) code = make_lanes(x);
    if (!code) code = pc_iteration_plan_costs(x->plan, without, &x->costs, x->error);
    if (!code) code = pc_pass_index_create(x->schedule, &x->index, x->error);
    if (!code && (!make_pass_arrays(x) || !make_stage_arrays(x))) code = pc_error_no_memory(x->error);
    if (code) return code;
    find_ends(x);
    code = make_recipes(x);
    if (!code) code = make_room(x);
    if (!code) code = add_devices(x);
    for (int d = 0; !code && d < x->plan->devices; d++) code = add_stage(x, d);
    for (int r = 0; !code && r < x->how.replicas; r++) code = lowering_add_transfers(x, r);
    if (!code) code = lowering_add_tail(x);
    return code ? code : pc_program_seal(x->program, x->error);
}

static void demolish(lowering *x) {
    for (int i = 0; x->recipes && x->sendings && i < x->plan->sort_count * PC_PASS_KINDS; i++) {
        pc_recipe_free(&x->recipes[i]);
        pc_free(x->sendings[i]);
    }
    void *arrays[] = {x->recipes, x->sendings, x->first, x->first_f, x->bucket, x->gathered, x->spine, x->over_ps};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) pc_free(arrays[i]);
    pc_pass_index_free(&x->index);
    pc_costs_free(&x->costs);
    pc_lanes_free(&x->lanes);
    pc_program_free(x->program);
}

static lowering begin(const pc_iteration_plan *plan, const pc_schedule *schedule, const pc_flows_spec *how,
                      pc_error *error) {
    return (lowering){.plan = plan,
                      .schedule = schedule,
                      .how = *how,
                      .passes = schedule->offsets[schedule->devices],
                      .error = error};
}

/* ---- the run ---- */

/* Where it has memories, every task has its events. */
static pc_code simulate(const lowering *x, pc_flows_result *result) {
    const pc_simulation_options options = {.with_trace = x->how.with_trace, .every_event = x->how.has_memory};
    pc_simulation *simulation = NULL;
    pc_simulation_result found;
    pc_code code = pc_simulation_create(&simulation, x->error);
    if (!code) code = pc_simulation_run(simulation, x->program, &options, &found, x->error);
    if (!code && found.outcome == PC_OUTCOME_DEADLOCK)
        code = pc_error_set(x->error, PC_ERROR_INPUT, "schedule: deadlock over network flows; expected none");
    if (!code) code = lowering_read(x, &found, result);
    pc_simulation_free(simulation);
    return code;
}

pc_code pc_flows_run(const pc_iteration_plan *plan, const pc_schedule *schedule, const pc_flows_spec *how,
                     pc_flows_result *result, pc_error *error) {
    lowering x = begin(plan, schedule, how, error);
    pc_code code = build(&x);
    if (!code) code = simulate(&x, result);
    demolish(&x);
    return code;
}

pc_code pc_flows_program(const pc_iteration_plan *plan, const pc_schedule *schedule, const pc_flows_spec *how,
                         pc_program **program, pc_error *error) {
    lowering x = begin(plan, schedule, how, error);
    pc_code code = build(&x);
    if (!code) {
        *program = x.program;
        x.program = NULL;
    }
    demolish(&x);
    return code;
}

bool pc_plan_meets(const pc_iteration_plan *plan) {
    const pc_iteration_spec *spec = plan->spec;
    bool gathers = pc_plan_gathers_first(plan) && spec->overlaps_parameters;
    bool reduces = pc_plan_reduces_behind(plan) && spec->overlaps_gradients;
    if (!gathers && !reduces) return false;
    for (int d = 0; d + 1 < plan->devices; d++) /* the way from the last to the first is like one of these */
        if (plan->device[d].hop.in_domain ? plan->dp.in_domain > 1 : plan->dp.domains > 1) return true;
    return false;
}
