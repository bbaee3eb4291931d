/* One shape of one kernel: its buffers, its samples, what the profile keeps of them. */
#include "calib/device/measure_private.h"

#include "engine/numbers.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- buffers ---- */

/* All sets of a tensor at once, what lies between them too. What is written is zeroed: no NaN slows or speeds it. */
static pc_code fill_tensor(const pc_bench *b, const pc_tensor *tensor, int number, uint64_t seed, pc_error *error) {
    bool is_read = tensor->use == PC_TENSOR_INPUT || tensor->use == PC_TENSOR_IN_PLACE;
    int64_t count = b->stride[number] * b->sets / pc_dtype_bytes(tensor->dtype);
    return pc_device_fill(b->device, b->base[number], tensor->dtype, count, is_read ? tensor->fill : PC_FILL_ZERO,
                          tensor->scale, seed + (uint64_t)number, error);
}

static pc_code open_tensors(pc_bench *b, uint64_t seed, pc_error *error) {
    pc_tensor tensors[PC_KERNEL_TENSORS];
    int count = 0;
    pc_code code = b->family->tensors(b->shape, tensors, &count, error);
    for (int t = 0; t < count && !code; t++) {
        int64_t bytes = tensors[t].count * pc_dtype_bytes(tensors[t].dtype);
        b->stride[t] = pc_round_up(bytes, PC_SHAPE_ALIGNMENT);
        code = pc_device_allocate(b->device, b->stride[t] * b->sets, &b->base[t], error);
        if (code) break;
        b->tensor_count = t + 1;
        code = fill_tensor(b, &tensors[t], t, seed, error);
    }
    return code;
}

static void set_addresses(const pc_bench *b, int64_t set, void *addresses[PC_KERNEL_TENSORS]) {
    for (int t = 0; t < b->tensor_count; t++) addresses[t] = (char *)b->base[t] + set * b->stride[t];
}

pc_code pc_bench_open(pc_bench *b, pc_measure *session, const pc_listed_shape *listed, pc_error *error) {
    *b = (pc_bench){.device = session->device,
                    .family = listed->family,
                    .shape = &listed->shape,
                    .sets = listed->sets,
                    .rotation = listed->sets};
    void *addresses[PC_KERNEL_TENSORS];
    pc_code code = open_tensors(b, session->request->seed, error);
    set_addresses(b, 0, addresses);
    if (!code && b->family->prepare) code = b->family->prepare(b->device, b->shape, addresses, error);
    if (code) pc_bench_close(b);
    return code;
}

void pc_bench_close(pc_bench *b) {
    for (int t = 0; t < b->tensor_count; t++) pc_device_free(b->device, b->base[t]);
    b->tensor_count = 0;
}

/* ---- time ---- */

static pc_code launch(void *self, int repeat, pc_error *error) {
    const pc_bench *b = self;
    void *addresses[PC_KERNEL_TENSORS];
    set_addresses(b, ((int64_t)b->next + repeat) % b->rotation, addresses);
    return b->family->launch(b->device, b->shape, addresses, error);
}

pc_code pc_bench_time(pc_bench *b, int repeats, bool in_graph, double *seconds, pc_error *error) {
    pc_code code = pc_device_time(b->device, launch, b, repeats, in_graph, seconds, error);
    if (code) return code;
    b->next = (int32_t)(((int64_t)b->next + repeats) % b->rotation);
    if (*seconds > 0.0) return PC_OK;
    return pc_error_set(error, PC_ERROR_IO, "%s: the device says that %d launches took %g s; expected more than 0",
                        b->family->name, repeats, *seconds);
}

/* How a sample is taken. */
typedef struct sampling {
    bool in_graph;
    int repeats;
    int leads; /* launches ahead of those that are timed */
} sampling;

static int repeats_for(const pc_measure_protocol *protocol, double launch_s, int most) {
    double wanted = ceil(protocol->sample_s / launch_s);
    return wanted < 1.0 ? 1 : wanted > most ? most : (int)wanted;
}

