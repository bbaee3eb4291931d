/* A search in pieces: by several ranks, in shares of the cuts, with what others kept, stopped and gone on with. Always
 * the same plans and the same log. */
#include "tests/folder.h"
#include "tests/planner_example.h"

#include "engine/alloc.h"
#include "sweep/plan_kept.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

static pc_plan_request draw_request(test_random *random) {
    pc_plan_request request = {.objective_count = (int)test_between(random, 1, 2), .threads = 1};
    request.objectives[0] = (pc_plan_objective)test_between(random, 0, 1);
    request.objectives[1] = (pc_plan_objective)(1 - request.objectives[0]);
    request.top = (int)test_between(random, request.objective_count == 1, 6);
    request.all_variants = test_between(random, 0, 2) == 0;
    return request;
}

static pc_plan_answer run_plan(const pc_plan_space *space, const pc_plan_request *request) {
    pc_plan_answer answer;
    pc_error error = {0};
    if (pc_plan_run(space, request, &answer, &error)) fail_msg("%s", error.message);
    return answer;
}

static void check_same(const pc_plan_answer *a, const pc_plan_answer *b) {
    const pc_plan_log *x = &a->log, *y = &b->log;
    assert_int_equal(a->count, b->count);
    for (int64_t i = 0; i < a->count; i++) {
        assert_int_equal(a->found[i].number, b->found[i].number);
        assert_int_equal(a->found[i].memory_bytes, b->found[i].memory_bytes);
        assert_int_equal(a->found[i].memory_limits, b->found[i].memory_limits);
        assert_ptr_equal(a->found[i].choice.generator, b->found[i].choice.generator);
        assert_true(a->found[i].iteration_s == b->found[i].iteration_s && a->found[i].bound_s == b->found[i].bound_s);
        assert_true(a->found[i].mfu == b->found[i].mfu && a->found[i].cost == b->found[i].cost);
        assert_true(a->found[i].sequences_per_s == b->found[i].sequences_per_s);
        assert_memory_equal(&a->found[i].exposed, &b->found[i].exposed, sizeof a->found[i].exposed);
    }
    assert_int_equal(x->points, y->points);
    assert_int_equal(x->over_memory, y->over_memory);
    assert_int_equal(x->too_slow, y->too_slow);
    assert_int_equal(x->simulated, y->simulated);
    assert_int_equal(x->simulated_over_memory, y->simulated_over_memory);
    assert_int_equal(x->simulated_infeasible, y->simulated_infeasible);
    assert_memory_equal(x->broken, y->broken, sizeof x->broken);
    assert_true(isnan(x->mean_bound) ? isnan(y->mean_bound)
                                     : x->mean_bound == y->mean_bound && x->worst_bound == y->worst_bound);
}

/* ---- ranks ---- */

enum { RANKS_MAX = 3 };

/* Where ranks, which are threads here, lay down what they say. */
typedef struct table {
    pthread_barrier_t barrier;
    int ranks;
    const void *bytes[RANKS_MAX];
    size_t sizes[RANKS_MAX];
    pc_code codes[RANKS_MAX];
} table;

typedef struct rank_work {
    table *table;
    int rank;
    const pc_plan_space *space;
    pc_plan_request request;
    pc_plan_answer answer;
    pc_code code;
} rank_work;

static pc_code lay_down(void *self, pc_code code, const void *bytes, size_t size, void **all, size_t *all_size,
                        pc_error *error) {
    rank_work *x = self;
    table *t = x->table;
    t->bytes[x->rank] = bytes;
    t->sizes[x->rank] = size;
    t->codes[x->rank] = code;
    pthread_barrier_wait(&t->barrier);
    *all_size = 0;
    for (int i = 0; i < t->ranks && !code; i++) code = t->codes[i];
    for (int i = 0; i < t->ranks; i++) *all_size += t->sizes[i];
    char *joined = pc_alloc(*all_size + 1, 1), *at = joined;
    if (!joined) abort();
    for (int i = 0; i < t->ranks; at += t->sizes[i++])
        if (t->sizes[i] > 0) memcpy(at, t->bytes[i], t->sizes[i]);
    pthread_barrier_wait(&t->barrier);
    *all = joined;
    if (!code) return PC_OK;
    pc_free(joined);
    return pc_error_set(error, code, "another rank");
}

static void *be_a_rank(void *context) {
    rank_work *x = context;
    x->code = pc_plan_run(x->space, &x->request, &x->answer, NULL);
    return NULL;
}

