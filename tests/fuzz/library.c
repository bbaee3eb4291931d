/* Fuzz target: files of models, machines and GPUs (scenarios/library_private.h). The first letter says which: m a
 * model, g a GPU, else a machine; parts.h says how an input is several files. What is accepted is accepted twice. */
#include "scenarios/library_private.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/parts.h"

#include <math.h>
#include <string.h>

static void check_model(void) {
    pc_error error = {0};
    pc_library_model model;
    pc_code code = pc_library_load_model(INPUT_FILE, &model, &error);
    fuzz_check_error(code, &error);
    if (code) return;
    fuzz_require(model.model.layers > 0 && model.model.hidden > 0, "a model has layers and a width");
}

static void check_gpu(void) {
    pc_error error = {0};
    pc_gpu gpu;
    pc_place place = pc_place_of_user();
    pc_code code = pc_gpu_file_read(INPUT_FILE, &place, &gpu, &error);
    fuzz_check_error(code, &error);
    if (code) return;
    fuzz_require(isfinite(gpu.matrix_flops_per_s) && gpu.matrix_flops_per_s > 0, "a GPU has a rate");
    fuzz_require(gpu.memory_bytes > 0, "a GPU has a memory");
}

static void check_machine(void) {
    pc_error error = {0};
    pc_library_machine machine;
    pc_code code = pc_library_load_machine(INPUT_FILE, &machine, &error);
    fuzz_check_error(code, &error);
    if (code) return;
    fuzz_require(machine.machine.gpus_per_node > 0, "a machine has GPUs");
    fuzz_require(isfinite(machine.machine.gpu.matrix_flops_per_s), "a machine's GPU has a rate");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0) return -1;
    parts_set(data + 1, size - 1);
    if (data[0] == 'm')
        check_model();
    else if (data[0] == 'g')
        check_gpu();
    else
        check_machine();
    return 0;
}
