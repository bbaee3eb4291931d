/* units.h: ZeRO 3 as torch's fully_shard runs it: a pass as units, whose parameters are gathered ahead of their kernels
 * and whose gradients are reduced behind them. Private to models/training/.
 *
 * Sources: torch/distributed/fsdp/_fully_shard (_fsdp_param_group.py, _fsdp_collectives.py, _fsdp_state.py) and
 * torch/distributed/fsdp/_runtime_utils.py, _limiter_utils.py of FSDP1.
 *
 * A pass begins with nothing gathered but what is kept, and is over when its reductions are: the root waits for both
 * (_root_pre_forward, _root_post_backward_final_callback). Gathers and reductions are of one communicator, which runs
 * them in the order in which the host issues them. Behind the kernels of unit j come its reduction, then the gather of
 * unit j + 1 + prefetch, which takes the memory that unit j gives back. With c kernels, g gathers, r reductions, k what
 * kernels of the reductions' stream take before them, p prefetched units and W the wire:
 *
 *   G(j) = max(W, C(j-1-p)) + g(j)     C(j) = max(C(j-1), G(j)) + c(j)     R(j) = max(W, C(j) + k(j)) + r(j)
 *
 * With hybrid sharding, A(j) = max(A(j-1), R(j)) + a(j) over groups follows, on a wire of its own where the shards'
 * collectives stay in a domain and these do not; otherwise on the same wire. Kernels that run while either wire is
 * busy, or k is under way, get the part (1 - slowdown) of their speed.
 */
#ifndef PC_MODELS_TRAINING_UNITS_H
#define PC_MODELS_TRAINING_UNITS_H

#include "engine/simtime.h"

#include <stdbool.h>

enum { PC_PREFETCH_MAX = 16 };

/* Times alone; 0 of what there is none. */
typedef struct pc_unit_step {
    pc_time kernels_ps;                                  /* its own, and copies out of what is gathered */
    pc_time gather_ps, copy_ps, reduce_ps, replicate_ps; /* copy: k, of a unit that reduces */
} pc_unit_step;

/* In the order in which a pass goes through them: one, `count` units, of which the one at `odd` differs, and one. The
 * ends have what belongs to no layer. */
typedef struct pc_units {
    pc_unit_step before, each, other, behind;
    int count, odd;
} pc_units;

static inline int pc_units_steps(const pc_units *units) {
    return units->count + 2;
}

pc_unit_step pc_units_step(const pc_units *units, int number);

typedef struct pc_unit_rules {
    int prefetch;           /* gathers ahead of the unit at work: 0 to PC_PREFETCH_MAX */
    double slowdown;        /* what kernels lose of their speed beside collectives: 0 to 1 */
    bool waits_for_reduce;  /* the next unit's kernels wait for it */
    bool replicates_beside; /* all-reduces over groups are on a wire of their own */
} pc_unit_rules;

/* When a step's kernels begin and end, and its collectives end; those that it has not, when they would. */
typedef struct pc_unit_times {
    pc_time begin_ps, end_ps, gathered_ps, reduced_ps, replicated_ps;
} pc_unit_times;

/* How long the pass lasts. `times`: [pc_units_steps], or NULL. */
pc_time pc_units_run(const pc_units *units, const pc_unit_rules *rules, pc_unit_times *times);

/* The same of two passes that run together, whose kernels take turns, unit by unit as far as each pass has come. Both
 * gather ahead, and their collectives share the wires. No longer than one behind the other. */
pc_time pc_units_run_both(const pc_units *a, const pc_units *b, const pc_unit_rules *rules);

#endif
