/* The orders that others run (deployed.h): beside what their generators wrote, where that data is there; their closed
 * forms; and that every one can run. */
#include "tests/refusals.h"
#include "tests/support.h"

#include "models/schedule/check.h"
#include "models/schedule/exchange.h"
#include "models/schedule/generate.h"
#include "models/schedule/replay.h"

#include <math.h>

/* ---- generators and makings ---- */

static void assert_makings(const char *name, pc_making making, const char *message) {
    pc_error error = {0};
    const pc_generator *generator = pc_generator_find(name);
    assert_int_equal(pc_generator_check_making(generator, making, &error), PC_ERROR_INPUT);
    assert_string_equal(error.message, message);
    assert_false(pc_generator_has_making(generator, making));
}

static void test_makings(void **state) {
    (void)state;
    const pc_generator *static_one = pc_generator_find("gpipe"), *searched = pc_generator_find("zb-two-thirds");
    assert_makings("zb-two-thirds", PC_MAKING_PUBLISHED,
                   "zb-two-thirds: making published: nobody gives such an order of it; expected costs or equal");
    assert_makings(
        "gpipe", PC_MAKING_MEGATRON,
        "gpipe: making megatron: nobody gives such an order of it; expected costs, equal, published or torch");
    for (pc_making making = 0; making <= PC_MAKING_EQUAL; making++) {
        assert_int_equal(pc_generator_check_making(static_one, making, NULL), PC_OK);
        assert_false(pc_generator_has_making(static_one, making));
        assert_true(pc_generator_has_making(searched, making));
    }
    assert_int_equal(pc_generator_check_making(static_one, PC_MAKING_PUBLISHED, NULL), PC_OK);
    assert_true(pc_generator_has_making(pc_generator_find("v-min"), PC_MAKING_PUBLISHED));
}

/* ---- costs ---- */

/* Times of a chunk, in any unit; and what F takes and B gives back of it. */
typedef struct one_cost {
    double f, b, w, comm;
    int64_t taken, given_by_b;
} one_cost;

#define TICKS 1e6 /* a unit of time */

static pc_costs costs_of(int p, int v, const one_cost *one) {
    pc_costs costs;
    assert_int_equal(pc_costs_create(p, v, &costs, NULL), PC_OK);
    const double times[PC_PASS_KINDS] = {one->f, one->b, one->w, one->b + one->w, 0.0};
    for (int64_t i = 0; i < (int64_t)p * v; i++) {
        for (int kind = 0; kind < PC_PASS_KINDS; kind++)
            costs.duration_ps[i * PC_PASS_KINDS + kind] = llround(times[kind] * TICKS);
        costs.activation_bytes[i] = one->taken;
        costs.activation_b_bytes[i] = one->given_by_b;
    }
    costs.transfer.delay_ps = llround(one->comm * TICKS);
    return costs;
}

static const one_cost equal_cost = {1, 1, 1, 0, 1, 0};

/* `limit` in what one pass's F takes, on every device; 0: none. */
typedef struct wish {
    const char *name;
    pc_making making;
    int p, m, v;
    int64_t limit;
} wish;

static pc_code generate(const wish *wanted, const pc_costs *costs, pc_schedule *schedule, pc_error *error) {
    int64_t limits[64];
    assert_true(wanted->p <= 64);
    for (int d = 0; d < wanted->p; d++) limits[d] = wanted->limit * costs->activation_bytes[0];
    pc_generate_request request = {.devices = wanted->p,
                                   .microbatches = wanted->m,
                                   .chunks = wanted->v,
                                   .costs = costs,
                                   .memory_limit = {wanted->limit ? limits : NULL},
                                   .threads = 1,
                                   .making = wanted->making};
    return pc_generate(pc_generator_find(wanted->name), &request, schedule, NULL, error);
}

static int chunks_of(const wish *wanted) {
    return wanted->v ? wanted->v : pc_generator_find(wanted->name)->chunks_default;
}

static pc_replay replay(const wish *wanted, const one_cost *one) {
    pc_error error = {0};
    pc_schedule schedule;
    pc_replay made;
    pc_costs costs = costs_of(wanted->p, chunks_of(wanted), one);
    if (generate(wanted, &costs, &schedule, &error)) fail_msg("%s", error.message);
    assert_int_equal(pc_replay_run(&schedule, &costs, NULL, &made, NULL), PC_OK);
    pc_schedule_free(&schedule);
    pc_costs_free(&costs);
    return made;
}

/* ---- beside the generators' own output ---- */

static FILE *open_shared(const char *file) {
    char path[4096];
    const char *root = getenv("PC_SOURCE_ROOT");
    snprintf(path, sizeof path, "%s/../shared/data/schedules/%s", root ? root : ".", file);
    FILE *stream = fopen(path, "r");
    if (!stream) print_message("skipped: %s is not there\n", path);
    return stream;
}

