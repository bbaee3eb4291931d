#include "models/planner/plan_search.h"

#include "engine/alloc.h"
#include "engine/numbers.h"
#include "engine/parallel.h"
#include "models/training/outline_restate.h"

#include <math.h>
#include <string.h>

/* An outline, and what it borrows. Shapes that differ in their state alone have it one after the other. */
typedef struct plan_made {
    int group;      /* of variants */
    int64_t number; /* of the point that it is of */
    pc_iteration_spec spec;
    pc_outline outline; /* zeroed: none */
} plan_made;

/* Groups of variants whose outlines are kept; others share the last. */
enum { MADE = 16 };

/* One thread's share of a pass. */
typedef struct plan_walker {
    plan_bounder bounder;
    plan_made made[MADE];
    plan_heap heap, of_frame; /* of_frame: of the one at work, if few of each frame are kept */
    int64_t points, broken[PC_PLAN_RULES], over_memory;
    pc_code code;
    pc_error error;
} plan_walker;

typedef struct plan_pass {
    const plan_search *search;
    plan_walker *walkers;
} plan_pass;

/* Frames that a thread takes at a time. */
enum { BLOCK = 8 };

/* ---- one shape ---- */

typedef struct shape_walk {
    const plan_search *search;
    plan_walker *walker;
    int64_t number; /* of its first variant */
    pc_plan_choice choice;
    plan_made *made;      /* the walker's, of the choice */
    bool is_apart;        /* whether groups of variants balance layers differently, and so hold different memory */
    int64_t memory_bytes; /* at least; as least_ps of every variant, or, where they are apart, of the group at work */
    pc_time least_ps;
} shape_walk;

/* PC_ERROR_INPUT is of the point: a time that is too long. Such a point keeps the bound that it has, and simulating it
 * finds the same. */
static pc_code make_plan(shape_walk *walk, int64_t number, int64_t group) {
    const pc_plan_space *space = walk->search->space;
    plan_walker *walker = walk->walker;
    plan_made *made = &walker->made[pc_min(group, MADE - 1)];
    bool is_there = made->outline.devices > 0 && made->number == number && walker->bounder.taken == &made->outline;
    walk->made = made;
    if (is_there) return PC_OK;
    if (made->group != group) pc_outline_free(&made->outline);
    made->group = (int)group;
    made->number = number;
    made->spec = pc_plan_spec(space, &walk->choice);
    return plan_bounder_restate(&walker->bounder, space, walk->choice.base, &made->spec, &made->outline,
                                &walker->error);
}

static void forget_made(plan_walker *walker) {
    for (int i = 0; i < MADE; i++) pc_outline_free(&walker->made[i].outline);
}

/* *least_ps rises to the bound of that scope. */
static pc_code raise_bound(shape_walk *walk, plan_scope scope, pc_time *least_ps) {
    pc_time bound_ps;
    if (walk->made->outline.devices == 0) return PC_OK;
    pc_code code =
        plan_bound_time(&walk->walker->bounder, &walk->made->outline, scope, &bound_ps, &walk->walker->error);
    if (code == PC_ERROR_INPUT) return PC_OK;
    if (!code && bound_ps > *least_ps) *least_ps = bound_ps;
    return code;
}

/* ---- what a first pass leaves of a frame ---- */

/* The frame's, if a pass that keeps few is at work on it. It is one thread's. */
static plan_frame_bound *rest_of(const plan_search *search, int64_t number) {
    bool is_noted = search->frames && search->passes == 0 && search->kept_of_frame > 0;
    return is_noted ? &search->frames[number / search->numbers.variants / search->numbers.of_frame] : NULL;
}

/* What this pass turns away: none of it is better than this rank. */
static void note_rest(const plan_search *search, const plan_rank *rank) {
    plan_frame_bound *x = rest_of(search, rank->number);
    if (x && rank->key[0] < x->rest) x->rest = rank->key[0];
}

static void note_offered(const plan_search *search, const plan_rank *rank) {
    plan_frame_bound *x = rest_of(search, rank->number);
    if (x && rank->key[0] < x->offered) x->offered = rank->key[0];
}

/* Whether what was found rules out all that the first pass left: what it turned away, and what it offered and did not
 * keep. One objective alone is asked for then. */
