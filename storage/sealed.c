#include "storage/sealed.h"

#include "engine/alloc.h"
#include "storage/fields.h"
#include "storage/replace.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef PC_VERSION
#define PC_VERSION "unknown"
#endif

#define SEAL_PREFIX "\npipecast-fnv1a64 "
enum {
    SEAL_PREFIX_SIZE = sizeof SEAL_PREFIX - 1,
    SEAL_SIZE = SEAL_PREFIX_SIZE + 17,
    SUPERBLOCK_SIZE = 56 /* as much of it as holds the file's end, in every version */
};

/* ---- reading: the seal, before HDF5 sees anything ---- */

pc_code pc_sealed_refuse_damaged(const char *path, pc_error *error) {
    return pc_error_set_file(error, PC_ERROR_INPUT, path,
                             "the file is damaged or was cut short; expected it as pipecast wrote it");
}

static pc_code open_regular(const char *path, const pc_sealed_kind *kind, int *descriptor, off_t *size,
                            pc_error *error) {
    struct stat status;
    /* Without O_NONBLOCK, opening a pipe would wait for its writer. */
    int found = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (found < 0) return pc_error_file(error, path, errno, kind->article);
    if (fstat(found, &status) != 0 || !S_ISREG(status.st_mode)) {
        close(found);
        return pc_error_set_file(error, PC_ERROR_INPUT, path, "is not a regular file; expected %s", kind->article);
    }
    *descriptor = found;
    *size = status.st_size;
    return PC_OK;
}

static pc_code read_at(int descriptor, const char *path, void *bytes, size_t size, off_t offset, pc_error *error) {
    char *to = bytes;
    while (size > 0) {
        ssize_t got = pread(descriptor, to, size, offset);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return pc_error_set_file(error, PC_ERROR_IO, path, "cannot read: %s", strerror(errno));
        if (got == 0) return pc_sealed_refuse_damaged(path, error);
        to += got;
        offset += got;
        size -= (size_t)got;
    }
    return PC_OK;
}

static pc_code hash_range(int descriptor, const char *path, off_t size, uint64_t *hash, pc_error *error) {
    unsigned char block[1 << 16];
    *hash = PC_SEALED_HASH_START;
    for (off_t at = 0; at < size;) {
        size_t part = size - at < (off_t)sizeof block ? (size_t)(size - at) : sizeof block;
        pc_code code = read_at(descriptor, path, block, part, at, error);
        if (code) return code;
        *hash = pc_sealed_hash(*hash, block, part);
        at += (off_t)part;
    }
    return PC_OK;
}

/* Where HDF5's superblock says that the file ends: a little-endian number whose place depends on the version. */
static uint64_t stored_end(const unsigned char header[SUPERBLOCK_SIZE]) {
    unsigned version = header[8];
    size_t place = version == 0 ? 40 : version == 1 ? 44 : 28;
    uint64_t end = 0;
    for (size_t i = 8; i > 0; i--) end = end << 8 | header[place + i - 1];
    return end;
}

/* A file without a seal has been changed by another program; then HDF5's own checks must do, and it ends where HDF5
 * left it. With a piece of a seal behind that, it is damaged. */
static pc_code check_unsealed(int descriptor, const char *path, off_t size, pc_error *error) {
    unsigned char header[SUPERBLOCK_SIZE];
    if (size < SUPERBLOCK_SIZE) return pc_sealed_refuse_damaged(path, error);
    pc_code code = read_at(descriptor, path, header, sizeof header, 0, error);
    if (code) return code;
    return stored_end(header) == (uint64_t)size ? PC_OK : pc_sealed_refuse_damaged(path, error);
}

static pc_code check_seal(int descriptor, const char *path, off_t size, pc_error *error) {
    char seal[SEAL_SIZE] = "", wanted[SEAL_SIZE + 1];
    off_t sealed = size - SEAL_SIZE;
    uint64_t hash;
    pc_code code = sealed > 0 ? read_at(descriptor, path, seal, sizeof seal, sealed, error) : PC_OK;
    if (code) return code;
    if (memcmp(seal, SEAL_PREFIX, SEAL_PREFIX_SIZE) != 0) return check_unsealed(descriptor, path, size, error);
    code = hash_range(descriptor, path, sealed, &hash, error);
    if (code) return code;
    snprintf(wanted, sizeof wanted, SEAL_PREFIX "%016" PRIx64 "\n", hash);
    return memcmp(seal, wanted, sizeof seal) == 0 ? PC_OK : pc_sealed_refuse_damaged(path, error);
}

static pc_code check_signature(int descriptor, const char *path, const pc_sealed_kind *kind, off_t size,
                               pc_error *error) {
    static const char signature[8] = {'\x89', 'H', 'D', 'F', '\r', '\n', '\x1a', '\n'};
    char found[sizeof signature] = "";
    pc_code code = PC_OK;
    if (size >= (off_t)sizeof found) code = read_at(descriptor, path, found, sizeof found, 0, error);
    if (code || memcmp(found, signature, sizeof found) == 0) return code;
    return pc_error_set_file(error, PC_ERROR_INPUT, path, "is not an HDF5 file; expected %s of pipecast",
                             kind->article);
}

