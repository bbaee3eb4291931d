/* Building blocks of one's own: files of them, what is wrong with them, what becomes of them. */
#include "tests/block_example.h"

#include "engine/alloc.h"
#include "models/schedule/block_write.h"
#include "models/schedule/replay.h"
#include "models/training/run.h"
#include "scenarios/run_key.h"

#include <inttypes.h>

/* ---- what is read ---- */

/* Refused when it is read, or when it is made for p devices and m microbatches. */
static void assert_refused(const char *text, int p, int m, const char *expected) {
    pc_error error = {0};
    pc_given_block *given = NULL;
    pc_block block = {0};
    pc_code code = pc_block_text_read("own.yaml", text, &given, &error);
    if (!code) code = pc_given_block_make(given, p, m, &block, &error);
    assert_int_equal(code, PC_ERROR_INPUT);
    if (!strstr(error.message, expected)) fail_msg("'%s' lacks '%s'", error.message, expected);
    assert_null(strchr(error.message, '\n'));
    pc_given_block_free(given);
    pc_block_free(&block);
}

#define V "block: own\nchunks: 2\nplacement: v\ninterval: 6\n"

static const struct wrong {
    const char *text, *expected;
} wrong[] = {
    {"", "own.yaml:1: empty"},
    {"- 1\n", "own.yaml"},
    {"placement: linear\ninterval: 3\n" PAIR, "block: missing"},
    {"block: own\ninterval: 3\n" PAIR, "placement: missing"},
    {"block: own\nplacement: linear\n" PAIR, "interval: missing"},
    {HEAD, "passes: missing"},
    {HEAD "passes: []\n", "passes"},
    {HEAD "pases:\n  - {kind: F, offset: d}\n", "own.yaml:4: pases: unknown key (did you mean passes?)"},
    {"block: a b\nplacement: linear\ninterval: 3\n" PAIR, "own.yaml:1: block: a b: not a name"},
    {"block: 1f1b\nplacement: linear\ninterval: 3\n" PAIR, "block: 1f1b is the name of a schedule"},
    {"block: own\nplacement: w\ninterval: 3\n" PAIR, "own.yaml:2: placement: w: unknown"},
    {"block: own\nplacement: liner\ninterval: 3\n" PAIR, "did you mean linear?"},
    {"block: own\nplacement: linear\nchunks: 2\ninterval: 3\n" PAIR, "chunks: 2 with placement linear; expected 1"},
    {"block: own\nplacement: bidirectional\nchunks: 1\ninterval: 3\n" PAIR, "expected 2"},
    {"block: own\nplacement: linear\nchunks: 0\ninterval: 3\n" PAIR, "chunks: 0"},
    {"block: own\nplacement: linear\ninterval: d\n" PAIR, "own.yaml:3: interval: 'd' at byte 1"},
    {"block: own\nplacement: linear\ninterval: 0\n" PAIR, "interval: 0 with p = 4 and m = 8; expected 1"},
    {"block: own\nplacement: linear\ninterval: p - 9\n" PAIR, "interval: -5 with p = 4"},
    {"block: own\nplacement: linear\ninterval: 1/(p-4)\n" PAIR, "interval: divides by zero"},
    {HEAD "passes:\n  - {kind: F, offset: d / (d - 1)}\n  - {kind: BW, offset: 20}\n",
     "own.yaml:5: passes[0].offset: with d = 1 and p = 4: divides by zero; expected a number within 2^40 of zero"},
    {HEAD "passes:\n  - {kind: F, offset: 3000000000}\n  - {kind: BW, offset: 20}\n",
     "own.yaml:5: passes[0].offset: 3000000000 cells with d = 0 and p = 4; expected less than 2^31"},
    {HEAD "microbatches: 0\n" PAIR, "microbatches: 0"},
    {HEAD "microbatches: 1025\n" PAIR, "microbatches: 1025 with p = 4 and m = 8; expected 1 to 1024"},
    {HEAD "steps: squeese\n" PAIR, "steps: squeese: unknown"},
    {HEAD "devices: 5\n" PAIR, "for 5 devices, not 4"},
    {HEAD "durations: {F: 0}\n" PAIR, "durations.F: 0"},
    {HEAD "durations: {G: 1}\n" PAIR, "durations.G: unknown key"},
    {HEAD "stages: [0]\n" PAIR, "stages: stands beside placement linear"},
    {HEAD "passes:\n  - {kind: X, offset: d}\n", "own.yaml:5: passes[0].kind: X: unknown"},
    {HEAD "passes:\n  - {offset: d}\n", "passes[0].kind: missing"},
    {HEAD "passes:\n  - {kind: F}\n", "passes[0]: has no offset"},
    {HEAD "passes:\n  - {kind: F, offset: d, offsets: [1]}\n", "has both offset and offsets"},
    {HEAD "passes:\n  - {kind: F, offset: d +}\n", "passes[0].offset: the end at byte 4"},
    {HEAD "passes:\n  - {kind: F, offset: free}\n", "free, of F"},
    {HEAD "passes:\n  - {kind: F, offset: d}\n", "no backward pass"},
    {HEAD "passes:\n  - {kind: BW, offset: d}\n", "passes: no F"},
    {HEAD "passes:\n  - {kind: F, offset: d}\n  - {kind: B, offset: 9}\n", "one of B and W without the other"},
    {HEAD PAIR "  - {kind: B, offset: 9}\n", "BW beside B or W"},
    {HEAD PAIR "  - {kind: F, offset: 9}\n", "own.yaml:7: passes[2]: F of chunk 0 stands above already"},
    {HEAD "passes:\n  - {kind: F, offset: d - 1}\n  - {kind: BW, offset: 20}\n", "starts in cell -1; expected 0"},
    {HEAD "passes:\n  - {kind: F, offset: 8 / d}\n  - {kind: BW, offset: 20}\n", "divides by zero"},
    {HEAD "passes:\n  - {kind: F, offset: p*1000000000}\n  - {kind: BW, offset: 20}\n", "less than 2^31"},
    {HEAD "passes:\n  - {kind: F, offsets: [0, 1]}\n  - {kind: BW, offset: 20}\n",
     "own.yaml:5: passes[0].offsets: 2 numbers for 4 devices"},
    {HEAD "passes:\n  - {kind: F, offsets: [0, x, 2, 3]}\n", "passes[0].offsets[1]: x"},
    {HEAD "passes:\n  - {kind: F, chunk: 1, offset: d}\n  - {kind: BW, offset: 20}\n", "chunk: 1; expected 0 to 0"},
    {HEAD "passes:\n  - {kind: F, microbatch: 1, offset: d}\n  - {kind: BW, offset: 20}\n",
     "microbatch: 1; expected 0 to 0"},
    {HEAD PAIR "ends:\n  - {kind: F, offset: 2}\n", "ends[0].microbatch: missing"},
    {HEAD "steps: reorder\n" PAIR "ends:\n  - {kind: F, microbatch: 0, offset: d}\n", "steps: reorder"},
    {HEAD "steps: reorder\n" PAIR "  - {kind: R, offset: 1}\n", "of a block with R"},
    {"block: own\nplacement: given\nchunks: 2\ninterval: 6\n" PAIR, "stages: missing"},
    {"block: own\nplacement: given\nchunks: 2\nstages: [0, 1, 1]\ninterval: 6\n" PAIR, "3 parts for 2 chunks"},
    {"block: own\nplacement: given\nchunks: 2\nstages: [0, 0, 1, 1]\ninterval: 6\n" PAIR,
     "neither linear, nor interleaved, nor as a v"},
    {"block: own\nplacement: given\nstages: [0, x]\ninterval: 6\n" PAIR, "stages[1]: x"},
};

