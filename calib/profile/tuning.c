#include "calib/profile/tuning.h"

#include "engine/numbers.h"
#include "engine/simtime.h"

#include <math.h>
#include <stdio.h>

/* The widths are judgements. Libraries' products differ by a tenth. What eager programs add to kernels between matrices
 * is half as much again (software/mosaic.yaml), and generations of attention lie further apart. Networks differ by
 * their fabric and its load; what the host takes depends on the program by up to ten times. Data of a few dozen runs
 * weigh more than all of them. */
static const pc_tuned_rule rules[PC_TUNED] = {
    [PC_TUNED_GEMM] = {"gemm", "times", true, 0.1, 0.2, 5.0},            /* seconds of matrix products */
    [PC_TUNED_ATTENTION] = {"attention", "times", true, 0.3, 0.1, 10.0}, /* seconds of flash attention */
    [PC_TUNED_MEMORY] = {"memory", "times", true, 0.3, 0.1, 10.0},       /* seconds of kernels bound by memory */
    [PC_TUNED_LAUNCH] = {"launch", "times", true, 0.7, 0.02, 50.0},      /* the host's seconds a launch */
    [PC_TUNED_NETWORK] = {"network", "times", true, 0.3, 0.1, 10.0},     /* seconds of bytes between domains */
    [PC_TUNED_OVERLAP] = {"overlap", "more", false, 0.1, -1.0, 1.0},     /* added to overlap.slowdown */
    [PC_TUNED_OVERHEAD] = {"overhead", "s", false, 0.1, -10.0, 10.0},    /* added to every iteration */
};

const pc_tuned_rule *pc_tuned_rule_of(pc_tuned which) {
    return &rules[which];
}

double pc_tuned_nothing(pc_tuned which) {
    return rules[which].is_factor ? 1.0 : 0.0;
}

pc_tuning pc_tuning_none(void) {
    static const pc_tuning_errors unknown = {NAN, NAN, NAN};
    pc_tuning made = {.is_there = true, .before = unknown, .after = unknown, .unseen = unknown};
    for (pc_tuned i = 0; i < PC_TUNED; i++) {
        snprintf(made.number[i].name, sizeof made.number[i].name, "%s", rules[i].name);
        made.number[i].value = pc_tuned_nothing(i);
        made.number[i].prior_width = rules[i].width;
    }
    return made;
}

/* ---- what it changes ---- */

double pc_tuning_factor(const pc_tuning *tuning, pc_operation_kind kind) {
    pc_tuned which = kind == PC_OPERATION_GEMM || kind == PC_OPERATION_GROUPED_GEMM ? PC_TUNED_GEMM
                     : kind == PC_OPERATION_ATTENTION                               ? PC_TUNED_ATTENTION
                                                                                    : PC_TUNED_MEMORY;
    return tuning->is_there ? tuning->number[which].value : 1.0;
}

static void slow_down(double factor, double *efficiency) {
    *efficiency = pc_min(*efficiency / factor, 1.0);
}

void pc_tuning_apply(const pc_tuning *tuning, pc_machine *machine) {
    if (!tuning->is_there) return;
    double network = tuning->number[PC_TUNED_NETWORK].value;
    machine->gpu.launch_s *= tuning->number[PC_TUNED_LAUNCH].value;
    slow_down(network, &machine->network.efficiency);
    slow_down(network, &machine->network.fast_efficiency);
}

double pc_tuning_overlap(const pc_tuning *tuning, double slowdown) {
    if (!tuning->is_there) return slowdown;
    double sum = slowdown + tuning->number[PC_TUNED_OVERLAP].value;
    return pc_min(pc_max(sum, 0.0), 1.0);
}

int64_t pc_tuning_overhead_ps(const pc_tuning *tuning, int64_t overhead_ps) {
    if (!tuning->is_there) return overhead_ps;
    int64_t more = (int64_t)llround(tuning->number[PC_TUNED_OVERHEAD].value * (double)PC_PICOSECONDS_PER_SECOND), sum;
    if (__builtin_add_overflow(overhead_ps, more, &sum)) return overhead_ps;
    return pc_max(sum, INT64_C(0));
}
