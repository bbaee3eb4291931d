/* The workload counts the kernels of an eager Megatron and their bytes; a family's bytes are each of its tensors once,
 * and its time is that of all kernels that it takes. So an operation of several kernels is one run of a family if that
 * does the same work (the backward pass of a norm, which reads its inputs twice more). It is two runs if it is two
 * families (a gradient, and its sum for a bias). Otherwise it is as many runs as it has kernels, each of an equal share
 * of its bytes. */
#include "calib/profile/profile_private.h"

#include <string.h>

static pc_family_run run_of(const char *function, const char *direction, double times, double bytes) {
    return (pc_family_run){function, direction, times, bytes, NULL};
}

/* What makes numbers of 8 bits of those of 16, turns them or looks for the largest: moves bytes, as a copy does if the
 * profile has no such kernel. */
static bool is_cast(const char *function) {
    static const char *const casts[] = {"cast", "cast_transpose", "transpose", "amax", "hadamard"};
    for (size_t i = 0; i < sizeof casts / sizeof *casts; i++)
        if (strcmp(function, casts[i]) == 0) return true;
    return false;
}

/* Dropout alone is the bias-dropout-residual kernel's work, byte for byte. */
static const char *family_of(const char *function) {
    if (is_cast(function) || strcmp(function, "permute") == 0) return "copy";
    return strcmp(function, "dropout") == 0 ? "residual" : function;
}

/* Families that have no direction. */
static bool is_plain(const char *function) {
    static const char *const plain[] = {"add", "copy", "bias_gradient", "adam"};
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
        if (strcmp(function, plain[i]) == 0) return true;
    return false;
}

/* The share that the sum for a bias has of a backward operation's bytes, if there is a second kernel for it. Behind
 * dropout it is 2 of 7 bytes an element. For GELU, which reads gradient and input and writes a gradient, it is 2 of 8.
 * For SwiGLU, whose input and its gradient are twice as wide, it is 4 of 14. */
static double bias_share(const pc_operation *operation) {
    if (operation->role != PC_GEMM_INPUT_GRADIENT || operation->launches != 2) return 0.0;
    if (strcmp(operation->function, "residual") == 0) return 2.0 / 7.0;
    if (strcmp(operation->function, "gelu") == 0) return 2.0 / 8.0;
    return strcmp(operation->function, "swiglu") == 0 ? 4.0 / 14.0 : 0.0;
}

static int memory_runs(const pc_operation *operation, pc_family_run runs[PC_FAMILY_RUNS]) {
    bool is_backward = operation->role != PC_GEMM_FORWARD;
    const char *direction = is_plain(family_of(operation->function)) ? "" : is_backward ? "_backward" : "_forward";
    double bytes = (double)operation->bytes, launches = operation->launches > 0 ? (double)operation->launches : 1.0,
           bias = bias_share(operation);
    if (operation->kind == PC_OPERATION_NORM && is_backward) {
        runs[0] = run_of(operation->function, direction, 1.0, bytes * 6.0 / 10.0);
        return 1;
    }
    if (bias > 0.0) {
        runs[0] = run_of(operation->function, direction, 1.0, bytes * (1.0 - bias));
        runs[1] = run_of("bias_gradient", "", 1.0, bytes * bias);
        return 2;
    }
    if (strcmp(operation->function, "rotary") == 0) launches = 1.0; /* queries and keys are one family's */
    runs[0] = run_of(family_of(operation->function), direction, launches, bytes / launches);
    if (is_cast(operation->function)) runs[0].own = operation->function;
    return 1;
}

int pc_operation_runs(const pc_operation *operation, pc_family_run runs[PC_FAMILY_RUNS]) {
    switch (operation->kind) {
    case PC_OPERATION_NORM:
    case PC_OPERATION_ELEMENTWISE:
    case PC_OPERATION_OPTIMIZER:
        return operation->function && operation->bytes > 0 ? memory_runs(operation, runs) : 0;
    default:
        return 0;
    }
}
