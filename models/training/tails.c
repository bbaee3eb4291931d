#include "models/training/tails.h"

#include "engine/alloc.h"
#include "engine/numbers.h"

#include <string.h>

static pc_time last_pass(const pc_costs *costs, int device, int chunk) {
    pc_time w = pc_costs_duration(costs, device, chunk, PC_PASS_W);
    return w != PC_TIME_NOT_GIVEN ? w : pc_max(pc_costs_duration(costs, device, chunk, PC_PASS_BW), 0);
}

static void fill_chunks(const pc_outline *outline, const pc_costs *costs, int d, pc_time *stream, pc_time *after,
                        pc_time *own) {
    for (int c = 0; c < outline->chunks; c++) {
        int64_t i = (int64_t)d * outline->chunks + c;
        const pc_chunk_outline *x = &outline->chunks_of[i];
        pc_time all = x->buckets * x->reduce_ps, share = last_pass(costs, d, c) / x->buckets;
        if (c == 0) own[d] += outline->device[d].slowed_ps;
        if (!pc_outline_reduces_behind(outline)) continue;
        if (pc_outline_overlaps_gradients(outline)) {
            stream[i] = all;
            after[i] = pc_max(x->reduce_ps, all - share * (x->buckets - 1));
        } else {
            own[d] += all;
        }
    }
}

static void fill_ends(const pc_outline *outline, pc_time *own) {
    int first = pc_placement_stage(outline->placement, outline->devices, 0, 0);
    int last = pc_placement_stage(outline->placement, outline->devices, outline->parts - 1, 0);
    own[first] += outline->tied_ps;
    if (outline->tied_stage != first) own[outline->tied_stage] += outline->tied_ps;
    own[last] += outline->loss_ps;
    for (int d = 0; d < outline->devices && outline->spec->step == PC_STEP_POST_VALIDATION; d++)
        own[d] += outline->device[d].step_ps;
}

pc_code pc_outline_tails_make(const pc_outline *outline, const pc_costs *costs, pc_outline_tails *made,
                              pc_error *error) {
    size_t devices = (size_t)outline->devices, cells = devices * (size_t)outline->chunks;
    pc_time *block = pc_alloc(2 * cells + devices, sizeof *block);
    if (!block) return pc_error_no_memory(error);
    pc_time *stream = block, *after = block + cells, *own = block + 2 * cells;
    for (int d = 0; d < outline->devices; d++) fill_chunks(outline, costs, d, stream, after, own);
    fill_ends(outline, own);
    *made = (pc_outline_tails){{stream, after, own, outline->spec->step == PC_STEP_POST_VALIDATION}, block};
    return PC_OK;
}

void pc_outline_tails_free(pc_outline_tails *tails) {
    pc_free(tails->block);
    memset(tails, 0, sizeof *tails);
}
