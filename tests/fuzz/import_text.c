#include "tests/fuzz/import_text.h"

#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/memory_file.h"

#include <math.h>
#include <string.h>

static bool is_above_zero(double x) {
    return isfinite(x) && x > 0;
}

static void check_transfer(const pc_transfer_measurement *measured) {
    fuzz_require(measured->collective[0] && measured->link[0], "a transfer has a collective and a link");
    fuzz_require(measured->ranks >= 1 && measured->nodes >= 1, "a transfer has ranks and nodes");
    fuzz_require(is_above_zero(measured->size_bytes) && is_above_zero(measured->seconds.median),
                 "a transfer has a size and a time");
    fuzz_require(is_above_zero(measured->algbw) && isfinite(measured->busbw) && measured->busbw >= 0,
                 "a transfer has bandwidths");
    fuzz_require(measured->seconds.count == 1 && measured->first_sample == -1, "an import has no samples");
}

static void check_kernel(const pc_kernel_measurement *measured) {
    fuzz_require(measured->kernel[0] && measured->dtype[0], "a kernel has a name and a type");
    fuzz_require(is_above_zero(measured->seconds.median), "a kernel has a time");
    fuzz_require(measured->batch >= 0 && measured->m >= 0 && measured->n >= 0 && measured->k >= 0,
                 "a kernel has a shape");
    fuzz_require(measured->flops >= 0 && measured->bytes >= 0, "a kernel's work is none or more");
    fuzz_require(measured->seconds.count == 1 && measured->first_sample == -1, "an import has no samples");
}

void fuzz_import(const uint8_t *data, size_t size, const pc_import_options *options) {
    pc_error error = {0};
    pc_profile profile = {0};
    const pc_kernel_measurement old = {.kernel = "copy", .bytes = 1};
    fuzz_require(!pc_profile_add_kernel(&profile, &old, NULL, NULL), "memory is not short");
    memory_file_set(data, size);
    pc_code code = pc_profile_import(&profile, MEMORY_FILE, options, &error);
    fuzz_check_error(code, &error);
    int64_t added = profile.kernel_count - 1 + profile.transfer_count;
    if (code)
        fuzz_require(added == 0 && !profile.device.origin[0] && !profile.device.name[0],
                     "on failure a profile stays as it was");
    else
        fuzz_require(added > 0 && profile.device.origin[0], "on success a profile has more, and where it came from");
    for (int64_t i = 1; i < profile.kernel_count; i++) check_kernel(&profile.kernel[i]);
    for (int64_t i = 0; i < profile.transfer_count; i++) check_transfer(&profile.transfer[i]);
    pc_profile_free(&profile);
}
