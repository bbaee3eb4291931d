#include "models/schedule/search/search_dispatched.h"

#include "engine/numbers.h"
#include "models/schedule/search/bound.h"
#include "models/schedule/search/dispatch.h"
#include "models/schedule/search/instance.h"
#include "models/schedule/search/stretch.h"
#include "models/schedule/search/tournament.h"

enum {
    STARTS = 12, /* orders of rules that go on, each in two ways */
    START_ROUNDS = 3,
    BETTER = 12,
    BETTER_ROUNDS = 8,
    BEST = 4,
    BEST_ROUNDS = 24,
    DRAWS = 2, /* how many more ways each of the best goes on in, that are drawn */
    FITTED = 12,
    FITTED_DRAWS = 100,
    KICKS = 400,
    PATIENCE = 80,
    ENTRIES = 2 * (STARTS + FITTED), /* of fitted blocks there are some of one microbatch and as many of two */
    FULL_PASSES = 1600,              /* larger instances get less of all that */
    MOST_PASSES = 16384              /* and from here on no more than what comes first */
};

static int scale(int number, int64_t passes, int at_least) {
    return passes <= FULL_PASSES ? number : pc_max((int)(number * (int64_t)FULL_PASSES / passes), at_least);
}

static int64_t passes_of(const pc_instance *instance) {
    return instance->devices * instance->passes;
}

/* ---- the rules ---- */

enum { GROUPS = 6, WAITING = 3, UNDER_WAY = 3, FIRST = 3, RULES = GROUPS * WAITING * UNDER_WAY * FIRST };

/* Groups from one microbatch to two rounds over the devices. In the steady state a device spends a third of its time on
 * F, so that a group of p/3 is back at the first device when that has done with it. */
static pc_dispatch_rule rule_of(const pc_instance *instance, int number) {
    int p = instance->devices, m = instance->microbatches;
    const int groups[GROUPS] = {1, (p + 3) / 4, (p + 2) / 3, (p + 1) / 2, p, 2 * p};
    const int waiting[WAITING] = {INT32_MAX, 1, instance->chunks}, under_way[UNDER_WAY] = {m, p, (p + 1) / 2};
    return (pc_dispatch_rule){.group = groups[number % GROUPS],
                              .first = (pc_dispatch_first)(number / GROUPS % FIRST),
                              .waiting = waiting[number / GROUPS / FIRST % WAITING],
                              .under_way = pc_max(under_way[number / GROUPS / FIRST / WAITING], 1)};
}

static bool is_better(const pc_instance_order *a, const pc_instance_order *b) {
    if (a->span != b->span) return a->span < b->span;
    return a->makespan != b->makespan ? a->makespan < b->makespan : a->peak < b->peak;
}

static bool is_same(const pc_instance_order *a, const pc_instance_order *b) {
    return a->span == b->span && a->makespan == b->makespan && a->peak == b->peak;
}

/* Puts the order in its place among the first `*count` entries, which are the best `most` so far. The order that falls
 * out at the end is given back in its stead. */
static void enter_ranked(pc_tournament *t, pc_instance_order *order, int most, int *count) {
    int at = *count;
    for (int i = 0; i < *count; i++)
        if (is_same(&t->entries[i].order, order)) return;
    while (at > 0 && is_better(order, &t->entries[at - 1].order)) at--;
    if (at == most) return;
    int last = *count < most ? (*count)++ : most - 1;
    pc_entry moved = t->entries[last];
    for (int i = last; i > at; i--) t->entries[i] = t->entries[i - 1];
    pc_instance_order free = moved.order;
    moved = (pc_entry){.pattern = -1, .is_made = true, .is_valid = true, .order = *order};
    t->entries[at] = moved;
    *order = free;
}

