/* A file is replaced whole or not at all, and what is being written goes with the process. */
#define _GNU_SOURCE /* O_TMPFILE */
#include "tests/folder.h"

#include "engine/alloc.h"
#include "storage/replace.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/syscall.h>
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

/* ---- links that others made ---- */

enum { NOBODY = 65534, SOMEBODY = 12345 };

static pc_code code_of_target(const char *path, pc_error *error) {
    char *target = NULL;
    pc_code code = pc_replacement_target(path, &target, error);
    pc_free(target);
    return code;
}

static void make_link(const char *to, const char *link, uid_t owner) {
    unlink(link);
    assert_int_equal(symlink(to, link), 0);
    assert_int_equal(lchown(link, owner, owner), 0);
}

static void assert_followed(const char *link, uid_t as, bool is_followed) {
    pc_error error = {0};
    assert_int_equal(seteuid(as), 0);
    pc_code code = code_of_target(link, &error);
    assert_int_equal(seteuid(0), 0);
    assert_int_equal(code, is_followed ? PC_OK : PC_ERROR_INPUT);
    if (!is_followed &&
        !strstr(error.message, "a link that another user made, in a folder where others may write, is not"))
        fail_msg("%s", error.message);
}

/* Who made the link, in whose folder of what mode, and who is led: followed are one's own, root's, and any where none
 * but the folder's owner could have put it. */
static void test_links_of_others(void **state) {
    const folder *at = *state;
    static const struct {
        uid_t owner, link, us;
        mode_t mode;
        bool is_followed;
    } cases[] = {
        {NOBODY, NOBODY, 0, 01777, false}, /* the folder's owner made it: a trap all the same */
        {NOBODY, NOBODY, 0, 0777, false},     {0, NOBODY, 0, 01777, false},
        {NOBODY, SOMEBODY, 0, 0777, false},   {NOBODY, NOBODY, 0, 0775, false},
        {NOBODY, NOBODY, 0, 0770, false},     {0, SOMEBODY, NOBODY, 01777, false},
        {0, SOMEBODY, NOBODY, 0775, false},   {0, 0, 0, 01777, true},
        {NOBODY, 0, 0, 0777, true},           {0, NOBODY, NOBODY, 01777, true},
        {SOMEBODY, 0, NOBODY, 0777, true},    {NOBODY, NOBODY, 0, 0755, true},
        {NOBODY, NOBODY, NOBODY, 0777, true},
    };
    char link[160];
    struct stat status;
    if (geteuid() != 0) skip(); /* nobody else's links to be had */
    snprintf(link, sizeof link, "%s/link", at->path);
    bool is_open = seteuid(NOBODY) == 0 && stat(at->path, &status) == 0; /* TMPDIR may be root's alone */
    assert_int_equal(seteuid(0), 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (cases[i].us != 0 && !is_open) continue;
        make_link("x", link, cases[i].link);
        assert_int_equal(chown(at->path, cases[i].owner, cases[i].owner), 0);
        assert_int_equal(chmod(at->path, cases[i].mode), 0);
        assert_followed(link, cases[i].us, cases[i].is_followed);
    }
    assert_int_equal(chown(at->path, 0, 0), 0);
    unlink(link);
}

/* A link of ours to a link of another's, both where all may write; nothing is written through it. */
static void test_a_chain_of_links(void **state) {
    const folder *at = *state;
    char own[160], other[160], precious[160];
    pc_error error;
    pc_replacement replacement;
    if (geteuid() != 0) skip();
    snprintf(own, sizeof own, "%s/own", at->path);
    snprintf(other, sizeof other, "%s/other", at->path);
    snprintf(precious, sizeof precious, "%s/precious", at->path);
    write_new(precious, "precious");
    assert_int_equal(chmod(at->path, 01777), 0);
    make_link("precious", other, NOBODY);
    make_link("other", own, 0);
    assert_followed(own, 0, false);
    assert_int_equal(pc_replacement_begin(own, &replacement, &error), PC_ERROR_INPUT);
    make_link("precious", own, 0);
    assert_followed(own, 0, true);
    assert_holds(precious, "precious");
    unlink(own);
    unlink(other);
    unlink(precious);
}

