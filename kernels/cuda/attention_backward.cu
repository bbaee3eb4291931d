/* Flash attention, backward: probabilities are computed once more from the scores and what forward kept of their sums.
 *
 * Three kernels, none of which adds to what another block adds to, so that the same input gives the same bits. One
 * makes delta, a number a row. One makes the queries' gradients: a block goes over the keys that its queries see, as
 * forward does. One makes the gradients of keys and values: a block goes over the queries that see its keys, in all
 * heads of the group. The price is that scores and their gradients are computed twice: seven products where one kernel,
 * whose blocks add up the queries' gradients in any order (Dao 2023, 'FlashAttention-2', algorithm 2), needs five. Of
 * heads beyond 128 the gradients of keys and of values do not fit the registers together, and their kernel runs once
 * for each: eight products.
 */
#include "kernels/attention_library.h"
#include "kernels/cuda/attention.cuh"
#include "kernels/families.h"

/* ---- how a head is cut ---- */

/* Of the queries' gradients: warps are `groups` beside each other over a tile's keys and the others below each other,
 * M times 16 queries each. */
template <int D> struct queries_cut {
    static constexpr int warps = 4, groups = 1, m = 2, keys = D <= 32 ? 64 : 32, blocks = 2;
};
template <> struct queries_cut<128> { /* with four warps alone a processor would stand idle */
    static constexpr int warps = 8, groups = 2, m = 2, keys = 64, blocks = 1;
};
template <> struct queries_cut<256> { static constexpr int warps = 4, groups = 1, m = 1, keys = 32, blocks = 1; };

template <int D> constexpr int queries_threads = queries_cut<D>::warps * 32;
template <int D> constexpr int queries_rows = queries_cut<D>::warps / queries_cut<D>::groups *queries_cut<D>::m * 16;
template <int D> constexpr int queries_shared = (2 * queries_rows<D> + 4 * queries_cut<D>::keys) * pc_rows<D>::bytes;

/* Of the keys' and values': M times 16 keys a warp. */
template <int D> struct keys_cut {
    static constexpr int warps = D <= 64 ? 4 : 8, m = D <= 64 ? 2 : 1, queries = D <= 64 ? 32 : 64;
    static constexpr int blocks = D <= 64 ? 2 : 1;
};
template <> struct keys_cut<256> { static constexpr int warps = 4, m = 1, queries = 32, blocks = 1; };

template <int D> constexpr int keys_threads = keys_cut<D>::warps * 32;
template <int D> constexpr int keys_rows = keys_cut<D>::warps *keys_cut<D>::m * 16;
template <int D>
constexpr int keys_shared = (2 * keys_rows<D> + 4 * keys_cut<D>::queries) * pc_rows<D>::bytes +
                            4 * keys_cut<D>::queries *static_cast<int>(sizeof(float));

/* ---- delta ---- */

/* The dot product of out and its gradient, a row of a head; `lanes` of a warp to a row. */
template <class T> __global__ void pc_attention_delta(const pc_attention_arguments<T> given, int lanes) {
    const int lane = static_cast<int>(threadIdx.x) % lanes;
    const int64_t rows = static_cast<int64_t>(given.batch) * given.m * given.heads;
    const int64_t row = (static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) / static_cast<unsigned>(lanes);
    float sum = 0;
    if (row < rows && lane * 8 < given.k) {
        pc_vector<T> a = pc_load(given.out + row * given.k + lane * 8);
        pc_vector<T> b = pc_load(given.out_gradient + row * given.k + lane * 8);
#pragma unroll
        for (int i = 0; i < 8; i++) sum += pc_to_float(a.value[i]) * pc_to_float(b.value[i]);
    }
    for (int distance = lanes / 2; distance > 0; distance /= 2) sum += __shfl_xor_sync(PC_ALL_LANES, sum, distance);
    if (row >= rows || lane != 0) return;
    const int head = static_cast<int>(row % given.heads);
    const int64_t token = row / given.heads;
    given.made_delta[pc_row_at(given, static_cast<int>(token / given.m), head, static_cast<int>(token % given.m))] =
        sum;
}

/* ---- rows ---- */

/* A row's logarithm to base 2; such that probabilities are 0 of a row that is none or that sees no key. */
__device__ __forceinline__ float log2_sum(float log_sum, bool is_there) {
    return is_there && log_sum != -INFINITY ? log_sum * PC_LOG2_E : INFINITY;
}

