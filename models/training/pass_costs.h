/* pass_costs.h: what the passes of one part take on a machine. Private to models/training/. */
#ifndef PC_MODELS_TRAINING_PASS_COSTS_H
#define PC_MODELS_TRAINING_PASS_COSTS_H

#include "models/training/outline.h"

/* Collectives by group, kind and size: a pass has few different ones, and asks for each many times. */
enum { PC_COLLECTIVE_MEMO = 32 };
typedef struct pc_collective_memo {
    const pc_outline *outline;
    int count;
    struct {
        pc_operation_group group;
        pc_operation_kind kind;
        int64_t size_bytes, rows;
        pc_alone alone;
    } known[PC_COLLECTIVE_MEMO];
} pc_collective_memo;

/* Which of the passes a schedule of this generator has. */
bool pc_outline_has_kind(const pc_generator *generator, pc_pass_kind kind);

/* What a pass waits for beside its kernels and collectives: its launches, by the host, or the activations that go to
 * the host in F and come back in the backward pass, whichever take longer. */
double pc_outline_host_s(const pc_outline *outline, const pc_part_cost *part, pc_pass_kind kind, double launch_bound_s);

/* Which passes its schedule has, as far as memory depends on them. */
pc_pass_forms pc_outline_forms(const pc_outline *outline);

/* Fills in `made` for its part: of an outline whose spec, cut, cost, and tp are there. */
pc_code pc_part_cost_make(const pc_outline *outline, pc_collective_memo *memo, pc_part_cost *made, pc_error *error);

bool pc_operation_is_collective(const pc_operation *operation);

/* Of them, those that bring tokens to experts and back. */
bool pc_operation_is_exchange(const pc_operation *operation);

/* Who takes part in it, of an outline whose groups are there; and what it is, alone. */
const pc_group *pc_outline_group(const pc_outline *outline, const pc_operation *collective);
pc_collective_course pc_outline_course(const pc_outline *outline, const pc_operation *collective);

/* How many kernels a collective of the list runs beside, those that follow it; 0 if there are none, or the spec has
 * tensor parallelism's not overlap. Rings always do. */
int pc_operation_beside(const pc_outline *outline, const pc_operations *operations, int number);

/* The part of the GPU's processors that a collective's kernels take from those beside it: of an exchange, the
 * dispatcher's (dispatch.h); of others 0. Below 1. */
double pc_outline_processor_share(const pc_outline *outline, const pc_group *group);

/* What a collective of the list, `seconds` alone, adds to its pass, before the pace: what is left of it beside the
 * kernels that follow, and what they lose; or in pieces beside its product. */
double pc_outline_exposed_s(const pc_outline *outline, const pc_operations *operations, int number, double seconds);

/* Seconds, before the pace, of the kernels that a collective runs beside, which lose that share of their speed while it
 * goes on, `seconds` alone: k + s min(c, k / (1 - s)). */
double pc_outline_beside_s(const pc_outline *outline, const pc_operations *operations, int number, double seconds);

#endif