static void run_ranks(const pc_plan_space *space, const pc_plan_request *request, int ranks, rank_work *work) {
    table shared = {.ranks = ranks};
    pthread_t threads[RANKS_MAX];
    pthread_barrier_init(&shared.barrier, NULL, (unsigned)ranks);
    for (int i = 0; i < ranks; i++) {
        bool stops = work[i].request.progress.is_stopped != NULL;
        pc_plan_progress progress = work[i].request.progress;
        work[i] = (rank_work){.table = &shared, .rank = i, .space = space, .request = *request};
        if (stops) work[i].request.progress = progress;
        work[i].request.threads = 1 + i % 2;
        work[i].request.crew = (pc_plan_crew){.rank = i, .size = ranks, .share = lay_down, .self = &work[i]};
        assert_int_equal(pthread_create(&threads[i], NULL, be_a_rank, &work[i]), 0);
    }
    for (int i = 0; i < ranks; i++) pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&shared.barrier);
}

static void test_ranks_do_not_show(void **state) {
    (void)state;
    test_random random = {2602};
    int64_t found = 0;
    for (long i = 0; i < test_cases(12, 200); i++) {
        example_space x;
        draw_space(&random, i % 3 == 0 ? 300 : 4000, i % 3 == 0, &x);
        pc_plan_request request = draw_request(&random);
        pc_plan_answer alone = run_plan(&x.space, &request);
        for (int ranks = 2; ranks <= RANKS_MAX; ranks++) {
            rank_work work[RANKS_MAX] = {{.rank = 0}};
            run_ranks(&x.space, &request, ranks, work);
            for (int r = 0; r < ranks; r++) {
                assert_int_equal(work[r].code, PC_OK);
                check_same(&alone, &work[r].answer);
                pc_plan_answer_free(&work[r].answer);
            }
        }
        found += alone.count;
        pc_plan_answer_free(&alone);
    }
    assert_true(test_saw(found, 1));
}

static bool is_stopped_at_once(void *self) {
    (void)self;
    return true;
}

/* One rank that is stopped stops all. */
static void test_a_rank_stops_all(void **state) {
    (void)state;
    test_random random = {2603};
    example_space x;
    draw_space(&random, 4000, false, &x);
    pc_plan_request request = {.objective_count = 1, .top = 3};
    for (int bad = 0; bad < 2; bad++) {
        rank_work work[RANKS_MAX] = {{.rank = 0}};
        work[bad].request.progress.is_stopped = is_stopped_at_once;
        run_ranks(&x.space, &request, 2, work);
        for (int r = 0; r < 2; r++) assert_int_equal(work[r].code, PC_ERROR_STOPPED);
    }
}

/* ---- shares, and what is kept ---- */

/* Runs whose costs are those of the bases, of a profile each. */
static void make_runs(const example_space *x, pc_run_spec *runs) {
    for (int i = 0; i < x->space.base_count; i++) {
        runs[i] = pc_run_spec_default();
        runs[i].cost = x->space.bases[i].cost;
        runs[i].profile_hash = (uint64_t)i + 1;
    }
}

static pc_plan_kept *open_kept(const char *path, const example_space *x, pc_run_spec *runs) {
    pc_plan_kept *kept;
    pc_error error = {0};
    if (pc_plan_kept_open(&path, path ? 1 : 0, false, &kept, &error)) fail_msg("%s", error.message);
    make_runs(x, runs);
    pc_plan_kept_use(kept, runs, x->space.base_count);
    return kept;
}

static void add_counts(const pc_plan_log *log, pc_plan_log *sum) {
    sum->points += log->points;
    sum->broken_rule += log->broken_rule;
    sum->over_memory += log->over_memory;
}

/* Whether some share's answer has the plan. */
static bool has_plan(const pc_plan_answer *shares, int count, int64_t number) {
    bool has = false;
    for (int i = 0; i < count; i++)
        for (int64_t k = 0; k < shares[i].count; k++) has = has || shares[i].found[k].number == number;
    return has;
}

/* What the whole has, some share has too: each has the best of its own cuts. And with what shares kept, and with what
 * the whole itself kept then, the whole is what it is alone. */
