#include "models/schedule/slices_bound.h"

#include "engine/alloc.h"
#include "engine/numbers.h"

#include <math.h>
#include <stdlib.h>

#define ROUNDING 1e-12 /* more than sums of products of doubles are off by */

/* Work that stands for memory: `most` of them at the most. */
typedef struct item {
    double work, bytes, most;
} item;

/* What is asked for, and room to work in. */
typedef struct grid {
    const pc_schedule *schedule;
    const pc_costs *costs;
    bool splits;
    int parts, slices;
    pc_time *f, *b; /* [parts][slices]: ends of one microbatch's passes */
    item *items;    /* [2][chunks] */
} grid;

static int stage_of(const grid *x, int part) {
    return part % x->schedule->devices;
}

static int chunk_of(const grid *x, int part, int slice) {
    return part / x->schedule->devices * x->slices + slice;
}

static pc_time time_of(const grid *x, pc_pass_kind kind, int part, int slice) {
    return pc_costs_duration(x->costs, stage_of(x, part), chunk_of(x, part, slice), kind);
}

static pc_pass_kind backward_of(const grid *x) {
    return x->splits ? PC_PASS_B : PC_PASS_BW;
}

/* Between neighbours, in either direction. */
static pc_time delay_of(const grid *x, int from, int to) {
    int a = stage_of(x, from), b = stage_of(x, to);
    return a == b ? 0 : pc_costs_delay_alone(x->costs, a, b);
}

static pc_time *at(const grid *x, pc_time *table, int part, int slice) {
    return &table[(int64_t)part * x->slices + slice];
}

/* ---- ways of one microbatch ---- */

/* Ends of F from the start of one on. F before it in the grid are left out, and end long ago. */
static void walk_down(const grid *x, int first_part, int first_slice) {
    for (int i = first_part; i < x->parts; i++)
        for (int j = first_slice; j < x->slices; j++) {
            pc_time start = 0;
            if (i > first_part) start = *at(x, x->f, i - 1, j) + delay_of(x, i - 1, i);
            if (j > first_slice) start = pc_max(start, *at(x, x->f, i, j - 1));
            *at(x, x->f, i, j) = start + time_of(x, PC_PASS_F, i, j);
        }
}

/* Ends of backward passes behind them, of all slices in the parts from `first_part` on. */
static void walk_up(const grid *x, int first_part, int first_slice) {
    for (int i = x->parts; i-- > first_part;)
        for (int j = x->slices; j-- > 0;) {
            pc_time start = j >= first_slice ? *at(x, x->f, i, j) : 0;
            if (i + 1 < x->parts) start = pc_max(start, *at(x, x->b, i + 1, j) + delay_of(x, i + 1, i));
            if (j + 1 < x->slices) start = pc_max(start, *at(x, x->b, i, j + 1));
            *at(x, x->b, i, j) = start + time_of(x, backward_of(x), i, j);
        }
}

/* What a device's microbatch takes from its first F there until its first backward pass can start, until all are done,
 * and from the end of its last F until all are done. */
typedef struct ways {
    pc_time back, whole, out;
} ways;

static ways find_ways(const grid *x, int device) {
    int first = device, last = x->parts - x->schedule->devices + device, end = x->slices - 1;
    pc_time w = x->splits ? time_of(x, PC_PASS_W, first, 0) : 0;
    ways found;
    walk_down(x, first, 0);
    walk_up(x, first, 0);
    found.back = *at(x, x->b, last, end) - time_of(x, backward_of(x), last, end);
    found.whole = *at(x, x->b, first, 0) + w;
    walk_down(x, last, end);
    for (int i = first; i < last; i++) *at(x, x->f, i, end) = 0;
    walk_up(x, first, end);
    found.out = *at(x, x->b, first, 0) + w - time_of(x, PC_PASS_F, last, end);
    return found;
}

/* ---- memory ---- */

/* What a pass adds to its device's memory; negative: what it gives back. */
static double taken_of(const grid *x, int device, int chunk, pc_pass_kind kind) {
    pc_pass pass = {.chunk = (int16_t)chunk, .kind = (int16_t)kind};
    return (double)(pc_costs_taken(x->costs, device, pass, false) - pc_costs_given(x->costs, device, pass));
}

static double duration_of(const grid *x, int device, int chunk, pc_pass_kind kind) {
    return (double)pc_costs_duration(x->costs, device, chunk, kind);
}

/* More work a byte first. */
static int compare_items(const void *a, const void *b) {
    const item *x = a, *y = b;
    double of_x = x->work * y->bytes, of_y = y->work * x->bytes;
    return (of_x < of_y) - (of_x > of_y);
}

/* The most work of as many of the items as `room` bytes are for, parts of them too. */
static double most_work(item *items, int count, double room) {
    double work = 0;
    int some = 0;
    for (int i = 0; i < count; i++)
        if (items[i].work > 0) items[some++] = (item){items[i].work, fmax(items[i].bytes, 0), items[i].most};
    qsort(items, (size_t)some, sizeof *items, compare_items);
    for (int i = 0; i < some; i++) {
        double wanted = items[i].bytes * items[i].most, part = wanted > room ? room / wanted : 1;
        work += items[i].work * items[i].most * part;
        room -= wanted * part;
    }
    return work * (1 + ROUNDING);
}

