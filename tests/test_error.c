/* An error keeps its parts, and its one line is what they say: W is what was wrong, E what was expected, F the file, K
 * the key, A and I what is around the place and within it, N the note. The line is [A: ][F[:line]: ][K: ][I: ]W[;
 * expected E][; N]. */
#include "engine/error.h"
#include "tests/support.h"

/* All but the place. */
static void assert_parts(const pc_error *error, const char *const wanted[]) {
    static const pc_error_part others[] = {PC_ERROR_PART_AROUND, PC_ERROR_PART_WITHIN, PC_ERROR_PART_WHAT,
                                           PC_ERROR_PART_EXPECTED, PC_ERROR_PART_NOTE};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_string_equal(pc_error_part_of(error, others[i]), wanted[i]);
}

static void assert_place(const pc_error *error, const char *file, unsigned line, const char *key) {
    assert_string_equal(pc_error_part_of(error, PC_ERROR_PART_FILE), file);
    assert_string_equal(pc_error_part_of(error, PC_ERROR_PART_KEY), key);
    assert_int_equal(error->line, line);
}

/* Only the format is searched for what was expected: an argument may say the same words. */
static void test_set(void **state) {
    (void)state;
    pc_error error = {0};
    assert_parts(&error, (const char *[]){"", "", "", "", ""}); /* all zero */
    assert_int_equal(pc_error_set(&error, PC_ERROR_IO, "%d of %s; expected %d%s", 3, "a", 4, " b"), PC_ERROR_IO);
    assert_parts(&error, (const char *[]){"", "", "3 of a", "4 b", ""});
    assert_string_equal(error.message, "3 of a; expected 4 b");
    pc_error_set(&error, PC_ERROR_INPUT, "%s: no", "x; expected y");
    assert_parts(&error, (const char *[]){"", "", "x; expected y: no", "", ""});
    assert_string_equal(error.message, "x; expected y: no");
    pc_error_set(&error, PC_ERROR_INPUT, "%s: no; expected %s", "x; expected y", "z; expected none");
    assert_parts(&error, (const char *[]){"", "", "x; expected y: no", "z; expected none", ""});
    pc_error_set(&error, PC_ERROR_INPUT, "100%%; expected less; expected now"); /* the first in the format counts */
    assert_parts(&error, (const char *[]){"", "", "100%", "less; expected now", ""});
    assert_string_equal(error.message, "100%; expected less; expected now");
    assert_int_equal(error.code, PC_ERROR_INPUT);
    pc_error_set(&error, PC_ERROR_INPUT, "a\nb; expected \x1b[1m"); /* part by part plain */
    assert_parts(&error, (const char *[]){"", "", "a?b", "?[1m", ""});
    assert_string_equal(error.message, "a?b; expected ?[1m");
}

static void test_blame(void **state) {
    (void)state;
    pc_error error;
    assert_int_equal(pc_error_blame(&error, "stages[5].W", "missing; expected %d", 7), PC_ERROR_INPUT);
    assert_int_equal(error.code, PC_ERROR_INPUT);
    assert_place(&error, "", 0, "stages[5].W");
    assert_string_equal(error.message, "stages[5].W: missing; expected 7");
    assert_false(error.is_rule);
    pc_error_set_key(&error, "tp");
    assert_string_equal(error.message, "tp: missing; expected 7");
    error.is_rule = true;
    pc_error_place(&error, "a.yaml", 3, "setting.tp"); /* the key's whole path replaces it */
    assert_string_equal(error.message, "a.yaml:3: setting.tp: missing; expected 7");
    assert_true(error.is_rule);
    pc_error_note(&error, "%d runs are kept", 2);
    pc_error_set(&error, PC_ERROR_IO, "disk"); /* another error has nothing of the one before */
    assert_place(&error, "", 0, "");
    assert_false(error.is_rule);
    assert_parts(&error, (const char *[]){"", "", "disk", "", ""});
    assert_string_equal(error.message, "disk");
}

