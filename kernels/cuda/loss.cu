/* loss.cu: cross entropy over whole rows of logits, forward and backward. A block a row; 16-byte accesses from the
 * first aligned element of a row on, so that rows of any length have them. */
#include "kernels/cuda/elementwise.cuh"

namespace {

constexpr int THREADS = 512; /* at most */
constexpr int UNDER_WAY = 4; /* vectors of a thread */

/* A row in three: elements up to the first aligned one, vectors, and the rest. */
struct row_span {
    int64_t head, vectors, rest; /* rest: where it begins */
};

__device__ inline row_span span_from(int64_t head, int64_t columns) {
    head = min(head, columns);
    int64_t vectors = (columns - head) / PC_EIGHT;
    return {head, vectors, head + vectors * PC_EIGHT};
}
template <class T> __device__ inline int64_t elements_to_aligned(const T *row) {
    return (int64_t)((16 - (reinterpret_cast<uintptr_t>(row) & 15)) & 15) / (int64_t)sizeof(T);
}

/* The sum of exp(x - most) over the x so far. */
struct exponentials {
    float most, sum;
};

/* What exponents are counted from: `most`, or 0 if all so far are -inf, of which the exponentials are 0. */
__device__ inline float base_of(float most) {
    return most == -INFINITY ? 0.0f : most;
}

__device__ inline void take(exponentials *of, const float *x, int count) {
    float most = of->most;
#pragma unroll
    for (int i = 0; i < count; i++) most = fmaxf(most, x[i]);
    float base = base_of(most);
    of->sum *= __expf(of->most - base);
#pragma unroll
    for (int i = 0; i < count; i++) of->sum += __expf(x[i] - base);
    of->most = most;
}

template <class T> __device__ inline void take_vector(exponentials *of, const pc_vector<T> &vector) {
    float x[PC_EIGHT];
#pragma unroll
    for (int i = 0; i < PC_EIGHT; i++) x[i] = pc_to_float(vector.value[i]);
    take(of, x, PC_EIGHT);
}

template <class T> __device__ inline exponentials take_row(const T *row, int64_t columns) {
    const int64_t thread = threadIdx.x, threads = blockDim.x;
    exponentials of = {-INFINITY, 0.0f};
    row_span span = span_from(elements_to_aligned(row), columns);
    for (int64_t start = thread; start < span.vectors; start += threads * UNDER_WAY) {
        pc_vector<T> held[UNDER_WAY];
#pragma unroll
        for (int u = 0; u < UNDER_WAY; u++)
            if (start + u * threads < span.vectors)
                held[u] = pc_load(row + span.head + (start + u * threads) * PC_EIGHT);
#pragma unroll
        for (int u = 0; u < UNDER_WAY; u++)
            if (start + u * threads < span.vectors) take_vector(&of, held[u]);
    }
    for (int64_t i = thread; i < span.head; i += threads) {
        float x = pc_to_float(row[i]);
        take(&of, &x, 1);
    }
    for (int64_t i = span.rest + thread; i < columns; i += threads) {
        float x = pc_to_float(row[i]);
        take(&of, &x, 1);
    }
    return of;
}

template <class T>
__global__ void __launch_bounds__(THREADS)
    cross_entropy_forward_row(const T *logits, const int32_t *target, float *loss, float *log_sum, int64_t columns) {
    int64_t number = blockIdx.x;
    const T *row = logits + number * columns;
    exponentials of = take_row(row, columns);
    float most = pc_block_max(of.most);
    float sum = pc_block_sum(of.sum * __expf(of.most - base_of(most)));
    if (threadIdx.x != 0) return;
    float whole = most + logf(sum);
    int32_t wanted = target[number];
    log_sum[number] = whole;
    loss[number] = wanted >= 0 && wanted < columns ? whole - pc_to_float(row[wanted]) : 0.0f;
}

/* What one row's gradient is made of. */
struct row_gradient {
    float log_sum, scale; /* scale: 1 / m, 0 of what is no token */
    int64_t wanted;

