#include "tests/iteration_recount.h"

#include "engine/numbers.h"
#include "models/cost/dispatch.h"
#include "models/cost/roofline.h"
#include "models/cost/spread.h"
#include "models/workload/memory.h"
#include "models/workload/operation.h"
#include "tests/longest_path.h"
#include "tests/support.h"

#include <math.h>

typedef struct recount {
    const pc_iteration_spec *spec;
    pc_cut cut; /* the spec's, with its slices */
    pc_cost_model cost;
    pc_ranks ranks;
    pc_group tp, dp, cp, exchange;
    bool is_folded; /* experts have other ranks than all else */
    pc_group ep, etp, edp;
    pc_hop round;
    int p, v, parts;
    pc_placement placement;
    pc_schedule schedule;
    pc_costs costs;
    double *start, *end; /* of passes, seconds */
} recount;

static double alone(const recount *of, const pc_group *group, pc_collective collective, double bytes) {
    return pc_collective_course_of(&of->spec->machine, group, collective, PC_ALGORITHM_BEST, bytes).seconds;
}

static pc_part part_of(const recount *of, int device, int chunk) {
    pc_part part = pc_cut_part(&of->spec->model, &of->spec->cut, of->parts,
                               pc_placement_part(of->placement, of->p, device, chunk));
    if (of->cut.slices > 0) part.slice = chunk % of->cut.slices;
    return part;
}

static const pc_group *group_of(const recount *of, const pc_operation *o) {
    if (o->group == PC_GROUP_ETP) return &of->etp;
    return o->group == PC_GROUP_CP ? &of->cp : o->group == PC_GROUP_CP_A2A ? &of->exchange : &of->tp;
}

/* Of a rank: its part of the sequence (with sequence parallelism), of each of a microbatch. */
static double routed_tokens(const recount *of) {
    const pc_cut *cut = &of->spec->cut;
    return (double)cut->microbatch_size * (double)cut->seq_len / pc_cut_cp(cut) / cut->tp;
}

/* A token goes with all its numbers, to experts perhaps in 8 bits. Of the dispatchers allgather alone sends what all
 * ranks that cut an expert have; the load counts rows of each of these. */
static double exchange_s(const recount *of, const pc_operation *o) {
    const pc_experts *experts = &of->spec->model.experts;
    double h = (double)of->spec->model.hidden, etp = of->etp.ranks, topk = (double)experts->topk;
    bool is_combine = o->kind == PC_OPERATION_COMBINE, is_whole = of->cut.dispatcher == PC_DISPATCHER_ALLGATHER;
    double tokens = routed_tokens(of), rows = (double)o->rows;
    pc_dispatch what = {
        .dispatcher = of->cut.dispatcher,
        .is_combine = is_combine,
        .tokens = is_whole ? tokens * etp : tokens,
        .token_bytes = of->cut.fp8_dispatch && !is_combine ? h + h / 128 * 4 : 2 * h,
        .routing = {(double)experts->num_experts, topk, (int)experts->router_groups, (int)experts->router_group_topk},
        .load = rows / (tokens * topk * etp)};
    return pc_dispatch_course(&of->spec->machine, &of->ep, &what).seconds;
}

/* From its start to its end, whatever is beside it. */
static double whole_s(const recount *of, const pc_operation *o) {
    const pc_group *group = group_of(of, o);
    double bytes = (double)o->size_bytes;
    switch (o->kind) {
    case PC_OPERATION_DISPATCH:
    case PC_OPERATION_COMBINE:
        return exchange_s(of, o);
    case PC_OPERATION_ALL_REDUCE:
        return alone(of, group, PC_COLLECTIVE_ALL_REDUCE, bytes);
    case PC_OPERATION_ALL_GATHER:
        return alone(of, group, PC_COLLECTIVE_ALL_GATHER, bytes);
    case PC_OPERATION_REDUCE_SCATTER:
        return alone(of, group, PC_COLLECTIVE_REDUCE_SCATTER, bytes);
    case PC_OPERATION_ALL_TO_ALL:
        return alone(of, group, PC_COLLECTIVE_ALL_TO_ALL, bytes);
    case PC_OPERATION_RING:
        return pc_message_seconds(&of->spec->machine, &of->round, bytes) + of->spec->machine.collective_call_s;
    default:
        return of->cost.kernel(of->cost.self, o).seconds;
    }
}