static pc_code check_bytes(const char *path, const pc_sealed_kind *kind, pc_error *error) {
    int descriptor = -1;
    off_t size = 0;
    pc_code code = open_regular(path, kind, &descriptor, &size, error);
    if (code) return code;
    code = check_signature(descriptor, path, kind, size, error);
    if (!code) code = check_seal(descriptor, path, size, error);
    close(descriptor);
    return code;
}

/* ---- the format ---- */

bool pc_sealed_describe(hid_t file, const pc_sealed_kind *kind) {
    return pc_h5_put_text(file, "format", kind->format) && pc_h5_put_integer(file, "format_version", kind->version) &&
           pc_h5_put_text(file, "pipecast_version", PC_VERSION);
}

static pc_code check_format(hid_t file, const char *path, const pc_sealed_kind *kind, pc_error *error) {
    char format[64];
    int64_t version;
    if (!pc_h5_get_text(file, "format", format, sizeof format) || strcmp(format, kind->format) != 0)
        return pc_error_set_file(error, PC_ERROR_INPUT, path,
                                 "is an HDF5 file of another kind; expected %s of pipecast", kind->article);
    if (!pc_h5_get_integer(file, "format_version", &version) || version < 1)
        return pc_sealed_refuse_damaged(path, error);
    if (version > kind->version)
        return pc_error_set_file(error, PC_ERROR_INPUT, path,
                                 "has format version %" PRId64 ", from a newer pipecast; this one reads up to %" PRId64,
                                 version, kind->version);
    return PC_OK;
}

/* HDF5 does not say why; but where the system gave it no descriptor, the file is sound. */
static pc_code refuse_to_open(const char *path, const pc_sealed_kind *kind, int cause, pc_error *error) {
    if (cause == EMFILE || cause == ENFILE || cause == EIO) return pc_error_file(error, path, cause, kind->article);
    return pc_sealed_refuse_damaged(path, error);
}

pc_code pc_sealed_open(const char *path, const pc_sealed_kind *kind, hid_t *file, pc_error *error) {
    pc_code code = check_bytes(path, kind, error);
    if (code) return code;
    errno = 0;
    hid_t found = pc_h5_open(path);
    if (found < 0) return refuse_to_open(path, kind, errno, error);
    code = check_format(found, path, kind, error);
    if (code)
        H5Fclose(found);
    else
        *file = found;
    return code;
}

/* ---- writing ---- */

static pc_code fail_in_memory(const char *path, pc_error *error) {
    return pc_error_set_file(error, PC_ERROR_IO, path, "HDF5 could not build the file in memory");
}

/* The bytes of a file in memory, sealed; the caller frees them. */
static pc_code seal_image(hid_t file, const char *path, char **result, size_t *result_size, pc_error *error) {
    ssize_t size = H5Fflush(file, H5F_SCOPE_GLOBAL) >= 0 ? H5Fget_file_image(file, NULL, 0) : -1;
    if (size <= 0) return fail_in_memory(path, error);
    char *image = pc_realloc(NULL, (size_t)size + SEAL_SIZE + 1, 1);
    if (!image) return pc_error_no_memory(error);
    if (H5Fget_file_image(file, image, (size_t)size) != size) {
        pc_free(image);
        return fail_in_memory(path, error);
    }
    uint64_t hash = pc_sealed_hash(PC_SEALED_HASH_START, image, (size_t)size);
    snprintf(image + size, SEAL_SIZE + 1, SEAL_PREFIX "%016" PRIx64 "\n", hash);
    *result = image;
    *result_size = (size_t)size + SEAL_SIZE;
    return PC_OK;
}

pc_code pc_sealed_write(const char *path, const pc_sealed_kind *kind, pc_sealed_body *body, const void *content,
                        pc_error *error) {
    char *image = NULL;
    size_t size = 0;
    pc_h5_quiet quiet = pc_h5_quiet_begin();
    hid_t file = pc_h5_memory_file(content);
    bool is_described = file >= 0 && pc_sealed_describe(file, kind);
    pc_code code = is_described ? body(file, content, error) : pc_fields_fail(error);
    if (code) pc_error_place(error, path, 0, "");
    if (!code) code = seal_image(file, path, &image, &size, error);
    if (file >= 0) H5Fclose(file);
    pc_h5_quiet_end(quiet);
    if (!code) code = pc_replacement_put(path, image, size, error);
    pc_free(image);
    return code;
}

pc_code pc_sealed_finish(pc_replacement *replacement, pc_error *error) {
    char seal[SEAL_SIZE + 1];
    uint64_t hash;
    off_t size = lseek(replacement->descriptor, 0, SEEK_END);
    if (size < 0) return pc_error_set_file(error, PC_ERROR_IO, replacement->path, "cannot write: %s", strerror(errno));
    pc_code code = hash_range(replacement->descriptor, replacement->path, size, &hash, error);
    if (code) return code;
    snprintf(seal, sizeof seal, SEAL_PREFIX "%016" PRIx64 "\n", hash);
    return pc_replacement_write(replacement, seal, SEAL_SIZE, error);
}
