#include "models/schedule/steady.h"

#include "engine/alloc.h"
#include "models/schedule/check.h"
#include "models/schedule/cycle_ratio.h"
#include "models/schedule/dependencies.h"

enum { PERIODS_MAX = 12, PLACES = 5, EIGHTHS = 8 };

/* More events times devices than this take too long: a search for cycles goes over all events for each device. */
#define MOST_STEPS (INT64_C(1) << 25)

/* ---- where the orders repeat ---- */

/* One turn of the middle: for each device the first position of it, and its passes as a schedule of k microbatches,
 * those of the middle counted modulo k. */
typedef struct middle {
    pc_schedule turn;
    int32_t *microbatch; /* a number a pass of the turn: the one that it really is of */
} middle;

/* Passes of a device in k microbatches; -1 where that is no whole number. */
static int64_t passes_of_turn(const pc_schedule *schedule, int device, int k) {
    int64_t passes = schedule->offsets[device + 1] - schedule->offsets[device];
    return passes * k % schedule->microbatches ? -1 : passes * k / schedule->microbatches;
}

static bool is_same(pc_pass a, pc_pass b, int k) {
    return a.kind == b.kind && a.chunk == b.chunk && a.microbatch + k == b.microbatch;
}

/* Where the first of two turns begins on a device, so many eighths into its order; -1: they are not two alike. */
static int64_t find_turn(const pc_schedule *schedule, int device, int k, int eighths) {
    int64_t count = passes_of_turn(schedule, device, k), first = schedule->offsets[device];
    int64_t passes = schedule->offsets[device + 1] - first;
    if (count < 0 || 2 * count > passes) return -1;
    int64_t at = first + passes * eighths / EIGHTHS - count;
    if (at < first || at + 2 * count > first + passes) return -1;
    for (int64_t i = at; i < at + count; i++)
        if (!is_same(schedule->passes[i], schedule->passes[i + count], k)) return -1;
    return at;
}

static bool repeats(const pc_schedule *schedule, int k, int eighths) {
    for (int d = 0; d < schedule->devices; d++)
        if (find_turn(schedule, d, k, eighths) < 0) return false;
    return true;
}

static void free_middle(middle *m) {
    pc_schedule_free(&m->turn);
    pc_free(m->microbatch);
}

static pc_code cut_middle(const pc_schedule *schedule, int k, int eighths, middle *m, pc_error *error) {
    int64_t *counts = pc_alloc((size_t)schedule->devices, sizeof *counts), total = 0;
    if (!counts) return pc_error_no_memory(error);
    for (int d = 0; d < schedule->devices; d++) total += counts[d] = passes_of_turn(schedule, d, k);
    pc_code code = pc_schedule_create(schedule->name, schedule->devices, k, schedule->chunks, schedule->placement,
                                      counts, &m->turn, error);
    pc_free(counts);
    if (code) return code;
    m->turn.barriers = schedule->barriers;
    m->microbatch = pc_alloc((size_t)total, sizeof *m->microbatch);
    if (!m->microbatch) return pc_error_no_memory(error);
    for (int d = 0; d < schedule->devices; d++) {
        int64_t from = find_turn(schedule, d, k, eighths);
        for (int64_t at = m->turn.offsets[d]; at < m->turn.offsets[d + 1]; at++, from++) {
            m->turn.passes[at] = schedule->passes[from];
            m->turn.passes[at].microbatch %= k;
            m->microbatch[at] = schedule->passes[from].microbatch;
        }
    }
    return PC_OK;
}

/* ---- what waits for what ---- */

typedef struct edge_list {
    pc_event_edge *edges;
    int64_t count;
} edge_list;

static void add_edge(edge_list *list, int64_t from, int64_t to, int64_t turns, pc_time time) {
    list->edges[list->count++] = (pc_event_edge){(int32_t)from, (int32_t)to, (int32_t)turns, time};
}

static pc_time time_of(const middle *m, const pc_costs *costs, int device, int64_t at) {
    const pc_pass *pass = &m->turn.passes[at];
    return pc_costs_duration(costs, device, pass->chunk, (pc_pass_kind)pass->kind);
}

/* The pass waits for the one before it in its order, and for those before it in the model: those of its own microbatch,
 * in whatever turn they are. */
static void add_waits(const middle *m, const pc_costs *costs, const pc_pass_index *index, int device, int64_t at,
                      edge_list *list) {
    const pc_schedule *turn = &m->turn;
    pc_predecessor before[PC_PREDECESSORS_MAX];
    bool is_first = at == turn->offsets[device];
    int64_t last = is_first ? turn->offsets[device + 1] - 1 : at - 1;
    int count = pc_pass_predecessors(index, device, turn->passes[at], before);
    add_edge(list, last, at, is_first, time_of(m, costs, device, last));
    for (int i = 0; i < count; i++) {
        int64_t from = before[i].position, stage = before[i].stage;
        pc_time delay = stage == device ? 0 : pc_costs_delay_alone(costs, (int)stage, device);
        if (pc_pass_is_of_vocab(turn->passes[from], turn->passes[at]))
            delay = pc_costs_vocab_ps(costs, turn->passes[from], (int)stage, device);
        add_edge(list, from, at, (m->microbatch[from] - m->microbatch[at]) / turn->microbatches,
                 time_of(m, costs, (int)stage, from) + delay);
    }
}

