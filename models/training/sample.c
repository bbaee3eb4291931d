#include "models/training/sample.h"

#include "engine/alloc.h"
#include "engine/numbers.h"
#include "engine/order.h"
#include "engine/parallel.h"
#include "models/schedule/timing.h"
#include "models/training/conditions.h"
#include "models/training/expand_replicas.h"
#include "models/training/finish.h"
#include "models/training/outline_experts.h"
#include "models/training/outline_pairs.h"
#include "models/training/sample_events.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* ---- before the passes ---- */

pc_code pc_samples_check(const pc_iteration_spec *spec, pc_error *error) {
    const pc_bad_days *x = &spec->bad_days;
    const pc_cut *cut = &spec->cut;
    int64_t most = INT64_C(1) << 28,
            gpus = (int64_t)cut->tp * cut->pp * pc_cut_replicas(cut); /* of a spec whose ranks are placed */
    int64_t nodes = pc_divide_up(gpus, spec->machine.gpus_per_node);
    const struct {
        const char *name;
        int64_t value, most;
        const char *all;
    } counts[] = {
        {"GPUs in samples", gpus, most, "of them"},
        {"slow_gpus", x->slow_gpus, gpus, "GPUs"},
        {"bad_links", x->bad_links, gpus, "GPUs' links"},
        {"other_nodes", x->other_nodes, nodes, "nodes"},
        {"slow_stage", x->has_slow_stage ? x->slow_stage : 0, cut->pp - 1, "as the last stage"},
    };
    for (size_t i = 0; x->samples > 0 && i < sizeof counts / sizeof *counts; i++)
        if (counts[i].value > counts[i].most)
            return pc_error_set(error, PC_ERROR_INPUT, "bad days: %s: %" PRId64 "; expected at most %" PRId64 " %s",
                                counts[i].name, counts[i].value, counts[i].most, counts[i].all);
    return PC_OK;
}

void pc_samples_limit_memory(pc_outline *outline) {
    const pc_iteration_spec *spec = outline->spec;
    const pc_gpu *other = &spec->bad_days.other_gpu;
    int64_t gpus = pc_ranks_gpus(&outline->ranks), capacity = other->memory_bytes - other->memory_reserved_bytes;
    if (spec->bad_days.other_nodes == 0 || spec->memory_limit_bytes != PC_NO_LIMIT) return;
    for (int64_t gpu = pc_sample_first_other(spec, &outline->ranks); gpu < gpus; gpu++) {
        pc_device_outline *x = &outline->device[pc_ranks_coordinate(&outline->ranks, PC_AXIS_PP, gpu)];
        if (capacity < x->capacity_bytes) x->capacity_bytes = capacity;
    }
}

/* ---- a thread's things ---- */

typedef struct samples_run {
    const pc_outline *outline;
    const pc_schedule *schedule;
    const pc_sample_base *base;
    pc_factors passes, transfers;
    bool varies;     /* whether every pass or transfer does, so that no two replicas are equal */
    int64_t in_step; /* replicas in a row that share experts, and so wait for each other in every exchange */
    struct worker *workers;
    pc_time *sample_ps;
} samples_run;

/* All owned but for the outline's spec and costs of parts. */
typedef struct worker {
    gsl_rng rng;
    pc_timing *timing;
    pc_conditions conditions;
    pc_outline outline; /* with collectives and steps of its own: what they take in this sample */
    pc_costs costs;     /* of the replica at hand, as the next three */
    double *mean_ps;    /* [rows]: passes, before their own noise and without collectives of data parallelism */
    pc_time *hop_ps;    /* [devices] */
    pc_time *duration_ps, *delay_ps;                      /* [passes] */
    pc_pipeline_ends ends;                                /* the latest over replicas */
    pc_time *done_ps, *backlog_ps, *begin_ps, *period_ps; /* [devices] */
    pc_time *held_ready_ps; /* [devices][chunks]: of the costs, where held_device is not -1 and held back so long */
    pc_time held_ps;
    int held_device;
    pc_time *longest_ps;     /* [2 passes + devices x chunks]: of replicas in step, passes, transfers, ready */
    int64_t *distinct;       /* [replicas]: those that were timed in this sample */
    pc_sample_events events; /* where the engine is to run them */
    pc_error error;          /* of the first sample that failed here */
} worker;

