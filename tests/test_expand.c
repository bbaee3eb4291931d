/* Replicas that are simulated each for itself, with noise. */
#include "tests/support.h"

#include "engine/alloc.h"
#include "models/schedule/generate.h"
#include "models/schedule/timing.h"
#include "models/training/expand_replicas.h"

#include <math.h>

enum { DEVICES = 4, MICROBATCHES = 8 };
static const pc_time unit = 1000000;

typedef struct example {
    pc_schedule schedule;
    pc_costs costs;
    int64_t passes;
} example;

static void make_example(const char *name, example *subject) {
    const pc_generator *generator = pc_generator_find(name);
    int chunks = generator->chunks_default;
    assert_int_equal(pc_schedule_generate(generator, DEVICES, MICROBATCHES, 0, &subject->schedule, NULL), PC_OK);
    assert_int_equal(pc_costs_create(DEVICES, chunks, &subject->costs, NULL), PC_OK);
    for (int i = 0; i < DEVICES * chunks; i++)
        for (int kind = 0; kind < PC_PASS_KINDS; kind++)
            subject->costs.duration_ps[i * PC_PASS_KINDS + kind] = (10 + i % 3 + kind) * unit;
    subject->costs.transfer.delay_ps = unit;
    subject->passes = subject->schedule.offsets[DEVICES];
}

static void free_example(example *subject) {
    pc_schedule_free(&subject->schedule);
    pc_costs_free(&subject->costs);
}

static pc_pipeline_ends run(const example *subject, int replicas, double jitter, int threads, pc_time *first) {
    pc_expansion expansion = {.replicas = replicas, .jitter = jitter, .seed = 7, .threads = threads};
    pc_pipeline_ends ends;
    assert_int_equal(pc_ends_create(DEVICES, subject->schedule.chunks, &ends, NULL), PC_OK);
    assert_int_equal(pc_expand_run(&subject->schedule, &subject->costs, &expansion, &ends, first, NULL), PC_OK);
    return ends;
}

static void assert_equal_ends(const pc_pipeline_ends *a, const pc_pipeline_ends *b) {
    size_t rows = (size_t)(a->devices * a->chunks);
    assert_memory_equal(a->begin_ps, b->begin_ps, (size_t)a->devices * sizeof(pc_time));
    assert_memory_equal(a->stage_end_ps, b->stage_end_ps, (size_t)a->devices * sizeof(pc_time));
    assert_memory_equal(a->last_start_ps, b->last_start_ps, rows * sizeof(pc_time));
    assert_memory_equal(a->last_end_ps, b->last_end_ps, rows * sizeof(pc_time));
}

/* A recount, pass by pass, of what the ends are. */
static void recount(const example *subject, const pc_timing_result *result, pc_pipeline_ends *ends) {
    for (int d = 0; d < DEVICES; d++)
        for (int64_t i = subject->schedule.offsets[d]; i < subject->schedule.offsets[d + 1]; i++) {
            pc_pass pass = subject->schedule.passes[i];
            int row = d * subject->schedule.chunks + pass.chunk;
            if (result->start_ps[i] < ends->begin_ps[d]) ends->begin_ps[d] = result->start_ps[i]; /* all is ready */
            if (result->end_ps[i] > ends->stage_end_ps[d]) ends->stage_end_ps[d] = result->end_ps[i];
            if (pass.kind != PC_PASS_W && pass.kind != PC_PASS_BW) continue;
            if (result->start_ps[i] > ends->last_start_ps[row]) ends->last_start_ps[row] = result->start_ps[i];
            if (result->end_ps[i] > ends->last_end_ps[row]) ends->last_end_ps[row] = result->end_ps[i];
        }
}

/* Without noise any number of replicas is one of them, and that one is what the timing says. */
static void without_noise_replicas_are_one(void **state) {
    (void)state;
    const char *names[] = {"1f1b", "zb-h1", "v-half", "chimera", "1f1b-interleaved"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        example subject;
        pc_timing *timing;
        pc_timing_result result;
        pc_pipeline_ends expected;
        make_example(names[i], &subject);
        assert_int_equal(pc_timing_create(&timing, NULL), PC_OK);
        assert_int_equal(pc_timing_run(timing, &subject.schedule, &subject.costs, &result, NULL), PC_OK);
        assert_int_equal(pc_ends_create(DEVICES, subject.schedule.chunks, &expected, NULL), PC_OK);
        recount(&subject, &result, &expected);
        pc_pipeline_ends one = run(&subject, 1, 0, 1, NULL), many = run(&subject, 17, 0, 2, NULL);
        assert_equal_ends(&one, &expected);
        assert_equal_ends(&many, &expected);
        pc_ends_free(&one);
        pc_ends_free(&many);
        pc_ends_free(&expected);
        pc_timing_free(timing);
        free_example(&subject);
    }
}

