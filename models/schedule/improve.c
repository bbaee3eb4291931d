/* The given order, the orders of the named schedules that keep its limits, and what sweeps to and fro make of all of
 * them compete in a tournament. What comes out is judged by replays, so that it is never worse than what came in.
 */
#include "models/schedule/improve.h"

#include "models/schedule/generate_private.h"

#include "engine/alloc.h"
#include "engine/numbers.h"
#include "engine/parallel.h"
#include "models/schedule/given.h"
#include "models/schedule/least_span.h"
#include "models/schedule/replay.h"
#include "models/schedule/search/instance.h"
#include "models/schedule/search/objective.h"
#include "models/schedule/search/repeat.h"
#include "models/schedule/search/search_dispatched.h"
#include "models/schedule/search/tournament.h"

#include <string.h>

enum {
    STARTS = 8,       /* orders to start from, at most */
    START_ROUNDS = 8, /* sweeps to and fro of each, in two ways */
    BEST = 4,
    CHILDREN = 5, /* how many of the best go on, and in how many more ways each */
    ROUNDS = 24,  /* sweeps of a generation */
    GENERATIONS = 8,
    WITHOUT_GAIN = 2,
    FULL_PASSES = 8192 /* larger instances get fewer rounds, so that the time grows no faster than they */
};

/* ---- what can be improved ---- */

pc_code pc_improve_check(const pc_schedule *schedule, pc_error *error) {
    if (pc_schedule_has(schedule, PC_PASS_R))
        return pc_error_set(error, PC_ERROR_INPUT,
                            "%s recomputes; expected a schedule of F, B, W and BW alone, where it is to be improved",
                            schedule->name);
    if (schedule->barriers != PC_BARRIERS_NONE)
        return pc_error_set(error, PC_ERROR_INPUT,
                            "%s shares the output layer; expected a schedule without S and T, where it is to be "
                            "improved",
                            schedule->name);
    if (schedule->placement == PC_PLACEMENT_BIDIRECTIONAL)
        return pc_error_set(error, PC_ERROR_INPUT,
                            "%s has two replicas; expected placement linear, interleaved or v, where it is to be "
                            "improved",
                            schedule->name);
    if (pc_placement_has_slices(schedule->placement))
        return pc_error_set(
            error, PC_ERROR_INPUT,
            "%s cuts microbatches into slices; expected placement linear, interleaved or v, where it is "
            "to be improved",
            schedule->name);
    if (3 * schedule->chunks > PC_INSTANCE_TYPES_MAX)
        return pc_error_set(error, PC_ERROR_INPUT,
                            "%s has %d chunks a device; expected at most %d, where it is to be "
                            "improved",
                            schedule->name, schedule->chunks, PC_INSTANCE_TYPES_MAX / 3);
    return PC_OK;
}

/* ---- the work ---- */

typedef struct improving {
    const pc_improve_request *request;
    bool splits;    /* whether B and W are apart */
    int64_t *limit; /* a number a device, in bytes; owned */
    int64_t *none;  /* [devices][chunks] zeros, where `costs` needs them; owned */
    pc_costs costs; /* the request's, as an instance can count them */
    pc_objective objective;
    pc_instance instance;
    pc_tournament tournament;
    pc_time bound;
    int entered; /* entries that have an order */
} improving;

static void free_improving(improving *w) {
    pc_tournament_free(&w->tournament);
    pc_instance_free(&w->instance);
    pc_free(w->none);
    pc_free(w->limit);
}

/* A pass takes or gives in an instance. Where B does both, W gives all back, which is never less than what is held. */
static pc_code count_costs(improving *w, pc_error *error) {
    const pc_costs *costs = w->request->costs;
    w->costs = *costs;
    if (!costs->recomputes_in_b || !w->splits) return PC_OK;
    w->none = pc_alloc((size_t)costs->devices * (size_t)costs->chunks, sizeof *w->none);
    if (!w->none) return pc_error_no_memory(error);
    w->costs.activation_b_bytes = w->none;
    return PC_OK;
}

/* Of an order that is given in another form, or by a name: a BW may become a B and a W, whose times nothing asked for
 * then. */
static pc_code check_times(const improving *w, pc_error *error) {
    const bool needs[PC_PASS_KINDS] = {
        [PC_PASS_F] = true, [PC_PASS_B] = w->splits, [PC_PASS_W] = w->splits, [PC_PASS_BW] = !w->splits};
    return pc_costs_check_times(&w->costs, needs, w->request->schedule->name, "the order is improved at it", error);
}

/* Whether all passes and transfers one after the other are a time. */
static bool fits_clock(const pc_instance *instance) {
    double all = 0;
    for (int i = 0; i < instance->devices * instance->types; i++)
        all += (double)instance->cells[i].duration + (double)instance->cells[i].before_delay;
    return all * instance->microbatches < (double)(INT64_MAX / 8);
}

