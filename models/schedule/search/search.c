#include "models/schedule/search/search.h"

#include "engine/alloc.h"
#include "engine/numbers.h"
#include "models/schedule/search/bound.h"
#include "models/schedule/search/candidates.h"
#include "models/schedule/search/instance.h"
#include "models/schedule/search/known.h"
#include "models/schedule/search/seamless.h"
#include "models/schedule/search/stretch.h"
#include "models/schedule/search/tournament.h"

#include <string.h>

enum { FAVOURITES = 3 }; /* blocks that may be tried before all others */

static pc_time later_of(pc_time a, pc_time b) {
    return a > b ? a : b;
}

/* ---- packed blocks ---- */

/* Makes an entry whose block is packed first; in the coarse instances it is only repeated, as others are. */
static void pack_entry(const pc_tournament *t, pc_entry *e) {
    if (e->is_made || e->coarse != PC_COARSE_NONE || e->fitted || e->pattern < 0) return;
    const pc_pattern *pattern = &t->patterns[e->pattern];
    if (!pc_pattern_is_packed(pattern->family)) return;
    pc_block *block = &t->blocks[pc_pattern_microbatches(pattern->family) - 1];
    pc_reorder *room = t->rooms[PC_COARSE_NONE][0];
    pc_pattern_build(pattern, block);
    pc_reorder_pack(room, block, &e->order);
    e->is_valid = pc_reorder_squeeze(room, &e->order);
    e->is_made = true;
}

static void run_heat(pc_tournament *t, int count, int rounds) {
    for (int i = 0; i < count; i++) pack_entry(t, &t->entries[i]);
    pc_tournament_run(t, count, rounds);
}

static int scale(int number, int64_t passes, int64_t in_full, int at_least) {
    return passes <= in_full ? number : pc_max((int)(number * in_full / passes), pc_min(number, at_least));
}

/* ---- which blocks to start from ---- */

/* The candidates with their squeezed spans. */
typedef struct field {
    pc_candidate *list;
    int64_t count;
    pc_time *span; /* a number a candidate; INT64_MAX where it was not squeezed */
} field;

/* The i-th of `chosen` candidates to squeeze: one half those that leave least memory unused, the other spread evenly
 * over the rest of the list. */
static int64_t candidate_to_squeeze(const field *f, int chosen, int i) {
    int first = f->count <= chosen ? chosen : (chosen + 1) / 2;
    /* NOLINTNEXTLINE(clang-analyzer-core.DivideZero): i < chosen, and first <= i here */
    return i < first ? i : first + (f->count - first) * (i - first) / (chosen - first);
}

/* Squeezes up to `count` candidates, in batches of as many as there are entries. */
static void squeeze_candidates(pc_tournament *t, const field *f, int count) {
    int chosen = f->count < count ? (int)f->count : count;
    for (int64_t i = 0; i < f->count; i++) f->span[i] = INT64_MAX;
    for (int done = 0; done < chosen;) {
        int batch = pc_min(chosen - done, t->entry_count);
        for (int i = 0; i < batch; i++) {
            int64_t candidate = candidate_to_squeeze(f, chosen, done + i);
            t->entries[i].pattern = f->list[candidate].pattern;
            t->entries[i].fitted = NULL;
            t->entries[i].coarse = PC_COARSE_NONE;
            t->entries[i].is_made = false;
            t->entries[i].tag = candidate;
        }
        run_heat(t, batch, 0);
        for (int i = 0; i < batch; i++)
            if (t->entries[i].is_valid) f->span[t->entries[i].tag] = t->entries[i].order.span;
        done += batch;
    }
}

/* Moves the candidate with the least span to place `to`; false where none is left behind it that was squeezed. */
static bool bring_shortest(const field *f, int64_t to) {
    int64_t best = to;
    for (int64_t i = to + 1; i < f->count; i++)
        if (f->span[i] < f->span[best]) best = i;
    if (best >= f->count || f->span[best] == INT64_MAX) return false;
    pc_candidate candidate = f->list[best];
    pc_time span = f->span[best];
    memmove(&f->list[to + 1], &f->list[to], (size_t)(best - to) * sizeof *f->list);
    memmove(&f->span[to + 1], &f->span[to], (size_t)(best - to) * sizeof *f->span);
    f->list[to] = candidate;
    f->span[to] = span;
    return true;
}

