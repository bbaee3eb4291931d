/* layout_stages.h: layouts as Megatron-LM's arguments say them by stage: how many layers the first and the last one
 * have, or that embedding or loss count as a layer. What it does with them: get_num_layers_to_build of
 * megatron/core/transformer/transformer_block.py.
 */
#ifndef PC_MODELS_WORKLOAD_LAYOUT_STAGES_H
#define PC_MODELS_WORKLOAD_LAYOUT_STAGES_H

#include "engine/error.h"
#include "models/schedule/schedule.h"

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct pc_stage_layout {
    int64_t first, last;   /* layers of the first and the last stage; 0: as many as others. decoder_first_pipeline_
                            * num_layers, decoder_last_pipeline_num_layers */
    bool counts_embedding; /* as a layer of the first part: account_for_embedding_in_pipeline_split */
    bool counts_loss;      /* as one of the last: account_for_loss_in_pipeline_split */
} pc_stage_layout;

static inline bool pc_stage_layout_is_asked(const pc_stage_layout *asked) {
    return asked->first > 0 || asked->last > 0 || asked->counts_embedding || asked->counts_loss;
}

/* The layers of every part in the order of the forward pass into `list`, which has room for all parts of the placement.
 * The layers that are left lie evenly over the other stages, and a stage's over its chunks. PC_ERROR_INPUT, with what
 * would do, where they do not divide, or where both kinds are asked for at once. */
pc_code pc_stage_layout_list(const pc_stage_layout *asked, int64_t layers, pc_placement placement, int devices,
                             int chunks, int32_t *list, pc_error *error);

#ifdef __cplusplus
}
#endif
#endif
