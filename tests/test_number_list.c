/* Lists of whole numbers with ranges in them. */
#include "scenarios/number_list.h"
#include "tests/support.h"

#include <inttypes.h>

enum { TEXT_MOST = 1 << 16 };

typedef struct written {
    char text[TEXT_MOST];
    int count;
} written;

static pc_code write_value(void *context, pc_value value, pc_error *error) {
    written *to = context;
    (void)error;
    size_t used = strlen(to->text);
    snprintf(to->text + used, sizeof to->text - used, "%s%" PRId64, to->count ? "," : "", value.whole);
    to->count++;
    return PC_OK;
}

/* Reads "1, 2, 4..16" of `key`, entry by entry. */
static pc_code read_list(pc_key key, const char *list, written *to, pc_error *error) {
    char copy[256], *rest = copy;
    pc_node nodes[32] = {{.kind = PC_NODE_LIST}};
    snprintf(copy, sizeof copy, "%s", list);
    for (char *word; (word = strsep(&rest, ","));) nodes[++nodes[0].count] = (pc_node){.text = word, .size = 1};
    pc_code code = PC_OK;
    *to = (written){.count = 0};
    for (unsigned i = 0; i < nodes[0].count && !code; i++)
        code = pc_number_entry_read(key, nodes, i, write_value, to, error);
    return code;
}

static void assert_values(const char *list, const char *expected) {
    static written got;
    pc_error error = {0};
    if (read_list(PC_KEY_GPUS, list, &got, &error)) fail_msg("%s: %s", list, error.message);
    if (strcmp(got.text, expected) != 0) fail_msg("%s: %s, not %s", list, got.text, expected);
}

static void test_values(void **state) {
    (void)state;
    assert_values("1..8", "1,2,3,4,5,6,7,8");
    assert_values("8..8", "8");
    assert_values("4..7,16", "4,5,6,7,16");
    assert_values("1..2,5..6", "1,2,5,6"); /* behind a range by one again */
    assert_values("512..16384x2", "512,1024,2048,4096,8192,16384");
    assert_values("512..16k*2", "512,1024,2048,4096,8192,16384");
    assert_values("1..81x3", "1,3,9,27,81");
    assert_values("8..32+8", "8,16,24,32");
    assert_values("1,2,4..16", "1,2,4,8,16");         /* a ratio of 2 */
    assert_values("8,1,2,4..8", "8,1,2,4,8");         /* the two before it count */
    assert_values("8,16,24..48", "8,16,24,32,40,48"); /* a step of 8 */
    assert_values("1,2,3..6", "1,2,3,4,5,6");
    assert_values("32k,64k,128k..512k", "32768,65536,131072,262144,524288");
    assert_values(" 1 .. 3 ", "1,2,3");
    assert_values("1,24,128", "1,24,128"); /* nobody can tell it from 124,128 */
}

/* Of the 4096 values of the longest each is one more than the last. */
static void test_longest(void **state) {
    (void)state;
    static written got;
    assert_int_equal(read_list(PC_KEY_MICROBATCHES, "1..4096", &got, NULL), PC_OK);
    assert_int_equal(got.count, PC_RANGE_VALUES_MAX);
    assert_string_equal(got.text + strlen(got.text) - 10, ",4095,4096");
    assert_int_equal(read_list(PC_KEY_GPUS, "2147483647..2147483647", &got, NULL), PC_OK);
    assert_string_equal(got.text, "2147483647");
}

