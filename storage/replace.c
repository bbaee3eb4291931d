#define _GNU_SOURCE /* O_TMPFILE, O_PATH, renameat2 */
#include "storage/replace.h"

#include "engine/alloc.h"
#include "storage/text.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { LINKS_MAX = 40, ATTEMPTS_MAX = 1000, WRITE_MAX = 1 << 30, PROC_PATH_SIZE = 32 };

/* Whether the user named a place that cannot be, rather than the machine failing. */
static bool is_users_fault(int cause) {
    static const int causes[] = {ENOENT, ENOTDIR, EACCES, EPERM, EROFS, ENAMETOOLONG, ELOOP, EISDIR, EINVAL};
    for (size_t i = 0; i < sizeof causes / sizeof causes[0]; i++)
        if (cause == causes[i]) return true;
    return false;
}

/* What was expected; "" of a fault of the machine. */
static const char *expectation(int cause) {
    return is_users_fault(cause) ? "a file that can be written" : "";
}

static pc_code refuse(pc_error *error, const char *path, int cause) {
    return pc_error_set_file(error, is_users_fault(cause) ? PC_ERROR_INPUT : PC_ERROR_IO, path, "%s; expected %s",
                             strerror(cause), expectation(cause));
}

/* How much of the path is its folder, with the slash; 0 for a bare name. */
static size_t folder_length(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? (size_t)(slash - path) + 1 : 0;
}

/* The folder of `path` followed by `name`. */
static char *beside(const char *path, const char *name) {
    pc_text text = {0};
    pc_text_add(&text, path, folder_length(path));
    pc_text_add(&text, name, strlen(name));
    if (text.failed) pc_text_free(&text);
    return text.data;
}

/* Whether none but its owner may put things into the folder of `path`. Where an access list lets others in, the group's
 * bit is its mask. */
static bool is_owners_alone(const char *path) {
    struct stat status;
    char *folder = beside(path, ".");
    bool is_known = folder && stat(folder, &status) == 0;
    pc_free(folder);
    return is_known && !(status.st_mode & (S_IWGRP | S_IWOTH));
}

/* Where others may put things (/tmp), a link could be put there to lead us to any file of ours, whoever owns the
 * folder. Ours and root's are not: root needs no link for that. Linux's fs.protected_symlinks is less strict, where it
 * is on. */
static pc_code check_link(const char *path, const struct stat *link, pc_error *error) {
    if (link->st_uid == geteuid() || link->st_uid == 0 || is_owners_alone(path)) return PC_OK;
    return pc_error_set_file(error, PC_ERROR_INPUT, path,
                             "Permission denied: a link that another user made, in a folder where others may write, is "
                             "not followed; expected a file, or a link of one's own");
}

/* What the link says, which is the one that was looked at: another could come in its place. */
static pc_code read_link(const char *path, char target[PATH_MAX], pc_error *error) {
    struct stat status;
    int link = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (link < 0) return refuse(error, path, errno);
    ssize_t size = fstat(link, &status) == 0 ? readlinkat(link, "", target, PATH_MAX - 1) : -1;
    int cause = errno;
    close(link);
    if (size < 0) return refuse(error, path, cause == ENOENT ? EBUSY : cause); /* it is a link no more */
    target[size] = '\0';
    return check_link(path, &status, error);
}

/* Replaces *path by what the link there says. */
static pc_code follow_link(char **path, pc_error *error) {
    char target[PATH_MAX];
    pc_code code = read_link(*path, target, error);
    if (code) return code;
    char *next = target[0] == '/' ? pc_strdup(target) : beside(*path, target);
    if (!next) return pc_error_no_memory(error);
    pc_free(*path);
    *path = next;
    return PC_OK;
}

/* *path, which is owned, becomes the path of no link. A file that is not there yet is fine. */
static pc_code resolve_links(char **path, pc_error *error) {
    for (int i = 0; i < LINKS_MAX; i++) {
        struct stat status;
        if (lstat(*path, &status) != 0) return errno == ENOENT ? PC_OK : refuse(error, *path, errno);
        if (!S_ISLNK(status.st_mode)) return PC_OK;
        pc_code code = follow_link(path, error);
        if (code) return code;
    }
    return refuse(error, *path, ELOOP);
}

