/* norm_backward.cu: the gradients of layer norm and RMS norm (norm.h has the formulas).
 *
 * With g = dy gamma and h = (x - mean) rstd: dx = rstd (g - mean of g - h mean of g h), dgamma = sum of dy h over rows,
 * dbeta = sum of dy. The sums over rows go in two stages, in a fixed order: each block sums the rows it has, in
 * registers, beside their dx; a second kernel adds up the blocks. Rows that do not fit into registers, and ragged ones,
 * take a third kernel, which reads dy and x once more, by columns.
 */
#include "kernels/norm.h"

#include "kernels/cuda/row.cuh"
#include "kernels/families.h"

#include <algorithm>

namespace {

/* Pointers of both norms: mean, dbeta and the second half of `scratch` are layer norm's only. */
template <class T> struct gradients {
    const T *dy, *x, *gamma;
    const float *mean, *rstd;
    T *dx;
    float *dgamma, *dbeta;
    float *scratch; /* [1 or 2][parts][n] */
    int64_t rows;
    int n;
};

} // namespace

/* ---- dx of one row ---- */

/* sum of g, sum of g h, of what a thread has */
template <int WIDTH, class T>
__device__ inline void add_products(const pc_chunk<T, WIDTH> &dy, const pc_chunk<T, WIDTH> &x,
                                    const pc_chunk<T, WIDTH> &gamma, float mean, float rstd, float2 *sums) {
#pragma unroll
    for (int k = 0; k < WIDTH; k++) {
        float g = pc_to_float(dy.value[k]) * pc_to_float(gamma.value[k]);
        sums->x += g;
        sums->y += g * ((pc_to_float(x.value[k]) - mean) * rstd);
    }
}

template <int WIDTH, class T>
__device__ inline pc_chunk<T, WIDTH> make_dx(const pc_chunk<T, WIDTH> &dy, const pc_chunk<T, WIDTH> &x,
                                             const pc_chunk<T, WIDTH> &gamma, float mean, float rstd, float2 means) {
    pc_chunk<T, WIDTH> dx;
#pragma unroll
    for (int k = 0; k < WIDTH; k++) {
        float g = pc_to_float(dy.value[k]) * pc_to_float(gamma.value[k]);
        float h = (pc_to_float(x.value[k]) - mean) * rstd;
        dx.value[k] = pc_from_float<T>(rstd * (g - means.x - h * means.y));
    }
    return dx;
}

/* ---- all in one: rows in registers ---- */

template <class T, int KEPT> struct row_pair { pc_chunk<T, 8> dy[KEPT], x[KEPT]; };

template <class T, int KEPT>
__device__ inline void load_pair(const gradients<T> &all, int64_t row, int first, int step, row_pair<T, KEPT> *pair) {
#pragma unroll
    for (int i = 0; i < KEPT; i++) {
        int column = (first + i * step) * 8;
        if (column >= all.n) continue;
        pair->dy[i] = pc_load_chunk<8>(all.dy + row * all.n + column);
        pair->x[i] = pc_load_chunk<8>(all.x + row * all.n + column);
    }
}

/* A thread's sums over its rows: in registers, or where there are too few, in shared memory, where the threads' stand
 * side by side. */
template <int KEPT, bool IN_SHARED> struct row_sums {
    float kept[IN_SHARED ? 1 : KEPT][IN_SHARED ? 1 : 8];
    float *shared; /* [KEPT][8][threads], from this thread on */
    int threads;

    __device__ row_sums(float *from, int thread, int threads_of_block)
        : kept{}, shared(from + thread), threads(threads_of_block) {
        for (int i = 0; IN_SHARED && i < KEPT * 8; i++) shared[i * threads] = 0;
    }
    __device__ float &at(int i, int k) {
        if constexpr (IN_SHARED)
            return shared[(i * 8 + k) * threads];
        else
            return kept[i][k];
    }
};

/* Before a second use of what is held as 16 bits: otherwise the compiler keeps it as floats, in twice the registers. */
template <class T> __device__ inline void convert_anew(pc_chunk<T, 8> *chunk) {
#ifndef PC_EMULATED
    uint4 bits;
    memcpy(&bits, chunk, sizeof bits);
    asm volatile("" : "+r"(bits.x), "+r"(bits.y), "+r"(bits.z), "+r"(bits.w));
    memcpy(chunk, &bits, sizeof bits);
#else
    (void)chunk;
#endif
}

