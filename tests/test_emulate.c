/* The emulated device: that kernels run on it as on a GPU, and that what a GPU would punish is seen. */
#include "tests/support.h"

#include "engine/alloc.h"
#include "kernels/dtype.h"
#include "kernels/fill.h"
#include "tests/emulate_kernels.h"
#include "tests/emulated/emulated.h"

#include <math.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static int set_up(void **state) {
    pc_device *device;
    if (pc_device_open(0, &device, NULL)) return 1;
    *state = device;
    return 0;
}

static int tear_down(void **state) {
    pc_device *device = *state;
    int64_t left = pc_emulated_allocations(device);
    pc_device_close(device);
    return left != 0;
}

/* `count` words on the device, all `value`. */
static void *make_words(pc_device *device, int64_t count, int value) {
    void *words;
    assert_int_equal(pc_device_allocate(device, 4 * count, &words, NULL), PC_OK);
    for (int64_t i = 0; i < count; i++) ((int *)words)[i] = value;
    return words;
}

/* ---- kernels ---- */

static void test_indices(void **state) {
    int *seen = make_words(*state, INDEX_THREADS, 0);
    emulate_indices(*state, seen);
    for (int i = 0; i < INDEX_THREADS; i++) {
        int thread = i % 24; /* of 4 x 2 x 3 */
        assert_int_equal(seen[i], 1 + thread / 8 * 1000 + thread / 4 % 2 * 100 + thread % 4 * 10);
    }
    pc_device_free(*state, seen);
}

static void test_shuffles(void **state) {
    int *got = make_words(*state, 8 * 32, -1);
    emulate_shuffles(*state, got);
    for (int lane = 0; lane < 32; lane++) {
        assert_int_equal(got[lane], 100 + (lane ^ 5));
        assert_int_equal(got[32 + lane], 100 + (lane ^ 16));
        assert_int_equal(got[64 + lane], 100 + (lane + 3 < 32 ? lane + 3 : lane));
        assert_int_equal(got[96 + lane], 100 + (lane >= 2 ? lane - 2 : lane));
        assert_int_equal(got[128 + lane], 107);
        assert_int_equal(got[160 + lane], 100 + lane / 8 * 8 + 1);
        assert_int_equal(got[192 + lane], 100 + (lane % 4 < 3 ? lane + 1 : lane));
        /* of groups of 4: those before are reached, those behind are not */
        assert_int_equal(got[224 + lane], 100 + (lane & 4 ? lane - 4 : lane));
    }
    pc_device_free(*state, got);
}

static void test_barrier(void **state) {
    for (int threads = 1; threads <= 1024; threads += threads < 70 ? 23 : 477) {
        float *from = make_words(*state, threads, 0), *to = make_words(*state, threads, 0);
        for (int i = 0; i < threads; i++) from[i] = (float)i;
        emulate_reverse(*state, from, to, threads);
        for (int i = 0; i < threads; i++) assert_true(to[i] == (float)(threads - 1 - i));
        pc_device_free(*state, from);
        pc_device_free(*state, to);
    }
}

static void test_poison(void **state) {
    int *poisoned = make_words(*state, 5, 0);
    emulate_poison(*state, poisoned, 5, 1000);
    for (int i = 0; i < 5; i++) assert_int_equal(poisoned[i], 1);
    pc_device_free(*state, poisoned);
}

/* A barrier waits for those only that have not ended. */
static void test_ended(void **state) {
    int *count = make_words(*state, 64, -1);
    for (int ended = 0; ended < 64; ended += 9) {
        emulate_ended(*state, count, ended);
        for (int i = ended; i < 64; i++) assert_int_equal(count[i], 64 - ended);
    }
    pc_device_free(*state, count);
}

/* Whole numbers, so that sums are exact in any order. */
static void test_sums(void **state) {
    test_random random = {1};
    for (int threads = 32; threads <= 1024; threads *= 2) {
        float *value = make_words(*state, threads, 0), *got = make_words(*state, 4 * threads, 0), sum = 0, most = -1e9f;
        for (int i = 0; i < threads; i++) {
            value[i] = (float)test_between(&random, -1000, -1);
            sum += value[i];
            most = value[i] > most ? value[i] : most;
        }
        emulate_sums(*state, value, got, threads);
        for (int i = 0; i < threads; i++) {
            assert_true(got[i] == sum && got[threads + i] == most);
            assert_true(got[2 * threads + i] == sum && got[3 * threads + i] == -2 * sum);
        }
        pc_device_free(*state, value);
        pc_device_free(*state, got);
    }
}

