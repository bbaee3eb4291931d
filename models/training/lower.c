#include "models/training/lower.h"

#include "engine/alloc.h"
#include "engine/simulation.h"
#include "models/schedule/dependencies.h"
#include "models/training/expand.h"
#include "models/training/lanes.h"
#include "models/training/pass_costs.h"
#include "models/training/recipe.h"
#include "models/training/state.h"

#include <string.h>

enum { NO_TASK = -1 };

typedef struct lowering {
    const pc_iteration_plan *plan;
    const pc_schedule *schedule;
    pc_costs costs; /* without transfers */
    pc_pass_index index;
    pc_program *program;
    pc_lanes lanes;
    pc_recipe *recipes;            /* [sorts][PC_PASS_KINDS], where granularity is operations */
    pc_sendings **sendings;        /* of each recipe's steps, as far as they are collectives */
    int32_t *first, *last;         /* a pass's tasks on its processor, by position */
    int32_t *message;              /* with which what it waits for from another stage is there, but for the gathering */
    int32_t *sent, *sent_to;       /* with which what it sends to another stage is there; which stage */
    int32_t *first_f, *last_back;  /* [devices][chunks]: positions of the first F, of the last pass with gradients */
    int64_t *bucket;               /* [devices][chunks]: where the chunk's buckets begin in the two that follow */
    int32_t *gathered, *reducible; /* the tasks with which a bucket of parameters is there, of gradients can be sent */
    int32_t *stream;               /* [devices]: the last task of the stage's collectives */
    /* Of the pass at work: its tasks on the processor, and how much of its time is over with each. */
    int32_t *spine;
    pc_time *over_ps;
    int64_t spine_count, spine_room;
    pc_error *error;
} lowering;

static int64_t cell(const lowering *x, int device, int chunk) {
    return (int64_t)device * x->plan->chunks + chunk;
}

static pc_code add_edge(lowering *x, int32_t from, int32_t to, pc_time delay_ps) {
    return from == NO_TASK ? PC_OK : pc_program_add_edge(x->program, from, to, delay_ps, x->error);
}

/* ---- room ---- */

static void find_ends(lowering *x) {
    const pc_schedule *schedule = x->schedule;
    for (int d = 0; d < schedule->devices; d++)
        for (int64_t i = schedule->offsets[d]; i < schedule->offsets[d + 1]; i++) {
            int64_t at = cell(x, d, schedule->passes[i].chunk);
            if (schedule->passes[i].kind == PC_PASS_F && x->first_f[at] == NO_TASK) x->first_f[at] = (int32_t)i;
            if (pc_pass_adds_gradients(schedule->passes[i])) x->last_back[at] = (int32_t)i;
        }
}

static pc_code make_arrays(lowering *x) {
    size_t devices = (size_t)x->plan->devices, cells = devices * (size_t)x->plan->chunks;
    size_t passes = (size_t)x->schedule->offsets[devices];
    x->first = pc_alloc(5 * passes, sizeof *x->first);
    x->first_f = pc_alloc(2 * cells + devices, sizeof *x->first_f);
    x->bucket = pc_alloc(cells + 1, sizeof *x->bucket);
    if (!x->first || !x->first_f || !x->bucket) return pc_error_no_memory(x->error);
    x->last = x->first + passes;
    x->message = x->last + passes;
    x->sent = x->message + passes;
    x->sent_to = x->sent + passes;
    memset(x->message, 0xff, 2 * passes * sizeof *x->message); /* NO_TASK */
    x->last_back = x->first_f + cells;
    x->stream = x->last_back + cells;
    memset(x->first_f, 0xff, (2 * cells + devices) * sizeof *x->first_f); /* NO_TASK */
    for (size_t i = 0; i < cells; i++) x->bucket[i + 1] = x->bucket[i] + x->plan->chunks_of[i].buckets;
    x->gathered = pc_alloc(2 * (size_t)x->bucket[cells], sizeof *x->gathered);
    if (!x->gathered) return pc_error_no_memory(x->error);
    x->reducible = x->gathered + x->bucket[cells];
    find_ends(x);
    return PC_OK;
}