static bool is_rest_ruled_out(const plan_search *search, const plan_frame_bound *x, int64_t number) {
    double dropped = x->offered < search->dropped ? search->dropped : x->offered;
    plan_rank least = {.key = {x->rest}, .number = number};
    if (x->offered < INFINITY && dropped < x->rest) least.key[0] = dropped;
    return search->has_rests && (least.key[0] == INFINITY || plan_best_rejects(&search->best, &least));
}

/* ---- candidates ---- */

static plan_candidate candidate_of(const shape_walk *walk, const pc_plan_choice *choice, int64_t number,
                                   pc_time least_ps) {
    plan_candidate candidate = {.bound_s = pc_time_to_seconds(least_ps)};
    if (walk->search->request->exhaustive)
        candidate.rank = (plan_rank){.number = number};
    else
        candidate.rank = plan_rank_of(&walk->search->ranking, choice, number, candidate.bound_s, walk->memory_bytes);
    return candidate;
}

/* Whether limits or what was found rule the candidate out. */
static bool is_ruled_out(const plan_search *search, const pc_plan_choice *choice, const plan_candidate *candidate) {
    const pc_plan_request *request = search->request;
    if (request->exhaustive) return false;
    if (request->most_iteration_s > 0 && candidate->bound_s > request->most_iteration_s) return true;
    if (request->most_cost > 0 && plan_cost_of(&search->ranking, choice, candidate->bound_s) > request->most_cost)
        return true;
    return plan_best_rejects(&search->best, &candidate->rank);
}

/* Whether no variant from `number` on, none of which is bounded below least_ps, can be a candidate of this pass. */
static bool is_hopeless(const shape_walk *walk, int64_t number, pc_time least_ps) {
    plan_candidate candidate = candidate_of(walk, &walk->choice, number, least_ps);
    bool is_few = walk->search->kept_of_frame > 0;
    if (is_ruled_out(walk->search, &walk->choice, &candidate)) return true;
    bool is_late = plan_heap_turns_away(&walk->walker->heap, &candidate.rank) ||
                   (is_few && plan_heap_turns_away(&walk->walker->of_frame, &candidate.rank));
    if (is_late) note_rest(walk->search, &candidate.rank);
    return is_late;
}

/* Whether an earlier pass has simulated it. */
static bool is_done(const plan_search *search, const plan_candidate *candidate) {
    if (search->has_floor && plan_rank_compare(&search->ranking, &candidate->rank, &search->floor) <= 0) return true;
    int64_t low = 0, high = search->scouted_count;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (search->scouted[middle] < candidate->rank.number)
            low = middle + 1;
        else
            high = middle;
    }
    return low < search->scouted_count && search->scouted[low] == candidate->rank.number;
}

static pc_code offer(shape_walk *walk, const pc_plan_choice *choice, int64_t number, pc_time least_ps) {
    const plan_search *search = walk->search;
    walk->made->spec.overlaps_gradients = choice->overlaps_gradients;
    walk->made->spec.overlaps_parameters = choice->overlaps_parameters;
    walk->made->spec.overlaps_p2p = choice->overlaps_p2p;
    pc_code code = raise_bound(walk, SCOPE_ONE, &least_ps);
    if (code) return code;
    plan_candidate candidate = candidate_of(walk, choice, number, least_ps);
    plan_heap *heap = search->kept_of_frame > 0 ? &walk->walker->of_frame : &walk->walker->heap;
    if (!is_ruled_out(search, choice, &candidate) && !is_done(search, &candidate)) plan_heap_offer(heap, &candidate);
    return PC_OK;
}

/* ---- variants ---- */

static bool is_input(pc_code code) {
    return code == PC_ERROR_INPUT;
}

/* Of the outline at work; false if it does not fit, and is not wanted nevertheless. */
static bool bound_memory(shape_walk *walk) {
    walk->memory_bytes = plan_bound_memory(&walk->walker->bounder, &walk->made->outline);
    bool fits = walk->memory_bytes <= walk->made->outline.device[0].capacity_bytes;
    return (fits && !plan_exceeds_host(&walk->walker->bounder, &walk->made->outline)) ||
           walk->search->request->exhaustive;
}

