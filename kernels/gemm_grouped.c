#include "kernels/gemm_grouped.h"

#include "kernels/dtype.h"
#include "kernels/families.h"

/* ---- groups ---- */

static int64_t step_of(const pc_kernel_shape *shape) {
    return shape->scaling == PC_LOW_NONE ? 1 : shape->scaling == PC_LOW_TENSOR ? 16 : 128;
}

/* Rows rise evenly from m/2 to 3m/2: of all T rows the first x of the groups have T (x + x^2) / 2. */
int64_t pc_gemm_group_start(const pc_kernel_shape *shape, int64_t group) {
    int64_t step = step_of(shape), groups = shape->batch, steps = groups * shape->m / step;
    return step * (steps * (group * (groups + group)) / (2 * groups * groups));
}

pc_gemm_group pc_gemm_group_of(pc_kernel_role role, const pc_kernel_shape *shape, int64_t group) {
    int64_t start = pc_gemm_group_start(shape, group), rows = pc_gemm_group_start(shape, group + 1) - start;
    int64_t n = shape->n, k = shape->k, matrix = group * n * k;
    pc_gemm_group of = {.shape = *shape};
    of.shape.batch = 1;
    if (role == PC_KERNEL_FORWARD) {
        of.shape.m = rows;
        of.a = start * k, of.b = matrix, of.c = start * n;
    } else if (role == PC_KERNEL_INPUT_GRADIENT) {
        of.shape.m = rows, of.shape.n = k, of.shape.k = n;
        of.a = start * n, of.b = matrix, of.c = start * k;
    } else {
        of.shape.m = n, of.shape.n = k, of.shape.k = rows;
        of.a = start * n, of.b = start * k, of.c = matrix;
    }
    return of;
}

/* Blocks of 128 lie along rows in the gradient of weights, where rows are what is summed over. */
int64_t pc_gemm_group_scales(pc_kernel_role role, const pc_kernel_shape *shape, int operand, int64_t group) {
    const pc_kernel_shape one = pc_gemm_group_of(role, shape, 0).shape;
    pc_scale_layout layout = pc_gemm_low_layout(role, shape, operand);
    int64_t start = pc_gemm_group_start(shape, group), lines = operand == PC_GEMM_A ? one.m : one.n;
    if (layout == PC_SCALE_ONE) return group;
    if (layout == PC_SCALE_BLOCK_128) return group * pc_scale_count(layout, lines, one.k);
    if (role == PC_KERNEL_WEIGHT_GRADIENT) return pc_scale_count(layout, lines, start);
    return pc_scale_count(layout, start, one.k);
}

static char *behind(void *address, pc_dtype dtype, int64_t elements) {
    return (char *)address + elements * pc_dtype_bytes(dtype);
}

void pc_gemm_group_tensors(pc_kernel_role role, const pc_kernel_shape *shape, int64_t group, void *const *tensors,
                           void *of_group[PC_GEMM_LOW_TENSORS]) {
    pc_gemm_group of = pc_gemm_group_of(role, shape, group);
    bool is_low = shape->scaling != PC_LOW_NONE;
    pc_dtype a = is_low ? pc_gemm_low_dtype(role, shape, PC_GEMM_A) : shape->dtype;
    pc_dtype b = is_low ? pc_gemm_low_dtype(role, shape, PC_GEMM_B) : shape->dtype;
    of_group[PC_GEMM_A] = behind(tensors[PC_GEMM_A], a, of.a);
    of_group[PC_GEMM_B] = behind(tensors[PC_GEMM_B], b, of.b);
    of_group[PC_GEMM_C] = behind(tensors[PC_GEMM_C], role == PC_KERNEL_WEIGHT_GRADIENT ? PC_FP32 : shape->dtype, of.c);
    of_group[PC_GEMM_A_SCALE] = of_group[PC_GEMM_B_SCALE] = NULL;
    for (int i = PC_GEMM_A; i <= PC_GEMM_B && is_low; i++) {
        int scales = i == PC_GEMM_A ? PC_GEMM_A_SCALE : PC_GEMM_B_SCALE;
        of_group[scales] = behind(tensors[scales], PC_FP32, pc_gemm_group_scales(role, shape, i, group));
    }
}

const pc_kernel_family *pc_gemm_group_family(pc_kernel_role role, pc_low_scaling scaling) {
    static const pc_kernel_family *const plain[] = {&pc_family_gemm_forward, &pc_family_gemm_input_gradient,
                                                    &pc_family_gemm_weight_gradient};
    static const pc_kernel_family *const low[] = {&pc_family_fp8_gemm_forward, &pc_family_fp8_gemm_input_gradient,
                                                  &pc_family_fp8_gemm_weight_gradient};
    static const pc_kernel_family *const block[] = {&pc_family_fp8_block_gemm_forward,
                                                    &pc_family_fp8_block_gemm_input_gradient,
                                                    &pc_family_fp8_block_gemm_weight_gradient};
    return scaling == PC_LOW_NONE ? plain[role] : scaling == PC_LOW_TENSOR ? low[role] : block[role];
}

