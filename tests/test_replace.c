/* A file is replaced whole or not at all, and what is being written goes with the process. */
#define _GNU_SOURCE /* O_TMPFILE */
#include "tests/folder.h"

#include "engine/alloc.h"
#include "results/replace.h"

#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/wait.h>

static void write_new(const char *path, const char *text) {
    pc_error error;
    pc_replacement replacement;
    assert_int_equal(pc_replacement_begin(path, &replacement, &error), PC_OK);
    assert_int_equal(pc_replacement_write(&replacement, text, strlen(text), &error), PC_OK);
    assert_int_equal(pc_replacement_commit(&replacement, &error), PC_OK);
}

static void assert_holds(const char *path, const char *text) {
    char found[64] = "";
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_int_equal(fread(found, 1, sizeof found - 1, file), strlen(text));
    assert_string_equal(found, text);
    fclose(file);
}

static void test_whole_and_with_the_permissions_of_before(void **state) {
    const folder *at = *state;
    struct stat status;
    write_new(at->file, "one");
    assert_int_equal(stat(at->file, &status), 0);
    mode_t mask = umask(0);
    umask(mask);
    assert_int_equal(status.st_mode & 07777, 0666 & ~mask);
    assert_int_equal(chmod(at->file, 0640), 0);
    write_new(at->file, "two, longer");
    assert_holds(at->file, "two, longer");
    assert_int_equal(stat(at->file, &status), 0);
    assert_int_equal(status.st_mode & 07777, 0640);
    assert_int_equal(count_entries(at->path), 1);
}

static void test_given_up(void **state) {
    const folder *at = *state;
    pc_error error;
    pc_replacement replacement;
    write_new(at->file, "one");
    assert_int_equal(pc_replacement_begin(at->file, &replacement, &error), PC_OK);
    assert_int_equal(pc_replacement_write(&replacement, "two", 3, &error), PC_OK);
    pc_replacement_discard(&replacement);
    assert_holds(at->file, "one");
    assert_int_equal(count_entries(at->path), 1);
}

static bool has_nameless_files(const char *path) {
    int descriptor = open(path, O_TMPFILE | O_RDWR, 0600);
    if (descriptor >= 0) close(descriptor);
    return descriptor >= 0;
}

static void test_killed_it_leaves_nothing(void **state) {
    const folder *at = *state;
    pc_error error;
    pc_replacement replacement;
    int status;
    if (!has_nameless_files(at->path)) skip();
    write_new(at->file, "one");
    pid_t child = fork();
    if (child == 0) {
        if (!pc_replacement_begin(at->file, &replacement, &error) &&
            !pc_replacement_write(&replacement, "two", 3, &error))
            raise(SIGKILL);
        _exit(1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    assert_holds(at->file, "one");
    assert_int_equal(count_entries(at->path), 1);
}

static void test_messages_say_what_was_expected(void **state) {
    const folder *at = *state;
    pc_error error;
    char path[160], wanted[512];
    assert_int_equal(pc_replacement_probe(at->path, &error), PC_ERROR_INPUT);
    snprintf(wanted, sizeof wanted, "%s: is a folder; expected a file", at->path);
    assert_string_equal(error.message, wanted);
    snprintf(path, sizeof path, "%s/no/x", at->path);
    assert_int_equal(pc_replacement_probe(path, &error), PC_ERROR_INPUT);
    snprintf(wanted, sizeof wanted, "%s: there is no folder '%s/no'; expected one that is there", path, at->path);
    assert_string_equal(error.message, wanted);
    write_new(at->file, "one");
    snprintf(path, sizeof path, "%s/x", at->file);
    assert_int_equal(pc_replacement_probe(path, &error), PC_ERROR_INPUT);
    assert_non_null(strstr(error.message, "; expected "));
}

static void test_where_links_lead(void **state) {
    const folder *at = *state;
    pc_error error;
    char link[160], loop[160], *target;
    snprintf(link, sizeof link, "%s/link", at->path);
    snprintf(loop, sizeof loop, "%s/loop", at->path);
    assert_int_equal(symlink("x", link), 0);
    assert_int_equal(symlink("loop", loop), 0);
    assert_int_equal(pc_replacement_target(link, &target, &error), PC_OK);
    assert_string_equal(target, at->file);
    pc_free(target);
    write_new(link, "one");
    assert_holds(at->file, "one");
    assert_int_equal(pc_replacement_target(at->file, &target, &error), PC_OK);
    assert_string_equal(target, at->file);
    pc_free(target);
    assert_int_equal(pc_replacement_target(loop, &target, &error), PC_ERROR_INPUT);
    assert_null(target);
    unlink(link);
    unlink(loop);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST_IN_FOLDER(test_whole_and_with_the_permissions_of_before, "x"),
        TEST_IN_FOLDER(test_given_up, "x"),
        TEST_IN_FOLDER(test_killed_it_leaves_nothing, "x"),
        TEST_IN_FOLDER(test_where_links_lead, "x"),
        TEST_IN_FOLDER(test_messages_say_what_was_expected, "x"),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
