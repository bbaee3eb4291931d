/* elementwise.cuh: what the memory-bound kernels share: one launch or its description, and kernels over flat tensors.
 *
 * A flat kernel has an operation: a struct of pointers and numbers, with
 *     static constexpr int unroll;            vectors a thread has under way at a time
 *     held load(int64_t v) const;             reads what vector v of 8 elements needs, and nothing else
 *     void store(int64_t v, const held &) const;
 *     void single(int64_t e) const;           one element, where vectors cannot be: the last ones, or all
 * All loads of a thread come before its stores, so that enough of them are under way to keep the memory busy.
 */
#ifndef PC_KERNELS_CUDA_ELEMENTWISE_CUH
#define PC_KERNELS_CUDA_ELEMENTWISE_CUH

#include "kernels/cuda/code.cuh"
#include "kernels/memory_bound.h"
#include "kernels/reference/memory_bound.h"

/* ---- a launch, or what it would be ---- */

/* One call of a family's launch or attributes. */
struct pc_task {
    pc_device *device;
    const pc_kernel_shape *shape;
    void *const *tensors;       /* NULL each, which is aligned, where attributes are asked for */
    pc_kernel_attributes *made; /* NULL: launch; otherwise: nothing runs, and the kernels are told here */
    pc_error *error;

    template <class T> T *tensor(int number) const { return static_cast<T *>(tensors[number]); }
    bool has_bias() const { return pc_shape_has_bias(shape); }
    bool has_dropout() const { return pc_shape_has_dropout(shape); }
};

/* Of several kernels of a family the main one is told, and how many they are. */
enum pc_part { PC_MAIN, PC_BESIDE };

template <class... P>
pc_code pc_describe(const pc_task &task, pc_part part, const char *name, void (*kernel)(P...), dim3 grid, dim3 block,
                    size_t shared_bytes) {
    pc_kernel_attributes made;
    char with_type[sizeof made.kernel];
    int launches = task.made->launches + 1;
    snprintf(with_type, sizeof with_type, "%s<%s>", name, pc_dtype_name(task.shape->dtype));
    pc_code code =
        pc_launch_attributes(task.device, with_type, kernel, grid, block, (int64_t)shared_bytes, &made, task.error);
    if (code) return code;
    if (part == PC_MAIN) *task.made = made;
    task.made->launches = launches;
    return PC_OK;
}

template <class... P, class... A>
pc_code pc_run(const pc_task &task, pc_part part, const char *name, void (*kernel)(P...), dim3 grid, dim3 block,
               size_t shared_bytes, A... given) {
    if (task.made) return pc_describe(task, part, name, kernel, grid, block, shared_bytes);
#ifdef PC_EMULATED /* as PC_LAUNCH, but faults are to tell the kernel's name */
    pc_emulated_launch(task.device, name, kernel, grid, block, shared_bytes, given...);
#else
    PC_LAUNCH(task.device, kernel, grid, block, shared_bytes, given...);
#endif
    return pc_device_launched(task.device, name, task.error);
}

using pc_tensors_of = pc_code(const pc_kernel_shape *, pc_tensor *, int *, pc_error *);

template <pc_code (*work)(const pc_task &)>
pc_code pc_launch_family(pc_device *device, const pc_kernel_shape *shape, void *const *tensors, pc_error *error) {
    return work(pc_task{device, shape, tensors, nullptr, error});
}

template <pc_code (*work)(const pc_task &), pc_tensors_of *tensors_of>
pc_code pc_describe_family(pc_device *device, const pc_kernel_shape *shape, pc_kernel_attributes *made,
                           pc_error *error) {
    pc_tensor tensors[PC_KERNEL_TENSORS];
    int count;
    pc_code code = tensors_of(shape, tensors, &count, error);
    if (code) return code;
    void *const none[PC_KERNEL_TENSORS] = {};
    pc_kernel_attributes found = {};
    code = work(pc_task{device, shape, none, &found, error});
    if (!code) *made = found;
    return code;
}

