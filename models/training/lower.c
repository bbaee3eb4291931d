/* The program's frame: room, processors, memories; stage by stage what the other files add; and the run. */
#include "models/training/lower.h"

#include "engine/alloc.h"
#include "models/training/expand_replicas.h"
#include "models/training/lowering.h"
#include "models/training/outline_units.h"
#include "models/training/pass_costs.h"

#include <string.h>

/* ---- what passes take ---- */

pc_time lowering_duration_ps(const lowering *lowered, int replica, int device, int64_t position) {
    const pc_time *given = lowered->how.times ? lowered->how.times[replica].duration_ps : NULL;
    return given ? given[position] : pc_costs_busy_ps(&lowered->costs, lowered->schedule, device, position);
}

pc_time lowering_message_ps(const lowering *lowered, int replica, int device, int64_t position, int to) {
    const pc_time *given = lowered->how.times ? lowered->how.times[replica].message_ps : NULL;
    return given ? given[position] : lowered->outline->device[pc_outline_hop(lowered->outline, device, to)].hop_ps;
}

pc_time lowering_ready_ps(const lowering *lowered, int replica, int device, int chunk) {
    const pc_time *given = lowered->how.times ? lowered->how.times[replica].ready_ps : NULL;
    return given ? given[lowering_cell(lowered, device, chunk)] : pc_costs_ready(&lowered->costs, device, chunk);
}

/* ---- room ---- */

static void find_ends(lowering *lowered) {
    const pc_schedule *schedule = lowered->schedule;
    for (int d = 0; d < schedule->devices; d++)
        for (int64_t i = schedule->offsets[d]; i < schedule->offsets[d + 1]; i++) {
            int64_t at = lowering_cell(lowered, d, schedule->passes[i].chunk);
            if (schedule->passes[i].kind == PC_PASS_F && lowered->first_f[at] == PC_NO_TASK)
                lowered->first_f[at] = (int32_t)i;
            if (pc_pass_adds_gradients(schedule->passes[i])) lowered->last_back[at] = (int32_t)i;
        }
}

/* Of so many numbers of tasks, PC_NO_TASK all. */
static int32_t *make_tasks(size_t count) {
    int32_t *made = pc_alloc(count, sizeof *made);
    if (made) memset(made, 0xff, count * sizeof *made);
    return made;
}

static bool make_pass_arrays(lowering *lowered) {
    bool has_waiters = !lowered->how.is_closed && !lowered->outline->spec->overlaps_p2p;
    size_t passes = (size_t)lowered->passes, rows = passes * (size_t)lowered->how.replicas;
    lowered->first = make_tasks(6 * rows + passes);
    if (!lowered->first) return false;
    lowered->last = lowered->first + rows;
    lowered->leaves = lowered->last + rows;
    lowered->message = lowered->leaves + rows;
    lowered->sent = lowered->message + rows;
    if (has_waiters) lowered->waiter = lowered->sent + rows;
    lowered->sent_to = lowered->sent + 2 * rows;
    return true;
}

static bool make_stage_arrays(lowering *lowered) {
    size_t devices = (size_t)lowered->outline->devices, cells = devices * (size_t)lowered->outline->chunks;
    size_t replicas = (size_t)lowered->how.replicas, places = replicas * devices;
    lowered->first_f = make_tasks(2 * cells + 2 * devices + 4 * places + replicas);
    lowered->bucket = pc_alloc(cells + 1, sizeof *lowered->bucket);
    if (!lowered->first_f || !lowered->bucket) return false;
    lowered->last_back = lowered->first_f + cells;
    lowered->stream = lowered->last_back + cells;
    lowered->ended = lowered->stream + devices;
    lowered->sender = lowered->ended + devices;
    lowered->step = lowered->sender + 2 * places;
    lowered->overhead = lowered->step + places;
    lowered->afters = lowered->overhead + places;
    for (size_t i = 0; i < cells; i++)
        lowered->bucket[i + 1] = lowered->bucket[i] + lowered->outline->chunks_of[i].buckets;
    lowered->gathered = pc_alloc((1 + replicas) * (size_t)lowered->bucket[cells], sizeof *lowered->gathered);
    if (!lowered->gathered) return false;
    lowered->reducible = lowered->gathered + lowered->bucket[cells];
    return true;
}

static pc_code make_recipe(lowering *lowered, int sort, pc_pass_kind kind) {
    const pc_outline *outline = lowered->outline;
    int at = sort * PC_PASS_KINDS + (int)kind;
    pc_recipe *recipe = &lowered->recipes[at];
    pc_code code = pc_recipe_make(outline, &outline->part_costs[sort], kind, recipe, lowered->error);
    if (code) return code;
    lowered->sendings[at] = pc_alloc((size_t)recipe->count, sizeof **lowered->sendings);
    if (!lowered->sendings[at]) return pc_error_no_memory(lowered->error);
    for (int i = 0; !code && i < recipe->count; i++)
        if (recipe->steps[i].is_collective)
            code = pc_lanes_sendings(&lowered->lanes, recipe->steps[i].group, &recipe->steps[i].collective,
                                     outline->pace, &lowered->sendings[at][i], lowered->error);
    return code;
}