template <bool IS_RMS, bool BY_WARP, int KEPT, class T, class GAMMA, class BETA>
__device__ inline void finish_pair(const gradients<T> &all, int64_t row, int first, int step, row_pair<T, KEPT> *pair,
                                   GAMMA *by_gamma, BETA *by_beta) {
    float mean = IS_RMS ? 0.0f : all.mean[row], rstd = all.rstd[row];
    float2 sums = make_float2(0.0f, 0.0f);
#pragma unroll
    for (int i = 0; i < KEPT; i++) {
        int column = (first + i * step) * 8;
        if (column < all.n)
            add_products(pair->dy[i], pair->x[i], pc_load_chunk<8>(all.gamma + column), mean, rstd, &sums);
    }
    sums = pc_row_sum2<BY_WARP>(sums);
    float2 means = make_float2(IS_RMS ? 0.0f : sums.x / static_cast<float>(all.n), sums.y / static_cast<float>(all.n));
#pragma unroll
    for (int i = 0; i < KEPT; i++) {
        int column = (first + i * step) * 8;
        if (column >= all.n) continue;
        convert_anew(&pair->dy[i]);
        convert_anew(&pair->x[i]);
        pc_chunk<T, 8> gamma = pc_load_chunk<8>(all.gamma + column);
        pc_store_chunk(all.dx + row * all.n + column, make_dx(pair->dy[i], pair->x[i], gamma, mean, rstd, means));
#pragma unroll
        for (int k = 0; k < 8; k++) {
            float dy = pc_to_float(pair->dy[i].value[k]);
            by_gamma->at(i, k) += dy * ((pc_to_float(pair->x[i].value[k]) - mean) * rstd);
            if (!IS_RMS) by_beta->at(i, k) += dy;
        }
    }
}

/* What the warps of a block have each summed, into one: one warp after the other. */
template <int KEPT, class SUMS> __device__ inline void add_warps(float *all, int n, int warp, int lane, SUMS *mine) {
    for (int turn = 0; turn < pc_warps(); turn++) {
        __syncthreads();
        if (warp != turn) continue;
#pragma unroll
        for (int i = 0; i < KEPT; i++) {
            int column = (lane + i * 32) * 8;
#pragma unroll
            for (int k = 0; k < 8; k++)
                if (column < n) all[column + k] = turn == 0 ? mine->at(i, k) : all[column + k] + mine->at(i, k);
        }
    }
    __syncthreads();
}

template <bool BY_WARP, int KEPT, class SUMS>
__device__ inline void write_part(float *part, float *shared, int n, int first, int step, SUMS *mine) {
    if constexpr (BY_WARP) {
        add_warps<KEPT>(shared, n, pc_thread() / 32, first, mine);
        for (int column = pc_thread(); column < n; column += pc_warps() * 32) part[column] = shared[column];
        __syncthreads(); /* before it is used again */
    } else {
#pragma unroll
        for (int i = 0; i < KEPT; i++) {
            int column = (first + i * step) * 8;
#pragma unroll
            for (int k = 0; k < 8; k++)
                if (column < n) part[column + k] = mine->at(i, k);
        }
    }
}

/* Blocks, or warps of blocks, take rows by turns. With AHEAD the next row is on its way while one is worked on. Shared
 * memory: by warp [n]; of sums that are held there [1 or 2][KEPT * 8][threads]. */
template <class T, bool IS_RMS, bool BY_WARP, int KEPT, bool AHEAD, bool IN_SHARED, int THREADS>
__global__ void __launch_bounds__(THREADS) norm_backward(gradients<T> all) {
    PC_SHARED(float, shared);
    pc_row_place<BY_WARP> at;
    int64_t step = static_cast<int64_t>(gridDim.x) * (BY_WARP ? pc_warps() : 1);
    row_sums<KEPT, IN_SHARED> by_gamma(shared, pc_thread(), at.threads);
    row_sums<KEPT, IN_SHARED && !IS_RMS> by_beta(shared + KEPT * 8 * at.threads, pc_thread(), at.threads);
    row_pair<T, KEPT> now, next;
    if (AHEAD && at.row < all.rows) load_pair(all, at.row, at.thread, at.threads, &now);
    for (int64_t row = at.row; row < all.rows; row += step) {
        if (!AHEAD)
            load_pair(all, row, at.thread, at.threads, &now);
        else if (row + step < all.rows)
            load_pair(all, row + step, at.thread, at.threads, &next);
        finish_pair<IS_RMS, BY_WARP>(all, row, at.thread, at.threads, &now, &by_gamma, &by_beta);
        if (AHEAD) now = next;
    }
    int64_t part = static_cast<int64_t>(blockIdx.x) * all.n, behind = static_cast<int64_t>(gridDim.x) * all.n;
    write_part<BY_WARP, KEPT>(all.scratch + part, shared, all.n, at.thread, at.threads, &by_gamma);
    if (!IS_RMS) write_part<BY_WARP, KEPT>(all.scratch + behind + part, shared, all.n, at.thread, at.threads, &by_beta);
}

