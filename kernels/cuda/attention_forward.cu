/* Flash attention, forward: a block takes some queries of one head and goes over the keys they see, a tile at a time,
 * with the softmax kept up as it goes (Dao 2023, 'FlashAttention-2', algorithm 1). While scores are computed the tile's
 * values are on their way, while probabilities meet values the next tile's keys are. */
#include "kernels/attention_library.h"
#include "kernels/cuda/attention.cuh"
#include "kernels/families.h"

/* ---- how a head is cut ---- */

/* Warps of a block, M (times 16 queries a warp), keys of a tile, blocks that should fit a processor. The more rows a
 * warp has, the fewer loads from shared memory a product needs; what limits them is the 255 registers of a thread. */
template <int D> struct forward_cut { static constexpr int warps = 4, m = 2, keys = 64, blocks = D <= 32 ? 3 : 2; };
template <> struct forward_cut<256> { static constexpr int warps = 8, m = 1, keys = 64, blocks = 1; };

template <int D> constexpr int forward_threads = forward_cut<D>::warps * 32;
template <int D> constexpr int forward_queries = forward_cut<D>::warps *forward_cut<D>::m * 16;
template <int D> constexpr int forward_shared = (forward_queries<D> + 2 * forward_cut<D>::keys) * pc_rows<D>::bytes;

/* ---- softmax as it goes ---- */

/* Of the two rows of each fragment that a lane has a part of. */
template <int M> struct running_softmax {
    float largest[M][2]; /* of the scores so far, before scaling */
    float sum[M][2];     /* of exp(scale * (score - largest)), of this lane's columns alone */
};

/* Four lanes hold a row. */
__device__ __forceinline__ float row_max(float value) {
    value = fmaxf(value, __shfl_xor_sync(PC_ALL_LANES, value, 1));
    return fmaxf(value, __shfl_xor_sync(PC_ALL_LANES, value, 2));
}

__device__ __forceinline__ float row_sum(float value) {
    value += __shfl_xor_sync(PC_ALL_LANES, value, 1);
    return value + __shfl_xor_sync(PC_ALL_LANES, value, 2);
}

/* Turns scores into probabilities (before division by their sum), and brings `out` to the new largest score. */
template <int M, int N, int D8>
__device__ __forceinline__ void soften(float (&scores)[M][N][4], float (&out)[M][D8][4], running_softmax<M> &rows,
                                       float scale_log2) {
#pragma unroll
    for (int i = 0; i < M; i++)
#pragma unroll
        for (int half = 0; half < 2; half++) {
            float largest = rows.largest[i][half];
#pragma unroll
            for (int j = 0; j < N; j++)
                largest = fmaxf(largest, fmaxf(scores[i][j][2 * half], scores[i][j][2 * half + 1]));
            largest = row_max(largest);
            /* Where nothing was seen so far all is -inf, and -inf - 0 goes well. */
            float base = largest == -INFINITY ? 0.0f : largest * scale_log2;
            float shrink = pc_exp2(rows.largest[i][half] * scale_log2 - base), sum = rows.sum[i][half] * shrink;
#pragma unroll
            for (int j = 0; j < N; j++)
#pragma unroll
                for (int e = 2 * half; e < 2 * half + 2; e++)
                    sum += scores[i][j][e] = pc_exp2(fmaf(scores[i][j][e], scale_log2, -base));
#pragma unroll
            for (int j = 0; j < D8; j++) {
                out[i][j][2 * half] *= shrink;
                out[i][j][2 * half + 1] *= shrink;
            }
            rows.largest[i][half] = largest;
            rows.sum[i][half] = sum;
        }
}

/* Divides by the sums and writes the logarithms: `to` is that of row 0 of the warp, `there` rows are to be written. */
template <int M, int D8>
__device__ __forceinline__ void finish(float (&out)[M][D8][4], const running_softmax<M> &rows, float scale, float *to,
                                       int there) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
    for (int i = 0; i < M; i++)
#pragma unroll
        for (int half = 0; half < 2; half++) {
            int row = i * 16 + half * 8 + lane / 4;
            float sum = row_sum(rows.sum[i][half]);
            float part = sum > 0 ? 1 / sum : 0;
#pragma unroll
            for (int j = 0; j < D8; j++) {
                out[i][j][2 * half] *= part;
                out[i][j][2 * half + 1] *= part;
            }
            if (lane % 4 == 0 && row < there) to[row] = sum > 0 ? rows.largest[i][half] * scale + logf(sum) : -INFINITY;
        }
}

/* ---- the kernel ---- */

/* The last queries come first: of a causal mask they have the most to do. */
template <int D, class T>
__device__ __forceinline__ pc_attention_place forward_place(const pc_attention_arguments<T> &given) {
    const int tiles = (given.m - 1) / forward_queries<D> + 1;
    pc_attention_place place = pc_place_of_block(tiles, given.heads);
    place.tile = tiles - 1 - place.tile;
    return place;
}

