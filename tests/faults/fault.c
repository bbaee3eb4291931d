/* fault.c: a library to preload into the command: it counts the calls by which the command asks the system for
 * something, and makes one of them go wrong.
 *
 * PC_FAULT is KIND:N:WHAT, or KIND:N+:WHAT for the N-th call of that kind, from 1, and all later ones. KIND is alloc
 * (malloc, calloc, realloc, aligned_alloc, posix_memalign), open, read, write, sync, truncate, close, rename, link,
 * spawn (processes and threads) or clock. WHAT is an errno in digits; `short` (half of the bytes); `sigN` (the signal N
 * first, then the call as ever); or for clocks `jumpS` (S seconds are added from then on, and S may be negative).
 *
 * With PC_FAULT_SERVE the process reads faults from standard input instead, a line each, and does its work once for
 * each in a child. Standard output and error go into the files that PC_FAULT_OUT and PC_FAULT_ERR name. So the command
 * is loaded once for thousands of faults. The line `places` asks for a child without a fault, and for a number for each
 * of its allocations, equal for equal ways there through the program, in the file PC_FAULT_PLACES: 8 bytes each. To
 * each it answers on standard output with a line: the child's status as waitpid gives it, how often the fault came, the
 * count of calls of every kind in the order above, and where the fault came, as addresses. A child that is not done in
 * time ends by SIGALRM.
 */
#undef _FORTIFY_SOURCE /* its read and open are others */
#define _GNU_SOURCE
#undef _FILE_OFFSET_BITS /* or open would be open64, which is here beside it */
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <locale.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#define XXH_INLINE_ALL /* nothing but the loader's own stands behind what is preloaded */
#include <xxhash.h>

typedef enum kind { ALLOC, OPEN, READ, WRITE, SYNC, TRUNCATE, CLOSE, RENAME, LINK, SPAWN, CLOCK, KINDS } call_kind;
static const char *const kind_names[KINDS] = {"alloc", "open",   "read", "write", "sync", "truncate",
                                              "close", "rename", "link", "spawn", "clock"};
enum { FRAMES = 48, WAY = 8, PROGRAM_MAX = 1 << 28, PLACES_MAX = 1 << 20, SECONDS = 30 };

typedef struct fault {
    int kind; /* KINDS: none */
    long at;
    bool is_lasting, is_short;
    int cause, signal;
    long jump_s;
} fault;

/* Shared with the children. */
typedef struct tally {
    _Atomic long calls[KINDS];
    _Atomic long faults;
    int frame_count;
    void *frames[FRAMES];
    bool is_survey;
    uint64_t places[PLACES_MAX];
} tally;

static fault wanted = {.kind = KINDS};
static tally own, *counts = &own;

/* ---- which call it is ---- */

static fault parse(const char *text) {
    fault f = {.kind = KINDS, .at = 1};
    size_t length = strcspn(text, ":\n");
    for (int i = 0; i < KINDS; i++)
        if (strlen(kind_names[i]) == length && strncmp(text, kind_names[i], length) == 0) f.kind = i;
    if (text[length] != ':') return f;
    char *rest;
    f.at = strtol(text + length + 1, &rest, 10);
    f.is_lasting = *rest == '+';
    rest += f.is_lasting;
    rest += *rest == ':';
    f.is_short = strncmp(rest, "short", 5) == 0;
    if (strncmp(rest, "sig", 3) == 0) f.signal = atoi(rest + 3);
    if (strncmp(rest, "jump", 4) == 0) f.jump_s = atol(rest + 4);
    f.cause = atoi(rest);
    return f;
}

static void note_place(void) {
    if (counts->frame_count == 0) counts->frame_count = backtrace(counts->frames, FRAMES);
}

/* A hash of the addresses in the program that the call goes back to, from its entry, so that they are the same in the
 * next process. */
static void note_way(long number) {
    void *frames[WAY];
    uint64_t offsets[WAY], entry = getauxval(AT_ENTRY);
    int count = backtrace(frames, WAY);
    for (int i = 0; i < count; i++) {
        uint64_t offset = (uintptr_t)frames[i] - entry + PROGRAM_MAX / 2;
        offsets[i] = offset < PROGRAM_MAX ? offset : 0;
    }
    if (number <= PLACES_MAX) counts->places[number - 1] = XXH3_64bits(offsets, (size_t)count * sizeof *offsets);
}

