/* Schedules that a file gives: what their generators say and make, for which requests; and the keys of their runs. */
#include "tests/support.h"

#include "engine/alloc.h"
#include "models/schedule/check.h"
#include "models/schedule/exchange.h"
#include "models/schedule/given.h"
#include "models/schedule/replay.h"
#include "scenarios/run_key.h"
#include "tests/random_schedule.h"

#include <unistd.h>

static char path[128];

static int make_file(void **state) {
    (void)state;
    test_temporary(path, sizeof path, "pipecast-given");
    int file = mkstemp(path);
    return file < 0 ? -1 : close(file);
}

static int remove_file(void **state) {
    (void)state;
    return unlink(path);
}

static void write_text(const char *text) {
    FILE *file = fopen(path, "wb");
    assert_true(fputs(text, file) >= 0);
    fclose(file);
}

static pc_given_schedule *read_given(const char *name) {
    pc_given_schedule *given = NULL;
    pc_error error = {0};
    if (pc_given_schedule_read(path, name, &given, &error)) fail_msg("%s", error.message);
    return given;
}

static bool are_equal(const pc_schedule *a, const pc_schedule *b) {
    int64_t passes = a->offsets[a->devices];
    return a->devices == b->devices && a->microbatches == b->microbatches && a->chunks == b->chunks &&
           a->placement == b->placement &&
           memcmp(a->offsets, b->offsets, ((size_t)a->devices + 1) * sizeof *a->offsets) == 0 &&
           memcmp(a->passes, b->passes, (size_t)passes * sizeof *a->passes) == 0;
}

/* Its p, m, v and no others; the kinds of passes that it has; and its order, whatever is asked of a search. */
static void check_generator(const pc_schedule *schedule, const pc_generator *g) {
    pc_schedule made;
    pc_block block;
    int p = schedule->devices, m = schedule->microbatches, v = schedule->chunks;
    pc_generate_request request = {.devices = p, .microbatches = m, .making = PC_MAKING_EQUAL};
    for (int kind = 0; kind < PC_PASS_KINDS; kind++) {
        bool is_assumed = kind == PC_PASS_BW && !pc_schedule_has(schedule, PC_PASS_B);
        assert_int_equal(pc_generator_has_kind(g, (pc_pass_kind)kind),
                         pc_schedule_has(schedule, (pc_pass_kind)kind) || is_assumed);
    }
    assert_true(!g->searches && !g->adapts && g->chunks_default == v && g->placement == schedule->placement);
    assert_int_equal(pc_generate(g, &request, &made, &block, NULL), PC_OK);
    assert_true(are_equal(schedule, &made));
    assert_string_equal(made.name, g->name);
    assert_true(block.devices == 0 || pc_block_is_valid(&block));
    pc_block_free(&block);
    pc_schedule_free(&made);
    assert_int_equal(pc_generator_check(g, p, m, v, NULL), PC_OK);
    assert_int_equal(pc_generator_check(g, p + 1, m, v, NULL), PC_ERROR_INPUT);
    assert_int_equal(pc_generator_check(g, p, m + 1, v, NULL), PC_ERROR_INPUT);
    assert_int_equal(pc_generator_check(g, p, m, v + 1, NULL), PC_ERROR_INPUT);
}

/* With B and W apart, in one, and some of each. */
static void test_random_files(void **state) {
    (void)state;
    test_random random = {19};
    long mixed = 0, checked = 0;
    while (checked < test_cases(60, 300)) {
        pc_schedule schedule;
        random_schedule(&random, 5, 6, 3, &schedule);
        bool can_be = !pc_schedule_has(&schedule, PC_PASS_R) && pc_placement_is_plain(schedule.placement);
        if (can_be) {
            FILE *file = fopen(path, "wb");
            assert_int_equal(pc_schedule_write_torch_csv(&schedule, file, NULL), PC_OK);
            fclose(file);
            pc_given_schedule *given = read_given("mine");
            const pc_generator *g = pc_given_schedule_generator(given);
            check_generator(pc_given_schedule_order(given), g);
            assert_string_equal(g->name, "mine");
            assert_int_equal(g->mixes, pc_schedule_has(&schedule, PC_PASS_B) && pc_schedule_has(&schedule, PC_PASS_BW));
            mixed += g->mixes;
            checked++;
            pc_given_schedule_free(given);
        }
        pc_schedule_free(&schedule);
    }
    assert_in_range(mixed, checked / 4, checked - checked / 4); /* of about a half */
}