/* PC_TIME_NOT_GIVEN where the instance counts more memory than a schedule takes, too. */
static pc_code find_bound(improving *w, pc_error *error) {
    w->bound = PC_TIME_NOT_GIVEN;
    if (w->splits && w->costs.recomputes_in_b) return PC_OK;
    return pc_schedule_least_span(w->request->schedule, &w->costs, (pc_memory_limit){w->limit}, &w->bound, error);
}

/* ---- orders to start from ---- */

/* The next entry has its order: it counts if that can run and keeps the limits. */
static void enter(improving *w) {
    pc_entry *e = &w->tournament.entries[w->entered];
    e->pattern = -1; /* NOLINT(clang-analyzer-core.NullDereference): the tournament was made */
    e->is_made = true;
    e->is_valid = pc_reorder_squeeze(w->tournament.rooms[PC_COARSE_NONE][0], &e->order);
    if (e->is_valid) w->entered++;
}

static void enter_schedule(improving *w, const pc_schedule *schedule) {
    pc_instance_of_schedule(&w->instance, schedule, &w->tournament.entries[w->entered].order);
    enter(w);
}

static bool is_over(const improving *w) {
    for (int i = 0; i < w->entered; i++)
        if (w->tournament.entries[i].order.span <= w->bound) return true;
    return false;
}

static pc_generate_request request_of(const improving *w) {
    return (pc_generate_request){.devices = w->costs.devices,
                                 .microbatches = w->instance.microbatches,
                                 .chunks = w->costs.chunks,
                                 .costs = w->request->costs,
                                 .memory_limit = {w->limit},
                                 .threads = w->request->threads,
                                 .goal = w->request->goal};
}

/* Whether the named schedule is one of this shape, placement and kinds of passes, and may have room. */
static bool is_like(const improving *w, const pc_generator *name) {
    return name->placement == w->request->schedule->placement && !name->recomputes &&
           name->barriers == PC_BARRIERS_NONE && (w->splits || !name->splits) &&
           !pc_generator_check(name, w->costs.devices, w->instance.microbatches, w->costs.chunks, NULL) &&
           !pc_generator_check_memory(name, w->request->costs, (pc_memory_limit){w->limit}, NULL);
}

/* A name that has no such order is left out. */
static pc_code enter_named(improving *w, const pc_generator *name, pc_error *error) {
    pc_generate_request request = request_of(w);
    pc_schedule schedule;
    pc_code code = pc_generate(name, &request, &schedule, NULL, error);
    if (code) return code == PC_ERROR_INPUT ? PC_OK : code;
    enter_schedule(w, &schedule);
    pc_schedule_free(&schedule);
    return PC_OK;
}

/* Of the names that search the one that may hold most: it asks all that are within its limits. NULL where none is like
 * this. */
static pc_code find_widest(const improving *w, const pc_generator **widest, pc_error *error) {
    int count;
    const pc_generator *all = pc_generators(&count);
    pc_generate_request request = request_of(w);
    int64_t most = -1, *room = pc_alloc((size_t)w->costs.devices, sizeof *room);
    if (!room) return pc_error_no_memory(error);
    *widest = NULL;
    for (int i = 0; i < count; i++) {
        if (!all[i].searches || all[i].splits != w->splits || !is_like(w, &all[i])) continue;
        pc_searched_limits(&all[i], &request, room);
        if (room[0] <= most) continue;
        most = room[0];
        *widest = &all[i];
    }
    pc_free(room);
    return PC_OK;
}

/* Several chunks of a shape that no name searches for: whole backward passes, or more chunks than a name has. */
static pc_code enter_searched(improving *w, pc_error *error) {
    const pc_search search = {.name = w->request->schedule->name,
                              .costs = &w->costs,
                              .placement = w->instance.placement,
                              .splits = w->splits,
                              .microbatches = w->instance.microbatches,
                              .memory_limit = {w->limit},
                              .threads = w->tournament.threads};
    pc_schedule schedule;
    pc_code code = pc_search_dispatched(&search, &schedule, error);
    if (code) return code == PC_ERROR_INPUT ? PC_OK : code;
    enter_schedule(w, &schedule);
    pc_schedule_free(&schedule);
    return PC_OK;
}

/* The given order first, then those of names, until one is as short as any can be. Where none has room, one microbatch
 * runs after the other. Last what a search gives that has no name. */