/* Moves a pattern, if it is a candidate, to the front; returns how many were moved. */
static int bring_pattern(const field *f, int64_t pattern) {
    for (int64_t i = 0; i < f->count; i++) {
        if (f->list[i].pattern != pattern) continue;
        pc_candidate candidate = f->list[i];
        memmove(&f->list[1], &f->list[0], (size_t)i * sizeof *f->list);
        f->list[0] = candidate;
        return 1;
    }
    return 0;
}

/* Brings the candidates to start from to the front, behind the first `count` that stand there: in turn the one with the
 * least span, and the one that leaves least memory unused, for reordering often makes more of it. Returns their number,
 * at most `wanted`. */
static int bring_starts(const field *f, int count, int wanted) {
    for (; count < wanted && count < f->count; count += 2)
        if (!bring_shortest(f, count)) break;
    /* what was not brought stands in its old order: least unused memory first */
    return f->count < wanted ? (int)f->count : wanted;
}

/* The ways to go on from a block. */
static const struct {
    int coarse, way;
} ways[] = {{PC_COARSE_NONE, 0}, {PC_COARSE_CELLS, 0}, {PC_COARSE_QUARTERS, 0}, {PC_COARSE_HALVES, 0},
            {PC_COARSE_NONE, 1}, {PC_COARSE_CELLS, 1}, {PC_COARSE_QUARTERS, 1}, {PC_COARSE_HALVES, 1}};
enum { WAYS = sizeof ways / sizeof *ways, STARTS_IN_OTHER_WAYS = 3 };

/* Every start goes the first way; the better third, or all where they are few, go the others too. Returns the number of
 * entries. */
static int enter_starts(pc_tournament *t, const field *f, int starts) {
    int entered = 0;
    for (int way = 0; way < WAYS; way++) {
        int going = way == 0 ? starts : pc_max(starts / STARTS_IN_OTHER_WAYS, pc_min(starts, 4));
        if (!t->rooms[ways[way].coarse]) continue;
        for (int i = 0; i < going && entered < t->entry_count; i++, entered++) {
            pc_entry *e = &t->entries[entered];
            e->pattern = f->count > 0 ? f->list[i].pattern : -1;
            e->fitted = NULL;
            e->coarse = ways[way].coarse;
            e->way = ways[way].way;
            e->is_made = false;
        }
    }
    return entered;
}

/* ---- the tournament on the short iteration ---- */

/* Every one of the first `count` entries goes on in its own way, in the other way for gaps, and in ways that are drawn;
 * returns how many there are then. */
static int branch_out(pc_tournament *t, int count, int draws) {
    int entered = count;
    for (int branch = 0; branch <= draws; branch++)
        for (int i = 0; i < count && entered < t->entry_count; i++, entered++) {
            pc_tournament_copy_entry(t, i, entered);
            t->entries[entered].way =
                branch == 0 ? 1 - (t->entries[i].way & 1) : pc_reorder_drawn(1 + i + branch * count);
            t->entries[entered].is_made = branch % 2 == 0; /* every second one from the block again */
        }
    return entered;
}

/* `packed`: the favourite if its block is packed, which makes it worth a start in any case; else -1. */
static void compete(pc_tournament *t, const field *f, int64_t packed, const pc_search_effort *effort) {
    int first = bring_pattern(f, packed);
    if (f->count > effort->starts) squeeze_candidates(t, f, effort->squeezed);
    bool are_all = f->count <= effort->starts;
    int starts = f->count == 0 ? 1 : are_all ? (int)f->count : bring_starts(f, first, effort->starts);
    int count = enter_starts(t, f, starts);
    run_heat(t, count, effort->start_rounds);
    if (pc_tournament_is_over(t)) return;
    count = pc_min(count, effort->better);
    run_heat(t, count, effort->better_rounds);
    if (pc_tournament_is_over(t)) return;
    run_heat(t, branch_out(t, pc_min(count, effort->best), effort->draws), effort->best_rounds);
}

/* ---- blocks in the instance's own times, and kicks ---- */

