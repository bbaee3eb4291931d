/* The schedules that come from building blocks: a family of blocks, a memory limit, and the search (search.h) that
 * repeats, squeezes and reorders them at the given costs. They differ in nothing else. What of several such searches a
 * name gives is in generate_answers.c.
 *
 * Memory is counted here in microbatches of a stage, m; with v chunks a unit of the public generators is m/v.
 */
#include "models/schedule/generate_private.h"

#include "engine/alloc.h"
#include "engine/numbers.h"
#include "engine/parallel.h"
#include "models/schedule/search/pattern.h"
#include "models/schedule/search/search.h"
#include "models/schedule/search/search_dispatched.h"

/* ---- families ---- */

typedef struct pattern_list {
    pc_pattern *patterns;
    int64_t count, room;
    bool failed;
} pattern_list;

static void add(pattern_list *list, pc_pattern pattern) {
    if (list->count == list->room) {
        int64_t room = list->room ? 2 * list->room : 256;
        pc_pattern *moved = pc_realloc(list->patterns, (size_t)room, sizeof *moved);
        if (!moved) {
            list->failed = true;
            return;
        }
        list->patterns = moved;
        list->room = room;
    }
    list->patterns[list->count++] = pattern;
}

/* The uniform blocks of 'Controllable Memory', tables 8 and 9, whose V-Min and V-Half shift what runs down by 1 and 2
 * cells a device, and V-ZB by 5; what runs up moves by 1. Offsets from device to device are theirs, and so is the extra
 * wait e at the fold where the passes would collide: F0 k*d; F1 k(p-1) + p-d; then B1 from the next cell on device 0
 * plus e; then B0. */
static pc_pattern uniform_block(int p, int shift) {
    int f1 = (shift + 1) * (p - 1) + 1, e = 0;
    if (shift == 1 && p % 3 == 0) e = 2;
    if (shift == 2 && p % 2 == 0) e = 3;
    int b1 = f1 + 1 + e, b0 = b1 + (shift + 1) * (p - 1) + (shift == 2 ? 2 : 1);
    return (pc_pattern){.family = PC_PATTERN_V_SHIFTED,
                        .interval = 6,
                        .f1 = (f1 % 6),
                        .b1 = (b1 % 6),
                        .b0 = (b0 % 6),
                        .shift = shift,
                        .shift_after = shift,
                        .turn = 1,
                        .splits = true};
}

/* All starting patterns on the first device, with the given pattern for the rest. */
static void add_starts(pattern_list *list, pc_pattern pattern) {
    for (int f1 = 1; f1 < pattern.interval; f1++)
        for (int b1 = 1; b1 < pattern.interval; b1++)
            for (int b0 = 1; b0 < pattern.interval; b0++) {
                if (f1 == b1 || f1 == b0 || b1 == b0) continue;
                pattern.f1 = f1;
                pattern.b1 = b1;
                pattern.b0 = b0;
                add(list, pattern);
            }
}

enum { INTERVALS = 256 }; /* from so many cells on not every interval is tried */

/* Blocks of longer intervals, for memory that no block without idle time keeps: passes follow each other through the
 * model without waiting, and rest afterwards. `last` cells are the way of a microbatch through all of it. */
static void add_resting_v(pattern_list *list, int p, bool splits) {
    int back = splits ? 1 : 2, first = splits ? 8 : 7, step = splits ? 2 : 1;
    int last = 2 * p * (1 + back) + 2 * back + 4;
    for (int interval = first; interval <= last; interval += step * (1 + interval / INTERVALS)) {
        int e = 2 * p % interval == 0 ? 2 : 0, b1 = 2 * p + e;
        add(list, (pc_pattern){.family = PC_PATTERN_V_FREE,
                               .interval = interval,
                               .f1 = ((2 * p - 1) % interval),
                               .b1 = (b1 % interval),
                               .b0 = ((b1 + back * (2 * p - 1)) % interval),
                               .splits = splits});
    }
}

static void add_uniform_v(pattern_list *list, int p, int shift) {
    add(list, uniform_block(p, shift));
    add_starts(list, uniform_block(p, shift));
    add_resting_v(list, p, true);
}

enum { TURNS = 64 }; /* from so many devices on not every turn is tried */

/* The search space of the adaptive scheduler ('Controllable Memory', section 4 and appendix): 60 starting patterns, the
 * shift k0 of the first devices, k1 <= k0 of those after them, and where it changes. */
