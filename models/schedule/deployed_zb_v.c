/* ZB-V as published: the heuristic of the authors' fork of Megatron-LM (sail-sg/zero-bubble-pipeline-parallelism,
 * zerobubble/scheduler/zbv.py) for the V-shaped schedule of 'Pipeline Parallelism with Controllable Memory' (Qi et al.
 * 2024, arXiv 2405.15362), which runs it as V-ZB.
 *
 * A microbatch goes down the pipeline and up again, F on both ways, and then the same again with B: four legs. A run
 * first gives the first devices F of the first leg while they wait for the second, then all devices F of both legs
 * until each has as many as the one before. In every round after that a device has one B and at most one F, of the one
 * leg or the other; W stand in waits, or make room. What W are left come last.
 *
 * Two choices are left open, and each of the four runs is made again, with the idle times of the one before as what its
 * devices may idle, as long as the worst of them falls. The first run with the least is kept.
 */
#include "models/schedule/deployed_published.h"

#include "engine/alloc.h"

#include <stdbool.h>

#define NO_ARRIVAL INT64_C(-1)

/* Even ones go down, odd ones up. */
typedef enum v_leg { F_DOWN, F_UP, B_DOWN, B_UP, LEGS } v_leg;

static pc_pass_kind kind_of(v_leg leg) {
    return leg < B_DOWN ? PC_PASS_F : PC_PASS_B;
}

static int chunk_of(v_leg leg) {
    return leg < B_DOWN ? (int)leg : B_UP - (int)leg;
}

typedef struct device {
    int done[LEGS];
    int done_w;        /* of the B in their order */
    pc_time end_ps;    /* of the last pass */
    pc_time idle_ps;   /* between passes */
    pc_time spared_ps; /* how much less than the worst it idled in the run before; 0 in a first one */
    int64_t held_bytes;
    uint8_t *order;    /* of types, kind * 2 + chunk; the next one's place */
    uint8_t *b_chunks; /* the chunk of each B that it has run */
} device;

typedef struct run {
    int device_count, microbatches;
    pc_published_times times;
    int64_t added_bytes[PC_PUBLISHED_KINDS], limit_bytes; /* of any device */
    bool fills_f, fills_b_down; /* whether a W may delay such a pass where the device would idle more than the worst */
    device *devices;
    pc_time *end_ps; /* [devices][legs][microbatches] */
    pc_time most_idle_ps;
    bool failed;       /* something did not fit, or was to run before its input */
    uint8_t *b_chunks; /* [devices][2 * microbatches] */
    v_leg *chosen;     /* [devices] */
    pc_published_task *task;
} run;

static pc_time *leg_ends(const run *r, int d, v_leg leg) {
    return r->end_ps + ((int64_t)d * LEGS + leg) * r->microbatches;
}

static bool has_room(const run *r, const device *own, pc_pass_kind kind) {
    return r->added_bytes[kind] <= r->limit_bytes - own->held_bytes;
}

static bool has_w(const device *own) {
    return own->done_w < own->done[B_DOWN] + own->done[B_UP];
}

static void put(run *r, int d, pc_pass_kind kind, int chunk, pc_time arrival) {
    device *own = &r->devices[d];
    pc_time start = arrival > own->end_ps ? arrival : own->end_ps;
    if (own->done[F_DOWN] > 0) own->idle_ps += start - own->end_ps;
    if (own->idle_ps > r->most_idle_ps) r->most_idle_ps = own->idle_ps;
    r->failed = r->failed || !has_room(r, own, kind);
    if (r->failed) return;
    own->end_ps = start + r->times.pass_ps[kind];
    if (r->limit_bytes != PC_NO_LIMIT) own->held_bytes += r->added_bytes[kind];
    *own->order++ = (uint8_t)(kind * 2 + chunk);
}

static void put_w(run *r, int d) {
    device *own = &r->devices[d];
    int chunk = own->b_chunks[own->done_w++];
    put(r, d, PC_PASS_W, chunk, NO_ARRIVAL);
}

/* The device that the leg comes from; -1 where it begins or turns on this one. */
static int sender_of(const run *r, int d, v_leg leg) {
    if (leg % 2 == 0) return d - 1;
    return d + 1 < r->device_count ? d + 1 : -1;
}

/* Whether the input of the device's next pass of the leg has been put. */
static bool is_fed(const run *r, int d, v_leg leg) {
    int sender = sender_of(r, d, leg), next = r->devices[d].done[leg];
    if (leg > 0 && r->devices[d].done[leg - 1] <= next) return false;
    return next < r->microbatches && (sender < 0 || r->devices[sender].done[leg] > next);
}

/* When it is there; NO_ARRIVAL where it is from the device itself. It must be fed. */
static pc_time arrival_of(const run *r, int d, v_leg leg) {
    int sender = sender_of(r, d, leg);
    return sender < 0 ? NO_ARRIVAL : leg_ends(r, sender, leg)[r->devices[d].done[leg]] + r->times.transfer_ps;
}