    template <class T> __device__ T of(T logit, int64_t column) const {
        float softmax = __expf(pc_to_float(logit) - log_sum);
        return pc_from_float<T>(scale == 0.0f ? 0.0f : (softmax - (column == wanted ? 1.0f : 0.0f)) * scale);
    }
};

template <class T>
__device__ inline void give_vectors(const row_gradient &made, const T *row, T *to, const row_span &span) {
    const int64_t threads = blockDim.x;
    for (int64_t start = threadIdx.x; start < span.vectors; start += threads * UNDER_WAY) {
        pc_vector<T> held[UNDER_WAY];
#pragma unroll
        for (int u = 0; u < UNDER_WAY; u++)
            if (start + u * threads < span.vectors)
                held[u] = pc_load(row + span.head + (start + u * threads) * PC_EIGHT);
#pragma unroll
        for (int u = 0; u < UNDER_WAY; u++) {
            if (start + u * threads >= span.vectors) continue;
            int64_t first = span.head + (start + u * threads) * PC_EIGHT;
#pragma unroll
            for (int i = 0; i < PC_EIGHT; i++) held[u].value[i] = made.of(held[u].value[i], first + i);
            pc_store(to + first, held[u]);
        }
    }
}

template <class T>
__global__ void __launch_bounds__(THREADS)
    cross_entropy_backward_row(const T *logits, const int32_t *target, const float *log_sum, T *logits_gradient,
                               int64_t columns, float scale) {
    int64_t number = blockIdx.x, thread = threadIdx.x, threads = blockDim.x;
    const T *row = logits + number * columns;
    T *to = logits_gradient + number * columns;
    int64_t wanted = target[number], head = elements_to_aligned(row);
    row_gradient made = {log_sum[number], wanted >= 0 && wanted < columns ? scale : 0.0f, wanted};
    if (elements_to_aligned(to) != head) head = columns; /* never aligned together */
    row_span span = span_from(head, columns);
    give_vectors(made, row, to, span);
    for (int64_t i = thread; i < span.head; i += threads) to[i] = made.of(row[i], i);
    for (int64_t i = span.rest + thread; i < columns; i += threads) to[i] = made.of(row[i], i);
}

/* Enough that each thread has its vectors under way at once, in whole warps. */
dim3 block_of(int64_t columns) {
    int64_t warps = pc_divide_up(columns, (int64_t)32 * PC_EIGHT * UNDER_WAY);
    return dim3((unsigned)(warps * 32 < THREADS ? warps * 32 : THREADS));
}

pc_code cross_entropy_forward(const pc_task &task) {
    const pc_kernel_shape *s = task.shape;
    return pc_dispatch(s->dtype, [&](auto zero) {
        using T = decltype(zero);
        return pc_run(task, PC_MAIN, "cross_entropy_forward_row", cross_entropy_forward_row<T>, dim3((unsigned)s->m),
                      block_of(s->n), 0, task.tensor<const T>(0), task.tensor<const int32_t>(1), task.tensor<float>(2),
                      task.tensor<float>(3), s->n);
    });
}

pc_code cross_entropy_backward(const pc_task &task) {
    const pc_kernel_shape *s = task.shape;
    return pc_dispatch(s->dtype, [&](auto zero) {
        using T = decltype(zero);
        return pc_run(task, PC_MAIN, "cross_entropy_backward_row", cross_entropy_backward_row<T>, dim3((unsigned)s->m),
                      block_of(s->n), 0, task.tensor<const T>(0), task.tensor<const int32_t>(1),
                      task.tensor<const float>(2), task.tensor<T>(3), s->n, (float)(1.0 / (double)s->m));
    });
}

} // namespace

PC_MEMORY_FAMILY(cross_entropy_forward, PC_KERNEL_ELEMENTWISE, PC_KERNEL_FORWARD);
PC_MEMORY_FAMILY(cross_entropy_backward, PC_KERNEL_ELEMENTWISE, PC_KERNEL_INPUT_GRADIENT);
