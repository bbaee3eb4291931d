/* The block of every named schedule: valid, with the interval and lifespans that its comment and docs/schedules.md
 * give, and repeated and squeezed it is the schedule. */
#include "tests/support.h"

#include "engine/alloc.h"
#include "models/schedule/block.h"
#include "models/schedule/check.h"
#include "models/schedule/generate.h"
#include "models/schedule/search/instance.h"
#include "models/schedule/search/reorder.h"
#include "models/schedule/search/repeat.h"
#include "models/schedule/timing.h"
#include "tests/searched.h"

enum { P_MAX = 12, V_MAX = 4 };

/* A schedule with its block, at the costs of cells: F, B, W and R take 1, BW 2, and every chunk holds 1. */
typedef struct made {
    const pc_generator *generator;
    pc_costs costs;
    pc_schedule schedule;
    pc_block block;
} made;

static void fill_cells(pc_costs *costs) {
    for (int i = 0; i < costs->devices * costs->chunks; i++) {
        for (int kind = 0; kind < PC_PASS_KINDS; kind++)
            costs->duration_ps[i * PC_PASS_KINDS + kind] = kind == PC_PASS_BW ? 2 : 1;
        costs->activation_bytes[i] = costs->activation_kept_bytes[i] = 1;
    }
}

/* False where the generator does not take this shape. */
static bool make(const char *name, int p, int m, int v, made *it) {
    const pc_generator *g = pc_generator_find(name);
    pc_error error = {0};
    if (pc_generator_check(g, p, m, v, &error)) return false;
    *it = (made){.generator = g};
    assert_int_equal(pc_costs_create(p, v ? v : g->chunks_default, &it->costs, NULL), PC_OK);
    fill_cells(&it->costs);
    pc_generate_request request = {.devices = p, .microbatches = m, .chunks = v, .costs = &it->costs, .threads = 1};
    if (pc_generate(g, &request, &it->schedule, &it->block, &error)) fail_msg("%s: %s", name, error.message);
    return true;
}

static void free_made(made *it) {
    pc_block_free(&it->block);
    pc_schedule_free(&it->schedule);
    pc_costs_free(&it->costs);
}

/* ---- a second opinion on validity ---- */

static int64_t start_of(const pc_block *b, int i, int part, int kind) {
    int device = pc_placement_stage(b->placement, b->devices, part, i);
    return pc_block_start(b, i, device, pc_placement_chunk(b->placement, b->devices, part, i), kind);
}

/* Marks the cells of the intervals one by one. */
static void check_cells(const pc_block *b) {
    static char taken[4096];
    for (int d = 0; d < b->devices; d++) {
        assert_true(b->interval <= (int64_t)sizeof taken);
        memset(taken, 0, sizeof taken);
        for (int64_t at = 0; at < (int64_t)b->microbatches * b->chunks * PC_PASS_KINDS; at++) {
            int kind = (int)(at % PC_PASS_KINDS), c = (int)(at / PC_PASS_KINDS % b->chunks);
            int64_t start = pc_block_start(b, (int)(at / PC_PASS_KINDS / b->chunks), d, c, kind);
            for (int64_t k = 0; start != PC_TIME_NOT_GIVEN && k < b->duration[kind]; k++)
                assert_int_equal(taken[(start + k) % b->interval]++, 0);
        }
    }
}

/* Every pass from its cell on, none before what it waits for has ended. */
static void check_waits(const pc_block *b) {
    int parts = pc_placement_parts(b->placement, b->devices, b->chunks);
    bool splits = b->duration[PC_PASS_W] > 0, recomputes = b->duration[PC_PASS_R] > 0;
    int back = splits ? PC_PASS_B : PC_PASS_BW;
    for (int i = 0; i < b->microbatches; i++)
        for (int part = 0; part < parts; part++) {
            int64_t f = start_of(b, i, part, PC_PASS_F), from = start_of(b, i, part, back);
            assert_true(f >= 0 && from >= f + 1);
            if (splits) assert_true(start_of(b, i, part, PC_PASS_W) >= from + 1);
            if (recomputes) assert_in_range(start_of(b, i, part, PC_PASS_R), f + 1, from - 1);
            if (part == parts - 1) continue;
            assert_true(start_of(b, i, part + 1, PC_PASS_F) >= f + 1);
            assert_true(from >= start_of(b, i, part + 1, back) + b->duration[back]);
        }
}