static void test_a_file_says_what_is_wrong_with_it(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) assert_refused(wrong[i].text, 4, 8, wrong[i].expected);
}

/* Which two passes, on which device, at which cell: F of device 1 and BW of device 1, cells 1 and 3 + 1 of the interval
 * of 3; and a BW of two cells that begins in the one before. */
static void test_collisions_are_named(void **state) {
    (void)state;
    assert_refused(HEAD "passes:\n  - {kind: F, offset: d}\n  - {kind: BW, offset: 3*p - 3 - 2*d}\n", 2, 4,
                   "own.yaml: F of chunk 0 and BW of chunk 0 collide on device 0: both take cell 0 of the interval of "
                   "3; expected one pass a cell");
    assert_refused(HEAD "passes:\n  - {kind: F, offset: d}\n  - {kind: BW, offset: 3*p - 1 - 2*d}\n", 2, 4,
                   "BW of chunk 0 and F of chunk 0 collide on device 0: both take cell 0 of the interval of 3");
    /* The last of the interval runs into the first of the next one. */
    assert_refused("block: own\nplacement: linear\ninterval: 2\n" PAIR, 1, 4, "collide on device 0");
    /* A pass as long as two intervals meets itself. */
    assert_refused("block: own\nplacement: linear\ninterval: 3\ndurations: {BW: 7}\n" PAIR, 1, 4,
                   "collide on device 0");
    /* Of a block with several microbatches it says which. */
    assert_refused("block: own\nplacement: linear\ninterval: 6\nmicrobatches: 2\npasses:\n  - {kind: F, offset: d}\n"
                   "  - {kind: BW, offset: 3*p - 2 - 2*d + 3*i}\n",
                   1, 4, "F of chunk 0 (microbatch 0 of the block) and F of chunk 0 (microbatch 1 of the block)");
}

