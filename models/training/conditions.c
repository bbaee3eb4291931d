#include "models/training/conditions.h"

#include "engine/alloc.h"
#include "models/workload/expert_slice.h"

#include <string.h>

enum { SLOW = 1, BAD = 2 };

pc_code pc_conditions_open(const pc_sample_base *base, pc_conditions *conditions, pc_error *error) {
    size_t groups = (size_t)base->replicas * (size_t)base->devices;
    int64_t slow = base->bad_days->slow_gpus, bad = base->bad_days->bad_links;
    *conditions = (pc_conditions){.slowness = pc_alloc(groups * (size_t)base->kinds, sizeof *conditions->slowness),
                                  .is_bad = pc_alloc(groups, sizeof *conditions->is_bad),
                                  .load = pc_alloc(groups, sizeof *conditions->load),
                                  .share = pc_alloc((size_t)base->devices, sizeof *conditions->share),
                                  .marks = pc_alloc((size_t)base->gpus, sizeof *conditions->marks),
                                  .places = pc_alloc((size_t)(slow > bad ? slow : bad), sizeof *conditions->places)};
    return conditions->slowness && conditions->is_bad && conditions->load && conditions->share && conditions->marks &&
                   conditions->places
               ? PC_OK
               : pc_error_no_memory(error);
}

void pc_conditions_close(pc_conditions *conditions) {
    pc_free(conditions->slowness);
    pc_free(conditions->is_bad);
    pc_free(conditions->load);
    pc_free(conditions->share);
    pc_free(conditions->marks);
    pc_free(conditions->places);
    memset(conditions, 0, sizeof *conditions);
}

static void clear(const pc_sample_base *base, pc_conditions *conditions) {
    size_t groups = (size_t)base->replicas * (size_t)base->devices;
    memset(conditions->slowness, 0, groups * (size_t)base->kinds * sizeof *conditions->slowness);
    memset(conditions->is_bad, 0, groups * sizeof *conditions->is_bad);
    for (size_t i = 0; i < groups; i++) conditions->load[i] = base->mean_load;
    for (int d = 0; d < base->devices; d++) conditions->share[d] = 1;
}

void pc_conditions_be_good(const pc_sample_base *base, pc_conditions *conditions) {
    clear(base, conditions);
    for (int64_t group = 0; group < (int64_t)base->replicas * base->devices; group++)
        conditions->slowness[group * base->kinds] = 1;
}

/* ---- GPUs ---- */

/* The given slow stage is the first replica's. */
static bool is_in_slow_stage(const pc_bad_days *bad, int64_t replica, int stage) {
    return bad->has_slow_stage && replica == 0 && stage == bad->slow_stage;
}

static void draw_group(const pc_sample_base *base, const pc_factors *factors, int64_t replica, int stage, gsl_rng *rng,
                       pc_conditions *conditions) {
    double *slowness = conditions->slowness + (replica * base->devices + stage) * base->kinds;
    bool all_slow = is_in_slow_stage(base->bad_days, replica, stage);
    int tp = base->outline->cut.tp, ranks = tp * pc_cut_cp(&base->outline->cut);
    for (int i = 0; i < ranks; i++) {
        int64_t gpu = pc_ranks_gpu(&base->outline->ranks, i % tp, i / tp, stage, replica);
        double factor = pc_factors_draw(factors, rng);
        if (all_slow || conditions->marks[gpu] & SLOW) factor *= base->bad_days->slow_factor;
        double *of_kind = &slowness[gpu >= base->first_other];
        if (factor > *of_kind) *of_kind = factor;
    }
}

static void unmark(int64_t count, pc_conditions *conditions) {
    for (int64_t i = 0; i < count; i++) conditions->marks[conditions->places[i]] = 0;
}

static void draw_gpus(const pc_sample_base *base, int64_t sample, gsl_rng *rng, pc_conditions *conditions) {
    uint64_t seed = base->outline->spec->seed;
    const pc_bad_days *bad = base->bad_days;
    pc_factors factors = pc_factors_lognormal(bad->gpu_jitter);
    if (bad->slow_gpus > 0) {
        pc_draws_begin(rng, seed, sample, PC_DRAWN_SLOW_GPUS, 0, 0);
        pc_draw_places(rng, base->gpus, bad->slow_gpus, SLOW, conditions->marks, conditions->places);
    }
    for (int64_t r = 0; r < base->replicas; r++)
        for (int d = 0; d < base->devices; d++) {
            if (bad->gpu_jitter > 0) pc_draws_begin(rng, seed, sample, PC_DRAWN_GPUS, r, d);
            draw_group(base, &factors, r, d, rng, conditions);
        }
    unmark(bad->slow_gpus, conditions);
}

