/* costs.h: what passes and transfers cost: time, and activation memory.
 *
 * The numbers are any caller's: measured, modelled, or 1, 1, 1. Time is in picoseconds and memory in bytes; a caller
 * that has other units (pipecast schedule) scales them, and scales back what comes out.
 */
#ifndef PC_MODELS_SCHEDULE_COSTS_H
#define PC_MODELS_SCHEDULE_COSTS_H

#include "engine/error.h"
#include "engine/simtime.h"
#include "models/schedule/schedule.h"

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A time that was not given; a replay that needs it fails with a message. */
#define PC_TIME_NOT_GIVEN INT64_C(-1)

/* How a tensor gets from one stage to the next (activations with F, their gradients with B and BW).
 * DELAY: `delay_ps` after the pass ends, whatever else is on its way; it holds nothing.
 * LINK: `size_bytes` go over the directed link between the two stages: `latency_ps` after the pass ends, and not before
 * what the stage has sent that way earlier is through, at all of `bandwidth_bytes_per_s`.
 * Between two chunks on one stage a transfer is free in both. */
typedef enum pc_transfer_mode { PC_TRANSFER_DELAY, PC_TRANSFER_LINK } pc_transfer_mode;

typedef struct pc_transfer {
    pc_transfer_mode mode;
    pc_time delay_ps;
    pc_time latency_ps;
    double bandwidth_bytes_per_s;
    int64_t size_bytes;
} pc_transfer;

/* Activations that go to the host between F and the backward pass, beside passes, [devices][chunks]. They are in none
 * of the bytes of pc_costs. A device copies out in the order of its F, and back in the order of its backward passes,
 * one after the other each way (copies.h). */
typedef struct pc_copies {
    pc_time *out_ps, *back_ps;
    int64_t *bytes, *b_bytes; /* F takes `bytes`; of them B gives back b_bytes, where W gives the rest */
    int32_t *ahead;           /* passes that a copy back may hide behind: 1 to 3; more hold more */
} pc_copies;

/* What vocabulary parallelism costs beside the passes S and T. The times are of collectives over all stages, which hold
 * neither devices nor links. The broadcast carries the last part's output, behind its F. The exchange behind S carries
 * maxima and sums of the softmax, and with one barrier the input's gradient, too. With two barriers the reduction
 * behind T carries that. */
typedef struct pc_vocab_costs {
    pc_time broadcast_ps, exchange_ps, reduce_ps;
    int64_t held_bytes; /* of a microbatch on every stage, from the start of S to the end of T */
} pc_vocab_costs;

/* Shapes: [devices][chunks] row by row where nothing else is said, duration_ps [devices][chunks][PC_PASS_KINDS]. Owned:
 * pc_costs_free. */
typedef struct pc_costs {
    int devices;
    int chunks;
    pc_time *duration_ps;           /* PC_TIME_NOT_GIVEN where the caller has none; BW is never derived here */
    int64_t *activation_bytes;      /* what F takes, at its start; all of it comes back by the end of W or BW */
    int64_t *activation_b_bytes;    /* of that, what B gives back at its end; W gives the rest */
    int64_t *activation_kept_bytes; /* of that, what F takes where an R follows, which takes the rest at its start */
    bool recomputes_in_b;           /* whether F takes no more than that anyway, and B, which recomputes, takes the rest
                                     * at its start: it lives until W. BW needs no more than F kept. For schedules without
                                     * R */
    bool leaves_gradients;          /* of that: B makes nothing again, and the rest is gradients that wait for W. Then
                                     * limits of names are bytes that F keeps, as if there were no such rest */
    pc_transfer transfer;
    pc_vocab_costs vocab; /* of schedules with S and T; zeros cost nothing */
    /* NULL unless pc_costs_add_hop_delays or pc_costs_add_ready made them. */
    pc_time *hop_delay_ps; /* [devices]; in place of transfer.delay_ps: between d and (d+1) mod p, both ways */
    pc_time *ready_ps;     /* F of this chunk start no earlier than this after the start of the whole */
    /* NULL unless pc_costs_add_pairs made it; then the schedule's pairs run as such. They take this from the start of
     * both passes to the end of both: [devices][chunks of F][chunks of the backward pass][2: of a B, of a BW].
     * PC_TIME_NOT_GIVEN: as one behind the other. Without it a pair is two passes in their order. */
    pc_time *pair_ps;
    /* Likewise, of what the two passes have by themselves, that is but for collectives of data parallelism and what a
     * stage waits for what it sends: what it takes together, and one behind the other. For those who work out pair_ps
     * of passes that take another time than the costs'; the replay does not read them. */
    pc_time *pair_own_ps, *pair_apart_ps;
    int64_t *pair_layer_bytes; /* [devices][chunks]: what F takes of a layer, where the F and the backward pass of a
                                * pair go layer by layer, so that F takes what the other gives back (pc_costs_shared);
                                * -1: each has its own from start to end. For schedules without R */
    pc_copies copies;          /* to the host and back, beside passes; of NULL unless pc_costs_add_copies made them */
} pc_costs;