static pc_code make_recipe(lowering *x, int sort, pc_pass_kind kind) {
    const pc_iteration_plan *plan = x->plan;
    int at = sort * PC_PASS_KINDS + (int)kind;
    pc_recipe *recipe = &x->recipes[at];
    pc_code code = pc_recipe_make(plan, &plan->part_costs[sort], kind, recipe, x->error);
    if (code) return code;
    x->sendings[at] = pc_alloc((size_t)recipe->count, sizeof **x->sendings);
    if (!x->sendings[at]) return pc_error_no_memory(x->error);
    for (int i = 0; !code && i < recipe->count; i++)
        if (recipe->steps[i].is_collective)
            code = pc_lanes_sendings(&x->lanes, &plan->tp, &recipe->steps[i].collective, plan->pace,
                                     &x->sendings[at][i], x->error);
    return code;
}

static pc_code make_recipes(lowering *x) {
    const pc_iteration_plan *plan = x->plan;
    size_t count = (size_t)plan->sort_count * PC_PASS_KINDS;
    pc_code code = PC_OK;
    if (plan->spec->granularity == PC_GRANULARITY_PASS) return PC_OK;
    x->recipes = pc_alloc(count, sizeof *x->recipes);
    x->sendings = pc_alloc(count, sizeof *x->sendings);
    if (!x->recipes || !x->sendings) return pc_error_no_memory(x->error);
    for (int sort = 0; sort < plan->sort_count; sort++)
        for (int kind = 0; !code && kind < PC_PASS_KINDS; kind++)
            if (pc_plan_has_kind(plan->spec->generator, (pc_pass_kind)kind))
                code = make_recipe(x, sort, (pc_pass_kind)kind);
    return code;
}

/* The tasks of a pass's steps, at least; 0 where a pass is one. */
static double count_steps(const pc_recipe *recipe) {
    double count = 0;
    for (int i = 0; i < recipe->count; i++) count += (double)recipe->steps[i].repeat;
    return count;
}

/* So many tasks take about 2.7 GB. */
enum { TASKS_MAX = 1 << 24 };

/* The steps of all passes, one each where they are not cut into operations. */
static double count_tasks(const lowering *x) {
    double tasks = 0;
    if (!x->recipes) return (double)x->schedule->offsets[x->schedule->devices];
    for (int d = 0; d < x->schedule->devices; d++)
        for (int64_t i = x->schedule->offsets[d]; i < x->schedule->offsets[d + 1]; i++) {
            pc_pass pass = x->schedule->passes[i];
            int sort = x->plan->chunks_of[cell(x, d, pass.chunk)].sort;
            tasks += count_steps(&x->recipes[sort * PC_PASS_KINDS + pass.kind]);
        }
    return tasks;
}

/* About as much as is needed: beside its steps a pass has a message of two flows; a bucket is gathered and reduced, in
 * a few flows, and cuts two passes. */
static pc_code make_room(lowering *x) {
    size_t cells = (size_t)x->plan->devices * (size_t)x->plan->chunks;
    double tasks = count_tasks(x);
    if (!x->recipes || tasks <= TASKS_MAX) {
        int64_t passes = x->schedule->offsets[x->plan->devices], buckets = x->bucket[cells];
        int64_t all = (int64_t)tasks + 2 * passes + 8 * buckets;
        return pc_program_reserve(x->program, all, all + all / 2, x->error);
    }
    return pc_error_set(x->error, PC_ERROR_INPUT,
                        "granularity: operations make %.0f tasks; expected at most %d: fewer microbatches, or passes",
                        tasks, TASKS_MAX);
}

static pc_code add_processors(lowering *x) {
    pc_code code = PC_OK;
    for (int d = 0; !code && d < x->plan->devices; d++) {
        int32_t number; /* d */
        code = pc_program_add_processor(x->program, PC_PROCESSOR_IN_ORDER, &number, x->error);
    }
    return code;
}

/* ---- collectives of data parallelism ---- */

/* Adds one to the stage's stream, after `after` too. */
static pc_code add_to_stream(lowering *x, int device, const pc_sendings *sendings, int32_t after) {
    const pc_after afters[] = {{x->stream[device], 0}, {after, 0}};
    return pc_lanes_add_collective(&x->lanes, device, sendings, afters, 2, &x->stream[device], x->error);
}

