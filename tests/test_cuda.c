/* The host's part of a device over CUDA: opening, memory, time, graphs and marks, against a made-up runtime
 * (fake_cuda.h) that knows what CUDA forbids. Whether a GPU agrees, only a GPU can tell. */
#include "tests/support.h"

#include "engine/alloc.h"
#include "kernels/cuda/runtime.h"
#include "tests/fake_cublaslt.h"
#include "tests/fake_cuda.h"
#include "tests/fake_device.h"
#include "tests/fake_nvml.h"

#include <math.h>

/* ---- opening ---- */

static void test_without_gpu(void **state) {
    (void)state;
    int count = -1;
    pc_error error = {0};
    fake.driver = cudaErrorInsufficientDriver;
    assert_int_equal(pc_device_count(&count, &error), PC_ERROR_IO);
    assert_int_equal(count, -1);
    assert_string_equal(error.message,
                        "no GPU: CUDA driver version is insufficient for CUDA runtime version; expected an NVIDIA GPU "
                        "and its driver (without one: `pipecast profile fit` makes a profile of others' measurements)");
    pc_device *device = NULL;
    assert_int_equal(pc_device_open(0, &device, &error), PC_ERROR_IO);
    assert_null(device);
    fake.driver = cudaSuccess;
    fake.devices = 0;
    assert_int_equal(pc_device_count(&count, &error), PC_ERROR_IO);
    assert_non_null(strstr(error.message, "no GPU: no CUDA-capable device is detected; expected"));
    fake.devices = 3;
    assert_int_equal(pc_device_count(&count, NULL), PC_OK);
    assert_int_equal(count, 3);
    assert_int_equal(cudaGetLastError(), cudaSuccess);
}

static void test_about(void **state) {
    (void)state;
    fake_nvml_now()->sm_mhz = 1980;
    pc_device *device = fake_device_open();
    const pc_device_info *about = pc_device_about(device);
    assert_string_equal(about->name, "made-up GPU 0");
    assert_string_equal(about->driver, "580.65.06, CUDA 12.8");
    assert_string_equal(about->runtime, "13.0");
    assert_string_equal(about->blas, "13.0.2");
    assert_string_equal(about->nccl, "2.27.7");
    assert_int_equal(about->compute_major, 9);
    assert_int_equal(about->processors, 132);
    assert_true(about->memory_bytes == INT64_C(1) << 30);
    assert_int_equal(about->reserved_bytes, 64 << 20); /* the workspace of products */
    assert_int_equal(about->l2_bytes, 50 << 20);
    assert_int_equal(about->shared_bytes, 227 << 10);
    assert_false(about->is_emulated);
    fake_device_close(device);
}

static void test_refuses_devices(void **state) {
    (void)state;
    pc_device *device = NULL;
    pc_error error = {0};
    assert_int_equal(pc_device_open(1, &device, &error), PC_ERROR_INPUT);
    assert_string_equal(error.message, "device 1: there is none; expected 0 to 0");
    fake.compute_major = 7;
    assert_int_equal(pc_device_open(0, &device, &error), PC_ERROR_INPUT);
    assert_string_equal(error.message, "device 0: made-up GPU 0 has compute capability 7.0; expected 8.0 or later");
    assert_null(device);
    fake_device_check_empty();
}

/* Whatever fails while it is opened: one line that names the call, and nothing is left behind. */
static void test_opening_fails(void **state) {
    (void)state;
    static const char *const names[] = {"cudaGetDeviceProperties", "cudaSetDevice",     "cudaStreamCreateWithFlags",
                                        "cudaEventCreate",         "cudaMemPoolCreate", "cudaMemPoolSetAttribute",
                                        "cudaMemGetInfo"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        pc_device *device = NULL;
        pc_error error = {0};
        fake.fails = names[i];
        fake.fails_with = cudaErrorUnknown;
        assert_int_equal(pc_device_open(0, &device, &error), PC_ERROR_IO);
        assert_null(device);
        char expected[96];
        snprintf(expected, sizeof expected, "device 0: %s: a made-up fault (cudaErrorMadeUp)", names[i]);
        assert_string_equal(error.message, expected);
        assert_int_equal(cudaGetLastError(), cudaSuccess);
        fake_device_check_empty();
        fake.fails = names[i];
        assert_int_equal(pc_device_open(0, &device, NULL), PC_ERROR_IO); /* nobody asks why */
        assert_null(device);
    }
}