/* Adds the second of two warps' parts to the first's, by way of shared memory; all threads of the block come here. */
template <int M, int N>
__device__ __forceinline__ void add_up_pairs(float (&c)[M][N][4], bool is_second, int pair, char *shared) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    float4 *parts = reinterpret_cast<float4 *>(shared) + pair * M * N * 32 + lane;
    if (is_second)
#pragma unroll
        for (int i = 0; i < M * N; i++) {
            const float(&from)[4] = c[i / N][i % N];
            parts[i * 32] = make_float4(from[0], from[1], from[2], from[3]);
        }
    __syncthreads();
    if (is_second) return;
#pragma unroll
    for (int i = 0; i < M * N; i++) {
        float4 part = parts[i * 32];
        float(&to)[4] = c[i / N][i % N];
        to[0] += part.x;
        to[1] += part.y;
        to[2] += part.z;
        to[3] += part.w;
    }
}

template <int M, int N> __device__ __forceinline__ void scale_rows(float (&c)[M][N][4], float factor) {
#pragma unroll
    for (int i = 0; i < M * N * 4; i++) c[i / (4 * N)][i / 4 % N][i % 4] *= factor;
}

/* ---- the queries' gradients ---- */

template <int D, class T>
__device__ __forceinline__ pc_attention_place queries_place(const pc_attention_arguments<T> &given) {
    const int tiles = (given.m - 1) / queries_rows<D> + 1;
    pc_attention_place place = pc_place_of_block(tiles, given.heads);
    place.tile = tiles - 1 - place.tile; /* as in forward */
    return place;
}

/* Of a lane's rows. */
template <int M> struct row_numbers { float log2_sum[M][2], delta[M][2]; };

template <int M, class T>
__device__ __forceinline__ row_numbers<M> load_row_numbers(const pc_attention_arguments<T> &given,
                                                           const pc_attention_place &place, int query) {
    row_numbers<M> rows;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int64_t at = pc_row_at(given, place.sequence, place.head, 0);
#pragma unroll
    for (int i = 0; i < M; i++)
#pragma unroll
        for (int half = 0; half < 2; half++) {
            int row = query + i * 16 + half * 8 + lane / 4;
            bool is_there = row < given.m;
            rows.log2_sum[i][half] = log2_sum(is_there ? given.log_sum[at + row] : 0, is_there);
            rows.delta[i][half] = is_there ? given.delta[at + row] : 0;
        }
    return rows;
}

/* Scores to probabilities, and those with their gradients to the scores' gradients (but for the scale). */
template <int M, int N>
__device__ __forceinline__ void score_gradients(float (&scores)[M][N][4], const float (&gradients)[M][N][4],
                                                const row_numbers<M> &rows, float scale_log2) {
#pragma unroll
    for (int i = 0; i < M; i++)
#pragma unroll
        for (int j = 0; j < N; j++)
#pragma unroll
            for (int e = 0; e < 4; e++)
                scores[i][j][e] = pc_exp2(fmaf(scores[i][j][e], scale_log2, -rows.log2_sum[i][e / 2])) *
                                  (gradients[i][j][e] - rows.delta[i][e / 2]);
}

