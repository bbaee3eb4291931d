/* ranks.h: which GPU a rank of the parallelisms is, and how the groups of ranks that talk lie in the machine. */
#ifndef PC_MODELS_MACHINE_RANKS_H
#define PC_MODELS_MACHINE_RANKS_H

#include "engine/error.h"
#include "models/machine/machine.h"

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* CP is the first, so that an order of which three axes are written down has it outermost. */
typedef enum pc_axis { PC_AXIS_CP, PC_AXIS_TP, PC_AXIS_PP, PC_AXIS_DP, PC_AXES } pc_axis;

/* The same ranks as a grid of experts (pc_ranks_place_experts): TP is expert tensor parallelism (etp), DP those that
 * hold the same experts (edp), and the place of CP, which experts have not, is expert parallelism's. */
enum { PC_AXIS_EP = PC_AXIS_CP };

/* Axes from the innermost, whose ranks are neighbours: {TP, CP, DP, PP} is Megatron's and the default. */
typedef struct pc_rank_order {
    pc_axis axis[PC_AXES];
} pc_rank_order;

typedef struct pc_ranks {
    int32_t count[PC_AXES];
    int64_t stride[PC_AXES]; /* GPUs between neighbours on the axis */
} pc_ranks;

/* "tp-cp-dp-pp" and the like; without cp, which then stands behind tp. PC_ERROR_INPUT if another axis is missing or one
 * stands twice. It is written without cp where that stands behind tp. */
pc_code pc_rank_order_parse(const char *text, pc_rank_order *order, pc_error *error);
void pc_rank_order_write(pc_rank_order order, char text[16]);

/* How many ranks each axis has; cp 0 as 1. */
typedef struct pc_rank_counts {
    int tp, pp, dp, cp;
} pc_rank_counts;

/* PC_ERROR_INPUT if the machine has too few GPUs. */
pc_code pc_ranks_place(const pc_machine *machine, pc_rank_order order, pc_rank_counts counts, pc_ranks *ranks,
                       pc_error *error);

/* Megatron-LM's parallel folding (arXiv 2504.14960): the ranks of `ranks`, whose order is `order`, as a grid of
 * etp x ep x edp for every stage, with edp = tp * cp * dp / (etp * ep). Experts have the order of the other ranks,
 * without cp, and ep right behind tp: `tp-cp-dp-pp` is etp-ep-edp-pp (megatron/core/parallel_state.py, RankGenerator of
 * "tp-cp-ep-dp-pp"). `etp` and `ep` are at least 1. PC_ERROR_INPUT if they do not divide a stage's ranks, or if a stage
 * of the one grid were not one of the other, as in orders where stages are neighbours of replicas. */
pc_code pc_ranks_place_experts(const pc_ranks *ranks, pc_rank_order order, int etp, int ep, pc_ranks *experts,
                               pc_error *error);

/* The GPU of a rank: node gpu / gpus_per_node, domain gpu / domain_gpus, leaf node / leaf_nodes, of the machine as the
 * job sees it (pc_machine_of_job). */
static inline int64_t pc_ranks_gpu(const pc_ranks *ranks, int64_t tp, int64_t cp, int64_t pp, int64_t dp) {
    return tp * ranks->stride[PC_AXIS_TP] + cp * ranks->stride[PC_AXIS_CP] + pp * ranks->stride[PC_AXIS_PP] +
           dp * ranks->stride[PC_AXIS_DP];
}

/* And back: where on an axis the rank is that a GPU is. */
static inline int64_t pc_ranks_coordinate(const pc_ranks *ranks, pc_axis axis, int64_t gpu) {
    return gpu / ranks->stride[axis] % ranks->count[axis];
}

/* All GPUs that are ranks: 0 .. this - 1. */
static inline int64_t pc_ranks_gpus(const pc_ranks *ranks) {
    return (int64_t)ranks->count[PC_AXIS_TP] * ranks->count[PC_AXIS_CP] * ranks->count[PC_AXIS_PP] *
           ranks->count[PC_AXIS_DP];
}

/* The group of all ranks that differ from a given one on one axis only, as collectives see it. Where groups of one axis
 * lie differently, the worst of them. Every GPU has its share of its node's NICs, and a leaf's nodes share its uplinks;
 * all groups of the axis talk at the same time, as they do in training. */
typedef struct pc_group {
    int32_t ranks;             /* n */
    int32_t in_domain;         /* ranks of the group in one domain, the least: n where the domain holds them all */
    int32_t domains;           /* in which the group lies, the most; domains * in_domain is n where all hold as many */
    int32_t in_leaf;           /* ranks under one leaf switch, as in_domain */
    int32_t groups_beside;     /* other groups of this axis that have GPUs in a domain of it */
    double nic_bytes_per_s;    /* what a rank of the group gets of the NICs, large messages, its neighbours in a ring
                                * across domains being those it talks to; 0 if none leaves its domain */
    double uplink_bytes_per_s; /* what a rank gets of its leaf's uplinks where all ranks send through them at once; 0
                                * where none leaves its leaf */
    bool crosses_leaves;       /* whether some neighbours in its ring are under different leaves */
    bool crosses_nics;         /* more ranks than one in every domain, more domains, and none share a NIC:
                                * nic_bytes_per_s has machine.nic_crossing_efficiency in it */
} pc_group;

/* The ranks of an axis in rows of `first` neighbours: in `inner` the axis has those of a row, in `outer` one of each
 * row. The groups of either are as pc_group_of finds them; which ranks the other axes have is then without meaning.
 * `first` divides the axis. */
void pc_ranks_split(const pc_ranks *ranks, pc_axis axis, int first, pc_ranks *inner, pc_ranks *outer);

pc_group pc_group_of(const pc_machine *machine, const pc_ranks *ranks, pc_axis axis);

/* The group of all ranks that differ from a given one on two axes only. It is exact where the two are neighbours in the
 * order of ranks, or one has one rank. Else the ranks and domains of one are multiplied by the other's, and the slower
 * rate counts. That is exact in domains and leaves that hold whole rows of the inner axis, or divide them. */
pc_group pc_group_of_both(const pc_machine *machine, const pc_ranks *ranks, pc_axis axis, pc_axis other);

/* Whether the two are neighbours; `joined`, which may be NULL, then has both as `axis` and one rank of `other`. */
bool pc_ranks_join(const pc_ranks *ranks, pc_axis axis, pc_axis other, pc_ranks *joined);

/* How a message from pipeline stage `from` to stage `to` travels, those of all replicas and tensor ranks at once; the
 * worst of them. */
typedef struct pc_hop {
    bool in_domain; /* all of them */
    bool crosses_leaves;
    double bytes_per_s; /* of one rank, all ranks of the stage sending at once */
    double latency_s;   /* bulk protocol */
} pc_hop;
pc_hop pc_hop_between(const pc_machine *machine, const pc_ranks *ranks, int from, int to);

/* A sender and its receiver as a group. */
pc_group pc_group_of_hop(const pc_hop *hop);

/* The same from every rank of an axis to the next, and from the last one to the first: the slowest of them. */
pc_hop pc_hop_round(const pc_machine *machine, const pc_ranks *ranks, pc_axis axis);

#ifdef __cplusplus
}
#endif
#endif
