/* The library as others see it: schedules. 1F1B with F, B, W of one unit each, p devices and m microbatches takes
 * (m + p - 1) * 3, of which m * 3 are work; device d holds at most p - d microbatches. */
#include "tests/api_example.h"

#include <math.h>

static pipecast_schedule *generate(const char *name, int64_t devices, int64_t microbatches) {
    pipecast_error error = {0};
    pipecast_schedule *schedule = NULL;
    assert_ok(pipecast_schedule_generate(name, devices, microbatches, 0, NULL, NULL, NULL, &schedule, &error), &error);
    return schedule;
}

static void check_1f1b(const pipecast_schedule *schedule) {
    double peak[4];
    pipecast_error error = {0};
    pipecast_replay *replay = NULL;
    assert_ok(pipecast_schedule_check(schedule, &error), &error);
    assert_ok(pipecast_schedule_replay(schedule, NULL, &replay, &error), &error);
    assert_true(fabs(pipecast_replay_number(replay, PIPECAST_SPAN) - 33.0) < 1e-9);
    assert_true(fabs(pipecast_replay_number(replay, PIPECAST_BUBBLE_RATE_SPAN) - 3.0 / 11.0) < 1e-9);
    assert_int_equal(pipecast_replay_devices(replay, NULL, NULL, NULL, peak), 4);
    for (int d = 0; d < 4; d++) assert_true(fabs(peak[d] - (4 - d)) < 1e-9);
    pipecast_replay_free(replay);
}

static void test_schedule(void **state) {
    const folder *at = *state;
    int64_t devices, microbatches, chunks, kind[16], chunk[16], microbatch[16];
    int placement;
    pipecast_error error = {0};
    pipecast_schedule *schedule = generate("1f1b", 4, 8), *again = NULL;
    assert_string_equal(pipecast_schedule_name(schedule), "1f1b");
    pipecast_schedule_shape(schedule, &devices, &microbatches, &chunks, &placement);
    assert_true(devices == 4 && microbatches == 8 && chunks == 1 && placement == PIPECAST_LINEAR);
    pipecast_schedule_shape(schedule, NULL, NULL, NULL, NULL);
    assert_int_equal(pipecast_schedule_passes(schedule, 3, kind, chunk, microbatch), 16);
    assert_true(kind[0] == PIPECAST_PASS_F && kind[1] == PIPECAST_PASS_BW && microbatch[15] == 7 && chunk[9] == 0);
    assert_int_equal(pipecast_schedule_passes(schedule, 4, kind, NULL, NULL), 0);
    check_1f1b(schedule);
    assert_ok(pipecast_schedule_write(schedule, at->file, &error), &error);
    assert_ok(pipecast_schedule_load(at->file, &again, &error), &error);
    check_1f1b(again);
    pipecast_schedule_free(again);
    pipecast_schedule_free(schedule);
    pipecast_schedule_free(NULL);
}

/* 1F1B of 4 devices, pass by pass, is the one with the name; with its first two passes exchanged it cannot run. */
static void test_own_schedule(void **state) {
    (void)state;
    int64_t count[4], kind[64], chunk[64], microbatch[64], total = 0;
    pipecast_error error = {0};
    pipecast_schedule *named = generate("1f1b", 4, 8), *own = NULL;
    for (int d = 0; d < 4; d++) {
        count[d] = pipecast_schedule_passes(named, d, kind + total, chunk + total, microbatch + total);
        total += count[d];
    }
    assert_ok(pipecast_schedule_create("own", 4, 8, 1, PIPECAST_LINEAR, count, kind, chunk, microbatch, &own, &error),
              &error);
    check_1f1b(own);
    pipecast_schedule_free(own);
    pipecast_schedule_free(named);
    kind[48] = PIPECAST_PASS_BW; /* of the last device */
    kind[49] = PIPECAST_PASS_F;
    assert_ok(pipecast_schedule_create("own", 4, 8, 1, PIPECAST_LINEAR, count, kind, chunk, microbatch, &own, &error),
              &error);
    assert_int_equal(pipecast_schedule_check(own, &error), PIPECAST_ERROR_INPUT);
    pipecast_replay *replay = NULL;
    assert_int_equal(pipecast_schedule_replay(own, NULL, &replay, &error), PIPECAST_ERROR_INPUT);
    pipecast_schedule_free(own);
}

