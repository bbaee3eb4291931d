/* owners.h: ZeRO 1 that gives whole tensors to ranks: who steps what, and how parameters come back. Private to
 * models/training/. */
#ifndef PC_MODELS_TRAINING_OWNERS_H
#define PC_MODELS_TRAINING_OWNERS_H

#include "engine/error.h"
#include "models/machine/collective.h"
#include "models/workload/tensors.h"

#include <stdint.h>

/* More tensors on a device than this are refused. */
enum { PC_OWNED_TENSORS_MAX = 1 << 20 };

/* The largest tensor first, each goes to the rank that has fewest parameters by then (Graham 1969, 'Bounds on
 * multiprocessing timing anomalies', its list in order of size; so InternEvo's hybrid_zero_optim.py). */
typedef struct pc_owners {
    int64_t count;   /* of ranks that have a tensor: as many as tensors, or all */
    int64_t fullest; /* parameters of the rank that has most of them */
    int64_t most_state_bytes,
        most_step_ps;            /* the most that a rank has of its tensors' state, and takes for their steps */
    pc_collective_course course; /* of the parameters: each owner broadcasts its own, one after the other */
} pc_owners;

/* The tensors of `sorts`, in any order, over the ranks of a group of at least one; `parameter_bytes` each on the way.
 * PC_ERROR_INPUT if there are more than PC_OWNED_TENSORS_MAX of them. */
pc_code pc_owners_of(const pc_machine *machine, const pc_group *group, const pc_tensor_sort *sorts, int sort_count,
                     int parameter_bytes, pc_owners *owners, pc_error *error);

/* A part of a course: `share` of its latencies, bytes and seconds. */
pc_collective_course pc_course_share(const pc_collective_course *course, double share);

#endif
