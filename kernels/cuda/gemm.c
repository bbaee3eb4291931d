/* The families of kernels/gemm.h and gemm_low.h over cuBLASLt: the library names some ways to compute a product, the
 * fastest here is kept. */
#include "kernels/gemm.h"

#include "engine/alloc.h"
#include "kernels/cuda/blas.h"
#include "kernels/cuda/gemm_choices.h"
#include "kernels/cuda/runtime.h"
#include "kernels/families.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

enum { CANDIDATES = 8, TENSORS = PC_GEMM_PRE + 1 };
_Static_assert((int)TENSORS == (int)PC_GEMM_LOW_TENSORS, "room for those of either");

static int tensor_count(pc_epilogue epilogue, pc_low_scaling scaling) {
    if (scaling != PC_LOW_NONE) return PC_GEMM_LOW_TENSORS;
    return epilogue == PC_EPILOGUE_NONE ? PC_GEMM_C + 1 : epilogue == PC_EPILOGUE_BIAS ? PC_GEMM_BIAS + 1 : TENSORS;
}

/* ---- what was chosen so far ---- */

/* Compared as bytes. */
_Static_assert(sizeof(pc_gemm_key) == 4 * 8 + 5 * 4 + 12, "a key has no gaps");

static pc_gemm_key key_of(pc_kernel_role role, const pc_kernel_shape *s, void *const *tensors) {
    pc_gemm_key key = {.batch = s->batch, .m = s->m, .n = s->n, .k = s->k};
    for (int i = 0; tensors && i < tensor_count(s->epilogue, s->scaling); i++)
        key.alignment[i] = pc_blas_alignment(tensors[i]);
    key.role = (uint8_t)role;
    key.dtype = (uint8_t)s->dtype;
    key.epilogue = (uint8_t)s->epilogue;
    key.accumulates = s->accumulates;
    key.scaling = (uint8_t)s->scaling;
    key.low = (uint8_t)s->low;
    return key;
}

static pc_gemm_choice *find(pc_gemm_choices *choices, const pc_gemm_key *key) {
    for (int i = 0; i < choices->count; i++) {
        int place = (choices->last + i) % choices->count;
        if (memcmp(&choices->list[place].key, key, sizeof *key) != 0) continue;
        choices->last = place;
        return &choices->list[place];
    }
    return NULL;
}

/* The same product, however its tensors were aligned: the last that was prepared. */
static const pc_gemm_choice *find_any(const pc_gemm_choices *choices, pc_gemm_key key) {
    for (int i = choices->count - 1; i >= 0; i--) {
        memcpy(key.alignment, choices->list[i].key.alignment, sizeof key.alignment);
        if (memcmp(&choices->list[i].key, &key, sizeof key) == 0) return &choices->list[i];
    }
    return NULL;
}

static pc_code keep(pc_gemm_choices *choices, const pc_gemm_choice *choice, pc_error *error) {
    if (choices->count == choices->room) {
        int room = choices->room ? 2 * choices->room : 64;
        pc_gemm_choice *list = pc_realloc(choices->list, (size_t)room, sizeof *list);
        if (!list) return pc_error_no_memory(error);
        choices->list = list;
        choices->room = room;
    }
    choices->last = choices->count;
    choices->list[choices->count++] = *choice;
    return PC_OK;
}

void pc_gemm_choices_free(pc_blas *blas, pc_gemm_choices *choices) {
    for (int i = 0; i < choices->count; i++) pc_blas_setup_free(blas, &choices->list[i].setup);
    pc_free(choices->list);
    memset(choices, 0, sizeof *choices);
}

/* ---- one way, enqueued ---- */

static bool has_gelu_apart(const pc_gemm_choice *choice) {
    return choice->key.epilogue == PC_EPILOGUE_BIAS_GELU && choice->form != PC_GEMM_IN_ONE;
}

/* The tensors as the library gets them. */
static void give(const pc_gemm_choice *choice, void *const *tensors, void *given[TENSORS]) {
    int count = tensor_count((pc_epilogue)choice->key.epilogue, (pc_low_scaling)choice->key.scaling);
    memset(given, 0, TENSORS * sizeof *given);
    for (int i = 0; i < count; i++) given[i] = tensors[i];
    if (has_gelu_apart(choice)) given[PC_GEMM_C] = tensors[PC_GEMM_PRE];
}

static pc_code enqueue_gelu(pc_device *device, const pc_gemm_key *key, void *const *tensors, pc_error *error) {
    const pc_kernel_shape shape = {.dtype = (pc_dtype)key->dtype, .m = key->m, .n = key->n};
    void *const from_pre_to_c[] = {tensors[PC_GEMM_PRE], tensors[PC_GEMM_C]};
    return pc_family_gelu_forward.launch(device, &shape, from_pre_to_c, error);
}

