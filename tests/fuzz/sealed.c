/* The seal: bytes that pipecast did not write, or that were changed since, never get to HDF5.
 *
 * The first byte: bit 0, a results file or a profile; bit 1, a right seal is put behind the rest, which is the file. */
#include "calib/profile/profile.h"
#include "results/store/store.h"
#include "tests/fuzz/fake_hdf5.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/held_file.h"

#include <string.h>

enum { FILE_MAX = 1 << 16 };

static bool has_signature(const char *bytes, size_t size) {
    return size >= 8 && memcmp(bytes, "\x89HDF\r\n\x1a\n", 8) == 0;
}

static bool has_right_seal(const char *bytes, size_t size) {
    char seal[HELD_SEAL_SIZE + 1];
    if (size <= HELD_SEAL_SIZE) return false;
    held_file_seal(bytes, size - HELD_SEAL_SIZE, seal);
    return memcmp(bytes + size - HELD_SEAL_SIZE, seal, HELD_SEAL_SIZE) == 0;
}

/* Without a seal, a file that another program changed: it ends where its superblock says. */
static bool is_of_another_program(const char *bytes, size_t size) {
    static const size_t places[] = {40, 44};
    uint64_t end = 0;
    if (size < 56) return false;
    unsigned char version = (unsigned char)bytes[8];
    memcpy(&end, bytes + (version < 2 ? places[version] : 28), sizeof end);
    bool is_sealed = memcmp(bytes + size - HELD_SEAL_SIZE, "\npipecast-fnv1a64 ", 18) == 0;
    return end == size && !is_sealed;
}

static pc_code read_file(const char *path, bool is_profile) {
    pc_error error = {0};
    pc_results_reader *reader = NULL;
    pc_profile profile = {0};
    pc_code code = is_profile ? pc_profile_read(path, &profile, &error) : pc_results_open(path, &reader, &error);
    fuzz_check_error(code, &error);
    pc_results_close(reader);
    if (is_profile && !code) pc_profile_free(&profile);
    return code;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static char bytes[FILE_MAX + HELD_SEAL_SIZE + 1];
    if (size < 1 || size > FILE_MAX) return -1;
    size_t length = size - 1;
    memcpy(bytes, data + 1, length);
    if (data[0] & 2) {
        held_file_seal(bytes, length, bytes + length);
        length += HELD_SEAL_SIZE;
    }
    bool may_open =
        has_signature(bytes, length) && (has_right_seal(bytes, length) || is_of_another_program(bytes, length));
    fake_hdf5_begin((const uint8_t *)"", 0);
    pc_code code = read_file(held_file_put(bytes, length), data[0] & 1);
    fuzz_require(fake_hdf5_opened() == (may_open ? 1 : 0), "HDF5 gets to see what it may, and nothing else");
    fuzz_require(code == PC_ERROR_INPUT, "a file without anything in it is refused");
    fuzz_require(fake_hdf5_end(), "all that was opened is closed");
    return 0;
}