/* What stands at the path may be nothing, or a regular file that may be written. */
static pc_code check_target(const char *path, pc_error *error) {
    struct stat status;
    size_t folder = folder_length(path);
    if (path[folder] == '\0') return pc_error_set_file(error, PC_ERROR_INPUT, path, "no name of a file; expected one");
    if (lstat(path, &status) != 0) return errno == ENOENT ? PC_OK : refuse(error, path, errno);
    if (S_ISDIR(status.st_mode)) return pc_error_set_file(error, PC_ERROR_INPUT, path, "is a folder; expected a file");
    if (!S_ISREG(status.st_mode))
        return pc_error_set_file(error, PC_ERROR_INPUT, path,
                                 "is a device or pipe; expected a regular file, since the file is replaced in one "
                                 "step when it is complete");
    return access(path, W_OK) == 0 ? PC_OK : refuse(error, path, errno);
}

static pc_code check_folder(const char *path, pc_error *error) {
    struct stat status;
    size_t size = folder_length(path);
    if (size == 0) return PC_OK; /* the working directory; if it is not writable, that shows next */
    char *folder = pc_strdup(path);
    if (!folder) return pc_error_no_memory(error);
    folder[size > 1 ? size - 1 : 1] = '\0';
    pc_code code = PC_OK;
    if (stat(folder, &status) != 0)
        code = errno == ENOENT ? pc_error_set_file(error, PC_ERROR_INPUT, path,
                                                   "there is no folder '%s'; expected one that is there", folder)
                               : refuse(error, path, errno);
    else if (!S_ISDIR(status.st_mode))
        code = pc_error_set_file(error, PC_ERROR_INPUT, path, "'%s' is not a folder; expected one", folder);
    pc_free(folder);
    return code;
}

/* A name that nobody else uses: O_EXCL proves it, the clock only makes a second attempt rare. */
static void make_name(char *name, size_t size, int attempt) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    snprintf(name, size, ".pipecast-%ld-%lx-%d.tmp", (long)getpid(), (unsigned long)now.tv_nsec, attempt);
}

static bool choose_name(pc_replacement *replacement, int attempt) {
    char name[64];
    make_name(name, sizeof name, attempt);
    pc_free(replacement->temporary);
    replacement->temporary = beside(replacement->path, name);
    return replacement->temporary;
}

static pc_code open_named(pc_replacement *replacement, pc_error *error) {
    for (int attempt = 0; attempt < ATTEMPTS_MAX; attempt++) {
        if (!choose_name(replacement, attempt)) return pc_error_no_memory(error);
        replacement->descriptor = open(replacement->temporary, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
        if (replacement->descriptor >= 0) return PC_OK;
        if (errno != EEXIST) break;
    }
    int cause = errno;
    size_t size = folder_length(replacement->path);
    return pc_error_set_file(error, is_users_fault(cause) ? PC_ERROR_INPUT : PC_ERROR_IO, replacement->path,
                             "cannot write in the folder '%.*s': %s; expected %s", size ? (int)size : 1,
                             size ? replacement->path : ".", strerror(cause), expectation(cause));
}

/* Where a file without a name can be found, and be given one. */
static void find_nameless(const pc_replacement *replacement, char path[PROC_PATH_SIZE]) {
    snprintf(path, PROC_PATH_SIZE, "/proc/self/fd/%d", replacement->descriptor);
}

/* A file without a name is gone with the process, whatever ends that. Not every file system has such files. */
static pc_code open_temporary(pc_replacement *replacement, pc_error *error) {
    char *folder = beside(replacement->path, "."), found[PROC_PATH_SIZE];
    if (!folder) return pc_error_no_memory(error);
    replacement->descriptor = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0666);
    pc_free(folder);
    if (replacement->descriptor < 0) return open_named(replacement, error);
    find_nameless(replacement, found);
    if (access(found, F_OK) == 0) return PC_OK;
    close(replacement->descriptor);
    return open_named(replacement, error);
}

static void release(pc_replacement *replacement) {
    pc_free(replacement->path);
    pc_free(replacement->temporary);
    pc_free(replacement->beside);
    *replacement = (pc_replacement){.descriptor = -1};
}

/* ---- what stands there ---- */

static pc_standing standing_of(const struct stat *status) {
    return (pc_standing){.is_there = true,
                         .device = status->st_dev,
                         .inode = status->st_ino,
                         .size = status->st_size,
                         .written = status->st_mtim};
}

static bool is_same(const pc_standing *a, const pc_standing *b) {
    return a->is_there == b->is_there && a->device == b->device && a->inode == b->inode && a->size == b->size &&
           a->written.tv_sec == b->written.tv_sec && a->written.tv_nsec == b->written.tv_nsec;
}

