/* export_chrome.h: private to results/export_chrome*.c: a trace on its way to Chrome's trace event format, as its
 * public description ('Trace Event Format', Google, 2016) has it: M names processes and threads, X is something that
 * lasts, C a counter, s and f the ends of an arrow.
 *
 * Process 0 and thread 0 mean "idle" to Perfetto: a stage's process is its number and one, its passes are thread 1.
 * What else it has, and the links, which are a process behind those of the stages, come on further threads.
 */
#ifndef PC_RESULTS_EXPORT_CHROME_H
#define PC_RESULTS_EXPORT_CHROME_H

#include "results/export_private.h"

#include <stdbool.h>
#include <stdint.h>

enum { PC_CHROME_PASSES = 1 /* the thread */ };

/* Something that lasts, and its place: threads of a process make up a track, and on none of them two overlap. */
typedef struct pc_chrome_slice {
    int process;
    int64_t track; /* any number; tracks of a process come in their order */
    pc_time start_ps, end_ps;
    int64_t row;    /* what it is */
    int32_t thread; /* found by pc_chrome_place, as the next */
    int32_t lane;   /* of the threads of its track: from 0 */
    bool is_first;  /* on its thread */
} pc_chrome_slice;

typedef struct pc_chrome {
    const pc_run_row *row;
    const pc_trace_record *record;
    const pc_replay_trace *trace;
    const pc_engine_trace *engine;
    pc_trace_view view;
    pc_chrome_slice *sent;    /* [transfer_count], as placed */
    int32_t *maker, *waiting; /* of each transfer, in the trace's order: the passes at its ends */
    pc_chrome_slice *flows;   /* one a link that it goes over */
    int64_t flow_count;
    pc_chrome_slice *work;
    int32_t *next_thread; /* of each process, from 1: the first that nothing is on */
    pc_outlet out;
    bool is_first;
} pc_chrome;

/* --- export_chrome_events.c: pieces of events --- */

void pc_chrome_start(pc_chrome *chrome, char phase, int process, int thread);
void pc_chrome_end(pc_chrome *chrome);

/* Microseconds, to the picosecond. */
void pc_chrome_add_time(pc_chrome *chrome, const char *name, pc_time time);

/* ,"name":bytes in GiB; ,"name":value */
void pc_chrome_add_gib(pc_chrome *chrome, const char *name, int64_t bytes);
void pc_chrome_add_number(pc_chrome *chrome, const char *name, double value);

/* Names a process or thread, and says where it comes. */
void pc_chrome_add_name(pc_chrome *chrome, const char *what, int process, int thread, const char *name, int index);

/* Finds a thread for each, by process, track and start, from next_thread on, which moves behind them. */
pc_code pc_chrome_place(pc_chrome *chrome, pc_chrome_slice *slices, int64_t count, pc_error *error);

/* Names the slice's thread where it is the first there: `name`, and a number from the second lane on. */
void pc_chrome_add_thread(pc_chrome *chrome, const pc_chrome_slice *slice, const char *name);

/* --- export_chrome_transfers.c: what goes between stages, and the arrows to the passes that wait for it --- */

/* PC_ERROR_INPUT if a transfer has no pass that could wait for it. */
pc_code pc_chrome_list_transfers(pc_chrome *chrome, pc_error *error);
void pc_chrome_add_ways(pc_chrome *chrome);
void pc_chrome_add_transfers(pc_chrome *chrome);

/* --- export_chrome_engine.c: what the engine saw: links, their loads, memory in all, work that is no pass --- */

pc_code pc_chrome_list_engine(pc_chrome *chrome, pc_error *error);
void pc_chrome_add_engine_names(pc_chrome *chrome);
void pc_chrome_add_engine(pc_chrome *chrome);

/* ,"name":... of how long a pass could have run but for its device, where that is known. */
void pc_chrome_add_wait(pc_chrome *chrome, int64_t pass);

#endif
