/* The results file, written where that is hard: paths that cannot be, a full disk, no memory. */
#include "tests/refusals.h"
#include "tests/store_example.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

/* --- paths that cannot be written --- */

static void assert_refused(const char *path, const char *part) {
    pc_results_writer *writer = NULL;
    pc_error error = {0};
    assert_int_equal(pc_results_create(path, &writer, &error), PC_ERROR_INPUT);
    assert_null(writer);
    if (!strstr(error.message, part)) fail_msg("'%s' is not in '%s'", part, error.message);
    assert_non_null(strstr(error.message, path));
}

static void impossible_paths_are_refused_at_once(void **state) {
    const folder *at = *state;
    char path[512];
    snprintf(path, sizeof path, "%s/no/such.h5", at->path);
    assert_refused(path, "there is no folder");
    assert_refused(at->path, "is a folder");
    snprintf(path, sizeof path, "%s/", at->path);
    assert_refused(path, "no name of a file; expected one");
    write_bytes(at->file, "old", 3);
    snprintf(path, sizeof path, "%s/x.h5", at->file);
    assert_refused(path, "Not a directory");
    assert_refused("", "no name of a file; expected one");
    assert_refused("/dev/full", "; expected a regular file");
    assert_refused("/dev/null", "; expected a regular file");
    snprintf(path, sizeof path, "%s/%0300d", at->path, 0);
    assert_refused(path, "File name too long");
    assert_int_equal(count_entries(at->path), 1);
}

/* Root may write anywhere, and so becomes somebody else. */
static void folders_that_may_not_be_written_are_refused(void **state) {
    enum { NOBODY = 65534 };
    const folder *at = *state;
    struct stat status;
    pc_results_writer *writer = NULL;
    pc_error error = {0};
    uid_t before = geteuid();
    assert_int_equal(chmod(at->path, 0555), 0);
    bool can_be =
        (before != 0 || seteuid(NOBODY) == 0) && stat(at->path, &status) == 0; /* TMPDIR may be root's alone */
    pc_code code = can_be ? pc_results_create(at->file, &writer, &error) : PC_OK;
    assert_int_equal(seteuid(before), 0);
    assert_int_equal(chmod(at->path, 0700), 0);
    if (!can_be) skip();
    assert_int_equal(code, PC_ERROR_INPUT);
    if (!strstr(error.message, "cannot write in the folder")) fail_msg("%s", error.message);
}

static void links_lead_to_the_file_that_is_replaced(void **state) {
    const folder *at = *state;
    char link[160], loop[160], other[160];
    snprintf(link, sizeof link, "%s/link.h5", at->path);
    snprintf(loop, sizeof loop, "%s/loop.h5", at->path);
    snprintf(other, sizeof other, "%s/link2.h5", at->path);
    write_bytes(at->file, "old", 3);
    assert_int_equal(symlink("results.h5", link), 0);
    assert_int_equal(symlink(link, other), 0);
    assert_int_equal(symlink("loop.h5", loop), 0);
    assert_int_equal(chmod(at->file, 0640), 0);
    assert_int_equal(write_example(other, NULL), PC_OK);
    struct stat status;
    assert_int_equal(lstat(link, &status), 0);
    assert_true(S_ISLNK(status.st_mode));
    assert_int_equal(lstat(at->file, &status), 0);
    assert_true(S_ISREG(status.st_mode) && status.st_size > 3);
    assert_int_equal(status.st_mode & 0777, 0640); /* as it was */
    assert_int_equal(pc_results_create(loop, &(pc_results_writer *){NULL}, NULL), PC_ERROR_INPUT);

    assert_int_equal(unlink(at->file), 0); /* now the links lead to nothing: it is made */
    assert_int_equal(write_example(link, NULL), PC_OK);
    assert_int_equal(lstat(at->file, &status), 0);
    assert_int_equal(count_entries(at->path), 4);
}

static void what_was_there_stays_until_the_end(void **state) {
    const folder *at = *state;
    write_bytes(at->file, "old", 3);
    pc_results_writer *writer;
    assert_int_equal(pc_results_create(at->file, &writer, NULL), PC_OK);
    assert_int_equal(add_example(writer, NULL), PC_OK);
    bytes found = read_bytes(at->file);
    assert_int_equal(found.size, 3);
    free(found.data);
    assert_int_equal(count_entries(at->path), 1); /* no temporary file lies about while the simulation runs */
    pc_results_discard(writer);
    found = read_bytes(at->file);
    assert_int_equal(found.size, 3);
    free(found.data);
    pc_results_discard(NULL);
}

/* A limit on the size of files fails a write as a full disk does. */
static void a_full_disk_leaves_what_was_there(void **state) {
    const folder *at = *state;
    struct rlimit before, small;
    write_bytes(at->file, "old", 3);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    small = before;
    small.rlim_cur = 5000;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    pc_error error = {0};
    pc_code code = write_example(at->file, &error);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, handler);
    assert_int_equal(code, PC_ERROR_IO);
    assert_non_null(strstr(error.message, at->file));
    assert_non_null(strstr(error.message, "cannot write: File too large"));
    assert_int_equal(count_entries(at->path), 1);
    bytes found = read_bytes(at->file);
    assert_int_equal(found.size, 3);
    free(found.data);
}

static void a_folder_that_vanishes_is_an_error(void **state) {
    const folder *at = *state;
    char folder_path[160], path[200];
    snprintf(folder_path, sizeof folder_path, "%s/sub", at->path);
    snprintf(path, sizeof path, "%s/sub/results.h5", at->path);
    assert_int_equal(mkdir(folder_path, 0777), 0);
    pc_results_writer *writer;
    assert_int_equal(pc_results_create(path, &writer, NULL), PC_OK);
    assert_int_equal(rmdir(folder_path), 0);
    pc_error error = {0};
    assert_int_not_equal(pc_results_commit(writer, &error), PC_OK);
    assert_non_null(strstr(error.message, "cannot write: No such file or directory"));
}

/* --- memory --- */

static void every_refused_allocation_of_the_writer_is_reported(void **state) {
    const folder *at = *state;
    for (refusals x = {0}; next_refusal(&x);) {
        x.code = write_example(at->file, NULL);
        assert_int_equal(count_entries(at->path), x.code == PC_OK);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(impossible_paths_are_refused_at_once),
        TEST(folders_that_may_not_be_written_are_refused),
        TEST(links_lead_to_the_file_that_is_replaced),
        TEST(what_was_there_stays_until_the_end),
        TEST(a_full_disk_leaves_what_was_there),
        TEST(a_folder_that_vanishes_is_an_error),
        TEST(every_refused_allocation_of_the_writer_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
