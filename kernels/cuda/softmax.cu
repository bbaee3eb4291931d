/* softmax.cu: softmax of rows of scores, forward and backward (softmax.h has the formulas).
 *
 * A warp or a block a row. Rows that stay in registers are read once; longer ones twice, for the sum follows the
 * largest number as it grows (Milakov, Gimelshein: 'Online normalizer calculation for softmax', arXiv 1805.02867).
 */
#include "kernels/softmax.h"

#include "kernels/cuda/row.cuh"
#include "kernels/families.h"

#include <algorithm>

namespace {

struct scores {
    int64_t rows;
    int m, n;
    bool is_causal;
    float scale;       /* of backward */
    float scale_log2e; /* of forward: exp(scale x) = 2^(scale_log2e x) */
};

scores take(const pc_kernel_shape *shape) {
    double scale = pc_softmax_scale(shape);
    return {pc_softmax_rows(shape),     static_cast<int>(std::min<int64_t>(shape->m, INT32_MAX)),
            static_cast<int>(shape->n), shape->is_causal,
            static_cast<float>(scale),  static_cast<float>(scale * 1.4426950408889634)};
}

} // namespace

/* Columns that a row sees; 0 or less: none. */
__device__ inline int64_t count_visible(const scores &all, int64_t row) {
    return all.is_causal ? row % all.m + all.n - all.m + 1 : all.n;
}

/* ---- forward ---- */

/* The largest number so far, and the sum of 2^(scale (x - largest)). */
struct running_sum {
    float largest, sum;
};

__device__ inline float power(float x, float largest, float scale) {
    return exp2f((x - largest) * scale);
}

template <int WIDTH, class T>
__device__ inline void add_chunk(const pc_chunk<T, WIDTH> &chunk, int64_t visible, float scale, running_sum *run) {
    float most = run->largest, sum = 0;
#pragma unroll
    for (int k = 0; k < WIDTH; k++)
        if (k < visible) most = fmaxf(most, pc_to_float(chunk.value[k]));
    if (most == -INFINITY) return; /* nothing but that: a sum of nothing */
#pragma unroll
    for (int k = 0; k < WIDTH; k++)
        if (k < visible) sum += power(pc_to_float(chunk.value[k]), most, scale);
    run->sum = run->sum * power(run->largest, most, scale) + sum;
    run->largest = most;
}

/* Of all threads of the row. Held rows look for the largest first, which saves half of the powers. */
template <bool BY_WARP, int WIDTH, int KEPT, class T>
__device__ inline running_sum sum_row(const pc_row<T, WIDTH, KEPT> &row, int64_t visible, float scale) {
    running_sum run = {-INFINITY, 0.0f};
    if constexpr (KEPT > 0) {
        row.each([&](int, int column, const pc_chunk<T, WIDTH> &chunk) {
#pragma unroll
            for (int k = 0; k < WIDTH; k++)
                if (column + k < visible) run.largest = fmaxf(run.largest, pc_to_float(chunk.value[k]));
        });
        run.largest = pc_row_max<BY_WARP>(run.largest);
        row.each([&](int, int column, const pc_chunk<T, WIDTH> &chunk) {
#pragma unroll
            for (int k = 0; k < WIDTH; k++)
                if (column + k < visible) run.sum += power(pc_to_float(chunk.value[k]), run.largest, scale);
        });
        run.sum = pc_row_sum<BY_WARP>(run.sum);
        return run;
    } else {
        row.each(
            [&](int, int column, const pc_chunk<T, WIDTH> &chunk) { add_chunk(chunk, visible - column, scale, &run); });
        float largest = pc_row_max<BY_WARP>(run.largest);
        float mine = run.largest == -INFINITY ? 0.0f : run.sum * power(run.largest, largest, scale);
        return {largest, pc_row_sum<BY_WARP>(mine)};
    }
}

template <class T, bool BY_WARP, int WIDTH, int KEPT>
__global__ void __launch_bounds__(BY_WARP ? 128 : 1024) softmax_forward(scores all, const T *x, T *y) {
    pc_row_place<BY_WARP> at;
    if (at.row >= all.rows) return;
    int64_t visible = count_visible(all, at.row);
    const pc_row<T, WIDTH, KEPT> row(x + at.row * all.n, all.n, at.thread, at.threads);
    running_sum run = sum_row<BY_WARP>(row, visible, all.scale_log2e);
    float part = 1.0f / run.sum;
    row.each([&](int, int column, const pc_chunk<T, WIDTH> &chunk) {
        pc_chunk<T, WIDTH> made;
#pragma unroll
        for (int k = 0; k < WIDTH; k++) {
            float value = power(pc_to_float(chunk.value[k]), run.largest, all.scale_log2e) * part;
            made.value[k] = pc_from_float<T>(column + k < visible ? value : 0.0f);
        }
        pc_store_chunk(y + at.row * all.n + column, made);
    });
}

/* ---- backward ---- */