static void close_worker(worker *w) {
    pc_draws_close(&w->rng);
    pc_timing_free(w->timing);
    pc_conditions_close(&w->conditions);
    pc_free(w->outline.chunks_of);
    pc_free(w->outline.device);
    pc_costs_free(&w->costs);
    pc_free(w->mean_ps);
    pc_free(w->hop_ps);
    pc_free(w->duration_ps);
    pc_free(w->longest_ps);
    pc_ends_free(&w->ends);
    pc_free(w->distinct);
    pc_sample_events_close(&w->events);
}

static bool make_arrays(const samples_run *run, worker *w) {
    size_t devices = (size_t)run->base->devices, cells = devices * (size_t)run->base->chunks;
    size_t passes = (size_t)run->schedule->offsets[devices];
    w->outline = *run->outline;
    w->outline.chunks_of = pc_alloc(cells, sizeof *w->outline.chunks_of);
    w->outline.device = pc_alloc(devices, sizeof *w->outline.device);
    w->mean_ps = pc_alloc((size_t)run->base->rows, sizeof *w->mean_ps);
    w->hop_ps = pc_alloc(5 * devices + cells, sizeof *w->hop_ps);
    w->duration_ps = pc_alloc(2 * passes, sizeof *w->duration_ps);
    w->longest_ps = pc_alloc(2 * passes + cells, sizeof *w->longest_ps);
    w->distinct = pc_alloc((size_t)run->base->replicas, sizeof *w->distinct);
    if (!w->outline.chunks_of || !w->outline.device || !w->mean_ps || !w->hop_ps || !w->duration_ps || !w->longest_ps ||
        !w->distinct)
        return false;
    memcpy(w->outline.chunks_of, run->outline->chunks_of, cells * sizeof *w->outline.chunks_of);
    memcpy(w->outline.device, run->outline->device, devices * sizeof *w->outline.device);
    w->done_ps = w->hop_ps + devices;
    w->backlog_ps = w->done_ps + devices;
    w->begin_ps = w->backlog_ps + devices;
    w->period_ps = w->begin_ps + devices;
    w->held_ready_ps = w->period_ps + devices;
    w->delay_ps = w->duration_ps + passes;
    return true;
}

static bool runs_on_engine(const samples_run *run) {
    return run->outline->spec->engine == PC_ENGINE_EVENTS;
}

static pc_code open_worker(const samples_run *run, worker *w, pc_error *error) {
    if (!make_arrays(run, w)) return pc_error_no_memory(error);
    w->held_device = -1;
    pc_code code = pc_draws_open(&w->rng, error);
    if (!code) code = pc_timing_create(&w->timing, error);
    if (!code) code = pc_conditions_open(run->base, &w->conditions, error);
    if (!code) code = pc_outline_costs(run->outline, 0, &w->costs, error);
    if (!code) code = pc_ends_create(run->base->devices, run->base->chunks, &w->ends, error);
    if (!code) code = pc_ends_add_buckets(run->outline, run->schedule, &w->ends, error);
    if (!code && runs_on_engine(run))
        code = pc_sample_events_open(run->outline, run->schedule, run->base->replicas, &w->events, error);
    return code;
}

/* ---- what all replicas of a sample have in common ---- */

/* The device that holds the other replica of a stage's parts, and reduces gradients with it; or itself. */
static int partner_of(const pc_outline *outline, int device) {
    return outline->placement == PC_PLACEMENT_BIDIRECTIONAL ? outline->devices - 1 - device : device;
}

static bool has_bad_link(const pc_sample_base *base, const pc_conditions *conditions, int device) {
    for (int64_t r = 0; r < base->replicas; r++)
        if (conditions->is_bad[r * base->devices + device]) return true;
    return false;
}

