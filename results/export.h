/* export.h: one run's trace for other programs: trace viewers (chrome's JSON, which Perfetto opens) and CSV. */
#ifndef PC_RESULTS_EXPORT_H
#define PC_RESULTS_EXPORT_H

#include "engine/error.h"
#include "results/row.h"
#include "results/store/store.h"

#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The run as JSON in Chrome's trace event format (its JSON object form). Every device is a process. In it are a thread
 * of passes, one of transfers sent to each other stage (several, if they overlap), and a counter of memory:
 * activations, and beside them on clusters what is held all the time. Process and thread numbers count from 1. Every
 * pass is one complete event ("ph": "X") with its microbatch, chunk and kind in `args`; a transfer is one too, with
 * those of the pass that waits for it, and a flow (arrow) joins it to that pass. If the engine ran all of it, passes
 * say how long they waited for their device (`waited_us`). Links are then a process of their own, with a thread for
 * each, and further ones if what goes over it overlaps. Everything that is sent is an event there (bytes, ready_us,
 * waited_us, alone_us), and the load in GB/s a counter. Stages have a counter of all that they hold, and a thread of
 * the work that is no pass. `ts` and `dur` are microseconds, exact to the picosecond. PC_ERROR_INPUT, and nothing
 * written, where the trace contradicts itself; PC_ERROR_IO if the stream fails. */
pc_code pc_export_chrome(const pc_run_row *row, const pc_trace_record *record, FILE *stream, pc_error *error);

/* The same as CSV: a header and a line an event: event (pass, transfer, level, block), device, to_device, kind, chunk,
 * microbatch, start_ps, end_ps, bytes, start_cells, end_cells, interval_cells. Of a transfer, kind, chunk and
 * microbatch are those of the pass on to_device that waits for it. A level is what the device holds in activations from
 * start_ps on. A block is a pass of the building block, if the file has one, in cells (block.h), with the interval
 * after which it repeats. What an event does not have is empty. PC_ERROR_IO if the stream fails. */
pc_code pc_export_csv(const pc_run_row *row, const pc_trace_record *record, FILE *stream, pc_error *error);

/* The order of its passes alone, as PyTorch's pipelining runtime loads it (pc_schedule_write_torch_csv): of a schedule
 * that was read from such a file, that file in its canonical form. PC_ERROR_INPUT, and nothing written, where the
 * schedule has what the runtime does not know, or the trace contradicts itself; PC_ERROR_IO if the stream fails. */
pc_code pc_export_torch_csv(const pc_run_row *row, const pc_trace_record *record, FILE *stream, pc_error *error);

/* What one stage does, as an execution trace of MLCommons Chakra (schema/protobuf/et_def.proto, 0.0.4), which ASTRA-sim
 * runs: a GlobalMetadata and then Nodes, each behind its length. Every pass is a COMP_NODE behind the one before it on
 * its stage, and behind the COMM_RECV_NODE of what it waits for; what it makes is a COMM_SEND_NODE behind it. Stages
 * are the ranks 0 to p-1, and both ends of a message have one comm_tag. Times are whole microseconds, as the schema has
 * them; the attribute duration_ps has all of it. `message_bytes`: of every message, where the trace does not say (0: it
 * must). PC_ERROR_INPUT, and nothing written, if nobody says, or the trace contradicts itself; PC_ERROR_IO if the
 * stream fails. */
pc_code pc_export_chakra(const pc_run_row *row, const pc_trace_record *record, int stage, int64_t message_bytes,
                         FILE *stream, pc_error *error);

/* One table of the trace alone, with columns of its own (docs/results-format.md): a header and a line a row, numbers as
 * in the results file, empty if there is none. Those from LINKS on are what the engine saw: PC_ERROR_INPUT, and
 * nothing written, of a run that it did not run whole. */
typedef enum pc_export_sort {
    PC_EXPORT_PASSES,
    PC_EXPORT_TRANSFERS,
    PC_EXPORT_LEVELS, /* activation memory */
    PC_EXPORT_KINDS,  /* all memory, by kind: PC_ERROR_INPUT where the trace does not say */
    PC_EXPORT_LINKS,
    PC_EXPORT_LOADS,
    PC_EXPORT_FLOWS,
    PC_EXPORT_QUEUE,
    PC_EXPORT_MEMORY, /* all that a stage's GPU holds */
    PC_EXPORT_WORK,
    PC_EXPORT_SORTS
} pc_export_sort;

pc_code pc_export_table(pc_export_sort sort, const pc_trace_record *record, FILE *stream, pc_error *error);

#ifdef __cplusplus
}
#endif
#endif
