/* Fuzz target: what nccl-tests print (calib/import/import.h), with and without options. The first byte's lowest bit
 * says which. */
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/import_text.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const char first[] = "# nThread 1\n"; /* tells it from a table */
    static const pc_import_options options = {.collective = "all_reduce", .link = "nvlink", .ranks = 8, .nodes = 1};
    uint8_t *text = malloc(sizeof first - 1 + size);
    fuzz_require(text, "memory is not short");
    memcpy(text, first, sizeof first - 1);
    if (size > 0) memcpy(text + sizeof first - 1, data, size);
    fuzz_import(text, sizeof first - 1 + size, size > 0 && data[0] & 1 ? NULL : &options);
    free(text);
    return 0;
}
