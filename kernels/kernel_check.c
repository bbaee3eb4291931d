#include "kernels/kernel_check.h"

#include "engine/alloc.h"
#include "engine/random.h"
#include "kernels/dtype.h"
#include "kernels/fill.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { GUARD_BYTES = 512, BOTH_GUARDS_BYTES = 2 * GUARD_BYTES, GUARD_BYTE = 0xa5 };

/* One tensor: on the device between two guards, and on the host. */
typedef struct held {
    pc_tensor tensor;
    int64_t bytes;
    char *block;   /* on the device: guard, tensor, guard */
    char *first;   /* what the kernel found, guards included */
    char *found;   /* what it left */
    double *right; /* inputs as rounded; then what the reference made; NULL of scratch */
} held;

typedef struct bench {
    pc_device *device;
    const pc_kernel_family *family;
    const pc_kernel_shape *shape;
    uint64_t seed;
    int count;
    held held[PC_KERNEL_TENSORS];
    void *address[PC_KERNEL_TENSORS];
    double *values[PC_KERNEL_TENSORS];
} bench;

/* ---- memory ---- */

static void put_down(bench *b) {
    for (int i = 0; i < b->count; i++) {
        held *h = &b->held[i];
        pc_device_free(b->device, h->block);
        pc_free(h->first);
        pc_free(h->found);
        pc_free(h->right);
    }
}

static pc_code take_up(bench *b, held *h, pc_error *error) {
    void *block;
    size_t bytes = (size_t)h->bytes + BOTH_GUARDS_BYTES;
    pc_code code = pc_device_allocate(b->device, (int64_t)bytes, &block, error);
    if (code) return code;
    h->block = block;
    h->first = pc_realloc(NULL, bytes, 1);
    h->found = pc_realloc(NULL, bytes, 1);
    bool is_looked_at = h->tensor.use != PC_TENSOR_SCRATCH;
    if (is_looked_at) h->right = pc_alloc((size_t)h->tensor.count, sizeof *h->right);
    if (!h->first || !h->found || (is_looked_at && !h->right)) return pc_error_no_memory(error);
    return PC_OK;
}

static pc_code prepare_all(bench *b, pc_error *error) {
    pc_tensor tensors[PC_KERNEL_TENSORS];
    int count = 0;
    memset(tensors, 0, sizeof tensors);
    pc_code code = b->family->tensors(b->shape, tensors, &count, error);
    if (code) return code;
    b->count = count;
    for (int i = 0; i < count; i++) {
        held *h = &b->held[i];
        *h = (held){.tensor = tensors[i], .bytes = tensors[i].count * pc_dtype_bytes(tensors[i].dtype)};
        code = take_up(b, h, error);
        if (code) return code;
        b->address[i] = h->block + GUARD_BYTES;
        b->values[i] = h->right;
    }
    return PC_OK;
}

/* ---- before it runs ---- */

static bool is_read(const pc_tensor *tensor) {
    return tensor->use == PC_TENSOR_INPUT || tensor->use == PC_TENSOR_IN_PLACE;
}

static pc_code fill_one(const bench *b, int i, pc_error *error) {
    const held *h = &b->held[i];
    const pc_tensor *t = &h->tensor;
    int64_t all = h->bytes + BOTH_GUARDS_BYTES;
    memset(h->first, GUARD_BYTE, (size_t)all);
    pc_code code = pc_device_upload(b->device, h->block, h->first, all, error);
    if (code) return code;
    uint64_t seed = pc_mix(b->seed + (uint64_t)i);
    code = pc_device_fill(b->device, b->address[i], t->dtype, t->count, is_read(t) ? t->fill : PC_FILL_POISON, t->scale,
                          seed, error);
    return code ? code : pc_device_download(b->device, h->first, h->block, all, error);
}

static pc_code fill_all(const bench *b, pc_error *error) {
    for (int i = 0; i < b->count; i++) {
        pc_code code = fill_one(b, i, error);
        if (code) return code;
    }
    return PC_OK;
}

/* The right answer, of the inputs as they were rounded; outputs begin as NaN here too. */
static void make_right(const bench *b) {
    for (int i = 0; i < b->count; i++) {
        const held *h = &b->held[i];
        for (int64_t j = 0; h->right && j < h->tensor.count; j++)
            h->right[j] = is_read(&h->tensor) ? pc_dtype_get(h->tensor.dtype, h->first + GUARD_BYTES, j) : (double)NAN;
    }
    b->family->reference(b->shape, b->values);
}

