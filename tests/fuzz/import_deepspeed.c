/* Fuzz target: configurations of DeepSpeed (scenarios/import/deepspeed.h). */
#include "tests/fuzz/foreign.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_foreign(PC_IMPORT_DEEPSPEED, data, size);
    return 0;
}
