/* A lower bound on an iteration's time, whatever the order of its passes, from what holds in any:
 *
 * (1) A microbatch goes through the parts in order, forward and back; a transfer takes its delay, and F waits for its
 * parameters. So the first F of part q ends at f_end(q) = max(f_end(q-1) + delay, ready(q)) + F(q) at the earliest, and
 * after a backward pass of part q come those of parts q-1 to 0.
 *
 * (2) A stage does one pass at a time, and the first one is F of its first part: the last one ends no earlier than
 * f_end - F + work, work being all passes of all its microbatches. The last backward pass stands behind all its F and B
 * (or BW; W may come later), and behind that the way back to part 0 is still to go.
 *
 * (3) Where the order is known and a stage of one chunk has at most n microbatches under way, F of microbatch i+n
 * stands behind the backward pass of microbatch i. From F of one to the end of its backward pass, the way down and back
 * takes at least trip = sum over parts from q of F + back + delays. So the last backward pass ends no earlier than
 * f_end - F + r F + (k+1) trip with m-1 = k n + r (Little's law).
 *
 * (4) Where the order is known, let a stage have at most n chunks of microbatches under way. Their times from F to the
 * end of the backward pass, each a trip at least, lie in n lanes. So the last one ends no earlier than f_end - F + sum
 * of trips / n. It tells of schedules that let few microbatches in, and of two replicas.
 *
 * (5) A schedule that searches has no span below that of the relaxation of docs/searches.md, within the memory that it
 * may take (plan_bound_spans). It may hold less than there is, but no more: what does not fit is no plan.
 *
 * (6) Where the order is known, so is when each stage's passes end if nothing meets on links (plan_bound_order): every
 * time in that walk is a sum of the longest ones before it, which no slower pass or transfer makes shorter.
 *
 * (7) Behind the last passes: gradients, bucket by bucket on a stream of the stage's own, the tied embedding, the loss,
 * the norm, the step and the overhead, as finish.c adds them up. The stream carries all buckets behind the first one,
 * of which ZeRO 2 has some after every backward pass; where the order is known, so is which are left at any time
 * (bound_close.c).
 *
 * Over flows nothing takes less than it takes alone, but for rounding: a transfer or a bucket is a latency and bytes,
 * each rounded, and passes are cut into pieces that wait for buckets. What goes over links is shaved by more than that.
 */
#include "models/planner/bounder.h"

#include "engine/alloc.h"
#include "engine/numbers.h"
#include "models/planner/bound_twin.h"
#include "models/training/buckets.h"
#include "models/training/expand_replicas.h"
#include "models/training/finish.h"
#include "models/training/lower.h"
#include "models/training/outline_restate.h"
#include "models/training/outline_units.h"
#include "models/training/pass_costs.h"

#include <string.h>

/* Less than rounding of a flow's latency, its bytes and its ends can take away. */
pc_time plan_shave(pc_time time) {
    pc_time less = time - (time >> 16) - 16;
    return less > 0 ? less : 0;
}

void plan_bounder_free(plan_bounder *bounder) {
    pc_outline_memo_free(bounder->memo);
    plan_held_store_free(&bounder->held_store);
    pc_free(bounder->cells);
    pc_free(bounder->stage);
    pc_free(bounder->under_way_ps);
    pc_free(bounder->span_ps);
    pc_free(bounder->end_ps);
    plan_twin_free(bounder);
    pc_timing_free(bounder->timing);
    memset(bounder, 0, sizeof *bounder);
}

/* ---- where the parts are ---- */

/* Ways through the model of their own: replicas, and slices of the sequence. */
static int count_replicas(const pc_outline *outline) {
    if (pc_placement_has_slices(outline->placement)) return pc_placement_slices(outline->placement, outline->chunks);
    return outline->placement == PC_PLACEMENT_BIDIRECTIONAL ? 2 : 1;
}

