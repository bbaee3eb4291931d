/* emulate.h: the part of CUDA C++ that our kernels use, on the host, for tests on machines without a GPU.
 *
 * A kernel runs block after block; every thread of a block is a fiber (emulate.cc) that runs until it meets a barrier
 * or a warp's exchange. What is checked: barriers that not all live threads of the block or warp reach, or reach at
 * different places. The message says which threads wait where, and the program aborts. Dynamic shared memory is
 * poisoned for every block. With AddressSanitizer so are accesses outside buffers and shared memory. The order of
 * blocks and threads is turned round from launch to launch, for a GPU promises none. What is not: races that no order
 * of whole runs between barriers shows, registers, time.
 *
 * Included in front of the kernels, by unit.cc.in and tests.
 */
#ifndef PC_TESTS_EMULATED_EMULATE_H
#define PC_TESTS_EMULATED_EMULATE_H

/* What kernels/cuda/tensor_core.cuh includes in the place of its assembly. */
#define PC_EMULATED_TENSOR_CORE "tests/emulated/tensor_core.h"

#include "kernels/dtype.h"

#include <cassert>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <source_location>
#include <type_traits>

/* ---- words ---- */

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __noinline__    /* the C++ library has an attribute of this name */
#define __launch_bounds__(...)
#define __align__(bytes) alignas(bytes)
#define __constant__     static const
#define __shared__       static /* one block at a time, and launches one at a time */

struct dim3 {
    unsigned x = 1, y = 1, z = 1;
    constexpr dim3(unsigned at_x = 1, unsigned at_y = 1, unsigned at_z = 1) : x(at_x), y(at_y), z(at_z) {}
};
struct uint3 {
    unsigned x, y, z;
};

/* ---- where a thread is ---- */

struct pc_emulated_block {
    uint3 blockIdx;
    dim3 blockDim, gridDim;
    void *shared; /* dynamic */
};
struct pc_emulated_view {
    uint3 threadIdx;
    const pc_emulated_block *block;
};
extern __thread const pc_emulated_view *pc_emulated_now; /* of the thread that runs */

#define threadIdx (pc_emulated_now->threadIdx)
#define blockIdx  (pc_emulated_now->block->blockIdx)
#define blockDim  (pc_emulated_now->block->blockDim)
#define gridDim   (pc_emulated_now->block->gridDim)
constexpr int warpSize = 32;

inline void *pc_emulated_shared() {
    return pc_emulated_now->block->shared;
}

/* ---- threads together ---- */

using pc_emulated_place = std::source_location;

enum { PC_EMULATED_EXCHANGE = 256 }; /* bytes a lane, at most */

void pc_emulated_block_barrier(const pc_emulated_place &place);
void pc_emulated_warp_barrier(unsigned mask, const pc_emulated_place &place);

/* A step of a whole warp: every live lane gives `size` bytes, and gets all of them, lane i's at i * size, until the
 * warp's exchange after the next. What lanes that have ended or never were would have given is 0xff in every byte. */
const void *pc_emulated_warp_exchange(const void *mine, size_t size,
                                      const pc_emulated_place &place = pc_emulated_place::current());

/* Ends the program with a message that names kernel, block and thread. */
[[noreturn]] void pc_emulated_fail(const char *what);

inline void pc_emulated_need_aligned(const void *address, size_t bytes) {
    if (reinterpret_cast<uintptr_t>(address) % bytes) pc_emulated_fail("an address that is not aligned to its access");
}

inline void __syncthreads(const pc_emulated_place &place = pc_emulated_place::current()) {
    pc_emulated_block_barrier(place);
}
inline void __syncwarp(unsigned mask = 0xffffffffu, const pc_emulated_place &place = pc_emulated_place::current()) {
    pc_emulated_warp_barrier(mask, place);
}