template <class T, bool BY_WARP, int WIDTH, int KEPT>
__global__ void __launch_bounds__(BY_WARP ? 128 : 1024) softmax_backward(scores all, const T *dy, const T *y, T *dx) {
    pc_row_place<BY_WARP> at;
    if (at.row >= all.rows) return;
    int64_t begin = at.row * all.n;
    const pc_row<T, WIDTH, KEPT> gradients(dy + begin, all.n, at.thread, at.threads);
    const pc_row<T, WIDTH, KEPT> results(y + begin, all.n, at.thread, at.threads);
    auto result = [&](int i, int column) {
        if constexpr (KEPT > 0)
            return results.kept[i];
        else
            return pc_load_chunk<WIDTH>(results.from + column);
    };
    float sum = 0;
    gradients.each([&](int i, int column, const pc_chunk<T, WIDTH> &chunk) {
        pc_chunk<T, WIDTH> of = result(i, column);
#pragma unroll
        for (int k = 0; k < WIDTH; k++) sum += pc_to_float(chunk.value[k]) * pc_to_float(of.value[k]);
    });
    sum = pc_row_sum<BY_WARP>(sum);
    gradients.each([&](int i, int column, const pc_chunk<T, WIDTH> &chunk) {
        pc_chunk<T, WIDTH> of = result(i, column), made;
#pragma unroll
        for (int k = 0; k < WIDTH; k++)
            made.value[k] =
                pc_from_float<T>(all.scale * pc_to_float(of.value[k]) * (pc_to_float(chunk.value[k]) - sum));
        pc_store_chunk(dx + begin + column, made);
    });
}

/* ---- the families ---- */

namespace {

pc_code forward_launch(pc_device *device, const pc_kernel_shape *shape, void *const *tensors, pc_error *error) {
    return pc_dispatch(shape->dtype, [&](auto zero) {
        using T = decltype(zero);
        const T *x = static_cast<const T *>(tensors[0]);
        T *y = static_cast<T *>(tensors[1]);
        scores all = take(shape);
        pc_row_setup setup = pc_set_up_rows(shape->n, pc_is_aligned(x) && pc_is_aligned(y));
        pc_dispatch_rows(setup, [&](auto by_warp, auto width, auto kept) {
            PC_LAUNCH(device, (softmax_forward<T, by_warp(), width(), kept()>), pc_row_blocks(setup, all.rows),
                      setup.threads, 0, all, x, y);
        });
        return pc_device_launched(device, "softmax_forward", error);
    });
}

pc_code backward_launch(pc_device *device, const pc_kernel_shape *shape, void *const *tensors, pc_error *error) {
    return pc_dispatch(shape->dtype, [&](auto zero) {
        using T = decltype(zero);
        const T *dy = static_cast<const T *>(tensors[0]), *y = static_cast<const T *>(tensors[1]);
        T *dx = static_cast<T *>(tensors[2]);
        scores all = take(shape);
        pc_row_setup setup = pc_set_up_rows(shape->n, pc_is_aligned(dy) && pc_is_aligned(y) && pc_is_aligned(dx));
        pc_dispatch_rows(setup, [&](auto by_warp, auto width, auto kept) {
            PC_LAUNCH(device, (softmax_backward<T, by_warp(), width(), kept()>), pc_row_blocks(setup, all.rows),
                      setup.threads, 0, all, dy, y, dx);
        });
        return pc_device_launched(device, "softmax_backward", error);
    });
}

template <bool IS_FORWARD>
pc_code attributes(pc_device *device, const pc_kernel_shape *shape, pc_kernel_attributes *made, pc_error *error) {
    return pc_dispatch(shape->dtype, [&](auto zero) {
        using T = decltype(zero);
        pc_row_setup setup = pc_set_up_rows(shape->n, true);
        return pc_dispatch_rows(setup, [&](auto by_warp, auto width, auto kept) {
            char name[sizeof made->kernel];
            snprintf(name, sizeof name, "softmax_%s<%s, %s a row, width %d, kept %d>",
                     IS_FORWARD ? "forward" : "backward", pc_dtype_name(shape->dtype), setup.by_warp ? "warp" : "block",
                     setup.width, setup.kept);
            unsigned blocks = static_cast<unsigned>(pc_row_blocks(setup, pc_softmax_rows(shape)));
            if constexpr (IS_FORWARD)
                return pc_launch_attributes(device, name, softmax_forward<T, by_warp(), width(), kept()>, blocks,
                                            setup.threads, 0, made, error);
            else
                return pc_launch_attributes(device, name, softmax_backward<T, by_warp(), width(), kept()>, blocks,
                                            setup.threads, 0, made, error);
        });
    });
}

} // namespace

extern "C" const pc_kernel_family pc_family_softmax_forward = {
    .name = "softmax_forward",
    .group = PC_KERNEL_ELEMENTWISE,
    .role = PC_KERNEL_FORWARD,
    .tensors = pc_softmax_forward_tensors,
    .prepare = nullptr,
    .launch = forward_launch,
    .attributes = attributes<true>,
    .reference = pc_softmax_forward_reference,
    .flops = pc_softmax_flops,
    .bytes = pc_softmax_forward_bytes,
    .low = nullptr,
};

extern "C" const pc_kernel_family pc_family_softmax_backward = {
    .name = "softmax_backward",
    .group = PC_KERNEL_ELEMENTWISE,
    .role = PC_KERNEL_INPUT_GRADIENT,
    .tensors = pc_softmax_backward_tensors,
    .prepare = nullptr,
    .launch = backward_launch,
    .attributes = attributes<false>,
    .reference = pc_softmax_backward_reference,
    .flops = pc_softmax_flops,
    .bytes = pc_softmax_backward_bytes,
    .low = nullptr,
};
