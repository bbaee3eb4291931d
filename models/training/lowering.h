/* lowering.h: an iteration on its way to an engine program; for lower.c and lower_*.c only.
 *
 * Positions are those of schedule->passes. What is by replica and position, or by replica and bucket, has a row a
 * replica. A place is a stage of a replica (lanes.h); processors and memories are numbered as places are.
 */
#ifndef PC_MODELS_TRAINING_LOWERING_H
#define PC_MODELS_TRAINING_LOWERING_H

#include "models/schedule/copies.h"
#include "models/schedule/dependencies.h"
#include "models/training/lanes.h"
#include "models/training/lower.h"
#include "models/training/outline_pairs.h"
#include "models/training/recipe.h"

/* What a unit's collectives send, of a chunk's root, of its units and of the one that differs. */
enum { PC_UNIT_ROOT, PC_UNIT_EACH, PC_UNIT_REST, PC_UNIT_SIZES };
typedef struct pc_unit_sendings {
    struct {
        pc_sendings gather, reduce, replicate;
    } of[PC_UNIT_SIZES];
} pc_unit_sendings;

/* Where a task stands in a pass: the first one takes the pass's memory, the last one gives. */
typedef enum piece { PIECE, LAST_PIECE } piece;

typedef struct lowering {
    const pc_outline *outline;
    const pc_schedule *schedule;
    pc_flows_spec how;
    int64_t passes;
    pc_costs costs; /* over flows without transfers */
    pc_pass_index index;
    pc_program *program;
    pc_lanes lanes;
    pc_recipe *recipes;      /* [sorts][PC_PASS_KINDS], where granularity is operations; but of no times of their own */
    pc_pair_plan *pairs;     /* [sorts][sorts]: of F and of the backward pass; made when they are needed */
    pc_sendings **sendings;  /* of each recipe's steps, as far as they are collectives */
    pc_unit_sendings *units; /* [devices][chunks], where ZeRO 3's units are flows; NULL: they are not */
    int32_t *first, *last;   /* a pass's tasks on its processor, by replica and position */
    int32_t *leaves;  /* with which what it sends to another stage can go: the last, but where it waits for that */
    int32_t *message; /* with which what it waits for from another stage is there, but for the gathering */
    int32_t *sent;    /* with which what it sends to another stage is there */
    int32_t *waiter;  /* with which its processor has waited for what it sent; PC_NO_TASK: the next pass waits, or
                         nobody does; NULL: nobody ever does */
    int32_t *sent_to; /* which stage, by position */
    int32_t *first_f, *last_back; /* [devices][chunks]: positions of the first F, of the last pass with gradients */
    int64_t *bucket;              /* [devices][chunks]: where the chunk's buckets begin in the two that follow */
    int32_t *gathered;            /* the tasks with which a bucket of parameters is there, in all replicas */
    int32_t *reducible;           /* by replica: with which a bucket of gradients can be sent */
    int32_t *stream;              /* [devices]: the last task of the stage's collectives, in all replicas */
    int32_t *sender; /* [places][2]: processors that send, through NICs and into the domain; or PC_NO_TASK */
    int32_t *afters; /* [replicas]: what a collective waits for */
    int32_t *ended;  /* [devices]: with which the stage has its gradients, and all that comes before its step */
    /* Where activations go to the host; NULL elsewhere. */
    int32_t *copied_out; /* by replica and position: the task with which those of an F are there; or PC_NO_TASK */
    pc_copy_plan copy_plan;
    int32_t copier;           /* the first of the processors that copy: two a place, out and back */
    int32_t *step, *overhead; /* [places]: the optimizer's step; the constant, or PC_NO_TASK */
    /* Of the pass at work: its tasks on the processor, and how much of its time is over with each; what it takes and
     * gives. */
    int32_t *spine;
    pc_time *over_ps;
    int64_t spine_count, spine_room;
    int64_t take_bytes, give_bytes;
    bool goes_on; /* whether it is the second of a pair, which no other pass comes before */
    pc_error *error;
} lowering;

static inline int64_t lowering_cell(const lowering *lowered, int device, int chunk) {
    return (int64_t)device * lowered->outline->chunks + chunk;
}

static inline int lowering_place(const lowering *lowered, int replica, int device) {
    return replica * lowered->outline->devices + device;
}

static inline int64_t lowering_row(const lowering *lowered, int replica, int64_t position) {
    return replica * lowered->passes + position;
}

static inline int64_t lowering_buckets(const lowering *lowered) {
    return lowered->bucket[(int64_t)lowered->outline->devices * lowered->outline->chunks];
}

static inline pc_code lowering_add_edge(lowering *lowered, int32_t from, int32_t to, pc_time delay_ps) {
    return from == PC_NO_TASK ? PC_OK : pc_program_add_edge(lowered->program, from, to, delay_ps, lowered->error);
}

