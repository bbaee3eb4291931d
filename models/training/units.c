#include "models/training/units.h"

#include "engine/numbers.h"

#include <stddef.h>
#include <stdint.h>

pc_unit_step pc_units_step(const pc_units *units, int number) {
    if (number == 0) return units->before;
    if (number == units->count + 1) return units->behind;
    return number - 1 == units->odd ? units->other : units->each;
}

/* Where the passes at work are: the last kernels, and both wires. */
typedef struct progress {
    pc_time kernels_ps, wire_ps, replicate_ps;
} progress;

/* A pass on its way: the unit that is next, and the gathers that have been issued, of which the last ones end at
 * gathered_ps. */
typedef struct under_way {
    const pc_units *units;
    int next;
    pc_time gathered_ps[PC_PREFETCH_MAX + 1];
} under_way;

static void gather(under_way *pass, int prefetch, int number, progress *now) {
    if (number >= pc_units_steps(pass->units)) return;
    pc_time gather_ps = pc_units_step(pass->units, number).gather_ps;
    if (gather_ps > 0) now->wire_ps = pc_max(now->wire_ps, now->kernels_ps) + gather_ps;
    pass->gathered_ps[number % (prefetch + 1)] = gather_ps > 0 ? now->wire_ps : 0;
}

/* Collectives that kernels have issued before are under way without a gap until both wires are free. */
static pc_time slowed(pc_time kernels_ps, pc_time busy_ps, double slowdown) {
    if (busy_ps <= 0 || kernels_ps <= 0 || slowdown <= 0) return kernels_ps;
    bool done_first = (1 - slowdown) * (double)busy_ps >= (double)kernels_ps;
    return done_first ? (pc_time)((double)kernels_ps / (1 - slowdown))
                      : kernels_ps + (pc_time)(slowdown * (double)busy_ps);
}

static void compute(const pc_unit_step *step, double slowdown, pc_time gathered_ps, progress *now,
                    pc_unit_times *times) {
    times->gathered_ps = gathered_ps;
    times->begin_ps = pc_max(now->kernels_ps, gathered_ps);
    pc_time busy_ps = pc_max(now->wire_ps, now->replicate_ps) - times->begin_ps;
    now->kernels_ps = times->end_ps = times->begin_ps + slowed(step->kernels_ps, busy_ps, slowdown);
}

static void reduce(const pc_unit_step *step, const pc_unit_rules *rules, progress *now, pc_unit_times *times) {
    pc_time *replicate_ps = rules->replicates_beside ? &now->replicate_ps : &now->wire_ps;
    times->reduced_ps = times->replicated_ps = now->kernels_ps;
    if (step->reduce_ps > 0)
        times->reduced_ps = now->wire_ps = pc_max(now->wire_ps, now->kernels_ps + step->copy_ps) + step->reduce_ps;
    times->replicated_ps = times->reduced_ps;
    if (step->replicate_ps > 0)
        times->replicated_ps = *replicate_ps = pc_max(*replicate_ps, times->reduced_ps) + step->replicate_ps;
    if (rules->waits_for_reduce) now->kernels_ps = times->replicated_ps;
}

static under_way begin(const pc_units *units, const pc_unit_rules *rules, progress *now) {
    under_way pass = {.units = units};
    for (int j = 0; j <= rules->prefetch; j++) gather(&pass, rules->prefetch, j, now);
    return pass;
}

static bool is_over(const under_way *pass) {
    return pass->next == pc_units_steps(pass->units);
}

/* The next unit. */
static void go_on(under_way *pass, const pc_unit_rules *rules, progress *now, pc_unit_times *times) {
    pc_unit_times unused = {0}, *at = times ? times : &unused;
    int j = pass->next++;
    pc_unit_step step = pc_units_step(pass->units, j);
    compute(&step, rules->slowdown, pass->gathered_ps[j % (rules->prefetch + 1)], now, at);
    reduce(&step, rules, now, at);
    gather(pass, rules->prefetch, j + 1 + rules->prefetch, now);
}

static pc_time end_of(const progress *now) {
    return pc_max(now->kernels_ps, pc_max(now->wire_ps, now->replicate_ps));
}

pc_time pc_units_run(const pc_units *units, const pc_unit_rules *rules, pc_unit_times *times) {
    progress now = {0};
    under_way pass = begin(units, rules, &now);
    while (!is_over(&pass)) go_on(&pass, rules, &now, times ? &times[pass.next] : NULL);
    return end_of(&now);
}

/* Whether the part of a's units that is over is no larger than that of b's. */
static bool is_behind(const under_way *a, const under_way *b) {
    return (int64_t)a->next * pc_units_steps(b->units) <= (int64_t)b->next * pc_units_steps(a->units);
}

pc_time pc_units_run_both(const pc_units *a, const pc_units *b, const pc_unit_rules *rules) {
    progress now = {0};
    under_way first = begin(a, rules, &now), second = begin(b, rules, &now);
    while (!is_over(&first) || !is_over(&second))
        go_on(is_over(&second) || (!is_over(&first) && is_behind(&first, &second)) ? &first : &second, rules, &now,
              NULL);
    return pc_min(end_of(&now), pc_units_run(a, rules, NULL) + pc_units_run(b, rules, NULL));
}
