#include "models/schedule/cycle_ratio.h"

#include "engine/alloc.h"

/* Potentials are times, multiplied by the turns of a cycle. */
__extension__ typedef __int128 wide;

enum { NO_EDGE = -1, UNSEEN = -1 };

typedef struct walk {
    const pc_event_edge *edges;
    int64_t edge_count;
    int event_count;
    wide *potential;  /* a number an event: the longest way to it so far, at the ratio that is tried */
    int64_t *arrival; /* the last edge of that way, or NO_EDGE */
    int32_t *seen;    /* the event from which the way back came by here, or UNSEEN */
    pc_cycle_ratio ratio;
} walk;

static bool relax(walk *w, int64_t e) {
    const pc_event_edge *edge = &w->edges[e];
    wide length = (wide)edge->time * w->ratio.turns - (wide)edge->turns * w->ratio.time;
    if (w->potential[edge->from] + length <= w->potential[edge->to]) return false;
    w->potential[edge->to] = w->potential[edge->from] + length;
    w->arrival[edge->to] = e;
    return true;
}

/* Once over all edges, to or fro: ways run down the devices as well as up. */
static bool relax_all(walk *w, bool is_forward) {
    bool is_longer = false;
    for (int64_t i = 0; i < w->edge_count; i++)
        if (relax(w, is_forward ? i : w->edge_count - 1 - i)) is_longer = true;
    return is_longer;
}

/* An event of a cycle that the ways run in; -1: they run in none, and every way has a beginning. */
static int find_cycle(walk *w) {
    for (int v = 0; v < w->event_count; v++) w->seen[v] = UNSEEN;
    for (int v = 0; v < w->event_count; v++) {
        int at = v;
        while (at >= 0 && w->seen[at] == UNSEEN) {
            w->seen[at] = v;
            at = w->arrival[at] == NO_EDGE ? -1 : w->edges[w->arrival[at]].from;
        }
        if (at >= 0 && w->seen[at] == v) return at;
    }
    return -1;
}

static pc_cycle_ratio ratio_of_cycle(const walk *w, int event) {
    pc_cycle_ratio ratio = {0};
    int at = event;
    do {
        const pc_event_edge *edge = &w->edges[w->arrival[at]];
        ratio.time += edge->time;
        ratio.turns += edge->turns;
        at = edge->from;
    } while (at != event);
    return ratio;
}

/* Whether some cycle has a greater ratio than w->ratio, which then becomes that cycle's. */
static bool find_greater(walk *w) {
    int event = -1;
    for (int v = 0; v < w->event_count; v++) {
        w->potential[v] = 0;
        w->arrival[v] = NO_EDGE;
    }
    for (bool is_forward = true; event < 0; is_forward = !is_forward) {
        if (!relax_all(w, is_forward)) return false;
        event = find_cycle(w);
    }
    w->ratio = ratio_of_cycle(w, event);
    return true;
}

/* The first ratio tried is below that of any cycle with turns. */
static void find_greatest(walk *w) {
    bool is_found = false;
    w->ratio = (pc_cycle_ratio){.time = -1, .turns = 1};
    while (find_greater(w)) {
        is_found = w->ratio.turns > 0;
        if (!is_found) break;
    }
    if (!is_found) w->ratio = (pc_cycle_ratio){0};
}

pc_code pc_cycle_ratio_find(const pc_event_edge *edges, int64_t edge_count, int event_count, pc_cycle_ratio *ratio,
                            pc_error *error) {
    size_t events = (size_t)event_count;
    walk w = {.edges = edges,
              .edge_count = edge_count,
              .event_count = event_count,
              .potential = pc_alloc(events, sizeof *w.potential),
              .arrival = pc_alloc(events, sizeof *w.arrival),
              .seen = pc_alloc(events, sizeof *w.seen)};
    bool is_there = w.potential && w.arrival && w.seen;
    if (is_there) {
        find_greatest(&w);
        *ratio = w.ratio;
    }
    pc_free(w.potential);
    pc_free(w.arrival);
    pc_free(w.seen);
    return is_there ? PC_OK : pc_error_no_memory(error);
}