static void add_all_waits(const middle *m, const pc_costs *costs, const pc_pass_index *index, edge_list *list) {
    for (int d = 0; d < m->turn.devices; d++)
        for (int64_t at = m->turn.offsets[d]; at < m->turn.offsets[d + 1]; at++)
            add_waits(m, costs, index, d, at, list);
}

static pc_code find_ratio(const middle *m, const pc_costs *costs, const pc_pass_index *index, pc_cycle_ratio *ratio,
                          pc_error *error) {
    int64_t passes = m->turn.offsets[m->turn.devices];
    size_t of_pass = 1 + (size_t)pc_pass_predecessors_most(&m->turn); /* 1: the one before it in its order */
    edge_list list = {.edges = pc_alloc((size_t)passes * of_pass, sizeof *list.edges)};
    if (!list.edges) return pc_error_no_memory(error);
    add_all_waits(m, costs, index, &list);
    pc_code code = pc_cycle_ratio_find(list.edges, list.count, (int)passes, ratio, error);
    pc_free(list.edges);
    return code;
}

/* ---- the result ---- */

static pc_code fill_in(const middle *m, const pc_costs *costs, pc_cycle_ratio ratio, pc_steady *steady,
                       pc_error *error) {
    const pc_schedule *turn = &m->turn;
    pc_time *work = pc_alloc((size_t)turn->devices, sizeof *work);
    if (!work) return pc_error_no_memory(error);
    for (int d = 0; d < turn->devices; d++)
        for (int64_t at = turn->offsets[d]; at < turn->offsets[d + 1]; at++) work[d] += time_of(m, costs, d, at);
    *steady = (pc_steady){.devices = turn->devices,
                          .microbatches = turn->microbatches,
                          .cycle_ps = ratio.time,
                          .cycle_microbatches = ratio.turns * turn->microbatches,
                          .work_ps = work};
    steady->interval_ps = (double)steady->cycle_ps / (double)steady->cycle_microbatches;
    return PC_OK;
}

/* The turns may be alike and yet no more than neighbours by chance: then a pass is missing in them, or waits for
 * itself.
 */
static pc_code try_middle(const middle *m, const pc_costs *costs, pc_steady *steady, pc_error *error) {
    pc_pass_index index = {0};
    pc_error ignored = {0};
    pc_cycle_ratio ratio = {0};
    pc_code code = pc_pass_index_create(&m->turn, &index, &ignored);
    if (!code) code = pc_schedule_check_complete(&index, &ignored);
    if (code == PC_ERROR_INPUT)
        code = PC_OK;
    else if (!code)
        code = find_ratio(m, costs, &index, &ratio, error);
    else
        code = pc_error_no_memory(error);
    if (!code && ratio.turns > 0) code = fill_in(m, costs, ratio, steady, error);
    pc_pass_index_free(&index);
    return code;
}

pc_code pc_steady_find(const pc_schedule *schedule, const pc_costs *costs, pc_steady *steady, pc_error *error) {
    static const int places[PLACES] = {4, 3, 5, 2, 6};
    *steady = (pc_steady){0};
    pc_code code = PC_OK;
    for (int k = 1; k <= PERIODS_MAX && 2 * k <= schedule->microbatches && !code; k++) {
        int64_t passes = schedule->offsets[schedule->devices] / schedule->microbatches * k;
        if (passes * schedule->devices > MOST_STEPS) break;
        for (int i = 0; i < PLACES && !code && steady->microbatches == 0; i++) {
            middle m = {0};
            if (!repeats(schedule, k, places[i])) continue;
            code = cut_middle(schedule, k, places[i], &m, error);
            if (!code) code = try_middle(&m, costs, steady, error);
            free_middle(&m);
        }
        if (steady->microbatches > 0) break;
    }
    return code;
}

void pc_steady_free(pc_steady *steady) {
    pc_free(steady->work_ps);
    *steady = (pc_steady){0};
}

double pc_steady_idle_ps(const pc_steady *steady, int device) {
    return steady->interval_ps - (double)steady->work_ps[device] / steady->microbatches;
}

double pc_steady_bubble_rate(const pc_steady *steady) {
    double least = steady->interval_ps;
    for (int d = 0; d < steady->devices; d++) {
        double idle = pc_steady_idle_ps(steady, d);
        if (idle < least) least = idle;
    }
    return steady->interval_ps > 0 ? least / steady->interval_ps : 0;
}
