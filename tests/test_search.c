/* Every named schedule at random costs: it can run, keeps its memory, takes the time it is said to take, and does not
 * depend on the number of threads. And allocations that fail. */
#include "tests/support.h"

#include "engine/alloc.h"
#include "models/schedule/block.h"
#include "models/schedule/check.h"
#include "models/schedule/generate.h"
#include "models/schedule/replay.h"
#include "tests/longest_path.h"
#include "tests/memory_limits.h"
#include "tests/searched.h"

/* ---- random cases ---- */

static void draw_costs(test_random *random, const pc_generator *g, pc_costs *costs) {
    bool is_uniform = test_between(random, 0, 3) == 0, is_weightless = test_between(random, 0, 15) == 0;
    bool by_stage = test_between(random, 0, 2) > 0;
    for (int64_t i = 0; i < (int64_t)costs->devices * costs->chunks; i++) {
        pc_time *times = &costs->duration_ps[i * PC_PASS_KINDS];
        for (int kind = 0; kind < PC_PASS_KINDS; kind++) {
            times[kind] = is_uniform ? (kind == PC_PASS_BW ? 20 : 10) : test_between(random, 0, 20);
            if (by_stage && i > 0) times[kind] = costs->duration_ps[kind];
        }
        if (g->searches) times[g->splits ? PC_PASS_BW : PC_PASS_B] = PC_TIME_NOT_GIVEN; /* not asked for */
        costs->activation_bytes[i] = is_weightless ? 0 : test_between(random, is_uniform ? 100 : 0, 100);
        costs->activation_b_bytes[i] = test_between(random, 0, costs->activation_bytes[i]);
        costs->activation_kept_bytes[i] = test_between(random, 0, costs->activation_bytes[i]);
    }
    costs->transfer.delay_ps = test_between(random, 0, 1) * test_between(random, 0, 15);
}

/* A stage's least memory by hand: all chunks of one microbatch, and no more. */
static int64_t stage_bytes(const pc_costs *costs, int device) {
    int64_t bytes = 0;
    for (int c = 0; c < costs->chunks; c++) bytes += costs->activation_bytes[device * costs->chunks + c];
    return bytes;
}

/* Every device without a limit or with one that lets a microbatch through; or one of them with a byte less than that.
 * Returns that device, or -1. */
static int draw_limits(test_random *random, const pc_costs *costs, test_limits *limits) {
    for (int d = 0; d < costs->devices; d++)
        limits->bytes[d] =
            test_between(random, 0, 2) ? stage_bytes(costs, d) * test_between(random, 10, 45) / 10 : PC_NO_LIMIT;
    int short_one = (int)test_between(random, 0, costs->devices - 1);
    if (test_between(random, 0, 9) > 0 || stage_bytes(costs, short_one) < 2) return -1;
    limits->bytes[short_one] = stage_bytes(costs, short_one) - 1;
    return short_one;
}

typedef struct random_case {
    const pc_generator *generator;
    pc_costs costs;
    test_limits limits;
    int devices, microbatches, chunks;
    int short_device; /* with too little memory, or -1 */
} random_case;

/* Sometimes an iteration that is longer than the short one of a search (search.h), which is then stretched. The one
 * schedule with the most effort behind it comes less often, and in small shapes. */
static void draw_case(test_random *random, random_case *c) {
    int count;
    const pc_generator *all = pc_generators(&count);
    do {
        c->generator = &all[test_between(random, 0, count - 1)];
    } while (strcmp(c->generator->name, "1f1b-v") == 0 && test_between(random, 0, 9) > 0);
    bool is_dear = strcmp(c->generator->name, "1f1b-v") == 0, is_long = !is_dear && test_between(random, 0, 39) == 0;
    do {
        c->devices = (int)test_between(random, 1, is_dear ? 3 : is_long ? 2 : 5);
        c->microbatches = is_long ? (int)test_between(random, 22, 40) : (int)test_between(random, 1, is_dear ? 5 : 10);
        c->chunks = (int)test_between(random, 1, 3);
    } while (pc_generator_check(c->generator, c->devices, c->microbatches, c->chunks, NULL));
    assert_int_equal(pc_costs_create(c->devices, c->chunks, &c->costs, NULL), PC_OK);
    draw_costs(random, c->generator, &c->costs);
    c->limits = test_limit_all(PC_NO_LIMIT);
    c->short_device = c->generator->searches ? draw_limits(random, &c->costs, &c->limits) : -1;
}

/* ---- what must hold ---- */

