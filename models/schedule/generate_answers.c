/* What a name that searches tries: its search at the costs (generate_searched.c), the answers of the same search for
 * equal times and for the mean stage, and those of all names of its placement whose limits are within its own. Each is
 * judged at the costs, so that the schedule is never longer than any of them. A search is a local one: what it finds
 * for other times, or within less memory, is now and then shorter than what it finds for these.
 *
 * An answer is what one search gives, and nothing is made of it afterwards. So the answers that a name tries hold all
 * that the names within its limits try, and all that it tries itself for equal times or for the mean stage.
 */
#include "models/schedule/generate_private.h"

#include "engine/alloc.h"
#include "models/schedule/search/answers.h"
#include "models/schedule/search/bound.h"
#include "models/schedule/search/coarse.h"
#include "models/schedule/search/known.h"
#include "models/schedule/search/objective.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* ---- times to search for ---- */

typedef enum search_times { TIMES_COSTS, TIMES_EQUAL, TIMES_MEAN, TIMES } search_times;

static int64_t cells_of(const pc_costs *costs) {
    return (int64_t)costs->devices * costs->chunks;
}

void pc_searched_equal_times(pc_costs *costs) {
    for (int64_t i = 0; i < cells_of(costs); i++) {
        pc_time *duration = &costs->duration_ps[i * PC_PASS_KINDS];
        duration[PC_PASS_F] = duration[PC_PASS_B] = duration[PC_PASS_W] = duration[PC_PASS_R] = 1;
        duration[PC_PASS_BW] = 2;
    }
}

/* Rounded down; the sum may be larger than a number can be. */
static pc_time mean_of(const pc_time *times, int64_t count, int64_t stride) {
    pc_time whole = 0, rest = 0;
    for (int64_t i = 0; i < count; i++) {
        whole += times[i * stride] / count;
        rest += times[i * stride] % count;
    }
    return whole + rest / count;
}

/* Of every kind the mean over all chunks, and of the hops between neighbours. */
static void fill_mean_times(const pc_costs *costs, pc_costs *mean) {
    for (int kind = 0; kind < PC_PASS_KINDS; kind++) {
        pc_time time = costs->duration_ps[kind] == PC_TIME_NOT_GIVEN
                           ? PC_TIME_NOT_GIVEN
                           : mean_of(costs->duration_ps + kind, cells_of(costs), PC_PASS_KINDS);
        for (int64_t i = 0; i < cells_of(costs); i++) mean->duration_ps[i * PC_PASS_KINDS + kind] = time;
    }
    mean->transfer = costs->transfer;
    if (costs->hop_delay_ps && costs->devices > 1)
        mean->transfer.delay_ps = mean_of(costs->hop_delay_ps, costs->devices - 1, 1);
}

/* Whole backward passes that take what their B and W do, for a search that is to have them. */
static void fill_whole_times(const pc_costs *costs, pc_costs *made) {
    for (int64_t i = 0; i < cells_of(costs); i++) {
        const pc_time *from = &costs->duration_ps[i * PC_PASS_KINDS];
        made->duration_ps[i * PC_PASS_KINDS + PC_PASS_BW] = from[PC_PASS_B] + from[PC_PASS_W];
    }
}

/* The costs with other times; `times` owns them and must outlive the result. */
static pc_costs costs_at(const pc_costs *costs, search_times kind, const pc_costs *times) {
    pc_costs made = *costs;
    made.duration_ps = times->duration_ps;
    if (kind == TIMES_COSTS) return made;
    made.transfer = times->transfer;
    made.hop_delay_ps = made.ready_ps = NULL;
    return made;
}

static pc_code make_times(const pc_costs *costs, search_times kind, bool has_whole, pc_costs *times, pc_error *error) {
    pc_code code = pc_costs_create(costs->devices, costs->chunks, times, error);
    if (code) return code;
    if (kind == TIMES_EQUAL) pc_searched_equal_times(times);
    if (kind == TIMES_MEAN) fill_mean_times(costs, times);
    if (kind == TIMES_COSTS)
        memcpy(times->duration_ps, costs->duration_ps,
               (size_t)cells_of(costs) * PC_PASS_KINDS * sizeof *times->duration_ps);
    if (has_whole) fill_whole_times(times, times);
    return PC_OK;
}