/* What a bucket of a chunk sends, `stretch` times. */
static pc_code bucket_sendings(const lowering *x, int device, int chunk, pc_collective collective, int bytes_each,
                               double stretch, pc_sendings *sendings) {
    double bytes = pc_plan_bucket_bytes(x->plan, device, chunk, bytes_each);
    pc_collective_plan plan =
        pc_collective_plan_for(&x->plan->spec->machine, &x->plan->dp, collective, PC_ALGORITHM_BEST, bytes);
    return pc_lanes_sendings(&x->lanes, &x->plan->dp, &plan, stretch, sendings, x->error);
}

static pc_code add_gathers(lowering *x, int device) {
    pc_code code = PC_OK;
    if (!pc_plan_gathers_first(x->plan)) return PC_OK;
    for (int i = 0; !code && i < x->plan->chunks; i++) {
        int chunk = pc_plan_nth_chunk(x->plan, device, i);
        int64_t at = cell(x, device, chunk);
        pc_sendings bucket;
        code = bucket_sendings(x, device, chunk, PC_COLLECTIVE_ALL_GATHER, PC_PARAMETER_BYTES, 1, &bucket);
        for (int64_t k = x->bucket[at]; !code && k < x->bucket[at + 1]; k++) {
            code = add_to_stream(x, device, &bucket, NO_TASK);
            x->gathered[k] = x->stream[device];
        }
    }
    return code;
}

/* The reduction of what one pass makes: bucket by bucket as the last pass goes on; with ZeRO 2 all at once behind each
 * one before. */
static pc_code add_reduction(lowering *x, int device, int64_t position) {
    const pc_iteration_plan *plan = x->plan;
    pc_pass pass = x->schedule->passes[position];
    int64_t at = cell(x, device, pass.chunk);
    bool is_last = x->last_back[at] == position, overlaps = plan->spec->overlaps_gradients;
    if (!pc_pass_adds_gradients(pass) || (!is_last && plan->cut.zero != 2)) return PC_OK;
    pc_sendings bucket;
    pc_code code = bucket_sendings(x, device, pass.chunk, pc_plan_reduction(plan), pc_cut_gradient_bytes(&plan->cut),
                                   is_last ? 1 : plan->chunks_of[at].buckets, &bucket);
    if (!is_last) return code ? code : add_to_stream(x, device, &bucket, x->last[position]);
    for (int64_t k = x->bucket[at]; !code && k < x->bucket[at + 1]; k++)
        code = add_to_stream(x, device, &bucket,
                             overlaps ? x->reducible[k] : x->last[x->schedule->offsets[device + 1] - 1]);
    return code;
}

static pc_code add_reductions(lowering *x, int device) {
    pc_code code = PC_OK;
    if (!pc_plan_reduces_behind(x->plan)) return PC_OK;
    for (int64_t i = x->schedule->offsets[device]; !code && i < x->schedule->offsets[device + 1]; i++)
        code = add_reduction(x, device, i);
    return code;
}

/* ---- passes ---- */

static pc_code grow_spine(lowering *x) {
    int64_t room_now = x->spine_room ? 2 * x->spine_room : 64;
    int32_t *spine = pc_realloc(x->spine, (size_t)room_now, sizeof *spine);
    if (spine) x->spine = spine;
    pc_time *over_ps = pc_realloc(x->over_ps, (size_t)room_now, sizeof *over_ps);
    if (over_ps) x->over_ps = over_ps;
    if (!spine || !over_ps) return pc_error_no_memory(x->error);
    x->spine_room = room_now;
    return PC_OK;
}

/* Adds a task on the stage's processor to the spine of the pass. */
static pc_code add_to_spine(lowering *x, int device, pc_time duration_ps, int32_t after) {
    pc_task task = pc_task_default();
    int32_t number;
    task.processor = device;
    task.duration_ps = duration_ps;
    pc_code code = pc_program_add_task(x->program, &task, &number, x->error);
    if (!code) code = add_edge(x, after, number, 0);
    if (!code && x->spine_count == x->spine_room) code = grow_spine(x);
    if (code) return code;
    int64_t at = x->spine_count++;
    x->spine[at] = number;
    x->over_ps[at] = duration_ps + (at > 0 ? x->over_ps[at - 1] : 0);
    return PC_OK;
}