static pc_code enter_starts(improving *w, pc_error *error) {
    int count;
    const pc_generator *all = pc_generators(&count), *widest = NULL;
    pc_code code = PC_OK;
    enter_schedule(w, w->request->schedule);
    if (!is_over(w)) code = find_widest(w, &widest, error);
    if (!code && widest) code = enter_named(w, widest, error);
    for (int i = 0; i < count && w->entered < STARTS && !code && !is_over(w); i++)
        if (!all[i].searches && is_like(w, &all[i])) code = enter_named(w, &all[i], error);
    if (!code && w->entered == 0) {
        pc_repeat_one_by_one(&w->instance, &w->tournament.entries[0].order);
        enter(w);
    }
    bool is_searched = !widest && w->costs.chunks > 1 && w->entered < STARTS;
    return code || !is_searched || is_over(w) ? code : enter_searched(w, error);
}

/* ---- the tournament ---- */

static void swap_entries(pc_entry *a, pc_entry *b) {
    pc_entry other = *a;
    *a = *b;
    *b = other;
}

static bool is_same_order(const pc_instance *instance, const pc_entry *a, const pc_entry *b) {
    size_t bytes = (size_t)instance->devices * (size_t)instance->passes * sizeof *a->order.pass;
    return a->order.span == b->order.span && a->order.makespan == b->order.makespan &&
           memcmp(a->order.pass, b->order.pass, bytes) == 0;
}

/* Of ranked entries the best ones that differ, at the front; returns how many. */
static int keep_best(pc_tournament *t, int count) {
    int kept = 0;
    for (int i = 0; i < count && kept < BEST; i++) {
        bool is_new = t->entries[i].is_valid;
        for (int k = 0; k < kept && is_new; k++) is_new = !is_same_order(t->instance, &t->entries[k], &t->entries[i]);
        if (is_new) swap_entries(&t->entries[kept++], &t->entries[i]);
    }
    return kept;
}

/* Each of the first `count` goes on itself, and so do copies of it, all in ways that are drawn anew. */
static int branch_out(pc_tournament *t, int count, int generation) {
    int entered = count;
    for (int child = 0; child < CHILDREN; child++)
        for (int i = 0; i < count; i++) pc_tournament_copy_entry(t, i, entered++);
    for (int i = 0; i < entered; i++)
        t->entries[i].way = pc_reorder_drawn(1 + i + generation * t->entry_count) + (i & 1);
    return entered;
}

static int enter_both_ways(improving *w) {
    pc_tournament *t = &w->tournament;
    for (int i = 0; i < w->entered; i++) {
        pc_tournament_copy_entry(t, i, w->entered + i);
        t->entries[i].way = PC_REORDER_EAGER;
        t->entries[w->entered + i].way = PC_REORDER_STRICT;
    }
    return 2 * w->entered;
}

static int scale(int number, int64_t passes) {
    return passes <= FULL_PASSES ? number : pc_max((int)(number * (int64_t)FULL_PASSES / passes), 1);
}

/* The best order becomes the first entry. */
static void compete(improving *w) {
    pc_tournament *t = &w->tournament;
    int64_t passes = t->instance->devices * t->instance->passes;
    if (is_over(w)) {
        pc_tournament_run(t, w->entered, 0);
        return;
    }
    int count = enter_both_ways(w), generations = scale(GENERATIONS, passes / 4);
    pc_tournament_run(t, count, scale(START_ROUNDS, passes / 4));
    for (int i = 0, without_gain = 0; i < generations && without_gain < WITHOUT_GAIN; i++) {
        if (pc_tournament_is_over(t)) return;
        pc_time span = t->entries[0].order.span;
        count = branch_out(t, keep_best(t, count), i);
        pc_tournament_run(t, count, scale(ROUNDS, passes));
        without_gain = t->entries[0].order.span < span ? 0 : without_gain + 1;
    }
}

enum { ENTRIES = BEST * (1 + CHILDREN) };
_Static_assert(ENTRIES >= 2 * STARTS, "every start goes two ways");

static pc_code find_shorter(improving *w, pc_schedule *found, pc_error *error) {
    int threads = w->request->threads > 0 ? w->request->threads : pc_parallel_processors();
    pc_code code = pc_tournament_create(&w->instance, NULL, threads, ENTRIES, false, &w->tournament, error);
    if (code) return code;
    if (w->bound != PC_TIME_NOT_GIVEN) w->tournament.enough = w->bound;
    code = enter_starts(w, error);
    if (code) return code;
    compete(w);
    return pc_instance_to_schedule(&w->instance, &w->tournament.entries[0].order, w->request->schedule->name, found,
                                   error);
}

/* ---- the judgement ---- */

static bool keeps(const improving *w, const pc_replay *replay) {
    for (int d = 0; d < replay->devices; d++)
        if (replay->device_peak_bytes[d] > w->limit[d]) return false;
    return true;
}

static pc_time value_of(const improving *w, const pc_replay *replay) {
    return w->request->goal == PC_GOAL_SPAN ? replay->span_ps : replay->makespan_ps;
}

