/* Building blocks as files, there and back: every named schedule, written as such a file, reads back as the same
 * schedule; and ends, the passes that stand elsewhere than the block has them. */
#include "tests/block_example.h"

#include "models/schedule/block_write.h"
#include "models/schedule/replay.h"

static char *write_text(const pc_block_text_request *wanted) {
    char *text = NULL;
    size_t size = 0;
    pc_error error = {0};
    FILE *stream = open_memstream(&text, &size);
    if (pc_block_write(wanted, stream, &error)) fail_msg("%s: %s", wanted->schedule->name, error.message);
    fclose(stream);
    return text;
}

static void assert_same(const pc_schedule *a, const pc_schedule *b, const char *text) {
    int64_t passes = a->offsets[a->devices];
    assert_int_equal(passes, b->offsets[b->devices]);
    assert_int_equal(a->placement, b->placement);
    assert_memory_equal(a->offsets, b->offsets, ((size_t)a->devices + 1) * sizeof *a->offsets);
    if (memcmp(a->passes, b->passes, (size_t)passes * sizeof *a->passes) != 0)
        fail_msg("%s on %d devices, %d microbatches:\n%s", a->name, a->devices, a->microbatches, text);
}

/* The schedule of a name, written and read again; *has_ends where it took some. */
static void go_round(const pc_generator *generator, int p, int m, int v, const pc_costs *costs, bool *has_ends) {
    pc_schedule schedule, again;
    pc_block block;
    pc_error error = {0};
    pc_generate_request request = {.devices = p, .microbatches = m, .chunks = v, .costs = costs, .threads = 1};
    if (pc_generate(generator, &request, &schedule, &block, &error)) fail_msg("%s: %s", generator->name, error.message);
    pc_block_text_request wanted = {.schedule = &schedule, .block = block.devices ? &block : NULL, .costs = costs};
    char *text = write_text(&wanted);
    pc_given_block *given = read_good(text);
    if (pc_generate(pc_given_block_generator(given), &request, &again, NULL, &error))
        fail_msg("%s: %s\n%s", generator->name, error.message, text);
    assert_same(&schedule, &again, text);
    *has_ends = pc_given_block_draft(given)->end_count > 0;
    pc_given_block_free(given);
    pc_schedule_free(&again);
    pc_schedule_free(&schedule);
    pc_block_free(&block);
    free(text);
}

/* Every name, and shapes of all sorts: fewer microbatches than devices, groups that are not whole, one device. */
static void test_every_name_reads_back(void **state) {
    (void)state;
    static const int shapes[][3] = {{1, 1, 0}, {2, 1, 0},  {2, 5, 0},  {3, 7, 0},
                                    {4, 3, 0}, {4, 16, 0}, {5, 12, 3}, {6, 13, 0}};
    int count;
    long with_ends = 0;
    const pc_generator *all = pc_generators(&count);
    for (int g = 0; g < count; g++)
        for (size_t k = 0; k < sizeof shapes / sizeof *shapes; k++) {
            int p = shapes[k][0], m = shapes[k][1], v = shapes[k][2];
            bool has_ends;
            bool is_none = all[g].mixes || pc_placement_has_slices(all[g].placement); /* neither is a block */
            if (is_none || all[g].barriers != PC_BARRIERS_NONE || pc_generator_check(&all[g], p, m, v, NULL)) continue;
            pc_costs costs;
            assert_int_equal(pc_costs_create(p, v ? v : all[g].chunks_default, &costs, NULL), PC_OK);
            fill_equal(&costs);
            go_round(&all[g], p, m, v, &costs, &has_ends);
            with_ends += has_ends;
            pc_costs_free(&costs);
        }
    assert_true(with_ends > 0);
}