/* The longest that a piece of a pass may be, so that the chunk's buckets can come or go between pieces; 0: whatever. */
static pc_time piece_of(const lowering *x, int device, int64_t position, pc_time duration_ps) {
    int64_t at = cell(x, device, x->schedule->passes[position].chunk);
    bool takes = x->first_f[at] == position && pc_plan_gathers_first(x->plan);
    bool gives = x->last_back[at] == position && pc_plan_reduces_behind(x->plan);
    int64_t buckets = takes || gives ? x->plan->chunks_of[at].buckets : 1;
    return buckets > 1 ? duration_ps / buckets : 0;
}

static pc_code add_pieces(lowering *x, int device, pc_time duration_ps, pc_time piece_ps, int32_t after) {
    int64_t pieces = piece_ps > 0 && duration_ps > piece_ps ? duration_ps / piece_ps : 1;
    pc_time share = duration_ps / pieces;
    pc_code code = add_to_spine(x, device, duration_ps - share * (pieces - 1), after);
    for (int64_t k = 1; !code && k < pieces; k++) code = add_to_spine(x, device, share, NO_TASK);
    return code;
}

/* How far the steps of a pass have come: what the next task on the processor has to wait for beside the one before it.
 */
typedef struct progress {
    int32_t waits_for; /* the collective before */
    int32_t beside;    /* a collective under way for which the step after the next waits */
    pc_time piece_ps;
    /* Of a pass that is bound by its launches. */
    int32_t begin;         /* the task of no time with which it begins; else NO_TASK */
    double stretch;        /* its launches over what its steps take alone: over 1 */
    double alone_s;        /* what the steps so far take alone */
    double alone_beside_s; /* the collective under way */
} progress;

/* A collective waits for the kernels before it and for the collective before those. */
static pc_code add_collective_step(lowering *x, int device, const pc_step_of_pass *step, const pc_sendings *sendings,
                                   progress *now) {
    const pc_after afters[] = {{x->spine[x->spine_count - 1], 0}, {now->waits_for, 0}};
    int32_t *done = step->runs_beside ? &now->beside : &now->waits_for;
    *(step->runs_beside ? &now->alone_beside_s : &now->alone_s) += step->seconds;
    return pc_lanes_add_collective(&x->lanes, device, sendings, afters, 2, done, x->error);
}

/* Where the host is the slower one it launches evenly: a piece of kernels, from `first` on, begins no earlier than the
 * same part of all launches is out as of the steps' own time is over. */
static pc_code add_launches(lowering *x, int64_t first, double seconds, const progress *now) {
    double pieces = (double)(x->spine_count - first);
    pc_code code = PC_OK;
    for (int64_t i = first; !code && now->begin != NO_TASK && i < x->spine_count; i++) {
        double over_s = now->alone_s + seconds * (double)(i - first) / pieces;
        pc_time launched_ps;
        code = pc_plan_time("launches", now->stretch * over_s, 1, &launched_ps, x->error);
        if (!code) code = add_edge(x, now->begin, x->spine[i], launched_ps);
    }
    return code;
}

static pc_code add_kernels(lowering *x, int device, double seconds, progress *now) {
    pc_time duration;
    int64_t first = x->spine_count;
    pc_code code = pc_plan_time("kernels", seconds, 1, &duration, x->error);
    if (!code) code = add_pieces(x, device, duration, now->piece_ps, now->waits_for);
    if (!code) code = add_launches(x, first, seconds, now);
    now->alone_s += seconds > now->alone_beside_s ? seconds : now->alone_beside_s;
    now->alone_beside_s = 0;
    now->waits_for = now->beside;
    now->beside = NO_TASK;
    return code;
}

/* A collective that comes first waits for the processor, too. */
static pc_code add_step(lowering *x, int device, const pc_step_of_pass *step, const pc_sendings *sendings,
                        progress *now) {
    if (!step->is_collective) return add_kernels(x, device, step->seconds, now);
    pc_code code = x->spine_count == 0 ? add_kernels(x, device, 0, now) : PC_OK;
    return code ? code : add_collective_step(x, device, step, sendings, now);
}