/* The first replica's noise, given to the timing, gives what the expansion of one replica gives. */
static void the_first_replica_is_what_it_says(void **state) {
    (void)state;
    example subject;
    make_example("zb-h1", &subject);
    pc_time *first = pc_alloc((size_t)subject.passes, sizeof *first);
    pc_pipeline_ends ends = run(&subject, 1, 0.2, 1, first), expected;
    pc_timing *timing;
    pc_timing_result result;
    assert_int_equal(pc_timing_create(&timing, NULL), PC_OK);
    assert_int_equal(pc_timing_run_passes(timing, &subject.schedule, &subject.costs, first, &result, NULL), PC_OK);
    for (int64_t i = 0; i < subject.passes; i++) assert_int_equal(result.end_ps[i] - result.start_ps[i], first[i]);
    assert_int_equal(pc_ends_create(DEVICES, 1, &expected, NULL), PC_OK);
    recount(&subject, &result, &expected);
    assert_equal_ends(&ends, &expected);
    pc_timing_free(timing);
    pc_ends_free(&expected);
    pc_ends_free(&ends);
    pc_free(first);
    free_example(&subject);
}

/* The same bits for any number of threads; and more replicas are never earlier. */
static void threads_do_not_show(void **state) {
    (void)state;
    example subject;
    make_example("1f1b", &subject);
    pc_pipeline_ends one = run(&subject, 33, 0.1, 1, NULL), three = run(&subject, 33, 0.1, 3, NULL),
                     few = run(&subject, 5, 0.1, 2, NULL);
    assert_equal_ends(&one, &three);
    for (int d = 0; d < DEVICES; d++) assert_true(few.stage_end_ps[d] <= one.stage_end_ps[d]);
    pc_ends_free(&one);
    pc_ends_free(&three);
    pc_ends_free(&few);
    free_example(&subject);
}

/* Factors have mean 1 and the standard deviation that was asked for: four standard errors of both, over 200 seeds. */
static void noise_has_the_moments_asked_for(void **state) {
    (void)state;
    example subject;
    const double jitter = 0.3;
    enum { SEEDS = 200 };
    make_example("1f1b", &subject);
    pc_time *first = pc_alloc((size_t)subject.passes, sizeof *first);
    double sum = 0, squares = 0, count = (double)(SEEDS * subject.passes);
    for (int seed = 0; seed < SEEDS; seed++) {
        pc_expansion expansion = {.replicas = 1, .jitter = jitter, .seed = (uint64_t)seed, .threads = 1};
        pc_pipeline_ends ends;
        assert_int_equal(pc_ends_create(DEVICES, 1, &ends, NULL), PC_OK);
        assert_int_equal(pc_expand_run(&subject.schedule, &subject.costs, &expansion, &ends, first, NULL), PC_OK);
        for (int d = 0; d < DEVICES; d++)
            for (int64_t i = subject.schedule.offsets[d]; i < subject.schedule.offsets[d + 1]; i++) {
                pc_pass pass = subject.schedule.passes[i];
                double factor = (double)first[i] / (double)pc_costs_duration(&subject.costs, d, pass.chunk, pass.kind);
                sum += factor;
                squares += (factor - 1) * (factor - 1);
            }
        pc_ends_free(&ends);
    }
    assert_true(fabs(sum / count - 1) < 4 * jitter / sqrt(count));
    assert_true(fabs(sqrt(squares / count) / jitter - 1) < 0.05);
    pc_free(first);
    free_example(&subject);
}

static void a_lack_of_memory_is_said(void **state) {
    (void)state;
    example subject;
    pc_expansion expansion = {.replicas = 3, .jitter = 0.1, .threads = 1};
    pc_code code = PC_ERROR_NO_MEMORY;
    make_example("1f1b", &subject);
    for (long after = 0; code != PC_OK; after++) {
        pc_pipeline_ends ends;
        pc_error error = {0};
        assert_int_equal(pc_ends_create(DEVICES, 1, &ends, NULL), PC_OK);
        pc_alloc_fail_after(after);
        code = pc_expand_run(&subject.schedule, &subject.costs, &expansion, &ends, NULL, &error);
        pc_alloc_fail_after(-1);
        pc_ends_free(&ends);
        assert_true(code == PC_OK || code == PC_ERROR_NO_MEMORY);
        assert_true(after < 100);
    }
    free_example(&subject);
}

static void time_that_runs_over_is_said(void **state) {
    (void)state;
    example subject;
    pc_expansion expansion = {.replicas = 3, .threads = 1};
    pc_pipeline_ends ends;
    pc_error error = {0};
    make_example("1f1b", &subject);
    subject.costs.duration_ps[PC_PASS_F] = PC_TIME_MAX / 2;
    assert_int_equal(pc_ends_create(DEVICES, 1, &ends, NULL), PC_OK);
    assert_int_equal(pc_expand_run(&subject.schedule, &subject.costs, &expansion, &ends, NULL, &error), PC_ERROR_INPUT);
    assert_non_null(strstr(error.message, "runs over"));
    pc_ends_free(&ends);
    free_example(&subject);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_noise_replicas_are_one),
        cmocka_unit_test(the_first_replica_is_what_it_says),
        cmocka_unit_test(threads_do_not_show),
        cmocka_unit_test(noise_has_the_moments_asked_for),
        cmocka_unit_test(a_lack_of_memory_is_said),
        cmocka_unit_test(time_that_runs_over_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
