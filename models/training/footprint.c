#include "models/training/footprint.h"

#include "engine/alloc.h"
#include "engine/numbers.h"
#include "models/schedule/copy_levels.h"
#include "models/schedule/dependencies.h"
#include "models/training/graph_pools.h"

/* "stage 3: activations at 0.41 s: 92.1 GiB in all of 76 GiB: 16.1 GiB too much" */
static void note(const pc_outline *outline, int device, const char *what, const char *when, int64_t bytes,
                 pc_iteration *iteration) {
    int64_t capacity = outline->device[device].capacity_bytes;
    iteration->status = PC_RUN_OUT_OF_MEMORY;
    pc_write_message(iteration->message, sizeof iteration->message,
                     "stage %d: %s %s: %.4g GiB in all of %.4g GiB: %.3g GiB too much", device, what, when,
                     (double)bytes / PC_BYTES_PER_GIB, (double)capacity / PC_BYTES_PER_GIB,
                     (double)(bytes - capacity) / PC_BYTES_PER_GIB);
}

/* ---- what is held all the time ---- */

/* The kind with which the sum exceeds the capacity. */
static const char *first_too_large(const pc_device_outline *held) {
    static const char *const names[] = {"parameters", "gradients", "optimizer", "buffers"};
    const int64_t sizes[] = {held->fixed_parameters, held->fixed_gradients, held->fixed_optimizer, held->fixed_buffers};
    int64_t sum = 0;
    int kind = 0;
    for (; kind < 3; kind++) {
        sum += sizes[kind];
        if (sum > held->capacity_bytes) break;
    }
    return names[kind];
}

static const char *copies_of_step(const pc_outline *outline) {
    return pc_optimizer_copied_bytes(&outline->cut.optimizer) > 0 ? "copies in fp32" : "gradients in fp32";
}

/* In the step, where it fits until then. */
static void note_fixed(const pc_outline *outline, int device, pc_iteration *iteration) {
    const pc_device_outline *x = &outline->device[device];
    int64_t sum = pc_outline_fixed(outline, device);
    if (sum > x->capacity_bytes)
        note(outline, device, first_too_large(x), "at the start", sum, iteration);
    else
        note(outline, device, copies_of_step(outline), "at the step", sum + x->step_bytes, iteration);
}

pc_code pc_footprint_fixed(const pc_outline *outline, pc_iteration *iteration, pc_error *error) {
    int worst = -1;
    int64_t missing = 0;
    iteration->memory = pc_alloc((size_t)outline->devices, sizeof *iteration->memory);
    if (!iteration->memory) return pc_error_no_memory(error);
    iteration->devices = outline->devices;
    for (int d = 0; d < outline->devices; d++) {
        const pc_device_outline *x = &outline->device[d];
        int64_t sum = pc_outline_fixed(outline, d), most = sum + x->step_bytes;
        iteration->memory[d] = (pc_device_memory){.parameters = x->fixed_parameters,
                                                  .gradients = x->fixed_gradients,
                                                  .optimizer = x->fixed_optimizer,
                                                  .buffers = x->fixed_buffers,
                                                  .peak_bytes = sum,
                                                  .capacity_bytes = x->capacity_bytes};
        if (most - x->capacity_bytes <= missing) continue;
        missing = most - x->capacity_bytes;
        worst = d;
    }
    if (worst >= 0) note_fixed(outline, worst, iteration);
    return PC_OK;
}

/* ---- activations ---- */

typedef int64_t activations_of(const pc_outline *outline, const pc_costs *costs, int device);

static int64_t least_activations(const pc_outline *outline, const pc_costs *costs, int device) {
    return pc_generator_least_memory(outline->spec->generator, costs, device);
}

/* Of the chunk whose are most. */
static int64_t one_activation(const pc_outline *outline, const pc_costs *costs, int device) {
    int64_t most = 0;
    for (int c = 0; c < outline->chunks; c++) {
        int64_t bytes = costs->activation_bytes[pc_costs_index(costs, device, c)];
        if (bytes > most) most = bytes;
    }
    return most;
}

/* Out of memory where some stage has no room for these: the stage that lacks most, which is returned; -1 for none. */
static int need_room(const pc_outline *outline, const pc_costs *costs, activations_of *activations,
                     pc_iteration *iteration) {
    int worst = -1;
    int64_t missing = 0;
    for (int d = 0; d < outline->devices; d++) {
        pc_device_memory *x = &iteration->memory[d];
        int64_t too_much = pc_outline_fixed(outline, d) + activations(outline, costs, d) - x->capacity_bytes;
        if (too_much <= missing) continue;
        missing = too_much;
        worst = d;
    }
    if (worst >= 0)
        note(outline, worst, "activations", "of one microbatch", outline->device[worst].capacity_bytes + missing,
             iteration);
    return worst;
}

void pc_footprint_least(const pc_outline *outline, const pc_costs *costs, pc_iteration *iteration) {
    need_room(outline, costs, least_activations, iteration);
}