/* NVML and cuBLASLt may be short of memory and then are not there; the device itself says that it is. */
static void test_no_memory(void **state) {
    (void)state;
    int opened = 0;
    for (long after = 0; opened < 3; after++) {
        pc_device *device = NULL;
        pc_error error = {0};
        pc_alloc_fail_after(after);
        pc_code code = pc_device_open(0, &device, &error);
        pc_alloc_fail_after(-1);
        assert_true(code == PC_OK || code == PC_ERROR_NO_MEMORY);
        opened += code == PC_OK;
        pc_device_close(device);
        fake_device_check_empty();
    }
}

/* ---- memory ---- */

static void check_memory(pc_device *device, int64_t now, int64_t peak) {
    int64_t found_now, found_peak;
    assert_int_equal(pc_device_allocated(device, &found_now, &found_peak, NULL), PC_OK);
    assert_int_equal(found_now, now);
    assert_int_equal(found_peak, peak);
}

static void test_memory(void **state) {
    (void)state;
    pc_device *device = fake_device_open();
    void *a, *b, *c;
    check_memory(device, 0, 0);
    assert_int_equal(pc_device_allocate(device, 1000, &a, NULL), PC_OK);
    assert_int_equal(pc_device_allocate(device, 500, &b, NULL), PC_OK);
    check_memory(device, 1500, 1500);
    pc_device_free(device, a);
    check_memory(device, 500, 1500);
    assert_int_equal(pc_device_memory_reset_peak(device, NULL), PC_OK);
    check_memory(device, 500, 500);
    pc_device_free(device, b);
    check_memory(device, 0, 500); /* in use when it was reset */
    assert_int_equal(pc_device_allocate(device, 700, &c, NULL), PC_OK);
    check_memory(device, 700, 700);
    pc_device_free(device, c);
    pc_device_free(device, NULL);
    assert_int_equal(pc_device_allocate(device, 0, &c, NULL), PC_OK);
    pc_device_free(device, c);
    fake_device_close(device);
}

static void test_out_of_memory(void **state) {
    (void)state;
    pc_device *device = fake_device_open();
    void *address = NULL;
    pc_error error = {0};
    assert_int_equal(pc_device_allocate(device, INT64_C(1) << 31, &address, &error), PC_ERROR_NO_MEMORY);
    assert_null(address);
    assert_string_equal(error.message,
                        "cudaMallocFromPoolAsync of 2147483648 bytes: out of memory (cudaErrorMemoryAllocation)");
    /* It is forgotten: the next launch is not blamed. */
    assert_int_equal(pc_device_launched(device, "next", NULL), PC_OK);
    /* Memory in pieces, which the pool can give back: the second try succeeds, behind a wait. */
    int before = fake.synchronisations;
    fake.fails = "cudaMallocFromPoolAsync";
    fake.fails_with = cudaErrorMemoryAllocation;
    assert_int_equal(pc_device_allocate(device, 4096, &address, NULL), PC_OK);
    assert_int_equal(fake.synchronisations, before + 1);
    pc_device_free(device, address);
    fake_device_close(device);
}

static void test_copies(void **state) {
    (void)state;
    pc_device *device = fake_device_open();
    void *there;
    char from[100], to[100] = {0};
    for (int i = 0; i < 100; i++) from[i] = (char)i;
    assert_int_equal(pc_device_allocate(device, 100, &there, NULL), PC_OK);
    assert_int_equal(pc_device_upload(device, there, from, 100, NULL), PC_OK);
    assert_int_equal(pc_device_download(device, to, there, 100, NULL), PC_OK);
    assert_memory_equal(from, to, 100);
    pc_error error = {0};
    fake.fails = "cudaMemcpyAsync";
    fake.fails_with = cudaErrorUnknown;
    assert_int_equal(pc_device_upload(device, there, from, 100, &error), PC_ERROR_IO);
    assert_string_equal(error.message, "cudaMemcpyAsync: a made-up fault (cudaErrorMadeUp)");
    pc_device_free(device, there);
    fake_device_close(device);
}

/* ---- faults ---- */

static void test_launched(void **state) {
    (void)state;
    pc_device *device = fake_device_open();
    pc_error error = {0};
    fake.fails = "cudaFuncGetAttributes";
    fake.fails_with = cudaErrorUnknown;
    struct cudaFuncAttributes found;
    (void)cudaFuncGetAttributes(&found, NULL); /* as a launch that could not be */
    assert_int_equal(pc_device_launched(device, "layer_norm_forward", &error), PC_ERROR_IO);
    assert_string_equal(error.message, "layer_norm_forward: the launch: a made-up fault (cudaErrorMadeUp)");
    assert_int_equal(pc_device_launched(device, "layer_norm_forward", NULL), PC_OK);
    pc_kernel_attributes made = {.launches = 7};
    assert_int_equal(pc_kernel_function_attributes(device, "a function", 512, &made, NULL), PC_OK);
    assert_int_equal(made.registers, 40);
    assert_int_equal(made.shared_bytes, 1024 + 512);
    assert_int_equal(made.launches, 7);
    fake_device_close(device);
}

