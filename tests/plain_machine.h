/* plain_machine.h: a machine whose numbers are easy to reckon with. */
#ifndef PC_TESTS_PLAIN_MACHINE_H
#define PC_TESTS_PLAIN_MACHINE_H

#include "models/machine/machine.h"

/* Eight GPUs and eight NICs a node, one domain a node, one switch. */
static inline pc_machine plain_machine(void) {
    return (pc_machine){
        .name = "plain",
        .gpu = {.name = "plain",
                .matrix_flops_per_s = 1e14,
                .vector_flops_per_s = 1e13,
                .memory_bytes_per_s = 1e12,
                .memory_bytes = INT64_C(1) << 36,
                .l2_bytes = 1 << 25,
                .processors = 100,
                .tile_m = 128,
                .tile_n = 128,
                .gemm_efficiency = 0.8,
                .attention_efficiency = 0.5,
                .attention_backward = 1.2,
                .memory_efficiency = 0.8},
        .gpus_per_node = 8,
        .domain_gpus = 8,
        .nics_per_node = 8,
        .domain = {.bandwidth_bytes_per_s = 400e9, .efficiency = 0.75, .latency_s = 5e-6},
        .network = {.bandwidth_bytes_per_s = 25e9, .efficiency = 0.8, .latency_s = 15e-6},
        .oversubscription = 1.0,
    };
}

#endif
