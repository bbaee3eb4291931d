/* ZB-1P, ZB-2P and ZB-V as published: closed forms, legality, and the reference orders and rows where the data is
 * there. */
#include "tests/support.h"

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
    static const char *const names[][2] = {{"ZB-1P", "zb-1p"}, {"ZB-2P", "zb-2p"}, {"ZB-V", "zb-v"}};
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
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i][0], fields[0]) == 0) row->asked.name = names[i][1];
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
        cmocka_unit_test(test_reference_orders),
        cmocka_unit_test(test_reference_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