static int64_t count_of_group(const shape_walk *walk, int64_t first, int64_t behind) {
    int64_t count = 0;
    for (int64_t variant = first; variant < behind; variant++)
        count += plan_is_variant(&walk->search->numbers, &walk->choice, variant);
    return count;
}

/* The variants of one order and one overlaps_tp, for which an outline holds; they are neighbours. */
static pc_code walk_overlaps(shape_walk *walk, int64_t group, int64_t of_group) {
    const plan_numbers *numbers = &walk->search->numbers;
    int64_t first = group * of_group, behind = first + of_group;
    pc_time least_ps = walk->least_ps;
    bool is_planned = false, may_fit = true;
    pc_code code = PC_OK;
    if (walk->is_apart) walk->memory_bytes = 0;
    for (int64_t variant = first; !code && variant < behind; variant++) {
        if (!plan_is_variant(numbers, &walk->choice, variant)) continue;
        pc_plan_choice choice = plan_choice_of(numbers, walk->number + variant);
        if (!is_planned) {
            walk->choice = choice;
            code = make_plan(walk, walk->number + variant, group);
            if (!code && walk->is_apart) may_fit = bound_memory(walk);
            if (!may_fit) walk->walker->over_memory += count_of_group(walk, first, behind);
            if (!code && may_fit) code = raise_bound(walk, SCOPE_OVERLAPS, &least_ps);
            if (is_input(code)) code = PC_OK;
            if (code || !may_fit || is_hopeless(walk, walk->number + variant, least_ps)) break;
            is_planned = true;
        }
        code = offer(walk, &choice, walk->number + variant, least_ps);
    }
    return code;
}

static int64_t variants_of_group(const plan_numbers *numbers) {
    return (int64_t)numbers->radix[DIGIT_OVERLAPS_GRADIENTS] * numbers->radix[DIGIT_OVERLAPS_PARAMETERS] *
           numbers->radix[DIGIT_OVERLAPS_P2P];
}

/* Of a walk whose first group's outline is made: where ranks lie otherwise, or collectives overlap, a layer weighs more
 * or less beside both ends. */
static bool are_apart(const shape_walk *walk) {
    const plan_numbers *numbers = &walk->search->numbers;
    int64_t of_group = variants_of_group(numbers);
    if (!pc_layout_is_balanced(walk->choice.layout) || plan_parts_of(&walk->choice) == 1) return false;
    for (int64_t variant = of_group; variant < numbers->variants; variant += of_group) {
        pc_plan_choice choice = plan_choice_of(numbers, walk->number + variant);
        pc_iteration_spec spec = pc_plan_spec(walk->search->space, &choice);
        if (!pc_outline_has_parts_of(&walk->made->outline, &spec)) return true;
    }
    return false;
}

static pc_code walk_variants(shape_walk *walk) {
    const plan_numbers *numbers = &walk->search->numbers;
    int64_t of_group = variants_of_group(numbers);
    pc_code code = PC_OK;
    if (is_hopeless(walk, walk->number, walk->least_ps)) return PC_OK;
    for (int64_t group = 0; !code && group * of_group < numbers->variants; group++)
        code = walk_overlaps(walk, group, of_group);
    return code;
}

/* Memory, and kernels alone, are those of every variant. */
static pc_code bound_shape(shape_walk *walk, bool *may_fit) {
    pc_code code = make_plan(walk, walk->number, 0);
    *may_fit = true;
    if (code) return is_input(code) ? PC_OK : code;
    walk->is_apart = are_apart(walk);
    if (walk->is_apart) return PC_OK;
    *may_fit = bound_memory(walk);
    return *may_fit ? raise_bound(walk, SCOPE_SHAPE, &walk->least_ps) : PC_OK;
}

/* A frame is one thread's. */
static void note_bounds(const plan_search *search, const shape_walk *walk, int64_t frame) {
    if (!search->frames || search->passes > 0) return;
    plan_frame_bound *x = &search->frames[frame];
    x->least_ps = x->has_shapes ? pc_min(x->least_ps, walk->least_ps) : walk->least_ps;
    x->memory_bytes = x->has_shapes ? pc_min(x->memory_bytes, walk->memory_bytes) : walk->memory_bytes;
    x->has_shapes = true;
}

