#include "tests/emulate_kernels.h"

#include "tests/emulated/emulate.h"

#include "kernels/cuda/code.cuh"

__global__ void write_indices(int *seen) {
    unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
    unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
    int tells = static_cast<int>(threadIdx.z * 1000 + threadIdx.y * 100 + threadIdx.x * 10);
    seen[block * 24 + thread] += 1 + tells;
}

void emulate_indices(pc_device *device, int *seen) {
    PC_LAUNCH(device, write_indices, dim3(2, 3, 2), dim3(4, 2, 3), 0, seen);
}

__global__ void shuffle(int *results) {
    int lane = static_cast<int>(threadIdx.x), mine = 100 + lane;
    results[lane] = __shfl_xor_sync(PC_ALL_LANES, mine, 5);
    results[32 + lane] = __shfl_xor_sync(PC_ALL_LANES, mine, 16);
    results[64 + lane] = __shfl_down_sync(PC_ALL_LANES, mine, 3);
    results[96 + lane] = __shfl_up_sync(PC_ALL_LANES, mine, 2);
    results[128 + lane] = __shfl_sync(PC_ALL_LANES, mine, 7);
    results[160 + lane] = __shfl_sync(PC_ALL_LANES, mine, 1, 8);
    results[192 + lane] = __shfl_down_sync(PC_ALL_LANES, mine, 1, 4);
    results[224 + lane] = __shfl_xor_sync(PC_ALL_LANES, mine, 4, 4);
}

void emulate_shuffles(pc_device *device, int *results) {
    PC_LAUNCH(device, shuffle, 1, 32, 0, results);
}

__global__ void reverse(const float *from, float *to) {
    PC_SHARED(float, turned);
    int i = static_cast<int>(threadIdx.x), last = static_cast<int>(blockDim.x) - 1;
    turned[i] = from[i];
    __syncthreads();
    to[i] = turned[last - i];
}

void emulate_reverse(pc_device *device, const float *from, float *to, int threads) {
    PC_LAUNCH(device, reverse, 1, threads, static_cast<size_t>(threads) * sizeof(float), from, to);
}

__global__ void look_and_write(int *is_poisoned, int bytes) {
    PC_SHARED(unsigned char, shared);
    int found = 1;
    for (int i = 0; i < bytes; i++) found &= shared[i] == 0xff;
    __syncthreads();
    memset(shared, 0, static_cast<size_t>(bytes));
    is_poisoned[blockIdx.x] = found;
}

void emulate_poison(pc_device *device, int *is_poisoned, int blocks, int bytes) {
    PC_LAUNCH(device, look_and_write, blocks, 1, static_cast<size_t>(bytes), is_poisoned, bytes);
}

__global__ void count_those_left(int *count, int ended) {
    __shared__ int came;
    int thread = pc_thread();
    if (thread == 63) came = 0;
    if (thread < ended) return;
    __syncthreads();
    atomicAdd(&came, 1);
    __syncthreads();
    count[thread] = came;
}

void emulate_ended(pc_device *device, int *count, int ended) {
    PC_LAUNCH(device, count_those_left, 1, 64, 0, count, ended);
}

__global__ void sum(const float *value, float *sums) {
    int i = pc_thread(), threads = pc_warps() * 32;
    sums[i] = pc_block_sum(value[i]);
    sums[threads + i] = pc_block_max(value[i]);
    float2 both = pc_block_sum2(make_float2(value[i], -2.0f * value[i]));
    sums[2 * threads + i] = both.x;
    sums[3 * threads + i] = both.y;
    if (pc_block_sum(value[i]) != sums[i]) __trap();
}

void emulate_sums(pc_device *device, const float *value, float *sums, int threads) {
    PC_LAUNCH(device, sum, 1, threads, 0, value, sums);
}

__global__ void vote(unsigned *results, int threads) {
    int lane = pc_thread();
    uint8_t mine = static_cast<uint8_t>(lane);
    results[lane] = __ballot_sync(PC_ALL_LANES, lane % 3 == 0);
    results[32 + lane] = static_cast<unsigned>(__any_sync(PC_ALL_LANES, lane == 5));
    results[64 + lane] = static_cast<unsigned>(__all_sync(PC_ALL_LANES, lane < threads - 1));
    results[96 + lane] = static_cast<const uint8_t *>(pc_emulated_warp_exchange(&mine, 1))[31];
}

void emulate_votes(pc_device *device, unsigned *results, int threads) {
    PC_LAUNCH(device, vote, 1, threads, 0, results, threads);
}

__global__ void race(int *winner) {
    winner[0] = pc_thread();
    winner[1] = static_cast<int>(blockIdx.x);
}

void emulate_race(pc_device *device, int *winner) {
    PC_LAUNCH(device, race, 3, 64, 0, winner);
}

__global__ void nothing() {}

pc_code emulate_launch(pc_device *device, unsigned grid, unsigned block, unsigned shared_bytes, pc_error *error) {
    PC_LAUNCH(device, nothing, grid, block, shared_bytes);
    return pc_device_launched(device, "nothing", error);
}

/* ---- faults ---- */

__global__ void barrier_in_a_branch() {
    if (threadIdx.x < 10) __syncthreads();
    __syncwarp();
}

__global__ void two_barriers() {
    if (threadIdx.x < 32)
        __syncthreads();
    else
        __syncthreads();
}

__global__ void shuffle_in_a_branch(int *result) {
    if (threadIdx.x % 2) result[0] = __shfl_xor_sync(PC_ALL_LANES, 1, 1);
    __syncthreads();
}

__global__ void part_of_a_warp(int *result) {
    result[0] = __shfl_xor_sync(0xffffu, 1, 1);
}

__global__ void shared_overrun(int *result) {
    PC_SHARED(int, shared);
    shared[16] = 1;
    result[0] = shared[16];
}

__attribute__((noinline)) static int go_deep(int depth, volatile char *before) {
    volatile char frame[1000];
    frame[0] = before ? before[0] : 1;
    return depth == 0 ? frame[0] : go_deep(depth - 1, frame) + frame[0];
}

__global__ void deep_stack(int *result) {
    result[0] = go_deep(600, nullptr);
}

void emulate_wrong(pc_device *device, emulate_fault fault) {
    static int result[64];
    if (fault == BARRIER_IN_A_BRANCH) PC_LAUNCH(device, barrier_in_a_branch, 1, 64, 0);
    if (fault == TWO_BARRIERS) PC_LAUNCH(device, two_barriers, 1, 64, 0);
    if (fault == SHUFFLE_IN_A_BRANCH) PC_LAUNCH(device, shuffle_in_a_branch, 1, 64, 0, result);
    if (fault == PART_OF_A_WARP) PC_LAUNCH(device, part_of_a_warp, 1, 64, 0, result);
    if (fault == SHARED_OVERRUN) PC_LAUNCH(device, shared_overrun, 1, 32, 64, result);
    if (fault == DEEP_STACK) PC_LAUNCH(device, deep_stack, 1, 32, 0, result);
}