/* Block by block. */
static pc_code add_blocks(lowering *x, int device, const pc_recipe *recipe, const pc_sendings *sendings,
                          progress *now) {
    pc_code code = PC_OK;
    for (int first = 0, behind; !code && first < recipe->count; first = behind) {
        for (behind = first + 1; behind < recipe->count; behind++)
            if (recipe->steps[behind].repeat != recipe->steps[first].repeat) break;
        for (int64_t k = 0; k < recipe->steps[first].repeat; k++)
            for (int i = first; !code && i < behind; i++)
                code = add_step(x, device, &recipe->steps[i], &sendings[i], now);
    }
    return code;
}

static pc_code begin_steps(lowering *x, int device, const pc_recipe *recipe, progress *now) {
    if (recipe->launches_s <= recipe->alone_s) return PC_OK;
    pc_code code = add_kernels(x, device, 0, now);
    if (code) return code;
    now->begin = x->spine[0];
    if (recipe->alone_s > 0) now->stretch = recipe->launches_s / recipe->alone_s;
    now->piece_ps = (pc_time)((double)now->piece_ps / now->stretch);
    return PC_OK;
}

/* Nor does a pass end before its launches do. What the costs have more than the steps, which is ZeRO 3's, comes behind
 * them. */
static pc_code end_steps(lowering *x, int device, const pc_recipe *recipe, pc_time more_ps, const progress *now) {
    pc_time launched_ps;
    pc_code code = add_to_spine(x, device, more_ps, now->waits_for);
    if (code || now->begin == NO_TASK) return code;
    code = pc_plan_time("launches", recipe->launches_s, 1, &launched_ps, x->error);
    return code ? code : add_edge(x, now->begin, x->spine[x->spine_count - 1], launched_ps);
}

static pc_code add_steps(lowering *x, int device, pc_pass pass, pc_time duration_ps, pc_time piece_ps) {
    int at = x->plan->chunks_of[cell(x, device, pass.chunk)].sort * PC_PASS_KINDS + pass.kind;
    const pc_recipe *recipe = &x->recipes[at];
    progress now = {.waits_for = NO_TASK, .beside = NO_TASK, .piece_ps = piece_ps, .begin = NO_TASK, .stretch = 1};
    pc_time alone_ps = duration_ps;
    pc_code code = begin_steps(x, device, recipe, &now);
    if (!code) code = add_blocks(x, device, recipe, x->sendings[at], &now);
    if (!code) code = pc_plan_time("pass", pc_iteration_plan_pass_s(x->plan, device, pass), 1, &alone_ps, x->error);
    return code ? code : end_steps(x, device, recipe, duration_ps - alone_ps, &now);
}

/* The k-th of `count` equal shares of the pass's time is over at this. */
static pc_time share_over_ps(const lowering *x, int64_t k, int64_t count) {
    pc_time whole = x->over_ps[x->spine_count - 1];
    return k < 0 ? 0 : whole - whole / count * (count - 1 - k);
}

/* Ties a bucket of parameters to the task in which its share of the pass begins. */
static pc_code tie_gathered(lowering *x, int64_t first, int64_t count) {
    int64_t at = 0;
    pc_code code = PC_OK;
    for (int64_t k = 0; !code && k < count; k++) {
        while (at + 1 < x->spine_count && x->over_ps[at] <= share_over_ps(x, k - 1, count)) at++;
        code = add_edge(x, x->gathered[first + k], x->spine[k == 0 ? 0 : at], 0);
    }
    return code;
}

/* A bucket of gradients is there with the task in which its share of the pass ends. */
static void tie_reducible(lowering *x, int64_t first, int64_t count) {
    int64_t at = 0;
    for (int64_t k = 0; k < count; k++) {
        while (at + 1 < x->spine_count && x->over_ps[at] < share_over_ps(x, k, count)) at++;
        x->reducible[first + k] = x->spine[k + 1 == count ? x->spine_count - 1 : at];
    }
}

static pc_code tie_buckets(lowering *x, int device, int64_t position) {
    int64_t at = cell(x, device, x->schedule->passes[position].chunk), count = x->plan->chunks_of[at].buckets;
    bool gathers = pc_plan_gathers_first(x->plan) && x->plan->spec->overlaps_parameters;
    if (x->last_back[at] == position) tie_reducible(x, x->bucket[at], count);
    return gathers && x->first_f[at] == position ? tie_gathered(x, x->bucket[at], count) : PC_OK;
}