/* Of `threads` lanes: the others have no vote, and what they would give is 0xff. */
static void check_votes(pc_device *device, int threads) {
    unsigned *got = make_words(device, 4 * 32, 0), thirds = 0;
    emulate_votes(device, got, threads);
    for (int i = 0; i < threads; i += 3) thirds |= 1u << i;
    for (int i = 0; i < threads; i++) {
        assert_int_equal(got[i], thirds);
        assert_int_equal(got[32 + i], threads > 5);
        assert_int_equal(got[64 + i], 0);
        assert_int_equal(got[96 + i], threads == 32 ? 31 : 0xff);
    }
    pc_device_free(device, got);
}

static void test_votes(void **state) {
    check_votes(*state, 32);
    check_votes(*state, 20);
    check_votes(*state, 4);
}

/* Whoever relies on the order of threads or blocks is found out, sooner or later. */
static void test_orders(void **state) {
    int *winner = make_words(*state, 2, -1);
    bool seen[2][2] = {{false}};
    for (int i = 0; i < 32; i++) {
        emulate_race(*state, winner);
        assert_true((winner[0] == 0 || winner[0] == 63) && (winner[1] == 0 || winner[1] == 2));
        seen[winner[0] == 0][winner[1] == 0] = true;
    }
    assert_true(seen[0][0] && seen[0][1] && seen[1][0] && seen[1][1]);
    pc_device_free(*state, winner);
}

static void test_refused(void **state) {
    pc_error error = {0};
    assert_int_equal(emulate_launch(*state, 1, 1024, 163 << 10, &error), PC_OK);
    assert_int_equal(emulate_launch(*state, 1, 1025, 0, &error), PC_ERROR_IO);
    assert_string_equal(error.message, "nothing: invalid block; expected 1 to 1024 threads");
    assert_int_equal(emulate_launch(*state, 1, 0, 0, NULL), PC_ERROR_IO);
    assert_int_equal(emulate_launch(*state, 0, 32, 0, NULL), PC_ERROR_IO);
    assert_int_equal(emulate_launch(*state, 1, 32, (163 << 10) + 1, NULL), PC_ERROR_IO);
    assert_int_equal(emulate_launch(*state, 1, 32, 0, NULL), PC_OK); /* told once */
    assert_int_equal(pc_device_wait(*state, NULL), PC_OK);
}

/* ---- faults ---- */

/* What a process says that ends in the fault. */
static void run_wrong(pc_device *device, emulate_fault fault, char *words, size_t size) {
    int ends[2], status;
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], 2);
        close(ends[0]);
        signal(SIGABRT, SIG_DFL); /* cmocka's */
        signal(SIGSEGV, SIG_DFL);
        emulate_wrong(device, fault);
        _exit(0);
    }
    close(ends[1]);
    size_t have = 0;
    for (ssize_t got; have < size - 1 && (got = read(ends[0], words + have, size - 1 - have)) > 0;) have += (size_t)got;
    words[have] = 0;
    close(ends[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) fail_msg("fault %d went unseen", (int)fault);
}

static void check_fault(pc_device *device, emulate_fault fault, const char *kernel, const char *expected) {
    char words[4096];
    run_wrong(device, fault, words, sizeof words);
    if (!strstr(words, kernel) || !strstr(words, expected)) fail_msg("got %s; expected %s", words, expected);
}

static void test_faults(void **state) {
    check_fault(*state, BARRIER_IN_A_BRANCH, "kernel barrier_in_a_branch, block (0, 0, 0)",
                "a barrier that not all live threads reach");
    check_fault(*state, BARRIER_IN_A_BRANCH, "thread 0 (warp 0, lane 0) waits at __syncthreads", "emulate_kernels.cc");
    check_fault(*state, TWO_BARRIERS, "two_barriers", "different barriers");
    check_fault(*state, SHUFFLE_IN_A_BRANCH, "shuffle_in_a_branch", "not all live threads reach");
    check_fault(*state, PART_OF_A_WARP, "part_of_a_warp", "a part of a warp");
#if defined(__SANITIZE_ADDRESS__)
    check_fault(*state, SHARED_OVERRUN, "AddressSanitizer", "use-after-poison");
#endif
    check_fault(*state, DEEP_STACK, "", "");
}