static pc_code make_room(plan_bounder *bounder, const pc_outline *outline, pc_error *error) {
    int cells = outline->devices * outline->chunks;
    if (cells > bounder->cell_room) {
        pc_free(bounder->cells);
        bounder->cell_room = 0;
        bounder->cells = pc_alloc((size_t)cells, sizeof *bounder->cells);
        if (!bounder->cells) return pc_error_no_memory(error);
        bounder->cell_room = cells;
    }
    if (outline->devices > bounder->stage_room) {
        pc_free(bounder->stage);
        pc_free(bounder->under_way_ps);
        bounder->stage_room = 0;
        bounder->stage = pc_alloc(3 * (size_t)outline->devices, sizeof *bounder->stage);
        bounder->under_way_ps = pc_alloc((size_t)outline->devices, sizeof *bounder->under_way_ps);
        if (!bounder->stage || !bounder->under_way_ps) return pc_error_no_memory(error);
        bounder->stage_room = outline->devices;
    }
    return PC_OK;
}

static void place_cells(plan_bounder *bounder, const pc_outline *outline) {
    int replicas = count_replicas(outline);
    int64_t m = outline->cut.microbatches;
    bool is_cut = pc_placement_has_slices(outline->placement);
    for (int i = 0; i < outline->devices * outline->chunks; i++) {
        int replica = i / outline->parts,
            part = i % outline->parts; /* replica r has the microbatches of number r mod 2 */
        plan_cell *x = &bounder->cells[i];
        x->device = pc_placement_stage(outline->placement, outline->devices, part, replica);
        x->chunk = pc_placement_chunk(outline->placement, outline->devices, part, replica) + (is_cut ? replica : 0);
        x->sort = outline->chunks_of[(int64_t)x->device * outline->chunks + x->chunk].sort;
        x->microbatches = replicas == 1 || is_cut ? m : (m + 1 - replica) / 2;
    }
}

static void forget_close(plan_bounder *bounder) {
    pc_free(bounder->span_ps);
    pc_free(bounder->end_ps);
    bounder->span_ps = bounder->end_ps = NULL;
}

static pc_code take_up(plan_bounder *bounder, const pc_outline *outline, pc_error *error) {
    const pc_generator *generator = outline->spec->generator;
    bounder->held = NULL;
    bounder->taken = NULL;
    forget_close(bounder);
    plan_twin_drop(bounder);
    pc_code code = make_room(bounder, outline, error);
    bool is_own =
        !generator->searches && !pc_generator_has_making(generator, outline->spec->making) && !bounder->has_pairs;
    if (!code && is_own)
        code = plan_held_find(&bounder->held_store, generator, outline->devices, outline->cut.microbatches,
                              outline->chunks, outline->cut.slices, pc_outline_recomputes_in_b(outline), &bounder->held,
                              error);
    if (!code) place_cells(bounder, outline);
    return code;
}

static pc_code open_memo(plan_bounder *bounder, int base, pc_error *error) {
    if (bounder->memo && bounder->memo_base == base) return PC_OK;
    pc_outline_memo_free(bounder->memo);
    bounder->memo = NULL;
    bounder->memo_base = base;
    pc_code code = pc_outline_memo_create(&bounder->memo, error);
    if (!code) bounder->memo->is_for_what_fits = true;
    return code;
}

pc_code plan_bounder_outline(plan_bounder *bounder, const pc_plan_space *space, int base, const pc_iteration_spec *spec,
                             pc_outline *outline, pc_error *error) {
    pc_outline made;
    pc_code code = open_memo(bounder, base, error);
    if (!code) code = pc_outline_make_with(spec, space->bases[base].cost, bounder->memo, &made, error);
    if (code) return code;
    bounder->has_pairs = space->bases[base].spec.overlaps_pairs && pc_generator_pairs(spec->generator, 1, 1);
    code = take_up(bounder, &made, error);
    if (!code) code = plan_twin_take(bounder, space, base, &made, error);
    if (code) {
        pc_outline_free(&made);
        return code;
    }
    *outline = made;
    bounder->taken = outline;
    return PC_OK;
}