static bool is_better(const improving *w, const pc_replay *a, const pc_replay *b) {
    if (value_of(w, a) != value_of(w, b)) return value_of(w, a) < value_of(w, b);
    if (a->makespan_ps != b->makespan_ps) return a->makespan_ps < b->makespan_ps;
    return a->span_ps != b->span_ps ? a->span_ps < b->span_ps : a->peak_bytes < b->peak_bytes;
}

static pc_code take_given(const improving *w, const pc_replay *given, pc_schedule *improved, pc_error *error) {
    const pc_schedule *schedule = w->request->schedule;
    if (keeps(w, given)) return pc_schedule_copy(schedule, improved, error);
    return pc_error_set(error, PC_ERROR_INPUT, "%s: no order was found within the memory limit; expected a larger one",
                        schedule->name);
}

/* *improved becomes `found`, which is taken over, or a copy of the given one; *changed says which. */
static pc_code choose(const improving *w, const pc_replay *given, pc_schedule *found, pc_schedule *improved,
                      bool *changed, pc_error *error) {
    pc_replay replay;
    pc_code code = pc_replay_run(found, w->request->costs, NULL, &replay, error);
    if (!code) {
        *changed = keeps(w, &replay) && (!keeps(w, given) || is_better(w, &replay, given));
        pc_replay_free(&replay);
        if (!*changed) code = take_given(w, given, improved, error);
    }
    if (!code && *changed)
        *improved = *found;
    else
        pc_schedule_free(found);
    return code;
}

/* ---- the parts ---- */

static pc_code find_limits(improving *w, const pc_replay *given, pc_error *error) {
    const pc_improve_request *request = w->request;
    const pc_schedule *schedule = request->schedule;
    int devices = given->devices;
    w->limit = pc_alloc((size_t)devices, sizeof *w->limit);
    if (!w->limit) return pc_error_no_memory(error);
    for (int d = 0; d < devices; d++)
        w->limit[d] = request->memory_limit.device_bytes ? pc_memory_limit_of(request->memory_limit, d)
                                                         : given->device_peak_bytes[d];
    pc_generator like = pc_generator_of_given(schedule->name, schedule->placement, schedule->chunks, NULL);
    if (keeps(w, given)) return PC_OK;
    pc_code code = pc_memory_limit_check(request->memory_limit, devices, error);
    return code ? code : pc_generator_check_memory(&like, request->costs, (pc_memory_limit){w->limit}, error);
}

static pc_code make_instance(improving *w, pc_error *error) {
    const pc_schedule *schedule = w->request->schedule;
    pc_code code = count_costs(w, error);
    if (!code) code = check_times(w, error);
    if (!code)
        code = pc_instance_create(&w->costs, schedule->placement, w->splits, schedule->microbatches,
                                  (pc_memory_limit){w->limit}, &w->instance, error);
    if (!code) w->instance.objective = pc_objective_make(w->request->goal, &w->costs, NULL, &w->objective);
    return code;
}

static pc_code improve(improving *w, const pc_replay *given, pc_schedule *improved, pc_improvement *improvement,
                       pc_error *error) {
    pc_schedule found = {0};
    pc_code code = find_limits(w, given, error);
    if (!code) code = make_instance(w, error);
    if (code) return code;
    if (!fits_clock(&w->instance)) return take_given(w, given, improved, error);
    code = find_bound(w, error);
    improvement->bound_ps = w->bound;
    if (!code && value_of(w, given) <= w->bound && keeps(w, given))
        return pc_schedule_copy(w->request->schedule, improved, error);
    if (!code) code = find_shorter(w, &found, error);
    return code ? code : choose(w, given, &found, improved, &improvement->is_changed, error);
}

pc_code pc_schedule_improve(const pc_improve_request *request, pc_schedule *improved, pc_improvement *improvement,
                            pc_error *error) {
    improving w = {.request = request, .splits = pc_schedule_has(request->schedule, PC_PASS_W)};
    pc_improvement made = {.bound_ps = PC_TIME_NOT_GIVEN};
    pc_replay given = {0};
    pc_code code = pc_improve_check(request->schedule, error);
    if (!code) code = pc_replay_run(request->schedule, request->costs, NULL, &given, error);
    if (!code) code = improve(&w, &given, improved, &made, error);
    if (!code) {
        made.span_before_ps = given.span_ps;
        made.makespan_before_ps = given.makespan_ps;
        made.peak_before_bytes = given.device_peak_bytes;
        given.device_peak_bytes = NULL;
        *improvement = made;
    }
    free_improving(&w);
    pc_replay_free(&given);
    return code;
}

void pc_improvement_free(pc_improvement *improvement) {
    pc_free(improvement->peak_before_bytes);
    memset(improvement, 0, sizeof *improvement);
}
