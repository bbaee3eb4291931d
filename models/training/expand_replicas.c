#include "models/training/expand_replicas.h"

#include "engine/alloc.h"
#include "engine/numbers.h"
#include "engine/parallel.h"
#include "engine/random.h"
#include "models/schedule/timing.h"
#include "models/training/draws.h"
#include "models/training/outline_experts.h"
#include "models/training/outline_pairs.h"

#include <string.h>

/* ---- ends ---- */

pc_code pc_ends_create(int devices, int chunks, pc_pipeline_ends *ends, pc_error *error) {
    size_t stages = (size_t)devices, rows = stages * (size_t)chunks;
    pc_time *block = pc_alloc(2 * stages + 2 * rows, sizeof *block);
    if (!block) return pc_error_no_memory(error);
    *ends = (pc_pipeline_ends){.devices = devices,
                               .chunks = chunks,
                               .begin_ps = block,
                               .stage_end_ps = block + stages,
                               .last_start_ps = block + 2 * stages,
                               .last_end_ps = block + 2 * stages + rows};
    pc_ends_clear(ends);
    return PC_OK;
}

pc_code pc_ends_add_buckets(const pc_outline *outline, const pc_schedule *schedule, pc_pipeline_ends *ends,
                            pc_error *error) {
    size_t cells = (size_t)ends->devices * (size_t)ends->chunks, passes = (size_t)schedule->offsets[ends->devices];
    ends->bucket = pc_alloc(cells + 1, sizeof *ends->bucket);
    if (!ends->bucket) return pc_error_no_memory(error);
    for (size_t i = 0; i < cells; i++) ends->bucket[i + 1] = ends->bucket[i] + outline->chunks_of[i].buckets;
    ends->bucket_ps = pc_alloc((size_t)ends->bucket[cells], sizeof *ends->bucket_ps);
    ends->passes = outline->cut.zero == 2 && pc_outline_reduces_behind(outline) ? (int64_t)passes : 0;
    if (ends->passes > 0) ends->pass_ps = pc_alloc(passes, sizeof *ends->pass_ps);
    return ends->bucket_ps && (ends->pass_ps || ends->passes == 0) ? PC_OK : pc_error_no_memory(error);
}

void pc_ends_clear(pc_pipeline_ends *ends) {
    size_t stages = (size_t)ends->devices, cells = stages * (size_t)ends->chunks;
    for (size_t d = 0; d < stages; d++) ends->begin_ps[d] = PC_TIME_MAX;
    memset(ends->stage_end_ps, 0, stages * sizeof *ends->stage_end_ps);
    memset(ends->last_start_ps, 0, cells * sizeof *ends->last_start_ps);
    memset(ends->last_end_ps, 0, cells * sizeof *ends->last_end_ps);
    if (ends->bucket) memset(ends->bucket_ps, 0, (size_t)ends->bucket[cells] * sizeof *ends->bucket_ps);
    if (ends->pass_ps) memset(ends->pass_ps, 0, (size_t)ends->passes * sizeof *ends->pass_ps);
}

void pc_ends_free(pc_pipeline_ends *ends) {
    pc_free(ends->begin_ps);
    pc_free(ends->bucket);
    pc_free(ends->bucket_ps);
    pc_free(ends->pass_ps);
    memset(ends, 0, sizeof *ends);
}

/* From the front: the first pass of a chunk is F. Where parameters come bit by bit it may start before they would all
 * be there. */
static pc_time find_begin(const pc_schedule *schedule, const pc_costs *costs, const pc_time *start_ps, int d) {
    pc_time begin = PC_TIME_MAX;
    int found = 0;
    bool is_found[PC_CHUNKS_MAX] = {false};
    for (int64_t i = schedule->offsets[d]; i < schedule->offsets[d + 1] && found < schedule->chunks; i++) {
        int chunk = schedule->passes[i].chunk;
        pc_time before = start_ps[i] - pc_costs_ready(costs, d, chunk);
        if (!is_found[chunk] && before < begin) begin = before;
        found += !is_found[chunk];
        is_found[chunk] = true;
    }
    return pc_max(begin, 0);
}

