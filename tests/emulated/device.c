/* The device of machines without a GPU, for tests: kernels run on the host (emulate.cc), memory is the host's, and the
 * clock is a fake. */
#include "kernels/device.h"

#include "engine/alloc.h"
#include "kernels/dtype.h"
#include "kernels/fill.h"
#include "kernels/launch.h"
#include "tests/emulated/device_private.h"
#include "tests/emulated/emulated.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(address, size)   ((void)(address), (void)(size))
#define ASAN_UNPOISON_MEMORY_REGION(address, size) ((void)(address), (void)(size))
#endif

typedef struct allocation {
    void *address;
    int64_t bytes;
} allocation;

struct pc_device {
    pc_device_info info;
    pc_emulator *emulator;
    pc_attention_library *attention; /* NULL where there is none */
    allocation *allocations;
    int64_t allocation_count, allocation_room;
    int64_t memory_bytes, now_bytes, peak_bytes;
    int64_t launches;
    const char *refused; /* a launch, and why; NULL: none */
    pc_emulated_clock clock;
    bool is_timed;
    double *marks; /* seconds */
    int mark_count;
};

/* ---- the device ---- */

pc_code pc_device_count(int *count, pc_error *error) {
    (void)error;
    *count = 1;
    return PC_OK;
}

static const pc_device_info about = {
    .name = "emulated device (no GPU)",
    .compute_major = 8,
    .processors = 4,
    .memory_bytes = INT64_C(4) << 30,
    .l2_bytes = 1 << 20,
    .shared_bytes = 163 << 10,
    .is_emulated = true,
};

pc_code pc_device_open(int index, pc_device **device, pc_error *error) {
    if (index != 0) return pc_error_set(error, PC_ERROR_INPUT, "emulated device %d; expected 0, the only one", index);
    pc_device *made = pc_alloc(1, sizeof *made);
    if (!made) return pc_error_no_memory(error);
    made->emulator = pc_emulator_create();
    if (!made->emulator) {
        pc_free(made);
        return pc_error_no_memory(error);
    }
    made->info = about;
    made->memory_bytes = about.memory_bytes;
    *device = made;
    return PC_OK;
}

void pc_device_close(pc_device *device) {
    if (!device) return;
    for (int64_t i = 0; i < device->allocation_count; i++) pc_free(device->allocations[i].address);
    pc_free(device->allocations);
    pc_free(device->marks);
    pc_emulator_free(device->emulator);
    pc_free(device);
}

const pc_device_info *pc_device_about(const pc_device *device) {
    return &device->info;
}

pc_emulator *pc_emulated_device_emulator(pc_device *device) {
    return device->emulator;
}

/* ---- what tests say ---- */

void pc_emulated_set_clock(pc_device *device, pc_emulated_clock clock) {
    device->clock = clock;
}

void pc_emulated_set_memory(pc_device *device, int64_t bytes) {
    device->memory_bytes = device->info.memory_bytes = bytes;
}

int64_t pc_emulated_launches(const pc_device *device) {
    return device->launches;
}

int64_t pc_emulated_allocations(const pc_device *device) {
    return device->allocation_count;
}

void pc_emulated_count_launch(pc_device *device) {
    device->launches++;
}

void pc_emulated_describe_loops(int launches, pc_kernel_attributes *made) {
    *made = (pc_kernel_attributes){.kernel = "loops on the host", .registers = -1, .launches = launches};
}

/* ---- memory ---- */

/* What a stream that is recorded refuses on a GPU. */
static pc_code check_not_timed(const pc_device *device, const char *what, pc_error *error) {
    if (!device->is_timed) return PC_OK;
    return pc_error_set(error, PC_ERROR_IO, "emulated device: %s within timed work; expected launches only", what);
}

static pc_code make_room(pc_device *device, pc_error *error) {
    if (device->allocation_count < device->allocation_room) return PC_OK;
    int64_t wanted = device->allocation_room ? 2 * device->allocation_room : 64;
    allocation *grown = pc_realloc(device->allocations, (size_t)wanted, sizeof *grown);
    if (!grown) return pc_error_no_memory(error);
    device->allocations = grown;
    device->allocation_room = wanted;
    return PC_OK;
}

