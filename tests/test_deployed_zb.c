/* ZB-1P, ZB-2P, ZB-V and interleaved 1F1B as published: closed forms, legality, and the reference orders and rows where
 * the data is there. */
#include "tests/support.h"

#include "engine/alloc.h"
#include "models/schedule/check.h"
#include "models/schedule/exchange.h"
#include "models/schedule/generate.h"
#include "models/schedule/replay.h"

#include <inttypes.h>
#include <math.h>

/* A request and what it needs: times and activations of a chunk, alike on all devices. */
typedef struct problem {
    const char *name;
    int p, m, v;
    int64_t times[3], comm, added, by_b; /* activation of a chunk, and what of it B gives back */
    const int64_t *limit;                /* NULL: none */
} problem;

static pc_costs costs_of(const problem *asked) {
    pc_costs costs;
    assert_int_equal(pc_costs_create(asked->p, asked->v, &costs, NULL), PC_OK);
    for (int64_t i = 0; i < (int64_t)asked->p * asked->v; i++) {
        for (int kind = 0; kind < 3; kind++) costs.duration_ps[i * PC_PASS_KINDS + kind] = asked->times[kind];
        costs.duration_ps[i * PC_PASS_KINDS + PC_PASS_BW] = asked->times[1] + asked->times[2];
        costs.activation_bytes[i] = asked->added;
        costs.activation_b_bytes[i] = asked->by_b;
    }
    costs.transfer.delay_ps = asked->comm;
    return costs;
}

static pc_code try_published(const problem *asked, const pc_costs *costs, pc_schedule *schedule, pc_error *error) {
    pc_generate_request request = {.devices = asked->p,
                                   .microbatches = asked->m,
                                   .chunks = asked->v,
                                   .costs = costs,
                                   .memory_limit = {asked->limit},
                                   .threads = 1,
                                   .making = PC_MAKING_PUBLISHED};
    return pc_generate(pc_generator_find(asked->name), &request, schedule, NULL, error);
}

static pc_schedule published(const problem *asked, const pc_costs *costs) {
    pc_schedule schedule;
    pc_error error = {0};
    if (try_published(asked, costs, &schedule, &error))
        fail_msg("%s %d %d: %s", asked->name, asked->p, asked->m, error.message);
    return schedule;
}

typedef struct figures {
    int64_t span, makespan, peak;
} figures;

static figures figures_of(const problem *asked) {
    pc_costs costs = costs_of(asked);
    pc_schedule schedule = published(asked, &costs);
    pc_replay replay;
    pc_error error = {0};
    if (pc_replay_run(&schedule, &costs, NULL, &replay, &error)) fail_msg("%s", error.message);
    figures found = {replay.span_ps, replay.makespan_ps, replay.peak_bytes};
    pc_replay_free(&replay);
    pc_schedule_free(&schedule);
    pc_costs_free(&costs);
    return found;
}

/* ---- closed forms ---- */

/* F = B = W = 1, no transfer time, W gives back all, m >= 2p. The first F goes down p cells, and the first B back up in
 * p-1 more. By then device 0 has room for p F, ZB-1P's limit, and idles the other p-1 cells. Every device idles p-1
 * in all, later or earlier. Within ZB-2P's limit of 2p, the time is filled by 2p-1 F. */
static void test_linear_forms(void **state) {
    (void)state;
    for (int p = 1; p <= test_part(9, 20); p++)
        for (int m = 2 * p; m <= 4 * p; m++) {
            figures one = figures_of(&(problem){"zb-1p", p, m, 1, {1, 1, 1}, 0, 1, 0, NULL});
            figures two = figures_of(&(problem){"zb-2p", p, m, 1, {1, 1, 1}, 0, 1, 0, NULL});
            assert_int_equal(one.span, 3 * m + p - 1);
            assert_int_equal(one.peak, p);
            assert_int_equal(two.span, 3 * m);
            assert_true(two.peak <= 2 * p);
        }
}

/* The same in a V: an F of chunk 1 can begin on device 0 after 2p-1 cells, which as many F of chunk 0 fill; it makes 2p
 * chunks, the limit, and B of chunk 1 follows at once. */