pc_code plan_bounder_restate(plan_bounder *bounder, const pc_plan_space *space, int base, const pc_iteration_spec *spec,
                             pc_outline *outline, pc_error *error) {
    bool is_at_work = bounder->taken == outline;
    if (outline->devices == 0 || !pc_outline_can_restate(outline, spec)) {
        pc_outline_free(outline);
        return plan_bounder_outline(bounder, space, base, spec, outline, error);
    }
    pc_code code = pc_outline_restate(outline, spec, error);
    if (!code && is_at_work) forget_close(bounder);
    if (!code && !is_at_work) code = take_up(bounder, outline, error);
    if (code) {
        pc_outline_free(outline);
        return code;
    }
    bounder->taken = outline;
    return PC_OK;
}

/* ---- what they take ---- */

/* Parts of an outline that differ: the first, the last, and between them those of which a recipe leaves no layer in 16
 * bits, all, or some at the model's beginning or end. Each may have slices of the sequence, which differ, too; and with
 * vocabulary parallelism some have a slice of the vocabulary. */
enum { TIMED_SORTS = 12 };
typedef pc_time sort_times[PC_PASS_KINDS];

/* What an outline's overlaps and network make of its times. */
typedef struct reading {
    const pc_outline *outline;
    plan_scope scope;
    bool overlaps_gradients, overlaps_parameters, overlaps_p2p; /* the spec's, or all */
    bool has_pairs;                                             /* the bounder's */
    bool is_flows, is_operations; /* over a network of flows; and passes as their operations */
    sort_times *alone;            /* a row a sort */
    sort_times *rest;             /* of that, what operations over flows may come to less */
} reading;

bool plan_runs_flows(const pc_outline *outline, plan_scope scope) {
    const pc_iteration_spec *spec = outline->spec;
    if (spec->network != PC_NETWORK_AUTO) return spec->network == PC_NETWORK_FLOWS;
    if (spec->granularity == PC_GRANULARITY_OPERATIONS) return true;
    return scope == SCOPE_ONE ? pc_outline_meets(outline) : true;
}

/* Two passes that run together take their kernels at least. */
static double least_pass_s(const reading *view, const pc_pass_cost *cost) {
    if (view->has_pairs) return cost->kernel_s;
    return cost->compute_s + (view->scope == SCOPE_SHAPE ? 0 : cost->tp_s + cost->cp_s + cost->ep_s);
}

/* Of a pass in operations over flows only the kernels are counted: a bucket of n comes after an n-th of them, whenever
 * the host launched them. */
static pc_code read_passes(reading *view, pc_error *error) {
    const pc_outline *outline = view->outline;
    pc_code code = PC_OK;
    view->is_flows = plan_runs_flows(outline, view->scope);
    view->is_operations = view->is_flows && outline->spec->granularity == PC_GRANULARITY_OPERATIONS;
    for (int sort = 0; sort < outline->sort_count; sort++)
        for (int kind = 0; !code && kind < PC_PASS_KINDS; kind++) {
            const pc_pass_cost *cost = &outline->part_costs[sort].pass[kind];
            pc_time kernels_ps = 0;
            if (!pc_outline_has_kind(outline->spec->generator, (pc_pass_kind)kind)) continue;
            code =
                pc_outline_time("pass", least_pass_s(view, cost) * outline->pace, 1, &view->alone[sort][kind], error);
            if (code || !view->is_operations) continue;
            code = pc_outline_time("kernels", cost->kernel_s * outline->pace, 1, &kernels_ps, error);
            view->rest[sort][kind] = view->alone[sort][kind] - plan_shave(kernels_ps);
        }
    return code;
}

static pc_time over_link(const reading *view, pc_time time) {
    return view->is_flows ? plan_shave(time) : time;
}