static void set_unit(const pc_unit_traffic *from, double share, pc_unit_traffic *unit) {
    unit->gather_ps = pc_time_drawn((double)from->gather_ps * share);
    unit->reduce_ps = pc_time_drawn((double)from->reduce_ps * share);
    unit->replicate_ps = pc_time_drawn((double)from->replicate_ps * share);
}

static void set_collectives(const pc_sample_base *base, int device, worker *w) {
    int partner = partner_of(base->outline, device);
    double share = pc_max(w->conditions.share[device], w->conditions.share[partner]);
    bool is_bad = has_bad_link(base, &w->conditions, device) || has_bad_link(base, &w->conditions, partner);
    const pc_outline *from = is_bad ? &base->worse : base->outline;
    for (int64_t i = (int64_t)device * base->chunks; i < (int64_t)(device + 1) * base->chunks; i++) {
        w->outline.chunks_of[i].reduce_ps = pc_time_drawn((double)from->chunks_of[i].reduce_ps * share);
        w->outline.chunks_of[i].gather_ps = pc_time_drawn((double)from->chunks_of[i].gather_ps * share);
        set_unit(&from->chunks_of[i].units.root, share, &w->outline.chunks_of[i].units.root);
        set_unit(&from->chunks_of[i].units.each, share, &w->outline.chunks_of[i].units.each);
        set_unit(&from->chunks_of[i].units.rest, share, &w->outline.chunks_of[i].units.rest);
    }
}

/* The slowest GPU's, of all replicas. */
static void set_step(const pc_sample_base *base, int device, worker *w) {
    w->outline.device[device].step_ps = 0;
    for (int64_t r = 0; r < base->replicas; r++)
        for (int kind = 0; kind < base->kinds; kind++) {
            double slowness = w->conditions.slowness[(r * base->devices + device) * base->kinds + kind];
            pc_time step_ps = pc_time_drawn((double)base->step_ps[kind][device] * slowness);
            w->outline.device[device].step_ps = pc_max(w->outline.device[device].step_ps, step_ps);
        }
}

/* Those of the whole pipeline. The norm's and the loss's few bytes are latency, so that a bad link anywhere counts. */
static void set_ends(const pc_sample_base *base, worker *w) {
    const pc_conditions *x = &w->conditions;
    int first = pc_placement_stage(base->outline->placement, base->devices, 0, 0);
    int last = pc_placement_stage(base->outline->placement, base->devices, base->outline->parts - 1, 0);
    int other = base->outline->tied_stage;
    bool is_bad = has_bad_link(base, x, first) || has_bad_link(base, x, other), any_bad = false;
    double share = 0;
    for (int d = 0; d < base->devices; d++) {
        any_bad = any_bad || has_bad_link(base, x, d);
        share = pc_max(share, x->share[d]);
    }
    const pc_outline *ends = is_bad ? &base->worse : base->outline, *all = any_bad ? &base->worse : base->outline;
    w->outline.tied_ps = pc_time_drawn((double)ends->tied_ps * pc_max(x->share[first], x->share[other]));
    w->outline.loss_ps = pc_time_drawn((double)all->loss_ps * x->share[last]);
    w->outline.norm_ps = pc_time_drawn((double)all->norm_ps * share);
}

static void begin_sample(const samples_run *run, worker *w) {
    for (int d = 0; d < run->base->devices; d++) {
        set_collectives(run->base, d, w);
        set_step(run->base, d, w);
    }
    set_ends(run->base, w);
    pc_ends_clear(&w->ends);
}

/* ---- one replica ---- */

static pc_time whole_pass(const worker *w, int device, pc_pass pass, double own_ps) {
    pc_time time = pc_time_drawn(own_ps);
    return w->outline.cut.zero >= 2 ? pc_outline_with_zero(&w->outline, device, pass, time) : time;
}

