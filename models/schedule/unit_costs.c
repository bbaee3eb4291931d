#include "models/schedule/unit_costs.h"

#include <math.h>

/* ---- whose times ---- */

static int parts_of(const pc_unit_shape *shape) {
    return pc_placement_parts(shape->placement, shape->devices, shape->chunks);
}

pc_unit_shape pc_unit_shape_of(const pc_schedule *schedule) {
    return (pc_unit_shape){.devices = schedule->devices,
                           .microbatches = schedule->microbatches,
                           .chunks = schedule->chunks,
                           .placement = schedule->placement,
                           .recomputes = pc_schedule_has(schedule, PC_PASS_R),
                           .barriers = schedule->barriers};
}

bool pc_unit_costs_suit(const pc_unit_costs *units, const pc_unit_shape *shape) {
    return units->part_count == 0 || units->part_count == shape->devices || units->part_count == parts_of(shape);
}

/* Of F, B and W, what a chunk takes as one of `*shares`: of a stage's times, or all of its own part's. Where chunks are
 * replicas each is a whole stage of the model. */
static const double *times_of(const pc_unit_costs *units, const pc_unit_shape *shape, int device, int chunk,
                              int *shares) {
    *shares = pc_placement_visited(shape->placement, shape->chunks);
    if (units->part_count == 0) return units->times;
    if (units->part_count != parts_of(shape) || shape->placement == PC_PLACEMENT_SLICES)
        return units->part_times[device];
    *shares = pc_placement_slices(shape->placement, shape->chunks);
    return units->part_times[pc_placement_part(shape->placement, shape->devices, device, chunk)];
}

/* ---- ticks ---- */

/* Of all chunks: the smallest time that is not zero (infinite: all are), and what a microbatch takes on all of them. */
typedef struct extent {
    double smallest, whole;
} extent;

static void add_time(extent *x, double time, int shares) {
    if (time > 0.0 && time / shares < x->smallest) x->smallest = time / shares;
    x->whole += time / shares;
}

static extent extent_of_all(const pc_unit_costs *units, const pc_unit_shape *shape) {
    extent x = {INFINITY, 0.0};
    for (int kind = 0; kind < 3; kind++) add_time(&x, units->times[kind], 1);
    if (shape->recomputes) add_time(&x, units->times[0], 1);
    return (extent){x.smallest / shape->chunks, x.whole * shape->devices};
}

static extent extent_of_each(const pc_unit_costs *units, const pc_unit_shape *shape) {
    extent x = {INFINITY, 0.0};
    for (int d = 0; d < shape->devices; d++)
        for (int c = 0; c < shape->chunks; c++) {
            int shares;
            const double *times = times_of(units, shape, d, c, &shares);
            for (int kind = 0; kind < 3; kind++) add_time(&x, times[kind], shares);
            if (shape->recomputes) add_time(&x, times[0], shares);
        }
    return x;
}

/* How much shorter than the mean the shortest slice is. */
static double least_slice(const pc_unit_costs *units, const pc_unit_shape *shape) {
    int slices = pc_placement_slices(shape->placement, shape->chunks);
    double least = INFINITY, all = 0.0;
    for (int i = 0; i < slices; i++) {
        least = fmin(least, units->slice_times[i]);
        all += units->slice_times[i];
    }
    return least * slices / all;
}

static void add_vocab_time(extent *x, double time, int devices) {
    if (time > 0.0 && time < x->smallest) x->smallest = time;
    x->whole += time * devices;
}

/* Whole ticks for times in the user's unit, 10^9 a unit. More where the smallest of them would be less than 10^6 ticks,
 * so that rounding does not show whatever the unit. Fewer where the whole pipeline, one pass after the other, would not
 * fit into the clock; 0 where no number of ticks does. */