static void test_what_is_no_schedule(void **state) {
    (void)state;
    static const int64_t two[] = {2}, negative[] = {-1}, kind[] = {0, 3}, zero[] = {0, 0}, one[] = {0, 1},
                         none[] = {0, 7};
    static const char long_name[] = "a name that is longer than the library has room for, and so is refused as it is";
    const struct {
        const char *name;
        int64_t chunks;
        int placement;
        const int64_t *count, *kind, *chunk, *microbatch;
        const char *says;
    } bad[] = {
        {"x", 1, PIPECAST_LINEAR, two, none, zero, zero, "kind 7"},
        {"x", 1, PIPECAST_LINEAR, two, kind, one, zero, "chunk 1"},
        {"x", 1, PIPECAST_LINEAR, two, kind, zero, one, "microbatch 1"},
        {"x", 2, PIPECAST_LINEAR, two, kind, zero, zero, "chunks: 2"},
        {"x", 1, PIPECAST_BIDIRECTIONAL, two, kind, zero, zero, "chunks: 1"},
        {"x", 1, 5, two, kind, zero, zero, "placement: 5"},
        {"x", 0, PIPECAST_V, two, kind, zero, zero, "chunks"},
        {"x", 1, PIPECAST_LINEAR, negative, kind, zero, zero, "pass_count"},
        {long_name, 1, PIPECAST_LINEAR, two, kind, zero, zero, "name: "},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        pipecast_error error = {0};
        pipecast_schedule *untouched = NULL;
        assert_int_equal(pipecast_schedule_create(bad[i].name, 1, 1, bad[i].chunks, bad[i].placement, bad[i].count,
                                                  bad[i].kind, bad[i].chunk, bad[i].microbatch, &untouched, &error),
                         PIPECAST_ERROR_INPUT);
        if (!strstr(error.message, bad[i].says)) fail_msg("%s: %s", bad[i].says, error.message);
        assert_null(untouched);
    }
}

/* V-Half of 4 devices holds about half of what 1F1B does, 4; with a limit of 0.2 nothing does. */
static void test_requests(void **state) {
    (void)state;
    static const double little[] = {0.2, 0.2, 0.2, 0.2}, negative[] = {-1, 4, 4, 4}, some[] = {3, INFINITY, 4, 4};
    pipecast_error error = {0};
    pipecast_schedule *schedule = NULL;
    pipecast_costs costs = PIPECAST_COSTS;
    assert_int_equal(pipecast_schedule_generate("v-half", 4, 8, 0, &costs, little, NULL, &schedule, &error),
                     PIPECAST_ERROR_INPUT);
    assert_non_null(strstr(error.message, "0.2 is too little for v-half"));
    assert_int_equal(pipecast_schedule_generate("v-half", 4, 8, 0, &costs, negative, NULL, &schedule, &error),
                     PIPECAST_ERROR_INPUT);
    assert_ok(pipecast_schedule_generate("v-half", 4, 8, 0, &costs, some, "equal", &schedule, &error), &error);
    pipecast_schedule_free(schedule);
    assert_int_equal(pipecast_schedule_generate("v-half", 4, 8, 0, NULL, NULL, "fast", &schedule, &error),
                     PIPECAST_ERROR_INPUT);
    assert_int_equal(pipecast_schedule_generate("v-hlaf", 4, 8, 0, NULL, NULL, NULL, &schedule, &error),
                     PIPECAST_ERROR_INPUT);
    assert_non_null(strstr(error.message, "did you mean v-half"));
    assert_int_equal(pipecast_schedule_generate("1f1b", 0, 8, 0, NULL, NULL, NULL, &schedule, &error),
                     PIPECAST_ERROR_INPUT);
    assert_int_equal(pipecast_schedule_generate("1f1b", 4, 8, 3, NULL, NULL, NULL, &schedule, &error),
                     PIPECAST_ERROR_INPUT);
}