/* Whatever is gathered ahead, the wire carries all. */
static pc_time sum_wire(const reading *view, int device, pc_pass pass, pc_time alone) {
    pc_units units = pc_outline_units_of(view->outline, device, pass, alone);
    pc_time wire = 0;
    for (int i = 0; i < pc_units_steps(&units); i++)
        wire += pc_units_step(&units, i).gather_ps + pc_units_step(&units, i).reduce_ps;
    return wire;
}

/* pc_outline_with_zero, of any overlaps: what can lie beside a pass does. */
static pc_time with_zero(const reading *view, int device, pc_pass pass, pc_time alone) {
    const pc_chunk_outline *chunk = &view->outline->chunks_of[(int64_t)device * view->outline->chunks + pass.chunk];
    pc_time beside = 0;
    if (view->scope == SCOPE_ONE) return pc_outline_with_zero(view->outline, device, pass, alone);
    if (pc_outline_has_units(view->outline)) return pc_max(alone, sum_wire(view, device, pass, alone));
    if (view->outline->cut.zero == 3 && pass.kind != PC_PASS_W) beside += chunk->buckets * chunk->gather_ps;
    if (view->outline->cut.zero == 3 && pc_pass_adds_gradients(pass)) beside += chunk->buckets * chunk->reduce_ps;
    return pc_max(alone, beside);
}

/* A pass, ZeRO's collectives in it included; of two passes that run together they may lie beside the other one. */
static pc_time read_pass(const reading *view, const plan_cell *cell, pc_pass_kind kind) {
    pc_time alone = view->alone[cell->sort][kind], time = alone;
    pc_pass pass = {0, (int16_t)cell->chunk, (int16_t)kind};
    if (!pc_outline_has_kind(view->outline->spec->generator, kind)) return 0;
    if (view->scope == SCOPE_SHAPE) return alone - view->rest[cell->sort][kind];
    if (view->outline->cut.zero >= 2 && !view->has_pairs) time = with_zero(view, cell->device, pass, alone);
    return time - view->rest[cell->sort][kind];
}

static pc_time read_hop(const reading *view, int from, int to) {
    if (from == to || view->scope == SCOPE_SHAPE) return 0;
    return over_link(view, view->outline->device[pc_outline_hop(view->outline, from, to)].hop_ps);
}

/* Transfers are delays, or, where a stage waits for what it has sent, part of the pass that sent it; but two passes
 * that run together wait once. */
static void add_hops(const reading *view, plan_cell *cell, plan_cell *next) {
    pc_time down = read_hop(view, cell->device, next->device), up = read_hop(view, next->device, cell->device);
    bool overlaps = view->overlaps_p2p || view->has_pairs;
    cell->delay_down = overlaps ? down : 0;
    cell->delay_up = overlaps ? up : 0;
    if (overlaps) return;
    cell->f += down;
    next->back += up;
    next->back_most += up;
    next->last_most += up;
}

/* Of any overlaps ZeRO 2 reduces behind its passes, as it does where gradients overlap. */
static bool reduces_behind(const reading *view) {
    const pc_outline *outline = view->outline;
    if (view->scope == SCOPE_SHAPE) return false;
    return view->scope == SCOPE_ONE
               ? pc_outline_reduces_behind(outline)
               : pc_outline_has_replicas(outline) && (outline->cut.zero != 3 || pc_outline_reduces_last(outline));
}

/* A backward pass is a B and a W, or a BW; of a schedule that mixes them either. */
static void read_backward(const reading *view, plan_cell *cell) {
    const pc_generator *generator = view->outline->spec->generator;
    pc_time b = read_pass(view, cell, PC_PASS_B), w = read_pass(view, cell, PC_PASS_W);
    pc_time bw = read_pass(view, cell, PC_PASS_BW);
    cell->back = generator->mixes ? pc_min(b, bw) : generator->splits ? b : bw;
    cell->w = generator->mixes ? pc_min(b + w, bw) - cell->back : w;
    cell->back_most = pc_max(b, bw);
    cell->last_most = pc_max(w, bw);
}

