/* Records of a CSV, as RFC 4180 has them; and its own writer's, which read back as the same. */
#include "storage/csv.h"
#include "storage/text.h"
#include "tests/support.h"

enum { MOST = 4 };

/* Reads all records into one text: fields between '|', records between '/', with the line in front: "1:a|b/2:c". */
static void check(const char *text, const char *expected) {
    char copy[512], found[1024] = "";
    char *field[MOST];
    assert_true(strlen(text) < sizeof copy);
    strcpy(copy, text);
    pc_csv csv = pc_csv_begin(copy);
    for (int count; (count = pc_csv_record(&csv, field, MOST)) != PC_CSV_END;) {
        char *end = found + strlen(found);
        end += sprintf(end, "%s%d:", found[0] ? "/" : "", (int)csv.line);
        if (count == PC_CSV_BAD_QUOTE) strcpy(end, "quote");
        if (count == PC_CSV_TOO_MANY) strcpy(end, "many");
        for (int i = 0; i < count; i++) end += sprintf(end, "%s%s", i ? "|" : "", field[i]);
    }
    assert_string_equal(found, expected);
}

static void test_plain(void **state) {
    (void)state;
    check("", "");
    check("a", "1:a");
    check("a,b\n", "1:a|b");
    check("a,b\nc,\n", "1:a|b/2:c|");
    check("a\r\nb\r\n", "1:a/2:b");
    check("a\r", "1:a");
    check(",,\n", "1:||");
    check("a\n\nb", "1:a/2:/3:b");
    check("\xef\xbb\xbf"
          "a,b",
          "1:a|b");
    check("  a b\t, c \r\n", "1:a b|c");
}

static void test_quotes(void **state) {
    (void)state;
    check("\"a,b\",c", "1:a,b|c");
    check("\"say \"\"so\"\"\"", "1:say \"so\"");
    check("\"\",\"\"\"\"", "1:|\"");
    check("a,\"two\nlines\"\nb", "1:a|two\nlines/3:b");
    check(" \" a \" ,b", "1: a |b");
    check("a\"b\",c", "1:a\"b\"|c"); /* a quote within a plain field is a letter */
}

/* The next record begins on the line behind the fault. */
static void test_faults(void **state) {
    (void)state;
    check("\"a\"b,c\nd", "1:quote/2:d");
    check("a,\"b\nc\nd", "1:quote/2:c/3:d");
    check("1,2,3,4,5\na", "1:many/2:a");
    check("1,2,3,4\na", "1:1|2|3|4/2:a");
}

/* What pc_text_add_csv writes reads back as the same, blanks at the ends of a plain field aside. */
static void test_back_and_forth(void **state) {
    (void)state;
    static const char letters[] = "ab,\"\n x";
    test_random random = {7};
    for (long i = 0; i < test_cases(300, 3000); i++) {
        pc_text text = {0};
        char cells[3][12], *field[MOST];
        for (int c = 0; c < 3; c++) {
            int size = (int)test_between(&random, 0, 10);
            for (int k = 0; k < size; k++) cells[c][k] = letters[test_draw(&random) % (sizeof letters - 1)];
            cells[c][size] = '\0';
            if (!strpbrk(cells[c], ",\"\n")) strcpy(cells[c], "plain");
            if (c) pc_text_add(&text, ",", 1);
            pc_text_add_csv(&text, cells[c]);
        }
        assert_false(text.failed);
        pc_csv csv = pc_csv_begin(text.data);
        assert_int_equal(pc_csv_record(&csv, field, MOST), 3);
        for (int c = 0; c < 3; c++) assert_string_equal(field[c], cells[c]);
        assert_int_equal(pc_csv_record(&csv, field, MOST), PC_CSV_END);
        pc_text_free(&text);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plain),
        cmocka_unit_test(test_quotes),
        cmocka_unit_test(test_faults),
        cmocka_unit_test(test_back_and_forth),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
