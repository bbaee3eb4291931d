#include "models/training/units.h"

#include "engine/numbers.h"

#include <stddef.h>

pc_unit_step pc_units_step(const pc_units *units, int number) {
    if (number == 0) return units->before;
    if (number == units->count + 1) return units->behind;
    return number - 1 == units->odd ? units->other : units->each;
}

/* Where the pass is: its last kernels, both wires, and the gathers that have been issued, of which the last ones end at
 * gathered_ps. */
typedef struct progress {
    pc_time kernels_ps, wire_ps, replicate_ps;
    pc_time gathered_ps[PC_PREFETCH_MAX + 1];
} progress;

static void gather(const pc_units *units, int prefetch, int number, progress *now) {
    if (number >= pc_units_steps(units)) return;
    pc_time gather_ps = pc_units_step(units, number).gather_ps;
    if (gather_ps > 0) now->wire_ps = pc_max(now->wire_ps, now->kernels_ps) + gather_ps;
    now->gathered_ps[number % (prefetch + 1)] = gather_ps > 0 ? now->wire_ps : 0;
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

pc_time pc_units_run(const pc_units *units, const pc_unit_rules *rules, pc_unit_times *times) {
    progress now = {0};
    int steps = pc_units_steps(units);
    for (int j = 0; j <= rules->prefetch; j++) gather(units, rules->prefetch, j, &now);
    for (int j = 0; j < steps; j++) {
        pc_unit_step step = pc_units_step(units, j);
        pc_unit_times unused = {0}, *at = times ? &times[j] : &unused;
        compute(&step, rules->slowdown, now.gathered_ps[j % (rules->prefetch + 1)], &now, at);
        reduce(&step, rules, &now, at);
        gather(units, rules->prefetch, j + 1 + rules->prefetch, &now);
    }
    return pc_max(now.kernels_ps, pc_max(now.wire_ps, now.replicate_ps));
}
