/* attention.cuh: what the kernels of flash attention share: tiles of rows in shared memory, products of tiles in
 * registers, masks. The algorithm is that of Dao 2023, 'FlashAttention-2' (arXiv 2307.08691).
 *
 * A tile is so many rows (tokens of one head) of D 16 bit elements; what the head has less than D is zeros. A warp
 * holds M times 16 rows of a product, as M x N fragments C of 16 x 8 (tensor_core.cuh).
 */
#ifndef PC_KERNELS_ATTENTION_CUH
#define PC_KERNELS_ATTENTION_CUH

#include "kernels/attention.h"
#include "kernels/cuda/tensor_core.cuh"

#include <cmath>

constexpr float PC_LOG2_E = 1.4426950408889634f, PC_LN_2 = 0.6931471805599453f;

/* ---- what a launch is given ---- */

template <class T> struct pc_attention_arguments {
    const T *query, *key, *value, *out, *out_gradient; /* inputs; of forward `out` is not one */
    const float *log_sum, *delta;
    T *made_out, *query_gradient, *key_gradient, *value_gradient; /* outputs */
    float *made_log_sum, *made_delta;
    int query_stride, key_stride; /* elements from a token to the next: of all that is like the query, like the key */
    int batch, m, n, k, heads, kv_heads;
    int shift;   /* causal: query i sees keys up to i + shift; else so large that it sees all */
    float scale; /* of scores: 1 / sqrt(k) */
};

/* ---- tiles in shared memory ---- */

/* Chunks of 16 bytes are stored in another order in every row, so that the same chunk of eight rows, which a load of
 * matrices takes at a time, lies in eight different groups of banks (128 bytes wide in all). */
template <int D> struct pc_rows {
    static constexpr int chunks = D / 8, bytes = 2 * D;
    static constexpr int turns = chunks % 8 == 0 ? 8 : chunks % 4 == 0 ? 4 : chunks % 2 == 0 ? 2 : 1;

    __host__ __device__ static constexpr int place(int row, int chunk) {
        return row * bytes + (chunk ^ (row / (8 / turns)) % turns) * 16;
    }

    /* From the place of chunk 0 or 1 of a row (of a tile aligned to 128 bytes) to the one `chunk` behind it, an even
     * number: one exclusive or. */
    __device__ static __forceinline__ pc_shared_address behind(pc_shared_address place, int chunk) {
        return pc_shared_flip(place, chunk % turns * 16) + chunk / turns * turns * 16;
    }
};

/* Begins to copy a tile: `there` rows of k elements, `stride` apart, zeros around them. Neighbouring threads copy the
 * chunks of up to 128 bytes of a row. */
template <int D, int Rows, int Threads, class T>
__device__ __forceinline__ void pc_copy_tile(pc_shared_address to, const T *from, int stride, int there, int k) {
    constexpr int lanes = pc_rows<D>::turns, rows_at_once = Threads / lanes;
    static_assert(Rows % rows_at_once == 0 && rows_at_once % 8 == 0 && pc_rows<D>::chunks % lanes == 0);
    const int thread = pc_in_loop(static_cast<int>(threadIdx.x)), row = thread / lanes, chunk = thread % lanes;
    from += static_cast<int64_t>(row) * stride + chunk * 8;
    to += pc_rows<D>::place(row, chunk);
#pragma unroll
    for (int i = 0; i < Rows / rows_at_once; i++) {
#pragma unroll
        for (int c = 0; c < pc_rows<D>::chunks; c += lanes)
            pc_copy_async_16(to + i * rows_at_once * pc_rows<D>::bytes + c * 16, from + c * 8,
                             row + i * rows_at_once < there && (chunk + c) * 8 < k);
        from += static_cast<int64_t>(rows_at_once) * stride;
    }
}

/* ---- products of a warp ---- */

/* c += A B^T, of M x 16 rows of A and N x 8 rows of B, each a tile. */
template <class T, int D, int M, int N>
__device__ __forceinline__ void pc_multiply_rows(float (&c)[M][N][4], pc_shared_address a, pc_shared_address b) {
    static_assert(N % 2 == 0);
    /* Where C and what else there is hardly leave a register, not so many loads ahead. */
    [[maybe_unused]] constexpr int at_once = M * N * D >= 16 * 128 ? 2 : D / 16;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    a = pc_in_loop(a + pc_rows<D>::place(lane % 16, lane / 16));
    b = pc_in_loop(b + pc_rows<D>::place(lane % 8 + lane / 16 * 8, lane / 8 % 2));
#pragma unroll at_once
    for (int step = 0; step < D / 16; step++) {
        uint32_t left[M][4];
#pragma unroll
        for (int i = 0; i < M; i++)
            pc_load_matrices(left[i], pc_rows<D>::behind(a, 2 * step) + i * 16 * pc_rows<D>::bytes);
#pragma unroll
        for (int j = 0; j < N; j += 2) {
            uint32_t right[4];
            pc_load_matrices(right, pc_rows<D>::behind(b, 2 * step) + j * 8 * pc_rows<D>::bytes);
#pragma unroll
            for (int i = 0; i < M; i++) pc_mma_16x16x16<T>(c[i][j], c[i][j + 1], left[i], right);
        }
    }
}