/* ---- links ---- */

static void draw_bad_links(const pc_sample_base *base, int64_t sample, gsl_rng *rng, pc_conditions *conditions) {
    const pc_ranks *ranks = &base->outline->ranks;
    int64_t count = base->bad_days->bad_links;
    if (count == 0) return;
    pc_draws_begin(rng, base->outline->spec->seed, sample, PC_DRAWN_BAD_LINKS, 0, 0);
    pc_draw_places(rng, base->gpus, count, BAD, conditions->marks, conditions->places);
    for (int64_t i = 0; i < count; i++) {
        int64_t stage = pc_ranks_coordinate(ranks, PC_AXIS_PP, conditions->places[i]);
        conditions->is_bad[pc_ranks_coordinate(ranks, PC_AXIS_DP, conditions->places[i]) * base->devices + stage] = 1;
    }
    unmark(count, conditions);
}

static void draw_shares(const pc_sample_base *base, int64_t sample, gsl_rng *rng, pc_conditions *conditions) {
    pc_factors factors = pc_factors_lognormal(base->bad_days->link_jitter);
    if (!pc_factors_vary(&factors)) return;
    for (int d = 0; d < base->devices; d++) {
        conditions->share[d] = 0;
        for (int64_t r = 0; r < base->replicas; r++) {
            pc_draws_begin(rng, base->outline->spec->seed, sample, PC_DRAWN_COLLECTIVES, r, d);
            double factor = pc_factors_draw(&factors, rng);
            if (factor > conditions->share[d]) conditions->share[d] = factor;
        }
    }
}

/* ---- experts ---- */

static int64_t expert_layers(const pc_outline *outline, int device) {
    int64_t layers = 0;
    for (int c = 0; c < outline->chunks; c++) layers += pc_outline_part(outline, device, c)->part.expert_layers;
    return layers;
}

/* All ranks that share out experts wait for the fullest one of each layer. */
static double draw_load(const pc_sample_base *base, int64_t sample, int64_t group, int device, gsl_rng *rng) {
    const pc_outline *outline = base->outline;
    int64_t layers = expert_layers(outline, device);
    double sum = 0;
    pc_draws_begin(rng, outline->spec->seed, sample, PC_DRAWN_LOADS, group, device);
    for (int64_t i = 0; i < layers; i++)
        sum += pc_cut_expert_load_drawn(&outline->spec->model, &outline->cut, gsl_rng_uniform_pos(rng));
    return layers > 0 ? sum / (double)layers : base->mean_load;
}

/* Groups of experts lie in replicas' order: several in a replica, which waits for the fullest of all; or one over
 * several in a row, which have it together. */
static void draw_loads(const pc_sample_base *base, int64_t sample, gsl_rng *rng, pc_conditions *conditions) {
    int64_t groups = pc_cut_expert_replicas(&base->outline->cut), replicas = base->replicas;
    if (!(base->mean_load > 0)) return;
    for (int d = 0; d < base->devices; d++)
        for (int64_t r = 0; r < replicas; r++) {
            int64_t first = r * groups / replicas, behind = (r + 1) * groups / replicas;
            double *load = &conditions->load[r * base->devices + d];
            *load = draw_load(base, sample, first, d, rng);
            for (int64_t i = first + 1; i < behind; i++) *load = fmax(*load, draw_load(base, sample, i, d, rng));
        }
}

void pc_conditions_draw(const pc_sample_base *base, int64_t sample, gsl_rng *rng, pc_conditions *conditions) {
    clear(base, conditions);
    draw_gpus(base, sample, rng, conditions);
    draw_bad_links(base, sample, rng, conditions);
    draw_shares(base, sample, rng, conditions);
    draw_loads(base, sample, rng, conditions);
}

bool pc_conditions_are_equal(const pc_sample_base *base, const pc_conditions *conditions, int64_t replica,
                             int64_t other) {
    int64_t row = (int64_t)base->devices * base->kinds;
    for (int64_t i = 0; i < row; i++)
        if (conditions->slowness[replica * row + i] != conditions->slowness[other * row + i]) return false;
    for (int64_t i = 0; i < base->devices; i++)
        if (conditions->load[replica * base->devices + i] != conditions->load[other * base->devices + i]) return false;
    return memcmp(conditions->is_bad + replica * base->devices, conditions->is_bad + other * base->devices,
                  (size_t)base->devices) == 0;
}
