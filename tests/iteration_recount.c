#include "tests/iteration_recount.h"

#include "engine/numbers.h"
#include "models/cost/roofline.h"
#include "models/cost/spread.h"
#include "models/workload/memory.h"
#include "models/workload/operation.h"
#include "tests/longest_path.h"
#include "tests/support.h"

typedef struct recount {
    const pc_iteration_spec *spec;
    pc_cost_model cost;
    pc_ranks ranks;
    pc_group tp, dp;
    int p, v, parts;
    pc_placement placement;
    pc_schedule schedule;
    pc_costs costs;
    double *start, *end; /* of passes, seconds */
} recount;

static double alone(const recount *x, const pc_group *group, pc_collective collective, double bytes) {
    return pc_collective_course_of(&x->spec->machine, group, collective, PC_ALGORITHM_BEST, bytes).seconds;
}

static pc_part part_of(const recount *x, int device, int chunk) {
    return pc_cut_part(&x->spec->model, &x->spec->cut, x->parts, pc_placement_part(x->placement, x->p, device, chunk));
}

/* Kernels and collectives one by one, none of which overlap; or the launches of both. */
static double pass_s(const recount *x, int device, int chunk, pc_pass_kind kind) {
    pc_operations list;
    pc_part part = part_of(x, device, chunk);
    double kernels = 0, launches = 0, waits = 0;
    assert_int_equal(pc_pass_operations(&x->spec->model, &x->spec->cut, &part, kind, false, &list, NULL), PC_OK);
    for (int i = 0; i < list.count; i++) {
        const pc_operation *o = &list.list[i];
        double repeat = (double)o->repeat;
        if (o->kind == PC_OPERATION_ALL_REDUCE)
            waits += repeat * alone(x, &x->tp, PC_COLLECTIVE_ALL_REDUCE, (double)o->size_bytes);
        else if (o->kind == PC_OPERATION_ALL_GATHER)
            waits += repeat * alone(x, &x->tp, PC_COLLECTIVE_ALL_GATHER, (double)o->size_bytes);
        else if (o->kind == PC_OPERATION_REDUCE_SCATTER)
            waits += repeat * alone(x, &x->tp, PC_COLLECTIVE_REDUCE_SCATTER, (double)o->size_bytes);
        else
            kernels += repeat * x->cost.kernel(x->cost.self, o).seconds;
        launches += repeat * (double)o->launches * x->cost.launch_s;
    }
    return pc_max(kernels + waits, launches) * (1 + x->spec->pass_overhead) *
           (1 +
            x->spec->machine.speed_variation * pc_expected_largest((int64_t)x->spec->cut.tp * x->p * x->spec->cut.dp));
}

static double hop_s(const recount *x, int from, int to) {
    const pc_iteration_spec *spec = x->spec;
    bool scatters = spec->scatters_boundary && spec->cut.tp > 1;
    double whole = 2.0 * (double)spec->cut.seq_len * (double)spec->cut.microbatch_size * (double)spec->model.hidden;
    double bytes = scatters || spec->cut.sequence_parallel ? whole / spec->cut.tp : whole;
    bool is_next = to == (from + 1) % x->p;
    pc_hop hop = pc_hop_between(&spec->machine, &x->ranks, is_next ? from : to, is_next ? to : from);
    double gathers = scatters && !spec->cut.sequence_parallel ? alone(x, &x->tp, PC_COLLECTIVE_ALL_GATHER, whole) : 0;
    return pc_message_seconds(&spec->machine, &hop, bytes) + gathers;
}

/* To where a pass's output goes, or -1. */
static int next_stage(const recount *x, int device, int chunk, pc_pass_kind kind) {
    int part = pc_placement_part(x->placement, x->p, device, chunk), step = kind == PC_PASS_F ? 1 : -1;
    if (kind == PC_PASS_W || part + step < 0 || part + step == x->parts) return -1;
    int to = pc_placement_stage(x->placement, x->p, part + step, chunk);
    return to == device ? -1 : to;
}

