/* collective.h: what a collective takes: a closed cost where nothing contends, and the flows that it is where something
 * may. The two agree within 2% when it is alone, or beside groups that lie like it (tests).
 *
 * Sources: Ring and recursive halving: Thakur, Rabenseifner, Gropp 2005, 'Optimization of collective communication
 * operations in MPICH'. Two trees, each of half the data, that have no inner node in common: Sanders, Speck, Traeff
 * 2009, 'Two-tree algorithms for full bandwidth broadcast, reduction and scan'. Bus bandwidth (busbw): nccl-tests,
 * PERFORMANCE.md.
 *
 * A group of n ranks, q of them in each of d domains, and a tensor of S bytes; a ring collective carries V = 2(n-1)/n S
 * (all-reduce), (n-1)/n S (all-gather, reduce-scatter) or S (broadcast) over each of its hops. There are as many rings
 * as ranks in a domain, each leaving it by another rank's NICs: a rank sends V (q-1)/q into its domain and V/q out of
 * it. A step takes the latency of the connection that it crosses.
 */
#ifndef PC_MODELS_MACHINE_COLLECTIVE_H
#define PC_MODELS_MACHINE_COLLECTIVE_H

#include "engine/error.h"
#include "engine/program.h"
#include "models/machine/machine.h"
#include "models/machine/ranks.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum pc_collective {
    PC_COLLECTIVE_ALL_REDUCE,
    PC_COLLECTIVE_ALL_GATHER,
    PC_COLLECTIVE_REDUCE_SCATTER,
    PC_COLLECTIVE_ALL_TO_ALL,
    PC_COLLECTIVE_BROADCAST,
    PC_COLLECTIVES
} pc_collective;

/* BEST: the fastest of ring, tree and in-switch, as far as there are such for this collective, as a library chooses;
 * not HIERARCHICAL (inside domains, across them, inside, one after the other), which NCCL has not. */
typedef enum pc_algorithm {
    PC_ALGORITHM_BEST,
    PC_ALGORITHM_RING,
    PC_ALGORITHM_TREE,
    PC_ALGORITHM_HIERARCHICAL,
    PC_ALGORITHM_IN_SWITCH,
    PC_ALGORITHMS
} pc_algorithm;

/* What one rank of the group does, in phases one after the other: latency, then bytes over its own links. A group of
 * one rank, or no bytes, has none. */
enum { PC_COLLECTIVE_PHASES = 3 };
typedef struct pc_collective_phase {
    double latency_s;
    double domain_bytes;                            /* through the rank's link into its domain, each way */
    double network_bytes;                           /* through the rank's share of the NICs, each way */
    double domain_bytes_per_s, network_bytes_per_s; /* what it gets there when alone; the slower of the two counts */
    /* The same bytes with what protocol and crossing of NICs add to them. A flow carries them over a link whose
     * capacity is bandwidth times efficiency (bulk), so that a protocol of half the efficiency fills the link twice as
     * long. */
    double domain_wire_bytes, network_wire_bytes;
} pc_collective_phase;
typedef struct pc_collective_course {
    pc_algorithm algorithm; /* never BEST */
    int phase_count;
    pc_collective_phase phase[PC_COLLECTIVE_PHASES];
    double seconds; /* alone: the sum of latencies and of each phase's slower bytes */
} pc_collective_course;

/* If `machine` has measured such a collective (machine.h), BEST takes as long as that. What it sends is the closed
 * cost's. What its latency leaves of the measured time is bytes, at a rate of at most the link's bandwidth.
 * `size_bytes` as in operation.h; of an all-to-all what a rank has to send, its own part with it. The choice between
 * algorithms and protocols is by the closed cost. An algorithm that this collective, group or machine has not (a tree
 * all-to-all, a hierarchy in one domain) falls back to RING. */
pc_collective_course pc_collective_course_of(const pc_machine *machine, const pc_group *group, pc_collective collective,
                                             pc_algorithm algorithm, double size_bytes);

/* The rate at which a rank's bytes of an all-to-all leave its domain while all do the same: its share of the NICs, or
 * of the leaves' uplinks. 0 where none leave. */
double pc_scatter_rate(const pc_machine *machine, const pc_group *group);

/* A message over a hop, as what its sender does: starting it costs as much as starting a collective. */
pc_collective_course pc_message_course(const pc_machine *machine, const pc_hop *hop, double size_bytes);

/* A message between stages, alone; measured where the machine has that. */
double pc_message_seconds(const pc_machine *machine, const pc_hop *hop, double size_bytes);

#ifdef __cplusplus
}
#endif
#endif