/* All times PC_TIME_NOT_GIVEN, all bytes 0, a transfer of no time. Sizes as pc_schedule_check_size wants. */
pc_code pc_costs_create(int devices, int chunks, pc_costs *costs, pc_error *error);

/* Makes the array, filled with transfer.delay_ps or with zeros; one that is there already stays. */
pc_code pc_costs_add_hop_delays(pc_costs *costs, pc_error *error);
pc_code pc_costs_add_ready(pc_costs *costs, pc_error *error);
pc_code pc_costs_add_copies(pc_costs *costs, pc_error *error);

/* The same, all PC_TIME_NOT_GIVEN; and where in it stands a pair of the device's. */
pc_code pc_costs_add_pairs(pc_costs *costs, pc_error *error);
static inline int64_t pc_costs_pair_index(const pc_costs *costs, int device, pc_pass f, pc_pass back) {
    int64_t chunks = ((int64_t)device * costs->chunks + f.chunk) * costs->chunks + back.chunk;
    return 2 * chunks + (back.kind == PC_PASS_BW);
}

/* How long the two passes of a pair take together. */
pc_time pc_costs_pair_ps(const pc_costs *costs, int device, pc_pass f, pc_pass back);

/* What the pass at a position keeps its device busy for. In a pair the F is busy as long as both are, and the backward
 * pass behind it not at all. */
pc_time pc_costs_busy_ps(const pc_costs *costs, const pc_schedule *schedule, int device, int64_t position);

/* Frees what the costs own and zeroes them; zeroed ones are fine. */
void pc_costs_free(pc_costs *costs);

/* Index into the arrays of bytes; times PC_PASS_KINDS plus kind, into duration_ps. */
static inline int64_t pc_costs_index(const pc_costs *costs, int device, int chunk) {
    return (int64_t)device * costs->chunks + chunk;
}

static inline pc_time pc_costs_duration(const pc_costs *costs, int device, int chunk, int kind) {
    return costs->duration_ps[pc_costs_index(costs, device, chunk) * PC_PASS_KINDS + kind];
}

/* Of each kind the longest pass over devices and chunks; PC_TIME_NOT_GIVEN where no time is given for the kind. */
void pc_costs_longest(const pc_costs *costs, pc_time longest_ps[PC_PASS_KINDS]);

/* Whether any F takes memory. Where nobody said how large activations are, none does. */
bool pc_costs_have_activations(const pc_costs *costs);

/* PC_ERROR_INPUT where a pass of a kind in `needs` has no time, with `name` before it, and `purpose`, what the times
 * are for, behind it. */
pc_code pc_costs_check_times(const pc_costs *costs, const bool needs[PC_PASS_KINDS], const char *name,
                             const char *purpose, pc_error *error);

/* How long a transfer between two neighbouring devices takes where transfers are delays. */
static inline pc_time pc_costs_delay(const pc_costs *costs, int from, int to) {
    if (!costs->hop_delay_ps) return costs->transfer.delay_ps;
    return costs->hop_delay_ps[to == (from + 1) % costs->devices ? from : to];
}

/* The same where a transfer may be over a link, which it has to itself then: what searches are made for. */
pc_time pc_costs_delay_alone(const pc_costs *costs, int from, int to);

static inline bool pc_costs_have_copies(const pc_costs *costs) {
    return costs->copies.out_ps != NULL;
}

