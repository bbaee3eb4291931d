/* Rules of blocks: whole numbers as expressions. */
#include "models/schedule/rule.h"
#include "tests/support.h"

#include <inttypes.h>

/* d, c, i, p, v, m */
static const int64_t at[PC_RULE_NAMES] = {5, 1, 3, 8, 2, 24};

static pc_code work_out(const char *text, int64_t *value, pc_error *error) {
    pc_rule rule;
    pc_code code = pc_rule_parse(text, PC_RULE_ALL_NAMES, &rule, error);
    if (code) return code;
    code = pc_rule_value(&rule, at, value, error);
    pc_rule_free(&rule);
    return code;
}

static void assert_value(const char *text, int64_t expected) {
    pc_error error = {0};
    int64_t value = -77;
    if (work_out(text, &value, &error)) fail_msg("%s: %s", text, error.message);
    if (value != expected) fail_msg("%s: %" PRId64 ", not %" PRId64, text, value, expected);
}

static void assert_refused(const char *text, const char *part) {
    pc_error error = {0};
    int64_t value = -77;
    assert_int_equal(work_out(text, &value, &error), PC_ERROR_INPUT);
    if (!strstr(error.message, part)) fail_msg("%s: '%s' lacks '%s'", text, error.message, part);
    assert_int_equal(value, -77);
}

static void test_names_and_numbers(void **state) {
    (void)state;
    assert_value("0", 0);
    assert_value(" 42 ", 42);
    assert_value("d", 5);
    assert_value("c", 1);
    assert_value("i", 3);
    assert_value("p", 8);
    assert_value("v", 2);
    assert_value("m", 24);
    assert_value("1099511627776", PC_RULE_MOST);
}

static void test_operators_bind_as_in_c(void **state) {
    (void)state;
    assert_value("2*p - 1 - d", 10);
    assert_value("1 + 2 * 3", 7);
    assert_value("(1 + 2) * 3", 9);
    assert_value("20 - 5 - 3", 12);
    assert_value("-d + 1", -4);
    assert_value("--d", 5);
    assert_value("2 * -3", -6);
    assert_value("1 + 1 == 2", 1);
    assert_value("1 < 2 == 1", 1);
    assert_value("1 || 0 && 0", 1); /* && binds closer */
    assert_value("!0 + !5", 1);
    assert_value("p % 3 == 2", 1);
    assert_value("3 <= 3", 1);
    assert_value("3 >= 4", 0);
    assert_value("3 != 4", 1);
    assert_value("min(3, d, 4) + max(1, 2)", 5);
    assert_value("min(7)", 7);
    assert_value("0 ? 1 : 0 ? 2 : 3", 3); /* from the right */
    assert_value("d % 3 == 0 ? 10 : d % 3 == 1 ? 11 : 12", 12);
    assert_value("(p % 3 == 0 ? 2 : 0) + 2*p + d", 21);
}

/* floor(-7 / 2) = -4, and -7 = 2 * -4 + 1. */
static void test_division_rounds_down(void **state) {
    (void)state;
    assert_value("7 / 2", 3);
    assert_value("-7 / 2", -4);
    assert_value("-7 % 2", 1);
    assert_value("7 / -2", -4);
    assert_value("7 % -2", -1);
    assert_value("-8 / 2", -4);
    assert_value("-8 % 2", 0);
    assert_value("(d - p) % 6", 3);
}

/* What is not asked for is not worked out. */
static void test_conditions_look_no_further(void **state) {
    (void)state;
    assert_value("1 ? 2 : 1 / 0", 2);
    assert_value("0 && 1 / 0", 0);
    assert_value("1 || 1 / 0", 1);
    assert_refused("0 || 1 / 0", "divides by zero");
    assert_refused("1 && 1 % 0", "divides by zero");
    assert_refused("0 ? 2 : 1 / 0", "divides by zero");
}

static void test_what_runs_over_is_refused(void **state) {
    (void)state;
    assert_refused("1099511627777", "at most 2^40");
    assert_refused("99999999999999999999999999", "at most 2^40");
    assert_refused("1099511627776 + 1", "more than 2^40");
    assert_refused("-1099511627776 - 1", "more than 2^40");
    assert_refused("1099511627776 * 1099511627776", "more than 2^40");
    assert_refused("-(1099511627776) * 2", "more than 2^40");
    assert_refused("p / (d - 5)", "divides by zero");
    assert_refused("p % 0", "divides by zero");
}

