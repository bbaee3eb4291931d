/* ZB-1P and ZB-2P as published: the heuristic of 'Zero Bubble Pipeline Parallelism' (Qi et al. 2024, arXiv 2401.10241,
 * section 3.1 and appendix A), in the form in which its authors' fork of Megatron-LM runs it (sail-sg/
 * zero-bubble-pipeline-parallelism, zerobubble/scheduler/zb.py).
 *
 * A run goes through the microbatches in rounds. In the first, every device has an F, some have more of them before the
 * first gradient comes, fewer the further down the pipeline, and then each has its first B. In every later round each
 * device has at most one F, the first device first, and one B, the last device first; W stand in waits, or make room.
 * What W are left come last. Every pass starts as early as it can.
 *
 * Three choices are left open. All eight runs are made, and the first one with the shortest span is kept.
 */
#include "models/schedule/deployed_published.h"

#include "engine/alloc.h"

#include <stdbool.h>
#include <string.h>

#define NO_ARRIVAL INT64_C(-1)

/* What a run does where the heuristic could do either. */
typedef struct zb_choices {
    bool may_idle;     /* F before the first gradient must end by then, and need not just begin */
    bool prefers_b;    /* a device that is far ahead leaves out an F that would keep a gradient waiting */
    bool always_fills; /* a W that takes longer than a wait fills it all the same; or only where the device would idle
                        * more than the worst one does */
} zb_choices;

typedef struct device {
    int64_t added_bytes[PC_PUBLISHED_KINDS], limit_bytes;
    int done[PC_PUBLISHED_KINDS]; /* passes of each kind */
    int early;                    /* F between the first one and the first B */
    bool wants_f;                 /* in this round */
    pc_time start_ps;             /* of the first pass */
    pc_time end_ps;               /* of the last one */
    pc_time idle_ps;              /* between passes */
    int64_t held_bytes;
    uint8_t *order; /* of kinds; the next one's place */
} device;

typedef struct run {
    int device_count, microbatches;
    pc_published_times times;
    zb_choices choices;
    device *devices;
    pc_time *f_end_ps; /* [devices][microbatches] */
    pc_time most_idle_ps;
    bool failed; /* something did not fit */
    pc_published_task *task;
} run;

static pc_time duration(const run *r, pc_pass_kind kind) {
    return r->times.pass_ps[kind];
}

static bool has_room(const device *own, pc_pass_kind kind) {
    return own->added_bytes[kind] <= own->limit_bytes - own->held_bytes;
}

static bool has_w(const device *own) {
    return own->done[PC_PASS_W] < own->done[PC_PASS_B];
}

/* Whether the input of the device's next F has been put. Where a device may have more early F than the one before, it
 * can be that it has not. */
static bool is_fed(const run *r, int d) {
    const device *own = &r->devices[d];
    return d == 0 || own[-1].done[PC_PASS_F] > own->done[PC_PASS_F];
}

/* `arrival`: when its input is there; NO_ARRIVAL where it is from the device itself. */
static void put(run *r, int d, pc_pass_kind kind, pc_time arrival) {
    device *own = &r->devices[d];
    pc_time start = arrival > own->end_ps ? arrival : own->end_ps;
    r->failed = r->failed || !has_room(own, kind) || (kind == PC_PASS_F && !is_fed(r, d));
    if (r->failed) return;
    if (own->done[PC_PASS_F] == 0)
        own->start_ps = start;
    else
        own->idle_ps += start - own->end_ps;
    if (own->idle_ps > r->most_idle_ps) r->most_idle_ps = own->idle_ps;
    own->end_ps = start + duration(r, kind);
    if (kind == PC_PASS_F) r->f_end_ps[(int64_t)d * r->microbatches + own->done[PC_PASS_F]] = own->end_ps;
    if (own->limit_bytes != PC_NO_LIMIT) own->held_bytes += own->added_bytes[kind];
    own->done[kind]++;
    *own->order++ = (uint8_t)kind;
}

static void put_w(run *r, int d) {
    put(r, d, PC_PASS_W, NO_ARRIVAL);
}

static pc_time f_arrival(const run *r, int d) {
    if (d == 0) return NO_ARRIVAL;
    return r->f_end_ps[(int64_t)(d - 1) * r->microbatches + r->devices[d].done[PC_PASS_F]] + r->times.transfer_ps;
}