static void describe(const random_case *c) {
    print_message("%s p=%d m=%d v=%d delay %lld\n", c->generator->name, c->devices, c->microbatches, c->chunks,
                  (long long)c->costs.transfer.delay_ps);
    for (int64_t i = 0; i < (int64_t)c->devices * c->chunks; i++) {
        for (int kind = 0; kind < PC_PASS_KINDS; kind++)
            print_message("%lld ", (long long)c->costs.duration_ps[i * PC_PASS_KINDS + kind]);
        print_message("bytes %lld, by B %lld\n", (long long)c->costs.activation_bytes[i],
                      (long long)c->costs.activation_b_bytes[i]);
    }
    for (int d = 0; d < c->devices; d++) print_message("limit %lld\n", (long long)c->limits.bytes[d]);
}

static void expect(bool holds, const random_case *c, const char *what) {
    if (holds) return;
    describe(c);
    fail_msg("%s", what);
}

/* Memory of every device, counted pass by pass: within its own limit and that of the schedule's name, which counts
 * chunks where no activation has a size. */
static void check_memory(const random_case *c, const pc_schedule *s) {
    const pc_costs *costs = &c->costs;
    int64_t all = 0;
    for (int d = 0; d < s->devices; d++) all += stage_bytes(costs, d);
    for (int d = 0; d < s->devices; d++) {
        int64_t level = 0, peak = 0, own = c->limits.bytes[d];
        for (int64_t k = s->offsets[d]; k < s->offsets[d + 1]; k++) {
            int64_t i = (int64_t)d * s->chunks + s->passes[k].chunk, kind = s->passes[k].kind;
            int64_t whole = all ? costs->activation_bytes[i] : 1, by_b = all ? costs->activation_b_bytes[i] : 0;
            level += kind == PC_PASS_F ? whole : kind == PC_PASS_B ? -by_b : kind == PC_PASS_W ? by_b - whole : -whole;
            if (level > peak) peak = level;
        }
        expect(level == 0, c, "all memory is given back");
        expect(!all || peak <= own, c, "the device's limit");
        bool is_own_only = all && c->generator->adapts && own != PC_NO_LIMIT;
        int64_t most = searched_microbatches(s->name, s->devices) * (all ? stage_bytes(costs, d) : s->chunks);
        expect(is_own_only || peak <= most, c, "the limit of the name");
    }
}

/* The replay within the limits against the longest path, with as much memory as it likes. */
static void check_span(const random_case *c, const pc_schedule *s) {
    int64_t passes = s->offsets[s->devices];
    pc_time *start = calloc((size_t)passes, sizeof *start), *end = calloc((size_t)passes, sizeof *end), span = 0;
    pc_replay replay;
    pc_error error = {0};
    expect(longest_path(s, &c->costs, start, end), c, "no deadlock");
    for (int d = 0; d < s->devices; d++) {
        pc_time of_device = end[s->offsets[d + 1] - 1] - start[s->offsets[d]];
        if (of_device > span) span = of_device;
    }
    const pc_replay_options options = {.memory_limit = test_limit(&c->limits)};
    expect(pc_replay_run(s, &c->costs, &options, &replay, &error) == PC_OK, c, error.message);
    expect(!replay.out_of_memory, c, "a replay that fits");
    expect(replay.span_ps == span, c, "the replay's span is the longest path's");
    pc_replay_free(&replay);
    free(start);
    free(end);
}

static bool is_same_block(const pc_block *a, const pc_block *b) {
    int64_t starts = (int64_t)a->microbatches * a->devices * a->chunks * PC_PASS_KINDS;
    if (a->devices != b->devices || a->interval != b->interval || a->microbatches != b->microbatches) return false;
    return starts == 0 || memcmp(a->start, b->start, (size_t)starts * sizeof *a->start) == 0;
}

static void check_threads(const random_case *c, const pc_schedule *s, const pc_block *block, int threads) {
    pc_generate_request request = {.devices = c->devices,
                                   .microbatches = c->microbatches,
                                   .chunks = c->chunks,
                                   .costs = &c->costs,
                                   .memory_limit = test_limit(&c->limits),
                                   .threads = threads};
    pc_schedule again;
    pc_block again_block;
    expect(pc_generate(c->generator, &request, &again, &again_block, NULL) == PC_OK, c, "it runs on more threads");
    expect(memcmp(again.passes, s->passes, (size_t)s->offsets[s->devices] * sizeof *s->passes) == 0, c,
           "the same schedule on more threads");
    expect(is_same_block(block, &again_block), c, "the same block on more threads");
    pc_block_free(&again_block);
    pc_schedule_free(&again);
}

