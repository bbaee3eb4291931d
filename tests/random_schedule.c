#include "tests/random_schedule.h"

/* What is done of each (slice, microbatch), as bits of 1 << kind. */
typedef struct drawing {
    test_random *random;
    pc_schedule *schedule;
    uint8_t *done, *wanted;
    int64_t *filled; /* a number a stage */
} drawing;

static uint8_t *bits(uint8_t *of, const pc_schedule *s, int slice, int microbatch) {
    return &of[slice * s->microbatches + microbatch];
}

static int slice_count(const pc_schedule *s) {
    return s->devices * pc_placement_visited(s->placement, s->chunks);
}

static bool is_sequence_cut(const pc_schedule *s) {
    return pc_placement_has_slices(s->placement);
}

/* Where it is, slice j of the sequence in part i is number j v p + i, and between two of them in a part are v p. */
static int count_parts(const pc_schedule *s) {
    return s->devices * s->chunks / pc_placement_slices(s->placement, s->chunks);
}

static bool has_done(const drawing *drawn, int slice, int microbatch, int kinds) {
    bool is_there = slice >= 0 && slice < slice_count(drawn->schedule);
    return !is_there || (*bits(drawn->done, drawn->schedule, slice, microbatch) & kinds);
}

static int stage_of(const pc_schedule *s, int slice, int microbatch) {
    return is_sequence_cut(s) ? slice % s->devices : pc_placement_stage(s->placement, s->devices, slice, microbatch);
}

enum { F = 1 << PC_PASS_F, B = 1 << PC_PASS_B, W = 1 << PC_PASS_W, BW = 1 << PC_PASS_BW, R = 1 << PC_PASS_R };

static bool is_enabled(const drawing *drawn, int slice, int microbatch, int kind) {
    const pc_schedule *s = drawn->schedule;
    uint8_t done = *bits(drawn->done, s, slice, microbatch), wanted = *bits(drawn->wanted, s, slice, microbatch);
    if (!(wanted & (1 << kind)) || (done & (1 << kind))) return false;
    int parts = count_parts(s), part = slice % parts;
    if (is_sequence_cut(s) && kind == PC_PASS_F)
        return has_done(drawn, slice - parts, microbatch, F) &&
               (part == 0 || has_done(drawn, slice - 1, microbatch, F));
    if (kind == PC_PASS_F) return slice == 0 || (*bits(drawn->done, s, slice - 1, microbatch) & F);
    if (kind == PC_PASS_W) return done & B;
    if (kind == PC_PASS_R) return done & F;
    if (!(done & F) || ((wanted & R) && !(done & R))) return false;
    if (is_sequence_cut(s))
        return has_done(drawn, slice + parts, microbatch, B | BW) &&
               (part == parts - 1 || has_done(drawn, slice + 1, microbatch, B | BW));
    return slice == slice_count(s) - 1 || (*bits(drawn->done, s, slice + 1, microbatch) & (B | BW));
}

static void append(drawing *drawn, int slice, int microbatch, int kind) {
    pc_schedule *s = drawn->schedule;
    int stage = stage_of(s, slice, microbatch);
    int parts = count_parts(s), part = is_sequence_cut(s) ? slice % parts : slice;
    int chunk = pc_placement_chunk(s->placement, s->devices, part, microbatch);
    if (is_sequence_cut(s)) chunk += slice / parts;
    s->passes[s->offsets[stage] + drawn->filled[stage]++] = (pc_pass){microbatch, (int16_t)chunk, (int16_t)kind};
    *bits(drawn->done, s, slice, microbatch) |= (uint8_t)(1 << kind);
}

/* Some pass that can run now, from a random place on; false where all are done. */
static bool draw_pass(drawing *drawn) {
    pc_schedule *s = drawn->schedule;
    int64_t cells = (int64_t)slice_count(s) * s->microbatches * PC_PASS_KINDS;
    int64_t first = test_between(drawn->random, 0, cells - 1);
    for (int64_t i = 0; i < cells; i++) {
        int64_t cell = (first + i) % cells;
        int kind = (int)(cell % PC_PASS_KINDS), microbatch = (int)(cell / PC_PASS_KINDS % s->microbatches);
        int slice = (int)(cell / PC_PASS_KINDS / s->microbatches);
        if (!is_enabled(drawn, slice, microbatch, kind)) continue;
        append(drawn, slice, microbatch, kind);
        return true;
    }
    return false;
}