typedef struct climb {
    int64_t peak;
    pc_time peak_ps, full_ps; /* when the peak is first reached, and when the capacity is first exceeded */
} climb;

/* start_ps: NULL if nobody asks when. */
static climb climb_stage(const pc_schedule *schedule, const pc_pass_index *index, const pc_costs *costs,
                         int64_t room_bytes, const pc_time *start_ps, int d) {
    climb found = {.full_ps = -1};
    int64_t level = 0;
    for (int64_t i = schedule->offsets[d]; i < schedule->offsets[d + 1]; i++) {
        pc_pass pass = schedule->passes[i];
        level += pc_costs_taken_at(costs, schedule, d, i, pc_pass_is_recomputed(index, d, pass));
        if (level > found.peak) {
            found.peak = level;
            found.peak_ps = start_ps ? start_ps[i] : 0;
            if (found.full_ps < 0 && level > room_bytes) found.full_ps = found.peak_ps;
        }
        level -= pc_costs_given_at(costs, schedule, d, i);
    }
    return found;
}

/* Activations fit, but not the step beside what CUDA graphs keep of them. */
static void note_activations(const pc_outline *outline, int device, pc_time full_ps, pc_iteration *iteration) {
    char when[48];
    if (full_ps < 0) {
        note(outline, device, copies_of_step(outline), "beside CUDA graphs at the step",
             iteration->memory[device].peak_bytes, iteration);
        return;
    }
    pc_write_message(when, sizeof when, "at %.4g s", pc_time_to_seconds(full_ps));
    note(outline, device, "activations", when, iteration->memory[device].peak_bytes, iteration);
}

/* ---- the host ---- */

static void note_host(const pc_outline *outline, int device, int64_t bytes, pc_iteration *iteration) {
    int64_t share = pc_machine_host_memory(&outline->spec->machine);
    iteration->status = PC_RUN_OUT_OF_MEMORY;
    pc_write_message(iteration->message, sizeof iteration->message,
                     "stage %d: host memory: %.4g GiB a GPU of a share of %.4g GiB: %.3g GiB too much", device,
                     (double)bytes / PC_BYTES_PER_GIB, (double)share / PC_BYTES_PER_GIB,
                     (double)(bytes - share) / PC_BYTES_PER_GIB);
}

/* What F has sent and no backward pass fetched yet, the most, where copies are part of passes. */
static int64_t most_on_host(const pc_outline *outline, const pc_schedule *schedule, int d) {
    int64_t level = 0, most = 0;
    for (int64_t i = schedule->offsets[d]; i < schedule->offsets[d + 1]; i++) {
        pc_pass pass = schedule->passes[i];
        int64_t bytes = pc_outline_part(outline, d, pass.chunk)->activation.offloaded;
        if (pass.kind == PC_PASS_F) level += bytes;
        most = pc_max(most, level);
        if (pass.kind == PC_PASS_B || pass.kind == PC_PASS_BW) level -= bytes;
    }
    return most;
}

/* A host that nobody knows the size of has room for all. */
static void add_host(const pc_outline *outline, const pc_schedule *schedule, const pc_copy_levels *levels,
                     pc_iteration *iteration) {
    int64_t share = pc_machine_host_memory(&outline->spec->machine), missing = 0;
    int worst = -1;
    for (int d = 0; d < outline->devices; d++) {
        int64_t bytes =
            outline->device[d].host_bytes + (levels ? levels->host_bytes[d] : most_on_host(outline, schedule, d));
        iteration->memory[d].host_bytes = bytes;
        if (share == 0 || bytes - share <= missing) continue;
        missing = bytes - share;
        worst = d;
    }
    if (worst >= 0 && !iteration->status) note_host(outline, worst, iteration->memory[worst].host_bytes, iteration);
}

/* ---- activations of a schedule ---- */

/* The step comes when activations are gone, but for those in graphs' pools, of which the engine knows nothing. */
static void add_step(const pc_outline *outline, const pc_schedule *schedule, const int64_t *seen_bytes, int device,
                     pc_device_memory *x) {
    const pc_device_outline *held = &outline->device[device];
    pc_graph_pools pools = {.outside = x->activations};
    if (outline->cut.graphs) pools = pc_graph_pools_of(outline, schedule, device);
    int64_t fixed = pc_outline_fixed(outline, device);
    int64_t step_bytes = held->step_bytes > 0 ? held->step_bytes + pools.held : 0;
    int64_t counted = pc_max(pools.outside, step_bytes - pools.hidden);
    if (step_bytes > x->activations) x->buffers += step_bytes - x->activations;
    x->peak_bytes = fixed + pc_max(step_bytes, x->activations);
    if (seen_bytes) x->peak_bytes = outline->cut.graphs ? pc_max(*seen_bytes, fixed + step_bytes) : *seen_bytes;
    int64_t without_graphs = x->peak_bytes - held->reserved_bytes;
    x->allocated_bytes =
        outline->cut.graphs ? pc_min(without_graphs, fixed - held->graph_bytes + counted) : without_graphs;
}