static int64_t chunk_parameters(const recount *x, int device, int chunk) {
    pc_part part = part_of(x, device, chunk);
    bool shares =
        x->placement != PC_PLACEMENT_BIDIRECTIONAL &&
        pc_placement_stage(x->placement, x->p, 0, 0) == pc_placement_stage(x->placement, x->p, x->parts - 1, 0);
    return pc_part_parameters(&x->spec->model, &x->spec->cut, &part, shares);
}

/* ---- data parallelism ---- */

typedef struct buckets {
    double count, reduce_s, gather_s;
} buckets;

static buckets buckets_of(const recount *x, int device, int chunk) {
    double parameters = (double)chunk_parameters(x, device, chunk), limit = (double)x->spec->bucket_bytes;
    double most = limit > 0 ? 1e9 : 16; /* unless a size is asked for */
    bool is_whole = x->spec->cut.zero == 0;
    buckets b = {1, 0, 0};
    if (limit == 0) limit = 160e6;
    while (b.count < most && b.count * limit < 4 * parameters) b.count++;
    pc_collective reduction = is_whole ? PC_COLLECTIVE_ALL_REDUCE : PC_COLLECTIVE_REDUCE_SCATTER;
    b.reduce_s = alone(x, &x->dp, reduction, 4 * parameters / b.count);
    b.gather_s = is_whole ? 0 : alone(x, &x->dp, PC_COLLECTIVE_ALL_GATHER, 2 * parameters / b.count);
    return b;
}

/* When the n-th of the stage's chunks, in the order of parts, can start F so that no bucket comes late: each is needed
 * when its share of the kernels begins, whatever transfer follows them. */
static void set_ready(recount *x, int device) {
    double stream = 0;
    bool is_reversed = x->placement == PC_PLACEMENT_BIDIRECTIONAL && device >= x->p - device;
    for (int i = 0; i < x->v; i++) {
        int chunk = is_reversed ? x->v - 1 - i : i;
        buckets b = buckets_of(x, device, chunk);
        double ready = 0, f = pass_s(x, device, chunk, PC_PASS_F);
        for (double k = 0; k < b.count; k++) ready = pc_max(ready, (stream += b.gather_s) - k / b.count * f);
        x->costs.ready_ps[device * x->v + chunk] = (pc_time)(ready * 1e12);
    }
    for (int c = 0; !x->spec->overlaps_parameters && c < x->v; c++)
        x->costs.ready_ps[device * x->v + c] = (pc_time)(stream * 1e12);
}

/* Each bucket in the order in which passes end, after the one before it and after its share of its pass. */
static double reduced_at(const recount *x, int device) {
    int64_t first = x->schedule.offsets[device], behind = x->schedule.offsets[device + 1];
    double stream = 0;
    for (int64_t i = first; i < behind; i++) {
        pc_pass pass = x->schedule.passes[i];
        bool is_last = pass.kind == PC_PASS_W || pass.kind == PC_PASS_BW;
        for (int64_t j = i + 1; j < behind; j++)
            is_last &= x->schedule.passes[j].chunk != pass.chunk ||
                       (x->schedule.passes[j].kind != PC_PASS_W && x->schedule.passes[j].kind != PC_PASS_BW);
        if (!is_last) continue;
        buckets b = buckets_of(x, device, pass.chunk);
        for (double k = 1; k <= b.count; k++) {
            double share = x->start[i] + k / b.count * (x->end[i] - x->start[i]);
            stream = pc_max(stream, x->spec->overlaps_gradients ? share : x->end[behind - 1]) + b.reduce_s;
        }
    }
    return pc_max(stream, x->end[behind - 1]);
}

/* ---- the end ---- */