enum {
    FITTED = 12,
    FITTED_DRAWS = 100,
    FITTED_BEST = 2,
    KICKS = 400,
    PATIENCE = 80,
    FULL_PASSES = 1600,
    MOST_PASSES = 4096,
    WALKED_PASSES = 400, /* of an instance that is small enough for walks, at most */
    WALK = 2000          /* kicks of each */
};

static bool is_limited(const pc_instance *instance) {
    for (int d = 0; d < instance->devices; d++)
        if (pc_instance_is_limited(instance, d)) return true;
    return false;
}

/* A tournament of fitted blocks alone; the best of them then stand in `brief`, too, if they are shorter. */
static pc_code run_fitted(const pc_search *search, const pc_search_effort *effort, const pc_fitted *fitted,
                          pc_tournament *brief, pc_error *error) {
    pc_tournament t = {0};
    int best = pc_min(fitted->count, FITTED_BEST), branches = (2 + effort->draws) * best;
    pc_code code = pc_tournament_create(brief->instance, search->patterns, search->threads,
                                        pc_max(fitted->count, branches), false, &t, error);
    t.enough = brief->enough;
    for (int i = 0; i < fitted->count && !code; i++)
        t.entries[i] = (pc_entry){.fitted = &fitted->blocks[i], .pattern = -1, .order = t.entries[i].order};
    if (!code) {
        run_heat(&t, fitted->count, effort->start_rounds);
        run_heat(&t, (fitted->count + 1) / 2, effort->better_rounds);
        if (!pc_tournament_is_over(&t)) run_heat(&t, branch_out(&t, best, effort->draws), effort->best_rounds);
        if (!brief->entries[0].is_valid ||
            (t.entries[0].is_valid && t.entries[0].order.span < brief->entries[0].order.span))
            pc_tournament_adopt(brief, &t, pc_min(best, brief->entry_count));
    }
    pc_tournament_free(&t);
    return code;
}

/* A block without idle time, if there is one, takes the last place, or a better one if it is shorter than others. */
static pc_code run_seamless(const pc_search *search, const pc_search_effort *effort, pc_fitted *seamless,
                            pc_tournament *brief, pc_error *error) {
    pc_tournament t = {0};
    pc_code code = pc_seamless_start(brief->instance, seamless, error);
    if (code || seamless->count == 0) return code;
    code =
        pc_tournament_create(brief->instance, search->patterns, search->threads, 2 + effort->draws, false, &t, error);
    if (!code) {
        t.enough = brief->enough;
        t.entries[0] = (pc_entry){.fitted = &seamless->blocks[0], .pattern = -1, .order = t.entries[0].order};
        run_heat(&t, 1, effort->start_rounds + effort->better_rounds);
        if (!pc_tournament_is_over(&t)) run_heat(&t, branch_out(&t, 1, effort->draws), effort->better_rounds);
        if (t.entries[0].is_valid) pc_tournament_adopt(brief, &t, 1);
    }
    pc_tournament_free(&t);
    return code;
}

/* What else is done where no bound was reached; the less the larger the instance, and nothing for large ones, where it
 * took a third of the time for 0.01% (figure 6 of 'Controllable Memory', p 8 to 32). Cells that are all as long serve
 * well where times are equal, unless memory is tight. */
static pc_code go_on(const pc_search *search, const pc_search_effort *effort, pc_fitted *fitted, pc_tournament *brief,
                     pc_error *error) {
    const pc_instance *instance = brief->instance;
    int64_t passes = instance->devices * instance->passes;
    bool are_equal = !brief->rooms[PC_COARSE_CELLS];
    if (!is_limited(instance) || passes > MOST_PASSES) return PC_OK;
    pc_fitted_free(fitted);
    pc_code code = pc_fitted_find(instance, scale(FITTED, passes, FULL_PASSES, 2),
                                  scale(FITTED_DRAWS, passes, FULL_PASSES, 8), are_equal, fitted, error);
    if (code || fitted->count == 0) return code;
    code = run_fitted(search, effort, fitted, brief, error);
    if (!code && !pc_tournament_is_over(brief))
        pc_tournament_kick(brief, 1, scale(KICKS, passes, FULL_PASSES, 0), PATIENCE);
    if (!code && !pc_tournament_is_over(brief) && passes <= WALKED_PASSES)
        pc_tournament_walk(brief, pc_min(effort->walks, brief->entry_count), WALK);
    return code;
}