static void test_what_is_no_rule_is_refused(void **state) {
    (void)state;
    assert_refused("", "the end at byte 1");
    assert_refused("1 +", "the end at byte 4");
    assert_refused("(1", "expected ')'");
    assert_refused("1)", "expected an operator");
    assert_refused("1 2", "expected an operator");
    assert_refused("x", "one of d, c, i, p, v, m");
    assert_refused("dd", "one of d, c, i, p, v, m");
    assert_refused("min", "'(' and numbers");
    assert_refused("min()", "expected a number");
    assert_refused("min(1, )", "expected a number");
    assert_refused("max(1", "',' or ')'");
    assert_refused("1 ? 2", "':'");
    assert_refused("1 = 1", "expected an operator");
    assert_refused("1 & 1", "expected an operator");
    assert_refused("1.5", "expected an operator");
    assert_refused("\xc3\xa9", "'?' at byte 1");
    assert_refused("2**3", "expected a number");
}

static void test_only_some_names_are_known(void **state) {
    (void)state;
    pc_error error = {0};
    pc_rule rule;
    assert_int_equal(pc_rule_parse("p * v + m", PC_RULE_SHAPE_NAMES, &rule, &error), PC_OK);
    pc_rule_free(&rule);
    assert_int_equal(pc_rule_parse("p + d", PC_RULE_SHAPE_NAMES, &rule, &error), PC_ERROR_INPUT);
    assert_non_null(strstr(error.message, "one of p, v, m"));
}

/* Brackets, signs and conditions, one in the other: 32 deep, and no deeper. A long row is not deep. */
static void test_depth_and_length_are_bounded(void **state) {
    (void)state;
    char text[PC_RULE_TEXT_MAX + 100] = "";
    static const struct {
        const char *open, *close;
    } nests[] = {{"(", ")"}, {"-", ""}, {"!", ""}, {"max(", ")"}, {"1?", ":0"}, {"1?0:", ""}};
    for (size_t k = 0; k < sizeof nests / sizeof *nests; k++)
        for (int depth = 20; depth <= 100; depth += 80) {
            text[0] = '\0';
            for (int i = 0; i < depth; i++) strcat(text, nests[k].open);
            strcat(text, "1");
            for (int i = 0; i < depth; i++) strcat(text, nests[k].close);
            int64_t value;
            pc_error error = {0};
            pc_code code = work_out(text, &value, &error);
            assert_int_equal(code, depth == 20 ? PC_OK : PC_ERROR_INPUT);
            if (code) assert_non_null(strstr(error.message, "32 deep"));
        }
    strcpy(text, "1");
    for (int i = 1; i < 500; i++) strcat(text, "+1");
    assert_value(text, 500);
    memset(text, ' ', PC_RULE_TEXT_MAX + 1);
    text[PC_RULE_TEXT_MAX + 1] = '\0';
    assert_refused(text, "expected 1000 at most");
}

static void test_a_zeroed_rule_is_zero(void **state) {
    (void)state;
    pc_rule rule = {0};
    int64_t value = 7;
    assert_int_equal(pc_rule_value(&rule, at, &value, NULL), PC_OK);
    assert_int_equal(value, 0);
    pc_rule_free(&rule);
    assert_int_equal(pc_rule_number(41, &rule, NULL), PC_OK);
    assert_int_equal(pc_rule_value(&rule, at, &value, NULL), PC_OK);
    assert_int_equal(value, 41);
    pc_rule_free(&rule);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names_and_numbers),         cmocka_unit_test(test_operators_bind_as_in_c),
        cmocka_unit_test(test_division_rounds_down),      cmocka_unit_test(test_conditions_look_no_further),
        cmocka_unit_test(test_what_runs_over_is_refused), cmocka_unit_test(test_what_is_no_rule_is_refused),
        cmocka_unit_test(test_only_some_names_are_known), cmocka_unit_test(test_depth_and_length_are_bounded),
        cmocka_unit_test(test_a_zeroed_rule_is_zero),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