/* ---- what stands there is looked at again ---- */

static void write_text(const char *path, const char *text) {
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static pc_code commit_guarded(const char *path, const pc_standing *standing, void (*meanwhile)(const char *),
                              pc_error *error) {
    pc_replacement replacement;
    assert_int_equal(pc_replacement_begin(path, &replacement, error), PC_OK);
    pc_replacement_guard(&replacement, standing);
    assert_int_equal(pc_replacement_write(&replacement, "ours", 4, error), PC_OK);
    if (meanwhile) meanwhile(path);
    return pc_replacement_commit(&replacement, error);
}

static void comes(const char *path) {
    write_text(path, "foreign");
}

static void comes_empty(const char *path) {
    write_text(path, "");
}

static void comes_as_a_link(const char *path) {
    assert_int_equal(symlink("nowhere", path), 0);
}

static void goes(const char *path) {
    assert_int_equal(unlink(path), 0);
}

static void grows(const char *path) {
    write_text(path, "foreign, and longer");
}

static void is_changed_for_another(const char *path) {
    char other[200];
    snprintf(other, sizeof other, "%s.other", path);
    write_text(other, "one"); /* of the same size */
    assert_int_equal(rename(other, path), 0);
}

static void assert_kept(const folder *at, const char *end, const char *what, const pc_error *error) {
    char path[200], wanted[512];
    snprintf(path, sizeof path, "%s.new%s", at->file, end);
    assert_holds(path, "ours");
    snprintf(wanted, sizeof wanted, "%s: %s; it stays, and the results are in %s", at->file, what, path);
    assert_string_equal(error->message, wanted);
    assert_int_equal(unlink(path), 0);
}

static const char has_come[] = "has come since the command began; expected no file there";
static const char has_changed[] = "has changed since the command began; expected the file of then";

static void test_what_comes_meanwhile_stays(void **state) {
    const folder *at = *state;
    pc_error error = {0};
    struct stat status;
    assert_int_equal(commit_guarded(at->file, NULL, comes, &error), PC_ERROR_INPUT);
    assert_holds(at->file, "foreign");
    assert_kept(at, "", has_come, &error);
    goes(at->file);
    assert_int_equal(commit_guarded(at->file, NULL, comes_empty, &error), PC_ERROR_INPUT);
    assert_holds(at->file, "");
    assert_kept(at, "", has_come, &error);
    goes(at->file);
    assert_int_equal(commit_guarded(at->file, NULL, comes_as_a_link, &error), PC_ERROR_INPUT);
    assert_int_equal(lstat(at->file, &status), 0);
    assert_true(S_ISLNK(status.st_mode));
    assert_kept(at, "", has_come, &error);
    goes(at->file);
    assert_int_equal(commit_guarded(at->file, NULL, NULL, &error), PC_OK);
    assert_holds(at->file, "ours");
    assert_int_equal(count_entries(at->path), 1);
}

static void test_what_changes_meanwhile_stays(void **state) {
    const folder *at = *state;
    pc_error error = {0};
    write_new(at->file, "one");
    assert_int_equal(commit_guarded(at->file, NULL, grows, &error), PC_ERROR_INPUT);
    assert_holds(at->file, "foreign, and longer");
    assert_kept(at, "", has_changed, &error);
    write_new(at->file, "one"); /* not guarded: it replaces what stands there */
    assert_int_equal(commit_guarded(at->file, NULL, is_changed_for_another, &error), PC_ERROR_INPUT);
    assert_holds(at->file, "one");
    assert_kept(at, "", has_changed, &error);
    assert_int_equal(commit_guarded(at->file, NULL, goes, &error), PC_OK);
    assert_holds(at->file, "ours");
    assert_int_equal(commit_guarded(at->file, NULL, NULL, &error), PC_OK);
    assert_int_equal(count_entries(at->path), 1);
}

/* Looked at long before; and names beside that are taken. */
static void test_what_came_before(void **state) {
    const folder *at = *state;
    pc_error error = {0};
    pc_standing standing;
    char first[200];
    snprintf(first, sizeof first, "%s.new", at->file);
    assert_int_equal(pc_replacement_look(at->file, &standing, &error), PC_OK);
    assert_false(standing.is_there);
    comes(at->file);
    assert_int_equal(symlink("nowhere", first), 0);
    assert_int_equal(commit_guarded(at->file, &standing, NULL, &error), PC_ERROR_INPUT);
    assert_kept(at, ".2", has_come, &error);
    goes(first);
    assert_int_equal(pc_replacement_look(at->file, &standing, &error), PC_OK);
    assert_true(standing.is_there);
    assert_int_equal(commit_guarded(at->file, &standing, NULL, &error), PC_OK);
    assert_int_equal(count_entries(at->path), 1);
}

/* ".new" behind it is longer than a name may be, 255 bytes: it keeps the name that it has for an instant. */
static void test_a_name_that_is_too_long(void **state) {
    const folder *at = *state;
    pc_error error = {0};
    char name[253] = "", path[400];
    memset(name, 'n', sizeof name - 1);
    snprintf(path, sizeof path, "%s/%s", at->path, name);
    assert_int_equal(commit_guarded(path, NULL, comes, &error), PC_ERROR_INPUT);
    assert_holds(path, "foreign");
    const char *kept = strstr(error.message, "the results are in ");
    assert_non_null(kept);
    assert_non_null(strstr(kept, "/.pipecast-"));
    assert_holds(kept + strlen("the results are in "), "ours");
    unlink(kept + strlen("the results are in "));
    unlink(path);
}

/* ---- systems that know less ---- */

static enum { ALL, NO_RENAME_TO_NEW, NO_SECOND_NAMES } system_lacks;

/* In the place of the C library's. */
int renameat2(int old_folder, const char *from, int new_folder, const char *to, unsigned flags) {
    if (system_lacks >= NO_RENAME_TO_NEW) return errno = system_lacks == NO_SECOND_NAMES ? EINVAL : ENOSYS, -1;
    return (int)syscall(SYS_renameat2, old_folder, from, new_folder, to, flags);
}

/* What gives a nameless file its name has AT_SYMLINK_FOLLOW. */
int linkat(int old_folder, const char *from, int new_folder, const char *to, int flags) {
    if (system_lacks >= NO_SECOND_NAMES && flags == 0) return errno = EPERM, -1;
    return (int)syscall(SYS_linkat, old_folder, from, new_folder, to, flags);
}

static void test_systems_that_know_less(void **state) {
    const folder *at = *state;
    for (system_lacks = NO_RENAME_TO_NEW; system_lacks <= NO_SECOND_NAMES; system_lacks++) {
        test_what_comes_meanwhile_stays(state);
        goes(at->file);
        test_what_changes_meanwhile_stays(state);
        goes(at->file);
        test_what_came_before(state);
        goes(at->file);
    }
    system_lacks = ALL;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST_IN_FOLDER(test_whole_and_with_the_permissions_of_before, "x"),
        TEST_IN_FOLDER(test_given_up, "x"),
        TEST_IN_FOLDER(test_killed_it_leaves_nothing, "x"),
        TEST_IN_FOLDER(test_where_links_lead, "x"),
        TEST_IN_FOLDER(test_messages_say_what_was_expected, "x"),
        TEST_IN_FOLDER(test_links_of_others, "x"),
        TEST_IN_FOLDER(test_a_chain_of_links, "x"),
        TEST_IN_FOLDER(test_what_comes_meanwhile_stays, "x"),
        TEST_IN_FOLDER(test_what_changes_meanwhile_stays, "x"),
        TEST_IN_FOLDER(test_what_came_before, "x"),
        TEST_IN_FOLDER(test_a_name_that_is_too_long, "x"),
        TEST_IN_FOLDER(test_systems_that_know_less, "x"),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
