/* Schedules as text and as PyTorch's CSV, there and back; and files that are wrong. */
#include "tests/support.h"

#include "models/schedule/check.h"
#include "models/schedule/exchange.h"
#include "models/schedule/generate.h"
#include "tests/random_schedule.h"

#include <unistd.h>

static char path[128];

static int make_file(void **state) {
    (void)state;
    test_temporary(path, sizeof path, "pipecast-exchange");
    int file = mkstemp(path);
    return file < 0 ? -1 : close(file);
}

static int remove_file(void **state) {
    (void)state;
    return unlink(path);
}

static void write_file(const void *text, size_t size) {
    FILE *file = fopen(path, "wb");
    assert_int_equal(fwrite(text, 1, size, file), size);
    fclose(file);
}

static void expect_refused(const char *text, const char *words) {
    pc_schedule schedule;
    pc_error error = {0};
    write_file(text, strlen(text));
    assert_int_equal(pc_schedule_read_torch_csv(path, &schedule, &error), PC_ERROR_INPUT);
    if (!strstr(error.message, words)) fail_msg("'%s' lacks '%s'", error.message, words);
}

static bool same(const pc_schedule *a, const pc_schedule *b) {
    int64_t passes = a->offsets[a->devices];
    return a->devices == b->devices && a->microbatches == b->microbatches && a->chunks == b->chunks &&
           memcmp(a->offsets, b->offsets, ((size_t)a->devices + 1) * sizeof *a->offsets) == 0 &&
           memcmp(a->passes, b->passes, (size_t)passes * sizeof *a->passes) == 0;
}

/* PyTorch's runtime knows no R, one replica, and whole microbatches. */
static bool can_be_csv(const pc_schedule *schedule) {
    return !pc_schedule_has(schedule, PC_PASS_R) && pc_placement_is_plain(schedule->placement);
}

static void write_csv(const pc_schedule *schedule) {
    FILE *file = fopen(path, "wb");
    assert_int_equal(pc_schedule_write_torch_csv(schedule, file, NULL), PC_OK);
    fclose(file);
}

/* What is written reads back the same, for every generator and for random V-shaped and interleaved orders. */
static void test_round_trip(void **state) {
    (void)state;
    int count;
    const pc_generator *generators = pc_generators(&count);
    for (int g = 0; g < count; g++) {
        pc_schedule schedule, back;
        assert_int_equal(pc_schedule_generate(&generators[g], 4, 8, 0, &schedule, NULL), PC_OK);
        if (can_be_csv(&schedule)) {
            write_csv(&schedule);
            assert_int_equal(pc_schedule_read_torch_csv(path, &back, NULL), PC_OK);
            assert_true(same(&schedule, &back));
            pc_schedule_free(&back);
        }
        pc_schedule_free(&schedule);
    }
    test_random random = {7};
    for (long i = 0; i < test_cases(200, 1000); i++) {
        pc_schedule schedule, back;
        random_schedule(&random, 5, 4, 3, &schedule);
        if (can_be_csv(&schedule)) {
            write_csv(&schedule);
            assert_int_equal(pc_schedule_read_torch_csv(path, &back, NULL), PC_OK);
            assert_true(same(&schedule, &back));
            assert_int_equal(pc_schedule_check(&back, NULL), PC_OK);
            pc_schedule_free(&back);
        }
        pc_schedule_free(&schedule);
    }
}

/* The cells of the design's example: I is B, and B is BW; empty cells are waits; line ends as Windows writes them. */
static void test_reads_pytorchs_cells(void **state) {
    (void)state;
    static const char text[] = "0F0,,0F1, ,0I0,0W0,0B1\r\n,1F0,1B0,1F1,1I1,1W1\r\n\r\n";
    static const pc_pass expected[] = {
        {0, 0, PC_PASS_F}, {1, 0, PC_PASS_F},  {0, 0, PC_PASS_B}, {0, 0, PC_PASS_W}, {1, 0, PC_PASS_BW},
        {0, 0, PC_PASS_F}, {0, 0, PC_PASS_BW}, {1, 0, PC_PASS_F}, {1, 0, PC_PASS_B}, {1, 0, PC_PASS_W},
    };
    pc_schedule schedule;
    write_file(text, sizeof text - 1);
    assert_int_equal(pc_schedule_read_torch_csv(path, &schedule, NULL), PC_OK);
    assert_int_equal(schedule.devices, 2);
    assert_int_equal(schedule.microbatches, 2);
    assert_int_equal(schedule.chunks, 1);
    assert_int_equal(schedule.offsets[1], 5);
    assert_memory_equal(schedule.passes, expected, sizeof expected);
    assert_int_equal(pc_schedule_check(&schedule, NULL), PC_OK);
    pc_schedule_free(&schedule);
}

