#define _GNU_SOURCE /* F_OFD_SETLK */
#include "sweep/journal.h"

#include "engine/alloc.h"
#include "sweep/journal_private.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { ATTEMPTS_MAX = 100 };

struct pc_journal {
    char *path; /* NULL of one in memory */
    pc_journal_file file;
    struct timespec synced; /* when all was last known to be on the disk */
};

/* --- one process at a time --- */

static pc_code refuse_held(const char *path, pc_error *error) {
    return pc_error_set_file(error, PC_ERROR_IO, path, "held by another pipecast; expected to be alone with it");
}

/* Of the open file, where the system has that: closing another descriptor of it does not drop such a lock. */
static int lock(int descriptor) {
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
#ifdef F_OFD_SETLK
    if (fcntl(descriptor, F_OFD_SETLK, &whole) == 0) return 0;
    if (errno != EINVAL) return errno;
#endif
    return fcntl(descriptor, F_SETLK, &whole) == 0 ? 0 : errno;
}

/* Whether somebody else has the lock of the open file. */
static bool is_locked(int descriptor) {
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
#ifdef F_OFD_GETLK
    if (fcntl(descriptor, F_OFD_GETLK, &whole) == 0) return whole.l_type != F_UNLCK;
#endif
    return fcntl(descriptor, F_GETLK, &whole) == 0 && whole.l_type != F_UNLCK;
}

pc_code pc_journal_check_free(const char *path, pc_error *error) {
    int descriptor = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (descriptor < 0) return PC_OK;
    bool is_held = is_locked(descriptor);
    close(descriptor);
    return is_held ? refuse_held(path, error) : PC_OK;
}

/* Who held it may have removed it between our opening and our locking. */
static bool is_still_there(const char *path, int descriptor) {
    struct stat ours, theirs;
    return fstat(descriptor, &ours) == 0 && stat(path, &theirs) == 0 && ours.st_dev == theirs.st_dev &&
           ours.st_ino == theirs.st_ino;
}

static bool is_users_fault(int cause) {
    return cause == EACCES || cause == EPERM || cause == ENOENT || cause == ENOTDIR || cause == EISDIR ||
           cause == ELOOP || cause == ENAMETOOLONG || cause == EROFS;
}

static pc_code refuse(const char *path, int cause, pc_error *error) {
    return pc_error_set_file(error, is_users_fault(cause) ? PC_ERROR_INPUT : PC_ERROR_IO, path,
                             "cannot be opened: %s; expected a file for finished runs", strerror(cause));
}

static pc_code open_named(const char *path, pc_journal_mode mode, int *result, pc_error *error) {
    struct stat status;
    /* Its name can be guessed from that of the results: a link there was put by somebody else. */
    int flags = mode == PC_JOURNAL_READ ? O_RDONLY : O_RDWR | O_CREAT;
    int descriptor = open(path, flags | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0666);
    if (descriptor < 0) return refuse(path, errno, error);
    /* cppcheck-suppress resourceLeak ; it is the caller's from here */
    if (fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode)) return *result = descriptor, PC_OK;
    close(descriptor);
    return pc_error_set_file(error, PC_ERROR_INPUT, path, "is not a regular file; expected one for finished runs");
}

static pc_code open_and_hold(const char *path, pc_journal_mode mode, int *result, pc_error *error) {
    for (int attempt = 0; attempt < ATTEMPTS_MAX; attempt++) {
        int descriptor = -1;
        pc_code code = open_named(path, mode, &descriptor, error);
        if (code) return code;
        int cause = mode == PC_JOURNAL_READ ? 0 : lock(descriptor);
        if (!cause && is_still_there(path, descriptor)) return *result = descriptor, PC_OK;
        close(descriptor);
        if (cause == EAGAIN || cause == EACCES) return refuse_held(path, error);
        if (cause) return pc_error_set_file(error, PC_ERROR_IO, path, "cannot be locked: %s", strerror(cause));
    }
    return refuse_held(path, error);
}

/* --- opening and closing --- */

/* What follows the last whole record is cut off, so that the next one stands right behind it. */
static pc_code go_on(pc_journal *journal, pc_journal_mode mode, pc_error *error) {
    bool is_new = false;
    pc_journal_file *file = &journal->file;
    if (mode == PC_JOURNAL_FRESH && pc_journal_file_is_journal(file))
        return pc_journal_file_start(file, journal->path, error);
    pc_code code = pc_journal_file_scan(file, journal->path, &is_new, error);
    if (code || mode == PC_JOURNAL_READ) return code;
    if (is_new) return pc_journal_file_start(file, journal->path, error);
    if (ftruncate(file->descriptor, file->size) == 0) return PC_OK;
    return pc_error_set_file(error, PC_ERROR_IO, journal->path, "cannot write: %s", strerror(errno));
}

static pc_code open_at(pc_journal *journal, const char *path, pc_journal_mode mode, pc_error *error) {
    journal->path = pc_strdup(path);
    if (!journal->path) return pc_error_no_memory(error);
    pc_code code = open_and_hold(journal->path, mode, &journal->file.descriptor, error);
    return code ? code : go_on(journal, mode, error);
}

pc_code pc_journal_open(const char *path, pc_journal_mode mode, pc_journal **result, pc_error *error) {
    pc_journal *journal = pc_alloc(1, sizeof *journal);
    if (!journal) return pc_error_no_memory(error);
    journal->file.descriptor = -1;
    clock_gettime(CLOCK_MONOTONIC, &journal->synced);
    pc_code code = path ? open_at(journal, path, mode, error) : PC_OK;
    if (code)
        pc_journal_close(journal);
    else
        *result = journal;
    return code;
}

const char *pc_journal_path(const pc_journal *journal) {
    return journal->path;
}