/* The family pc_family_<name>, of the function `name` that does its work. */
#define PC_MEMORY_FAMILY(name_, group_, role_)                                                                         \
    extern "C" const pc_kernel_family pc_family_##name_ = {                                                            \
        .name = #name_,                                                                                                \
        .group = group_,                                                                                               \
        .role = role_,                                                                                                 \
        .tensors = pc_##name_##_tensors,                                                                               \
        .prepare = nullptr,                                                                                            \
        .launch = pc_launch_family<name_>,                                                                             \
        .attributes = pc_describe_family<name_, pc_##name_##_tensors>,                                                 \
        .reference = pc_reference_##name_,                                                                             \
        .flops = pc_no_flops,                                                                                          \
        .bytes = pc_##name_##_bytes,                                                                                   \
        .low = nullptr,                                                                                                \
    }

/* ---- flat kernels ---- */

constexpr int PC_EIGHT = 8; /* elements of a vector: 16 bytes of a 16-bit type */
constexpr int PC_FLAT_THREADS = 256;

template <class... P> bool pc_all_aligned(const P *...address) {
    return (pc_is_aligned(address) && ...);
}

struct pc_place {
    int64_t row, column;
};

/* Where number i of rows of `columns` is. 64-bit division takes a hundred instructions, 32-bit division a fifth. */
__device__ inline pc_place pc_place_of(int64_t i, int64_t columns) {
    if (((i | columns) >> 32) == 0) {
        uint32_t row = (uint32_t)i / (uint32_t)columns;
        return {row, (uint32_t)i - row * (uint32_t)columns};
    }
    int64_t row = i / columns;
    return {row, i - row * columns};
}

/* 1/x to two units in the last place; 0 of what is larger than 2^126. */
__device__ inline float pc_reciprocal(float x) {
    return __fdividef(1.0f, x);
}

__device__ inline float pc_sigmoid(float x) {
    return pc_reciprocal(1.0f + __expf(-x));
}

template <class Op>
__global__ void __launch_bounds__(PC_FLAT_THREADS) pc_flat_wide(Op op, int64_t vectors, int64_t count) {
    int64_t first = (int64_t)blockIdx.x * (PC_FLAT_THREADS * Op::unroll) + threadIdx.x;
    typename Op::held held[Op::unroll];
#pragma unroll
    for (int u = 0; u < Op::unroll; u++) {
        int64_t v = first + u * PC_FLAT_THREADS;
        if (v < vectors) held[u] = op.load(v);
    }
#pragma unroll
    for (int u = 0; u < Op::unroll; u++) {
        int64_t v = first + u * PC_FLAT_THREADS;
        if (v < vectors) op.store(v, held[u]);
    }
    int64_t last = vectors * PC_EIGHT + threadIdx.x;
    if (blockIdx.x == gridDim.x - 1 && last < count) op.single(last);
}

template <class Op> __global__ void __launch_bounds__(PC_FLAT_THREADS) pc_flat_narrow(Op op, int64_t count) {
    int64_t e = (int64_t)blockIdx.x * PC_FLAT_THREADS + threadIdx.x;
    if (e < count) op.single(e);
}

/* `is_wide`: all that vectors touch is aligned, and no vector crosses a row where rows matter. */
template <class Op>
pc_code pc_run_flat(const pc_task &task, pc_part part, const char *name, const Op &op, int64_t count, bool is_wide) {
    if (!is_wide) {
        dim3 grid((unsigned)pc_divide_up(count, PC_FLAT_THREADS));
        return pc_run(task, part, name, pc_flat_narrow<Op>, grid, PC_FLAT_THREADS, 0, op, count);
    }
    int64_t vectors = count / PC_EIGHT, blocks = pc_divide_up(vectors, PC_FLAT_THREADS * Op::unroll);
    dim3 grid((unsigned)(blocks > 0 ? blocks : 1));
    return pc_run(task, part, name, pc_flat_wide<Op>, grid, PC_FLAT_THREADS, 0, op, vectors, count);
}

#endif
