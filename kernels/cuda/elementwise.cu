/* elementwise.cu: sums of two tensors, copies (the yardstick of all that is bound by memory), sums of columns. */
#include "kernels/cuda/elementwise.cuh"

namespace {

template <class T> struct add_op {
    static constexpr int unroll = 2;
    const T *first, *second;
    T *output;

    struct held {
        pc_vector<T> first, second;
    };
    __device__ held load(int64_t v) const { return {pc_load(first + v * PC_EIGHT), pc_load(second + v * PC_EIGHT)}; }
    __device__ void store(int64_t v, const held &of) const {
        pc_vector<T> result;
#pragma unroll
        for (int i = 0; i < PC_EIGHT; i++)
            result.value[i] = pc_from_float<T>(pc_to_float(of.first.value[i]) + pc_to_float(of.second.value[i]));
        pc_store(output + v * PC_EIGHT, result);
    }
    __device__ void single(int64_t e) const {
        output[e] = pc_from_float<T>(pc_to_float(first[e]) + pc_to_float(second[e]));
    }
};

pc_code add(const pc_task &task) {
    const pc_kernel_shape *s = task.shape;
    return pc_dispatch(s->dtype, [&](auto zero) {
        using T = decltype(zero);
        add_op<T> op = {task.tensor<const T>(0), task.tensor<const T>(1), task.tensor<T>(2)};
        return pc_run_flat(task, PC_MAIN, "add", op, s->m * s->n, pc_all_aligned(op.first, op.second, op.output));
    });
}

template <class T> struct copy_op {
    static constexpr int unroll = 4;
    const T *input;
    T *output;

    struct held {
        pc_vector<T> input;
    };
    __device__ held load(int64_t v) const { return {pc_load(input + v * PC_EIGHT)}; }
    __device__ void store(int64_t v, const held &of) const { pc_store(output + v * PC_EIGHT, of.input); }
    __device__ void single(int64_t e) const { output[e] = input[e]; }
};

pc_code copy(const pc_task &task) {
    const pc_kernel_shape *s = task.shape;
    return pc_dispatch(s->dtype, [&](auto zero) {
        using T = decltype(zero);
        copy_op<T> op = {task.tensor<const T>(0), task.tensor<T>(1)};
        return pc_run_flat(task, PC_MAIN, "copy", op, s->m * s->n, pc_all_aligned(op.input, op.output));
    });
}

/* ---- sums of columns, in two stages and always in the same order ---- */

constexpr int LANES = 32, WARPS = 8;
constexpr int UNDER_WAY = 4; /* rows */

/* `WIDTH` neighbouring elements of a row: 8 as one access, or 1. */
template <class T, int WIDTH> struct piece { T value[WIDTH]; };
template <class T, int WIDTH> __device__ inline piece<T, WIDTH> load_piece(const T *from) {
    piece<T, WIDTH> found;
    if constexpr (WIDTH == PC_EIGHT) {
        pc_vector<T> vector = pc_load(from);
#pragma unroll
        for (int i = 0; i < WIDTH; i++) found.value[i] = vector.value[i];
    } else {
        found.value[0] = from[0];
    }
    return found;
}

/* A thread's sums of the rows first, first + WARPS, ... below `end`. */
template <class T, int WIDTH>
__device__ inline void sum_rows(const T *column, int64_t columns, int64_t first, int64_t end, float *sum) {
    for (int64_t row = first; row < end; row += WARPS * UNDER_WAY) {
        piece<T, WIDTH> held[UNDER_WAY] = {};
#pragma unroll
        for (int u = 0; u < UNDER_WAY; u++)
            if (row + u * WARPS < end) held[u] = load_piece<T, WIDTH>(column + (row + u * WARPS) * columns);
#pragma unroll
        for (int u = 0; u < UNDER_WAY; u++)
#pragma unroll
            for (int i = 0; i < WIDTH; i++) sum[i] += pc_to_float(held[u].value[i]);
    }
}

/* One block sums a part of the rows (blockIdx.y) of LANES * WIDTH columns (blockIdx.x), a warp every eighth row. */
template <class T, int WIDTH>
__global__ void __launch_bounds__(LANES *WARPS)
    bias_gradient_parts(const T *gradient, float *partial, int64_t rows, int64_t columns) {
    __shared__ float of_warp[WARPS][LANES * WIDTH];
    int lane = (int)threadIdx.x % LANES, warp = (int)threadIdx.x / LANES;
    int64_t chunk = (rows + gridDim.y - 1) / gridDim.y, start = blockIdx.y * chunk, end = min(start + chunk, rows);
    int64_t block_column = (int64_t)blockIdx.x * (LANES * WIDTH), column = block_column + lane * WIDTH;
    float sum[WIDTH] = {};
    if (column < columns) sum_rows<T, WIDTH>(gradient + column, columns, start + warp, end, sum);
#pragma unroll
    for (int i = 0; i < WIDTH; i++) of_warp[warp][lane * WIDTH + i] = sum[i];
    __syncthreads();
    for (int i = (int)threadIdx.x; i < LANES * WIDTH; i += LANES * WARPS) {
        if (block_column + i >= columns) break;
        float whole = 0.0f;
#pragma unroll
        for (int w = 0; w < WARPS; w++) whole += of_warp[w][i];
        partial[(int64_t)blockIdx.y * columns + block_column + i] = whole;
    }
}

/* Adds up the parts of LANES columns, and that to what stands there. */
__global__ void __launch_bounds__(LANES *WARPS)
    bias_gradient_whole(const float *partial, float *bias_gradient, int parts, int64_t columns) {
    __shared__ float of_warp[WARPS][LANES];
    int lane = (int)threadIdx.x % LANES, warp = (int)threadIdx.x / LANES;
    int64_t column = (int64_t)blockIdx.x * LANES + lane;
    float sum = 0.0f;
    if (column < columns)
        for (int part = warp; part < parts; part += WARPS) sum += partial[part * columns + column];
    of_warp[warp][lane] = sum;
    __syncthreads();
    if (warp > 0 || column >= columns) return;
    sum = 0.0f;
#pragma unroll
    for (int w = 0; w < WARPS; w++) sum += of_warp[w][lane];
    bias_gradient[column] += sum;
}

pc_code bias_gradient(const pc_task &task) {
    const pc_kernel_shape *s = task.shape;
    int64_t parts = pc_bias_gradient_parts(s);
    const dim3 block(LANES * WARPS);
    float *partial = task.tensor<float>(2);
    pc_code code = pc_dispatch(s->dtype, [&](auto zero) {
        using T = decltype(zero);
        const T *gradient = task.tensor<const T>(0);
        bool is_wide = pc_is_aligned(gradient) && s->n % PC_EIGHT == 0;
        dim3 grid((unsigned)pc_divide_up(s->n, LANES * (is_wide ? PC_EIGHT : 1)), (unsigned)parts);
        auto kernel = is_wide ? bias_gradient_parts<T, PC_EIGHT> : bias_gradient_parts<T, 1>;
        return pc_run(task, PC_MAIN, "bias_gradient_parts", kernel, grid, block, 0, gradient, partial, s->m, s->n);
    });
    if (code) return code;
    dim3 grid((unsigned)pc_divide_up(s->n, LANES));
    return pc_run(task, PC_BESIDE, "bias_gradient_whole", bias_gradient_whole, grid, block, 0, partial,
                  task.tensor<float>(1), (int)parts, s->n);
}

} // namespace

PC_MEMORY_FAMILY(add, PC_KERNEL_ELEMENTWISE, PC_KERNEL_FORWARD);
PC_MEMORY_FAMILY(copy, PC_KERNEL_ELEMENTWISE, PC_KERNEL_FORWARD);
PC_MEMORY_FAMILY(bias_gradient, PC_KERNEL_ELEMENTWISE, PC_KERNEL_INPUT_GRADIENT);
