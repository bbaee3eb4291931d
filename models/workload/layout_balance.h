/* layout_balance.h: how many layers each part has so that the slowest stage is the fastest possible.
 *
 * Layers are alike, so a stage takes its layers' time and that of the embedding or the head if it has one of them. A
 * layer at a time goes to the stage that is then the fastest. No other division has a faster slowest stage: if stage A
 * is the slowest, every other stage would take at least as long with one layer more, when A got its last one. Where
 * stages have a most, that holds for those that have not reached it, and of the divisions within it none is better.
 */
#ifndef PC_MODELS_WORKLOAD_LAYOUT_BALANCE_H
#define PC_MODELS_WORKLOAD_LAYOUT_BALANCE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Seconds that a microbatch takes in a layer, in the embedding (first part) and in the head with its loss (last part),
 * all passes together; 0 or more. */
typedef struct pc_layout_times {
    double layer_s, embedding_s, head_s;
} pc_layout_times;

/* Fills in the layers of each of `parts` parts, 1 to PC_PARTS_MAX; part i is on stage `stage_of_part[i]`, 0 to `stages`
 * - 1, and every stage has one. Of stages that are as fast the last one is given the layer, for that of a pipeline in
 * order holds the fewest microbatches. A stage's layers go to its parts in the same way. `most`: the layers that each
 * stage may have, in all at least as many as there are; NULL: any. */
void pc_layout_balance(int64_t layers, int parts, int stages, const int *stage_of_part, const pc_layout_times *times,
                       const int64_t *most, int32_t *layers_of_part);

#ifdef __cplusplus
}
#endif
#endif