/* Counts the call; whether it is to go wrong, errno then says how. */
static bool comes(call_kind kind) {
    long number = ++counts->calls[kind];
    if (kind == ALLOC && counts->is_survey) note_way(number);
    if (wanted.kind != (int)kind || number < wanted.at || (number > wanted.at && !wanted.is_lasting)) return false;
    counts->faults++;
    note_place();
    if (wanted.signal) return kill(getpid(), wanted.signal), false;
    errno = wanted.cause;
    return true;
}

/* ---- calls ---- */

#define NEXT(name) __typeof__(&name) next = (__typeof__(&name))(uintptr_t)dlsym(RTLD_NEXT, #name)
#define NEXT_ONCE(name)                                                                                                \
    static __typeof__(&name) next;                                                                                     \
    if (!next) next = (__typeof__(&name))(uintptr_t)dlsym(RTLD_NEXT, #name)

void *malloc(size_t size) {
    NEXT_ONCE(malloc);
    return comes(ALLOC) ? errno = ENOMEM, NULL : next(size);
}

void *calloc(size_t count, size_t size) {
    NEXT_ONCE(calloc);
    return comes(ALLOC) ? errno = ENOMEM, NULL : next(count, size);
}

void *realloc(void *block, size_t size) {
    NEXT_ONCE(realloc);
    return comes(ALLOC) ? errno = ENOMEM, NULL : next(block, size);
}

void *aligned_alloc(size_t alignment, size_t size) {
    NEXT_ONCE(aligned_alloc);
    return comes(ALLOC) ? errno = ENOMEM, NULL : next(alignment, size);
}

int posix_memalign(void **block, size_t alignment, size_t size) {
    NEXT_ONCE(posix_memalign);
    return comes(ALLOC) ? ENOMEM : next(block, alignment, size);
}

#define OPEN_CALL(name)                                                                                                \
    int name(const char *path, int flags, ...) {                                                                       \
        va_list arguments;                                                                                             \
        va_start(arguments, flags);                                                                                    \
        mode_t mode = (flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(arguments, mode_t) : 0;           \
        va_end(arguments);                                                                                             \
        NEXT(name);                                                                                                    \
        return comes(OPEN) ? -1 : next(path, flags, mode);                                                             \
    }
OPEN_CALL(open)
OPEN_CALL(open64)

FILE *fopen(const char *path, const char *mode) {
    NEXT(fopen);
    return comes(OPEN) ? NULL : next(path, mode);
}

FILE *fopen64(const char *path, const char *mode) {
    NEXT(fopen64);
    return comes(OPEN) ? NULL : next(path, mode);
}

int memfd_create(const char *name, unsigned flags) {
    NEXT(memfd_create);
    return comes(OPEN) ? -1 : next(name, flags);
}

/* Half of them, at least one; of none, none. */
static size_t part_of(size_t size) {
    return size > 1 ? size / 2 : size;
}

#define MOVE_CALL(name, kind, byte, ...)                                                                               \
    ssize_t name(int descriptor, byte *bytes, size_t size __VA_OPT__(, off_t offset)) {                                \
        NEXT(name);                                                                                                    \
        if (comes(kind)) {                                                                                             \
            if (!wanted.is_short) return -1;                                                                           \
            size = part_of(size);                                                                                      \
        }                                                                                                              \
        return next(descriptor, bytes, size __VA_OPT__(, offset));                                                     \
    }
MOVE_CALL(read, READ, void)
MOVE_CALL(pread, READ, void, at)
MOVE_CALL(pread64, READ, void, at)
MOVE_CALL(write, WRITE, const void)
MOVE_CALL(pwrite, WRITE, const void, at)
MOVE_CALL(pwrite64, WRITE, const void, at)

/* As a program calls them that was built to check the sizes of its buffers. */
int __open_2(const char *path, int flags);
int __open64_2(const char *path, int flags);
ssize_t __read_chk(int descriptor, void *bytes, size_t size, size_t room);
ssize_t __pread_chk(int descriptor, void *bytes, size_t size, off_t at, size_t room);
ssize_t __pread64_chk(int descriptor, void *bytes, size_t size, off_t at, size_t room);

int __open_2(const char *path, int flags) {
    return open(path, flags);
}

int __open64_2(const char *path, int flags) {
    return open64(path, flags);
}

ssize_t __read_chk(int descriptor, void *bytes, size_t size, size_t room) {
    return size <= room ? read(descriptor, bytes, size) : (abort(), -1);
}

ssize_t __pread_chk(int descriptor, void *bytes, size_t size, off_t at, size_t room) {
    return size <= room ? pread(descriptor, bytes, size, at) : (abort(), -1);
}

ssize_t __pread64_chk(int descriptor, void *bytes, size_t size, off_t at, size_t room) {
    return size <= room ? pread64(descriptor, bytes, size, at) : (abort(), -1);
}

/* Short: half of the first part that has any. */
static ssize_t write_vector(int descriptor, const struct iovec *parts, int count, off_t offset,
                            ssize_t (*next)(int, const struct iovec *, int, off_t)) {
    if (!comes(WRITE)) return next(descriptor, parts, count, offset);
    if (!wanted.is_short) return -1;
    while (count > 1 && parts->iov_len == 0) parts++, count--;
    struct iovec half = {parts->iov_base, part_of(parts->iov_len)};
    return next(descriptor, &half, 1, offset);
}

ssize_t pwritev(int descriptor, const struct iovec *parts, int count, off_t offset) {
    NEXT(pwritev);
    return write_vector(descriptor, parts, count, offset, next);
}

ssize_t pwritev64(int descriptor, const struct iovec *parts, int count, off_t offset) {
    NEXT(pwritev64);
    return write_vector(descriptor, parts, count, offset, next);
}

#define STATUS_CALL(name, kind, parameters, ...)                                                                       \
    int name parameters {                                                                                              \
        NEXT(name);                                                                                                    \
        return comes(kind) ? -1 : next(__VA_ARGS__);                                                                   \
    }
STATUS_CALL(fsync, SYNC, (int descriptor), descriptor)
STATUS_CALL(fdatasync, SYNC, (int descriptor), descriptor)
STATUS_CALL(ftruncate, TRUNCATE, (int descriptor, off_t size), descriptor, size)
STATUS_CALL(ftruncate64, TRUNCATE, (int descriptor, off_t size), descriptor, size)
STATUS_CALL(rename, RENAME, (const char *from, const char *to), from, to)
STATUS_CALL(renameat2, RENAME, (int a, const char *from, int b, const char *to, unsigned flags), a, from, b, to, flags)
STATUS_CALL(linkat, LINK, (int a, const char *from, int b, const char *to, int flags), a, from, b, to, flags)

/* As Linux does, the descriptor is closed whatever is said of it. */
int close(int descriptor) {
    NEXT(close);
    bool is_wrong = comes(CLOSE);
    int cause = errno, status = next(descriptor);
    if (!is_wrong) return status;
    errno = cause;
    return -1;
}

int posix_spawnp(pid_t *process, const char *file, const posix_spawn_file_actions_t *actions,
                 const posix_spawnattr_t *attributes, char *const arguments[], char *const environment[]) {
    NEXT(posix_spawnp);
    return comes(SPAWN) ? errno : next(process, file, actions, attributes, arguments, environment);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*start)(void *), void *context) {
    NEXT(pthread_create);
    return comes(SPAWN) ? errno : next(thread, attributes, start, context);
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    NEXT(clock_gettime);
    int status = next(clock, now);
    if (comes(CLOCK)) now->tv_sec += wanted.jump_s;
    return status;
}

/* The clock of whoever waits has jumped too. */
int pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex, const struct timespec *until) {
    __typeof__(&pthread_cond_timedwait) next =
        (__typeof__(&pthread_cond_timedwait))(uintptr_t)dlvsym(RTLD_NEXT, "pthread_cond_timedwait", "GLIBC_2.3.2");
    struct timespec moved = *until;
    if (wanted.kind == CLOCK && counts->faults > 0) moved.tv_sec -= wanted.jump_s;
    return next(condition, mutex, &moved);
}

