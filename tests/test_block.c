/* Building blocks: what is valid, what they hold, and that repeating them holds just that. Blocks of every family;
 * those of published schedules against their formulas. */
#include "tests/support.h"

#include "engine/alloc.h"
#include "models/schedule/block.h"
#include "models/schedule/check.h"
#include "models/schedule/generate.h"
#include "models/schedule/search/instance.h"
#include "models/schedule/search/pattern.h"
#include "models/schedule/search/reorder.h"
#include "models/schedule/search/repeat.h"

enum { P_MAX = 5 };

/* ---- a second opinion on validity ---- */

/* Device and chunk of a part: down the devices, and with a second chunk back up. */
static void find_part(const pc_block *b, int part, int *device, int *chunk) {
    *chunk = part / b->devices;
    *device = *chunk ? 2 * b->devices - 1 - part : part;
}

static int64_t start_of_part(const pc_block *b, int microbatch, int part, int kind) {
    int device, chunk;
    find_part(b, part, &device, &chunk);
    return pc_block_start(b, microbatch, device, chunk, kind);
}

/* Marks the cells of an interval one by one. */
static bool has_collision(const pc_block *b, int device) {
    char taken[64] = {0};
    assert_true(b->interval <= 64);
    for (int i = 0; i < b->microbatches; i++)
        for (int c = 0; c < b->chunks; c++)
            for (int kind = 0; kind < PC_PASS_KINDS; kind++)
                for (int64_t k = 0; k < b->duration[kind]; k++) {
                    int64_t cell = pc_block_start(b, i, device, c, kind) + k + 1000 * b->interval;
                    if (taken[cell % b->interval]++) return true;
                }
    return false;
}

static bool is_valid(const pc_block *b) {
    int parts = b->devices * b->chunks;
    bool splits = b->duration[PC_PASS_W] > 0;
    int back = splits ? PC_PASS_B : PC_PASS_BW;
    for (int d = 0; d < b->devices; d++)
        if (has_collision(b, d)) return false;
    for (int i = 0; i < b->microbatches; i++)
        for (int part = 0; part < parts; part++) {
            int64_t f_end = start_of_part(b, i, part, PC_PASS_F) + 1, from = start_of_part(b, i, part, back);
            if (from < f_end) return false;
            if (splits && start_of_part(b, i, part, PC_PASS_W) < from + 1) return false;
            if (part == parts - 1) continue;
            if (start_of_part(b, i, part + 1, PC_PASS_F) < f_end) return false;
            if (from < start_of_part(b, i, part + 1, back) + b->duration[back]) return false;
        }
    return true;
}

/* ---- a second opinion on memory ---- */

typedef struct event {
    int64_t time, bytes;
} event;