static void add_shifted_v(pattern_list *list, int p, bool splits) {
    for (int shift = 1; shift < 6; shift++)
        for (int after = 1; after <= shift; after++)
            for (int turn = 1; turn < (shift == after ? 2 : p); turn += 1 + p / TURNS)
                add_starts(list, (pc_pattern){.family = PC_PATTERN_V_SHIFTED,
                                              .interval = 6,
                                              .shift = shift,
                                              .shift_after = after,
                                              .turn = turn,
                                              .splits = splits});
}

/* That, after the three uniform blocks, and the same patterns with the least shifts that do not collide. */
static void add_adaptive_v(pattern_list *list, int p, bool is_quick) {
    static const int named[] = {5, 2, 1};
    for (int i = 0; i < 3; i++) add(list, uniform_block(p, named[i]));
    for (int i = 0; i < 3 && is_quick; i++) add_starts(list, uniform_block(p, named[i]));
    if (!is_quick) add_shifted_v(list, p, true);
    add_starts(list, (pc_pattern){.family = PC_PATTERN_V_FREE, .interval = 6, .splits = true});
    add_resting_v(list, p, true);
}

/* 1F1B folded to a V: the block that does it with two thirds of 1F1B's memory on any number of devices. Then the same
 * search space as above with whole backward passes, which run down by one cell a device more than F. */
static void add_unsplit_v(pattern_list *list, int p) {
    add(list, (pc_pattern){.family = PC_PATTERN_V_THIRDS, .interval = 6});
    for (int lane = 0; lane < 4; lane++)
        add_starts(list, (pc_pattern){.family = PC_PATTERN_V_FREE, .interval = 6, .shift = lane});
    for (int interval = 7; interval <= 12; interval++)
        add_starts(list, (pc_pattern){.family = PC_PATTERN_V_FREE, .interval = interval});
    add_shifted_v(list, p, false);
    add_resting_v(list, p, false);
}

static void add_pair(pattern_list *list, int p) {
    add(list, (pc_pattern){.family = PC_PATTERN_LINEAR_PAIR, .interval = 6, .splits = true});
    for (int interval = 4; interval <= 2 * p + 2; interval += 2)
        add(list, (pc_pattern){.family = PC_PATTERN_LINEAR_FREE,
                               .interval = interval,
                               .b0 = ((2 * p - 1) % interval),
                               .splits = true});
}

static pc_pattern warm_block(int slope, int lag, int top, int b0) {
    return (pc_pattern){.family = PC_PATTERN_LINEAR_WARM,
                        .interval = 3,
                        .b0 = b0,
                        .shift = slope,
                        .shift_after = lag,
                        .turn = top,
                        .splits = true};
}

/* Zero bubble's: how steeply the number of F before the first B falls from device to device (in quarters), how far W
 * lag behind B (in halves), and how many F the first device runs ahead; ZB-H2 and ZB-H1 first. `room` microbatches fit.
 */
static void add_warm(pattern_list *list, int p, int room) {
    const int tops[] = {INT32_MAX, room - 1, room - 2, room - 3, room - 1 - p / 4, room - 1 - p / 2, 3 * (p - 1)};
    add(list, warm_block(8, 4, INT32_MAX, 1));
    add(list, warm_block(4, 2, INT32_MAX, 1));
    for (size_t i = 0; i < sizeof tops / sizeof *tops; i++)
        for (int slope = 4; slope <= 16 && tops[i] >= p - 1; slope += slope < 10 ? 1 : 2)
            for (int lag = 0; lag <= 8; lag++)
                for (int b0 = 1; b0 < 3; b0++) add(list, warm_block(slope, lag, tops[i], b0));
    add_pair(list, p);
}

/* ---- limits ---- */

static int64_t stage_bytes(const pc_costs *costs, int device) {
    int64_t bytes = 0;
    for (int c = 0; c < costs->chunks; c++) bytes += costs->activation_bytes[pc_costs_index(costs, device, c)];
    return bytes;
}

/* How many microbatches of a stage a schedule may hold by its name; 0: as many as the user's limit says. */
static int64_t named_limit(pc_searched_schedule name, int p) {
    switch (name) {
    case PC_SEARCHED_V_MIN:
        return (p + 4) / 3;
    case PC_SEARCHED_V_HALF:
        return (p + 2) / 2;
    case PC_SEARCHED_1F1B_V:
        return 2 * p / 3 + 1;
    case PC_SEARCHED_ZB_TWO_THIRDS:
        return 2 * (p / 3) + 2 < p ? 2 * (p / 3) + 2 : p; /* what the block of a pair of microbatches holds */
    case PC_SEARCHED_ZB_2P:
        return INT64_C(2) * p;
    default:
        return p;
    }
}