/* Where copies run beside passes, their levels say it. */
static climb climb_levels(const pc_copy_levels *levels, int64_t room_bytes, int d) {
    climb found = {.full_ps = -1};
    for (int64_t i = levels->offsets[d]; i < levels->offsets[d + 1]; i++) {
        int64_t level = levels->level_bytes[i];
        if (level <= found.peak) continue;
        found.peak = level;
        found.peak_ps = levels->time_ps[i];
        if (found.full_ps < 0 && level > room_bytes) found.full_ps = found.peak_ps;
    }
    return found;
}

pc_code pc_footprint_activations(const pc_outline *outline, const pc_schedule *schedule, const pc_costs *costs,
                                 const pc_time *start_ps, const pc_time *end_ps, const pc_memory_seen *seen,
                                 pc_iteration *iteration, pc_error *error) {
    pc_pass_index index;
    pc_copy_levels levels = {0};
    int worst = -1;
    pc_time full_ps = 0;
    int64_t missing = 0;
    bool has_copies = pc_costs_have_copies(costs);
    pc_code code = has_copies ? pc_copy_levels_make(schedule, costs, start_ps, end_ps, &levels, error) : PC_OK;
    if (!code) code = pc_pass_index_create_if_recomputing(schedule, &index, error);
    if (code) {
        pc_copy_levels_free(&levels);
        return code;
    }
    for (int d = 0; d < outline->devices; d++) {
        int64_t room = pc_outline_room(outline, d);
        climb found =
            has_copies ? climb_levels(&levels, room, d) : climb_stage(schedule, &index, costs, room, start_ps, d);
        pc_device_memory *x = &iteration->memory[d];
        x->activations = found.peak;
        x->peak_ps = found.peak_ps;
        add_step(outline, schedule, seen ? &seen->peak_bytes[d] : NULL, d, x);
        if (seen) found.full_ps = seen->overdrawn_ps[d];
        if (x->peak_bytes - x->capacity_bytes <= missing) continue;
        missing = x->peak_bytes - x->capacity_bytes;
        full_ps = found.full_ps;
        worst = d;
    }
    if (worst >= 0) note_activations(outline, worst, full_ps, iteration);
    add_host(outline, schedule, has_copies ? &levels : NULL, iteration);
    pc_copy_levels_free(&levels);
    pc_pass_index_free(&index);
    return PC_OK;
}

pc_code pc_footprint_order(const pc_outline *outline, const pc_schedule *schedule, const pc_costs *costs,
                           pc_iteration *iteration, pc_error *error) {
    pc_pass_index index;
    const pc_iteration_spec *spec = outline->spec;
    if (!spec->is_trial || spec->waits_for_memory || pc_costs_have_copies(costs)) return PC_OK;
    pc_code code = pc_pass_index_create_if_recomputing(schedule, &index, error);
    if (code) return code;
    for (int d = 0; !iteration->status && d < outline->devices; d++) {
        int64_t room = pc_outline_room(outline, d), peak = climb_stage(schedule, &index, costs, room, NULL, d).peak;
        if (peak > room)
            note(outline, d, "activations", "in this order", pc_outline_fixed(outline, d) + peak, iteration);
    }
    pc_pass_index_free(&index);
    return PC_OK;
}

/* What a stage had to hold to go on, which is more than it can. */
static void say_peak(const pc_outline *outline, int device, int64_t bytes, pc_time when_ps, pc_iteration *iteration) {
    pc_device_memory *x = &iteration->memory[device];
    x->activations = bytes - pc_outline_fixed(outline, device);
    x->peak_bytes = bytes;
    x->peak_ps = when_ps;
}

void pc_footprint_stuck(const pc_outline *outline, const pc_schedule *schedule, const pc_costs *costs,
                        const pc_pass_stuck *stuck, pc_iteration *iteration) {
    int device = pc_stage_of_position(schedule, stuck->position);
    char name[PC_PASS_NAME_SIZE];
    int full = need_room(outline, costs, one_activation, iteration);
    if (full >= 0) {
        say_peak(outline, full, pc_outline_fixed(outline, full) + one_activation(outline, costs, full), 0, iteration);
        return;
    }
    say_peak(outline, device, stuck->level_bytes + stuck->asked_bytes, stuck->when_ps, iteration);
    pc_pass_name(schedule, schedule->passes[stuck->position], name);
    iteration->status = PC_RUN_OUT_OF_MEMORY;
    pc_write_message(
        iteration->message, sizeof iteration->message,
        "stage %d: %s waits for %.4g GiB of memory: %.4g of %.4g GiB are taken, and from %.4g s on no pass "
        "can run that gives any back",
        device, name, (double)stuck->asked_bytes / PC_BYTES_PER_GIB, (double)stuck->level_bytes / PC_BYTES_PER_GIB,
        (double)outline->device[device].capacity_bytes / PC_BYTES_PER_GIB, pc_time_to_seconds(stuck->when_ps));
}
