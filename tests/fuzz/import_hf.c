/* Fuzz target: config.json of Hugging Face (scenarios/import/hf.h). */
#include "tests/fuzz/foreign.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_foreign(PC_IMPORT_HF, data, size);
    return 0;
}