static void test_v_forms(void **state) {
    (void)state;
    for (int p = 1; p <= test_part(9, 20); p++)
        for (int m = 2 * p; m <= 4 * p; m++) {
            figures found = figures_of(&(problem){"zb-v", p, m, 2, {1, 1, 1}, 0, 1, 0, NULL});
            assert_int_equal(found.span, 6 * m);
            assert_int_equal(found.peak, 2 * p);
        }
}

/* ---- any request ---- */

static const char *const names[] = {"zb-1p", "zb-2p", "zb-v", "v-zb"};

/* Times, a transfer, and memory of which B gives back a part, drawn; for each device of its own in half of the cases.
 */
static void draw_costs(test_random *random, pc_costs *costs) {
    bool differs = test_draw(random) & 1;
    for (int64_t i = 0; i < (int64_t)costs->devices * costs->chunks; i++) {
        for (int kind = 0; kind < 3; kind++)
            costs->duration_ps[i * PC_PASS_KINDS + kind] =
                i && !differs ? costs->duration_ps[kind] : test_between(random, 0, 30);
        costs->activation_bytes[i] = i && !differs ? costs->activation_bytes[0] : test_between(random, 1, 20);
        costs->activation_b_bytes[i] =
            i && !differs ? costs->activation_b_bytes[0] : test_between(random, 0, costs->activation_bytes[i]);
    }
    costs->transfer.delay_ps = test_between(random, 0, 20);
}

static void check_legal(const problem *asked, const pc_costs *costs, const pc_schedule *schedule) {
    int64_t peak_bytes[16];
    pc_error error = {0};
    if (pc_schedule_check(schedule, &error)) fail_msg("%s %d %d: %s", asked->name, asked->p, asked->m, error.message);
    assert_string_equal(schedule->name, asked->name);
    assert_int_equal(pc_schedule_peaks(schedule, costs, peak_bytes, NULL), PC_OK);
    for (int d = 0; asked->limit && d < asked->p; d++) assert_true(peak_bytes[d] <= asked->limit[d]);
}

/* Whatever is asked for, the order can run and keeps the limit. Within a limit of the request's there may be none:
 * ZB-V's generator wants room for what its first F take, and that of ZB-1P as much on each device as on those after it.
 */
static void test_all_are_legal(void **state) {
    (void)state;
    test_random random = {21};
    int refused = 0;
    long cases = test_cases(600, 6000);
    for (long i = 0; i < cases; i++) {
        const char *name = names[test_between(&random, 0, 3)];
        int64_t limit[16];
        int p = (int)test_between(&random, 1, 10), m = (int)test_between(&random, 1, 4 * p);
        problem asked = {name, p, m, pc_generator_find(name)->chunks_default, {0, 0, 0}, 0, 1, 0, NULL};
        pc_costs costs = costs_of(&asked);
        pc_schedule schedule;
        draw_costs(&random, &costs);
        for (int d = 0; d < p; d++)
            limit[d] = pc_generator_least_memory(pc_generator_find(name), &costs, d) + test_between(&random, 0, 20 * p);
        if (test_draw(&random) & 1) asked.limit = limit;
        pc_code code = try_published(&asked, &costs, &schedule, NULL);
        if (code) {
            assert_non_null(asked.limit);
            assert_int_equal(code, PC_ERROR_INPUT);
            refused++;
        } else {
            check_legal(&asked, &costs, &schedule);
            pc_schedule_free(&schedule);
        }
        pc_costs_free(&costs);
    }
    print_message("%d of %ld refused\n", refused, cases);
    assert_true(test_saw(cases - refused, cases - cases / 4 + 1));
}

static void assert_same_order(const pc_schedule *a, const pc_schedule *b) {
    assert_int_equal(a->offsets[a->devices], b->offsets[b->devices]);
    assert_memory_equal(a->passes, b->passes, (size_t)a->offsets[a->devices] * sizeof *a->passes);
}

/* The generators know one time for all devices: of 4 devices with 7, 2, 9 and 3 the third smallest, 7. A device's is
 * the mean of its chunks: 5 and 9. */
