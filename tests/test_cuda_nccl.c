/* Transfers over NCCL: what the library is asked for, against one that is made up (fake_nccl.h): ranks are processes,
 * and what arrives is what the definition of each transfer says. Whether a GPU agrees, only GPUs can tell. */
#include "tests/support.h"

#include "kernels/cuda/runtime.h"
#include "kernels/dtype.h"
#include "kernels/transfer.h"
#include "tests/fake_cuda.h"
#include "tests/fake_device.h"
#include "tests/fake_nccl.h"

#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- ranks ---- */

/* What a rank does; in a process of its own, where cmocka's checks cannot be used. */
typedef bool rank_work(pc_transfer_group *group, pc_device *device, int ranks, int rank);

static bool run_rank(rank_work *work, const pc_transfer_id *id, int ranks, int rank) {
    pc_device *device = NULL;
    pc_transfer_group *group = NULL;
    pc_error error = {0};
    pc_code code = pc_device_open(0, &device, &error);
    if (!code) code = pc_transfer_open(device, id, ranks, rank, &group, &error);
    bool is_right = !code && work(group, device, ranks, rank);
    pc_transfer_close(group);
    pc_device_close(device);
    const fake_nccl *left = fake_nccl_now();
    bool is_clean = left->faults == 0 && left->communicators == 0 && left->destroyed == 1 && left->aborted == 0 &&
                    left->depth == 0 && fake.blocks == 0 && fake.faults == 0;
    if (!is_right || !is_clean)
        fprintf(stderr, "rank %d of %d: %s; %s; %d destroyed, %d blocks\n", rank, ranks, error.message, left->fault,
                left->destroyed, (int)fake.blocks);
    return is_right && is_clean;
}

static void run_ranks(rank_work *work, int ranks) {
    pid_t process[8];
    pc_transfer_id id;
    int wrong = 0;
    assert_int_equal(pc_transfer_id_make(&id, NULL), PC_OK);
    fflush(NULL);
    for (int r = 0; r < ranks; r++) {
        process[r] = fork();
        if (process[r] == 0) _exit(run_rank(work, &id, ranks, r) ? 0 : 1);
        assert_true(process[r] > 0);
    }
    for (int r = 0; r < ranks; r++) {
        int status = -1;
        waitpid(process[r], &status, 0);
        wrong += !WIFEXITED(status) || WEXITSTATUS(status) != 0;
    }
    assert_int_equal(wrong, 0);
}

/* ---- what arrives ---- */

enum { COUNT_OF_EACH = 37, RECEIVE_MOST = 8 * COUNT_OF_EACH };

/* Of a rank's send buffer; whole and small, so that sums are exact in 16 bits. */
static double sent(int rank, int64_t place) {
    return (double)((7 * place + 3 * rank + place * rank) % 16);
}

static double sum_of(int ranks, int64_t place) {
    double sum = 0;
    for (int r = 0; r < ranks; r++) sum += sent(r, place);
    return sum;
}

/* Of the receive buffer, by the definitions of the MPI standard, 'Collective Communication'; a message comes from the
 * rank before. */
static double arrives(pc_transfer_kind transfer, int ranks, int rank, int64_t part, int64_t place) {
    switch (transfer) {
    case PC_TRANSFER_ALL_REDUCE:
        return sum_of(ranks, place);
    case PC_TRANSFER_ALL_GATHER:
        return sent((int)(place / part), place % part);
    case PC_TRANSFER_REDUCE_SCATTER:
        return sum_of(ranks, rank * part + place);
    case PC_TRANSFER_ALL_TO_ALL:
        return sent((int)(place / part), rank * part + place % part);
    default:
        return sent((rank + ranks - 1) % ranks, place);
    }
}

