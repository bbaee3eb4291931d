/* row.cuh: a warp or a block over one row: norms, softmax.
 *
 * A row of 16-bit numbers is cut into chunks of 8 (16 bytes) where n and the addresses allow it, and of 1 if not.
 * Rows of up to 32,768 columns in chunks of 8 stay in registers between passes; longer ones and ragged ones are read
 * again, which a cache answers.
 */
#ifndef PC_KERNELS_CUDA_ROW_CUH
#define PC_KERNELS_CUDA_ROW_CUH

#include "kernels/cuda/code.cuh"

/* ---- on the host ---- */

struct pc_row_setup {
    bool by_warp; /* a warp a row, four a block; or a block a row */
    int width;    /* columns of a chunk: 8 or 1 */
    int kept;     /* chunks a thread keeps: 1, 2, 4, or 0: none */
    int threads;  /* of a block */
};

inline pc_row_setup pc_set_up_rows(int64_t n, bool is_aligned) {
    constexpr int warp_threads = 128;
    if (n % 8 != 0 || !is_aligned) {
        bool by_warp = n <= 256;
        return {by_warp, 1, 0, by_warp ? warp_threads : n <= 4096 ? 256 : 1024};
    }
    int64_t chunks = n / 8;
    if (chunks <= 128) return {true, 8, chunks <= 32 ? 1 : chunks <= 64 ? 2 : 4, warp_threads};
    int kept = chunks <= 256 ? 1 : chunks <= 2048 ? 2 : chunks <= 4096 ? 4 : 0;
    int64_t threads = kept ? pc_divide_up(pc_divide_up(chunks, kept), 32) * 32 : 1024;
    return {false, 8, kept, static_cast<int>(threads)};
}

inline int64_t pc_row_blocks(const pc_row_setup &setup, int64_t rows) {
    return setup.by_warp ? pc_divide_up(rows, setup.threads / 32) : rows;
}

/* Calls what(by_warp, width, kept) with the setup's values as types. */
template <class F> auto pc_dispatch_rows(const pc_row_setup &setup, F &&what) {
    auto warp = std::true_type{};
    auto block = std::false_type{};
    auto zero = std::integral_constant<int, 0>{};
    auto one = std::integral_constant<int, 1>{};
    auto two = std::integral_constant<int, 2>{};
    auto four = std::integral_constant<int, 4>{};
    auto eight = std::integral_constant<int, 8>{};
    if (setup.width == 1) return setup.by_warp ? what(warp, one, zero) : what(block, one, zero);
    if (setup.by_warp)
        return setup.kept == 1   ? what(warp, eight, one)
               : setup.kept == 2 ? what(warp, eight, two)
                                 : what(warp, eight, four);
    return setup.kept == 1   ? what(block, eight, one)
           : setup.kept == 2 ? what(block, eight, two)
           : setup.kept == 4 ? what(block, eight, four)
                             : what(block, eight, zero);
}

/* ---- on the device ---- */

template <class T, int WIDTH> struct pc_chunk { T value[WIDTH]; };

template <int WIDTH, class T> __device__ inline pc_chunk<T, WIDTH> pc_load_chunk(const T *from) {
    pc_chunk<T, WIDTH> chunk;
    if constexpr (WIDTH == 1)
        chunk.value[0] = *from;
    else {
        static_assert(WIDTH * sizeof(T) == 16);
        pc_vector<T> vector = pc_load(from);
#pragma unroll
        for (int k = 0; k < WIDTH; k++) chunk.value[k] = vector.value[k];
    }
    return chunk;
}

template <int WIDTH, class T> __device__ inline void pc_store_chunk(T *to, const pc_chunk<T, WIDTH> &chunk) {
    if constexpr (WIDTH == 1)
        *to = chunk.value[0];
    else {
        static_assert(WIDTH * sizeof(T) == 16);
        pc_vector<T> vector;
#pragma unroll
        for (int k = 0; k < WIDTH; k++) vector.value[k] = chunk.value[k];
        pc_store(to, vector);
    }
}

/* Which row this thread works on, and its place among those who do. */
template <bool BY_WARP> struct pc_row_place {
    int64_t row;
    int thread, threads;
    __device__ pc_row_place()
        : row(BY_WARP ? static_cast<int64_t>(blockIdx.x) * pc_warps() + pc_thread() / 32 : blockIdx.x),
          thread(BY_WARP ? pc_thread() % 32 : pc_thread()), threads(BY_WARP ? 32 : pc_warps() * 32) {}
};

/* The chunks of a row that a thread has, each given to what(i, column, chunk): the i-th of the thread's. */
template <class T, int WIDTH, int KEPT> struct pc_row {
    const T *from;
    int chunks, first, step;
    pc_chunk<T, WIDTH> kept[KEPT > 0 ? KEPT : 1];

    __device__ pc_row(const T *row, int n, int thread, int threads)
        : from(row), chunks(n / WIDTH), first(thread), step(threads) {
#pragma unroll
        for (int i = 0; i < KEPT; i++)
            if (first + i * step < chunks) kept[i] = pc_load_chunk<WIDTH>(from + (first + i * step) * WIDTH);
    }

    template <class F> __device__ void each(F what) const {
        if constexpr (KEPT > 0) {
#pragma unroll
            for (int i = 0; i < KEPT; i++)
                if (first + i * step < chunks) what(i, (first + i * step) * WIDTH, kept[i]);
        } else {
            for (int c = first; c < chunks; c += step) what(0, c * WIDTH, pc_load_chunk<WIDTH>(from + c * WIDTH));
        }
    }
};

template <bool BY_WARP> __device__ inline float pc_row_sum(float value) {
    if constexpr (BY_WARP)
        return pc_warp_sum(value);
    else
        return pc_block_sum(value);
}
template <bool BY_WARP> __device__ inline float pc_row_max(float value) {
    if constexpr (BY_WARP)
        return pc_warp_max(value);
    else
        return pc_block_max(value);
}
template <bool BY_WARP> __device__ inline float2 pc_row_sum2(float2 value) {
    if constexpr (BY_WARP)
        return make_float2(pc_warp_sum(value.x), pc_warp_sum(value.y));
    else
        return pc_block_sum2(value);
}

#endif