static void read_cells(const reading *view, plan_cell *cells) {
    const pc_outline *outline = view->outline;
    bool reduces = reduces_behind(view);
    int count = outline->devices * outline->chunks;
    for (int i = 0; i < count; i++) {
        plan_cell *cell = &cells[i];
        const pc_chunk_outline *chunk = &outline->chunks_of[(int64_t)cell->device * outline->chunks + cell->chunk];
        cell->f = read_pass(view, cell, PC_PASS_F);
        cell->r = read_pass(view, cell, PC_PASS_R);
        read_backward(view, cell);
        cell->delay_down = cell->delay_up = cell->ready = 0;
        cell->buckets = chunk->buckets;
        cell->reduce = reduces ? over_link(view, chunk->reduce_ps) : 0;
    }
}

static void read_hops(const reading *view, plan_cell *cells) {
    int count = view->outline->devices * view->outline->chunks;
    for (int i = 0; i + 1 < count; i++)
        if ((i + 1) % view->outline->parts != 0) add_hops(view, &cells[i], &cells[i + 1]);
}

/* ---- parameters ---- */

static plan_cell *cell_of(const reading *view, plan_cell *cells, int device, int chunk) {
    const pc_outline *outline = view->outline;
    int part = pc_placement_part(outline->placement, outline->devices, device, chunk);
    int replica = pc_placement_has_slices(outline->placement) ? chunk % count_replicas(outline) : chunk;
    return &cells[count_replicas(outline) > 1 ? replica * outline->parts + part : part];
}

/* pc_outline_set_ready: the k-th of b buckets is there at s + (k+1) g, and needed k b-ths into F; the latest of that is
 * that of the first or of the last bucket. Before transfers are added to passes. */
static void read_ready(const reading *view, plan_cell *cells, int device) {
    const pc_outline *outline = view->outline;
    pc_time stream = 0;
    for (int i = 0; i < outline->chunks; i++) {
        int chunk = pc_outline_nth_chunk(outline, device, i);
        const pc_chunk_outline *chunk_outline = &outline->chunks_of[(int64_t)device * outline->chunks + chunk];
        plan_cell *cell = cell_of(view, cells, device, chunk);
        pc_time gather = over_link(view, chunk_outline->gather_ps), b = chunk_outline->buckets;
        pc_time first = stream + gather, last = stream + b * gather - cell->f / b * (b - 1);
        stream += b * gather;
        cell->ready = pc_max(pc_max(first, last), 0);
        if (view->is_flows) cell->ready = plan_shave(cell->ready);
    }
    for (int c = 0; !view->overlaps_parameters && c < outline->chunks; c++)
        cell_of(view, cells, device, c)->ready = stream;
}

/* ---- (1) to (6) ---- */

static void find_f_ends(const reading *view, plan_cell *cells) {
    int count = view->outline->devices * view->outline->chunks;
    for (int i = 0; i < count; i++) {
        plan_cell *cell = &cells[i];
        bool is_first = i % view->outline->parts == 0;
        pc_time arrives = is_first ? 0 : cells[i - 1].f_end + cells[i - 1].delay_down;
        cell->f_end = pc_max(arrives, cell->ready) + cell->f;
    }
}

/* Behind all F of a microbatch, and its backward passes of the parts behind. */
static void find_back_starts(const reading *view, plan_cell *cells) {
    for (int i = view->outline->devices * view->outline->chunks; i-- > 0;) {
        bool is_last = (i + 1) % view->outline->parts == 0;
        cells[i].back_start =
            is_last ? cells[i].f_end : cells[i + 1].back_start + cells[i + 1].back + cells[i].delay_up;
    }
}

/* A stage's first pass starts at the earliest of its chunks' (of parts in order that of the first part); `first` is
 * that part's cell. Its passes take `work`, and those that stand before its last backward pass, `before_last` of them.
 */
typedef struct stage_sums {
    int first;
    pc_time start, work, before_last;
} stage_sums;

