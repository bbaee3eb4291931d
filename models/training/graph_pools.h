/* graph_pools.h: memory of CUDA graphs. Private to models/training/.
 *
 * A graph's kernels have fixed addresses. So what they keep is in a private pool, which nothing else uses and which
 * stays. Of a captured half of a layer that is its activations, its input and its output, of as many microbatches as
 * are under way at once. Of a whole iteration it is all that passes keep and work with. Beside it the step has no room
 * that activations have left.
 *
 * Torch counts a pool's blocks as allocated only while a tensor has them. After the capture those are inputs and
 * outputs alone (torch.cuda.make_graphed_callables; Transformer Engine's pytorch/graph.py).
 */
#ifndef PC_MODELS_TRAINING_GRAPH_POOLS_H
#define PC_MODELS_TRAINING_GRAPH_POOLS_H

#include "models/schedule/schedule.h"
#include "models/training/outline.h"

typedef struct pc_graph_pools {
    int64_t held;    /* bytes in pools, with inputs and outputs */
    int64_t hidden;  /* of them, what torch does not count */
    int64_t outside; /* of activations, the most at once that torch counts */
} pc_graph_pools;

/* Of a device, by the order of its passes; zeros but `outside` without graphs. Where W is apart its pass gives back
 * all.
 */
pc_graph_pools pc_graph_pools_of(const pc_outline *outline, const pc_schedule *schedule, int device);

/* What a microbatch has of a part in pools, and of that what torch does not count. */
void pc_graph_pools_share(const pc_outline *outline, pc_part_cost *part);

#endif
