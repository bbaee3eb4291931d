/* Ranks: what they say to each other, with threads for ranks and a module that keeps messages in queues. The launcher's
 * side of it is tests/golden/test_ranks.py. */
#include "tests/batch_example.h"

#include "engine/alloc.h"
#include "sweep/team_private.h"

#include <pthread.h>
#include <stdbool.h>
#include <time.h>

/* ---- a module of our own ---- */

enum { RANKS_MAX = 8, MESSAGES_MAX = 4096 };

typedef struct message {
    int64_t from, to, count;
    pc_team_kind kind;
    bool is_taken;
    int64_t numbers[PC_TEAM_MESSAGE_MAX];
} message;

typedef struct network {
    pthread_mutex_t lock;
    message *messages;
    int count;
    atomic_int ended;
} network;

/* What the module's functions get: one end of the network. */
typedef struct end_point {
    network *all;
    int64_t number;
} end_point;

static void fake_send(void *self, int64_t to, pc_team_kind kind, const int64_t *numbers, int64_t count) {
    end_point *at = self;
    pthread_mutex_lock(&at->all->lock);
    if (at->all->count == MESSAGES_MAX) abort();
    message *m = &at->all->messages[at->all->count++];
    *m = (message){.from = at->number, .to = to, .count = count, .kind = kind};
    memcpy(m->numbers, numbers, (size_t)count * sizeof *numbers);
    pthread_mutex_unlock(&at->all->lock);
}

static int64_t fake_receive(void *self, pc_team_kind kind, int64_t *from, int64_t *numbers) {
    end_point *at = self;
    int64_t count = -1;
    pthread_mutex_lock(&at->all->lock);
    for (int i = 0; i < at->all->count && count < 0; i++) {
        message *m = &at->all->messages[i];
        if (m->is_taken || m->to != at->number || m->kind != kind) continue;
        m->is_taken = true;
        *from = m->from;
        count = m->count;
        memcpy(numbers, m->numbers, (size_t)count * sizeof *numbers);
    }
    pthread_mutex_unlock(&at->all->lock);
    return count;
}

static void fake_end(void *self) {
    end_point *at = self;
    at->all->ended++;
}

static const pc_team_module fake = {
    .layout = PC_TEAM_MODULE_LAYOUT, .name = "fake", .send = fake_send, .receive = fake_receive, .end = fake_end};

/* ---- ranks as threads ---- */

/* What a rank does, and what became of it. */
typedef struct member {
    end_point at;
    int64_t ranks, runs;
    int jobs;
    bool leaves_first; /* against the rules */
    bool fails;        /* when all runs are done, `late_us` later */
    int late_us;
    example_runs work;
    pc_code ran, agreed;
    pc_error error;
} member;

static void *be_a_rank(void *context) {
    member *m = context;
    pc_team *x = pc_team_over(&fake, &m->at, m->at.number, m->ranks);
    if (!x) abort();
    pc_error error = {0};
    if (!m->leaves_first) {
        m->ran = pc_team_run(x, m->runs, m->jobs, example_source, example_sink, &m->work, &error);
        usleep((useconds_t)m->late_us);
        if (m->fails)
            m->ran = pc_error_refuse(&error, "a.yaml", 3, "tp", "rank %d fails; expected none to", (int)m->at.number);
        m->agreed = pc_team_agree(x, m->ran, &error);
        m->error = error;
    }
    pc_team_close(x);
    return NULL;
}

/* All of them, till the last has left. */
static void be_ranks(member *members, int count, int64_t runs) {
    network all = {.messages = calloc(MESSAGES_MAX, sizeof(message))};
    pthread_t threads[RANKS_MAX];
    assert_non_null(all.messages);
    pthread_mutex_init(&all.lock, NULL);
    for (int i = 0; i < count; i++) {
        members[i].at = (end_point){&all, i};
        members[i].ranks = count;
        members[i].runs = runs;
        assert_int_equal(pthread_create(&threads[i], NULL, be_a_rank, &members[i]), 0);
    }
    for (int i = 0; i < count; i++) pthread_join(threads[i], NULL);
    assert_int_equal(all.ended, count);
    pthread_mutex_destroy(&all.lock);
    free(all.messages);
}

