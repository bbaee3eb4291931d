/* sample_events.h: the pipelines of one sample's replicas, as the engine is to run them. Private to models/training/.
 */
#ifndef PC_MODELS_TRAINING_SAMPLE_EVENTS_H
#define PC_MODELS_TRAINING_SAMPLE_EVENTS_H

#include "models/training/lower.h"

/* What the replicas' passes and transfers take. Owned; pc_sample_events_close. */
typedef struct pc_sample_events {
    const pc_schedule *schedule; /* borrowed */
    bool overlaps_p2p;
    int replicas;            /* kept so far */
    int32_t *sender;         /* by position: the pass of another stage that a pass waits for; PC_NO_PASS */
    pc_replica_times *times; /* [the most replicas], into: */
    pc_time *block;
} pc_sample_events;

pc_code pc_sample_events_open(const pc_outline *outline, const pc_schedule *schedule, int64_t most_replicas,
                              pc_sample_events *events, pc_error *error);
void pc_sample_events_close(pc_sample_events *events);

/* Keeps one more replica: by position, what passes take, and transfers: of the pass that waits for it, or, where stages
 * wait for what they send, of the one behind which it goes. ready_ps: [devices][chunks]; NULL: all at once. */
void pc_sample_events_keep(pc_sample_events *events, const pc_time *duration_ps, const pc_time *transfer_ps,
                           const pc_time *ready_ps);

/* Runs those that were kept, and forgets them. */
pc_code pc_sample_events_run(pc_sample_events *events, const pc_outline *outline, int held_device, pc_time held_ps,
                             pc_flows_result *result, pc_error *error);

#endif