static void test_shares_make_the_whole(void **state) {
    (void)state;
    test_random random = {2604};
    int64_t found = 0, known = 0;
    for (long i = 0; i < test_cases(12, 200); i++) {
        enum { SHARES = 3 };
        example_space x;
        pc_run_spec runs[SPACE_BASES_MAX];
        draw_space(&random, i % 3 == 0 ? 300 : 4000, i % 3 == 0, &x);
        pc_plan_kept *kept = open_kept(NULL, &x, runs);
        pc_plan_request request = draw_request(&random);
        if (request.objective_count > 1) request.top = 0; /* the first few of a front are no front's first few */
        pc_plan_answer whole = run_plan(&x.space, &request), share[SHARES];
        pc_plan_log sum = {.points = 0};
        request.keeper = pc_plan_kept_keeper(kept);
        request.shard_count = SHARES;
        for (request.shard = 1; request.shard <= SHARES; request.shard++) {
            share[request.shard - 1] = run_plan(&x.space, &request);
            add_counts(&share[request.shard - 1].log, &sum);
        }
        assert_int_equal(sum.points, whole.log.points);
        assert_int_equal(sum.broken_rule, whole.log.broken_rule);
        assert_int_equal(sum.over_memory, whole.log.over_memory);
        for (int64_t k = 0; k < whole.count; k++) assert_true(has_plan(share, SHARES, whole.found[k].number));
        for (int s = 0; s < SHARES; s++) pc_plan_answer_free(&share[s]);
        request.shard = request.shard_count = 0;
        for (int time = 0; time < 2; time++) {
            int64_t before = pc_plan_kept_count(kept), asked = pc_plan_kept_found(kept);
            pc_plan_answer again = run_plan(&x.space, &request);
            check_same(&whole, &again);
            pc_plan_answer_free(&again);
            if (time == 1) assert_int_equal(pc_plan_kept_count(kept), before);
            known += pc_plan_kept_found(kept) - asked;
        }
        found += whole.count;
        pc_plan_answer_free(&whole);
        pc_plan_kept_close(kept, false);
    }
    assert_true(test_saw(found, 1) && test_saw(known, 1));
}

/* ---- shares put together ---- */

enum { SHARES_MAX = 6 };

/* As sweep/plan_shares.c has them done. */
static void run_shares(const pc_plan_space *space, pc_plan_request request, int count, pc_plan_answer *shares) {
    if (request.objective_count > 1) request.top = 0;
    request.shard_count = count;
    for (int i = 0; i < count; i++) {
        request.shard = i + 1;
        shares[i] = run_plan(space, &request);
    }
}

/* What a file does not say of a plan follows from the rest. */
static void forget_choices(pc_plan_answer *shares, int count) {
    for (int i = 0; i < count; i++)
        for (int64_t k = 0; k < shares[i].count; k++) {
            shares[i].found[k].choice = (pc_plan_choice){.base = 99};
            shares[i].found[k].cost = NAN;
        }
}

/* A point that the share does not have: another share's best, what is below zero, what is beyond all numbers. */
static void check_refused(const pc_plan_space *space, const pc_plan_request *request, pc_plan_answer *shares,
                          int count) {
    pc_plan_answer answer;
    pc_error error;
    for (int i = 0; i < count; i++) {
        if (shares[i].count == 0) continue;
        int64_t right = shares[i].found[0].number, wrong[] = {-1, INT64_MAX, INT64_MIN, right};
        const pc_plan_answer *other = &shares[(i + 1) % count];
        if (count > 1 && other->count > 0) wrong[3] = other->found[0].number;
        for (int k = 0; k < (wrong[3] == right ? 3 : 4); k++) {
            shares[i].found[0].number = wrong[k];
            assert_int_equal(pc_plan_combine(space, request, shares, count, &answer, &error), PC_ERROR_INPUT);
            assert_non_null(strstr(error.message, "is none of it; expected a point of its cuts"));
        }
        shares[i].found[0].number = right;
        double iteration_s = shares[i].found[0].iteration_s;
        shares[i].found[0].iteration_s = NAN;
        assert_int_equal(pc_plan_combine(space, request, shares, count, &answer, &error), PC_ERROR_INPUT);
        shares[i].found[0].iteration_s = iteration_s;
        return;
    }
}

/* Any number of shares, put together, have the plans of the whole to the last bit; and the counts that no share's own
 * best plans decide. If all points are simulated, they have all counts. */
static void test_shares_are_put_together(void **state) {
    (void)state;
    test_random random = {2607};
    int64_t found = 0;
    for (long i = 0; i < test_cases(12, 200); i++) {
        example_space x;
        pc_plan_answer shares[SHARES_MAX], joined;
        pc_error error = {0};
        draw_space(&random, i % 3 == 0 ? 300 : 3000, i % 3 == 0, &x);
        pc_plan_request request = draw_request(&random);
        request.exhaustive = i % 4 == 1;
        if (i % 5 == 2) request.most_iteration_s = 0.05;
        int count = (int)test_between(&random, 1, SHARES_MAX);
        pc_plan_answer whole = run_plan(&x.space, &request);
        run_shares(&x.space, request, count, shares);
        forget_choices(shares, count);
        if (pc_plan_combine(&x.space, &request, shares, count, &joined, &error)) fail_msg("%s", error.message);
        pc_plan_log *sums = &joined.log, *counts = &whole.log;
        assert_int_equal(sums->too_slow + sums->simulated, counts->too_slow + counts->simulated);
        if (!request.exhaustive) {
            sums->too_slow = counts->too_slow;
            sums->simulated = counts->simulated;
            sums->simulated_over_memory = counts->simulated_over_memory;
            sums->simulated_infeasible = counts->simulated_infeasible;
            sums->worst_bound = counts->worst_bound;
        }
        if (isnan(counts->mean_bound) == isnan(sums->mean_bound))
            assert_true(isnan(counts->mean_bound) || !request.exhaustive ||
                        fabs(sums->mean_bound - counts->mean_bound) < 1e-12);
        sums->mean_bound = counts->mean_bound;
        for (int64_t k = 0; k < joined.count && !request.exhaustive; k++)
            joined.found[k].bound_s = whole.found[k].bound_s; /* a closer one, if its turn came late */
        check_same(&whole, &joined);
        check_refused(&x.space, &request, shares, count);
        found += whole.count;
        pc_plan_answer_free(&joined);
        pc_plan_answer_free(&whole);
        for (int s = 0; s < count; s++) pc_plan_answer_free(&shares[s]);
    }
    assert_true(test_saw(found, 1));
}

