/* ZeRO 3's units as tasks: the recurrence of units.h, over links that other traffic may share. */
#include "engine/alloc.h"
#include "models/training/buckets.h"
#include "models/training/expand_replicas.h"
#include "models/training/lowering.h"
#include "models/training/outline_units.h"

/* ---- what they send ---- */

/* What goes over a group, and behind it folded experts' over their own. Takes alone_ps alone. */
static pc_code make_sendings(const lowering *lowered, const pc_group *group, pc_collective collective, double bytes,
                             double of_experts, pc_time alone_ps, pc_sendings *sendings) {
    const pc_machine *machine = &lowered->outline->spec->machine;
    const pc_outline *outline = lowered->outline;
    const pc_group *replicas = group == &outline->replicate ? &outline->experts.replicate : &outline->experts.shard;
    pc_collective_course course = pc_collective_course_of(machine, group, collective, PC_ALGORITHM_BEST, bytes), next;
    next = pc_collective_course_of(machine, replicas, collective, PC_ALGORITHM_BEST, of_experts);
    double seconds = course.seconds + next.seconds;
    double stretch = seconds > 0 ? pc_time_to_seconds(alone_ps) / seconds : 1;
    pc_sendings behind;
    pc_code code = pc_lanes_sendings(&lowered->lanes, group, &course, stretch, sendings, lowered->error);
    if (!code && next.phase_count > 0) {
        code = pc_lanes_sendings(&lowered->lanes, replicas, &next, stretch, &behind, lowered->error);
        if (!code) pc_sendings_append(sendings, &behind);
    }
    if (!code) pc_sendings_fit(sendings, alone_ps);
    return code;
}

static pc_code make_size(const lowering *lowered, const pc_unit_traffic *x, pc_unit_sendings *made, int size) {
    const pc_outline *outline = lowered->outline;
    double share = x->gradient_bytes / outline->shard.ranks;
    pc_code code = make_sendings(lowered, &outline->shard, PC_COLLECTIVE_ALL_GATHER, x->gathered_bytes,
                                 x->expert_gathered_bytes, x->gather_ps, &made->of[size].gather);
    if (!code)
        code = make_sendings(lowered, &outline->shard, PC_COLLECTIVE_REDUCE_SCATTER, x->gradient_bytes,
                             x->expert_gradient_bytes, x->reduce_ps, &made->of[size].reduce);
    if (code || outline->replicate.ranks <= 1) return code;
    return make_sendings(lowered, &outline->replicate, PC_COLLECTIVE_ALL_REDUCE, share,
                         x->expert_gradient_bytes / pc_outline_expert_ranks(outline), x->replicate_ps,
                         &made->of[size].replicate);
}

pc_code lowering_make_units(lowering *lowered) {
    const pc_outline *outline = lowered->outline;
    size_t cells = (size_t)outline->devices * (size_t)outline->chunks;
    bool in_passes = !(pc_outline_gathers_once(outline) && pc_outline_reduces_last(outline));
    bool is_one = lowered->how.replicas == 1 && !lowered->how.times && !lowered->recipes;
    pc_code code = PC_OK;
    if (!pc_outline_has_units(outline) || !in_passes || !is_one) return PC_OK;
    lowered->units = pc_alloc(cells, sizeof *lowered->units);
    if (!lowered->units) return pc_error_no_memory(lowered->error);
    for (size_t i = 0; !code && i < cells; i++) {
        const pc_chunk_units *x = &outline->chunks_of[i].units;
        code = make_size(lowered, &x->root, &lowered->units[i], PC_UNIT_ROOT);
        if (!code) code = make_size(lowered, &x->each, &lowered->units[i], PC_UNIT_EACH);
        if (!code) code = make_size(lowered, &x->rest, &lowered->units[i], PC_UNIT_REST);
    }
    return code;
}

/* A pass whose gradients go by the stage's stream is cut where its buckets are ready. Two passes that run together take
 * what they take alone. */
bool lowering_has_units(const lowering *lowered, int64_t position) {
    pc_pass pass = lowered->schedule->passes[position];
    bool is_cut = pc_pass_adds_gradients(pass) && pc_outline_reduces_behind(lowered->outline);
    bool is_paired = lowering_begins_pair(lowered, position) || lowering_ends_pair(lowered, position);
    return lowered->units && !is_cut && !is_paired;
}

/* ---- a pass ---- */

/* A pass on its way: the last task of each wire, and with which its next units are gathered. */
typedef struct unit_pass {
    lowering *lowered;
    const pc_unit_sendings *sendings;
    pc_units units;
    pc_unit_rules rules;
    pc_pass pass;
    int device;
    int32_t wire, replicate;
    int32_t reduced; /* what kernels and gathers wait for, where reductions overlap nothing */
    int32_t gathered[PC_PREFETCH_MAX + 1];
} unit_pass;