void pc_journal_close(pc_journal *journal) {
    if (!journal) return;
    if (journal->file.descriptor >= 0) close(journal->file.descriptor);
    pc_journal_file_free(&journal->file);
    pc_free(journal->path);
    pc_free(journal);
}

/* Removed while it is held: nobody else comes to hold a file that is about to go. */
void pc_journal_remove(pc_journal *journal) {
    if (journal && journal->path) unlink(journal->path);
    pc_journal_close(journal);
}

/* --- records --- */

int64_t pc_journal_count(const pc_journal *journal) {
    return journal->file.count;
}

pc_run_key pc_journal_key(const pc_journal *journal, int64_t index) {
    return journal->file.entries[index].key;
}

uint64_t pc_journal_labels(const pc_journal *journal, int64_t index) {
    return journal->file.entries[index].labels;
}

pc_code pc_journal_sync(pc_journal *journal, pc_error *error) {
    clock_gettime(CLOCK_MONOTONIC, &journal->synced);
    if (!journal->path || fdatasync(journal->file.descriptor) == 0 || errno == EINVAL || errno == ENOTSUP) return PC_OK;
    return pc_error_set_file(error, PC_ERROR_IO, journal->path, "cannot write: %s", strerror(errno));
}

static pc_code sync_sometimes(pc_journal *journal, pc_error *error) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec - journal->synced.tv_sec < 2 ? PC_OK : pc_journal_sync(journal, error);
}

pc_code pc_journal_add(pc_journal *journal, pc_run_key key, uint64_t labels, const pc_run_row *row,
                       const pc_schedule *schedule, const pc_run_detail *detail, pc_error *error) {
    unsigned char bytes[PC_JOURNAL_ROW_MAX], *trace = NULL;
    size_t trace_size = 0;
    pc_code code = PC_OK;
    if (detail && detail->replay.trace.pass_count > 0) {
        assert(schedule);
        code = pc_journal_trace_encode(schedule, detail, &trace, &trace_size, error);
        if (code) return code;
    }
    pc_journal_head head = {.mark = PC_JOURNAL_MARK, .trace_size = trace_size, .key = key, .labels = labels};
    head.row_size = (uint32_t)pc_journal_row_encode(row, bytes);
    code = pc_journal_file_append(&journal->file, journal->path, &head, bytes, trace, error);
    pc_free(trace);
    return code ? code : sync_sometimes(journal, error);
}

static pc_code read_head(const pc_journal *journal, int64_t index, pc_journal_head *head, pc_error *error) {
    int64_t offset = journal->file.entries[index].offset;
    return pc_journal_file_read(&journal->file, journal->path, offset, head, sizeof *head, error);
}

pc_code pc_journal_add_bytes(pc_journal *journal, pc_run_key key, uint64_t labels, const void *bytes, size_t size,
                             pc_error *error) {
    pc_journal_head head = {.mark = PC_JOURNAL_MARK, .row_size = (uint32_t)size, .key = key, .labels = labels};
    assert(size <= PC_JOURNAL_BYTES_MAX);
    pc_code code = pc_journal_file_append(&journal->file, journal->path, &head, bytes, NULL, error);
    return code ? code : sync_sometimes(journal, error);
}

pc_code pc_journal_bytes(const pc_journal *journal, int64_t index, void *bytes, size_t size, bool *is_so,
                         pc_error *error) {
    pc_journal_head head;
    pc_code code = read_head(journal, index, &head, error);
    *is_so = !code && head.row_size == size && head.trace_size == 0;
    if (!*is_so) return code;
    int64_t offset = journal->file.entries[index].offset + (int64_t)sizeof head;
    return pc_journal_file_read(&journal->file, journal->path, offset, bytes, size, error);
}

/* Nobody but us changes it; but who owns the file may. */
static pc_code refuse_changed(const pc_journal *journal, pc_error *error) {
    return pc_error_set_file(error, PC_ERROR_IO, journal->path, "was changed while it was in use");
}

pc_code pc_journal_row(const pc_journal *journal, int64_t index, pc_run_row *row, pc_error *error) {
    unsigned char bytes[PC_JOURNAL_ROW_MAX];
    pc_journal_head head;
    pc_run_row made;
    pc_code code = read_head(journal, index, &head, error);
    if (code) return code;
    if (head.row_size > sizeof bytes) return refuse_changed(journal, error);
    int64_t offset = journal->file.entries[index].offset + (int64_t)sizeof head;
    code = pc_journal_file_read(&journal->file, journal->path, offset, bytes, head.row_size, error);
    if (code) return code;
    if (!pc_journal_row_decode(bytes, head.row_size, &made)) return refuse_changed(journal, error);
    pc_run_key_text(head.key, made.key);
    *row = made;
    return PC_OK;
}

pc_code pc_journal_has_trace(const pc_journal *journal, int64_t index, bool *has_trace, pc_error *error) {
    pc_journal_head head;
    pc_code code = read_head(journal, index, &head, error);
    if (!code) *has_trace = head.trace_size > 0;
    return code;
}

pc_code pc_journal_trace(const pc_journal *journal, int64_t index, pc_trace_record *record, pc_error *error) {
    pc_journal_head head;
    pc_code code = read_head(journal, index, &head, error);
    if (code) return code;
    unsigned char *image = pc_realloc(NULL, head.trace_size, 1);
    if (!image) return pc_error_no_memory(error);
    int64_t offset = journal->file.entries[index].offset + (int64_t)sizeof head + head.row_size;
    code = pc_journal_file_read(&journal->file, journal->path, offset, image, head.trace_size, error);
    if (!code) code = pc_journal_trace_decode(journal->path, image, head.trace_size, record, error);
    pc_free(image);
    return code;
}