static void check_valid(const pc_block *b) {
    assert_true(pc_block_is_valid(b));
    check_cells(b);
    check_waits(b);
}

/* R stands between F and BW: an interval earlier it is before the one, a later one behind the other, and in neither
 * does it meet another pass. */
static void test_recomputation_has_its_place(void **state) {
    (void)state;
    made it;
    assert_true(make("1f1b-r", 4, 12, 0, &it));
    pc_block *b = &it.block;
    int64_t *r = &b->start[pc_block_index(b, 0, 3, 0, PC_PASS_R)], cell = *r;
    assert_true(pc_block_is_valid(b));
    *r = cell - b->interval;
    assert_false(pc_block_is_valid(b));
    *r = cell + b->interval;
    assert_false(pc_block_is_valid(b));
    free_made(&it);
}

/* ---- repeated ---- */

typedef struct placed {
    int64_t start;
    pc_pass pass;
} placed;

static int compare_placed(const void *a, const void *b) {
    const placed *x = a, *y = b;
    return (x->start > y->start) - (x->start < y->start);
}

/* The passes of m microbatches on a device, by their starts in the repeated block; returns their number. */
static int64_t repeat(const pc_block *b, int device, int m, placed *passes) {
    int64_t count = 0;
    for (int i = 0; i < m; i++)
        for (int c = 0; c < b->chunks; c++)
            for (int kind = 0; kind < PC_PASS_KINDS; kind++) {
                int64_t start = pc_block_start(b, i % b->microbatches, device, c, kind);
                if (start == PC_TIME_NOT_GIVEN) continue;
                start += i / b->microbatches * b->interval;
                passes[count++] = (placed){start, {i, (int16_t)c, (int16_t)kind}};
            }
    qsort(passes, (size_t)count, sizeof *passes, compare_placed);
    return count;
}

static bool same_pass(pc_pass a, pc_pass b) {
    return a.microbatch == b.microbatch && a.chunk == b.chunk && a.kind == b.kind;
}

/* The order of every device is the schedule's, and squeezing brings every pass forward or leaves it where it is. */
static void check_repeated(const made *it) {
    const pc_schedule *s = &it->schedule;
    pc_timing *timing;
    pc_timing_result squeezed;
    pc_error error = {0};
    placed *passes = malloc((size_t)(s->offsets[1] + 1) * sizeof *passes);
    assert_non_null(passes);
    assert_int_equal(pc_timing_create(&timing, NULL), PC_OK);
    if (pc_timing_run(timing, s, &it->costs, &squeezed, &error)) fail_msg("%s: %s", s->name, error.message);
    for (int d = 0; d < s->devices; d++) {
        assert_int_equal(repeat(&it->block, d, s->microbatches, passes), s->offsets[d + 1] - s->offsets[d]);
        for (int64_t k = 0; k < s->offsets[d + 1] - s->offsets[d]; k++) {
            if (!same_pass(passes[k].pass, s->passes[s->offsets[d] + k]))
                fail_msg("%s: p=%d m=%d v=%d: device %d, pass %d is another one", s->name, s->devices, s->microbatches,
                         s->chunks, d, (int)k);
            assert_true(squeezed.start_ps[s->offsets[d] + k] <= passes[k].start);
        }
    }
    pc_timing_free(timing);
    free(passes);
}