static int size_of(const unit_pass *x, int number) {
    bool is_root = number == (x->pass.kind == PC_PASS_F ? 0 : x->units.count + 1);
    return is_root ? PC_UNIT_ROOT : number - 1 == x->units.odd ? PC_UNIT_REST : PC_UNIT_EACH;
}

static pc_code send(unit_pass *x, pc_flow_sort sort, const pc_sendings *sendings, int32_t wire, pc_after ready,
                    int32_t *done) {
    const pc_after afters[] = {{wire, 0}, ready, {sort == PC_FLOW_GATHER ? x->reduced : PC_NO_TASK, 0}};
    x->lowered->lanes.now = (pc_flow_note){.sort = sort,
                                           .chunk = x->pass.chunk,
                                           .microbatch = x->pass.microbatch,
                                           .ready_task = ready.task,
                                           .ready_delay_ps = ready.delay_ps};
    return pc_lanes_add_collective(&x->lowered->lanes, x->device, x->device, sendings, afters, 3, done,
                                   x->lowered->error);
}

static int32_t last_task(const unit_pass *x) {
    return x->lowered->spine[x->lowered->spine_count - 1];
}

static pc_code gather_unit(unit_pass *x, int number) {
    int32_t *done = &x->gathered[number % (x->rules.prefetch + 1)];
    *done = PC_NO_TASK;
    if (number >= pc_units_steps(&x->units) || pc_units_step(&x->units, number).gather_ps == 0) return PC_OK;
    const pc_sendings *sendings = &x->sendings->of[size_of(x, number)].gather;
    pc_code code = send(x, PC_FLOW_GATHER, sendings, x->wire, (pc_after){last_task(x), 0}, done);
    x->wire = *done;
    return code;
}

static pc_code reduce_unit(unit_pass *x, int number) {
    pc_unit_step step = pc_units_step(&x->units, number);
    int size = size_of(x, number);
    int32_t *other = x->rules.replicates_beside ? &x->replicate : &x->wire, done = PC_NO_TASK;
    pc_after ready = {last_task(x), step.copy_ps};
    pc_code code = PC_OK;
    if (step.reduce_ps > 0) {
        code = send(x, PC_FLOW_REDUCE, &x->sendings->of[size].reduce, x->wire, ready, &done);
        x->wire = done;
        ready = (pc_after){done, 0};
    }
    if (!code && step.replicate_ps > 0) {
        if (step.reduce_ps == 0) ready.delay_ps = 0;
        code = send(x, PC_FLOW_REDUCE, &x->sendings->of[size].replicate, *other, ready, &done);
        *other = done;
    }
    x->reduced = x->rules.waits_for_reduce ? done : PC_NO_TASK;
    return code;
}

static pc_code add_unit(unit_pass *x, int number, pc_time kernels_ps) {
    int32_t gathered = x->gathered[number % (x->rules.prefetch + 1)];
    pc_code code = lowering_add_to_spine(x->lowered, x->device, kernels_ps, gathered, PIECE);
    if (!code) code = lowering_add_edge(x->lowered, x->reduced, last_task(x), 0);
    if (!code) code = reduce_unit(x, number);
    return code ? code : gather_unit(x, number + 1 + x->rules.prefetch);
}

static pc_code add_all(unit_pass *x, const pc_unit_times *times, piece last) {
    pc_code code = lowering_add_to_spine(x->lowered, x->device, 0, PC_NO_TASK, PIECE);
    for (int j = 0; !code && j <= x->rules.prefetch; j++) code = gather_unit(x, j);
    for (int j = 0; !code && j < pc_units_steps(&x->units); j++)
        code = add_unit(x, j, times[j].end_ps - times[j].begin_ps);
    if (!code) code = lowering_add_to_spine(x->lowered, x->device, 0, x->wire, last);
    return code ? code : lowering_add_edge(x->lowered, x->replicate, last_task(x), 0);
}

/* Kernels are as slow as they are beside their own pass's collectives when these are alone. */
pc_code lowering_add_units(lowering *lowered, int device, pc_pass pass, piece last) {
    const pc_outline *outline = lowered->outline;
    pc_time alone_ps;
    pc_code code = pc_outline_time("pass", pc_outline_pass_s(outline, device, pass), 1, &alone_ps, lowered->error);
    if (code) return code;
    unit_pass x = {.lowered = lowered,
                   .sendings = &lowered->units[lowering_cell(lowered, device, pass.chunk)],
                   .units = pc_outline_units_of(outline, device, pass, alone_ps),
                   .rules = pc_outline_unit_rules(outline),
                   .pass = pass,
                   .device = device,
                   .wire = PC_NO_TASK,
                   .replicate = PC_NO_TASK,
                   .reduced = PC_NO_TASK};
    pc_unit_times *times = pc_alloc((size_t)pc_units_steps(&x.units), sizeof *times);
    if (!times) return pc_error_no_memory(lowered->error);
    pc_units_run(&x.units, &x.rules, times);
    code = add_all(&x, times, last);
    pc_free(times);
    return code;
}