static pc_code enqueue_copy(pc_device *device, void *to, const void *from, int64_t bytes, pc_error *error) {
    return pc_cuda_check(cudaMemcpyAsync(to, from, (size_t)bytes, cudaMemcpyDeviceToDevice, device->stream),
                         "cudaMemcpyAsync", error);
}

/* One row, and then as many as there are already, until all are there. */
static pc_code enqueue_bias(pc_device *device, const pc_gemm_key *key, void *const given[TENSORS], pc_error *error) {
    int64_t row = key->n * pc_dtype_bytes((pc_dtype)key->dtype);
    char *rows = given[PC_GEMM_C];
    pc_code code = enqueue_copy(device, rows, given[PC_GEMM_BIAS], row, error);
    for (int64_t done = 1; done < key->m && code == PC_OK; done *= 2) {
        int64_t more = done < key->m - done ? done : key->m - done;
        code = enqueue_copy(device, rows + done * row, rows, more * row, error);
    }
    return code;
}

static int launches_of(const pc_gemm_choice *choice) {
    int launches = has_gelu_apart(choice) ? 2 : 1;
    if (choice->form != PC_GEMM_BIAS_BEFORE) return launches;
    launches++;
    for (int64_t done = 1; done < choice->key.m; done *= 2) launches++;
    return launches;
}

/* An epilogue in steps goes to the device's stream: `place` is that of products without one. */
static pc_code enqueue(pc_device *device, pc_gemm_choice *choice, void *const *tensors, const pc_gemm_place *place,
                       pc_error *error) {
    void *given[TENSORS];
    pc_code code = PC_OK;
    give(choice, tensors, given);
    if (choice->form == PC_GEMM_BIAS_BEFORE) code = enqueue_bias(device, &choice->key, given, error);
    if (code == PC_OK)
        code = pc_blas_setup_enqueue(device->blas, &choice->setup, &choice->way, given, place->stream, place->workspace,
                                     error);
    if (code == PC_OK && has_gelu_apart(choice)) code = enqueue_gelu(device, &choice->key, tensors, error);
    return code;
}

/* ---- which ways there are ---- */

/* Of the product in the choice's form. */
static pc_code ways_of(pc_blas *blas, pc_kernel_role role, const pc_kernel_shape *shape, void *const *tensors,
                       pc_gemm_choice *choice, pc_blas_algorithm *ways, int *count, pc_error *error) {
    void *given[TENSORS];
    pc_kernel_shape asked = *shape;
    if (choice->form == PC_GEMM_GELU_APART) asked.epilogue = PC_EPILOGUE_BIAS;
    if (choice->form == PC_GEMM_BIAS_BEFORE) {
        asked.epilogue = PC_EPILOGUE_NONE;
        asked.accumulates = true;
    }
    give(choice, tensors, given);
    *count = 0;
    pc_code code = pc_blas_setup_make(blas, role, &asked, &choice->setup, error);
    if (code != PC_OK) return code;
    code = pc_blas_setup_ways(blas, &choice->setup, given, CANDIDATES, ways, count, error);
    if (code != PC_OK || *count == 0) pc_blas_setup_free(blas, &choice->setup);
    return code;
}

/* Whether the form means anything for the epilogue. The library keeps what goes into GELU only in rows of a multiple of
 * 8. */
static bool is_form(const pc_kernel_shape *shape, pc_gemm_form form) {
    if (shape->epilogue == PC_EPILOGUE_NONE) return form == PC_GEMM_IN_ONE;
    if (shape->epilogue == PC_EPILOGUE_BIAS) return form != PC_GEMM_GELU_APART;
    return form != PC_GEMM_IN_ONE || shape->n % 8 == 0;
}

/* What the library cannot do in one, or refuses to, is done in steps. */
static pc_code describe(pc_blas *blas, pc_kernel_role role, const pc_kernel_shape *shape, void *const *tensors,
                        pc_gemm_choice *choice, pc_blas_algorithm *ways, int *count, pc_error *error) {
    pc_error refusal = {.code = PC_OK};
    memset(choice, 0, sizeof *choice);
    choice->key = key_of(role, shape, tensors);
    for (int form = PC_GEMM_IN_ONE; form <= PC_GEMM_BIAS_BEFORE; form++) {
        if (!is_form(shape, (pc_gemm_form)form)) continue;
        choice->form = (pc_gemm_form)form;
        pc_code code = ways_of(blas, role, shape, tensors, choice, ways, count, &refusal);
        if (code == PC_OK && *count > 0) return PC_OK;
        if (code == PC_ERROR_NO_MEMORY) break;
    }
    if (refusal.code != PC_OK) return pc_error_copy(error, &refusal);
    return pc_error_set(error, PC_ERROR_INPUT, "cuBLASLt has no way to multiply %lld x (%lld x %lld by %lld x %lld)",
                        (long long)shape->batch, (long long)shape->m, (long long)shape->k, (long long)shape->k,
                        (long long)shape->n);
}

