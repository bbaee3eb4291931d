/* Profiles, by what a reader may find in them (fake_hdf5.h): all tables and fits, what is shown and compared of them,
 * and the cost model made of them. */
#include "calib/profile/profile_cost.h"
#include "calib/profile/profile_show.h"
#include "tests/fuzz/fake_hdf5.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/held_file.h"
#include "tests/plain_machine.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static void show(const pc_profile *profile) {
    pc_error error = {0};
    char hash[17];
    pc_profile_hash(profile, hash);
    fuzz_require(strlen(hash) == 16, "a profile has a hash");
    for (int format = PC_FORMAT_TABLE; format <= PC_FORMAT_JSON; format++) {
        pc_code code = pc_profile_show(profile, (pc_format)format, held_nowhere(), &error);
        fuzz_check_error(code, &error);
    }
    pc_code code = pc_profile_compare(profile, profile, PC_FORMAT_TABLE, held_nowhere(), &error);
    fuzz_check_error(code, &error);
}

/* Between the edges of what was measured, and somewhat outside. */
static void foretell(const pc_fit *fit) {
    static const double places[] = {0.5, 1.0, 1.7};
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        double x[PC_FIT_DIMENSIONS], low, high;
        int dimension;
        for (int d = 0; d < fit->dimensions; d++) x[d] = fit->least[d] + places[i] * (fit->most[d] - fit->least[d]);
        pc_fit_predict(fit, x);
        pc_fit_interval(fit, x, 0.95, &low, &high);
        pc_fit_distance(fit, x, &dimension);
        fuzz_require(dimension >= 0 && dimension < fit->dimensions, "a distance is along a dimension");
    }
}

static void ask(const pc_cost_model *cost) {
    static const pc_operation operations[] = {
        {.kind = PC_OPERATION_GEMM,
         .name = "qkv",
         .batch = 1,
         .m = 512,
         .n = 512,
         .k = 64,
         .flops = 1 << 25,
         .bytes = 1 << 20,
         .launches = 1,
         .repeat = 1},
        {.kind = PC_OPERATION_ATTENTION,
         .name = "attention",
         .batch = 8,
         .m = 512,
         .n = 512,
         .k = 64,
         .flops = 1 << 26,
         .bytes = 1 << 21,
         .launches = 1,
         .is_causal = true,
         .repeat = 1},
        {.kind = PC_OPERATION_NORM,
         .name = "norm",
         .function = "layer_norm",
         .batch = 1,
         .bytes = 1 << 20,
         .launches = 1,
         .repeat = 1},
        {.kind = PC_OPERATION_OPTIMIZER,
         .name = "optimizer",
         .function = "adam",
         .batch = 1,
         .bytes = 1 << 22,
         .launches = 1,
         .repeat = 1},
    };
    for (size_t i = 0; i < sizeof operations / sizeof operations[0]; i++) cost->kernel(cost->self, &operations[i]);
}

static void plan_with(const pc_profile *profile) {
    pc_machine machine = plain_machine();
    pc_profile_cost *cost = NULL;
    pc_error error = {0};
    char line[512];
    snprintf(machine.gpu.name, sizeof machine.gpu.name, "%s",
             profile->device.gpu[0] ? profile->device.gpu : profile->device.name);
    pc_code code = pc_profile_cost_make(profile, &machine, &cost, &error);
    if (code) return; /* of another GPU: the message has the name, whatever is in it */
    pc_cost_model model = pc_profile_cost_model(cost);
    ask(&model);
    for (int i = 0; i < 8 && pc_profile_cost_warning(cost, i, line, sizeof line); i++)
        fuzz_require(strlen(line) > 0, "a warning says something");
    pc_profile_cost_free(cost);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    pc_profile profile = {0};
    pc_error error = {0};
    const char *path = held_file_sealed();
    fake_hdf5_begin(data, size);
    pc_code code = pc_profile_read(path, &profile, &error);
    fuzz_check_error(code, &error);
    fuzz_require(fake_hdf5_end(), "all that was opened is closed");
    if (code) return 0;
    show(&profile);
    for (int64_t i = 0; i < profile.fit_count; i++) foretell(&profile.fit[i]);
    plan_with(&profile);
    pc_profile_free(&profile);
    return 0;
}