/* A collective, or what kernels behind a ring's leave of it. */
static double wait_s(const recount *of, const pc_operation *o) {
    if (o->kind != PC_OPERATION_RING) return whole_s(of, o);
    return pc_max(whole_s(of, o) - of->cost.kernel(of->cost.self, o + 1).seconds, 0);
}

/* Of an eager program an operation takes module_s, and each further expert expert_s; at least a launch each. */
static double host_s(const recount *of, const pc_operation *o) {
    const pc_gpu *gpu = &of->spec->machine.gpu;
    double launch = of->cost.launch_s, seconds = (double)o->launches * launch;
    if (!of->spec->counts_modules || launch <= 0 || o->launches == 0) return seconds;
    if (!o->is_within) seconds += pc_max(gpu->module_s - launch, 0);
    if (o->is_by_expert) seconds += (double)(o->launches - 1) * pc_max(gpu->expert_s - launch, 0);
    return seconds;
}

/* From a layer's dispatch on the host has launched nothing ahead: it waits for a copy, then launches one operation
 * after the other. Each begins when it is launched and the one before it is over. Seconds that the GPU idles. */
static double idle_behind_s(const recount *of, const pc_operations *list, int first) {
    const pc_gpu *gpu = &of->spec->machine.gpu;
    double launched = gpu->kernel_s + gpu->launch_s, over = 0, idle = 0;
    for (int i = first; i < list->count && list->list[i].repeat == list->list[first].repeat; i++) {
        const pc_operation *o = &list->list[i];
        if (o->role != PC_GEMM_FORWARD) break;
        launched += host_s(of, o);
        idle += pc_max(launched - over, 0);
        over = pc_max(launched, over) + whole_s(of, o);
    }
    return idle;
}

/* Where counts of tokens are not known before. */
static bool is_waited_for(const recount *of, const pc_operation *o) {
    return of->cost.launch_s > 0 && !of->spec->model.experts.pads_to_capacity && o->kind == PC_OPERATION_DISPATCH &&
           o->role == PC_GEMM_FORWARD;
}

/* Kernels and collectives one by one, none of which overlap but a ring's; or the launches of both. */
static double pass_s(const recount *of, int device, int chunk, pc_pass_kind kind) {
    pc_operations list;
    pc_part part = part_of(of, device, chunk);
    double kernels = 0, launches = 0, waits = 0;
    assert_int_equal(pc_pass_operations(&of->spec->model, &of->cut, &part, kind, false, &list, NULL), PC_OK);
    for (int i = 0; i < list.count; i++) {
        const pc_operation *o = &list.list[i];
        double repeat = (double)o->repeat;
        if (o->kind >= PC_OPERATION_ALL_REDUCE)
            waits += repeat * wait_s(of, o);
        else
            kernels += repeat * of->cost.kernel(of->cost.self, o).seconds;
        launches += repeat * host_s(of, o);
        if (is_waited_for(of, o)) waits += repeat * idle_behind_s(of, &list, i);
    }
    return pc_max(kernels + waits, launches) * (1 + of->spec->pass_overhead) *
           (1 + of->spec->machine.speed_variation * pc_expected_largest(pc_ranks_gpus(&of->ranks)));
}

static double hop_s(const recount *of, int from, int to) {
    const pc_iteration_spec *spec = of->spec;
    bool scatters = spec->scatters_boundary && spec->cut.tp > 1;
    double whole = 2.0 * (double)spec->cut.seq_len * (double)spec->cut.microbatch_size * (double)spec->model.hidden /
                   pc_cut_cp(&spec->cut);
    if (of->cut.slices > 0) whole = ceil(whole / of->cut.slices); /* a mean slice */
    double bytes = scatters || spec->cut.sequence_parallel ? whole / spec->cut.tp : whole;
    bool is_next = to == (from + 1) % of->p;
    pc_hop hop = pc_hop_between(&spec->machine, &of->ranks, is_next ? from : to, is_next ? to : from);
    double gathers = scatters && !spec->cut.sequence_parallel ? alone(of, &of->tp, PC_COLLECTIVE_ALL_GATHER, whole) : 0;
    return pc_message_seconds(&spec->machine, &hop, bytes) + gathers;
}

