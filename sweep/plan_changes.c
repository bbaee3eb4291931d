/* What becomes of plan 1 where a number of the machine or the job is another. */
#include "engine/alloc.h"
#include "models/machine/transfer_model.h"
#include "sweep/plan_questions_private.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double LESS = 0.8, MORE = 1.2;

/* ---- measured costs, scaled ---- */

/* What a profile answers is scaled whole: how much of it is latency, it does not say. */
typedef struct scaled_costs {
    pc_cost_model inner;
    double products, memory; /* rates of what matrix units do, and of what memory bounds */
} scaled_costs;

static pc_estimate scaled_kernel(const void *self, const pc_operation *operation) {
    const scaled_costs *costs = self;
    bool is_product = operation->kind == PC_OPERATION_GEMM || operation->kind == PC_OPERATION_ATTENTION ||
                      operation->kind == PC_OPERATION_GROUPED_GEMM;
    double rate = is_product ? costs->products : costs->memory;
    pc_estimate estimate = costs->inner.kernel(costs->inner.self, operation);
    return (pc_estimate){estimate.seconds / rate, estimate.standard_error / rate};
}

typedef struct scaled_transfers {
    pc_transfer_model inner;
    double domain, network, uplinks;
} scaled_transfers;

static double rate_of(const scaled_transfers *transfers, bool is_in_domain, bool crosses_leaves) {
    if (is_in_domain) return transfers->domain;
    return crosses_leaves ? transfers->uplinks * transfers->network : transfers->network;
}

static bool scaled_collective(const void *self, pc_collective collective, const pc_group *group, double size_bytes,
                              double *seconds) {
    const scaled_transfers *of = self;
    if (!of->inner.collective || !of->inner.collective(of->inner.self, collective, group, size_bytes, seconds))
        return false;
    *seconds /= rate_of(of, group->in_domain == group->ranks, group->crosses_leaves);
    return true;
}

static bool scaled_message(const void *self, const pc_hop *hop, double size_bytes, double *seconds) {
    const scaled_transfers *of = self;
    if (!of->inner.message || !of->inner.message(of->inner.self, hop, size_bytes, seconds)) return false;
    *seconds /= rate_of(of, hop->in_domain, hop->crosses_leaves);
    return true;
}

static bool scaled_exchange(const void *self, const pc_group *group, const pc_exchange *exchange, double *seconds) {
    const scaled_transfers *of = self;
    if (!of->inner.exchange || !of->inner.exchange(of->inner.self, group, exchange, seconds)) return false;
    *seconds /= rate_of(of, group->in_domain == group->ranks, group->crosses_leaves);
    return true;
}

/* ---- what can be changed ---- */

typedef enum thing {
    PRODUCTS,
    MEMORY_RATE,
    MEMORY,
    DOMAIN,
    NETWORK,
    UPLINKS,
    LATENCY,
    LAUNCH,
    HOST_LINK,
    BATCH,
    THINGS
} thing;

static const char *const names[THINGS] = {[PRODUCTS] = "GPU matrix rate",
                                          [MEMORY_RATE] = "GPU memory bandwidth",
                                          [MEMORY] = "GPU memory",
                                          [DOMAIN] = "bandwidth inside domains",
                                          [NETWORK] = "network bandwidth",
                                          [UPLINKS] = "bandwidth between leaves",
                                          [LATENCY] = "latencies",
                                          [LAUNCH] = "launch times",
                                          [HOST_LINK] = "bandwidth to the host",
                                          [BATCH] = "batch"};

/* An iteration with one thing changed; what it borrows of this lives as long as it. */
typedef struct changed {
    scaled_costs costs;
    scaled_transfers transfers;
    pc_cost_model cost;
    pc_transfer_model measured;
} changed;

static void change_connection(pc_connection *connection, double bandwidth, double latency) {
    connection->bandwidth_bytes_per_s *= bandwidth;
    connection->latency_s *= latency;
    connection->fast_latency_s *= latency;
}