/* What 1f1b-interleaved holds on its fullest device, the first one, in chunks; at least a microbatch. */
static int64_t interleaved_limit(const pc_generate_request *request) {
    int p = request->costs->devices, v = request->costs->chunks, m = (int)request->microbatches;
    int64_t held = pc_interleaved_warm_up(p, 0, v, pc_interleaved_group(p, m), 2) + 1;
    return held > (int64_t)m * v ? (int64_t)m * v : held;
}

/* By its name; PC_NO_LIMIT where that is more than can be counted. */
static int64_t named_bytes_of(pc_searched_schedule name, const pc_generate_request *request, int64_t stage_bytes) {
    int64_t of = name == PC_SEARCHED_INTERLEAVED ? request->costs->chunks : 1;
    int64_t held =
        name == PC_SEARCHED_INTERLEAVED ? interleaved_limit(request) : named_limit(name, request->costs->devices);
    if (stage_bytes == 0 || stage_bytes > INT64_MAX / 4 / held) return PC_NO_LIMIT;
    return (held * stage_bytes + of - 1) / of;
}

static bool is_adaptive(pc_searched_schedule name) {
    return name == PC_SEARCHED_V_ADAPTIVE || name == PC_SEARCHED_INTERLEAVED;
}

void pc_searched_limits(const pc_generator *self, const pc_generate_request *request, int64_t *named_bytes) {
    const pc_costs *costs = request->costs;
    pc_searched_schedule name = (pc_searched_schedule)self->extra;
    for (int d = 0; d < costs->devices; d++) {
        bool is_users = is_adaptive(name) && pc_memory_limit_of(request->memory_limit, d) != PC_NO_LIMIT;
        named_bytes[d] = is_users ? PC_NO_LIMIT : named_bytes_of(name, request, stage_bytes(costs, d));
    }
}

/* What a chunk holds between its passes: where B recomputes, what F kept or B left. */
static int64_t resting_bytes(const pc_costs *costs, int device, int chunk) {
    int64_t i = pc_costs_index(costs, device, chunk), taken = costs->activation_bytes[i];
    if (!costs->recomputes_in_b) return taken;
    return pc_min(taken, pc_max(costs->activation_kept_bytes[i], taken - costs->activation_b_bytes[i]));
}

static int64_t times(int64_t bytes, int64_t count) {
    return bytes > INT64_MAX / 4 / count ? INT64_MAX / 4 : bytes * count;
}

/* Where B recomputes, one chunk at a time is whole, and searches count chunks whatever they hold; gradients that B
 * leaves are not counted (generate_recomputed.c), so that all may stand there. */
int64_t pc_generator_named_memory(const pc_generator *generator, const pc_generate_request *request, int device) {
    const pc_costs *costs = request->costs;
    pc_searched_schedule name = (pc_searched_schedule)generator->extra;
    int64_t resting = 0, most = 0, whole = 0;
    for (int c = 0; c < costs->chunks; c++) {
        int64_t bytes = resting_bytes(costs, device, c);
        resting += bytes;
        most = pc_max(most, bytes);
        whole = pc_max(whole, costs->activation_bytes[pc_costs_index(costs, device, c)] - bytes);
    }
    int64_t held = times(resting, request->microbatches);
    if (!costs->recomputes_in_b && resting > 0) held = pc_min(held, named_bytes_of(name, request, resting));
    if (costs->recomputes_in_b && !costs->leaves_gradients)
        held = pc_min(held, times(most, named_bytes_of(name, request, costs->chunks)));
    return held + whole;
}

/* How many microbatches of the first stage its limit has room for, for families that ask. */
static int room_for(const pc_generate_request *request) {
    int64_t bytes = stage_bytes(request->costs, 0), enough = INT64_C(4) * request->costs->devices;
    int64_t limit = pc_memory_limit_of(request->memory_limit, 0);
    int64_t room = bytes > 0 && limit != PC_NO_LIMIT ? limit / bytes : enough;
    return (int)(room > enough ? enough : room);
}

/* ---- the schedules ---- */

static void add_family(pc_searched_schedule name, int p, int room, bool is_quick, pattern_list *list) {
    switch (name) {
    case PC_SEARCHED_V_MIN:
        add_uniform_v(list, p, 1);
        return;
    case PC_SEARCHED_V_HALF:
        add_uniform_v(list, p, 2);
        return;
    case PC_SEARCHED_ZB_V:
    case PC_SEARCHED_V_ADAPTIVE:
        add_adaptive_v(list, p, is_quick);
        return;
    case PC_SEARCHED_1F1B_V:
        add_unsplit_v(list, p);
        return;
    case PC_SEARCHED_ZB_1P:
    case PC_SEARCHED_ZB_2P:
        add_warm(list, p, room);
        return;
    case PC_SEARCHED_ZB_TWO_THIRDS:
        add_pair(list, p);
        return;
    case PC_SEARCHED_INTERLEAVED:
        return; /* has no patterns */
    }
}