static void test_what_starts_too_early_is_named(void **state) {
    (void)state;
    assert_refused("block: own\nplacement: linear\ninterval: 9\npasses:\n  - {kind: F, offset: 1 - d}\n"
                   "  - {kind: BW, offset: 22 - 2*d}\n",
                   2, 4,
                   "own.yaml: F of chunk 0 on device 1 starts in cell 0, but waits for F of chunk 0 on device 0, which "
                   "ends at 2; expected it in cell 2 or later");
    assert_refused("block: own\nplacement: linear\ninterval: 9\npasses:\n  - {kind: F, offset: d}\n"
                   "  - {kind: BW, offset: 4 + d}\n",
                   2, 4, "BW of chunk 0 on device 0 starts in cell 4, but waits for BW of chunk 0 on device 1");
    assert_refused("block: own\nplacement: linear\ninterval: 9\npasses:\n  - {kind: F, offset: d}\n"
                   "  - {kind: B, offset: 6 - d}\n  - {kind: W, offset: 5 - d}\n",
                   2, 4, "W of chunk 0 on device 0 starts in cell 5, but waits for B of chunk 0 on device 0");
    assert_refused("block: own\nplacement: linear\ninterval: 9\nsteps: squeeze\npasses:\n  - {kind: F, offset: d}\n"
                   "  - {kind: R, offset: 8 - d}\n  - {kind: BW, offset: 6 - 2*d}\n",
                   1, 4, "BW of chunk 0 on device 0 starts in cell 6, but waits for R of chunk 0");
}

static void test_missing_passes_are_named(void **state) {
    (void)state;
    assert_refused(V "passes:\n  - {kind: F, offset: d}\n  - {kind: BW, chunk: 0, offset: 40 - d}\n", 3, 4,
                   "no BW of chunk 1 on device 0; expected every pass once");
    assert_refused(
        "block: own\nplacement: linear\ninterval: 6\nmicrobatches: 2\npasses:\n  - {kind: F, offset: d + i}\n"
        "  - {kind: BW, microbatch: 1, offset: 20 - 2*d}\n",
        2, 4, "no BW of chunk 0 (microbatch 0 of the block) on device 0");
    assert_refused("block: own\nplacement: bidirectional\nchunks: 2\ninterval: 6\nmicrobatches: 2\npasses:\n"
                   "  - {kind: F, offset: d}\n  - {kind: F, chunk: 1, microbatch: 0, offset: d}\n"
                   "  - {kind: BW, offset: 9}\n",
                   1, 4, "there is F of chunk 1 (microbatch 0 of the block) on device 0");
    assert_refused(V "passes:\n  - {kind: F, offset: d + c}\n  - {kind: B, offset: 20 + c}\n"
                     "  - {kind: W, offset: free}\ndurations: {W: 2}\n",
                   1, 4, "no free cells for W on device 0 in an interval of 6");
}

