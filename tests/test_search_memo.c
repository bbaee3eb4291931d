/* A memo of searches changes no schedule: every name that searches, at random costs, with and without, on several
 * threads, where it forgets, and where memory is refused. And it saves the searches that it is there to save. */
#include "tests/support.h"

#include "engine/alloc.h"
#include "engine/parallel.h"
#include "models/schedule/generate_private.h"
#include "models/schedule/search_memo.h"
#include "tests/iteration_example.h"
#include "tests/memory_limits.h"

/* ---- random requests ---- */

/* Whole stages are alike half of the time, and hops; rooms let a microbatch through or are none. */
static void draw_costs(test_random *random, pc_costs *costs, test_limits *limits) {
    bool are_alike = test_between(random, 0, 1), has_room = test_between(random, 0, 1);
    int64_t stage_bytes = 0;
    for (int64_t i = 0; i < (int64_t)costs->devices * costs->chunks; i++) {
        for (int kind = 0; kind < PC_PASS_KINDS; kind++) {
            pc_time *time = &costs->duration_ps[i * PC_PASS_KINDS + kind];
            *time = are_alike && i > 0 ? costs->duration_ps[kind] : test_between(random, 1, 20);
        }
        costs->activation_bytes[i] = test_between(random, are_alike ? 50 : 1, 50);
        costs->activation_b_bytes[i] = test_between(random, 0, costs->activation_bytes[i]);
        costs->activation_kept_bytes[i] = test_between(random, 0, costs->activation_bytes[i]);
    }
    *limits = test_limit_all(PC_NO_LIMIT);
    for (int d = 0; d < costs->devices && has_room; d++) {
        stage_bytes = 0;
        for (int c = 0; c < costs->chunks; c++) stage_bytes += costs->activation_bytes[pc_costs_index(costs, d, c)];
        limits->bytes[d] = stage_bytes * test_between(random, 10, 45) / 10;
    }
    costs->recomputes_in_b = test_between(random, 0, 5) == 0;
    costs->transfer.delay_ps = test_between(random, 0, 9);
    if (test_between(random, 0, 1)) {
        assert_int_equal(pc_costs_add_hop_delays(costs, NULL), PC_OK);
        for (int d = 0; d < costs->devices && test_between(random, 0, 3); d++)
            costs->hop_delay_ps[d] = test_between(random, 0, 9);
    }
}

/* One of the names that search; the one that takes longest comes less often. */
static const pc_generator *draw_name(test_random *random) {
    int count;
    const pc_generator *all = pc_generators(&count), *g;
    do {
        g = &all[test_between(random, 0, count - 1)];
    } while (!g->searches || (strcmp(g->name, "1f1b-v") == 0 && test_between(random, 0, 9) > 0));
    return g;
}

enum { COSTS = 4, REQUESTS = 12 };

/* Several requests for the same few costs, of one or two chunks, as a sweep has them. */
typedef struct example {
    pc_costs costs[COSTS];
    test_limits limits[COSTS];
    const pc_generator *name[REQUESTS];
    pc_generate_request request[REQUESTS];
    bool with_block[REQUESTS];
} example;

static void draw_example(test_random *random, example *subject) {
    for (int i = 0; i < COSTS; i++) {
        assert_int_equal(pc_costs_create((int)test_between(random, 1, 3), 1 + i % 2, &subject->costs[i], NULL), PC_OK);
        draw_costs(random, &subject->costs[i], &subject->limits[i]);
    }
    for (int i = 0; i < REQUESTS; i++) {
        subject->name[i] = draw_name(random);
        int64_t of = 2 * test_between(random, 0, 1) + subject->name[i]->chunks_default - 1;
        const pc_costs *costs = &subject->costs[of];
        subject->request[i] =
            (pc_generate_request){.devices = costs->devices,
                                  .microbatches = test_between(random, 1, 2) * 4,
                                  .costs = costs,
                                  .memory_limit = test_limit(&subject->limits[of]),
                                  .threads = 1,
                                  .making = test_between(random, 0, 3) == 0 ? PC_MAKING_EQUAL : PC_MAKING_COSTS,
                                  .searches_once = test_between(random, 0, 3) == 0};
        subject->with_block[i] = test_between(random, 0, 1);
    }
}