/* ---- the device ---- */

static void test_memory(void **state) {
    pc_device *device = *state;
    int64_t now, peak;
    void *first, *second, *third = NULL;
    pc_error error;
    pc_emulated_set_memory(device, 1000);
    assert_int_equal(pc_device_allocate(device, 300, &first, NULL), PC_OK);
    assert_int_equal(pc_device_allocate(device, 600, &second, NULL), PC_OK);
    assert_int_equal((uintptr_t)first % 256, 0);
    assert_int_equal(((unsigned char *)first)[299], 0xff); /* poisoned */
    assert_int_equal(pc_device_allocate(device, 101, &third, &error), PC_ERROR_NO_MEMORY);
    assert_string_equal(error.message, "emulated device: 101 bytes do not fit beside 900; expected at most 1000 bytes "
                                       "in all");
    assert_null(third);
    pc_device_free(device, first);
    assert_int_equal(pc_device_allocated(device, &now, &peak, NULL), PC_OK);
    assert_int_equal(now, 600);
    assert_int_equal(peak, 900);
    assert_int_equal(pc_device_memory_reset_peak(device, NULL), PC_OK);
    assert_int_equal(pc_device_allocated(device, &now, &peak, NULL), PC_OK);
    assert_int_equal(peak, 600);
    pc_device_free(device, second);
    pc_device_free(device, NULL);
}

/* Of every allocation that is refused. */
static void test_no_memory(void **state) {
    (void)state;
    for (long after = 0; after < 3; after++) {
        pc_device *device = NULL;
        pc_alloc_fail_after(after);
        pc_code code = pc_device_open(0, &device, NULL);
        if (after < 2) assert_int_equal(code, PC_ERROR_NO_MEMORY);
        void *address = NULL;
        if (!code) assert_int_equal(pc_device_allocate(device, 8, &address, NULL), PC_ERROR_NO_MEMORY);
        pc_alloc_fail_after(-1);
        pc_device_close(device);
    }
}

typedef struct job {
    pc_device *device;
    int runs;
    bool allocates;
} job;

static pc_code work(void *self, int repeat, pc_error *error) {
    job *j = self;
    void *address;
    assert_int_equal(repeat, j->runs++);
    if (j->allocates) return pc_device_allocate(j->device, 1, &address, error);
    pc_code code = emulate_launch(j->device, 1, 1, 0, error);
    return code ? code : emulate_launch(j->device, 1, 1, 0, error);
}

static double seven(void *self, int repeats) {
    *(int *)self += repeats;
    return 7;
}

static double squares(void *self, int number) {
    (void)self;
    return 5 + number * number;
}

/* The fake clock: a microsecond a launch, or what a test says. */
static void test_clock(void **state) {
    pc_device *device = *state;
    job two = {.device = device};
    double seconds = 0, marks[3];
    int told = 0;
    pc_error error;
    assert_int_equal(pc_device_time(device, work, &two, 5, true, &seconds, NULL), PC_OK);
    assert_int_equal(two.runs, 5);
    assert_true(fabs(seconds - 10e-6) < 1e-15);
    pc_emulated_set_clock(device, (pc_emulated_clock){.seconds = seven, .mark = squares, .self = &told});
    assert_int_equal(pc_device_time(device, work, &(job){.device = device}, 3, false, &seconds, NULL), PC_OK);
    assert_true(seconds == 7);
    assert_int_equal(told, 3);
    job allocates = {.device = device, .allocates = true};
    assert_int_equal(pc_device_time(device, work, &allocates, 3, true, &seconds, &error), PC_ERROR_IO);
    assert_non_null(strstr(error.message, "an allocation within timed work"));
    assert_int_equal(pc_device_marks(device, 3, NULL), PC_OK);
    for (int i = 0; i < 2; i++) assert_int_equal(pc_device_mark(device, i, NULL), PC_OK);
    assert_int_equal(pc_device_mark_times(device, 3, marks, NULL), PC_ERROR_INPUT); /* the last was never put */
    assert_int_equal(pc_device_mark(device, 2, NULL), PC_OK);
    assert_int_equal(pc_device_mark_times(device, 3, marks, NULL), PC_OK);
    assert_true(marks[0] == 0 && marks[1] == 1 && marks[2] == 4);
    assert_int_equal(pc_device_mark(device, 3, NULL), PC_ERROR_INPUT);
}