/* With which a pass is over for its stage: its last task, or the one that has waited for what it sent. */
static inline int32_t lowering_over(const lowering *lowered, int64_t row) {
    bool waits = lowered->waiter && lowered->waiter[row] != PC_NO_TASK;
    return waits ? lowered->waiter[row] : lowered->last[row];
}

/* Whether the pass is of a pair that runs as such: the first one of it, whose tasks are both, or the second one, a task
 * of no time behind them. */
static inline bool lowering_begins_pair(const lowering *lowered, int64_t position) {
    return lowered->costs.pair_ps && pc_schedule_pairs_at(lowered->schedule, position);
}
static inline bool lowering_ends_pair(const lowering *lowered, int64_t position) {
    return lowered->costs.pair_ps && pc_schedule_is_second(lowered->schedule, position);
}

/* Until when the stage's own work is held back. */
static inline pc_time lowering_held_ps(const lowering *lowered, int device) {
    return device == lowered->how.held_device ? lowered->how.held_ps : 0;
}

/* By closed costs: how long a pass takes in a replica, what it waits for with it; how long what it sends is on its way,
 * all in all; when F of a chunk may start. */
pc_time lowering_duration_ps(const lowering *lowered, int replica, int device, int64_t position);
pc_time lowering_message_ps(const lowering *lowered, int replica, int device, int64_t position, int to);
pc_time lowering_ready_ps(const lowering *lowered, int replica, int device, int chunk);

/* Where stages wait for what they send: the other message of the pair with the pass that sends one. Nobody has either
 * before both are through (pc_outline_pair_wait_ps). Writes the task with which that one is over, and how much later it
 * is there; PC_NO_TASK where there is none. */
void lowering_find_mate(const lowering *lowered, int replica, int device, int64_t position, int32_t *task,
                        pc_time *later_ps);

/* lower_passes.c: what a stage's processor does in a replica. */
pc_code lowering_add_passes(lowering *lowered, int replica, int device);

/* Adds a task on the stage's processor to the spine of the pass at work, behind `after` too. */
pc_code lowering_add_to_spine(lowering *lowered, int place, pc_time duration_ps, int32_t after, piece which);

/* By operations, over a closed network: a collective of a pass, so long after its beginning, for which nothing waits.
 */
pc_code lowering_add_tensor_flow(lowering *lowered, int place, pc_pass pass, const pc_sendings *sendings,
                                 double seconds);

/* lower_pairs.c: by operations, the two passes of a pair, the first of which is at this position and lasts so long
 * alone: over flows its tasks; over a closed network the flows beside them. */
pc_code lowering_add_pair(lowering *lowered, int place, int64_t position, pc_time duration_ps);
pc_code lowering_add_pair_beside(lowering *lowered, int place, int64_t position);

/* lower_units.c: ZeRO 3's units, where a pass has its gathers and reductions as flows beside its kernels. Of passes
 * whose times are given, of several replicas, and by operations they are part of the pass. */
pc_code lowering_make_units(lowering *lowered);
bool lowering_has_units(const lowering *lowered, int64_t position);
pc_code lowering_add_units(lowering *lowered, int device, pc_pass pass, piece last);
/* lower_copies.c: copies between the GPUs and their hosts: what they run on; what a pass takes and gives of memory
 * beside what costs say; and what goes behind a pass, or comes before it. */
pc_code lowering_add_copiers(lowering *lowered);
void lowering_add_copied_bytes(lowering *lowered, int device, pc_pass pass);
pc_code lowering_add_copies(lowering *lowered, int replica, int device, int64_t position);

/* lower_traffic.c: collectives of data parallelism before and behind the passes; messages; and what keeps their order.
 */
pc_code lowering_add_gathers(lowering *lowered, int device);
pc_code lowering_add_reductions(lowering *lowered, int device);
pc_code lowering_add_transfers(lowering *lowered, int replica);

/* lower_tail.c: from each stage's last pass and gradient to the end of the iteration. */
pc_code lowering_add_tail(lowering *lowered);

/* A task that needs nothing, behind what it is to wait for: nothing yet. */
pc_code lowering_add_meeting(lowering *lowered, int32_t *task);

/* A collective of a stage in every replica, which begins when `before` and all of `afters` [replicas] are over, and
 * ends in all at once, with *done. From each replica's stage to its stage `to`. It could go with the last of `afters`;
 * where that is NULL, with lanes.now.ready_task. */
pc_code lowering_add_collective(lowering *lowered, int device, int to, const pc_sendings *sendings, pc_after before,
                                const int32_t *afters, int32_t *done);

/* lower_result.c: what came of it. */
pc_code lowering_read(const lowering *lowered, const pc_simulation_result *found, pc_flows_result *result);

/* lower_trace.c: what the engine saw. */
pc_code lowering_trace(const lowering *lowered, const pc_simulation_result *found, pc_engine_trace *trace);

#endif