static void free_example(example *subject) {
    for (int i = 0; i < COSTS; i++) pc_costs_free(&subject->costs[i]);
}

/* ---- answers ---- */

typedef struct made {
    pc_code code;
    pc_error error;
    pc_schedule schedule;
    pc_block block;
} made;

static made make(const example *subject, int i, pc_search_memo *memo) {
    made m = {.code = PC_OK};
    pc_generate_request request = subject->request[i];
    request.memo = memo;
    m.code = pc_generate(subject->name[i], &request, &m.schedule, subject->with_block[i] ? &m.block : NULL, &m.error);
    return m;
}

static void free_made(made *m) {
    pc_schedule_free(&m->schedule);
    pc_block_free(&m->block);
}

static bool is_same_schedule(const pc_schedule *a, const pc_schedule *b) {
    size_t stages = (size_t)a->devices + 1;
    return strcmp(a->name, b->name) == 0 && a->devices == b->devices && a->microbatches == b->microbatches &&
           a->chunks == b->chunks && a->placement == b->placement &&
           memcmp(a->offsets, b->offsets, stages * sizeof *a->offsets) == 0 &&
           memcmp(a->passes, b->passes, (size_t)a->offsets[a->devices] * sizeof *a->passes) == 0;
}

static bool is_same_block(const pc_block *a, const pc_block *b) {
    size_t starts = (size_t)a->microbatches * (size_t)a->devices * (size_t)a->chunks * PC_PASS_KINDS;
    if (a->devices != b->devices || a->chunks != b->chunks || a->microbatches != b->microbatches) return false;
    if (a->devices == 0) return true;
    return a->placement == b->placement && a->interval == b->interval &&
           memcmp(a->start, b->start, starts * sizeof *a->start) == 0 &&
           memcmp(a->duration, b->duration, PC_PASS_KINDS * sizeof *a->duration) == 0;
}

static bool is_same(const made *a, const made *b) {
    if (a->code || b->code) return a->code == b->code && strcmp(a->error.message, b->error.message) == 0;
    return is_same_schedule(&a->schedule, &b->schedule) && is_same_block(&a->block, &b->block);
}

static pc_search_memo *new_memo(size_t bytes_max) {
    pc_search_memo *memo;
    assert_int_equal(pc_search_memo_create(bytes_max, &memo, NULL), PC_OK);
    return memo;
}

/* All requests, each twice, on a memo that knows earlier examples; against no memo. */
static void check_example(const example *subject, pc_search_memo *memo) {
    for (int i = 0; i < REQUESTS; i++) {
        made without = make(subject, i, NULL);
        for (int again = 0; again < 2; again++) {
            made with = make(subject, i, memo);
            if (!is_same(&with, &without)) fail_msg("%s: another answer with a memo", subject->name[i]->name);
            free_made(&with);
        }
        free_made(&without);
    }
}

static void check_examples(uint64_t seed, long examples, pc_search_memo *memo) {
    test_random random = {seed};
    for (long i = 0; i < examples; i++) {
        example subject;
        draw_example(&random, &subject);
        check_example(&subject, memo);
        free_example(&subject);
    }
}

static void test_same_answers(void **state) {
    (void)state;
    pc_search_memo *memo = new_memo(PC_SEARCH_MEMO_BYTES);
    check_examples(12, test_cases(4, 10), memo);
    pc_search_memo_counts counts = pc_search_memo_count(memo);
    assert_true(counts.found >= counts.kept); /* every request comes twice */
    assert_int_equal(counts.forgotten, 0);
    pc_search_memo_free(memo);
}

/* A request that comes again does no search at all; one with equal times finds what the same name's search for the
 * costs tried, though times and hops are other ones. */