/* The lane's value of all that the warp gave. Masks of a part of a warp are not emulated. */
template <class T> T pc_emulated_shuffle(unsigned mask, T mine, int from, const pc_emulated_place &place) {
    static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= 16);
    if (mask != 0xffffffffu) pc_emulated_fail("a shuffle of a part of a warp; expected all lanes");
    const char *all = static_cast<const char *>(pc_emulated_warp_exchange(&mine, sizeof mine, place));
    T got;
    memcpy(&got, all + static_cast<size_t>(from) * sizeof got, sizeof got);
    return got;
}
inline int pc_emulated_lane() {
    const dim3 &size = blockDim;
    return static_cast<int>((threadIdx.x + size.x * (threadIdx.y + size.y * threadIdx.z)) % 32);
}
template <class T>
T __shfl_sync(unsigned mask, T mine, int from, int width = 32,
              const pc_emulated_place &place = pc_emulated_place::current()) {
    int lane = pc_emulated_lane();
    return pc_emulated_shuffle(mask, mine, (lane & ~(width - 1)) | (from & (width - 1)), place);
}
template <class T>
T __shfl_xor_sync(unsigned mask, T mine, int change, int width = 32,
                  const pc_emulated_place &place = pc_emulated_place::current()) {
    int lane = pc_emulated_lane(), from = lane ^ change;
    bool is_behind = (from & ~(width - 1)) > (lane & ~(width - 1)); /* of a later group: its own */
    return pc_emulated_shuffle(mask, mine, is_behind ? lane : from, place);
}
template <class T>
T __shfl_down_sync(unsigned mask, T mine, unsigned by, int width = 32,
                   const pc_emulated_place &place = pc_emulated_place::current()) {
    int lane = pc_emulated_lane(), from = lane + static_cast<int>(by);
    return pc_emulated_shuffle(mask, mine, (lane & (width - 1)) + static_cast<int>(by) < width ? from : lane, place);
}
template <class T>
T __shfl_up_sync(unsigned mask, T mine, unsigned by, int width = 32,
                 const pc_emulated_place &place = pc_emulated_place::current()) {
    int lane = pc_emulated_lane(), from = lane - static_cast<int>(by);
    return pc_emulated_shuffle(mask, mine, (lane & (width - 1)) >= static_cast<int>(by) ? from : lane, place);
}

/* The lanes, of those that live, where it is true. */
inline unsigned __ballot_sync(unsigned mask, int is_true,
                              const pc_emulated_place &place = pc_emulated_place::current()) {
    if (mask != 0xffffffffu) pc_emulated_fail("a vote of a part of a warp; expected all lanes");
    uint8_t mine = is_true ? 1 : 0;
    const uint8_t *all = static_cast<const uint8_t *>(pc_emulated_warp_exchange(&mine, 1, place));
    unsigned found = 0;
    for (int i = 0; i < 32; i++) found |= all[i] == 1 ? 1u << i : 0u;
    return found;
}
inline int __any_sync(unsigned mask, int is_true, const pc_emulated_place &place = pc_emulated_place::current()) {
    return __ballot_sync(mask, is_true, place) != 0;
}
inline int __all_sync(unsigned mask, int is_true, const pc_emulated_place &place = pc_emulated_place::current()) {
    return __ballot_sync(mask, !is_true, place) == 0;
}

/* One at a time, as fibers change at barriers only. Of whole numbers: those of floats depend on the order. */
template <class T> T atomicAdd(T *address, T value) {
    static_assert(std::is_integral_v<T>, "sums of floats in any order are not the same every time");
    T old = *address;
    *address = static_cast<T>(old + value);
    return old;
}
template <class T> T atomicMax(T *address, T value) {
    T old = *address;
    if (value > old) *address = value;
    return old;
}
template <class T> T atomicMin(T *address, T value) {
    T old = *address;
    if (value < old) *address = value;
    return old;
}
template <class T> T atomicExch(T *address, T value) {
    T old = *address;
    *address = value;
    return old;
}
template <class T> T atomicCAS(T *address, T expected, T value) {
    T old = *address;
    if (old == expected) *address = value;
    return old;
}
inline void __threadfence() {}
inline void __threadfence_block() {}
[[noreturn]] inline void __trap() {
    pc_emulated_fail("__trap");
}