/* To where a pass's output goes, or -1. */
static int next_stage(const recount *of, int device, int chunk, pc_pass_kind kind) {
    int part = pc_placement_part(of->placement, of->p, device, chunk), step = kind == PC_PASS_F ? 1 : -1;
    if (kind == PC_PASS_W || part + step < 0 || part + step == of->parts) return -1;
    int to = pc_placement_stage(of->placement, of->p, part + step, chunk);
    return to == device ? -1 : to;
}

/* Those that have gradients. */
static int64_t chunk_parameters(const recount *of, int device, int chunk) {
    pc_part part = part_of(of, device, chunk);
    bool shares =
        of->placement != PC_PLACEMENT_BIDIRECTIONAL &&
        pc_placement_stage(of->placement, of->p, 0, 0) == pc_placement_stage(of->placement, of->p, of->parts - 1, 0);
    return pc_part_trained(&of->spec->model, &of->spec->cut, &part, shares);
}

/* Of an expert's adapters A and B of each matrix, that etp cuts. */
static int64_t expert_adapters(const recount *of, int64_t f, int64_t ups) {
    const pc_lora *lora = &of->spec->cut.lora;
    int64_t h = of->spec->model.hidden, r = lora->rank / (lora->divides_rank ? of->spec->model.experts.topk : 1);
    int64_t part = r / of->etp.ranks, sum = 0;
    if (lora->targets & PC_LORA_FC1) sum += h * part + r * ups * f;
    if (lora->targets & PC_LORA_FC2) sum += f * r + part * h;
    return sum;
}

/* Of them those of folded experts: matrices up and down, gated ones two up, and biases; or adapters, one for each, or
 * for all. */
static int64_t chunk_experts(const recount *of, int device, int chunk) {
    const pc_model *model = &of->spec->model;
    pc_part part = part_of(of, device, chunk);
    if (!of->is_folded || part.slice > 0) return 0;
    int64_t f = model->experts.ffn_hidden / of->etp.ranks, ups = pc_mlp_is_gated(model->mlp) ? 2 : 1;
    int64_t biases = model->has_bias ? ups * f + model->hidden : 0;
    const pc_lora *lora = &of->spec->cut.lora;
    int64_t adapters = lora->shares_experts ? 1 : model->experts.num_experts / of->ep.ranks;
    if (lora->rank > 0) return part.expert_layers * adapters * expert_adapters(of, f, ups);
    return part.expert_layers * (model->experts.num_experts / of->ep.ranks) * ((ups + 1) * f * model->hidden + biases);
}

/* ---- data parallelism ---- */

typedef struct buckets {
    double count, reduce_s, gather_s;
} buckets;

static buckets buckets_of(const recount *of, int device, int chunk) {
    double parameters = (double)chunk_parameters(of, device, chunk), limit = (double)of->spec->bucket_bytes;
    double most = limit > 0 ? 1e9 : 16; /* unless a size is asked for */
    bool is_whole = of->spec->cut.zero == 0;
    buckets b = {1, 0, 0};
    if (part_of(of, device, chunk).slice > 0) return b; /* the first slice's */
    if (limit == 0) limit = 160e6;
    while (b.count < most && b.count * limit < 4 * parameters) b.count++;
    pc_collective reduction = is_whole ? PC_COLLECTIVE_ALL_REDUCE : PC_COLLECTIVE_REDUCE_SCATTER;
    double experts = (double)chunk_experts(of, device, chunk), others = parameters - experts;
    b.reduce_s = alone(of, &of->dp, reduction, 4 * others / b.count);
    b.gather_s = is_whole ? 0 : alone(of, &of->dp, PC_COLLECTIVE_ALL_GATHER, 2 * others / b.count);
    if (experts > 0) b.reduce_s += alone(of, &of->edp, reduction, 4 * experts / b.count);
    if (experts > 0 && !is_whole) b.gather_s += alone(of, &of->edp, PC_COLLECTIVE_ALL_GATHER, 2 * experts / b.count);
    return b;
}

/* When the n-th of the stage's chunks, in the order of parts, can start F so that no bucket comes late: each is needed
 * when its share of the kernels begins, whatever transfer follows them. */
