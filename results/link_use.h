/* link_use.h: private to results/: how much each link of the engine's trace is used. */
#ifndef PC_RESULTS_LINK_USE_H
#define PC_RESULTS_LINK_USE_H

#include "engine/error.h"
#include "models/schedule/engine_trace.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct pc_link_use {
    double carried_bytes; /* the load over time, up to its last change */
    double peak_bytes_per_s;
    double load_bytes_per_s; /* after the last change, */
    pc_time changed_ps;      /* which was then */
} pc_link_use;

/* Of every link; the caller frees it with pc_free. */
pc_code pc_link_use_make(const pc_engine_trace *trace, pc_link_use **use, pc_error *error);

#ifdef __cplusplus
}
#endif
#endif
