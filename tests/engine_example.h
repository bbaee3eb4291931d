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

/* Links 0 and 1, of 1 GB/s: two messages of 0.5 GB to stage 1, half a second each; one of 1 GB back. Links 2 and 3, of
 * 2 GB/s: gradients of 2 GB take a second, and after half of it 1 GB of the tied embedding's is there as well; as
 * nothing is shared there, the load is then twice the bandwidth. */
static inline void engine_example_links(pc_engine_trace *x) {
    static int32_t replica[] = {0, 0, 0, 0}, device[] = {0, 1, 0, 0}, peer[] = {1, 0, -1, -1};
    static uint8_t sort[] = {PC_LINK_STAGES, PC_LINK_STAGES, PC_LINK_NIC, PC_LINK_NIC};
    static uint8_t is_in[] = {0, 0, 0, 1}, shared[] = {1, 1, 0, 0};
    static double bytes_per_s[] = {1e9, 1e9, 2e9, 2e9};
    static int32_t load_link[] = {0, 0, 0, 0, 1, 1, 2, 3, 2, 3, 2, 3};
    static pc_time load_time_ps[] = {1000 * MS, 1500 * MS, 2000 * MS, 2500 * MS, 3000 * MS, 4000 * MS,
                                     4500 * MS, 4500 * MS, 5000 * MS, 5000 * MS, 5500 * MS, 5500 * MS};
    static double load_bytes_per_s[] = {1e9, 0, 1e9, 0, 1e9, 0, 2e9, 2e9, 4e9, 4e9, 0, 0};
    x->link_count = ENGINE_LINKS;
    x->link_replica = replica;
    x->link_device = device;
    x->link_peer = peer;
    x->link_sort = sort;
    x->link_is_in = is_in;
    x->link_shared = shared;
    x->link_bytes_per_s = bytes_per_s;
    x->load_count = ENGINE_LOADS;
    x->load_link = load_link;
    x->load_time_ps = load_time_ps;
    x->load_bytes_per_s = load_bytes_per_s;
}

static inline void engine_example_flows(pc_engine_trace *x) {
    static uint8_t sort[] = {PC_FLOW_MESSAGE, PC_FLOW_MESSAGE, PC_FLOW_MESSAGE, PC_FLOW_REDUCE, PC_FLOW_TIED};
    static int32_t replica[] = {0, 0, 0, 0, 0}, from[] = {0, 0, 1, 0, 0}, to[] = {1, 1, 0, 0, 0};
    static int32_t chunk[] = {0, 0, 0, 0, -1}, microbatch[] = {0, 1, 0, -1, -1};
    static int32_t out[] = {0, 0, 1, 2, 2}, in[] = {-1, -1, -1, 3, 3};
    static double sent_bytes[] = {5e8, 5e8, 1e9, 2e9, 1e9};
    static pc_time ready_ps[] = {1000 * MS, 2000 * MS, 3000 * MS, 4000 * MS, 5000 * MS};
    static pc_time start_ps[] = {1000 * MS, 2000 * MS, 3000 * MS, 4500 * MS, 5000 * MS};
    static pc_time end_ps[] = {1500 * MS, 2500 * MS, 4000 * MS, 5500 * MS, 5500 * MS};
    static pc_time alone_ps[] = {500 * MS, 500 * MS, 1000 * MS, 1000 * MS, 500 * MS};
    x->flow_count = ENGINE_FLOWS;
    x->flow_sort = sort;
    x->flow_replica = replica;
    x->flow_from = from;
    x->flow_to = to;
    x->flow_chunk = chunk;
    x->flow_microbatch = microbatch;
    x->flow_out = out;
    x->flow_in = in;
    x->flow_bytes = sent_bytes;
    x->flow_ready_ps = ready_ps;
    x->flow_start_ps = start_ps;
    x->flow_end_ps = end_ps;
    x->flow_alone_ps = alone_ps;
}

static inline void engine_example_devices(pc_engine_trace *x) {
    static pc_time ready_ps[] = {0, 500 * MS, 3000 * MS, 4750 * MS, 1000 * MS, 2000 * MS, 2500 * MS, 4000 * MS};
    static int32_t memory_device[] = {0, 0, 0, 1, 1, 1};
    static pc_time memory_time_ps[] = {0, 1000 * MS, 4000 * MS, 0, 2000 * MS, 3000 * MS};
    static int64_t memory_bytes[] = {PC_BYTES_PER_GIB, 2 * PC_BYTES_PER_GIB, PC_BYTES_PER_GIB,
                                     PC_BYTES_PER_GIB, 3 * PC_BYTES_PER_GIB, PC_BYTES_PER_GIB},
                   capacity_bytes[] = {4 * PC_BYTES_PER_GIB, 0};
    static uint8_t work_sort[] = {PC_WORK_OPTIMIZER, PC_WORK_OPTIMIZER, PC_WORK_OVERHEAD};
    static int32_t work_replica[] = {0, 0, 0}, work_device[] = {0, 1, 0};
    static pc_time work_start_ps[] = {5500 * MS, 5500 * MS, 6000 * MS};
    static pc_time work_end_ps[] = {6000 * MS, 5750 * MS, 6500 * MS};
    x->queue_count = ENGINE_PASSES;
    x->queue_ready_ps = ready_ps;
    x->memory_count = ENGINE_LEVELS;
    x->memory_device = memory_device;
    x->memory_time_ps = memory_time_ps;
    x->memory_bytes = memory_bytes;
    x->devices = ENGINE_DEVICES;
    x->memory_capacity_bytes = capacity_bytes;
    x->work_count = ENGINE_WORK;
    x->work_sort = work_sort;
    x->work_replica = work_replica;
    x->work_device = work_device;
    x->work_start_ps = work_start_ps;
    x->work_end_ps = work_end_ps;
}

static inline pc_engine_trace engine_example(void) {
    pc_engine_trace made = {.event_count = 42};
    engine_example_links(&made);
    engine_example_flows(&made);
    engine_example_devices(&made);
    return made;
}

#endif