/* On an idle device the first launch arrives some microseconds behind the event that starts the time. Behind others it
 * does not; where a sample is so long that this does not show, they would only take time. A graph is uploaded first,
 * which waits for what is ahead; the device sees to it that it does not begin late (kernels/cuda/time.c). */
static int leads_for(double launch_s, int repeats, bool in_graph) {
    enum { LEADS_MOST = 3 };
    const double ahead_s = 50e-6, long_s = 5e-3;
    if (in_graph || launch_s * repeats > long_s) return 0;
    return (int)fmin(ceil(ahead_s / launch_s), LEADS_MOST);
}

static pc_code launch_leads(pc_bench *b, int leads, pc_error *error) {
    pc_code code = PC_OK;
    for (int i = 0; i < leads && !code; i++) code = launch(b, i, error);
    b->next = (int32_t)(((int64_t)b->next + leads) % b->rotation);
    return code;
}

/* By a first rough timing, which also warms up, and again behind leads; then once as the samples will be. */
static pc_code choose_sampling(pc_measure *session, pc_bench *b, sampling *chosen, pc_error *error) {
    enum { LAUNCHES_MOST = 256 };
    const pc_measure_protocol *protocol = &session->protocol;
    double rough_s = INFINITY, seconds = 0.0;
    pc_code code = PC_OK;
    for (int i = 0; i < 3 && !code; i++) {
        if (i > 0) code = launch_leads(b, leads_for(rough_s, 1, false), error);
        if (!code) code = pc_bench_time(b, 1, false, &seconds, error);
        rough_s = fmin(rough_s, seconds);
    }
    chosen->in_graph = rough_s < 1e-9 * PC_GRAPH_BELOW_NS;
    if (!code && chosen->in_graph) { /* without the host it is shorter */
        int repeats = repeats_for(protocol, rough_s, protocol->graph_most);
        code = pc_bench_time(b, repeats, true, &seconds, error);
        rough_s = seconds / repeats;
    }
    if (code) return code;
    chosen->repeats = repeats_for(protocol, rough_s, chosen->in_graph ? protocol->graph_most : LAUNCHES_MOST);
    chosen->leads = leads_for(rough_s, chosen->repeats, chosen->in_graph);
    return pc_bench_time(b, chosen->repeats, chosen->in_graph, &seconds, error);
}

static pc_code take_samples(pc_measure *session, pc_bench *b, const sampling *how, int64_t *count, pc_error *error) {
    pc_sampler_rule rule = pc_sampler_rule_default(session->protocol.shape_limit_s);
    assert(rule.most <= PC_SAMPLES_MOST);
    double begun_s = pc_measure_now(session), spent_s = 0.0;
    for (*count = 0; !pc_sampler_is_done(&rule, session->sample, *count, spent_s, session->room);) {
        double seconds;
        pc_code code = launch_leads(b, how->leads, error);
        if (!code) code = pc_bench_time(b, how->repeats, how->in_graph, &seconds, error);
        if (code) return code;
        session->sample[(*count)++] = seconds / how->repeats;
        spent_s = pc_measure_now(session) - begun_s;
    }
    return PC_OK;
}

/* ---- what is kept ---- */

static pc_operation_kind kind_of(const pc_kernel_family *family) {
    switch (family->group) {
    case PC_KERNEL_GEMM:
    case PC_KERNEL_GROUPED_GEMM: /* as profiles have it */
        return PC_OPERATION_GEMM;
    case PC_KERNEL_ATTENTION:
        return PC_OPERATION_ATTENTION;
    case PC_KERNEL_NORM:
        return PC_OPERATION_NORM;
    case PC_KERNEL_OPTIMIZER:
        return PC_OPERATION_OPTIMIZER;
    default:
        return PC_OPERATION_ELEMENTWISE;
    }
}

static pc_gemm_role role_of(const pc_kernel_family *family) {
    return family->role == PC_KERNEL_FORWARD          ? PC_GEMM_FORWARD
           : family->role == PC_KERNEL_INPUT_GRADIENT ? PC_GEMM_INPUT_GRADIENT
                                                      : PC_GEMM_WEIGHT_GRADIENT;
}