/* Orders of 4 devices and 8 microbatches at equal times, which --format text writes as these files do. */
static const struct {
    const char *file;
    wish wanted;
} orders[] = {
    {"V-Min_p4_m8.txt", {"v-min", PC_MAKING_PUBLISHED, 4, 8, 0, 0}},
    {"V-Half_p4_m8.txt", {"v-half", PC_MAKING_PUBLISHED, 4, 8, 0, 0}},
    {"V-adaptive_lim4_p4_m8.txt", {"v-adaptive", PC_MAKING_PUBLISHED, 4, 8, 0, 4}},
    {"V-adaptive_lim6_p4_m8.txt", {"v-adaptive", PC_MAKING_PUBLISHED, 4, 8, 0, 6}},
    {"V-adaptive_lim8_p4_m8.txt", {"v-adaptive", PC_MAKING_PUBLISHED, 4, 8, 0, 8}},
    {"1F1B-V_p4_m8.txt", {"1f1b-v", PC_MAKING_PUBLISHED, 4, 8, 0, 0}},
};

static void check_order(const wish *wanted, FILE *expected) {
    pc_error error = {0};
    pc_schedule schedule;
    pc_costs costs = costs_of(4, chunks_of(wanted), &equal_cost);
    if (generate(wanted, &costs, &schedule, &error)) fail_msg("%s", error.message);
    FILE *ours = tmpfile();
    int a, b;
    pc_schedule_write_text(&schedule, ours);
    rewind(ours);
    do {
        a = fgetc(expected);
        b = fgetc(ours);
        if (a != b) fail_msg("%s, limit %d: another order", wanted->name, (int)wanted->limit);
    } while (a != EOF);
    fclose(ours);
    pc_schedule_free(&schedule);
    pc_costs_free(&costs);
}

static void test_orders(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++) {
        char path[128];
        snprintf(path, sizeof path, "orders/%s", orders[i].file);
        FILE *expected = open_shared(path);
        if (!expected) skip();
        check_order(&orders[i].wanted, expected);
        fclose(expected);
    }
}

/* Rows of reference.csv of each scheduler, how many there are, and of how many one is taken in a quick run and in a
 * full one. */
static const struct published {
    const char *scheduler, *name;
    int rows, quick, full;
} published[] = {
    {"V-Min", "v-min", 69, 5, 1},
    {"V-Half", "v-half", 69, 5, 1},
    {"V-adaptive", "v-adaptive", 678, 40, 8},
    {"1F1B-V", "1f1b-v", 72, 5, 1},
};

enum {
    P = 1,
    M,
    CHUNKS,
    F,
    B,
    W,
    COMM,
    MEM_F,
    MEM_B,
    LIMIT = 11,
    SPAN = 13,
    MAKESPAN = 15,
    UNITS = 18,
    BYTES = 20,
    FIELDS
};

/* Memory in 2^-20 of the row's unit. Where B frees some of it the peak is in that unit, else it counts F. */
static one_cost cost_of_row(char *const *field) {
    const double unit = atof(field[MEM_F]) != 0.0 ? 0x1p20 : 0.0;
    one_cost one = {atof(field[F]), atof(field[B]), atof(field[W]), atof(field[COMM]), 1, 0};
    if (unit == 0.0) return one;
    one.taken = llround(atof(field[MEM_F]) * unit);
    one.given_by_b = llround(-atof(field[MEM_B]) * unit);
    return one;
}

static double peak_of_row(char *const *field, const one_cost *one) {
    return one->given_by_b ? atof(field[BYTES]) * 0x1p20 : atof(field[UNITS]) * (double)one->taken;
}

static void check_row(const char *name, char *const *field) {
    one_cost one = cost_of_row(field);
    double mem_f = atof(field[MEM_F]), limit = atof(field[LIMIT]), peak = peak_of_row(field, &one);
    wish wanted = {name,           PC_MAKING_PUBLISHED, atoi(field[P]),
                   atoi(field[M]), atoi(field[CHUNKS]), llround(mem_f != 0.0 ? limit / mem_f : limit)};
    pc_replay found = replay(&wanted, &one);
    double span = atof(field[SPAN]), makespan = atof(field[MAKESPAN]), ours = (double)found.span_ps / TICKS,
           ours_all = (double)found.makespan_ps / TICKS, slack = 1e-9 * span + 6e-6 * wanted.m * wanted.v;
    if (fabs(ours - span) > slack || fabs(ours_all - makespan) > slack ||
        fabs((double)found.peak_bytes - peak) > 1e-6 * peak)
        fail_msg("%s p=%d m=%d limit %d: span %.9g, reference %.9g; makespan %.9g, %.9g; peak %g, %g", name, wanted.p,
                 wanted.m, (int)wanted.limit, ours, span, ours_all, makespan, (double)found.peak_bytes, peak);
    pc_replay_free(&found);
}