static void set_ready(recount *of, int device) {
    double stream = 0;
    bool is_reversed = of->placement == PC_PLACEMENT_BIDIRECTIONAL && device >= of->p - device;
    for (int i = 0; i < of->v; i++) {
        int chunk = is_reversed ? of->v - 1 - i : i;
        buckets b = buckets_of(of, device, chunk);
        double ready = 0, f = pass_s(of, device, chunk, PC_PASS_F);
        for (double k = 0; k < b.count; k++) ready = pc_max(ready, (stream += b.gather_s) - k / b.count * f);
        of->costs.ready_ps[device * of->v + chunk] = (pc_time)(ready * 1e12);
    }
    for (int c = 0; !of->spec->overlaps_parameters && c < of->v; c++)
        of->costs.ready_ps[device * of->v + c] = (pc_time)(stream * 1e12);
}

/* Each bucket in the order in which passes end, after the one before it and after its share of its pass. */
static double reduced_at(const recount *of, int device) {
    int64_t first = of->schedule.offsets[device], behind = of->schedule.offsets[device + 1];
    double stream = 0;
    for (int64_t i = first; i < behind; i++) {
        pc_pass pass = of->schedule.passes[i];
        bool is_last = pass.kind == PC_PASS_W || pass.kind == PC_PASS_BW;
        for (int64_t j = i + 1; j < behind; j++)
            is_last &= of->schedule.passes[j].chunk != pass.chunk ||
                       (of->schedule.passes[j].kind != PC_PASS_W && of->schedule.passes[j].kind != PC_PASS_BW);
        if (!is_last) continue;
        buckets b = buckets_of(of, device, pass.chunk);
        for (double k = 1; k <= b.count; k++) {
            double share = of->start[i] + k / b.count * (of->end[i] - of->start[i]);
            stream = pc_max(stream, of->spec->overlaps_gradients ? share : of->end[behind - 1]) + b.reduce_s;
        }
    }
    return pc_max(stream, of->end[behind - 1]);
}

/* ---- the end ---- */

static int64_t share_of(const recount *of, int64_t count, int64_t ranks) {
    return of->spec->cut.zero ? (count + ranks - 1) / ranks : count;
}

static double step_s(const recount *of, int device) {
    int64_t count = 0, experts = 0;
    for (int c = 0; c < of->v; c++) {
        count += chunk_parameters(of, device, c);
        experts += chunk_experts(of, device, c);
    }
    int64_t share = share_of(of, count - experts, of->dp.ranks) + share_of(of, experts, of->edp.ranks);
    pc_operation step = {.kind = PC_OPERATION_OPTIMIZER,
                         .batch = 1,
                         .m = share,
                         .n = 1,
                         .k = 1,
                         .bytes = 42 * share + 4 * count,
                         .launches = 4,
                         .repeat = 1};
    return pc_max(of->cost.kernel(of->cost.self, &step).seconds, 4 * of->cost.launch_s);
}

static pc_group pair_of(const recount *of, int a, int b) {
    pc_hop hop = pc_hop_between(&of->spec->machine, &of->ranks, a, b);
    return (pc_group){.ranks = 2,
                      .in_domain = hop.in_domain ? 2 : 1,
                      .domains = hop.in_domain ? 1 : 2,
                      .in_leaf = hop.crosses_leaves ? 1 : 2,
                      .nic_bytes_per_s = hop.in_domain ? 0 : hop.bytes_per_s,
                      .uplink_bytes_per_s = hop.crosses_leaves ? hop.bytes_per_s : 0,
                      .crosses_leaves = hop.crosses_leaves};
}

static void meet_ends(const recount *of, double *done) {
    int first = pc_placement_stage(of->placement, of->p, 0, 0);
    int last = pc_placement_stage(of->placement, of->p, of->parts - 1, 0);
    bool is_tied = of->spec->model.is_tied, has_copy = is_tied || of->spec->model.mtp_layers > 0;
    bool is_trained = of->spec->cut.lora.rank == 0 &&
                      !(of->spec->cut.frozen & (int32_t)(is_tied ? PC_FROZEN_HEAD : PC_FROZEN_EMBEDDING));
    if (has_copy && is_trained && first != last) {
        pc_group pair = pair_of(of, first, last);
        double bytes = 4.0 * (double)pc_model_padded_vocab(&of->spec->model, of->spec->cut.tp) / of->spec->cut.tp *
                       (double)of->spec->model.hidden;
        done[first] = done[last] = pc_max(done[first], done[last]) + alone(of, &pair, PC_COLLECTIVE_ALL_REDUCE, bytes);
    }
    done[last] += alone(of, &of->dp, PC_COLLECTIVE_ALL_REDUCE, 4);
}