/* One bucket after the other, when its share of the chunk's last pass is over. */
static void take_buckets(pc_time start_ps, pc_time end_ps, int64_t row, pc_pipeline_ends *ends) {
    int64_t count = ends->bucket[row + 1] - ends->bucket[row];
    pc_time *bucket_ps = ends->bucket_ps + ends->bucket[row], share = (end_ps - start_ps) / count;
    for (int64_t k = 0; k < count; k++) bucket_ps[k] = pc_max(bucket_ps[k], end_ps - share * (count - 1 - k));
}

/* From the back: the last pass of each chunk is met first, and most chunks' are near. */
static void take_last(const pc_schedule *schedule, const pc_time *start_ps, const pc_time *end_ps, int d,
                      pc_pipeline_ends *ends) {
    int found = 0;
    bool is_found[PC_CHUNKS_MAX] = {false};
    for (int64_t i = schedule->offsets[d + 1]; i-- > schedule->offsets[d] && found < schedule->chunks;) {
        pc_pass pass = schedule->passes[i];
        if (!pc_pass_adds_gradients(pass) || is_found[pass.chunk]) continue;
        int64_t row = (int64_t)d * schedule->chunks + pass.chunk;
        is_found[pass.chunk] = true;
        found++;
        ends->last_start_ps[row] = pc_max(ends->last_start_ps[row], start_ps[i]);
        ends->last_end_ps[row] = pc_max(ends->last_end_ps[row], end_ps[i]);
        if (ends->bucket) take_buckets(start_ps[i], end_ps[i], row, ends);
    }
}

static void take_latest(const pc_time *from_ps, int64_t count, pc_time *into_ps) {
    for (int64_t i = 0; i < count; i++) into_ps[i] = pc_max(into_ps[i], from_ps[i]);
}

void pc_ends_take(const pc_schedule *schedule, const pc_costs *costs, const pc_time *start_ps, const pc_time *end_ps,
                  pc_pipeline_ends *ends) {
    for (int d = 0; d < schedule->devices; d++) {
        if (schedule->offsets[d] == schedule->offsets[d + 1]) continue;
        pc_time begin = find_begin(schedule, costs, start_ps, d);
        if (begin < ends->begin_ps[d]) ends->begin_ps[d] = begin;
        ends->stage_end_ps[d] = pc_max(ends->stage_end_ps[d], end_ps[schedule->offsets[d + 1] - 1]);
        take_last(schedule, start_ps, end_ps, d, ends);
    }
    if (ends->pass_ps) take_latest(end_ps, ends->passes, ends->pass_ps);
}

static void merge_ends(const pc_pipeline_ends *from, pc_pipeline_ends *into) {
    int64_t cells = (int64_t)into->devices * into->chunks;
    for (int d = 0; d < into->devices; d++)
        if (from->begin_ps[d] < into->begin_ps[d]) into->begin_ps[d] = from->begin_ps[d];
    take_latest(from->stage_end_ps, into->devices, into->stage_end_ps);
    take_latest(from->last_start_ps, cells, into->last_start_ps);
    take_latest(from->last_end_ps, cells, into->last_end_ps);
    if (into->bucket) take_latest(from->bucket_ps, into->bucket[cells], into->bucket_ps);
    if (into->pass_ps) take_latest(from->pass_ps, into->passes, into->pass_ps);
}

/* ---- noise ---- */

static unsigned long stream_seed(uint64_t seed, int64_t replica, int stage) {
    return (unsigned long)pc_seed_of(pc_seed_of(pc_seed_of(seed) + (uint64_t)replica) + (uint64_t)stage);
}

/* ---- replicas ---- */

typedef struct worker {
    pc_timing *timing;
    gsl_rng rng;
    pc_time *duration_ps;
    pc_pipeline_ends ends;
    pc_error error; /* of the first replica that failed here */
} worker;