static void test_what_is_saved(void **state) {
    (void)state;
    test_random random = {8};
    pc_costs costs, other;
    test_limits limits; /* that are not asked for */
    assert_int_equal(pc_costs_create(3, 2, &costs, NULL), PC_OK);
    draw_costs(&random, &costs, &limits);
    costs.recomputes_in_b = false;
    pc_search_memo *memo = new_memo(PC_SEARCH_MEMO_BYTES);
    pc_generate_request request = {.devices = 3, .microbatches = 8, .costs = &costs, .threads = 1, .memo = memo};
    pc_schedule s;
    assert_int_equal(pc_generate(pc_generator_find("v-half"), &request, &s, NULL, NULL), PC_OK);
    pc_schedule_free(&s);
    int64_t kept = pc_search_memo_count(memo).kept;
    assert_true(kept > 0);
    assert_int_equal(pc_generate(pc_generator_find("v-half"), &request, &s, NULL, NULL), PC_OK);
    pc_schedule_free(&s);
    assert_int_equal(pc_search_memo_count(memo).kept, kept);
    assert_int_equal(pc_search_memo_count(memo).found, kept);
    other = costs;
    other.transfer.delay_ps = 17;
    other.hop_delay_ps = NULL;
    request.costs = &other;
    request.making = PC_MAKING_EQUAL;
    request.searches_once = true;
    assert_int_equal(pc_generate(pc_generator_find("v-half"), &request, &s, NULL, NULL), PC_OK);
    pc_schedule_free(&s);
    assert_int_equal(pc_search_memo_count(memo).kept, kept);
    pc_search_memo_free(memo);
    pc_costs_free(&costs);
}

/* ---- what is left out ---- */

/* A search of what a request is reduced to finds what one of all of it does. */
static void check_reduced(test_random *random, const pc_generator *g, const pc_costs *costs, const test_limits *asked) {
    test_limits named = test_limit_all(PC_NO_LIMIT), limits = *asked;
    pc_generate_request request = {.devices = costs->devices,
                                   .microbatches = test_between(random, 1, 9),
                                   .costs = costs,
                                   .memory_limit = test_limit(asked),
                                   .threads = 1};
    made whole = {.code = PC_OK}, reduced = {.code = PC_OK};
    pc_searched_limits(g, &request, named.bytes);
    bool is_tight = pc_searched_is_tightened(g, &request, named.bytes);
    for (int d = 0; d < costs->devices; d++)
        if (named.bytes[d] < limits.bytes[d]) limits.bytes[d] = named.bytes[d];
    request.memory_limit = test_limit(&limits);
    whole.code = pc_searched_find(g, &request, is_tight, &whole.schedule, &whole.block, &whole.error);
    reduced.code = pc_searched_run(g, &request, is_tight, &reduced.schedule, &reduced.block, &reduced.error);
    assert_int_equal(whole.code, PC_OK);
    if (!is_same(&whole, &reduced)) fail_msg("%s: something that counts is left out", g->name);
    free_made(&whole);
    free_made(&reduced);
}

static void test_what_is_left_out(void **state) {
    (void)state;
    test_random random = {17};
    for (long i = 0; i < test_cases(20, 60); i++) {
        const pc_generator *g = draw_name(&random);
        pc_costs costs;
        test_limits limits;
        assert_int_equal(pc_costs_create((int)test_between(&random, 1, 5), g->chunks_default, &costs, NULL), PC_OK);
        draw_costs(&random, &costs, &limits);
        if (costs.recomputes_in_b) /* as generate_recomputed.c asks */
            for (int k = 0; k < costs.devices * costs.chunks; k++) costs.activation_b_bytes[k] = 0;
        if (i % 5 == 0) costs.transfer = (pc_transfer){PC_TRANSFER_LINK, 5, test_between(&random, 0, 5), 1e12, 4};
        if (i % 2) assert_int_equal(pc_costs_add_ready(&costs, NULL), PC_OK);
        for (int k = 0; i % 2 && k < costs.devices * costs.chunks; k++) costs.ready_ps[k] = test_between(&random, 0, 9);
        check_reduced(&random, g, &costs, &limits);
        pc_costs_free(&costs);
    }
}

/* ---- one number is another ---- */

static void check_change(pc_costs *costs, const test_limits *limits, int64_t *number, int64_t by,
                         pc_search_memo *memo) {
    static const char *const names[][2] = {{"zb-1p", "zb-two-thirds"}, {"v-adaptive", "v-min"}};
    *number += by;
    for (int i = 0; i < 2; i++) {
        example subject = {.name = {pc_generator_find(names[costs->chunks - 1][i])},
                           .request = {{.devices = costs->devices,
                                        .microbatches = 3,
                                        .costs = costs,
                                        .memory_limit = test_limit(limits),
                                        .threads = 1}},
                           .with_block = {true}};
        made with = make(&subject, 0, memo), without = make(&subject, 0, NULL);
        if (!is_same(&with, &without)) fail_msg("%s: the memo gives another's answer", subject.name[0]->name);
        free_made(&with);
        free_made(&without);
    }
    *number -= by;
}

