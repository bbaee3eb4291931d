/* Fuzz target: tables of kernels' and transfers' times (calib/import/import.h). */
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/import_text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_import(data, size, NULL);
    return 0;
}