/* c += A B, of A in registers and of Steps x 16 rows of B, a tile. */
template <class T, int D, int M, int Steps>
__device__ __forceinline__ void pc_multiply(float (&c)[M][D / 8][4], const uint32_t (&a)[M][Steps][4],
                                            pc_shared_address b) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    b = pc_in_loop(b + pc_rows<D>::place(lane % 16, lane / 16));
#pragma unroll
    for (int step = 0; step < Steps; step++)
#pragma unroll
        for (int j = 0; j < D / 8; j += 2) {
            uint32_t right[4];
            pc_load_matrices_transposed(right, pc_rows<D>::behind(b, j) + step * 16 * pc_rows<D>::bytes);
#pragma unroll
            for (int i = 0; i < M; i++) pc_mma_16x16x16<T>(c[i][j], c[i][j + 1], a[i][step], right);
        }
}

/* What a product left in a warp's registers, rounded, as the left side of the next one: of two neighbouring C the pairs
 * lie where those of A do. */
template <class T, int M, int N>
__device__ __forceinline__ void pc_round_rows(uint32_t (&a)[M][N / 2][4], const float (&c)[M][N][4]) {
#pragma unroll
    for (int i = 0; i < M; i++)
#pragma unroll
        for (int j = 0; j < N; j++) {
            a[i][j / 2][j % 2 * 2] = pc_pack<T>(c[i][j][0], c[i][j][1]);
            a[i][j / 2][j % 2 * 2 + 1] = pc_pack<T>(c[i][j][2], c[i][j][3]);
        }
}

template <int M, int N> __device__ __forceinline__ void pc_clear_rows(float (&c)[M][N][4]) {
#pragma unroll
    for (int i = 0; i < M; i++)
#pragma unroll
        for (int j = 0; j < N; j++)
#pragma unroll
            for (int e = 0; e < 4; e++) c[i][j][e] = 0;
}

/* Writes M x 16 rows, of which the first `there` are to be written, by way of the warp's own part of a tile, so that 16
 * bytes go out at a time. Whatever the warp had there is overwritten; no other warp may need it any more. */
template <class T, int D, int M>
__device__ __forceinline__ void pc_store_rows(T *to, int stride, int there, int k, const float (&c)[M][D / 8][4],
                                              char *tile) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    __syncwarp();
#pragma unroll
    for (int i = 0; i < M; i++)
#pragma unroll
        for (int j = 0; j < D / 8; j++)
#pragma unroll
            for (int half = 0; half < 2; half++) {
                int row = i * 16 + half * 8 + lane / 4;
                *reinterpret_cast<uint32_t *>(tile + pc_rows<D>::place(row, j) + lane % 4 * 4) =
                    pc_pack<T>(c[i][j][2 * half], c[i][j][2 * half + 1]);
            }
    __syncwarp();
    for (int number = lane; number < M * 16 * pc_rows<D>::chunks; number += 32) {
        int row = number / pc_rows<D>::chunks, chunk = number % pc_rows<D>::chunks;
        if (row < there && chunk * 8 < k)
            pc_store(to + static_cast<int64_t>(row) * stride + chunk * 8,
                     *reinterpret_cast<const pc_vector<T> *>(tile + pc_rows<D>::place(row, chunk)));
    }
}

/* ---- masks ---- */

/* The last key that a query sees; below 0: none. */
template <class T> __device__ __forceinline__ int pc_last_key(const pc_attention_arguments<T> &given, int query) {
    return min(given.n - 1, query + given.shift);
}

__device__ __forceinline__ float pc_exp2(float x) {
#ifdef PC_EMULATED
    return exp2f(x);
#else
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;\n" : "=f"(y) : "f"(x));
    return y;
#endif
}