static void change_gpu(pc_gpu *gpu, thing what, double factor) {
    if (what == PRODUCTS) {
        gpu->matrix_flops_per_s *= factor;
        gpu->matrix_fp8_flops_per_s *= factor;
        gpu->matrix_fp4_flops_per_s *= factor;
    }
    if (what == MEMORY_RATE) gpu->memory_bytes_per_s *= factor;
    if (what == LAUNCH) {
        gpu->launch_s *= factor;
        gpu->module_s *= factor;
        gpu->expert_s *= factor;
        gpu->kernel_s *= factor;
    }
}

static void change_machine(pc_machine *machine, thing what, double factor) {
    double latency = what == LATENCY ? factor : 1.0;
    change_gpu(&machine->gpu, what, factor);
    change_connection(&machine->domain, what == DOMAIN ? factor : 1.0, latency);
    change_connection(&machine->network, what == NETWORK ? factor : 1.0, latency);
    machine->switch_latency_s *= latency;
    machine->in_switch_latency_s *= latency;
    if (what == UPLINKS) machine->oversubscription /= factor;
    if (what == HOST_LINK) machine->host_link_bytes_per_s *= factor;
}

static void change_measured(pc_machine *machine, thing what, double factor, changed *room) {
    if (!machine->measured) return;
    room->transfers = (scaled_transfers){*machine->measured, what == DOMAIN ? factor : 1.0,
                                         what == NETWORK ? factor : 1.0, what == UPLINKS ? factor : 1.0};
    room->measured = (pc_transfer_model){&room->transfers, scaled_collective, scaled_message, scaled_exchange};
    machine->measured = &room->measured;
}

static void change_cost(const pc_cost_model **cost, thing what, double factor, changed *room) {
    if (!*cost) return;
    room->costs = (scaled_costs){**cost, what == PRODUCTS ? factor : 1.0, what == MEMORY_RATE ? factor : 1.0};
    room->cost = (pc_cost_model){&room->costs, scaled_kernel, (*cost)->launch_s * (what == LAUNCH ? factor : 1.0)};
    *cost = &room->cost;
}

/* Of all but the batch, which is the caller's. */
static void change(pc_iteration_spec *spec, const pc_cost_model **cost, thing what, double factor, changed *room) {
    if (what == MEMORY) spec->memory_limit_bytes = (int64_t)(factor * (double)pc_iteration_capacity(spec));
    change_machine(&spec->machine, what, factor);
    change_measured(&spec->machine, what, factor, room);
    change_cost(cost, what, factor, room);
}

/* Whether it is anything to this plan's run. */
static bool is_there(const pc_plan_choice *choice, const pc_machine *machine, thing what) {
    bool has_domain = machine->domain_gpus > 1, leaves_domain = choice->gpus > machine->domain_gpus;
    int64_t of_leaf = (int64_t)machine->leaf_nodes * machine->gpus_per_node;
    if (what == DOMAIN) return has_domain && choice->gpus > 1;
    if (what == NETWORK) return leaves_domain;
    if (what == UPLINKS) return of_leaf > 0 && choice->gpus > of_leaf;
    if (what == HOST_LINK) return choice->offload != 0;
    if (what == LATENCY) return choice->gpus > 1;
    return true;
}

/* ---- the same plan ---- */

typedef struct change_run {
    const pc_plan_asker *asker;
    const pc_plan_row *best;
    thing what;
    double factor;
    bool is_anew;
} change_run;

static pc_code run_with(const change_run *of, const pc_plan_choice *choice, pc_plan_row *row, pc_error *error) {
    pc_run_detail detail = {.devices = 0};
    pc_run_spec spec;
    pc_run_labels labels;
    changed room;
    pc_code code = pc_plan_scenario_run_spec(of->asker->scenario, choice, 1, &spec, &labels, error);
    if (code) return code;
    snprintf(labels.name, sizeof labels.name, "%s.%s.x%g%s", pc_plan_part_name(PC_PLAN_PART_SENSITIVITY),
             names[of->what], of->factor, of->is_anew ? ".anew" : "");
    code = pc_run_profiles_open(of->asker->profiles, &spec, error);
    if (!code) pc_run_profiles_use(of->asker->profiles, &spec);
    change(&spec.iteration, &spec.cost, of->what, of->factor, &room);
    spec.trace = false;
    if (!code) code = pc_plan_row_run(&spec, &labels, row, &detail, error);
    row->row.key[0] = '\0'; /* no scenario has this run */
    row->found.choice = *choice;
    row->lacks_plan = !code && row->row.status != PC_RUN_OK;
    pc_run_detail_free(&detail);
    pc_run_spec_free(&spec);
    return code;
}

