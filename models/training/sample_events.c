#include "models/training/sample_events.h"

#include "engine/alloc.h"
#include "models/schedule/dependencies.h"

#include <string.h>

static pc_code find_senders(const pc_schedule *schedule, int32_t *sender_of, pc_error *error) {
    pc_pass_index index;
    pc_predecessor sender;
    pc_code code = pc_pass_index_create(schedule, &index, error);
    if (code) return code;
    for (int d = 0; d < schedule->devices; d++)
        for (int64_t i = schedule->offsets[d]; i < schedule->offsets[d + 1]; i++)
            sender_of[i] = pc_pass_sender(&index, d, schedule->passes[i], &sender) ? sender.position : PC_NO_PASS;
    pc_pass_index_free(&index);
    return PC_OK;
}

/* Of a replica: passes, transfers, chunks. */
static void give_out(pc_sample_events *events, size_t replica, size_t passes, size_t cells) {
    pc_time *block = events->block + replica * (2 * passes + cells);
    events->times[replica] = (pc_replica_times){block, block + passes, block + 2 * passes};
}

pc_code pc_sample_events_open(const pc_outline *outline, const pc_schedule *schedule, int64_t most_replicas,
                              pc_sample_events *events, pc_error *error) {
    size_t passes = (size_t)schedule->offsets[schedule->devices], replicas = (size_t)most_replicas;
    size_t cells = (size_t)schedule->devices * (size_t)schedule->chunks;
    *events = (pc_sample_events){.schedule = schedule, .overlaps_p2p = outline->spec->overlaps_p2p};
    events->sender = pc_alloc(passes, sizeof *events->sender);
    events->times = pc_alloc(replicas, sizeof *events->times);
    events->block = pc_alloc(replicas, (2 * passes + cells) * sizeof *events->block);
    if (!events->sender || !events->times || !events->block) return pc_error_no_memory(error);
    for (size_t r = 0; r < replicas; r++) give_out(events, r, passes, cells);
    return find_senders(schedule, events->sender, error);
}

void pc_sample_events_close(pc_sample_events *events) {
    pc_free(events->sender);
    pc_free(events->times);
    pc_free(events->block);
    memset(events, 0, sizeof *events);
}

void pc_sample_events_keep(pc_sample_events *events, const pc_time *duration_ps, const pc_time *transfer_ps,
                           const pc_time *ready_ps) {
    int64_t passes = events->schedule->offsets[events->schedule->devices];
    size_t cells = (size_t)events->schedule->devices * (size_t)events->schedule->chunks;
    pc_time *block = events->block + (int64_t)events->replicas++ * (2 * passes + (int64_t)cells);
    pc_time *message_ps = block + passes, *chunk_ps = block + 2 * passes;
    memcpy(block, duration_ps, (size_t)passes * sizeof *block);
    memset(chunk_ps, 0, cells * sizeof *chunk_ps);
    if (ready_ps) memcpy(chunk_ps, ready_ps, cells * sizeof *chunk_ps);
    for (int64_t i = 0; i < passes; i++) {
        if (!events->overlaps_p2p)
            message_ps[i] = transfer_ps[i];
        else if (events->sender[i] != PC_NO_PASS)
            message_ps[events->sender[i]] = transfer_ps[i];
    }
}

pc_code pc_sample_events_run(pc_sample_events *events, const pc_outline *outline, int held_device, pc_time held_ps,
                             pc_flows_result *result, pc_error *error) {
    const pc_flows_spec how = {.replicas = events->replicas,
                               .times = events->times,
                               .is_closed = true,
                               .has_memory = true,
                               .held_device = held_device,
                               .held_ps = held_device < 0 ? 0 : held_ps};
    events->replicas = 0;
    return pc_flows_run(outline, events->schedule, &how, result, error);
}