/* A placement that is given is one of those that there are. */
static void test_given_stages(void **state) {
    (void)state;
    static const struct {
        const char *stages;
        pc_placement placement;
    } cases[] = {{"chunks: 2\nstages: [0, 1, 2, 2, 1, 0]\n", PC_PLACEMENT_V},
                 {"chunks: 2\nstages: [0, 1, 2, 0, 1, 2]\n", PC_PLACEMENT_INTERLEAVED},
                 {"stages: [0, 1, 2]\n", PC_PLACEMENT_LINEAR}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[512];
        snprintf(text, sizeof text, "block: own\nplacement: given\n%sinterval: 6\n" PAIR, cases[i].stages);
        pc_given_block *given = read_good(text);
        assert_int_equal(pc_given_block_draft(given)->placement, cases[i].placement);
        assert_int_equal(pc_given_block_draft(given)->devices, 3);
        assert_int_equal(pc_given_block_generator(given)->given->devices, 3);
        pc_given_block_free(given);
    }
}

/* ---- what becomes of it ---- */

#define V_MIN                                                                                                          \
    V "passes:\n  - {kind: F, chunk: 0, offset: d}\n  - {kind: F, chunk: 1, offset: 2*p - 1 - d}\n"                    \
      "  - {kind: B, chunk: 1, offset: \"2*p + d + (p % 3 == 0 ? 2 : 0)\"}\n"                                          \
      "  - {kind: B, chunk: 0, offset: \"4*p - 1 - d + (p % 3 == 0 ? 2 : 0)\"}\n  - {kind: W, offset: free}\n"
#define V_HALF                                                                                                         \
    V "passes:\n  - {kind: F, chunk: 0, offset: 2*d}\n  - {kind: F, chunk: 1, offset: 3*p - 2 - d}\n"                  \
      "  - {kind: B, chunk: 1, offset: \"3*p - 1 + 2*d + (p % 2 == 0 ? 3 : 0)\"}\n"                                    \
      "  - {kind: B, chunk: 0, offset: \"6*p - 2 - d + (p % 2 == 0 ? 3 : 0)\"}\n  - {kind: W, offset: free}\n"
#define V_ZB                                                                                                           \
    V "passes:\n  - {kind: F, chunk: 0, offset: 5*d}\n  - {kind: F, chunk: 1, offset: 6*p - 5 - d}\n"                  \
      "  - {kind: B, chunk: 1, offset: 6*p - 4 + 5*d}\n  - {kind: B, chunk: 0, offset: 12*p - 8 - d}\n"                \
      "  - {kind: W, offset: free}\n"

/* What the paper's blocks idle, repeated, squeezed and reordered, in cells: V-Min 4p-5, and 4p-7 where 3 divides p;
 * V-Half 3p-7 for even p and 3p-4 for odd; V-ZB 0 (docs/schedules.md). m passes of each of six types are 6m cells. */
static void test_the_papers_blocks_idle_as_they_should(void **state) {
    (void)state;
    static const char *const texts[] = {V_MIN, V_HALF, V_ZB};
    for (int k = 0; k < 3; k++) {
        pc_given_block *given = read_good(texts[k]);
        for (int p = 3; p <= 12; p++) {
            int m = 8 * p, idle = k == 0 ? 4 * p - (p % 3 ? 5 : 7) : k == 1 ? 3 * p - (p % 2 ? 4 : 7) : 0;
            pc_costs costs;
            pc_schedule schedule;
            pc_replay replay;
            make(given, p, m, &costs, &schedule);
            assert_int_equal(pc_replay_run(&schedule, &costs, NULL, &replay, NULL), PC_OK);
            assert_int_equal(replay.span_ps, 6 * m + idle);
            pc_replay_free(&replay);
            pc_schedule_free(&schedule);
            pc_costs_free(&costs);
        }
        pc_given_block_free(given);
    }
}