/* The same by the generators' own repeating and squeezing, which know one replica and no R. */
static void check_planned(const made *it) {
    const pc_generator *g = it->generator;
    pc_instance instance;
    pc_instance_order order;
    pc_reorder *reorder;
    pc_schedule s;
    if (g->placement == PC_PLACEMENT_BIDIRECTIONAL || g->recomputes) return;
    assert_int_equal(pc_instance_create(&it->costs, g->placement, g->splits, it->schedule.microbatches,
                                        (pc_memory_limit){NULL}, &instance, NULL),
                     PC_OK);
    assert_int_equal(pc_instance_order_create(&instance, &order, NULL), PC_OK);
    assert_int_equal(pc_reorder_create(&instance, &reorder, NULL), PC_OK);
    pc_repeat_block(&instance, &it->block, &order);
    assert_true(pc_reorder_squeeze(reorder, &order));
    assert_int_equal(pc_instance_to_schedule(&instance, &order, g->name, &s, NULL), PC_OK);
    assert_int_equal(s.offsets[s.devices], it->schedule.offsets[s.devices]);
    for (int64_t k = 0; k < s.offsets[s.devices]; k++) assert_true(same_pass(s.passes[k], it->schedule.passes[k]));
    pc_schedule_free(&s);
    pc_reorder_free(reorder);
    pc_instance_order_free(&order);
    pc_instance_free(&instance);
}

/* ---- memory ---- */

/* What the schedule holds is what the repeated block holds, for both run the same orders: to the byte where whole
 * blocks are repeated, and no more where the last one is cut short. No device holds more than the bound. */
static void check_memory(made *it, test_random *random) {
    const pc_schedule *s = &it->schedule;
    int64_t held[P_MAX];
    assert_int_equal(pc_schedule_peaks(s, &it->costs, held, NULL), PC_OK);
    for (int d = 0; d < s->devices; d++) assert_true(held[d] <= pc_block_peak_bound(&it->block, d));
    for (int i = 0; i < s->devices * s->chunks; i++) {
        it->costs.activation_bytes[i] = test_between(random, 1, 90);
        it->costs.activation_b_bytes[i] = test_between(random, 0, it->costs.activation_bytes[i]);
        it->costs.activation_kept_bytes[i] = test_between(random, 0, it->costs.activation_bytes[i]);
    }
    assert_int_equal(pc_schedule_peaks(s, &it->costs, held, NULL), PC_OK);
    for (int d = 0; d < s->devices; d++) {
        int64_t peak = pc_block_peak(&it->block, &it->costs, d, s->microbatches);
        assert_true(held[d] <= peak);
        if (s->microbatches % it->block.microbatches == 0) assert_int_equal(held[d], peak);
    }
}

static const char *const written[] = {"gpipe",
                                      "1f1b",
                                      "1f1b-r",
                                      "eager-1f1b",
                                      "1f1b-interleaved",
                                      "1f1b-interleaved-overlap",
                                      "1f1b-interleaved-low-memory",
                                      "looped-bfs",
                                      "zb-h1",
                                      "zb-h2",
                                      "zb-interleaved",
                                      "gis",
                                      "gis-h",
                                      "gis-uniform",
                                      "gis-h-uniform",
                                      "gems",
                                      "chimera"};
enum { WRITTEN = sizeof written / sizeof *written };

/* A last group of interleaved microbatches that is smaller than the others is no block of theirs cut short. */
static bool ends_in_a_rest(const made *it) {
    int m = it->schedule.microbatches, group = it->block.microbatches;
    return it->schedule.placement == PC_PLACEMENT_INTERLEAVED && m > group && m % group != 0 && it->schedule.chunks > 1;
}

static int check_shape(const char *name, int p, int m, int v, test_random *random) {
    made it;
    if (!make(name, p, m, v, &it)) return 0;
    check_valid(&it.block);
    if (ends_in_a_rest(&it)) {
        free_made(&it);
        return 1;
    }
    check_repeated(&it);
    check_planned(&it);
    check_memory(&it, random);
    free_made(&it);
    return 1;
}

/* Iterations shorter than the warm-up, of whole blocks and not, and long ones. */
static void test_repeated_it_is_the_schedule(void **state) {
    (void)state;
    test_random random = {6};
    for (int n = 0; n < WRITTEN; n++) {
        int shapes = 0, chunks_max = pc_generator_find(written[n])->chunks_max ? 0 : V_MAX;
        for (int p = 1; p <= P_MAX; p++)
            for (int v = chunks_max ? 1 : 0; v <= chunks_max; v++) {
                const int lengths[] = {1, 2, p + 1, 2 * p - 1, 3 * p + 2, p, 2 * p, 5 * p};
                for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
                    shapes += check_shape(written[n], p, lengths[i], v, &random);
            }
        assert_true(shapes >= 8 * P_MAX);
    }
}

