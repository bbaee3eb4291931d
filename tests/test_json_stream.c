/* JSON token by token: the same tokens however the text is cut into pieces; what is refused, and on which line. */
#include "storage/json_stream.h"
#include "tests/support.h"

/* Gives the text in pieces of so many bytes. */
typedef struct source {
    const char *next, *end;
    size_t piece;
    bool fails; /* at the end */
} source;

static int64_t give(void *context, char *bytes, size_t size, pc_error *error) {
    source *s = context;
    size_t left = (size_t)(s->end - s->next), count = s->piece < size ? s->piece : size;
    if (left == 0 && s->fails) return pc_error_set(error, PC_ERROR_IO, "the disk is gone"), -1;
    if (count > left) count = left;
    memcpy(bytes, s->next, count);
    s->next += count;
    return (int64_t)count;
}

static source source_of(const char *text, size_t piece) {
    return (source){text, text + strlen(text), piece, false};
}

/* All tokens as one line: { k:a "text" 12 true } and so on; "!" and the message if the text is refused. */
static void write_tokens(const char *text, size_t piece, char *out, size_t size) {
    static pc_json json;
    static const char *const marks[] = {".", "{", "}", "[", "]", "k:", "\"", "#", "true", "false", "null"};
    source s = source_of(text, piece);
    pc_json_token token;
    pc_error error = {0};
    size_t used = 0;
    pc_json_begin(&json, give, &s);
    do {
        pc_code code = pc_json_next(&json, &token, &error);
        if (code) {
            snprintf(out + used, size - used, "!%u: %s", error.line, error.message);
            return;
        }
        used += (size_t)snprintf(out + used, size - used, "%s%s ", marks[token.kind], token.text);
    } while (token.kind != PC_JSON_END);
}

static void check(const char *text, const char *expected) {
    char out[4096];
    for (size_t piece = 1; piece <= strlen(text) + 1; piece++) {
        write_tokens(text, piece, out, sizeof out);
        assert_string_equal(out, expected);
    }
}

static void test_tokens(void **state) {
    (void)state;
    check("{\"a\": [1, -2.5e+3, true], \"b\": {}, \"c\":[] }", "{ k:a [ #1 #-2.5e+3 true ] k:b { } k:c [ ] } . ");
    check(" null ", "null . ");
    check("[NaN,-Infinity,inf,\"\"]", "[ null null null \" ] . ");
    check("0", "#0 . ");
}

/* U+00E9 is two bytes, U+20AC three, U+1F600, of two halves, four; a half alone is U+FFFD. */
static void test_texts(void **state) {
    (void)state;
    check("\"a\\n\\\"\\\\\\/\\u00e9\\u20AC\\ud83d\\ude00\"", "\"a\n\"\\/\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80 . ");
    check("\"\\ud83d.\"", "\"\xef\xbf\xbd. . ");
    check("\"\\ude00\"", "\"\xef\xbf\xbd . ");
    check("\"\\ud83d\\u0041\"", "\"\xef\xbf\xbd"
                                "A . ");
}

static void test_refusals(void **state) {
    (void)state;
    check("", "!1: the text ends in the middle; expected a value");
    check("[1,\n2", "[ #1 #2 !2: the text ends in the middle; expected ',' or ']'");
    check("[1 2]", "[ #1 !1: '2'; expected ',' or ']'");
    check("[1,]", "[ #1 !1: ']'; expected a value");
    check("{\"a\":1,}", "{ k:a #1 !1: '}'; expected a key in quotes");
    check("{a:1}", "{ !1: 'a'; expected a key in quotes");
    check("{\"a\" 1}", "{ k:a !1: '1'; expected a colon behind a key");
    check("[01]", "[ !1: 01; expected a number, a text, a list, an object, true, false or null");
    check("[1.]", "[ !1: 1.; expected a number, a text, a list, an object, true, false or null");
    check("[1e]", "[ !1: 1e; expected a number, a text, a list, an object, true, false or null");
    check("[yes]", "[ !1: yes; expected a number, a text, a list, an object, true, false or null");
    check("\"a\nb\"", "!1: byte 10; expected a text that ends in a quote, without control characters");
    check("\"a", "!1: the text ends in the middle; expected a text that ends in a quote, without control characters");
    check("\"\\x\"", "!1: 'x'; expected one of \"\\/bfnrtu behind a backslash");
    check("\"\\u12g4\"", "!1: 'g'; expected four hexadecimal digits behind \\u");
    check("1 2", "#1 !1: '2'; expected nothing behind the value");
    check("[}", "[ !1: '}'; expected a value");
}

/* 64 levels are read, 65 refused; and a text of 5,000 bytes keeps 4,095. */
static void test_limits(void **state) {
    (void)state;
    static char text[8192], out[65536];
    for (int depth = PC_JSON_DEPTH_MAX; depth <= PC_JSON_DEPTH_MAX + 1; depth++) {
        memset(text, '[', (size_t)depth);
        memset(text + depth, ']', (size_t)depth);
        text[2 * depth] = '\0';
        write_tokens(text, 64, out, sizeof out);
        assert_int_equal(strchr(out, '!') != NULL, depth > PC_JSON_DEPTH_MAX);
    }
    static pc_json json;
    pc_json_token token;
    memset(text, 'x', sizeof text);
    text[0] = text[5001] = '"';
    text[5002] = '\0';
    source s = source_of(text, 1000);
    pc_json_begin(&json, give, &s);
    assert_int_equal(pc_json_next(&json, &token, NULL), PC_OK);
    assert_true(token.is_cut);
    assert_int_equal(token.length, PC_JSON_TEXT_SIZE - 1);
    assert_int_equal(pc_json_next(&json, &token, NULL), PC_OK);
    assert_int_equal(token.kind, PC_JSON_END);
}

static void test_skipping(void **state) {
    (void)state;
    static pc_json json;
    pc_json_token token;
    source s = source_of("{\"a\": {\"b\": [1, {\"c\": []}], \"d\": 2}, \"e\": 3}", 5);
    pc_json_begin(&json, give, &s);
    assert_int_equal(pc_json_next(&json, &token, NULL), PC_OK);
    assert_int_equal(pc_json_next(&json, &token, NULL), PC_OK);
    assert_string_equal(token.text, "a");
    assert_int_equal(pc_json_skip(&json, &token, NULL), PC_OK);
    assert_int_equal(pc_json_next(&json, &token, NULL), PC_OK);
    assert_string_equal(token.text, "e");
    assert_int_equal(pc_json_skip(&json, &token, NULL), PC_OK);
    assert_int_equal(pc_json_next(&json, &token, NULL), PC_OK);
    assert_int_equal(token.kind, PC_JSON_OBJECT_END);
}

static void test_reader_fails(void **state) {
    (void)state;
    static pc_json json;
    pc_json_token token;
    pc_error error = {0};
    source s = source_of("[1, ", 2);
    s.fails = true;
    pc_json_begin(&json, give, &s);
    pc_code code = PC_OK;
    while (!code) code = pc_json_next(&json, &token, &error);
    assert_int_equal(code, PC_ERROR_IO);
    assert_string_equal(error.message, "the disk is gone");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_tokens),   cmocka_unit_test(test_texts),
                                       cmocka_unit_test(test_refusals), cmocka_unit_test(test_limits),
                                       cmocka_unit_test(test_skipping), cmocka_unit_test(test_reader_fails)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