static pc_code run(const bench *b, pc_error *error) {
    pc_code code = b->family->launch(b->device, b->shape, b->address, error);
    if (!code) code = pc_device_wait(b->device, error);
    for (int i = 0; i < b->count && !code; i++) {
        const held *h = &b->held[i];
        code = pc_device_download(b->device, h->found, h->block, h->bytes + BOTH_GUARDS_BYTES, error);
    }
    return code;
}

/* ---- what came of it ---- */

/* The first fault's words stand. */
static void PC_PRINTF(2, 3) complain(pc_kernel_check *check, const char *format, ...) {
    if (check->message[0]) return;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(check->message, sizeof check->message, format, arguments);
    va_end(arguments);
    check->is_right = false;
}

/* As a fraction of what is allowed; infinite where nothing would excuse it. */
static double error_of(const pc_tensor *tensor, double got, double right, double typical) {
    double rounded = pc_dtype_round(tensor->dtype, right);
    if (got == rounded) return 0;
    if (isnan(got) || isnan(right) || isinf(got) || isinf(rounded) || tensor->tolerance == 0) return INFINITY;
    double allowed = tensor->tolerance * (fabs(right) + typical) + pc_dtype_half_unit(tensor->dtype, right);
    return fabs(got - right) / allowed;
}

/* The root of the mean square of what is finite. */
static double typical_of(const held *h) {
    double sum = 0;
    int64_t count = 0;
    for (int64_t i = 0; i < h->tensor.count; i++) {
        if (!isfinite(h->right[i])) continue;
        sum += h->right[i] * h->right[i];
        count++;
    }
    return count ? sqrt(sum / (double)count) : 0;
}

static void compare(const held *h, pc_kernel_check *check) {
    double typical = typical_of(h);
    for (int64_t i = 0; i < h->tensor.count; i++) {
        double got = pc_dtype_get(h->tensor.dtype, h->found + GUARD_BYTES, i), right = h->right[i];
        double error = error_of(&h->tensor, got, right, typical);
        if (error > check->worst_error) check->worst_error = error;
        if (error > 1)
            complain(check, "%s[%" PRId64 "]: got %.9g; expected %.9g (%g of what is allowed)", h->tensor.name, i, got,
                     right, error);
    }
}

/* The first byte of `count` that differs; -1 if none does. */
static int64_t first_difference(const char *a, const char *b, int64_t count) {
    if (memcmp(a, b, (size_t)count) == 0) return -1;
    int64_t i = 0;
    while (a[i] == b[i]) i++;
    return i;
}

static void check_guards(const held *h, pc_kernel_check *check) {
    int64_t before = first_difference(h->first, h->found, GUARD_BYTES);
    int64_t behind =
        first_difference(h->first + GUARD_BYTES + h->bytes, h->found + GUARD_BYTES + h->bytes, GUARD_BYTES);
    if (before >= 0)
        complain(check, "%s: written %" PRId64 " bytes before its begin", h->tensor.name, GUARD_BYTES - before);
    if (behind >= 0) complain(check, "%s: written %" PRId64 " bytes behind its end", h->tensor.name, behind);
    if (h->tensor.use != PC_TENSOR_INPUT) return;
    int64_t changed = first_difference(h->first + GUARD_BYTES, h->found + GUARD_BYTES, h->bytes);
    if (changed >= 0) complain(check, "%s: an input, and byte %" PRId64 " was written", h->tensor.name, changed);
}

static void judge(const bench *b, pc_kernel_check *check) {
    *check = (pc_kernel_check){.is_right = true};
    for (int i = 0; i < b->count; i++) {
        const held *h = &b->held[i];
        check_guards(h, check);
        if (h->tensor.use == PC_TENSOR_OUTPUT || h->tensor.use == PC_TENSOR_IN_PLACE) compare(h, check);
    }
}

/* ---- once more, without room to spare ---- */

/* Every tensor is an allocation of its own length, so that a tool that watches accesses sees those beyond it. What
 * stood in outputs and scratch before is another each time: the same inputs have to give the same bytes. */
