/* casts.cu: from 16 bits to 8, with the turned copy that products of 8 bits want on Hopper, and the largest number. */
#include "kernels/casts.h"
#include "kernels/cuda/elementwise.cuh"

namespace {

/* Calls what(T{}, L{}) with the types of the shape: 16 bits, and 8. */
template <class F> auto dispatch(const pc_kernel_shape *shape, F &&what) {
    return pc_dispatch(shape->dtype, [&](auto from) {
        return pc_shape_low(shape) == PC_E5M2 ? what(from, __nv_fp8_e5m2{}) : what(from, __nv_fp8_e4m3{});
    });
}

/* Eight 8-bit numbers as one access. */
template <class L> struct alignas(8) low_vector { L value[PC_EIGHT]; };

template <class L> __device__ inline void store_low(L *to, const low_vector<L> &x) {
    *reinterpret_cast<low_vector<L> *>(to) = x;
}

/* ---- cast ---- */

template <class T, class L> struct cast_op {
    static constexpr int unroll = 4;
    const T *input;
    const float *scale;
    L *output;

    struct held {
        pc_vector<T> input;
    };
    __device__ held load(int64_t v) const { return {pc_load(input + v * PC_EIGHT)}; }
    __device__ void store(int64_t v, const held &of) const {
        low_vector<L> result;
        float factor = *scale;
#pragma unroll
        for (int i = 0; i < PC_EIGHT; i++) result.value[i] = pc_from_float<L>(pc_to_float(of.input.value[i]) * factor);
        store_low(output + v * PC_EIGHT, result);
    }
    __device__ void single(int64_t e) const {
        output[e] = pc_from_float<L>(pc_to_float(input[e]) * *scale);
    }
};

pc_code cast(const pc_task &task) {
    const pc_kernel_shape *s = task.shape;
    return dispatch(s, [&](auto from, auto to) {
        using T = decltype(from);
        using L = decltype(to);
        cast_op<T, L> op = {task.tensor<const T>(0), task.tensor<const float>(1), task.tensor<L>(2)};
        return pc_run_flat(task, PC_MAIN, "cast", op, s->m * s->n, pc_all_aligned(op.input, op.output));
    });
}

/* ---- the largest ---- */

/* Numbers that are not negative are in the order of their bits. Every thread of the block has to come. */
__device__ inline void keep_largest(float largest, float *amax) {
    largest = pc_block_max(largest);
    if (threadIdx.x == 0) atomicMax(reinterpret_cast<int *>(amax), __float_as_int(largest));
}

constexpr int UNDER_WAY = 8; /* vectors of a thread */

template <class T>
__global__ void __launch_bounds__(PC_FLAT_THREADS) amax_wide(const T *input, float *amax, int64_t count) {
    int64_t first = (int64_t)blockIdx.x * (PC_FLAT_THREADS * UNDER_WAY) + threadIdx.x, vectors = count / PC_EIGHT;
    pc_vector<T> held[UNDER_WAY] = {};
    float largest = 0.0f;
#pragma unroll
    for (int u = 0; u < UNDER_WAY; u++)
        if (first + u * PC_FLAT_THREADS < vectors) held[u] = pc_load(input + (first + u * PC_FLAT_THREADS) * PC_EIGHT);
#pragma unroll
    for (int u = 0; u < UNDER_WAY; u++)
#pragma unroll
        for (int i = 0; i < PC_EIGHT; i++) largest = fmaxf(largest, fabsf(pc_to_float(held[u].value[i])));
    int64_t last = vectors * PC_EIGHT + threadIdx.x;
    if (blockIdx.x == gridDim.x - 1 && last < count) largest = fmaxf(largest, fabsf(pc_to_float(input[last])));
    keep_largest(largest, amax);
}

template <class T>
__global__ void __launch_bounds__(PC_FLAT_THREADS) amax_narrow(const T *input, float *amax, int64_t count) {
    int64_t e = (int64_t)blockIdx.x * PC_FLAT_THREADS + threadIdx.x;
    keep_largest(e < count ? fabsf(pc_to_float(input[e])) : 0.0f, amax);
}

pc_code amax(const pc_task &task) {
    const pc_kernel_shape *s = task.shape;
    return pc_dispatch(s->dtype, [&](auto from) {
        using T = decltype(from);
        const T *input = task.tensor<const T>(0);
        int64_t count = s->m * s->n;
        bool is_wide = pc_is_aligned(input) && count >= PC_EIGHT;
        auto kernel = is_wide ? amax_wide<T> : amax_narrow<T>;
        int64_t each = PC_FLAT_THREADS * (is_wide ? UNDER_WAY * PC_EIGHT : 1);
        dim3 grid((unsigned)pc_divide_up(count, each));
        return pc_run(task, PC_MAIN, "amax", kernel, grid, PC_FLAT_THREADS, 0, input, task.tensor<float>(1), count);
    });
}

/* ---- cast, as it is and turned ---- */

template <class T, class L> struct cast_transpose_task {
    const T *input;
    const float *scale;
    L *output, *transposed;
    float *amax;
    int64_t rows, columns;
};

/* A block casts a tile of TILE x TILE. A warp takes patches of 32 x 32: a lane 8 columns of 4 rows, whose codes of one
 * column are a word of the turned tile in shared memory. Lanes 0 to 3 have the patch's columns, and the words of a row
 * of the tile lie one bank further than those of the row before, so that no two lanes meet in a bank. */
constexpr int TILE = 128, PATCH = 32, PATCHES = TILE / PATCH, ROWS = 4, WORDS = TILE / ROWS, SEGMENT = 16;
constexpr int TILE_THREADS = 256, TILE_WARPS = TILE_THREADS / 32;

template <class T, class L>
__device__ inline float cast_patch(const cast_transpose_task<T, L> &of, int64_t row, int64_t column, float factor,
                                   uint32_t packed[PC_EIGHT]) {
    pc_vector<T> held[ROWS];
    float largest = 0.0f;
#pragma unroll
    for (int i = 0; i < ROWS; i++) held[i] = pc_load(of.input + (row + i) * of.columns + column);
#pragma unroll
    for (int i = 0; i < ROWS; i++) {
        low_vector<L> codes;
#pragma unroll
        for (int j = 0; j < PC_EIGHT; j++) {
            float x = pc_to_float(held[i].value[j]);
            uint8_t code;
            codes.value[j] = pc_from_float<L>(x * factor);
            largest = fmaxf(largest, fabsf(x));
            memcpy(&code, &codes.value[j], sizeof code);
            packed[j] |= (uint32_t)code << (8 * i);
        }
        store_low(of.output + (row + i) * of.columns + column, codes);
    }
    return largest;
}

/* Columns are a multiple of 8, rows of 16: a vector, four rows and a segment are in the tensor or are not. */
template <class T, class L>
__global__ void __launch_bounds__(TILE_THREADS) cast_transpose_wide(cast_transpose_task<T, L> of) {
    __shared__ uint32_t turned[TILE][WORDS + 1];
    int64_t across = (of.columns + TILE - 1) / TILE;
    int64_t tile_row = blockIdx.x / across * TILE, tile_column = blockIdx.x % across * TILE;
    int warp = (int)threadIdx.x / 32, part = (int)threadIdx.x % 4 * PC_EIGHT, quad = (int)threadIdx.x % 32 / 4;
    float largest = 0.0f, factor = *of.scale;
    for (int patch = warp; patch < PATCHES * PATCHES; patch += TILE_WARPS) {
        int patch_row = patch / PATCHES * PATCH + quad * ROWS, patch_column = patch % PATCHES * PATCH + part;
        int64_t row = tile_row + patch_row, column = tile_column + patch_column;
        uint32_t packed[PC_EIGHT] = {};
        if (row < of.rows && column < of.columns) largest = fmaxf(largest, cast_patch(of, row, column, factor, packed));
#pragma unroll
        for (int j = 0; j < PC_EIGHT; j++) turned[patch_column + j][patch_row / ROWS] = packed[j];
    }
    __syncthreads();
    for (int i = (int)threadIdx.x; i < TILE * (TILE / SEGMENT); i += TILE_THREADS) {
        int segment = i % (TILE / SEGMENT), line = i / (TILE / SEGMENT);
        int64_t row = tile_row + segment * SEGMENT, column = tile_column + line;
        if (row >= of.rows || column >= of.columns) continue;
        pc_vector<uint32_t> words;
#pragma unroll
        for (int w = 0; w < words.size; w++) words.value[w] = turned[line][segment * words.size + w];
        pc_store(reinterpret_cast<uint32_t *>(of.transposed + column * of.rows + row), words);
    }
    keep_largest(largest, of.amax);
}

template <class T, class L>
__global__ void __launch_bounds__(TILE_THREADS) cast_transpose_narrow(cast_transpose_task<T, L> of) {
    int64_t e = (int64_t)blockIdx.x * TILE_THREADS + threadIdx.x;
    float largest = 0.0f;
    if (e < of.rows * of.columns) {
        pc_place place = pc_place_of(e, of.columns);
        float x = pc_to_float(of.input[e]);
        L code = pc_from_float<L>(x * *of.scale);
        of.output[e] = code;
        of.transposed[place.column * of.rows + place.row] = code;
        largest = fabsf(x);
    }
    keep_largest(largest, of.amax);
}

pc_code cast_transpose(const pc_task &task) {
    const pc_kernel_shape *s = task.shape;
    return dispatch(s, [&](auto from, auto to) {
        using T = decltype(from);
        using L = decltype(to);
        cast_transpose_task<T, L> of = {task.tensor<const T>(0),
                                        task.tensor<const float>(1),
                                        task.tensor<L>(2),
                                        task.tensor<L>(3),
                                        task.tensor<float>(4),
                                        s->m,
                                        s->n};
        bool is_wide =
            s->n % PC_EIGHT == 0 && s->m % SEGMENT == 0 && pc_all_aligned(of.input, of.output, of.transposed);
        int64_t blocks =
            is_wide ? pc_divide_up(s->m, TILE) * pc_divide_up(s->n, TILE) : pc_divide_up(s->m * s->n, TILE_THREADS);
        auto kernel = is_wide ? cast_transpose_wide<T, L> : cast_transpose_narrow<T, L>;
        return pc_run(task, PC_MAIN, "cast_transpose", kernel, dim3((unsigned)blocks), TILE_THREADS, 0, of);
    });
}

} // namespace

PC_MEMORY_FAMILY(cast, PC_KERNEL_ELEMENTWISE, PC_KERNEL_FORWARD);
PC_MEMORY_FAMILY(cast_transpose, PC_KERNEL_ELEMENTWISE, PC_KERNEL_FORWARD);
PC_MEMORY_FAMILY(amax, PC_KERNEL_ELEMENTWISE, PC_KERNEL_FORWARD);