/* Delayed products have B and W apart, whatever the schedule has. */
static bool is_needed(const pc_outline *outline, pc_pass_kind kind) {
    bool is_apart = outline->spec->delays_weights && (kind == PC_PASS_B || kind == PC_PASS_W);
    return is_apart || pc_outline_has_kind(outline->spec->generator, kind);
}

static pc_code make_recipes(lowering *lowered) {
    const pc_outline *outline = lowered->outline;
    size_t count = (size_t)outline->sort_count * PC_PASS_KINDS;
    pc_code code = PC_OK;
    if (outline->spec->granularity == PC_GRANULARITY_PASS || lowered->how.times) return PC_OK;
    lowered->recipes = pc_alloc(count, sizeof *lowered->recipes);
    lowered->sendings = pc_alloc(count, sizeof *lowered->sendings);
    size_t sorts = (size_t)outline->sort_count;
    lowered->pairs = pc_alloc(sorts * sorts, sizeof *lowered->pairs);
    if (!lowered->recipes || !lowered->sendings || !lowered->pairs) return pc_error_no_memory(lowered->error);
    for (int sort = 0; sort < outline->sort_count; sort++)
        for (int kind = 0; !code && kind < PC_PASS_KINDS; kind++)
            if (is_needed(outline, (pc_pass_kind)kind)) code = make_recipe(lowered, sort, (pc_pass_kind)kind);
    return code;
}

/* The tasks of a pass's steps, at least; 0 if a pass is one. */
static double count_steps(const pc_recipe *recipe) {
    double count = 0;
    for (int i = 0; i < recipe->count; i++) count += (double)recipe->steps[i].repeat;
    return count;
}

/* So many tasks take about 2.7 GB. */
enum { TASKS_MAX = 1 << 24 };

/* The steps of all passes, one each where they are not cut into operations. */
static double count_tasks(const lowering *lowered) {
    double tasks = 0;
    if (!lowered->recipes) return (double)lowered->passes;
    for (int d = 0; d < lowered->schedule->devices; d++)
        for (int64_t i = lowered->schedule->offsets[d]; i < lowered->schedule->offsets[d + 1]; i++) {
            pc_pass pass = lowered->schedule->passes[i];
            int sort = lowered->outline->chunks_of[lowering_cell(lowered, d, pass.chunk)].sort;
            tasks += count_steps(&lowered->recipes[sort * PC_PASS_KINDS + pass.kind]);
        }
    return tasks;
}

/* About as much as is needed: beside its steps a pass has a message of two flows; a bucket is gathered and reduced, in
 * a few flows, and cuts two passes. */
static pc_code make_room(lowering *lowered) {
    double tasks = lowered->how.replicas * count_tasks(lowered);
    bool is_single = lowered->how.replicas == 1;
    if (tasks <= TASKS_MAX || (!lowered->recipes && is_single)) {
        int64_t all = (int64_t)tasks + lowered->how.replicas * (2 * lowered->passes + 8 * lowering_buckets(lowered));
        return pc_program_reserve(lowered->program, all, all + all / 2, lowered->error);
    }
    return pc_error_set(lowered->error, PC_ERROR_INPUT, "%s make %.0f tasks; expected at most %d: fewer microbatches%s",
                        is_single ? "granularity: operations" : "iteration: passes of expanded replicas", tasks,
                        TASKS_MAX, is_single ? ", or passes" : "; or replicas folded, or the engine left to choose");
}

/* ---- processors and memories ---- */

/* What the device holds all the time comes first of all that its processor does. */
static pc_code add_memory(lowering *lowered, int place) {
    int device = place % lowered->outline->devices;
    int64_t capacity = lowered->outline->device[device].capacity_bytes,
            held = pc_outline_fixed(lowered->outline, device);
    pc_task fixed = pc_task_default();
    int32_t number;
    pc_code code =
        pc_program_add_memory(lowered->program, capacity,
                              lowered->how.waits_for_memory ? PC_MEMORY_WAIT : PC_MEMORY_NOTE, &number, lowered->error);
    fixed.processor = place;
    fixed.memory = number; /* place */
    fixed.take_bytes = held;
    return code ? code : pc_program_add_task(lowered->program, &fixed, &number, lowered->error);
}

static pc_code add_devices(lowering *lowered) {
    pc_code code = PC_OK;
    for (int place = 0; !code && place < lowered->how.replicas * lowered->outline->devices; place++) {
        int32_t number; /* place */
        code = pc_program_add_processor(lowered->program, PC_PROCESSOR_IN_ORDER, &number, lowered->error);
        if (!code && lowered->how.has_memory) code = add_memory(lowered, place);
    }
    return code;
}

/* ---- the program ---- */

static pc_code add_stage(lowering *lowered, int device) {
    pc_code code = lowering_add_gathers(lowered, device);
    for (int r = 0; !code && r < lowered->how.replicas; r++) code = lowering_add_passes(lowered, r, device);
    return code ? code : lowering_add_reductions(lowered, device);
}