/* Which passes each slice has: split or not, of its own; and recomputing none, all or some of the microbatches. */
static void draw_kinds(drawing *drawn, int64_t *lengths) {
    pc_schedule *s = drawn->schedule;
    for (int slice = 0; slice < slice_count(s); slice++) {
        uint8_t usual = F | (test_between(drawn->random, 0, 1) ? BW : B | W);
        int64_t recomputed = test_between(drawn->random, -4, 2); /* of two microbatches, on average */
        for (int i = 0; i < s->microbatches; i++) {
            uint8_t wanted = usual | (test_between(drawn->random, 0, 1) < recomputed ? R : 0);
            *bits(drawn->wanted, s, slice, i) = wanted;
            lengths[stage_of(s, slice, i)] += __builtin_popcount(wanted);
        }
    }
}

void random_schedule(test_random *random, int devices_max, int microbatches_max, int chunks_max,
                     pc_schedule *schedule) {
    pc_schedule shape = {.devices = (int)test_between(random, 1, devices_max),
                         .microbatches = (int)test_between(random, 1, microbatches_max),
                         .chunks = (int)test_between(random, 1, chunks_max),
                         .placement = (pc_placement)test_between(random, 1, PC_PLACEMENTS - 1)};
    if (shape.placement == PC_PLACEMENT_BIDIRECTIONAL) shape.chunks = 2;
    int slices = shape.chunks % 2 == 0 ? 2 : 1; /* of several parts a stage, or microbatches that are whole */
    test_random own = {(uint64_t)shape.devices * 31 + (uint64_t)shape.microbatches};
    bool has_parts = shape.placement == PC_PLACEMENT_SLICES && test_between(&own, 0, 1);
    if (has_parts) shape.placement = PC_PLACEMENT_OF_SLICES(slices);
    size_t cells = (size_t)slice_count(&shape) * (size_t)shape.microbatches;
    drawing drawn = {random, &shape, calloc(cells, 1), calloc(cells, 1),
                     calloc((size_t)shape.devices, sizeof(int64_t))};
    int64_t *lengths = calloc((size_t)shape.devices, sizeof *lengths);
    draw_kinds(&drawn, lengths);
    assert_int_equal(pc_schedule_create("random", shape.devices, shape.microbatches, shape.chunks, shape.placement,
                                        lengths, schedule, NULL),
                     PC_OK);
    drawn.schedule = schedule;
    while (draw_pass(&drawn)) {
    }
    free(drawn.done);
    free(drawn.wanted);
    free(drawn.filled);
    free(lengths);
}

void random_costs(test_random *random, const pc_schedule *schedule, pc_costs *costs) {
    assert_int_equal(pc_costs_create(schedule->devices, schedule->chunks, costs, NULL), PC_OK);
    int64_t cells = (int64_t)schedule->devices * schedule->chunks;
    for (int64_t i = 0; i < cells * PC_PASS_KINDS; i++) costs->duration_ps[i] = test_between(random, 0, 20);
    for (int64_t i = 0; i < cells; i++) {
        costs->activation_bytes[i] = test_between(random, 0, 100);
        costs->activation_b_bytes[i] = test_between(random, 0, costs->activation_bytes[i]);
        costs->activation_kept_bytes[i] = test_between(random, 0, costs->activation_bytes[i]);
    }
    costs->transfer.delay_ps = test_between(random, 0, 1) * test_between(random, 0, 15);
    costs->recomputes_in_b = test_between(random, 0, 1) && !pc_schedule_has(schedule, PC_PASS_R);
}

void random_hops_and_ready(test_random *random, pc_costs *costs) {
    if (test_between(random, 0, 1)) {
        assert_int_equal(pc_costs_add_hop_delays(costs, NULL), PC_OK);
        for (int d = 0; d < costs->devices; d++) {
            assert_int_equal(costs->hop_delay_ps[d], costs->transfer.delay_ps);
            costs->hop_delay_ps[d] = test_between(random, 0, 15);
        }
    }
    if (test_between(random, 0, 1)) {
        assert_int_equal(pc_costs_add_ready(costs, NULL), PC_OK);
        for (int i = 0; i < costs->devices * costs->chunks; i++) costs->ready_ps[i] = test_between(random, -20, 40);
        for (int i = 0; i < costs->devices * costs->chunks; i++)
            if (costs->ready_ps[i] < 0) costs->ready_ps[i] = 0;
    }
}