double pc_unit_ticks(const pc_unit_costs *units, const pc_unit_shape *shape) {
    const double most = 0x1p61, least = 1e6;
    extent x = units->part_count > 0 ? extent_of_each(units, shape) : extent_of_all(units, shape);
    if (units->slice_times) x.smallest *= least_slice(units, shape);
    if (shape->barriers != PC_BARRIERS_NONE)
        for (int i = 0; i < 2; i++) add_vocab_time(&x, units->vocab_times[i], shape->devices);
    int hops = 2 * shape->chunks + (shape->barriers != PC_BARRIERS_NONE ? 3 : 0);
    double whole = (x.whole + hops * units->comm * shape->devices) * shape->microbatches;
    double smallest =
        units->comm > 0.0 && units->comm / shape->chunks < x.smallest ? units->comm / shape->chunks : x.smallest;
    double ticks = 1e9;
    while (ticks >= 1e-290 && whole * ticks > most) ticks /= 10.0;
    while (smallest * ticks < least && whole * ticks * 10.0 <= most) ticks *= 10.0;
    return smallest * ticks >= 1.0 && whole * ticks <= most ? ticks : 0.0;
}

/* ---- costs ---- */

/* Times to share out: of how many shares, k of them the slices of one part. */
typedef struct sharing {
    const pc_unit_costs *units;
    int shares, slices;
} sharing;

/* The share of those times that the slices, and the parts, before one have. */
static double share_before(const sharing *x, int share) {
    double before = 0.0, all = 0.0;
    for (int i = 0; i < x->slices; i++) {
        if (i < share % x->slices) before += x->units->slice_times[i];
        all += x->units->slice_times[i];
    }
    int parts = x->shares / x->slices, parts_before = share / x->slices;
    return (parts_before + before / all) / parts;
}

/* Of `whole`, what the shares before one take. */
static int64_t time_before(const sharing *x, double whole, int share) {
    return llround(x->units->slice_times ? whole * share_before(x, share) : whole * share / x->shares);
}

/* A chunk's share of a stage's times, chunk by chunk so that the chunks sum up to the stage. */
static void fill_times(const sharing *x, const double times[3], double ticks, int share, pc_time *duration_ps) {
    const double of_kind[PC_PASS_KINDS] = {[PC_PASS_F] = times[0],
                                           [PC_PASS_B] = times[1],
                                           [PC_PASS_W] = times[2],
                                           [PC_PASS_BW] = times[1] + times[2],
                                           [PC_PASS_R] = times[0]};
    for (int kind = 0; kind < PC_PASS_KINDS; kind++) {
        double whole = of_kind[kind] * ticks;
        duration_ps[kind] = time_before(x, whole, share + 1) - time_before(x, whole, share);
    }
}

/* S and T under chunk 0 of every stage. A collective takes as long as a transfer. */
static void fill_vocab(const pc_unit_costs *units, double ticks, pc_costs *costs) {
    for (int d = 0; d < costs->devices; d++) {
        pc_time *times = &costs->duration_ps[pc_costs_index(costs, d, 0) * PC_PASS_KINDS];
        times[PC_PASS_S] = llround(units->vocab_times[0] * ticks);
        times[PC_PASS_T] = llround(units->vocab_times[1] * ticks);
    }
    pc_time comm_ps = costs->transfer.delay_ps;
    costs->vocab = (pc_vocab_costs){.broadcast_ps = comm_ps, .exchange_ps = comm_ps, .reduce_ps = comm_ps};
}

static void fill_costs(const pc_unit_costs *units, const pc_unit_shape *shape, double ticks, pc_costs *costs) {
    for (int d = 0; d < costs->devices; d++)
        for (int c = 0; c < costs->chunks; c++) {
            int64_t i = pc_costs_index(costs, d, c);
            sharing x = {.units = units, .slices = pc_placement_slices(shape->placement, shape->chunks)};
            const double *times = times_of(units, shape, d, c, &x.shares);
            fill_times(&x, times, ticks, c % x.shares, &costs->duration_ps[i * PC_PASS_KINDS]);
            costs->activation_bytes[i] = PC_UNIT_CHUNK_BYTES;
            costs->activation_b_bytes[i] = llround(units->release_b * (double)PC_UNIT_CHUNK_BYTES);
            costs->activation_kept_bytes[i] = llround(units->keep * (double)PC_UNIT_CHUNK_BYTES);
        }
    costs->transfer.delay_ps = llround(units->comm * ticks);
    if (shape->barriers != PC_BARRIERS_NONE) fill_vocab(units, ticks, costs);
}

pc_code pc_unit_costs_make(const pc_unit_costs *units, const pc_unit_shape *shape, double ticks, pc_costs *costs,
                           pc_error *error) {
    pc_code code = pc_costs_create(shape->devices, shape->chunks, costs, error);
    if (!code) fill_costs(units, shape, ticks, costs);
    return code;
}
