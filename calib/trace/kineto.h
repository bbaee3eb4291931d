/* kineto.h: traces of PyTorch's profiler (Kineto, torch.profiler's export_chrome_trace), gzip'd or not.
 *
 * A trace is JSON in Chrome's trace event format: `traceEvents` with complete events ("ph": "X") whose `ts` and `dur`
 * are microseconds, and beside it `distributedInfo` with the rank. What is read of it:
 *
 *   cat user_annotation      the passes, on the thread that launches them (torch.profiler.record_function)
 *   cat gpu_user_annotation  the same on the GPU, a stream each: from the first kernel of the pass to the end of its
 * last. If there are any, these are the times; of several streams those of the one that computes cat kernel NCCL's
 * sends and receives, with the arguments that PyTorch gives them: "Collective name", "In msg nelems", "dtype", "Src
 * Rank", "Dst Rank" or "Process Group Ranks" name [memory]            allocations on the GPU (profile_memory=True):
 * "Bytes", "Total Allocated"
 *
 * A trace is read piece by piece: memory grows with its passes and messages, and not with kernels, operators or stacks.
 */
#ifndef PC_CALIB_TRACE_KINETO_H
#define PC_CALIB_TRACE_KINETO_H

#include "calib/trace/rank_trace.h"
#include "engine/error.h"

#ifdef __cplusplus
extern "C" {
#endif

/* PC_ERROR_INPUT, with path and line: no such file, no JSON, no list of events, or no event that is a forward pass. If
 * there are allocations it is read twice. Free the trace with pc_rank_trace_free. */
pc_code pc_kineto_read(const char *path, pc_rank_trace *trace, pc_error *error);

#ifdef __cplusplus
}
#endif
#endif
