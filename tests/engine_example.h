/* engine_example.h: what the engine might have seen of the run of store_example.h, made by hand: two stages, a link
 * each way between them, and of stage 0 its share of the NICs, both ways. Nothing may change it. */
#ifndef PC_TESTS_ENGINE_EXAMPLE_H
#define PC_TESTS_ENGINE_EXAMPLE_H

#include "engine/numbers.h"
#include "models/schedule/engine_trace.h"
#include "tests/support.h"

enum {
    ENGINE_LINKS = 4,
    ENGINE_LOADS = 12,
    ENGINE_FLOWS = 5,
    ENGINE_PASSES = 8,
    ENGINE_LEVELS = 6,
    ENGINE_DEVICES = 2,
    ENGINE_WORK = 3
};

static const pc_engine_trace engine_example = {
    .event_count = 42,
    /* Links 0 and 1, of 1 GB/s: two messages of 0.5 GB to stage 1, half a second each; one of 1 GB back. Links 2 and 3,
     * of 2 GB/s: gradients of 2 GB take a second, and after half of it 1 GB of the tied embedding's is there as well;
     * as nothing is shared there, the load is then twice the bandwidth. */
    .link_count = ENGINE_LINKS,
    .link_replica = (int32_t[]){0, 0, 0, 0},
    .link_device = (int32_t[]){0, 1, 0, 0},
    .link_peer = (int32_t[]){1, 0, -1, -1},
    .link_sort = (uint8_t[]){PC_LINK_STAGES, PC_LINK_STAGES, PC_LINK_NIC, PC_LINK_NIC},
    .link_is_in = (uint8_t[]){0, 0, 0, 1},
    .link_shared = (uint8_t[]){1, 1, 0, 0},
    .link_bytes_per_s = (double[]){1e9, 1e9, 2e9, 2e9},
    .load_count = ENGINE_LOADS,
    .load_link = (int32_t[]){0, 0, 0, 0, 1, 1, 2, 3, 2, 3, 2, 3},
    .load_time_ps = (pc_time[]){1000 * MS, 1500 * MS, 2000 * MS, 2500 * MS, 3000 * MS, 4000 * MS, 4500 * MS, 4500 * MS,
                                5000 * MS, 5000 * MS, 5500 * MS, 5500 * MS},
    .load_bytes_per_s = (double[]){1e9, 0, 1e9, 0, 1e9, 0, 2e9, 2e9, 4e9, 4e9, 0, 0},

    .flow_count = ENGINE_FLOWS,
    .flow_sort = (uint8_t[]){PC_FLOW_MESSAGE, PC_FLOW_MESSAGE, PC_FLOW_MESSAGE, PC_FLOW_REDUCE, PC_FLOW_TIED},
    .flow_replica = (int32_t[]){0, 0, 0, 0, 0},
    .flow_from = (int32_t[]){0, 0, 1, 0, 0},
    .flow_to = (int32_t[]){1, 1, 0, 0, 0},
    .flow_chunk = (int32_t[]){0, 0, 0, 0, -1},
    .flow_microbatch = (int32_t[]){0, 1, 0, -1, -1},
    .flow_out = (int32_t[]){0, 0, 1, 2, 2},
    .flow_in = (int32_t[]){-1, -1, -1, 3, 3},
    .flow_bytes = (double[]){5e8, 5e8, 1e9, 2e9, 1e9},
    .flow_ready_ps = (pc_time[]){1000 * MS, 2000 * MS, 3000 * MS, 4000 * MS, 5000 * MS},
    .flow_start_ps = (pc_time[]){1000 * MS, 2000 * MS, 3000 * MS, 4500 * MS, 5000 * MS},
    .flow_end_ps = (pc_time[]){1500 * MS, 2500 * MS, 4000 * MS, 5500 * MS, 5500 * MS},
    .flow_alone_ps = (pc_time[]){500 * MS, 500 * MS, 1000 * MS, 1000 * MS, 500 * MS},

    .queue_count = ENGINE_PASSES,
    .queue_ready_ps = (pc_time[]){0, 500 * MS, 3000 * MS, 4750 * MS, 1000 * MS, 2000 * MS, 2500 * MS, 4000 * MS},
    .memory_count = ENGINE_LEVELS,
    .memory_device = (int32_t[]){0, 0, 0, 1, 1, 1},
    .memory_time_ps = (pc_time[]){0, 1000 * MS, 4000 * MS, 0, 2000 * MS, 3000 * MS},
    .memory_bytes = (int64_t[]){PC_BYTES_PER_GIB, 2 * PC_BYTES_PER_GIB, PC_BYTES_PER_GIB, PC_BYTES_PER_GIB,
                                3 * PC_BYTES_PER_GIB, PC_BYTES_PER_GIB},
    .devices = ENGINE_DEVICES,
    .memory_capacity_bytes = (int64_t[]){4 * PC_BYTES_PER_GIB, PC_NO_LIMIT},
    .work_count = ENGINE_WORK,
    .work_sort = (uint8_t[]){PC_WORK_OPTIMIZER, PC_WORK_OPTIMIZER, PC_WORK_OVERHEAD},
    .work_replica = (int32_t[]){0, 0, 0},
    .work_device = (int32_t[]){0, 1, 0},
    .work_start_ps = (pc_time[]){5500 * MS, 5500 * MS, 6000 * MS},
    .work_end_ps = (pc_time[]){6000 * MS, 5750 * MS, 6500 * MS},
};

#endif
