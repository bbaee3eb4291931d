#include "models/schedule/search/objective.h"

#include "engine/numbers.h"

const pc_objective *pc_objective_make(pc_goal goal, const pc_costs *costs, const pc_tails *tails,
                                      pc_objective *objective) {
    if (goal == PC_GOAL_SPAN) return NULL;
    bool is_iteration = goal == PC_GOAL_ITERATION;
    *objective = (pc_objective){is_iteration ? costs->ready_ps : NULL, is_iteration ? tails : NULL};
    return objective;
}

static pc_time at(const pc_time *times_ps, int64_t i) {
    return times_ps ? times_ps[i] : 0;
}

/* Of a chunk: how long its gradients last behind its last pass, and what they take of the network. */
static pc_time after_of(const pc_objective *o, int64_t i) {
    return o->tails ? o->tails->after_ps[i] : 0;
}

static pc_time stream_of(const pc_objective *o, int64_t i) {
    return o->tails ? o->tails->stream_ps[i] : 0;
}

static pc_time own_of(const pc_objective *o, int device) {
    return o->tails ? o->tails->own_ps[device] : 0;
}

static bool counts_from_begin(const pc_objective *o) {
    return o->tails && o->tails->from_begin;
}

pc_time pc_objective_ready(const pc_instance *instance, int cell) {
    int type = cell % instance->types;
    if (!instance->objective || type >= instance->chunks) return 0;
    return at(instance->objective->ready_ps, (int64_t)(cell / instance->types) * instance->chunks + type);
}

/* ---- where a device stands ---- */

/* The first F of a chunk stands near the front, and the last pass of one near the back. */
static pc_time find_begin(const pc_instance *instance, const pc_instance_order *order, int device) {
    int64_t first = device * instance->passes;
    pc_time begin = INT64_MAX;
    for (int64_t k = first, found = 0; k < first + instance->passes && found < instance->chunks; k++) {
        int type = pc_instance_pass_type(order->pass[k]);
        if (type >= instance->chunks || pc_instance_pass_microbatch(order->pass[k]) > 0) continue;
        pc_time before = order->start[k] - pc_objective_ready(instance, device * instance->types + type);
        begin = pc_min(begin, before);
        found++;
    }
    return pc_max(begin, 0);
}

pc_device_ends pc_objective_ends(const pc_instance *instance, const pc_instance_order *order, int device) {
    const pc_instance_cell *cells = instance->cells + (int64_t)device * instance->types;
    int64_t first = device * instance->passes;
    int last_type = instance->types - instance->chunks;
    pc_device_ends ends = {.begin = find_begin(instance, order, device)};
    for (int64_t k = first + instance->passes, found = 0; k-- > first && found < instance->chunks;) {
        int type = pc_instance_pass_type(order->pass[k]);
        pc_time end = order->start[k] + cells[type].duration;
        ends.end = pc_max(ends.end, end);
        if (type < last_type || pc_instance_pass_microbatch(order->pass[k]) < instance->microbatches - 1) continue;
        ends.chunk_end[type - last_type] = end;
        found++;
    }
    return ends;
}

/* ---- the chain ---- */

/* The chunk that ends next behind `chunk`, of equal ones in the order of their numbers; the first where that is -1; -1
 * behind the last one. */
static int next_to_end(const pc_instance *instance, const pc_time *end, int chunk) {
    int found = -1;
    for (int c = 0; c < instance->chunks; c++) {
        bool is_later = chunk < 0 || end[c] > end[chunk] || (c > chunk && end[c] == end[chunk]);
        if (is_later && (found < 0 || end[c] < end[found])) found = c;
    }
    return found;
}

pc_time pc_objective_value(const pc_instance *instance, int device, const pc_device_ends *ends) {
    const pc_objective *o = instance->objective;
    pc_time done = 0;
    for (int c = next_to_end(instance, ends->chunk_end, -1); c >= 0; c = next_to_end(instance, ends->chunk_end, c)) {
        int64_t i = (int64_t)device * instance->chunks + c;
        done = pc_max(done + stream_of(o, i), ends->chunk_end[c] + after_of(o, i));
    }
    return pc_max(done, ends->end) + own_of(o, device) - (counts_from_begin(o) ? ends->begin : 0);
}

pc_time pc_objective_of(const pc_instance *instance, const pc_instance_order *order) {
    pc_time most = 0;
    for (int d = 0; d < instance->devices; d++) {
        const pc_device_ends ends = pc_objective_ends(instance, order, d);
        most = pc_max(most, pc_objective_value(instance, d, &ends));
    }
    return most;
}

/* From the back: what a later chunk takes of the network, earlier ones must leave. */
void pc_objective_latest(const pc_instance *instance, int device, pc_time value, pc_device_ends *ends) {
    const pc_objective *o = instance->objective;
    const pc_device_ends known = *ends;
    pc_time through = value - own_of(o, device) + (counts_from_begin(o) ? known.begin : 0);
    ends->end = through;
    for (int c = next_to_end(instance, known.chunk_end, -1); c >= 0; c = next_to_end(instance, known.chunk_end, c)) {
        pc_time behind = 0;
        for (int later = next_to_end(instance, known.chunk_end, c); later >= 0;
             later = next_to_end(instance, known.chunk_end, later))
            behind += stream_of(o, (int64_t)device * instance->chunks + later);
        ends->chunk_end[c] = through - behind - after_of(o, (int64_t)device * instance->chunks + c);
    }
}

/* ---- what no order is below ---- */

static pc_time work_of(const pc_instance *instance, int device) {
    pc_time work = 0;
    for (int type = 0; type < instance->types; type++)
        work += instance->cells[device * instance->types + type].duration;
    return work * instance->microbatches;
}

/* The least that follows the last pass of a device, whichever chunk's that is. */
static pc_time least_tail(const pc_instance *instance, int device) {
    pc_time least = INT64_MAX;
    for (int c = 0; c < instance->chunks; c++)
        least = pc_min(least, after_of(instance->objective, (int64_t)device * instance->chunks + c));
    return least + own_of(instance->objective, device);
}

/* A device's first pass is its F of chunk 0, or of a chunk that the model comes to earlier. */
pc_time pc_objective_least(const pc_instance *instance) {
    if (!instance->objective) return 0;
    bool from_begin = counts_from_begin(instance->objective);
    pc_time least = 0, way = 0;
    int parts = instance->devices * instance->chunks;
    for (int part = 0, seen = 0; part < parts && seen < instance->devices; part++) {
        int device = pc_placement_stage(instance->placement, instance->devices, part, 0);
        int chunk = pc_placement_chunk(instance->placement, instance->devices, part, 0);
        const pc_instance_cell *cell = &instance->cells[device * instance->types + chunk];
        way = pc_max(way + cell->before_delay, pc_objective_ready(instance, device * instance->types + chunk));
        if (chunk == 0) {
            least = pc_max(least, (from_begin ? 0 : way) + work_of(instance, device) + least_tail(instance, device));
            seen++;
        }
        way += cell->duration;
    }
    return least;
}