/* 0, or errno. Of a link itself, which would be a file that has come since links were resolved. */
static int look(const char *path, pc_standing *found) {
    struct stat status;
    *found = (pc_standing){.is_there = false};
    if (lstat(path, &status) != 0) return errno == ENOENT ? 0 : errno;
    *found = standing_of(&status);
    return 0;
}

pc_code pc_replacement_look(const char *path, pc_standing *found, pc_error *error) {
    char *target;
    pc_code code = pc_replacement_target(path, &target, error);
    if (code) return code;
    int cause = look(target, found);
    pc_free(target);
    return cause ? refuse(error, path, cause) : PC_OK;
}

void pc_replacement_guard(pc_replacement *replacement, const pc_standing *standing) {
    if (standing) replacement->standing = *standing;
    replacement->is_guarded = true;
}

/* ---- beginning ---- */

pc_code pc_replacement_target(const char *path, char **target, pc_error *error) {
    *target = pc_strdup(path);
    pc_code code = *target ? resolve_links(target, error) : pc_error_no_memory(error);
    if (!code) return PC_OK;
    pc_free(*target);
    *target = NULL;
    return code;
}

pc_code pc_replacement_begin(const char *path, pc_replacement *replacement, pc_error *error) {
    *replacement = (pc_replacement){.descriptor = -1};
    pc_code code = pc_replacement_target(path, &replacement->path, error);
    if (!code) code = check_folder(replacement->path, error);
    if (!code) code = check_target(replacement->path, error);
    int cause = code ? 0 : look(replacement->path, &replacement->standing);
    if (cause) code = refuse(error, path, cause);
    if (!code) code = open_temporary(replacement, error);
    if (code) release(replacement);
    return code;
}

pc_code pc_replacement_write(pc_replacement *replacement, const void *bytes, size_t size, pc_error *error) {
    const char *at = bytes;
    while (size > 0) {
        ssize_t written = write(replacement->descriptor, at, size < WRITE_MAX ? size : WRITE_MAX);
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0)
            return pc_error_set_file(error, PC_ERROR_IO, replacement->path, "cannot write: %s",
                                     strerror(written < 0 ? errno : EIO));
        at += written;
        size -= (size_t)written;
    }
    return PC_OK;
}

/* A file that was there keeps its permissions; not what would run it as its owner, who may now be another. */
static void copy_mode(const pc_replacement *replacement) {
    struct stat status;
    if (lstat(replacement->path, &status) != 0 || !S_ISREG(status.st_mode)) return;
    if (fchmod(replacement->descriptor, status.st_mode & 0777) != 0) return; /* then it has the usual ones */
}

/* 0, or errno. Only a name can take the place of another: so it gets one, for an instant. */
static int give_name(pc_replacement *replacement) {
    char found[PROC_PATH_SIZE];
    int cause = EEXIST;
    find_nameless(replacement, found);
    for (int attempt = 0; attempt < ATTEMPTS_MAX && cause == EEXIST; attempt++) {
        if (!choose_name(replacement, attempt)) return ENOMEM;
        cause = linkat(AT_FDCWD, found, AT_FDCWD, replacement->temporary, AT_SYMLINK_FOLLOW) == 0 ? 0 : errno;
    }
    if (!cause) return 0;
    pc_free(replacement->temporary); /* it is not ours */
    replacement->temporary = NULL;
    return cause;
}

/* Some pipes and file systems know no fsync: EINVAL. 0, or errno. */
static int make_durable(int descriptor) {
    return fsync(descriptor) != 0 && errno != EINVAL && errno != ENOTSUP ? errno : 0;
}

/* 0, or errno. Where neither the system nor the file system knows better, the name may be taken between the look and
 * the renaming. */
static int rename_after_a_look(const char *from, const char *to) {
    pc_standing found;
    int cause = look(to, &found);
    if (!cause && found.is_there) cause = EEXIST;
    return cause ? cause : rename(from, to) == 0 ? 0 : errno;
}

static bool is_not_known(int cause) {
    return cause == ENOSYS || cause == EINVAL || cause == ENOTSUP || cause == EPERM;
}

/* Not all systems can rename to a name only if nothing has it: then the file gets a second name, which must be a new
 * one. File systems of memory cards do not know that either. */
static int link_new(const char *from, const char *to) {
    if (linkat(AT_FDCWD, from, AT_FDCWD, to, 0) != 0)
        return is_not_known(errno) ? rename_after_a_look(from, to) : errno;
    unlink(from);
    return 0;
}