/* The orders of all rules, or of some spread over them; the best ones become the first entries. Returns how many. */
static pc_code enter_rules(pc_tournament *t, int most, bool is_quick, int *count, pc_error *error) {
    pc_dispatch *room = NULL;
    pc_instance_order order = {0};
    pc_code code = pc_dispatch_create(t->instance, &room, error);
    if (!code) code = pc_instance_order_create(t->instance, &order, error);
    *count = 0;
    int64_t passes = passes_of(t->instance);
    int tried = is_quick ? scale(RULES / 9, passes, 4) : scale(RULES, passes / 8, 8);
    for (int i = 0; i < tried && !code; i++) {
        pc_dispatch_rule rule = rule_of(t->instance, (int)((int64_t)i * RULES / tried));
        if (pc_dispatch_run(room, &rule, &order) && pc_reorder_squeeze(t->rooms[PC_COARSE_NONE][0], &order))
            enter_ranked(t, &order, most, count);
    }
    pc_instance_order_free(&order);
    pc_dispatch_free(room);
    return code;
}

/* ---- the tournament ---- */

static void enter_fitted(pc_tournament *t, const pc_fitted *fitted, int *count) {
    for (int i = 0; i < fitted->count && *count < t->entry_count; i++) {
        pc_entry *e = &t->entries[(*count)++];
        *e = (pc_entry){.fitted = &fitted->blocks[i], .pattern = -1, .order = e->order};
    }
}

/* The second way for gaps. */
static void enter_other_way(pc_tournament *t, int first, int behind, int *count) {
    for (int i = first; i < behind && *count < t->entry_count; i++) {
        pc_tournament_copy_entry(t, i, *count);
        t->entries[(*count)++].way = PC_REORDER_STRICT;
    }
}

/* Each of the first `count` goes on in its own way, in the other, and in ways that are drawn. */
static int branch_out(pc_tournament *t, int count) {
    int entered = count;
    for (int branch = 0; branch <= DRAWS; branch++)
        for (int i = 0; i < count && entered < t->entry_count; i++, entered++) {
            pc_tournament_copy_entry(t, i, entered);
            t->entries[entered].way =
                branch == 0 ? 1 - (t->entries[i].way & 1) : pc_reorder_drawn(1 + i + branch * count);
        }
    return entered;
}

/* The best of the rules' orders, for a few rounds. */
static void compete_quickly(pc_tournament *t, int count) {
    pc_tournament_run(t, pc_min(count, 2), 2);
    if (!pc_tournament_is_over(t)) pc_tournament_run(t, 1, BETTER_ROUNDS);
}

static void compete(pc_tournament *t, int count) {
    int64_t passes = passes_of(t->instance);
    pc_tournament_run(t, count, scale(START_ROUNDS, passes / 2, 1));
    if (pc_tournament_is_over(t)) return;
    count = pc_min(count, scale(BETTER, passes / 2, 2));
    pc_tournament_run(t, count, scale(BETTER_ROUNDS, passes / 2, 2));
    if (pc_tournament_is_over(t) || passes > MOST_PASSES) return;
    count = branch_out(t, pc_min(count, scale(BEST, passes / 4, 1)));
    pc_tournament_run(t, count, scale(BEST_ROUNDS, passes / 4, 2));
    if (!pc_tournament_is_over(t)) pc_tournament_kick(t, 1, scale(KICKS, passes, 0), PATIENCE);
}

static pc_code run_brief(const pc_instance *instance, bool is_quick, pc_fitted *fitted, pc_tournament *t,
                         pc_error *error) {
    int64_t passes = passes_of(instance);
    int count = 0, most = scale(STARTS, passes, 2), ranked;
    pc_code code = enter_rules(t, most, is_quick, &ranked, error);
    if (!code) code = pc_instance_bound(instance, &t->enough, error);
    if (code || (ranked > 0 && pc_tournament_is_over(t))) return code;
    if (is_quick && ranked > 0) {
        compete_quickly(t, ranked);
        return PC_OK;
    }
    code = pc_fitted_find(instance, scale(FITTED, passes, 2), scale(FITTED_DRAWS, passes, 16), false, fitted, error);
    if (code) return code;
    count = ranked;
    enter_fitted(t, fitted, &count);
    enter_other_way(t, 0, ranked, &count);
    if (count > 0) compete(t, count);
    return PC_OK;
}

