/* bounder.h: what an iteration takes at least, in time and in memory, without its schedule. Private to models/planner/.
 *
 * Both bounds come from the iteration's own outline (models/training/outline.h), in which every pass, transfer and
 * collective has the time that the simulation will give it; what is bounded is only how they come to lie beside each
 * other. The formulas stand with the functions, in bound_memory.c, bound_time.c and
 * bound_close.c.
 */
#ifndef PC_MODELS_PLANNER_BOUNDER_H
#define PC_MODELS_PLANNER_BOUNDER_H

#include "models/planner/held.h"
#include "models/planner/planner.h"
#include "models/schedule/timing.h"
#include "models/training/outline.h"
#include "models/training/outline_memo.h"

/* A part of the model on its stage: what its passes and its collectives take, picoseconds. */
typedef struct plan_cell {
    int device, chunk, sort;      /* sort: of the outline's part costs */
    int64_t microbatches;         /* that go through it */
    pc_time f, r, back, w;        /* back: B or BW; 0 if the schedule has no such pass. If it has both, the shorter
                                   * one, and w what either way takes at least beside it */
    pc_time back_most, last_most; /* the longest backward pass, and the longest that a microbatch's last one can be */
    pc_time delay_down, delay_up; /* of a transfer to the next part, and of one from there */
    pc_time ready;                /* no F before it */
    int32_t buckets;
    pc_time reduce;      /* of a bucket of gradients behind the passes; 0: none */
    pc_time before_last; /* of a stage's first part: what its last backward pass has before it, itself too;
                          * -1 of others */
    pc_time f_end;       /* no F of this part ends before */
    pc_time back_start;  /* no backward pass of this part starts before */
} plan_cell;

/* A thread's room for bounding. Zeroed is empty. */
typedef struct plan_bounder {
    pc_outline_memo *memo; /* for one base; NULL: none yet */
    int memo_base;
    const pc_outline *taken; /* the outline at work; borrowed, and not looked into: it may be gone */
    bool has_pairs; /* of the outline at work: its schedule may run passes together, and they share memory then */
    plan_held_store held_store;
    const plan_held *held; /* of the outline at work; NULL if its schedule searches */
    plan_cell *cells;      /* in the order of parts; of two replicas one after the other */
    int cell_room;
    pc_time *stage;       /* three numbers a stage */
    double *under_way_ps; /* of a stage's microbatches, from F to the end of the backward pass, all together */
    int stage_room;
    pc_time *span_ps;    /* of each stage, at least (plan_bound_spans); NULL: nobody asked. Owned */
    pc_time *end_ps;     /* of each stage's passes, at least (plan_bound_order); likewise, with the next in one block */
    pc_time *reduced_ps; /* when its gradients are reduced, at least */
    pc_timing *timing;
    struct plan_twin *twin; /* bound_twin.h; NULL: none yet. Owned */
} plan_bounder;
void plan_bounder_free(plan_bounder *bounder);

/* Makes the outline of a spec of a base, and takes it up: finds what its order holds, and where its parts are. As
 * pc_outline_make. */
pc_code plan_bounder_outline(plan_bounder *bounder, const pc_plan_space *space, int base, const pc_iteration_spec *spec,
                             pc_outline *outline, pc_error *error);

/* The same of an outline that is there (devices 0: none is) for a spec that differed from this one in its state and its
 * overlaps alone, as pc_outline_can_restate says. Failed, there is none. */
pc_code plan_bounder_restate(plan_bounder *bounder, const pc_plan_space *space, int base, const pc_iteration_spec *spec,
                             pc_outline *outline, pc_error *error);

/* Bytes on the fullest GPU, at least. Of the outline taken up last. */
int64_t plan_bound_memory(const plan_bounder *bounder, const pc_outline *outline);

/* Whether state alone is more than the hosts' memory, of the outline taken up last. */
bool plan_exceeds_host(const plan_bounder *bounder, const pc_outline *outline);

/* Finds the spans that orders of a schedule that searches have at least: pc_generator_least_spans, within the room that
 * there is. It is for the outline taken up last. Until the next one is, bounds of scope ONE know these spans. That
 * takes long: it is for who would otherwise search. */
pc_code plan_bound_spans(plan_bounder *bounder, const pc_outline *outline, bool is_close, pc_error *error);

/* Likewise of a schedule whose order is known: times its passes as if nothing met on links. It does nothing where that
 * may not be a bound. */
pc_code plan_bound_order(plan_bounder *bounder, const pc_outline *outline, pc_error *error);

/* For what the bound on time is to hold. ONE: the outline's spec with the overlaps that it has now. OVERLAPS: it with
 * any overlaps of gradients, parameters and transfers; an outline is that of all of them. SHAPE: any overlaps and any
 * order of ranks; kernels alone, with nothing over links. */
typedef enum plan_scope { SCOPE_ONE, SCOPE_OVERLAPS, SCOPE_SHAPE } plan_scope;

/* Whether it is an iteration over flows; with all overlaps what meets with some meets, too. And what a transfer over
 * flows takes at least that takes so long alone. */
bool plan_runs_flows(const pc_outline *outline, plan_scope scope);
pc_time plan_shave(pc_time time);

/* The iteration's time, at least, of the outline taken up last. PC_ERROR_INPUT if something takes too long to be
 * counted. */
pc_code plan_bound_time(plan_bounder *bounder, const pc_outline *outline, plan_scope scope, pc_time *bound_ps,
                        pc_error *error);

#endif