/* ---- formats ---- */

/* As CUDA's, but that nothing is converted unasked, so that what compiles here rounds the same there. */
struct __nv_bfloat16 {
    uint16_t bits;
    __nv_bfloat16() = default;
    explicit __nv_bfloat16(float x) : bits(pc_bf16_from_float(x)) {}
    explicit operator float() const { return pc_bf16_to_float(bits); }
};
struct __half {
    uint16_t bits;
    __half() = default;
    explicit __half(float x) : bits(pc_fp16_from_float(x)) {}
    explicit operator float() const { return pc_fp16_to_float(bits); }
};
struct __nv_fp8_e4m3 {
    uint8_t __x;
    __nv_fp8_e4m3() = default;
    explicit __nv_fp8_e4m3(float x) : __x(pc_e4m3_from_float(x)) {}
    explicit operator float() const { return pc_e4m3_to_float(__x); }
};
struct __nv_fp8_e5m2 {
    uint8_t __x;
    __nv_fp8_e5m2() = default;
    explicit __nv_fp8_e5m2(float x) : __x(pc_e5m2_from_float(x)) {}
    explicit operator float() const { return pc_e5m2_to_float(__x); }
};
struct alignas(4) __nv_bfloat162 {
    __nv_bfloat16 x, y;
};
struct alignas(4) __half2 {
    __half x, y;
};
using nv_bfloat16 = __nv_bfloat16;
using nv_bfloat162 = __nv_bfloat162;
using half = __half;
using half2 = __half2;

struct alignas(8) float2 {
    float x, y;
};
struct float3 {
    float x, y, z;
};
struct alignas(16) float4 {
    float x, y, z, w;
};
struct alignas(8) int2 {
    int x, y;
};
struct alignas(16) int4 {
    int x, y, z, w;
};
struct alignas(8) uint2 {
    unsigned x, y;
};
struct alignas(16) uint4 {
    unsigned x, y, z, w;
};
inline float2 make_float2(float x, float y) {
    return {x, y};
}
inline float4 make_float4(float x, float y, float z, float w) {
    return {x, y, z, w};
}
inline int2 make_int2(int x, int y) {
    return {x, y};
}
inline int4 make_int4(int x, int y, int z, int w) {
    return {x, y, z, w};
}
inline uint2 make_uint2(unsigned x, unsigned y) {
    return {x, y};
}
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) {
    return {x, y, z, w};
}

inline float __bfloat162float(__nv_bfloat16 x) {
    return static_cast<float>(x);
}
inline __nv_bfloat16 __float2bfloat16_rn(float x) {
    return __nv_bfloat16(x);
}
inline __nv_bfloat16 __float2bfloat16(float x) {
    return __nv_bfloat16(x);
}
inline float2 __bfloat1622float2(__nv_bfloat162 x) {
    return {static_cast<float>(x.x), static_cast<float>(x.y)};
}
inline __nv_bfloat162 __floats2bfloat162_rn(float x, float y) {
    return {__nv_bfloat16(x), __nv_bfloat16(y)};
}
inline __nv_bfloat162 __float22bfloat162_rn(float2 x) {
    return __floats2bfloat162_rn(x.x, x.y);
}
inline float __half2float(__half x) {
    return static_cast<float>(x);
}
inline __half __float2half_rn(float x) {
    return __half(x);
}
inline __half __float2half(float x) {
    return __half(x);
}
inline float2 __half22float2(__half2 x) {
    return {static_cast<float>(x.x), static_cast<float>(x.y)};
}
inline __half2 __floats2half2_rn(float x, float y) {
    return {__half(x), __half(y)};
}
inline __half2 __float22half2_rn(float2 x) {
    return __floats2half2_rn(x.x, x.y);
}

