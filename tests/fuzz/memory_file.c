#include "tests/fuzz/memory_file.h"

#include <stdio.h>
#include <string.h>

static const uint8_t *bytes;
static size_t byte_count;

void memory_file_set(const uint8_t *data, size_t size) {
    bytes = data;
    byte_count = size;
}

FILE *__real_fopen(const char *path, const char *mode);
FILE *__wrap_fopen(const char *path, const char *mode);
FILE *__wrap_fopen(const char *path, const char *mode) {
    if (strcmp(path, MEMORY_FILE) != 0) return __real_fopen(path, mode);
    if (byte_count == 0) return __real_fopen("/dev/null", mode); /* fmemopen takes no empty block */
    return fmemopen((void *)bytes, byte_count, "rb");
}

/* What fopen is called where file sizes have 64 bits. */
FILE *__wrap_fopen64(const char *path, const char *mode);
FILE *__wrap_fopen64(const char *path, const char *mode) {
    return __wrap_fopen(path, mode);
}