static pc_code walk_shape(const plan_search *search, plan_walker *walker, int64_t shape) {
    shape_walk x = {.search = search, .walker = walker, .number = shape * search->numbers.variants};
    pc_plan_rule broken;
    bool may_fit = true;
    x.choice = plan_choice_of(&search->numbers, x.number);
    if (!plan_is_shape(&search->numbers, &x.choice, shape)) return PC_OK;
    int64_t count = plan_count_variants(&search->numbers, &x.choice);
    walker->points += count;
    pc_code code = plan_check_rules(search->space, &x.choice, &broken);
    if (is_input(code)) {
        walker->broken[broken] += count;
        return PC_OK;
    }
    if (!code) code = bound_shape(&x, &may_fit);
    if (!may_fit) walker->over_memory += count;
    if (may_fit) note_bounds(search, &x, shape / search->numbers.of_frame);
    return may_fit && !code ? walk_variants(&x) : code;
}

/* ---- one frame ---- */

/* The few that are kept; and, if there were more, that there are: behind the last of those, in rank. */
static void hand_over(const plan_search *search, plan_walker *walker) {
    plan_heap *from = &walker->of_frame;
    if (from->is_over) {
        plan_candidate rest = from->list[0];
        rest.is_rest = true;
        note_rest(search, &rest.rank);
        plan_heap_offer(&walker->heap, &rest);
    }
    for (int64_t i = 0; i < from->count; i++) {
        note_offered(search, &from->list[i].rank);
        plan_heap_offer(&walker->heap, &from->list[i]);
    }
    from->count = 0;
    from->is_over = false;
}

/* Whether no candidate of a further pass is in the frame: the first one left none, or even one that had the least of
 * all its bounds, and the first number, would not be. */
static bool is_frame_hopeless(const plan_search *search, plan_walker *walker, int64_t frame,
                              const pc_plan_choice *choice) {
    if (!search->frames || search->passes == 0) return false;
    const plan_frame_bound *least = &search->frames[frame];
    shape_walk x = {.search = search,
                    .walker = walker,
                    .choice = *choice,
                    .number = frame * search->numbers.of_frame * search->numbers.variants,
                    .memory_bytes = least->memory_bytes};
    if (!least->has_shapes || is_rest_ruled_out(search, least, x.number)) return true;
    return is_hopeless(&x, x.number, least->least_ps);
}

/* Those that differ in what of the state is where and in who shares it come one after the other. */
static pc_code walk_shapes(const plan_search *search, plan_walker *walker, int64_t first) {
    const int *radix = search->numbers.radix;
    int64_t outer = (int64_t)radix[DIGIT_SIZE] * radix[DIGIT_RECOMPUTE];
    int64_t states = (int64_t)radix[DIGIT_OFFLOAD] * radix[DIGIT_ZERO] * radix[DIGIT_SHARD];
    int64_t inner = (int64_t)radix[DIGIT_SEQUENCE] * radix[DIGIT_CP_COMM] * radix[DIGIT_DISPATCHER];
    pc_code code = PC_OK;
    for (int64_t i = 0; !code && i < outer * inner; i++) {
        int64_t at = first + i / inner * states * inner + i % inner;
        for (int64_t state = 0; !code && state < states; state++) code = walk_shape(search, walker, at + state * inner);
        forget_made(walker);
    }
    return code;
}

static pc_code walk_frame(const plan_search *search, plan_walker *walker, int64_t frame) {
    const plan_numbers *numbers = &search->numbers;
    int64_t first = frame * numbers->of_frame;
    pc_plan_rule broken;
    pc_code code = PC_OK;
    if (!plan_is_frame(numbers, frame) || !plan_is_in_shard(search, frame)) return PC_OK;
    pc_plan_choice choice = plan_choice_of(numbers, first * numbers->variants);
    if (choice.generator->searches != search->is_searched) return PC_OK;
    if (plan_check_frame(search->space, &choice, &broken)) {
        int64_t count = plan_count_points(numbers, &choice);
        walker->points += count;
        walker->broken[broken] += count;
        return PC_OK;
    }
    if (is_frame_hopeless(search, walker, frame, &choice)) return PC_OK;
    if (rest_of(search, first * numbers->variants))
        search->frames[frame].offered = search->frames[frame].rest = INFINITY;
    code = walk_shapes(search, walker, first);
    hand_over(search, walker);
    return code;
}

/* ---- all ---- */