/* 0, or errno: EEXIST where something has the name. */
static int rename_new(const char *from, const char *to) {
#ifdef RENAME_NOREPLACE
    if (renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0) return 0;
    if (!is_not_known(errno)) return errno;
#endif
    return link_new(from, to);
}

/* 0, or errno: EEXIST where what stands there is not what stood there, if that counts. */
static int rename_over(const pc_replacement *replacement) {
    pc_standing found;
    if (!replacement->is_guarded) return rename(replacement->temporary, replacement->path) == 0 ? 0 : errno;
    int cause = look(replacement->path, &found);
    if (cause) return cause;
    if (!found.is_there) return rename_new(replacement->temporary, replacement->path);
    if (!is_same(&found, &replacement->standing)) return EEXIST;
    return rename(replacement->temporary, replacement->path) == 0 ? 0 : errno;
}

/* "PATH.new", "PATH.new.2" and so on, the first that is free; where there is none of them, it keeps its temporary name.
 */
static void keep_beside(pc_replacement *replacement) {
    size_t size = strlen(replacement->path) + 32;
    char *name = pc_alloc(size, 1);
    int cause = name ? EEXIST : ENOMEM;
    for (int number = 1; number <= ATTEMPTS_MAX && cause == EEXIST; number++) {
        snprintf(name, size, number > 1 ? "%s.new.%d" : "%s.new", replacement->path, number);
        cause = rename_new(replacement->temporary, name);
    }
    replacement->beside = cause ? replacement->temporary : name;
    if (!cause) return;
    replacement->temporary = NULL;
    pc_free(name);
}

/* Closes whatever happens; the first failure's errno, or 0. */
static int put_in_place(pc_replacement *replacement, int cause) {
    if (!cause && !replacement->temporary) cause = give_name(replacement);
    if (close(replacement->descriptor) != 0 && errno != EINTR && !cause) cause = errno;
    replacement->descriptor = -1;
    bool is_ready = !cause;
    if (is_ready) cause = rename_over(replacement);
    if (is_ready && cause == EEXIST && replacement->is_guarded) cause = 0, keep_beside(replacement);
    if (cause && replacement->temporary) unlink(replacement->temporary);
    return cause;
}

/* Held while a file has a temporary name, which is for an instant. */
static pthread_mutex_t naming = PTHREAD_MUTEX_INITIALIZER;

void pc_replacement_stop(void) {
    pthread_mutex_lock(&naming); /* and never lets go */
}

/* A signal that ends the process waits until no file stands under its temporary name. */
static int put_in_place_at_once(pc_replacement *replacement, int cause) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_mutex_lock(&naming);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    cause = put_in_place(replacement, cause);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_mutex_unlock(&naming);
    return cause;
}

static pc_code refuse_to_replace(const pc_replacement *replacement, pc_error *error) {
    bool was_there = replacement->standing.is_there;
    pc_error_set_file(error, PC_ERROR_INPUT, replacement->path, "has %s since the command began; expected %s",
                      was_there ? "changed" : "come", was_there ? "the file of then" : "no file there");
    pc_error_note(error, "it stays, and the results are in %s", replacement->beside);
    return PC_ERROR_INPUT;
}

pc_code pc_replacement_commit(pc_replacement *replacement, pc_error *error) {
    copy_mode(replacement);
    int cause = put_in_place_at_once(replacement, make_durable(replacement->descriptor));
    pc_code code = PC_OK;
    if (cause == ENOMEM)
        code = pc_error_no_memory(error);
    else if (cause)
        code = pc_error_set_file(error, PC_ERROR_IO, replacement->path, "cannot write: %s", strerror(cause));
    else if (replacement->beside)
        code = refuse_to_replace(replacement, error);
    release(replacement);
    return code;
}

void pc_replacement_discard(pc_replacement *replacement) {
    if (replacement->descriptor >= 0) close(replacement->descriptor);
    if (replacement->temporary) unlink(replacement->temporary);
    release(replacement);
}

pc_code pc_replacement_put(const char *path, const void *bytes, size_t size, pc_error *error) {
    pc_replacement replacement;
    pc_code code = pc_replacement_begin(path, &replacement, error);
    if (code) return code;
    code = pc_replacement_write(&replacement, bytes, size, error);
    if (!code) return pc_replacement_commit(&replacement, error);
    pc_replacement_discard(&replacement);
    return code;
}

pc_code pc_replacement_probe(const char *path, pc_error *error) {
    pc_replacement replacement;
    pc_code code = pc_replacement_begin(path, &replacement, error);
    if (!code) pc_replacement_discard(&replacement);
    return code;
}
