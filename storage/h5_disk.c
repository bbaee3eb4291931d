#include "storage/h5_disk.h"

#include "engine/alloc.h"
#include "storage/h5.h"

#if H5_VERSION_GE(1, 13, 0)
#include <H5FDdevelop.h>
#endif

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { WRITE_MAX = 1 << 30 }; /* bytes of one system call */

/* A piece that the disk did not take. */
typedef struct pc_h5_kept {
    haddr_t address;
    size_t size;
    struct pc_h5_kept *next;
    unsigned char bytes[];
} pc_h5_kept;

/* HDF5's own part comes first, as it wants it. */
typedef struct disk_file {
    H5FD_t own;
    pc_h5_disk *disk;
    haddr_t allocated, end;
} disk_file;

/* What the property list carries. */
typedef struct disk_access {
    pc_h5_disk *disk;
} disk_access;

/* --- bytes --- */

/* 0, or errno. */
static int write_at(int descriptor, const void *bytes, size_t size, haddr_t address) {
    const char *at = bytes;
    while (size > 0) {
        ssize_t written = pwrite(descriptor, at, size < WRITE_MAX ? size : WRITE_MAX, (off_t)address);
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) return written < 0 ? errno : EIO;
        at += written;
        address += (haddr_t)written;
        size -= (size_t)written;
    }
    return 0;
}

/* What stands behind the end reads as zeros, as in a file with a hole. 0, or errno. */
static int read_at(int descriptor, void *bytes, size_t size, haddr_t address) {
    char *to = bytes;
    while (size > 0) {
        ssize_t got = pread(descriptor, to, size < WRITE_MAX ? size : WRITE_MAX, (off_t)address);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return errno;
        if (got == 0) return memset(to, 0, size), 0;
        to += got;
        address += (haddr_t)got;
        size -= (size_t)got;
    }
    return 0;
}

static bool keep(pc_h5_disk *disk, const void *bytes, size_t size, haddr_t address) {
    pc_h5_kept *piece = pc_alloc(1, sizeof *piece + size);
    if (!piece) return false;
    piece->address = address;
    piece->size = size;
    memcpy(piece->bytes, bytes, size);
    *(disk->last ? &disk->last->next : &disk->first) = piece;
    disk->last = piece;
    return true;
}

/* Lays what was kept over what the disk has. */
static void patch(const pc_h5_disk *disk, unsigned char *bytes, size_t size, haddr_t address) {
    for (const pc_h5_kept *piece = disk->first; piece; piece = piece->next) {
        haddr_t from = piece->address > address ? piece->address : address;
        haddr_t end = piece->address + piece->size, limit = address + size;
        haddr_t to = end < limit ? end : limit;
        if (from < to) memcpy(bytes + (from - address), piece->bytes + (from - piece->address), (size_t)(to - from));
    }
}

/* --- what HDF5 calls --- */

static H5FD_t *open_file(const char *name, unsigned flags, hid_t access, haddr_t most) {
    (void)name;
    (void)flags;
    (void)most;
    const disk_access *given = H5Pget_driver_info(access);
    disk_file *file = given ? pc_alloc(1, sizeof *file) : NULL;
    if (!file) return NULL;
    file->disk = given->disk;
    return &file->own;
}

static herr_t close_file(H5FD_t *own) {
    pc_free(own);
    return 0;
}

static int compare_files(const H5FD_t *a, const H5FD_t *b) {
    const pc_h5_disk *one = ((const disk_file *)a)->disk, *other = ((const disk_file *)b)->disk;
    return one < other ? -1 : one > other;
}

/* As of HDF5's own driver for memory and disk, so that the layout of files is the same. */
static herr_t query_file(const H5FD_t *own, unsigned long *flags) {
    (void)own;
    *flags = H5FD_FEAT_AGGREGATE_METADATA | H5FD_FEAT_ACCUMULATE_METADATA | H5FD_FEAT_DATA_SIEVE |
             H5FD_FEAT_AGGREGATE_SMALLDATA;
    return 0;
}

static haddr_t get_allocated(const H5FD_t *own, H5FD_mem_t type) {
    (void)type;
    return ((const disk_file *)own)->allocated;
}

static herr_t set_allocated(H5FD_t *own, H5FD_mem_t type, haddr_t address) {
    (void)type;
    ((disk_file *)own)->allocated = address;
    return 0;
}

static haddr_t get_end(const H5FD_t *own, H5FD_mem_t type) {
    (void)type;
    return ((const disk_file *)own)->end;
}

static herr_t read_file(H5FD_t *own, H5FD_mem_t type, hid_t transfer, haddr_t address, size_t size, void *bytes) {
    (void)type;
    (void)transfer;
    const disk_file *file = (const disk_file *)own;
    if (read_at(file->disk->descriptor, bytes, size, address) != 0) return -1;
    patch(file->disk, bytes, size, address);
    return 0;
}

static herr_t write_file(H5FD_t *own, H5FD_mem_t type, hid_t transfer, haddr_t address, size_t size,
                         const void *bytes) {
    (void)type;
    (void)transfer;
    disk_file *file = (disk_file *)own;
    pc_h5_disk *disk = file->disk;
    if (!disk->cause) disk->cause = write_at(disk->descriptor, bytes, size, address);
    if (disk->cause && !keep(disk, bytes, size, address)) return -1;
    if (address + size > file->end) file->end = address + size;
    return 0;
}

static herr_t truncate_file(H5FD_t *own, hid_t transfer, hbool_t is_closing) {
    (void)transfer;
    (void)is_closing;
    disk_file *file = (disk_file *)own;
    pc_h5_disk *disk = file->disk;
    if (!disk->cause && file->end != file->allocated && ftruncate(disk->descriptor, (off_t)file->allocated) != 0)
        disk->cause = errno;
    file->end = file->allocated;
    return 0;
}

static const H5FD_class_t driver = {
#ifdef H5FD_CLASS_VERSION
    .version = H5FD_CLASS_VERSION,
    .value = (H5FD_class_value_t)512, /* the first of those that anybody may use */
#endif
    .name = "pipecast-disk",
    .maxaddr = INT64_MAX,
    .fc_degree = H5F_CLOSE_WEAK,
    .fapl_size = sizeof(disk_access),
    .open = open_file,
    .close = close_file,
    .cmp = compare_files,
    .query = query_file,
    .get_eoa = get_allocated,
    .set_eoa = set_allocated,
    .get_eof = get_end,
    .read = read_file,
    .write = write_file,
    .truncate = truncate_file,
    .fl_map = H5FD_FLMAP_DICHOTOMY,
};

hid_t pc_h5_disk_file(pc_h5_disk *disk, int descriptor) {
    *disk = (pc_h5_disk){.descriptor = descriptor, .driver = H5FDregister(&driver)};
    disk_access given = {disk};
    hid_t access = H5Pcreate(H5P_FILE_ACCESS), file = -1;
    if (disk->driver >= 0 && access >= 0 && H5Pset_driver(access, disk->driver, &given) >= 0)
        file = pc_h5_create(disk, access);
    H5Pclose(access);
    return file;
}

void pc_h5_disk_end(pc_h5_disk *disk) {
    for (pc_h5_kept *piece = disk->first, *next; piece; piece = next) {
        next = piece->next;
        pc_free(piece);
    }
    if (disk->driver > 0) H5FDunregister(disk->driver);
    *disk = (pc_h5_disk){.descriptor = -1};
}
