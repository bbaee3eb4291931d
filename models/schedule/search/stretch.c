#include "models/schedule/search/stretch.h"

#include "engine/alloc.h"

#include <string.h>

/* The middle may repeat itself after so many microbatches; all divide STEP. */
static const int periods[] = {1, 2, 3, 4, 6};
enum { PERIODS = sizeof periods / sizeof *periods, STEP = 12 };

int pc_stretch_length(int least, int microbatches) {
    return microbatches <= least ? microbatches : microbatches - (microbatches - least) / STEP * STEP;
}

/* Where the middle is cut: microbatches from `at` on repeat after `period` of them, `interval` later. */
typedef struct cut {
    int at, period;
    int run; /* how many microbatches in a row do so */
    pc_time interval;
} cut;

/* start[cell][microbatch] of the brief order. */
static void spread_starts(const pc_instance *instance, const pc_instance_order *order, pc_time *start) {
    for (int d = 0; d < instance->devices; d++)
        for (int64_t k = d * instance->passes; k < (d + 1) * instance->passes; k++) {
            int64_t cell = d * instance->types + pc_instance_pass_type(order->pass[k]);
            start[cell * instance->microbatches + pc_instance_pass_microbatch(order->pass[k])] = order->start[k];
        }
}

/* Whether all passes of microbatch i come again, `period` microbatches later, the same time later. */
static bool repeats(const pc_instance *instance, const pc_time *start, int i, int period) {
    pc_time interval = start[i + period] - start[i];
    for (int cell = 0; cell < instance->devices * instance->types; cell++) {
        const pc_time *of_cell = start + (int64_t)cell * instance->microbatches;
        if (of_cell[i + period] - of_cell[i] != interval) return false;
    }
    return true;
}

/* The middle of the longest run of microbatches that repeat; its length. */
static int longest_run(const pc_instance *instance, const pc_time *start, int period, int *middle) {
    int best = 0;
    *middle = (instance->microbatches - period) / 2;
    for (int i = 0, run = 0; i + period < instance->microbatches; i++) {
        run = repeats(instance, start, i, period) ? run + 1 : 0;
        if (run <= best) continue;
        best = run;
        *middle = i - run / 2;
    }
    return best;
}

/* The cut that holds for the longest run; of the same run the one with the shortest period. `attempt` skips as many. */
static cut find_cut(const pc_instance *instance, const pc_time *start, int attempt) {
    cut cuts[PERIODS];
    int count = 0;
    for (int i = 0; i < PERIODS && periods[i] < instance->microbatches; i++) {
        cut found = {.period = periods[i]};
        found.run = longest_run(instance, start, periods[i], &found.at);
        found.interval = start[found.at + found.period] - start[found.at];
        int at = count++;
        for (; at > 0 && found.run > cuts[at - 1].run; at--) cuts[at] = cuts[at - 1];
        cuts[at] = found;
    }
    /* cppcheck-suppress uninitvar ; a brief instance has two microbatches and more */
    return cuts[attempt < count ? attempt : count - 1];
}

/* Where a pass of the long order stands in time. */
static pc_time stretched_start(const pc_time *of_cell, const cut *c, int added, int microbatch) {
    int i = microbatch - c->at;
    if (i < 0) return of_cell[microbatch];
    if (i >= added) return of_cell[microbatch - added] + added / c->period * c->interval;
    return of_cell[c->at + i % c->period] + i / c->period * c->interval;
}

/* Merges the device's types, each in the order of its microbatches, by their start. */
static void merge_device(const pc_instance *brief, const pc_time *start, const cut *c, const pc_instance *full,
                         int device, pc_instance_pass *passes) {
    int next[PC_INSTANCE_TYPES_MAX] = {0}, added = full->microbatches - brief->microbatches;
    pc_time at[PC_INSTANCE_TYPES_MAX];
    const pc_time *of_device = start + (int64_t)device * brief->passes;
    for (int type = 0; type < full->types; type++)
        at[type] = stretched_start(of_device + (int64_t)type * brief->microbatches, c, added, 0);
    for (int64_t k = 0; k < full->passes; k++) {
        int first = -1;
        for (int type = 0; type < full->types; type++)
            if (next[type] < full->microbatches && (first < 0 || at[type] < at[first])) first = type;
        /* cppcheck-suppress negativeIndex ; a type is left for each of the passes */
        passes[k] = pc_instance_pass_make(first, next[first]++);
        /* cppcheck-suppress negativeIndex ; as above */
        if (next[first] < full->microbatches)
            at[first] = stretched_start(of_device + (int64_t)first * brief->microbatches, c, added, next[first]);
    }
}

pc_code pc_stretch(const pc_instance *brief, const pc_instance_order *brief_order, int attempt, const pc_instance *full,
                   pc_instance_order *order, pc_error *error) {
    pc_time *start = pc_alloc((size_t)brief->devices * (size_t)brief->passes, sizeof *start);
    if (!start) return pc_error_no_memory(error);
    spread_starts(brief, brief_order, start);
    cut c = find_cut(brief, start, attempt);
    for (int d = 0; d < full->devices; d++) merge_device(brief, start, &c, full, d, order->pass + d * full->passes);
    pc_free(start);
    return PC_OK;
}
