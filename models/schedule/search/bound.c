#include "models/schedule/search/bound.h"

#include "engine/alloc.h"
#include "engine/numbers.h"
#include "models/schedule/search/bound_heads.h"
#include "models/schedule/search/bound_machine.h"
#include "models/schedule/search/objective.h"

#include <math.h>

#define ROUNDING 1e-12 /* more than sums of products of doubles are off by */

/* How long after the start of a microbatch's first F on a device its first backward pass can start there. */
static pc_time way_back(const pc_instance *instance, int device) {
    int first_back = device * instance->types + instance->chunks, cell = device * instance->types;
    pc_time way = 0;
    do {
        way += instance->cells[cell].duration;
        cell = instance->cells[cell].after;
        way += instance->cells[cell].before_delay;
    } while (cell < first_back || cell >= (device + 1) * instance->types);
    return way;
}

/* The most time that a device can spend on F before its memory is full. */
static pc_time longest_warm_up(const pc_instance *instance, int device) {
    const pc_instance_cell *cells = instance->cells + (int64_t)device * instance->types;
    pc_time longest = 0, all = 0;
    int64_t smallest = INT64_MAX;
    for (int c = 0; c < instance->chunks; c++) {
        if (cells[c].taken < smallest) smallest = cells[c].taken;
        if (cells[c].duration > longest) longest = cells[c].duration;
        all += cells[c].duration * instance->microbatches;
    }
    if (smallest <= 0 || longest == 0) return all;
    int64_t most = instance->limit[device] / smallest;
    return most > all / longest ? all : most * longest;
}

/* ---- the way out ---- */

/* How long after the end of a device's last F the device's own end is at the least. That is the rest of that
 * microbatch's way through the model and back to the backward pass that is its last here, and the W of that one. */
static pc_time way_out(const pc_instance *instance, int device) {
    int first = device * instance->types, last_f = first + instance->chunks - 1, last_back = first + instance->chunks;
    pc_time way = instance->splits ? instance->cells[last_back + instance->chunks].duration : 0;
    for (int cell = last_f; cell != last_back;) {
        cell = instance->cells[cell].after;
        way += instance->cells[cell].before_delay + instance->cells[cell].duration;
    }
    return way;
}

/* The most work that a byte held stands for, after the device's last F; 0 work for no byte counts as none. */
static double most_work_a_byte(const pc_instance *instance, int device) {
    const pc_instance_cell *back = instance->cells + (int64_t)device * instance->types + instance->chunks;
    double most = 0;
    for (int c = 0; c < instance->chunks; c++) {
        double held = -(double)back[c].taken, work = (double)back[c].duration;
        if (instance->splits) {
            double w_held = -(double)back[instance->chunks + c].taken,
                   w_work = (double)back[instance->chunks + c].duration;
            if (w_work > most * w_held) most = w_held > 0 ? w_work / w_held : HUGE_VAL;
            held += w_held;
            work += w_work;
        }
        if (work > most * held) most = held > 0 ? work / held : HUGE_VAL;
    }
    return most;
}

/* The most time that a device can spend after its last F, on backward passes whose activations it holds then. */
static pc_time longest_cool_down(const pc_instance *instance, int device) {
    const pc_instance_cell *back = instance->cells + (int64_t)device * instance->types + instance->chunks;
    pc_time all = 0;
    for (int type = 0; type < instance->types - instance->chunks; type++)
        all += back[type].duration * instance->microbatches;
    double held = most_work_a_byte(instance, device) * (double)instance->limit[device] * (1 + ROUNDING);
    return held < (double)all ? (pc_time)held : all;
}

/* Whether the device can hold all microbatches at once. If not, it gives memory back before its last F. */
static bool holds_all(const pc_instance *instance, int device) {
    double all = 0;
    for (int c = 0; c < instance->chunks; c++)
        all += (double)instance->cells[device * instance->types + c].taken * instance->microbatches;
    return all <= (double)instance->limit[device];
}

/* ---- memory over time ---- */