/* How long what `before` made on stage `from` is on its way to `pass` on stage `to`, where one of them is S or T, or
 * waits for them (pc_pass_is_of_vocab). */
static inline pc_time pc_costs_vocab_ps(const pc_costs *costs, pc_pass before, int from, int to) {
    if (before.kind == PC_PASS_S) return costs->vocab.exchange_ps;
    if (before.kind == PC_PASS_T) return costs->vocab.reduce_ps;
    return from == to ? 0 : costs->vocab.broadcast_ps;
}

static inline pc_time pc_costs_ready(const pc_costs *costs, int device, int chunk) {
    return costs->ready_ps ? costs->ready_ps[pc_costs_index(costs, device, chunk)] : 0;
}

/* The bytes that a pass takes when it starts, and gives back when it ends. `is_recomputed`: whether the schedule has an
 * R of this chunk and microbatch; only an F asks (pc_pass_is_recomputed, pc_schedule_recomputes). */
static inline int64_t pc_costs_taken(const pc_costs *costs, int device, pc_pass pass, bool is_recomputed) {
    int64_t i = pc_costs_index(costs, device, pass.chunk);
    switch (pass.kind) {
    case PC_PASS_F:
        return is_recomputed || costs->recomputes_in_b ? costs->activation_kept_bytes[i] : costs->activation_bytes[i];
    case PC_PASS_R:
        return costs->activation_bytes[i] - costs->activation_kept_bytes[i];
    case PC_PASS_B:
        return costs->recomputes_in_b ? costs->activation_bytes[i] - costs->activation_kept_bytes[i] : 0;
    case PC_PASS_S:
        return costs->vocab.held_bytes;
    default:
        return 0;
    }
}

static inline int64_t pc_costs_given(const pc_costs *costs, int device, pc_pass pass) {
    int64_t i = pc_costs_index(costs, device, pass.chunk);
    switch (pass.kind) {
    case PC_PASS_B:
        return costs->activation_b_bytes[i];
    case PC_PASS_W:
        return costs->activation_bytes[i] - costs->activation_b_bytes[i];
    case PC_PASS_BW:
        return costs->recomputes_in_b ? costs->activation_kept_bytes[i] : costs->activation_bytes[i];
    case PC_PASS_T:
        return costs->vocab.held_bytes;
    default:
        return 0;
    }
}

/* Of what the pair with the pass at the position in it takes, what its backward pass has given back before: all but a
 * layer, of whichever takes less. 0 of other passes. */
static inline int64_t pc_costs_shared(const pc_costs *costs, const pc_schedule *schedule, int device,
                                      int64_t position) {
    if (!costs->pair_ps || !schedule->pairs) return 0;
    int64_t at = pc_schedule_is_second(schedule, position) ? position - 1 : position;
    if (!schedule->pairs[at]) return 0;
    const pc_pass *f = &schedule->passes[at];
    int64_t layer = costs->pair_layer_bytes[pc_costs_index(costs, device, f->chunk)];
    int64_t taken = pc_costs_taken(costs, device, *f, false), given = pc_costs_given(costs, device, f[1]);
    int64_t both = taken < given ? taken : given;
    return layer < 0 || both < layer ? 0 : both - layer;
}

/* As pc_costs_taken and pc_costs_given, by position: less what the passes of a pair share. */
static inline int64_t pc_costs_taken_at(const pc_costs *costs, const pc_schedule *schedule, int device,
                                        int64_t position, bool is_recomputed) {
    int64_t taken = pc_costs_taken(costs, device, schedule->passes[position], is_recomputed);
    bool is_first = pc_schedule_pairs_at(schedule, position);
    return is_first ? taken - pc_costs_shared(costs, schedule, device, position) : taken;
}
static inline int64_t pc_costs_given_at(const pc_costs *costs, const pc_schedule *schedule, int device,
                                        int64_t position) {
    int64_t given = pc_costs_given(costs, device, schedule->passes[position]);
    bool is_second = pc_schedule_is_second(schedule, position);
    return is_second ? given - pc_costs_shared(costs, schedule, device, position) : given;
}

#ifdef __cplusplus
}
#endif
#endif