static stage_sums sum_stage(const reading *view, plan_cell *cells, int device) {
    stage_sums sums = {.first = -1};
    for (int c = 0; c < view->outline->chunks; c++) {
        const plan_cell *cell = cell_of(view, cells, device, c);
        int number = (int)(cell - cells);
        if (cell->microbatches == 0) continue;
        pc_time start = cell->f_end - cell->f;
        if (sums.first < 0 || start < sums.start) sums.start = start;
        if (sums.first < 0 || number < sums.first) sums.first = number;
        pc_time before = cell->microbatches * (cell->f + cell->r + cell->back);
        sums.before_last += before;
        sums.work += before + cell->microbatches * cell->w;
    }
    return sums;
}

/* (3) of a stage whose start counts as 0; trip: down and back from its part. */
static pc_time by_trips(const plan_bounder *bounder, const plan_cell *cell, pc_time trip) {
    int64_t n = plan_held_under_way(bounder->held, cell->device), last = cell->microbatches - 1;
    return n > 0 ? last % n * cell->f + (last / n + 1) * trip : 0;
}

/* (4), likewise; doubles are rounded by less than is taken off. */
static pc_time by_lanes(const plan_bounder *bounder, int device) {
    int64_t n = plan_held_under_way(bounder->held, device);
    double least = n > 0 ? bounder->under_way_ps[device] / (double)n * (1 - 1e-9) : 0;
    return least < (double)PC_TIME_MAX / 16 ? (pc_time)least : 0;
}

/* ---- (7) ---- */

/* From the end of a stage's last pass to when its gradients are reduced. Not overlapped all buckets are left; otherwise
 * the last one, and those that the last pass of its chunk, whichever it is, does not hide. With barriers T may stand
 * behind it, and hide all. */
static pc_time tail_of(const reading *view, plan_cell *cells, int device) {
    pc_time all = 0, least = PC_TIME_MAX;
    for (int c = 0; c < view->outline->chunks; c++) {
        const plan_cell *cell = cell_of(view, cells, device, c);
        pc_time b = cell->buckets, share = cell->last_most / b + 1;
        if (cell->microbatches == 0) continue;
        all += b * cell->reduce;
        least = pc_min(least, pc_max(cell->reduce, b * cell->reduce - share * (b - 1)));
    }
    if (!view->overlaps_gradients) return all;
    if (view->outline->spec->generator->barriers != PC_BARRIERS_NONE) return 0;
    return least == PC_TIME_MAX ? 0 : least;
}

/* With ZeRO 2 a pass's own buckets come with it or behind it, be it a BW, or the W behind a B. The stage's first one is
 * of its last part. */
static pc_time first_gradients(const reading *view, const plan_cell *last, pc_time start) {
    const pc_generator *generator = view->outline->spec->generator;
    if (view->outline->spec->step != PC_STEP_NORM) return start;
    return pc_max(start, last->back_start + (generator->splits && !generator->mixes ? last->back : 0));
}

/* All buckets come after the first of them can be sent. If the stage's parts come in order, that is not before all F of
 * the stage and all backward passes of its last part but the last one. */
static pc_time stream_of(const reading *view, plan_cell *cells, int device, pc_time start) {
    const pc_outline *outline = view->outline;
    pc_time all = 0, first = start, longest = 0;
    int last_part = -1;
    if (count_replicas(outline) > 1 || !view->overlaps_gradients) return 0;
    for (int c = 0; c < outline->chunks; c++) {
        const plan_cell *cell = cell_of(view, cells, device, c);
        all += cell->buckets * cell->reduce;
        first += cell->microbatches * cell->f;
        if (cell - cells > last_part) last_part = (int)(cell - cells);
        longest = pc_max(longest, cell->back_most + cell->r);
    }
    if (all == 0) return 0;
    const plan_cell *cell = &cells[last_part];
    if (outline->cut.zero == 2) return first_gradients(view, cell, start) + cell->microbatches * all;
    first += cell->microbatches * (cell->back + cell->r) - longest;
    return pc_max(first, start) + all;
}