/* The least time from the start of F of a chunk, the cell `from`, to the end of its backward pass: through the rest of
 * the model and back. */
static pc_time round_trip(const pc_instance *instance, int from) {
    int to = from + instance->chunks;
    pc_time way = instance->cells[from].duration;
    for (int cell = from; cell != to;) {
        cell = instance->cells[cell].after;
        way += instance->cells[cell].before_delay + instance->cells[cell].duration;
    }
    return way;
}

/* What one microbatch holds of a device at the least, bytes times time. */
static double held_by_one(const pc_instance *instance, int device) {
    const pc_instance_cell *cells = instance->cells + (int64_t)device * instance->types;
    double held = 0;
    for (int c = 0; c < instance->chunks; c++) {
        pc_time trip = round_trip(instance, device * instance->types + c);
        held -= (double)cells[instance->chunks + c].taken * (double)trip;
        if (instance->splits)
            held -= (double)cells[2 * instance->chunks + c].taken *
                    (double)(trip + cells[2 * instance->chunks + c].duration);
    }
    return held;
}

/* The least time for passes to take (sign 1) or to give back (-1) so much memory, one after the other. */
static double time_to_move(const pc_instance *instance, int device, int sign, double bytes) {
    const pc_instance_cell *cells = instance->cells + (int64_t)device * instance->types;
    double fastest = 0;
    for (int type = 0; type < instance->types; type++) {
        double moved = sign * (double)cells[type].taken;
        if (moved <= 0) continue;
        if (cells[type].duration == 0) return 0;
        if (moved / (double)cells[type].duration > fastest) fastest = moved / (double)cells[type].duration;
    }
    return fastest > 0 ? bytes / fastest : 0;
}

/* Microbatches hold memory for so long that the device cannot end before: what they hold, over its limit. At the start
 * its memory fills up, and at the end it empties, no faster than passes take and give back; an F takes at its start, so
 * that the first one counts as there already. */
static double time_to_hold(const pc_instance *instance, int device) {
    if (!pc_instance_is_limited(instance, device)) return 0;
    double limit = (double)instance->limit[device], largest = 0;
    for (int c = 0; c < instance->chunks; c++) {
        double taken = (double)instance->cells[device * instance->types + c].taken;
        if (taken > largest) largest = taken;
    }
    double plain = held_by_one(instance, device) * instance->microbatches / limit;
    double rest = limit - largest > 0 ? limit - largest : 0; /* what steps of passes do not cover */
    double fills = time_to_move(instance, device, 1, rest), empties = time_to_move(instance, device, -1, rest);
    double ramped = plain + (fills + empties) * rest / (2 * limit);
    return ramped >= fills + empties ? ramped : plain;
}

/* Work without a break, but for what the device waits at its start, before its first backward pass, and at its end,
 * after its last F. Both count where the one cannot be the other. */
static pc_time time_to_work(const pc_instance *instance, int device) {
    pc_time work = 0, starting = way_back(instance, device) - longest_warm_up(instance, device);
    pc_time ending = way_out(instance, device) - longest_cool_down(instance, device);
    for (int type = 0; type < instance->types; type++)
        work += instance->cells[device * instance->types + type].duration;
    if (starting < 0) starting = 0;
    if (ending < 0) ending = 0;
    pc_time waits = starting > ending ? starting : ending;
    return work * instance->microbatches + (holds_all(instance, device) ? waits : starting + ending);
}

static pc_time least_of_device(const pc_instance *instance, int device) {
    pc_time work = time_to_work(instance, device);
    double hold = ceil(time_to_hold(instance, device) * (1 - ROUNDING));
    return hold > (double)work && hold < (double)(INT64_MAX / 2) ? (pc_time)hold : work;
}

pc_time pc_instance_least_span(const pc_instance *instance) {
    pc_time least = pc_objective_least(instance);
    for (int d = 0; d < instance->devices; d++) least = pc_max(least, least_of_device(instance, d));
    return least;
}