static pc_code run_bare(const bench *b, void **bare, pc_kernel_check *check, pc_error *error) {
    pc_code code = PC_OK;
    for (int i = 0; i < b->count && !code; i++) {
        const held *h = &b->held[i];
        code = pc_device_allocate(b->device, h->bytes, &bare[i], error);
        if (!code && is_read(&h->tensor))
            code = pc_device_upload(b->device, bare[i], h->first + GUARD_BYTES, h->bytes, error);
        else if (!code)
            code = pc_device_fill(b->device, bare[i], PC_UINT8, h->bytes, PC_FILL_ZERO, 0, 0, error);
    }
    if (!code) code = b->family->launch(b->device, b->shape, bare, error);
    if (!code) code = pc_device_wait(b->device, error);
    for (int i = 0; i < b->count && !code; i++) {
        const held *h = &b->held[i];
        if (h->tensor.use == PC_TENSOR_SCRATCH) continue;
        code = pc_device_download(b->device, h->first, bare[i], h->bytes, error);
        if (code) break;
        int64_t differs = first_difference(h->first, h->found + GUARD_BYTES, h->bytes);
        if (differs >= 0)
            complain(check, "%s: byte %" PRId64 " of a second run differs from the first", h->tensor.name, differs);
    }
    return code;
}

static pc_code repeat(const bench *b, pc_kernel_check *check, pc_error *error) {
    void *bare[PC_KERNEL_TENSORS] = {NULL};
    pc_code code = run_bare(b, bare, check, error);
    for (int i = 0; i < b->count; i++) pc_device_free(b->device, bare[i]);
    return code;
}

pc_code pc_kernel_check_run(pc_device *device, const pc_kernel_family *family, const pc_kernel_shape *shape,
                            uint64_t seed, pc_kernel_check *check, pc_error *error) {
    bench b = {.device = device, .family = family, .shape = shape, .seed = seed};
    pc_kernel_check found;
    pc_code code = prepare_all(&b, error);
    if (!code && family->prepare) { /* may try algorithms, and write */
        code = fill_all(&b, error);
        if (!code) code = family->prepare(device, shape, b.address, error);
    }
    if (!code) code = fill_all(&b, error);
    if (!code) {
        make_right(&b);
        code = run(&b, error);
    }
    if (!code) {
        judge(&b, &found);
        code = repeat(&b, &found, error);
    }
    put_down(&b);
    if (!code) *check = found;
    return code;
}

/* ---- shapes ---- */

/* Every field that any family of the group uses is set. */
#define MODEL .k = 8, .heads = 4, .kv_heads = 2, .batch = 2, .seed = 7