static void check_rows(const struct published *of, FILE *file) {
    char line[1024], *field[32];
    int seen = 0, every = (int)test_part(of->quick, of->full);
    rewind(file);
    while (fgets(line, sizeof line, file)) {
        char *rest = line;
        int count = 0;
        while (rest && count < 32) field[count++] = strsep(&rest, ",");
        if (count < FIELDS || strcmp(field[0], of->scheduler) != 0 || !*field[SPAN]) continue;
        if (seen++ % every == 0) check_row(of->name, field);
    }
    assert_int_equal(seen, of->rows);
}

/* The same span, makespan and peak as the public generators have. */
static void test_rows(void **state) {
    (void)state;
    FILE *file = open_shared("reference.csv");
    if (!file) skip();
    for (size_t i = 0; i < sizeof published / sizeof *published; i++) check_rows(&published[i], file);
    fclose(file);
}

/* ---- closed forms ---- */

/* Idle cells of the worst device, and the most that it holds in chunks, at equal times and m >= 2p. */
static void check_form(const wish *wanted, int idle, int peak) {
    pc_replay found = replay(wanted, &equal_cost);
    int64_t cells = llround((double)found.span_ps / TICKS) - 6 * (int64_t)wanted->m;
    if (cells != idle || found.peak_bytes != peak)
        fail_msg("%s p=%d m=%d limit %d: idles %d, holds %d; expected %d, %d", wanted->name, wanted->p, wanted->m,
                 (int)wanted->limit, (int)cells, (int)found.peak_bytes, idle, peak);
    pc_replay_free(&found);
}

/* 'Controllable Memory' (arXiv 2405.15362), section 3 and tables 8 and 9. Of V-Min's block, where 3 does not divide p,
 * the first device begins its last B0 in cell 4p-1 + 6(m-1), and a W follows: 6m + 4p-5 cells since its first F. Where
 * 3 divides p its B come 2 cells later, and moving what is behind the steady phase saves 4. V-Half's first device would
 * have 6m + 6p-6 (and 3 for even p); moving saves 3p-2, and 3p+4. */
static void test_v_min_and_v_half(void **state) {
    (void)state;
    for (int p = 3; p <= 24; p++)
        for (int m = 2 * p; m <= 3 * p; m += p) {
            wish v_min = {"v-min", PC_MAKING_PUBLISHED, p, m, 0, 0}, v_half = v_min;
            v_half.name = "v-half";
            check_form(&v_min, p % 3 == 0 ? 4 * p - 7 : 4 * p - 5, 2 * ((p + 4) / 3));
            check_form(&v_half, p % 2 == 0 ? 3 * p - 7 : 3 * p - 4, p % 2 == 0 ? p + 2 : p + 1);
        }
}

/* Adaptive V at x chunks, of which at least 2 ceil((p+2)/3) are needed: 6p-1-3x idle cells, where 2p, all of 1F1B's,
 * leave none, and one chunk less 3 (arXiv 2405.15362, section 4). */
static void test_v_adaptive(void **state) {
    (void)state;
    for (int p = 3; p <= test_part(5, 8); p++)
        for (int x = 2 * ((p + 4) / 3); x <= 2 * p; x++) {
            wish wanted = {"v-adaptive", PC_MAKING_PUBLISHED, p, 2 * p, 0, x};
            pc_replay found = replay(&wanted, &equal_cost);
            int idle = x == 2 * p ? 0 : x == 2 * p - 1 ? 3 : 6 * p - 1 - 3 * x;
            assert_int_equal(llround((double)found.span_ps / TICKS), 12 * p + idle);
            assert_true(found.peak_bytes <= x);
            pc_replay_free(&found);
        }
}

/* One chunk less than any of its blocks holds; and one device, for which it has none. */
static void test_v_adaptive_refuses(void **state) {
    (void)state;
    wish wanted = {"v-adaptive", PC_MAKING_PUBLISHED, 4, 8, 0, 3};
    pc_schedule schedule;
    pc_error error = {0};
    pc_costs costs = costs_of(4, 2, &equal_cost);
    assert_int_equal(generate(&wanted, &costs, &schedule, &error), PC_ERROR_INPUT);
    assert_string_equal(
        error.message, "v-adaptive: making published: the public generator has no order that holds at most 3 chunks of "
                       "microbatches on a device; expected room for more");
    pc_costs_free(&costs);
    wanted.p = 1;
    costs = costs_of(1, 2, &equal_cost);
    assert_int_equal(generate(&wanted, &costs, &schedule, &error), PC_ERROR_INPUT);
    assert_string_equal(error.message, "v-adaptive: making published: 1 device; expected at least 2");
    pc_costs_free(&costs);
}