/* Times in a unit of one's own come back in it: doubled times are a doubled span. */
static void test_costs(void **state) {
    (void)state;
    pipecast_error error = {0};
    pipecast_replay *replay = NULL;
    pipecast_schedule *schedule = generate("1f1b", 4, 8);
    pipecast_costs costs = {.f = 2, .b = 2, .w = 2};
    assert_ok(pipecast_schedule_replay(schedule, &costs, &replay, &error), &error);
    assert_true(fabs(pipecast_replay_number(replay, PIPECAST_MAKESPAN) - 66.0) < 1e-9);
    pipecast_replay_free(replay);
    const pipecast_costs bad[] = {{.f = -1, .b = 1, .w = 1},           {.f = NAN, .b = 1, .w = 1},
                                  {.f = INFINITY, .b = 1, .w = 1},     {.f = 1, .b = 1, .w = 1, .release_b = 1.5},
                                  {.f = 1, .b = 1, .w = 1, .keep = 2}, {.f = 1, .b = 1, .w = 1, .transfer = -1},
                                  {.f = 1e-300, .b = 1e300, .w = 1},   {.f = 1, .b = 1, .w = 1, .reserved = {0, 1}}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(pipecast_schedule_replay(schedule, &bad[i], &replay, &error), PIPECAST_ERROR_INPUT);
    pipecast_schedule_free(schedule);
}

static pipecast_schedule *make(const char *name, const char *const *options, size_t count) {
    pipecast_error error = {0};
    pipecast_schedule *schedule = NULL;
    assert_ok(pipecast_schedule_make(name, options, count, &schedule, &error), &error);
    return schedule;
}

static double span_of(const pipecast_schedule *schedule) {
    pipecast_error error = {0};
    pipecast_replay *replay = NULL;
    assert_ok(pipecast_schedule_replay(schedule, NULL, &replay, &error), &error);
    double span = pipecast_replay_number(replay, PIPECAST_SPAN);
    pipecast_replay_free(replay);
    return span;
}

/* The first stage of two takes 2 for each pass, the other 1: with F and BW of 2 + 4 the first is busy for 6 a
 * microbatch, and waits once for the other's F and BW, 1 + 2, behind its own first F. */
static void test_options(void **state) {
    (void)state;
    static const char *const options[] = {"devices=2", "microbatches=8", "times=2,2,2/1,1,1", "devices=2"};
    pipecast_error error = {0};
    double bound;
    const char *text, *again;
    pipecast_schedule *schedule = make("1f1b", options, 4);
    assert_true(fabs(span_of(schedule) - (8 * 6 + 3 - 2)) < 1e-9);
    assert_ok(pipecast_schedule_bound(schedule, NULL, &bound, &error), &error);
    assert_true(bound <= 49.0);
    assert_ok(pipecast_schedule_report(schedule, "json", &text, &error), &error);
    assert_non_null(strstr(text, "\"span\":49,"));
    assert_ok(pipecast_schedule_report(schedule, "table", &again, &error), &error);
    assert_non_null(strstr(again, "1f1b: 2 devices, 8 microbatches"));
    assert_ok(pipecast_schedule_report(schedule, "json", &again, &error), &error);
    assert_ptr_equal(text, again);
    assert_int_equal(pipecast_schedule_report(schedule, "xml", &text, &error), PIPECAST_ERROR_INPUT);
    pipecast_schedule_free(schedule);
    schedule = generate("1f1b", 4, 8);
    assert_int_equal(pipecast_schedule_report(schedule, "json", &text, &error), PIPECAST_ERROR_INPUT);
    assert_non_null(strstr(error.message, "not made by options"));
    pipecast_schedule_free(schedule);
}

/* 4 slices of a microbatch are 4 chunks; a search that is asked for does not make an order longer. */
static void test_searches(void **state) {
    (void)state;
    static const char *const sliced[] = {"devices=2", "microbatches=4", "slices=4"},
                             *const plain[] = {"devices=4", "microbatches=8", "times=3,4,2", "comm=0.5"},
                             *const improved[] = {"devices=4", "microbatches=8", "times=3,4,2", "comm=0.5",
                                                  "improve=true"},
                             *const robust[] = {"devices=4",   "microbatches=8", "times=3,4,2", "comm=0.5",
                                                "jitter=0.05", "samples=50",     "robust=mean"};
    int64_t chunks;
    pipecast_schedule *schedule = make("seq-1f1b", sliced, 3), *better = make("1f1b", improved, 5);
    pipecast_schedule_shape(schedule, NULL, NULL, &chunks, NULL);
    assert_int_equal(chunks, 4);
    pipecast_schedule_free(schedule);
    schedule = make("1f1b", plain, 4);
    assert_true(span_of(better) <= span_of(schedule));
    pipecast_schedule_free(better);
    pipecast_schedule_free(schedule);
    pipecast_error error = {0};
    const char *text;
    schedule = make("zb-1p", robust, 7);
    assert_ok(pipecast_schedule_report(schedule, "json", &text, &error), &error);
    assert_non_null(strstr(text, "\"samples\":{\"count\":50,"));
    pipecast_schedule_free(schedule);
}

static void test_options_that_are_wrong(void **state) {
    (void)state;
    static const struct {
        const char *name, *option, *key, *says;
    } bad[] = {
        {"1f1b", "devices", "", "'devices': no '='; expected KEY=VALUE"},
        {"1f1b", "jobs=4", "", "'jobs': there is no such option of a schedule; expected devices, "},
        {"1f1b", "microbatches=0", "microbatches", "microbatches: 0: out of range"},
        {"1f1b", "times=1,2", "times", "times: '1,2'; expected three numbers F,B,W"},
        {"1f1b", "times=no-such.yaml", "", "no-such.yaml: No such file"},
        {"1f1b", "memory_limit=3.5", "memory_limit", "memory_limit: 3.5 is too little for 1f1b; expected at least 4"},
        {"v-half", "memory_limit=0.2", "memory_limit", "memory_limit: 0.2 is too little for v-half"},
        {"1f1b", "improve=yes", "improve", "improve: "},
        {"1f1b", "goal=iteration", "goal", "goal: iteration: a schedule alone has no gradients"},
        {"1f1b", "slices=2", "slices", "slices: 1f1b has whole microbatches"},
        {"1f1b", "robust=mean", "",
         "robust, samples, seed: nothing scatters; expected jitter, gpu_jitter, link_jitter"},
        {"1f1b", "block=x.yaml", "block", "block: stands beside the name '1f1b'"},
        {"best", "goal=span", "", "best: no measured stages; expected times FILE"},
        {"no-such.yaml", "goal=span", "", "no-such.yaml: No such file"},
        {"v-hlaf", "goal=span", "", "did you mean v-half"},
        {NULL, "goal=span", "", "schedule: no name"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const char *options[] = {"devices=4", "microbatches=8", bad[i].option};
        pipecast_error error = {0};
        pipecast_schedule *untouched = NULL;
        assert_int_equal(pipecast_schedule_make(bad[i].name, options, 3, &untouched, &error), PIPECAST_ERROR_INPUT);
        if (!strstr(error.message, bad[i].says)) fail_msg("%s: %s", bad[i].says, error.message);
        assert_string_equal(error.key, bad[i].key);
        assert_null(untouched);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_options),
        cmocka_unit_test(test_searches),
        cmocka_unit_test(test_options_that_are_wrong),
        TEST_IN_FOLDER(test_schedule, "s.csv"),
        cmocka_unit_test(test_own_schedule),
        cmocka_unit_test(test_what_is_no_schedule),
        cmocka_unit_test(test_requests),
        cmocka_unit_test(test_costs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