/* ---- one name's answers ---- */

/* The asking name's contest, and what it is about. */
typedef struct contest {
    const pc_generator *asker;
    pc_generate_request request; /* its costs have sizes; its limit is that of the level that is on, below */
    bool with_block;
    pc_goal goal;         /* of the searches that are asked; orders are judged by the request's */
    int64_t *grain_bytes; /* a number a device: what all sums of its passes' memory are multiples of; owned */
    int64_t *level_bytes; /* the limits of the lower level that is on; owned */
    int64_t
        *named_bytes; /* a number a device: what the name that is asked limits it to by itself; owned, as the next */
    int64_t *limit_bytes; /* the smaller one of that and the request's */
    pc_answers answers;
} contest;

static pc_memory_limit limit_of(const contest *c) {
    return (pc_memory_limit){c->limit_bytes};
}

/* Of the name that is asked next. */
static void find_limits(const contest *c, const pc_generator *name) {
    pc_searched_limits(name, &c->request, c->named_bytes);
    for (int d = 0; d < c->request.costs->devices; d++) {
        int64_t own = c->named_bytes[d], asked = pc_memory_limit_of(c->request.memory_limit, d);
        int64_t limit = own < asked ? own : asked;
        c->limit_bytes[d] = limit == PC_NO_LIMIT ? limit : limit - limit % c->grain_bytes[d];
    }
}

/* Whether other times are the costs' own, in another unit. */
static pc_code is_same_search(const contest *c, const pc_costs *costs, bool *same, pc_error *error) {
    pc_instance instance;
    pc_code code = pc_instance_create(costs, c->asker->placement, c->asker->splits, c->answers.instance->microbatches,
                                      (pc_memory_limit){NULL}, &instance, error);
    if (code) return code;
    *same = pc_instance_has_times_of(c->answers.instance, &instance);
    pc_instance_free(&instance);
    return PC_OK;
}

/* *span becomes the answer's at the costs. *bound, unless NULL, is of what is searched, and may become closer. */
static pc_code search_at(contest *c, const pc_generator *name, const pc_costs *costs, pc_bound *bound, pc_time *span,
                         pc_error *error) {
    bool is_tight = pc_searched_is_tightened(name, &c->request, c->named_bytes);
    pc_generate_request request = c->request;
    pc_schedule schedule = {0};
    pc_block block = {0};
    request.costs = costs;
    request.memory_limit = limit_of(c);
    request.goal = c->goal;
    request.bound = bound && !bound->is_close ? bound : NULL;
    pc_code code = pc_searched_run(name, &request, is_tight, &schedule, c->with_block ? &block : NULL, error);
    if (!code) *span = pc_answers_offer(&c->answers, &schedule, &block);
    return code;
}

/* Of a large instance, whether a name idles so much longer than the best so far, at these costs, that its answers for
 * other times are not worth their while. */
static bool is_hopeless(const contest *c, pc_time span) {
    const pc_instance *instance = c->answers.instance;
    pc_time work = 0;
    if (!pc_instance_is_large(instance) || instance->objective || c->answers.links) return false;
    for (int d = 0; d < instance->devices; d++) {
        pc_time own = 0;
        for (int type = 0; type < instance->types; type++) own += instance->cells[d * instance->types + type].duration;
        if (own > work) work = own;
    }
    work *= instance->microbatches;
    return (span - work) / 2 > c->answers.best.span - work;
}

static pc_code ask_at(contest *c, const pc_generator *name, search_times kind, pc_bound *bound, pc_time *span,
                      pc_error *error) {
    pc_costs times;
    bool same = false;
    pc_code code = make_times(c->request.costs, kind, c->asker->splits && !name->splits, &times, error);
    if (code) return code;
    pc_costs costs = costs_at(c->request.costs, kind, &times);
    if (kind != TIMES_COSTS) code = is_same_search(c, &costs, &same, error);
    if (!code && !same) code = search_at(c, name, &costs, bound, span, error);
    pc_costs_free(&times);
    return code;
}

/* Asks one name, or the asker itself, for its answers, until one is as short as any within its limits can be, of which
 * `instance` is. */
