#include "models/schedule/search/tournament.h"

#include "engine/alloc.h"
#include "engine/parallel.h"
#include "models/schedule/search/bound.h"
#include "models/schedule/search/repeat.h"

#include <string.h>

enum { COARSE_ROUNDS = 8 };

/* ---- the room ---- */

static pc_code create_rooms(const pc_instance *instance, int threads, pc_reorder ***rooms, pc_error *error) {
    *rooms = pc_alloc((size_t)threads, sizeof(pc_reorder *));
    pc_code code = *rooms ? PC_OK : pc_error_no_memory(error);
    for (int i = 0; i < threads && !code; i++) code = pc_reorder_create(instance, &(*rooms)[i], error);
    return code;
}

/* Whether an instance with the same times stands already. */
static bool is_known(const pc_tournament *t, int kind) {
    if (pc_instance_has_times_of(t->instance, &t->coarse[kind])) return true;
    for (int other = 1; other < kind; other++)
        if (t->rooms[other] && pc_instance_has_times_of(&t->coarse[other], &t->coarse[kind])) return true;
    return false;
}

static pc_code create_coarse_rooms(pc_tournament *t, pc_error *error) {
    pc_code code = PC_OK;
    for (int kind = 1; kind < PC_COARSE_KINDS && !code && pc_instance_takes_time(t->instance); kind++) {
        code = pc_instance_coarsen(t->instance, kind, &t->coarse[kind], error);
        if (!code && !is_known(t, kind)) code = create_rooms(&t->coarse[kind], t->threads, &t->rooms[kind], error);
    }
    return code;
}

pc_code pc_tournament_create(const pc_instance *instance, const pc_pattern *patterns, int threads, int entries,
                             bool with_coarse, pc_tournament *tournament, pc_error *error) {
    pc_tournament *t = tournament;
    *t = (pc_tournament){.instance = instance, .patterns = patterns, .threads = threads, .entry_count = entries};
    t->least = t->enough = pc_instance_least_span(instance);
    t->entries = pc_alloc((size_t)entries, sizeof *t->entries);
    t->blocks = pc_alloc((size_t)threads * 2, sizeof *t->blocks);
    pc_code code = t->entries && t->blocks ? PC_OK : pc_error_no_memory(error);
    if (!code) code = create_rooms(instance, threads, &t->rooms[PC_COARSE_NONE], error);
    if (!code && with_coarse) code = create_coarse_rooms(t, error);
    for (int i = 0; i < 2 * threads && !code; i++)
        code =
            pc_block_create(instance->placement, instance->devices, instance->chunks, 1 + i % 2, &t->blocks[i], error);
    for (int i = 0; i < entries && !code; i++) code = pc_instance_order_create(instance, &t->entries[i].order, error);
    return code;
}

void pc_tournament_free(pc_tournament *t) {
    for (int kind = 0; kind < PC_COARSE_KINDS; kind++) {
        for (int i = 0; t->rooms[kind] && i < t->threads; i++) pc_reorder_free(t->rooms[kind][i]);
        pc_free(t->rooms[kind]);
        pc_instance_mirror_free(&t->coarse[kind]);
    }
    for (int i = 0; t->blocks && i < 2 * t->threads; i++) pc_block_free(&t->blocks[i]);
    for (int i = 0; t->entries && i < t->entry_count; i++) pc_instance_order_free(&t->entries[i].order);
    pc_free(t->blocks);
    pc_free(t->entries);
    memset(t, 0, sizeof *t);
}

/* ---- one entry ---- */

static void repeat_block(const pc_tournament *t, int worker, pc_entry *e) {
    if (e->fitted) {
        pc_fitted_repeat(e->fitted, t->instance, &e->order);
        return;
    }
    if (e->pattern < 0) {
        pc_repeat_one_by_one(t->instance, &e->order);
        return;
    }
    const pc_pattern *pattern = &t->patterns[e->pattern];
    pc_block *block = &t->blocks[2 * worker + pc_pattern_microbatches(pattern->family) - 1];
    pc_pattern_build(pattern, block);
    pc_repeat_block(t->instance, block, &e->order);
}

static void make_entry(const pc_tournament *t, int worker, pc_entry *e) {
    repeat_block(t, worker, e);
    if (e->coarse != PC_COARSE_NONE) {
        pc_reorder *room = t->rooms[e->coarse][worker];
        if (pc_reorder_squeeze(room, &e->order)) pc_reorder_improve(room, COARSE_ROUNDS, e->way, 0, &e->order);
    }
    e->is_valid = pc_reorder_squeeze(t->rooms[PC_COARSE_NONE][worker], &e->order);
    e->is_made = true;
    e->stuck = 0;
}

static void make_if_needed(void *context, int worker, int64_t index) {
    const pc_tournament *t = context;
    pc_entry *e = &t->entries[index];
    if (!e->is_made) make_entry(t, worker, e);
}

