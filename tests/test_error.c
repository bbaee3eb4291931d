/* Where an error was: put together once, with the parts kept. */
#include "engine/error.h"
#include "tests/support.h"

static void test_blame(void **state) {
    (void)state;
    pc_error error;
    assert_int_equal(pc_error_blame(&error, "stages[5].W", "missing; expected %d", 7), PC_ERROR_INPUT);
    assert_int_equal(error.code, PC_ERROR_INPUT);
    assert_string_equal(error.key, "stages[5].W");
    assert_string_equal(error.message, "missing; expected 7");
    assert_string_equal(error.file, "");
    assert_false(error.is_rule);
    assert_int_equal(pc_error_blame(NULL, "tp", "%s", ""), PC_ERROR_INPUT);
    error.is_rule = true;
    pc_error_set(&error, PC_ERROR_IO, "disk"); /* another error has nothing of the one before */
    assert_string_equal(error.key, "");
    assert_false(error.is_rule);
}

static void test_place(void **state) {
    (void)state;
    pc_error error;
    pc_error_blame(&error, "W", "missing");
    pc_error_place(&error, "a.yaml", 12, "stages[5].W");
    assert_string_equal(error.message, "a.yaml:12: stages[5].W: missing");
    assert_string_equal(error.message + error.what, "missing");
    assert_string_equal(error.file, "a.yaml");
    assert_string_equal(error.key, "stages[5].W");
    assert_int_equal(error.line, 12);
    pc_error_place(&error, "b.yaml", 0, ""); /* a file that named the other */
    assert_string_equal(error.message, "b.yaml: a.yaml:12: stages[5].W: missing");
    assert_string_equal(error.message + error.what, "a.yaml:12: stages[5].W: missing");
    pc_error_replace(&error, "--pp", 0, "");
    assert_string_equal(error.message, "--pp: a.yaml:12: stages[5].W: missing");
    pc_error_set(&error, PC_ERROR_INPUT, "missing");
    pc_error_place(&error, "a\xe2\x80\xa8\xff", 0, ""); /* a line separator and no UTF-8: what is shown is shorter */
    assert_string_equal(error.message, "a??: missing");
    pc_error_replace(&error, "--pp", 0, "");
    assert_string_equal(error.message, "--pp: missing");
    pc_error_place(NULL, "a", 1, "b");
    pc_error_replace(NULL, "a", 1, "b");
}

/* However long the parts are: the place begins the line, the end of what was wrong ends it. */
static void test_long(void **state) {
    (void)state;
    char file[4000], what[4000];
    memset(file, 'f', sizeof file);
    memset(what, 'w', sizeof what);
    file[3999] = what[3998] = '\0';
    what[3997] = '!';
    pc_error error;
    pc_error_set(&error, PC_ERROR_INPUT, "%s", what);
    for (int i = 0; i < 3; i++) {
        pc_error_place(&error, file, 3, "key");
        size_t length = strlen(error.message);
        assert_int_equal(length, PC_ERROR_MESSAGE_SIZE - 1);
        assert_int_equal(error.message[0], 'f');
        assert_int_equal(error.message[length - 1], '!');
        assert_true(error.what <= length);
    }
    pc_error_replace(&error, "--set", 0, "");
    assert_int_equal(strncmp(error.message, "--set: ", 7), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_blame),
        cmocka_unit_test(test_place),
        cmocka_unit_test(test_long),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