static void test_every_written_schedule_is_here(void **state) {
    (void)state;
    int count, found = 0;
    const pc_generator *all = pc_generators(&count);
    for (int i = 0; i < count; i++)
        found += !all[i].searches && !all[i].mixes && !pc_placement_has_slices(all[i].placement) &&
                 all[i].barriers == PC_BARRIERS_NONE;
    assert_int_equal(found, WRITTEN);
}

/* ---- closed forms ---- */

/* All lifespans of the block on the first device, in cells, F 1 and BW 2, or F, B and W 1:
 *   gpipe 3(m+p-1): m F in intervals of 3, then p-1 F down the devices and p-1 BW up
 *   1f1b 3p; 1f1b-r 4p; eager-1f1b 3(2p-1); zb-h1 3p; zb-h2 3(2p-1): an interval an F before the first backward pass
 *   interleaved 3(w+1) for each of the pv passes on average, w = e(p-1) + (v-1)p; so are zb-interleaved and gis, e = 1
 *   gis-h the same for nv passes, n = p/2, rounded up, for p in w
 *   looped-bfs, m >= p, L = mv + p-1: from cell t = cm + i of each F to the end of its BW in 3L - 2t, 3L - 3t; mv of
 * them: 3mv (mv + p-1) - 3mv (mv-1)/2
 *   gems 4p+2: one microbatch at any time
 *   chimera, even p: 4p for each of the p/2 that start here, and 4 for each of those that end here
 *   chimera, odd p: 4p+2 for each of the (p+1)/2 that start here, but 4p-1 for the first, whose F comes late in its
 * slot, and 4 for those that end here, but 3 for the last: 2p^2 + 5p - 1 */
static int64_t lives_of_first(const pc_block *b) {
    int64_t sum = 0;
    for (int i = 0; i < b->microbatches; i++)
        for (int c = 0; c < b->chunks; c++)
            if (pc_placement_visits(b->placement, c, i)) sum += pc_block_lifespan(b, i, 0, c);
    return sum;
}

static void check_form(const char *name, int p, int m, int v, int64_t interval, int64_t lives) {
    made it;
    assert_true(make(name, p, m, v, &it));
    assert_int_equal(it.block.interval, interval);
    if (lives_of_first(&it.block) != lives)
        fail_msg("%s: p=%d m=%d v=%d: %d cells alive, expected %d", name, p, m, v, (int)lives_of_first(&it.block),
                 (int)lives);
    free_made(&it);
}

static void test_closed_forms(void **state) {
    (void)state;
    for (int p = 1; p <= P_MAX; p++) {
        for (int m = 1; m <= 20; m += 3) check_form("gpipe", p, m, 0, 3, 3 * (m + p - 1));
        check_form("1f1b", p, 2 * p, 0, 3, 3 * p);
        check_form("1f1b-r", p, 2 * p, 0, 4, 4 * p);
        check_form("eager-1f1b", p, 2 * p, 0, 3, 3 * (2 * p - 1));
        check_form("zb-h1", p, 2 * p, 0, 3, 3 * p);
        check_form("zb-h2", p, 2 * p, 0, 3, 3 * (2 * p - 1));
        for (int v = 2; v <= V_MAX; v++) {
            int64_t w = p - 1 + (v - 1) * p;
            check_form("1f1b-interleaved-low-memory", p, 2 * p, v, 3 * p * v, 3 * p * v * (w + 1));
            check_form("1f1b-interleaved", p, 2 * p, v, 3 * p * v, 3 * p * v * (w + p));
            check_form("1f1b-interleaved-overlap", p, 2 * p, v, 3 * p * v, 3 * p * v * (w + p + 1));
            check_form("zb-interleaved", p, 2 * p, v, 3 * p * v, 3 * p * v * (w + 1));
            check_form("gis", p, 2 * p, v, 3 * p * v, 3 * p * v * (w + 1));
            int64_t half = (p + 1) / 2;
            check_form("gis-h", p, 2 * p, v, 3 * half * v, 3 * half * v * (p + (v - 1) * half));
            int64_t n = 2 * p * v;
            check_form("looped-bfs", p, 2 * p, v, 3 * (n + p - 1), 3 * n * (n + p - 1) - 3 * n * (n - 1) / 2);
        }
        check_form("gems", p, 2 * p, 0, 4 * p + 2, 4 * p + 2);
        if (p % 2 == 0)
            check_form("chimera", p, 2 * p, 0, 4 * p, p / 2 * (4 * p + 4));
        else
            check_form("chimera", p, 2 * p, 0, 4 * p + 2, 2 * p * p + 5 * p - 1);
    }
}

