/* engine_example.h: what the engine might have seen of the run of store_example.h, made by hand: two stages, a link
 * each way between them, and of stage 0 its share of the NICs, both ways. Nothing may change it. */
#ifndef PC_TESTS_ENGINE_EXAMPLE_H
#define PC_TESTS_ENGINE_EXAMPLE_H

#include "models/schedule/engine_trace.h"

enum {
    ENGINE_LINKS = 4,
    ENGINE_LOADS = 12,
    ENGINE_FLOWS = 5,
    ENGINE_PASSES = 8,
    ENGINE_LEVELS = 6,
    ENGINE_DEVICES = 2,
    ENGINE_WORK = 3
};

#define MS  INT64_C(1000000000) /* picoseconds */
#define GIB (INT64_C(1) << 30)

/* Links 0 and 1, of 1 GB/s: two messages of 0.5 GB to stage 1, half a second each; one of 1 GB back. Links 2 and 3, of
 * 2 GB/s: gradients of 2 GB take a second, and after half of it 1 GB of the tied embedding's is there as well; as
 * nothing is shared there, the load is then twice the bandwidth. */
static inline pc_engine_trace engine_example(void) {
    static int32_t link_replica[] = {0, 0, 0, 0}, link_device[] = {0, 1, 0, 0}, link_peer[] = {1, 0, -1, -1};
    static uint8_t link_sort[] = {PC_LINK_STAGES, PC_LINK_STAGES, PC_LINK_NIC, PC_LINK_NIC};
    static uint8_t link_is_in[] = {0, 0, 0, 1}, link_shared[] = {1, 1, 0, 0};
    static double link_bytes_per_s[] = {1e9, 1e9, 2e9, 2e9};
    static int32_t load_link[] = {0, 0, 0, 0, 1, 1, 2, 3, 2, 3, 2, 3};
    static pc_time load_time_ps[] = {1000 * MS, 1500 * MS, 2000 * MS, 2500 * MS, 3000 * MS, 4000 * MS,
                                     4500 * MS, 4500 * MS, 5000 * MS, 5000 * MS, 5500 * MS, 5500 * MS};
    static double load_bytes_per_s[] = {1e9, 0, 1e9, 0, 1e9, 0, 2e9, 2e9, 4e9, 4e9, 0, 0};
    static uint8_t flow_sort[] = {PC_FLOW_MESSAGE, PC_FLOW_MESSAGE, PC_FLOW_MESSAGE, PC_FLOW_REDUCE, PC_FLOW_TIED};
    static int32_t flow_replica[] = {0, 0, 0, 0, 0}, flow_from[] = {0, 0, 1, 0, 0}, flow_to[] = {1, 1, 0, 0, 0};
    static int32_t flow_chunk[] = {0, 0, 0, 0, -1}, flow_microbatch[] = {0, 1, 0, -1, -1};
    static int32_t flow_out[] = {0, 0, 1, 2, 2}, flow_in[] = {-1, -1, -1, 3, 3};
    static double flow_bytes[] = {5e8, 5e8, 1e9, 2e9, 1e9};
    static pc_time flow_ready_ps[] = {1000 * MS, 2000 * MS, 3000 * MS, 4000 * MS, 5000 * MS};
    static pc_time flow_start_ps[] = {1000 * MS, 2000 * MS, 3000 * MS, 4500 * MS, 5000 * MS};
    static pc_time flow_end_ps[] = {1500 * MS, 2500 * MS, 4000 * MS, 5500 * MS, 5500 * MS};
    static pc_time flow_alone_ps[] = {500 * MS, 500 * MS, 1000 * MS, 1000 * MS, 500 * MS};
    static pc_time queue_ready_ps[] = {0, 500 * MS, 3000 * MS, 4750 * MS, 1000 * MS, 2000 * MS, 2500 * MS, 4000 * MS};
    static int32_t memory_device[] = {0, 0, 0, 1, 1, 1};
    static pc_time memory_time_ps[] = {0, 1000 * MS, 4000 * MS, 0, 2000 * MS, 3000 * MS};
    static int64_t memory_bytes[] = {GIB, 2 * GIB, GIB, GIB, 3 * GIB, GIB}, memory_capacity_bytes[] = {4 * GIB, 0};
    static uint8_t work_sort[] = {PC_WORK_OPTIMIZER, PC_WORK_OPTIMIZER, PC_WORK_OVERHEAD};
    static int32_t work_replica[] = {0, 0, 0}, work_device[] = {0, 1, 0};
    static pc_time work_start_ps[] = {5500 * MS, 5500 * MS, 6000 * MS};
    static pc_time work_end_ps[] = {6000 * MS, 5750 * MS, 6500 * MS};
    return (pc_engine_trace){.link_count = ENGINE_LINKS,
                             .link_replica = link_replica,
                             .link_device = link_device,
                             .link_peer = link_peer,
                             .link_sort = link_sort,
                             .link_is_in = link_is_in,
                             .link_shared = link_shared,
                             .link_bytes_per_s = link_bytes_per_s,
                             .load_count = ENGINE_LOADS,
                             .load_link = load_link,
                             .load_time_ps = load_time_ps,
                             .load_bytes_per_s = load_bytes_per_s,
                             .flow_count = ENGINE_FLOWS,
                             .flow_sort = flow_sort,
                             .flow_replica = flow_replica,
                             .flow_from = flow_from,
                             .flow_to = flow_to,
                             .flow_chunk = flow_chunk,
                             .flow_microbatch = flow_microbatch,
                             .flow_out = flow_out,
                             .flow_in = flow_in,
                             .flow_bytes = flow_bytes,
                             .flow_ready_ps = flow_ready_ps,
                             .flow_start_ps = flow_start_ps,
                             .flow_end_ps = flow_end_ps,
                             .flow_alone_ps = flow_alone_ps,
                             .queue_count = ENGINE_PASSES,
                             .queue_ready_ps = queue_ready_ps,
                             .memory_count = ENGINE_LEVELS,
                             .memory_device = memory_device,
                             .memory_time_ps = memory_time_ps,
                             .memory_bytes = memory_bytes,
                             .devices = ENGINE_DEVICES,
                             .memory_capacity_bytes = memory_capacity_bytes,
                             .work_count = ENGINE_WORK,
                             .work_sort = work_sort,
                             .work_replica = work_replica,
                             .work_device = work_device,
                             .work_start_ps = work_start_ps,
                             .work_end_ps = work_end_ps,
                             .event_count = 42};
}

#endif