/* ---- the close bound ---- */

enum { LARGE = 1 << 16 }; /* passes of all devices; see pc_instance_bound */

/* Whether heads can be found at all, and times be summed without a thought. */
static bool has_heads(const pc_instance *instance) {
    int count = instance->devices * instance->types;
    double all = 0;
    if (instance->chunks > PC_HEADS_CHUNKS_MAX || instance->devices * instance->passes > LARGE) return false;
    for (int i = 0; i < count; i++)
        all += (double)instance->cells[i].duration + (double)instance->cells[i].before_delay;
    return all * instance->microbatches < (double)PC_GAPS_NEVER / 8;
}

/* The device that has the most work; the first of several. */
static int busiest_device(const pc_instance *instance) {
    int busiest = 0;
    pc_time most = -1;
    for (int d = 0; d < instance->devices; d++) {
        pc_time work = 0;
        for (int type = 0; type < instance->types; type++) work += instance->cells[d * instance->types + type].duration;
        if (work <= most) continue;
        most = work;
        busiest = d;
    }
    return busiest;
}

static void raise_to(pc_time *bound, pc_time least) {
    if (least > *bound) *bound = least;
}

static pc_time least_by_heads(const pc_instance *instance, int device, pc_heads *to, pc_heads *fro) {
    pc_time least = pc_machine_least_span(instance, device, pc_heads_of(to, device), pc_heads_of(fro, device));
    raise_to(&least, pc_heads_least_span(to, fro));
    raise_to(&least, pc_heads_least_span(fro, to));
    return least;
}

/* least_ps[0] and that of the busiest device rise to what heads say. */
static pc_code raise_by_heads(const pc_instance *instance, int busiest, pc_time *least_ps, pc_error *error) {
    pc_instance mirror = {0};
    pc_heads *to = NULL, *fro = NULL;
    pc_code code = pc_instance_mirror(instance, &mirror, error);
    if (!code) code = pc_heads_create(instance, &to, error);
    if (!code) code = pc_heads_create(&mirror, &fro, error);
    if (!code) raise_to(&least_ps[0], least_by_heads(instance, 0, to, fro));
    if (!code && busiest > 0) raise_to(&least_ps[busiest], least_by_heads(instance, busiest, to, fro));
    pc_heads_free(to);
    pc_heads_free(fro);
    pc_instance_mirror_free(&mirror);
    return code;
}

void pc_instance_least_spans(const pc_instance *instance, pc_time *least_ps) {
    for (int d = 0; d < instance->devices; d++) least_ps[d] = least_of_device(instance, d);
}

pc_code pc_instance_close_spans(const pc_instance *instance, pc_time *least_ps, pc_error *error) {
    return has_heads(instance) ? raise_by_heads(instance, busiest_device(instance), least_ps, error) : PC_OK;
}

pc_code pc_instance_bound(const pc_instance *instance, pc_time *bound, pc_error *error) {
    pc_time least = pc_instance_least_span(instance);
    pc_code code = PC_OK;
    if (has_heads(instance)) {
        pc_time *least_ps = pc_alloc((size_t)instance->devices, sizeof *least_ps);
        if (!least_ps) return pc_error_no_memory(error);
        code = pc_instance_close_spans(instance, least_ps, error);
        for (int d = 0; d < instance->devices; d++) raise_to(&least, least_ps[d]);
        pc_free(least_ps);
    }
    if (!code) *bound = least;
    return code;
}

/* ---- on demand ---- */

pc_bound pc_bound_first(const pc_instance *instance) {
    return (pc_bound){.least = pc_instance_least_span(instance)};
}

pc_code pc_bound_reach(pc_bound *bound, const pc_instance *instance, pc_time span, bool *is_reached, pc_error *error) {
    pc_code code = PC_OK;
    if (span > bound->least && !bound->is_close) {
        code = pc_instance_bound(instance, &bound->least, error);
        bound->is_close = !code;
    }
    *is_reached = !code && span <= bound->least;
    return code;
}
