/* Fuzz target: arguments of Megatron-LM (scenarios/import/megatron.h). */
#include "tests/fuzz/foreign.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    fuzz_foreign(PC_IMPORT_MEGATRON, data, size);
    return 0;
}
