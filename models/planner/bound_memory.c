#include "models/planner/bounder.h"

#include "engine/numbers.h"
#include "models/planner/bound_twin.h"

/* What F leaves of a part of each sort that the stage has, in each state; its last state is never negative (memory.h).
 * Of parts of one sort that differ, for a recipe leaves other layers in 16 bits, the least. */
static void find_bytes(const plan_bounder *bounder, const pc_outline *outline, int device,
                       int64_t bytes[SORTS][HELD_STATES]) {
    bool has[SORTS] = {false};
    for (int sort = 0; sort < SORTS; sort++)
        for (int state = 0; state < HELD_STATES; state++) bytes[sort][state] = 0;
    for (int c = 0; c < outline->chunks; c++) {
        const pc_part_activation *x = &pc_outline_part(outline, device, c)->activation;
        int part = pc_placement_part(outline->placement, outline->devices, device, c);
        plan_part_sort sort = plan_sort_of(part, outline->parts);
        int64_t *of_sort = bytes[sort];
        const int64_t states[HELD_STATES] = {
            [HELD_WHOLE] = x->taken, [HELD_KEPT] = x->kept, [HELD_AFTER_B] = x->taken - x->b_frees};
        for (int state = 0; state < HELD_STATES; state++)
            of_sort[state] = has[sort] ? pc_min(of_sort[state], states[state]) : states[state];
        has[sort] = true;
    }
    (void)bounder;
}

/* Every microbatch has been through all its F of a stage before the first of its backward passes there, as
 * pc_generator_least_memory says. So while one chunk holds all that it ever takes, those of the parts before it hold
 * what F kept; without recomputation that is all, too. */
static int64_t one_microbatch(const pc_outline *outline, int device) {
    bool visits_all = pc_placement_visited(outline->placement, outline->chunks) == outline->chunks;
    int64_t kept = 0, most = 0;
    for (int c = 0; c < outline->chunks; c++) {
        const pc_part_activation *x = &pc_outline_part(outline, device, c)->activation;
        if (kept + x->taken > most) most = kept + x->taken;
        if (visits_all) kept += x->kept;
    }
    return most;
}

/* What copies beside passes take to the host and back, of the chunk that has least of it: a pass that takes activations
 * has its own chunk's, and bounds of the rest count none of them. */
static int64_t least_copied(const pc_outline *outline, int device) {
    int64_t least = INT64_MAX;
    if (!pc_offload_is_beside_passes(&outline->cut.offload)) return 0;
    for (int c = 0; c < outline->chunks; c++)
        least = pc_min(least, pc_outline_part(outline, device, c)->activation.offloaded);
    return least;
}

/* What is held all the time is the outline's, exactly, and so is what the step needs in the place of activations; so
 * are the activations of a schedule that does not search, whose order is known (held.h). One that searches holds a
 * microbatch at least. Of layers that fit nowhere, however they are divided, no more is known. */
static int64_t bound_memory(const plan_bounder *bounder, const pc_outline *outline) {
    int64_t most = 0;
    for (int d = 0; d < outline->devices; d++) {
        int64_t bytes[SORTS][HELD_STATES], held;
        if (bounder->held) {
            find_bytes(bounder, outline, d, bytes);
            held = plan_held_most(bounder->held, d, (const int64_t(*)[HELD_STATES])bytes);
        } else {
            held = one_microbatch(outline, d);
        }
        held += least_copied(outline, d);
        if (held < outline->device[d].step_bytes) held = outline->device[d].step_bytes;
        int64_t sum = pc_outline_fixed(outline, d) + held;
        if (sum > most) most = sum;
    }
    return outline->fits_nowhere ? outline->device[0].capacity_bytes + 1 : most;
}

int64_t plan_bound_memory(const plan_bounder *bounder, const pc_outline *outline) {
    int64_t bytes = bound_memory(bounder, outline);
    const plan_twin *twin = plan_twin_of(bounder);
    return twin ? pc_min(bytes, bound_memory(&twin->bounder, &twin->outline)) : bytes;
}

static bool exceeds_host(const pc_outline *outline) {
    int64_t share = pc_machine_host_memory(&outline->spec->machine);
    for (int d = 0; share > 0 && d < outline->devices; d++)
        if (outline->device[d].host_bytes > share) return true;
    return false;
}

bool plan_exceeds_host(const plan_bounder *bounder, const pc_outline *outline) {
    const plan_twin *twin = plan_twin_of(bounder);
    return exceeds_host(outline) && (!twin || exceeds_host(&twin->outline));
}