/* ---- which is the fastest ---- */

typedef struct trial {
    pc_device *device;
    pc_gemm_choice *choice;
    void *const *tensors;
} trial;

static pc_code run_trial(void *self, int repeat, pc_error *error) {
    (void)repeat;
    const trial *of = self;
    const pc_gemm_place place = {of->device->stream, NULL};
    return enqueue(of->device, of->choice, of->tensors, &place, error);
}

/* Short ones in a graph, for the host is slower than they are; long ones once, behind one that loads the kernel. */
static pc_code time_way(trial *of, double *seconds, pc_error *error) {
    enum { IN_GRAPH = 20, SAMPLES = 3 };
    const double is_short_s = 50e-6, is_long_s = 5e-3;
    double first, again;
    pc_code code = pc_device_time(of->device, run_trial, of, 1, false, &first, error);
    if (code == PC_OK) code = pc_device_time(of->device, run_trial, of, 1, false, &first, error);
    for (int i = 0; i < SAMPLES && code == PC_OK && first < is_long_s; i++) {
        bool is_short = first < is_short_s;
        int repeats = is_short ? IN_GRAPH : 1;
        code = pc_device_time(of->device, run_trial, of, repeats, is_short, &again, error);
        if (code == PC_OK && again / repeats < first) first = again / repeats;
    }
    if (code == PC_OK) *seconds = first;
    return code;
}

/* The fastest of the ways into the choice. One that the library offers and then refuses is passed over; a device that
 * was lost on the way is an error. */
static pc_code choose(pc_device *device, pc_gemm_choice *choice, const pc_blas_algorithm *ways, int count,
                      void *const *tensors, pc_error *error) {
    trial of = {device, choice, tensors};
    pc_error refusal = {.code = PC_OK};
    int best = -1;
    double best_s = 0;
    for (int i = 0; i < count && !device->is_lost; i++) {
        double seconds;
        choice->way = ways[i];
        if (time_way(&of, &seconds, &refusal) != PC_OK || (best >= 0 && seconds >= best_s)) continue;
        best = i;
        best_s = seconds;
    }
    if (best < 0 || device->is_lost) return pc_error_copy(error, &refusal);
    choice->way = ways[best];
    return PC_OK;
}

/* Sums go to a copy of c, so that trying leaves it as it is. Without the room for one the library's own first choice
 * stands, untried. */
static pc_code choose_aside(pc_device *device, const pc_kernel_shape *shape, pc_gemm_choice *choice,
                            const pc_blas_algorithm *ways, int count, void *const *tensors, pc_error *error) {
    if (!shape->accumulates) return choose(device, choice, ways, count, tensors, error);
    int64_t element = choice->key.role == PC_KERNEL_WEIGHT_GRADIENT ? 4 : 2;
    int64_t bytes = shape->batch * shape->m * shape->n * element;
    void *aside[TENSORS];
    give(choice, tensors, aside); /* sums have no epilogue */
    pc_code code = pc_device_allocate(device, bytes, &aside[PC_GEMM_C], error);
    if (code != PC_OK) {
        choice->way = ways[0];
        return code == PC_ERROR_NO_MEMORY ? PC_OK : code;
    }
    code = enqueue_copy(device, aside[PC_GEMM_C], tensors[PC_GEMM_C], bytes, error);
    if (code == PC_OK) code = choose(device, choice, ways, count, aside, error);
    pc_device_free(device, aside[PC_GEMM_C]);
    return code;
}

/* ---- the families ---- */

pc_code pc_gemm_open(pc_device *device, pc_error *error) {
    pc_device_enter(device);
    return device->blas ? PC_OK : pc_error_copy(error, &device->blas_error);
}

static pc_code open_blas(pc_kernel_role role, pc_device *device, const pc_kernel_shape *shape, pc_error *error) {
    bool is_low = shape->scaling != PC_LOW_NONE;
    pc_code code = is_low ? pc_gemm_low_check(role, shape, error) : pc_gemm_check(role, shape, error);
    return code == PC_OK ? pc_gemm_open(device, error) : code;
}

