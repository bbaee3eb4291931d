#include "tests/longest_path.h"

#include <stdlib.h>
#include <string.h>

/* Where in the model a pass works, 0 for the slice that the input enters. */
static int slice_of(const pc_schedule *s, int stage, int chunk) {
    if (s->placement == PC_PLACEMENT_BIDIRECTIONAL) return chunk == 0 ? stage : s->devices - 1 - stage;
    if (pc_placement_has_slices(s->placement))
        return chunk / pc_placement_slices(s->placement, s->chunks) * s->devices + stage;
    bool is_upward = s->placement == PC_PLACEMENT_V && chunk % 2 == 1;
    return is_upward ? (chunk + 1) * s->devices - 1 - stage : chunk * s->devices + stage;
}

static bool is_backward(int kind) {
    return kind == PC_PASS_B || kind == PC_PASS_BW;
}

static bool has_recompute(const pc_schedule *s, int slice, pc_pass of) {
    bool is_cut = pc_placement_has_slices(s->placement); /* then parts of other chunks have that number, too */
    for (int d = 0; d < s->devices; d++)
        for (int64_t i = s->offsets[d]; i < s->offsets[d + 1]; i++)
            if (s->passes[i].kind == PC_PASS_R && s->passes[i].microbatch == of.microbatch &&
                slice_of(s, d, s->passes[i].chunk) == slice && (!is_cut || s->passes[i].chunk == of.chunk))
                return true;
    return false;
}

/* Whether the pass at (d, a) must end before that at (e, b) starts, the order on a stage aside. */
static bool must_precede(const pc_schedule *s, int d, pc_pass a, int e, pc_pass b) {
    int from = slice_of(s, d, a.chunk), to = slice_of(s, e, b.chunk);
    if (a.microbatch != b.microbatch) return false;
    int slices = pc_placement_slices(s->placement, s->chunks);
    if (a.chunk % slices != b.chunk % slices) {
        if (from != to) return false;
        if (b.kind == PC_PASS_F) return a.kind == PC_PASS_F && a.chunk == b.chunk - 1;
        return is_backward(a.kind) && is_backward(b.kind) && a.chunk == b.chunk + 1;
    }
    if (b.kind == PC_PASS_S) return a.kind == PC_PASS_F && from == s->devices * s->chunks - 1;
    if (b.kind == PC_PASS_T) return a.kind == PC_PASS_S;
    if (a.kind >= PC_PASS_S)
        return is_backward(b.kind) && to == s->devices * s->chunks - 1 &&
               a.kind == (s->barriers == PC_BARRIERS_TWO ? PC_PASS_T : PC_PASS_S);
    if (b.kind == PC_PASS_F) return a.kind == PC_PASS_F && from == to - 1;
    if (b.kind == PC_PASS_R) return a.kind == PC_PASS_F && from == to;
    if (b.kind == PC_PASS_W) return a.kind == PC_PASS_B && from == to;
    if (is_backward(a.kind)) return from == to + 1;
    if (from != to) return false;
    return a.kind == (has_recompute(s, to, b) ? PC_PASS_R : PC_PASS_F);
}

/* The edges between passes of different places, found by holding every pass against every other. */
typedef struct edge {
    int64_t from, to;
    pc_time delay;
    bool crosses; /* to another stage */
} edge;

/* Between different stages, which are neighbours on a ring. */
static pc_time delay_between(const pc_costs *costs, int d, int e) {
    int p = costs->devices;
    if (!costs->hop_delay_ps) return costs->transfer.delay_ps;
    return costs->hop_delay_ps[(d + 1) % p == e ? d : e];
}

/* Of the collectives about S and T; below zero for any other edge. */
static pc_time vocab_delay(const pc_costs *costs, pc_pass a, pc_pass b, bool is_here) {
    if (a.kind == PC_PASS_S) return costs->vocab.exchange_ps;
    if (a.kind == PC_PASS_T) return costs->vocab.reduce_ps;
    return b.kind != PC_PASS_S ? -1 : is_here ? 0 : costs->vocab.broadcast_ps;
}

static edge *find_edges(const pc_schedule *s, const pc_costs *costs, int64_t *count) {
    int most = s->barriers == PC_BARRIERS_NONE ? 3 : 3 + s->devices;
    edge *edges = malloc((size_t)(most * s->offsets[s->devices] + 1) * sizeof *edges);
    *count = 0;
    for (int e = 0; e < s->devices; e++)
        for (int64_t i = s->offsets[e]; i < s->offsets[e + 1]; i++)
            for (int d = 0; d < s->devices; d++)
                for (int64_t j = s->offsets[d]; j < s->offsets[d + 1]; j++)
                    if (must_precede(s, d, s->passes[j], e, s->passes[i])) {
                        pc_time vocab = vocab_delay(costs, s->passes[j], s->passes[i], d == e);
                        pc_time delay = d == e ? 0 : delay_between(costs, d, e);
                        edges[(*count)++] = (edge){j, i, vocab < 0 ? delay : vocab, d != e && vocab < 0};
                    }
    return edges;
}

static bool raise_to(pc_time *time, pc_time bound) {
    if (*time >= bound) return false;
    *time = bound;
    return true;
}

/* Every pass of a stage starts after the one before it and after its edges; one round over all of them. */
static bool relax(const pc_schedule *s, const pc_costs *costs, const pc_time *duration, const edge *edges,
                  int64_t edge_count, pc_time *start, pc_time *end) {
    bool has_changed = false;
    for (int64_t k = 0; k < edge_count; k++)
        has_changed |= raise_to(&start[edges[k].to], end[edges[k].from] + edges[k].delay);
    for (int d = 0; d < s->devices; d++)
        for (int64_t i = s->offsets[d]; i < s->offsets[d + 1]; i++) {
            pc_pass pass = s->passes[i];
            if (i > s->offsets[d]) has_changed |= raise_to(&start[i], end[i - 1]);
            if (costs->ready_ps && pass.kind == PC_PASS_F)
                has_changed |= raise_to(&start[i], costs->ready_ps[(int64_t)d * s->chunks + pass.chunk]);
            has_changed |= raise_to(&end[i], start[i] + duration[i]);
        }
    return has_changed;
}

bool longest_path_each(const pc_schedule *s, const pc_costs *costs, const pc_time *duration, const pc_time *delay,
                       pc_time *start, pc_time *end) {
    int64_t passes = s->offsets[s->devices], edge_count, round = 0;
    edge *edges = find_edges(s, costs, &edge_count);
    for (int64_t k = 0; delay && k < edge_count; k++)
        if (edges[k].crosses) edges[k].delay = delay[edges[k].to];
    memset(start, 0, (size_t)passes * sizeof *start);
    memset(end, 0, (size_t)passes * sizeof *end);
    while (round <= passes + 1 && relax(s, costs, duration, edges, edge_count, start, end)) round++;
    free(edges);
    return round <= passes + 1;
}

bool longest_path(const pc_schedule *s, const pc_costs *costs, pc_time *start, pc_time *end) {
    pc_time *duration = malloc((size_t)(s->offsets[s->devices] + 1) * sizeof *duration);
    for (int d = 0; d < s->devices; d++)
        for (int64_t i = s->offsets[d]; i < s->offsets[d + 1]; i++) {
            int64_t row = (int64_t)d * s->chunks + s->passes[i].chunk;
            duration[i] = costs->duration_ps[row * PC_PASS_KINDS + s->passes[i].kind];
        }
    bool has_path = longest_path_each(s, costs, duration, NULL, start, end);
    free(duration);
    return has_path;
}
