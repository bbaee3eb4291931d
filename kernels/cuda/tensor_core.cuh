/* tensor_core.cuh: what a warp does together: products of small matrices, loads of them, and copies into shared memory
 * behind its back. Inline PTX for GPUs (sm_80 and later); on the host the same data flow lane by lane.
 *
 * Where a value lies in a warp's registers is set down in the PTX ISA manual ('Matrix fragments for mma.m16n8k16',
 * 'ldmatrix', 'cp.async'). With row = lane / 4 and pair = 2 * (lane % 4):
 *   A, 16 x 16: register 0 (row, pair), 1 (row + 8, pair), 2 (row, pair + 8), 3 (row + 8, pair + 8), two columns each;
 *   B, 16 x 8:  register 0 rows pair and pair + 1 of column `row`, register 1 rows pair + 8 and pair + 9;
 *   C, 16 x 8:  values 0 and 1 (row, pair), (row, pair + 1), values 2 and 3 (row + 8, pair), (row + 8, pair + 1).
 */
#ifndef PC_KERNELS_TENSOR_CORE_CUH
#define PC_KERNELS_TENSOR_CORE_CUH

#include "kernels/cuda/code.cuh"

/* ---- shared memory ---- */

/* An address in shared memory, in bytes, that a number can be added to: 32 bits wide on a GPU. */
#ifdef PC_EMULATED
typedef char *pc_shared_address;
static inline pc_shared_address pc_shared_at(void *place) {
    return static_cast<char *>(place);
}
static inline pc_shared_address pc_shared_flip(pc_shared_address address, unsigned bits) {
    return reinterpret_cast<char *>(reinterpret_cast<uintptr_t>(address) ^ bits);
}
#else
typedef uint32_t pc_shared_address;
__device__ __forceinline__ pc_shared_address pc_shared_at(void *place) {
    return static_cast<uint32_t>(__cvta_generic_to_shared(place));
}
/* The address with these of its bits turned over. */
__device__ __forceinline__ pc_shared_address pc_shared_flip(pc_shared_address address, unsigned bits) {
    return address ^ bits;
}
#endif

/* The same value, as if it were new: what is computed from it in a loop stays there, an instruction or two each time,
 * and does not take a register through all of the loop. */
template <class T> __device__ __forceinline__ T pc_in_loop(T value) {
#ifndef PC_EMULATED
    static_assert(sizeof(T) == 4);
    asm volatile("" : "+r"(value));
#endif
    return value;
}

/* ---- copies from global to shared memory that the threads need not wait for ---- */

/* 16 bytes, or 16 zeros where not `is_there` (nothing is read then, wherever `from` points). Both aligned to 16. What
 * is copied may be read after a wait that covers it and, by other threads, a barrier behind it. */
__device__ __forceinline__ void pc_copy_async_16(pc_shared_address to, const void *from, bool is_there);

/* The copies that this thread has asked for since the last commit become one group. */
__device__ __forceinline__ void pc_copy_async_commit();

/* Waits until all groups of this thread but the latest `Pending` ones are there. */
template <int Pending> __device__ __forceinline__ void pc_copy_async_wait();

/* ---- 8 x 8 matrices of 16 bit elements, four at a time ---- */

/* Lane 8 i + r gives the address of row r of matrix i (16 bytes, aligned to 16). Register i has of matrix i the
 * elements (lane / 4, 2 * (lane % 4)) and the one beside it. */
__device__ __forceinline__ void pc_load_matrices(uint32_t (&to)[4], pc_shared_address row);

/* The same of the matrices transposed: (2 * (lane % 4), lane / 4) and the one below it. */
__device__ __forceinline__ void pc_load_matrices_transposed(uint32_t (&to)[4], pc_shared_address row);

/* ---- products ---- */

/* c += a b, in fp32: a 16 x 16, b 16 x 16 as two of 16 x 8 beside each other, of which pc_load_matrices makes the
 * registers 0 and 1, and 2 and 3. T is __nv_bfloat16 or __half. */
template <class T>
__device__ __forceinline__ void pc_mma_16x16x16(float (&left)[4], float (&right)[4], const uint32_t (&a)[4],
                                                const uint32_t (&b)[4]);

/* Two numbers rounded to T, the first in the lower half. */
template <class T> __device__ __forceinline__ uint32_t pc_pack(float low, float high);

#ifdef PC_EMULATED
#include PC_EMULATED_TENSOR_CORE
#else

__device__ __forceinline__ void pc_copy_async_16(pc_shared_address to, const void *from, bool is_there) {
    const int bytes = is_there ? 16 : 0;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(to), "l"(__cvta_generic_to_global(from)),
                 "r"(bytes)
                 : "memory");
}

__device__ __forceinline__ void pc_copy_async_commit() {
    asm volatile("cp.async.commit_group;\n" ::: "memory");
}

template <int Pending> __device__ __forceinline__ void pc_copy_async_wait() {
    asm volatile("cp.async.wait_group %0;\n" ::"n"(Pending) : "memory");
}

__device__ __forceinline__ void pc_load_matrices(uint32_t (&to)[4], pc_shared_address row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];\n"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(row)
                 : "memory");
}

__device__ __forceinline__ void pc_load_matrices_transposed(uint32_t (&to)[4], pc_shared_address row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];\n"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(row)
                 : "memory");
}

template <class T>
__device__ __forceinline__ void pc_mma_16x8x16(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
    if constexpr (std::is_same_v<T, __half>)
        asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
            "{%0, %1, %2, %3};\n"
            : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
    else
        asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
            "{%0, %1, %2, %3};\n"
            : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

template <class T>
__device__ __forceinline__ void pc_mma_16x16x16(float (&left)[4], float (&right)[4], const uint32_t (&a)[4],
                                                const uint32_t (&b)[4]) {
    pc_mma_16x8x16<T>(left, a, b[0], b[1]);
    pc_mma_16x8x16<T>(right, a, b[2], b[3]);
}

template <class T> __device__ __forceinline__ uint32_t pc_pack(float low, float high) {
    uint32_t both;
    if constexpr (std::is_same_v<T, __half>)
        asm("cvt.rn.f16x2.f32 %0, %1, %2;\n" : "=r"(both) : "f"(high), "f"(low));
    else
        asm("cvt.rn.bf16x2.f32 %0, %1, %2;\n" : "=r"(both) : "f"(high), "f"(low));
    return both;
}
#endif
#endif