static void test_middle_of_devices(void **state) {
    (void)state;
    static const int64_t f[] = {7, 2, 9, 3};
    for (int n = 0; n < 4; n++) {
        int v = pc_generator_find(names[n])->chunks_default;
        problem asked = {names[n], 4, 9, v, {7, 8, 4}, 3, 1, 0, NULL};
        pc_costs alike = costs_of(&asked), different = costs_of(&asked);
        for (int d = 0; d < 4; d++)
            for (int c = 0; c < v; c++)
                different.duration_ps[pc_costs_index(&different, d, c) * PC_PASS_KINDS] = f[d] - (v - 1) * (2 - 4 * c);
        pc_schedule expected = published(&asked, &alike), found = published(&asked, &different);
        assert_same_order(&expected, &found);
        pc_schedule_free(&expected);
        pc_schedule_free(&found);
        pc_costs_free(&alike);
        pc_costs_free(&different);
    }
}

/* Without a word on activations chunks are counted, each 1 from F to W; and so they are where B recomputes, of which F
 * keeps hardly anything. */
static void test_counts_chunks(void **state) {
    (void)state;
    for (int n = 0; n < 4; n++) {
        int v = pc_generator_find(names[n])->chunks_default;
        problem asked = {names[n], 5, 12, v, {3, 4, 2}, 1, 1, 0, NULL};
        pc_costs counted = costs_of(&asked), silent = costs_of(&asked), recomputing = costs_of(&asked);
        for (int i = 0; i < 5 * v; i++) {
            silent.activation_bytes[i] = 0;
            recomputing.activation_bytes[i] = 100;
            recomputing.activation_kept_bytes[i] = 1;
        }
        recomputing.recomputes_in_b = true;
        pc_schedule expected = published(&asked, &counted), without = published(&asked, &silent);
        pc_schedule with = published(&asked, &recomputing);
        assert_same_order(&expected, &without);
        assert_same_order(&expected, &with);
        pc_schedule_free(&expected);
        pc_schedule_free(&without);
        pc_schedule_free(&with);
        pc_costs_free(&counted);
        pc_costs_free(&silent);
        pc_costs_free(&recomputing);
    }
}

static void expect_refused(const problem *asked, const pc_costs *costs, const char *message) {
    pc_schedule schedule;
    pc_error error = {0};
    assert_int_equal(try_published(asked, costs, &schedule, &error), PC_ERROR_INPUT);
    assert_string_equal(error.message, message);
}

static void test_refusals(void **state) {
    (void)state;
    static const int64_t room[] = {1, 1, 1, 1}, two[] = {2, 2, 2, 2};
    problem v = {"zb-v", 4, 8, 2, {1, 1, 1}, 0, 1, 0, two}, line = {"zb-1p", 4, 8, 1, {1, 1, 1}, 0, 2, 0, room};
    pc_costs costs = costs_of(&v);
    expect_refused(&v, &costs,
                   "zb-v: its published generator gives no order within the memory limit; expected more of it, or "
                   "another making");
    pc_costs_free(&costs);
    costs = costs_of(&line);
    expect_refused(&line, &costs,
                   "zb-1p: device 0 has 1 bytes for activations; expected at least 2, which one microbatch takes");
    line.limit = NULL;
    costs.duration_ps[PC_PASS_KINDS + PC_PASS_W] = PC_TIME_NOT_GIVEN;
    expect_refused(&line, &costs,
                   "zb-1p: the time of W of chunk 0 on device 1 is not given; expected one, for the schedule is made "
                   "for it");
    for (int i = 0; i < 4 * PC_PASS_KINDS; i++) costs.duration_ps[i] = INT64_MAX / 90;
    expect_refused(&line, &costs,
                   "zb-1p: times run over; expected all passes to end within 106 days of simulated time");
    pc_costs_free(&costs);
}

/* Every allocation, refused once, is a message and no leak. */
static void test_no_memory(void **state) {
    (void)state;
    for (int n = 0; n < 3; n++) {
        problem asked = {names[n], 3, 6, pc_generator_find(names[n])->chunks_default, {3, 4, 2}, 1, 1, 0, NULL};
        pc_costs costs = costs_of(&asked);
        pc_schedule schedule;
        long before = pc_alloc_count();
        assert_int_equal(try_published(&asked, &costs, &schedule, NULL), PC_OK);
        long count = pc_alloc_count() - before;
        pc_schedule_free(&schedule);
        for (long i = 0; i < count; i++) {
            pc_alloc_fail_after(i);
            assert_int_equal(try_published(&asked, &costs, &schedule, NULL), PC_ERROR_NO_MEMORY);
            pc_alloc_fail_after(-1);
        }
        pc_costs_free(&costs);
    }
}