/* A transfer is as slow as the slower of both ends' links. */
static void set_hops(const samples_run *run, int64_t replica, worker *w) {
    const pc_sample_base *base = run->base;
    const uint8_t *is_bad = w->conditions.is_bad + replica * base->devices;
    for (int d = 0; d < base->devices; d++) {
        bool at_end = is_bad[d] || is_bad[(d + 1) % base->devices];
        w->hop_ps[d] = (at_end ? &base->worse : base->outline)->device[d].hop_ps;
        if (w->costs.hop_delay_ps) w->costs.hop_delay_ps[d] = w->hop_ps[d];
    }
}

/* What a pass takes where experts' loads are so much more than the mean ones. */
static double at_load(const double *own_ps, const double *load_ps, double more, int64_t row) {
    return load_ps ? pc_max(own_ps[row] + more * load_ps[row], 0.0) : own_ps[row];
}

static void set_means(const samples_run *run, int64_t replica, int device, worker *w) {
    const pc_sample_base *base = run->base;
    int64_t group = replica * base->devices + device, row = (int64_t)device * base->chunks * PC_PASS_KINDS;
    const double *slowness = w->conditions.slowness + group * base->kinds;
    double *const *own_ps = base->own_ps[w->conditions.is_bad[group]];
    double *const *load_ps = base->load_ps[w->conditions.is_bad[group]];
    double more = w->conditions.load[group] - base->mean_load;
    for (int64_t i = row; i < row + (int64_t)base->chunks * PC_PASS_KINDS; i++) {
        bool is_there = own_ps[0][i] >= 0;
        w->mean_ps[i] = is_there ? 0 : -1;
        for (int kind = 0; is_there && kind < base->kinds; kind++)
            w->mean_ps[i] = pc_max(w->mean_ps[i], at_load(own_ps[kind], load_ps[kind], more, i) * slowness[kind]);
    }
}

/* Of a chunk's pass of some kind of a device: 0 where stages do not wait for what they send. */
static pc_time wait_behind(const pc_sample_base *base, int d, int64_t pass, const worker *w) {
    int32_t hop = base->hop[(int64_t)d * base->chunks * PC_PASS_KINDS + pass];
    return base->outline->spec->overlaps_p2p || hop < 0 ? 0 : w->hop_ps[hop];
}

/* Stages wait for what they send: it is part of their passes. */
static void add_waits(const pc_sample_base *base, int d, worker *w) {
    int64_t rows = (int64_t)base->chunks * PC_PASS_KINDS;
    for (int64_t i = 0; i < rows; i++)
        if (w->mean_ps[d * rows + i] >= 0) w->costs.duration_ps[d * rows + i] += wait_behind(base, d, i, w);
}

/* Of a device whose passes' means are there: what its pairs take, with what they wait for as they end. */
static void set_pairs(const pc_sample_base *base, int d, worker *w) {
    const double *mean_ps = w->mean_ps + (int64_t)d * base->chunks * PC_PASS_KINDS;
    for (int c = 0; w->costs.pair_ps && c < base->chunks * base->chunks; c++) {
        pc_pass f = {0, (int16_t)(c / base->chunks), PC_PASS_F}, back = {0, (int16_t)(c % base->chunks), PC_PASS_BW};
        int64_t of_f = f.chunk * PC_PASS_KINDS + f.kind, of_back = back.chunk * PC_PASS_KINDS + back.kind;
        w->costs.pair_ps[pc_costs_pair_index(&w->costs, d, f, back)] =
            pc_outline_pair_ps(&w->outline, &w->costs, d, f, back, 0, pc_time_drawn(mean_ps[of_f]),
                               pc_time_drawn(mean_ps[of_back])) +
            pc_max(wait_behind(base, d, of_f, w), wait_behind(base, d, of_back, w));
    }
}