/* As PyTorch's runtime writes what it runs: with sends, shards and waits, which are passed over; and passes that it
 * overlaps, which stand one after the other. */
static void test_reads_pytorchs_communication(void **state) {
    (void)state;
    static const char lowered[] =
        "0UNSHARD,0F0,0SEND_F0,0F1,0SEND_F1,0WAIT_SEND_F0,0RECV_B0,0B0,0RECV_B1,0WAIT_SEND_F1,0B1,0REDUCE_GRAD,"
        "0WAIT_REDUCE_GRAD,0RESHARD\r\n"
        "1UNSHARD,1RECV_F0,1F0,1RECV_F1,(1F1;1B0)OVERLAP_F_B,1SEND_B0,1B1,1SEND_B1,1WAIT_SEND_B0,1WAIT_SEND_B1\r\n";
    static const pc_pass expected[] = {
        {0, 0, PC_PASS_F}, {1, 0, PC_PASS_F}, {0, 0, PC_PASS_BW}, {1, 0, PC_PASS_BW},
        {0, 0, PC_PASS_F}, {1, 0, PC_PASS_F}, {0, 0, PC_PASS_BW}, {1, 0, PC_PASS_BW},
    };
    pc_schedule schedule;
    write_file(lowered, sizeof lowered - 1);
    assert_int_equal(pc_schedule_read_torch_csv(path, &schedule, NULL), PC_OK);
    assert_int_equal(schedule.devices, 2);
    assert_int_equal(schedule.offsets[1], 4);
    assert_int_equal(schedule.offsets[2], 8);
    assert_memory_equal(schedule.passes, expected, sizeof expected);
    assert_int_equal(pc_schedule_check(&schedule, NULL), PC_OK);
    pc_schedule_free(&schedule);
    expect_refused("0UNSHARD\n", "0 parts on 1 ranks");
    expect_refused("0F0,UNSHARD\n", ":1: cell 2: 'UNSHARD'");
    expect_refused("0F0,0SEND0\n", ":1: cell 2: '0SEND0'");
    expect_refused("0F0,0FF0\n", ":1: cell 2: '0FF0'");
    expect_refused("0F0,(0F1;0B0\n", ":1: cell 2: '(0F1;0B0'");
    expect_refused("0F0,(0F1;0B0)\n", ":1: cell 2: '(0F1;0B0)'");
    expect_refused("0F0,()OVERLAP_F_B\n", ":1: cell 2: '()OVERLAP_F_B'");
    expect_refused("0F0,(0F1;)OVERLAP_F_B\n", ":1: cell 2: '(0F1;)OVERLAP_F_B'");
    expect_refused("0F0,)OVERLAP_F_B\n", ":1: cell 2: ')OVERLAP_F_B'");
    expect_refused("0F0,((0F1;0B0)OVERLAP_F_B)OVERLAP_F_B\n", ":1: cell 2:");
}

static void test_bad_files(void **state) {
    (void)state;
    pc_schedule schedule;
    pc_error error = {0};
    expect_refused("", "empty; expected a line for each rank");
    expect_refused("0F0,0B0\n1F0,1X0\n", ":2: cell 2: '1X0'; expected <part><F, I, W or B><microbatch>");
    expect_refused("0F0,F0\n", ":1: cell 2: 'F0'");
    expect_refused("0F0,0F\n", ":1: cell 2: '0F'");
    expect_refused("0F0,0F1x\n", ":1: cell 2: '0F1x'");
    expect_refused("0F99999999999999999999\n", ":1: cell 1:");
    expect_refused("99999999999999999999F0\n", ":1: cell 1:");
    expect_refused("0F0,1B0\n1F0,1B0,2F0\n", "3 parts on 2 ranks; expected the same number of parts on each rank");
    expect_refused("1F0,1B0\n0F0,0B0\n", ":1: pass 1: part 1 on rank 0; expected it on rank 1");
    expect_refused("\x7f"
                   "ELF\x02\x01\x01",
                   ":1: cell 1:");
    assert_int_equal(pc_schedule_read_torch_csv("/nonexistent.csv", &schedule, &error), PC_ERROR_INPUT);
    assert_string_equal(error.message, "/nonexistent.csv: No such file or directory; expected a CSV file");
    assert_int_equal(pc_schedule_read_torch_csv("/", &schedule, &error), PC_ERROR_INPUT);
}