static void start_members(member *members) {
    for (int i = 0; i < RANKS_MAX; i++) members[i] = (member){.jobs = 1 + i % 3, .work = example_runs_default()};
}

/* ---- tests ---- */

/* Each of 0 .. runs-1 was made once in all: as many as there are, and their indices' sum. */
static void test_every_run_once(void **state) {
    (void)state;
    static const int64_t runs[] = {0, 1, 5, 2000};
    for (int count = 1; count <= RANKS_MAX; count *= 2)
        for (size_t r = 0; r < sizeof runs / sizeof *runs; r++) {
            member members[RANKS_MAX];
            int64_t made = 0, sum = 0;
            start_members(members);
            be_ranks(members, count, runs[r]);
            for (int i = 0; i < count; i++) {
                assert_int_equal(members[i].agreed, PC_OK);
                assert_int_equal(members[i].work.wrong, 0);
                assert_int_equal(members[i].work.taken, members[i].work.made);
                made += members[i].work.made;
                sum += members[i].work.sum;
            }
            assert_int_equal(made, runs[r]);
            assert_int_equal(sum, runs[r] * (runs[r] - 1) / 2);
        }
}

/* Of four ranks one takes 5 ms a run and the others 1 ms: in the time in which it does one, they do five each. All end
 * together if it does a sixteenth; handed out in equal shares it would do a fourth, 100 of 400. */
static void test_fast_ranks_get_more(void **state) {
    (void)state;
    member members[RANKS_MAX];
    start_members(members);
    for (int i = 0; i < 4; i++) {
        members[i].jobs = 1;
        members[i].work.slow = 1;
        members[i].work.slow_us = i == 2 ? 5000 : 1000;
    }
    be_ranks(members, 4, 400);
    assert_true(members[2].work.taken >= 10);
    assert_true(members[2].work.taken <= 50);
}

/* An error in one rank is every rank's, and the work ends there. */
static void test_an_error_is_everybodys(void **state) {
    (void)state;
    for (int bad = 0; bad < 3; bad++) {
        member members[RANKS_MAX];
        int64_t made = 0;
        start_members(members);
        for (int i = 0; i < 3; i++) members[i].work.slow = 1, members[i].work.slow_us = 300;
        members[bad].work.bad_run = 0;
        be_ranks(members, 3, 20000);
        for (int i = 0; i < 3; i++) {
            assert_int_equal(members[i].ran, i == bad ? PC_ERROR_IO : PC_OK);
            assert_int_equal(members[i].agreed, PC_ERROR_IO);
            assert_int_equal(strncmp(members[i].error.message, "run ", 4), 0);
            assert_string_equal(members[i].error.message, members[bad].error.message);
            made += members[i].work.made;
        }
        assert_true(made < 10000);
    }
}

/* Of several errors that of the lowest rank counts, whoever comes first. */
static void test_the_lowest_rank_speaks(void **state) {
    (void)state;
    for (int lowest = 0; lowest < 4; lowest++) {
        member members[RANKS_MAX];
        char expected[64];
        start_members(members);
        for (int i = lowest; i < 5; i++) members[i].fails = true, members[i].late_us = 2000 * (5 - i);
        be_ranks(members, 5, 0);
        snprintf(expected, sizeof expected, "a.yaml:3: tp: rank %d fails; expected none to", lowest);
        for (int i = 0; i < 5; i++) {
            assert_int_equal(members[i].agreed, PC_ERROR_INPUT);
            assert_string_equal(members[i].error.message, expected);
            assert_int_equal(members[i].error.line, 3); /* with its parts */
            assert_string_equal(pc_error_part_of(&members[i].error, PC_ERROR_PART_KEY), "tp");
            assert_string_equal(pc_error_part_of(&members[i].error, PC_ERROR_PART_EXPECTED), "none to");
        }
    }
}