static void find_done(const recount *of, double *done) {
    for (int d = 0; d < of->p; d++)
        done[d] = of->dp.ranks > 1 || of->edp.ranks > 1 ? reduced_at(of, d) : of->end[of->schedule.offsets[d + 1] - 1];
    meet_ends(of, done);
}

/* The adapter that all experts have is summed over ep, too, when every rank has its gradients: the largest stage's. */
static double shared_adapters_s(const recount *of) {
    const pc_lora *lora = &of->spec->cut.lora;
    double most = 0;
    if (lora->rank == 0 || !lora->shares_experts || !of->is_folded || of->ep.ranks < 2) return 0;
    for (int d = 0; d < of->p; d++) {
        double sum = 0;
        for (int c = 0; c < of->v; c++) sum += 4.0 * (double)chunk_experts(of, d, c);
        most = pc_max(most, sum);
    }
    return most > 0 ? alone(of, &of->ep, PC_COLLECTIVE_ALL_REDUCE, most) : 0;
}

/* All stages wait for the latest gradients, and for the slowest step. */
static double finish(const recount *of) {
    pc_group pp = pc_group_of(&of->spec->machine, &of->ranks, PC_AXIS_PP);
    double done[64], end = 0, slowest = 0;
    find_done(of, done);
    for (int d = 0; d < of->p; d++) {
        end = pc_max(end, done[d]);
        slowest = pc_max(slowest, step_s(of, d));
    }
    double norm = alone(of, &of->tp, PC_COLLECTIVE_ALL_REDUCE, 4) + alone(of, &pp, PC_COLLECTIVE_ALL_REDUCE, 4) +
                  alone(of, &of->dp, PC_COLLECTIVE_ALL_REDUCE, 4);
    return end + norm + shared_adapters_s(of) + slowest;
}

/* ---- passes ---- */

static void set_costs(recount *of) {
    static const pc_pass_kind kinds[] = {PC_PASS_F, PC_PASS_B, PC_PASS_W, PC_PASS_BW};
    assert_int_equal(pc_costs_create(of->p, of->v, &of->costs, NULL), PC_OK);
    assert_int_equal(pc_costs_add_hop_delays(&of->costs, NULL), PC_OK);
    assert_int_equal(pc_costs_add_ready(&of->costs, NULL), PC_OK);
    for (int d = 0; d < of->p; d++) {
        for (int c = 0; c < of->v; c++)
            for (int k = 0; k < 4; k++) {
                double seconds = pass_s(of, d, c, kinds[k]);
                int to = next_stage(of, d, c, kinds[k]);
                if (to >= 0 && !of->spec->overlaps_p2p) seconds += hop_s(of, d, to);
                of->costs.duration_ps[(d * of->v + c) * PC_PASS_KINDS + kinds[k]] = (pc_time)(seconds * 1e12 + 0.5);
            }
        if (of->p > 1 && of->spec->overlaps_p2p)
            of->costs.hop_delay_ps[d] = (pc_time)(hop_s(of, d, (d + 1) % of->p) * 1e12 + 0.5);
        set_ready(of, d);
    }
}

static void time_passes(recount *of) {
    int64_t passes = of->schedule.offsets[of->p];
    pc_time *start = calloc((size_t)passes, sizeof *start), *end = calloc((size_t)passes, sizeof *end);
    assert_true(longest_path(&of->schedule, &of->costs, start, end));
    free(of->start);
    free(of->end);
    of->start = calloc((size_t)passes, sizeof *of->start);
    of->end = calloc((size_t)passes, sizeof *of->end);
    for (int64_t i = 0; i < passes; i++) {
        of->start[i] = (double)start[i] / 1e12;
        of->end[i] = (double)end[i] / 1e12;
    }
    free(start);
    free(end);
}

/* Nobody waits: what each stage takes that begins long after all else was there. */
static double finish_each(recount *of) {
    double done[64], period = 0, held = 1000;
    for (int d = 0; d < of->p; d++) {
        for (int c = 0; c < of->v; c++) of->costs.ready_ps[d * of->v + c] += (pc_time)(held * 1e12);
        time_passes(of);
        find_done(of, done);
        for (int c = 0; c < of->v; c++) of->costs.ready_ps[d * of->v + c] -= (pc_time)(held * 1e12);
        period = pc_max(period, done[d] + step_s(of, d) - held);
    }
    return period;
}

