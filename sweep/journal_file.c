#include "sweep/journal_private.h"

#include "engine/alloc.h"
#include "results/store/build.h"
#include "storage/sealed.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

static const char magic[16] = {'p', 'i', 'p', 'e', 'c', 'a', 's', 't', '-', 'j', 'o', 'u', 'r', 'n', 'a', 'l'};

enum { PEEK_SIZE = 4096, BLOCK_SIZE = 1 << 16 };

static pc_code fail(const char *path, const char *what, int cause, pc_error *error) {
    return pc_error_set_file(error, PC_ERROR_IO, path, "cannot %s: %s", what, strerror(cause));
}

/* How many bytes there were, at most `size`; -1 and errno. */
static int64_t read_some(int descriptor, void *bytes, size_t size, int64_t offset) {
    size_t done = 0;
    while (done < size) {
        ssize_t got = pread(descriptor, (char *)bytes + done, size - done, offset + (int64_t)done);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return -1;
        if (got == 0) break;
        done += (size_t)got;
    }
    return (int64_t)done;
}

pc_code pc_journal_file_read(const pc_journal_file *file, const char *path, int64_t offset, void *bytes, size_t size,
                             pc_error *error) {
    if (file->descriptor < 0) return memcpy(bytes, file->memory + offset, size), PC_OK;
    int64_t got = read_some(file->descriptor, bytes, size, offset);
    if (got < 0) return fail(path, "read", errno, error);
    if (got == (int64_t)size) return PC_OK;
    return pc_error_set_file(error, PC_ERROR_IO, path, "was cut short while it was in use");
}

/* --- the header --- */

static pc_journal_header make_header(void) {
    pc_journal_header header = {.build = pc_build_hash()};
    memcpy(header.magic, magic, sizeof magic);
    header.check = pc_sealed_hash(PC_SEALED_HASH_START, &header, offsetof(pc_journal_header, check));
    return header;
}

static pc_code refuse_foreign(const char *path, pc_error *error) {
    return pc_error_set_file(error, PC_ERROR_INPUT, path,
                             "is no journal of pipecast; expected one, or no file, since finished runs are kept there");
}

static pc_code check_header(const char *path, const pc_journal_header *found, pc_error *error) {
    if (memcmp(found->magic, magic, sizeof magic) != 0) return refuse_foreign(path, error);
    if (found->check != pc_sealed_hash(PC_SEALED_HASH_START, found, offsetof(pc_journal_header, check)))
        return pc_error_set_file(error, PC_ERROR_INPUT, path,
                                 "the journal is damaged at its start; expected it as pipecast wrote it (--fresh "
                                 "simulates everything again)");
    if (found->build == pc_build_hash()) return PC_OK;
    return pc_error_set_file(error, PC_ERROR_INPUT, path,
                             "the journal is of another build of pipecast, whose results may differ; expected one of "
                             "this build (--fresh simulates everything again)");
}

bool pc_journal_file_is_journal(const pc_journal_file *file) {
    char found[sizeof magic];
    return read_some(file->descriptor, found, sizeof found, 0) == (int64_t)sizeof found &&
           memcmp(found, magic, sizeof magic) == 0;
}

/* A header that was half written when the process was killed is the start of ours. */
static pc_code scan_header(const pc_journal_file *file, const char *path, bool *is_new, pc_error *error) {
    pc_journal_header found, wanted = make_header();
    int64_t got = read_some(file->descriptor, &found, sizeof found, 0);
    if (got < 0) return fail(path, "read", errno, error);
    *is_new = got < (int64_t)sizeof found;
    if (!*is_new) return check_header(path, &found, error);
    size_t common = got < (int64_t)sizeof magic ? (size_t)got : sizeof magic;
    return memcmp(&found, &wanted, common) == 0 ? PC_OK : refuse_foreign(path, error);
}

/* --- records --- */

static pc_code add_entry(pc_journal_file *file, const pc_journal_head *head, int64_t offset, pc_error *error) {
    if (file->count == file->capacity) {
        int64_t capacity = file->capacity ? 2 * file->capacity : 64;
        pc_journal_entry *entries = pc_realloc(file->entries, (size_t)capacity, sizeof *entries);
        if (!entries) return pc_error_no_memory(error);
        file->entries = entries;
        file->capacity = capacity;
    }
    file->entries[file->count++] = (pc_journal_entry){head->key, head->labels, offset};
    return PC_OK;
}

/* Of a record that is longer than what was peeked at. */
static pc_code hash_range(const pc_journal_file *file, const char *path, int64_t offset, int64_t size, uint64_t *hash,
                          pc_error *error) {
    unsigned char block[BLOCK_SIZE];
    *hash = PC_SEALED_HASH_START;
    for (int64_t at = 0; at < size;) {
        size_t part = size - at < BLOCK_SIZE ? (size_t)(size - at) : BLOCK_SIZE;
        pc_code code = pc_journal_file_read(file, path, offset + at, block, part, error);
        if (code) return code;
        *hash = pc_sealed_hash(*hash, block, part);
        at += (int64_t)part;
    }
    return PC_OK;
}

/* The bytes of a record before its hash; -1 if they and the hash do not fit into `room`. */
static int64_t size_of(const pc_journal_head *head, int64_t room) {
    int64_t own = (int64_t)(sizeof *head + sizeof(uint64_t)) + head->row_size;
    if (head->mark != PC_JOURNAL_MARK || head->row_size > PC_JOURNAL_ROW_MAX || room < own) return -1;
    if (head->trace_size > (uint64_t)(room - own)) return -1;
    return own - (int64_t)sizeof(uint64_t) + (int64_t)head->trace_size;
}