bool pc_searched_is_tightened(const pc_generator *self, const pc_generate_request *request,
                              const int64_t *named_bytes) {
    if (self->extra != PC_SEARCHED_1F1B_V) return false;
    for (int d = 0; d < request->costs->devices; d++)
        if (named_bytes[d] != PC_NO_LIMIT && pc_memory_limit_of(request->memory_limit, d) < named_bytes[d]) return true;
    return false;
}

enum { WALKS = 4 };

/* Families of a few blocks make less effort than those that go through thousands; 1F1B-V makes little where the block
 * that is made for its limit fits. Only the widest go for walks, for the others ask them (generate_answers.c). */
static pc_search_effort effort_for(pc_searched_schedule name, bool is_tight, bool is_quick) {
    if (is_quick) return (pc_search_effort){16, 4, 2, 2, 4, 1, 8, 0, 6000, 0, name == PC_SEARCHED_1F1B_V ? 4 : 6};
    switch (name) {
    case PC_SEARCHED_ZB_1P:
    case PC_SEARCHED_ZB_2P:
        return (pc_search_effort){400, 48, 2, 8, 8, 3, 24, 0, 12000, WALKS, 6};
    case PC_SEARCHED_1F1B_V:
        return is_tight ? (pc_search_effort){400, 48, 2, 12, 8, 4, 150, 5, 4000, 0, 6}
                        : (pc_search_effort){64, 16, 2, 8, 8, 2, 16, 1, 800, 0, 4};
    case PC_SEARCHED_ZB_V:
    case PC_SEARCHED_V_ADAPTIVE:
        return (pc_search_effort){64, 16, 2, 8, 8, 3, 24, 1, 6200, WALKS, 6};
    default:
        return (pc_search_effort){64, 16, 2, 8, 8, 3, 24, 0, 6000, 0, 4};
    }
}

static pc_code run_search(const pc_generator *self, const pc_generate_request *request, bool is_tight,
                          const pattern_list *list, pc_schedule *schedule, pc_block *block, pc_error *error) {
    pc_objective objective;
    bool is_quick = request->effort == PC_EFFORT_QUICK;
    pc_search search = {.name = self->name,
                        .costs = request->costs,
                        .placement = self->placement,
                        .splits = self->splits,
                        .microbatches = (int)request->microbatches,
                        .memory_limit = request->memory_limit,
                        .objective = pc_objective_make(request->goal, request->costs, request->tails, &objective),
                        .threads = request->threads > 0 ? request->threads : pc_parallel_processors(),
                        .effort = effort_for((pc_searched_schedule)self->extra, is_tight, is_quick),
                        .is_quick = is_quick,
                        .patterns = list->patterns,
                        .pattern_count = list->count,
                        .bound = request->bound};
    if (list->count > 0) return pc_search_run(&search, schedule, block, error);
    if (block) *block = (pc_block){0};
    return pc_search_dispatched(&search, schedule, error);
}

/* The patterns are of one chunk, and of two in a V. */
static bool has_patterns(const pc_generator *self, int chunks) {
    return self->placement == PC_PLACEMENT_V ? chunks == 2 : chunks == 1;
}

pc_code pc_searched_find(const pc_generator *self, const pc_generate_request *request, bool is_tight,
                         pc_schedule *schedule, pc_block *block, pc_error *error) {
    pattern_list list = {0};
    if (has_patterns(self, request->costs->chunks))
        add_family((pc_searched_schedule)self->extra, request->costs->devices, room_for(request),
                   request->effort == PC_EFFORT_QUICK, &list);
    pc_code code =
        list.failed ? pc_error_no_memory(error) : run_search(self, request, is_tight, &list, schedule, block, error);
    pc_free(list.patterns);
    return code;
}

/* ---- which names are one search ---- */

int pc_searched_number(const pc_generator *self) {
    return self->extra == PC_SEARCHED_V_ADAPTIVE ? PC_SEARCHED_ZB_V : self->extra;
}

bool pc_searched_are_one(const pc_generator *a, const pc_generator *b) {
    return pc_searched_number(a) == pc_searched_number(b);
}