/* ---- what cannot be ---- */

static pc_code check_rows(const pc_kernel_shape *s, pc_error *error) {
    int64_t step = step_of(s);
    if (s->batch < 1 || s->batch > PC_GROUPS_MOST)
        return pc_error_set(error, PC_ERROR_INPUT, "grouped_gemm: %lld groups; expected 1 to %d", (long long)s->batch,
                            PC_GROUPS_MOST);
    if (s->m < 2 * step || s->m % step != 0 || s->m > INT32_MAX / s->batch)
        return pc_error_set(error, PC_ERROR_INPUT,
                            "grouped_gemm: %lld rows a group; expected a multiple of %lld, at least %lld, and less "
                            "than 2^31 in all",
                            (long long)s->m, (long long)step, (long long)(2 * step));
    return PC_OK;
}

/* The last group is the largest. */
static pc_code largest_group(pc_kernel_role role, pc_low_scaling scaling, const pc_kernel_shape *shape,
                             pc_tensor tensors[PC_KERNEL_TENSORS], int *count, pc_error *error) {
    pc_code code = check_rows(shape, error);
    if (code) return code;
    if (shape->epilogue != PC_EPILOGUE_NONE)
        return pc_error_set(error, PC_ERROR_INPUT, "grouped_gemm: an epilogue; expected none");
    pc_gemm_group last = pc_gemm_group_of(role, shape, shape->batch - 1);
    code = pc_gemm_group_family(role, scaling)->tensors(&last.shape, tensors, count, error);
    if (code) pc_error_prefix(error, "grouped_gemm");
    return code;
}

pc_code pc_gemm_grouped_check(pc_kernel_role role, pc_low_scaling scaling, const pc_kernel_shape *shape,
                              pc_error *error) {
    pc_tensor tensors[PC_KERNEL_TENSORS];
    int count;
    return pc_gemm_grouped_tensors(role, scaling, shape, tensors, &count, error);
}

/* ---- tensors ---- */

/* Each as in the largest group, whose sums are the longest, but for how many there are. */
pc_code pc_gemm_grouped_tensors(pc_kernel_role role, pc_low_scaling scaling, const pc_kernel_shape *shape,
                                pc_tensor tensors[PC_KERNEL_TENSORS], int *count, pc_error *error) {
    pc_tensor largest[PC_KERNEL_TENSORS];
    int found = 0;
    pc_code code = largest_group(role, scaling, shape, largest, &found, error);
    if (code) return code;
    int64_t rows = shape->batch * shape->m, weights;
    if (shape->n > INT64_MAX / 64 / PC_GROUPS_MOST / shape->k || rows > INT64_MAX / 64 / shape->n ||
        rows > INT64_MAX / 64 / shape->k || pc_gemm_flops(shape) == 0)
        return pc_error_set(error, PC_ERROR_INPUT,
                            "grouped_gemm: %lld groups of %lld x %lld x %lld: more than can be counted; expected less "
                            "than 2^57 elements",
                            (long long)shape->batch, (long long)shape->m, (long long)shape->n, (long long)shape->k);
    weights = shape->batch * shape->n * shape->k;
    const int64_t counts[][3] = {[PC_KERNEL_FORWARD] = {rows * shape->k, weights, rows * shape->n},
                                 [PC_KERNEL_INPUT_GRADIENT] = {rows * shape->n, weights, rows * shape->k},
                                 [PC_KERNEL_WEIGHT_GRADIENT] = {rows * shape->n, rows * shape->k, weights}};
    for (int i = 0; i < found; i++) {
        tensors[i] = largest[i];
        if (i <= PC_GEMM_C) tensors[i].count = counts[role][i];
    }
    for (int i = PC_GEMM_A; i <= PC_GEMM_B && found == PC_GEMM_LOW_TENSORS; i++)
        tensors[i == PC_GEMM_A ? PC_GEMM_A_SCALE : PC_GEMM_B_SCALE].count =
            pc_gemm_group_scales(role, shape, i, shape->batch);
    *count = found;
    return PC_OK;
}

/* 0 of a shape that cannot be. */
int64_t pc_gemm_grouped_bytes(pc_kernel_role role, const pc_kernel_shape *shape) {
    pc_tensor tensors[PC_KERNEL_TENSORS];
    int count;
    int64_t bytes = 0;
    if (pc_gemm_grouped_tensors(role, shape->scaling, shape, tensors, &count, NULL)) return 0;
    for (int i = 0; i < count; i++)
        bytes += tensors[i].count * pc_dtype_bytes(tensors[i].dtype) * (tensors[i].use == PC_TENSOR_IN_PLACE ? 2 : 1);
    return bytes;
}