static pc_code make_lanes(lowering *lowered) {
    pc_code code = pc_lanes_make(lowered->outline, lowered->program, lowered->how.replicas, !lowered->how.is_closed,
                                 &lowered->lanes, lowered->error);
    lowered->lanes.keeps_notes = lowered->how.with_trace;
    return code;
}

static pc_code build(lowering *lowered) {
    int without = lowered->how.is_closed ? 0 : PC_WITHOUT_TRANSFERS;
    pc_code code = pc_program_create(&lowered->program, lowered->error);
    if (!code) code = make_lanes(lowered);
    if (!code) code = pc_outline_costs(lowered->outline, without, &lowered->costs, lowered->error);
    if (!code) code = pc_pass_index_create(lowered->schedule, &lowered->index, lowered->error);
    if (!code && (!make_pass_arrays(lowered) || !make_stage_arrays(lowered))) code = pc_error_no_memory(lowered->error);
    if (code) return code;
    find_ends(lowered);
    code = make_recipes(lowered);
    if (!code) code = lowering_make_units(lowered);
    if (!code) code = make_room(lowered);
    if (!code) code = add_devices(lowered);
    if (!code) code = lowering_add_copiers(lowered);
    for (int d = 0; !code && d < lowered->outline->devices; d++) code = add_stage(lowered, d);
    for (int r = 0; !code && r < lowered->how.replicas; r++) code = lowering_add_transfers(lowered, r);
    if (!code) code = lowering_add_tail(lowered);
    return code ? code : pc_program_seal(lowered->program, lowered->error);
}

static void demolish(lowering *lowered) {
    for (int i = 0; lowered->recipes && lowered->sendings && i < lowered->outline->sort_count * PC_PASS_KINDS; i++) {
        pc_recipe_free(&lowered->recipes[i]);
        pc_free(lowered->sendings[i]);
    }
    for (int i = 0; lowered->pairs && i < lowered->outline->sort_count * lowered->outline->sort_count; i++)
        pc_pair_plan_free(&lowered->pairs[i]);
    void *arrays[] = {lowered->pairs,   lowered->recipes, lowered->sendings,  lowered->first,
                      lowered->first_f, lowered->bucket,  lowered->gathered,  lowered->spine,
                      lowered->over_ps, lowered->units,   lowered->copied_out};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) pc_free(arrays[i]);
    pc_copy_plan_free(&lowered->copy_plan);
    pc_pass_index_free(&lowered->index);
    pc_costs_free(&lowered->costs);
    pc_lanes_free(&lowered->lanes);
    pc_program_free(lowered->program);
}

static lowering begin(const pc_outline *outline, const pc_schedule *schedule, const pc_flows_spec *how,
                      pc_error *error) {
    return (lowering){.outline = outline,
                      .schedule = schedule,
                      .how = *how,
                      .passes = schedule->offsets[schedule->devices],
                      .error = error};
}

/* ---- the run ---- */

/* Where it has memories, every task has its events. */
static pc_code simulate(const lowering *lowered, pc_flows_result *result) {
    const pc_simulation_options options = {.with_trace = lowered->how.with_trace,
                                           .every_event = lowered->how.has_memory};
    pc_simulation *simulation = NULL;
    pc_simulation_result found;
    pc_code code = pc_simulation_create(&simulation, lowered->error);
    if (!code) code = pc_simulation_run(simulation, lowered->program, &options, &found, lowered->error);
    if (!code && found.outcome == PC_OUTCOME_DEADLOCK)
        code = pc_error_set(lowered->error, PC_ERROR_INPUT, "schedule: deadlock over network flows; expected none");
    if (!code) code = lowering_read(lowered, &found, result);
    pc_simulation_free(simulation);
    return code;
}

pc_code pc_flows_run(const pc_outline *outline, const pc_schedule *schedule, const pc_flows_spec *how,
                     pc_flows_result *result, pc_error *error) {
    lowering x = begin(outline, schedule, how, error);
    pc_code code = build(&x);
    if (!code) code = simulate(&x, result);
    demolish(&x);
    return code;
}

pc_code pc_flows_program(const pc_outline *outline, const pc_schedule *schedule, const pc_flows_spec *how,
                         pc_program **program, pc_error *error) {
    lowering x = begin(outline, schedule, how, error);
    pc_code code = build(&x);
    if (!code) {
        *program = x.program;
        x.program = NULL;
    }
    demolish(&x);
    return code;
}

bool pc_outline_meets(const pc_outline *outline) {
    const pc_iteration_spec *spec = outline->spec;
    bool gathers = pc_outline_gathers_first(outline) && spec->overlaps_parameters;
    bool reduces = pc_outline_reduces_behind(outline) && pc_outline_overlaps_gradients(outline);
    bool of_units =
        pc_outline_has_units(outline) && !(pc_outline_gathers_once(outline) && pc_outline_reduces_last(outline));
    if (!gathers && !reduces && !of_units) return false;
    for (int d = 0; d + 1 < outline->devices; d++) /* the way from the last to the first is like one of these */
        if (outline->device[d].hop.in_domain ? outline->dp.in_domain > 1 : outline->dp.domains > 1) return true;
    return false;
}