static pc_code add_pass(lowering *x, int device, int64_t position) {
    pc_pass pass = x->schedule->passes[position];
    pc_time duration_ps = pc_costs_duration(&x->costs, device, pass.chunk, pass.kind);
    pc_time piece_ps = piece_of(x, device, position, duration_ps);
    x->spine_count = 0;
    pc_code code = x->recipes ? add_steps(x, device, pass, duration_ps, piece_ps)
                              : add_pieces(x, device, duration_ps, piece_ps, NO_TASK);
    if (!code) code = tie_buckets(x, device, position);
    if (code) return code;
    x->first[position] = x->spine[0];
    x->last[position] = x->spine[x->spine_count - 1];
    bool waits_for_all = position == x->schedule->offsets[device] && pc_plan_gathers_first(x->plan) &&
                         !x->plan->spec->overlaps_parameters;
    return waits_for_all ? add_edge(x, x->stream[device], x->first[position], 0) : PC_OK;
}

static pc_code add_stage(lowering *x, int device) {
    pc_code code = add_gathers(x, device);
    for (int64_t i = x->schedule->offsets[device]; !code && i < x->schedule->offsets[device + 1]; i++)
        code = add_pass(x, device, i);
    return code ? code : add_reductions(x, device);
}

/* ---- transfers ---- */

static pc_code add_transfer(lowering *x, pc_predecessor from, int device, int64_t position) {
    int32_t done;
    if (from.stage == device) return PC_OK; /* the order of the processor */
    pc_code code = pc_lanes_add_message(&x->lanes, x->last[from.position], from.stage, device, &done, x->error);
    if (!code) code = add_edge(x, done, x->first[position], x->plan->gathering_ps);
    if (code) return code;
    x->message[position] = x->sent[from.position] = done;
    x->sent_to[from.position] = device;
    bool waits = !x->plan->spec->overlaps_p2p && from.position + 1 < x->schedule->offsets[from.stage + 1];
    return waits ? add_edge(x, done, x->first[from.position + 1], x->plan->gathering_ps) : PC_OK;
}

static pc_code add_transfers(lowering *x) {
    const pc_schedule *schedule = x->schedule;
    pc_code code = PC_OK;
    for (int d = 0; d < schedule->devices; d++)
        for (int64_t i = schedule->offsets[d]; !code && i < schedule->offsets[d + 1]; i++) {
            pc_predecessor predecessors[PC_PREDECESSORS_MAX];
            int count = pc_pass_predecessors(&x->index, d, schedule->passes[i], predecessors);
            for (int k = 0; !code && k < count; k++) code = add_transfer(x, predecessors[k], d, i);
        }
    return code;
}

/* What a stage sends over a link goes out message by message, in the order of its passes: only traffic of other kinds
 * and other stages is shared with. Messages into the domain and those through NICs do not wait for each other. A stage
 * that waits for what it has sent has this order anyway. */
static pc_code keep_messages_in_order(lowering *x) {
    pc_code code = PC_OK;
    for (int d = 0; x->plan->spec->overlaps_p2p && d < x->plan->devices; d++) {
        int32_t before[] = {NO_TASK, NO_TASK}; /* through NICs, into the domain */
        for (int64_t i = x->schedule->offsets[d]; !code && i < x->schedule->offsets[d + 1]; i++) {
            if (x->sent[i] == NO_TASK) continue;
            bool in_domain = x->plan->device[pc_plan_hop(x->plan, d, x->sent_to[i])].hop.in_domain;
            code = add_edge(x, before[in_domain], x->sent[i], 0);
            before[in_domain] = x->sent[i];
        }
    }
    return code;
}

/* ---- the run ---- */

static pc_code build(lowering *x) {
    pc_code code = pc_program_create(&x->program, x->error);
    if (!code) code = pc_lanes_make(x->plan, x->program, &x->lanes, x->error);
    if (!code) code = pc_iteration_plan_costs(x->plan, PC_WITHOUT_TRANSFERS, &x->costs, x->error);
    if (!code) code = pc_pass_index_create(x->schedule, &x->index, x->error);
    if (!code) code = make_arrays(x);
    if (!code) code = make_recipes(x);
    if (!code) code = make_room(x);
    if (!code) code = add_processors(x);
    for (int d = 0; !code && d < x->plan->devices; d++) code = add_stage(x, d);
    if (!code) code = add_transfers(x);
    if (!code) code = keep_messages_in_order(x);
    return code ? code : pc_program_seal(x->program, x->error);
}