static pc_code ask(contest *c, const pc_generator *name, const pc_instance *instance, pc_error *error) {
    pc_time span = 0;
    pc_bound bound = pc_known_first(instance);
    int behind = c->request.searches_once ? TIMES_COSTS + 1 : TIMES;
    for (int kind = TIMES_COSTS; kind < behind; kind++) {
        bool is_reached = false;
        pc_code code = pc_answers_reach(&c->answers, instance, &bound, &is_reached, error);
        if (code || is_reached) return code;
        bool is_of_search = kind == TIMES_COSTS && !instance->objective && !c->answers.instance->objective;
        code = ask_at(c, name, (search_times)kind, is_of_search ? &bound : NULL, &span, error);
        if (code) return code;
        if (is_hopeless(c, span)) break;
    }
    return PC_OK;
}

/* ---- the others ---- */

/* Whether `within` limits no device to more than the asker's instance does; the same limits count as well. */
static bool is_within(const pc_instance *within, const pc_instance *instance) {
    for (int d = 0; d < instance->devices; d++)
        if (within->limit[d] > instance->limit[d]) return false;
    return true;
}

static bool is_same_limit(const pc_instance *a, const pc_instance *b) {
    return memcmp(a->limit, b->limit, (size_t)a->devices * sizeof *a->limit) == 0;
}

/* Whether the request leaves a name less than its own limit. */
static bool is_tightened(const pc_instance *instance, const int64_t *named_bytes) {
    for (int d = 0; d < instance->devices; d++)
        if (instance->limit[d] < named_bytes[d]) return true;
    return false;
}

/* What a name's own schedules are made for: its limits, and its kinds of passes. */
static pc_code instance_of(const contest *c, const pc_generator *name, pc_instance *instance, pc_error *error) {
    pc_costs times;
    pc_code code = make_times(c->request.costs, TIMES_COSTS, c->asker->splits && !name->splits, &times, error);
    if (code) return code;
    pc_costs costs = costs_at(c->request.costs, TIMES_COSTS, &times);
    code = pc_instance_create(&costs, name->placement, name->splits, c->answers.instance->microbatches, limit_of(c),
                              instance, error);
    pc_costs_free(&times);
    return code;
}

/* Whole backward passes within less than the memory that they are made for take long to find, and then idle far more
 * than those that are apart: that is not tried. */
static pc_code ask_other(contest *c, const pc_generator *name, pc_error *error) {
    const pc_instance *own = c->answers.instance;
    pc_instance instance;
    find_limits(c, name);
    pc_code code = instance_of(c, name, &instance, error);
    if (code) return code;
    bool is_asked = is_within(&instance, own) &&
                    !(pc_searched_are_one(name, c->asker) && is_same_limit(&instance, own)) &&
                    (name->splits || !is_tightened(&instance, c->named_bytes));
    if (is_asked) code = ask(c, name, &instance, error);
    pc_instance_free(&instance);
    return code;
}

static bool has_shape(const contest *c, const pc_generator *name) {
    const pc_generate_request *request = &c->request;
    return !pc_generator_check(name, request->devices, request->microbatches, request->chunks, NULL);
}

/* Whether there is such an order of this shape, and what it is known to hold is within the asker's limits: else it need
 * not be made to be turned down. */
static bool may_count(const contest *c, const pc_generator *name) {
    const pc_generate_request *request = &c->request;
    if (!has_shape(c, name)) return false;
    for (int d = 0; name->mixes && d < request->devices; d++)
        if (pc_dualpipe_v_held(request->costs, d) > c->limit_bytes[d]) return false;
    return true;
}

/* An order that looks at no costs; it counts if it keeps the limits. */
static pc_code offer_static(contest *c, const pc_generator *name, pc_error *error) {
    pc_schedule schedule = {0};
    pc_block block = {0};
    pc_code code = pc_generate(name, &c->request, &schedule, c->with_block ? &block : NULL, error);
    pc_free(schedule.pairs); /* searches move passes one by one */
    schedule.pairs = NULL;
    if (!code) pc_answers_offer(&c->answers, &schedule, &block);
    return code;
}

static bool is_other(const pc_generator *name, const pc_generator *asker) {
    return name != asker && name->placement == asker->placement && !name->recomputes &&
           name->barriers == PC_BARRIERS_NONE && (asker->splits || !name->splits) &&
           name->chunks_default == asker->chunks_default;
}

