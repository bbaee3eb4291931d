/* pc_device_fill over CUDA: the numbers of kernels/fill.h. */
#include "kernels/cuda/runtime.h"
#include "kernels/fill.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

namespace {

struct task {
    pc_dtype dtype;
    pc_fill fill;
    float factor;
    uint64_t limit, seed;
};

__device__ void put(const task &of, __nv_bfloat16 *to, int64_t i) {
    *to = __float2bfloat16_rn(pc_fill_float(of.fill, of.factor, of.seed, static_cast<uint64_t>(i)));
}
__device__ void put(const task &of, __half *to, int64_t i) {
    *to = __float2half_rn(pc_fill_float(of.fill, of.factor, of.seed, static_cast<uint64_t>(i)));
}
/* From a float both types round to the nearest, and beyond the largest number to that. */
__device__ void put(const task &of, __nv_fp8_e4m3 *to, int64_t i) {
    *to = __nv_fp8_e4m3(pc_fill_float(of.fill, of.factor, of.seed, static_cast<uint64_t>(i)));
}
__device__ void put(const task &of, __nv_fp8_e5m2 *to, int64_t i) {
    *to = __nv_fp8_e5m2(pc_fill_float(of.fill, of.factor, of.seed, static_cast<uint64_t>(i)));
}
/* As e8m0: the exponent alone, without the sign. */
struct exponent {
    uint8_t code;
};
__device__ void put(const task &of, exponent *to, int64_t i) {
    float value = pc_fill_float(of.fill, of.factor, of.seed, static_cast<uint64_t>(i));
    to->code = static_cast<uint8_t>(__float_as_uint(value) >> 23);
}
__device__ void put(const task &of, float *to, int64_t i) {
    *to = pc_fill_float(of.fill, of.factor, of.seed, static_cast<uint64_t>(i));
}
__device__ void put(const task &of, int32_t *to, int64_t i) {
    *to = pc_fill_whole(of.fill, of.limit, of.seed, static_cast<uint64_t>(i));
}
__device__ void put(const task &of, uint8_t *to, int64_t i) {
    *to = static_cast<uint8_t>(pc_fill_whole(of.fill, of.limit, of.seed, static_cast<uint64_t>(i)));
}

template <class T> __global__ void fill_kernel(task of, T *to, int64_t count) {
    int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x;
    for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step)
        put(of, to + i, i);
}

/* The same bits everywhere, of an unsigned type as wide as the element. */
template <class T> __global__ void poison_kernel(T bits, T *to, int64_t count) {
    int64_t step = static_cast<int64_t>(gridDim.x) * blockDim.x;
    for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) to[i] = bits;
}

constexpr int THREADS = 256;

/* A few blocks a processor: enough to keep memory busy. */
int blocks_of(const pc_device *device, int64_t count) {
    int64_t most = 16LL * device->info.processors, needed = (count + THREADS - 1) / THREADS;
    return static_cast<int>(needed < most ? needed : most);
}

template <class T> void start(const pc_device *device, const task &of, void *to, int64_t count) {
    fill_kernel<T><<<blocks_of(device, count), THREADS, 0, device->stream>>>(of, static_cast<T *>(to), count);
}

template <class T> void poison(const pc_device *device, pc_dtype dtype, void *to, int64_t count) {
    poison_kernel<T><<<blocks_of(device, count), THREADS, 0, device->stream>>>(static_cast<T>(pc_fill_poison(dtype)),
                                                                               static_cast<T *>(to), count);
}

void start_poison(const pc_device *device, pc_dtype dtype, void *to, int64_t count) {
    if (pc_dtype_bytes(dtype) == 1) return poison<uint8_t>(device, dtype, to, count);
    if (pc_dtype_bytes(dtype) == 2) return poison<uint16_t>(device, dtype, to, count);
    poison<uint32_t>(device, dtype, to, count);
}

void start_fill(const pc_device *device, const task &of, void *to, int64_t count) {
    switch (of.dtype) {
    case PC_BF16:
        return start<__nv_bfloat16>(device, of, to, count);
    case PC_FP16:
        return start<__half>(device, of, to, count);
    case PC_FP32:
        return start<float>(device, of, to, count);
    case PC_E4M3:
        return start<__nv_fp8_e4m3>(device, of, to, count);
    case PC_E5M2:
        return start<__nv_fp8_e5m2>(device, of, to, count);
    case PC_E8M0:
        return start<exponent>(device, of, to, count);
    case PC_INT32:
        return start<int32_t>(device, of, to, count);
    default:
        return start<uint8_t>(device, of, to, count);
    }
}

} // namespace

extern "C" pc_code pc_device_fill(pc_device *device, void *address, pc_dtype dtype, int64_t count, pc_fill fill,
                                  double scale, uint64_t seed, pc_error *error) {
    pc_code code = pc_fill_check(dtype, fill, scale, error);
    if (code != PC_OK || count <= 0) return code;
    pc_device_enter(device);
    const task of = {dtype, fill, pc_fill_factor(fill, scale), fill == PC_FILL_INDEX ? static_cast<uint64_t>(scale) : 0,
                     seed};
    if (fill == PC_FILL_POISON)
        start_poison(device, dtype, address, count);
    else
        start_fill(device, of, address, count);
    return pc_device_launched(device, "fill", error);
}
