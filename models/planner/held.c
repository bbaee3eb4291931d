#include "models/planner/held.h"

#include "engine/alloc.h"
#include "engine/hash.h"

#include <stdbool.h>
#include <string.h>

/* Moments while they are gathered: a stage's own stand from `first` on. */
typedef struct gathering {
    plan_moment *moments;
    int64_t first, count, room;
} gathering;

static bool is_within(const plan_moment *a, const plan_moment *b) {
    const int32_t *x = &a->count[0][0], *y = &b->count[0][0];
    for (int i = 0; i < SORTS * HELD_STATES; i++)
        if (x[i] > y[i]) return false;
    return true;
}

/* Adds a moment unless one of the stage's is as full, and drops those that it is as full as. */
static bool add_moment(gathering *moments, const plan_moment *moment) {
    for (int64_t i = moments->count; i-- > moments->first;)
        if (is_within(moment, &moments->moments[i])) return true;
    int64_t kept = moments->first;
    for (int64_t i = moments->first; i < moments->count; i++)
        if (!is_within(&moments->moments[i], moment)) moments->moments[kept++] = moments->moments[i];
    moments->count = kept;
    if (moments->count == moments->room) {
        int64_t room = moments->room ? 2 * moments->room : 64;
        plan_moment *moved = pc_realloc(moments->moments, (size_t)room, sizeof *moved);
        if (!moved) return false;
        moments->moments = moved;
        moments->room = room;
    }
    moments->moments[moments->count++] = *moment;
    return true;
}

enum { NO_KIND = -1 };

/* What a pass takes when it starts; true if it takes something. `retaking`: the kind that makes again what F did not
 * keep. */
static bool take(plan_moment *now, plan_part_sort sort, int kind, int retaking) {
    if (kind == PC_PASS_F) {
        now->count[sort][retaking == NO_KIND ? HELD_WHOLE : HELD_KEPT]++;
        return true;
    }
    if (kind != retaking) return false;
    now->count[sort][HELD_KEPT]--;
    now->count[sort][HELD_WHOLE]++;
    return true;
}

/* A BW beside B that recompute gives back what F kept. */
static void give(plan_moment *now, plan_part_sort sort, int kind, int retaking) {
    if (kind == PC_PASS_BW) now->count[sort][retaking == PC_PASS_B ? HELD_KEPT : HELD_WHOLE]--;
    if (kind == PC_PASS_B) now->count[sort][HELD_WHOLE]--;
    if (kind == PC_PASS_B) now->count[sort][HELD_AFTER_B]++;
    if (kind == PC_PASS_W) now->count[sort][HELD_AFTER_B]--;
}

static bool walk_stage(const pc_schedule *schedule, int d, int retaking, gathering *moments) {
    int parts = pc_placement_parts(schedule->placement, schedule->devices, schedule->chunks);
    plan_moment now = {0};
    moments->first = moments->count;
    for (int64_t i = schedule->offsets[d]; i < schedule->offsets[d + 1]; i++) {
        pc_pass pass = schedule->passes[i];
        int part = pc_placement_part(schedule->placement, schedule->devices, d, pass.chunk);
        plan_part_sort sort = plan_sort_of(part, parts);
        if (take(&now, sort, pass.kind, retaking) && !add_moment(moments, &now)) return false;
        give(&now, sort, pass.kind, retaking);
    }
    return true;
}

static pc_code walk(const pc_schedule *schedule, plan_held *held, pc_error *error) {
    gathering x = {0};
    bool is_enough = true;
    int retaking = held->generator->recomputes ? PC_PASS_R : held->recomputes_in_b ? PC_PASS_B : NO_KIND;
    held->offsets = pc_alloc((size_t)schedule->devices + 1, sizeof *held->offsets);
    for (int d = 0; held->offsets && is_enough && d < schedule->devices; d++) {
        is_enough = walk_stage(schedule, d, retaking, &x);
        held->offsets[d + 1] = x.count;
    }
    held->moments = x.moments;
    return held->offsets && is_enough ? PC_OK : pc_error_no_memory(error);
}

static void forget(plan_held *held) {
    pc_free(held->offsets);
    pc_free(held->moments);
    memset(held, 0, sizeof *held);
}

static plan_held *slot_of(plan_held_store *store, const pc_generator *generator, int devices, int64_t microbatches,
                          int chunks, int slices, bool recomputes_in_b) {
    const int64_t numbers[] = {(intptr_t)generator, devices, microbatches, chunks, slices, recomputes_in_b};
    return &store->slots[pc_hash_bytes(numbers, sizeof numbers) % HELD_SLOTS];
}

pc_code plan_held_find(plan_held_store *store, const pc_generator *generator, int devices, int64_t microbatches,
                       int chunks, int slices, bool recomputes_in_b, const plan_held **held, pc_error *error) {
    plan_held *slot = slot_of(store, generator, devices, microbatches, chunks, slices, recomputes_in_b);
    bool is_known = slot->offsets && slot->generator == generator && slot->devices == devices &&
                    slot->microbatches == microbatches && slot->chunks == chunks && slot->slices == slices &&
                    slot->recomputes_in_b == recomputes_in_b;
    *held = slot;
    if (is_known) return PC_OK;
    forget(slot);
    pc_schedule schedule;
    pc_generate_request request = {
        .devices = devices, .microbatches = microbatches, .chunks = chunks, .slices = slices, .threads = 1};
    pc_code code = pc_generate(generator, &request, &schedule, NULL, error);
    if (code) return code;
    *slot = (plan_held){.generator = generator,
                        .devices = devices,
                        .chunks = chunks,
                        .slices = slices,
                        .microbatches = microbatches,
                        .recomputes_in_b = recomputes_in_b};
    code = walk(&schedule, slot, error);
    if (code) forget(slot);
    pc_schedule_free(&schedule);
    return code;
}

void plan_held_store_free(plan_held_store *store) {
    for (int i = 0; i < HELD_SLOTS; i++) forget(&store->slots[i]);
}

__extension__ typedef __int128 wide;

int64_t plan_held_most(const plan_held *held, int device, const int64_t bytes[SORTS][HELD_STATES]) {
    wide most = 0;
    for (int64_t i = held->offsets[device]; i < held->offsets[device + 1]; i++) {
        const plan_moment *x = &held->moments[i];
        wide level = 0;
        for (int sort = 0; sort < SORTS; sort++)
            for (int state = 0; state < HELD_STATES; state++) level += (wide)x->count[sort][state] * bytes[sort][state];
        if (level > most) most = level;
    }
    return most > INT64_MAX / 4 ? INT64_MAX / 4 : (int64_t)most;
}

int64_t plan_held_under_way(const plan_held *held, int device) {
    int64_t most = 0;
    for (int64_t i = held->offsets[device]; i < held->offsets[device + 1]; i++) {
        int64_t count = 0;
        for (int sort = 0; sort < SORTS; sort++)
            count += held->moments[i].count[sort][HELD_WHOLE] + held->moments[i].count[sort][HELD_KEPT];
        if (count > most) most = count;
    }
    return most;
}