static pc_code ask_others(contest *c, pc_error *error) {
    int count;
    const pc_generator *all = pc_generators(&count);
    pc_code code = PC_OK;
    for (int i = 0; i < count && !code; i++)
        if (!all[i].searches && is_other(&all[i], c->asker) && may_count(c, &all[i]))
            code = offer_static(c, &all[i], error);
    for (int i = count - 1; i >= 0 && !code; i--)
        if (all[i].searches && is_other(&all[i], c->asker) && has_shape(c, &all[i]))
            code = ask_other(c, &all[i], error);
    return code;
}

/* ---- the widest family ---- */

/* The blocks of all families that have the asker's kinds of passes, within its own limits: one search, at the costs. */
static pc_code ask_widest(contest *c, pc_error *error) {
    const pc_generator *widest =
        c->asker->adapts ? c->asker : pc_generator_find(c->asker->placement == PC_PLACEMENT_V ? "v-adaptive" : "zb-1p");
    pc_bound bound = pc_bound_first(c->answers.instance);
    pc_time span;
    bool is_reached = false;
    if (pc_instance_is_large(c->answers.instance) || !c->asker->splits || pc_searched_are_one(widest, c->asker))
        return PC_OK;
    find_limits(c, c->asker);
    pc_code code = pc_answers_reach(&c->answers, c->answers.instance, &bound, &is_reached, error);
    return code || is_reached ? code : ask_at(c, widest, TIMES_COSTS, NULL, &span, error);
}

/* ---- lower levels ----
 *
 * With more memory no schedule shall be longer, whatever searches find. So a name gives the best of all that it would
 * give within lower limits too. These are the levels below its own: every device has one step less from level to level.
 * A step is the least amount by which what it holds can differ; so all limits between two levels are the lower one of
 * them, and what is tried within any of them is tried within all above it. Once the best so far is as short as the
 * bound says that any schedule of a level is, nothing below that level need be tried. Whatever it is, it is no shorter,
 * and so leaving it out changes no answer.
 */

enum { STEPS_OF_A_CHUNK = 8 }; /* at most: where memory comes in finer grains, a step is a whole chunk */

static int64_t largest_chunk(const pc_costs *costs, int device) {
    int64_t largest = 0;
    for (int i = 0; i < costs->chunks; i++) {
        int64_t chunk = costs->activation_bytes[pc_costs_index(costs, device, i)];
        if (chunk > largest) largest = chunk;
    }
    return largest;
}

/* What a device holds if it holds the activations of all microbatches: a limit above that is none. */
static int64_t all_of(const contest *c, int device) {
    const pc_costs *costs = c->request.costs;
    int64_t sum = 0;
    for (int i = 0; i < costs->chunks; i++) sum += costs->activation_bytes[pc_costs_index(costs, device, i)];
    return sum * c->request.microbatches;
}

/* The limits of the next lower level, below those that the asker has now. False where a device would have too little
 * memory then, or has no limit. */
static bool lower_level(contest *c) {
    const pc_costs *costs = c->request.costs;
    find_limits(c, c->asker);
    for (int d = 0; d < costs->devices; d++) {
        int64_t chunk = largest_chunk(costs, d), step = c->grain_bytes[d], all = all_of(c, d);
        int64_t limit = c->limit_bytes[d] < all ? c->limit_bytes[d] : all;
        if (step < chunk / STEPS_OF_A_CHUNK) step = chunk;
        c->level_bytes[d] = c->limit_bytes[d];
        if (chunk == 0) continue;
        if (c->limit_bytes[d] == PC_NO_LIMIT) return false;
        c->level_bytes[d] = (limit - 1) / step * step;
        if (c->level_bytes[d] < pc_generator_least_memory(c->asker, costs, d)) return false;
    }
    c->request.memory_limit = (pc_memory_limit){c->level_bytes};
    return true;
}

/* All that searches; of the others only those whose limits this level lowers: elsewhere they have been asked already.
 */
static pc_code ask_level(contest *c, const pc_instance *instance, pc_error *error) {
    int count;
    const pc_generator *all = pc_generators(&count);
    pc_code code = ask(c, c->asker, instance, error);
    for (int i = count - 1; i >= 0 && !code; i--) {
        if (!all[i].searches || !is_other(&all[i], c->asker)) continue;
        pc_searched_limits(&all[i], &c->request, c->named_bytes);
        if (is_tightened(instance, c->named_bytes)) code = ask_other(c, &all[i], error);
    }
    return code;
}