/* What the passes take without noise of their own. */
static void set_costs(const samples_run *run, int64_t replica, worker *w) {
    const pc_sample_base *base = run->base;
    set_hops(run, replica, w);
    for (int d = 0; d < base->devices; d++) {
        set_means(run, replica, d, w);
        for (int64_t cell = (int64_t)d * base->chunks; cell < (int64_t)(d + 1) * base->chunks; cell++)
            for (int kind = 0; kind < PC_PASS_KINDS; kind++) {
                int64_t i = cell * PC_PASS_KINDS + kind;
                pc_pass pass = {0, (int16_t)(cell - (int64_t)d * base->chunks), (int16_t)kind};
                if (w->mean_ps[i] < 0) continue;
                w->costs.duration_ps[i] = whole_pass(w, d, pass, w->mean_ps[i]);
            }
        if (w->costs.ready_ps) pc_outline_set_ready(&w->outline, d, &w->costs);
        add_waits(base, d, w);
        set_pairs(base, d, w);
    }
}

static void draw_passes(const samples_run *run, int64_t sample, int64_t replica, int d, worker *w) {
    const pc_schedule *schedule = run->schedule;
    const double *mean_ps = w->mean_ps + (int64_t)d * run->base->chunks * PC_PASS_KINDS;
    double before_ps = 0;
    pc_draws_begin(&w->rng, run->outline->spec->seed, sample, PC_DRAWN_PASSES, replica, d);
    for (int64_t i = schedule->offsets[d]; i < schedule->offsets[d + 1]; i++) {
        pc_pass pass = schedule->passes[i];
        double own_ps = mean_ps[pass.chunk * PC_PASS_KINDS + pass.kind] * pc_factors_draw(&run->passes, &w->rng);
        bool is_second = w->costs.pair_ps && pc_schedule_is_second(schedule, i);
        if (is_second)
            w->duration_ps[i - 1] = pc_outline_pair_ps(&w->outline, &w->costs, d, schedule->passes[i - 1], pass, 0,
                                                       pc_time_drawn(before_ps), pc_time_drawn(own_ps));
        w->duration_ps[i] = is_second ? 0 : whole_pass(w, d, pass, own_ps);
        before_ps = own_ps;
    }
}

/* Of each pass that has one; where stages do not go on meanwhile, a transfer is part of its pass. */
static void draw_transfers(const samples_run *run, int64_t sample, int64_t replica, int d, worker *w) {
    const pc_schedule *schedule = run->schedule;
    const int32_t *hop = run->base->hop + (int64_t)d * run->base->chunks * PC_PASS_KINDS;
    bool is_delay = run->outline->spec->overlaps_p2p, varies = pc_factors_vary(&run->transfers);
    if (is_delay && !varies) return;
    if (varies) pc_draws_begin(&w->rng, run->outline->spec->seed, sample, PC_DRAWN_TRANSFERS, replica, d);
    for (int64_t i = schedule->offsets[d]; i < schedule->offsets[d + 1]; i++) {
        pc_pass pass = schedule->passes[i];
        int32_t h = hop[pass.chunk * PC_PASS_KINDS + pass.kind];
        pc_time time = h < 0 ? 0 : pc_time_drawn((double)w->hop_ps[h] * pc_factors_draw(&run->transfers, &w->rng));
        bool is_second = w->costs.pair_ps && pc_schedule_is_second(schedule, i);
        w->delay_ps[i] = time;
        if (is_delay) continue;
        if (is_second) /* both at once: as long as the longer one */
            w->duration_ps[i - 1] += pc_max(time - w->delay_ps[i - 1], 0);
        else
            w->duration_ps[i] += time;
    }
}

static void draw_replica(const samples_run *run, int64_t sample, int64_t replica, worker *w) {
    for (int d = 0; d < run->base->devices; d++) {
        draw_passes(run, sample, replica, d, w);
        draw_transfers(run, sample, replica, d, w);
    }
}

static void take_replica(const samples_run *run, const pc_costs *costs, const pc_timing_result *found, worker *w) {
    pc_ends_take(run->schedule, costs, found->start_ps, found->end_ps, &w->ends);
}