/* Of GPUs a range of more than 64 numbers doubles if its end is a power of two times its start, and no step is said. */
static void test_gpus_double(void **state) {
    (void)state;
    static const char *const cases[][2] = {{"512..16384", "512,1024,2048,4096,8192,16384"},
                                           {"8, 512..1024", NULL}, /* behind one number, as before */
                                           {"24..192", "24,48,96,192"},
                                           {"1..65", NULL},
                                           {"1..128", "1,2,4,8,16,32,64,128"},
                                           {"1..64", NULL},
                                           {"64..128+32", "64,96,128"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        static written got;
        pc_code code = read_list(PC_KEY_GPUS, cases[i][0], &got, NULL);
        if (cases[i][1])
            assert_string_equal(got.text, cases[i][1]);
        else
            assert_true(code || got.count >= 64);
    }
}

static void test_refused(void **state) {
    (void)state;
    static const char shape[] = "; expected a range such as 1..8, 8..64+8, 4..64x2, or 1,2,4..16";
    static const struct {
        const char *list, *message;
        bool has_shape;
    } cases[] = {
        {"8..2", "8..2: runs backwards", true},
        {"1..", "empty; expected a whole number from 1 to 2147483647", false},
        {"..8", "empty; expected a whole number from 1 to 2147483647", false},
        {"0..8", "0: out of range; expected a whole number from 1 to 2147483647", false},
        {"1...8", ".8: not a whole number; expected a whole number from 1 to 2147483647", false},
        {"1..8..9", "8..9: a range, and not in a list", false},
        {"1..8x1", "1..8x1: does not go on", true},
        {"1..8x0", "1..8x0: does not go on", true},
        {"1..8+0", "1..8+0: does not go on", true},
        {"1..8+99999999999999999999", "1..8+99999999999999999999: too large a step", true},
        {"1..8-1", "8-1: not a whole number", false},
        {"2,4..16", "4..16: behind one number, which says neither step nor ratio", true},
        {"1,2,8..64", "8..64: does not go on as the two numbers before it", true},
        {"4,2,1..8", "1..8: does not go on as the two numbers before it", true},
        {"1,2,4..20", "4..20: goes from 16 to 32; expected one of these at its end", false},
        {"8..60+8", "8..60+8: goes from 56 to 64; expected one of these at its end", false},
        {"1..4097", "1..4097: more than 4096 values; expected fewer, as of 1..4096x2, which doubles", false},
        {"1..2147483647", "1..2147483647: more than 4096 values", false},
        {"1..2147483647x2", "1..2147483647x2: goes from 1073741824 to 2147483648", false},
        {"12345678901234567890123456789012..3", "12345678901234567890123456789012..3: no range of numbers", true},
        {"1,024", "1,024 is 2 values, 1 and 024; expected 1024, without a comma", false},
        {"16,000,000", "16,000,000 is 3 values, 16, 000 and 000; expected 16000000, without a comma", false},
        {"8,1,024,512", "1,024,512 is 3 values, 1, 024 and 512; expected 1024512, without a comma", false},
        {"024", "024: begins with a zero", false},
        {"1024,024", "024: begins with a zero", false}, /* 1024 is no group */
        {"x", "x: not a whole number", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        static written got;
        pc_error error = {0};
        if (!read_list(PC_KEY_GPUS, cases[i].list, &got, &error)) fail_msg("%s was taken", cases[i].list);
        if (strncmp(error.message, cases[i].message, strlen(cases[i].message)) != 0)
            fail_msg("%s: %s", cases[i].list, error.message);
        if (cases[i].has_shape) assert_non_null(strstr(error.message, shape));
    }
    static written got;
    assert_int_equal(read_list(PC_KEY_ZERO, "0..3", &got, NULL), PC_OK);
    assert_string_equal(got.text, "0,1,2,3");
    assert_int_equal(read_list(PC_KEY_ZERO, "0..3x2", &got, NULL), PC_ERROR_INPUT); /* twice nothing */
}

/* Any list is read or refused with a message, and what is read of one range goes up. */
static void test_random_lists(void **state) {
    (void)state;
    static const char alphabet[] = "0123456789..,,kx+* ";
    test_random random = {11};
    for (long i = 0; i < test_cases(20000, 100000); i++) {
        static written got;
        char list[16];
        int length = (int)test_between(&random, 0, 15);
        for (int c = 0; c < length; c++) list[c] = alphabet[test_draw(&random) % (sizeof alphabet - 1)];
        list[length] = '\0';
        pc_error error = {0};
        pc_code code = read_list(PC_KEY_GPUS, list, &got, &error);
        if (code) assert_non_null(strstr(error.message, "; expected "));
        if (!code) assert_in_range(got.count, 1, 8 * PC_RANGE_VALUES_MAX);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_longest), cmocka_unit_test(test_gpus_double),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_random_lists),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