enum { ALL_LEVELS = 2048 }; /* passes: larger instances try one level, for two or three would double their time */

/* Of three chunks and more one level, too: their bounds are so far off that levels would hardly end. */
static int count_levels(const pc_instance *instance) {
    if (pc_instance_is_large(instance)) return 0;
    return instance->chunks > 2 || instance->devices * instance->passes >= ALL_LEVELS ? 1 : INT_MAX;
}

static pc_code ask_lower_levels(contest *c, pc_error *error) {
    const pc_memory_limit own = c->request.memory_limit;
    int left = count_levels(c->answers.instance);
    pc_code code = PC_OK;
    bool is_reached = false;
    while (!code && !is_reached && left-- > 0 && lower_level(c)) {
        pc_instance instance;
        find_limits(c, c->asker);
        code = instance_of(c, c->asker, &instance, error);
        if (code) break;
        pc_bound bound = pc_bound_first(&instance);
        code = pc_answers_reach(&c->answers, &instance, &bound, &is_reached, error);
        if (!code && !is_reached) code = ask_level(c, &instance, error);
        pc_instance_free(&instance);
    }
    c->request.memory_limit = own;
    return code;
}

/* ---- another goal than the span ---- */

/* All that is found for the span was judged by the goal. Now the asker's own search minimises that, and sweeps and
 * kicks go on from the best order so far. */
static pc_code ask_for_goal(contest *c, pc_error *error) {
    const pc_instance *instance = c->answers.instance;
    pc_bound bound = pc_bound_first(instance);
    bool is_reached = false;
    pc_time value;
    pc_code code = pc_answers_reach(&c->answers, instance, &bound, &is_reached, error);
    if (code || is_reached) return code;
    find_limits(c, c->asker);
    c->goal = c->request.goal;
    code = ask_at(c, c->asker, TIMES_COSTS, NULL, &value, error);
    if (!code) pc_answers_improve(&c->answers, bound.least);
    return code;
}

/* ---- the answer ---- */

/* Reordering leaves the block it starts from where that saves time: what the schedule then repeats takes its place. */
static pc_code replace_block(pc_schedule *schedule, pc_block *block, pc_error *error) {
    pc_block repeated;
    pc_code code = pc_block_of_schedule(schedule, &repeated, error);
    if (code) {
        pc_schedule_free(schedule);
        pc_block_free(block);
    } else if (repeated.devices > 0) {
        pc_block_free(block);
        *block = repeated;
    }
    return code;
}

static pc_code find_answer(contest *c, pc_schedule *schedule, pc_block *block, pc_error *error) {
    pc_code code = ask(c, c->asker, c->answers.instance, error);
    if (!code && !c->request.searches_once) code = ask_others(c, error);
    if (!code && !c->request.searches_once) code = ask_widest(c, error);
    if (!code && !c->request.searches_once) code = ask_lower_levels(c, error);
    if (!code && c->request.goal != PC_GOAL_SPAN) code = ask_for_goal(c, error);
    if (!code) code = pc_instance_to_schedule(c->answers.instance, &c->answers.best, c->asker->name, schedule, error);
    if (code || !block) return code;
    *block = c->answers.block;
    c->answers.block = (pc_block){0};
    return replace_block(schedule, block, error);
}

/* Sums of memory are multiples of this. */
static int64_t grain_of(const pc_instance *instance, int device) {
    int64_t grain = 0;
    for (int type = 0; type < instance->types; type++)
        for (int64_t rest = llabs(instance->cells[device * instance->types + type].taken), divided; rest > 0;) {
            divided = grain % rest;
            grain = rest;
            rest = divided;
        }
    return grain > 0 ? grain : 1;
}

static pc_code make_instance(const contest *c, pc_instance *instance, pc_error *error) {
    const pc_generate_request *request = &c->request;
    return pc_instance_create(request->costs, c->asker->placement, c->asker->splits, (int)request->microbatches,
                              limit_of(c), instance, error);
}