/* A rank that leaves without a word, as none should, is told of; nobody waits for it. */
static void test_a_rank_that_leaves(void **state) {
    (void)state;
    for (int bad = 0; bad < 3; bad++) {
        member members[RANKS_MAX];
        char expected[64];
        start_members(members);
        members[bad].leaves_first = true;
        be_ranks(members, 3, 300);
        snprintf(expected, sizeof expected, "rank %d ended before the others", bad);
        for (int i = 0; i < 3; i++) {
            if (i == bad) continue;
            assert_int_equal(members[i].agreed, PC_ERROR_IO);
            assert_string_equal(members[i].error.message, expected);
        }
    }
}

/* ---- bytes of all for all ---- */

/* A rank with bytes of its own, shared `times` times; it comes with an error if `fails`, and does not come if it leaves
 * first. */
typedef struct sharer {
    end_point at;
    int64_t ranks;
    size_t size;
    int times;
    bool fails, leaves_first;
    pc_code code;
    pc_error error;
    char *all; /* of the last time, with its size */
    size_t all_size;
} sharer;

/* The i-th byte of a rank's at one time: none of the others has the same ones. */
static char byte_of(int64_t rank, int time, size_t i) {
    return (char)(31 * (size_t)rank + 7 * (size_t)time + i + i / 251);
}

static void *share_bytes(void *context) {
    sharer *s = context;
    pc_team *x = pc_team_over(&fake, &s->at, s->at.number, s->ranks);
    char *own = malloc(s->size + 1);
    if (!x || !own) abort();
    for (int time = 0; time < s->times && !s->leaves_first && !s->code; time++) {
        void *all;
        for (size_t i = 0; i < s->size; i++) own[i] = byte_of(s->at.number, time, i);
        pc_code code = PC_OK;
        if (s->fails) code = pc_error_refuse(&s->error, "a.yaml", 3, "tp", "rank %d fails", (int)s->at.number);
        pc_free(s->all);
        s->code = pc_team_share(x, code, own, s->size, &all, &s->all_size, &s->error);
        s->all = all;
    }
    free(own);
    pc_team_close(x);
    return NULL;
}

static void run_sharers(sharer *ranks, int count, int times) {
    network all = {.messages = calloc(MESSAGES_MAX, sizeof(message))};
    pthread_t threads[RANKS_MAX];
    assert_non_null(all.messages);
    pthread_mutex_init(&all.lock, NULL);
    for (int i = 0; i < count; i++) {
        ranks[i].at = (end_point){&all, i};
        ranks[i].ranks = count;
        ranks[i].times = times;
        assert_int_equal(pthread_create(&threads[i], NULL, share_bytes, &ranks[i]), 0);
    }
    for (int i = 0; i < count; i++) pthread_join(threads[i], NULL);
    pthread_mutex_destroy(&all.lock);
    free(all.messages);
}

/* Every rank has those of rank 0, then those of rank 1 and so on, and as many as these are together. */
static void check_all_bytes(const sharer *ranks, int count, int time) {
    size_t total = 0;
    for (int i = 0; i < count; i++) total += ranks[i].size;
    for (int i = 0; i < count; i++) {
        assert_int_equal(ranks[i].code, PC_OK);
        assert_int_equal(ranks[i].all_size, total);
        const char *at = ranks[i].all;
        for (int from = 0; from < count; from++)
            for (size_t k = 0; k < ranks[from].size; k++)
                if (*at++ != byte_of(from, time, k)) fail_msg("rank %d: byte %zu of rank %d", i, k, from);
    }
}

static void free_sharers(sharer *ranks, int count) {
    for (int i = 0; i < count; i++) pc_free(ranks[i].all);
}

