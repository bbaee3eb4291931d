/* norm.cu: layer norm and RMS norm, forward (norm.h has the formulas). */
#include "kernels/norm.h"

#include "kernels/cuda/row.cuh"
#include "kernels/families.h"

/* ---- the kernel ---- */

/* Two passes over what is in registers: the variance is that about the mean, for the difference of two large sums
 * would lose its digits. */
template <class T, bool IS_RMS, bool BY_WARP, int WIDTH, int KEPT>
__global__ void __launch_bounds__(BY_WARP ? 128 : 1024)
    norm_forward(const T *x, const T *gamma, const T *beta, T *y, float *mean, float *rstd, int64_t rows, int n) {
    pc_row_place<BY_WARP> at;
    if (at.row >= rows) return; /* whole warps, or none of a block */
    const pc_row<T, WIDTH, KEPT> row(x + at.row * n, n, at.thread, at.threads);
    float middle = 0;
    if constexpr (!IS_RMS) {
        float sum = 0;
        row.each([&](int, int, const pc_chunk<T, WIDTH> &chunk) {
#pragma unroll
            for (int k = 0; k < WIDTH; k++) sum += pc_to_float(chunk.value[k]);
        });
        middle = pc_row_sum<BY_WARP>(sum) / static_cast<float>(n);
    }
    float squares = 0;
    row.each([&](int, int, const pc_chunk<T, WIDTH> &chunk) {
#pragma unroll
        for (int k = 0; k < WIDTH; k++) {
            float away = pc_to_float(chunk.value[k]) - middle;
            squares += away * away;
        }
    });
    float scale = rsqrtf(pc_row_sum<BY_WARP>(squares) / static_cast<float>(n) + static_cast<float>(PC_NORM_EPSILON));
    row.each([&](int, int column, const pc_chunk<T, WIDTH> &chunk) {
        pc_chunk<T, WIDTH> by = pc_load_chunk<WIDTH>(gamma + column), shift{}, made;
        if constexpr (!IS_RMS) shift = pc_load_chunk<WIDTH>(beta + column);
#pragma unroll
        for (int k = 0; k < WIDTH; k++) {
            float normal = (pc_to_float(chunk.value[k]) - middle) * scale * pc_to_float(by.value[k]);
            if constexpr (!IS_RMS) normal += pc_to_float(shift.value[k]);
            made.value[k] = pc_from_float<T>(normal);
        }
        pc_store_chunk(y + at.row * n + column, made);
    });
    if (at.thread != 0) return;
    if constexpr (!IS_RMS) mean[at.row] = middle;
    rstd[at.row] = scale;
}

/* ---- the families ---- */

template <bool IS_RMS>
static pc_code forward_launch(pc_device *device, const pc_kernel_shape *shape, void *const *tensors, pc_error *error) {
    return pc_dispatch(shape->dtype, [&](auto zero) {
        using T = decltype(zero);
        const T *x = static_cast<const T *>(tensors[0]), *gamma = static_cast<const T *>(tensors[1]);
        const T *beta = IS_RMS ? nullptr : static_cast<const T *>(tensors[2]);
        T *y = static_cast<T *>(tensors[IS_RMS ? 2 : 3]);
        float *mean = IS_RMS ? nullptr : static_cast<float *>(tensors[4]);
        float *rstd = static_cast<float *>(tensors[IS_RMS ? 3 : 5]);
        bool is_aligned = pc_is_aligned(x) && pc_is_aligned(gamma) && pc_is_aligned(beta) && pc_is_aligned(y);
        pc_row_setup setup = pc_set_up_rows(shape->n, is_aligned);
        pc_dispatch_rows(setup, [&](auto by_warp, auto width, auto kept) {
            PC_LAUNCH(device, (norm_forward<T, IS_RMS, by_warp(), width(), kept()>), pc_row_blocks(setup, shape->m),
                      setup.threads, 0, x, gamma, beta, y, mean, rstd, shape->m, shape->n);
        });
        return pc_device_launched(device, IS_RMS ? "rms_norm_forward" : "layer_norm_forward", error);
    });
}

template <bool IS_RMS>
static pc_code forward_attributes(pc_device *device, const pc_kernel_shape *shape, pc_kernel_attributes *made,
                                  pc_error *error) {
    return pc_dispatch(shape->dtype, [&](auto zero) {
        using T = decltype(zero);
        pc_row_setup setup = pc_set_up_rows(shape->n, true);
        return pc_dispatch_rows(setup, [&](auto by_warp, auto width, auto kept) {
            char name[sizeof made->kernel];
            snprintf(name, sizeof name, "%s_norm_forward<%s, %s a row, width %d, kept %d>", IS_RMS ? "rms" : "layer",
                     pc_dtype_name(shape->dtype), setup.by_warp ? "warp" : "block", setup.width, setup.kept);
            return pc_launch_attributes(device, name, norm_forward<T, IS_RMS, by_warp(), width(), kept()>,
                                        pc_row_blocks(setup, shape->m), setup.threads, 0, made, error);
        });
    });
}

extern "C" const pc_kernel_family pc_family_layer_norm_forward = {
    .name = "layer_norm_forward",
    .group = PC_KERNEL_NORM,
    .role = PC_KERNEL_FORWARD,
    .tensors = pc_layer_norm_forward_tensors,
    .prepare = nullptr,
    .launch = forward_launch<false>,
    .attributes = forward_attributes<false>,
    .reference = pc_layer_norm_forward_reference,
    .flops = pc_norm_flops,
    .bytes = pc_layer_norm_forward_bytes,
    .low = nullptr,
};

extern "C" const pc_kernel_family pc_family_rms_norm_forward = {
    .name = "rms_norm_forward",
    .group = PC_KERNEL_NORM,
    .role = PC_KERNEL_FORWARD,
    .tensors = pc_rms_norm_forward_tensors,
    .prepare = nullptr,
    .launch = forward_launch<true>,
    .attributes = forward_attributes<true>,
    .reference = pc_rms_norm_forward_reference,
    .flops = pc_norm_flops,
    .bytes = pc_rms_norm_forward_bytes,
    .low = nullptr,
};