/* ---- from the short iteration to the whole one ---- */

/* The best orders for the whole iteration: the short ones stretched in several ways and, where that idles or breaks a
 * limit, their blocks repeated and reordered at full length; the packed one in any case. */
static pc_code lengthen(const pc_tournament *brief, int finalists, int64_t packed, pc_tournament *full, int rounds,
                        pc_error *error) {
    pc_time added = full->least - brief->least;
    int count = 0;
    pc_code code = PC_OK;
    for (int attempt = 0; attempt < PC_STRETCH_ATTEMPTS; attempt++)
        for (int i = 0; i < finalists && !code; i++, count++) {
            pc_entry *e = &full->entries[count];
            *e =
                (pc_entry){.fitted = brief->entries[i].fitted, .pattern = brief->entries[i].pattern, .order = e->order};
            code = pc_stretch(brief->instance, &brief->entries[i].order, attempt, full->instance, &e->order, error);
            e->is_made = true;
            e->is_valid = !code && pc_reorder_squeeze(full->rooms[PC_COARSE_NONE][0], &e->order);
            bool is_perfect = e->is_valid && e->order.span <= brief->entries[0].order.span + added;
            if (!is_perfect) continue;
            pc_entry perfect = *e;
            *e = full->entries[0];
            full->entries[0] = perfect;
            return PC_OK;
        }
    for (int i = 0; i < finalists && !code; i++, count++) {
        pc_entry *e = &full->entries[count];
        *e = (pc_entry){.fitted = brief->entries[i].fitted,
                        .pattern = brief->entries[i].pattern,
                        .coarse = brief->entries[i].coarse,
                        .order = e->order};
        if (!full->rooms[e->coarse]) e->coarse = PC_COARSE_NONE;
    }
    if (!code) code = pc_instance_bound(full->instance, &full->enough, error);
    if (code) return code;
    full->enough = later_of(full->enough, pc_known_span(full->instance));
    if (packed >= 0) {
        pc_entry *e = &full->entries[count++];
        *e = (pc_entry){.pattern = packed, .order = e->order};
    }
    run_heat(full, count, 1);
    if (!pc_tournament_is_over(full)) run_heat(full, pc_min(count, finalists == 1 ? 1 : 4), rounds);
    return PC_OK;
}

/* ---- the search ---- */

/* Whether an instance is so large that only its first block is tried. */
static bool is_large(const pc_search *search, int64_t passes) {
    return passes > 4 * search->effort.passes;
}

/* An iteration that is long enough to have a beginning, a middle and an end. */
static int short_length(const pc_search *search) {
    int length = search->effort.length * search->costs->devices / 2 + 8;
    return search->microbatches <= length + length / 2 ? search->microbatches
                                                       : pc_stretch_length(length, search->microbatches);
}

/* The effort for an instance of this size. */
static pc_search_effort scale_effort(const pc_search_effort *effort, const pc_instance *instance) {
    int64_t passes = instance->devices * instance->passes;
    pc_search_effort scaled = *effort;
    scaled.squeezed = scale(effort->squeezed, passes, effort->passes, 1);
    scaled.starts = scale(effort->starts, passes, effort->passes, 1);
    scaled.start_rounds = scale(effort->start_rounds, passes, 4 * effort->passes, 1);
    scaled.better = scale(effort->better, passes, effort->passes, 1);
    scaled.better_rounds = scale(effort->better_rounds, passes, 2 * effort->passes, 0);
    scaled.best = scale(effort->best, passes, effort->passes, 1);
    scaled.best_rounds = scale(effort->best_rounds, passes, 2 * effort->passes, 1);
    return scaled;
}

static pc_code make_instance(const pc_search *search, int microbatches, pc_instance *instance, pc_error *error) {
    pc_code code = pc_instance_create(search->costs, search->placement, search->splits, microbatches,
                                      search->memory_limit, instance, error);
    if (!code) instance->objective = search->objective;
    return code;
}