/* Of sizes that fill a message to the last byte, one more and one less, several messages, and none; twice, so that
 * nothing of the first time is left over for the second. */
static void test_bytes_of_all(void **state) {
    (void)state;
    enum { PIECE = 8 * PC_TEAM_MESSAGE_MAX };
    static const size_t sizes[] = {PIECE, 0, PIECE + 1, PIECE - 1, 1, 3 * PIECE, 7, 20 * PIECE + 5};
    for (int count = 1; count <= RANKS_MAX; count++)
        for (int first = 0; first < RANKS_MAX; first += 3) {
            sharer ranks[RANKS_MAX] = {{.size = 0}};
            for (int i = 0; i < count; i++) ranks[i].size = sizes[(first + i) % RANKS_MAX];
            run_sharers(ranks, count, 2);
            check_all_bytes(ranks, count, 1);
            free_sharers(ranks, count);
        }
}

/* All leave with the error of the lowest rank that has one, and with no bytes. */
static void test_nobody_shares_after_an_error(void **state) {
    (void)state;
    for (int lowest = 0; lowest < 4; lowest++) {
        sharer ranks[RANKS_MAX] = {{.size = 0}};
        char expected[64];
        for (int i = 0; i < 4; i++) ranks[i].size = 1000;
        for (int i = lowest; i < 4; i += 2) ranks[i].fails = true;
        run_sharers(ranks, 4, 1);
        snprintf(expected, sizeof expected, "a.yaml:3: tp: rank %d fails", lowest);
        for (int i = 0; i < 4; i++) {
            assert_int_equal(ranks[i].code, PC_ERROR_INPUT);
            assert_string_equal(ranks[i].error.message, expected);
            assert_null(ranks[i].all);
        }
    }
}

/* Who leaves without a word is told of, and nobody waits for him. */
static void test_a_rank_that_leaves_shares_nothing(void **state) {
    (void)state;
    for (int bad = 0; bad < 3; bad++) {
        sharer ranks[RANKS_MAX] = {{.size = 0}};
        char expected[64];
        for (int i = 0; i < 3; i++) ranks[i].size = 1000;
        ranks[bad].leaves_first = true;
        run_sharers(ranks, 3, 1);
        snprintf(expected, sizeof expected, "rank %d ended before the others", bad);
        for (int i = 0; i < 3; i++) {
            if (i == bad) continue;
            assert_int_equal(ranks[i].code, PC_ERROR_IO);
            assert_string_equal(ranks[i].error.message, expected);
            assert_null(ranks[i].all);
        }
    }
}

/* One alone has a copy of its own; with a code nothing. */
static void test_bytes_of_one(void **state) {
    (void)state;
    void *all;
    size_t size;
    assert_int_equal(pc_team_share(NULL, PC_OK, "abc", 3, &all, &size, NULL), PC_OK);
    assert_int_equal(size, 3);
    assert_memory_equal(all, "abc", 3);
    pc_free(all);
    assert_int_equal(pc_team_share(NULL, PC_OK, NULL, 0, &all, &size, NULL), PC_OK);
    assert_int_equal(size, 0);
    pc_free(all);
    assert_int_equal(pc_team_share(NULL, PC_ERROR_IO, "abc", 3, &all, &size, NULL), PC_ERROR_IO);
    assert_null(all);
}

/* A quarter of the fair share; no more than the most; a run for each idle thread where the share has it; the last. */
static void test_pieces(void **state) {
    (void)state;
    assert_int_equal(pc_team_piece(1600, 2, 8, 0, 1000), 100); /* 1600 * 2/8 / 4 */
    assert_int_equal(pc_team_piece(1600, 2, 8, 0, 30), 30);
    assert_int_equal(pc_team_piece(1600, 2, 8, 64, 30), 64);
    assert_int_equal(pc_team_piece(8, 2, 8, 2, 30), 2); /* the share */
    assert_int_equal(pc_team_piece(4, 2, 8, 2, 30), 1);
    assert_int_equal(pc_team_piece(1, 2, 8, 2, 30), 1);
    assert_int_equal(pc_team_piece(1, 1000, 1000, 500, 1), 1);
    assert_int_equal(pc_team_piece(INT64_MAX / 2, 1, 1, 0, 5), 5);
}

