/* code.cuh: what every kernel file includes: CUDA, or its emulation (PC_EMULATED), and what the kernels share.
 *
 * Kernel code is CUDA C++ of the part that tests/emulated/emulate.h knows. Blocks are made of whole warps wherever
 * warps or the block work together.
 */
#ifndef PC_KERNELS_CUDA_CODE_CUH
#define PC_KERNELS_CUDA_CODE_CUH

#include "kernels/kernel.h"
#include "kernels/launch.h"

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <type_traits>

#ifdef PC_EMULATED /* tests/emulated/emulate.h stands in front of this */

#define PC_LAUNCH(device, kernel, grid, block, shared_bytes, ...)                                                      \
    pc_emulated_launch(device, #kernel, kernel, grid, block, shared_bytes __VA_OPT__(, ) __VA_ARGS__)
#define PC_SHARED(type, name) type *name = static_cast<type *>(pc_emulated_shared())

#else

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <cuda_runtime.h>

/* Launches `kernel` (in parentheses where it has commas: `(f<T, 4>)`) on the device's stream; pc_device_launched, right
 * behind, tells whether it could. Dynamic shared memory may be all that a block can have. */
#define PC_LAUNCH(device, kernel, grid, block, shared_bytes, ...)                                                      \
    pc_cuda_launch(device, kernel, grid, block, shared_bytes __VA_OPT__(, ) __VA_ARGS__)

/* The block's dynamic shared memory as `type *name`, 16-byte aligned. */
#define PC_SHARED(type, name)                                                                                          \
    extern __shared__ __align__(128) unsigned char pc_shared_memory[];                                                 \
    type *name = reinterpret_cast<type *>(pc_shared_memory)

template <class... P, class... A>
void pc_cuda_launch(pc_device *device, void (*kernel)(P...), dim3 grid, dim3 block, size_t shared_bytes, A... given) {
    /* Beyond 48 KiB, static ones included, a kernel has to ask. */
    if (shared_bytes > 16 * 1024)
        (void)cudaFuncSetAttribute(reinterpret_cast<const void *>(kernel), cudaFuncAttributeMaxDynamicSharedMemorySize,
                                   static_cast<int>(shared_bytes));
    kernel<<<grid, block, shared_bytes, static_cast<cudaStream_t>(pc_device_stream(device))>>>(
        static_cast<P>(given)...);
}

#endif

/* ---- on the host ---- */

/* Calls what(T{}) with the C++ type T of a 16-bit dtype:
 *     return pc_dispatch(shape->dtype, [&](auto zero) { using T = decltype(zero); ... return PC_OK; }); */
template <class F> auto pc_dispatch(pc_dtype dtype, F &&what) {
    return dtype == PC_FP16 ? what(__half{}) : what(__nv_bfloat16{});
}

inline int64_t pc_divide_up(int64_t a, int64_t b) {
    return (a + b - 1) / b;
}

inline bool pc_is_aligned(const void *address) { /* for 16-byte accesses */
    return reinterpret_cast<uintptr_t>(address) % 16 == 0;
}

/* What families say of a launch: `name` is the function that runs, with its template's arguments as one reads them. */
template <class... P>
pc_code pc_launch_attributes(pc_device *device, const char *name, void (*kernel)(P...), dim3 grid, dim3 block,
                             int64_t shared_bytes, pc_kernel_attributes *made, pc_error *error) {
    *made = pc_kernel_attributes{};
    snprintf(made->kernel, sizeof made->kernel, "%s", name);
    const unsigned of_grid[3] = {grid.x, grid.y, grid.z}, of_block[3] = {block.x, block.y, block.z};
    for (int i = 0; i < 3; i++) {
        made->grid[i] = static_cast<int>(of_grid[i]);
        made->block[i] = static_cast<int>(of_block[i]);
    }
    made->launches = 1;
    return pc_kernel_function_attributes(device, reinterpret_cast<const void *>(kernel), shared_bytes, made, error);
}

/* ---- numbers ---- */

__host__ __device__ inline float pc_to_float(float value) {
    return value;
}
__host__ __device__ inline float pc_to_float(__nv_bfloat16 value) {
    return __bfloat162float(value);
}
__host__ __device__ inline float pc_to_float(__half value) {
    return __half2float(value);
}

/* To the nearest, ties to even; to 8 bits saturating. */
template <class T> __host__ __device__ inline T pc_from_float(float value) {
    if constexpr (std::is_same_v<T, __nv_bfloat16>)
        return __float2bfloat16_rn(value);
    else if constexpr (std::is_same_v<T, __half>)
        return __float2half_rn(value);
    else if constexpr (std::is_same_v<T, __nv_fp8_e4m3> || std::is_same_v<T, __nv_fp8_e5m2>)
        return T(value);
    else
        return value;
}

/* 16 bytes of T, as one access moves them. */
template <class T> struct alignas(16) pc_vector {
    static constexpr int size = 16 / sizeof(T);
    T value[size];
};

/* Both addresses are multiples of 16. */
template <class T> __device__ inline pc_vector<T> pc_load(const T *from) {
    pc_vector<T> x;
#ifdef PC_EMULATED
    pc_emulated_need_aligned(from, 16);
    memcpy(&x, from, sizeof x);
#else
    uint4 bits = *reinterpret_cast<const uint4 *>(from);
    memcpy(&x, &bits, sizeof x);
#endif
    return x;
}
template <class T> __device__ inline void pc_store(T *to, const pc_vector<T> &x) {
#ifdef PC_EMULATED
    pc_emulated_need_aligned(to, 16);
    memcpy(to, &x, sizeof x);
#else
    uint4 bits;
    memcpy(&bits, &x, sizeof bits);
    *reinterpret_cast<uint4 *>(to) = bits;
#endif
}

/* ---- threads together ---- */

constexpr unsigned PC_ALL_LANES = 0xffffffffu;

/* Of all lanes of a warp, to all; each sums in the same order, so that all have the same bits. */
__device__ inline float pc_warp_sum(float value) {
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2) value += __shfl_xor_sync(PC_ALL_LANES, value, distance);
    return value;
}
__device__ inline float pc_warp_max(float value) {
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2)
        value = fmaxf(value, __shfl_xor_sync(PC_ALL_LANES, value, distance));
    return value;
}