typedef struct expansion_run {
    const pc_schedule *schedule;
    const pc_costs *costs;
    const pc_expansion *expansion;
    pc_factors factors;
    worker *workers;
    pc_time *first_duration_ps;
    int64_t in_step; /* replicas in a row that share experts */
} expansion_run;

/* By itself, without collectives of data parallelism and messages, where there is an outline. */
static pc_time draw_own(const expansion_run *run, int stage, pc_pass pass, double factor) {
    const pc_outline *outline = run->expansion->outline;
    pc_time mean = pc_costs_duration(run->costs, stage, pass.chunk, pass.kind);
    if (outline && !pc_time_from_seconds(pc_outline_pass_s(outline, stage, pass), &mean)) return PC_TIME_MAX / 4;
    return mean > 0 ? pc_time_drawn((double)mean * factor) : mean;
}

/* All that the pair of a pass and the one behind it lasts. */
static pc_time whole_pair(const expansion_run *run, int stage, const pc_pass *f, pc_time f_ps, pc_time back_ps) {
    const pc_outline *outline = run->expansion->outline;
    int without = run->expansion->without;
    pc_time wait_ps = without & PC_WITHOUT_TRANSFERS ? 0 : pc_outline_pair_wait_ps(outline, stage, f[0], f[1]);
    return pc_outline_pair_ps(outline, run->costs, stage, f[0], f[1], without, f_ps, back_ps) + wait_ps;
}

static pc_time whole_pass(const expansion_run *run, int stage, pc_pass pass, pc_time own_ps) {
    const pc_outline *outline = run->expansion->outline;
    return outline ? pc_outline_whole_pass(outline, stage, pass, run->expansion->without, own_ps) : own_ps;
}

static void keep(pc_time own_ps, bool is_first, pc_time *duration_ps) {
    *duration_ps = is_first ? own_ps : pc_max(*duration_ps, own_ps);
}

/* Passes and pairs take the longer of what they take in this replica and what is there, of others that it runs in step
 * with. */
static void draw_replica(const expansion_run *run, int64_t replica, bool is_first, gsl_rng *rng, pc_time *duration_ps) {
    const pc_schedule *schedule = run->schedule;
    bool has_pairs = run->expansion->outline && run->costs->pair_ps;
    for (int d = 0; d < schedule->devices; d++) {
        gsl_rng_set(rng, stream_seed(run->expansion->seed, replica, d));
        pc_time before_ps = 0;
        for (int64_t i = schedule->offsets[d]; i < schedule->offsets[d + 1]; i++) {
            const pc_pass *pass = &schedule->passes[i];
            pc_time own_ps = draw_own(run, d, *pass, pc_factors_draw(&run->factors, rng));
            bool is_second = has_pairs && pc_schedule_is_second(schedule, i);
            if (is_second) keep(whole_pair(run, d, pass - 1, before_ps, own_ps), is_first, &duration_ps[i - 1]);
            bool begins = has_pairs && pc_schedule_pairs_at(schedule, i);
            if (is_second) duration_ps[i] = 0;
            if (!is_second && !begins) keep(whole_pass(run, d, *pass, own_ps), is_first, &duration_ps[i]);
            before_ps = own_ps;
        }
    }
}

/* All that run in step: each pass as long as the longest of theirs. */
static void draw_group(const expansion_run *run, int64_t group, gsl_rng *rng, pc_time *duration_ps) {
    int64_t first = group * run->in_step;
    for (int64_t r = first; r < first + run->in_step; r++) draw_replica(run, r, r == first, rng, duration_ps);
}

static void run_group(void *context, int number, int64_t group) {
    expansion_run *run = context;
    worker *w = &run->workers[number];
    const pc_schedule *schedule = run->schedule;
    pc_timing_result result;
    if (w->error.code) return;
    draw_group(run, group, &w->rng, w->duration_ps);
    if (pc_timing_run_each(w->timing, schedule, run->costs, w->duration_ps, NULL, &result, &w->error)) return;
    pc_ends_take(schedule, run->costs, result.start_ps, result.end_ps, &w->ends);
    if (group == 0 && run->first_duration_ps)
        memcpy(run->first_duration_ps, w->duration_ps,
               (size_t)schedule->offsets[schedule->devices] * sizeof *w->duration_ps);
}

