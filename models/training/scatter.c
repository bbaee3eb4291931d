#include "models/training/scatter.h"

#include "models/training/draws.h"

static bool is_slow_day(const pc_scatter *x) {
    return x->has_slow && x->slow_factor != 1;
}

bool pc_scatter_varies(const pc_scatter *x) {
    return x->passes.quantiles || x->jitter > 0 || x->gpu_jitter > 0 || x->link_jitter > 0 || is_slow_day(x);
}

/* The stage that is slow in this draw; -1: none. */
static int draw_slow(const pc_scatter *x, int64_t number, int devices, gsl_rng *rng) {
    if (!is_slow_day(x)) return -1;
    if (x->slow_stage >= 0) return x->slow_stage;
    pc_draws_begin(rng, x->seed, number, PC_DRAWN_SLOW_GPUS, 0, 0);
    return (int)gsl_rng_uniform_int(rng, (unsigned long)devices);
}

/* The slowest GPU of the stage. */
static double draw_pace(const pc_scatter *x, int64_t number, int device, gsl_rng *rng) {
    pc_factors factors = pc_factors_lognormal(x->gpu_jitter);
    double slowest = 0;
    if (!pc_factors_vary(&factors)) return 1;
    pc_draws_begin(rng, x->seed, number, PC_DRAWN_GPUS, 0, device);
    for (int i = 0; i < (x->gpus > 1 ? x->gpus : 1); i++) {
        double factor = pc_factors_draw(&factors, rng);
        if (factor > slowest) slowest = factor;
    }
    return slowest;
}

static void draw_row(const pc_factors *factors, double pace, int64_t count, gsl_rng *rng, double *row) {
    for (int64_t i = 0; i < count; i++) row[i] = pace * pc_factors_draw(factors, rng);
}

pc_code pc_scatter_draw(const void *scatter, int64_t number, const pc_costs *costs, int microbatches, double *pass,
                        double *transfer, pc_error *error) {
    const pc_scatter *x = scatter;
    int64_t count = (int64_t)PC_DRAWN_KINDS * costs->chunks * microbatches;
    pc_factors passes = pc_factors_lognormal(x->jitter), transfers = pc_factors_lognormal(x->link_jitter);
    gsl_rng rng;
    pc_code code = pc_draws_open(&rng, error);
    if (code) return code;
    passes.empirical = x->passes;
    int slow = draw_slow(x, number, costs->devices, &rng);
    for (int d = 0; d < costs->devices; d++) {
        double pace = draw_pace(x, number, d, &rng) * (d == slow ? x->slow_factor : 1);
        pc_draws_begin(&rng, x->seed, number, PC_DRAWN_PASSES, 0, d);
        draw_row(&passes, pace, count, &rng, pass + d * count);
        if (!transfer) continue;
        pc_draws_begin(&rng, x->seed, number, PC_DRAWN_TRANSFERS, 0, d);
        draw_row(&transfers, 1, count, &rng, transfer + d * count);
    }
    pc_draws_close(&rng);
    return PC_OK;
}

void pc_scatter_fill_request(const pc_scatter *scatter, pc_robust_request *request) {
    request->draw = pc_scatter_draw;
    request->context = scatter;
    request->draws_transfers = scatter->link_jitter > 0;
}