/* What was not drawn is as the costs say. */
static void fill_in_replica(const samples_run *run, bool is_drawn, worker *w) {
    const pc_schedule *schedule = run->schedule;
    bool has_transfers = is_drawn && (pc_factors_vary(&run->transfers) || !run->outline->spec->overlaps_p2p);
    for (int d = 0; d < run->base->devices; d++)
        for (int64_t i = schedule->offsets[d]; i < schedule->offsets[d + 1]; i++) {
            pc_pass pass = schedule->passes[i];
            int64_t cell = pc_costs_index(&w->costs, d, pass.chunk);
            int32_t h = run->base->hop[cell * PC_PASS_KINDS + pass.kind];
            if (!is_drawn) w->duration_ps[i] = pc_costs_busy_ps(&w->costs, schedule, d, i);
            if (!has_transfers) w->delay_ps[i] = h < 0 ? 0 : w->hop_ps[h];
        }
}

static void take_longest(const pc_time *from_ps, size_t count, bool is_first, pc_time *longest_ps) {
    for (size_t i = 0; i < count; i++) longest_ps[i] = is_first ? from_ps[i] : pc_max(longest_ps[i], from_ps[i]);
}

/* Replicas in step: each pass and transfer takes what it takes in the slowest of them. */
static void draw_in_step(const samples_run *run, int64_t sample, int64_t first, int64_t count, worker *w) {
    size_t passes = (size_t)run->schedule->offsets[run->base->devices];
    size_t cells = (size_t)run->base->devices * (size_t)run->base->chunks;
    bool is_drawn = sample >= 0 && run->varies;
    for (int64_t r = first; r < first + count; r++) {
        set_costs(run, r, w);
        if (is_drawn) draw_replica(run, sample, r, w);
        if (count == 1) return;
        fill_in_replica(run, is_drawn, w);
        take_longest(w->duration_ps, 2 * passes, r == first, w->longest_ps);
        if (w->costs.ready_ps) take_longest(w->costs.ready_ps, cells, r == first, w->longest_ps + 2 * passes);
    }
    memcpy(w->duration_ps, w->longest_ps, 2 * passes * sizeof *w->duration_ps);
    if (w->costs.ready_ps) memcpy(w->costs.ready_ps, w->longest_ps + 2 * passes, cells * sizeof *w->costs.ready_ps);
}

static void keep_replicas(const samples_run *run, bool is_drawn, int64_t count, worker *w) {
    if (count == 1) fill_in_replica(run, is_drawn, w);
    for (int64_t i = 0; i < count; i++)
        pc_sample_events_keep(&w->events, w->duration_ps, w->delay_ps, w->costs.ready_ps);
}

/* `count` replicas in step, from `first` on, whose times are one's. Where sample is not -1, with noise of their own. On
 * the engine all are run together, later. */
static pc_code time_replicas(const samples_run *run, int64_t sample, int64_t first, int64_t count, worker *w) {
    pc_timing_result found;
    bool is_drawn = sample >= 0 && run->varies, overlaps_p2p = run->outline->spec->overlaps_p2p;
    bool has_delays = overlaps_p2p && (count > 1 || (is_drawn && pc_factors_vary(&run->transfers)));
    draw_in_step(run, sample, first, count, w);
    if (runs_on_engine(run)) {
        keep_replicas(run, is_drawn, count, w);
        return PC_OK;
    }
    pc_costs costs = w->costs;
    if (w->held_device >= 0) {
        costs.ready_ps = w->held_ready_ps;
        pc_outline_hold(&w->costs, w->held_device, w->held_ps, costs.ready_ps);
    }
    pc_code code = pc_timing_run_each(w->timing, run->schedule, &costs, is_drawn || count > 1 ? w->duration_ps : NULL,
                                      has_delays ? w->delay_ps : NULL, &found, &w->error);
    if (!code) take_replica(run, &costs, &found, w);
    return code;
}

/* ---- one sample ---- */