static void test_place(void **state) {
    (void)state;
    pc_error error;
    pc_error_blame(&error, "W", "missing");
    pc_error_place(&error, "a.yaml", 12, "stages[5].W");
    assert_string_equal(error.message, "a.yaml:12: stages[5].W: missing");
    assert_string_equal(pc_error_part_of(&error, PC_ERROR_PART_WHAT), "missing");
    assert_place(&error, "a.yaml", 12, "stages[5].W");
    pc_error_place(&error, "b.yaml", 0, ""); /* a file that named the other */
    assert_string_equal(error.message, "b.yaml: a.yaml:12: stages[5].W: missing");
    assert_parts(&error, (const char *[]){"", "a.yaml:12: stages[5].W", "missing", "", ""});
    assert_place(&error, "b.yaml", 0, "");
    pc_error_replace(&error, "--pp", 0, "");
    assert_string_equal(error.message, "--pp: a.yaml:12: stages[5].W: missing");
    pc_error_set(&error, PC_ERROR_INPUT, "missing");
    pc_error_place(&error, "a\xe2\x80\xa8\xff", 0, ""); /* a line separator and no UTF-8: what is shown is shorter */
    assert_string_equal(error.message, "a??: missing");
    pc_error_replace(&error, "--pp", 0, "");
    assert_string_equal(error.message, "--pp: missing");
    assert_int_equal(pc_error_refuse(&error, "c.csv", 4, "t", "%d; expected %d", 1, 2), PC_ERROR_INPUT);
    assert_string_equal(error.message, "c.csv:4: t: 1; expected 2");
    assert_parts(&error, (const char *[]){"", "", "1", "2", ""});
}

/* In front of all: around the place, or, where there is none yet, on the way that a place will begin. */
static void test_prefix(void **state) {
    (void)state;
    pc_error error;
    pc_error_set(&error, PC_ERROR_INPUT, "W; expected E");
    pc_error_prefix(&error, "I%d", 2);
    pc_error_prefix(&error, "I%d", 1);
    assert_parts(&error, (const char *[]){"", "I1: I2", "W", "E", ""});
    pc_error_place(&error, "F", 7, "K");
    pc_error_prefix(&error, "A2");
    pc_error_prefix(&error, "A1");
    pc_error_note(&error, "N");
    assert_string_equal(error.message, "A1: A2: F:7: K: I1: I2: W; expected E; N");
    assert_parts(&error, (const char *[]){"A1: A2", "I1: I2", "W", "E", "N"});
    pc_error_replace(&error, "G", 0, "L"); /* the place alone */
    assert_string_equal(error.message, "A1: A2: G: L: I1: I2: W; expected E; N");
    pc_error_place(&error, "H", 1, ""); /* everything that was the way is now within */
    assert_string_equal(error.message, "H:1: A1: A2: G: L: I1: I2: W; expected E; N");
    assert_parts(&error, (const char *[]){"", "A1: A2: G: L: I1: I2", "W", "E", "N"});
    pc_error_blame(&error, "K", "W");
    pc_error_prefix(&error, "A");
    assert_string_equal(error.message, "A: K: W");
    pc_error_place(&error, "F", 0, "");
    assert_string_equal(error.message, "F: A: K: W");
}

/* A copy has all of it; a key that is to blame for another error stands in front of its way. */
static void test_copy(void **state) {
    (void)state;
    pc_error cause = {0}, error = {0};
    pc_error_refuse(&cause, "gpu.yaml", 4, "memory", "-1; expected more");
    cause.is_rule = true;
    assert_int_equal(pc_error_copy(&error, &cause), PC_ERROR_INPUT);
    assert_memory_equal(&error, &cause, sizeof error);
    assert_int_equal(pc_error_copy_blame(&error, "machine", &cause), PC_ERROR_INPUT);
    assert_string_equal(error.message, "machine: gpu.yaml:4: memory: -1; expected more");
    assert_place(&error, "", 0, "machine");
    assert_parts(&error, (const char *[]){"", "gpu.yaml:4: memory", "-1", "more", ""});
    pc_error_place(&error, "s.yaml", 2, "setting.machine");
    assert_string_equal(error.message, "s.yaml:2: setting.machine: gpu.yaml:4: memory: -1; expected more");
    pc_error_file(&cause, "p.h5", 2 /* ENOENT */, "a profile");
    assert_place(&cause, "p.h5", 0, "");
    assert_string_equal(pc_error_part_of(&cause, PC_ERROR_PART_EXPECTED), "a profile");
    pc_error_copy_blame(&error, "profile", &cause);
    assert_string_equal(error.message, "profile: p.h5: No such file or directory; expected a profile");
}