/* A fault that CUDA recovers from is told, and gone; one that ends the context is told in CUDA's words once. */
static void test_lost(void **state) {
    (void)state;
    pc_device *device = fake_device_open();
    pc_error error = {0};
    fake.fails = "cudaStreamSynchronize";
    fake.fails_with = cudaErrorUnknown;
    assert_int_equal(pc_device_wait(device, &error), PC_ERROR_IO);
    assert_int_equal(pc_device_wait(device, NULL), PC_OK);
    fake.is_lost = true;
    assert_int_equal(pc_device_wait(device, &error), PC_ERROR_IO);
    assert_string_equal(error.message,
                        "cudaStreamSynchronize: an illegal memory access was encountered (cudaErrorIllegalAddress)");
    assert_int_equal(pc_device_wait(device, &error), PC_ERROR_IO);
    assert_string_equal(error.message, "device 0: lost to the fault of a kernel before; expected a new process");
    fake_device_close(device);
}

/* ---- time ---- */

typedef struct counting {
    pc_device *device;
    int ran, enqueued, fails_at;
    bool is_recorded; /* whether it ran while it was only recorded */
} counting;

typedef struct one_run {
    counting *of;
    int repeat;
} one_run;

static void run_one(void *data) {
    const one_run *one = data;
    assert_int_equal(one->of->ran, one->repeat); /* in order, each once */
    one->of->ran++;
    one->of->is_recorded |= one->of->device->is_recording;
}

/* Repetition r takes r + 1 ms. */
static pc_code enqueue_one(void *self, int repeat, pc_error *error) {
    counting *of = self;
    if (of->enqueued == of->fails_at) return pc_error_set(error, PC_ERROR_INPUT, "the work: a fault");
    of->enqueued++;
    const one_run one = {of, repeat};
    fake_cuda_enqueue(pc_device_stream(of->device), run_one, &one, sizeof one, 1e-3 * (repeat + 1));
    return PC_OK;
}

static void test_time(void **state) {
    (void)state;
    pc_device *device = fake_device_open();
    for (int in_graph = 0; in_graph < 2; in_graph++) {
        counting work = {.device = device, .fails_at = -1};
        double seconds = -1;
        assert_int_equal(pc_device_time(device, enqueue_one, &work, 5, in_graph == 1, &seconds, NULL), PC_OK);
        assert_int_equal(work.ran, 5);
        assert_int_equal(work.enqueued, 5);
        assert_false(work.is_recorded);
        assert_true(fabs(seconds - 15e-3) < 1e-8); /* 1 + 2 + 3 + 4 + 5 ms */
        assert_int_equal(fake.graph_launches, in_graph);
        assert_int_equal(fake.graphs, 0);
        assert_int_equal(fake.ready_graphs, 0);
    }
    fake_device_close(device);
}

/* A launch on an idle stream arrives late; of a graph that is no part of the time. */
static void test_time_without_latency(void **state) {
    (void)state;
    pc_device *device = fake_device_open();
    counting work = {.device = device, .fails_at = -1};
    double seconds = -1;
    fake.latency_s = 8e-6;
    assert_int_equal(pc_device_wait(device, NULL), PC_OK);
    assert_int_equal(pc_device_time(device, enqueue_one, &work, 2, true, &seconds, NULL), PC_OK);
    assert_true(fabs(seconds - 3e-3) < 1e-8);
    fake_device_close(device);
}

/* A fault of the work, or of any call on the way, comes back as it is, and what comes after it works. */
static void test_time_fails(void **state) {
    (void)state;
    static const char *const names[] = {NULL,
                                        "cudaEventRecord",
                                        "cudaStreamBeginCapture",
                                        "cudaStreamEndCapture",
                                        "cudaGraphInstantiateWithFlags",
                                        "cudaGraphUpload",
                                        "cudaGraphLaunch",
                                        "cudaStreamSynchronize",
                                        "cudaEventElapsedTime"};
    pc_device *device = fake_device_open();
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        counting work = {.device = device, .fails_at = names[i] ? -1 : 2};
        double seconds = -1;
        pc_error error = {0};
        fake.fails = names[i];
        fake.fails_with = cudaErrorUnknown;
        pc_code code = pc_device_time(device, enqueue_one, &work, 4, true, &seconds, &error);
        assert_int_equal(code, names[i] ? PC_ERROR_IO : PC_ERROR_INPUT);
        assert_non_null(strstr(error.message, names[i] ? names[i] : "the work: a fault"));
        assert_true(seconds == -1);
        assert_int_equal(fake.graphs + fake.ready_graphs, 0);
        assert_false(device->is_recording);
        work = (counting){.device = device, .fails_at = -1};
        assert_int_equal(pc_device_time(device, enqueue_one, &work, 2, true, &seconds, NULL), PC_OK);
        assert_true(fabs(seconds - 3e-3) < 1e-8);
    }
    fake_device_close(device);
}