/* ---- from the short iteration to the whole one ---- */

static int short_length(const pc_search *search) {
    int length = 3 * search->costs->devices + 8;
    return search->microbatches <= length + length / 2 ? search->microbatches
                                                       : pc_stretch_length(length, search->microbatches);
}

/* The best short orders stretched in several ways, and the best that rules make of the whole iteration. */
static pc_code lengthen(const pc_tournament *brief, int finalists, bool is_quick, pc_tournament *full,
                        pc_error *error) {
    int64_t passes = passes_of(full->instance);
    int count;
    pc_code code = enter_rules(full, finalists, is_quick, &count, error);
    for (int attempt = 0; attempt < PC_STRETCH_ATTEMPTS; attempt++)
        for (int i = 0; i < finalists && !code; i++) {
            pc_entry *e = &full->entries[count];
            if (!brief->entries[i].is_valid) continue;
            *e = (pc_entry){.pattern = -1, .is_made = true, .order = e->order};
            code = pc_stretch(brief->instance, &brief->entries[i].order, attempt, full->instance, &e->order, error);
            e->is_valid = !code && pc_reorder_squeeze(full->rooms[PC_COARSE_NONE][0], &e->order);
            if (e->is_valid) count++;
        }
    if (!code) code = pc_instance_bound(full->instance, &full->enough, error);
    if (code || count == 0) return code;
    pc_tournament_run(full, count, 1);
    if (!is_quick && !pc_tournament_is_over(full) && passes <= MOST_PASSES)
        pc_tournament_run(full, pc_min(count, 4), scale(BEST_ROUNDS, passes / 4, 1));
    return PC_OK;
}

/* ---- the search ---- */

static pc_code make_instance(const pc_search *search, int microbatches, pc_instance *instance, pc_error *error) {
    return pc_instance_create(search->costs, search->placement, search->splits, microbatches, search->memory_limit,
                              instance, error);
}

static pc_code finish(const pc_search *search, const pc_tournament *t, pc_schedule *schedule, pc_error *error) {
    if (t->entries[0].is_valid)
        return pc_instance_to_schedule(t->instance, &t->entries[0].order, search->name, schedule, error);
    return pc_error_set(error, PC_ERROR_INPUT,
                        "%s: the memory limit is too small; expected room for one microbatch on every device",
                        search->name);
}

static pc_code run_full(const pc_search *search, const pc_tournament *brief, pc_schedule *schedule, pc_error *error) {
    pc_instance instance = {0};
    pc_tournament full = {0};
    int finalists = pc_min(scale(search->is_quick ? 1 : BEST, passes_of(brief->instance) / 4, 1), brief->entry_count);
    pc_code code = make_instance(search, search->microbatches, &instance, error);
    if (!code)
        code = pc_tournament_create(&instance, NULL, search->threads, (PC_STRETCH_ATTEMPTS + 1) * finalists, false,
                                    &full, error);
    if (!code) code = lengthen(brief, finalists, search->is_quick, &full, error);
    if (!code) code = finish(search, &full, schedule, error);
    pc_tournament_free(&full);
    pc_instance_free(&instance);
    return code;
}

pc_code pc_search_dispatched(const pc_search *search, pc_schedule *schedule, pc_error *error) {
    pc_instance instance = {0};
    pc_tournament brief = {0};
    pc_fitted fitted = {0};
    pc_code code = make_instance(search, short_length(search), &instance, error);
    if (!code) code = pc_tournament_create(&instance, NULL, search->threads, ENTRIES, false, &brief, error);
    if (!code) code = run_brief(&instance, search->is_quick, &fitted, &brief, error);
    if (!code)
        code = instance.microbatches == search->microbatches ? finish(search, &brief, schedule, error)
                                                             : run_full(search, &brief, schedule, error);
    pc_tournament_free(&brief);
    pc_fitted_free(&fitted);
    pc_instance_free(&instance);
    return code;
}
