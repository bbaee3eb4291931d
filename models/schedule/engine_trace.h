/* engine_trace.h: what the engine saw of a run that it ran whole: links and their loads, flows, memories, queues.
 *
 * Columns. Passes, in the order of pc_replay_trace, are there; what stands here is what only the engine knows. A run
 * over longest paths leaves all of it empty.
 */
#ifndef PC_MODELS_SCHEDULE_ENGINE_TRACE_H
#define PC_MODELS_SCHEDULE_ENGINE_TRACE_H

#include "engine/error.h"
#include "engine/marks.h"
#include "engine/simtime.h"
#include "models/schedule/memory_limit.h"

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* STAGES: between two neighbouring stages, as `transfer: {size, ...}` gives it. The others are a GPU's: into its NVLink
 * domain, its share of its node's NICs, its share of its leaf's uplinks. */
typedef enum pc_link_sort { PC_LINK_STAGES, PC_LINK_DOMAIN, PC_LINK_NIC, PC_LINK_UPLINK, PC_LINK_SORTS } pc_link_sort;

typedef enum pc_flow_sort {
    PC_FLOW_MESSAGE, /* between stages: activations, or their gradients */
    PC_FLOW_TENSOR,  /* a collective of tensor parallelism */
    PC_FLOW_GATHER,  /* of parameters */
    PC_FLOW_REDUCE,  /* of gradients */
    PC_FLOW_TIED,    /* of the tied embedding's gradient */
    PC_FLOW_LOSS,
    PC_FLOW_NORM,
    PC_FLOW_SORTS
} pc_flow_sort;

/* Work that is no pass. */
typedef enum pc_work_sort { PC_WORK_OPTIMIZER, PC_WORK_OVERHEAD, PC_WORK_SORTS } pc_work_sort;

typedef struct pc_engine_trace {
    /* Links that anything goes over. `peer`: the device at the other end of STAGES, else -1. */
    int64_t link_count;
    int32_t *link_replica, *link_device, *link_peer;
    uint8_t *link_sort;   /* pc_link_sort */
    uint8_t *link_is_in;  /* 0: what the GPU sends, 1: what it receives */
    uint8_t *link_shared; /* 0: everything on it takes what it takes alone (closed network) */
    double *link_bytes_per_s;

    /* A row for each change of a link's load, in the order of time; the load after it. */
    int64_t load_count;
    int32_t *load_link; /* index of the link above */
    pc_time *load_time_ps;
    double *load_bytes_per_s;

    /* A row for everything that is sent over one pair of links, in the order of its beginning. */
    int64_t flow_count;
    uint8_t *flow_sort; /* pc_flow_sort */
    int32_t *flow_replica;
    int32_t *flow_from, *flow_to; /* devices; the same one for a collective */
    int32_t *flow_chunk;          /* whose parameters or gradients; of a message the sender's; -1 where none */
    int32_t *flow_microbatch;     /* of a message; -1 where none */
    int32_t *flow_out, *flow_in;  /* indices of links; -1: flow_in where there is one link alone, both where none is */
    double *flow_bytes;
    pc_time *flow_ready_ps; /* when all it waits for was there */
    pc_time *flow_start_ps; /* when it could leave: after those before it; its latency begins */
    pc_time *flow_end_ps;
    pc_time *flow_alone_ps; /* what it takes with nothing else under way, latency included */

    /* A row for each pass, in the order of pc_replay_trace's passes: since when it could have run but for its device,
     * which had others or no memory; it started at pass_start_ps. */
    int64_t queue_count;
    pc_time *queue_ready_ps;

    /* A row for each change of a device's memory, all that it holds, in the order of time in each device. */
    int64_t memory_count;
    int32_t *memory_device;
    pc_time *memory_time_ps;
    int64_t *memory_bytes;
    int devices;
    int64_t *memory_capacity_bytes; /* [devices]; PC_NO_LIMIT where there is none */

    int64_t work_count;
    uint8_t *work_sort; /* pc_work_sort */
    int32_t *work_replica, *work_device;
    pc_time *work_start_ps, *work_end_ps;

    uint64_t event_count; /* that the engine handled for the run */
} pc_engine_trace;

/* What rows are of. */
typedef enum pc_engine_axis {
    PC_ENGINE_LINKS,
    PC_ENGINE_LOADS,
    PC_ENGINE_FLOWS,
    PC_ENGINE_QUEUE,
    PC_ENGINE_MEMORY,
    PC_ENGINE_DEVICES,
    PC_ENGINE_WORK
} pc_engine_axis;

/* Allocates `rows` zeros of every column of that axis; how many of them count, the caller says. False where memory is
 * short: pc_engine_trace_free takes what was made. */
PC_MUST_USE bool pc_engine_trace_make(pc_engine_trace *trace, pc_engine_axis axis, int64_t rows);
void pc_engine_trace_free(pc_engine_trace *trace);

/* "stages", "domain", "nic", "uplink"; "message", "tensor", "gather", "reduce", "tied", "loss", "norm"; "optimizer",
 * "overhead". */
extern const char *const pc_link_sort_names[PC_LINK_SORTS + 1]; /* end with NULL */
extern const char *const pc_flow_sort_names[PC_FLOW_SORTS + 1];
extern const char *const pc_work_sort_names[PC_WORK_SORTS + 1];
const char *pc_link_sort_name(pc_link_sort sort);
const char *pc_flow_sort_name(pc_flow_sort sort);
const char *pc_work_sort_name(pc_work_sort sort);

#ifdef __cplusplus
}
#endif
#endif
