#include "models/schedule/unit_costs.h"

#include <math.h>

/* The smallest time that is not zero; infinite where all are. */
static double smallest_time(const pc_unit_costs *units) {
    const double times[] = {units->times[0], units->times[1], units->times[2], units->comm};
    double smallest = INFINITY;
    for (int i = 0; i < 4; i++)
        if (times[i] > 0.0 && times[i] < smallest) smallest = times[i];
    return smallest;
}

/* Whole ticks for times in the user's unit, 10^9 a unit. More where the smallest of them would be less than 10^6 ticks,
 * so that rounding does not show whatever the unit. Fewer where the whole pipeline, one pass after the other, would not
 * fit into the clock; 0 where no number of ticks does. */
double pc_unit_ticks(const pc_unit_costs *units, const pc_unit_shape *shape) {
    const double most = 0x1p61, least = 1e6;
    double recompute = shape->recomputes ? units->times[0] : 0.0;
    double microbatch =
        units->times[0] + units->times[1] + units->times[2] + recompute + 2.0 * units->comm * shape->chunks;
    double whole = microbatch * shape->devices * shape->microbatches;
    double smallest = smallest_time(units) / shape->chunks;
    double ticks = 1e9;
    while (ticks >= 1e-290 && whole * ticks > most) ticks /= 10.0;
    while (smallest * ticks < least && whole * ticks * 10.0 <= most) ticks *= 10.0;
    return smallest * ticks >= 1.0 && whole * ticks <= most ? ticks : 0.0;
}

/* `shares`: how many chunks a stage's time is shared among; where chunks are replicas each takes all of it. */
static void fill_costs(const pc_unit_costs *units, double ticks, int shares, pc_costs *costs) {
    double of_kind[PC_PASS_KINDS] = {[PC_PASS_F] = units->times[0],
                                     [PC_PASS_B] = units->times[1],
                                     [PC_PASS_W] = units->times[2],
                                     [PC_PASS_BW] = units->times[1] + units->times[2],
                                     [PC_PASS_R] = units->times[0]};
    for (int d = 0; d < costs->devices; d++)
        for (int c = 0; c < costs->chunks; c++) {
            int64_t i = pc_costs_index(costs, d, c);
            for (int kind = 0; kind < PC_PASS_KINDS; kind++) {
                double whole = of_kind[kind] * ticks; /* chunk by chunk so that the chunks sum up to the stage */
                int share = c % shares;
                costs->duration_ps[i * PC_PASS_KINDS + kind] =
                    llround(whole * (share + 1) / shares) - llround(whole * share / shares);
            }
            costs->activation_bytes[i] = PC_UNIT_CHUNK_BYTES;
            costs->activation_b_bytes[i] = llround(units->release_b * (double)PC_UNIT_CHUNK_BYTES);
            costs->activation_kept_bytes[i] = llround(units->keep * (double)PC_UNIT_CHUNK_BYTES);
        }
    costs->transfer.delay_ps = llround(units->comm * ticks);
}

pc_code pc_unit_costs_make(const pc_unit_costs *units, const pc_unit_shape *shape, double ticks, pc_costs *costs,
                           pc_error *error) {
    pc_code code = pc_costs_create(shape->devices, shape->chunks, costs, error);
    if (!code) fill_costs(units, ticks, pc_placement_visited(shape->placement, shape->chunks), costs);
    return code;
}
