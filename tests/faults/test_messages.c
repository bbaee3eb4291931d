/* Messages: what a terminal would obey does not get into them, of what is too long the middle goes, and whose fault it
 * is that a file cannot be opened. */
#include "tests/support.h"

#include "engine/error.h"

#include <errno.h>

static void assert_plain(const char *given, const char *expected) {
    char text[64];
    snprintf(text, sizeof text, "%s", given);
    pc_error_make_plain(text);
    assert_string_equal(text, expected);
}

/* RFC 3629, section 4: what UTF-8 is; ECMA-48: what C0 and C1 are. */
static void test_plain(void **state) {
    (void)state;
    assert_plain("plain, \xc3\xbc, \xe6\xbc\xa2, \xf0\x9f\x98\x80", "plain, \xc3\xbc, \xe6\xbc\xa2, \xf0\x9f\x98\x80");
    assert_plain("\x1b[31m\n\t\r\x7f", "?[31m????");
    assert_plain("\xc2\x9b", "??");                /* U+009B, the other way to begin a sequence */
    assert_plain("\xc2\xa0", "\xc2\xa0");          /* the first behind them */
    assert_plain("\x9b\xff\xc3", "???");           /* no UTF-8 */
    assert_plain("\xc3(", "?(");                   /* cut off by another character */
    assert_plain("\xe6\xbc", "??");                /* and by the end */
    assert_plain("\xc0\xaf\xe0\x80\xaf", "?????"); /* longer forms than needed */
    assert_plain("\xed\xa0\x80", "???");           /* a surrogate */
    assert_plain("\xf4\x90\x80\x80\xf0\x80\x80\x80", "????????");
    assert_plain("\xf4\x8f\xbf\xbf", "\xf4\x8f\xbf\xbf"); /* U+10FFFF, the last */
}

/* A path of 4000 bytes: its beginning stands, and at the end what is wrong with it. */
static void test_long(void **state) {
    (void)state;
    char path[4001];
    memset(path, 'p', sizeof path - 1);
    path[sizeof path - 1] = '\0';
    pc_error error = {0};
    pc_error_set(&error, PC_ERROR_INPUT, "%s: no such file; expected another", path);
    assert_int_equal(strlen(error.message), PC_ERROR_MESSAGE_SIZE - 1);
    assert_memory_equal(error.message, "pppp", 4);
    assert_non_null(strstr(error.message, "p ... p"));
    const char *end = error.message + strlen(error.message) - strlen(": no such file; expected another");
    assert_string_equal(end, ": no such file; expected another");
    pc_error_prefix(&error, "%s", path);
    assert_int_equal(strlen(error.message), PC_ERROR_MESSAGE_SIZE - 1);
    assert_non_null(strstr(error.message, ": no such file; expected another"));
}

static void test_files(void **state) {
    (void)state;
    pc_error error = {0};
    assert_int_equal(pc_error_file(&error, "x", ENOENT, "a file"), PC_ERROR_INPUT);
    assert_string_equal(error.message, "x: No such file or directory; expected a file");
    assert_int_equal(pc_error_file(&error, "x", EIO, "a file"), PC_ERROR_IO);
    assert_string_equal(error.message, "x: Input/output error");
    assert_int_equal(pc_error_file(&error, "x", EMFILE, "a file"), PC_ERROR_IO);
    assert_int_equal(pc_error_file(&error, "x", ENOMEM, "a file"), PC_ERROR_NO_MEMORY);
    assert_int_equal(pc_error_file(NULL, "x", ENOENT, "a file"), PC_ERROR_INPUT);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_plain), cmocka_unit_test(test_long),
                                       cmocka_unit_test(test_files)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