/* ---- what a schedule repeats ---- */

static bool same_block(const pc_block *a, const pc_block *b) {
    int64_t count = (int64_t)a->microbatches * a->devices * a->chunks * PC_PASS_KINDS;
    if (a->microbatches != b->microbatches || a->devices != b->devices || a->interval != b->interval) return false;
    return memcmp(a->start, b->start, (size_t)count * sizeof *a->start) == 0 &&
           memcmp(a->duration, b->duration, PC_PASS_KINDS * sizeof *a->duration) == 0;
}

static void check_found(const char *name, int p, int m, int v, bool is_there) {
    made it;
    pc_block found;
    assert_true(make(name, p, m, v, &it));
    assert_int_equal(pc_block_of_schedule(&it.schedule, &found, NULL), PC_OK);
    assert_int_equal(found.devices, is_there ? p : 0);
    if (is_there && !same_block(&found, &it.block)) fail_msg("%s: p=%d m=%d: another block", name, p, m);
    pc_block_free(&found);
    free_made(&it);
}

/* Where every device waits for another one squeezing leaves the block as it is, and it is found again; not in short
 * iterations, and not where it has more than two microbatches. */
static void test_found_in_the_schedule(void **state) {
    (void)state;
    static const char *const names[] = {"1f1b", "zb-h1", "gems"};
    for (size_t n = 0; n < sizeof names / sizeof *names; n++)
        for (int p = 1; p <= 8; p++) {
            check_found(names[n], p, 6 * p + 2, 0, true);
            check_found(names[n], p, 400, 0, true);
            check_found(names[n], p, 1, 0, false);
        }
    check_found("gpipe", 4, 12, 0, false);
    check_found("1f1b-interleaved", 4, 64, 2, false);
}

/* One microbatch with B and W, one with BW: no block says that. */
static void test_mixed_passes_are_no_block(void **state) {
    (void)state;
    made it;
    assert_true(make("dualpipe-v", 4, 16, 0, &it));
    assert_int_equal(it.block.devices, 0);
    free_made(&it);
    const int64_t lengths[] = {5 * 8};
    pc_schedule s;
    pc_block found;
    assert_int_equal(pc_schedule_create("mixed", 1, 16, 1, PC_PLACEMENT_LINEAR, lengths, &s, NULL), PC_OK);
    for (int32_t i = 0, k = 0; i < 16; i++) {
        s.passes[k++] = (pc_pass){i, 0, PC_PASS_F};
        s.passes[k++] = (pc_pass){i, 0, i % 2 ? PC_PASS_BW : PC_PASS_B};
        if (i % 2 == 0) s.passes[k++] = (pc_pass){i, 0, PC_PASS_W};
    }
    assert_int_equal(pc_schedule_check(&s, NULL), PC_OK);
    assert_int_equal(pc_block_of_schedule(&s, &found, NULL), PC_OK);
    assert_int_equal(found.devices, 0);
    pc_schedule_free(&s);
}

