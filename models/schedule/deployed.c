#include "models/schedule/deployed.h"

#include "models/schedule/deployed_grid.h"
#include "models/schedule/deployed_published.h"

#include <string.h>

/* Ends with an entry that has no name. */
static const pc_deployed deployed[] = {
    {"zb-1p", PC_MAKING_PUBLISHED, pc_published_zb},
    {"zb-2p", PC_MAKING_PUBLISHED, pc_published_zb},
    {"v-zb", PC_MAKING_PUBLISHED, pc_published_zb_v},
    {"zb-v", PC_MAKING_PUBLISHED, pc_published_zb_v},
    {"v-min", PC_MAKING_PUBLISHED, pc_published_v_min},
    {"v-half", PC_MAKING_PUBLISHED, pc_published_v_half},
    {"1f1b-v", PC_MAKING_PUBLISHED, pc_published_1f1b_v},
    {"v-adaptive", PC_MAKING_PUBLISHED, pc_published_v_adaptive},
    {"zb-v", PC_MAKING_TORCH, pc_torch_zb_v},
    {"gpipe", PC_MAKING_TORCH, NULL},
    {"1f1b", PC_MAKING_TORCH, NULL},
    {"1f1b-interleaved", PC_MAKING_TORCH, NULL},
    {"looped-bfs", PC_MAKING_TORCH, NULL},
    {"zb-interleaved", PC_MAKING_TORCH, NULL},
    {"dualpipe-v", PC_MAKING_TORCH, NULL},
    {"1f1b", PC_MAKING_MEGATRON, NULL},
    {"1f1b-interleaved", PC_MAKING_MEGATRON, NULL},
    {"1f1b-interleaved-overlap", PC_MAKING_MEGATRON, NULL},
    {NULL, PC_MAKING_COSTS, NULL},
};

const pc_deployed *pc_deployed_find(const pc_generator *generator, pc_making making) {
    for (const pc_deployed *one = deployed; one->name; one++)
        if (one->making == making && strcmp(one->name, generator->name) == 0) return one;
    return NULL;
}