/* B run up the pipeline without a pass between them: the next device's was its last pass. */
static pc_time b_arrival(const run *r, int d) {
    return d == r->device_count - 1 ? NO_ARRIVAL : r->devices[d + 1].end_ps + r->times.transfer_ps;
}

/* ---- the first round ---- */

/* F of device `d` after its first, before a gradient comes at `gradient`; *end becomes the end of the last. */
static int count_early(const run *r, int d, pc_time gradient, pc_time *end) {
    const device *own = &r->devices[d];
    int64_t room = own->limit_bytes - own->held_bytes, added = own->added_bytes[PC_PASS_F];
    pc_time f = duration(r, PC_PASS_F);
    int count = 0;
    *end = own->end_ps;
    while (1 + count < r->microbatches && added <= room &&
           (r->choices.may_idle ? *end + f <= gradient : *end < gradient)) {
        count++;
        room -= added;
        *end += f;
    }
    return count;
}

/* Going up the pipeline, as its first gradient does. */
static void count_all_early(run *r) {
    pc_time b = duration(r, PC_PASS_B), gradient = r->devices[r->device_count - 1].end_ps + b, end;
    for (int d = r->device_count - 2; d >= 0; d--) {
        gradient += r->times.transfer_ps;
        r->devices[d].early = count_early(r, d, gradient, &end);
        gradient = (end > gradient ? end : gradient) + b;
    }
}

/* Fewer than the device before, but for one that has all microbatches. */
static void make_early_fall(run *r) {
    for (int d = 1; d < r->device_count; d++) {
        device *own = &r->devices[d];
        while (own->early > 0 && own->early >= own[-1].early && 1 + own->early < r->microbatches) own->early--;
    }
}

static void run_first_round(run *r) {
    for (int d = 0; d < r->device_count; d++) put(r, d, PC_PASS_F, f_arrival(r, d));
    if (r->failed) return;
    count_all_early(r);
    make_early_fall(r);
    for (int d = 0; d < r->device_count; d++)
        for (int i = 0; i < r->devices[d].early; i++) put(r, d, PC_PASS_F, f_arrival(r, d));
    for (int d = r->device_count - 1; d >= 0; d--) put(r, d, PC_PASS_B, b_arrival(r, d));
}

/* ---- the other rounds ---- */

/* How long the W take that the next F of the device needs to fit. */
static pc_time time_for_room(const run *r, const device *own) {
    int64_t lacking = own->added_bytes[PC_PASS_F] - (own->limit_bytes - own->held_bytes);
    int count = 0, most = own->done[PC_PASS_B] - own->done[PC_PASS_W];
    for (; lacking > 0 && count < most; count++) lacking += own->added_bytes[PC_PASS_W];
    return count * duration(r, PC_PASS_W);
}

/* Whether the device leaves out its F in this round. It does so only if it has run two F more than the next one. With
 * the F, and the W that make room for it, it would also still be at work when the next one, after an F and a B, has
 * sent a gradient. And it can wait for that without idling more than the worst device. */
static bool leaves_f_out(const run *r, int d) {
    const device *own = &r->devices[d], *next = own + 1;
    if (!r->choices.prefers_b || d == r->device_count - 1 || own->done[PC_PASS_F] < next->done[PC_PASS_F] + 2)
        return false;
    pc_time gradient = next->end_ps + duration(r, PC_PASS_F) + duration(r, PC_PASS_B) + r->times.transfer_ps;
    if (own->end_ps >= gradient) return true;
    if (own->end_ps + duration(r, PC_PASS_F) + time_for_room(r, own) <= gradient) return false;
    return gradient - own->end_ps <= r->most_idle_ps - own->idle_ps;
}

/* A device that has an F in this round wants those after it to have one, too. */
static void choose_f(run *r) {
    bool wants = true;
    for (int d = r->device_count - 1; d >= 0; d--) {
        wants = wants && r->devices[d].done[PC_PASS_F] < r->microbatches && !leaves_f_out(r, d);
        r->devices[d].wants_f = wants;
    }
}

static void make_room(run *r, int d, pc_pass_kind kind) {
    const device *own = &r->devices[d];
    while (!has_room(own, kind) && has_w(own) && !r->failed) put_w(r, d);
}

/* W that end by `arrival`, and perhaps one that does not. */
static void fill_wait(run *r, int d, pc_time arrival) {
    const device *own = &r->devices[d];
    if (arrival == NO_ARRIVAL) return;
    while (has_w(own) && own->end_ps + duration(r, PC_PASS_W) <= arrival && !r->failed) put_w(r, d);
    if (!has_w(own) || own->end_ps >= arrival) return;
    if (r->choices.always_fills || arrival - own->end_ps > r->most_idle_ps - own->idle_ps) put_w(r, d);
}

