#include "kernels/attention_library.h"

#include "engine/alloc.h"
#include "kernels/attention.h"
#include "kernels/attention_shim.h"
#include "kernels/cuda/loaded_library.h"
#include "kernels/dtype.h"
#include "kernels/launch.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* What was found of a shape in one direction. */
typedef struct choice {
    pc_kernel_role role;
    pc_kernel_shape shape;
    bool is_chosen;
} choice;

struct pc_attention_library {
    void *library;
    __typeof__(pc_attention_shim_version) *version;
    __typeof__(pc_attention_shim_name) *its_name;
    __typeof__(pc_attention_shim_forward) *forward;
    __typeof__(pc_attention_shim_backward) *backward;
    char name[64];
    char fault[256];
    choice *choices;
    int count, room;
};

/* ---- opening ---- */

static const char expected_of_library[] = "a shared library with the functions of kernels/attention_shim.h";

static pc_code open_library(pc_attention_library *l, const char *path, pc_error *error) {
    const pc_shared_library_entry entries[] = {
        {"pc_attention_shim_version", &l->version, false},
        {"pc_attention_shim_name", &l->its_name, false},
        {"pc_attention_shim_forward", &l->forward, false},
        {"pc_attention_shim_backward", &l->backward, false},
    };
    const char *const names[] = {path, NULL};
    int count = sizeof entries / sizeof *entries;
    pc_code code =
        pc_shared_library_open("attention library", expected_of_library, names, entries, count, &l->library, error);
    if (code) return code;
    int version = l->version();
    const char *name = l->its_name();
    if (version != PC_ATTENTION_SHIM_VERSION)
        return pc_error_set(error, PC_ERROR_IO, "attention library %s: version %d of its functions; expected %d", path,
                            version, (int)PC_ATTENTION_SHIM_VERSION);
    snprintf(l->name, sizeof l->name, "%s", name && name[0] ? name : "attention library without a name");
    return PC_OK;
}

static void free_library(pc_attention_library *l) {
    pc_shared_library_close(l->library);
    pc_free(l->choices);
    pc_free(l);
}

pc_code pc_attention_library_open(pc_device *device, const char *path, pc_error *error) {
    pc_attention_library *made = pc_alloc(1, sizeof *made);
    if (!made) return pc_error_no_memory(error);
    pc_code code = open_library(made, path, error);
    if (code) {
        free_library(made);
        return code;
    }
    pc_attention_library_close(device);
    pc_device_set_attention(device, made, made->name);
    return PC_OK;
}

void pc_attention_library_close(pc_device *device) {
    pc_attention_library *l = device ? pc_device_attention(device) : NULL;
    if (!l) return;
    pc_device_set_attention(device, NULL, "");
    free_library(l);
}

const char *pc_attention_library_fault(const pc_device *device) {
    const pc_attention_library *l = device ? pc_device_attention(device) : NULL;
    return l ? l->fault : "";
}

/* The first fault's words stand. */
static void PC_PRINTF(2, 3) refuse(pc_attention_library *l, const char *format, ...) {
    if (l->fault[0]) return;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(l->fault, sizeof l->fault, format, arguments);
    va_end(arguments);
}

/* ---- what was found ---- */

static bool is_same_shape(const pc_kernel_shape *a, const pc_kernel_shape *b) {
    return a->dtype == b->dtype && a->batch == b->batch && a->m == b->m && a->n == b->n && a->k == b->k &&
           a->heads == b->heads && a->kv_heads == b->kv_heads && a->is_causal == b->is_causal;
}

static const choice *find(const pc_attention_library *l, pc_kernel_role role, const pc_kernel_shape *shape) {
    for (int i = 0; i < l->count; i++)
        if (l->choices[i].role == role && is_same_shape(&l->choices[i].shape, shape)) return &l->choices[i];
    return NULL;
}

static pc_code keep(pc_attention_library *l, choice found, pc_error *error) {
    if (l->count == l->room) {
        int room = l->room ? 2 * l->room : 64;
        choice *grown = pc_realloc(l->choices, (size_t)room, sizeof *grown);
        if (!grown) return pc_error_no_memory(error);
        l->choices = grown;
        l->room = room;
    }
    l->choices[l->count++] = found;
    return PC_OK;
}

/* ---- a call ---- */

