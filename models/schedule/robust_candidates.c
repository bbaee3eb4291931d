/* Orders that may be robust: of the names within the limits, and searched at costs that are not the given ones. */
#include "models/schedule/robust_private.h"

#include "models/schedule/generate.h"

#include <math.h>
#include <string.h>

enum { SINGLE_DRAWS = 16 }; /* that orders are searched at, each alone */
_Static_assert((int)SINGLE_DRAWS <= (int)PC_SAMPLED_LANES, "there is one batch at least");

/* ---- names ---- */

static pc_generate_request request_of(const pc_robust_work *w, const pc_costs *costs) {
    return (pc_generate_request){.devices = costs->devices,
                                 .microbatches = w->instance.microbatches,
                                 .chunks = costs->chunks,
                                 .costs = costs,
                                 .memory_limit = w->request->memory_limit,
                                 .threads = w->threads,
                                 .searches_once = true,
                                 .memo = w->memo};
}

static bool is_like(const pc_robust_work *w, const pc_generator *name) {
    const pc_robust_request *r = w->request;
    return name->placement == r->schedule->placement && !name->recomputes && name->barriers == PC_BARRIERS_NONE &&
           (w->splits || !name->splits) &&
           !pc_generator_check(name, r->costs->devices, w->instance.microbatches, r->costs->chunks, NULL) &&
           !pc_generator_check_memory(name, r->costs, r->memory_limit, NULL);
}

/* The next entry has its order: it counts if that can run and keeps the limits. */
static void enter(pc_robust_work *w) {
    if (pc_reorder_squeeze(w->workers[0].room, &w->entries[w->count].order)) w->count++;
}

/* A name that has no such order is left out. */
static pc_code add_named(pc_robust_work *w, const pc_generator *name, const pc_costs *costs, pc_error *error) {
    pc_generate_request request = request_of(w, costs);
    pc_schedule schedule;
    pc_robust_entry *e = &w->entries[w->count];
    pc_code code = PC_OK;
    if (!e->order.pass) code = pc_instance_order_create(&w->instance, &e->order, error);
    if (code || w->count == PC_ROBUST_NAMED) return code;
    code = pc_generate(name, &request, &schedule, NULL, error);
    if (code) return code == PC_ERROR_INPUT ? PC_OK : code;
    pc_instance_of_schedule(&w->instance, &schedule, &e->order);
    pc_schedule_free(&schedule);
    enter(w);
    return PC_OK;
}

static pc_code add_names(pc_robust_work *w, pc_error *error) {
    int count;
    const pc_generator *all = pc_generators(&count);
    pc_code code = PC_OK;
    for (int i = 0; i < count && !code; i++)
        if (is_like(w, &all[i])) code = add_named(w, &all[i], w->request->costs, error);
    return code;
}

/* ---- other costs ---- */

/* The name of the widest family that has these kinds of passes; NULL where none searches. */
static const pc_generator *widest_of(const pc_robust_work *w) {
    pc_placement placement = w->request->schedule->placement;
    const pc_generator *name = NULL;
    if (placement == PC_PLACEMENT_V) name = pc_generator_find(w->splits ? "v-adaptive" : "1f1b-v");
    if (placement == PC_PLACEMENT_LINEAR && w->splits) name = pc_generator_find("zb-2p");
    return name && is_like(w, name) ? name : NULL;
}

/* Copies of what differs; owned: pc_costs_free. */
static pc_code copy_times(const pc_costs *costs, pc_costs *made, pc_error *error) {
    size_t rows = (size_t)costs->devices * (size_t)costs->chunks;
    pc_code code = pc_costs_create(costs->devices, costs->chunks, made, error);
    if (code) return code;
    memcpy(made->duration_ps, costs->duration_ps, rows * PC_PASS_KINDS * sizeof *made->duration_ps);
    memcpy(made->activation_bytes, costs->activation_bytes, rows * sizeof *made->activation_bytes);
    memcpy(made->activation_b_bytes, costs->activation_b_bytes, rows * sizeof *made->activation_b_bytes);
    memcpy(made->activation_kept_bytes, costs->activation_kept_bytes, rows * sizeof *made->activation_kept_bytes);
    made->recomputes_in_b = costs->recomputes_in_b;
    made->leaves_gradients = costs->leaves_gradients;
    made->transfer = costs->transfer;
    if (!costs->hop_delay_ps) return PC_OK;
    code = pc_costs_add_hop_delays(made, error);
    if (code)
        pc_costs_free(made);
    else
        memcpy(made->hop_delay_ps, costs->hop_delay_ps, (size_t)costs->devices * sizeof *made->hop_delay_ps);
    return code;
}

/* What a pass of the cell takes in the mean over microbatches, and over `count` draws from number `first` on. */
static double mean_pass(const pc_robust_work *w, int cell, int first, int count) {
    const pc_instance *instance = &w->instance;
    double sum = 0;
    for (int draw = first; draw < first + count; draw++) {
        const double *pass = w->looking[draw / PC_SAMPLED_LANES].pass + pc_sampled_index(instance, cell, 0);
        for (int64_t i = 0; i < instance->microbatches; i++)
            sum += pass[i * PC_SAMPLED_LANES + draw % PC_SAMPLED_LANES];
    }
    return sum / ((double)count * instance->microbatches);
}

/* Searched at what passes take in these draws. Of all of them that is the costs, unless it is known which device is
 * slow; of a single one it is a little off, with a slow device where one is drawn. That breaks ties which the costs
 * leave open, each time in another way. */
static pc_code add_drawn(pc_robust_work *w, const pc_generator *name, int first, int count, pc_error *error) {
    const pc_instance *instance = &w->instance;
    pc_costs costs;
    pc_code code = copy_times(w->request->costs, &costs, error);
    if (code) return code;
    for (int cell = 0; cell < instance->devices * instance->types; cell++) {
        pc_pass pass = pc_instance_to_pass(instance, pc_instance_pass_make(cell % instance->types, 0));
        int64_t row = pc_costs_index(&costs, cell / instance->types, pass.chunk) * PC_PASS_KINDS;
        costs.duration_ps[row + pass.kind] = (pc_time)llround(mean_pass(w, cell, first, count));
    }
    code = add_named(w, name, &costs, error);
    pc_costs_free(&costs);
    return code;
}

pc_code pc_robust_add_candidates(pc_robust_work *w, pc_error *error) {
    const pc_generator *widest = widest_of(w);
    pc_code code = add_names(w, error);
    if (!widest) return code;
    if (!code) code = add_drawn(w, widest, 0, w->batches * PC_SAMPLED_LANES, error);
    for (int draw = 0; draw < SINGLE_DRAWS && !code; draw++) code = add_drawn(w, widest, draw, 1, error);
    return code;
}