/* The asker's instance, within limits rounded down to what can be held. */
static pc_code begin(contest *c, pc_instance *instance, pc_error *error) {
    for (int d = 0; d < c->request.costs->devices; d++) c->grain_bytes[d] = 1;
    find_limits(c, c->asker);
    pc_code code = make_instance(c, instance, error);
    if (code) return code;
    for (int d = 0; d < instance->devices; d++) c->grain_bytes[d] = grain_of(instance, d);
    pc_instance_free(instance);
    find_limits(c, c->asker);
    return make_instance(c, instance, error);
}

static pc_code search_within_limits(const pc_generator *self, const pc_generate_request *request, pc_schedule *schedule,
                                    pc_block *block, pc_error *error) {
    size_t devices = (size_t)request->costs->devices;
    contest c = {.asker = self, .request = *request, .with_block = block != NULL};
    if (request->effort == PC_EFFORT_QUICK) c.request.searches_once = true;
    pc_instance instance = {0};
    pc_objective objective;
    int64_t *const numbers = pc_alloc(4 * devices, sizeof *numbers);
    if (!numbers) return pc_error_no_memory(error);
    c.named_bytes = numbers;
    c.limit_bytes = numbers + devices;
    c.grain_bytes = numbers + 2 * devices;
    c.level_bytes = numbers + 3 * devices;
    pc_search_memo *own = NULL;
    pc_code code = begin(&c, &instance, error);
    if (!code && !request->memo && !pc_instance_is_large(&instance))
        code = pc_search_memo_create(PC_SEARCH_MEMO_BYTES, &own, error);
    if (own) c.request.memo = own;
    if (!code) instance.objective = pc_objective_make(request->goal, request->costs, request->tails, &objective);
    if (!code) code = pc_answers_create(&instance, request->costs, &c.answers, error);
    if (!code) code = find_answer(&c, schedule, block, error);
    pc_answers_free(&c.answers);
    pc_instance_free(&instance);
    pc_search_memo_free(own);
    pc_free(numbers);
    return code;
}

/* ---- what a request must give ---- */

static pc_code check_times(const pc_generator *self, const pc_costs *costs, pc_error *error) {
    const bool needs[PC_PASS_KINDS] = {
        [PC_PASS_F] = true, [PC_PASS_B] = self->splits, [PC_PASS_W] = self->splits, [PC_PASS_BW] = !self->splits};
    return pc_costs_check_times(costs, needs, self->name, "the schedule is made for it", error);
}

/* The same costs with activations that count chunks: a schedule keeps to its name's number of microbatches also where
 * nobody said how large they are. The request's limit says nothing then. */
static pc_code count_chunks(const pc_costs *costs, pc_costs *counting, pc_error *error) {
    pc_code code = pc_costs_create(costs->devices, costs->chunks, counting, error);
    if (code) return code;
    int64_t cells = (int64_t)costs->devices * costs->chunks;
    memcpy(counting->duration_ps, costs->duration_ps, (size_t)cells * PC_PASS_KINDS * sizeof *costs->duration_ps);
    for (int64_t i = 0; i < cells; i++) counting->activation_bytes[i] = 1;
    counting->transfer = costs->transfer;
    if (costs->hop_delay_ps) code = pc_costs_add_hop_delays(counting, error);
    if (!code && costs->hop_delay_ps)
        memcpy(counting->hop_delay_ps, costs->hop_delay_ps, (size_t)costs->devices * sizeof *costs->hop_delay_ps);
    if (code) pc_costs_free(counting);
    return code;
}

pc_code pc_generate_searched(const pc_generator *self, const pc_generate_request *request, pc_schedule *schedule,
                             pc_block *block, pc_error *error) {
    pc_code code = check_times(self, request->costs, error);
    if (!code) code = pc_generator_check_memory(self, request->costs, request->memory_limit, error);
    if (code || pc_costs_have_activations(request->costs))
        return code ? code : search_within_limits(self, request, schedule, block, error);
    pc_costs counting;
    pc_generate_request counted = *request;
    code = count_chunks(request->costs, &counting, error);
    if (code) return code;
    counted.costs = &counting;
    counted.memory_limit = (pc_memory_limit){NULL};
    code = search_within_limits(self, &counted, schedule, block, error);
    pc_costs_free(&counting);
    return code;
}