static int32_t call_library(const pc_attention_library *l, pc_device *device, pc_kernel_role role,
                            const pc_kernel_shape *s, void *const *tensors) {
    pc_attention_shim_call call = {
        .dtype = s->dtype == PC_BF16 ? PC_ATTENTION_SHIM_BF16 : PC_ATTENTION_SHIM_FP16,
        .is_causal = s->is_causal,
        .batch = s->batch,
        .m = s->m,
        .n = s->n,
        .k = s->k,
        .heads = s->heads,
        .kv_heads = s->kv_heads,
        .stream = pc_device_stream(device),
        .query = tensors[PC_ATTENTION_QUERY],
        .key = tensors[PC_ATTENTION_KEY],
        .value = tensors[PC_ATTENTION_VALUE],
        .out = tensors[PC_ATTENTION_OUT],
        .log_sum = tensors[PC_ATTENTION_LOG_SUM],
    };
    if (role == PC_KERNEL_FORWARD) return l->forward(&call);
    call.out_gradient = tensors[PC_ATTENTION_OUT_GRADIENT];
    call.query_gradient = tensors[PC_ATTENTION_QUERY_GRADIENT];
    call.key_gradient = tensors[PC_ATTENTION_KEY_GRADIENT];
    call.value_gradient = tensors[PC_ATTENTION_VALUE_GRADIENT];
    return l->backward(&call);
}

pc_code pc_attention_library_launch(pc_device *device, const pc_kernel_family *family, const pc_kernel_shape *shape,
                                    void *const *tensors, pc_error *error) {
    const pc_attention_library *l = pc_device_attention(device);
    int32_t status = call_library(l, device, family->role, shape, tensors);
    if (status != PC_ATTENTION_SHIM_DONE)
        return pc_error_set(error, PC_ERROR_IO, "%s: %s returned %d; expected 0, as before", family->name, l->name,
                            (int)status);
    return pc_device_launched(device, family->name, error);
}

const char *pc_attention_library_runs(const pc_device *device, const pc_kernel_family *family,
                                      const pc_kernel_shape *shape) {
    const pc_attention_library *l = pc_device_attention(device);
    if (!l || l->fault[0]) return NULL;
    const choice *found = find(l, family->role, shape);
    return found && found->is_chosen ? l->name : NULL;
}

pc_code pc_attention_library_attributes(const char *name, pc_kernel_attributes *made) {
    *made = (pc_kernel_attributes){.registers = -1, .shared_bytes = -1, .workspace_bytes = -1, .launches = 1};
    snprintf(made->kernel, sizeof made->kernel, "%s", name);
    return PC_OK;
}

/* ---- is it right ---- */

/* A shape on trial. */
typedef struct trial {
    pc_device *device;
    pc_attention_library *library;
    const pc_kernel_family *family;
    pc_attention_launch *own;
    const pc_kernel_shape *shape;
    void *const *tensors;
    pc_tensor list[PC_KERNEL_TENSORS];
    int count;
    void *right[PC_KERNEL_TENSORS]; /* on the host: what our own kernel makes; NULL of what is no output */
} trial;

static int64_t bytes_of(const pc_tensor *tensor) {
    return tensor->count * pc_dtype_bytes(tensor->dtype);
}

/* Our own results to the host, and poison in their place. */
static pc_code run_own(trial *t, pc_error *error) {
    pc_code code = t->own(t->device, t->shape, t->tensors, error);
    if (!code) code = pc_device_wait(t->device, error);
    for (int i = 0; i < t->count && !code; i++) {
        const pc_tensor *tensor = &t->list[i];
        if (tensor->use != PC_TENSOR_OUTPUT) continue;
        t->right[i] = pc_realloc(NULL, (size_t)bytes_of(tensor), 1);
        if (!t->right[i]) return pc_error_no_memory(error);
        code = pc_device_download(t->device, t->right[i], t->tensors[i], bytes_of(tensor), error);
        if (!code)
            code = pc_device_fill(t->device, t->tensors[i], tensor->dtype, tensor->count, PC_FILL_POISON, 1, 0, error);
    }
    return code;
}

static double typical_of(const pc_tensor *tensor, const void *values) {
    double sum = 0;
    int64_t count = 0;
    for (int64_t i = 0; i < tensor->count; i++) {
        double x = pc_dtype_get(tensor->dtype, values, i);
        if (!isfinite(x)) continue;
        sum += x * x;
        count++;
    }
    return count ? sqrt(sum / (double)count) : 0;
}