/* ---- any shape: dx by rows, then sums by columns ---- */

template <class T, bool IS_RMS, int WIDTH>
__global__ void __launch_bounds__(1024) norm_backward_rows(gradients<T> all) {
    int64_t row = blockIdx.x, begin = row * all.n;
    float mean = IS_RMS ? 0.0f : all.mean[row], rstd = all.rstd[row];
    const pc_row<T, WIDTH, 0> dy(all.dy + begin, all.n, pc_thread(), pc_warps() * 32);
    float2 sums = make_float2(0.0f, 0.0f);
    dy.each([&](int, int column, const pc_chunk<T, WIDTH> &chunk) {
        add_products(chunk, pc_load_chunk<WIDTH>(all.x + begin + column), pc_load_chunk<WIDTH>(all.gamma + column),
                     mean, rstd, &sums);
    });
    sums = pc_block_sum2(sums);
    float2 means = make_float2(IS_RMS ? 0.0f : sums.x / static_cast<float>(all.n), sums.y / static_cast<float>(all.n));
    dy.each([&](int, int column, const pc_chunk<T, WIDTH> &chunk) {
        pc_chunk<T, WIDTH> x = pc_load_chunk<WIDTH>(all.x + begin + column);
        pc_chunk<T, WIDTH> gamma = pc_load_chunk<WIDTH>(all.gamma + column);
        pc_store_chunk(all.dx + begin + column, make_dx(chunk, x, gamma, mean, rstd, means));
    });
}

constexpr int COLUMNS = 32, GROUPS = 8; /* of a block: a warp a row, and so eight rows at a time */

/* The sums of a block's columns over every gridDim.y-th row. */
template <class T, bool IS_RMS>
__global__ void __launch_bounds__(COLUMNS *GROUPS) norm_backward_columns(gradients<T> all) {
    __shared__ float2 sums[GROUPS][COLUMNS];
    int lane = pc_thread() % COLUMNS, group = pc_thread() / COLUMNS;
    int column = static_cast<int>(blockIdx.x) * COLUMNS + lane;
    float2 sum = make_float2(0.0f, 0.0f);
    int64_t first = static_cast<int64_t>(blockIdx.y) * GROUPS + group;
    for (int64_t row = first; column < all.n && row < all.rows; row += static_cast<int64_t>(gridDim.y) * GROUPS) {
        float dy = pc_to_float(all.dy[row * all.n + column]), x = pc_to_float(all.x[row * all.n + column]);
        sum.x += dy * ((x - (IS_RMS ? 0.0f : all.mean[row])) * all.rstd[row]);
        sum.y += dy;
    }
    sums[group][lane] = sum;
    __syncthreads();
    if (group != 0 || column >= all.n) return;
    for (int i = 1; i < GROUPS; i++) sum = make_float2(sum.x + sums[i][lane].x, sum.y + sums[i][lane].y);
    int64_t part = static_cast<int64_t>(blockIdx.y) * all.n, behind = static_cast<int64_t>(gridDim.y) * all.n;
    all.scratch[part + column] = sum.x;
    if (!IS_RMS) all.scratch[behind + part + column] = sum.y;
}

/* ---- the last stage ---- */

constexpr int FINISH_GROUPS = 16;

/* Adds up the parts; blockIdx.y: gamma, beta. */
static __global__ void __launch_bounds__(COLUMNS *FINISH_GROUPS)
    norm_backward_finish(const float *scratch, int parts, int n, float *dgamma, float *dbeta) {
    __shared__ float sums[FINISH_GROUPS][COLUMNS];
    int lane = pc_thread() % COLUMNS, group = pc_thread() / COLUMNS;
    int column = static_cast<int>(blockIdx.x) * COLUMNS + lane;
    const float *from = scratch + static_cast<int64_t>(blockIdx.y) * parts * n;
    float *to = blockIdx.y == 0 ? dgamma : dbeta;
    float sum = 0;
    for (int part = group; column < n && part < parts; part += FINISH_GROUPS)
        sum += from[static_cast<int64_t>(part) * n + column];
    sums[group][lane] = sum;
    __syncthreads();
    if (group != 0 || column >= n) return;
    for (int i = 1; i < FINISH_GROUPS; i++) sum += sums[i][lane];
    to[column] += sum;
}