static const pc_kernel_shape of_gemm[] = {
    {.batch = 1, .m = 16, .n = 16, .k = 16},
    {.batch = 1, .m = 1, .n = 8, .k = 24},
    {.batch = 2, .m = 40, .n = 24, .k = 72, .accumulates = true},
    {.batch = 1, .m = 33, .n = 48, .k = 17, .epilogue = PC_EPILOGUE_BIAS},
    {.batch = 1, .m = 64, .n = 32, .k = 8, .epilogue = PC_EPILOGUE_BIAS_GELU},
};
/* Multiples of what every scaling wants: a block, blocks that are not full, several. */
static const pc_kernel_shape of_gemm_low[] = {
    {.batch = 1, .m = 16, .n = 16, .k = 128},
    {.batch = 1, .m = 64, .n = 48, .k = 256},
    {.batch = 1, .m = 144, .n = 32, .k = 384, .accumulates = true},
    {.batch = 1, .m = 32, .n = 160, .k = 640},
};
/* One group, few, some of the least rows, more than streams. */
static const pc_kernel_shape of_grouped[] = {
    {.batch = 1, .m = 32, .n = 16, .k = 32},
    {.batch = 3, .m = 48, .n = 32, .k = 48, .accumulates = true},
    {.batch = 7, .m = 32, .n = 48, .k = 16},
    {.batch = 5, .m = 64, .n = 16, .k = 80, .accumulates = true},
};
/* Rows of two and more blocks of 128. */
static const pc_kernel_shape of_grouped_blocks[] = {
    {.batch = 1, .m = 256, .n = 128, .k = 128},
    {.batch = 2, .m = 256, .n = 256, .k = 128, .accumulates = true},
    {.batch = 3, .m = 256, .n = 128, .k = 128, .accumulates = true},
};
static const pc_kernel_shape of_attention[] = {
    {.batch = 1, .m = 16, .n = 16, .k = 64, .heads = 1, .kv_heads = 1},
    {.batch = 2, .m = 70, .n = 70, .k = 32, .heads = 2, .kv_heads = 1, .is_causal = true},
    {.batch = 1, .m = 9, .n = 130, .k = 128, .heads = 2, .kv_heads = 2, .is_causal = true},
    {.batch = 1, .m = 65, .n = 33, .k = 40, .heads = 4, .kv_heads = 2, .is_causal = true},
};
static const pc_kernel_shape of_norm[] = {
    {.m = 4, .n = 64, MODEL},   {.m = 1, .n = 1, MODEL},    {.m = 7, .n = 33, MODEL},
    {.m = 3, .n = 1000, MODEL}, {.m = 2, .n = 2048, MODEL}, {.m = 5, .n = 4104, MODEL},
    {.m = 2, .n = 4099, MODEL}, {.m = 37, .n = 640, MODEL}, {.m = 2, .n = 12296, MODEL},
};
static const pc_kernel_shape of_elementwise[] = {
    {.m = 4, .n = 64, MODEL},
    {.m = 1, .n = 1, MODEL},
    {.m = 7, .n = 33, MODEL, .probability = 0.25f},
    {.m = 3, .n = 1000, MODEL, .probability = 0.5f, .is_causal = true},
    {.m = 70, .n = 72, MODEL, .is_causal = true},
    {.m = 5, .n = 4104, MODEL, .probability = 0.1f},
    {.m = 2, .n = 4099, MODEL},
};
static const pc_kernel_shape of_optimizer[] = {
    {.m = 4, .n = 64, MODEL},
    {.m = 1, .n = 1, MODEL},
    {.m = 7, .n = 33, MODEL},
    {.m = 13, .n = 1000, MODEL},
};

static const struct group {
    const pc_kernel_shape *shapes;
    int count;
} groups[PC_KERNEL_GROUPS] = {
    [PC_KERNEL_GEMM] = {of_gemm, sizeof of_gemm / sizeof *of_gemm},
    [PC_KERNEL_ATTENTION] = {of_attention, sizeof of_attention / sizeof *of_attention},
    [PC_KERNEL_NORM] = {of_norm, sizeof of_norm / sizeof *of_norm},
    [PC_KERNEL_ELEMENTWISE] = {of_elementwise, sizeof of_elementwise / sizeof *of_elementwise},
    [PC_KERNEL_OPTIMIZER] = {of_optimizer, sizeof of_optimizer / sizeof *of_optimizer},
    [PC_KERNEL_GROUPED_GEMM] = {of_grouped, sizeof of_grouped / sizeof *of_grouped},
};

/* In bf16, with a gradient of either format where a tensor has one scale. */
static void make_low(const pc_kernel_family *family, int number, pc_kernel_shape *shape) {
    shape->dtype = PC_BF16;
    shape->scaling = family->low->scaling;
    shape->low = number % 2 && shape->scaling == PC_LOW_TENSOR ? PC_E5M2 : PC_E4M3;
}

static const struct group *group_of(const pc_kernel_family *family) {
    static const struct group low = {of_gemm_low, sizeof of_gemm_low / sizeof *of_gemm_low};
    static const struct group blocks = {of_grouped_blocks, sizeof of_grouped_blocks / sizeof *of_grouped_blocks};
    if (family->low && family->group == PC_KERNEL_GEMM) return &low;
    return family->low && family->low->scaling == PC_LOW_BLOCK ? &blocks : &groups[family->group];
}

bool pc_kernel_check_shape(const pc_kernel_family *family, int number, pc_kernel_shape *shape) {
    const struct group *group = group_of(family);
    if (number < 0 || number >= 2 * group->count) return false;
    *shape = group->shapes[number / 2];
    shape->dtype = number % 2 ? PC_FP16 : PC_BF16;
    if (family->low) make_low(family, number, shape);
    if (family->group != PC_KERNEL_GEMM && family->group != PC_KERNEL_GROUPED_GEMM) return true;
    if (family->role != PC_KERNEL_FORWARD) shape->epilogue = PC_EPILOGUE_NONE;
    if (family->role != PC_KERNEL_WEIGHT_GRADIENT) shape->accumulates = false;
    return true;
}