static double step_s(const recount *x, int device) {
    double count = 0;
    for (int c = 0; c < x->v; c++) count += (double)chunk_parameters(x, device, c);
    int64_t ranks = x->dp.ranks, share = x->spec->cut.zero ? ((int64_t)count + ranks - 1) / ranks : (int64_t)count;
    pc_operation step = {.kind = PC_OPERATION_OPTIMIZER,
                         .batch = 1,
                         .m = share,
                         .n = 1,
                         .k = 1,
                         .bytes = 42 * share + 4 * (int64_t)count,
                         .launches = 4,
                         .repeat = 1};
    return pc_max(x->cost.kernel(x->cost.self, &step).seconds, 4 * x->cost.launch_s);
}

static pc_group pair_of(const recount *x, int a, int b) {
    pc_hop hop = pc_hop_between(&x->spec->machine, &x->ranks, a, b);
    return (pc_group){.ranks = 2,
                      .in_domain = hop.in_domain ? 2 : 1,
                      .domains = hop.in_domain ? 1 : 2,
                      .in_leaf = hop.crosses_leaves ? 1 : 2,
                      .nic_bytes_per_s = hop.in_domain ? 0 : hop.bytes_per_s,
                      .uplink_bytes_per_s = hop.crosses_leaves ? hop.bytes_per_s : 0,
                      .crosses_leaves = hop.crosses_leaves};
}

static void meet_ends(const recount *x, double *done) {
    int first = pc_placement_stage(x->placement, x->p, 0, 0);
    int last = pc_placement_stage(x->placement, x->p, x->parts - 1, 0);
    if (x->spec->model.is_tied && first != last) {
        pc_group pair = pair_of(x, first, last);
        double bytes = 4.0 * (double)pc_model_padded_vocab(&x->spec->model, x->spec->cut.tp) / x->spec->cut.tp *
                       (double)x->spec->model.hidden;
        done[first] = done[last] = pc_max(done[first], done[last]) + alone(x, &pair, PC_COLLECTIVE_ALL_REDUCE, bytes);
    }
    done[last] += alone(x, &x->dp, PC_COLLECTIVE_ALL_REDUCE, 4);
}

static void find_done(const recount *x, double *done) {
    for (int d = 0; d < x->p; d++)
        done[d] = x->spec->cut.dp > 1 || x->dp.ranks > 1 ? reduced_at(x, d) : x->end[x->schedule.offsets[d + 1] - 1];
    meet_ends(x, done);
}

/* All stages wait for the latest gradients, and for the slowest step. */
static double finish(const recount *x) {
    pc_group pp = pc_group_of(&x->spec->machine, &x->ranks, PC_AXIS_PP);
    double done[64], end = 0, slowest = 0;
    find_done(x, done);
    for (int d = 0; d < x->p; d++) {
        end = pc_max(end, done[d]);
        slowest = pc_max(slowest, step_s(x, d));
    }
    double norm = alone(x, &x->tp, PC_COLLECTIVE_ALL_REDUCE, 4) + alone(x, &pp, PC_COLLECTIVE_ALL_REDUCE, 4) +
                  alone(x, &x->dp, PC_COLLECTIVE_ALL_REDUCE, 4);
    return end + norm + slowest;
}

/* ---- passes ---- */

static void set_costs(recount *x) {
    static const pc_pass_kind kinds[] = {PC_PASS_F, PC_PASS_B, PC_PASS_W, PC_PASS_BW};
    assert_int_equal(pc_costs_create(x->p, x->v, &x->costs, NULL), PC_OK);
    assert_int_equal(pc_costs_add_hop_delays(&x->costs, NULL), PC_OK);
    assert_int_equal(pc_costs_add_ready(&x->costs, NULL), PC_OK);
    for (int d = 0; d < x->p; d++) {
        for (int c = 0; c < x->v; c++)
            for (int k = 0; k < 4; k++) {
                double seconds = pass_s(x, d, c, kinds[k]);
                int to = next_stage(x, d, c, kinds[k]);
                if (to >= 0 && !x->spec->overlaps_p2p) seconds += hop_s(x, d, to);
                x->costs.duration_ps[(d * x->v + c) * PC_PASS_KINDS + kinds[k]] = (pc_time)(seconds * 1e12 + 0.5);
            }
        if (x->p > 1 && x->spec->overlaps_p2p)
            x->costs.hop_delay_ps[d] = (pc_time)(hop_s(x, d, (d + 1) % x->p) * 1e12 + 0.5);
        set_ready(x, d);
    }
}

