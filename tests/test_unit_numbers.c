/* The parser of plain numbers: exactness of fractions, whole numbers, counts, amounts and switches. */
#include "scenarios/units.h"
#include "tests/support.h"

#include <inttypes.h>
#include <math.h>

/* Any double, printed with 17 digits, comes back as itself. */
static void test_numbers_are_exact(void **state) {
    (void)state;
    test_random random = {2};
    for (long i = 0; i < test_cases(5000, 20000); i++) {
        char text[64];
        double expected = ldexp((double)(test_draw(&random) >> 11), (int)test_between(&random, -300, 299)), number = -7;
        snprintf(text, sizeof text, i % 2 ? "%.17g" : "%.16e", expected);
        assert_int_equal(pc_parse_number(text, &number, NULL), PC_OK);
        assert_true(number == expected);
    }
    double number = -7;
    assert_int_equal(pc_parse_number("0.2431", &number, NULL), PC_OK);
    assert_true(number == 0.2431);
    assert_int_equal(pc_parse_number("1e400", &number, NULL), PC_ERROR_INPUT);
    assert_int_equal(pc_parse_number("12 ms", &number, NULL), PC_ERROR_INPUT);
    assert_true(number == 0.2431);
}

static void assert_integer(const char *text, int64_t least, int64_t most, bool accepted) {
    int64_t number = 424242;
    pc_code code = pc_parse_integer(text, least, most, &number, NULL);
    if ((code == PC_OK) != accepted) fail_msg("'%s' in %" PRId64 " to %" PRId64, text, least, most);
    assert_true(accepted ? number == strtoll(text, NULL, 10) : number == 424242);
}

static void assert_count(const char *text, int64_t expected) {
    int64_t number = -7;
    pc_error error = {0};
    if (pc_parse_count(text, 1, INT32_MAX, &number, &error)) fail_msg("%s", error.message);
    assert_int_equal(number, expected);
}

/* Of tokens, sequences and GPUs k is 1024: 32k tokens are 32 * 1024. */
static void test_counts(void **state) {
    (void)state;
    static const struct {
        const char *text, *message;
    } bad[] = {
        {"024", "024: begins with a zero; expected a whole number from 1 to 2147483647"},
        {"00", "00: begins with a zero"},
        {"1,024", "1,024: has a comma; expected 1024"},
        {"1,024,000", "1,024,000: has a comma; expected 1024000"},
        {"1,02", "1,02: not a whole number"},
        {"1024,000", "1024,000: not a whole number"},
        {"0", "0: out of range"},
        {"0k", "0k: out of range"},
        {"2097152k", "2097152k: out of range"}, /* 2^31 */
        {"9223372036854775807k", "9223372036854775807k: out of range"},
        {"k", "k: not a whole number"},
        {"32kk", "32kk: not a whole number"},
        {"1.5k", "1.5k: not a whole number"},
        {"32 k", "32 k: not a whole number"},
        {"1..8", "1..8: a range, and not in a list; expected a whole number from 1 to 2147483647"},
    };
    assert_count("32k", 32768);
    assert_count("32K", 32768);
    assert_count(" 1k ", 1024);
    assert_count("1M", 1048576);
    assert_count("2097151k", INT32_MAX - 1023); /* 2^31 - 1024 */
    assert_count("10", 10);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        pc_error error = {0};
        int64_t number = -7;
        assert_int_equal(pc_parse_count(bad[i].text, 1, INT32_MAX, &number, &error), PC_ERROR_INPUT);
        assert_int_equal(number, -7);
        if (strncmp(error.message, bad[i].message, strlen(bad[i].message)) != 0)
            fail_msg("'%s': %s", bad[i].text, error.message);
    }
}

static void assert_amount(const char *text, int64_t expected) {
    int64_t number = -7;
    pc_error error = {0};
    if (pc_parse_amount(text, &number, &error)) fail_msg("%s", error.message);
    assert_int_equal(number, expected);
}