/* ---- the server ---- */

static void redirect(const char *variable, int descriptor) {
    const char *path = getenv(variable);
    int file = open(path ? path : "/dev/null", O_WRONLY | O_CREAT | O_TRUNC, 0666);
    if (file < 0 || dup2(file, descriptor) < 0) _exit(99);
    if (file != descriptor) close(file);
}

/* In the child: from here on it is the command. */
static void become(const char *line) {
    int nothing = open("/dev/null", O_RDONLY);
    if (nothing < 0 || dup2(nothing, STDIN_FILENO) < 0) _exit(99);
    close(nothing);
    redirect("PC_FAULT_OUT", STDOUT_FILENO);
    redirect("PC_FAULT_ERR", STDERR_FILENO);
    alarm(SECONDS);
    memset(counts, 0, offsetof(tally, places));
    wanted = parse(line);
    counts->is_survey = strncmp(line, "places", 6) == 0;
}

static void write_places(long count) {
    int number = open(getenv("PC_FAULT_PLACES"), O_WRONLY | O_CREAT | O_TRUNC, 0666);
    FILE *file = number < 0 ? NULL : fdopen(number, "w");
    if (count > PLACES_MAX) count = PLACES_MAX;
    if (!file || fwrite(counts->places, sizeof *counts->places, (size_t)count, file) != (size_t)count) _exit(99);
    fclose(file);
}