template <class T, int D>
__global__ void __launch_bounds__(forward_threads<D>, forward_cut<D>::blocks)
    pc_attention_forward(const pc_attention_arguments<T> given) {
    constexpr int M = forward_cut<D>::m, keys = forward_cut<D>::keys, queries = forward_queries<D>;
    constexpr int threads = forward_threads<D>;
    PC_SHARED(char, shared);
    const pc_shared_address query_tile = pc_shared_at(shared), key_tile = query_tile + queries * pc_rows<D>::bytes,
                            value_tile = key_tile + keys * pc_rows<D>::bytes;

    pc_attention_place place = forward_place<D>(given);
    const int query = place.tile * queries, warp_row = static_cast<int>(threadIdx.x) / 32 * M * 16;
    const int64_t key_at = pc_key_at(given, place.sequence, place.head / (given.heads / given.kv_heads), 0);
    const int end = pc_last_key(given, min(query + queries, given.m) - 1) + 1;

    pc_copy_tile<D, queries, threads>(query_tile, given.query + pc_query_at(given, place.sequence, place.head, query),
                                      given.query_stride, given.m - query, given.k);
    if (end > 0) pc_copy_tile<D, keys, threads>(key_tile, given.key + key_at, given.key_stride, given.n, given.k);
    pc_copy_async_commit();

    float out[M][D / 8][4];
    running_softmax<M> rows;
    pc_clear_rows(out);
#pragma unroll
    for (int i = 0; i < 2 * M; i++) {
        rows.largest[i / 2][i % 2] = -INFINITY;
        rows.sum[i / 2][i % 2] = 0;
    }
    for (int key = 0; key < end; key += keys) {
        pc_copy_async_wait<0>(); /* the keys are there, and all warps are through with the values before them */
        __syncthreads();
        pc_copy_tile<D, keys, threads>(value_tile, given.value + key_at + static_cast<int64_t>(key) * given.key_stride,
                                       given.key_stride, given.n - key, given.k);
        pc_copy_async_commit();

        float scores[M][keys / 8][4];
        pc_clear_rows(scores);
        pc_multiply_rows<T, D>(scores, query_tile + warp_row * pc_rows<D>::bytes, key_tile);
        if (key + keys - 1 > pc_last_key(given, query + warp_row)) pc_mask_scores(scores, given, query + warp_row, key);

        pc_copy_async_wait<0>(); /* the values are there, and all warps are through with the keys */
        __syncthreads();
        if (key + keys < end) {
            pc_copy_tile<D, keys, threads>(key_tile,
                                           given.key + key_at + static_cast<int64_t>(key + keys) * given.key_stride,
                                           given.key_stride, given.n - key - keys, given.k);
            pc_copy_async_commit();
        }
        soften(scores, out, rows, given.scale * PC_LOG2_E);
        uint32_t probabilities[M][keys / 16][4];
        pc_round_rows<T>(probabilities, scores);
        pc_multiply<T, D>(out, probabilities, value_tile);
    }
    pc_copy_async_wait<0>(); /* a block that saw no key has its queries still under way */
    __syncthreads();
    place = forward_place<D>(given);
    const int row = place.tile * queries + warp_row, there = given.m - row;
    finish(out, rows, given.scale, given.made_log_sum + pc_row_at(given, place.sequence, place.head, row), there);
    pc_store_rows<T, D>(given.made_out + pc_query_at(given, place.sequence, place.head, row), given.query_stride, there,
                        given.k, out, shared + warp_row * pc_rows<D>::bytes);
}

/* ---- the family ---- */

template <int D> static dim3 forward_grid(const pc_kernel_shape *shape) {
    return dim3(static_cast<unsigned>(pc_divide_up(shape->m, forward_queries<D>) * shape->heads * shape->batch));
}

static pc_code forward_own(pc_device *device, const pc_kernel_shape *shape, void *const *tensors, pc_error *error) {
    return pc_dispatch(shape->dtype, [&](auto zero) {
        using T = decltype(zero);
        pc_attention_arguments<T> given = pc_attention_given<T>(shape, tensors);
        given.made_out = static_cast<T *>(tensors[PC_ATTENTION_OUT]);
        given.made_log_sum = static_cast<float *>(tensors[PC_ATTENTION_LOG_SUM]);
        return pc_attention_dispatch(shape, [&](auto width) {
            constexpr int D = decltype(width)::value;
            pc_code code = pc_attention_fits(device, "attention_forward", D, forward_shared<D>, error);
            if (code != PC_OK) return code;
            PC_LAUNCH(device, (pc_attention_forward<T, D>), forward_grid<D>(shape), dim3(forward_threads<D>),
                      forward_shared<D>, given);
            return pc_device_launched(device, "attention_forward", error);
        });
    });
}

static pc_code forward_prepare(pc_device *device, const pc_kernel_shape *shape, void *const *tensors, pc_error *error) {
    return pc_attention_library_prepare(device, &pc_family_attention_forward, forward_own, shape, tensors, error);
}

static pc_code forward_launch(pc_device *device, const pc_kernel_shape *shape, void *const *tensors, pc_error *error) {
    if (pc_attention_library_runs(device, &pc_family_attention_forward, shape))
        return pc_attention_library_launch(device, &pc_family_attention_forward, shape, tensors, error);
    return forward_own(device, shape, tensors, error);
}

static pc_code forward_attributes(pc_device *device, const pc_kernel_shape *shape, pc_kernel_attributes *made,
                                  pc_error *error) {
    const char *other = pc_attention_library_runs(device, &pc_family_attention_forward, shape);
    if (other) return pc_attention_library_attributes(other, made);
    char name[64];
    snprintf(name, sizeof name, "pc_attention_forward<%s,%d>", pc_dtype_name(shape->dtype), pc_attention_width(shape));
    return pc_dispatch(shape->dtype, [&](auto zero) {
        using T = decltype(zero);
        return pc_attention_dispatch(shape, [&](auto width) {
            constexpr int D = decltype(width)::value;
            return pc_launch_attributes(device, name, pc_attention_forward<T, D>, forward_grid<D>(shape),
                                        dim3(forward_threads<D>), forward_shared<D>, made, error);
        });
    });
}

extern "C" const pc_kernel_family pc_family_attention_forward = {
    "attention_forward",
    PC_KERNEL_ATTENTION,
    PC_KERNEL_FORWARD,
    pc_attention_forward_tensors,
    forward_prepare,
    forward_launch,
    forward_attributes,
    pc_attention_forward_reference,
    pc_attention_forward_flops,
    pc_attention_forward_bytes,
    nullptr,
};