/* Both may be off by what the family allows. */
static void compare(trial *t, const pc_tensor *tensor, const void *right, const void *got) {
    double typical = typical_of(tensor, right);
    for (int64_t i = 0; i < tensor->count; i++) {
        double a = pc_dtype_get(tensor->dtype, right, i), b = pc_dtype_get(tensor->dtype, got, i);
        double allowed = 2 * (tensor->tolerance * (fabs(a) + typical) + pc_dtype_half_unit(tensor->dtype, a));
        if (a == b || (isnan(a) && isnan(b)) || (isfinite(a) && fabs(a - b) <= allowed)) continue;
        refuse(t->library, "%s, %s: %s[%" PRId64 "] is %.6g; expected %.6g, as our own kernel gives", t->library->name,
               t->family->name, tensor->name, i, b, a);
        return;
    }
}

static pc_code compare_all(trial *t, pc_error *error) {
    pc_code code = pc_device_wait(t->device, error);
    for (int i = 0; i < t->count && !code; i++) {
        if (!t->right[i]) continue;
        void *got = pc_realloc(NULL, (size_t)bytes_of(&t->list[i]), 1);
        if (!got) return pc_error_no_memory(error);
        code = pc_device_download(t->device, got, t->tensors[i], bytes_of(&t->list[i]), error);
        if (!code) compare(t, &t->list[i], t->right[i], got);
        pc_free(got);
    }
    return code;
}

/* `can`: whether it does such a shape. */
static pc_code check(trial *t, bool *can, pc_error *error) {
    *can = false;
    pc_code code = run_own(t, error);
    if (code) return code;
    int32_t status = call_library(t->library, t->device, t->family->role, t->shape, t->tensors);
    if (status == PC_ATTENTION_SHIM_UNSUPPORTED) return PC_OK;
    if (status != PC_ATTENTION_SHIM_DONE) {
        refuse(t->library, "%s, %s: it returned %d; expected 0, or 1 where it cannot", t->library->name,
               t->family->name, (int)status);
        return pc_device_wait(t->device, error);
    }
    *can = true;
    return compare_all(t, error);
}

/* ---- is it faster ---- */

static pc_code own_work(void *self, int repeat, pc_error *error) {
    (void)repeat;
    const trial *t = self;
    return t->own(t->device, t->shape, t->tensors, error);
}

static pc_code library_work(void *self, int repeat, pc_error *error) {
    (void)repeat;
    const trial *t = self;
    return pc_attention_library_launch(t->device, t->family, t->shape, t->tensors, error);
}

/* The least of several goes, after one that counts for nothing. */
static pc_code best_of(trial *t, pc_device_work *work, double *seconds, pc_error *error) {
    enum { GOES = 5, REPEATS = 3 };
    double best = INFINITY, found;
    pc_code code = pc_device_time(t->device, work, t, 1, false, &found, error);
    for (int i = 0; i < GOES && !code; i++) {
        code = pc_device_time(t->device, work, t, REPEATS, false, &found, error);
        if (!code) best = fmin(best, found);
    }
    *seconds = best;
    return code;
}

static pc_code is_faster(trial *t, bool *answer, pc_error *error) {
    double own, other;
    pc_code code = best_of(t, own_work, &own, error);
    if (!code) code = best_of(t, library_work, &other, error);
    if (!code) *answer = other < own;
    return code;
}

pc_code pc_attention_library_prepare(pc_device *device, const pc_kernel_family *family, pc_attention_launch *own,
                                     const pc_kernel_shape *shape, void *const *tensors, pc_error *error) {
    pc_attention_library *l = pc_device_attention(device);
    if (!l || l->fault[0] || find(l, family->role, shape)) return PC_OK;
    trial t = {.device = device, .library = l, .family = family, .own = own, .shape = shape, .tensors = tensors};
    choice found = {family->role, *shape, false};
    bool can = false;
    pc_code code = family->tensors(shape, t.list, &t.count, error);
    if (!code) code = check(&t, &can, error);
    if (!code && can && !l->fault[0]) code = is_faster(&t, &found.is_chosen, error);
    for (int i = 0; i < t.count; i++) pc_free(t.right[i]);
    return code ? code : keep(l, found, error);
}
