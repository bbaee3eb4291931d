/* The static generators: shapes, limits, and the reference orders and spans where the data is there. */
#include "tests/support.h"

#include "models/schedule/check.h"
#include "models/schedule/exchange.h"
#include "models/schedule/generate.h"
#include "models/schedule/replay.h"

#include <math.h>

static pc_schedule generate(const char *name, int p, int m, int v) {
    pc_schedule schedule;
    pc_error error = {0};
    if (pc_schedule_generate(pc_generator_find(name), p, m, v, &schedule, &error)) fail_msg("%s", error.message);
    return schedule;
}

/* Every generator, every small shape it takes: the checker accepts it. Fewer microbatches than stages included.
 * Searches take their time: tests/test_search.c has more of them. */
static void test_all_are_valid(void **state) {
    (void)state;
    int count, made = 0;
    const pc_generator *generators = pc_generators(&count);
    for (int g = 0; g < count; g++)
        for (int p = 1; p <= (generators[g].searches ? test_part(3, 5) : 12); p++)
            for (int m = 1; m <= 4 * p; m++)
                for (int v = 1; v <= 4; v++) {
                    pc_schedule schedule;
                    pc_error error = {0};
                    if (pc_generator_check(&generators[g], p, m, v, NULL)) continue;
                    if (pc_schedule_generate(&generators[g], p, m, v, &schedule, &error))
                        fail_msg("%s %d %d %d: %s", generators[g].name, p, m, v, error.message);
                    if (pc_schedule_check(&schedule, &error)) fail_msg("%s", error.message);
                    assert_string_equal(schedule.name, generators[g].name);
                    assert_int_equal(pc_schedule_has(&schedule, PC_PASS_W), generators[g].splits);
                    assert_int_equal(pc_schedule_has(&schedule, PC_PASS_R), generators[g].recomputes);
                    pc_schedule_free(&schedule);
                    made++;
                }
    assert_true(made > 1000);
}

/* Interleaved 1F1B takes any number of microbatches: the checker proves that every pass stands once and that no device
 * waits in a circle, whatever is left for the last group. */
static void test_interleaved_takes_any_microbatches(void **state) {
    (void)state;
    static const char *const names[] = {"1f1b-interleaved", "1f1b-interleaved-low-memory"};
    for (int p = 1; p <= test_part(8, 16); p++)
        for (int m = 1; m <= 3 * p + 2; m++)
            for (int v = 2; v <= 6; v++)
                for (int n = 0; n < 2; n++) {
                    pc_error error = {0};
                    pc_schedule schedule = generate(names[n], p, m, v);
                    if (pc_schedule_check(&schedule, &error)) fail_msg("%d %d %d: %s", p, m, v, error.message);
                    pc_schedule_free(&schedule);
                }
}

/* The F of a device, in their order: microbatch m of chunk c as 10 c + m. */
static void check_forward(const pc_schedule *schedule, int device, const int *expected, int count) {
    int found = 0;
    for (int64_t i = schedule->offsets[device]; i < schedule->offsets[device + 1]; i++) {
        pc_pass pass = schedule->passes[i];
        if (pass.kind != PC_PASS_F) continue;
        assert_true(found < count);
        assert_int_equal(10 * pass.chunk + pass.microbatch, expected[found++]);
    }
    assert_int_equal(found, count);
}

static int count_warm_up(const pc_schedule *schedule, int device) {
    int64_t i = schedule->offsets[device];
    while (schedule->passes[i].kind == PC_PASS_F) i++;
    return (int)(i - schedule->offsets[device]) - 1; /* the F before the first BW is none of it */
}

/* The table that Megatron-LM gives as an example in core/pipeline_parallel/schedules.py: 2 stages, 2 chunks, 5
 * microbatches in groups of 3. Before its first pair of passes a stage has 2(p-1-d) + (v-1) 3 = 5 and 3 F. And its own
 * test of 10 microbatches on 4 stages with 3 chunks, in groups of 5: 2(3-d) + 10; on 8 GPUs, 5 microbatches are one
 * group, of which no device has more than 15 F. */