/* V-Min where 3 divides p: W of chunk 0 stands 3, 2, 1 cells behind B by d mod 3, and that of chunk 1 1, 2, 3. */
static void test_free_cells_are_those_of_the_rule(void **state) {
    (void)state;
    pc_given_block *given = read_good(V_MIN);
    for (int p = 3; p <= 12; p += 3) {
        pc_block b;
        assert_int_equal(pc_given_block_make(given, p, 8, &b, NULL), PC_OK);
        assert_true(pc_block_is_valid(&b));
        for (int d = 0; d < p; d++)
            for (int c = 0; c < 2; c++)
                assert_int_equal(pc_block_start(&b, 0, d, c, PC_PASS_W) - pc_block_start(&b, 0, d, c, PC_PASS_B),
                                 c == 0 ? 3 - d % 3 : 1 + d % 3);
        pc_block_free(&b);
    }
    pc_given_block_free(given);
}

/* Reordered, no device holds more than the block repeated, whatever the costs, and the iteration is no longer. */
static void test_reordering_keeps_memory(void **state) {
    (void)state;
    test_random random = {19};
    pc_given_block *given = read_good(V_MIN), *squeezed = read_good("steps: squeeze\n" V_MIN);
    for (long k = 0; k < test_cases(20, 100); k++) {
        int p = (int)test_between(&random, 2, 7), m = (int)test_between(&random, 1, 24);
        pc_costs costs;
        pc_schedule a, b;
        pc_replay ra, rb;
        make(given, p, m, &costs, &a);
        pc_schedule_free(&a);
        for (int i = 0; i < 2 * p * PC_PASS_KINDS; i++) costs.duration_ps[i] = test_between(&random, 1, 9);
        costs.transfer.delay_ps = test_between(&random, 0, 3);
        pc_generate_request request = {.devices = p, .microbatches = m, .costs = &costs};
        assert_int_equal(pc_generate(pc_given_block_generator(given), &request, &a, NULL, NULL), PC_OK);
        assert_int_equal(pc_generate(pc_given_block_generator(squeezed), &request, &b, NULL, NULL), PC_OK);
        assert_int_equal(pc_replay_run(&a, &costs, NULL, &ra, NULL), PC_OK);
        assert_int_equal(pc_replay_run(&b, &costs, NULL, &rb, NULL), PC_OK);
        assert_true(ra.span_ps <= rb.span_ps);
        for (int d = 0; d < p; d++) assert_true(ra.device_peak_bytes[d] <= rb.device_peak_bytes[d]);
        pc_replay_free(&ra);
        pc_replay_free(&rb);
        pc_schedule_free(&a);
        pc_schedule_free(&b);
        pc_costs_free(&costs);
    }
    pc_given_block_free(given);
    pc_given_block_free(squeezed);
}

/* Without a word on how large activations are, chunks count: V-Min of 4 devices idles 11 cells, and would idle none
 * without a limit. */
static void test_reordering_counts_chunks(void **state) {
    (void)state;
    pc_given_block *given = read_good(V_MIN);
    pc_costs costs;
    pc_schedule schedule;
    pc_replay replay;
    make(given, 4, 32, &costs, &schedule);
    pc_schedule_free(&schedule);
    for (int i = 0; i < 8; i++) costs.activation_bytes[i] = costs.activation_kept_bytes[i] = 0;
    pc_generate_request request = {.devices = 4, .microbatches = 32, .costs = &costs};
    assert_int_equal(pc_generate(pc_given_block_generator(given), &request, &schedule, NULL, NULL), PC_OK);
    assert_int_equal(pc_replay_run(&schedule, &costs, NULL, &replay, NULL), PC_OK);
    assert_int_equal(replay.span_ps, 6 * 32 + 11);
    pc_replay_free(&replay);
    pc_schedule_free(&schedule);
    pc_costs_free(&costs);
    pc_given_block_free(given);
}

