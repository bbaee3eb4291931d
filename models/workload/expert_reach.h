/* expert_reach.h: to how many ranks or nodes a token goes that has chosen some of all experts. */
#ifndef PC_MODELS_WORKLOAD_EXPERT_REACH_H
#define PC_MODELS_WORKLOAD_EXPERT_REACH_H

#ifdef __cplusplus
extern "C" {
#endif

/* A token chooses `topk` of `experts`. With `groups` above `group_topk` above 0 it first chooses that many groups of
 * neighbouring experts, all of one size, and then experts of those alone: Megatron-LM's moe_router_num_groups and
 * moe_router_group_topk, DeepSeek-V3's n_group and topk_group (node-limited routing, arXiv 2412.19437, section 2.1.2).
 * Any choice is as likely as any other. */
typedef struct pc_routing {
    double experts, topk;
    int groups, group_topk; /* at most PC_ROUTING_GROUPS_MAX groups; 0: none */
} pc_routing;

enum { PC_ROUTING_GROUPS_MAX = 512 };

/* Whether groups leave some experts out. */
int pc_routing_is_limited(const pc_routing *routing);

/* Of `cells` (ranks, or nodes) with equal parts of the experts in a row: the mean number of them that have an expert of
 * a token. Without groups: cells * (1 - C(e - e/cells, k) / C(e, k)). With them, the same of what a cell has of the
 * chosen groups, summed over the choices. `cells` is above zero; as many experts as `topk` can be chosen. */
double pc_expert_reached(const pc_routing *routing, double cells);

#ifdef __cplusplus
}
#endif
#endif