static void walk_block(void *context, int worker, int64_t index) {
    const plan_pass *x = context;
    plan_walker *walker = &x->walkers[worker];
    const plan_numbers *numbers = &x->search->numbers;
    int64_t first = index * BLOCK, behind = first + BLOCK;
    plan_say_progress(x->search, worker, PC_PLAN_BOUNDS, first * numbers->of_frame, numbers->shapes);
    if (!plan_is_mine(x->search, index)) return;
    if (!walker->code) walker->code = plan_check_stop(x->search, &walker->error);
    for (int64_t frame = first; frame < behind && frame < numbers->frames && !walker->code; frame++)
        walker->code = walk_frame(x->search, walker, frame);
}

static void merge(plan_search *search, plan_walker *from, plan_heap *heap) {
    for (int64_t i = 0; i < from->heap.count; i++) plan_heap_offer(heap, &from->heap.list[i]);
    heap->is_over = heap->is_over || from->heap.is_over;
    if (search->passes > 0) return;
    search->log.points += from->points;
    search->log.over_memory += from->over_memory;
    for (int i = 0; i < PC_PLAN_RULES; i++) {
        search->log.broken[i] += from->broken[i];
        search->log.broken_rule += from->broken[i];
    }
}

static pc_code make_heaps(const plan_search *search, plan_walker *walker, pc_error *error) {
    pc_code code = plan_heap_make(&walker->heap, &search->ranking, search->kept, error);
    if (code || search->kept_of_frame == 0) return code;
    return plan_heap_make(&walker->of_frame, &search->ranking, search->kept_of_frame, error);
}

static pc_code run_pass(plan_search *search, plan_walker *walkers, plan_heap *heap, pc_error *error) {
    plan_pass x = {.search = search, .walkers = walkers};
    pc_code code = PC_OK;
    for (int i = 0; !code && i < search->threads; i++) code = make_heaps(search, &walkers[i], error);
    if (code) return code;
    pc_parallel_run(search->threads, pc_divide_up(search->numbers.frames, BLOCK), walk_block, &x);
    for (int i = 0; !code && i < search->threads; i++) {
        code = walkers[i].code;
        if (code) pc_error_copy(error, &walkers[i].error);
        merge(search, &walkers[i], heap);
    }
    return code;
}

pc_code plan_walk(plan_search *search, plan_heap *heap, pc_error *error) {
    plan_heap made;
    const pc_plan_log before = search->log;
    plan_walker *walkers = pc_alloc((size_t)search->threads, sizeof *walkers);
    if (!walkers) return pc_error_no_memory(error);
    pc_code code = plan_heap_make(&made, &search->ranking, search->kept, error);
    if (!code) code = run_pass(search, walkers, &made, error);
    code = plan_share_pass(search, code, &before, &made, error);
    for (int i = 0; i < search->threads; i++) {
        plan_heap_free(&walkers[i].heap);
        plan_heap_free(&walkers[i].of_frame);
        plan_bounder_free(&walkers[i].bounder);
        forget_made(&walkers[i]);
    }
    pc_free(walkers);
    if (code) {
        plan_heap_free(&made);
        return code;
    }
    plan_heap_sort(&made);
    *heap = made;
    return PC_OK;
}

pc_code plan_bound_choice(plan_bounder *bounder, const pc_plan_space *space, const pc_plan_choice *choice,
                          plan_bounds *bounds, pc_error *error) {
    pc_iteration_spec spec = pc_plan_spec(space, choice);
    pc_outline outline;
    pc_time time_ps;
    pc_time least_ps = 0;
    pc_code code = plan_bounder_outline(bounder, space, choice->base, &spec, &outline, error);
    if (code) return code;
    for (int scope = SCOPE_ONE; !code && scope <= SCOPE_SHAPE; scope++) {
        code = plan_bound_time(bounder, &outline, (plan_scope)scope, &time_ps, error);
        if (!code && time_ps > least_ps) least_ps = time_ps;
    }
    if (!code)
        *bounds = (plan_bounds){.memory_bytes = plan_bound_memory(bounder, &outline),
                                .capacity_bytes = pc_iteration_capacity(&spec),
                                .time_s = pc_time_to_seconds(least_ps)};
    pc_outline_free(&outline);
    return code;
}