static void close_worker(worker *w) {
    pc_timing_free(w->timing);
    pc_draws_close(&w->rng);
    pc_free(w->duration_ps);
    pc_ends_free(&w->ends);
}

static pc_code open_worker(const expansion_run *run, worker *w, pc_error *error) {
    const pc_schedule *schedule = run->schedule;
    const pc_outline *outline = run->expansion->outline;
    pc_code code = pc_timing_create(&w->timing, error);
    if (!code) code = pc_ends_create(schedule->devices, schedule->chunks, &w->ends, error);
    if (!code && outline) code = pc_ends_add_buckets(outline, schedule, &w->ends, error);
    if (!code) code = pc_draws_open(&w->rng, error);
    if (code) return code;
    w->duration_ps = pc_alloc((size_t)schedule->offsets[schedule->devices], sizeof *w->duration_ps);
    return w->duration_ps ? PC_OK : pc_error_no_memory(error);
}

static pc_code run_workers(expansion_run *run, int threads, pc_pipeline_ends *ends, pc_error *error) {
    pc_code code = PC_OK;
    int opened = 0;
    for (; opened < threads && !code; opened++) code = open_worker(run, &run->workers[opened], error);
    if (!code) pc_parallel_run(threads, run->expansion->replicas / run->in_step, run_group, run);
    for (int i = 0; i < opened; i++) {
        worker *w = &run->workers[i];
        if (!code && w->error.code) code = pc_error_copy(error, &w->error);
        if (!code) merge_ends(&w->ends, ends);
        close_worker(w);
    }
    return code;
}

static int64_t replicas_in_step(const pc_expansion *expansion) {
    const pc_outline *outline = expansion->outline;
    int in_step = outline ? pc_cut_replicas_in_step(&outline->spec->model, &outline->cut) : 1;
    return expansion->replicas % in_step == 0 ? in_step : 1;
}

static expansion_run begin_run(const pc_schedule *schedule, const pc_costs *costs, const pc_expansion *expansion) {
    return (expansion_run){.schedule = schedule,
                           .costs = costs,
                           .expansion = expansion,
                           .factors = pc_factors_lognormal(expansion->jitter),
                           .in_step = replicas_in_step(expansion)};
}

pc_code pc_expand_draw(const pc_schedule *schedule, const pc_costs *costs, const pc_expansion *expansion,
                       pc_time *duration_ps, pc_error *error) {
    expansion_run run = begin_run(schedule, costs, expansion);
    gsl_rng rng = {0};
    pc_code code = pc_draws_open(&rng, error);
    size_t passes = (size_t)schedule->offsets[schedule->devices];
    for (int64_t r = 0; !code && r < expansion->replicas; r++) {
        pc_time *own_ps = duration_ps + (size_t)r * passes;
        if (r % run.in_step == 0)
            draw_group(&run, r / run.in_step, &rng, own_ps);
        else
            memcpy(own_ps, own_ps - passes, passes * sizeof *own_ps);
    }
    pc_draws_close(&rng);
    return code;
}

pc_code pc_expand_run(const pc_schedule *schedule, const pc_costs *costs, const pc_expansion *expansion,
                      pc_pipeline_ends *ends, pc_time *first_duration_ps, pc_error *error) {
    int threads = expansion->threads > 0 ? expansion->threads : pc_parallel_processors();
    if (threads > expansion->replicas) threads = expansion->replicas;
    expansion_run run = begin_run(schedule, costs, expansion);
    run.first_duration_ps = first_duration_ps;
    run.workers = pc_alloc((size_t)threads, sizeof *run.workers);
    if (!run.workers) return pc_error_no_memory(error);
    pc_code code = run_workers(&run, threads, ends, error);
    pc_free(run.workers);
    return code;
}