static void time_passes(recount *x) {
    int64_t passes = x->schedule.offsets[x->p];
    pc_time *start = calloc((size_t)passes, sizeof *start), *end = calloc((size_t)passes, sizeof *end);
    assert_true(longest_path(&x->schedule, &x->costs, start, end));
    free(x->start);
    free(x->end);
    x->start = calloc((size_t)passes, sizeof *x->start);
    x->end = calloc((size_t)passes, sizeof *x->end);
    for (int64_t i = 0; i < passes; i++) {
        x->start[i] = (double)start[i] / 1e12;
        x->end[i] = (double)end[i] / 1e12;
    }
    free(start);
    free(end);
}

/* Nobody waits: what each stage takes that begins long after all else was there. */
static double finish_each(recount *x) {
    double done[64], period = 0, held = 1000;
    for (int d = 0; d < x->p; d++) {
        for (int c = 0; c < x->v; c++) x->costs.ready_ps[d * x->v + c] += (pc_time)(held * 1e12);
        time_passes(x);
        find_done(x, done);
        for (int c = 0; c < x->v; c++) x->costs.ready_ps[d * x->v + c] -= (pc_time)(held * 1e12);
        period = pc_max(period, done[d] + step_s(x, d) - held);
    }
    return period;
}

/* Two replicas in a pipeline: every rank's gradients are on the stage across, too. */
static void join_replicas(recount *x) {
    pc_group pair = pair_of(x, 0, x->p - 1), *dp = &x->dp;
    if (dp->ranks == 1) {
        *dp = pair;
        return;
    }
    if (!(dp->nic_bytes_per_s > 0) || (pair.nic_bytes_per_s > 0 && pair.nic_bytes_per_s < dp->nic_bytes_per_s))
        dp->nic_bytes_per_s = pair.nic_bytes_per_s;
    dp->ranks *= 2;
    dp->in_domain *= pair.in_domain;
    dp->domains *= pair.domains;
    dp->in_leaf *= pair.in_leaf;
    dp->crosses_leaves |= pair.crosses_leaves;
}

double recount_iteration(const pc_iteration_spec *spec) {
    recount x = {.spec = spec,
                 .cost = pc_roofline(&spec->machine.gpu),
                 .p = spec->cut.pp,
                 .v = spec->cut.chunks,
                 .placement = spec->generator->placement};
    x.parts = pc_placement_parts(x.placement, x.p, x.v);
    assert_int_equal(
        pc_ranks_place(&spec->machine, spec->order, spec->cut.tp, spec->cut.pp, spec->cut.dp, &x.ranks, NULL), PC_OK);
    x.tp = pc_group_of(&spec->machine, &x.ranks, PC_AXIS_TP);
    x.dp = pc_group_of(&spec->machine, &x.ranks, PC_AXIS_DP);
    if (x.placement == PC_PLACEMENT_BIDIRECTIONAL && x.p > 1) join_replicas(&x);
    assert_int_equal(pc_schedule_generate(spec->generator, x.p, spec->cut.microbatches, x.v, &x.schedule, NULL), PC_OK);
    set_costs(&x);
    time_passes(&x);
    double seconds = spec->step == PC_STEP_NORM ? finish(&x) : finish_each(&x);
    pc_schedule_free(&x.schedule);
    pc_costs_free(&x.costs);
    free(x.start);
    free(x.end);
    return seconds + (double)spec->overhead_ps / 1e12;
}