/* Too little memory for the repeated block is a refusal, and so are times that are missing. */
static void test_reordering_needs_memory_and_times(void **state) {
    (void)state;
    pc_given_block *given = read_good(V_MIN);
    pc_costs costs;
    pc_schedule schedule;
    pc_error error = {0};
    make(given, 4, 8, &costs, &schedule);
    pc_schedule_free(&schedule);
    /* 3 of the 4 chunks that device 2 holds */
    const int64_t limit_bytes[] = {PC_NO_LIMIT, PC_NO_LIMIT, 3, PC_NO_LIMIT};
    pc_generate_request request = {.devices = 4, .microbatches = 8, .costs = &costs, .memory_limit = {limit_bytes}};
    assert_int_equal(pc_generate(pc_given_block_generator(given), &request, &schedule, NULL, &error), PC_ERROR_INPUT);
    assert_non_null(strstr(error.message, "holds more than the memory limit"));
    request.memory_limit.device_bytes = NULL;
    costs.duration_ps[PC_PASS_B] = PC_TIME_NOT_GIVEN;
    assert_int_equal(pc_generate(pc_given_block_generator(given), &request, &schedule, NULL, &error), PC_ERROR_INPUT);
    assert_non_null(strstr(error.message, "the time of B of chunk 0 on device 0 is not given"));
    pc_costs_free(&costs);
    pc_given_block_free(given);
}

/* On its own grid: 1F1B of 2 devices with cells of 1 lasts as long as squeezed, 3m + 3; with F twice as long as a cell
 * has to be, a cell is 2: BW, of which a cell is the half, waits. The last pass ends 3(m-1) + 3p-2 cells and BW after
 * the first. */
static void test_left_as_it_is(void **state) {
    (void)state;
    pc_given_block *given = read_good(HEAD PAIR);
    assert_int_equal(pc_given_block_set_steps(given, PC_BLOCK_NONE, NULL), PC_OK);
    for (int f = 1; f <= 2; f++) {
        int p = 2, m = 5;
        pc_costs costs;
        pc_schedule schedule;
        pc_replay replay;
        make(given, p, m, &costs, &schedule);
        for (int d = 0; d < p; d++) costs.duration_ps[d * PC_PASS_KINDS + PC_PASS_F] = f;
        assert_int_equal(pc_given_block_replay(given, &schedule, &costs, true, &replay, NULL), PC_OK);
        assert_int_equal(replay.makespan_ps, f * (3 * (m - 1) + 3 * p - 2) + 2);
        for (int64_t i = 0; i < replay.trace.pass_count; i++) assert_int_equal(replay.trace.pass_start_ps[i] % f, 0);
        pc_replay_free(&replay);
        /* A transfer takes its time between two cells: F of device 1 stands one cell behind that of device 0. */
        costs.transfer.delay_ps = 3;
        assert_int_equal(pc_given_block_replay(given, &schedule, &costs, false, &replay, NULL), PC_OK);
        assert_int_equal(replay.makespan_ps, (f + 3) * (3 * (m - 1) + 3 * p - 2) + 2);
        pc_replay_free(&replay);
        pc_schedule_free(&schedule);
        pc_costs_free(&costs);
    }
    pc_given_block_free(given);
}

/* Two files of one name are told apart by what they say, and the same file is itself. */
static void test_content_is_hashed(void **state) {
    (void)state;
    static const char *const texts[] = {
        HEAD PAIR,
        "title: another\n" HEAD PAIR,
        "steps: squeeze\n" HEAD PAIR,
        HEAD "passes:\n  - {kind: F, offset: d}\n  - {kind: BW, offset: 3*p + 1 - 2*d}\n",
        HEAD "passes:\n  - {kind: F, offset: d + 0}\n  - {kind: BW, offset: 3*p - 2 - 2*d}\n",
        HEAD PAIR "durations: {F: 1}\n"};
    static const bool is_same[] = {true, true, false, false, false, true};
    pc_given_block *first = read_good(texts[0]);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        pc_given_block *other = read_good(texts[i]);
        bool equal = pc_given_block_generator(other)->given->hash == pc_given_block_generator(first)->given->hash;
        assert_int_equal(equal, is_same[i]);
        pc_given_block_free(other);
    }
    pc_given_block_free(first);
}

