/* A block a row, a thread a piece of 16 bytes of it, or a single number where heads are no whole pieces. */
#include "kernels/cuda/code.cuh"

#include "kernels/qkv.h"

namespace {

template <class T, int N> struct piece { T value[N]; };
template <class T> struct alignas(16) piece<T, 8> { T value[8]; };

/* Where a column of the row lies among queries, keys and values. */
template <class T> struct parts {
    T *query, *key, *value;
    int query_columns, key_columns;

    __device__ T *at(int64_t row, int column) const {
        if (column < query_columns) return query + row * query_columns + column;
        column -= query_columns;
        if (column < key_columns) return key + row * key_columns + column;
        return value + row * key_columns + column - key_columns;
    }
    __device__ int columns() const { return query_columns + 2 * key_columns; }
};

template <class T, int N>
__global__ void qkv_split(const T *__restrict__ qkv, const T *__restrict__ bias, parts<T> to) {
    using P = piece<T, N>;
    int64_t row = blockIdx.x;
    int columns = to.columns();
    const T *from = qkv + row * columns;
    for (int i = static_cast<int>(threadIdx.x) * N; i < columns; i += static_cast<int>(blockDim.x) * N) {
        P x = *reinterpret_cast<const P *>(from + i);
        if (bias) {
            P y = *reinterpret_cast<const P *>(bias + i);
#pragma unroll
            for (int j = 0; j < N; j++)
                x.value[j] = pc_from_float<T>(pc_to_float(x.value[j]) + pc_to_float(y.value[j]));
        }
        *reinterpret_cast<P *>(to.at(row, i)) = x;
    }
}

template <class T, int N> __global__ void qkv_merge(parts<const T> from, T *__restrict__ qkv) {
    using P = piece<T, N>;
    int64_t row = blockIdx.x;
    int columns = from.columns();
    T *to = qkv + row * columns;
    for (int i = static_cast<int>(threadIdx.x) * N; i < columns; i += static_cast<int>(blockDim.x) * N)
        *reinterpret_cast<P *>(to + i) = *reinterpret_cast<const P *>(from.at(row, i));
}

template <class T> parts<T> make_parts(const pc_kernel_shape *shape, void *const *three) {
    pc_qkv_columns x = pc_qkv_columns_of(shape);
    return {static_cast<T *>(three[0]), static_cast<T *>(three[1]), static_cast<T *>(three[2]),
            static_cast<int>(x.query), static_cast<int>(x.key)};
}

bool is_in_pieces(const pc_kernel_shape *shape, void *const *tensors, int count) {
    pc_qkv_columns x = pc_qkv_columns_of(shape);
    for (int i = 0; i < count; i++)
        if (!pc_is_aligned(tensors[i])) return false;
    return x.query % 8 == 0 && x.key % 8 == 0;
}

dim3 block_of(const pc_kernel_shape *shape, int n) {
    int64_t threads = pc_divide_up(pc_divide_up(pc_qkv_columns_of(shape).all, n), 32) * 32;
    return dim3(static_cast<unsigned>(threads < 256 ? threads : 256));
}

dim3 grid_of(const pc_kernel_shape *shape) {
    return dim3(static_cast<unsigned>(shape->m));
}

pc_code split_launch(pc_device *device, const pc_kernel_shape *shape, void *const *tensors, pc_error *error) {
    bool has_bias = shape->epilogue != PC_EPILOGUE_NONE;
    return pc_dispatch(shape->dtype, [&](auto zero) {
        using T = decltype(zero);
        auto *qkv = static_cast<const T *>(tensors[0]);
        auto *bias = has_bias ? static_cast<const T *>(tensors[1]) : nullptr;
        parts<T> to = make_parts<T>(shape, tensors + (has_bias ? 2 : 1));
        if (is_in_pieces(shape, tensors, has_bias ? 5 : 4))
            PC_LAUNCH(device, (qkv_split<T, 8>), grid_of(shape), block_of(shape, 8), 0, qkv, bias, to);
        else
            PC_LAUNCH(device, (qkv_split<T, 1>), grid_of(shape), block_of(shape, 1), 0, qkv, bias, to);
        return pc_device_launched(device, "qkv_split", error);
    });
}

pc_code merge_launch(pc_device *device, const pc_kernel_shape *shape, void *const *tensors, pc_error *error) {
    return pc_dispatch(shape->dtype, [&](auto zero) {
        using T = decltype(zero);
        parts<const T> from = make_parts<const T>(shape, tensors);
        auto *qkv = static_cast<T *>(tensors[3]);
        if (is_in_pieces(shape, tensors, 4))
            PC_LAUNCH(device, (qkv_merge<T, 8>), grid_of(shape), block_of(shape, 8), 0, from, qkv);
        else
            PC_LAUNCH(device, (qkv_merge<T, 1>), grid_of(shape), block_of(shape, 1), 0, from, qkv);
        return pc_device_launched(device, "qkv_merge", error);
    });
}

/* Of tensors that are aligned, as a device's are. */
int piece_of(const pc_kernel_shape *shape) {
    return is_in_pieces(shape, nullptr, 0) ? 8 : 1;
}

pc_code split_attributes(pc_device *device, const pc_kernel_shape *shape, pc_kernel_attributes *made, pc_error *error) {
    return pc_dispatch(shape->dtype, [&](auto zero) {
        using T = decltype(zero);
        int n = piece_of(shape);
        auto *kernel = n == 8 ? qkv_split<T, 8> : qkv_split<T, 1>;
        return pc_launch_attributes(device, "qkv_split", kernel, grid_of(shape), block_of(shape, n), 0, made, error);
    });
}

pc_code merge_attributes(pc_device *device, const pc_kernel_shape *shape, pc_kernel_attributes *made, pc_error *error) {
    return pc_dispatch(shape->dtype, [&](auto zero) {
        using T = decltype(zero);
        int n = piece_of(shape);
        auto *kernel = n == 8 ? qkv_merge<T, 8> : qkv_merge<T, 1>;
        return pc_launch_attributes(device, "qkv_merge", kernel, grid_of(shape), block_of(shape, n), 0, made, error);
    });
}

} // namespace

extern "C" const pc_kernel_family pc_family_qkv_split = {
    .name = "qkv_split",
    .group = PC_KERNEL_ELEMENTWISE,
    .role = PC_KERNEL_FORWARD,
    .tensors = pc_qkv_split_tensors,
    .prepare = nullptr,
    .launch = split_launch,
    .attributes = split_attributes,
    .reference = pc_qkv_split_reference,
    .flops = pc_qkv_flops,
    .bytes = pc_qkv_split_bytes,
    .low = nullptr,
};

extern "C" const pc_kernel_family pc_family_qkv_merge = {
    .name = "qkv_merge",
    .group = PC_KERNEL_ELEMENTWISE,
    .role = PC_KERNEL_INPUT_GRADIENT,
    .tensors = pc_qkv_merge_tensors,
    .prepare = nullptr,
    .launch = merge_launch,
    .attributes = merge_attributes,
    .reference = pc_qkv_merge_reference,
    .flops = pc_qkv_flops,
    .bytes = pc_qkv_merge_bytes,
    .low = nullptr,
};