/* ---- interleaved 1F1B ---- */

/* When the passes of an interleaved schedule end if they wait as their published times have it ('Zero Bubble', table
 * 5). Only the first microbatch of a group of p waits for a transfer from the last device to the first (F), or from the
 * first to the last (BW). The others of a group find what the wrap brings them there already. */
typedef struct recount {
    const pc_schedule *schedule;
    pc_pass_index index;
    int64_t f, bw, comm;
    int64_t *end; /* a number a pass; -1: not yet */
} recount;

/* The end of the pass that `pass` waits for on another device, and the transfer; 0 where it waits for none. -1: not
 * yet. */
static int64_t ready_at(const recount *r, int d, pc_pass pass) {
    int p = r->schedule->devices, last = r->schedule->chunks - 1;
    bool is_f = pass.kind == PC_PASS_F, wraps = d == (is_f ? 0 : p - 1);
    int from = is_f ? (d + p - 1) % p : (d + 1) % p, chunk = pass.chunk - (wraps ? is_f ? 1 : -1 : 0);
    if (wraps && (chunk < 0 || chunk > last || pass.microbatch % p != 0)) return 0;
    int64_t end = r->end[pc_pass_position(&r->index, from, chunk, pass.microbatch, (pc_pass_kind)pass.kind)];
    return end < 0 ? -1 : end + (p > 1 ? r->comm : 0);
}

/* Takes every device as far as it goes, until all are through; the last end. */
static int64_t recount_makespan(recount *r) {
    const pc_schedule *s = r->schedule;
    int64_t next[32], free[32] = {0}, left = s->offsets[s->devices], makespan = 0;
    for (int d = 0; d < s->devices; d++) next[d] = s->offsets[d];
    for (int64_t i = 0; i < left; i++) r->end[i] = -1;
    while (left > 0)
        for (int d = 0; d < s->devices; d++)
            for (; next[d] < s->offsets[d + 1]; next[d]++, left--) {
                pc_pass pass = s->passes[next[d]];
                int64_t ready = ready_at(r, d, pass);
                if (ready < 0) break;
                free[d] = (ready > free[d] ? ready : free[d]) + (pass.kind == PC_PASS_F ? r->f : r->bw);
                r->end[next[d]] = free[d];
                if (free[d] > makespan) makespan = free[d];
            }
    return makespan;
}

static int64_t published_makespan(const problem *asked) {
    pc_costs costs = costs_of(asked);
    pc_schedule schedule = published(asked, &costs);
    recount r = {
        .schedule = &schedule, .f = asked->times[0], .bw = asked->times[1] + asked->times[2], .comm = asked->comm};
    assert_int_equal(pc_pass_index_create(&schedule, &r.index, NULL), PC_OK);
    r.end = calloc((size_t)schedule.offsets[asked->p], sizeof *r.end);
    int64_t makespan = recount_makespan(&r);
    free(r.end);
    pc_pass_index_free(&r.index);
    pc_schedule_free(&schedule);
    pc_costs_free(&costs);
    return makespan;
}

/* The order is the published one, and so are the times where transfers take none. Where they do, the published times
 * wait less: never longer, and shorter in each row of the table below. */
static void test_interleaved_wraps(void **state) {
    (void)state;
    for (int p = 2; p <= 8; p++)
        for (int m = p; m <= 4 * p; m += p)
            for (int v = 2; v <= 4; v++)
                for (int64_t comm = 0; comm <= 2; comm++) {
                    problem asked = {"1f1b-interleaved", p, m, v, {3, 4, 2}, comm, 1, 0, NULL};
                    int64_t theirs = published_makespan(&asked), real = figures_of(&asked).makespan;
                    assert_true(comm == 0 ? theirs == real : theirs <= real);
                }
}

/* 'Zero Bubble Pipeline Parallelism' (arXiv 2401.10241): the settings of table 3, the times of table 6 in microseconds,
 * and bubble rates of table 5 in units of 0.01%. */
