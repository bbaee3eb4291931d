/* pass_costs.h: what the passes of one part take on a machine. Private to models/training/. */
#ifndef PC_MODELS_TRAINING_PASS_COSTS_H
#define PC_MODELS_TRAINING_PASS_COSTS_H

#include "models/training/outline.h"

/* Collectives of one group by kind and size: a pass has few different ones, and asks for each many times. */
enum { PC_COLLECTIVE_MEMO = 32 };
typedef struct pc_collective_memo {
    const pc_machine *machine;
    const pc_group *group;
    int count;
    struct {
        pc_collective collective;
        int64_t size_bytes;
        pc_alone alone;
    } known[PC_COLLECTIVE_MEMO];
} pc_collective_memo;

/* Which of the passes a schedule of this generator has. */
bool pc_outline_has_kind(const pc_generator *generator, pc_pass_kind kind);

/* What a pass waits for beside its kernels and collectives: its launches, by the host, or the activations that go to
 * the host in F and come back in the backward pass, whichever take longer. */
double pc_outline_host_s(const pc_outline *outline, const pc_part_cost *part, pc_pass_kind kind, double launch_bound_s);

/* Fills in `made` for its part: of an outline whose spec, cut, cost, and tp are there. */
pc_code pc_part_cost_make(const pc_outline *outline, pc_collective_memo *memo, pc_part_cost *made, pc_error *error);

/* Whether the operation is a collective, and which. */
bool pc_operation_is_collective(const pc_operation *operation, pc_collective *collective);

/* The kernel beside which a collective of the list can run, the one that follows it; NULL if there is none. */
const pc_operation *pc_operation_beside(const pc_operations *operations, int number);

#endif