/* Of training tokens B and T are powers of ten; what is a power of 1024 elsewhere is not read. */
static void test_amounts(void **state) {
    (void)state;
    static const struct {
        const char *text, *message;
    } bad[] = {
        {"0", "0: is zero; expected a number above zero such as 15T (10^12), 300B (10^9) or 250000000"},
        {"0B", "0B: is zero"},
        {"500M", "500M: unknown unit 'M'"},
        {"32k", "32k: unknown unit 'k'"},
        {"15t", "15t: unknown unit 't'"},
        {"-1T", "-1T: negative"},
        {"T", "T: not a number"},
        {"1,000,000", "1,000,000: has a comma; expected 1000000"},
        {"9223373T", "9223373T: too large"}, /* 2^63 is 9223372.04 * 10^12 */
    };
    assert_amount("15T", INT64_C(15000000000000));
    assert_amount("1.5T", INT64_C(1500000000000));
    assert_amount(" 300 B ", INT64_C(300000000000));
    assert_amount("3e11", INT64_C(300000000000));
    assert_amount("250000000", 250000000);
    assert_amount("9223372T", INT64_C(9223372000000000000));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        pc_error error = {0};
        int64_t number = -7;
        assert_int_equal(pc_parse_amount(bad[i].text, &number, &error), PC_ERROR_INPUT);
        assert_int_equal(number, -7);
        if (strncmp(error.message, bad[i].message, strlen(bad[i].message)) != 0)
            fail_msg("'%s': %s", bad[i].text, error.message);
    }
}

static void test_integers(void **state) {
    (void)state;
    assert_integer("1", 1, 10, true);
    assert_integer(" 10 ", 1, 10, true);
    assert_integer("0", 1, 10, false);
    assert_integer("11", 1, 10, false);
    assert_integer("-3", -5, 5, true);
    assert_integer("9223372036854775807", INT64_MIN, INT64_MAX, true);
    assert_integer("-9223372036854775808", INT64_MIN, INT64_MAX, true);
    assert_integer("9223372036854775808", INT64_MIN, INT64_MAX, false);
    assert_integer("-9223372036854775809", INT64_MIN, INT64_MAX, false);
    assert_integer("18446744073709551617", 0, INT64_MAX, false); /* 2^64 + 1: must not wrap to 1 */
    static const char *const bad[] = {"",      " ",   "-",    "+1",  "1.0", "1e3", "0x1", "1 2",
                                      "1_000", "one", "1 ms", "--1", "01",  "-01", "1k"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) assert_integer(bad[i], -10, 1000, false);
}

/* What every parser of a quantity refuses, by the word that its message has. */
static void test_fractions_and_switches(void **state) {
    (void)state;
    double fraction;
    bool is_on;
    pc_error error;
    assert_int_equal(pc_parse_fraction("0.25", &fraction, NULL), PC_OK);
    assert_true(fraction == 0.25);
    assert_int_equal(pc_parse_fraction("1", &fraction, NULL), PC_OK);
    assert_int_equal(pc_parse_fraction("1.01", &fraction, &error), PC_ERROR_INPUT);
    assert_string_equal(error.message, "1.01: out of range; expected a fraction from 0 to 1");
    assert_true(fraction == 1); /* as it was */
    assert_int_equal(pc_parse_fraction("-0.1", &fraction, NULL), PC_ERROR_INPUT);
    assert_int_equal(pc_parse_switch("true", &is_on, NULL), PC_OK);
    assert_true(is_on);
    assert_int_equal(pc_parse_switch("True", &is_on, &error), PC_ERROR_INPUT);
    assert_string_equal(error.message, "True: not a truth value (did you mean true?); expected true or false");
    assert_true(is_on);
    assert_int_equal(pc_parse_switch("false", &is_on, NULL), PC_OK);
    assert_false(is_on);
    assert_int_equal(pc_parse_switch("off", &is_on, &error), PC_ERROR_INPUT);
    assert_string_equal(error.message, "off: not a truth value (did you mean false?); expected true or false");
    assert_int_equal(pc_parse_switch("", &is_on, &error), PC_ERROR_INPUT);
    assert_string_equal(error.message, "empty; expected true or false");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers_are_exact),
        cmocka_unit_test(test_counts),
        cmocka_unit_test(test_amounts),
        cmocka_unit_test(test_integers),
        cmocka_unit_test(test_fractions_and_switches),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