/* What the memo knows of costs is no answer to others that differ in a single number. */
static void test_every_number_counts(void **state) {
    (void)state;
    test_random random = {21};
    for (int chunks = 1; chunks <= 2; chunks++) {
        pc_costs costs;
        pc_search_memo *memo = new_memo(PC_SEARCH_MEMO_BYTES);
        assert_int_equal(pc_costs_create(2, chunks, &costs, NULL), PC_OK);
        test_limits limits;
        draw_costs(&random, &costs, &limits);
        costs.recomputes_in_b = false;
        assert_int_equal(pc_costs_add_hop_delays(&costs, NULL), PC_OK);
        limits = test_limit_all(400);
        for (int i = 0; i < 2 * chunks * PC_PASS_KINDS; i++)
            check_change(&costs, &limits, &costs.duration_ps[i], 13, memo);
        for (int i = 0; i < 2 * chunks; i++) {
            check_change(&costs, &limits, &costs.activation_bytes[i], 70, memo);
            check_change(&costs, &limits, &costs.activation_b_bytes[i], -costs.activation_b_bytes[i], memo);
        }
        for (int d = 0; d < 2; d++) check_change(&costs, &limits, &limits.bytes[d], -250, memo);
        check_change(&costs, &limits, &costs.hop_delay_ps[0], 25, memo);
        for (int i = 0; i < 2; i++) {
            costs.recomputes_in_b = i;
            for (int k = 0; k < 2 * chunks; k++)
                check_change(&costs, &limits, &costs.activation_kept_bytes[k], -costs.activation_kept_bytes[k], memo);
        }
        pc_search_memo_free(memo);
        pc_costs_free(&costs);
    }
}

/* ---- a full memo ---- */

static void test_full(void **state) {
    (void)state;
    static const size_t sizes[] = {0, 3000, 20000};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        pc_search_memo *memo = new_memo(sizes[i]);
        check_examples(4 + i, 1 + test_cases(6, 6) / 6, memo);
        pc_search_memo_counts counts = pc_search_memo_count(memo);
        assert_true(counts.bytes <= sizes[i]);
        assert_int_equal(counts.kept > 0, sizes[i] > 0);
        assert_int_equal(counts.forgotten > 0, sizes[i] > 0);
        pc_search_memo_free(memo);
    }
}

/* ---- threads ---- */

enum { THREADS = 4, ROUNDS = 3 };

typedef struct shared {
    const example *subject;
    pc_search_memo *memo;
    made made[ROUNDS * REQUESTS];
} shared;

static void make_one(void *context, int worker, int64_t index) {
    (void)worker;
    shared *work = context;
    work->made[index] = make(work->subject, (int)(index / ROUNDS), work->memo); /* the same at the same time */
}

static void check_threads(const example *subject, size_t bytes_max) {
    shared work = {.subject = subject, .memo = new_memo(bytes_max)};
    pc_search_memo *one = new_memo(bytes_max); /* of one thread, which asks once */
    pc_parallel_run(THREADS, (int64_t)ROUNDS * REQUESTS, make_one, &work);
    for (int i = 0; i < ROUNDS * REQUESTS; i++) {
        made alone = make(subject, i / ROUNDS, i % ROUNDS ? NULL : one);
        if (!is_same(&work.made[i], &alone)) fail_msg("%s: another answer", subject->name[i / ROUNDS]->name);
        free_made(&work.made[i]);
        free_made(&alone);
    }
    if (pc_search_memo_count(work.memo).forgotten == 0)
        assert_int_equal(pc_search_memo_count(work.memo).kept, pc_search_memo_count(one).kept);
    pc_search_memo_free(one);
    pc_search_memo_free(work.memo);
}

/* Nothing is searched twice, however many ask at once, unless it had to be forgotten. */
static void test_threads(void **state) {
    (void)state;
    test_random random = {6};
    for (long i = 0; i < 1 + test_cases(6, 6) / 6; i++) {
        example subject;
        draw_example(&random, &subject);
        check_threads(&subject, PC_SEARCH_MEMO_BYTES);
        check_threads(&subject, 6000);
        free_example(&subject);
    }
}

