/* Fuzz target: recipes of NeMo and Megatron-Bridge (scenarios/import/megatron.h). */
#include "tests/fuzz/foreign.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_foreign(PC_IMPORT_NEMO, data, size);
    return 0;
}