/* The thread's number in its block, the warp's, and how many warps there are. */
__device__ inline int pc_thread() {
    return static_cast<int>(threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z));
}
__device__ inline int pc_warps() {
    return static_cast<int>(blockDim.x * blockDim.y * blockDim.z) / 32;
}

/* Of all threads of a block of whole warps, to all. Every thread has to come; may be called again and again. */
__device__ inline float pc_block_sum(float value) {
    __shared__ float part[32];
    int lane = pc_thread() % 32, warp = pc_thread() / 32;
    value = pc_warp_sum(value);
    __syncthreads(); /* all have read what the call before wrote */
    if (lane == 0) part[warp] = value;
    __syncthreads();
    return pc_warp_sum(lane < pc_warps() ? part[lane] : 0.0f);
}
__device__ inline float pc_block_max(float value) {
    __shared__ float part[32];
    int lane = pc_thread() % 32, warp = pc_thread() / 32;
    value = pc_warp_max(value);
    __syncthreads();
    if (lane == 0) part[warp] = value;
    __syncthreads();
    return pc_warp_max(lane < pc_warps() ? part[lane] : -INFINITY);
}
/* Two sums at the cost of one. */
__device__ inline float2 pc_block_sum2(float2 value) {
    __shared__ float2 part[32];
    int lane = pc_thread() % 32, warp = pc_thread() / 32;
    value = make_float2(pc_warp_sum(value.x), pc_warp_sum(value.y));
    __syncthreads();
    if (lane == 0) part[warp] = value;
    __syncthreads();
    value = lane < pc_warps() ? part[lane] : make_float2(0.0f, 0.0f);
    return make_float2(pc_warp_sum(value.x), pc_warp_sum(value.y));
}

#endif