/* ---- how a shape is run ---- */

namespace {

struct setup {
    bool is_fused, by_warp, in_shared;
    int width, kept, threads, shared_bytes;
    int64_t parts; /* blocks of norm_backward, or groups of rows of norm_backward_columns */
};

/* Fused up to n = 16,384: 8 warps of a row each up to 1,024 columns, a block a row beyond. As many blocks as fit at
 * once, of 128 registers a thread: each ends with a part that is written and read again. */
setup make_setup(const pc_device *device, const pc_kernel_shape *shape, bool is_rms, bool is_aligned) {
    int64_t m = shape->m, n = shape->n, chunks = n / 8, processors = pc_device_about(device)->processors;
    setup p = {};
    p.width = n % 8 == 0 && is_aligned ? 8 : 1;
    /* Sums in shared memory, beside what sums of a block take; some GPUs have less than 100 KiB of it. */
    int64_t sums = chunks <= 1024 ? 0 : (is_rms ? 1 : 2) * 4 * pc_divide_up(chunks, 4 * 32) * 32 * 8 * 4;
    p.is_fused = p.width == 8 && chunks <= 2048 && sums + 1024 <= pc_device_about(device)->shared_bytes;
    p.by_warp = p.is_fused && chunks <= 128;
    if (!p.is_fused) {
        int64_t columns = pc_divide_up(n, COLUMNS), wanted = pc_divide_up(8 * processors, columns);
        int64_t warps = pc_divide_up(pc_divide_up(n / p.width, 4), 32);
        p.threads = static_cast<int>(32 * std::min<int64_t>(warps, 32));
        p.parts = std::min({wanted, pc_divide_up(m, GROUPS), static_cast<int64_t>(PC_NORM_PARTS)});
        return p;
    }
    p.in_shared = chunks > 1024;
    p.kept = p.in_shared ? 4 : !p.by_warp ? 2 : chunks <= 32 ? 1 : chunks <= 64 ? 2 : 4;
    p.threads = p.by_warp ? 256 : static_cast<int>(pc_divide_up(pc_divide_up(chunks, p.kept), 32) * 32);
    if (p.by_warp) p.shared_bytes = static_cast<int>(n * 4);
    if (p.in_shared) p.shared_bytes = (is_rms ? 1 : 2) * p.kept * 8 * p.threads * 4;
    int64_t at_once = processors * std::max(1, (p.kept == 4 ? 256 : 512) / p.threads);
    p.parts = std::min({at_once, p.by_warp ? pc_divide_up(m, 8) : m, static_cast<int64_t>(PC_NORM_PARTS)});
    return p;
}

/* Calls what(kernel) with the fused kernel of the setup. */
template <class T, bool IS_RMS, class F> void with_fused(const setup &p, F &&what) {
    if (p.by_warp && p.kept == 1) return what(norm_backward<T, IS_RMS, true, 1, true, false, 256>);
    if (p.by_warp && p.kept == 2) return what(norm_backward<T, IS_RMS, true, 2, true, false, 256>);
    if (p.by_warp) return what(norm_backward<T, IS_RMS, true, 4, false, false, 256>);
    if (!p.in_shared) return what(norm_backward<T, IS_RMS, false, 2, true, false, 512>);
    return what(norm_backward<T, IS_RMS, false, 4, false, true, 512>);
}

template <class T, bool IS_RMS> gradients<T> take(const pc_kernel_shape *shape, void *const *tensors) {
    gradients<T> all = {};
    int i = 0;
    all.dy = static_cast<const T *>(tensors[i++]);
    all.x = static_cast<const T *>(tensors[i++]);
    all.gamma = static_cast<const T *>(tensors[i++]);
    if (!IS_RMS) all.mean = static_cast<const float *>(tensors[i++]);
    all.rstd = static_cast<const float *>(tensors[i++]);
    all.dx = static_cast<T *>(tensors[i++]);
    all.dgamma = static_cast<float *>(tensors[i++]);
    if (!IS_RMS) all.dbeta = static_cast<float *>(tensors[i++]);
    all.scratch = static_cast<float *>(tensors[i++]);
    all.rows = shape->m;
    all.n = static_cast<int>(shape->n);
    return all;
}

template <class T, bool IS_RMS> void launch_any(pc_device *device, const setup &p, const gradients<T> &all) {
    unsigned columns = static_cast<unsigned>(pc_divide_up(all.n, COLUMNS)), parts = static_cast<unsigned>(p.parts);
    unsigned rows = static_cast<unsigned>(all.rows), threads = static_cast<unsigned>(p.threads);
    if (p.width == 8)
        PC_LAUNCH(device, (norm_backward_rows<T, IS_RMS, 8>), rows, threads, 0, all);
    else
        PC_LAUNCH(device, (norm_backward_rows<T, IS_RMS, 1>), rows, threads, 0, all);
    PC_LAUNCH(device, (norm_backward_columns<T, IS_RMS>), dim3(columns, parts), COLUMNS * GROUPS, 0, all);
}

template <bool IS_RMS>
pc_code launch(pc_device *device, const pc_kernel_shape *shape, void *const *tensors, pc_error *error) {
    return pc_dispatch(shape->dtype, [&](auto zero) {
        using T = decltype(zero);
        gradients<T> all = take<T, IS_RMS>(shape, tensors);
        bool is_aligned =
            pc_is_aligned(all.dy) && pc_is_aligned(all.x) && pc_is_aligned(all.gamma) && pc_is_aligned(all.dx);
        setup p = make_setup(device, shape, IS_RMS, is_aligned);
        unsigned parts = static_cast<unsigned>(p.parts), threads = static_cast<unsigned>(p.threads);
        if (p.is_fused)
            with_fused<T, IS_RMS>(p,
                                  [&](auto kernel) { PC_LAUNCH(device, kernel, parts, threads, p.shared_bytes, all); });
        else
            launch_any<T, IS_RMS>(device, p, all);
        unsigned columns = static_cast<unsigned>(pc_divide_up(all.n, COLUMNS));
        PC_LAUNCH(device, norm_backward_finish, dim3(columns, IS_RMS ? 1 : 2), COLUMNS * FINISH_GROUPS, 0, all.scratch,
                  p.parts, all.n, all.dgamma, all.dbeta);
        return pc_device_launched(device, IS_RMS ? "rms_norm_backward" : "layer_norm_backward", error);
    });
}

/* Of the kernel that makes dx. */
template <bool IS_RMS>
pc_code attributes(pc_device *device, const pc_kernel_shape *shape, pc_kernel_attributes *made, pc_error *error) {
    return pc_dispatch(shape->dtype, [&](auto zero) {
        using T = decltype(zero);
        setup p = make_setup(device, shape, IS_RMS, true);
        unsigned blocks = static_cast<unsigned>(p.is_fused ? p.parts : shape->m);
        char name[sizeof made->kernel];
        pc_code code = PC_OK;
        snprintf(name, sizeof name, "%s_norm_backward<%s, %s a row, width %d, kept %d>", IS_RMS ? "rms" : "layer",
                 pc_dtype_name(shape->dtype), p.by_warp ? "warp" : "block", p.width, p.kept);
        auto tell = [&](auto kernel) {
            code = pc_launch_attributes(device, name, kernel, blocks, static_cast<unsigned>(p.threads), p.shared_bytes,
                                        made, error);
        };
        if (p.is_fused)
            with_fused<T, IS_RMS>(p, tell);
        else if (p.width == 8)
            tell(norm_backward_rows<T, IS_RMS, 8>);
        else
            tell(norm_backward_rows<T, IS_RMS, 1>);
        if (!code) made->launches = p.is_fused ? 2 : 3;
        return code;
    });
}

} // namespace

extern "C" const pc_kernel_family pc_family_layer_norm_backward = {
    .name = "layer_norm_backward",
    .group = PC_KERNEL_NORM,
    .role = PC_KERNEL_INPUT_GRADIENT,
    .tensors = pc_layer_norm_backward_tensors,
    .prepare = nullptr,
    .launch = launch<false>,
    .attributes = attributes<false>,
    .reference = pc_layer_norm_backward_reference,
    .flops = pc_norm_flops,
    .bytes = pc_layer_norm_backward_bytes,
    .low = nullptr,
};

extern "C" const pc_kernel_family pc_family_rms_norm_backward = {
    .name = "rms_norm_backward",
    .group = PC_KERNEL_NORM,
    .role = PC_KERNEL_INPUT_GRADIENT,
    .tensors = pc_rms_norm_backward_tensors,
    .prepare = nullptr,
    .launch = launch<true>,
    .attributes = attributes<true>,
    .reference = pc_rms_norm_backward_reference,
    .flops = pc_norm_flops,
    .bytes = pc_rms_norm_backward_bytes,
    .low = nullptr,
};