/* Operations count attention's batch in heads. */
static int64_t batch_of(const pc_kernel_family *family, const pc_kernel_shape *shape) {
    if (family->group == PC_KERNEL_ATTENTION) return shape->batch * shape->heads;
    return shape->batch > 1 ? shape->batch : 1;
}

void pc_measure_describe(const pc_kernel_family *family, const pc_kernel_shape *shape, pc_kernel_measurement *made) {
    static const char *const epilogues[] = {
        [PC_EPILOGUE_NONE] = "", [PC_EPILOGUE_BIAS] = "bias", [PC_EPILOGUE_BIAS_GELU] = "bias_gelu"};
    made->kind = kind_of(family);
    made->role = role_of(family);
    const char *dtype = family->low ? pc_low_name(family->low->scaling) : pc_dtype_name(shape->dtype);
    snprintf(made->dtype, sizeof made->dtype, "%s", dtype);
    snprintf(made->epilogue, sizeof made->epilogue, "%s", epilogues[shape->epilogue]);
    made->is_causal = shape->is_causal;
    made->accumulates = shape->accumulates;
    made->batch = batch_of(family, shape);
    made->m = shape->m;
    made->n = shape->n;
    made->k = shape->k;
    made->heads = shape->heads;
    made->kv_heads = shape->kv_heads;
    if (family->group == PC_KERNEL_GROUPED_GEMM) made->experts = shape->batch;
    made->flops = family->flops(shape);
    made->bytes = family->bytes(shape);
}

static void describe_kernel(const pc_kernel_attributes *attributes, pc_kernel_measurement *made) {
    snprintf(made->function, sizeof made->function, "%s", attributes->kernel);
    for (int i = 0; i < 3; i++) {
        made->grid[i] = attributes->grid[i];
        made->block[i] = attributes->block[i];
    }
    made->registers = attributes->registers;
    made->shared_bytes = attributes->shared_bytes;
}

static pc_code measure_state(pc_measure *session, pc_bench *b, pc_cache_state cache, pc_kernel_measurement *made,
                             pc_error *error) {
    sampling how = {0};
    int64_t count = 0;
    b->rotation = cache == PC_CACHE_COLD ? b->sets : 1;
    b->next = 0;
    pc_code code = choose_sampling(session, b, &how, error);
    if (!code) code = take_samples(session, b, &how, &count, error);
    if (code) return code;
    pc_device_state state = pc_device_state_now(session->device);
    made->cache = cache;
    made->in_graph = how.in_graph;
    made->sm_clock_hz = state.sm_clock_hz;
    made->is_throttled = state.is_known && state.is_throttled;
    session->throttled += made->is_throttled;
    pc_statistics_of(session->sample, count, session->room, &made->seconds);
    return pc_profile_add_kernel(session->profile, made, session->sample, error);
}

pc_code pc_measure_shape(pc_measure *session, const pc_listed_shape *listed, const char *name, double check_error,
                         double *median_s, pc_error *error) {
    pc_bench bench;
    pc_kernel_attributes attributes = {.registers = -1};
    pc_kernel_measurement made = {.check_error = check_error, .first_sample = -1};
    pc_code code = pc_bench_open(&bench, session, listed, error);
    session->did_not_fit = code == PC_ERROR_NO_MEMORY;
    if (code) return code;
    snprintf(made.kernel, sizeof made.kernel, "%s", name);
    pc_measure_describe(listed->family, &listed->shape, &made);
    code = listed->family->attributes(session->device, &listed->shape, &attributes, error);
    if (!code) {
        describe_kernel(&attributes, &made);
        code = measure_state(session, &bench, PC_CACHE_COLD, &made, error);
        *median_s = made.seconds.median;
    }
    if (!code && bench.sets > 1) code = measure_state(session, &bench, PC_CACHE_HOT, &made, error);
    pc_bench_close(&bench);
    return code;
}