static pc_code run_on_engine(worker *w, pc_time *iteration_ps) {
    pc_flows_result found;
    pc_code code = pc_sample_events_run(&w->events, &w->outline, w->held_device, w->held_ps, &found, &w->error);
    if (code) return code;
    *iteration_ps = found.whole_ps;
    for (int d = 0; d < w->outline.devices; d++) {
        w->ends.begin_ps[d] = found.begin_ps[d];
        w->done_ps[d] = found.step_end_ps[d] - found.begin_ps[d];
    }
    pc_flows_free(&found);
    return pc_outline_check_end(*iteration_ps, &w->error);
}

static pc_code end_sample(const samples_run *run, worker *w, pc_time *iteration_ps) {
    if (runs_on_engine(run)) return run_on_engine(w, iteration_ps);
    pc_outline_find_backlog(&w->outline, run->schedule, w->ends.pass_ps, w->backlog_ps);
    pc_outline_reduce_gradients(&w->outline, 0, &w->ends, w->backlog_ps, w->done_ps);
    return pc_outline_finish(&w->outline, 0, w->ends.begin_ps, w->done_ps, iteration_ps, &w->error);
}

static bool are_equal(const samples_run *run, const worker *w, int64_t first, int64_t other, int64_t in_step) {
    for (int64_t k = 0; k < in_step; k++)
        if (!pc_conditions_are_equal(run->base, &w->conditions, first + k, other + k)) return false;
    return true;
}

static bool is_timed(const samples_run *run, const worker *w, int64_t replica, int64_t in_step, int64_t count) {
    for (int64_t i = 0; i < count; i++)
        if (are_equal(run, w, replica, w->distinct[i], in_step)) return true;
    return false;
}

/* Of a worker whose conditions are there; sample -1: the good day, whose replicas are equal. */
static pc_code time_sample(const samples_run *run, int64_t sample, worker *w, pc_time *iteration_ps) {
    bool all_differ = run->varies || run->base->bad_days->gpu_jitter > 0;
    int64_t count = 0, replicas = sample < 0 ? 1 : run->base->replicas, in_step = sample < 0 ? 1 : run->in_step;
    pc_code code = PC_OK;
    begin_sample(run, w);
    for (int64_t r = 0; !code && r < replicas; r += in_step) {
        if (!all_differ && is_timed(run, w, r, in_step, count)) continue;
        w->distinct[count++] = r;
        code = time_replicas(run, sample, r, in_step, w);
    }
    return code ? code : end_sample(run, w, iteration_ps);
}

typedef struct held_sample {
    const samples_run *run;
    int64_t sample;
    worker *w;
} held_sample;

static pc_code time_held(void *context, int device, pc_time held_ps, pc_time *step_end_ps) {
    const held_sample *x = context;
    pc_time unused_ps;
    x->w->held_device = device;
    x->w->held_ps = held_ps;
    pc_code code = time_sample(x->run, x->sample, x->w, &unused_ps);
    x->w->held_device = -1;
    *step_end_ps = x->w->done_ps[device];
    return code;
}

static pc_code work_out(const samples_run *run, int64_t sample, worker *w, pc_time *iteration_ps) {
    size_t bytes = (size_t)run->base->devices * sizeof *w->begin_ps;
    held_sample held = {run, sample, w};
    pc_code code = time_sample(run, sample, w, iteration_ps);
    if (code || run->outline->spec->step != PC_STEP_POST_VALIDATION) return code;
    memcpy(w->begin_ps, w->ends.begin_ps, bytes);
    memcpy(w->period_ps, w->done_ps, bytes);
    return pc_outline_own_pace(&w->outline, w->begin_ps, w->period_ps, time_held, &held, iteration_ps);
}

static void run_sample(void *context, int number, int64_t sample) {
    const samples_run *run = context;
    worker *w = &run->workers[number];
    if (w->error.code) return;
    pc_conditions_draw(run->base, sample, &w->rng, &w->conditions);
    work_out(run, sample, w, &run->sample_ps[sample]); /* w->error says where that failed */
}