static void put_leg(run *r, int d, v_leg leg) {
    device *own = &r->devices[d];
    r->failed = r->failed || !is_fed(r, d, leg);
    if (r->failed) return;
    put(r, d, kind_of(leg), chunk_of(leg), arrival_of(r, d, leg));
    if (kind_of(leg) == PC_PASS_B) own->b_chunks[own->done[B_DOWN] + own->done[B_UP]] = (uint8_t)chunk_of(leg);
    leg_ends(r, d, leg)[own->done[leg]++] = own->end_ps;
}

/* ---- the F before the first B ---- */

/* How many chunks more the device can hold. */
static int64_t count_room(const run *r, const device *own) {
    int64_t each = r->added_bytes[PC_PASS_F];
    return each == 0 ? INT64_MAX : (r->limit_bytes - own->held_bytes) / each;
}

/* While device `d` waits for the first F on its way up, it and all before it have further ones on their way down, two
 * chunks of room a device kept for what is to come. */
static void fill_first_wait(run *r, int d) {
    const device *own = &r->devices[d];
    pc_time arrival = arrival_of(r, d, F_UP), f = r->times.pass_ps[PC_PASS_F];
    while (!r->failed && count_room(r, own) >= 2 + 2 * d && own->end_ps + f <= arrival &&
           own->done[F_DOWN] < r->microbatches)
        for (int i = 0; i <= d; i++) put_leg(r, i, F_DOWN);
}

static void run_first_f(run *r) {
    for (int d = 0; d < r->device_count; d++) put_leg(r, d, F_DOWN);
    for (int d = r->device_count - 1; d >= 0 && !r->failed; d--) {
        if (d < r->device_count - 1) fill_first_wait(r, d);
        put_leg(r, d, F_UP);
    }
}

static int count_f(const device *own) {
    return own->done[F_DOWN] + own->done[F_UP];
}

static bool lags(const run *r, int d) {
    const device *own = &r->devices[d], *before = own - 1;
    return count_f(own) < count_f(before) ||
           (own->done[F_UP] <= before->done[F_UP] && before->done[F_UP] < r->microbatches);
}

/* Going down, a device that lags behind the one before has F of either leg in turn, and all after it have them, too,
 * the last first. */
static void even_out_f(run *r) {
    v_leg turn = F_DOWN;
    for (int d = 1; d < r->device_count; d++)
        for (; !r->failed && lags(r, d); turn = turn == F_DOWN ? F_UP : F_DOWN)
            for (int i = r->device_count - 1; i >= d; i--)
                if (r->devices[i].done[turn] < r->microbatches) put_leg(r, i, turn);
}

/* ---- rounds ---- */

static void make_room(run *r, int d, pc_pass_kind kind) {
    const device *own = &r->devices[d];
    while (!r->failed && !has_room(r, own, kind) && has_w(own)) put_w(r, d);
}

/* How much longer the device may idle. */
static pc_time slack_of(const run *r, int d) {
    const device *own = &r->devices[d];
    pc_time most = r->most_idle_ps > own->spared_ps ? r->most_idle_ps : own->spared_ps;
    return most - own->idle_ps;
}

static bool is_delayed_by_w(const run *r, v_leg leg) {
    if (leg == B_UP) return true;
    return leg == B_DOWN ? r->fills_b_down : r->fills_f;
}

/* W that end before the input of the leg is there, and one more that does not, where the device would idle for longer
 * than it may. */
static void fill_wait(run *r, int d, v_leg leg) {
    const device *own = &r->devices[d];
    pc_time arrival = arrival_of(r, d, leg), w = r->times.pass_ps[PC_PASS_W];
    if (arrival == NO_ARRIVAL) return;
    while (!r->failed && has_w(own) && own->end_ps + w <= arrival) put_w(r, d);
    if (has_w(own) && is_delayed_by_w(r, leg) && arrival - own->end_ps > slack_of(r, d)) put_w(r, d);
}

/* B go down until they are ahead of those that go up, and go up as soon as one can. */
static v_leg choose_b(const run *r, int d) {
    const device *own = &r->devices[d];
    if (own->done[B_UP] >= own->done[B_DOWN]) return B_DOWN;
    if (d == r->device_count - 1 || own->done[B_DOWN] >= r->microbatches) return B_UP;
    return own[1].done[B_UP] > own->done[B_UP] ? B_UP : B_DOWN;
}

/* The same for F; LEGS where there is none that can. */
static v_leg choose_f(const run *r, int d) {
    const device *own = &r->devices[d];
    if (own->done[F_UP] >= r->microbatches) return LEGS;
    if (own->done[F_UP] >= own->done[F_DOWN]) return F_DOWN;
    if (d == r->device_count - 1 || own[1].done[F_UP] > own->done[F_UP]) return F_UP;
    return is_fed(r, d, F_DOWN) ? F_DOWN : LEGS;
}

static void run_leg(run *r, int d, v_leg leg) {
    r->failed = r->failed || !is_fed(r, d, leg);
    if (r->failed) return;
    fill_wait(r, d, leg);
    put_leg(r, d, leg);
}

