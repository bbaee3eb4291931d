#include "cli/schedule_request.h"

#include "cli/cli.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- costs in whole ticks ---- */

/* The smallest time that is not zero; infinite where all are. */
static double smallest_time(const schedule_request *r) {
    const double times[] = {r->times[0], r->times[1], r->times[2], r->comm};
    double smallest = INFINITY;
    for (int i = 0; i < 4; i++)
        if (times[i] > 0.0 && times[i] < smallest) smallest = times[i];
    return smallest;
}

/* Whole ticks for times in the user's unit, 10^9 a unit. More where the smallest of them would be less than 10^6 ticks,
 * so that rounding does not show whatever the unit; fewer where the whole pipeline, one pass after the other, would not
 * fit into the clock; 0 where no number of ticks does. */
static double ticks_per_unit(const schedule_request *r, const schedule_shape *shape) {
    const double most = 0x1p61, least = 1e6;
    double recompute = shape->recomputes ? r->times[0] : 0.0;
    double microbatch = r->times[0] + r->times[1] + r->times[2] + recompute + 2.0 * r->comm * shape->chunks;
    double whole = microbatch * shape->devices * shape->microbatches;
    double smallest = smallest_time(r) / shape->chunks;
    double ticks = 1e9;
    while (ticks >= 1e-290 && whole * ticks > most) ticks /= 10.0;
    while (smallest * ticks < least && whole * ticks * 10.0 <= most) ticks *= 10.0;
    return smallest * ticks >= 1.0 && whole * ticks <= most ? ticks : 0.0;
}

double request_ticks(const schedule_request *r, const schedule_shape *shape, pc_error *error) {
    double ticks = ticks_per_unit(r, shape);
    if (ticks == 0.0)
        pc_error_set(error, PC_ERROR_INPUT,
                     "--times, --comm: too large or too far apart; expected all passes together to last less than "
                     "10^18 times the shortest of them");
    return ticks;
}

/* `shares`: how many chunks a stage's time is shared among; where chunks are replicas each takes all of it. */
static void fill_costs(const schedule_request *r, double ticks, int shares, pc_costs *costs) {
    double of_kind[PC_PASS_KINDS] = {[PC_PASS_F] = r->times[0],
                                     [PC_PASS_B] = r->times[1],
                                     [PC_PASS_W] = r->times[2],
                                     [PC_PASS_BW] = r->times[1] + r->times[2],
                                     [PC_PASS_R] = r->times[0]};
    for (int d = 0; d < costs->devices; d++)
        for (int c = 0; c < costs->chunks; c++) {
            int64_t i = pc_costs_index(costs, d, c);
            for (int kind = 0; kind < PC_PASS_KINDS; kind++) {
                double whole = of_kind[kind] * ticks; /* chunk by chunk so that the chunks sum up to the stage */
                int share = c % shares;
                costs->duration_ps[i * PC_PASS_KINDS + kind] =
                    llround(whole * (share + 1) / shares) - llround(whole * share / shares);
            }
            costs->activation_bytes[i] = CHUNK_BYTES;
            costs->activation_b_bytes[i] = llround(r->release_b * (double)CHUNK_BYTES);
            costs->activation_kept_bytes[i] = llround(r->keep * (double)CHUNK_BYTES);
        }
    costs->transfer.delay_ps = llround(r->comm * ticks);
}

pc_code request_costs(const schedule_request *r, const schedule_shape *shape, double ticks, pc_costs *costs,
                      pc_error *error) {
    pc_code code = pc_costs_create(shape->devices, shape->chunks, costs, error);
    if (!code) fill_costs(r, ticks, pc_placement_visited(shape->placement, shape->chunks), costs);
    return code;
}

/* ---- memory limits ---- */

static pc_code read_limit(const char *word, double *limit, pc_error *error) {
    char *end;
    *limit = strtod(word, &end);
    if (end != word && *end == '\0' && *limit >= 0.0) return PC_OK; /* not a NaN either */
    return pc_error_set(error, PC_ERROR_INPUT, "--memory-limit: '%s'; expected a number from 0 up, or one a device",
                        word);
}

static pc_code read_limits(char *text, int devices, double *limit, pc_error *error) {
    int count = 0;
    for (char *word; (word = strsep(&text, ",")); count++) {
        double number;
        pc_code code = read_limit(word, &number, error);
        if (code) return code;
        if (count < devices) limit[count] = number;
    }
    if (count != 1 && count != devices)
        return pc_error_set(error, PC_ERROR_INPUT,
                            "--memory-limit: %d numbers; expected one, or one for each of %d devices", count, devices);
    for (int d = 1; d < devices && count == 1; d++) limit[d] = limit[0];
    return PC_OK;
}

pc_code request_limits(const schedule_request *r, int devices, double *limit, pc_error *error) {
    for (int d = 0; d < devices; d++) limit[d] = INFINITY;
    if (!r->memory_limit) return PC_OK;
    char *copy = strdup(r->memory_limit);
    if (!copy) return pc_error_no_memory(error);
    pc_code code = read_limits(copy, devices, limit, error);
    free(copy);
    return code;
}