/* And so are the runs of them. */
static void test_content_is_in_the_key_of_a_run(void **state) {
    (void)state;
    static const char *const texts[] = {HEAD PAIR, "title: another\n" HEAD PAIR, "steps: squeeze\n" HEAD PAIR};
    pc_run_key keys[3];
    for (int i = 0; i < 3; i++) {
        pc_given_block *given = read_good(texts[i]);
        pc_run_spec spec = pc_run_spec_default();
        spec.generator = pc_given_block_generator(given);
        keys[i] = pc_run_key_of(&spec);
        pc_given_block_free(given);
    }
    assert_true(pc_run_key_equal(keys[0], keys[1]));
    assert_false(pc_run_key_equal(keys[0], keys[2]));
}

/* Whatever allocation fails, of reading, making, reordering and writing: the error says so, and nothing is lost (which
 * the sanitizers see). */
static pc_code do_all(const pc_costs *costs, pc_error *error) {
    pc_given_block *given = NULL;
    pc_schedule schedule = {0};
    pc_block block = {0};
    pc_replay replay = {0};
    pc_generate_request request = {.devices = 3, .microbatches = 5, .costs = costs};
    pc_code code = pc_block_text_read("own.yaml", V_MIN "stages: [0, 1, 2, 2, 1, 0]\n", &given, error);
    if (code == PC_ERROR_INPUT) code = pc_block_text_read("own.yaml", "devices: 3\n" V_MIN, &given, error);
    if (!code) code = pc_generate(pc_given_block_generator(given), &request, &schedule, &block, error);
    pc_block_text_request wanted = {.schedule = &schedule, .block = &block, .costs = costs};
    FILE *nowhere = fopen("/dev/null", "w");
    if (!code) code = pc_block_write(&wanted, nowhere, error);
    fclose(nowhere);
    if (!code) code = pc_given_block_set_steps(given, PC_BLOCK_NONE, error);
    pc_schedule_free(&schedule);
    if (!code) code = pc_generate(pc_given_block_generator(given), &request, &schedule, NULL, error);
    if (!code) code = pc_given_block_replay(given, &schedule, costs, true, &replay, error);
    pc_replay_free(&replay);
    pc_schedule_free(&schedule);
    pc_block_free(&block);
    pc_given_block_free(given);
    return code;
}

static void test_any_allocation_may_fail(void **state) {
    (void)state;
    pc_costs costs;
    pc_error error = {0};
    assert_int_equal(pc_costs_create(3, 2, &costs, NULL), PC_OK);
    fill_equal(&costs);
    assert_int_equal(do_all(&costs, &error), PC_OK);
    long count = 0;
    for (pc_code code = PC_ERROR_NO_MEMORY; code; count++) {
        pc_alloc_fail_after(count);
        code = do_all(&costs, &error);
        pc_alloc_fail_after(-1);
        if (code) assert_int_equal(code, PC_ERROR_NO_MEMORY);
    }
    assert_true(count > 100);
    pc_costs_free(&costs);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_file_says_what_is_wrong_with_it),
        cmocka_unit_test(test_collisions_are_named),
        cmocka_unit_test(test_what_starts_too_early_is_named),
        cmocka_unit_test(test_missing_passes_are_named),
        cmocka_unit_test(test_given_stages),
        cmocka_unit_test(test_the_papers_blocks_idle_as_they_should),
        cmocka_unit_test(test_free_cells_are_those_of_the_rule),
        cmocka_unit_test(test_reordering_keeps_memory),
        cmocka_unit_test(test_reordering_counts_chunks),
        cmocka_unit_test(test_reordering_needs_memory_and_times),
        cmocka_unit_test(test_left_as_it_is),
        cmocka_unit_test(test_content_is_hashed),
        cmocka_unit_test(test_content_is_in_the_key_of_a_run),
        cmocka_unit_test(test_any_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