static void test_marks(void **state) {
    (void)state;
    pc_device *device = fake_device_open();
    double seconds[3] = {-1, -1, -1};
    assert_int_equal(pc_device_marks(device, 5, NULL), PC_OK);
    assert_int_equal(pc_device_marks(device, 3, NULL), PC_OK);
    counting work = {.device = device, .fails_at = -1};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(pc_device_mark(device, i, NULL), PC_OK);
        assert_int_equal(enqueue_one(&work, i, NULL), PC_OK); /* 1, 2, 3 ms */
    }
    assert_int_equal(pc_device_mark_times(device, 3, seconds, NULL), PC_OK);
    assert_true(seconds[0] == 0 && fabs(seconds[1] - 1e-3) < 1e-8 && fabs(seconds[2] - 3e-3) < 1e-8);
    assert_int_equal(fake.events, 3 + 2);
    fake.fails = "cudaEventCreate";
    fake.fails_with = cudaErrorUnknown;
    fake.fails_after = 2;
    assert_int_equal(pc_device_marks(device, 4, NULL), PC_ERROR_IO);
    assert_int_equal(fake.events, 2);
    fake_device_close(device);
}

/* ---- the board ---- */

static void test_state(void **state) {
    (void)state;
    fake_nvml *board = fake_nvml_now();
    *board = (fake_nvml){.sm_mhz = 1755, .memory_mhz = 2619, .milliwatts = 345678, .celsius = 61};
    pc_device *device = fake_device_open();
    pc_device_state now = pc_device_state_now(device);
    assert_true(now.is_known && !now.is_throttled);
    assert_true(now.sm_clock_hz == 1755e6 && now.memory_clock_hz == 2619e6);
    assert_true(fabs(now.watts - 345.678) < 1e-9 && now.celsius == 61);
    /* idle, set by an application, kept in step with others: no throttling. The others are. */
    for (int bit = 0; bit < 9; bit++) {
        board->reasons = 1u << bit;
        bool is_throttled = bit == 2 || bit == 3 || bit == 5 || bit == 6 || bit == 7;
        assert_true(pc_device_state_now(device).is_throttled == is_throttled);
    }
    board->power_status = 3; /* not supported */
    assert_true(isnan(pc_device_state_now(device).watts) && pc_device_state_now(device).is_known);
    board->status = 15; /* the board has fallen off the bus */
    now = pc_device_state_now(device);
    assert_true(!now.is_known && isnan(now.sm_clock_hz) && isnan(now.celsius) && !now.is_throttled);
    fake_device_close(device);
}

static void test_without_nvml(void **state) {
    (void)state;
    fake_nvml_now()->init = 9; /* the driver is not loaded */
    pc_device *device = fake_device_open();
    pc_device_state now = pc_device_state_now(device);
    assert_true(!now.is_known && isnan(now.sm_clock_hz) && isnan(now.watts));
    assert_string_equal(pc_device_about(device)->driver, "CUDA 12.8");
    fake_device_close(device);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_without_gpu, fake_device_reset),
        cmocka_unit_test_setup(test_about, fake_device_reset),
        cmocka_unit_test_setup(test_refuses_devices, fake_device_reset),
        cmocka_unit_test_setup(test_opening_fails, fake_device_reset),
        cmocka_unit_test_setup(test_no_memory, fake_device_reset),
        cmocka_unit_test_setup(test_memory, fake_device_reset),
        cmocka_unit_test_setup(test_out_of_memory, fake_device_reset),
        cmocka_unit_test_setup(test_copies, fake_device_reset),
        cmocka_unit_test_setup(test_launched, fake_device_reset),
        cmocka_unit_test_setup(test_lost, fake_device_reset),
        cmocka_unit_test_setup(test_time, fake_device_reset),
        cmocka_unit_test_setup(test_time_without_latency, fake_device_reset),
        cmocka_unit_test_setup(test_time_fails, fake_device_reset),
        cmocka_unit_test_setup(test_marks, fake_device_reset),
        cmocka_unit_test_setup(test_state, fake_device_reset),
        cmocka_unit_test_setup(test_without_nvml, fake_device_reset),
    };
    return cmocka_run_group_tests_name("cuda", tests, NULL, NULL);
}