/* The first block that keeps the limits, of the first few; -1: none does. */
static pc_code find_favourite(const pc_search *search, const pc_instance *instance, int64_t *favourite,
                              pc_error *error) {
    int64_t count = search->pattern_count < FAVOURITES ? search->pattern_count : FAVOURITES;
    *favourite = -1;
    for (int64_t i = 0; i < count; i++) {
        bool fits;
        pc_code code = pc_candidates_fits(search, instance, i, &fits, error);
        if (code) return code;
        if (!fits) continue;
        *favourite = i;
        break;
    }
    return PC_OK;
}

/* A tournament of one block alone, a pattern or a fitted one: where it cannot be beaten, or `is_all` that is tried,
 * there is nothing more to do. *is_over says so; else the tournament is empty. */
static pc_code run_alone(const pc_search *search, pc_entry start, const pc_instance *instance, int rounds, bool is_all,
                         pc_bound *bound, pc_tournament *t, bool *is_over, pc_error *error) {
    pc_code code = pc_tournament_create(instance, search->patterns, search->threads, 1, false, t, error);
    *is_over = false;
    if (!code) {
        start.order = t->entries[0].order;
        t->entries[0] = start;
        if (bound->is_close) t->enough = bound->least;
        run_heat(t, 1, 0);
        if (!pc_tournament_is_over(t)) run_heat(t, 1, rounds);
        if (t->entries[0].is_valid && !is_all)
            code = pc_bound_reach(bound, instance, t->entries[0].order.span, is_over, error);
        else
            *is_over = t->entries[0].is_valid;
    }
    if (code || !*is_over) pc_tournament_free(t);
    return code;
}

enum { FEW_BLOCKS = 8, FEW_DRAWS = 32 };

/* The favourite; then, where it is known how short a schedule is to be, a few fitted blocks. */
static pc_code run_favourites(const pc_search *search, const pc_search_effort *effort, const pc_instance *instance,
                              int64_t favourite, pc_bound *bound, pc_fitted *fitted, pc_tournament *t, bool *is_over,
                              pc_error *error) {
    bool is_all = is_large(search, instance->devices * instance->passes), is_known = bound->is_close;
    pc_code code = PC_OK;
    *is_over = false;
    if (favourite >= 0)
        code = run_alone(search, (pc_entry){.pattern = favourite}, instance, effort->start_rounds, is_all, bound, t,
                         is_over, error);
    if (code || *is_over || !is_known || search->is_quick) return code;
    code = pc_fitted_find(instance, FEW_BLOCKS, FEW_DRAWS, false, fitted, error);
    for (int i = 0; i < fitted->count && !code && !*is_over; i++)
        code = run_alone(search, (pc_entry){.fitted = &fitted->blocks[i], .pattern = -1}, instance,
                         effort->start_rounds, false, bound, t, is_over, error);
    return code;
}

static pc_code run_brief(const pc_search *search, const pc_search_effort *effort, const pc_instance *instance,
                         int64_t packed, const pc_bound *bound, pc_fitted *fitted, pc_fitted *seamless,
                         pc_tournament *brief, pc_error *error) {
    size_t patterns = (size_t)search->pattern_count + 1;
    field f = {.list = pc_alloc(patterns, sizeof *f.list), .span = pc_alloc(patterns, sizeof *f.span)};
    int entries = pc_max(2 * effort->starts, pc_max(8, (2 + effort->draws) * effort->best));
    pc_code code = f.list && f.span ? PC_OK : pc_error_no_memory(error);
    if (!code) code = pc_candidates_list(search, instance, f.list, &f.count, error);
    if (!code) code = pc_tournament_create(instance, search->patterns, search->threads, entries, true, brief, error);
    if (!code && !bound->is_close) code = pc_instance_bound(instance, &brief->enough, error);
    if (!code && bound->is_close) brief->enough = bound->least;
    if (!code) brief->enough = later_of(brief->enough, pc_known_span(instance));
    if (!code) compete(brief, &f, packed, effort);
    bool goes_on = !code && !search->is_quick;
    if (goes_on && !pc_tournament_is_over(brief)) code = go_on(search, effort, fitted, brief, error);
    if (goes_on && !code && !pc_tournament_is_over(brief)) code = run_seamless(search, effort, seamless, brief, error);
    pc_free(f.list);
    pc_free(f.span);
    if (!code && !brief->entries[0].is_valid)
        code = pc_error_set(error, PC_ERROR_INPUT,
                            "%s: the memory limit is too small; expected room for one microbatch on every device",
                            search->name);
    return code;
}