template <class T, int D>
__global__ void __launch_bounds__(queries_threads<D>, queries_cut<D>::blocks)
    pc_attention_query_gradient(const pc_attention_arguments<T> given) {
    constexpr int M = queries_cut<D>::m, keys = queries_cut<D>::keys, queries = queries_rows<D>;
    constexpr int threads = queries_threads<D>, groups = queries_cut<D>::groups, N = keys / groups / 8;
    constexpr int tile_bytes = keys * pc_rows<D>::bytes;
    PC_SHARED(char, shared);
    const pc_shared_address query_tile = pc_shared_at(shared), out_tile = query_tile + queries * pc_rows<D>::bytes,
                            stages = out_tile + queries * pc_rows<D>::bytes;
    const int warp = static_cast<int>(threadIdx.x) / 32, warp_row = warp / groups * M * 16;
    const int warp_key = warp % groups * N * 8;
    pc_attention_place place = queries_place<D>(given);
    const int query = place.tile * queries;
    const int64_t query_at = pc_query_at(given, place.sequence, place.head, query);
    const int64_t key_at = pc_key_at(given, place.sequence, place.head / (given.heads / given.kv_heads), 0);
    const int end = pc_last_key(given, min(query + queries, given.m) - 1) + 1;
    auto copy_keys = [&](int key, int stage) {
        const pc_shared_address to = stages + 2 * stage * tile_bytes;
        const int64_t from = key_at + static_cast<int64_t>(key) * given.key_stride;
        pc_copy_tile<D, keys, threads>(to, given.key + from, given.key_stride, given.n - key, given.k);
        pc_copy_tile<D, keys, threads>(to + tile_bytes, given.value + from, given.key_stride, given.n - key, given.k);
    };
    pc_copy_tile<D, queries, threads>(query_tile, given.query + query_at, given.query_stride, given.m - query, given.k);
    pc_copy_tile<D, queries, threads>(out_tile, given.out_gradient + query_at, given.query_stride, given.m - query,
                                      given.k);
    if (end > 0) copy_keys(0, 0);
    pc_copy_async_commit();

    const row_numbers<M> rows = load_row_numbers<M>(given, place, query + warp_row);
    float made[M][D / 8][4];
    pc_clear_rows(made);
    for (int key = 0, stage = 0; key < end; key += keys, stage ^= 1) {
        pc_copy_async_wait<0>(); /* this tile is there, and all warps are through with the one before */
        __syncthreads();
        if (key + keys < end) copy_keys(key + keys, stage ^ 1);
        pc_copy_async_commit();

        const pc_shared_address key_tile = stages + 2 * stage * tile_bytes + warp_key * pc_rows<D>::bytes;
        float scores[M][N][4], gradients[M][N][4];
        pc_clear_rows(scores);
        pc_multiply_rows<T, D>(scores, query_tile + warp_row * pc_rows<D>::bytes, key_tile);
        if (key + warp_key + N * 8 - 1 > pc_last_key(given, query + warp_row))
            pc_mask_scores(scores, given, query + warp_row, key + warp_key);
        pc_clear_rows(gradients);
        pc_multiply_rows<T, D>(gradients, out_tile + warp_row * pc_rows<D>::bytes, key_tile + tile_bytes);
        score_gradients(scores, gradients, rows, given.scale * PC_LOG2_E);
        uint32_t rounded[M][N / 2][4];
        pc_round_rows<T>(rounded, scores);
        pc_multiply<T, D>(made, rounded, key_tile);
    }
    pc_copy_async_wait<0>();
    __syncthreads();
    if constexpr (groups == 2) add_up_pairs(made, warp % 2 == 1, warp / 2, shared);
    if (warp % groups != 0) return;
    scale_rows(made, given.scale);
    place = queries_place<D>(given);
    const int row = place.tile * queries + warp_row;
    pc_store_rows<T, D>(given.query_gradient + pc_query_at(given, place.sequence, place.head, row), given.query_stride,
                        given.m - row, given.k, made, shared + (2 * queries + warp_row) * pc_rows<D>::bytes);
}

/* ---- the gradients of keys and values ---- */

/* Scores of M x 16 keys from `key` (rows) and N x 8 queries from `query` (columns): -inf where not seen. */
template <class T, int M, int N>
__device__ __forceinline__ void mask_columns(float (&scores)[M][N][4], const pc_attention_arguments<T> &given, int key,
                                             int query) {
    const int lane = pc_in_loop(static_cast<int>(threadIdx.x)) % 32;
#pragma unroll
    for (int i = 0; i < M; i++)
#pragma unroll
        for (int half = 0; half < 2; half++) {
            int first = key + i * 16 + half * 8 + lane / 4 - given.shift - query - lane % 4 * 2;
#pragma unroll
            for (int j = 0; j < N; j++) {
                if (j * 8 < first) scores[i][j][2 * half] = -INFINITY;
                if (j * 8 + 1 < first) scores[i][j][2 * half + 1] = -INFINITY;
            }
        }
}

/* A lane's two columns of fragment j, of a number a column. */
__device__ __forceinline__ float2 column_numbers(const float *numbers, int j) {
    return *reinterpret_cast<const float2 *>(numbers + j * 8 + threadIdx.x % 4 * 2);
}

template <int M, int N>
__device__ __forceinline__ void column_probabilities(float (&scores)[M][N][4], const float *log2_sums,
                                                     float scale_log2) {
#pragma unroll
    for (int j = 0; j < N; j++) {
        const float2 sums = column_numbers(log2_sums, j);
#pragma unroll
        for (int i = 0; i < M; i++)
#pragma unroll
            for (int e = 0; e < 4; e++)
                scores[i][j][e] = pc_exp2(fmaf(scores[i][j][e], scale_log2, -(e % 2 ? sums.y : sums.x)));
    }
}