/* Whatever the threads, the same order; at times at which several blocks come to the same span. */
static void test_threads_do_not_show(void **state) {
    (void)state;
    pc_costs costs = costs_of(5, 2, &(one_cost){2, 2, 1, 1, 1, 0});
    const pc_generator *self = pc_generator_find("v-adaptive");
    pc_generate_request request = {
        .devices = 5, .microbatches = 11, .costs = &costs, .threads = 1, .making = PC_MAKING_PUBLISHED};
    pc_schedule alone, together;
    assert_int_equal(pc_generate(self, &request, &alone, NULL, NULL), PC_OK);
    for (request.threads = 2; request.threads < 5; request.threads++) {
        assert_int_equal(pc_generate(self, &request, &together, NULL, NULL), PC_OK);
        assert_memory_equal(together.passes, alone.passes, (size_t)alone.offsets[5] * sizeof *alone.passes);
        pc_schedule_free(&together);
    }
    pc_schedule_free(&alone);
    pc_costs_free(&costs);
}

/* ---- all of them ---- */

/* Any shape: an order that can run, or one line that says why there is none. */
static void check_any(const pc_generator *generator, pc_making making, test_random *random) {
    int p = (int)test_between(random, 1, 9), m = (int)test_between(random, 1, 4 * p);
    int v = (int)test_between(random, generator->chunks_min, generator->chunks_max ? generator->chunks_max : 4);
    wish wanted = {generator->name, making, p, m, v, test_between(random, 0, 1) ? test_between(random, 1, 3 * p) : 0};
    const one_cost one = {(double)test_between(random, 1, 9),
                          (double)test_between(random, 1, 9),
                          (double)test_between(random, 1, 9),
                          (double)test_between(random, 0, 3),
                          34,
                          5};
    pc_schedule schedule = {0};
    pc_error error = {0};
    if (pc_generator_check(generator, p, m, v, NULL)) return;
    pc_costs costs = costs_of(p, v, &one);
    pc_code code = generate(&wanted, &costs, &schedule, &error);
    if (code) {
        assert_int_equal(code, PC_ERROR_INPUT);
        assert_int_equal(strncmp(error.message, generator->name, strlen(generator->name)), 0);
    } else {
        if (pc_schedule_check(&schedule, &error))
            fail_msg("%s p=%d m=%d v=%d: %s", generator->name, p, m, v, error.message);
        assert_string_equal(schedule.name, generator->name);
        assert_int_equal(schedule.placement, generator->placement);
        assert_int_equal(pc_schedule_has(&schedule, PC_PASS_W), generator->splits);
    }
    pc_schedule_free(&schedule);
    pc_costs_free(&costs);
}

static void test_all_can_run(void **state) {
    (void)state;
    test_random random = {21};
    int count, makings = 0;
    const pc_generator *all = pc_generators(&count);
    for (int g = 0; g < count; g++)
        for (pc_making making = PC_MAKING_PUBLISHED; making < PC_MAKINGS; making++) {
            if (!pc_generator_has_making(&all[g], making)) continue;
            makings++;
            for (long i = 0; i < test_cases(100, 1000); i++) check_any(&all[g], making, &random);
        }
    assert_true(makings > 0);
}

static void test_no_memory(void **state) {
    (void)state;
    int count;
    const pc_generator *all = pc_generators(&count);
    for (int g = 0; g < count; g++)
        for (pc_making making = PC_MAKING_PUBLISHED; making < PC_MAKINGS; making++) {
            if (!pc_generator_has_making(&all[g], making)) continue;
            wish wanted = {all[g].name, making, 2, 4, 0, 0};
            pc_costs costs = costs_of(2, chunks_of(&wanted), &equal_cost);
            for (refusals x = {0}; next_refusal(&x);) {
                pc_error error;
                pc_schedule schedule = {0};
                x.code = generate(&wanted, &costs, &schedule, &error);
                if (!x.code) pc_schedule_free(&schedule);
            }
            pc_costs_free(&costs);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_makings),
        cmocka_unit_test(test_orders),
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_v_min_and_v_half),
        cmocka_unit_test(test_v_adaptive),
        cmocka_unit_test(test_v_adaptive_refuses),
        cmocka_unit_test(test_threads_do_not_show),
        cmocka_unit_test(test_all_can_run),
        cmocka_unit_test(test_no_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
