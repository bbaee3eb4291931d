/* How long a cost takes to ask: the roofline, and a profile, for shapes that were never seen and for those of a model,
 * which are remembered; by one thread, and by several at once. Times are the thread's own. */
#include "bench/bench.h"
#include "calib/profile/profile_cost.h"
#include "engine/alloc.h"
#include "models/cost/roofline.h"

#include <pthread.h>
#include <string.h>

enum { NEW_SHAPES = 200000, MODEL_SHAPES = 40, ROUNDS = 20000, REPEATS = 9, THREADS = 4 };

/* ---- a profile by hand, as those of the library are: rooflines, straight lines, and attention by size of head ---- */

static void add(pc_profile *profile, pc_fit *fit) {
    fit->x = pc_alloc(1, sizeof *fit->x);
    if (!fit->x || pc_profile_add_fit(profile, fit, NULL)) abort();
}

static void add_product(pc_profile *profile, const char *family) {
    pc_fit fit = {.key = {.form = PC_FIT_GEMM, .dtype = "bf16"},
                  .processors = 132,
                  .parameter_count = 4,
                  .parameter = {7e14, 50.0, 2e12, 4e-6},
                  .residual_deviation = 0.02,
                  .dimensions = 4,
                  .least = {1, 16, 16, 16},
                  .most = {4096, 1 << 20, 1 << 20, 1 << 20}};
    snprintf(fit.key.subject, sizeof fit.key.subject, "%s", family);
    add(profile, &fit);
}

static void add_attention(pc_profile *profile) {
    pc_fit fit = {.key = {.form = PC_FIT_FLASH,
                          .subject = "attention_forward",
                          .dtype = "bf16",
                          .library = "trtllm",
                          .site = "here",
                          .is_causal = true,
                          .head_dim = 128},
                  .processors = 132,
                  .parameter_count = 4,
                  .parameter = {5e14, 2e12, 3e12, 3e-5},
                  .residual_deviation = 0.02,
                  .dimensions = 4,
                  .least = {1, 16, 16, 1},
                  .most = {1 << 20, 1 << 20, 1 << 20, 128}};
    add(profile, &fit);
}

static void add_memory(pc_profile *profile, const char *family) {
    pc_fit fit = {.key = {.form = PC_FIT_MEMORY, .dtype = "bf16"},
                  .parameter_count = 3,
                  .parameter = {4e-6, 2.5e12, 0.01},
                  .residual_deviation = 0.01,
                  .dimensions = 1,
                  .least = {1},
                  .most = {0x1p40}};
    snprintf(fit.key.subject, sizeof fit.key.subject, "%s", family);
    add(profile, &fit);
}

static pc_profile example_profile(void) {
    static const char *const products[] = {"gemm_forward", "gemm_input_gradient", "gemm_weight_gradient"};
    static const char *const rows[] = {"layer_norm_forward", "layer_norm_backward", "gelu_forward", "gelu_backward",
                                       "residual_forward",   "residual_backward",   "add",          "adam"};
    pc_profile profile = {.device = {.gpu = "example"}, .is_shipped = true};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) add_memory(&profile, rows[i]);
    for (size_t i = 0; i < sizeof products / sizeof *products; i++) add_product(&profile, products[i]);
    add_attention(&profile);
    return profile;
}

static pc_machine example_machine(void) {
    pc_machine machine = {.gpu = {.name = "example",
                                  .matrix_flops_per_s = 9.89e14,
                                  .vector_flops_per_s = 6e13,
                                  .memory_bytes_per_s = 3.35e12,
                                  .memory_bytes = INT64_C(80) << 30,
                                  .processors = 132,
                                  .tile_m = 256,
                                  .tile_n = 128,
                                  .gemm_efficiency = 0.7,
                                  .gemm_ramp_k = 64,
                                  .attention_efficiency = 0.55,
                                  .attention_backward = 1.3,
                                  .memory_efficiency = 0.9,
                                  .kernel_s = 3e-6,
                                  .launch_s = 4e-6,
                                  .estimated_error = 0.1,
                                  .kernels_for = PC_KERNELS_FOR_ALL}};
    return machine;
}

/* ---- operations ---- */

static int64_t draw(bench_random *random, int64_t least, int64_t most) {
    return least + (int64_t)(bench_draw(random) % (uint64_t)(most - least));
}