template <int M, int N>
__device__ __forceinline__ void column_gradients(float (&gradients)[M][N][4], const float (&probabilities)[M][N][4],
                                                 const float *deltas) {
#pragma unroll
    for (int j = 0; j < N; j++) {
        const float2 delta = column_numbers(deltas, j);
#pragma unroll
        for (int i = 0; i < M; i++)
#pragma unroll
            for (int e = 0; e < 4; e++)
                gradients[i][j][e] = probabilities[i][j][e] * (gradients[i][j][e] - (e % 2 ? delta.y : delta.x));
    }
}

/* The queries that a block of keys goes over: of every head of its group the tiles from the first that sees one. */
struct query_walk {
    int sequence, first_head, first_tile, tiles, count;

    __device__ __forceinline__ int head(int step) const { return first_head + step / tiles; }
    __device__ __forceinline__ int query(int step, int queries) const { return (first_tile + step % tiles) * queries; }
};

template <class T>
__device__ __forceinline__ query_walk walk_of(const pc_attention_arguments<T> &given, const pc_attention_place &place,
                                              int key, int queries) {
    const int group = given.heads / given.kv_heads, first = max(0, key - given.shift) / queries;
    const int tiles = (given.m - 1) / queries + 1 - first;
    return query_walk{place.sequence, place.head * group, first, tiles, tiles * group};
}

/* What thread number i keeps of a tile's rows: of the first `queries` threads the sums, of the next as many the deltas.
 */
template <int Queries, class T>
__device__ __forceinline__ float walk_number(const pc_attention_arguments<T> &given, const query_walk &walk, int step) {
    const int thread = static_cast<int>(threadIdx.x), query = walk.query(step, Queries) + thread % Queries;
    if (thread >= 2 * Queries) return 0;
    const bool is_there = query < given.m;
    const int64_t at = pc_row_at(given, walk.sequence, walk.head(step), query);
    if (thread < Queries) return log2_sum(is_there ? given.log_sum[at] : 0, is_there);
    return is_there ? given.delta[at] : 0;
}

/* Where a warp finds its rows of the keys and values, and the tiles of a step, in shared memory. */
struct key_step {
    pc_shared_address keys, values, queries, out_gradients;
    const float *log2_sums, *deltas;
    int key, query; /* the first of each */
};

/* Adds a tile of queries to the gradients of a warp's keys and values. */
template <class T, int D, bool Keys, bool Values, int M, int A, int B>
__device__ __forceinline__ void add_queries(float (&made_key)[A][D / 8][4], float (&made_value)[B][D / 8][4],
                                            const pc_attention_arguments<T> &given, const key_step &step) {
    constexpr int N = keys_cut<D>::queries / 8;
    float scores[M][N][4];
    uint32_t rounded[M][N / 2][4];
    pc_clear_rows(scores);
    pc_multiply_rows<T, D>(scores, step.keys, step.queries);
    if (step.key + M * 16 - 1 - given.shift > step.query) mask_columns(scores, given, step.key, step.query);
    column_probabilities(scores, step.log2_sums, given.scale * PC_LOG2_E);
    if constexpr (Values) {
        pc_round_rows<T>(rounded, scores);
        pc_multiply<T, D>(made_value, rounded, step.out_gradients);
    }
    if constexpr (Keys) {
        float gradients[M][N][4];
        pc_clear_rows(gradients);
        pc_multiply_rows<T, D>(gradients, step.values, step.out_gradients);
        column_gradients(gradients, scores, step.deltas);
        pc_round_rows<T>(rounded, gradients);
        pc_multiply<T, D>(made_key, rounded, step.queries);
    }
}

