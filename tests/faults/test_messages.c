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
    assert_plain("\xc2\x9b", "?");                 /* U+009B, the other way to begin a sequence */
    assert_plain("\xc2\xa0", "\xc2\xa0");          /* the first behind them */
    assert_plain("\x9b\xff\xc3", "???");           /* no UTF-8 */
    assert_plain("\xc3(", "?(");                   /* cut off by another character */
    assert_plain("\xe6\xbc", "??");                /* and by the end */
    assert_plain("\xc0\xaf\xe0\x80\xaf", "?????"); /* longer forms than needed */
    assert_plain("\xed\xa0\x80", "???");           /* a surrogate */
    assert_plain("\xf4\x90\x80\x80\xf0\x80\x80\x80", "????????");
    assert_plain("\xf4\x8f\xbf\xbd", "\xf4\x8f\xbf\xbd"); /* U+10FFFD, the last but two, which are no characters */
}

static void write_character(unsigned c, char text[8]) {
    if (c < 0x80)
        snprintf(text, 8, "%c", (int)c);
    else if (c < 0x800)
        snprintf(text, 8, "%c%c", (int)(0xC0 | c >> 6), (int)(0x80 | (c & 0x3F)));
    else if (c < 0x10000)
        snprintf(text, 8, "%c%c%c", (int)(0xE0 | c >> 12), (int)(0x80 | (c >> 6 & 0x3F)), (int)(0x80 | (c & 0x3F)));
    else
        snprintf(text, 8, "%c%c%c%c", (int)(0xF0 | c >> 18), (int)(0x80 | (c >> 12 & 0x3F)),
                 (int)(0x80 | (c >> 6 & 0x3F)), (int)(0x80 | (c & 0x3F)));
}

/* Unicode's UnicodeData.txt: general categories Cc, Cf, Zl and Zp; the noncharacters of its section 23.7; fillers and
 * marks that DerivedCoreProperties.txt calls default ignorable. A character between two others: one '?' for it. */
static void test_what_turns_or_hides(void **state) {
    (void)state;
    static const unsigned hidden[][2] = {
        {0x80, 0x9F},       {0xAD, 0xAD},       {0x34F, 0x34F},     {0x600, 0x605},      {0x61C, 0x61C},
        {0x6DD, 0x6DD},     {0x70F, 0x70F},     {0x890, 0x891},     {0x8E2, 0x8E2},      {0x115F, 0x1160},
        {0x17B4, 0x17B5},   {0x180B, 0x180F},   {0x200B, 0x200F},   {0x2028, 0x202E},    {0x2060, 0x206F},
        {0x3164, 0x3164},   {0xFDD0, 0xFDEF},   {0xFEFF, 0xFEFF},   {0xFFA0, 0xFFA0},    {0xFFF0, 0xFFFB},
        {0xFFFE, 0xFFFF},   {0x110BD, 0x110BD}, {0x110CD, 0x110CD}, {0x13430, 0x1343F},  {0x1BCA0, 0x1BCA3},
        {0x1D173, 0x1D17A}, {0x1FFFE, 0x1FFFF}, {0xE0000, 0xE0FFF}, {0x10FFFE, 0x10FFFF}};
    static const unsigned shown[] = {0x20,   0x7E,    0xA0,    0xAC,    0xAE,    0x301,   0x606,  0x2010,
                                     0x2027, 0x202F,  0x205F,  0x2070,  0xFDCF,  0xFDF0,  0xFE0F, 0xFFFC,
                                     0xFFFD, 0x1FFFD, 0x1F680, 0xDFFFD, 0xE1000, 0x10FFFD};
    char character[8], text[16];
    for (size_t i = 0; i < sizeof hidden / sizeof *hidden; i++)
        for (unsigned c = hidden[i][0]; c <= hidden[i][1]; c++) {
            write_character(c, character);
            snprintf(text, sizeof text, "a%sb", character);
            assert_plain(text, "a?b");
        }
    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++) {
        write_character(shown[i], character);
        snprintf(text, sizeof text, "a%sb", character);
        assert_plain(text, text);
    }
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
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_plain), cmocka_unit_test(test_what_turns_or_hides),
                                       cmocka_unit_test(test_long), cmocka_unit_test(test_files)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