/* A new choice for these tensors: tried out, or, within a recording, the library's own. */
static pc_code learn(pc_kernel_role role, pc_device *device, const pc_kernel_shape *shape, void *const *tensors,
                     bool is_tried, pc_error *error) {
    pc_blas_algorithm ways[CANDIDATES];
    pc_gemm_choice choice;
    int count;
    pc_code code = describe(device->blas, role, shape, tensors, &choice, ways, &count, error);
    if (code != PC_OK) return code;
    choice.way = ways[0];
    if (is_tried) code = choose_aside(device, shape, &choice, ways, count, tensors, error);
    if (code == PC_OK) code = keep(pc_blas_choices(device->blas), &choice, error);
    if (code != PC_OK) pc_blas_setup_free(device->blas, &choice.setup);
    return code;
}

static pc_code prepare(pc_kernel_role role, pc_device *device, const pc_kernel_shape *shape, void *const *tensors,
                       pc_error *error) {
    assert(!device->is_recording);
    pc_code code = open_blas(role, device, shape, error);
    if (code != PC_OK) return code;
    pc_gemm_key key = key_of(role, shape, tensors);
    if (find(pc_blas_choices(device->blas), &key)) return PC_OK;
    return learn(role, device, shape, tensors, true, error);
}

pc_code pc_gemm_learn(pc_kernel_role role, pc_device *device, const pc_kernel_shape *shape, void *const *tensors,
                      pc_error *error) {
    pc_gemm_key key = key_of(role, shape, tensors);
    if (find(pc_blas_choices(device->blas), &key)) return PC_OK;
    return learn(role, device, shape, tensors, false, error);
}

/* What was not prepared, or for tensors of another alignment, is computed in the way that the library proposes. */
pc_code pc_gemm_enqueue_at(pc_kernel_role role, pc_device *device, const pc_kernel_shape *shape, void *const *tensors,
                           const pc_gemm_place *place, pc_error *error) {
    pc_code code = pc_gemm_learn(role, device, shape, tensors, error);
    if (code != PC_OK) return code;
    pc_gemm_key key = key_of(role, shape, tensors);
    return enqueue(device, find(pc_blas_choices(device->blas), &key), tensors, place, error);
}

static pc_code launch(pc_kernel_role role, pc_device *device, const pc_kernel_shape *shape, void *const *tensors,
                      pc_error *error) {
    pc_code code = open_blas(role, device, shape, error);
    if (code != PC_OK) return code;
    const pc_gemm_place place = {device->stream, NULL};
    return pc_gemm_enqueue_at(role, device, shape, tensors, &place, error);
}

static pc_code attributes(pc_kernel_role role, pc_device *device, const pc_kernel_shape *shape,
                          pc_kernel_attributes *made, pc_error *error) {
    pc_code code = open_blas(role, device, shape, error);
    if (code != PC_OK) return code;
    const pc_gemm_choice *choice = find_any(pc_blas_choices(device->blas), key_of(role, shape, NULL));
    if (!choice)
        return pc_error_set(error, PC_ERROR_INPUT,
                            "cuBLASLt: nothing is chosen yet; expected a product that was prepared");
    memset(made, 0, sizeof *made);
    pc_blas_way_name(device->blas, &choice->way, made->kernel, (int)sizeof made->kernel);
    made->registers = -1;
    made->workspace_bytes = (int64_t)choice->way.workspace_bytes;
    made->launches = launches_of(choice);
    return PC_OK;
}

pc_code pc_gemm_can(pc_low_scaling scaling, pc_device *device, pc_error *error) {
    const pc_device_info *info = &device->info;
    if (!device->blas) return pc_error_copy(error, &device->blas_error);
    return pc_blas_can(device->blas, scaling, info->compute_major, info->compute_minor, error);
}

PC_GEMM_FAMILY(forward, PC_KERNEL_FORWARD, prepare, launch, attributes);
PC_GEMM_FAMILY(input_gradient, PC_KERNEL_INPUT_GRADIENT, prepare, launch, attributes);
PC_GEMM_FAMILY(weight_gradient, PC_KERNEL_WEIGHT_GRADIENT, prepare, launch, attributes);

PC_GEMM_LOW_FAMILIES(fp8_gemm, PC_LOW_TENSOR, pc_gemm_can, prepare, launch, attributes);
PC_GEMM_LOW_FAMILIES(fp8_block_gemm, PC_LOW_BLOCK, pc_gemm_can, prepare, launch, attributes);
PC_GEMM_LOW_FAMILIES(mxfp8_gemm, PC_LOW_MX, pc_gemm_can, prepare, launch, attributes);