/* `Keys`, `Values`: whose gradients it makes. */
template <class T, int D, bool Keys, bool Values>
__global__ void __launch_bounds__(keys_threads<D>, keys_cut<D>::blocks)
    pc_attention_key_gradient(const pc_attention_arguments<T> given) {
    constexpr int M = keys_cut<D>::m, queries = keys_cut<D>::queries, keys = keys_rows<D>;
    constexpr int threads = keys_threads<D>, tile_bytes = queries * pc_rows<D>::bytes;
    static_assert(2 * queries <= threads);
    PC_SHARED(char, shared);
    const pc_shared_address key_tile = pc_shared_at(shared), value_tile = key_tile + keys * pc_rows<D>::bytes,
                            stages = value_tile + keys * pc_rows<D>::bytes;
    float *const numbers = reinterpret_cast<float *>(shared + 2 * keys * pc_rows<D>::bytes + 4 * tile_bytes);
    const int warp_row = static_cast<int>(threadIdx.x) / 32 * M * 16;
    const pc_attention_place place = pc_place_of_block((given.n - 1) / keys + 1, given.kv_heads);
    const int key = place.tile * keys, row = key + warp_row;
    const int64_t key_at = pc_key_at(given, place.sequence, place.head, key);
    const query_walk walk = walk_of(given, place, key, queries);
    auto copy_queries = [&](int step, int stage) {
        const pc_shared_address to = stages + 2 * stage * tile_bytes;
        const int query = walk.query(step, queries);
        const int64_t from = pc_query_at(given, walk.sequence, walk.head(step), query);
        pc_copy_tile<D, queries, threads>(to, given.query + from, given.query_stride, given.m - query, given.k);
        pc_copy_tile<D, queries, threads>(to + tile_bytes, given.out_gradient + from, given.query_stride,
                                          given.m - query, given.k);
    };
    pc_copy_tile<D, keys, threads>(key_tile, given.key + key_at, given.key_stride, given.n - key, given.k);
    if constexpr (Keys)
        pc_copy_tile<D, keys, threads>(value_tile, given.value + key_at, given.key_stride, given.n - key, given.k);
    copy_queries(0, 0);
    pc_copy_async_commit();
    float number = walk_number<queries>(given, walk, 0);

    float made_key[Keys ? M : 1][D / 8][4], made_value[Values ? M : 1][D / 8][4];
    pc_clear_rows(made_key);
    pc_clear_rows(made_value);
    for (int step = 0, stage = 0; step < walk.count; step++, stage ^= 1) {
        float *const log2_sums = numbers + 2 * stage * queries;
        const pc_shared_address tile = stages + 2 * stage * tile_bytes;
        if (threadIdx.x < 2 * queries) log2_sums[threadIdx.x] = number;
        pc_copy_async_wait<0>(); /* this tile is there, and all warps are through with the one before */
        __syncthreads();
        if (step + 1 < walk.count) {
            copy_queries(step + 1, stage ^ 1);
            number = walk_number<queries>(given, walk, step + 1);
        }
        pc_copy_async_commit();
        add_queries<T, D, Keys, Values, M>(made_key, made_value, given,
                                           key_step{key_tile + warp_row * pc_rows<D>::bytes,
                                                    value_tile + warp_row * pc_rows<D>::bytes, tile, tile + tile_bytes,
                                                    log2_sums, log2_sums + queries, row, walk.query(step, queries)});
    }
    const int64_t to = pc_key_at(given, place.sequence, place.head, row);
    char *const own_rows = shared + warp_row * pc_rows<D>::bytes; /* of the keys' tile: no other warp reads them */
    if constexpr (Values)
        pc_store_rows<T, D>(given.value_gradient + to, given.key_stride, given.n - row, given.k, made_value, own_rows);
    if constexpr (Keys) {
        scale_rows(made_key, given.scale);
        pc_store_rows<T, D>(given.key_gradient + to, given.key_stride, given.n - row, given.k, made_key, own_rows);
    }
}

/* ---- the family ---- */

static dim3 blocks_of(int64_t rows, int tile, int64_t heads, int64_t batch) {
    return dim3(static_cast<unsigned>(pc_divide_up(rows, tile) * heads * batch));
}

template <class T>
static void launch_delta(pc_device *device, const pc_kernel_shape *shape, const pc_attention_arguments<T> &given) {
    enum { THREADS = 256 };
    int lanes = 1;
    while (lanes * 8 < shape->k) lanes *= 2;
    int64_t blocks = pc_divide_up(shape->batch * shape->m * shape->heads * lanes, THREADS);
    PC_LAUNCH(device, (pc_attention_delta<T>), dim3(static_cast<unsigned>(blocks)), dim3(THREADS), 0, given, lanes);
}