/* ---- numbers ---- */

/* Every 16-bit number there and back; floats as one rounding of the exact value, which pc_dtype_round does another
 * way. */
static void test_formats(void **state) {
    (void)state;
    test_random random = {3};
    for (uint32_t i = 0; i < 0x10000; i++) {
        float bf16 = pc_bf16_to_float((uint16_t)i), fp16 = pc_fp16_to_float((uint16_t)i);
        if (!isnan(bf16)) assert_int_equal(pc_bf16_from_float(bf16), i);
        if (!isnan(fp16)) assert_int_equal(pc_fp16_from_float(fp16), i);
        if (isnan(bf16)) assert_int_equal(pc_bf16_from_float(bf16), 0x7fff);
        if (isnan(fp16)) assert_int_equal(pc_fp16_from_float(fp16), 0x7fff);
    }
    for (int i = 0; i < 200000; i++) {
        float x = pc_float_of_bits((uint32_t)test_draw(&random));
        if (i % 2) x = ldexpf((float)test_between(&random, -8191, 8191), (int)test_between(&random, -28, 4)); /* ties */
        if (isnan(x)) continue;
        assert_true(pc_dtype_round(PC_BF16, (double)x) == (double)pc_bf16_to_float(pc_bf16_from_float(x)));
        assert_true(pc_dtype_round(PC_FP16, (double)x) == (double)pc_fp16_to_float(pc_fp16_from_float(x)));
        assert_true(pc_dtype_round(PC_FP32, (double)x) == (double)x);
    }
    assert_true(pc_fp16_to_float(0x7bff) == 65504 && pc_fp16_to_float(0x0001) == 0x1p-24f);
    assert_int_equal(pc_fp16_from_float(65519.99f), 0x7bff);
    assert_int_equal(pc_fp16_from_float(65520.0f), 0x7c00);
    assert_int_equal(pc_bf16_from_float(1.0f + 0x1p-8f), 0x3f80); /* a tie, to the even one */
    assert_int_equal(pc_bf16_from_float(1.0f + 0x3p-8f), 0x3f82);
    assert_true(pc_dtype_half_unit(PC_BF16, 1.5) == 0x1p-8 && pc_dtype_half_unit(PC_FP16, 0) == 0x1p-25);
    assert_true(pc_dtype_round(PC_INT32, 2.5) == 2 && pc_dtype_round(PC_UINT8, 300) == 255);
}

/* Once: a double between two floats that are a tie of bf16 would fall to the wrong side over a float. */
static void test_rounding_once(void **state) {
    (void)state;
    uint16_t got;
    pc_dtype_set(PC_BF16, &got, 0, 1 + 0x1p-8 + 0x1p-40);
    assert_int_equal(got, 0x3f81);
}

enum { FILLED = 20000 };

static void fill(pc_device *device, void *to, pc_dtype dtype, int64_t count, pc_fill kind, double scale,
                 uint64_t seed) {
    assert_int_equal(pc_device_fill(device, to, dtype, count, kind, scale, seed, NULL), PC_OK);
}

/* 20,000 numbers: the mean is within 5 standard errors, 5/sqrt(20000) = 0.036 standard deviations, the variance within
 * 5 sqrt(2/20000) = 5%; the fourth moment of a sum of eight uniform numbers is 3 - 1.2/8 = 2.85. */