static void demolish(lowering *x) {
    for (int i = 0; x->recipes && x->sendings && i < x->plan->sort_count * PC_PASS_KINDS; i++) {
        pc_recipe_free(&x->recipes[i]);
        pc_free(x->sendings[i]);
    }
    void *arrays[] = {x->recipes, x->sendings, x->first, x->first_f, x->bucket, x->gathered, x->spine, x->over_ps};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) pc_free(arrays[i]);
    pc_pass_index_free(&x->index);
    pc_costs_free(&x->costs);
    pc_lanes_free(&x->lanes);
    pc_program_free(x->program);
}

static pc_code read_times(const lowering *x, const pc_simulation_result *found, pc_flows_result *result) {
    size_t passes = (size_t)x->schedule->offsets[x->plan->devices], devices = (size_t)x->plan->devices;
    pc_time *block = pc_alloc(3 * passes + devices, sizeof *block);
    if (!block) return pc_error_no_memory(x->error);
    *result = (pc_flows_result){.start_ps = block,
                                .end_ps = block + passes,
                                .arrival_ps = block + 2 * passes,
                                .done_ps = block + 3 * passes,
                                .link_filled_ps = pc_lanes_filled_ps(&x->lanes)};
    for (size_t i = 0; i < passes; i++) {
        result->start_ps[i] = found->start_ps[x->first[i]];
        result->end_ps[i] = found->end_ps[x->last[i]];
        if (x->message[i] != NO_TASK) result->arrival_ps[i] = found->end_ps[x->message[i]] + x->plan->gathering_ps;
    }
    for (size_t d = 0; d < devices; d++) {
        pc_time of_passes = result->end_ps[x->schedule->offsets[d + 1] - 1];
        pc_time of_stream = x->stream[d] == NO_TASK ? 0 : found->end_ps[x->stream[d]];
        result->done_ps[d] = of_passes > of_stream ? of_passes : of_stream;
    }
    return PC_OK;
}

static pc_code simulate(const lowering *x, pc_flows_result *result) {
    pc_simulation *simulation = NULL;
    pc_simulation_result found;
    pc_code code = pc_simulation_create(&simulation, x->error);
    if (!code) code = pc_simulation_run(simulation, x->program, NULL, &found, x->error);
    if (!code && found.outcome != PC_OUTCOME_DONE)
        code = pc_error_set(x->error, PC_ERROR_INPUT, "schedule: deadlock over network flows; expected none");
    if (!code) code = read_times(x, &found, result);
    pc_simulation_free(simulation);
    return code;
}

pc_code pc_flows_run(const pc_iteration_plan *plan, const pc_schedule *schedule, pc_flows_result *result,
                     pc_error *error) {
    lowering x = {.plan = plan, .schedule = schedule, .error = error};
    pc_code code = build(&x);
    if (!code) code = simulate(&x, result);
    demolish(&x);
    return code;
}

pc_code pc_flows_program(const pc_iteration_plan *plan, const pc_schedule *schedule, pc_program **program,
                         pc_error *error) {
    lowering x = {.plan = plan, .schedule = schedule, .error = error};
    pc_code code = build(&x);
    if (!code) {
        *program = x.program;
        x.program = NULL;
    }
    demolish(&x);
    return code;
}

void pc_flows_free(pc_flows_result *result) {
    pc_free(result->start_ps);
    memset(result, 0, sizeof *result);
}

bool pc_plan_meets(const pc_iteration_plan *plan) {
    const pc_iteration_spec *spec = plan->spec;
    bool gathers = pc_plan_gathers_first(plan) && spec->overlaps_parameters;
    bool reduces = pc_plan_reduces_behind(plan) && spec->overlaps_gradients;
    if (!gathers && !reduces) return false;
    for (int d = 0; d + 1 < plan->devices; d++) /* the way from the last to the first is like one of these */
        if (plan->device[d].hop.in_domain ? plan->dp.in_domain > 1 : plan->dp.domains > 1) return true;
    return false;
}