/* Nobody asks for the error: the code is the same. */
static void test_nobody(void **state) {
    (void)state;
    pc_error cause;
    assert_int_equal(pc_error_set(NULL, PC_ERROR_IO, "%s", "W"), PC_ERROR_IO);
    assert_int_equal(pc_error_blame(NULL, "tp", "%s", ""), PC_ERROR_INPUT);
    assert_int_equal(pc_error_refuse(NULL, "F", 1, "K", "W"), PC_ERROR_INPUT);
    assert_int_equal(pc_error_file(NULL, "F", 2, "E"), PC_ERROR_INPUT);
    assert_int_equal(pc_error_no_memory(NULL), PC_ERROR_NO_MEMORY);
    pc_error_no_memory(&cause);
    assert_int_equal(pc_error_copy(NULL, &cause), PC_ERROR_NO_MEMORY);
    assert_int_equal(pc_error_copy_blame(NULL, "K", &cause), PC_ERROR_NO_MEMORY);
    pc_error_place(NULL, "a", 1, "b");
    pc_error_replace(NULL, "a", 1, "b");
    pc_error_set_key(NULL, "b");
    pc_error_prefix(NULL, "%s", "A");
    pc_error_note(NULL, "%s", "N");
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
    }
    pc_error_replace(&error, "--set", 0, "");
    assert_int_equal(strncmp(error.message, "--set: ", 7), 0);
}

/* The parts have PC_ERROR_PARTS_SIZE bytes together, one of each for its end. What fits is whole, whichever part it is;
 * of what does not, the longest part gives, and the short ones stay. */
static void test_room(void **state) {
    (void)state;
    enum { ROOM = PC_ERROR_PARTS_SIZE - PC_ERROR_PARTS }; /* letters */
    char text[2 * ROOM + 1];
    pc_error error;
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    pc_error_set(&error, PC_ERROR_INPUT, "W; expected %.*s", ROOM - 1, text);
    assert_int_equal(strlen(pc_error_part_of(&error, PC_ERROR_PART_EXPECTED)), ROOM - 1);
    assert_null(strstr(pc_error_part_of(&error, PC_ERROR_PART_EXPECTED), " ... "));
    pc_error_set(&error, PC_ERROR_INPUT, "W; expected %.*s", ROOM, text); /* one too many */
    assert_int_equal(strlen(pc_error_part_of(&error, PC_ERROR_PART_EXPECTED)), ROOM - 1);
    assert_non_null(strstr(pc_error_part_of(&error, PC_ERROR_PART_EXPECTED), "x ... x"));
    assert_string_equal(pc_error_part_of(&error, PC_ERROR_PART_WHAT), "W");
    for (int what = 0; what <= 2 * ROOM; what += 37) /* never more than the room, whatever is long */
        for (int expected = 0; expected <= 2 * ROOM; expected += 41)
            for (int note = 0; note <= 2 * ROOM; note += 397) {
                size_t sum = 0;
                pc_error_set(&error, PC_ERROR_INPUT, "%.*s; expected %.*s", what, text, expected, text);
                pc_error_note(&error, "%.*s", note, text);
                for (int i = 0; i < PC_ERROR_PARTS; i++) sum += strlen(pc_error_part_of(&error, (pc_error_part)i));
                if (what + expected + note <= ROOM)
                    assert_int_equal(sum, what + expected + note);
                else
                    assert_true(sum <= ROOM && sum >= ROOM / 2);
                assert_true(strlen(error.message) < sizeof error.message);
            }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_set),    cmocka_unit_test(test_blame), cmocka_unit_test(test_place),
        cmocka_unit_test(test_prefix), cmocka_unit_test(test_copy),  cmocka_unit_test(test_nobody),
        cmocka_unit_test(test_long),   cmocka_unit_test(test_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