/* The end of the iteration where every stage has done at `done` (POST_VALIDATION: since its parameters were there). */
static pc_time finish_at(const reading *view, pc_time *done) {
    const pc_outline *outline = view->outline;
    int first = pc_placement_stage(outline->placement, outline->devices, 0, 0);
    int last = pc_placement_stage(outline->placement, outline->devices, outline->parts - 1, 0);
    bool waits = outline->spec->step == PC_STEP_NORM;
    pc_time end = 0, slowest = 0, norm = view->scope == SCOPE_SHAPE ? 0 : outline->norm_ps;
    if (outline->tied_ps > 0 && view->scope != SCOPE_SHAPE) {
        int other = outline->tied_stage;
        pc_time both = pc_max(done[first], done[other]);
        done[first] = (waits ? both : done[first]) + outline->tied_ps;
        done[other] = (waits ? both : done[other]) + outline->tied_ps;
    }
    done[last] += view->scope == SCOPE_SHAPE ? 0 : outline->loss_ps;
    for (int d = 0; d < outline->devices; d++) {
        end = pc_max(end, done[d] + (waits ? 0 : outline->device[d].step_ps));
        slowest = pc_max(slowest, outline->device[d].step_ps);
    }
    return end + (waits ? norm + slowest : 0) + outline->spec->overhead_ps;
}

/* ---- the bound ---- */

/* Whether all sums can be counted: m passes and m reductions of every part, one after the other. */
static bool can_be_counted(const reading *view, const plan_cell *cells) {
    double sum = 0;
    for (int i = 0; i < view->outline->devices * view->outline->chunks; i++) {
        const plan_cell *cell = &cells[i];
        double once = (double)cell->f + (double)cell->r + (double)cell->back + (double)cell->w +
                      (double)cell->delay_down + (double)cell->delay_up + (double)cell->buckets * (double)cell->reduce;
        sum += ((double)view->outline->cut.microbatches + 1) * once + (double)cell->ready;
    }
    return sum < (double)PC_TIME_MAX / 16 && view->outline->spec->overhead_ps < PC_TIME_MAX / 16;
}

/* The end of every stage's own passes (NORM: since the iteration's start; POST_VALIDATION: since its own), and what the
 * way back from stages behind it adds to that. */
static void find_ends(const plan_bounder *bounder, const reading *view, plan_cell *cells, pc_time *end,
                      pc_time *start) {
    const pc_outline *outline = view->outline;
    bool waits = outline->spec->step == PC_STEP_NORM, has_order = bounder->held && outline->chunks == 1;
    pc_time trip = 0, back_end = 0; /* back_end: no earlier ends the last backward pass of the part behind */
    int count = outline->devices * outline->chunks;
    for (int i = 0; i < count; i++) cells[i].before_last = -1;
    for (int d = 0; d < outline->devices; d++) {
        stage_sums sums = sum_stage(view, cells, d);
        start[d] = waits ? sums.start : 0;
        pc_time span = bounder->span_ps && view->scope == SCOPE_ONE ? bounder->span_ps[d] : 0;
        end[d] = start[d] + pc_max(sums.work, span);
        bounder->under_way_ps[d] = 0;
        cells[sums.first].before_last = sums.before_last;
    }
    for (int i = count; i-- > 0;) {
        const plan_cell *cell = &cells[i];
        bool is_last = (i + 1) % outline->parts == 0;
        if (is_last) trip = back_end = 0;
        if (cell->microbatches == 0) continue;
        pc_time back = 0;
        trip += cell->f + cell->back + cell->delay_down + cell->delay_up + (is_last ? cell->r : 0);
        if (cell->before_last >= 0 && count_replicas(outline) == 1) back = start[cell->device] + cell->before_last;
        bounder->under_way_ps[cell->device] += (double)cell->microbatches * (double)trip;
        if (bounder->held && cell->before_last >= 0 && count_replicas(outline) == 1)
            back = pc_max(back, start[cell->device] + by_lanes(bounder, cell->device));
        if (has_order) back = pc_max(back, start[cell->device] + by_trips(bounder, cell, trip));
        if (waits && !is_last) back = pc_max(back, back_end + cell->delay_up + cell->back);
        back_end = back;
        end[cell->device] = pc_max(end[cell->device], back + cell->w);
    }
    for (int d = 0; bounder->held && d < outline->devices; d++) {
        end[d] = pc_max(end[d], start[d] + by_lanes(bounder, d));
        if (bounder->end_ps && view->scope == SCOPE_ONE) end[d] = pc_max(end[d], bounder->end_ps[d]);
    }
}