static void run_f(run *r, int d) {
    make_room(r, d, PC_PASS_F);
    fill_wait(r, d, f_arrival(r, d));
    put(r, d, PC_PASS_F, f_arrival(r, d));
}

/* The first device, when it has run all F, does not leave a W for later. */
static void run_b(run *r, int d) {
    const device *own = &r->devices[d];
    make_room(r, d, PC_PASS_B);
    fill_wait(r, d, b_arrival(r, d));
    while (d == 0 && own->done[PC_PASS_F] == r->microbatches && has_w(own) && !r->failed) put_w(r, d);
    put(r, d, PC_PASS_B, b_arrival(r, d));
}

static void run_round(run *r) {
    choose_f(r);
    for (int d = 0; d < r->device_count; d++)
        if (r->devices[d].wants_f) run_f(r, d);
    for (int d = r->device_count - 1; d >= 0; d--) run_b(r, d);
}

/* ---- a run, and all of them ---- */

static void restart(run *r, zb_choices choices) {
    r->choices = choices;
    r->most_idle_ps = 0;
    r->failed = false;
    for (int d = 0; d < r->device_count; d++) {
        device *own = &r->devices[d], fresh = {.limit_bytes = own->limit_bytes};
        memcpy(fresh.added_bytes, own->added_bytes, sizeof fresh.added_bytes);
        fresh.order = r->task->order + (int64_t)d * PC_PUBLISHED_KINDS * r->microbatches;
        *own = fresh;
    }
}

/* The longest time between a device's first start and its last end; INT64_MAX where something did not fit. */
static pc_time span_of(const run *r) {
    pc_time longest = 0;
    for (int d = 0; d < r->device_count; d++) {
        pc_time span = r->devices[d].end_ps - r->devices[d].start_ps;
        if (span > longest) longest = span;
    }
    return r->failed ? INT64_MAX : longest;
}

static pc_time make_run(run *r, zb_choices choices) {
    restart(r, choices);
    run_first_round(r);
    for (int i = 1; i < r->microbatches && !r->failed; i++) run_round(r);
    for (int d = 0; d < r->device_count; d++)
        while (has_w(&r->devices[d]) && !r->failed) put_w(r, d);
    return span_of(r);
}

static bool make_all(run *r) {
    pc_time shortest = INT64_MAX;
    for (int i = 0; i < 8; i++) {
        pc_time span = make_run(r, (zb_choices){!(i & 4), !(i & 2), !(i & 1)});
        if (span >= shortest) continue;
        shortest = span;
        pc_published_keep(r->task);
    }
    return shortest < INT64_MAX;
}

static void fill_memory(run *r, const pc_published_memory *memory) {
    for (int d = 0; d < r->device_count; d++) {
        device *own = &r->devices[d];
        memcpy(own->added_bytes, memory[d].added_bytes, sizeof own->added_bytes);
        own->limit_bytes =
            memory[d].named_bytes < memory[d].asked_bytes ? memory[d].named_bytes : memory[d].asked_bytes;
    }
}

static pc_code solve(pc_published_task *task, bool *is_solved, pc_error *error) {
    size_t devices = (size_t)task->devices, microbatches = (size_t)task->microbatches;
    run r = {.device_count = task->devices, .microbatches = task->microbatches, .times = task->times, .task = task};
    r.devices = pc_alloc(devices, sizeof *r.devices);
    r.f_end_ps = pc_alloc(devices * microbatches, sizeof *r.f_end_ps);
    pc_code code = r.devices && r.f_end_ps ? PC_OK : pc_error_no_memory(error);
    if (!code) {
        fill_memory(&r, task->memory);
        *is_solved = make_all(&r);
    }
    pc_free(r.f_end_ps);
    pc_free(r.devices);
    return code;
}

static pc_code find(const pc_generator *self, const pc_generate_request *request, pc_schedule *schedule,
                    pc_block *block, pc_error *error) {
    (void)block;
    return pc_published_find(self, request, solve, schedule, error);
}

pc_code pc_published_zb(const pc_generator *self, const pc_generate_request *request, pc_schedule *schedule,
                        pc_error *error) {
    return pc_published_make(self, request, find, schedule, error);
}