/* ---- memory that is refused ---- */

/* Every allocation fails once (in a quick run one in 29), also those of the memo's copies. Afterwards nobody waits
 * for what was given up. */
static void check_refusals(const example *subject, int i, bool knows) {
    made right = make(subject, i, NULL);
    long count = 1;
    for (long after = -1; after < count; after += after < 0 ? 1 : test_part(29, 1)) {
        pc_search_memo *memo = new_memo(PC_SEARCH_MEMO_BYTES);
        if (knows) {
            made before = make(subject, i, memo);
            free_made(&before);
        }
        long begin = pc_alloc_count();
        pc_alloc_fail_after(after);
        made m = make(subject, i, memo);
        pc_alloc_fail_after(-1);
        if (after < 0) count = pc_alloc_count() - begin;
        assert_int_equal(m.code, after < 0 ? PC_OK : PC_ERROR_NO_MEMORY);
        if (m.code) {
            assert_null(m.schedule.passes);
            assert_null(m.block.start);
            m = make(subject, i, memo);
        }
        assert_true(is_same(&m, &right));
        free_made(&m);
        pc_search_memo_free(memo);
    }
    free_made(&right);
}

static void test_every_allocation_fails_once(void **state) {
    (void)state;
    test_random random = {31};
    example subject;
    draw_example(&random, &subject);
    for (int i = 0; i < 2; i++) {
        subject.costs[i].recomputes_in_b = false;
        subject.name[i] = pc_generator_find(i ? "v-min" : "zb-two-thirds");
        subject.request[i] = (pc_generate_request){.devices = subject.costs[i].devices,
                                                   .microbatches = 2,
                                                   .costs = &subject.costs[i],
                                                   .threads = 1,
                                                   .searches_once = true};
        subject.with_block[i] = true;
        check_refusals(&subject, i, false);
        check_refusals(&subject, i, true);
    }
    free_example(&subject);
    pc_search_memo *memo;
    pc_alloc_fail_after(0);
    assert_int_equal(pc_search_memo_create(1, &memo, NULL), PC_ERROR_NO_MEMORY);
    pc_alloc_fail_after(-1);
    pc_search_memo_free(NULL);
}

/* ---- iterations ---- */

static void check_iteration(pc_iteration_spec spec, pc_search_memo *memo) {
    pc_iteration alone = run_spec(&spec);
    spec.memo = memo;
    pc_iteration first = run_spec(&spec);
    int64_t kept = pc_search_memo_count(memo).kept;
    pc_iteration again = run_spec(&spec);
    assert_int_equal(pc_search_memo_count(memo).kept, kept);
    assert_true(alone.iteration_s == first.iteration_s && first.iteration_s == again.iteration_s);
    assert_true(alone.replay.trace_hash == first.replay.trace_hash &&
                first.replay.trace_hash == again.replay.trace_hash);
    assert_true(is_same_block(&alone.block, &first.block) && is_same_block(&alone.block, &again.block));
    pc_iteration_free(&alone);
    pc_iteration_free(&first);
    pc_iteration_free(&again);
}

/* With a memo of its own and with one that others share, an iteration is the same; over flows it times up to four
 * schedules. */
static void test_iterations(void **state) {
    (void)state;
    static const char *const names[] = {"zb-1p", "v-half", "v-adaptive"};
    pc_search_memo *memo = new_memo(PC_SEARCH_MEMO_BYTES);
    for (int i = 0; i < 6; i++) {
        pc_iteration_spec spec = example_spec();
        spec.generator = pc_generator_find(names[i % 3]);
        spec.cut.chunks = spec.generator->chunks_default;
        spec.network = i < 3 ? PC_NETWORK_CLOSED : PC_NETWORK_FLOWS;
        check_iteration(spec, memo);
    }
    assert_true(pc_search_memo_count(memo).found > 0);
    pc_search_memo_free(memo);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_answers),
        cmocka_unit_test(test_what_is_saved),
        cmocka_unit_test(test_what_is_left_out),
        cmocka_unit_test(test_every_number_counts),
        cmocka_unit_test(test_full),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_every_allocation_fails_once),
        cmocka_unit_test(test_iterations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