/* Buffers are as long as pc_transfer_buffers says: a sanitizer sees what goes beyond. */
static bool transfer_once(pc_transfer_group *group, pc_device *device, pc_transfer_kind transfer, pc_dtype dtype,
                          int ranks, int rank) {
    int64_t count = (int64_t)ranks * COUNT_OF_EACH, send, receive, bytes = pc_dtype_bytes(dtype), wrong = 0;
    char there[RECEIVE_MOST * 4];
    void *from, *to;
    pc_transfer_buffers(transfer, ranks, count, &send, &receive);
    if (pc_device_allocate(device, send * bytes, &from, NULL)) return false;
    if (pc_device_allocate(device, receive * bytes, &to, NULL)) return false;
    for (int64_t i = 0; i < send; i++) pc_dtype_set(dtype, there, i, sent(rank, i));
    bool is_done = pc_device_upload(device, from, there, send * bytes, NULL) == PC_OK &&
                   pc_transfer_enqueue(group, transfer, dtype, from, to, count, NULL) == PC_OK &&
                   pc_device_download(device, there, to, receive * bytes, NULL) == PC_OK;
    for (int64_t i = 0; is_done && i < receive; i++) {
        double expected = arrives(transfer, ranks, rank, COUNT_OF_EACH, i), found = pc_dtype_get(dtype, there, i);
        wrong += found < expected || found > expected;
    }
    if (!is_done || wrong) fprintf(stderr, "%s: %d wrong\n", pc_transfer_name(transfer), (int)wrong);
    pc_device_free(device, from);
    pc_device_free(device, to);
    return is_done && wrong == 0;
}

static bool transfer_all(pc_transfer_group *group, pc_device *device, int ranks, int rank) {
    bool is_right = true;
    for (int t = 0; t < PC_TRANSFERS; t++) {
        is_right = transfer_once(group, device, (pc_transfer_kind)t, PC_BF16, ranks, rank) && is_right;
        is_right = transfer_once(group, device, (pc_transfer_kind)t, PC_FP32, ranks, rank) && is_right;
    }
    return is_right;
}

static void test_transfers(void **state) {
    (void)state;
    run_ranks(transfer_all, 2);
    run_ranks(transfer_all, 3);
    run_ranks(transfer_all, 5);
}

/* More numbers than go at once; value i is largest on rank i % ranks. */
static bool find_largest(pc_transfer_group *group, pc_device *device, int ranks, int rank) {
    enum { COUNT = 150 };
    double values[COUNT];
    int wrong = 0;
    (void)device;
    for (int i = 0; i < COUNT; i++) values[i] = -1.0 - i - (i % ranks == rank ? 0.0 : 0.25 + rank);
    if (pc_transfer_largest(group, values, COUNT, NULL)) return false;
    for (int i = 0; i < COUNT; i++) wrong += values[i] < -1.0 - i || values[i] > -1.0 - i;
    return wrong == 0;
}

static void test_largest(void **state) {
    (void)state;
    run_ranks(find_largest, 3);
}

/* ---- faults ---- */

/* A group of one, in this process. */
static pc_transfer_group *open_alone(pc_device *device) {
    pc_transfer_id id;
    pc_transfer_group *group = NULL;
    assert_int_equal(pc_transfer_id_make(&id, NULL), PC_OK);
    assert_int_equal(pc_transfer_open(device, &id, 1, 0, &group, NULL), PC_OK);
    return group;
}

static void check_left(int destroyed, int aborted) {
    const fake_nccl *left = fake_nccl_now();
    if (left->faults > 0) fail_msg("NCCL: %s", left->fault);
    assert_int_equal(left->communicators, 0);
    assert_int_equal(left->depth, 0);
    assert_int_equal(left->destroyed, destroyed);
    assert_int_equal(left->aborted, aborted);
}

static void test_joining_fails(void **state) {
    (void)state;
    pc_device *device = fake_device_open();
    pc_transfer_id id;
    pc_transfer_group *group = NULL;
    pc_error error = {0};
    fake_nccl_now()->fails = "ncclGetUniqueId";
    assert_int_equal(pc_transfer_id_make(&id, &error), PC_ERROR_IO);
    assert_string_equal(error.message, "NCCL, making an id: a made-up fault");
    fake_nccl_now()->fails = "ncclCommInitRank";
    memset(&id, 0, sizeof id);
    assert_int_equal(pc_transfer_open(device, &id, 2, 1, &group, &error), PC_ERROR_IO);
    assert_string_equal(error.message, "NCCL, joining: a made-up fault");
    assert_null(group);
    check_left(0, 0);
    fake_device_close(device); /* and its memory was given back */
}