static void test_megatron_orders(void **state) {
    (void)state;
    static const int table[] = {0, 1, 2, 10, 11, 12, 3, 4, 13, 14};
    static const int ten[] = {0, 1, 2, 3, 4, 10, 11, 12, 13, 14, 20, 21, 22, 23, 24,
                              5, 6, 7, 8, 9, 15, 16, 17, 18, 19, 25, 26, 27, 28, 29};
    pc_schedule schedule = generate("1f1b-interleaved", 2, 5, 2);
    for (int d = 0; d < 2; d++) {
        check_forward(&schedule, d, table, 10);
        assert_int_equal(count_warm_up(&schedule, d), d == 0 ? 5 : 3);
    }
    pc_schedule_free(&schedule);
    for (int m = 5; m <= 10; m += 5) {
        schedule = generate("1f1b-interleaved", 4, m, 3);
        for (int d = 0; d < 4; d++) {
            int warm_up = 2 * (3 - d) + 10;
            check_forward(&schedule, d, ten, 3 * m);
            assert_int_equal(count_warm_up(&schedule, d), m == 5 && warm_up > 14 ? 14 : warm_up);
        }
        pc_schedule_free(&schedule);
    }
}

static void expect_refused(const char *name, int64_t p, int64_t m, int64_t v, const char *message) {
    pc_schedule schedule;
    pc_error error = {0};
    assert_int_equal(pc_schedule_generate(pc_generator_find(name), p, m, v, &schedule, &error), PC_ERROR_INPUT);
    assert_string_equal(error.message, message);
}

static void test_bad_shapes(void **state) {
    (void)state;
    expect_refused("1f1b", 0, 4, 1, "devices: 0 is out of range; expected 1 to 65536");
    expect_refused("1f1b", 1000000000, 4, 1, "devices: 1000000000 is out of range; expected 1 to 65536");
    expect_refused("1f1b", 4, 0, 1, "microbatches: 0 is out of range; expected 1 to 16777216");
    expect_refused("1f1b", 4, 4, 2, "1f1b: 2 chunks a device; expected 1");
    expect_refused("chimera", 4, 4, 1, "chimera: 1 chunks a device; expected 2");
    expect_refused("dualpipe-v", 4, 7, 2, "dualpipe-v: 7 microbatches on 4 devices; expected at least 8, 2 a device");
    expect_refused("1f1b", 4, 4, 2000, "chunks: 2000 is out of range; expected 1 to 1024");
    expect_refused("1f1b", 65536, 16777216, 1,
                   "schedule: 65536 devices x 16777216 microbatches x 1 chunks is too large; expected a product of at "
                   "most 22369621");
    assert_null(pc_generator_find("2f2b"));
}

/* ---- against the reference data ---- */

static FILE *open_shared(const char *file) {
    char path[4096];
    const char *root = getenv("PC_SOURCE_ROOT");
    snprintf(path, sizeof path, "%s/../shared/data/%s", root ? root : ".", file);
    FILE *stream = fopen(path, "r");
    if (!stream) print_message("skipped: %s is not there\n", path);
    return stream;
}

/* The reference order files write BW as such and chunks by case; so does --format text. */
static void check_order(const char *name, const char *file, int v) {
    FILE *expected = open_shared(file), *ours = tmpfile();
    int a, b;
    if (!expected) skip();
    pc_schedule schedule = generate(name, 4, 8, v);
    pc_schedule_write_text(&schedule, ours);
    rewind(ours);
    do {
        a = fgetc(expected);
        b = fgetc(ours);
        assert_int_equal(a, b);
    } while (a != EOF);
    pc_schedule_free(&schedule);
    fclose(expected);
    fclose(ours);
}

static void test_reference_orders(void **state) {
    (void)state;
    check_order("1f1b", "schedules/orders/1F1B_p4_m8.txt", 1);
    check_order("1f1b-interleaved", "schedules/orders/1F1B-I_p4_m8.txt", 2);
    check_order("zb-h1", "schedules/orders/ZB-H1_p4_m8.txt", 1);
    check_order("zb-h2", "schedules/orders/ZB-H2_p4_m8.txt", 1);
}