/* On F before anything is given back. */
static double longest_warm_up(const grid *x, int device, double limit) {
    int chunks = x->schedule->chunks;
    for (int c = 0; c < chunks; c++)
        x->items[c] =
            (item){duration_of(x, device, c, PC_PASS_F), taken_of(x, device, c, PC_PASS_F), x->schedule->microbatches};
    return most_work(x->items, chunks, limit);
}

/* On backward passes, and W whose B are done, behind the last F. */
static double longest_cool_down(const grid *x, int device, double limit) {
    int chunks = x->schedule->chunks, count = 0;
    double most = x->schedule->microbatches, all = 0;
    for (int c = 0; c < chunks; c++) {
        double w = x->splits ? duration_of(x, device, c, PC_PASS_W) : 0;
        double of_w = x->splits ? -taken_of(x, device, c, PC_PASS_W) : 0;
        double b = duration_of(x, device, c, backward_of(x)), of_b = -taken_of(x, device, c, backward_of(x));
        x->items[count++] = (item){b + w, of_b + of_w, most};
        if (x->splits) x->items[count++] = (item){w, of_w, most};
        all += (b + w) * most;
    }
    return fmin(all, most_work(x->items, count, limit));
}

static double all_taken(const grid *x, int device) {
    double all = 0;
    for (int c = 0; c < x->schedule->chunks; c++) all += fmax(taken_of(x, device, c, PC_PASS_F), 0);
    return all * x->schedule->microbatches;
}

/* From the start of F of one cell to the end of its backward pass, at the least: the longer of two ways. One goes down
 * its own slice, through those behind it in the last part, and back. The other goes through those behind it in its own
 * part, and down the last slice. */
static pc_time round_trip(const grid *x, int part, int slice) {
    pc_time own = 0, other = 0;
    int end = x->slices - 1, last = x->parts - 1;
    for (int i = part; i <= last; i++) {
        own += time_of(x, PC_PASS_F, i, slice) + time_of(x, backward_of(x), i, slice);
        other += time_of(x, PC_PASS_F, i, end) + time_of(x, backward_of(x), i, end);
        if (i == last) break;
        own += delay_of(x, i, i + 1) + delay_of(x, i + 1, i);
        other += delay_of(x, i, i + 1) + delay_of(x, i + 1, i);
    }
    for (int j = slice; j < end; j++) {
        own += time_of(x, PC_PASS_F, last, j + 1) + time_of(x, backward_of(x), last, j + 1);
        other += time_of(x, PC_PASS_F, part, j) + time_of(x, backward_of(x), part, j);
    }
    return pc_max(own, other);
}

static double time_to_hold(const grid *x, int device, double limit) {
    double held = 0;
    for (int part = device; part < x->parts; part += x->schedule->devices)
        for (int j = 0; j < x->slices; j++) {
            int c = chunk_of(x, part, j);
            double trip = (double)round_trip(x, part, j), w = 0;
            if (x->splits) w = fmax(-taken_of(x, device, c, PC_PASS_W), 0);
            held += fmax(taken_of(x, device, c, PC_PASS_F), 0) * trip;
            if (x->splits) held += w * duration_of(x, device, c, PC_PASS_W);
        }
    return limit > 0 ? held * x->schedule->microbatches / limit * (1 - ROUNDING) : 0;
}

/* ---- the bound ---- */

static double all_work(const grid *x, int device) {
    double work = 0;
    for (int c = 0; c < x->schedule->chunks; c++) {
        work += duration_of(x, device, c, PC_PASS_F) + duration_of(x, device, c, backward_of(x));
        if (x->splits) work += duration_of(x, device, c, PC_PASS_W);
    }
    return work * x->schedule->microbatches;
}

static double least_of(const grid *x, int device, int64_t limit_bytes) {
    ways way = find_ways(x, device);
    double limit = (double)limit_bytes, work = all_work(x, device);
    double starting = fmax((double)way.back - longest_warm_up(x, device, limit), 0);
    double ending = fmax((double)way.out - longest_cool_down(x, device, limit), 0);
    bool holds_all = all_taken(x, device) <= limit;
    double busy = (work + (holds_all ? fmax(starting, ending) : starting + ending)) * (1 - ROUNDING);
    return fmax(fmax(busy, work), fmax((double)way.whole, time_to_hold(x, device, limit)));
}

pc_code pc_slices_least_span(const pc_schedule *schedule, const pc_costs *costs, bool splits, pc_memory_limit limit,
                             pc_time *least_ps, pc_error *error) {
    int slices = pc_placement_slices(schedule->placement, schedule->chunks);
    int parts = pc_placement_parts(schedule->placement, schedule->devices, schedule->chunks);
    size_t cells = (size_t)parts * (size_t)slices;
    grid x = {.schedule = schedule, .costs = costs, .splits = splits, .parts = parts, .slices = slices};
    x.f = pc_alloc(2 * cells, sizeof *x.f);
    x.items = pc_alloc(2 * (size_t)schedule->chunks, sizeof *x.items);
    x.b = x.f ? x.f + cells : NULL;
    double least = 0;
    for (int d = 0; x.f && x.items && d < schedule->devices; d++)
        least = fmax(least, least_of(&x, d, pc_memory_limit_of(limit, d)));
    pc_code code = x.f && x.items ? PC_OK : pc_error_no_memory(error);
    if (!code && least < (double)(INT64_MAX / 2)) *least_ps = (pc_time)ceil(least * (1 - ROUNDING));
    pc_free(x.f);
    pc_free(x.items);
    return code;
}
