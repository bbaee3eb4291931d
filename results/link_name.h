/* link_name.h: private to results/: what a link of the engine's trace is called, in pictures and exports. */
#ifndef PC_RESULTS_LINK_NAME_H
#define PC_RESULTS_LINK_NAME_H

#include "models/schedule/engine_trace.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { PC_LINK_NAME_SIZE = 80 };

/* Whether the links are of several replicas, which their names then say. */
bool pc_link_has_replicas(const pc_engine_trace *trace);

/* "stage 0 to 1", "stage 3 NIC out", "replica 2, stage 3 uplink in". */
void pc_link_name(const pc_engine_trace *trace, int64_t link, bool with_replica, char name[PC_LINK_NAME_SIZE]);

#ifdef __cplusplus
}
#endif
#endif