/* In time order; of the same time what gives memory back first. */
static int compare_events(const void *a, const void *b) {
    const event *x = a, *y = b;
    if (x->time != y->time) return x->time < y->time ? -1 : 1;
    return (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

/* Repeats the block for m microbatches, sorts all that happens on a device, and walks through it. */
static int64_t peak_by_hand(const pc_block *b, const pc_costs *costs, int device, int m) {
    static event events[8192];
    int count = 0;
    int64_t level = 0, peak = 0;
    for (int k = 0; k < m; k++)
        for (int c = 0; c < b->chunks; c++) {
            int i = k % b->microbatches;
            int64_t shift = k / b->microbatches * b->interval, whole = costs->activation_bytes[device * b->chunks + c];
            int64_t by_b = b->duration[PC_PASS_W] ? costs->activation_b_bytes[device * b->chunks + c] : 0;
            bool in_b = costs->recomputes_in_b;
            int64_t kept = in_b ? costs->activation_kept_bytes[device * b->chunks + c] : whole;
            events[count++] = (event){pc_block_start(b, i, device, c, PC_PASS_F) + shift, kept};
            if (b->duration[PC_PASS_W]) {
                events[count++] = (event){pc_block_start(b, i, device, c, PC_PASS_B) + shift, whole - kept};
                events[count++] = (event){pc_block_start(b, i, device, c, PC_PASS_B) + 1 + shift, -by_b};
                events[count++] = (event){pc_block_start(b, i, device, c, PC_PASS_W) + 1 + shift, by_b - whole};
            } else {
                events[count++] = (event){pc_block_start(b, i, device, c, PC_PASS_BW) + 2 + shift, -kept};
            }
        }
    assert_true(count <= 8192);
    qsort(events, (size_t)count, sizeof *events, compare_events);
    for (int k = 0; k < count; k++) {
        level += events[k].bytes;
        if (level > peak) peak = level;
    }
    assert_int_equal(level, 0);
    return peak;
}

/* ceil(lifespan / interval) of each chunk: 'Controllable Memory', section 3. */
static int64_t bound_in_bytes(const pc_block *b, const pc_costs *costs, int device) {
    int64_t bound = 0;
    for (int i = 0; i < b->microbatches; i++)
        for (int c = 0; c < b->chunks; c++) {
            int64_t lifespan = pc_block_lifespan(b, i, device, c), held = lifespan / b->interval;
            held += lifespan % b->interval > 0;
            bound += held * costs->activation_bytes[device * b->chunks + c];
        }
    return bound;
}

static void check_memory(const pc_block *b, const pc_costs *costs) {
    static const int lengths[] = {1, 2, 3, 4, 5, 6, 7, 8, 11, 16, 27, 40};
    for (int d = 0; d < b->devices; d++)
        for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
            int m = lengths[i];
            int64_t peak = pc_block_peak(b, costs, d, m), by_hand = peak_by_hand(b, costs, d, m);
            /* of the last pair it does not know that only one is wanted */
            if (m % b->microbatches) by_hand = peak_by_hand(b, costs, d, m + 1);
            if (peak != by_hand)
                fail_msg("p=%d d=%d m=%d interval %d: %lld, by hand %lld", b->devices, d, m, (int)b->interval,
                         (long long)peak, (long long)by_hand);
            assert_true(peak <= bound_in_bytes(b, costs, d));
        }
}

/* Every chunk 1, all of it held to the end. */
static void count_chunks(pc_costs *costs) {
    costs->recomputes_in_b = false;
    for (int i = 0; i < costs->devices * costs->chunks; i++) {
        costs->activation_bytes[i] = 1;
        costs->activation_b_bytes[i] = 0;
    }
}

static void draw_activations(test_random *random, pc_costs *costs) {
    costs->recomputes_in_b = test_between(random, 0, 1);
    for (int i = 0; i < costs->devices * costs->chunks; i++) {
        costs->activation_bytes[i] = test_between(random, 0, 30);
        costs->activation_b_bytes[i] = test_between(random, 0, costs->activation_bytes[i]);
        costs->activation_kept_bytes[i] = test_between(random, 0, costs->activation_bytes[i]);
    }
}

/* ---- the repeated order ---- */

static int64_t start_of_pass(const pc_block *b, int device, pc_pass pass) {
    return pc_block_start(b, pass.microbatch % b->microbatches, device, pass.chunk, pass.kind) +
           pass.microbatch / b->microbatches * b->interval;
}

/* Every pass once (the checker), those of a device by their start. */
static void check_order(const pc_block *b, pc_costs *costs, int m) {
    bool splits = b->duration[PC_PASS_W] > 0;
    pc_instance instance;
    pc_instance_order order;
    pc_schedule s;
    pc_error error = {0};
    assert_int_equal(pc_instance_create(costs, b->placement, splits, m, (pc_memory_limit){NULL}, &instance, NULL),
                     PC_OK);
    assert_int_equal(pc_instance_order_create(&instance, &order, NULL), PC_OK);
    pc_repeat_block(&instance, b, &order);
    assert_int_equal(pc_instance_to_schedule(&instance, &order, "repeated", &s, NULL), PC_OK);
    if (pc_schedule_check(&s, &error)) fail_msg("%s", error.message);
    for (int d = 0; d < s.devices; d++)
        for (int64_t k = s.offsets[d] + 1; k < s.offsets[d + 1]; k++)
            assert_true(start_of_pass(b, d, s.passes[k - 1]) < start_of_pass(b, d, s.passes[k]));
    pc_schedule_free(&s);
    pc_instance_order_free(&order);
    pc_instance_free(&instance);
}

/* ---- every pattern of every family ---- */

typedef struct tally {
    test_random random;
    long valid, refused;
} tally;

/* Moves any pass of a valid block by a few cells: the block is valid then where the second opinion says so. */
static void check_broken(tally *t, pc_block *b) {
    int64_t count = (int64_t)b->microbatches * b->devices * b->chunks * PC_PASS_KINDS;
    int64_t at = test_between(&t->random, 0, count - 1), before = b->start[at];
    if (before == PC_TIME_NOT_GIVEN || b->duration[at % PC_PASS_KINDS] == 0) return;
    b->start[at] += test_between(&t->random, -2 * b->interval, 2 * b->interval);
    if (b->start[at] != PC_TIME_NOT_GIVEN) {
        assert_int_equal(pc_block_is_valid(b), is_valid(b));
        t->refused += !is_valid(b);
    }
    b->start[at] = before;
}

static void check_pattern(tally *t, const pc_pattern *pattern, int p) {
    int chunks = pc_pattern_chunks(pattern->family);
    pc_block b;
    pc_costs costs;
    assert_int_equal(pc_block_create(chunks == 2 ? PC_PLACEMENT_V : PC_PLACEMENT_LINEAR, p, chunks,
                                     pc_pattern_microbatches(pattern->family), &b, NULL),
                     PC_OK);
    if (pc_pattern_build(pattern, &b)) {
        assert_int_equal(b.interval, pattern->interval);
        assert_true(is_valid(&b) && pc_block_is_valid(&b));
        assert_int_equal(pc_costs_create(p, chunks, &costs, NULL), PC_OK);
        count_chunks(&costs);
        for (int d = 0; d < p; d++) assert_int_equal(pc_block_peak_bound(&b, d), bound_in_bytes(&b, &costs, d));
        if (t->valid % 2) draw_activations(&t->random, &costs);
        check_memory(&b, &costs);
        check_order(&b, &costs, 1 + (int)(t->valid % 9));
        for (int i = 0; i < 4; i++) check_broken(t, &b);
        pc_costs_free(&costs);
        t->valid++;
    }
    pc_block_free(&b);
}

static void check_v(tally *t, pc_pattern pattern, int p) {
    for (int f1 = 1; f1 < pattern.interval; f1++)
        for (int b1 = 1; b1 < pattern.interval; b1++)
            for (int b0 = 1; b0 < pattern.interval; b0++) {
                pattern.f1 = f1;
                pattern.b1 = b1;
                pattern.b0 = b0;
                check_pattern(t, &pattern, p);
            }
}

static void test_shifted_v(void **state) {
    (void)state;
    tally t = {.random = {1}};
    for (int p = 1; p <= test_part(P_MAX - 1, P_MAX); p++)
        for (int shift = 1; shift < 6; shift++)
            for (int after = 1; after <= shift; after++)
                for (int turn = 1; turn < (shift == after ? 2 : p); turn++)
                    for (int splits = 0; splits < 2; splits++)
                        check_v(&t,
                                (pc_pattern){.family = PC_PATTERN_V_SHIFTED,
                                             .interval = 6,
                                             .shift = shift,
                                             .shift_after = after,
                                             .turn = turn,
                                             .splits = splits},
                                p);
    assert_true(t.valid > 1000 && t.refused > 1000);
}

static void test_free_v(void **state) {
    (void)state;
    tally t = {.random = {2}};
    for (int p = 1; p <= test_part(P_MAX - 1, P_MAX); p++)
        for (int interval = 6; interval <= (p < 4 ? 9 : 7); interval++)
            for (int lane = 0; lane < 4; lane++)
                for (int splits = 0; splits < 2; splits++)
                    check_v(&t,
                            (pc_pattern){
                                .family = PC_PATTERN_V_FREE, .interval = interval, .shift = lane, .splits = splits},
                            p);
    assert_true(t.valid > 1000 && t.refused > 1000);
}

static void test_linear(void **state) {
    (void)state;
    tally t = {.random = {3}};
    for (int p = 1; p <= test_part(5, 8); p++) {
        for (int interval = 3; interval <= 9; interval++)
            for (int b0 = 1; b0 < interval; b0++)
                for (int i = 0; i < 4; i++)
                    check_pattern(&t,
                                  &(pc_pattern){.family = PC_PATTERN_LINEAR_FREE,
                                                .interval = interval,
                                                .b0 = b0,
                                                .shift = i / 2,
                                                .splits = i % 2},
                                  p);
        for (int slope = 4; slope <= 16; slope++)
            for (int lag = 0; lag <= 8; lag++)
                for (int i = 0; i < 6; i++)
                    check_pattern(&t,
                                  &(pc_pattern){.family = PC_PATTERN_LINEAR_WARM,
                                                .interval = 3,
                                                .b0 = 1 + i % 2,
                                                .shift = slope,
                                                .shift_after = lag,
                                                .turn = p - 1 + i / 2 * p,
                                                .splits = true},
                                  p);
        check_pattern(&t, &(pc_pattern){.family = PC_PATTERN_LINEAR_PAIR, .interval = 6, .splits = true}, p);
    }
    assert_true(t.valid > 1000 && t.refused > 1000);
}

/* ---- one pass broken, each in turn ---- */

/* A pass that is moved by whole intervals collides with nothing that it did not collide with; but it comes too late for
 * those that wait for it (+), or too early for what it waits for (-). The first F may come earlier and every W later,
 * as nothing waits for a W, and nothing but memory for an early first F. */
static void check_moved_by_intervals(pc_block *b) {
    for (int part = 0; part < b->devices * b->chunks; part++)
        for (int kind = 0; kind <= PC_PASS_W; kind++)
            for (int sign = -1; sign <= 1; sign += 2) {
                int device, chunk;
                find_part(b, part, &device, &chunk);
                int64_t *start = &b->start[pc_block_index(b, 0, device, chunk, kind)];
                bool is_fine = sign < 0 ? part == 0 && kind == PC_PASS_F : kind == PC_PASS_W;
                *start += sign * 100 * b->interval;
                assert_int_equal(pc_block_is_valid(b), is_fine);
                *start -= sign * 100 * b->interval;
            }
}

/* Every W is put, some intervals later, onto the cell of each other pass of its device: only the collision is wrong. */
static void check_moved_onto_others(pc_block *b) {
    for (int d = 0; d < b->devices; d++)
        for (int other = 0; other < b->chunks * PC_PASS_KINDS; other++) {
            int chunk = other / PC_PASS_KINDS, kind = other % PC_PASS_KINDS;
            if (kind > PC_PASS_W || other == PC_PASS_W) continue;
            int64_t *w = &b->start[pc_block_index(b, 0, d, 0, PC_PASS_W)], before = *w;
            *w = pc_block_start(b, 0, d, chunk, kind) + 50 * b->interval;
            assert_false(pc_block_is_valid(b));
            *w = before;
        }
}

static pc_block build(pc_pattern pattern, int p) {
    pc_block b;
    int chunks = pc_pattern_chunks(pattern.family);
    assert_int_equal(pc_block_create(chunks == 2 ? PC_PLACEMENT_V : PC_PLACEMENT_LINEAR, p, chunks,
                                     pc_pattern_microbatches(pattern.family), &b, NULL),
                     PC_OK);
    assert_true(pc_pattern_build(&pattern, &b));
    return b;
}

static void test_broken_passes(void **state) {
    (void)state;
    pc_pattern v = {.family = PC_PATTERN_V_FREE, .interval = 12, .f1 = 7, .b1 = 8, .b0 = 3, .splits = true};
    pc_pattern linear = {.family = PC_PATTERN_LINEAR_WARM,
                         .interval = 3,
                         .b0 = 1,
                         .shift = 4,
                         .shift_after = 2,
                         .turn = 100,
                         .splits = true};
    pc_block blocks[] = {build(v, 4), build(linear, 4)};
    for (int i = 0; i < 2; i++) {
        assert_true(pc_block_is_valid(&blocks[i]));
        check_moved_by_intervals(&blocks[i]);
        check_moved_onto_others(&blocks[i]);
        pc_block_free(&blocks[i]);
    }
}

/* ---- published blocks ---- */

static int64_t most_held(const pc_block *b) {
    pc_costs costs;
    int64_t most = 0;
    assert_int_equal(pc_costs_create(b->devices, b->chunks, &costs, NULL), PC_OK);
    count_chunks(&costs);
    for (int d = 0; d < b->devices; d++) {
        int64_t peak = pc_block_peak(b, &costs, d, 1000);
        if (peak > most) most = peak;
    }
    pc_costs_free(&costs);
    return most;
}

/* V blocks that shift F and B of the second chunk by `shift` cells a device, and f and b back by one; W wherever a cell
 * is free within an interval behind B. */
static void check_uniform(const pc_block *b, int shift, int f1, int b1, int b0, int64_t held) {
    assert_true(pc_block_is_valid(b));
    for (int d = 0; d < b->devices; d++) {
        assert_int_equal(pc_block_start(b, 0, d, 0, PC_PASS_F), shift * d);
        assert_int_equal(pc_block_start(b, 0, d, 1, PC_PASS_F), f1 - d);
        assert_int_equal(pc_block_start(b, 0, d, 1, PC_PASS_B), b1 + shift * d);
        assert_int_equal(pc_block_start(b, 0, d, 0, PC_PASS_B), b0 - d);
        for (int c = 0; c < 2; c++) {
            int64_t lag = pc_block_start(b, 0, d, c, PC_PASS_W) - pc_block_start(b, 0, d, c, PC_PASS_B);
            assert_in_range(lag, 1, 6);
        }
    }
    assert_int_equal(most_held(b), held);
}

static pc_block build_uniform(int p, int shift, int f1, int b1, int b0) {
    return build((pc_pattern){.family = PC_PATTERN_V_SHIFTED,
                              .interval = 6,
                              .f1 = f1 % 6,
                              .b1 = b1 % 6,
                              .b0 = b0 % 6,
                              .shift = shift,
                              .shift_after = shift,
                              .turn = 1,
                              .splits = true},
                 p);
}

/* 'Controllable Memory', tables 8 and 9, with F, f (chunks 0 and 1), B, b (chunks 1 and 0) of device i:
 *   V-Min  F i,  f 2p-1-i, B 2p+e+i,   b 4p+e-1-i; e = 2 where p is a multiple of 3; 2 ceil((p+2)/3) chunks
 *   V-Half F 2i, f 3p-2-i, B 3p-1+e+2i, b 6p-2+e-i; e = 3 where p is even; p+2 chunks where it is, else p+1
 * The pattern holds the cells of device 0 modulo 6 only; the rest follows from the folds. */
static void test_v_min_and_v_half(void **state) {
    (void)state;
    for (int p = 2; p <= 24; p++) {
        int e = p % 3 == 0 ? 2 : 0;
        pc_block v_min = build_uniform(p, 1, 2 * p - 1, 2 * p + e, 4 * p + e - 1);
        check_uniform(&v_min, 1, 2 * p - 1, 2 * p + e, 4 * p + e - 1, 2 * ((p + 2 + 2) / 3));
        pc_block_free(&v_min);
        e = p % 2 == 0 ? 3 : 0;
        pc_block v_half = build_uniform(p, 2, 3 * p - 2, 3 * p - 1 + e, 6 * p - 2 + e);
        check_uniform(&v_half, 2, 3 * p - 2, 3 * p - 1 + e, 6 * p - 2 + e, p % 2 ? p + 1 : p + 2);
        pc_block_free(&v_half);
    }
}

static pc_block generate_block(const char *name, int p, int m) {
    const pc_generator *g = pc_generator_find(name);
    pc_costs costs;
    pc_schedule s;
    pc_block b;
    assert_int_equal(pc_costs_create(p, g->chunks_default, &costs, NULL), PC_OK);
    for (int i = 0; i < p * g->chunks_default; i++) {
        for (int kind = 0; kind < PC_PASS_KINDS; kind++)
            costs.duration_ps[i * PC_PASS_KINDS + kind] = kind == PC_PASS_BW ? 2 : 1;
        costs.activation_bytes[i] = 1;
    }
    pc_generate_request request = {.devices = p, .microbatches = m, .costs = &costs, .threads = 1};
    assert_int_equal(pc_generate(g, &request, &s, &b, NULL), PC_OK);
    pc_costs_free(&costs);
    pc_schedule_free(&s);
    return b;
}

/* F 5i, f 6p-5-i, B 6p-4+5i, b 12p-9-i: the way down takes 6 cells a device with the way up, so that all four move by
 * -i modulo 6 and never meet. 2p chunks. Without a bubble no other block can beat it, so it is what the name gives. The
 * other two names give their blocks or better ones: within the memory of the name. */
static void test_blocks_of_v_names(void **state) {
    (void)state;
    for (int p = 2; p <= 9; p++) {
        pc_block v_zb = generate_block("v-zb", p, 2 * p);
        assert_int_equal(v_zb.interval, 6);
        check_uniform(&v_zb, 5, 6 * p - 5, 6 * p - 4, 12 * p - 9, 2 * p);
        pc_block_free(&v_zb);
        pc_block v_min = generate_block("v-min", p, 2 * p), v_half = generate_block("v-half", p, 2 * p);
        assert_true(pc_block_is_valid(&v_min) && pc_block_is_valid(&v_half));
        assert_in_range(most_held(&v_min), 1, 2 * ((p + 4) / 3));
        assert_in_range(most_held(&v_half), 1, 2 * ((p + 2) / 2));
        pc_block_free(&v_min);
        pc_block_free(&v_half);
    }
}

static void check_linear(const char *name, int p, int k) {
    pc_block b = generate_block(name, p, 4 * p);
    assert_int_equal(b.interval, 3);
    assert_true(pc_block_is_valid(&b));
    for (int d = 0; d < p; d++) {
        int64_t f = pc_block_start(&b, 0, d, 0, PC_PASS_F), lifespan = pc_block_lifespan(&b, 0, d, 0);
        assert_int_equal(f, d);
        assert_int_equal(lifespan, k == 0 ? 3 * (p - d) : 3 * k * (p - 1) + 3);
        assert_int_equal(pc_block_peak_bound(&b, d), k == 0 ? p - d : k * (p - 1) + 1);
        if (k > 0) assert_int_equal(pc_block_start(&b, 0, d, 0, PC_PASS_B) - f, 3 * k * (p - 1 - d) + 1);
    }
    assert_int_equal(most_held(&b), k == 0 ? p : k * (p - 1) + 1);
    pc_block_free(&b);
}

/* 1F1B: F goes down by a cell a device and BW up by two, so that between F and the end of BW there are 3 cells for this
 * device and for each one behind it. ZB-H1 and ZB-H2 (k = 1, 2): B follows F by 3k(p-1-d) + 1, one interval for each F
 * of the warm-up, and W follows B by 1 and kd intervals: 3k(p-1) + 3 in all, whatever the device. */
static void test_linear_names(void **state) {
    (void)state;
    for (int p = 1; p <= 12; p++) {
        check_linear("1f1b", p, 0);
        check_linear("zb-h1", p, 1);
        check_linear("zb-h2", p, 2);
    }
}

/* Device d: F of the pair in cells d and d+2, B in 2p-1-d and 2p+1-d. With q = p-d: one W comes 4 behind the first B,
 * the other in the first cell behind it that is d+4 in its interval, and the earlier W is the first microbatch's.
 * Counted from the first F they end at 2q+4 and at n+1, n the first number from 2q on that is 4 modulo 6: 2q, 2q+2 or
 * 2q+4 as q is 2, 1 or 0 modulo 3. Only the last is behind the other W. The lives are n+1 and 2q+2 or, where q is a
 * multiple of 3, 2q+4 and 2q+3: all ceil((q+1)/3) intervals. When the second F starts, 2 cells after the first one, as
 * many of both are held. So bound and peak are 2 ceil((q+1)/3) = 2 floor(q/3) + 2: two thirds of p. */
static void test_pair_holds_two_thirds(void **state) {
    (void)state;
    for (int p = 1; p <= 30; p++) {
        pc_costs costs;
        pc_block b = build((pc_pattern){.family = PC_PATTERN_LINEAR_PAIR, .interval = 6, .splits = true}, p);
        assert_int_equal(pc_costs_create(p, 1, &costs, NULL), PC_OK);
        count_chunks(&costs);
        for (int d = 0; d < p; d++) {
            int q = p - d, lives[3][2] = {{2 * q + 4, 2 * q + 3}, {2 * q + 3, 2 * q + 2}, {2 * q + 1, 2 * q + 2}};
            for (int i = 0; i < 2; i++) assert_int_equal(pc_block_lifespan(&b, i, d, 0), lives[q % 3][i]);
            assert_int_equal(pc_block_peak_bound(&b, d), 2 * ((p - d) / 3) + 2);
            assert_int_equal(pc_block_peak(&b, &costs, d, 200), 2 * ((p - d) / 3) + 2);
        }
        pc_costs_free(&costs);
        pc_block_free(&b);
    }
}

/* ---- one microbatch after the other; no memory ---- */

static void test_one_by_one(void **state) {
    (void)state;
    for (int splits = 0; splits < 2; splits++)
        for (int chunks = 1; chunks <= 2; chunks++) {
            pc_costs costs;
            pc_instance instance;
            pc_instance_order order;
            pc_reorder *reorder;
            const int64_t limit[] = {2, 2, 2};
            assert_int_equal(pc_costs_create(3, chunks, &costs, NULL), PC_OK);
            for (int i = 0; i < 3 * chunks; i++) {
                costs.activation_bytes[i] = 2 / chunks; /* a microbatch takes 2 on every device: all there is */
                for (int kind = 0; kind < PC_PASS_KINDS; kind++) costs.duration_ps[i * PC_PASS_KINDS + kind] = 1;
            }
            assert_int_equal(pc_instance_create(&costs, chunks == 2 ? PC_PLACEMENT_V : PC_PLACEMENT_LINEAR, splits, 5,
                                                (pc_memory_limit){limit}, &instance, NULL),
                             PC_OK);
            assert_int_equal(pc_instance_order_create(&instance, &order, NULL), PC_OK);
            assert_int_equal(pc_reorder_create(&instance, &reorder, NULL), PC_OK);
            pc_repeat_one_by_one(&instance, &order);
            assert_true(pc_reorder_squeeze(reorder, &order));
            assert_int_equal(order.peak, 2);
            pc_reorder_free(reorder);
            pc_instance_order_free(&order);
            pc_instance_free(&instance);
            pc_costs_free(&costs);
        }
}

static void test_create_without_memory(void **state) {
    (void)state;
    for (int i = 0; i < 2; i++) {
        pc_block b = {0};
        pc_alloc_fail_after(i);
        assert_int_equal(pc_block_create(PC_PLACEMENT_V, 3, 2, 1, &b, NULL), PC_ERROR_NO_MEMORY);
        pc_alloc_fail_after(-1);
        assert_null(b.start);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shifted_v),        cmocka_unit_test(test_free_v),
        cmocka_unit_test(test_linear),           cmocka_unit_test(test_broken_passes),
        cmocka_unit_test(test_v_min_and_v_half), cmocka_unit_test(test_blocks_of_v_names),
        cmocka_unit_test(test_linear_names),     cmocka_unit_test(test_pair_holds_two_thirds),
        cmocka_unit_test(test_one_by_one),       cmocka_unit_test(test_create_without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