/* Rounds that are known to change nothing are not done again. */
static void work_on_entry(void *context, int worker, int64_t index) {
    const pc_tournament *t = context;
    pc_entry *e = &t->entries[index];
    if (!e->is_valid || e->stuck == 1 + e->way || e->like != index) return;
    bool is_stuck = pc_reorder_improve(t->rooms[PC_COARSE_NONE][worker], t->rounds, e->way, t->enough, &e->order);
    e->stuck = is_stuck ? 1 + e->way : 0;
}

static void kick_entry(void *context, int worker, int64_t index) {
    const pc_tournament *t = context;
    pc_entry *e = &t->entries[index];
    e->stuck = 0;
    if (e->is_valid)
        pc_reorder_kick(t->rooms[PC_COARSE_NONE][worker], t->kicks, t->patience, (int)index, t->enough, &e->order);
}

static void walk_entry(void *context, int worker, int64_t index) {
    const pc_tournament *t = context;
    pc_entry *e = &t->entries[index];
    e->stuck = 0;
    if (e->is_valid) pc_reorder_walk(t->rooms[PC_COARSE_NONE][worker], t->kicks, (int)index, t->enough, &e->order);
}

/* ---- the ranks ---- */

static bool is_better(const pc_entry *a, const pc_entry *b) {
    if (a->is_valid != b->is_valid) return a->is_valid;
    if (a->order.span != b->order.span) return a->order.span < b->order.span;
    if (a->order.makespan != b->order.makespan) return a->order.makespan < b->order.makespan;
    return a->order.peak < b->order.peak;
}

/* Stable, so that nothing depends on which thread was faster. */
static void rank(pc_entry *entries, int count) {
    for (int i = 1; i < count; i++) {
        pc_entry moved = entries[i];
        int at = i;
        for (; at > 0 && is_better(&moved, &entries[at - 1]); at--) entries[at] = entries[at - 1];
        entries[at] = moved;
    }
}

/* ---- heats ---- */

static bool is_same(const pc_instance *instance, const pc_entry *a, const pc_entry *b) {
    size_t passes = (size_t)instance->devices * (size_t)instance->passes;
    return a->is_valid && b->is_valid && a->way == b->way && a->order.span == b->order.span &&
           a->order.makespan == b->order.makespan &&
           memcmp(a->order.pass, b->order.pass, passes * sizeof *a->order.pass) == 0 &&
           memcmp(a->order.start, b->order.start, passes * sizeof *a->order.start) == 0;
}

static void find_doubles(pc_tournament *t, int count) {
    for (int i = 0; i < count; i++) {
        pc_entry *e = &t->entries[i];
        e->like = i;
        for (int other = 0; other < i && e->like == i; other++)
            if (t->entries[other].like == other && is_same(t->instance, &t->entries[other], e)) e->like = other;
    }
}

static void copy_doubles(pc_tournament *t, int count) {
    for (int i = 0; i < count; i++) {
        pc_entry *e = &t->entries[i];
        if (e->like == i) continue;
        pc_instance_order_copy(t->instance, &t->entries[e->like].order, &e->order);
        e->stuck = t->entries[e->like].stuck;
    }
}

void pc_tournament_run(pc_tournament *t, int count, int rounds) {
    t->rounds = rounds;
    pc_parallel_run(t->threads, count, make_if_needed, t);
    if (rounds > 0) {
        find_doubles(t, count);
        pc_parallel_run(t->threads, count, work_on_entry, t);
        copy_doubles(t, count);
    }
    rank(t->entries, count);
}

void pc_tournament_kick(pc_tournament *t, int count, int kicks, int patience) {
    t->kicks = kicks;
    t->patience = patience;
    pc_parallel_run(t->threads, count, kick_entry, t);
    rank(t->entries, count);
}

void pc_tournament_walk(pc_tournament *t, int count, int kicks) {
    t->kicks = kicks;
    pc_parallel_run(t->threads, count, walk_entry, t);
    rank(t->entries, count);
}

bool pc_tournament_is_over(const pc_tournament *t) {
    return t->entries[0].is_valid && t->entries[0].order.span <= t->enough;
}

static void copy_entry(const pc_instance *instance, const pc_entry *from, pc_entry *to) {
    pc_instance_order order = to->order;
    *to = *from;
    to->order = order;
    pc_instance_order_copy(instance, &from->order, &to->order);
}

void pc_tournament_copy_entry(pc_tournament *t, int from, int to) {
    copy_entry(t->instance, &t->entries[from], &t->entries[to]);
}

void pc_tournament_adopt(pc_tournament *t, const pc_tournament *other, int count) {
    for (int i = 0; i < count; i++)
        copy_entry(t->instance, &other->entries[i], &t->entries[t->entry_count - count + i]);
    rank(t->entries, t->entry_count);
}