static const struct published_setting {
    int p, m, layers, hidden, heads;
    int64_t times[3], comm;
    int bubble_interleaved, bubble_zb_1p, bubble_zb_2p;
} settings[] = {
    {8, 24, 22, 2304, 24, {18522, 18086, 9337}, 601, 1055, 1585, 433},
    {8, 32, 22, 2304, 24, {18513, 18086, 9331}, 626, 818, 1242, 39},
    {8, 64, 22, 2304, 24, {18546, 18097, 9321}, 762, 443, 674, 26},
    {8, 24, 30, 4096, 32, {29718, 29444, 19927}, 527, 808, 1323, 29},
    {8, 32, 30, 4096, 32, {29802, 29428, 19530}, 577, 628, 1045, 22},
    {8, 64, 30, 4096, 32, {29935, 29621, 19388}, 535, 320, 554, 10},
    {16, 48, 46, 5120, 40, {11347, 11248, 8132}, 377, 1104, 1397, 66},
    {16, 64, 46, 5120, 40, {11307, 11254, 8101}, 379, 852, 1088, 54},
    {16, 128, 46, 5120, 40, {11325, 11308, 8109}, 378, 445, 576, 28},
    {32, 96, 62, 6144, 48, {10419, 10207, 7715}, 408, 1493, 1421, 38},
    {32, 128, 62, 6144, 48, {10408, 10204, 7703}, 408, 1164, 1106, 29},
    {32, 256, 62, 6144, 48, {10402, 10248, 7698}, 460, 624, 594, 18},
};

enum { SETTINGS = sizeof settings / sizeof *settings, SEQ_LEN = 1024, SPLIT = 12 /* ticks: 2, 3 and 4 divide it */ };

/* Time that passes take, of a time: 1 - m (F + B + W) / time, in units of 0.01%. */
static long bubble_of(const struct published_setting *setting, int64_t time) {
    int64_t work = SPLIT * setting->m * (setting->times[0] + setting->times[1] + setting->times[2]);
    return lround(10000 * (1 - (double)work / (double)time));
}

/* A device has (layers + 2) / p chunks of a layer: first and last hold embedding and head in the place of one. */
static void test_published_interleaved(void **state) {
    (void)state;
    for (int i = 0; i < SETTINGS; i++) {
        const struct published_setting *own = &settings[i];
        int v = (own->layers + 2) / own->p;
        problem asked = {"1f1b-interleaved", own->p, own->m, v, {0, 0, 0}, SPLIT * own->comm, 1, 0, NULL};
        for (int kind = 0; kind < 3; kind++) asked.times[kind] = SPLIT / v * own->times[kind];
        int64_t makespan = published_makespan(&asked);
        assert_int_equal(bubble_of(own, makespan), own->bubble_interleaved);
        assert_true(makespan < figures_of(&asked).makespan);
    }
}

/* A layer's F keeps (34 h + 5 a s) s b bytes, of which W gives back 32 h s b (section 2 of the paper); s b is left out.
 */
static void test_published_zb(void **state) {
    (void)state;
    for (int i = 0; i < SETTINGS; i++) {
        const struct published_setting *own = &settings[i];
        int64_t by_w = 32 * (int64_t)own->hidden, by_b = 2 * (int64_t)own->hidden + 5 * own->heads * SEQ_LEN;
        problem asked = {"zb-1p", own->p, own->m, 1, {0, 0, 0}, SPLIT * own->comm, by_b + by_w, by_b, NULL};
        for (int kind = 0; kind < 3; kind++) asked.times[kind] = SPLIT * own->times[kind];
        assert_int_equal(bubble_of(own, figures_of(&asked).span), own->bubble_zb_1p);
        asked.name = "zb-2p";
        assert_int_equal(bubble_of(own, figures_of(&asked).span), own->bubble_zb_2p);
    }
}

/* ---- against the reference data ---- */

static FILE *open_shared(const char *file) {
    char path[4096];
    const char *root = getenv("PC_SOURCE_ROOT");
    snprintf(path, sizeof path, "%s/../shared/data/schedules/%s", root ? root : ".", file);
    FILE *stream = fopen(path, "r");
    if (!stream) print_message("skipped: %s is not there\n", path);
    return stream;
}

