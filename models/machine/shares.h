/* shares.h: what of a machine's network GPUs share: NICs of a node, uplinks of a leaf. Private to models/; of a checked
 * machine. */
#ifndef PC_MODELS_MACHINE_SHARES_H
#define PC_MODELS_MACHINE_SHARES_H

#include "engine/numbers.h"
#include "models/machine/machine.h"

#include <stdint.h>

/* Bulk rates. */
static inline double pc_domain_rate(const pc_machine *machine) {
    return machine->domain.bandwidth_bytes_per_s * machine->domain.efficiency;
}

static inline double pc_nic_rate(const pc_machine *machine) {
    return machine->network.bandwidth_bytes_per_s * machine->network.efficiency;
}

/* NICs and GPUs of a node belong together in as many equal groups as there can be: 8 NICs and 8 GPUs are 8 groups of
 * one each, 4 NICs and 8 GPUs are 4 groups of a NIC and two GPUs. */
static inline int32_t pc_nic_groups(const pc_machine *machine) {
    return (int32_t)pc_gcd(machine->nics_per_node, machine->gpus_per_node);
}

static inline int32_t pc_nic_group_gpus(const pc_machine *machine) {
    return machine->gpus_per_node / pc_nic_groups(machine);
}

static inline double pc_nic_group_rate(const pc_machine *machine) {
    int32_t nics = machine->nics_per_node / pc_nic_groups(machine);
    return nics * pc_nic_rate(machine);
}

/* Of one GPU, all of its node talking. */
static inline double pc_nic_share(const pc_machine *machine) {
    return pc_nic_group_rate(machine) / pc_nic_group_gpus(machine);
}

/* What rings that cross from NIC to NIC within a node reach of the NICs' rate. */
static inline double pc_nic_crossing(const pc_machine *machine) {
    return machine->nic_crossing_efficiency > 0.0 ? machine->nic_crossing_efficiency : 1.0;
}

/* GPUs under a leaf; 0: one switch joins all. */
static inline int64_t pc_leaf_gpus(const pc_machine *machine) {
    return (int64_t)machine->leaf_nodes * machine->gpus_per_node;
}

/* What a leaf's uplinks carry, each way. */
static inline double pc_leaf_rate(const pc_machine *machine) {
    return machine->leaf_nodes * (machine->nics_per_node * pc_nic_rate(machine)) / machine->oversubscription;
}

#endif