/* Whole rounds of the stages where the plan's microbatches are such: schedules that interleave need them. */
static int64_t microbatches_with(const pc_plan_choice *choice, double factor) {
    bool has_rounds = choice->microbatches % choice->pp == 0 && choice->microbatches > choice->pp;
    int64_t unit = has_rounds ? choice->pp : 1, units = choice->microbatches / unit;
    double wanted = factor * (double)units;
    return unit * (factor < 1.0 ? (int64_t)floor(wanted) : (int64_t)ceil(wanted));
}

static pc_code run_batch(const change_run *of, pc_plan_row *row, pc_error *error) {
    pc_plan_choice choice = of->best->found.choice;
    int64_t sequences = choice.global_batch / choice.microbatches, before = choice.microbatches;
    choice.microbatches = microbatches_with(&choice, of->factor);
    choice.global_batch = sequences * choice.microbatches;
    if (choice.microbatches < 1) return PC_OK;
    row->factor = (double)choice.microbatches / (double)before;
    return run_with(of, &choice, row, error);
}

static pc_code run_same(const change_run *of, pc_plan_row *row, pc_error *error) {
    *row = (pc_plan_row){.part = PC_PLAN_PART_SENSITIVITY, .factor = of->factor, .lacks_plan = true};
    snprintf(row->what, sizeof row->what, "%s", names[of->what]);
    row->row = of->best->row;
    row->row.status = PC_RUN_INFEASIBLE;
    if (of->what == BATCH) return run_batch(of, row, error);
    return run_with(of, &of->best->found.choice, row, error);
}

/* ---- planned anew ---- */

static pc_code search_anew(const change_run *of, pc_plan_row *row, pc_plan_space *space, pc_plan_base *bases,
                           changed *rooms, pc_error *error) {
    pc_plan_request request = {
        .objectives = {of->asker->request.objectives[0]},
        .objective_count = 1,
        .top = 1,
        .crew = of->asker->request.crew,
        .progress = {.self = of->asker->request.progress.self, .is_stopped = of->asker->request.progress.is_stopped},
        .threads = of->asker->request.threads};
    pc_plan_answer answer = {.count = 0};
    for (int i = 0; i < space->base_count; i++) change(&bases[i].spec, &bases[i].cost, of->what, of->factor, &rooms[i]);
    space->bases = bases;
    pc_code code = pc_plan_run(space, &request, &answer, error);
    if (!code && answer.count > 0) {
        row->found = answer.found[0];
        code = run_with(of, &answer.found[0].choice, row, error);
    }
    pc_plan_answer_free(&answer);
    return code;
}

/* The whole space, but for the GPUs and the batch, which stay plan 1's: with others it would answer something else. */
static pc_code run_anew(const change_run *of, pc_plan_row *row, pc_error *error) {
    const pc_plan_space *whole = pc_plan_scenario_space(of->asker->scenario);
    size_t count = (size_t)whole->base_count;
    pc_plan_space space = *whole;
    pc_plan_base *bases = pc_alloc(count, sizeof *bases);
    changed *rooms = pc_alloc(count, sizeof *rooms);
    pc_code code = bases && rooms ? PC_OK : pc_error_no_memory(error);
    *row = (pc_plan_row){.part = PC_PLAN_PART_SENSITIVITY, .factor = of->factor, .lacks_plan = true};
    row->row = of->best->row;
    row->row.status = PC_RUN_INFEASIBLE;
    snprintf(row->what, sizeof row->what, "%s" PC_PLAN_ANEW, names[of->what]);
    space.gpus = (pc_plan_list){&of->best->found.choice.gpus, 1};
    space.batch_follows_dp = false;
    space.global_batch = (pc_plan_list){&of->best->found.choice.global_batch, 1};
    if (bases) memcpy(bases, whole->bases, count * sizeof *bases);
    if (!code) code = search_anew(of, row, &space, bases, rooms, error);
    pc_free(bases);
    pc_free(rooms);
    return code;
}

/* ---- all of them ---- */