/* Two replicas in a pipeline: every rank's gradients are on the stage across, too; those of folded experts as well. */
static void join_replicas(const recount *of, pc_group *dp) {
    pc_group pair = pair_of(of, 0, of->p - 1);
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

/* Neighbours exchange heads; keys go round one rank of each row of them. */
static void place_context(recount *of) {
    const pc_cut *cut = &of->spec->cut;
    pc_ranks rows = of->ranks, round = of->ranks;
    int exchange = cut->cp_comm == PC_CP_A2A ? cut->cp : cut->cp_comm == PC_CP_A2A_P2P ? cut->cp_a2a : 1;
    if (cut->cp < 2) return;
    pc_ranks_split(&of->ranks, PC_AXIS_CP, exchange, &rows, &round);
    of->cp = pc_group_of(&of->spec->machine, &of->ranks, PC_AXIS_CP);
    of->exchange = pc_group_of(&of->spec->machine, &rows, PC_AXIS_CP);
    of->round = pc_hop_round(&of->spec->machine, &round, PC_AXIS_CP);
}

/* Experts' grid of the same ranks; without ep and etp of their own their gradients go with all others. */
static void place_experts(recount *of) {
    const pc_cut *cut = &of->spec->cut;
    const pc_machine *machine = &of->spec->machine;
    pc_ranks experts;
    of->etp = of->tp;
    of->edp.ranks = 1;
    of->is_folded = of->spec->model.experts.num_experts > 0 && (cut->ep > 1 || (cut->etp > 0 && cut->etp != cut->tp));
    if (!of->is_folded) return;
    int etp = cut->etp > 0 ? cut->etp : cut->tp, ep = cut->ep > 1 ? cut->ep : 1;
    assert_int_equal(pc_ranks_place_experts(&of->ranks, of->spec->order, etp, ep, &experts, NULL), PC_OK);
    of->ep = pc_group_of(machine, &experts, (pc_axis)PC_AXIS_EP);
    of->etp = pc_group_of(machine, &experts, PC_AXIS_TP);
    of->edp = pc_group_of(machine, &experts, PC_AXIS_DP);
}

static void make_schedule(recount *of) {
    const pc_iteration_spec *spec = of->spec;
    pc_generate_request request = {
        .devices = of->p, .microbatches = spec->cut.microbatches, .chunks = of->v, .slices = spec->cut.slices};
    if (pc_generator_has_sliced_parts(spec->generator))
        assert_int_equal(pc_generate(spec->generator, &request, &of->schedule, NULL, NULL), PC_OK);
    else
        assert_int_equal(
            pc_schedule_generate(spec->generator, of->p, spec->cut.microbatches, of->v, &of->schedule, NULL), PC_OK);
}

double recount_iteration(const pc_iteration_spec *spec) {
    recount of = {.spec = spec,
                  .cut = spec->cut,
                  .cost = pc_roofline(&spec->machine.gpu),
                  .p = spec->cut.pp,
                  .v = spec->cut.chunks,
                  .placement = pc_generator_placement(spec->generator, spec->cut.chunks, spec->cut.slices)};
    if (pc_placement_has_slices(of.placement)) of.cut.slices = pc_placement_slices(of.placement, of.v);
    of.parts = pc_placement_parts(of.placement, of.p, of.v);
    assert_int_equal(pc_ranks_place(&spec->machine, spec->order,
                                    (pc_rank_counts){spec->cut.tp, spec->cut.pp, spec->cut.dp, spec->cut.cp}, &of.ranks,
                                    NULL),
                     PC_OK);
    of.tp = pc_group_of(&spec->machine, &of.ranks, PC_AXIS_TP);
    of.dp = pc_group_of_both(&spec->machine, &of.ranks, PC_AXIS_DP, PC_AXIS_CP);
    place_context(&of);
    place_experts(&of);
    if (of.placement == PC_PLACEMENT_BIDIRECTIONAL && of.p > 1) {
        join_replicas(&of, &of.dp);
        if (of.is_folded) join_replicas(&of, &of.edp);
    }
    make_schedule(&of);
    set_costs(&of);
    time_passes(&of);
    double seconds = spec->step == PC_STEP_NORM ? finish(&of) : finish_each(&of);
    pc_schedule_free(&of.schedule);
    pc_costs_free(&of.costs);
    free(of.start);
    free(of.end);
    return seconds + (double)spec->overhead_ps / 1e12;
}
