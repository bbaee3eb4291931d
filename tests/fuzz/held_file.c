#define _GNU_SOURCE /* memfd_create */
#include "tests/fuzz/held_file.h"

#include "results/columns.h"
#include "storage/sealed.h"
#include "tests/fuzz/fuzz.h"

#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

const char *held_file_put(const void *bytes, size_t size) {
    static int descriptor = -1;
    static char path[64];
    if (descriptor < 0) {
        descriptor = memfd_create("pipecast-fuzz", MFD_CLOEXEC);
        snprintf(path, sizeof path, "/proc/self/fd/%d", descriptor);
    }
    bool is_put = ftruncate(descriptor, 0) == 0 && pwrite(descriptor, bytes, size, 0) == (ssize_t)size;
    fuzz_require(is_put, "the file in memory is written");
    return path;
}

void held_file_seal(const void *bytes, size_t size, char seal[HELD_SEAL_SIZE + 1]) {
    uint64_t hash = pc_sealed_hash(PC_SEALED_HASH_START, bytes, size);
    snprintf(seal, HELD_SEAL_SIZE + 1, "\npipecast-fnv1a64 %016" PRIx64 "\n", hash);
}

const char *held_file_sealed(void) {
    static const char *path;
    char bytes[8 + HELD_SEAL_SIZE + 1] = "\x89HDF\r\n\x1a\n";
    if (path) return path;
    held_file_seal(bytes, 8, bytes + 8);
    return path = held_file_put(bytes, 8 + HELD_SEAL_SIZE);
}

void fuzz_check_row(const pc_run_row *row) {
    char text[PC_COLUMN_TEXT_SIZE];
    int count;
    const pc_column *columns = pc_columns(&count);
    for (int i = 0; i < count; i++) {
        if (columns[i].field.type == PC_FIELD_INT64 || columns[i].field.type == PC_FIELD_NUMBER) continue;
        pc_column_text(&columns[i], row, text, sizeof text);
        fuzz_require(!pc_column_defined(&columns[i], row) == !text[0], "what is defined has a text");
        if (columns[i].field.type != PC_FIELD_TEXT) continue;
        fuzz_require(strlen(text) < columns[i].field.size, "a text ends in its field");
    }
}

FILE *held_nowhere(void) {
    static FILE *stream;
    if (!stream) stream = fopen("/dev/null", "w");
    fuzz_require(stream != NULL, "there is /dev/null");
    return stream;
}