static void check_case(test_random *random, const random_case *c) {
    pc_generate_request request = {.devices = c->devices,
                                   .microbatches = c->microbatches,
                                   .chunks = c->chunks,
                                   .costs = &c->costs,
                                   .memory_limit = test_limit(&c->limits),
                                   .threads = 1};
    pc_schedule s = {0};
    pc_block block;
    pc_error error = {0};
    pc_code code = pc_generate(c->generator, &request, &s, &block, &error);
    if (c->short_device >= 0) {
        expect(code == PC_ERROR_INPUT, c, "too little memory is refused");
        expect(pc_generator_check_memory(c->generator, &c->costs, test_limit(&c->limits), NULL) == PC_ERROR_INPUT, c,
               "and so it is beforehand");
        return;
    }
    expect(code == PC_OK, c, error.message);
    expect(pc_generator_check_memory(c->generator, &c->costs, test_limit(&c->limits), NULL) == PC_OK, c,
           "memory enough is accepted");
    expect(pc_schedule_check(&s, &error) == PC_OK, c, error.message);
    expect(strcmp(s.name, c->generator->name) == 0 && s.microbatches == c->microbatches, c, "name and shape");
    expect(block.devices == 0 || (block.devices == c->devices && pc_block_is_valid(&block)), c, "the block");
    if (c->generator->searches) check_memory(c, &s);
    check_span(c, &s);
    if (c->generator->searches && test_between(random, 0, 29) == 0) {
        check_threads(c, &s, &block, 2);
        check_threads(c, &s, &block, 3);
    }
    pc_block_free(&block);
    pc_schedule_free(&s);
}

static void test_random_costs(void **state) {
    (void)state;
    test_random random = {17};
    for (long i = 0; i < test_cases(100, 600); i++) {
        random_case c;
        draw_case(&random, &c);
        check_case(&random, &c);
        pc_costs_free(&c.costs);
    }
}

/* ---- threads, and memory that is refused ---- */

/* Unequal stages, so that the search goes all its way; m is longer than the short iteration too. */
static pc_costs unequal_costs(int p, int chunks) {
    pc_costs costs = searched_costs(p, chunks, 60);
    test_random random = {5};
    for (int i = 0; i < p * chunks * PC_PASS_KINDS; i++) /* no search has S and T */
        if (i % PC_PASS_KINDS < PC_PASS_S) costs.duration_ps[i] = test_between(&random, 5, 20);
    costs.transfer.delay_ps = 3;
    return costs;
}

static void test_threads(void **state) {
    (void)state;
    static const char *const names[] = {"zb-1p", "zb-two-thirds", "v-min", "zb-v", "v-adaptive", "1f1b-v"};
    for (size_t n = 0; n < sizeof names / sizeof *names; n++)
        for (int m = 8; m <= 40; m += 32) {
            random_case c = {.generator = pc_generator_find(names[n]),
                             .limits = test_limit_all(PC_NO_LIMIT),
                             .devices = 3,
                             .microbatches = m,
                             .short_device = -1};
            c.costs = unequal_costs(3, c.generator->chunks_default);
            pc_generate_request request = {.devices = c.devices, .microbatches = m, .costs = &c.costs, .threads = 1};
            pc_schedule s;
            pc_block block;
            if (strcmp(names[n], "1f1b-v") == 0 && m > 8) request.microbatches = c.microbatches = 9;
            assert_int_equal(pc_generate(c.generator, &request, &s, &block, NULL), PC_OK);
            check_threads(&c, &s, &block, 2);
            check_threads(&c, &s, &block, 5);
            pc_block_free(&block);
            pc_schedule_free(&s);
            pc_costs_free(&c.costs);
        }
}

/* Every allocation of a search fails once. What is written on success only is not written then. */
static void sweep_allocations(const char *name, int p, int m, const pc_costs *costs) {
    pc_generate_request request = {.devices = p, .microbatches = m, .costs = costs, .threads = 1};
    const pc_generator *g = pc_generator_find(name);
    long count = 1;
    for (long i = -1; i < count; i++) {
        pc_schedule s = {0};
        pc_block block = {0};
        pc_error error = {0};
        long before = pc_alloc_count();
        pc_alloc_fail_after(i);
        pc_code code = pc_generate(g, &request, &s, &block, &error);
        pc_alloc_fail_after(-1);
        if (i < 0) {
            assert_int_equal(code, PC_OK);
            count = pc_alloc_count() - before;
            assert_true(count > 20);
        } else {
            assert_int_equal(code, PC_ERROR_NO_MEMORY);
            assert_string_equal(error.message, "out of memory: the allocation was refused");
            assert_null(s.passes);
            assert_null(block.start);
        }
        pc_schedule_free(&s);
        pc_block_free(&block);
    }
}

static void test_every_allocation_fails_once(void **state) {
    (void)state;
    pc_costs linear = unequal_costs(2, 1), folded = unequal_costs(2, 2), weightless = unequal_costs(2, 2);
    for (int i = 0; i < 4; i++) weightless.activation_bytes[i] = 0;
    sweep_allocations("zb-1p", 2, 3, &linear);
    sweep_allocations("zb-1p", 2, 24, &linear); /* stretched */
    sweep_allocations("v-adaptive", 2, 3, &folded);
    sweep_allocations("v-adaptive", 2, 2, &weightless);
    pc_costs_free(&linear);
    pc_costs_free(&folded);
    pc_costs_free(&weightless);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_costs),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_every_allocation_fails_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