/* Every transfer tells of a fault, and ends the group that it began; after one, others are not waited for. */
static void test_transfer_fails(void **state) {
    (void)state;
    static const char *const names[PC_TRANSFERS] = {[PC_TRANSFER_SEND_RECV] = "ncclSend",
                                                    [PC_TRANSFER_ALL_REDUCE] = "ncclAllReduce",
                                                    [PC_TRANSFER_ALL_GATHER] = "ncclAllGather",
                                                    [PC_TRANSFER_REDUCE_SCATTER] = "ncclReduceScatter",
                                                    [PC_TRANSFER_ALL_TO_ALL] = "ncclSend"};
    pc_device *device = fake_device_open();
    pc_transfer_group *group = open_alone(device);
    float from[4] = {1, 2, 3, 4}, to[4];
    for (int t = 0; t < PC_TRANSFERS; t++) {
        char expected[96];
        pc_error error = {0};
        fake_nccl_now()->fails = names[t];
        assert_int_equal(pc_transfer_enqueue(group, (pc_transfer_kind)t, PC_FP32, from, to, 4, &error), PC_ERROR_IO);
        snprintf(expected, sizeof expected, "NCCL, %s: a made-up fault", pc_transfer_name((pc_transfer_kind)t));
        assert_string_equal(error.message, expected);
        assert_int_equal(fake_nccl_now()->depth, 0);
        memset(to, 0, sizeof to);
        assert_int_equal(pc_transfer_enqueue(group, (pc_transfer_kind)t, PC_FP32, from, to, 4, NULL), PC_OK);
        assert_memory_equal(from, to, sizeof to);
    }
    double value = 1;
    pc_error error = {0};
    fake_nccl_now()->fails = "ncclAllReduce";
    assert_int_equal(pc_transfer_largest(group, &value, 1, &error), PC_ERROR_IO);
    assert_string_equal(error.message, "NCCL, the largest over ranks: a made-up fault");
    pc_transfer_abandon(group);
    pc_transfer_abandon(NULL);
    pc_transfer_close(NULL);
    check_left(0, 1);
    fake_device_close(device);
}

/* ---- what is told ---- */

static void test_version(void **state) {
    (void)state;
    char text[16];
    fake_nccl_now()->version = 23203; /* 10000 major + 100 minor + patch, since 2.9 */
    pc_transfer_version(text, sizeof text);
    assert_string_equal(text, "2.32.3");
    fake_nccl_now()->version = 2804; /* 1000 major + 100 minor + patch */
    pc_transfer_version(text, sizeof text);
    assert_string_equal(text, "2.8.4");
}

static void test_link(void **state) {
    (void)state;
    assert_string_equal(pc_transfer_link(1, 1), "loopback");
    assert_string_equal(pc_transfer_link(0, 1), "pcie");
    fake.has_peer_atomics = true;
    assert_string_equal(pc_transfer_link(0, 1), "nvlink");
    fake.fails = "cudaDeviceGetP2PAttribute";
    fake.fails_with = cudaErrorInvalidDevice;
    assert_string_equal(pc_transfer_link(0, 9), "pcie");
    assert_int_equal(cudaGetLastError(), cudaSuccess); /* no launch is blamed for it */
}

static int reset(void **state) {
    *fake_nccl_now() = (fake_nccl){.version = 22707};
    return fake_device_reset(state);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_transfers, reset),     cmocka_unit_test_setup(test_largest, reset),
        cmocka_unit_test_setup(test_joining_fails, reset), cmocka_unit_test_setup(test_transfer_fails, reset),
        cmocka_unit_test_setup(test_version, reset),       cmocka_unit_test_setup(test_link, reset),
    };
    return cmocka_run_group_tests_name("cuda_nccl", tests, NULL, NULL);
}