static void test_fill_normal(void **state) {
    float *x = make_words(*state, FILLED, 0);
    double sum = 0, squares_sum = 0, fourth = 0;
    fill(*state, x, PC_FP32, FILLED, PC_FILL_NORMAL, 2, 5);
    for (int i = 0; i < FILLED; i++) {
        double z = (double)x[i] / 2;
        sum += z;
        squares_sum += z * z;
        fourth += z * z * z * z;
    }
    assert_true(fabs(sum / FILLED) < 0.036);
    assert_true(fabs(squares_sum / FILLED - 1) < 0.05);
    assert_true(fabs(fourth / FILLED - 2.85) < 0.25);
    pc_device_free(*state, x);
}

/* Element i depends on i and the seed alone, and rounds from the same number in every format. */
static void test_fill_place(void **state) {
    float *x = make_words(*state, 100, 0), *more = make_words(*state, FILLED, 0);
    uint16_t *half = make_words(*state, 100, 0);
    int same = 0;
    fill(*state, x, PC_FP32, 100, PC_FILL_UNIFORM, 3, 6);
    fill(*state, more, PC_FP32, FILLED, PC_FILL_UNIFORM, 3, 6);
    fill(*state, half, PC_FP16, 100, PC_FILL_UNIFORM, 3, 6);
    assert_memory_equal(x, more, 400);
    for (int i = 0; i < 100; i++) {
        assert_true(x[i] >= 0 && x[i] < 3);
        assert_int_equal(half[i], pc_fp16_from_float(x[i]));
    }
    fill(*state, x, PC_FP32, 100, PC_FILL_UNIFORM, 3, 7);
    for (int i = 0; i < 100; i++) same += x[i] == more[i];
    assert_int_equal(same, 0);
    pc_device_free(*state, x);
    pc_device_free(*state, more);
    pc_device_free(*state, half);
}

static void test_fill_whole(void **state) {
    int *x = make_words(*state, 1000, -1), seen[10] = {0};
    uint8_t *bytes = make_words(*state, 250, -1);
    fill(*state, x, PC_INT32, 1000, PC_FILL_INDEX, 10, 8);
    for (int i = 0; i < 1000; i++) {
        assert_in_range(x[i], 0, 9);
        seen[x[i]]++;
    }
    for (int i = 0; i < 10; i++) assert_in_range(seen[i], 50, 150);
    fill(*state, bytes, PC_UINT8, 1000, PC_FILL_INDEX, 2, 8);
    for (int i = 0; i < 1000; i++) assert_in_range(bytes[i], 0, 1);
    fill(*state, x, PC_INT32, 1, PC_FILL_POISON, 0, 0);
    assert_int_equal(x[0], INT32_MAX);
    fill(*state, x, PC_FP32, 1, PC_FILL_POISON, 0, 0);
    assert_true(isnan(pc_dtype_get(PC_FP32, x, 0)));
    fill(*state, x, PC_BF16, 1, PC_FILL_POISON, 0, 0);
    assert_true(isnan(pc_dtype_get(PC_BF16, x, 0)));
    fill(*state, x, PC_FP16, 1, PC_FILL_ONE, 0, 0);
    assert_true(pc_dtype_get(PC_FP16, x, 0) == 1);
    assert_int_equal(pc_device_fill(*state, x, PC_INT32, 1, PC_FILL_NORMAL, 1, 0, NULL), PC_ERROR_INPUT);
    assert_int_equal(pc_device_fill(*state, x, PC_BF16, 1, PC_FILL_INDEX, 5, 0, NULL), PC_ERROR_INPUT);
    assert_int_equal(pc_device_fill(*state, x, PC_UINT8, 1, PC_FILL_INDEX, 257, 0, NULL), PC_ERROR_INPUT);
    assert_int_equal(pc_device_fill(*state, x, PC_FP32, 1, PC_FILL_NORMAL, NAN, 0, NULL), PC_ERROR_INPUT);
    pc_device_free(*state, x);
    pc_device_free(*state, bytes);
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(test_indices),    TEST(test_shuffles),   TEST(test_barrier),       TEST(test_poison),
        TEST(test_ended),      TEST(test_sums),       TEST(test_votes),         TEST(test_orders),
        TEST(test_refused),    TEST(test_faults),     TEST(test_memory),        TEST(test_no_memory),
        TEST(test_clock),      TEST(test_formats),    TEST(test_rounding_once), TEST(test_fill_normal),
        TEST(test_fill_place), TEST(test_fill_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