/* Planned for times that are not equal, and transfers. */
static void test_names_read_back_at_other_times(void **state) {
    (void)state;
    static const char *const names[] = {"v-min", "v-half", "zb-v", "zb-2p", "1f1b-v", "zb-two-thirds", "v-adaptive"};
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        const pc_generator *generator = pc_generator_find(names[k]);
        pc_costs costs;
        bool has_ends;
        assert_int_equal(pc_costs_create(4, generator->chunks_default, &costs, NULL), PC_OK);
        fill_equal(&costs);
        static const pc_time times[PC_PASS_KINDS] = {18, 18, 9, 27, 18};
        for (int i = 0; i < 4 * costs.chunks * PC_PASS_KINDS; i++) costs.duration_ps[i] = times[i % PC_PASS_KINDS];
        costs.transfer.delay_ps = 1;
        go_round(generator, 4, 16, 0, &costs, &has_ends);
        pc_costs_free(&costs);
    }
}

/* ---- ends ---- */

/* Ends: F of the second microbatch three cells early, on every device, which puts it behind that of the first. The
 * microbatch may be counted from the end. */
static void test_ends_move_passes(void **state) {
    (void)state;
    static const char *const ends[] = {"ends:\n  - {kind: F, microbatch: 1, offset: d - 2}\n",
                                       "ends:\n  - {kind: F, microbatch: -3, offsets: [-2, -1]}\n"};
    for (int k = 0; k < 2; k++) {
        char text[512];
        snprintf(text, sizeof text,
                 "block: own\nplacement: linear\ninterval: 3\n"
                 "passes:\n  - {kind: F, offset: d}\n  - {kind: BW, offset: 9 + 3*p - 2 - 2*d}\n%s",
                 ends[k]);
        pc_given_block *given = read_good(text);
        assert_int_equal(pc_given_block_draft(given)->steps, PC_BLOCK_SQUEEZE);
        pc_costs costs;
        pc_schedule schedule;
        make(given, 2, 4, &costs, &schedule);
        assert_int_equal(schedule.passes[1].kind, PC_PASS_F);
        assert_int_equal(schedule.passes[1].microbatch, 1);
        pc_replay replay;
        assert_int_equal(pc_given_block_set_steps(given, PC_BLOCK_NONE, NULL), PC_OK);
        assert_int_equal(pc_given_block_replay(given, &schedule, &costs, true, &replay, NULL), PC_OK);
        assert_int_equal(replay.trace.pass_start_ps[1], 1);
        pc_replay_free(&replay);
        pc_schedule_free(&schedule);
        pc_costs_free(&costs);
        pc_given_block_free(given);
    }
}

static void test_ends_are_checked(void **state) {
    (void)state;
    static const struct {
        const char *ends, *expected;
    } bad[] = {{"  - {kind: F, microbatch: 4, offset: 0}\n", "ends[0]: microbatch 4 of an iteration of 4"},
               {"  - {kind: F, microbatch: -5, offset: 0}\n", "microbatch -5 of an iteration of 4"},
               {"  - {kind: W, microbatch: 0, offset: 0}\n", "W of chunk 0; expected a pass of the block"},
               {"  - {kind: F, microbatch: 0, chunk: 1, offset: 0}\n", "F of chunk 1; expected a pass of the block"},
               {"  - {kind: F, microbatch: 1, offset: d - 3}\n",
                "F of microbatch 0 and F of microbatch 1 collide on device 0: both take cell 0"},
               {"  - {kind: F, microbatch: 0, offset: 30 + d}\n", "own"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char text[512];
        snprintf(text, sizeof text, HEAD PAIR "ends:\n%s", bad[i].ends);
        pc_given_block *given = read_good(text);
        pc_schedule schedule;
        pc_error error = {0};
        pc_generate_request request = {.devices = 2, .microbatches = 4};
        assert_int_equal(pc_generate(pc_given_block_generator(given), &request, &schedule, NULL, &error),
                         PC_ERROR_INPUT);
        if (!strstr(error.message, bad[i].expected)) fail_msg("'%s' lacks '%s'", error.message, bad[i].expected);
        pc_given_block_free(given);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_name_reads_back),
        cmocka_unit_test(test_names_read_back_at_other_times),
        cmocka_unit_test(test_ends_move_passes),
        cmocka_unit_test(test_ends_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