/* The process itself: no launcher, no MPI, at least one core; and kept alone where a launcher started it. */
static void test_alone(void **state) {
    (void)state;
    static const char *const variables[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS", "PIPECAST_MPI"};
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) unsetenv(variables[i]);
    for (int i = 0; i < 2; i++) {
        pc_team *x;
        example_runs work = example_runs_default();
        assert_int_equal(pc_team_open(&x, NULL), PC_OK);
        assert_int_equal(pc_team_rank(x), 0);
        assert_int_equal(pc_team_size(x), 1);
        assert_in_range(pc_team_default_jobs(x), 1, sysconf(_SC_NPROCESSORS_ONLN));
        assert_int_equal(pc_team_run(x, 100, 2, example_source, example_sink, &work, NULL), PC_OK);
        assert_int_equal(work.taken, 100);
        assert_int_equal(pc_team_agree(x, PC_ERROR_IO, NULL), PC_ERROR_IO);
        pc_team_close(x);
        setenv("OMPI_COMM_WORLD_SIZE", "4", 1);
        setenv("OMPI_COMM_WORLD_RANK", "3", 1);
        setenv("PIPECAST_MPI", "off", 1);
    }
    pc_team_close(NULL);
}

/* Opens with this environment, and expects what stands in the message. */
static void assert_refused(const char *expected, int number) {
    pc_error error = {0};
    pc_team *x = NULL;
    assert_int_equal(pc_team_open(&x, &error), PC_ERROR_INPUT);
    if (!strstr(error.message, expected)) fail_msg("'%s' in '%s'", expected, error.message);
    assert_non_null(strstr(error.message, "--shard I/4"));
    assert_non_null(strstr(error.message, "started as one of 4 processes: "));
    assert_int_equal(pc_team_rank(x), number);
    assert_int_equal(pc_team_size(x), 4);
    pc_team_close(x);
}

static void test_no_way_to_the_others(void **state) {
    (void)state;
    setenv("OMPI_COMM_WORLD_SIZE", "4", 1);
    setenv("OMPI_COMM_WORLD_RANK", "3", 1);
    setenv("PIPECAST_MPI", "/nowhere/module.so", 1);
    assert_refused("/nowhere/module.so", 3);
    setenv("PIPECAST_MPI", "libm.so.6", 1); /* some library */
    assert_refused("libm.so.6 belongs to another pipecast", 3);
    unsetenv("OMPI_COMM_WORLD_SIZE");
    unsetenv("OMPI_COMM_WORLD_RANK");
    unsetenv("PMIX_RANK");
    unsetenv("PMI_RANK");
    setenv("SLURM_PROCID", "0", 1);
    setenv("SLURM_STEP_NUM_TASKS", "4", 1); /* srun --mpi=none */
    assert_refused("srun gave them no way to each other; expected srun --mpi=pmix", 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_run_once),
        cmocka_unit_test(test_fast_ranks_get_more),
        cmocka_unit_test(test_an_error_is_everybodys),
        cmocka_unit_test(test_the_lowest_rank_speaks),
        cmocka_unit_test(test_a_rank_that_leaves),
        cmocka_unit_test(test_bytes_of_all),
        cmocka_unit_test(test_nobody_shares_after_an_error),
        cmocka_unit_test(test_a_rank_that_leaves_shares_nothing),
        cmocka_unit_test(test_bytes_of_one),
        cmocka_unit_test(test_pieces),
        cmocka_unit_test(test_alone),
        cmocka_unit_test(test_no_way_to_the_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
