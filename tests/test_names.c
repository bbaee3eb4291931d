/* Which name a misspelt word probably means. */
#include "engine/names.h"
#include "tests/support.h"

#include <stdbool.h>

static const char *hint_of(const char *names, const char *word) {
    static char text[PC_NEAREST_TEXT];
    pc_nearest nearest = {.word = word};
    pc_nearest_offer_words(&nearest, names);
    return pc_nearest_hint(&nearest, text);
}

static void assert_hint(const char *names, const char *word, const char *expected) {
    const char *hint = hint_of(names, word);
    if (strcmp(hint, expected) != 0) fail_msg("'%s' of %s:%s, not%s", word, names, hint, expected);
}

static const char schedules[] = "gpipe|1f1b|eager-1f1b|1f1b-interleaved|zb-h1|zb-h2|zb-1p|zb-v|v-min|v-half";
static const char machines[] = "a100-pcie|dgx-a100|dgx-a100-40gb|dgx-b200|dgx-h100|hgx-h200|gb200-nvl72|selene";
static const char options[] = "microbatches|microbatch-size|global-batch|seq-len|tp|pp|dp|gpus|output|memory";

/* Case, '-', '_' and spaces do not count. */
static void test_the_same_word(void **state) {
    (void)state;
    assert_hint(schedules, "zbv", " (did you mean zb-v?)");
    assert_hint(schedules, "ZB_H1", " (did you mean zb-h1?)");
    assert_hint(options, "--seqlen", " (did you mean seq-len?)");
    assert_hint(options, "Micro Batches", " (did you mean microbatches?)");
    assert_hint("gpt3-13b|gpt3-1.3b", "gpt313b", " (did you mean gpt3-13b?)"); /* a point does */
}

/* One letter too many, too few, another, or two that changed places. */
static void test_slips(void **state) {
    (void)state;
    assert_hint("run|plan|list", "rnu", " (did you mean run?)");
    assert_hint("run|plan|list", "plans", " (did you mean plan?)");
    assert_hint("devices|stages", "devcies", " (did you mean devices?)");
    assert_hint("bandwidth|latency", "bandwith", " (did you mean bandwidth?)");
    assert_hint(schedules, "zb-h3", " (did you mean zb-h1 or zb-h2?)");
    assert_hint(options, "mem", " (did you mean memory?)");
    assert_hint("throughput|memory|cost", "trougput", " (did you mean throughput?)");
}

/* A part of several names means any of them, the shortest first, and no more than three. */
static void test_parts(void **state) {
    (void)state;
    assert_hint(machines, "h100", " (did you mean dgx-h100?)");
    assert_hint(machines, "a100", " (did you mean dgx-a100, a100-pcie or dgx-a100-40gb?)");
    assert_hint(schedules, "interleaved", " (did you mean 1f1b-interleaved?)");
    assert_hint(schedules, "h2", " (did you mean zb-h2?)"); /* short, but a piece between separators */
    assert_hint(options, "microbatch", " (did you mean microbatches or microbatch-size?)");
    assert_hint(options, "output-file", " (did you mean output?)");             /* the name is the part */
    assert_hint("a12x|a23x|a34x", "ax", "");                                    /* two letters are too little */
    assert_hint("run|plan|list", "rn", " (did you mean run?)");                 /* but for one slip */
    assert_hint("tp|pp|dp", "cp", "");                                          /* of two letters none */
    assert_hint("dgx-b200|hgx-h200|b200", "h200", " (did you mean hgx-h200?)"); /* rather than one slip away */
    assert_hint("gpus|slow-gpus|gpu-jitter", "gpu", " (did you mean gpus?)");   /* all of it but its end */
    assert_hint(schedules, "1f1b-inter", " (did you mean 1f1b-interleaved?)");  /* rather than 1f1b, which it holds */
}

/* Nothing is proposed for what is far from all. */
static void test_far(void **state) {
    (void)state;
    assert_hint(schedules, "2f2b", "");
    assert_hint(schedules, "", "");
    assert_hint(schedules, "--", "");
    assert_hint("tp|pp|dp", "cp", ""); /* every letter of a word of two counts */
    assert_hint("csv|json|table", "xml", "");
    assert_hint("run|plan", "simulate", "");
    assert_hint("", "word", "");
}

static void test_aliases(void **state) {
    (void)state;
    char text[PC_NEAREST_TEXT];
    pc_nearest nearest = {.word = "h100-sxm"};
    pc_nearest_offer_as(&nearest, "dgx-a100", "a100-sxm-80gb");
    pc_nearest_offer(&nearest, "dgx-h100");
    pc_nearest_offer_as(&nearest, "dgx-h100", "h100-sxm"); /* offered twice, and proposed once */
    assert_string_equal(pc_nearest_hint(&nearest, text), " (did you mean dgx-h100?)");
    assert_int_equal(nearest.count, 1);
}

/* Names too long to be kept, words too long to be compared, and all that is between. */
static void test_long_words(void **state) {
    (void)state;
    char word[300], text[PC_NEAREST_TEXT];
    for (size_t length = 1; length < sizeof word; length++) {
        memset(word, 'a', length);
        word[length] = '\0';
        pc_nearest nearest = {.word = word};
        for (int i = 0; i < 4; i++) pc_nearest_offer(&nearest, word + (length > 4 ? i : 0));
        pc_nearest_hint(&nearest, text);
        bool is_kept = length >= 2 && length < PC_NEAREST_NAME;
        if (length < 64 && length > 1) assert_int_equal(nearest.count > 0, is_kept);
        assert_true(strlen(text) < sizeof text);
    }
}

/* Any words: what is proposed was offered, the nearest first; none is read beyond its end (run under a sanitizer). */
static void test_random_words(void **state) {
    (void)state;
    static const char alphabet[] = "abAB-_ .1";
    test_random random = {7};
    for (long i = 0; i < test_cases(20000, 100000); i++) {
        char names[5][12];
        for (int n = 0; n < 5; n++) {
            int length = (int)test_between(&random, 0, 11);
            for (int c = 0; c < length; c++) names[n][c] = alphabet[test_draw(&random) % (sizeof alphabet - 1)];
            names[n][length] = '\0';
        }
        pc_nearest nearest = {.word = names[0]};
        for (int n = 1; n < 5; n++) pc_nearest_offer(&nearest, names[n]);
        assert_in_range(nearest.count, 0, PC_NEAREST_MAX);
        for (int k = 0; k < nearest.count; k++) {
            bool was_offered = false;
            for (int n = 1; n < 5; n++) was_offered = was_offered || strcmp(nearest.name[k], names[n]) == 0;
            assert_true(was_offered);
            if (k > 0) assert_true(nearest.rank[k - 1] <= nearest.rank[k]);
            if (k > 0) assert_string_not_equal(nearest.name[k - 1], nearest.name[k]);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_same_word), cmocka_unit_test(test_slips),   cmocka_unit_test(test_parts),
        cmocka_unit_test(test_far),           cmocka_unit_test(test_aliases), cmocka_unit_test(test_long_words),
        cmocka_unit_test(test_random_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
