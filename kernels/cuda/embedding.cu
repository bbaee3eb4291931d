/* embedding.cu: rows of a table, and the sums of gradients of equal rows.
 *
 * Backward has to add in the same order every time, however many tokens are equal. So tokens are sorted by row and,
 * within a row, by place; then one block a row of the table adds its tokens up, one after the other. The sort: tiles
 * within blocks, then every key's rank is its places in all tiles added up. Reading and adding m x n numbers is far
 * more work.
 */
#include "kernels/cuda/elementwise.cuh"

namespace {

/* ---- forward ---- */

template <class T> struct embedding_forward_op {
    static constexpr int unroll = 2;
    const T *table, *positions; /* no positions: NULL */
    const int32_t *token;
    T *output;
    int64_t rows, columns, sequence; /* rows of the table; tokens of a sequence */

    struct held {
        pc_vector<T> row, position;
    };
    /* The table's row of a token, NULL if it has none. */
    __device__ const T *row_of(int64_t at) const {
        int32_t number = token[at];
        return number >= 0 && number < rows ? table + number * columns : nullptr;
    }
    __device__ held load(int64_t v) const {
        pc_place at = pc_place_of(v, columns / PC_EIGHT);
        held found{};
        if (const T *row = row_of(at.row)) found.row = pc_load(row + at.column * PC_EIGHT);
        if (positions) found.position = pc_load(positions + at.row % sequence * columns + at.column * PC_EIGHT);
        return found;
    }
    __device__ void store(int64_t v, const held &of) const {
        pc_vector<T> result = of.row;
        if (positions)
#pragma unroll
            for (int i = 0; i < PC_EIGHT; i++)
                result.value[i] = pc_from_float<T>(pc_to_float(of.row.value[i]) + pc_to_float(of.position.value[i]));
        pc_store(output + v * PC_EIGHT, result);
    }
    __device__ void single(int64_t e) const {
        pc_place at = pc_place_of(e, columns);
        const T *row = row_of(at.row);
        float x = row ? pc_to_float(row[at.column]) : 0.0f;
        if (positions) x += pc_to_float(positions[at.row % sequence * columns + at.column]);
        output[e] = pc_from_float<T>(x);
    }
};

pc_code embedding_forward(const pc_task &task) {
    const pc_kernel_shape *s = task.shape;
    return pc_dispatch(s->dtype, [&](auto zero) {
        using T = decltype(zero);
        embedding_forward_op<T> op = {};
        bool has_positions = task.has_bias();
        op.table = task.tensor<const T>(0);
        op.token = task.tensor<const int32_t>(1);
        if (has_positions) op.positions = task.tensor<const T>(2);
        op.output = task.tensor<T>(has_positions ? 3 : 2);
        op.rows = s->k;
        op.columns = s->n;
        op.sequence = has_positions ? s->m / s->batch : s->m;
        bool is_wide = pc_all_aligned(op.table, op.positions, op.output) && s->n % PC_EIGHT == 0;
        return pc_run_flat(task, PC_MAIN, "embedding_forward", op, s->m * s->n, is_wide);
    });
}

/* ---- backward: tokens in the order of their rows ---- */

constexpr int TILE = 1024, SORT_THREADS = TILE / 2;

/* Row and place of a token; all differ. What is no row of the table comes last, as a number of no sign is large. */
__device__ inline uint64_t key_of(int32_t token, int64_t place) {
    return (uint64_t)(uint32_t)token << 32 | (uint32_t)place;
}
__device__ inline int64_t row_in(uint64_t key) {
    return (int64_t)(key >> 32);
}
__device__ inline int64_t place_in(uint64_t key) {
    return (int64_t)(uint32_t)key;
}

/* Sorts tiles of keys, each within a block (Batcher's bitonic sort: a thread compares one pair a step). */
__global__ void __launch_bounds__(SORT_THREADS) embedding_sort_tiles(const int32_t *token, uint64_t *tiles, int64_t m) {
    __shared__ uint64_t key[TILE];
    int64_t start = (int64_t)blockIdx.x * TILE;
    for (int i = (int)threadIdx.x; i < TILE; i += SORT_THREADS)
        key[i] = start + i < m ? key_of(token[start + i], start + i) : UINT64_MAX;
    for (int size = 2; size <= TILE; size *= 2) {
        for (int distance = size / 2; distance > 0; distance /= 2) {
            __syncthreads();
            int i = 2 * (int)threadIdx.x - ((int)threadIdx.x & (distance - 1)), j = i + distance;
            bool is_rising = (i & size) == 0;
            uint64_t a = key[i], b = key[j];
            if ((a > b) == is_rising) {
                key[i] = b;
                key[j] = a;
            }
        }
    }
    __syncthreads();
    for (int i = (int)threadIdx.x; i < TILE; i += SORT_THREADS)
        if (start + i < m) tiles[start + i] = key[i];
}

/* How many of the tile's keys are smaller. */
__device__ inline int64_t count_below(const uint64_t *tile, int64_t count, uint64_t key) {
    int64_t low = 0, high = count;
    while (low < high) {
        int64_t middle = (low + high) / 2;
        if (tile[middle] < key)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

__global__ void __launch_bounds__(PC_FLAT_THREADS)
    embedding_merge_tiles(const uint64_t *tiles, uint64_t *order, int64_t m) {
    int64_t mine = (int64_t)blockIdx.x * PC_FLAT_THREADS + threadIdx.x, rank = 0;
    if (mine >= m) return;
    uint64_t key = tiles[mine];
    for (int64_t start = 0; start < m; start += TILE)
        rank += count_below(tiles + start, min(m - start, (int64_t)TILE), key);
    order[rank] = key;
}

/* ---- backward: sums ---- */

constexpr int SUM_THREADS = 128; /* at most */
constexpr int UNDER_WAY = 4;     /* tokens */

/* 8 columns as one access, or 1. */
template <class T, int WIDTH> __device__ inline void load_piece(const T *from, pc_vector<T> *piece) {
    if constexpr (WIDTH == PC_EIGHT)
        *piece = pc_load(from);
    else
        piece->value[0] = from[0];
}

/* to[0] to to[WIDTH - 1] += sum */
template <int WIDTH> __device__ inline void add_to(float *to, const float *sum) {
    if constexpr (WIDTH == PC_EIGHT) {
#pragma unroll
        for (int half = 0; half < 2; half++) {
            pc_vector<float> x = pc_load((const float *)to + half * 4);
#pragma unroll
            for (int i = 0; i < 4; i++) x.value[i] += sum[half * 4 + i];
            pc_store(to + half * 4, x);
        }
    } else {
        to[0] += sum[0];
    }
}

/* The sums of some columns of the tokens from order[first] on that are of one row, one after the other. */
template <class T, int WIDTH>
__device__ inline void sum_tokens(const T *columns_of, const uint64_t *order, int64_t first, int64_t m, int64_t columns,
                                  float *sum) {
    int64_t row = row_in(order[first]);
    bool is_mine = true;
    for (int64_t i = first; is_mine; i += UNDER_WAY) {
        pc_vector<T> piece[UNDER_WAY] = {};
#pragma unroll
        for (int u = 0; u < UNDER_WAY; u++) {
            is_mine = is_mine && i + u < m && row_in(order[i + u]) == row;
            if (is_mine) load_piece<T, WIDTH>(columns_of + place_in(order[i + u]) * columns, &piece[u]);
        }
#pragma unroll
        for (int u = 0; u < UNDER_WAY; u++)
#pragma unroll
            for (int c = 0; c < WIDTH; c++) sum[c] += pc_to_float(piece[u].value[c]);
    }
}

/* One block a token in order (blockIdx.x), WIDTH columns a thread: the first token of a row adds up all of them. */
template <class T, int WIDTH>
__global__ void __launch_bounds__(SUM_THREADS)
    embedding_sum_rows(const T *gradient, const uint64_t *order, float *table_gradient, int64_t m, int64_t columns,
                       int64_t rows) {
    int64_t first = blockIdx.x, row = row_in(order[first]);
    if (row >= rows || (first > 0 && row_in(order[first - 1]) == row)) return;
    int64_t column = ((int64_t)blockIdx.y * blockDim.x + threadIdx.x) * WIDTH;
    int64_t step = (int64_t)gridDim.y * blockDim.x * WIDTH;
    for (; column < columns; column += step) {
        float sum[WIDTH] = {};
        sum_tokens<T, WIDTH>(gradient + column, order, first, m, columns, sum);
        add_to<WIDTH>(table_gradient + row * columns + column, sum);
    }
}

/* The gradient of a position is the sum over the sequences. */
template <class T> struct position_gradient_op {
    static constexpr int unroll = 1;
    const T *gradient;
    float *position_gradient;
    int64_t sequences, elements; /* elements of one sequence */

    struct held {
        float sum[PC_EIGHT];
    };
    __device__ held load(int64_t v) const {
        held found = {};
        for (int64_t sequence = 0; sequence < sequences; sequence++) {
            pc_vector<T> x = pc_load(gradient + sequence * elements + v * PC_EIGHT);
#pragma unroll
            for (int i = 0; i < PC_EIGHT; i++) found.sum[i] += pc_to_float(x.value[i]);
        }
        return found;
    }
    __device__ void store(int64_t v, const held &of) const {
        add_to<PC_EIGHT>(position_gradient + v * PC_EIGHT, of.sum);
    }
    __device__ void single(int64_t e) const {
        float sum = 0.0f;
        for (int64_t sequence = 0; sequence < sequences; sequence++)
            sum += pc_to_float(gradient[sequence * elements + e]);
        position_gradient[e] += sum;
    }
};

pc_code sort_tokens(const pc_task &task, uint64_t *tiles, uint64_t *order) {
    int64_t m = task.shape->m;
    pc_code code =
        pc_run(task, PC_BESIDE, "embedding_sort_tiles", embedding_sort_tiles, dim3((unsigned)pc_divide_up(m, TILE)),
               SORT_THREADS, 0, task.tensor<const int32_t>(1), tiles, m);
    if (code) return code;
    return pc_run(task, PC_BESIDE, "embedding_merge_tiles", embedding_merge_tiles,
                  dim3((unsigned)pc_divide_up(m, PC_FLAT_THREADS)), PC_FLAT_THREADS, 0, (const uint64_t *)tiles, order,
                  m);
}

template <class T> pc_code sum_rows(const pc_task &task, const uint64_t *order) {
    const pc_kernel_shape *s = task.shape;
    const T *gradient = task.tensor<const T>(0);
    float *table_gradient = task.tensor<float>(2);
    bool is_wide = pc_all_aligned(gradient, table_gradient) && s->n % PC_EIGHT == 0;
    int64_t pieces = is_wide ? s->n / PC_EIGHT : s->n, threads = pc_divide_up(pieces, 32) * 32;
    if (threads > SUM_THREADS) threads = SUM_THREADS;
    int64_t blocks = pc_divide_up(pieces, threads), most = 65535; /* as many as a grid can have */
    dim3 grid((unsigned)s->m, (unsigned)(blocks < most ? blocks : most));
    auto kernel = is_wide ? embedding_sum_rows<T, PC_EIGHT> : embedding_sum_rows<T, 1>;
    return pc_run(task, PC_MAIN, "embedding_sum_rows", kernel, grid, dim3((unsigned)threads), 0, gradient, order,
                  table_gradient, s->m, s->n, s->k);
}

template <class T> pc_code sum_positions(const pc_task &task) {
    const pc_kernel_shape *s = task.shape;
    position_gradient_op<T> op = {task.tensor<const T>(0), task.tensor<float>(3), s->batch, s->m / s->batch * s->n};
    bool is_wide = pc_all_aligned(op.gradient, op.position_gradient) && op.elements % PC_EIGHT == 0;
    return pc_run_flat(task, PC_BESIDE, "embedding_sum_positions", op, op.elements, is_wide);
}

pc_code embedding_backward(const pc_task &task) {
    const pc_kernel_shape *s = task.shape;
    uint64_t *tiles = task.tensor<uint64_t>(task.has_bias() ? 4 : 3), *order = tiles ? tiles + s->m : nullptr;
    pc_code code = sort_tokens(task, tiles, order);
    if (code) return code;
    return pc_dispatch(s->dtype, [&](auto zero) {
        using T = decltype(zero);
        pc_code summed = sum_rows<T>(task, order);
        if (summed || !task.has_bias()) return summed;
        return sum_positions<T>(task);
    });
}

} // namespace

PC_MEMORY_FAMILY(embedding_forward, PC_KERNEL_ELEMENTWISE, PC_KERNEL_FORWARD);
PC_MEMORY_FAMILY(embedding_backward, PC_KERNEL_ELEMENTWISE, PC_KERNEL_INPUT_GRADIENT);