static void answer(int status) {
    long calls[KINDS]; /* what we do here counts too */
    for (int i = 0; i < KINDS; i++) calls[i] = counts->calls[i];
    bool is_survey = counts->is_survey;
    counts->is_survey = false;
    if (is_survey) write_places(calls[ALLOC]);
    dprintf(STDOUT_FILENO, "%d %ld", status, counts->faults);
    for (int i = 0; i < KINDS; i++) dprintf(STDOUT_FILENO, " %ld", calls[i]);
    for (int i = 0; i < counts->frame_count; i++) {
        Dl_info place;
        bool is_known = dladdr(counts->frames[i], &place) && place.dli_fname;
        dprintf(STDOUT_FILENO, " %s+%#tx", is_known ? place.dli_fname : "?",
                (char *)counts->frames[i] - (is_known ? (char *)place.dli_fbase : NULL));
    }
    dprintf(STDOUT_FILENO, "\n");
}

/* Byte by byte: what is behind the line is not for the child. */
static bool read_line(char *line, size_t size) {
    size_t used = 0;
    while (used + 1 < size && read(STDIN_FILENO, &line[used], 1) == 1)
        if (line[used++] == '\n') return line[used] = '\0', true;
    return false;
}

static void serve(void) {
    char line[128];
    counts = mmap(NULL, sizeof *counts, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (counts == MAP_FAILED) _exit(99);
    while (read_line(line, sizeof line)) {
        int status = 0;
        pid_t child = fork();
        if (child < 0) _exit(99);
        if (child == 0) {
            become(line);
            return;
        }
        while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
        answer(status);
    }
    _exit(0);
}

static const char *point_of_locale(void) {
    return setlocale(LC_ALL, "") ? localeconv()->decimal_point : "";
}

/* What the command starts is not to be faulty, nor what is loaded before it begins. */
static void begin(void) {
    void *frames[2];
    backtrace(frames, 2); /* the first loads what it needs */
    unsetenv("LD_PRELOAD");
    if (getenv("PC_FAULT_LOCALE") && strcmp(point_of_locale(), ",") != 0) _exit(98);
    const char *text = getenv("PC_FAULT");
    if (getenv("PC_FAULT_SERVE")) {
        serve();
    } else if (text) {
        memset(counts, 0, offsetof(tally, places));
        wanted = parse(text);
    }
}

static int (*real_main)(int, char **, char **);

static int begin_and_run(int count, char **arguments, char **variables) {
    begin();
    return real_main(count, arguments, variables);
}

typedef int start_function(int (*program)(int, char **, char **), int count, char **arguments, void (*init)(void),
                           void (*fini)(void), void (*unload)(void), void *stack);
start_function
    __libc_start_main; /* NOLINT(bugprone-reserved-identifier): the C library's name, which this stands for */

/* Faults come from main() on. What libraries do before it is theirs: of CUDA's, which registers its kernels then, a
 * refused allocation is the end. */
int __libc_start_main(int (*program)(int, char **, char **), int count, char **arguments, void (*init)(void),
                      void (*fini)(void), void (*unload)(void), void *stack) {
    start_function *start = (start_function *)(uintptr_t)dlsym(RTLD_NEXT, "__libc_start_main");
    real_main = program;
    return start(begin_and_run, count, arguments, init, fini, unload, stack);
}
