/* What an answer of a cost model costs: products through a profile's table (a fit of 800 shapes with a grid), by shapes
 * that were never asked and by those of one model again and again, against the roofline. And what the fit itself takes,
 * a row. */
#include "bench/bench.h"
#include "calib/profile/profile_cost.h"
#include "models/cost/roofline.h"

#include <string.h>

enum { ROWS = 800, SHAPES = 20000, OF_A_MODEL = 12, ROUNDS = 5 };

static double seconds_of(const double *x) {
    double products = 2.0 * x[1] * x[2] * (x[3] + 200.0) / 700e12, ripple = 1.0 + 0.05 * sin(3.0 * log(x[2] * x[3]));
    return 5e-6 + x[1] * x[3] / 1e12 + products * ripple * (1.0 - 0.2 / (1.0 + products / 5e-3));
}

static int64_t side(bench_random *random, int64_t most) {
    return 512 * (1 + (int64_t)(bench_draw(random) % (uint64_t)most));
}

static void draw_rows(double *x, double *seconds) {
    bench_random random = {88172645463325252u};
    for (int64_t i = 0; i < ROWS; i++) {
        double *row = x + 4 * i;
        row[0] = 1.0;
        row[1] = (double)side(&random, 64), row[2] = (double)side(&random, 64), row[3] = (double)side(&random, 64);
        seconds[i] = seconds_of(row);
    }
}

static void make_profile(pc_profile *profile) {
    static double x[4 * ROWS], seconds[ROWS];
    const pc_fit_key key = {.form = PC_FIT_GEMM, .subject = "gemm_forward", .dtype = "bf16", .library = "any"};
    pc_fit fit;
    draw_rows(x, seconds);
    double begin = bench_own_s();
    pc_error error;
    if (pc_fit_make(&key, 132, x, seconds, ROWS, &fit, &error)) {
        fprintf(stderr, "%s\n", error.message);
        abort();
    }
    printf("fit of a table: %.2f ms a row\n", 1e3 * (bench_own_s() - begin) / ROWS);
    if (pc_profile_add_fit(profile, &fit, NULL)) abort();
}

static void draw_operations(pc_operation *operation, int count) {
    bench_random random = {2463534242u};
    for (int i = 0; i < count; i++) {
        pc_operation *o = &operation[i];
        *o = (pc_operation){.kind = PC_OPERATION_GEMM, .batch = 1, .launches = 1};
        o->m = side(&random, 60), o->n = side(&random, 60), o->k = side(&random, 60);
        o->flops = 2 * o->m * o->n * o->k;
        o->bytes = 2 * (o->m * o->k + o->k * o->n + o->m * o->n);
    }
}

/* Nanoseconds an answer: the best of some rounds over `count` operations, `times` each. */
static double best_ns(const pc_cost_model *model, const pc_operation *operation, int count, int times) {
    double best = HUGE_VAL, sum = 0.0;
    for (int round = 0; round < ROUNDS; round++) {
        double begin = bench_own_s();
        for (int again = 0; again < times; again++)
            for (int i = 0; i < count; i++) sum += model->kernel(model->self, &operation[i]).seconds;
        double taken = (bench_own_s() - begin) / count / times;
        if (taken < best) best = taken;
    }
    if (!(sum > 0.0)) abort();
    return 1e9 * best;
}

static double fit_ns(const pc_fit *fit, const pc_operation *operation, int count) {
    double best = HUGE_VAL, sum = 0.0;
    for (int round = 0; round < ROUNDS; round++) {
        double begin = bench_own_s();
        for (int i = 0; i < count; i++) {
            const pc_operation *o = &operation[i];
            const double x[PC_FIT_DIMENSIONS] = {(double)o->batch, (double)o->m, (double)o->n, (double)o->k};
            sum += pc_fit_predict(fit, x).seconds;
        }
        double taken = (bench_own_s() - begin) / count;
        if (taken < best) best = taken;
    }
    if (!(sum > 0.0)) abort();
    return 1e9 * best;
}

int main(void) {
    static pc_operation operation[SHAPES];
    pc_profile profile = {.device.gpu = "any"};
    pc_profile_cost *cost;
    pc_machine machine = {.gpu = {.name = "any",
                                  .matrix_flops_per_s = 989e12,
                                  .vector_flops_per_s = 60e12,
                                  .memory_bytes_per_s = 3.35e12,
                                  .processors = 132,
                                  .tile_m = 256,
                                  .tile_n = 128,
                                  .gemm_efficiency = 0.7,
                                  .gemm_ramp_k = 100,
                                  .memory_efficiency = 0.9,
                                  .attention_efficiency = 0.6,
                                  .attention_backward = 1.2}};
    make_profile(&profile);
    draw_operations(operation, SHAPES);
    if (pc_profile_cost_make(&profile, &machine, &cost, NULL)) abort();
    pc_cost_model measured = pc_profile_cost_model(cost), roofline = pc_roofline(&machine.gpu);
    double roof = best_ns(&roofline, operation, SHAPES, 1);
    printf("roofline:               %6.0f ns a product\n", roof);
    double fit = fit_ns(profile.fit, operation, SHAPES);
    printf("a fit:                  %6.0f ns, %.2f times the roofline\n", fit, fit / roof);
    double new_ns = best_ns(&measured, operation, SHAPES, 1);
    printf("a profile, new shapes:  %6.0f ns, %.2f times\n", new_ns, new_ns / roof);
    double known = best_ns(&measured, operation, OF_A_MODEL, 1000),
           again = best_ns(&roofline, operation, OF_A_MODEL, 1000);
    printf("a profile, a model's:   %6.0f ns, %.2f times\n", known, known / again);
    pc_profile_cost_free(cost);
    pc_profile_free(&profile);
    return 0;
}