typedef struct ranked {
    int64_t first;
    double effect;
} ranked;

static int compare_effects(const void *left, const void *right) {
    const ranked *a = left, *b = right;
    if (a->effect != b->effect) return a->effect < b->effect ? 1 : -1;
    return (a->first > b->first) - (a->first < b->first);
}

/* What no plan comes through is the most. */
static double effect_of(const pc_plan_asker *asker, const pc_plan_row *best, const pc_plan_row *row) {
    double more = pc_plan_row_change(asker->request.objectives[0], best, row);
    return isnan(more) ? INFINITY : fabs(more);
}

/* Blocks of `size` rows of one thing, the one with the largest effect first. */
static pc_code sort(const pc_plan_asker *asker, const pc_plan_row *best, int size, pc_plan_cells *cells,
                    pc_error *error) {
    ranked order[THINGS];
    int things = (int)(cells->count / size);
    pc_plan_row *sorted = pc_alloc((size_t)cells->count, sizeof *sorted);
    if (!sorted) return pc_error_no_memory(error);
    for (int i = 0; i < things; i++) {
        const pc_plan_row *rows = &cells->rows[(ptrdiff_t)i * size];
        double less = effect_of(asker, best, &rows[0]), more = effect_of(asker, best, &rows[1]);
        order[i] = (ranked){(int64_t)i * size, less > more ? less : more};
    }
    qsort(order, (size_t)things, sizeof *order, compare_effects);
    for (int i = 0; i < things; i++)
        memcpy(&sorted[(ptrdiff_t)i * size], &cells->rows[order[i].first], (size_t)size * sizeof *sorted);
    pc_free(cells->rows);
    cells->rows = sorted;
    return PC_OK;
}

/* They are what they can be, not 20% less and more. */
static void name_batches(const pc_plan_row *best, pc_plan_row *rows, bool has_anew) {
    double batch = (double)best->found.choice.global_batch;
    char text[64];
    snprintf(text, sizeof text, "%s of %.0f or %.0f", names[BATCH], batch * rows[0].factor, batch * rows[1].factor);
    for (int i = 0; i < (has_anew ? 4 : 2); i++)
        snprintf(rows[i].what, sizeof rows[i].what, "%s%s", text, i < 2 ? "" : PC_PLAN_ANEW);
}

static pc_code add_changes(const pc_plan_asker *asker, const pc_plan_row *best, thing what, bool plans_anew,
                           pc_plan_cells *cells, pc_error *error) {
    const double factors[] = {LESS, MORE};
    pc_code code = PC_OK;
    for (int i = 0; i < (plans_anew ? 4 : 2) && !code; i++) {
        change_run of = {asker, best, what, factors[i % 2], i >= 2};
        pc_plan_row *row = &cells->rows[cells->count];
        if (of.is_anew && what == BATCH) {
            *row = cells->rows[cells->count - 2]; /* no choice of the planner's */
        } else {
            code = of.is_anew ? run_anew(&of, row, error) : run_same(&of, row, error);
        }
        if (!code) cells->count++;
    }
    if (!code && what == BATCH) name_batches(best, &cells->rows[cells->count - (plans_anew ? 4 : 2)], plans_anew);
    return code;
}

pc_code pc_plan_ask_changes(const pc_plan_asker *asker, const pc_plan_row *best, bool plans_anew, pc_plan_cells *cells,
                            pc_error *error) {
    const pc_plan_choice *choice = &best->found.choice;
    const pc_machine *machine = &pc_plan_scenario_space(asker->scenario)->bases[choice->base].spec.machine;
    int size = plans_anew ? 4 : 2;
    *cells = (pc_plan_cells){.part = PC_PLAN_PART_SENSITIVITY};
    cells->rows = pc_alloc((size_t)THINGS * (size_t)size, sizeof *cells->rows);
    pc_code code = cells->rows ? PC_OK : pc_error_no_memory(error);
    for (thing what = 0; what < THINGS && !code; what++) {
        if (asker->say) asker->say(asker->self, what, THINGS);
        if (is_there(choice, machine, what)) code = add_changes(asker, best, what, plans_anew, cells, error);
    }
    if (!code) code = sort(asker, best, size, cells, error);
    if (code) pc_plan_cells_free(cells);
    return code;
}
