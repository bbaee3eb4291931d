/* memory_kinds.h: what the sums of memory.h are made of. */
#ifndef PC_MODELS_WORKLOAD_MEMORY_KINDS_H
#define PC_MODELS_WORKLOAD_MEMORY_KINDS_H

#include "models/schedule/activation_kinds.h"
#include "models/workload/memory.h"

/* A microbatch's activations on a part, in the order in which passes have them. They add up to `kept`, to `taken`, and
 * to `taken` less `b_frees` of its pc_part_activation, the last where W is a pass of its own; else it is zeros. */
typedef struct pc_part_kinds {
    pc_activation_bytes kept, taken, left;
} pc_part_kinds;

/* For a part whose activations are these. Where some of its layers are on the host, what stays is of each kind as much
 * as of whole layers. */
pc_part_kinds pc_part_kinds_of(const pc_model *model, const pc_cut *cut, const pc_part *part, pc_pass_forms forms,
                               const pc_part_activation *sums);

/* What `working` of a part is, and adds up to it. Layers' recomputation, or the loss, whichever needs more, the other
 * being 0. The gathered sequence or dispatched tokens. What context parallelism's attention works with; and layers on
 * their way to the host. Where the loss cannot use what layers have freed (pc_loss_buffers), that stands in place of
 * their recomputation. */
typedef struct pc_working_bytes {
    int64_t recomputation, loss, sequence, context, copies;
} pc_working_bytes;
pc_working_bytes pc_part_working_of(const pc_model *model, const pc_cut *cut, const pc_part *part, pc_pass_forms forms,
                                    const pc_part_activation *sums);

#endif