enum { ALIGNMENT = 256 };

static int64_t rounded_up(int64_t bytes) {
    return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

pc_code pc_device_allocate(pc_device *device, int64_t bytes, void **address, pc_error *error) {
    pc_code code = check_not_timed(device, "an allocation", error);
    if (!code) code = make_room(device, error);
    if (code) return code;
    if (bytes < 0 || bytes > device->memory_bytes - device->now_bytes)
        return pc_error_set(error, PC_ERROR_NO_MEMORY,
                            "emulated device: %" PRId64 " bytes do not fit beside %" PRId64
                            "; expected at most %" PRId64 " bytes in all",
                            bytes, device->now_bytes, device->memory_bytes);
    void *made = pc_alloc_aligned(ALIGNMENT, (size_t)(bytes ? bytes : 1), 1);
    if (!made) return pc_error_no_memory(error);
    memset(made, 0xff, (size_t)bytes);
    ASAN_POISON_MEMORY_REGION((char *)made + bytes, (size_t)(rounded_up(bytes ? bytes : 1) - bytes));
    device->allocations[device->allocation_count++] = (allocation){made, bytes};
    device->now_bytes += bytes;
    if (device->now_bytes > device->peak_bytes) device->peak_bytes = device->now_bytes;
    *address = made;
    return PC_OK;
}

void pc_device_free(pc_device *device, void *address) {
    for (int64_t i = device->allocation_count; address && i-- > 0;) {
        allocation found = device->allocations[i];
        if (found.address != address) continue;
        device->allocations[i] = device->allocations[--device->allocation_count];
        device->now_bytes -= found.bytes;
        ASAN_UNPOISON_MEMORY_REGION((char *)address + found.bytes,
                                    (size_t)(rounded_up(found.bytes ? found.bytes : 1) - found.bytes));
        pc_free(address);
        return;
    }
}

pc_code pc_device_allocated(pc_device *device, int64_t *now_bytes, int64_t *peak_bytes, pc_error *error) {
    (void)error;
    *now_bytes = device->now_bytes;
    *peak_bytes = device->peak_bytes;
    return PC_OK;
}

pc_code pc_device_memory_reset_peak(pc_device *device, pc_error *error) {
    (void)error;
    device->peak_bytes = device->now_bytes;
    return PC_OK;
}

static pc_code copy(pc_device *device, void *to, const void *from, int64_t bytes, pc_error *error) {
    pc_code code = check_not_timed(device, "a copy to or from the host", error);
    if (!code) memcpy(to, from, (size_t)bytes);
    return code;
}

pc_code pc_device_upload(pc_device *device, void *to, const void *from, int64_t bytes, pc_error *error) {
    return copy(device, to, from, bytes, error);
}

pc_code pc_device_download(pc_device *device, void *to, const void *from, int64_t bytes, pc_error *error) {
    return copy(device, to, from, bytes, error);
}

static void fill_one(void *address, pc_dtype dtype, int64_t i, pc_fill fill, double scale, uint64_t seed) {
    float factor = pc_fill_factor(fill, scale);
    switch (dtype) {
    case PC_BF16:
        ((uint16_t *)address)[i] = pc_bf16_from_float(pc_fill_float(fill, factor, seed, (uint64_t)i));
        break;
    case PC_FP16:
        ((uint16_t *)address)[i] = pc_fp16_from_float(pc_fill_float(fill, factor, seed, (uint64_t)i));
        break;
    case PC_FP32:
        ((float *)address)[i] = pc_fill_float(fill, factor, seed, (uint64_t)i);
        break;
    case PC_INT32:
        ((int32_t *)address)[i] = pc_fill_whole(fill, (uint64_t)scale, seed, (uint64_t)i);
        break;
    case PC_E4M3:
    case PC_E5M2:
    case PC_E8M0:
        pc_dtype_set(dtype, address, i, (double)pc_fill_float(fill, factor, seed, (uint64_t)i));
        break;
    default:
        ((uint8_t *)address)[i] = (uint8_t)pc_fill_whole(fill, (uint64_t)scale, seed, (uint64_t)i);
    }
}

pc_code pc_device_fill(pc_device *device, void *address, pc_dtype dtype, int64_t count, pc_fill fill, double scale,
                       uint64_t seed, pc_error *error) {
    (void)device;
    pc_code code = pc_fill_check(dtype, fill, scale, error);
    if (code) return code;
    size_t bytes = (size_t)pc_dtype_bytes(dtype);
    uint32_t poison = pc_fill_poison(dtype);
    for (int64_t i = 0; i < count; i++)
        if (fill == PC_FILL_POISON)
            memcpy((char *)address + (size_t)i * bytes, &poison, bytes); /* little-endian */
        else
            fill_one(address, dtype, i, fill, scale, seed);
    return PC_OK;
}

/* ---- launches ---- */

void pc_emulated_refuse(pc_device *device, const char *why) {
    if (!device->refused) device->refused = why;
}

pc_code pc_device_launched(pc_device *device, const char *what, pc_error *error) {
    const char *refused = device->refused;
    device->refused = NULL;
    return refused ? pc_error_set(error, PC_ERROR_IO, "%s: %s", what, refused) : PC_OK;
}

pc_code pc_kernel_function_attributes(pc_device *device, const void *kernel, int64_t dynamic_bytes,
                                      pc_kernel_attributes *made, pc_error *error) {
    (void)device, (void)kernel, (void)error;
    made->registers = -1;
    made->shared_bytes = dynamic_bytes;
    return PC_OK;
}

void pc_device_set_attention(pc_device *device, pc_attention_library *library, const char *name) {
    device->attention = library;
    snprintf(device->info.attention, sizeof device->info.attention, "%s", name);
}

pc_attention_library *pc_device_attention(const pc_device *device) {
    return device->attention;
}

void *pc_device_stream(pc_device *device) {
    (void)device;
    return NULL;
}

/* ---- the fake clock ---- */

static const double launch_s = 1e-6;

pc_code pc_device_wait(pc_device *device, pc_error *error) {
    pc_code code = check_not_timed(device, "a wait", error);
    return code ? code : pc_device_launched(device, "emulated device", error);
}

pc_code pc_device_time(pc_device *device, pc_device_work *work, void *self, int repeats, bool in_graph, double *seconds,
                       pc_error *error) {
    (void)in_graph;
    pc_code code = check_not_timed(device, "timing", error);
    if (code) return code;
    int64_t before = device->launches;
    device->is_timed = true;
    for (int i = 0; i < repeats && !code; i++) code = work(self, i, error);
    device->is_timed = false;
    if (!code) code = pc_device_launched(device, "emulated device", error);
    if (code) return code;
    *seconds = device->clock.seconds ? device->clock.seconds(device->clock.self, repeats)
                                     : (double)(device->launches - before) * launch_s;
    return PC_OK;
}

pc_code pc_device_marks(pc_device *device, int count, pc_error *error) {
    double *grown = pc_realloc(device->marks, (size_t)count, sizeof *grown);
    if (!grown) return pc_error_no_memory(error);
    device->marks = grown;
    device->mark_count = count;
    for (int i = 0; i < count; i++) grown[i] = NAN;
    return PC_OK;
}

pc_code pc_device_mark(pc_device *device, int number, pc_error *error) {
    if (number < 0 || number >= device->mark_count)
        return pc_error_set(error, PC_ERROR_INPUT, "mark %d; expected 0 to %d", number, device->mark_count - 1);
    device->marks[number] =
        device->clock.mark ? device->clock.mark(device->clock.self, number) : (double)device->launches * launch_s;
    return PC_OK;
}

pc_code pc_device_mark_times(pc_device *device, int count, double *seconds, pc_error *error) {
    pc_code code = pc_device_wait(device, error);
    if (code) return code;
    for (int i = 0; i < count; i++)
        if (i >= device->mark_count || isnan(device->marks[i]))
            return pc_error_set(error, PC_ERROR_INPUT, "mark %d was never put; expected it before its time", i);
    for (int i = 0; i < count; i++) seconds[i] = device->marks[i] - device->marks[0];
    return PC_OK;
}

pc_device_state pc_device_state_now(pc_device *device) {
    (void)device;
    return (pc_device_state){NAN, NAN, NAN, NAN, false, false};
}