/* The iteration in which nothing happens, by the same costs. */
static pc_code run_good(const samples_run *run, double *good_s, pc_error *error) {
    worker *w = &run->workers[0];
    pc_time good_ps;
    pc_conditions_be_good(run->base, &w->conditions);
    pc_code code = work_out(run, -1, w, &good_ps);
    if (code) return pc_error_copy(error, &w->error);
    *good_s = pc_time_to_seconds(good_ps);
    return PC_OK;
}

/* ---- all of them ---- */

static pc_code sum_up(const pc_time *sample_ps, int64_t count, pc_bad_days_result *result, pc_error *error) {
    double *sorted = pc_alloc((size_t)count, sizeof *sorted), sum = 0, squares = 0, n = (double)count;
    if (!sorted) return pc_error_no_memory(error);
    for (int64_t i = 0; i < count; i++) sum += sorted[i] = pc_time_to_seconds(sample_ps[i]);
    for (int64_t i = 0; i < count; i++) squares += (sorted[i] - sum / n) * (sorted[i] - sum / n);
    pc_sort_reals(sorted, count);
    result->samples = count;
    result->iteration_mean_s = sum / n;
    result->iteration_mean_error_s = count > 1 ? sqrt(squares / (n - 1) / n) : NAN;
    result->iteration_p05_s = pc_quantile_of(sorted, count, 0.05);
    result->iteration_p50_s = pc_quantile_of(sorted, count, 0.50);
    result->iteration_p95_s = pc_quantile_of(sorted, count, 0.95);
    result->iteration_p99_s = pc_quantile_of(sorted, count, 0.99);
    pc_free(sorted);
    return PC_OK;
}

static pc_code run_workers(samples_run *run, int threads, int64_t samples, double *good_s, pc_error *error) {
    pc_code code = PC_OK;
    int opened = 0;
    for (; opened < threads && !code; opened++) code = open_worker(run, &run->workers[opened], error);
    if (!code) code = run_good(run, good_s, error);
    if (!code) pc_parallel_run(threads, samples, run_sample, run);
    for (int i = 0; i < opened; i++) {
        worker *w = &run->workers[i];
        if (!code && w->error.code) code = pc_error_copy(error, &w->error);
        close_worker(w);
    }
    return code;
}

static pc_code run_all(samples_run *run, pc_bad_days_result *result, pc_error *error) {
    const pc_iteration_spec *spec = run->outline->spec;
    int64_t samples = spec->bad_days.samples;
    int threads = spec->threads < 1 ? 1 : spec->threads > samples ? (int)samples : spec->threads;
    run->workers = pc_alloc((size_t)threads, sizeof *run->workers);
    run->sample_ps = pc_alloc((size_t)samples, sizeof *run->sample_ps);
    pc_code code = PC_OK;
    if (!run->workers || !run->sample_ps) code = pc_error_no_memory(error);
    if (!code) code = run_workers(run, threads, samples, &result->good_s, error);
    if (!code) code = sum_up(run->sample_ps, samples, result, error);
    pc_free(run->workers);
    return code;
}

pc_code pc_samples_run(const pc_outline *outline, const pc_schedule *schedule, pc_iteration *iteration,
                       pc_error *error) {
    const pc_iteration_spec *spec = outline->spec;
    pc_sample_base base;
    pc_bad_days_result result = pc_bad_days_none();
    pc_code code = pc_sample_base_make(outline, &base, error);
    if (code) return code;
    samples_run run = {.outline = outline,
                       .schedule = schedule,
                       .base = &base,
                       .passes = pc_factors_lognormal(spec->jitter),
                       .transfers = pc_factors_lognormal(spec->bad_days.link_jitter)};
    run.passes.empirical = spec->bad_days.passes;
    run.varies = pc_factors_vary(&run.passes) || pc_factors_vary(&run.transfers);
    run.in_step = pc_cut_replicas_in_step(&spec->model, &outline->cut);
    code = run_all(&run, &result, error);
    pc_sample_base_free(&base);
    if (code) {
        pc_free(run.sample_ps);
        return code;
    }
    iteration->bad_days = result;
    iteration->sample_ps = run.sample_ps;
    return PC_OK;
}