/* Read, and then judged in words. */
static void expect_verdict(const char *text, const char *words) {
    pc_schedule schedule;
    pc_error error = {0};
    write_file(text, strlen(text));
    assert_int_equal(pc_schedule_read_torch_csv(path, &schedule, NULL), PC_OK);
    assert_int_equal(pc_schedule_check(&schedule, &error), PC_ERROR_INPUT);
    if (!strstr(error.message, words)) fail_msg("'%s' lacks '%s'", error.message, words);
    pc_schedule_free(&schedule);
}

static void test_verdicts(void **state) {
    (void)state;
    expect_verdict("0F0,0B0\n1F0\n", "stage 1, microbatch 0, chunk 0: the backward pass is missing");
    expect_verdict("0B0\n1F0,1B0\n", "stage 0, microbatch 0, chunk 0: F is missing");
    expect_verdict("0F0,0I0\n1F0,1B0\n", "stage 0, microbatch 0, chunk 0: W is missing");
    expect_verdict("0F0,0I0,0W0,0B0\n1F0,1B0\n", "there is BW beside B or W");
    expect_verdict("0F0,0F0,0B0\n1F0,1B0\n", "stage 0, place 1: F0 stands at place 0 already");
    expect_verdict("0B0,0F0\n1F0,1B0\n",
                   "stage 0, place 0: BW0 waits for F0 of stage 0, place 1, which comes later on that stage");
    expect_verdict("0F0,0B1,0B0,0F1\n1F0,1F1,1B1,1B0\n", "deadlock: stage 0, place 1: BW1 waits for F1 of stage 0");
}

/* Random bytes, and good files with random bytes in them: never a crash, and what is read and passes the checker is a
 * schedule. */
static void test_rubbish(void **state) {
    (void)state;
    test_random random = {8};
    for (long i = 0; i < test_cases(2000, 10000); i++) {
        char text[400];
        size_t size = (size_t)test_between(&random, 0, sizeof text);
        static const char letters[] = "0123FIWB,,\n 9";
        for (size_t k = 0; k < size; k++)
            text[k] = i % 2 ? letters[test_draw(&random) % (sizeof letters - 1)] : (char)test_draw(&random);
        write_file(text, size);
        pc_schedule schedule;
        pc_error error = {0};
        if (pc_schedule_read_torch_csv(path, &schedule, &error)) {
            assert_true(error.message[0] != '\0' && !strchr(error.message, '\n'));
            continue;
        }
        (void)!pc_schedule_check(&schedule, &error);
        pc_schedule_free(&schedule);
    }
}

static void test_text(void **state) {
    (void)state;
    pc_schedule schedule;
    char text[256] = "";
    assert_int_equal(pc_schedule_generate(pc_generator_find("1f1b-interleaved"), 1, 1, 3, &schedule, NULL), PC_OK);
    FILE *stream = fmemopen(text, sizeof text, "w");
    pc_schedule_write_text(&schedule, stream);
    fclose(stream);
    pc_schedule_free(&schedule);
    assert_string_equal(text, "F0.0 F0.1 F0.2 BW0.2 BW0.1 BW0.0\n");
    assert_int_equal(pc_schedule_generate(pc_generator_find("gems"), 2, 2, 0, &schedule, NULL), PC_OK);
    stream = fmemopen(text, sizeof text, "w");
    pc_schedule_write_text(&schedule, stream);
    fclose(stream);
    pc_schedule_free(&schedule);
    assert_string_equal(text, "F0 BW0 f1 bw1\nF0 BW0 f1 bw1\n");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_reads_pytorchs_cells),
        cmocka_unit_test(test_reads_pytorchs_communication),
        cmocka_unit_test(test_bad_files),
        cmocka_unit_test(test_verdicts),
        cmocka_unit_test(test_rubbish),
        cmocka_unit_test(test_text),
    };
    return cmocka_run_group_tests(tests, make_file, remove_file);
}