typedef struct reference {
    char scheduler[32];
    int p, m, chunks;
    double f, b, w, comm, span, makespan, peak;
} reference;

/* The columns that we need of a row of reference.csv; false for schedulers that are not in this file's subject. */
static bool read_reference(char *line, reference *row) {
    char *fields[24] = {NULL}, *rest = line;
    for (int i = 0; i < 24 && rest; i++) fields[i] = strsep(&rest, ",");
    if (!fields[21]) return false;
    snprintf(row->scheduler, sizeof row->scheduler, "%s", fields[0]);
    row->p = atoi(fields[1]);
    row->m = atoi(fields[2]);
    row->chunks = atoi(fields[3]);
    double *numbers[] = {&row->f, &row->b, &row->w, &row->comm, &row->span, &row->makespan, &row->peak};
    static const int columns[] = {4, 5, 6, 7, 13, 15, 18};
    for (int i = 0; i < 7; i++) *numbers[i] = atof(fields[columns[i]]);
    return true;
}

static const char *name_of(const char *scheduler) {
    static const char *const names[][2] = {{"GPipe", "gpipe"},          {"1F1B", "1f1b"},
                                           {"Eager1F1B", "eager-1f1b"}, {"1F1B-I", "1f1b-interleaved"},
                                           {"ZB-H1", "zb-h1"},          {"ZB-H2", "zb-h2"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i][0], scheduler) == 0) return names[i][1];
    return NULL;
}

/* Times of a chunk in the row's unit, 10^6 ticks each: sums are exact, thirds are within 1e-6. */
static void check_row(const char *name, const reference *row) {
    pc_costs costs;
    pc_replay replay;
    pc_schedule schedule = generate(name, row->p, row->m, row->chunks);
    const double times[PC_PASS_KINDS] = {row->f, row->b, row->w, row->b + row->w, 0.0};
    assert_int_equal(pc_costs_create(row->p, row->chunks, &costs, NULL), PC_OK);
    for (int64_t i = 0; i < (int64_t)row->p * row->chunks; i++) {
        for (int kind = 0; kind < PC_PASS_KINDS; kind++)
            costs.duration_ps[i * PC_PASS_KINDS + kind] = llround(times[kind] * 1e6);
        costs.activation_bytes[i] = 1;
    }
    costs.transfer.delay_ps = llround(row->comm * 1e6);
    assert_int_equal(pc_replay_run(&schedule, &costs, NULL, &replay, NULL), PC_OK);
    double bound = 1e-9 * row->span + 2e-6 * 3 * row->m * row->chunks;
    if (fabs((double)replay.span_ps * 1e-6 - row->span) > bound ||
        fabs((double)replay.makespan_ps * 1e-6 - row->makespan) > bound || (double)replay.peak_bytes != row->peak)
        fail_msg("%s p=%d m=%d: span %.9g, reference %.9g; makespan %.9g, %.9g; peak %lld, %g", name, row->p, row->m,
                 (double)replay.span_ps * 1e-6, row->span, (double)replay.makespan_ps * 1e-6, row->makespan,
                 (long long)replay.peak_bytes, row->peak);
    pc_replay_free(&replay);
    pc_costs_free(&costs);
    pc_schedule_free(&schedule);
}

/* Every row of the six schedulers: the same span, makespan and peak as the public generators have. */
static void test_reference_rows(void **state) {
    (void)state;
    char line[1024];
    int checked = 0;
    FILE *file = open_shared("schedules/reference.csv");
    if (!file) skip();
    while (fgets(line, sizeof line, file)) {
        reference row;
        if (!read_reference(line, &row) || !name_of(row.scheduler)) continue;
        check_row(name_of(row.scheduler), &row);
        checked++;
    }
    fclose(file);
    assert_int_equal(checked, 63 + 72 + 63 + 72 + 72 + 57);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_are_valid),    cmocka_unit_test(test_interleaved_takes_any_microbatches),
        cmocka_unit_test(test_megatron_orders),  cmocka_unit_test(test_bad_shapes),
        cmocka_unit_test(test_reference_orders), cmocka_unit_test(test_reference_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