/* The reference order files write chunks by case; so does --format text. */
static void check_order(const char *name, const char *file, int v) {
    FILE *expected = open_shared(file), *ours = tmpfile();
    int a, b, place = 0;
    if (!expected) skip();
    problem asked = {name, 4, 8, v, {1, 1, 1}, 0, 1, 0, NULL};
    pc_costs costs = costs_of(&asked);
    pc_schedule schedule = published(&asked, &costs);
    pc_schedule_write_text(&schedule, ours);
    rewind(ours);
    do {
        a = fgetc(expected);
        b = fgetc(ours);
        if (a != b) fail_msg("%s differs at character %d", name, place);
        place++;
    } while (a != EOF);
    pc_schedule_free(&schedule);
    pc_costs_free(&costs);
    fclose(expected);
    fclose(ours);
}

static void test_reference_orders(void **state) {
    (void)state;
    check_order("zb-1p", "orders/ZB-1P_p4_m8.txt", 1);
    check_order("zb-2p", "orders/ZB-2P_p4_m8.txt", 1);
    check_order("zb-v", "orders/ZB-V_p4_m8.txt", 2);
    check_order("v-zb", "orders/ZB-V_p4_m8.txt", 2);
}

enum { TICKS = 10 }; /* a unit of the file's times: it has halves and thousandths of a millisecond, in microseconds */

typedef struct reference {
    char scheduler[32];
    problem asked;
    figures expected;
} reference;

/* A row of reference.csv; false for schedulers that are not this file's subject. */
static bool read_reference(char *line, reference *row) {
    static const char *const subjects[][2] = {{"ZB-1P", "zb-1p"}, {"ZB-2P", "zb-2p"}, {"ZB-V", "zb-v"}};
    char *fields[24] = {NULL}, *rest = line;
    for (int i = 0; i < 24 && rest; i++) fields[i] = strsep(&rest, ",");
    if (!fields[21]) return false;
    snprintf(row->scheduler, sizeof row->scheduler, "%s", fields[0]);
    row->asked = (problem){.p = atoi(fields[1]),
                           .m = atoi(fields[2]),
                           .v = atoi(fields[3]),
                           .comm = llround(TICKS * atof(fields[7])),
                           .added = atoll(fields[8]),
                           .by_b = -atoll(fields[9])};
    for (int kind = 0; kind < 3; kind++) row->asked.times[kind] = llround(TICKS * atof(fields[4 + kind]));
    row->expected = (figures){llround(TICKS * atof(fields[13])), llround(TICKS * atof(fields[15])), atoll(fields[20])};
    for (size_t i = 0; i < sizeof subjects / sizeof *subjects; i++)
        if (strcmp(subjects[i][0], fields[0]) == 0) row->asked.name = subjects[i][1];
    return row->asked.name != NULL;
}

/* To the tick. */
static void check_row(const reference *row) {
    const problem *asked = &row->asked;
    figures found = figures_of(asked), expected = row->expected;
    if (memcmp(&found, &expected, sizeof found) != 0)
        fail_msg("%s p=%d m=%d F=%" PRId64 " comm=%" PRId64 ": span %" PRId64 ", reference %" PRId64
                 "; makespan %" PRId64 ", %" PRId64 "; peak %" PRId64 ", %" PRId64,
                 asked->name, asked->p, asked->m, asked->times[0], asked->comm, found.span, expected.span,
                 found.makespan, expected.makespan, found.peak, expected.peak);
}

static void test_reference_rows(void **state) {
    (void)state;
    char line[1024];
    int checked = 0;
    FILE *file = open_shared("reference.csv");
    if (!file) skip();
    while (fgets(line, sizeof line, file)) {
        reference row;
        if (!read_reference(line, &row)) continue;
        check_row(&row);
        checked++;
    }
    fclose(file);
    assert_int_equal(checked, 3 * 132);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_linear_forms),
        cmocka_unit_test(test_v_forms),
        cmocka_unit_test(test_all_are_legal),
        cmocka_unit_test(test_middle_of_devices),
        cmocka_unit_test(test_counts_chunks),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_interleaved_wraps),
        cmocka_unit_test(test_published_interleaved),
        cmocka_unit_test(test_published_zb),
        cmocka_unit_test(test_reference_orders),
        cmocka_unit_test(test_reference_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