static void test_found_without_memory(void **state) {
    (void)state;
    made it;
    pc_block found;
    pc_code code = PC_ERROR_NO_MEMORY;
    assert_true(make("1f1b", 3, 12, 0, &it));
    for (int i = 0; code; i++) {
        pc_alloc_fail_after(i);
        code = pc_block_of_schedule(&it.schedule, &found, NULL);
        pc_alloc_fail_after(-1);
        assert_true(code == PC_OK || code == PC_ERROR_NO_MEMORY);
        assert_true(i < 100);
    }
    pc_block_free(&found);
    free_made(&it);
}

/* Whether the schedule has, somewhere on the device, the passes of two intervals in the order of the repeated block. */
static bool runs_block(const made *it, int device) {
    const pc_schedule *s = &it->schedule;
    int64_t length = s->offsets[device + 1] - s->offsets[device], n = length / s->microbatches * it->block.microbatches;
    const pc_pass *passes = s->passes + s->offsets[device];
    placed *order = malloc((size_t)(length + 1) * sizeof *order);
    bool is_found = false;
    assert_int_equal(repeat(&it->block, device, s->microbatches, order), length);
    int64_t from = length / 2 - n;
    while (order[from].pass.kind != PC_PASS_F || order[from].pass.chunk != 0) from++;
    for (int64_t k = 0; k + 2 * n <= length && !is_found; k++) {
        int32_t later = passes[k].microbatch - order[from].pass.microbatch;
        is_found = later % it->block.microbatches == 0;
        for (int64_t j = 0; j < 2 * n && is_found; j++) {
            pc_pass wanted = order[from + j].pass;
            wanted.microbatch += later;
            is_found = same_pass(passes[k + j], wanted);
        }
    }
    free(order);
    return is_found;
}

/* Where there is time to spare squeezing moves devices against each other: what is found is another block, of the same
 * orders. */
static void test_found_where_there_is_time_to_spare(void **state) {
    (void)state;
    static const char *const names[] = {"eager-1f1b", "zb-h2", "1f1b-r"};
    for (size_t n = 0; n < sizeof names / sizeof *names; n++)
        for (int p = 1; p <= 8; p++) {
            made it;
            assert_true(make(names[n], p, 6 * p + 2, 0, &it));
            pc_block_free(&it.block);
            assert_int_equal(pc_block_of_schedule(&it.schedule, &it.block, NULL), PC_OK);
            assert_int_equal(it.block.devices, p);
            check_valid(&it.block);
            for (int d = 0; d < p; d++) assert_true(runs_block(&it, d));
            free_made(&it);
        }
}

/* ---- searched ---- */

/* Warm-up and cool-down are reordered, the middle is the block's; and the block keeps the limit of the name. */
static void test_searched_repeat_their_block(void **state) {
    (void)state;
    int count;
    const pc_generator *all = pc_generators(&count);
    for (int n = 0; n < count; n++)
        for (int p = 2; p <= 6 && all[n].searches; p++) {
            made it;
            if (p == 3 && strcmp(all[n].name, "zb-two-thirds") == 0)
                continue; /* it repeats nothing, docs/searches.md */
            assert_true(make(all[n].name, p, 4 * p + 2, 0, &it));
            if (all[n].placement == PC_PLACEMENT_INTERLEAVED && it.block.devices == 0) {
                free_made(&it); /* it repeats groups of more than two microbatches, if anything */
                continue;
            }
            check_valid(&it.block);
            for (int d = 0; d < p; d++) {
                if (!runs_block(&it, d)) fail_msg("%s: p=%d: device %d does something else", all[n].name, p, d);
                int64_t held = pc_block_peak(&it.block, &it.costs, d, 100);
                assert_true(held <= searched_microbatches(all[n].name, p) * it.schedule.chunks);
            }
            free_made(&it);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_written_schedule_is_here),
        cmocka_unit_test(test_recomputation_has_its_place),
        cmocka_unit_test(test_repeated_it_is_the_schedule),
        cmocka_unit_test(test_closed_forms),
        cmocka_unit_test(test_found_in_the_schedule),
        cmocka_unit_test(test_found_where_there_is_time_to_spare),
        cmocka_unit_test(test_mixed_passes_are_no_block),
        cmocka_unit_test(test_found_without_memory),
        cmocka_unit_test(test_searched_repeat_their_block),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