/* The file's own name, or the end of another that is too long. */
static void test_names(void **state) {
    (void)state;
    char longest[200];
    write_text("0F0,0B0\n");
    memset(longest, 'x', sizeof longest - 1);
    memcpy(longest + sizeof longest - 5, ".csv", 5);
    pc_given_schedule *own = read_given(NULL), *cut = read_given(longest);
    assert_string_equal(pc_given_schedule_generator(own)->name, strrchr(path, '/') + 1);
    assert_string_equal(pc_given_schedule_generator(cut)->name, longest + sizeof longest - PC_SCHEDULE_NAME_SIZE);
    pc_given_schedule_free(own);
    pc_given_schedule_free(cut);
    pc_given_schedule_free(NULL);
}

static void expect_refused(const char *text, int line, const char *words) {
    pc_given_schedule *given;
    pc_error error = {0};
    char start[160];
    write_text(text);
    snprintf(start, sizeof start, "%s:%d: ", path, line);
    assert_int_equal(pc_given_schedule_read(path, NULL, &given, &error), PC_ERROR_INPUT);
    if (strncmp(error.message, start, strlen(start)) != 0 || !strstr(error.message, words))
        fail_msg("'%s' should begin '%s' and have '%s'", error.message, start, words);
}

/* The line is that of the stage to blame: of a deadlock the stage that waits for a pass of its own, if there is one. */
static void test_lines(void **state) {
    (void)state;
    expect_refused("0F0,0B0\n1F0,1X0\n", 2, "1X0");
    expect_refused("0F0,0B0\n1F0\n", 2, "the backward pass is missing");
    expect_refused("0F0,0F0,0B0\n1F0,1B0\n", 1, "stands at place 0 already");
    expect_refused("0F0,0F1,0B0,0B1\n1F0,1F1,1B0,1B1\n2B0,2F0,2F1,2B1\n", 3, "deadlock: stage 2");
    expect_refused("0F0,0F1,0B1,0B0\n1F0,1B0,1F1,1B1\n2F1,2B1,2F0,2B0\n", 1, "waits in turn");
}

static pc_run_key key_of(const pc_generator *generator) {
    pc_run_spec spec = pc_run_spec_default();
    spec.generator = generator;
    spec.devices = spec.chunks = 1;
    spec.microbatches = 2;
    return pc_run_key_of(&spec);
}

/* By content, not by name alone; and not by where the file lies. */
static void test_keys(void **state) {
    (void)state;
    write_text("0F0,0B0,0F1,0B1\n");
    pc_given_schedule *a = read_given("mine.csv");
    write_text("0F0, 0B0,,0F1,0B1\n\n");
    pc_given_schedule *same = read_given("mine.csv");
    write_text("0F0,0F1,0B0,0B1\n");
    pc_given_schedule *other = read_given("mine.csv");
    pc_run_key keys[] = {key_of(pc_given_schedule_generator(a)), key_of(pc_given_schedule_generator(same)),
                         key_of(pc_given_schedule_generator(other))};
    assert_memory_equal(&keys[0], &keys[1], sizeof *keys);
    assert_memory_not_equal(&keys[0], &keys[2], sizeof *keys);
    pc_given_schedule_free(a);
    pc_given_schedule_free(same);
    pc_given_schedule_free(other);
}

/* Every allocation that reading and generating ask for, refused in turn. */
static void test_short_of_memory(void **state) {
    (void)state;
    write_text("0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n");
    for (long after = 0;; after++) {
        pc_given_schedule *given = NULL;
        pc_schedule made;
        pc_error error = {0};
        pc_generate_request request = {.devices = 2, .microbatches = 2};
        pc_alloc_fail_after(after);
        pc_code code = pc_given_schedule_read(path, NULL, &given, &error);
        if (!code) code = pc_generate(pc_given_schedule_generator(given), &request, &made, NULL, &error);
        pc_alloc_fail_after(-1);
        if (!code) pc_schedule_free(&made);
        pc_given_schedule_free(given);
        if (!code) break;
        assert_int_equal(code, PC_ERROR_NO_MEMORY);
        assert_true(after < 1000);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_files), cmocka_unit_test(test_names),           cmocka_unit_test(test_lines),
        cmocka_unit_test(test_keys),         cmocka_unit_test(test_short_of_memory),
    };
    return cmocka_run_group_tests(tests, make_file, remove_file);
}