static pc_code finish(const pc_search *search, const pc_tournament *t, pc_schedule *schedule, pc_block *block,
                      pc_error *error) {
    const pc_entry *best = &t->entries[0];
    pc_block made = {0};
    pc_code code = PC_OK;
    if (block && best->pattern >= 0) {
        const pc_pattern *pattern = &search->patterns[best->pattern];
        code = pc_block_create(search->placement, t->instance->devices, t->instance->chunks,
                               pc_pattern_microbatches(pattern->family), &made, error);
        if (!code) pc_pattern_build(pattern, &made);
    }
    if (!code) code = pc_instance_to_schedule(t->instance, &best->order, search->name, schedule, error);
    if (code)
        pc_block_free(&made);
    else if (block)
        *block = made;
    return code;
}

/* What idles in every interval costs the less the shorter the iteration, so that what does not idle goes on to the
 * whole one even if it is not among the best: behind the `finalists`, which become one more. */
static int bring_seamless(pc_tournament *brief, const pc_fitted *seamless, int finalists) {
    for (int i = finalists; i < brief->entry_count; i++) {
        pc_entry entry = brief->entries[i];
        if (seamless->count == 0 || entry.fitted != &seamless->blocks[0]) continue;
        brief->entries[i] = brief->entries[finalists];
        brief->entries[finalists] = entry;
        return finalists + 1;
    }
    return finalists;
}

static pc_code run_full(const pc_search *search, const pc_search_effort *effort, const pc_fitted *seamless,
                        pc_tournament *brief, int64_t packed, pc_schedule *schedule, pc_block *block, pc_error *error) {
    pc_instance instance = {0};
    pc_tournament full = {0};
    int finalists = pc_min(pc_max(effort->best, 1), brief->entry_count);
    while (finalists > 1 && !brief->entries[finalists - 1].is_valid) finalists--;
    finalists = bring_seamless(brief, seamless, finalists);
    pc_code code = make_instance(search, search->microbatches, &instance, error);
    if (!code)
        code = pc_tournament_create(&instance, search->patterns, search->threads,
                                    (PC_STRETCH_ATTEMPTS + 1) * finalists + (packed >= 0), false, &full, error);
    if (!code) code = lengthen(brief, finalists, packed, &full, effort->best_rounds, error);
    if (!code) code = finish(search, &full, schedule, block, error);
    pc_tournament_free(&full);
    pc_instance_free(&instance);
    return code;
}

pc_code pc_search_run(const pc_search *search, pc_schedule *schedule, pc_block *block, pc_error *error) {
    pc_instance instance = {0};
    pc_tournament brief = {0};
    pc_fitted fitted = {0}, seamless = {0};
    pc_code code = make_instance(search, short_length(search), &instance, error);
    pc_search_effort effort = code ? search->effort : scale_effort(&search->effort, &instance);
    pc_bound bound = {0};
    bool is_over = false, is_whole = instance.microbatches == search->microbatches;
    int64_t favourite = -1;
    if (!code) bound = pc_known_first(&instance);
    if (!code) code = find_favourite(search, &instance, &favourite, error);
    if (!code) code = run_favourites(search, &effort, &instance, favourite, &bound, &fitted, &brief, &is_over, error);
    int64_t packed = favourite >= 0 && pc_pattern_is_packed(search->patterns[favourite].family) ? favourite : -1;
    if (search->bound && bound.is_close && is_whole && !search->objective) *search->bound = bound;
    if (!code && !is_over)
        code = run_brief(search, &effort, &instance, packed, &bound, &fitted, &seamless, &brief, error);
    if (!code)
        code = is_whole ? finish(search, &brief, schedule, block, error)
                        : run_full(search, &effort, &seamless, &brief, packed, schedule, block, error);
    pc_tournament_free(&brief);
    pc_fitted_free(&fitted);
    pc_fitted_free(&seamless);
    pc_instance_free(&instance);
    return code;
}