static pc_time bound_reading(const plan_bounder *bounder, const reading *view, plan_cell *cells) {
    const pc_outline *outline = view->outline;
    pc_time *end = bounder->stage, *start = end + outline->devices, *done = start + outline->devices;
    find_ends(bounder, view, cells, end, start);
    for (int d = 0; d < outline->devices; d++) {
        pc_time own_ready = PC_TIME_MAX, waited = 0;
        for (int c = 0; c < outline->chunks; c++) own_ready = pc_min(own_ready, cell_of(view, cells, d, c)->ready);
        /* Over flows no pass stands behind the last one that would wait for what it has sent. */
        if (view->is_flows && !view->overlaps_p2p && outline->devices > 1)
            waited = pc_max(outline->device[d].hop_ps,
                            outline->device[(d + outline->devices - 1) % outline->devices].hop_ps);
        done[d] = pc_max(end[d] - waited, 0);
        done[d] = pc_max(done[d] + tail_of(view, cells, d), stream_of(view, cells, d, start[d]));
        if (bounder->end_ps && view->scope == SCOPE_ONE) done[d] = pc_max(done[d], bounder->reduced_ps[d]);
        if (outline->spec->step == PC_STEP_POST_VALIDATION) done[d] += own_ready;
    }
    return finish_at(view, done);
}

static pc_code bound_time(plan_bounder *bounder, const pc_outline *outline, plan_scope scope, sort_times *times,
                          pc_time *bound_ps, pc_error *error) {
    bool is_any = scope != SCOPE_ONE;
    reading x = {.outline = outline,
                 .scope = scope,
                 .alone = times,
                 .rest = times + outline->sort_count,
                 .overlaps_gradients = is_any || pc_outline_overlaps_gradients(outline),
                 .overlaps_parameters = is_any || outline->spec->overlaps_parameters,
                 .overlaps_p2p = is_any || outline->spec->overlaps_p2p,
                 .has_pairs = bounder->has_pairs};
    pc_code code = read_passes(&x, error);
    if (code) return code;
    read_cells(&x, bounder->cells);
    bool gathers = pc_outline_gathers_first(outline) && scope != SCOPE_SHAPE;
    for (int d = 0; gathers && d < outline->devices; d++) read_ready(&x, bounder->cells, d);
    read_hops(&x, bounder->cells);
    *bound_ps = 0;
    if (!can_be_counted(&x, bounder->cells)) return PC_OK;
    find_f_ends(&x, bounder->cells);
    find_back_starts(&x, bounder->cells);
    pc_time bound = bound_reading(bounder, &x, bounder->cells);
    *bound_ps = x.is_flows ? bound - (bound >> 20) - 1000 : bound;
    if (*bound_ps < 0) *bound_ps = 0;
    return PC_OK;
}

/* ---- all ---- */

pc_code plan_bound_alone(plan_bounder *bounder, const pc_outline *outline, plan_scope scope, pc_time *bound_ps,
                         pc_error *error) {
    sort_times few[2 * TIMED_SORTS] = {{0}};
    if (outline->sort_count <= TIMED_SORTS) return bound_time(bounder, outline, scope, few, bound_ps, error);
    sort_times *times = pc_alloc(2 * (size_t)outline->sort_count, sizeof *times);
    if (!times) return pc_error_no_memory(error);
    pc_code code = bound_time(bounder, outline, scope, times, bound_ps, error);
    pc_free(times);
    return code;
}