template <class T, int D>
static void launch_gradients(pc_device *device, const pc_kernel_shape *shape, const pc_attention_arguments<T> &given) {
    dim3 queries = blocks_of(shape->m, queries_rows<D>, shape->heads, shape->batch);
    dim3 keys = blocks_of(shape->n, keys_rows<D>, shape->kv_heads, shape->batch), threads(keys_threads<D>);
    PC_LAUNCH(device, (pc_attention_query_gradient<T, D>), queries, dim3(queries_threads<D>), queries_shared<D>, given);
    if constexpr (D <= 128) {
        PC_LAUNCH(device, (pc_attention_key_gradient<T, D, true, true>), keys, threads, keys_shared<D>, given);
    } else {
        PC_LAUNCH(device, (pc_attention_key_gradient<T, D, true, false>), keys, threads, keys_shared<D>, given);
        PC_LAUNCH(device, (pc_attention_key_gradient<T, D, false, true>), keys, threads, keys_shared<D>, given);
    }
}

static pc_code backward_own(pc_device *device, const pc_kernel_shape *shape, void *const *tensors, pc_error *error) {
    return pc_dispatch(shape->dtype, [&](auto zero) {
        using T = decltype(zero);
        pc_attention_arguments<T> given = pc_attention_given<T>(shape, tensors);
        given.out = static_cast<const T *>(tensors[PC_ATTENTION_OUT]);
        given.out_gradient = static_cast<const T *>(tensors[PC_ATTENTION_OUT_GRADIENT]);
        given.log_sum = static_cast<const float *>(tensors[PC_ATTENTION_LOG_SUM]);
        given.delta = given.made_delta = static_cast<float *>(tensors[PC_ATTENTION_DELTA]);
        given.query_gradient = static_cast<T *>(tensors[PC_ATTENTION_QUERY_GRADIENT]);
        given.key_gradient = static_cast<T *>(tensors[PC_ATTENTION_KEY_GRADIENT]);
        given.value_gradient = static_cast<T *>(tensors[PC_ATTENTION_VALUE_GRADIENT]);
        return pc_attention_dispatch(shape, [&](auto width) {
            constexpr int D = decltype(width)::value;
            constexpr int most = queries_shared < D >> keys_shared<D> ? queries_shared<D> : keys_shared<D>;
            pc_code code = pc_attention_fits(device, "attention_backward", D, most, error);
            if (code != PC_OK) return code;
            launch_delta<T>(device, shape, given);
            launch_gradients<T, D>(device, shape, given);
            return pc_device_launched(device, "attention_backward", error);
        });
    });
}

static pc_code backward_prepare(pc_device *device, const pc_kernel_shape *shape, void *const *tensors,
                                pc_error *error) {
    return pc_attention_library_prepare(device, &pc_family_attention_backward, backward_own, shape, tensors, error);
}

static pc_code backward_launch(pc_device *device, const pc_kernel_shape *shape, void *const *tensors, pc_error *error) {
    if (pc_attention_library_runs(device, &pc_family_attention_backward, shape))
        return pc_attention_library_launch(device, &pc_family_attention_backward, shape, tensors, error);
    return backward_own(device, shape, tensors, error);
}

/* Of the kernel for keys and values, which does most. */
static pc_code backward_attributes(pc_device *device, const pc_kernel_shape *shape, pc_kernel_attributes *made,
                                   pc_error *error) {
    const char *other = pc_attention_library_runs(device, &pc_family_attention_backward, shape);
    if (other) return pc_attention_library_attributes(other, made);
    char name[64];
    snprintf(name, sizeof name, "pc_attention_backward<%s,%d>", pc_dtype_name(shape->dtype), pc_attention_width(shape));
    pc_code code = pc_dispatch(shape->dtype, [&](auto zero) {
        using T = decltype(zero);
        return pc_attention_dispatch(shape, [&](auto width) {
            constexpr int D = decltype(width)::value;
            return pc_launch_attributes(device, name, pc_attention_key_gradient<T, D, true, (D <= 128)>,
                                        blocks_of(shape->n, keys_rows<D>, shape->kv_heads, shape->batch),
                                        dim3(keys_threads<D>), keys_shared<D>, made, error);
        });
    });
    if (!code) made->launches = pc_attention_width(shape) <= 128 ? 3 : 4;
    return code;
}

extern "C" const pc_kernel_family pc_family_attention_backward = {
    "attention_backward",
    PC_KERNEL_ATTENTION,
    PC_KERNEL_INPUT_GRADIENT,
    pc_attention_backward_tensors,
    backward_prepare,
    backward_launch,
    backward_attributes,
    pc_attention_backward_reference,
    pc_attention_backward_flops,
    pc_attention_backward_bytes,
    nullptr,
};