typedef struct stopper {
    atomic_int left;
} stopper;

static bool is_over(void *self) {
    stopper *x = self;
    return --x->left < 0;
}

/* Stopped again and again, further each time. What it had simulated then is not simulated again. */
static void test_stopped_and_gone_on_with(void **state) {
    const folder *f = *state;
    test_random random = {2605};
    for (long i = 0; i < test_cases(3, 30); i++) {
        example_space x;
        pc_run_spec runs[SPACE_BASES_MAX];
        draw_space(&random, 4000, i % 2, &x);
        pc_plan_request request = {.objective_count = 1, .top = 4, .threads = 2};
        pc_plan_answer alone = run_plan(&x.space, &request), again = {.count = 0};
        pc_code code = PC_ERROR_STOPPED;
        for (int most = 40; code; most *= 2) {
            stopper stop = {most};
            pc_plan_kept *kept = open_kept(f->file, &x, runs);
            request.keeper = pc_plan_kept_keeper(kept);
            request.progress = (pc_plan_progress){.is_stopped = is_over, .self = &stop};
            int64_t before = pc_plan_kept_count(kept);
            code = pc_plan_run(&x.space, &request, &again, NULL);
            assert_true(code == PC_OK || code == PC_ERROR_STOPPED);
            assert_true(pc_plan_kept_count(kept) >= before);
            pc_plan_kept_close(kept, !code);
        }
        check_same(&alone, &again);
        assert_int_not_equal(access(f->file, F_OK), 0);
        pc_plan_answer_free(&alone);
        pc_plan_answer_free(&again);
    }
}

static void write_bytes(const char *path, const char *bytes, size_t size) {
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

/* A file of some facts: without its last byte it lacks the last one; with another first byte, or of something else, it
 * is refused and stays as it is. */
static void test_damaged_files(void **state) {
    const folder *f = *state;
    static char bytes[1 << 20];
    test_random random = {2606};
    example_space x;
    pc_run_spec runs[SPACE_BASES_MAX];
    pc_error error = {0};
    const char *path = f->file;
    int64_t count = 0;
    while (count < 3) {
        draw_space(&random, 4000, false, &x);
        pc_plan_kept *kept = open_kept(path, &x, runs);
        pc_plan_request request = {.objective_count = 1, .top = 4, .threads = 1, .keeper = pc_plan_kept_keeper(kept)};
        pc_plan_answer answer = run_plan(&x.space, &request);
        count = pc_plan_kept_count(kept);
        pc_plan_answer_free(&answer);
        pc_plan_kept_close(kept, false);
    }
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    size_t size = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    assert_true(size > 100 && size < sizeof bytes);
    write_bytes(path, bytes, size - 1);
    pc_plan_kept *kept = open_kept(path, &x, runs);
    assert_int_equal(pc_plan_kept_count(kept), count - 1);
    pc_plan_kept_close(kept, false);
    bytes[0] ^= 1;
    write_bytes(path, bytes, size);
    assert_int_equal(pc_plan_kept_open(&path, 1, false, &kept, &error), PC_ERROR_INPUT);
    assert_non_null(strstr(error.message, "is no journal of pipecast"));
    assert_int_equal(pc_plan_kept_open(&path, 1, true, &kept, &error), PC_ERROR_INPUT); /* it may be anything */
    const char *both[] = {f->path, path};
    assert_int_equal(pc_plan_kept_open(both, 2, false, &kept, &error), PC_ERROR_INPUT);
}

int main(void) {
    static char name[] = "plans.kept";
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ranks_do_not_show),
        cmocka_unit_test(test_a_rank_stops_all),
        cmocka_unit_test(test_shares_make_the_whole),
        cmocka_unit_test(test_shares_are_put_together),
        cmocka_unit_test_prestate_setup_teardown(test_stopped_and_gone_on_with, make_folder, remove_folder, name),
        cmocka_unit_test_prestate_setup_teardown(test_damaged_files, make_folder, remove_folder, name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
