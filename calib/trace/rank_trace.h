/* rank_trace.h: what a profiler saw of one rank: passes, and messages to and from other ranks. Plain data. */
#ifndef PC_CALIB_TRACE_RANK_TRACE_H
#define PC_CALIB_TRACE_RANK_TRACE_H

#include "engine/error.h"

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    PC_TRACED_NO_STAGE = -1,
    PC_TRACED_MOST = 1 << 24 /* passes of a rank, or messages: 64 bytes each */
};

/* How a pass is called in the trace. PC_TRACED_B is a backward pass that may be whole or half of one: it is whole if
 * its rank has no W of the same part and microbatch. */
typedef enum pc_traced_kind {
    PC_TRACED_F,
    PC_TRACED_B,
    PC_TRACED_INPUT, /* B, of which W is split off */
    PC_TRACED_W,
    PC_TRACED_WHOLE, /* both */
    PC_TRACED_R
} pc_traced_kind;

typedef struct pc_traced_name {
    pc_traced_kind kind;
    int32_t microbatch;
    int32_t chunk; /* of its stage; or, if `has_part`, the part of the model, in the order of the forward pass */
    bool has_part;
} pc_traced_name;

/* Reads "F3", "b3" (chunk 1), "F3.1" (microbatch.chunk), "BW3", "R3", PyTorch's "PP:2F3" (part 2, microbatch 3; there I
 * is half of a backward pass and B a whole one), and "Forward 3", "Backward 3". False of any other name. */
bool pc_traced_name_parse(const char *text, pc_traced_name *name);

typedef struct pc_traced_pass {
    pc_traced_name name;
    int32_t occurrence; /* how many of this name came before it: the iteration, from 0 */
    int64_t start_ns, end_ns;
    int64_t bytes; /* allocated in it and not given back in it, if the rank has_memory; else 0 */
} pc_traced_pass;

typedef struct pc_traced_message {
    bool is_sent; /* else received */
    int32_t peer; /* the rank at the other end */
    int64_t start_ns, end_ns, bytes;
} pc_traced_message;

typedef struct pc_rank_trace {
    int64_t rank;           /* PC_TRACED_NO_STAGE if the trace does not say */
    bool is_of_device;      /* the passes' times are the GPU's, not those of the thread that launched them */
    int64_t world_size;     /* ranks that ran; 0 if the trace does not say */
    int64_t bad_passes;     /* left out: without a start or a length, or with a negative one */
    bool has_bad_rank;      /* what it says of its rank is no rank */
    bool has_allocations;   /* the profiler followed allocations */
    bool has_memory;        /* and it is known whose they are */
    int64_t held_bytes;     /* allocated when the first pass began; with has_memory */
    pc_traced_pass *passes; /* by start; owned */
    int64_t pass_count;
    pc_traced_message *messages; /* by start; owned */
    int64_t message_count;
} pc_rank_trace;

/* Frees what the trace owns and zeroes it; a zeroed one is fine. */
void pc_rank_trace_free(pc_rank_trace *trace);

#ifdef __cplusplus
}
#endif
#endif
