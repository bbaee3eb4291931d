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
static void give_out(pc_sample_events *x, size_t replica, size_t passes, size_t cells) {
    pc_time *block = x->block + replica * (2 * passes + cells);
    x->times[replica] = (pc_replica_times){block, block + passes, block + 2 * passes};
}

pc_code pc_sample_events_open(const pc_iteration_plan *plan, const pc_schedule *schedule, int64_t most_replicas,
                              pc_sample_events *x, pc_error *error) {
    size_t passes = (size_t)schedule->offsets[schedule->devices], replicas = (size_t)most_replicas;
    size_t cells = (size_t)schedule->devices * (size_t)schedule->chunks;
    *x = (pc_sample_events){.schedule = schedule, .overlaps_p2p = plan->spec->overlaps_p2p};
    x->sender = pc_alloc(passes, sizeof *x->sender);
    x->times = pc_alloc(replicas, sizeof *x->times);
    x->block = pc_alloc(replicas, (2 * passes + cells) * sizeof *x->block);
    if (!x->sender || !x->times || !x->block) return pc_error_no_memory(error);
    for (size_t r = 0; r < replicas; r++) give_out(x, r, passes, cells);
    return find_senders(schedule, x->sender, error);
}

void pc_sample_events_close(pc_sample_events *x) {
    pc_free(x->sender);
    pc_free(x->times);
    pc_free(x->block);
    memset(x, 0, sizeof *x);
}

void pc_sample_events_keep(pc_sample_events *x, const pc_time *duration_ps, const pc_time *transfer_ps,
                           const pc_time *ready_ps) {
    int64_t passes = x->schedule->offsets[x->schedule->devices];
    size_t cells = (size_t)x->schedule->devices * (size_t)x->schedule->chunks;
    pc_time *block = x->block + (int64_t)x->replicas++ * (2 * passes + (int64_t)cells);
    pc_time *message_ps = block + passes, *chunk_ps = block + 2 * passes;
    memcpy(block, duration_ps, (size_t)passes * sizeof *block);
    memset(chunk_ps, 0, cells * sizeof *chunk_ps);
    if (ready_ps) memcpy(chunk_ps, ready_ps, cells * sizeof *chunk_ps);
    for (int64_t i = 0; i < passes; i++) {
        if (!x->overlaps_p2p)
            message_ps[i] = transfer_ps[i];
        else if (x->sender[i] != PC_NO_PASS)
            message_ps[x->sender[i]] = transfer_ps[i];
    }
}

pc_code pc_sample_events_run(pc_sample_events *x, const pc_iteration_plan *plan, int held_device, pc_time held_ps,
                             pc_flows_result *result, pc_error *error) {
    const pc_flows_spec how = {.replicas = x->replicas,
                               .times = x->times,
                               .is_closed = true,
                               .has_memory = true,
                               .held_device = held_device,
                               .held_ps = held_device < 0 ? 0 : held_ps};
    x->replicas = 0;
    return pc_flows_run(plan, x->schedule, &how, result, error);
}