/* Scores of M x 16 queries from `query` and N x 8 keys from `key`: -inf where not seen. */
template <class T, int M, int N>
__device__ __forceinline__ void pc_mask_scores(float (&scores)[M][N][4], const pc_attention_arguments<T> &given,
                                               int query, int key) {
    const int lane = pc_in_loop(static_cast<int>(threadIdx.x)) % 32;
#pragma unroll
    for (int i = 0; i < M; i++)
#pragma unroll
        for (int half = 0; half < 2; half++) {
            int last = pc_last_key(given, query + i * 16 + half * 8 + lane / 4) - key - lane % 4 * 2;
#pragma unroll
            for (int j = 0; j < N; j++) {
                if (j * 8 > last) scores[i][j][2 * half] = -INFINITY;
                if (j * 8 + 1 > last) scores[i][j][2 * half + 1] = -INFINITY;
            }
        }
}

/* ---- places ---- */

/* Which rows of which head a block works on. Blocks of the same keys and values stand beside each other. */
struct pc_attention_place {
    int tile, head, sequence;
};

/* Of `tiles` a head and so many heads a sequence. */
__device__ __forceinline__ pc_attention_place pc_place_of_block(int tiles, int heads) {
    int number = pc_in_loop(static_cast<int>(blockIdx.x)), rest = number / tiles;
    return pc_attention_place{number % tiles, rest % heads, rest / heads};
}

/* Where a row of a head begins in what is like the query, and like the key; `head` is counted in heads of that. */
template <class T>
__device__ __forceinline__ int64_t pc_query_at(const pc_attention_arguments<T> &given, int sequence, int head,
                                               int row) {
    return (static_cast<int64_t>(sequence) * given.m + row) * given.query_stride + head * given.k;
}
template <class T>
__device__ __forceinline__ int64_t pc_key_at(const pc_attention_arguments<T> &given, int sequence, int head, int row) {
    return (static_cast<int64_t>(sequence) * given.n + row) * given.key_stride + head * given.k;
}

/* The same of a number a row. */
template <class T>
__device__ __forceinline__ int64_t pc_row_at(const pc_attention_arguments<T> &given, int sequence, int head, int row) {
    return (static_cast<int64_t>(sequence) * given.heads + head) * given.m + row;
}

/* ---- on the host ---- */

template <class T> pc_attention_arguments<T> pc_attention_given(const pc_kernel_shape *shape, void *const *tensors) {
    pc_attention_arguments<T> given = {};
    given.query = static_cast<const T *>(tensors[PC_ATTENTION_QUERY]);
    given.key = static_cast<const T *>(tensors[PC_ATTENTION_KEY]);
    given.value = static_cast<const T *>(tensors[PC_ATTENTION_VALUE]);
    given.query_stride = static_cast<int>(shape->heads * shape->k);
    given.key_stride = static_cast<int>(shape->kv_heads * shape->k);
    given.batch = static_cast<int>(shape->batch);
    given.m = static_cast<int>(shape->m);
    given.n = static_cast<int>(shape->n);
    given.k = static_cast<int>(shape->k);
    given.heads = static_cast<int>(shape->heads);
    given.kv_heads = static_cast<int>(shape->kv_heads);
    given.shift = shape->is_causal ? given.n - given.m : given.n;
    given.scale = 1.0f / sqrtf(static_cast<float>(shape->k));
    return given;
}

/* The D of the kernel that a head runs on. */
inline int pc_attention_width(const pc_kernel_shape *shape) {
    const int widths[] = {32, 64, 96, 128};
    for (int width : widths)
        if (shape->k <= width) return width;
    return PC_ATTENTION_HEAD_MAX;
}

/* Wide heads need more shared memory than some GPUs have, those for games above all. */
inline pc_code pc_attention_fits(const pc_device *device, const char *what, int width, int64_t bytes, pc_error *error) {
    int64_t most = pc_device_about(device)->shared_bytes;
    if (bytes <= most) return PC_OK;
    return pc_error_set(error, PC_ERROR_INPUT,
                        "%s: heads of up to %d need %lld bytes of shared memory for a block; this GPU has %lld", what,
                        width, static_cast<long long>(bytes), static_cast<long long>(most));
}

/* Calls what(std::integral_constant<int, D>{}). */
template <class F> auto pc_attention_dispatch(const pc_kernel_shape *shape, F &&what) {
    switch (pc_attention_width(shape)) {
    case 32:
        return what(std::integral_constant<int, 32>{});
    case 64:
        return what(std::integral_constant<int, 64>{});
    case 96:
        return what(std::integral_constant<int, 96>{});
    case 128:
        return what(std::integral_constant<int, 128>{});
    default:
        return what(std::integral_constant<int, PC_ATTENTION_HEAD_MAX>{});
    }
}

#endif