/* Of ten: six products, an attention, three that move bytes, as a layer has them. */
static pc_operation operation_of(bench_random *random, int64_t number) {
    static const char *const functions[] = {"layer_norm", "gelu", "residual"};
    int64_t sort = number % 10, m = draw(random, 512, 16384), n = draw(random, 512, 16384), k = draw(random, 512, 8192);
    pc_operation made = {.kind = PC_OPERATION_GEMM, .role = (pc_gemm_role)(sort % 3), .batch = 1, .launches = 1};
    made.m = m, made.n = n, made.k = k;
    if (sort == 6) {
        made.kind = PC_OPERATION_ATTENTION, made.is_causal = true;
        made.role = number / 10 % 2 ? PC_GEMM_INPUT_GRADIENT : PC_GEMM_FORWARD;
        made.batch = draw(random, 1, 256), made.n = m, made.k = 128;
    }
    made.flops = 2 * made.batch * made.m * made.n * made.k;
    made.bytes = 2 * made.batch * (made.m * made.k + made.k * made.n + made.m * made.n);
    if (sort > 6) {
        made.kind = sort == 7 ? PC_OPERATION_NORM : PC_OPERATION_ELEMENTWISE;
        made.role = number / 10 % 2 ? PC_GEMM_INPUT_GRADIENT : PC_GEMM_FORWARD;
        made.function = functions[sort - 7];
        made.bytes = m * n, made.flops = 0;
    }
    return made;
}

/* ---- asking ---- */

typedef struct asked {
    pc_cost_model model;
    const pc_operation *operation;
    int64_t count, rounds;
    double sum, own_s;
} asked;

static void *ask(void *argument) {
    asked *a = argument;
    double start = bench_own_s();
    for (int64_t r = 0; r < a->rounds; r++)
        for (int64_t i = 0; i < a->count; i++) a->sum += a->model.kernel(a->model.self, &a->operation[i]).seconds;
    a->own_s = bench_own_s() - start;
    return NULL;
}

/* Nanoseconds an operation: of the slowest of so many threads. */
static double ask_with(pc_cost_model model, const pc_operation *operation, int64_t count, int64_t rounds, int threads) {
    pthread_t thread[THREADS];
    asked all[THREADS];
    double slowest = 0.0;
    for (int t = 0; t < threads; t++) {
        all[t] = (asked){.model = model, .operation = operation, .count = count, .rounds = rounds};
        if (pthread_create(&thread[t], NULL, ask, &all[t])) abort();
    }
    for (int t = 0; t < threads; t++) {
        pthread_join(thread[t], NULL);
        if (all[t].own_s > slowest) slowest = all[t].own_s;
    }
    return 1e9 * slowest / (double)(count * rounds);
}

typedef struct medians {
    double roofline, profile;
} medians;

/* A profile that has seen nothing each time. */
static medians measure(const pc_profile *profile, const pc_machine *machine, const pc_operation *operation,
                       int64_t count, int64_t rounds, int threads) {
    double roofline[REPEATS], fitted[REPEATS];
    for (int i = 0; i < REPEATS; i++) {
        pc_profile_cost *cost;
        if (pc_profile_cost_make(profile, machine, &cost, NULL)) abort();
        roofline[i] = ask_with(pc_roofline(&machine->gpu), operation, count, rounds, threads);
        fitted[i] = ask_with(pc_profile_cost_model(cost), operation, count, rounds, threads);
        pc_profile_cost_free(cost);
    }
    return (medians){bench_median(roofline, REPEATS), bench_median(fitted, REPEATS)};
}

static void report(const char *what, medians m) {
    printf("%-44s roofline %7.1f ns, profile %7.1f ns, %.2f times\n", what, m.roofline, m.profile,
           m.profile / m.roofline);
}

int main(void) {
    bench_random random = {1};
    pc_profile profile = example_profile();
    pc_machine machine = example_machine();
    pc_operation *all = pc_alloc(NEW_SHAPES, sizeof *all);
    if (!all) abort();
    for (int64_t i = 0; i < NEW_SHAPES; i++) all[i] = operation_of(&random, i);
    report("shapes never seen", measure(&profile, &machine, all, NEW_SHAPES, 1, 1));
    report("a model's shapes, again and again", measure(&profile, &machine, all, MODEL_SHAPES, ROUNDS, 1));
    report("the same, four threads at once", measure(&profile, &machine, all, MODEL_SHAPES, ROUNDS / 4, THREADS));
    pc_free(all);
    pc_profile_free(&profile);
    return 0;
}