/* ---- arithmetic ---- */

template <class A, class B> constexpr std::common_type_t<A, B> min(A a, B b) {
    using T = std::common_type_t<A, B>;
    return static_cast<T>(b) < static_cast<T>(a) ? static_cast<T>(b) : static_cast<T>(a);
}
template <class A, class B> constexpr std::common_type_t<A, B> max(A a, B b) {
    using T = std::common_type_t<A, B>;
    return static_cast<T>(a) < static_cast<T>(b) ? static_cast<T>(b) : static_cast<T>(a);
}

inline float rsqrtf(float x) {
    return 1.0f / sqrtf(x);
}
/* The C library declares these names for itself. */
#define __expf(x)          expf(x)
#define __exp2f(x)         exp2f(x)
#define __exp10f(x)        powf(10.0f, x)
#define __logf(x)          logf(x)
#define __log2f(x)         log2f(x)
#define __sinf(x)          sinf(x)
#define __cosf(x)          cosf(x)
#define __powf(x, y)       powf(x, y)
#define __sincosf(x, s, c) (*(s) = sinf(x), *(c) = cosf(x))
#define __fsqrt_rn(x)      sqrtf(x)
inline float __frsqrt_rn(float x) {
    return static_cast<float>(1.0 / sqrt(static_cast<double>(x)));
}
inline float __frcp_rn(float x) {
    return 1.0f / x;
}
inline float __fdividef(float x, float y) {
    return x / y;
}
inline float __fadd_rn(float x, float y) {
    return x + y;
}
inline float __fmul_rn(float x, float y) {
    return x * y;
}
inline float __fmaf_rn(float x, float y, float z) {
    return fmaf(x, y, z);
}
inline float __saturatef(float x) {
    return x > 0 ? (x < 1 ? x : 1.0f) : 0.0f;
}
inline float __int_as_float(int bits) {
    return pc_float_of_bits(static_cast<uint32_t>(bits));
}
inline int __float_as_int(float x) {
    return static_cast<int>(pc_float_bits(x));
}
inline float __uint_as_float(unsigned bits) {
    return pc_float_of_bits(bits);
}
inline unsigned __float_as_uint(float x) {
    return pc_float_bits(x);
}
inline int __popc(unsigned x) {
    return __builtin_popcount(x);
}
inline int __ffs(int x) {
    return __builtin_ffs(x);
}
inline int __clz(int x) {
    return x ? __builtin_clz(static_cast<unsigned>(x)) : 32;
}
inline unsigned __umulhi(unsigned x, unsigned y) {
    return static_cast<unsigned>(static_cast<uint64_t>(x) * y >> 32);
}
__extension__ typedef unsigned __int128 pc_emulated_wide;
inline uint64_t __umul64hi(uint64_t x, uint64_t y) {
    return static_cast<uint64_t>(static_cast<pc_emulated_wide>(x) * y >> 64);
}
template <class T> T __ldg(const T *from) {
    return *from;
}
template <class T> T __ldcs(const T *from) {
    return *from;
}
template <class T> void __stcs(T *to, T value) {
    *to = value;
}

/* ---- launches ---- */

/* Runs `body(self)` once a thread. A launch that a GPU would refuse is told by pc_device_launched. */
void pc_emulated_run(pc_device *device, const char *kernel, dim3 grid, dim3 block, size_t shared_bytes,
                     void (*body)(void *self), void *self);

template <class... P, class... A>
void pc_emulated_launch(pc_device *device, const char *name, void (*kernel)(P...), dim3 grid, dim3 block,
                        size_t shared_bytes, A... given) {
    auto body = [&] { kernel(static_cast<P>(given)...); };
    auto run = [](void *self) { (*static_cast<decltype(body) *>(self))(); };
    pc_emulated_run(device, name, grid, block, shared_bytes, run, &body);
}

#endif