/* Those that go up first, the last device first; then those that go down. */
static void run_all_b(run *r) {
    v_leg *chosen = r->chosen;
    for (int d = 0; d < r->device_count; d++) make_room(r, d, PC_PASS_B);
    for (int d = 0; d < r->device_count; d++) chosen[d] = choose_b(r, d);
    for (int d = r->device_count - 1; d >= 0; d--)
        if (chosen[d] == B_UP) run_leg(r, d, B_UP);
    for (int d = 0; d < r->device_count; d++)
        if (chosen[d] == B_DOWN) run_leg(r, d, B_DOWN);
}

static void run_all_f(run *r) {
    for (int d = 0; d < r->device_count; d++) {
        v_leg leg = choose_f(r, d);
        if (leg == LEGS) continue;
        make_room(r, d, PC_PASS_F);
        run_leg(r, d, leg);
    }
}

/* ---- a run, and all of them ---- */

static void restart(run *r) {
    r->most_idle_ps = 0;
    r->failed = false;
    for (int d = 0; d < r->device_count; d++)
        r->devices[d] = (device){.spared_ps = r->devices[d].spared_ps,
                                 .order = r->task->order + (int64_t)d * PC_PUBLISHED_TYPES_MAX * r->microbatches,
                                 .b_chunks = r->b_chunks + (int64_t)d * 2 * r->microbatches};
}

/* The idle time of the worst device; INT64_MAX where something did not fit. A run whose worst device idles `enough` is
 * of no use, and ends there: it idles no less later on. */
static pc_time make_run(run *r, pc_time enough) {
    restart(r);
    run_first_f(r);
    even_out_f(r);
    for (int i = 0; i < 2 * r->microbatches && !r->failed && r->most_idle_ps < enough; i++) {
        run_all_b(r);
        run_all_f(r);
    }
    for (int d = 0; d < r->device_count; d++)
        while (!r->failed && has_w(&r->devices[d])) put_w(r, d);
    return r->failed ? INT64_MAX : r->most_idle_ps;
}

/* One run after the other, as long as the worst device idles less. *least falls with them. */
static void make_chain(run *r, pc_time *least) {
    pc_time last = INT64_MAX, idle;
    for (int d = 0; d < r->device_count; d++) r->devices[d].spared_ps = 0;
    while ((idle = make_run(r, last)) < last) {
        last = idle;
        for (int d = 0; d < r->device_count; d++) r->devices[d].spared_ps = idle - r->devices[d].idle_ps;
        if (idle >= *least) continue;
        *least = idle;
        pc_published_keep(r->task);
    }
}

static bool make_all(run *r) {
    pc_time least = INT64_MAX;
    for (int i = 0; i < 4; i++) {
        r->fills_b_down = !(i & 2);
        r->fills_f = !(i & 1);
        make_chain(r, &least);
    }
    return least < INT64_MAX;
}

/* The generator knows one device: what any of them holds at most, and what none has less room for. The name's limit is
 * 2p chunks of that. */
static void fill_memory(run *r, const pc_published_memory *memory) {
    int64_t before_b = 0, after_b = 0, limit = PC_NO_LIMIT, named;
    for (int d = 0; d < r->device_count; d++) {
        if (memory[d].added_bytes[PC_PASS_F] > before_b) before_b = memory[d].added_bytes[PC_PASS_F];
        if (-memory[d].added_bytes[PC_PASS_W] > after_b) after_b = -memory[d].added_bytes[PC_PASS_W];
        if (memory[d].asked_bytes < limit) limit = memory[d].asked_bytes;
    }
    if (!__builtin_mul_overflow(before_b, 2 * (int64_t)r->device_count, &named) && named < limit) limit = named;
    r->added_bytes[PC_PASS_F] = before_b;
    r->added_bytes[PC_PASS_B] = after_b - before_b;
    r->added_bytes[PC_PASS_W] = -after_b;
    r->limit_bytes = limit;
}

static pc_code solve(pc_published_task *task, bool *is_solved, pc_error *error) {
    size_t devices = (size_t)task->devices, microbatches = (size_t)task->microbatches;
    run r = {.device_count = task->devices, .microbatches = task->microbatches, .times = task->times, .task = task};
    r.devices = pc_alloc(devices, sizeof *r.devices);
    r.end_ps = pc_alloc(devices * microbatches, LEGS * sizeof *r.end_ps);
    r.b_chunks = pc_alloc(devices * microbatches, 2);
    r.chosen = pc_alloc(devices, sizeof *r.chosen);
    pc_code code = r.devices && r.end_ps && r.b_chunks && r.chosen ? PC_OK : pc_error_no_memory(error);
    if (!code) {
        fill_memory(&r, task->memory);
        *is_solved = make_all(&r);
    }
    pc_free(r.chosen);
    pc_free(r.b_chunks);
    pc_free(r.end_ps);
    pc_free(r.devices);
    return code;
}

static pc_code find(const pc_generator *self, const pc_generate_request *request, pc_schedule *schedule,
                    pc_block *block, pc_error *error) {
    (void)block;
    return pc_published_find(self, request, solve, schedule, error);
}

pc_code pc_published_zb_v(const pc_generator *self, const pc_generate_request *request, pc_schedule *schedule,
                          pc_error *error) {
    return pc_published_make(self, request, find, schedule, error);
}
