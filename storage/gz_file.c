#include "storage/gz_file.h"

#include "engine/alloc.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

struct pc_gz_file {
    char *path;
    gzFile stream;
};

/* Nobody is to wait for a pipe or a device that was named by mistake. */
static int open_regular(const char *path, const char *expected, pc_error *error) {
    struct stat status;
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor < 0 || fstat(descriptor, &status) != 0) {
        pc_error_file(error, path, errno, expected);
    } else if (!S_ISREG(status.st_mode)) {
        pc_error_set_file(error, PC_ERROR_INPUT, path, "is no regular file; expected %s", expected);
    } else {
        return descriptor;
    }
    if (descriptor >= 0) close(descriptor);
    return -1;
}

static pc_code open_stream(pc_gz_file *file, const char *path, const char *expected, pc_error *error) {
    enum { BUFFER_BYTES = 1 << 17 };
    pc_error why = {0};
    file->path = pc_strdup(path);
    if (!file->path) return pc_error_no_memory(error);
    int descriptor = open_regular(path, expected, &why);
    if (descriptor < 0) return pc_error_copy(error, &why);
    file->stream = gzdopen(descriptor, "rb");
    if (!file->stream) close(descriptor);
    return file->stream && gzbuffer(file->stream, BUFFER_BYTES) == 0 ? PC_OK : pc_error_no_memory(error);
}

pc_code pc_gz_open(const char *path, const char *expected, pc_gz_file **opened, pc_error *error) {
    pc_gz_file *file = pc_alloc(1, sizeof *file);
    if (!file) return pc_error_no_memory(error);
    pc_code code = open_stream(file, path, expected, error);
    if (code)
        pc_gz_close(file);
    else
        *opened = file;
    return code;
}

void pc_gz_close(pc_gz_file *file) {
    if (!file) return;
    if (file->stream) gzclose_r(file->stream);
    pc_free(file->path);
    pc_free(file);
}

static pc_code say(const pc_gz_file *file, int cause, pc_error *error) {
    if (cause == Z_MEM_ERROR) return pc_error_no_memory(error);
    if (cause == Z_ERRNO)
        return pc_error_set_file(error, PC_ERROR_IO, file->path, "cannot be read: %s", strerror(errno));
    if (cause == Z_BUF_ERROR)
        return pc_error_set_file(error, PC_ERROR_INPUT, file->path, "is cut off; expected a whole file of gzip");
    return pc_error_set_file(error, PC_ERROR_INPUT, file->path, "is damaged; expected a file of gzip");
}

int64_t pc_gz_read(void *context, char *bytes, size_t size, pc_error *error) {
    pc_gz_file *file = context;
    int count = gzread(file->stream, bytes, (unsigned)size), cause = Z_OK;
    if (count > 0) return count;
    gzerror(file->stream, &cause);
    if (cause == Z_OK || cause == Z_STREAM_END) return 0;
    say(file, cause, error);
    return -1;
}

pc_code pc_gz_rewind(pc_gz_file *file, pc_error *error) {
    return gzrewind(file->stream) == 0 ? PC_OK : say(file, Z_ERRNO, error);
}