/* The length of the whole record at the end of what was found so far; 0 if there is none, or a damaged one. */
static pc_code measure_record(const pc_journal_file *file, const char *path, int64_t end, pc_journal_head *head,
                              int64_t *length, pc_error *error) {
    unsigned char peek[PEEK_SIZE];
    uint64_t hash, wanted;
    *length = 0;
    int64_t got = read_some(file->descriptor, peek, sizeof peek, file->size);
    if (got < 0) return fail(path, "read", errno, error);
    if (got < (int64_t)sizeof *head) return PC_OK;
    memcpy(head, peek, sizeof *head);
    int64_t size = size_of(head, end - file->size);
    if (size < 0) return PC_OK;
    pc_code code = PC_OK;
    if (size + (int64_t)sizeof wanted <= got) {
        hash = pc_sealed_hash(PC_SEALED_HASH_START, peek, (size_t)size);
        memcpy(&wanted, peek + size, sizeof wanted);
    } else {
        code = hash_range(file, path, file->size, size, &hash, error);
        if (!code) code = pc_journal_file_read(file, path, file->size + size, &wanted, sizeof wanted, error);
    }
    if (!code && hash == wanted) *length = size + (int64_t)sizeof wanted;
    return code;
}

pc_code pc_journal_file_scan(pc_journal_file *file, const char *path, bool *is_new, pc_error *error) {
    struct stat status;
    if (fstat(file->descriptor, &status) != 0) return fail(path, "read", errno, error);
    pc_code code = scan_header(file, path, is_new, error);
    if (code || *is_new) return code;
    file->size = sizeof(pc_journal_header);
    for (int64_t length = 1; !code && length > 0; file->size += length) {
        pc_journal_head head;
        code = measure_record(file, path, status.st_size, &head, &length, error);
        if (!code && length > 0) code = add_entry(file, &head, file->size, error);
    }
    return code;
}

/* --- writing --- */

/* 0, or errno. */
static int write_parts(int descriptor, struct iovec *parts, int count, int64_t offset) {
    while (count > 0) {
        ssize_t written = pwritev(descriptor, parts, count, offset);
        if (written < 0 && errno == EINTR) continue;
        if (written < 0 || (written == 0 && parts->iov_len > 0)) return written < 0 ? errno : EIO;
        offset += written;
        for (; count > 0 && (size_t)written >= parts->iov_len; parts++, count--) written -= (ssize_t)parts->iov_len;
        if (count == 0) break;
        parts->iov_base = (char *)parts->iov_base + written;
        parts->iov_len -= (size_t)written;
    }
    return 0;
}

pc_code pc_journal_file_start(pc_journal_file *file, const char *path, pc_error *error) {
    pc_journal_header header = make_header();
    struct iovec part = {&header, sizeof header};
    file->count = 0;
    file->size = sizeof header;
    if (ftruncate(file->descriptor, 0) != 0) return fail(path, "write", errno, error);
    int cause = write_parts(file->descriptor, &part, 1, 0);
    return cause ? fail(path, "write", cause, error) : PC_OK;
}

static uint64_t hash_of(const struct iovec *parts, int count) {
    uint64_t hash = PC_SEALED_HASH_START;
    for (int i = 0; i < count; i++) hash = pc_sealed_hash(hash, parts[i].iov_base, parts[i].iov_len);
    return hash;
}

/* Twice as much each time: what is not used yet takes no memory. */
static pc_code make_room(pc_journal_file *file, int64_t size, pc_error *error) {
    int64_t room = file->room ? file->room : 1 << 16;
    while (room < file->size + size) room *= 2;
    if (room == file->room) return PC_OK;
    unsigned char *memory = pc_realloc(file->memory, (size_t)room, 1);
    if (!memory) return pc_error_no_memory(error);
    file->memory = memory;
    file->room = room;
    return PC_OK;
}

static pc_code keep_parts(pc_journal_file *file, const struct iovec *parts, int count, int64_t size, pc_error *error) {
    pc_code code = make_room(file, size, error);
    unsigned char *to = file->memory + file->size;
    for (int i = 0; i < count && !code; to += parts[i++].iov_len)
        if (parts[i].iov_len > 0) memcpy(to, parts[i].iov_base, parts[i].iov_len);
    return code;
}

static pc_code append_parts(pc_journal_file *file, const char *path, struct iovec *parts, int count, int64_t size,
                            pc_error *error) {
    if (file->descriptor < 0) return keep_parts(file, parts, count, size, error);
    int cause = write_parts(file->descriptor, parts, count, file->size);
    if (!cause) return PC_OK;
    if (ftruncate(file->descriptor, file->size) != 0)
        return fail(path, "write", cause, error); /* cut off when opened */
    return fail(path, "write", cause, error);
}

pc_code pc_journal_file_append(pc_journal_file *file, const char *path, const pc_journal_head *head,
                               const unsigned char *row, const unsigned char *trace, pc_error *error) {
    uint64_t hash = 0;
    struct iovec parts[] = {{(void *)(uintptr_t)head, sizeof *head},
                            {(void *)(uintptr_t)row, head->row_size},
                            {(void *)(uintptr_t)trace, head->trace_size},
                            {&hash, sizeof hash}};
    int count = file->descriptor < 0 ? 3 : 4;
    int64_t size = 0;
    for (int i = 0; i < count; i++) size += (int64_t)parts[i].iov_len;
    if (count == 4) hash = hash_of(parts, 3);
    pc_code code = add_entry(file, head, file->size, error);
    if (code) return code;
    code = append_parts(file, path, parts, count, size, error);
    if (code)
        file->count--;
    else
        file->size += size;
    return code;
}

void pc_journal_file_free(pc_journal_file *file) {
    pc_free(file->entries);
    pc_free(file->memory);
    *file = (pc_journal_file){.descriptor = -1};
}
