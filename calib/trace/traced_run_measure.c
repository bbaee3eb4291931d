#include "calib/trace/traced_run.h"

#include "engine/alloc.h"

#include <math.h>
#include <stdlib.h>

/* Of one part's passes of one kind. */
typedef struct sums {
    double time_ps, square, bytes;
    int64_t count;
} sums;

static sums *sums_at(const pc_traced_run *timeline, sums *all, const pc_traced_run_pass *pass) {
    int64_t part = (int64_t)pass->device * timeline->chunks + pass->pass.chunk;
    return &all[part * PC_PASS_KINDS + pass->pass.kind];
}

/* In two walks, so that the squares are of what is left of the mean. */
static void add_all(const pc_traced_run *timeline, sums *all) {
    for (int64_t i = 0; i < timeline->pass_count; i++) {
        const pc_traced_run_pass *pass = &timeline->passes[i];
        sums *sum = sums_at(timeline, all, pass);
        sum->time_ps += (double)(pass->end_ps - pass->start_ps);
        sum->bytes += (double)pass->bytes;
        sum->count++;
    }
    for (int64_t i = 0; i < timeline->pass_count; i++) {
        const pc_traced_run_pass *pass = &timeline->passes[i];
        sums *sum = sums_at(timeline, all, pass);
        double rest = (double)(pass->end_ps - pass->start_ps) - sum->time_ps / (double)sum->count;
        sum->square += rest * rest;
    }
}

static void take_times(const sums *of_part, pc_part_times *part) {
    for (int kind = 0; kind < PC_PASS_KINDS; kind++) {
        const sums *sum = &of_part[kind];
        if (sum->count == 0) continue;
        double mean = sum->time_ps / (double)sum->count;
        part->time_ps[kind] = llround(mean);
        part->count[kind] = sum->count;
        if (sum->count > 1 && mean > 0) part->scatter[kind] = sqrt(sum->square / (double)(sum->count - 1)) / mean;
    }
}

/* What F leaves behind, and what B takes away of that. An allocator's rounding can make either slightly negative. */
static void take_bytes(const sums *of_part, pc_part_times *part) {
    const sums *f = &of_part[PC_PASS_F], *b = &of_part[PC_PASS_B];
    if (f->count == 0) return;
    part->activation_bytes = llround(fmax(f->bytes / (double)f->count, 0.0));
    if (b->count > 0)
        part->b_bytes = llround(fmin(fmax(-b->bytes / (double)b->count, 0.0), (double)part->activation_bytes));
}

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The median, and half of what lies between the 16th and the 84th of a hundred: the standard deviation, if it is
 * normal, that a message which waited does not widen. */
static pc_code take_transfer(const pc_traced_run *timeline, pc_pass_times *times, pc_error *error) {
    int64_t count = timeline->message_count, sized = 0;
    if (count == 0) return PC_OK;
    double *list = pc_alloc((size_t)count, sizeof *list);
    if (!list) return pc_error_no_memory(error);
    for (int64_t i = 0; i < count; i++) list[i] = (double)timeline->messages[i].time_ps;
    qsort(list, (size_t)count, sizeof *list, by_size);
    double median = list[count / 2];
    times->transfer_ps = llround(median);
    if (median > 0) times->transfer_scatter = (list[count * 84 / 100] - list[count * 16 / 100]) / 2 / median;
    for (int64_t i = 0; i < count; i++)
        if (timeline->messages[i].bytes > 0) list[sized++] = (double)timeline->messages[i].bytes;
    if (sized > 0) {
        qsort(list, (size_t)sized, sizeof *list, by_size);
        times->transfer_bytes = llround(list[sized / 2]);
    }
    pc_free(list);
    return PC_OK;
}

static pc_code fill(const pc_traced_run *timeline, pc_pass_times *times, pc_error *error) {
    int64_t parts = (int64_t)timeline->devices * timeline->chunks;
    sums *all = pc_alloc((size_t)parts * PC_PASS_KINDS, sizeof *all);
    if (!all) return pc_error_no_memory(error);
    add_all(timeline, all);
    for (int64_t i = 0; i < parts; i++) {
        take_times(&all[i * PC_PASS_KINDS], &times->parts[i]);
        if (timeline->has_memory) take_bytes(&all[i * PC_PASS_KINDS], &times->parts[i]);
    }
    for (int d = 0; timeline->has_memory && d < timeline->devices; d++) times->held_bytes[d] = timeline->held_bytes[d];
    pc_free(all);
    return take_transfer(timeline, times, error);
}

pc_code pc_traced_run_measure(const pc_traced_run *timeline, pc_pass_times *times, pc_error *error) {
    pc_pass_times made;
    pc_code code = pc_pass_times_create(timeline->devices, timeline->chunks, timeline->placement, &made, error);
    if (code) return code;
    code = fill(timeline, &made, error);
    if (code)
        pc_pass_times_free(&made);
    else
        *times = made;
    return code;
}
