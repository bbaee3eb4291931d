/* memory_curve.h: private to results/ and cli/: a stage's memory over time, by kind, of a trace. */
#ifndef PC_RESULTS_MEMORY_CURVE_H
#define PC_RESULTS_MEMORY_CURVE_H

#include "results/store/store.h"

#include <stdbool.h>

/* What is wrong with a trace that does not say it. */
#define PC_MEMORY_CURVE_UNKNOWN                                                                                        \
    "the trace does not say what memory is made of; expected that of a run on a cluster, by this version of pipecast " \
    "or a newer one"

/* Whether the trace says what memory is made of: of a run on a cluster that fits; no older file. */
bool pc_memory_curve_is_known(const pc_trace_record *record);

/* Bytes of each kind from a change of level on. What is no activation is the same all the time. */
void pc_memory_curve_at(const pc_trace_record *record, int64_t level, int64_t bytes[PC_MEMORY_KINDS]);

/* The same of a stage without activations. */
void pc_memory_curve_fixed(const pc_trace_record *record, int device, int64_t bytes[PC_MEMORY_KINDS]);

int64_t pc_memory_curve_sum(const int64_t bytes[PC_MEMORY_KINDS]);

#endif
